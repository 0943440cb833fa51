"""The README tells the truth: its commands exist, its links lead somewhere, its code runs, its picture is fresh."""

import contextlib
import io
import re
import shlex
import textwrap

import pytest
from prose import BOOK

from book.site.tools import readme_figure
from tokenprice.terminal import main

ROOT = BOOK.parent
README, CONTRIBUTING = ((ROOT / name).read_text() for name in ("README.md", "CONTRIBUTING.md"))
EACH = pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["readme", "contributing"])


@EACH
def test_commands_exist(text):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    used = set(re.findall(r"(?:^    |`)make ([a-z]+)", text, re.M))
    assert used and used <= targets


@EACH
def test_links_and_paths_lead_somewhere(text):
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
    assert named and {name for name in named if name not in README} == set()


def test_code_runs():
    for code in re.findall(r"```python\n(.*?)```", README, re.S):
        exec(code, {})


def test_the_answer_it_opens_with_is_the_answer():
    """The first block of code, evaluated, prints the block beneath it; the terminal prints the same."""
    code, shown = re.search(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", README, re.S).groups()
    *before, last = code.strip().splitlines()
    names = {}
    exec("\n".join(before), names)
    assert textwrap.dedent(shown) == f"{eval(last, names)}\n"
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(shlex.split(re.search(r"^    tokenprice (ask .*)$", README, re.M)[1])) == 0
    assert out.getvalue() == textwrap.dedent(shown)


def test_its_commands_answer(capsys):
    lines = re.findall(r"^    tokenprice (.*)$", README, re.M)
    assert len(lines) >= 2
    for line in lines:
        assert main(shlex.split(line)) == 0, line


def test_picture_is_what_the_library_draws():
    assert readme_figure.drawn() == readme_figure.PICTURE.read_text("utf-8"), "run make refresh"
