"""Bounds that hold for every model: no answer breaks one, and an answer that would is refused."""

import os
import random

import pytest
from facts import from_table, lines, options_of
from questions import drawn

from tokenprice import Question, ask, decide, invariants, prefill, queueing, request  # noqa: F401, rows.tsv
from tokenprice.terminal import main

WRONG = {
    said: {name: float(value) for name, value in options_of(text).items()} for said, text in lines("bounds")
}
GOOD = WRONG.pop("no bound is broken")


@pytest.mark.parametrize("said", WRONG)
def test_each_bound_is_noticed(said):
    assert invariants.violated(GOOD, invariants.KINDS) is None
    assert f"({said})" in invariants.violated(GOOD | WRONG[said], invariants.KINDS)
    nothing = dict.fromkeys(WRONG[said], float("nan"))
    assert invariants.violated(GOOD | nothing, invariants.KINDS)


def test_there_is_a_wrong_number_for_each_bound():
    assert list(dict.fromkeys(one.text for kind in invariants.KINDS.values() for one in kind)) == list(WRONG)


def test_the_bound_of_a_first_token_by_hand():
    """Entry time, two steps of 0.1 s, the prompts of the four users in memory; for four more, a round of answers."""
    assert invariants.time_to_drain(0.5, 1, 8, 4, 1.0, 10, 0.1, 1) == pytest.approx(0.5 + 0.2 + 4 + (4 + 1))


ASKED = Question(
    "DeepSeek V3", "8x H200", prompt_tokens=4000, output_tokens=16, layout="DP8 EP8", concurrency=8
)


@from_table
def test_a_formula_that_goes_wrong_sells_nothing(room, name, asked, monkeypatch):
    assert ask(asked).feasible
    right = getattr(room, name)
    monkeypatch.setattr(room, name, lambda *given: -1000 - right(*given))
    found = ask(asked)
    assert found.status == "n/a" and "please report the question" in found.reason
    offers = decide(
        asked.replace(machine=None, layout=None, concurrency=None), tpot=0.1, chips="H200", counts=8
    )
    assert offers.best is None


def test_a_wrong_answer_has_an_exit_code_and_no_number(monkeypatch, capsys):
    monkeypatch.setattr(
        queueing.Server, "state", lambda self, arrivals, *_: queueing.SteadyState(0.1, 1, 0, -0.0218, 1)
    )
    line = [
        "ask",
        "DeepSeek-V3",
        "8x H200",
        *"--prompt-tokens 4000 --output-tokens 16 --request-rate 5".split(),
    ]
    assert main(line) == 1 and "ms per token" not in capsys.readouterr().out


def test_no_question_at_random_breaks_a_bound():
    """``QUESTIONS`` random questions (default 20); those without an answer are skipped."""
    n, choose = int(os.environ.get("QUESTIONS", 20)), random.Random(int(os.environ.get("SEED", 48)))
    found = [one for _ in range(n) if (one := drawn(choose, choose.choice(("loop", "fleet"))))]
    assert not [one.question for one in found if "please report" in one.reason]
    assert sum(one.feasible for one in found) > n / 4


def test_a_copy_that_reads_long_prompts_in_pieces_still_answers_one_user():
    """Eight users of eight copies: no step has less than one sequence in each, however short the answers are."""
    found = ask(
        "Qwen3 30B-A3B",
        "8x H100",
        layout="DP8 EP8",
        prompt_tokens=30_000,
        output_tokens=10,
        max_num_batched_tokens=2048,
        concurrency=8,
    )
    assert found.feasible and found.request.decode_batch == 8


@pytest.mark.parametrize("load", [{"concurrency": 8}, {"request_rate": 2}])
def test_a_reader_without_a_price_has_no_rent_to_hold_against(load):
    asked = {"prompt_tokens": 2000, "output_tokens": 500, "weights": "fp8", "prefill_machine": "4x H800"}
    found = ask("Llama 3.3 70B", "4x H100", **asked, **load)
    assert found.feasible and "no price of H800 is known, which prefills" in str(found)
