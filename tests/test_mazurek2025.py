"""Mazurek & Schreiber 2025: printed equations typed once more, printed statements, simulations, measurements."""

import math

import numpy as np
import pytest
import sympy as sp
from facts import by_hand, exactly, from_table, lines, refused, rows_of
from hypothesis import given, strategies as some

import inferlib
from book.papers.mazurek2025 import derivations, repair, systems, validation
from book.papers.mazurek2025.counts import outweighing
from book.papers.mazurek2025.simulation import fullest
from inferlib.equation import EQUATIONS
from inferlib.papers import mazurek2025 as mz
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.decode import fits, stages

SHARED = inferlib.load_model("DeepSeek V3")
V3, K2 = mz.load_model("DeepSeek V3"), mz.load_model("Kimi K2")
FIXED = mz.Assumptions.corrected()
FOUR, NINE, RACK = map(mz.setup, mz.setups())

# --- The printed equations, typed here once as the source prints them, with Table 1's numbers ------------
B, S = 3, 5000
SHAPE = {"D": 7168, "H": 128, "DH": 128, "DC": 512, "DQ": 1536, "DR": 64, "DM": 2048, "NR": 256}


BY_NUMBER = {
    number: entry
    for (source, _), entry in EQUATIONS.items()
    for number in (entry.number, *entry.also)
    if source == "mazurek2025"
}


@pytest.mark.parametrize(("number", "printed"), lines("mazurek_equations"))
def test_equations_1_to_45_are_as_printed(number, printed):
    entry, known = BY_NUMBER[number], {"batch": B, "context": S}
    assert entry.function(V3, *(known[name] for name in entry.arguments)) == eval(
        printed, SHAPE | {"B": B, "S": S}
    )


test_equations_46_to_51_are_as_printed = exactly("test_equations_46_to_51_are_as_printed", globals())


def test_the_factor_2_is_all_that_corrected_flops_change():
    twice = ("value_flops", "absorbed_value_flops", "decode_absorbed_value_flops")
    once = ("score_flops", "absorbed_score_flops", "decode_absorbed_score_flops", "key_up_flops")
    for name in twice + once:
        function = getattr(eq, name)
        assert function(V3, B, S, FIXED) == (2 if name in twice else 1) * function(V3, B, S), name
    # 2 (128 + 64) + 2 x 128 for each head in place of 2 (128 + 64) + 128
    assert eq.decode_attention_flops(V3, 1, 1, FIXED) == 128 * 640


@pytest.mark.parametrize("form", ["vanilla", "absorbed"])
def test_a_prompt_of_one_token_takes_the_flops_of_a_step(form):
    prompt, step = (getattr(eq, f"{form}_{phase}_flops") for phase in ("prefill", "decode"))
    assert prompt(V3, B, 1) == step(V3, B, 1)


def _experts(parts):
    return sum(parts[name] for name in ("experts", "shared experts", "router"))


def _core(parts):
    return sum(parts[name] for name in ("projections", "scores", "values"))


@from_table
@pytest.mark.parametrize(
    ("ours", "theirs", "note"), rows_of("by_hand", "test_sizes_agree_with_the_shared_library")
)
def test_sizes_agree_with_the_shared_library(name, ours, theirs, note):
    """An independent count: shapes and FLOP of the Transformer, which knows nothing of this source."""
    known = globals() | {"own": mz.load_model(name), "shared": inferlib.load_model(name)}
    assert eval(ours, known) == pytest.approx(eval(theirs, known))


HALF, MOVED = mz.Deployment(4, balancedness=0.5), 3 * 8 * 7168 * 9 / 4 / 0.5


test_activations_by_hand = by_hand("test_activations_by_hand", globals())


def test_the_largest_batch_fills_the_memory():
    own = eq.largest_own_batch(V3, FOUR.gpu, 4989, 9)
    assert eq.weights_on_gpu(V3, 9) + own * 4989 * 70272 == pytest.approx(80e9)
    assert fits(V3, FOUR.gpu, FOUR.deployment, 32 * math.floor(own), 4989) == ""
    assert "cache of" in fits(V3, FOUR.gpu, FOUR.deployment, 32 * math.ceil(own), 4989)


