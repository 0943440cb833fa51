"""The catalogue of chips: every number against the text of its source, and against the other numbers."""

import builtins
import copy
import pickle
import re
import tomllib
from importlib.resources import files

import pytest
from facts import from_table, lines

from inferlib import System, load_chip, units
from inferlib.equation import quantities
from tokenprice import calibration, catalog, load_model

CHIPS = catalog.chips()
UNSAID = {"V100 SXM2", "MI250X GCD", "Groq LPU"}  # links of several kinds, which no one word names
TABLE = tomllib.loads((files("inferlib.catalog") / "chips.toml").read_text("utf-8"))
PRICES = {name: TABLE[name]["offer"] for name in CHIPS if "offer" in TABLE[name]}
NUMBERS = [(name, field) for name in CHIPS for field in TABLE[name]["sources"]]

EVERY_CHIP = pytest.mark.parametrize("name", CHIPS)
EVERY_NUMBER = pytest.mark.parametrize(("name", "field"), NUMBERS)

WORDS = {"half": 1 / 2, "a quarter": 1 / 4, "an eighth": 1 / 8, "a sixteenth": 1 / 16, "one 72nd": 1 / 72}
WORDS |= {"one 256th": 1 / 256, "six links": 6, "4 ports": 4, "7 links": 7, "8 links": 8}
NUMBER = re.compile(r"([\d,.]+) ([PT]FLOP/s|[TG]B/s|[TG]bit/s|[GM]i?B|W)\b")


def stored(chip, field):
    """The number that an entry of ``sources`` speaks of, in SI units."""
    return chip.peaks[field] if field in chip.peaks else getattr(chip, field)


def derived(text):
    """The number that the text of a source works out to, or None where the page prints it as stored.

    >>> derived("an eighth of half of the sparse 36 PFLOP/s in https://example.org") / 1e12
    2250.0
    """
    words = text.partition("https://")[0]
    if not (found := NUMBER.search(words)):
        return None
    number, unit = float(found[1].replace(",", "")), found[2]
    value = number * (units.factor(unit.replace("bit", "B")) / 8 if "bit" in unit else units.factor(unit))
    for word, factor in WORDS.items():
        value *= factor ** len(re.findall(rf"\b{word} of\b", words[: found.start()]))
    return value


@EVERY_CHIP
def test_every_number_has_a_source_and_every_source_a_number(name):
    """Each format of the peaks has its own source."""
    chip = load_chip(name)
    fields = {f.name for f in quantities(chip) if getattr(chip, f.name) is not None}
    assert set(chip.sources) == fields | set(chip.peaks)
    assert all(re.search(r"https://\S+\.\S+$", text) for text in chip.sources.values())
    assert {"flops", "memory_bandwidth", "memory_capacity", "scale_up_size"} <= fields
    linked = chip.scale_up_size > 1 or chip.topology == "PCIe"
    assert (chip.topology in ("", "none")) != linked or name in UNSAID
    for format, peak in chip.peaks.items():
        other = chip.at(format)
        assert (other.flops, other.format, other.sources["flops"]) == (peak, format, chip.sources[format])
        assert other.memory_bandwidth == chip.memory_bandwidth and other.price == chip.price


@EVERY_NUMBER
def test_number_follows_from_the_one_its_source_prints(name, field):
    """Sparse and two-way figures are halved at least once; bits and machines are divided by the words."""
    chip = load_chip(name)
    value = derived(chip.sources[field])
    if value is not None:
        assert stored(chip, field) == pytest.approx(value, rel=1e-9)
        assert stored(chip, field) != pytest.approx(2 * value), "the doubled figure must not pass"
    text = chip.sources[field].partition("https://")[0]
    if re.search(r"sparse [\d,.]+ [PT]FLOP|two-way [\d,.]+", text):
        assert re.search(r"\b(half|quarter|sixteenth) of\b", text)
    if field == "scale_up_bandwidth" and name != "TPU v4":  # one link each way of Jouppi et al.
        assert "two-way" in text, "every vendor but this one prints both directions together"


