"""Erdil 2025: what happens on the GPUs of an instance, drawn."""

from book import style
from inferlib.papers.erdil2025.equations import toy
from inferlib.units import factor


def layer_times(model, chip, hop, sizes=(1, 2, 8, 128, 1024)):
    """Microseconds that one layer reads and waits, by GPUs; the best size stands among those given."""
    import pandas as pd

    best, layer = round(toy.optimal_n_gpu(model, chip, hop)), model.n_layers * factor("us")
    rows = {
        n: (
            toy.weight_time(model, chip, n) / layer,
            toy.network_time(model, toy.grid_all_reduce_time(n, hop)) / layer,
        )
        for n in sorted({best, *sizes})
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=["reading", "waiting"])


def draw_layer(model, chip, hop):
    """One layer as a timeline, on more and more GPUs: its matrices are read, and after each all wait."""
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(6.8, 3.2))
    data, steps = layer_times(model, chip, hop), int(model.reductions)
    for y, (_, row) in enumerate(data.iterrows()):
        read, wait = row.reading / steps, row.waiting / steps
        starts = [i * (read + wait) for i in range(steps)]
        ax.broken_barh([(x, read) for x in starts], (y - 0.32, 0.64), color=style.BLUE)
        ax.broken_barh([(x + read, wait) for x in starts], (y - 0.32, 0.64), color=style.RED)
        ax.text(row.sum() + 6, y, f"{row.sum():.0f} µs", va="center", fontsize=9)
    ax.set_yticks(range(len(data)), [f"{n} GPU{'s' if n > 1 else ''}" for n in data.index])
    ax.invert_yaxis()
    ax.set(xlabel="microseconds for one layer", xlim=(0, 1.12 * data.sum(axis=1).max()))
    ax.grid(axis="y", visible=False)
    ax.text(0.97, 0.34, "reading weights", color=style.BLUE, ha="right", transform=ax.transAxes)
    ax.text(0.97, 0.24, "waiting for the sum", color=style.RED, ha="right", transform=ax.transAxes)
    return ax


def draw_cuts(side):
    """A weight matrix on ``side`` x ``side`` GPUs, cut one way and both ways, and who adds up one output."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    many, axes = side * side, plt.subplots(1, 2, figsize=(6.8, 3.1))[1]
    cuts = (("cut one way", 1, many, many), ("cut both ways", side, side, side))
    for ax, (title, rows, columns, joined) in zip(axes, cuts, strict=True):
        for row in range(rows):
            for column in range(columns):
                colour = style.RED if row == 0 else style.BLUE
                corner = (column / columns, 1 - (row + 1) / rows)
                ax.add_patch(
                    Rectangle(
                        corner, 1 / columns, 1 / rows, facecolor=colour, alpha=0.55, edgecolor="white",
                        linewidth=1.5,
                    )
                )  # fmt: skip
        ax.annotate(
            "",
            (1.0, 1.07),
            (0.0, 1.07),
            arrowprops={"arrowstyle": "<->", "color": style.RED, "linewidth": 1.4},
        )
        ax.text(0.5, 1.11, f"one sum joins {joined} GPUs", color=style.RED, ha="center")
        ax.set_title(f"{many} GPUs, {title}", fontsize=10, y=-0.12)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.22), aspect="equal")
        ax.axis("off")
    return axes
