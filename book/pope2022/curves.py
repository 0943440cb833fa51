"""Pope et al. 2022: Figures 1, 6, 7, B.1 and C.1 from the two-constant model; data first, picture second.

Our copy of the paper is text, without its plots, so these are predictions to be compared with the few points that
its tables and text print.
"""

from functools import cache

from book.pope2022 import evidence
from book.pope2022.evidence import SLICE, TPU, configuration, fitted, pass_time
from book.pope2022.figures import _axes, layout_colours
from inferlib.ledger import Reader
from inferlib.papers.pope2022.equations.costs import cache_over_batch, cost, mfu, parameters
from inferlib.papers.pope2022.equations.layouts import SHARED, gathered_over, why_not
from inferlib.papers.pope2022.equations.prediction import ws1d_step, ws2d_step
from inferlib.papers.pope2022.records import load_mesh, load_model, meshes

PALM = ("PaLM 540B", "PaLM 62B", "PaLM 8B")
BATCHES = tuple(2**i for i in range(11))  # the text stops at "larger than about 512"


def _colours():
    from inferlib import style

    return dict(zip(PALM, (style.RED, style.BLUE, style.GREEN), strict=True))


@cache
def sweep(phase):
    """All runs of the three PaLM models at the context of Figure 1, by the two-constant model.

    Parameters
    ----------
    phase : {"prefill", "decode"}
        Processing 2048 tokens, or generating 64 after them.

    Returns
    -------
    pandas.DataFrame
        ``model``, ``format``, ``chips``, ``batch``, ``layout``; ``time`` (s: of the prefill, or of one token),
        ``cost`` (chip-s a token) and ``mfu``. Runs that do not fit in memory are left out.
    """
    import pandas as pd

    rows = []
    read, constants = Reader("pope2022", "Figure 1"), fitted()
    context, answer = read("context"), read("tokens generated") if phase == "decode" else None
    layouts_of = ("WS 2D",) if phase == "decode" else ("WS 2D", "WG XYZ")
    for name in PALM:
        n_params = parameters(load_model(name))
        for chips in meshes():
            for format in ("int8", "bf16"):
                for layout in layouts_of:
                    for batch in BATCHES:
                        attention = "Batch" if batch > 1 else "Head"
                        at = configuration(name, chips, batch, layout, attention, format, context, answer)
                        if why_not(at["model"], TPU, at["mesh"], layout, attention, batch, at["seen"]):
                            continue
                        time = pass_time(at, constants)
                        used = mfu(TPU, chips, n_params, at["tokens"], time)
                        rows.append(
                            (name, format, chips, batch, layout, time, cost(chips, at["tokens"], time), used)
                        )
    columns = ["model", "format", "chips", "batch", "layout", "time", "cost", "mfu"]
    return pd.DataFrame(rows, columns=columns)


def frontier_of(runs):
    """The runs of each model and format that no other beats in both time and cost, fastest first.

    Parameters
    ----------
    runs : pandas.DataFrame
        As :func:`sweep` returns them.

    Returns
    -------
    dict
        (model, format) to the rows on its frontier.
    """
    from inferlib.frontier import pareto

    found = {}
    for name, rows in runs.groupby(["model", "format"], sort=False):
        kept = pareto(rows.assign(speed=1 / rows.time), speed="speed", cost="cost")
        found[name] = kept.drop(columns="speed")
    return found


def published_points(phase):
    """The configurations of Tables 2 and 3, and the 36.9 ms of section 4.4.

    Returns
    -------
    pandas.DataFrame
        ``model``, ``format``, ``time``, ``cost``, ``mfu`` and ``batch``.
    """
    import pandas as pd

    rows = []
    for (table, row), at in evidence.configurations().items():
        if row.endswith(phase):
            name = "PaLM 540B" if table == "Table 2" else "PaLM 62B"
            rows.append((name, at, evidence.measured_pass(table, row, at["passes"])))
    if phase == "decode":
        at = evidence.bf16_decode()
        rows.append(
            (
                "PaLM 540B",
                at,
                evidence.benchmarks.published("pope2022")["Text 4.4", "bfloat16, batch 64", ""].value,
            )
        )
    made = []
    for name, at, time in rows:
        chips, n_params = at["mesh"].chips, parameters(load_model(name))
        used = mfu(TPU, chips, n_params, at["tokens"], time)
        weights = "int8" if at["model"].weight_bytes == 1 else "bf16"
        made.append((name, weights, time, cost(chips, at["tokens"], time), used, at["batch"]))
    return pd.DataFrame(made, columns=["model", "format", "time", "cost", "mfu", "batch"])


