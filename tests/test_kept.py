"""What the build keeps: the same to the last bit, only for the same code, and nothing where `make` has not run."""

import math

import pandas as pd
import pytest

from book import kept

VALUES = ((0.1 + 0.2, math.inf, -0.0, 5e-324, 2**70, True, None, "é\n"), (), ((1.0, (2, 3)),))


@pytest.fixture
def build(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKENPRICE_BUILD", str(tmp_path))
    kept._folder.cache_clear()
    yield tmp_path
    kept._folder.cache_clear()


def never():
    raise AssertionError("computed again")


def test_what_is_read_back_is_what_was_computed(build):
    for make in (lambda: VALUES, never):
        assert repr(kept.kept("a", make)) == repr(VALUES)
    assert math.isnan(kept.kept("b", lambda: math.nan)) and math.isnan(kept.kept("b", never))
    table = pd.DataFrame({"x": [0.1, math.nan], "n": [1, 2], "name": ["a", "b"]})
    for make in (lambda: table, never):
        pd.testing.assert_frame_equal(kept.kept_frame("t", make), table, check_exact=True)


def test_nothing_is_written_without_a_build(build, monkeypatch, capsys):
    monkeypatch.delenv("TOKENPRICE_BUILD")
    kept._say_once.cache_clear()
    assert [kept.kept("a", lambda n=n: n) for n in range(2)] == [0, 1]
    assert not list(build.iterdir()) and capsys.readouterr().err.count("in memory") == 1


def test_another_file_is_another_fingerprint(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "a.toml").write_text("x = 1")
    before = kept.fingerprint(tmp_path)
    assert kept.fingerprint(tmp_path) == before
    (tmp_path / "book" / "a.toml").write_text("x = 2")
    assert kept.fingerprint(tmp_path) != before
    assert kept.fingerprint(tmp_path, ["inferlib"]) == kept.fingerprint(tmp_path, []) != before
    (tmp_path / "inferlib").mkdir()
    (tmp_path / "inferlib" / "a.csv").write_text("1")
    assert kept.fingerprint(tmp_path, ["inferlib"]) != kept.fingerprint(tmp_path, [])


def test_a_failure_keeps_nothing(build):
    with pytest.raises(AssertionError):
        kept.kept("a", never)
    assert kept.kept("a", lambda: 1) == 1
