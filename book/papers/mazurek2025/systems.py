"""Mazurek & Schreiber 2025: the three systems of its figures, and the effect of each open choice.

Our copy of the text states no context for Figures 13 to 17. They are drawn with choices that it leaves open: 4989
tokens of context (the average it quotes, and near the value that fits its measured points if the experts of a GPU are
capped), two-batch overlap, the balancedness of its Figure 12, and 32 extra experts if a system has any.
"""

from functools import cache

import numpy as np
import pandas as pd

from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.records import PRINTED, Assumptions, deployment, load_model, setup, setups

CONTEXT = 4989  # tokens: see the text above
TRUE = 2050  # tokens behind a sequence on average, by the lengths that SGLang states
OWN = tuple(2**k for k in range(11))  # sequences a GPU
MODEL = load_model("DeepSeek V3")
# Section 3.1.2 prints two formulas for the experts of a GPU, and not how they combine.
READINGS = {"capped": PRINTED, "literal": Assumptions.uncapped()}


def speed(name, own, context=CONTEXT, assumptions=PRINTED, model=MODEL, **changes):
    """Tokens per second and GPU of one of the three setups, or of a variant."""
    at = setup(name)
    where = at.deployment.replace(**changes)
    return eq.gpu_throughput(model, at.gpu, where, own * where.n_gpus, context, assumptions)


def parts_of(name, own, context=CONTEXT, assumptions=PRINTED):
    """Times of half of a batch on a setup: attention and experts by resource, and the network."""
    at = setup(name)
    where = MODEL, at.gpu, at.deployment, own * at.deployment.n_gpus / 2
    return {
        "attention memory": eq.attention_memory_time(*where, context, assumptions),
        "attention arithmetic": eq.attention_arithmetic_time(*where, context, assumptions),
        "expert memory": eq.expert_memory_time(*where, assumptions),
        "expert arithmetic": eq.expert_arithmetic_time(*where, assumptions),
        "network": eq.network_time(*where, assumptions),
    }


def network_binds(name, own, context, assumptions):
    """Whether the network sets the time of a step with overlap."""
    t = parts_of(name, own, context, assumptions)
    computing = max(t["attention memory"], t["attention arithmetic"])
    return bool(t["network"] > computing + max(t["expert memory"], t["expert arithmetic"]))


@cache
def best_overlap_gain():
    """The largest factor by which two-batch overlap speeds up a step, over setups and batches, and where."""
    own = np.geomspace(1, 4096, 400)
    best = {}
    for name in setups():
        gain = speed(name, own) / speed(name, own, two_batch=False)
        best[name] = float(gain.max()), float(own[gain.argmax()])
    name = max(best, key=best.get)
    at = name, best[name][1]
    return speed(*at) / speed(*at, two_batch=False), name


def head_batch():
    """Sequences a GPU from which the embedding matrices' arithmetic outlasts their reading, as in section 3.1.3.

    Arithmetic is that of the head at the FP8 peak, with the source's inefficiencies; both matrices are read.
    """
    gpu, a = setup("4x8 H100").gpu, PRINTED
    one = MODEL.replace(n_dense_layers=0)
    reading = a.memory_inefficiency * eq.embedding_weights(one) / gpu.memory_bandwidth
    work = eq.dense_flops(one, 1) / gpu.fp8_flops
    return reading / (a.expert_inefficiency * a.arithmetic_penalty * work)


def section_3_ratio():
    """Time of a small batch by equation 49 over that of section 3's own form, on 9x8 H100."""
    at = setup("9x8 H100")
    where = MODEL, at.gpu, at.deployment, at.deployment.n_gpus
    parts = eq.attention_time(*where, CONTEXT), eq.expert_time(*where), eq.network_time(*where)
    return eq.step_time(*where, CONTEXT) / eq.section_3_time(*parts)


def largest_change(contexts, **changes):
    """The most that other assumptions change a speed, over setups, batches and contexts."""
    own, other = np.array(OWN, dtype=float), PRINTED.replace(**changes)
    ratios = [
        speed(name, own, context, other) / speed(name, own, context)
        for name in setups()
        for context in contexts
    ]
    return float(np.abs(np.array(ratios) - 1).max())


def kimi_over_deepseek(own, name, kimi=None, assumptions=PRINTED):
    """Speed of Kimi K2 over that of DeepSeek V3 on a setup; copies of experts fill its GPUs evenly."""
    kimi = kimi or load_model("Kimi K2")
    extra, how = (-kimi.n_routed) % setup(name).deployment.n_gpus, (CONTEXT, assumptions)
    return speed(name, own, *how, model=kimi, extra_experts=extra) / speed(name, own, *how)


def lengthening(own=8):
    """How many times longer a decode step and a prompt take on 4x8 H100 with 32,768 tokens than with 1024."""
    at = setup("4x8 H100")
    batch = own * at.deployment.n_gpus
    step = [eq.step_time(MODEL, at.gpu, at.deployment, batch, s) for s in (32768, 1024)]
    prompt = [eq.prefill_time(MODEL, at.gpu, s) for s in (32768, 1024)]
    return step[0] / step[1], prompt[0] / prompt[1]


def largest_batch(name, speed, context=CONTEXT, assumptions=PRINTED):
    """Most sequences per GPU of a setup at which every request gets ``speed`` tokens per second; 0 if none does."""
    at, own = setup(name), np.arange(1, 4097)
    batch = own * float(at.deployment.n_gpus)
    step = eq.step_time(MODEL, at.gpu, at.deployment, batch, context, assumptions)
    return int(own[eq.request_speed(step) >= speed].max(initial=0))


def corrected_ceiling(name):
    """Tokens per second and GPU that a setup's network lets through, as printed and corrected."""
    at = setup(name)
    return tuple(
        eq.network_ceiling(MODEL, at.gpu, at.deployment, a) for a in (PRINTED, Assumptions.corrected())
    )


def wider(model=MODEL, gpu=None, own=128, context=CONTEXT, assumptions=PRINTED, counts=(8, 16, 32, 72, 144)):
    """Gain in speed of one H100 when the experts are spread over more of them."""
    gpu, rows = gpu or setup("4x8 H100").gpu, {}
    for n in counts:
        at = deployment(n, n // 8, extra_experts=(-model.n_routed) % n)
        held = eq.held_experts(model, at)
        fits = max(int(eq.largest_own_batch(model, gpu, context, held, assumptions)), 0)
        speeds = [
            float(eq.gpu_throughput(model, gpu, at, b * n, context, assumptions)) if b else 0.0
            for b in (own, fits)
        ]
        rows[n] = (held, fits, *speeds)
    columns = [
        "experts a layer",
        "sequences that fit",
        f"tokens/s with {own:.0f}",
        "tokens/s with all that fit",
    ]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis(f"number of {gpu.name}")
