"""Mazurek & Schreiber 2025: what follows from its equations, solved and not written down."""

from functools import lru_cache, partial

import sympy as sp

from inferlib.equation import Step, derivation, quantities, symbolic, symbols_of
from inferlib.papers.mazurek2025.equations import experts, flops, memory, network, throughput
from inferlib.papers.mazurek2025.records import DEFAULT, GPU, Assumptions, Deployment, Model, model_of

derivation = partial(derivation, "mazurek2025")

_NAMES = symbols_of("mazurek2025")
MODEL, PLACE, CHIP = (symbolic(kind, "mazurek2025") for kind in (Model, Deployment, GPU))
B, S, N = (sp.Symbol(_NAMES[name], positive=True) for name in ("batch", "context", "n_gpus"))
EXACT = symbolic(Assumptions, "mazurek2025")  # its numbers as fractions
RIGHT = EXACT.replace(value_flop=sp.Integer(2))


def _left(name):
    return sp.Symbol(_NAMES[name], positive=True)


def _sizes():
    """DeepSeek V3's dimensions for the symbols of a model."""
    shape = model_of("DeepSeek V3")
    return {getattr(MODEL, f.name): getattr(shape, f.name) for f in quantities(Model)}


def _matrix(name, rows, columns):
    return sp.Matrix(rows, columns, lambda i, j: sp.Symbol(f"{name}_{{{i + 1}{j + 1}}}", real=True))


@derivation()
def absorption():
    """Matrix absorption on small matrices: the same scores and the same output, with less work for each token."""
    up_q, up_k, up_v, out = (_matrix(*size) for size in (("Q", 2, 2), ("K", 2, 2), ("V", 2, 2), ("O", 2, 2)))
    c_q, rope_q, rope_k = (_matrix(*size) for size in (("a", 2, 1), ("r", 1, 1), ("k", 1, 1)))
    latents, p = (_matrix("c", 2, 1), _matrix("e", 2, 1)), sp.symbols("p_1 p_2", positive=True)
    query, key = up_q * c_q, up_k * latents[0]
    score = (query.col_join(rope_q).T * key.col_join(rope_k))[0]
    absorbed = up_k.T * query
    again = (absorbed.T * latents[0] + rope_q.T * rope_k)[0]
    values = p[0] * (up_v * latents[0]) + p[1] * (up_v * latents[1])
    mixed = p[0] * latents[0] + p[1] * latents[1]
    output, late = (out * values)[0], (out * (up_v * mixed))[0]
    dot, moved, result, delayed = sp.symbols(r"s s^{\prime} o o^{\prime}")
    return [
        Step(
            "One head of width 2. Its query comes from the latent of queries a by a matrix Q, its key from the latent "
            "c by K. Rotary parts r and k are put beside them. Vanilla attention computes both, and the score s.",
            sp.Eq(dot, score),
        ),
        Step(
            "Absorbed attention applies the key's matrix to the query. This is done once for a new token, and not "
            "for every token of its context. The first number of the result:",
            sp.Eq(sp.Symbol(r"(K^{\top} q)_1"), absorbed[0]),
        ),
        Step(
            "It is multiplied with the latent itself, and the rotary parts stay as they are.",
            sp.Eq(moved, again),
            number="3.2.1, score",
            form="structure",
        ),
        Step(
            "The difference of the two scores vanishes identically.",
            sp.Eq(dot - moved, sp.expand(score - again)),
        ),
        Step(
            "With the weights p of softmax, two latents c and e give the output o (its first number) by way of values.",
            sp.Eq(result, output),
        ),
        Step(
            "The latents can be mixed first, and the value's matrix applied once to the mixture.",
            sp.Eq(delayed, late),
            number="3.2.1, output",
            form="structure",
        ),
        Step("Again nothing changes.", sp.Eq(result - delayed, sp.expand(output - late))),
    ]


def _per_token(total):
    """The part of a FLOP count that grows with the context, for one sequence and token of it."""
    return sp.expand(sp.diff(sp.expand(total.subs(B, 1)), S))