def figure_1(quantity="cost"):
    """Figure 1 (cost over latency) or C.1 (utilisation over latency). Returns both Axes.

    Lines are frontiers of the two-constant model, dashed with 16-bit weights; rings are what the paper prints,
    squares where its weights have 16 bits. The ends of each line say the chips (C) and the batch (B).

    Parameters
    ----------
    quantity : {"cost", "mfu"}
    """
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 2, figsize=(7.2, 3.8), layout="constrained")
    scale, label = {"cost": (1e3, "chip-milliseconds a token"), "mfu": (100, "MFU, %")}[quantity]
    for ax, phase in zip(axes, ("decode", "prefill"), strict=True):
        points = published_points(phase)
        for (name, format), rows in frontier_of(sweep(phase)).items():
            colour, whole = _colours()[name], format == "int8"
            ax.plot(
                1e3 * rows.time, scale * rows[quantity], "-" if whole else "--", color=colour, linewidth=1.4,
                label=name if whole else None,
            )  # fmt: skip
            own = points[(points.model == name) & (points.format == format)]
            ax.plot(
                1e3 * own.time, scale * own[quantity], "o" if whole else "s", color=colour, fillstyle="none",
                markersize=8, markeredgewidth=1.5,
            )  # fmt: skip
            for row, shift in ((rows.iloc[0], (2, 4)), (rows.iloc[-1], (-10, -11))) if whole else ():
                ax.annotate(
                    f"C{row.chips} B{row.batch}", (1e3 * row.time, scale * row[quantity]), shift,
                    textcoords="offset points", fontsize=7, color=colour,
                )  # fmt: skip
        ax.set(xscale="log", xlabel="ms per token" if phase == "decode" else "ms for 2048 tokens")
        ax.set(title=f"{phase}, by the two-constant model")
        ax.title.set_fontsize(10)
        ax.set_yscale("log" if quantity == "cost" else "linear")
    axes[0].set_ylabel(label)
    axes[1 if quantity == "cost" else 0].legend(fontsize=9)
    return axes


def figure_6_data():
    """Time of a generation step of PaLM 540B over the chips, in 1D and in 2D.

    Returns
    -------
    pandas.DataFrame
        Indexed by chips, milliseconds: ``1D`` and ``2D`` by the two-constant model.
    """
    import pandas as pd

    read, model, rows = Reader("pope2022", "Text 4.1"), evidence.palm(), {}
    batch, context = read("decode", "batch"), read("context", artefact="Text 4.4")
    for chips in (64, 128, 256):
        held = cache_over_batch(model, chips, batch, context)
        at = model, TPU, load_mesh(chips), fitted(), batch, context, held
        rows[chips] = {"1D": 1e3 * ws1d_step(*at), "2D": 1e3 * ws2d_step(*at)}
    return pd.DataFrame(rows).T.rename_axis("chips")


def figure_6(data=None):
    """Draw :func:`figure_6_data`. Returns the Axes."""
    from inferlib import style

    data = figure_6_data() if data is None else data
    _, ax = _axes((5.2, 3.4))
    for name, colour in (("1D", style.FAINT), ("2D", style.BLUE)):
        ax.plot(data.index, data[name], "o-", color=colour)
        ax.annotate(
            name, (data.index[-1], data[name].iloc[-1]), (8, -3), textcoords="offset points", color=colour
        )
    half = data["2D"].iloc[0] * data.index[0] / data.index.to_numpy()
    ax.plot(data.index, half, ":", color=style.INK, linewidth=1)
    ax.annotate(
        "half the time for twice the chips",
        (128, half[1]),
        (-4, -13),
        textcoords="offset points",
        fontsize=9,
        ha="right",
    )  # noqa: E501
    ax.set(xscale="log", xlabel="chips", ylabel="ms per token", ylim=(0, 120), xlim=(58, 300))
    ax.set_title("batch 512, 2048 tokens of context", fontsize=10)
    ax.set_xticks([64, 128, 256], ["64", "128", "256"])
    ax.minorticks_off()
    return ax


def figure_7_data():
    """Utilisation of prefill on 64 chips over the tokens of the batch, in the four layouts of Figure 3.

    Returns
    -------
    xarray.DataArray
        Fractions over ``layout`` and ``sequences`` of 2048 tokens.
    """
    import xarray as xr

    read, n_params = Reader("pope2022", "Figure 7"), parameters(load_model("PaLM 540B"))
    chips, length = int(read("chips")), read("tokens of a sequence")
    sequences = [2**i for i in range(10)]
    rows = []
    for layout in SHARED:
        runs = [configuration("PaLM 540B", chips, b, layout, "Batch", "bf16", length) for b in sequences]
        rows.append([mfu(TPU, chips, n_params, at["tokens"], pass_time(at, fitted())) for at in runs])
    return xr.DataArray(rows, coords={"layout": list(SHARED), "sequences": sequences})


