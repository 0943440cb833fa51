"""The scorecard as chapters show it: tables whose numbers unfold when clicked."""

import html
import json
import re
from functools import partial
from pathlib import Path

import pandas as pd

from book.audit import grading
from book.audit.explanations import explain
from book.audit.number_format import format_value
from book.audit.published_rows import as_number
from book.style import table

FINE = ("exact", "consistent", "holds")  # grades that need no attention


def card(source, *artefacts, kinds=("model", "derived", "identity", "claim", "measured")):
    """Return the scorecard of some artefacts for a chapter; a click on a number unfolds its computation.

    ``*artefacts``: such as ``"Table 1"`` (default: all of the source). ``kinds``: kinds of rows to show; rows without a
    computation are left out. Its ``frame`` is the pandas DataFrame shown.
    """
    rows = grading.scorecard(source, *artefacts)
    return Card(rows[rows.kind.isin(kinds) & (rows.grade != "-")])


def beside(source, artefact, more=None):
    """Return one printed table beside the recomputed one, with each row's largest deviation and worst grade.

    ``more``: a frame indexed by the table's rows, with further columns that are not in print. Columns that nothing
    computes are shown as printed only.
    """
    rows = grading.scorecard(source, artefact)
    own = rows[rows.kind.ne("claim") & rows.grade.ne("-")]
    names = own.row.unique()
    rows = rows[rows.row.isin(names) & rows.column.ne(STATED)]
    texts = {place: row.text for place, row in grading.published(source).items()}
    heads, columns = [""], [list(names)]
    for (column, unit), group in rows.groupby(["column", "unit"], sort=False):
        found = group.set_index("row").reproduced.reindex(names).fillna("").tolist()
        made = [value for value in found if value != ""]
        head = ", ".join(filter(None, [column, UNITS.get(unit, unit)]))
        heads.append(f"{head}: printed" if made else head)
        columns.append([_large(texts.get((artefact, row, column), "")) for row in names])
        if made:
            heads.append("here")
            columns.append([_large(value) for value in found])
    graded = own.groupby("row", sort=False)
    off = graded.relative_error.agg(lambda errors: max(errors.fillna(0), key=abs))
    worst = graded.grade.agg(lambda grades: max(grades, key=grading.GRADES.index))
    heads += ["farthest off", "grade", *([] if more is None else more)]
    columns += [[f"{off[row]:+.1%}" for row in names], worst.tolist()]
    columns += [] if more is None else [more[name].reindex(names).tolist() for name in more]
    return table(pd.DataFrame(dict(enumerate(columns))).set_axis(heads, axis=1))


STATED = "bits of a weight"  # a column that captions state instead
UNITS = {"1": "", "tok/s": "", "usd/Mtok": "$"}  # units that the column's name states already


def _large(value):
    """Shorten a number of a million or more (540 B), printed or computed; return others unchanged.

    Examples
    --------
    >>> _large(1e6), _large(999_999), _large("2,000,000"), _large("none")
    ('1 M', 999999, '2 M', 'none')
    """
    number = as_number(value) if isinstance(value, str) else value
    return format_value(number) if isinstance(number, (int, float)) and abs(number) >= 1e6 else value


