"""The teaching kit: nothing of a solution in a lecture copy, letters that the cheat sheet explains."""

import re
import runpy
from functools import cache
from pathlib import Path

import nbformat
import pytest

from book.site.tools import standalone_notebooks
from book.teaching import slides

ROOT = Path(__file__).parents[1]
CHAPTERS = sorted((ROOT / "book").glob("*.ipynb"))
LECTURE = runpy.run_path(str(ROOT / "book" / "site" / "tools" / "lecture.py"))
LEVELS = ("**One line.**", "**Short.**", "**Study.**")
EVERY_CHAPTER = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


@cache
def cells_of(path):
    return nbformat.read(path, as_version=4).cells


@cache
def copied(path):
    """The cells of the lecture copy of a chapter."""
    return LECTURE["lecture_copy"](nbformat.read(path, as_version=4)).cells


@cache
def exercises(path):
    text = "\n".join(cell.source for cell in cells_of(path) if cell.cell_type == "markdown")
    return re.findall(r"```+\{exercise\}\s*\n(?::[^\n]*\n)*\s*(.*?)\n```", text, re.S)


@EVERY_CHAPTER
def test_every_exercise_says_its_level(path):
    texts = exercises(path)
    for text in texts:
        assert text.startswith(LEVELS), f"begins with none of {LEVELS}: {text[:60]}"


@EVERY_CHAPTER
def test_a_lecture_copy_keeps_the_exercises_and_loses_the_solutions(path):
    made = copied(path)
    text = "\n".join(cell.source for cell in made)
    assert "solution" not in re.findall(r"\{([a-z-]+)\}", text) and "solution-start" not in text
    assert text.count("> **Exercise.**") == len(exercises(path))
    code = [cell for cell in made if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)
    if exercises(path):
        assert len(code) < sum(cell.cell_type == "code" for cell in cells_of(path))


# What a plain Jupyter shows as code: roles, fences and colons of directives, targets, links to boxes.
RAW = re.compile(r"\{[\w:+-]+\}`|^`{3,}\{|^:{3,}|^\([\w-]+\)=|\]\(#", re.M)


@EVERY_CHAPTER
def test_a_download_and_a_lecture_copy_hold_no_raw_markup(path):
    made = nbformat.reads(standalone_notebooks.notebook(path.read_text("utf-8")), as_version=4)
    assert [cell.id for cell in made.cells] == [cell.id for cell in cells_of(path)]
    for cell in [*made.cells, *copied(path)]:
        assert cell.cell_type == "code" or not RAW.search(cell.source), (cell.id, RAW.search(cell.source)[0])


@EVERY_CHAPTER
def test_a_link_of_a_lecture_copy_leads_to_a_copy(path):
    text = "\n".join(cell.source for cell in copied(path) if cell.cell_type == "markdown")
    stems = {stem for stem in re.findall(r"\]\((?!\w+:)([\w/-]+)\.(?:ipynb|md)", text)}
    assert stems <= {story.stem for story in LECTURE["stories"]()}


# --- The cheat sheet ---------------------------------------------------------------------------------------
SHEET = cells_of(ROOT / "book" / "cheatsheet.ipynb")
FORMULAS = {cell.id: cell for cell in SHEET if cell.cell_type == "code" and "formula(" in cell.source}


@pytest.mark.parametrize("cell", FORMULAS.values(), ids=FORMULAS)
def test_a_formula_of_the_sheet_says_what_its_letters_mean(cell):
    text = cell.outputs[0]["data"]["text/markdown"]
    source = re.search(r"formula\(\s*\"[^\"]+\",\s*(\w+)\.", cell.source)[1]
    register = {"prefill": "serving", "request": "serving"}.get(source, source)
    _, unknown = slides.symbols_of(register, text)
    assert not unknown
    assert " Here $" in text
