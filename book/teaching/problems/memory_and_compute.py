"""Memory, cache and arithmetic: what one chip, or several alike, hold, read and calculate."""

from functools import partial

from book.teaching.problems import choices as c
from book.teaching.problems.bank import Key, in_sums as say, problem
from inferlib import Accelerator, System, Workload, load_model, principles
from inferlib.principles import profile_of

memory, cache, arithmetic = (partial(problem, topic) for topic in ("memory", "cache", "arithmetic"))


@memory("one line", "GB", weights=c.FORMATS)
def weights_held(model, weights):
    """How many GB do the weights of {model} take in {weights}?"""
    held = c.weights_of(model, weights)
    other = "fp8" if weights != "fp8" else "bf16"
    mixed_up = f"a weight in {weights} has {c.bits(weights):g} bits, not {c.bits(other):g}"
    mistakes = {
        "these are bits, or eight times the bytes: a byte has eight bits": 8 * held,
        mixed_up: c.weights_of(model, other),
    }
    return Key(held, f"{model.n_params / 1e9:.4g} billion × {c.bits(weights):g} bits / 8 bits", mistakes)


@memory("one line", "ms", count=(2, 4, 8), weights=("bf16", "fp8"), where=c.weights_fit)
def weights_read(model, chip, count, weights):
    """{count} × {chip} hold {model} in {weights}, cut evenly. How long do they take at the least to read the
    weights once, all but the input embedding, of which a step looks up a few rows?"""
    data = c.read_of(model, weights)
    time = principles.memory_time(chip, data, count)
    worked = f"Each chip reads its part: {say(data, 'GB')} / ({count} × {say(chip.memory_bandwidth, 'TB/s')})"
    mistakes = {
        "every chip reads its own part only: divide by the chips": count * time,
        "the bandwidth is in bytes, not in bits": time / 8,
        "a weight of this format has another number of bytes": time / 2 if weights == "bf16" else 2 * time,
    }
    return Key(time, worked, mistakes)


@memory("short", "GB", count=c.COUNTS, where=c.weights_fit)
def room_for_caches(model, chip, count):
    """{model} in 16 bits lies on {count} × {chip}, cut evenly. How many GB do all chips together have left for
    caches?"""
    held = c.weights_of(model)
    left = System(chip, count).memory - held
    parts = f"{count} × {say(chip.memory_capacity, 'GB')} - {say(held, 'GB')}"
    mistakes = {
        "the chips share one copy of the weights: do not subtract it for each": left + held - count * held,
        "weights of 16 bits have two bytes each": left + held / 2,
        "that is the memory of all chips; the weights lie in it too": left + held,
        "that is what one chip has left": left / count if count > 1 else 0,
    }
    return Key(left, f"All chips share one copy of the weights: {parts}", mistakes)


@memory(
    "study", "1", exact=True, count=(2, 4, 8), context=(2048, 4096, 8192), where=partial(c.all_fits, batch=40)
)
def largest_batch(model, chip, count, context):
    """{count} × {chip} serve {model} in 16 bits. What is the largest batch whose caches of {context} tokens each
    fit beside the weights, with nothing kept in reserve?"""
    system, each, held = System(chip, count), model.cache_bytes(context), c.weights_of(model)
    batch = principles.largest_batch(model, system, Workload(1, context))
    return Key(
        batch,
        f"What is left over a sequence's cache: ({say(system.memory, 'GB')} - {say(held, 'GB')}) / "
        f"{say(each, 'GB')} = {(system.memory - held) / each:.6g}, rounded down.",
        {
            "the weights lie in the same memory": system.memory / each,
            "a cache is kept for each key/value head, not for each query head": batch / c.groups(model),
            "a key and a value are kept for each position": 2 * batch,
            "the memory is stated in GB, of 10^9 bytes": batch * 1.0737,
        },
    )