class Card:
    """Rows of a scorecard: exceptions in view, the others folded behind a line with their count."""

    def __init__(self, rows):
        self.frame = rows

    def _repr_html_(self):
        fine = self.frame.grade.isin(FINE) & (self.frame.right != "no")
        parts = [self._table(self.frame[~fine])] if not fine.all() else []
        if fine.any():
            statements = int((self.frame[fine].kind == "claim").sum())
            numbers = int(fine.sum()) - statements
            says = [
                f"{count} {several if count > 1 else one}"
                for count, one, several in (
                    (numbers, "number comes out as printed", "numbers come out as printed"),
                    (statements, "statement holds", "statements hold"),
                )
                if count
            ]
            folded = f"<details><summary>{', '.join(says)}</summary>{self._table(self.frame[fine])}</details>"
            parts.append(folded)
        return f'<div class="card-rows">{"".join(parts)}</div>'

    def _table(self, rows):
        shown = pd.DataFrame(
            {
                "": [", ".join(filter(None, place)) for place in zip(rows["row"], rows.column, strict=True)],
                "printed": _values(rows, "printed", {}),
                "here": _values(rows, "reproduced", {True: "yes", False: "no"}),
                "grade": rows.grade.tolist(),
            }
        )
        if (rows.right == "no").any():
            shown["right"] = ["no" if right == "no" else "" for right in rows.right]
            corrected = zip(rows.corrected, rows.unit, rows.right, strict=True)
            shown["corrected"] = [
                format_value(*value) if right == "no" else "" for *value, right in corrected
            ]
        kept = shown[[name for name in shown if not name or (shown[name] != "").any()]]
        trees = [explain(row).folded() for _, row in rows.iterrows()]
        unfolded = {(i, "here"): tree for i, tree in enumerate(trees) if tree}
        return table(kept, unfolded=unfolded, notes=rows.note.tolist())._repr_html_()

    def __repr__(self):
        shown = self.frame[["row", "column", "grade", "right", "note"]]
        here = _values(self.frame, "reproduced", {True: "yes", False: "no"})
        return shown.assign(printed=_values(self.frame, "printed", {}), here=here).to_string(index=False)


def _values(rows, name, claims):
    """Return the rounded numbers of a column; of a claim yes or no."""
    of = zip(rows.kind, rows[name], rows.unit, strict=True)
    return [
        claims.get(value, "") if kind == "claim" else format_value(value, unit) for kind, value, unit in of
    ]


class Index:
    """Index of what a source prints, by kind and in print order, with links to where it is shown, and a filter."""

    def __init__(self, kinds, find=""):
        self.kinds, self.find = kinds, find

    @property
    def places(self):
        """Artefact to the address of its place."""
        return {name: place for group in self.kinds.values() for name, place in group.items()}

    def _repr_html_(self):
        return self.find + "".join(
            f'<p class="index"><b>{KINDS.get(kind, kind)}</b> '
            + " · ".join(
                f'<a href="{place}">{html.escape(name)}</a>' if place else html.escape(name)
                for name, place in ((name.removeprefix(f"{kind} "), place) for name, place in group.items())
            )
            + "</p>"
            for kind, group in self.kinds.items()
        )

    def __repr__(self):
        return "\n".join(f"{kind}: {', '.join(group)}" for kind, group in self.kinds.items())


KINDS = {
    "Table": "Tables", "Figure": "Figures", "Equation": "Equations", "Text": "Sections", "Footnote": "Footnotes",
    "Key finding": "Key findings",
}  # fmt: skip
_NUMBER = r"(?:[A-Z]\.)?\d+(?:\.\d+)*(?:\([a-z]\))?"


def index(source):
    """Build links from each table, figure, equation and section of a source to its place in the record or a story.

    A figure is where a caption says ``after Figure 3``. An equation is where the record walks through it, where a cell
    shows it, or in the chapter of equations. Anything else is at the anchor ``(label)=`` before the record's cell that
    names it, or before a heading with its number.
    """
    names = grading._artefacts(source)
    found, labels = _places(source, names)
    at, places = 0, {}
    for name in names:  # artefacts without a number keep the order of the record
        at = places[name] = labels.index(found[name]) if found.get(name) in labels else at
    every = sorted(dict.fromkeys([*names, *found]), key=partial(_in_order, places))
    kinds = {kind: {name: found.get(name) for name in every if _kind(name) == kind} for kind in KINDS}
    for group in kinds.values():
        place = next(filter(None, group.values()), "")
        for name in group:  # an artefact that no cell names is placed with the one before it
            place = group[name] = group[name] or place
    find = '<div class="finder" data-of=".card-rows tbody" data-menus="section"></div>'
    return Index({kind: group for kind, group in kinds.items() if group}, find)


