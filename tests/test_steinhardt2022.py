"""Steinhardt 2022: the closed forms against a search by brute force, and what was printed."""

import math

import numpy as np
import pytest
import sympy as sp
import xarray as xr
from hypothesis import given
from hypothesis import strategies as some

import inferlib
from inferlib.papers import steinhardt2022 as st
from inferlib.papers.steinhardt2022 import derivations, explorers, figures, tables
from inferlib.papers.steinhardt2022.model import Machine

A100 = st.load_machine("A100")
MACHINES = [
    A100,
    st.load_machine("A100, warm-up"),
    A100.replace(network_bandwidth=40e12),  # the network does not bind
    A100.replace(chips=1, weight_word=1.0),
    st.machine_of(inferlib.load_chip("H100 SXM")),
    st.machine_of(inferlib.load_chip("TPU v4")),
]
some_machine = some.builds(
    Machine,
    flops=some.floats(1e12, 1e16),
    memory_bandwidth=some.floats(1e11, 1e14),
    network_bandwidth=some.floats(1e9, 1e15),
    chips=some.integers(1, 256),
)


# --- The starred equation against the post's own example, counted by hand --------------------------------


def test_the_tiling_example_by_hand():
    machine = st.load_machine("A100, warm-up")
    # 2048 x 256 numbers of two bytes in and as many out; a 2048 x 2048 block; a multiply and an add each
    assert st.network_traffic(machine, 2048, 256) == 2 * 2 * 2048 * 256
    assert st.memory_traffic(machine, 2048, 256) == 2 * 2 * 2048 * 256 + 2 * 2048 * 2048
    assert st.arithmetic_work(machine, 2048, 256) == 2 * 2048 * 2048 * 256
    assert st.network_time(machine, 2048, 256) == pytest.approx(2097152 / 400e9)
    assert st.memory_time(machine, 2048, 256) == pytest.approx(10485760 / 1.5e12)
    assert st.arithmetic_time(machine, 2048, 256) == pytest.approx(2147483648 / 312e12)
    assert st.block_time(machine, 2048, 256) == pytest.approx(10485760 / 1.5e12)


def test_eight_chips_share_one_network():
    # one machine-wide block of edge m sqrt(8), in and out, through 2 TB/s
    assert st.network_time(A100, 1000, 100) == pytest.approx(2 * 2 * 1000 * math.sqrt(8) * 100 / 2e12)


# --- The closed forms against brute force ----------------------------------------------------------------


def least_time(machine, points=1500):
    """Least arithmetic time over a grid of m and b on which neither network nor memory is slower."""
    size = machine.flops / machine.memory_bandwidth
    m = xr.DataArray(size * np.geomspace(1, 1000, points), dims="m")
    b = xr.DataArray(size * np.geomspace(0.1, 30, points), dims="b")
    time = st.arithmetic_time(machine, m, b)
    allowed = st.block_time(machine, m, b) <= time * (1 + 1e-12)
    return float(time.where(allowed).min())


@pytest.mark.parametrize(
    "machine", MACHINES, ids=lambda machine: f"{machine.name} {machine.network_bandwidth:g}"
)
def test_no_grid_point_beats_the_closed_form(machine):
    found = least_time(machine)
    # m and b lie on the grid only within its steps of 0.46 % and 0.38 %, and the time goes with m^2 b
    assert st.elapsed_time(machine) <= found <= st.elapsed_time(machine) * 1.05


@given(some_machine)
def test_every_resource_is_in_time_at_the_optimum(machine):
    m, b, time = st.best_block(machine), st.best_batch(machine), st.elapsed_time(machine)
    assert st.block_time(machine, m, b) == pytest.approx(time)
    assert st.memory_time(machine, m, b) == pytest.approx(time)
    assert st.network_time(machine, m, b) <= time * (1 + 1e-9)


@given(some_machine, some.floats(0.8, 1.25), some.floats(0.8, 1.25))
def test_nothing_near_the_optimum_is_faster_at_full_utilisation(machine, wider, deeper):
    m, b = st.best_block(machine) * wider, st.best_batch(machine) * deeper
    if st.block_utilisation(machine, m, b) >= 1 - 1e-9:
        assert st.block_time(machine, m, b) >= st.elapsed_time(machine) * (1 - 1e-8)


@given(some_machine)
def test_the_block_is_never_smaller_than_the_batch(machine):
    assert st.best_block(machine) >= st.best_batch(machine) * (1 - 1e-12)


# --- Where the branches meet -----------------------------------------------------------------------------


