"""The bank of problems: keys that are right, mistakes that can be told apart, one marker in Python and in the page."""

import json
import math
import re
from dataclasses import replace

import pytest
from facts import from_table, lines
from py_mini_racer import MiniRacer

from book.teaching.problems import BANK, mark, sheet
from book.teaching.problems.bank import shown
from book.teaching.problems.chains import SESSIONS, chain, followed, follows
from book.teaching.problems.marking import told, units_of
from book.teaching.problems.page import _file
from book.teaching.problems.reading import quantity
from inferlib import load_chip, load_model
from inferlib.papers import pope2022
from inferlib.units import factor

STUDENTS = [f"student {k}" for k in range(6)]
DRAWN = [name for name, p in BANK.items() if p.level != "in the head"]
HEAD = [name for name in BANK if name not in DRAWN]


@pytest.mark.parametrize("name", DRAWN)
def test_a_problem_of_many_students(name):
    """Every student gets sensible numbers, the printed answer is marked right, and each mistake gets its hint."""
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


USUAL = {
    "model": "Llama 3 70B",
    "chip": "H100 SXM",
    "count": 8,
    "weights": "bf16",
    "batch": 32,
    "context": 4096,
}


@pytest.mark.parametrize(("name", "own", "answer", "mistakes"), lines("keys"))
def test_keys_that_a_hand_can_compute(name, own, answer, mistakes):
    """From data sheets and shapes: 70.55 billion weights, 80 layers, 8 of 64 heads of width 128, d 8192, a vocabulary
    of 128,256; 3.35 TB/s, 989.5 TFLOP/s, 80 GB, $3.99. For cost-5 412.5 ms of a machine of 0.887 cents a second."""
    given = USUAL | json.loads(own)
    given |= {"model": load_model(given["model"]), "chip": load_chip(given["chip"])}
    key = replace(BANK[name], given={asked: given[asked] for asked in BANK[name].choices}).key
    assert key.value == pytest.approx(eval(answer), rel=2e-3)
    for wrong in eval(f"[{mistakes}]"):
        assert wrong in [pytest.approx(value, rel=2e-3) for value in key.mistakes.values()]


QUANTITY = r"\$?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
WRITTEN = {"µs": "us", "tokens/s": "1/s", "tokens": "1", "bits": "1", "billion": "1", "": "1"}
UNIT = "(?:TFLOP/s|FLOP/B|[TG]i?B/s|[TG]?FLOP|[KMG]iB|[MGT]?B|ms|µs|ns|tokens/s|tokens|bits|billion|cent|s|%)"
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
    """Where the catalogue's facts are not listed, the text must give them: other answers need other numbers in it."""
    given = BANK[name].asked("Ada").given
    for key, values in BANK[name].choices.items():
        load = {"model": load_model, "chip": load_chip}.get(key, lambda value: value)
        seen = {}
        for value in map(load, values):
            asked = replace(BANK[name], given={**given, key: value})
            text = asked.text.replace(getattr(value, "name", "\0"), "")
            assert seen.setdefault(text, asked.key.value) == pytest.approx(asked.key.value, rel=1e-3), text


def read(written, unit):
    """An answer as a number in the unit that is asked for."""
    return quantity(written, {"unit": shown(unit), "units": units_of(unit)})


ANSWERS = lines("answers")


@pytest.mark.parametrize(("written", "unit", "expected"), [*ANSWERS, ["9" * 5000, "ms", "no number"]])
def test_answers_are_read_as_people_write_them_or_refused_with_a_reason(written, unit, expected):
    if re.search("[a-z]", expected):
        with pytest.raises(ValueError, match=expected):
            read(written, unit)
    else:
        assert read(written, unit) == pytest.approx(float(expected))


def test_a_gib_for_a_gb_is_told():
    asked = BANK["memory-1"].asked("Ada")
    assert "GiB" in mark(asked, asked.key.value / 2**30).said
    assert mark(asked, f"{asked.key.value / 2**30} GiB")


