"""Every model against the measurements; a measurement of your own; other books."""

import io
from contextlib import redirect_stderr, redirect_stdout
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from facts import from_table

from book.serving import fit, tables
from book.serving.residuals import main
from book.synthesis import comparison, grid, printed_formulas
from tokenprice import Question, predictors
from tokenprice.deployment import decode_step

ROWS = printed_formulas.rows()
TABLE = comparison.rows()
MODEL, BOX, WORK = grid.running()


# --- Against measurements --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def answers():
    return comparison.all_answers()


def test_a_bound_by_hand_and_only_one_stage_of_a_pipeline_works_on_a_token():
    """gf-11: Llama 2 70B in 16 bits on eight A100s at 2.039 TB/s, one sequence."""
    row = comparison.over_bound().loc["gf-11"]
    weights = 2 * (68_976_648_192 - 32_000 * 8192)
    assert row.predicted == pytest.approx((weights + 105 * 327_680) / (8 * 2.039e12), rel=1e-6)
    row = next(TABLE.loc[["gf-11"]].itertuples())
    halved = row._replace(tp=4, pp=2)
    flat = comparison.answer("principles", row)
    assert comparison.answer("principles", halved).total == pytest.approx(2 * flat.total, rel=1e-9)


def test_reasons_why_a_row_is_not_clean():
    use = TABLE.use
    assert (use[TABLE.tier == "C"] != "clean").all() and (use[TABLE.duplicate_of != ""] != "clean").all()
    assert use["trt-10"] == "old grouped-cache kernels" and use["gf-01"] == "clean"


def test_errors_by_hand_and_bands_in_order(answers):
    table = comparison.errors(use=None)
    own = answers[(answers.who == "erdil2025") & answers.error.notna()]
    line, error = table.loc["erdil2025"], np.mean(abs(own.predicted / own.measured - 1))
    assert line["rows"] == len(own) and line["mean |error|"] == pytest.approx(error)
    assert line["n/a"] == (answers.who == "erdil2025").sum() - len(own)
    with pytest.raises(LookupError, match="no by 'colour'"):
        comparison.errors("colour")
    assert comparison._bands((1, 8)) == ["1", "2 to 8", "over 8"]


def test_erdil_s_printed_formula():
    """The claim that was to be checked: about 12 % against 49 % on clean dense rows, growing with the chips."""
    table = printed_formulas.check()
    assert table.formula["all"] == pytest.approx(0.12, abs=0.01)
    assert table.bound["all"] == pytest.approx(0.49, abs=0.01)
    several = table.formula[["2", "4", "8", "16", "32"]]
    assert several.is_monotonic_increasing and (table["formula, signed"] < 0).all()
    # gf-11 by hand: 80 layers, 4 times a kernel of 4 us and an all-reduce on a ring of sqrt(8); gf-07 on one chip: a
    # kernel, and no all-reduce
    for at, reduce in (("gf-11", 6.8e-6 + 1.2e-6 * (8**0.5 - 1)), ("gf-07", 0)):
        for bound, other, share in (("memory", "arithmetic", 0.75), ("arithmetic", "memory", 0.7)):
            wanted = 80 * 4 * (4e-6 + reduce) + ROWS[bound][at] / share
            found = printed_formulas.times(ROWS.assign(**{other: 0.0}))
            assert found[at] == pytest.approx(wanted, rel=1e-9), at


def test_what_the_chapters_say():
    ratio = comparison.over_bound()
    clean = ratio[(ratio.use == "clean") & ratio.instance]
    assert 1.4 < clean[clean.tp == 1].ratio.median() < 1.6  # "half as long again"
    assert clean[clean.tp == 8].ratio.median() > 3  # "several times"
    medians = [clean[clean.tp == tp].ratio.median() for tp in (1, 2, 4, 8)]
    assert medians == sorted(medians)
    check = printed_formulas.check()
    assert 0.7 < 1 - check.formula["all"] / check.bound["all"] < 0.8  # "three quarters of the error"
    old = TABLE[TABLE.use == "old grouped-cache kernels"]
    for row in old.itertuples():
        step = comparison.answer("principles", row)
        assert row.tpot / step.total > 3
        assert 1 < row.tpot / (step.terms["weights"] + 8 * step.terms["cache"]) < 2


def test_a_layer_in_time_adds_up_to_the_step():
    """80 layers and the head are the step; bytes over time are one share of the data sheet, whatever the matrix."""
    table = tables.one_layer(Question(MODEL, BOX, batch=WORK.batch, context=WORK.context))
    end = table.start + table.takes
    took = table.set_index(["kernel", "term"]).takes
    # columns of QKV, output, gate and up, down on a GPU, and a token of the cache; shares as in test_by_hand
    sizes = np.array([1024 + 2 * 128, 8192 / 8, 2 * 28672 / 8, 28672 / 8, 128256 / 8])
    *reads, head = 1e6 * 8192 * sizes * 2 / (0.8736 * 3.35e12)
    assert took.xs("weights", level="term").to_list() == pytest.approx(reads, rel=1e-4)
    cache = 32 * 4096 * 2 * 128 * 2 / (1e-6 * took.xs("cache", level="term").item())
    assert 0.8 < cache / 3.35e12 < 0.95
    head += took["0 QKV", "kernel launch"]  # as deep as QKV
    step = decode_step(MODEL, BOX, WORK).total
    assert 80 * end.max() + head == pytest.approx(1e6 * step, rel=1e-9)
    along = table.term.str.contains("arithmetic")
    assert table.start[~along].iloc[1:].to_list() == pytest.approx(end[~along].iloc[:-1].to_list())


def test_the_ladder_as_the_chapter_tells_it():
    """Six constants take three quarters off the bound; operators, with nothing fitted, beat them; then comes noise."""
    rungs = tables.ladder().set_index("with")
    bound, six, timed, sixth, planner, version, _ = (rungs.loc[name] for name in rungs.index)
    assert (0.2 < six / bound).all() and (six / bound < 0.3).all()
    assert (
        timed["dense, left out"] < six["dense, shown"]
        and timed["experts, left out"] < six["experts, left out"]
    )
    assert sixth["dense, left out"] < sixth["experts, left out"] < version["dense, shown"] < 1.2 * sixth.max()
    assert (six > 1.5 * sixth).all()
    assert sixth["dense, left out"] < planner["dense, left out"] < six["dense, left out"]


@from_table
def test_a_vendors_planner_beside_the_kernel_model_on_the_same_rows(engine, low, high):
    told = pd.read_csv(files("book.serving") / "planner.csv").set_index("id").tpot_ms
    rows = fit.data().query("id in @told.index and engine == @engine")
    planner = (1e-3 * told[rows.id] / rows.set_index("id").measured - 1).abs().mean()
    assert low < planner / abs(np.expm1(fit.left_out("model")[rows.index])).mean() < high


# --- A measurement of your own ---------------------------------------------------------------------------


def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main([*arguments])
    return status, out.getvalue(), err.getvalue()


def test_a_row_is_answered_by_everybody(answers):
    status, text, _ = run("gf-11")
    own = answers[(answers.id == "gf-11") & (answers.who == "kernels")].iloc[0]
    assert (
        status == 0 and f"| kernel model | {1e3 * own.predicted:.2f} ms | {100 * own.error:+.0f} % |" in text
    )
    assert all(predictors.label(key) in text for key in predictors.keys())
