"""LIMINAL 2025: the limit of decode, from bytes, FLOP and collectives (equations 1 to 8).

A step reads what it needs from memory while it computes, then waits for the chips to agree, once or several times in
each layer. The equations see a chip as an :class:`XPU` and a model as an :class:`Application`, sums over its layers.
All chips of a tensor-parallel domain share every operator evenly.
"""

from inferlib.ops import floor, maximum, minimum, where
from inferlib.papers.liminal2025.records import PRINTED, equation

# --- Sections 2.3 and 2.4: what a step needs -------------------------------------------------------------


@equation(unit="B")
def cache_size(application, context, assumptions=PRINTED):
    """Bytes of the cache of one sequence. Local layers keep no more than their window; as printed there are none."""
    local = application.local_cache * minimum(context, application.window)
    return assumptions.cache_bytes * (application.cache * context + local)


@equation(unit="B")
def stored_weights(application, assumptions=PRINTED):
    """Bytes of all weights, every routed expert included."""
    experts = application.n_experts * application.expert
    return assumptions.weight_bytes * (application.resident + experts)


@equation(unit="B")
def capacity_needed(application, batch, context, assumptions=PRINTED):
    """Bytes that weights and caches of a batch occupy: the capacity of Table 4."""
    return stored_weights(application, assumptions) + batch * cache_size(application, context, assumptions)


@equation()
def active_experts(application, batch):
    """Routed experts of a layer that a batch is expected to reach if all are equally likely: E (1 - (1 - k/E)^B).

    Section 2.4 estimates it by a Monte-Carlo simulation; this is what that converges to.
    """
    return application.n_experts * (1 - (1 - application.routed_share) ** batch)


@equation()
def expert_evaluations(application, batch):
    """Evaluations of one routed expert in a layer: k for each token, as the tables need."""
    return batch * application.n_experts * application.routed_share


@equation(unit="FLOP")
def attention_work(application, context):
    """Tensor FLOP of one token's attention over its context."""
    local = application.local_pair_flops * minimum(context, application.window)
    return application.pair_flops * context + local


@equation(unit="FLOP")
def tensor_work(application, batch, context, assumptions=PRINTED):
    """Tensor FLOP of one step: two for each weight that a token is multiplied with, and attention."""
    matrices = assumptions.flop_per_weight * application.used
    experts = assumptions.flop_per_weight * application.expert
    tokens = batch * (matrices + attention_work(application, context))
    return tokens + experts * expert_evaluations(application, batch)


@equation(unit="FLOP")
def scalar_work(application, batch, context, assumptions=PRINTED):
    """Scalar FLOP of one step: ``scalar_ops`` for each attention score. The tables need none."""
    local = application.local_scores * minimum(context, application.window)
    return assumptions.scalar_ops * batch * (application.scores * context + local)


@equation(unit="B")
def bytes_loaded(application, batch, context, assumptions=PRINTED):
    """Bytes that one step loads: weights, once for the batch, and every cache."""
    experts = application.expert * active_experts(application, batch)
    weights = assumptions.weight_bytes * (application.loaded + experts)
    return weights + batch * cache_size(application, context, assumptions)


@equation(unit="FLOP/B")
def arithmetic_intensity(application, batch, context, assumptions=PRINTED):
    """FLOP for each byte loaded: AMI of Table 4."""
    at = application, batch, context, assumptions
    return (tensor_work(*at) + scalar_work(*at)) / bytes_loaded(*at)


# --- Equations 1 to 8: how long it takes -----------------------------------------------------------------


@equation("2", unit="s", n="1 > 0")
def compute_time(application, chip, batch, context, n, assumptions=PRINTED):
    """Seconds of arithmetic in one step: F / (N FLOPS), tensor and scalar engine one after the other."""
    tensor = tensor_work(application, batch, context, assumptions) / (n * chip.flops)
    return tensor + scalar_work(application, batch, context, assumptions) / (n * chip.scalar_flops)


@equation("3", unit="s", n="1 > 0")
def memory_time(application, chip, batch, context, n, assumptions=PRINTED):
    """Seconds in which n chips load what one step needs: M / (N BW)."""
    return bytes_loaded(application, batch, context, assumptions) / (n * chip.bandwidth)


@equation("6", unit="s", n="1 > 0")
def expert_compute_time(application, chip, batch, n, assumptions=PRINTED):
    """The part of :func:`compute_time` that belongs to routed experts: F_expert A / (N FLOPS).

    F_expert must be the arithmetic of all tokens that come to an expert: the tables need k B evaluations, not one for
    each expert reached.
    """
    work = assumptions.flop_per_weight * application.expert
    return work * expert_evaluations(application, batch) / (n * chip.flops)


@equation("7", unit="s", n="1 > 0")
def expert_memory_time(application, chip, batch, n, assumptions=PRINTED):
    """The part of :func:`memory_time` that belongs to routed experts: M_expert A / (N BW)."""
    each = assumptions.weight_bytes * application.expert
    return each * active_experts(application, batch) / (n * chip.bandwidth)


@equation(unit="s")
def collective_latency(n, assumptions=PRINTED):
    """Latency of one collective among n chips, at most ``radix``: on the chip, through the switch, and the transfer.

    A switch of ``radix`` ports gives each of n chips ``radix / n`` links. Section 3 prints the ingredients and two
    results, not the sum; that the payload goes up one link and comes down another is inferred from them.

    Examples
    --------
    >>> [round(collective_latency(n) * 1e9, 2) for n in (8, 128)]
    [438.15, 1010.35]
    """
    transfer = assumptions.crossings * assumptions.payload * n / (assumptions.radix * assumptions.link)
    return assumptions.on_chip + assumptions.switch + transfer


