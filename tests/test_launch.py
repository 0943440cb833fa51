"""A launch command is a question: flags of public threads, and commands that start a layout, read back."""

import tomllib
from pathlib import Path

import pytest

from tokenprice import Question, ask, change, decide, launch, simulate
from tokenprice.question import read
from tokenprice.words import in_words

CASES = tomllib.loads((Path(__file__).parent / "launches.toml").read_text("utf-8"))
COMMANDS = [case for engine in launch.ENGINES for case in CASES[engine]]


def asked(case, **more):
    return read(Question, {"model": case["command"], "machine": case["machine"], **more})


@pytest.mark.parametrize("case", COMMANDS, ids=lambda case: case["from"])
def test_a_launch_command_is_a_question(case):
    load = {} if "prompt" in case["is"] else {"prompt": 1024, "output": 512}
    found = asked(case, **load)
    expected = {"machine": case["machine"], **case["is"]}
    wanted = Question(
        **{"model": found.model, "prompt": 1024, "output": 512, "layout": found.layout} | expected
    )
    for name in expected:
        assert getattr(found, name) == getattr(wanted, name), name


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: case["says"])
def test_what_is_no_launch_command_is_refused_in_one_line(case):
    with pytest.raises((ValueError, LookupError), match=case["says"]) as refused:
        ask(case["command"], "8x H100")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("engine", launch.ENGINES)
@pytest.mark.parametrize("case", COMMANDS, ids=lambda case: case["from"])
def test_the_command_of_a_layout_reads_back_to_it(case, engine):
    q = asked(case, **{} if "prompt" in case["is"] else {"prompt": 1024, "output": 512})
    text = launch.command(q, engine)
    if not text:
        assert (engine, in_words(q.lies)) in {("vllm", "TP8 x EP4"), ("trtllm", "DP4")}
        return
    command, _, settings = text.partition("  # extra.yml: ")
    if settings:  # as a reader would write it
        command = "\n".join(["cat > extra.yml <<EOF", *settings.split(", "), "EOF", command])
    back = read(Question, {"model": command, "machine": q.machine, "prompt": 1024, "output": 512})
    names = ("machine", "cache", "max_num_seqs", "chunk", "drafted")
    assert all(
        getattr(back, name) == getattr(q, name) or name == "cache" and q.formats[1] == back.formats[1]
        for name in names
    ), text
    assert in_words(back.lies) == in_words(q.lies), text
    if q.memory:
        assert back.memory == pytest.approx(q.memory, rel=0.01), text


def test_shares_of_the_memory_are_converted_by_engine():
    """SGLang's share holds weights and cache alone: on 8 x 80 GB with 4 GB of its own a chip, 0.85 of it is 0.9."""
    shares = {
        "vllm serve Qwen/Qwen3-32B -tp 2 --gpu-memory-utilization 0.85": 0.85,
        "python -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 2 --mem-fraction-static 0.85": 0.85
        + 4e9 / 85.52e9,
        "trtllm-serve Qwen/Qwen3-32B --tp_size 2 --kv_cache_free_gpu_memory_fraction 0.85": 0.85,
    }
    for text, share in shares.items():
        assert read(Question, {"model": text, "machine": "2x H100"}).memory == pytest.approx(share, rel=1e-3)


def test_quantization_decides_over_dtype_and_a_checkpoint_over_both():
    for flags, weights in {
        "--dtype bfloat16 --quantization fp8": "fp8", "--quantization fp8 --dtype float16": "fp8",
        "--dtype bfloat16": "bf16", "--dtype float32": "fp32",
    }.items():  # fmt: skip
        assert ask(f"vllm serve Qwen/Qwen3-8B {flags}", "H100", batch=1).question.formats[0] == weights
    assert ask("vllm serve Qwen/Qwen3-32B-FP8 --dtype bfloat16", "H100", batch=1).question.formats[0] == "fp8"


def test_all_doors_take_a_launch_command_and_flags():
    """As by fields of the question itself."""
    text, load = (
        "vllm serve Qwen/Qwen3-32B -tp 4 --kv-cache-dtype fp8",
        {"isl": 1000, "osl": 200, "concurrency": 8},
    )
    same = {"layout": "TP4", "cache": "fp8", "engine": "vllm", "prompt": 1000, "output": 200}
    plain = ask("Qwen/Qwen3-32B", "4x H100", users=8, **same)
    assert ask(text, "4x H100", **load).seconds == plain.seconds
    assert (
        ask(
            "Qwen/Qwen3-32B", "4x H100", tensor_parallel_size=4, kv_cache_dtype="fp8", engine="vllm", **load
        ).seconds
        == plain.seconds
    )
    assert (
        change(text, "H100", token="5 ms", batch=8).now
        == ask("Qwen/Qwen3-32B", "4x H100", batch=8, layout="TP4", cache="fp8", engine="vllm").seconds
    )
    played = [
        simulate(one, "4x H100", requests=50, **more).mean("first")
        for one, more in ((text, load), ("Qwen/Qwen3-32B", same | {"users": 8}))
    ]
    assert played[0] == played[1]
    prices = [
        decide(one, tpot="20 ms", prompt=1000, output=200, chips="H100", **more).best.dollars
        for one, more in ((text, {}), ("Qwen/Qwen3-32B", {"cache": "fp8", "engine": "vllm"}))
    ]
    assert prices[0] == prices[1]


def test_what_has_no_effect_and_what_is_not_described_is_named():
    said = str(ask("vllm serve Qwen/Qwen3-8B --port 80 --enable-lora --max-loras 4", "H100", batch=1))
    assert "Without effect: --port." in said
    assert "Not described: --enable-lora (adapters take bytes and launches)." in said
    assert "vllm serve Qwen/Qwen3-8B\n" in said
    assert "takes 4 of 8 chips" in str(ask("vllm serve Qwen/Qwen3-8B -tp 4", "8x H100", batch=1))


@pytest.mark.parametrize("flag", CASES["flags"].split())
def test_every_flag_of_public_threads_is_known(flag):
    assert launch.known(flag)


@pytest.mark.parametrize(("command", "machine", "tokens"), [
    ("vllm serve meta-llama/Llama-3.1-8B-Instruct", "RTX 3090", 31_232),  # vllm#10517
    ("trtllm-serve nvidia/Llama-3.1-8B-Instruct-FP8 --kv_cache_dtype fp8", "RTX 5090", 263_008),  # TensorRT-LLM#4275
    ("sglang serve --model-path Qwen/Qwen3.5-35B-A3B --mem-fraction-static 0.92", "H200", 76 * 9216),  # its cookbook
])  # fmt: skip
def test_the_tokens_of_an_engines_log_lie_in_the_interval(command, machine, tokens):
    found = ask(command, machine, prompt=8192, output=1024, users=8)
    low, _, high = found.cache_tokens
    assert low < tokens < high and "the engine's log should say: KV cache of" in str(found)


def test_four_readers_hold_back_as_many_users_as_measured():
    """dynamo#2552: 32 users of R1's 70B in fp8, 3,000/150, four readers of one H100: 1,067 tokens/s after 1,390 ms."""
    asked = {"weights": "fp8", "prompt": 3000, "output": 150, "users": 32, "reader": "1x H100"}
    found = ask("R1 Distill Llama 70B", "4x H100", **asked, readers=4)
    assert found.request.first_token == pytest.approx(1.39, rel=0.15)
    assert found.throughput == pytest.approx(4 * 150 / found.request.prompt.total, rel=0.02)  # what they read
