"""Simulation and formula, two derivations of one queue; fixed seeds."""

import math
import os
import random
from math import log2

import numpy as np
import pytest
from facts import from_table
from questions import MACHINE, recorded

from tokenprice import Question, ask, decide, simulate
from tokenprice.prefill import prefix_cache
from tokenprice.queueing import fleet
from tokenprice.terminal import main

ASKED = Question(
    "Llama 3.3 70B", "4x H100", weights="fp8", prompt_tokens="2k", output_tokens=500, request_rate=2
)
MACHINES = (
    ("Llama 3.3 70B", "8x H100"), ("gpt-oss-120b", "1x H100"), ("DeepSeek-V3", "8x H200"), ("Llama 3.1 8B", "1x H100"),
)  # fmt: skip


def drawn(seed, n):
    """Fleets at random below 85 % load: budgets of a step, drafts, answers of 20 to 4,000 tokens."""
    choose = random.Random(seed)

    def between(low, high):
        return int(2 ** choose.uniform(log2(low), log2(high)))

    while n:
        model, machine = choose.choice(MACHINES)
        more = {
            "prompt_tokens": between(100, 16_000),
            "output_tokens": between(20, 4000),
            "request_rate": 2 ** choose.uniform(-1, 6),
        }
        more |= {"max_num_batched_tokens": choose.choice((None, None, 2048))}
        more |= {"draft_tokens": 2, "acceptance_length": 2} if choose.random() < 0.15 else {}
        found = ask(Question(model, machine, **more))
        if found.feasible and found.fleet.replicas <= 8 and found.fleet.estimate.load < 0.85:
            n -= 1
            yield found


def test_the_fixed_point_is_near_the_simulation_for_most_fleets():
    """Of machines without copies that share experts below 85 % load; ``FLEETS`` of them (default 20)."""
    n, off = int(os.environ.get("FLEETS", 20)), {"tpot": [], "ttft": []}
    for found in drawn(seed=48, n=n):
        many = found.fleet
        formula = many.server.steady(many.request_rate / many.replicas)
        for what, missed in off.items():
            missed.append(abs(getattr(formula, what) / getattr(many.estimate, what) - 1))
    near = {what: np.mean(np.array(missed) < 0.15) for what, missed in off.items()}
    assert min(near.values()) >= 0.75, near


@pytest.mark.parametrize("users", [1, 8, 64, 512])
@from_table
def test_users_who_ask_again_wait_as_long_in_the_formula(more, users):
    """Where answers are alike users come in rows, and the first token somewhat later than the formula says."""
    found = simulate(ASKED.replace(request_rate=None, concurrency=users, **more), requests=4000)
    assert found.answer.seconds == pytest.approx(found.mean("gaps"), rel=0.13 if "layout" in more else 0.1)
    assert found.answer.request.ttft == pytest.approx(found.mean("first"), rel=0.25)


@from_table
def test_copies_in_lockstep_take_as_long_in_the_formula(asked):
    """One prompt or several fit into a step; equal outputs after a start at once are prefilled in the same steps.

    Of 72 copies, users who start spread over time meet in long steps: 213 ms at first, and 303 ms in the end.
    """
    found = simulate(Question(**asked), requests=4000, seed=1)
    assert found.answer.seconds == pytest.approx(found.mean("gaps"), rel=0.1)


@from_table
def test_a_prompt_as_long_as_the_budget_shares_its_last_step(model, machine):
    """Others' tokens leave no room for its last ones; the next prompt's chunk fills the step in which these go."""
    found = simulate(model, machine, prompt_tokens="8k", output_tokens=128, concurrency=64, requests=2000)
    assert found.answer.request.ttft == pytest.approx(found.mean("first"), rel=0.12)


@from_table
def test_users_whose_outputs_have_one_length_gather(model, machine, output, users):
    """Started apart; users who ask during others' prefill are prefilled with the next, and end with them for ever."""
    found = simulate(model, machine, prompt=2048, output=output, concurrency=users, fixed_lengths=True)
    assert found.mean("first") < found.answer.request.ttft_interval[1]


def test_a_prompt_that_finds_an_idle_machine_starts_at_once():
    """tenstorrent/tt-inference-server#143: one user of vLLM with prompts of 128 tokens, TTFT 41 ms."""
    asked = {"prompt_tokens": 128, "output_tokens": 128, "concurrency": 1, "engine": "vllm"}
    found = simulate("Qwen2.5 72B", "2x H100", requests=100, **asked)
    assert found.mean("first") == pytest.approx(0.041, rel=0.1)
    assert found.first == pytest.approx(found.answer.request.ttft)


