"""Steinhardt 2022: what a reader can move in the page."""

from book.steinhardt2022.tables import LINKS, POD, modern_machines
from inferlib import load_chip, load_model
from inferlib.explorer import Bars, Choice, Curves, Explorer, Limit, Slider
from inferlib.ledger import Reader
from inferlib.ops import where
from inferlib.papers.steinhardt2022 import equations as model
from inferlib.papers.steinhardt2022.decode import decode_step
from inferlib.papers.steinhardt2022.records import WITHOUT_LIMIT, Assumptions, Machine, load_chip as post_chip
from inferlib.system import System, Workload
from inferlib.units import factor

WIDEST = Reader("steinhardt2022", "Justification")("width of many models")[1]
# The formula cuts matrices over machines; one that nothing leaves has no such limit.
TO_CUT = "Out of reach: a machine's block is wider than any matrix"


def _block(machine, k=1):
    return where(machine.network_bandwidth >= WITHOUT_LIMIT, 0, model.machine_block(machine) / k)


def network():
    """Time of one multiply over the network's bandwidth, for a chip and a machine of the reader's own."""

    def machine(flops, memory, network, chips):
        return Machine(flops * factor("TFLOP/s"), memory * factor("TB/s"), network * factor("TB/s"), chips)

    outputs = {
        "least time": lambda **at: model.elapsed_time(machine(**at)),
        "with a network without limit": lambda **at: model.memory_limited_time(machine(**at)),
    }
    return Explorer(
        "How much network is enough?",
        [
            Slider("network", "Network of a machine", 0.2, 20, 2, "TB/s", log=True),
            Slider("memory", "Memory of a chip", 0.2, 20, 2, "TB/s", log=True),
            Slider("flops", "Arithmetic of a chip", 31.2, 3120, 312, "TFLOP/s", log=True),
            Slider("chips", "Chips in a machine", 1, 72, 8, whole=True),
        ],
        [Curves(outputs, "network", "microseconds per multiply", "us", True)],
        limits={
            TO_CUT: Limit(
                lambda **at: model.machine_block(machine(**at)), lambda **at: WIDEST, "1", quiet=True
            )
        },
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

    outputs = {"with latency": time, "without": lambda **at: time(**(at | {"latency": 0.0}))}
    return Explorer(
        "How far does giving up utilisation carry?",
        [
            Slider("k", "Given up, k", 1, 81, 3, log=True),
            Slider("latency", "Latency of a multiply", 0, 10, 1.5, "µs"),
            Slider("utilisation", "Utilisation at k = 1", 20, 100, 40, "%"),
            Choice("machine", "Machine", options),
        ],
        [Curves(outputs, "k", "microseconds per multiply", "us", True)],
        limits={
            TO_CUT: Limit(lambda machine, k, **at: _block(machine, k), lambda **at: WIDEST, "1", quiet=True)
        },
    )


def decode():
    """The running question at any batch, on eight chips of a kind."""
    llama = load_model("Llama 3 70B")

    def step(batch, chip):
        return decode_step(llama, System(chip, 8, domain=8), Workload(batch=batch))

    chips = {name: load_chip(name) for name in ("H100 SXM", "H200", "B200")}
    batch = Slider("batch", "Batch", 1, 1024, 32, log=True, whole=True)
    held = sum(llama.weight_bytes().values())
    return Explorer(
        "Llama 3 70B on eight chips",
        [batch, Choice("chip", "Chip", chips)],
        [Bars({"": step}, "ms")],
        limits={"weights": Limit(lambda **at: held, lambda batch, chip: 8 * chip.memory_capacity, "GB")},
    )
