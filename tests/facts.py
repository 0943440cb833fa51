"""Tables of test cases, each row one fact: an input that is refused, or a number that must come out."""

from pathlib import Path

import pytest


def lines(name):
    """The lines of a table beside the tests, below its head."""
    text = (Path(__file__).parent / f"{name}.tsv").read_text("utf-8")
    return [line.split("\t") for line in text.splitlines()[1:]]


def options_of(text):
    """Options as a table holds them: batch=256, context=32768."""
    return dict(option.split("=", 1) for option in filter(None, text.split(", ")))


def refused(*calls):
    """Return a test that each call raises this kind of error with these words in its message."""

    @pytest.mark.parametrize(("call", "error", "message"), calls)
    def test(call, error, message):
        with pytest.raises(error, match=message):
            call()

    return test


def exactly(*pairs):
    """Return a test that both members of each pair are equal."""

    @pytest.mark.parametrize(("found", "expected"), pairs)
    def test(found, expected):
        assert found == expected

    return test


def by_hand(*pairs):
    """Return a test that both members of each pair are equal up to the rounding of floats."""
    return exactly(*((found, pytest.approx(expected)) for found, expected in pairs))
