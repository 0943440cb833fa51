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

# What every product depends on: the packages, and what runs a chapter and is read before a process notes what it reads.
ALWAYS = """book/__init__.py book/import_tracking.py book/conftest.py book/site/tools/refresh.py constraints.txt
pyproject.toml tests/nbval_sanitize.cfg""".split()


def cached(name, make, *patterns):
    """What ``make()`` returns, from the build where the files of some patterns are as they were."""
    path = None if names_of_overridden() else _place("kept", f"{name.split()[0]}-{_hashed(name.encode())}")
    files = {_from_root(file) for pattern in patterns for file in ROOT.glob(pattern)}
    value = _standing(path)
    if value is None:
        value = make()
        _store(path, files, value)
    READ.extend(files)
    return value


def record_pass(chapter, since):
    """Note, in the kernel that ran it, that a chapter passed, unless what it was made from changed ``since``."""
    if loaded_modules() <= {chapter, *ALWAYS, *READ}:
        _store(_place("passed", Path(chapter).stem), {chapter, *READ}, True, since)


def is_fresh(chapter):
    """Whether a chapter passed, and nothing that it was made from has changed."""
    return _standing(_place("passed", chapter.stem)) is not None


def _place(kind, name):
    """The file of a product, or None where nothing is built."""
    build = os.environ.get("TOKENPRICE_BUILD")
    return Path(build) / kind / f"{name}.pickle" if build else None


def _store(path, files, value, since=START):
    """Note what was made of some files, unless one of them may not be what this process, or another, has read of it."""
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
    """What was made of some files, if all of them are as they were."""
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
