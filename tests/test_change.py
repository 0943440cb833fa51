"""What must change: a machine changed so reaches the target, as the estimate sees it; what is not enough is not."""

import numpy as np
import pytest

import inferlib
from inferlib import Layout, System, Workload, load_chip, load_model
from inferlib.serving import constants, decode_step, must_change
from inferlib.serving.kernels import Engine

MODEL, WORK = load_model("Llama 3.3 70B"), Workload(32, 8192, "fp8")
FOUR = System(load_chip("H100"), 4)
NOW = inferlib.estimate(MODEL, FOUR, WORK).seconds


def test_the_changed_machine_reaches_the_target():
    """Bandwidth by hand: the chip is typed with the factor, and asked through ``estimate``."""
    found = must_change(MODEL, FOUR, WORK, seconds=0.012)
    faster = FOUR.chip.replace(memory_bandwidth=FOUR.chip.memory_bandwidth * found["memory bandwidth"].factor)
    assert inferlib.estimate(MODEL, System(faster, 4), WORK).seconds == pytest.approx(0.012, rel=1e-6)
    slower = must_change(MODEL, FOUR, WORK, seconds=0.9 * NOW)["engine time"].factor
    engine = constants.engine()
    changed = {
        name: getattr(engine, name) * slower for name in ("base", "layer", "rank", "sequence", "together")
    }
    step = decode_step(MODEL, FOUR, WORK, engine=Engine(**changed, box=engine.box))
    assert step.total == pytest.approx(0.9 * NOW, rel=1e-6)


def test_what_does_not_bind_does_not_help():
    """Eight chips hide their arithmetic behind reading; the limit without an engine is the step less its term."""
    found = must_change(MODEL, FOUR, WORK, seconds=0.004)
    assert found["arithmetic peak"].factor is None and "does not matter" in found["arithmetic peak"].words
    terms = inferlib.estimate(MODEL, FOUR, WORK).step.terms
    for name, resource in (("engine", "engine time"), ("kernel launch", "kernel launch")):
        assert found[resource].factor is None
        assert found[resource].limit == pytest.approx(NOW - terms[name], rel=1e-6)
    assert found["network latency"].limit == pytest.approx(NOW - terms["collective latency"], rel=1e-6)
    assert found["network bandwidth"].limit == pytest.approx(NOW - terms["collective bandwidth"], rel=1e-6)


def test_one_chip_has_no_network():
    found = must_change(load_model("Llama 3 8B"), System(load_chip("H200"), 1), Workload(1), seconds=1e-4)
    assert found["network latency"].words == found["network bandwidth"].words == "does not matter here"


def test_dollars_by_hand():
    """A price is in proportion; half of today's cost needs half the price, or a step of half the time."""
    cost = 4 * FOUR.chip.price * NOW / 3600 / 32 * 1e6
    found = must_change(MODEL, FOUR, WORK, dollars_per_million=cost / 2)
    assert found.now == pytest.approx(cost) and found["price of a chip"].factor == pytest.approx(0.5)
    half = must_change(MODEL, FOUR, WORK, seconds=NOW / 2)
    assert found["memory bandwidth"].factor == pytest.approx(half["memory bandwidth"].factor, rel=1e-6)


def test_a_target_that_is_reached_says_by_how_much_each_may_be_worse():
    found = must_change(MODEL, FOUR, WORK, seconds=2 * NOW)
    assert found.reached and "reached" in str(found)
    for change in found.changes:
        less = change.resource in ("network latency", "kernel launch", "engine time")
        assert change.factor >= 1 if less else change.factor <= 1, change
    slow = FOUR.chip.replace(memory_bandwidth=FOUR.chip.memory_bandwidth * found["memory bandwidth"].factor)
    assert inferlib.estimate(MODEL, System(slow, 4), WORK).seconds == pytest.approx(2 * NOW, rel=1e-6)


def test_chips_are_asked_one_by_one():
    """The nearest number of chips that is fast enough, in copies where there are copies."""
    sizes = {n: inferlib.estimate(MODEL, System(load_chip("H100"), n), WORK).seconds for n in (8, 16, 32, 64)}
    target = float(np.mean([sizes[8], NOW]))
    found = must_change(MODEL, FOUR, WORK, seconds=target)["chips"]
    assert found.factor == 2 and found.limit == pytest.approx(min(sizes.values()))
    deepseek, box, work = (
        load_model("DeepSeek V3"),
        System(load_chip("H200"), 16),
        Workload(1024, 4096, "fp8"),
    )
    found = must_change(deepseek, box, work, seconds=0.03, layout=Layout(ep=16, dp=16))["chips"]
    assert "attention DP" in found.words
    best = inferlib.estimate(
        deepseek, System(load_chip("H200"), int(16 * found.factor)), work,
        Layout(ep=int(16 * found.factor), dp=int(16 * found.factor)),
    )  # fmt: skip
    assert best.seconds <= 0.03


def test_refusals():
    for wrong, told in (
        ({}, "give one target"),
        ({"seconds": 1, "dollars_per_million": 1}, "give one target"),
        ({"seconds": -1}, "seconds is -1"),
        ({"dollars_per_million": 0}, "dollars_per_million is 0"),
        ({"seconds": 1, "engine": "fast"}, "no engine 'fast'"),
    ):
        with pytest.raises((ValueError, LookupError), match=told):
            must_change(MODEL, FOUR, WORK, **wrong)
    with pytest.raises(ValueError, match="no price of H800"):
        must_change(MODEL, System(load_chip("H800"), 8), WORK, dollars_per_million=1)
    with pytest.raises(ValueError, match="no time: infeasible: needs"):
        must_change(MODEL, System(load_chip("H100"), 1), WORK, seconds=1)
    with pytest.raises(LookupError, match="no resource 'memory'"):
        must_change(MODEL, FOUR, WORK, seconds=1)["memory"]
