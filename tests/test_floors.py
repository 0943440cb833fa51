"""Three floors, `inferlib` below `tokenprice` below `book`: no import upwards or in a circle, and each works alone."""

import ast
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from facts import from_table

ROOT = Path(__file__).parents[1]
FLOORS = ("inferlib", "tokenprice", "book")


def modules():
    """Every module of all floors: name to path."""
    paths = [path for floor in FLOORS for path in (ROOT / floor).rglob("*.py")]
    paths = [p for p in paths if not any(part.startswith("_") for part in p.relative_to(ROOT).parts[:-1])]
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in paths}
    return {name.removesuffix(".__init__"): path for name, path in names.items() if "conftest" not in name}


KNOWN = modules()


@cache
def nodes(path):
    """All nodes of a module, read once."""
    return list(ast.walk(ast.parse(path.read_text("utf-8"))))


def imported(path):
    """The modules that one imports, at the top or inside a function, or names in a string."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in KNOWN else node.module for name in whole}
    return found & set(KNOWN)


def named_in_strings(path):
    """The floors whose modules a string of the code names, docstrings left out: as `import_module` takes them."""
    docstrings = {
        id(node.body[0].value)
        for node in nodes(path)
        if isinstance(getattr(node, "body", None), list) and node.body and isinstance(node.body[0], ast.Expr)
    }
    constants = [n for n in nodes(path) if isinstance(n, ast.Constant) and id(n) not in docstrings]
    texts = [node.value for node in constants if isinstance(node.value, str)]
    return {
        found.group(1) for text in texts if (found := re.match(rf"({'|'.join(FLOORS)})(\.[a-z_0-9]+)+", text))
    }


def test_no_floor_imports_a_higher_one():
    upwards = {}
    for name, path in KNOWN.items():
        higher = FLOORS[FLOORS.index(name.split(".")[0]) + 1 :]
        used = {m.split(".")[0] for m in imported(path)} | named_in_strings(path)
        if used & set(higher):
            upwards[name] = used & set(higher)
    assert not upwards


def test_nothing_is_imported_in_a_circle():
    no_circle({name: imported(path) - {name} for name, path in KNOWN.items()})


def test_no_paper_imports_another():
    rooms = {name: name.split(".")[2] for name in KNOWN if re.match(r"inferlib\.papers\.\w+2\d{3}", name)}
    assert not [
        name for name in rooms for m in imported(KNOWN[name]) if rooms.get(m, rooms[name]) != rooms[name]
    ]


def test_no_room_of_the_book_uses_one_that_uses_it():
    rooms = {name: name.split(".")[1] for name in KNOWN if name.startswith("book.")}
    graph = {room: set() for room in rooms.values()}
    for name, room in rooms.items():
        graph[room] |= {rooms[other] for other in imported(KNOWN[name]) if other in rooms} - {room}
    no_circle(graph)


def no_circle(graph):
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


ALONE = """
import importlib, pkgutil, sys
import inferlib
for floor in sys.argv[1:]:
    package = importlib.import_module(floor)
    for module in pkgutil.walk_packages(package.__path__, floor + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
box = inferlib.System(inferlib.load_chip("H100 SXM"), 8)
question = inferlib.load_model("Llama 3 70B"), box, inferlib.Workload(8, 1024)
for key in inferlib.papers.answerers():
    assert inferlib.papers.ask(key, *question).status in ("ok", "n/a", "infeasible"), key
assert inferlib.papers.ask("erdil2025", *question).feasible
"""


@from_table
def test_a_floor_needs_only_those_below(floors, tmp_path):
    for floor in floors:
        shutil.copytree(ROOT / floor, tmp_path / floor, ignore=shutil.ignore_patterns("__pycache__"))
    there = {**os.environ, "PYTHONSAFEPATH": "1"}
    # -S with the packages of this environment named by hand: an editable install would bring the other floors back
    packages = [p for p in sys.path if p.endswith(("site-packages", "dist-packages"))]
    there["PYTHONPATH"] = os.pathsep.join([str(tmp_path), *packages])
    doctests = "-m pytest -q -W error -p no:cacheprovider -o addopts=--doctest-modules".split()
    for command in (["-c", ALONE, *floors], [*doctests, floors[-1]]):
        run = subprocess.run(
            [sys.executable, "-S", *command], cwd=tmp_path, env=there, capture_output=True, text=True
        )
        assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
