"""Pope et al. 2022, Figures 2, 4, 5, A.1 and A.2: drawings of :mod:`book.papers.pope2022.schedules`, for any mesh."""

import pandas as pd

from book import style
from book.papers.pope2022.schedules import (
    ATTENTIONS,
    AXES,
    Move,
    Tensor,
    all_pieces,
    collectives,
    piece,
    schedule,
)
from inferlib.papers.pope2022 import cache_over_batch, cache_over_heads, memory_time, multihead


def draw_layout(layout, mesh, chip):
    """Draw a layout or one of :data:`ATTENTIONS`: every tensor with its cuts, and in colour what one chip holds."""
    kinds = ("attention", "cache") if layout in ATTENTIONS else ("activations", "weights")
    plan = schedule(layout)
    longest = max(
        sum(_MOVE if isinstance(step, Move) else _TENSOR + _GAP for step in row) for row in plan.values()
    )
    ax = style.panels(6.6, 4.4)
    for row, y in zip(plan.values(), (2.12, 0.0), strict=True):
        _draw_row(ax, row, y, mesh, chip)
    ax.text(0.0, 3.58, kinds[0], fontsize=9.5, style="italic", va="bottom")
    ax.text(0.0, 1.48, kinds[1], fontsize=9, style="italic", va="bottom")
    style.canvas(ax, (-0.2, longest + 0.1), (-0.65, 3.85), aspect="auto")
    place = ", ".join(f"{axis} = {at}" for axis, at in zip(AXES, chip, strict=True))
    ax.set_title(f"{layout} on {mesh}: what the chip {place} holds")
    return ax


_TENSOR, _MOVE, _GAP = 1.0, 1.3, 0.2


def _draw_row(ax, row, y, mesh, chip):
    x = 0.0
    for step in row:
        if isinstance(step, Move):
            arrow = {"arrowstyle": "->", "color": style.RED, "linewidth": 1.4}
            ax.annotate("", (x + _MOVE - 0.3, y + 0.6), (x - 0.12, y + 0.6), arrowprops=arrow)
            middle = x + (_MOVE - 0.42) / 2
            ax.text(middle, y + 0.66, step.label, ha="center", va="bottom", fontsize=8.5, color=style.RED)
            x += _MOVE
            continue
        _draw_tensor(ax, step, x, y, mesh, chip)
        x += _TENSOR + _GAP


def _draw_tensor(ax, tensor, x, y, mesh, chip):
    height = 1.2
    (r0, r1), (c0, c1) = piece(tensor, mesh, chip)
    colour = style.BLUE if tensor.rows in ("E", "F") else style.ORANGE
    if tensor.name == "K and V":
        colour = style.GREEN
    hatch = "///" if tensor.partial else None
    # rows are counted from the top
    box = x + c0 * _TENSOR, y + (1 - r1) * height, (c1 - c0) * _TENSOR, (r1 - r0) * height
    look = {"facecolor": "none" if hatch else colour, "hatch": hatch, "alpha": 0.75, "linewidth": 0.8}
    style.box(ax, *box, edgecolor=colour, **look)
    for cut, vertical in ((tensor.column_axes, True), (tensor.row_axes, False)):
        parts = int(mesh.along(cut))
        for i in range(1, parts if parts <= 64 else 1):
            line = [x + i / parts * _TENSOR] * 2 if vertical else [x, x + _TENSOR]
            other = [y, y + height] if vertical else [y + i / parts * height] * 2
            ax.plot(line, other, color=style.FAINT, linewidth=0.5)
    style.box(ax, x, y, _TENSOR, height, fill=False, edgecolor=style.INK, linewidth=1)
    ax.text(x + _TENSOR / 2, y - 0.07, tensor.notation, ha="center", va="top", fontsize=9.5)
    ax.text(x + _TENSOR / 2, y + height + 0.02, tensor.name, ha="center", va="bottom", fontsize=8)


