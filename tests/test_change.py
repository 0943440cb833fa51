"""``change``: a machine with the named change reaches the target; a change called not enough does not."""

import numpy as np
import pytest
from facts import from_table, refused

from inferlib import System, load_chip, load_model
from tokenprice import SLO, Question, ask, calibration, change
from tokenprice.deployment import decode_step
from tokenprice.kernels import Engine

MODEL, FOUR = load_model("Llama 3.3 70B"), System(load_chip("H100"), 4)
QUESTION = Question(MODEL, FOUR, batch=32, context=8192, weights="fp8")
NOW = ask(QUESTION).seconds


def seconds(system):
    return ask(QUESTION.replace(machine=system)).seconds


@from_table
def test_a_chip_with_the_bandwidth_reaches_the_target(resource, field):
    """``ask`` is repeated with the chip's bandwidth times the factor."""
    factor = change(QUESTION, tpot=0.99 * NOW)[resource].factor
    faster = FOUR.chip.replace(**{field: factor * getattr(FOUR.chip, field)})
    assert seconds(System(faster, 4)) == pytest.approx(0.99 * NOW, rel=1e-6)


def test_requests_reach_the_target_on_a_chip_with_the_bandwidth():
    asked = Question(MODEL, FOUR, prompt_tokens=2000, output_tokens=500, concurrency=32, weights="fp8")
    goal = 0.9 * ask(asked).seconds
    bandwidth = FOUR.chip.memory_bandwidth * change(asked, tpot=goal)["memory bandwidth"].factor
    faster = System(FOUR.chip.replace(memory_bandwidth=bandwidth), 4)
    assert ask(asked.replace(machine=faster)).seconds == pytest.approx(goal, rel=1e-6)


def test_an_engine_with_less_time_reaches_the_target():
    slower = change(QUESTION, tpot=0.9 * NOW)["engine time"].factor
    engine = calibration.engine()
    changed = {n: getattr(engine, n) * slower for n in ("layer", "rank", "sequence", "together", "shared")}
    step = decode_step(MODEL, FOUR, QUESTION.workload, engine=Engine(**changed, box=engine.box))
    assert step.total == pytest.approx(0.9 * NOW, rel=1e-6)


def test_what_does_not_bind_does_not_help():
    """Eight chips hide their arithmetic behind reading."""
    found = change(QUESTION, tpot=0.004)
    assert found["arithmetic peak"].factor is None and "does not matter" in found["arithmetic peak"].words
    assert found["engine time"].factor is None and "not by this alone" in found["engine time"].words


def test_one_chip_has_no_network():
    found = change("Llama 3 8B", "H200", tpot=1e-4)
    assert found["network latency"].words == found["network bandwidth"].words == "does not matter here"


def test_dollars_by_hand():
    """Half of today's cost takes half the time, or a rent lower by half of all, as 700 W at 45 cents cost the same."""
    rent, power = 2, 0.7 * 1.5 * 0.3
    million = 4 * NOW / 3600 / 32 * 1e6
    cost = million * (rent + power)
    asked = QUESTION.replace(price=rent, electricity=0.3, pue=1.5)
    found = change(asked, usd_per_million=cost / 2)
    price = found["price of a chip"]
    assert found.now == pytest.approx(cost) and price.limit == pytest.approx(million * power)
    assert price.factor == pytest.approx(1 - (rent + power) / 2 / rent)
    assert change(asked, usd_per_million=0.1 * cost)["price of a chip"].factor is None
    half = change(QUESTION, tpot=NOW / 2)
    assert found["memory bandwidth"].factor == pytest.approx(half["memory bandwidth"].factor, rel=1e-6)


def test_a_target_that_is_reached_says_by_how_much_each_may_be_worse():
    found = change(QUESTION, tpot=2 * NOW)
    assert found.reached and "reached" in str(found)
    for each in found.changes:
        less = each.resource in ("network latency", "kernel launch", "engine time")
        assert each.factor >= 1 if less else each.factor <= 1, each
    slow = FOUR.chip.replace(memory_bandwidth=FOUR.chip.memory_bandwidth * found["memory bandwidth"].factor)
    assert seconds(System(slow, 4)) == pytest.approx(2 * NOW, rel=1e-6)


def test_chips_are_asked_one_by_one():
    """The nearest number of chips that is fast enough, in copies where there are copies."""
    sizes = {n: seconds(System(load_chip("H100"), n)) for n in (8, 16, 32, 64)}
    target = float(np.mean([sizes[8], NOW]))
    found = change(QUESTION, tpot=target)["chips"]
    assert found.factor == 2 and found.limit == pytest.approx(min(sizes.values()))
    asked = Question("DeepSeek V3", "16x H200", batch=1024, context=4096, weights="fp8", layout="DP16 EP16")
    found = change(asked, SLO(tpot=0.03))["chips"]
    assert "attention DP" in found.words
    n = int(16 * found.factor)
    assert ask(asked.replace(machine=f"{n}x H200", layout=f"DP{n} EP{n}")).seconds <= 0.03


test_refusals = refused(globals())


@from_table
def test_half_a_term_takes_half_the_latency_or_twice_the_bandwidth(resource, term, factor):
    """Terms add up: with a resource twice as good its term is half as long and all others are as they were."""
    seconds = ask(QUESTION).step.terms[term]
    found = change(QUESTION, tpot=NOW - seconds / 2)[resource]
    assert found.factor == pytest.approx(factor, rel=1e-3)
    assert found.limit == pytest.approx(NOW - seconds, rel=1e-6)
    gain = ask(QUESTION).speedup_if_doubled[resource]
    assert gain == pytest.approx(NOW / (NOW - seconds / 2), rel=1e-6)


def test_a_promise_kept_exactly_is_kept():
    found = change(QUESTION, tpot=NOW)
    assert found.reached and found["memory bandwidth"].factor == pytest.approx(1, rel=1e-6)
    assert found["arithmetic peak"].factor < 1  # hidden behind reading, it may be worse
