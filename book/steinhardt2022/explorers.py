"""Steinhardt 2022: what a reader can move in the page."""

from book.steinhardt2022.tables import LINKS, POD, modern_machines
from inferlib import load_chip, load_model
from inferlib.explorer import Choice, Slider, breakdown, curves
from inferlib.papers.steinhardt2022 import equations as model
from inferlib.papers.steinhardt2022.decode import decode_step
from inferlib.papers.steinhardt2022.records import Assumptions, Machine, load_chip as post_chip
from inferlib.system import System, Workload
from inferlib.units import factor


def network():
    """Time of one multiply over the network's bandwidth, for a chip and a machine of the reader's own."""

    def machine(flops, memory, network, chips):
        return Machine(flops * factor("TFLOP/s"), memory * factor("TB/s"), network * factor("TB/s"), chips)

    return curves(
        "How much network is enough?",
        [
            Slider("network", "Network of a machine", 0.2, 20, 2, "TB/s", log=True),
            Slider("memory", "Memory of a chip", 0.2, 20, 2, "TB/s", log=True),
            Slider("flops", "Arithmetic of a chip", 31.2, 3120, 312, "TFLOP/s", log=True),
            Slider("chips", "Chips in a machine", 1, 72, 8, whole=True),
        ],
        {
            "least time": lambda **at: model.elapsed_time(machine(**at)),
            "with a network without limit": lambda **at: model.memory_limited_time(machine(**at)),
        },
        x="network",
        y_label="microseconds per multiply",
        unit="us",
        log_y=True,
    )


def waste():
    """Time of one multiply over the utilisation given up, with and without latency."""
    slow = post_chip("A100, warm-up").network_bandwidth
    options = {
        "the post's A100": post_chip(),
        "the same, 400 GB/s": post_chip().replace(network_bandwidth=slow),
    }
    options |= {name: modern_machines()[name] for name in ("H100 SXM", "B200", POD, LINKS)}

    def time(machine, k, utilisation, latency):
        assumed = Assumptions(utilisation=utilisation * factor("%"), latency=latency * factor("us"))
        return model.practical_time(machine, k, assumed)

    return curves(
        "How far does giving up utilisation carry?",
        [
            Slider("k", "Given up, k", 1, 81, 3, log=True),
            Slider("latency", "Latency of a multiply", 0, 10, 1.5, "us"),
            Slider("utilisation", "Utilisation at k = 1", 20, 100, 40, "%"),
            Choice("machine", "Machine", options),
        ],
        {"with latency": time, "without": lambda **at: time(**(at | {"latency": 0.0}))},
        x="k",
        y_label="microseconds per multiply",
        unit="us",
        log_y=True,
    )


def decode():
    """The running question at any batch, on eight chips of a kind."""
    llama = load_model("Llama 3 70B")

    def step(batch, chip):
        return decode_step(llama, System(chip, 8, domain=8), Workload(batch=batch))

    chips = {name: load_chip(name) for name in ("H100 SXM", "H200", "B200")}
    batch = Slider("batch", "Batch", 1, 1024, 32, log=True, whole=True)
    return breakdown("Llama 3 70B on eight chips", [batch, Choice("chip", "Chip", chips)], step)
