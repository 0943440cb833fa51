"""LIMINAL 2025: the limit of decode, from bytes, FLOP and collectives (equations 1 to 8).

A step reads what it needs from memory while it computes, then waits for the chips to agree: once or several
times in each layer. The equations see a model as an :class:`Application`, sums over its layers, and a chip as
an :class:`XPU`. All chips of a tensor-parallel domain share every operator evenly.
"""

from inferlib.ops import ceil, maximum, minimum, where
from inferlib.papers.liminal2025.records import PRINTED, XPU, Application, Assumptions, equation

# --- What a step needs -----------------------------------------------------------------------------------


@equation(unit="B", context="1")
def cache_size(application: Application, context, assumptions: Assumptions = PRINTED):
    """Bytes of the cache of one sequence.

    Local layers keep no more than their window; by default the paper has none.

    Examples
    --------
    >>> from inferlib.papers.liminal2025 import load_model
    >>> cache_size(load_model("Llama3-70B"), 4096) / 2**20
    640.0
    """
    local = application.local_cache * minimum(context, application.window)
    return assumptions.cache_bytes * (application.cache * context + local)


@equation(unit="B")
def stored_weights(application: Application, assumptions: Assumptions = PRINTED):
    """Bytes of all weights, every routed expert included."""
    experts = application.n_experts * application.expert
    return assumptions.weight_bytes * (application.resident + experts)


@equation(unit="B", batch="1", context="1")
def capacity_needed(application: Application, batch, context, assumptions: Assumptions = PRINTED):
    """Bytes that weights and caches of a batch occupy: the capacity of Table 4."""
    return stored_weights(application, assumptions) + batch * cache_size(application, context, assumptions)


@equation(unit="1", batch="1")
def active_experts(application: Application, batch, assumptions: Assumptions = PRINTED):
    """Routed experts of a layer that a batch is expected to reach, if all are equally likely.

    Section 2.4 estimates it by a Monte-Carlo simulation; this is what that converges to.

    Examples
    --------
    >>> from inferlib.papers.liminal2025 import load_model
    >>> deepseek = load_model("DeepSeekV3")
    >>> active_experts(deepseek, 1), round(active_experts(deepseek, 32), 1)
    (8.0, 163.3)
    """
    if assumptions.replacement:
        draws = application.n_experts * application.routed_share * batch
        missed = (1 - 1 / application.n_experts) ** draws
    else:
        missed = (1 - application.routed_share) ** batch
    return application.n_experts * (1 - missed)


@equation(unit="1", batch="1")
def expert_evaluations(application: Application, batch, assumptions: Assumptions = PRINTED):
    """Evaluations of one routed expert in a layer: k for each token, as the tables need.

    With ``distinct_flops`` one for each expert reached, if equation 6 means the arithmetic of a single token.
    """
    if assumptions.distinct_flops:
        return active_experts(application, batch, assumptions)
    return batch * application.n_experts * application.routed_share


@equation(unit="FLOP", context="1")
def attention_work(application: Application, context, assumptions: Assumptions = PRINTED):
    """Tensor FLOP of one token's attention over its context."""
    local = application.local_pair_flops * minimum(context, application.window)
    return application.pair_flops * context + local


@equation(unit="FLOP", batch="1", context="1")
def tensor_work(application: Application, batch, context, assumptions: Assumptions = PRINTED):
    """Tensor FLOP of one step: two for each weight that a token is multiplied with, and attention."""
    matrices = assumptions.flop_per_weight * application.used
    experts = assumptions.flop_per_weight * application.expert
    tokens = batch * (matrices + attention_work(application, context, assumptions))
    return tokens + experts * expert_evaluations(application, batch, assumptions)


@equation(unit="FLOP", batch="1", context="1")
def scalar_work(application: Application, batch, context, assumptions: Assumptions = PRINTED):
    """Scalar FLOP of one step: ``scalar_ops`` for each attention score. The tables need none."""
    local = application.local_scores * minimum(context, application.window)
    return assumptions.scalar_ops * batch * (application.scores * context + local)


@equation(unit="B", batch="1", context="1")
def bytes_loaded(application: Application, batch, context, assumptions: Assumptions = PRINTED):
    """Bytes that one step loads: weights, once for the batch, and every cache."""
    experts = application.expert * active_experts(application, batch, assumptions)
    weights = assumptions.weight_bytes * (application.loaded + experts)
    return weights + batch * cache_size(application, context, assumptions)


@equation(unit="FLOP/B", batch="1", context="1")
def arithmetic_intensity(application: Application, batch, context, assumptions: Assumptions = PRINTED):
    """FLOP for each byte loaded: AMI of Table 4.

    Examples
    --------
    >>> from inferlib.papers.liminal2025 import load_model
    >>> f"{arithmetic_intensity(load_model('Llama3-70B'), 32, 4096):.2f}"
    '52.54'
    """
    work = tensor_work(application, batch, context, assumptions) + scalar_work(
        application, batch, context, assumptions
    )
    return work / bytes_loaded(application, batch, context, assumptions)


