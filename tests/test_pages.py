"""What the book's own Sphinx extensions do to a page."""

import re
import runpy
import tomllib
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parents[1]
READER = runpy.run_path(str(ROOT / "book" / "_ext" / "reader.py"))
PAPER = runpy.run_path(str(ROOT / "book" / "_ext" / "paper.py"))
FORMATS = runpy.run_path(str(ROOT / "book" / "_tools" / "formats.py"))


def test_explorers_share_one_runtime():
    from book.erdil2025 import explorers

    shown = [explorers.one_token()._repr_html_(), explorers.fastest_token()._repr_html_()]
    page = READER["once"]("".join(shown))
    assert page.count("window.inferlibExplorer = ") == 1 and page.count("<style>") == 1
    assert page.count('class="inferlib-explorer"') == page.count("inferlibExplorer(Object") == 2
    assert page.index("window.inferlibExplorer = ") < page.index("inferlibExplorer(Object")


def test_a_figure_can_be_saved_with_its_data(tmp_path):
    figure = (
        '<figure id="fig-{0}"><img alt="x" src="../_images/{0}.svg"/><figcaption>One.</figcaption></figure>'
    )
    others = figure.format("b") + '<figure id="fig-c"><figcaption>No picture.</figcaption></figure>'
    page = READER["downloads"](figure.format("a") + others, {"fig-b": "x,y\n1,2\n"}, tmp_path / "_data")
    assert page.count('<a class="save" href="../_images/a.svg" download>SVG</a>') == 1
    assert page.count('<a class="save" href="../_data/fig-b.csv" download>CSV</a>') == 1
    assert page.count("<a ") == 3 and [file.name for file in (tmp_path / "_data").iterdir()] == ["fig-b.csv"]


def test_figures_bring_data():
    """All figures but drawings; what is drawn is what is told."""
    import matplotlib.pyplot as plt

    from inferlib.plotted import as_csv

    figure, (left, right) = plt.subplots(1, 2)
    left.plot([1, 2], [3, 0.123456789], label="law")
    left.axvline(5)
    left.set(title="first", xlabel="batch", ylabel="ms")
    right.barh([-0.2, 0.8], [7, 8], label="there")
    right.set_yticks([0, 1], ["A", "B"])
    text = as_csv(figure)
    assert text.splitlines() == [
        "panel,series,batch,ms", "first,law,1,3", "first,law,2,0.123457",
        "panel 2,there,7,A", "panel 2,there,8,B",
    ]  # fmt: skip
    right.axis("off"), left.axis("off")
    assert as_csv(figure) is None
    plt.close(figure)


def test_no_head_of_a_table_is_empty():
    """Tables as pandas writes them, with names of the index and of the columns, and as the book does."""
    import pandas as pd
    from bs4 import BeautifulSoup

    from inferlib import style

    index = pd.MultiIndex.from_tuples([("Table 1", "A"), ("Table 1", "B")], names=["artefact", "row"])
    frame = pd.DataFrame({"printed": [1.0, 2.0], "here": [1.0, 2.1]}, index=index)
    plain = pd.DataFrame({"ms": [1.0]}, index=["weights"])
    tables = [frame.to_html(), plain.to_html(), frame.unstack().to_html()]
    tables.append(style.table(pd.DataFrame({"": ["a"], " ": ["b"], "printed": [1.0]}))._repr_html_())
    for table in tables:
        cells = [
            [len(row.select("td, th")) for row in BeautifulSoup(text, "html.parser").select("tr")]
            for text in (table, READER["headed"](table))
        ]
        assert re.search(r"<th[^>]*>\s*</th>", table)
        assert not re.search(r"<th[^>]*>\s*</th>", READER["headed"](table))
        assert cells[0] == cells[1]
    assert READER["headed"](plain.to_html()).count('<span class="visually-hidden">row</span>') == 1
    assert READER["headed"](tables[3]).count("visually-hidden") == 2


def test_a_drawing_keeps_its_scales_and_loses_digits():
    drawn = '<g transform="scale(0.015625)"><path id="a" d="M 10.123456 -0.004\nL 3 4.5"/></g>'
    assert READER["lighter"](drawn) == (
        '<g transform="scale(0.015625)"><path id="a" d="M 10.12 -0.00 L 3 4.5"/></g>'
    )


def test_figures_wait_for_the_reader_in_a_place_kept_for_them():
    page = '<img alt="x" src="../_images/a.svg" /><img src="b.png"/>'
    finished = READER["patient"](page, {"a.svg": (640, 380)})
    assert finished == (
        '<img loading="lazy" width="640" height="380" alt="x" src="../_images/a.svg" /><img src="b.png"/>'
    )
    assert READER["patient"](finished, {"a.svg": (640, 380)}) == finished


