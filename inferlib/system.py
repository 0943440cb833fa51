"""Inputs of a model of inference (chip, system, workload, layout) and its answer, a breakdown of a step."""

import inspect
import re
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property, partial, wraps
from numbers import Integral, Real

from inferlib import validation
from inferlib.equation import Record, frozen, quantity, record_arguments, stated_sources
from inferlib.formats import FORMATS
from inferlib.ops import maximum, minimum
from inferlib.optional_imports import is_array

TOPOLOGIES = ("", "switch", "mesh", "torus", "bridge", "PCIe", "none")


def format_bytes(name):
    """Return the bytes of one value in a number format; a number (or symbol) is returned unchanged.

    Examples
    --------
    >>> format_bytes("bf16"), format_bytes("fp4"), format_bytes(4.25 / 8)
    (2.0, 0.5, 0.53125)
    """
    if not isinstance(name, str):
        return validation.number("format", name)
    return FORMATS[name if name in FORMATS else validation.one_of("format", name, FORMATS)].bits / 8


def bytes_of_formats(**formats):
    """Return the bytes of one value of each format that is not None, by field."""
    return {field: format_bytes(format) for field, format in formats.items() if format is not None}


class Accelerator(Record):
    """One chip, with the arithmetic peak of ``format``.

    ``peaks`` has the dense peak of every format the chip computes in; :meth:`at` picks another. Unknown numbers are
    None; ``sources`` says where each number is stated. ``topology`` says how the ``scale_up_size`` chips of a domain
    are linked: with a ``"switch"`` or a full ``"mesh"`` any chip sends to any other at its full bandwidth; a
    ``"torus"`` links neighbours, a ``"bridge"`` pairs, and ``"PCIe"`` has no links of its own; empty if not stated.

    Examples
    --------
    >>> Accelerator(1e15, 3e12, price=0).price  # one's own
    0
    """

    flops: float = quantity("dense arithmetic peak of one chip", "FLOP/s")
    memory_bandwidth: float = quantity("memory bandwidth of one chip", "B/s")
    memory_capacity: float = quantity("memory of one chip", "B", default=None)
    scale_up_bandwidth: float = quantity(
        "one-way bandwidth of one chip inside its domain", "B/s", default=None
    )
    scale_out_bandwidth: float = quantity("one-way network bandwidth of one chip", "B/s", default=None)
    scale_up_size: float = quantity("chips in one scale-up domain", default=None)
    price: float = quantity("price of one chip for an hour", "usd/h", default=None, zero=True)
    power: float = quantity("power that one chip may draw", "W", default=None)
    name: str = ""
    format: str = "bf16"
    peaks: Mapping = field(default_factory=dict)
    sources: Mapping = stated_sources()
    topology: str = ""

    def __post_init__(self):
        super().__post_init__()
        validation.one_of("topology", self.topology, TOPOLOGIES)

    def at(self, format):
        """Return the same chip computing in another number format; LookupError if it has no such format."""
        if format == self.format and (self.peaks.get(format) == self.flops) is True:
            return self
        peak = self.peaks[validation.one_of(f"format of {self.name or 'this chip'}", format, self.peaks)]
        sources = dict(self.sources)
        if format in sources:
            sources["flops"] = sources[format]
        return self.replace(flops=peak, format=format, sources=sources)


def count(name, value):
    """Validate a count: a concrete value must be a whole number of at least 1."""
    taken = validation.number(name, value, minimum=1)
    if type(taken) is int:
        return taken
    part = taken % 1 != 0 if isinstance(taken, Real) else is_array(taken) and (taken % 1 != 0).any()
    if part:
        raise ValueError(f"{name} is {value}, but must be a whole number")
    return int(value) if isinstance(value, Integral) else taken


