"""Constants of chips and engines: tables of timed operators, and fits to whole steps."""

import re
from collections.abc import Mapping
from dataclasses import field
from functools import cache, cached_property
from numbers import Real
from typing import NamedTuple

from inferlib import validation
from inferlib.catalog import chip_fact, load_chip
from inferlib.equation import Record, quantity
from inferlib.formats import FORMATS
from inferlib.ops import interpolated, log2
from inferlib.units import parse
from tokenprice.config.formats import nearest
from tokenprice.kernels import Block, Engine, Kernel, Link

CARDS = 8  # PCIe cards per box, if chips have no links of their own
COMPILED_STEP_PREFIX = "TPU"  # on these chips a step is one compiled program, without kernel launches
ANY_DTYPE = "any"
SAME = 0.01  # relative tolerance within which bytes per value count as those of a named format
LINKS = "reduce", "library"
KINDS = {"gemm": "matrix products", "experts": "experts", "attention": "attention"}
NO_TIME = 1e9  # share of a term for which the fit found no time
# Generation of timed chips: the first digit of their compute capability.
GENERATION = {
    "A100 80GB": 8, "L40S": 8, "H100 SXM": 9, "H200": 9, "B200": 10, "B300": 10, "GB200 NVL72": 10, "GB300 NVL72": 10,
    "RTX PRO 6000": 12,
}  # fmt: skip


class Operators(Record):
    """The kernels of one chip: mappings from number format to Kernel, and links by number of chips."""

    exchange: float = quantity("share of a network that dispatch and combine reach", maximum=1)
    gemm: Mapping = field(default_factory=dict)
    experts: Mapping = field(default_factory=dict)
    attention: Mapping = field(default_factory=dict)
    reduce: Mapping = field(default_factory=dict)
    library: Mapping = field(default_factory=dict)
    blocks: Mapping = field(default_factory=dict)
    lenders: Mapping = field(default_factory=dict)  # (kind, format) not timed -> chip of the kernel
    block_chips: Mapping = field(default_factory=dict)  # kind of block -> chip that was timed
    lender: str = ""  # chip of all other kernels: itself, if it was timed
    chip: str = ""
    bus: float = 0.0  # of PCIe cards: time of an all-reduce in the timed box over that in public boxes
    memory_share: float | None = None  # see :func:`memory_share`

    def timed(self, kind, name):
        """Return the format whose kernels (gemm, experts or attention) serve a format: the same if it was timed."""
        found = getattr(self, kind)
        while name not in found and ANY_DTYPE not in found:
            if name == "bf16":
                raise LookupError(f"the operators of {self.chip} have no {kind} in {name}")
            name = FORMATS[name].like or "bf16" if name in FORMATS else "bf16"
        return name if name in found else ANY_DTYPE

    def kernel(self, kind, name):
        """Return the kernel of a kind for a format."""
        return getattr(self, kind)[self.timed(kind, name)]

    def stands_in(self, kind, name):
        """Describe what stands in for kernels not timed on this chip in a format; ``""`` if they were timed."""
        like = self.timed(kind, name)
        whose = self.lenders.get((kind, like))
        other = ([f"in {like}"] if like != name else []) + ([f"of {whose}"] if whose else [])
        return f"{KINDS[kind]} in {name} (using those {' '.join(other)})" if other else ""

    def block(self, kind, engine="", width=0, weights="", cache=""):
        """Return the timed block of a kind that is nearest in engine class, model width and formats."""

        def distance(timed):
            _, of, wide, stored, kept = timed
            bytes_off = abs(stored_bytes(stored) - stored_bytes(weights)) if stored else 0
            return of != engine, abs(wide - width), bytes_off, kept != cache

        known = [timed for timed in self.blocks if timed[0] == kind]
        if not known:
            raise LookupError(f"the operators of {self.chip or 'this chip'} have no {kind}")
        return self.blocks[min(known, key=distance)]

    @cached_property
    def at_peaks(self):
        """Kernels without fixed times that reach the whole bandwidth and arithmetic of the data sheet."""
        peak = Kernel(start=0, share=1)
        kernels = {kind: dict.fromkeys(getattr(self, kind), peak) for kind in KINDS}
        blocks = {of: Block(start=0, share=1, entry=block.entry) for of, block in self.blocks.items()}
        return self.replace(**kernels, blocks=blocks)

    def link(self, n_chips, kind="reduce"):
        """Return the all-reduce of ``n_chips``, interpolated linearly in log2 between measured degrees."""
        links = getattr(self, kind)
        if isinstance(n_chips, Real) and n_chips in links:
            return links[n_chips]
        at = [log2(n) for n in links]
        place = log2(n_chips)
        fields = ([getattr(link, name) for link in links.values()] for name in ("latency", "bandwidth"))
        return Link(*(interpolated(place, at, values) for values in fields))


