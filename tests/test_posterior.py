"""Own measured rows: the posterior against sums over many draws, its limits, and its effect on an answer."""

import math

import numpy as np
import pytest
from facts import from_table

from tokenprice import ask, posterior
from tokenprice.terminal import main

ASKED = {"prompt_tokens": 1000, "output_tokens": 300, "concurrency": 64}
LLAMA = "Llama 3.3 70B", "8x H100"


def test_the_posterior_is_that_of_many_draws():
    """Levels and slopes are drawn, and weighed by how likely they make two rows; no matrix is inverted."""
    widths, x, logs = (0.2, 0.1, 0.15, 0.1), np.array([[1, -1, 0.5], [1, 0.5, -1]]), np.array([0.3, 0.1])
    drawn = np.random.default_rng(1).normal(size=(400_000, 3)) * widths[:3]
    weight = np.exp(-0.5 * np.sum(((logs - drawn @ x.T) / 0.1) ** 2, axis=1))
    level = drawn.sum(axis=1)
    mean = np.average(level, weights=weight)
    spread = math.sqrt(np.average((level - mean) ** 2, weights=weight) + 0.1**2)
    found = posterior.conditioned(widths, x, logs)
    told = [math.log(one([1, 1, 1])) for one in (found.ratio, found.width)]
    assert told == pytest.approx([mean, 1.2816 * spread], abs=0.005)


def test_many_rows_of_one_load_are_their_ratio_and_none_is_the_stated_interval():
    x = posterior.features(64, 1000)
    widths = posterior.before("token", 1.3, x)
    assert posterior.conditioned(widths, [x] * 1000, [0.2] * 1000).ratio(x) == pytest.approx(
        math.exp(0.2), rel=1e-3
    )
    none = posterior.conditioned(widths, [], [])
    assert (none.ratio(x), none.width(x)) == pytest.approx((1, 1.3))


def test_far_from_its_rows_a_machine_is_less_known():
    """The row has 256 users and takes 1.2 times as long as predicted; the question has two users."""
    plain = {n: ask(*LLAMA, **{**ASKED, "concurrency": n}) for n in (256, 2)}
    row = f"users 256: {1.2e3 * plain[256].seconds} ms"
    near, far = (ask(*LLAMA, **{**ASKED, "concurrency": n}, measured=row) for n in plain)
    assert near.factor < far.factor < plain[2].factor
    assert 1 < far.seconds / plain[2].seconds < near.seconds / plain[256].seconds < 1.2


def test_an_answer_says_what_rows_made_of_it(capsys):
    told = "By 1 measured row your machine is 1.10 times slower than the model says; 80 % within 1.19 (was 1.24)."
    line = "--prompt-tokens 1000 --output-tokens 300 --concurrency 64 --measured".split()
    assert main(["ask", *LLAMA, *line, "users 32: 21.3 ms"]) == 0 and told in capsys.readouterr().out


def test_the_first_token_follows_from_three_rows_on():
    rows = ["users 32: 18 ms, TTFT 150 ms", "users 64: 25 ms, TTFT 180 ms", "users 128: 38 ms, TTFT 250 ms"]
    found = (ask(*LLAMA, **ASKED, measured=rows[:n] or None).request.ttft for n in (0, 2, 3))
    plain, two, three = found
    assert plain == two < three


@from_table
def test_rows_stand_in_a_table_a_printout_or_words(text, rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(
        "concurrency,prompt_tokens,tpot_ms,ttft_ms\n32,1000,21.3,\n1,8192,16,\n"
    )
    found = posterior.read(text)
    assert [one for row in found for one in row] == [pytest.approx(one) for row in rows for one in row]
