"""Fleets: textbooks' queues come out, nothing is lost, more requests never need fewer machines."""

import os

import numpy as np
import pytest
from facts import from_table

from tokenprice import Question, ask, decide
from tokenprice.queueing import Server, fleet
from tokenprice.replica import play
from tokenprice.terminal import main

FLEETS = int(os.environ.get("FLEETS", 20))
ASKED = Question(
    "Llama 3.3 70B", "4x H100", weights="fp8", prompt_tokens="2k", output_tokens=500, request_rate=30
)


def server_of(asked):
    """One machine of the fleet that answers, without the simulation of its waits."""
    return fleet(asked, simulated=False).server


# Requests per second at which two independently written engines saturate: one takes the prompts of a step as one prompt
# of all their tokens, one prefills one prompt a step; both have 8,192 tokens a step.
@from_table
def test_capacity_lies_between_one_prompt_a_step_and_packs_read_as_one(
    model, machine, prompt, output, one_a_step, packed
):
    asked = Question(model, machine, prompt_tokens=prompt, output_tokens=output, request_rate=1e-3)
    assert one_a_step < server_of(asked).capacity < packed


@from_table
def test_a_full_machine_answers_as_many_requests_as_its_capacity(prompt, output, layout, within):
    """All requests arrive at once; the rate of answers is counted in between, with prompts that are prefilled again."""
    machine, model = ("4x H100", "Qwen3 30B-A3B") if layout else ("1x H100", "Llama 3.1 8B")
    asked = Question(
        model, machine, prompt_tokens=prompt, output_tokens=output, request_rate=1e-3, layout=layout
    )
    server = server_of(asked)
    n = int(max(3000, 8 * server.sequences * server.costs.in_step))
    assert server.capacity == pytest.approx(answered(server, n)[0], rel=within)


def answered(server, n=3000):
    """Requests per second of a machine if all arrive at once, and how often each prompt is prefilled again."""
    found, fleet = play(server.costs, server.scheduler, [0.0] * n)
    ends = sorted(one.end for one in found)
    low, high = int(0.3 * n), int(0.7 * n)
    rate = (high - low) / (ends[high] - ends[low]) * server.copies / server.costs.in_step
    return rate, fleet[0].preempted / n


def test_fewer_sequences_than_memory_holds_serve_more_requests():
    """The recommended limit helps: no prompt is prefilled again, and the gain in requests is as stated."""
    asked = Question("Llama 3.3 70B", "4x H100", prompt_tokens=200, output_tokens=3000, request_rate=1e-3)
    most, gain = server_of(asked).better_limit
    (full, again), (limited, seldom) = (
        answered(server_of(asked.replace(max_num_seqs=n))) for n in (None, most)
    )
    assert again > 1 and seldom < 0.05 and limited / full == pytest.approx(gain, rel=0.05)
    assert f"max_num_seqs {most}" in str(ask(asked))
    assert server_of(asked.replace(engine="compiled")).better_limit is None


def test_alone_a_request_is_the_request_of_one_user():
    """Checked with ``ask`` without arrivals, which has no queue."""
    rare = ask(ASKED.replace(request_rate=1e-6, fixed_lengths=True))
    one = ask(ASKED.replace(request_rate=None, concurrency=1))
    assert rare.seconds == pytest.approx(one.seconds, rel=1e-4)
    assert rare.request.ttft == pytest.approx(one.request.ttft, rel=1e-3)


def test_one_distribution_of_answers_whatever_the_words():
    """A mean, or sixty quantiles of the same exponential: the same load and times."""
    quantiles = tuple(1 + 499 * -np.log(1 - u) for u in np.linspace(0, 0.998, 300))
    scalar, same = (ask(ASKED.replace(request_rate=3, output_tokens=one)).fleet for one in (500, quantiles))
    for name in ("load", "tpot", "ttft"):
        assert getattr(same.estimate, name) == pytest.approx(getattr(scalar.estimate, name), rel=0.05)


def test_long_answers_fill_the_memory():
    """Long answers are in progress more often, so fewer sequences fit than if all were equal."""
    asked = Question("Llama 3.1 8B", "1x H100", prompt_tokens=200, output_tokens=2000, request_rate=1)
    drawn, equal = (server_of(asked.replace(fixed_lengths=one)).sequences for one in (None, True))
    assert equal / drawn == pytest.approx((200 + 2000) / (200 + 1000), rel=0.03)


@from_table
def test_nothing_is_lost(arrivals, reader):
    """All requests together pay for all machines, and users get as many tokens as arrive."""
    found = ask(ASKED.replace(request_rate=arrivals, prefill_machine=reader))
    many = found.fleet
    paid = found.request.dollars * arrivals * 3600
    assert paid == pytest.approx(many.dollars_per_hour) and found.throughput == pytest.approx(500 * arrivals)
    rent = many.replicas * 4 * ASKED.machine.chip.price
    rent += (
        many.prefill_replicas * many.prefill_machine.count * many.prefill_machine.chip.price if reader else 0
    )
    assert rent == pytest.approx(many.dollars_per_hour)


