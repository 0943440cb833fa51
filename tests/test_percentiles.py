"""Percentiles that ``decide`` keeps, judged by simulated requests."""

import pytest
from questions import recorded

from tokenprice import Question, ask, decide, recommendation, simulate


@pytest.mark.parametrize("name", ["azure_code", "azure_conv"])
def test_the_fewest_machines_that_keep_a_percentile(name):
    asked = recorded(name).replace(machine=None)
    promise = {"ttft_p99": "2 s"}
    best = decide(asked, **promise, chips="H100", counts=4, layouts="TP4").best
    assert best.p99["first"][0] <= 2 and best.simulations[0].slo_attainment >= 0.99
    fewer = asked.replace(machine=best.system, layout=best.layout, replicas=best.fleet.replicas - 1 or None)
    if best.fleet.replicas > 1:
        assert simulate(fewer, **promise, requests=3000).meets_slo is False
    fast, slow = best.p99["first"][1:]
    assert fast < best.p99["first"][0] < slow


def test_machines_that_miss_a_percentile_make_room_for_the_next():
    """A prompt in the way of a short answer: no number of pairs is enough, some dearer machine is.

    These chips state no network, so that no other machines can prefill.
    """
    asked = recorded("azure_code").replace(machine=None)
    found = decide(asked, tpot_p99="100 ms", chips="H100 NVL", counts=[2, 8], prices={"H100 NVL": 2})
    assert found.best.system.count == 8 and found.best.simulations[0].meets_slo
    assert [(miss.count, miss.reason) for miss in found.nearest()] == [(2, "too slow")]
    assert all(1 < miss.times < 3 for miss in found.nearest())


def test_the_most_users_who_keep_a_percentile():
    asked = {"prompt_tokens": "2k ± 50%", "output_tokens": 300, "chips": "B200", "counts": 1}
    mean, tail = (decide("Llama 3.1 8B", **asked, **{name: "30 ms"}).best for name in ("tpot", "tpot_p99"))
    assert tail.concurrency < mean.concurrency and tail.p99["token"][0] <= 0.030 < mean.request.tpot * 1.2
    assert tail.row()["usd_per_million_kept"] >= tail.request.per_million["output"]


def test_a_sure_percentile_holds_at_the_slow_end():
    asked = {
        "prompt_tokens": 2000,
        "output_tokens": 300,
        "request_rate": 22,
        "chips": "H100",
        "counts": 1,
        "tpot_p99": "40 ms",
    }
    plain, sure = (decide("Llama 3.1 8B", **asked, sure=sure).best for sure in (False, True))
    assert sure.p99["token"][2] <= 0.040 < plain.p99["token"][2]


def test_the_first_machine_that_meets_a_percentile_need_not_be_the_cheapest(monkeypatch):
    """Two chips, the cheapest by formula, need fourteen replicas for the percentile, and four chips only two."""
    monkeypatch.setattr(recommendation, "SIMULATED", 1)
    asked = {"prompt_tokens": 500, "output_tokens": 300, "request_rate": 5, "ttft_p99": "100 ms"}
    both, four = (
        decide("Llama 3.3 70B", chips="B200", counts=counts, **asked).best for counts in ((2, 4), 4)
    )
    assert both.fleet.chips == four.fleet.chips


def test_decide_limits_sequences_where_memory_runs_full():
    """Fewer machines than with the engine's own limit; seen through ``ask``, and in the command that starts them."""
    asked = Question("Qwen3 32B", prompt_tokens=1000, output_tokens=4000, request_rate=10)
    promise = {"tpot_p99": "150 ms", "chips": "H200", "counts": 2}
    found, unlimited = decide(asked, **promise), decide(asked.replace(max_num_seqs=1024), **promise)
    best = found.best  # of one kind of machine, which comes before two kinds at the same price
    own = next(one for one in unlimited.offers if not one.fleet.prefill_machine)
    assert own.fleet.max_num_seqs is None and best.fleet.dollars_per_hour < own.fleet.dollars_per_hour
    again = ask(best.question)
    assert vars(again.fleet.estimate) == vars(best.fleet.estimate)
    assert again.fleet.server.better_limit is None
    limit = best.question.max_num_seqs
    assert f"--max-num-seqs {limit}" in found.commands["vllm"] and f"with max_num_seqs {limit}" in str(found)


def test_offers_with_a_p99_meet_the_limits_of_means_in_the_simulation_too():
    asked = {"weights": "fp4", "prompt_tokens": 60_000, "output_tokens": 20, "request_rate": 3}
    found = decide("Mistral Small 24B", **asked, tpot="15 ms", ttft_p99="5 s", chips="B200", counts=1)
    assert max(one.simulations[0].mean("token") for one in found.offers) <= 0.015


def test_a_p99_is_met_by_separate_prefill_machines_where_more_chips_together_miss_it():
    """Requests that chose neither fleet judge both."""
    limits = {"tpot_p99": "25 ms", "ttft_p99": "1 s"}
    load = {"weights": "fp8", "prompt_tokens": 1000, "output_tokens": 300, "request_rate": 20}
    best = decide("Qwen3 32B", **load, **limits, chips="H100", counts=2).best.question
    together = best.replace(prefill_machine=None, prefill_replicas=None, replicas=3)
    chips = best.prefill_replicas * best.prefill_machine.count + best.replicas * best.machine.count
    assert chips < 3 * together.machine.count
    apart, both = (simulate(one, **limits, requests=10_000, seed=2) for one in (best, together))
    assert apart.meets_slo and not both.meets_slo
