"""One room per source: its equations, derivations and answer to a decode step.

What each room prints, and what of that reproduces, stands on the floor above, in ``book/``.
"""

from inferlib.papers.rooms import about, ask, common_terms, everybody, label, source_of, sources, versions

__all__ = ["about", "ask", "common_terms", "everybody", "label", "source_of", "sources", "versions"]
