"""Erdil 2025, section 2: its figures, as data first and pictures second."""

from inferlib import style
from inferlib.ledger import Reader
from inferlib.papers.erdil2025.equations import toy
from inferlib.papers.erdil2025.records import FIGURE_1, FIGURE_1_CAPPED, ToyAssumptions, chips, models

H100 = chips["H100"]
READINGS = {"peak rates": FIGURE_1, "attainable rates": FIGURE_1_CAPPED}


def figure_1_data(assumptions=FIGURE_1):
    """Figure 1 as data: the frontiers of two models at two total demands.

    Returns
    -------
    pandas.DataFrame
        As :func:`toy_frontier` returns it, with columns ``model`` and ``demand`` (tokens/s).
    """
    import pandas as pd

    read = Reader("erdil2025", "Figure 1")
    price = H100.price  # what the notebook charges; the text says 2
    parts = [
        toy.toy_frontier(models[name], H100, demand=demand, price=price, assumptions=assumptions).assign(
            model=name, demand=demand
        )
        for name in ("Llama 3 8B", "Llama 3 70B")
        for demand in (read("total demand", "large"), read("total demand", "small"))
    ]
    return pd.concat(parts, ignore_index=True)


def figure_1(ax=None):
    """Figure 1 in both readings, what one provider sold at the time, and the equations without a base latency."""
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    ax = ax or plt.subplots()[1]
    colours = {"Llama 3 8B": style.BLUE, "Llama 3 70B": style.ORANGE}
    for assumptions, line in zip(READINGS.values(), ("-", "--"), strict=True):
        for (model, demand), curve in figure_1_data(assumptions).groupby(["model", "demand"], sort=False):
            width = 2.4 if demand > 1e5 else 1.1
            ax.plot(
                curve.tokens_per_second, curve.usd_per_million, line, color=colours[model], linewidth=width
            )
    alone = figure_1_data(ToyAssumptions())
    for model, curve in alone[alone.demand < 1e5].groupby("model", sort=False):
        ax.plot(curve.tokens_per_second, curve.usd_per_million, ":", color=colours[model], linewidth=1)
    for name, served, price in served_points():
        ax.plot(served, price, "o", color=colours[name], markersize=7)
        ax.annotate("sold", (served, price), xytext=(7, 3), textcoords="offset points", fontsize=9)
    ax.text(4.6, 0.15, "Llama 3 70B", color=style.ORANGE)
    ax.text(4.6, 0.017, "Llama 3 8B", color=style.BLUE)
    thick, thin = (Line2D([], [], color=style.INK, linewidth=w) for w in (2.4, 1.1))
    solid, dashed = (Line2D([], [], color=style.INK, linewidth=1.6, linestyle=s) for s in ("-", "--"))
    dotted = Line2D([], [], color=style.INK, linewidth=1, linestyle=":")
    handles = {"1,000,000 tokens/s in all": thick, "10,000 tokens/s in all": thin} | dict(
        zip((*READINGS, "equation 5 alone"), (solid, dashed, dotted), strict=True)
    )
    ax.legend(handles.values(), handles, loc="upper left", ncol=2, fontsize=9)
    ax.set(xscale="log", yscale="log", xlim=(4, 1100), ylim=(0.006, 15))
    ax.set(xlabel="tokens per second for one user", ylabel="dollars per million tokens")
    return ax


def served_points():
    """What the paper quotes of Fireworks: model, tokens per second, dollars per million tokens."""
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
    """Figure 2's three quoted points and the square-root law through the first.

    Returns
    -------
    pandas.DataFrame
        Indexed by model: parameters, measured and predicted milliseconds.
    """
    import pandas as pd

    read = Reader("erdil2025", "Text 2.2.3")
    names = ["PaLM 8B", "PaLM 62B", "PaLM 540B"]
    params = [read(name, "parameters") for name in names]
    measured = [read(name, "latency") for name in names]
    law = [toy.square_root_law(p, params[0], measured[0]) for p in params]
    table = pd.DataFrame({"parameters": params, "measured_ms": measured, "law_ms": law}, index=names)
    return table.assign(measured_ms=1e3 * table.measured_ms, law_ms=1e3 * table.law_ms)


def figure_2(ax=None):
    """The three quoted latencies of PaLM and the square-root law through the smallest."""
    import matplotlib.pyplot as plt
    import numpy as np

    ax = ax or plt.subplots(figsize=(6.4, 3.2))[1]
    data = figure_2_data()
    start = data.iloc[0]
    sizes = np.geomspace(5e9, 8e11, 50)
    ax.plot(sizes, toy.square_root_law(sizes, start.parameters, start.measured_ms), color=style.ORANGE)
    ax.annotate("square-root law", (1.5e11, 15), color=style.ORANGE, va="top")
    ax.plot(data.parameters, data.measured_ms, "o", color=style.BLUE)
    for name, row in data.iterrows():
        first = name == data.index[0]
        ax.annotate(
            f"{name}: {row.measured_ms:.0f} ms", (row.parameters, row.measured_ms),
            xytext=(8, -6) if first else (-6, 8), textcoords="offset points", ha="left" if first else "right",
        )  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="parameters", ylabel="milliseconds per token")
    return ax


def latency_data(model, chip=H100, assumptions=None):
    """Token latency over instance size at the critical batch, split into waiting and reading.

    Returns
    -------
    xarray.Dataset
        Over ``n_gpu``: ``network``, ``reading`` and ``latency``, in seconds.
    """
    import numpy as np
    import xarray as xr

    t_hop = (assumptions or ToyAssumptions()).t_hop
    n_gpu = xr.DataArray(np.geomspace(1, 512, 181), dims="n_gpu", name="n_gpu")
    n_gpu = n_gpu.assign_coords(n_gpu=n_gpu)
    return xr.Dataset(
        {
            "network": toy.network_time(model, toy.grid_all_reduce_time(n_gpu, t_hop)),
            "reading": toy.weight_time(model, chip, n_gpu),
            "latency": toy.critical_latency(model, chip, n_gpu, t_hop),
        }
    )


def latency_over_size(model=models["Llama 3 70B"], chip=H100, ax=None):
    """Waiting rises, reading falls: the sum has a lowest point."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots()[1]
    data = 1e3 * latency_data(model, chip)
    size = toy.optimal_n_gpu(model, chip, ToyAssumptions().t_hop)
    best = 1e3 * toy.minimum_latency(model, chip, ToyAssumptions().t_hop)
    for name, colour in (("reading", style.BLUE), ("network", style.RED), ("latency", style.INK)):
        ax.plot(data.n_gpu, data[name], color=colour, linewidth=2.6 if name == "latency" else 1.6)
    ax.text(60, 0.25, "reading weights", color=style.BLUE, ha="right")
    ax.text(480, 2.4, "waiting for the network", color=style.RED, ha="right")
    ax.text(2, 30, "token latency", color=style.INK)
    ax.plot(size, best, "o", color=style.INK)
    ax.annotate(f"{size:.0f} GPUs, {best:.2f} ms", (size, best), xytext=(-30, 12), textcoords="offset points")
    ax.set(xscale="log", yscale="log", xlabel="GPUs in the instance", ylabel="milliseconds per token")
    ax.set_ylim(0.08, 60)
    return ax
