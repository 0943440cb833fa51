"""Erdil 2025: what its complete model implies beyond what the paper prints, derived step by step."""

from functools import partial

import sympy as sp

from book.erdil2025 import limits
from inferlib.equation import Step, derivation, in_steps, symbolic, symbols_of
from inferlib.papers.erdil2025 import search
from inferlib.papers.erdil2025.equations import printed
from inferlib.papers.erdil2025.records import GPU, Protocol
from inferlib.papers.erdil2025.shape import Shape, cache_values

derivation = partial(derivation, "erdil2025", chapter="erdil2025_model")
_NAMES = symbols_of("erdil2025")
SHAPE, CHIP = symbolic(Shape, "erdil2025"), symbolic(GPU, "erdil2025")
PROTOCOL = symbolic(Protocol, "erdil2025")


def _symbol(name):
    return sp.Symbol(_NAMES[name], positive=True)


N_GPU, BATCH, CONTEXT, PARAMS = (_symbol(name) for name in ("n_gpu", "batch", "context", "n_params"))
ACCEPTANCE, GAMMA = _symbol("acceptance"), _symbol("drafts")


@derivation(proves=limits.long_context_intensity)
def long_context_intensity():
    """Arithmetic per byte of cache when attention is all that counts."""
    flop_per_pair = _symbol("flop_per_pair")
    flop = flop_per_pair * SHAPE.n_layers * SHAPE.n_heads * SHAPE.head_dim * CONTEXT
    read = SHAPE.n_layers * cache_values(SHAPE) * SHAPE.activation_bytes * CONTEXT
    return in_steps(
        "Arithmetic of one token: each query against each key, and its weight times each value.",
        sp.Eq(sp.Symbol("F"), flop),
        "The cache that is read for it: keys and values of every head that queries share.",
        sp.Eq(sp.Symbol("R"), read),
        "Layers, heads, their width and the context fall out; the group remains.",
        sp.Eq(_symbol("long_context_intensity"), sp.simplify(flop / read)),
    )


@derivation(proves=limits.network_batch)
def network_batch():
    """The batch at which moving activations takes as long as waiting for the collectives."""
    latency = limits.node_all_reduce_latency(PROTOCOL, N_GPU)
    moving = printed.extra_all_reduce_time(SHAPE, CHIP, PROTOCOL, N_GPU, BATCH)
    solution = sp.solve(sp.Eq(latency, moving), BATCH)[0]
    return in_steps(
        "An all-reduce inside a node waits, whatever it carries,",
        sp.Eq(_symbol("node_all_reduce_latency"), latency),
        "and then moves the batch's activations.",
        sp.Eq(_symbol("extra_all_reduce_time"), moving),
        "Up to one batch waiting is the longer of the two. It does not depend on the model's depth.",
        sp.Eq(_symbol("network_batch"), solution),
    )


@derivation(proves=limits.best_tensor_parallel)
def best_tensor_parallel():
    """The tensor-parallel degree inside a node beyond which another GPU makes a token slower."""
    reading = limits.weights_over_gpus(SHAPE, CHIP, PARAMS, N_GPU)
    waiting = SHAPE.n_layers * limits.all_reduces() * limits.node_all_reduce_latency(PROTOCOL, N_GPU)
    slope = sp.diff(reading + waiting, N_GPU)
    optimum = sp.solve(sp.Eq(slope, 0), N_GPU)[0]
    return in_steps(
        "Reading the weights shrinks with every GPU,",
        sp.Eq(_symbol("weights_over_gpus"), reading),
        "and two all-reduces a layer wait longer with every GPU.",
        sp.Eq(sp.Symbol(r"t_{\text{wait}}"), waiting),
        "At the best degree one more GPU saves as much as it costs.",
        sp.Eq(slope, 0),
        "So the degree grows with the square root of the bytes of a layer.",
        sp.Eq(_symbol("best_tensor_parallel"), sp.simplify(optimum)),
    )


@derivation()
def speculation():
    """The best number of drafts, with equation 46 for the mean time."""
    decay, ratio = sp.symbols("k r", positive=True)
    target, draft = _symbol("target_time"), _symbol("draft_time")
    mean = search.speculative_time(ACCEPTANCE, GAMMA, GAMMA, target, draft)
    scaled = sp.simplify(mean.subs({ACCEPTANCE: sp.exp(-decay), target: ratio * draft}) / draft)
    slope = sp.numer(sp.together(sp.simplify(sp.diff(scaled, GAMMA))))
    positive = sp.exp(decay * GAMMA) * (1 - sp.exp(-decay))  # falls out
    condition = sp.expand(sp.simplify(sp.expand(slope / positive)))
    principal = sp.solve(sp.Eq(condition, 0), GAMMA)[0]
    best = principal.replace(sp.LambertW, lambda z: sp.LambertW(z, -1))
    return in_steps(
        Step(
            "A round drafts and verifies as many tokens as it may yield.",
            sp.Eq(_symbol("speculative_time"), mean),
            number="46",
        ),
        "Write r for a target pass over a draft pass, and k for minus the logarithm of the acceptance.",
        sp.Eq(_symbol("speculative_time") / draft, scaled),
        "A longer round pays until the slope is zero.",
        sp.Eq(condition, 0),
        "Solved for the length. SymPy gives the principal branch of Lambert's function, on which the length "
        "is negative; the round that pays is on the lower one.",
        sp.Eq(sp.Symbol(r"\gamma^{*}"), best),
    )


@derivation()
def sampling():
    """Why accepting with probability min(1, p / q) samples from the target, on a vocabulary of two tokens.

    The target prefers the first token, the draft the second.
    """
    p, q = sp.symbols("p q", positive=True)
    more = sp.Symbol("d", positive=True)  # p = q + d
    accepted = [search.accepted_share(a, b).subs(p, q + more) for a, b in ((p, q), (1 - p, 1 - q))]
    accepted = [sp.simplify(sp.refine(one, sp.Q.positive(more))) for one in accepted]
    acceptance = sp.simplify(sum(accepted))
    share = sp.simplify(accepted[0] + (1 - acceptance))
    return in_steps(
        "The target takes the first token with probability p, the draft with a smaller q.",
        sp.Eq(p, q + more),
        "A drafted first token is always accepted: so much of it comes from drafts.",
        sp.Eq(sp.Symbol("a_{1}"), accepted[0]),
        "A drafted second token is accepted as often as the target wants it:",
        sp.Eq(sp.Symbol("a_{2}"), accepted[1]),
        "Together they are the acceptance of section 4.1.",
        sp.Eq(ACCEPTANCE, acceptance),
        "After a rejection the first token is drawn, which alone is still wanted: in all, with the probability",
        sp.Eq(sp.Symbol(r"P_{1}"), share),
    )
