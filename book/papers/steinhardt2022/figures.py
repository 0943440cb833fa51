"""Steinhardt 2022: the chapter's figures; each draws the data of its cell."""

import numpy as np
import xarray as xr

from book import style
from book.papers.steinhardt2022.tables import US
from inferlib.papers import steinhardt2022 as model

RESOURCES = {"network": style.RED, "memory": style.BLUE, "arithmetic": style.ORANGE}


def times(machine, m, b):
    """The three terms of the starred equation, as one labelled set."""
    return xr.Dataset({name: getattr(model, f"{name}_time")(machine, m, b) for name in RESOURCES})


def shares(terms):
    """Draw the shares of a chip's busy and waiting time, relative to the longest of its times. Returns the Axes.

    ``terms``: :func:`times` over ``grid``, the tiles along each side of a matrix.
    """
    ax = style.panels(6.4, 4.6)
    for row, (grid, at) in enumerate(terms.groupby("grid")):
        longest = max(float(at[name].item()) for name in RESOURCES)
        for i, (name, colour) in enumerate(RESOURCES.items()):
            part = float(at[name].item()) / longest
            ax.barh(row * 4 + i, 1, color=style.FAINT, alpha=0.4, height=0.9)
            ax.barh(row * 4 + i, part, color=colour, height=0.9, label=f"{name}, {grid**2:.0f} chips")
            if row == 0:
                style.words(ax, 0.01, i, name, color="white", fontsize=8, fontweight="bold")
        busy = float(at.arithmetic.item()) / longest
        ax.text(1.02, row * 4 + 1, f"{longest / US:.2g} μs,\nbusy {busy:.0%}", va="center")
    chips = [f"{grid**2:.0f} chip{'s' if grid > 1 else ''}" for grid in terms.grid.values]
    ax.set_yticks([row * 4 + 1 for row in range(len(chips))], chips)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25%", "50%", "75%", "100%"])
    ax.invert_yaxis()
    ax.set(xlim=(0, 1.22), xlabel="share of the time of one multiply")
    return ax


def tiles(machine, width, batch):
    """A matrix cut, with what one chip takes in and sends out, counted by the source. Returns the Axes."""

    def share(count, grid):
        part = count(machine, width / grid, batch) / count(machine, width, batch)
        return "all" if part == 1 else f"1/{1 / part:.0f}"

    every = style.panels(6.4, 3.0, columns=3)
    for ax, grid in zip(every, (1, 2, 4), strict=True):
        part = 1 / grid
        for column in range(grid):
            for row in range(grid):
                ours = column == 0 and row == grid - 1
                face = style.BLUE if ours else "none"
                rim = style.INK if grid == 1 or ours else style.FAINT
                style.box(ax, column * part, row * part, part, part, fc=face, ec=rim, alpha=0.75)
        # vectors that come in from above and sums that leave to the left, for the chip in the corner
        style.box(ax, 0, 1.06, part, 0.1, fc=style.RED, ec="none")
        style.box(ax, -0.16, 1 - part, 0.1, part, fc=style.RED, ec="none")
        ax.set_title(f"{grid**2} chip{'s' if grid > 1 else ''}")
        weights, vectors = share(model.arithmetic_work, grid), share(model.network_traffic, grid)
        ax.text(0.5, -0.1, f"weights {weights}", color=style.BLUE, ha="center", va="top")
        ax.text(0.5, -0.26, f"vectors {vectors}", color=style.RED, ha="center", va="top")
        style.canvas(ax, (-0.2, 1.05), (-0.42, 1.2))
    return every


def plane(machine, m, b):
    """Which resource is the slowest over block and batch, and the best points without and with the network.

    A line joins blocks and batches whose arithmetic takes equally long. Returns the Axes.
    """
    terms = times(machine, m, b)
    ax = style.panels(6.4, 4.6)
    for name, colour in RESOURCES.items():
        slower = terms[[other for other in RESOURCES if other != name]].to_array().max("variable")
        margin = np.log(terms[name] / slower).transpose(b.dims[0], m.dims[0])
        ax.contourf(m, b, margin, levels=[0, 100], colors=[colour], alpha=0.16)
    alone = model.memory_block(machine), model.memory_batch(machine), model.memory_limited_time(machine)
    best = model.best_block(machine), model.best_batch(machine), model.elapsed_time(machine)
    for (x, y, time), text, side, shift, fill in (
        (alone, "best for the\nmemory alone", "right", (-8, -8), "none"),
        (best, "best", "left", (8, 6), style.INK),
    ):
        equally_long = time * machine.flops / machine.flop_per_weight / m**2
        ax.plot(m, equally_long, color=style.ORANGE, linewidth=1)
        ax.plot(x, y, "o", mfc=fill, mec=style.INK, zorder=5)
        says = f"{text}: {x:.0f} × {y:.0f}, {time / US:.2f} μs"
        ax.annotate(says, (x, y), shift, textcoords="offset points", ha=side)
    (low, high), (few, many) = ((float(axis[0]), float(axis[-1])) for axis in (m, b))
    right, top = high / 1.1, many / 1.2
    ax.text(low * 1.1, top, "network slowest", color=style.RED, va="top")
    ax.text(right, few * 2, "memory slowest", color=style.BLUE, ha="right", va="bottom")
    ax.text(right, top, "arithmetic slowest:\nfully used", color=style.ORANGE, ha="right", va="top")
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(few, many))
    ax.set(xlabel="edge of a chip's block, m", ylabel="batch, b")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:,g}")
    return ax


