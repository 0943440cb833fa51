"""A benchmark beside what it should be: printouts of public tools, and causes that are found."""

import random
import tomllib
from pathlib import Path

import pytest

from tokenprice import ask, benchmark, check
from tokenprice.diagnosis import expected
from tokenprice.terminal import main

CASES = tomllib.loads((Path(__file__).parent / "printouts.toml").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES["printout"], ids=lambda case: case["from"])
def test_a_printout_is_read(case):
    found = benchmark.read(case["text"])
    assert found.measured == pytest.approx(case["measured"])
    assert found.load == pytest.approx(case["load"])


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: case["says"])
def test_what_is_cut_or_double_is_refused_in_one_line(case):
    with pytest.raises(ValueError, match=case["says"]) as refused:
        benchmark.read(case["text"])
    assert "\n" not in str(refused.value)


def printed(case, seed, changed=True):
    """What a benchmark prints in words: an answer's numbers, with some noise; of the truth, or as it was launched."""
    load, draw = case["load"], random.Random(seed)
    flag, fields = (case.get("flag", ""), case.get("fields", {})) if changed else ("", {})
    told = expected(ask(f"{case['command']} {flag}", case["machine"], **{**load, **fields}))
    middle = [told[name].middle for name in ("tpot", "ttft")]
    tpot, ttft = (one * draw.lognormvariate(0, by) for one, by in zip(middle, (0.06, 0.15), strict=True))
    whole, noisy = (first + (load["output_tokens"] - 1) * token for token, first in (middle, (tpot, ttft)))
    rate = told["output_rate"].middle * whole / noisy  # Little's law
    return f"TPOT {1e3 * tpot:.4g} ms, TTFT {1e3 * ttft:.4g} ms, {rate:.5g} tokens/s"


def test_of_25_changed_flags_at_least_20_are_named_first_and_at_most_two_each():
    named = []
    for seed, case in enumerate(CASES["changed"]):
        found = check(case["command"], printed(case, seed), case["machine"], **case["load"])
        named.append([one.cause["name"] for one in found.explained])
    right = [names[:1] == [case["cause"]] for names, case in zip(named, CASES["changed"], strict=True)]
    assert len(right) == 25 and sum(right) >= 20 and max(map(len, named)) <= 2, named


@pytest.mark.parametrize("seed", range(15))
def test_of_what_is_as_it_should_be_no_cause_is_named(seed):
    case = CASES["changed"][seed]
    found = check(case["command"], printed(case, seed, changed=False), case["machine"], **case["load"])
    assert found.inside and not found.explained


def test_what_was_pasted_is_one_text_or_two_in_python_and_the_terminal(capsys, tmp_path):
    """The deployment of vllm#31826, whose chips the thread does not name."""
    text = next(case["text"] for case in CASES["printout"] if case["from"] == "vllm#31826")
    command = "vllm serve meta-llama/Llama-3.1-8B-Instruct -tp 2"
    found = check(command, text, "2x H100")
    assert found.answer.question.concurrency == 8 and found.answer.question.requests_per_user == 125
    assert str(check(f"{command}\n{text}", machine=None, gpu="2x H100")) == str(found)
    (tmp_path / "run.txt").write_text(text)
    assert main(["check", command, str(tmp_path / "run.txt"), "--gpu", "2x H100"]) == (
        0 if found.inside else 1
    )
    assert capsys.readouterr().out.strip() == str(found).replace("\u00d7", "x")
    assert main(["check", "vllm serve Qwen/Qwen3-8B", "--gpu", "H100"]) == 2
    assert "the benchmark is missing" in capsys.readouterr().err
    assert main(["check", "vllm serve Qwen/Qwen3-8B", "TPOT 9 ms"]) == 2
    assert "machine is missing" in capsys.readouterr().err


SLOW = "vllm serve meta-llama/Llama-3.3-70B-Instruct -tp 8"


def test_a_check_says_each_number_and_what_to_try_next():
    said = str(check(SLOW, "TPOT 45 ms, TTFT 170 ms, 32 users, prompt 1000, output 300", "8x H100"))
    assert "time between tokens: expected 14.9 ms to 21 ms, yours 45 ms: outside, 2.54 times" in said
    assert "(eager mode): time between tokens 45." in said
    assert "Try next: leave out --enforce-eager, which should give TPOT 17.7 ms" in said
    assert check(SLOW, "TPOT 22 ms, TTFT 100 ms, 32 users, prompt 1000, output 300", "8x H100").outside == (
        "tpot",
    )
    far = check(SLOW, "TPOT 421 ms, TTFT 1 ms, 32 users, prompt 1000, output 300", "8x H100")
    assert "Nothing that was asked explains it" in str(far) and far.far
