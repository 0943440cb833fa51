"""Mazurek & Schreiber 2025: what follows from its equations, solved and not written down."""

from inferlib.equation import (
    Step,
    cached_by_equations,
    in_notation,
    let,
    quantities,
    solved,
    symbolic,
)
from inferlib.optional_imports import sympy as sp
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.records import GPU, Assumptions, Deployment, Model, load_model

derivation, symbol, equals = in_notation("mazurek2025")
MODEL, PLACE, CHIP = (symbolic(kind, "mazurek2025") for kind in (Model, Deployment, GPU))
B, S, N = symbol("batch context n_gpus")
EXACT = symbolic(Assumptions, "mazurek2025")  # assumptions with exact fractions


def sizes():
    """Return DeepSeek V3's dimensions for the symbols of a model."""
    shape = load_model("DeepSeek V3")
    return {getattr(MODEL, f.name): getattr(shape, f.name) for f in quantities(Model)}


@derivation()
def absorption():
    """Matrix absorption: the same scores and the same output, with less work for each token of context."""
    width, rank, wide = symbol("nope_dim kv_rank q_rank")
    up_q, up_k, up_v, out = (
        sp.MatrixSymbol(name, width, columns)
        for name, columns in (("Q", wide), ("K", rank), ("V", rank), ("O", width))
    )
    a, c, e, u = (
        sp.MatrixSymbol(name, rows, 1) for name, rows in (("a", wide), ("c", rank), ("e", rank), ("u", rank))
    )
    rope_q, rope_k = (sp.MatrixSymbol(name, symbol("rope_dim"), 1) for name in "rk")
    dot, moved = (sp.MatrixSymbol(name, 1, 1) for name in ("s", r"s^{\prime}"))
    result, delayed = (sp.MatrixSymbol(name, width, 1) for name in ("o", r"o^{\prime}"))
    p, q = sp.symbols("p_1 p_2")
    score = (up_q * a).T * (up_k * c) + rope_q.T * rope_k
    absorbed = up_k.T * up_q * a
    again = u.T * c + rope_q.T * rope_k
    output = out * (p * up_v * c + q * up_v * e)
    late = out * up_v * (p * c + q * e)
    return (
        "One head. Its query comes from the latent of queries a by a matrix Q, its key from the latent c by K. Rotary "
        "parts r and k are put beside them. Vanilla attention computes both, and the score s.",
        sp.Eq(dot, score),
        "Absorbed attention applies the key's matrix to the query. This is done once for a new token, and not "
        "for every token of its context:",
        sp.Eq(u, absorbed),
        Step(
            "The result is multiplied with the latent itself, and the rotary parts stay as they are.",
            sp.Eq(moved, again),
            number="3.2.1, score",
            form="structure",
        ),
        "The difference of the two scores vanishes identically.",
        sp.Eq(dot - moved, (score - again.subs(u, absorbed)).doit()),
        "With the weights p of softmax, two latents c and e give the output o by way of values.",
        sp.Eq(result, output),
        Step(
            "The latents can be mixed first, and the value's matrix applied once to the mixture.",
            sp.Eq(delayed, late),
            number="3.2.1, output",
            form="structure",
        ),
        "Again nothing changes.",
        sp.Eq(result - delayed, sp.expand(output - late)),
    )


@derivation(proves=eq.active_experts)
def urn():
    """The expected number of experts that a batch reaches, from independent draws."""
    m = MODEL.n_routed
    k = MODEL.n_active
    missed = sp.factor(sp.combsimp(sp.binomial(m - 1, k) / sp.binomial(m, k)))
    chosen = sp.simplify(1 - missed)
    return (
        "One token draws k of M experts without putting them back. It misses a given one in as many ways as k can "
        "be drawn from the others, out of all ways to draw k.",
        let(r"P(X_{i,j} = 0)", missed),
        "So it reaches the expert with this probability.",
        equals("selection_probability", chosen),
        "Tokens draw independently. All of a batch miss it with probability",
        equals("never_selected", (1 - chosen) ** B),
        "Expectations add, whether or not experts depend on one another: the probability of being reached, times "
        "the experts.",
        equals("active_experts", m * (1 - (1 - chosen) ** B)),
        "The library writes the probability as a minimum, so that no model can leave the range from 0 to 1.",
        equals("active_experts", eq.active_experts(MODEL, B)),
    )


