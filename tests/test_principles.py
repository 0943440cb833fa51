"""First principles against the counts of whole models, limits and hand calculation."""

import numpy as np
import pytest
import sympy as sp
from facts import by_hand, from_table
from hypothesis import given, settings, strategies as st

import inferlib
import tokenprice
from book import style
from book.principles import figures
from book.principles.introduction import RUNNING
from inferlib import principles
from inferlib.principles import derivations
from tokenprice import catalog

H100 = inferlib.load_chip("H100 SXM")
LLAMA = tokenprice.load_model("Llama 3 70B")
BOX = inferlib.System(H100, 8)
ENDLESS = inferlib.System(H100.replace(memory_capacity=None), 8)  # where only time is asked


USUAL = [name for name in catalog.models() if not tokenprice.load_model(name).unusual]


@pytest.mark.parametrize("name", USUAL)
@settings(max_examples=10)
@given(batch=st.integers(1, 512), context=st.integers(1, 200_000))
def test_a_profile_counts_what_the_model_counts(name, batch, context):
    """Two ways to the same bytes and FLOP: the flat profile, and the sum over groups of layers and parts."""
    model = tokenprice.load_model(name)
    if any(getattr(group.attention, "chunked", False) for group in model.layers):
        context = 1000  # within one chunk; beyond, the profile takes chunks at their cap
    profile = principles.profile_of(model)
    held = profile.always_read + profile.never_read + profile.expert_weights
    assert held == model.n_params and profile.never_read >= 0
    read = model.bytes_read(batch, context)
    cache = read.pop("cache")
    assert principles.weight_data(profile, batch) == pytest.approx(sum(read.values()), rel=1e-12)
    assert principles.cache_data(profile, batch, context) == pytest.approx(cache, rel=1e-12)
    flops = batch * sum(model.flops(context).values())
    assert principles.decode_work(profile, batch, context) == pytest.approx(flops, rel=1e-12)


STEP = principles.decode_step(LLAMA, BOX, inferlib.Workload(batch=32, context=4096))
PASSES = figures.one_cache_data(prompt=2048, steps=(1, 2, 1024))
test_steps_and_dollars_by_hand = by_hand("test_steps_and_dollars_by_hand", globals())


def test_at_no_context_a_token_costs_two_flop_for_each_weight_it_meets():
    """But for norms and biases, which are not multiplied."""
    profile = principles.profile_of(LLAMA)
    assert principles.decode_work(profile, 1, 0) == pytest.approx(2 * profile.always_read, rel=1e-4)


def test_critical_batch_is_where_reading_and_multiplying_meet():
    profile = principles.profile_of(LLAMA)
    b = principles.critical_batch(H100, profile)
    reading = principles.memory_time(H100, principles.weight_data(profile, b), 1)
    multiplying = principles.arithmetic_time(H100, principles.decode_work(profile, b, 0), 1)
    assert multiplying == pytest.approx(reading, rel=1e-4)
    assert b == pytest.approx(989.5e12 / 3.35e12)


@from_table
def test_a_prompt_offers_two_flop_for_every_token_and_weight(weights, bytes_each):
    profile = principles.profile_of(LLAMA, weights=weights)
    assert principles.prefill_intensity(profile, 512) == pytest.approx(2 * 512 / bytes_each, rel=1e-4)


def test_long_context_caps_the_intensity_at_twice_the_group_over_the_bytes():
    """Llama 3 70B has 8 query heads to one key/value head: 8 FLOP a byte at 16 bits, whatever the batch."""
    profile = principles.profile_of(LLAMA)
    for batch in (1, 64, 4096):
        assert principles.decode_intensity(profile, batch, 1e9) == pytest.approx(8, rel=2e-3)
    multi_head = principles.profile_of(tokenprice.load_model("GPT-3 175B"))
    assert principles.decode_intensity(multi_head, 1, 1e9) == pytest.approx(1, rel=1e-3)


