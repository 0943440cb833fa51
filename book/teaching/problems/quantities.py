"""Functions and constants for formulas of ``problems.toml``, ``warm_up.toml`` and ``board.toml``."""

from functools import cache

from book.serving import tables
from inferlib import Accelerator, System, Workload, load_chip, load_model, principles  # noqa: F401  for formulas
from inferlib.papers import erdil2025, liminal2025, pope2022  # noqa: F401
from inferlib.principles import (  # noqa: F401
    arithmetic_time,
    cache_data,
    cost_per_million,
    critical_batch,
    decode_intensity,
    decode_work,
    exchange_time,
    largest_batch,
    memory_held,
    memory_time,
    profile_of,
    ridge_point,
)
from inferlib.system import format_bytes
from inferlib.units import factor
from tokenprice.prefill import prefill_interference  # noqa: F401
from tokenprice.request import machine_cost, machine_time  # noqa: F401

EXCHANGES = 2  # per layer: after attention and after the feed-forward block
HOUR = factor("h", "s")

running = cache(tables.asked)  # the request of the running box


def weights_fit(model, chip, count, weights="bf16"):
    """Whether all weights fit into the memory of ``count`` chips."""
    return weights_of(model, weights) < count * chip.memory_capacity


def all_fits(model, chip, count, batch, context):
    """Whether weights and caches of 16 bits fit."""
    return memory_held(profile_of(model), batch, context) < count * chip.memory_capacity


def bound(model, chip, count, batch, context):
    """Return the step of first principles, with weights of 16 bits."""
    return principles.decode_step(model, System(chip, count), Workload(batch, context, "bf16"))


def weights_of(model, format="bf16"):
    """Bytes of all weights."""
    return sum(model.weight_bytes(format).values())


def read_of(model, format="bf16", batch=1):
    """Bytes of the weights that a step of a batch reads."""
    return principles.weight_data(profile_of(model, format), batch)


def groups(model):
    """Query heads to one key/value head."""
    attention = model.layers[0].attention
    return attention.n_heads / attention.n_kv_heads


def bits(format):
    """Bits of a number in a format."""
    return 8 * format_bytes(format)


def experts_of(model):
    """The experts of one layer."""
    return model.layers[-1].feed_forward


def batch_of_all_experts(block):
    """The first batch that on average leaves less than one expert of a layer untouched."""
    return next(batch for batch in range(1, 10_000) if block.n_experts - block.touched(batch) < 1)


def vectors(model, batch):
    """Bytes of the 16-bit vectors of a batch, as wide as the model."""
    return batch * model.d_model * format_bytes("bf16")


def prompt_work(model, tokens):
    """FLOP of a prompt, attention included."""
    return sum(model.prefill_flops(tokens).values())


def context_of_full_memory(model, chip, count, weights):
    """The context at which memory is full just as a step reaches the chip's ridge point."""
    work, more = (decode_work(profile_of(model), 1, context) for context in (0, 1))
    free, read = System(chip, count).memory - weights_of(model, weights), read_of(model, weights)
    per_byte = ridge_point(chip) * (read + free) / free
    return work / (per_byte * model.cache_bytes() - (more - work))
