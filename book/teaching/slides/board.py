"""Computed numbers on the boards of the course."""

from functools import cache

from book import stored
from book.teaching.problems.bank import computed, with_numbers


@cache
def numbers():
    """The numbers on the boards: name to text."""
    board = stored.toml("teaching/slides/board.toml")
    known = computed(board["numbers"])
    return {name: with_numbers(text, **known) for name, text in board["said"].items()}
