"""LIMINAL 2025: results that follow from its equations, derived by SymPy from the functions themselves."""

from inferlib.equation import Step, in_notation, let, solved, symbolic
from inferlib.optional_imports import sympy as sp
from inferlib.papers import liminal2025 as model
from inferlib.papers.liminal2025 import XPU, Application, Assumptions
from inferlib.transformer import LatentAttention

derivation, symbol, equals = in_notation("liminal2025")
APP = symbolic(Application, "liminal2025")
CHIP = symbolic(XPU, "liminal2025")
ASSUMED = symbolic(Assumptions, "liminal2025")
LATENT = symbolic(LatentAttention, "liminal2025")


B, T, N, P = symbol("batch context n stages")
T_TP, SPEED, WIDTH = symbol("t_tp speed d_model")
# Records on which single steps are derived.
AT = APP, CHIP, B, T, N


@derivation(proves=model.active_experts)
def experts_reached():
    """How many experts a batch reaches."""
    all_experts, k, one = sp.symbols("E k e")
    missed = sp.Function("q")
    more = sp.Symbol("b")
    choices = sp.binomial(all_experts - 1, k) / sp.binomial(all_experts, k)
    counted = sp.expand(sp.combsimp(choices))
    share = sp.simplify(counted.subs(k, APP.routed_share * all_experts))
    batch = sp.rsolve(missed(more + 1) - share * missed(more), missed(more), {missed(0): 1}).subs(more, B)
    reached = sp.Sum(1 - batch, (one, 1, APP.n_experts)).doit()
    bend = sp.diff(1 - batch, APP.routed_share, 2)
    return (
        "A token goes to k of E experts, all equally likely. The choices that leave a given expert out, of all:",
        sp.Eq(choices, counted),
        "With p for k/E, the chance that a token reaches an expert, it misses it with:",
        sp.Eq(missed(1), share),
        "Every further token must miss it too: a recurrence, solved by:",
        sp.Eq(missed(B), batch),
        "The chance to be reached bends down in p, so experts of unequal chances and the same mean are reached "
        "less: equal chances are an upper bound.",
        sp.Eq(sp.Derivative(1 - batch, (APP.routed_share, 2)), sp.simplify(bend)),
        "Expectations add over experts, whether or not these depend on each other.",
        equals("active_experts", reached),
    )


@derivation(proves=model.latent_weights)
def multiplied_out():
    """What the paper stores for one layer of latent attention."""
    heads = LATENT.n_heads
    rq = LATENT.q_rank
    rc = LATENT.kv_rank
    dr = LATENT.rope_dim
    dn = LATENT.nope_dim
    dv = LATENT.value_dim
    shapes = {"UQ": (dn, rq), "QR": (dr, rq), "UK": (dn, rc), "UV": (dv, rc), "O": (WIDTH, dv)}
    w = {name: sp.MatrixSymbol(f"W^{{{name}}}", *shape) for name, shape in shapes.items()}
    # score: (W_UK c)' (W_UQ q); output: W_O (W_UV c)
    score = w["UK"].T * w["UQ"]
    output = w["O"] * w["UV"]
    released = sum(sp.prod(matrix.shape) for matrix in w.values())
    products = sum(sp.prod(matrix.shape) for matrix in (score, output, w["QR"]))
    down = WIDTH * (rq + rc + dr)
    layer = sp.expand(down + heads * products)
    return (
        "As released, each head has matrices from the latent of queries to its query (of which a part is "
        "rotary), from the latent of the cache to its key and its value, and from its value to the output. "
        "Their sizes, with what comes down into both latents:",
        let("W_{\\text{low rank}}", down + heads * released),
        "Query times key is one matrix between the two latents:",
        sp.Eq(sp.MatrixSymbol("W^{QK}", *score.shape), score),
        "Value and output are one matrix from the latent of the cache:",
        sp.Eq(sp.MatrixSymbol("W^{OV}", *output.shape), output),
        "In the products the inner widths vanish and the outer ones remain.",
        let("W_{\\text{head}}", products),
        "They are worth storing only if they are smaller. The difference of one head:",
        let("\\Delta", sp.expand(products - released)),
        "With what comes down, the paper's layer has this many:",
        equals("latent_weights", sp.collect(layer, (heads, WIDTH))),
    )


@derivation()
def ceiling():
    """The speed of one user when memory and arithmetic cost nothing."""
    waiting = symbol("exposed_time")
    at_memory = 1 / (model.memory_time(*AT, ASSUMED) + waiting)
    fastest = sp.Symbol(r"\text{UTPS}_{\text{BW}\to\infty}")
    endless = sp.limit(at_memory, CHIP.bandwidth, sp.oo)
    one_stage = in_symbols(model.exposed_time(APP, N, ASSUMED.free_stages, T_TP, ASSUMED), "collectives")
    return (
        "Where memory binds, a user sees:",
        equals("user_speed", in_symbols(at_memory, "memory_time")),
        "However fast the memory, the waiting remains.",
        sp.Eq(fastest, endless),
        "With one stage that is the latency of a collective, as often as layers need one.",
        sp.Eq(fastest, endless.subs(waiting, one_stage)),
    )


def in_symbols(expression, *names):
    """Replace results of other equations in an expression by their symbols."""
    parts = {
        "collectives": model.collectives(APP, N, ASSUMED),
        "compute_time": model.compute_time(*AT, ASSUMED),
        "memory_time": model.memory_time(*AT, ASSUMED),
    }
    return expression.xreplace({parts[name]: symbol(name) for name in names})


@derivation()
def with_overhead():
    """Equation 8: its constant as a fit finds it, and as equation 4 implies it."""
    layer = symbol("t_layer")
    layers = APP.layers
    i = sp.Symbol("i")
    n, measured, roofline = sp.Symbol("n"), *map(sp.IndexedBase, ("m", "R"))  # type: ignore[misc]
    slope = sp.expand(sp.diff((roofline[i] + layers * layer - measured[i]) ** 2, layer))
    slopes = sum(sp.Sum(part, (i, 1, n)).doit() for part in sp.Add.make_args(slope))
    names = "compute_time", "memory_time", "collectives"
    real = in_symbols(model.real_time(*AT, layer, ASSUMED), *names)
    limit = in_symbols(model.batch_time(*AT, P, T_TP, ASSUMED), *names)
    same = solved(real, limit, layer)
    return (
        Step("A measured constant replaces all exposed time.", equals("real_time", real), "8"),
        "Least squares over n measurements m beside their rooflines R: the slope in the constant is zero.",
        sp.Eq(slopes, 0),
        "Solved: the constant is the mean surplus over the roofline, for one layer.",
        sp.Eq(layer, sp.simplify(sp.solve(slopes, layer)[0])),
        "Equations 8 and 1 agree with this constant, the time that equation 4 charges per layer.",
        sp.Eq(layer, same),
    )
