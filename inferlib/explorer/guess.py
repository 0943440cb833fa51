"""Guess first: a slider for the reader's own estimate."""

import math
from dataclasses import dataclass

from inferlib import checks


@dataclass(frozen=True)
class Guess:
    """A slider for the reader's own estimate, before the answer is shown.

    Parameters
    ----------
    question : str
    answer : float
        The computed answer, in ``unit``. Of an integer the slider offers whole numbers only.
    unit : str
    low, high : float
        Ends of the (logarithmic) slider; it starts in the middle.
    """

    question: str
    answer: float
    unit: str
    low: float
    high: float

    def __post_init__(self):
        checks.number("answer", self.answer)
        checks.number("low", self.low)
        checks.number("high", self.high)
        if not self.low < self.answer < self.high:
            raise ValueError(f"answer is {self.answer}, but must lie between {self.low} and {self.high}")

    def _repr_html_(self):
        from inferlib.explorer.page import guess_page

        return guess_page(self, math.sqrt(self.low * self.high))

    def __repr__(self):
        return f"Guess({self.question!r})"
