"""Steinhardt 2022: the closed forms against a search by brute force, and what was printed."""

import math

import numpy as np
import pytest
import sympy as sp
import xarray as xr
from hypothesis import given, strategies as some

import inferlib
from book import audit
from book.audit import ledger
from book.steinhardt2022 import errata, explorers, figures, tables
from inferlib import equation
from inferlib.papers import steinhardt2022 as st
from inferlib.papers.steinhardt2022 import derivations, equations as model
from inferlib.papers.steinhardt2022.equations import Machine

A100 = st.load_chip("A100")
MACHINES = [
    A100,
    st.load_chip("A100, warm-up"),
    A100.replace(network_bandwidth=40e12),  # the network does not bind
    A100.replace(chips=1, weight_word=1.0),
    st.chip_of(inferlib.load_chip("H100 SXM")),
    st.chip_of(inferlib.load_chip("TPU v4"), network="links"),
    st.chip_of(inferlib.load_chip("TPU v4"), network="none"),
]
some_machine = some.builds(
    Machine,
    flops=some.floats(1e12, 1e16),
    memory_bandwidth=some.floats(1e11, 1e14),
    network_bandwidth=some.floats(1e9, 1e15),
    chips=some.integers(1, 256),
)


# --- The starred equation against the post's own example, counted by hand --------------------------------
# 2048 x 256 numbers of two bytes in and as many out; a 2048 x 2048 block; a multiply and an add each
@pytest.mark.parametrize(
    ("function", "by_hand"),
    [
        (st.network_traffic, 2 * 2 * 2048 * 256),
        (st.memory_traffic, 2 * 2 * 2048 * 256 + 2 * 2048 * 2048),
        (st.arithmetic_work, 2 * 2048 * 2048 * 256),
        (st.network_time, 2097152 / 400e9),
        (st.memory_time, 10485760 / 1.5e12),
        (st.arithmetic_time, 2147483648 / 312e12),
        (st.block_time, 10485760 / 1.5e12),
    ],
)
def test_the_tiling_example_by_hand(function, by_hand):
    assert function(st.load_chip("A100, warm-up"), 2048, 256) == pytest.approx(by_hand)


def test_eight_chips_share_one_network():
    """A machine-wide block of edge m sqrt(8), in and out, through 2 TB/s."""
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


@pytest.mark.parametrize("machine", MACHINES, ids=lambda at: f"{at.name} {at.network_bandwidth:g}")
def test_no_grid_point_beats_the_closed_form(machine):
    found = least_time(machine)
    # m and b lie on the grid only within its steps of 0.46 % and 0.38 %, and the time goes with m^2 b
    assert st.elapsed_time(machine) <= found <= st.elapsed_time(machine) * 1.05


@given(some_machine)
def test_every_resource_is_in_time_at_the_optimum(machine):
    m, b, time = st.best_block(machine), st.best_batch(machine), st.elapsed_time(machine)
    assert m >= b * (1 - 1e-12), "the block is never smaller than the batch"
    assert st.block_time(machine, m, b) == pytest.approx(time)
    assert st.memory_time(machine, m, b) == pytest.approx(time)
    assert st.network_time(machine, m, b) <= time * (1 + 1e-9)


@given(some_machine, some.floats(0.8, 1.25), some.floats(0.8, 1.25))
def test_nothing_near_the_optimum_is_faster_at_full_utilisation(machine, wider, deeper):
    m, b = st.best_block(machine) * wider, st.best_batch(machine) * deeper
    if st.block_utilisation(machine, m, b) >= 1 - 1e-9:
        assert st.block_time(machine, m, b) >= st.elapsed_time(machine) * (1 - 1e-8)


# --- Where the branches meet -----------------------------------------------------------------------------
def at(ratio, machine=A100):
    """The machine with a network that one chip sees as a share of the memory bandwidth."""
    return machine.replace(network_bandwidth=ratio * machine.memory_bandwidth * math.sqrt(machine.chips))


def test_the_branches_meet_at_two_thirds_with_equal_slope():
    least, step = st.memory_limited_time(A100), 1e-4
    assert st.network_limited_time(at(2 / 3)) == pytest.approx(least, rel=1e-12)
    before, after = (st.network_limited_time(at(2 / 3 + d)) for d in (-step, step))
    assert abs(after - before) / (2 * step) < 1e-6 * least
    # a touch, not a crossing
    for ratio in (0.2, 0.5, 0.6, 0.7, 0.9, 0.99):
        assert st.network_limited_time(at(ratio)) > least


