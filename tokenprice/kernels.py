"""Formulas of kernel, engine and communication times, one equation each.

Rates are fractions of the data sheet and fixed times are in seconds. Both are measured per chip and operator, in
``operators.toml`` and ``sparse_attention.csv``; the constants of engines are in ``engines.toml``.
"""

from functools import partial

from inferlib.equation import Record, equation, quantity
from inferlib.ops import log2, maximum, where
from inferlib.system import Accelerator

equation = partial(equation, "serving", chapter="kernel_model")

POPULARITY = (
    2  # shape of the experts' popularity (Gamma); its inverse is the squared coefficient of variation
)


class Kernel(Record):
    """Timing constants of one operator on one chip: a matrix product, a block of experts, or attention.

    Examples
    --------
    >>> Kernel(0, 0.9).start
    0
    """

    start: float = quantity("fixed time of a kernel", "s", zero=True)
    share: float = quantity("share of the memory bandwidth that a kernel reaches", maximum=2)
    depth: float = quantity(
        "time that one more inner dimension adds to a product, or one more expert to a block", "s", default=0
    )
    prefill: float = quantity("share of the arithmetic peak that long products reach", default=1, maximum=1)
    half: float = quantity(
        "width of an expert on a chip at which a block reaches half of that share", default=0
    )


class Block(Kernel):
    """Timing constants of a whole attention block with its projections, or of the mixer of a layer that keeps a state
    (``sparse_attention.csv``)."""

    row: float = quantity("time that one more sequence adds to a block", "s", default=0)
    select: float = quantity("time to choose positions, once there are enough", "s", default=0)
    position: float = quantity("time that one more position adds to it", "s", default=0)
    entry: float = quantity("bytes of a chosen position", "B", default=0)
    # Constants of prefill. The fit trades them against one another: they predict together and mean little alone.
    projections: float = quantity("share of the peak that the projections of a prompt reach", default=1)
    read: float = quantity("share of the 16-bit peak that attention of a prompt reaches", default=1)
    scores: float = quantity("share of the bandwidth that scores of a prompt reach", default=1)
    token: float = quantity("time that one more token of a prompt adds", "s", default=0)


class Link(Record):
    """All-reduce constants of a group of tensor-parallel chips.

    Examples
    --------
    >>> Link(0, 1e11).latency
    0
    """

    latency: float = quantity("fixed time of an all-reduce", "s", zero=True)
    bandwidth: float = quantity("bytes of the message over the rest of an all-reduce's time", "B/s")


class Engine(Record):
    """Software time between kernels that nothing hides, by class of engine; fitted to whole steps."""

    layer: float = quantity("small kernels and gaps in one layer", "s", default=0)
    rank: float = quantity("time for every doubling of the chips", "s", default=0)
    sequence: float = quantity("time for every sequence of the batch", "s", default=0)
    together: float = quantity("time for every sequence and every doubling of the chips", "s", default=0)
    shared: float = quantity(
        "time of a block with a shared expert, where each routed expert is whole on one chip", "s", default=0
    )
    box: float = quantity("time of an all-reduce for every doubling beyond a box", "s", default=0)
    host: float = quantity("least time of a layer in prefill, unless its attention is plain", "s", default=0)
    ingress_delay: float = quantity("time for a request to enter and leave the server", "s", default=0)
    name: str = ""


@equation(unit="s")
def start_time(kernel: Kernel, count, inner):
    """Fixed time of ``count`` products of one kind, which does not depend on the bytes read."""
    return count * (kernel.start + kernel.depth * inner)


@equation(unit="s", data="B")
def read_time(kernel: Kernel, chip: Accelerator, data):
    """Time to stream ``data`` bytes of one chip through a kernel.

    Examples
    --------
    >>> from inferlib import load_chip
    >>> one = Kernel(start=3e-6, share=0.85)
    >>> f"{1e3 * read_time(one, load_chip('H100 SXM'), 17.6e9):.2f} ms"
    '6.18 ms'
    """
    return data / (kernel.share * chip.memory_bandwidth)


