"""Explorers of Steinhardt 2022."""

from book.audit.grading import Reader
from book.explorer import Choice, Curves, Explorer, Limit, Slider
from book.papers.steinhardt2022.tables import LINKS, POD, modern_machines
from inferlib.papers import steinhardt2022 as model
from inferlib.papers.steinhardt2022 import Assumptions, Machine
from inferlib.units import factor

WIDEST = Reader("steinhardt2022", "Justification")("width of many models")[1]
# The formula cuts matrices over machines; a machine without a network has no such limit.
TO_CUT = "block of a machine"


def multiply(machine, assumptions, chip=None):
    """Explorer of one multiply over network bandwidth and slow-down k, from a machine that the reader may change.

    ``chip``: a reader's own, whose machine the menu offers too.
    """
    others = {name: m for name, m in modern_machines(chip).items() if name not in (POD, LINKS)}
    chips = {"as above": machine} | others

    def made(flops, memory, network, chips, **at):
        return Machine(flops * factor("TFLOP/s"), memory * factor("TB/s"), network * factor("TB/s"), chips)

    def time(k, latency, utilisation, **at):
        assumed = Assumptions(utilisation=utilisation * factor("%"), latency=latency * factor("us"))
        return model.practical_time(made(**at), k, assumed)

    def set_to(m):
        rates = {
            "flops": (m.flops, "TFLOP/s"),
            "memory": (m.memory_bandwidth, "TB/s"),
            "network": (m.network_bandwidth, "TB/s"),
        }
        return {name: rate / factor(unit) for name, (rate, unit) in rates.items()} | {"chips": m.chips}

    def reach(name, low, high):
        offered = [set_to(m)[name] for m in chips.values()]
        return min(low, *offered), max(high, *offered), start[name]

    start, peaks = set_to(machine), {name: m.flops for name, m in chips.items()}
    return Explorer(
        "One multiply, and what limits it",
        [
            Choice("machine", "Machine", peaks, {name: set_to(m) for name, m in chips.items()}),
            Slider("network", "Network of a machine", *reach("network", 0.1, 40), "TB/s", log=True),
            Slider("memory", "Memory bandwidth of a chip", *reach("memory", 0.2, 20), "TB/s", log=True),
            Slider("flops", "Arithmetic of a chip", *reach("flops", 31.2, 5000), "TFLOP/s", log=True),
            Slider("chips", "Chips in a machine", *reach("chips", 1, 72), whole=True),
            Slider("k", "Times smaller, k", 1, 81, 1, log=True),
            Slider("latency", "Latency of a multiply", 0, 10, assumptions.latency / factor("us"), "µs"),
            Slider("utilisation", "Utilisation at k = 1", 20, 100, assumptions.utilisation / factor("%"), "%"),
        ],
        [
            Curves(
                {
                    "least time": lambda **at: model.elapsed_time(made(**at)),
                    "network without limit": lambda **at: model.memory_limited_time(made(**at)),
                },
                "network", "one multiply at full utilisation, µs", "us", True,
            ),
            Curves(
                {"with latency": time, "without": lambda **at: time(**(at | {"latency": 0.0}))},
                "k", "one multiply in practice, µs", "us", True,
            ),
        ],
        limits={
            TO_CUT: Limit(
                lambda k, **at: model.machine_block(made(**at)) / k, lambda **at: WIDEST, "1", caution=True,
                says="No matrix is as wide as the block of a machine: none is cut, and the formula does not apply",
            )
        },
    )  # fmt: skip
