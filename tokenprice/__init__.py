"""The price of a token: how fast a model runs on a machine, how sure that is, what it costs, what would help.

``ask`` answers a :class:`Question`; ``change`` says what must change to keep a :class:`Promise`; ``decide`` says what
to rent; ``simulate`` follows single requests through a fleet; ``models`` and ``chips`` list what is known by name.
The command ``tokenprice`` has the same names and words.
"""

from tokenprice.question import Promise, Question  # isort: skip
from tokenprice.ask import Answer, ask
from tokenprice.change import change
from tokenprice.decide import Decision, decide
from tokenprice.known import chips, models
from tokenprice.simulate import Simulation, simulate

__all__ = [
    "Answer", "Decision", "Promise", "Question", "Simulation", "ask", "change", "chips", "decide", "models", "simulate",
]  # fmt: skip


def __dir__():
    return __all__
