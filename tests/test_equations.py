"""Every ``@equation``, one by one: numbers, arrays, labelled and lazy sweeps, symbols and dimensions.

Nothing here names an equation: a new one is covered the moment it is written.
"""

import dataclasses
import sys
import zlib
from functools import cache
from pathlib import Path

import mpmath
import numpy as np
import pint
import pytest
import sympy as sp

import inferlib.principles.derivations  # noqa: F401, registers its equations and derivations
import tokenprice.derivations  # noqa: F401
from book.audit import grading
from inferlib import units
from inferlib.equation import (
    DERIVATIONS,
    EQUATIONS,
    Record,
    contains,
    notation_of,
    quantities,
    record_arguments,
    symbolic,
)

for source in grading.sources():
    grading._open(source)

EVERY = pytest.mark.parametrize("entry", EQUATIONS.values(), ids=[f"{s}.{n}" for s, n in EQUATIONS])
DRAWS = 5  # so that both sides of a maximum are met


def drawn(entry, seed):
    """Random values for an equation: (record name, field) or argument name to number."""
    random = np.random.default_rng([zlib.crc32(entry.name.encode()), seed])
    fields = [(name, f) for name, kind in record_arguments(entry.function).items() for f in quantities(kind)]
    values = {name: float(np.exp(random.uniform(0, 2))) for name in entry.arguments}
    for name, f in fields:
        low, high = (0, 2) if f.metadata["maximum"] is None else (-2, np.log(f.metadata["maximum"]))
        values[name, f.name] = float(np.exp(random.uniform(low, high)))
    return values


def arguments(entry, values, convert=lambda value, unit: value):
    """The arguments of an equation from drawn values, each passed through ``convert``."""
    made = {}
    for name, kind in record_arguments(entry.function).items():
        fields = quantities(kind)
        numbers = {f.name: convert(values[name, f.name], f.metadata["unit"]) for f in fields}
        made[name] = kind(**numbers, **nested(kind, convert))
    return made | {name: convert(values[name], unit) for name, unit in entry.arguments.items()}


def nested(kind, convert):
    """The fields of a record that hold tuples of records, every number in them converted."""
    tuples = {f.name: f.default for f in dataclasses.fields(kind) if isinstance(f.default, tuple)}
    return {
        name: tuple(
            record.replace(
                **{f.name: convert(getattr(record, f.name), f.metadata["unit"]) for f in quantities(record)}
            )
            for record in records
        )
        for name, records in tuples.items()
        if records and isinstance(records[0], Record)
    }


def test_every_argument_is_declared():
    for entry in EQUATIONS.values():
        code, declared = entry.function.__code__, {*record_arguments(entry.function), *entry.arguments}
        assert set(code.co_varnames[: code.co_argcount]) == declared, entry.name
        assert entry.function.__doc__, entry.name


def public(entry):
    """The equation as a user calls it, with argument checks."""
    return getattr(sys.modules[entry.function.__module__], entry.name)


@EVERY
def test_sympy_expression_agrees_with_numbers(entry):
    """The expression, evaluated with 30 digits, is what the function computes on floats."""
    symbols = entry.symbols()
    inputs = {name: symbols[name] for name in entry.arguments}
    for name, kind in record_arguments(entry.function).items():
        inputs |= {(name, f.name): getattr(symbols[name], f.name) for f in quantities(kind)}
    free = {place: symbol for place, symbol in inputs.items() if isinstance(symbol, sp.Symbol)}
    constants = {place: float(value) for place, value in inputs.items() if place not in free}
    expression = sp.sympify(entry.function(**symbols))
    evaluate = sp.lambdify(free.values(), expression, modules="mpmath", cse=True)
    for seed in range(DRAWS):
        values = drawn(entry, seed)
        computed = public(entry)(**arguments(entry, values | constants))
        with mpmath.workdps(30):
            exact = float(evaluate(*(mpmath.mpf(values[place]) for place in free)))
        assert exact == pytest.approx(float(computed), rel=1e-12)


