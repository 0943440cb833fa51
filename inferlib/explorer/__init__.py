"""Explorers: one description of inputs and outputs, alive in a notebook and in the page without a kernel."""

from inferlib.explorer.core import Explorer, breakdown, curves
from inferlib.explorer.guess import Guess
from inferlib.explorer.inputs import Choice, Kind, Preset, Section, Slider
from inferlib.explorer.outputs import Bars, Curves, Frontier, Limit, Search

__all__ = [
    "Bars",
    "Choice",
    "Curves",
    "Explorer",
    "Frontier",
    "Guess",
    "Kind",
    "Limit",
    "Preset",
    "Search",
    "Section",
    "Slider",
    "breakdown",
    "curves",
]
