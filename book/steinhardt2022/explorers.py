"""Steinhardt 2022: what a reader can move in the page."""

from book.audit.ledger import Reader
from book.explorer import Bars, Choice, Curves, Explorer, Kind, Limit, Slider, first
from book.steinhardt2022.tables import LINKS, POD, modern_machines
from inferlib import load_chip, load_model
from inferlib.papers.steinhardt2022 import equations as model
from inferlib.papers.steinhardt2022.equations import PRINTED, Assumptions, Machine, decode_step
from inferlib.system import System, Workload, format_bytes
from inferlib.units import factor

WIDEST = Reader("steinhardt2022", "Justification")("width of many models")[1]
# The formula cuts matrices over machines; one that nothing leaves has no such limit.
TO_CUT = "block of a machine"


def multiply(machine=None, assumptions=PRINTED):
    """One multiply over the network and over the slow-down k, from a machine that the reader may change."""
    machine = machine or model.load_chip()
    others = {name: m for name, m in modern_machines().items() if name not in (POD, LINKS)}
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

    start, peaks = set_to(machine), {name: m.flops for name, m in chips.items()}
    return Explorer(
        "One multiply, and what limits it",
        [
            Choice("machine", "Machine", peaks, {name: set_to(m) for name, m in chips.items()}),
            Slider("network", "Network of a machine", 0.1, 40, start["network"], "TB/s", log=True),
            Slider("memory", "Memory of a chip", 0.2, 20, start["memory"], "TB/s", log=True),
            Slider("flops", "Arithmetic of a chip", 31.2, 5000, start["flops"], "TFLOP/s", log=True),
            Slider("chips", "Chips in a machine", 1, 72, start["chips"], whole=True),
            Slider("k", "Slow-down, k", 1, 81, 1, log=True),
            Slider("latency", "Latency of a multiply", 0, 10, assumptions.latency / factor("us"), "µs"),
            Slider("utilisation", "Utilisation at k = 1", 20, 100, assumptions.utilisation / factor("%"), "%"),
        ],
        [
            Curves(
                {
                    "least time": lambda **at: model.elapsed_time(made(**at)),
                    "network without limit": lambda **at: model.memory_limited_time(made(**at)),
                },
                "network", "one multiply, fully used, µs", "us", True,
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


def decode(shape=None, chip=None, count=8):
    """The running question at any batch and weight format, on so many chips of a kind.

    ``shape``: the first of the models that are offered. ``chip``: the first of the chips.
    """
    names = ("Llama 3 70B", "Llama 3 8B", "Qwen3 32B", "Llama 3.1 405B", "GPT-3 175B")
    models = first(shape, {name: load_model(name) for name in names})
    others = ("H100 SXM", "H200", "B200", "A100 80GB", "MI300X")
    chips = first(chip, {name: load_chip(name) for name in others})

    def step(batch, chips, machine, weights, model):
        system = System(machine.replace(memory_capacity=None), chips, domain=chips)
        return decode_step(model, system, Workload(batch=batch, weights=weights))

    return Explorer(
        "One token on one box",
        [
            Kind("model", "Model", models),
            Choice("machine", "Chip", chips),
            Slider("chips", "Chips", 1, 72, count, whole=True),
            Kind("weights", "Weights", {"16 bits": "bf16", "8 bits": "fp8", "4 bits": "fp4"}),
            Slider("batch", "Batch", 1, 1024, 32, log=True, whole=True),
        ],
        [Bars({"": step}, "ms")],
        limits={
            "weights": Limit(
                lambda model, weights, **at: sum(model.parameters().values()) * format_bytes(weights),
                lambda chips, machine, **at: chips * machine.memory_capacity, "GB",
            )
        },
        asks={"chip": "machine", "n_chips": "chips", "context": "4096"},
    )  # fmt: skip
