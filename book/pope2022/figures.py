"""Pope et al. 2022: Figures 3, 8 and 9 from formulas and tables alone; data first, picture second."""

import numpy as np

from book.pope2022 import benchmarks, evidence
from book.pope2022.evidence import SLICE, TPU
from book.pope2022.tables import gpu_bounds
from inferlib.ledger import Reader
from inferlib.papers.pope2022.equations import layouts
from inferlib.papers.pope2022.equations.costs import (
    CACHES,
    attention_flops,
    compute_time,
    context_over_batch,
    context_over_heads,
    matmul_flops,
    memory_time,
    weights_on_chip,
)
from inferlib.papers.pope2022.records import EXACT, PRINTED, load_mesh, multihead

MS = 1e-3
CONTEXTS = (128, 512, 2048, 8192, 16384, 32768, 65536, 131072)  # of Figure 8, by the authors' public code


def layout_colours():
    """The colour of each layout, everywhere in the chapter."""
    from inferlib import style

    order = (style.BLUE, style.ORANGE, style.GREEN, style.RED, style.PURPLE)  # as the explorer has them
    return dict(zip(layouts.TIMES, order, strict=True))


# --- Figure 3: what each layout moves --------------------------------------------------------------------


def figure_3_data(model=None, mesh=None, assumptions=PRINTED):
    """What one chip moves for one layer over the tokens of the batch, in every layout.

    Parameters
    ----------
    model : Model, optional
        PaLM 540B as it was run when not given. The figure's own model is not named in its text.
    mesh : Mesh, optional
        64 chips when not given.
    assumptions : Assumptions

    Returns
    -------
    xarray.DataArray
        Bytes over ``layout`` and ``tokens``.
    """
    import xarray as xr

    model, mesh = model or evidence.palm(), mesh or load_mesh(SLICE)
    tokens = np.geomspace(2**9, 2**23, 141)
    axis = xr.DataArray(tokens, coords={"tokens": tokens})
    seconds = layouts.communication(model, TPU, mesh, axis, assumptions)
    return seconds * TPU.network_bandwidth


def figure_3(data=None, model=None, mesh=None):
    """Draw :func:`figure_3_data`, dots at the switch points. Returns the Axes."""
    from inferlib import style

    model, mesh = model or evidence.palm(), mesh or load_mesh(SLICE)
    data = figure_3_data(model, mesh) if data is None else data
    _, ax = _axes((6.4, 4))
    shared = data.sel(layout=list(layouts.SHARED))
    ax.plot(data.tokens, shared.min("layout") / 1e6, color=style.FAINT, linewidth=8, alpha=0.35)
    for name, colour in layout_colours().items():
        line = "--" if name == "WS 1D" else "-"
        ax.plot(data.tokens, data.sel(layout=name) / 1e6, line, color=colour, label=name)
    for tokens in layouts.switches(model, mesh).values():
        at = float(layouts.choose(model, TPU, mesh, tokens)[0]) * TPU.network_bandwidth / 1e6
        ax.plot(tokens, at, "o", color=style.INK, zorder=5)
        ax.annotate(f"{tokens:,.0f}", (tokens, at), (6, -13), textcoords="offset points", fontsize=9)
    ax.set(
        xscale="log", yscale="log", xlabel="tokens in the batch", ylabel="megabytes through a chip, one layer"
    )
    ax.set(ylim=(10, 3e5))
    ax.legend(ncol=2)
    return ax


def break_even_data():
    """Communication of 2D over that of 1D, over the number of chips, with and without (K - 1)/K.

    Returns
    -------
    xarray.Dataset
        ``printed`` at the best X, ``exact`` at the best X (at least 1), and ``exact X = 2``, ``4``, over
        ``chips``: ratios, for a block four times as wide as the model.
    """
    import xarray as xr

    from inferlib.papers.pope2022.records import Mesh

    values = np.geomspace(2, 512, 161)
    chips = xr.DataArray(values, coords={"chips": values})
    model = evidence.palm()

    def ratio(x, assumptions):
        flat, line = Mesh(x, (chips / x).clip(min=1)), Mesh(1, chips)
        return layouts.ws2d_volume(model, flat, 1, assumptions) / layouts.ws1d_volume(
            model, line, 1, assumptions
        )

    best = layouts.best_x(model, chips).clip(min=1)
    curves = {"printed costs, best X": ratio(best, PRINTED), "exact, best X": ratio(best, EXACT)}
    for x in (2, 4):
        curves[f"exact, X = {x}"] = ratio(x, EXACT).where(chips >= x)
    return xr.Dataset(curves)


