"""Decks hold what the stories hold, and fit their minutes; the course fits its ninety."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest
import yaml

import tokenprice
from book import course, slides
from book.slides import __main__ as pages

ROOT = Path(__file__).parents[1]
READER = runpy.run_path(str(ROOT / "book" / "_ext" / "reader.py"))
EXPLORER = re.compile(r'data-slug="([\w-]+)"')


def test_every_story_has_a_deck():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    numbered = [c["file"] for part in toc["parts"] if part.get("numbered") for c in part["chapters"]]
    assert set(slides.decks()) == {Path(name).name for name in (toc["root"], *numbered)}


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


DECKS = pages.decks()
SESSIONS = [name for name in DECKS if name.startswith("session-")]


@pytest.mark.parametrize("name", DECKS)
def test_a_deck_is_live_and_asks_nothing_of_any_host(name):
    title, deck = DECKS[name]
    page = pages.deck_html(title, deck)
    shown = {slug for s in deck for kind, content in s.show if kind == "html"
             for slug in EXPLORER.findall(content)}  # fmt: skip
    assert set(EXPLORER.findall(page)) == shown
    assert page.count("inferlibExplorer(Object") == len(shown)
    assert page.count("window.inferlibExplorer = ") == bool(shown)
    assert page.count("<section ") == len(deck)
    loaded = re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*?\s(?:src|href)=[\"']?([^\"'\s>]+)", page)
    assert all(address.startswith(("data:", "../book/")) for address in loaded)
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
    # a mistyped one is named
    message = "slides of principles: no cell, figure or exercise is called 'fig-none'"
    with pytest.raises(LookupError, match=message):
        slides.find("principles", "fig-none")
    # what only the book resolves is said in words
    text = "As [Erdil (2025)](bibliography.md#erdil2025) and [the figure](#fig-a) say"
    text += " ([the record](#er-x), [more](erdil2025_toy.ipynb))."
    assert pages.plain(text) == "As Erdil (2025) and the figure say (the record, more)."


@pytest.mark.parametrize("number", range(1, 1 + len(course.sessions())))
def test_a_session_is_one_deck_by_its_own_clock(number):
    """All parts in order, board and pairs too, each explorer on its slide in the state that the plan asks for."""
    session = course.session(number)
    deck = session.deck()
    assert sum(slide.minutes for slide in deck) == session.minutes
    titles = iter(slide.title for slide in deck)
    assert all(title in titles for _, p in session.parts for title in p.get("slides", ())), "not in order"
    wanted = [p["explorer"] for p in session.plan["part"] if "explorer" in p]
    set_to = [slide for slide in deck if slide.state or any(kind == "page" for kind, _ in slide.show)]
    assert len(set_to) == len(wanted)
    for slide, box in zip(set_to, wanted, strict=True):
        kind, content = slide.show[0]
        name = box["name"] if kind == "page" else f'data-slug="{box["name"]}"'
        assert slide.ask and name in content and (kind == "page" or slide.state == box["state"])
    page = pages.deck_html(session.title, deck)
    assert page.count(" data-state=") == sum(bool(slide.state) for slide in deck)


@pytest.mark.parametrize("name", DECKS)
def test_every_formula_on_a_slide_says_what_its_symbols_mean(name):
    """From the register of notation; what it does not know, the slide says itself, in a sentence on the letters."""
    for chapter in slides.decks() if name in SESSIONS else [name]:
        for slide in DECKS[name][1]:
            if name in SESSIONS and slide not in slides.deck(chapter):
                continue
            texts = [content for kind, content in slide.show if kind == "text"]
            told = [slides.symbols_of(chapter, text) for text in texts if r"\begin{equation" in text]
            shown = sum(kind == "symbols" for kind, _ in slide.show)
            assert shown == sum(bool(line) for line, _ in told)
            own = any(text.startswith(("Here ", "On the left")) for text in texts)
            assert own or not any(left for _, left in told), (slide.title, told)


# A sentence that begins so means something that stood before it in the chapter, and does not stand on the slide.
DANGLING = re.compile(r"(?:It|That|This|They|These|Those|Then|Both|He|Not|Put it)\b")


@pytest.mark.parametrize("name", SESSIONS)
def test_no_sentence_of_a_session_lacks_its_noun_and_no_number_stands_bare(name):
    for slide in DECKS[name][1]:
        kinds = [kind for kind, _ in slide.show]
        for kind, content in slide.show:
            if kind == "text" and not content.startswith("- "):
                assert not DANGLING.match(content.lstrip("*")), (slide.title, content)
            if kind == "out":
                assert not re.fullmatch(r"[-\d.,\s]+", content), (slide.title, content)
                assert len(kinds) > 1, f"a lone box of print: {slide.title}"


@pytest.mark.parametrize("name", DECKS)
def test_what_is_said_fits_the_minutes(name):
    """Read aloud at 120 words a minute, slide by slide; of a board stroke by stroke."""
    for slide in DECKS[name][1]:
        assert slides.spoken(slide) <= slide.minutes * slides.ALOUD, slide.title


def test_anybody_can_write_a_slide_in_markdown():
    text = "A **sentence** with {{9298b574}} in it.\n\n{{fig-p-roofline}}\n\n- an item"
    shown = slides.shown("principles", text)
    assert [kind for kind, _ in shown] == ["text", "figure", "text"]
    assert re.search(r"with \d+\.\d+ in it", shown[0][1])
    said = slides.inline("introduction", "intro-two-times: fetch:")
    assert said.endswith(" tokens/s") and "fetch" not in said
    with pytest.raises(LookupError, match="0 lines"):
        slides.inline("introduction", "intro-two-times: wait:")


def test_a_session_takes_ninety_minutes_and_its_homework_is_there():
    assert len(course.sessions()) == 6
    for session in course.sessions():
        assert session.minutes == course.MINUTES, session
        board = [part for part in session.plan["part"] if "strokes" in part]
        asked = [part for part in session.plan["part"] if "explorer" in part]
        assert len(board) == 1 and 10 <= session._takes(board[0]) <= 20
        for minutes, said in (stroke for strokes in session.boards for stroke in strokes):
            assert slides.words(said) <= minutes * slides.ALOUD / 2, f"no time to draw: {said}"
        assert asked and all(part["ask"] and part["then"] for part in asked)
        assert session.plan["misconceptions"] and session.plan["homework"]
        for chapter, label in re.findall(r"\((\w+)\.html#([\w-]+)\)", " ".join(session.plan["homework"])):
            assert any(f":label: {label}\n" in slides.source(cell) for cell in slides.chapter(chapter)), label


FIELD = re.compile(r'<input type="number"[^>]* data-key="(\w+)"[^>]* min="([^"]+)" max="([^"]+)"')


def test_an_explorer_can_be_in_the_state_that_a_session_asks_for():
    """Within what the number fields of its stored page take."""
    for session in course.sessions():
        for wanted in (part["explorer"] for part in session.plan["part"] if "explorer" in part):
            if wanted["name"] == "ask":
                assert tokenprice.Question("Llama 3 70B", **wanted["state"])
                continue
            found = FIELD.findall(slides.explorer(wanted["chapter"], wanted["name"]))
            ranges = {key: (float(low), float(high)) for key, low, high in found}
            for key, value in wanted["state"].items():
                assert ranges[key][0] <= value <= ranges[key][1], (wanted["name"], key)


def test_numbers_of_the_boards_agree_with_sums_in_the_head():
    told = {name: float(text.replace(",", "")) for name, text in course.numbers().items()}
    assert told["left"] == pytest.approx(told["room"] - told["weights"]) and told["room"] == 8 * 80
    assert told["fits"] == told["left"] // told["user_cache"]
    assert told["fits_longer"] == pytest.approx(told["fits"] / 8, rel=0.02)
    assert told["size"] == pytest.approx(told["ratio"] ** (2 / 3), rel=0.02)
    assert told["hops"] == pytest.approx(80 * 4 * 1e-3)
    assert told["ridge"] == pytest.approx(told["peak"] / told["bandwidth"], rel=0.01)
    assert told["token_cache"] == 80 * 2 * 8 * 128 * 2 / 1024
    assert told["staged"] == pytest.approx(139 / (2 * 3.35), rel=2e-3)  # two chips read all layers
    # the config.json on the slide, by the three lines below it
    by_hand = 64 * (2 * 5120 * 128 * (64 + 8) + 3 * 5120 * 25600) + 2 * 151936 * 5120
    assert told["qwen_weights"] == round(by_hand / 1e9, 2)
    assert told["qwen_cache"] == 64 * 2 * 8 * 128 * 2 / 1024
    assert told["qwen_fits"] == (640e9 - 2 * by_hand) // (4096 * 1024 * told["qwen_cache"])
    # with its memory full, a step reads 640 GB but for the input embedding, and does 295 FLOP for each byte
    for context, held in ((told["ends"], 141.1e9), (told["ends_8_bits"], 70.55e9)):
        users = (640e9 - held) / (context * told["token_bytes"])
        flop = users * (139e9 + 4 * 80 * 64 * 128 * context)
        assert flop / (640e9 - held * 1.05 / 70.55) == pytest.approx(told["ridge"], rel=0.01)


def test_nothing_in_the_plan_is_left_over():
    """Every number computed for a board is on one, and no brace is left."""
    plan = (ROOT / "book" / "course.toml").read_text("utf-8")
    assert set(re.findall(r"\{(\w+)\}", plan)) == set(course.numbers())
    shown = "".join(session._repr_html_() for session in course.sessions())
    assert "{" not in shown and tomllib.loads(plan)
