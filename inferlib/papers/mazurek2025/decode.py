"""Mazurek & Schreiber 2025: one decode step by named terms, and whether it fits."""

from functools import partial
from numbers import Real

from inferlib.ops import maximum
from inferlib.papers.mazurek2025.equations import experts, memory, network, throughput
from inferlib.papers.mazurek2025.records import (
    DEFAULT,
    Assumptions,
    Deployment,
    Model,
    balancedness,
    chip_of,
    model_of,
    not_described,
)
from inferlib.system import Breakdown, Layout, System, Workload, format_bytes
from inferlib.transformer import Transformer


def stages(model, gpu, deployment, batch, context, assumptions=DEFAULT):
    """The terms of :func:`step_time` as the stages of a breakdown; their total is that time.

    Parameters
    ----------
    model : Model
    gpu : GPU
    deployment : Deployment
    batch, context : float, array or sympy.Expr
        Sequences on all GPUs together, and tokens behind each.
    assumptions : Assumptions

    Returns
    -------
    tuple of dict
        Attention: its memory traffic by part, beside its arithmetic. Then experts: the same. Then the
        network, as far as computation does not hide it, and overhead where it is charged.
    """
    turns = 2 if deployment.two_batch else 1
    part, own = batch / turns, batch / turns / deployment.n_gpus

    def reading(traffic):
        return turns * assumptions.memory_inefficiency * traffic / gpu.memory_bandwidth

    loaded = experts.loaded_experts(model, deployment, part, assumptions)
    attention = {
        "memory": {
            "attention weights": reading(memory.attention_weights(model, assumptions)),
            "cache": reading(memory.cache_traffic(model, own, context, assumptions)),
            "attention activations": reading(memory.attention_activations(model, own, assumptions)),
        },
        "attention arithmetic": turns
        * throughput.attention_arithmetic_time(model, gpu, deployment, part, context, assumptions),
    }
    others = memory.dense_weights(model, assumptions) + memory.embedding_weights(model, assumptions)
    expert = {
        "memory": {
            "expert weights": reading(memory.experts_on_gpu(model, loaded, assumptions)),
            "dense layers and embeddings": reading(others),
            "expert activations": reading(memory.expert_activations(model, deployment, part, assumptions)),
        },
        "expert arithmetic": turns
        * throughput.expert_arithmetic_time(model, gpu, deployment, part, assumptions),
    }
    on_network = turns * network.network_time(model, gpu, deployment, part, assumptions)
    overhead = turns * throughput.overhead_time(model, assumptions)
    if deployment.two_batch:
        computing = turns * (
            throughput.attention_time(model, gpu, deployment, part, context, assumptions)
            + throughput.expert_time(model, gpu, deployment, part, assumptions)
        )
        if assumptions.overhead_hidden:
            computing = computing + overhead
        rest = {"network not hidden": maximum(on_network - computing, 0)}
    else:
        rest = {"network": on_network}
    if isinstance(assumptions.overhead, Real) and assumptions.overhead == 0:
        return attention, expert, rest
    return attention, expert, rest, {"overhead": overhead}


def fits(model, gpu, deployment, batch, context, assumptions=DEFAULT):
    """Why a point does not fit into memory; an empty text if it does, or where the memory is not known.

    The source leaves this open on purpose (end of section 3.5). Weights are those of the experts a GPU holds;
    activations and the space that software takes are left out.

    Examples
    --------
    >>> from inferlib.papers.mazurek2025 import setup
    >>> at = setup("4x8 H100")
    >>> fits(model_of("DeepSeek V3"), at.gpu, at.deployment, 32 * 64, 4989)
    ''
    >>> fits(model_of("DeepSeek V3"), at.gpu, at.deployment, 32 * 512, 4989)
    'weights of 38 GB and a cache of 180 GB exceed the 80 GB of one GPU'
    """
    if gpu.memory_capacity is None:
        return ""
    weights, cache = held_on_gpu(model, deployment, batch, context, assumptions)
    if not isinstance(weights + cache, Real) or weights + cache <= gpu.memory_capacity:
        return ""
    size, what = gpu.memory_capacity / 1e9, f"weights of {weights / 1e9:.0f} GB"
    if weights <= gpu.memory_capacity:
        what = f"{what} and a cache of {cache / 1e9:.0f} GB"
    return f"{what} exceed the {size:.0f} GB of one GPU"


