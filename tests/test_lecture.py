"""The claims of the lecture: by hand, from published counts and data sheets, and in its own printed numbers."""

import pandas as pd
import pytest

from book import lecture
from inferlib import load_chip, load_model


def test_what_the_lecture_itself_computes():
    """A hundred billion active weights, 200,000 tokens, 1/300: Patel reads 1667 off his calculator."""
    assert round(lecture.implied_bytes()) == 1667


def test_balances_by_hand():
    assert lecture.balance(load_chip("H100 SXM"), "bf16") == pytest.approx(989.5e12 / 3.35e12, rel=1e-3)
    assert lecture.balance(load_chip("B200"), "fp4") == pytest.approx(9e15 / 2 * 0.5 / 8e12)
    assert lecture.balance(load_chip("A100 80GB"), "fp8") is None


def test_sparsity_by_published_counts():
    """671 billion weights, 37 of them active; 8 of 256 experts; 32 active of 1,000 billion in Kimi K2."""
    table = lecture.sparsities().set_index("model")
    assert table.loc["DeepSeek V3", "by weights"] == pytest.approx(671 / 37, rel=0.02)
    assert table.loc["Kimi K2", "by weights"] == pytest.approx(1000 / 32, rel=0.05)
    assert table.loc["DeepSeek V3", "experts"] == "8 of 256"


def test_a_crossing_by_hand():
    """Llama 3 70B in 8 bits: a cache of 80 layers, 8 heads, 128 wide, twice; 64 query heads with four FLOP a value."""
    row = lecture.crossings().set_index("model").loc["Llama 3 70B"]
    weights = load_model("Llama 3 70B").n_params - 128256 * 8192
    assert row.bytes == 80 * 8 * 128 * 2
    assert row.crosses == pytest.approx(2 * weights / 1979e12 * 3.35e12 / row.bytes, rel=1e-3)
    assert row.attention == pytest.approx(2 * weights / (80 * 64 * 128 * 4), rel=1e-3)


def test_no_model_of_the_catalogue_comes_near_either_claim():
    table = lecture.crossings()
    assert len(table) > 20
    assert table.crosses.max() < lecture.BEND / 5 and table.attention.max() < 1e6
    assert (table.crosses < table.attention).all()  # long contexts are limited by reading first


def test_a_frontier_starts_at_the_cheapest_and_only_rises():
    rows = pd.DataFrame({"speed": [10.0, 20.0, 30.0, 25.0, 5.0], "rate": [100.0, 50.0, 20.0, 10.0, 90.0]})
    points = lecture.frontier(rows)
    assert points == [
        (1.0, 1.0),
        (2.0, 2.0),
        (3.0, 5.0),
    ]  # one is slower and dearer, one slower than the cheapest
    assert lecture.times_the_price(points) == 5.0 and lecture.times_the_price(points, 4) is None
