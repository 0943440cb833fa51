"""The bank of problems: keys that are right, mistakes that can be told apart, one marker in Python and in the page."""

import html
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pint
import pytest
from docutils.nodes import make_id
from prose import notebook
from py_mini_racer import MiniRacer

from book.synthesis import comparison
from book.teaching import lab
from book.teaching.problems import BANK, LEVELS, TOPICS, checker, mark, problems, sheet
from book.teaching.problems.bank import say
from book.teaching.problems.chains import CHAINS, chain, followed
from book.teaching.problems.marking import read, units_of
from book.teaching.problems.page import _file, told
from inferlib import load_chip, load_model
from inferlib.units import factor

ROOT = Path(__file__).parents[1]
STUDENTS = [f"student {k}" for k in range(6)]
DRAWN = [name for name, p in BANK.items() if p.level != "in the head"]
HEAD = [name for name in BANK if name not in DRAWN]
SEVENTY, H100 = load_model("Llama 3 70B"), load_chip("H100 SXM")


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_has_problems_of_all_levels_that_are_drawn(topic):
    own = problems("Ada", topic)
    assert {p.topic for p in own} == {topic}
    assert {p.level for p in own} >= set(LEVELS[1:])


@pytest.mark.parametrize("name", DRAWN)
def test_a_problem_of_many_students(name):
    """Sensible numbers for everybody, the right answer as it is printed is right, and each mistake has its hint."""
    problem, texts = BANK[name], set()
    for student in STUDENTS:
        asked = problem.asked(student)
        texts.add(asked.text)
        assert asked.key.value > 0 and asked.mistakes
        assert not re.search(r"[{}]|nan|inf\b", asked.text + asked.worked), asked.text
        verdict = mark(asked, asked.answer.removesuffix("."))
        assert verdict and verdict.said == f"Right: {asked.answer}."
        for hint, wrong in asked.mistakes.items():
            assert abs(wrong / asked.key.value - 1) > problem.near, (student, hint)
            assert 1e-5 < wrong / asked.key.value < 2e3, "so far off is no usual mistake"
            said = mark(asked, wrong / factor(problem.unit)).said
            if "round" in said:
                continue  # a whole number that is missed by less than one
            near = [h for h, value in asked.mistakes.items() if abs(wrong / value - 1) <= problem.near]
            assert said in {f"Not yet: {h}." for h in near}, (student, hint)
    assert len(texts) >= 3, "numbers that hardly change by student"
    assert problem.asked(STUDENTS[0]).text == problem.asked(STUDENTS[0]).text


V3 = load_model("DeepSeek V3")
USUAL = {"model": SEVENTY, "chip": H100, "count": 8, "weights": "bf16", "batch": 32, "context": 4096}


@pytest.mark.parametrize(
    "row",
    [
        # Each computed by hand from data sheets and shapes: 70.55 billion weights, 80 layers, 8 of 64 heads of width
        # 128, d 8192, a vocabulary of 128,256; 3.35 TB/s, 989.5 TFLOP/s, 80 GB, $3.99.
        ("memory-2", {}, 139e9 / 26.8e12, 41.49e-3),
        ("memory-3", {}, 498.9e9, 640e9),
        ("memory-4", {"context": 16384}, 4, 2),
        ("memory-5", {}, 371, 476.8),
        ("cache-2", {}, 42.95e9, 8 * 42.95e9),
        ("cache-4", {}, 1.6026e-3),
        ("arithmetic-1", {}, 2 * 69.5e9, 69.5e9),
        ("arithmetic-3", {"weights": "fp8"}, 147.7, 295.4),
        ("experts-2", {"model": V3, "weights": "fp8"}, 671e9, 1342e9),
        ("experts-4", {"model": V3}, 175, 32),
        ("network-2", {"latency": 5e-6}, 0.8e-3, 0.4e-3, 10e-6),
        ("network-4", {"hop": 1e-6}, (141.1e9 / 3.35e12 / 320e-6) ** (2 / 3)),
        ("network-6", {"ports": 1}, 4096 * 327680 / 50e9, 4096 * 327680 / 400e9),
        ("collectives-3", {"tokens": 1024}, 14 / 8 * 2**24 / 450e9, 2 * 2**24 / 450e9),
        ("collectives-4", {"count": 64}, 5.37e9, 0.671e9),
        ("pipeline-1", {"stages": 4, "count": 2}, 139e9 / 6.7e12, 139e9 / 26.8e12),
        ("pipeline-2", {"time": 0.05, "stages": 4}, 2560, 640, 20, 80),
        ("pipeline-3", {"stages": 4, "latency": 5e-6}, 46.46e-6, 61.94e-6, 1.239e-3, 30.73e-6),
        ("pipeline-4", {"stages": 4}, 9.778e9, 5.752e9, 23.01e9, 4.41e9),
        ("prompts-1", {"tokens": 4000}, 2 * 68.45e9 * 4000, 68.45e9 * 4000),
        ("prompts-3", {"users": 32, "answer": 500, "reading": 0.1}, 6.2e-3, 6.4e-3, 3.1, 0.2e-3),
        ("cost-1", {"seconds": 0.02}, 5.542, 177.3, 0.6927, 332.5),
        ("cost-2", {"full": 1.2, "share": 40}, 3, 0.48, 2),
        # 412.5 ms of a machine of 0.887 cents a second
        ("cost-5", {"reading": 0.1, "answer": 500, "step": 0.02, "users": 32, "share": 40}, 9.144e-3, 0.2239,
         6.996e-3, 3.657e-3, 0.5486),
        ("method-1", {"seconds": 0.02, "measured": 0.05}, 0.6, 1.5, 0.4),
        # the bound that the chapter on first principles prints: 6.8 ms at 4,096 tokens, of which 1.6 cache
        ("method-3", {"measured": 13.58e-3}, 0.5),
    ],
    ids=lambda row: row[0],
)  # fmt: skip
def test_keys_that_a_hand_can_compute(row):
    name, own, answer, *mistakes = row
    key = BANK[name].solve(**{asked: (USUAL | own)[asked] for asked in BANK[name].choices})
    assert key.value == pytest.approx(answer, rel=2e-3)
    for wrong in mistakes:
        assert wrong in [pytest.approx(value, rel=2e-3) for value in key.mistakes.values()]


