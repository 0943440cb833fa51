"""What the book's own Sphinx extensions do to a page."""

import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pandas as pd
import pytest
import xarray as xr
import yaml
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.utils import new_document
from prose import notebook
from sphinx import addnodes

from book import card, measured, style
from book.papers.steinhardt2022.explorers import multiply
from book.principles import introduction
from book.principles.explorers import one_step
from book.site.ext import maths, page_transforms, print_and_epub, search
from book.site.tools import formats, links
from book.teaching.problems import sheet
from inferlib import axis

ROOT = Path(__file__).parents[1]
CATALOG = ROOT / "inferlib" / "catalog"
REFERENCES = (ROOT / "book" / "references.bib").read_text("utf-8")


def test_explorers_share_one_runtime():
    shown = [multiply()._repr_html_(), one_step()._repr_html_()]
    page = page_transforms.once("".join(shown))
    assert page.count("window.inferlibExplorer=") == 1 and page.count("<style>") == 1
    assert page.count('class="inferlib-explorer"') == page.count("inferlibExplorer(Object") == 2
    assert page.index("window.inferlibExplorer=") < page.index("inferlibExplorer(Object")


CELL = (
    f'{page_transforms.CODE}\n<summary aria-label="Toggle hidden content"><p>‹›</p></summary>x = 1</details>'
)
FOLDED = page_transforms.switched("<h1>A</h1>" + 2 * CELL)


def test_a_page_with_folded_code_has_one_switch():
    assert FOLDED.count('type="checkbox"') == 1


def test_folded_code_is_named_for_who_listens():
    assert FOLDED.count('aria-label="Code"') == 2


def test_a_page_without_code_has_no_switch():
    assert page_transforms.switched("<h1>A</h1>") == "<h1>A</h1>"


def test_a_figure_can_be_saved_waits_in_its_place_and_loses_digits():
    figure = '<figure id="a"><img alt="x" src="../_images/a.svg"/><figcaption>One.</figcaption></figure>'
    page = page_transforms.downloads(figure + '<figure id="c"><figcaption>No picture.</figcaption></figure>')
    assert page.count("<a ") == page.count('<a class="save" href="../_images/a.svg" download>SVG</a>') == 1
    # it waits for the reader in a place kept for it
    page = '<img alt="x" src="../_images/a.svg" /><img src="b.png"/>'
    finished = page_transforms.patient(page, {"a.svg": (640, 380)})
    assert finished == page.replace(
        "<img alt", '<img loading="lazy" data-wide="" width="640" height="380" alt'
    )
    assert page_transforms.patient(finished, {"a.svg": (640, 380)}) == finished
    # its drawing keeps its scales
    drawn = '<g transform="scale(0.015625)"><path id="a" d="{}"/></g>'
    before, after = "M 10.123456 -0.004\nL 3 4.5", "M 10.12 -0.00 L 3 4.5"
    assert page_transforms.lighter(drawn.format(before)) == drawn.format(after)


def test_the_build_checks_the_state_of_a_box_that_a_link_sets(tmp_path):
    box = one_step()._repr_html_()
    slug = re.search(r'data-slug="([^"]*)"', box)[1]
    wrong = "batch=9000", "batch=x", "chip=H20"
    for state in ("batch=8&amp;chip=H200", *wrong, "speed=1"):
        (tmp_path / f"{state}.html").write_text(f'{box}<a href="#{slug}?{state}">x</a>')
    (tmp_path / "z.html").write_text(f'{box}<a href="#box?batch=8">x</a>')
    faults = [fault for _, _, fault in links.check(tmp_path)]
    assert faults == [f"the box has no {state}" for state in (*wrong, "speed=1")] + ["no such anchor"]


def test_a_curve_follows_what_it_is_given():
    """t = n/4 + 1/n is least at 2, where it is 1; marks and names are read off the values."""
    n = axis("chips", 0.5, 8, points=5)
    reading, waiting = 1e-3 / n, 1e-3 * n / 4
    both = xr.Dataset({"weights": reading, "waiting": waiting, "total": reading + waiting})
    ax = style.curve(both, mark={"equal": (2, 5e-4)}, unit="ms")
    first = {line.get_label(): line.get_ydata()[0] for line in ax.lines[:3]}
    assert first == {"weights": 2, "waiting": 0.125, "total": 2.125}
    assert [text.get_text() for text in ax.texts] == ["equal", "weights", "waiting", "total"]
    assert ax.get_xlabel() == "chips" and ax.lines[0].get_color() == style.TERMS["weights"]
    total = both["total"]
    assert style.curve(total, mark=total.idxmin(), unit="ms").texts[0].get_text() == "2 chips: 1 ms"


