"""What the book's own Sphinx extensions do to a page."""

import runpy
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parents[1]
READER = runpy.run_path(str(ROOT / "book" / "_ext" / "reader.py"))
PAPER = runpy.run_path(str(ROOT / "book" / "_ext" / "paper.py"))


def test_explorers_share_one_runtime():
    from inferlib.papers.erdil2025 import explorers

    shown = [explorers.one_token()._repr_html_(), explorers.fastest_token()._repr_html_()]
    page = READER["once"]("".join(shown))
    assert page.count("window.inferlibExplorer = ") == 1 and page.count("<style>") == 1
    assert page.count('class="inferlib-explorer"') == page.count("inferlibExplorer(Object") == 2
    assert page.index("window.inferlibExplorer = ") < page.index("inferlibExplorer(Object")


def test_a_figure_can_be_saved():
    figure = '<figure><img alt="x" src="../_images/a.svg"/><figcaption>One.</figcaption></figure>'
    page = READER["downloads"](figure + "<figure><figcaption>No picture.</figcaption></figure>")
    assert page.count('<a class="save" href="../_images/a.svg" download>') == 1


def test_a_drawing_keeps_its_scales_and_loses_digits():
    drawn = '<g transform="scale(0.015625)"><path id="a" d="M 10.123456 -0.004\nL 3 4.5"/></g>'
    assert READER["lighter"](drawn) == (
        '<g transform="scale(0.015625)"><path id="a" d="M 10.12 -0.00 L 3 4.5"/></g>'
    )


def test_launch_buttons_wait_for_an_address():
    for address, there in (("", False), ("https://example.org/book", True)):
        options = {"repository_url": address, "launch_buttons": {"colab_url": "x"}}
        READER["launch"](None, SimpleNamespace(html_theme_options=options))
        assert ("launch_buttons" in options) == there


def test_the_stamp_names_a_commit_or_says_that_there_is_none():
    text = READER["stamp"](ROOT / "book" / "bibliography.md")
    assert "commit" in text
    assert READER["git"]("no-such-command") == ""


def test_an_epub_gets_xml_without_dead_controls():
    from xml.etree import ElementTree

    from inferlib import calculator, ledger

    for made in (calculator.explorer(), ledger.card("erdil2025", "Table 1")):
        text = PAPER["still"](made._repr_html_())
        ElementTree.fromstring(f"<div>{text}</div>")
        assert not any(part in text for part in ("<input", "<script", "<button", "popover"))
    assert "5.19" in PAPER["still"](calculator.explorer()._repr_html_())
    assert "234.3" in PAPER["still"](ledger.card("erdil2025", "Table 1")._repr_html_())