def _beyond(deviations):
    """Expected GPUs beyond a number of standard deviations: the normal tail without its slow factor."""
    return N * sp.exp(-(deviations**2) / 2)


@cached_by_equations
def reach():
    """Number of standard deviations beyond which one GPU is expected."""
    t = sp.Symbol("t", positive=True)
    return sp.solve(sp.expand_log(sp.log(_beyond(t)), force=True), t)[0]


@derivation(proves=eq.fullest_gpu_experts)
def balls_into_bins():
    """The active experts on the fullest GPU, if experts fell on GPUs like balls into bins."""
    active = symbol("active")
    t = sp.Symbol("t")
    one = sp.factor((1 / N) * (1 - 1 / N))
    mean = active / N
    variance = active * one
    many = sp.limit(variance / mean, N, sp.oo)
    sigma = sp.sqrt(mean * many)
    return (
        "Every active expert falls on one of n GPUs. A GPU gets on average:",
        let(r"\mu", mean),
        "Each fall is a draw of 0 or 1 with the chance 1/n. Variances of independent draws add:",
        let(r"\sigma^2", variance),
        "With many GPUs the variance is the mean.",
        let(r"\lim\ {\sigma^2}/{\mu}", many),
        "Treat the counts as normal. Leaving out the slowly varying factor of the tail, "
        "this many GPUs lie more than t standard deviations above the mean:",
        let("n_{>t}", _beyond(t)),
        "The fullest GPU is where this number is one.",
        sp.Eq(t, reach()),
        "Mean and deviations together. The form is asymptotic, and nothing in it knows how many experts a GPU has.",
        equals("fullest_gpu_experts", sp.expand(mean + sigma * reach())),
    )


@derivation()
def attention_outweighs():
    """When the attention weights of a GPU outweigh its experts."""
    held = symbol("experts")
    attention = eq.attention_weights(MODEL, EXACT)
    expert = eq.experts_on_gpu(MODEL, held, EXACT)
    enough = solved(attention, expert, held)
    known = sizes()
    number = enough.subs(known)
    total = (MODEL.n_shared + MODEL.n_routed).subs(known)
    all_attention, one, router = symbol("attention_weights expert_weights router_weights")
    layer = solved(all_attention, MODEL.n_expert_layers * (one * held + router), held)
    return (
        "Every GPU holds all of attention. Its experts weigh the same if it holds this many of each layer:",
        sp.Eq(held, sp.expand(layer)),
        "For DeepSeek V3 that is, in experts:",
        sp.Eq(held, sp.Float(number, 5)),
        "Experts are whole. A GPU that holds four has less, one that holds five has more. It holds five as long "
        "as its even share is more than four.",
        sp.Gt(total / N, sp.floor(number)),
        "So attention outweighs the experts of a GPU when there are more GPUs than this.",
        sp.Eq(N, sp.floor(total / sp.floor(number))),
    )


@derivation(proves=eq.overlapped_time)
def two_forms():
    """When the formula of section 3 for a pass with overlap is equation 49."""
    attention, expert, sent = symbol("t_attention t_experts t_network")
    whole = eq.section_3_time(attention, expert, sent)
    both = whole.subs({t: 2 * t for t in (attention, expert, sent)}, simultaneous=True)
    return (
        "Section 3 takes the longer of computation and network.",
        equals("section_3_time", whole),
        "It does not say of what. If its times are those of both halves of a batch, each is twice that of one:",
        equals("section_3_time", both),
        "That is equation 49.",
        equals("overlapped_time", 2 * sp.Max(*(a / 2 for a in both.args))),
    )
