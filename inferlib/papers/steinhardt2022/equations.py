"""Steinhardt 2022: the least time of one forward pass, from three rates and nothing else.

A matrix multiply is cut into square blocks, one for each chip. A chip receives vectors, reads its block,
multiplies and sends vectors on; the slowest of network, memory and arithmetic sets the time (the equation
that the post marks with a star). Everything else follows from that one line.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.resources import files
from numbers import Real

import inferlib.equation
from inferlib import checks
from inferlib.catalog import record
from inferlib.equation import Record, quantity
from inferlib.ops import maximum, minimum, sqrt
from inferlib.system import Accelerator, Breakdown, Layout, System, Workload, count as whole, format_bytes
from inferlib.transformer import Transformer
from inferlib.units import parse

equation = partial(inferlib.equation.equation, "steinhardt2022")
WITHOUT_LIMIT = 1e18  # B/s: a network faster than any machine has a use for


@lru_cache(maxsize=1)
def stated():
    """The post's ``assumptions.toml`` as it is written: units as text."""
    return tomllib.loads((files("inferlib.papers.steinhardt2022") / "assumptions.toml").read_text("utf-8"))


@dataclass(frozen=True, eq=False)
class Machine(Record):
    """Equal chips behind one network connection.

    Traffic between the chips of one machine is free. ``sources`` says where each number is stated.

    Examples
    --------
    >>> Machine(flops=312e12, memory_bandwidth=2e12, network_bandwidth=2e12, chips=8).chips
    8
    >>> Machine(flops=-1.0, memory_bandwidth=2e12, network_bandwidth=2e12)
    Traceback (most recent call last):
    ...
    ValueError: Machine.flops is -1.0, but must be positive and finite
    """

    flops: float = quantity("FLOP/s", "arithmetic peak of one chip")
    memory_bandwidth: float = quantity("B/s", "memory bandwidth of one chip")
    network_bandwidth: float = quantity("B/s", "bandwidth from one machine to another")
    chips: float = quantity("1", "chips in one machine", default=1)
    word: float = quantity("B", "bytes of one number of a vector", default=2)
    weight_word: float = quantity("B", "bytes of one weight", default=2)
    flop_per_weight: float = quantity("FLOP", "one multiply and one add", default=2)
    name: str = ""
    sources: Mapping = field(default_factory=dict)

    def __post_init__(self):
        super().__post_init__()
        checks.number("Machine.chips", self.chips, minimum=1)


def _assumed(name, unit):
    return parse(stated()["assumptions"][name], unit)


@dataclass(frozen=True, eq=False)
class Assumptions(Record):
    """What the post assumes beyond the machine; the default reproduces what it prints.

    ``block_per_chip`` is False where one block stands for a whole machine, as in the post's count of
    machines, and True where each chip holds one, as in its equations.

    Examples
    --------
    >>> Assumptions().block_per_chip, Assumptions.corrected().block_per_chip
    (False, True)
    """

    utilisation: float = quantity(
        "1",
        "share of the arithmetic peak reached in practice",
        default=_assumed("utilisation", "1"),
        maximum=1,
    )
    latency: float = quantity("s", "latency of one multiply", default=_assumed("latency", "s"), zero=True)
    multiplies_per_layer: float = quantity(
        "1", "consecutive multiplies in one layer", default=_assumed("multiplies_per_layer", "1")
    )
    layers: float = quantity("1", "layers of the model", default=_assumed("layers", "1"))
    size_prefix: float = quantity("1", "what K, M, G count in sizes", default=_assumed("size_prefix", "1"))
    block_per_chip: bool = False

    @classmethod
    def corrected(cls):
        """The reading without the post's slips: a block for each chip, sizes in powers of 1000."""
        return cls(size_prefix=1000.0, block_per_chip=True)


PRINTED = Assumptions()


def machines():
    """The names of the machines that the post describes.

    Examples
    --------
    >>> machines()
    ['A100', 'A100, warm-up']
    """
    return list(stated()["machines"])