def load_operators():
    """``operators.toml``, parsed."""
    return validation.read_package_toml(__file__, "operators.toml")


@cache  # read many times for an answer
def engines():
    """``engines.toml``, parsed: constants of each class, and the software that belongs to it."""
    return validation.read_package_toml(__file__, "engines.toml")


def engine(name=None):
    """Return the constants of a class of engine.

    ``"compiled"`` (TensorRT-LLM, gpt-fast, TurboMind), ``"serving"`` (vLLM and SGLang of 2025 and 2026; also when
    none is given) or ``"python-2024"`` (vLLM before its version 0.8 of early 2025). ``"sglang"`` has the constants of
    ``"serving"``, and a scheduler of its own.
    """
    return name if isinstance(name, Engine) else _engine("serving" if name in (None, "", "sglang") else name)


@cache
def _engine(name):
    known = engines()["class"][validation.one_of("engine", name, engines()["class"])]
    return Engine(**{key: value[0] for key, value in known.items()}, name=name)


def engine_class(software):
    """Return the class of engine of a software name (``engines.toml``).

    Examples
    --------
    >>> [engine_class(name) for name in ("TensorRT-LLM 0.6.1", "vLLM 0.7.3", "vLLM 0.19.0", "vllm")]
    ['compiled', 'python-2024', 'serving', 'serving']
    """
    known = (name for pattern, name in engines()["software"] if re.search(pattern, software.lower()))
    return next(known, "serving")


@cache
def driver_memory(name):
    """Memory of a catalogue chip as its driver reports it, in bytes; None if unknown."""
    shown = chip_fact(name, "driver_memory")
    return shown and parse(shown, "B")


def memory(chip):
    """Memory of a chip in bytes: the driver's figure, or the chip's own if that is unknown or the user changed it."""
    return driver_memory(chip.name) if is_shown(chip) else chip.memory_capacity


def is_shown(chip):
    """Whether the driver's figure of a chip's memory is known and applies."""
    return bool(driver_memory(chip.name)) and load_chip(chip.name).memory_capacity == chip.memory_capacity


def chips_per_node(chip):
    """Chips connected without a network between boxes: a domain, or cards on PCIe; None if unknown."""
    return CARDS if chip.topology == "PCIe" and chip.scale_up_size == 1 else chip.scale_up_size


# What was measured for each kind of model: the kind whose rows are used, and these rows in words.
MEASURED = {
    "dense fp8": ("dense fp8", "dense models in fp8"), "dense 16 bits": ("dense 16 bits", "dense models in 16 bits"),
    "dense": ("dense 16 bits", "dense models in 16 bits"), "experts": ("experts", "mixtures of experts"),
}  # fmt: skip
LENDER = "MI300X"  # whose rows are used for its kin where those have none


class Slowdown(NamedTuple):
    """Measured slowdown of a chip relative to the kernels used for it: median, least and greatest over publishers.

    ``widen`` is a factor of the interval. ``rows`` says which public rows; ``lent`` names the factor in
    ``calibration.toml`` that widens it further where these are of another format or chip.
    """

    median: float
    least: float
    greatest: float
    widen: float
    rows: str
    lent: str = ""


def slowdown(chip, kind):
    """Return the :class:`Slowdown` of a chip for a kind of model (:func:`kind_of`), or None without rows.

    A chip of AMD without rows of its own for a kind takes those of the MI300X.
    """
    known = engines()["slower"]
    if chip not in known:
        return None
    measured, rows = MEASURED[kind]
    if measured in known[chip]:
        return Slowdown(*known[chip][measured], rows, "" if measured == kind else "maker")
    if not chip.startswith("MI"):
        return None
    return Slowdown(*known[LENDER][measured], f"{rows} on {LENDER}", "lent" if measured == kind else "maker")


def kind_of(model, each):
    """Return the kind of a model in :data:`MEASURED`: its builds differ by experts, and by format."""
    if model.sparse:
        return "experts"
    stored = {format_name(each[part]) for part in ("attention", "feed-forward")}
    return {"fp8": "dense fp8", "bf16": "dense 16 bits"}.get(" ".join(map(str, stored)), "dense")


def fallback_chip(chip):
    """Return the chip whose operators are used for this one: itself, its fallback, or the H100."""
    return chip if chip in load_operators()["chips"] else chip_fact(chip, "kernel_fallback") or "H100 SXM"


