"""Guess first: a slider for the reader's own estimate."""

import math
from dataclasses import dataclass

from book.explorer.page import guess_page
from inferlib import checks


@dataclass(frozen=True)
class Guess:
    """A slider for the reader's own estimate, before the answer is shown.

    ``answer``: the computed answer, in ``unit``. Of an integer the slider offers whole numbers only. ``low``,
    ``high``: ends of the (logarithmic) slider; it starts in the middle, which is no guess before it is moved.
    ``by``: whose answer it is: ``"the model"``, ``"a measurement by SGLang"``, ``"the count"``. ``why``: a
    sentence on where the answer comes from, shown with it.
    """

    question: str
    answer: float
    unit: str
    low: float
    high: float
    by: str = "the model"
    why: str = ""

    def __post_init__(self):
        checks.number("answer", self.answer)
        checks.number("low", self.low)
        checks.number("high", self.high)
        if not self.low < self.answer < self.high:
            raise ValueError(f"answer is {self.answer}, but must lie between {self.low} and {self.high}")
        if not self.by:
            raise ValueError("by is empty, but must say whose answer it is")

    def _repr_html_(self):
        return guess_page(self, math.sqrt(self.low * self.high))

    def __repr__(self):
        return f"Guess({self.question!r})"
