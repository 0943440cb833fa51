"""Erdil 2025, section 2: one GPU, then many on a network that has latency and no bandwidth limit.

The model is dense, the context short: weights are read, multiplied, and reduced over the network; nothing
else takes time. Equations 1 to 19 of the paper.
"""

from functools import partial

from inferlib.equation import Minimum, equation
from inferlib.ops import cbrt, maximum, sqrt, where
from inferlib.papers.erdil2025.records import Model, ToyAssumptions, load_model
from inferlib.system import Accelerator, DoesNotFit, NotDescribed, decode_model
from inferlib.transformer import Transformer

_RECORDS = {"model": Model, "chip": Accelerator}
equation = partial(equation, "erdil2025", chapter="erdil2025_toy", records=_RECORDS)


@equation(unit="s", n_gpu="1 > 0")
def weight_time(model, chip, n_gpu):
    """Time for every GPU to read its share of the weights once."""
    return model.weight_bytes * model.n_params / (n_gpu * chip.memory_bandwidth)


@equation(unit="s", n_gpu="1 > 0")
def arithmetic_time(model, chip, n_gpu, batch):
    """Time for every GPU to multiply its share of the weights with the whole batch."""
    return model.flop_per_weight * model.n_params * batch / (n_gpu * chip.flops)


@equation(unit="s", t_reduce="s")
def network_time(model, t_reduce):
    """Time spent in all-reduces, one after another through all layers."""
    return model.n_layers * model.reductions * t_reduce


@equation("1", unit="s")
def single_gpu_latency(model, chip, batch):
    """Time per token on a single GPU: the longer of reading and multiplying the weights, which overlap."""
    return maximum(weight_time(model, chip, 1), arithmetic_time(model, chip, 1, batch))


@equation("2", unit="s", batch="1 > 0")
def single_gpu_seconds(model, chip, batch):
    """GPU seconds per token of a dense model on a single GPU."""
    return single_gpu_latency(model, chip, batch) / batch


def _time_difference(model, chip, batch):
    """Return the difference between the times of reading and of multiplying, in seconds."""
    return abs(weight_time(model, chip, 1) - arithmetic_time(model, chip, 1, batch))


@equation(least=Minimum(_time_difference, "batch", place=True))
def critical_batch(model, chip):
    """The batch at which multiplying the weights takes as long as reading them, whatever the model (section 2.1)."""
    return model.weight_bytes * chip.flops / (chip.memory_bandwidth * model.flop_per_weight)


@equation(unit="s", t_hop="s")
def ring_all_reduce_time(n_ranks, t_hop):
    """Latency of an all-reduce along a ring: round once to add up, once more to hand out (section 2.2.1)."""
    return 2 * t_hop * (n_ranks - 1)


@equation(unit="s", t_hop="s")
def grid_all_reduce_time(n_gpu, t_hop):
    """Latency of the all-reduces of a matrix cut evenly both ways: rings of sqrt(n_gpu) GPUs (section 2.2.1)."""
    return ring_all_reduce_time(sqrt(n_gpu), t_hop)


@equation(
    "3",
    also={"5": {"t_reduce": grid_all_reduce_time}, "8": {"t_reduce": grid_all_reduce_time}},
    unit="s",
    n_gpu="1 > 0",
    t_reduce="s",
)
def toy_latency(model, chip, n_gpu, batch, t_reduce):
    """Time per token of a dense model on one tensor-parallel instance, at short context.

    Waiting comes first, then the longer of reading and multiplying (but see :func:`prefetched_latency`).
    Equations 5 and 8 are the same with :func:`grid_all_reduce_time` for ``t_reduce``.

    Examples
    --------
    >>> from inferlib.papers.erdil2025 import load_chip, load_model
    >>> t_reduce = grid_all_reduce_time(16, 1e-6)
    >>> round(1e3 * toy_latency(load_model("Llama 3 70B"), load_chip("H100"), 16, 32, t_reduce), 2)
    4.59
    """
    return network_time(model, t_reduce) + maximum(
        weight_time(model, chip, n_gpu), arithmetic_time(model, chip, n_gpu, batch)
    )


@equation(unit="s", n_gpu="1 > 0", t_reduce="s")
def prefetched_latency(model, chip, n_gpu, batch, t_reduce):
    """Equation 3 if GPUs kept reading while they wait: an upper bound on shortcoming (1) of section 2.2."""
    # multiplying cannot continue, because its inputs are what the GPUs wait for
    multiplied = network_time(model, t_reduce) + arithmetic_time(model, chip, n_gpu, batch)
    return maximum(weight_time(model, chip, n_gpu), multiplied)