@derivation()
def absorption_saving():
    """How many FLOP absorption saves for each token of context."""
    vanilla = _per_token(flops.vanilla_decode_flops(MODEL, B, S, RIGHT))
    absorbed = _per_token(flops.absorbed_decode_flops(MODEL, B, S, RIGHT))
    heads = MODEL.n_heads
    one = sp.Symbol("d_h", positive=True)
    same = {MODEL.nope_dim: one, MODEL.value_dim: one}
    ratio = sp.factor(sp.simplify(vanilla.subs(same) / absorbed))
    sizes = _sizes() | {one: model_of("DeepSeek V3").value_dim}
    return [
        Step(
            "Vanilla decode works this much for each token of context and layer: keys and values computed back "
            "from the latent, then scores and values.",
            sp.Eq(sp.Symbol("v"), sp.collect(vanilla, heads)),
        ),
        Step(
            "Absorbed decode only takes scores and values, on the latent, which is wider than a head.",
            sp.Eq(sp.Symbol("a"), sp.factor(absorbed)),
        ),
        Step(
            "With equal widths of a head, the number of heads drops out of the ratio.",
            sp.Eq(sp.Symbol("v/a"), ratio),
        ),
        Step(
            "For DeepSeek V3, in a long context:",
            sp.Eq(sp.Symbol("v/a"), ratio.subs(sizes)),
        ),
    ]


@derivation(proves=experts.active_experts)
def urn():
    """The expected number of experts that a batch reaches, from independent draws."""
    m, k = MODEL.n_routed, MODEL.n_active
    missed = sp.factor(sp.combsimp(sp.binomial(m - 1, k) / sp.binomial(m, k)))
    chosen = sp.simplify(1 - missed)
    return [
        Step(
            "One token draws k of M experts without putting them back. It misses a given one in as many ways as k can "
            "be drawn from the others, out of all ways to draw k.",
            sp.Eq(sp.Symbol(r"P(X_{i,j} = 0)"), missed),
        ),
        Step(
            "So it reaches the expert with this probability.", sp.Eq(_left("selection_probability"), chosen)
        ),
        Step(
            "Tokens draw independently. All of a batch miss it with probability",
            sp.Eq(_left("never_selected"), (1 - chosen) ** B),
        ),
        Step(
            "Expectations add, whether or not experts depend on one another: M times the probability of being "
            "reached.",
            sp.Eq(_left("active_experts"), m * (1 - (1 - chosen) ** B)),
        ),
        Step(
            "The library writes the probability as a minimum, so that no model can leave the range from 0 to 1.",
            sp.Eq(_left("active_experts"), experts.active_experts(MODEL, B)),
        ),
    ]


def _beyond(deviations):
    """GPUs that lie so many standard deviations above the mean: the normal tail without its slow factor."""
    return N * sp.exp(-(deviations**2) / 2)


@lru_cache(maxsize=1)
def _reach():
    """Standard deviations at which one GPU is left."""
    t = sp.Symbol("t", positive=True)
    return sp.solve(sp.expand_log(sp.log(_beyond(t)), force=True), t)[0]


@derivation(proves=experts.fullest_gpu_experts)
def balls_into_bins():
    """The fullest GPU, if active experts fell there like balls into bins."""
    active, t = _left("active"), sp.Symbol("t", positive=True)
    one = sp.factor((1 / N) * (1 - 1 / N))
    mean, variance = active / N, active * one
    many = sp.limit(variance / mean, N, sp.oo)
    sigma = sp.sqrt(mean * many)
    return [
        Step(
            "Every active expert falls on one of n GPUs. A GPU gets on average:",
            sp.Eq(sp.Symbol(r"\mu"), mean),
        ),
        Step(
            "Each fall is a draw of 0 or 1 with the chance 1/n. Variances of independent draws add:",
            sp.Eq(sp.Symbol(r"\sigma^2"), variance),
        ),
        Step(
            "With many GPUs the variance is the mean.",
            sp.Eq(sp.Symbol(r"\lim\ \sigma^2/\mu"), many),
        ),
        Step(
            "Treat the counts as normal. Leaving out the slowly varying factor of the tail, so many GPUs lie more than "
            "t standard deviations above the mean:",
            sp.Eq(sp.Symbol("n_{>t}"), _beyond(t)),
        ),
        Step("The fullest GPU stands where one is left.", sp.Eq(t, _reach())),
        Step(
            "Mean and deviations together. The form is asymptotic, and nothing in it knows how many experts a GPU has.",
            sp.Eq(_left("fullest_gpu_experts"), sp.expand(mean + sigma * _reach())),
        ),
    ]


