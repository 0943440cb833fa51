"""Explorers of the chapter on first principles."""

from book.explorer import Bars, Choice, Curves, Explorer, Gauge, Slider, first, memory, sizes
from book.principles.introduction import RUNNING, stored
from inferlib import load_chip, load_model
from inferlib.principles import roofline
from inferlib.principles.profile import profile_of
from inferlib.system import Breakdown, System, Workload

_MODELS = (
    "Llama 3 70B", "Llama 3 8B", "Qwen3 32B", "GPT-OSS 120B", "DeepSeek V3", "GPT-3 175B", "Llama 3.1 405B",
)  # fmt: skip
_CHIPS = ("H100 SXM", "A100 80GB", "H200", "B200", "MI300X", "TPU v5p")


def _intensity(batch, context, model, weights, cache, **at):
    """FLOP of a decode step for every byte that it reads."""
    return roofline.decode_intensity(stored(model, weights, cache), batch, context)


def one_step(case=RUNNING):
    """A decode step by both bounds, one chip's share of its peak over the batch, and the chips' memory.

    If memory is full there is no step, and the curve ends.
    """
    work, chip = case.workload, case.machine.chip

    def reached(chip, **at):
        return roofline.attainable_flops(chip, _intensity(**at))

    def peak(chip, **at):
        return chip.flops

    def overlapped(batch, context, n_chips, model, chip, weights, cache):
        # without memory: the explorer's own limit checks whether a step fits
        system = System(chip.replace(memory_capacity=None), n_chips, domain=n_chips)
        return roofline.decode_step(stored(model, weights, cache), system, Workload(batch, context))

    def in_turn(batch, context, n_chips, model, chip, weights, cache):
        model = stored(model, weights, cache)
        return Breakdown(roofline.in_turn_stages(chip, model, n_chips, batch, context))

    def weights_held(model, weights, cache, **at):
        return roofline.weights_held(stored(model, weights, cache))

    def cache_held(batch, context, model, weights, cache, **at):
        return roofline.cache_data(stored(model, weights, cache), batch, context)

    def held(batch, context, model, weights, cache, **at):
        return roofline.memory_held(stored(model, weights, cache), batch, context)

    models = first(case.model, {name: load_model(name) for name in _MODELS})
    inputs = [
        Slider("batch", "Batch", 1, 4096, work.batch, log=True),
        Slider("context", "Context", 1, 131072, work.context, "tokens", log=True),
        Slider("n_chips", "Chips", 1, 64, case.machine.count, whole=True),
        Choice("model", "Model", {name: profile_of(one) for name, one in models.items()}),
        Choice("chip", "Chip", first(chip, {name: load_chip(name) for name in _CHIPS})),
        Choice("weights", "Weights", sizes(work.weights)),
        Choice("cache", "Cache", sizes(work.cache, least=1)),
    ]
    attained = Curves(
        {"arithmetic": reached, "peak": peak},
        "batch",
        "TFLOP/s of one chip",
        "TFLOP/s",
        log_y=True,
    )
    gauge = Gauge(
        {"weights": weights_held, "cache": cache_held},
        lambda n_chips, chip, **at: n_chips * chip.memory_capacity,
        title="The memory of all chips",
    )
    return Explorer(
        "Roofline and memory of a step",
        inputs,
        [Bars({"all overlaps": overlapped, "operators in turn": in_turn}), attained, gauge],
        limits=memory(held, "n_chips", "Memory for weights and cache"),
        asks={},
    )
