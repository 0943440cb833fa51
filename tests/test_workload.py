"""Mixes of requests: trace files, prompts that a cache still holds, and formula and simulation of one queue."""

import gzip
import math
import random
import tomllib
from collections import OrderedDict

import numpy as np
import pandas as pd
import pytest
from facts import exactly, from_table, lines, refused
from questions import TRACES

from tokenprice import Question, ask, decide, recommendation, simulate, workload
from tokenprice.prefill import prefix_cache
from tokenprice.terminal import main

KNOWN = tomllib.loads((TRACES / "traces.toml").read_text())
ASKED = Question(
    "Llama 3.3 70B", "4x H100", weights="fp8", prompt_tokens="2k", output_tokens=500, request_rate=3
)
MACHINE = {"azure_code": "4x H100", "azure_conv": "4x H100", "mooncake_conversation": "8x B200"}


def recorded(name, **more):
    return Question("Llama 3.3 70B", MACHINE[name], weights="fp8", trace=TRACES / f"{name}.csv", **more)


def at_random(asked):
    """The requests of a trace with their cached tokens, if they arrived at random and in random order."""
    machines = ask(asked).fleet.replicas
    shared = prefix_cache(asked, machines)
    return asked.replace(trace=None, cached=shared, replicas=machines)


def off(found):
    """By how much a formula misses the mean time between tokens, and to the first."""
    known = {"gaps": found.answer.seconds, "first": found.answer.request.ttft}
    return {what: known[what] / found.mean(what) - 1 for what in known}


# --- Words and files -----------------------------------------------------------------------------------------


@from_table
def test_lengths_that_lie_evenly_have_the_moments_of_a_uniform_distribution(said):
    lengths = ASKED.replace(prompt_tokens=said).prompt_tokens
    assert float(lengths) == pytest.approx(2048)
    assert np.var(lengths.support) == pytest.approx(2048**2 / 12, rel=1e-3)


test_lengths_by_hand = exactly("test_lengths_by_hand", globals())


def test_words_read_back_to_the_same_question():
    for asked in (
        ASKED.replace(prompt_tokens="2k ± 50%", cached="30%"),
        recorded("azure_conv", request_rate=9),
    ):
        assert Question(**asked.words()) == asked


test_what_a_trace_says_is_not_said_twice = refused(globals())


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
# Ours, then Mooncake, Azure and BurstGPT.
@from_table
def test_a_file_has_our_names_or_those_of_a_public_trace(row, came, blocks, tmp_path, kind):
    start = "2023-11-16 18:17:00" if came is None else 0
    rows = [{**row, next(iter(row)): start}, row]
    path = tmp_path / f"requests.{kind}"
    table = pd.DataFrame(rows)
    if kind == "jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        told = {name: "4-5 9" for name in row if name == "hash_ids"}
        table.assign(**told).to_csv(path, index=False)
    found = workload.read_trace("trace", path)
    assert found.arrivals == (0, came or 3.5) and found.prompt.support == (1100, 1100)
    assert (
        found.output == workload.LengthDistribution([7, 7])
        and [len(one) for one in found.blocks] == [blocks] * bool(blocks) * 2
    )


@pytest.mark.parametrize(
    ("text", "words"), [*lines("refused_traces"), ('{"a": ' + "[" * 200_000, "neither JSON lines nor a table")],
    ids=lambda text: text[-40:],
)  # fmt: skip
def test_a_file_that_is_none_says_what_is_wrong(tmp_path, text, words, capsys):
    path = tmp_path / "requests"
    path.write_text(text.replace("|", "\n"))
    assert main(["ask", "Llama 3.3 70B", "4x H100", "--trace", str(path)]) == 2
    assert words in capsys.readouterr().err


def even(path, n, **more):
    """A trace file of this many requests, one every half second."""
    rows = [{"arrival": k / 2, "prompt": 500, "output": 50, **more} for k in range(n)]
    pd.DataFrame(rows).to_json(path, orient="records", lines=True)
    return Question("Llama 3 8B", "H100", trace=path)


@from_table
def test_few_requests_are_answered_and_even_ones_are_no_bursts(n, said, tmp_path):
    found = ask(even(tmp_path / "requests", n))
    assert said in str(found) and found.fleet.request_rate == pytest.approx(2)


def test_a_long_file_is_read_as_a_stream_compressed_or_not(tmp_path):
    """6 MB, and a failed request in twenty: those have no answer."""
    path, n = tmp_path / "requests.csv", 30_000
    rows = (f"{k / 7},{100 + k % 900},{k % 20},{'x' * 200}\n" for k in range(n))
    path.write_text("Timestamp,Request tokens,Response tokens,Note\n" + "".join(rows))
    found = workload.read_trace("trace", path)
    assert len(found.arrivals) == n * 19 / 20 and found.skipped == n / 20
    zipped = tmp_path / "requests.csv.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes(), 1))
    assert workload.read_trace("trace", zipped).replace(path=str(path)) == found
    zipped.write_bytes(zipped.read_bytes()[:-100])
    with pytest.raises(LookupError, match="cannot read"):
        workload.read_trace("trace", zipped)


@pytest.mark.parametrize("name", KNOWN)
def test_stored_traces_are_the_beginnings_of_public_ones(name):
    about, found = KNOWN[name], recorded(name).trace
    assert len(found.arrivals) == 2000 <= about["whole"]
    assert about["url"].startswith("https://github.com/") and about["licence"] and about["cite"]


# --- What a cache still holds --------------------------------------------------------------------------------


def by_hand(blocks, room):
    """A cache of this many blocks, played block by block."""
    used, found = OrderedDict(), []
    for names in blocks:
        found.append(next((n for n, name in enumerate(names) if name not in used), len(names)))
        for name in reversed(names):
            used[name] = True
            used.move_to_end(name)
        while len(used) > room:
            used.popitem(last=False)
    return found


