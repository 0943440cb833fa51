"""Pope et al. 2022: Figures 3, 8 and 9 from formulas and tables alone; data first, picture second."""

import numpy as np
import xarray as xr

from book import style
from book.audit.grading import Reader
from book.papers.pope2022 import benchmarks, evidence
from book.papers.pope2022.evidence import SLICE, TPU
from inferlib.papers import pope2022 as pope

MS = 1e-3
CONTEXTS = (128, 512, 2048, 8192, 16384, 32768, 65536, 131072)  # of Figure 8, by the authors' public code


def layout_colours():
    """The colour of each layout, everywhere in the chapter."""
    return dict(zip(pope.LAYOUTS, style.LINES, strict=False))


def dotted(ax, x, y, holds, colour, label):
    """Draw a curve with its points, dotted where it does not hold."""
    mark = "os^D"[len(ax.lines) // 2]  # every curve before this one is two lines
    ax.plot(x, y, ":", color=colour)
    ax.plot(x[holds], y[holds], f"{mark}-", color=colour, markersize=4, label=label)


# --- Figure 3: what each layout moves --------------------------------------------------------------------


def figure_3(moved, switches):
    """Bytes that each layout moves over the tokens of the batch, dots at the switch points. Returns the Axes.

    ``moved``: bytes over ``layout`` and ``tokens``. ``switches``: tokens at which one layout takes over from
    another, such as :func:`pope2022.switches`.
    """
    ax = style.panels(6.4, 4)
    least = moved.sel(layout=list(pope.SHARED)).min("layout") / 1e6
    ax.plot(moved.tokens, least, color=style.FAINT, linewidth=8, alpha=0.5)
    for name, colour in layout_colours().items():
        line = {"WS 1D": "--", "WG X": "-.", "WG XY": ":"}.get(name, "-")
        ax.plot(moved.tokens, moved.sel(layout=name) / 1e6, line, color=colour, label=name)
    for tokens in switches.values():
        at = float(least.interp(tokens=tokens))
        ax.plot(tokens, at, "o", color=style.INK, zorder=5)
        ax.annotate(f"{tokens:,.0f}", (tokens, at), (6, -13), textcoords="offset points")
    ax.set(xscale="log", yscale="log", xlabel="tokens in the batch", ylabel="MB through a chip, one layer")
    ax.legend(ncol=2)
    return ax


# --- Figure 8: what the cache costs ----------------------------------------------------------------------


def figure_8_data():
    """Least time of a generation step over the context, for the three variants of attention.

    Everything but the cache is the roofline bound of the rest: arithmetic or reading the weights, whichever
    takes longer; no constant is fitted. ``fits``: whether the cache of all 118 layers does, in 30 % of the memory.
    """
    read = Reader("pope2022", "Figure 8")
    batch, share = read("batch"), read("memory kept for the cache", artefact="Table 1")
    context = xr.DataArray(np.array(CONTEXTS, dtype=float), coords={"context": list(CONTEXTS)})
    palm, variants = evidence.palm(), {}
    for name, whole, attention, most in (
        ("multihead", pope.multihead(palm), "Head", pope.context_over_heads),
        ("multiquery, over heads", palm, "Head", pope.context_over_heads),
        ("multiquery, over batch", palm, "Batch", pope.context_over_batch),
    ):
        model = whole.replace(layers=read("layers"))
        held = pope.CACHES[attention](model, SLICE, batch, context)
        need = pope.bound(model, TPU, pope.load_mesh(SLICE), "WS 2D", batch, context, held)
        time = np.maximum(need["arithmetic"], need["weights"]) + need["cache"]
        variants[name] = time.assign_coords(fits=context <= most(whole, TPU, SLICE, batch, share))
    return variants


def figure_8(data):
    """Draw :func:`figure_8_data`; dotted where the whole model's cache would not fit. Returns the Axes."""
    ax = style.panels(6.4, 3.8)
    for (name, time), colour in zip(data.items(), style.LINES[:3], strict=True):
        dotted(ax, time.context, time / MS, time.fits, colour, name)
    ax.set(xscale="log", yscale="log")
    ax.set(xlabel="tokens of context", ylabel="milliseconds per token, 8 layers")
    style.ticks(ax.xaxis, [n for n in CONTEXTS if n not in (16384, 65536)])
    ax.legend(fontsize=10)
    return ax


# --- Figure 9: the measurements --------------------------------------------------------------------------


def figure_9():
    """Latency and utilisation of all end-to-end results of Table D.3; filled points are on the frontier of all."""
    data = benchmarks.totals("Table D.3")
    data = data.assign(bold=benchmarks.on_the_frontier(data))
    ax = style.panels(6.4, 3.8)
    kinds = zip(data.groupby("column", sort=False), style.LINES, style.MARKERS, strict=False)
    for (name, rows), colour, marker in kinds:
        drawn = {"marker": marker, "color": colour, "markersize": 6}
        ax.plot(rows.time, 100 * rows.exact, linewidth=1.2, fillstyle="none", label=name, **drawn)
        on = rows[rows.bold]
        ax.plot(on.time, 100 * on.exact, linestyle="none", **drawn)
    ax.set(xscale="log", xlabel="seconds, all tokens of input and output", ylabel="MFU, %", ylim=(0, 55))
    ax.legend()
    return ax


# --- Prediction against measurement ----------------------------------------------------------------------


def draw_fit(cells, constants):
    """Measured over predicted in the cells fitted, and in the runs that were not. Returns the Axes."""
    cells = cells.assign(ratio=cells.measured / evidence.predicted(cells, constants))
    ax = style.panels(6.4, 4)
    kinds = zip(cells.groupby("phase"), (style.BLUE, style.ORANGE), "so", strict=True)
    for (phase, rows), colour, marker in kinds:
        ax.plot(rows.measured, rows.ratio, marker, color=colour, markersize=5, label=f"PaLM {phase}, fitted")
    rings = {"color": style.PURPLE, "markersize": 5, "fillstyle": "none", "label": "MT-NLG totals, held out"}
    other = evidence.megatron_table(constants)
    ax.plot(other.measured / 1e3, other.measured / other.predicted, "D", **rings)
    held = evidence.held_out(constants)
    stars = {"color": style.INK, "markersize": 10, "label": "Tables 2 and 3, held out"}
    ax.plot(held.measured / 1e3, held.measured / held.predicted, "*", **stars)
    ax.axhline(1, color=style.INK, linewidth=1)
    ax.axhspan(0.9, 1.1, color=style.FAINT, alpha=0.15, linewidth=0)
    ax.set(xscale="log", xlabel="measured seconds", ylabel="measured over predicted", ylim=(0.6, 1.5))
    ax.legend(ncol=2, loc="upper center")
    return ax


def draw_bounds(data):
    """Every resource of the runs of :func:`evidence.bounds` over what was measured. Returns the Axes."""
    ax = style.panels(7, 4.2)
    heights = {"arithmetic": 0.24, "weights": 0, "cache": 0, "network": -0.24}
    ends = range(len(data), 0, -1)
    for name, height in heights.items():
        left = data.weights / data.measured if name == "cache" else 0 * data.measured
        bars = {"left": 100 * left, "height": 0.22, "color": style.TERMS[name], "label": name}
        ax.barh([y + height for y in ends], 100 * data[name] / data.measured, **bars)
    ax.axvline(100, color=style.INK, linewidth=1)
    ax.set_yticks(ends, data.says)
    ax.set(xlabel="% of the measured time, if every peak were reached", xlim=(0, 105))
    ax.grid(axis="y", visible=False)
    ax.legend(ncol=4, loc="upper center", bbox_to_anchor=(0.4, 1.12))
    return ax


def draw_waterfall(parts, measured):
    """Where the time of a token goes: one part after the other, up to what was measured if it was. Returns the Axes.

    ``parts``: what is counted, in words, to seconds and the term of :data:`book.style.TERMS` whose colour it takes.
    """
    ax = style.panels(6.8, 0.9 + 0.42 * len(parts))
    rows = {name: (t, style.TERMS[kind]) for name, (t, kind) in parts.items()}
    total, start = sum(t for t, _ in rows.values()), 0.0
    if measured and measured > total:
        rows["not explained"] = measured - total, "none"
    for i, (seconds, colour) in enumerate(rows.values()):
        bar = {"height": 0.7, "color": colour, "edgecolor": style.INK, "linewidth": 0.6}
        ax.barh(-i, 1e3 * seconds, left=1e3 * start, **bar)
        start += seconds
        inside = colour != "none" and seconds > 0.1 * total
        place = {"ha": "center", "color": "white"} if inside else {"ha": "left"}
        x = 1e3 * (start - seconds / 2) if inside else 1e3 * start + 0.3
        style.words(ax, x, -i, f"{1e3 * seconds:.1f} ms", **place)
    end = measured or total
    says = f"measured {1e3 * measured:.1f} ms " if measured else f"not measured: {1e3 * total:.1f} ms "
    ax.axvline(1e3 * end, color=style.INK, linewidth=1)
    style.words(ax, 1e3 * end, 0.62, says, ha="right")
    ax.set_yticks([-i for i in range(len(rows))], rows)
    ax.set(xlabel="ms of one token", xlim=(0, 1.13e3 * max(end, start)), ylim=(0.4 - len(rows), 0.95))
    ax.grid(axis="y", visible=False)
    return ax
