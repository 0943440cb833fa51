"""Slips that no other test would notice, each against a fact from outside or a second way to the number."""

import re
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from facts import by_hand, from_table

import inferlib
from book.papers.erdil2025 import frontiers
from book.serving import energy as watts
from inferlib import Layout, System, Workload, frontier
from inferlib.formats import FORMATS
from inferlib.papers import erdil2025 as e, liminal2025, mazurek2025 as mz
from inferlib.papers.erdil2025.equations import model, toy
from inferlib.system import format_bytes
from tokenprice import ask, energy, load_model
from tokenprice.config import formats
from tokenprice.deployment import chip_peak  # noqa: F401, in tests/by_hand.tsv

H100, LLAMA = e.load_chip("H100"), e.load_model("Llama 3 70B")


def test_bits_of_formats_are_those_of_their_names():
    """IEEE 754 and the formats of eight and four bits say it in their names; tf32 is stored as 32 (NVIDIA, A100)."""
    for name, row in FORMATS.items():
        scale = {"mxfp4": 8 / 32}.get(name, 0)  # the format is that of a block with its scale
        assert row.bits == int("".join(c for c in name.split()[0].removeprefix("mx") if c.isdigit())) + scale
        assert format_bytes(name) == row.bits / 8


def test_a_frontier_prefers_speed_to_the_third_power_when_nothing_is_said():
    """Erdil's equation 45 with alpha 3: speed 2 against 1 is worth 8 times the cost, not 9."""
    for dearer, fastest in ((7.9, True), (8.1, False)):
        points = pd.DataFrame({"tokens_per_second": [200.0, 100.0], "usd_per_million": [dearer, 1.0]})
        assert (frontier.preferred(points)["tokens_per_second"] == 200.0) == fastest


def test_checking_drafts_costs_the_arithmetic_of_all_of_them():
    """A batch of 64 that checks four tokens each multiplies, and sends, as much as a batch of 256 without context."""
    shape, chip = LLAMA.shape, e.load_chip("H100")
    a = e.Assumptions()
    for stages in (1.0, 4.0):
        cut = model.Cut(stages, 1.0, "1D")
        four, many = (model.layout_terms(shape, chip, cut, 8, *at, a) for at in ((64, 0, 4), (256, 0, 1)))
        assert all(one == pytest.approx(other) for one, other in zip(four, many, strict=True))
    cut = model.Cut(1.0, 1.0, "1D")
    once, fourfold = (e.layout_latency(shape, chip, cut, 8, 4096, 0, n, a) for n in (1, 4))
    assert 3.5 < fourfold / once < 4, "bound by arithmetic, so that almost everything grows with the tokens"


def test_latent_attention_corrected_reads_the_matrices_of_the_released_model():
    """DeepSeek-V3's technical report, section 4.2: d 7168, 128 heads of 128, latents of 512 and 1536."""
    shape = e.load_model("DeepSeek-V3").shape
    d, heads, width, keys, queries = 7168, 128, 128, 512, 1536
    assert (shape.d_model, shape.n_heads, shape.head_dim) == (d, heads, width)
    assert (shape.kv_rank, shape.q_rank) == (keys, queries)
    inner = heads * width
    released = (keys + queries) * d + queries * inner + keys * 2 * inner + inner * d
    weights, _ = model.attention_bytes(shape, 1.0, e.Assumptions().corrected())
    assert weights == pytest.approx(shape.weight_bytes * released)
    assert model.attention_bytes(shape, 1.0, e.Assumptions())[0] > weights


def test_mazureks_corrections_turn_every_switch_but_the_cap_which_is_a_reading():
    switches = [f.name for f in fields(mz.Assumptions) if isinstance(f.default, bool)]
    printed, right = mz.Assumptions(), mz.Assumptions.corrected()
    assert [name for name in switches if getattr(printed, name) == getattr(right, name)] == ["capped"]


@from_table
def test_the_toy_model_answers_one_tensor_parallel_instance_only(others):
    asked = inferlib.load_model("Llama 3 70B"), System(inferlib.load_chip("H100 SXM"), 8), Workload(1)
    assert toy.toy_decode_step(*asked, Layout(tp=8)).feasible
    for layout in (Layout(tp=8, **others), Layout(tp=4, **others)):
        assert toy.toy_decode_step(*asked, layout).status == "n/a"