def test_users_beyond_the_tokens_of_a_step_do_not_slow_it():
    """They queue outside of the machine, which is as busy as before; 186 answers and their prompts fill a step."""
    asked = ASKED.replace(model="Qwen3 8B", machine="2x RTX 4090", prompt_tokens=200, output_tokens=20)
    asked = asked.replace(request_rate=None, kv_cache_dtype="fp8", max_num_batched_tokens=2048)
    few, many = (ask(asked.replace(concurrency=users)).throughput for users in (180, 200))
    assert many > 0.9999 * few


def test_every_request_that_came_was_served_with_all_its_tokens():
    found = simulate(ASKED, requests=2000, seed=3)
    assert len(found.first) == len(found.token) == 2000
    assert found.percentile("first", 50) <= found.percentile("first", 90) <= found.percentile("first", 99)
    # users see as many tokens a second as come in, within the noise of 2,000 geometric lengths
    seconds = 2000 / ASKED.request_rate
    assert found.many.sum() / seconds == pytest.approx(ASKED.request_rate * ASKED.output_tokens, rel=0.1)
    base, each = found.answer.fleet.server.costs.step(1)
    assert min(found.gaps) >= base + each * ASKED.prompt_tokens


def test_the_error_of_a_percentile_is_how_far_other_random_numbers_are():
    runs = [simulate(ASKED, requests=2000, seed=seed) for seed in range(20)]
    spread = np.std([one.percentile("first", 99) for one in runs])
    assert np.mean([one.error("first") for one in runs]) == pytest.approx(spread, rel=0.4)


def test_equal_seeds_are_equal():
    one, other = (simulate(ASKED, requests=500, seed=7) for _ in range(2))
    assert one.to_dict() == other.to_dict() != simulate(ASKED, requests=500, seed=8).to_dict()


def test_tokens_that_kept_the_promise_pay_for_the_others():
    one = simulate(ASKED, requests=500, seed=7, tpot="40 tokens/s", ttft="300 ms")
    assert 0 < one.slo_attainment < 1
    assert one.usd_per_million_within_slo == pytest.approx(
        one.answer.request.per_million["output"] / one.slo_attainment
    )
    slowest = {"tpot": float(max(one.token)), "ttft": float(max(one.first))}
    assert simulate(ASKED, requests=500, seed=7, **slowest).slo_attainment == 1


def test_answers_of_one_token_have_no_time_between_two():
    found = simulate(ASKED.replace(output_tokens=1), requests=500)
    assert len(found.gaps) == 0 and "between two tokens" not in str(found)
    assert found.to_dict()["p99"]["first"] > found.to_dict()["p50"]["first"]


def test_terminal_and_refusals(capsys):
    line = [
        "simulate",
        "Llama 3.3 70B",
        "4x H100",
        *"--weights fp8 --prompt-tokens 2k --output-tokens 500".split(),
    ]
    assert main([*line, "--request-rate", "2", "--requests", "200", "--ttft", "300 ms"]) == 0
    printed = capsys.readouterr().out
    assert "p99" in printed and "SLO met by" in printed
    assert (
        main([*line, "--request-rate", "99", "--replicas", "1"]) == 2
        and "without end" in capsys.readouterr().err
    )


APART = Question(
    "Llama 3.3 70B",
    "8x H100",
    prompt_tokens=2000,
    output_tokens=200,
    concurrency=64,
    prefill_machine="8x H100",
)


@pytest.mark.parametrize("machines", [1, 8])
def test_prefill_machines_are_paid_whole(machines):
    """Chips × seconds × price; in a second the machines answer as many requests as there are tokens for."""
    found = ask(APART.replace(prefill_replicas=machines))
    rent = 8 * (1 + machines) * found.machine.chip.price / 3600
    assert found.request.dollars == pytest.approx(rent * 200 / found.throughput)


LONG = APART.replace(prompt_tokens=30_000)  # 44 users fit


@from_table
def test_users_wait_for_prefill_machines_as_simulated(asked, machines):
    """Those who wait neither decode nor hold memory of the machine that does."""
    made = simulate(asked.replace(prefill_replicas=machines), requests=2000)
    request, token = made.answer.request, made.mean("token")
    assert request.seconds == pytest.approx(made.mean("first") + 199 * token, rel=0.03)
    assert request.tpot == pytest.approx(token, rel=0.04)


def test_the_cache_of_a_prompt_moves_over_the_network():
    """100,000 tokens of 327,680 bytes over the links of eight chips, 50 GB/s each."""
    asked = APART.replace(prompt_tokens=100_000, concurrency=1)
    found = simulate(asked, requests=100)
    here = ask(asked.replace(prefill_machine=None)).request.ttft
    for ttft in (found.answer.request.ttft, found.mean("first")):
        assert ttft - here == pytest.approx(100_000 * 327_680 / (8 * 50e9))


