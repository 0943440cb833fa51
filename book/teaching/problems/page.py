"""Problems and questions in a page that marks answers without a kernel; without JavaScript, answers are folded."""

import hashlib
import json
from functools import partial

from book import stored
from book.explorer.static_start import script
from book.teaching.problems.bank import problems
from book.teaching.problems.chains import chain
from book.teaching.problems.marking import told

_file = partial(script, "teaching/problems")


class Marked(list):
    """A list of a student's problems that marks itself in the page, numbered from ``first`` on."""

    first = 1

    def _repr_html_(self):
        items = [(identity(asked), asked, json.dumps(told(asked), ensure_ascii=False)) for asked in self]
        return stored.filled(
            "teaching/problems/marked.jinja", id=identity(*self), first=self.first, items=items,
            style=_file("mark.css"), marker=_file("mark.js"),
        )  # fmt: skip

    def __repr__(self):
        return "\n".join(asked.text for asked in self)


def identity(*several):
    """The anchor of a problem or a list, from its name and text, because a chain asks some problems again."""
    text = "".join(asked.name + asked.text for asked in several)
    return f"marked-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


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
