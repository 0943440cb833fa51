"""Steinhardt 2022, derived from the starred equation alone.

Every step is solved or differentiated by SymPy from the times of one block; no result is written down.
"""

from inferlib.equation import Step, cached_by_equations, in_notation, solved, symbolic
from inferlib.optional_imports import sympy as sp
from inferlib.papers import steinhardt2022 as model
from inferlib.papers.steinhardt2022 import Machine

derivation, symbol, equals = in_notation("steinhardt2022")
MACHINE = symbolic(Machine, "steinhardt2022")
ONE_CHIP = MACHINE.replace(chips=sp.Integer(1))
C = MACHINE.flops
M = MACHINE.memory_bandwidth
B = MACHINE.network_bandwidth
N = MACHINE.chips
m, b, k, r = symbol("m b k rows")
X = sp.Symbol("x")


def _memory_per_work():
    """Return memory time over arithmetic time for one block, times M/C; the ratio itself must not exceed 1."""
    memory = model.memory_time(ONE_CHIP, m, b)
    arithmetic = model.arithmetic_time(ONE_CHIP, m, b)
    return sp.expand(memory * M / (arithmetic * C))


@cached_by_equations
def _tight_batch():
    """The batch at which memory and arithmetic take equally long."""
    return sp.factor(solved(_memory_per_work(), M / C, b))


@cached_by_equations
def _tight_time():
    """Time of a block with the smallest batch at which memory does not bind."""
    return sp.factor(model.arithmetic_time(ONE_CHIP, m, _tight_batch()))


def _smallest_block():
    """The smallest block whose network time does not exceed its arithmetic, whatever the batch."""
    return solved(model.network_time(ONE_CHIP, m, b), model.arithmetic_time(ONE_CHIP, m, b), m)


@derivation(proves=model.network_block)
def network_condition():
    """How large a block must be for the network not to bind."""
    network = model.network_time(ONE_CHIP, m, b)
    arithmetic = model.arithmetic_time(ONE_CHIP, m, b)
    smallest = _smallest_block()
    return (
        Step(
            "A block is done when its slowest resource is done: the network, the memory or the arithmetic.",
            equals("block_time", model.block_time(ONE_CHIP, m, b)),
            number="star",
        ),
        "The chip computes all the time only if the network needs no longer than arithmetic.",
        sp.Le(network, arithmetic),
        "The batch stands on both sides and drops out: whatever the batch, the block must be large enough.",
        sp.Ge(m, smallest),
        "On a machine of N chips, each sees the bandwidth B over the square root of N.",
        equals("network_block", smallest.subs(B, model.effective_bandwidth(MACHINE))),
    )


@derivation(proves=model.memory_limited_time, also=(model.memory_block, model.memory_batch))
def memory_limited():
    """The least time at full utilisation when the network is no obstacle."""
    need = _memory_per_work()
    batch = _tight_batch()
    time = _tight_time()
    best = sp.solve(sp.diff(time, m), m)[0]
    best_batch = sp.simplify(batch.subs(m, best))
    return (
        "Memory must need no longer than arithmetic.",
        sp.Le(need, M / C),
        "Arithmetic sets the time, which grows with block and batch. So take the smallest batch that is "
        "allowed: the one for which memory and arithmetic take equally long.",
        sp.Eq(b, batch),
        "One unknown is left, the block.",
        equals("block_time", time),
        "The slope changes sign once. Smaller blocks need too large a batch, larger ones too much work.",
        sp.Eq(sp.Derivative(symbol("block_time"), m), sp.factor(sp.diff(time, m))),
        "The time is least where the slope is zero.",
        equals("memory_block", best),
        "The batch that goes with it is just as large: the best block of vectors is as wide as the block "
        "of weights.",
        equals("memory_batch", best_batch),
        "With both, the time of one multiply is the first branch.",
        equals("memory_limited_time", sp.simplify(time.subs(m, best))),
    )


