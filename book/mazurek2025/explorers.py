"""Mazurek & Schreiber 2025: what a reader can move in the page."""

from inferlib.explorer import Choice, Slider, breakdown, curves
from inferlib.papers.mazurek2025.decode import stages
from inferlib.papers.mazurek2025.equations import network, throughput
from inferlib.papers.mazurek2025.records import DEFAULT, Deployment, chip_of, model_of
from inferlib.system import Breakdown
from inferlib.units import factor

_CHIPS = {name: chip_of(name) for name in ("H100 SXM", "H200", "B200", "H20")}
_MODELS = {name: model_of(name) for name in ("DeepSeek V3", "Kimi K2")}
OWN = Slider("own", "Sequences on a GPU", 1, 1024, 128, log=True, whole=True)
CONTEXT = Slider("context", "Tokens of context", 500, 32768, 4989, log=True, whole=True)
BALANCE = Slider("balance", "Balancedness", 10, 100, 81, "%")
EXTRA = Slider("extra", "Extra experts", 0, 128, 32, whole=True)
OVERHEAD = Slider("overhead", "Overhead of a layer", 0, 200, 0, "µs")
CHIP, MODEL = Choice("chip", "Chip", _CHIPS), Choice("model", "Model", _MODELS)
PLACES = Choice("nodes", "GPUs in a node", {"8": 8, "72, one rack": 72})


def _place(gpus, size, balance, extra, two_batch=True):
    """So many GPUs in nodes of a size, which divides them or exceeds them."""
    from inferlib.ops import maximum

    return Deployment(gpus, maximum(gpus / size, 1), balance * factor("%"), extra, two_batch)


def overlap():
    """Speed of a GPU over its sequences, with and without two-batch overlap, and the network's ceiling."""

    def speed(two_batch):
        def output(own, context, balance, overhead, chip, model):
            at = _place(72, 8, balance, 32, two_batch)
            assumed = DEFAULT.replace(overhead=overhead * factor("us"))
            return throughput.gpu_throughput(model, chip, at, own * 72, context, assumed)

        return output

    def ceiling(own, context, balance, overhead, chip, model):
        return network.network_ceiling(model, chip, _place(72, 8, balance, 32))

    return curves(
        "Does overlap pay?",
        [OWN, CONTEXT, BALANCE, OVERHEAD, CHIP, MODEL],
        {"two-batch overlap": speed(True), "one batch": speed(False), "ceiling of the network": ceiling},
        x="own",
        y_label="tokens per second and GPU, 72 GPUs",
        unit="1/s",
        log_y=True,
    )


def one_step():
    """Where the time of a step goes on any number of GPUs."""

    def step(own, context, gpus, balance, extra, overhead, chip, nodes, model):
        at = _place(gpus, nodes, balance, extra)
        assumed = DEFAULT.replace(overhead=overhead * factor("us"))
        return Breakdown(stages(model, chip, at, own * gpus, context, assumed))

    gpus = Slider("gpus", "GPUs", 8, 144, 72, whole=True)
    return breakdown(
        "One step of every sequence",
        [OWN, CONTEXT, gpus, BALANCE, EXTRA, OVERHEAD, CHIP, PLACES, MODEL],
        step,
    )
