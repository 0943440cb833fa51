"""Results that take long, as products of the build: files in ``_build/kept`` that `make` fills.

A file answers only for the very code and data it was made from, of all floors or of those that it needs. Where `make`
has not run, a result is computed in memory, and nothing is written.
"""

import hashlib
import json
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

import pandas as pd

from inferlib.equation import names_of_replaced

ROOT = Path(__file__).parents[1]
FLOORS = ("inferlib", "tokenprice", "book")
_MADE_OF = (".py", ".toml", ".csv", ".json", ".js", ".css")


def kept(name, make, floors=FLOORS):
    """What ``make()`` returns (numbers, texts, booleans, None, or tuples of them), from the build where it is there.

    Lists come back as tuples, and both ways give the same to the last bit.
    """
    folder = None if names_of_replaced() else _folder(floors)
    path = folder and folder / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.json"
    if path and path.exists():
        text = path.read_text("utf-8")
    else:
        text = json.dumps(make())
        if path:
            _write(path, text)
        elif not names_of_replaced():
            _say_once()
    return _tuples(json.loads(text))


def kept_frame(name, make, floors=FLOORS):
    """The same for a pandas.DataFrame of numbers and texts whose rows are counted from zero."""

    def columns():
        frame = make()
        return [(column, str(frame[column].dtype), frame[column].tolist()) for column in frame]

    found = kept(name, columns, floors)
    return pd.DataFrame({column: pd.Series(values, dtype=kind) for column, kind, values in found})


@cache
def _folder(floors):
    """Where `make` keeps the results of this code, or None where it has not said that it does."""
    place = os.environ.get("TOKENPRICE_BUILD")
    return Path(place) / "kept" / floors[-1] / fingerprint(ROOT, floors) if place else None


def fingerprint(root, floors=FLOORS):
    """Hash of all code and data of some floors, and of the interpreter."""
    hashed = hashlib.sha256(sys.version.encode())
    for path in sorted(p for floor in floors for p in (root / floor).rglob("*") if p.suffix in _MADE_OF):
        hashed.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    return hashed.hexdigest()[:24]


def _write(path, text):
    """A reader sees the whole file or none, whoever else writes it."""
    if not path.parent.exists():
        shutil.rmtree(path.parents[1], ignore_errors=True)  # what older code has made
    path.parent.mkdir(parents=True, exist_ok=True)
    number, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)


@cache
def _say_once():
    print("computing in memory what `make` would keep in _build", file=sys.stderr)


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
