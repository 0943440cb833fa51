"""Mazurek & Schreiber 2025 against measurements, in pictures: data first, here or in the studies."""

import matplotlib.pyplot as plt

from book import style
from book.papers.mazurek2025.systems import READINGS


def over_measured(data):
    """Predicted over measured at each point's own length; empty marks have the overhead of each layer added."""
    panels = [("72 H100s", "one batch"), ("72 H100s", "two-batch overlap"), ("GB200 rack", "one batch")]
    figure, axes = plt.subplots(1, 3, figsize=(7.6, 3.9), sharey=True, layout="constrained")
    colours = dict(zip(READINGS, (style.PURPLE, style.INK), strict=True))
    for ax, at in zip(axes, panels, strict=True):
        rows = data.loc[at]
        for name, values in rows.items():
            reading, _, more = name.partition(" + ")
            look = {"linestyle": "--", "markerfacecolor": "none"} if more else {"linestyle": "-"}
            look |= {"color": colours[reading], "linewidth": 1.2, "markersize": 6}
            ax.plot(rows.index, values, "o" if reading == "capped" else "^", label=name, **look)
        ax.axhline(1, color=style.FAINT, linewidth=1.2, zorder=0)
        ax.set_title("\n".join(at), fontsize=12)
        ax.set(xscale="log", yscale="log", xlabel="sequences on a GPU")
        style.ticks(ax.xaxis, [2, 8, 32, 128, 512])
    axes[0].set(ylabel="predicted over measured speed")
    style.ticks(axes[0].yaxis, [0.7, 0.8, 1, 1.25, 1.5, 2])
    labels = axes[0].get_legend_handles_labels()
    figure.legend(*labels, loc="outside lower center", ncol=4)
    return axes


def components(data):
    """Where the time of a layer goes in both readings and in SGLang's profile; totals at the ends of the bars."""
    ax = style.panels(7.0, 3.8)
    colours = (style.GREEN, style.BLUE, style.RED, style.FAINT)
    data.T.plot.barh(stacked=True, color=colours, width=0.6, ax=ax)
    for bars in ax.containers:
        texts = [f"{bar.get_width():.2f}" if bar.get_width() > 0.08 else "" for bar in bars]
        ax.bar_label(bars, texts, label_type="center", color="white", fontsize=9)
    for y, total in enumerate(data.sum()):
        style.words(ax, total + 0.02, y, f"{total:.2f}")
    style.name_rows(ax, [f"{overlap}: {who}" for overlap, who in data])
    ax.set(xlabel="milliseconds for a layer, the whole batch", ylabel="", xlim=(0, 1.08 * data.sum().max()))
    ax.legend(loc="upper center", bbox_to_anchor=(0.4, -0.2), ncol=4, fontsize=8.5)
    return ax
