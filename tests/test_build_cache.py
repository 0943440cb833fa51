"""What the build keeps: the same to the last bit, only for what it was made from, nothing where `make` has not run."""

import ast
import csv
import math
import os

import pandas as pd
import pytest

from book import build_cache, import_tracking

VALUES = ((0.1 + 0.2, math.inf, -0.0, 5e-324, 2**70, True, None, "é\n"), (), ((1.0, (2, 3)),))
ROOT = "book.audit.published_rows"
# A small book: what `book.maker` takes, and beside it what it does not.
TREE = {
    "book/__init__.py": "",
    "book/maker.py": "import inferlib\nfrom book.taken import (\n    one,\n    two,\n)\n\ndef make():\n"
    "    from book import late\n    return import_module('book.named') or printed(\"key\") / 'numbers.csv'\n",
    "book/taken/__init__.py": "from book.taken.one import *",
    "book/taken/one.py": "",
    "book/taken/two.py": "",
    "book/late.py": "def script(name):\n    return (files('book') / f'{name}.js').read_text()",
    "book/named.py": "table = files('book.room') / 'tables' / f'{name}.toml'",
    "book/box.js": "",
    "book/key/numbers.csv": "",
    "book/key/__init__.py": "",
    "book/room/__init__.py": "",
    "book/room/numbers.csv": "",
    "book/room/tables/a.toml": "",
    "inferlib/__init__.py": "WHERE = {'System': 'inferlib.system'}",
    "inferlib/system.py": "",
    "book/other.py": "import book.maker",
    "book/other.csv": "",
    "book/room/prose.md": "",
    "tokenprice/__init__.py": "",
}
NOT_TAKEN = {"book/other.py", "book/other.csv", "book/room/prose.md", "tokenprice/__init__.py"}


def forget():
    for one in (build_cache.closure, build_cache._interpreter, build_cache._state):
        one.cache_clear()


@pytest.fixture
def build(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKENPRICE_BUILD", str(tmp_path / "_build"))
    forget()
    yield tmp_path / "_build"
    forget()


@pytest.fixture
def tree(tmp_path, monkeypatch, build):
    """The small book, an hour old, in place of this one."""
    for name, text in TREE.items():
        write(tmp_path / name, text)
    monkeypatch.setattr(build_cache, "ROOT", tmp_path)
    monkeypatch.setattr(build_cache, "ALWAYS", ["book/__init__.py"])
    monkeypatch.setattr(build_cache, "loaded_modules", set)
    return tmp_path


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (import_tracking.START - 3600,) * 2)
    forget()


def never():
    raise AssertionError("computed again")


def test_what_is_read_back_is_what_was_computed(build):
    for make in (lambda: VALUES, never):
        assert repr(build_cache.cached("a", make, ROOT)) == repr(VALUES)
    for make in (lambda: math.nan, never):
        assert math.isnan(build_cache.cached("b", make, ROOT))
    table = pd.DataFrame({"x": [0.1, math.nan], "n": [1, 2], "name": ["a", "b"]})
    for make in (lambda: table, never):
        pd.testing.assert_frame_equal(build_cache.cached_frame("t", make, ROOT), table, check_exact=True)


def test_nothing_is_written_without_a_build(build, monkeypatch, capsys):
    monkeypatch.delenv("TOKENPRICE_BUILD")
    build_cache._say_once.cache_clear()
    assert [build_cache.cached("a", lambda n=n: n, ROOT) for n in range(2)] == [0, 1]
    assert not build.exists()
    assert capsys.readouterr().err.count("in memory") == 1


def test_a_failure_keeps_nothing(build):
    with pytest.raises(AssertionError):
        build_cache.cached("a", never, ROOT)
    assert build_cache.cached("a", lambda: 1, ROOT) == 1


def test_half_a_file_is_made_again(build):
    """As it stands after a machine lost power."""
    build_cache.cached("values", lambda: VALUES, ROOT)
    (file,) = build.rglob("*.json")
    file.write_text(file.read_text()[:-20])
    assert build_cache.cached("values", lambda: VALUES, ROOT) == VALUES


def test_what_nobody_knows_the_code_of_is_refused(build):
    with pytest.raises(LookupError, match="test_build_cache is no module of inferlib, tokenprice, book"):
        build_cache.cached("a", never)


