"""Units at the doors: text such as ``"3.35 TB/s"`` becomes a plain SI number, and back.

One Pint registry, in which bytes, FLOP, dollars, tokens and watts are dimensions of their own. Equations
see plain floats; data files and printed numbers carry a unit, converted here and nowhere else. Prefixes are
exact: GB is 10^9 bytes, GiB is 2^30. Bits are not defined, so that "Gb" is refused rather than guessed.
"""

import math
from functools import lru_cache
from importlib.resources import files


@lru_cache(maxsize=1)
def registry():
    """Return the project's Pint registry (`units.txt`)."""
    import pint

    units = pint.UnitRegistry(None)
    units.load_definitions((files("inferlib") / "units.txt").read_text("utf-8").splitlines())
    return units


@lru_cache(maxsize=256)
def factor(unit, into=None):
    """How many of ``into`` (default: SI base units) one ``unit`` is.

    Parameters
    ----------
    unit, into : str
        Such as ``"TB/s"``, ``"us"``, ``"usd/h"``, ``"%"`` or ``"1"``.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If a unit is unknown or the dimensions differ.

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
        quantity = registry().Quantity(1, _spelled(unit))
        return float((quantity.to_base_units() if into is None else quantity.to(_spelled(into))).magnitude)
    except Exception as error:
        raise ValueError(f"cannot read {unit!r} as {into or 'a unit'!r}") from error


def parse(text, unit):
    """Read a number with its unit, such as ``"3.35 TB/s"``, as a plain number of ``unit``.

    Parameters
    ----------
    text : str or float
        A string holds a number, a space and a unit; a bare number is taken only when ``unit`` is ``"1"``.
    unit : str
        The unit of the result.

    Raises
    ------
    ValueError
        If the text is not a number and a unit, or has another dimension than ``unit``.

    Examples
    --------
    >>> parse("3.35 TB/s", "B/s")
    3350000000000.0
    >>> parse(80, "1")
    80.0
    >>> parse(80, "B")
    Traceback (most recent call last):
    ...
    ValueError: 80 has no unit, expected 'B'
    """
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        if unit != "1":
            raise ValueError(f"{text} has no unit, expected {unit!r}")
        return float(text)
    value, _, written = str(text).strip().partition(" ")
    try:
        number = float(value) * factor(written.strip() or "1", unit)
        if not math.isfinite(number):
            raise ValueError(f"{value} is not finite")
        return number
    except ValueError as error:
        raise ValueError(f"cannot read {text!r} as a number of {unit!r}") from error


def _spelled(unit):
    # Pint reads "%" as the modulo operator
    return "dimensionless" if unit in ("1", "") else unit.replace("%", "percent")
