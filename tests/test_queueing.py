"""Fleets: textbooks' queues come out, nothing is lost, more requests never need fewer machines."""

from dataclasses import replace

import numpy as np
import pytest

from inferlib import load_chip
from tokenprice import Question, ask, decide
from tokenprice.queueing import Server, fleet
from tokenprice.terminal import main

ASKED = Question(
    "Llama 3.3 70B", "4x H100", weights="fp8", prompt_tokens="2k", output_tokens=500, request_rate=30
)


def erlang(servers, offered):
    """So many servers, each of whom takes a second."""
    return Server(prompt=0, output=1, steps=np.ones(servers)).estimate(offered)


# Length of the line in M/M/c, as tables of textbooks print it (Hillier and Lieberman, Gross and Harris).
@pytest.mark.parametrize(
    ("servers", "offered", "blocked", "line"),
    [(1, 0.5, 0.5, 0.5), (2, 1, 1 / 3, 1 / 3), (3, 2, 0.4444, 0.8889), (5, 4, 0.5541, 2.2165), (10, 8, 0.4092, 1.6367)],
)  # fmt: skip
def test_erlang(servers, offered, blocked, line):
    found = erlang(servers, offered)
    assert (found.blocked, found.wait * offered) == pytest.approx((blocked, line), rel=2e-4)
    assert found.load == pytest.approx(offered / servers) and found.running == pytest.approx(offered)
    assert found.tpot == pytest.approx(1)


def test_a_queue_has_an_end_only_below_full_load():
    assert erlang(5, 5) is None and erlang(5, 4.999).wait > 100
    equal = Server(prompt=0, output=1, steps=np.ones(1), squared_cv=0).estimate(0.5)  # M/D/1: half of M/M/1
    assert equal.wait == pytest.approx(0.5)


def test_processor_sharing():
    """One machine that shares itself among all is M/M/1 with any number of places: x / (1 - x) requests in it."""
    shared = Server(prompt=0, output=1, steps=np.arange(1, 2001) * 1.0).estimate(0.75)
    assert shared.running == pytest.approx(3) and shared.tpot == pytest.approx(4) and shared.wait < 1e-9


def test_copies_are_machines_of_their_own():
    """Half the requests to each of two copies: the waits of one machine with half of them."""
    one = Server(prompt=0.05, output=20, steps=np.array([0.01, 0.012, 0.014]))
    two = replace(one, copies=2).estimate(2 * 2.5)
    alone = one.estimate(2.5)
    assert two.running == pytest.approx(2 * alone.running)
    assert (two.wait, two.tpot, two.ttft) == (alone.wait, alone.tpot, alone.ttft)


def test_answers_of_one_token_wait_for_prompts_as_in_a_queue_of_equal_services():
    """M/D/1 with a service of prompt and step, whose wait is half of M/M/1's: x s / 2 (1 - x)."""
    at = Server(prompt=0.09, output=1, steps=np.full(50, 0.01)).estimate(5)
    assert at.ttft == pytest.approx(0.5 * 0.1 / (2 * 0.5) + 0.09 + 2 * 0.01)


def test_a_copy_among_many_that_keep_step_waits_for_half_a_prompt_more():
    """A queue of equal services whose server goes away for another one when it finds nobody: x / 2 (1 - x) + 1 / 2."""
    alone = Server(prompt=1, output=1, steps=np.full(64, 1e-6))
    found = [
        at.estimate(0.1 * at.copies).ttft for at in (alone, replace(alone, copies=512, synchronised=512))
    ]
    assert found == pytest.approx([1 + 0.1 / 1.8, 1.5 + 0.1 / 1.8], rel=1e-3)


@pytest.mark.parametrize("pieces", [1, 4])
def test_a_long_answer_sees_all_prompts_and_a_rare_one_none(pieces):
    """Prompts take the part x of all time, a long answer sees each of them, and so a token takes 1 / (1 - x)."""
    steps, prompt = np.full(2000, 0.01), 0.09
    long = Server(prompt, 2000, steps, prefill_chunks=pieces).estimate(5)
    assert long.tpot == pytest.approx(0.01 / (1 - 5 * prompt), rel=0.005)
    assert Server(prompt, 20, steps, prefill_chunks=pieces).estimate(1e-6).tpot == pytest.approx(
        0.01, rel=1e-4
    )


def test_alone_a_request_is_the_request_of_one_user():
    """Seen through ``ask`` without arrivals, which knows no queue."""
    rare, one = ask(ASKED.replace(request_rate=1e-6)), ask(ASKED.replace(request_rate=None, concurrency=1))
    assert rare.seconds == pytest.approx(one.seconds, rel=1e-4)
    assert rare.request.ttft == pytest.approx(one.request.ttft, rel=1e-4)


@pytest.mark.parametrize(
    ("arrivals", "reader"), [(0.1, None), (3, None), (30, None), (30, "2x H200"), (30, "4x H100")]
)
def test_nothing_is_lost(arrivals, reader):
    """What all requests pay is what all machines cost, and users get as many tokens as come in."""
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
    fleets = [ask(ASKED.replace(request_rate=n, layout=layout)).fleet for n in (0.5, 2, 8, 9, 10, 50, 200)]
    machines = [one.replicas for one in fleets]
    assert machines == sorted(machines) and machines[-1] > machines[0]
    for one in fleets:
        assert (
            one.estimate.load
            < 1 / one.factor
            <= one.server.load(one.request_rate / max(one.replicas - 1, 1e-9))
        )


