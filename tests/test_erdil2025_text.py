"""Erdil 2025, sections 3 to 5: what the text prints, the equations as printed, and what the errata say."""

import random

import numpy as np
import pytest
from facts import by_hand, from_table

from book.audit import grading, published_rows, strata
from book.papers.erdil2025 import economics, program, readings
from book.papers.erdil2025.claims import context, long_contexts, model
from book.papers.erdil2025.claims.economics import cells_as_printed
from book.papers.erdil2025.figures import served_points
from book.principles import introduction
from inferlib.papers import erdil2025 as e
from inferlib.papers.erdil2025.derivations import bytes_of_an_all_reduce
from inferlib.papers.erdil2025.equations import model as model_equations, printed
from inferlib.papers.erdil2025.records import computing_at

H100 = e.load_chip("H100")
SEVENTY, EIGHT_BIT, MISTRAL = (
    e.load_model(n) for n in ("Llama 3 70B", "Llama 3 70B 8-bit", "Mistral Large 2")
)


@pytest.mark.parametrize("chip", economics.GENERATIONS)
def test_rents_are_those_that_the_text_rounds(chip):
    rent = published_rows.as_number(grading.published("erdil2025")["Text 4", "rents", chip].text)
    assert e.load_chip(chip).price == pytest.approx(rent, abs=0.01)


def printed_latency(shape, chip, n_gpu, batch, context):
    """Equation 29 put together from equations 30 to 44, each as printed."""
    assumed = readings.PRINTED_EQUATIONS
    chip, (protocol,) = chip.capped(), assumed.protocols
    nodes, reductions = model_equations.span(chip, n_gpu, "1D")[1], assumed.kernels
    sparse = model_equations.sparsity(shape, assumed)
    reduced = printed.bytes_reduced(shape, batch, shape.activation_bytes)
    between = printed.inter_node_reads(nodes, reduced)
    moving = printed.transfer_time(chip, n_gpu, between, printed.intra_node_reads(n_gpu, nodes, reduced))
    latency = printed.all_reduce_latency(protocol, n_gpu, nodes)
    network = printed.network_communication_time(shape, reductions, latency, moving)
    cache = printed.cache_elements_read(shape, context, batch)
    values = printed.activations_read(cache, printed.inputs_and_outputs_read(shape, batch))
    read = printed.bytes_read(shape, printed.parameters_read(shape, sparse, batch), values)
    weights = printed.pointwise_flop(shape, printed.active_parameters(shape, sparse))
    flop = printed.total_flop(batch, weights, printed.attention_flop(shape, context, assumed.flop_per_pair))
    waiting = printed.network_and_kernel_time(shape, reductions, assumed.t_kernel, network)
    return printed.overlapped_latency(chip, n_gpu, waiting, read, flop)


def general_latency(shape, chip, n_gpu, batch, context):
    return e.layout_latency(
        shape, chip, e.Cut(kind="2D"), n_gpu, batch, context, 1, readings.PRINTED_EQUATIONS
    )


@from_table
def test_printed_equations_are_the_2d_layout(name):
    """Equations 30 to 44 together equal one layout of the general model, read literally."""
    shape, draw = e.load_model(name).shape, random.Random(4)
    chip = computing_at(H100, shape)
    for _ in range(100):
        n_gpu, batch = 2 ** draw.uniform(1, 12), 2 ** draw.uniform(0, 12)
        at = shape, chip, n_gpu, batch, draw.choice([0.0, 10 ** draw.uniform(2, 5)])
        assert printed_latency(*at) == pytest.approx(general_latency(*at), rel=1e-12)


def test_the_printed_equations_wait_on_one_gpu_too():
    """One GPU waits for equation 40's base, though it has no other GPU to reduce with."""
    alone = GPT, computing_at(H100, GPT), 1.0, 1.0, 0.0
    assert printed_latency(*alone) - general_latency(*alone) == pytest.approx(96 * 4 * 6.8e-6)


