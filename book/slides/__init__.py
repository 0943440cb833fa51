"""Slides from the stories: what a slide shows is named in a chapter's TOML and stands in the chapter.

One file ``<chapter>.toml`` for each deck, one ``[[slide]]`` for each slide: a title, the minutes, and in ``show``
what is taken from the stored notebook. A reference is the id of a cell, the name of a figure or the label of an
exercise; it may go on with a colon and

- the first words of a sentence, a list item, a table or a box, of a cell of text;
- ``math`` for the equations alone, ``step 4`` or ``last`` for a step of a derivation, ``code`` for the code of a cell.

``long = true`` leaves a slide out of the cut of 45 minutes; ``ask`` is what to ask the room. The notes of a slide
are the prose of the chapter that leads to it.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

BOOK = Path(__file__).parents[1]
CUTS = (45, 90)


@dataclass(frozen=True, eq=False)
class Slide:
    """One slide of a deck.

    Parameters
    ----------
    title : str
    minutes : int
    show : list of tuple
        Kind and content of each part, in order: ``"text"`` and ``"notes"`` are Markdown, ``"code"`` and ``"out"``
        plain text, ``"html"`` is HTML, ``"figure"`` an SVG and its alternative text.
    notes : list of str
        Markdown of the chapter, for who speaks.
    long : bool
        Only in the cut of 90 minutes.
    ask : str
        A question to the room, before anything is moved or said.
    """

    title: str
    minutes: int
    show: list
    notes: list
    long: bool = False
    ask: str = ""


def decks():
    """Names of the chapters that have a deck, in the order of the book."""
    order = re.findall(r"book/(\w+)", (BOOK.parent / "_toc.yml").read_text(encoding="utf-8"))
    return sorted((p.stem for p in Path(__file__).parent.glob("*.toml")), key=order.index)


@cache
def chapter(name):
    """Cells of a chapter as they are stored."""
    return json.loads((BOOK / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def heading(name):
    """The title of a chapter."""
    return re.search(r"(?m)^# (.+)", source(chapter(name)[0]))[1]


@cache
def deck(name):
    """All slides of a chapter."""
    plan = tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8"))["slide"]
    slides, read = [], 0
    for entry in plan:
        entry = dict(entry)
        wanted = entry.pop("show")
        found = [find(name, reference) for reference in wanted]
        shown = [
            part for reference, at in zip(wanted, found, strict=True) for part in parts(name, reference, at)
        ]
        end = max(found, default=read - 1) + 1
        notes = [source(c) for c in chapter(name)[read:end] if c["cell_type"] == "markdown"]
        read = max(read, end)
        slides.append(Slide(show=shown, notes=notes, **entry))
    return tuple(slides)


def minutes(name, cut):
    """Minutes that a deck takes in one of its cuts."""
    return sum(s.minutes for s in deck(name) if cut == max(CUTS) or not s.long)


def source(cell):
    """The source of a cell as one text."""
    return "".join(cell["source"])


def find(name, reference):
    """Which cell of a chapter a reference means."""
    key = reference.partition(":")[0]
    for at, cell in enumerate(chapter(name)):
        figure = cell["metadata"].get("mystnb", {}).get("figure", {}).get("name")
        if key in (cell["id"], figure) or f":label: {key}\n" in source(cell):
            return at
    raise LookupError(f"slides of {name}: no cell, figure or exercise is called {key!r}")


def parts(name, reference, at):
    """What a reference shows, as pairs of kind and content."""
    cell = chapter(name)[at]
    key, _, words = (part.strip() for part in reference.partition(":"))
    if cell["cell_type"] == "markdown":
        text = source(cell)
        if key != cell["id"]:
            return [("text", exercise(text, key))]
        if words == "math":
            return [("text", "\n\n".join(re.findall(r"(?s)\$\$.+?\$\$|\\begin\{.*?\\end\{\w+\*?\}", text)))]
        return [("text", passage(text, words, f"slides of {name}, {key}"))]
    if words == "code":
        return [("code", source(cell))]
    shown = [part for output in cell["outputs"] for part in output_parts(cell, output, words)]
    if not shown:
        raise LookupError(f"slides of {name}: cell {key!r} shows nothing")
    return shown


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
        elif words == "math":
            text = "\n\n".join(re.findall(r"(?s)\\begin\{equation\*?\}.*?\\end\{equation\*?\}", text))
        return [("text", text)]
    return [("out", ("".join(output.get("text", "")) or data.get("text/plain", "")).rstrip())]


FENCE = re.compile(r"(?ms)^(`{3,})\{(\w[\w-]*)\}([^\n]*)\n(.*?)^\1 *$")
SENTENCE = re.compile(r"(?<=[.?!])\s+|(?<=[.?!][*)_])\s+|(?<=[.?!:]\*\*)\s+")
OPTIONS = re.compile(r"\A(?::[^\n]*\n)*\s*")


def exercise(text, label):
    """The words of an exercise."""
    for _, kind, _, body in FENCE.findall(text):
        if kind == "exercise" and f":label: {label}\n" in body:
            return OPTIONS.sub("", body).strip()
    raise LookupError(f"no exercise is called {label!r}")


def passage(text, words, where):
    """What begins with some words: a box, a table, a list, one of its items, or a sentence."""
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