QUANTITY = r"\$?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
WRITTEN = {"µs": "us", "J": "W*s", "tokens/s": "1/s", "tokens": "1", "bits": "1", "billion": "1", "": "1"}
UNIT = "(?:TFLOP/s|FLOP/B|[TG]i?B/s|[TG]?FLOP|[KMG]iB|[MGT]?B|ms|µs|ns|tokens/s|tokens|bits|billion|cent|s|W|J|%)"
TERM = rf"{QUANTITY}(?: {UNIT})?(?![\w/])"
SUM = re.compile(rf"((?:[(]*{TERM}[)]*(?:\^(?:{TERM}|\(2/3\)))?[)]*(?: [-+×/] |(?= = )))+) = ({TERM})")


def value_of(written):
    """A number in print, with its unit, in SI."""
    number, _, unit = written.partition(" ")
    size = factor(WRITTEN.get(unit, unit)) * (1e9 if unit == "billion" else 1)
    return float(number.strip("$").replace(",", "")) * size * (factor("usd") if "$" in number else 1)


@pytest.mark.parametrize("name", DRAWN)
def test_every_sum_adds_up_to_the_answer_in_print(name):
    """With the digits shown, as a student with a pocket calculator adds it up; and no sum is shown without its end."""
    for student in STUDENTS:
        asked = BANK[name].asked(student)
        worked, sums = asked.worked, SUM.findall(asked.worked)
        for terms, result in sums:
            terms = terms.replace("×", "*").replace("^", "**")
            found = eval(re.sub(TERM, lambda term: repr(value_of(term[0])), terms))
            assert found == pytest.approx(value_of(result), rel=2e-3), (student, worked)
        for _, last in sums[-1:]:
            assert asked.exact or value_of(last) == pytest.approx(asked.key.value, rel=2e-3), worked
        left = SUM.sub("", worked)
        assert not re.search(r" [-+×/=^] | over \d", left), (student, left)


@pytest.mark.parametrize("name", [name for name, p in BANK.items() if not p.stated])
def test_what_the_answer_depends_on_is_given(name):
    """Where no small print says what the catalogue knows, the text must: other answers have other numbers in it."""
    given = BANK[name].asked("Ada").given
    for key, values in BANK[name].choices.items():
        load = {"model": load_model, "chip": load_chip}.get(key, lambda value: value)
        seen = {}
        for value in map(load, values):
            asked = replace(BANK[name], given={**given, key: value})
            text = asked.text.replace(getattr(value, "name", "\0"), "")
            assert seen.setdefault(text, asked.key.value) == pytest.approx(asked.key.value, rel=1e-3), text


@pytest.mark.parametrize("name", [name for name, p in BANK.items() if p.exact])
def test_a_whole_number_under_a_limit_is_exact(name, page):
    asked = BANK[name].asked("Ada")
    for more in (0, 1, -1, 0.4):
        text = f"{asked.key.value + more:g}"
        said = mark(asked, text)
        assert bool(said) == (more == 0)
        assert page(asked, text) == (said.right, said.said)