def test_a_faster_network_buys_nothing_and_a_slower_one_costs():
    least = st.memory_limited_time(A100)
    for ratio in (2 / 3, 0.8, 0.99, 1.0, 1.01, 5.0, 1e6):
        assert st.elapsed_time(at(ratio)) == pytest.approx(least, rel=1e-12)
    for ratio in (0.001, 0.1, 0.5, 0.66):
        assert st.elapsed_time(at(ratio)) == pytest.approx(st.network_limited_time(at(ratio)), rel=1e-12)
        assert st.elapsed_time(at(ratio)) > least


def test_a_slow_network_alone_sets_the_time():
    slow = at(1e-6)
    c, m, b, n = slow.flops, slow.memory_bandwidth, slow.network_bandwidth, slow.chips
    assert st.elapsed_time(slow) == pytest.approx(8 * c**2 * n / (b**2 * m), rel=1e-5)


def test_the_two_branches_as_the_post_prints_them():
    assert st.memory_limited_time(A100) == pytest.approx(54 * 312e12**2 / 2e12**3, rel=1e-12)
    second = 8 * 312e12**2 * 8 / (2e12**2 * (2e12 - 2e12 / math.sqrt(8)))
    assert st.elapsed_time(A100) == pytest.approx(second, rel=1e-12)


def test_latency_ends_giving_up_utilisation():
    latency = st.Assumptions().latency
    assert st.practical_time(A100, st.latency_waste(A100)) == pytest.approx(2 * latency)
    assert st.practical_time(A100, 1e9) == pytest.approx(latency)


@pytest.mark.parametrize(
    ("changed", "times"),
    [
        ({"memory_bandwidth": 4e12, "network_bandwidth": 4e12}, 1 / 8),
        ({"flops": 2 * 312e12}, 4),
        # the same numbers in one byte instead of two: an eighth of the time at the same arithmetic
        ({"word": 1.0, "weight_word": 1.0}, 1 / 8),
    ],
)
def test_doubled_rates(changed, times):
    assert st.elapsed_time(A100.replace(**changed)) == pytest.approx(times * st.elapsed_time(A100))


# --- Giving up utilisation -------------------------------------------------------------------------------
@given(some_machine, some.floats(1, 100))
def test_k_times_smaller_is_k_squared_faster_at_utilisation_1_over_k(machine, k):
    m, b = st.best_block(machine) / k, st.best_batch(machine) / k
    assert st.block_time(machine, m, b) == pytest.approx(st.wasteful_time(machine, k))
    assert st.block_utilisation(machine, m, b) == pytest.approx(1 / k)


# --- Grids of chips --------------------------------------------------------------------------------------
def test_grids():
    four = A100.replace(chips=4)
    assert st.grid_bandwidth(four, 2) == st.effective_bandwidth(four)
    assert st.grid_bandwidth(four, 1) == st.grid_bandwidth(four, 4) < st.effective_bandwidth(four)
    # four inputs and two outputs of 2 x 4 chips, where one chip alone has one of each
    assert st.grid_bandwidth(A100, 2) == pytest.approx(2e12 * 2 / 6)
    assert all(st.grid_bandwidth(A100, rows) < st.grid_bandwidth(A100, math.sqrt(8)) for rows in (1, 2, 4, 8))


def test_blocks_of_a_whole_machine():
    """C N / B as the paragraph writes it, and the same with the 2 of the derivation."""
    assert st.rough_machine_block(A100) == pytest.approx(312e12 * 8 / 2e12)
    assert st.machine_block(A100) == pytest.approx(2 * st.rough_machine_block(A100))


@pytest.mark.parametrize(("edge", "blocks"), [(1024, [64, 256]), (2048, [16, 64])])
def test_how_many_blocks_the_widths_take(edge, blocks):
    assert [st.blocks_needed(d, edge) for d in (8192, 16384)] == blocks


def test_machines_and_chips_of_the_widths():
    assert tables.counts(2048) == ((16, 64), (128, 512))


@pytest.mark.parametrize(
    ("machine", "found"),
    [
        (A100, 156),
        (A100.replace(word=1.0), 78),
        (st.load_chip("A100, warm-up"), 208),
    ],  # 312 / 2: two operations, two bytes
)
def test_multiply_adds_per_number(machine, found):
    assert st.multiply_adds_per_number(machine) == found


