"""Scorecard: what each source printed, what this library computes for it, and how well they agree.

The library registers equations and derivations; ``book/papers/<key>/`` has the printed rows, the functions that
recompute them, claims and errata (see :mod:`book.audit.published_rows`). A reproducing function reads printed numbers
only through a :class:`Reader`, which refuses the rows that it has to compute.
"""

import math
import pkgutil
import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import getmembers, isfunction, signature
from string import Formatter

import pandas as pd

from book import stored
from book.audit.published_rows import (
    Reader,
    Row,
    _printed_ends,
    grade_of,
    published,
)
from inferlib import validation
from inferlib.equation import DERIVATIONS, EQUATIONS, forbid_override
from inferlib.papers import sources
from inferlib.units import factor

VERDICTS = ("holds", "loosely worded", "does not hold")  # grades of a claim
GRADES = ("exact", "consistent", "1%", "5%", "20%", "off", "missing", *VERDICTS, "-")
STALE = "stale"  # materiality: the authors' program printed these numbers in an older state than the rest
MATERIALITY = ("changes a conclusion", "changes a number", STALE, "wording")
COLUMNS = (
    "source", "artefact", "row", "column", "printed", "unit", "kind",
    "reproduced", "relative_error", "grade", "right", "corrected", "note",
)  # fmt: skip

REPRODUCERS: dict = {}  # (source, artefact) -> functions


def reproduces(*artefacts: str):
    """Register a function that recomputes the printed rows of one artefact or more, or that checks their statements.

    The source is that in whose folder the function stands. A function returns ``{(row, column): value}`` in SI units,
    or ``{row: value}`` where there is no column. A value that depends on other printed numbers is itself a function of
    a :class:`Reader`, so that the dependencies of each row are known; mere arithmetic on printed numbers stands in
    ``formulas.toml``. A function that looks up printed numbers takes ``read``, a Reader; if errata correct the model,
    it takes ``assumptions``: a record with ``.corrected()``, the printed one by default.

    A function that takes ``holds`` checks statements: it calls ``holds(label, truth, note="", fair="")`` for each.
    ``label`` is the statement in our words, and appears only there; ``truth`` is a bool, or a function of a reader that
    returns one; ``note`` gives the number behind it and any threshold of ours; ``fair`` gives the charitable reading,
    if the statement is true only in that.
    """

    def register(function):
        source = function.__module__.split(".")[2]
        for artefact in artefacts:
            REPRODUCERS.setdefault((source, artefact), []).append(function)
        return function

    return register


def _registered(source, artefact, stating=False):
    """Return the functions that recompute an artefact's rows, or (``stating``) those that check its statements."""
    _open(source)
    functions = REPRODUCERS.get((source, artefact), ())
    return [function for function in functions if ("holds" in signature(function).parameters) == stating]


def _placed(values):
    """Return values by row and column; a row alone has no column."""
    return {place if isinstance(place, tuple) else (place, ""): value for place, value in values.items()}


def recomputed(reader):
    """Return the values of an artefact's functions and formulas: (row, column) to value or function."""
    values = dict(_formulas(reader.source).get(reader.artefact, {}))
    for function in _registered(reader.source, reader.artefact):
        values |= _placed(called(function, read=reader))
    return values


def called(function, **known):
    """Call a registered function with those of the known arguments that it takes."""
    return function(**{name: known[name] for name in signature(function).parameters if name in known})


@cache
def _formulas(source):
    """Return the numbers of ``formulas.toml``: artefact to (row, column) to a function of a reader.

    A formula is arithmetic on printed numbers, which stand in brackets: ``[row/column]`` of the same artefact,
    ``[row/column | artefact]``, ``[row]`` where there is no column, and ``[/column]`` in the row computed. A list adds
    a note to a formula.
    """
    found: dict = {}
    for artefact, rows in stored.toml(f"papers/{source}/formulas.toml", optional=True).items():
        for place, how in rows.items():
            row, _, column = place.partition("/")
            made = _formula(row, *([how] if isinstance(how, str) else how))
            found.setdefault(artefact, {})[row, column] = made
    return found


def _formula(row, text, note=""):
    def cell(found):
        place, _, artefact = found[1].partition(" | ")
        other, _, column = place.partition("/")
        return f"read({other or row!r}, {column!r}, {artefact!r})"

    code = compile(re.sub(r"\[(.+?)\]", cell, text), text, "eval")
    return lambda read: WithNote(eval(code, {"read": read, "log2": math.log2}), note)


