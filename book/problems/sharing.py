"""Experts, networks, collectives and pipelines: what chips share, and what they wait for."""

from functools import partial

from book.problems import choices as c
from book.problems.bank import Key, problem, say
from inferlib import System, ops, principles
from inferlib.papers import erdil2025, liminal2025, mazurek2025, pope2022
from inferlib.principles import exchange_time, profile_of

experts, network, collectives, pipeline = (
    partial(problem, topic) for topic in ("experts", "network", "collectives", "pipeline")
)
HOPS = (0.5e-6, 1e-6, 2e-6)
LATENCIES = (3e-6, 5e-6, 10e-6)
EXCHANGES = 2  # of a layer: after attention and after the feed-forward block


def block_of(model):
    """The experts of one layer."""
    return model.layers[-1].feed_forward


def vectors(model, batch):
    """Bytes of the 16-bit vectors of a batch, as wide as the model."""
    return batch * model.d_model * c.format_bytes("bf16")


@experts(
    "one line", "1",
    "How many different routed experts of a layer does a step of {model} with {batch} sequences touch, if "
    "all are equally popular?",
    model=c.FINE, batch=(8, 16, 32, 64),
)  # fmt: skip
def _(model, batch):
    block = block_of(model)
    touched = block.touched(batch)
    return Key(
        touched,
        f"A token misses an expert with probability 1 - {block.n_active}/{block.n_experts}, all of them "
        f"with that to the "
        f"power {batch}: {touched:.1f} of {block.n_experts} are touched.",
        {
            "tokens meet at the same experts: do not just multiply": min(
                batch * block.n_active, block.n_experts
            ),
            "that is one token's; the others choose for themselves": block.n_active,
        },
    )


@experts(
    "one line", "GB",
    "How many GB must the memory of a system have for the weights of {model} in {weights}?",
    model=c.EXPERTS, weights=("bf16", "fp8"),
)  # fmt: skip
def _(model, weights):
    held = c.weights_of(model, weights)
    active = held * model.n_active / model.n_params
    return Key(
        held,
        f"All experts are kept, whoever is asked: {model.n_params / 1e9:.1f} billion weights, "
        f"{say(held, 'GB')}.",
        {
            "those are the active weights; the others must be in memory too": active,
            f"a weight in {weights} has {c.bits(weights):g} bits": held * 2 if weights == "fp8" else held / 2,
        },
    )


@experts(
    "short", "GB",
    "How many GB of weights does one step of {model} with {batch} sequences read, in 8 bits, if all "
    "experts are equally popular?",
    model=c.FINE, batch=(4, 8, 16, 32, 64),
)  # fmt: skip
def _(model, batch):
    profile = profile_of(model, "fp8")
    read = principles.weight_data(profile, batch)
    return Key(
        read,
        f"What every step reads, and {say(block_of(model).touched(batch), '1')} of "
        f"{block_of(model).n_experts} experts in "
        f"each layer: {say(read, 'GB')}.",
        {
            "those are one token's weights; a batch touches more experts": principles.weight_data(profile, 1),
            "not all experts are touched": principles.weight_data(profile, 1e9),
            "sequences share what every step reads, and experts they meet at": batch
            * principles.weight_data(profile, 1),
        },
    )


@experts(
    "short", "1",
    "From which batch on is, on average, less than one routed expert of a layer of {model} untouched?",
    model=c.FINE,
)  # fmt: skip
def _(model):
    block = block_of(model)
    batch = next(b for b in range(1, 10_000) if block.n_experts - block.touched(b) < 1)
    return Key(
        batch,
        f"{block.n_experts} × {1 - block.n_active / block.n_experts:.4f} to the power b falls below one at "
        f"{batch}.",
        {
            "that many would do if no two tokens chose the same expert": block.n_experts / block.n_active,
            "each expert is missed by each token with the probability 1 - k/E, not 1/E": block.n_experts,
        },
    )


@experts(
    "short", "1",
    "The experts of a layer are dealt over {count} GPUs of Mazurek and Schreiber's setting, and popular "
    "ones are copied (with balancing). The average GPU gets {load} tokens in a layer. How many does the "
    "fullest get?",
    count=(16, 32, 64, 72), load=(64, 100, 250, 500), facts=False,
)  # fmt: skip
def _(count, load):
    share = mazurek2025.records.balancedness(count)
    fullest = load / share
    worse = load / mazurek2025.records.balancedness(count, balanced=False)
    return Key(
        fullest,
        f"Balancedness, the average over the fullest, is {share:.3f} for {count} GPUs: {load} over that is "
        f"{fullest:.0f}.",
        {
            "the fullest GPU has more than the average: divide by the balancedness": load * share,
            "that is without copies of popular experts": worse,
        },
    )


