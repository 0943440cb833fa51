"""With another case every chapter runs to its end, and statements that read the case show another answer.

Chapters run as in :mod:`test_chapter_inputs`, without a kernel. The case is the question on top of a chapter, `case`.
"""

import ast
import contextlib
import os
import random
import re
from dataclasses import fields
from functools import partial

import pytest
from facts import lines, options_of
from prose import CHAPTERS as ALL, digits, markdown, notebook, numbers, said, shown
from test_chapter_inputs import (  # noqa: F401
    INPUTS,
    Statement,
    coarse,
    excepted,
    followers,
    named,
    named_by,
    needed,
    played,
    run,
    statements,
    stay,
)  # fmt: skip

from book import prose_numbers
from inferlib.papers.source import sources
from tokenprice import Question, ask, catalog

CHANGES = {
    "another model": {"model": "Qwen3 32B"},
    "a mixture of experts": {"model": "Kimi K2"},  # too large for the machine, so the chapter must say so
    "another chip": {"machine": "8x B200"},
    "another format": {"weights": "fp8"},
    "more users": lambda case: {name: 4 * number for name, number in of(case, "concurrency", "batch")},
    "a longer context": lambda case: {
        name: 2 * number for name, number in of(case, "prompt_tokens", "context")
    },
}
# If a source does not describe such a model, another one that it describes.
INSTEAD = {"mazurek2025": {"another model": {"model": "DeepSeek V2"}}}
SIZES = {2**k for k in range(4, 21)}
# Text whose numbers are not results: links, formulas, code, names of models and chips, years, places in a paper.
NAMED = re.compile(
    r"\[[^\]]*\]\([^)]*\)|\$[^$\n]+\$|`[^`\n]+`|\w*[A-Za-z]-?\d[\w.]*|\d[\d.]*[A-Z]|20\d\d"
    r"|(?:tables?|figure|equations?|section) [\d.]+",
    re.I,
)
DRAWN = int(os.environ.get("CASES", 4))  # random cases, of one chapter after the other


def of(case, *names):
    """The fields of some names that a case gives, with their values."""
    return [(name, getattr(case, name)) for name in names if getattr(case, name)]


def code(chapter):
    return [ast.parse(cell.source) for cell in notebook(chapter).cells if cell.cell_type == "code"]


def made(tree, name):
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in ast.walk(tree)
    )


CHAPTERS = [chapter for chapter in ALL if any(made(tree, "case") for tree in code(chapter)[:4])]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_under_another_case_a_chapter_runs_to_its_end_and_what_reads_the_case_follows(chapter, coarse):  # noqa: F811
    found = played(chapter, ("case",))
    changes = CHANGES | INSTEAD.get(chapter, {})
    stayed = [stay(found, "case", partial(changed, wanted=wanted)) for wanted in changes.values()]
    always = [statement for statement in stayed[0] if all(statement in others for others in stayed)]
    still = set(excepted("reads the case and stays", chapter))
    assert named_by(still, always) == still


def changed(case, wanted):
    return case.replace(**(wanted(case) if callable(wanted) else wanted))


def suggested():
    """Chapter, and an assignment that its first exercise suggests."""
    for chapter in sorted({*CHAPTERS, "case_files"}):
        for text in re.findall(r"(?s)```\{exercise\}\n:label.*?```", said(chapter))[:1]:
            found = re.findall(r"`(\w+ = [^`]+)`", text)
            words = excepted("first exercise, the change it means", chapter)
            assert all(word in text for word in words), chapter
            yield from ((chapter, line) for line in (*found, *words.values()))


@pytest.mark.parametrize("chapter, line", list(suggested()))
def test_a_change_that_the_book_suggests_runs_to_the_end_and_shows(chapter, line, coarse):  # noqa: F811
    name, value = line.split(" = ", 1)
    found = played(chapter, (name,))
    names = found[-1][2]
    stayed = stay(found, name, lambda one: eval(value, names | {name: one}))
    assert len(stayed) < sum(bool(output) for *_, output in found)


def drawn(case, rng, by=None):
    """Another case that a reader may type; with a name, one that this model answers."""
    while True:
        chips = f"{rng.choice((1, 2, 4, 8, 16, 32, 64, 72, 128))}x {rng.choice(list(catalog.chips()))}"
        new = {"model": rng.choice(list(catalog.models())), "machine": chips}
        new |= {
            "weights": rng.choice((None, "bf16", "fp8", "int8", "fp4", "int4")),
            "kv_cache_dtype": rng.choice((None, "bf16", "fp8")),
        }
        new |= {name: 2.0 for name, _ in of(case, "price")}
        new |= {
            name: rng.choice((1, 2, 7, 32, 100, 512, 4096)) for name, _ in of(case, "concurrency", "batch")
        }
        new |= {
            name: rng.choice((1, 100, 1024, 4096, 30000, 131072))
            for name, _ in of(case, "prompt_tokens", "context", "output_tokens")
        }
        with contextlib.suppress(ValueError):  # refused at the door
            case = case.replace(**new)
            if by is None or ask(case.step(), by=by).feasible:
                return case


