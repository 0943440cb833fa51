"""Mazurek & Schreiber 2025, "DeepSeek inference theoretical model": serving a mixture of experts."""

from inferlib.papers.mazurek2025.decode import *
from inferlib.papers.mazurek2025.equations import *
from inferlib.papers.mazurek2025.records import *
from inferlib.papers.source import public_names as _public_names

__all__ = _public_names(globals())
