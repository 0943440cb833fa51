"""The teaching kit: nothing of a solution in a lecture copy, answers that are right, one symbol for one meaning."""

import json
import re
import runpy
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from py_mini_racer import MiniRacer

import inferlib
from book import cheatsheet, course
from book._tools import plain
from book.problems.bank import say
from book.problems.page import _file
from book.quiz import NEAR, QUESTIONS, TOPICS, quiz
from book.synthesis.indexes import anchor
from inferlib.papers import erdil2025
from inferlib.units import factor

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
    page = tmp_path / "_sources" / "book" / "quiz.ipynb"
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


def test_students_get_stories_and_no_keys_and_fetch_the_whole_book():
    stems = [path.stem for path in LECTURE["stories"]()]
    assert stems[:3] == ["introduction", "principles", "steinhardt2022"] and "price" in stems
    assert not [stem for stem in stems if "record" in stem]
    assert not {"scorecard", "errata", "equations", "notation", "catalogue", "quiz", "problems"} & set(stems)
    # a wheel holds the library alone; chapters also import `book`
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    made = LECTURE["lecture_copy"](nb, "https://example.org/who/book")
    fetched = "!git clone -q --depth 1 https://example.org/who/book book && pip install -q './book[book]'"
    assert fetched in made.cells[1].source and made.cells[1].source.endswith("%cd book")
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


# --- The quiz ----------------------------------------------------------------------------------------------
def test_questions_on_all_of_the_book_have_their_answers_folded_in_the_page():
    assert len(QUESTIONS) >= 40 and len(QUESTIONS) == sum(len(quiz(topic)) for topic in TOPICS)
    numbers = [question for question in QUESTIONS if question.unit is not None]
    assert len(numbers) >= 12 and len(QUESTIONS) - len(numbers) >= 12
    places = [question.told["right"] for question in QUESTIONS if question.unit is None]
    assert all(places.count(k) >= 2 for k in range(4)), "the right option is not always the same"
    assert {"prompts", "cost", "energy"} <= set(TOPICS)
    assert len({question.text for question in QUESTIONS}) == len(QUESTIONS)
    with pytest.raises(LookupError, match="memory"):
        quiz("memmory")
    # without scripts
    page = quiz()._repr_html_()
    body = re.sub(r"(?s)<(script|style)>.*?</\1>", "", page)
    assert body.count("<details><summary>Answer</summary>") == len(QUESTIONS)
    assert body.count('<ol class="options"') == sum(q.unit is None for q in QUESTIONS)
    assert "<input" not in body, "what only works with scripts is made by them"


@cache
def anchors(page):
    text = "\n".join(c.source for c in nbformat.read(ROOT / "book" / f"{page}.ipynb", as_version=4).cells)
    headings = re.findall(r"(?m)^#{2,4} +(.+)$", text)
    return {*re.findall(r"(?m)^\(([\w-]+)\)=", text), *map(anchor, headings)}


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text[:40])
def test_a_question_has_an_answer_a_reason_and_a_place(question):
    assert question.text.endswith("?") and len(question.key.worked) > 20
    page, _, place = question.place.partition("#")
    assert place in anchors(page), f"no such paragraph: {question.place}"
    assert f'href="{page}.html#{place}"' in question.explained
    if question.unit is None:
        assert len(question.options) == len(set(question.options)) == 4
        assert question.options[question.told["right"]] == question.key.right
        assert all(len(hint) > 5 for hint in question.key.wrong.values())
    else:
        assert question.key.mistakes
        for hint, wrong in question.key.mistakes.items():
            assert abs(wrong / question.key.value - 1) > NEAR, hint


def test_answers_that_can_be_found_elsewhere():
    for words, answer in (
        ("read all of the 16-bit weights", "5.27 ms"),  # 141.1 GB at 8 x 3.35 TB/s
        ("cache does one token", "320 KiB"),
        ("how many FLOP for each byte is an H100", "295 FLOP/B"),
        ("from 16 to 8 bits", "factor of 1."),
        ("make a token of Llama 3 70B fastest", "26.1"),  # Table 1 of the paper: 26
        ("does a batch of 32 touch", "163"),  # 256 (1 - (31/32)^32)
        ("gather weights rather", "18,432"),  # the width of PaLM 540B, Table D.1
        ("times the least possible", "8."),  # 64 chips, 8 heads
        ("Five drafts a round", "3.69"),  # 1 + 0.8 + 0.64 + 0.512 + 0.4096 + 0.32768
        ("kernel launches", "1.28 ms"),  # 80 layers, four launches of 4 us
        ("LIMINAL's 128 chips", "3,093"),  # 320 collectives of 1.01 us, section 3
        ("less than one of the 256", "175"),  # 256 (31/32)^175 = 0.99
        ("over 72 GPUs", "1.24"),  # 1 / 0.809 of Figure 12
        ("values does DeepSeek V3 keep", "35,136"),  # 61 layers of 576
        ("one user alone", "$46."),  # 139 GB at 26.8 TB/s, 8 x $3.99 an hour
        ("price list of February", "7 times"),  # 2.19 over 0.30
        ("GFLOP does one token", "139 GFLOP"),
        ("equation 8", "9.1 of 15.8 ms"),  # 80 layers of 114 us
    ):
        (question,) = (q for q in QUESTIONS if words.lower() in q.text.lower())
        assert answer in question.plain, words


def test_a_session_opens_with_four_questions_on_the_one_before_that_do_not_give_away_the_board():
    def numbers_in(text):
        return [float(number.replace(",", "")) for number in re.findall(r"\d[\d,.]*\d", text)]

    sessions = course.sessions()
    asked = [[part["quiz"] for part in s.plan["part"] if "quiz" in part] for s in sessions]
    assert asked == [[], *([k] for k in range(1, len(sessions)))]
    for before, after in enumerate(sessions[1:], 1):
        taught = {part["deck"] for part in sessions[before - 1].plan["part"] if "deck" in part}
        assert {q.place.partition("#")[0] for q in quiz(session=before)} <= taught
        assert len(quiz(session=before)) == 4 and "quiz" in after.plan["part"][0]
        board = numbers_in(" ".join(words for strokes in after.boards for _, words in strokes))
        for question in quiz(session=before):
            answer = question.key.right if question.unit is None else say(question.key.value, question.unit)
            near = [(a, b) for a in numbers_in(answer) for b in board if abs(a / b - 1) < 0.01]
            assert not near, question.text
    assert not quiz(session=len(sessions))


def test_the_quiz_marks_itself_in_the_page():
    engine = MiniRacer()
    engine.eval(f"const window = {{}}; {_file('mark.js')}")

    def verdict(question, answer):
        told, given = json.dumps(question.told), json.dumps(answer)
        return json.loads(engine.eval(f"JSON.stringify(window.inferlibVerdict({told}, {given}))"))

    for question in QUESTIONS:
        if question.unit is None:
            said = [verdict(question, k) for k in range(4)]
            assert [one["right"] for one in said] == [k == question.told["right"] for k in range(4)]
            for option, one in zip(question.options, said, strict=True):
                hint = None if one["right"] else question.key.wrong[option]
                assert one["said"] == (f"Not yet: {hint}." if hint else "Right.")
            assert not verdict(question, None)["right"]
        else:
            value = question.key.value / factor(question.unit)
            assert verdict(question, f"{1.1 * value:.6g}")["right"]
            assert not verdict(question, f"{1.2 * value:.6g}")["right"]
            hint, wrong = next(iter(question.key.mistakes.items()))
            assert verdict(question, f"{wrong / factor(question.unit):.6g}")["said"] == f"Not yet: {hint}."