def at(ratio, machine=A100):
    """The machine with a network that one chip sees as a share of the memory bandwidth."""
    return machine.replace(network_bandwidth=ratio * machine.memory_bandwidth * math.sqrt(machine.chips))


def test_the_branches_meet_at_two_thirds_with_equal_slope():
    least = st.memory_limited_time(A100)
    assert st.network_limited_time(at(2 / 3)) == pytest.approx(least, rel=1e-12)
    step = 1e-4
    slope = (st.network_limited_time(at(2 / 3 + step)) - st.network_limited_time(at(2 / 3 - step))) / (
        2 * step
    )
    assert abs(slope) < 1e-6 * least
    # a touch, not a crossing
    for ratio in (0.2, 0.5, 0.6, 0.7, 0.9, 0.99):
        assert st.network_limited_time(at(ratio)) > least


@pytest.mark.parametrize("ratio", [2 / 3, 0.8, 0.99, 1.0, 1.01, 5.0, 1e6])
def test_a_faster_network_buys_nothing(ratio):
    assert st.elapsed_time(at(ratio)) == pytest.approx(st.memory_limited_time(A100), rel=1e-12)


@pytest.mark.parametrize("ratio", [0.001, 0.1, 0.5, 0.66])
def test_a_slower_network_costs(ratio):
    assert st.elapsed_time(at(ratio)) == pytest.approx(st.network_limited_time(at(ratio)), rel=1e-12)
    assert st.elapsed_time(at(ratio)) > st.memory_limited_time(A100)


def test_limits():
    slow = at(1e-6)
    c, m, b, n = slow.flops, slow.memory_bandwidth, slow.network_bandwidth, slow.chips
    assert st.elapsed_time(slow) == pytest.approx(8 * c**2 * n / (b**2 * m), rel=1e-5)
    # the two printed branches, typed here once as the post prints them
    assert st.memory_limited_time(A100) == pytest.approx(54 * 312e12**2 / 2e12**3, rel=1e-12)
    second = 8 * 312e12**2 * 8 / (2e12**2 * (2e12 - 2e12 / math.sqrt(8)))
    assert st.elapsed_time(A100) == pytest.approx(second, rel=1e-12)


def test_doubling_rates():
    base = st.elapsed_time(A100)
    both = A100.replace(memory_bandwidth=4e12, network_bandwidth=4e12)
    assert st.elapsed_time(both) == pytest.approx(base / 8)
    assert st.elapsed_time(A100.replace(flops=2 * A100.flops)) == pytest.approx(4 * base)
    # the same numbers in one byte instead of two: an eighth of the time at the same arithmetic
    assert st.elapsed_time(A100.replace(word=1.0, weight_word=1.0)) == pytest.approx(base / 8)


# --- Giving up utilisation -------------------------------------------------------------------------------


@given(some_machine, some.floats(1, 100))
def test_k_times_smaller_is_k_squared_faster_at_utilisation_1_over_k(machine, k):
    m, b = st.best_block(machine) / k, st.best_batch(machine) / k
    assert st.block_time(machine, m, b) == pytest.approx(st.wasteful_time(machine, k))
    assert st.block_utilisation(machine, m, b) == pytest.approx(1 / k)


def test_latency_ends_it():
    k = st.latency_waste(A100)
    assert st.practical_time(A100, k) == pytest.approx(2 * st.Assumptions().latency)
    assert st.practical_time(A100, 1e9) == pytest.approx(st.Assumptions().latency)


# --- Grids of chips --------------------------------------------------------------------------------------


def test_grids():
    four = A100.replace(chips=4)
    assert st.grid_bandwidth(four, 2) == st.effective_bandwidth(four)
    assert st.grid_bandwidth(four, 1) == st.grid_bandwidth(four, 4) < st.effective_bandwidth(four)
    # four inputs and two outputs of 2 x 4 chips, where one chip alone has one of each
    assert st.grid_bandwidth(A100, 2) == pytest.approx(2e12 * 2 / 6)


def test_machines_needed_in_both_readings():
    assert [st.machines_needed(A100, d, 1024) for d in (8192, 16384)] == [64, 256]
    assert [st.machines_needed(A100, d, 1024, st.Assumptions.corrected()) for d in (8192, 16384)] == [8, 32]


# --- What was printed ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def card():
    return inferlib.scorecard("steinhardt2022")


def test_headline_numbers(card):
    cells = card.set_index(["artefact", "row", "column"]).reproduced
    assert cells["Technical answer", "A100", "first branch"] == pytest.approx(0.657e-6, abs=5e-10)
    assert cells["Technical answer", "A100", "second branch"] == pytest.approx(1.205e-6, abs=5e-10)
    assert cells["Technical answer", "a forward pass", ""] == pytest.approx(0.722, abs=5e-4)
    assert cells["Matrix multiplies", "multiplies over the next most expensive term", ""] == (6, 12)
    assert cells["Justification", "8 x A100", "block"] == 1024


