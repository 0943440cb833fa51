"""Steinhardt 2022: the chapter's figures, data first and picture second."""

import numpy as np

from book.steinhardt2022.tables import LINKS, POD, modern_machines
from inferlib.papers.steinhardt2022 import equations as model
from inferlib.papers.steinhardt2022.records import PRINTED, WITHOUT_LIMIT, load_chip as post_chip
from inferlib.units import factor

US = factor("us")
# How a machine is called in the figure, and where its name stands beside its point, in points.
_NAMES = {POD: "TPU v4 pod:\nnothing leaves it", LINKS: "TPU v4, chip by chip"}
_SHIFTS = {
    "H200": ((2, -17), "right"),
    "H100 SXM": ((-2, -17), "left"),
    POD: ((-9, -14), "right"),
    LINKS: ((3, 20), "right"),
    "warm-up": ((3, 8), "right"),
    "the post's A100": ((4, 21), "right"),
    "B200": ((-1, 9), "right"),
    "A100 80GB": ((12, 9), "center"),
}


def star_terms(machine=None, batch=None):
    """The three terms of the starred equation over the block size, at one batch.

    Parameters
    ----------
    machine : Machine, optional
        The post's A100 when not given.
    batch : float, optional
        The machine's best batch when not given.

    Returns
    -------
    xarray.Dataset
        ``network``, ``memory``, ``arithmetic`` and ``slowest`` in seconds over ``block``.
    """
    import xarray as xr

    machine = machine or post_chip()
    batch = model.best_batch(machine) if batch is None else batch
    block = np.geomspace(50, 10_000, 200)
    m = xr.DataArray(block, coords={"block": block})
    terms = {
        "network": model.network_time(machine, m, batch),
        "memory": model.memory_time(machine, m, batch),
        "arithmetic": model.arithmetic_time(machine, m, batch),
        "slowest": model.block_time(machine, m, batch),
    }
    return xr.Dataset(terms)


def draw_star_terms(data=None, machine=None):
    """Draw :func:`star_terms`; the dot marks the best block. Returns the Axes."""
    from inferlib import style

    machine = machine or post_chip()
    data = star_terms(machine) if data is None else data
    _, ax = axes()
    lines = {"network": style.RED, "memory": style.BLUE, "arithmetic": style.ORANGE}
    ax.plot(data.block, data.slowest / US, color=style.FAINT, linewidth=7, alpha=0.35, solid_capstyle="round")
    for name, colour in lines.items():
        ax.plot(data.block, data[name] / US, color=colour)
    best, time = model.best_block(machine), model.elapsed_time(machine) / US
    ax.plot(best, time, "o", color=style.INK, zorder=5)
    ax.annotate("all busy: the best block", (best, time), (9, -16), textcoords="offset points")
    ax.set(xscale="log", yscale="log", xlabel="edge of a chip's block, m", ylabel="microseconds")
    _mark(ax, data.block, data.network / US, 0.22, "network", style.RED, (0, 6), "right")
    _mark(ax, data.block, data.memory / US, 0.0, "memory", style.BLUE, (0, -5), "left", "top")
    _mark(ax, data.block, data.arithmetic / US, 0.35, "arithmetic", style.ORANGE, (6, -4), "left", "top")
    _mark(ax, data.block, data.slowest / US, 0.85, "(⋆): the slowest", style.FAINT, (-10, 2), "right")
    return ax


def network_sweep(machine=None):
    """The time of one multiply over the network's bandwidth, with both branches.

    Parameters
    ----------
    machine : Machine, optional
        The post's A100 when not given; its own network is not used.

    Returns
    -------
    xarray.Dataset
        ``first``, ``second`` (NaN where it has no meaning) and ``elapsed`` in seconds over ``ratio``, the
        bandwidth as one chip sees it over the memory bandwidth, B / (M sqrt(N)).
    """
    import xarray as xr

    machine = machine or post_chip()
    ratio = np.linspace(0.2, 1.2, 201)
    x = xr.DataArray(ratio, coords={"ratio": ratio})
    swept = machine.replace(
        network_bandwidth=x.clip(max=0.995) * machine.memory_bandwidth * machine.chips**0.5
    )
    return xr.Dataset(
        {
            "first": model.memory_limited_time(machine) + 0 * x,
            "second": model.network_limited_time(swept).where(x <= 0.995),
            "elapsed": model.elapsed_time(swept),
        }
    )


