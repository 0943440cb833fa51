"""The catalogue of chips: every number against the text of its source, and against the other numbers."""

import copy
import pickle
import re
import tomllib
from importlib.resources import files

import pytest

from inferlib import System, catalog, load_chip, load_model, units
from inferlib.equation import quantities
from tokenprice import calibration

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
    """Another format brings its own."""
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
OTHERWISE = {
    "TPU v4": {"int8": 1}, "TPU v5p": {"fp8": 1}, "TPU v6e": {"fp8": 1}, "MI250X GCD": {"int8": 1, "int4": 1},
    "L40S": {"int4": 1}, "RTX 5090": {"int8": 4, "fp4": 4},
    **dict.fromkeys(("Groq LPU", "RTX 3090", "RTX 4090"), {"int8": 4}),
    "Gaudi 3": {"fp8": 1}, "Trainium 2": {"bf16": 1, "fp8": 1.947},
    **dict.fromkeys(("B300", "GB300 NVL72"), {"fp4": 3}),  # arithmetic in four bits widened, the rest kept
}  # fmt: skip


@EVERY_CHIP
def test_half_the_bits_double_the_peak(name):
    peaks = load_chip(name).peaks
    for wide, narrow in (step.split() for step in STEPS.split(", ")):
        if wide in peaks and narrow in peaks:
            expected = OTHERWISE.get(name, {}).get(narrow, 2)
            assert peaks[narrow] / peaks[wide] == pytest.approx(expected, rel=0.015), (wide, narrow)
    assert len({peaks[f] for f in ("bf16", "fp16") if f in peaks}) == (name != "DGX Spark")


# By kind of memory: FLOP per byte at 16 bits, and seconds to read the whole memory once.
BANDS = {
    "HBM": ((30, 600), (0.010, 0.045)),
    "GDDR": ((70, 450), (0.015, 0.085)),
    "LPDDR": ((100, 2000), (0.1, 0.5)),
    "SRAM": ((1, 5), (1e-6, 5e-6)),
}


@EVERY_CHIP
def test_ratios_lie_in_the_band_of_the_class(name):
    chip = load_chip(name)
    (low, high), (fast, slow) = BANDS[TABLE[name]["memory_type"]]
    assert low < chip.flops / chip.memory_bandwidth < high
    assert fast < chip.memory_capacity / chip.memory_bandwidth < slow
    if chip.power is not None and chip.format != "fp4":  # dense 16-bit TFLOP/s per watt, 2017 to 2025
        assert 0.2 < chip.flops / 1e12 / chip.power < 2.5
    if chip.scale_up_bandwidth and chip.scale_out_bandwidth:
        assert chip.scale_out_bandwidth < chip.scale_up_bandwidth < chip.memory_bandwidth


