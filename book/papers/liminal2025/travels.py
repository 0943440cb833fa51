"""LIMINAL 2025 and real servers: the configurations of section 5, and others' public measurements (Figure 4)."""

from functools import cache
from itertools import product

import numpy as np

from book import style
from book.frames import frame
from book.synthesis import comparison
from inferlib import catalog
from inferlib.papers import liminal2025 as model

LIMIT, EQUATION_8 = "liminal2025", "liminal2025.eq8"
MS = 1e-3


@cache
def answers():
    """Return both answers to every clean public row."""
    table = comparison.answers([LIMIT, EQUATION_8])
    return table[(table.use == "clean") & table.predicted.notna()]


def errors(data):
    """Errors of both in per cent by the number of chips in parallel, and in all."""
    wide = 100 * data.pivot(index="id", columns="who", values="error")
    named = wide.rename(columns={LIMIT: "limit", EQUATION_8: "eq. 8"})
    found = comparison.by_chips(named, data.drop_duplicates("id").set_index("id").tp[wide.index])
    return found.drop(columns="limit, signed").round(1)


# --- Section 5 and Figure 4 --------------------------------------------------------------------------------


@frame()
def validation():
    """Figure 4's horizontal axis: what the model predicts for the configurations of section 5."""
    chip, given = model.load_chip(catalog.load_chip("H100 SXM"), "bf16"), model.STATED["validation"]
    bf16 = {"weight_bytes": 2.0, "cache_bytes": 2.0}
    ends = {end: model.Assumptions.fitted(end).replace(**bf16) for end in ("low", "mean", "high")}
    for name, batch, k in product(given["models"], given["batches"], given["contexts"]):
        context = 1024 * k
        at = model.load_model(name, ends["mean"]), chip, batch, context, 8
        found = {end: model.real_time(*at, wide.t_real, wide) for end, wide in ends.items()}
        limit = found["mean"] - model.measured_overhead(at[0], ends["mean"].t_real)
        yield {"model": name, "batch": batch, "context": context, "limit": limit} | found


def draw_validation(data):
    """Draw :func:`validation`: the limit and what is fitted on top of it, over the batch. Returns the Axes."""
    names = list(data.model.unique())
    axes = style.panels(8.8, 3.2, columns=len(names), sharey=True)
    for ax, name in zip(axes, names, strict=True):
        own = data[data.model == name].groupby("batch")
        batches = list(own.groups)
        for low, high, colour, label in (
            ("limit", "limit", style.BLUE, "limit"),
            ("low", "high", style.PURPLE, "equation 8"),
        ):
            band = own[low].min() / MS, own[high].max() / MS
            ax.fill_between(batches, *band, color=colour, alpha=0.35, label=label)
        ax.plot(batches, own["mean"].mean() / MS, color=style.PURPLE, linewidth=1.2)
        ax.set(xscale="log", yscale="log", title=name)
        style.ticks(ax.xaxis, (1, 8, 64))
        style.ticks(ax.yaxis, (0.3, 1, 3, 10, 30))
    axes[0].set_ylabel("milliseconds per token")
    axes[len(axes) // 2].set_xlabel("batch")
    axes[0].legend(fontsize=8, loc="lower right")
    return axes


def draw_public(data):
    """Figure 4 with public measurements: equation 8 against them, and how its errors are spread. Returns the Axes."""
    eight, limit = (data[data.who == who] for who in (EQUATION_8, LIMIT))
    left, right = style.panels(8.8, 4, columns=2, width_ratios=(1.25, 1))
    ends = np.array([1.0, 300.0])
    for n, own in eight.groupby("tp"):
        colour, marker = style.DEGREES[n]
        at = own.measured / MS, own.predicted / MS
        left.plot(*at, marker, label=f"{n}", color=colour, markersize=5, alpha=0.8)
        if len(own) == 1:
            left.annotate(f"{n} chips", (at[0].iloc[0], at[1].iloc[0]), (6, -8), textcoords="offset points")
    left.plot(ends, ends, color=style.INK, linewidth=1)
    for factor_ in (1.275, 1 / 1.275):
        left.plot(ends, factor_ * ends, color=style.FAINT, linewidth=0.9, linestyle="--")
    left.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    left.set(xlabel="measured, milliseconds per token", ylabel="equation 8, milliseconds per token")
    left.legend(title="chips", fontsize=8, loc="lower right")
    bins = np.arange(-100, 101, 10)
    right.hist(100 * limit.error, bins, color=style.YELLOW, alpha=0.45, label="limit")
    right.hist(100 * eight.error, bins, color=style.PURPLE, alpha=0.55, label="equation 8")
    right.axvline(0, color=style.INK, linewidth=1)
    right.set(xlabel="predicted over measured, less one, %", ylabel="measurements")
    right.legend()
    return left, right
