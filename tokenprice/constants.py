"""Where the constants of chips and engines come from: tables of timed operators, and fits to whole steps."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from numbers import Real

from inferlib import checks, tables
from inferlib.catalog import load_chip
from inferlib.equation import Record, frozen, quantity
from inferlib.formats import FORMATS, nearest
from inferlib.ops import interpolated, log2
from tokenprice.kernels import Block, Engine, Kernel, Link

# Whose operators are used where a chip has none in the tables: the one nearest in age and memory.
NEIGHBOURS = {
    "V100 SXM2": "A100 80GB", "A100 40GB": "A100 80GB", "H100 PCIe": "H100 SXM", "H800": "H100 SXM",
    "H20": "H200", "RTX 4090": "L40S", "MI250X GCD": "A100 80GB", "MI300X": "H100 SXM", "MI325X": "H200",
    "MI355X": "B200", "TPU v4": "A100 80GB", "TPU v5e": "A100 80GB", "TPU v5p": "H100 SXM",
    "TPU v6e": "H100 SXM", "Groq LPU": "H100 SXM", "H100 NVL": "H100 SXM", "GH200": "H200", "L4": "L40S",
    "RTX 5090": "RTX PRO 6000", "RTX PRO 6000 Workstation": "RTX PRO 6000", "RTX 3090": "L40S", "A10G": "L40S",
    "T4": "L40S", "DGX Spark": "RTX PRO 6000", "Gaudi 3": "H100 SXM", "Trainium 2": "H100 SXM",
    "TPU7x Ironwood": "B200",
}  # fmt: skip
# MiB of one chip as its driver shows them (nvidia-smi in public logs), where that is not what the data sheet says.
SHOWN = {
    "V100 SXM2": 16160, "A100 40GB": 40960, "A100 80GB": 81920, "H100 SXM": 81559, "H100 PCIe": 81559,
    "H100 NVL": 95830, "H200": 143771, "GH200": 97871, "B200": 183359, "L4": 23034, "L40S": 46068, "RTX 4090": 24564,
    "RTX 5090": 32607, "RTX PRO 6000": 97887, "RTX PRO 6000 Workstation": 97887, "RTX 3090": 24576, "A10G": 23028,
    "T4": 15360,
}  # fmt: skip
CARDS = 8  # that share a box and its PCIe, where they have no links of their own
ONE_PROGRAM = "TPU"  # a step on such chips is one compiled program: no kernel of its own is started
ANY = "any"
NO_TIME = 1e9  # the share of a term for which a fit found no time
BLOCK_NEIGHBOURS = {"RTX PRO 6000": "B200"}  # any other chip without blocks of a kind: the H100


@frozen
class Operators(Record):
    """The kernels of one chip: Mappings of a number format to a Kernel, and Links by chips."""

    exchange: float = quantity("share of a network that dispatch and combine reach", maximum=1)
    gemm: Mapping = field(default_factory=dict)
    experts: Mapping = field(default_factory=dict)
    attention: Mapping = field(default_factory=dict)
    reduce: Mapping = field(default_factory=dict)
    library: Mapping = field(default_factory=dict)
    blocks: Mapping = field(default_factory=dict)
    chip: str = ""

    def kernel(self, kind, name):
        """The kernel of a kind (gemm, experts, attention) for a format, or for the nearest it has."""
        found = getattr(self, kind)
        while name not in found and ANY not in found:
            if name == "bf16":
                raise LookupError(f"the operators of {self.chip} have no {kind} in {name}")
            name = FORMATS[name].like or "bf16" if name in FORMATS else "bf16"
        return found.get(name) or found[ANY]

    def block(self, kind, engine="", width=0, weights="", cache=""):
        """The block of a kind that was timed nearest to a class of engine, a width of the model and formats."""

        def distance(timed):
            _, of, wide, stored, kept = timed
            bytes_off = abs(stored_bytes(stored) - stored_bytes(weights)) if stored else 0
            return of != engine, abs(wide - width), bytes_off, kept != cache

        known = [timed for timed in self.blocks if timed[0] == kind]
        if not known:
            raise LookupError(f"the operators of {self.chip or 'this chip'} have no {kind}")
        return self.blocks[min(known, key=distance)]

    def link(self, n_chips, kind="reduce"):
        """The all-reduce of ``n_chips``: between the degrees measured by straight lines in their doublings."""
        links = getattr(self, kind)
        if isinstance(n_chips, Real) and n_chips in links:
            return links[n_chips]
        at = [log2(n) for n in links]
        place = log2(n_chips)
        fields = ([getattr(link, name) for link in links.values()] for name in ("latency", "bandwidth"))
        return Link(*(interpolated(place, at, values) for values in fields))


@cache
def stated():
    """``operators.toml``, read."""
    return tables.read(checks.beside(__file__, "operators.toml"), "chips")


@cache
def engines():
    """``engines.toml``, read: the constants of each class, and whose software belongs to it."""
    return tomllib.loads(checks.beside(__file__, "engines.toml"))


def engine(name=None):
    """The constants of a class of engine.

    ``"compiled"`` (TensorRT-LLM, gpt-fast, TurboMind), ``"serving"`` (vLLM and SGLang of 2025 and 2026; also when
    none is given) or ``"python-2024"`` (vLLM before its version 0.8 of early 2025).
    """
    return name if isinstance(name, Engine) else _engine(name or "serving")


@cache
def _engine(name):
    known = engines()["class"][checks.one_of("engine", name, engines()["class"])]
    return Engine(**{key: value[0] for key, value in known.items()}, name=name)


def engine_class(software):
    """The class of engine that a publisher's name of its software belongs to (``engines.toml``).

    Examples
    --------
    >>> [engine_class(name) for name in ("TensorRT-LLM 0.6.1", "vLLM 0.7.3", "vLLM 0.19.0", "vllm")]
    ['compiled', 'python-2024', 'serving', 'serving']
    """
    known = (name for pattern, name in engines()["software"] if re.search(pattern, software.lower()))
    return next(known, "serving")


def memory(chip):
    """Bytes of a chip as the driver shows them; of one whose memory somebody changed, that."""
    name, stated = chip.name, chip.memory_capacity
    return SHOWN[name] * 2**20 if name in SHOWN and load_chip(name).memory_capacity == stated else stated


def box(chip):
    """Chips that send to one another without a network between boxes: a domain, or cards on PCIe; None if not known."""
    return CARDS if chip.topology == "PCIe" and chip.scale_up_size == 1 else chip.scale_up_size


def slower(chip):
    """How many times as long a chip takes as the kernels that are lent to it: the median of its public rows; else 1."""
    return engines()["slower"].get(chip, (1.0,))[0]


def lender(chip):
    """The chip whose operators stand for this one: itself, a neighbour, or the H100 where nobody is near."""
    return chip if chip in stated()["chips"] else NEIGHBOURS.get(chip, "H100 SXM")


@cache
def operators(chip):
    """The kernels and links of a chip of the catalogue, its neighbour's where it has none of its own.

    Examples
    --------
    >>> operators("H100 SXM").kernel("gemm", "bf16").share
    0.8736
    """
    entry = stated()["chips"][lender(chip)]

    def made(kind, record, key=str):
        tables = entry.get(kind, {}).items()
        return {key(name): record(**{n: v[0] for n, v in values.items()}) for name, values in tables}

    kernels = {kind: made(kind, Kernel) for kind in ("gemm", "experts", "attention")}
    for known in kernels.values() if chip.startswith(ONE_PROGRAM) else ():
        known |= {name: kernel.replace(start=0, depth=0) for name, kernel in known.items()}
    links = {kind: made(kind, Link, int) for kind in ("reduce", "library")}
    return Operators(stated()["exchange"]["share"][0], **kernels, **links, blocks=blocks_of(chip), chip=chip)


@cache
def timed_blocks():
    """``blocks.csv``, read: chip to the rows of its blocks by kind, class of engine, width of the model and formats."""
    import csv

    found = {}
    lines = checks.beside(__file__, "blocks.csv").splitlines()
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        of = row["kind"], row["engine"], int(row["width"] or 0), row["weights"], row["cache"]
        found.setdefault(row["chip"], {})[of] = row
    return found


def _block(row):
    known = {name: float(row[name] or 0) for name in ("share", "entry")}
    for name in ("start_us", "row_us", "select_us", "position_ns", "token_ns"):
        known[name[:-3]] = float(row[name] or 0) * (1e-6 if name.endswith("us") else 1e-9)
    known |= {name: float(row[name] or NO_TIME) for name in ("projections", "read", "scores")}
    # kernels of a state multiply chunks of a prompt at this share of the 16-bit peak
    return Block(**known) if row["width"] else Block(**known, prefill=float(row["projections"] or 1))


def block_lender(chip, kind):
    """The chip whose timings of a kind of block are used for a chip: its own, its lender's, or a neighbour's."""
    lent = lender(chip)
    chips = chip, lent, BLOCK_NEIGHBOURS.get(lent, "H100 SXM")
    return next(name for name in chips if any(of[0] == kind for of in timed_blocks().get(name, ())))


def blocks_of(chip):
    """All blocks of a chip, another's where it has none of a kind."""

    def rows():
        kinds = dict.fromkeys(of[0] for known in timed_blocks().values() for of in known)
        lent = {kind: timed_blocks()[block_lender(chip, kind)] for kind in kinds}
        return {of: row for kind, known in lent.items() for of, row in known.items() if of[0] == kind}

    return tables.Later(rows, _block)


