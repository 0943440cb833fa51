"""The price of a token: how fast a model runs on a machine, how certain that is, what it costs, what would help.

``ask`` answers a :class:`Question`; ``change`` finds what must change to meet an :class:`SLO`; ``decide`` finds what
to rent; ``check`` tells whether a benchmark is as fast as it should be; ``simulate`` follows single requests through
a fleet;
``sweep`` asks at every point of a grid; ``models`` and ``chips`` list what is known by name;
``load_model`` also reads the ``config.json`` of any other.
The command ``tokenprice`` has the same names and words.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from inferlib import __version__ as __version__

from tokenprice.question import SLO, Question  # isort: skip
from tokenprice.ask import Answer, ask
from tokenprice.catalog import load_model
from tokenprice.change import change
from tokenprice.listing import chips, models

if TYPE_CHECKING:
    from tokenprice.diagnosis import Check, check
    from tokenprice.recommendation import Decision, decide
    from tokenprice.simulation import Simulation, simulate
    from tokenprice.sweeps import sweep

__all__ = [
    "Answer", "Check", "Decision", "Question", "SLO", "Simulation", "ask", "change", "check", "chips", "decide",
    "load_model", "models", "simulate", "sweep",
]  # fmt: skip

_LATER = {
    "Decision": "recommendation",
    "decide": "recommendation",
    "Simulation": "simulation",
    "simulate": "simulation",
    "sweep": "sweeps",  # needs xarray
    "Check": "diagnosis",
    "check": "diagnosis",
}


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module 'tokenprice' has no attribute {name!r}")
    return getattr(import_module(f"tokenprice.{_LATER[name]}"), name)


def __dir__():
    return __all__
