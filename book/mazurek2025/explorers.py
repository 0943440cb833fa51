"""Mazurek & Schreiber 2025: what a reader can move in the page."""

from inferlib import style
from inferlib.explorer import Cells, Choice, Curves, Explorer, Gauge, Limit, Slider, breakdown, curves, memory
from inferlib.ops import maximum
from inferlib.papers.mazurek2025.decode import held_on_gpu, stages
from inferlib.papers.mazurek2025.equations import experts, memory as traffic, network, throughput
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
SIZE = Choice("size", "GPUs in a node", {"8": 8, "72, one rack": 72})
MEMORY = "Memory of one GPU, for its weights and cache"


def _place(nodes, size, balance, extra, two_batch=True):
    """So many whole nodes of a size."""
    return Deployment(nodes * size, nodes, balance * factor("%"), extra, two_batch)


def overlap():
    """Speed of a GPU over its sequences, with and without two-batch overlap, and the network's ceiling."""

    def speed(two_batch):
        def output(own, context, balance, overhead, chip, model):
            at = _place(9, 8, balance, 32, two_batch)
            assumed = DEFAULT.replace(overhead=overhead * factor("us"))
            return throughput.gpu_throughput(model, chip, at, own * 72, context, assumed)

        return output

    def ceiling(own, context, balance, overhead, chip, model):
        return network.network_ceiling(model, chip, _place(9, 8, balance, 32))

    def held(own, context, balance, model, **at):
        return sum(held_on_gpu(model, _place(9, 8, balance, 32), own * 72, context))

    return curves(
        "Does overlap pay?",
        [OWN, CONTEXT, BALANCE, OVERHEAD, CHIP, MODEL],
        {"two-batch overlap": speed(True), "one batch": speed(False), "ceiling of the network": ceiling},
        x="own",
        y_label="tokens per second and GPU, 72 GPUs",
        unit="1/s",
        log_y=True,
        limits=memory(held, name=MEMORY),
    )


def one_step():
    """Where the time of a step goes on any number of nodes, as long as every GPU has an expert and room."""

    def step(own, context, nodes, balance, extra, overhead, chip, size, model):
        at = _place(nodes, size, balance, extra)
        assumed = DEFAULT.replace(overhead=overhead * factor("us"))
        return Breakdown(stages(model, chip, at, own * nodes * size, context, assumed))

    def held(own, context, nodes, balance, extra, size, model, **at):
        return sum(held_on_gpu(model, _place(nodes, size, balance, extra), own * nodes * size, context))

    an_expert_each = Limit(
        lambda nodes, size, **at: nodes * size,
        lambda model, extra, **at: model.n_shared + model.n_routed + extra,
        "1",
        quiet=True,
        says="Out of the model's reach",
    )
    nodes = Slider("nodes", "Nodes", 1, 18, 9, whole=True)
    return breakdown(
        "One step of every sequence",
        [OWN, CONTEXT, nodes, SIZE, BALANCE, EXTRA, OVERHEAD, CHIP, MODEL],
        step,
        limits=memory(held, name=MEMORY) | {"More GPUs than experts of a layer": an_expert_each},
    )


def experts_waking():
    """The 256 experts of a layer on 8 to 256 GPUs: which are awake, what the fullest GPU reads, what it has room for.

    The more sequences, the more experts are awake and the more bytes are read, until nearly all are; then
    a larger batch costs cache alone, until the memory is full.
    """
    model = _MODELS["DeepSeek V3"]

    def place(gpus):
        return Deployment(gpus)

    def first(batch, gpus, **at):
        return experts.loaded_experts(model, place(gpus), batch) - model.n_shared

    def others(batch, gpus, **at):
        return maximum(experts.active_experts(model, batch) - first(batch, gpus), 0) / (gpus - 1)

    def reading(batch, gpus, **at):
        return traffic.experts_on_gpu(model, model.n_shared + first(batch, gpus))

    def asleep(batch, gpus, **at):
        return traffic.experts_on_gpu(model, experts.held_experts(model, place(gpus))) - reading(batch, gpus)

    def rest(**at):
        return traffic.weights_on_gpu(model, 0) - traffic.experts_on_gpu(model, 0)

    def cache(batch, context, gpus, **at):
        return held_on_gpu(model, place(gpus), batch, context)[1]

    def held(batch, context, gpus, **at):
        return sum(held_on_gpu(model, place(gpus), batch, context))

    def step(batch, context, gpus, **at):
        return reading(batch, gpus) + rest() + traffic.cache_traffic(model, batch / gpus, context)

    counts = {str(n): n for n in (32, 8, 16, 64, 128, 256)}
    batch = Slider("batch", "Sequences on all GPUs", 1, 16384, 16, log=True, whole=True)
    names = ("GPUs", "experts on each", "awake on the fullest", "awake on each other")
    return Explorer(
        "Experts waking up",
        [batch, CONTEXT, Choice("gpus", "GPUs", counts), CHIP],
        [
            Cells(
                lambda gpus, **at: gpus,
                lambda gpus, **at: model.n_routed / gpus,
                first,
                others,
                names,
                "The experts of one layer of DeepSeek V3, each GPU's together; the fullest GPU first",
            ),
            Gauge(
                {"experts awake": reading, "experts asleep": asleep, "other weights": rest, "cache": cache},
                lambda chip, **at: chip.memory_capacity,
                title="The memory of the fullest GPU",
                colours={
                    "experts awake": style.BLUE,
                    "experts asleep": style.FAINT,
                    "other weights": style.PURPLE,
                },
            ),
            Curves(
                {
                    "read by the fullest GPU": step,
                    "of it experts": reading,
                },
                "batch",
                "gigabytes read in one step",
                "GB",
            ),
        ],
        limits=memory(held, name=MEMORY),
    )
