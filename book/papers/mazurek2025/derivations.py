"""Mazurek & Schreiber 2025: what follows from its equations and is not printed, beside the library's derivations."""

import sympy as sp

from inferlib.equation import Step, let
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.derivations import (  # noqa: F401, the library's derivations are here too
    CHIP,
    EXACT,
    MODEL,
    PLACE,
    B,
    N,
    S,
    absorption,
    attention_outweighs,
    balls_into_bins,
    derivation,
    equals,
    reach,
    symbol,
    two_forms,
    urn,
)  # fmt: skip
from inferlib.papers.mazurek2025.records import PRINTED, Deployment


def compute_bound_context(model, gpu, assumptions=PRINTED):
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
    return (
        "The network needs this long for half of a batch.",
        equals("t_network", sent),
        "However fast computation is, equation 49 cannot be shorter than twice that.",
        sp.Ge(symbol("overlapped_time"), sp.simplify(total)),
        "The batch drops out of the tokens per second and GPU: a ceiling that no batch lifts.",
        sp.Eq(sp.Symbol(r"\text{TPS}_{\text{GPU}}"), speed),
    )


@derivation()
def empty_lines():
    """The two equation numbers that stand beside empty lines."""
    lines = eq.query_down_flops, eq.query_rope_flops, eq.latent_down_flops, eq.key_rope_flops
    projections = sum(flops(MODEL, B, S, EXACT) for flops in lines)
    matrices = 3 * eq.expert_matrix_flops(MODEL, B, EXACT)
    return (
        Step(
            "Equations 20 to 23 are followed by an empty line with a number. Their sum would fit there.",
            let(r"\sum_{20}^{23}", sp.factor(projections)),
            number="24",
            form="empty",
        ),
        Step(
            "So are equations 39 to 41. Their sum is equation 43, which follows.",
            let(r"\sum_{39}^{41}", matrices),
            number="42",
            form="empty",
        ),
    )