@equation(unit="s", work="FLOP")
def work_time(kernel: Kernel, chip: Accelerator, work):
    """Time of ``work`` FLOP of one chip in a kernel."""
    return work / (kernel.prefill * chip.flops)


@equation(width="1 > 0")
def block_share(kernel: Kernel, width):
    """Share of the arithmetic peak that experts of a width reach; narrow ones move as many rows for less work."""
    return kernel.prefill * width / (width + kernel.half)


@equation(n_experts="1 > 0")
def distinct_experts(n_experts, n_active, rows):
    """Expected number of distinct experts reached, when some experts are chosen more often than others.

    The first row reaches ``n_active`` experts; popularity follows a Gamma distribution of shape ``POPULARITY``. The
    shape was fitted to timings: the loads that aiconfigurator 0.12 takes for traffic (``power_law_1.01``) need 0.81 to
    0.92 of the time of even loads with 16 rows, 0.82 to 0.90 with 64, and about the same with 4 or with 256.

    Examples
    --------
    >>> distinct_experts(n_experts=128, n_active=8, rows=1), distinct_experts(n_experts=128, n_active=8, rows=33)
    (8.0, 98.0)
    """
    missed = (1 + (rows - 1) * n_active / (n_experts * POPULARITY)) ** -POPULARITY
    return n_experts - (n_experts - n_active) * missed


@equation(unit="s", data="B", work="FLOP")
def kernel_time(kernel: Kernel, chip: Accelerator, data, work, count, inner):
    """Time of ``count`` equal kernels: their fixed time, plus the longer of reading and arithmetic."""
    longer = maximum(read_time(kernel, chip, data), work_time(kernel, chip, work))
    return start_time(kernel, count, inner) + longer


@equation(unit="s")
def topk_time(block: Block, count, rows, context, enough):
    """Fixed time of ``count`` blocks: per row, plus selecting positions when there are more than ``enough``."""
    return count * (block.row * rows + where(context > enough, block.select + block.position * context, 0))


@equation(unit="s", products="FLOP", pairs="FLOP", wide_flops="FLOP/s > 0", scored="B")
def prompt_block_time(block: Block, chip: Accelerator, products, pairs, wide_flops, scored, tokens):
    """Prefill time of a block: projections, attention at 16 bits, the indexer's scores, and a time per token."""
    work = products / (block.projections * chip.flops) + pairs / (block.read * wide_flops)
    return work + scored / (block.scores * chip.memory_bandwidth) + block.token * tokens


@equation(unit="s", message="B")
def reduce_time(link: Link, message):
    """Time of one all-reduce inside a box: a latency, and a part that grows with the message.

    Examples
    --------
    >>> eight = Link(latency=3.6e-6, bandwidth=127e9)
    >>> [round(1e6 * reduce_time(eight, rows * 8192 * 2), 1) for rows in (1, 64)]
    [3.7, 11.9]
    """
    return link.latency + message / link.bandwidth


@equation(unit="s", domain="1 > 0")
def node_time(engine: Engine, count, n_chips, domain):
    """Extra time of ``count`` all-reduces whose chips span several boxes."""
    return count * engine.box * log2(maximum(n_chips / domain, 1))


@equation(unit="s", data="B", bandwidth="B/s > 0", share="1 > 0", latency="s")
def exchange_time(latency, data, bandwidth, share):
    """Time to send the tokens of one chip to the chips of their experts, or back (all-to-all)."""
    return latency + data / (share * bandwidth)


@equation(unit="s", n_chips="1 > 0")
def engine_time(engine: Engine, n_layers, batch, n_chips):
    """Software time of one step: per layer, per sequence, and for synchronising chips."""
    ranks = log2(n_chips) * (engine.rank + engine.together * batch)
    return engine.layer * n_layers + engine.sequence * batch + ranks


@equation(unit="s", kernels="s", attention="s", experts="s", reduces="s", engine="s")
def step_time(kernels, attention, experts, reduces, engine):
    """Time of one decode step: the sum of its consecutive parts."""
    return kernels + attention + experts + reduces + engine