def load_machine(name="A100"):
    """A machine of the post.

    Parameters
    ----------
    name : str
        ``"A100"``: eight chips at 2 TB/s of memory and 2 TB/s of network, as in the technical answer.
        ``"A100, warm-up"``: one chip at 1.5 TB/s and 400 GB/s, as in the warm-up.

    Returns
    -------
    Machine

    Raises
    ------
    LookupError
        If the post has no such machine; near names are suggested.

    Examples
    --------
    >>> load_machine("A100").network_bandwidth
    2000000000000.0
    """
    return record(Machine, stated()["machines"][checks.one_of("machine", name, machines())], name=name)


def machine_of(chip, count=None, links=False):
    """One of several equal machines that chips of the catalogue make.

    A machine is a scale-up domain: traffic inside it is free, and what leaves it takes the network.

    Parameters
    ----------
    chip : Accelerator
        Its ``flops``, ``memory_bandwidth`` and ``scale_out_bandwidth`` are used.
    count : int, optional
        Chips in the machine; the chip's ``scale_up_size`` when not given.
    links : bool
        The other reading, for a chip whose domain has no switch: its links to its neighbours
        (``scale_up_bandwidth``) are the network. ``count`` is then 1 when not given.

    Returns
    -------
    Machine
        Its network is ``count`` times the bandwidth of one chip.

    Raises
    ------
    TypeError
        If ``chip`` is not an Accelerator.
    ValueError
        If ``count`` is not a whole number of at least 1, if the chip states no such bandwidth, or no size
        and ``count`` is not given. A chip without a network can still be a :func:`machine_alone`.

    Examples
    --------
    >>> from inferlib import load_chip
    >>> machine_of(load_chip("H100 SXM")).network_bandwidth
    400000000000.0
    >>> machine_of(load_chip("TPU v4"), links=True).chips
    1
    """
    _instance("chip", chip, Accelerator)
    name = "scale_up_bandwidth" if links else "scale_out_bandwidth"
    if links and count is None:
        count = 1
    each = getattr(chip, name)
    if each is None:
        raise ValueError(f"chip {chip.name!r} states no {name}, so no bandwidth from one machine to another")
    count, stands = _size_of(chip, count)
    so_many = f"{count:g}" if isinstance(count, Real) else count
    stands["network_bandwidth"] = f"{so_many} times {name}: {stands.get(name, 'not stated')}"
    return Machine(chip.flops, chip.memory_bandwidth, count * each, count, name=chip.name, sources=stands)


def machine_alone(chip, count=None):
    """A machine that holds all of a model: nothing leaves it, so its network is never the limit.

    Parameters
    ----------
    chip : Accelerator
    count : int, optional
        Chips in the machine; the chip's ``scale_up_size`` when not given.

    Returns
    -------
    Machine
        Its network is :data:`WITHOUT_LIMIT`.

    Raises
    ------
    TypeError, ValueError
        As for :func:`machine_of`.

    Examples
    --------
    >>> from inferlib import load_chip
    >>> pod = machine_alone(load_chip("TPU v4"))
    >>> int(pod.chips), elapsed_time(pod) == memory_limited_time(pod)
    (4096, True)
    """
    _instance("chip", chip, Accelerator)
    count, stands = _size_of(chip, count)
    stands["network_bandwidth"] = "without limit: nothing leaves a machine by itself"
    return Machine(chip.flops, chip.memory_bandwidth, WITHOUT_LIMIT, count, name=chip.name, sources=stands)


def _size_of(chip, count):
    """How many chips a machine has, and the chip's sources with that of the number."""
    stated = chip.sources.get("scale_up_size", "")
    if count is None:
        if chip.scale_up_size is None:
            raise ValueError(f"chip {chip.name!r} states no scale_up_size, so count must be given")
        return chip.scale_up_size, chip.sources | {"chips": stated}
    return whole("count", count), chip.sources | {"chips": "given"}


# --- One block on one chip -------------------------------------------------------------------------------


@equation(unit="B", m="1", b="1")
def network_traffic(machine: Machine, m, b):
    """Bytes into and out of one chip: m numbers of each of b vectors, both ways.

    Detailed count of operation costs: 4mb.

    Examples
    --------
    >>> network_traffic(load_machine("A100, warm-up"), 2048, 256) / 2**20
    2.0
    """
    return 2 * machine.word * m * b


