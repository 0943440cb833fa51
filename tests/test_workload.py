"""Mixes of requests: trace files, and prompts that a cache still holds."""

import gzip
import math
import random
import tomllib
from collections import OrderedDict

import numpy as np
import pandas as pd
import pytest
from facts import exactly, from_table, lines, refused
from questions import TRACES, recorded

from tokenprice import Question, ask, simulate, workload  # noqa: F401, by_hand.tsv
from tokenprice.terminal import main

KNOWN = tomllib.loads((TRACES / "traces.toml").read_text())
ASKED = Question(
    "Llama 3.3 70B", "4x H100", weights="fp8", prompt_tokens="2k", output_tokens=500, request_rate=3
)


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
