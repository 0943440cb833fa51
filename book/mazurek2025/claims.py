"""Mazurek & Schreiber 2025: what it says in words, of its figures above all, as inequalities.

Its figures have kept no numbers: neither on their axes nor as data. They are drawn again with choices that
the document leaves open: 4989 tokens of context (the average it quotes, and near to what fits its measured
points), two-batch overlap, the balancedness of its Figure 12, and 32 extra experts where a system has
any.
"""

from functools import cache, partial

import numpy as np

from book.mazurek2025 import validation
from inferlib.ledger import Noted, Reader, reproduces
from inferlib.papers.mazurek2025.equations import experts, flops, memory, network, throughput
from inferlib.papers.mazurek2025.records import (
    DEFAULT,
    Assumptions,
    Deployment,
    balancedness,
    deployment,
    model_of,
    setup,
    setups,
    stated,
)

reproduces = partial(reproduces, "mazurek2025")
CONTEXT = 4989  # tokens: see the text above
OWN = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)  # sequences a GPU
MODEL = model_of("DeepSeek V3")


def _speed(name, own, context=CONTEXT, assumptions=DEFAULT, model=MODEL, **changes):
    """Tokens per second and GPU of one of the three setups, or of one like it."""
    at = setup(name)
    where = at.deployment.replace(**changes)
    return throughput.gpu_throughput(model, at.gpu, where, own * where.n_gpus, context, assumptions)


def parts_of(name, own, context=CONTEXT, assumptions=DEFAULT, model=MODEL):
    """Times of half of a batch on a setup: attention and experts by resource, and the network.

    Returns
    -------
    dict
        Seconds.
    """
    at = setup(name)
    half = own * at.deployment.n_gpus / 2
    where = model, at.gpu, at.deployment, half
    return {
        "attention memory": throughput.attention_memory_time(*where, context, assumptions),
        "attention arithmetic": throughput.attention_arithmetic_time(*where, context, assumptions),
        "expert memory": throughput.expert_memory_time(*where, assumptions),
        "expert arithmetic": throughput.expert_arithmetic_time(*where, assumptions),
        "network": network.network_time(*where, assumptions),
    }


def network_binds(name, own, context=CONTEXT, assumptions=DEFAULT):
    """Whether the network sets the time of a step with overlap."""
    t = parts_of(name, own, context, assumptions)
    computing = max(t["attention memory"], t["attention arithmetic"])
    return bool(t["network"] > computing + max(t["expert memory"], t["expert arithmetic"]))


# --- Section 1 to 3 --------------------------------------------------------------------------------------


def text_1():
    """What section 1 says in words."""
    batches = (8, 32)
    share = [experts.active_experts(MODEL, b) / (b * MODEL.n_active) for b in batches]
    whole = memory.experts_on_gpu(MODEL, MODEL.n_routed + 1)
    loaded = memory.experts_on_gpu(MODEL, experts.active_experts(MODEL, 256) + 1)
    slowest = [_memory_share(name) for name in setups()]
    llama = Reader("mazurek2025", "Text 1")
    wide = llama("Llama 3.3 70B", "feed-forward width") / llama("Llama 3.3 70B", "width")
    return {
        ("active parameters grow nearly linearly with the batch", ""): Noted(
            share[1] > 0.9,
            f"experts reached at batch 8 are {share[0]:.0%} of eight times as many, at 32 {share[1]:.0%} of 32 times "
            "(asked: 90% at 32)",
        ),
        ("a large batch loads nearly all parameters", ""): Noted(
            loaded / whole > 0.99, f"{loaded / whole:.1%} of the experts' bytes at batch 256 (asked: 99%)"
        ),
        ("decode is mostly memory-bound", ""): Noted(
            min(slowest) > 0.5, f"memory sets most of the step in {min(slowest):.0%} of batches or more"
        ),
        ("an expert is narrower than the model, a dense block wider", ""): Noted(
            bool(MODEL.d_expert < MODEL.d_model and wide > 1),
            f"{MODEL.d_expert / MODEL.d_model:.2f} and {wide:.1f} times the width",
        ),
    }


