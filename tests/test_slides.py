"""Decks hold what the stories hold, and fit their minutes; the course fits its ninety."""

import html
import re
from dataclasses import fields
from operator import attrgetter
from urllib.parse import parse_qsl

import pytest
from facts import from_table, lines

import tokenprice
from book.teaching import slides
from book.teaching.problems import sheet
from book.teaching.slides.board import numbers


@pytest.fixture(scope="module", params=slides.SESSIONS)
def deck(request):
    return slides.deck(request.param)


FIELD = re.compile(r'<input type="number"[^>]* data-key="(\w+)"[^>]* min="([^"]+)" max="([^"]+)"')


def test_a_box_can_be_in_the_state_that_its_slide_asks_for(deck):
    for slide in filter(attrgetter("state"), deck):
        ((kind, box),) = slide.show
        ranges = {key: (float(low), float(high)) for key, low, high in FIELD.findall(box)}
        inside = [ranges[key][0] <= value <= ranges[key][1] for key, value in slide.state.items()]
        assert slide.ask and all(inside), slide.title


def test_the_calculator_understands_what_a_slide_asks(deck):
    for page in [content for slide in deck for kind, content in slide.show if kind == "page"]:
        assert page.startswith("../book/calculator.html?slide#ask?")
        asked = dict(parse_qsl(page.rpartition("?")[2]))
        promised = {field.name: asked.pop(field.name, None) for field in fields(tokenprice.SLO)}
        asked.pop("mode", None)
        assert tokenprice.Question("Llama 3 70B", **asked) and tokenprice.SLO(**promised)


def test_every_formula_on_a_slide_says_what_its_symbols_mean(deck):
    """From the register of notation; what it does not know, the slide says itself, in a sentence on the letters."""
    for slide in deck:
        texts = [content for kind, content in slide.show if kind == "text"]
        told = [slides.symbols_of(slide.chapter, text) for text in texts if r"\begin{equation" in text]
        assert sum(kind == "symbols" for kind, _ in slide.show) == sum(bool(line) for line, _ in told)
        own = any(text.startswith(("Here ", "On the left")) for text in texts)
        assert own or not any(left for _, left in told), (slide.title, told)


NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w])")
ANSWER = re.compile(r'"answer": ?([\d.e+-]+)')


def printed(slide):
    """The numbers on a slide that a room can read: in its words, its tables and its drawings."""
    parts = [slide.title]
    for kind, content in slide.show:
        if kind == "figure":
            parts += [content[1], *re.findall(r"<!-- (.*?) -->", content[0])]
        elif kind != "page":
            parts.append(re.sub(r"(?s)<(script|style)>.*?</\1>|<[^>]+>", " ", content))
    return {float(number.replace(",", "")) for number in NUMBER.findall(" ".join(parts))}


def asked_for(slide):
    """Numbers that the room is to find on a slide: the answer of its guess, those of its board; no counts below ten."""
    boxes = [box for kind, box in slide.show if kind == "html" and "inferlibGuess" in box]
    answers = [float(found) for box in boxes for found in ANSWER.findall(box)]
    answers += [float(numbers()[name].replace(",", "")) for name in slide.finds]
    return [answer for answer in answers if answer >= 10 or answer != int(answer)]


def test_no_answer_stands_on_its_own_slide_or_an_earlier_one(deck):
    seen = set()
    for slide in deck:
        seen |= printed(slide)
        for answer in asked_for(slide):
            told = [number for number in seen if abs(number / answer - 1) < 0.005]
            assert not told, (slide.title, told)


def test_a_session_takes_ninety_minutes(deck):
    assert sum(slide.minutes for slide in deck) == 90


@pytest.mark.parametrize("session", range(1, 6))
def test_a_session_begins_with_four_questions_on_the_one_before(session):
    asked = sheet("Ada", f"session-{session}")
    assert len(asked) == 4
    opening = slides.deck(f"session-{session + 1}")[:4]
    for one, slide in zip(asked, opening, strict=True):
        assert html.escape(one.text) in slide.show[0][1]


@pytest.fixture(scope="module")
def told():
    return {name: float(text.replace(",", "")) for name, text in numbers().items()}


# config.json of Qwen3 32B on the slide, by the three lines below it
QWEN = 64 * (2 * 5120 * 128 * (64 + 8) + 3 * 5120 * 25600) + 2 * 151936 * 5120


@pytest.mark.parametrize(("name", "by_hand", "tolerance"), lines("boards"))
def test_a_number_of_the_boards_agrees_with_a_sum_in_the_head(name, by_hand, tolerance, told):
    assert told[name] == pytest.approx(eval(by_hand, {"QWEN": QWEN} | told), rel=float(tolerance))


@from_table
def test_with_its_memory_full_a_step_does_295_flop_for_each_byte(ends, held, told):
    """It reads 640 GB but for the input embedding."""
    users = (640e9 - held) / (told[ends] * told["token_bytes"])
    flop = users * (139e9 + 4 * 80 * 64 * 128 * told[ends])
    assert flop / (640e9 - held * 1.05 / 70.55) == pytest.approx(told["ridge"], rel=0.01)
