"""Facts that are typed once in the repository, against a second public source of the same fact.

A stored output would follow a typing error at the next refresh; the values here would not.
"""

import math
import re

import pandas as pd
import pytest
from facts import lines
from prose import notebook

import inferlib
from book import audit
from book.audit.published_rows import published
from book.papers import cases
from book.principles import introduction
from book.serving import price_lists
from book.synthesis import comparison
from inferlib import load_chip, load_model
from inferlib.papers import erdil2025, pope2022, steinhardt2022
from tokenprice import ask

# --- Chips ------------------------------------------------------------------------------------------------

# Bits of the memory's bus and Gbit/s of a pin (twice the clock of the memory), as descriptions of these chips list
# them beside the bandwidth, and the digits that the bandwidth has in print.


def test_bandwidth_is_the_width_of_the_bus_times_the_rate_of_a_pin():
    rates = {name: inferlib.load_chip(name).memory_bandwidth for name in inferlib.catalog.chips()}
    for name, bits, rate, digits in lines("buses"):
        product = int(bits) * float(rate) * 1e9 / 8
        assert rates[name] == pytest.approx(float(f"{product:.{digits}g}")), name
    # 43 % more than the H100: geektopia.es on the announcement of the H200, 13 November 2023
    assert round(rates["H200"] / rates["H100 SXM"], 2) == 1.43
    # twice that of v5e: cloud.google.com/blog on Trillium; 4.5 times Trillium's: blog.google on Ironwood
    assert round(rates["TPU v6e"] / rates["TPU v5e"], 3) == 2.0
    assert round(rates["TPU7x Ironwood"] / rates["TPU v6e"], 1) == 4.5


# --- The sources ------------------------------------------------------------------------------------------


def printed_at(source, *place):
    return published(source)[place].text


def test_years_of_models_are_those_of_their_reports():
    """Table 1 of LIMINAL dates models; arXiv dates their reports (DeepSeek V3: December, printed as the year after)."""
    reports = {"Llama 3": "2407.21783", "DeepSeek V3": "2412.19437", "Qwen 3": "2505.09388"}
    reports |= {"Kimi K2": "2507.20534", "GPT-OSS": "2508.10925"}
    for model, report in reports.items():
        late = 1 if model == "DeepSeek V3" else 0
        assert int(printed_at("liminal2025", "Table 1", model, "year")) == 2000 + int(report[:2]) + late
    assert (
        printed_at("liminal2025", "Table 1", "Llama 4", "year") == "2025"
    )  # released on 5 April 2025, ai.meta.com/blog


# Numbers of the sources, typed a second time from them: a word of the place, and the numbers quoted there.
@pytest.mark.parametrize(("source", "place", "quoted"), lines("quoted"))
def test_numbers_that_errata_quote(source, place, quoted):
    table = audit.errata(source)
    printed = table[table.place.str.contains(place, regex=False)].printed.item()
    assert set(quoted.split()) <= set(re.split(r"[^\d.,]+|[.,](?=\s|$)", printed))


# --- The cheat sheet --------------------------------------------------------------------------------------


def power(function, at, name):
    """The power with which a positive function grows in one of its arguments, there."""
    low, high = (math.log(function(**at | {name: at[name] * f})) for f in (1 / 1.001, 1.001))
    return (high - low) / (2 * math.log(1.001))


def says(name):
    """The sentence of the cheat sheet on an equation."""
    (text,) = [c.source for c in notebook("cheatsheet").cells if c.id == f"cs-{name.replace('_', '-')}"]
    return text


def test_powers_on_the_cheat_sheet_are_those_of_the_equations():
    llama, h100 = erdil2025.load_model("Llama 3 70B"), erdil2025.load_chip("H100")

    def fastest(bandwidth, hop):
        return erdil2025.minimum_latency_large(llama, h100.replace(memory_bandwidth=bandwidth), hop)

    at = {"bandwidth": 3e12, "hop": 1e-6}
    text = says("minimum_latency_large")
    for name, words in (("bandwidth", "bandwidth with the power"), ("hop", "hop latency with the power")):
        over, under = re.search(rf"{words} (\d)/(\d)", text).groups()
        assert abs(power(fastest, at, name)) == pytest.approx(int(over) / int(under), rel=1e-5)

    machine = steinhardt2022.load_chip("A100")
    assert "two thirds of the memory bandwidth times the root" in says("memory_limited_time")
    least = 2 / 3 * machine.memory_bandwidth * math.sqrt(machine.chips)
    assert steinhardt2022.sufficient_bandwidth(machine) == pytest.approx(least)
    assert "cut both ways, communication shrinks with the root of the chips" in says("best_ws2d_time").lower()
    model, chip = pope2022.load_model(pope2022.models()[0]), pope2022.load_chip(pope2022.chips()[0])
    two = [pope2022.best_ws2d_time(model, chip, chips, 1024) for chips in (64, 256)]
    assert two[0] / two[1] == pytest.approx(2)


