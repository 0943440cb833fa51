"""Generated back matter: tables of all numbers, errata and equations, with links to where they are computed."""

import re
from collections import namedtuple
from functools import cache, partial
from importlib import import_module

import pandas as pd

from book import stored
from book.audit import grading
from book.audit.filter_table import Finder
from book.audit.number_format import format_value, wrap_lines
from book.audit.scorecard_view import index
from book.frames import frame
from inferlib import papers
from inferlib.equation import DERIVATIONS, EQUATIONS, called_by
from tokenprice import predictors

FOLDED = 6  # equations with more lines are folded
WRITTEN_OUT = 40  # longer equations are shown only in the chapter of equations
OPEN = "would settle it"  # label of the number that would decide an inferred reading


@cache
def _places(source):
    return index(source).places


def page_of(source, artefact):
    """Return the book's address where an artefact of a source is shown, in its record or a story.

    For example ``"erdil2025_record.html#er-table-1"``; empty if the source has no page.
    """
    place = _places(source)[artefact] or ""
    return f"{source}_record.html{place}" if place.startswith("#") else place


def scorecard():
    """Return the whole scorecard as a searchable table, with links from each row to where it is recomputed."""
    card = grading.scorecard()
    places = {(s, a): page_of(s, a) for s, a in set(zip(card.source, card.artefact, strict=True))}
    links = [places[at] for at in zip(card.source, card.artefact, strict=True)]
    frame = _told(card)[["source", "kind", "printed", "here", "grade", "right", "corrected", "note"]]
    frame.insert(1, "place", card.artefact)
    frame.insert(2, "what", [", ".join(filter(None, at)) for at in zip(card.row, card.column, strict=True)])
    filters, title = ("source", "kind", "grade", "right"), "Every number that the sources print"
    return Finder(frame, title, filters, {"place": links})


def _told(card):
    """Return rows of the scorecard with rounded numbers; a claim shows its grade only."""
    frame = card.rename(columns={"reproduced": "here"})
    frame["source"] = [predictors.label(key) for key in card.source]
    frame["corrected"] = card.corrected.mask(
        card.right != "no", ""
    )  # for other rows it is the printed number
    for name in ("printed", "here", "corrected"):
        cells = zip(frame[name], frame.unit, frame.kind, strict=True)
        frame[name] = ["" if kind == "claim" else format_value(value, unit) for value, unit, kind in cells]
    return frame


def totals():
    """Count the rows of every source, and grades of its results and claims.

    Returns one row per source and one for all: ``printed`` numbers and claims, ``results`` (kinds model and derived),
    how many of them are ``exact or consistent`` (also in per cent), ``claims`` with how many ``hold``, are ``loosely
    worded`` and ``do not hold``, the number of ``errata``, rows that are ``wrong`` because of them, and results ``not
    judged``. Rows that restate a number (kind identity) are printed, but are not results.
    """
    card, causes = grading.scorecard(), grading.errata().source
    found = [
        _total(predictors.label(key), own, sum(causes == key))
        for key, own in card.groupby("source", sort=False)
    ]
    return pd.DataFrame([*found, _total("all", card, len(causes))])


def _total(name, card, causes):
    results = card[card.kind.isin(["model", "derived"])]
    good = int(results.grade.isin(["exact", "consistent"]).sum())
    claims = card.grade[card.kind == "claim"].value_counts()
    return {
        "source": name, "printed": len(card), "results": len(results), "exact or consistent": good,
        "%": 100 * good / len(results) if len(results) else float("nan"), "claims": int(claims.sum()),
        "hold": int(claims.get("holds", 0)), "loosely worded": int(claims.get("loosely worded", 0)),
        "do not hold": int(claims.get("does not hold", 0)), "errata": causes, "wrong": int((card.right == "no").sum()),
        "not judged": int((results.right == "not judged").sum()),
    }  # fmt: skip


def questions():
    """Return the question that each source was written to answer."""
    rooms = [papers.metadata(key) for key in papers.sources()]
    return pd.DataFrame([(room["label"], room["question"]) for room in rooms], columns=["source", "question"])


def scope():
    """Return what each source models, by its own statement (``source.toml``): a row per ingredient, with full, half
    and empty circles.
    """
    table = pd.DataFrame({papers.label(key): papers.metadata(key)["scope"] for key in papers.sources()})
    table.index = table.index.str.replace("_", " ").str.replace("kv", "KV")
    return table.replace({"yes": "●", "partly": "◐", "no": "○"}).reset_index(names="")


def slug(*words):
    """Return an anchor made of these words, such as ``eq-liminal2025-8``."""
    return re.sub(r"[^a-z0-9_]+", "-", "-".join(words).lower()).strip("-")