def _memory_share(name):
    """Share of the batches of Figure 14 at which memory sets the time of attention and of experts."""
    found = []
    for own in OWN:
        t = parts_of(name, own)
        memory_sets = (
            t["attention memory"] > t["attention arithmetic"] and t["expert memory"] > t["expert arithmetic"]
        )
        found.append(memory_sets and not network_binds(name, own))
    return sum(found) / len(found)


def text_2_1():
    """What section 2.1 says in words."""
    sent = network.messages(MODEL)
    return {
        ("a token's traffic in a layer is d times all experts", ""): Noted(
            bool(sent == MODEL.n_shared + MODEL.n_routed), f"it is d times the {sent} experts a token goes to"
        )
    }


def text_2_2(read):
    """What section 2.2 says in words."""
    extra, gpus = read("SGLang", "extra experts"), read("SGLang", "GPUs")
    shown = [balancedness(n) for n in stated()["balancedness"]["gpus"]]
    without = [balancedness(n, balanced=False) for n in stated()["balancedness"]["gpus_without"]]
    return {
        ("extra experts must be a multiple of the GPUs", ""): Noted(
            extra % gpus == 0,
            f"its own example has {extra:.0f} on {gpus:.0f}; section 3.4 asks for routed and extra experts together, "
            f"{MODEL.n_routed + extra:.0f} = {(MODEL.n_routed + extra) / gpus:.0f} x {gpus:.0f}",
        ),
        ("balance gets harder with more nodes", ""): Noted(
            sorted(without, reverse=True) == without and shown[-1] < shown[0],
            f"Figure 12: {without[0]} to {without[-1]} without balancing; with it {shown[0]} to {shown[-1]}",
        ),
    }


def text_2_4():
    """What section 2.4 says in words."""
    at = setup("4x8 H100")
    bound = [parts_of("4x8 H100", own) for own in OWN]
    share = sum(t["attention memory"] > t["attention arithmetic"] for t in bound) / len(bound)
    return {
        ("attention is memory-bound for most batches", ""): Noted(
            share > 0.5, f"at {share:.0%} of batches from 1 to 1024 a GPU on {at.name}, {CONTEXT} tokens"
        )
    }


@cache
def best_overlap_gain(context=CONTEXT):
    """The largest factor by which two-batch overlap speeds up a step, over setups and batches, and where."""
    own = np.geomspace(1, 4096, 400)
    best = {}
    for name in setups():
        gain = _speed(name, own, context) / _speed(name, own, context, two_batch=False)
        best[name] = float(gain.max())
    name = max(best, key=best.get)
    return best[name], name


def text_3_1_1():
    """What section 3.1.1 says in words."""
    own = 256
    part = memory.attention_activations(MODEL, own)
    whole = part + memory.cache_traffic(MODEL, own, CONTEXT) + memory.attention_weights(MODEL)
    return {
        ("activations stay small beside weights and cache", ""): Noted(
            part / whole < 0.05, f"{part / whole:.2%} of attention's bytes at 256 a GPU (asked: 5%)"
        )
    }


def text_3_1_2(read):
    """What section 3.1.2 says in words."""
    batch = read("batch from which all experts are loaded")
    reached = experts.active_experts(MODEL, batch)
    at = setup("4x8 H100").deployment
    full = experts.fullest_gpu_experts(at, MODEL.n_routed)
    held = MODEL.n_routed / at.n_gpus
    return {
        ("beyond that batch the model is loaded in full", ""): Noted(
            reached / MODEL.n_routed > 0.98,
            f"{reached:.1f} of {MODEL.n_routed}, {reached / MODEL.n_routed:.1%} (asked: 98%)",
        ),
        ("the fullest GPU needs no more experts than it holds", ""): Noted(
            bool(full <= held),
            f"balls into bins give {full:.1f} where {held:.0f} are held, 4x8 H100 at full activation",
        ),
    }


