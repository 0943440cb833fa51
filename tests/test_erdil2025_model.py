"""Erdil 2025, sections 3 to 5: the complete model against print, limits, symmetries and brute force."""

import math
from itertools import product

import numpy as np
import pytest
from facts import from_table, lines, refused

from book import audit
from book.papers.erdil2025 import economics, frontiers, readings, speculation
from book.papers.erdil2025.figures_model import figure_curves
from inferlib import Layout, System, Workload, load_chip, load_model
from inferlib.papers import erdil2025 as e
from inferlib.papers.erdil2025 import search
from inferlib.papers.erdil2025.equations import model as m
from inferlib.papers.erdil2025.records import PROTOCOLS, computing_at

H100 = e.load_chip("H100")
LLAMA, LLAMA_8, SMALL = (e.load_model(f"Llama 3 {name}") for name in ("70B", "70B 8-bit", "8B"))
READINGS = e.Assumptions(), readings.TABLE_5, e.Assumptions.corrected()
GPT_4, DEEPSEEK = e.load_model("GPT-4"), e.load_model("DeepSeek-V3")
LL = next(p for p in PROTOCOLS if p.name == "LL")


def test_read_literally_equations_29_to_44_give_another_table_4():
    """132, 115 and 95 tokens/s where print has 152, 132 and 105."""
    literal = economics.table(4, readings.PRINTED_EQUATIONS)
    assert literal.tokens_per_second.round().tolist() == [132, 115, 95]
    assert literal.n_gpu.round().tolist() == [16, 24, 40]


def test_the_search_is_the_minimum_over_layouts():
    """The search, which shares pieces between layouts, against every layout by itself at random points."""
    random = np.random.default_rng(3)
    for name in ("Llama 3 70B", "GPT-4", "DeepSeek-V3", "Mixtral 8x22B"):
        shape = e.load_model(name).shape
        chip = computing_at(H100, shape)
        for _ in range(6):
            n_gpu, batch = 2 ** random.uniform(6, 11), 2 ** random.uniform(0, 10)
            context, new = float(random.integers(0, 5000)), int(random.integers(1, 4))
            for assumptions in READINGS:
                times = [
                    e.layout_latency(
                        shape, chip, e.Cut(stages, down, kind), n_gpu, batch, context, new, assumptions
                    )
                    for stages in search.pipeline_degrees(shape.n_layers, batch, True, assumptions)
                    for down in search.scale_downs(n_gpu / stages, assumptions)
                    for kind in assumptions.kinds
                    if not search.infeasible(shape, chip, n_gpu, stages, batch, context, assumptions)
                ]
                at = {"context": context, "new_tokens": new, "assumptions": assumptions}
                found = e.token_latency(e.load_model(name), H100, n_gpu, batch, **at)
                assert found == pytest.approx(min(times, default=math.inf), rel=1e-12)


@from_table
def test_no_cell_left_out_is_on_the_frontier(name, options, monkeypatch):
    """Every cell of a grid searched, against the few that the bounds let through."""
    monkeypatch.setattr(frontiers, "GRID", 200)
    model = e.load_model(name)
    curve = frontiers.frontier(model, H100, **options)
    shape, assumptions = model.shape, options.get("assumptions", e.Assumptions())
    n_gpu, batch = np.meshgrid(*frontiers.grid(shape, computing_at(H100, shape), assumptions), indexing="ij")
    options = {name: value for name, value in options.items() if name != "draft"}
    if "acceptance" in options:
        latency = speculation.speculative_latency(model, SMALL, H100, n_gpu, batch, **options)
    else:
        latency = e.token_latency(model, H100, n_gpu, batch, **options)
    points = frontiers.cheapest_below(latency, n_gpu / batch * latency)
    for column, values in (("tokens_per_second", 1 / latency), ("n_gpu", n_gpu), ("batch", batch)):
        np.testing.assert_allclose(curve[column], values.ravel()[points], rtol=1e-12)


def test_one_gpu_by_hand():
    """Weights over bandwidth and four launches a layer; nothing else at one sequence and no context."""
    unread = SMALL.shape.vocab_size * SMALL.shape.d_model  # the input embedding
    activations = 32 * (4096 * 3 + 6144 + 3 * (4096 + 14336))
    read = 2 * (SMALL.n_params - unread + activations)
    expected = read / (0.75 * 3.3e12) + 4 * 32 * 4e-6
    assert e.token_latency(SMALL, H100, 1, 1, pipeline=False) == pytest.approx(expected, rel=1e-12)


# equation 23: 6.8 us + 1.2 us (ranks/nodes - 1) + 10 us log2(nodes)
@from_table
def test_the_latency_of_an_all_reduce_by_hand(ranks, nodes, micro):
    assert m.collective_latency(LL, ranks, nodes, 2) == pytest.approx(micro * 1e-6)


def test_the_bytes_of_an_all_reduce_by_hand():
    """Equation 24: 2 bytes x 10,000 x 100 over 8 GPUs: 7/8 of it, once each way, at half of 450 GB/s."""
    (one,) = m.collectives(H100, (8, 1, 0), [2 * 10_000], 2, e.Assumptions(protocols=(LL,)))
    seconds = one.time(100) - one.time(0)
    assert seconds == pytest.approx(2 * (2 * 10_000 * 100) * 7 / 8 / (450e9 / 2))


