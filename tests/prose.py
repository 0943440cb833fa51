"""Find results that were typed into a chapter's prose instead of printed by its code.

A number in the text that an output of the same chapter also shows is such a result, unless a source
printed it or an input file states it. Numbers too plain to tell (8, 40 %, the year 2022) are let be.
"""

from __future__ import annotations

import csv
import html
import re
import tomllib
from decimal import Decimal

import nbformat

NUMBER = re.compile(r"(?<![\w.])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?")

FENCE = re.compile(r"\s*(`{3,}|~{3,}|:{3,})\s*(?:\{([^}]*)\})?(.*)")
NO_PROSE = {"code", "code-block", "code-cell", "literalinclude", "bibliography", "image", "figure"}
OPTION = re.compile(r"\s*:[\w-]+:")

MATH_ROLE = re.compile(r"\{math\}`([^`]*)`")
CODE_SPAN = re.compile(r"(?:\{[\w:+-]+\})?(`+)(?!`).+?(?<!`)\1(?!`)", re.S)
LABEL = re.compile(r"^\([^)\n]*\)=\s*$|(?<=\$\$) *\([^)\n]*\)", re.M)
ADDRESS = re.compile(r"(?<=\])\([^)]*\)|<[a-zA-Z/!][^>]*>|\w+://\S+")
# A place in a document: "sections 2.1 to 2.2.3", "Table D.2", "equations 3, 5 and 8".
PLACE = re.compile(
    r"(?:\b(?:sections?|chapters?|appendix|figures?|fig\.|tables?|equations?|eqs?\.|python|version)|§)"
    r"[\s~]*(?:[A-Z]\.)?\d[\d.]*(?:(?:\s*[,–-]\s*|\s+(?:to|and|or)\s+)\d[\d.]*)*",
    re.I,
)
# A formula, in dollars or bare, whose constants are as exact as they are written; the name of a preprint.
EXACT = re.compile(
    r"\$\$[\s\S]*?\$\$|\$[^$\n]+\$|^.* = .*\\[a-z]+\b.*$|arxiv[.:/\w ]*?\d{4}\.\d{5}", re.I | re.M
)
SENTENCE_END = re.compile(r"(?<=[.!?:])\s+|\n\s*\n|\n(?=[-*|#])")


def without_fences(markdown):
    """Drop fenced code and the option lines of directives; keep what directives say."""
    kept, stack = [], []
    for line in markdown.splitlines():
        fence = FENCE.fullmatch(line)
        in_code = bool(stack) and stack[-1][1]
        if fence:
            mark, name, rest = fence.groups()
            closes = not name and not rest.strip() and stack and mark.startswith(stack[-1][0])
            if closes:
                stack.pop()
            elif not in_code and (name or mark[0] != ":"):
                stack.append((mark, name is None or name in NO_PROSE))
                kept.append("" if stack[-1][1] else rest)
        elif not in_code and not (stack and OPTION.match(line)):
            kept.append(line)
    return "\n".join(kept)


def prose(markdown):
    """The text of a markdown cell without code, addresses, labels and names of places."""
    text = MATH_ROLE.sub(r"\1", without_fences(markdown))
    for pattern in (CODE_SPAN, LABEL, ADDRESS, PLACE):
        text = pattern.sub(" ", text)
    return text


def shown(output):
    """The text that one stored output shows to a reader."""
    data = output.get("data", {})
    page = re.sub(r"<(style|script)\b.*?</\1>", " ", data.get("text/html", ""), flags=re.S | re.I)
    page = html.unescape(re.sub(r"<[^>]+>", " ", page))
    plain = [data.get(mime, "") for mime in ("text/plain", "text/latex", "text/markdown")]
    return "\n".join([output.get("text", ""), page, *plain])


def numbers(text):
    """Each number of a text as it is written and as a value; understands thousands and TeX spacing."""
    text = re.sub(r"(?<=\d)(?:\{,\}|\\,|\u2009|\u202f)(?=\d{3}(?!\d))", ",", text)
    return [(m[0], Decimal(m[0].replace(",", ""))) for m in NUMBER.finditer(text)]


def values(text):
    return {value for _, value in numbers(text)}


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


def result_like(written, value):
    """Whether a number is too particular to be a count, a round figure or a year."""
    year = re.fullmatch(r"(19|20)\d\d", written)
    return not year and ("." in written or digits(value) >= 3)


def same(value, other):
    """Whether a typed value is the other one: equal, or rounded, or in another SI prefix.

    With fewer than three digits only equality counts, since much rounds to 1.5.
    """
    if digits(value) < 3:
        return value == other
    prefix = round((value.adjusted() - other.adjusted()) / 3)
    return abs(other.scaleb(3 * prefix) - value) * 2 <= Decimal(1).scaleb(value.as_tuple().exponent)


def texts(cell):
    """What a cell says in words: markdown, and the caption and description of a figure."""
    if cell.cell_type == "markdown":
        return [cell.source]
    figure = cell.metadata.get("mystnb", {})
    return [figure.get("figure", {}).get("caption", ""), figure.get("image", {}).get("alt", "")]


def typed_results(nb, allowed=frozenset()):
    """Each result typed in the prose of a notebook, as the number and the sentence it stands in."""
    outputs = "\n".join(shown(output) for cell in nb.cells for output in cell.get("outputs", ()))
    results = values(outputs)
    found = []
    for text in (text for cell in nb.cells for text in texts(cell)):
        for sentence in SENTENCE_END.split(prose(text)):
            for written, value in numbers(sentence):
                if not result_like(written, value) or any(same(value, a) for a in allowed):
                    continue
                if any(same(value, result) for result in results):
                    found.append((written, " ".join(sentence.split())))
    return found


def leaves(tree):
    """All single values in a tree of dictionaries and lists."""
    if isinstance(tree, dict):
        tree = tree.values()
    elif not isinstance(tree, list):
        return [tree]
    return [leaf for branch in tree for leaf in leaves(branch)]


def allowed_numbers(root):
    """Numbers that prose may quote: what the sources print and what the input files state."""
    allowed = set()
    for path in root.glob("book/*/published.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                allowed |= values(row["printed"])
    for path in [*root.glob("inferlib/**/*.toml"), *root.glob("book/**/*.toml")]:
        # errata.toml holds our own results beside the printed ones, which published.csv has too.
        if path.name != "errata.toml":
            for leaf in leaves(tomllib.loads(path.read_text(encoding="utf-8"))):
                allowed |= values(str(leaf))
    return allowed


def typed_in(path, allowed):
    """The faults of one chapter, ready to be read."""
    nb = nbformat.read(path, as_version=4)
    return [f"{path.name}: {number} in: {sentence}" for number, sentence in typed_results(nb, allowed)]
