"""The two floors: the library below, the book above; no room imports upwards, and none in a circle."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]


def modules():
    """Every module of both floors: name to path."""
    paths = [*ROOT.glob("inferlib/**/*.py"), *ROOT.glob("book/[a-z]*/**/*.py"), *ROOT.glob("book/*.py")]
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in paths}
    return {name.removesuffix(".__init__"): path for name, path in names.items() if "conftest" not in name}


def imported(path, known):
    """The modules of both floors that one imports, at the top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module for name in whole}
    return found & set(known)


def test_the_library_never_imports_the_book():
    known = modules()
    upwards = {
        name: sorted(up)
        for name, path in known.items()
        if name.startswith("inferlib")
        and (up := {m for m in imported(path, known) if not m.startswith("inferlib")})
    }
    assert not upwards


def test_nothing_is_imported_in_a_circle():
    known = modules()
    graph = {name: imported(path, known) - {name} for name, path in known.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None
