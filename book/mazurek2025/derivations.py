"""Mazurek & Schreiber 2025: what follows from its equations and is not printed, beside the library's derivations."""

from functools import partial

import sympy as sp

from inferlib.equation import derivation, in_steps, remembered
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.derivations import (  # noqa: F401, those of the library stand here too
    CHIP,
    EXACT,
    MODEL,
    PLACE,
    RIGHT,
    B,
    N,
    S,
    absorption,
    attention_outweighs,
    balls_into_bins,
    empty_lines,
    left,
    reach,
    sizes,
    two_forms,
    urn,
)  # fmt: skip
from inferlib.papers.mazurek2025.records import DEFAULT, Deployment, model_of

derivation = partial(derivation, "mazurek2025")


def _per_token(total):
    """The part of a FLOP count that grows with the context, for one sequence and token of it."""
    return sp.expand(sp.diff(sp.expand(total.subs(B, 1)), S))


@derivation()
def absorption_saving():
    """How many FLOP absorption saves for each token of context."""
    vanilla = _per_token(eq.vanilla_decode_flops(MODEL, B, S, RIGHT))
    absorbed = _per_token(eq.absorbed_decode_flops(MODEL, B, S, RIGHT))
    heads = MODEL.n_heads
    one = sp.Symbol("d_h", positive=True)
    same = {MODEL.nope_dim: one, MODEL.value_dim: one}
    ratio = sp.factor(sp.simplify(vanilla.subs(same) / absorbed))
    known = sizes() | {one: model_of("DeepSeek V3").value_dim}
    return in_steps(
        "Vanilla decode works this much for each token of context and layer: keys and values computed back "
        "from the latent, then scores and values.",
        sp.Eq(sp.Symbol("v"), sp.collect(vanilla, heads)),
        "Absorbed decode only takes scores and values, on the latent, which is wider than a head.",
        sp.Eq(sp.Symbol("a"), sp.factor(absorbed)),
        "With equal widths of a head, the number of heads drops out of the ratio.",
        sp.Eq(sp.Symbol("v/a"), ratio),
        "For DeepSeek V3, in a long context:",
        sp.Eq(sp.Symbol("v/a"), ratio.subs(known)),
    )


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


@remembered
def _attention_slopes():
    """Seconds that one more sequence of a GPU costs attention, in memory and in arithmetic."""
    own = MODEL, PLACE.replace(n_gpus=sp.Integer(1))
    reading = EXACT.memory_inefficiency * eq.attention_traffic(*own, B, S, RIGHT) / CHIP.memory_bandwidth
    working = eq.attention_arithmetic_time(MODEL, CHIP, own[1], B, S, RIGHT)
    return sp.diff(sp.expand(reading), B), sp.diff(sp.expand(working), B)


PROJECTIONS = sp.Symbol("f_0", positive=True)  # FLOP of one token in all projections of a layer


@derivation()
def attention_compute_bound():
    """When attention's arithmetic outlasts its reading."""
    reading, working = _attention_slopes()
    fixed = eq.absorbed_decode_flops(MODEL, 1, 0, RIGHT)
    matrices = sp.expand(fixed / (2 * eq.layer_attention_weights(MODEL, EXACT)))
    factor = EXACT.attention_inefficiency * EXACT.arithmetic_penalty * MODEL.n_layers / CHIP.bf16_flops
    per_token = sp.factor(sp.expand(sp.diff(working, S)) / factor)
    short = sp.factor(factor * (PROJECTIONS + per_token * S))
    context = sp.solve(sp.Eq(reading, short), S)[0]
    simple = sp.factor(sp.limit(working / reading, S, sp.oo))
    return in_steps(
        "One more sequence on a GPU costs memory this long: its cache and its activations.",
        sp.Eq(sp.Symbol("m"), sp.factor(reading)),
        "All projections of a token take two FLOP for each weight of the eight matrices.",
        sp.Eq(PROJECTIONS, sp.simplify(matrices) * 2 * sp.Symbol(r"W_{\text{layer}}")),
        "With them, and scores and values for each token of context, one more sequence costs arithmetic this long.",
        sp.Eq(sp.Symbol("c"), short),
        "Weights are read whatever the batch. If one more sequence costs memory more than arithmetic, memory "
        "binds at every batch. The two are equal at one context.",
        sp.Eq(S, sp.factor(context)),
        "In long contexts all that matters is FLOP for each byte of the latent, which only the number of heads "
        "and the two peaks decide. Above 1 arithmetic binds in large batches, below 1 memory always.",
        sp.Eq(sp.Symbol("c/m"), simple),
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