@pytest.mark.parametrize("layout", [None, "PP2 x TP2"])
def test_more_requests_never_need_fewer_machines(layout):
    """With one machine less there is no steady state at the slow end."""
    rates = (0.5, 2, 8, 9, 10, 50, 200)
    fleets = [fleet(ASKED.replace(request_rate=n, layout=layout), simulated=False) for n in rates]
    machines = [one.replicas for one in fleets]
    assert machines == sorted(machines) and machines[-1] > machines[0]
    for one in fleets:
        assert (
            one.estimate.load
            < 1 / one.factor
            <= one.server.load(one.request_rate / max(one.replicas - 1, 1e-9))
        )


def test_above_the_capacity_of_machines_there_is_no_answer():
    found = ask(ASKED.replace(replicas=6))
    assert found.status == "n/a" and "9 are enough" in found.reason and "115% of capacity" in found.reason
    for n, words in ((1, "1 machine would"), (2, "2 machines would")):
        assert ask(ASKED.replace(replicas=n)).reason.startswith(words)
    near, far = (ask(ASKED.replace(replicas=n)).request for n in (9, 18))
    assert (
        near.tpot_interval[1] / near.tpot > 1.5 > far.tpot_interval[1] / far.tpot
    )  # a little slower is a lot later


def test_machines_that_one_has_are_answered_up_to_their_capacity():
    """At 70, 77 and 96% of it; above 82% slower ones have no steady state."""
    first = [ask(ASKED.replace(replicas=6, request_rate=n)).request.ttft for n in (18, 20, 25)]
    assert first == sorted(first)


def test_above_capacity_all_sequences_run_and_the_queue_grows_without_end():
    """Simulated: each request waits longer than the one before, by what it takes to answer one less a gap."""
    server = server_of(ASKED)
    rate, n = 2 * server.capacity, 4000
    made = server.played(rate, n)
    assert np.ptp(made.waits) == pytest.approx(n / server.capacity - n / rate, rel=0.1)
    assert server.steady(rate).tpot == pytest.approx(made.gap, rel=0.05)


def test_a_prompt_takes_as_many_joules_of_a_machine_that_only_reads():
    """Pipeline stages prefill one prompt each at the same time, on prefill machines too."""
    asked = ASKED.replace(layout="PP2 x TP2")
    here, there = (ask(asked.replace(prefill_machine=one)).request for one in (None, ASKED.machine))
    assert there.prompt_joules == pytest.approx(here.prompt_joules)


@from_table
def test_headroom_is_the_largest_rate_whose_slow_end_has_a_steady_state(model, more):
    """Load, headroom and caution are one quantity."""
    fleet = Question(
        "Qwen3 8B", "8x H200", prompt_tokens=2000, output_tokens=300, request_rate=0.5, replicas=3
    )
    asked = fleet.replace(model=model, **more)
    rate = asked.request_rate * ask(asked).fleet.headroom
    for by, steady in ((0.98, True), (1.02, False)):
        assert np.isfinite(ask(asked.replace(request_rate=by * rate)).request.ttft_interval[1]) == steady


def test_an_offer_with_prefill_machines_is_asked_again():
    """The prompts of 20 requests a second keep more machines busy than wait shortly enough."""
    asked = {"prompt_tokens": "8k", "output_tokens": 200, "request_rate": 20, "tpot": "30 ms", "ttft": 1.5}
    found = decide("Llama 3.3 70B", **asked, chips="H100", counts=4)
    again = ask(found.best.question)
    assert again.fleet.to_dict() == found.best.fleet.to_dict()
    assert (
        again.fleet.prefill_replicas
        > ask(found.best.question.replace(prefill_replicas=None)).fleet.prefill_replicas
    )


RENT = {"tpot": "40 tokens/s", "ttft": "500 ms", "chips": "H100"}


def test_an_offer_is_the_fewest_machines_that_keep_the_promise():
    asked = ASKED.replace(machine=None)
    found = decide(asked, **RENT, counts=(2, 4, 8))
    assert found.best.dollars == pytest.approx(min(offer.dollars for offer in found.offers))
    for offer in found.offers:
        many = offer.fleet
        assert many.estimate.tpot <= 1 / 40 and many.estimate.ttft <= 0.5
        if many.replicas > 1 and not many.prefill_machine:
            fewer = fleet(asked.replace(machine=many.system, layout=offer.layout, replicas=many.replicas - 1))
            assert (
                fewer is None
                or fewer.headroom < 1
                or fewer.estimate.tpot > 1 / 40
                or fewer.estimate.ttft > 0.5
            )


