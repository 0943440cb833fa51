"""The scatter with menus: what its script draws is what Python computed, and what was measured."""

import re

import pytest

import inferlib
from book.serving import fit, interactive
from book.synthesis import comparison
from tokenprice import Question, ask, decide
from tokenprice.formatting import format_layout

MODEL = {"model": "GPT-OSS 120B", "weights": "mxfp4"}
LENGTHS = [(1024, 1024)]
B200 = inferlib.load_chip("B200")
SHOWN = interactive.price_over_speed({"GPT-OSS 120B": MODEL}, [B200], LENGTHS)


def test_the_ring_is_what_decide_would_rent():
    """Of all layouts: same machine, speed and price with prompts; experts are spread at a hundred tokens a second."""
    work = {"prompt_tokens": 1024, "output_tokens": 1024, "tpot": 1 / 100, "ttft": 1}
    best = decide(MODEL["model"], weights=MODEL["weights"], **work, chips=[B200], counts=(1, 2, 4, 8)).best
    said = SHOWN.drawn(speed=100.0, first=1.0)["said"].replace(",", "")
    told = re.search(r"estimate by (\d) chips? (.+?) (\d+) users: ([\d.]+) tokens", said).groups()
    dollars = float(re.search(r"\$([\d.]+) per million", said)[1])
    assert told[:2] == (str(best.system.count), format_layout(best.layout)) == ("2", "TP2 x EP2")
    assert float(told[2]) == pytest.approx(best.concurrency, rel=0.1) and 100 <= float(told[3]) < 110
    assert dollars == pytest.approx(1e6 * best.dollars / 1024, rel=0.1)


def test_a_promise_that_nothing_keeps():
    assert SHOWN.drawn(speed=300.0, first=0.001)["said"].count("nothing here") == 2


def test_a_stricter_promise_never_costs_less():
    prices = [
        float(re.search(r"\$([\d.]+) per million", SHOWN.drawn(speed=float(v))["said"])[1])
        for v in (20, 50, 100, 200)
    ]
    assert prices == sorted(prices) and prices[-1] > 5 * prices[0]


def test_dots_are_public_rows():
    rows = fit.serving_rows()
    rows = rows[(rows.use == "clean") & (rows.model == "GPT-OSS 120B") & (rows.hardware == "B200")]
    near = rows[(rows.prompt_tokens.between(870, 1076)) & (rows.output_tokens.between(870, 1076))]
    assert len(SHOWN.dots) == len(near) > 20
    svg = SHOWN.drawn()["svg"]
    assert svg.count("<title>") == len(near) and all(
        url.replace("&", "&#38;") in svg for url in set(near.url)
    )


def test_every_answer_over_every_measurement():
    answers, rows = comparison.all_answers(), comparison.rows()
    mine = Question("Llama 3 70B", "8x H100", batch=32, context="4k")
    shown = interactive.answers_over_measurements(answers, rows, [(mine, 10e-3)])
    who = shown.menus[0].options.index("kernel model")
    own = answers[(answers.who == "kernels") & (answers.status == "ok") & (answers.use == "clean")]
    error = (own.predicted / own.measured - 1).abs()
    ratio = shown.dots[-1]["y"][who]
    whole = shown.drawn(who=who)
    predicted = ask(mine).seconds
    assert ratio == pytest.approx(predicted / 10e-3, rel=1e-2) and "mine, 10 ms" in whole["svg"]
    count, mean = map(int, re.search(r"(\d+) rows, mean error (\d+) %", whole["said"]).groups())
    assert count == len(own), "a row of one's own, which may be one of these, is drawn and not counted"
    assert mean == pytest.approx(100 * error.mean(), abs=0.6)
