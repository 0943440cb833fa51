"""Mazurek & Schreiber 2025: one decode step by named terms, and whether it fits."""

from numbers import Real

from inferlib.ops import maximum
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.records import (
    PRINTED,
    Deployment,
    Model,
    balancedness,
    load_chip,
    load_model,
    not_described,
)
from inferlib.system import DoesNotFit, NotDescribed, bytes_of_formats, decode_model
from inferlib.transformer import Transformer


def stages(model, gpu, deployment, batch, context, assumptions=PRINTED):
    """Return the terms of :func:`step_time` as the stages of a breakdown; their total is that time.

    Attention comes first: its memory traffic by part, beside its arithmetic. Then the experts likewise. Then the
    network, unless computation hides it, and overhead if it is charged.
    """
    turns = 2 if deployment.two_batch else 1
    part = batch / turns
    own = batch / turns / deployment.n_gpus
    half = model, gpu, deployment, part

    def reading(traffic):
        return turns * assumptions.memory_inefficiency * traffic / gpu.memory_bandwidth

    loaded = eq.loaded_experts(model, deployment, part, assumptions)
    others = eq.dense_weights(model, assumptions) + eq.embedding_weights(model, assumptions)
    attention = {
        "memory": {
            "attention weights": reading(eq.attention_weights(model, assumptions)),
            "cache": reading(eq.cache_traffic(model, own, context, assumptions)),
            "attention activations": reading(eq.attention_activations(model, own, assumptions)),
        },
        "attention arithmetic": turns * eq.attention_arithmetic_time(*half, context, assumptions),
    }
    experts = {
        "memory": {
            "expert weights": reading(eq.experts_on_gpu(model, loaded, assumptions)),
            "dense layers and embeddings": reading(others),
            "expert activations": reading(eq.expert_activations(model, deployment, part, assumptions)),
        },
        "expert arithmetic": turns * eq.expert_arithmetic_time(*half, assumptions),
    }
    network = eq.network_time(*half, assumptions)
    rest = {"network": network}
    if deployment.two_batch:
        computing = eq.attention_time(*half, context, assumptions) + eq.expert_time(*half, assumptions)
        rest = {"network not hidden": turns * maximum(network - computing, 0)}
    if isinstance(assumptions.overhead, Real) and assumptions.overhead == 0:
        return attention, experts, rest
    return attention, experts, rest, {"overhead": turns * eq.overhead_time(model, assumptions)}


def fits(model, gpu, deployment, batch, context, assumptions=PRINTED):
    """Why a point does not fit into memory; an empty text if it does, or where the memory is not known.

    The source leaves this open on purpose (end of section 3.5). Weights are those of the experts a GPU holds;
    activations and the space that software takes are left out.
    """
    if gpu.memory_capacity is None:
        return ""
    weights, cache = held_on_gpu(model, deployment, batch, context, assumptions)
    if not isinstance(weights + cache, Real) or weights + cache <= gpu.memory_capacity:
        return ""
    size = gpu.memory_capacity / 1e9
    what = f"weights of {weights / 1e9:.0f} GB"
    if weights <= gpu.memory_capacity:
        what = f"{what} and a cache of {cache / 1e9:.0f} GB"
    return f"{what} exceed the {size:.0f} GB of one GPU"


@decode_model("mazurek2025")
def decode_step(
    model: Transformer | Model,
    system,
    workload,
    layout=None,
    assumptions=PRINTED,
    *,
    two_batch: bool = True,
):
    """One token for every sequence of a batch, on GPUs that share the experts and repeat the attention.

    ``model``: a mixture of experts with latent attention; the source says nothing of others. ``system``: its
    domains are the source's nodes. Experts are balanced as Figure 12 shows for this number of GPUs, with as few copies
    as make every GPU hold equally many. ``workload``: batch of all GPUs together, context and formats.
    ``layout``: the source knows one: ``Layout(ep=system.count)``, its attention data-parallel (``dp`` may say
    so). ``two_batch``: whether two halves of the batch overlap computation and network, as in equations 49 to
    51.

    Returns stages as in :func:`stages`; ``infeasible`` where weights and cache exceed the memory, ``n/a`` where
    the source says nothing.

    Examples
    --------
    >>> import inferlib
    >>> rack = inferlib.System(inferlib.load_chip("GB200 NVL72"), 72)
    >>> step = decode_step(
    ...     inferlib.load_model("DeepSeek V3"), rack, inferlib.Workload(72 * 128, 4096, weights="fp8")
    ... )
    >>> f"{1e3 * step.total:.1f} ms, bound by {step.bottleneck}"
    '23.4 ms, bound by cache'
    """
    count = system.count
    domain = system.domain or system.count
    counted = isinstance(count, Real)  # symbols are taken to be whole nodes
    if isinstance(model, Transformer) and (reason := not_described(model)):
        raise NotDescribed(reason)
    if layout is not None and (
        (layout.tp, layout.pp, layout.ep) != (1, 1, count) or layout.dp not in (1, count)
    ):
        raise NotDescribed(f"the source spreads experts over all {count} GPUs and repeats attention on each")
    if counted and count % domain:
        raise NotDescribed(f"the source's nodes are equal, and {count} GPUs are not a multiple of {domain}")
    if (not counted or count > domain) and system.chip.scale_out_bandwidth is None:
        raise NotDescribed(f"{system.chip.name} states no bandwidth from one node to another")
    at = in_records(model, load_chip(system.chip), system, workload, assumptions, two_batch=two_batch)
    if reason := fits(*at):
        raise DoesNotFit(reason)
    return stages(*at)


def in_records(model, gpu, system, workload, assumptions=PRINTED, *, two_batch=True):
    """Convert a question to the source's records: the arguments of :func:`stages` and :func:`fits`."""
    model = load_model(model)
    extra = (-model.n_routed) % system.count
    nodes = system.count // system.domain
    where = Deployment(system.count, nodes, balancedness(system.count), extra, two_batch)
    bytes_of = bytes_of_formats(weight_bytes=workload.weights, cache_value_bytes=workload.cache)
    return model, gpu, where, workload.batch, workload.context, assumptions.replace(**bytes_of)


def held_on_gpu(model, deployment, batch, context, assumptions=PRINTED):
    """Bytes of weights on one GPU (attention, the experts it holds, the rest), and of its sequences' cache."""
    weights = eq.weights_on_gpu(model, eq.held_experts(model, deployment), assumptions)
    return weights, batch / deployment.n_gpus * context * eq.cache_per_token(model, assumptions)
