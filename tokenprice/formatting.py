"""Format numbers, intervals, layouts and number formats for people."""

from tokenprice import calibration


def format_number(value) -> str:
    """Three digits, and from a thousand on all before the point.

    Examples
    --------
    >>> format_number(0.12345), format_number(1790.2)
    ('0.123', '1,790')
    """
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def html_block(html) -> str:
    """HTML of an answer for a notebook, which takes what stands between two dollars for mathematics elsewhere."""
    return f'<div class="mathjax_ignore">{html}</div>'


def format_range(low, high) -> str:
    """Two numbers in words, or one where they are the same."""
    return format_number(low) if high <= low else f"{format_number(low)} to {format_number(high)}"


def format_interval(value, span) -> str:
    """A number in words with the ends of its interval, so many times as large, where these look otherwise.

    Examples
    --------
    >>> format_interval(2, (1 / 2, 1.5)), format_interval(2, (1, 1))
    ('2 (1 to 3)', '2')
    """
    low, high = (format_number(value * by) for by in span)
    return format_number(value) if low == high else f"{format_number(value)} ({low} to {high})"


def format_durations(*seconds) -> str:
    """Times in words: milliseconds, or seconds where the last is ten or more.

    Examples
    --------
    >>> format_durations(0.21, 1.5), format_durations(40.2)
    ('210 to 1,500 ms', '40 s')
    """
    unit, scale = ("s", 1) if seconds[-1] >= 10 else ("ms", 1e3)
    return f"{' to '.join(f'{scale * one:,.0f}' for one in seconds)} {unit}"


def format_layout(layout) -> str:
    """A layout as people write it, and as :func:`parse_layout` reads it.

    Examples
    --------
    >>> from inferlib.system import Layout
    >>> format_layout(Layout(tp=8)), format_layout(Layout(tp=8, pp=2)), format_layout(Layout(ep=64, dp=64))
    ('TP8', 'PP2 x TP8', 'attention DP64 with EP64')
    """
    parts = [f"{kind}{n}" for kind, n in (("PP", layout.pp), ("TP", layout.tp)) if n > 1]
    if layout.dp > 1 and layout.ep > 1:
        return f"attention {' x '.join([f'DP{layout.dp}', *parts])} with EP{layout.ep}"
    parts = [f"DP{layout.dp}", *parts] if layout.dp > 1 else parts
    parts += [f"EP{layout.ep}"] if layout.ep > 1 else []
    return " x ".join(parts) or "one chip"


def format_dtype(value) -> str:
    """A format as people write it: its name, or bits of a value."""
    if isinstance(value, str):
        return value
    name = calibration.format_name(value)
    return name if calibration.stored_bytes(name) == value else f"{8 * value:.3g} bits"
