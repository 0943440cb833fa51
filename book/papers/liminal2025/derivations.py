"""LIMINAL 2025: its equations in short, what fits, and the inverse question: which chip reaches a given speed?"""

import sympy as sp

from book.style import brace
from inferlib.equation import Step
from inferlib.ops import maximum
from inferlib.papers import liminal2025 as model
from inferlib.papers.liminal2025 import PRINTED, Application, Assumptions
from inferlib.papers.liminal2025.derivations import (
    APP,
    ASSUMED,
    AT,
    T_TP,
    N,
    P,
    derivation,
    equals,
    in_symbols,
    symbol,
)  # fmt: skip
from inferlib.papers.liminal2025.records import equation

BRACES = {
    "memory_time": brace("reading weights", "reads weights and cache"),
    "compute_time": brace("multiplying", "multiplies"),
    "exposed_time": brace("waiting", "waits"),
}


@equation(unit="B/s", n="1 > 0", speed="1/s")
def bandwidth_for(
    application: Application, batch, context, n, speed, waiting, assumptions: Assumptions = PRINTED
):
    """Memory bandwidth a chip needs for a speed, if a part ``waiting`` of the time, below 1, is spent waiting.

    Memory is taken to bind, not arithmetic.
    """
    return model.bytes_loaded(application, batch, context, assumptions) * speed / (n * (1 - waiting))


@equation(unit="s", speed="1/s > 0")
def latency_for(application: Application, n, speed, waiting, assumptions: Assumptions = PRINTED):
    """Latency a collective may have for a speed, if collectives may take a given part of the time.

    A single chip, which has no collective, is answered as if it had one.
    """
    return waiting / (speed * maximum(model.collectives(application, n, assumptions), 1))


@derivation()
def in_short():
    """Equations 4, 1 and 5, each in the symbols of the ones before."""
    step = AT[:-1] + (N, P, T_TP, ASSUMED)
    time, waiting = model.batch_time(*step), model.exposed_time(APP, N, P, T_TP, ASSUMED)
    # the sum is flat, so the exposed part is substituted as a whole
    short = symbol("exposed_time") + in_symbols(time - waiting, "compute_time", "memory_time")
    named = {symbol(name): sp.Symbol(words % symbol(name).name) for name, words in BRACES.items()}
    user, system = (
        f(*step).xreplace({time: symbol("batch_time")}) for f in (model.user_speed, model.system_speed)
    )
    return (
        Step(
            "Collectives of all layers, and a hop from stage to stage.",
            equals("exposed_time", in_symbols(waiting, "collectives")),
            "4",
        ),
        Step(
            "Memory and arithmetic overlap; the exposed time is added.",
            equals("batch_time", short.subs(named)),
            "1",
        ),
        Step("A token for each user in that time:", equals("user_speed", user), "5"),
        "The system makes a batch of tokens in each stage of the pipeline:",
        equals("system_speed", system),
        "So for each token that one user sees, the system makes this many:",
        sp.Eq(symbol("system_speed") / symbol("user_speed"), sp.simplify(system / user)),
    )
