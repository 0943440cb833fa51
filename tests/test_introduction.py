"""The introduction: its box, the frontier of that box, its links, and its length."""

import json
import re
import runpy
from functools import cache
from pathlib import Path

import pytest
from prose import without_fences
from test_explorer import asked, page_of

from book import opening, questions, sixth, slides, style
from inferlib import load_chip, load_model
from inferlib.system import System

CHAPTER = Path(__file__).parents[1] / "book" / "introduction.ipynb"
READER = runpy.run_path(str(CHAPTER.parent / "_ext" / "reader.py"))
TEXT = "\n\n".join(
    "".join(cell["source"])
    for cell in json.loads(CHAPTER.read_text("utf-8"))["cells"]
    if cell["cell_type"] == "markdown" and "remove-cell" not in cell["metadata"].get("tags", [])
)
SPEED, PRICE = "tokens/s for each user", "$ per million tokens"


@cache
def box():
    return opening.one_token()


@cache
def frontier():
    return box().views[1].edge(box())


def cheapest(speed):
    return min(price for x, price in frontier() if x >= speed)


def linked():
    """The numbers that each link of the text sets."""
    for state in re.findall(r"\(#one-token\?([^)]*)\)", TEXT):
        yield {key: value for key, value in (pair.split("=") for pair in state.split("&"))}


def test_the_printed_case_needs_no_word(capsys):
    opening.yours(opening.RUNNING)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "change, says",
    [
        (
            {"machine": "8x B200"},
            "yours: Llama 3 70B on 8x B200; the text speaks of Llama 3 70B on 8x H100 SXM",
        ),
        ({"batch": 64}, "on 8x H100 SXM, batch 64; the text speaks of Llama 3 70B on 8x H100 SXM, batch 32"),
        ({"machine": System(load_chip("H100 SXM").replace(price=1.0), 8)}, "8x H100 SXM with other numbers;"),
    ],
)
def test_another_case_says_so(change, says, capsys):
    opening.yours(opening.RUNNING.replace(**change))
    assert says in capsys.readouterr().out


def test_where_the_sixth_model_has_no_time_it_says_why():
    said = sixth.says(opening.RUNNING.replace(model="GPT-3 175B", batch=64))
    assert "needs 1586 GB" in repr(said)


def test_it_is_short():
    text = re.sub(
        r"\[[^]]*\]\((?:#fig|bibliography)[^)]*\)", "", without_fences(TEXT)
    )  # a reference is no word
    assert len(re.sub(r"\]\([^)]*\)|\{\w+:?\w*\}`[^`]*`", "", text).split()) < 1650


def test_what_is_faster_is_dearer():
    speeds, prices = zip(*frontier(), strict=True)
    assert list(speeds) == sorted(speeds, reverse=True)
    assert list(prices) == sorted(prices, reverse=True)


def test_the_box_by_hand():
    """80 layers exchange twice: 5 us and two vectors of 8,192 values each; weights at 3.35 TB/s on eight chips."""
    model, chip = load_model("Llama 3 70B"), load_chip("H100 SXM")
    sent = 2 * 7 / 8 * 100 * 8192 * 2
    waiting = 160 * (5e-6 + sent / chip.scale_up_bandwidth)
    cache_read = 100 * 4096 * 80 * 2 * 8 * 128 * 2 / (8 * 3.35e12)
    weights = 2 * (model.n_params - 128256 * 8192) / (8 * 3.35e12)
    found = box().evaluate(n_chips=8, batch=100)
    assert found["waiting"] == pytest.approx(1e3 * waiting)
    assert found[SPEED] == pytest.approx(1 / (waiting + cache_read + weights), rel=2e-3)
    assert found[PRICE] == pytest.approx(1e6 * 8 * 2 / 3600 / 100 / found[SPEED])


def test_points_named_in_the_text_lie_on_the_frontier():
    found = [
        box().evaluate(n_chips=int(at["n_chips"]), batch=int(at["batch"]))
        for at in linked()
        if {"n_chips", "batch"} <= set(at)
    ]
    assert len(found) >= 5
    named = found[-3:]  # batch, chat, agent
    assert [answer[PRICE] == pytest.approx(cheapest(answer[SPEED]), rel=0.01) for answer in named] == [
        True
    ] * 3
    batch, chat, agent = (answer[PRICE] for answer in named)
    assert batch == min(price for _, price in frontier())
    assert 1.3 < chat / batch < 1.6 and 3 < agent / batch < 4
    assert named[1][SPEED] >= opening.LOADS["chat"] and named[2][SPEED] >= opening.LOADS["agent"]


def test_the_shared_box_writes_as_the_text_says():
    alone, shared = (box().evaluate(n_chips=8, batch=n) for n in (1, 230))
    assert shared[SPEED] == pytest.approx(50, abs=1)
    assert 230 * shared[SPEED] / alone[SPEED] == pytest.approx(70, rel=0.05)


def test_a_slower_exchange_moves_the_wall_and_half_the_bytes_the_price():
    view, top = box().views[1], {}
    for name, state in {"now": {}, "slow": {"exchange": 10}, "narrow": {"weights": "8 bits"}}.items():
        edge = view.edge(box(), **state)
        top[name] = (edge[0][0], edge[-1][1])
    assert top["slow"][0] < 0.6 * top["now"][0] and top["slow"][1] < 1.1 * top["now"][1]
    assert top["narrow"][0] < 1.1 * top["now"][0] and top["narrow"][1] < 0.95 * top["now"][1]


def test_the_page_finds_the_same_frontier():
    page = page_of(box())
    marks = asked(page, "made['v1'].children.map((c) => c.textContent)")
    for name, speed in opening.LOADS.items():
        told = next(text for text in marks if text.startswith(name))
        assert float(told.split("$")[1]) == pytest.approx(cheapest(speed or 0), rel=5e-3)


def test_no_part_of_an_answer_is_left_out_of_its_bar():
    named = {name for kinds in opening.KINDS.values() for kind in kinds for name in style.KINDS[kind][1:]}
    sixth, answers = opening.everybody("Llama 3 70B", "8x H100", batch=32, context=4096)
    assert {name for step in answers.values() for name in step.counted} <= named
    read = [sum(step.counted[n] for n in ("weights", "weights and activations", "cache") if n in step.counted)
            for step in answers.values()]  # fmt: skip
    assert 5e-3 < min(read) and max(read) < 9.5e-3
    assert sixth.low < answers["LIMINAL 2025, eq. 8"].total < sixth.high
    assert sixth.low < answers["Erdil 2025"].total < sixth.high


def test_every_story_answers_a_question_and_every_answer_stands_in_its_story():
    answering = {chapter for chapters in questions.asked().values() for chapter in chapters}
    assert set(slides.decks()) - {"introduction"} <= answering
    for chapters in questions.asked().values():
        for chapter, several in chapters.items():
            assert all(questions.takeaway(chapter, words).startswith(words) for words in several)
    anchors = [questions.anchor(question) for question in questions.asked()]
    assert len(set(anchors)) == len(anchors)


def test_stories_say_how_long_they_take_and_others_do_not():
    for path in sorted(CHAPTER.parent.glob("*.ipynb")):
        told = READER["timed"]("<h1>A</h1>", path)
        assert ("minutes" in told) == (path.stem in slides.decks())
    assert READER["minutes"](CHAPTER) <= 15
