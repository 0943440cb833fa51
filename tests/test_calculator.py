"""The calculator: what its page computes from typed dimensions is what the library computes from real models."""

import pytest

import inferlib
from inferlib import calculator
from inferlib.papers import erdil2025, steinhardt2022
from inferlib.principles import decode_step as floor

SHOWN = calculator.explorer()


@pytest.mark.parametrize("name", list(calculator.catalogue()))
def test_a_preset_is_the_model_of_the_catalogue(name):
    """Typed dimensions against the published configuration, small vectors left out."""
    model, chip = inferlib.load_model(name), inferlib.load_chip("H200")
    answers = SHOWN.evaluate(**calculator.catalogue()[name], chip="H200", n_chips=8, batch=16, context=2048)
    system = inferlib.System(chip.replace(memory_capacity=None), 8)
    work = inferlib.Workload(batch=16, context=2048)
    decoders = {"first principles": floor, "Steinhardt 2022": steinhardt2022.decode_step}
    decoders["Erdil 2025, toy"] = erdil2025.decode_step
    for source, decode in decoders.items():
        step = decode(model, system, work)
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
    for source in calculator.SOURCES:
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
    half = SHOWN.evaluate(precision="8 bits, arithmetic too", batch=4096)
    full = SHOWN.evaluate(batch=4096)
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
def test_impossible_dimensions_are_refused_in_python_and_are_a_shortage_in_the_page(shape, message):
    with pytest.raises(ValueError, match=message):
        SHOWN.evaluate(**shape)


def test_models_that_no_kind_describes_are_left_out():
    assert "GPT-OSS 120B" not in calculator.catalogue(), "it has windows"
    assert calculator.catalogue()["DeepSeek V3"]["n_dense"] == 3