def test_a_frontier_of_the_toy_model_keeps_one_token_when_nothing_is_said():
    """Where the cache of a token is as large as all weights, memory for b sequences is 1 + b times the weights."""
    weights = LLAMA.weight_bytes * LLAMA.n_params
    greedy = LLAMA.replace(cache_bytes=weights)
    points = frontiers.toy_frontier(greedy, H100.replace(price=2.0))
    room = points.n_gpu * H100.memory_capacity / weights
    assert (room >= 1 + points.batch).all() and (room < 1 + 1.5 * points.batch).any()


test_a_system_answers_as_it_says = by_hand("test_a_system_answers_as_it_says", globals())


def test_records_of_sweeps_are_no_keys_and_layouts_are_equal_by_value():
    """Arrays have no truth value and no hash: a record that holds them is never a key."""
    many = np.array([1.0, 2.0])
    steps = [inferlib.Breakdown(({"memory": many},)) for _ in range(2)]
    assert len(set(steps)) == 2 and len({Layout(tp=8), Layout(tp=8), Layout(tp=4)}) == 2


@from_table
def test_a_pattern_stands_for_a_tensor_or_a_module_that_holds_it(name, kept):
    """As in published lists of 16-bit tensors: a star matches anything, a layer only itself, half a word nothing."""
    patterns = formats._Patterns(["model.layers.1.mlp*", "*.shared_expert", "self_attn"])
    assert patterns.match([f"layers.{name}"]) == kept


def test_the_grid_of_the_toy_frontier_is_that_of_the_published_notebook():
    """400 steps, even in the logarithm, from what the weights need (and one sequence) to 2^18 of each."""
    points = frontiers.toy_frontier(LLAMA, H100.replace(price=2.0), context=0)
    least = LLAMA.weight_bytes * LLAMA.n_params / H100.memory_capacity
    for axis, first in ((points.n_gpu, least), (points.batch, 1)):
        steps = np.log(axis / first) / (np.log(2**18 / first) / 399)
        np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)


def test_a_batch_of_one_is_the_largest_where_no_second_fits():
    model, chip = liminal2025.load_model("Llama3-70B"), liminal2025.load_chip("HBM3")
    at = 4096.0
    room = float(liminal2025.batch_room(model, chip, at, 8))
    exactly_one = at * room / 1.5  # the cache of a sequence grows with its context
    assert liminal2025.largest_batch(model, chip, exactly_one, 8) == 1
    assert liminal2025.largest_batch(model, chip, 3 * exactly_one, 8) is None


def test_a_prompt_pays_for_every_token_what_a_step_pays_for_one():
    """Parts that do not look back (connections between residual streams, routers, blocks) cost each token the same."""
    streams = 0
    for name in ("deepseek-ai/DeepSeek-V4-Pro", "Llama 3 70B"):
        model = load_model(name)
        one, prompt = model.flops(1), model.prefill_flops(1000)
        for part in ("connections", "feed-forward", "experts", "router"):
            if part in one:
                assert prompt[part] == pytest.approx(1000 * one[part])
                streams += part == "connections"
    assert streams == 1


@pytest.fixture(scope="module")
def fleet():
    """Fifty requests a second, of which eight machines read the prompts."""
    asked = {"weights": "fp8", "prompt_tokens": "2k", "output_tokens": 500, "request_rate": 50}
    return ask("Llama 3.3 70B", "4x H100", prefill_machine="4x H100", **asked)


def test_the_speed_that_a_fleet_prints_is_one_token_over_its_time(fleet):
    (speed,) = re.findall(r"([\d.]+) tokens/s per user", str(fleet))
    assert float(speed) == pytest.approx(1 / fleet.seconds, rel=6e-3)


def test_machines_that_read_are_as_busy_as_all_prompts_make_them(fleet):
    """Little's law: requests per second, times the seconds of one, over the machines that share them."""
    at_once = 50 * fleet.request.fresh_seconds
    assert fleet.fleet.prefill_replicas > at_once
    assert fleet.fleet.prefill_load == pytest.approx(at_once / fleet.fleet.prefill_replicas)


def test_joules_are_those_of_the_published_watts():
    """ML.ENERGY's leaderboard, 187 runs of one engine: within an eighth on average."""
    runs, parts = watts.rows(), energy.draw()
    found = watts.predicted(runs, (parts.awake, parts.reading, parts.calculating))
    assert (found / runs.joules_per_token - 1).abs().mean() < 0.125
