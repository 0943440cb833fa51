"""Lazy imports of optional packages: NumPy with the first array; others with the first derivation or table (extra
``derive``), YAML recipe (PyYAML, ``recipes``) or compressed trace (zstandard, ``traces``).

``from inferlib.optional_imports import sympy`` is ``import sympy``, or an error that says what to install. ``np`` of
this module imports NumPy on first use.
"""

from importlib import import_module
from sys import modules
from typing import TYPE_CHECKING, Any

_PACKAGES = {
    "pandas": "derive",
    "sympy": "derive",
    "xarray": "derive",
    "yaml": "recipes",
    "zstandard": "traces",
}


class _Numpy:
    """NumPy, imported on first use."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module("numpy"), name)
        setattr(self, name, found)
        return found


if TYPE_CHECKING:
    import numpy as np
else:
    np = _Numpy()


def is_array(value):
    """Whether ``value`` is a NumPy array, without importing NumPy."""
    return "numpy" in modules and isinstance(value, np.ndarray)


def __getattr__(name):
    if name not in _PACKAGES:
        raise AttributeError(name)
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != name:
            raise
        raise ImportError(f"this needs {name}: pip install 'inferlib[{_PACKAGES[name]}]'") from None
