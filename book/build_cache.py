"""What takes long, as products of the build: files in ``_build`` that `make` fills.

A result answers only for what it was made from: the module that computes it, all that this one imports or names, the
data that these name, Python and its packages. A chapter that passed stands for all that its kernel read, a file of
tests for what it takes and opens. Where `make` has not run, a result is computed in memory, and nothing is written.
"""

import hashlib
import json
import os
import re
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path

import pandas as pd

from book.import_tracking import READ, ROOT, START, loaded_modules
from inferlib.equation import names_of_overridden

FLOORS = ("inferlib", "tokenprice", "book")
# Where a call's first word may be a source, or what stands beside it.
ROOMS = ("inferlib.papers.", "book.papers.", "book.")
_IMPORTED = re.compile(r"^[ \t]*from ([\w.]+) import (\([^)]*\)|.*)", re.M)
_NAMED = re.compile(rf"(?:\bimport +|\b(?=\w+\.\w))((?:{'|'.join(FLOORS)})\b(?:\.\w+)*)")
_DATA = re.compile(r"[\w{}*-]*\.(?:toml|csv|json|js|css|html)\b")


def cached(name, make, *roots):
    """What ``make()`` returns (numbers, texts, booleans, None, or tuples of them), from the build where it is there.

    ``roots``: modules that it takes; that of ``make`` where none is named.
    Lists come back as tuples, and both ways give the same to the last bit.
    """
    path = None if names_of_overridden() else _place("kept", f"{name.split()[0]}-{_hashed(name.encode())}")
    states, value = _standing(path)
    if not states:
        files = closure(roots or (getattr(make, "func", make).__module__,)) if path else ()
        start = len(READ)
        value = json.loads(json.dumps(make()))
        states = _complete(name, files, READ[start:]) if path else ()
        _store(path, states, value)
    if not path and not names_of_overridden():
        _say_once()
    READ.extend(states)
    return _tuples(value)


def _complete(name, files, read):
    """The files that something is said to be made from, where nothing else was read for it."""
    # what an installation wrote about this folder is no data
    own = {str(file) for file in read if ".egg-info" not in str(file)}
    missed = {file for file in own if (ROOT / file).is_file()} - files
    if missed:
        raise RuntimeError(
            f"{name} is also made from {', '.join(sorted(missed))}: name the modules in cached()"
        )
    return files


def cached_frame(name, make, *roots):
    """The same for a pandas.DataFrame of numbers and texts whose rows are counted from zero."""

    def columns():
        frame = make()
        return [(column, str(frame[column].dtype), frame[column].tolist()) for column in frame]

    found = cached(name, columns, *(roots or (getattr(make, "func", make).__module__,)))
    return pd.DataFrame({column: pd.Series(values, dtype=kind) for column, kind, values in found})


@cache
def closure(roots):
    """The files, as paths from the root, that modules are made of: code that they take, and data that this names.

    A module named in a text counts as taken, and so does data of this name beside any module that is taken.
    """
    for root in roots:
        if not _path(root):
            raise LookupError(
                f"{root} is no module of {', '.join(FLOORS)}, so that nobody knows what it is made from"
            )
    todo, texts = list(roots), {}
    while todo:
        name = todo.pop()
        path = _path(name)
        if path and path not in texts:
            texts[path] = path.read_text("utf-8")
            todo += _taken(texts[path])
            if not name.startswith("inferlib"):
                keys = set(re.findall(r'\("(\w+)"', re.sub(r"^ *>>> .*", "", texts[path], flags=re.M)))
                todo += [room + key for room in ROOMS for key in keys if _path(room + key)]
        if "." in name:
            todo.append(name.rpartition(".")[0])
    named = {one for text in texts.values() for one in _DATA.findall(text)}
    return frozenset(from_root(path) for path in [*texts, *_data({path.parent for path in texts}, named)])


