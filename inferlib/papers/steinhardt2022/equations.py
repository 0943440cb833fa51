"""Steinhardt 2022: the least time of one forward pass, from three rates and nothing else.

A matrix multiply is cut into square blocks, one for each chip. A chip receives vectors, reads its block, multiplies and
sends vectors on; the slowest of network, memory and arithmetic sets the time (the equation that the post marks with a
star). Everything else follows from that one line.
"""

from functools import partial

from inferlib.equation import equation
from inferlib.ops import maximum, minimum, sqrt
from inferlib.papers.steinhardt2022.records import PRINTED, Machine

equation = partial(equation, "steinhardt2022", records={"machine": Machine})


# --- One block on one chip (Detailed count of operation costs) -------------------------------------------


@equation(unit="B")
def network_traffic(machine, m, b):
    """Bytes into and out of one chip, m numbers of each of b vectors both ways: 4mb."""
    return 2 * machine.word * m * b


@equation(unit="B")
def memory_traffic(machine, m, b):
    """Bytes one chip reads and writes: vectors in and out, and its block of weights once: 4mb + 2m^2."""
    return 2 * machine.word * m * b + machine.weight_word * m**2


@equation(unit="FLOP")
def arithmetic_work(machine, m, b):
    """Operations of one chip, one multiply and one add for each weight and vector: 2m^2 b."""
    return machine.flop_per_weight * m**2 * b


@equation(unit="B/s")
def effective_bandwidth(machine):
    """Network bandwidth that one chip sees when its machine holds a square grid of blocks: B / sqrt(N)."""
    return machine.network_bandwidth / sqrt(machine.chips)


@equation(unit="B/s", rows="1 > 0")
def grid_bandwidth(machine, rows):
    """Network bandwidth per chip in a grid with this number of rows, one output per row and one input per column.

    Not in the post, which assumes that N is a perfect square; 8 chips must choose 2 x 4 or 1 x 8.
    """
    return 2 * machine.network_bandwidth / (rows + machine.chips / rows)


@equation(unit="s")
def network_time(machine, m, b):
    """Time of one block on the network."""
    return network_traffic(machine, m, b) / effective_bandwidth(machine)


@equation(unit="s")
def memory_time(machine, m, b):
    """Time of one block on the memory."""
    return memory_traffic(machine, m, b) / machine.memory_bandwidth


@equation(unit="s")
def arithmetic_time(machine, m, b):
    """Time of the arithmetic of one block."""
    return arithmetic_work(machine, m, b) / machine.flops


@equation("star", unit="s")
def block_time(machine, m, b):
    """Time of one matrix multiply: the slowest of network, memory and arithmetic.

    The post prints it for one chip in a machine; with N chips the network counts as B / sqrt(N).

    Examples
    --------
    >>> from inferlib.papers.steinhardt2022 import load_chip
    >>> f"{block_time(load_chip('A100, warm-up'), 2048, 256) * 1e6:.2f} us"
    '6.99 us'
    """
    slowest = maximum(memory_time(machine, m, b), arithmetic_time(machine, m, b))
    return maximum(network_time(machine, m, b), slowest)


@equation(m="1 > 0")
def block_utilisation(machine, m, b):
    """Share of the time during which the chip computes: 1 where arithmetic is the slowest."""
    return arithmetic_time(machine, m, b) / block_time(machine, m, b)


# --- The fastest multiply at full utilisation (Complete formula) -----------------------------------------


@equation()
def network_block(machine):
    """Smallest block that keeps the network from binding: 2C sqrt(N) / B."""
    return 2 * machine.word * machine.flops / (machine.flop_per_weight * effective_bandwidth(machine))


@equation()
def network_batch(machine):
    """Smallest batch that keeps memory from binding at :func:`network_block`: C / (M - B / sqrt(N)).

    Only where B / sqrt(N) is below M: beyond, no finite batch is enough. :func:`best_batch` is defined everywhere.
    """
    left = machine.memory_bandwidth - effective_bandwidth(machine)
    return machine.weight_word * machine.flops / machine.flop_per_weight / left


@equation(unit="s")
def network_limited_time(machine):
    """Least time of a multiply where the network binds, second branch: 8 C^2 N / (B^2 (M - B / sqrt(N)))."""
    return arithmetic_time(machine, network_block(machine), network_batch(machine))


@equation()
def memory_block(machine):
    """Best block where the network does not bind: 3C / M."""
    return 3 * machine.word * machine.flops / (machine.flop_per_weight * machine.memory_bandwidth)


@equation()
def memory_batch(machine):
    """Best batch where the network does not bind: 3C / M."""
    return 3 * machine.weight_word * machine.flops / (machine.flop_per_weight * machine.memory_bandwidth)


@equation(unit="s")
def memory_limited_time(machine):
    """Least time of a multiply where the network does not bind, first branch: 54 C^2 / M^3."""
    return arithmetic_time(machine, memory_block(machine), memory_batch(machine))


