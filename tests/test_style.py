"""What is shown is the same on any machine, to the last bit."""

import difflib
import io

import matplotlib
from facts import from_table
from matplotlib.figure import Figure

from book import style
from book.conftest import same_drawing
from book.style import canonical_svg
from tokenprice.ask import ask, colour_of


def svg_of(*widths, label=""):
    """A figure of panels with clipped markers, each of a width, as Matplotlib writes it."""
    with matplotlib.rc_context({"svg.hashsalt": "inferlib"}):
        figure = Figure(figsize=(3, 2))
        for width in widths:
            ax = figure.add_axes((0, 0.1, width, 0.8), xlabel=label)
            ax.plot([1, 2], [2, 1], "o")
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


@from_table
def test_figures_that_differ_in_the_last_digit_are_the_same_drawing(width, same):
    """Matplotlib names the frames of clips by their floats; 4e-5 of 216 points are less than a hundredth."""
    one, other = (canonical_svg(svg_of(each, 0.5)) for each in (0.3, width))
    assert same_drawing(one, other) == same
    assert not same_drawing(one, one.replace("<!-- 2 -->", "<!-- 3 -->"))


def test_another_label_of_an_axis_differs_in_a_few_lines():
    """Its words, and where a letter is drawn that no text before it has."""
    texts = (
        canonical_svg(svg_of(0.5, label=label)).split("\n") for label in ("GPUs of an instance", "chips")
    )
    lines = [line for line in difflib.unified_diff(*texts, n=0) if line[0] in "+-"]
    assert 2 < len(lines) <= 12, "with two lines that name the texts"


def test_an_answer_has_the_colours_of_the_book():
    terms = ask("DeepSeek R1", "16x H200", layout="DP16 EP16").step.critical
    assert {term: colour_of(term) for term in terms} == {term: style.TERMS[term] for term in terms}
