"""Chapters in plain Markdown, without links that only the book resolves: for slides, lecture copies and downloads."""

import json
import re

from book import prose_numbers

FENCE = re.compile(r"(?ms)^(`{3,})\{(\w[\w-]*)\}([^\n]*)\n(.*?)^\1 *$")
OPTIONS = re.compile(r"\A(?::[^\n]*\n)*\s*")
TARGET = re.compile(r"(?m)^\([\w-]+\)=\n?")
INSIDE = re.compile(r"\[([^\]]*)\]\(#[^)]*\)")  # a link to a place or an explorer of the same page
NAMES = {
    "exercise": "Exercise.",
    "solution": "Solution.",
    "solution-start": "Solution.",
    "warning": "Warning.",
}


def plain(text):
    """Return text for any Markdown reader: links within the page as words, boxes as quotations with their title."""
    text = prose_numbers.plain(text)
    return INSIDE.sub(r"\1", TARGET.sub("", FENCE.sub(_box, text))).strip()


def _box(fence):
    kind, title, body = fence[2], fence[3].strip(), OPTIONS.sub("", fence[4]).strip()
    title = title if kind == "admonition" else NAMES.get(kind, "")
    lines = (
        ([f"**{title}** " + body] if kind == "exercise" else [f"**{title}**", "", body]) if title else [body]
    )
    return "\n".join(f"> {line}".rstrip() for line in "\n".join(lines).strip().splitlines())


def notebook(text):
    """Return a notebook file with plain Markdown in its cells; everything else is unchanged."""
    nb = json.loads(text)
    for cell in nb["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = plain("".join(cell["source"])).splitlines(keepends=True)
    return json.dumps(nb, ensure_ascii=False, indent=1) + "\n"
