"""Public measurements: the content of the file, no time below physical bounds, and rows that are refused."""

import csv
import io

import pytest
from facts import from_table, lines, options_of

import inferlib
import tokenprice
from book import measured as measurements
from book.measured import names, schema
from tokenprice import catalog

ALL = measurements.load()


FILE = measurements.files("book.measured") / "measurements.csv"


def raw():
    """The file as a list of dicts of text."""
    return list(csv.DictReader(io.StringIO(FILE.read_text("utf-8"))))


# --- What the file holds ---------------------------------------------------------------------------------


def test_rows_have_an_address_and_columns_a_meaning():
    assert not ALL.core[ALL.tier == "C"].any()
    assert ALL.url.str.match(r"https://[\w.-]+/\S+").all() and (ALL.derivation != "").all()
    assert (ALL.reported_value != "").all() and (ALL.reported_unit != "").all()
    assert all(column["meaning"] for column in schema().values())
    assert {c.get("into", name) for name, c in schema().items()} - {"id"} <= set(ALL.columns)


def test_times_follow_from_the_printed_numbers():
    """Where the derivation is one division, it is repeated here."""
    value = ALL.reported_value.where(~ALL.reported_value.str.contains("and")).astype(float)
    machines = ALL.n_gpus.where(ALL.reported_unit.str.contains("per GPU"), 1)
    rules = {
        "1000/v": 1 / value,
        "as published": value / 1000,
        "batch*1000/v": ALL.sequences / value / machines,
        "batch*1000/v, prefill inside": ALL.batch / value,
        "batch*8*1000/v": ALL.sequences / (value * ALL.n_gpus / 8),
        "batch*1000/(v*GPUs)": ALL.batch / (value * ALL.n_gpus),
    }
    checked = 0
    for derivation, expected in rules.items():
        rows = ALL[(ALL.derivation == derivation) & ALL.tpot.notna()]
        assert rows.tpot.to_numpy() == pytest.approx(expected[rows.index].to_numpy(), rel=1e-3), derivation
        checked += len(rows)
    assert checked > 140


def test_duplicates_are_marked():
    """Same setup and a time within 1 %: the same measurement, unless engine or setup differ."""
    setup = ["model", "hardware", "n_gpus", "tp", "sequences", "prompt_tokens", "output_tokens"]
    setup += ["weight_format", "kv_format", "overlap", "speculation", "engine"]
    first = ALL[(ALL.duplicate_of == "") & ALL.tpot.notna()]
    unmarked = [
        (one, other)
        for _, rows in first.groupby(setup, dropna=False)
        for one in rows.index
        for other in rows.index
        if one < other and abs(rows.tpot[one] / rows.tpot[other] - 1) < 0.01
    ]
    assert not unmarked
    marked = ALL[ALL.duplicate_of != ""]
    same = ALL.loc[marked.duplicate_of]
    assert marked.tpot.to_numpy() == pytest.approx(same.tpot.to_numpy(), rel=0.01)
    assert (marked.model.to_numpy() == same.model.to_numpy()).all()
    assert (marked.hardware.to_numpy() == same.hardware.to_numpy()).all()


def test_names_and_formats_are_those_of_the_catalogue():
    """No row computes in a format that its chip lacks, except weights that are unpacked to 16 bits."""
    assert set(ALL.hardware) <= set(catalog.chips())
    assert set(ALL.model[~ALL.model_in_catalogue]) == {"GPT-20B"}
    for kind, known in (("hardware", catalog.chips()), ("model", catalog.models())):
        assert {name for name in names()[kind].values() if name} <= set(known)
        assert set(names()[kind]) == set(ALL[f"{kind}_printed"]), "every alias is used, every name listed"
    for row in ALL[ALL.weight_format.isin(["fp8", "fp4"])].itertuples():
        assert row.weight_format in inferlib.load_chip(row.hardware).peaks, row.Index


# --- Physics ---------------------------------------------------------------------------------------------