@from_table
def test_a_cache_forgets_what_was_used_longest_ago(room):
    choose, blocks = random.Random(room), [(0, 1, 2)]
    for k in range(200):
        told = choose.choice(blocks)[: choose.randint(0, 5)]
        blocks.append((*told, *((k, n) for n in range(choose.randint(1, 4)))))
    prompts = [len(names) * workload.TOKENS_PER_BLOCK + 1 for names in blocks]
    found = workload.Trace(
        "",
        tuple(range(len(blocks))),
        workload.LengthDistribution(prompts),
        workload.LengthDistribution(prompts),
        tuple(blocks),
    )
    held = [
        cached // workload.TOKENS_PER_BLOCK
        for cached in found.cached(room * workload.TOKENS_PER_BLOCK).support
    ]
    assert held == by_hand(blocks, room)


def test_more_memory_holds_more_until_it_holds_all_that_is_shared():
    trace = recorded("mooncake_conversation").trace
    found = [trace.cached(room) for room in (0, 1e5, 1e6, 1e7, 1e9)]
    assert [float(one) for one in found] == sorted(map(float, found))
    assert float(found[0]) == 0 and found[-1] == trace.shared


def test_what_does_not_fit_is_read_again():
    """Two machines hold more than one, and prompts that are held take less machine time."""
    many = [ask(recorded("mooncake_conversation", replicas=n)).request for n in (2, 4)]
    assert many[0].cached_tokens < many[1].cached_tokens < recorded("mooncake_conversation").trace.shared
    assert many[0].fresh_seconds > many[1].fresh_seconds


def test_a_request_goes_where_half_of_its_prompt_is_held():
    """The third goes on from the first; the fourth shares its first block only, as all do."""
    blocks = ((0, 1, 2), (0, 3, 4), (0, 1, 2, 5), (0, 6, 7))
    prompts = [len(names) * workload.TOKENS_PER_BLOCK for names in blocks]
    trace = workload.Trace(
        "", (0, 1, 2, 3), workload.LengthDistribution(prompts), workload.LengthDistribution(prompts), blocks
    )
    assert trace.routes(trace.shared, [4, 5, 6, 7]) == [4, 5, 4, 7]


def system_prompt(path):
    """A trace of prompts of 60 blocks, of which the first 58 are the same."""
    asked = even(path, 100, prompt=30720, output=300, prefix="system", shared=29696)
    return ASKED.replace(trace=asked.trace, prompt_tokens=None, output_tokens=None, request_rate=20)


def test_memory_holds_each_block_once(tmp_path):
    """Beside 58 blocks there are two for each request, and half of its answer."""
    memory = ASKED.replace(prompt_tokens=30720, output_tokens=300, request_rate=None).max_sequences() * 30870
    most = system_prompt(tmp_path / "requests").max_sequences()
    assert most == pytest.approx((memory - 58 * 512) / (2 * 512 + 150))


def test_machines_of_requests_with_one_system_prompt(tmp_path):
    """A step of 64 takes 12 ms and 0.87 ms for each of them, a prompt 128 ms; held one by one it takes 16 machines."""
    fleet = ask(system_prompt(tmp_path / "requests")).fleet
    busy = 20 * (300 * (12 / 64 + 0.87) + 128) / 1000
    assert fleet.replicas == math.ceil(busy * fleet.factor)


def test_a_prefix_of_all_sends_no_request_to_another_machine(tmp_path):
    trace, lines = system_prompt(tmp_path / "requests").trace, list(range(100))
    assert trace.routes(trace.shared, lines) == lines


# --- Formula and simulation ----------------------------------------------------------------------------------


@from_table
@pytest.mark.parametrize(
    "load", [{"request_rate": 3}, {"request_rate": None, "concurrency": 32}, {"max_num_batched_tokens": 1024}]
)
def test_a_mix_waits_as_long_in_the_formula(prompt, output, load):
    found = off(simulate(ASKED.replace(prompt_tokens=prompt, output_tokens=output, **load), requests=4000))
    assert abs(found["gaps"]) < 0.1 and abs(found["first"]) < 0.15


@pytest.mark.parametrize("name", KNOWN)
def test_requests_of_a_trace_that_come_at_random_wait_as_long_in_the_formula(name):
    """Many requests are needed: the longest prompts of Mooncake are few and decide much."""
    found = off(simulate(at_random(recorded(name)), requests=20_000, seed=1))
    assert abs(found["gaps"]) < 0.2 and abs(found["first"]) < 0.2


def test_requests_that_come_in_bursts_wait_longer_than_the_formula_says():
    """Requests of conversations arrive almost at random; requests of editors arrive by the hundred."""
    talk, code = (simulate(recorded(f"azure_{name}"), requests=4000) for name in ("conv", "code"))
    assert abs(off(talk)["first"]) < 0.15 and off(code)["first"] < -0.9
    assert "times as uneven" in str(code.answer) and talk.answer.question.trace.bursts < 2


def test_one_length_many_times_is_that_length():
    """A distribution without spread gives the answer of a fixed length, with answers equally long."""
    mixed, plain = (
        ASKED.replace(prompt_tokens="2k-2k", output_tokens="500-500"),
        ASKED.replace(fixed_lengths=True),
    )
    for load in ({}, {"request_rate": None, "concurrency": 16}):
        one, other = (ask(asked.replace(**load)) for asked in (mixed, plain))
        assert one.seconds == pytest.approx(other.seconds, rel=1e-9) or load
        assert one.request.dollars == pytest.approx(other.request.dollars, rel=1e-9)


# --- What to rent --------------------------------------------------------------------------------------------


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
