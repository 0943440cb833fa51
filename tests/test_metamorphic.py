"""What must hold between two answers: a better machine is never slower, more work is never faster."""

import itertools
import os
import random
from functools import cache

import pytest
from facts import from_table
from questions import drawn

from inferlib.system import System
from tokenprice import ask

# Fleets are simulated: a third of FLEETS, six if it says nothing.
DRAWN = {"step": 25, "loop": 25, "fleet": min(int(os.environ.get("FLEETS", 20)) // 3, 25)}


@cache
def answered():
    """Questions at random that have an answer, by kind; none is asked before the first test."""
    choose, found = random.Random(11), {kind: [] for kind in DRAWN}
    for kind, n in DRAWN.items():
        while len(found[kind]) < n:
            one = drawn(choose, kind)
            if one and one.feasible:
                found[kind].append(one.question)
    return found


@pytest.fixture
def q(request):
    kind, place = request.param
    return answered()[kind][place]


def of(*kinds):
    places = [(kind, place) for kind in kinds for place in range(DRAWN[kind])]
    return pytest.mark.parametrize("q", places, indirect=True)


def seconds(q):
    found = ask(q)
    return found.seconds if found.feasible else float("inf")


# In an answer of a few tokens each waits for prompts of others, and shorter steps let more of them in.
@of("step", "loop")
def test_twice_as_good_is_never_slower(q):
    few = q.is_request and q.output_tokens <= 20
    assert few or all(gain >= 1 - 1e-9 for gain in ask(q).speedup_if_doubled.values())


@of("step", "loop")
def test_money_is_in_proportion(q):
    one, half = ask(q.replace(price=2)), ask(q.replace(price=4, paid_hours_used=0.5))
    assert half.usd_per_million == pytest.approx(4 * one.usd_per_million)
    assert half.price_interval == pytest.approx(one.price_interval)
    assert half.seconds == one.seconds and half.joules == one.joules


@of("step")
def test_more_work_is_never_faster(q):
    here = seconds(q)
    assert seconds(q.replace(batch=2 * q.batch)) >= here * (1 - 1e-9)
    assert seconds(q.replace(context=2 * q.context)) >= here * (1 - 1e-9)
    assert ask(q).throughput >= q.batch / seconds(q) * (1 - 1e-9)


@of("loop")
def test_more_users_and_longer_prompts_wait_longer(q):
    one = ask(q).request
    more = ask(q.replace(concurrency=2 * q.concurrency)).request
    longer = ask(q.replace(prompt_tokens=2 * q.prompt_tokens)).request
    cached = ask(q.replace(cached="50%")).request
    assert more.tpot >= one.tpot * (1 - 1e-9) and more.ttft >= one.ttft * (1 - 1e-9)
    assert longer is None or longer.ttft > 0.99 * one.ttft
    assert cached.ttft <= one.ttft and cached.dollars < one.dollars


@of("loop")
def test_more_users_never_lower_the_total(q):
    totals = [ask(q.replace(concurrency=n * q.concurrency)).throughput for n in (1, 2, 4, 16, 64)]
    assert all(more >= less * (1 - 1e-3) for less, more in itertools.pairwise(totals)), totals


@of("loop")
def test_more_bandwidth_never_delays_a_first_token(q):
    chip = q.machine.chip
    fast = q.replace(
        machine=System(chip.replace(memory_bandwidth=1.5 * chip.memory_bandwidth), q.machine.count)
    )
    assert ask(fast).request.ttft <= ask(q).request.ttft * (1 + 1e-9)


@of("fleet")
@from_table
def test_more_machines_or_fewer_arrivals_never_slow_a_token_or_a_first_token(machines, arrivals, q):
    one = ask(q)
    if one.feasible:
        more = ask(q.replace(replicas=machines * one.fleet.replicas, request_rate=arrivals * q.request_rate))
        assert more.seconds <= one.seconds * 1.02
        assert more.request.ttft <= one.request.ttft * 1.02


def test_a_draft_head_without_experts_has_the_formats_of_its_model():
    """Named or not: the last layer of this mixture is attention alone."""
    asked = {"weights": "fp8", "batch": 64, "context": "2k", "draft_tokens": 3, "acceptance_length": 2.5}
    model, box = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "8x H100"
    named = dict.fromkeys(("attention", "feed-forward", "experts", "shared experts"), "fp8 block")
    assert ask(model, box, **asked).seconds == ask(model, box, **asked, layer_formats=named).seconds
