"""The roofline model, and the arithmetic and bytes of decode and prefill."""

from functools import partial

from inferlib import validation
from inferlib.equation import Minimum, equation
from inferlib.ops import maximum, minimum
from inferlib.principles.profile import Profile, profile_of
from inferlib.system import Accelerator, System, Workload, decode_model
from inferlib.transformer import Transformer
from inferlib.units import factor

equation = partial(equation, "principles", records={"chip": Accelerator, "model": Profile})


@equation(unit="s", data="B", n_chips="1 > 0")
def memory_time(chip, data, n_chips):
    """Least time to read ``data`` bytes spread evenly over the memories of ``n_chips`` chips; seconds."""
    return data / (n_chips * chip.memory_bandwidth)


@equation(unit="s", work="FLOP", n_chips="1 > 0")
def arithmetic_time(chip, work, n_chips):
    """Least time for ``work`` FLOP spread evenly over ``n_chips`` chips; seconds."""
    return work / (n_chips * chip.flops)


@equation(unit="s", work="FLOP", data="B", n_chips="1 > 0")
def roofline_time(chip, work, data, n_chips):
    """Least time for both, reading and calculating at once.

    Examples
    --------
    >>> from inferlib import load_chip
    >>> f"{1e3 * roofline_time(load_chip('H100 SXM'), work=141e9, data=141e9, n_chips=1):.1f} ms"
    '42.1 ms'
    """
    return maximum(memory_time(chip, data, n_chips), arithmetic_time(chip, work, n_chips))


@equation(unit="FLOP/B", work="FLOP", data="B > 0")
def arithmetic_intensity(work, data):
    """FLOP done for every byte read."""
    return work / data


@equation(unit="FLOP/B")
def ridge_point(chip):
    """The intensity at which a chip's memory and its arithmetic are equally busy; FLOP per byte.

    Examples
    --------
    >>> from inferlib import load_chip
    >>> round(ridge_point(load_chip("H100 SXM")))
    295
    """
    return chip.flops / chip.memory_bandwidth


@equation(unit="FLOP/s", intensity="FLOP/B")
def attainable_flops(chip, intensity):
    """The roofline: FLOP/s that a chip reaches at a given intensity."""
    return minimum(chip.flops, intensity * chip.memory_bandwidth)


def _time_difference(chip, model, batch):
    """Return the difference between the times of reading a weight and of multiplying it, in seconds."""
    return abs(
        memory_time(chip, model.weight_bytes, 1) - arithmetic_time(chip, model.flop_per_weight * batch, 1)
    )


@equation(least=Minimum(_time_difference, "batch", place=True))
def critical_batch(chip, model):
    """The batch at which multiplying the weights takes as long as reading them; no cache, no experts.

    Examples
    --------
    >>> from inferlib import load_chip, load_model
    >>> round(critical_batch(load_chip("H100 SXM"), profile_of(load_model("Llama 3 70B"))))
    295
    """
    return model.weight_bytes * ridge_point(chip) / model.flop_per_weight


@equation(unit="s", latency="s", data="B", bandwidth="B/s > 0")
def exchange_time(latency, data, bandwidth):
    """Time of one exchange between chips: a latency, and the bytes over the bandwidth."""
    return latency + data / bandwidth


@equation()
def weights_read(model, batch):
    """Weights one decode step reads: all shared ones, and the routed experts that the batch touches.

    Every token goes to a share of the experts, drawn evenly: the unused part shrinks with every
    sequence of the batch.
    """
    return model.always_read + model.expert_weights * (1 - (1 - model.expert_share) ** batch)


@equation(unit="B")
def weight_data(model, batch):
    """Bytes of weights that one decode step reads."""
    return model.weight_bytes * weights_read(model, batch)


@equation(unit="B")
def cache_data(model, batch, context):
    """Bytes of cache that one decode step reads: every sequence has its own; windows cap it."""
    seen = model.cache_values * context + model.window_values * minimum(context, model.window)
    return model.cache_bytes * batch * seen


@equation(unit="FLOP")
def decode_work(model, batch, context):
    """FLOP of one decode step: two for every weight a token meets, and attention over the context."""
    return batch * (model.token_flops + _attention_flops(model, context))


def _attention_flops(model, context):
    """FLOP of one token's queries with all positions that they see."""
    return model.pair_flops * context + model.window_pair_flops * minimum(context, model.window)


@equation(unit="s", n_chips="1 > 0")
def overlapped_time(chip, model, n_chips, batch, context):
    """Least time of a decode step in which everything overlaps: all it reads, or all it calculates."""
    data = weight_data(model, batch) + cache_data(model, batch, context)
    return roofline_time(chip, decode_work(model, batch, context), data, n_chips)


