"""The stored state of the chapters.

A chapter's own test runs it again and compares its outputs, whatever they are. What they may be is checked here.
"""

import copy
import re

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup
from prose import BOOK, CHAPTERS, long_numbers, notebook, said

from book.site.tools import refresh
from inferlib import papers

RUN_REFRESH = "run make refresh"


@pytest.fixture(params=CHAPTERS)
def nb(request):
    return notebook(request.param)


def code_cells(nb):
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def outputs(nb):
    return [(cell, output) for cell in code_cells(nb) for output in cell.outputs]


def test_every_cell_was_run_in_order(nb):
    nbformat.validate(nb)
    counts = [cell.execution_count for cell in code_cells(nb)]
    assert counts == list(range(1, len(counts) + 1)), RUN_REFRESH


def test_a_chapter_is_stored_as_refresh_leaves_it(nb):
    """No metadata of an editor, no state of a widget, no address of an object; solutions are folded."""
    clean = copy.deepcopy(nb)
    refresh.clean(clean)
    assert clean == nb, RUN_REFRESH


def test_no_cell_failed_or_complained(nb):
    for cell, output in outputs(nb):
        assert output.output_type != "error", cell.source
        assert output.get("name") != "stderr", cell.source


def test_numbers_have_no_more_digits_than_any_cpu_agrees_on(nb):
    faults = [(long, cell.source) for cell, output in outputs(nb) if (long := long_numbers(output))]
    assert not faults, f"show six digits or fewer: {faults}"


def test_dollars_are_no_mathematics_in_jupyterlab(nb):
    """It typesets what stands between two of them, but in a class that says no; in Markdown before all else."""
    for _, output in outputs(nb):
        data = output.get("data", {})
        page = BeautifulSoup(data.get("text/html", ""), "html.parser")
        for left_out in page.select("script, style, pre, code, .mathjax_ignore"):
            left_out.decompose()
        assert not page.find_all(string=re.compile(r"\$[^$]*\$"))
        assert not re.search(r"(?<![\\$])\$\d[\d.,]*(?= [a-z]|\s|$)", data.get("text/markdown", ""))


def test_no_cell_is_expected_to_fail(nb):
    for cell in code_cells(nb):
        assert "raises-exception" not in cell.metadata.get("tags", ()), cell.source


def test_figures_are_svg_with_a_description(nb):
    for cell, output in outputs(nb):
        kinds = {mime.split("/")[1] for mime in output.get("data", {})}
        # what the page can show
        assert kinds <= {"plain", "html", "markdown", "latex", "svg+xml"}, cell.source
        if "svg+xml" in kinds:
            alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
            assert len(alt) > 20, f"figure without alt text in the cell's metadata: {cell.source}"


def test_cells_are_short_and_hold_no_model(nb):
    for cell in code_cells(nb):
        lines = [line.strip() for line in cell.source.splitlines()]
        code = [line for line in lines if line and not line.startswith("#")]
        assert code, "empty code cell"
        assert len(code) <= 12, f"{len(code)} lines of code: {cell.source}"
        assert not any(re.match(r"(async def|def|class)\b", line) for line in code), cell.source


def listed():
    toc = yaml.safe_load((BOOK.parent / "_toc.yml").read_text("utf-8"))
    chapters = [chapter for part in toc["parts"] for chapter in part["chapters"]]
    pages = [page for chapter in chapters for page in (chapter, *chapter.get("sections", ()))]
    return [toc["root"], *(page["file"] for page in pages)]


@pytest.mark.parametrize("source", papers.sources())
def test_the_record_of_a_source_is_a_section_of_its_story(source):
    at = listed().index(f"book/{source}_record")
    assert listed()[at - 1].startswith(f"book/{source}")


def test_contents_list_every_chapter_and_nothing_else():
    present = {*CHAPTERS, *(path.stem for path in BOOK.glob("*.md"))}
    assert sorted(listed()) == sorted(f"book/{name}" for name in present - {"chapters"})


def test_a_list_in_the_order_of_the_contents_leads_to_every_chapter():
    text = (BOOK / "chapters.md").read_text("utf-8")
    assert [f"book/{stem}" for stem in re.findall(r"\]\((\w+)\.", text)] == listed()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_link_to_a_place_names_its_cell(chapter):
    """So JupyterLab finds it; that the page has a place of that name is for the build to say."""
    for stem, place in re.findall(r"\]\((?:(\w+)\.ipynb)?#([^)\s]*)", said(chapter)):
        assert place in {f"cell-id={cell.id}" for cell in notebook(stem or chapter).cells}
