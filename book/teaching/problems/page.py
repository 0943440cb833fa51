"""Problems and questions in a page that marks answers without a kernel; without JavaScript, answers are folded."""

import hashlib
import html
import json
from functools import partial

from book.explorer.static_start import script
from book.teaching.problems.bank import problems
from book.teaching.problems.chains import chain
from book.teaching.problems.marking import told

_file = partial(script, "teaching/problems")


class Marked(list):
    """A list of a student's problems that marks itself in the page, numbered from ``first`` on."""

    first = 1

    def _repr_html_(self):
        body = "".join(_item(identity(asked), asked) for asked in self)
        whole = identity(*self)
        style, marker = map(_file, ("mark.css", "mark.js"))
        return (
            f'<style>{style}</style><script>{marker}</script><div id="{whole}" class="inferlib-marked mathjax_ignore">'
            f'<ol class="questions" start="{self.first}">{body}</ol><p class="score"></p></div>'
            f'<script>inferlibMark("{whole}");</script>'
        )

    def __repr__(self):
        return "\n".join(asked.text for asked in self)


def identity(*several):
    """The anchor of a problem or a list, from its name and text, because a chain asks some problems again."""
    text = "".join(asked.name + asked.text for asked in several)
    return f"marked-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def _item(anchor, asked):
    level = asked.level + (f", session {asked.session}" if asked.session else "")
    lines = "".join(f'<p class="facts">{html.escape(line)}</p>' for line in asked.facts)
    options = "".join(f"<li>{html.escape(option)}</li>" for option in asked.options)
    choice = f'<ol class="options" type="A">{options}</ol>' if options else ""
    known = html.escape(json.dumps(told(asked), ensure_ascii=False), quote=True)
    page, _, place = asked.place.partition("#")
    link = f' <a href="{page}.html#{place}">Where the book says it</a>.' if place else ""
    return (
        f'<li id="{anchor}" data-mark="{known}"><p id="{anchor}-text"><strong>{asked.name} ({level})</strong> '
        f"{html.escape(asked.text)}</p>{lines}{choice}"
        f"<details><summary>Answer</summary><p>{html.escape(asked.worked)}{link}</p></details></li>"
    )


def sheet(student, topic):
    """Return problems of a student for display at the end of a cell.

    ``topic``: one of :data:`TOPICS`, a ``"chain-3"``, or ``"session-3"``: the questions with which the next session
    begins.
    """
    kind, _, number = topic.rpartition("-")
    if kind == "chain":
        return Marked(chain(student, int(number)))
    if kind == "session":
        return Marked(asked for asked in problems(student) if asked.session == int(number))
    return Marked(problems(student, topic))
