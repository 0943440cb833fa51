"""The calculator: what all sources compute from typed dimensions is what they compute from real models."""

import pytest
from javascript import assert_equal, assert_equal_at_random, run

import inferlib
from book import calculator
from inferlib import serving
from inferlib.papers import erdil2025, liminal2025, mazurek2025, pope2022, steinhardt2022
from inferlib.principles import decode_step as floor

SHOWN = calculator.explorer()


@pytest.mark.parametrize("name", list(calculator.catalogue()))
def test_a_preset_is_the_model_of_the_catalogue(name):
    """Typed dimensions against the published configuration, small vectors left out; on B300s all fit."""
    model, chip = inferlib.load_model(name), inferlib.load_chip("B300")
    answers = SHOWN.evaluate(**calculator.catalogue()[name], chip="B300", n_chips=8, batch=16, context=2048)
    system = inferlib.System(chip.replace(memory_capacity=None), 8)
    work = inferlib.Workload(batch=16, context=2048)
    decoders = {"first principles": floor, "Steinhardt 2022": steinhardt2022.decode_step}
    decoders |= {"Erdil 2025, toy": erdil2025.toy_decode_step, "sixth model": serving.decode_step}
    # these ask about memory themselves, and of room for a copy on every chip
    whole = inferlib.System(chip, 8)
    rooms = {"Pope et al. 2022": pope2022, "LIMINAL 2025": liminal2025}
    rooms |= {"Mazurek & Schreiber 2025": mazurek2025}
    asked = [(source, decode(model, system, work)) for source, decode in decoders.items()]
    asked += [(source, room.decode_step(model, whole, work)) for source, room in rooms.items()]
    for source, step in asked:
        total = 1e3 * step.total if step.feasible else None
        assert answers[f"{source}: total"] == (total if total is None else pytest.approx(total, rel=1e-3))


@pytest.mark.parametrize("name", ["Llama 3 70B", "DeepSeek V3", "Mixtral 8x7B"])
def test_memory_is_counted_of_the_model_itself(name):
    model, chip = inferlib.load_model(name), inferlib.load_chip("H100 SXM")
    shape = calculator.catalogue()[name]
    short = SHOWN.shortages(**shape, n_chips=1, batch=8, context=1000, precision="8 bits, arithmetic too")
    needed = sum(model.weight_bytes("fp8").values()) + 8 * model.cache_bytes(1000, "fp8")
    if needed < chip.memory_capacity:
        assert not short
    else:
        (pair,) = short.values()
        assert pair == pytest.approx((needed / 1e9, chip.memory_capacity / 1e9), rel=1e-3)


def test_the_running_question():
    """The state at the start, which every chapter answers: 8 H100s read 141 GB of weights in 5.3 ms."""
    answers = SHOWN.evaluate()
    assert answers["Steinhardt 2022: total"] == pytest.approx(141.1e9 / (8 * 3.35e12) * 1e3, rel=0.01)
    assert answers["first principles: total"] > answers["first principles: weights"] > 5.1
    silent = [name for name in calculator.SOURCES if answers[f"{name}: total"] is None]
    assert silent == ["Mazurek & Schreiber 2025"]
    for source in set(calculator.SOURCES) - set(silent):
        seconds = 1e-3 * answers[f"{source}: total"]
        assert answers[f"{source}: tokens/s per chip"] == pytest.approx(32 / 8 / seconds)
        price = 8 * inferlib.load_chip("H100 SXM").price / 3600
        assert answers[f"{source}: $ per million tokens"] == pytest.approx(1e6 * price * seconds / 32)


def test_more_chips_than_a_domain_holds_use_the_network():
    inside, across = (SHOWN.evaluate(n_chips=n) for n in (8, 16))
    assert "Steinhardt 2022: network" not in inside and across["Steinhardt 2022: network"] > 0
    assert across["Steinhardt 2022: chosen"] == "several domains"
    pod = SHOWN.evaluate(n_chips=64, chip="GB200 NVL72")
    assert "Steinhardt 2022: network" not in pod


def test_eight_bit_arithmetic_is_offered_where_the_chip_has_it():
    half = SHOWN.evaluate(precision="8 bits, arithmetic too", batch=4096, context=64)
    full = SHOWN.evaluate(batch=4096, context=64)
    name = "Steinhardt 2022: arithmetic"
    assert half[name] == pytest.approx(full[name] / 2, rel=1e-3)
    with pytest.raises(ValueError, match="precision is '8 bits, arithmetic too', but here must be"):
        SHOWN.evaluate(precision="8 bits, arithmetic too", chip="A100 80GB")


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"n_kv_heads": 128}, "n_kv_heads"),
        ({"kind": "experts", "n_experts": 4, "n_active": 8}, "n_active"),
    ],
)
def test_impossible_dimensions_are_refused(shape, message):
    with pytest.raises(ValueError, match=message):
        SHOWN.evaluate(**shape)


