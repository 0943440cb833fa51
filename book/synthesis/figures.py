"""Pictures of the synthesis: data first, picture second."""

from book.synthesis import against, agreement, grid
from inferlib import style
from inferlib.papers import about, rooms

_OURS = {rooms.BOUND: style.FAINT, rooms.SIXTH: style.INK}
WHO = {key: _OURS.get(key) or about(rooms.source_of(key))["colour"] for key in rooms.everybody()}
# Dashed is ours, dotted a further version of a source.
LINES = dict.fromkeys(rooms.versions(), ":") | dict.fromkeys(_OURS, "--")


def _axes(ax, **size):
    import matplotlib.pyplot as plt

    return ax if ax is not None else plt.subplots(**size)[1]


def stacked(table, ax=None, measured=None):
    """One bar for each who answers, its terms stacked under common names.

    Parameters
    ----------
    table : pandas.DataFrame
        As :func:`book.synthesis.grid.decomposition` returns it.
    measured : float, optional
        A measured time in milliseconds, drawn as a line.
    """
    ax = _axes(ax, figsize=(6.8, 1.5 + 0.42 * len(table.columns)))
    terms, left = table.drop(index="total"), 0 * table.loc["total"]
    for name, row in terms.iterrows():
        ax.barh(range(len(row)), row, left=left, height=0.6, color=style.TERMS[name], label=name)
        left = left + row
    for y, total in enumerate(table.loc["total"]):
        ax.text(total, y, f" {total:.3g} ms", va="center", fontsize=9)
    if measured is not None:
        ax.axvline(measured, color=style.INK, linestyle="--", linewidth=1.2)
        ax.text(measured, -0.75, "measured", ha="center", fontsize=9)
    ax.set_yticks(range(len(table.columns)), table.columns)
    ax.set_ylim(len(table.columns) - 0.4, -0.6)
    ax.set_xlim(0, 1.18 * max(table.loc["total"].max(), measured or 0))
    ax.set_xlabel("milliseconds per token")
    ax.grid(axis="y", visible=False)
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.42, -0.75 / (1 + 0.42 * len(table.columns))), ncol=3, fontsize=9
    )
    return ax


def error_bar(ax, estimate):
    """The interval of an estimate, drawn on the last bar of :func:`stacked`."""
    return _interval(ax, len(ax.get_yticks()) - 1, estimate.low, estimate.seconds, estimate.high)


def printed_ranges(ax, model, system, workload):
    """The ranges that sources print for the constants of their versions, drawn on the bars of :func:`stacked`."""
    bars = [text.get_text() for text in ax.get_yticklabels()]
    for key in rooms.versions():
        ends = rooms.printed_range(key, model, system, workload)
        if ends and rooms.label(key) in bars:
            middle = rooms.ask(key, model, system, workload).total
            _interval(ax, bars.index(rooms.label(key)), ends[0].total, middle, ends[1].total)
    return ax


def _interval(ax, y, *seconds):
    low, middle, high = (1e3 * t for t in seconds)
    ax.errorbar(
        middle, y + 0.38, xerr=[[middle - low], [high - middle]], color=style.INK, capsize=3, linewidth=1.4
    )
    ax.set_xlim(0, max(ax.get_xlim()[1], 1.08 * high))
    return ax


def latency_over_batch(model="Llama 3 70B", chip="H100 SXM", context=4096, ax=None):
    """Everybody's time per token over the batch, for one model, chip and context of the grid."""
    ax = _axes(ax)
    data = grid.whole_grid().sel(model=model, chip=chip, context=context)
    for key in data.who.values:
        values = 1e3 * data.latency.sel(who=key)
        if values.notnull().any():
            line = {"linestyle": LINES.get(key, "-"), "color": WHO[key]}
            ax.plot(data.batch, values, marker="o", markersize=4, label=rooms.label(key), **line)
    ax.set(xscale="log", yscale="log", xlabel="sequences decoded together", ylabel="milliseconds per token")
    ax.set_xticks(data.batch.values, [str(b) for b in data.batch.values])
    low, high = ax.get_ylim()
    milliseconds = [t for t in (1, 2, 5, 10, 20, 50, 100, 200, 500) if low < t < high]
    ax.set_yticks(milliseconds, [str(t) for t in milliseconds])
    ax.minorticks_off()
    ax.legend(fontsize=9)
    return ax


def spread_data(data=None):
    """Highest over lowest answer of the published sources, by model and context, at a batch of 32.

    Returns
    -------
    xarray.DataArray
        Factor over ``model`` and ``context``, the middle one of the chips; NaN where fewer than two answer.
    """
    data = grid.whole_grid() if data is None else data
    published = data.latency.sel(who=[key for key in data.who.values if key in rooms.sources()], batch=32)
    factor = (published.max("who") / published.min("who")).where(published.notnull().sum("who") >= 2)
    return factor.median("chip")