def format_items(found, form: str = ".2g") -> str:
    """Format names with their values for notes, ``HBM3 1.5, SRAM 12``.

    ``form``: the format of a value, or of both with braces: ``"{1:.0f} us on {0}"``.
    """
    both = form if "{" in form else f"{{}} {{:{form}}}"
    return ", ".join(both.format(name, value) for name, value in found.items())


def scorecard(source: str | None = None, *artefacts: str) -> pd.DataFrame:
    """Compare every printed number with the recomputed one.

    ``source``: key of one source (default: all). ``*artefacts``: such as ``"Table 1"``; only these are computed
    (default: all of the source). Columns ``source, artefact, row, column, printed, unit, kind, reproduced,
    relative_error, grade, right, corrected, note``. ``reproduced`` is in the printed unit.

    ``grade`` says how well a number is reproduced: ``exact`` (within half the printed resolution), ``consistent``
    (within the rounding of its printed inputs), ``1%``, ``5%``, ``20%``, ``off``, ``missing``; for a claim ``holds``,
    ``loosely worded`` (true only in the charitable reading that the note gives) or ``does not hold``; ``-`` for rows
    that need no computation. ``right`` is ``no`` if an erratum names the row, a claim does not hold, or the source's
    model gives another number with its errata corrected (``corrected``, in the printed unit); ``yes`` if it gives the
    same; ``not judged`` if the row cannot be computed with the corrected model, or comes from an older state of the
    authors' program.

    Raises LookupError if there is no such source or artefact, or the printed rows are not installed.

    Examples
    --------
    >>> str(scorecard("erdil2025", "Table 1").grade.unique()[0])
    'exact'
    """
    forbid_override("the scorecard, which compares print with the source's equations,")
    places = [(key, artefact) for key in _chosen(source) for artefact in _artefacts(key)]
    for artefact in artefacts:
        validation.one_of("artefact", artefact, [name for _, name in places])
    rows = [row for key, name in places if not artefacts or name in artefacts for row in _graded(key, name)]
    return pd.DataFrame(rows, columns=COLUMNS).astype({"printed": object, "reproduced": object})


def summary(source: str | None = None) -> pd.DataFrame:
    """Count the rows of each artefact by grade (kinds ``model`` and ``derived``)."""
    card = scorecard(source)
    card = card[card.kind.isin(["model", "derived"])]
    counts = card.groupby(["source", "artefact"], sort=False).grade.value_counts().unstack(fill_value=0)
    return counts.reindex(columns=[g for g in GRADES if g in counts]).assign(rows=counts.sum(axis=1))


def equations(source: str | None = None) -> pd.DataFrame:
    """Return every equation of the sources: number, form, function, chapter and LaTeX.

    Columns ``source, number, name, form, function, chapter, latex``. ``form`` is ``function`` (callable), ``step`` (of
    a derivation), ``approximation``, ``structure`` or ``empty``.
    """
    forbid_override("the list of equations, which holds those of the sources,")
    rows = [row for key in _chosen(source) for row in _equations(key)]
    columns = ["source", "number", "name", "form", "function", "chapter", "latex"]
    table = pd.DataFrame(rows, columns=columns)
    order = table.assign(n=pd.to_numeric(table.number, errors="coerce")).sort_values(
        ["source", "n"], kind="stable"
    )
    return table.loc[order.index].reset_index(drop=True)


@cache
def _equations(key):
    _open(key)
    rows = []
    for entry in (e for (s, _), e in EQUATIONS.items() if s == key):
        for number in (entry.number, *entry.also):
            text = entry.latex(number)
            rows.append((key, number or "", entry.name, entry.form, entry.name, entry.chapter, text))
    return rows + list(_steps(key, printed={row[1] for row in rows}))


def _steps(key, printed):
    """Yield rows for numbered equations that appear only in a derivation."""
    for (source, name), entry in DERIVATIONS.items():
        if source != key:
            continue
        for step in entry.function():
            if step.number and step.number not in printed:
                printed.add(step.number)
                yield (key, step.number, name, step.form, name, entry.chapter, step.latex)


def errata(source: str | None = None) -> pd.DataFrame:
    """Return the errata: what is wrong in print, and what that changes.

    Numbers in the texts are computed: :class:`_Braces` fills the braces in ``errata.toml``. Columns ``source, place,
    printed, corrected, evidence, effect, materiality, settle, rows``. ``materiality`` is ``changes a conclusion``,
    ``changes a number``, ``stale`` or ``wording``; ``settle`` is the number that would decide an inferred reading;
    ``rows`` are the places (artefact, row, column) of the printed numbers concerned. Raises LookupError if there is no
    such source, or the printed rows are not installed.
    """
    return _texts("erratum", source)