@experts(
    "study", "ms",
    "{count} × {chip} decode {batch} sequences of {context} tokens with {model}, weights in fp8, caches "
    "and arithmetic in 16 bits. What is the least time of a step, reading and calculating at once?",
    model=("Mixtral 8x22B", "DBRX", "Qwen3 235B-A22B"), chip=c.EIGHT_BITS, count=(4, 8),
    batch=(2, 4, 8, 16, 32), context=(1024, 4096, 16384),
    where=lambda model, chip, count, batch, context: model.bytes_held(batch, context, "fp8")
        < count * chip.memory_capacity,
)  # fmt: skip
def _(model, chip, count, batch, context):
    step = c.bound(model, chip, count, batch, context, "fp8")
    t, profile = step.terms, profile_of(model, "fp8")

    def reading(sequences):
        return principles.memory_time(chip, principles.weight_data(profile, sequences), count) + t["cache"]

    return Key(
        step.total,
        f"The experts touched and all else take {say(t['weights'], 'ms')} to read, caches "
        f"{say(t['cache'], 'ms')}, "
        f"arithmetic {say(t['arithmetic'], 'ms')} meanwhile: {say(step.total, 'ms')}.",
        {
            "a batch touches more experts than one token does": reading(1),
            "a small batch does not touch all experts": reading(1e9),
            "every sequence also reads its cache": t["weights"],
            "the weights have one byte each": 2 * t["weights"] + t["cache"],
        },
    )


@network(
    "one line", "us",
    "A layer of {model} exchanges one 16-bit vector, as wide as the model, for each of {batch} sequences "
    "over a link of {chip}. The data sheet prints its bandwidth of both directions together, "
    "{twice:GB/s}. Beside {latency:us} that no bytes explain, how long does that take?",
    model=c.DENSE, chip=c.CHIPS, batch=(64, 128, 256, 512), latency=LATENCIES, facts=False,
    told=lambda chip: {"twice": 2 * chip.scale_up_bandwidth},
)  # fmt: skip
def _(model, chip, batch, latency):
    data = vectors(model, batch)
    time = exchange_time(latency, data, chip.scale_up_bandwidth)
    return Key(
        time,
        f"{say(data, 'MB')} over {say(chip.scale_up_bandwidth, 'GB/s')} one way, and {say(latency, 'us')}: "
        f"{say(time, 'us')}.",
        {
            "that bandwidth counts both directions; bytes go one way": exchange_time(
                latency, data, 2 * chip.scale_up_bandwidth
            ),
            "the time that no bytes explain comes on top": time - latency,
            "a value of 16 bits has two bytes": exchange_time(latency, data / 2, chip.scale_up_bandwidth),
        },
    )


@network(
    "one line", "ms",
    "Every layer of {model} exchanges results twice, and each exchange waits {latency:us} whatever is "
    "sent. How long does one token wait in all?",
    model=c.DENSE, latency=LATENCIES,
)  # fmt: skip
def _(model, latency):
    wait = model.n_layers * EXCHANGES * exchange_time(latency, 0, 1)
    return Key(
        wait,
        f"{model.n_layers} layers × {EXCHANGES} × {say(latency, 'us')}: {say(wait, 'ms')}.",
        {
            "there are two exchanges in each layer": wait / EXCHANGES,
            "every layer waits for its own": latency * EXCHANGES,
        },
    )


@network(
    "one line", "1/s",
    "If memory and arithmetic cost nothing, how many tokens a second does one user of {model} get, with "
    "two exchanges of {latency:us} in every layer?",
    model=c.DENSE, latency=LATENCIES,
)  # fmt: skip
def _(model, latency):
    speed = 1 / (model.n_layers * EXCHANGES * exchange_time(latency, 0, 1))
    return Key(
        speed,
        f"One over {model.n_layers} × {EXCHANGES} × {say(latency, 'us')}: {say(speed, '1/s')}.",
        {"there are two exchanges in each layer": EXCHANGES * speed},
    )


