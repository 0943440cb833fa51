"""Steinhardt 2022: the least time of one forward pass, from three rates and nothing else.

A matrix multiply is cut into square blocks, one for each chip. A chip receives vectors, reads its block,
multiplies and sends vectors on; the slowest of network, memory and arithmetic sets the time (the equation
that the post marks with a star). Everything else follows from that one line.
"""

from functools import partial

import inferlib.equation
from inferlib.ops import maximum, minimum, sqrt
from inferlib.papers.steinhardt2022.records import PRINTED, Assumptions, Machine

equation = partial(inferlib.equation.equation, "steinhardt2022")


# --- One block on one chip -------------------------------------------------------------------------------


@equation(unit="B", m="1", b="1")
def network_traffic(machine: Machine, m, b):
    """Bytes into and out of one chip: m numbers of each of b vectors, both ways.

    Detailed count of operation costs: 4mb.

    Examples
    --------
    >>> from inferlib.papers.steinhardt2022 import load_chip
    >>> network_traffic(load_chip("A100, warm-up"), 2048, 256) / 2**20
    2.0
    """
    return 2 * machine.word * m * b


@equation(unit="B", m="1", b="1")
def memory_traffic(machine: Machine, m, b):
    """Bytes one chip reads and writes in its memory: vectors in and out, and its block of weights.

    Detailed count of operation costs: 4mb + 2m^2.

    Examples
    --------
    >>> from inferlib.papers.steinhardt2022 import load_chip
    >>> memory_traffic(load_chip("A100, warm-up"), 2048, 256) / 2**20
    10.0
    """
    return 2 * machine.word * m * b + machine.weight_word * m**2


@equation(unit="FLOP", m="1", b="1")
def arithmetic_work(machine: Machine, m, b):
    """Operations of one chip: one multiply and one add for each weight and vector.

    Detailed count of operation costs: 2m^2 b.

    Examples
    --------
    >>> from inferlib.papers.steinhardt2022 import load_chip
    >>> arithmetic_work(load_chip("A100, warm-up"), 2048, 256) / 2**30
    2.0
    """
    return machine.flop_per_weight * m**2 * b


@equation(unit="FLOP", m="1", b="1")
def combining_work(machine: Machine, m, b):
    """Additions that combine one chip's partial results with its neighbours': one for each output.

    Detailed count of operation costs: the post-processing, which it leaves out.

    Examples
    --------
    >>> from inferlib.papers.steinhardt2022 import load_chip
    >>> combining_work(load_chip("A100, warm-up"), 2048, 256) / 2**10
    512.0
    """
    # a multiply-add without its multiply
    return machine.flop_per_weight / 2 * m * b


@equation(unit="B/s")
def effective_bandwidth(machine: Machine):
    """Network bandwidth that one chip sees when its machine holds a square grid of blocks.

    One machine, multiple GPUs: B / sqrt(N).

    Examples
    --------
    >>> effective_bandwidth(Machine(312e12, 2e12, 2e12, chips=4)) / 1e12
    1.0
    """
    return machine.network_bandwidth / sqrt(machine.chips)


@equation(unit="B/s", rows="1 > 0")
def grid_bandwidth(machine: Machine, rows):
    """Network bandwidth that one chip sees when its machine holds a grid of a given number of rows.

    A machine whose chips do not make a square (8 of them) must choose: 2 x 4, or 1 x 8. Each row of the
    grid sends one output, each column receives one input.

    With as many rows as columns that of :func:`effective_bandwidth`. Not in the post, which assumes that N is
    a perfect square.

    Examples
    --------
    >>> grid_bandwidth(Machine(312e12, 2e12, 2e12, chips=4), 2) / 1e12
    1.0
    """
    return 2 * machine.network_bandwidth / (rows + machine.chips / rows)


@equation(unit="s", m="1", b="1")
def network_time(machine: Machine, m, b):
    """Time of one block on the network."""
    return network_traffic(machine, m, b) / effective_bandwidth(machine)


