"""Fleets: textbooks' queues come out, nothing is lost, more requests never need fewer machines."""

from dataclasses import replace

import numpy as np
import pytest

from inferlib import load_chip
from tokenprice import Question, ask, decide
from tokenprice.fleet import Station, fleet
from tokenprice.terminal import main

ASKED = Question("Llama 3.3 70B", "4x H100", weights="fp8", prompt="2k", output=500, arrivals=30)


def erlang(servers, offered):
    """So many servers, each of whom takes a second."""
    return Station(prompt=0, output=1, steps=np.ones(servers)).at(offered)


# Length of the line in M/M/c, as tables of textbooks print it (Hillier and Lieberman, Gross and Harris).
@pytest.mark.parametrize(
    ("servers", "offered", "blocked", "line"),
    [(1, 0.5, 0.5, 0.5), (2, 1, 1 / 3, 1 / 3), (3, 2, 0.4444, 0.8889), (5, 4, 0.5541, 2.2165), (10, 8, 0.4092, 1.6367)],
)  # fmt: skip
def test_erlang(servers, offered, blocked, line):
    found = erlang(servers, offered)
    assert (found.blocked, found.waits * offered) == pytest.approx((blocked, line), rel=2e-4)
    assert found.load == pytest.approx(offered / servers) and found.running == pytest.approx(offered)
    assert found.token == pytest.approx(1)


def test_a_queue_has_an_end_only_below_full_load():
    assert erlang(5, 5) is None and erlang(5, 4.999).waits > 100
    equal = Station(prompt=0, output=1, steps=np.ones(1), varies=0).at(0.5)  # M/D/1: half of M/M/1
    assert equal.waits == pytest.approx(0.5)


def test_processor_sharing():
    """One machine that shares itself among all is M/M/1 with any number of places: x / (1 - x) requests in it."""
    shared = Station(prompt=0, output=1, steps=np.arange(1, 2001) * 1.0).at(0.75)
    assert shared.running == pytest.approx(3) and shared.token == pytest.approx(4) and shared.waits < 1e-9


def test_copies_are_machines_of_their_own():
    """Half the requests to each of two copies: the waits of one machine with half of them."""
    one = Station(prompt=0.05, output=20, steps=np.array([0.01, 0.012, 0.014]))
    two = replace(one, copies=2).at(2 * 2.5)
    alone = one.at(2.5)
    assert two.running == pytest.approx(2 * alone.running)
    assert (two.waits, two.token, two.first_token) == (alone.waits, alone.token, alone.first_token)


def test_answers_of_one_token_wait_for_prompts_as_in_a_queue_of_equal_services():
    """M/D/1 with a service of prompt and step, whose wait is half of M/M/1's: x s / 2 (1 - x)."""
    at = Station(prompt=0.09, output=1, steps=np.full(50, 0.01)).at(5)
    assert at.first_token == pytest.approx(0.5 * 0.1 / (2 * 0.5) + 0.09 + 2 * 0.01)


def test_a_copy_among_many_that_keep_step_waits_for_half_a_prompt_more():
    """A queue of equal services whose server goes away for another one when it finds nobody: x / 2 (1 - x) + 1 / 2."""
    alone = Station(prompt=1, output=1, steps=np.full(64, 1e-6))
    found = [at.at(0.1 * at.copies).first_token for at in (alone, replace(alone, copies=512, in_step=512))]
    assert found == pytest.approx([1 + 0.1 / 1.8, 1.5 + 0.1 / 1.8], rel=1e-3)


@pytest.mark.parametrize("pieces", [1, 4])
def test_a_long_answer_sees_all_prompts_and_a_rare_one_none(pieces):
    """Prompts take the part x of all time, a long answer sees each of them, and so a token takes 1 / (1 - x)."""
    steps, prompt = np.full(2000, 0.01), 0.09
    long = Station(prompt, 2000, steps, pieces=pieces).at(5)
    assert long.token == pytest.approx(0.01 / (1 - 5 * prompt), rel=0.005)
    assert Station(prompt, 20, steps, pieces=pieces).at(1e-6).token == pytest.approx(0.01, rel=1e-4)


def test_alone_a_request_is_the_request_of_one_user():
    """Seen through ``ask`` without arrivals, which knows no queue."""
    rare, one = ask(ASKED.replace(arrivals=1e-6, equal=True)), ask(ASKED.replace(arrivals=None, users=1))
    assert rare.seconds == pytest.approx(one.seconds, rel=1e-4)
    assert rare.request.first_token == pytest.approx(one.request.first_token, rel=1e-4)


@pytest.mark.parametrize(
    ("arrivals", "reader"), [(0.1, None), (3, None), (30, None), (30, "2x H200"), (30, "4x H100")]
)
def test_nothing_is_lost(arrivals, reader):
    """What all requests pay is what all machines cost, and users get as many tokens as come in."""
    found = ask(ASKED.replace(arrivals=arrivals, reader=reader))
    many = found.fleet
    paid = found.request.dollars * arrivals * 3600
    assert paid == pytest.approx(many.dollars_per_hour) and found.throughput == pytest.approx(500 * arrivals)
    rent = many.machines * 4 * ASKED.machine.chip.price
    rent += many.readers * many.reader.count * many.reader.chip.price if reader else 0
    assert rent == pytest.approx(many.dollars_per_hour)


