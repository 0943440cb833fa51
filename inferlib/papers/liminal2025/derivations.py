"""LIMINAL 2025: what follows from its equations, derived by SymPy from the functions that compute."""

from functools import partial

import sympy as sp

from inferlib.equation import Step, derivation, symbolic, symbols_of
from inferlib.papers.liminal2025 import equations as model, records
from inferlib.papers.liminal2025.records import XPU, Application, Assumptions
from inferlib.transformer import LatentAttention

derivation = partial(derivation, "liminal2025")

_NAMES = symbols_of("liminal2025")
APP, CHIP = symbolic(Application, "liminal2025"), symbolic(XPU, "liminal2025")
ASSUMED = symbolic(Assumptions, "liminal2025")
LATENT = symbolic(LatentAttention, "liminal2025")


def symbol(name):
    """The paper's symbol of one of the library's names."""
    return sp.Symbol(_NAMES[name], positive=True)


B, T, N, P = (symbol(name) for name in ("batch", "context", "n", "stages"))
T_TP, SPEED, WAITING, WIDTH = (symbol(name) for name in ("t_tp", "speed", "waiting", "d_model"))
# Where one step is derived: records as the equations take them.
AT = APP, CHIP, B, T, N


@derivation(proves=model.active_experts)
def experts_reached():
    """How many experts a batch reaches."""
    share, experts = APP.routed_share, APP.n_experts
    one = 1 - share
    all_of_them = one**B
    return [
        Step(
            "A token goes to k of E experts, all equally likely; a given expert it misses with probability",
            sp.Eq(sp.Symbol("q_1"), one),
        ),
        Step(
            "Tokens are routed one by one, so all of a batch miss it with probability",
            sp.Eq(sp.Symbol("q_B"), all_of_them),
        ),
        Step(
            "The rest reach it. Expectations add, whether or not experts depend on each other.",
            sp.Eq(symbol("active_experts"), experts * (1 - all_of_them)),
        ),
    ]


@derivation(proves=records.latent_weights)
def multiplied_out():
    """What the paper stores for one layer of latent attention."""
    heads, rq, rc = LATENT.n_heads, LATENT.q_rank, LATENT.kv_rank
    dr, dn, dv = LATENT.rope_dim, LATENT.nope_dim, LATENT.value_dim
    down = WIDTH * (rq + rc + dr)
    # of one head: into queries, from the latent to keys and values, out
    released = rq * (dn + dr) + rc * (dn + dv) + dv * WIDTH
    products = rq * dr + rq * rc + rc * WIDTH
    return [
        Step(
            "As released, each head has matrices from the latent of queries to its query, from the latent of the "
            "cache to its key and its value, and from its value to the output.",
            sp.Eq(sp.Symbol("W_{\\text{low rank}}"), down + heads * released),
        ),
        Step(
            "Multiply query by key and value by output: the inner widths vanish, the outer ones remain.",
            sp.Eq(sp.Symbol("W_{\\text{head}}"), products),
        ),
        Step(
            "With what comes down into both latents:",
            sp.Eq(symbol("latent_weights"), down + heads * products),
        ),
        Step(
            "The products are worth storing only if they are smaller. The difference of one head:",
            sp.Eq(sp.Symbol("\\Delta"), sp.expand(products - released)),
        ),
        Step(
            "So the paper's layer has this many:",
            sp.Eq(symbol("latent_weights"), records.latent_weights(LATENT, WIDTH)),
        ),
    ]


@derivation(proves=model.batch_room)
def room():
    """The largest batch that fits."""
    needed = model.capacity_needed(APP, B, T, ASSUMED)
    found = sp.solve(sp.Eq(needed, N * CHIP.capacity), B)[0]
    return [
        Step(
            "Weights are stored once, a cache for every sequence.", sp.Eq(symbol("capacity_needed"), needed)
        ),
        Step("All of it is shared evenly by N chips.", sp.Eq(needed, N * CHIP.capacity)),
        Step("Solved for the batch, to be rounded down:", sp.Eq(symbol("batch_room"), found)),
    ]


@derivation()
def intensity_limit():
    """The intensity of a dense model as the batch, and then the context, grow without limit."""
    dense = APP.replace(expert=sp.Integer(0))
    plain = ASSUMED.replace(scalar_ops=sp.Integer(0))
    intensity = sp.simplify(model.arithmetic_intensity(dense, B, T, plain))
    batched = sp.limit(intensity, B, sp.oo)
    long = sp.limit(batched, T, sp.oo)
    return [
        Step(
            "A dense model loads its weights once and a cache for each sequence.",
            sp.Eq(symbol("arithmetic_intensity"), intensity),
        ),
        Step(
            "However large the batch, the caches remain.",
            sp.Eq(sp.Symbol("\\text{AMI}_{B\\to\\infty}"), batched),
        ),
        Step(
            "With a long context only attention counts: its FLOP over the bytes of a position.",
            sp.Eq(sp.Symbol("\\text{AMI}_{B,T\\to\\infty}"), long),
        ),
    ]