@cache("one line", "KiB")
def cache_of_token(model):
    """How many KiB of cache does one token of context take in {model} at 16 bits?"""
    each = model.cache_bytes()
    mistakes = {
        "query heads share keys and values here: count key/value heads": c.groups(model) * each,
        "there are a key and a value": each / 2,
        "every layer keeps its own": each / model.n_layers,
    }
    parts = f"{model.n_layers} × {model.n_kv_heads} × {model.head_dim} × 2 B × 2"
    return Key(each, f"Layers, key/value heads, their width, two bytes, a key and a value: {parts}", mistakes)


@cache("one line", "GB")
def cache_of_batch(model, batch, context):
    """How many GB do the 16-bit caches of {batch} sequences of {context} tokens take in {model}?"""
    held = batch * model.cache_bytes(context)
    mistakes = {
        "a batch shares weights, not caches: every sequence has its own": held / batch,
        "a cache is kept for each key/value head, not for each query head": c.groups(model) * held,
        "there are a key and a value": held / 2,
    }
    return Key(held, f"{batch} × {context:,} × {say(model.cache_bytes(), 'KiB')}", mistakes)


@cache("short", "KiB", model=c.LATENT, bits=(8, 16))
def latent(model, bits):
    """{model} keeps one latent and one rotary key for all heads of a layer. How many KiB of cache is that for one
    token at {bits} bits?"""
    at, value = model.layers[0].attention, model.n_layers * bits / 8  # bytes of one value of each layer
    rank, key = at.kv_rank, at.rope_dim
    parts = f"{model.n_layers} × ({rank} + {key}) × {bits} bits / 8 bits"
    whole = at.n_heads * (at.nope_dim + key + at.value_dim)
    mistakes = {
        "keys and values of all heads are computed from the latent, not kept": whole * value,
        "keys and values come from the same latent: count it once": (2 * rank + key) * value,
        "the rotary key is kept beside the latent": rank * value,
    }
    return Key(model.cache_bytes(1, bits / 8), f"One latent and one rotary key a layer: {parts}", mistakes)


@cache("short", "ms", where=c.all_fits)
def caches_read(model, chip, count, batch, context):
    """{count} × {chip} decode {batch} sequences of {context} tokens with {model}, caches in 16 bits. How long does
    reading the caches take in one step?"""
    data = principles.cache_data(profile_of(model), batch, context)
    time = principles.memory_time(chip, data, count)
    mistakes = {
        "a batch shares weights, not caches": time / batch,
        "a cache is kept for each key/value head, not for each query head": c.groups(model) * time,
        "the chips share the reading": count * time,
    }
    return Key(time, f"{say(data, 'GB')} / ({count} × {say(chip.memory_bandwidth, 'TB/s')})", mistakes)


@cache("short", "1")
def caches_as_heavy_as_weights(model, batch):
    """A step of {model} with {batch} sequences reads 16-bit weights and caches. At which context do the caches
    weigh as much as the weights that are read? (The input embedding is looked up, not read.)"""
    read, each = c.read_of(model), model.cache_bytes()
    context = read / (batch * each)
    mistakes = {
        "that is for a single sequence": batch * context,
        "a cache is kept for each key/value head, not for each query head": context / c.groups(model),
        "there are a key and a value": 2 * context,
    }
    worked = f"{say(read, 'GB')} / ({batch} × {say(each, 'KiB')}) = {say(context, '1')} tokens."
    return Key(context, worked, mistakes)


@arithmetic("one line", "GFLOP")
def flop_of_token(model):
    """How many GFLOP does one token of {model} take, attention over its context left out? (The input embedding is
    looked up, not multiplied.)"""
    work = principles.decode_work(profile_of(model), 1, 0)
    worked = (
        f"Each weight that is met takes a multiplication and an addition: {work / 2e9:.4g} billion × 2 FLOP"
    )
    mistakes = {
        "each weight takes a multiplication and an addition": work / 2,
        "six for each weight is training, with its backward pass": 3 * work,
    }
    return Key(work, worked, mistakes)


