"""How fast and how cheaply can a large language model generate tokens, and what stops it?

Five published models of inference, one package each under ``inferlib.papers``, and the shared modules they use:
equations, derivations, sweeps. All values are in SI units: seconds, bytes, FLOP, dollars per hour.
"""

from importlib import import_module as _import_module

__version__ = "1.0.0"

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
    "load_system": "inferlib.catalog",
    "variant": "inferlib.equation",
    "axis": "inferlib.axes",
}
_MODULES = ("catalog", "frontier", "ops", "papers", "principles", "units")

__all__ = [*_WHERE, *_MODULES]


def __getattr__(name):
    if name in _WHERE:
        return getattr(_import_module(_WHERE[name]), name)
    if name in _MODULES:
        return _import_module(f"inferlib.{name}")
    raise AttributeError(f"module 'inferlib' has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