@derivation()
def ceiling():
    """The speed of one user when memory and arithmetic cost nothing."""
    reading, waiting = symbol("memory_time"), symbol("exposed_time")
    at_memory = 1 / (model.memory_time(*AT, ASSUMED) + waiting)
    fastest = sp.Symbol(r"\text{UTPS}_{\text{BW}\to\infty}")
    return [
        Step("Where memory binds, a user sees:", sp.Eq(symbol("user_speed"), 1 / (reading + waiting))),
        Step(
            "However fast the memory, the waiting remains.",
            sp.Eq(fastest, sp.limit(at_memory, CHIP.bandwidth, sp.oo)),
        ),
        Step(
            "With one stage that is the latency of a collective, as often as layers need one.",
            sp.Eq(fastest, 1 / (T_TP * symbol("collectives"))),
        ),
    ]


def _in_symbols(expression, *names):
    """An expression with what other equations give in it replaced by their symbols."""
    parts = {
        "collectives": model.collectives(APP, N, ASSUMED),
        "compute_time": model.compute_time(*AT, ASSUMED),
        "memory_time": model.memory_time(*AT, ASSUMED),
    }
    return expression.xreplace({parts[name]: symbol(name) for name in names})


@derivation()
def in_short():
    """Equations 4, 1 and 5, each in the symbols of the ones before."""
    step = AT[:-1] + (N, P, T_TP, ASSUMED)
    time = model.batch_time(*step)
    # the sum is flat, so what is exposed is taken out as a whole
    overlapped = time - model.exposed_time(APP, N, P, T_TP, ASSUMED)
    short = symbol("exposed_time") + _in_symbols(overlapped, "compute_time", "memory_time")
    exposed = _in_symbols(model.exposed_time(APP, N, P, T_TP, ASSUMED), "collectives")
    return [
        Step(
            "Collectives of all layers, and a hop from stage to stage.",
            sp.Eq(symbol("exposed_time"), exposed),
            "4",
        ),
        Step("What overlaps, and what does not.", sp.Eq(symbol("batch_time"), short), "1"),
        Step(
            "A token for each user in that time:", sp.Eq(symbol("user_speed"), 1 / symbol("batch_time")), "5"
        ),
        Step(
            "A batch in each stage of the pipeline:",
            sp.Eq(
                symbol("system_speed"), sp.simplify(model.system_speed(*step) * time) / symbol("batch_time")
            ),
        ),
    ]


@derivation()
def with_overhead():
    """Equation 8, in symbols."""
    layer = symbol("t_layer")
    real = _in_symbols(model.real_time(*AT, layer, ASSUMED), "compute_time", "memory_time")
    return [
        Step("A measured constant stands for all that is exposed.", sp.Eq(symbol("real_time"), real), "8")
    ]


@derivation()
def bandwidth_needed():
    """The memory bandwidth that a speed needs: :func:`model.bandwidth_for` in short."""
    loaded, rest = symbol("bytes_loaded"), sp.Symbol("y", positive=True)
    found = sp.solve(sp.Eq(loaded / (N * CHIP.bandwidth), rest / SPEED), CHIP.bandwidth)[0]
    return [
        Step(
            "A token may take 1/u, of which a part x is spent waiting.",
            sp.Eq(symbol("memory_time"), (1 - WAITING) / SPEED),
        ),
        Step(
            "Memory delivers its bytes in the rest.",
            sp.Eq(loaded / (N * CHIP.bandwidth), (1 - WAITING) / SPEED),
        ),
        Step(
            "Solved for the bandwidth of one chip:",
            sp.Eq(symbol("bandwidth_for"), found.subs(rest, 1 - WAITING)),
        ),
    ]


@derivation()
def latency_allowed():
    """The latency of a collective that a speed allows: :func:`model.latency_for` in short."""
    waits = T_TP * symbol("collectives")
    return [
        Step(
            "The other part, x of the time, is all that collectives may take.", sp.Eq(waits, WAITING / SPEED)
        ),
        Step(
            "Solved for the latency of one:",
            sp.Eq(symbol("latency_for"), sp.solve(sp.Eq(waits, WAITING / SPEED), T_TP)[0]),
        ),
    ]
