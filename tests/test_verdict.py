"""One verdict: no page recommends another machine than the kernel model without its machine and number beside it.

Twenty questions are asked of every page that speaks of more chips: does a second box make a token faster?
"""

import math
import re
from functools import cache
from itertools import product

import pytest
from prose import CHAPTERS, notebook
from test_chapter_inputs import coarse, needed, run, statements  # noqa: F401

from book import verdicts
from book.explorer import kernel_model_text
from book.principles import introduction
from inferlib.papers import erdil2025
from inferlib.system import System
from tokenprice import ask
from tokenprice.ask import ALL
from tokenprice.uncertainty import load_calibration

PAIR = load_calibration()["pair"]
VERDICTS = [
    chapter
    for chapter in CHAPTERS
    if any("verdicts.Verdict(" in cell.source for cell in notebook(chapter).cells)
]
MODELS = ("Llama 3 8B", "Llama 2 13B", "Qwen3 32B", "Llama 3 70B", "Qwen2.5 72B")
QUESTIONS = [
    introduction.RUNNING.replace(model=model, machine=machine, batch=users)
    for model, machine, users in product(MODELS, ("8x H100", "8x H200"), (1, 32))
]


# Chapter -> who answers in it, whatever the kernel model says.
BY = {
    "principles": "principles",
    "steinhardt2022": "steinhardt2022",
    "pope2022": "pope2022",
    "erdil2025_toy": "erdil2025",
    "erdil2025_model": "erdil2025",
    "liminal2025": "liminal2025",
    "synthesis": "liminal2025.eq8",
}


def times(question, factor):
    """The same question to so many times the chips."""
    machine = System(question.machine.chip, round(factor * question.machine.count))
    return question.replace(machine=machine)


def took(question, chapter=None):
    """Seconds of a token as a chapter computes it, or as the kernel model does; None where there is no answer."""
    found = ask(question, by=BY.get(chapter, "kernels"))
    if chapter == "erdil2025_toy" and found.status != "n/a":  # it has the complete model's models and chips
        toy = erdil2025.toy_decode_step(question.model, question.machine, question.workload)
        return toy.total if toy.feasible else None
    return found.seconds if found.feasible else None


def gains(question, chapter=None):
    """Whether twice the chips make a token faster, None where there is no answer to both."""
    before, after = (took(one, chapter) for one in (question, times(question, 2)))
    return None if None in (before, after) else after < before


@pytest.mark.parametrize("chapter", BY)
def test_where_a_page_says_otherwise_of_more_chips_it_names_the_kernel_models_machine_and_number(chapter):
    assert any(one.text.startswith("kernel_model_text.kernel_model_sentence(") for one in statements(chapter))
    for question in QUESTIONS:
        if gains(question, chapter) != gains(question):
            other = ask(times(question, 2))
            said = repr(kernel_model_text.kernel_model_sentence(question))
            assert f"on {other.question.machine} as one instance, {other.summary()}" in said


def advised(chapter):
    """Kind and text of the cells of the section in which a story says what its writer would do."""
    there = False
    for cell in notebook(chapter).cells:
        heads = cell.cell_type == "markdown"
        for text in re.split(r"(?m)^(?=## )", cell.source) if heads else [cell.source]:
            there = "what I would do" in text if heads and text.startswith("## ") else there
            if there:
                yield cell.cell_type, text


def compares_machines(kind, text):
    return kind == "code" and ("System(" in text or "offers" in text)


ADVISING = [
    story
    for story in CHAPTERS
    if story not in VERDICTS and any(compares_machines(*part) for part in advised(story))
]


@pytest.mark.parametrize("story", ADVISING)
def test_a_story_whose_advice_compares_machines_says_at_once_what_the_kernel_model_says(story):
    """Whether the kernel model would rent the same or not."""
    parts = list(advised(story))
    at = next(i for i, part in enumerate(parts) if compares_machines(*part))
    after = next(text for kind, text in parts[at:] if kind == "markdown")
    assert "kernel model" in after.split("\n\n")[0]


