"""Erdil 2025, abstract, introduction and section 5 with their footnotes: everything their text prints, recomputed."""

from functools import cache, partial

import numpy as np

from book.erdil2025 import economics
from book.erdil2025.claims.context import GROUPED, LONG, MISTRAL, utilisation
from book.erdil2025.claims.economics import SEVENTY, drafting_gains, fastest, halvings
from book.erdil2025.claims.model import (
    DEEPSEEK,
    DEFAULT,
    H100,
    LL,
    UNLIMITED,
    arithmetic_until,
    best_layout,
    bytes_and_flop_of_latents,
    terms,
    token_latency,
)
from book.erdil2025.claims.toy import based, exponents, speed_up
from inferlib.ledger import Noted, claims, reproduces
from inferlib.papers.erdil2025.equations import model as m, toy
from inferlib.papers.erdil2025.records import (
    TABLE_5,
    Cut,
    ToyAssumptions,
    chips,
    computing_at,
    model_of,
    models,
)
from inferlib.papers.erdil2025.shape import cache_values
from inferlib.units import factor

reproduces, claims = partial(reproduces, "erdil2025"), partial(claims, "erdil2025")


# The introduction's question.


@cache
def dgx_question(speed=70.0, part=0.15):
    """Llama 3 70B at 16 bits on eight H100s: the best utilisation at a speed, and the best speed at a utilisation.

    Returns
    -------
    tuple
        (utilisation, batch) at the speed, and (tokens per second, batch) at the utilisation.
    """
    batch = np.geomspace(8, 512, 4000)
    speeds = 1 / token_latency(models["Llama 3 70B"], H100, 8, batch)
    shares = utilisation("Llama 3 70B", H100, 8, batch)
    # The faster, the smaller the batch.
    largest = np.flatnonzero(speeds >= speed)[-1]
    smallest = np.flatnonzero(shares >= part)[0]
    return (float(shares[largest]), float(batch[largest])), (float(speeds[smallest]), float(batch[smallest]))


@claims("Text 1")
def _question(read, holds):
    place = "DGX H100 question"
    speed, part = read(place, "tokens per second"), read(place, "utilisation")
    (share, batch), (faster, _) = dgx_question(speed, part)
    holds(
        "the complete model answers the DGX H100 question",
        share > part and faster > speed,
        f"room for a little more: {share:.1%} at {speed:.0f} tokens/s (batch {batch:.0f}), or {faster:.1f} tokens/s "
        f"at {part:.0%}",
    )


def _everything_matters(read):
    gains = {}
    for name in ("flops", "memory_bandwidth", "scale_up_bandwidth", "scale_out_bandwidth"):
        better = H100.replace(**{name: 2 * getattr(H100, name)})
        if name == "flops":
            better = better.replace(peaks={format: 2 * peak for format, peak in H100.peaks.items()})
        gains[name.replace("_", " ")] = better
    at = {
        "flops": (8, 2048),
        "memory bandwidth": (8, 16),
        "scale up bandwidth": (8, 512),
        "scale out bandwidth": (64, 512),
    }
    model, saved = models["Llama 3 70B"], {}
    for name, chip in gains.items():
        before, after = (token_latency(model, one, *at[name], pipeline=False) for one in (H100, chip))
        saved[name] = 1 - after / before
    quick = DEFAULT.replace(t_kernel=2e-6)
    before, after = (token_latency(model, H100, 24, 1, assumptions=a) for a in (DEFAULT, quick))
    saved["launches"] = 1 - after / before
    text = ", ".join(f"{name} {part:.0%}" for name, part in saved.items())
    return (min(saved.values()) > 0, f"Llama 3 70B, time saved by twice as much of each: {text}")


@claims("Abstract")
def _abstract(read, holds):
    holds(
        "arithmetic, memory bandwidth, network bandwidth and latency all matter", *_everything_matters(read)
    )


# Section 5.1: short contexts.