def test_every_model_row_is_exact(card):
    assert set(card[card.kind == "model"].grade) == {"exact"}
    assert "missing" not in set(card.grade)


def test_exactly_these_rows_miss(card):
    missed = card[~card.grade.isin(["exact", "-"])]
    assert {(r.artefact, r.row): r.grade for r in missed.itertuples()} == {
        ("Batching", "memory"): "20%",
        ("Tiling", "memory"): "consistent",
        ("Introduction", "memory is usually the limit of TPU pods"): "off",
        ("Technical answer", "either branch can apply to current machines"): "off",
        ("Technical answer", "the formula is the larger of its two terms"): "off",
        ("Justification", "N chips: memory reads per machine are C^2 N / B^2"): "off",
        ("Justification", "N chips: operations per machine are C^3 N / (B^2 M)"): "off",
        ("One machine", "N is a perfect square where N = 8"): "off",
        ("More memory", "doing without the batch of 3C / M is effectively the same"): "off",
    }


def test_every_number_of_the_text_has_a_row(card):
    """The numerals of the post, in its order, all stand in the ledger."""
    printed = {str(value).replace(",", "") for value in card.printed}
    numbers = (
        "10 1000 1 5 40 2 100-200 54 8 3 312 7e-07 1.2e-06 30-50 1.5 4-5 160 0.7 250 1024 8192-16384 64-256 512-2048 "
        "4096 1-2 2048 6-12 16 29 0.5 8192 400 0.02 330 1.6 200 256 0.56 0.06 128 350 25 4 6 100 33"
    )
    assert set(numbers.split()) <= printed


def test_exact_arithmetic_of_the_warm_up():
    one, many, tile = tables.warm_up(), tables.warm_up(256), tables.warm_up(256, 2)
    assert one.microseconds.round(2).to_dict() == {"network": 0.04, "memory": 358.09, "arithmetic": 1.72}
    assert many.microseconds.round(0).to_dict() == {"network": 10, "memory": 403, "arithmetic": 441}
    assert tile.microseconds.round(2).to_dict() == {"network": 5.24, "memory": 6.99, "arithmetic": 6.88}
    assert many.amount["memory"] == 16 * (2 * 4096**2 + 4 * 4096 * 256)


def test_errata_are_filled():
    table = inferlib.errata("steinhardt2022")
    text = " ".join(table.to_numpy().ravel())
    assert "{" not in text and "nan" not in text
    for number in (
        "8 to 32 machines",
        "64 to 256 GPUs",
        "373 us",
        "403 us",
        "6.7 us",
        "20.95 us",
        "17 times",
    ):
        assert number in text


def test_modern_machines_are_all_bound_by_the_network():
    table = tables.modern()
    assert (table["ratio"] < 1).all()
    assert table.loc["at 400 GB/s", "time"] == pytest.approx(20.95, abs=0.005)


def test_one_change_at_a_time_starts_as_printed():
    table = tables.one_change_at_a_time()
    assert table.iloc[0].round(2).to_list() == [1.20, 0.72, 1.0]
    assert (table["multiply (us)"] > 0).all()


# --- Derivations -----------------------------------------------------------------------------------------


def test_the_derivation_meets_where_it_should():
    steps = [step.equation for step in derivations.meeting()]
    assert steps[0] == steps[3]  # equal blocks and zero slope at the same bandwidth
    time = derivations.network_limited().result
    slope = sp.diff(time, derivations.B).subs(derivations.B, derivations.meeting().result)
    assert sp.simplify(slope) == 0


def test_the_optimum_is_a_minimum():
    time, best = derivations._tight_time(), derivations.memory_limited()[4].equation.rhs
    assert sp.diff(time, derivations.m, 2).subs(derivations.m, best).is_positive


# --- Figures ---------------------------------------------------------------------------------------------


def test_figure_data():
    terms = figures.star_terms()
    assert (terms.slowest == terms[["network", "memory", "arithmetic"]].to_array().max("variable")).all()
    sweep = figures.network_sweep()
    assert (sweep.elapsed >= sweep["first"] * (1 - 1e-12)).all()
    assert float(sweep.second.idxmin()) == pytest.approx(2 / 3, abs=0.005)
    waste = figures.waste_sweep()
    assert float(waste.utilisation[0]) == pytest.approx(0.267, abs=5e-4)
    assert set(figures.regions().network) == {True}


