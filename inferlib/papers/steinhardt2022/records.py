"""The records of Steinhardt 2022: a machine, and what the post assumes beside it."""

from collections.abc import Mapping
from functools import partial
from numbers import Real

from inferlib import validation
from inferlib.equation import Record, load_source, quantity, stated_sources
from inferlib.papers.source import load, needs, stated_quantity
from inferlib.system import NotDescribed, count as whole
from inferlib.units import parse

STATED = load_source("steinhardt2022")
WITHOUT_LIMIT = 1e18  # B/s: a network faster than any machine can use
NETWORKS = {"scale-out": "scale_out_bandwidth", "links": "scale_up_bandwidth", "none": None}


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