def latency_share(chip):
    """Share of launches and of the latency of collectives at Table 4's point, and the largest other term's."""
    curve = economics.curve(SEVENTY, chip)
    at, shape = economics.fastest(curve), models[SEVENTY].shape
    cut = Cut(at.stages, at.scale_down, at.kind)
    split = terms(shape, computing_at(chips[chip], shape), cut, at.n_gpu, at.batch, 0, 1, DEFAULT)
    named = {
        name: seconds for stage in split for name, seconds in stage.items() if not isinstance(seconds, dict)
    }
    rest = [sum(parts.values()) for stage in split for parts in stage.values() if isinstance(parts, dict)]
    waiting = named.pop("kernel launch") + named.pop("collective latency")
    return waiting * at.tokens_per_second, max(*named.values(), *rest) * at.tokens_per_second


def _latency_first(read):
    shares = {chip: latency_share(chip) for chip in economics.GENERATIONS}
    text = ", ".join(f"{chip} {ours:.0%} ({other:.0%})" for chip, (ours, other) in shares.items())
    return (
        all(ours > other for ours, other in shares.values()),
        f"share of launches and latency of collectives in Table 4's points, and of the largest other term: {text}",
    )


def _tens_of_microseconds(read):
    times = {n: m.collective_latency(LL, n, n / 8, 2) / factor("us") for n in (8, 16, 64)}
    text = ", ".join(f"{t:.0f} us on {n} GPUs" for n, t in times.items())
    return (min(times.values()) > 10, f"without a byte: {text}")


def size_exponent():
    """Power of the parameters with which the smallest latency of Llama 3 grows in the complete model."""
    small, large = "Llama 3 8B", "Llama 3.1 405B"
    slower = np.log(fastest(small)[0] / fastest(large)[0])
    return slower / np.log(models[large].n_params / models[small].n_params)


def _faster_than_root(read):
    power = size_exponent()
    return (power > 0.5, f"power {power:.2f} from Llama 3 8B to 405B at 16 bits, 0.5 by equation 19")


def _needs_pipeline(read):
    model = models["Llama 3 70B"]
    memory = read("Groq LPU", "memory", "Text 5.1")
    chip = H100.replace(memory_bandwidth=read("Groq LPU", "memory bandwidth", "Text 5.1"))
    best = toy.optimal_n_gpu(model, chip, ToyAssumptions().t_hop)
    needed = model.weight_bytes * model.n_params / memory
    return (
        needed > best,
        f"Llama 3 70B at 16 bits fits on {needed:.0f} chips; tensor parallelism alone is fastest on {best:.0f}",
    )


def doubled_bandwidth():
    """Latency that twice the memory bandwidth saves at the smallest latency of the complete model, by model."""
    return {
        name: 1 - fastest(name)[0] / fastest(name, bandwidth=2.0)[0]
        for name in ("Llama 3 8B", "Llama 3 70B", SEVENTY, "Llama 3.1 405B", "GPT-3")
    }


def _doubled(read):
    limit, equation_14 = (1 - 1 / gain for gain in speed_up(2))
    complete = doubled_bandwidth()
    text = ", ".join(f"{name} {saved:.1%}" for name, saved in complete.items())
    return (
        max(complete.values()) < 0.225,
        f"complete model {text}; Llama 3 70B by equation 14 with Figure 1's base latency {doubled_with_base():.1%}, "
        f"without {equation_14:.1%}; by equation 18 {limit:.1%} (threshold, ours: 22.5 %)",
    )


def doubled_with_base(name="Llama 3 70B"):
    """Latency that twice the memory bandwidth saves by equation 14 and Figure 1's base latency."""
    better = H100.replace(memory_bandwidth=2 * H100.memory_bandwidth)
    return 1 - based(models[name], better) / based(models[name])


