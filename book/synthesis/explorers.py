"""Everybody asked the same, and the napkin formula: what a reader can move in the page."""

import re
from dataclasses import dataclass, replace

from book import calculator
from inferlib import load_chip, load_model
from inferlib.equation import quantity
from inferlib.explorer import Bars, Choice, Explorer, Kind, Limit, Slider, memory
from inferlib.papers.rooms import common_name
from inferlib.principles import roofline
from inferlib.principles.profile import Profile, profile_of
from inferlib.serving import napkin
from inferlib.serving.estimate import error_bar, stated
from inferlib.system import Breakdown

_LAYERS = ("Llama 3 70B", "Llama 3 8B", "Llama 3.1 405B", "Qwen3 32B")
_SERVED = ("Llama 3 70B", "Qwen3 235B-A22B", "DeepSeek V3")
_CHIPS = ("H100 SXM", "A100 80GB", "H200", "B200")  # all of them measured
MEMORY = "Memory for weights and cache"


@dataclass(frozen=True, eq=False)
class Layered(Profile):
    """A profile that knows how many layers the model has."""

    n_layers: float = quantity("1", "layers", default=1)


def _layered(name):
    model = load_model(name)
    return Layered(**vars(profile_of(model)), n_layers=model.n_layers)


def more_chips():
    """One step of the napkin formula by named terms, its constants under the reader's hand."""
    fitted = napkin.fitted()

    def step(batch, context, n_chips, share, hop, model, chip):
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
            {"kernel launch": napkin.launch_time(constants, model.n_layers)},
            {"collective latency": napkin.waiting_time(constants, model.n_layers, n_chips)},
        )
        return Breakdown(stages, source="sixth")

    def held(batch, context, model, **at):
        return roofline.memory_held(model, batch, context)

    off = napkin.stated()["held_out"]
    chips = {name: load_chip(name) for name in _CHIPS}
    within = {"": (lambda **at: 1 + off, f"its mean error on publishers left out, {100 * off:.0f} %")}
    return Explorer(
        "One decode step on a napkin",
        [
            Slider("batch", "Batch", 1, 512, 32, log=True),
            Slider("context", "Context", 1, 131072, 4096, "tokens", log=True),
            Slider("n_chips", "Chips in parallel", 1, 32, 8, whole=True),
            Slider("share", "Share of the peaks", 0.3, 1.0, round(fitted.share, 2)),
            Slider("hop", "Time of one further chip", 0.1, 10, round(1e6 * fitted.hop, 1), "µs"),
            Choice("model", "Model", {name: _layered(name) for name in _LAYERS}),
            Choice("chip", "Chip", chips),
        ],
        [Bars({"": step}, "ms", within=within)],
        limits=memory(held, "n_chips", MEMORY) | _cautions(),
        keep=True,
    )


def one_workload():
    """Everybody's answer to one question of the reader's own, one stacked bar each, as the calculator asks them.

    What does not fit or is not described is grey, with the reason. The last answer says how far it may be off.
    """

    def shown(name):
        model = replace(load_model(name), name="this model")
        return lambda shape: model

    def held(kind, precision, batch, context, **at):
        return kind({}).bytes_held(batch, context, precision.weights, precision.cache)

    offered = calculator.offered_chips()
    chips = {name: offered[name] for name in _CHIPS}
    eight = [name for name, chip in chips.items() if "fp8" in chip.peaks]
    precisions = {name: calculator.PRECISIONS[name] for name in ("16 bits", "8 bits, arithmetic too")}
    within = {
        "sixth model": (
            lambda kind, **at: error_bar(kind({}))["factor"],
            f"{100 * stated()['confidence']:.0f} % of cases",
        )
    }
    return Explorer(
        "One workload, every answer",
        [
            Kind("kind", "Model", {name: shown(name) for name in _SERVED}),
            Choice("chip", "Chip", chips),
            Choice(
                "precision", "Precision", precisions,
                offered={name: {"chip": eight} for name, p in precisions.items() if p.eight_bit},
            ),
            Slider("n_chips", "Chips", 1, 72, 8, log=True, whole=True),
            Slider("batch", "Batch", 1, 1024, 32, "sequences", log=True, whole=True),
            Slider("context", "Context", 1, 131072, 4096, "tokens", log=True, whole=True),
        ],
        [
            Bars(
                {name: _briefly(answer) for name, answer in calculator.SOURCES.items()},
                within=within, words=_common_word,
            )
        ],
        limits=memory(held, "n_chips", MEMORY) | _cautions(),
        keep=True,
    )  # fmt: skip


# The toy model's network is waiting; the complete one is asked for latency and bandwidth together.
_OWN = {
    ("Erdil 2025, toy", "network"): "collective latency",
    ("Erdil 2025", "collectives"): "collectives as a whole",
}


def _common_word(bar, term):
    """What the bars of the chapter call a source's term."""
    if (bar, term) in _OWN:
        return _OWN[bar, term]
    room = calculator.SOURCES[bar].room.removeprefix("inferlib.").removeprefix("papers.")
    return common_name(room.split(".")[0], term)


def _briefly(answer):
    """An answer of the calculator, its refusal in the few words that a bar has room for."""
    search = answer.search()

    def function(**at):
        step = search.function(**at)
        said = r"^(this model: )?the (source|post|paper|toy model) describes (multi-head )?"
        reason = re.sub(said, "", step.reason)
        return step if step.feasible else replace(step, reason=reason)

    return replace(search, function=function)


def _cautions():
    """In which respects nothing like a question was measured, as :func:`inferlib.serving.estimate.cautions` says."""
    known = stated()

    def caution(asked, most, words):
        says = f"Caution, sixth model: {words}"
        return Limit(lambda **at: at[asked], most, "1", caution=True, says=says)

    return {
        "context": caution(
            "context",
            lambda **at: known["context"],
            f"nothing was measured beyond {known['context']:,} tokens",
        ),
        "tensor-parallel degree": caution(
            "n_chips",
            lambda chip, **at: chip.scale_up_size,
            "nothing was measured beyond one fast network",
        ),
    }
