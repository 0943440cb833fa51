"""Pope et al. 2022: Figures 1, 6, 7, B.1 and C.1 from the two-constant model; data first, picture second.

Our copy of the paper is text, without its plots, so these are predictions to be compared with the few points that
its tables and text print.
"""

from functools import cache
from itertools import pairwise

import pandas as pd
import xarray as xr

from book import style
from book.audit.grading import Reader
from book.frames import frame
from book.papers.pope2022 import evidence, two_constants
from book.papers.pope2022.evidence import SLICE, TPU, configuration, fitted, pass_time
from book.papers.pope2022.figures import dotted, layout_colours
from inferlib import axis
from inferlib.frontier import pareto
from inferlib.papers import pope2022 as pope

PALM = dict(zip(("PaLM 540B", "PaLM 62B", "PaLM 8B"), style.LINES, strict=False))
BATCHES = tuple(2**i for i in range(11))  # the text stops at "larger than about 512"


def _paid(name, chips, tokens, time):
    """Chip-seconds and utilisation of a token."""
    model = pope.load_model(name)
    return pope.cost(chips, tokens, time), pope.mfu(TPU, chips, pope.parameters(model), tokens, time)


def _run(name, chips, batch, layout, attention, format, context, answer, constants):
    """Seconds of a pass, chip-seconds and utilisation of a token; None where it does not fit."""
    at = configuration(name, chips, batch, layout, attention, format, context, answer)
    if pope.why_not(at["model"], TPU, at["mesh"], layout, attention, batch, at["seen"]):
        return None
    time = pass_time(at, constants)
    return time, *_paid(name, chips, at["tokens"], time)


@cache
@frame("model", "format", "chips", "batch", "layout", "time", "cost", "mfu")
def runs(phase):
    """All runs of the three PaLM models at the context of Figure 1, by the two-constant model, as far as they fit.

    ``phase``: processing 2048 tokens, or generating 64 after them; ``time`` (s) is of the prefill, or of one token,
    ``cost`` in chip-s a token. The constants are those fitted to appendix D.
    """
    read = Reader("pope2022", "Figure 1")
    work = read("context"), read("tokens generated") if phase == "decode" else None
    layouts_of = ("WS 2D",) if phase == "decode" else ("WS 2D", "WG XYZ")
    places = ((n, c, f, w) for n in PALM for c in pope.meshes() for f in ("int8", "bf16") for w in layouts_of)
    for name, chips, format, layout in places:
        for batch in BATCHES:
            attention = "Batch" if batch > 1 else "Head"
            found = _run(name, chips, batch, layout, attention, format, *work, fitted())
            if found:
                yield name, format, chips, batch, layout, *found


def frontier_of(runs):
    """Of each model and format, the :func:`runs` that no other beats in both time and cost, fastest first."""
    found = {}
    for name, rows in runs.groupby(["model", "format"], sort=False):
        kept = pareto(rows.assign(speed=1 / rows.time), speed="speed", cost="cost")
        found[name] = kept.drop(columns="speed")
    return found


@frame("model", "format", "time", "cost", "mfu")
def published_points(phase):
    """The runs that Tables 2 and 3 and section 4.4 print: ``model``, ``format``, ``time``, ``cost``, ``mfu``."""
    rows = []
    for (table, row), at in evidence.configurations().items():
        if row.endswith(phase):
            rows.append((at, evidence.measured_pass(table, row, at["passes"])))
    if phase == "decode":
        rows.append((evidence.bf16_decode(), Reader("pope2022", "Text 4.4")("bfloat16, batch 64")))
    for at, time in rows:
        name, chips = at["model"].name, at["mesh"].chips
        format = {1: "int8", 2: "bf16"}[at["model"].weight_bytes]
        yield name, format, time, *_paid(name, chips, at["tokens"], time)


