"""Experts, networks, collectives and pipelines: what chips share, and what they wait for."""

from functools import partial

from book.teaching.problems import choices as c
from book.teaching.problems.bank import Key, in_sums as say, problem
from inferlib import principles
from inferlib.papers import erdil2025, pope2022
from inferlib.principles import exchange_time, profile_of

experts, network, collectives, pipeline = (
    partial(problem, topic) for topic in ("experts", "network", "collectives", "pipeline")
)
EXCHANGES = 2  # per layer: after attention and after the feed-forward block


def block_of(model):
    """The experts of one layer."""
    return model.layers[-1].feed_forward


def vectors(model, batch):
    """Bytes of the 16-bit vectors of a batch, as wide as the model."""
    return batch * model.d_model * c.format_bytes("bf16")


@experts("one line", "1", model=c.FINE, batch=(8, 16, 32, 64))
def experts_touched(model, batch):
    """How many different routed experts of a layer does a step of {model} with {batch} sequences touch, if all are
    equally popular?"""
    block = block_of(model)
    n, active = block.n_experts, block.n_active
    mistakes = {
        "tokens meet at the same experts: do not just multiply": min(batch * active, n),
        "that is one token's; the others choose for themselves": active,
    }
    worked = f"What all tokens of the batch miss is left over: {n} × (1 - (1 - {active} / {n})^{batch})"
    return Key(block.touched(batch), worked, mistakes)


@experts("one line", "GB", model=c.EXPERTS, weights=("bf16", "fp8"))
def experts_held(model, weights):
    """How many GB must the memory of a system have for the weights of {model} in {weights}?"""
    held = c.weights_of(model, weights)
    bits = f"{c.bits(weights):g} bits"
    mistakes = {
        "those are the active weights; the others must be in memory too": held
        * model.n_active
        / model.n_params,
        f"a weight in {weights} has {bits}": held * 2 if weights == "fp8" else held / 2,
    }
    worked = f"All experts are kept, whichever are used: {model.n_params / 1e9:.4g} billion × {bits} / 8 bits"
    return Key(held, worked, mistakes)


@experts("short", "GB", model=c.FINE, batch=(4, 8, 16, 32, 64))
def experts_read(model, batch):
    """How many GB of weights does one step of {model} with {batch} sequences read, in 8 bits, if all experts are
    equally popular?"""
    profile = profile_of(model, "fp8")
    one, read, all_of_it = (principles.weight_data(profile, b) for b in (1, batch, 1e9))
    block = block_of(model)
    routed = (all_of_it - one) / (1 - block.n_active / block.n_experts)
    return Key(
        read,
        f"All routed experts: ({say(model.n_params, 'GB')} - {say(model.n_active, 'GB')}) / (1 - {block.n_active} / "
        f"{block.n_experts}) = {say(routed, 'GB')}. What every step reads, and the part of them that is touched: "
        f"{say(all_of_it - routed, 'GB')} + {say(routed, 'GB')} × {say(block.touched(batch), '1')} / "
        f"{block.n_experts} = {say(read, 'GB')}.",
        {
            "those are one token's weights; a batch touches more experts": one,
            "not all experts are touched": all_of_it,
            "sequences share what every step reads, and experts they meet at": batch * one,
        },
    )


@experts("short", "1", exact=True, model=c.FINE)
def all_experts_awake(model):
    """From which batch on is, on average, less than one routed expert of a layer of {model} untouched?"""
    block = block_of(model)
    batch = next(b for b in range(1, 10_000) if block.n_experts - block.touched(b) < 1)
    return Key(
        batch,
        f"The first batch at which less than one is missed: {block.n_experts} × (1 - {block.n_active} / "
        f"{block.n_experts})^{batch} = {block.n_experts - block.touched(batch):.4g}.",
        {
            "that many would do if no two tokens chose the same expert": block.n_experts / block.n_active,
            "each expert is missed by each token with the probability 1 - k/E, not 1/E": block.n_experts,
        },
    )


@network(
    "one line",
    "us",
    batch=(64, 128, 256, 512),
    stated=False,
    told=lambda model, chip: {"width": model.d_model, "twice": 2 * chip.scale_up_bandwidth},
)
def exchange(model, chip, batch, latency):
    """A layer of {model} exchanges one 16-bit vector of {width} numbers for each of {batch} sequences over a link
    of {chip}. The data sheet prints its bandwidth of both directions together, {twice:GB/s}. Including a fixed time
    of {latency:us}, how long does that take?"""
    data, link = vectors(model, batch), chip.scale_up_bandwidth
    time = exchange_time(latency, data, link)
    mistakes = {
        "that bandwidth counts both directions; bytes go one way": exchange_time(latency, data, 2 * link),
        "the fixed time comes on top": time - latency,
        "a value of 16 bits has two bytes": exchange_time(latency, data / 2, link),
    }
    parts = f"{say(data, 'MB')} / {say(link, 'GB/s')} + {say(latency, 'us')}"
    return Key(time, f"Bytes go one way, at half of what is printed: {parts}", mistakes)


