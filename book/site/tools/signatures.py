"""Writes ``tokenprice/signatures.py``: the fields of a question and a promise, as editors and type checkers see
them."""

import re
from dataclasses import fields
from pathlib import Path

from tokenprice.question import SLO, Question

PATH = Path(__file__).parents[3] / "tokenprice" / "signatures.py"
HEAD = '''"""What verbs take as options, for type checkers. Written by ``python -m book.site.tools.signatures``."""

from collections.abc import Mapping
from typing import TypedDict

from inferlib.system import Layout, System
from tokenprice.workload import Trace


class QuestionFields(TypedDict, total=False):
    """The fields of a question but for its model, in words or typed."""

'''
PROMISED = '''

class SLOFields(TypedDict, total=False):
    """The fields of a promise."""

'''
TAIL = '''

class AskOptions(QuestionFields, total=False):
    """What ``ask`` takes."""

    prices: Mapping


class ChangeOptions(AskOptions, SLOFields):
    """What ``change`` and ``simulate`` take."""


class DecideOptions(QuestionFields, SLOFields):
    """What ``decide`` takes, which has prices of its own."""
'''


def line(field):
    """One field: words, or what they are read as."""
    typed = re.sub(r"[a-z_]+\.", "", str(field.type) if field.type is not bool else "bool")
    kinds = dict.fromkeys(["str", *typed.removesuffix(" | None").split(" | ")])
    return f"    {field.name}: {' | '.join(kinds)}\n"


def text():
    """The whole file."""
    asked = "".join(line(field) for field in fields(Question) if field.name != "model")
    return HEAD + asked + PROMISED + "".join(map(line, fields(SLO))) + TAIL


if __name__ == "__main__":
    PATH.write_text(text(), "utf-8")