def figure_1(phases, quantity="cost"):
    """Figure 1 (cost over latency) or C.1 (utilisation over latency), from the :func:`runs` of both phases.

    Lines are frontiers of the two-constant model, dashed with 16-bit weights; rings are what the paper prints,
    squares where its weights have 16 bits. A line is faint where no printed run of the model is as fast: the
    model of a step has no time per hop, so it continues to more chips than the paper's fastest runs used.
    The ends of each line of Figure 1 say the chips (C) and the batch (B).
    """
    both = style.panels(7.2, 3.8, columns=2)
    scale, label = {"cost": (1e3, "chip-milliseconds per token"), "mfu": (100, "MFU, %")}[quantity]
    for ax, (phase, found) in zip(both, phases.items(), strict=True):
        points = published_points(phase)
        fastest = points.groupby("model").time.min()
        for (name, format), rows in frontier_of(found).items():
            colour, whole = PALM[name], format == "int8"
            at = 1e3 * rows.time, scale * rows[quantity]
            line = {"color": colour, "linestyle": "-" if whole else "--"}
            ax.plot(*at, alpha=0.3, linewidth=1, **line)
            ran = rows.time >= 0.98 * fastest.get(name, float("inf"))
            ax.plot(at[0][ran], at[1][ran], linewidth=1.6, **line)
            own = points[(points.model == name) & (points.format == format)]
            ring = {"fillstyle": "none", "markersize": 8, "markeredgewidth": 1.5}
            ax.plot(1e3 * own.time, scale * own[quantity], "o" if whole else "s", color=colour, **ring)
            for i, shift in ((0, (2, 4)), (-1, (-12, 5))) if whole and quantity == "cost" else ():
                text = f"C{rows.chips.iloc[i]} B{rows.batch.iloc[i]}"
                place = at[0].iloc[i], at[1].iloc[i]
                ax.annotate(text, place, shift, textcoords="offset points", fontsize=7, color=colour)
        decodes, scale_y = phase == "decode", "log" if quantity == "cost" else "linear"
        ax.set(xscale="log", yscale=scale_y, xlabel="ms per token" if decodes else "ms for 2048 tokens")
        ax.set_title(phase)
    both[0].set_ylabel(label)
    names = [both[1].plot([], [], color=colour, label=name)[0] for name, colour in PALM.items()]
    both[0].figure.legend(handles=names, loc="outside upper center", ncol=3)
    return both


def figure_6_data():
    """Milliseconds of a generation step of PaLM 540B over the chips, in 1D and in 2D."""
    read, model, rows = Reader("pope2022", "Text 4.1"), evidence.palm(), {}
    batch, context = read("decode", "batch"), read("context", artefact="Text 4.4")
    for chips in (64, 128, 256):
        held = pope.cache_over_batch(model, chips, batch, context)
        at = model, TPU, pope.load_mesh(chips), fitted(), batch, context, held
        rows[chips] = {name: 1e3 * two_constants.step_time(*at, layout=f"WS {name}") for name in ("1D", "2D")}
    return pd.DataFrame(rows).T.rename_axis("chips")


def figure_6(data):
    """Draw :func:`figure_6_data`. Returns the Axes."""
    half = data["2D"].iloc[0] * data.index[0] / data.index
    lines = data.assign(**{"half the time for twice the chips": half}) / 1e3
    ax = style.curve(lines.to_xarray(), unit="ms", says="one token", log="x")
    ax.set_ylim(0, None)
    ax.set_title("batch 512, 2048 tokens of context")
    style.ticks(ax.xaxis, data.index)
    return ax


LENGTH = 2048  # tokens of a sequence of Figure 7


def prefill_time(model, chip, mesh, constants, sequences, layout):
    """Seconds of prefill of a number of sequences in a layout, by the two-constant model."""
    held = pope.cache_over_batch(model, mesh.chips, sequences, LENGTH)
    at = model, chip, mesh, constants, sequences * LENGTH, LENGTH, held
    return two_constants.step_time(*at, layout=layout)