@pytest.mark.parametrize(
    ("written", "unit", "value"),
    [("12.3 ms", "s", 0.0123), ("12.3ms", "ms", 0.0123), (12.3, "ms", 0.0123), ("1,234.5", "1", 1234.5),
     ("1.2e3 µs", "ms", 1.2e-3), ("$3.50", "usd", 3.5), ("350 cents", "usd", 3.5), ("3 J", "W*s", 3),
     ("12 %", "1", 0.12), ("2 GiB", "GB", 2**31), ("90 tokens/s", "1/s", 90), (pint.Quantity(3, "ms"), "s", 0.003)],
)  # fmt: skip
def test_numbers_as_people_write_them(written, unit, value):
    assert read(written, unit) == pytest.approx(value)


@pytest.mark.parametrize(
    ("written", "why"),
    [("", "no number"), ("ms", "no number"), ("twelve", "no number"), ("1 2 ms", "no number"), (None, "no number"),
     ("12 GB", "no unit"), ("12 mss", "no unit"), ("14.9", "without its unit"), ("12,3 ms", "decimal point"),
     ("0,224 ms", "decimal point"), (",5 ms", "decimal point"), ("1,2345 ms", "decimal point")],
)  # fmt: skip
def test_what_cannot_be_read_is_said(written, why):
    with pytest.raises(ValueError, match=why):
        read(written, "ms")
    assert mark(BANK["memory-2"].asked("Ada"), written).said.startswith("Not read: ")


def test_a_student_checks_without_a_key():
    check = checker("Ada")
    asked = BANK["network-2"].asked("Ada")
    assert check("network-2", asked.answer) and not check("network-2", "1 s") and not check("network-2")
    assert "factor of 10^3" in check("network-2", 1e3 * asked.key.value / 1e-3).said
    with pytest.raises(LookupError, match="network-2"):
        check("netwrok-2", 1)
    asked = BANK["memory-1"].asked("Ada")  # a GiB for a GB is told
    assert "GiB" in mark(asked, asked.key.value / 2**30).said
    assert mark(asked, f"{asked.key.value / 2**30} GiB")


@pytest.fixture(scope="module")
def page():
    """What the page says to an answer of a problem."""
    engine = MiniRacer()
    engine.eval(f"const window = {{}}; {_file('mark.js')}")

    def said(asked, written):
        call = f"inferlibVerdict({json.dumps(told(asked))}, {json.dumps(written)})"
        found = json.loads(engine.eval(f"JSON.stringify(window.{call})"))
        return found["right"], found["said"]

    return said


@pytest.mark.parametrize("name", DRAWN)
def test_the_page_says_what_python_says(name, page):
    asked = BANK[name].asked("Ada")
    scale = factor(asked.unit)
    right = asked.key.value / scale
    near = [share * right for share in (1, 1.3, 0.4, 1e3, 2e4, -1)]
    values = (*near, *(value / scale for value in asked.mistakes.values()))
    texts = [f"{x:.6g} {unit}" for x in values for unit in list(units_of(asked.unit))[:1]]
    texts += [f"{right:.6g} {unit}" for unit in units_of(asked.unit)]
    rounded = [f"{right:.{digits}g}" for digits in (1, 2)]
    edge = [float(x) / right - 1 for x in rounded]  # on the edge of what is allowed both may differ
    texts += [f"{x} {asked.answer.split()[-1]}" for x, off in zip(rounded, edge, strict=True)
              if abs(abs(off) - asked.near) > 1e-5]  # fmt: skip
    texts += [asked.answer, "", "x", "3", "12,3", "0,224 s", "1,234 s", "3 parsecs", "$1", "µ", ". ms"]
    for text in texts:
        said = mark(asked, text)
        assert page(asked, text) == (said.right, said.said), text


@pytest.mark.parametrize("name", HEAD)
def test_a_question_for_the_head_is_marked_in_the_page_as_in_python(name, page):
    asked = BANK[name].asked("Ada")
    answers = (
        "ABCD" if asked.options else [asked.answer, *(say(v, asked.unit) for v in asked.mistakes.values())]
    )
    for at, answer in enumerate(answers):
        said = mark(asked, answer)
        assert page(asked, at if asked.options else answer) == (said.right, said.said)


ASKED = [BANK[name].asked("Ada") for name in HEAD]
CHOICES = [asked for asked in ASKED if asked.options]


@pytest.mark.parametrize("asked", CHOICES, ids=lambda asked: asked.name)
def test_one_of_four_options_is_right_and_each_other_has_its_reason(asked):
    assert len(set(asked.options)) == 4
    assert [bool(mark(asked, letter)) for letter in "ABCD"] == [o == asked.key.right for o in asked.options]
    assert all(len(why) > 5 for why in asked.key.wrong.values())


