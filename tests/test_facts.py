"""Facts that are typed once in the repository, against a second place where the world says the same.

A stored output would follow a slip of the finger at the next refresh; what stands here would not.
"""

import math
import re
from pathlib import Path

import pandas as pd
import pytest
from prose import notebook

import inferlib
from book import audit
from book.audit.published_rows import published
from book.papers import cases
from book.principles import introduction
from book.serving import fit, price_lists, tables
from book.synthesis import comparison
from book.synthesis.grid import FIVE
from inferlib import load_chip, load_model, papers
from inferlib.papers import erdil2025, pope2022, steinhardt2022
from tokenprice import ask, predictors

BOOK = Path(__file__).parents[1] / "book"

# --- Chips ------------------------------------------------------------------------------------------------

# Bits of the memory's bus and Gbit/s of a pin (twice the clock of the memory), as descriptions of these chips list
# them beside the bandwidth, and the digits that the bandwidth has in print.
BUSES = {
    "V100 SXM2": (4096, 1.754, 2),  # 877 MHz
    "A100 40GB": (5120, 2.430, 4),  # 1215 MHz
    "A100 80GB": (5120, 3.186, 4),  # 1593 MHz
    "H100 SXM": (5120, 5.238, 3),  # 2619 MHz
    "H100 PCIe": (5120, 3.186, 1), "H800": (5120, 5.238, 4), "L4": (192, 12.5, 3), "L40S": (384, 18, 3),
    "RTX 4090": (384, 21, 4), "RTX 5090": (512, 28, 4), "DGX Spark": (256, 8.533, 3), "MI300X": (8192, 5.2, 2),
    "MI325X": (8192, 6, 1), "MI355X": (8192, 8, 1), "Gaudi 3": (8192, 3.6, 2), "TPU v5e": (2048, 3.2, 3),
}  # fmt: skip


def test_bandwidth_is_the_width_of_the_bus_times_the_rate_of_a_pin():
    rates = {name: inferlib.load_chip(name).memory_bandwidth for name in inferlib.catalog.chips()}
    products = {name: f"{bits * rate * 1e9 / 8:.{n}g}" for name, (bits, rate, n) in BUSES.items()}
    assert {name: rates[name] for name in BUSES} == pytest.approx(
        {name: float(n) for name, n in products.items()}
    )
    # 43 % more than the H100: geektopia.es on the announcement of the H200, 13 November 2023
    assert round(rates["H200"] / rates["H100 SXM"], 2) == 1.43
    # twice that of v5e: cloud.google.com/blog on Trillium; 4.5 times Trillium's: blog.google on Ironwood
    assert round(rates["TPU v6e"] / rates["TPU v5e"], 3) == 2.0
    assert round(rates["TPU7x Ironwood"] / rates["TPU v6e"], 1) == 4.5


# --- The sources ------------------------------------------------------------------------------------------

# arXiv numbers begin with year and month of the first version; the two others are dated by their sites.
FIRST = {"pope2022": "2211", "erdil2025": "2506", "liminal2025": "2507"}
FIRST |= {"steinhardt2022": "2206", "mazurek2025": "2509"}


def test_years_of_the_bibliography_are_those_of_the_first_versions():
    text = (BOOK / "references.bib").read_text("utf-8")
    found = {key: body for key, body in re.findall(r"(?ms)^@\w+\{(\w+),(.*?)^\}", text)}
    assert set(found) >= set(FIRST) == set(FIVE)
    for key, first in FIRST.items():
        year, month = f"20{first[:2]}", first[2:]
        assert re.search(r"\byear\s*=\s*\{(\d+)\}", found[key])[1] == year
        assert papers.metadata(key)["date"] == f"{year}-{month}" and key.endswith(year)
        number = re.search(r"\beprint\s*=\s*\{(\d{4})\.", found[key])
        assert number is None or number[1] == first
        assert year in predictors.label(key)


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


def numbers(text):
    return re.findall(r"\d+(?:[.,]\d+)*", text)


def named_in(place):
    """The numbers of a place, and those between the two of "Tables 4 to 7"."""
    found = set(numbers(place))
    for first, last in re.findall(r"\b(\d+) to (\d+)\b", place):
        found |= {str(i) for i in range(int(first), int(last) + 1)}
    return found


def stands_in(place, artefacts):
    there = {n for artefact in artefacts for n in numbers(artefact)}
    if not there or any(artefact.split()[0] in place for artefact in artefacts):
        return True
    return any(one == n or one.startswith(f"{n}.") for one in named_in(place) for n in there)


@pytest.mark.parametrize("source", papers.sources())
def test_the_place_of_an_erratum_is_where_its_rows_were_printed(source):
    table = audit.errata(source)
    concerned = [
        (place, {row[0] for row in rows}) for place, rows in zip(table.place, table.rows, strict=True) if rows
    ]
    assert [place for place, artefacts in concerned if not stands_in(place, artefacts)] == []


# What the sources print, typed a second time from them: a word of the place, and the numbers quoted there.
QUOTED = {
    "liminal2025": [
        ("4.4 and key finding 4", "1.25 4.5"), ("DeepSeekV3 and Kimi-K2", "694 61 43"),
        ("arithmetic of latent attention", "576"), ("4.6: GPT-OSS-120B", "108 36"),
        ("4.6 and Figure 3", "10 30 7.3 7.2"), ("4.1 and the first challenge", "108 965 482 32"),
        ("4.7: use of the tensor engine", "1"), ("5,300 and 10,000", "5,300 10,000"),
        ("3: the baseline chip", "2.25 0.2"), ("Abstract: accuracy", "7.6"),
    ],
    "mazurek2025": [
        ("3.3.1", "61 9"), ("3.4, 2.7x", "2.7"), ("2.1, expert parameters", "661 98.5 98"), ("Figure 5", "3"),
        ("1, cache sizes", "163 2 7"), ("Sections 3 and 3.5, attention", "8 3.5"),
    ],
    "pope2022": [("Table D.4", "343 19723 338 19136")],
    "steinhardt2022": [
        ("sanity check of the tiling", "1024 64 256 512 2048"), ("Batching: memory time", "350"),
        ("Warm-up, Batching and Tiling", "330 1.6 0.06 0.56 128 25"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("source", "place", "quoted"), [(s, *q) for s, all in QUOTED.items() for q in all])
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


def test_a_fifth_of_the_benchmarks_ask_six_times_the_price():
    assert (price_lists.prices_of_speed(2.5) >= 6).mean() == pytest.approx(0.2, abs=0.025)


# --- Sentences about all of a set ----------------------------------------------------------------------------


def test_output_costs_more_than_input_at_any_batch_that_fits_on_the_box():
    users = range(8, 400, 8)
    answers = [ask(introduction.SERVED.replace(concurrency=n)) for n in users]
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


def test_up_to_a_box_a_token_gets_faster_with_every_doubling_and_then_slower():
    times = introduction.chips_and_users(introduction.RUNNING)["chips"].set_index("n").sum(axis=1)
    assert times[2] > times[4] > times[8] < times[16] < times[32]


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


def test_nearly_a_third_of_the_serving_rows_repeat_a_point_and_one_laboratory_did_so():
    rows = fit.serving_rows()
    clean = rows[rows.use == "clean"]
    repeats = clean.duplicated(tables.POINT)
    assert repeats.mean() == pytest.approx(0.31, abs=0.01)
    assert set(clean.publisher[repeats]) == {"InferenceX"}