def test_what_it_costs_to_be_sure_stands_beside_an_offer():
    offer, sure = (
        decide(ASKED.replace(machine=None), **RENT, counts=4, sure=sure).best for sure in (False, True)
    )
    assert 1 / sure.request.tpot_interval[1] >= 40 and sure.request.ttft_interval[1] <= 0.5
    assert offer.sure.dollars_per_hour == sure.fleet.dollars_per_hour > offer.fleet.dollars_per_hour
    assert offer.surely().startswith("Enough at the slow end too: ")
    assert offer.cells()["$/month"] == f"{730 * offer.fleet.dollars_per_hour:,.0f}"


def test_a_surer_fleet_whose_memory_runs_full_is_named_by_its_machines_and_its_rent():
    asked = {"prompt_tokens": 512, "output_tokens": 1024, "request_rate": 50, "tpot": "50 ms", "ttft": "3 s"}
    best = decide("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4", **asked, chips="B200", counts=1).best
    assert best.sure.server.better_limit and f", ${best.sure.dollars_per_hour:,.2f} per hour" in best.surely()


def test_what_is_sure_is_the_cheapest_of_its_chip_in_whatever_form():
    """One machine that reads and one that decodes may be surer than two that do both, at the same rent."""
    asked = Question("Qwen3 32B", prompt_tokens=2000, output_tokens=400, request_rate=6)
    promise = {"tpot": "40 tokens/s", "ttft": "1 s"}
    found = decide(asked, **promise)
    sure = decide(asked, **promise, chips=found.best.system.chip.name, sure=True).best
    told = found.text(most=99)
    assert all(row.endswith("]") for row in told.splitlines()[1:6]) and "slow end too" in told
    assert found.best.sure.dollars_per_hour == sure.fleet.dollars_per_hour
    for one in found.offers[:5]:
        meets = one.request.tpot_interval[1] <= 1 / 40 and one.request.ttft_interval[1] <= 1
        assert meets == one.surely().startswith("This is enough")


def test_of_fleets_at_one_price_the_one_that_is_sure_is_offered():
    best = decide(
        "Qwen3 32B",
        prompt_tokens=2000,
        output_tokens=400,
        request_rate=6,
        tpot="40 tokens/s",
        ttft="1 s",
        chips="B200",
    ).best
    assert best.fleet.chips == best.sure.chips and best.fleet.slow_end.tpot <= 1 / 40


@from_table
def test_a_file_of_prices(verb, more, code, words, tmp_path, capsys):
    path = tmp_path / "prices.toml"
    path.write_text("H100 = [2, 4]\n")
    assert main([verb, "Llama 3.3 70B", "4x H100", "--price-file", str(path), *more]) == code
    assert words in "".join(capsys.readouterr())


def test_sglang_reads_prompts_first_with_the_constants_of_its_class():
    """Where prompts are rare both orders are one; where they are not, a decode waits for them."""
    for rate, least, most in ((0.01, 0.999, 1.001), (12, 0.9, 1.5)):
        asked = ASKED.replace(request_rate=rate, replicas=4, output_tokens=50)
        vllm, sglang = (ask(asked.replace(engine=name)).fleet for name in ("vllm", "sglang"))
        assert (
            sglang.server.scheduler.order == "prefill first"
            and sglang.server.costs.ingress_delay == vllm.server.costs.ingress_delay
        )
        assert least < sglang.estimate.tpot / vllm.estimate.tpot < most


def test_a_number_of_machines_is_simulated_once(monkeypatch):
    """Prefill machines are added and no state is good: the slow end alone is simulated, once for each number."""
    seen = []

    def played(server, *given, machines, **how):
        seen.append((server.output, server.step(1), machines))
        return right(server, *given, machines=machines, **how)

    right = Server.played
    monkeypatch.setattr(Server, "played", played)
    apart = ASKED.replace(prefill_machine=ASKED.machine)
    assert fleet(apart, near=(9, 9), sure=True, kept=lambda state: False) is None
    assert len(seen) == len({*seen}) == 6 + 6


def test_requests_wait_before_prefill_and_not_on_the_machine_that_decodes():
    """Pollaczek and Khinchine, of equal prompts that are longer than a step; Little's law, of 500 tokens."""
    many = ask(ASKED.replace(prompt_tokens=32_000, request_rate=1)).disaggregated
    load, at = many.prefill_load, many.estimate
    seconds = load * many.prefill_replicas
    assert at.wait == pytest.approx(load * seconds / (2 * (1 - load)), rel=1e-3)
    assert at.running == pytest.approx(500 * at.tpot / many.replicas, rel=0.01)


def test_a_prefill_machine_widens_ttft_by_the_cautions_that_it_has_alone():
    """TPOT keeps the interval of the machine that decodes, which goes beyond no measurement."""
    asked, chip = ASKED.replace(request_rate=1), "2x MI300X"
    each = asked, asked.replace(machine=chip), asked.replace(prefill_machine=chip)
    decodes, alone, apart = (ask(one).request for one in each)
    assert apart.warnings == alone.warnings
    assert apart.first_factor == pytest.approx(alone.first_factor)
    assert apart.step_factor == decodes.step_factor