def test_no_head_of_a_table_is_empty():
    """Tables as pandas writes them, with names of the index and of the columns."""
    index = pd.MultiIndex.from_tuples([("Table 1", "A"), ("Table 1", "B")], names=["artefact", "row"])
    frame = pd.DataFrame({"printed": [1.0, 2.0], "here": [1.0, 2.1]}, index=index)
    plain = pd.DataFrame({"ms": [1.0]}, index=["weights"])
    tables = [frame.to_html(), plain.to_html(), frame.unstack().to_html()]

    def cells(text):
        return [len(row.select("td, th")) for row in BeautifulSoup(text, "html.parser").select("tr")]

    empty = re.compile(r"<th[^>]*>\s*</th>")
    for table in tables:
        headed = page_transforms.headed(table)
        assert empty.search(table) and not empty.search(headed) and cells(table) == cells(headed)
    assert page_transforms.headed(plain.to_html()).count('<span class="visually-hidden">row</span>') == 1


def test_whose_the_numbers_are_is_in_the_bibliography_and_every_entry_is_cited():
    """Every publication of a measurement, every preprint behind a model, and for every chip one of its pages."""
    models = (CATALOG / "models.toml").read_text("utf-8")
    numbers = re.findall(r"arxiv.org/abs/([\d.]+\d)", models)
    missing = {text for text in (*measured.load().url, *numbers) if text not in REFERENCES}
    for name, chip in tomllib.loads((CATALOG / "chips.toml").read_text("utf-8")).items():
        pages = chip.get("pages", {}).values()
        if not any(page.removeprefix("https://arxiv.org/abs/") in REFERENCES for page in pages):
            missing.add(name)
    assert not missing
    # every entry is cited where it is listed
    entries = re.findall(r"^@\w+\{([^,]+),", REFERENCES, re.M)
    page = (ROOT / "book" / "bibliography.md").read_text("utf-8")
    cited = {key for keys in re.findall(r"\{cite:[tp]\}`([^`]+)`", page) for key in keys.split(",")}
    assert len(entries) == len(set(entries)) >= 40 and cited == set(entries)


def test_an_epub_keeps_what_needs_no_script_and_its_own_links():
    """XML, without dead controls."""
    page = print_and_epub.still(sheet("Ada", "session-5")._repr_html_())
    assert "<script" not in page and "<style" not in page
    assert page.count("<details>") == 4 and page.count('<ol class="options"') == 2
    assert 'href="price.xhtml#rent"' in page and ".html" not in page
    assert 'href="https://a.org/b.html"' in print_and_epub.still('<a href="https://a.org/b.html">b</a>')
    for made, number in ((introduction.one_token(), "5.19"), (card("erdil2025", "Table 1"), "234.3")):
        text = print_and_epub.still(made._repr_html_())
        ElementTree.fromstring(f"<div>{text}</div>")
        assert number in text
        assert not any(part in text for part in ("<input", "<script", "<button", "popover"))


@pytest.mark.parametrize(
    "name, text, wanted",
    [
        ("a.svg", '<!DOCTYPE svg PUBLIC "x" "y.dtd"><svg/>', "<svg/>"),
        ("a.svg", '<path id="m" class="c"/>', '<path d="" id="m" class="c"/>'),
        (
            "a.xhtml",
            "<summary><p>more</p></summary><p>text</p>",
            "<summary><span>more</span></summary><p>text</p>",
        ),
        ("toc.ncx", '<meta name="dtb:uid" content="book"/>', '<meta name="dtb:uid" content="urn:uuid:1"/>'),
        ("c.opf", '<item href="p.xhtml" />', '<item href="p.xhtml"  properties="mathml"/>'),
        ("c.opf", '<item href="_static/unused.css" />', ""),
    ],
)
def test_a_file_of_the_epub_is_what_its_standard_allows(name, text, wanted):
    texts = {"p.xhtml": b"<math/>", "content.opf": b'<dc:identifier id="book">urn:uuid:1</dc:identifier>'}
    assert formats.valid(name, text, texts) == wanted


