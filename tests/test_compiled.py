"""Machine code made from functions, against NumPy on the same functions."""

from functools import reduce
from operator import ge, gt, le, lt

import numpy as np
import pytest

from inferlib import compiled, ops
from inferlib.compiled import over_grid

AXES = {"a": "row", "b": "column", "c": "layer", "d": "number", "e": "row", "f": "column"}


def values(rows=3, columns=7, layers=2):
    random = np.random.default_rng(rows + columns + layers)
    sizes = {"row": rows, "column": columns, "layer": layers, "number": ()}
    return {name: random.uniform(0.5, 9.5, sizes[axis]) for name, axis in AXES.items()}


def by_numpy(function, given):
    shapes = {"row": (1, -1, 1), "column": (1, 1, -1), "layer": (-1, 1, 1), "number": ()}
    result = function(**{name: np.reshape(value, shapes[AXES[name]]) for name, value in given.items()})
    size = [given[name].size for name in ("c", "a", "b")]
    return np.broadcast_to(result, size)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b, c, d, e, f: a * b - c / d + e**0.3 * f,
        lambda a, b, c, d, e, f: ops.sqrt(a * b) + ops.log2(c + d) - ops.log(e) * np.exp(-f),
        lambda a, b, c, d, e, f: ops.ceil(a * b) + ops.floor(c * d) - np.rint(e) + abs(f - 5),
        lambda a, b, c, d, e, f: ops.maximum(ops.minimum(a, b), ops.minimum(c, d) - e) / (2 * f),
        lambda a, b, c, d, e, f: ops.where((a < b) & (c <= d), e, -f),
        lambda a, b, c, d, e, f: ops.where((a > b) & (c >= d), ops.where(b > f, e, c), 0.0),
        lambda a, b, c, d, e, f: ops.where(b > 4, a * c, d) + ops.where(b < c, e, f),
        lambda a, b, c, d, e, f: ops.where(a > 4, 1.0, d) + ops.where(a < d, c, f) * np.power(2.0, e),
        lambda a, b, c, d, e, f: reduce(
            lambda one, truth: 2 * one + ops.where(truth, 1, 0),
            [op(np.rint(a / 3), np.rint(b / 3)) for op in (lt, le, gt, ge)],
            0 * c,
        ),
        lambda a, b, c, d, e, f: 1 / (1 - (1 - 1 / (1 + a)) ** (b * c)),
    ],
)
@pytest.mark.parametrize("size", [(3, 7, 2), (1, 1, 1), (2, 4, 3), (5, 1030, 1)])
def test_every_operation_is_numpys(function, size):
    given = values(*size)
    np.testing.assert_allclose(over_grid(function, **AXES)(**given), by_numpy(function, given), rtol=1e-14)


@pytest.mark.parametrize("names", ["", "a", "b", "c", "d", "ab", "ac", "bc", "bd", "abc", "cbf", "aebf"])
def test_a_result_may_depend_on_anything(names):
    """On nothing, on one axis or on several, and then be used again further inside."""

    def alone(**given):
        return reduce(lambda one, other: one * other + 1, [given[name] for name in names], 2.0)

    def used(**given):
        return alone(**given) + given["a"] * given["b"] * given["c"]

    given = values()
    for function in (alone, used):
        np.testing.assert_allclose(
            over_grid(function, **AXES)(**given), by_numpy(function, given), rtol=1e-15
        )


def test_random_functions():
    """Trees of operations that share branches, each value used at any depth."""
    random = np.random.default_rng(11)
    binary = [np.add, np.multiply, np.minimum, np.maximum, lambda x, y: x / (1 + y)]
    unary = [lambda x: ops.sqrt(x), lambda x: ops.log2(1 + x), lambda x: ops.where(x > 3, x / 4, 1 / (1 + x))]
    for _ in range(25):
        plan = [(random.integers(8), *random.integers(0, 6 + i, 2)) for i in range(25)]

        def function(plan=plan, **given):
            known = list(given.values())
            for kind, one, other in plan:
                operation = (*binary, *unary)[kind]
                known.append(operation(known[one], known[other]) if kind < 5 else operation(known[one]))
            return reduce(np.add, known)

        given = values(4, 9, 3)
        np.testing.assert_allclose(
            over_grid(function, **AXES)(**given), by_numpy(function, given), rtol=1e-13
        )


def test_no_columns_give_no_cells():
    product = over_grid(lambda x, y: x * y, x="row", y="column")
    assert product(x=[1.0, 2.0], y=[]).shape == (2, 0)


def test_other_constants_share_the_machine_code():
    def scaled(width, shift):
        return over_grid(lambda x, y: ops.sqrt(width * x) / (y + shift), x="row", y="column")

    first = scaled(2.0, 3.0)
    before = compiled._compiled.cache_info().misses
    second = scaled(8.0, 1.0)
    assert compiled._compiled.cache_info().misses == before
    assert first(x=[2], y=[1]).tolist() == [[0.5]] and second(x=[2], y=[1]).tolist() == [[2.0]]


@pytest.mark.parametrize(
    ("function", "axes", "given", "error", "message"),
    [
        (lambda x: 1 if x > 2 else 0, {"x": "row"}, {}, TypeError, "ops.where"),
        (lambda x: np.sin(x), {"x": "row"}, {}, LookupError, "'sin'"),
        (lambda x: np.cumsum(x), {"x": "row"}, {}, LookupError, "'cumsum'"),
        (lambda x: x, {"x": "depth"}, {}, LookupError, "layer"),
        (lambda x: x, {"x": "row"}, {"x": [[1.0, 2.0]]}, ValueError, "each row has 2 dimensions"),
        (lambda x, y: x + y, {"x": "row", "y": "row"}, {"x": [1.0, 2.0], "y": 1.0}, ValueError, "shape"),
    ],
)
def test_doors(function, axes, given, error, message):
    with pytest.raises(error, match=message):
        over_grid(function, **axes)(**given)
