"""Sentences of the takeaways, the case files and the synthesis: if one says "three times", a test computes it."""

import re

import numpy as np
import pytest
from prose import notebook

from book.papers import cases
from book.papers.liminal2025 import efficiency
from book.papers.mazurek2025 import repair
from book.serving import tables
from book.synthesis import comparison, constants, grid, printed_formulas, shared_findings
from book.synthesis.grid import FIVE
from inferlib import Layout, System, Workload, load_chip, load_model, papers
from tokenprice import calibration, predictors

CASES = list(shared_findings.cases())
EQ_8 = "LIMINAL 2025, eq. 8"
READING = ("weights", "cache", "activations")


def status(*asked):
    return {key: predictors.ask(key, *asked).status for key in predictors.keys()}


# --- What the sources agree on ---------------------------------------------------------------------------
def test_all_five_are_asked_and_no_question_has_more_than_four_answers():
    """Counted question by question, for sentences that say "all"."""
    answering = set().union(*(shared_findings.answers(case) for case in CASES))
    assert answering == {predictors.label(key) for key in FIVE}
    table = grid.voices()
    assert max(table.columns) == 4 and (table.sum(axis=1) == 100).all()
    assert table.loc[["Mixtral 8x7B", "DeepSeek V3", "GPT-OSS 120B"], 4].sum() == 0 < table[4].sum()
    assert table.loc["GPT-OSS 120B", [2, 3, 4]].sum() == 0
    for chapter in ("synthesis", "measurements", "synthesis_record"):
        assert not re.search(r"all five|every one of the five", str(notebook(chapter).cells))


@pytest.mark.parametrize("case", CASES)
def test_faster_memory_is_what_everybody_would_buy(case):
    table = shared_findings.gains(case)
    wide = table.loc["twice the memory bandwidth"].drop(["sources", "lowest", "highest"])
    assert wide.between(4 / 3, 2 + 1e-9).all()
    assert table.highest["twice the arithmetic"] < 1.02
    assert table.highest[["twice the links", grid.LATENCY]].max() < 1.1
    assert (table.loc["half the bytes of weights and cache", wide.index] / wide).min() > 0.98
    assert (table.loc["twice the chips", wide.index] / wide).max() < 1.02


@pytest.mark.parametrize("kind", ["dense", "experts"])
def test_sixteen_short_sequences_together_take_less_than_half_the_time(kind):
    assert (shared_findings.ratios(f"{kind}, short", {"batch": 1}, {"batch": 16}) / 16).max() < 0.5


def test_memory_bound_for_every_source():
    """The binding term of every answer is one of reading, not of arithmetic or waiting."""
    for case in CASES:
        for who, step in shared_findings.answers(case).items():
            assert predictors.common_name(step.source, step.bottleneck) in READING, (case, who)


def test_gains_by_hand():
    """LIMINAL: two collectives in each of 80 layers beside the reading."""
    step = constants.ask("liminal2025", *shared_findings.cases()["dense, short"], "same")
    reading = step.terms["weights"] + step.terms["cache"]
    gain = shared_findings.gains("dense, short").loc["twice the memory bandwidth", "LIMINAL 2025"]
    assert gain == pytest.approx(step.total / (step.total - reading / 2))


def test_a_long_context_changes_the_currency():
    half = {
        case: shared_findings.gains(case).loc["half the batch"].drop(["sources", "lowest"]) for case in CASES
    }
    assert half["dense, short"].max() < 1.02 < 1.2 < half["dense, long"].highest
    grown = half["experts, long"].sub(half["experts, short"]).dropna()
    assert len(grown) > 1 and (grown > 0).all()
    wait = {case: shared_findings.gains(case).loc[grid.LATENCY, "highest"] for case in CASES}
    assert wait["dense, long"] <= wait["dense, short"] and wait["experts, long"] <= wait["experts, short"]
    flat = half["dense, long"].drop("highest") < 1.01
    assert list(flat[flat].index) == ["Steinhardt 2022"]
    steps = shared_findings.answers("dense, long")
    shares = {who: predictors.common_terms(step).get("cache", 0) / step.total for who, step in steps.items()}
    assert shares.pop("Steinhardt 2022") == 0 and min(shares.values()) > 0.25  # "a large part of the bill"


