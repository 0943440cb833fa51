"""Steinhardt 2022: how a matrix is cut, what its chips then wait for, and what neighbours share."""

from book.steinhardt2022.figures import axes
from book.steinhardt2022.tables import US
from inferlib.papers.steinhardt2022 import equations as model
from inferlib.papers.steinhardt2022.records import load_chip as post_chip, stated

RESOURCES = ("network", "memory", "arithmetic")


def cut_finer(grids=(1, 2, 4, 8, 16)):
    """The three times of one chip when the warm-up's matrix is cut into ever more tiles.

    Parameters
    ----------
    grids : tuple of int
        Tiles along each side; one chip holds one tile.

    Returns
    -------
    pandas.DataFrame
        Indexed by ``chips``: the ``edge`` of a tile; microseconds of ``network``, ``memory`` and ``arithmetic``; and
        ``utilisation``, the share of the longest of them that arithmetic takes.
    """
    import pandas as pd

    machine, given = post_chip("A100, warm-up"), stated()["warm_up"]
    rows = {}
    for grid in grids:
        m, b = given["width"] / grid, given["batch"]
        times = {name: getattr(model, f"{name}_time")(machine, m, b) / US for name in RESOURCES}
        rows[grid**2] = {"edge": m} | times | {"utilisation": model.block_utilisation(machine, m, b)}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("chips")


def draw_cut_finer(data=None):
    """Draw :func:`cut_finer`: what each chip is busy with, and waits for. Returns the Axes."""
    from inferlib import style

    data = cut_finer() if data is None else data
    colours = dict(zip(RESOURCES, (style.RED, style.BLUE, style.ORANGE), strict=True))
    _, ax = axes((6.4, 4.6))
    for row, times in enumerate(data.to_dict("records")):
        longest = max(times[name] for name in RESOURCES)
        for i, name in enumerate(RESOURCES):
            y = row * 4 + i
            ax.barh(y, longest, color=style.FAINT, alpha=0.25, height=0.9)
            ax.barh(y, times[name], color=colours[name], height=0.9)
        text = f"{longest:.2g} μs, busy {times['utilisation']:.0%}"
        ax.text(longest * 1.08, row * 4 + 1, text, va="center")
    ax.set_yticks(
        [row * 4 + 1 for row in range(len(data))],
        [f"{chips} chip{'s' if chips > 1 else ''}" for chips in data.index],
    )
    ax.invert_yaxis()
    ax.set(xscale="log", xlim=(0.08, 200), xlabel="microseconds for one matrix and 256 vectors")
    for i, name in enumerate(RESOURCES):
        ax.text(0.085, i, name, color="white", va="center", fontsize=8, fontweight="bold")
    return ax


def tiles(grids=(1, 2, 4)):
    """What one tile of a matrix holds and moves, as shares of the whole matrix.

    Returns
    -------
    pandas.DataFrame
        Indexed by tiles along a side: ``weights`` (and arithmetic) and ``vectors`` of one chip, by the source's counts.
    """
    import pandas as pd

    machine, given = post_chip("A100, warm-up"), stated()["warm_up"]
    m, b = given["width"], given["batch"]

    def share(count, grid):
        return count(machine, m / grid, b) / count(machine, m, b)

    rows = {
        grid: {"weights": share(model.arithmetic_work, grid), "vectors": share(model.network_traffic, grid)}
        for grid in grids
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def draw_tiles(data=None):
    """Draw :func:`tiles`: a matrix cut, with what one chip takes in and sends out. Returns the Axes."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    from inferlib import style

    data = tiles() if data is None else data
    _, every = plt.subplots(1, len(data), figsize=(6.4, 3.0), layout="constrained")
    for ax, (grid, shares) in zip(every, data.iterrows(), strict=True):
        part = 1 / grid
        for column in range(grid):
            for row in range(grid):
                ours = (column, row) == (0, grid - 1)
                face = style.BLUE if ours else "none"
                edge = style.INK if grid == 1 or ours else style.FAINT
                ax.add_patch(Rectangle((column * part, row * part), part, part, fc=face, ec=edge, alpha=0.75))
        # the vectors that come in from above and the sums that leave to the left, of the chip in the corner
        ax.add_patch(Rectangle((0, 1.06), part, 0.1, fc=style.RED, ec="none"))
        ax.add_patch(Rectangle((-0.16, 1 - part), 0.1, part, fc=style.RED, ec="none"))
        chips = f"{grid**2} chip{'s' if grid > 1 else ''}"
        ax.set_title(chips, fontsize=10)
        ax.text(0.5, -0.1, f"weights {_part(shares.weights)}", color=style.BLUE, ha="center", va="top")
        ax.text(0.5, -0.26, f"vectors {_part(shares.vectors)}", color=style.RED, ha="center", va="top")
        ax.set(xlim=(-0.2, 1.05), ylim=(-0.42, 1.2), aspect="equal")
        ax.axis("off")
    return every


def _part(share):
    return "all" if share == 1 else f"1/{1 / share:.0f}"


def machine_traffic(chips=4):
    """Blocks of vectors that cross the network of a machine, in and out, in units of one chip's block.

    Returns
    -------
    dict
        ``apart``: its chips hold blocks with nothing in common; ``together``: a square grid of neighbours.
    """
    machine = post_chip("A100").replace(chips=chips)
    one = model.network_time(machine.replace(chips=1), 1.0, 1.0)
    return {"apart": 2 * chips, "together": 2 * model.network_time(machine, 1.0, 1.0) / one}


def draw_machine_traffic(chips=4):
    """Draw :func:`machine_traffic` for one machine of four chips. Returns the Axes."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    from inferlib import style

    counts, side = machine_traffic(chips), round(chips**0.5)
    _, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.2), layout="constrained")
    for ax, name, gap in ((left, "apart", 0.6), (right, "together", 0.0)):
        step = 1 + gap
        for column in range(side):
            for row in range(side):
                x, y = column * step, row * step
                ax.add_patch(Rectangle((x, y), 1, 1, fc=style.BLUE, ec="white", alpha=0.75, linewidth=1.5))
                if gap or row == side - 1:
                    ax.add_patch(Rectangle((x + 0.04, y + 1.06), 0.92, 0.16, fc=style.RED, ec="none"))
                if gap or column == 0:
                    ax.add_patch(Rectangle((x - 0.22, y + 0.04), 0.16, 0.92, fc=style.RED, ec="none"))
        end = side + gap * (side - 1)
        ax.add_patch(Rectangle((-0.4, -0.15), end + 0.55, end + 0.5, fc="none", ec=style.INK, linestyle="--"))
        ax.set_title("blocks apart" if gap else "neighbours", fontsize=10)
        ax.text(
            end / 2, -0.3, f"{counts[name]:.0f} blocks of vectors", color=style.RED, ha="center", va="top"
        )
        ax.set(xlim=(-0.5, end + 0.3), ylim=(-0.75, end + 0.5), aspect="equal")
        ax.axis("off")
    return left, right