def switches_by_time():
    """Tokens of prefill from which each gathered layout is quicker than 2D, by the two-constant model.

    Returns
    -------
    dict
        Layout to tokens, of sequences of 2048 on 64 chips; whether there are sequences enough is another question.
    """

    def slower(layout, tokens):
        runs = (
            configuration("PaLM 540B", SLICE, tokens / 2048, x, "Batch", "bf16", 2048)
            for x in (layout, "WS 2D")
        )
        gathered, still = (pass_time(at, fitted()) for at in runs)
        return gathered > still

    found = {}
    for layout in SHARED[1:]:
        low, high = 2.0**9, 2.0**21
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if slower(layout, middle) else (low, middle)
        found[layout] = high
    return found


def figure_7(data=None):
    """Draw :func:`figure_7_data`; dotted where sequences are too few for the chips. Returns the Axes."""
    from inferlib import style

    data = figure_7_data() if data is None else data
    _, ax = _axes()
    tokens = 2048 * data.sequences
    for name in data.layout.values:
        colour = layout_colours()[name]
        few = data.sequences < gathered_over(load_mesh(SLICE), str(name))
        curve = 100 * data.sel(layout=name)
        ax.plot(tokens, curve, ":", color=colour)
        ax.plot(tokens[~few], curve[~few], "o-", color=colour, markersize=4, label=str(name))
    for (table, row), at in evidence.configurations().items():
        if (table, row.split()[-1]) == ("Table 2", "prefill"):
            n_params = parameters(load_model("PaLM 540B"))
            used = mfu(TPU, SLICE, n_params, at["tokens"], evidence.measured_pass(table, row, 1))
            ax.plot(at["tokens"], 100 * used, "o", color=style.INK, fillstyle="none", markersize=10)
    ax.plot([], [], "o", color=style.INK, fillstyle="none", markersize=10, label="printed in Table 2")
    ax.set(xscale="log", xlabel="tokens in the batch", ylabel="MFU, %", ylim=(0, 85))
    ax.set_xticks([2**11, 2**14, 2**17, 2**20], ["2,048", "16,384", "131,072", "1,048,576"])
    ax.minorticks_off()
    ax.legend(loc="lower right", fontsize=9)
    return ax


def figure_b1_data():
    """Prefill of one sequence over its length, int8 weights.

    Returns
    -------
    pandas.DataFrame
        ``model``, ``chips``, ``length``, ``time`` (s) and ``cost`` (chip-s a token) of all runs.
    """
    import pandas as pd

    read, rows = Reader("pope2022", "Appendix B"), []
    shortest, longest = (int(read(f"{which} sequence")) for which in ("shortest", "longest"))
    lengths = [shortest * 2**i for i in range((longest // shortest).bit_length())]
    for name in PALM:
        for chips in meshes():
            for length in lengths:
                at = configuration(name, chips, 1, "WS 2D", "Head", "int8", length)
                if why_not(at["model"], TPU, at["mesh"], "WS 2D", "Head", 1, length):
                    continue
                time = pass_time(at, fitted())
                rows.append((name, chips, length, time, cost(chips, length, time)))
    return pd.DataFrame(rows, columns=["model", "chips", "length", "time", "cost"])


def figure_b1(data=None):
    """Draw :func:`figure_b1_data`: for each model one line a length, over the chips. Returns the Axes."""
    data = figure_b1_data() if data is None else data
    _, ax = _axes()
    for (name, length), rows in data.groupby(["model", "length"], sort=False):
        colour = _colours()[name]
        ax.plot(1e3 * rows.time, 1e3 * rows.cost, ".-", color=colour, linewidth=0.9, markersize=5)
        if length == 1024 or (length == 32 and name == "PaLM 540B"):
            for row, text in ((rows.iloc[0], f"S = {length}, C{rows.chips.iloc[0]}"), (rows.iloc[-1], "")):
                text = text or f"C{row.chips}"
                ax.annotate(text, (1e3 * row.time, 1e3 * row.cost), (5, 2), textcoords="offset points",
                            fontsize=8, color=colour)  # fmt: skip
    for name, colour in _colours().items():
        ax.plot([], [], ".-", color=colour, label=name)
    ax.set(xscale="log", yscale="log", xlabel="ms for one prompt", ylabel="chip-milliseconds a token")
    ax.legend(fontsize=9)
    return ax


def times_over_chips(name, batch=1, format="int8"):
    """Time of one generation step over the chips of a slice, by the two-constant model.

    Returns
    -------
    pandas.Series
        Milliseconds over chips; slices on which the model does not fit are left out.
    """
    import pandas as pd

    found = {}
    for chips in meshes():
        at = configuration(name, chips, batch, "WS 2D", "Batch", format, 2048, 64)
        if not why_not(at["model"], TPU, at["mesh"], "WS 2D", "Batch", batch, at["seen"]):
            found[chips] = 1e3 * pass_time(at, fitted())
    return pd.Series(found, name="ms", dtype=float)