@network("one line", "ms")
def waits_of_token(model, latency):
    """Every layer of {model} exchanges results twice, and each exchange waits {latency:us} whatever is sent. How
    long does one token wait in all?"""
    wait = model.n_layers * EXCHANGES * exchange_time(latency, 0, 1)
    mistakes = {
        "there are two exchanges in each layer": wait / EXCHANGES,
        "every layer waits for its own": latency * EXCHANGES,
    }
    return Key(wait, f"{model.n_layers} × {EXCHANGES} × {say(latency, 'us')}", mistakes)


@network("one line", "1/s")
def ceiling_of_waiting(model, latency):
    """If memory and arithmetic cost nothing, how many tokens a second does one user of {model} get, with two
    exchanges of {latency:us} in every layer?"""
    speed = 1 / (model.n_layers * EXCHANGES * exchange_time(latency, 0, 1))
    mistakes = {"there are two exchanges in each layer": EXCHANGES * speed}
    return Key(speed, f"1 / ({model.n_layers} × {EXCHANGES} × {say(latency, 'us')})", mistakes)


@network("short", "1")
def best_size(model, chip, hop):
    """In Erdil's toy model, how many {chip} make a token of {model} in 16 bits fastest, if a hop takes {hop:us}?
    (Four all-reduces in a layer, over a square of chips; all weights are read, the input embedding too; not
    rounded.)"""
    toy = erdil2025.load_model(model)
    reading, waiting = erdil2025.weight_time(toy, chip, 1), erdil2025.network_time(toy, hop)
    best = erdil2025.optimal_n_gpu(toy, chip, hop)
    mistakes = {
        "waiting grows with the root of the chips: the power is 2/3": reading / waiting,
        "the power is 2/3, not 1/2": (reading / waiting) ** (1 / 2),
        "there are four all-reduces in a layer": best * 2 ** (2 / 3),
    }
    parts = f"({say(reading, 'ms')} / {say(waiting, 'ms')})^(2/3)"
    return Key(
        best, f"One chip's reading over one hop for every all-reduce, to the power 2/3: {parts}", mistakes
    )


@network("short", "ms")
def fastest_token(model, chip, hop):
    """And how long does that fastest token take: {model} in 16 bits on as many {chip} as are best, a hop of
    {hop:us}, in Erdil's toy model?"""
    toy = erdil2025.load_model(model)
    best = erdil2025.optimal_n_gpu(toy, chip, hop)
    time, reading = erdil2025.minimum_latency(toy, chip, hop), erdil2025.weight_time(toy, chip, best)
    large, parts = (
        erdil2025.minimum_latency_large(toy, chip, hop),
        f"{say(reading, 'ms')} + {say(time - reading, 'ms')}",
    )
    mistakes = {
        "at the best size chips also wait for one another": reading,
        "that is the waiting; the weights are read as well": time - reading,
        "that is the formula for large instances, which leaves a term out": large,
    }
    return Key(time, f"Reading and waiting at {say(best, '1')} chips: {parts}", mistakes)


@collectives("one line", "us", count=(4, 8, 16, 32, 64))
def ring(count, hop):
    """How long does the latency of an all-reduce along a ring of {count} chips take, at {hop:us} a hop?"""
    time = erdil2025.ring_all_reduce_time(count, hop)
    worked = f"Round once to add up, once more to hand out: 2 × ({count} - 1) × {say(hop, 'us')}"
    mistakes = {"the sum must also be handed out: round twice": time / 2, "that is one hop": hop}
    return Key(time, worked, mistakes)


@collectives("one line", "us", count=(16, 64, 144, 256))
def grid(count, hop):
    """{count} chips stand in a square grid, and an all-reduce goes along a ring of one side of it, at {hop:us} a
    hop. How long does its latency take?"""
    time = erdil2025.grid_all_reduce_time(count, hop)
    worked = f"A hop for each of the others of a side, there and back: 2 × ({count**0.5:.0f} - 1) × {say(hop, 'us')}"
    mistakes = {
        "a ring of the grid holds one side of it, not all chips": erdil2025.ring_all_reduce_time(count, hop),
        "the sum must also be handed out": time / 2,
    }
    return Key(time, worked, mistakes)


@collectives("short", "us", count=(2, 4, 8), tokens=(256, 1024, 4096))
def all_reduce(model, chip, count, tokens):
    """{count} × {chip} sum a 16-bit tensor of {tokens} tokens, as wide as {model}: a reduce-scatter and an
    all-gather, bandwidth only, the factor (K - 1)/K kept. How long?"""
    exact = pope2022.Assumptions(exact_collectives=True)
    size, at = vectors(model, tokens), pope2022.load_chip(chip)
    time = pope2022.all_reduce_time(at, size, count, exact)
    parts = f"2 × {count - 1} / {count} × {say(size, 'MB')} / {say(chip.scale_up_bandwidth, 'GB/s')}"
    half = "scatter and gather are two, values have two bytes, links are stated one way"
    mistakes = {
        f"half of that is missing: {half}": time / 2,
        "a chip keeps its own part: the factor is (K - 1)/K": pope2022.all_reduce_time(at, size, count),
    }
    return Key(time, f"All parts but a chip's own go out and come back: {parts}", mistakes)


