"""Style of figures: one colour per source and per chip, transparent background, reproducible files.

Figures are SVG with dark lines on a transparent background. The style sheet inverts them in the book's dark theme, so
one file serves both.
"""

import hashlib
import html
import re
from numbers import Integral

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from cycler import cycler
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from inferlib.equation import displayed, latex
from inferlib.units import factor

# Colours after Okabe and Ito, distinguishable with any colour vision, and of middle lightness, so that they
# stay legible when the dark theme inverts lightness.
BLUE, ORANGE, GREEN, RED, PURPLE, YELLOW, BROWN, VIOLET = (
    "#0072B2", "#B86E00", "#009E73", "#D14A1F", "#B8609A", "#8F8300", "#8C4A2F", "#6F5BC8",
)  # fmt: skip
SKY, ROSE, INK, FAINT = "#86C0E6", "#EDA48C", "#222222", "#8a8a8a"

# One colour per kind of time in every bar, curve, explorer and slide: blue reads weights, green reads the cache,
# ochre is arithmetic, red waits, grey is software. Pale blue reads activations; pale red is sending.
KINDS = {
    "reading weights": (
        BLUE, "weights", "memory", "weights and activations", "attention weights", "expert weights",
        "dense layers and embeddings",
    ),
    "reading activations": (SKY, "activations", "attention activations", "expert activations"),
    "reading the cache": (GREEN, "cache"),
    "multiplying": (ORANGE, "arithmetic", "attention arithmetic", "expert arithmetic", "prompts of others"),
    "waiting": (
        RED, "network", "network not hidden", "waiting", "pipeline", "collectives", "collectives as a whole",
        "collective latency", "expert exchange",
    ),
    "sending": (ROSE, "collective bandwidth"),
    "software": (FAINT, "kernel launch", "expert kernels", "engine", "overhead", "layer overhead"),
    "other": (INK, "other"),
}  # fmt: skip
TERMS = {term: colour for colour, *terms in KINDS.values() for term in terms}
KIND_OF = {term: kind for kind, (_, *terms) in KINDS.items() for term in terms}
# Models, chips and layouts use other colours than kinds of time.
LINES = (PURPLE, YELLOW, VIOLET, BROWN, INK, FAINT)


def coloured(names):
    """Return a colour for each name: the colour of its term in all figures, else one of ``LINES``."""
    known = {name: TERMS[name] for name in names if name in TERMS}
    free = [colour for colour in LINES if colour not in known.values()]
    others = [name for name in names if name not in known]
    return known | {name: free[k % len(free)] for k, name in enumerate(others)}


MARKERS = "so^Dvp"  # beside the colours of LINES, for readers who do not see these
# Number of tensor-parallel chips: colour and marker, distinguishable in any theme.
DEGREES = dict(zip((1, 2, 4, 8, 16, 32), zip(LINES, "os^D*P", strict=True), strict=True))
SVG_METADATA = {"Date": None, "Creator": None}
# Matplotlib's ids of clips, markers, hatches and collections end in ten digits of a hash.
_HASHED = re.compile(r'(?<=[#"])([A-Za-z]\w*?)[0-9a-f]{10}(?=[")])')
_DEFINED = re.compile(r'(?s) id="([A-Za-z]\w*?[0-9a-f]{10})"(.*?)/>')
_FINE = re.compile(r"scale\([^)]*\)|-?\d+\.\d{3,}")
# The points of a line, and the letters of a text, which stand under it as a comment.
_ON_ONE_LINE = re.compile(r'(?s) d="[^"]*"|(?<=-->\n)\s*<g .*?</g>')