@pytest.mark.parametrize("asked", [a for a in ASKED if not a.options], ids=lambda asked: asked.name)
def test_a_mistake_in_the_head_is_told_from_the_answer(asked):
    assert asked.key.mistakes
    assert all(abs(wrong / asked.key.value - 1) > asked.near for wrong in asked.mistakes.values())


@cache
def anchors(page):
    text = "\n".join(cell.source for cell in notebook(page).cells)
    headings = re.findall(r"(?m)^#{2,4} +(.+)$", text)
    return {*re.findall(r"(?m)^\(([\w-]+)\)=", text), *map(make_id, headings)}


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.name)
def test_a_question_for_the_head_has_a_paragraph_that_teaches_it(asked):
    page, _, place = asked.place.partition("#")
    assert place in anchors(page)


def test_the_page_holds_questions_answers_and_nothing_twice():
    page = "".join(sheet("Ada", topic)._repr_html_() for topic in TOPICS)
    assert page.count("<details><summary>Answer</summary>") == page.count("data-mark=") == len(BANK)
    page += "".join(sheet("Ada", f"chain-{session}")._repr_html_() for session in CHAINS)
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    known = json.loads(
        html.unescape(re.search(r'data-mark="([^"]*)"', sheet("Ada", "method")._repr_html_())[1])
    )
    assert {"value", "unit", "units", "answer", "tolerance", "exact", "mistakes"} == set(known)


@pytest.mark.parametrize("session", CHAINS)
def test_a_chain_is_five_questions_on_one_machine(session):
    for student in STUDENTS[:2]:
        asked = chain(student, session)
        assert len(asked) == 5 and asked[0].text == chain(student, session)[0].text
        given = [a.given for a in asked if {"model", "chip"} <= set(a.given)]
        assert len({(str(one["model"]), str(one["chip"])) for one in given}) == 1
        check = checker(student)
        assert all(check(a.name, a.answer) for a in asked) and len(sheet(student, f"chain-{session}")) == 5


@pytest.mark.parametrize("session", CHAINS)
@pytest.mark.parametrize("student", STUDENTS)
def test_no_question_of_a_chain_prints_an_earlier_answer(student, session):
    links = chain(student, session)
    for k, asked in enumerate(links):
        for later in links[k + 1 :]:
            assert asked.answer not in later.text


@pytest.mark.parametrize("session", CHAINS)
def test_whoever_goes_on_rightly_from_a_wrong_answer_is_followed(session):
    """Half of each first answer that others lean on: the later ones change by what the equation makes of it."""
    links = chain("Ada", session)
    leaning = [a for a in links if "found in" in a.text]
    for asked in leaning:
        place = re.search(r"found in (chain-\d\.\d)", asked.text)[1]
        (before,) = [a for a in links if a.name == place]
        same = followed(asked, links, {place: before.key.value})
        other = followed(asked, links, {place: before.key.value / 2})
        assert same == pytest.approx(asked.key.value)
        assert other != pytest.approx(same)


def test_a_chain_of_no_session_is_refused():
    with pytest.raises(LookupError, match="session is 9"):
        chain("Ada", 9)


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("memory-4", lambda key: f"{key - 0.94}", "round up"),
        ("memory-5", lambda key: f"{key + 0.4}", "round down"),
        ("network-2", lambda key: f"{key / 1e-3:.1g} ms", "Right|rounded too much"),
        ("cache-5", lambda key: f"{round(key / 1000)},000", "Right|rounded too much"),
        ("memory-2", lambda key: f"{round(1e6 * key):,} ms", "comma parts thousands"),
    ],
)
def test_a_slip_of_the_pen_is_named(name, answer, said):
    asked = BANK[name].asked("Ada")
    assert re.search(said, mark(asked, answer(asked.key.value)).said)


def test_rows_that_are_held_back_are_scored_against_what_was_measured():
    rows = lab.held_back("Ada", 4)
    assert "tpot" not in rows and len(rows) == 4 and not rows.equals(lab.held_back("Bob", 4))
    truth = comparison.rows().tpot.loc[rows.index].tolist()
    assert lab.score("Ada", truth).loc["mean error", "yours"] == "0 %"
    assert lab.score("Ada", [2 * t for t in truth]).loc["mean error", "yours"] == "100 %"
    assert lab.score("Ada", truth).loc["mean error", "principles"] != "0 %"
    with pytest.raises(ValueError, match="positive"):
        lab.score("Ada", [0.0])