def notes(source: str | None = None) -> pd.DataFrame:
    """Return notes on print that change nothing: as :func:`errata`, without ``materiality`` and ``rows``."""
    return _texts("note", source).drop(columns=["materiality", "rows"])


def _texts(kind, source):
    forbid_override("the list of errata, which compares corrections with print,")
    rows = [row for key in _chosen(source) for kind_of, *row in _filled(key) if kind_of == kind]
    return pd.DataFrame(rows, columns=["source", *_ERRATUM, "rows"])


_ERRATUM = ("place", "printed", "corrected", "evidence", "effect", "materiality", "settle")


@cache
def _filled(source):
    """Return the texts of all errata and notes of a source, each after its kind, with computed numbers filled in."""
    _open(source)
    fill = _Braces(source).format
    return [
        (
            kind,
            source,
            *(fill(" ".join(entry.get(c, "").split())) for c in _ERRATUM),
            tuple(map(tuple, entry.get("rows", ()))),
        )
        for kind in ("erratum", "note")
        for entry in stored.toml(f"papers/{source}/errata.toml", optional=True).get(kind, ())
    ]


class _Braces(Formatter):
    """Fills the braces of ``errata.toml``: a name, or the place of a row as ``artefact/row/column``.

    A name is defined by a public function of the source's ``errata.py``; a place stands for the value reproduced there,
    in the printed unit.
    """

    def __init__(self, source):
        self.source, room = source, import_module(f"book.papers.{source}.errata")
        self.numbers = {}
        for name, function in getmembers(room, isfunction):
            if function.__module__ == room.__name__ and not name.startswith("_"):
                self.numbers |= function()

    def get_field(self, field_name, args, kwargs):
        if field_name in self.numbers:
            return self.numbers[field_name], field_name
        row = row_at(self.source, *field_name.split("/"))
        return _in_unit(_found(row)[0].value, factor(row.unit)), field_name


@cache
def _objected(source):
    """Map the places of printed numbers that an erratum names to whether they are right."""
    entries = stored.toml(f"papers/{source}/errata.toml", optional=True).get("erratum", ())
    says = {True: "not judged", False: "no"}
    return {
        tuple(place): says[entry["materiality"] == STALE]
        for entry in entries
        for place in entry.get("rows", ())
    }


@dataclass(frozen=True)
class WithNote:
    """A reproduced value with a remark for the scorecard, and for a claim the charitable reading it needs."""

    value: object
    note: str
    fair: str = ""


@cache
def _computed(source, artefact):
    """Return the values of an artefact's functions and claims, checked: place to value or function."""
    reader = Reader(source, artefact)
    values = recomputed(reader)
    seen = {entry.place for entry in reader.read}
    for (row, column), value in values.items():
        place = (artefact, row, column)
        if place not in published(source):
            raise LookupError(f"{source} reproduces {place}, which is not in published.csv")
        if place in seen and not callable(value):
            raise LookupError(f"{place} was read to reproduce itself")
    for label, value in _claimed(source, artefact).items():
        if (artefact, label, "") in published(source):
            raise LookupError(f"{source} claims {label!r} of {artefact}, which is in published.csv too")
        values[label, ""] = value
    return values


@cache
def _claimed(source, artefact):
    """Return the claims of an artefact: label to truth with remark, or to a function of a reader that returns it."""
    found = {}

    def holds(label, truth, note="", fair=""):
        if label in found:
            raise LookupError(f"{source} claims {label!r} of {artefact} twice")
        found[label] = (
            (lambda read: WithNote(truth(read), note, fair))
            if callable(truth)
            else WithNote(truth, note, fair)
        )

    for check in _registered(source, artefact, stating=True):
        called(check, read=Reader(source, artefact), holds=holds)
    return found


@cache
def _corrected(source, artefact):
    """Return an artefact's values with the errata corrected; empty if its functions take no assumptions."""
    found = {}
    for function in _registered(source, artefact):
        taken = signature(function).parameters.get("assumptions")
        if taken:
            corrected = taken.default.corrected()
            found |= _placed(called(function, read=Reader(source, artefact), assumptions=corrected))
    return found


def _rows(source, artefact):
    """Return the rows that a source prints in one artefact (``published.csv``), then its claims."""
    printed = [row for row in published(source).values() if row.artefact == artefact]
    stated = [Row(source, artefact, one, "", "true", 0.0, "1", "claim") for one in _claimed(source, artefact)]
    return [*printed, *stated]


def row_at(source, artefact, row, column=""):
    """Return the printed row, or the claim, at one place.

    Raises LookupError if the source prints nothing there.
    """
    for one in _rows(source, artefact):
        if one.place == (artefact, row, column):
            return one
    raise LookupError(f"{source} prints nothing at {(artefact, row, column)}")


