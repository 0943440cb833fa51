"""Slides in Markdown: one file for each session of the course, which anyone can edit.

A slide begins with ``## Title`` and lines of options: its ``minutes``, optionally the ``chapter`` that it shows and
what to ``ask`` the room. Markdown follows, and below a line ``Note:`` the speaker's notes. Text of the chapter and all
numbers come from its stored notebook by ``{{reference}}``: the id of a cell, the name of a figure or the label of an
exercise, optionally with a colon and the first words of a sentence, a list item, a table, a box or a printed line; or
``step 4`` or ``last`` for the equation of a derivation's step.

``{{board: name}}`` is a number of :func:`book.teaching.slides.board.numbers`; ``finds`` names those found on a board.
``state`` sets the explorer on the slide, ``page`` shows a page of the book, and ``warm-up: 2`` inserts the questions on
session 2. A formula gets a line of its symbols from the register of notation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from importlib import import_module
from pathlib import Path

from book import prose_numbers
from book.site.tools.standalone_notebooks import FENCE, OPTIONS
from inferlib.equation import frozen, notation_of

BOOK = Path(__file__).parents[2]
SESSIONS = tuple(f"session-{k}" for k in range(1, 7))
NOTE = "\n\nNote:\n\n"


@frozen
class Slide:
    """One slide of a deck.

    ``show``: kind and content of each part, in order: ``"text"`` and ``"symbols"`` are Markdown, ``"out"`` is plain
    text, ``"html"`` is HTML, ``"figure"`` an SVG and its alternative text, ``"page"`` an address. ``notes``: the
    speaker's, in Markdown. ``ask``: a question to the room before anything is shown. ``state``: slider values of its
    explorer. ``chapter``: the chapter shown. ``finds``: numbers that the room finds on it.
    """

    title: str
    minutes: float
    show: list
    notes: str = ""
    ask: str = ""
    state: Mapping = field(default_factory=dict)
    chapter: str = ""
    finds: tuple = ()


@cache
def chapter(name):
    """Return the stored cells of a chapter."""
    return json.loads((BOOK / f"{name}.ipynb").read_text("utf-8"))["cells"]


def heading(name):
    """The title of a session of the course."""
    (title,) = (m[1] for c in chapter("course") if (m := re.match(rf"## {name[-1]}\. (.+)", source(c))))
    return f"Session {name[-1]}: {title}"


ALONE = re.compile(r"\{\{([^{}]+)\}\}")


@cache
def deck(name):
    """All slides of a session."""
    text = (Path(__file__).parent / f"{name}.md").read_text("utf-8")
    slides = []
    for entry in re.split(r"(?m)^## ", text)[1:]:
        head, _, body = entry.partition("\n\n")
        title, *lines = head.splitlines()
        options = dict(line.split(": ", 1) for line in lines)
        if "warm-up" in options:
            slides += warm_up(int(options["warm-up"]), float(options["minutes"]))
        else:
            slides.append(_slide(options.get("chapter", name), title, options, body))
    return tuple(slides)


def _slide(name, title, options, body):
    body, _, note = body.partition(NOTE)
    page = [("page", f"../book/{options['page']}")] if "page" in options else []
    state = dict(part.split("=") for part in options.get("state", "").split())
    return Slide(
        title, int(options["minutes"]), page or shown(name, body), filled(name, note), options.get("ask", ""),
        {key: float(value) for key, value in state.items()}, name, tuple(options.get("finds", "").split()),
    )  # fmt: skip


def warm_up(session, minutes):
    """Return a slide for each question on a session, numbered."""
    from book.teaching.problems import sheet
    from book.teaching.problems.page import Marked

    slides = []
    asked = sheet("everybody", f"session-{session}")
    for k, one in enumerate(asked, 1):
        alone = Marked([one])
        alone.first = k
        show = [("html", alone._repr_html_())]
        slides.append(Slide(f"From session {session}: question {k}", minutes / len(asked), show, one.worked))
    return slides


def filled(name, text):
    """Replace the references in a text."""
    return ALONE.sub(lambda m: inline(name, m[1]), text)


def shown(name, body):
    """Return what the Markdown of a slide shows, as pairs of kind and content."""
    found = []
    for block in filter(None, re.split(r"\n\s*\n", body.strip())):
        alone = ALONE.fullmatch(block.strip())
        if alone:
            found += parts(name, alone[1], find(name, alone[1]))
        else:
            found.append(("text", filled(name, block)))
    symbols = [line for kind, content in found if kind == "text" and (line := symbols_of(name, content)[0])]
    return found + [("symbols", line) for line in symbols]


def inline(name, reference):
    """Return the text of a reference within a sentence: words of the chapter, part of a printed line, or a number."""
    if reference.startswith("board:"):
        from book.teaching.slides.board import numbers

        return numbers()[reference.removeprefix("board:").strip()]
    ((kind, content),) = parts(name, reference, find(name, reference))
    words = reference.partition(":")[2].strip()
    if kind != "out" or not words:
        return content
    lines = [line for line in content.splitlines() if line.startswith(words)]
    if len(lines) != 1:
        raise LookupError(f"slides of {name}: {len(lines)} lines of {reference} begin with {words!r}")
    return lines[0].removeprefix(words).strip()


# LaTeX commands and letters of functions that are not symbols.
COMMAND = re.compile(
    r"\\(?:begin|end)\{\w+\*?\}|\\tag\{[^}]*\}|\\(?:frac|sqrt|left|right|max|min|log|approx|cdot|quad|textstyle|sum|infty"
    r"|to|geq|leq|le|ge|partial|operatorname|mathbb|text|mathrm|qquad|times|,|;|!|\\)|[{}\[\]()^_&,.=+\-*/<>|$0-9\s]"
)


def symbols_of(name, text):
    """Return a line with the meanings of the symbols in a text's displayed equations, and which symbols lack one."""
    text = re.sub(r"\\color\{#\w+\}|\\underbrace|(?<=\})_\{\\text\{[^{}]*\}\}", "", text)  # names of terms
    formulas = re.findall(r"(?s)\$\$.+?\$\$|\\begin\{equation\*?\}.*?\\end\{equation\*?\}", text)
    if not formulas:
        return "", ""
    left, told = " ".join(map(_plain_symbol, formulas)), []
    source = SOURCE_OF.get(name, name)
    rooms = {"principles": "inferlib.principles", "serving": "tokenprice"}
    import_module(rooms.get(source, f"inferlib.papers.{source}"))
    entries = notation_of(source).values()
    for entry in sorted(entries, key=lambda e: -len(_plain_symbol(e["symbol"]))):
        symbol = re.escape(_plain_symbol(entry["symbol"]))
        at = re.search(rf"(?<![A-Za-z\\]){symbol}(?![A-Za-z_])", left)
        if at:
            left = re.sub(rf"(?<![A-Za-z\\]){symbol}(?![A-Za-z_])", " ", left)
            told.append((at.start(), f"${entry['symbol']}$ {_short(entry['meaning'])}"))
    return "; ".join(dict.fromkeys(words for _, words in sorted(told))), COMMAND.sub("", left)


