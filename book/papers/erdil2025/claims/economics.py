"""Erdil 2025, sections 4 and 4.2 with their captions and footnotes: everything their text prints, recomputed."""

import math
from functools import cache
from itertools import pairwise

import numpy as np

from book.audit.explanations import named
from book.audit.grading import WithNote, format_items, grade_of, published, reproduces
from book.papers.erdil2025 import economics
from book.papers.erdil2025.claims.model import H100, PRINTED, token_latency
from book.papers.erdil2025.claims.parallel import at_cost, common_costs, gains, table_2_batches
from book.papers.erdil2025.claims.toy import speed_up
from book.papers.erdil2025.readings import TABLE_5
from inferlib.papers.erdil2025.records import load_chip, load_model
from inferlib.units import factor

SEVENTY = "Llama 3 70B 8-bit"


@cache
def fastest(name, **changed):
    """Most tokens per second of a dense model at one sequence, on H100s with some fields ``changed``."""
    seconds = token_latency(load_model(name), H100.replace(**changed), np.geomspace(1, 1024, 500), 1)
    return 1 / float(seconds.min())


@cache
def generation_gains():
    """Gain of each GPU generation for Table 4's model at one cost: tokens per second, and GPUs saved.

    Of each pair the geometric mean of the speeds' ratio, its least and largest, and the mean of the sizes' ratio.
    """
    found = {}
    for older, newer in (("V100", "A100"), ("A100", "H100")):
        old, new = (economics.curve(SEVENTY, chip) for chip in (older, newer))
        costs = common_costs(old, new)
        costs = costs[(costs >= 0.5) & (costs <= 10)]  # dollars per million; practical prices
        faster = at_cost(new, costs) / at_cost(old, costs)
        smaller = at_cost(old, costs, "n_gpu") / at_cost(new, costs, "n_gpu")
        speed, size = (np.exp(np.mean(np.log(ratios))) for ratios in (faster, smaller))
        found[older, newer] = (speed, faster.min(), faster.max(), size)
    return found


def _per_generation(read):
    found = generation_gains()
    text = ", ".join(
        f"{a} to {b} {mean - 1:+.0%} ({low - 1:.0%} to {high - 1:.0%})"
        for (a, b), (mean, low, high, _) in found.items()
    )
    means = [named(f"{a} to {b}, mean speed-up", float(mean)) for (a, b), (mean, *_) in found.items()]
    return WithNote(math.prod(means) ** 0.5 - 1, f"0.5 to 10 dollars a million: {text}")


def shrinking():
    """The mean ratio of an instance's GPUs to those of the next generation, by pair of generations."""
    return {f"{a} to {b}": ratio for (a, b), (*_, ratio) in generation_gains().items()}


def _smaller(read):
    found = shrinking()
    means = [named(f"{pair}, mean shrinking", float(ratio)) for pair, ratio in found.items()]
    return WithNote(math.prod(means) ** 0.5, f"0.5 to 10 dollars a million: {format_items(found, '.2f')}")


def served(read):
    """The quoted offer for Llama 3 70B in tokens per second."""
    return read("Llama 3 70B at Fireworks", "tokens per second", "Text 2.2.2")


def drafting_gains(name=SEVENTY, assumptions=PRINTED):
    """How much faster drafts make a model: at the fastest point, and at most and least at one cost."""
    return gains(*(economics.curve(name, draft=d, assumptions=assumptions) for d in (None, economics.DRAFT)))


def most_with_drafts(name=SEVENTY):
    """Speed with drafts over speed without, at the cost where that is most."""
    curves = [economics.curve(name, draft=d) for d in (economics.DRAFT, None)]
    costs = common_costs(*curves)
    drafted, plain = (at_cost(curve, costs) for curve in curves)
    at = (drafted / plain).argmax()
    found = f"of {name} at {costs[at]:.3g} dollars a million, where drafts gain most"
    fast = named(f"speed with drafts {found}", float(drafted[at]), "tok/s")
    return fast / named(f"speed without {found}", float(plain[at]), "tok/s")


def _halved(read):
    top, *_ = drafting_gains()
    older = drafting_gains("Llama 3 70B", TABLE_5)[1]
    return WithNote(
        most_with_drafts(),
        f"at most at one cost; {1 + top:.2f} at the fastest points of Tables 4 and 2; at 16 bits with Table 5's "
        f"notebook {1 + older:.2f}",
    )


def alpha_for(speed, curve):
    """The smallest alpha, in steps of a tenth, that prefers a point at least as fast."""
    alphas = (tenths / 10 for tenths in range(1, 1000))
    return next(a for a in alphas if economics.preferred(curve, a).tokens_per_second >= speed)


def _two_dollars(read):
    rent = read("rent of one GPU") / factor("usd/h")
    setting, point = economics.settings()["Table 6", "16-bit weights"]
    cost = point(economics.curve(**setting)).usd_per_million
    return (
        round(H100.price) == rent,
        f"their costs come out at {H100.price:.2f} dollars; at {rent:.2f} a million tokens of Table 6's 16-bit row "
        f"would cost {cost * rent / H100.price:.2f}, not {cost:.2f}",
    )