@equation(unit="B", m="1", b="1")
def memory_traffic(machine: Machine, m, b):
    """Bytes one chip reads and writes in its memory: vectors in and out, and its block of weights.

    Parameters and result are those of :func:`network_traffic`. Detailed count of operation costs:
    4mb + 2m^2.

    Examples
    --------
    >>> memory_traffic(load_machine("A100, warm-up"), 2048, 256) / 2**20
    10.0
    """
    return 2 * machine.word * m * b + machine.weight_word * m**2


@equation(unit="FLOP", m="1", b="1")
def arithmetic_work(machine: Machine, m, b):
    """Operations of one chip: one multiply and one add for each weight and vector.

    Parameters are those of :func:`network_traffic`; the result is in FLOP. Detailed count of operation
    costs: 2m^2 b.

    Examples
    --------
    >>> arithmetic_work(load_machine("A100, warm-up"), 2048, 256) / 2**30
    2.0
    """
    return machine.flop_per_weight * m**2 * b


@equation(unit="FLOP", m="1", b="1")
def combining_work(machine: Machine, m, b):
    """Additions that combine one chip's partial results with its neighbours': one for each output.

    Parameters are those of :func:`network_traffic`; the result is in FLOP. Detailed count of operation
    costs: the post-processing, which it leaves out.

    Examples
    --------
    >>> combining_work(load_machine("A100, warm-up"), 2048, 256) / 2**10
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


@equation(unit="B/s", rows="1")
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
    """Seconds the network needs for one block; parameters as in :func:`network_traffic`."""
    return network_traffic(machine, m, b) / effective_bandwidth(machine)


@equation(unit="s", m="1", b="1")
def memory_time(machine: Machine, m, b):
    """Seconds the memory needs for one block; parameters as in :func:`network_traffic`."""
    return memory_traffic(machine, m, b) / machine.memory_bandwidth


@equation(unit="s", m="1", b="1")
def arithmetic_time(machine: Machine, m, b):
    """Seconds the arithmetic of one block needs; parameters as in :func:`network_traffic`."""
    return arithmetic_work(machine, m, b) / machine.flops


@equation("star", unit="s", m="1", b="1")
def block_time(machine: Machine, m, b):
    """Time of one matrix multiply: the slowest of network, memory and arithmetic.

    The post prints it for one chip in a machine; with N chips the network counts as B / sqrt(N).

    Detailed count of operation costs, the equation marked with a star.

    Examples
    --------
    >>> machine = load_machine("A100, warm-up")
    >>> f"{block_time(machine, 2048, 256) * 1e6:.2f} us"
    '6.99 us'
    """
    slowest = maximum(memory_time(machine, m, b), arithmetic_time(machine, m, b))
    return maximum(network_time(machine, m, b), slowest)


@equation(unit="1", m="1", b="1")
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
    >>> f"{network_limited_time(load_machine('A100')) * 1e6:.3f} us"
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
    >>> f"{memory_limited_time(load_machine('A100')) * 1e6:.3f} us"
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
    >>> f"{machine_block(load_machine('A100')):.0f}"
    '2496'
    """
    return best_block(machine) * sqrt(machine.chips)


@equation(unit="s")
def elapsed_time(machine: Machine):
    """Least time of one multiply at full utilisation: both branches of the complete formula.

    The second branch with the useful part of the network is the first branch once the network suffices,
    so one expression serves for both, and a network of any speed has a finite answer.

    The complete formula.

    Examples
    --------
    >>> fast = load_machine("A100").replace(network_bandwidth=1e15)
    >>> abs(elapsed_time(fast) / memory_limited_time(fast) - 1) < 1e-12
    True
    """
    return network_limited_time(_useful(machine))


# --- What a multiply costs in practice -------------------------------------------------------------------