def _taken(text):
    """Names that a module imports or names, of modules or of what is in them."""
    for module, names in _IMPORTED.findall(text):
        yield module
        yield from (f"{module}.{name}" for name in re.findall(r"\w+", names))
    yield from _NAMED.findall(text)


def dependencies_of(text):
    """The files of the modules that a text which is no module takes, and all that these are made of."""
    return closure(tuple(sorted({name for name in _taken(text) if _path(name)})))


def _path(name):
    """The file of a module of the floors, or None."""
    place = ROOT / name.replace(".", "/")
    files = (place.with_suffix(".py"), place / "__init__.py") if name.split(".")[0] in FLOORS else ()
    return next((file for file in files if file.is_file()), None)


def from_root(path):
    return path.relative_to(ROOT).as_posix()


def _data(folders, named):
    """Files of data in some folders, or in those below that hold no code, that bear one of some names or its ending."""
    endings = {name.rpartition(".")[2] for name in named if set("{}*") & set(name) or name[0] == "."}
    for folder in folders:
        for path in folder.iterdir():
            if path.is_dir() and path.name[0] not in "._" and not (path / "__init__.py").exists():
                yield from _data([path], named)
            elif path.name in named or path.suffix.removeprefix(".") in endings:
                yield path


@cache
def _interpreter():
    packages = Path(sysconfig.get_path("purelib")).glob("*.dist-info")
    return "\n".join([sys.version, *sorted(package.name for package in packages)])


@cache
def _state(file):
    """What a file holds, or a folder lists, as a hash; empty where there is neither."""
    path = ROOT / file
    if path.is_dir():
        names = sorted(one.name for one in path.iterdir() if one.name[0] not in "._")
        return _hashed("\n".join(names).encode())
    return _hashed(path.read_bytes()) if path.is_file() else ""


def _hashed(content):
    return hashlib.sha256(content).hexdigest()[:24]


# What runs every chapter, and what a process reads before it records what it reads.
ALWAYS = """book/__init__.py book/import_tracking.py book/conftest.py book/site/tools/fork_kernel.py
book/site/tools/refresh.py
pyproject.toml tests/nbval_sanitize.cfg""".split()


def record_pass(chapter, since):
    """Note, in the kernel that ran it, that a chapter passed, unless what it was made from changed ``since``."""
    if loaded_modules() <= {chapter, *ALWAYS, *READ}:
        passed_with(chapter, READ, since)


def passed_with(name, files, since=START):
    """Note that a chapter or a file of tests passed as some files are, unless one of them changed ``since``."""
    _store(_stamp(name), {name, *ALWAYS, *files}, True, since)


def is_fresh(name):
    """Whether a chapter or a file of tests passed, and nothing that it was made from has changed."""
    return _standing(_stamp(name))[1] is not None


def _stamp(name):
    return _place("passed", Path(name).stem)


def _place(kind, name):
    """The file of a product, or None where nothing is built."""
    build = os.environ.get("TOKENPRICE_BUILD")
    return Path(build) / kind / f"{name}.json" if build else None


def _store(path, files, value, since=START):
    """Note what was made of some files, unless one of them may not be what this process, or another, has read of it."""
    paths = [ROOT / file for file in files]
    if path is None or any(p.is_file() and p.stat().st_mtime > min(since, START) for p in paths):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    number, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(number, "w", encoding="utf-8") as file:
        json.dump([_interpreter(), {file: _state(file) for file in sorted(files)}, value], file)
    os.replace(temporary, path)  # a reader sees the whole file or none, whoever else writes it


def _standing(path):
    """The files that something was made of, and what it is; nothing unless all of them are as they were."""
    if path and path.exists():
        try:
            interpreter, states, value = json.loads(path.read_text("utf-8"))
        except ValueError:  # half a file, of a machine that lost power: it is made again
            return (), None
        if interpreter == _interpreter() and all(_state(file) == state for file, state in states.items()):
            return states, value
    return (), None


@cache
def _say_once():
    print("computing in memory what `make` would keep in _build", file=sys.stderr)


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
