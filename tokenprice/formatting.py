"""Format numbers, intervals, layouts, number formats and tables as text."""

from html import escape
from math import inf

from tokenprice import calibration


def align(rows) -> str:
    """Align rows of texts in columns; the last text of a row may be wider than its column.

    Examples
    --------
    >>> print(align([("TPOT", "20.4 ms", "bound by weights"), ("Memory", "fits 81 sequences")]))
    TPOT    20.4 ms  bound by weights
    Memory  fits 81 sequences
    """
    columns = range(max(map(len, rows), default=0))
    widths = [max((len(row[k]) for row in rows if len(row) > k + 1), default=0) for k in columns]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


class Screen:
    """Base of results that print as aligned text and show as a table in notebooks."""

    def screen(self) -> tuple:
        """Return a title, rows of texts, and the lines below them."""
        raise NotImplementedError

    def text(self, *how, **more):
        """Return the screen as aligned text; options are those of ``screen``."""
        title, rows, below = self.screen(*how, **more)
        return "\n".join(filter(None, [title, align(rows), *below]))

    def __str__(self):
        return self.text()

    __repr__ = __str__

    def _repr_html_(self):
        """Show as HTML.

        Examples
        --------
        >>> one = Screen()
        >>> one.screen = lambda: ("Price", [("a < b", "$1", "x")], ["below", "more"])
        >>> one._repr_html_().partition("<table>")[2]
        '<tr><td>a &lt; b</td><td>$1</td><td colspan="1">x</td></tr></table>below<br>more</div>'
        """
        title, rows, below = self.screen()
        table = "".join(
            f"<tr><td>{'</td><td>'.join(map(escape, cells))}</td>"
            f'<td colspan="{3 - len(cells)}">{escape(last)}</td></tr>'
            for *cells, last in rows
        )
        # a notebook would typeset text between two dollar signs as mathematics
        shown = f'<div class="mathjax_ignore"><b>{escape(title)}</b><table>{table}</table>'
        return shown + "<br>".join(map(escape, below)) + "</div>"


def values(record, *names) -> dict:
    """The named attributes of a result, for its ``to_dict``."""
    return {name: getattr(record, name) for name in names}


def format_number(value) -> str:
    """Format with three significant digits, or as an integer from 1,000 on.

    Examples
    --------
    >>> format_number(0.12345), format_number(1790.2), format_number(999.4), format_number(-999.5)
    ('0.123', '1,790', '999', '-1,000')
    """
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def format_interval(value, span) -> str:
    """Format a number with its interval (``span``: both ends as factors), unless the ends print alike.

    Examples
    --------
    >>> format_interval(2, (1 / 2, 1.5)), format_interval(2, (1, 1))
    ('2 (1 to 3)', '2')
    """
    low, high = (format_number(value * by) for by in span)
    return format_number(value) if low == high else f"{format_number(value)} ({low} to {high})"


def format_time(seconds, low=None, high=None, more="") -> str:
    """Format a time in milliseconds, or in seconds from 10 s on, with its interval and a remark.

    Examples
    --------
    >>> format_time(0.0204), format_time(12, 8, 19), format_time(0.2, 0.1, 0.4, ", 80 %"), format_time(10)
    ('20.4 ms', '12 s (8 to 19)', '200 ms (100 to 400, 80 %)', '10 s')
    >>> format_time(12, 8, inf), format_time(inf)
    ('12 s (8 or more)', 'without end')
    """
    if seconds == inf:
        return "without end"
    unit, scale = ("s", 1) if seconds >= 10 else ("ms", 1e3)
    end = "or more" if high == inf else high and f"to {format_number(scale * high)}"
    span = "" if low is None else f" ({format_number(scale * low)} {end}{more})"
    return f"{format_number(scale * seconds)} {unit}{span}"


def format_layout(layout) -> str:
    """Format a layout, such as ``DP8 EP8``; :func:`parse_layout` reads it back.

    Examples
    --------
    >>> from inferlib.system import Layout
    >>> format_layout(Layout(tp=8)), format_layout(Layout(tp=8, pp=2)), format_layout(Layout(ep=64, dp=64))
    ('TP8', 'PP2 x TP8', 'attention DP64 with EP64')
    >>> format_layout(Layout(dp=4, tp=2)), format_layout(Layout(tp=2, ep=2)), format_layout(Layout())
    ('DP4 x TP2', 'TP2 x EP2', 'one chip')
    """
    parts = [f"{kind}{n}" for kind, n in (("PP", layout.pp), ("TP", layout.tp)) if n > 1]
    if layout.dp > 1 and layout.ep > 1:
        return f"attention {' x '.join([f'DP{layout.dp}', *parts])} with EP{layout.ep}"
    parts = [f"DP{layout.dp}", *parts] if layout.dp > 1 else parts
    if layout.ep > 1:
        parts.append(f"EP{layout.ep}")
    return " x ".join(parts) or "one chip"


def format_dtype(value) -> str:
    """Format a number format: its name, or the bits per value.

    Examples
    --------
    >>> format_dtype("fp8"), format_dtype(2), format_dtype((4 + 8 / 32) / 8), format_dtype(0.6)
    ('fp8', 'bf16', 'mxfp4', '4.8 bits')
    """
    if isinstance(value, str):
        return value
    name = calibration.format_name(value)
    return name if calibration.stored_bytes(name) == value else f"{8 * value:.3g} bits"


def format_dtypes(formats) -> str:
    """Format the number formats of a question: of weights, of parts that differ, and of the KV cache.

    Examples
    --------
    >>> format_dtypes(("fp8", "bf16", {"attention": 2}))
    'weights in fp8, attention in bf16, cache in bf16'
    """
    weights, cache, kept = formats
    each = {"weights": weights} | dict(kept or {}) | {"cache": cache}
    return ", ".join(f"{part} in {format_dtype(name)}" for part, name in each.items())
