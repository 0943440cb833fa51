"""What is kept on disk: the same to the last bit, gone when code changes, and never in the way."""

import math
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

import inferlib
from book.erdil2025 import economics
from inferlib import explorer, kept, ledger
from inferlib.papers.erdil2025 import chips, models, pareto

VALUES = ((0.1 + 0.2, math.inf, -0.0, 5e-324, 2**70, True, None, "é\n"), (), ((1.0, (2, 3)),))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("INFERLIB_CACHE", str(tmp_path))
    monkeypatch.setattr(inferlib, "IMPORTED", math.inf)  # whoever edits a file meanwhile
    return tmp_path


def never():
    raise AssertionError("computed again")


def test_what_is_read_back_is_what_was_computed(folder):
    assert repr(kept.kept("a", lambda: VALUES)) == repr(VALUES)
    assert repr(kept.kept("a", never)) == repr(VALUES)
    assert math.isnan(kept.kept("b", lambda: math.nan)) and math.isnan(kept.kept("b", never))


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: content.replace(b"1", b"2"),
        lambda content: content.partition(b"\n")[2],
        lambda content: b"",
        lambda content: b"\xff" + content,
    ],
)
def test_a_damaged_file_is_computed_again(folder, damage):
    kept.kept("a", lambda: [1, 11, 111])
    (file,) = folder.rglob("*.json")
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert kept.kept("a", lambda: [1, 11, 111]) == (1, 11, 111)
    assert file.read_bytes() == whole


CHANGES = {
    "a line of code": lambda room: (room / "a.py").write_text("x = 2"),
    "a printed number": lambda room: (room / "deep" / "b.csv").write_text("1,3"),
    "a new file": lambda room: (room / "c.toml").write_text(""),
    "another name": lambda room: (room / "a.py").rename(room / "d.py"),
    "a runtime in JavaScript": lambda room: (room / "d.js").write_text("1"),
    "one file less": lambda room: (room / "a.py").unlink(),
}


@pytest.mark.parametrize("change", [None, *CHANGES])
def test_a_changed_file_changes_the_hash(tmp_path, change):
    for name in ("one", "two"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "a.py").write_text("x = 1")
        (tmp_path / name / "deep" / "b.csv").write_text("1,2")
    if change:
        CHANGES[change](tmp_path / "two")
    else:
        (tmp_path / "two" / "__pycache__").mkdir()
        (tmp_path / "two" / "__pycache__" / "a.pyc").write_text("not code that anybody wrote")
    same = kept.fingerprint(tmp_path / "one") == kept.fingerprint(tmp_path / "two")
    assert same == (change is None)


def test_another_version_of_numpy_changes_the_hash(tmp_path, monkeypatch):
    before, installed = kept.fingerprint(tmp_path), kept.version
    monkeypatch.setattr(kept, "version", lambda package: installed(package) + "1" * (package == "numpy"))
    assert kept.fingerprint(tmp_path) != before


def test_nothing_is_kept_of_code_that_changed_while_it_was_loaded(folder, monkeypatch):
    monkeypatch.setattr(inferlib, "IMPORTED", 0)
    assert kept.kept("a", lambda: 1) == 1 and not list(folder.iterdir())


def test_nothing_is_kept_where_nothing_can_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("INFERLIB_CACHE", str(tmp_path / "file" / "below"))
    assert [kept.kept("a", lambda n=n: n) for n in range(2)] == [0, 1]


def test_it_can_be_switched_off(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INFERLIB_CACHE", "")
    assert [kept.kept("a", lambda n=n: n) for n in range(2)] == [0, 1] and not list(tmp_path.iterdir())


def test_many_may_write_at_once(folder):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: kept.kept("a", lambda: list(range(1000))), range(40)))
    assert set(found) == {tuple(range(1000))}
    assert len([path for path in folder.rglob("*") if path.is_file()]) == 1, "a temporary file is left"


def test_of_many_who_ask_at_once_one_computes(folder):
    pytest.importorskip("fcntl")
    calls = []

    def slow():
        calls.append(1)
        time.sleep(0.2)
        return 1.5

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: kept.kept("a", slow), range(8))) == {1.5}
    assert len(calls) == 1 and [path.suffix for path in folder.rglob("*.*")] == [".json"]


def test_after_a_failure_the_next_one_computes(folder):
    with pytest.raises(AssertionError):
        kept.kept("a", never)
    assert kept.kept("a", lambda: 1) == 1


def test_a_table_keeps_its_numbers_and_kinds(folder):
    table = pd.DataFrame(
        {"x": [0.1 + 0.2, math.nan, -0.0], "n": [1, 2, 2**60], "word": ["a", "é", ""], "b": [True] * 3}
    )
    for make in (lambda: table, never):
        pd.testing.assert_frame_equal(kept.kept_frame("t", make), table, check_exact=True)


def test_a_frontier_from_disk_is_the_one_computed(folder, monkeypatch):
    asked = (models["Llama 3 8B"], chips["H100"])
    options = [
        {"pipeline": False} | more for more in ({}, {"context": 1000}, {"draft": models["Llama 3 8B"]})
    ]
    computed = [pareto.frontier(*asked, **each) for each in options]
    for _ in range(2):
        monkeypatch.setattr(economics, "_FOUND", {})
        for each, table in zip(options, computed, strict=True):
            pd.testing.assert_frame_equal(economics.frontier(*asked, **each), table, check_exact=True)
        monkeypatch.setattr(pareto, "frontier", lambda *_, **__: never())


def test_a_page_from_disk_is_the_one_made(folder, monkeypatch):
    def shown(keep):
        slider = explorer.Slider("a", "a", 1, 10, 2)
        views = [explorer.Curves({"2a": lambda a: 2 * a}, "a", "2a")]
        return explorer.Explorer("Twice", [slider], views, keep=keep)._repr_html_()

    made = shown(keep=False)
    assert not list(folder.rglob("*.json")) and shown(keep=True) == made
    monkeypatch.setattr("inferlib.explorer.page.page", lambda _: never())
    assert shown(keep=True) == made


def test_what_older_code_kept_goes_after_a_week(folder):
    for name, days in (("old", 8), ("new", 6)):
        (folder / name).mkdir()
        (folder / name / "a.json").write_text("")
        moment = time.time() - days * 24 * 3600
        os.utime(folder / name, (moment, moment))
    kept.kept("a", lambda: 1)
    assert not (folder / "old").exists() and (folder / "new" / "a.json").exists()


def test_a_scorecard_from_disk_is_the_one_computed(folder, monkeypatch):
    artefacts = ledger._artefacts("steinhardt2022")

    def rows():
        return repr([ledger._graded.__wrapped__("steinhardt2022", name) for name in artefacts])

    with monkeypatch.context() as patch:
        patch.setenv("INFERLIB_CACHE", "")
        computed = rows()
    assert rows() == computed
    monkeypatch.setattr(ledger, "_grade_row", lambda row: never())
    assert rows() == computed
