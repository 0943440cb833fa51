"""Tiny 2026: a made-up source of two equations, which passes all general tests."""

from inferlib.papers.tiny2026.decode import *
from inferlib.papers.tiny2026.equations import *
from inferlib.papers.tiny2026.records import *

from inferlib.papers.source import public_names as _public_names

__all__ = _public_names(globals())
