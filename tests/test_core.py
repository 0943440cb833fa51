"""Shared modules: breakdowns, frontiers, shapes, catalogue, operations on floats."""

import math
import pickle
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from facts import from_table
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

import inferlib
import tokenprice
from inferlib import Breakdown, catalog, frontier, ops, validation

SECONDS = st.floats(min_value=1e-9, max_value=1e3)


@given(st.lists(st.lists(SECONDS, min_size=1, max_size=3), min_size=1, max_size=3))
def test_total_is_the_sum_of_the_longest(times):
    stages = tuple({f"{i}.{j}": t for j, t in enumerate(stage)} for i, stage in enumerate(times))
    step = Breakdown(stages)
    assert step.total == pytest.approx(sum(max(stage) for stage in times))
    assert sum(step.critical.values()) == pytest.approx(step.total)
    assert set(step.critical) | set(step.overlapped) == set(step.terms)
    assert step.terms[step.bottleneck] == max(step.critical.values())
    assert step.table().ms["total"] == pytest.approx(1e3 * step.total)


def test_breakdowns_sweep_over_labelled_axes_without_a_single_binding_term():
    batch = xr.DataArray([1.0, 4.0], dims="batch")
    step = Breakdown(({"weights": 2.0, "arithmetic": batch}, {"network": 0.5}))
    assert step.total.values.tolist() == [2.5, 4.5]
    with pytest.raises(TypeError, match="differs over the points"):
        step.bottleneck  # noqa: B018


POINTS = hnp.arrays(
    float, st.tuples(st.integers(1, 40), st.just(2)), elements=st.floats(1, 9).map(lambda v: round(v, 1))
)


@given(POINTS)
def test_frontier_is_what_nothing_dominates(points):
    """Against the definition, checked pair by pair."""
    table = pd.DataFrame(points, columns=["tokens_per_second", "usd_per_million"])
    kept = frontier.pareto(table)
    expected = {
        (s, c)
        for s, c in points.tolist()
        if not any(s2 >= s and c2 <= c and (s2 > s or c2 < c) for s2, c2 in points.tolist())
    }
    assert set(kept.itertuples(index=False, name=None)) == expected
    assert kept.tokens_per_second.is_monotonic_decreasing and kept.usd_per_million.is_monotonic_decreasing


@given(POINTS)
def test_frontier_of_a_grid_is_that_of_its_rows(points):
    speed, cost = (xr.DataArray(points[:, i], dims="i", coords={"i": np.arange(len(points))}) for i in (0, 1))
    grid = frontier.pareto(xr.Dataset({"tokens_per_second": speed, "usd_per_million": cost}))
    rows = frontier.pareto(pd.DataFrame(points, columns=["tokens_per_second", "usd_per_million"]))
    columns = ["tokens_per_second", "usd_per_million"]
    pd.testing.assert_frame_equal(grid[columns], rows[columns])


def test_infeasible_points_are_left_out_and_preferred_moves_to_speed_as_alpha_grows():
    table = pd.DataFrame({"tokens_per_second": [9.0, np.nan, 5.0], "usd_per_million": [np.nan, 1.0, 2.0]})
    assert frontier.pareto(table).tokens_per_second.tolist() == [5.0]
    table = pd.DataFrame({"tokens_per_second": [100.0, 50.0, 10.0], "usd_per_million": [9.0, 2.0, 1.0]})
    points = frontier.pareto(table)
    assert [frontier.preferred(points, a).tokens_per_second for a in (0.1, 1, 3)] == [10.0, 50.0, 100.0]


@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300))
def test_operations_on_floats_are_those_of_numpy(a, b):
    assert ops.maximum(a, b) == np.maximum(a, b) and ops.minimum(a, b) == np.minimum(a, b)
    assert ops.sqrt(a) == np.sqrt(a) and ops.cbrt(a) == pytest.approx(np.cbrt(a), rel=1e-15)
    assert ops.log2(a) == pytest.approx(np.log2(a), rel=1e-15, abs=1e-15)


OPERATIONS = {
    "maximum": ops.maximum, "minimum": ops.minimum, "where": lambda a, b: ops.where(a > b, a, 2 * b),
    "roots": lambda a, b: ops.sqrt(a) + ops.cbrt(b), "logs": lambda a, b: ops.log(a) + ops.log2(b),
    "ceil": lambda a, b: ops.ceil(a / b),
}  # fmt: skip


