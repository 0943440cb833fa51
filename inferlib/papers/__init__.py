"""One package per source, with its equations, derivations and answer to a decode step.

The book has what each source prints, and how much of that is reproduced.
"""

from inferlib.papers.source import (
    answerers,
    ask,
    label,
    metadata,
    source_of,
    sources,
    versions,
)

__all__ = [
    "metadata", "answerers", "ask", "label", "source_of", "sources", "versions",
]  # fmt: skip
