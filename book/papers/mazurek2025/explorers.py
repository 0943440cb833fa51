"""Explorers of Mazurek & Schreiber 2025."""

from book import style
from book.explorer import Bars, Choice, Curves, Explorer, Gauge, Limit, Slider, first, memory, sizes
from inferlib.ops import maximum
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.decode import held_on_gpu, stages
from inferlib.papers.mazurek2025.records import PRINTED, Deployment, load_chip, load_model
from inferlib.system import Breakdown
from inferlib.units import factor

_CHIPS = {name: load_chip(name) for name in ("H100 SXM", "H200", "B200", "H20")}
_MODELS = {name: load_model(name) for name in ("DeepSeek V3", "Kimi K2")}
OVERHEAD = Slider("overhead", "Overhead of a layer", 0, 200, 0, "µs")
SIZES = {"8": 8, "72, one rack": 72}


def _work(own, context):
    """Return the sliders of a GPU's own batch and its context, at their initial values."""
    return (
        Slider("own", "Sequences per GPU", 1, 1024, own, log=True, whole=own % 1 == 0),
        Slider("context", "Tokens of context", 500, 32768, context, log=True, whole=True),
    )


def _formats(assumed):
    """Choices of the bytes of a weight and of a cached value, with those of the assumptions first."""
    return [
        Choice("weights", "Weights", sizes(assumed.weight_bytes)),
        Choice("cache", "Cache", sizes(assumed.cache_value_bytes, least=1)),
    ]


MEMORY = "Memory of one GPU, for its weights and cache"


def _assumed(weights, cache, overhead=0, **at):
    """The source's assumptions with the reader's formats; arithmetic stays in the source's."""
    return PRINTED.replace(weight_bytes=weights, cache_value_bytes=cache, overhead=overhead * factor("us"))


def one_step(model, at, own, context, assumed):
    """Explorer of a step's time on a number of nodes, and of the gain of two half batches.

    Every GPU must have an expert and memory for it.
    """

    def given(
        own, context, nodes, size, balance, extra, weights, cache, model, overhead, two_batch=True, **at
    ):
        place = Deployment(nodes * size, nodes, balance * factor("%"), extra, two_batch)
        return place, own * nodes * size, context, _assumed(weights, cache, overhead)

    def speed(chip, model, **at):
        return eq.gpu_throughput(model, chip, *given(model=model, **at))

    def ceiling(chip, model, **at):
        return eq.network_ceiling(model, chip, given(model=model, **at)[0])

    def step(chip, model, **at):
        return Breakdown(stages(model, chip, *given(model=model, **at)))

    def held(model, **at):
        return sum(held_on_gpu(model, *given(model=model, **at)))

    an_expert_each = Limit(
        lambda nodes, size, **at: nodes * size,
        lambda model, extra, **at: model.n_shared + model.n_routed + extra,
        "1",
        quiet=True,
        says="Out of the model's reach",
    )
    place = at.deployment
    size = place.n_gpus // place.n_nodes
    sizes = {label: n for label, n in SIZES.items() if n == size} or {f"{size}": size}
    where = [
        Slider("nodes", "Nodes", 1, 18, place.n_nodes, whole=True),
        Choice("size", "GPUs in a node", sizes | SIZES),
        Slider("balance", "Balancedness", 10, 100, round(100 * place.balancedness, 1), "%"),
        Slider("extra", "Extra experts", 0, 128, place.extra_experts, whole=True),
        OVERHEAD,
    ]
    chips = Choice("chip", "Chip", first(at.gpu, _CHIPS))
    models = Choice("model", "Model", first(model, _MODELS))
    return Explorer(
        "One step of every sequence",
        [*_work(own, context), *where, *_formats(assumed), chips, models],
        [
            Curves(
                {
                    "two-batch overlap": speed,
                    "one batch": lambda **at: speed(two_batch=False, **at),
                    "ceiling of the network": ceiling,
                },
                "own",
                "tokens per second and GPU",
                "1/s",
                log_y=True,
                title="Does overlap pay?",
            ),
            Bars({"": step}, title="One step, in two half batches"),
        ],
        limits=memory(held, name=MEMORY) | {"More GPUs than experts of a layer": an_expert_each},
        asks={"n_chips": "nodes size", "batch": "own nodes size", "layout": "DPn EPn"},
    )


def experts_waking(model, context, gpu, assumed):
    """Explorer of a layer's 256 experts on 8 to 256 GPUs: what the fullest GPU reads, and what fits in its memory.

    With more sequences more experts are used and more bytes are read, until nearly all are; then a larger batch adds
    only cache, until the memory is full.
    """

    def fullest(batch, gpus, **at):
        # the asymptotic formula falls below one if there are more GPUs than active experts
        return maximum(eq.loaded_experts(model, Deployment(gpus), batch) - model.n_shared, 1)

    def reading(batch, gpus, **at):
        return eq.experts_on_gpu(model, model.n_shared + fullest(batch, gpus), _assumed(**at))

    def asleep(batch, gpus, **at):
        held = eq.experts_on_gpu(model, eq.held_experts(model, Deployment(gpus)), _assumed(**at))
        return held - reading(batch, gpus, **at)

    def rest(**at):
        return eq.weights_on_gpu(model, 0, _assumed(**at)) - eq.experts_on_gpu(model, 0, _assumed(**at))

    def kept(batch, context, gpus, **at):
        return held_on_gpu(model, Deployment(gpus), batch, context, _assumed(**at))[1]

    def held(batch, context, gpus, **at):
        return sum(held_on_gpu(model, Deployment(gpus), batch, context, _assumed(**at)))

    def step(batch, context, gpus, **at):
        moved = eq.cache_traffic(model, batch / gpus, context, _assumed(**at))
        return reading(batch, gpus, **at) + rest(**at) + moved

    chips = Choice("chip", "Chip", first(gpu, _CHIPS))
    counts = {str(n): n for n in (32, 8, 16, 64, 128, 256)}
    batch = Slider("batch", "Sequences on all GPUs", 1, 16384, 16, log=True, whole=True)
    return Explorer(
        "Experts waking up",
        [batch, _work(128, context)[1], Choice("gpus", "GPUs", counts), *_formats(assumed), chips],
        [
            Gauge(
                {"experts awake": reading, "experts asleep": asleep, "other weights": rest, "cache": kept},
                lambda chip, **at: chip.memory_capacity,
                title="The memory of the fullest GPU",
                colours={
                    "experts awake": style.BLUE,
                    "experts asleep": style.FAINT,
                    "other weights": style.SKY,
                },
            ),
            Curves(
                {"read by the fullest GPU": step, "of which experts": reading},
                "batch",
                "gigabytes read in one step",
                "GB",
            ),
        ],
        limits=memory(held, name=MEMORY),
    )