def test_the_very_short_answer():
    assert st.very_short_time(A100, 1) == pytest.approx(160 * 156**3 / 312e12)


# --- What was printed ------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def card():
    return audit.scorecard("steinhardt2022")


def test_a_grade_and_an_erratum_do_not_contradict_each_other(card):
    """What is called wrong recomputes (then a reader sees both) or misses; it is never a claim that holds."""
    wrong = card[card.right == "no"]
    assert not (wrong.kind == "claim").any()
    cells = card.set_index(["artefact", "row", "column"])
    places = ("Justification", "8 x A100", "machines"), ("Technical answer", "a forward pass", "")
    for place in (*places, ("Batching", "memory", "amount")):
        assert tuple(cells.loc[place, ["grade", "right"]]) == ("exact", "no")
    assert cells.loc[("Batching", "memory", "time"), "right"] == "no"


def test_exact_arithmetic_of_the_warm_up():
    one, many, tile = tables.warm_up(), tables.warm_up(256), tables.warm_up(256, 2)
    assert one.microseconds.round(2).to_dict() == {"network": 0.04, "memory": 358.09, "arithmetic": 1.72}
    assert many.microseconds.round(0).to_dict() == {"network": 10, "memory": 403, "arithmetic": 441}
    assert tile.microseconds.round(2).to_dict() == {"network": 5.24, "memory": 6.99, "arithmetic": 6.88}
    assert many.amount["memory"] == 16 * (2 * 4096**2 + 4 * 4096 * 256)


NUMBERS = {
    "rough": 1248, "rough_rounded": 1024, "whole": 2496, "whole_rounded": 2048, "machines_low": 16,
    "machines_high": 64, "chips_low": 128, "chips_high": 512, "ratio": 4, "ratio_exact": (2496 / 1024) ** 2,
    "slow_us": 20.950, "fast_us": 1.2047, "times_slower": 17.391, "slow_ms": 8.6201, "stated_us": 373.33,
    "stated_low_us": 555 / 1.55, "stated_high_us": 565 / 1.45, "memory_us": 402.65, "arithmetic_us": 440.51,
    "layer_us": 27.532, "single_us": 358.09, "once_us": 1.7207, "vectors_gb": 0.066847, "batched_gb": 0.60398,
    "batched_gib": 0.5625, "work_g": 137.44, "work_gi": 128, "tile_stated_us": 6.6667, "tile_us": 6.9905,
    "tile_work_us": 6.8829, "tile_speed_up": 3.9385, "both_ways": 16384, "excess": 1.8290,
    "beyond_us": -0.657072 * 32 / 243, "single_low": 12, "single_high": 24, "four_low": 8, "four_high": 16,
    "loss": 0.057191, "uneven_us": 1.3141, "gain": 2.5, "use": 0.25, "memory_power": -1.5469,
    "network_power": -1.4531, "latency_k": 1.4170, "floor_gain": 3.0078, "layers": 80, "serial": 320,
    "serial_ms": 1.44373, "short": 0.14169, "pass_ms": 0.72187,
}  # fmt: skip


def test_the_numbers_of_the_errata():
    numbers = errata.formula() | errata.blocks() | errata.example()
    assert set(numbers) == set(NUMBERS)
    for name, value in NUMBERS.items():
        assert numbers[name] == pytest.approx(value, rel=5e-5), name
    # once more without the library: the k at which 1.205 us / (0.4 k^2) is 1.5 us
    assert numbers["latency_k"] == pytest.approx(math.sqrt(1.204666 / (0.4 * 1.5)), rel=1e-5)


def test_modern_machines():
    machines = {"post's A100": A100, "at 400 GB/s": tables.slow_network()} | tables.modern_machines()
    table = tables.modern(machines)
    pod, links = table.loc["TPU v4"], table.loc[tables.LINKS]
    others = table.drop(index="TPU v4")
    assert (others["ratio"] < 1).all() and pod["ratio"] == pod["B"] == math.inf
    assert pod["N"] == 4096 and links["N"] == 1
    assert pod["time"] == pytest.approx(54 * 275e12**2 / 1.2e12**3 * 1e6)
    assert links["ratio"] == pytest.approx(0.3 / 1.2 * 3 / 2)  # 300 GB/s beside two thirds of 1.2 TB/s
    assert table.loc["at 400 GB/s", "time"] == pytest.approx(20.95, abs=0.005)
    # two bytes of 312 TFLOP/s over 8 x 25 GB/s, times sqrt(8); a machine's is sqrt(8) times as wide again
    assert table.loc["A100 80GB", "machine"] == pytest.approx(8 * table.loc["A100 80GB", "block"] / 8**0.5)
    assert (table.loc[list(tables.CHIPS), "machine"] > 16384).all() and pod["machine"] > 16384


