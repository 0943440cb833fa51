"""Argument checks of public functions: every error names the argument, its value and what is allowed.

Concrete numbers are checked and converted to floats, because NumPy integers overflow silently. SymPy expressions, Pint
quantities and lazy arrays pass unchecked, since equations accept any of their values. Anything else is refused.
"""

import math
import os
import reprlib
from functools import cache
from numbers import Real

from inferlib.optional_imports import is_array, np


def read_package_file(module, name):
    """Return the text of a package file beside a module (its ``__file__``); avoids a slow import."""
    with open(os.path.join(os.path.dirname(module), name), encoding="utf-8") as file:
        return file.read()


@cache
def read_package_toml(module, name):
    """Parse a TOML file of the package, once; ValueError with file and line if it is invalid."""
    import tomllib

    try:
        return tomllib.loads(read_package_file(module, name))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{os.path.basename(name)} is not TOML: {error}") from None


_PLAIN = (float, int)
LARGE = 1e300
_NOT_CONCRETE = ("sympy", "pint", "dask", "xarray")  # xarray objects pass only if their data are lazy


def number(name, value, *, zero=False, minimum=None, maximum=None, masked=False):
    """Validate a number: return it if it is finite and positive (or an array of such numbers), else raise.

    ``name``: the argument's name in errors. ``value``: a number, an array (or list), or anything symbolic. ``zero``
    allows zero; ``minimum`` and ``maximum`` are inclusive. ``masked`` allows NaN and infinity in an array, for points
    of a sweep marked as infeasible. Python numbers and symbolic values are returned as they are, all others as 64-bit
    floats of the same kind. Raises TypeError if the value is not a number and holds none (a string, a bool, None, a
    complex number), and ValueError if it is out of range.

    Examples
    --------
    >>> number("batch", 32)
    32
    >>> number("batch", -1)
    Traceback (most recent call last):
    ...
    ValueError: batch is -1, but must be positive and finite
    """
    low = 0 if minimum is None else minimum
    high = math.inf if maximum is None else maximum
    if type(value) in _PLAIN and (0 < value < LARGE or (zero and value == 0)) and low <= value <= high:
        return value  # the common case; the checks below are twenty times as slow
    allowed = "positive and finite" if not zero else "zero or positive, and finite"
    if minimum is not None:
        allowed += f", at least {minimum:g}"
    if maximum is not None:
        allowed += f", at most {maximum:g}"
    value, concrete = _concrete(name, value, allowed)
    if concrete is None:
        return value
    single = isinstance(concrete, float)
    bad = (concrete < max(low, 0)) | (concrete > high) | ((concrete == 0) & (not zero))
    if single or not (masked and concrete.ndim):
        bad = bad | (not math.isfinite(concrete) if single else ~np.isfinite(concrete))
    if bad if single else bad.any():
        shown = value if single or not concrete.ndim else concrete[bad].flat[0]
        raise ValueError(f"{name} is {short(str, shown)}, but must be {allowed}")
    return value


def _concrete(name, value, allowed):
    """Return a value in the type that ``number`` returns, and its numbers as floats; None if they are symbolic."""
    package = type(value).__module__.partition(".")[0]
    if not isinstance(value, bool) and (isinstance(value, Real) or package == "decimal"):
        try:
            concrete = float(value)
        except OverflowError:
            concrete = float("inf")
        return value if type(value) in _PLAIN or package == "sympy" else concrete, concrete
    labelled = package == "xarray" and is_array(value.variable._data)  # arrays of dask stay lazy
    if isinstance(value, (list, tuple)) or is_array(value) or labelled or package == "pandas":
        held = np.asarray(value)
        if held.dtype.kind not in "iuf":
            raise TypeError(f"{name} holds {held.dtype} values, but must hold numbers, {allowed}")
        concrete = held.astype(float, copy=False)
        if not labelled:
            return concrete, concrete
        return value if held.dtype == float else value.astype(float), concrete
    if package in _NOT_CONCRETE:
        return value, None
    raise TypeError(f"{name} is {short(repr, value)}, but must be a number, {allowed}")


def short(spelled, value):
    """Return a value's ``repr`` or ``str``, cut if it is too long to read."""
    try:
        text = spelled(value).replace("\n", " ")
    except ValueError:  # an integer of thousands of digits
        return "a number too long to print"
    return text if len(text) <= 120 else f"{text[:100]}... ({len(text)} characters)"


def shown(value):
    """Return a short text of any value, however deeply nested."""
    return short(reprlib.repr, value)


def one_of(name, value, allowed):
    """Return a ``value`` that is among ``allowed``, else raise LookupError with the nearest names.

    Examples
    --------
    >>> one_of("format", "bf61", ["bf16", "fp8"])
    Traceback (most recent call last):
    ...
    LookupError: no format 'bf61'; did you mean 'bf16'? Known: bf16, fp8
    """
    allowed = allowed if isinstance(allowed, (dict, list, tuple)) else list(allowed)
    if isinstance(value, str) and value in allowed:
        return value
    near = _near(str(value)[:200], allowed) if isinstance(value, str) else []
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ";"
    known = [str(one) for one in allowed]
    apart = "; " if "," in "".join(known) else ", "
    raise LookupError(f"no {name} {short(repr, value)}{hint} Known: {apart.join(known)}")


def instance(name, value, kind):
    """Return a ``value`` of a class, or of one of several (a tuple, or ``dict | None``), else raise TypeError.

    Examples
    --------
    >>> instance("keep", 5, dict)
    Traceback (most recent call last):
    ...
    TypeError: keep is 5, but must be dict
    """
    if not isinstance(value, kind):
        several = kind if isinstance(kind, tuple) else getattr(kind, "__args__", (kind,))
        allowed = " or ".join(one.__name__.removesuffix("Type") for one in several)
        raise TypeError(f"{name} is {shown(value)}, but must be {allowed}")
    return value


def _near(value, allowed):
    from difflib import get_close_matches

    lowered = {a.lower(): a for a in allowed}
    close = get_close_matches(value.lower(), lowered, n=3, cutoff=0.6)
    inside = [low for low in lowered if value.lower() and value.lower() in low]
    return [lowered[low] for low in dict.fromkeys([*inside, *close])][:3]
