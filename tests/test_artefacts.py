"""Nothing that a source prints is lost: each table, figure, equation and number has its place in the book."""

import pandas as pd
import pytest
from facts import from_table, lines

import book
from book.audit import appendices
from book.audit.published_rows import published
from inferlib.papers import sources


@pytest.fixture(scope="module", params=sources())
def source(request):
    return request.param


@pytest.fixture(scope="module")
def places(source):
    return book.index(source).places


def test_every_artefact_with_numbers_has_a_place(source, places):
    without = {row.artefact for row in published(source).values() if not places.get(row.artefact)}
    assert not without


def test_every_table_figure_and_equation_has_a_place(source, places):
    own = [(kind, numbers.split()) for key, kind, numbers in lines("artefacts") if key == source]
    wanted = {f"{kind} {number}" for kind, numbers in own for number in numbers}
    assert {name for name in wanted if not places.get(name)} == set()


@from_table
def test_every_numbered_equation_is_walked_through_in_its_record(key, last):
    places = book.index(key).places
    assert {n for n in range(1, last + 1) if places[f"Equation {n}"] != f"#eq-{key}-{n}"} == set()


def test_a_walk_says_what_an_equation_is_and_where_it_is_used():
    """The paper puts its equation 41 into 28, and 28 into 39."""
    page = book.walk("erdil2025", 28, 41)._repr_markdown_()
    assert "**Equation (41)**" in page and "Used in equation 28." in page and "Used in equation 39." in page


TABLES = [("erdil2025", f"Table {n}") for n in range(1, 7)] + [("pope2022", "Table D.1")]


@pytest.mark.parametrize(("key", "table"), TABLES)
def test_every_printed_cell_stands_beside_ours(key, table):
    page = book.beside(key, table)._repr_html_()
    cells = [
        row for row in published(key).values() if row.artefact == table and row.kind in ("model", "derived")
    ]
    assert cells and not [row.place for row in cells if f">{_as_shown(row.text)}<" not in page]


def _as_shown(text):
    return text.replace("540e9", "540 B").replace("530e9", "530 B")


def test_what_is_not_made_anew_is_an_artefact_with_a_reason():
    made = pd.concat(map(appendices.prints, sources()))
    assert made[made.made != "anew"].why.str.len().min() > 20
    assert made[made.page == ""].artefact.tolist() == []
