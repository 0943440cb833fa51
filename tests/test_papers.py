"""Five papers, one dialect: the same loaders, assumptions in the same place, and words for a question."""

import doctest
import inspect
import pydoc
from pathlib import Path

import pytest

import inferlib
from inferlib import papers
from inferlib.papers.source import source_package

API = Path(__file__).parents[1] / "book" / "api.md"
each_source = pytest.mark.parametrize("key", papers.sources())


def described(load, names):
    """The first of some names that a source does not refuse."""
    for name in names:
        try:
            return name, load(name)
        except ValueError:
            continue
    raise AssertionError("the source describes none of them")


@each_source
@pytest.mark.parametrize("what", ["model", "chip"])
def test_a_loader_takes_a_name_a_record_of_the_catalogue_and_its_own(key, what):
    package = source_package(key)
    load, names = getattr(package, f"load_{what}"), getattr(package, f"{what}s")()
    for name in names:
        own = load(name)
        assert load(own) is own
    of_catalogue = getattr(inferlib, f"load_{what}")
    name, found = described(load, ["Qwen3 32B", "DeepSeek V3"] if what == "model" else ["B200"])
    assert load(of_catalogue(name)) == found and found.name == name
    with pytest.raises(LookupError, match="4711"):
        load("4711")
    with pytest.raises(TypeError, match=rf"{what} is 4.7, but must be"):
        load(4.7)


@each_source
def test_assumptions_are_optional_and_the_last_that_a_place_gives(key):
    package = source_package(key)
    assert package.PRINTED == package.Assumptions()
    for name in package.__all__:
        if not inspect.isfunction(function := getattr(package, name)):
            continue
        known = inspect.signature(function).parameters.values()
        placed = [one.name for one in known if one.kind is not one.KEYWORD_ONLY]
        if "assumptions" in placed:
            assert placed[-1] == "assumptions", name
        assert all(one.default is not one.empty for one in known if one.name == "assumptions"), name


@each_source
def test_the_help_of_a_room_shows_no_address(key):
    assert " at 0x" not in pydoc.render_doc(source_package(key))


@each_source
def test_a_question_in_words_is_the_question_in_records(key):
    words = papers.ask(key, "Llama 3 70B", "8x H100", batch=32, context=4096)
    box = inferlib.System(inferlib.load_chip("H100 SXM"), 8)
    asked = inferlib.load_model("Llama 3 70B"), box, inferlib.Workload(32, 4096)
    records = papers.ask(key, *asked)
    assert (words.summary(), words.terms) == (records.summary(), records.terms)


def test_the_ten_lines_of_the_api_page_give_what_they_show():
    lines = doctest.DocTestParser().get_doctest(
        API.read_text("utf-8").replace("\n```\n", "\n\n"), {}, "api.md", str(API), 0
    )
    outcome = doctest.DocTestRunner(verbose=False).run(lines)
    assert outcome.failed == 0 and outcome.attempted >= 50