@equation(unit="s", k="1")
def wasteful_time(machine: Machine, k):
    """Time of one multiply when block and batch are both k times smaller than the best.

    Trading off speed and cost: k^2 times faster.

    Examples
    --------
    >>> machine = load_machine("A100")
    >>> round(elapsed_time(machine) / wasteful_time(machine, 10), 9)
    100.0
    """
    return elapsed_time(machine) / k**2


@equation(unit="s", k="1")
def practical_time(machine: Machine, k, assumptions: Assumptions = PRINTED):
    """Time of one multiply at the utilisation real code reaches, with latency.

    The still short but technical answer.

    Examples
    --------
    >>> f"{practical_time(load_machine('A100'), 1) * 1e6:.2f} us"
    '4.51 us'
    """
    return wasteful_time(machine, k) / assumptions.utilisation + assumptions.latency


@equation(unit="1")
def multiplies(assumptions: Assumptions = PRINTED):
    """Consecutive multiplies of a forward pass: twice the layers. The post's L."""
    return assumptions.multiplies_per_layer * assumptions.layers


@equation(unit="s", k="1")
def forward_pass_time(machine: Machine, k, assumptions: Assumptions = PRINTED):
    """Time of a forward pass: its multiplies one after the other, each as in :func:`practical_time`.

    Examples
    --------
    >>> f"{forward_pass_time(load_machine('A100'), 1) * 1e3:.2f} ms"
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
    >>> machine = load_machine("A100")
    >>> multiply_adds_per_number(machine), machine.flops / machine.memory_bandwidth
    (156.0, 156.0)
    """
    return machine.word * machine.flops / (machine.flop_per_weight * machine.memory_bandwidth)


@equation(unit="s", k="1")
def very_short_time(machine: Machine, k, assumptions: Assumptions = PRINTED):
    """The very short answer, L R^3 / (C k^2): the forward pass up to constant factors.

    Examples
    --------
    >>> f"{very_short_time(load_machine('A100'), 1) * 1e6:.2f} us"
    '1.95 us'
    """
    # one operation for each weight and vector: the constants are what this answer leaves out
    work = machine.flop_per_weight / 2 * multiply_adds_per_number(machine) ** 3
    return multiplies(assumptions) * work / (machine.flops * k**2)


@equation(unit="1", d="1", m="1")
def blocks_needed(d, m):
    """Blocks of edge m that a d x d matrix is cut into: (d / m)^2, one for each chip."""
    return (d / m) ** 2


@equation(unit="1", d="1", m="1")
def machines_needed(machine: Machine, d, m, assumptions: Assumptions = PRINTED):
    """Machines over which a d x d matrix is spread.

    Justifying the formula, last paragraph.

    Examples
    --------
    >>> machine = load_machine("A100")
    >>> machines_needed(machine, 8192, 1024), machines_needed(machine, 8192, 1024, Assumptions.corrected())
    (64.0, 8.0)
    """
    blocks_per_machine = machine.chips if assumptions.block_per_chip else 1
    return blocks_needed(d, m) / blocks_per_machine


