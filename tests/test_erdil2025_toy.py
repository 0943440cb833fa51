"""Erdil 2025, section 2, against print, limits and brute force."""

import math

import numpy as np
import pytest
from facts import by_hand, from_table, refused

from book import audit
from book.papers.erdil2025 import figures, frontiers, limits, readings, tables
from inferlib import Breakdown, System, Workload, load_chip, load_model
from inferlib.papers import erdil2025 as e
from inferlib.papers.erdil2025.equations import toy

H100, LLAMA, SMALL = e.load_chip("H100"), e.load_model("Llama 3 70B"), e.load_model("Llama 3 8B")
MODEL, BOX = load_model("Llama 3 70B"), System(load_chip("H100 SXM"), 8)
HOP = 1e-6


def latency(n_gpu, batch, model=LLAMA):
    return e.toy_latency(model, H100, n_gpu, batch, e.grid_all_reduce_time(n_gpu, HOP))


def test_published_parameter_counts_and_one_gpu_by_hand():
    """Meta states 8.03 and 70.6 billion; Brown et al. 175; Chowdhery et al. 540."""
    published = {"Llama 3 8B": 8.03e9, "Llama 3 70B": 70.6e9, "GPT-3": 175e9, "PaLM-540B": 540e9}
    for name, count in published.items():
        assert e.load_model(name).n_params == pytest.approx(count, rel=0.01)
    # 16 GB of weights over 3.3 TB/s
    assert e.single_gpu_latency(SMALL, H100, 1) == pytest.approx(16.06e9 / 3.3e12, rel=1e-4)
    # section 4.3: reading a cache of 36 GB over 3.3 TB/s
    seconds = limits.cache_read_time(e.load_model("Mistral Large 2"), H100, 1e5)
    assert seconds == pytest.approx(360_448 * 1e5 / 3.3e12)


test_toy_by_hand = by_hand("test_toy_by_hand", globals())


@from_table
def test_a_released_configuration_is_the_model_of_the_paper(name):
    assert e.load_model(load_model(name)).shape == e.load_model(name).shape


def test_no_instance_beats_the_optimum():
    """Brute force over a fine grid of sizes finds the closed forms of equations 13 and 14."""
    for model in map(e.load_model, e.models()):
        sizes = np.geomspace(1, 1000, 200_001)
        times = latency(sizes, e.critical_batch(model, H100), model)
        best = times.argmin()
        assert sizes[best] == pytest.approx(e.optimal_n_gpu(model, H100, HOP), rel=1e-3)
        assert times[best] == pytest.approx(e.minimum_latency(model, H100, HOP), rel=1e-8)


def test_the_fastest_instance_costs_nearly_three_times_as_much():
    """Its cost over the cost of its arithmetic alone is 3, less 2 over the root of its GPUs."""
    size, arithmetic = e.optimal_n_gpu(LLAMA, H100, HOP), e.arithmetic_time(LLAMA, H100, 1, 1)
    cost = e.cost_at_minimum_latency(LLAMA, H100, HOP)
    assert cost / arithmetic == pytest.approx(3 - 2 / math.sqrt(size))


def test_capacity_counts_weights_and_the_cache_of_the_whole_batch():
    """Two GPUs hold 160 GB: 141.1 GB of weights leave room for 57,663 tokens of 320 KiB."""
    free = 160e9 - 2 * 70_552_387_584
    tokens = free / (320 * 1024)
    assert toy.toy_fits(LLAMA, H100, 2, 1, tokens * 0.999) and toy.toy_fits(LLAMA, H100, 2, tokens * 0.999, 1)
    assert not toy.toy_fits(LLAMA, H100, 2, 1, tokens * 1.001) and not toy.toy_fits(LLAMA, H100, 1.7, 1, 0)
    short, long = (frontiers.toy_frontier(LLAMA, H100, context=c).usd_per_million.iloc[-1] for c in (1, 1e4))
    assert long > short


