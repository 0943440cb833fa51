"""LIMINAL 2025: what a reader can move in the page."""

from functools import partial

from book.liminal2025 import cells
from inferlib import catalog
from inferlib.explorer import Bars, Choice, Curves, Explorer, Limit, Slider, curves, memory
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
            "collectives for nothing": lambda **at: speed(**(at | {"latency": 0.0})),
            "memory for nothing": lambda **at: speed(**(at | {"bandwidth": 1e9})),
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
            Curves({"memory of a chip, at least": bandwidth}, "waiting", "TB/s", "TB/s", True),
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