# Half the bits, twice the rate, unless the vendor says otherwise.
STEPS = "tf32 bf16, bf16 fp8, bf16 int8, fp16 int8, fp8 fp4, int8 int4"
OTHERWISE = {(chip, narrow): float(times) for chip, narrow, times in lines("steps_of_peaks")}


@EVERY_CHIP
def test_half_the_bits_double_the_peak(name):
    peaks = load_chip(name).peaks
    for wide, narrow in (step.split() for step in STEPS.split(", ")):
        if wide in peaks and narrow in peaks:
            expected = OTHERWISE.get((name, narrow), 2)
            assert peaks[narrow] / peaks[wide] == pytest.approx(expected, rel=0.015), (wide, narrow)
    assert len({peaks[f] for f in ("bf16", "fp16") if f in peaks}) == 1


BANDS = {memory: [float(end) for end in band] for memory, *band in lines("bands")}


@EVERY_CHIP
def test_ratios_lie_in_the_band_of_the_class(name):
    chip = load_chip(name)
    low, high, fast, slow = BANDS[TABLE[name]["memory_type"]]
    assert low < chip.flops / chip.memory_bandwidth < high
    assert fast < chip.memory_capacity / chip.memory_bandwidth < slow
    if chip.power is not None and chip.format != "fp4":  # dense 16-bit TFLOP/s per watt, 2017 to 2025
        assert 0.2 < chip.flops / 1e12 / chip.power < 2.5
    if chip.scale_up_bandwidth and chip.scale_out_bandwidth:
        assert chip.scale_out_bandwidth < chip.scale_up_bandwidth < chip.memory_bandwidth


# Numbers that vendors print for a whole machine, rack or pod: a second way to the same numbers.
@pytest.mark.parametrize(("name", "field", "times", "total", "tolerance"), lines("totals"))
def test_totals_of_machines_racks_and_pods(name, field, times, total, tolerance):
    number, unit = total.split()
    chip = load_chip(name)
    whole = pytest.approx(float(number) * units.factor(unit), rel=float(tolerance))
    assert stored(chip, field) * int(times) == whole


def test_scale_up_domains():
    assert [System(load_chip(name), 72).domain for name in ("B200", "GB200 NVL72")] == [8, 72]


def test_chips_behind_switches_are_no_ring():
    assert load_chip("GB200 NVL72").topology == load_chip("GB300 NVL72").topology == "switch"


@from_table
def test_siblings_differ_in_memory_and_price_only(names):
    one, other = map(load_chip, names)
    found = {f.name for f in quantities(one) if getattr(one, f.name) != getattr(other, f.name)}
    assert found == {"memory_bandwidth", "memory_capacity", "price"} and one.peaks == other.peaks


def test_google_prints_gib_of_v4_and_v5p_and_gb_of_v5e():
    stated = [load_chip(f"TPU {name}").memory_capacity for name in ("v4", "v5p", "v5e")]
    assert stated == [32 * 2**30, 95 * 2**30, 16e9]


@pytest.mark.parametrize("name", PRICES)
def test_prices_are_dated_snapshots_of_one_chip(name):
    chip = load_chip(name)
    assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", PRICES[name]["date"])
    assert PRICES[name]["date"] in chip.sources["price"] and "on demand" in chip.sources["price"]
    # Dollars per hour for 1e15 dense 16-bit FLOP/s: the price of a machine would lie eight times higher.
    assert 1.5 < chip.price / (chip.flops / 1e15) < 12


def test_the_price_of_a_tray_is_divided():
    assert load_chip("GB200 NVL72").price == 42 / 4


@EVERY_CHIP
def test_an_entry_says_which_of_price_power_and_links_it_lacks(name):
    lacking = ("price", "power", "scale_out_bandwidth", "scale_up_bandwidth")
    absent = {field for field in lacking if getattr(load_chip(name), field) is None}
    assert absent == set(TABLE[name].get("not_stated", ()))