@pytest.mark.parametrize("of", OPERATIONS.values(), ids=OPERATIONS)
def test_operations_broadcast_by_name_and_stay_lazy(of):
    """So all equations do the same."""
    a, b = xr.DataArray([1.0, 5.0], dims="a"), xr.DataArray([2.0, 7.0, 0.5], dims="b")
    lazy = of(a.chunk(1), b.chunk(1))
    assert type(lazy.data).__module__.startswith("dask")
    for i, j in np.ndindex(2, 3):
        assert float(lazy[i, j]) == pytest.approx(of(float(a[i]), float(b[j])), rel=1e-14)


@given(st.integers(1, 10**6))
def test_ceil_snaps_rounding_noise(n):
    assert ops.ceil(n * (1 + 1e-12)) == n and ops.ceil(n + 0.001) == n + 1
    assert ops.ceil(-n) == -n and ops.ceil(n * 10**10) == n * 10**10 and ops.ceil(-n + 0.5) == 1 - n
    assert ops.ceil(np.array([n * (1 + 1e-12)]))[0] == n
    assert math.isnan(ops.maximum(math.nan, 1.0)) and math.isnan(ops.minimum(math.nan, 1.0))


@from_table
def test_a_question_of_plain_numbers_is_answered_without_numpy_and_what_other_verbs_need(words):
    absent = ["numpy", "sympy", "pint", "tokenprice.recommendation", "tokenprice.simulation"]
    code = f"import sys; sys.modules.update(dict.fromkeys({absent})); from tokenprice import terminal; "
    code += "sys.exit(terminal.main())"
    command = [sys.executable, "-c", code, *shlex.split(words)]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0 and found.stdout, found.stderr


# Rows: a step, with its two questions in fewer bits, and a request.
@from_table
def test_a_second_answer_does_its_work_once(more, most):
    """Function calls are counted, not time: arguments are checked once, and plain numbers are passed on."""
    calls = []

    def count(frame, event, _):
        if event == "call":
            calls.append(frame.f_code.co_name)

    tokenprice.ask("Llama 3.3 70B", "4x H100", **more).to_dict()
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        tokenprice.ask("Llama 3.3 70B", "4x H100", **more).to_dict()
    finally:
        sys.setprofile(before)
    assert 100 < len(calls) < most


@from_table
def test_lines_between_points_are_those_of_numpy(x):
    at, values = [0.0, 1.0, 3.0], [2.0, 5.0, 4.0]
    assert ops.interpolated(x, at, values) == np.interp(x, at, values)


def test_a_slip_in_a_file_of_the_catalogue_names_file_and_line(tmp_path):
    (tmp_path / "models.toml").write_text('["Mine"]\nsource = "a"\n\n["Mine"]\nsource = "b"\n')
    with pytest.raises(ValueError, match=r"models\.toml is not TOML: .* line 4"):
        validation.read_package_toml(str(tmp_path / "catalog.py"), "models.toml")


def test_a_slip_in_an_entry_of_the_catalogue_names_file_and_entry(monkeypatch):
    slipped = {"L4": catalog._table("chips.toml")["L4"] | {"power": "72"}}
    monkeypatch.setattr(catalog, "_table", lambda file: slipped)
    with pytest.raises(ValueError, match="^chips.toml, 'L4': power: 72 has no unit"):
        catalog._stated.__wrapped__("L4")


def test_records_of_plain_numbers_are_equal_by_value():
    """Two readings of one chip or model are one key; a changed number is another, its source is not."""
    for load, name in ((inferlib.load_chip, "H100"), (inferlib.load_model, "Llama 3 70B")):
        one, other = load(name), pickle.loads(pickle.dumps(load(name)))
        assert one == other and one is not other and len({one, other}) == 1
    chip = inferlib.load_chip("H100")
    assert chip.replace(sources={}) == chip != chip.replace(power=1.0)
    assert {inferlib.System(chip, 8): 1}[inferlib.System(chip, 8)]
    asked = tokenprice.Question("Llama 3 8B", "H100", layer_formats="attention=bf16")
    assert asked == tokenprice.Question("Llama 3 8B", "1x H100", layer_formats={"attention": "BF16"})
    assert hash(asked) == hash(asked.replace()) and asked != asked.replace(batch=2)
