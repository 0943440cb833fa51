"""Erdil 2025: section 2 derived step by step from the token latency alone, then what sections 3 and 4 print."""

from inferlib.equation import Step, cached_by_equations, in_notation, let, solved, symbolic
from inferlib.optional_imports import sympy as sp
from inferlib.papers.erdil2025 import search
from inferlib.papers.erdil2025.equations import printed, toy
from inferlib.papers.erdil2025.records import Model
from inferlib.system import Accelerator

derivation, symbol, equals = in_notation("erdil2025", "erdil2025_toy")
complete, *_ = in_notation("erdil2025", "erdil2025_model")
MODEL = symbolic(Model, "erdil2025")
CHIP = symbolic(Accelerator, "erdil2025")
N_GPU, BATCH, T_HOP = symbol("n_gpu batch t_hop")


@derivation(proves=toy.critical_batch)
def critical_batch():
    """The batch beyond which a token takes longer and costs no less."""
    reading = toy.weight_time(MODEL, CHIP, 1)
    multiplying = toy.arithmetic_time(MODEL, CHIP, 1, BATCH)
    solution = solved(reading, multiplying, BATCH)
    return (
        "Reading the weights takes the same time for every batch.",
        equals("weight_time", reading),
        "Multiplying them takes longer the larger the batch.",
        equals("arithmetic_time", multiplying),
        "The two are equal at one batch, whatever the model's size.",
        equals("critical_batch", solution),
    )


@derivation()
def layer_structure():
    """How many all-reduces follow one another in a layer."""
    x = sp.Symbol("x")
    out = sp.Symbol(r"x^{\prime}")
    attention = sp.Function(r"\operatorname{A}")
    feed_forward = sp.Function(r"\operatorname{F}")
    return (
        Step(
            "In the usual layer the feed-forward block F waits for the attention block A: four matrix "
            "multiplications in a row, each with an all-reduce.",
            sp.Eq(out, x + feed_forward(attention(x))),
            number="6",
            form="structure",
        ),
        Step(
            "In a layer with parallel attention it does not: two in a row.",
            sp.Eq(out, x + feed_forward(x) + attention(x)),
            number="7",
            form="structure",
        ),
    )


@derivation(proves=toy.grid_all_reduce_time)
def even_split():
    """Why an all-reduce joins the square root of the GPUs."""
    rows = sp.Symbol("r", positive=True)
    columns = N_GPU / rows
    traffic = rows + columns
    best = sp.solve(sp.diff(traffic, rows), rows)[0]
    return (
        "Cut a square matrix into r rows and N/r columns of blocks. Each input is sent to the r blocks of a "
        "column, each output is summed over the N/r of a row: the traffic of one of each, in activations:",
        let("V", traffic),
        "It is least where its derivative vanishes.",
        sp.Eq(sp.diff(traffic, rows), 0),
        "So the matrix is cut evenly, and this many GPUs share one sum.",
        equals("n_ranks", best),
        "They pass it along a ring twice: once to add up, once to hand out.",
        equals("t_reduce", toy.ring_all_reduce_time(best, T_HOP)),
    )


# Two times on which everything depends: reading the weights on one GPU, and one hop in every all-reduce.
READING, HOPS = sp.symbols("W H", positive=True)
_MEANT = {READING: toy.weight_time(MODEL, CHIP, 1), HOPS: toy.network_time(MODEL, T_HOP)}


def _latency(n_gpu):
    """Equation 9 in terms of the two times above: reading the weights, and one hop."""
    params = solved(READING, _MEANT[READING], MODEL.n_params)
    hop = solved(HOPS, _MEANT[HOPS], T_HOP)
    latency = toy.critical_latency(MODEL, CHIP, n_gpu, T_HOP)
    return sp.expand(latency.subs(MODEL.n_params, params)).subs(T_HOP, hop)


