"""Erdil 2025, abstract and section 5.1 with their footnotes: everything their text prints, recomputed."""

from functools import cache
from itertools import chain, product

import numpy as np

from book.audit.explanations import inputs, named
from book.audit.grading import WithNote, format_items, reproduces
from book.papers.erdil2025 import economics
from book.papers.erdil2025.claims.economics import SEVENTY, fastest, halvings, most_with_drafts
from book.papers.erdil2025.claims.model import H100, LL, PRINTED, UNLIMITED, best_layout, terms, token_latency
from book.papers.erdil2025.claims.toy import exponents, speed_up
from inferlib.papers.erdil2025.equations import model as m
from inferlib.papers.erdil2025.records import Cut, computing_at, load_chip, load_model
from inferlib.units import factor


@reproduces("Abstract")
def _abstract(holds):
    cases = {
        "flops": (8, 2048),
        "memory bandwidth": (8, 16),
        "scale up bandwidth": (8, 512),
        "scale out bandwidth": (64, 512),
    }
    model, saved = load_model("Llama 3 70B"), {}
    for name, at in cases.items():
        field = name.replace(" ", "_")
        better = H100.replace(**{field: 2 * getattr(H100, field)})
        if name == "flops":
            better = better.replace(peaks={format: 2 * peak for format, peak in H100.peaks.items()})
        before, after = (token_latency(model, chip, *at, pipeline=False) for chip in (H100, better))
        saved[name] = 1 - after / before
    quick = PRINTED.replace(t_kernel=2e-6)
    before, after = (token_latency(model, H100, 24, 1, assumptions=a) for a in (PRINTED, quick))
    saved["launches"] = 1 - after / before
    holds(
        "arithmetic, memory bandwidth, network bandwidth and latency all matter",
        min(saved.values()) > 0,
        f"Llama 3 70B, time saved by twice as much of each: {format_items(saved, '.0%')}",
    )


# Section 5.1: short contexts.


def latency_share(chip):
    """Share of launches and of the latency of collectives at Table 4's point, and the largest other term's."""
    curve = economics.curve(SEVENTY, chip)
    at, shape = economics.fastest(curve), load_model(SEVENTY).shape
    cut = Cut(at.stages, at.scale_down, at.kind)
    split = terms(shape, computing_at(load_chip(chip), shape), cut, at.n_gpu, at.batch, 0, 1, PRINTED)
    found = {name: part for stage in split for name, part in stage.items()}
    waiting = found.pop("kernel launch") + found.pop("collective latency")
    others = [sum(part.values()) if isinstance(part, dict) else part for part in found.values()]
    return waiting * at.tokens_per_second, max(others) * at.tokens_per_second


def doubled_bandwidth():
    """Latency that twice the memory bandwidth saves at the smallest latency of the complete model, by model."""
    return {
        name: 1 - fastest(name) / fastest(name, memory_bandwidth=2 * H100.memory_bandwidth)
        for name in ("Llama 3 8B", "Llama 3 70B", SEVENTY, "Llama 3.1 405B", "GPT-3")
    }


@cache
def with_groq(bandwidth):
    """How much faster the fastest token gets at another memory bandwidth, memory enough, by the complete model."""
    quick, n_gpu = UNLIMITED.replace(memory_bandwidth=bandwidth), np.geomspace(0.5, 1024, 600)
    found = {}
    for name in ("Llama 3 70B", SEVENTY, "Llama 3 8B"):
        before, after = (token_latency(load_model(name), chip, n_gpu, 1).min() for chip in (UNLIMITED, quick))
        found[name] = float(before / after)
    return found


def _groq(read):
    bandwidth = read("Groq LPU", "memory bandwidth")
    large, equation_14 = speed_up(bandwidth / read("H100 SXM", "memory bandwidth"))
    found, simple = with_groq(bandwidth), f"equation 18 {large:.1f}, equation 14 {equation_14:.1f}"
    return WithNote(
        found["Llama 3 70B"], f"complete model, memory enough: {format_items(found, '.1f')}; {simple}"
    )


def _drafts(read):
    name = "Llama 3.1 405B"
    return WithNote(most_with_drafts(name), f"{name}, the most at one cost")


def _halved_precision(read):
    """Of Llama 3 70B, from 16 to 8 and from 8 to 4 bits, between Table 6's points and between the fastest."""
    steps = product(("Table 6", "the fastest"), ("16 to 8", "8 to 4"))
    known = [
        named(f"saved from {pair} bits, points of {place}", 1 - 1 / (1 + gain))
        for (place, pair), gain in zip(steps, chain(*halvings()), strict=True)
    ]
    return sum(known) / len(known)


def _over_decoding(read):
    half, shares = read("prefill", "utilisation", "Text 4.3"), decoding_shares()
    ratios = [half / share for share in shares.values()]
    return WithNote(
        (min(ratios), max(ratios)),
        f"{half:.0%} over Table 6's points, both of the attainable rate: {format_items(shares, '.1%')}; "
        f"with those of the "
        f"peak {min(ratios) / H100.flops_fraction:.1f} to {max(ratios) / H100.flops_fraction:.1f}",
    )


def decoding_shares():
    """Share of the attainable arithmetic that decoding uses at Table 6's points, by row."""
    shares = {}
    for row, name in economics.PRECISIONS.items():
        of_peak = float(economics.preferred(economics.curve(name)).mfu)
        of_peak = named(f"utilisation of the peak at the point of {row}", of_peak)
        shares[row] = of_peak / inputs(H100).flops_fraction
    return shares


@reproduces("Text 5.1")
def _text_5_1():
    return {
        ("Groq over the fastest NVIDIA provider", "factor"): _groq,
        ("speed of a dense model", "exponent of parameters"): lambda read: -exponents()[-1],
        ("drafts cut the latency at one cost", "factor"): _drafts,
        "latency saved by halving the precision": _halved_precision,
        ("prefill utilisation over that of decoding", "factor"): _over_decoding,
    }


@reproduces("Text 5.1")
def _short_contexts(holds):
    limit, equation_14 = (1 - 1 / gain for gain in speed_up(2))
    complete = doubled_bandwidth()
    holds(
        "doubling the bandwidth saves around 20 % of the latency or less",
        max(complete.values()) < 0.225,
        f"complete model {format_items(complete, '.1%')}; Llama 3 70B without a base latency "
        f"{equation_14:.1%} by equation "
        f"14, {limit:.1%} by equation 18 (threshold, ours: 22.5 %)",
    )
    shares = {chip: latency_share(chip) for chip in economics.GENERATIONS}
    text = ", ".join(f"{chip} {ours:.0%} ({other:.0%})" for chip, (ours, other) in shares.items())
    holds(
        "the greatest bottleneck at short context is latency",
        all(ours > other for ours, other in shares.values()),
        f"share of launches and latency of collectives in Table 4's points, and of the largest other term: {text}",
    )
    times = {n: m.collective_latency(LL, n, n / 8, 2) / factor("us") for n in (8, 16, 64)}
    text = f"without a byte: {format_items(times, '{1:.0f} us on {0} GPUs')}"
    holds("a small all-reduce costs tens of microseconds", min(times.values()) > 10, text)
    names = "Llama 3.1 405B", "Llama 3.1 405B 8-bit"
    wide, narrow = (best_layout(load_model(name), H100, 8, 8)[1] for name in names)
    holds(
        "more is saved where a machine's boundary is crossed",
        not wide.feasible and narrow.feasible,
        f"Llama 3.1 405B on one node of 8: at 16 bits {wide.reason}; at 8 bits {1 / narrow.total:.0f} tokens/s",
    )
