"""The book's code above the library: what sources print, claims, errata, tables, figures, explorers, problems.

It can be imported if the repository is installed in editable form (``pip install -e .``, as `make` does); the wheel
has the library only.
"""

from book import import_tracking  # first: it records what all others read
from book.audit.appendices import walk
from book.audit.scorecard_view import beside, card, index

__all__ = ["beside", "card", "index", "import_tracking", "walk"]