def test_launch_buttons_wait_for_an_address():
    for address, there in (("", False), ("https://example.org/book", True)):
        options = {"repository_url": address, "launch_buttons": {"colab_url": "x"}}
        READER["launch"](None, SimpleNamespace(html_theme_options=options))
        assert ("launch_buttons" in options) == there


def test_the_stamp_names_a_commit_or_says_that_there_is_none():
    text = READER["stamp"](ROOT / "book" / "bibliography.md")
    assert "commit" in text
    assert READER["git"]("no-such-command") == ""


def test_whose_the_numbers_are_is_in_the_bibliography():
    """Every publication of a measurement, every preprint behind a model, and for every chip one of its pages."""
    from inferlib import measured

    bibliography = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    missing = {url for url in measured.load().url if url not in bibliography}
    models = (ROOT / "inferlib" / "catalog" / "models.toml").read_text(encoding="utf-8")
    missing |= {
        number for number in re.findall(r"arxiv.org/abs/([\d.]+\d)", models) if number not in bibliography
    }
    chips = tomllib.loads((ROOT / "inferlib" / "catalog" / "chips.toml").read_text(encoding="utf-8"))
    for name, chip in chips.items():
        pages = chip.get("pages", {}).values()
        if not any(page.removeprefix("https://arxiv.org/abs/") in bibliography for page in pages):
            missing.add(name)
    assert not missing


def test_every_entry_of_the_bibliography_is_cited_where_it_is_listed():
    entries = re.findall(
        r"^@\w+\{([^,]+),", (ROOT / "book" / "references.bib").read_text(encoding="utf-8"), re.M
    )
    page = (ROOT / "book" / "bibliography.md").read_text(encoding="utf-8")
    cited = {key for keys in re.findall(r"\{cite:[tp]\}`([^`]+)`", page) for key in keys.split(",")}
    assert len(entries) == len(set(entries)) >= 40 and cited == set(entries)


def test_an_epub_keeps_what_needs_no_script_and_its_own_links():
    from book.quiz import quiz

    paper = runpy.run_path(str(ROOT / "book" / "_ext" / "paper.py"))
    page = paper["still"](quiz("energy")._repr_html_())
    assert "<script" not in page and "<style" not in page
    assert page.count("<details>") == 2 and page.count('<ol class="options"') == 1
    assert 'href="price.xhtml#energy"' in page and ".html" not in page
    assert 'href="https://a.org/b.html"' in paper["still"]('<a href="https://a.org/b.html">b</a>')


def test_the_stories_alone_are_the_stories_and_what_they_cite(tmp_path, monkeypatch):
    import yaml

    monkeypatch.chdir(ROOT)
    FORMATS["stories"](tmp_path)
    toc, config = (
        yaml.safe_load((tmp_path / name).read_text("utf-8")) for name in ("_toc.yml", "_config.yml")
    )
    files = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    assert (
        toc["root"] == "book/introduction"
        and files[0] == "book/principles"
        and files[-2:]
        == [
            "book/price",
            "book/bibliography",
        ]
    )
    assert not any(name.endswith(("_record", "calculator", "scorecard")) for name in files)
    assert all(Path(folder).is_absolute() for folder in config["sphinx"]["local_extensions"].values())


def test_on_paper_no_link_leads_to_what_is_not_there():
    from docutils import nodes
    from docutils.utils import new_document

    page = new_document("page")
    dead = nodes.reference("", "", nodes.inline("", "the record", classes=["xref", "myst"]), refuri="#there")
    live = nodes.reference("", "", nodes.inline("", "a figure", classes=["std", "std-ref"]), refuri="#here")
    told = '<div class="session"><a href="../slides/x.html#1">One</a></div>'
    page += nodes.paragraph("", "", dead, live)
    page += nodes.raw("", told, format="html")
    PAPER["settle"](SimpleNamespace(builder=SimpleNamespace(name="html")), page, "page")
    assert len(list(page.findall(nodes.reference))) == 2
    PAPER["settle"](SimpleNamespace(builder=SimpleNamespace(name="singlehtml")), page, "page")
    assert [link["refuri"] for link in page.findall(nodes.reference)] == ["#here"]
    assert page.astext().count("the record") == 1
    assert page[1].astext() == '<div class="session">One</div>'


def test_an_epub_gets_xml_without_dead_controls():
    from xml.etree import ElementTree

    from book import card, opening

    for made, number in ((opening.one_token(), "5.19"), (card("erdil2025", "Table 1"), "234.3")):
        text = PAPER["still"](made._repr_html_())
        ElementTree.fromstring(f"<div>{text}</div>")
        assert number in text
        assert not any(part in text for part in ("<input", "<script", "<button", "popover"))