def use():
    """Show all figures and frames of a notebook in the book's style; figures as reproducible SVG."""
    from IPython import get_ipython
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("svg", metadata=SVG_METADATA)
    mpl.rcParams.update({
        "svg.hashsalt": "inferlib", "svg.fonttype": "path", "figure.figsize": (6.4, 3.8), "legend.framealpha": 0,
        **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
        **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
        "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": FAINT,
        "grid.alpha": 0.3, "grid.linewidth": 0.6, "lines.linewidth": 2, "font.size": 10,
        "legend.fontsize": 9, "axes.titlesize": 10, "axes.prop_cycle": cycler(color=LINES),
    })  # fmt: skip
    pd.set_option("display.float_format", "{:.4g}".format, "display.max_colwidth", None)
    np.set_printoptions(precision=4)
    shell = get_ipython()
    if shell is not None:
        plt.switch_backend(plt.get_backend())
        plt.uninstall_repl_displayhook()  # otherwise every figure is drawn once more, for a window that does not exist
        formatters = shell.display_formatter.formatters
        drawn, plain = formatters["image/svg+xml"].lookup_by_type(Figure), formatters["text/plain"]
        formatters["image/svg+xml"].for_type(Figure, lambda figure: canonical_svg(drawn(figure)))
        for number in (float, np.float64):
            plain.for_type(number, lambda value, printer, cycle: printer.text(f"{value:.4g}"))


def canonical_svg(svg):
    """Return the SVG of a figure in a form that is equal on any machine: rounded lengths, stable ids.

    The last digits of a logarithm differ from CPU to CPU. Matplotlib's ids are hashes of such floats; here they are
    numbered in the order in which they occur, with a hash of what they name, because a page has several figures. Each
    text and each line that is drawn is one line, so that another label differs in a few lines.

    Examples
    --------
    >>> canonical_svg('<use clip-path="url(#p0123456789)"/><rect id="p0123456789"/>')
    '<use clip-path="url(#p1-e3b0c4)"/><rect id="p1-e3b0c4"/>'
    >>> canonical_svg('<path transform="translate(224.2944375 -0.0004) scale(0.015625)"/>')
    '<path transform="translate(224.29 0) scale(0.015625)"/>'
    """
    svg = _FINE.sub(_in_hundredths, svg)
    definitions = dict(_DEFINED.findall(svg))
    names = {}

    def named(found):
        mark = hashlib.sha256(definitions.get(found[0], "").encode()).hexdigest()[:6]
        return names.setdefault(found[0], f"{found[1]}{len(names) + 1}-{mark}")

    return _ON_ONE_LINE.sub(lambda found: re.sub(r"\s*\n\s*", " ", found[0]), _HASHED.sub(named, svg))


def _in_hundredths(found):
    """Round a length; the factor of a scale keeps its digits."""
    return found[0] if found[0].startswith("scale") else f"{round(float(found[0]), 2) + 0:g}"


class Table:
    """A frame with numbers aligned right and text left; cells may open a pop-up when clicked."""

    def __init__(self, frame, unfolded=None, notes=()):
        self.frame, self.unfolded = frame, unfolded or {}
        self.notes = dict(enumerate(notes))

    def _repr_html_(self):
        head = "".join(f"<th>{html.escape(str(name))}</th>" for name in self.frame)
        rows = []
        for i, row in enumerate(self.frame.itertuples(index=False, name=None)):
            cells = "".join(self._cell(i, name, v) for name, v in zip(self.frame, row, strict=True))
            rows.append(f"<tr>{cells}</tr>{self._note(i)}")
        # a row and the note below it are one group, also for filters
        body = f"<tbody>{('</tbody><tbody>' if self.notes else '').join(rows)}</tbody>"
        return f'<table class="readable"><thead><tr>{head}</tr></thead>{body}</table>'

    def _note(self, i):
        text = html.escape(self.notes.get(i, ""))
        cell = f'<td colspan="{len(self.frame.columns)}"><div>{text}</div></td>'
        return f'<tr class="note">{cell}</tr>' if text else ""

    def _cell(self, i, name, value):
        """Return a cell's HTML; a cell with details is a button that opens a popover without a script."""
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
        return ranges.to_string(index=False, na_rep="n/a")


def table(frame, unfolded=None, notes=()):
    """Show a frame without its index: four digits, numbers right, text left.

    ``unfolded``: (row, column) to HTML that a click on that cell shows. ``notes``: a line below each row; empty for
    none.
    """
    return Table(frame, unfolded, notes)


