"""Steinhardt 2022: the closed forms against a search by brute force, and what was printed."""

import math

import numpy as np
import pytest
import xarray as xr
from facts import by_hand, from_table, refused
from hypothesis import given, strategies as some

import inferlib
from book.papers.steinhardt2022 import explorers
from inferlib.papers import steinhardt2022 as st
from inferlib.papers.steinhardt2022 import Machine

A100 = st.load_chip("A100")
some_machine = some.builds(
    Machine,
    flops=some.floats(1e12, 1e16),
    memory_bandwidth=some.floats(1e11, 1e14),
    network_bandwidth=some.floats(1e9, 1e15),
    chips=some.integers(1, 256),
)


# --- The starred equation against the post's own example, counted by hand --------------------------------
# 2048 x 256 numbers of two bytes in and as many out; a 2048 x 2048 block; a multiply and an add each
@from_table
def test_the_tiling_example_by_hand(function, by_hand):
    assert function(st.load_chip("A100, warm-up"), 2048, 256) == pytest.approx(by_hand)


test_times_and_bandwidths_by_hand = by_hand("test_times_and_bandwidths_by_hand", globals())


# --- The closed forms against brute force ----------------------------------------------------------------
def least_time(machine, points=1500):
    """Least arithmetic time over a grid of m and b on which neither network nor memory is slower."""
    size = machine.flops / machine.memory_bandwidth
    m = xr.DataArray(size * np.geomspace(1, 1000, points), dims="m")
    b = xr.DataArray(size * np.geomspace(0.1, 30, points), dims="b")
    time = st.arithmetic_time(machine, m, b)
    allowed = st.block_time(machine, m, b) <= time * (1 + 1e-12)
    return float(time.where(allowed).min())


@from_table
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


# --- Giving up utilisation -------------------------------------------------------------------------------
@given(some_machine, some.floats(1, 100))
def test_k_times_smaller_is_k_squared_faster_at_utilisation_1_over_k(machine, k):
    m, b = st.best_block(machine) / k, st.best_batch(machine) / k
    assert st.block_time(machine, m, b) == pytest.approx(st.wasteful_time(machine, k))
    assert st.block_utilisation(machine, m, b) == pytest.approx(1 / k)


# --- Grids of chips --------------------------------------------------------------------------------------
H100, TPU = inferlib.load_chip("H100 SXM"), inferlib.load_chip("TPU v4")


@from_table
def test_what_a_machine_of_chips_is(chip, count, network, chips, bandwidth):
    machine = st.load_chip(chip, count, network=network)
    assert (machine.chips, machine.network_bandwidth) == (chips, bandwidth)


# --- The running question --------------------------------------------------------------------------------
LLAMA = inferlib.load_model("Llama 3 70B")
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
    assert step.bottleneck == "weights and activations"
    assert step.total * 1e3 == pytest.approx(5.31, abs=0.005)


def test_decode_step_is_a_starred_equation():
    """With equal multiplies the total is the starred equation at that block, times their number."""
    tpu = inferlib.load_chip("TPU v4")
    for chip, count, machine in (
        (H100, 16, st.load_chip(H100)),
        (tpu, 4096, st.load_chip(tpu, network="none")),
    ):
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


# --- Doors -----------------------------------------------------------------------------------------------
test_argument_checks = refused(globals())


# --- Explorers -------------------------------------------------------------------------------------------
MULTIPLY = explorers.multiply(A100, st.PRINTED)


# 54 C^2 / M^3 with a faster network than any; at k = 10 a hundredth, over 40 %, and the latency
@from_table
def test_the_box_of_a_multiply_shows_the_answer_of_the_chapter(state, output, microseconds):
    assert MULTIPLY.evaluate(**state)[output] == pytest.approx(microseconds, abs=0.0005)


# --- Drawings --------------------------------------------------------------------------------------------
