"""Steinhardt 2022, "How fast can we perform a forward pass?": the least time of one pass through a model."""

from inferlib.papers.source import public_names as _public_names
from inferlib.papers.steinhardt2022.decode import *
from inferlib.papers.steinhardt2022.equations import *
from inferlib.papers.steinhardt2022.records import *

__all__ = _public_names(globals())
