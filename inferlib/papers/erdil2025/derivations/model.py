"""Erdil 2025, sections 3 and 4: what its complete model implies, derived step by step."""

from functools import partial

import sympy as sp

from inferlib.equation import Step, derivation, symbolic, symbols_of
from inferlib.papers.erdil2025.equations import limits
from inferlib.papers.erdil2025.records import GPU, Protocol, Shape, cache_values

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
    return [
        Step("Arithmetic of one token: each query against each key, and its weight times each value.",
             sp.Eq(sp.Symbol("F"), flop)),
        Step("The cache that is read for it: keys and values of every head that queries share.",
             sp.Eq(sp.Symbol("R"), read)),
        Step("Layers, heads, their width and the context fall out; the group remains.",
             sp.Eq(_symbol("long_context_intensity"), sp.simplify(flop / read))),
    ]  # fmt: skip


@derivation(proves=limits.network_batch)
def network_batch():
    """The batch at which moving activations takes as long as waiting for the collectives."""
    latency = limits.node_all_reduce_latency(PROTOCOL, N_GPU)
    moving = limits.node_all_reduce_bytes_time(SHAPE, CHIP, PROTOCOL, N_GPU, BATCH)
    solution = sp.solve(sp.Eq(latency, moving), BATCH)[0]
    return [
        Step("An all-reduce inside a node waits, whatever it carries,",
             sp.Eq(_symbol("node_all_reduce_latency"), latency)),
        Step("and then moves the batch's activations.",
             sp.Eq(_symbol("node_all_reduce_bytes_time"), moving)),
        Step("Up to one batch waiting is the longer of the two. It does not depend on the model's depth.",
             sp.Eq(_symbol("network_batch"), solution)),
    ]  # fmt: skip


@derivation(proves=limits.best_tensor_parallel)
def best_tensor_parallel():
    """The tensor-parallel degree inside a node beyond which another GPU makes a token slower."""
    reading = limits.weights_over_gpus(SHAPE, CHIP, PARAMS, N_GPU)
    waiting = SHAPE.n_layers * limits.all_reduces() * limits.node_all_reduce_latency(PROTOCOL, N_GPU)
    slope = sp.diff(reading + waiting, N_GPU)
    optimum = sp.solve(sp.Eq(slope, 0), N_GPU)[0]
    return [
        Step("Reading the weights shrinks with every GPU,", sp.Eq(_symbol("weights_over_gpus"), reading)),
        Step("and two all-reduces a layer wait longer with every GPU.",
             sp.Eq(sp.Symbol(r"t_{\text{wait}}"), waiting)),
        Step("At the best degree one more GPU saves as much as it costs.", sp.Eq(slope, 0)),
        Step("So the degree grows with the square root of the bytes of a layer.",
             sp.Eq(_symbol("best_tensor_parallel"), sp.simplify(optimum))),
    ]  # fmt: skip


@derivation()
def speculation():
    """Tokens of one round, with and without the free one, and the best number of drafts."""
    i = sp.Symbol("i", integer=True, nonnegative=True)
    target, draft = _symbol("target_time"), _symbol("draft_time")
    printed = (1 - ACCEPTANCE**GAMMA) / (1 - ACCEPTANCE)
    free = printed.subs(GAMMA, GAMMA + 1)
    mean = (target + GAMMA * draft) / printed
    slope = sp.numer(sp.together(sp.diff(mean, GAMMA)))
    decay, ratio = -sp.log(ACCEPTANCE), target / draft
    start = sp.exp(-1 - decay * ratio)
    best = (-sp.LambertW(-start, -1) - 1 - decay * ratio) / decay
    tokens = sp.Symbol("V")
    return [
        Step("A round is worth its i-th token if all before it were accepted.",
             sp.Eq(tokens, sp.Sum(ACCEPTANCE**i, (i, 0, GAMMA - 1)))),
        Step("That is a geometric series: the count that equation 46 divides by.", sp.Eq(tokens, printed)),
        Step("The target also yields a token after the last accepted draft, so one position more is worth scoring:",
             sp.Eq(sp.Symbol(r"V^{\prime}"), free)),
        Step("A longer round pays until the slope of the mean latency is zero.", sp.Eq(sp.factor(slope), 0)),
        Step("Solved for the length, with the lower branch of Lambert's function:",
             sp.Eq(sp.Symbol(r"\gamma^{*}"), best)),
    ]  # fmt: skip