def draw_break_even(data=None):
    """Draw :func:`break_even_data`: below the line at 1, 2D moves less. Returns the Axes."""
    from inferlib import style

    data = break_even_data() if data is None else data
    _, ax = _axes()
    colours = (style.RED, style.BLUE, style.GREEN, style.ORANGE)
    for name, colour in zip(data, colours, strict=True):
        line = "--" if name.startswith("printed") else "-"
        ax.plot(data.chips, data[name], line, color=colour, label=name)
    ax.axhline(1, color=style.INK, linewidth=1)
    ax.set(xscale="log", xlabel="chips", ylabel="2D over 1D, communication", ylim=(0, 2.2))
    ax.set_xticks(
        [2, 4, 8, 16, 32, 64, 128, 256, 512], ["2", "4", "8", "16", "32", "64", "128", "256", "512"]
    )
    ax.minorticks_off()
    ax.legend()
    return ax


# --- Figure 8: what the cache costs ----------------------------------------------------------------------


def figure_8_data():
    """Least time of a generation step over the context, for the three variants of attention.

    Everything but the cache is the roofline bound of the rest: arithmetic or reading the weights, whichever
    takes longer; no constant is fitted.

    Returns
    -------
    xarray.Dataset
        ``cache``: seconds to read the cache, and ``rest``, over ``variant`` and ``context``; ``longest``: the
        context that fits into 30 % of the memory with all 118 layers, over ``variant``.
    """
    import xarray as xr

    read = Reader("pope2022", "Figure 8")
    batch, share = read("batch"), read("memory kept for the cache", artefact="Table 1")
    context = xr.DataArray(np.array(CONTEXTS, dtype=float), coords={"context": list(CONTEXTS)})
    whole = evidence.palm()
    short = whole.replace(layers=read("layers"))
    cases = {
        "multihead": (
            multihead(short),
            "Head",
            context_over_heads(multihead(whole), TPU, SLICE, batch, share),
        ),
        "multiquery, over heads": (short, "Head", context_over_heads(whole, TPU, SLICE, batch, share)),
        "multiquery, over batch": (short, "Batch", context_over_batch(whole, TPU, SLICE, batch, share)),
    }
    cache, rest, longest = [], [], []
    for model, attention, fits in cases.values():
        cache.append(memory_time(TPU, CACHES[attention](model, SLICE, batch, context)))
        flop = matmul_flops(model, batch) + attention_flops(model, batch, context)
        weights = memory_time(TPU, weights_on_chip(model, SLICE))
        rest.append(np.maximum(compute_time(TPU, SLICE, flop), weights))
        longest.append(float(fits))
    names = xr.DataArray(list(cases), dims="variant")
    return xr.Dataset(
        {"cache": xr.concat(cache, names), "rest": xr.concat(rest, names), "longest": ("variant", longest)}
    ).assign_coords(variant=list(cases))


def figure_8(data=None):
    """Draw :func:`figure_8_data`; dotted where the whole model's cache would not fit. Returns the Axes."""
    from inferlib import style

    data = figure_8_data() if data is None else data
    _, ax = _axes()
    for (name, curve), colour in zip(
        data.groupby("variant"), (style.RED, style.BLUE, style.ORANGE), strict=True
    ):
        curve = curve.squeeze("variant")
        total = (curve.cache + curve.rest) / MS
        fits = curve.context <= float(curve.longest)
        ax.plot(curve.context, total, ":", color=colour)
        ax.plot(curve.context[fits], total[fits], "o-", color=colour, markersize=4, label=name)
    ax.set(
        xscale="log", yscale="log", xlabel="tokens of context", ylabel="milliseconds per token, 8 layers",
    )  # fmt: skip
    shown = [n for n in CONTEXTS if n not in (16384, 65536)]
    ax.set_xticks(shown, [f"{n:,}" for n in shown])
    ax.minorticks_off()
    ax.legend()
    return ax


# --- Figure 9: the measurements --------------------------------------------------------------------------


def frontier_data(table="Table D.3", assumptions=PRINTED):
    """Latency and utilisation of all end-to-end results of a table, and who is on the frontiers.

    Parameters
    ----------
    table : str
    assumptions : Assumptions
        With ``swapped_totals`` Table D.4 is repaired.

    Returns
    -------
    pandas.DataFrame
        :func:`book.pope2022.benchmarks.totals` with ``bold`` and ``underlined``.
    """
    rows = benchmarks.totals(table, assumptions)
    marks = {}
    for name, without in (("bold", False), ("underlined", True)):
        kept = benchmarks.frontier(table, without, assumptions)
        marks[name] = set(zip(kept.column, kept.batch, strict=True))
    places = list(zip(rows.column, rows.batch, strict=True))
    return rows.assign(**{name: [place in kept for place in places] for name, kept in marks.items()})


