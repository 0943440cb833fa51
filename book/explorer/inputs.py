"""Inputs of explorers: sliders with a number field, choices, and structure choices."""

import keyword
import math
import re
from collections.abc import Mapping
from dataclasses import field

import sympy

from inferlib import validation
from inferlib.equation import Record, frozen, quantities, symbolic
from inferlib.system import Accelerator, format_bytes
from inferlib.transformer import Transformer
from tokenprice import catalog
from tokenprice.config.formats import nearest

FORMATS = {"16 bits": "bf16", "8 bits": "fp8", "4 bits": "fp4"}
_RESERVED = {*keyword.kwlist, "case", "const", "default", "do", "enum", "export", "extends", "function", "let"} | {
    "new", "null", "super", "switch", "this", "throw", "typeof", "var", "void", "true", "false", "eval", "arguments",
}  # fmt: skip


@frozen
class Slider:
    """A number that the reader moves or types, between ``low`` and ``high`` in ``unit`` (display only).

    The range is extended to the initial ``value``. ``log``: logarithmic slider; ``whole``: whole numbers only.
    """

    name: str
    label: str
    low: float
    high: float
    value: float
    unit: str = ""
    log: bool = False
    whole: bool = False

    def __post_init__(self):
        _named(self)
        validation.number(f"slider {self.name}: high", self.high)
        if not self.low < self.high:
            raise ValueError(f"slider {self.name}: low is {self.low}, but must be below high, {self.high}")
        object.__setattr__(self, "low", min(self.low, self.value))
        object.__setattr__(self, "high", max(self.high, self.value))
        validation.number(f"slider {self.name}: low", self.low, zero=not self.log)

    def position(self, value):
        """Return the position of a value on the slider's own scale."""
        return math.log10(value) if self.log else value

    def within(self, value):
        """Clip a value to the range of the slider."""
        return min(max(value, self.low), self.high)

    def taken(self, value):
        """Return a value as the outputs receive it: rounded if the slider has whole numbers."""
        return round(value) if self.whole else value

    def start(self):
        """Return the initial value."""
        return self.value

    def symbol(self):
        """Return the symbol of this input in expressions."""
        return sympy.Symbol(self.name, **{"positive" if self.low > 0 else "nonnegative": True})


@frozen
class _Options:
    """Base of :class:`Choice` and :class:`StructureChoice`; the first option is chosen at the start.

    ``sets``: label to values of other inputs that choosing it sets: ``{"H100": {"price": 2.0}}``.
    """

    name: str
    label: str
    options: dict
    sets: Mapping = field(default_factory=dict)

    def __post_init__(self):
        _named(self)
        if not self.options:
            raise ValueError(f"choice {self.name} has no options")

    def start(self):
        """Return the initial label."""
        return next(iter(self.options))


@frozen
class Choice(_Options):
    """One of several records (a chip, a model) or numbers, by label."""

    def __post_init__(self):
        super().__post_init__()
        if len({isinstance(value, Record) for value in self.options.values()}) > 1:
            raise ValueError(f"choice {self.name} mixes records and numbers")

    def columns(self):
        """Return the numbers of the options: symbol name to values. Fields that an option lacks are left out.

        A chip's peaks are fields of their own; a peak that a chip lacks is None.
        """
        values = list(self.options.values())
        if not isinstance(values[0], Record):
            return {self.name: [float(v) for v in values]}
        fields = (f.name for f in quantities(values[0]))
        names = [name for name in fields if all(getattr(v, name, None) is not None for v in values)]
        columns = {f"{self.name}_{name}": [float(getattr(v, name)) for v in values] for name in names}
        for peak in _peaks(values):
            numbers = [getattr(v, "peaks", {}).get(peak) for v in values]
            columns[f"{self.name}_peak_{peak}"] = [None if n is None else float(n) for n in numbers]
        return columns

    def symbol(self):
        """Return a record of symbols for the chosen option, for use in expressions."""
        values = list(self.options.values())
        if not isinstance(values[0], Record):
            return sympy.Symbol(self.name, positive=True)
        # all fields: one that an option lacks must appear as an unknown, not as the first option's value
        record = symbolic(values[0], {f.name: f"{self.name}_{f.name}" for f in quantities(values[0])})
        if getattr(values[0], "peaks", None):
            peaks = {p: sympy.Symbol(f"{self.name}_peak_{p}", positive=True) for p in _peaks(values)}
            record = record.replace(peaks=peaks)
        return record


