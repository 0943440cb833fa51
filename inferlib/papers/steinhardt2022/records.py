"""Steinhardt 2022: a machine, what the post assumes beside it, and the machines that chips of the catalogue make."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from numbers import Real

from inferlib import checks
from inferlib.catalog import record
from inferlib.equation import Record, quantity
from inferlib.system import Accelerator, count as whole
from inferlib.units import parse

WITHOUT_LIMIT = 1e18  # B/s: a network faster than any machine has a use for
NETWORKS = {"scale-out": "scale_out_bandwidth", "links": "scale_up_bandwidth", "none": None}


@cache
def stated():
    """The post's ``assumptions.toml`` as it is written: units as text."""
    return tomllib.loads((files("inferlib.papers.steinhardt2022") / "assumptions.toml").read_text("utf-8"))


@dataclass(frozen=True)
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
    sources: Mapping = field(default_factory=dict, compare=False)

    def __post_init__(self):
        super().__post_init__()
        checks.number("Machine.chips", self.chips, minimum=1)


def _assumed(name, unit):
    return parse(stated()["assumptions"][name], unit)


@dataclass(frozen=True)
class Assumptions(Record):
    """What the post assumes beyond the machine; the default reproduces what it prints.

    Examples
    --------
    >>> Assumptions().multiplies_per_layer, Assumptions.corrected().multiplies_per_layer
    (2.0, 4.0)
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

    @classmethod
    def corrected(cls):
        """Without the post's slips: the multiplies of a layer that run one after the other are four."""
        return cls(multiplies_per_layer=_assumed("serial_multiplies_per_layer", "1"))


PRINTED = Assumptions()


def chips():
    """The names of the machines that the post describes by their chip.

    Examples
    --------
    >>> chips()
    ['A100', 'A100, warm-up']
    """
    return list(stated()["machines"])


def load_chip(name="A100"):
    """A chip of the post, in its machine.

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
        If the post has no such chip; near names are suggested.

    Examples
    --------
    >>> load_chip("A100").network_bandwidth
    2000000000000.0
    """
    return record(Machine, stated()["machines"][checks.one_of("chip", name, chips())], name=name)


def chip_of(accelerator, count=None, network="scale-out"):
    """A chip of the catalogue as the post sees it: in one of several equal machines.

    A machine is a scale-up domain: traffic inside it is free, and what leaves it takes the network.

    Parameters
    ----------
    accelerator : Accelerator
    count : int, optional
        Chips in the machine; when not given the chip's ``scale_up_size``, and 1 with ``"links"``.
    network : {"scale-out", "links", "none"}
        What joins machines: each chip's ``scale_out_bandwidth``; for a chip whose domain has no switch, its links
        to its neighbours (``scale_up_bandwidth``); or nothing, where one machine holds all of a model.

    Returns
    -------
    Machine
        Its network is ``count`` times the bandwidth of one chip, or :data:`WITHOUT_LIMIT` where nothing leaves it.

    Raises
    ------
    TypeError
        If ``accelerator`` is not an Accelerator.
    ValueError
        If ``count`` is not a whole number of at least 1, if the chip states no such bandwidth, or no size
        and ``count`` is not given.
    LookupError
        If ``network`` is none of the three.

    Examples
    --------
    >>> import inferlib
    >>> chip_of(inferlib.load_chip("H100 SXM")).network_bandwidth
    400000000000.0
    >>> tpu = inferlib.load_chip("TPU v4")
    >>> chip_of(tpu, network="links").chips, int(chip_of(tpu, network="none").chips)
    (1, 4096)
    """
    if not isinstance(accelerator, Accelerator):
        raise TypeError(f"accelerator is a {type(accelerator).__name__}, but must be an Accelerator")
    name = NETWORKS[checks.one_of("network", network, NETWORKS)]
    each = getattr(accelerator, name) if name else None
    if name and each is None:
        raise ValueError(
            f"chip {accelerator.name!r} states no {name}, so no bandwidth from one machine to another"
        )
    count, stands = _size_of(accelerator, 1 if network == "links" and count is None else count)
    if name:
        so_many = f"{count:g}" if isinstance(count, Real) else count
        bandwidth = count * each
        stands["network_bandwidth"] = f"{so_many} times {name}: {stands.get(name, 'not stated')}"
    else:
        bandwidth = WITHOUT_LIMIT
        stands["network_bandwidth"] = "without limit: nothing leaves a machine by itself"
    rates = accelerator.flops, accelerator.memory_bandwidth, bandwidth, count
    return Machine(*rates, name=accelerator.name, sources=stands)


def _size_of(chip, count):
    """How many chips a machine has, and the chip's sources with that of the number."""
    stated = chip.sources.get("scale_up_size", "")
    if count is None:
        if chip.scale_up_size is None:
            raise ValueError(f"chip {chip.name!r} states no scale_up_size, so count must be given")
        return chip.scale_up_size, chip.sources | {"chips": stated}
    return whole("count", count), chip.sources | {"chips": "given"}
