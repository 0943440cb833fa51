"""Mazurek & Schreiber 2025: what follows from its equations, solved and not written down."""

from functools import lru_cache, partial

import sympy as sp

from inferlib.equation import Step, derivation, quantities, symbolic, symbols_of
from inferlib.papers.mazurek2025.equations import experts, flops, memory, network, throughput
from inferlib.papers.mazurek2025.records import GPU, PRINTED, Assumptions, Deployment, Model, as_model

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
    shape = as_model("DeepSeek V3")
    return {getattr(MODEL, f.name): getattr(shape, f.name) for f in quantities(Model)}


def _matrix(name, rows, columns):
    return sp.Matrix(rows, columns, lambda i, j: sp.Symbol(f"{name}_{{{i + 1}{j + 1}}}", real=True))


@derivation()
def absorption():
    """Matrix absorption on small matrices: the same score, with the key's matrix on the query's side."""
    up_q, up_k = _matrix("Q", 2, 2), _matrix("K", 2, 2)
    c_q = sp.Matrix(sp.symbols("a_1 a_2", real=True))
    c_kv = sp.Matrix(sp.symbols("c_1 c_2", real=True))
    query, key = up_q * c_q, up_k * c_kv
    absorbed = up_k.T * query
    score, again = (query.T * key)[0], (absorbed.T * c_kv)[0]
    dot, moved = sp.Symbol(r"q^{\top} k"), sp.Symbol(r"(K^{\top} q)^{\top} c")
    return [
        Step(
            "One head of width 2. Its query comes from the latent of queries a, its key from the latent of keys "
            "c, by two matrices Q and K. Vanilla attention computes both and multiplies them.",
            sp.Eq(dot, score),
        ),
        Step(
            "Absorbed attention applies the key's matrix to the query. This is done once for a new token, and not "
            "for every token of its context. The first number of the result:",
            sp.Eq(sp.Symbol(r"(K^{\top} q)_1"), absorbed[0]),
        ),
        Step("It is multiplied with the latent itself.", sp.Eq(moved, again)),
        Step(
            "The difference of the two scores vanishes identically.",
            sp.Eq(dot - moved, sp.expand(score - again)),
        ),
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
    sizes = _sizes() | {one: as_model("DeepSeek V3").value_dim}
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
            sp.Eq(sp.Symbol(r"P(X_{ij} = 0)"), missed),
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


def compute_bound_context(model, gpu, assumptions=PRINTED):
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
