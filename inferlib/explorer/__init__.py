"""Explorers: one description of inputs and outputs, alive in a notebook and in the page without a kernel."""

from inferlib.explorer.core import Explorer, breakdown, curves
from inferlib.explorer.guess import Guess
from inferlib.explorer.inputs import Choice, Kind, Slider
from inferlib.explorer.outputs import Bars, Curves, Limit, Search, Sentence, memory
from inferlib.explorer.pictures import Axis, Cells, Chips, Gauge, Plane, Trade

__all__ = [
    "Axis",
    "Bars",
    "Cells",
    "Chips",
    "Choice",
    "Curves",
    "Explorer",
    "Gauge",
    "Guess",
    "Kind",
    "Limit",
    "Plane",
    "Search",
    "Sentence",
    "Slider",
    "Trade",
    "breakdown",
    "curves",
    "memory",
]
