"""LIMINAL 2025: the chapter's figures, data first and picture second."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from book import style
from book.frames import labelled
from book.papers.liminal2025 import cells, efficiency
from inferlib.papers import liminal2025 as model
from inferlib.papers.liminal2025 import PRINTED, chips, load_chip, operators
from inferlib.units import factor

TB, NS = factor("TB/s"), factor("ns")


# Kind of collective that an operator ends in -> the field of an application that counts such layers.
_WAITS = {kind: f"{kind}_layers" for kind in ("head", "latent", "dense", "moe")}


@labelled("MFLOP", "MB", "collectives")
def layer(shape, n, batch=1, context=4096):
    """Figure 1's callouts for a model's most frequent layer: what an operator computes, loads and waits for."""
    common = max(shape.layers, key=lambda group: group.count)
    app = model.load_model(shape)
    none = dict.fromkeys(_WAITS.values(), 0.0)
    for op in operators(replace(shape, layers=(common,))):
        if op.name in ("head", "embedding"):
            continue
        flops = batch * (PRINTED.flop_per_weight * op.weights * op.active + op.pair_flops * context)
        awake = model.active_experts(app, batch) if op.copies > 1 else 1
        cached = batch * PRINTED.cache_bytes * op.cache * context
        loaded = PRINTED.weight_bytes * op.weights * awake * op.read + cached
        one = app.replace(**none | {_WAITS[op.collective]: 1.0}) if op.collective else None
        waits = model.collectives(one, n) if one else 0.0
        yield op.name, (flops / n / 1e6, loaded / n / 1e6, waits)


def draw_layer(data, n):
    """Draw :func:`layer`: every operator cut in ``n``, one chip's share filled, and red where all must agree."""
    ax = style.panels(7.6, 2.9)
    waits = data.collectives
    if "output" in data.index:  # the collective of attention comes after its output projection
        waits = waits.rename({"attention": "output", "output": "attention"})
    x, width, small = 0.0, 1.5, {"ha": "center", "fontsize": 9}
    for name, row in data.iterrows():
        for chip in range(n):
            mine = {"facecolor": style.BLUE, "alpha": 0.75} if chip == 0 else {"facecolor": "none"}
            style.box(ax, x, 1 - (chip + 1) / n, width, 0.8 / n, edgecolor=style.BLUE, linewidth=0.9, **mine)
        ax.text(x + width / 2, 1.06, name.replace(", value", ",\nvalue"), va="bottom", **small)
        ax.text(x + width / 2, -0.1, f"{row.MFLOP:,.1f} MFLOP\n{row.MB:,.1f} MB", va="top", **small)
        x += width
        if waits[name]:
            ax.plot([x + 0.22] * 2, [0, 1], color=style.RED, linewidth=5, solid_capstyle="round")
            ax.text(x + 0.22, -0.1, "all-\nreduce", va="top", color=style.RED, **small)
        x += 0.44
    style.words(ax, -0.12, 0.94, "one chip", ha="right", color=style.BLUE)
    style.words(ax, -0.12, 0.44, f"{n - 1} others", ha="right")
    ax.set(xlim=(-1.0, x), ylim=(-0.6, 1.5), xticks=[], yticks=[])
    ax.grid(False)
    ax.spines[:].set_visible(False)
    return ax


@labelled("read", "wait", "UTPS")
def timelines(app, context, systems, latency=model.collective_latency):
    """Microseconds in which one layer of one token reads and waits, and UTPS, on systems (how many, chip or None).

    NaN where one sequence does not fit.
    """
    for label, (n, chip) in systems.items():
        read = model.memory_time(app, chip, 1, context, n) if chip else 0.0
        wait = model.exposed_time(app, n, 1, latency(n))
        row = (read / app.layers * 1e6, wait / app.layers * 1e6, 1 / (read + wait) if read + wait else np.inf)
        fits = chip is None or model.largest_batch(app, chip, context, n)
        yield label, row if fits else (np.nan,) * 3


def draw_timelines(data):
    """Draw :func:`timelines`: blue is reading, red is waiting for the other chips. Returns the Axes."""
    ax = style.panels(7.2, 2.6)
    y = np.arange(len(data))
    ax.barh(y, data["read"], height=0.5, color=style.BLUE, label="reading")
    ax.barh(y, data.wait, left=data["read"], height=0.5, color=style.RED, label="waiting for the others")
    for place, row in zip(y, data.itertuples(), strict=True):
        fits = row.UTPS == row.UTPS
        words = f"{row.UTPS:,.0f} tokens/s" if fits else "does not fit"
        style.words(ax, row.read + row.wait + 0.3 if fits else 0.3, place, words)
    style.name_rows(ax, data.index)
    ax.set(ylim=(len(data) - 0.4, -0.6), xlabel="microseconds, one layer of one token")
    ax.set_xlim(0, 1.25 * (data["read"] + data.wait).max() or 1)
    ax.legend(loc="lower right")
    return ax