def draw_cuts(mesh, chip=(1, 0, 1)):
    """Draw one weight matrix cut in 1D, in 2D, and gathered: what a chip holds and what it must be sent.

    The input comes from above. Filled is the chip's own piece of the weights, hatched what it gathers. The bar above
    the matrix is the part of the input that it then needs, the bar beside it the part of the output that it
    makes; a thin bar is one of a part of the sequences.
    """
    block, strip = Tensor("W in", "E", "F", "x", "zy"), Tensor("W in", "E", "F", "", "xyz")
    cuts = {
        "1D: a strip": (strip, strip, 1),
        "2D: a block": (block, block, 1),
        "gathered over X and Y": (block, Tensor("W in", "E", "F", "", "z"), mesh.along("xy")),
    }
    both = style.panels(7.2, 2.7, columns=len(cuts))
    for ax, (name, (own, used, parts)) in zip(both, cuts.items(), strict=True):

        def box(x, y, wide, tall, ax=ax, **look):
            style.box(ax, x, 1 - y - tall, wide, tall, **({"linewidth": 0} | look))

        thick = 0.12 / parts
        (x0, x1), (y0, y1) = piece(used, mesh, chip)
        if used is not own:
            box(x0, y0, x1 - x0, y1 - y0, facecolor="none", edgecolor=style.BLUE, hatch="//")
        box(x0, -0.04 - thick, x1 - x0, thick, color=style.RED, alpha=0.8)
        box(-0.04 - thick, y0, thick, y1 - y0, color=style.RED, alpha=0.8)
        (x0, x1), (y0, y1) = piece(own, mesh, chip)
        box(x0, y0, x1 - x0, y1 - y0, color=style.BLUE, alpha=0.75)
        for (x0, x1), (y0, y1) in all_pieces(own, mesh).values():
            box(x0, y0, x1 - x0, y1 - y0, fill=False, edgecolor=style.FAINT, linewidth=0.6)
        box(0, 0, 1, 1, fill=False, edgecolor=style.INK, linewidth=1)
        style.canvas(ax, (-0.22, 1.05), (-0.05, 1.22))
        ax.set_title(name)
    both[0].text(-0.02, 1.1, "input", va="center", ha="right", fontsize=9)
    both[0].text(-0.2, 0.5, "output", rotation=90, va="center", ha="right", fontsize=9)
    return both


def cache_data(model, chip, chips, batch, context):
    """Return three ways to cut a model's cache over some chips (Figure 4), and whether it fits in their memory."""
    at = chips, batch, context
    held = cache_over_heads(multihead(model), *at), cache_over_heads(model, *at), cache_over_batch(model, *at)
    rows = [(size, memory_time(chip, size), size < chip.memory_capacity) for size in held]
    return pd.DataFrame(rows, index=list(ATTENTIONS), columns=["bytes", "seconds", "fits"])


def draw_caches(data, mesh):
    """Draw the keys and values that each chip of a mesh keeps, from :func:`cache_data`. Returns the Axes."""
    both = style.panels(7.2, 2.2, columns=len(ATTENTIONS))
    for ax, kind in zip(both, ATTENTIONS, strict=True):
        cache = schedule(kind)["weights"][0]
        for i, ((r0, r1), (c0, c1)) in enumerate(all_pieces(cache, mesh).values()):
            x, y = i % 4 + 0.1, 1.1 - i // 4
            part = x + 0.8 * c0, y + 0.8 * (1 - r1), 0.8 * (c1 - c0), 0.8 * (r1 - r0)
            style.box(ax, *part, color=style.GREEN, alpha=0.75, linewidth=0)
            style.box(ax, x, y, 0.8, 0.8, fill=False, edgecolor=style.INK, linewidth=0.8)
        size, seconds, fits = data.loc[kind]
        says = f"{size / 1e9:.1f} GB on a chip" + ("" if fits else ", too much")
        ax.set_title(f"{kind}\n{says}\n{1e3 * seconds:.1f} ms to read", fontsize=9)
        style.canvas(ax, (0, 4), (0, 2))
    return both


def draw_collectives(k):
    """Draw :func:`collectives`: a colour for the chip a part came from, all colours for a sum. Returns Axes."""
    both = style.panels(7.2, 0.9 + 0.42 * k, columns=3)
    for ax, (name, states) in zip(both, collectives(k).items(), strict=True):
        for side, state in enumerate(states):
            for chip, slots in enumerate(state):
                for slot, origin in enumerate(slots):
                    x, y = side * (k + 1.6) + slot, k - 1 - chip
                    for i, source in enumerate(sorted(origin or ())):
                        part, look = 1 / len(origin), {"alpha": 0.8, "linewidth": 0}
                        colour = style.LINES[source % len(style.LINES)]
                        style.box(ax, x + i * part, y, part, 0.8, color=colour, **look)
                    style.box(ax, x, y, 1, 0.8, fill=False, edgecolor=style.INK, linewidth=0.8)
        middle, arrow = (k - 0.2) / 2, {"arrowstyle": "->", "color": style.RED}
        ax.annotate("", (k + 1.4, middle), (k + 0.2, middle), arrowprops=arrow)
        style.canvas(ax, (-1.3, 2 * k + 1.8), (-0.3, k + 0.1))
        ax.set_title(name)
        for chip in range(k):
            style.words(ax, -0.25, k - 1 - chip + 0.4, str(chip), ha="right", fontsize=8)
    return both
