"""Mazurek & Schreiber 2025: what follows from its equations and is not printed, beside the library's derivations."""

from functools import partial

import sympy as sp

from inferlib.equation import derivation, in_steps
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.derivations import (  # noqa: F401, those of the library stand here too
    CHIP,
    EXACT,
    MODEL,
    PLACE,
    B,
    N,
    absorption,
    attention_outweighs,
    balls_into_bins,
    empty_lines,
    left,
    reach,
    two_forms,
    urn,
)  # fmt: skip
from inferlib.papers.mazurek2025.records import DEFAULT, Deployment

derivation = partial(derivation, "mazurek2025")


@derivation(proves=eq.fullest_gpu_experts_placed)
def drawn_without_replacement():
    """The same for experts that are dealt out evenly, of which a batch wakes some."""
    active, m = left("active"), MODEL.n_routed
    held, q = m / N, active / m
    both = active * (active - 1) / (m * (m - 1))
    variance = sp.factor(held * q * (1 - q) + held * (held - 1) * (both - q**2))
    share, mean = sp.Symbol("x", positive=True), active / N
    idle = sp.limit(
        sp.limit(sp.simplify(variance.subs(active, share * m) / (share * m / N)), m, sp.oo), N, sp.oo
    )
    # the library's form keeps a negative share out; within 0 and 1 it is the same
    spread = sp.sqrt(mean * sp.Max(idle.subs(share, q), 0)) * reach()
    return in_steps(
        "A GPU holds h experts of each layer, and each of them is active with probability",
        sp.Eq(sp.Symbol("q"), q),
        "Two of them are active together a little less often than independent ones, for no expert is hit twice:",
        sp.Eq(sp.Symbol("q_2"), both),
        "The variance of a GPU's active experts is that of h draws, and the covariance of all their pairs:",
        sp.Eq(sp.Symbol(r"\sigma^2"), variance),
        "Over the mean, for many experts on many GPUs, with a share x of them active:",
        sp.Eq(sp.Symbol(r"\lim\ \sigma^2/\mu"), idle),
        "So the spread of balls into bins is multiplied by the root of the idle share. With every expert active "
        "nothing is left to chance.",
        sp.Eq(left("fullest_gpu_experts"), mean + spread),
    )


def compute_bound_context(model, gpu, assumptions=DEFAULT):
    """The context from which on memory binds attention at every batch; infinite where it never does."""
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
    return in_steps(
        "The network needs this long for half of a batch.",
        sp.Eq(left("t_network"), sent),
        "However fast computation is, equation 49 cannot be shorter than twice that.",
        sp.Ge(left("overlapped_time"), sp.simplify(total)),
        "The batch drops out of the tokens per second and GPU: a ceiling that no batch lifts.",
        sp.Eq(sp.Symbol(r"\text{TPS}_{\text{GPU}}"), speed),
    )
