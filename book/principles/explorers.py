"""First principles: what a reader can move in the page."""

from inferlib import load_chip, load_model
from inferlib.explorer import Choice, Slider, breakdown, curves
from inferlib.principles import roofline
from inferlib.principles.profile import profile_of
from inferlib.system import System, Workload

_MODELS = ("Llama 3 70B", "Llama 3 8B", "Qwen3 32B", "GPT-OSS 120B", "DeepSeek V3", "GPT-3 175B")
_CHIPS = ("H100 SXM", "A100 80GB", "H200", "B200", "MI300X", "TPU v5p")
BATCH = Slider("batch", "Batch", 1, 4096, 32, log=True)
CONTEXT = Slider("context", "Context", 1, 131072, 4096, "tokens", log=True)
COUNT = Slider("n_chips", "Chips", 1, 64, 8, whole=True)


def _model():
    return Choice("model", "Model", {name: profile_of(load_model(name)) for name in _MODELS})


def _chip():
    return Choice("chip", "Chip", {name: load_chip(name) for name in _CHIPS})


def on_the_roofline():
    """Intensity of decode over the batch, against the balance of the chip."""
    return curves(
        "Where a decode step stands on the roofline",
        [BATCH, CONTEXT, _model(), _chip()],
        {
            "decode": lambda batch, context, model, chip: roofline.decode_intensity(model, batch, context),
            "balance of the chip": lambda batch, context, model, chip: roofline.ridge_point(chip),
        },
        x="batch",
        y_label="FLOP for every byte read",
        unit="1",
        log_y=True,
    )


def one_step():
    """Weights, cache and arithmetic of one decode step: the least time that peaks allow."""

    def step(batch, context, n_chips, model, chip):
        # Memory is not asked: the page shows times, the chapter's table says what fits.
        endless = chip.replace(memory_capacity=None)
        return roofline.decode_step(model, System(endless, n_chips, domain=n_chips), Workload(batch, context))

    return breakdown("The least time of one decode step", [BATCH, CONTEXT, COUNT, _model(), _chip()], step)
