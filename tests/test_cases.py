"""A chapter is an instrument: under another case it runs to its end, and what reads the case shows another answer.

It is run as in :mod:`test_follows`, without a kernel. The case is the question on top of a chapter, `case`.
"""

import ast
from dataclasses import fields
from functools import partial

import nbformat
import pytest
from test_follows import BOOK, coarse, named_by, played, stay  # noqa: F401

from tokenprice import Question

CHANGES = {
    "another model": {"model": "Qwen3 32B"},
    "a mixture of experts": {"model": "DeepSeek-V3"},  # too large for the machine, which is said
    "another chip": {"machine": "8x B200"},
    "another format": {"weights": "fp8"},
    "more users": lambda case: {
        name: 4 * getattr(case, name) for name in ("users", "batch") if getattr(case, name)
    },
    "a longer context": lambda case: {
        name: 2 * getattr(case, name) for name in LENGTHS if getattr(case, name)
    },
}
LENGTHS = ("prompt", "context")
# Chapter -> beginnings of statements that read the case and show the same under every change, with the reason.
STAY = {
    "introduction": {},
    "liminal2025": {
        "ax = figures.draw_collective(": "a collective of many chips and of eight, whatever is computed between",
        "for name, (wide, box) in sorted(tops": "speeds of the source's own large models on many chips and on eight",
    },
    "price": {},
    "sixth_model": {},
}
# Cases under which a chapter still stops: each is to be mended, none may be added.
STOPS = {
    ("introduction", "a mixture of experts"),
    ("price", "a mixture of experts"),
    ("price", "a longer context"),
    ("sixth_model", "a mixture of experts"),
}
# Literals below a case that equal one of its fields, and are another thing.
OTHER = {
    "price": {
        512: "tokens of a piece, of an answer and sequences of a sweep",
        "Llama 3 70B": "a model that is sold",
    },
    "principles": {
        4096: "lengths and sequences of a sweep",
        "Llama 3 70B": "one of four models side by side",
    },
    "erdil2025_model": {"Llama 3 70B": "one of the models side by side"},
    "pope2022": {64: "chips of the paper's own run"},
    "sixth_model": {"bf16": "the format in which all chips' kernels were timed"},
}


def code(chapter):
    cells = nbformat.read(BOOK / f"{chapter}.ipynb", as_version=4).cells
    return [ast.parse(cell.source) for cell in cells if cell.cell_type == "code"]


def made(tree, name):
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in ast.walk(tree)
    )


CHAPTERS = sorted(
    path.stem for path in BOOK.glob("*.ipynb")
    if any(made(tree, "case") and "Question" in ast.unparse(tree) for tree in code(path.stem)[:3])
)  # fmt: skip


@pytest.mark.parametrize("chapter", STAY)
def test_under_another_case_a_chapter_runs_to_its_end_and_what_reads_the_case_follows(chapter, coarse):  # noqa: F811
    stayed, stopped = [], {}
    for change, wanted in CHANGES.items():
        try:
            stayed.append(stay(played(chapter, ("case",)), "case", partial(changed, wanted=wanted)))
        except Exception as error:  # whatever a reader would see
            stopped[change] = error
    assert {change for change in stopped if (chapter, change) not in STOPS} == set(), stopped
    always = [statement for statement in stayed[0] if all(statement in others for others in stayed)]
    assert named_by(STAY[chapter], always) == set(STAY[chapter])
    assert len(STAY[chapter]) <= 10


def changed(case, wanted):
    return case.replace(**(wanted(case) if callable(wanted) else wanted))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_literal_below_the_case_equals_one_of_its_fields(chapter):
    cells, names = code(chapter), {}
    first = next(place for place, tree in enumerate(cells) if made(tree, "case"))
    for tree in cells[: first + 1]:
        exec(compile(tree, chapter, "exec"), names)
    given = {
        value for field in fields(Question) for value in [getattr(names["case"], field.name)] if said(value)
    }
    given |= {one for text in names["case"].words().values() for one in [text] if said(one)}
    found = {
        node.value for tree in cells[first + 1 :] for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and said(node.value) and node.value in given
    }  # fmt: skip
    assert found == set(OTHER.get(chapter, ()))
    assert sum(map(len, OTHER.values())) <= 10


def said(value):
    """Whether a value is one that a cell may repeat by mistake: a word, or a number that is no small count."""
    return isinstance(value, str) or (
        isinstance(value, int | float) and not isinstance(value, bool) and value > 8
    )