@cache
def with_groq(bandwidth):
    """How much faster the fastest token gets at another memory bandwidth, memory enough, by the complete model."""
    quick, n_gpu = UNLIMITED.replace(memory_bandwidth=bandwidth), np.geomspace(0.5, 1024, 600)
    found = {}
    for name in ("Llama 3 70B", SEVENTY, "Llama 3 8B"):
        before, after = (token_latency(models[name], chip, n_gpu, 1).min() for chip in (UNLIMITED, quick))
        found[name] = float(before / after)
    return found


def _groq(read):
    bandwidth = read("Groq LPU", "memory bandwidth")
    large, equation_14 = speed_up(bandwidth / read("H100 SXM", "memory bandwidth"))
    found = with_groq(bandwidth)
    text = ", ".join(f"{name} {ratio:.1f}" for name, ratio in found.items())
    return Noted(
        found["Llama 3 70B"],
        f"complete model, memory enough: {text}; equation 18 {large:.1f}, equation 14 {equation_14:.1f}",
    )


def _drafts(read):
    name = "Llama 3.1 405B"
    newer, older = (1 + drafting_gains(name, assumptions)[1] for assumptions in (DEFAULT, TABLE_5))
    seventy = 1 + drafting_gains("Llama 3 70B")[1]
    return Noted(
        newer,
        f"{name}, the most at one cost; {older:.2f} with Table 5's program, {seventy:.2f} for Llama 3 70B at 16 bits",
    )


def _halved_precision(read):
    points, tops = ([1 - 1 / (1 + gain) for gain in found] for found in halvings())
    text = [", ".join(f"{saved:.1%}" for saved in found) for found in (points, tops)]
    return Noted(
        float(np.mean([*points, *tops])),
        f"Llama 3 70B, 16 to 8 and 8 to 4 bits: {text[0]} between Table 6's points, {text[1]} between the fastest",
    )


def _boundary(read):
    wide, narrow = (
        best_layout(models[name], H100, 8, 8) for name in ("Llama 3.1 405B", "Llama 3.1 405B 8-bit")
    )
    return (
        not wide[1].feasible and narrow[1].feasible,
        f"Llama 3.1 405B on one node of 8: at 16 bits {wide[1].reason}; at 8 bits {1 / narrow[1].total:.0f} "
        "tokens/s",
    )


def _over_decoding(read):
    half = read("prefill", "utilisation", "Text 4.3")
    shares = {
        row: economics.preferred(economics.curve(name)).mfu for row, name in economics.PRECISIONS.items()
    }
    ratios = [half / share for share in shares.values()]
    text = ", ".join(f"{row} {share:.1%}" for row, share in shares.items())
    return Noted((min(ratios), max(ratios)), f"{half:.0%} over the utilisation at Table 6's points: {text}")


@reproduces("Text 5.1")
def _text_5_1(read):
    cut = "more GPUs for one multiplication"
    tensor, others = ("factor in 2D tensor parallelism", "factor in pipeline or data parallelism")
    gpus = lambda read: read(cut, tensor) * read(cut, others)  # noqa: E731
    return {
        ("Groq over the fastest NVIDIA provider", "factor"): _groq,
        ("speed of a dense model", "exponent of parameters"): lambda read: -exponents()[-1],
        (cut, "factor in GPUs"): gpus,
        (cut, "factor in cost"): lambda read: gpus(read) / read(cut, "factor in speed"),
        # Cut in four by tensor parallelism along two dimensions, each GPU reads half as much twice as often.
        (cut, "factor in memory and network traffic"): lambda read: gpus(read) / read(cut, tensor),
        ("drafts cut the latency at one cost", "factor"): _drafts,
        ("latency saved by halving the precision", ""): _halved_precision,
        ("prefill utilisation over that of decoding", "factor"): _over_decoding,
    }


@claims("Text 5.1")
def _short_contexts(read, holds):
    holds("doubling the bandwidth saves around 20 % of the latency or less", *_doubled(read))
    holds("the greatest bottleneck at short context is latency", *_latency_first(read))
    holds("a small all-reduce costs tens of microseconds", *_tens_of_microseconds(read))
    holds("more is saved where a machine's boundary is crossed", *_boundary(read))


