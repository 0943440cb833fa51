"""Simulation and formula, two derivations of one queue; fixed seeds."""

import numpy as np
import pytest

from tokenprice import Question, simulate
from tokenprice.fleet import Station, fleet
from tokenprice.terminal import main

ASKED = Question("Llama 3.3 70B", "4x H100", weights="fp8", prompt="2k", output=500, arrivals=2)


@pytest.mark.parametrize(
    "more",
    [{}, {"users": 32}, {"arrivals": 25}, {"equal": True}, {"arrivals": 25, "reader": "4x H100"}, {"prompt": "8k"},
     {"arrivals": 25, "layout": "PP2 x TP2"}],
)  # fmt: skip
def test_the_formula_is_within_a_tenth_of_the_simulation(more):
    """Below the load from which there is no answer; the time between tokens within a twentieth."""
    found = simulate(ASKED.replace(**more), requests=3000, seed=1)
    state = found.fleet.state
    assert state.first_token == pytest.approx(found.mean("first"), rel=0.1)
    assert state.token == pytest.approx(found.mean("gaps"), rel=0.06)


def test_a_line_for_places():
    """Sixteen places, so that requests stand in line: the one place where the formula is an approximation."""
    asked = ASKED.replace(users=16, arrivals=1.2, machines=1)
    found = [simulate(asked, requests=8000, seed=seed) for seed in (1, 2)]
    waits = np.mean([one.mean("first") for one in found])
    assert found[0].fleet.state.load > 0.6 and found[0].fleet.state.waits > 0.02
    assert found[0].fleet.state.first_token == pytest.approx(waits, rel=0.25)


def test_every_request_that_came_was_served_with_all_its_tokens():
    found = simulate(ASKED, requests=2000, seed=3)
    assert len(found.first) == len(found.token) == 2000 and (found.first > 0).all()
    assert found.percentile("first", 50) <= found.percentile("first", 90) <= found.percentile("first", 99)
    # users see as many tokens a second as come in, within the noise of 2,000 geometric lengths
    seconds = 2000 / ASKED.arrivals
    assert found.many.sum() / seconds == pytest.approx(ASKED.arrivals * ASKED.output, rel=0.1)
    assert min(found.gaps) >= fleet(ASKED, ASKED.machine).station.steps[0] * (1 - 1e-12)


def test_equal_seeds_are_equal_and_promises_are_priced():
    one, other = (
        simulate(ASKED, requests=500, seed=7, token="40 tokens/s", first_token="300 ms") for _ in range(2)
    )
    assert one.to_dict() == other.to_dict() != simulate(ASKED, requests=500, seed=8).to_dict()
    assert 0 < one.kept < 1
    assert one.dollars_per_million_kept == pytest.approx(one.fleet.request.per_million["output"] / one.kept)
    assert simulate(ASKED, requests=500, seed=7).kept == 1


def test_erlang_by_simulation():
    """Where all steps take the same time and prompts none, it is M/M/c, whose line tables print (c = 5, a = 4)."""
    from types import SimpleNamespace

    from tokenprice.simulate import _Run

    at = Station(prompt=0, output=200, steps=np.full(5, 1 / 200))
    many = SimpleNamespace(station=at, state=at.at(4), machines=1, readers=0, reader=None, system=0)
    asked = SimpleNamespace(arrivals=4, output=200, equal=False)
    first = np.concatenate([_Run(many, asked, seed).of(20000)[0] for seed in range(3)])
    assert np.mean(first) == pytest.approx(2.2165 / 4 + 1 / 200, rel=0.1)


def test_terminal_and_refusals(capsys):
    line = ["simulate", "Llama 3.3 70B", "4x H100", "--weights", "fp8", "--prompt", "2k", "--output", "500"]
    assert main([*line, "--arrivals", "2", "--requests", "200", "--first-token", "300 ms"]) == 0
    printed = capsys.readouterr().out
    assert "p99" in printed and "promise kept for" in printed
    assert main(line) == 2 and "arrivals is missing" in capsys.readouterr().err
    assert main([*line, "--arrivals", "99", "--machines", "1"]) == 2 and "steady" in capsys.readouterr().err
