"""How figures look: one colour per source and per chip, no background, the same file from run to run.

Figures are SVG with dark lines on nothing. In the book's dark theme the style sheet turns them over, so one
file serves both.
"""

import hashlib
import html
import re
from numbers import Integral

from cycler import cycler

# After Okabe and Ito, told apart by readers with any colour vision; each of middle lightness, so that it stays
# legible when the dark theme turns lightness round.
BLUE, ORANGE, GREEN, RED, SKY, PURPLE, YELLOW = (
    "#0072B2", "#B86E00", "#009E73", "#D14A1F", "#2E8BC0", "#B8609A", "#8F8300",
)  # fmt: skip
BROWN, INK, FAINT = "#A0693A", "#222222", "#8a8a8a"

CHIPS = {"A100 80GB": SKY, "H100 SXM": GREEN, "H200": BLUE, "B200": ORANGE, "TPU v4": RED}
TERMS = {
    "weights": BLUE,
    "weights and activations": BLUE,
    "arithmetic": ORANGE,
    "network": RED,
    "activations": SKY,
    "cache": GREEN,
    "attention weights": SKY,
    "attention activations": YELLOW,
    "attention arithmetic": ORANGE,
    "expert weights": BLUE,
    "dense layers and embeddings": PURPLE,
    "expert activations": YELLOW,
    "expert arithmetic": ORANGE,
    "network not hidden": RED,
    "overhead": FAINT,
    "pipeline": YELLOW,
    "kernel launch": PURPLE,
    "layer overhead": FAINT,
    "waiting": RED,
    "collectives": RED,
    "collective latency": RED,
    "collective bandwidth": BROWN,
    "other": INK,
}
SVG_METADATA = {"Date": None, "Creator": None}
# Matplotlib ends ids of clips, markers, hatches and collections in ten digits of a hash.
_HASHED = re.compile(r'(?<=[#"])([A-Za-z]\w*?)[0-9a-f]{10}(?=[")])')
_DEFINED = re.compile(r'(?s) id="([A-Za-z]\w*?[0-9a-f]{10})"(.*?)/>')


