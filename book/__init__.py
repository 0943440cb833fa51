"""The floor above the library: what the sources print, claims and errata, tables, figures and explorers.

It is importable wherever the repository is installed as it stands (``pip install -e .``, which `make` does); the wheel
holds the library alone.
"""

from book import import_tracking  # first: it records what all others read
from book.audit.scorecard_view import card, index

__all__ = ["card", "index", "import_tracking"]
