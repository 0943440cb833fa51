"""What the back of the book is generated from: all numbers, all errata, all equations, and where they are."""

import html
import re
import tomllib
from collections import namedtuple
from functools import cache, partial
from importlib import import_module
from importlib.resources import files

import pandas as pd

from book.audit import grading
from book.audit.filter_table import Finder
from book.audit.number_format import format_value, wrap_lines
from book.audit.scorecard_view import index
from inferlib import papers
from inferlib.equation import DERIVATIONS, EQUATIONS, called_by
from tokenprice import predictors

FOLDED = 6  # an equation of more lines waits for a click
WRITTEN_OUT = 40  # and one of more than these stands in the chapter of equations alone
OPEN = "would settle it"  # says of an inferred reading which number would decide it


@cache
def _places(source):
    return index(source).places


def page_of(source, artefact):
    """The address, inside the book, of the place that shows an artefact of a source: in its record or a story.

    Such as ``"erdil2025_record.html#er-table-1"``; empty where the source has no page.
    """
    place = _places(source)[artefact] or ""
    return f"{source}_record.html{place}" if place.startswith("#") else place


def scorecard():
    """The whole scorecard as a table to search in the page, each row linked to where it is recomputed."""
    card = grading.scorecard()
    places = {(s, a): page_of(s, a) for s, a in set(zip(card.source, card.artefact, strict=True))}
    links = [places[at] for at in zip(card.source, card.artefact, strict=True)]
    frame = _told(card)[["source", "kind", "printed", "here", "grade", "right", "corrected", "note"]]
    frame.insert(1, "place", card.artefact)
    frame.insert(2, "what", [", ".join(filter(None, at)) for at in zip(card.row, card.column, strict=True)])
    filters, title = ("source", "kind", "grade", "right"), "Every number that the sources print"
    return Finder(frame, title, filters, {"place": links})


def _told(card):
    """Rows of the scorecard with rounded numbers; a claim shows its grade alone."""
    frame = card.rename(columns={"reproduced": "here"})
    frame["source"] = [predictors.label(key) for key in card.source]
    frame["corrected"] = card.corrected.mask(card.right != "no", "")  # elsewhere it is the printed number
    for name in ("printed", "here", "corrected"):
        cells = zip(frame[name], frame.unit, frame.kind, strict=True)
        frame[name] = ["" if kind == "claim" else format_value(value, unit) for value, unit, kind in cells]
    return frame


def totals():
    """Rows of every source, and how the results and claims came out.

    Returns one row a source and one for all: ``printed`` numbers and claims, ``results`` (kinds model and
    derived), how many of them come out ``exact or consistent`` (also in per cent), ``claims`` with how many
    of them ``hold``, are ``loosely worded`` and ``do not hold``; its ``errata``, and how many rows are
    ``wrong`` because of them; and how many of the results were ``not judged``. What only restates a number
    (kind identity) is printed, but no result.
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
    """The question that each source was written to answer."""
    rooms = [papers.metadata(key) for key in papers.sources()]
    return pd.DataFrame([(room["label"], room["question"]) for room in rooms], columns=["source", "question"])


def scope():
    """What each source models, by its own statement (``source.toml``): one row an ingredient, with full circles,
    half and empty ones.
    """
    table = pd.DataFrame({papers.label(key): papers.metadata(key)["scope"] for key in papers.sources()})
    table.index = table.index.str.replace("_", " ").str.replace("kv", "KV")
    return table.replace({"yes": "●", "partly": "◐", "no": "○"}).reset_index(names="")


def slug(*words):
    """An anchor of these words, such as ``eq-liminal2025-8``."""
    return re.sub(r"[^a-z0-9_]+", "-", "-".join(words).lower()).strip("-")


class Entries(list):
    """Errata of one source as a list to read, with its notes folded below; each leads to the rows that it concerns."""

    def __init__(self, title, entries, notes=()):
        super().__init__(entries)
        self.title, self.notes = title, notes

    def _repr_markdown_(self):
        body, below = ("".join(self._entry(*entry) for entry in own) for own in (self, self.notes))
        made = f'## {self.title}\n\n<dl class="entries mathjax_ignore">{body}</dl>\n'
        if self.notes:
            summary = f"<summary>Notes on {html.escape(self.title)} ({len(self.notes)})</summary>"
            made += f'\n<details>{summary}<dl class="entries mathjax_ignore">{below}</dl></details>\n'
        return made.replace("$", "&#36;")  # no mathematics between two dollars, in a notebook either

    def _entry(self, head, texts, rows):
        own = slug("err", head)
        parts = [f"<div><b>{name}</b> {html.escape(text)}</div>" for name, text in texts.items() if text]
        for told, address in rows:
            parts.append(f'<div><b>row</b> <a href="{address}">{html.escape(told)}</a></div>')
        weight = texts.get("weight") or "note"
        menus = f'data-weight="{weight}" data-open="{"yes" if texts.get(OPEN) else "no"}"'
        return (
            f'<div class="entry" id="{own}" {menus}><dt>{html.escape(head)} <a href="#{own}" '
            f'aria-label="link to this entry">#</a></dt><dd>{"".join(parts)}</dd></div>'
        )

    def __repr__(self):
        return "\n".join([self.title, *(f"  {head}" for head, _, _ in self)])


def errata():
    """All errata and notes of all sources, each with the rows that it concerns: the weightiest of a source first.

    Returns one for each source that has any.
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
    """What a row of the scorecard says, and the address of the section that recomputes it."""
    artefact, row, column = place
    card = _told(grading.scorecard(source, artefact))
    found = card[(card.row == row) & (card.column == column)].iloc[0]
    told = ", ".join(filter(None, place))
    if found.here != "":
        told += f": {found.printed} in print, {found.here} here"
    return told, page_of(source, artefact)