@collectives("short", "GB", count=(16, 32, 64))
def cache_over_heads(model, batch, context, count):
    """The 16-bit cache of {batch} sequences of {context} tokens of {model} is cut over its heads on {count} chips.
    How many GB lie on each chip?"""
    held = pope2022.cache_over_heads(pope2022.load_model(model), count, batch, context)
    whole, heads = batch * model.cache_bytes(context), model.n_kv_heads
    worked = (
        f"There are only {heads} distinct parts, the other chips hold copies: {say(whole, 'GB')} / {heads}"
    )
    mistakes = {
        "there are fewer key/value heads than chips: the others hold copies": whole / count,
        "the whole cache is on no chip": whole,
        "query heads have no cache of their own": whole / model.n_heads,
    }
    return Key(held, worked, mistakes)


@pipeline(
    "one line",
    "ms",
    stages=(2, 4, 8),
    count=(2, 4, 8),
    where=lambda model, chip, stages, count: c.weights_fit(model, chip, stages * count),
)
def stages_in_turn(model, chip, stages, count):
    """{stages} stages of {count} × {chip} each share the layers of {model} in 16 bits. How long does one token take
    to pass all stages, if only reading the weights takes time?"""
    data = c.read_of(model)
    time = principles.memory_time(chip, data, count)
    mistakes = {
        "stages work one after the other on a token: they do not shorten it": time / stages,
        "the chips of a stage share its reading": count * time,
    }
    parts = f"{say(data, 'GB')} / ({count} × {say(chip.memory_bandwidth, 'TB/s')})"
    return Key(time, f"One stage after the other reads its layers with its own chips: {parts}", mistakes)


@pipeline("one line", "1", time=(0.02, 0.032, 0.05), stages=(2, 4, 8), batch=(8, 16, 32), stated=False)
def batches_on_their_way(model, time, stages, batch):
    """A token of {model} takes {time:ms} through {stages} stages, each of which works on a batch of {batch} of its
    own. How many tokens does the pipeline make in a second?"""
    made = erdil2025.throughput(stages * batch, time)
    mistakes = {
        "every stage has a batch of its own: all are on their way at once": batch / time,
        "that is the speed of one user": 1 / time,
        "each batch has many sequences": stages / time,
    }
    return Key(made, f"A batch in every stage: {stages} × {batch} / {say(time, 'ms')}", mistakes)


@pipeline(
    "short",
    "ms",
    stages=(2, 4, 8),
    batch=(64, 256, 1024),
    stated=False,
    told=lambda model, chip: {"width": model.d_model, "bandwidth": chip.scale_out_bandwidth},
)
def between_stages(model, chip, stages, batch, latency):
    """Between the {stages} stages of a pipeline the 16-bit vectors ({width} numbers) of {batch} sequences of
    {model} go over the network of {chip}, {latency:us} and {bandwidth:GB/s} each time. How much does that add to a
    token?"""
    data, link, steps = vectors(model, batch), chip.scale_out_bandwidth, stages - 1
    one, half = (exchange_time(latency, sent, link) for sent in (data, data / 2))
    mistakes = {
        "there is one transfer fewer than stages": stages * one,
        "vectors go over once a stage, not once a layer": model.n_layers * one,
        "a value of 16 bits has two bytes": steps * half,
    }
    each = f"{say(latency, 'us')} + {say(data, 'MB')} / {say(link, 'GB/s')}"
    return Key(steps * one, f"({stages} - 1) × ({each})", mistakes)


@pipeline(
    "short",
    "GB",
    stages=(2, 4, 8),
    count=(2, 4, 8),
    batch=(8, 16, 32),
    context=(2048, 4096, 8192),
    where=lambda model, stages, count, batch, context: (
        model.bytes_held(stages * batch, context) < stages * count * 80e9
    ),
)
def caches_of_stages(model, stages, count, batch, context):
    """{stages} stages of {count} chips each serve {model} in 16 bits; every stage works on a batch of {batch} of
    its own, with {context} tokens of context. How many GB lie on each chip?"""
    weights, caches = c.weights_of(model), stages * batch * model.cache_bytes(context)
    each = stages * count
    mistakes = {
        "all batches that are on their way have caches": (weights + caches / stages) / each,
        "the stages share the weights too": weights / count + caches / each,
        "the caches lie there as well": weights / each,
    }
    parts = f"({say(weights, 'GB')} + {say(caches, 'GB')}) / {each}"
    return Key(
        (weights + caches) / each,
        f"The weights and {stages * batch} caches over all chips: {parts}",
        mistakes,
    )
