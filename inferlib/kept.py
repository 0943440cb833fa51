"""Results that take long, kept on disk until the code or the data that they are made of changes.

They lie in the user's cache folder. ``INFERLIB_CACHE`` names another folder; empty, it keeps nothing.
"""

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import inferlib
from inferlib.printed import FLOOR

_PACKAGES = ("numpy", "scipy", "sympy", "pandas", "xarray")
_MADE_OF = (".py", ".toml", ".csv", ".json", ".txt", ".js", ".css", ".html")
_WEEK = 7 * 24 * 3600.0


def kept(name, make):
    """What a function returns, from disk where the same code has computed it before.

    Of several processes that ask at the same time one computes, and the others wait for it.

    Parameters
    ----------
    name : str
        What it is; different results have different names.
    make : callable
        Called without arguments where nothing is kept. Returns numbers, texts, booleans and None, alone or in
        tuples and lists of them.

    Returns
    -------
    same kind
        Every list as a tuple; from disk or not, the same to the last bit.
    """
    from platformdirs import user_cache_dir

    folder = _folder(os.environ.get("INFERLIB_CACHE", user_cache_dir("inferlib")))
    path = folder and folder / f"{_hash(name)}.json"
    text = _read(path) if path else None
    if text is None:
        with _alone(path):
            text = (_read(path) if path else None) or _computed(path, make)
    return _tuples(json.loads(text))


def kept_frame(name, make):
    """The same as :func:`kept` for a table of numbers and texts.

    Parameters
    ----------
    name : str
    make : callable
        Returns a pandas.DataFrame whose rows are counted from zero.

    Returns
    -------
    pandas.DataFrame
        From disk or not, the same to the last bit, in columns of the same kinds.
    """
    import pandas as pd

    def columns():
        frame = make()
        return [(column, str(frame[column].dtype), frame[column].tolist()) for column in frame]

    found = kept(name, columns)
    return pd.DataFrame({column: pd.Series(values, dtype=kind) for column, kind, values in found})


def _computed(path, make):
    """The text of a result, written where it may be kept."""
    text = json.dumps(make())
    if path and not _changed():
        with suppress(OSError):
            _write(path, text)
    return text


@contextmanager
def _alone(path):
    """Hold the lock of a result, which an ending process lets go whatever happens; none where nothing is kept."""
    lock = None
    if path:
        with suppress(ImportError, OSError):  # no such locks on Windows, and on some shared disks
            import fcntl

            _make_folder(path.parent)
            lock = open(path.with_suffix(".lock"), "w")
            fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if lock:
            with suppress(OSError):
                os.unlink(lock.name)
            lock.close()


def fingerprint(*folders):
    """Hash of all code and data in some folders and of the versions of what computes with them."""
    parts = [sys.version, *(f"{name} {_version(name)}" for name in _PACKAGES)]
    for folder in folders:
        parts += [f"{path.relative_to(folder)} {_hash(path.read_bytes())}" for path in _files(folder)]
    return _hash("\n".join(parts))


@cache
def _folder(place):
    """Where the results of this code lie; None where nothing is kept."""
    return Path(place) / fingerprint(*_floors()) if place and not _changed() else None


@cache
def _floors():
    """The folder of the library, and that of the floor above where it is installed."""
    above = find_spec(FLOOR)
    library = Path(inferlib.__file__).parent
    return [library, Path(above.origin).parent] if above and above.origin else [library]


@cache
def _files(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in _MADE_OF)


def _changed():
    """Whether a file is newer than the import, or gone: what is loaded may not be what the hash says."""
    try:
        paths = (path for folder in _floors() for path in _files(folder))
        return any(path.stat().st_mtime > inferlib.IMPORTED for path in paths)
    except OSError:
        return True


def _read(path):
    """The text of a file; None where there is none, or a damaged one."""
    try:
        checksum, _, text = path.read_text("utf-8").partition("\n")
    except (OSError, ValueError):
        return None
    return text if checksum == _hash(text) else None


def _write(path, text):
    """A reader sees the whole file or none, whoever else writes it."""
    _make_folder(path.parent)
    number, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(f"{_hash(text)}\n{text}")
    os.replace(temporary, path)


def _make_folder(folder):
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        _forget(folder.parent)


def _forget(folder):
    """Remove what older code has kept."""
    for old in folder.iterdir():
        if old.stat().st_mtime < time.time() - _WEEK:
            shutil.rmtree(old, ignore_errors=True)


def _hash(content):
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def _version(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