def test_without_a_number_as_many_machines_prefill_as_keep_one_busy():
    """While 64 answers are written in 200 steps, 64 prompts are prefilled."""
    request, step = ask(APART).request, ask(APART.replace(prefill_machine=None)).step
    assert request.ratio == pytest.approx(64 * request.prompt.total / (200 * step.total))
    assert request.prefill_replicas == math.ceil(request.ratio)


def test_a_percentile_holds_for_more_requests_with_other_random_numbers():
    """The number of machines that 3,000 requests choose misses it by a thirtieth."""
    asked = {"prompt_tokens": "500-2k-16k", "output_tokens": 300, "weights": "fp8", "request_rate": 5}
    best = decide("Llama 3.3 70B", **asked, ttft_p99="2 s", chips="B200", counts=2).best
    assert simulate(best.question, ttft_p99="2 s", requests=60_000, seed=7).meets_slo


# One whose memory runs full now and then, and eight more with FLEETS=200, of which seed 6 is such a one too.
@pytest.mark.parametrize("seed", [25, *range(int(os.environ.get("FLEETS", 20)) // 25)])
def test_decide_offers_no_fleet_that_collapses(seed):
    """Simulated with answers up to ten times the prompt: no queue builds up, and the SLO is met."""
    choose = random.Random(seed)
    prompt = choose.choice((200, 500, 2000))
    asked = {
        "prompt_tokens": prompt,
        "output_tokens": int(prompt * choose.uniform(1, 10)),
        "request_rate": choose.uniform(0.5, 8),
    }
    model, chip = choose.choice((("Llama 3.1 8B", "L40S"), ("Qwen3 32B", "H100"), ("Llama 3.3 70B", "H200")))
    best = decide(model, chips=chip, counts=(1, 2, 4), tpot="70 ms", ttft="2 s", **asked).best
    if best is None:
        return
    many = best.fleet
    made = many.server.played(many.request_rate, 48000, seed + 1, many.replicas, until_first=True)
    assert made.gap < 1.1 * 0.07 and made.first.mean() < 1.2 * 2


@from_table
@pytest.mark.parametrize("load", [0.3, 0.6])
def test_the_fixed_point_is_near_the_simulation_with_prompts_in_pieces_or_whole(prompt, budget, load):
    asked = Question(
        "Llama 3.1 8B",
        "1x H100",
        prompt_tokens=prompt,
        output_tokens=300,
        request_rate=1e-3,
        max_num_batched_tokens=budget,
    )
    server = fleet(asked, simulated=False).server
    rate = load * server.capacity
    assert server.steady(rate).ttft == pytest.approx(
        server.played(rate, min(500 * int(os.environ.get("FLEETS", 20)), 20_000)).first.mean(), rel=0.1
    )


# --- Mixes and traces -----------------------------------------------------------------------------------------


def at_random(asked):
    """The requests of a trace with their cached tokens, if they arrived at random and in random order."""
    machines = ask(asked).fleet.replicas
    shared = prefix_cache(asked, machines)
    return asked.replace(trace=None, cached=shared, replicas=machines)


def off(found):
    """By how much a formula misses the mean time between tokens, and to the first."""
    known = {"gaps": found.answer.seconds, "first": found.answer.request.ttft}
    return {what: known[what] / found.mean(what) - 1 for what in known}


@from_table
@pytest.mark.parametrize(
    "load",
    [
        {"request_rate": 3},
        {"request_rate": None, "concurrency": 32},
        {"request_rate": 3, "max_num_batched_tokens": 1024},
    ],
)
def test_a_mix_waits_as_long_in_the_formula(prompt, output, load):
    found = off(simulate(ASKED.replace(prompt_tokens=prompt, output_tokens=output, **load), requests=4000))
    assert abs(found["gaps"]) < 0.1 and abs(found["first"]) < 0.15


@pytest.mark.parametrize("name", MACHINE)
def test_requests_of_a_trace_that_come_at_random_wait_as_long_in_the_formula(name):
    """Many requests are needed: the longest prompts of Mooncake are few and decide much."""
    found = off(simulate(at_random(recorded(name)), requests=20_000, seed=1))
    assert abs(found["gaps"]) < 0.2 and abs(found["first"]) < 0.2


def test_requests_that_come_in_bursts_wait_longer_than_the_formula_says():
    """Requests of conversations arrive almost at random; requests of editors arrive by the hundred."""
    talk, code = (simulate(recorded(f"azure_{name}"), requests=4000) for name in ("conv", "code"))
    assert abs(off(talk)["first"]) < 0.15 and off(code)["first"] < -0.9
    assert "times as uneven" in str(code.answer) and talk.answer.question.trace.bursts < 2