# --- How long it takes -----------------------------------------------------------------------------------


@equation("2", unit="s", batch="1", context="1", n="1 > 0")
def compute_time(application: Application, chip: XPU, batch, context, n, assumptions: Assumptions = PRINTED):
    """Seconds of arithmetic in one step on n chips."""
    tensor = tensor_work(application, batch, context, assumptions) / (n * chip.flops)
    return tensor + scalar_work(application, batch, context, assumptions) / (n * chip.scalar_flops)


@equation("3", unit="s", batch="1", context="1", n="1 > 0")
def memory_time(application: Application, chip: XPU, batch, context, n, assumptions: Assumptions = PRINTED):
    """Seconds in which n chips load what one step needs."""
    return bytes_loaded(application, batch, context, assumptions) / (n * chip.bandwidth)


@equation("6", unit="s", batch="1", n="1 > 0")
def expert_compute_time(application: Application, chip: XPU, batch, n, assumptions: Assumptions = PRINTED):
    """The part of :func:`compute_time` that belongs to routed experts.

    Printed as the arithmetic of one expert times the experts reached: that of all tokens which come to it, as the
    tables need (or of a single one, with ``Assumptions.distinct_flops``).
    """
    work = assumptions.flop_per_weight * application.expert
    return work * expert_evaluations(application, batch, assumptions) / (n * chip.flops)


@equation("7", unit="s", batch="1", n="1 > 0")
def expert_memory_time(application: Application, chip: XPU, batch, n, assumptions: Assumptions = PRINTED):
    """The part of :func:`memory_time` that belongs to routed experts."""
    each = assumptions.weight_bytes * application.expert
    return each * active_experts(application, batch, assumptions) / (n * chip.bandwidth)


@equation(unit="s", n="1")
def collective_latency(n, assumptions: Assumptions = PRINTED):
    """Latency of one collective among n chips: on the chip, through the switch, and the transfer.

    A switch of ``radix`` ports gives each of n chips ``radix / n`` links; the payload goes up one and comes down
    another.

    ``n``: chips, at most ``radix``.
    Section 3 prints the ingredients and two results, not the sum.

    Examples
    --------
    >>> [round(collective_latency(n) * 1e9, 2) for n in (8, 128)]
    [438.15, 1010.35]
    """
    transfer = assumptions.crossings * assumptions.payload * n / (assumptions.radix * assumptions.link)
    return assumptions.on_chip + assumptions.switch + transfer


@equation(unit="1", n="1")
def collectives(application: Application, n, assumptions: Assumptions = PRINTED):
    """Collectives of one step on n chips: S_N of every layer, summed (section 2.4).

    Examples
    --------
    >>> from inferlib.papers.liminal2025 import load_model
    >>> [collectives(load_model("Llama3-70B"), n) for n in (1, 8, 128)]
    [0.0, 160.0, 320.0]
    """
    split = where(n <= application.kv_heads, assumptions.within_heads, assumptions.beyond_heads)
    attention = application.head_layers * split + application.latent_layers * assumptions.latent_collectives
    dense = application.dense_layers * assumptions.dense_collectives
    everything = attention + dense + application.moe_layers * assumptions.moe_collectives
    return where(n > 1, everything, 0.0 * everything)


@equation("4", unit="s", n="1", stages="1", t_tp="s")
def exposed_time(application: Application, n, stages, t_tp, assumptions: Assumptions = PRINTED):
    """Seconds in which neither memory nor arithmetic works: collectives, and hops between stages."""
    hops = maximum(stages - assumptions.free_stages, 0)
    return t_tp * collectives(application, n, assumptions) + assumptions.t_stage * hops


@equation("1", unit="s", batch="1", context="1", n="1 > 0", stages="1", t_tp="s")
def batch_time(
    application: Application,
    chip: XPU,
    batch,
    context,
    n,
    stages,
    t_tp,
    assumptions: Assumptions = PRINTED,
):
    """Seconds of one step: the longer of arithmetic and memory, and the exposed time."""
    at = application, chip, batch, context, n, assumptions
    overlapped = maximum(compute_time(*at), memory_time(*at))
    return overlapped + exposed_time(application, n, stages, t_tp, assumptions)


@equation("5", unit="1/s", batch="1", context="1", n="1 > 0", stages="1", t_tp="s")
def user_speed(
    application: Application,
    chip: XPU,
    batch,
    context,
    n,
    stages,
    t_tp,
    assumptions: Assumptions = PRINTED,
):
    """UTPS, tokens per second that one user sees.

    Examples
    --------
    >>> from inferlib.papers.liminal2025 import load_chip, load_model
    >>> llama = load_model("Llama3-70B")
    >>> round(user_speed(llama, load_chip("HBM3"), 1, 4096, 8, 1, collective_latency(8)))
    491
    """
    return 1 / batch_time(application, chip, batch, context, n, stages, t_tp, assumptions)