@pytest.mark.parametrize(
    "text, wanted",
    [
        ('<a href="#ask?batch=8">eight</a>', "eight"),
        ('<svg viewBox="0 0 1 1"><a href="https://a.org">dot</a></svg>', "<title>dot</title>"),
        ('<svg viewBox="0 0 1 1"><g></g></svg>', 'viewBox="0 0 1 1"'),
        ('<th halign="left">a</th>', "<th>a</th>"),
    ],
)
def test_html_of_a_cell_is_what_an_epub_reader_takes(text, wanted):
    assert wanted in print_and_epub.still(text) and "halign" not in print_and_epub.still(text)


def test_the_stories_alone_are_the_stories_and_what_they_cite(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    formats.stories(tmp_path)
    texts = ((tmp_path / name).read_text("utf-8") for name in ("_toc.yml", "_config.yml"))
    toc, config = map(yaml.safe_load, texts)
    files = [toc["root"], *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"])]
    assert files[:2] == ["book/introduction", "book/principles"]
    assert files[-2:] == ["book/price", "book/bibliography"]
    assert not any(name.endswith(("_record", "calculator", "scorecard")) for name in files)
    assert all(Path(folder).is_absolute() for folder in config["sphinx"]["local_extensions"].values())


def test_a_plain_link_to_a_figure_or_a_source_is_numbered_and_cited():
    """As Sphinx and its bibliography resolve them: what a plain notebook reads is replaced."""
    page = new_document("page")
    page.settings.env = SimpleNamespace(docname="book/page")
    linked = ("the figure", "fig-a", ""), ("the record", "er-top", ""), ("16 GPUs", "box", "n_gpu=16")
    for words, at, title in linked:
        page += nodes.reference("", words, refuri=f"#cell-id={at}", reftitle=title, id_link=True)
    for words in ("Erdil (2025)", "(Erdil 2025)"):
        source = dict(reftarget="book/bibliography", reftargetid="erdil2025", reftype="myst")
        page += addnodes.pending_xref("", nodes.inline("", words), refdomain="doc", **source)
    there = dict(reftarget="book/x", reftargetid="cell-id=x-y", reftype="myst")
    page += addnodes.pending_xref("", nodes.inline("", "there"), refdomain="doc", **there)
    page_transforms.Links(page).apply()
    told = [(x["refdomain"], x["reftype"], x["reftarget"]) for x in page.findall(addnodes.pending_xref)]
    assert told == [("std", "numref", "fig-a"), ("cite", "t", "erdil2025"), ("cite", "p", "erdil2025")]
    left = {link["refuri"]: link.get("id_link") for link in page.findall(nodes.reference)}
    assert left == {
        "#er-top": True,
        "#box?n_gpu=16": None,
        "#x-y": True,
    }  # MyST's, the box's, and another file's


def test_on_paper_no_link_leads_to_what_is_not_there():
    page = new_document("page")
    dead = nodes.reference("", "", nodes.inline("", "the record", classes=["xref", "myst"]), refuri="#there")
    live = nodes.reference("", "", nodes.inline("", "a figure", classes=["std", "std-ref"]), refuri="#here")
    page += nodes.paragraph("", "", dead, live)
    page += nodes.raw("", '<a href="../slides/x.html#1">One</a>', format="html")
    for builder, left in (("html", ["#there", "#here"]), ("singlehtml", ["#here"])):
        print_and_epub.settle(SimpleNamespace(builder=SimpleNamespace(name=builder)), page, "page")
        assert [link["refuri"] for link in page.findall(nodes.reference)] == left
    assert page.astext().count("the record") == 1
    assert page[1].astext() == "<a>One</a>"


def test_equations_are_typeset_without_a_script():
    """Lines that stand under each other, cases, roots and brackets; nothing of LaTeX is left."""
    typeset = maths.typeset
    lines = typeset("\\begin{gathered} a = b \\\\ c = \\frac{d}{2} \\end{gathered}", True)
    assert lines.count("<mtr>") == 2 and 'displaystyle="true"' in lines
    cases = typeset("\\begin{cases} 1 & \\text{for}\\: x > 0 \\\\0 & \\text{otherwise} \\end{cases}")
    assert cases.count("<mtr>") == 2 and cases.count("<mtd") == 4
    bracket = "<mrow><mo>(</mo><mi>x</mi><mo>)</mo></mrow>"
    assert typeset("\\left(x\\right)") == f'<math display="inline">{bracket}</math>'
    outputs = (output for cell in notebook("equations").cells for output in cell.get("outputs", ()))
    shown = "".join(output.data.get("text/markdown", "") for output in outputs)
    formulas = re.findall(r"(?s)\$\$\n(.*?)\n\$\$", shown)
    assert len(formulas) == shown.count('class="entry"') > 300
    for formula in formulas:
        assert "\\" not in typeset(formula, True), formula


def test_a_search_leads_to_sections_entries_and_words():
    page = """<article><section id="top"><h1>Notation<a class="headerlink" href="#top">#</a></h1><p>About.</p>
    <section id="one"><h2>Erdil</h2><script>var x = 1;</script><table><td>a</td><td>114 µs</td></table>
    <div class="entry" id="eq-1"><p><strong>Equation (1)</strong> time, function: long</p><math><mi>t</mi></math></div>
    <dl><dt id="word-slo">SLO</dt><dd>a promise</dd></dl><section id="a-content">x</section>
    </section></article>"""
    rows = search.sections("n.html", page)
    assert [tuple(place) for place, _ in rows] == [
        ("Notation", "n.html#top"),
        ("Notation · Erdil", "n.html#one"),
        ("Notation · Erdil: Equation (1) time", "n.html#eq-1"),
        ("Notation · Erdil: SLO", "n.html#word-slo"),
    ]
    assert rows[1][1] == "a 114 µs" and rows[3][1].startswith("SLO a promise")


def test_a_search_holds_records_which_stand_under_their_stories():
    listed = (
        '<li class="toctree-l1"><a href="book/a.html"><li class="toctree-l2"><a class="x" href="book/r.html">'
    )
    assert search.pages(listed) == ["book/a.html", "book/r.html"]


def test_a_search_holds_whole_sections():
    page = f"""<article><section id="a"><h1>A</h1><p>{9000 * "word "}end</p></section></article>"""
    assert search.sections("n.html", page)[0][1].endswith("word end")


@pytest.mark.parametrize(("name", "words"), [
    ("H200", "memory bandwidth, TB/s: 4.8"), ("DeepSeek V3", "KiB of cache per token: 68.6"),
    ("H800", "price, dollars an hour: none"), ("Llama 3 70B", "Llama 3.3 70B"),
])  # fmt: skip
def test_a_search_holds_each_model_and_chip(name, words):
    told = {title: text for (title, _), text in search.listed()}
    assert words in told[f"Catalogue, {name}"]


def test_what_a_cell_prints_under_a_heading_is_a_section():
    document = new_document("x")
    chapter = nodes.section("", nodes.title("", "Equations"))
    document += chapter
    made = []
    for name in ("Pope", "Erdil"):
        parts = nodes.rubric("", name, level=2, ids=[name.lower()]), nodes.paragraph("", "!")
        made.append(nodes.container("", nodes.container("", *parts, mime_type="text/markdown")))
    chapter += nodes.container("", nodes.container("", *made, classes=["cell_output"]), classes=["cell"])
    chapter += nodes.section("", nodes.title("", "Last"))
    page_transforms.Headings(document).apply()
    sections = list(chapter.findall(nodes.section))
    assert [one.next_node(nodes.title).astext() for one in sections] == ["Equations", "Pope", "Erdil", "Last"]
    assert [one["ids"] for one in sections[1:3]] == [["pope"], ["erdil"]]


def test_a_figure_outside_the_chapters_bears_the_initial_of_its_page_or_the_number_of_its_story():
    counted = {"book/scorecard": {"b": (46,), "a": (45,)}, "book/pope2022_record": {"c": (9,)}}
    env = SimpleNamespace(
        toc_secnumbers={"book/pope2022_record": {"": (3, 12)}}, config=SimpleNamespace(root_doc="book/introduction"),
        toc_fignumbers={page: {"figure": figures} for page, figures in counted.items()},
    )  # fmt: skip
    page_transforms.records(None, env)
    assert counted == {
        "book/scorecard": {"a": ("S", 1), "b": ("S", 2)},
        "book/pope2022_record": {"c": ("R3", 1)},
    }
