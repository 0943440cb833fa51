"""Printed rows of sources (``published.csv``), numbers in printed texts, and grades of reproduced values."""

import csv
import io
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from book import stored
from inferlib.units import factor

KINDS = ("model", "derived", "identity", "claim", "input", "measured", "quoted")
# Thousands are grouped by three, or not at all.
_GROUPED = re.compile(r"[^,]*|[+-]?\d{1,3}(,\d{3})+(\.\d+)?")


@dataclass(frozen=True)
class Row:
    """One printed number, a row of ``published.csv``."""

    source: str
    artefact: str
    row: str
    column: str
    text: str
    resolution: float
    unit: str
    kind: str

    @property
    def place(self):
        """Place of the number: artefact, row, column."""
        return (self.artefact, self.row, self.column)

    @property
    def printed(self):
        """The printed value: a number if the text is one, else the text."""
        value = as_number(self.text)
        return self.text if value is None else value

    @property
    def value(self):
        """The printed number in SI units; a pair for a range."""
        low_high = as_range(self.text)
        if low_high:
            return tuple(v * factor(self.unit) for v in low_high)
        number = as_number(self.text)
        if number is None:
            raise LookupError(f"{self.place} of {self.source} is {self.text!r}, which is not a number")
        return number * factor(self.unit)


def as_number(text):
    """Return the number that a printed text is, or None: ``"43,000"`` is 43000, ``"-"`` and ``"6-12"`` are None.

    Examples
    --------
    >>> as_number("43,000"), as_number("1e-6"), as_number("-"), as_number("true")
    (43000, 1e-06, None, None)
    """
    plain = text.replace(",", "")
    if "_" in plain or not _GROUPED.fullmatch(text):
        return None
    try:
        return int(plain)
    except ValueError:
        pass
    try:
        value = float(plain)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def as_range(text):
    """Return both ends of a printed range, or None.

    Examples
    --------
    >>> as_range("6-12"), as_range("-12")
    ((6, 12), None)
    """
    low, dash, high = text.partition("-")
    ends = (as_number(low), as_number(high)) if dash and low.strip() and not low.endswith("e") else (None,)
    return None if None in ends else ends