@derivation(proves=experts.fullest_gpu_experts_placed)
def drawn_without_replacement():
    """The same for experts that are dealt out evenly, of which a batch wakes some."""
    active, m = _left("active"), MODEL.n_routed
    held, q = m / N, active / m
    both = active * (active - 1) / (m * (m - 1))
    variance = sp.factor(held * q * (1 - q) + held * (held - 1) * (both - q**2))
    share, mean = sp.Symbol("x", positive=True), active / N
    idle = sp.limit(
        sp.limit(sp.simplify(variance.subs(active, share * m) / (share * m / N)), m, sp.oo), N, sp.oo
    )
    # the library's form keeps a negative share out; within 0 and 1 it is the same
    spread = sp.sqrt(mean * sp.Max(idle.subs(share, q), 0)) * _reach()
    return [
        Step(
            "A GPU holds h experts of each layer, and each of them is active with probability",
            sp.Eq(sp.Symbol("q"), q),
        ),
        Step(
            "Two of them are active together a little less often than independent ones, for no expert is hit twice:",
            sp.Eq(sp.Symbol("q_2"), both),
        ),
        Step(
            "The variance of a GPU's active experts is that of h draws, and the covariance of all their pairs:",
            sp.Eq(sp.Symbol(r"\sigma^2"), variance),
        ),
        Step(
            "Over the mean, for many experts on many GPUs, with a share x of them active:",
            sp.Eq(sp.Symbol(r"\lim\ \sigma^2/\mu"), idle),
        ),
        Step(
            "So the spread of balls into bins is multiplied by the root of the idle share. With every expert active "
            "nothing is left to chance.",
            sp.Eq(_left("fullest_gpu_experts"), mean + spread),
        ),
    ]


@lru_cache(maxsize=1)
def _attention_slopes():
    """Seconds that one more sequence of a GPU costs attention, in memory and in arithmetic."""
    own = MODEL, PLACE.replace(n_gpus=sp.Integer(1))
    reading = EXACT.memory_inefficiency * memory.attention_traffic(*own, B, S, RIGHT) / CHIP.memory_bandwidth
    working = throughput.attention_arithmetic_time(MODEL, CHIP, own[1], B, S, RIGHT)
    return sp.diff(sp.expand(reading), B), sp.diff(sp.expand(working), B)


PROJECTIONS = sp.Symbol("f_0", positive=True)  # FLOP of one token in all projections of a layer


@derivation()
def attention_compute_bound():
    """When attention's arithmetic outlasts its reading."""
    reading, working = _attention_slopes()
    fixed = flops.absorbed_decode_flops(MODEL, 1, 0, RIGHT)
    matrices = sp.expand(fixed / (2 * memory.layer_attention_weights(MODEL, EXACT)))
    factor = EXACT.attention_inefficiency * EXACT.arithmetic_penalty * MODEL.n_layers / CHIP.bf16_flops
    per_token = sp.factor(sp.expand(sp.diff(working, S)) / factor)
    short = sp.factor(factor * (PROJECTIONS + per_token * S))
    context = sp.solve(sp.Eq(reading, short), S)[0]
    simple = sp.factor(sp.limit(working / reading, S, sp.oo))
    return [
        Step(
            "One more sequence on a GPU costs memory this long: its cache and its activations.",
            sp.Eq(sp.Symbol("m"), sp.factor(reading)),
        ),
        Step(
            "All projections of a token take two FLOP for each weight of the eight matrices.",
            sp.Eq(PROJECTIONS, sp.simplify(matrices) * 2 * sp.Symbol(r"W_{\text{layer}}")),
        ),
        Step(
            "With them, and scores and values for each token of context, one more sequence costs arithmetic this long.",
            sp.Eq(sp.Symbol("c"), short),
        ),
        Step(
            "Weights are read whatever the batch. If one more sequence costs memory more than arithmetic, memory "
            "binds at every batch. The two are equal at one context.",
            sp.Eq(S, sp.factor(context)),
        ),
        Step(
            "In long contexts all that matters is FLOP for each byte of the latent, which only the number of heads "
            "and the two peaks decide. Above 1 arithmetic binds in large batches, below 1 memory always.",
            sp.Eq(sp.Symbol("c/m"), simple),
        ),
    ]


