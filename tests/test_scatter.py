"""The scatter with menus: what its script draws is what Python computed, and what was measured."""

import re

import pytest

import inferlib
from book.serving import interactive
from tokenprice import decide
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
