"""Values from which parameters are drawn if not the usual ones, and conditions for sensible combinations."""

from book.teaching.problems.bank import in_sums as say
from inferlib import System, Workload, principles
from inferlib.system import format_bytes

SMALL = ("Llama 3 8B", "Qwen2.5 7B", "Qwen3 8B")
EXPERTS = ("Mixtral 8x7B", "Mixtral 8x22B", "DBRX", "Qwen3 30B-A3B", "Qwen3 235B-A22B", "DeepSeek V3")
FINE = ("Qwen3 30B-A3B", "Qwen3 235B-A22B", "DeepSeek V2", "DeepSeek V3", "Kimi K2")  # many small experts
LATENT = ("DeepSeek V2", "DeepSeek V3", "Kimi K2")
COUNTS = (1, 2, 4, 8)
FORMATS = ("bf16", "fp8", "fp4")


def weights_fit(model, chip, count, weights="bf16"):
    """Whether all weights fit into the memory of ``count`` chips."""
    return sum(model.weight_bytes(weights).values()) < count * chip.memory_capacity


def all_fits(model, chip, count, batch, context, weights="bf16"):
    """Whether weights and 16-bit caches fit."""
    return model.bytes_held(batch, context, weights) < count * chip.memory_capacity


def overlapping(step):
    """Explain how the longer of a step's reading and its arithmetic is found."""
    t = step.terms
    reading = f"{say(t['weights'], 'ms')} + {say(t['cache'], 'ms')} = {say(t['weights'] + t['cache'], 'ms')}"
    return (
        f"{reading}. Calculating takes {say(t['arithmetic'], 'ms')} meanwhile, and the longer counts: "
        f"{say(step.total, 'ms')}."
    )


def bound(model, chip, count, batch, context, weights="bf16"):
    """Return the step of first principles."""
    return principles.decode_step(model, System(chip, count), Workload(batch, context, weights))


def weights_of(model, format="bf16"):
    """Bytes of all weights."""
    return sum(model.weight_bytes(format).values())


def read_of(model, format="bf16"):
    """Bytes of the weights that a step of one sequence reads."""
    return principles.weight_data(principles.profile_of(model, format), 1)


def groups(model):
    """Query heads to one key/value head."""
    return model.n_heads / model.n_kv_heads


def bits(format):
    """Bits of a number in a format."""
    return 8 * format_bytes(format)
