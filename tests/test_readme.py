"""The README tells the truth: its commands exist, its links lead somewhere, its code runs, its picture is fresh."""

import ast
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
README, INSTRUMENT, CONTRIBUTING = PAGES = [
    (ROOT / name).read_text() for name in ("README.md", "tokenprice/README.md", "CONTRIBUTING.md")
]
EACH = pytest.mark.parametrize("text", PAGES, ids=["readme", "instrument", "contributing"])


@EACH
def test_commands_exist(text):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    used = set(re.findall(r"(?:^    |`)make ([a-z]+)", text, re.M))
    assert used and used <= targets


@EACH
def test_links_and_paths_lead_somewhere(text):
    folder = ROOT / "tokenprice" if text == INSTRUMENT else ROOT
    prose = re.sub(r"`[^`]*`", "", text)
    links = [
        link for link in re.findall(r"\]\(([^)]+)\)", prose) if "://" not in link and not link.startswith("#")
    ]
    paths = [path for path in re.findall(r"`((?:inferlib|tokenprice|book|\.ci)/[\w./]*)`", text)]
    missing = [path for path in links if not (folder / path).exists()]
    assert missing + [path for path in paths if not (ROOT / path).exists()] == []


def test_every_licence_of_the_data_is_named():
    kept = [*(ROOT / "book/measured").rglob("*.toml"), *(ROOT / "tokenprice").glob("*.toml")]
    named = {name for path in kept for name in re.findall(r'^licence = "(.*)"', path.read_text(), re.M)}
    assert named and {name for name in named if name not in README} == set()


@pytest.mark.parametrize("text", PAGES[:2], ids=["readme", "instrument"])
def test_code_runs_and_prints_what_stands_below_it(text):
    for code, shown in re.findall(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)*)", text, re.S):
        *before, last = ast.parse(code).body
        exec(compile(ast.Module(before, []), "README", "exec"), names := {})
        answer = eval(ast.unparse(last), names)
        assert not shown or textwrap.dedent(shown) == f"{answer}\n"


def test_the_terminal_prints_the_answer_that_the_instrument_opens_with():
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(shlex.split(re.search(r"^    tokenprice (ask .*)$", INSTRUMENT, re.M)[1])) == 0
    assert textwrap.indent(out.getvalue(), "    ") in INSTRUMENT


def test_its_commands_answer(capsys):
    lines = {line for text in PAGES[:2] for line in re.findall(r"^    tokenprice (.*)$", text, re.M)}
    assert len(lines) >= 2
    for line in lines:
        assert main(shlex.split(line)) == 0, line


def test_picture_is_what_the_library_draws():
    assert readme_figure.drawn() == readme_figure.PICTURE.read_text("utf-8"), "run make refresh"
