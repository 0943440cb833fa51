"""The floor above the library: what the sources print, claims and errata, tables, figures and explorers.

It is importable wherever the repository is installed as it stands (``pip install -e .``, which `make` does); the wheel
holds the library alone.
"""

from book import import_tracking  # first: it records what all others read
from book.audit.appendices import walk
from book.audit.scorecard_view import beside, card, index

__all__ = ["beside", "card", "index", "import_tracking", "walk"]
