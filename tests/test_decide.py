"""``decide``: offers meet the SLO, one more user breaks it, and brute force finds nothing cheaper."""

import dataclasses
import itertools
import re
from functools import cache

import pytest
from facts import exactly, from_table, refused
from questions import numbers

from inferlib import System, load_chip  # noqa: F401, by_hand.tsv
from tokenprice import ask, change, decide, load_model, simulate  # noqa: F401, by_hand.tsv
from tokenprice.calibration import chips_per_node
from tokenprice.deployment import layouts
from tokenprice.formatting import format_layout  # noqa: F401, by_hand.tsv
from tokenprice.recommendation import _stages as stages, machine_sizes  # noqa: F401, by_hand.tsv

LLAMA, DEEPSEEK = load_model("Llama 3.3 70B"), load_model("DeepSeek V3")
ASKED = {"prompt_tokens": 2000, "output_tokens": 500}
LONGER = {"prompt_tokens": 4000, "output_tokens": 500, "tpot": "30 tokens/s"}
PROMISE = {"tpot": 1 / 50, "ttft": 1}


@cache
def found():
    """What to rent for a dense model, on all chips."""
    return decide(LLAMA, **PROMISE, **ASKED, weights="fp8")


@cache
def experts():
    """What to rent for a model with experts, on some machines."""
    asked = ASKED | {"tpot": "30 tokens/s", "ttft": 2, "weights": "fp8"}
    return decide(DEEPSEEK, **asked, chips=["H200"], counts=(8, 16, 64))


def again(model, offer, users):
    return ask(model, offer.system, **ASKED, concurrency=users, layout=offer.layout, weights="fp8").request


@from_table
def test_offers_keep_the_promise_and_one_user_more_breaks_it(found, model, speed, first):
    """Checked with ``ask``, which does not use the search."""
    assert len(found().offers) > 3
    for offer in found().offers:
        one = again(model, offer, offer.concurrency)
        told = offer.request.ttft, offer.request.tpot, offer.dollars
        assert (one.ttft, one.tpot, one.dollars) == pytest.approx(told, rel=1e-9)
        assert ask(offer.question).request.dollars == pytest.approx(offer.dollars, rel=1e-9)
        assert one.ttft <= first and one.tpot <= 1 / speed
        users = offer.concurrency + offer.layout.dp
        more = again(model, offer, users)
        assert more.concurrency < users or more.ttft > first or more.tpot > 1 / speed


def test_nothing_cheaper_by_brute_force():
    """All counts, chips and users of one tensor-parallel instance, asked one by one."""
    machines = [f"{n}x {name}" for name, n in itertools.product(("H100 SXM", "H200", "A100 80GB"), (2, 4, 8))]
    cheapest = float("inf")
    for machine in machines:
        for users in range(1, 400):
            one = ask(LLAMA, machine, **ASKED, concurrency=users, weights="fp8").request
            if one is None or one.concurrency < users or one.tpot > 1 / 50 or one.ttft > 1:
                break  # more users are never faster
            cheapest = min(cheapest, one.dollars)
    found = decide(LLAMA, **PROMISE, **ASKED, weights="fp8", chips=["H100", "H200", "A100"], counts=(2, 4, 8))
    assert found.best.dollars == pytest.approx(cheapest, rel=1e-12)


def test_between_a_time_and_a_price_no_number_of_users_is_passed_over():
    """Neither of 32 and 64 users meets both limits; 40 and 44 do."""
    asked = {"weights": "fp8", "prompt_tokens": 1000, "output_tokens": 300, "layout": "TP8"}
    big = load_model("Llama 3.1 405B")
    requests = [ask(big, "8x H100", **asked, concurrency=users).request for users in range(1, 65)]
    kept = [one.concurrency for one in requests if one.tpot <= 0.060 and one.per_million["output"] <= 8]
    asked["layouts"] = asked.pop("layout")
    best = decide(big, **asked, tpot="60 ms", usd_per_million=8, chips="H100", counts=8).best
    assert kept and best.concurrency == max(kept)