def test_a_very_long_context_costs_its_cache_over_the_attainable_bandwidth():
    big = H100.replace(memory_capacity=1e18)
    seconds = e.token_latency(e.load_model("Mistral Large 2"), big, 8, 1, context=1e8)
    assert seconds == pytest.approx(360_448 * 1e8 / (8 * 0.75 * 3.3e12), rel=0.01)


# 4 x 128 heads over 2 bytes is 256 FLOP for a byte of cache; an H100 at 8 bits has 565 to spend: one token a pass
# waits for the cache, and four (drafts to verify) for arithmetic
@from_table
def test_what_binds_at_long_context(model, case, binding):
    assert e.best_layout(model, H100, 64, 64, **case)[1].bottleneck == binding


def test_speculation_never_hurts_and_needs_acceptance():
    """Scoring g + 1 positions costs a little more and yields the free token: never slower if all drafts are accepted.

    The expected tokens are a truncated geometric series.
    """
    for acceptance, tokens in product((0.0, 0.5, 0.8, 0.95), range(1, 7)):
        by_hand = sum(acceptance**i for i in range(tokens))
        assert e.expected_tokens(acceptance, tokens) == pytest.approx(by_hand), (acceptance, tokens)
    plain = e.token_latency(LLAMA_8, H100, 24, 8)

    def drafted(acceptance, **more):
        return speculation.speculative_latency(LLAMA_8, SMALL, H100, 24, 8, acceptance=acceptance, **more)

    assert drafted(0.0) == pytest.approx(plain, rel=1e-14)
    speeds = [drafted(a) for a in (0.3, 0.6, 0.8, 0.9)]
    assert speeds == sorted(speeds, reverse=True) and speeds[0] <= plain
    assert drafted(0.8, gamma_max=8) <= drafted(0.8)
    assert drafted(0.8, assumptions=e.Assumptions.leviathan()) < drafted(0.8)


def test_layouts_named_by_the_frontier_give_its_times():
    for setting in ({"model": "GPT-4", "draft": "Llama 3 8B"}, {"model": "Llama 3 70B", "chip": "H100"}):
        curve = economics.curve(**setting)
        for i in (0, len(curve) // 2, len(curve) - 1):
            seconds = economics.seconds_at(setting, curve.iloc[i])
            assert 1 / seconds == pytest.approx(curve.tokens_per_second[i], rel=1e-12)


def test_what_does_not_fit_says_so_and_a_breakdown_adds_up():
    assert e.token_latency(LLAMA, H100, 1, 1) == math.inf
    cut, step = e.best_layout(LLAMA, H100, 1, 1)
    assert cut is None and step.status == "infeasible" and "141.1 GB" in step.reason
    step = e.best_layout(LLAMA, H100, 8, 512, context=100_000, assumptions=e.Assumptions.corrected())[1]
    assert step.status == "infeasible"
    for model, batch, context in ((LLAMA, 32, 4096), (GPT_4, 64, 0), (DEEPSEEK, 200, 10_000)):
        step = e.best_layout(model, H100, 128, batch, context=context)[1]
        seconds = e.token_latency(model, H100, 128, batch, context=context)
        assert step.total == pytest.approx(seconds, rel=1e-12)


def test_decode_step():
    model, system, work = load_model("Llama 3 70B"), System(load_chip("H100 SXM"), 8), Workload(32, 4096)
    step = e.decode_step(model, system, work)
    by_hand = e.token_latency(e.load_model(model), e.load_chip(system.chip), 8, 32, context=4096)
    assert step.total == pytest.approx(by_hand, rel=1e-12) and "layout_latency" in str(audit.explain(step))
    halves = e.decode_step(model, system, work, Layout(tp=4, dp=2))
    alone = e.decode_step(model, System(system.chip, 4), Workload(16, 4096), Layout(tp=4))
    assert halves.total == pytest.approx(alone.total, rel=1e-12)


test_argument_checks = refused(globals())


def test_catalogue_maps_onto_the_papers_records():
    """The vendors' numbers are the paper's, rounded; the same shape gives the same model."""
    theirs, ours = H100, e.load_chip(load_chip("H100 SXM"))
    assert ours.flops == pytest.approx(theirs.flops, rel=0.02)
    assert ours.memory_bandwidth == pytest.approx(theirs.memory_bandwidth, rel=0.02)
    assert ours.scale_up_bandwidth == theirs.scale_up_bandwidth
    for name in ("Llama 3 70B", "Mixtral 8x7B"):
        shapes = e.load_model(load_model(name)).shape, e.load_model(name).shape
        ours, theirs = (e.token_latency(e.Model.of(shape), H100, 64, 8) for shape in shapes)
        assert ours == theirs


def test_figure_9_is_the_notebooks_own_output():
    """Text stored in the notebook of 27 May 2025: fastest points (speed, GPUs, batch), preferred (speed, cost)."""
    table = economics.three_customers(figure_curves(9)).set_index(["curve", "point"])
    columns = {"fastest": ["tokens/s", "GPUs", "users"], "preferred": ["tokens/s", "dollars per million"]}
    for curve, point, *printed in lines("figure_9"):
        found = table.loc[(curve, point), columns[point]].astype(float).round(2)
        assert list(found) == pytest.approx(list(map(float, printed)), abs=0.0051), (curve, point)


def test_the_shape_of_a_model_follows_its_format_and_no_other_sum():
    dense = e.load_model("Llama 3 70B")
    assert dense.replace(weight_bytes=1).shape.weight_bytes == 1
    assert dense.replace(n_layers=3).shape is None