def test_the_printed_equations_leave_out_what_swiglu_moves():
    gated = SEVENTY.shape, computing_at(H100, GPT), 64, 64, 0  # computes with 16 bits either way
    assert printed_latency(*gated) < general_latency(*gated)


GPT, V3 = (e.load_model(name).shape for name in ("GPT-3", "DeepSeek-V3"))


test_statements_by_hand = by_hand("test_statements_by_hand", globals())


def test_the_preferred_point_maximises_equation_45():
    curve = economics.curve("Llama 3 70B 8-bit")
    worth = printed.value(curve.tokens_per_second, curve.usd_per_million, 3)
    assert curve.iloc[worth.argmax()].equals(e.preferred(curve, 3))


def test_latents_need_less_flop_for_a_byte_than_a_chip_has_at_16_bits():
    needs, _ = model.bytes_and_flop_of_latents()
    assert needs < model.bytes_and_flop_of_latents("bf16")[1]


def test_attention_outweighs_the_weights_of_deepseek_by_hand():
    """35.5 billion active parameters, 4 x 128 x 512 FLOP a layer and token of context."""
    assert long_contexts.more_than_weights() == pytest.approx(2 * 35.5e9 / (4 * 128 * 512 * 58), rel=2e-3)


# One cell of Table 3 is rounded twice.
@from_table
def test_how_many_cells_come_out_at_an_alpha(table, alpha, counts):
    assert cells_as_printed(table, alpha) == counts


def test_bytes_of_an_all_reduce_as_derived():
    """Equations 41, 42 and 27 as printed."""
    steps = {step.number: step.equation.rhs for step in bytes_of_an_all_reduce() if step.number}
    values = {"X": 5.0, r"N_{\text{nodes}}": 9.0, r"N_{\text{GPU}}": 36.0}
    printed_steps = [steps[number] for number in ("41", "42", "27")]
    found = [one.subs({x: values[str(x)] for x in one.free_symbols}) for one in printed_steps]
    assert [float(value) for value in found] == [20, 30, 90]


def test_the_cheap_ends_hold_more_cache_than_their_memory_takes():
    at = economics.curve("Mistral Large 2", context=context.LONG).iloc[-1]
    cache = MISTRAL.cache_bytes * context.LONG * at.batch
    assert (cache / 1e12, at.n_gpu * 80e9 / 1e12) == pytest.approx((600, 20), rel=0.05)
    assert at.usd_per_million < 0.75 * context.cheap_ends("Mistral Large 2", context.LONG)


@from_table
def test_one_way_wins_all_along_and_attention_on_fewer_gpus_near_the_top(name):
    curve = economics.curve(name)
    top = curve[curve.tokens_per_second >= 0.8 * curve.tokens_per_second.max()]
    assert set(curve.kind) == {"1D"} and (top.scale_down > 1).mean() > 0.75
    assert (curve.scale_down > 1).mean() < 0.3


def test_the_star_lies_close_to_the_curve_of_its_model():
    name, speed, price = served_points()[1]
    plain, curve = (economics.curve("Llama 3 70B 8-bit", draft=draft) for draft in (None, economics.DRAFT))
    cost = curve[curve.tokens_per_second >= speed].usd_per_million.min()
    assert name == "Llama 3 70B" and cost == pytest.approx(price, rel=0.1)
    assert plain[plain.tokens_per_second >= speed].usd_per_million.min() > 5 * price


def test_pipelines_win_from_64_gpus_on():
    cuts = [e.best_layout(SEVENTY, H100, n, 32, context=4096)[0] for n in (32, 64, 128)]
    assert [cut.stages > 1 for cut in cuts] == [False, True, True]


