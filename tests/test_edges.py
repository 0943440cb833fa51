"""Smallest valid inputs, and statements of an answer that are asked again as questions."""

import os
import random
import shlex

import pytest
from facts import from_table, lines
from questions import MACHINES, MODELS, drawn

from tokenprice import ask
from tokenprice.terminal import main


@pytest.mark.parametrize(("code", "line"), lines("edges"))
def test_a_verb_answers_at_its_edges_or_refuses_in_one_line(capsys, code, line):
    """The exit code is 0 if zero or one is a valid value, else 2."""
    assert main(shlex.split(line)) == int(code)
    printed = capsys.readouterr()
    assert printed.err.count("\n") == (code == "2") and "please report" not in printed.err
    assert "nan" not in printed.out.lower()


@pytest.mark.parametrize("load", [{"users": 8}, {"arrivals": 1}])
@from_table
def test_a_machine_that_reads_is_refused_as_one_that_decodes(model, machine, reader, words, load):
    found = ask(model, machine, prefill_machine=reader, prompt_tokens=496, output_tokens=99, **load)
    alone = ask(model, reader, prompt_tokens=496, output_tokens=1, concurrency=1)
    assert found.reason == f"prefill_machine: {alone.reason}" and words in found.reason


@from_table
def test_a_fleet_that_waits_draws_what_a_chip_draws_at_any_moment(rate):
    """36.5 % of 700 W on each of eight chips, for 300 tokens of a request."""
    found = ask("Llama 3.3 70B", "8x H100", prompt_tokens=2000, output_tokens=300, request_rate=rate)
    assert found.joules == pytest.approx(0.365 * 700 * 8 / (300 * rate), rel=0.1)
    assert "prompts not counted, idle chips are" in str(found)


# --- A sentence of an answer is a question put back ----------------------------------------------------------


def test_a_layout_that_fits_is_accepted():
    choose, told = random.Random(1), 0
    for _ in range(120):
        found = ask(choose.choice(MODELS), f"{choose.choice((1, 2, 3, 4, 8))}x {choose.choice(MACHINES)}")
        for layout in (one.removesuffix(" fits.") for one in found.question_notes if one.endswith(" fits.")):
            told += 1
            assert ask(found.question.replace(layout=layout)).feasible, layout
    assert told > 2


def test_as_many_machines_as_are_enough_answer():
    """``FLEETS`` random fleets (default 10)."""
    n, choose, told = int(os.environ.get("FLEETS", 10)), random.Random(2), 0
    for _ in range(n):
        found = drawn(choose, "fleet")
        if found is None or not found.feasible or found.fleet.replicas == 1:
            continue
        fewer = ask(found.question.replace(replicas=found.fleet.replicas - 1))
        reason = fewer.reason or fewer.warnings[-1]
        enough = int(reason.replace(",", "").split(" are enough")[0].rsplit(" ", 1)[-1])
        assert ask(found.question.replace(replicas=enough)).feasible
        told += 1
    assert told > n / 8