@equation(unit="s", m="1", b="1")
def memory_time(machine: Machine, m, b):
    """Time of one block on the memory."""
    return memory_traffic(machine, m, b) / machine.memory_bandwidth


@equation(unit="s", m="1", b="1")
def arithmetic_time(machine: Machine, m, b):
    """Time of the arithmetic of one block."""
    return arithmetic_work(machine, m, b) / machine.flops


@equation("star", unit="s", m="1", b="1")
def block_time(machine: Machine, m, b):
    """Time of one matrix multiply: the slowest of network, memory and arithmetic.

    The post prints it for one chip in a machine; with N chips the network counts as B / sqrt(N).

    Detailed count of operation costs, the equation marked with a star.

    Examples
    --------
    >>> from inferlib.papers.steinhardt2022 import load_chip
    >>> machine = load_chip("A100, warm-up")
    >>> f"{block_time(machine, 2048, 256) * 1e6:.2f} us"
    '6.99 us'
    """
    slowest = maximum(memory_time(machine, m, b), arithmetic_time(machine, m, b))
    return maximum(network_time(machine, m, b), slowest)


@equation(unit="1", m="1 > 0", b="1")
def block_utilisation(machine: Machine, m, b):
    """Share of the time during which the chip computes: 1 where arithmetic is the slowest."""
    return arithmetic_time(machine, m, b) / block_time(machine, m, b)


# --- The fastest multiply at full utilisation ------------------------------------------------------------


@equation(unit="1")
def network_block(machine: Machine):
    """Smallest block that keeps the network from binding: 2C sqrt(N) / B."""
    return 2 * machine.word * machine.flops / (machine.flop_per_weight * effective_bandwidth(machine))


@equation(unit="1")
def network_batch(machine: Machine):
    """Smallest batch that keeps memory from binding at :func:`network_block`: C / (M - B / sqrt(N)).

    It means something where B / sqrt(N) is below M; at and beyond M no finite batch is enough.
    :func:`best_batch` is defined everywhere.
    """
    left = machine.memory_bandwidth - effective_bandwidth(machine)
    return machine.weight_word * machine.flops / machine.flop_per_weight / left


@equation(unit="s")
def network_limited_time(machine: Machine):
    """Least time of a multiply where the network binds: 8 C^2 N / (B^2 (M - B / sqrt(N))).

    ``machine``: with B / sqrt(N) below M, as in :func:`network_batch`.
    The complete formula, second branch.

    Examples
    --------
    >>> from inferlib.papers.steinhardt2022 import load_chip
    >>> f"{network_limited_time(load_chip('A100')) * 1e6:.3f} us"
    '1.205 us'
    """
    return arithmetic_time(machine, network_block(machine), network_batch(machine))


@equation(unit="1")
def memory_block(machine: Machine):
    """Best block where the network does not bind: 3C / M."""
    return 3 * machine.word * machine.flops / (machine.flop_per_weight * machine.memory_bandwidth)


@equation(unit="1")
def memory_batch(machine: Machine):
    """Best batch where the network does not bind: 3C / M."""
    return 3 * machine.weight_word * machine.flops / (machine.flop_per_weight * machine.memory_bandwidth)


@equation(unit="s")
def memory_limited_time(machine: Machine):
    """Least time of a multiply where the network does not bind: 54 C^2 / M^3.

    The complete formula, first branch.

    Examples
    --------
    >>> from inferlib.papers.steinhardt2022 import load_chip
    >>> f"{memory_limited_time(load_chip('A100')) * 1e6:.3f} us"
    '0.657 us'
    """
    return arithmetic_time(machine, memory_block(machine), memory_batch(machine))


@equation(unit="B/s")
def sufficient_bandwidth(machine: Machine):
    """Network bandwidth beyond which more buys nothing, where the branches meet: (2/3) M sqrt(N)."""
    return 2 * machine.memory_bandwidth * sqrt(machine.chips) / 3


@equation(unit="B/s")
def useful_bandwidth(machine: Machine):
    """The part of the network bandwidth that helps: B, at most (2/3) M sqrt(N)."""
    return minimum(machine.network_bandwidth, sufficient_bandwidth(machine))


