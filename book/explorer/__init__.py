"""Explorers: one description of inputs and outputs that works in a notebook and in the page without a kernel."""

from book.explorer.core import Explorer
from book.explorer.guess import Guess
from book.explorer.inputs import Choice, Slider, StructureChoice, first, formats, sizes
from book.explorer.outputs import Bars, Curves, Gauge, Limit, Sentence, memory

__all__ = [
    "Bars", "Choice", "Curves", "Explorer", "Gauge", "Guess", "StructureChoice", "Limit",
    "Sentence", "Slider", "first", "formats", "memory", "sizes",
]  # fmt: skip