def draw_network_sweep(data=None, machine=None):
    """Draw :func:`network_sweep`: the branches touch at two thirds. Returns the Axes."""
    from inferlib import style

    machine = machine or post_chip()
    data = network_sweep(machine) if data is None else data
    _, ax = axes()
    ax.plot(data.ratio, data.elapsed / US, color=style.FAINT, linewidth=7, alpha=0.35, solid_capstyle="round")
    ax.plot(data.ratio, data["first"] / US, color=style.BLUE)
    ax.plot(data.ratio, data.second / US, color=style.RED)
    meet, least = (model.sufficient_bandwidth(machine), model.memory_limited_time(machine) / US)
    seen = meet / machine.chips**0.5 / machine.memory_bandwidth
    ax.plot(seen, least, "o", color=style.INK, zorder=5)
    ax.annotate("they touch\nat two thirds", (seen, least), (0, 14), textcoords="offset points", ha="center")
    here = model.effective_bandwidth(machine) / machine.memory_bandwidth
    ax.plot(here, model.elapsed_time(machine) / US, "s", color=style.INK, zorder=5)
    ax.annotate(
        "the post's A100", (here, model.elapsed_time(machine) / US), (9, 4), textcoords="offset points"
    )
    ax.annotate("second branch", (0.25, 1.9), (22, 0), textcoords="offset points", color=style.RED)
    ax.annotate("first branch", (0.3, least), (0, -15), textcoords="offset points", color=style.BLUE)
    ax.set(
        ylim=(0, 3), xlim=(0.2, 1.2), ylabel="microseconds per multiply",
        xlabel="network over memory bandwidth as one chip sees them, B / (M √N)",
    )  # fmt: skip
    return ax


def waste_sweep(machine=None, assumptions=PRINTED):
    """Time of one multiply and utilisation when k times as much utilisation is given up.

    Parameters
    ----------
    machine : Machine, optional
        The post's A100 when not given.
    assumptions : Assumptions
        Utilisation at k = 1, and latency.

    Returns
    -------
    xarray.Dataset
        ``ideal`` (no latency) and ``practical`` in seconds, and ``utilisation``, over ``k``.
    """
    import xarray as xr

    machine = machine or post_chip()
    values = np.geomspace(1, 10, 100)
    k = xr.DataArray(values, coords={"k": values})
    practical = model.practical_time(machine, k, assumptions)
    # arithmetic at the peak over the time that passes
    work = model.wasteful_time(machine, k) / k
    return xr.Dataset(
        {
            "ideal": model.practical_time(machine, k, assumptions.replace(latency=0.0)),
            "practical": practical,
            "utilisation": work / practical,
        }
    )


def draw_waste_sweep(data=None, assumptions=PRINTED):
    """Draw :func:`waste_sweep`: time above, utilisation below. Returns both Axes."""
    import matplotlib.pyplot as plt

    from inferlib import style

    data = waste_sweep(assumptions=assumptions) if data is None else data
    _, (top, bottom) = plt.subplots(
        2, 1, sharex=True, figsize=(6.4, 5), height_ratios=[3, 2], layout="constrained"
    )
    top.axhspan(1, 2, color=style.FAINT, alpha=0.25, linewidth=0)
    top.text(10, 0.92, "latency, 1 to 2 μs", ha="right", va="top")
    top.plot(data.k, data.ideal / US, color=style.BLUE)
    top.plot(data.k, data.practical / US, color=style.RED)
    _mark(top, data.k, data.ideal / US, 0.62, "without latency: 1/k²", style.BLUE, (-8, -8), "right", "top")
    _mark(
        top, data.k, data.practical / US, 0.5, "with the post's 1.5 μs", style.RED, (4, 10), "left", "bottom"
    )
    top.set(xscale="log", yscale="log", ylabel="microseconds per multiply", ylim=(0.02, 7))
    bottom.plot(data.k, 100 * assumptions.utilisation / data.k, color=style.BLUE)
    bottom.plot(data.k, 100 * data.utilisation, color=style.RED)
    _mark(
        bottom,
        data.k,
        100 * assumptions.utilisation / data.k,
        0.3,
        "without latency: 1/k",
        style.BLUE,
        (6, 6),
    )
    bottom.text(1.02, 3, "with it: 1/k³ in the end", color=style.RED)
    bottom.set(ylabel="utilisation, %", xlabel="utilisation given up on purpose, k", ylim=(0, None))
    bottom.set_xticks([1, 2, 3, 5, 10], ["1", "2", "3", "5", "10"])
    bottom.minorticks_off()
    return top, bottom


