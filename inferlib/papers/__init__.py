"""One package per source, with its equations, derivations and answer to a decode step.

The book has what each source prints, and how much of that is reproduced.
"""

from inferlib.papers.source import (
    answerers,
    ask,
    common_name,
    common_terms,
    label,
    metadata,
    source_of,
    sources,
    versions,
    vocabulary,
)

__all__ = [
    "metadata", "answerers", "ask", "common_name", "common_terms", "label", "source_of", "sources",
    "versions", "vocabulary",
]  # fmt: skip