@equation(unit="1", d="1", context="1")
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
    >>> attention_traffic(load_machine("A100"), 8192, 2048, 1) / 2**20
    64.0
    """
    return 2 * machine.word * d * context * b


# --- The question that every chapter answers -------------------------------------------------------------


@equation(unit="1", parameters="1", count="1")
def even_block(parameters, count, assumptions: Assumptions = PRINTED):
    """Edge of one chip's block when every multiply has an equal share of the parameters.

    Examples
    --------
    >>> even_block(160 * 8 * 1024**2, 8)
    1024.0
    """
    return sqrt(parameters / (multiplies(assumptions) * count))


@equation(unit="s", parameters="1", count="1", b="1")
def pass_memory_time(machine: Machine, parameters, count, b, assumptions: Assumptions = PRINTED):
    """Seconds that the memory needs for all multiplies of a pass.

    Parameters are those of :func:`even_block`, a machine and the batch ``b``.
    """
    return multiplies(assumptions) * memory_time(machine, even_block(parameters, count, assumptions), b)


@equation(unit="s", parameters="1", count="1", b="1")
def pass_arithmetic_time(machine: Machine, parameters, count, b, assumptions: Assumptions = PRINTED):
    """Seconds that the arithmetic of all multiplies needs; parameters as in :func:`pass_memory_time`."""
    return multiplies(assumptions) * arithmetic_time(machine, even_block(parameters, count, assumptions), b)


@equation(unit="s", parameters="1", count="1", b="1")
def pass_network_time(machine: Machine, parameters, count, b, assumptions: Assumptions = PRINTED):
    """Seconds that the network needs for all multiplies; parameters as in :func:`pass_memory_time`."""
    return multiplies(assumptions) * network_time(machine, even_block(parameters, count, assumptions), b)


def decode_step(model, system, workload, layout=None):
    """One token for every sequence of a batch, as far as the post describes it.

    Two multiplies a layer, all of equal size, share the model's parameters (embeddings included: the post
    counts two operations for each parameter of the model); each is spread evenly over all
    chips of the system, and the three terms of the starred equation are taken at the batch given. Traffic
    inside a machine (the scale-up domain) is free, so a single machine has no network term. The post
    describes no context, no key-value cache and no latency that could be computed: none is counted.

    Parameters
    ----------
    model : Transformer
    system : System
        ``domain`` chips make one machine; between machines, each chip brings its ``scale_out_bandwidth``.
    workload : Workload
        ``batch`` and the format of the weights are used; vectors are 16-bit numbers.
    layout : Layout, optional
        The post knows one: every matrix over all chips, ``Layout(tp=system.count)``. Any other is n/a.

    Returns
    -------
    Breakdown
        One stage whose terms overlap: network; weights and activations, which share the memory and so
        add; arithmetic.

    Raises
    ------
    TypeError
        If an argument is not of the class named above.

    Examples
    --------
    >>> import inferlib
    >>> box = inferlib.System(inferlib.load_chip("H100 SXM"), 8)
    >>> step = decode_step(inferlib.load_model("Llama 3 70B"), box, inferlib.Workload(batch=32, context=4096))
    >>> f"{step.total * 1e3:.2f} ms, bound by {step.binding}"
    '5.31 ms, bound by weights and activations'
    """
    _instance("model", model, Transformer)
    _instance("system", system, System)
    _instance("workload", workload, Workload)
    if model.sparse:
        return _no_answer("n/a", "the post describes dense models only")
    if model.unusual:
        return _no_answer("n/a", f"the post does not describe {model.unusual}")
    if layout is not None:
        _instance("layout", layout, Layout)
        if (layout.pp, layout.ep, layout.dp) != (1, 1, 1) or layout.tp != system.count:
            return _no_answer("n/a", f"the post spreads every matrix over all {system.count} chips")

    parameters = sum(model.parameters().values())
    needed, present = parameters * format_bytes(workload.weights), system.memory
    if present is not None and isinstance(present, Real) and needed > present:
        reason = f"weights of {needed / 1e9:.0f} GB exceed the {present / 1e9:.0f} GB of memory of {system}"
        return _no_answer("infeasible", reason)
    alone = system.count == system.domain
    if not alone and system.chip.scale_out_bandwidth is None:
        return _no_answer("n/a", f"{system.chip.name} states no bandwidth from one machine to another")

    machine = (machine_alone if alone else machine_of)(system.chip, system.domain)
    stands = machine.sources | {"weight_word": f"weights in {workload.weights}"}
    machine = machine.replace(weight_word=format_bytes(workload.weights), sources=stands)
    at = machine, parameters, system.count, workload.batch, PRINTED.replace(layers=model.n_layers)
    times = {"weights and activations": pass_memory_time(*at), "arithmetic": pass_arithmetic_time(*at)}
    if not alone:
        times["network"] = pass_network_time(*at)
    origin = (decode_step, model, system, workload, layout)
    return Breakdown((times,), source="steinhardt2022", origin=origin)


def _no_answer(status, reason):
    return Breakdown(status=status, reason=reason, source="steinhardt2022")


def _instance(name, value, kind):
    if not isinstance(value, kind):
        raise TypeError(f"{name} is a {type(value).__name__}, but must be a {kind.__name__}")