def decode_step(model, system, workload, layout=None, assumptions=DEFAULT, *, two_batch=True):
    """One token for every sequence of a batch, on GPUs that share the experts and repeat the attention.

    Parameters
    ----------
    model : Transformer or Model
        A mixture of experts with latent attention; the source says nothing of others.
    system : System
        Its domains are the source's nodes. Experts are balanced as Figure 12 shows for so many GPUs, with as
        few copies as make every GPU hold equally many.
    workload : Workload
        Batch of all GPUs together, context and formats.
    layout : Layout, optional
        The source knows one: ``Layout(ep=system.count)``, its attention data-parallel (``dp`` may say so).
    assumptions : Assumptions
    two_batch : bool
        Whether two halves of the batch overlap computation and network, as in equations 49 to 51.

    Returns
    -------
    Breakdown
        Stages as in :func:`stages`; ``infeasible`` where weights and cache exceed the memory, ``n/a`` where
        the source says nothing.

    Raises
    ------
    TypeError
        If an argument is not of the class named above.

    Examples
    --------
    >>> import inferlib
    >>> rack = inferlib.System(inferlib.load_chip("GB200 NVL72"), 72)
    >>> step = decode_step(
    ...     inferlib.load_model("DeepSeek V3"), rack, inferlib.Workload(72 * 128, 4096, weights="fp8")
    ... )
    >>> f"{1e3 * step.total:.1f} ms, bound by {step.binding}"
    '23.4 ms, bound by cache'
    """
    for name, value, kinds in (
        ("model", model, (Transformer, Model)),
        ("system", system, (System,)),
        ("workload", workload, (Workload,)),
        ("layout", layout, (Layout, type(None))),
        ("assumptions", assumptions, (Assumptions,)),
    ):
        if not isinstance(value, kinds):
            raise TypeError(f"{name} is a {type(value).__name__}, but must be a {kinds[0].__name__}")
    if not isinstance(two_batch, bool):
        raise TypeError(f"two_batch is {two_batch!r}, but must be True or False")
    call = partial(decode_step, two_batch=two_batch)
    answer = partial(
        Breakdown, source="mazurek2025", origin=(call, model, system, workload, layout, assumptions)
    )
    reason = not_described(model) if isinstance(model, Transformer) else ""
    if not reason and layout is not None and not _described(layout, system.count):
        reason = f"the source spreads experts over all {system.count} GPUs and repeats attention on each"
    counted = isinstance(system.count, Real)  # symbols are taken to be whole nodes
    if not reason and counted and system.count % system.domain:
        reason = (
            f"the source's nodes are equal, and {system.count} GPUs are not a multiple of {system.domain}"
        )
    across = not counted or system.count > system.domain
    if not reason and across and system.chip.scale_out_bandwidth is None:
        reason = f"{system.chip.name} states no bandwidth from one node to another"
    try:
        gpu = chip_of(system.chip)
    except ValueError as error:
        reason = reason or str(error)
    if reason:
        return answer(status="n/a", reason=reason)
    at = _at(model, gpu, system, workload, assumptions, two_batch)
    reason = fits(*at)
    if reason:
        return answer(status="infeasible", reason=reason)
    return answer(stages(*at))


def _at(model, gpu, system, workload, assumptions, two_batch):
    """A question in the source's records: the arguments of :func:`stages` and :func:`fits`."""
    model = model_of(model)
    extra = (-model.n_routed) % system.count
    nodes = system.count // system.domain
    where = Deployment(system.count, nodes, balancedness(system.count), extra, two_batch)
    assumptions = assumptions.replace(
        weight_bytes=format_bytes(workload.weights), cache_value_bytes=format_bytes(workload.cache)
    )
    return model, gpu, where, workload.batch, workload.context, assumptions


def memory_left(model, system, workload, assumptions=DEFAULT):
    """Bytes left on each GPU beside its weights and its part of the cache; negative where it does not fit.

    Parameters are those of :func:`decode_step`; numbers or symbols.
    """
    gpu = chip_of(system.chip)
    model, _, *rest = _at(model, gpu, system, workload, assumptions, True)
    weights, cache = held_on_gpu(model, *rest)
    return gpu.memory_capacity - weights - cache


def held_on_gpu(model, deployment, batch, context, assumptions=DEFAULT):
    """Bytes of weights, and of cache, on one GPU; arguments as of :func:`stages`.

    Returns
    -------
    tuple
        Weights of attention, of the experts that the GPU holds and of the rest; the cache of its sequences.
    """
    weights = memory.weights_on_gpu(model, experts.held_experts(model, deployment), assumptions)
    return weights, batch / deployment.n_gpus * context * memory.cache_per_token(model, assumptions)


def _described(layout, count):
    return (layout.tp, layout.pp) == (1, 1) and layout.ep == count and layout.dp in (1, count)
