"""No result is typed in prose: it is printed by a cell, glued, or quoted from a source."""

from decimal import Decimal
from pathlib import Path

import pytest
from nbformat import v4
from prose import allowed_numbers, long_numbers, numbers, prose, result_like, same, typed_in, typed_results

ROOT = Path(__file__).parents[1]
CHAPTERS = sorted((ROOT / "book").glob("*.ipynb"))


@pytest.fixture(scope="module")
def allowed():
    return allowed_numbers(ROOT)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_no_result_is_typed(path, allowed):
    faults = typed_in(path, allowed)
    assert not faults, "print or glue these numbers:\n" + "\n".join(faults)


def notebook(markdown, **data):
    """A chapter with one text and one output."""
    output = v4.new_output("execute_result", data=data, execution_count=1)
    return v4.new_notebook(cells=[v4.new_markdown_cell(markdown), v4.new_code_cell("x", outputs=[output])])


@pytest.mark.parametrize(
    ("markdown", "plain"),
    [
        ("A token takes 233.9 ms.", "233.9"),
        ("A token takes 234 ms.", "233.87"),
        ("A token takes $43.1$ ms.", "0.04312 s"),
        ("That is 43,120 of them, or $43{,}120$.", "43120"),
        ("```{admonition} Takeaway\n:class: tip\nIt takes 43.12 ms.\n```", "43.12"),
        (":::{note}\n43.12\n:::", "43.12"),
        ("The chip [reads](https://example.org/1) 43.12.", "np.float64(43.12)"),
        ("Time is 1.5.", "Time: 1.50"),
    ],
)
def test_a_typed_result_is_found(markdown, plain):
    assert typed_results(notebook(markdown, **{"text/plain": plain}))


@pytest.mark.parametrize(
    ("markdown", "plain"),
    [
        ("In 2022 it took 8 chips and 40 % of 1000.", "2022 8 40 1000"),
        ("See section 2.1, sections 2.1 to 2.2.3, Table 2.1 and equations 2.1 and 3.4.", "2.1 2.2 3.4"),
        ("Run `f(43.12)` or {eq}`eq-43.12`.", "43.12"),
        ("```python\nf(43.12)\n```\nand then {glue:text}`x:43.12`", "43.12"),
        ("```{admonition} Note\n```\n~~~\n43.12\n~~~", "43.12"),
        ("[here](https://example.org/43.12) or https://example.org/43.12", "43.12"),
        ("$$\nx\n$$ (eq-43.12)\n\n(label-43.12)=\n", "43.12"),
        ("It takes 43.12 ms on an H100.", "43.2"),
        ("Twice 1.5.", "1.54"),
    ],
)
def test_what_is_no_typed_result_is_let_be(markdown, plain):
    assert not typed_results(notebook(markdown, **{"text/plain": plain}))


def test_captions_and_descriptions_are_prose():
    nb = notebook("", **{"text/plain": "43.12"})
    nb.cells[1].metadata = {"mystnb": {"figure": {"caption": "The knee is at 43.12 chips."}}}
    assert typed_results(nb)


def test_html_shows_its_text_and_not_its_markup():
    page = "<style>.a{width:1.23em}</style><script>x=4.56</script><td data-x='7.89'>43&#46;12</td>"
    assert not typed_results(notebook("1.23, 4.56 and 7.89.", **{"text/html": page}))
    assert typed_results(notebook("It is 43.12.", **{"text/html": page}))


def test_the_sentence_is_named():
    nb = notebook("All is well. It takes 43.12 ms.\n\nNext.", **{"text/plain": "43.12"})
    assert typed_results(nb) == [("43.12", "It takes 43.12 ms.")]


def test_quotes_and_inputs_are_allowed(tmp_path):
    paper = tmp_path / "book" / "p2000"
    paper.mkdir(parents=True)
    room = tmp_path / "inferlib" / "papers" / "p2000"
    room.mkdir(parents=True)
    (paper / "published.csv").write_text('artefact,printed\nTable 1,"48K (43.1)"\nText,"43,120"\n')
    (room / "assumptions.toml").write_text("# not 9.87\n[chip]\nbandwidth = 3.35e12\nmodel = 'Llama 3.1'\n")
    (paper / "errata.toml").write_text("corrected = 7.77\n")
    allowed = allowed_numbers(tmp_path)
    text = "It reads 43.1 and 43,120 at 3.35 TB/s with 3.1, not 9.87 or 7.77."
    nb = notebook(text, **{"text/plain": "43.1 43120 3.35 3.1 9.87 7.77"})
    assert [number for number, _ in typed_results(nb, allowed)] == ["9.87", "7.77"]


def test_a_library_without_papers_allows_nothing(tmp_path):
    assert allowed_numbers(tmp_path) == set()


def test_numbers_are_read_as_written():
    assert numbers("1,024 and 43{,}000, 1.5e-6; H100, x2.5, v1.2") == [
        ("1,024", Decimal(1024)),
        ("43,000", Decimal(43000)),
        ("1.5e-6", Decimal("1.5e-6")),
    ]
    assert not result_like("2025", Decimal(2025)) and result_like("2,025", Decimal(2025))
    assert same(Decimal("43.1"), Decimal("0.04312")) and not same(Decimal("43.1"), Decimal("4.312"))
    assert "43" not in prose("`43`")


@pytest.mark.parametrize(
    ("data", "long"),
    [
        ({"text/plain": "0.13964655076104557"}, ["0.13964655076104557"]),
        ({"text/plain": "{'layer': 7.320432874755479e-05}"}, ["7.320432874755479e-05"]),
        ({"text/html": "<td data-x='1.2345678'>12,345.678 ms</td>"}, ["12,345.678"]),
        ({"text/csv": "x,y\n1,2.34567\n1,548.748\n3,-1.2345678"}, ["1.2345678"]),
        ({"text/latex": r"42.72727272727273\\ \mathrm{ms}"}, ["42.72727272727273"]),
        ({"text/plain": "0.139647, 70,552,387,584, 2.5e+12, 1.500000000 and 123456789.0"}, []),
        ({"text/markdown": "$$x \\leq 1.000000001$$ and $0.999999999\\, n$"}, []),
        ({"text/plain": "https://arxiv.org/abs/2412.19437 and arXiv 2201.11990"}, []),
    ],
)
def test_numbers_with_too_many_digits_are_found(data, long):
    output = v4.new_output("display_data", data=data)
    assert long_numbers(output) == long
    assert long_numbers(v4.new_output("stream", text="of 1.23456789")) == ["1.23456789"]
