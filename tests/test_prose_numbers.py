"""Numbers that the text states as results are those that its chapter computed; slips in them are noticed."""

import pytest
from docutils import nodes
from facts import exactly
from prose import CHAPTERS

from book import prose_numbers
from book.site.ext import page_transforms

BOUND = [chapter for chapter in CHAPTERS if prose_numbers.bound_in(chapter)]


@pytest.mark.parametrize("chapter", BOUND)
def test_every_bound_number_is_the_one_that_the_chapter_computed(chapter):
    texts = prose_numbers.bound_in(chapter)
    written = [(prose_numbers.read(before)[0], " ".join(expression.split())) for before, expression in texts]
    assert written == prose_numbers.stored(chapter), "a slip in the text, or run make refresh"


def said(before, value):
    return prose_numbers.resay(before, value)[1]


# What is written, and what a value makes of it; the five false words that the book once printed are among them.
test_a_number_is_said_anew_as_it_is_written = exactly(
    (said("a token takes 5.19 ms", 5.1949e-3), "5.19 ms"), (said("it takes 28.5 ms", 27.5e-3), "27.5 ms"),
    (said("some 230", 232), "230"), (said("of 230", 260), "260"), (said("a batch of 4,096", 8192), "8,192"),
    (said("MFU of 15 %", 0.151), "15 %"), (said("at $2.83", 3.4), "$3.40"), (said("70 GB", 80e9), "80 GB"),
    (said("three tenths", 0.26), "a quarter"), (said("three fifths", 0.45), "half"),
    (said("near four fifths", 0.75), "three quarters"), (said("a quarter", 0.32), "a third"),
    (said("a seventh", 0.101), "a tenth"), (said("Half", 0.49), "Half"), (said("Half", 0.2), "A fifth"),
    (said("twice", 1.93), "twice"), (said("twice", 2.36), "2.4"), (said("three times", 4.9), "five times"),
    (said("two hundredfold", 208), "two hundredfold"), (said("all but six", 7), "seven"), (said("no", 1), "one"),
    (said("more than twice", 2.36), "twice"), (said("more than twice", 1.9), "1.9"),
    (said("nearly half", 0.46), "half"), (said("nearly half", 0.55), "three fifths"),
    (said("seventy-two", 72), "seventy-two"), (said("never more than twice", 1.97), "twice"),
)  # fmt: skip


def test_a_chapter_with_other_inputs_strikes_out_what_no_longer_holds(monkeypatch):
    texts = [("First. It takes 5 ms", "a"), ("on eight", "b"), ("It is 3", "c.d")]
    monkeypatch.setattr(prose_numbers, "bound_in", lambda chapter: texts)
    shown = prose_numbers.check("x", {"a": 0.007, "b": 8})._repr_markdown_()
    assert [line for line in shown.splitlines() if line[:1] == "-"] == [
        "- … It takes ~~5 ms~~ **7 ms**",
        "- … It is ~~3~~",
    ]


def test_the_page_shows_what_the_chapter_computed():
    """The comment is gone, and a number that the text has wrong is said as it was computed."""
    paragraph = nodes.paragraph(
        "",
        "",
        nodes.Text("In 5"),
        nodes.Text("\nms"),
        nodes.raw("", "<!--= a-->", format="html"),
        nodes.Text("."),
    )
    page_transforms.say_numbers(paragraph, iter([("7 ms", "a")]))
    assert paragraph.astext() == "In 7 ms."