def _places(source, names):
    """Return the link of each artefact that chapters name, and the labels of the record in order."""
    found, headed, walked, labels, equations = {}, {}, {}, [], _equations(source)
    chapters = Path(__file__).parents[1].glob(f"{source}*.ipynb")
    for path in sorted(chapters, key=lambda path: path.stem != f"{source}_record"):
        is_record = path.stem == f"{source}_record"
        page = "#" if is_record else f"{path.stem}.html#"
        for code, figure, label, headings in _cells(path):
            here = dict.fromkeys(_captioned(figure), f"{page}{figure.get('name')}")
            if is_record:
                labels += [f"#{at}" for heading, at in headings if not heading]
                for heading, at in headings:
                    headed = dict.fromkeys(_named_in(heading) if at else (), f"#{at}") | headed
                for first, last in re.findall(rf'walk\("{source}", (\d+), (\d+)\)', code):
                    walked |= {f"Equation {n}": f"#eq-{source}-{n}" for n in range(int(first), int(last) + 1)}
                shown = [n for n in names if re.search(rf'(?<!= )"{n}"', code)]  # named, not compared with
                here = dict.fromkeys(shown, f"#{label}") | here
            shown = [f"Equation {n}" for n, pattern in equations.items() if re.search(pattern, code)]
            found = dict.fromkeys(shown, f"{page}{label}") | here | found
    listed = {f"Equation {n}": f"equations.html#eq-{source}-{n}" for n in equations}
    return listed | headed | found | walked, labels


def _cells(path):
    """Yield the cells of a chapter: code below a label, figure, label, and headings in the text with their labels."""
    label = ""
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        text, headings = "".join(cell["source"]), []
        for mark, heading in re.findall(r"^\(([\w-]+)\)=|^(#+ .*)", text, re.M):
            label = mark or label
            headings.append((heading, label))
        code = text if cell["cell_type"] == "code" and label else ""
        yield code, cell["metadata"].get("mystnb", {}).get("figure", {}), label, headings


def _captioned(figure):
    """Return the figures of the source that a caption names."""
    several = rf"(?:after|paper's) Figures? ((?:{_NUMBER}(?:, | and | to )?)+)"
    numbers = " ".join(re.findall(several, figure.get("caption", "")))
    return [f"Figure {number}" for number in re.findall(_NUMBER, numbers)]


def _equations(source):
    """Map the numbered equations of a source to patterns of the cells that show them."""
    table = grading.equations(source)
    return {
        row.number: rf"\b{row.function}(\.equation|\(\)$)"
        for row in table.itertuples()
        if row.number.isdigit()
    }


def _named_in(heading):
    """Yield the artefacts that a heading names; for "Tables 2 to 6" all five."""
    named = rf"(table|figure|section|footnote|appendix)e?s? ({_NUMBER})(?: (to|and) ({_NUMBER}))?"
    for kind, first, word, last in re.findall(named, heading, re.I):
        numbers = [first, last] if word == "and" else [first]
        if word == "to" and (first + last).isdigit():
            numbers = map(str, range(int(first), int(last) + 1))
        yield from (f"{kind.capitalize().replace('Section', 'Text')} {number}" for number in numbers)


def _kind(name):
    return next((kind for kind in KINDS if name.startswith(f"{kind} ")), "Text")


def _in_order(places, name):
    """Sort key: by number, appendices last; artefacts without a number, such as the abstract, as in the record."""
    number = re.search(_NUMBER + "$", name)
    letter, *digits = re.findall(r"[A-Z](?=\.)|\d+|\([a-z]\)", number[0]) if number else ["", "0"]
    if letter.isdigit():
        letter, digits = "", [letter, *digits]
    first = 0 if name in ("Abstract", "Introduction") else 1 if number else 2
    values = [int(digit) if digit.isdigit() else ord(digit[1]) for digit in digits]
    return first, letter, values, places.get(name, 0)