@equation(unit="s", n_chips="1 > 0")
def in_turn_time(chip, model, n_chips, batch, context):
    """Least time of a decode step whose operators run in turn: matrices, then attention, each the longer of its two.

    Within an operator reading and calculating overlap; between operators nothing does. All matrices count as one
    operator, so a real step that runs them one by one takes no less.
    """
    matrices, attention = in_turn_stages(chip, model, n_chips, batch, context)
    return maximum(*matrices.values()) + maximum(*attention.values())


def in_turn_stages(chip, model, n_chips, batch, context):
    """Return the terms of both stages of :func:`in_turn_time` in seconds, as a Breakdown takes them."""
    pairs = batch * _attention_flops(model, context)
    return (
        {
            "weights": memory_time(chip, weight_data(model, batch), n_chips),
            "arithmetic": arithmetic_time(chip, batch * model.token_flops, n_chips),
        },
        {
            "cache": memory_time(chip, cache_data(model, batch, context), n_chips),
            "attention arithmetic": arithmetic_time(chip, pairs, n_chips),
        },
    )


@equation(unit="FLOP/B")
def decode_intensity(model, batch, context):
    """FLOP of a decode step for every byte it reads."""
    data = weight_data(model, batch) + cache_data(model, batch, context)
    return decode_work(model, batch, context) / data


@equation(unit="FLOP")
def prefill_work(model, tokens):
    """FLOP of reading a prompt, attention over it left out: two for every weight a token meets.

    The output head is charged for every token, as in training or scoring; generation needs it once, and
    :meth:`inferlib.Transformer.prefill_flops` counts that exactly.
    """
    return tokens * model.token_flops


@equation(unit="FLOP/B")
def prefill_intensity(model, tokens):
    """FLOP of reading a prompt for every byte of weights: all its tokens share one reading."""
    return prefill_work(model, tokens) / weight_data(model, tokens)


def largest_batch(model, system, workload):
    """Return the largest batch whose weights and cache fit into a system's memory.

    The result is a whole number, 0 if the weights alone do not fit. Context and formats are those of ``workload``.
    Raises ValueError if the chip's memory is unknown, or the context is zero.
    """
    validation.instance("model", model, Transformer)
    validation.instance("system", system, System)
    validation.instance("workload", workload, Workload)
    memory = validation.number("system.memory", system.memory)
    validation.number("workload.context", workload.context)
    weights = sum(model.weight_bytes(workload.weights).values())
    return max(0, int((memory - weights) // model.cache_bytes(workload.context, workload.cache)))


def cost_per_million(seconds, batch, n_chips, price):
    """Cost of a million tokens in dollars, from the time of a step.

    ``seconds``, ``batch``: time of one decode step and the tokens it generates; numbers or arrays, as is the result.
    ``n_chips``, ``price``: number of chips, and dollars per chip-hour.

    Examples
    --------
    >>> round(cost_per_million(seconds=7e-3, batch=32, n_chips=8, price=2.0), 3)
    0.972
    """
    seconds = validation.number("seconds", seconds)
    batch = validation.number("batch", batch)
    n_chips = validation.number("n_chips", n_chips)
    price = validation.number("price", price)
    return 1e6 * seconds * n_chips / batch * price * factor("usd/h", "usd/s")


def weights_held(model):
    """Bytes of all weights of a profile, including those that a step only looks up or does not use.

    Accepts numbers or symbols.
    """
    return model.weight_bytes * (model.always_read + model.expert_weights + model.never_read)


def memory_held(model, batch, context):
    """Bytes of all weights and of the cache of the whole batch, from a profile; accepts numbers or symbols.

    Examples
    --------
    >>> from inferlib import load_model
    >>> f"{memory_held(profile_of(load_model('Llama 3 70B')), 32, 4096) / 1e9:.0f} GB"
    '184 GB'
    """
    return weights_held(model) + cache_data(model, batch, context)


@decode_model("principles")
def decode_step(model, system, workload, layout=None):
    """Lower bound of a decode step: bytes over bandwidth or FLOP over peak, whichever is longer.

    ``model``: a Transformer (with the workload's formats), or a Profile with formats of its own. Arithmetic runs at the
    chip's own format, as if small weights were multiplied in 16 bits; ``chip.at`` picks another. ``system``: all chips
    share weights, cache and arithmetic evenly, and communication is free. ``layout`` is ignored: the bound holds for
    every layout that does not copy weights.

    Returns terms ``weights`` and ``cache``, which share the memory, and ``arithmetic``, which overlaps them.
    """
    profile = model if isinstance(model, Profile) else profile_of(model, workload.weights, workload.cache)
    batch, context = workload.batch, workload.context
    system.hold(memory_held(profile, batch, context))  # explorers check memory themselves
    chip = system.chip
    n = system.count
    times = {
        "weights": memory_time(chip, weight_data(profile, batch), n),
        "cache": memory_time(chip, cache_data(profile, batch, context), n),
    }
    work = decode_work(profile, batch, context)
    return ({"memory": times, "arithmetic": arithmetic_time(chip, work, n)},)