@arithmetic(
    "one line",
    "FLOP/B",
    peak=(624, 1979, 4500, 5000),
    bandwidth=(2.04, 3.35, 4.8, 8.0),
    where=lambda peak, bandwidth: 150 < peak / 2 / bandwidth < 320,
)
def balance(peak, bandwidth):
    """The data sheet of a chip prints {peak} TFLOP/s in 16 bits 'with sparsity' and {bandwidth} TB/s of memory
    bandwidth. For how many FLOP for each byte is it built, with models as they are?"""
    chip = Accelerator(flops=peak * 1e12 / 2, memory_bandwidth=bandwidth * 1e12)
    ridge = principles.ridge_point(chip)
    worked = f"Half of the sparse peak over the bandwidth: {peak / 2:g} TFLOP/s / {bandwidth:g} TB/s"
    mistakes = {
        "the peak with sparsity holds for weights half of which are zero: halve it": 2 * ridge,
        "you halved twice: the bandwidth is right as it stands": ridge / 2,
    }
    return Key(ridge, worked, mistakes)


@arithmetic("one line", "1", weights=("bf16", "fp8", "fp4"))
def critical_batch(chip, weights):
    """One {chip} multiplies, in 16 bits, weights stored in {weights}. At which batch does that take as long as
    reading them, in a dense model with short contexts?"""
    batch = principles.critical_batch(chip, profile_of(load_model("Llama 3 70B"), weights))
    ridge = principles.ridge_point(chip)
    sparse, balance = (2 * ridge, 0) if weights == "bf16" else (0, ridge)  # in 16 bits the balance is right
    mistakes = {
        "that is the balance of the chip; a weight of this format has other bytes": balance,
        "a weight takes two FLOP": 2 * batch,
        "the peak with sparsity does not hold here": sparse,
    }
    parts = f"{say(ridge, 'FLOP/B')} × {c.bits(weights) / 8:g} B / 2 FLOP"
    return Key(
        batch, f"The balance of the chip times the bytes of a weight, over two FLOP: {parts}", mistakes
    )


@arithmetic("short", "ms", count=(2, 4, 8), batch=(64, 128, 256, 512), where=c.weights_fit)
def arithmetic_of_step(model, chip, count, batch):
    """{batch} sequences with short contexts are decoded by {model} on {count} × {chip} in 16 bits. How long does
    the arithmetic of one step take at the peak?"""
    work = principles.decode_work(profile_of(model), batch, 0)
    time = principles.arithmetic_time(chip, work, count)
    mistakes = {
        "the peak with sparsity does not hold for these weights": time / 2,
        "the batch shares the reading of weights, not the arithmetic": time / batch,
        "the chips share the work": count * time,
    }
    return Key(time, f"{say(work, 'TFLOP')} / ({count} × {say(chip.flops, 'TFLOP/s')})", mistakes)


@arithmetic("study", "ms", count=(2, 4, 8), where=c.all_fits)
def bound_of_step(model, chip, count, batch, context):
    """What is the least time of one decode step of {model} on {count} × {chip}, {batch} sequences of {context}
    tokens, everything in 16 bits, if reading and calculating overlap?"""
    step = c.bound(model, chip, count, batch, context)
    t = step.terms
    return Key(
        step.total,
        f"Reading weights and caches: {c.overlapping(step)}",
        {
            "every sequence also reads its cache": max(t["weights"], t["arithmetic"]),
            "reading and calculating overlap: the longer one counts": sum(t.values()),
            "a batch shares the weights: they are read once a step": batch * t["weights"] + t["cache"],
            "a cache is kept for each key/value head": t["weights"] + c.groups(model) * t["cache"],
            "a batch shares weights, not caches": t["weights"] + t["cache"] / batch,
        },
    )