# --- A lecture's claims about price lists -----------------------------------------------------------------


def test_what_the_lecture_itself_computes():
    """A hundred billion active weights, 200,000 tokens, 1/300: Patel reads 1667 off his calculator."""
    assert round(price_lists.implied_bytes(1e11, 300, 200_000)) == 1667


def test_where_the_cache_of_llama_is_read_as_long_as_its_weights_are_multiplied():
    """In 8 bits: a cache of 80 layers, 8 heads, 128 wide, twice; two FLOP a weight but those of the embedding."""
    row = price_lists.where_cache_meets_work(load_chip("H100 SXM")).loc["Llama 3 70B"]
    weights, kept = load_model("Llama 3 70B").n_params - 128256 * 8192, 80 * 8 * 128 * 2
    assert (row["bytes a token"], row.context) == (
        kept,
        pytest.approx(2 * weights / 1979e12 * 3.35e12 / kept, rel=1e-3),
    )


def test_no_model_of_the_catalogue_that_sees_all_comes_near_two_hundred_thousand_tokens():
    table = price_lists.where_cache_meets_work(load_chip("H100 SXM"))
    assert len(table) > 30 and table.context.max() < 200_000 / 5


def test_the_price_of_speed_is_that_of_the_cheapest_row_that_is_fast_enough():
    rows = pd.DataFrame({"speed": [10.0, 20.0, 30.0, 25.0, 5.0], "rate": [100.0, 50.0, 20.0, 10.0, 90.0]})
    assert [price_lists.dearer(rows, speed) for speed in (1, 2, 2.5)] == [1, 2, 5] and math.isnan(
        price_lists.dearer(rows, 4)
    )


# --- Sentences about all of a set ----------------------------------------------------------------------------


def test_output_costs_more_than_input_at_any_batch_that_fits_on_the_box():
    users = range(8, 400, 8)
    answers = [ask(introduction.REQUEST.replace(concurrency=n)) for n in users]
    paid = [one.request.per_million for one in answers if one.feasible]
    assert len(paid) > 40 and all(prices["output"] > 2 * prices["input"] for prices in paid)


def test_clean_rows_are_of_short_contexts_and_of_gpus():
    rows = comparison.rows()
    clean = rows[rows.use == "clean"]
    assert clean.context.max() < 5000
    assert [name for name in set(clean.hardware) if name.startswith(erdil2025.records.NO_GPUS)] == []


def test_no_model_is_wider_than_the_block_of_a_box_but_that_of_the_h20():
    """Steinhardt's law cuts a matrix across boxes where it is wider; chips of eight that state a network."""
    chips = [load_chip(name) for name in inferlib.catalog.chips()]
    boxes = [chip for chip in chips if chip.scale_up_size == 8 and chip.scale_out_bandwidth]
    widest = max(load_model(name).d_model for name in inferlib.catalog.models())
    blocks = {chip.name: steinhardt2022.machine_block(steinhardt2022.load_chip(chip)) for chip in boxes}
    assert [name for name, block in blocks.items() if block < widest] == ["H20"]


def test_gains_past_the_loss_are_close_for_all_three_and_equal_for_none():
    """The case file's other rule, at the context that the paper states; its gains have one digit behind the point."""
    table = cases.quoted_gains()
    off = (table["past the loss at 128K"] / table.quoted - 1).abs()
    assert off.max() < 0.15 and (off * table.quoted > 0.05).all()


def test_all_answers_come_nearer_where_no_chip_waits():
    far, near = (comparison.case_of(name) for name in ("aic-32", "gf-18"))
    missed = [
        (comparison.all_predictors(case, row).loc["total"] / (1e3 * row.tpot) - 1).abs()
        for case, row in ((case, comparison.row_of(case)) for case in (far, near))
    ]
    assert (missed[1] < missed[0]).all()