@cache
def pint_registry():
    registry = pint.UnitRegistry(None)
    registry.load_definitions((Path(__file__).parent / "units.txt").read_text("utf-8").splitlines())
    return registry


def spelled(unit):
    """A unit as Pint reads it: "%" would be the modulo operator."""
    return "dimensionless" if unit == "1" else unit.replace("%", "percent")


UNITS = {row.unit for source in grading.sources() for row in grading.published(source).values()} - {"unit"}
UNITS |= {unit for entry in EQUATIONS.values() for unit in (entry.unit, *entry.arguments.values())}
UNITS |= {"kW*h", "1/s/W", "Mtok/s", "$/h", "TiB", "min", "GB/ms", "cent", "tok/min"}


@pytest.mark.parametrize("unit", sorted(UNITS))
def test_units_are_those_of_pint(unit):
    quantity = pint_registry().Quantity(1, spelled(unit.replace("$", "usd")))
    assert units.factor(unit) == quantity.to_base_units().magnitude
    for other in ("B/s", "usd/tok", "W*s"):
        if pint_registry().Quantity(1, other).dimensionality != quantity.dimensionality:
            with pytest.raises(ValueError, match="cannot read"):
                units.factor(unit, other)


@EVERY
def test_dimensions(entry):
    """Pint quantities go in with the declared units; the declared unit comes out."""
    registry = pint_registry()

    def measured(value, unit):
        return registry.Quantity(value, spelled(unit))

    result = entry.function(**arguments(entry, drawn(entry, 0), measured))
    wanted = registry.Quantity(1, spelled(entry.unit))
    got = result if hasattr(result, "dimensionality") else registry.Quantity(result, "dimensionless")
    assert got.dimensionality == wanted.dimensionality, f"{got.units} instead of {entry.unit}"


@pytest.mark.parametrize("entry", DERIVATIONS.values(), ids=[f"{s}.{n}" for s, n in DERIVATIONS])
def test_derivation_ends_in_its_equation(entry):
    steps = entry.function()
    assert all(step.caption.endswith((".", ",", ":", "as", "probability")) for step in steps)
    if entry.proves is not None:
        expected = sp.sympify(entry.proves.equation.expression())
        result = sp.sympify(steps.result)
        assert result == expected or sp.simplify(result - expected) == 0
    assert all(contains(steps, one.equation) for one in entry.also)


def test_symbolic_keeps_what_the_notation_does_not_name():
    from inferlib.system import Accelerator

    chip = Accelerator(flops=1e15, memory_bandwidth=3e12, price=2.0, name="X")
    made = symbolic(chip, {"flops": "C"})
    assert made.flops == sp.Symbol("C", positive=True) and made.price == 2.0 and made.name == "X"


@pytest.mark.parametrize("source", [*grading.sources(), "principles", "serving"])
def test_symbols_are_whole_latex(source):
    """A dollar or an open brace inside a symbol breaks the page's equations."""
    for name, entry in notation_of(source).items():
        symbol = entry["symbol"]
        assert "$" not in symbol and symbol.count("{") == symbol.count("}"), f"{name}: {symbol}"


@EVERY
def test_no_equation_divides_by_zero_or_takes_less_than_nothing(entry):
    """Zero, whole or not, alone or in an array, has a finite answer or is refused by name; -1 is refused."""
    base = arguments(entry, drawn(entry, 0))
    for name in entry.arguments:
        with pytest.raises(ValueError, match=f"^{name} of {entry.name} is -1"):
            public(entry)(**base | {name: -1})
        for nothing in (0, 0.0, np.array([0.0, base[name]])):
            try:
                with np.errstate(divide="raise", invalid="raise"):
                    answer = public(entry)(**base | {name: nothing})
            except ValueError as refusal:
                declared = str(refusal).startswith(f"{name} of {entry.name} is 0")
                assert declared, f"{name} of {entry.name}: declare it > 0"
            else:
                assert np.all(np.isfinite(answer))
