"""The teaching kit: nothing of a solution in a lecture copy, letters that the cheat sheet explains."""

import re
import runpy
from functools import cache
from pathlib import Path
from types import SimpleNamespace

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


def test_the_build_offers_the_plain_notebooks(tmp_path):
    """By the extension's own step, on the folder that the download button points to."""
    extension = runpy.run_path(str(ROOT / "book" / "site" / "ext" / "downloads.py"))
    page = tmp_path / "_sources" / "book" / "course.ipynb"
    page.parent.mkdir(parents=True)
    raw = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("(here)=\n## See [this](#here)")])
    page.write_text(nbformat.writes(raw), "utf-8")
    app = SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html"))
    extension["rewrite"](app, None)
    assert nbformat.read(page, as_version=4).cells[0].source == "## See this"
    assert "downloads: book/site/ext" in (ROOT / "_config.yml").read_text("utf-8")


def test_what_follows_a_solution_stays():
    cells = [
        nbformat.v4.new_markdown_cell("A\n\n```{solution-start} x\n:class: dropdown\n```\n\nsecret"),
        nbformat.v4.new_code_cell("secret()"),
        nbformat.v4.new_markdown_cell("```{solution-end}\n```\n\nB\n\n```{solution} y\nsecret\n```\n\nC"),
    ]
    kept = LECTURE["without_solutions"](cells)
    assert [cell.source.split() for cell in kept] == [["A"], ["B", "C"]]
    with pytest.raises(ValueError, match="does not end"):
        LECTURE["without_solutions"]([nbformat.v4.new_markdown_cell("```{solution-start} x\n```")])


def test_a_copy_fetches_the_whole_book():
    """A wheel holds the library alone; chapters also import `book`."""
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    made = LECTURE["lecture_copy"](nb, "https://example.org/who/book")
    fetched = "!git clone -q --depth 1 https://example.org/who/book book && pip install -q './book[book]'"
    assert fetched in made.cells[1].source
    assert made.cells[1].source.endswith("%cd book")
    assert len(LECTURE["lecture_copy"](nb).cells) == 2


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