def test_models_that_no_kind_describes_are_left_out():
    assert "GPT-OSS 120B" not in calculator.catalogue(), "it has windows"
    assert calculator.catalogue()["DeepSeek V3"]["n_dense"] == 3


@pytest.mark.parametrize(
    ("name", "chip", "n_chips", "batch", "context"),
    [("Llama 3 70B", "H100 SXM", 8, 32, 4096), ("Llama 3 70B", "H100 SXM", 64, 256, 4096),
     ("Llama 3 8B", "H200", 1, 64, 2048), ("Mixtral 8x7B", "H100 SXM", 16, 128, 1024)],
)  # fmt: skip
def test_few_layouts_come_close_to_the_search_over_all(name, chip, n_chips, batch, context):
    """The page's few layouts are some of those that Erdil's own search tries, so they are never faster."""
    system = inferlib.System(inferlib.load_chip(chip), n_chips)
    best = erdil2025.decode_step(inferlib.load_model(name), system, inferlib.Workload(batch, context)).total
    at = calculator.catalogue()[name] | {"chip": chip, "n_chips": n_chips, "batch": batch, "context": context}
    shown = 1e-3 * SHOWN.evaluate(**at)["Erdil 2025: total"]
    assert best * (1 - 1e-3) < shown < 1.15 * best


def test_a_source_says_nothing_where_its_room_says_nothing():
    v3 = calculator.catalogue()["DeepSeek V3"]
    rack = v3 | {"chip": "GB200 NVL72", "n_chips": 72, "batch": 7200, "precision": "8 bits, arithmetic too"}
    answers = SHOWN.evaluate(**rack)
    assert answers["Pope et al. 2022: total"] is answers["Steinhardt 2022: total"] is None
    asked = (
        inferlib.System(inferlib.load_chip("GB200 NVL72"), 72),
        inferlib.Workload(7200, 4096, "fp8", "fp8"),
    )
    step = mazurek2025.decode_step(inferlib.load_model("DeepSeek V3"), *asked)
    assert answers["Mazurek & Schreiber 2025: total"] == pytest.approx(1e3 * step.total, rel=1e-3)
    assert SHOWN.evaluate(**rack | {"n_chips": 80})["Mazurek & Schreiber 2025: total"] is None, "80 = 72 + 8"
    # one network of chips, a switch of 128 ports, NCCL on GPUs
    assert SHOWN.evaluate(n_chips=16)["Pope et al. 2022: total"] is None
    assert SHOWN.evaluate(n_chips=128)["LIMINAL 2025: total"] > 0
    assert SHOWN.evaluate(n_chips=129)["LIMINAL 2025: total"] is None
    tpus = [name for name in calculator.offered_chips() if name.startswith("TPU")]
    assert tpus and all(SHOWN.evaluate(chip=name)["Erdil 2025: total"] is None for name in tpus)


def test_the_sixth_model_is_slower_than_the_bound():
    assert SHOWN.evaluate(n_chips=1)["sixth model: total"] is None, "141 GB of weights do not fit on one"
    for n_chips in (4, 8, 64):
        answers = SHOWN.evaluate(n_chips=n_chips)
        assert answers["sixth model: total"] > 1.3 * answers["first principles: total"]


def test_the_balance_of_experts_is_that_of_the_figure_on_numbers_and_symbols():
    import sympy

    n = sympy.Symbol("n", positive=True)
    read = mazurek2025.records.balancedness
    for gpus in (1, 4, 8, 11, 16, 30, 32, 70, 72, 100):
        assert float(read(n).subs(n, gpus)) == pytest.approx(read(gpus), rel=1e-12)
    assert read(32) == 0.8 and read(24) == pytest.approx((0.902 + 0.8) / 2)


def test_its_javascript_computes_what_python_computes():
    assert_equal_at_random(SHOWN, draws=10, seed=3)


SYSTEMS = (
    {"chip": "H100 SXM", "n_chips": 64, "batch": 256, "precision": "8 bits, arithmetic too"},
    {"chip": "GB200 NVL72", "n_chips": 72, "batch": 7200, "precision": "8 bits, arithmetic too"},
)


@pytest.mark.parametrize("at", SYSTEMS, ids=lambda at: at["chip"])
@pytest.mark.parametrize("name", ["Llama 3 70B", "Qwen3 4B", "Mixtral 8x7B", "DeepSeek V3", "Kimi K2"])
def test_its_javascript_answers_for_known_models_as_python_does(name, at):
    """Random dimensions seldom fit and seldom are of the shape a source describes; these are."""
    values = calculator.catalogue()[name] | at
    assert_equal(run(SHOWN, values), SHOWN.raw(**values))