def test_one_change_at_a_time():
    """Every row by hand: microseconds of the second (or first) branch, then 160 of them at 40 % and 1.5 us."""

    def second(memory=2.0, network=2.0, chips=8):
        return 8 * 312**2 * chips / (network**2 * (memory - network / chips**0.5)) / 1e6

    def passed(multiply, utilisation=0.4, latency=1.5):
        return 0.16 * (multiply / utilisation + latency)

    first, printed, grid = 54 * 312**2 / 2**3 / 1e6, second(), 2 * (2 / 6) * 8**0.5
    expected = {
        "as printed": (printed, passed(printed)),
        "no latency": (printed, passed(printed, latency=0)),
        "utilisation 50 %": (printed, passed(printed, 0.5)),
        "utilisation 30 %": (printed, passed(printed, 0.3)),
        "memory 1.5 TB/s, as in the warm-up": (second(memory=1.5), passed(second(memory=1.5))),
        "8 chips as a 2 x 4 grid": (second(network=grid), passed(second(network=grid))),
        "one chip in a machine": (first, passed(first)),
        "four multiplies in a row in a layer": (printed, 2 * passed(printed)),
        "a network without limit": (first, passed(first)),
        "network 400 GB/s, as in the warm-up": (second(network=0.4), passed(second(network=0.4))),
        "the catalogue's A100 machine": (second(2.039, 0.2), passed(second(2.039, 0.2))),
    }
    table = tables.one_change_at_a_time()
    assert list(table.index) == list(expected)
    for name, (multiply, whole) in expected.items():
        assert table.loc[name, "multiply (us)"] == pytest.approx(multiply), name
        assert table.loc[name, "forward pass (ms)"] == pytest.approx(whole), name
        assert table.loc[name, "times as long"] == pytest.approx(whole / passed(printed)), name


# --- Nothing is typed ------------------------------------------------------------------------------------
# Wrong equations: the one replaced, and what it then returns, from what it returned and its arguments. Each moves
# a row that none before it moves.
MUTATIONS = [
    ("arithmetic_work", lambda value, machine, m, b: value * m),
    ("effective_bandwidth", lambda value, machine: 3 * value),
    ("network_traffic", lambda value, machine, m, b: value * m),
    ("memory_traffic", lambda value, machine, m, b: value / machine.network_bandwidth),
    ("sufficient_bandwidth", lambda value, machine: value / 1000),
    ("network_block", lambda value, machine: value**2),
    ("arithmetic_work", lambda value, machine, m, b: value * b),
    ("memory_block", lambda value, machine: value / 100),
    ("memory_batch", lambda value, machine: 3 * value),
    ("network_batch", lambda value, machine: value**2),
    ("memory_traffic", lambda value, machine, m, b: value / machine.chips),
    ("arithmetic_work", lambda value, machine, m, b: value / machine.chips),
    ("combining_work", lambda value, machine, m, b: value * m),
    ("network_time", lambda value, machine, m, b: value / machine.network_bandwidth),
    ("very_short_time", lambda value, machine, k, assumptions=None: value * k),
    ("block_time", lambda value, machine, m, b: value / m**3),
    ("block_time", lambda value, at, m, b: st.elapsed_time(at) * (b / st.best_batch(at)) ** 2),
    ("machine_block", lambda value, machine: value * 100),
    ("rough_machine_block", lambda value, machine: value * 100),
    ("blocks_needed", lambda value, d, m: value * d),
    ("attention_ratio", lambda value, d, context: 3 * value),
    ("multiplies", lambda value, assumptions=None: value / 4),
]


def mutate(monkeypatch, name, change):
    """Replace an equation in the room by another one, for as long as the test runs."""
    true = getattr(model, name)

    def wrong(*args, **kwargs):
        return change(true(*args, **kwargs), *args, **kwargs)

    wrong.equation = true.equation
    monkeypatch.setattr(model, name, wrong)