@claims("Footnote 11")
def _footnote_11(read, holds):
    holds("latency grows faster with size than the root in the complete model", *_faster_than_root(read))


@claims("Footnote 12")
def _footnote_12(read, holds):
    holds("with so little memory a chip pipelining is needed", *_needs_pipeline(read))


# Section 5.2: long contexts.


def _group_sizes(read):
    from inferlib import load_model

    sizes = [models[name].shape.group_size for name in GROUPED]
    real = model_of(load_model("Llama 3.1 405B")).shape.group_size
    return Noted(
        (min(sizes), max(sizes)),
        f"in the notebook; Meta's configuration of Llama 3.1 405B has {real:.0f}, where the notebook has "
        f"{models['Llama 3.1 405B'].shape.group_size:.0f}",
    )


@cache
def _always_cache():
    """Binding terms of grouped models at long context, over batches and with one or five tokens a pass."""
    found = {}
    for name in GROUPED:
        for tokens in (1, 5):
            for batch in (1, 64, 4096):
                step = best_layout(
                    models[name], UNLIMITED, 64, batch, context=1e7, new_tokens=tokens, pipeline=False
                )[1]
                found[name, tokens, batch] = step.binding
    return found


def _cache_binds(read):
    found = _always_cache()
    chip = H100.capped()
    most = max(models[name].shape.group_size for name in GROUPED)
    return (
        set(found.values()) == {"cache"},
        f"{len(found)} cases of six models with 1 or 5 tokens a pass; at most {most:.0f} FLOP a byte and token, an "
        f"H100 has {chip.flops / chip.memory_bandwidth:.0f}",
    )


def _batch_independent(read):
    found = {step for (name, tokens, _), step in _always_cache().items() if tokens == 1}
    return (found == {"cache"}, "batches of 1, 64 and 4096 alike: the cache grows with the batch")


def needed_group(chip):
    """Group size at which reading the cache takes no longer than attention's arithmetic, at 16 bits."""
    return chip.flops / chip.memory_bandwidth  # 2 g / precision FLOP a byte, and precision is 2


def _large_groups(read):
    needed = {name: needed_group(chips[name]) for name in economics.GENERATIONS}
    text = ", ".join(f"{name} {group:.0f}" for name, group in needed.items())
    return (
        all(abs(np.log10(group / 100)) < 0.5 for group in needed.values()),
        f"{text} at the peaks and one token a pass; {needed['H100'] / 3:.0f} on an H100 with three (threshold, ours: "
        "half a decade)",
    )


def _latent_costs(read):
    times = DEEPSEEK.kv_rank / DEEPSEEK.head_dim
    return times > 1, f"{times:.0f} times in attention itself (DeepSeek-V3)"


def _latent_saves(read):
    group = 2 * DEEPSEEK.n_heads * DEEPSEEK.head_dim / cache_values(DEEPSEEK)
    return (group > max(models[name].shape.group_size for name in GROUPED), f"as much as g = {group:.0f}")


@cache
def arithmetic_bound_from(new_tokens, format="fp8", n_gpu=54, batch=247):
    """Context from which DeepSeek-V3 waits for attention's arithmetic, at Table 3's instance; None for never."""
    chip = UNLIMITED.replace(peaks=H100.peaks | {"fp8": H100.peaks[format]})

    def bound(context):
        step = best_layout(
            models["DeepSeek-V3"], chip, n_gpu, batch, context=context, new_tokens=new_tokens, pipeline=False
        )[1]
        return step.binding == "attention arithmetic"

    low, high = 3.0, 7.0
    if not bound(10**high):
        return None
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if bound(10**middle) else (middle, high)
    return 10**high


def more_than_weights():
    """Context at which attention's arithmetic of DeepSeek-V3 equals that of its weights."""
    weights = sum(m.flop_per_token(DEEPSEEK, 0, DEFAULT))
    return weights / (sum(m.flop_per_token(DEEPSEEK, 1, DEFAULT)) - weights)


