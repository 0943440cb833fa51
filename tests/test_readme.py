"""The README tells the truth: its commands exist, its links lead somewhere, its code runs, its picture is fresh."""

import contextlib
import importlib.util
import io
import re
import shlex
from pathlib import Path

import pytest

from tokenprice.terminal import main

ROOT = Path(__file__).parents[1]
TEXTS = ("README.md", "CONTRIBUTING.md")


@pytest.mark.parametrize("name", TEXTS)
def test_commands_exist(name):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    used = set(re.findall(r"(?:^    |`)make ([a-z]+)", (ROOT / name).read_text(), re.M))
    assert used and used <= targets


@pytest.mark.parametrize("name", TEXTS)
def test_links_and_paths_lead_somewhere(name):
    text = (ROOT / name).read_text()
    prose = re.sub(r"`[^`]*`", "", text)
    links = [
        link for link in re.findall(r"\]\(([^)]+)\)", prose) if "://" not in link and not link.startswith("#")
    ]
    paths = [path for path in re.findall(r"`((?:inferlib|tokenprice|book|\.ci)/[\w./]*)`", text)]
    for path in [*links, *paths]:
        assert (ROOT / path).exists(), path


def test_every_licence_of_the_data_is_named():
    kept = [*(ROOT / "book/measured").rglob("*.toml"), *(ROOT / "tokenprice").glob("*.toml")]
    named = {name for path in kept for name in re.findall(r'^licence = "(.*)"', path.read_text(), re.M)}
    text = (ROOT / "README.md").read_text()
    assert named and {name for name in named if name not in text} == set()


def test_code_runs():
    for code in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S):
        exec(code, {})


def test_the_answer_it_opens_with_is_the_answer():
    """The first block of code, evaluated, prints the block beneath it; the terminal prints the same."""
    text = (ROOT / "README.md").read_text()
    code, shown = re.search(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", text, re.S).groups()
    *before, last = code.strip().splitlines()
    names = {}
    exec("\n".join(before), names)
    printed = "".join(f"    {line}\n" for line in str(eval(last, names)).splitlines())
    assert shown == printed
    line = shlex.split(re.search(r"^    tokenprice (ask .*)$", text, re.M)[1])
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(line) == 0
    assert out.getvalue() == printed.replace("    ", "")


def test_its_commands_answer(capsys):
    lines = re.findall(r"^    tokenprice (.*)$", (ROOT / "README.md").read_text(), re.M)
    assert len(lines) >= 2
    for line in lines:
        assert main(shlex.split(line)) == 0, line


def test_picture_is_what_the_library_draws():
    spec = importlib.util.spec_from_file_location("picture", ROOT / "book" / "site" / "tools" / "picture.py")
    picture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(picture)
    assert picture.drawn() == picture.PICTURE.read_text("utf-8"), "run make refresh"
