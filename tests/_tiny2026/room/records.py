"""The source's view of models and chips: the catalogue's own records."""

from inferlib.equation import Record, quantity
from inferlib.papers.source import load
from inferlib.system import Accelerator
from inferlib.transformer import Transformer


class Assumptions(Record):
    """Assumptions of the source; no erratum changes them."""

    reads: float = quantity("times that a token reads all weights", default=1.0)

    @classmethod
    def corrected(cls):
        """Return the same assumptions: nothing is corrected."""
        return cls()


PRINTED = Assumptions()


def models():
    """The source names no model."""
    return []


def chips():
    """The source names no chip."""
    return []


def load_model(model):
    """A model of the catalogue, by name or as a Transformer."""
    return load("model", model, Transformer, {}, None)


def load_chip(chip):
    """A chip of the catalogue, by name or as an Accelerator."""
    return load("chip", chip, Accelerator, {}, None)