def test_measured_systems_wait_more():
    table = shared_findings.buys(*shared_findings.cases()["dense, short"])
    served = table.loc["twice the memory bandwidth", [EQ_8, "kernel model"]]
    assert (served < table.lowest["twice the memory bandwidth"]).all()
    assert np.isnan(table.loc[grid.LATENCY, EQ_8])  # its constant has no such quantity
    latency = table.loc[grid.LATENCY]
    assert latency.lowest <= latency["kernel model"] <= latency.highest < 1.05


# --- The case files --------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def printed_twice():
    return cases.printed_twice()


@pytest.mark.parametrize("table", cases.TWICE)
def test_each_table_of_the_first_case_is_what_its_assumptions_give(printed_twice, table):
    """Undoing two of six changes gives the row of Table 5, rounded as printed."""
    off = cases.computed_twice().loc[f"assumptions of {table}"] - printed_twice.loc[table]
    assert off.abs().max() <= 0.5
    assert abs(off["price of a million tokens"]) <= 0.005


OLDER = {"scale_downs": 0, "traffic": "over-read"}  # which of the six changes Table 5 needs undone


def test_two_of_six_changes_make_table_5():
    both = cases.computed_twice(**OLDER).iloc[0]
    assert both.to_dict() == pytest.approx(
        cases.computed_twice().loc["assumptions of Table 5"].to_dict(), rel=1e-12
    )


@pytest.mark.parametrize("name", OLDER)
def test_neither_of_the_two_changes_makes_table_5_alone(printed_twice, name):
    alone = cases.computed_twice(**{name: OLDER[name]}).iloc[0]
    assert abs(alone["tokens per second"] - printed_twice.loc["Table 5", "tokens per second"]) > 5


def test_table_6_is_worth_more_by_equation_45_at_the_alpha_of_table_5(printed_twice):
    """By hand: 83^3 / 0.70 is more than 69^3 / 0.52."""
    worth = cases.worth(printed_twice, 3)
    assert worth["Table 6"] / worth["Table 5"] == pytest.approx((83 / 69) ** 3 * 0.52 / 0.70)
    assert worth.idxmax() == "Table 6"


def test_table_6_is_faster_at_a_third_more_money(printed_twice):
    price = printed_twice["price of a million tokens"]
    assert 1.3 < price["Table 6"] / price["Table 5"] < 1.4


def test_the_third_case():
    table = cases.quoted_gains()
    assert list(table["batch at 32K"]) == [32, 8, 8]
    assert (table["batch at 128K"] == table["batch at 32K"] / 2).all()
    assert ((table["gain at 32K"] / table.quoted - 1).abs() < 0.01).all()
    assert (table["gain at 128K"] < 0.55 * table.quoted).all()
    misses = cases.misses()
    assert misses.idxmin() == 32 and (misses.drop([32, 48]) > 0.4).all()
    # the hint: the gain of a batch lies between nine tenths of it and the batch
    for name in table.index:
        batch, gain = efficiency.marker(name, "3D-DRAM", 32 * 1024)
        assert 0.9 * batch <= gain <= batch


def test_the_sequences_of_the_fourth_case_were_less_than_half_as_long():
    lengths = cases.lengths()
    assert lengths.mean_context.max() < 4989 / 2


def test_the_literal_reading_is_within_a_tenth_of_the_fourteen_points():
    found = repair.strongest()
    assert found.loc["literal", "14 rows"] < 0.1 < found.loc["capped", "14 rows"]
    assert found.loc["literal", "best overhead"] == 0


# --- The synthesis and the measurements ------------------------------------------------------------------
def test_structure_is_more_than_half_with_all_of_them():
    without = grid.constants_or_structure(without=["steinhardt2022"])["structure"]
    assert 0 < without < 0.5 < grid.constants_or_structure()["structure"] < 1


def test_a_batch_of_32_is_twenty_times_cheaper():
    usd = grid.whole_grid().usd_per_million.sel(model="Llama 3 70B", chip="H100 SXM", context=4096)
    usd = usd.sel(batch=[1, 32]).to_pandas().dropna()
    usd = usd[[papers.source_of(who) in (*FIVE, "principles", "kernels") for who in usd.index]]
    assert (usd[1] > 20 * usd[32]).all()
    assert 2.5 < usd[32].max() / usd[32].min() < 3.5


def test_who_refuses_what_does_not_fit():
    infeasible = grid.coverage(grid.whole_grid()).infeasible
    assert infeasible["Steinhardt 2022"] == 0
    assert 0 < infeasible["Erdil 2025"] < infeasible["bound of the peaks"] / 2