BYTES = {"mixed": 0.5, "int4": 5 / 8}  # NVFP4 at least; 4 bits and two 16-bit numbers for each 32 weights
PLAIN = (ALL.weight_format != "") & (ALL.speculation != "yes")
TIMED = ALL[ALL.tpot.notna() & ALL.model_in_catalogue & PLAIN]


def floor(row):
    """Seconds to read weights and cache from the memory of all chips that work on a token."""
    model, chip = tokenprice.load_model(row.model), inferlib.load_chip(row.hardware)
    weights = BYTES.get(row.weight_format, row.weight_format)
    cached = row.kv_format or "fp8"  # at least one byte a value where the source does not say
    read = model.bytes_read(row.sequences, row.context, weights=weights, cache=cached)
    return sum(read.values()) / (row.n_gpus * chip.memory_bandwidth)


@pytest.mark.parametrize("row", list(TIMED.itertuples()), ids=list(TIMED.index))
def test_no_time_is_below_the_bounds_of_memory_and_arithmetic(row):
    """A step reads the weights once, and the cache of every sequence: no measurement beats its memory.

    With several data-parallel groups the bound is weaker than need be: replicated weights count once. Arithmetic
    runs at the peak of the weights' format, or at 16 bits where the chip unpacks them.
    """
    least = floor(row)
    # Nor is any row absurdly slow: the slowest reach a fiftieth of the memory's rate.
    assert least <= row.tpot < 50 * least
    chip, model = inferlib.load_chip(row.hardware), tokenprice.load_model(row.model)
    peak = max(chip.peaks.get(row.weight_format, 0), chip.flops)
    assert row.tpot >= sum(model.flops(row.context).values()) * row.sequences / (row.n_gpus * peak)


# --- What is refused -------------------------------------------------------------------------------------


def load_with(tmp_path, change=None, rows=None):
    """Load the file with its rows changed."""
    rows = raw()[:3] if rows is None else rows
    for row in rows[:1]:
        row.update(change or {})
    path = tmp_path / "changed.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return measurements.load(path)


@pytest.mark.parametrize(("change", "message"), lines("refused_rows"))
def test_a_bad_number_text_or_name_is_refused(tmp_path, change, message):
    change = options_of(change)
    names = {"tier", "core", "hardware", "model", "weight_format", "duplicate_of", "read"}
    with pytest.raises(LookupError if set(change) <= names else ValueError, match=message):
        load_with(tmp_path, change)


def test_names_that_the_catalogue_knows(tmp_path):
    """A user's own file: other spellings, and served models by their name on Hugging Face."""
    for model, name in [("Qwen3-32B", "Qwen3 32B"), ("Qwen/Qwen3.5-397B-A17B", "Qwen/Qwen3.5-397B-A17B")]:
        row = load_with(tmp_path, {"model": model, "hardware": "H100"}).loc["gf-01"]
        assert (row.model, row.model_printed, row.hardware) == (name, model, "H100 SXM")
        assert row.model_in_catalogue and tokenprice.load_model(row.model).name == name


def test_missing_and_unknown_columns_are_refused(tmp_path):
    for change in (lambda row: row.pop("url"), lambda row: row.update(colour="red")):
        rows = raw()[:2]
        for row in rows:
            change(row)
        with pytest.raises(ValueError, match=r"columns are not those of the schema: \['(url|colour)'\]"):
            load_with(tmp_path, rows=rows)
    reordered = [dict(reversed(row.items())) for row in raw()[:2]]
    with pytest.raises(ValueError, match="columns are not those of the schema: their order"):
        load_with(tmp_path, rows=reordered)


def test_a_number_may_be_written_with_its_power_of_ten(tmp_path):
    assert load_with(tmp_path, {"avg_context": "1.05e2"}).context["gf-01"] == 105


@from_table
def test_what_is_no_table_is_refused(text, tmp_path):
    path = tmp_path / "hostile.csv"
    path.write_text(text)
    with pytest.raises(ValueError):
        measurements.load(path)
