"""The teaching kit: nothing of a solution in a lecture copy, answers that are right, formulas that exist."""

import re
import runpy
from pathlib import Path

import nbformat
import pytest

from book import teaching

ROOT = Path(__file__).parents[1]
CHAPTERS = sorted((ROOT / "book").glob("*.ipynb"))
LECTURE = runpy.run_path(str(ROOT / "book" / "_tools" / "lecture.py"))
LEVELS = ("**One line.**", "**Short.**", "**Study.**")


def exercises(path):
    nb = nbformat.read(path, as_version=4)
    text = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
    return re.findall(r"```+\{exercise\}\s*\n(?::[^\n]*\n)*\s*(.*?)\n```", text, re.S)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_exercise_says_its_level(path):
    for text in exercises(path):
        assert text.startswith(LEVELS), f"begins with none of {LEVELS}: {text[:60]}"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_lecture_copy_keeps_the_exercises_and_loses_the_solutions(path):
    nb = nbformat.read(path, as_version=4)
    made = LECTURE["lecture_copy"](nb)
    text = "\n".join(cell.source for cell in made.cells)
    assert "solution" not in re.findall(r"\{([a-z-]+)\}", text) and "solution-start" not in text
    assert text.count("> **Exercise.**") == len(exercises(path))
    code = [cell for cell in made.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)
    if exercises(path):
        assert len(code) < sum(cell.cell_type == "code" for cell in nb.cells)


@pytest.mark.parametrize(
    "name",
    ["steinhardt2022", "pope2022", "erdil2025_toy", "erdil2025_model", "liminal2025", "mazurek2025"],
)
def test_a_chapter_of_a_source_has_six_exercises_from_a_line_to_a_study(name):
    (path,) = (path for path in CHAPTERS if path.stem == name)
    texts = exercises(path)
    assert len(texts) >= 6
    assert all(any(text.startswith(level) for text in texts) for level in LEVELS)


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


def test_a_copy_installs_the_library_where_its_address_is_known():
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    made = LECTURE["lecture_copy"](nb, "https://example.org/book")
    assert made.cells[1].source == '%pip install -q "inferlib[book] @ git+https://example.org/book"'
    assert len(LECTURE["lecture_copy"](nb).cells) == 2


def test_the_cheat_sheet_typesets_equations_of_the_register():
    sheet = teaching.cheat_sheet()
    assert r"\frac{4\, BL\, \sqrt{E}\, \sqrt{F}" in sheet, "8 BLE over the root of the chips for F = 4E"
    assert {"pope2022", "liminal2025", "mazurek2025", "serving"} <= {e["source"] for e in teaching.formulas()}
    assert sheet.count("- [") == sheet.count("Holds: ") == len(teaching.formulas())
    assert r"$I^{*} = \frac{C}{M}$" in sheet and r"\frac{54\, C^{2}}{M^{3}}" in sheet
    for entry in teaching.formulas():
        assert set(entry) == {"source", "name", "says", "holds"}


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("read the weights", "42 ms"),  # 141 GB at 3.35 TB/s
        ("cache does one token", "320 KiB"),
        ("FLOP per byte", "295"),
        ("from 16 to 8 bits", "factor of 1.00"),
        ("make a token of Llama 3 70B fastest", "26"),  # Table 1 of the paper
        ("a batch of 32 touch", "163 of 256"),  # 256 (1 - (31/32)^32)
        ("gather weights rather", "18,432"),  # the width of PaLM 540B, Table D.1
        ("cut over the batch", "8 times"),  # 64 chips, 8 heads
        ("Five drafts a round", "3.69"),  # 1 + 0.8 + 0.64 + 0.512 + 0.4096 + 0.32768
        ("kernel launches", "1.28 ms"),  # 80 layers, four launches of 4 us
        ("LIMINAL's 128 chips", "3,093"),  # 320 collectives of 1.01 us, section 3
        ("less than one expert", "175"),  # 256 (31/32)^175 = 0.99
        ("over 72 GPUs", "1.24"),  # 1 / 0.809 of Figure 12
        ("DeepSeek V3 keep", "35,136 values against 163,840"),
    ],
)
def test_answers_that_can_be_found_elsewhere(words, answer):
    (question,) = (q for q in teaching.QUESTIONS if words in q.text)
    assert answer in question.answer()


def test_every_question_has_a_short_answer():
    for question in teaching.quiz():
        assert question.text.endswith("?") and 20 < len(question.answer()) < 200
    with pytest.raises(LookupError, match="memory"):
        teaching.quiz("memmory")
