"""Effects of the book's own Sphinx extensions on a page."""

import re
import tomllib
from pathlib import Path

from facts import from_table
from prose import notebook

from book import measured
from book.principles.explorers import one_step
from book.site.ext import maths, search
from book.site.tools import links
from inferlib import papers

ROOT = Path(__file__).parents[1]
CATALOG = ROOT / "inferlib" / "catalog"
REFERENCES = (ROOT / "book" / "references.bib").read_text("utf-8")


def test_the_build_checks_the_state_of_a_box_that_a_link_sets(tmp_path):
    box = one_step()._repr_html_()
    slug = re.search(r'data-slug="([^"]*)"', box)[1]
    wrong = "batch=9000", "batch=x", "chip=H20"
    for state in ("batch=8&amp;chip=H200", *wrong, "speed=1"):
        (tmp_path / f"{state}.html").write_text(f'{box}<a href="#{slug}?{state}">x</a>')
    (tmp_path / "z.html").write_text(f'{box}<a href="#box?batch=8">x</a>')
    faults = [fault for _, _, fault in links.check(tmp_path)]
    assert faults == [f"the box has no {state}" for state in (*wrong, "speed=1")] + ["no such anchor"]


def test_whose_the_numbers_are_is_in_the_bibliography_and_every_entry_is_cited():
    """Every source, publication of a measurement and preprint behind a model, and for every chip one of its pages."""
    models = (CATALOG / "models.toml").read_text("utf-8")
    numbers = re.findall(r"arxiv.org/abs/([\d.]+\d)", models)
    missing = {text for text in (*measured.load().url, *numbers) if text not in REFERENCES}
    for name, chip in tomllib.loads((CATALOG / "chips.toml").read_text("utf-8")).items():
        pages = chip.get("pages", {}).values()
        if not any(page.removeprefix("https://arxiv.org/abs/") in REFERENCES for page in pages):
            missing.add(name)
    assert not missing, "has no page in book/references.bib"
    # every entry is cited where it is listed
    entries = re.findall(r"^@\w+\{([^,]+),", REFERENCES, re.M)
    page = (ROOT / "book" / "bibliography.md").read_text("utf-8")
    cited = {key for keys in re.findall(r"\{cite:[tp]\}`([^`]+)`", page) for key in keys.split(",")}
    assert len(entries) == len(cited) and cited == set(entries) >= set(papers.sources())


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


@from_table
def test_a_search_holds_each_model_and_chip(name, words):
    told = {title: text for (title, _), text in search.listed()}
    assert words in told[f"Catalogue, {name}"]