def _cell(value):
    if isinstance(value, bool):
        value = str(value).lower()
    if isinstance(value, tuple):
        value = _range(value)
    if isinstance(value, float):
        return f'<td class="number">{_digits(value) if value == value else "n/a"}</td>'
    if str(value).startswith("https://"):
        return f'<td><a href="{html.escape(value)}">{html.escape(value)}</a></td>'
    if isinstance(value, Integral):
        return f'<td class="number">{value:,}</td>'
    return f"<td>{html.escape(str(value))}</td>"


def _range(ends):
    return " to ".join(f"{end:.4g}" for end in ends)


def _digits(value):
    """Format with four significant digits; with an exponent only for very small or large numbers.

    Examples
    --------
    >>> _digits(0), _digits(1e-4), _digits(1234567), _digits(1e7)
    ('0', '0.0001', '1,235,000', '1.000e+07')
    """
    if value != 0 and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.3e}"
    return f"{float(f'{value:.4g}'):,.10g}"


def curve(values, *, mark=None, unit="1", says="", over="", log="xy", ax=None, colours=None):
    """Draw lines of a sweep, each labelled at its end, with computed marks.

    ``values``: in SI units, over one numeric axis. A second axis, or the names of a Dataset, makes one line each.
    ``mark``: position of a dot: a value on the axis, such as ``values.idxmin()``, or a pair with the height in SI; a
    dict gives each dot a text (default: its numbers). ``unit``: unit in which the values are shown. ``says``, ``over``:
    labels of the vertical and horizontal axis (default: names of array and axis). ``log``: logarithmic axes: ``"xy"``,
    ``"x"``, ``"y"`` or ``""``. ``colours``: line name to colour; names in :data:`TERMS` have theirs.

    Examples
    --------
    >>> from inferlib import axis
    >>> gpus = axis("GPUs", 1, 100, points=9)
    >>> time = (1 / gpus + gpus / 100).rename("time")
    >>> curve(time, mark=time.idxmin(), unit="ms").texts[0].get_text()
    '10 GPUs: 200 ms'
    """
    ax = axes(ax, layout="constrained")
    values = values.to_array("line") if hasattr(values, "data_vars") else values
    axis = next(name for name in reversed(values.dims) if np.issubdtype(values[name].dtype, np.number))
    shown, cycle = unit.replace("us", "μs"), iter(mpl.rcParams["axes.prop_cycle"].by_key()["color"])
    names = [name for name in values.dims if name != axis]
    lines = (
        {str(one[names[0]].item()): one for one in values.transpose(*names, axis)} if names else {"": values}
    )
    drawn = []
    for name, line in lines.items():
        colour = (colours or {}).get(name) or TERMS.get(name) or next(cycle)
        drawn += ax.plot(values[axis], line / factor(unit), color=colour, label=name or None)
    ax.set(
        xlabel=over or axis, ylabel=f"{says or values.name or ''}{f', {shown}' if unit != '1' else ''}".strip(", "),
        xscale="log" if "x" in log else "linear", yscale="log" if "y" in log else "linear",
    )  # fmt: skip
    ax.xaxis.set_major_formatter("{x:,g}")
    ax.yaxis.set_major_formatter("{x:,g}")
    lowest = values.min(names) if names else values
    marks = mark if isinstance(mark, dict) else {} if mark is None else {"": mark}
    for text, at in marks.items():
        x, y = at if isinstance(at, tuple) else (at, np.interp(float(at), values[axis], lowest))
        x, y = float(x), float(y) / factor(unit)
        _mark(ax, drawn, x, y, text or f"{x:.3g} {axis}: {y:.3g} {shown}".rstrip(" 1"))
    if names:
        _name_lines(ax)
    return ax


def _mark(ax, lines, x, y, text):
    """Draw a dot with its text, which stands below a rising line, and above a minimum."""
    ax.plot(x, y, "o", color=INK, zorder=5)
    before, here, ahead = (
        np.array([np.interp(at, *line.get_data()) for line in lines]) for at in (x / 1.5, x, 1.5 * x)
    )
    rises = np.isclose(here, y, rtol=0.02) & (ahead > y)
    shift = (-4, 6) if (rises & (before > y)).any() else (7, -14) if rises.any() else (7, 7)
    ax.annotate(
        text, (x, y), shift, textcoords="offset points", ha="left" if shift[0] > 0 else "center", size=9
    )


