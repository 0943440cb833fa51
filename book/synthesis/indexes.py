"""What the back of the book is generated from: all numbers, all errata, all equations, and where they are."""

import json
import re
from functools import cache
from pathlib import Path

from book.synthesis.finder import finder
from inferlib import ledger
from inferlib.papers import rooms

# Every number that a source prints beside an equation, by the chapter that shows them.
PRINTED_EQUATIONS = {
    "erdil2025_toy": ("erdil2025", range(1, 20)),
    "erdil2025_model": ("erdil2025", range(20, 47)),
    "liminal2025": ("liminal2025", range(1, 9)),
    "mazurek2025": ("mazurek2025", range(1, 52)),
}


def chapters(folder="."):
    """The notebooks of the book by stem, each as the list of its cells' texts; none outside the book's folder."""
    return _chapters(str(Path(folder).resolve()))


@cache
def _chapters(folder):
    found = {}
    for path in sorted(Path(folder).glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        found[path.stem] = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    return found


def page_of(source, artefact, folder="."):
    """The address, inside the book, of the section that recomputes an artefact of a source.

    The section is that of the cell which names the artefact; the source's first chapter if none does.

    Returns
    -------
    str
        Such as ``"erdil2025_toy.html#table-1-five-models"``; empty where the source has no chapter here.
    """
    first = ""
    for stem, cells in chapters(folder).items():
        if not stem.startswith(source):
            continue
        first = first or f"{stem}.html"
        heading = ""
        for kind, text in cells:
            if kind == "markdown":
                titles = re.findall(r"^#{2,4} +(.+?)\s*$", text, re.M)
                heading = titles[-1] if titles else heading
            elif f'"{artefact}"' in text and source in text:
                return f"{stem}.html#{anchor(heading)}" if heading else f"{stem}.html"
    return first


def anchor(heading):
    """The identifier that a heading has in the page.

    Examples
    --------
    >>> anchor("Table 1: five models"), anchor("What does *not* reproduce, and why")
    ('table-1-five-models', 'what-does-not-reproduce-and-why')
    """
    plain = re.sub(r"\$[^$]*\$|[`*_]", "", heading.lower())
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def scorecard(folder="."):
    """The whole scorecard as a table to search in the page, each row linked to where it is recomputed."""
    card = ledger.scorecard()
    places = {(s, a): page_of(s, a, folder) for s, a in set(zip(card.source, card.artefact, strict=True))}
    links = [places[at] for at in zip(card.source, card.artefact, strict=True)]
    what = [", ".join(part for part in at if part) for at in zip(card.row, card.column, strict=True)]
    frame = card[["kind", "printed", "reproduced", "unit", "grade", "note"]]
    frame = frame.rename(columns={"reproduced": "here"}).replace({"unit": {"1": ""}})
    frame.insert(0, "what", what)
    frame.insert(0, "place", card.artefact)
    frame.insert(0, "source", [rooms.label(key) for key in card.source])
    return finder(
        frame,
        filters=("source", "kind", "grade"),
        links={"place": links},
        title="Every number that the sources print",
    )


def totals():
    """Rows of every source by kind, and how the results came out.

    Returns
    -------
    pandas.DataFrame
        One row a source and one for all: ``printed`` numbers, ``results`` (kinds model and derived), how many of
        them come out ``exact or consistent`` (also in per cent), ``claims`` and how many of them ``hold``.
    """
    import pandas as pd

    card = ledger.scorecard()
    found = [_total(rooms.label(key), own) for key, own in card.groupby("source", sort=False)]
    return pd.DataFrame([*found, _total("all", card)])


def _total(name, card):
    results = card[card.kind.isin(["model", "derived"])]
    good = int(results.grade.isin(["exact", "consistent"]).sum())
    claims = card[card.kind == "claim"]
    return {
        "source": name,
        "printed": len(card),
        "results": len(results),
        "exact or consistent": good,
        "%": 100 * good / len(results) if len(results) else float("nan"),
        "claims": len(claims),
        "hold": int((claims.grade == "holds").sum()),
    }


def by_kind():
    """Rows of every source by kind."""
    counts = ledger.scorecard().groupby(["source", "kind"], sort=False).size().unstack(fill_value=0)
    counts.index = [rooms.label(key) for key in counts.index]
    return counts.rename_axis("source").reset_index()


def errata(folder="."):
    """All errata of all sources, for :func:`inferlib.style.entries`: headed by source and place."""
    table = ledger.errata()
    heads = [f"{rooms.label(key)}: {place}" for key, place in zip(table.source, table.place, strict=True)]
    table.insert(0, "erratum", heads)
    return table.drop(columns=["source", "place"])


def errata_counts():
    """How many errata each source has."""
    counts = ledger.errata().groupby("source", sort=False).size()
    return counts.rename(rooms.label).rename_axis("source").rename("errata").reset_index()


def equation_coverage(folder="."):
    """How many of the numbered equations of each chapter of the book the library has.

    Returns
    -------
    pandas.DataFrame
        ``chapter``, ``numbered`` in print, ``here``, and what is ``missing``. Chapters not written yet are left out.
    """
    import pandas as pd

    table = ledger.equations()
    found = []
    for stem, (source, numbers) in PRINTED_EQUATIONS.items():
        if stem not in chapters(folder):
            continue
        have = {re.sub(r"\D", "", number) for number in table.number[table.source == source]}
        missing = [str(n) for n in numbers if str(n) not in have]
        found.append((stem, len(numbers), len(numbers) - len(missing), ", ".join(missing)))
    return pd.DataFrame(found, columns=["chapter", "numbered", "here", "missing"])


class Equations(list):
    """Equations of one source as a Markdown table: number, equation, function, form."""

    def _repr_markdown_(self):
        lines = ["| number | equation | function | form |", "|---|---|---|---|"]
        for row in self:
            latex = row.latex.replace("|", r"\vert ").replace("\n", " ")
            where = f"[`{row.function}`]({row.chapter}.ipynb)"
            lines.append(f"| {row.number} | ${latex}$ | {where} | {row.form} |")
        return "\n".join(lines) + "\n"

    def __repr__(self):
        return "\n".join(f"({row.number}) {row.function}: {row.latex}" for row in self)


def equations(source, folder="."):
    """Every equation of a source, numbered ones first, as the index shows them.

    Links lead to chapters that exist; an equation of a room whose chapter is not written leads to the first one.
    """
    table = ledger.equations(source)
    known = chapters(folder)
    first = next((stem for stem in known if stem.startswith(source)), source)
    table["chapter"] = [chapter if chapter in known else first for chapter in table.chapter]
    return Equations(table.itertuples(index=False))


def own_equations(room):
    """The equations of a shared room (``"principles"`` or ``"serving"``), as the index shows them."""
    from collections import namedtuple
    from importlib import import_module

    from inferlib.equation import EQUATIONS

    import_module(f"inferlib.{room}.derivations")
    if room == "serving":
        import_module("inferlib.serving.napkin")
    Row = namedtuple("Row", "number function form chapter latex")
    entries = [entry for (key, _), entry in EQUATIONS.items() if key == room]
    return Equations(Row(e.number or "", e.name, e.form, e.chapter, e.latex()) for e in entries)


def misses():
    """All results and claims that do not come out, with the reason, for :func:`inferlib.style.table`."""
    card = ledger.scorecard()
    wrong = card[
        card.kind.isin(["model", "derived", "claim"])
        & ~card.grade.isin(["exact", "consistent", "holds", "-"])
    ]
    places = [
        ", ".join(part for part in at if part)
        for at in zip(wrong.artefact, wrong.row, wrong.column, strict=True)
    ]
    shown = wrong[["printed", "reproduced", "unit", "grade", "note"]].rename(columns={"reproduced": "here"})
    shown.insert(0, "place", places)
    shown.insert(0, "source", [rooms.label(key) for key in wrong.source])
    return shown.replace({"unit": {"1": ""}})
