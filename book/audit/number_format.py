"""Format numbers and equations for pages: 540 B, 5.4 ms, and lines no longer than the page is wide."""

import re
from numbers import Number

import sympy

from book.style import _digits
from inferlib.equation import latex

PREFIXES = (
    (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"),
    (1e-12, "p"),
)  # fmt: skip
COUNTS = ((1e12, " T"), (1e9, " B"), (1e6, " M"))  # trillions, billions, millions
DOLLARS = {"usd/h": "an hour", "usd/Mtok": "a million tokens"}
WIDTH = 90  # letters of an equation per line of the page


def format_value(value, unit="1"):
    """Format a number with its unit, in four digits.

    Examples
    --------
    >>> format_value(5.4e11), format_value(0.0054, "s"), format_value(43_120.0, "tok/s")
    ('540 B', '5.4 ms', '43,120 tok/s')
    >>> format_value(1e15, "FLOP/s"), format_value(0.4, "usd/Mtok")
    ('1 PFLOP/s', '$0.4 a million tokens')
    >>> format_value((6.0, 12.0)), format_value(True), format_value("<= 1", "%"), format_value(None)
    ('6 to 12', 'true', '<= 1 %', '')
    >>> print(*(format_value(10.0**power, "B") for power in range(15, -15, -3)))
    1 PB 1 TB 1 GB 1 MB 1 kB 1 B 1 mB 1 µB 1 nB 1 pB
    >>> format_value(1e12), format_value(1e9), format_value(1e6), format_value(999_900.0)
    ('1 T', '1 B', '1 M', '999,900')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or value == "" or value != value:
        return ""
    if isinstance(value, tuple):
        return " to ".join([*(format_value(end) for end in value[:-1]), format_value(value[-1], unit)])
    if not isinstance(value, Number):
        return f"{value} {unit}" if unit != "1" else str(value)
    value = float(value)
    if unit in DOLLARS:
        return f"${_digits(value)} {DOLLARS[unit]}"
    if unit in ("s", "B", "FLOP", "FLOP/s", "B/s", "s/B") and value:
        size = next((p for p in PREFIXES if abs(value) >= p[0] * (1 - 1e-9)), PREFIXES[-1])
        return f"{_digits(value / size[0])} {size[1]}{unit}"
    for size, name in COUNTS:
        if unit == "1" and abs(value) >= size:
            return f"{_digits(value / size)}{name}"
    return _digits(value) if unit == "1" else f"{_digits(value)} {'µs' if unit == 'us' else unit}"


def wrap_lines(text, expression):
    """Split an equation into lines: one if it is short enough, else its long parts get names on lines of their own.

    ``text``: LaTeX of the whole equation. ``expression``: function that returns its left side as LaTeX and its right
    side as a SymPy expression; called only if the text is too long.
    """
    if _width(text) <= WIDTH:
        return [text.replace("\n", " ")]
    left, right = expression()
    named = {}
    lines = _wrapped(left, _short(right, named))
    for symbol, short in named.values():
        lines += _wrapped(latex(symbol), short)
    return lines


def _width(text):
    """Approximate the width of an equation in letters; numerator and denominator both count."""
    text = re.sub(r"\\(left|right|text|mathrm|begin|end|displaystyle|,|quad)", "", text)
    plain = re.sub(r"\\[a-zA-Z]+", "x", text)
    return len(re.sub(r"[{}_^\\ ]|frac", "", plain))


def _short(expression, named):
    """Replace wide parts of an expression by symbols, which ``named`` collects from the inside out."""

    def shortened(part):
        if part.is_Atom or _width(latex(part)) <= WIDTH // 3:
            return part
        if part not in named:
            short = _short(part, named)
            named[part] = (sympy.Symbol(f"u_{{{len(named) + 1}}}", positive=True), short)
        return named[part][0]

    if expression.is_Atom or _width(latex(expression)) <= WIDTH:
        return expression
    if isinstance(expression, sympy.Piecewise):
        cases = [(shortened(value), condition) for value, condition in expression.args]
        return sympy.Piecewise(*cases, evaluate=False)
    return expression.func(*map(shortened, expression.args), evaluate=False)


def _wrapped(left, right):
    """Return one line, or several if a sum is too wide."""
    whole = f"{left} = {latex(right)}"
    if _width(whole) <= WIDTH or not isinstance(right, sympy.Add):
        return [whole]
    lines, line = [], []
    for term in right.args:
        if line and _width(latex(sympy.Add(*line, term, evaluate=False))) > WIDTH - 10:
            lines.append(line)
            line = []
        line.append(term)
    told = [latex(sympy.Add(*terms, evaluate=False)) for terms in [*lines, line]]
    return [f"{left} = {told[0]}", *(rf"\qquad {'' if t.startswith('-') else '+ '}{t}" for t in told[1:])]