def compute_bound_context(model, gpu, assumptions=DEFAULT):
    """The context from which on memory binds attention at every batch (equal slopes in the batch).

    Parameters
    ----------
    model : Model
    gpu : GPU
    assumptions : Assumptions

    Returns
    -------
    float
        Tokens; infinite where arithmetic binds in the largest batches at any context.
    """
    one = Deployment(1)

    def slope(context):
        times = [
            function(model, gpu, one, batch, context, assumptions)
            for function in (throughput.attention_memory_time, throughput.attention_arithmetic_time)
            for batch in (1, 2)
        ]
        return (times[1] - times[0]) - (times[3] - times[2])

    at_none, per_token = slope(0), slope(1) - slope(0)
    return -at_none / per_token if per_token > 0 else float("inf")


@derivation()
def attention_outweighs():
    """When the attention weights of a GPU outweigh its experts."""
    held = _left("experts")
    attention = memory.attention_weights(MODEL, EXACT)
    expert = memory.experts_on_gpu(MODEL, held, EXACT)
    enough = sp.solve(sp.Eq(attention, expert), held)[0]
    total = MODEL.n_shared + MODEL.n_routed
    sizes = _sizes()
    number = enough.subs(sizes)
    all_attention, one, router = (
        _left(name) for name in ("attention_weights", "expert_weights", "router_weights")
    )
    layer = sp.solve(sp.Eq(all_attention, MODEL.n_expert_layers * (one * held + router)), held)[0]
    return [
        Step(
            "Every GPU holds all of attention, and so many experts of each layer that both weigh the same:",
            sp.Eq(held, sp.expand(layer)),
        ),
        Step("For DeepSeek V3 that is, in experts:", sp.Eq(held, sp.Float(number, 5))),
        Step(
            "Experts are whole. A GPU that holds four has less, one that holds five has more. It holds five as long "
            "as its even share is more than four.",
            sp.Gt(total.subs(sizes) / N, sp.floor(number)),
        ),
        Step(
            "So attention outweighs the experts of a GPU when there are more GPUs than these.",
            sp.Eq(N, sp.floor(total.subs(sizes) / sp.floor(number))),
        ),
    ]


@derivation(proves=network.network_ceiling)
def network_ceiling():
    """The most tokens per second that the network lets through."""
    half = B / 2
    sent = network.network_time(MODEL, CHIP, PLACE, half, EXACT)
    total = 2 * sent
    speed = sp.simplify(B / N / total)
    return [
        Step("The network needs this long for half of a batch.", sp.Eq(_left("t_network"), sent)),
        Step(
            "However fast computation is, equation 49 cannot be shorter than twice that.",
            sp.Ge(_left("overlapped_time"), sp.simplify(total)),
        ),
        Step(
            "The batch drops out of the tokens per second and GPU: a ceiling that no batch lifts.",
            sp.Eq(sp.Symbol(r"\text{TPS}_{\text{GPU}}"), speed),
        ),
    ]


@derivation(proves=throughput.overlapped_time)
def two_forms():
    """When the formula of section 3 for a pass with overlap is equation 49."""
    attention, expert, sent = (_left(name) for name in ("t_attention", "t_experts", "t_network"))
    whole = throughput.section_3_time(attention, expert, sent)
    both = whole.subs({t: 2 * t for t in (attention, expert, sent)}, simultaneous=True)
    return [
        Step("Section 3 takes the longer of computation and network.", sp.Eq(_left("section_3_time"), whole)),
        Step(
            "It does not say of what. If its times are those of both halves of a batch, each is twice that of one:",
            sp.Eq(_left("section_3_time"), both),
        ),
        Step(
            "That is equation 49.", sp.Eq(_left("overlapped_time"), 2 * sp.Max(*(a / 2 for a in both.args)))
        ),
    ]


@derivation()
def empty_lines():
    """The two numbers that stand beside empty lines."""
    projections = (
        flops.query_down_flops(MODEL, B, S, EXACT)
        + flops.query_rope_flops(MODEL, B, S, EXACT)
        + flops.latent_down_flops(MODEL, B, S, EXACT)
        + flops.key_rope_flops(MODEL, B, S, EXACT)
    )
    matrices = 3 * flops.expert_matrix_flops(MODEL, B, EXACT)
    return [
        Step(
            "Equations 20 to 23 are followed by an empty line with a number. Their sum would fit there.",
            sp.Eq(sp.Symbol(r"\sum_{20}^{23}"), sp.factor(projections)),
            number="24",
            form="empty",
        ),
        Step(
            "So are equations 39 to 41. Their sum is equation 43, which follows.",
            sp.Eq(sp.Symbol(r"\sum_{39}^{41}"), matrices),
            number="42",
            form="empty",
        ),
    ]