# --- The running question --------------------------------------------------------------------------------

LLAMA, H100 = inferlib.load_model("Llama 3 70B"), inferlib.load_chip("H100 SXM")
BOX, WORK = inferlib.System(H100, 8), inferlib.Workload(batch=32, context=4096)


def test_decode_step_by_hand():
    step = st.decode_step(LLAMA, BOX, WORK)
    weights = 2 * 70.552387584e9 / 8 / 3.35e12
    # 160 multiplies; a block is the square root of one chip's share of one; 32 vectors in and out, two bytes
    vectors = 160 * 2 * 2 * math.sqrt(70.552387584e9 / 160 / 8) * 32 / 3.35e12
    assert step.terms["weights and activations"] == pytest.approx(weights + vectors)
    assert step.terms["arithmetic"] == pytest.approx(2 * 70.552387584e9 * 32 / 8 / 989.5e12)
    assert step.binding == "weights and activations"
    assert step.total * 1e3 == pytest.approx(5.31, abs=0.005)
    assert "memory_traffic" in str(inferlib.explain(step))


def test_decode_step_is_a_starred_equation():
    """With equal multiplies the total is the starred equation at that block, times their number."""
    system = inferlib.System(H100, 16)
    step = st.decode_step(LLAMA, system, WORK)
    machine = st.machine_of(H100)
    m = math.sqrt(sum(LLAMA.parameters().values()) / 160 / 16)
    assert step.total == pytest.approx(160 * st.block_time(machine, m, 32))
    assert step.terms["network"] == pytest.approx(160 * st.network_time(machine, m, 32))


def test_decode_step_formats():
    half = st.decode_step(LLAMA, BOX, inferlib.Workload(batch=1, context=0, weights="fp8"))
    full = st.decode_step(LLAMA, BOX, inferlib.Workload(batch=1, context=0))
    assert half.total == pytest.approx(full.total / 2, rel=1e-3)


def test_decode_step_says_when_it_cannot():
    small = st.decode_step(LLAMA, inferlib.System(H100, 1), WORK)
    assert small.status == "infeasible" and "141 GB" in small.reason
    pipeline = st.decode_step(LLAMA, BOX, WORK, inferlib.Layout(tp=4, pp=2))
    assert pipeline.status == "n/a"
    assert st.decode_step(LLAMA, BOX, WORK, inferlib.Layout(tp=8)).feasible
    tpus = inferlib.System(inferlib.load_chip("TPU v4"), 8, domain=1)
    assert st.decode_step(LLAMA, tpus, WORK).status == "n/a"


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("Llama 3 70B", BOX, WORK), "model"),
        ((LLAMA, H100, WORK), "system"),
        ((LLAMA, BOX, 32), "workload"),
        ((LLAMA, BOX, WORK, 8), "layout"),
    ],
)
def test_decode_step_refuses_the_wrong_kind(arguments, name):
    with pytest.raises(TypeError, match=name):
        st.decode_step(*arguments)


# --- Doors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["flops", "memory_bandwidth", "network_bandwidth", "chips", "word"])
@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, "312 TFLOP/s", None, True, [1.0, -1.0]])
def test_a_machine_refuses(field, bad):
    with pytest.raises((ValueError, TypeError), match=rf"Machine\.{field}"):
        A100.replace(**{field: bad})


def test_other_doors():
    with pytest.raises(ValueError, match="at least 1"):
        A100.replace(chips=0.5)
    with pytest.raises(LookupError, match="flop"):
        A100.replace(flop=1e12)
    with pytest.raises(LookupError, match="A100, warm-up"):
        st.load_machine("A100 warm-up")
    with pytest.raises(TypeError, match="chip"):
        st.machine_of("H100")
    with pytest.raises(ValueError, match="no bandwidth"):
        st.machine_of(H100.replace(scale_out_bandwidth=None, scale_up_bandwidth=None))
    with pytest.raises(ValueError, match="chips must be given"):
        st.machine_of(H100.replace(scale_up_size=None))
    with pytest.raises(ValueError, match="utilisation"):
        st.Assumptions(utilisation=1.5)
    with pytest.raises(ValueError, match="latency"):
        st.Assumptions(latency=-1e-6)


# --- Explorers -------------------------------------------------------------------------------------------


def test_an_explorer_shows_the_answer_of_the_chapter():
    shown = explorers.decode().evaluate()
    assert shown["weights and activations"] == pytest.approx(5.31, abs=0.005)
    assert explorers.network().evaluate()["least time"] == pytest.approx(1.205, abs=0.0005)