def figure_7_data(model, chip, mesh, constants):
    """Utilisation of prefill over sequences of equal length, in the four layouts of Figure 3.

    ``enough``: whether there are sequences enough for the layout to cut the batch.
    """
    sequences = axis("sequences", [2**i for i in range(10)])
    # PaLM 540B is padded as it was run, but counted as it was trained
    counted = pope.load_model("PaLM 540B") if model.name == "PaLM 540B" else model
    work = chip, mesh.chips, pope.parameters(counted), sequences * LENGTH
    times = (prefill_time(model, chip, mesh, constants, sequences, name) for name in pope.SHARED)
    used = [pope.mfu(*work, time) for time in times]
    names = xr.DataArray(list(pope.SHARED), dims="layout", coords={"layout": list(pope.SHARED)})
    enough = xr.concat([sequences >= pope.gathered_over(mesh, name) for name in pope.SHARED], names)
    printed = counted is not model and (chip, mesh.chips) == (TPU, SLICE)
    used = xr.concat(used, names).assign_attrs(printed=printed)
    return used.assign_coords(tokens=sequences * LENGTH, enough=enough)


def switches_by_time(model, chip, mesh, constants):
    """Tokens of prefill from which each gathered layout is quicker than the layout before it, by the two constants.

    Whether there are sequences enough is another question.
    """
    found = {}
    for before, layout in pairwise(pope.SHARED):
        low, high = 2.0**-2, 2.0**10
        for _ in range(50):
            middle = (low + high) / 2
            at = model, chip, mesh, constants, middle
            slower = prefill_time(*at, layout) > prefill_time(*at, before)
            low, high = (middle, high) if slower else (low, middle)
        found[layout] = high * LENGTH
    return found


def figure_7(data):
    """Draw :func:`figure_7_data`; dotted where sequences are too few for the layout. Returns the Axes.

    Rings are utilisations that the paper prints, where these are its own model and chips.
    """
    ax = style.panels(6.4, 3.8)
    for name in data.layout.values:
        colour, curve = layout_colours()[name], 100 * data.sel(layout=name)
        dotted(ax, data.tokens, curve, curve.enough, colour, str(name))
    ring = {"color": style.INK, "fillstyle": "none", "markersize": 10}
    n_params, said = pope.parameters(pope.load_model("PaLM 540B")), "printed in Table 2, 64 chips"
    for (table, row), at in evidence.configurations().items():
        if data.printed and (table, row.split()[-1]) == ("Table 2", "prefill"):
            used = pope.mfu(TPU, SLICE, n_params, at["tokens"], evidence.measured_pass(table, row, 1))
            ax.plot(at["tokens"], 100 * used, "o", label=said, **ring)
            said = None
    ax.set(xscale="log", xlabel="tokens in the batch", ylabel="MFU, %", ylim=(0, 85))
    style.ticks(ax.xaxis, [2**11, 2**14, 2**17, 2**20])
    ax.legend(loc="lower right")
    return ax


@frame("model", "chips", "length", "time", "cost")
def figure_b1_data():
    """Prefill of one sequence over its length, int8 weights: ``model``, ``chips``, ``length``, ``time``, ``cost``."""
    read = Reader("pope2022", "Appendix B")
    shortest, longest = (int(read(f"{which} sequence")) for which in ("shortest", "longest"))
    lengths = [shortest * 2**i for i in range((longest // shortest).bit_length())]
    for name, chips, length in ((n, c, s) for n in PALM for c in pope.meshes() for s in lengths):
        found = _run(name, chips, 1, "WS 2D", "Head", "int8", length, None, fitted())
        if found:
            yield name, chips, length, *found[:2]


def figure_b1(data):
    """Draw :func:`figure_b1_data`: for each model one line a length, over the chips. Returns the Axes."""
    ax = style.panels(6.4, 3.8)
    for (name, length), rows in data.groupby(["model", "length"], sort=False):
        colour = PALM[name]
        ax.plot(1e3 * rows.time, 1e3 * rows.cost, ".-", color=colour, linewidth=0.9, markersize=5)
        for i in (0, -1) if length == data.length.max() else ():
            one = rows.iloc[i]
            text, place = f"S{one.length} C{one.chips}", (1e3 * one.time, 1e3 * one.cost)
            ax.annotate(text, place, (5, 2), textcoords="offset points", fontsize=8, color=colour)
    for name, colour in PALM.items():
        ax.plot([], [], ".-", color=colour, label=name)
    ax.set(xscale="log", yscale="log", xlabel="ms for one prompt", ylabel="chip-milliseconds per token")
    ax.legend()
    return ax
