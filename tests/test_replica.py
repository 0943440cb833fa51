"""The event loop against textbooks, and what it must do with memory, budgets, copies and routers."""

import json
import os
import random
from dataclasses import replace
from heapq import heappop, heappush
from itertools import pairwise
from math import factorial, inf
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from facts import from_table
from py_mini_racer import MiniRacer

from book import calculator
from inferlib import load_chip
from tokenprice import workload
from tokenprice.replica import Costs, counted, lengths, loop, play, uniforms
from tokenprice.scheduler import ORDERS, Scheduler

SHORT = 1e-9  # seconds of a step that takes no time to speak of
# A copy that serves prompts of 1,000 tokens in 20 ms, and a step of n sequences in 5 ms and 20 us for each.
SERVER = Costs(
    lambda n: (0.005 + 2e-5 * n, 0.0), inf, (1000,), (1000,), (0.02,), workload.geometric_lengths(200)
)
# A copy that serves one request after another, a second each.
ONE = Costs(lambda n: (SHORT, 0.0), inf, (1,), (1,), (1.0,), (1.0,))


def came(rate, n, seed=3):
    return np.cumsum(-np.log(uniforms(seed, 0, n)) / rate).tolist()


def waits(costs, scheduler, rate, n=60_000, answers=None, seed=3):
    requests = ([0] * n, answers) if answers else None
    found, fleet = play(costs, scheduler, came(rate, n, seed), requests=requests)
    return counted(costs, found, fleet, n // 10, n).waits.mean()


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_one_prompt_a_step_is_a_queue_of_equal_services(load):
    """M/D/1: x / 2 (1 - x) services."""
    scheduler = Scheduler(max_num_batched_tokens=1)
    assert waits(ONE, scheduler, load) == pytest.approx(load / 2 / (1 - load), rel=0.04)


@from_table
def test_answers_that_wait_for_a_place_are_erlang_s_queue(servers, offered):
    """M/M/c: places are servers, an answer of exponential length takes a second in the mean."""
    mean, n = 1000, 60_000
    answers = np.maximum(np.rint(-mean * np.log(uniforms(7, 9, n))), 1).astype(int).tolist()
    costs = Costs(lambda n: (1 / mean, 0.0), inf, (1,), (1,), (SHORT,), (mean,))
    full = offered**servers / factorial(servers) * servers / (servers - offered)
    blocked = full / (sum(offered**k / factorial(k) for k in range(servers)) + full)
    found = waits(costs, Scheduler(max_num_seqs=servers), offered, n, answers)
    assert found == pytest.approx(blocked / (servers - offered), rel=0.04)


def test_users_of_a_loop_are_as_many_as_arrivals_times_their_time():
    """Little's law, with the way in and out."""
    costs = replace(SERVER, ingress_delay=0.05, answers=(200.0,))
    found, _ = loop(costs, Scheduler(), users=32, requests=5000)
    kept = found[500:4500]
    rate = len(kept) / (kept[-1].came - kept[0].came)
    assert rate * np.mean([r.end - r.came + 0.05 for r in kept]) == pytest.approx(32, rel=0.01)


def test_a_router_that_looks_needs_fewer_machines():
    """Equal services, two machines: the wait with join-shortest-queue is well below the wait with random routing."""
    at, n = came(1.5, 20_000), 20_000
    means = []
    for router, route in (("random", (uniforms(5, 6, n) * 2).astype(int).tolist()), ("least loaded", None)):
        found, fleet = play(ONE, Scheduler(1, router=router), at, replicas=2, route=route)
        means.append(counted(ONE, found, fleet, 1000, n).waits.mean())
    assert means[0] == pytest.approx(0.75 / 2 / 0.25, rel=0.06) and means[1] < 0.65 * means[0]


def test_random_numbers_are_even_and_streams_differ():
    numbers = [uniforms(seed, stream, 20_000) for seed, stream in ((0, 0), (0, 1), (1, 0))]
    for one in numbers:
        assert np.histogram(one, 20, (0, 1))[0] == pytest.approx(1000, rel=0.15)
    assert all(abs(np.corrcoef(a, b)[0, 1]) < 0.03 for a, b in pairwise(numbers))


def test_lengths_of_answers_have_the_mean_and_the_spread_of_those_that_end_at_random():
    for mean in (1, 20, 500):
        lengths = workload.geometric_lengths(mean)
        assert np.mean(lengths) == pytest.approx(mean) and min(lengths) >= 1
        assert workload.squared_cv(lengths) == pytest.approx((1 - 1 / mean) ** 2, abs=0.03)


@from_table
def test_defaults_of_engines_are_those_of_their_documentation(engine, chip, budget, sequences):
    found = Scheduler.of(engine, load_chip(chip))
    assert (found.max_num_batched_tokens, found.max_num_seqs) == (budget, sequences)
    assert found.dp_balance == 0


def test_tensorrt_llm_divides_no_prompt_that_fits_into_a_step():
    """``enable_chunked_prefill`` is off: 8,192 tokens hold one prompt of 5,000; a token waits for all of it or none."""
    given = {"prompts": (5000,), "fresh": (5000,), "passes": (0.5,), "answers": (50,)}
    costs = Costs(lambda n: (0.01, 0.0), tokens=inf, **given)
    _, machines = loop(costs, Scheduler(8192, 256, reserve=True), 8, 100, 10, 0.1, 1)
    assert {round(gap, 6) for _, gap, _ in machines[0].gaps} == {0.01, 0.51}


def drawn(choose):
    """Costs and a scheduler at random: short and long prompts, small memories, copies, orders, balance."""
    prompts = tuple(choose.choice((50, 400.5, 3000, 20_000)) for _ in range(choose.choice((1, 4))))
    cached = choose.choice((0, 0.5, 0.9))
    base, slope = 10 ** choose.uniform(-3, -1.5), choose.choice((0, 1e-9, 1e-8))
    about = {
        "tokens": choose.choice((inf, 3e4, 3e5)), "prompts": prompts,
        "fresh": tuple(one * (1 - cached) for one in prompts),
        "passes": tuple(1e-5 * one for one in prompts),
        "answers": workload.geometric_lengths(choose.choice((1, 8, 60, 700))),
        "ingress_delay": 0.02, "late": 0.001, "in_step": choose.choice((1, 1, 2, 8)),
    }  # fmt: skip
    policy = Scheduler(
        choose.choice((512, 2048, 8192)), choose.choice((8, 256)), choose.choice(ORDERS), choose.random() < 0.3,
        dp_balance=choose.choice((0, 50)), batching_wait_iters=choose.choice((0, 0, 10)),
    )  # fmt: skip
    return (base, slope), about, policy, 10 ** choose.uniform(-2, 2)


def test_the_page_plays_the_same_loop():
    choose, asked, told = random.Random(5), [], []
    for _ in range(200):
        (base, slope), about, policy, rate = drawn(choose)
        costs = Costs(lambda n, base=base, slope=slope: (base + 1e-5 * n, slope * n), **about)
        came = np.cumsum(-np.log(uniforms(1, 0, 160)) / rate)
        start = choose.choice((0, 3, 40))
        found, fleet = play(costs, policy, came.tolist(), seed=1, start=start, until=130)
        one = counted(costs, found, fleet, 30, 130, (came[30], came[129]))
        told.append([one.first.mean(), one.waits.mean(), one.gap, one.running])
        says = {"budget": policy.max_num_batched_tokens, "seqs": policy.max_num_seqs, "rides": policy.rides}
        says |= {"reserve": policy.reserve, "balance": policy.dp_balance, "wait": policy.batching_wait_iters}
        given = about | {"tokens": 1e30 if about["tokens"] == inf else about["tokens"]}
        asked.append([base, slope, given, says, rate, start])
    engine = MiniRacer()
    engine.eval((Path(calculator.__file__).parent / "replica.js").read_text("utf-8"))
    body = """a.map(([base, slope, at, policy, rate, start]) => {
        const step = (n) => [base + 1e-5 * n, slope * n];
        const r = inferlibReplica.arriving({ ...at, step }, policy, rate, 100, 30, start, 1);
        return [r.first, r.waits, r.gap, r.running]; })"""
    here = json.loads(engine.eval(f"(a => JSON.stringify({body}))({json.dumps(asked)})"))
    assert np.array(here) == pytest.approx(np.array(told), rel=1e-9)


def held(copy, policy):
    """Tokens of memory in use, sequence by sequence."""
    return sum(r.prompt + (r.output if policy.reserve else r.done) for r in copy.run + copy.read)


def packed(copy, costs, policy):
    """The prompt tokens that a copy prefills in a step."""
    budget = policy.max_num_batched_tokens - (len(copy.run) if policy.rides else 0)
    found = []
    for r in [*copy.read, *copy.line]:
        if r in copy.line:
            alone = not copy.run and not copy.read
            fits = held(copy, policy) + r.prompt + (r.output if policy.reserve else r.done) <= costs.tokens
            divided = budget < r.left <= policy.max_num_batched_tokens and (
                policy.reserve or policy.dp_balance
            )
            if found and divided or budget < 1 or len(copy.run + copy.read) >= policy.max_num_seqs:
                break
            if not (fits or alone):
                break
            copy.read.append(copy.line.pop(0))
        if budget > 0:
            found.append((r, min(r.left, budget)))
            budget -= min(r.left, budget)
    return found


def by_steps(costs, policy, asks, made, most, again):
    """A second implementation, step by step and token by token: returns requests, and all times between two tokens."""
    copies = [SimpleNamespace(line=[], read=[], run=[], waited=0) for _ in range(costs.in_step)]
    clock, requests, gaps = 0.0, [], []

    def ended(r):
        r.end = clock
        if again:
            heappush(asks, (clock, r.user))

    while True:
        busy = [copy for copy in copies if copy.line or copy.read or copy.run]
        if not busy and len(requests) == most:
            return requests, gaps
        clock = clock if busy else max(clock, asks[0][0])
        while len(requests) < most and asks and asks[0][0] <= clock:
            requests.append(made(len(requests), *heappop(asks)))
            copies[requests[-1].copy].line.append(requests[-1])
        busy = [copy for copy in copies if copy.line or copy.read or copy.run]
        want = [copy for copy in busy if copy.line or copy.read]
        balanced = len(want) < len(copies) and all(copy.run for copy in copies)
        steps = (policy.dp_balance if balanced else 0) or policy.batching_wait_iters
        wait = want and not any(copy.read for copy in want) and max(copy.waited for copy in want) < steps
        packs = [(copy, [] if wait else packed(copy, costs, policy)) for copy in copies]
        read = max(sum(n / r.fresh * r.seconds for r, n in pack if r.fresh) for _, pack in packs)
        pause, times = read > 0 and not policy.rides, []
        for copy in copies:
            if n := len(copy.run):
                base, each = costs.step(n)
                times.append(base + each * sum(r.prompt + r.done for r in copy.run) / n)
        base, each = costs.step(1)
        first = next((r.prompt for _, pack in packs for r, _ in pack), 0)
        seconds = read + (0 if pause else max(times, default=base + each * first))
        clock += seconds
        for copy, pack in packs:
            copy.waited = 0 if pack or not copy.line else copy.waited + 1
            for r in list(copy.run):
                r.paused += seconds
                if not pause:
                    gaps.append(r.paused)
                    r.paused, r.done = 0.0, r.done + 1
                    if r.done == r.output:
                        copy.run.remove(r)
                        ended(r)
            while held(copy, policy) > costs.tokens and len(copy.run) > 1 and not policy.reserve:
                last = max(copy.run, key=lambda r: r.number)
                copy.run.remove(last)
                copy.line.insert(0, last)
                now = last.prompt + last.done
                last.seconds *= now / last.fresh if last.fresh else 1
                last.left = last.fresh = now
            for r, n in pack:
                r.left -= n
                if r.left > 0:
                    continue
                copy.read.remove(r)
                if not r.done:
                    r.first, r.done = clock, 1
                if r.done == r.output:
                    ended(r)
                else:
                    copy.run.append(r)


@pytest.mark.parametrize("case", range(int(os.environ.get("FLEETS", 20)) * 3 // 10))
def test_a_second_loop_that_counts_every_token_says_the_same(case):
    """One copy and several in step, arrivals and closed loops, balance, both orders, memory that is full.

    Nine cases, sixty with FLEETS=200.
    """
    choose, n = random.Random(case), 120
    (base, slope), about, policy, rate = drawn(choose)
    users = choose.choice((6, 24, 60))
    about |= {"in_step": choose.choice((1, 2, 4, 8)), "ingress_delay": 0.0}
    costs = Costs(lambda n: (base + 1e-5 * n, slope * n), **about)
    places, outputs = lengths(costs, case, n, 0.1)
    came = np.cumsum(-np.log(uniforms(case, 0, n)) / rate).tolist()
    if case % 2:
        asks, copies = [(0.0, user) for user in range(users)], range(n)
        found, at = loop(costs, policy, users, n, n // users, 0.1, case)
    else:
        asks = [(when, k) for k, when in enumerate(came)]
        copies = (uniforms(case, 4, n) * costs.in_step).astype(int)
        found, at = play(costs, policy, came, seed=case)

    def made(number, when, user):
        place = places[number]
        return SimpleNamespace(
            number=number, came=when, user=user, copy=copies[user] % costs.in_step, prompt=costs.prompts[place],
            fresh=costs.fresh[place], left=costs.fresh[place], seconds=costs.passes[place], output=outputs[number],
            done=0, paused=0.0,
        )  # fmt: skip

    told, gaps = by_steps(costs, policy, asks, made, n, again=case % 2)
    firsts = ([r.first - r.came for r in each] for each in (found, told))
    for mine, theirs in (firsts, ([gap for _, gap, many in at[0].gaps for _ in range(many)], gaps)):
        assert len(mine) == len(theirs)
        if len(mine):
            assert np.mean(mine) == pytest.approx(np.mean(theirs), rel=0.02)
            assert np.percentile(mine, 99) == pytest.approx(np.percentile(theirs, 99), rel=0.05)