def test_eight_bits_make_a_token_sooner_than_a_second_box_whomever_one_asks():
    """The synthesis' purchase on which all sources agree, the kernel model with them."""
    case = introduction.RUNNING
    narrow, copies = (
        case.replace(weights="fp8"),
        case.replace(batch=case.batch / 2),
    )  # two boxes share the users
    found = [ask(one, by=ALL) for one in (narrow, copies)]
    answered = [key for key, answer in found[0].items() if answer.feasible]
    assert len(answered) >= 7
    assert [key for key in answered if found[0][key].seconds >= found[1][key].seconds] == []


# --- Verdicts that are computed -------------------------------------------------------------------------------

CACHED = ("0", "50%", "90%")


@cache
def verdicts_of(chapter):
    """The verdicts that a chapter computes, each under the book's running question."""
    every, names = list(statements(chapter)), {"__name__": "cell"}
    made = [one for one in every if "verdicts.Verdict(" in one.text]
    for one in needed(every, made):
        run(one, names)
    return [one for one in names.values() if isinstance(one, verdicts.Verdict)]


def line(verdict, weights, cached):
    """What the words of a verdict say of a format and a cached share."""
    share = f"{cached.rstrip('%')} %"
    return re.search(
        rf"- weights in {re.escape(weights)}, (?:{share} cached|whatever is cached): (.*)", verdict.markdown
    )[1]


def read(said, users):
    """What such a line says of a load, and what to be sure: read range by range."""
    found = []
    for ranges in said.split(". To be sure: "):
        ends = [(part, re.search(r" up to (\d+)", part)) for part in ranges.split("; ")]
        part = next(part for part, end in ends if end is None or users <= int(end[1]))
        found.append(re.sub(r"^then | up to \d+( users?)?$", "", part))
    return found


def by_hand(verdict, users, weights, cached):
    """What the kernel model says of the same load, each choice asked alone."""
    case, found = verdict.case.replace(concurrency=users, weights=weights, cached=cached), {}
    for name, change in verdict.choices.items():
        answer = ask(change(case) if callable(change) else case.replace(**change))
        if answer.feasible:
            usd = answer.request.dollars
            value = answer.seconds if verdict.of == "seconds" else usd
            wide = math.log(answer.high / answer.seconds)
            found[name] = value, answer.seconds, answer.high, wide, answer.machine.chip
    promise = verdict.tpot or math.inf
    kept = {name: one for name, one in found.items() if one[1] <= promise}
    sure = [name for name, one in found.items() if one[2] <= promise]
    slow = min(sure, key=lambda name: found[name][0], default="none of them")
    if not kept:
        return ["none of them", slow]
    best = min(kept, key=lambda name: kept[name][0])
    first = kept[best]
    wide = {
        name: math.hypot(math.log(PAIR), math.sqrt(abs(one[3] ** 2 - first[3] ** 2)))
        if one[4] == first[4]
        else one[3] + first[3]
        for name, one in kept.items()
    }
    ties = [
        name for name, one in kept.items() if name != best and one[0] / kept[best][0] < math.exp(wide[name])
    ]
    if not verdict.tpot:
        return [f"a tie ({best} ahead)" if ties else best]
    return [f"{best} (in a tie)" if ties else best, slow]


@pytest.mark.parametrize("chapter", VERDICTS)
def test_a_verdict_holds_under_its_condition_at_other_loads_formats_and_shares(chapter):
    """At half, one and two times its load and at 0.9 and 1.1 times each end of a range, as its words say."""
    assert verdicts_of(chapter)
    for verdict in verdicts_of(chapter):
        for weights, cached in product(("bf16", "fp8"), CACHED):
            said = line(verdict, weights, cached)
            ends = map(int, re.findall(r" up to (\d+)", said))
            loads = [times * verdict.case.concurrency for times in (0.5, 1, 2)]
            loads += [times * end for end in ends for times in (0.9, 1.1)]
            for users in {max(1, min(round(load), 256)) for load in loads}:
                turned = by_hand(verdict, users, weights, cached)
                assert read(said, users) == turned, (users, weights, cached)
