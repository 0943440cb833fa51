"""Explorers of Tiny 2026."""

from inferlib.papers.tiny2026.equations import reading_time

from book.explorer import Curves, Explorer, Slider
from inferlib.system import Accelerator


def reading():
    """The time to read weights, over their size."""
    chip = Accelerator(flops=1e15, memory_bandwidth=2e12)
    size = Slider("size", "Weights", 1, 100, 16, unit="GB")
    outputs = {"time": lambda size: reading_time(chip, 1e9 * size)}
    return Explorer("Reading", [size], [Curves(outputs, "size", "time (ms)", "ms")])