@network(
    "short", "1",
    "In Erdil's toy model, how many {chip} make a token of {model} in 16 bits fastest, if a hop takes "
    "{hop:us}? (Four all-reduces in a layer, over a square of chips; not rounded.)",
    model=c.DENSE, chip=c.CHIPS, hop=HOPS,
)  # fmt: skip
def _(model, chip, hop):
    toy = erdil2025.model_of(model)
    reading, waiting = erdil2025.weight_time(toy, chip, 1), erdil2025.network_time(toy, hop)
    best = erdil2025.optimal_n_gpu(toy, chip, hop)
    return Key(
        best,
        f"One chip reads for {say(reading, 'ms')}, all hops of one side take {say(waiting, 'ms')}: their "
        f"ratio to the power "
        f"2/3 is {best:.1f}.",
        {
            "waiting grows with the root of the chips: the power is 2/3": reading / waiting,
            "the power is 2/3, not 1/2": (reading / waiting) ** (1 / 2),
            "there are four all-reduces in a layer": best * 2 ** (2 / 3),
        },
    )


@network(
    "short", "ms",
    "And how long does that fastest token take: {model} in 16 bits on as many {chip} as are best, a hop "
    "of {hop:us}, in Erdil's toy model?",
    model=c.DENSE, chip=c.CHIPS, hop=HOPS,
)  # fmt: skip
def _(model, chip, hop):
    toy = erdil2025.model_of(model)
    best = erdil2025.optimal_n_gpu(toy, chip, hop)
    time, reading = erdil2025.minimum_latency(toy, chip, hop), erdil2025.weight_time(toy, chip, best)
    return Key(
        time,
        f"At {best:.1f} chips reading takes {say(reading, 'ms')}, waiting the rest of {say(time, 'ms')}.",
        {
            "at the best size chips also wait for one another": reading,
            "that is the waiting; the weights are read as well": time - reading,
            "that is the formula for large instances, which leaves a term "
            "out": erdil2025.minimum_latency_large(toy, chip, hop),
        },
    )


@network(
    "study", "ms",
    "A machine that reads prompts hands the 16-bit cache of {context} tokens of {model} to one that "
    "decodes, over {ports} network ports of 400 Gbit/s each. How long does that take?",
    model=c.DENSE, context=c.CONTEXTS[2:], ports=(1, 4, 8),
)  # fmt: skip
def _(model, context, ports):
    data, port = model.cache_bytes(context), 400e9 / 8
    time = exchange_time(0, data, ports * port)
    return Key(
        time,
        f"{say(data, 'GB')} over {ports} × {say(port, 'GB/s')}: {say(time, 'ms')}.",
        {
            "ports are sold in bits: eight of them are a byte": time / 8,
            "all ports send at the same time": ports * time,
            "a cache is kept for each key/value head, not for each query head": c.groups(model) * time,
            "there are a key and a value": time / 2,
        },
    )


@collectives(
    "one line", "us",
    "How long does the latency of an all-reduce along a ring of {count} chips take, at {hop:us} a hop?",
    count=(4, 8, 16, 32, 64), hop=HOPS,
)  # fmt: skip
def _(count, hop):
    time = erdil2025.ring_all_reduce_time(count, hop)
    return Key(
        time,
        f"Round once to add up, once more to hand out, {count - 1} hops each: {say(time, 'us')}.",
        {
            "the sum must also be handed out: round twice": time / 2,
            "that is one hop": hop,
        },
    )


@collectives(
    "one line", "us",
    "{count} chips stand in a square grid and add up along its rings of one side, at {hop:us} a hop. How "
    "long does the latency of such an all-reduce take?",
    count=(16, 64, 144, 256), hop=HOPS,
)  # fmt: skip
def _(count, hop):
    time = erdil2025.grid_all_reduce_time(count, hop)
    return Key(
        time,
        f"A side has {count**0.5:.0f} chips, and a hop is taken for each of the others, there and back: "
        f"{say(time, 'us')}.",
        {
            "a ring of the grid holds one side of it, not all chips": erdil2025.ring_all_reduce_time(
                count, hop
            ),
            "the sum must also be handed out": time / 2,
        },
    )


@collectives(
    "short", "us",
    "{count} chips of kind {chip} sum a 16-bit tensor of {tokens} tokens, as wide as {model}: a "
    "reduce-scatter and an all-gather, bandwidth only, the factor (K - 1)/K kept. How long?",
    model=c.DENSE, chip=c.CHIPS, count=(2, 4, 8), tokens=(256, 1024, 4096),
)  # fmt: skip
def _(model, chip, count, tokens):
    exact = pope2022.Assumptions(exact_collectives=True)
    size, at = vectors(model, tokens), pope2022.chip_of(chip)
    time = pope2022.all_reduce_time(at, size, count, exact)
    return Key(
        time,
        f"{say(size, 'MB')} go out and come back, {count - 1}/{count} of them: {say(time, 'us')}.",
        {
            "half of that is missing: scatter and gather are two, values have two bytes, links are stated "
            "one way": time / 2,
            "a chip keeps its own part: the factor is (K - 1)/K": pope2022.all_reduce_time(at, size, count),
        },
    )