def draw_collective(sizes, ideal, latency=model.collective_latency):
    """Draw one collective as a time line, on systems of several sizes and as the ideal. Returns the Axes."""
    ax = style.panels(7.2, 2.3)
    longest = max(ideal, *map(latency, sizes)) / NS
    for y, n in enumerate(sizes):
        whole, x, small = latency(n) / NS, 0.0, ""
        for name, length, alpha in (
            ("on the chip", PRINTED.on_chip / NS, 0.45),
            ("in the switch", PRINTED.switch / NS, 0.7),
            ("transfer", whole, 1.0),
        ):
            length = min(length, whole - x)
            ax.barh(y, length, left=x, height=0.7, color=style.RED, alpha=alpha, linewidth=0)
            if length > longest / 8:
                ink = "white" if alpha == 1 else style.INK
                style.words(ax, x + length / 2, y, f"{name}\n{length:.0f}", ha="center", color=ink)
            else:
                small += f", {length:.0f} of it {name}"
            x += length
        style.words(ax, whole + longest / 125, y, f"{whole:,.0f} ns{small}")
    ax.barh(len(sizes), ideal / NS, height=0.7, facecolor="none", edgecolor=style.RED, linewidth=1.2)
    style.words(ax, ideal / NS + longest / 125, len(sizes), f"{ideal / NS:,.0f} ns")
    style.name_rows(ax, [*(f"{n} chips" for n in sizes), "ideal"])
    ax.set(ylim=(len(sizes) + 0.6, -0.6), xlabel="nanoseconds of one collective")
    ax.set_xlim(0, 1.12 * longest)
    return ax


def draw_bandwidth(data, mark):
    """Draw gains over ``model``, ``context`` and ``bandwidth``; the vertical line is a chip to ``mark``."""
    data = data.assign_coords(bandwidth=data.bandwidth / factor("TiB/s"))
    axes = style.panels(8.6, 4.2, columns=2, sharey=True)
    colours = dict(zip(data.model.values, 2 * style.LINES, strict=False))
    at, over = mark.bandwidth / factor("TiB/s"), "memory bandwidth of a chip (TB/s)"
    says = "tokens per second of one user,\nover those at the left"
    for ax, (context, gains) in zip(axes, data.groupby("context"), strict=True):
        style.curve(gains.squeeze(), over=over, says=says, colours=colours, ax=ax)
        for line in ax.lines[len(style.LINES) :]:
            line.set_linestyle("--")
        ax.axvline(at, color=style.INK, linewidth=1)
        ax.set_title(f"context {context / 1024:.0f}K")
        style.ticks(ax.xaxis, (4, 8, 18, 30, 60, 120))
        style.ticks(ax.yaxis, (1, 1.5, 2, 3, 4, 6, 8))
        says = " "
    axes[0].text(0.97 * at, 0.93, mark.name, ha="right", transform=axes[0].get_xaxis_transform())
    return axes


def efficiency_sweep():
    """Figure 3: tokens per joule over UTPS as the batch grows, for both ends of the bracket of memory watts."""
    parts, context = [], 128 * 1024
    for name in cells.large():
        one = None
        for memory in chips():
            swept = efficiency.sweep(name, memory, context)
            watts = [efficiency.memory_power(load_chip(memory), e) for e in efficiency.ENERGIES]
            found = [
                model.power_efficiency(swept.stps, cells.MANY, swept.attrs["stages"], watt).values
                for watt in watts
            ]
            one = one or [each[0] for each in found]  # the first chip is HBM3
            low, high = np.sort([each / base for each, base in zip(found, one, strict=True)], axis=0)
            part = swept.utps.to_series().reset_index().assign(model=name, chip=memory, low=low, high=high)
            parts.append(part.assign(marker=part.batch == efficiency.marker(name, memory, context)[0]))
    return pd.concat(parts, ignore_index=True)


def draw_efficiency():
    """Draw :func:`efficiency_sweep`: a band for each chip, batch 1 at its lower right, marks where a tenth is lost.

    The dashed line is the model with the largest values. Returns the Axes.
    """
    data = efficiency_sweep().groupby("model", sort=False)
    figure, axes = plt.subplots(2, -(-len(data) // 2), figsize=(9, 5.2), sharey=True, layout="constrained")
    for ax, (name, own) in zip(axes.flat, data, strict=True):
        for memory, colour, marker in zip(chips(), style.LINES, style.MARKERS, strict=False):
            part = own[own.chip == memory]
            ax.fill_between(part.utps, part.low, part.high, color=colour, alpha=0.25, linewidth=0)
            ax.plot(part.utps, part.high, color=colour, linewidth=1.2)
            marked = part[part.marker]
            ax.plot(marked.utps, marked.high, marker, color=colour, markersize=4, label=memory)
        ax.axhline(own.high.max(), color=style.INK, linestyle="--", linewidth=0.8)
        ax.set(yscale="log", xlim=(0, None), title=name)
    axes.flat[0].legend(fontsize=8, loc="lower left")
    figure.supxlabel("tokens per second of one user", fontsize=10)
    figure.supylabel("tokens per watt, over HBM3 for one user", fontsize=10)
    return axes


def draw_design(data, chips, latencies):
    """Draw :func:`study.design`: what reaches a speed, and some chips at some latencies (s). Returns the Axes."""
    ax = style.panels(6.8, 4.6)
    colours = style.shades(data.sizes["speed"], style.PURPLE)
    for speed, colour in zip(data.speed.values, colours, strict=True):
        x, y = data.sel(speed=speed).latency / NS, data.sel(speed=speed).bandwidth / TB
        ax.plot(x, y, color=colour)
        place = max(float(x[0]), 1.2), float(y[0]) * 1.15
        ax.text(*place, f"{speed:,} tokens/s", color=style.PURPLE, va="bottom", fontsize=9)
    x = [t / NS for t in latencies]
    for i, (memory, chip) in enumerate(chips.items()):
        y = [chip.bandwidth / TB] * len(x)
        ax.plot(x, y, style.MARKERS[i % 6], color=style.INK, linestyle="none", markersize=5)
        ax.annotate(memory, (x[0], y[0]), (9, 0), textcoords="offset points", va="center", fontsize=9)
    ax.set(
        xscale="log", yscale="log", xlim=(1, 4000), ylim=(0.2, 2000),
        xlabel="latency of one collective (ns)", ylabel="memory bandwidth of a chip (TB/s)",
    )  # fmt: skip
    return ax