def test_the_slope_is_bandwidth_and_the_wall_is_waiting():
    """Cost at nine tenths of the top speed over the least cost: dozens, and a few with unlimited bandwidth."""

    def slope_and_wall(**switches):
        curve = economics.switched(EIGHT_BIT, H100, **switches)
        wall = curve.tokens_per_second.max()
        nearly = curve[curve.tokens_per_second >= 0.9 * wall].usd_per_million.min()
        return nearly / curve.usd_per_million.min(), wall

    halved, drafted = economics.HALVED, e.load_model(economics.DRAFT)
    found = [slope_and_wall(**one) for one in ({}, {"network": True}, {"waits": halved}, {"draft": drafted})]
    slopes, walls = zip(*found, strict=True)
    assert walls == pytest.approx((152, 152, 249, 189), rel=0.01)  # the first is Table 4's
    assert slopes[:2] == pytest.approx((38, 4.3), rel=0.02)
    assert slopes[2] > 1.5 * slopes[0]  # before the wall bandwidth limits as before


def test_whole_gpus_have_room_for_the_caches_of_all_their_users():
    case = introduction.RUNNING.replace(weights="fp8", price=2.1)
    found = economics.offers(case, (50, 100))
    needed = EIGHT_BIT.n_params + found.users.astype(float) * 4096 * EIGHT_BIT.cache_bytes
    assert (needed <= 80e9 * found.GPUs.astype(float)).all()


def test_reading_ahead_is_worth_most_where_reading_and_waiting_take_equally_long():
    """One user: u^2 (u - 1) H = W with u the root of the GPUs. At the critical batch multiplying waits all the same."""
    seventy, hop = SEVENTY, 1e-6
    waits, reads = e.network_time(seventy, 2 * hop), e.weight_time(seventy, H100, 1)
    (u,) = (r.real for r in np.roots([waits, -waits, 0, -reads]) if abs(r.imag) < 1e-9)
    n = np.geomspace(1, 512, 20_000)
    times = e.prefetched_latency(seventy, H100, n, 0, e.grid_all_reduce_time(n, hop))
    assert n[times.argmin()] == pytest.approx(u**2, rel=1e-3)
    assert times.min() == pytest.approx(reads / u**2, rel=1e-3)
    assert 1 / times.min() > 1.9 / e.minimum_latency(seventy, H100, hop)
    at = seventy, H100, n, e.critical_batch(seventy, H100), e.grid_all_reduce_time(n, hop)
    ahead, plain = e.prefetched_latency(*at), e.toy_latency(*at)
    np.testing.assert_allclose(ahead, plain)


# The author's program, run as it stands (program_points.csv).
def test_the_state_that_prints_a_number_is_the_one_that_gives_its_digits():
    """Two numbers by two states by hand: 12 is 11.6 rounded, and no state gives the second."""
    printed = {("T", "a", ""): row_of("12"), ("T", "b", ""): row_of("0.5")}
    table = strata.strata(
        printed, {"old": {("T", "a", ""): 11.6}, "new": {("T", "a", ""): 13.0, ("T", "b", ""): 0.7}}
    )
    assert table.to_numpy().tolist() == [["exact", "20%"], ["", "off"]]
    assert strata.counted(table).loc["T"].to_list() == [1, 0, 2]


def row_of(text):
    return grading.Row("", "T", "", "", text, published_rows.last_digit(text), "1", "model")


def test_the_authors_last_program_gives_our_frontiers():
    for name in ("Mixtral 8x22B", "Llama 3 70B 8-bit", "Llama 3.1 405B 8-bit"):
        theirs = program.point(program.LAST, name, draft=True)
        ours = economics.preferred(economics.curve(name, draft=economics.DRAFT))
        assert ours[list(theirs.index)].tolist() == pytest.approx(theirs.tolist(), rel=1e-5)


def test_both_gains_of_section_4_1_come_out_by_the_first_program():
    """66 % and a doubling; 95 over 69 of Table 5 is 38 %."""
    exact = program.layers().loc["Text 4.1"] == "exact"
    assert (
        exact[program.FIRST].all() and not exact[[program.MAY, program.LAST, program.NOT_PUBLIC]].all().any()
    )