def test_who_can_run_deepseek_on_one_box_and_on_nine():
    """Only Mazurek & Schreiber's model describes data-parallel attention."""
    box = System(load_chip("H100 SXM"), 8)
    found = status(load_model("DeepSeek V3"), box, Workload(8, 4096, weights="fp8"))
    assert sorted(found[key] for key in FIVE) == 3 * ["infeasible"] + 2 * ["n/a"]
    assert found["kernels"] == found["principles"] == "infeasible"
    rack, asked = System(load_chip("H100 SXM"), 72), Workload(72 * 128, 2050, "fp8", "bf16")
    found = status(load_model("DeepSeek V3"), rack, asked, Layout(ep=72, dp=72))
    assert [key for key in FIVE if found[key] != "n/a"] == ["mazurek2025"]
    assert found["mazurek2025"] == "ok"


def test_erdil_is_nearest_and_those_without_latency_are_as_near_as_the_bound():
    error = comparison.errors()["mean |error|"]
    peaks = error[["steinhardt2022", "pope2022", "liminal2025"]]
    assert error["erdil2025"] < 0.2 and error["erdil2025"] < peaks.min() / 2
    assert (abs(peaks - error["principles"]) < 0.1).all(), peaks


def test_equation_8_comes_closest_on_single_chips():
    by_chips = comparison.matrix("tp")
    assert comparison.errors()["mean |error|"]["liminal2025.eq8"] < 0.21
    assert by_chips.drop(columns="kernels").loc[1].idxmin() == "liminal2025.eq8"


def test_erdil_comes_closest_on_two_chips_and_more():
    two = comparison.matrix("tp").loc[2:, [*FIVE, "liminal2025.eq8"]].astype(float)
    assert (two.idxmin(axis=1) == "erdil2025").all()


def test_equation_8_takes_two_thirds_of_the_bounds_error_away():
    formulas = printed_formulas.check()
    assert 0.6 < 1 - formulas[EQ_8]["all"] / formulas.bound["all"] < 0.7
    assert not formulas.isna().all().any()  # a source that does not describe dense models has no column


def test_equation_8_charges_too_much_in_a_box_and_too_little_beyond():
    signed = printed_formulas.check()["LIMINAL 2025, eq. 8, signed"]
    assert (signed[["4", "8"]] > 0.19).all() and (signed[["16", "32"]] < 0).all()


def test_the_capped_reading_is_the_nearer_one_on_all_clean_rows():
    error = comparison.errors()["mean |error|"]
    assert error["mazurek2025"] == pytest.approx(0.23, abs=0.005)
    assert error["mazurek2025.literal"] == pytest.approx(0.28, abs=0.005)


def test_mazurek_is_nearest_on_the_rows_that_it_describes():
    answers = comparison.all_answers()
    wide = answers[(answers.use == "clean") & (answers.who == "mazurek2025") & answers.error.notna()]
    others = answers[answers.id.isin(wide.id) & answers.who.isin(FIVE) & answers.error.notna()]
    assert others.groupby("who").error.apply(lambda e: e.abs().mean()).idxmin() == "mazurek2025"


def test_a_fifth_above_the_highest_answer_would_have_been_enough():
    (row,) = (row for row in comparison.rows().itertuples() if row.Index == "aic-32")
    total = [comparison.answer(key, row).total for key in ("erdil2025", "liminal2025.eq8", "kernels")]
    assert max(total) < row.tpot == 18.386e-3 < 1.2 * max(total)


def test_an_all_reduce_beyond_a_box_costs_many_latencies():
    assert calibration.engine("serving").box > 10 * calibration.operators("H100 SXM").reduce[8].latency


@pytest.fixture(scope="module")
def asked():
    return tables.asked()


def test_what_the_first_token_of_the_running_box_waits_for(asked):
    parts = (asked.prompt.total, 2 * asked.step.total, calibration.engine().ingress_delay)
    assert parts[0] > 0.6 * asked.ttft > sum(parts) - parts[0]
    assert 0 < asked.ttft - sum(parts) < 0.1 * asked.ttft


def test_short_steps_are_furthest_from_the_bound():
    ratios = comparison.over_bound()
    ratios = ratios[(ratios.use == "clean") & ratios.instance]
    eight = ratios[ratios.tp == 8]
    short, long = eight[eight.predicted < 2e-3].ratio, eight[eight.predicted > 8e-3].ratio
    assert short.median() > 1.5 * long.median() and len(short) > 5 < len(long)
    assert (ratios.ratio > 1).all()