def test_cheapest_first_one_runner_up_a_chip_and_a_frontier_that_ends_in_the_cheapest():
    dollars = [offer.dollars for offer in found().offers]
    assert dollars == sorted(dollars) and found().best is found().offers[0]
    names = [offer.system.chip.name for offer in (found().best, *found().runners_up)]
    assert len(names) == len(set(names)) == len({offer.system.chip.name for offer in found().offers})
    table = found().frontier()
    assert (table.speed.diff().dropna() < 0).all() and (table.usd_per_request.diff().dropna() < 0).all()
    assert (table.ttft <= 1).all()
    assert table[table.kept].usd_per_request.min() == pytest.approx(found().best.dollars)


def test_every_machine_is_an_offer_or_a_miss():
    """Every chip with a price and timed kernels; each is tried in every layout of every count."""
    chips = {point["chip"] for point in found().points} | {miss.chip for miss in found().rejected}
    assert len(chips) > 5
    domain = {chip: int(chips_per_node(load_chip(chip)) or 8) for chip in chips}
    counts = {chip: [n for n in (1, 2, 4, 8, 16, 32, 64, 72) if n <= domain[chip]] for chip in chips}
    tried = sum(len(layouts(LLAMA, load_chip(chip), n)) for chip in chips for n in counts[chip])
    assert (
        len(found().offers) + len(found().rejected)
        == tried
        == len(found().offers) + sum(found().why_not.values())
    )


def test_without_a_promise_memory_sets_the_number_of_users():
    """By hand: nine tenths of four times 143,771 MiB, less 72.7 GB of weights and 4 GB of workspace."""
    every = decide(LLAMA, **ASKED, weights="fp8", chips=["H200"], counts=(4, 8))
    assert "1 more machine would serve it." in every.screen(most=len(every.offers) - 1)[2]
    found = decide(LLAMA, **ASKED, weights="fp8", chips=["H200"], counts=(4,)).best
    by_hand = (4 * (0.9 * 143771 * 2**20 - 4e9) - 72.7e9) / (80 * 2 * 8 * 128 * 2 * 2250)
    assert found.concurrency == pytest.approx(by_hand, rel=2e-3)
    more = again(LLAMA, found, found.concurrency + 1)
    assert more.concurrency == found.concurrency and any(
        "the others wait" in caution for caution in more.warnings
    )


def test_a_chip_on_which_nothing_was_measured_has_a_footnote():
    found = decide("zai-org/GLM-5.2", **LONGER, weights="bf16", chips=RACK)
    (mark,) = re.findall(
        r"^(\[\d\]) Caution: the model was fitted to no run on GB200 NVL72\.$", str(found), re.M
    )
    assert mark in str(found).splitlines()[1]
    marks = re.findall(r"^\[(\d)\] ", str(found), re.M)
    assert "12345678".startswith("".join(marks)) and len(marks) > 1


@from_table
def test_weights_of_fewer_bits_are_what_decide_rents_for_them_on_the_same_chip(work):
    asked = {"prompt_tokens": 1000, "output_tokens": 300, "tpot": "50 tokens/s", "chips": "H100 SXM", **work}
    found, other = (decide("Qwen3 32B", **asked, weights=weights) for weights in ("bf16", "fp8"))
    best = other.best
    chips = best.fleet.chips if work else best.system.count
    less = 1 - best.dollars / found.best.dollars
    assert (
        found.narrower
        == f"With weights in fp8 (Qwen/Qwen3-32B-FP8), {chips} × H100 SXM would meet the SLO for {less:.0%} less"
    )
    assert less > 0.1


RACK = "GB200 NVL72"


# Nothing makes 10,000 tokens a second, answers in a microsecond, or costs a dollar for a million million tokens.
@from_table
def test_a_miss_says_how_far_off_it_is(promise, reason, times):
    found = decide(LLAMA, **ASKED, weights="fp8", counts=(1,), chips=["H200"], **promise)
    (miss,) = found.rejected
    assert found.why_not == {reason: 1}
    assert miss.times == pytest.approx(times(numbers(miss.detail)[0]), rel=6e-3)


