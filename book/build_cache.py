"""Products of the build in ``_build``: Erdil's frontiers, and which chapters passed, until what they read changes.

`make` names the folder in ``TOKENPRICE_BUILD``; without it nothing is written, and all is computed in memory.
"""

import hashlib
import os
import pickle
import sys
import tempfile
from functools import cache
from pathlib import Path

from book.import_tracking import READ, ROOT, START, loaded_modules
from inferlib.equation import names_of_overridden

# Files on which every product depends: the packages, and files read before a process records what it reads.
ALWAYS = """book/__init__.py book/import_tracking.py book/conftest.py book/site/tools/refresh.py constraints.txt
pyproject.toml inferlib/__init__.py""".split()


def cached(name, make, *patterns):
    """Return ``make()``, or its stored result if the files that match some patterns are unchanged."""
    path = None if names_of_overridden() else _place("kept", f"{name.split()[0]}-{_hashed(name.encode())}")
    files = {_from_root(file) for pattern in patterns for file in ROOT.glob(pattern)}
    value = _standing(path)
    if value is None:
        value = make()
        _store(path, files, value)
    READ.extend(files)
    return value


def record_pass(chapter, since):
    """Record, in the kernel that ran it, that a chapter passed, unless a file that it read changed ``since``."""
    if loaded_modules() <= {chapter, *ALWAYS, *READ}:
        _store(_place("passed", Path(chapter).stem), {chapter, *READ}, True, since)


def is_fresh(chapter):
    """Whether a chapter passed, and no file that it read has changed since."""
    return _standing(_place("passed", chapter.stem)) is not None


def _place(kind, name):
    """Return the file that stores a product; None without a build folder (``TOKENPRICE_BUILD``)."""
    build = os.environ.get("TOKENPRICE_BUILD")
    return Path(build) / kind / f"{name}.pickle" if build else None


def _store(path, files, value, since=START):
    """Store a product of some files, unless one of them may have changed since a process read it."""
    files = {*files, *ALWAYS}
    paths = [ROOT / file for file in files]
    if path is None or any(p.is_file() and p.stat().st_mtime > min(since, START) for p in paths):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    number, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(number, "wb") as file:
        pickle.dump((sys.version, {file: _state(file) for file in files}, value), file)
    os.replace(temporary, path)  # readers see the whole old or the whole new file


def _standing(path):
    """Return the stored product of some files if all of them are unchanged, else None."""
    if path and path.exists():
        version, states, value = pickle.loads(path.read_bytes())
        if version == sys.version and all(_state(file) == state for file, state in states.items()):
            return value
    return None


@cache
def _state(file):
    """Return a hash of a file's content or a folder's listing; ``""`` if there is neither."""
    path = ROOT / file
    if path.is_dir():
        names = sorted(one.name for one in path.iterdir() if one.name[0] not in "._")
        return _hashed("\n".join(names).encode())
    return _hashed(path.read_bytes()) if path.is_file() else ""


def _hashed(content):
    return hashlib.sha256(content).hexdigest()[:24]


def _from_root(path):
    return path.relative_to(ROOT).as_posix()