class Entries(list):
    """Errata of one source as a list, with folded notes below; each links to the rows it concerns."""

    def __init__(self, title, entries, notes=()):
        super().__init__(entries)
        self.title, self.notes = title, notes

    def _repr_markdown_(self):
        about = {"title": self.title, "entries": self, "notes": self.notes}
        return stored.filled("audit/entries.jinja", **about, slug=slug, open=OPEN)

    def __repr__(self):
        return "\n".join([self.title, *(f"  {head}" for head, _, _ in self)])


def errata():
    """Return all errata and notes, each with the rows that it concerns, most important first.

    Returns one entry per source that has any.
    """
    found, errors, notes = [], grading.errata(), grading.notes()
    for source in grading.sources():
        own = list(errors[errors.source == source].itertuples())
        own.sort(key=lambda entry: (*grading.MATERIALITY, "").index(entry.materiality))
        told = [
            (
                _head(entry),
                {"weight": entry.materiality} | _texts(entry),
                [_row(source, at) for at in entry.rows],
            )
            for entry in own
        ]
        minor = [(_head(entry), _texts(entry), []) for entry in notes[notes.source == source].itertuples()]
        if told or minor:
            found.append(Entries(predictors.label(source), told, minor))
    return found


def _head(entry):
    return f"{predictors.label(entry.source)}: {entry.place}"


def _texts(entry):
    texts = {name: getattr(entry, name) for name in ("printed", "corrected", "evidence", "effect")}
    return texts | {OPEN: entry.settle}


def _row(source, place):
    """Return the text of a scorecard row, and the address of the section that recomputes it."""
    artefact, row, column = place
    card = _told(grading.scorecard(source, artefact))
    found = card[(card.row == row) & (card.column == column)].iloc[0]
    told = ", ".join(filter(None, place))
    if found.here != "":
        told += f": {found.printed} in print, {found.here} here"
    return told, page_of(source, artefact)


class Equations(list):
    """Equations of one source, each with number, function, meaning and form; long equations are broken into lines."""

    def __init__(self, source, title, rows):
        super().__init__(rows)
        self.source, self.title = source, title

    def _repr_markdown_(self):
        shown, named = [], set()
        for row in self:
            own = slug("eq", self.source, row.number or row.function)
            if own in named:  # two functions with one number, or one function in two forms without a number
                own = slug("eq", self.source, row.number, row.function)
            named.add(own)
            shown.append(
                f'<div class="entry" id="{own}" data-form="{row.form}">\n\n{self._shown(row)}\n\n</div>'
            )
        return f"## {self.title}\n\n" + "\n\n".join(shown) + "\n"

    def _shown(self, row):
        number = f"**Equation ({row.number})** " if row.number else ""
        meaning = _meaning(self.source, row.function)
        head = f"{number}[{row.function}]({row.chapter}.ipynb), {row.form}: {meaning}"
        lines = wrap_lines(row.latex, partial(_expression, self.source, row))
        if len(lines) == 1:
            return f"{head}\n\n$$\n{lines[0]}\n$$"
        whole = "\n".join([r"\begin{gathered}", " \\\\\n".join(lines), r"\end{gathered}"])
        if len(lines) <= FOLDED:
            return f"{head}\n\n$$\n{whole}\n$$"
        return f"{head}\n\n```{{admonition}} {len(lines)} lines\n:class: dropdown\n$$\n{whole}\n$$\n```"

    def __repr__(self):
        return "\n".join(f"({row.number}) {row.function}" for row in self)


@frame("artefact", "printed", "here", "made", "why", "page")
def prints(source):
    """List what a source prints by artefact: how much, how much is reproduced here, and on which page.

    Columns ``artefact, printed, here, made, why, page``. ``made`` is ``anew``, ``partly`` or ``not``, with the reason
    from ``gaps.toml``, which also has the pages of artefacts without a row in ``published.csv``.
    """
    card, places = grading.scorecard(source), _places(source)
    gaps = stored.toml(f"papers/{source}/gaps.toml", optional=True)
    for name in dict.fromkeys([*places, *gaps]):
        own = card[card.artefact == name]
        numbers, claims = own[own.kind != "claim"], own[own.kind == "claim"]
        printed = [_several(len(numbers), "number"), _several(len(claims), "statement")]
        graded = numbers[numbers.grade != "-"]
        told = graded[graded.kind.isin(["measured", "quoted"])]
        graded = graded.drop(told.index)
        fine = int(graded.grade.isin(["exact", "consistent"]).sum())
        here = [f"{fine} of {_several(len(graded), 'result')} as printed" if len(graded) else ""]
        here += [f"{_several(len(told), 'measurement')} beside a prediction" if len(told) else ""]
        here += [f"{(claims.grade != 'does not hold').sum()} of {len(claims)} hold" if len(claims) else ""]
        gap = gaps.get(name, {"made": "anew", "why": ""})
        page = page_of(source, name) if name in places else gap["page"]
        shown = (", ".join(filter(None, told)) for told in (printed, here))
        yield name, *shown, gap["made"], gap["why"], page