def _useful(machine):
    # The branches meet where B / sqrt(N) is two thirds of M, and there they agree in m, b and time.
    return machine.replace(network_bandwidth=useful_bandwidth(machine))


@equation(unit="1")
def best_block(machine: Machine):
    """Block of the fastest multiply at full utilisation, on whichever branch the machine is."""
    return network_block(_useful(machine))


@equation(unit="1")
def best_batch(machine: Machine):
    """Batch of the fastest multiply at full utilisation, on whichever branch the machine is."""
    return network_batch(_useful(machine))


@equation(unit="1")
def machine_block(machine: Machine):
    """Edge of the block that a whole machine holds in the fastest multiply: m sqrt(N).

    A matrix narrower than this fits into one machine. The formula is for wider ones.

    Examples
    --------
    >>> from inferlib.papers.steinhardt2022 import load_chip
    >>> f"{machine_block(load_chip('A100')):.0f}"
    '2496'
    """
    return best_block(machine) * sqrt(machine.chips)


@equation(unit="1")
def rough_machine_block(machine: Machine):
    """Edge of a machine's block without the constants of the derivation: C N / B.

    Justifying the formula, N > 1, which ignores constants. :func:`machine_block` has them: twice as much where
    the network binds.

    Examples
    --------
    >>> from inferlib.papers.steinhardt2022 import load_chip
    >>> rough_machine_block(load_chip("A100"))
    1248.0
    """
    return (
        machine.word * machine.flops * machine.chips / (machine.flop_per_weight * machine.network_bandwidth)
    )


@equation(unit="s")
def elapsed_time(machine: Machine):
    """Least time of one multiply at full utilisation: both branches of the complete formula.

    The second branch with the useful part of the network is the first branch once the network suffices,
    so one expression serves for both, and a network of any speed has a finite answer.

    The complete formula.

    Examples
    --------
    >>> from inferlib.papers.steinhardt2022 import load_chip
    >>> fast = load_chip("A100").replace(network_bandwidth=1e15)
    >>> abs(elapsed_time(fast) / memory_limited_time(fast) - 1) < 1e-12
    True
    """
    return network_limited_time(_useful(machine))


# --- What a multiply costs in practice -------------------------------------------------------------------


@equation(unit="s", k="1 > 0")
def wasteful_time(machine: Machine, k):
    """Time of one multiply when block and batch are both k times smaller than the best.

    Trading off speed and cost: k^2 times faster.

    Examples
    --------
    >>> from inferlib.papers.steinhardt2022 import load_chip
    >>> machine = load_chip("A100")
    >>> round(elapsed_time(machine) / wasteful_time(machine, 10), 9)
    100.0
    """
    return elapsed_time(machine) / k**2


@equation(unit="s", k="1 > 0")
def practical_time(machine: Machine, k, assumptions: Assumptions = PRINTED):
    """Time of one multiply at the utilisation real code reaches, with latency.

    The still short but technical answer.

    Examples
    --------
    >>> from inferlib.papers.steinhardt2022 import load_chip
    >>> f"{practical_time(load_chip('A100'), 1) * 1e6:.2f} us"
    '4.51 us'
    """
    return wasteful_time(machine, k) / assumptions.utilisation + assumptions.latency


@equation(unit="1")
def multiplies(assumptions: Assumptions = PRINTED):
    """Consecutive multiplies of a forward pass: twice the layers. The post's L."""
    return assumptions.multiplies_per_layer * assumptions.layers


@equation(unit="s", k="1 > 0")
def forward_pass_time(machine: Machine, k, assumptions: Assumptions = PRINTED):
    """Time of a forward pass: its multiplies one after the other, each as in :func:`practical_time`.

    Examples
    --------
    >>> from inferlib.papers.steinhardt2022 import load_chip
    >>> f"{forward_pass_time(load_chip('A100'), 1) * 1e3:.2f} ms"
    '0.72 ms'
    """
    return multiplies(assumptions) * practical_time(machine, k, assumptions)


