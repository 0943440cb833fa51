"""The speed, derived."""

import sympy as sp
from inferlib.papers.tiny2026.equations import reading_time, speed

from inferlib.equation import Step, derivation, symbolic
from inferlib.system import Accelerator

CHIP = symbolic(Accelerator, "tiny2026")


@derivation("tiny2026", proves=speed)
def from_reading():
    """One token for every time that the weights are read."""
    n, t, v = sp.symbols("P t v", positive=True)
    time = sp.Eq(t, reading_time(CHIP, n))
    return [
        Step("A token reads all weights once.", time),
        Step("So many fit into a second.", sp.Eq(v, sp.solve(sp.Eq(v * t, 1), v)[0].subs(t, time.rhs))),
    ]