@derivation(proves=toy.optimal_n_gpu)
def optimal_instance():
    """The instance size that makes one token fastest."""
    latency = toy.toy_latency(MODEL, CHIP, N_GPU, BATCH, toy.grid_all_reduce_time(N_GPU, T_HOP))
    at_critical = latency.subs(BATCH, critical_batch().result)
    saved, lost = sp.expand(sp.diff(at_critical, N_GPU)).as_independent(T_HOP)
    optimum = solved(lost, -saved, N_GPU)
    power = sp.simplify(optimum ** sp.Rational(3, 2))
    return (
        Step(
            "The token latency, the all-reduces written out.",
            equals("toy_latency", latency),
            number="8",
        ),
        Step(
            "At the critical batch both sides of the maximum are equal, and the batch drops out.",
            equals("critical_latency", at_critical),
            number="9",
        ),
        Step(
            "One more GPU costs waiting (left) and saves reading (right). At the optimum the two balance.",
            sp.Eq(lost, -saved),
            number="10",
        ),
        Step("Collect the instance size.", sp.Eq(N_GPU ** sp.Rational(3, 2), power), number="11"),
        Step("Solve for it.", equals("n_gpu", optimum), number="12"),
        Step(
            "An instance has at least one GPU, so where this is below one, the answer is one.",
            equals("optimal_n_gpu", sp.Max(power, 1) ** sp.Rational(2, 3)),
            number="13",
        ),
    )


@cached_by_equations
def _fastest():
    """The slope of equation 9 in those two times, and the size at which it vanishes."""
    slope = sp.diff(_latency(N_GPU), N_GPU)
    return slope, solved(slope, 0, N_GPU)


@cached_by_equations
def _several():
    """The smallest latency if more than one GPU is best."""
    return sp.expand(sp.powsimp(sp.expand(_latency(_fastest()[1])), force=True))


def _bound():
    """At the optimum the hops follow from reading and size: the slope vanishes, solved for the hops."""
    return solved(_fastest()[0], 0, HOPS).subs(N_GPU, symbol("optimal_n_gpu"))


@derivation(proves=toy.minimum_latency)
def minimum_latency():
    """The smallest token latency, and when more than one GPU is best for it."""
    slope, size = _fastest()
    border = solved(size, 1, READING)
    single = _latency(sp.Integer(1))
    whole = sp.Piecewise((_several(), READING > border), (single, True)).subs(_MEANT)
    return (
        "Write W for reading all weights on one GPU.",
        sp.Eq(READING, _MEANT[READING]),
        "Write H for one hop of every all-reduce of a token.",
        sp.Eq(HOPS, _MEANT[HOPS]),
        "The latency at the critical batch depends on these two alone.",
        equals("minimum_latency", _latency(N_GPU)),
        "It is least where its slope vanishes,",
        sp.Eq(slope, 0),
        "which is at one size.",
        equals("optimal_n_gpu", size),
        "Insert that size, where it is more than one GPU.",
        equals("minimum_latency", _several()),
        "With one GPU there is no network, only reading.",
        equals("minimum_latency", single),
        "The size is one where reading takes as long as the hops, and grows with reading.",
        sp.Eq(READING, border),
        Step(
            "So several GPUs pay exactly beyond that border.", equals("minimum_latency", whole), number="14"
        ),
    )