def forget():
    for cached in (ledger._computed, ledger._claimed, derivations._tight_batch, derivations._tight_time):
        cached.cache_clear()
    for (source, _), entry in equation.DERIVATIONS.items():
        if source == "steinhardt2022":
            entry.function.cache_clear()


def results(rows):
    """What the rows are computed to be; an error is a result as well."""
    found = {}
    for row in rows:
        try:
            found[row.place] = ledger.compute(row)[0]
        except Exception as error:  # a mutated equation need not have a limit or a solution
            found[row.place] = repr(error)
    return found


def test_every_result_can_come_out_otherwise(monkeypatch):
    """A row that no wrong equation changes is typed, or holds by itself."""
    forget()
    rows = (row for at in ledger._artefacts("steinhardt2022") for row in ledger._rows("steinhardt2022", at))
    still = [row for row in rows if row.kind in ("model", "claim")]
    right = results(still)
    for name, change in MUTATIONS:
        with monkeypatch.context() as patch:
            mutate(patch, name, change)
            forget()
            wrong = results(still)
        moved = {at for at, found in wrong.items() if found != right[at] and not isinstance(found, str)}
        still = [row for row in still if row.place not in moved]
    forget()
    assert {row.place for row in still} == READ_FROM_PRINTED


# Decided by what the post and the catalogue state and by no equation.
READ_FROM_PRINTED = set()


def test_what_a_machine_of_chips_is():
    h100, tpu = inferlib.load_chip("H100 SXM"), inferlib.load_chip("TPU v4")
    four = st.chip_of(h100, 4)
    assert (four.chips, four.network_bandwidth) == (4, 4 * h100.scale_out_bandwidth)
    assert four.sources["chips"] == "given" and "given" not in st.chip_of(h100).sources["chips"]
    linked = st.chip_of(tpu, 4, network="links")
    assert (linked.chips, linked.network_bandwidth) == (4, 4 * tpu.scale_up_bandwidth)
    one = st.chip_of(tpu, network="links")
    assert (one.chips, one.network_bandwidth) == (1, tpu.scale_up_bandwidth)
    assert "cloud.google.com" in tpu.sources["scale_up_size"] and one.sources["chips"] == "given"
    pod = st.chip_of(tpu, network="none")
    assert pod.chips == 4096 and st.elapsed_time(pod) == pytest.approx(st.memory_limited_time(pod))
    with pytest.raises(ValueError, match="scale_out_bandwidth"):
        st.chip_of(tpu)


@pytest.mark.parametrize("network", ["scale-out", "links", "none"])
@pytest.mark.parametrize("bad", [0, -1, 2.5, math.nan, "8", True])
def test_a_machine_has_a_whole_number_of_chips(network, bad):
    with pytest.raises((ValueError, TypeError), match="count"):
        st.chip_of(inferlib.load_chip("H100 SXM"), bad, network)


# --- Derivations -----------------------------------------------------------------------------------------
def test_the_derivation_meets_where_it_should_and_the_larger_branch_is_not_always_the_one():
    steps = [step.equation for step in derivations.meeting()]
    assert steps[0] == steps[3]  # equal blocks and zero slope at the same bandwidth
    time = derivations.network_limited().result
    slope = sp.diff(time, derivations.B).subs(derivations.B, derivations.meeting().result)
    assert sp.simplify(slope) == 0
    time, best = derivations._tight_time(), derivations.memory_limited()[4].equation.rhs
    assert sp.diff(time, derivations.m, 2).subs(derivations.m, best).is_positive
    # where the larger of the two branches is the wrong one
    first = st.memory_limited_time(A100)
    for x in (0.3, 0.6, 0.8, 1.2, 1.5):
        larger = max(first, st.network_limited_time(at(x)))
        assert math.isclose(larger, st.elapsed_time(at(x))) == (not 2 / 3 < x < 1)
    assert st.network_limited_time(at(1.5)) < 0


# --- The running question --------------------------------------------------------------------------------
LLAMA, H100 = inferlib.load_model("Llama 3 70B"), inferlib.load_chip("H100 SXM")
COUNT = sum(LLAMA.parameters().values())
UNLINKED = H100.replace(scale_out_bandwidth=None, scale_up_bandwidth=None)
BOX, WORK = inferlib.System(H100, 8), inferlib.Workload(batch=32, context=4096)