def _several(count, name):
    return f"{count} {name}{'s' * (count != 1)}" if count else ""


class Prints:
    """:func:`prints` of one source as an HTML table with links to the artefacts, without a script."""

    def __init__(self, source):
        self.source, self.frame = source, prints(source)

    def _repr_markdown_(self):
        counts = ", ".join(f"{n} {made}" for made, n in self.frame.made.value_counts().items())
        about = {"title": predictors.label(self.source), "counts": counts, "rows": [*self.frame.itertuples()]}
        return stored.filled("audit/prints.jinja", **about)

    def __repr__(self):
        return self.frame.to_string(index=False)


class Walk(Equations):
    """Numbered equations in print order, each with its meaning in a sentence and where it is used."""

    def _repr_markdown_(self):
        return "\n\n".join(
            f'<div class="entry" id="{slug("eq", self.source, row.number)}">\n\n{self._shown(row)}\n\n</div>'
            for row in self
        )

    def _shown(self, row):
        head, formula = super()._shown(row).split("\n\n", 1)
        where = f"equations.html#{slug('eq', self.source, row.number)}"
        linked = f'<a href="{where}">{row.function}</a>'
        head = head.replace(f"[{row.function}]({row.chapter}.ipynb)", linked, 1)
        told = f"{head} {self._used(row)}".strip()
        if formula.count("\n") > WRITTEN_OUT:
            return f'{told} It is too long for this page; see <a href="{where}">the chapter of equations</a>.'
        return f"{told}\n\n{formula}"

    def _used(self, row):
        """Say which numbered equations use this one, or else which functions."""
        callers = self.callers.get(row.function, [])
        numbers = {other.number for other in self.every if other.function in callers} - {row.number}
        numbers = sorted(filter(str.isdigit, numbers), key=int)
        if numbers:
            return f"Used in equation{'s' * (len(numbers) > 1)} {', '.join(numbers)}."
        return f"Used in {', '.join(f'`{name}`' for name in callers)}." if callers else ""


def walk(source, first, last):
    """Return the numbered equations of a source from ``first`` to ``last``, in print order.

    Raises LookupError if the source has no equation of one of these numbers.
    """
    table = grading.equations(source)
    every = list(table[table.number.ne("")].itertuples(index=False))
    asked = [str(number) for number in range(first, last + 1)]
    rows = [row for number in asked for row in every if row.number == number]
    if missing := sorted(set(asked) - {row.number for row in rows}):
        raise LookupError(f"{source} has no equation {', '.join(missing)}")
    found = Walk(source, "", rows)
    found.every, found.callers = every, _callers(source)
    return found


@cache
def _callers(source):
    """Map each equation of a source to its callers: equations that call it or take it by name, and derivations."""
    grading._open(source)
    found = {}
    for entry in (one for (key, _), one in EQUATIONS.items() if key == source):
        for name in dict.fromkeys([one.name for one in called_by(entry)] + list(entry.arguments)):
            found.setdefault(name, []).append(entry.name)
    for entry in (one for (key, _), one in DERIVATIONS.items() if key == source and one.proves):
        found.setdefault(entry.proves.equation.name, []).append(entry.function.__name__)
    return found


def _entry(source, function):
    if source in grading.sources():
        grading._open(source)  # the table may come from an earlier build
    return EQUATIONS.get((source, function))


def _meaning(source, function):
    """Return the first paragraph of the docstring of an equation or a derivation, as Markdown."""
    entry = _entry(source, function) or DERIVATIONS[source, function]
    text = " ".join(entry.function.__doc__.split("\n\n")[0].split())
    # text between backticks is code, with or without a role before it; elsewhere Markdown is escaped
    parts = re.sub("``|:func:`", "`", text).split("`")
    parts[::2] = [re.sub(r"([*_<$\[\]\\^~])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def _expression(source, row):
    """Return a row's equation: left side as LaTeX, right side as a SymPy expression."""
    left = re.split(r" (?:=|\\approx) ", row.latex)[0]
    entry = _entry(source, row.function)
    if entry is not None:
        return left, entry.expression(row.number or None)
    steps = DERIVATIONS[source, row.function].function()
    return left, next(step for step in steps if step.number == row.number).equation.rhs


def equations(source):
    """Return every equation of a source, numbered ones first, for the index of equations."""
    rows = grading.equations(source).itertuples(index=False)
    return Equations(source, predictors.label(source), rows)


def own_equations(room, title):
    """Return the equations of a shared package (``"principles"`` or ``"serving"``), for the index of equations."""
    import_module("tokenprice.derivations" if room == "serving" else f"inferlib.{room}.derivations")
    Row = namedtuple("Row", "number function form chapter latex")
    entries = [entry for (key, _), entry in EQUATIONS.items() if key == room]
    return Equations(
        room, title, (Row(e.number or "", e.name, e.form, e.chapter, e.latex()) for e in entries)
    )