@equation(unit="1")
def latency_waste(machine: Machine, assumptions: Assumptions = PRINTED):
    """The k at which half of a multiply's time is latency; beyond it, giving up utilisation buys little."""
    return sqrt(elapsed_time(machine) / (assumptions.utilisation * assumptions.latency))


@equation(unit="1")
def multiply_adds_per_number(machine: Machine):
    """Multiply-adds a chip can do while its memory delivers one number: the post's R.

    The post's R is C / M, in operations for each byte. A multiply-add is two operations and a 16-bit number
    two bytes, so the two are the same number there, and this one is also the edge of a block.

    Examples
    --------
    >>> from inferlib.papers.steinhardt2022 import load_chip
    >>> machine = load_chip("A100")
    >>> multiply_adds_per_number(machine), machine.flops / machine.memory_bandwidth
    (156.0, 156.0)
    """
    return machine.word * machine.flops / (machine.flop_per_weight * machine.memory_bandwidth)


@equation(unit="s", k="1 > 0")
def very_short_time(machine: Machine, k, assumptions: Assumptions = PRINTED):
    """The very short answer, L R^3 / (C k^2): the forward pass up to constant factors.

    Examples
    --------
    >>> from inferlib.papers.steinhardt2022 import load_chip
    >>> f"{very_short_time(load_chip('A100'), 1) * 1e6:.2f} us"
    '1.95 us'
    """
    # one operation for each weight and vector: the constants are what this answer leaves out
    work = machine.flop_per_weight / 2 * multiply_adds_per_number(machine) ** 3
    return multiplies(assumptions) * work / (machine.flops * k**2)


@equation(unit="1", d="1", m="1 > 0")
def blocks_needed(d, m):
    """Blocks of edge m that a d x d matrix is cut into: (d / m)^2, one for each chip."""
    return (d / m) ** 2


@equation(unit="1", d="1 > 0", context="1 > 0")
def attention_ratio(d, context):
    """Work of the three d x d multiplies of an attention block over that of its two sums over the context.

    Examples
    --------
    >>> attention_ratio(8192, 2048)
    6.0
    """
    return 3 * d**2 / (2 * context * d)


@equation(unit="B", d="1", context="1", b="1")
def attention_traffic(machine: Machine, d, context, b):
    """Bytes of the keys and values of one layer: two vectors for each token of each sequence's context.

    Not in the post, which says in words that attention cannot be batched.

    Examples
    --------
    >>> from inferlib.papers.steinhardt2022 import load_chip
    >>> attention_traffic(load_chip("A100"), 8192, 2048, 1) / 2**20
    64.0
    """
    return 2 * machine.word * d * context * b


# --- The question that every chapter answers -------------------------------------------------------------


@equation(unit="1", parameters="1", count="1 > 0")
def even_block(parameters, count, assumptions: Assumptions = PRINTED):
    """Edge of one chip's block when every multiply has an equal share of the parameters.

    Examples
    --------
    >>> even_block(160 * 8 * 1024**2, 8)
    1024.0
    """
    return sqrt(parameters / (multiplies(assumptions) * count))


@equation(unit="s", parameters="1", count="1 > 0", b="1")
def pass_memory_time(machine: Machine, parameters, count, b, assumptions: Assumptions = PRINTED):
    """Time of all multiplies of a pass on the memory."""
    return multiplies(assumptions) * memory_time(machine, even_block(parameters, count, assumptions), b)


@equation(unit="s", parameters="1", count="1 > 0", b="1")
def pass_arithmetic_time(machine: Machine, parameters, count, b, assumptions: Assumptions = PRINTED):
    """Time of the arithmetic of all multiplies of a pass."""
    return multiplies(assumptions) * arithmetic_time(machine, even_block(parameters, count, assumptions), b)


@equation(unit="s", parameters="1", count="1 > 0", b="1")
def pass_network_time(machine: Machine, parameters, count, b, assumptions: Assumptions = PRINTED):
    """Time of all multiplies of a pass on the network."""
    return multiplies(assumptions) * network_time(machine, even_block(parameters, count, assumptions), b)