# What vendors print of a whole machine, rack or pod: a second way to the same numbers.
TOTALS = [
    ("A100 40GB", "memory_capacity", 8, "320 GB", 0), ("A100 80GB", "memory_capacity", 8, "640 GB", 0),
    ("A100 80GB", "bf16", 8 * 2, "5 PFLOP/s", 0.01), ("H100 SXM", "memory_capacity", 8, "640 GB", 0),
    ("H100 SXM", "fp8", 8 * 2, "32 PFLOP/s", 0.02), ("H100 SXM", "scale_up_bandwidth", 8 * 2, "7.2 TB/s", 0),
    ("H200", "memory_capacity", 8, "1128 GB", 0), ("B200", "memory_bandwidth", 8, "64 TB/s", 0),
    ("B200", "scale_up_bandwidth", 8 * 2, "14.4 TB/s", 0), ("GB200 NVL72", "memory_capacity", 72, "13.4 TB", 0.005),
    ("GB200 NVL72", "scale_up_bandwidth", 72 * 2, "130 TB/s", 0.005), ("MI300X", "memory_capacity", 8, "1536 GB", 0),
    ("MI250X GCD", "memory_bandwidth", 2, "3.2 TB/s", 0), ("MI250X GCD", "scale_out_bandwidth", 8, "100 GB/s", 0),
    ("TPU v4", "bf16", 4096, "1100 PFLOP/s", 0.03), ("TPU v5e", "int8", 256, "100 PFLOP/s", 0.01),
    ("TPU v5e", "bf16", 256, "50.63 PFLOP/s", 0.005), ("TPU v6e", "bf16", 256, "234.9 PFLOP/s", 0.001),
    ("GB300 NVL72", "scale_up_bandwidth", 72 * 2, "130 TB/s", 0.005), ("GB300 NVL72", "fp4", 72, "1100 PFLOP/s", 0.02),
    ("B300", "memory_capacity", 8, "2.3 TB", 0.005), ("B300", "scale_up_bandwidth", 8 * 2, "14.4 TB/s", 0),
    ("B300", "scale_out_bandwidth", 8 * 2, "1.6 TB/s", 0), ("MI325X", "memory_capacity", 8, "2 TB", 0.03),
    ("MI355X", "memory_capacity", 8, "2.3 TB", 0.005), ("Gaudi 3", "scale_out_bandwidth", 8, "600 GB/s", 0),
    ("TPU7x Ironwood", "fp8", 9216, "42500 PFLOP/s", 0.001),
    ("Trainium 2", "scale_up_bandwidth", 2, "1.28 TB/s", 0),  # NeuronLink-v3
    ("TPU v5e", "scale_out_bandwidth", 8, "25 GB/s", 0),  # two ports of 100 Gbit/s of a host of 8
]  # fmt: skip


@pytest.mark.parametrize(("name", "field", "times", "total", "tolerance"), TOTALS)
def test_totals_of_machines_racks_and_pods(name, field, times, total, tolerance):
    number, unit = total.split()
    chip = load_chip(name)
    assert stored(chip, field) * times == pytest.approx(float(number) * units.factor(unit), rel=tolerance)


def test_scale_up_domains():
    sizes = {name: load_chip(name).scale_up_size for name in CHIPS}
    assert {"TPU v4": 4096, "TPU v5e": 256, "TPU v5p": 8960, "GB200 NVL72": 72}.items() <= sizes.items()
    assert sizes["H100 PCIe"] == 2 and sizes["RTX 4090"] == 1
    assert [System(load_chip(name), 72).domain for name in ("B200", "GB200 NVL72")] == [8, 72]


def test_chips_behind_switches_are_no_ring():
    assert load_chip("GB200 NVL72").topology == load_chip("GB300 NVL72").topology == "switch"
    with pytest.raises(LookupError, match="no topology 'ring'"):
        load_chip("B200").replace(topology="ring")


@pytest.mark.parametrize("names", [("A100 40GB", "A100 80GB"), ("H100 SXM", "H200")])
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


def test_prices_beside_each_other_are_of_near_months():
    months = [12 * int(offer["date"][:4]) + int(offer["date"][5:7]) for offer in PRICES.values()]
    assert max(months) - min(months) <= 6
    assert load_chip("GB200 NVL72").price == 42 / 4  # that of a tray is divided


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