@equation()
def collectives(application, n, assumptions=PRINTED):
    """Collectives of one step on n chips: S_N of every layer, summed (section 2.4); none on one chip."""
    split = where(n <= application.kv_heads, assumptions.within_heads, assumptions.beyond_heads)
    attention = application.head_layers * split + application.latent_layers * assumptions.latent_collectives
    dense = application.dense_layers * assumptions.dense_collectives
    everything = attention + dense + application.moe_layers * assumptions.moe_collectives
    return where(n > 1, everything, 0.0 * everything)


@equation("4", unit="s", t_tp="s")
def exposed_time(application, n, stages=1, t_tp=None, assumptions=PRINTED):
    """Seconds in which neither memory nor arithmetic works: T_TP S_N L + T_PP P.

    A pipeline of one stage has no hop: with one, cells of every table would print otherwise. Without ``t_tp`` it is the
    :func:`collective_latency` of the chips, here and in equations 1 and 5.

    Examples
    --------
    Chips, switches and stages without latency exchange nothing in no time:

    >>> from inferlib.papers.liminal2025 import Assumptions, load_model
    >>> ideal = Assumptions(on_chip=0, switch=0, payload=0, t_stage=0, free_stages=0)
    >>> collective_latency(128, ideal), exposed_time(load_model("Llama3-70B"), 128, 80, 0, ideal)
    (0.0, 0.0)
    """
    t_tp = collective_latency(n, assumptions) if t_tp is None else t_tp
    hops = maximum(stages - assumptions.free_stages, 0)
    return t_tp * collectives(application, n, assumptions) + assumptions.t_stage * hops


@equation("1", unit="s", n="1 > 0", t_tp="s")
def batch_time(
    application,
    chip,
    batch,
    context,
    n,
    stages=1,
    t_tp=None,
    assumptions=PRINTED,
):
    """Seconds of one step: max(T_Compute, T_Mem) + T_Exposed."""
    at = application, chip, batch, context, n, assumptions
    overlapped = maximum(compute_time(*at), memory_time(*at))
    return overlapped + exposed_time(application, n, stages, t_tp, assumptions)


@equation("5", unit="1/s", n="1 > 0", t_tp="s")
def user_speed(
    application,
    chip,
    batch,
    context,
    n,
    stages=1,
    t_tp=None,
    assumptions=PRINTED,
):
    """UTPS, tokens per second that one user sees: 1 / T_Batch.

    Examples
    --------
    >>> from inferlib.papers.liminal2025 import load_chip, load_model
    >>> llama = load_model("Llama3-70B")
    >>> round(user_speed(llama, load_chip("HBM3"), 1, 4096, 8))
    491
    """
    return 1 / batch_time(application, chip, batch, context, n, stages, t_tp, assumptions)


@equation("5", unit="1/s", n="1 > 0", t_tp="s")
def system_speed(
    application,
    chip,
    batch,
    context,
    n,
    stages=1,
    t_tp=None,
    assumptions=PRINTED,
):
    """STPS, tokens per second of the whole system, with a batch in every stage: B P / T_Batch."""
    return stages * batch / batch_time(application, chip, batch, context, n, stages, t_tp, assumptions)


@equation(unit="s", t_layer="s")
def measured_overhead(application, t_layer):
    """Seconds exposed in all layers, each with its measured ``t_layer``."""
    return t_layer * application.layers


@equation("8", unit="s", n="1 > 0", t_layer="s")
def real_time(application, chip, batch, context, n, t_layer, assumptions=PRINTED):
    """Seconds of one step on a server that exists: max(T_Compute, T_Mem) + T_Exposed,Real L."""
    at = application, chip, batch, context, n, assumptions
    return maximum(compute_time(*at), memory_time(*at)) + measured_overhead(application, t_layer)


# --- What fits -------------------------------------------------------------------------------------------


@equation(context="1 > 0")
def batch_room(application, chip, context, n, assumptions=PRINTED):
    """Sequences for whose caches n chips have room beside all weights; negative where weights do not fit."""
    left = n * chip.capacity - stored_weights(application, assumptions)
    return left / cache_size(application, context, assumptions)


def largest_batch(application, chip, context, n, assumptions=PRINTED):
    """The largest whole batch that fits, or None where not even one sequence does.

    Examples
    --------
    >>> from inferlib.papers.liminal2025 import load_chip, load_model
    >>> largest_batch(load_model("DeepSeekV3"), load_chip("HBM3"), 4096, 128)
    86855
    """
    fitting = int(floor(float(batch_room(application, chip, context, n, assumptions))))
    return fitting if fitting >= 1 else None


# --- Appendix A: power -----------------------------------------------------------------------------------


@equation(unit="W", memory_power="W")
def chip_power(memory_power, assumptions=PRINTED):
    """Watts of one chip with its memory and its share of a server. What memories draw is not printed."""
    die = assumptions.power_per_mm2 * assumptions.die_area
    return die + memory_power + assumptions.server_power / assumptions.server_chips


@equation(unit="1/s/W", speed="1/s", n="1 > 0", stages="1 > 0", memory_power="W")
def power_efficiency(speed, n, stages, memory_power, assumptions=PRINTED):
    """STPS/W: tokens per second and watt of a whole system."""
    return speed / (n * stages * chip_power(memory_power, assumptions))