def head_batch():
    """Sequences a GPU from which the embedding matrices' arithmetic outlasts their reading, as in section 3.1.3.

    Arithmetic is that of the head at the FP8 peak, with the source's inefficiencies; both matrices are read.
    """
    gpu, a = setup("4x8 H100").gpu, DEFAULT
    one = MODEL.replace(n_dense_layers=0)
    reading = a.memory_inefficiency * memory.embedding_weights(one) / gpu.memory_bandwidth
    work = flops.dense_flops(one, 1) / gpu.fp8_flops
    return reading / (a.expert_inefficiency * a.arithmetic_penalty * work)


def text_3_1_3(read):
    """What section 3.1.3 says in words."""
    batch, size = head_batch(), read("vocabulary")
    return {
        ("the head is always memory-bound", ""): Noted(
            batch > max(OWN),
            f"up to {batch:.0f} sequences an H100; with the head alone read, {batch / 2:.0f}",
        ),
        ("the vocabulary is much larger than 100,000", ""): Noted(
            size > 10 * 100_000, f"{size / 100_000:.2f} times (asked: 10)"
        ),
    }


def text_3_2():
    """What section 3.2 says in words."""
    projected = [
        flops.absorbed_decode_flops(MODEL, 1, s)
        - flops.decode_absorbed_score_flops(MODEL, 1, s)
        - flops.decode_absorbed_value_flops(MODEL, 1, s)
        for s in (1, 5000)
    ]
    # prefill of one token and decode of one token meet every matrix once in both variants
    vanilla, absorbed = (flops.vanilla_decode_flops(MODEL, 1, 1), flops.absorbed_decode_flops(MODEL, 1, 1))
    cores = (
        flops.decode_attention_flops(MODEL, 1, 1),
        (flops.decode_absorbed_score_flops(MODEL, 1, 1) + flops.decode_absorbed_value_flops(MODEL, 1, 1)),
    )
    same = vanilla - cores[0] == absorbed - cores[1] == 2 * memory.layer_attention_weights(MODEL)
    return {
        ("absorption ends the dependence of projections on the context", ""): Noted(
            projected[0] == projected[1], f"{projected[0] / 1e9:.3f} GFLOP a layer at 1 and at 5000 tokens"
        ),
        ("absorption keeps the bytes of the weights", ""): Noted(
            bool(same),
            "with one token of context both variants do two FLOP for each byte of the same eight matrices",
        ),
    }


def text_3_4():
    """What section 3.4 says in words."""
    n = 16
    at = setup("9x8 H100").deployment
    spare = (MODEL.n_routed + at.extra_experts) % at.n_gpus
    return {
        ("all requests on one of n GPUs give 1/n", ""): Noted(
            experts.expert_balancedness(1 / n, 1.0) == 1 / n, "the mean over n GPUs is 1/n of the total"
        ),
        ("routed and extra experts of 9x8 H100 are a multiple of its GPUs", ""): Noted(
            spare == 0, f"{MODEL.n_routed} + {at.extra_experts} = 4 x {at.n_gpus}"
        ),
    }


@reproduces("Figure 12")
def _figure_12(read):
    read_off = stated()["balancedness"]["gpus"]
    gains = [balancedness(n) / balancedness(n, balanced=False) for n in read_off]
    return {
        ("balancing helps at every number of GPUs", ""): Noted(
            min(gains) > 1, f"{min(gains):.2f} to {max(gains):.2f} times the balancedness"
        )
    }


# --- Section 3.6 and the figures -------------------------------------------------------------------------


def section_3_ratio():
    """Time of a small batch by equation 49 over that of section 3's own form, on 9x8 H100."""
    at = setup("9x8 H100")
    batch = at.deployment.n_gpus
    where = MODEL, at.gpu, at.deployment, batch
    printed = throughput.section_3_time(
        throughput.attention_time(*where, CONTEXT),
        throughput.expert_time(*where),
        network.network_time(*where),
    )
    return throughput.step_time(*where, CONTEXT) / printed


