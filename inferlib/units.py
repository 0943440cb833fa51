"""Units at the boundary: text such as ``"3.35 TB/s"`` becomes an SI number.

Bytes, FLOP, dollars, tokens and watts are dimensions of their own, so bytes over FLOP/s are not seconds. Equations
use plain floats; data files and printed numbers have units, which are converted only here. Prefixes are exact: GB is
10^9 bytes, GiB is 2^30. Bits are not defined, so "Gb" raises an error.
"""

import math
import re
from functools import cache

from inferlib.validation import read_package_toml

_TABLE = read_package_toml(__file__, "units.toml")
_PREFIXES = _TABLE["prefixes"]
_UNITS = _TABLE["units"]


def _read(word):
    """Return the size and dimension of one unit with its prefix, such as ``GiB``."""
    if word in _UNITS:
        return _UNITS[word]
    for prefix in (word[:2], word[:1]):
        size, dimension = _UNITS.get(word[len(prefix) :], (1.0, ""))
        if prefix in _PREFIXES and dimension:
            return _PREFIXES[prefix] * size, dimension
    raise ValueError(f"no unit {word!r}, only {', '.join(_UNITS)}, with prefixes")


@cache
def _read_all(unit):
    """Return the size of a product of units in base units, and the power of each dimension."""
    size = 1.0
    powers = {}
    for sign, word in re.findall(r"(^|[*/])([^*/]*)", unit or "1"):
        one, dimension = _read(word.strip())
        size = size / one if sign == "/" else size * one
        if dimension:
            powers[dimension] = powers.get(dimension, 0) + (-1 if sign == "/" else 1)
    return size, {name: power for name, power in powers.items() if power}


@cache
def factor(unit, into=None):
    """Return how many of ``into`` (default: SI base units) one ``unit`` is.

    Units are, for example, ``"TB/s"``, ``"us"``, ``"usd/h"``, ``"%"`` or ``"1"``; ValueError if one is unknown or the
    dimensions differ.

    Examples
    --------
    >>> factor("TB/s")
    1000000000000.0
    >>> factor("GiB", "B")
    1073741824.0
    >>> factor("GB/s", "s")
    Traceback (most recent call last):
    ...
    ValueError: cannot read 'GB/s' as 's'
    """
    try:
        size, powers = _read_all(unit)
        if into is None:
            return size
        other, wanted = _read_all(into)
    except ValueError as error:
        raise ValueError(f"cannot read {unit!r} as {into or 'a unit'!r}: {error}") from None
    if powers != wanted:
        raise ValueError(f"cannot read {unit!r} as {into!r}")
    return size / other


def parse(text, unit):
    """Read a number with its unit, such as ``"3.35 TB/s"``, as a plain number in ``unit``.

    A string holds a number, a space and a unit; a bare number is accepted only if ``unit`` is ``"1"``. ValueError if
    the text is not a number with a unit, or its dimension differs from that of ``unit``.

    Examples
    --------
    >>> parse("3.35 TB/s", "B/s")
    3350000000000.0
    >>> parse(80, "1")
    80.0
    >>> parse(80, "B")
    Traceback (most recent call last):
    ...
    ValueError: 80 has no unit, expected 'B', as in '80 B'
    """
    bare = isinstance(text, (int, float)) and not isinstance(text, bool)
    value, _, written = str(text if not bare or abs(text) < 1e300 else "inf").strip().partition(" ")
    if unit != "1" and not written and value[-1:].isdigit():
        raise ValueError(f"{value[:40]} has no unit, expected {unit!r}, as in '{value[:40]} {unit}'")
    try:
        number = float(value) * factor(written.strip() or "1", unit)
        if not math.isfinite(number):
            raise ValueError(f"{value} is not finite")
        return number
    except ValueError as error:
        shown = f"{value} {written}".strip()[:80]
        raise ValueError(f"cannot read {shown!r} as a number of {unit!r}") from error