# Chapters whose equations are registered under another name than the chapter's.
SOURCE_OF = {"introduction": "erdil2025", "erdil2025_toy": "erdil2025", "erdil2025_model": "erdil2025",
             "kernel_model": "serving", "price": "serving"}  # fmt: skip


def _plain_symbol(latex):
    return re.sub(r"([_^])\{(\w)\}", r"\1\2", latex)


def _short(meaning):
    """Return a meaning without its asides."""
    return re.sub(r" \([^)]*\)|[;:].*", "", meaning)


def source(cell):
    """The source of a cell as one text, as a reader sees it."""
    return prose_numbers.plain("".join(cell["source"]))


def find(name, reference):
    """Return the cell of a chapter that a reference means."""
    key = reference.partition(":")[0]
    for at, cell in enumerate(chapter(name)):
        figure = cell["metadata"].get("mystnb", {}).get("figure", {}).get("name")
        if key in (cell["id"], figure) or f":label: {key}\n" in source(cell):
            return at
    raise LookupError(f"slides of {name}: no cell, figure or exercise is called {key!r}")


def parts(name, reference, at):
    """Return what a reference shows, as pairs of kind and content."""
    cell = chapter(name)[at]
    key, _, words = (part.strip() for part in reference.partition(":"))
    if cell["cell_type"] == "markdown":
        text = source(cell)
        if f":label: {key}\n" in text:
            return [("text", exercise(text, key))]
        return [("text", passage(text, words, f"slides of {name}, {key}"))]
    found = [part for output in cell["outputs"] for part in output_parts(cell, output, words)]
    if not found:
        raise LookupError(f"slides of {name}: cell {key!r} shows nothing")
    return found