def test_absorption_changes_no_score_and_no_output():
    score, absorbed, again, _, output, late, _ = (step.equation.rhs for step in derivations.absorption())
    (applied,) = again.atoms(sp.MatrixSymbol) - score.atoms(sp.MatrixSymbol)
    assert score != again and again.subs(applied, absorbed).doit() == score.doit()
    assert output != late and sp.expand(output) == sp.expand(late)


# --- Experts ----------------------------------------------------------------------------------------------
test_experts_reached = by_hand("test_experts_reached", globals())


def test_the_printed_formula_is_above_the_derived_one_and_that_above_the_simulation():
    for tokens in (1, 4, 16, 64):
        found = fullest(tokens)
        assert found["printed"] >= found["without replacement"] >= found["simulated"] - 0.15
        assert found["simulated"] <= 8
    assert found["printed"] > 8


def test_experts_dealt_out_evenly_vary_less_by_the_share_of_idle_ones():
    """The variance in the formula, 64 of 256 active on 32 GPUs, is that of random draws."""
    random = np.random.default_rng(3)
    drawn = [np.bincount(random.choice(256, 64, replace=False) // 8, minlength=32) for _ in range(2000)]
    gpus = mz.Deployment(32)
    above = mz.fullest_gpu_experts_placed(V3, gpus, 64) - 2, mz.fullest_gpu_experts(gpus, 64) - 2
    assert 2 * (above[0] / above[1]) ** 2 == pytest.approx(np.var(drawn), rel=0.04)


test_experts_held_and_speeds_by_hand = exactly("test_experts_held_and_speeds_by_hand", globals())


@pytest.mark.parametrize("at", [FOUR, NINE, RACK], ids=lambda at: at.name)
def test_experts_loaded_end_at_those_held_unless_uncapped(at):
    full = mz.loaded_experts(V3, at.deployment, 1e6)
    assert full == mz.held_experts(V3, at.deployment) > mz.loaded_experts(V3, at.deployment, 2)
    assert mz.loaded_experts(V3, at.deployment, 1e6, mz.Assumptions.uncapped()) > full


test_balance_by_hand = by_hand("test_balance_by_hand", globals())


# --- Network ----------------------------------------------------------------------------------------------
TOKEN = 3 * 9 * 7168 * 61


test_the_network_by_hand = by_hand("test_the_network_by_hand", globals())


@given(some.floats(1, 1e5))
def test_no_batch_lifts_the_ceiling(own):
    for at in (FOUR, NINE, RACK):
        speed = mz.gpu_throughput(V3, at.gpu, at.deployment, own * at.deployment.n_gpus, 500)
        assert speed <= mz.network_ceiling(V3, at.gpu, at.deployment) * (1 + 1e-12)


# --- The whole --------------------------------------------------------------------------------------------
@from_table
def test_memory_bound_is_a_property_of_chip_and_factor(chip, printed, right):
    gpu, factor = mz.load_chip(chip), mz.Assumptions(value_flop=2.0)
    assert derivations.compute_bound_context(V3, gpu) == pytest.approx(printed, rel=3e-3)
    assert derivations.compute_bound_context(V3, gpu, factor) == pytest.approx(right, rel=2e-2)


def test_attention_outweighs_the_experts_from_65_gpus_on():
    assert outweighing() == derivations.attention_outweighs().result == 64 < outweighing(K2)
    held = mz.held_experts(K2, mz.Deployment(outweighing(K2) + 1))
    assert eq.experts_on_gpu(K2, held) < eq.attention_weights(K2)


@pytest.mark.parametrize("at", [FOUR, NINE], ids=lambda at: at.name)
def test_overlap_reads_weights_twice(at):
    one, tiny = at.deployment.replace(two_batch=False), at.deployment.n_gpus * 1e-3
    ratio = mz.step_time(V3, at.gpu, at.deployment, tiny, 10) / mz.step_time(V3, at.gpu, one, tiny, 10)
    assert 1.95 < ratio < 2  # except for experts, of which half a batch uses fewer


@from_table
def test_nothing_hides_an_overhead(two_batch, times):
    """At 2000 tokens, bound by the network: twice a layer with overlap, else once."""
    args = V3, NINE.gpu, NINE.deployment.replace(two_batch=two_batch), 72 * 256, 2000
    plain, late = (mz.step_time(*args, mz.Assumptions(overhead=t)) for t in (0.0, 1e-4))
    assert late == pytest.approx(plain + times * 61 * 1e-4, rel=1e-9)


def test_corrected_arithmetic_has_dense_layers_and_the_head():
    at = V3, NINE.gpu, NINE.deployment, 9216
    work, less = (eq.expert_arithmetic_time(*at, a) for a in (FIXED, mz.Assumptions()))
    dense = 2 * (9216 / 72) * 7168 * (9 * 18432 + 129280)
    assert work - less == pytest.approx(1.43 * dense / 1979e12)


# --- decode_step ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("two_batch", [True, False])
@from_table
def test_stages_add_up_to_the_step(batch, two_batch):
    where, late = NINE.deployment.replace(two_batch=two_batch), mz.Assumptions(overhead=1e-4)
    for assumptions in (mz.Assumptions(), FIXED, late):
        args = V3, NINE.gpu, where, batch, 2000, assumptions
        assert inferlib.Breakdown(stages(*args)).total == pytest.approx(mz.step_time(*args), rel=1e-12)


def box(chip="H200", count=8):
    return inferlib.System(inferlib.load_chip(chip), count)


def work(batch=32, context=4096, **formats):
    return inferlib.Workload(batch, context, **({"weights": "fp8"} | formats))


test_argument_checks = refused(globals())


# DeepSeek V3 with 64 and 48 in the place of twice 128.
NARROW = [g.replace(attention=g.attention.replace(nope_dim=64, value_dim=48)) for g in SHARED.layers]
WIDER_KEYS = mz.load_model(SHARED.replace(layers=tuple(NARROW)))


test_heads_whose_keys_are_wider_than_their_values = exactly(
    "test_heads_whose_keys_are_wider_than_their_values", globals()
)


# --- Against measurements ---------------------------------------------------------------------------------


def test_the_error_has_its_minimum_near_five_thousand():
    contexts = np.arange(500.0, 11050, 50)
    off = validation.rms(validation.compared(contexts).values())
    assert 5000 < contexts[off.argmin()] < 6000 and off.min() == pytest.approx(0.053, abs=0.001)


def test_a_fitted_overhead_brings_the_fourteen_points_near():
    found = repair.fitted()
    before, after = (validation.errors(validation.H100, a).values() for a in (mz.Assumptions(), found))
    assert 80e-6 < found.overhead < 105e-6
    assert validation.rms(before) == pytest.approx(0.247, abs=0.002)
    assert validation.rms(after) < 0.06 and max(map(abs, after)) < 0.12


def test_the_literal_reading():
    """Section 3.1.2 without a minimum: no context is fitted, none is needed on H100s, and no overhead helps."""
    errors = validation.compared(2050, systems.READINGS["literal"])
    # by hand: 3084 tokens/s at the network's ceiling against SGLang's 2782
    assert errors["9x8 H100", 256] == pytest.approx(3084 / 2782 - 1, abs=0.002)
    assert [errors["9x8 H100", own] for own in (64, 128)] == pytest.approx([-0.08, -0.01], abs=0.006)
    assert repair.strongest().loc["literal", "12x4 B200 at 2050"] > 0.25  # and on the rack it stays off


# --- Figures and extensions -------------------------------------------------------------------------------
@from_table
def test_the_largest_batch_at_20_tokens_a_second(name, own):
    at = mz.setup(name)
    users = (own * at.deployment.n_gpus, (own + 1) * at.deployment.n_gpus)
    fast, slow = (1 / mz.step_time(V3, at.gpu, at.deployment, n, 4989) for n in users)
    assert systems.largest_batch(name, 20.0) == own
    assert fast >= 20 > slow