def test_offers_that_nobody_timed_stand_where_their_slow_end_does():
    """Offers with lent kernels, or copies that share experts, must not rank first because of an error."""
    asked = ASKED | {"tpot": "20/s", "weights": "fp8", "chips": ["H200", "MI300X"]}
    found = decide(DEEPSEEK, **asked, counts=[8], prices={"MI300X": 2})
    ranks = [offer.ranked for offer in found.offers]
    unsure = {(offer.system.chip.name, offer.layout.dp > 1, offer.unsure_reason) for offer in found.offers}
    lent = [("MI300X", copies, "kernels are lent") for copies in (False, True)]
    assert ranks == sorted(ranks) and unsure == {
        ("H200", False, ""),
        ("H200", True, "copies that share experts prefill"),
        *lent,
    }
    for offer in found.offers:
        assert offer.ranked == offer.dollars * (offer.request.step_factor if offer.unsure_reason else 1)
    assert "Ranked by its slow end" in str(found)


def test_copies_that_only_decode_wait_for_no_prompt_of_another():
    shared = next(offer for offer in experts().offers if offer.unsure_reason)
    apart = dataclasses.replace(shared.request, prefill_machine=shared.system)
    assert dataclasses.replace(shared, request=apart).unsure_reason == ""


@cache
def held():
    """The offer for 500 users of whom 99 of 100 are in time."""
    asked = {"weights": "fp8", "tpot_p99": "40 ms", "concurrency": 500, "chips": "B200", "counts": 1}
    return decide(LLAMA, **ASKED, **asked).best


test_what_is_tried_by_hand = exactly("test_what_is_tried_by_hand", globals())


def test_of_several_sellers_the_lowest_counts_and_the_highest_is_told():
    asked = {**ASKED, **PROMISE, "weights": "fp8", "chips": ["H200"], "counts": (8,)}
    one = decide(LLAMA, **asked, prices={"H200": 2}).best
    several = decide(LLAMA, **asked, prices={"H200": {"dear": 6, "cheap": 2}}).best
    assert several.dollars == pytest.approx(one.dollars) and several.seller == "cheap"
    assert several.row()["usd_per_request_high"] == pytest.approx(3 * one.row()["usd_per_request_high"])
    assert decide(LLAMA, **asked, prices={"H200": (2, 6)}).best.request.price_ratio == 3


test_refusals_name_the_argument = refused(globals())


def test_copies_read_prompts_together():
    """Prompts of copies share a step. Little's law: all users wait as long as the machine works for all of them."""
    asked = {"prompt_tokens": 4096, "output_tokens": 512, "concurrency": 64, "cached": 1024, "weights": "fp8"}
    r = ask(DEEPSEEK, "8x H200", layout="DP8 EP8", max_num_batched_tokens=3072, **asked).request
    passes = 512 * (1 - (1 - 8 / 512) ** 8)
    assert 64 * (r.fresh_seconds + r.cached_seconds) == pytest.approx(passes * r.prompt.total)
    waited = r.prompt.total + r.output_tokens * r.tpot
    assert r.concurrency * r.machine_seconds < waited < r.seconds
    assert any("copies of the attention" in caution for caution in r.warnings)


OFFER = decide(
    LLAMA, **ASKED, weights="fp8", cached=1000, chips=["H100"], counts=(4,), prices={"H100": (2, 3)}
).best


@from_table
def test_the_interval_of_an_offer_is_a_factor_both_ways(name):
    row = OFFER.row()
    assert row[f"{name}_low"] < row[name] < row[f"{name}_high"]
    assert row[f"{name}_low"] * row[f"{name}_high"] == pytest.approx(row[name] ** 2)


def test_the_money_of_an_offer_has_the_interval_of_its_time_and_of_its_sellers():
    row = OFFER.row()
    factor = row["speed_high"] / row["speed"]
    assert row["speed"] == pytest.approx(1 / OFFER.request.tpot) and row["usd_per_hour"] == 8
    assert row["usd_per_request_high"] == pytest.approx(1.5 * factor * row["usd_per_request"])
    assert row["usd_per_request_low"] == pytest.approx(row["usd_per_request"] / factor)


