"""Packages that are imported where they are used: NumPy where the first array is met, the others (the extra ``derive``)
by derivations, sweeps and tables, PyYAML (``recipes``) by launch commands with settings in YAML, zstandard (``traces``)
by compressed files of requests.

``from inferlib.optional_imports import sympy`` is ``import sympy``, or one line that says what to install; ``np`` of
this module is NumPy, which is imported when the first of its names is asked for.
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
    """NumPy, once somebody asks it for a name."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module("numpy"), name)
        setattr(self, name, found)
        return found


if TYPE_CHECKING:
    import numpy as np
else:
    np = _Numpy()


def is_array(value):
    """Whether ``value`` is an array of NumPy, which need not have been imported."""
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
