"""Machine code made from functions, against NumPy on the same functions."""

from concurrent.futures import ThreadPoolExecutor
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


@pytest.mark.parametrize("divisor", [49.0, 8.0, 0.25, 1e-310, 5e-324, 2.0**-1022, 2.0**1023, np.inf, 3])
def test_division_by_a_constant_is_numpys_to_the_last_bit(divisor):
    x = np.concatenate([np.arange(1.0, 200) * 49, [1e-300, 1e300, 5e-324]])
    with np.errstate(over="ignore"):
        expected = x / divisor
    np.testing.assert_array_equal(over_grid(lambda x: x / divisor, x="column")(x=x)[0], expected)


def test_division_by_zero_is_infinite():
    assert over_grid(lambda x: x / 0, x="column")(x=[1.0, -1.0]).tolist() == [[np.inf, -np.inf]]


def test_any_array_will_do():
    """Views, whole numbers and plain lists, and an axis that one number or none stands for."""
    line = np.arange(12.0)
    product = over_grid(lambda x, y, z: x * y + z, x="row", y="column", z="layer")
    assert product(x=line[::5], y=np.broadcast_to(3, 2), z=[1, 2]).tolist() == [
        [[1, 1], [16, 16], [31, 31]],
        [[2, 2], [17, 17], [32, 32]],
    ]
    assert product(x=2, y=3, z=4).tolist() == [[[10.0]]]
    assert product(x=[1.0, 2.0], y=[], z=[1.0]).shape == (1, 2, 0)
    assert over_grid(lambda y: 2 * y, y="column")(y=[1, 2]).tolist() == [[2.0, 4.0]]


def test_threads_do_not_disturb_each_other():
    function = over_grid(lambda a, b, c, d, e, f: ops.log2(a * b) ** c - ops.sqrt(d * e * f), **AXES)
    given = [values(rows, 50, 3) for rows in range(1, 60)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda one: function(**one), given))
    for one, found in zip(given, together, strict=True):
        np.testing.assert_array_equal(found, function(**one))


def test_other_constants_share_the_machine_code():
    def scaled(width, shift):
        return over_grid(lambda x, y: ops.sqrt(width * x) / (y + shift), x="row", y="column")

    first = scaled(2.0, 3.0)
    before = compiled._compiled.cache_info().misses
    second = scaled(8.0, 1.0)
    assert compiled._compiled.cache_info().misses == before
    assert first(x=[2], y=[1]).tolist() == [[0.5]] and second(x=[2], y=[1]).tolist() == [[2.0]]


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x: 1 if x > 2 else 0, TypeError, "ops.where"),
        (lambda x: np.sin(x), LookupError, "'sin'"),
        (lambda x: np.cumsum(x), LookupError, "'cumsum'"),
        (lambda x: np.round(x, 2), TypeError, "round is compiled of number, not of number and number"),
        (lambda x: (x > 0) * x, TypeError, "multiply is compiled of number and number, not of truth"),
        (lambda x: np.where(x, x, 0), TypeError, "where is compiled of truth and number and number, not"),
        (lambda x: np.where(x > 0), TypeError, "not of truth"),
        (lambda x: (x > 0) & True, TypeError, "uses True"),
        (lambda x: x + "3", TypeError, "uses '3'"),
        (lambda x: x + np.ones(2), TypeError, "only single numbers"),
        (lambda x: over_grid(lambda y: y * x, y="column")(y=[1.0]), TypeError, "used in another"),
    ],
)
def test_what_cannot_be_compiled_says_so(function, error, message):
    with pytest.raises(error, match=message):
        over_grid(function, x="column")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"x": 1, "y": 1}, TypeError, "arguments are x, y, but must be x, y, z"),
        ({"x": 1, "y": 1, "z": 1, "t": 1}, TypeError, "arguments are x, y, z, t, but"),
        (
            {"x": [[1.0, 2.0]], "y": 1, "z": 1},
            ValueError,
            r"x has shape \(1, 2\), .* one number for each row",
        ),
        ({"x": [1.0, 2.0], "y": [1.0], "z": 1}, ValueError, "y has 1 values, but must have 2 for each row"),
        ({"x": 1, "y": 1, "z": [1.0]}, ValueError, r"z has shape \(1,\), but must be one number"),
    ],
)
def test_doors(given, error, message):
    product = over_grid(lambda x, y, z: x * y * z, x="row", y="row", z="number")
    with pytest.raises(error, match=message):
        product(**given)


def test_an_unknown_axis():
    with pytest.raises(LookupError, match="Known: row, layer, column, number"):
        over_grid(lambda x: x, x="depth")