class System(Record):
    """A number of equal chips; ``domain`` of them share one scale-up network."""

    chip: Accelerator
    count: int
    domain: int | None = None

    def __post_init__(self):
        validation.instance("System.chip", self.chip, Accelerator)
        object.__setattr__(self, "count", count("System.count", self.count))
        if self.domain is None:
            object.__setattr__(self, "domain", minimum(self.count, self.chip.scale_up_size or self.count))
        object.__setattr__(self, "domain", count("System.domain", self.domain))
        if isinstance(self.count, Real) and isinstance(self.domain, Real) and self.domain > self.count:
            raise ValueError(f"System.domain is {self.domain}, but must be at most count, {self.count}")

    @property
    def memory(self):
        """Memory of all chips in bytes, or None if the chip's is unknown."""
        return None if self.chip.memory_capacity is None else self.count * self.chip.memory_capacity

    def hold(self, needed, what="weights and cache"):
        """Raise :class:`DoesNotFit` if so many bytes exceed the memory; symbols and unknown memory always pass."""
        have = self.memory
        if isinstance(needed, Real) and isinstance(have, Real) and needed > have:
            digits = 1 if round(needed / 1e9) == round(have / 1e9) else 0
            raise DoesNotFit(
                f"{needed / 1e9:.{digits}f} GB of {what} exceed the {have / 1e9:.{digits}f} GB of {self}"
            )

    def __str__(self):
        return of_chip(self.count, self.chip.name)


def of_chip(count, name):
    """Format a number of chips; a rack's name is marked as a number of its GPUs.

    Examples
    --------
    >>> of_chip(8, "H100 SXM"), of_chip(1, "GB200 NVL72"), of_chip(32, "GB200 NVL72")
    ('8 × H100 SXM', '1 GPU of GB200 NVL72', '32 GPUs of GB200 NVL72')
    """
    gpus = "GPU" if count == 1 else "GPUs"
    return f"{count} {gpus} of {name}" if re.search(r"NVL\d", name) else f"{count} × {name}"


class Workload(Record):
    """Sequences decoded together, each at a ``context`` length, in given number formats.

    A format is a name, or bytes per value if no name fits.
    """

    batch: float = quantity("sequences decoded together")
    context: float = quantity("tokens of context of each sequence", default=0)
    weights: str = "bf16"
    cache: str = "bf16"

    def __post_init__(self):
        super().__post_init__()
        format_bytes(self.weights), format_bytes(self.cache)