@cache
def operators(chip, link_bandwidth=None):
    """Return the kernels and links of a catalogue chip, or those of its fallback.

    ``link_bandwidth``: the chip's ``scale_up_bandwidth``. Bandwidths of all-reduces that were timed with other links
    are scaled by it; latencies stay, and PCIe cards without a bridge keep the bus of public boxes. Default: as timed.

    Examples
    --------
    >>> operators("H100 SXM").kernel("gemm", "bf16").share
    0.8736
    """
    lender = fallback_chip(chip)
    found = {kind: timed_kernels(lender, kind) for kind in KINDS}
    lenders = {}
    for kind, known in found.items():
        every = {timed: timed_kernels(timed, kind) for timed in GENERATION}
        for name in dict.fromkeys(name for of_chip in every.values() for name in of_chip):
            kin = kin_of(lender, lambda other: name in every[other])  # noqa: B023
            if kin != lender:
                lenders[kind, name] = kin
                known[name] = _multiplying(every[kin][name], name, kin, lender, known)
    most = memory_share(chip)
    if most:
        for known in found.values():
            known |= {name: kernel.replace(share=min(kernel.share, most)) for name, kernel in known.items()}
    for known in found.values() if chip.startswith(COMPILED_STEP_PREFIX) else ():
        known |= {name: kernel.replace(start=0, depth=0) for name, kernel in known.items()}
    links = {kind: timed_kernels(lender, kind) for kind in LINKS}
    card, times, bus_time = is_card(lender), 1.0, 0.0
    if card:
        bus_time = bus_bandwidth(chip, 8) / links["library"][8].bandwidth
    if link_bandwidth is not None and (not card or chip_fact(chip, "topology") == "bridge"):
        # So do all-reduces of NCCL: 215 GB/s on eight H800, 480 on eight H100 (github.com/NVIDIA/nccl/issues/1374); of
        # pairs with a bridge about 0.4 of its bandwidth: 116 GB/s on two H100 PCIe (nccl#1161), 22 on two RTX 2080 Ti
        # (nccl-tests#44).
        times = link_bandwidth / load_chip(lender).scale_up_bandwidth
    links = {  # cards are no slower than public boxes
        kind: {
            n: link.replace(bandwidth=max(times * link.bandwidth, bus_bandwidth(chip, n) if card else 0))
            for n, link in known.items()
        }
        for kind, known in links.items()
    }
    share = load_operators()["exchange"]["share"][0]
    kinds = dict.fromkeys(of[0] for known in timed_blocks().values() for of in known)
    block_chips = {kind: block_fallback_chip(chip, kind) for kind in kinds}
    return Operators(
        share, **found, **links, blocks=blocks_of(block_chips), lenders=lenders, block_chips=block_chips,
        lender=lender, chip=chip, bus=bus_time, memory_share=most,
    )  # fmt: skip


def memory_share(chip):
    """Share of its bandwidth that a chip's memory reads at most, if no chip with such memory was timed; else None."""
    return load_operators()["memory"].get(chip_fact(chip, "memory_type"), [None])[0]


def bus(chip=""):
    """Bytes per second that each card of a public box sends over PCIe 4, or over the older PCIe of a chip."""
    return load_operators()["pcie"]["bus"][0] * (chip_fact(chip, "pcie_share") or 1)


def bus_bandwidth(chip, n_chips):
    """Bandwidth of an all-reduce of cards on PCIe in public boxes: each card sends 2 (n - 1) / n times the message."""
    return bus(chip) * n_chips / (2 * (n_chips - 1))


def timed_kernels(chip, kind):
    """Constants of one kind of operator timed on a chip, by format or number of chips."""
    record, key = (Link, int) if kind in LINKS else (Kernel, str)
    timed = load_operators()["chips"][chip].get(kind, {}).items()
    return {key(name): record(**{n: v[0] for n, v in values.items()}) for name, values in timed}


def is_card(name):
    """Whether a chip is a PCIe card without links of its own."""
    return load_chip(name).topology == "PCIe"


def kin_of(chip, has):
    """Return the nearest timed chip for which ``has`` holds: itself, else by form factor, generation and bandwidth."""
    own = load_chip(chip)

    def apart(name):
        other = load_chip(name)
        bandwidth = abs(log2(other.memory_bandwidth / own.memory_bandwidth))
        generations = abs(GENERATION[name] - GENERATION[chip])
        return name != chip, is_card(name) != is_card(chip), generations, bandwidth

    return min(filter(has, GENERATION), key=apart, default=None)


def _multiplying(kernel, name, lent_by, chip, own):
    """Adapt another chip's kernel: if that chip multiplies in another format, take this chip's shares of the peak."""
    theirs, ours = (
        next((format for format in FORMATS[name].multiplied if format in load_chip(of).peaks), "bf16")
        for of in (lent_by, chip)
    )
    if theirs == ours:
        return kernel
    like = own.get(ours) or own["bf16"]
    return kernel.replace(prefill=like.prefill, half=like.half)