def output_parts(cell, output, words):
    """One stored output: a figure, an explorer or a table, an equation, or text."""
    data = {kind: "".join(content) for kind, content in output.get("data", {}).items()}
    if "image/svg+xml" in data:
        alt = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "")
        return [("figure", (data["image/svg+xml"], alt))]
    if "text/html" in data:
        return [("html", data["text/html"])]
    if "text/markdown" in data:
        text = data["text/markdown"]
        step = re.fullmatch(r"step (\d+)|last", words)
        if step:
            text = re.split(r"(?m)^\*\*\d+\.\*\* ", text)[int(step[1] or -1)]
            text = re.findall(r"(?s)\\begin\{equation\*?\}.*?\\end\{equation\*?\}", text)[-1]
        return [("text", text)]
    return [("out", ("".join(output.get("text", "")) or data.get("text/plain", "")).rstrip())]


SENTENCE = re.compile(r"(?<=[.?!])\s+|(?<=[.?!][*)_])\s+|(?<=[.?!:]\*\*)\s+")


def exercise(text, label):
    """Return the text of an exercise."""
    for _, kind, _, body in FENCE.findall(text):
        if kind == "exercise" and f":label: {label}\n" in body:
            return re.sub(r"^\*\*[\w ]+\.\*\* ", "", OPTIONS.sub("", body).strip())
    raise LookupError(f"no exercise is called {label!r}")


def passage(text, words, where):
    """Return the passage that begins with some words: a box, a table, a list, one of its items, or a sentence."""
    for _, _, title, body in FENCE.findall(text):
        if words and title.strip().startswith(words):
            return OPTIONS.sub("", body).strip()
    plain = FENCE.sub(lambda fence: OPTIONS.sub("", fence[4]), text)
    for block in re.split(r"\n\s*\n", re.sub(r"(?m)^(#+ .*|\(\S+\)=)$", "", plain)):
        block = block.strip()
        if block.startswith("|") and words in block:
            return block
        pieces = re.split(r"(?m)^(?=(?:[-*]|\d+\.) )", block)
        if len(pieces) == 1:
            pieces = SENTENCE.split(" ".join(block.split()))
        for piece in pieces:
            bare = re.sub(r"^(?:[-*]|\d+\.) ", "", piece.strip())
            if words and bare.replace("*", "").startswith(words):
                return " ".join(bare.split())
    raise LookupError(f"{where}: nothing begins with {words!r}")


class Plan:
    """The timetable of a session for the speaker: slides, questions, and drawings on the board, by minute."""

    def __init__(self, session):
        self.deck, self.page = deck(f"session-{session}"), f"../slides/session-{session}.html"

    def __repr__(self):
        return f"{len(self.deck)} slides, {sum(slide.minutes for slide in self.deck):g} minutes"

    def _repr_markdown_(self):
        lines, at = [f'<a href="{self.page}">The deck of this session</a>\n'], 0
        for number, slide in enumerate(self.deck, 1):
            link = f'<a href="{self.page}#{number}">{slide.title}</a>'
            asked = f". Ask: *{slide.ask}*" if slide.ask else ""
            lines.append(f"- **{at:g}** {link}{asked}  ")  # the next text begins a line
            lines += [f"  {line}" for line in slide.notes.splitlines() if line and slide.chapter]
            at += slide.minutes
        return "\n".join(lines)