def test_above_the_load_at_which_a_slower_machine_has_no_end_there_is_no_answer():
    found = ask(ASKED.replace(replicas=6))
    assert found.status == "n/a" and "8 are enough" in found.reason and "98% of what" in found.reason
    assert ask(ASKED.replace(replicas=8)).feasible
    for n, words in ((1, "1 machine would"), (2, "2 machines would")):
        assert ask(ASKED.replace(replicas=n)).reason.startswith(words)
    near, far = (ask(ASKED.replace(replicas=n)).request for n in (8, 16))
    assert (
        near.tpot_interval[1] / near.tpot > 2 > far.tpot_interval[1] / far.tpot
    )  # a little slower is a lot later


def test_a_prompt_takes_as_many_joules_of_a_machine_that_only_reads():
    """Stages read a prompt each at the same time, there as here."""
    asked = ASKED.replace(layout="PP2 x TP2")
    here, there = (ask(asked.replace(prefill_machine=one)).request for one in (None, ASKED.machine))
    assert there.prompt_joules == pytest.approx(here.prompt_joules)


@pytest.mark.parametrize("more", [{}, {"layout": "PP2 x TP2"}])
def test_headroom_is_how_many_more_may_come(more):
    many = ask(ASKED.replace(replicas=12, **more)).fleet
    for by, feasible in ((0.999, True), (1.001, False)):
        assert (
            ask(ASKED.replace(replicas=12, request_rate=30 * by * many.headroom, **more)).feasible is feasible
        )


def test_words():
    with pytest.raises(ValueError, match="leave one of them out"):
        ASKED.replace(requests_per_user=2)


RENT = {"tpot": "40 tokens/s", "ttft": "500 ms", "chips": "H100"}


def test_an_offer_is_the_fewest_machines_that_keep_the_promise():
    asked = ASKED.replace(machine=None)
    found = decide(asked, **RENT, counts=(2, 4, 8))
    assert found.offers and found.best.dollars == min(offer.dollars for offer in found.offers)
    for offer in found.offers:
        many = offer.fleet
        assert many.estimate.tpot <= 1 / 40 and many.estimate.ttft <= 0.5
        if many.replicas > 1 and not many.prefill_machine:
            fewer = fleet(asked, many.system, offer.layout, machines=many.replicas - 1)
            assert fewer is None or fewer.estimate.tpot > 1 / 40 or fewer.estimate.ttft > 0.5


def test_what_it_costs_to_be_sure_stands_beside_an_offer():
    offer, sure = (
        decide(ASKED.replace(machine=None), **RENT, counts=4, sure=sure).best for sure in (False, True)
    )
    assert 1 / sure.request.tpot_interval[1] >= 40 and sure.request.ttft_interval[1] <= 0.5
    assert offer.sure.dollars_per_hour == sure.fleet.dollars_per_hour > offer.fleet.dollars_per_hour
    assert offer.surely().startswith("Kept at the slow end too: ")
    assert f"${730 * offer.fleet.dollars_per_hour:,.0f} a month" in str(offer)


def test_what_is_sure_is_the_cheapest_of_its_chip_in_whatever_form():
    """One machine that reads and one that decodes may be surer than two that do both, at the same rent."""
    asked = Question("Qwen3 32B", prompt_tokens=2000, output_tokens=400, request_rate=6)
    promise = {"tpot": "40 tokens/s", "ttft": "1 s"}
    found = decide(asked, **promise)
    sure = decide(asked, **promise, chips=found.best.system.chip.name, sure=True).best
    told = found.text(most=99)
    assert told.count("slow end too") + told.count("At the slow end") == 5
    assert found.best.sure.dollars_per_hour == sure.fleet.dollars_per_hour


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


@pytest.mark.parametrize(
    ("verb", "more", "code", "words"),
    [
        ("ask", [], 0, "at $2 to 4 per used chip hour"),
        ("change", ["--usd-per-million", "1"], 0, "$1 a million asked"),
        ("ask", ["--pue", "1.2"], 2, "pue belongs to electricity"),
    ],
)
def test_a_file_of_prices(tmp_path, capsys, verb, more, code, words):
    path = tmp_path / "prices.toml"
    path.write_text("H100 = [2, 4]\n")
    assert main([verb, "Llama 3.3 70B", "4x H100", "--price-file", str(path), *more]) == code
    assert words in "".join(capsys.readouterr())


def test_electricity_needs_a_power():
    with pytest.raises(ValueError, match="the power of A100"):
        print(ask("Llama 3 8B", load_chip("A100 80GB").replace(power=None), electricity=0.1))


def test_who_reads_elsewhere_does_not_change_how_far_the_step_may_be_off():
    """Copies of the attention have their own interval, whatever the size of the machine that reads for them."""
    asked = Question(
        "DeepSeek V3", "8x B200", layout="DP2 TP4 EP8", prompt_tokens=2000, output_tokens=400, request_rate=4
    )
    alike, other = (
        ask(asked.replace(prefill_machine=reader)).fleet.request.step_factor
        for reader in ("8x B200", "16x B200")
    )
    assert alike == other
