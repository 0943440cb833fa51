"""Erdil 2025: closed forms that the complete model implies in its limits."""

from functools import partial

from inferlib.equation import equation
from inferlib.papers.erdil2025.equations.model import ALL_REDUCE, collective_latency
from inferlib.papers.erdil2025.equations.printed import extra_all_reduce_time
from inferlib.papers.erdil2025.records import GPU, Model, Protocol
from inferlib.papers.erdil2025.shape import Shape
from inferlib.system import Accelerator

equation = partial(equation, "erdil2025", chapter="erdil2025_model")


@equation(unit="FLOP/B", flop_per_pair="FLOP")
def long_context_intensity(shape: Shape, flop_per_pair):
    """FLOP per byte of cache at very long context (section 4.3): 2 g over the bytes of an activation."""
    return flop_per_pair * shape.group_size / (2 * shape.activation_bytes)


@equation(unit="s")
def cache_read_time(model: Model, chip: Accelerator, context):
    """GPU seconds that reading the cache of one sequence takes (section 4.3: times the rent, its price)."""
    return model.cache_bytes * context / chip.memory_bandwidth


@equation(unit="s")
def node_all_reduce_latency(protocol: Protocol, n_gpu):
    """Latency of an all-reduce over the GPUs of one node (equation 23)."""
    return collective_latency(protocol, n_gpu, 1, ALL_REDUCE)


@equation(n_gpu="1 > 0")
def network_batch(shape: Shape, chip: GPU, protocol: Protocol, n_gpu):
    """The batch at which an all-reduce inside a node moves bytes for as long as it waits."""
    return node_all_reduce_latency(protocol, n_gpu) / extra_all_reduce_time(shape, chip, protocol, n_gpu, 1)