def stored_bytes(name):
    """Bytes of one stored weight, scales included; a number stands for itself.

    Examples
    --------
    >>> stored_bytes("fp4"), stored_bytes(0.53125)
    (0.5625, 0.53125)
    """
    if not isinstance(name, str):
        return name
    return FORMATS[name if name in FORMATS else checks.one_of("format", name, FORMATS)].stored / 8


def format_name(name):
    """The format whose kernels serve a weight of so many bytes.

    Examples
    --------
    >>> format_name("fp16"), format_name(4.25 / 8)
    ('bf16', 'mxfp4')
    """
    if not isinstance(name, (str, Real)):
        return ANY
    name = name if isinstance(name, str) else nearest(name)
    return "bf16" if name in ("fp16", "fp32") else name


PARTS = ("attention", "feed-forward", "experts", "shared experts", "router", "head")


def formats(model, weights, keep=None):
    """The format of each part of a model's matrices; ``keep`` gives some another, as in ``{"attention": "bf16"}``.

    Checkpoints with fewer than 16 bits leave head and router at 16; mixtures of experts in 8 bits scale blocks.
    """
    for part, name in (keep or {}).items():
        checks.one_of("part", part, PARTS)
        stored_bytes(name)
    base = "fp8 block" if weights == "fp8" and model.sparse else weights
    head = weights if weights in ("fp16", "fp32") else "bf16"
    return dict.fromkeys(PARTS, base) | {"head": head, "router": head} | dict(keep or {})
