"""LIMINAL 2025: what a reader can move in the page."""

from dataclasses import replace
from functools import partial

from book.explorer import Bars, Choice, Curves, Explorer, Limit, Sentence, Slider, first
from book.liminal2025 import cells
from book.liminal2025.derivations import latency_for
from inferlib import catalog
from inferlib.ops import maximum
from inferlib.papers.liminal2025 import equations as model
from inferlib.papers.liminal2025.equations import IDEAL, PRINTED, Assumptions, load_chip, load_model
from inferlib.system import Breakdown, System, Workload
from inferlib.units import factor

CONTEXT = Slider("context", "Context", 1024, 131072, 4096, "tokens", log=True, whole=True)
CHIPS = Slider("chips", "Chips", 2, 128, 128, log=True, whole=True)
BITS = {"16 bits": 2.0, "8 bits": 1.0, "4 bits": 0.5}


def _formats(weights="8 bits", cache="8 bits"):
    """Choices of the bytes of a weight and of a cached value, with these at the start."""

    def first(label, options):
        return {label: options[label]} | options

    narrow = {label: size for label, size in BITS.items() if size >= 1}
    return [
        Choice("weights", "Weights", first(weights, BITS)),
        Choice("cache", "Cache", first(cache, narrow)),
    ]


def _counted(weights, cache, assumptions=PRINTED):
    return assumptions.replace(weight_bytes=weights, cache_bytes=cache)


def _memory(available):
    """What the weights and caches of a batch take, against what there is."""

    def needed(app, batch, context, weights, cache, **at):
        return model.capacity_needed(app, batch, context, _counted(weights, cache))

    return {"Memory for weights and caches": Limit(needed, available, "GB")}


PROFITS = ("Llama3-405B", "Llama3-70B", "DeepSeekV3", "GPT-OSS-120B", "Qwen3-30B")


def limits(apps=None, known=None, new=None, latency=IDEAL):
    """What caps one user: which model gains by a memory, at which latency of a collective, and how much speed it has.

    The box opens with the ``new`` chip's memory, and compares with the ``known`` one's.
    """
    known, new = known or load_chip("HBM3"), new or load_chip("3D-DRAM")
    apps = apps or {name: load_model(name) for name in cells.large()}
    today = known.bandwidth / factor("TB/s")

    def speed(app, bandwidth, latency, batch, context, chips, weights, cache, **at):
        chip = known.replace(bandwidth=bandwidth * factor("TB/s"))
        at = app, chip, batch, context, chips, 1.0, latency * factor("ns")
        return model.user_speed(*at, _counted(weights, cache))

    def gain(**at):
        return speed(**at) / speed(**(at | {"bandwidth": today}))

    def of_one(name):
        return lambda app, **at: gain(app=apps[name], **at)

    def share(**at):
        # of what it would gain if nobody waited
        return (gain(**at) - 1) / maximum(gain(**(at | {"latency": 0.0})) - 1, 1e-9)

    def balance(app, batch, context, chips, weights, cache, **at):
        reading = model.batch_time(app, known, batch, context, chips, 1.0, 0.0, _counted(weights, cache))
        return latency_for(app, chips, 1 / (2 * reading), 0.5)

    says = (
        "{0} times as fast, {1} % of what it would gain without waiting. "
        f"{known.name} and collectives take it equally long at {{2}} ns."
    )
    return Explorer(
        "What limits one user?",
        [
            Slider("bandwidth", "Memory of a chip", 1, 300, round(new.bandwidth / 1e12, 1), "TB/s", log=True),
            Slider("latency", "One collective", 10, 2000, round(latency / factor("ns"), 1), "ns", log=True),
            Slider("batch", "Batch", 1, 1024, 1, log=True, whole=True),
            CONTEXT,
            CHIPS,
            Slider("capacity", "Room on a chip", 1, 1000, round(known.capacity / 1e9), "GB", log=True),
            *_formats(),
            Choice("app", "Model", {name: apps[name] for name in (PROFITS[-1], *apps)}),
        ],
        [
            Sentence(
                {
                    "times as fast": (gain, "1"),
                    "of the gain without waiting": (share, "%"),
                    "balance": (balance, "ns"),
                },
                (
                    (1, f"No faster than {known.name}: {{0}} times its speed."),
                    (1.1, "The chosen model hardly notices: " + says),
                    (1.5, "The chosen model profits a little: " + says),
                    (None, "The chosen model profits: " + says),
                ),
            ),
            Curves(
                {name: of_one(name) for name in PROFITS},
                "latency",
                f"times as fast as with {known.name}, one user",
            ),
            Curves(
                {
                    "as it is": speed,
                    "free collectives": lambda **at: speed(**(at | {"latency": 0.0})),
                    "free memory": lambda **at: speed(**(at | {"bandwidth": 1e9})),
                },
                "bandwidth",
                "tokens per second, one user of the chosen model",
                "1/s",
                log_y=True,
            ),
        ],
        limits=_memory(lambda chips, capacity, **at: chips * capacity * factor("GB")),
    )


SERVED = ("Llama 3 70B", "Llama 3 8B", "GPT-OSS 120B", "Qwen3 30B-A3B", "DeepSeek V3")
GPUS = ("H100 SXM", "H200", "B200", "MI300X")


def decode(shape=None, system=None, workload=None):
    """One step of a model as released on GPUs of today: the limit, and equation 8."""
    system = system or System(catalog.load_chip(GPUS[0]), 8)
    workload = workload or Workload(32, 4096)
    models = first(shape, {name: catalog.load_model(name) for name in SERVED})
    chips = first(system.chip, {name: catalog.load_chip(name) for name in GPUS})
    released = Assumptions.corrected()
    apps = {name: model.model_of(shape, released) for name, shape in models.items()}
    gpus = {name: model.chip_of(chip, chip.format) for name, chip in chips.items()}

    def step(batch, context, count, weights, cache, app, chip, assumptions=released):
        at = app, chip, batch, context, count
        return Breakdown(model.stages_of(*at, assumptions=_counted(weights, cache, assumptions)))

    fitted = released.replace(t_real=Assumptions.fitted().t_real)
    return Explorer(
        "One step, as LIMINAL sees it",
        [
            Slider("batch", "Batch", 1, 1024, workload.batch, log=True, whole=True),
            replace(CONTEXT, value=workload.context),
            Slider("count", "Chips", 1, 128, system.count, log=True, whole=True),
            *_formats("16 bits", "16 bits"),
            Choice("app", "Model", apps),
            Choice("chip", "Chip", gpus),
        ],
        [Bars({"limit": step, "equation 8": partial(step, assumptions=fitted)}, "ms")],
        limits=_memory(lambda count, chip, **at: count * chip.capacity),
        asks={"model": "app", "n_chips": "count"},
    )
