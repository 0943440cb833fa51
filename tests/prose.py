"""Text and stored outputs of chapters, and numbers in them with too many digits."""

import html
import re
from decimal import Decimal
from functools import cache
from pathlib import Path

import nbformat

from book import prose_numbers

BOOK = Path(__file__).parents[1] / "book"
CHAPTERS = sorted(path.stem for path in BOOK.glob("*.ipynb"))


@cache
def notebook(chapter):
    """A chapter as it is stored, opened once."""
    return nbformat.read(BOOK / f"{chapter}.ipynb", as_version=4)


def markdown(chapter):
    """All text of a chapter, with the expressions of its numbers."""
    cells = notebook(chapter).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def said(chapter):
    """All text of a chapter, as a reader sees it."""
    return prose_numbers.plain(markdown(chapter))


NUMBER = re.compile(r"(?<![\w.])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?")

# A formula, in dollars or bare, whose constants are as exact as they are written; the name of a preprint.
EXACT = re.compile(
    r"\$\$[\s\S]*?\$\$|\$[^$\n]+\$|^.* = .*\\[a-z]+\b.*$|arxiv[.:/\w ]*?\d{4}\.\d{5}", re.I | re.M
)


def shown(output):
    """The text that one stored output shows to a reader."""
    data = output.get("data", {})
    page = re.sub(r"<(style|script)\b.*?</\1>", " ", data.get("text/html", ""), flags=re.S | re.I)
    page = html.unescape(re.sub(r"<[^>]+>", " ", page))
    plain = [data.get(mime, "") for mime in ("text/plain", "text/latex", "text/markdown")]
    return "\n".join([output.get("text", ""), page, *plain])


def numbers(text):
    """Each number of a text as it is written and as a value; understands thousands and TeX spacing."""
    text = re.sub(r"#[\dA-Fa-f]{6}\b", " ", text)  # a colour
    text = re.sub(r"(?<=\d)(?:\{,\}|\\,|\u2009|\u202f)(?=\d{3}(?!\d))", ",", text)
    return [(m[0], Decimal(m[0].replace(",", ""))) for m in NUMBER.finditer(text)]


def digits(value):
    """How many significant digits a value has; zeros at its end may be mere size and do not count."""
    return len(value.normalize().as_tuple().digits)


def long_numbers(output, most=6):
    """Numbers in a stored output with more significant digits than CPUs agree on; whole ones are exact.

    Another CPU may add in another order, which changes the last of sixteen digits, and more of them after a
    difference or a fit.
    """
    table = output.get("data", {}).get("text/csv", "").replace(",", " ")
    text = EXACT.sub(" ", shown(output)) + table
    found = numbers(text)
    return [written for written, value in found if value != int(value) and digits(value) > most]
