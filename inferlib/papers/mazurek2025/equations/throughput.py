"""Mazurek & Schreiber 2025, section 3.5: from the parts to the whole. Equations 46 to 51."""

from functools import partial

from inferlib.equation import equation
from inferlib.ops import maximum
from inferlib.papers.mazurek2025.equations import flops, memory, network
from inferlib.papers.mazurek2025.records import DEFAULT, GPU, Assumptions, Deployment, Model

equation = partial(equation, "mazurek2025")


# --- The printed frame -----------------------------------------------------------------------------------


@equation("46", unit="s", t_memory="s", t_arithmetic="s")
def attention_bottleneck(t_memory, t_arithmetic):
    """Time of attention: memory and arithmetic overlap."""
    return maximum(t_memory, t_arithmetic)


@equation("47", unit="s", t_memory="s", t_arithmetic="s")
def expert_bottleneck(t_memory, t_arithmetic):
    """Time of the experts: memory and arithmetic overlap. (The number 46 stands beside this line too.)"""
    return maximum(t_memory, t_arithmetic)


@equation("48", unit="s", t_attention="s", t_experts="s", t_network="s")
def serial_time(t_attention, t_experts, t_network):
    """One pass without two-batch overlap: attention, experts and network one after the other."""
    return t_attention + t_experts + t_network


@equation("49", unit="s", t_attention="s", t_experts="s", t_network="s")
def overlapped_time(t_attention, t_experts, t_network):
    """One pass with two-batch overlap: each half computes while the other communicates."""
    return 2 * maximum(t_attention + t_experts, t_network)


@equation(unit="s", t_attention="s", t_experts="s", t_network="s")
def section_3_time(t_attention, t_experts, t_network):
    """What section 3 prints for a pass with overlap: without the factor 2 and the halved batch of equation 49."""
    return maximum(t_attention + t_experts, t_network)


@equation("50", unit="1/s", t_total="s > 0")
def request_speed(t_total):
    """Tokens per second of one request, from the seconds of one pass."""
    return 1 / t_total


@equation("51", unit="1/s", t_total="s > 0", batch="1")
def global_throughput(t_total, batch):
    """Tokens per second of all requests, from the seconds of one pass and the global batch."""
    return batch / t_total


# --- Its parts with the inefficiencies -------------------------------------------------------------------


@equation(unit="s", batch="1", context="1")
def attention_memory_time(
    model: Model, gpu: GPU, deployment: Deployment, batch, context, assumptions: Assumptions = DEFAULT
):
    """Time that attention's memory traffic takes on one GPU."""
    traffic = memory.attention_traffic(model, deployment, batch, context, assumptions)
    return assumptions.memory_inefficiency * traffic / gpu.memory_bandwidth


@equation(unit="s", batch="1", context="1")
def attention_arithmetic_time(
    model: Model, gpu: GPU, deployment: Deployment, batch, context, assumptions: Assumptions = DEFAULT
):
    """Time that absorbed attention's arithmetic takes on one GPU; as :func:`attention_memory_time`."""
    own = batch / deployment.n_gpus
    work = model.n_layers * flops.absorbed_decode_flops(model, own, context, assumptions)
    loss = assumptions.attention_inefficiency * assumptions.arithmetic_penalty
    return loss * work / gpu.bf16_flops


@equation(unit="s", batch="1", context="1")
def attention_time(
    model: Model, gpu: GPU, deployment: Deployment, batch, context, assumptions: Assumptions = DEFAULT
):
    """Time of all attention of a pass; arguments and result as in :func:`attention_memory_time`."""
    return attention_bottleneck(
        attention_memory_time(model, gpu, deployment, batch, context, assumptions),
        attention_arithmetic_time(model, gpu, deployment, batch, context, assumptions),
    )


@equation(unit="s", batch="1")
def expert_memory_time(
    model: Model, gpu: GPU, deployment: Deployment, batch, assumptions: Assumptions = DEFAULT
):
    """Time that the memory traffic of experts, dense layers and embeddings takes on the fullest GPU."""
    traffic = memory.expert_traffic(model, deployment, batch, assumptions)
    return assumptions.memory_inefficiency * traffic / gpu.memory_bandwidth


