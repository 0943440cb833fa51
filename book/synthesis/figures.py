"""Pictures of the synthesis: data first, picture second."""

from matplotlib.ticker import LogLocator

from book import style
from book.audit import grading
from inferlib import papers
from inferlib.papers import metadata
from inferlib.papers.source import BOUND, source_package
from tokenprice import predictors

_WIDE = (BOUND, "erdil2025")  # the other lines run along these
_OURS = {BOUND: style.FAINT, predictors.KERNELS: style.INK}
WHO = {key: _OURS.get(key) or metadata(papers.source_of(key))["colour"] for key in predictors.keys()}
# Dashed: our models; dotted: a version of a source.
LINES = dict.fromkeys(papers.versions(), ":") | dict.fromkeys(_OURS, "--")


def stacked(table, measured=None, answer=None):
    """One bar for each model that answers, its terms stacked under common names.

    ``table``: as :func:`book.synthesis.grid.decomposition` returns it. ``measured``: a measured time in
    milliseconds, drawn as a line. ``answer``: the kernel model's, whose interval is drawn on its bar.
    """
    full = {who: f"infeasible: {reason}" for who, reason in table.attrs.get("infeasible", {}).items()}
    ax = style.stack(table.drop(index="total"), full)
    if measured is not None:
        ax.axvline(measured, color=style.INK, linestyle="--", linewidth=1.2)
        ax.text(measured, -0.75, "measured", ha="center", fontsize=9)
        ax.set_xlim(0, max(ax.get_xlim()[1], 1.18 * measured))
    if answer is not None and answer.feasible:
        between(ax, predictors.KERNELS, answer.low, answer.seconds, answer.high)
        ax.set_xlim(0, max(ax.get_xlim()[1], 1.05e3 * answer.high))
    return ax


def printed_ranges(ax, model, system, workload):
    """The ranges that sources print for the constants of their versions, drawn on the bars of :func:`stacked`."""
    for key in papers.versions():
        if not (step := predictors.ask(key, model, system, workload)).feasible:
            continue
        if ends := printed_ends(key):
            low, high = (papers.ask(key, model, system, workload, assumptions=end).total for end in ends)
            between(ax, key, low, step.total, high)
            style.words(ax, 1e3 * high, _below(ax, key), " printed range", fontsize=8)
            ax.set_xlim(0, max(ax.get_xlim()[1], 1.2e3 * high))
    return ax


def printed_ends(key):
    """Return the assumptions of a version at both ends of the range that its source prints for its constant."""
    source, _, version = key.partition(".")
    entry = papers.metadata(source)["versions"][version]
    made = getattr(source_package(key).Assumptions, entry["assumptions"])
    return [made(end) for end in entry.get("ends", ())]


def between(ax, key, low, middle, high):
    """Draw an interval in seconds below one model's bar of :func:`stacked`."""
    line, off = {"color": style.INK, "linewidth": 1.4}, [[1e3 * (middle - low)], [1e3 * (high - middle)]]
    ax.errorbar(1e3 * middle, _below(ax, key), xerr=off, capsize=3, **line)
    return ax


def _below(ax, key):
    return [text.get_text() for text in ax.get_yticklabels()].index(predictors.label(key)) + 0.38


def latency_over_batch(table):
    """Draw all models' time per token over the batch, as :func:`book.synthesis.grid.over_batch` returns it."""
    if table.empty:
        return style.nothing("no source answers")
    keys = {predictors.label(key): key for key in WHO}
    named = table.T.rename_axis("sequences decoded together")
    colours = {name: WHO[keys[name]] for name in named}
    ax = style.curve(named.to_xarray(), says="milliseconds per token", colours=colours)
    for name, line in zip(named, ax.lines, strict=True):
        line.set(linestyle=LINES.get(keys[name], "-"), marker="o", markersize=4)
        if keys[name] in _WIDE:
            line.set(linewidth=7, alpha=0.35, linestyle="-")
    ax.set_xticks(table.columns, map(str, table.columns))
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.minorticks_off()
    return ax


def gains_range(found):
    """Draw the range of the sources' gains, lowest to highest, for every change in two cases.

    The answers fitted to real servers are marked above the bar of the first. ``found``: names to tables as
    :func:`book.synthesis.shared_findings.buys` returns them.
    """
    ax, height = style.panels(6.8, 4.2, layout=None), 0.3
    for i, ((case, table), colour) in enumerate(
        zip(found.items(), (style.PURPLE, style.YELLOW), strict=True)
    ):
        y = [row + (i - 0.5) * height for row in range(len(table))]
        low, high = table.lowest, table.highest
        ax.barh(y, high - low, left=low, height=0.8 * height, color=colour, alpha=0.8)
        for end, label in ((low, None), (high, case)):
            ax.plot(end, y, "|", color=colour, markersize=9, markeredgewidth=2, label=label)
    first, table = next(iter(found.items()))
    fitted = [predictors.label(key) for key in (*papers.versions(), predictors.KERNELS)]
    for marker, who in zip("DX", (name for name in fitted if name in table), strict=False):
        y = [row - height for row in range(len(table))]
        ax.plot(table[who], y, marker, color=style.INK, markersize=5, label=f"{who} ({first})")
    ax.axvline(1, color=style.INK, linewidth=1)
    style.name_rows(ax, table.index)
    ax.set(xlabel="times as fast", xlim=(0.97, 2.05))
    ax.legend(loc="lower right")
    return ax