@derivation()
def factor_three():
    """What the fastest token costs, compared with the cheapest."""
    size, batch, fastest = symbol("optimal_n_gpu critical_batch minimum_latency")
    cost = (size * _latency(size)).subs(HOPS, _bound())
    ratio = sp.expand(sp.simplify(cost / READING))
    limit = sp.limit(ratio, size, sp.oo)
    reading = _MEANT[READING]
    arithmetic = (limit * reading / batch).subs(batch, critical_batch().result)
    return (
        Step(
            "What the fastest instance costs at the critical batch.",
            equals("cost_at_minimum_latency", size / batch * fastest),
            number="15",
        ),
        "At the optimum, where the slope vanishes, the hops follow from reading and size.",
        sp.Eq(HOPS, _bound()),
        "So the cost is reading times a number that depends on the size alone.",
        equals("cost_at_minimum_latency", ratio * READING / batch),
        Step(
            "For a large instance the second term goes, and a factor is left that no property of model or chip "
            "can change.",
            equals("cost_at_minimum_latency", limit * reading / batch),
            number="16",
            form="approximation",
        ),
        Step(
            "The critical batch turns reading into arithmetic: the same factor over the cheapest token of all.",
            equals("cost_at_minimum_latency", arithmetic),
            number="17",
            form="approximation",
        ),
    )


@derivation()
def waiting():
    """How long the fastest token waits for the network, compared with memory."""
    size = symbol("optimal_n_gpu")
    reading = READING / size
    network = (_latency(size) - reading).subs(HOPS, _bound())
    ratio = sp.expand(sp.simplify(network / reading))
    left = symbol("network_time") / symbol("weight_time")
    return (
        "At the optimal size, network time over reading time depends on that size alone.",
        sp.Eq(left, ratio),
        Step(
            "In a large instance a token waits twice as long as it reads.",
            sp.Eq(left, sp.limit(ratio, size, sp.oo)),
            form="limit",
        ),
    )


@derivation(proves=toy.minimum_latency_large)
def large_instance():
    """The smallest latency in the limit of a large instance, and by how much that limit is too long."""
    left = symbol("minimum_latency")
    ratio = sp.Symbol("x")
    measured = sp.expand(sp.simplify(_several().subs(READING, ratio * HOPS) / HOPS))
    lead = sp.limit(measured / sp.cbrt(ratio), ratio, sp.oo)
    large = lead * sp.cbrt(HOPS) ** 2 * sp.cbrt(READING)
    size = symbol("optimal_n_gpu")
    excess = sp.simplify((large / _several() - 1).subs(READING, HOPS * size ** sp.Rational(3, 2)))
    return (
        "Write x for reading over hops, W / H, and measure the smallest latency in hops.",
        sp.Eq(left / HOPS, measured),
        "For a large x it grows with the third root of x, times this limit:",
        let("a", lead),
        "That term alone is too long by a share that shrinks with the root of the instance.",
        let("e", excess),
        Step("In the model's terms:", sp.Eq(left, large.subs(_MEANT)), number="18", form="approximation"),
    )


@derivation(proves=toy.square_root_law)
def root_law():
    """Why a model four times as large takes twice as long."""
    depth = sp.Symbol("c")
    size, known, time = symbol("n_params known_params known_latency")
    large = toy.minimum_latency_large(MODEL, CHIP, T_HOP)
    layers = depth * size ** sp.Rational(1, 4)
    shaped = sp.powsimp(large.subs(MODEL.n_layers, layers), force=True)
    started = solved(shaped.subs(size, known), time, depth)
    return (
        "Let depth grow with the fourth root of the parameters, with some constant c.",
        sp.Eq(MODEL.n_layers, layers),
        "Then the latency of a large instance grows with their square root.",
        equals("square_root_law", shaped),
        "A model whose latency is known fixes the constant.",
        sp.Eq(depth, started),
        Step(
            "Inserted, everything but the sizes cancels.",
            equals("square_root_law", sp.simplify(shaped.subs(depth, started))),
            number="19",
            form="approximation",
        ),
    )


@derivation()
def scaling():
    """How the smallest latency grows with depth, width, bandwidth, hop time and size."""
    large = toy.minimum_latency_large(MODEL, CHIP, T_HOP)
    depth = MODEL.n_layers
    width = symbol("d_model")
    shaped = large.subs(MODEL.n_params, width**2 * depth)
    quarter = large.subs(depth, MODEL.n_params ** sp.Rational(1, 4))
    rows = [
        ("depth, at constant width", shaped, depth),
        ("width, at constant depth", shaped, width),
        ("time of one hop", large, T_HOP),
        ("memory bandwidth", large, CHIP.memory_bandwidth),
        ("parameters, if depth grows with their fourth root", quarter, MODEL.n_params),
    ]
    slope = r"\partial\ln t_{\min} / \partial\ln "
    return [
        Step(f"Exponent of {name}.", let(slope + sp.latex(of), exponent(expression, of)))
        for name, expression, of in rows
    ]