@pytest.mark.parametrize("seed", range(DRAWN))
def test_a_random_case_runs_to_the_end(seed, coarse):  # noqa: F811
    chapter = CHAPTERS[seed % len(CHAPTERS)]
    stay(played(chapter, ("case",)), "case", lambda case: drawn(case, random.Random(seed)))


ODD = [{name: word or None for name, word in options_of(case).items()} for case, _ in lines("odd_cases")]


@pytest.mark.parametrize("odd", ODD[: DRAWN // 4])
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_an_odd_case_runs_to_the_end(chapter, odd, coarse):  # noqa: F811
    stay(played(chapter, ("case",)), "case", lambda case: case.replace(**odd))


# Chapter, its box, a state of the box (nothing: as it opens), one of its outputs, and the chapter's own number for it
# after a statement that begins so; the model whose answer to the case it is, if any.
BOXES = lines("boxes")


def stands(chapter, box, after, expression, case):
    """Return a box of a chapter under another case, a number of the chapter, and the chapter's names at that place."""
    every, names = list(statements(chapter)), {"__name__": "cell"}
    (shown,) = (one for one in every if one.text.startswith(f"{box}("))
    tree = ast.parse(expression)
    number = Statement(expression, tree, frozenset(named(tree)[0]), frozenset(), True)
    place = max(k for k, one in enumerate(every) if one is shown or after and one.text.startswith(after))
    every.insert(place + 1, number)
    for one in needed(every, [shown, number])[:-1]:
        if one is not shown:
            run(one, names)
        if "case" in one.makes and "case" not in one.reads:
            names["case"] = case(names["case"])
    return eval(shown.text, names), eval(expression, names), names


@pytest.mark.parametrize("seed", range(DRAWN))
@pytest.mark.parametrize("chapter, box, state, output, after, number, by", BOXES)
def test_a_box_opens_as_the_cell_above_it(chapter, box, state, output, after, number, by, seed, coarse):  # noqa: F811
    source, rng = chapter.removesuffix("_toy").removesuffix("_model"), random.Random(seed)
    asked = source if source in sources() else None
    another = partial(drawn, rng=rng, by=asked) if seed else lambda case: case
    shown, known, names = stands(chapter, box, after, number, another)
    answers = [known]
    if by:
        found = ask(names["case"].step(), by=by)
        answers.append(1e3 * found.seconds if found.feasible else None)
    opened = shown.evaluate(**eval(f"dict({state})", names))[output]
    assert [opened] * len(answers) == [one and pytest.approx(one, rel=1e-3) for one in answers]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_literal_below_the_case_equals_one_of_its_fields(chapter):
    cells, names = code(chapter), {}
    first = next(place for place, tree in enumerate(cells) if made(tree, "case"))
    for tree in cells[: first + 1]:
        exec(compile(tree, chapter, "exec"), names)
    case = names["case"]
    values = [*case.words().values(), *(getattr(case, field.name) for field in fields(Question))]
    given = set(filter(telling, values))
    found = {
        node.value for tree in cells[first + 1 :] for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and telling(node.value) and node.value in given
    }  # fmt: skip
    assert set(map(str, found)) == set(excepted("another thing than the case", chapter))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_sentence_types_what_a_cell_prints_of_the_case(chapter):
    """Compared in the digits of the sentence, at least two; powers of two are skipped, as sizes and lengths."""
    cells = notebook(chapter).cells
    live = {statement.text for statement in followers(list(statements(chapter)), "case")}
    follow = [
        cell for cell in cells if cell.cell_type == "code" and "prose_numbers" not in cell.source
        and any(ast.unparse(tree) in live for tree in ast.parse(cell.source).body)
    ]  # fmt: skip
    outputs = [shown(one) for cell in follow for one in cell.outputs if "inferlib-explorer" not in str(one)]
    printed = {value for output in outputs for _, value in numbers(output)}
    given = {
        value
        for cell in cells
        if "introduction.note_changed_case" in cell.source
        for _, value in numbers(cell.source)
    }
    loose = prose_numbers.unbound(markdown(chapter))
    typed = {
        word for word, value in numbers(NAMED.sub("", loose.split("## Exercises")[0]))
        if digits(value) > 1 and value not in given | SIZES
        and any(round(one, -value.as_tuple().exponent) == value for one in printed)
    }  # fmt: skip
    assert typed == set(excepted("typed, and no result of the case", chapter))


def telling(value):
    """Whether a value is one that a cell may repeat by mistake: a word, or a number that is no small count."""
    return isinstance(value, str) or (
        isinstance(value, int | float) and not isinstance(value, bool) and value > 8
    )