@reproduces("Text 4")
def _text_4():
    return {
        ("drafts cut the latency of Llama 3 70B", "factor"): _halved,
        ("a new generation of GPUs", "speed-up at one cost"): _per_generation,
        ("a new generation of GPUs", "factor by which instances shrink"): _smaller,
    }


@reproduces("Text 4")
def _economics(read, holds):
    speed = served(read)
    drafted = economics.curve(SEVENTY, draft=economics.DRAFT)
    preferred = economics.preferred(drafted, read("alpha")).tokens_per_second
    small = economics.curve("Llama 3 8B")
    eight = read("Llama 3 8B at Fireworks", "tokens per second", "Text 2.2.2")
    holds(
        "alpha makes the served speeds the preferred ones",
        preferred > speed / 2,
        f"alpha {read('alpha'):.0f} prefers {preferred:.0f} tokens/s for Llama 3 70B; the fastest provider's "
        f"{speed:.0f} needs {alpha_for(speed, drafted):.1f}, {eight:.0f} for Llama 3 8B {alpha_for(eight, small):.1f}",
        fair="as far as can be told: the data are not printed, only the fastest provider's speeds",
    )
    shrunk = shrinking()
    holds(
        "instances shrink to half with each new generation of GPUs",
        round(math.prod(shrunk.values()) ** 0.5) == 2,
        f"GPUs at one cost, 0.5 to 10 dollars a million, older over newer: {format_items(shrunk, '.2f')}",
        fair="on the mean of both generations, as in the row of this number",
    )
    holds(
        "Figure 5 and the tables assume 2 dollars for a GPU and hour",
        *_two_dollars(read),
        fair="2.10 rounded",
    )


_NARROWED = "if activations are narrowed to 8 bits for the multiplication, which footnote 8 does not say"


@reproduces("Figure 6")
def _figure_6(holds):
    # The cheap end with and without faster 8-bit arithmetic, at a large batch on eight GPUs.
    model, faster = load_model(SEVENTY), {}
    for name in ("A100", "H100", "V100"):
        chip = load_chip(name)
        slow = chip.replace(peaks=chip.peaks | {"fp8": chip.peaks["bf16"]})
        times = [token_latency(model, c, 8, 4096, pipeline=False) for c in (slow, chip)]
        faster[name] = times[0] / times[1]
    holds(
        "8-bit weights multiply faster, which helps A100 and H100 at large batches",
        min(faster["A100"], faster["H100"]) > 1.1 and faster["V100"] == 1,
        f"4096 sequences on 8 GPUs, times as fast: {format_items(faster, '.2f')}",
        fair=_NARROWED,
    )


# Section 4.2: quantization.


def halvings():
    """Gain of each halving of the weights of Llama 3 70B: at Table 6's points, and at the fastest."""
    curves = [economics.curve(economics.PRECISIONS[f"{bits}-bit weights"]) for bits in (16, 8, 4)]
    found = []
    for point in (economics.preferred, economics.fastest):
        speeds = [point(curve).tokens_per_second for curve in curves]
        found.append([after / before - 1 for before, after in pairwise(speeds)])
    return found


@reproduces("Text 4.2")
def _text_4_2():
    return {"speed-up of doubling the bandwidth": lambda read: speed_up(2)[0] - 1}


# Captions of Tables 2, 3 and 6.


@reproduces("Table 2")
def _table_2(holds):
    batches = table_2_batches()
    holds(
        "all batches are 1",
        all(round(batch) == 1 for batch in batches.values()),
        f"batches behind the table: {format_items(batches, '.2f')}; those of the dense models are ties, a "
        f"batch of 1 is as "
        "fast",
    )
    drafted = {name: economics.curve(name, draft=economics.DRAFT) for name in economics.SERVED}
    gammas = {name: economics.fastest(curve).gamma for name, curve in drafted.items()}
    holds(
        "drafts are used throughout",
        sum(gamma > 1 for gamma in gammas.values()) >= len(gammas) - 1,
        f"gamma of the points (1: no drafts): {format_items(gammas, '.0f')}",
        fair="wherever they help; DeepSeek-V3 is faster without",
    )


@reproduces("Table 3")
def _points(holds):
    speeds = {}
    for (table, row), (setting, point) in economics.settings().items():
        if table in ("Table 3", "Table 6"):
            curve = economics.curve(**setting)
            speeds[row] = economics.preferred(curve, 4).tokens_per_second, point(curve).tokens_per_second
    text = ", ".join(f"{row} {four:.0f} and {three:.0f}" for row, (four, three) in speeds.items())
    holds(
        "the points of Tables 3 and 6 maximise equation 45 with alpha 4",
        all(four == three for four, three in speeds.values()),
        f"tokens/s with alpha 4 and with the text's 3, which print has: {text}",
    )


def cells_as_printed(table, alpha):
    """How many printed cells of a table come out with another alpha, and how many there are."""
    exact = rows = 0
    for (name, row), (setting, _) in economics.settings().items():
        if name != table:
            continue
        at = economics.preferred(economics.curve(**setting), alpha)
        for column, field in economics.COLUMNS.items():
            cell = published("erdil2025")[table, row, column]
            exact += grade_of(cell.text, cell.resolution, float(at[field]))[1] == "exact"
            rows += 1
    return exact, rows