@cache
def fewer_experts_gain():
    """What fewer active experts could be worth at a global batch of 32 on 4x8 H100, and what overlap costs there.

    Returns
    -------
    dict
        Relative gain in speed with as many experts on the fullest GPU as a simulation finds (``simulated``), with
        only those of the mean GPU (``mean``), and with the whole batch in one piece (``overlap``).
    """
    at, batch = setup("4x8 H100"), 32
    base = throughput.step_time(MODEL, at.gpu, at.deployment, batch, CONTEXT)
    printed = experts.loaded_experts(MODEL, at.deployment, batch / 2)
    mean = experts.active_experts(MODEL, batch / 2) / at.deployment.n_gpus
    simulated = validation.simulated_fullest(batch // 2, at.deployment.n_gpus, draws=500)
    second = 2 * DEFAULT.memory_inefficiency / at.gpu.memory_bandwidth
    expert = second * MODEL.n_expert_layers * memory.expert_weights(MODEL)
    serial = throughput.step_time(MODEL, at.gpu, at.deployment.replace(two_batch=False), batch, CONTEXT)
    gains = {
        name: base / (base - expert * (printed - routed - MODEL.n_shared)) - 1
        for name, routed in (("simulated", simulated), ("mean", mean))
    }
    return gains | {"overlap": base / serial - 1}


def value_flop_effect():
    """The most that the missing factor 2 changes a step's time over setups, batches and 4989 or 2050 tokens."""
    own, right = np.array(OWN, dtype=float), DEFAULT.replace(value_flop=2.0)
    changes = [
        1 - _speed(name, own, context, right) / _speed(name, own, context)
        for name in setups()
        for context in (CONTEXT, 2050)
    ]
    return float(np.max(changes))


def cache_fp8(own=(32, 64, 128, 256)):
    """Least and largest gain in speed that a cache in FP8 would bring, over setups and middling batches."""
    eight = DEFAULT.replace(cache_value_bytes=1.0)
    gains = [_speed(n, b, assumptions=eight) / _speed(n, b) - 1 for n in setups() for b in own]
    return min(gains), max(gains)


def free_memory(name="4x8 H100"):
    """Bytes that the weights leave free on one GPU of a setup."""
    at = setup(name)
    held = experts.held_experts(MODEL, at.deployment)
    return at.gpu.memory_capacity - memory.weights_on_gpu(MODEL, held)


@reproduces("Text 3.6")
def _text_3_6(read):
    fit, short = (validation.rms(validation.compared(s).values()) for s in (CONTEXT, 2050))
    plain = DEFAULT.replace(
        memory_inefficiency=1.0, attention_inefficiency=1.0, expert_inefficiency=1.0,
        arithmetic_penalty=1.0, network_inefficiency=1.0,
    )  # fmt: skip
    too_fast = validation.compared(CONTEXT, plain)
    free, gpus = free_memory(), setup("4x8 H100").deployment.n_gpus
    batch = read("batch after which sequences are evicted")
    tokens = free * gpus / memory.cache_per_token(MODEL) / batch
    rooms = [free_memory(name) for name in ("4x8 H100", "9x8 H100")]
    return {
        ("12x4 B200", "GPUs"): lambda read: read("12x4 B200", "boxes") * read("12x4 B200", "GPUs of a box"),
        ("agreement with measurements is reasonable", ""): Noted(
            fit < 0.1,
            f"{fit:.1%} rms over the seven points of SGLang at {CONTEXT} tokens (asked: 10%); they were measured at "
            f"about 2050, where it is {short:.0%}",
        ),
        ("without its inefficiencies the model is too fast", ""): Noted(
            min(too_fast.values()) > 0, f"by {min(too_fast.values()):.0%} to {max(too_fast.values()):.0%}"
        ),
        ("that batch no longer fits with answers of some thousand tokens", ""): Noted(
            tokens < 20_000,
            f"room for {tokens:,.0f} tokens each beside the weights (asked: fewer than 20,000)",
        ),
        ("more nodes make room for more cache", ""): Noted(
            bool(rooms[1] > rooms[0]), f"{rooms[1] / 1e9:.0f} in place of {rooms[0] / 1e9:.0f} GB on a GPU"
        ),
    }


@reproduces("Figure 14")
def _figure_14(read):
    own = read("batch per GPU")
    curves = {name: [_speed(name, b) for b in OWN] for name in setups()}
    rising = all(
        low <= high * (1 + 1e-12) for c in curves.values() for low, high in zip(c, c[1:], strict=False)
    )
    gains = [max(curve) / curve[0] for curve in curves.values()]
    four, nine = (_speed(name, own) for name in ("4x8 H100", "9x8 H100"))
    where = setup("9x8 H100")
    doubled = network.network_time(MODEL, where.gpu, where.deployment, 2) / network.network_time(
        MODEL, where.gpu, where.deployment, 1
    )
    bound = network_binds("9x8 H100", own)
    longest = max(s for s in range(1000, 9000, 50) if _speed("4x8 H100", own, s) > _speed("9x8 H100", own, s))
    alone = [s for s in range(1000, 9000, 50) if not network_binds("4x8 H100", own, s)]
    rack = "12x4 B200"
    most = network.network_ceiling(MODEL, setup(rack).gpu, setup(rack).deployment)
    held = [experts.held_experts(MODEL, Deployment(n)) for n in (32, 64)]
    at = setup("4x8 H100")
    room = memory.largest_own_batch(MODEL, at.gpu, CONTEXT, experts.held_experts(MODEL, at.deployment))
    short = [network_binds(name, 1024, 500) for name in ("4x8 H100", "9x8 H100")]
    return {
        ("a larger batch makes every setup more efficient", ""): Noted(
            rising and min(gains) > 10, f"{min(gains):.0f} to {max(gains):.0f} times from 1 to 1024 a GPU"
        ),
        ("traffic grows linearly with the batch", ""): Noted(
            abs(doubled - 2) < 1e-12, f"twice the batch, {doubled:.0f} times the time"
        ),
        ("large batches of short sequences may be bound by the network", ""): Noted(
            all(short), "both H100 setups at 1024 a GPU and 500 tokens"
        ),
        ("there 4x8 H100 is faster per GPU than 9x8 H100", ""): Noted(
            bool(four > nine), f"{four:.0f} and {nine:.0f} tokens/s at {CONTEXT} tokens; true up to {longest}"
        ),
        ("there 9x8 H100 is bound by the network", ""): Noted(
            bound, f"4x8 H100 is not from {min(alone)} tokens on"
        ),
        ("4x8 H100 cannot hold that batch", ""): Noted(
            bool(room < own), f"at most {room:.0f} sequences of {CONTEXT} tokens a GPU"
        ),
        ("12x4 B200 is never bound by the network", ""): Noted(
            not any(network_binds(rack, b, s) for b in OWN for s in (500, CONTEXT)),
            f"its network would let {most:,.0f} tokens/s a GPU through",
        ),
        ("more GPUs share the expert weights in proportion", ""): Noted(
            held[0] / held[1] > 1.7, f"{held[0]} experts of a layer on one of 32 GPUs, {held[1]} on one of 64"
        ),
    }


def kimi_over_deepseek(own, name, kimi=None):
    """Speed of Kimi K2 over that of DeepSeek V3 on a setup; copies of experts fill its GPUs evenly.

    Parameters
    ----------
    own : float or array
        Sequences a GPU.
    name : str
        One of the three setups.
    kimi : Model, optional
        Kimi K2's own configuration when not given.
    """
    kimi = kimi or model_of("Kimi K2")
    extra = (-kimi.n_routed) % setup(name).deployment.n_gpus
    return _speed(name, own, model=kimi, extra_experts=extra) / _speed(name, own)


def more_experts():
    """DeepSeek V3 with Kimi K2's number of experts and nothing else changed."""
    return MODEL.replace(n_routed=model_of("Kimi K2").n_routed, name="DeepSeek V3, 384 experts")


@reproduces("Figure 15")
def _figure_15(read):
    kimi = model_of("Kimi K2")
    count = sum(
        (
            memory.attention_weights(kimi),
            memory.experts_on_gpu(kimi, kimi.n_routed + kimi.n_shared),
            memory.dense_weights(kimi),
            memory.embedding_weights(kimi),
        )
    )
    own = (8, 64, 256, 512)
    ratios = {name: [kimi_over_deepseek(b, name) for b in own] for name in setups()}
    worst = min(min(row) for row in ratios.values())
    guessed = min(kimi_over_deepseek(b, name, more_experts()) for name in setups() for b in own)
    four = ratios["4x8 H100"]
    sent = [network.tokens_traffic(m, 1) for m in (kimi, MODEL)]
    held = [
        memory.weights_on_gpu(m, experts.held_experts(m, setup("4x8 H100").deployment)) for m in (kimi, MODEL)
    ]
    return {
        ("Kimi K2 has more than 1T parameters", ""): Noted(count > 1e12, f"{count / 1e9:.1f} billion"),
        ("Kimi K2 is DeepSeek V3 with more experts", ""): Noted(
            (kimi.n_heads, kimi.n_dense_layers, kimi.vocab_size)
            == (MODEL.n_heads, MODEL.n_dense_layers, MODEL.vocab_size),
            f"{kimi.n_heads} heads in place of {MODEL.n_heads}, {kimi.n_dense_layers} dense layer in place of "
            f"{MODEL.n_dense_layers}, vocabulary {kimi.vocab_size:,} in place of {MODEL.vocab_size:,}",
        ),
        ("traffic is the same", ""): Noted(sent[0] == sent[1], f"{sent[0] / 1e6:.3f} MB a token in both"),
        ("Kimi K2 is slower", ""): Noted(
            max(max(row) for row in ratios.values()) <= 1 + 1e-9 and worst < 1,
            f"by up to {1 - worst:.0%} over three setups and 8 to 512 a GPU; at 1 a GPU on 4x8 it is "
            f"{kimi_over_deepseek(1, '4x8 H100') - 1:.0%} faster",
        ),
        ("most so where attention takes little time", ""): Noted(
            four == sorted(four), "4x8 H100, 8 to 512 a GPU: " + ", ".join(f"{r - 1:+.0%}" for r in four)
        ),
        ("only modestly so", ""): Noted(
            worst > 0.85,
            f"by at most {1 - worst:.0%} (asked: 15%); {1 - guessed:.0%} if only the experts differed",
        ),
        ("Kimi K2 reaches the limit of memory earlier", ""): Noted(
            bool(held[0] > held[1]),
            f"{held[0] / 1e9:.1f} and {held[1] / 1e9:.1f} GB of weights on a GPU of 4x8",
        ),
    }


def lengthening(context=32768, short=1024, own=8, name="4x8 H100"):
    """How much longer a decode step and a prompt take with a longer context: two ratios."""
    at = setup(name)
    batch = own * at.deployment.n_gpus
    step = [throughput.step_time(MODEL, at.gpu, at.deployment, batch, s) for s in (context, short)]
    prompt = [throughput.prefill_time(MODEL, at.gpu, s) for s in (context, short)]
    return step[0] / step[1], prompt[0] / prompt[1]


@reproduces("Figure 16")
def _figure_16(read):
    gpu = setup("4x8 H100").gpu
    long, longer = (throughput.prefill_time(MODEL, gpu, s) for s in (1e6, 2e6))
    decode, prefill = lengthening()
    bound = [parts_of("4x8 H100", own, 32768) for own in OWN]
    all_bound = all(t["attention memory"] > t["attention arithmetic"] for t in bound)
    return {
        ("a prompt's time grows with the square of its length", ""): Noted(
            3.9 < longer / long <= 4,
            f"twice a million tokens, {longer / long:.2f} times the time (asked: 3.9 to 4)",
        ),
        ("decode suffers less from long contexts than prefill", ""): Noted(
            decode < prefill,
            f"32,768 tokens over 1024: {decode:.2f} times at 8 a GPU, against {prefill:.0f} times",
        ),
        ("a large cache makes attention memory-bound", ""): Noted(
            all_bound, "on H100 at 32,768 tokens and every batch, because memory is given a factor of 2.0"
        ),
    }


def text_4(read):
    """What section 4 says in words."""
    row = "32,768 tokens on 4x8 H100"
    said, free = read(row, "memory for the cache of one GPU"), free_memory()
    gpus = setup("4x8 H100").deployment.n_gpus
    largest = said * gpus / (read(row, "cache of one token") * read(row, "context"))
    (at_limit, _), (fixed, _) = (lengthening(own=largest / gpus), lengthening(own=128))
    gpu = setup("4x8 H100").gpu
    work = throughput.prefill_time(MODEL, gpu, CONTEXT)
    reading = DEFAULT.memory_inefficiency * memory.attention_weights(MODEL) / gpu.memory_bandwidth
    return {
        ("20 GB is what weights leave of 80", ""): Noted(
            abs(free / said - 1) < 0.1,
            f"weights leave {free / 1e9:.0f} GB; the rest may be software and headroom, which it does not count",
        ),
        ("the context matters little for decode", ""): Noted(
            at_limit < 1.5,
            f"1024 to 32,768 tokens: {at_limit:.2f} times as long at the batch that fits (asked: 1.5), {fixed:.1f} "
            "times at 128 a GPU",
        ),
        ("prefill is mostly bound by arithmetic", ""): Noted(
            work > reading,
            f"attention of one prompt of {CONTEXT} tokens: {work / reading:.0f} times its reading",
        ),
    }


def largest_batch(name, speed, context=CONTEXT, limit=4096):
    """Most sequences a GPU of a setup at which every request still gets so many tokens per second.

    Parameters
    ----------
    name : str
        One of the three setups.
    speed : float
        Tokens per second of a request.
    context : float
    limit : int
        The largest batch that is tried.

    Returns
    -------
    int
        0 where not even one sequence is that fast.
    """
    at = setup(name)
    own = np.arange(1, limit + 1)
    step = throughput.step_time(MODEL, at.gpu, at.deployment, own * float(at.deployment.n_gpus), context)
    fast = throughput.request_speed(step) >= speed
    return int(own[fast].max(initial=0))


@reproduces("Figure 17")
def _figure_17(read):
    speed = read("tokens per second of a request")
    found = {s: {name: largest_batch(name, speed, s) for name in setups()} for s in (2000, CONTEXT, 32768)}
    rack, small = "12x4 B200", "4x8 H100"
    kept = {name: _speed(name, found[CONTEXT][name]) / max(_speed(name, b) for b in OWN) for name in setups()}
    shown = "; ".join(f"{s:,} tokens: " + ", ".join(map(str, row.values())) for s, row in found.items())
    return {
        ("12x4 B200 allows the largest batch", ""): Noted(
            all(max(row, key=row.get) == rack for row in found.values()),
            f"a GPU, in the order printed: {shown}",
        ),
        ("the limit costs the smallest setup most", ""): Noted(
            min(kept, key=kept.get) == small,
            "it keeps " + ", ".join(f"{part:.0%} of the best speed of {name}" for name, part in kept.items()),
        ),
    }


def corrected_ceiling(name):
    """Tokens per second and GPU that a setup's network lets through, as printed and corrected."""
    at = setup(name)
    return tuple(
        network.network_ceiling(MODEL, at.gpu, at.deployment, a) for a in (DEFAULT, Assumptions.corrected())
    )


def widths(counts=(8, 16, 32, 64, 128), own=128, context=2050):
    """The same H100s in ever wider deployments: speed of a GPU, and what bounds it.

    Returns
    -------
    dict
        GPUs to tokens per second and GPU.
    """
    gpu = setup("4x8 H100").gpu
    return {
        n: throughput.gpu_throughput(
            MODEL, gpu, deployment(n, max(n // 8, 1), extra_experts=(-MODEL.n_routed) % n), own * n, context
        )
        for n in counts
    }
