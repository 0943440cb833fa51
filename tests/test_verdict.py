"""One verdict a story, computed: asked again at other loads, formats and cached shares, it is what the words say."""

import math
import re
from functools import cache
from itertools import product

import pytest
from prose import CHAPTERS, notebook
from test_chapter_inputs import coarse, needed, run, statements  # noqa: F401

from book import verdicts
from book.principles import introduction
from tokenprice import ask
from tokenprice.ask import ALL
from tokenprice.uncertainty import load_calibration

PAIR = load_calibration()["pair"]
VERDICTS = [
    chapter
    for chapter in CHAPTERS
    if any("verdicts.Verdict(" in cell.source for cell in notebook(chapter).cells)
]


def test_eight_bits_make_a_token_sooner_than_a_second_box_whomever_one_asks():
    """The purchase in the synthesis on which all sources and the kernel model agree."""
    case = introduction.RUNNING
    narrow, copies = (
        case.replace(weights="fp8"),
        case.replace(batch=case.batch / 2),
    )  # two boxes share the users
    found = [ask(one, by=ALL) for one in (narrow, copies)]
    answered = [key for key, answer in found[0].items() if answer.feasible]
    assert len(answered) >= 7
    assert [key for key in answered if found[0][key].seconds >= found[1][key].seconds] == []


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
    """The line of a verdict about a format and a cached share."""
    share = f"{cached.rstrip('%')} %"
    return re.search(
        rf"- weights in {re.escape(weights)}, (?:{share} cached|whatever is cached): (.*)", verdict.markdown
    )[1]


def read(said, users):
    """Parse such a line: the choice at a load, by the estimate and to be sure."""
    found = []
    for ranges in said.split(". To be sure: "):
        ends = [(part, re.search(r" up to (\d+)", part)) for part in ranges.split("; ")]
        part = next(part for part, end in ends if end is None or users <= int(end[1]))
        found.append(re.sub(r"^then | up to \d+( users?)?$", "", part))
    return found


def by_hand(verdict, users, weights, cached):
    """The kernel model's choice at the same load, with each choice asked separately."""
    case, found = verdict.case.replace(concurrency=users, weights=weights, cached=cached), {}
    for name, change in verdict.choices.items():
        answer = ask(change(case) if callable(change) else case.replace(**change))
        if answer.feasible:
            usd = {"usd_per_request": answer.request.dollars, "usd_per_million": answer.usd_per_million}
            value = answer.seconds if verdict.of == "seconds" else usd[verdict.of]
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
            for users in {min(2 * round(load / 2) or 1, 256) for load in loads}:
                turned = by_hand(verdict, users, weights, cached)
                assert read(said, users) == turned, (users, weights, cached)


def test_a_copy_without_users_is_paid_as_well():
    """For one user a second box costs as much as the first and serves no user."""
    one = introduction.REQUEST.replace(concurrency=1)
    dollars = [ask(verdicts.machine(8, copies)(one)).request.dollars for copies in (1, 2)]
    assert dollars[1] == pytest.approx(2 * dollars[0])