WORDS = {"half": 0.5, "one": 1, "two": 2, "twice": 2, "double": 2, "three": 3, "third": 3, "four": 4, "quadruple": 4,
         "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}  # fmt: skip


def numerals_of(text):
    """Return the distinct numbers in a text, in digits or as small words, in ascending order.

    A source's ``numerals.txt`` keeps these: facts, without the words and the order around them, which are not ours to
    store.

    Examples
    --------
    >>> numerals_of("Twice 3,500 tokens in 0.50 s")
    [0.5, 2.0, 3500.0]
    """
    digits = re.findall(r"\d+(?:\.\d+)?", re.sub(r"(?<=\d),(?=\d{3})", "", text))
    words = set(re.findall(r"[a-z]+", text.lower()))
    return sorted({*map(float, digits), *(float(WORDS[word]) for word in words & set(WORDS))})


def stands_in(text, numerals):
    """Whether every number in a printed text is among ``numerals``, possibly times a power of a thousand."""
    for number in re.findall(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?", text):
        value = float(number.replace(",", ""))
        forms = {value, float(number.replace(",", "").split("e")[0]), *(value * 1e3**k for k in range(-4, 4))}
        if not any(float(f"{form:.10g}") in numerals for form in forms):
            return False
    return True


def last_digit(text):
    """Return the value of one unit in the last printed digit.

    Examples
    --------
    >>> last_digit("0.70"), last_digit("234"), last_digit("6-12"), last_digit("1.2e-6")
    (0.01, 1.0, 1.0, 1e-07)
    """
    ends = as_range(text)
    try:
        number = Decimal((text.split("-")[0] if ends else text).replace(",", "").strip("<=> "))
    except ArithmeticError:
        return 0.0
    return float(Decimal(1).scaleb(number.as_tuple().exponent))


@cache
def published(source):
    """Return all printed rows of a source, in the order of its ``published.csv``.

    Raises LookupError if there is no such source. Raises ValueError if the file is malformed: a missing column, an
    unknown kind, a bad resolution or a repeated place.
    """
    text = stored.text(f"papers/{source}/published.csv")
    rows = {}
    for line, cells in enumerate(csv.DictReader(io.StringIO(text)), 2):
        where = f"{source}/published.csv line {line}"
        if None in cells or None in cells.values():
            raise ValueError(f"{where}: wrong number of cells")
        if cells["kind"] not in KINDS:
            raise ValueError(f"{where}: kind is {cells['kind']!r}, but must be one of {', '.join(KINDS)}")
        resolution = float(cells["resolution"]) if cells["resolution"] else last_digit(cells["printed"])
        place = (cells["artefact"], cells["row"], cells["column"])
        if place in rows:
            raise ValueError(f"{where}: {place} stands there twice")
        if not _readable(cells["printed"]):
            raise ValueError(
                f"{where}: cannot grade {cells['printed']!r} as number, range, relation, true, false or -"
            )
        rows[place] = Row(source, *place, cells["printed"], resolution, cells["unit"], cells["kind"])
    return rows


def _readable(text):
    relation = text[:1] in "<>" and as_number(text.strip("<>= ")) is not None
    return bool(text) and (text in ("true", "false", "-") or None not in _ends_or_none(text) or relation)


def _ends_or_none(text):
    return as_range(text) or (as_number(text),)


class Reader:
    """Gives a reproducing function the printed numbers that it may read.

    Inputs, measurements and quotations may always be read; derived rows and identities only to compute another such
    row; the row itself, and rows of kind ``model`` and ``claim``, never. ``source``, ``artefact``: what is being
    reproduced. ``own``: the row being computed, if there is one. ``shifts``: place to a shift, in units of half the
    printed resolution, which decides the grade ``consistent``.
    """

    def __init__(self, source, artefact, own=None, shifts=None):
        self.source, self.artefact, self.own = source, artefact, own
        self.shifts = shifts or {}
        self.read = []

    def __call__(self, row, column="", artefact=None):
        """Return the printed number at a place in SI units; the default artefact is the one being reproduced."""
        place = (artefact or self.artefact, row, column)
        rows = published(self.source)
        if place not in rows:
            raise LookupError(f"{self.source} prints nothing at {place}")
        entry = rows[place]
        if self.own is not None and place == self.own.place:
            raise LookupError(f"{place} may not be read to reproduce itself")
        arithmetic = ("derived", "identity")
        derived = arithmetic if self.own is not None and self.own.kind in arithmetic else ()
        if entry.kind not in ("input", "measured", "quoted", *derived):
            raise LookupError(f"{place} is of kind {entry.kind!r} and may not be read by a reproducer")
        self.read.append(entry)
        shift = self.shifts.get(place, 0) * entry.resolution / 2 * factor(entry.unit)
        value = entry.value
        return tuple(v + shift for v in value) if isinstance(value, tuple) else value + shift


def grade_of(text, resolution, reproduced):
    """Return relative error and grade of one reproduced value against a printed text, both in the printed unit.

    ``text``: a number, a range (``"6-12"``), a relation (``"<= 20"``), ``"true"``, or ``"-"`` for infeasible.
    ``resolution``: one unit of the last significant printed digit. ``reproduced``: None if the library finds the point
    infeasible. The error is NaN if there is no number to compare.

    Examples
    --------
    >>> grade_of("0.7", 0.1, 0.657)[1], grade_of("350", 10, 373.0)[1], grade_of("6-12", 1, (6.0, 12.0))[1]
    ('exact', '20%', 'exact')
    """
    if text == "-" or reproduced is None:
        return math.nan, "exact" if text == "-" and reproduced is None else "off"
    if isinstance(reproduced, (bool, str)) or text in ("true", "false"):
        return math.nan, "exact" if str(reproduced).lower() == text.lower() else "off"
    misses = [_miss(text, resolution, reproduced)]
    ends = as_range(text)
    if ends and isinstance(reproduced, tuple):
        misses = [_miss(repr(end), resolution, got) for end, got in zip(ends, reproduced, strict=True)]
    error = max((error for error, _ in misses), key=abs)
    if all(close for _, close in misses):
        return error, "exact"
    return error, next((f"{p}%" for p in (1, 5, 20) if abs(error) <= p / 100), "off")


def _miss(text, resolution, got):
    """Return the signed relative error of one number, and whether it is within half the resolution."""
    if isinstance(got, tuple):
        return (math.nan, False)
    if not math.isfinite(got):
        raise ValueError(f"a reproducer returned {got} for the printed {text!r}")
    low, high = _printed_ends(text)
    nearest = min(max(got, low), high)
    slack = resolution / 2 * (1 + 1e-9)
    # a strict relation does not hold at its bound
    strict = text[0] in "<>" and "=" not in text
    close = abs(got - nearest) <= slack and not (strict and not low < got < high)
    if nearest:
        return (got - nearest) / abs(nearest), close
    return math.copysign(math.inf, got) if got else 0.0, close


def _printed_ends(text):
    """Return the interval that a printed text stands for."""
    if text[0] in "<>":
        bound = as_number(text.strip("<>= "))
        return (-math.inf, bound) if text[0] == "<" else (bound, math.inf)
    return as_range(text) or (as_number(text),) * 2