@derivation(proves=model.network_limited_time, also=(model.network_batch,))
def network_limited():
    """The least time at full utilisation when the network asks for larger blocks than memory does."""
    smallest = _smallest_block()
    batch = 1 / sp.together(sp.expand(1 / _tight_batch().subs(m, smallest)))
    time = model.arithmetic_time(ONE_CHIP, smallest, batch)
    seen = model.effective_bandwidth(MACHINE)
    return (
        "Beyond its best block the time only grows. A network that forbids that block makes the smallest "
        "allowed one the best.",
        sp.Eq(m, smallest),
        "Memory then asks for this batch.",
        sp.Eq(b, batch),
        "Network, memory and arithmetic all take equally long: nothing idles.",
        equals("block_time", time),
        "On a machine of N chips, B becomes B over the square root of N: in the batch,",
        equals("network_batch", batch.subs(B, seen)),
        "and in the time, the second branch.",
        equals("network_limited_time", time.subs(B, seen)),
    )


@derivation(proves=model.sufficient_bandwidth)
def meeting():
    """Where the two branches meet, and why a faster network then buys nothing."""
    slow = model.network_limited_time(ONE_CHIP)
    fast = model.memory_limited_time(ONE_CHIP)
    slope = sp.factor(sp.diff(slow, B))
    enough = sp.solve(slope, B)[0]
    equal = solved(model.network_block(ONE_CHIP), model.memory_block(ONE_CHIP), B)
    network = solved(model.effective_bandwidth(MACHINE), enough, B)
    return (
        "The two branches ask for the same block at one bandwidth.",
        sp.Eq(B, equal),
        "There they give the same time.",
        equals("network_limited_time", sp.simplify(slow.subs(B, equal))),
        "This is the slope of the second branch over the bandwidth of the network.",
        sp.Eq(sp.Derivative(symbol("network_limited_time"), B), slope),
        "Its slope is zero exactly where the branches meet, and so is the slope of the first branch, which "
        "does not contain B at all: the curves touch, they do not cross.",
        sp.Eq(B, enough),
        "Hence the denominator of the second branch is largest there. Beyond it the second branch would "
        "rise again, so the best block stays where it is and the rest of the network is idle.",
        sp.Eq(B**2 * (M - B), sp.simplify((B**2 * (M - B)).subs(B, enough)), evaluate=False),
        "The time that no network can improve is the first branch.",
        equals("memory_limited_time", fast),
        "With N chips in a machine, the network has to be this fast.",
        equals("sufficient_bandwidth", network),
    )


@derivation(proves=model.effective_bandwidth)
def grid_of_chips():
    """Why N chips share a network as if each had 1/sqrt(N) of it, and not 1/N."""
    one = model.network_time(ONE_CHIP, m, b)
    apart = N * one
    together = model.network_time(ONE_CHIP, m * sp.sqrt(N), b)
    seen = [solved(one.subs(B, X), total, X) for total in (apart, together)]
    return (
        "N blocks with nothing in common move N times the traffic of one through the machine's network.",
        equals("network_time", apart),
        "Each chip then sees one part in N of the bandwidth.",
        equals("effective_bandwidth", seen[0]),
        "N blocks in a square grid are one large block. Its inputs are shared along the columns and its "
        "outputs are summed along the rows, inside the machine, where traffic is free.",
        equals("network_time", together),
        "Each chip now sees this much.",
        equals("effective_bandwidth", seen[1]),
    )


@derivation(proves=model.wasteful_time)
def waste():
    """Giving up utilisation for speed: k times smaller blocks and batches."""
    useful = MACHINE.replace(network_bandwidth=X)
    block = model.network_block(useful)
    batch = model.network_batch(useful)
    times = model.memory_time, model.arithmetic_time, model.network_time
    memory, arithmetic, network = (sp.simplify(time(useful, block / k, batch / k)) for time in times)
    bandwidth = model.useful_bandwidth(MACHINE)
    return (
        "Take the best block and batch for a network with the useful bandwidth x, and shrink both by k. Arithmetic "
        "falls with the cube of k.",
        equals("arithmetic_time", arithmetic),
        "Memory traffic falls with the square.",
        equals("memory_time", memory),
        "So does network traffic, which at a bandwidth of x takes as long as memory traffic.",
        equals("network_time", network),
        "For k above 1 memory is the slowest, and arithmetic runs for one part in k of the time.",
        equals("block_utilisation", sp.simplify(arithmetic / memory)),
        "Memory's time is the time of the multiply, with x the useful part of the network.",
        equals("wasteful_time", memory.subs(X, bandwidth)),
    )
