"""One package per source: its equations, derivations and answer to a decode step.

What each source prints, and what of that reproduces, stands in the book.
"""

from inferlib.papers.source import (
    about,
    answerers,
    ask,
    common_name,
    common_terms,
    label,
    printed_range,
    source_of,
    sources,
    versions,
    vocabulary,
)

__all__ = [
    "about", "answerers", "ask", "common_name", "common_terms", "label", "printed_range", "source_of", "sources",
    "versions", "vocabulary",
]  # fmt: skip
