"""Erdil 2025, "Inference economics of language models": cost per token against speed per user."""

from inferlib.frontier import preferred
from inferlib.papers.erdil2025.decode import *
from inferlib.papers.erdil2025.equations.model import *
from inferlib.papers.erdil2025.equations.toy import *
from inferlib.papers.erdil2025.records import *
from inferlib.papers.erdil2025.search import *
from inferlib.papers.erdil2025.shape import *
from inferlib.papers.source import public_names as _public_names

__all__ = _public_names(globals())
