"""Write ``tokenprice/signatures.py``: the fields of Question and SLO, for editors and type checkers."""

import re
from dataclasses import fields
from pathlib import Path

from tokenprice.question import SLO, Question

PATH = Path(__file__).parents[3] / "tokenprice" / "signatures.py"
HEAD = '''"""Options of the verbs, for type checkers. Written by ``python -m book.site.tools.signatures``."""

from collections.abc import Mapping
from typing import TypedDict

from inferlib.system import Layout, System
from tokenprice.workload import Trace


class QuestionFields(TypedDict, total=False):
    """Fields of a question except its model, as text or typed."""

'''
PROMISED = '''

class SLOFields(TypedDict, total=False):
    """Fields of an SLO."""

'''
TAIL = '''

class AskOptions(QuestionFields, total=False):
    """Options of ``ask``."""

    prices: Mapping | str


class ChangeOptions(AskOptions, SLOFields):
    """Options of ``change`` and ``simulate``."""


class DecideOptions(QuestionFields, SLOFields):
    """Options of ``decide``, which has a ``prices`` argument of its own."""
'''


def line(field):
    """Return the line of one field: its types, or text."""
    typed = re.sub(r"[a-z_]+\.", "", str(field.type) if field.type is not bool else "bool")
    kinds = dict.fromkeys(["str", *typed.removesuffix(" | None").split(" | ")])
    return f"    {field.name}: {' | '.join(kinds)}\n"


def text():
    """Return the whole file."""
    asked = "".join(line(field) for field in fields(Question) if field.name != "model")
    return HEAD + asked + PROMISED + "".join(map(line, fields(SLO))) + TAIL


if __name__ == "__main__":
    PATH.write_text(text(), "utf-8")
