"""A sweep asks every model at every point, and says where nothing fits."""

import numpy as np
import pytest
from facts import from_table, refused

import inferlib
import tokenprice
from inferlib import papers
from tokenprice.terminal import main

LLAMA, H100 = inferlib.load_model("Llama 3 70B"), inferlib.load_chip("H100 SXM")
OVER = {"chips": [1, 8], "batch": [1, 64]}


@pytest.fixture(scope="module")
def found():
    """Every model over chips and batch."""
    asked = {"context": 4096, "weights": "bf16", "cache": "bf16", "by": "all"}
    return tokenprice.sweep(LLAMA, inferlib.System(H100, 8), over=OVER, **asked)


def test_seventy_billion_weights_of_two_bytes_fit_no_chip_of_80_gb(found):
    """Mazurek & Schreiber describe mixtures of experts alone."""
    keys = [key for key in papers.answerers() if not key.startswith("mazurek2025")]
    assert np.isnan(found.seconds.sel(by=keys, chips=1)).all()
    assert all("GB" in reason for reason in found.reason.sel(by=keys, chips=1).values.ravel())


def test_a_point_without_an_answer_says_why(found):
    assert ((found.reason != "") == np.isnan(found.seconds)).all()


def test_a_point_is_what_its_scalar_question_gets(found):
    for key in papers.answerers():
        step = papers.ask(key, LLAMA, inferlib.System(H100, 8), inferlib.Workload(64, 4096))
        place = found.sel(by=key, chips=8, batch=64)
        assert place.status.item() == step.status
        assert not step.feasible or place.seconds.item() == step.total


def test_terms_add_up_to_the_step(found):
    assert np.allclose(found.terms.sum("term", skipna=False), found.seconds, equal_nan=True)


test_one_answer_is_not_asked_of_an_axis = refused(globals())


def test_a_question_is_swept_in_its_words():
    """The bound of a batch of one is the time to read all weights."""
    found = tokenprice.sweep(
        "Llama 3 70B", "8x H100", context="4k", over={"weights": ["bf16", "fp8"], "chips": [1, 8]}, by="all"
    )
    assert found.sizes == {
        "by": len(papers.answerers()) + 1,
        "weights": 2,
        "chips": 2,
        "term": found.sizes["term"],
    }
    assert found.best("weights").sel(by="principles", chips=8).item() == "fp8"
    bound = found.seconds.sel(by="principles", weights="bf16", chips=8).item()
    assert bound == pytest.approx(70.55e9 * 2 / (8 * 3.35e12), rel=0.02)


BATCHES = tokenprice.sweep("Llama 3 70B", "8x H100", over={"batch": [1, 32]})


def test_a_sweep_keeps_intervals_and_prices():
    assert (BATCHES.low < BATCHES.seconds).all() and (BATCHES.seconds < BATCHES.high).all()
    rent = 8 * tokenprice.ask("Llama 3 70B", "8x H100").question.price_per_chip_hour
    assert np.allclose(BATCHES.usd_per_million * 1e-6, rent / 3600 * BATCHES.seconds / [1, 32])


def test_a_plot_has_a_line_for_each_model_and_refuses_too_many_axes(found):
    line = found.sel(chips=8).plot()
    assert len(line.get_lines()) == len(papers.answerers()) + 1 and line.get_xlabel() == "batch"
    with pytest.raises(ValueError, match="select a point first"):
        found.plot()


def test_a_token_takes_at_most_the_rated_power_of_its_chips():
    """700 W each, by the data sheet."""
    assert (BATCHES.joules_per_token < 8 * 700 * BATCHES.seconds / [1, 32]).all()


def test_a_machine_of_ones_own_chip_is_swept_by_its_name():
    mine = {"mine": H100.replace(name="mine", memory_capacity=10 * H100.memory_capacity)}
    found = tokenprice.sweep("Llama 3 70B", over={"machine": ["1x H100", "1x mine"]}, chips=mine)
    assert found.status.values.ravel().tolist() == ["infeasible", "ok"]


REQUEST = tokenprice.Question("Llama 3 70B", "8x H100", prompt_tokens="2k", output_tokens=500, weights="bf16")
CHOICES = {
    "TP8": {},
    "half": {"machine": "4x H100"},
    "2 x TP8": lambda q: q.replace(concurrency=q.concurrency / 2),
}


@pytest.fixture(scope="module")
def best():
    """Choices of machines for a few users and for many."""
    found = tokenprice.sweep(REQUEST, over={"choice": CHOICES, "concurrency": [2, 32, 128]})
    return lambda **how: found.best(**how).squeeze("by")


@from_table
def test_the_best_choice_is_the_fastest_the_cheapest_or_none_that_keeps_a_promise(how, choice, best):
    """Two copies halve the users of each, half the chips cost least, and no H100 decodes 70B in a millisecond."""
    assert {row["choice"] for row in best(**how).rows()} == {choice}


def test_the_best_choice_is_printed_with_its_time_and_price(best):
    """What ``ask`` says of the cheapest, half of the chips."""
    told = tokenprice.ask(REQUEST.replace(machine="4x H100", concurrency=128))
    *_, row = str(best(of="usd_per_million")).splitlines()
    assert f"{1e3 * told.seconds:.3g} ms  ${told.usd_per_million:.3g}  " in row


def test_a_copy_for_one_of_two_users_ties_and_for_half_of_many_does_not(best):
    assert [row["tie"] for row in best().rows()] == ["2 x TP8 or TP8", "", ""]


def test_two_chips_tie_where_their_intervals_overlap_and_one_chip_where_measured_pairs_do():
    """H100 and H200 differ by a third in bandwidth, less than both intervals; TP1 and TP8 of one chip differ more."""
    chips = {"H100": {}, "H200": {"machine": "8x H200"}}
    layouts = {"8": {}, "2": {"machine": "2x H100"}}
    ties = [
        tokenprice.sweep(REQUEST, over={"choice": one}).best().squeeze("by").tie.item()
        for one in (chips, layouts)
    ]
    assert ties == ["H200 or H100", ""]


def test_the_terminal_says_how_values_of_an_axis_are_given(capsys):
    assert main(["sweep", "Llama 3 8B", "H100", "--over", "chips=1,2"]) == 0
    assert main(["sweep", "Kimi K2", "H100", "--over", "batch=1"]) == 1  # no answer
    assert main(["sweep", "Llama 3 70B", "8x H100", "--over", "weights"]) == 2
    assert "must be like layout=TP8,PP2 TP4" in capsys.readouterr().err


@from_table
def test_nothing_is_best_where_nothing_fits_and_the_reason_is_said(model, limits, reason):
    found = tokenprice.sweep(model, "1x H100", over={"weights": ["bf16", "fp8"], "batch": [1, 2]})
    for row in found.best(**limits).rows():
        assert row["weights"] == "none" and reason in row["reason"]
