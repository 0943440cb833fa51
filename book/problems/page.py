"""Problems and questions in a page that marks answers without a kernel; without JavaScript the folded answers stay."""

import hashlib
import html
import json
import re
from functools import partial

from book._tools.still import script
from book.problems.bank import problems, shown
from book.problems.chains import chain
from book.problems.marking import units_of
from inferlib.units import factor

_file = partial(script, "problems")


class Marked(list):
    """Items that show themselves as a numbered list, each with a place for an answer.

    An item has ``text``, ``lines`` (small print), ``options`` (of a choice, else empty), ``told`` (what the page must
    know to mark it), ``explained`` (HTML behind the fold) and perhaps a ``label``.
    """

    def _repr_html_(self):
        body = "".join(_item(identity(entry.text), entry) for entry in self)
        whole = identity("".join(entry.text for entry in self))
        style, marker = (_file(name) for name in ("mark.css", "mark.js"))
        return (
            f'<style>{style}</style><script>{marker}</script><div id="{whole}" class="inferlib-marked">'
            f'<ol class="questions">{body}</ol><p class="score"></p></div><script>inferlibMark("{whole}");</script>'
        )

    def __repr__(self):
        return "\n".join(f"{k}. {entry.text}\n   {entry.plain}" for k, entry in enumerate(self, 1))


def identity(text):
    """The anchor of an item, or of a list of them, by its words."""
    return f"marked-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def _item(anchor, entry):
    head = f"<strong>{html.escape(entry.label)}</strong> " if entry.label else ""
    lines = "".join(f'<p class="facts">{html.escape(line)}</p>' for line in entry.lines)
    options = "".join(f"<li>{html.escape(option)}</li>" for option in entry.options)
    choice = f'<ol class="options" type="A">{options}</ol>' if options else ""
    told = html.escape(json.dumps(entry.told, ensure_ascii=False), quote=True)
    return (
        f'<li id="{anchor}" data-mark="{told}"><p id="{anchor}-text">{head}{html.escape(entry.text)}</p>'
        f"{lines}{choice}<details><summary>Answer</summary>{entry.explained}</details></li>"
    )


def told_number(value, unit, answer, tolerance, mistakes, exact=False):
    """What the page must know to mark a number: all values in the unit that is asked for, to six digits."""
    scale = factor(unit)
    return {
        "value": _six(value / scale), "unit": shown(unit),
        "units": {name: _six(worth) for name, worth in units_of(unit).items()},
        "answer": answer, "tolerance": tolerance, "exact": exact,
        "mistakes": [[_six(wrong / scale), hint] for hint, wrong in mistakes.items()],
    }  # fmt: skip


def _six(value):
    return float(f"{value:.6g}")


class _Shown:
    """A problem as the page shows it."""

    options = ()

    def __init__(self, asked):
        problem = asked.problem
        self.label = f"{asked.name} ({problem.level})"
        self.text, self.lines, self.plain = asked.text, asked.facts, asked.worked
        self.told = told_number(
            asked.key.value, problem.unit, asked.answer, problem.near, asked.mistakes, problem.exact
        )
        self.explained = f"<p>{html.escape(asked.worked)}</p>"


def sheet(student, topic):
    """The problems of one topic, or one ``"chain-3"``, for a student, to be shown at the end of a notebook cell."""
    links = re.fullmatch(r"chain-(\d+)", topic)
    asked = chain(student, int(links[1])) if links else problems(student, topic)
    return Marked(map(_Shown, asked))
