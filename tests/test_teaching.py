"""The teaching kit: nothing of a solution in a lecture copy, one symbol for one meaning on the cheat sheet."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

import inferlib
from book import cheatsheet
from book._tools import plain
from inferlib.papers import erdil2025

ROOT = Path(__file__).parents[1]
CHAPTERS = sorted((ROOT / "book").glob("*.ipynb"))
LECTURE = runpy.run_path(str(ROOT / "book" / "_tools" / "lecture.py"))
LEVELS = ("**One line.**", "**Short.**", "**Study.**")
EVERY_CHAPTER = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def exercises(path):
    nb = nbformat.read(path, as_version=4)
    text = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
    return re.findall(r"```+\{exercise\}\s*\n(?::[^\n]*\n)*\s*(.*?)\n```", text, re.S)


SOURCES = "steinhardt2022 pope2022 erdil2025_toy erdil2025_model liminal2025 mazurek2025".split()


@EVERY_CHAPTER
def test_every_exercise_says_its_level(path):
    """A chapter of a source has six or more, from a line to a study."""
    texts = exercises(path)
    for text in texts:
        assert text.startswith(LEVELS), f"begins with none of {LEVELS}: {text[:60]}"
    if path.stem in SOURCES:
        assert len(texts) >= 6
        assert all(any(text.startswith(level) for text in texts) for level in LEVELS)


@EVERY_CHAPTER
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


# What a plain Jupyter shows as code: roles, fences and colons of directives, targets, links to boxes.
RAW = re.compile(r"\{[\w:+-]+\}`|^`{3,}\{|^:{3,}|^\([\w-]+\)=|\]\(#", re.M)


@EVERY_CHAPTER
def test_a_download_and_a_lecture_copy_hold_no_raw_markup(path):
    made = nbformat.reads(plain.notebook(path.read_text("utf-8")), as_version=4)
    nb = nbformat.read(path, as_version=4)
    assert [cell.id for cell in made.cells] == [cell.id for cell in nb.cells]
    for cell in [*made.cells, *LECTURE["lecture_copy"](nb).cells]:
        assert cell.cell_type == "code" or not RAW.search(cell.source), (cell.id, RAW.search(cell.source)[0])


def test_the_build_offers_the_plain_notebooks(tmp_path):
    """By the extension's own step, on the folder that the download button points to."""
    extension = runpy.run_path(str(ROOT / "book" / "_ext" / "downloads.py"))
    page = tmp_path / "_sources" / "book" / "course.ipynb"
    page.parent.mkdir(parents=True)
    raw = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("(here)=\n## See [this](#here)")])
    page.write_text(nbformat.writes(raw), encoding="utf-8")
    app = SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html"))
    extension["rewrite"](app, None)
    assert nbformat.read(page, as_version=4).cells[0].source == "## See this"
    assert "downloads: book/_ext" in (ROOT / "_config.yml").read_text("utf-8")


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


def test_copies_are_made_of_pages_with_exercises():
    stems = {path.stem for path in LECTURE["stories"]()}
    assert {"principles", "steinhardt2022", "price"} <= stems
    assert stems == {path.stem for path in CHAPTERS if exercises(path)}


def test_a_copy_fetches_the_whole_book():
    """A wheel holds the library alone; chapters also import `book`."""
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    made = LECTURE["lecture_copy"](nb, "https://example.org/who/book")
    fetched = "!git clone -q --depth 1 https://example.org/who/book book && pip install -q './book[book]'"
    assert fetched in made.cells[1].source
    assert made.cells[1].source.endswith("%cd book")
    assert len(LECTURE["lecture_copy"](nb).cells) == 2


# --- The cheat sheet ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("entry", cheatsheet.formulas(), ids=lambda entry: entry["name"])
def test_a_formula_is_written_in_the_one_alphabet(entry):
    assert set(entry) - {"names", "zero"} == {"source", "name", "left", "says", "holds"}
    used = {str(symbol) for symbol in cheatsheet.expression(entry).free_symbols}
    assert used <= set(cheatsheet.alphabet()), "a symbol that the alphabet does not declare"
    assert re.search(r"\d", cheatsheet.WORKED[entry["name"]]())


def test_a_symbol_means_one_thing():
    symbols = cheatsheet.alphabet()
    assert len(set(symbols.values())) == len(symbols), "two symbols for one meaning"
    names = [name for entry in cheatsheet.stated()["alphabet"].values() for name in entry["names"]]
    assert len(set(names)) == len(names), "two symbols for one name"
    formulas = cheatsheet.formulas()
    used = {str(symbol) for entry in formulas for symbol in cheatsheet.expression(entry).free_symbols}
    assert used == set(symbols), "a symbol that no formula uses"
    results = [entry["left"] for entry in formulas]
    assert len(set(results)) == len(results)
    # What is a result and an argument alike has one meaning: that of the alphabet.
    meant = {"t_x": "time of an exchange", "t_r": "time of the machine that a request takes",
             "y": "tokens that a round yields"}  # fmt: skip
    assert {symbol: symbols[symbol] for symbol in set(results) & set(symbols)} == meant


def test_the_sheet_typesets_what_the_register_holds_and_answers_as_the_story():
    sheet = cheatsheet.sheet()
    assert sheet.count('class="formula"') == len(cheatsheet.formulas()) == len(cheatsheet.WORKED)
    sources = {entry["source"] for entry in cheatsheet.formulas()}
    assert {"pope2022", "steinhardt2022", "mazurek2025", "serving"} <= sources
    assert r"I^{*} = \frac{C}{M}" in sheet and r"\frac{54\, C^{2}}{M^{3}}" in sheet
    two_d = r"t_{\text{2D}} = \frac{4\, a\, \sqrt{d}\, \sqrt{f}\, n}{B\, \sqrt{N}}"
    assert two_d in sheet, "8 BLE/sqrt(N) for F = 4E"
    assert r"Q_1 = L\, a\, \left(c + e\right)" in sheet, "one latent, counted once"
    box = inferlib.System(inferlib.load_chip("H100 SXM"), 8)
    step = erdil2025.toy_decode_step(inferlib.load_model("Llama 3 70B"), box, inferlib.Workload(32, 4096))
    assert cheatsheet.WORKED["toy_latency"]() == f"{1e3 * step.total:.2f} ms"


def test_numbers_of_the_running_question():
    for name, number in (
        ("cache_data", "42.9 GB"),  # 32 sequences, 4,096 tokens, 320 KiB
        ("cache_per_token", "68.6 KiB"),  # 61 layers, 576 values, two bytes
        ("roofline_time", "6.79 ms"),  # 139 GB and 43 GB over 26.8 TB/s
        ("ridge_point", "295 FLOP/B"),  # 989.5 over 3.35
        ("ring_all_reduce_time", "14 µs"),
        ("optimal_n_gpu", "26 chips"),  # Table 1 of the paper
        ("switch_to_x", "8,192 tokens"),  # the model's width
        ("cache_over_heads", "5.37 GB"),  # an eighth
        ("imbalanced_load", "1.24"),  # 1 / 0.809 of Figure 12
        ("expected_tokens", "2.95"),  # 1 + 0.8 + 0.64 + 0.512
        ("memory_limited_time", "1.41 µs"),  # 54 (989.5e12)^2 / (3.35e12)^3
    ):
        assert number in cheatsheet.WORKED[name](), name
