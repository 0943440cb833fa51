"""How fast and how cheaply can a large language model generate tokens, and what stops it?

Five published models of inference, each in its own room under ``inferlib.papers``, over a few shared
rooms. Everything works in SI units: seconds, bytes, FLOP, dollars per hour.
"""

import time
from importlib import import_module

__version__ = "0.1.0"
IMPORTED = time.time()  # a file changed since then may be loaded as it was before

# Loaded on first use, so that ``import inferlib`` costs nothing (pandas and SymPy are slow to import).
_WHERE = {
    "Accelerator": "inferlib.system",
    "Breakdown": "inferlib.system",
    "Layout": "inferlib.system",
    "System": "inferlib.system",
    "Workload": "inferlib.system",
    "Transformer": "inferlib.transformer",
    "load_chip": "inferlib.catalog",
    "load_model": "inferlib.catalog",
    "equations": "inferlib.ledger",
    "errata": "inferlib.ledger",
    "scorecard": "inferlib.ledger",
    "summary": "inferlib.ledger",
    "notes": "inferlib.ledger",
    "explain": "inferlib.explanation",
    "minimise": "inferlib.equation",
    "ask": "inferlib.papers",
    "answer": "inferlib.serving.answer",
    "decide": "inferlib.serving.decide",
    "must_change": "inferlib.serving.change",
    "estimate": "inferlib.serving.estimate",
    "estimate_request": "inferlib.serving.request",
    "widget": "inferlib.serving.widget",
}
_ROOMS = (
    "catalog",
    "equation",
    "explorer",
    "frontier",
    "ledger",
    "measured",
    "ops",
    "papers",
    "principles",
    "serving",
    "style",
    "system",
    "units",
)

__all__ = [*_WHERE, *_ROOMS]


def __getattr__(name):
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    if name in _ROOMS:
        return import_module(f"inferlib.{name}")
    raise AttributeError(f"module 'inferlib' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
