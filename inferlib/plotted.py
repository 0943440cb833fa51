"""What a figure shows, as a table: the data that readers save beside the picture."""

import csv
import io

COLUMNS = ("panel", "series", "x", "y")


def plotted(figure):
    """Every point of the lines, scatters and bars of a figure.

    Parameters
    ----------
    figure : matplotlib.figure.Figure

    Returns
    -------
    list of tuple
        ``(panel, series, x, y)``: the title of the panel (or its place, of several), the label in the legend,
        and numbers, or names where the axis has names. Guides across a panel, areas, texts and drawings
        without axes are left out: they show no data of their own.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> figure, ax = plt.subplots()
    >>> bars = ax.bar(["short", "long"], [1, 3], label="ms")
    >>> plotted(figure)
    [('', 'ms', 'short', 1.0), ('', 'ms', 'long', 3.0)]
    """
    rows = []
    for place, ax in enumerate(figure.axes, 1):
        if ax.axison:
            title = ax.get_title() or ax.get_title(loc="left")
            panel = " ".join(title.split()) or (f"panel {place}" if len(figure.axes) > 1 else "")
            rows += [(panel, *row) for row in (*_lines(ax), *_scatters(ax), *_bars(ax))]
    return rows


def as_csv(figure):
    """The same as text with a head, six digits a number.

    Returns
    -------
    str or None
        None for a drawing, which shows no data.
    """
    rows = plotted(figure)
    if not rows:
        return None
    axes = [" ".join(label.split()) for label in (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel())]
    head = [name or column for name, column in zip(("", "", *axes), COLUMNS, strict=True)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([cell if isinstance(cell, str) else f"{cell:.6g}" for cell in row] for row in rows)
    return text.getvalue()


def _label(artist, number):
    """The label in the legend, or the place among its like; matplotlib's own begin with an underscore."""
    label = str(artist.get_label())
    return f"series {number}" if label.startswith("_") or not label else " ".join(label.split())


def _namer(axis, reach=1e-9):
    """A function from a place on an axis to the name that stands within reach, else to the number.

    Names stand at 0, 1, 2 and so on; texts at other ticks are numbers in another form.
    """
    from matplotlib.category import StrCategoryLocator
    from matplotlib.ticker import FixedLocator

    ticks = []
    if isinstance(axis.get_major_locator(), FixedLocator | StrCategoryLocator):
        places = list(axis.get_majorticklocs())
        if places == list(range(len(places))):
            ticks = list(zip(places, axis.get_major_formatter().format_ticks(places), strict=True))

    def name(at):
        near = [(abs(at - place), text) for place, text in ticks if abs(at - place) <= reach]
        return " ".join(min(near)[1].split()) if near else float(at)

    return name


def _lines(ax):
    guides = (ax.get_xaxis_transform(), ax.get_yaxis_transform())
    x_name, y_name = _namer(ax.xaxis), _namer(ax.yaxis)
    lines = [line for line in ax.lines if line.get_transform() not in guides]
    for number, line in enumerate(lines, 1):
        data = zip(line.get_xdata(orig=False), line.get_ydata(orig=False), strict=True)
        yield from ((_label(line, number), x_name(x), y_name(y)) for x, y in data)


def _scatters(ax):
    from matplotlib.collections import PathCollection

    x_name, y_name = _namer(ax.xaxis), _namer(ax.yaxis)
    for number, points in enumerate(ax.collections, 1):
        if isinstance(points, PathCollection):
            yield from ((_label(points, number), x_name(x), y_name(y)) for x, y in points.get_offsets())


def _bars(ax):
    from matplotlib.container import BarContainer

    x_name, y_name = _namer(ax.xaxis, 0.45), _namer(ax.yaxis, 0.45)  # groups stand beside their tick
    for number, bars in enumerate(ax.containers, 1):
        if not isinstance(bars, BarContainer):
            continue
        for bar in bars:
            if bars.orientation == "horizontal":
                place = y_name(bar.get_y() + bar.get_height() / 2)
                yield _label(bars, number), float(bar.get_width()), place
            else:
                place = x_name(bar.get_x() + bar.get_width() / 2)
                yield _label(bars, number), place, float(bar.get_height())