@pytest.fixture(scope="module")
def page():
    """The page's feedback on an answer to a problem."""
    engine = MiniRacer()
    engine.eval(f"const window = {{}}; {_file('mark.js')}")

    def said(asked, written):
        call = f"inferlibVerdict({json.dumps(told(asked))}, {json.dumps(written)})"
        found = json.loads(engine.eval(f"JSON.stringify(window.{call})"))
        return found["right"], found["said"]

    return said


@pytest.mark.parametrize("name", [name for name, problem in BANK.items() if problem.unit])
def test_the_page_says_what_python_says(name, page):
    asked = BANK[name].asked("Ada")
    scale = factor(asked.unit)
    right = asked.key.value / scale
    near = [share * right for share in (1, 1.3, 0.4, 1e3, 2e4, -1)]
    values = (*near, *(value / scale for value in asked.mistakes.values()))
    texts = [f"{x:.6g} {unit}" for x in values for unit in list(units_of(asked.unit))[:1]]
    texts += [f"{right:.6g} {unit}" for unit in units_of(asked.unit)]
    rounded = [f"{right:.{digits}g}" for digits in (1, 2)]
    edge = [float(x) / right - 1 for x in rounded]  # at the edge of the tolerance page and Python may differ
    texts += [f"{x} {asked.answer.split()[-1]}" for x, off in zip(rounded, edge, strict=True)
              if abs(abs(off) - asked.near) > 1e-5]  # fmt: skip
    texts += [asked.answer, *(text for text, *_ in ANSWERS)]
    for text in texts:
        said = mark(asked, text)
        assert page(asked, text) == (said.right, said.said), text


@pytest.mark.parametrize("name", [name for name in HEAD if not BANK[name].unit])
def test_one_of_four_options_is_right_and_each_other_has_its_reason(name, page):
    asked = BANK[name].asked("Ada")
    assert len(set(asked.options)) == 4
    for at, option in enumerate(asked.options):
        why = asked.key.wrong.get(option)
        assert page(asked, at) == (not why, f"Not yet: {why}." if why else "Right.")


@pytest.mark.parametrize("session", SESSIONS)
def test_a_chain_is_five_questions_on_one_machine(session):
    for student in STUDENTS[:2]:
        asked = chain(student, session)
        assert len(asked) == 5 and asked[0].text == chain(student, session)[0].text
        given = [a.given for a in asked if {"model", "chip"} <= set(a.given)]
        assert len({(str(one["model"]), str(one["chip"])) for one in given}) == 1
        assert all(mark(a, a.answer) for a in asked) and len(sheet(student, f"chain-{session}")) == 5


@pytest.mark.parametrize("session", SESSIONS)
def test_from_right_answers_the_right_one_follows(session):
    """Of all questions that name an earlier one; half of an earlier answer leads elsewhere."""
    links = chain("Ada", session)
    right = {a.name: a.key.value for a in links}
    for asked in links:
        named = re.findall(r"found in (chain-\d\.\d)(?: and (chain-\d\.\d))?", asked.text)
        sums = follows(asked, links)
        assert bool(sums) == bool(named)
        if sums:
            value = followed(sums, right)
            assert asked.key.value == pytest.approx(math.floor(value) if asked.exact else value)
            assert followed(sums, right | {named[0][0]: right[named[0][0]] / 2}) != pytest.approx(value)


@from_table
def test_a_slip_of_the_pen_is_named(name, answer, said):
    asked = BANK[name].asked("Ada")
    assert re.search(said, mark(asked, answer(asked.key.value)).said)


def test_only_prompts_gather_weights_in_the_warm_up():
    """The right option of ``who_gathers`` is text: 512 users lie below the switch, a million tokens above it."""
    switch = pope2022.switch_to_x(pope2022.load_model("PaLM 540B"), pope2022.load_mesh(64))
    assert 512 < switch < 1e6
