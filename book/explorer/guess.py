"""Guess boxes: a slider for the reader's own estimate before the answer is shown."""

import html
import math
from dataclasses import replace

from book.explorer.page import guess_page
from inferlib import validation
from inferlib.equation import frozen


@frozen
class Guess:
    """A slider for the reader's own estimate, before the answer is shown.

    ``answer``: the computed answer in ``unit``; for an integer the slider has whole numbers only. ``low``, ``high``:
    ends of the (logarithmic) slider, extended if the answer is beyond them; it starts in the middle, which counts as a
    guess only once it is moved. An answer that is not positive and finite is shown at once. ``by``: whose answer it is:
    ``"the model"``, ``"a measurement by SGLang"``, ``"the count"``. ``why``: a sentence on where the answer comes from,
    shown with it.
    """

    question: str
    answer: float
    unit: str
    low: float
    high: float
    by: str = "the model"
    why: str = ""

    def __post_init__(self):
        validation.number("low", self.low)
        validation.number("high", self.high)
        if not self.by:
            raise ValueError("by is empty, but must say whose answer it is")

    def _repr_html_(self):
        if not 0 < self.answer < math.inf:
            lost = "has no answer" if self.answer != self.answer else f"says {self.answer:.3g} {self.unit}"
            return f"<p>{html.escape(f'{self.question}: {self.by} {lost}.')}</p>"
        low = self.low if self.low <= self.answer else float(f"{self.answer / 2:.1g}")
        high = self.high if self.answer <= self.high else float(f"{2 * self.answer:.1g}")
        return guess_page(replace(self, low=low, high=high), math.sqrt(low * high))

    def __repr__(self):
        return f"Guess({self.question!r})"