def test_largest_batch_fits_and_what_does_not_says_so():
    work = inferlib.Workload(batch=1, context=4096)
    b = principles.largest_batch(LLAMA, BOX, work)
    weights, each = sum(LLAMA.weight_bytes().values()), LLAMA.cache_bytes(4096)
    assert weights + b * each <= 640e9 < weights + (b + 1) * each
    one, small = inferlib.System(H100, 1), inferlib.Workload(batch=1, context=1)
    assert principles.largest_batch(LLAMA, one, work) == 0
    for asked in (LLAMA, principles.profile_of(LLAMA)):
        step = principles.decode_step(asked, one, small)
        assert step.status == "infeasible" and "141 GB of weights" in step.reason


@from_table
def test_the_operators_of_a_layer_make_up_the_layer(name):
    """Last group of layers times its count, against the model's own totals without the other groups."""
    model = tokenprice.load_model(name)
    table = figures.layer_operators(model, batch=16, context=1000)
    counts, whole = [group.count for group in model.layers], model.flops(1000)
    others = [figures.layer_operators(model, 16, 1000, group=i).flop.sum() for i in range(len(counts) - 1)]
    found = np.dot(counts, [*others, table.flop.sum()])
    assert found == pytest.approx(16 * (sum(whole.values()) - whole["head"]), rel=1e-12)
    cache = model.layers[-1].attention.cache_values() * 2 * 16 * 1000
    assert table.cache_bytes.sum() == pytest.approx(cache)


@pytest.mark.parametrize("batch", [1, 64])
def test_what_does_not_fit_is_written_where_its_bar_would_stand(batch):
    """GPT-3 with 64 users of 4,096 tokens needs more than 640 GB; with one it does not."""
    ax = style.breakdown_bars(figures.kinds(RUNNING.replace(model="GPT-3 175B", batch=batch)))
    assert any("exceed the 640 GB of 8 × H100" in text.get_text() for text in ax.texts) == (batch == 64)


def test_operators_in_turn_add_up():
    """The largest batch on eight H100s at 1K context, and half of it at 2K: 26.6 and 44.7 ms, a factor 1.33."""
    profile = principles.profile_of(LLAMA)
    together = principles.overlapped_time(H100, profile, 8, 1486, 1024)
    in_turn = principles.in_turn_time(H100, profile, 8, 1486, 1024)
    assert (1e3 * together, 1e3 * in_turn) == pytest.approx((26.6, 44.7), abs=0.05)
    at = (H100, profile, 8, 743, 2048)
    assert principles.in_turn_time(*at) / principles.overlapped_time(*at) == pytest.approx(1.33, abs=0.005)
    step = principles.decode_step(LLAMA, ENDLESS, inferlib.Workload(1486, 1024))
    assert together == pytest.approx(step.total, rel=1e-12)


def test_the_two_bounds_part_most_where_the_derivation_says():
    """By search over contexts at a huge batch: twice, less 8 FLOP a byte over the 295 of an H100."""
    profile, contexts = principles.profile_of(LLAMA), np.geomspace(10, 1e6, 100_001)
    at = (H100, profile, 1, 1e9, contexts)
    ratio = principles.in_turn_time(*at) / principles.overlapped_time(*at)
    assert ratio.max() == pytest.approx(2 - 8 / (989.5 / 3.35), rel=1e-4)
    steps = derivations.two_bounds()
    symbols = ((name, s) for name, s in vars(derivations.MODEL).items() if isinstance(s, sp.Symbol))
    values = {symbol: getattr(profile, name) for name, symbol in symbols}
    values |= {derivations.CHIP.flops: H100.flops, derivations.CHIP.memory_bandwidth: H100.memory_bandwidth}
    values |= {derivations.BATCH: 1e9}
    assert float(steps[3].equation.rhs.subs(values)) == pytest.approx(contexts[ratio.argmax()], rel=1e-3)
    assert float(steps[4].equation.rhs.subs(values)) == pytest.approx(ratio.max(), rel=1e-4)


def test_the_opening_picture_reads_two_bytes_a_weight():
    read = [step.terms["weights"] for step in figures.kinds(RUNNING).values()]
    assert read == pytest.approx([2 * 69.5e9 / (8 * 3.35e12)] * len(read), rel=2e-3)
