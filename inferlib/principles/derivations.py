"""Derivations of first principles: when memory and arithmetic take equally long, and the effect of long contexts."""

from inferlib.equation import in_notation, solved, symbolic
from inferlib.optional_imports import sympy as sp
from inferlib.principles import roofline
from inferlib.principles.profile import Profile
from inferlib.system import Accelerator

derivation, symbol, equals = in_notation("principles")
MODEL = symbolic(Profile, "principles")
CHIP = symbolic(Accelerator, "principles")
BATCH, CONTEXT, TOKENS = symbol("batch context tokens")
# A dense model whose layers all see the whole context.
DENSE = MODEL.replace(expert_weights=sp.S.Zero, window_values=sp.S.Zero, window_pair_flops=sp.S.Zero)


@derivation(proves=roofline.critical_batch)
def critical_batch():
    """The batch at which a decode step stops being limited by memory, at short context."""
    reading = roofline.memory_time(CHIP, roofline.weight_data(DENSE, BATCH), 1)
    calculating = roofline.arithmetic_time(CHIP, roofline.decode_work(DENSE, BATCH, 0), 1)
    once = calculating.subs(DENSE.token_flops, DENSE.flop_per_weight * DENSE.always_read)
    solution = solved(reading, once, BATCH)
    return (
        "Reading the weights takes the same time for every batch.",
        equals("memory_time", reading),
        "Multiplying them takes longer the larger the batch.",
        equals("arithmetic_time", calculating),
        "Every weight is used once for each token, in two FLOP.",
        equals("arithmetic_time", once),
        "The two are equal at one batch, which does not depend on the size of the model.",
        equals("critical_batch", solution),
    )


@derivation()
def long_context():
    """What the cache does to arithmetic intensity: a ceiling that no batch can lift."""
    intensity = roofline.decode_intensity(DENSE, BATCH, CONTEXT)
    heads, kv_heads, width, layers = sp.symbols(r"H H_{kv} h L")
    shape = {DENSE.pair_flops: 4 * layers * heads * width, DENSE.cache_values: 2 * layers * kv_heads * width}
    group = sp.Symbol("g")
    ceiling = sp.limit(intensity, CONTEXT, sp.oo)
    many = sp.limit(intensity, BATCH, sp.oo)
    left = symbol("decode_intensity")
    return (
        "Every sequence brings its own cache, and its own arithmetic with it.",
        sp.Eq(left, intensity),
        "With a large batch the weights drop out, the cache does not.",
        sp.Eq(left, sp.factor(many)),
        "With a long context only the cache is left, at any batch.",
        sp.Eq(left, ceiling),
        "Each of H query heads meets a cached position with 4h FLOP; the cache holds a key and a value of width h "
        "for each key/value head. With g query heads to one key/value head, this is all that is left.",
        sp.Eq(left, sp.simplify(ceiling.subs(shape).subs(heads, group * kv_heads))),
    )


@derivation()
def prefill():
    """Why reading a prompt is limited by arithmetic."""
    intensity = roofline.prefill_intensity(DENSE, TOKENS)
    intensity = sp.simplify(intensity.subs(DENSE.token_flops, DENSE.flop_per_weight * DENSE.always_read))
    needed = solved(intensity, roofline.ridge_point(CHIP), TOKENS)
    return (
        "All tokens of a prompt share one reading of the weights.",
        equals("prefill_intensity", intensity),
        "So a prompt of this many tokens keeps arithmetic as busy as memory.",
        sp.Eq(TOKENS, needed),
    )


@derivation()
def two_bounds():
    """How far the bound with full overlap lies below the bound of operators in turn: less than a factor of two."""
    overlapped = roofline.overlapped_time(CHIP, DENSE, 1, BATCH, CONTEXT)
    in_turn = roofline.in_turn_time(CHIP, DENSE, 1, BATCH, CONTEXT)
    multiplying = roofline.arithmetic_time(CHIP, BATCH * DENSE.token_flops, 1)
    reading = roofline.memory_time(CHIP, roofline.cache_data(DENSE, BATCH, CONTEXT), 1)
    active = in_turn.replace(sp.Max, lambda *both: next(t for t in both if t in (multiplying, reading)))
    work, data = sorted(overlapped.args, key=lambda time: not time.has(CHIP.flops))
    worst = solved(work, data, CONTEXT)
    far = sp.expand(sp.limit(sp.simplify((active / work).subs(CONTEXT, worst)), BATCH, sp.oo))
    ceiling = sp.Symbol(r"I_{\infty}")
    alone = sp.limit(roofline.decode_intensity(DENSE, BATCH, CONTEXT), CONTEXT, sp.oo)
    pairs = solved(ceiling, alone, DENSE.pair_flops)
    balanced = {DENSE.pair_flops: pairs, CHIP.flops: symbol("ridge_point") * CHIP.memory_bandwidth}
    told = far.subs(balanced, simultaneous=True)
    ratio = sp.Symbol("x")
    return (
        "If all of a step overlaps, it takes all its reading or all its arithmetic, whichever is longer.",
        equals("overlapped_time", overlapped),
        "If attention waits for the matrices, each takes the longer of its own two, and the two add.",
        equals("in_turn_time", in_turn),
        "With a large batch the matrices calculate longer than they read, and attention reads longer than it "
        "calculates: these are the branches that win.",
        equals("in_turn_time", active),
        "The two bounds are farthest apart where the two sides of the first are equal: at this context.",
        sp.Eq(CONTEXT, worst),
        "There, with ever larger batches, the second bound is x times the first.",
        sp.Eq(ratio, far),
        "The fraction is the intensity of attention alone over the balance of the chip.",
        sp.Eq(ratio, told),
    )


@derivation(proves=roofline.weights_read)
def touched_experts():
    """How many expert weights a batch needs."""
    experts, chosen = sp.symbols("E k")
    i, e = sp.symbols("i e")
    without = sp.binomial(experts - 1, chosen) / sp.binomial(experts, chosen)
    one = sp.expand(sp.combsimp(without))
    share = one.subs(chosen, MODEL.expert_share * experts)
    every = sp.Product(share, (i, 1, BATCH)).doit()
    expected = sp.Sum(MODEL.expert_weights / experts * (1 - every), (e, 1, experts)).doit()
    missed = sp.Symbol("P_1")
    all_miss = sp.Symbol("P_b")
    return (
        "One token picks k of E experts. Of all its picks, those that leave out a given expert are picks of k from "
        "the other ones: it misses that expert with probability",
        sp.Eq(missed, sp.Eq(without, one)),
        "With r = k/E, the fraction of the experts that a token goes to, this is the same as",
        sp.Eq(missed, share),
        "Tokens choose independently: all of the batch miss it with probability",
        sp.Eq(all_miss, every),
        "Each expert holds an equal part of the expert weights, and is read unless all miss it. In sum,",
        equals("weights_read", MODEL.always_read + expected),
    )
