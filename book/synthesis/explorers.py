"""The napkin formula: what a reader can move in the page."""

from inferlib import load_chip, load_model
from inferlib.explorer import Choice, Slider, breakdown
from inferlib.principles import roofline
from inferlib.principles.profile import profile_of
from inferlib.serving import napkin
from inferlib.system import Breakdown

_LAYERS = ("Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B", "Qwen3 32B")


def more_chips():
    """One step of the napkin formula by named terms, its constants under the reader's hand."""
    fitted = napkin.fitted()

    def step(batch, context, n_chips, n_layers, share, hop, model, chip):
        constants = napkin.Constants(share, fitted.layer, hop * 1e-6)
        weights = roofline.memory_time(chip, roofline.weight_data(model, batch), n_chips)
        cache = roofline.memory_time(chip, roofline.cache_data(model, batch, context), n_chips)
        work = roofline.arithmetic_time(chip, roofline.decode_work(model, batch, context), n_chips)
        reading = {
            "weights": napkin.attained_time(constants, weights),
            "cache": napkin.attained_time(constants, cache),
        }
        stages = (
            {"memory": reading, "arithmetic": napkin.attained_time(constants, work)},
            {"kernel launch": napkin.launch_time(constants, n_layers)},
            {"collective latency": napkin.waiting_time(constants, n_layers, n_chips)},
        )
        return Breakdown(stages, source="sixth")

    return breakdown(
        "One decode step on a napkin",
        [
            Slider("batch", "Batch", 1, 512, 32, log=True),
            Slider("context", "Context", 1, 131072, 4096, "tokens", log=True),
            Slider("n_chips", "Chips in parallel", 1, 32, 8, whole=True),
            Slider("n_layers", "Layers", 8, 160, 80, whole=True),
            Slider("share", "Share of the peaks", 0.3, 1.0, round(fitted.share, 2)),
            Slider("hop", "Time of one further chip", 0.1, 10, round(1e6 * fitted.hop, 1), "us"),
            Choice("model", "Model", {name: profile_of(load_model(name)) for name in _LAYERS}),
            Choice(
                "chip", "Chip", {name: load_chip(name) for name in ("H100 SXM", "A100 80GB", "H200", "B200")}
            ),
        ],
        step,
    )