def test_an_offer_says_the_numbers_of_its_row():
    """Times in milliseconds, money in cents."""
    row = OFFER.row()
    token = [1e3 / row[f"speed{end}"] for end in ("", "_high", "_low")]
    first, cents = (
        [by * row[f"{name}{end}"] for end in ("", "_low", "_high")]
        for name, by in (("ttft", 1e3), ("usd_per_request", 100))
    )
    prices = [row[f"usd_per_million_{kind}"] for kind in ("input", "cached", "output")]
    said = " ".join([*OFFER.cells().values()][3:])
    told = [*token, *first, row["usd_per_hour"], *cents, *prices, row["speed"], 730 * row["usd_per_hour"]]
    assert numbers(said) == pytest.approx(told, rel=6e-3)
    paid = sum(n * price / 1e6 for n, price in zip((1000, 1000, 500), prices, strict=True))
    assert paid == pytest.approx(row["usd_per_request"])


def test_sure_means_that_the_slow_end_of_the_interval_keeps_the_promise():
    asked = {**ASKED, **PROMISE, "weights": "fp8", "chips": ["H200", "B200"], "counts": (4, 8)}
    sure = decide(LLAMA, **asked, sure=True)
    assert sure.offers and sure.best.dollars > decide(LLAMA, **asked).best.dollars
    for offer in sure.offers:
        row = offer.row()
        assert row["speed_low"] >= 50 and row["ttft_high"] <= 1


def test_a_given_number_of_users_is_held_by_as_few_machines_as_can_and_the_cheapest_hour_is_first():
    asked = {
        "prompt_tokens": 2000,
        "output_tokens": 300,
        "weights": "fp8",
        "tpot": "20 tokens/s",
        "chips": "H100",
        "counts": [1, 2, 4],
    }
    one, many = (decide("Llama 3.3 70B", **asked, concurrency=n) for n in (5, 5000))
    assert one.best.replicas == 1 and one.best.concurrency >= 5
    assert one.best.hourly == min(offer.hourly for offer in one.offers)
    for offer in many.offers:
        assert (offer.replicas - 1) * offer.concurrency < 5000 <= offer.replicas * offer.concurrency
    assert [offer.hourly for offer in many.offers] == sorted(offer.hourly for offer in many.offers)


def test_a_whole_answer_comes_in_time():
    asked = {"prompt_tokens": 2000, "output_tokens": 300, "chips": "H100", "counts": [1, 2]}
    found = decide("Llama 3 8B", **asked, request_latency="3 s").best
    assert found.request.seconds <= 3 < decide("Llama 3 8B", **asked, tpot="1 tokens/s").best.request.seconds


def test_what_is_sure_at_the_slow_end_holds_for_more_requests_than_are_simulated():
    """Pollaczek and Khinchine: at a load of p, equal prompts wait p / (1 - p) / 2 of one's time."""
    asked = {"prompt_tokens": "2k", "output_tokens": 500, "request_rate": 30, "weights": "fp8", "ttft": "7 s"}
    best = decide("Llama 3.3 70B", **asked, chips="H100", counts=[1, 4], sure=True).best
    assert best.fleet.prefill_replicas
    slower = best.fleet.prefill_factor
    load, one = best.fleet.prefill_load * slower, best.request.prompt.total * slower
    assert one + one * load / (1 - load) / 2 < 7


def test_of_fleets_at_one_price_the_first_meets_the_slo_at_the_slow_end_too():
    asked = {"prompt_tokens": 500, "output_tokens": 300, "request_rate": 5, "tpot": "30 ms", "ttft": 1}
    first, second = decide("Llama 3.3 70B", chips="B200", counts=(1, 2), **asked).offers[:2]
    assert first.ranked == pytest.approx(second.ranked)
    assert first.fleet.slow_end.tpot < 0.03 < second.fleet.slow_end.tpot