@equation("5", unit="1/s", batch="1", context="1", n="1 > 0", stages="1", t_tp="s")
def system_speed(
    application: Application,
    chip: XPU,
    batch,
    context,
    n,
    stages,
    t_tp,
    assumptions: Assumptions = PRINTED,
):
    """STPS, tokens per second of the whole system: every stage has a batch of its own."""
    return stages * batch / batch_time(application, chip, batch, context, n, stages, t_tp, assumptions)


@equation(unit="s", t_layer="s")
def measured_overhead(application: Application, t_layer):
    """Seconds exposed in all layers, each with its measured ``t_layer``."""
    return t_layer * application.layers


@equation("8", unit="s", batch="1", context="1", n="1 > 0", t_layer="s")
def real_time(
    application: Application, chip: XPU, batch, context, n, t_layer, assumptions: Assumptions = PRINTED
):
    """Seconds of one step with the exposed time of a layer taken from measurements."""
    at = application, chip, batch, context, n, assumptions
    return maximum(compute_time(*at), memory_time(*at)) + measured_overhead(application, t_layer)


# --- What fits ------------------------------------------------------------------------------------------


@equation(unit="1", context="1 > 0", n="1")
def batch_room(application: Application, chip: XPU, context, n, assumptions: Assumptions = PRINTED):
    """Sequences for whose caches n chips have room beside all weights; negative where weights do not fit."""
    left = n * chip.capacity - stored_weights(application, assumptions)
    return left / cache_size(application, context, assumptions)


@equation(unit="1", batch="1", context="1", n="1 > 0")
def stages_room(application: Application, chip: XPU, batch, context, n, assumptions: Assumptions = PRINTED):
    """How many times the memory of n chips a batch needs: rounded up, the stages of a pipeline."""
    return capacity_needed(application, batch, context, assumptions) / (n * chip.capacity)


def largest_batch(application, chip, context, n, assumptions=PRINTED):
    """The largest whole batch that fits, or None where not even one sequence does.

    Parameters
    ----------
    application : Application
    chip : XPU
    context, n : float
    assumptions : Assumptions
        A ``batch_limit`` caps the answer.

    Returns
    -------
    int or None

    Examples
    --------
    >>> from inferlib.papers.liminal2025 import load_chip, load_model
    >>> largest_batch(load_model("DeepSeekV3"), load_chip("HBM3"), 4096, 128)
    86855
    """
    fitting = -int(ceil(-float(batch_room(application, chip, context, n, assumptions))))
    if fitting < 1:
        return None
    return fitting if assumptions.batch_limit is None else min(fitting, int(assumptions.batch_limit))


def stages_of(application, chip, assumptions=PRINTED):
    """Stages of the pipeline in the paper's systems: one, or one for each layer where memory is SRAM.

    Parameters
    ----------
    application : Application
    chip : XPU
    assumptions : Assumptions

    Returns
    -------
    float
    """
    return application.layers if chip.name == "SRAM" and assumptions.stage_per_layer else 1.0


# --- Power ----------------------------------------------------------------------------------------------


@equation(unit="W", memory_power="W")
def chip_power(memory_power, assumptions: Assumptions = PRINTED):
    """Watts of one chip with its memory and its share of a server (Appendix A).

    Examples
    --------
    >>> round(chip_power(0), 1)
    917.5
    """
    die = assumptions.power_per_mm2 * assumptions.die_area
    return die + memory_power + assumptions.server_power / assumptions.server_chips


@equation(unit="1/s/W", speed="1/s", n="1 > 0", stages="1 > 0", memory_power="W")
def power_efficiency(speed, n, stages, memory_power, assumptions: Assumptions = PRINTED):
    """STPS/W: tokens per second and watt of a whole system."""
    return speed / (n * stages * chip_power(memory_power, assumptions))


# --- The study turned round ------------------------------------------------------------------------------


@equation(unit="B/s", batch="1", context="1", n="1 > 0", speed="1/s", waiting="1")
def bandwidth_for(
    application: Application, batch, context, n, speed, waiting, assumptions: Assumptions = PRINTED
):
    """Memory bandwidth a chip needs for a speed, if a given part of the time is spent waiting.

    ``waiting``: part of a token's time that collectives take, below 1.
    Not in the paper; memory is taken to bind, not arithmetic.
    """
    return bytes_loaded(application, batch, context, assumptions) * speed / (n * (1 - waiting))


@equation(unit="s", n="1", speed="1/s > 0", waiting="1")
def latency_for(application: Application, n, speed, waiting, assumptions: Assumptions = PRINTED):
    """Latency a collective may have for a speed, if it may take a given part of the time.

    A single chip, which has no collective, is answered as if it had one.
    """
    return waiting / (speed * maximum(collectives(application, n, assumptions), 1))