def test_parallel_attention_changes_one_row_of_table_1():
    """Parallel attention changes PaLM alone, and is no correction: text and caption state four all-reduces for all."""
    printed, parallel = tables.table_1(), tables.table_1(e.ToyAssumptions.parallel())
    changed = (printed - parallel).abs().max(axis=1) > 1e-9
    assert list(printed.index[changed]) == ["PaLM-540B"]
    assert parallel.tokens_per_second["PaLM-540B"] == pytest.approx(134.3, abs=0.05)
    assert parallel.n_gpu["PaLM-540B"] == pytest.approx(125, abs=0.5)
    assert set(audit.scorecard("erdil2025", "Table 1").query("kind == 'model'").right) == {"yes"}


def test_frontier_respects_demand_capacity_and_order():
    frontier = frontiers.toy_frontier(LLAMA, H100, demand=1e4)
    assert (frontier.tokens_per_second.diff().dropna() < 0).all()
    assert (frontier.usd_per_million.diff().dropna() < 0).all()
    assert (frontier.batch * frontier.tokens_per_second <= 1e4 * (1 + 1e-9)).all()
    assert (frontier.n_gpu * 80e9 >= LLAMA.n_params * 2 * (1 - 1e-9)).all()


# Prices with the peaks, and with the attainable rates.
@from_table
def test_frontier_extremes(model, options, price, bandwidth, flops):
    """Fastest: equation 14 and 6 us more in each all-reduce. Cheapest: arithmetic alone, if demand is no limit."""
    frontier = frontiers.toy_frontier(model, H100, **options)
    waits, reading = model.n_layers * 4, 2 * model.n_params / bandwidth
    hops = waits * HOP
    fastest = 3 * hops ** (2 / 3) * reading ** (1 / 3) - 2 * hops + waits * 6e-6
    assert frontier.tokens_per_second.iloc[0] == pytest.approx(1 / fastest, rel=2e-3)
    arithmetic = 1e6 * price / 3600 * 2 * model.n_params / flops
    assert frontier.usd_per_million.iloc[-1] == pytest.approx(arithmetic, rel=0.03)


def test_figure_1_has_no_fraction_of_a_gpu_when_corrected():
    assumed = readings.FIGURE_1, readings.FIGURE_1.replace(least_gpus=1.0)
    printed, corrected = (frontiers.toy_frontier(SMALL, H100, demand=1e4, assumptions=a) for a in assumed)
    assert printed.n_gpu.min() < 0.3 and corrected.n_gpu.min() == pytest.approx(1)
    assert corrected.usd_per_million.min() > 4 * printed.usd_per_million.min()


def test_decode_step_by_hand():
    step = e.toy_decode_step(MODEL, BOX, Workload(batch=32, context=4096))
    weights = 70_552_387_584 * 2 / (8 * 3.35e12)
    network = 80 * 4 * 2e-6 * (math.sqrt(8) - 1)
    assert step.total == pytest.approx(weights + network, rel=1e-12)
    assert step.bottleneck == "weights" and set(step.overlapped) == {"arithmetic"}


@from_table
def test_decode_step_refuses_what_it_cannot_describe(model, system, work, layout, status, reason):
    step = e.toy_decode_step(model, system, work, layout)
    assert step.status == status and reason in step.reason


test_argument_checks = refused(globals())


def test_the_law_of_figure_2_by_hand_and_stages_add_up_to_the_latency():
    """From 4 ms for 8 billion parameters: 4 * sqrt(62 / 8) and 4 * sqrt(540 / 8)."""
    data = figures.figure_2_data()
    assert list(data.measured_ms) == pytest.approx([4, 13, 32])
    assert list(data.law_ms) == pytest.approx([4, 11.136, 32.863], rel=1e-4)
    # the breakdown of the running question and equation 3 are the same sum
    for batch in (1, 1000):
        t_reduce = e.grid_all_reduce_time(16, HOP)
        step = Breakdown(toy.stages(LLAMA, H100, 16, batch, t_reduce))
        assert step.total == pytest.approx(e.toy_latency(LLAMA, H100, 16, batch, t_reduce), rel=1e-15)