@equation(unit="s", batch="1")
def expert_arithmetic_time(
    model: Model, gpu: GPU, deployment: Deployment, batch, assumptions: Assumptions = DEFAULT
):
    """Time that the experts' arithmetic takes on the fullest GPU.

    The source forgets dense layers and the head; ``all_flops`` counts them, at the FP8 peak.
    """
    work = model.n_expert_layers * flops.moe_flops_on_gpu(model, deployment, batch, assumptions)
    if assumptions.all_flops:
        work = work + flops.dense_flops(model, batch / deployment.n_gpus, assumptions)
    loss = assumptions.expert_inefficiency * assumptions.arithmetic_penalty
    return loss * work / gpu.fp8_flops


@equation(unit="s", batch="1")
def expert_time(model: Model, gpu: GPU, deployment: Deployment, batch, assumptions: Assumptions = DEFAULT):
    """Time of everything that is not attention or network, on the fullest GPU."""
    return expert_bottleneck(
        expert_memory_time(model, gpu, deployment, batch, assumptions),
        expert_arithmetic_time(model, gpu, deployment, batch, assumptions),
    )


@equation(unit="s")
def overhead_time(model: Model, assumptions: Assumptions = DEFAULT):
    """What the layers of one micro-batch cost beyond work: kernels without work, launches (not in the source)."""
    return model.n_layers * assumptions.overhead


def step_time(
    model: Model, gpu: GPU, deployment: Deployment, batch, context, assumptions: Assumptions = DEFAULT
):
    """Time of one pass: from one token of every sequence to the next.

    It puts equations 46 to 49 together.

    Parameters
    ----------
    model : Model
    gpu : GPU
    deployment : Deployment
        ``two_batch`` chooses between equations 48 and 49.
    batch : float or array
        Sequences on all GPUs together.
    context : float or array
        Tokens behind each sequence.
    assumptions : Assumptions

    Returns
    -------
    same kind as ``batch`` and ``context``
        Seconds.

    Examples
    --------
    >>> from inferlib.papers.mazurek2025 import model_of, setup
    >>> at = setup("9x8 H100")
    >>> t = step_time(model_of("DeepSeek V3"), at.gpu, at.deployment, 72 * 128, 4989)
    >>> f"{1e3 * t:.1f} ms, {128 / t:.0f} tokens/s for each GPU"
    '60.6 ms, 2112 tokens/s for each GPU'
    """
    part = batch / 2 if deployment.two_batch else batch
    attention = attention_time(model, gpu, deployment, part, context, assumptions)
    experts = expert_time(model, gpu, deployment, part, assumptions)
    on_network = network.network_time(model, gpu, deployment, part, assumptions)
    overhead = overhead_time(model, assumptions)
    if assumptions.overhead_hidden:
        experts, overhead = experts + overhead, 0 * overhead
    if deployment.two_batch:
        return overlapped_time(attention, experts, on_network) + 2 * overhead
    return serial_time(attention, experts, on_network) + overhead


def gpu_throughput(
    model: Model, gpu: GPU, deployment: Deployment, batch, context, assumptions: Assumptions = DEFAULT
):
    """Tokens per second of one GPU: equation 51 over the GPUs. Arguments as in :func:`step_time`."""
    total = step_time(model, gpu, deployment, batch, context, assumptions)
    return global_throughput(total, batch) / deployment.n_gpus


@equation(unit="s", context="1")
def prefill_time(model: Model, gpu: GPU, context, assumptions: Assumptions = DEFAULT):
    """Time of attention's arithmetic for one prompt on one GPU, vanilla: compute-bound, as section 4 says.

    Seconds of all layers.
    """
    work = model.n_layers * flops.vanilla_prefill_flops(model, 1, context, assumptions)
    loss = assumptions.attention_inefficiency * assumptions.arithmetic_penalty
    return loss * work / gpu.bf16_flops
