"""Products of the build are kept until a file changes that they were made from; without `make` none is kept."""

import csv  # noqa: F401, rows.tsv
import os

import nbformat
import pandas as pd  # noqa: F401, rows.tsv
import pytest
from facts import from_table

from book import build_cache, import_tracking
from book.site.tools import refresh

READ = "book/maker.py", "book/room/numbers.csv", "book/room", "book/absent.toml"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A small book, an hour old, in place of this one, with a chapter."""
    monkeypatch.setenv("TOKENPRICE_BUILD", str(tmp_path / "_build"))
    monkeypatch.setattr(build_cache, "ROOT", tmp_path)
    monkeypatch.setattr(build_cache, "ALWAYS", ["book/__init__.py"])
    monkeypatch.setattr(build_cache, "READ", list(READ))
    monkeypatch.setattr(build_cache, "loaded_modules", set)
    for name in (
        "book/__init__.py",
        "book/maker.py",
        "book/room/numbers.csv",
        "book/other.py",
        "book/x.ipynb",
    ):
        write(tmp_path / name, "")
    yield tmp_path
    build_cache._state.cache_clear()


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (import_tracking.START - 3600,) * 2)
    build_cache._state.cache_clear()


def found(value):
    return build_cache.cached("a", lambda: value, "book/*.py", "book/room/*.csv")


@from_table
def test_a_chapter_is_fresh_until_something_changes_that_its_kernel_read(changed, fresh, tree):
    build_cache.record_pass("book/x.ipynb", import_tracking.START)
    assert build_cache.is_fresh(tree / "book" / "x.ipynb")
    write(tree / changed, "changed")
    assert build_cache.is_fresh(tree / "book" / "x.ipynb") == fresh


@from_table
def test_a_result_is_made_anew_where_its_files_change(changed, value, tree):
    assert found(1) == found(2) == 1
    write(tree / changed, "changed")
    assert found(2) == value


def test_code_that_changed_after_it_was_imported_keeps_nothing(tree):
    os.utime(tree / "book" / "maker.py")
    assert [found(n) for n in range(2)] == [0, 1]
    build_cache.record_pass("book/x.ipynb", import_tracking.START)
    assert not build_cache.is_fresh(tree / "book" / "x.ipynb")


def test_a_chapter_of_which_not_all_is_known_is_run_again(tree, monkeypatch):
    monkeypatch.setattr(build_cache, "loaded_modules", lambda: {"book/other.py"})
    build_cache.record_pass("book/x.ipynb", import_tracking.START)
    assert not build_cache.is_fresh(tree / "book" / "x.ipynb")


def test_all_that_the_first_import_of_a_chapter_reads_is_noted(tmp_path):
    """Also where the chapter imports a package before anything of the book."""
    first = nbformat.v4.new_code_cell("import inferlib.validation")
    nbformat.write(nbformat.v4.new_notebook(cells=[first]), tmp_path / "x.ipynb")
    check = """from book.import_tracking import READ
assert {"inferlib/__init__.py", "inferlib/validation.py"} <= {*READ}"""
    refresh.run(tmp_path / "x.ipynb", lambda made: check)


def test_nothing_is_kept_without_a_build(tree, monkeypatch):
    monkeypatch.delenv("TOKENPRICE_BUILD")
    assert [found(n) for n in range(2)] == [0, 1]


TABLE = import_tracking.ROOT / "book" / "measured" / "names.toml"


@from_table
def test_what_is_read_is_noted(way, read, monkeypatch):
    monkeypatch.setattr(import_tracking, "READ", [])
    way()
    assert read in import_tracking.READ