@collectives(
    "short", "GB",
    "The 16-bit cache of {batch} sequences of {context} tokens of {model} is cut over its heads on "
    "{count} chips. How many GB lie on each chip?",
    model=c.DENSE, batch=c.BATCHES, context=c.CONTEXTS, count=(16, 32, 64),
)  # fmt: skip
def _(model, batch, context, count):
    at = pope2022.model_of(model)
    held = pope2022.cache_over_heads(at, count, batch, context)
    whole = batch * model.cache_bytes(context)
    return Key(
        held,
        f"Only {model.n_kv_heads} parts can be told apart, the other chips hold copies: {say(whole, 'GB')} "
        f"over "
        f"{model.n_kv_heads} is {say(held, 'GB')}.",
        {
            "there are fewer key/value heads than chips: the others hold copies": whole / count,
            "the whole cache is on no chip": whole,
            "query heads have no cache of their own": whole / model.n_heads,
        },
    )


@collectives(
    "short", "us",
    "By LIMINAL's sum for a switch of 128 ports, how long is the latency of one collective among {count} "
    "chips?",
    count=(2, 4, 8, 16, 32, 64, 128), facts=False,
)  # fmt: skip
def _(count):
    printed = liminal2025.Assumptions()
    time = liminal2025.collective_latency(count)
    return Key(
        time,
        f"On the chip {say(printed.on_chip, 'ns')}, through the switch {say(printed.switch, 'ns')}, and "
        f"the transfer: "
        f"{say(time, 'us')}.",
        {
            "the message also has to cross the switch": time - printed.switch,
            "chips take their own time beside the switch": time - printed.on_chip,
            "one chip uses only its part of the ports": liminal2025.collective_latency(128),
        },
    )


@collectives(
    "study", "ms",
    "By LIMINAL, how long is all of the waiting in one step of {model} on {count} chips?",
    model=("Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B"), count=(4, 8, 32, 64, 128),
)  # fmt: skip
def _(model, count):
    app, one = liminal2025.model_of(model), liminal2025.collective_latency(count)
    printed = liminal2025.Assumptions()
    wait = liminal2025.exposed_time(app, count, 1, one)
    each = liminal2025.collectives(app, count)
    return Key(
        wait,
        f"{each:.0f} collectives of {say(one, 'us')}: {say(wait, 'ms')}.",
        {
            "beyond the key/value heads attention needs further "
            "collectives": one * printed.within_heads * app.layers
            if count > app.kv_heads else 0,
            "every layer has collectives of its own": wait / app.layers,
            "that is one collective a layer": one * app.layers,
        },
    )  # fmt: skip


@pipeline(
    "one line", "ms",
    "{stages} stages of {count} × {chip} each share the layers of {model} in 16 bits. How long does one "
    "token take to pass all stages, if only reading the weights takes time?",
    model=c.DENSE, chip=c.CHIPS, stages=(2, 4, 8), count=(2, 4, 8),
    where=lambda model, chip, stages, count: c.weights_fit(model, chip, stages * count),
)  # fmt: skip
def _(model, chip, stages, count):
    time = principles.memory_time(chip, c.read_of(model), count)
    return Key(
        time,
        f"One stage after the other reads its layers with its own {count} chips: "
        f"{say(c.read_of(model), 'GB')} over "
        f"{say(count * chip.memory_bandwidth, 'TB/s')}, {say(time, 'ms')}.",
        {
            "stages work one after the other on a token: they do not shorten it": time / stages,
            "the chips of a stage share its reading": count * time,
        },
    )


@pipeline(
    "one line", "1",
    "A token of {model} takes {time:ms} through {stages} stages, each of which works on a batch of "
    "{batch} of its own. How many tokens does the pipeline make in a second?",
    model=c.DENSE, time=(0.02, 0.032, 0.05), stages=(2, 4, 8), batch=(8, 16, 32), facts=False,
)  # fmt: skip
def _(model, time, stages, batch):
    made = erdil2025.throughput(stages * batch, time)
    return Key(
        made,
        f"{stages} batches of {batch} are on their way, each is done after {say(time, 'ms')}: "
        f"{say(made, '1')} a second.",
        {
            "every stage has a batch of its own: all are on their way at once": batch / time,
            "that is the speed of one user": 1 / time,
            "each batch has many sequences": stages / time,
        },
    )


