"""LIMINAL 2025: what a reader can move in the page."""

from functools import partial

from book.liminal2025 import cells
from inferlib import catalog
from inferlib.explorer import Bars, Choice, Curves, Explorer, Limit, Sentence, Slider, curves, memory
from inferlib.papers.liminal2025 import equations as model
from inferlib.papers.liminal2025.decode import decode_step
from inferlib.papers.liminal2025.records import PRINTED, XPU, Assumptions, load_chip, load_model
from inferlib.system import System, Workload
from inferlib.units import factor


def _applications():
    return Choice("app", "Model", {name: load_model(name) for name in cells.large()})


def limits():
    """Tokens per second of one user over the memory bandwidth, and what caps them."""
    known = load_chip("HBM3")

    def speed(app, bandwidth, latency, batch, context, chips, capacity):
        chip = XPU(known.flops, bandwidth * factor("TB/s"), capacity * factor("GB"))
        return model.user_speed(app, chip, batch, context, chips, 1.0, latency * factor("ns"))

    return curves(
        "What limits one user?",
        [
            Slider("bandwidth", "Memory of a chip", 1, 200, 4.4, "TB/s", log=True),
            Slider("latency", "One collective", 10, 2000, 200, "ns", log=True),
            Slider("batch", "Batch", 1, 1024, 1, log=True, whole=True),
            Slider("context", "Context", 1024, 131072, 4096, "tokens", log=True, whole=True),
            Slider("chips", "Chips", 2, 128, 128, log=True, whole=True),
            Slider(
                "capacity", "Room on a chip", 1, 1000, round(known.capacity / factor("GB")), "GB", log=True
            ),
            _applications(),
        ],
        {
            "as it is": speed,
            "free collectives": lambda **at: speed(**(at | {"latency": 0.0})),
            "free memory": lambda **at: speed(**(at | {"bandwidth": 1e9})),
        },
        x="bandwidth",
        y_label="tokens per second, one user",
        unit="1/s",
        log_y=True,
        limits={
            "Memory for weights and caches": Limit(
                lambda app, batch, context, **at: model.capacity_needed(app, batch, context),
                lambda chips, capacity, **at: chips * capacity * factor("GB"),
                "GB",
            )
        },
    )


PROFITS = ("Llama3-405B", "Llama3-70B", "DeepSeekV3", "GPT-OSS-120B", "Qwen3-30B")


def profits():
    """Who profits from faster memory, at which latency of a collective: one user, each model on the same chips."""
    known = load_chip("HBM3")
    apps = {name: load_model(name) for name in PROFITS}

    def speed(app, latency, context, chips, faster=1):
        chip = known.replace(bandwidth=known.bandwidth * faster)
        return model.user_speed(app, chip, 1, context, chips, 1.0, latency * factor("ns"))

    def gain(app, latency, faster, context, chips):
        at = app, latency, context, chips
        return speed(*at, faster) / speed(*at)

    def of_one(name):
        return lambda app, **at: gain(apps[name], **at)

    def share(**at):
        # of what it would gain if nobody waited
        return (gain(**at) - 1) / (gain(**(at | {"latency": 0.0})) - 1)

    def balance(app, context, chips, **at):
        reading = model.batch_time(app, known, 1, context, chips, 1.0, 0.0)
        return model.latency_for(app, chips, 1 / (2 * reading), 0.5)

    says = (
        "{0} times as fast, {1} % of what it would gain if nobody waited. "
        "Today's memory and collectives take it equally long at {2} ns."
    )
    return Explorer(
        "Who profits from faster memory?",
        [
            Slider("latency", "One collective", 10, 2000, 200, "ns", log=True),
            Slider("faster", "Memory faster than HBM3, by", 1.5, 20, 7.5, "times"),
            Slider("context", "Context", 1024, 131072, 4096, "tokens", log=True, whole=True),
            Slider("chips", "Chips", 2, 128, 128, log=True, whole=True),
            Choice("app", "Model of the answer", {name: apps[name] for name in reversed(PROFITS)}),
        ],
        [
            Sentence(
                {
                    "times as fast": (gain, "1"),
                    "of the gain without waiting": (share, "%"),
                    "balance": (balance, "ns"),
                },
                (
                    (1.1, "The chosen model hardly notices: " + says),
                    (1.5, "The chosen model profits a little: " + says),
                    (None, "The chosen model profits: " + says),
                ),
            ),
            Curves({name: of_one(name) for name in PROFITS}, "latency", "times as fast, one user", "1"),
        ],
        limits={
            "Memory for weights and caches": Limit(
                lambda app, context, **at: model.capacity_needed(app, 1, context),
                lambda chips, **at: chips * known.capacity,
                "GB",
            )
        },
    )


def design():
    """The chip that a speed needs: bandwidth and latency against the part of the time spent waiting."""

    def bandwidth(app, waiting, speed, context, chips):
        return model.bandwidth_for(app, 1, context, chips, speed, waiting * factor("%"))

    def latency(app, waiting, speed, context, chips):
        return model.latency_for(app, chips, speed, waiting * factor("%"))

    return Explorer(
        "Which chip makes a token that fast?",
        [
            Slider("waiting", "Part of the time that is waiting", 1, 99, 50, "%"),
            Slider("speed", "Tokens per second of one user", 100, 100_000, 10_000, log=True),
            Slider("context", "Context", 1024, 131072, 4096, "tokens", log=True, whole=True),
            Slider("chips", "Chips", 2, 128, 128, log=True, whole=True),
            _applications(),
        ],
        [
            Curves({"memory, at least": bandwidth}, "waiting", "TB/s", "TB/s", True),
            Curves({"one collective, at most": latency}, "waiting", "nanoseconds", "ns", True),
        ],
    )


def decode():
    """The running question at any batch and context, on eight chips of a kind: the limit, and equation 8."""
    llama = catalog.load_model("Llama 3 70B")

    def step(batch, context, chip, assumptions=PRINTED):
        return decode_step(
            llama, System(chip, 8, domain=8), Workload(batch=batch, context=context), None, assumptions
        )

    chips = {name: catalog.load_chip(name) for name in ("H100 SXM", "H200", "B200")}
    return Explorer(
        "Llama 3 70B on eight chips, as LIMINAL sees it",
        [
            Slider("batch", "Batch", 1, 128, 32, log=True, whole=True),
            Slider("context", "Context", 1024, 8192, 4096, "tokens", log=True, whole=True),
            Choice("chip", "Chip", chips),
        ],
        [Bars({"limit": step, "equation 8": partial(step, assumptions=Assumptions.fitted())}, "ms")],
        limits=memory(
            lambda batch, context, **at: llama.bytes_held(batch, context), 8, "Memory for weights and cache"
        ),
    )
