"""Packages that derivations, sweeps and tables need (the extra ``derive``).

``from inferlib.extras import sympy`` is ``import sympy``, or one line that says what to install.
"""

from importlib import import_module

_PACKAGES = {"pandas": "derive", "sympy": "derive", "xarray": "derive"}


def __getattr__(name):
    if name not in _PACKAGES:
        raise AttributeError(name)
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != name:
            raise
        raise ImportError(
            f"this needs {name}: pip install '.[{_PACKAGES[name]}]' in the project's folder"
        ) from None
