"""A marker: decides whether a number with a unit is right, which usual mistake it is, or how far it is off.

otter-grader and nbgrader compare a student's variables with tests beside the notebook, the same for all students. Here
every student has other numbers, and feedback on a wrong answer names the mistake that leads to it. For practice the key
is computed on demand; graded sheets have a key file (`assignment.py`).
"""

import math
import re

from book.teaching.problems.bank import COURSE, shown
from book.teaching.problems.reading import quantity
from inferlib.equation import frozen
from inferlib.units import factor


@frozen
class Verdict:
    """Whether an answer is right, and the feedback."""

    right: bool
    said: str

    def __bool__(self):
        return self.right

    def __repr__(self):
        return self.said


def _kind(unit):
    return next(kind for kind in COURSE["unit"] if unit in kind)


def units_of(unit):
    """Return the units that may follow a number: name to its size in ``unit``.

    Examples
    --------
    >>> units_of("usd")["cents"], units_of("GB")["TB"]
    (0.01, 1000.0)
    """
    return {
        text: float(f"{factor(name, unit):.12g}")
        for name, others in _kind(unit).items() for text in (name, *others) if text
    }  # fmt: skip


def told(asked):
    """Return the data that mark a problem, here, in the page and from a key file: numbers in the unit asked for."""
    key = asked.key
    if asked.options:
        return {
            "right": asked.options.index(key.right),
            "options": [key.wrong.get(o, "") for o in asked.options],
        }
    scale = factor(asked.unit)
    return {
        "value": _six(key.value / scale), "unit": shown(asked.unit),
        "units": {name: _six(worth) for name, worth in units_of(asked.unit).items()},
        "answer": asked.answer, "tolerance": asked.near, "exact": asked.exact,
        "mistakes": [[_six(wrong / scale), hint] for hint, wrong in asked.mistakes.items()],
    }  # fmt: skip


def _six(value):
    return float(f"{value:.6g}")


def mark(asked, answer):
    """Mark a number: right, a usual mistake, or how far it is off; choices are marked by the page.

    ``asked``: a problem, or the result of :func:`told`.

    Examples
    --------
    >>> from book.teaching.problems import BANK
    >>> asked = BANK["cache-1"].asked("Ada")
    >>> mark(asked, asked.answer)
    Right: 504 KiB.
    >>> mark(asked, asked.key.value / 2 / 1024)
    Not yet: there are a key and a value.
    """
    known = asked if isinstance(asked, dict) else told(asked)
    try:
        value = quantity(answer, known)
    except ValueError as error:
        return Verdict(False, f"Not read: {error}.")
    if near(value, known["value"], 1e-9 if known["exact"] else known["tolerance"]):
        return Verdict(True, f"Right: {known['answer']}.")
    return Verdict(False, f"Not yet: {_slip(str(answer), value, known) or _far(value / known['value'])}.")


def near(value, other, share):
    """Whether a value is within a fraction of another one.

    Examples
    --------
    >>> near(1.5, 1, 0.5), near(1.6, 1, 0.5)
    (True, False)
    """
    return abs(value / other - 1) <= share


def _slip(text, value, known):
    """Return the name of the mistake that gives a value (rounding, one of the problem's, or a comma), or None."""
    key, share = known["value"], known["tolerance"]
    whole = known["exact"] and {math.ceil(value): "up", math.floor(value): "down"}.get(round(key))
    if whole and value != int(value):
        return f"round {whole}: only a whole number is meant"
    if known["exact"] and near(value, key, share):
        return "near, but a whole number under a limit is exact"
    for wrong, hint in known["mistakes"]:
        if near(value, wrong, share):
            return hint
    if "," in text and near(value, 1000 * key, share):
        return "off by a factor of 10^3: a comma parts thousands here, or look at the prefix of the unit"
    mantissa = re.search(r"\d+\.?\d*|\.\d+", text.replace(",", ""))[0]
    digits = len(mantissa.replace(".", "").lstrip("0"))
    if digits in (1, 2) and value:
        unit = value / float(mantissa)
        if math.isclose(float(f"{key / unit:.{digits}g}") * unit, value):
            return "rounded too much: write three digits"
    return None


def _far(ratio):
    """Describe how far off an answer is.

    Examples
    --------
    >>> [_far(ratio) for ratio in (0, 1.4, 1.5, 0.5)]
    ['the answer is positive', 'it is 40 % too large', 'it is 1.5 times too large', 'it is 2.0 times too small']
    >>> _far(2e6), _far(1050e6)
    ('it is over a thousand times too large', 'it is off by a factor of 10^9: look at the prefix of the unit')
    """
    if ratio <= 0:
        return "the answer is positive"
    times, side = (ratio, "large") if ratio > 1 else (1 / ratio, "small")
    for power in (3, 6, 9):
        if abs(times / 10.0**power - 1) < 0.08:
            return f"it is off by a factor of 10^{power}: look at the prefix of the unit"
    if times < 1.5:
        return f"it is {100 * abs(ratio - 1):.0f} % too {side}"
    return (
        f"it is {times:.1f} times too {side}" if times < 1000 else f"it is over a thousand times too {side}"
    )