def compute(row, shifts=None):
    """Compute one printed row.

    Returns its value in SI units (None if nothing computes it), a remark, and the printed rows that were read.
    """
    found, read = _found(row, shifts)
    return found.value, found.note, read


def _found(row, shifts=None, computed=_computed):
    """Return the value of a row with its remark, and the rows that were read for it."""
    value = computed(row.source, row.artefact).get((row.row, row.column))
    reader = Reader(row.source, row.artefact, row, shifts)
    if callable(value):
        value = value(reader)
    found = value if isinstance(value, WithNote) else WithNote(value, "")
    if str(getattr(found.value, "dtype", "")) == "bool":
        found = WithNote(bool(found.value), found.note, found.fair)
    return found, reader.read


@cache
def _graded(source, artefact):
    """The scorecard rows of one artefact."""
    return [_grade_row(row) for row in _rows(source, artefact)]


def _grade_row(row):
    found, read = _found(row)
    note = ": ".join(filter(None, [found.fair, found.note]))
    absent = (row.row, row.column) not in _computed(row.source, row.artefact)
    reproduced, error, grade = "", math.nan, "-"
    if absent and row.kind not in ("input", "measured", "quoted"):
        grade = "missing"
    elif not absent:
        scale = factor(row.unit)
        reproduced = _in_unit(found.value, scale)
        error, grade = grade_of(row.text, row.resolution, reproduced)
        if row.kind == "claim":
            grade = "does not hold" if grade != "exact" else "loosely worded" if found.fair else "holds"
        elif grade not in ("exact", "missing") and read:
            ends = _reach(row, read)
            if ends and _within_reach(row, *(end / scale for end in ends)):
                grade = "consistent"
    return (
        row.source, row.artefact, row.row, row.column, row.printed, row.unit, row.kind,
        reproduced, error, grade, *_right(row, grade, reproduced), note,
    )  # fmt: skip


def _right(row, grade, reproduced):
    """Return whether a printed row is right, and the corrected model's value for it, if that can be computed."""
    corrected, agrees = "", "not judged"
    if (row.row, row.column) in _corrected(row.source, row.artefact):
        corrected = _in_unit(_found(row, computed=_corrected)[0].value, factor(row.unit))
        recomputes = grade in ("exact", "consistent")
        same = corrected == reproduced or grade_of(row.text, row.resolution, corrected)[1] == "exact"
        # a cell that is not reproduced proves nothing when corrections change it
        agrees = ("yes" if same else "no") if recomputes else "not judged"
    by_grade = {"does not hold": "no", "holds": "yes", "loosely worded": grade, "-": "-", "missing": "-"}
    return _objected(row.source).get(row.place) or by_grade.get(grade, agrees), corrected


def _in_unit(value, scale):
    if isinstance(value, tuple):
        return tuple(float(v) / scale for v in value)
    if value is None or isinstance(value, (bool, str)):
        return value
    return float(value) / scale


def _reach(row, read):
    """Return the interval of a value when each printed number behind it varies within its rounding."""
    places = list(dict.fromkeys(entry.place for entry in read if entry.resolution))
    base = compute(row)[0]
    if not isinstance(base, (int, float)) or isinstance(base, bool):
        return None
    ends = []
    for sign in (1, -1):
        shifts = {}
        for place in places:
            up, down = (compute(row, {place: s})[0] for s in (1, -1))
            shifts[place] = sign if up >= down else -sign
        ends.append(compute(row, shifts)[0])
    return min(ends), max(ends)


def _within_reach(row, low, high):
    printed_low, printed_high = _printed_ends(row.text)
    half = row.resolution / 2 * (1 + 1e-9)
    return low <= printed_high + half and high >= printed_low - half


def _chosen(source):
    return sources() if source is None else [validation.one_of("source", source, sources())]


def _artefacts(source):
    """Return the artefacts of a source in print order, those with only claims last."""
    _open(source)
    printed = (row.artefact for row in published(source).values())
    return list(dict.fromkeys([*printed, *(artefact for key, artefact in REPRODUCERS if key == source)]))


@cache
def _open(source):
    """Import all modules of a source, in the library and in the book, but those that draw: so all is registered."""
    draw = f"book.papers.{source}.figures", f"book.papers.{source}.explorers"
    for name in (f"inferlib.papers.{source}", f"book.papers.{source}"):
        for module in pkgutil.walk_packages(import_module(name).__path__, f"{name}."):
            if module.name not in draw:
                import_module(module.name)
