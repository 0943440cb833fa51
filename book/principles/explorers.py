"""First principles: what a reader can move in the page."""

from inferlib import load_chip, load_model
from inferlib.explorer import Bars, Choice, Explorer, Limit, Search, Slider, curves
from inferlib.principles import roofline
from inferlib.principles.profile import profile_of
from inferlib.system import Breakdown, System, Workload

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
        "How near a step comes to the balance of the chip",
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
    """Weights, cache and arithmetic of one decode step by both bounds, and whether it fits."""

    def overlapped(batch, context, n_chips, model, chip):
        return roofline.decode_step(model, _endless(chip, n_chips), Workload(batch, context))

    def in_turn(batch, context, n_chips, model, chip):
        return Breakdown(roofline.in_turn_stages(chip, model, n_chips, batch, context))

    def needed(batch, context, n_chips, model, chip):
        return roofline.memory_needed(model, Workload(batch, context))

    def held(n_chips, chip, **others):
        return n_chips * chip.memory_capacity

    def spare(all_chips, **at):
        return held(**at) - needed(**at)

    def only(function):
        return Search(lambda all_chips, **at: function(**at), "all_chips", {"all chips": None}, spare)

    bars = Bars({"all overlaps": only(overlapped), "operators in turn": only(in_turn)})
    inputs = [BATCH, CONTEXT, COUNT, _model(), _chip()]
    return Explorer(
        "The least time of one decode step", inputs, [bars], limits={"Memory": Limit(needed, held, "GB")}
    )


def _endless(chip, n_chips):
    """The chips with memory unasked: whether a step fits is the explorer's own limit."""
    return System(chip.replace(memory_capacity=None), n_chips, domain=n_chips)