@EVERY_CHIP
def test_a_driver_shows_nearly_what_the_data_sheet_states(name):
    """GB of a data sheet are 10^9 or 2^30 bytes, and the driver keeps some for itself."""
    shown, stated = calibration.driver_memory(name), load_chip(name).memory_capacity
    assert shown is None or 0.93 < shown / stated < 1.075


# Names that newcomers type: with a vendor, a form, a memory or a format in them; others are in chips_typed.tsv.
@pytest.mark.parametrize(("kind", "typed", "name"), lines("typed_names"))
def test_names_that_a_newcomer_types(kind, typed, name):
    assert {"chip": load_chip, "model": load_model}[kind](typed).name == name


def test_a_chip_without_bf16_computes_in_fp16():
    for name in ("V100 SXM2", "Groq LPU"):
        chip = load_chip(name)
        assert chip.format == "fp16" and chip.flops == chip.peaks["fp16"] == chip.at("fp16").flops


def test_what_many_share_cannot_be_changed():
    """Records of the catalogue are cached, so a changed dictionary would change every later answer."""
    model, chip = load_model("DeepSeek V3"), load_chip("H100")
    for held in (model.formats, model.notes, model.sources, chip.peaks, chip.sources):
        for change in (lambda d: d.update(a=1), lambda d: d.clear(), lambda d: d.pop(next(iter(d)))):
            with pytest.raises(TypeError, match="belongs to a record"):
                change(held)
        assert pickle.loads(pickle.dumps(held)) == copy.deepcopy(held) == dict(held) and held


OWN = """
["My chip"]
peaks = { bf16 = "100 TFLOP/s", fp8 = "200 TFLOP/s" }
memory_bandwidth = "1 TB/s"
memory_capacity = "64 GB"
scale_up_size = 4
topology = "switch"
price = "2 usd/h"
"""


def test_chips_of_your_own(tmp_path):
    path = tmp_path / "chips.toml"
    path.write_text(OWN)
    chip = catalog.load_chips(path)["My chip"]
    assert (chip.flops, chip.memory_capacity, chip.price, chip.topology) == (1e14, 64e9, 2, "switch")
    assert chip.at("fp8").flops == 2e14 and System(chip, 8).domain == 4
    for spelled in ("2 USD/h", "2 $/h"):
        path.write_text(OWN.replace("2 usd/h", spelled))
        assert catalog.load_chips(path)["My chip"].price == 2


def test_a_chip_in_an_unknown_format_fails_alone(tmp_path):
    """Such a file once made every question fail, with other chips and other formats too."""
    path = tmp_path / "chips.toml"
    path.write_text(OWN + OWN.replace("My chip", "Other").replace("fp8 =", "fp5 ="))
    own = catalog.load_chips(path)
    assert own["My chip"].at("fp8").flops == 2e14 and list(own) == ["My chip"] and "Other" in own
    with pytest.raises(LookupError, match="chip 'Other': no format 'fp5'"):
        own["Other"]


REFUSED = [
    (OWN.replace(old, new), getattr(builtins, error), words)
    for old, new, error, words in lines("refused_chips")
]
REFUSED += [
    (OWN + 'sources = "x"', ValueError, "sources 'x'"),
    (OWN + "sources = { price = 5 }", ValueError, "sources "),
    ("[chip]\nname = 1", ValueError, "chip 'chip' has no peaks"),
    ("[chip", ValueError, "is not TOML"),
    ("a = " + "[" * 10**5, ValueError, "is not TOML"),
]


@pytest.mark.parametrize(("text", "error", "message"), REFUSED)
def test_files_of_chips_that_are_refused(text, error, message, tmp_path):
    path = tmp_path / "chips.toml"
    path.write_text(text)
    with pytest.raises(error, match=message) as caught:
        catalog.load_chips(path)
    assert len(str(caught.value)) < 600