# Names that newcomers type: with a vendor, a form or a memory in them.
CARDS_TYPED = {
    "NVIDIA H100": "H100 SXM", "H100 80GB": "H100 SXM", "A100-80G": "A100 80GB", "H100-SXM5-80GB": "H100 SXM",
    "RTX 6000 Pro": "RTX PRO 6000", "MI300": "MI300X", "NVIDIA A100-SXM4-40GB": "A100 40GB", "A100 SXM4": "A100 80GB",
    "NVIDIA GeForce RTX 4090": "RTX 4090", "Tesla V100": "V100 SXM2", "AMD Instinct MI300X 192GB": "MI300X",
    "H200 141GB": "H200", "NVIDIA B200": "B200", "NVIDIA L40S 48GB": "L40S", "Intel Gaudi 3": "Gaudi 3",
    "A100": "A100 80GB", "GB200": "GB200 NVL72", "4090": "RTX 4090", "Ironwood": "TPU7x Ironwood",
    "H100 SXM5": "H100 SXM", "h100-pcie-80gb": "H100 PCIe", "Google TPU v5e": "TPU v5e", "GB10": "DGX Spark",
    "RTX 3090 24GB": "RTX 3090", "NVIDIA GeForce RTX 3090": "RTX 3090", "Tesla T4": "T4", "NVIDIA A10G": "A10G",
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": "RTX PRO 6000 Workstation",
}  # fmt: skip
MODELS_TYPED = {
    "Kimi K2.5": "nvidia/Kimi-K2.5-NVFP4", "GLM 5.1": "nvidia/GLM-5.1-NVFP4", "GLM-5": "zai-org/GLM-5",
    "GLM 5.2": "zai-org/GLM-5.2", "MiniMax M2.5": "nvidia/MiniMax-M2.5-NVFP4", "Kimi K3": "moonshotai/Kimi-K3",
    "MiniMax M2.7": "nvidia/MiniMax-M2.7-NVFP4", "DeepSeek V4 Flash FP8": "sgl-project/DeepSeek-V4-Flash-FP8",
    "DeepSeek V4 Pro": "deepseek-ai/DeepSeek-V4-Pro", "DeepSeek V3.2": "deepseek-ai/DeepSeek-V3.2",
    "Nemotron 3 Super": "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4", "R1": "deepseek-ai/DeepSeek-R1",
    "Nemotron 3 Nano": "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "Qwen3 14B": "Qwen3 14B",
    "Nemotron Super 49B": "nvidia/Llama-3_3-Nemotron-Super-49B-v1", "Qwen2.5 32B": "Qwen2.5 32B",
    "Qwen3.6 35B": "nvidia/Qwen3.6-35B-A3B-NVFP4", "MiMo V2 Flash": "XiaomiMiMo/MiMo-V2-Flash",
    "gpt-oss-120b": "GPT-OSS 120B", "Llama-3.3-70B-Instruct": "Llama 3.3 70B", "Gemma 3 27B": "Gemma 3 27B",
    "google/gemma-3-27b-it": "Gemma 3 27B", "Mistral Small": "Mistral Small 24B", "phi-4": "Phi-4",
    "Qwen/QwQ-32B": "QwQ 32B", "Llama 3.2 3B": "Llama 3.2 3B", "DeepSeek-R1-Distill-Llama-70B": "R1 Distill Llama 70B",
    "DeepSeek-R1-Distill-Qwen-32B": "R1 Distill Qwen 32B", "Qwen2.5-32B-Instruct-AWQ": "Qwen2.5 32B AWQ",
    "meta-llama/Llama-3.1-8B-Instruct": "Llama 3.1 8B", "Qwen3-235B": "Qwen3 235B-A22B", "mixtral 8x7b": "Mixtral 8x7B",
    "Qwen3 Coder": "Qwen3 Coder 480B-A35B", "Qwen3-Coder-30B-A3B-Instruct": "Qwen3 Coder 30B-A3B",
    "Qwen2.5-Coder-32B-Instruct": "Qwen2.5 Coder 32B", "Qwen3 Next 80B": "Qwen3 Next 80B-A3B",
    "Qwen3.5 27B": "Qwen3.5 27B",
    # the last words say the format: test_every_part_has_its_own_format
    "llama-3-8b-instruct": "Llama 3 8B", "mistral large": "Mistral Large 2", "Kimi K2 Instruct": "Kimi K2",
    "qwen3-30b-a3b-instruct-2507": "Qwen3 30B-A3B 2507", "Kimi-K2.5-NVFP4": "nvidia/Kimi-K2.5-NVFP4",
    "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic": "Llama 3.3 70B FP8-dynamic",
    "unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit": "Llama 3.1 8B bnb-4bit",
}  # fmt: skip


def test_names_that_a_newcomer_types():
    assert {typed: load_chip(typed).name for typed in CARDS_TYPED} == CARDS_TYPED
    assert {typed: load_model(typed).name for typed in MODELS_TYPED} == MODELS_TYPED
    for what, name in (("chip", "H100 96GB"), ("chip", "NVIDIA"), ("model", "70B"), ("model", "gpt-oss")):
        with pytest.raises(LookupError, match=f"no {what} '{name}'"):
            catalog.resolve(what, name)