class Layout(Record):
    """Degrees of tensor, pipeline, expert and data parallelism."""

    tp: int = 1
    pp: int = 1
    ep: int = 1
    dp: int = 1

    def __post_init__(self):
        for name in ("tp", "pp", "ep", "dp"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise ValueError(f"Layout.{name} is {value!r}, but must be a whole number of at least 1")
            object.__setattr__(self, name, int(value))

    @property
    def lanes(self):
        """Batches in progress at once, each with its own queue of prompts: one per copy and stage."""
        return self.dp * self.pp


@frozen
class Breakdown:
    """A decode step's time: named terms in seconds, which of them overlap, and their total.

    Parameters
    ----------
    stages : sequence of dict
        Stages follow one another (they add). Within a stage everything overlaps (the longest counts). A
        stage maps names to seconds, or the name of a resource to the terms that share it (those add).
    reason : str
        Why there is no answer, if ``stages`` is empty.
    status : {"ok", "infeasible", "n/a"}
        ``"infeasible"``: it does not fit in memory; ``"n/a"``: the source does not describe it.
    origin : tuple, optional
        The function and its arguments, so that ``explain`` can unfold it.

    Examples
    --------
    >>> step = Breakdown(({"network": 1e-3}, {"memory": {"weights": 5e-3, "cache": 1e-3}, "arithmetic": 2e-3}))
    >>> step.total, step.bottleneck, sorted(step.overlapped)
    (0.007, 'weights', ['arithmetic'])
    """

    stages: tuple = ()
    reason: str = ""
    status: str = "ok"
    source: str = ""
    origin: tuple | None = None
    __repr__ = Record.__repr__

    def __post_init__(self):
        validation.one_of("status", self.status, ("ok", "infeasible", "n/a"))
        if (self.status == "ok") != bool(self.stages):
            raise ValueError(f"a breakdown has terms exactly when its status is 'ok', not {self.status!r}")
        if self.status != "ok" and not self.reason:
            raise ValueError(f"a breakdown that is {self.status!r} must give its reason")
        if not all([stage and all(stage) for stage in self.grouped]):
            raise ValueError("every stage of a breakdown needs a term")
        names = [name for stage in self.grouped for group in stage for name in group]
        if len(set(names)) != len(names):
            raise ValueError(f"the terms of a breakdown need names of their own, not {', '.join(names)}")
        for name, seconds in self.terms.items():
            if type(seconds) is not float or not 0 <= seconds < validation.LARGE:
                validation.number(f"term {name!r}", seconds, zero=True)

    @cached_property
    def grouped(self):
        """The stages as lists of groups of terms: groups overlap, terms within a group add."""
        return [
            [value if isinstance(value, dict) else {name: value} for name, value in stage.items()]
            for stage in self.stages
        ]

    @property
    def feasible(self):
        """Whether there is an answer."""
        return self.status == "ok"

    @cached_property
    def terms(self):
        """All terms, overlapped ones included: name to seconds."""
        return {name: t for stage in self.grouped for group in stage for name, t in group.items()}

    @cached_property
    def critical(self):
        """The terms that make up the total: the longest group of each stage."""
        stages = self._answered()
        if not all(isinstance(seconds, Real) for seconds in self.terms.values()):
            raise TypeError("which terms count differs over the points of a sweep; look at .terms and .total")
        longest = (max(stage, key=lambda group: sum(group.values())) for stage in stages)
        return {name: seconds for group in longest for name, seconds in group.items()}

    @property
    def overlapped(self):
        """The terms hidden by longer ones."""
        return {name: seconds for name, seconds in self.terms.items() if name not in self.critical}

    @cached_property
    def total(self):
        """Seconds from one token to the next."""
        total = 0.0
        for stage in self._answered():
            longest, *others = [sum(group.values()) for group in stage]
            for seconds in others:
                longest = maximum(longest, seconds)
            total = total + longest
        return total

    @property
    def bottleneck(self):
        """The name of the largest term that counts."""
        return max(self.critical, key=self.critical.get)

    def summary(self):
        """Return the time and the bottleneck, or why there is no answer."""
        if not self.feasible:
            return f"{self.status}: {self.reason}"
        return f"{1e3 * self.total:.2f} ms, bound by {self.bottleneck}"

    def _answered(self):
        if not self.feasible:
            raise ValueError(f"no time: {self.status}: {self.reason}")
        return self.grouped

    def table(self):
        """Return the terms as a pandas DataFrame: milliseconds, and whether each counts or is hidden."""
        from inferlib.optional_imports import pandas as pd

        rows = [(n, 1e3 * s, "counts" if n in self.critical else "hidden") for n, s in self.terms.items()]
        rows.append(("total", 1e3 * self.total, ""))
        return pd.DataFrame(rows, columns=["term", "ms", "in the total"]).set_index("term")


class NotDescribed(ValueError):
    """The source does not describe such a question; the message says why."""


class DoesNotFit(ValueError):
    """Weights and cache exceed the memory; the message says by how much."""


def decode_model(source):
    """Turn a function that returns the stages of a :class:`Breakdown` into a ``decode_step``.

    The function takes model, system, workload, layout and its other parameters, which are checked: system, workload and
    layout against their classes, others against their annotations or the class of a record that is their default. It
    raises :class:`NotDescribed` (status n/a) or :class:`DoesNotFit` (infeasible) if it has no stages.
    """

    def decorate(function):
        kinds = {"system": System, "workload": Workload, "layout": Layout | None} | record_arguments(function)
        function.__annotations__ = kinds
        names = list(inspect.signature(function).parameters)

        @wraps(function)
        def decode_step(*args, **kwargs):
            for name, value in (*zip(names, args, strict=False), *kwargs.items()):
                validation.instance(name, value, kinds.get(name, object))
            try:
                stages = function(*args, **kwargs)
            except (NotDescribed, DoesNotFit) as why:
                status = "n/a" if isinstance(why, NotDescribed) else "infeasible"
                return Breakdown(status=status, reason=str(why), source=source)
            if isinstance(stages, Breakdown):  # a search has already made a breakdown
                return stages
            return Breakdown(stages, source=source, origin=(partial(decode_step, **kwargs), *args))

        return decode_step

    return decorate