@frozen
class StructureChoice(_Options):
    """One of several structures, by label: fixed before the outputs are called.

    An option is anything that the outputs accept: a string, a function, a kind of layer. The page has one JavaScript
    function per option.
    """


def columns_of(inputs):
    """Return the parameters of the JavaScript functions: sliders, then the columns of the choices."""
    sliders = [i.name for i in inputs if isinstance(i, Slider)]
    return sliders + [column for i in inputs if isinstance(i, Choice) for column in i.columns()]


def check(title, inputs):
    """Raise if inputs share a name or refer to a missing one."""
    names = [i.name for i in inputs]
    if len(set(names)) != len(names):
        raise ValueError(f"inputs must have names of their own, not {', '.join(names)}")
    columns = columns_of(inputs)
    if len(set(columns)) != len(columns):
        raise ValueError(f"explorer {title!r}: two inputs share one of the names {', '.join(columns)}")
    known = {i.name: i for i in inputs}
    for i in inputs:
        for label, values in getattr(i, "sets", {}).items():
            validation.one_of(f"option of {i.name}", label, i.options)
            for name, value in values.items():
                accept(known[validation.one_of(f"input that {i.name} sets", name, known)], value)


def accept(i, value):
    """Return a value of one input as the outputs receive it: options by label, numbers within range."""
    if isinstance(i, Slider):
        validation.number(i.name, value, zero=True, minimum=i.low, maximum=i.high)
        return i.taken(value)
    return i.options[validation.one_of(i.name, value, i.options)]


def first(one, others):
    """Return options by name, the given one first; a changed record gets a name of its own."""
    if not one:
        return others
    known = others.get(one.name) or _catalogued(one)
    return {one.name if known in (None, one) else f"{one.name}, as above": one} | {
        name: other for name, other in others.items() if other != one
    }


def formats(given, least=0.5):
    """Return formats of at least ``least`` bytes by label, the given one (a name, or bytes per value) first.

    A given format that is not among them keeps its own name.
    """
    label = next((label for label, name in FORMATS.items() if given in (name, format_bytes(name))), None)
    wide = {label: name for label, name in FORMATS.items() if format_bytes(name) >= least}
    return {label or (given if isinstance(given, str) else nearest(given)): given} | wide


def sizes(given, least=0.5):
    """Return the same, as bytes per value."""
    return {label: format_bytes(one) for label, one in formats(given, least).items()}


def _catalogued(one):
    for kind, names, load in (
        (Transformer, catalog.models(), catalog.load_model), (Accelerator, catalog.chips(), catalog.load_chip)
    ):  # fmt: skip
        if isinstance(one, kind) and one.name in names:
            return load(one.name)
    return None


def _peaks(values):
    return list(dict.fromkeys(p for v in values for p in getattr(v, "peaks", {})))


def _named(i):
    """Raise if a name cannot be a parameter in Python and in JavaScript."""
    if not (isinstance(i.name, str) and re.fullmatch(r"[a-z][a-z0-9_]*", i.name)) or i.name in _RESERVED:
        raise ValueError(
            f"input name is {i.name!r}, but must be lower-case letters, digits and _, and no keyword"
        )


def with_unit(one):
    """Return the label of a slider with its unit."""
    return f"{one.label} ({one.unit})" if one.unit else one.label