def shades(count, colour=GREEN, least=0.6):
    """Return ``count`` shades of one colour, from pale to full, for ordered values: contexts, batches, sizes.

    Examples
    --------
    >>> shades(3, "black"), shades(1, "black")
    (['#666666', '#333333', '#000000'], ['#666666'])
    """
    parts = [least + (1 - least) * k / max(count - 1, 1) for k in range(count)]
    return [to_hex([1 - part * (1 - c) for c in to_rgb(colour)]) for part in parts]


def _name_lines(ax):
    """Label each line at its last point, at least twelve points apart."""
    ax.figure.draw_without_rendering()
    scale, ends = 72 / ax.figure.dpi, []
    for line in ax.lines:
        if line.get_label().startswith("_"):
            continue
        x, y = (np.asarray(values, dtype=float) for values in line.get_data())
        inside = np.flatnonzero(np.isfinite(y))[-1]
        ends.append((ax.transData.transform((x[inside], y[inside]))[1] * scale, line, (x[inside], y[inside])))
    last = -np.inf
    for height, line, end in sorted(ends, key=lambda one: one[0]):
        last = max(height, last + 12)
        ax.annotate(
            line.get_label(), end, (5, last - height), textcoords="offset points", va="center",
            color=line.get_color(), annotation_clip=False,
        )  # fmt: skip


def brace(kind, words):
    """Return LaTeX that names a term under a brace, in the colour of its kind; ``%s`` is the term."""
    return rf"{{\color{{{KINDS[kind][0]}}}{{\underbrace{{%s}}_{{\text{{{words}}}}}}}}}"


class Named:
    """An equation whose terms are named under braces, in the colours of their kinds in figures.

    ``terms``: text of a brace, to the equation of the term (or the name of an argument in it) and its kind in
    :data:`KINDS`.
    """

    def __init__(self, function, terms):
        import sympy as sp

        entry, names = function.equation, {}
        whole = entry.expression()
        for words, (part, kind) in terms.items():
            term = (
                _term(whole, entry.symbols()[part]) if isinstance(part, str) else part.equation.expression()
            )
            text = brace(kind, words)
            mark = sp.Symbol(text)  # its name orders the terms
            whole, names[mark] = whole.subs(term, mark), text % latex(term)
        self.function = function
        self.shown = displayed(entry.latex_with(latex(whole, names)), entry.number)

    def __repr__(self):
        return f"{self.function.equation}"

    def _repr_markdown_(self):
        return self.shown


def _term(term, symbol):
    """Return the term of a (nested) sum or maximum that contains a symbol."""
    import sympy as sp

    split = (sp.Add, sp.Max)
    while isinstance(term, split) or (term.is_Mul and any(isinstance(one, sp.Max) for one in term.args)):
        term = next(one for one in term.args if symbol in one.free_symbols)
    return term


class Text:
    """Markdown as the output of a cell: rendered in a notebook, plain text elsewhere."""

    def __init__(self, markdown):
        self.markdown = markdown

    def __repr__(self):
        return self.markdown

    def _repr_markdown_(self):
        return self.markdown


def step_equation(step):
    """The time of a step as an equation: milliseconds of each kind of time, named under a brace in its colour.

    A step that has none is its reason in words.
    """

    if not step.feasible:
        return Text(step.summary())

    def added(terms):
        kinds = pd.Series(terms).groupby(lambda term: KIND_OF.get(term, "other"), sort=False).sum()
        return " + ".join(
            brace(kind, kind.removeprefix("reading ").removeprefix("the ")) % f"{1e3 * seconds:.2f}"
            for kind, seconds in kinds.items()
        )

    stages = (", ".join(map(added, groups)) for groups in step.grouped)
    each = (rf"\max\left({stage}\right)" if "," in stage else stage for stage in stages)
    total = rf"{1e3 * step.total:.2f}\ \text{{ms}}"
    return Text(f"\\begin{{equation*}}\n{total} = {' + '.join(each)}\n\\end{{equation*}}")


def axes(ax, **size):
    """Return the given axes, or new ones."""
    return ax if ax is not None else plt.subplots(**size)[1]