def regions():
    """Where machines stand beside the line at which the network stops binding.

    Returns
    -------
    pandas.DataFrame
        Indexed by machine: ``chips`` N, ``ratio`` B / M (infinite where nothing leaves the machine),
        ``switch`` (that of the line at N), and whether the ``network`` binds.
    """
    import pandas as pd

    every = {"the post's A100": post_chip("A100"), "warm-up": post_chip("A100, warm-up")}
    every |= modern_machines()
    rows = {
        name: {
            "chips": machine.chips,
            "ratio": np.inf
            if machine.network_bandwidth >= WITHOUT_LIMIT
            else machine.network_bandwidth / machine.memory_bandwidth,
            "switch": model.sufficient_bandwidth(machine) / machine.memory_bandwidth,
            "network": bool(machine.network_bandwidth < model.sufficient_bandwidth(machine)),
        }
        for name, machine in every.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def draw_regions(data=None):
    """Draw :func:`regions`: the binding branch over B / M and N. Returns the Axes."""
    from inferlib import style

    data = regions() if data is None else data
    _, ax = axes((6.4, 4.2))
    chips, edge = np.geomspace(1, 10_000, 100), 500
    line = model.sufficient_bandwidth(post_chip().replace(memory_bandwidth=1.0, chips=chips))
    ax.plot(line, chips, color=style.INK)
    ax.fill_betweenx(chips, 0.01, line, color=style.RED, alpha=0.10, linewidth=0)
    ax.fill_betweenx(chips, line, edge, color=style.BLUE, alpha=0.10, linewidth=0)
    ax.text(0.012, 400, "the network binds:\nsecond branch", color=style.RED, va="top")
    ax.text(440, 1.3, "memory binds:\nfirst branch", color=style.BLUE, ha="right", va="bottom")
    ax.text(13, 200, "B = ⅔ M √N", ha="left", va="top")
    for name, row in data.iterrows():
        colour = style.CHIPS.get(name.split(",")[0], style.INK)
        marker = ">" if np.isinf(row.ratio) else "o" if colour != style.INK else "s"
        x = min(row.ratio, edge)
        ax.plot(x, row.chips, marker, color=colour, zorder=5, clip_on=False)
        shift, side = _SHIFTS.get(name, ((0, 9), "center"))
        ax.annotate(_NAMES.get(name, name), (x, row.chips), shift, textcoords="offset points", ha=side)
    ax.set(
        xscale="log", yscale="log", xlim=(0.01, edge), ylim=(1, 10_000),
        xlabel="network over memory bandwidth, B / M", ylabel="chips in a machine, N",
    )  # fmt: skip
    ax.set_yticks([1, 8, 64, 512, 4096], ["1", "8", "64", "512", "4096"])
    ax.set_xticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
    ax.minorticks_off()
    return ax


def _mark(ax, x, y, part, text, colour, shift, ha="left", va="bottom"):
    """Write a curve's name beside it, at a part of its length."""
    i = int(part * len(x))
    ax.annotate(
        text, (float(x[i]), float(y[i])), shift, textcoords="offset points", ha=ha, va=va, color=colour
    )


def axes(size=(6.4, 3.8)):
    """One plain picture of a size in inches: the figure and its Axes."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")
