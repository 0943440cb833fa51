"""Where the constants of chips and engines come from: tables of timed operators, and fits to whole steps."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from numbers import Real

from inferlib import checks
from inferlib.equation import Record, quantity
from inferlib.ops import interpolated, log2
from inferlib.serving.kernels import Engine, Kernel, Link

# Bytes of one weight as it is stored: 4-bit formats bring a scale for each group (of 32, 16, 32 weights).
STORED = {
    "bf16": 2, "fp16": 2, "fp32": 4, "fp8": 1, "fp8 block": 1, "int8": 1, "int4": 5 / 8, "fp4": 9 / 16,
    "mxfp4": 17 / 32,
}  # fmt: skip
# Whose operators are used where a chip has none in the tables: the one nearest in age and memory.
NEIGHBOURS = {
    "V100 SXM2": "A100 80GB", "A100 40GB": "A100 80GB", "H100 PCIe": "H100 SXM", "H800": "H100 SXM",
    "H20": "H200", "RTX 4090": "L40S", "MI250X GCD": "A100 80GB", "MI300X": "H100 SXM", "MI325X": "H200",
    "MI355X": "B200", "TPU v4": "A100 80GB", "TPU v5e": "A100 80GB", "TPU v5p": "H100 SXM",
    "TPU v6e": "H100 SXM", "Groq LPU": "H100 SXM", "H100 NVL": "H100 SXM", "GH200": "H200", "L4": "L40S",
    "RTX 5090": "RTX PRO 6000", "DGX Spark": "RTX PRO 6000", "Gaudi 3": "H100 SXM", "Trainium 2": "H100 SXM",
    "TPU7x Ironwood": "B200",
}  # fmt: skip
_LIKE = {"fp16": "bf16", "fp32": "bf16", "tf32": "bf16", "fp8 block": "fp8", "mxfp4": "fp4", "int8": "fp8"}
ANY = "any"


@dataclass(frozen=True, eq=False)
class Operators(Record):
    """The kernels of one chip: Mappings of a number format to a Kernel, and Links by chips."""

    exchange: float = quantity("1", "share of a network that dispatch and combine reach", maximum=1)
    gemm: Mapping = field(default_factory=dict)
    experts: Mapping = field(default_factory=dict)
    attention: Mapping = field(default_factory=dict)
    reduce: Mapping = field(default_factory=dict)
    library: Mapping = field(default_factory=dict)
    chip: str = ""

    def kernel(self, kind, name):
        """The kernel of a kind (gemm, experts, attention) for a format, or for the nearest it has."""
        found = getattr(self, kind)
        while name not in found and ANY not in found:
            if name not in _LIKE and "bf16" not in found:
                raise LookupError(f"the operators of {self.chip} have no {kind} in {name}")
            name = _LIKE.get(name, "bf16")
        return found.get(name) or found[ANY]

    def link(self, n_chips, kind="reduce"):
        """The all-reduce of ``n_chips``: between the degrees measured by straight lines in their doublings."""
        links = getattr(self, kind)
        if isinstance(n_chips, Real) and n_chips in links:
            return links[n_chips]
        at = [log2(n) for n in links]
        place = log2(n_chips)
        latency, bandwidth = (
            [getattr(link, name) for link in links.values()] for name in ("latency", "bandwidth")
        )
        return Link(interpolated(place, at, latency), interpolated(place, at, bandwidth))


@cache
def stated():
    """``operators.toml``, read."""
    return tomllib.loads((files("inferlib.serving") / "operators.toml").read_text("utf-8"))


@cache
def engines():
    """``engines.toml``, read: the constants of each class, and whose software belongs to it."""
    return tomllib.loads((files("inferlib.serving") / "engines.toml").read_text("utf-8"))


def engine(name=None):
    """The constants of a class of engine.

    Parameters
    ----------
    name : str or Engine, optional
        ``"compiled"`` (TensorRT-LLM, gpt-fast, TurboMind), ``"serving"`` (vLLM and SGLang of 2025 and 2026; also
        when none is given) or ``"python-2024"`` (vLLM of 2024).

    Raises
    ------
    LookupError
        If there is no such class.

    Examples
    --------
    >>> engine("compiled").layer < engine("serving").layer
    True
    """
    if isinstance(name, Engine):
        return name
    classes = engines()["class"]
    name = checks.one_of("engine", name or "serving", classes)
    return Engine(**{key: value[0] for key, value in classes[name].items()}, name=name)


def engine_class(software):
    """The class of engine that a publisher's name of its software belongs to (``engines.toml``).

    Examples
    --------
    >>> engine_class("TensorRT-LLM 0.6.1"), engine_class("vLLM (2024-03)"), engine_class("vllm")
    ('compiled', 'python-2024', 'serving')
    """
    for word, name in engines()["software"]:
        if word in software.lower():
            return name
    return "serving"


def lender(chip):
    """The chip whose operators stand for this one: itself, a neighbour, or the H100 where nobody is near."""
    return chip if chip in stated()["chips"] else NEIGHBOURS.get(chip, "H100 SXM")


@cache
def operators(chip):
    """The kernels and links of a chip, its neighbour's where it has none of its own.

    Parameters
    ----------
    chip : str
        A name of the catalogue.

    Examples
    --------
    >>> operators("H100 SXM").kernel("gemm", "bf16").share
    0.858
    """
    entry = stated()["chips"][lender(chip)]
    made = {}
    for kind, record in (
        ("gemm", Kernel),
        ("experts", Kernel),
        ("attention", Kernel),
        ("reduce", Link),
        ("library", Link),
    ):
        made[kind] = {
            int(name) if record is Link else name: record(**{key: value[0] for key, value in values.items()})
            for name, values in entry.get(kind, {}).items()
        }
    return Operators(stated()["exchange"]["share"][0], **made, chip=chip)


def one_kernel(gemm, attention, reduce, experts=None, head=None):
    """Operators with one kernel of each kind, whatever the format: for symbols and for what-ifs.

    Parameters
    ----------
    gemm, attention, experts, head : Kernel
        ``head`` for what stays at 16 bits; ``gemm`` where not given.
    reduce : Mapping
        Chips to a Link.

    Returns
    -------
    Operators
    """
    return Operators(
        exchange=1,
        gemm={ANY: gemm, "bf16": head or gemm},
        experts={ANY: experts or gemm},
        attention={ANY: attention},
        reduce=reduce,
        library=reduce,
    )


def stored_bytes(name):
    """Bytes of one stored weight, scales included; a number stands for itself.

    Examples
    --------
    >>> stored_bytes("fp4"), stored_bytes(0.53125)
    (0.5625, 0.53125)
    """
    return STORED[checks.one_of("format", name, STORED)] if isinstance(name, str) else name


def format_name(name):
    """The format whose kernels serve a weight of so many bytes.

    Examples
    --------
    >>> format_name("fp16"), format_name(4.25 / 8)
    ('bf16', 'mxfp4')
    """
    if isinstance(name, str):
        return "bf16" if name in ("fp16", "fp32") else name
    if not isinstance(name, Real):
        return ANY
    return min(
        (f for f in STORED if f not in ("fp16", "fp32", "int8", "fp8 block")),
        key=lambda f: abs(STORED[f] - name),
    )


def multiplied_in(name):
    """The formats in which a chip may multiply weights of a format, the best first; the chip's own after them.

    Examples
    --------
    >>> multiplied_in("mxfp4"), multiplied_in("int4")
    (('fp4', 'fp8'), ())
    """
    small = {"fp8 block": "fp8", "mxfp4": "fp4"}.get(name, name)
    if small.startswith("int"):
        return ()
    return ("fp4", "fp8") if small == "fp4" else (small,)


PARTS = ("attention", "feed-forward", "experts", "shared experts", "router", "head")


def formats(model, weights, keep=None):
    """The format of each part of a model's matrices.

    Checkpoints with fewer than 16 bits leave head and router at 16; mixtures of experts in 8 bits scale blocks.

    Parameters
    ----------
    model : Transformer
    weights : str or float
    keep : Mapping, optional
        Parts in another format, such as ``{"attention": "bf16"}``.

    Returns
    -------
    dict
    """
    for part, name in (keep or {}).items():
        checks.one_of("part", part, PARTS)
        stored_bytes(name)
    base = "fp8 block" if weights == "fp8" and model.sparse else weights
    head = weights if weights in ("fp16", "fp32") else "bf16"
    return dict.fromkeys(PARTS, base) | {"head": head, "router": head} | dict(keep or {})