def test_decode_step_by_hand():
    step = st.decode_step(LLAMA, BOX, WORK)
    assert COUNT == pytest.approx(70.553706496e9, rel=1e-4)
    weights = 2 * COUNT / 8 / 3.35e12
    # 160 multiplies; a block is the square root of one chip's share of one; 32 vectors in and out, two bytes
    vectors = 160 * 2 * 2 * math.sqrt(COUNT / 160 / 8) * 32 / 3.35e12
    assert step.terms["weights and activations"] == pytest.approx(weights + vectors)
    assert step.terms["arithmetic"] == pytest.approx(2 * COUNT * 32 / 8 / 989.5e12)
    assert step.binding == "weights and activations"
    assert step.total * 1e3 == pytest.approx(5.31, abs=0.005)


def test_the_tree_of_an_answer_leads_to_it():
    step = st.decode_step(LLAMA, BOX, WORK)
    tree = str(audit.explain(step))
    for part in (
        f"pass_memory_time = {1e3 * step.total:.4g} ms",
        "multiplies = 160",
        "layers of Assumptions = 80",
        "multiplies_per_layer of Assumptions = 2",
        f"parameters = {COUNT / 1e9:.4g} B",
        "count = 8",
        "memory_traffic",
        "weight_word of H100 SXM = 2 B  [weights in bf16]",
    ):
        assert part in tree
    assert "pass_network_time" not in tree
    assert "pass_network_time" in str(audit.explain(st.decode_step(LLAMA, inferlib.System(H100, 16), WORK)))


def test_decode_step_is_a_starred_equation():
    """With equal multiplies the total is the starred equation at that block, times their number."""
    tpu = inferlib.load_chip("TPU v4")
    for chip, count, machine in ((H100, 16, st.chip_of(H100)), (tpu, 4096, st.chip_of(tpu, network="none"))):
        step, m = st.decode_step(LLAMA, inferlib.System(chip, count), WORK), math.sqrt(COUNT / 160 / count)
        assert step.total == pytest.approx(160 * st.block_time(machine, m, 32))
        if chip is H100:
            assert step.terms["network"] == pytest.approx(160 * st.network_time(machine, m, 32))
        else:
            assert "network" not in step.terms, "a pod is one machine"


def test_the_corrected_reading_doubles_the_multiplies_and_moves_more_vectors():
    corrected = st.Assumptions.corrected()
    assert st.multiplies(corrected) == 320 == 2 * st.multiplies()
    assert st.forward_pass_time(A100, 1, corrected) == pytest.approx(2 * st.forward_pass_time(A100, 1))
    few, many = (st.decode_step(LLAMA, BOX, WORK, None, a) for a in (st.PRINTED, corrected))
    # the same weights in twice as many blocks: vectors grow with the root of two
    weights = 2 * COUNT / 8 / 3.35e12
    assert many.total - weights == pytest.approx(math.sqrt(2) * (few.total - weights))


def test_formats_halve_the_step_and_decide_whether_it_fits():
    full, half = (inferlib.Workload(batch=1, context=0, weights=weights) for weights in ("bf16", "fp8"))
    total = st.decode_step(LLAMA, BOX, full).total
    assert st.decode_step(LLAMA, BOX, half).total == pytest.approx(total / 2, rel=1e-3)
    for work, status in ((full, "infeasible"), (half, "ok")):
        assert st.decode_step(LLAMA, inferlib.System(H100, 1), work).status == status


def test_decode_step_says_when_it_cannot():
    small = st.decode_step(LLAMA, inferlib.System(H100, 1), WORK)
    assert small.status == "infeasible" and "141 GB" in small.reason
    assert st.decode_step(LLAMA, BOX, WORK, inferlib.Layout(tp=4, pp=2)).status == "n/a"
    assert st.decode_step(LLAMA, BOX, WORK, inferlib.Layout(tp=8)).feasible
    tpus = inferlib.System(inferlib.load_chip("TPU v4"), 8, domain=1)
    assert st.decode_step(LLAMA, tpus, WORK).status == "n/a"


