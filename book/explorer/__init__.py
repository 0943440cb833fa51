"""Explorers: one description of inputs and outputs, alive in a notebook and in the page without a kernel."""

from book.explorer.core import Explorer, breakdown, curves
from book.explorer.guess import Guess
from book.explorer.inputs import Choice, Kind, Slider, first
from book.explorer.outputs import Bars, Curves, Limit, Sentence, memory
from book.explorer.pictures import Axis, Frontier, Gauge, Plane

__all__ = [
    "Axis", "Bars", "Choice", "Curves", "Explorer", "Frontier", "Gauge", "Guess", "Kind", "Limit", "Plane",
    "Sentence", "Slider", "breakdown", "curves", "first", "memory",
]  # fmt: skip
