"""Erdil 2025, section 2: its figures, as data first and pictures second."""

import pandas as pd

from book import style
from book.audit.grading import Reader
from book.papers.erdil2025 import frontiers
from book.papers.erdil2025.readings import FIGURE_1, FIGURE_1_CAPPED
from inferlib.papers.erdil2025.equations import toy
from inferlib.papers.erdil2025.records import ToyAssumptions

READINGS = {"peak rates": FIGURE_1, "attainable rates": FIGURE_1_CAPPED}


def figure_1_data(assumptions, shown, chip):
    """The frontiers of Figure 1 with their ``model`` and ``demand`` (tokens/s), at the chip's rent."""
    read = Reader("erdil2025", "Figure 1")
    parts = []
    for model in shown:
        for demand in (read("total demand", "large"), read("total demand", "small")):
            curve = frontiers.toy_frontier(model, chip, demand=demand, assumptions=assumptions)
            parts.append(curve.assign(model=model.name, demand=demand))
    return pd.concat(parts, ignore_index=True)


def figure_1(shown, chip, hop):
    """Figure 1, a panel a model: both readings, the equations without a base latency, and what one provider sold."""
    axes = style.panels(7.4, 3.6, columns=len(shown), sharey=True)
    readings = READINGS | {"equation 5 alone": ToyAssumptions()}
    for (reading, assumptions), line in zip(readings.items(), ("-", "--", ":"), strict=True):
        data = figure_1_data(assumptions.replace(t_hop=hop), shown, chip)
        least = data.demand.min()
        for (model, demand), curve in data.groupby(["model", "demand"], sort=False):
            if reading == "equation 5 alone" and demand > least:
                continue
            ax = axes[[one.name for one in shown].index(model)]
            look = {
                "linewidth": 1.1 if demand == least else 2.4,
                "label": f"{reading}, {demand:,.0f} tokens/s in all",
            }
            ax.plot(curve.tokens_per_second, curve.usd_per_million, line, color=style.INK, **look)
    for name, *sold in served_points():
        for ax in (axes[i] for i, one in enumerate(shown) if one.name == name):
            ax.plot(*sold, "o", color=style.PURPLE, markersize=7)
            ax.annotate("sold", sold, (7, 3), textcoords="offset points", color=style.PURPLE)
    for ax, model in zip(axes, shown, strict=True):
        ax.set(xscale="log", yscale="log", xlim=(4, 1100), ylim=(0.006, 15), title=model.name)
        ax.set_xlabel("tokens per second for one user")
    axes[0].set_ylabel("dollars per million tokens")
    axes[0].legend(loc="upper left", fontsize=7)
    return axes


def served_points():
    """The offers of Fireworks that the paper quotes: model, tokens per second, dollars per million tokens."""
    read = Reader("erdil2025", "Text 2.2.2")
    return [
        (
            name,
            read(f"{name} at Fireworks", "tokens per second"),
            1e6 * read(f"{name} at Fireworks", "price of a million tokens"),
        )
        for name in ("Llama 3 8B", "Llama 3 70B")
    ]


def figure_2_data():
    """Figure 2's three quoted points and the square-root law through the first."""
    read = Reader("erdil2025", "Text 2.2.3")
    names = ["PaLM 8B", "PaLM 62B", "PaLM 540B"]
    params = [read(name, "parameters") for name in names]
    measured = [1e3 * read(name, "latency") for name in names]
    law = [toy.square_root_law(p, params[0], measured[0]) for p in params]
    return pd.DataFrame({"parameters": params, "measured_ms": measured, "law_ms": law}, index=names)


def figure_2():
    """The three quoted latencies of PaLM and the square-root law through the smallest."""
    data = figure_2_data()
    data.parameters /= 1e9
    ax = style.panels(6.4, 3.8)
    ax.plot(data.parameters, data.law_ms)
    ax.plot(data.parameters, data.measured_ms, "o", color=style.INK)
    ax.set(xscale="log", yscale="log", xlabel="billion parameters", ylabel="one token, ms", xlim=(2, 800))
    style.ticks(ax.xaxis, [5, 50, 500])
    style.ticks(ax.yaxis, [5, 10, 20, 40])
    for name, row in data.iterrows():
        text = f"{name}: {row.measured_ms:.0f} ms"
        ax.annotate(text, (row.parameters, row.measured_ms), (-6, 8), textcoords="offset points", ha="right")
    return ax