@cache
def listed_blocks():
    """Rows of ``sparse_attention.csv`` by chip, then by kind, engine class, model width and formats."""
    import csv

    found = {}
    lines = validation.read_package_file(__file__, "sparse_attention.csv").splitlines()
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        of = row["kind"], row["engine"], int(row["width"] or 0), row["weights"], row["cache"]
        found.setdefault(row["chip"], {})[of] = row
    return found


@cache
def timed_blocks():
    """:func:`listed_blocks` that are not doubted."""
    return {
        chip: {of: row for of, row in rows.items() if not row["doubted"]}
        for chip, rows in listed_blocks().items()
    }


def block_of(row):
    """Return the constants in a row of ``sparse_attention.csv``."""
    known = {name: float(row[name] or 0) for name in ("share", "entry")}
    for name in ("start_us", "row_us", "select_us", "position_ns", "token_ns"):
        known[name[:-3]] = float(row[name] or 0) * (1e-6 if name.endswith("us") else 1e-9)
    known |= {name: float(row[name] or NO_TIME) for name in ("projections", "read", "scores")}
    # the kernels of recurrent states reach this share of the 16-bit peak in prefill
    return Block(**known) if row["width"] else Block(**known, prefill=float(row["projections"] or 1))


def block_fallback_chip(chip, kind):
    """Return the chip whose timings of a kind of block are used: itself, or the nearest timed chip."""

    def has(name):
        return any(of[0] == kind for of in timed_blocks().get(name, ()))

    return chip if has(chip) else kin_of(fallback_chip(chip), has)


def blocks_of(chips):
    """All timed blocks of each kind, from the chip given for it."""
    return {
        of: block_of(row)
        for kind, chip in chips.items()
        for of, row in timed_blocks()[chip].items()
        if of[0] == kind
    }


def stored_bytes(name):
    """Bytes of one stored weight, scales included; a number is returned unchanged.

    Examples
    --------
    >>> stored_bytes("fp4"), stored_bytes(0.53125)
    (0.5625, 0.53125)
    """
    if not isinstance(name, str):
        return name
    return FORMATS[name if name in FORMATS else validation.one_of("format", name, FORMATS)].stored / 8


def format_name(name):
    """Return the format whose kernels serve weights of a format or of this many bytes.

    Examples
    --------
    >>> format_name("fp16"), format_name(4.25 / 8)
    ('bf16', 'mxfp4')
    """
    if not isinstance(name, (str, Real)):
        return ANY_DTYPE
    name = name if isinstance(name, str) else nearest(name)
    return "bf16" if name in ("fp16", "fp32") else name


PARTS = ("attention", "feed-forward", "experts", "shared experts", "router", "head")


def formats(model, weights, keep=None):
    """Return the format of each part of a model; ``keep`` overrides parts, as in ``{"attention": "bf16"}``.

    Checkpoints below 16 bits keep head and router at 16; mixtures of experts in 8 bits have block scales.
    """
    for part, name in (keep or {}).items():
        validation.one_of("part", part, PARTS)
        stored_bytes(name)
    base = "fp8 block" if weights == "fp8" and model.sparse else weights
    head = weights if weights in ("fp16", "fp32") else "bf16"
    return dict.fromkeys(PARTS, base) | {"head": head, "router": head} | dict(keep or {})


def checkpoint_formats(model):
    """Formats of a checkpoint: of its matrices, of the parts that differ, and of its KV cache.

    Examples
    --------
    >>> from inferlib import load_model
    >>> checkpoint_formats(load_model("gpt-oss-120b"))[:2]
    ('mxfp4', {'attention': 'bf16'})
    """
    stored = {part: n for part, n in model.formats.items() if part in PARTS}
    if not stored:
        return "bf16", {}, "bf16"
    most = next(part for part in ("experts", "feed-forward", "attention") if part in stored)
    kept = {part: _named(n, model.sparse) for part, n in stored.items()}
    weights = whole_format(kept[most])
    implied = formats(model, weights)
    kept = {part: name for part, name in kept.items() if name != _named(implied[part], model.sparse)}
    return weights, kept, _named(model.formats.get("cache", 2), False)


def whole_format(format):
    """Return the format for all matrices; which of them scale blocks follows from the model."""
    return "fp8" if format == "fp8 block" else format


def _named(bytes, sparse):
    """Return the name of the format with this many bytes per value, or the bytes if none fits."""
    name = format_name(bytes)
    size = stored_bytes(bytes)
    if abs(stored_bytes(name) / size - 1) > SAME:
        return bytes
    return "fp8 block" if name == "fp8" and sparse else name