class Equations(list):
    """Equations of one room, each with its number, function, meaning and form; one too long for a line is broken."""

    def __init__(self, source, title, rows):
        super().__init__(rows)
        self.source, self.title = source, title

    def _repr_markdown_(self):
        shown, named = [], set()
        for row in self:
            own = slug("eq", self.source, row.number or row.function)
            if own in named:  # one number of two functions, or one function without a number in two forms
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


def prints(source):
    """What a source prints, artefact by artefact: how much of it, how much comes out here, and the page that has it.

    Columns ``artefact, printed, here, made, why, page``. ``made`` is ``anew``, ``partly`` or ``not``, with the reason
    of ``gaps.toml``, which also has the page of what no row of ``published.csv`` belongs to.
    """
    card, places = grading.scorecard(source), _places(source)
    path = files(f"book.papers.{source}") / "gaps.toml"
    gaps = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    rows = []
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
        rows.append((name, *shown, gap["made"], gap["why"], page))
    return pd.DataFrame(rows, columns=["artefact", "printed", "here", "made", "why", "page"])


def _several(count, name):
    return f"{count} {name}{'s' * (count != 1)}" if count else ""


class Prints:
    """:func:`prints` of one source as a table to read, whose artefacts are links: plain HTML without a script."""

    def __init__(self, source):
        self.source, self.frame = source, prints(source)

    def _repr_markdown_(self):
        rows = "".join(
            f"<tr><td>{_linked(row)}</td><td>{row.printed}</td><td>{row.here}</td>"
            f"<td>{row.made}</td><td>{html.escape(row.why)}</td></tr>"
            for row in self.frame.itertuples()
        )
        heads = "".join(f"<th>{name}</th>" for name in ("", "printed", "here", "made", "why"))
        counts = ", ".join(f"{n} {made}" for made, n in self.frame.made.value_counts().items())
        return (
            f"## {predictors.label(self.source)}\n\n{len(self.frame)} artefacts: {counts}.\n\n"
            f'<table class="readable"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>\n'
        )

    def __repr__(self):
        return self.frame.to_string(index=False)


def _linked(row):
    return f'<a href="{row.page}">{html.escape(row.artefact)}</a>' if row.page else html.escape(row.artefact)


class Walk(Equations):
    """Numbered equations in the order of print, each with what it says in a sentence and where it is used."""

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
            return f'{told} It is too long for this page, and stands in <a href="{where}">the chapter of equations</a>.'
        return f"{told}\n\n{formula}"

    def _used(self, row):
        """Which numbered equations take this one, or which other functions where none does."""
        callers = self.callers.get(row.function, [])
        numbers = {other.number for other in self.every if other.function in callers} - {row.number}
        numbers = sorted(filter(str.isdigit, numbers), key=int)
        if numbers:
            return f"Used in equation{'s' * (len(numbers) > 1)} {', '.join(numbers)}."
        return f"Used in {', '.join(f'`{name}`' for name in callers)}." if callers else ""


def walk(source, first, last):
    """The numbered equations of a source from one number to another, walked through in the order of print.

    Raises LookupError where the source has no equation of one of these numbers.
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
    """What calls each equation of a source: equations that call it on symbols or take it by name, and derivations."""
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
        grading._open(source)  # the table may have been kept from an earlier run
    return EQUATIONS.get((source, function))


def _meaning(source, function):
    """The first paragraph of the docstring of an equation or a derivation, as Markdown."""
    entry = _entry(source, function) or DERIVATIONS[source, function]
    text = " ".join(entry.function.__doc__.split("\n\n")[0].split())
    # What stands between backticks is code, the rest is no Markdown.
    parts = text.replace("``", "`").split("`")
    parts[::2] = [re.sub(r"([*_<$\[\]\\^~])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def _expression(source, row):
    """The equation of a row as SymPy has it: its left side as LaTeX, and its right side."""
    left = re.split(r" (?:=|\\approx) ", row.latex)[0]
    entry = _entry(source, row.function)
    if entry is not None:
        return left, entry.expression(row.number or None)
    steps = DERIVATIONS[source, row.function].function()
    return left, next(step for step in steps if step.number == row.number).equation.rhs


def equations(source):
    """Every equation of a source, numbered ones first, as the index shows them."""
    rows = grading.equations(source).itertuples(index=False)
    return Equations(source, predictors.label(source), rows)


def own_equations(room, title):
    """The equations of a shared room (``"principles"`` or ``"serving"``), as the index shows them."""
    import_module("tokenprice.derivations" if room == "serving" else f"inferlib.{room}.derivations")
    Row = namedtuple("Row", "number function form chapter latex")
    entries = [entry for (key, _), entry in EQUATIONS.items() if key == room]
    return Equations(
        room, title, (Row(e.number or "", e.name, e.form, e.chapter, e.latex()) for e in entries)
    )
