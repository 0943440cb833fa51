"""Mazurek & Schreiber 2025: what follows from its equations and is not printed, beside the library's derivations."""

import sympy as sp

from inferlib.equation import derivation_steps
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.derivations import (  # noqa: F401, the library's derivations are here too
    CHIP,
    EXACT,
    MODEL,
    PLACE,
    B,
    N,
    absorption,
    attention_outweighs,
    balls_into_bins,
    derivation,
    empty_lines,
    equals,
    reach,
    symbol,
    two_forms,
    urn,
)  # fmt: skip
from inferlib.papers.mazurek2025.records import DEFAULT, Deployment


def compute_bound_context(model, gpu, assumptions=DEFAULT):
    """Return the context above which memory binds attention at every batch; infinite if it never does."""
    one = Deployment(1)

    def slope(context):
        times = [
            function(model, gpu, one, batch, context, assumptions)
            for function in (eq.attention_memory_time, eq.attention_arithmetic_time)
            for batch in (1, 2)
        ]
        return (times[1] - times[0]) - (times[3] - times[2])

    at_none, per_token = slope(0), slope(1) - slope(0)
    return -at_none / per_token if per_token > 0 else float("inf")


@derivation(proves=eq.network_ceiling)
def network_ceiling():
    """The most tokens per second that the network lets through."""
    half = B / 2
    sent = eq.network_time(MODEL, CHIP, PLACE, half, EXACT)
    total = 2 * sent
    speed = sp.simplify(B / N / total)
    return derivation_steps(
        "The network needs this long for half of a batch.",
        equals("t_network", sent),
        "However fast computation is, equation 49 cannot be shorter than twice that.",
        sp.Ge(symbol("overlapped_time"), sp.simplify(total)),
        "The batch drops out of the tokens per second and GPU: a ceiling that no batch lifts.",
        sp.Eq(sp.Symbol(r"\text{TPS}_{\text{GPU}}"), speed),
    )