# --- Doors -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("field", ["flops", "memory_bandwidth", "network_bandwidth", "chips", "word"])
@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, "312 TFLOP/s", None, True, [1.0, -1.0]])
def test_a_machine_refuses(field, bad):
    with pytest.raises((ValueError, TypeError), match=rf"Machine\.{field}"):
        A100.replace(**{field: bad})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: A100.replace(chips=0.5), ValueError, "at least 1"),
        (lambda: A100.replace(flop=1e12), LookupError, "flop"),
        (lambda: st.load_chip("A100 warm-up"), LookupError, "A100, warm-up"),
        (lambda: st.chip_of("H100"), TypeError, "accelerator"),
        (lambda: st.chip_of(H100, network="link"), LookupError, "links"),
        (lambda: st.chip_of(UNLINKED), ValueError, "no bandwidth"),
        (lambda: st.chip_of(H100.replace(scale_up_size=None)), ValueError, "count must be given"),
        (lambda: st.Assumptions(utilisation=1.5), ValueError, "utilisation"),
        (lambda: st.Assumptions(latency=-1e-6), ValueError, "latency"),
        (lambda: st.decode_step(LLAMA, BOX, WORK, None, None), TypeError, "assumptions"),
    ],
)
def test_doors(call, error, message):
    with pytest.raises(error, match=message):
        call()


# --- Explorers -------------------------------------------------------------------------------------------
MULTIPLY = explorers.multiply(A100, st.PRINTED)


@pytest.mark.parametrize(
    ("state", "output", "microseconds"),
    [
        ({}, "least time", 1.205),
        # 54 C^2 / M^3 with a faster network than any; at k = 10 a hundredth, over 40 %, and the latency
        ({"network": 40}, "least time", 0.657),
        ({"network": 40, "k": 10}, "with latency", 0.00657 / 0.4 + 1.5),
    ],
)
def test_the_box_of_a_multiply_shows_the_answer_of_the_chapter(state, output, microseconds):
    assert MULTIPLY.evaluate(**state)[output] == pytest.approx(microseconds, abs=0.0005)


# 2 C N / B is 24960 for a network of 0.2 TB/s; a third of it is narrow enough
@pytest.mark.parametrize("state", [{}, {"network": 0.2, "k": 3}, {"machine": "H100 SXM", "k": 9}])
def test_a_block_narrower_than_the_matrices_needs_no_caution(state):
    assert not MULTIPLY.cautions(**state)


@pytest.mark.parametrize(
    ("state", "edge"),
    # eight H100 with 400 Gbit/s each: 2 C N / B by hand
    [({"network": 0.2}, 24960), ({"machine": "H100 SXM"}, 2 * 989.5 * 8 / 0.4)],
)
def test_a_block_wider_than_the_matrices_is_said(state, edge):
    assert MULTIPLY.cautions(**state)[explorers.TO_CUT] == pytest.approx((edge, 16384), rel=1e-3)


# --- Drawings --------------------------------------------------------------------------------------------
def test_what_the_drawings_draw():
    warm = st.load_chip("A100, warm-up")
    cut = figures.times(warm, 4096 / inferlib.sweep("grid", [1, 2, 4]), 256).sel(grid=4)
    # a tile's three times by hand: 4mb and 4mb + 2m^2 bytes, 2m^2 b operations
    assert float(cut.network) == pytest.approx(4 * 1024 * 256 / 400e9)
    assert float(cut.memory) == pytest.approx((4 * 1024 * 256 + 2 * 1024**2) / 1.5e12)
    assert float(cut.arithmetic) == pytest.approx(2 * 1024**2 * 256 / 312e12)
    drawn = [text.get_text() for text in figures.tiles(warm, 4096, 256)[2].texts]
    assert drawn == ["weights 1/16", "vectors 1/4"]
    assert figures.machine_traffic(A100) == {"apart": 8, "together": pytest.approx(4)}


def test_the_plane_marks_the_corner_that_a_search_finds():
    """Where the network's wall is the least allowed, and where it is not."""
    m, b = inferlib.sweep("m", 60, 5000, points=30), inferlib.sweep("b", 40, 1500, points=30)
    slow, fast = (figures.plane(machine, m, b).texts for machine in (A100, at(2)))
    told = [text.get_text() for text in (slow[0], slow[1], fast[1])]
    assert told[0] == "best for the\nmemory alone: 468 × 468, 0.66 μs"
    assert told[1:] == ["best: 882 × 241, 1.20 μs", "best: 468 × 468, 0.66 μs"]
