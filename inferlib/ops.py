"""The few functions that equations use, for numbers, arrays, labelled arrays, quantities and symbols.

An equation written with these computes on floats, broadcasts over NumPy and xarray (dask stays lazy), checks its
dimensions on Pint quantities and returns a SymPy expression when called on symbols. NumPy, SymPy and xarray are
used only if they have been imported already.
"""

import math
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from sys import modules

from inferlib.optional_imports import np

_SNAP = 1e-9  # relative tolerance: 2**log2(8) must not be rounded up to 9

# Each thread has its own of both.
# While explain() runs: called with every maximum or minimum taken on plain numbers.
on_branch = ContextVar("on_branch", default=None)
# Within as_written: arguments that keep SymPy from simplifying.
_written: ContextVar[dict] = ContextVar("written", default={})  # noqa: B039, never changed in place


@contextmanager
def holding(variable, value):
    """Context manager and decorator that sets a context variable."""
    saved = variable.set(value)
    try:
        yield
    finally:
        variable.reset(saved)


def as_written():
    """Keep SymPy from simplifying within this context: much faster for large expressions.

    Examples
    --------
    >>> import sympy
    >>> x = sympy.Symbol("x", positive=True)
    >>> with as_written():
    ...     maximum(x, x + 1)
    Max(x, x + 1)
    >>> maximum(x, x + 1)
    x + 1
    """
    return holding(_written, {"evaluate": False})


def maximum(x, y):
    """Return the larger of two values, elementwise.

    Examples
    --------
    >>> maximum(1.0, 2.0)
    2.0
    >>> import sympy
    >>> maximum(sympy.Symbol("x"), 1)
    Max(1, x)
    """
    if type(x) in _NUMBERS and type(y) in _NUMBERS or _plain(x) and _plain(y):
        chosen = x if x >= y or x != x else y
        branch = on_branch.get()
        if branch is not None:
            branch("maximum", (x, y), chosen)
        return chosen
    if symbolic(x) or symbolic(y):
        return modules["sympy"].Max(x, y, **_written.get())
    return np.maximum(x, y)


def minimum(x, y):
    """Return the smaller of two values, elementwise.

    Examples
    --------
    >>> minimum(1.0, 2.0)
    1.0
    """
    if type(x) in _NUMBERS and type(y) in _NUMBERS or _plain(x) and _plain(y):
        chosen = x if x <= y or x != x else y
        branch = on_branch.get()
        if branch is not None:
            branch("minimum", (x, y), chosen)
        return chosen
    if symbolic(x) or symbolic(y):
        return modules["sympy"].Min(x, y, **_written.get())
    return np.minimum(x, y)


def sqrt(x):
    """The square root, elementwise.

    Examples
    --------
    >>> sqrt(16)
    4.0
    """
    return _library(x).sqrt(x)


def cbrt(x):
    """The cube root, elementwise; ``cbrt(x) ** 2`` is x to the power 2/3, exactly so on symbols.

    Examples
    --------
    >>> round(cbrt(27.0), 12)
    3.0
    """
    return _library(x).cbrt(x)


def log(x):
    """The natural logarithm, elementwise.

    Examples
    --------
    >>> round(log(math.e), 12)
    1.0
    """
    return _library(x).log(x)


def log2(x):
    """The logarithm to base 2, elementwise.

    Examples
    --------
    >>> log2(8)
    3.0
    """
    return modules["sympy"].log(x, 2) if symbolic(x) else _library(x).log2(x)


def ceil(x):
    """Round up; a value within 1e-9 (relative) of an integer counts as that integer.

    Examples
    --------
    >>> ceil(3.2), ceil(8 * (1 + 1e-12)), ceil(8 * (1 + 1e-6))
    (4, 8, 9)

    From 1e9 on nothing is taken for an integer, alone or in an array:

    >>> large = 1e12 + 0.25
    >>> ceil(large), float(ceil(np.array([large]))[0])
    (1000000000001, 1000000000001.0)
    """
    if _plain(x):
        nearest = round(x)
        return nearest if abs(x - nearest) <= _SNAP * abs(x) and abs(x) < 1 / _SNAP else math.ceil(x)
    if symbolic(x):
        sympy = modules["sympy"]
        return sympy.ceiling(x - abs(x) * sympy.Float(_SNAP))
    size = np.abs(x)
    return np.ceil(x - where(size < 1 / _SNAP, size * _SNAP, 0))


def floor(x):
    """Round down; a value within 1e-9 (relative) of an integer counts as that integer.

    Examples
    --------
    >>> floor(3.8), floor(8 * (1 - 1e-12)), floor(8 * (1 - 1e-6))
    (3, 8, 7)
    """
    return -ceil(-x)


def where(condition, yes, no):
    """Return ``yes`` where the condition holds, else ``no``.

    Both sides are always evaluated, so keep arguments in range (``maximum(x, 0)``), not the result.

    Examples
    --------
    >>> where(2 > 1, "a", "b")
    'a'
    """
    if isinstance(condition, bool) or (not symbolic(condition) and isinstance(condition, np.bool_)):
        chosen = yes if condition else no
        branch = on_branch.get()
        if branch is not None:
            branch("choice", (yes, no), chosen)
        return chosen
    if symbolic(condition):
        return modules["sympy"].Piecewise((yes, _settled(condition)), (no, True), **_written.get())
    if _labelled(condition) or _labelled(yes) or _labelled(no):
        return modules["xarray"].where(condition, yes, no)
    return np.where(condition, yes, no)


@cache
def _settled(condition):
    """Return a condition as SymPy stores it; cached, because that is slow and many choices share a condition."""
    return modules["sympy"].functions.elementary.piecewise.ExprCondPair(0, condition).cond


def interpolated(x, at, values):
    """Interpolate linearly between points at ``x``; constant before the first and after the last.

    Examples
    --------
    >>> interpolated(3, [2, 4], [10, 20]), interpolated(9, [2, 4], [10, 20])
    (15.0, 20.0)
    """
    if not _plain(x) and not symbolic(x):
        return np.interp(x, at, values)
    pieces = [(values[0], x <= at[0])]
    for left, right, low, high in zip(at, at[1:], values, values[1:], strict=False):
        pieces.append((low + (high - low) / (right - left) * (x - left), x <= right))
    pieces.append((values[-1], True))
    if symbolic(x):
        return modules["sympy"].Piecewise(*pieces)
    return float(next(value for value, holds in pieces if holds))


def symbolic(x):
    """Whether ``x`` is a SymPy object.

    Examples
    --------
    >>> symbolic(1.0)
    False
    """
    sympy = modules.get("sympy")
    return sympy is not None and isinstance(x, sympy.Basic)


def _library(x):
    """Return the module with functions for ``x``: math, SymPy or NumPy."""
    if type(x) in _NUMBERS or _plain(x):
        return math
    return modules["sympy"] if symbolic(x) else np


_NUMBERS = float, int  # most values have these types, and a look at the type needs no call


def _plain(x):
    return isinstance(x, _NUMBERS)


def _labelled(x):
    return type(x).__module__.startswith("xarray")
