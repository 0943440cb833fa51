"""Steinhardt 2022: the least time of one forward pass, from three rates and nothing else.

A matrix multiply is cut into square blocks, one for each chip. A chip receives vectors, reads its block, multiplies and
sends vectors on; the slowest of network, memory and arithmetic sets the time (the equation that the post marks with a
star). Everything else follows from that one line.
"""

from collections.abc import Mapping
from functools import partial
from numbers import Real

from inferlib import validation
from inferlib.equation import Record, equation, load_source, quantity, stated_sources
from inferlib.ops import maximum, minimum, sqrt
from inferlib.papers.source import load, needs, stated_quantity
from inferlib.system import (
    Layout,
    NotDescribed,
    count as whole,
    decode_model,
    format_bytes,
)
from inferlib.transformer import Transformer
from inferlib.units import parse

STATED = load_source("steinhardt2022")
WITHOUT_LIMIT = 1e18  # B/s: a network faster than any machine can use
NETWORKS = {"scale-out": "scale_out_bandwidth", "links": "scale_up_bandwidth", "none": None}


# --- A machine, and what is assumed beside it ------------------------------------------------------------


class Machine(Record):
    """Equal chips behind one network connection; traffic between them is free.

    Examples
    --------
    >>> Machine(flops=-1.0, memory_bandwidth=2e12, network_bandwidth=2e12)
    Traceback (most recent call last):
    ...
    ValueError: Machine.flops is -1.0, but must be positive and finite
    """

    flops: float = quantity("arithmetic peak of one chip", "FLOP/s")
    memory_bandwidth: float = quantity("memory bandwidth of one chip", "B/s")
    network_bandwidth: float = quantity("bandwidth from one machine to another", "B/s")
    chips: float = quantity("chips in one machine", default=1, minimum=1)
    word: float = quantity("bytes of one number of a vector", "B", default=2)
    weight_word: float = quantity("bytes of one weight", "B", default=2)
    flop_per_weight: float = quantity("one multiply and one add", "FLOP", default=2)
    name: str = ""
    sources: Mapping = stated_sources()


equation = partial(equation, "steinhardt2022", records={"machine": Machine})

_assumed = partial(stated_quantity, "steinhardt2022", "assumptions")


class Assumptions(Record):
    """What the post assumes beyond the machine; the default reproduces what it prints."""

    utilisation: float = _assumed("utilisation", "1", "share of the arithmetic peak reached", maximum=1)
    latency: float = _assumed("latency", "s", "latency of one multiply", zero=True)
    multiplies_per_layer: float = _assumed("multiplies_per_layer", "1", "consecutive multiplies in one layer")
    layers: float = _assumed("layers", "1", "layers of the model")

    @classmethod
    def corrected(cls):
        """Without the post's slip: four multiplies of a layer run one after the other, not two."""
        return cls(multiplies_per_layer=parse(STATED["assumptions"]["serial_multiplies_per_layer"], "1"))


PRINTED = Assumptions()


def chips():
    """The names of the machines that the post describes by their chip."""
    return list(STATED["machines"])


def models():
    """The models that the post names: none, because it only counts parameters."""
    return []


def load_model(model):
    """A Transformer, or one by its name in the catalogue; ValueError where the post does not describe it."""
    return load("model", model, (), {}, _described)


def _described(model):
    if model.sparse:
        raise NotDescribed("the post describes dense models only")
    if model.unusual:
        raise NotDescribed(f"the post does not describe {model.unusual}")
    return model


def load_chip(chip="A100", count=None, network="scale-out"):
    """A chip in one of several equal machines: the post's, or the catalogue's (by name, or an Accelerator).

    Of the post: ``"A100"``, eight chips at 2 TB/s of memory and 2 TB/s of network, as in the technical answer, and
    ``"A100, warm-up"``, one chip at 1.5 TB/s and 400 GB/s. What follows is for those of the catalogue.

    ``count``: chips in the machine: the chip's ``scale_up_size`` when not given, and 1 with ``"links"``.
    ``network``: what joins machines: ``"scale-out"``, each chip's ``scale_out_bandwidth``; ``"links"``, for a
    chip whose domain has no switch, its links to its neighbours (``scale_up_bandwidth``); or ``"none"``, where
    one machine holds all of a model. The network is ``count`` times the bandwidth of one chip, or
    :data:`WITHOUT_LIMIT` where nothing leaves the machine. Raises TypeError, ValueError or LookupError if an
    argument is not allowed, or the chip states no such bandwidth or size.

    Examples
    --------
    >>> load_chip("H100 SXM").network_bandwidth
    400000000000.0
    """

    return load("chip", chip, Machine, STATED["machines"], lambda one: _machine(one, count, network))


def _machine(accelerator, count, network):
    name = NETWORKS[validation.one_of("network", network, NETWORKS)]
    if name:
        needs(accelerator, name)
    count = 1 if network == "links" and count is None else count
    stands = accelerator.sources | {"chips": "given"}
    if count is None:
        count, stands["chips"] = accelerator.scale_up_size, accelerator.sources.get("scale_up_size", "")
        if count is None:
            raise ValueError(f"chip {accelerator.name!r} states no scale_up_size, so count must be given")
    else:
        count = whole("count", count)
    number = f"{count:g}" if isinstance(count, Real) else count  # a symbol, in generated code of a page
    stands["network_bandwidth"] = "without limit: nothing leaves a machine by itself"
    if name:
        stands["network_bandwidth"] = f"{number} times {name}: {stands.get(name, 'not stated')}"
    together = count * getattr(accelerator, name) if name else WITHOUT_LIMIT
    rates = accelerator.flops, accelerator.memory_bandwidth, together, count
    return Machine(*rates, name=accelerator.name, sources=stands)


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


@decode_model("steinhardt2022")
def decode_step(
    model: Transformer,
    system,
    workload,
    layout=None,
    assumptions=PRINTED,
):
    """One token for every sequence of a batch, as far as the post describes it.

    The multiplies of a layer (two as printed), all of equal size, share the model's parameters, embeddings
    included; each is spread evenly over all chips, and the three terms of the starred equation are taken at the
    batch given. The post describes no context, no key-value cache and no latency that could be computed: none
    is counted.

    ``system``: ``domain`` chips make one machine; between machines, each chip brings its
    ``scale_out_bandwidth``. ``workload``: ``batch`` and the format of the weights are used; vectors are 16-bit
    numbers. ``layout``: the post knows one: every matrix over all chips, ``Layout(tp=system.count)``.
    ``assumptions``: multiplies in a layer; its number of layers is replaced by the model's.

    Returns one stage whose terms overlap: network; weights and activations, which share the memory; arithmetic.
    """
    load_model(model)
    if layout is not None and layout != Layout(tp=system.count):
        raise NotDescribed(f"the post spreads every matrix over all {system.count} chips")
    parameters = sum(model.parameters().values())
    system.hold(parameters * format_bytes(workload.weights), "weights")
    alone = system.count == system.domain  # one machine by itself: no traffic, so no network term
    machine = load_chip(system.chip, system.domain, "none" if alone else "scale-out")
    stands = machine.sources | {"weight_word": f"weights in {workload.weights}"}
    machine = machine.replace(weight_word=format_bytes(workload.weights), sources=stands)
    assumptions = assumptions.replace(layers=model.n_layers)
    at = machine, even_block(parameters, system.count, assumptions), workload.batch
    terms = {"weights and activations": memory_time, "arithmetic": arithmetic_time}
    terms |= {} if alone else {"network": network_time}
    return ({name: multiplies(assumptions) * time(*at) for name, time in terms.items()},)