@equation(unit="B/s")
def sufficient_bandwidth(machine):
    """Network bandwidth beyond which more buys nothing, where the branches meet: (2/3) M sqrt(N)."""
    return 2 * machine.memory_bandwidth * sqrt(machine.chips) / 3


@equation(unit="B/s")
def useful_bandwidth(machine):
    """The part of the network bandwidth that helps: B, at most (2/3) M sqrt(N)."""
    return minimum(machine.network_bandwidth, sufficient_bandwidth(machine))


def _useful(machine):
    # The second branch with the useful part of the network is the first once the network suffices: they meet where
    # B / sqrt(N) is two thirds of M, and agree there in m, b and time. So one expression serves for both.
    return machine.replace(network_bandwidth=useful_bandwidth(machine))


@equation()
def best_block(machine):
    """Block of the fastest multiply at full utilisation, on whichever branch the machine is."""
    return network_block(_useful(machine))


@equation()
def best_batch(machine):
    """Batch of the fastest multiply at full utilisation, on whichever branch the machine is."""
    return network_batch(_useful(machine))


@equation(unit="s")
def elapsed_time(machine):
    """Least time of one multiply at full utilisation: both branches of the complete formula.

    Examples
    --------
    >>> from inferlib.papers.steinhardt2022 import load_chip
    >>> f"{elapsed_time(load_chip('A100')) * 1e6:.3f} us"
    '1.205 us'
    """
    return network_limited_time(_useful(machine))


@equation()
def machine_block(machine):
    """Edge of the block of a whole machine, m sqrt(N); a matrix narrower than this fits into one machine."""
    return best_block(machine) * sqrt(machine.chips)


@equation()
def rough_machine_block(machine):
    """The same without the constants of the derivation, C N / B: half of it where the network binds."""
    work = machine.word * machine.flops * machine.chips
    return work / (machine.flop_per_weight * machine.network_bandwidth)


# --- What a multiply costs in practice -------------------------------------------------------------------


@equation(unit="s", k="1 > 0")
def wasteful_time(machine, k):
    """Time of one multiply when block and batch are both k times smaller than the best: k^2 times less."""
    return elapsed_time(machine) / k**2


@equation(unit="s", k="1 > 0")
def practical_time(machine, k, assumptions=PRINTED):
    """Time of one multiply at the utilisation real code reaches, with latency."""
    return wasteful_time(machine, k) / assumptions.utilisation + assumptions.latency


@equation()
def multiplies(assumptions=PRINTED):
    """Consecutive multiplies of a forward pass, the post's L: twice the layers."""
    return assumptions.multiplies_per_layer * assumptions.layers


@equation(unit="s", k="1 > 0")
def forward_pass_time(machine, k, assumptions=PRINTED):
    """Time of a forward pass: its multiplies one after the other, each as in :func:`practical_time`.

    Examples
    --------
    >>> from inferlib.papers.steinhardt2022 import load_chip
    >>> f"{forward_pass_time(load_chip('A100'), 1) * 1e3:.2f} ms"
    '0.72 ms'
    """
    return multiplies(assumptions) * practical_time(machine, k, assumptions)


@equation()
def latency_waste(machine, assumptions=PRINTED):
    """The k at which half of a multiply's time is latency; beyond it, giving up utilisation buys little."""
    return sqrt(elapsed_time(machine) / (assumptions.utilisation * assumptions.latency))


@equation()
def multiply_adds_per_number(machine):
    """Multiply-adds a chip can do while its memory delivers one number: the post's R, and the edge of a block."""
    # The post's R is C / M, operations for each byte. A multiply-add is two operations and a 16-bit number two bytes,
    # so the two are the same number there.
    return machine.word * machine.flops / (machine.flop_per_weight * machine.memory_bandwidth)


@equation(unit="s", k="1 > 0")
def very_short_time(machine, k, assumptions=PRINTED):
    """The very short answer, the forward pass up to constant factors: L R^3 / (C k^2)."""
    # one operation per weight and vector, because this answer omits constant factors
    work = machine.flop_per_weight / 2 * multiply_adds_per_number(machine) ** 3
    return multiplies(assumptions) * work / (machine.flops * k**2)


@equation(m="1 > 0")
def blocks_needed(d, m):
    """Blocks of edge m that a d x d matrix is cut into, one for each chip: (d / m)^2."""
    return (d / m) ** 2


@equation(d="1 > 0", context="1 > 0")
def attention_ratio(d, context):
    """Work of the three d x d multiplies of an attention block over that of its two sums over the context."""
    return 3 * d**2 / (2 * context * d)


# --- The question that every chapter answers -------------------------------------------------------------


@equation(count="1 > 0")
def even_block(parameters, count, assumptions=PRINTED):
    """Edge of one chip's block when every multiply has an equal share of the parameters."""
    return sqrt(parameters / (multiplies(assumptions) * count))
