"""LIMINAL 2025: what limits decode on today's and tomorrow's chips."""

from inferlib.papers.liminal2025.decode import *
from inferlib.papers.liminal2025.equations import *
from inferlib.papers.liminal2025.records import *
from inferlib.papers.source import public_names as _public_names

__all__ = _public_names(globals())
