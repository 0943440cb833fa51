"""Erdil 2025: what happens on the GPUs of an instance, drawn."""

import numpy as np
from matplotlib.patches import FancyArrowPatch

from book import style
from book.frames import labelled
from inferlib.papers.erdil2025.equations import toy
from inferlib.units import factor

LARGEST = 1024  # GPUs of the largest instance drawn


def best(model, chip, hop):
    """Return GPUs and seconds per token of the fastest instance, or of the largest if hops take no time."""
    if hop > 0:
        return toy.optimal_n_gpu(model, chip, hop), toy.minimum_latency(model, chip, hop)
    return LARGEST, toy.weight_time(model, chip, LARGEST)


@labelled("reading", "waiting")
def layer_times(model, chip, hop):
    """Microseconds that one layer reads and waits, by GPUs; the best size is among them."""
    size, us = round(best(model, chip, hop)[0]), model.n_layers * factor("us")
    for n in sorted({size, 1, 2, 8, 128, LARGEST}):
        waiting = toy.network_time(model, toy.grid_all_reduce_time(n, hop))
        yield n, (toy.weight_time(model, chip, n) / us, waiting / us)


def draw_layer(model, chip, hop):
    """Draw one layer as a timeline on more and more GPUs: its matrices are read, and after each, all GPUs wait."""
    ax = style.panels(6.8, 3.2, layout=None)
    data, steps = layer_times(model, chip, hop), int(model.reductions)
    for y, (_, row) in enumerate(data.iterrows()):
        read, wait = row.reading / steps, row.waiting / steps
        starts = [i * (read + wait) for i in range(steps)]
        ax.broken_barh([(x, read) for x in starts], (y - 0.32, 0.64), color=style.BLUE)
        ax.broken_barh([(x + read, wait) for x in starts], (y - 0.32, 0.64), color=style.RED)
        style.words(ax, row.sum() + 6, y, f"{row.sum():.0f} µs")
    style.name_rows(ax, [f"{n} GPU{'s' if n > 1 else ''}" for n in data.index])
    ax.set(xlabel="microseconds for one layer", xlim=(0, 1.12 * data.sum(axis=1).max()))
    ax.text(0.97, 0.34, "reading weights", color=style.BLUE, ha="right", transform=ax.transAxes)
    ax.text(0.97, 0.24, "waiting for the sum", color=style.RED, ha="right", transform=ax.transAxes)
    return ax


def draw_cuts(side):
    """Draw a weight matrix on ``side`` x ``side`` GPUs, cut one way and both ways, and the GPUs behind one output."""
    many, axes = side * side, style.panels(6.8, 3.1, columns=2, layout=None)
    cuts = (("cut one way", 1, many, many), ("cut both ways", side, side, side))
    for ax, (title, rows, columns, joined) in zip(axes, cuts, strict=True):
        for row in range(rows):
            for column in range(columns):
                colour = style.RED if row == 0 else style.BLUE
                block = column / columns, 1 - (row + 1) / rows, 1 / columns, 1 / rows
                look = {"facecolor": colour, "alpha": 0.55, "edgecolor": "white", "linewidth": 1.5}
                style.box(ax, *block, **look)
        arrow = {"arrowstyle": "<->", "color": style.RED, "linewidth": 1.4}
        ax.annotate("", (1.0, 1.07), (0.0, 1.07), arrowprops=arrow)
        ax.text(0.5, 1.11, f"one sum joins {joined} GPUs", color=style.RED, ha="center")
        ax.set_title(f"{many} GPUs, {title}", y=-0.12)
        style.canvas(ax, (-0.02, 1.02), (-0.02, 1.22))
    return axes


def ring(n):
    """Simulate an all-reduce round a ring of n GPUs, hop by hop: the part that each sends, and what all then hold.

    The second array has a row per GPU and a column per part of the vector: the number of terms in its sum.
    """
    hops = [(None, np.ones((n, n), dtype=int))]
    for hop in range(2 * (n - 1)):
        sent, held = [(gpu - hop) % n for gpu in range(n)], hops[-1][1]
        after = held.copy()
        for gpu, part in enumerate(sent):
            # first round: terms are added; second round: complete sums are passed on
            own = held[(gpu + 1) % n, part] if hop < n - 1 else 0
            after[(gpu + 1) % n, part] = own + held[gpu, part]
        hops.append((sent, after))
    return hops


def draw_ring(n, hop):
    """The hops of one all-reduce over n GPUs in a ring: what they hold after each, and its time."""
    hops, us, shades = ring(n), hop / factor("us"), style.shades(n, style.VIOLET, 0.15)
    axes = style.panels(1.8 * n, 3.7, columns=n, rows=2)
    angle = np.pi * (0.5 - (2 * np.arange(n) + 1 - n % 2) / n)
    centre = np.stack([1.05 * np.cos(angle), 0.85 * np.sin(angle)], axis=1)
    small = min(1.0, 4 / n)
    side = 1.05 / n * small
    for number, (sent, held) in enumerate(hops):
        ax = axes.flat[number if number < n else number + 1]
        for (gpu, part), terms in np.ndenumerate(held):
            x, y = centre[gpu] + [(part - n / 2) * side, -side / 2]
            came = sent is not None and sent[gpu - 1] == part
            colour, width = (style.RED, 1.8) if came else (style.INK, 0.4)
            cell = {"facecolor": shades[terms - 1], "edgecolor": colour, "linewidth": width}
            style.box(ax, x, y, side, side, zorder=2 + came, **cell)
            ink = "white" if terms == n else style.INK
            middle = x + side / 2, y + 0.46 * side
            ax.text(*middle, terms, ha="center", va="center", fontsize=9.5 * small, color=ink, zorder=4)
        for a, b in zip(centre, np.roll(centre, -1, axis=0), strict=True) if sent else ():
            way = {"arrowstyle": "-|>", "connectionstyle": f"arc3,rad={-0.35 if n == 2 else 0}"}
            ends = {"mutation_scale": 11 * small, "shrinkA": 0, "shrinkB": 0}
            part = 0.36 * (b - a)
            ax.add_patch(FancyArrowPatch(a + part, b - part, color=style.RED, linewidth=1.6, **way, **ends))
        title = f"hop {number}: {number * us:.3g} μs" if number else "at first"
        ax.set_title(title, fontsize=9, color=style.RED if number else style.INK)
    wide = abs(centre[:, 0]).max() + 0.55
    for ax in axes.flat:
        style.canvas(ax, (-wide, wide), (-1.0, 1.0))
    said = "above: once round,\nto add up\n\nbeside: once more,\nto hand out\n\n"
    said += f"2 × {n - 1} hops: {2 * (n - 1) * us:.3g} μs"
    axes[1, 0].text(0, 0, said, ha="center", va="center", fontsize=9)
    return axes
