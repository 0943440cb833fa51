"""Decks hold what the stories hold, and fit their minutes; the course fits its ninety."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest
import yaml

from book import course, slides
from book.slides import __main__ as pages

ROOT = Path(__file__).parents[1]
READER = runpy.run_path(str(ROOT / "book" / "_ext" / "reader.py"))
EXPLORER = re.compile(r'data-slug="([\w-]+)"')


def stories():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    numbered = [c["file"] for part in toc["parts"] if part.get("numbered") for c in part["chapters"]]
    return {Path(name).name for name in (toc["root"], *numbered)}


def test_every_story_has_a_deck():
    assert set(slides.decks()) == stories()


@pytest.mark.parametrize("name", slides.decks())
def test_all_that_a_deck_shows_stands_in_its_chapter(name):
    """Every reference is found; each deck has an opening, guesses or explorers, and no title twice."""
    deck = slides.deck(name)
    titles = [slide.title for slide in deck]
    assert 12 <= len(deck) <= 25 and len(set(titles)) == len(titles)
    assert all(slide.show and slide.minutes > 0 for slide in deck)
    assert any("inferlib-explorer" in content for s in deck for kind, content in s.show if kind == "html")


@pytest.mark.parametrize("name", slides.decks())
def test_a_cut_takes_no_longer_than_it_says(name):
    short, whole = (slides.minutes(name, cut) for cut in slides.CUTS)
    assert 30 <= short <= 45 and short <= whole <= 90
    assert not slides.deck(name)[0].long and not slides.deck(name)[-1].long


@pytest.mark.parametrize("name", slides.decks())
def test_a_deck_is_live_and_asks_nothing_of_any_host(name):
    page = pages.deck_html(name)
    shown = {slug for s in slides.deck(name) for kind, content in s.show if kind == "html"
             for slug in EXPLORER.findall(content)}  # fmt: skip
    assert set(EXPLORER.findall(page)) == shown
    assert page.count("inferlibExplorer(Object") == len(shown)
    assert page.count("window.inferlibExplorer = ") == bool(shown)
    assert page.count("<section ") == len(slides.deck(name))
    loaded = re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*?\s(?:src|href)=[\"']?([^\"'\s>]+)", page)
    assert loaded and all(address.startswith(("data:", "../_static/mathjax/")) for address in loaded)
    assert not re.search(r"@import|url\(\s*['\"]?http", page)
    text = re.sub(r"(?s)<script.*?</script>|<style.*?</style>", "", page)
    assert not re.search(r"\{(?:cite|numref|ref|doc|eq)\b|:::|```", text)


def test_a_reference_takes_a_sentence_an_item_a_table_or_a_box():
    text = (
        "# Title\n\n(anchor)=\nOne thing. *Two* things, or\nthree. $x = 1.5$ holds.\n\n- first item\n- second item\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n```{admonition} Takeaways\n:class: tip\n- kept\n```\n"
    )
    taken = [slides.passage(text, words, "here") for words in ("Two things", "second", "Takeaways", "first")]
    assert taken == ["*Two* things, or three.", "second item", "- kept", "first item"]
    assert slides.passage(text, "| 1", "here").startswith("| a | b |")
    with pytest.raises(LookupError, match="nothing begins with 'Four'"):
        slides.passage(text, "Four", "here")


def test_what_only_the_book_resolves_is_said_in_words():
    text = "As {cite:t}`erdil2025` and {numref}`fig-a` say ({ref}`the record <er-x>`, [more](erdil2025_toy.ipynb))."
    assert pages.plain(text) == "As Erdil and the figure say (the record, more)."


def test_a_mistyped_reference_is_named():
    with pytest.raises(
        LookupError, match="slides of principles: no cell, figure or exercise is called 'fig-none'"
    ):
        slides.find("principles", "fig-none")


def test_a_session_takes_ninety_minutes():
    assert len(course.sessions()) == 6
    for session in course.sessions():
        assert session.minutes == course.MINUTES, session
        board = [part for part in session.plan["part"] if "strokes" in part]
        asked = [part for part in session.plan["part"] if "explorer" in part]
        assert len(board) == 1 and 10 <= session._takes(board[0]) <= 20
        assert asked and all(part["ask"] and part["then"] for part in asked)
        assert session.plan["misconceptions"] and session.plan["homework"]


def ranges_of(chapter, slug):
    """What the number fields of an explorer take, as its stored page has them: key to lowest and highest."""
    field = re.compile(r'<input type="number"[^>]* data-key="(\w+)"[^>]* min="([^"]+)" max="([^"]+)"')
    for cell in slides.chapter(chapter):
        for output in cell.get("outputs", ()):
            page = "".join(output.get("data", {}).get("text/html", ""))
            if f'data-slug="{slug}"' in page:
                return {key: (float(low), float(high)) for key, low, high in field.findall(page)}
    raise LookupError(f"{chapter} has no explorer {slug}")


def test_an_explorer_can_be_in_the_state_that_a_session_asks_for():
    for session in course.sessions():
        for part in session.plan["part"]:
            wanted = part.get("explorer")
            if wanted:
                ranges = ranges_of(wanted["chapter"], wanted["name"])
                for key, value in wanted["state"].items():
                    assert ranges[key][0] <= value <= ranges[key][1], (wanted["name"], key)


def test_homework_is_there():
    for session in course.sessions():
        for chapter, label in re.findall(r"\((\w+)\.html#([\w-]+)\)", " ".join(session.plan["homework"])):
            assert any(f":label: {label}\n" in slides.source(cell) for cell in slides.chapter(chapter)), label


def test_numbers_of_the_boards_agree_with_sums_in_the_head():
    told = {name: float(text.replace(",", "")) for name, text in course.numbers().items()}
    assert told["left"] == told["room"] - told["weights"] and told["room"] == 8 * 80
    assert told["fits"] == pytest.approx(told["left"] / told["user_cache"], rel=0.01)
    assert told["fits_longer"] == pytest.approx(told["fits"] / 8, rel=0.02)
    assert told["size"] == pytest.approx(told["ratio"] ** (2 / 3), rel=0.02)
    assert told["hops"] == pytest.approx(80 * 4 * 1e-3)
    assert told["ridge"] == pytest.approx(told["peak"] / told["bandwidth"], rel=0.01)
    assert told["token_cache"] == 80 * 2 * 8 * 128 * 2 / 1024


def test_nothing_in_the_plan_is_left_over():
    """Every number computed for a board is on one, and no brace is left."""
    plan = (ROOT / "book" / "course.toml").read_text("utf-8")
    assert set(re.findall(r"\{(\w+)\}", plan)) == set(course.numbers())
    shown = "".join(session._repr_html_() for session in course.sessions())
    assert "{" not in shown and tomllib.loads(plan)