@pytest.mark.parametrize("changed", TREE)
def test_a_result_is_made_anew_where_something_changes_that_it_was_made_from(tree, changed):
    assert build_cache.cached("a", lambda: 1, "book.maker") == 1
    write(tree / changed, TREE[changed] + "\n# changed")
    assert build_cache.cached("a", lambda: 2, "book.maker") == (1 if changed in NOT_TAKEN else 2)


def test_data_that_a_module_does_not_name_is_asked_for(tree, monkeypatch):
    monkeypatch.setattr(build_cache, "READ", read := [])

    def make():
        read.append("book/other.csv")

    with pytest.raises(RuntimeError, match="a is also made from book/other.csv: name the module"):
        build_cache.cached("a", make, "book.maker")


def test_code_that_changed_after_it_was_imported_keeps_nothing(tree):
    os.utime(tree / "book/late.py")
    assert [build_cache.cached("a", lambda n=n: n, "book.maker") for n in range(2)] == [0, 1]


def test_a_chapter_is_unchanged_until_something_changes_that_its_kernel_read(tree, monkeypatch):
    write(tree / "book/x.ipynb", "{}")
    read = ["book/maker.py", "book/room/numbers.csv", "book/room", "book/absent.toml"]
    monkeypatch.setattr(build_cache, "READ", read)
    assert not build_cache.is_fresh("book/x.ipynb")
    build_cache.record_pass("book/x.ipynb", import_tracking.START)
    assert build_cache.is_fresh("book/x.ipynb")
    for changed in (
        "book/x.ipynb",
        "book/maker.py",
        "book/room/numbers.csv",
        "book/absent.toml",
        "book/room/new.csv",
    ):
        before = (tree / changed).read_text() if (tree / changed).exists() else None
        write(tree / changed, "changed")
        assert not build_cache.is_fresh("book/x.ipynb"), changed
        (tree / changed).unlink()
        if before is not None:
            write(tree / changed, before)
        forget()
        assert build_cache.is_fresh("book/x.ipynb"), changed
    write(tree / "book/other.py", "changed")
    assert build_cache.is_fresh("book/x.ipynb")
    monkeypatch.setattr(build_cache.sys, "version", "4.0")
    forget()
    assert not build_cache.is_fresh("book/x.ipynb")


def test_a_chapter_of_which_not_all_is_known_is_run_again(tree, monkeypatch):
    write(tree / "book/x.ipynb", "{}")
    monkeypatch.setattr(build_cache, "READ", ["book/maker.py"])
    build_cache.record_pass("book/x.ipynb", os.path.getmtime(tree / "book/maker.py") - 1)
    monkeypatch.setattr(build_cache, "loaded_modules", lambda: {"book/late.py"})
    build_cache.record_pass("book/x.ipynb", import_tracking.START)
    assert not build_cache.is_fresh("book/x.ipynb")


def test_every_import_of_the_floors_is_followed():
    files = [path for floor in build_cache.FLOORS for path in (import_tracking.ROOT / floor).rglob("*.py")]
    for path in files:
        text = path.read_text("utf-8")
        taken = {build_cache._path(name) for name in build_cache._taken(text)}
        for node in ast.walk(ast.parse(text)):
            names = (
                [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            )
            if isinstance(node, ast.ImportFrom):
                assert not node.level, f"{path} imports from a neighbour without its name"
                names = [node.module, *(f"{node.module}.{name}" for name in names)]
            assert {build_cache._path(name) for name in names} <= taken | {None}, path


def test_what_is_read_is_noted(monkeypatch):
    room = import_tracking.ROOT / "book" / "measured"
    ways = (
        lambda: (room / "names.toml").read_text("utf-8"),
        lambda: pd.read_csv(room / "names.toml", sep="\0", quoting=csv.QUOTE_NONE),
        lambda: os.close(os.open(room / "names.toml", os.O_RDONLY)),
    )
    for way in ways:
        monkeypatch.setattr(import_tracking, "READ", [])
        way()
        assert import_tracking.READ == ["book/measured/names.toml"]
    for way in (os.listdir, lambda path: list(path.glob("*.csv"))):
        monkeypatch.setattr(import_tracking, "READ", [])
        way(room)
        assert "book/measured" in import_tracking.READ
