"""The two equations of the source."""

from functools import partial

from inferlib.equation import equation
from inferlib.system import Accelerator

equation = partial(equation, "tiny2026")


@equation("1", unit="s", n_params="B")
def reading_time(chip: Accelerator, n_params):
    """Time to read all weights once."""
    return n_params / chip.memory_bandwidth


@equation("2", unit="1/s", n_params="B > 0")
def speed(chip: Accelerator, n_params):
    """Tokens per second of one chip."""
    return 1 / reading_time(chip, n_params)