def over_bound(table):
    """Measured time over the bound, against the bound, of rows of one instance; coloured by its chips."""
    ax = style.panels(6.8, 4.0, layout=None)
    for degree, own in table.groupby("tp"):
        colour, marker = style.DEGREES[degree]
        name = f"{degree} chip{'s' * (degree > 1)}"
        ax.plot(1e3 * own.predicted, own.ratio, marker, label=name, color=colour, markersize=6, alpha=0.8)
    ax.axhline(1, color=style.INK, linewidth=1)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    for axis, ticks in ((ax.xaxis, (1, 2, 4, 8, 16, 32)), (ax.yaxis, (1, 2, 4, 8))):
        axis.set_ticks(ticks, [str(tick) for tick in ticks])
    ax.set(xlabel="bound of the peaks, milliseconds per step", ylabel="measured over bound")
    ax.legend()
    return ax


def grades(card):
    """Draw how many printed results of each source have which grade, from rows of a scorecard."""
    card = card[card.kind.isin(["model", "derived"])]
    counts = card.groupby(["source", "grade"]).size().unstack(fill_value=0).loc[card.source.unique()]
    palette = (style.GREEN, style.SKY, style.BLUE, style.YELLOW, style.ORANGE, style.RED, style.INK)
    shares = 100 * counts.div(counts.sum(axis=1), axis=0)
    ax = style.panels(6.8, 1.4 + 0.45 * len(shares), layout=None)
    shown = shares[[grade for grade in grading.GRADES if grade in shares]]
    colours = dict(zip(grading.GRADES, palette, strict=False))
    shown.plot.barh(stacked=True, width=0.6, color=colours, ax=ax)
    for y, total in enumerate(counts.sum(axis=1)):
        style.words(ax, 101, y, f"{total}")
    style.name_rows(ax, [predictors.label(key) for key in shares.index])
    ax.set(xlabel="share of printed results, %", ylabel="", xlim=(0, 108))
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.75 / (1 + 0.45 * len(shares))), ncol=6)
    return ax


def clues(twice, sums, quoted, errors):
    """What the four sources of the case files print, one clue a panel, before anything is computed.

    Two offers of Erdil's, a table of sums, gains by model, and errors at measured points.
    """
    axes = style.panels(
        7.4, 5.2, columns=2, rows=2, layout=None, gridspec_kw={"hspace": 0.62, "wspace": 0.42}
    )
    first, second, third, fourth = axes.flat

    first.set_title("1: one question, two tables")
    first.barh(twice.index, twice["price of a million tokens"], height=0.5, color=WHO["erdil2025"])
    for y, row in enumerate(twice.itertuples()):
        first.text(0.02, y, f"{row.GPUs:.0f} GPUs", va="center", color="white", fontsize=9)
    first.set_xlabel("dollars for a million tokens")

    row = sums.loc[128]
    second.set_title("2: two parts and their sum, batch 128")
    parts = {
        "prefill": (0, style.ORANGE),
        "generate": (row["PaLM prefill"], style.BLUE),
        "total": (0, style.INK),
    }
    for y, (name, (left, colour)) in enumerate(parts.items()):
        second.barh([y], [row[f"PaLM {name}"]], left=left, height=0.6, color=colour, label=name)
    second.set_yticks(range(len(parts)), parts)
    second.set_xlabel("milliseconds, as printed for PaLM")

    third.set_title("3: what a tenth of the speed buys")
    third.plot(quoted, quoted.index, "o", color=WHO["liminal2025"])
    third.set_xscale("log", base=2)
    third.set_xticks([4, 8, 16, 32, 64], ["4", "8", "16", "32", "64"])
    third.set(xlim=(4, 64), ylim=(2.5, -0.5), xlabel="gain in tokens per watt, at 128K")

    fourth.set_title("4: an agreement")
    fourth.plot(range(1, len(errors) + 1), 100 * errors, "o", color=WHO["mazurek2025"])
    fourth.axhline(0, color=style.INK, linewidth=1)
    fourth.set(ylim=(-50, 50), xlabel="measured point", ylabel="error of the model, %")
    fourth.set_xticks(range(1, len(errors) + 1))
    for ax in (first, second):
        ax.invert_yaxis()
        ax.grid(axis="y", visible=False)
    return axes