def exponent(expression, of):
    """The power with which an expression grows in one of its symbols.

    Examples
    --------
    >>> x = sp.Symbol("x", positive=True)
    >>> exponent(3 * x**2, x)
    2
    """
    return sp.simplify(of * sp.diff(expression, of) / expression)


@complete()
def serial_all_reduces():
    """How many all-reduces follow one another in a layer of the complete model."""
    attention, feed_forward, total = sp.symbols(r"n_{\text{attention}} n_{\text{ff}} n_{\text{reduce}}")
    return (
        "Queries, keys and values together, then the projection after attention: two.",
        sp.Eq(attention, 2),
        "Into the feed-forward width, then back: two more.",
        sp.Eq(feed_forward, 2),
        Step("With both dimensions cut, each of them ends in an all-reduce.", sp.Eq(total, 4), number="44"),
    )


@complete(proves=printed.transfer_time)
def bytes_of_an_all_reduce():
    """What the all-reduces of an evenly cut instance read inside and between nodes, from the ring of section 2."""
    ranks, size = sp.symbols("R X")
    nodes, outer, inner = symbol("all_nodes inter_node_reads intra_node_reads")
    steps = toy.ring_all_reduce_time(ranks, 1)
    reads = sp.expand(ranks * (size / ranks) * steps)
    between = reads.subs(ranks, sp.sqrt(nodes))
    inside = reads.subs(ranks, sp.sqrt(N_GPU / nodes))
    time = outer / (N_GPU * CHIP.scale_out_bandwidth) + inner / (N_GPU * CHIP.scale_up_bandwidth)
    return (
        "A ring of R ranks takes so many steps.",
        let("n", steps),
        "In each, every rank reads one R-th of a tensor of X bytes from its neighbour.",
        let("V", reads),
        Step(
            "With both sides of a matrix cut, an all-reduce meets the square root of the nodes.",
            sp.Eq(outer, sp.factor(between)),
            number="41",
        ),
        Step(
            "In each of them it meets the square root of its GPUs; over the nodes that it meets:",
            sp.Eq(inner, sp.factor(sp.sqrt(nodes) * inside)),
            number="42",
        ),
        Step(
            "Counted over all nodes instead, which section 3.4 does, it would be more:",
            equals("intra_node_reads_of_all_nodes", sp.factor(nodes * inside)),
            number="27",
        ),
        Step(
            "All GPUs read at once, first between nodes and then inside them.",
            equals("transfer_time", time),
            number="28",
        ),
    )


@complete(proves=search.expected_tokens)
def tokens_of_a_round():
    """Tokens per round of the procedure that stops at the first rejected draft."""
    i = sp.Symbol("i")
    whole, accepted = symbol("tokens acceptance")
    rejected = sp.Sum(i * accepted ** (i - 1) * (1 - accepted), (i, 1, whole))
    mean = rejected + whole * accepted**whole
    three = sp.expand(mean.subs(whole, 3).doit())
    series = sp.Sum(accepted ** (i - 1), (i, 1, whole))
    closed = sp.simplify(sp.piecewise_fold(series.doit()).args[-1][0])
    return (
        "The i-th draft is the first to be rejected, or none is: i tokens, or all.",
        let("V", mean),
        "For three, say, this is:",
        let("V_{3}", three),
        "So a token counts if all before it were accepted.",
        let("V", series),
        "That is a geometric series, and its sum is what equation 46 divides by.",
        let("V", closed),
    )