@pipeline(
    "short", "ms",
    "Between the {stages} stages of a pipeline the 16-bit vectors of {batch} sequences of {model} go over "
    "the network of {chip}, {latency:us} and {bandwidth:GB/s} each time. How much does that add to a "
    "token?",
    model=c.DENSE, chip=c.CHIPS, stages=(2, 4, 8), batch=(64, 256, 1024), latency=LATENCIES, facts=False,
    told=lambda chip: {"bandwidth": chip.scale_out_bandwidth},
)  # fmt: skip
def _(model, chip, stages, batch, latency):
    one = exchange_time(latency, vectors(model, batch), chip.scale_out_bandwidth)
    return Key(
        (stages - 1) * one,
        f"{say(vectors(model, batch), 'MB')} take {say(one, 'us')}, {stages - 1} times: "
        f"{say((stages - 1) * one, 'ms')}.",
        {
            "there is one step less than stages": stages * one,
            "vectors go over once a stage, not once a layer": model.n_layers * one,
            "a value of 16 bits has two bytes": (stages - 1)
            * exchange_time(latency, vectors(model, batch) / 2, chip.scale_out_bandwidth),
        },
    )


@pipeline(
    "short", "GB",
    "{stages} stages of {count} chips each serve {model} in 16 bits; every stage works on a batch of "
    "{batch} of its own, with {context} tokens of context. How many GB lie on each chip?",
    model=c.DENSE, stages=(2, 4, 8), count=(2, 4, 8), batch=(8, 16, 32), context=(2048, 4096, 8192),
    where=lambda model, stages, count, batch, context: model.bytes_held(stages * batch, context) < stages *
        count * 80e9,
)  # fmt: skip
def _(model, stages, count, batch, context):
    weights, caches = c.weights_of(model), stages * batch * model.cache_bytes(context)
    each = stages * count
    return Key(
        (weights + caches) / each,
        f"{say(weights, 'GB')} of weights and {stages * batch} caches, {say(caches, 'GB')}, over {each} "
        f"chips: "
        f"{say((weights + caches) / each, 'GB')}.",
        {
            "all batches that are on their way have caches": (weights + caches / stages) / each,
            "the stages share the weights too": weights / count + caches / each,
            "the caches lie there as well": weights / each,
        },
    )


@pipeline(
    "short", "1",
    "{model} needs {batch} caches of {context} tokens beside its 16-bit weights. How many instances of "
    "{count} × {chip}, as stages of one pipeline, hold all of that? Round up.",
    model=c.DENSE, chip=c.CHIPS, count=(2, 4, 8), batch=(64, 128, 256), context=(8192, 16384, 32768),
    where=lambda model, chip, count, batch, context: model.bytes_held(batch, context) < 20 * count *
        chip.memory_capacity,
)  # fmt: skip
def _(model, chip, count, batch, context):
    need, have = model.bytes_held(batch, context), System(chip, count).memory
    return Key(
        ops.ceil(need / have),
        f"{say(need, 'GB')} over {say(have, 'GB')} an instance, rounded up: {ops.ceil(need / have):.0f}.",
        {
            "the weights take room as well": ops.ceil((need - c.weights_of(model)) / have),
            "an instance has several chips": ops.ceil(need / chip.memory_capacity),
            "the caches take room as well": ops.ceil(c.weights_of(model) / have),
        },
    )


@pipeline(
    "study", "1",
    "{model} in 16 bits runs on {total} × {chip} for one user, either all in one tensor-parallel instance "
    "or as {stages} stages of {each} chips. Each of two exchanges in a layer takes {latency:us} a chip of "
    "the instance. How many times as fast is the faster way? (Reading and exchanges only.)",
    model=c.DENSE, chip=c.CHIPS, total=(8, 16, 32), stages=(2, 4), latency=(2e-07, 5e-07, 1e-06),
    where=lambda model, chip, total: c.weights_fit(model, chip, total),
    told=lambda total, stages: {"each": total // stages},
)  # fmt: skip
def _(model, chip, total, stages, latency):
    def time(chips):
        waits = model.n_layers * EXCHANGES * exchange_time(chips * latency, 0, 1)
        return principles.memory_time(chip, c.read_of(model), chips) + waits

    one, cut = time(total), time(total / stages)
    return Key(
        max(one / cut, cut / one),
        f"One instance: {say(one, 'ms')}; {stages} stages: {say(cut, 'ms')}. The ratio is "
        f"{max(one / cut, cut / one):.2f}.",
        {
            "you took the slower way over the faster one turned round": min(one / cut, cut / one),
            "without exchanges one instance would always win by the number of stages": stages,
        },
    )