def test_chips_and_formats_by_the_names_people_type_or_a_few_near_ones():
    for name, near in (("MI250X", "MI250X GCD"), ("Groq", "Groq LPU"), ("B2O0", "B200"), ("TPU", "TPU v4")):
        with pytest.raises(LookupError, match=f"no chip '{name}'; did you mean.*'{near}'") as error:
            load_chip(name)
        assert len(str(error.value)) < 250, "not the whole catalogue"
    for name in ("V100 SXM2", "Groq LPU"):  # without bf16
        chip = load_chip(name)
        assert chip.format == "fp16" and chip.flops == chip.peaks["fp16"] == chip.at("fp16").flops
        with pytest.raises(LookupError, match=f"no format of {name} 'bf16'; did you mean 'fp16'"):
            chip.at("bf16")


def test_what_many_share_cannot_be_changed():
    """A record of the catalogue is made once: whoever changed its dictionaries would change every later answer."""
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
    """Every question of the file failed, for other chips and other formats too."""
    path = tmp_path / "chips.toml"
    path.write_text(OWN + OWN.replace("My chip", "Other").replace("fp8 =", "fp5 ="))
    own = catalog.load_chips(path)
    assert own["My chip"].at("fp8").flops == 2e14 and list(own) == ["My chip"] and "Other" in own
    with pytest.raises(LookupError, match="chip 'Other': no format 'fp5'"):
        own["Other"]


@pytest.mark.parametrize(("text", "error", "message"), [
    (OWN.replace("memory_capacity", "memory"), LookupError, "no field of Accelerator 'memory'"),
    (OWN.replace("64 GB", "64 GB/s"), ValueError, "cannot read|must be"),
    (OWN.replace("fp8", "fp9"), LookupError, "no format 'fp9'"),
    (OWN.replace("switch", "ring"), LookupError, "no topology 'ring'"),
    (OWN.replace("2 usd/h", "2"), ValueError, "chips.toml: chip 'My chip': price: 2 .*as in .*usd/h"),
    (OWN.replace("My chip", "h100-sxm"), ValueError, "is called like 'H100 SXM' of the catalogue"),
    (OWN.replace("My chip", "A100"), ValueError, "is called like 'A100 80GB'"),
    (OWN.replace("My chip", "a\\u001b"), ValueError, "printable"),
    (OWN.replace("My chip", "a" * 5000), ValueError, "printable"),
    (OWN + 'sources = "x"', ValueError, "sources 'x'"), (OWN + "sources = { price = 5 }", ValueError, "sources "),
    (OWN + "sources = { bf16 = '{x.y}' }\npower = [1]", ValueError, "power"),
    (OWN.replace("= 4", '= "2.5"'), ValueError, "scale_up_size is 2.5, but must be a whole number"),
    (OWN.replace("size = 4", "size = 1" + "0" * 310), ValueError, "scale_up_size"),
    (OWN.replace('"switch"', "5"), LookupError, "no topology 5"),
    ("[chip]\nname = 1", ValueError, "chip 'chip' has no peaks"),
    (OWN.replace("bf16", "fp6"), ValueError, "chip 'My chip' has no peak in 16 bits, .* beside fp6, fp8"),
    (OWN.replace("memory_bandwidth", "power"), ValueError, "chip 'My chip' has no memory_bandwidth, such as"),
    ("[chip", ValueError, "is not TOML"), ("a = " + "[" * 10**5, ValueError, "is not TOML"),
])  # fmt: skip
def test_files_of_chips_that_are_refused(text, error, message, tmp_path):
    path = tmp_path / "chips.toml"
    path.write_text(text)
    with pytest.raises(error, match=message) as caught:
        catalog.load_chips(path)
    assert len(str(caught.value)) < 600
    with pytest.raises(LookupError, match="no file"):
        catalog.load_chips(tmp_path / "none.toml")
