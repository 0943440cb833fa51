"""Numbers that the text states as results are those that its chapter computed; slips in them are noticed."""

import pytest
from facts import lines
from prose import CHAPTERS

from book import prose_numbers

BOUND = [chapter for chapter in CHAPTERS if prose_numbers.bound_in(chapter)]


@pytest.mark.parametrize("chapter", BOUND)
def test_every_bound_number_is_the_one_that_the_chapter_computed(chapter):
    texts = prose_numbers.bound_in(chapter)
    written = [(prose_numbers.read(before)[0], " ".join(expression.split())) for before, expression in texts]
    assert written == prose_numbers.stored(chapter), "a slip in the text, or run make refresh"


# The five false words that the book once printed are among them.
@pytest.mark.parametrize(("written", "value", "anew"), lines("said"))
def test_a_number_is_said_anew_as_it_is_written(written, value, anew):
    assert prose_numbers.resay(written, float(value))[1] == anew


def test_a_chapter_with_other_inputs_strikes_out_what_no_longer_holds(monkeypatch):
    texts = [("First. It takes 5 ms", "a"), ("on eight", "b"), ("It is 3", "c.d")]
    monkeypatch.setattr(prose_numbers, "bound_in", lambda chapter: texts)
    shown = prose_numbers.check("x", {"a": 0.007, "b": 8})._repr_markdown_()
    assert [line for line in shown.splitlines() if line[:1] == "-"] == [
        "- … It takes ~~5 ms~~ **7 ms**",
        "- … It is ~~3~~",
    ]