@equation("4", unit="s", n_gpu="1 > 0", batch="1 > 0", t_reduce="s")
def toy_gpu_seconds(model, chip, n_gpu, batch, t_reduce):
    """GPU seconds per token of one tensor-parallel instance, all its GPUs counted."""
    return n_gpu / batch * toy_latency(model, chip, n_gpu, batch, t_reduce)


@equation("9", unit="s", n_gpu="1 > 0", t_hop="s")
def critical_latency(model, chip, n_gpu, t_hop=ToyAssumptions.t_hop):
    """Time per token at the critical batch, where reading and multiplying take equally long."""
    return network_time(model, grid_all_reduce_time(n_gpu, t_hop)) + weight_time(model, chip, n_gpu)


@equation("13", least=Minimum(critical_latency, "n_gpu", place=True), t_hop="s > 0")
def optimal_n_gpu(model, chip, t_hop=ToyAssumptions.t_hop):
    """GPUs of the fastest instance, as a real number of at least 1."""
    return cbrt(maximum(weight_time(model, chip, 1) / network_time(model, t_hop), 1)) ** 2


@equation("14", least=Minimum(critical_latency, "n_gpu"), unit="s", t_hop="s")
def minimum_latency(model, chip, t_hop=ToyAssumptions.t_hop):
    """Time per token of the fastest instance: 3 hops^(2/3) reading^(1/3) - 2 hops."""
    reading = weight_time(model, chip, 1)
    hops = network_time(model, t_hop)
    return where(reading > hops, 3 * cbrt(hops) ** 2 * cbrt(reading) - 2 * hops, reading + 0 * hops)


@equation("15", unit="s", t_hop="s > 0")
def cost_at_minimum_latency(model, chip, t_hop=ToyAssumptions.t_hop):
    """GPU seconds per token of the fastest instance, run at the critical batch."""
    size = optimal_n_gpu(model, chip, t_hop)
    return size / critical_batch(model, chip) * minimum_latency(model, chip, t_hop)


@equation("18", form="approximation", unit="s", t_hop="s")
def minimum_latency_large(model, chip, t_hop=ToyAssumptions.t_hop):
    """Time per token of the fastest instance in the limit of a large one: equation 14's first term."""
    return 3 * cbrt(network_time(model, t_hop)) ** 2 * cbrt(weight_time(model, chip, 1))


@equation("19", form="approximation", unit="s", known_params="1 > 0", known_latency="s")
def square_root_law(n_params, known_params, known_latency):
    """Time per token of a dense model, scaled from a known one with the square root of the parameters."""
    return known_latency * sqrt(n_params / known_params)


@equation(unit="1/s", latency="s > 0")
def throughput(batch, latency):
    """Tokens per second of an instance; the frontier keeps it within the demand of all users."""
    return batch / latency


def toy_fits(model, chip, n_gpu, batch, context):
    """Whether the weights and the KV cache of the whole batch fit into the instance's memory."""
    needed = model.weight_bytes * model.n_params + model.cache_bytes * context * batch
    return n_gpu * chip.memory_capacity >= needed


def stages(model, chip, n_gpu, batch, t_reduce):
    """The terms of :func:`toy_latency` as the stages of a breakdown: network, then reading over arithmetic."""
    network = network_time(model, t_reduce)
    reading = weight_time(model, chip, n_gpu)
    multiplying = arithmetic_time(model, chip, n_gpu, batch)
    return {"network": network}, {"weights": reading, "arithmetic": multiplying}


@decode_model("erdil2025")
def toy_decode_step(
    model: Transformer | Model,
    system,
    workload,
    layout=None,
    assumptions: ToyAssumptions | None = None,
):
    """The toy model's answer to one question: time per token on a given system.

    It knows the weights, the arithmetic and the hops of the all-reduces of one tensor-parallel instance; it
    does not know the KV cache, other layouts, or the network's bandwidth.

    ``workload``: its batch and formats are used; an erdil2025 Model brings its own format. ``layout``: only a
    tensor-parallel one over the whole system is described; another answers n/a. Returns terms ``network``, then
    ``weights`` and ``arithmetic``, which overlap.
    """
    if getattr(model, "sparse", False):
        raise NotDescribed("the toy model describes dense models only")
    model = load_model(model, workload.weights, workload.cache)
    if layout is not None and (layout.tp != system.count or layout.pp * layout.ep * layout.dp != 1):
        raise NotDescribed("the toy model describes one tensor-parallel instance only")
    at = model, system.chip, system.count, workload.batch, workload.context
    if system.memory is not None and not toy_fits(*at):
        raise DoesNotFit(f"weights and cache do not fit into the memory of {system}")
    assumptions = assumptions or ToyAssumptions()
    model, chip = assumptions.applied_to(model, system.chip)
    t_reduce = assumptions.t_base + grid_all_reduce_time(system.count, assumptions.t_hop)
    return stages(model, chip, system.count, workload.batch, t_reduce)
