"""A launch command is a question: flags of public threads, and commands that start a layout, read back."""

import tomllib
from pathlib import Path

import pytest
from facts import by_hand, from_table, refused

from inferlib import load_chip  # noqa: F401, by_hand.tsv
from tokenprice import Question, ask, change, decide, launch, simulate
from tokenprice.formatting import format_layout
from tokenprice.question import parse_options

CASES = tomllib.loads((Path(__file__).parent / "launches.toml").read_text("utf-8"))
COMMANDS = [case for engine in launch.ENGINES for case in CASES[engine]]


LOAD = {"prompt_tokens": 1024, "output_tokens": 512}


def asked(case):
    load = {} if "prompt_tokens" in case["is"] else LOAD
    return Question(**parse_options({"model": case["command"], "machine": case["machine"], **load})[0])


@pytest.mark.parametrize("case", COMMANDS, ids=lambda case: case["from"])
def test_a_launch_command_is_a_question(case):
    found, expected = asked(case), {"machine": case["machine"], **case["is"]}
    wanted = Question(**LOAD | {"model": found.model, "layout": found.layout} | expected)
    for name in expected:
        assert getattr(found, name) == getattr(wanted, name), name


@pytest.mark.parametrize("engine", launch.ENGINES)
@pytest.mark.parametrize("case", COMMANDS, ids=lambda case: case["from"])
def test_the_command_of_a_layout_reads_back_to_it(case, engine):
    q = asked(case)
    text = launch.command(q, engine)
    if not text:
        none = {("vllm", "TP8 x EP4"), ("vllm", "attention DP16 with EP8"), ("trtllm", "DP4")}
        assert engine == "trtllm" and q.weights or (engine, format_layout(q.resolved_layout)) in none
        return
    command, _, settings = text.partition("  # extra.yml: ")
    if settings:  # as a reader would write it
        command = "\n".join(["cat > extra.yml <<EOF", *settings.split("; "), "EOF", command])
    back = Question(**parse_options({"model": command, "machine": q.machine, **LOAD})[0])
    for name in ("machine", "max_num_seqs", "max_num_batched_tokens", "draft_tokens", "acceptance_length"):
        assert getattr(back, name) == getattr(q, name), text
    assert back.formats == q.formats and str(back.resolved_layout) == str(q.resolved_layout), text
    if q.memory_utilization:
        assert back.deployment.left == pytest.approx(q.deployment.left, rel=0.001), text


# 16.06 GB of weights on a chip of 85.52 GB: of all memory 0.9 is 0.877 of what they leave; 2 GB are the engine's own.
KIMI = {"model": "nvidia/Kimi-K2.5-NVFP4", "machine": "8x B200"}
LLAMA = {"model": "Llama 3.3 70B", "machine": "8x H100"}
SMALL = {"model": "Llama 3 8B", "machine": "H100", "memory_utilization": 0.9}


@from_table
def test_a_command_starts_the_same_deployment_or_there_is_none(options, engine, said):
    """What a command says behind the model's name, or why there is no command."""
    found = launch.command(Question(**options), engine)
    assert (found or launch.unsupported(Question(**options), engine)).endswith(said)


SGLANG, H100 = "python -m sglang.launch_server --model-path", 85.52e9
DRAFTS = "vllm serve Qwen/Qwen3-Next-80B-A3B-Instruct -tp 4 --speculative-config.method qwen3_next_mtp"


def q(command, machine="2x H100", **more):
    return Question(**parse_options({"model": command, "machine": machine, **more})[0])


test_a_flag_means_what_its_engine_means = by_hand("test_a_flag_means_what_its_engine_means", globals())
test_what_is_no_launch_command_is_refused = refused(globals())


def test_all_doors_take_a_launch_command_and_flags():
    """They give the same answers as fields of the question."""
    text, model = "vllm serve Qwen/Qwen3-32B -tp 4 --kv-cache-dtype fp8", "Qwen/Qwen3-32B"
    flags = {"tensor_parallel_size": 4, "kv_cache_dtype": "fp8", "engine": "vllm"}
    own = {"layout": "TP4", "kv_cache_dtype": "fp8", "engine": "vllm"}
    load, same = {"isl": 1000, "osl": 200}, {"prompt_tokens": 1000, "output_tokens": 200}
    doors = (
        lambda what, **more: ask(what, "4x H100", concurrency=8, **more).seconds,
        lambda what, **more: simulate(what, "4x H100", requests=50, concurrency=8, **more).mean("first"),
    )
    for door in doors:
        assert door(text, **load) == door(model, **flags, **load) == door(model, **own, **same)
    now = [change(one, "4x H100", tpot="5 ms", **more).now for one, more in ((text, {}), (model, flags))]
    assert now == [ask(model, "4x H100", **own).seconds, change(model, "4x H100", tpot="5 ms", **own).now]
    asked = {"tpot": "20 ms", "chips": "H100"}
    plain = decide(model, **asked, **same, kv_cache_dtype="fp8", engine="vllm").best.dollars
    assert decide(text, **asked, **load).best.dollars == plain


@from_table
def test_the_tokens_of_an_engines_log_lie_in_the_interval(command, machine, tokens, source):
    found = ask(command, machine, prompt_tokens=8192, output_tokens=1024, concurrency=8)
    low, _, high = found.cache_tokens
    assert low < tokens < high and "should say: KV cache of" in str(found)
