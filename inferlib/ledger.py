"""The ledger: what each source printed, what this library computes for it, and how well they agree.

``published.csv`` of a source holds every number it prints. A reproducer (see
:func:`inferlib.equation.reproduces`) computes the rows of one artefact. It sees printed numbers only
through a :class:`Reader`, which refuses the rows that it has to compute.
"""

import math
import pkgutil
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from importlib import import_module
from importlib.resources import files

from inferlib import checks
from inferlib.equation import DERIVATIONS, EQUATIONS, REPRODUCERS, latex
from inferlib.kept import kept
from inferlib.units import factor

# Thousands are grouped by three, or not at all.
_GROUPED = re.compile(r"[^,]*|[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
KINDS = ("model", "derived", "claim", "input", "measured", "quoted")
GRADES = ("exact", "consistent", "1%", "5%", "20%", "off", "missing", "-")
COLUMNS = (
    "source", "artefact", "row", "column", "printed", "unit", "kind",
    "reproduced", "relative_error", "grade", "note",
)  # fmt: skip


def sources():
    """The keys of all sources that have a room, in alphabetical order.

    Examples
    --------
    >>> "erdil2025" in sources()
    True
    """
    import inferlib.papers

    return sorted(module.name for module in pkgutil.iter_modules(inferlib.papers.__path__) if module.ispkg)


def scorecard(source=None, *artefacts):
    """Every printed number beside the recomputed one.

    Parameters
    ----------
    source : str, optional
        Key of one source; all sources when not given.
    *artefacts : str
        Such as ``"Table 1"``, and only these are computed; all of the source when none is given.

    Returns
    -------
    pandas.DataFrame
        Columns ``source, artefact, row, column, printed, unit, kind, reproduced, relative_error, grade,
        note``. ``reproduced`` is in the printed unit. Grades: ``exact`` (within half the printed
        resolution), ``consistent`` (within what the rounding of its printed inputs allows), ``1%``, ``5%``,
        ``20%``, ``off``, ``missing``; ``-`` for rows that nothing here has to compute.

    Raises
    ------
    LookupError
        If there is no such source or artefact.

    Examples
    --------
    >>> str(scorecard("erdil2025", "Table 1").grade.unique()[0])
    'exact'
    """
    import pandas as pd

    places = [(key, artefact) for key in _chosen(source) for artefact in _artefacts(key)]
    for artefact in artefacts:
        checks.one_of("artefact", artefact, [name for _, name in places])
    rows = [row for key, name in places if not artefacts or name in artefacts for row in _graded(key, name)]
    return pd.DataFrame(rows, columns=COLUMNS).astype({"printed": object, "reproduced": object})


def card(source, *artefacts, kinds=("model", "derived", "claim", "measured"), unfold=True):
    """The scorecard of some artefacts, as a chapter shows it; a click on a number unfolds how it is made.

    Parameters
    ----------
    source : str
    *artefacts : str
        Such as ``"Table 1"``; all of the source when none is given.
    kinds : tuple of str
        Which kinds of rows to show; rows that nothing computes are left out.
    unfold : bool
        Whether numbers carry what :func:`inferlib.explain` says of them; leave it off where a table of
        hundreds of rows would make the page heavy.

    Returns
    -------
    inferlib.style.Table
        Its ``frame`` is the pandas DataFrame shown.
    """
    from inferlib.style import table

    rows = scorecard(source, *artefacts)
    rows = rows[rows.kind.isin(kinds) & (rows.grade != "-")]
    shown = rows[["row", "column", "printed", "reproduced", "unit", "grade", "note"]]
    shown = shown.rename(columns={"row": "", "column": " ", "reproduced": "here"}).replace(
        {"unit": {"1": ""}}
    )
    kept = shown[[name for name in shown if (shown[name] != "").any()]]
    return table(kept, unfolded=_unfolded(rows) if unfold else None)


def _unfolded(rows):
    """What explain says of the number that each row has here, by place in the table."""
    from inferlib.explanation import explain

    trees = [explain(row).folded() for _, row in rows.iterrows()]
    return {(i, "here"): tree for i, tree in enumerate(trees) if tree}


def misses(source, *artefacts, unfold=True):
    """The rows of a source that do not come out as printed, with the reason, as a chapter shows them.

    Parameters
    ----------
    source : str
    *artefacts : str
        Such as ``"Table 1"``; all of the source when none is given.
    unfold : bool
        As for :func:`card`.

    Returns
    -------
    inferlib.style.Table
    """
    from inferlib.style import table

    rows = scorecard(source, *artefacts)
    rows = rows[~rows.grade.isin(["exact", "-"])]
    rows = rows.rename(columns={"reproduced": "here"})
    places = zip(rows.artefact, rows.row, rows.column, strict=True)
    shown = rows[["printed", "here", "unit", "grade", "note"]].replace({"unit": {"1": ""}})
    shown.insert(0, "place", [", ".join(part for part in place if part) for place in places])
    return table(shown, unfolded=_unfolded(rows) if unfold else None)


def summary(source=None):
    """How many rows of each artefact have which grade (kinds ``model`` and ``derived``, as totals quote)."""
    card = scorecard(source)
    card = card[card.kind.isin(["model", "derived"])]
    counts = card.groupby(["source", "artefact"], sort=False).grade.value_counts().unstack(fill_value=0)
    return counts.reindex(columns=[g for g in GRADES if g in counts]).assign(rows=counts.sum(axis=1))


def equations(source=None):
    """Every equation of the sources: its number, form, function, chapter and LaTeX.

    Returns
    -------
    pandas.DataFrame
        Columns ``source, number, name, form, function, chapter, latex``. ``form`` is ``function`` (it can be
        called), ``step`` (it stands in a derivation), ``approximation``, ``structure`` or ``empty``.
    """
    import pandas as pd

    rows = [row for key in _chosen(source) for row in kept(f"equations of {key}", partial(_equations, key))]
    columns = ["source", "number", "name", "form", "function", "chapter", "latex"]
    table = pd.DataFrame(rows, columns=columns)
    order = table.assign(n=pd.to_numeric(table.number, errors="coerce")).sort_values(
        ["source", "n"], kind="stable"
    )
    return table.loc[order.index].reset_index(drop=True)


def _equations(key):
    _open(key)
    rows = []
    for entry in (e for (s, _), e in EQUATIONS.items() if s == key):
        for number in (entry.number, *entry.also):
            text = entry.latex(number)
            rows.append((key, number or "", entry.name, entry.form, entry.name, entry.chapter, text))
    return rows + list(_steps(key, printed={row[1] for row in rows}))


def _steps(key, printed):
    """Rows for the numbered equations that only a derivation shows."""
    for (source, name), entry in DERIVATIONS.items():
        if source != key:
            continue
        for step in entry.function():
            if step.number and step.number not in printed:
                printed.add(step.number)
                text = latex(step.equation)
                yield (key, step.number, name, step.form, name, entry.chapter, text)


def errata(source=None):
    """What is wrong in print: place, printed, corrected, evidence and effect.

    Numbers in the texts are computed: ``errata.toml`` holds names in braces, which the source's
    ``errata_numbers`` fills.

    Returns
    -------
    pandas.DataFrame
        Columns ``source, place, printed, corrected, evidence, effect``.
    """
    import pandas as pd

    rows = [row for key in _chosen(source) for row in kept(f"errata of {key}", partial(_errata, key))]
    return pd.DataFrame(rows, columns=["source", *_ERRATUM])


_ERRATUM = ("place", "printed", "corrected", "evidence", "effect")


def _errata(source):
    import tomllib

    path = files("inferlib.papers") / source / "errata.toml"
    if not path.is_file():
        return []
    numbers = _open(source)["tables"].errata_numbers()
    entries = tomllib.loads(path.read_text("utf-8"))["erratum"]
    return [
        (source, *(" ".join(entry[c].split()).format_map(numbers) for c in _ERRATUM)) for entry in entries
    ]


@dataclass(frozen=True)
class Row:
    """One printed number, as ``published.csv`` holds it."""

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
        """Where it stands: artefact, row, column."""
        return (self.artefact, self.row, self.column)

    @property
    def printed(self):
        """The printed value: a number where it is one, else the text as printed."""
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
    """The number a printed text is, or None: ``"43,000"`` is 43000, ``"-"`` and ``"6-12"`` are none.

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
    """Both ends of a printed range, or None.

    Examples
    --------
    >>> as_range("6-12"), as_range("-12")
    ((6, 12), None)
    """
    low, dash, high = text.partition("-")
    ends = (as_number(low), as_number(high)) if dash and low.strip() and not low.endswith("e") else (None,)
    return None if None in ends else ends


def last_digit(text):
    """The value of one unit in the last printed digit.

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
    """All printed rows of a source, in the order of its ``published.csv``.

    Raises
    ------
    LookupError
        If there is no such source.
    ValueError
        If the file is malformed: a missing column, an unknown kind, a bad resolution or a repeated place.
    """
    import csv
    import io

    checks.one_of("source", source, sources())
    text = (files("inferlib.papers") / source / "published.csv").read_text("utf-8")
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
    """Printed numbers of a source, as far as a reproducer may read them.

    Inputs, measurements and quotations may always be read; derived rows only by a function that computes
    another derived row; the row itself never; rows of kind ``model`` and ``claim`` never.

    Parameters
    ----------
    source, artefact : str
        What is being reproduced.
    own : Row, optional
        The row being computed, if it is one.
    shifts : mapping, optional
        Place to a shift in units of half the printed resolution: how ``consistent`` is found out.
    """

    def __init__(self, source, artefact, own=None, shifts=None):
        self.source, self.artefact, self.own = source, artefact, own
        self.shifts = shifts or {}
        self.read = []

    def __call__(self, row, column="", artefact=None):
        """The printed number at a place in SI units; the artefact is the reproducer's own by default."""
        place = (artefact or self.artefact, row, column)
        rows = published(self.source)
        if place not in rows:
            raise LookupError(f"{self.source} prints nothing at {place}")
        entry = rows[place]
        if self.own is not None and place == self.own.place:
            raise LookupError(f"{place} may not be read to reproduce itself")
        derived = ["derived"] if self.own is not None and self.own.kind == "derived" else []
        if entry.kind not in ("input", "measured", "quoted", *derived):
            raise LookupError(f"{place} is of kind {entry.kind!r} and may not be read by a reproducer")
        self.read.append(entry)
        shift = self.shifts.get(place, 0) * entry.resolution / 2 * factor(entry.unit)
        value = entry.value
        return tuple(v + shift for v in value) if isinstance(value, tuple) else value + shift


@dataclass(frozen=True)
class Noted:
    """A reproduced value with a remark for the scorecard."""

    value: object
    note: str


@cache
def _computed(source, artefact):
    """What the reproducer of an artefact returns: place to value or function."""
    _open(source)
    reproducer = REPRODUCERS.get((source, artefact))
    if reproducer is None:
        return {}
    reader = Reader(source, artefact)
    values = reproducer(reader)
    seen = {entry.place for entry in reader.read}
    for (row, column), value in values.items():
        place = (artefact, row, column)
        if place not in published(source):
            raise LookupError(f"{source} reproduces {place}, which is not in published.csv")
        if place in seen and not callable(value):
            raise LookupError(f"{place} was read to reproduce itself")
    return values


def compute(row, shifts=None):
    """Compute one printed row.

    Returns
    -------
    value
        In SI units, or None where nothing computes it.
    note : str
    read : list of Row
        The printed rows that the value was computed from.
    """
    value = _computed(row.source, row.artefact).get((row.row, row.column))
    reader = Reader(row.source, row.artefact, row, shifts)
    if callable(value):
        value = value(reader)
    note = ""
    if isinstance(value, Noted):
        value, note = value.value, value.note
    if str(getattr(value, "dtype", "")) == "bool":
        value = bool(value)
    return value, note, reader.read


@cache
def _graded(source, artefact):
    """The scorecard rows of one artefact."""
    rows = [row for row in published(source).values() if row.artefact == artefact]
    return kept(f"rows of {source}, {artefact}", lambda: [_grade_row(row) for row in rows])


def _grade_row(row):
    value, note, read = compute(row)
    absent = (row.row, row.column) not in _computed(row.source, row.artefact)
    reproduced, error, grade = "", math.nan, "-"
    if absent and row.kind in ("model", "derived", "claim"):
        grade = "missing"
    elif not absent:
        scale = factor(row.unit)
        reproduced = _in_unit(value, scale)
        error, grade = grade_of(row.text, row.resolution, reproduced)
        if grade not in ("exact", "missing") and read:
            ends = _reach(row, read)
            if ends and _within_reach(row, *(end / scale for end in ends)):
                grade = "consistent"
    return (
        row.source, row.artefact, row.row, row.column, row.printed, row.unit, row.kind,
        reproduced, error, grade, note,
    )  # fmt: skip


def _in_unit(value, scale):
    if isinstance(value, tuple):
        return tuple(float(v) / scale for v in value)
    if value is None or isinstance(value, (bool, str)):
        return value
    return float(value) / scale


def grade_of(text, resolution, reproduced):
    """Relative error and grade of one reproduced value against a printed text, both in the printed unit.

    Parameters
    ----------
    text : str
        A number, a range (``"6-12"``), a relation (``"<= 20"``), ``"true"``, or ``"-"`` for infeasible.
    resolution : float
        One unit of the last significant printed digit.
    reproduced : float, pair of float, bool or None
        None where the library finds the point infeasible.

    Returns
    -------
    relative_error : float
        NaN where there is no number to compare with.
    grade : str

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
    """Signed relative error of one number, and whether it is within half the resolution."""
    if isinstance(got, tuple):
        return (math.nan, False)
    if not math.isfinite(got):
        raise ValueError(f"a reproducer returned {got} for the printed {text!r}")
    low, high = _printed_ends(text)
    nearest = min(max(got, low), high)
    slack = resolution / 2 * (1 + 1e-9)
    # A strict relation does not hold at its bound, nor beyond it.
    strict = text[0] in "<>" and "=" not in text
    close = abs(got - nearest) <= slack and not (strict and not low < got < high)
    if nearest:
        return (got - nearest) / abs(nearest), close
    return math.copysign(math.inf, got) if got else 0.0, close


def _printed_ends(text):
    """The interval a printed text stands for."""
    if text[0] in "<>":
        bound = as_number(text.strip("<>= "))
        return (-math.inf, bound) if text[0] == "<" else (bound, math.inf)
    return as_range(text) or (as_number(text),) * 2


def _reach(row, read):
    """The interval the value covers when every printed number it was computed from moves within its rounding."""
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
    return sources() if source is None else [checks.one_of("source", source, sources())]


def _artefacts(source):
    return list(dict.fromkeys(row.artefact for row in published(source).values()))


@cache
def _open(source) -> Mapping:
    """Import every module of a source's room, so that its equations and reproducers are registered."""
    room = import_module(f"inferlib.papers.{source}")
    names = [module.name for module in pkgutil.iter_modules(room.__path__)]
    return {name: import_module(f"inferlib.papers.{source}.{name}") for name in names}