def figure_9(table="Table D.3", assumptions=PRINTED):
    """Draw :func:`frontier_data`; filled points are on the frontier of all. Returns the Axes."""
    from inferlib import style

    data = frontier_data(table, assumptions)
    colours = dict(
        zip(benchmarks.TOTALS, (style.SKY, style.PURPLE, style.YELLOW, style.ORANGE, style.BLUE), strict=True)
    )
    _, ax = _axes()
    for name, rows in data.groupby("column", sort=False):
        ax.plot(rows.time, 100 * rows.exact, "-", color=colours[name], linewidth=1.2)
        ax.plot(rows.time, 100 * rows.exact, "o", color=colours[name], fillstyle="none", markersize=6)
        on = rows[rows.bold]
        ax.plot(on.time, 100 * on.exact, "o", color=colours[name], markersize=6)
        ax.plot([], [], "o-", color=colours[name], label=name)
    ax.set(xscale="log", xlabel="seconds, all tokens of input and output", ylabel="MFU, %", ylim=(0, 55))
    ax.legend(fontsize=9)
    return ax


def gpu_bound_figure(data=None):
    """FasterTransformer's times over the roofline of their A100s. Returns the Axes."""
    from inferlib import style

    data = gpu_bounds() if data is None else data
    _, ax = _axes()
    colours = (style.SKY, style.PURPLE, style.YELLOW)
    markers = dict(zip(benchmarks.TABLES, "osD", strict=True))
    for colour, (name, rows) in zip(colours, data.groupby("column", sort=False), strict=True):
        for table, cells in rows.groupby("table"):
            ax.plot(cells.batch, cells.over, marker=markers[table], color=colour, linewidth=1, markersize=5)
        ax.plot([], [], "-", color=colour, label=name)
    for table, marker in markers.items():
        ax.plot([], [], marker, color=style.FAINT, label=table)
    ax.axhline(1, color=style.INK, linewidth=1)
    ax.set(xscale="log", xlabel="batch", ylabel="measured over bound", ylim=(0, 7))
    ax.set_xticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
    ax.minorticks_off()
    ax.legend(ncol=2, fontsize=9, loc="upper right")
    return ax


# --- Prediction against measurement ----------------------------------------------------------------------


def draw_fit():
    """Measured over predicted in every cell of appendix D, and in those held out. Returns the Axes."""
    from inferlib import style

    constants = evidence.fitted()
    cells = evidence.cells()
    cells = cells.assign(ratio=cells.measured / evidence.predicted(cells, constants))
    _, ax = _axes((6.4, 4))
    for (phase, rows), colour, marker in zip(
        cells.groupby("phase"), (style.ORANGE, style.BLUE), "os", strict=True
    ):
        ax.plot(rows.measured, rows.ratio, marker, color=colour, markersize=5, label=f"PaLM {phase}, fitted")
    other = evidence.megatron_table()
    ax.plot(
        other.measured / 1e3, other.measured / other.predicted, "D", color=style.PURPLE, markersize=5,
        fillstyle="none", label="MT-NLG totals, held out",
    )  # fmt: skip
    held = evidence.held_out()
    ax.plot(
        held.measured / 1e3, held.measured / held.predicted, "*", color=style.RED, markersize=10,
        label="Tables 2 and 3, held out",
    )  # fmt: skip
    ax.axhline(1, color=style.INK, linewidth=1)
    ax.axhspan(0.9, 1.1, color=style.FAINT, alpha=0.15, linewidth=0)
    ax.set(xscale="log", xlabel="measured seconds", ylabel="measured over predicted", ylim=(0.6, 1.5))
    ax.legend(ncol=2, fontsize=9, loc="upper center")
    return ax


def draw_bounds():
    """Every resource of the eight configurations over what was measured. Returns the Axes."""
    from inferlib import style

    data = evidence.bounds()
    _, ax = _axes((7, 4.2))
    parts = {"arithmetic": style.ORANGE, "weights": style.BLUE, "cache": style.GREEN, "network": style.RED}
    heights = {"arithmetic": 0.24, "weights": 0, "cache": 0, "network": -0.24}
    for i, (_, row) in enumerate(data.iterrows()):
        y, left = len(data) - i, 0.0
        for name, colour in parts.items():
            share = 100 * row[name] / row.measured
            start = left if name == "cache" else 0.0
            ax.barh(
                y + heights[name],
                share,
                left=start,
                height=0.22,
                color=colour,
                label=name if i == 0 else None,
            )
            left = share if name == "weights" else left
    ax.axvline(100, color=style.INK, linewidth=1)
    ax.set_yticks(range(len(data), 0, -1), data.index, fontsize=8)
    ax.set(xlabel="per cent of the measured time, every peak as reached", xlim=(0, 105))
    ax.grid(axis="y", visible=False)
    ax.legend(ncol=4, fontsize=9, loc="upper center", bbox_to_anchor=(0.4, 1.12))
    return ax


def _axes(size=(6.4, 3.8)):
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")
