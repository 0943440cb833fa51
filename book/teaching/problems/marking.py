"""A marker: a number with a unit in; right, which usual mistake, or how far off out.

otter-grader and nbgrader were looked at. Both compare a student's variables with tests that lie beside the notebook,
the same for everybody. Here every student has other numbers, and a wrong answer is met with the mistake that leads to
it. For practice the key is computed when it is asked for; what carries a mark has a key file (`assignment.py`).
"""

import math
import re

from book.teaching.problems.bank import COURSE, shown
from book.teaching.problems.reading import quantity
from inferlib.equation import frozen
from inferlib.units import factor


@frozen
class Verdict:
    """Whether an answer is right, and what is said to the student."""

    right: bool
    said: str

    def __bool__(self):
        return self.right

    def __repr__(self):
        return self.said


def _kind(unit):
    return next(kind for kind in COURSE["unit"] if unit in kind)


def units_of(unit):
    """What may be written after a number: name to how many of ``unit`` it is.

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
    """What a marker must know of a problem, here, in the page and in a key file: numbers are in the unit asked for."""
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
    """Say whether a number is right, which usual mistake leads to it, or how far off it is; the page marks choices.

    ``asked``: a problem, or what :func:`told` says of it.

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
    """Whether a value is another one but for a share of it."""
    return abs(value / other - 1) <= share


def _slip(text, value, known):
    """The mistake that leads to a value, by name: of rounding, of those that the problem knows, of a comma; or None."""
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
    """How far off an answer is, in words."""
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