def machine_traffic(machine):
    """Return blocks of vectors that cross the network of four chips, in and out, in units of one chip's block.

    ``apart``: its chips hold unrelated blocks; ``together``: a square grid of neighbours.
    """
    one, four = (model.network_time(machine.replace(chips=count), 1.0, 1.0) for count in (1, 4))
    return {"apart": 2 * 4, "together": 2 * four / one}


def neighbours(machine):
    """Draw :func:`machine_traffic` of four chips. Returns the Axes."""
    counts, side = machine_traffic(machine), 2
    every = style.panels(6.4, 3.0, columns=2)
    for ax, name, gap in zip(every, ("apart", "together"), (0.6, 0.0), strict=True):
        step = 1 + gap
        for column in range(side):
            for row in range(side):
                x, y = column * step, row * step
                style.box(ax, x, y, 1, 1, fc=style.BLUE, ec="white", alpha=0.75, linewidth=1.5)
                if gap or row == side - 1:
                    style.box(ax, x + 0.04, y + 1.06, 0.92, 0.16, fc=style.RED, ec="none")
                if gap or column == 0:
                    style.box(ax, x - 0.22, y + 0.04, 0.16, 0.92, fc=style.RED, ec="none")
        end = side + gap * (side - 1)
        style.box(ax, -0.4, -0.15, end + 0.55, end + 0.5, fc="none", ec=style.INK, linestyle="--")
        ax.set_title("blocks apart" if gap else "neighbours")
        says = f"{counts[name]:.0f} blocks of vectors"
        ax.text(end / 2, -0.3, says, color=style.RED, ha="center", va="top")
        style.canvas(ax, (-0.5, end + 0.3), (-0.75, end + 0.5))
    return every


def waste(time, utilisation, floor, half):
    """Time of one multiply and its utilisation over k, each with and without latency. Returns both Axes.

    ``floor`` is the latency in seconds, ``half`` the k at which it is half of the time.
    """
    colours = {"without latency": style.ORANGE, "with latency": style.RED}
    both = style.panels(6.4, 4.8, rows=2, sharex=True, height_ratios=[3, 2])
    top, bottom = both
    top.axhline(floor / US, xmax=0.8, color=style.FAINT, linestyle="--")
    top.text(9.8, floor / US / 1.1, f"latency, {floor / US:.2g} μs", ha="right", va="top")
    mark, over = {"half of the time is latency": (half, 2 * floor)}, "shrink factor of block and batch, k"
    style.curve(time, unit="us", says="one multiply", ax=top, colours=colours, mark=mark)
    style.curve(utilisation, unit="%", says="utilisation", over=over, log="x", ax=bottom, colours=colours)
    top.set_xlabel("")
    bottom.margins(x=0)  # the labels at the ends stand beside the axes
    bottom.set_ylim(0, None)
    return both


ARROWS = [
    (0, 1),
    (0, 2),
    (0, 3),
    (1, 5),
    (2, 5),
    (5, 4),
    (4, 6),
    (3, 6),
]  # of the parts below, in their order


def attention_block():
    """Draw the post's diagram of self-attention from its text: the path of a token's vector. Returns the Axes."""
    ax = style.panels(6.8, 2.6)
    style.canvas(ax, (-0.7, 8.8), (-0.5, 2.5), aspect="auto")
    at = {
        "vector": (0, 1), "query": (2, 2), "key": (2, 1), "value": (2, 0), "softmax": (6.3, 1.5),
        "inner products\nwith the context": (4.3, 1.5), "weighted\nsum": (8, 0.75),
    }  # fmt: skip
    half = {name: 0.055 * max(map(len, name.splitlines())) + 0.12 for name in at}
    for start, end in ([list(at)[i] for i in pair] for pair in ARROWS):
        (x, y), (to, high) = at[start], at[end]
        colour = style.BLUE if start == "vector" else style.INK
        way = (to - half[end], high), (x + half[start], y)
        ax.annotate("", *way, arrowprops={"arrowstyle": "->", "color": colour, "shrinkA": 2, "shrinkB": 2})
    for name, (x, y) in at.items():
        ax.text(
            x, y, name, ha="center", va="center", bbox={"boxstyle": "round", "fc": "white", "ec": style.FAINT}
        )
    return ax
