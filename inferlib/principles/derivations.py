"""First principles, derived: when memory and arithmetic take equally long, and what long contexts do."""

from functools import partial

import sympy as sp

from inferlib.equation import Step, derivation, symbolic, symbols_of
from inferlib.principles import roofline
from inferlib.principles.profile import Profile
from inferlib.system import Accelerator

derivation = partial(derivation, "principles", chapter="principles")

_NAMES = symbols_of("principles")
MODEL, CHIP = symbolic(Profile, "principles"), symbolic(Accelerator, "principles")
BATCH, CONTEXT, TOKENS = (sp.Symbol(_NAMES[name], positive=True) for name in ("batch", "context", "tokens"))
# A dense model whose layers all see the whole context.
DENSE = MODEL.replace(
    expert_weights=sp.Integer(0), window_values=sp.Integer(0), window_pair_flops=sp.Integer(0)
)


def _left(name):
    return sp.Symbol(_NAMES[name], positive=True)


@derivation(proves=roofline.critical_batch)
def critical_batch():
    """The batch at which a decode step stops being limited by memory, at short context."""
    reading = roofline.memory_time(CHIP, roofline.weight_data(DENSE, BATCH), 1)
    calculating = roofline.arithmetic_time(CHIP, roofline.decode_work(DENSE, BATCH, 0), 1)
    once = calculating.subs(DENSE.token_flops, DENSE.flop_per_weight * DENSE.always_read)
    solution = sp.solve(sp.Eq(reading, once), BATCH)[0]
    return [
        Step(
            "Reading the weights takes the same time for every batch.", sp.Eq(_left("memory_time"), reading)
        ),
        Step(
            "Multiplying them takes longer the larger the batch.",
            sp.Eq(_left("arithmetic_time"), calculating),
        ),
        Step("Every weight is used once for each token, in two FLOP.", sp.Eq(_left("arithmetic_time"), once)),
        Step(
            "Both are equal at one batch, in which the size of the model has dropped out.",
            sp.Eq(_left("critical_batch"), solution),
        ),
    ]


@derivation()
def long_context():
    """What the cache does to arithmetic intensity: a ceiling that no batch can lift."""
    intensity = roofline.decode_intensity(DENSE, BATCH, CONTEXT)
    heads, kv_heads, width, layers = sp.symbols(r"H H_{kv} h L", positive=True)
    shape = {DENSE.pair_flops: 4 * layers * heads * width, DENSE.cache_values: 2 * layers * kv_heads * width}
    group = sp.Symbol("g", positive=True)
    ceiling = sp.limit(intensity, CONTEXT, sp.oo)
    many = sp.limit(intensity, BATCH, sp.oo)
    left = _left("decode_intensity")
    return [
        Step("Every sequence brings its own cache, and its own arithmetic with it.", sp.Eq(left, intensity)),
        Step("With a large batch the weights drop out, the cache does not.", sp.Eq(left, sp.factor(many))),
        Step("With a long context only the cache is left, at any batch.", sp.Eq(left, ceiling)),
        Step(
            "Each of H query heads meets a cached position with 4h FLOP; the cache holds a key and a value of width h "
            "for each key/value head. With g query heads to one key/value head, this is all that is left.",
            sp.Eq(left, sp.simplify(ceiling.subs(shape).subs(heads, group * kv_heads))),
        ),
    ]


@derivation()
def prefill():
    """Why reading a prompt is limited by arithmetic."""
    intensity = roofline.prefill_intensity(DENSE, TOKENS)
    intensity = sp.simplify(intensity.subs(DENSE.token_flops, DENSE.flop_per_weight * DENSE.always_read))
    needed = sp.solve(sp.Eq(intensity, roofline.ridge_point(CHIP)), TOKENS)[0]
    return [
        Step(
            "All tokens of a prompt share one reading of the weights.",
            sp.Eq(_left("prefill_intensity"), intensity),
        ),
        Step("So a prompt of this many tokens keeps arithmetic as busy as memory.", sp.Eq(TOKENS, needed)),
    ]


@derivation(proves=roofline.weights_read)
def touched_experts():
    """How many expert weights a batch needs."""
    missed = (1 - MODEL.expert_share) ** BATCH
    read = MODEL.always_read + MODEL.expert_weights * (1 - missed)
    return [
        Step(
            "One token goes to a part r of the routed experts, so it misses a given one with probability",
            sp.Eq(sp.Symbol("P_1"), 1 - MODEL.expert_share),
        ),
        Step(
            "Tokens choose independently: all of the batch miss it with probability",
            sp.Eq(sp.Symbol("P_b"), missed),
        ),
        Step("The expected amount read is the rest.", sp.Eq(_left("weights_read"), read)),
    ]