def use():
    """Show all figures and frames of a notebook in the book's style; figures as deterministic SVG."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    import numpy as np
    import pandas as pd
    from IPython import get_ipython
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("svg", metadata=SVG_METADATA)
    mpl.rcParams.update(
        {
            "svg.hashsalt": "inferlib",
            "svg.fonttype": "path",
            "figure.figsize": (6.4, 3.8),
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "savefig.facecolor": "none",
            "legend.framealpha": 0,
            "text.color": INK,
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": FAINT,
            "grid.alpha": 0.3,
            "grid.linewidth": 0.6,
            "lines.linewidth": 2,
            "font.size": 10,
            "axes.prop_cycle": cycler(color=[BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW]),
        }
    )
    pd.set_option("display.float_format", "{:.4g}".format, "display.max_colwidth", None)
    np.set_printoptions(precision=4)
    shell = get_ipython()
    if shell is not None:
        plt.switch_backend(plt.get_backend())
        plt.uninstall_repl_displayhook()  # it would draw every figure once more, for a window nobody opened
        _show_figures(shell.display_formatter)
        plain = shell.display_formatter.formatters["text/plain"]
        for number in (float, np.float64):
            plain.for_type(number, lambda value, printer, cycle: printer.text(f"{value:.4g}"))


def canonical_svg(svg):
    """The SVG of a figure with ids that are equal on any machine.

    Matplotlib's are hashes of floats, so an addition done in another order renames them. Here they are
    numbered in the order in which they occur, with a mark of what they name: a figure may stand beside others.

    Parameters
    ----------
    svg : str
        As Matplotlib writes it.

    Returns
    -------
    str

    Examples
    --------
    >>> canonical_svg('<use clip-path="url(#p0123456789)"/><rect id="p0123456789"/>')
    '<use clip-path="url(#p1-e3b0c4)"/><rect id="p1-e3b0c4"/>'
    """
    definitions = dict(_DEFINED.findall(svg))
    names = {}

    def named(found):
        mark = hashlib.sha256(definitions.get(found[0], "").encode()).hexdigest()[:6]
        return names.setdefault(found[0], f"{found[1]}{len(names) + 1}-{mark}")

    return _HASHED.sub(named, svg)


def _show_figures(display):
    """Let every figure show the same SVG on any machine, and bring its data along, which the page offers below."""
    from IPython.core.formatters import BaseFormatter
    from matplotlib.figure import Figure
    from traitlets import ObjectName, Unicode

    from inferlib.plotted import as_csv

    drawn = display.formatters["image/svg+xml"].lookup_by_type(Figure)
    display.formatters["image/svg+xml"].for_type(Figure, lambda figure: canonical_svg(drawn(figure)))

    class Csv(BaseFormatter):
        format_type, print_method = Unicode("text/csv"), ObjectName("_repr_csv_")

    display.formatters["text/csv"] = Csv(parent=display)
    display.formatters["text/csv"].for_type(Figure, as_csv)


class Table:
    """A frame shown with numbers on the right and text on the left; cells may unfold when clicked."""

    def __init__(self, frame, unfolded=None):
        self.frame, self.unfolded = frame, unfolded or {}

    def _repr_html_(self):
        head = "".join(f"<th>{html.escape(str(name))}</th>" for name in self.frame)
        rows = "".join(
            "<tr>"
            + "".join(self._cell(i, name, v) for name, v in zip(self.frame, row, strict=True))
            + "</tr>"
            for i, row in enumerate(self.frame.itertuples(index=False, name=None))
        )
        return f'<table class="readable"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'

    def _cell(self, i, name, value):
        """A cell; one that unfolds is a button, whose popover needs no script and moves nothing."""
        cell, tree = _cell(value), self.unfolded.get((i, name))
        if not tree:
            return cell
        start, text = cell.removesuffix("</td>").split(">", 1)
        row = [_cell(value) for value in self.frame.iloc[i]]
        content = f"{i} {name} {row} {list(self.frame)} {tree}"
        identity = f"why-{hashlib.sha256(content.encode()).hexdigest()[:10]}"
        return (
            f'{start}><button type="button" class="why" popovertarget="{identity}" '
            f'title="how this is made">{text}</button><div popover id="{identity}">{tree}</div></td>'
        )

    def __repr__(self):
        ranges = self.frame.map(lambda value: _range(value) if isinstance(value, tuple) else value)
        return ranges.to_string(index=False)


def table(frame, unfolded=None):
    """Show a frame for reading, without its index: four digits, numbers right, text left.

    Parameters
    ----------
    frame : pandas.DataFrame
    unfolded : dict, optional
        (row, column) to HTML that a click on that cell shows.

    Returns
    -------
    Table
    """
    return Table(frame, unfolded)


class Entries:
    """A frame of texts shown as a list: the first column heads an entry, the others follow, each named."""

    def __init__(self, frame):
        self.frame = frame

    def _repr_html_(self):
        head, *names = self.frame
        entries = []
        for row in self.frame.itertuples(index=False, name=None):
            parts = zip(names, row[1:], strict=True)
            texts = "".join(
                f"<div><b>{html.escape(n)}</b> {html.escape(str(text))}</div>" for n, text in parts
            )
            entries.append(f"<dt>{html.escape(str(row[0]))}</dt><dd>{texts}</dd>")
        return f'<dl class="entries">{"".join(entries)}</dl>'

    def __repr__(self):
        return self.frame.to_string(index=False)


def entries(frame):
    """Show a frame of long texts, such as the errata, as a list that also fits a phone.

    Parameters
    ----------
    frame : pandas.DataFrame

    Returns
    -------
    Entries
    """
    return Entries(frame)


def _cell(value):
    if isinstance(value, bool):
        value = str(value).lower()
    if isinstance(value, tuple):
        value = _range(value)
    if isinstance(value, float):
        return f'<td class="number">{_digits(value)}</td>'
    if str(value).startswith("https://"):
        return f'<td><a href="{html.escape(value)}">{html.escape(value)}</a></td>'
    if isinstance(value, Integral):
        return f'<td class="number">{value:,}</td>'
    return f"<td>{html.escape(str(value))}</td>"


def _range(ends):
    return " to ".join(f"{end:.4g}" for end in ends)


def _digits(value):
    """Four significant digits, without an exponent where the number is of everyday size."""
    if value != 0 and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.3e}"
    return f"{float(f'{value:.4g}'):,.10g}"


def breakdown_bars(steps, *, ax=None):
    """Horizontal bars, one per answer: counted terms stacked, hidden terms as outlines below.

    Parameters
    ----------
    steps : dict
        Label to :class:`inferlib.Breakdown`. An infeasible or n/a answer is written, not drawn.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 0.9 + 0.8 * len(steps)))
    seen = {}
    for y, step in enumerate(steps.values()):
        if not step.feasible:
            ax.text(0, y, f" {step.status}: {step.reason}", va="center")
            continue
        left = 0.0
        for name, seconds in step.counted.items():
            bar = ax.barh(
                y - 0.12, 1e3 * seconds, left=1e3 * left, height=0.42, color=TERMS.get(name, FAINT), label=name
            )  # fmt: skip
            seen.setdefault(name, bar)
            left += seconds
        ax.text(1e3 * step.total, y - 0.12, f" {1e3 * step.total:.2f} ms", va="center")
        for name, seconds in step.hidden.items():
            colour = TERMS.get(name, FAINT)
            ax.barh(
                y + 0.25, 1e3 * seconds, height=0.16, color="none", edgecolor=colour, linewidth=1.2,
                label=f"{name}, hidden",
            )  # fmt: skip
        if step.hidden:
            # one label beside the longest, so that labels of bars of like length do not run into each other
            names = ", ".join(sorted(step.hidden, key=step.hidden.get, reverse=True))
            longest = 1e3 * max(step.hidden.values())
            ax.text(longest, y + 0.25, f" {names}, hidden", va="center", fontsize=8, color=INK)
    ax.set_yticks(range(len(steps)), steps)
    ax.set_ylim(len(steps) - 0.4, -0.6)
    ax.set_xlabel("milliseconds per token")
    ax.margins(x=0.15)
    ax.grid(axis="y", visible=False)
    ax.legend(
        seen.values(), seen, loc="upper center", bbox_to_anchor=(0.5, -0.35 / len(steps) - 0.12), ncol=4
    )
    return ax