def panels(width, height, columns=1, rows=1, layout="constrained", **more):
    """Return the axes of a new figure of so many inches, or an array of axes if there are several."""
    return plt.subplots(rows, columns, figsize=(width, height), layout=layout, **more)[1]


def box(ax, x, y, width, height, **look):
    """Draw a rectangle from its lower left corner; ``look``: colours and lines of Matplotlib's Rectangle."""
    ax.add_patch(plt.Rectangle((x, y), width, height, **look))


def words(ax, x, y, text, fontsize=9, va="center", **look):
    """Write small text at a place, by default from its left end."""
    ax.text(x, y, text, fontsize=fontsize, va=va, **look)


def canvas(ax, x, y, aspect="equal"):
    """Make axes a sheet to draw on: the ends of both directions, and no lines or ticks."""
    ax.set(xlim=x, ylim=y, aspect=aspect)
    ax.axis("off")


def nothing(reason, ax=None):
    """Write why there is no answer, in place of a figure."""
    ax = axes(ax, figsize=(6.4, 1.2))
    ax.text(0.5, 0.5, reason, ha="center", va="center", wrap=True)
    ax.set_axis_off()
    return ax


def ticks(axis, values):
    """Set plain numbers as the only ticks of a logarithmic axis; the other axis keeps its main ticks."""
    axis.set_ticks(values, [f"{value:,.10g}" for value in values])
    axis.axes.minorticks_off()


def name_rows(ax, names, **look):
    """Label the rows of a bar chart, the first on top, without lines between them."""
    ax.set_yticks(range(len(names)), names, **look)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)


def stack(table, reasons=()):
    """Draw one horizontal bar per model in milliseconds: terms (rows of ``table``) stacked by kind.

    ``reasons``: models without an answer, to the reason, which is written instead of a bar.
    """
    names = [*table, *reasons]
    ax = axes(None, figsize=(6.8, 1.5 + 0.42 * len(names)))
    left, bars = 0 * table.sum(), {}
    for term, row in table.iterrows():
        bar = ax.barh(range(len(row)), row, left=left, height=0.6, color=TERMS.get(term, FAINT))
        bars.setdefault(KIND_OF.get(term, term), bar)
        left = left + row
    for y, total in enumerate(left):
        ax.text(total, y, f" {total:.3g} ms", va="center", fontsize=9)
    for y, name in enumerate(reasons, len(left)):
        ax.text(0, y, f" {reasons[name]}", va="center", fontsize=9)
    name_rows(ax, names)
    ax.set(
        ylim=(len(names) - 0.4, -0.6),
        xlim=(0, 1.18 * (max([*left, 0]) or 1)),
        xlabel="milliseconds per token",
    )
    below = (0.42, -0.75 / (1 + 0.42 * len(names)))
    if bars:
        ax.legend(bars.values(), bars, loc="upper center", bbox_to_anchor=below, ncol=3)
    return ax


def breakdown_bars(steps, hidden=True):
    """Bars of several answers, their hidden terms as outlines below if ``hidden``.

    ``steps``: label to :class:`inferlib.Breakdown`. For an infeasible or n/a answer the reason is written instead.
    """
    counted = {name: step.critical for name, step in steps.items() if step.feasible}
    table = pd.DataFrame(counted, dtype=float)
    table = table.reindex([*TERMS, *table.index.difference([*TERMS])]).dropna(how="all").fillna(0)
    ax = stack(1e3 * table, {name: step.summary() for name, step in steps.items() if not step.feasible})
    for y, name in enumerate(counted if hidden else ()):
        under = {term: 1e3 * seconds for term, seconds in steps[name].overlapped.items()}
        for term, time in under.items():
            ax.barh(y + 0.37, time, height=0.1, color="none", edgecolor=TERMS.get(term, FAINT), linewidth=1.2)
        if under:
            # one label beside the longest, so that labels of bars of like length do not run into each other
            names = ", ".join(sorted(under, key=under.get, reverse=True))
            ax.text(max(under.values()), y + 0.37, f" {names}, hidden", va="center", fontsize=7)
    return ax
