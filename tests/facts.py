"""Tables of test cases, each row one fact: an input that is refused, or a number that must come out."""

import builtins
from functools import cache, partial
from inspect import signature
from pathlib import Path

import pytest


@cache
def lines(name):
    """The lines of a table beside the tests, below its head."""
    text = (Path(__file__).parent / f"{name}.tsv").read_text("utf-8")
    return [line.split("\t") for line in text.splitlines()[1:]]


def options_of(text):
    """Options as a table holds them: batch=256, context=32768."""
    return dict(option.split("=", 1) for option in filter(None, text.split(", ")))


def rows_of(table, first):
    """The rows of a table that begin with the name of a test, or of a file of tests."""
    found = [cells for name, *cells in lines(table) if name == first]
    assert found, f"{table}.tsv has no row of {first}"
    return found


def from_table(test):
    """Parametrise a test by its rows in ``rows.tsv``, whose cells are Python, for its first parameters."""
    found = [[eval(cell, test.__globals__) for cell in cells] for cells in rows_of("rows", test.__name__)]
    names = list(signature(test).parameters)[: len(found[0])]
    return pytest.mark.parametrize(names, found)(test)


def refused(names):
    """The test that the calls of a file of tests in ``refused_calls.tsv`` are refused in one line, with these words."""
    calls = rows_of("refused_calls", names["__name__"].removeprefix("test_"))

    @pytest.mark.parametrize(("call", "error", "message"), calls)
    def test(call, error, message):
        with pytest.raises(getattr(builtins, error), match=message) as raised:
            eval(call, names)
        assert "\n" not in str(raised.value)

    return test


def exactly(name, names, same=lambda value: value):
    """The test that each call of a test in ``by_hand.tsv`` returns what a hand computes."""

    @pytest.mark.parametrize(("call", "expected", "note"), rows_of("by_hand", name))
    def test(call, expected, note):
        assert eval(call, names) == same(eval(expected, names))

    return test


by_hand = partial(exactly, same=pytest.approx)  # but for the last digits of a float