def _latent_bound(read):
    start = read("ten thousand tokens")
    needs, has = bytes_and_flop_of_latents()
    drafted, sixteen = arithmetic_bound_from(4), arithmetic_bound_from(4, "bf16")
    return (
        more_than_weights() < start < arithmetic_until() and sixteen < 1.5 * start,
        f"Table 3's four tokens a pass: from {sixteen:,.0f} on at the 16-bit rate, from {drafted:,.0f} at the 8-bit; "
        f"large batches up to {arithmetic_until():,.0f}, attention most of the arithmetic from "
        f"{more_than_weights():,.0f} on; one token a pass at very long context never ({needs:.0f} FLOP a byte, an H100 "
        f"has {has:.0f})",
    )


def bandwidth_saves(context):
    """Latency that twice the memory bandwidth saves Mistral Large 2 on 32 GPUs with 16 sequences."""
    better = UNLIMITED.replace(memory_bandwidth=2 * H100.memory_bandwidth)
    before, after = (
        token_latency(MISTRAL, chip, 32, 16, context=context, pipeline=False) for chip in (UNLIMITED, better)
    )
    return 1 - after / before


def _bandwidth_matters(read):
    short, long = bandwidth_saves(0), bandwidth_saves(LONG)
    return (
        long > short,
        f"Mistral Large 2 on 32 GPUs, 16 sequences: twice the bandwidth saves {short:.0%} at short context, "
        f"{long:.0%} at 100,000 tokens",
    )


def _no_help(read):
    shares = [utilisation("Mistral Large 2", UNLIMITED, 32, batch, context=1e6) for batch in (64, 4096)]
    return (
        shares[1] / shares[0] < 1.1,
        f"Mistral Large 2 at a million tokens: {shares[0]:.2%} at 64 sequences, {shares[1]:.2%} at 4096 "
        "(threshold, ours: a tenth)",
    )


def _by_hand(read):
    speeds = {economics.preferred(economics.curve(SEVENTY), alpha).tokens_per_second for alpha in (2, 3, 4)}
    return (
        len(speeds) == 3,
        "alpha, which was chosen to agree with served speeds, picks a point on a frontier and does not move it; the "
        f"attainable parts of {H100.flops_fraction:.0%} and {H100.bandwidth_fraction:.0%} are judged: without them "
        f"Llama 3 70B at 8 bits makes {fastest_at_peaks():.0f} tokens/s, not {fastest(SEVENTY)[0]:.0f}",
    )


def fastest_at_peaks():
    """Most tokens per second of Llama 3 70B at 8 bits on H100s that reach their peaks."""
    n_gpu = np.geomspace(1, 256, 300)
    ideal = H100.replace(flops_fraction=1.0, bandwidth_fraction=1.0)
    return float(1 / token_latency(models[SEVENTY], ideal, n_gpu, 1).min())


@reproduces("Text 5.2")
def _text_5_2(read):
    return {
        ("group sizes of leading models", ""): _group_sizes,
    }


@claims("Text 5.2")
def _long_contexts(read, holds):
    holds("long-context decoding always waits for the cache", *_cache_binds(read))
    holds("the cache's bottleneck does not depend on the batch", *_batch_independent(read))
    holds("group sizes on the order of 100 overcome it", *_large_groups(read))
    holds("latent attention raises arithmetic by many times", *_latent_costs(read), fair="'many' is four")
    holds("latent attention saves as much cache as large groups", *_latent_saves(read))
    holds(
        "latent attention waits for its arithmetic from ten thousand tokens",
        *_latent_bound(read),
        fair="with drafts, or in large batches while attention is most of the arithmetic",
    )
    holds("bandwidth matters more at long context", *_bandwidth_matters(read))
    holds("a larger batch does not help utilisation at long context", *_no_help(read))
    holds(
        "no factor is adjusted by hand", *_by_hand(read), fair="the frontiers are not fitted to served speeds"
    )