def gains_range(cases=("dense, short", "dense, long"), ax=None):
    """From the lowest to the highest gain of the sources, for every change, in some cases.

    Parameters
    ----------
    cases : tuple of str
        Of :func:`book.synthesis.agreement.cases`.
    """
    ax = _axes(ax, figsize=(6.8, 4.2))
    table, height = agreement.ranges(), 0.3
    for i, (case, colour) in enumerate(zip(cases, (style.BLUE, style.ORANGE), strict=True)):
        y = [row + (i - 0.5) * height for row in range(len(table))]
        low, high = table[case].lowest, table[case].highest
        ax.barh(y, high - low, left=low, height=0.8 * height, color=colour, alpha=0.8)
        ax.plot(low, y, "|", color=colour, markersize=9, markeredgewidth=2)
        ax.plot(high, y, "|", color=colour, markersize=9, markeredgewidth=2, label=case)
    ax.axvline(1, color=style.INK, linewidth=1)
    ax.set_yticks(range(len(table)), table.index)
    ax.invert_yaxis()
    ax.set(xlabel="times as fast", xlim=(0.97, 2.05))
    ax.grid(axis="y", visible=False)
    ax.legend(loc="lower right", fontsize=9)
    return ax


def scatter(who, ax=None):
    """Predicted against measured time of every clean row that one answers, coloured by who measured."""
    ax = _axes(ax, figsize=(5.2, 4.6))
    table = against.all_answers()
    table = table[(table.who == who) & (table.use == "clean") & table.predicted.notna()]
    colours = [style.BLUE, style.ORANGE, style.GREEN, style.RED, style.PURPLE, style.SKY, style.YELLOW]
    for colour, (publisher, own) in zip(colours, table.groupby("publisher"), strict=False):
        ax.plot(
            1e3 * own.measured,
            1e3 * own.predicted,
            "o",
            markersize=4,
            color=colour,
            alpha=0.8,
            label=publisher,
        )
    ends = [1.0, 300.0]
    ax.plot(ends, ends, color=style.INK, linewidth=1)
    ax.plot(ends, [1.25 * e for e in ends], color=style.FAINT, linewidth=0.8, linestyle="--")
    ax.plot(ends, [e / 1.25 for e in ends], color=style.FAINT, linewidth=0.8, linestyle="--")
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    ax.set(xlabel="measured, milliseconds per token", ylabel=f"{rooms.label(who)}, milliseconds per token")
    ax.legend(fontsize=8, loc="lower right")
    return ax


def over_bound(ax=None):
    """Measured time over the bound, by tensor-parallel degree, of clean rows of one instance."""
    ax = _axes(ax)
    table = against.over_bound()
    table = table[(table.use == "clean") & table.instance]
    degrees = sorted(set(table.tp))
    for x, degree in enumerate(degrees):
        own = table[table.tp == degree].sort_values("ratio", kind="stable")
        spread = [x + 0.5 * (i / max(len(own) - 1, 1) - 0.5) for i in range(len(own))]
        ax.plot(spread, own.ratio, "o", markersize=4, color=style.BLUE, alpha=0.7)
        ax.plot([x - 0.35, x + 0.35], [own.ratio.median()] * 2, color=style.ORANGE, linewidth=2.4)
    ax.axhline(1, color=style.INK, linewidth=1)
    ax.set_yscale("log", base=2)
    ax.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    ax.set_xticks(range(len(degrees)), [f"{d}" for d in degrees])
    ax.set(xlabel="chips that share every layer", ylabel="measured over bound")
    return ax


def grades(ax=None):
    """How many printed results of each source have which grade."""
    from inferlib import ledger

    ax = _axes(ax, figsize=(6.8, 1.4 + 0.45 * len(ledger.sources())))
    card = ledger.scorecard()
    card = card[card.kind.isin(["model", "derived"])]
    counts = card.groupby(["source", "grade"]).size().unstack(fill_value=0)
    colours = dict(
        zip(
            ledger.GRADES,
            (style.GREEN, style.SKY, style.BLUE, style.YELLOW, style.ORANGE, style.RED),
            strict=False,
        )
    )
    colours["missing"] = style.INK
    shares = counts.div(counts.sum(axis=1), axis=0)
    left = 0 * shares.sum(axis=1)
    for grade in (g for g in ledger.GRADES if g in shares):
        ax.barh(
            range(len(shares)),
            100 * shares[grade],
            left=100 * left,
            height=0.6,
            color=colours[grade],
            label=grade,
        )
        left = left + shares[grade]
    for y, total in enumerate(counts.sum(axis=1)):
        ax.text(101, y, f"{total}", va="center", fontsize=9)
    ax.set_yticks(range(len(shares)), [rooms.label(key) for key in shares.index])
    ax.invert_yaxis()
    ax.set(xlabel="share of printed results, %", xlim=(0, 108))
    ax.grid(axis="y", visible=False)
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.75 / (1 + 0.45 * len(shares))), ncol=6, fontsize=9)
    return ax