@pytest.mark.parametrize("layout", [None, "PP2 x TP2"])
def test_more_requests_never_need_fewer_machines(layout):
    """With one machine less there is no steady state at the slow end."""
    fleets = [ask(ASKED.replace(arrivals=n, layout=layout)).fleet for n in (0.5, 2, 8, 9, 10, 50, 200)]
    machines = [one.machines for one in fleets]
    assert machines == sorted(machines) and machines[-1] > machines[0]
    for one in fleets:
        assert one.state.load < 1 / one.factor <= one.station.load(one.arrivals / max(one.machines - 1, 1e-9))


def test_above_the_load_at_which_a_slower_machine_has_no_end_there_is_no_answer():
    found = ask(ASKED.replace(machines=6))
    assert found.status == "n/a" and "9 are enough" in found.reason and "100% of what" in found.reason
    assert ask(ASKED.replace(machines=9)).feasible
    for n, words in ((1, "1 machine would"), (2, "2 machines would")):
        assert ask(ASKED.replace(machines=n)).reason.startswith(words)
    near, far = (ask(ASKED.replace(machines=n)).request for n in (9, 18))
    assert (
        near.token_span[1] / near.token > 2 > far.token_span[1] / far.token
    )  # a little slower is a lot later


def test_a_prompt_takes_as_many_joules_of_a_machine_that_only_reads():
    """Stages read a prompt each at the same time, there as here."""
    asked = ASKED.replace(layout="PP2 x TP2")
    here, there = (ask(asked.replace(reader=one)).request for one in (None, ASKED.machine))
    assert there.prompt_joules == pytest.approx(here.prompt_joules)


@pytest.mark.parametrize("more", [{}, {"layout": "PP2 x TP2"}])
def test_headroom_is_how_many_more_may_come(more):
    many = ask(ASKED.replace(machines=12, **more)).fleet
    for by, feasible in ((0.999, True), (1.001, False)):
        assert ask(ASKED.replace(machines=12, arrivals=30 * by * many.headroom, **more)).feasible is feasible


def test_words():
    with pytest.raises(ValueError, match="leave one of them out"):
        ASKED.replace(rounds=2)


RENT = {"token": "40 tokens/s", "first_token": "500 ms", "chips": "H100"}


def test_an_offer_is_the_fewest_machines_that_keep_the_promise():
    asked = ASKED.replace(machine=None)
    found = decide(asked, **RENT, counts=(2, 4, 8))
    assert found.best.dollars == pytest.approx(min(offer.dollars for offer in found.offers))
    for offer in found.offers:
        many = offer.fleet
        assert many.state.token <= 1 / 40 and many.state.first_token <= 0.5
        if many.machines > 1 and not many.reader:
            fewer = fleet(asked, many.system, offer.layout, machines=many.machines - 1)
            assert fewer is None or fewer.state.token > 1 / 40 or fewer.state.first_token > 0.5


def test_what_it_costs_to_be_sure_stands_beside_an_offer():
    offer, sure = (
        decide(ASKED.replace(machine=None), **RENT, counts=4, sure=sure).best for sure in (False, True)
    )
    assert 1 / sure.request.token_span[1] >= 40 and sure.request.first_span[1] <= 0.5
    assert offer.sure.dollars_per_hour == sure.fleet.dollars_per_hour > offer.fleet.dollars_per_hour
    assert offer.surely().startswith("Kept at the slow end too: ")
    assert f"${730 * offer.fleet.dollars_per_hour:,.0f} a month" in str(offer)


def test_what_is_sure_is_the_cheapest_of_its_chip_in_whatever_form():
    """One machine that reads and one that decodes may be surer than two that do both, at the same rent."""
    asked = Question("Qwen3 32B", prompt=2000, output=400, arrivals=6)
    promise = {"token": "40 tokens/s", "first_token": "1 s"}
    found = decide(asked, **promise)
    sure = decide(asked, **promise, chips=found.best.system.chip.name, sure=True).best
    told = found.text(most=99)
    assert told.count("slow end too") + told.count("At the slow end") == 5
    assert found.best.sure.dollars_per_hour == sure.fleet.dollars_per_hour


def test_of_fleets_at_one_price_the_one_that_is_sure_is_offered():
    best = decide(
        "Qwen3 32B", prompt=2000, output=400, arrivals=6, token="40 tokens/s", first_token="1 s", chips="B200"
    ).best
    assert best.fleet.chips == best.sure.chips and best.fleet.slow.token <= 1 / 40


@pytest.mark.parametrize(
    ("verb", "more", "code", "words"),
    [
        ("ask", [], 0, "at $2 to 4 per used chip hour"),
        ("change", ["--dollars", "1"], 0, "$1 a million asked"),
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
    asked = Question("DeepSeek V3", "8x B200", layout="DP2 TP4 EP8", prompt=2000, output=400, arrivals=4)
    alike, other = (
        ask(asked.replace(reader=reader)).fleet.request.step_factor for reader in ("8x B200", "16x B200")
    )
    assert alike == other
