"""Tables that are tests, each row a fact: what is refused, and what a number must be."""

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
    """The test that each call is refused: what is called, the kind of error, and the words of its message."""

    @pytest.mark.parametrize(("call", "error", "message"), calls)
    def test(call, error, message):
        with pytest.raises(error, match=message):
            call()

    return test


def exactly(*pairs):
    """The test that of each pair the first is the second."""

    @pytest.mark.parametrize(("found", "expected"), pairs)
    def test(found, expected):
        assert found == expected

    return test


def by_hand(*pairs):
    """The test that of each pair the first is the second, but for the last digits of a float."""
    return exactly(*((found, pytest.approx(expected)) for found, expected in pairs))
