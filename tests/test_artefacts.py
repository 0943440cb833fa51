"""Nothing that a source prints is lost: each table, figure, equation and number has its place in the book."""

import pytest

import book
from book.audit.published_rows import published


def _to(last, first=1):
    return {str(number) for number in range(first, last + 1)}


PRINTED = {  # numbers in published.csv; tables, figures and equations that some page shows
    "steinhardt2022": (120, {}),
    "pope2022": (
        559,
        {
            "Table": _to(3) | set("D.1 D.2 D.3 D.4".split()),
            "Figure": _to(9) - {"2", "5"}
            | set("2(a) 2(b) 2(c) 4(a) 4(b) 4(c) 5(a) 5(b) A.1 A.2 B.1 C.1".split()),
        },
    ),
    "erdil2025": (274, {"Table": _to(6), "Figure": _to(10), "Equation": _to(46)}),
    "liminal2025": (440, {"Table": _to(7), "Figure": _to(4), "Equation": _to(8), "Key finding": _to(9)}),
    "mazurek2025": (155, {"Table": _to(2), "Figure": _to(17), "Equation": _to(51)}),
}


@pytest.fixture(scope="module", params=PRINTED)
def source(request):
    return request.param


@pytest.fixture(scope="module")
def places(source):
    return book.index(source).places


def test_no_printed_number_is_lost(source):
    assert len(published(source)) >= PRINTED[source][0]


def test_every_artefact_with_numbers_has_a_place(source, places):
    without = {row.artefact for row in published(source).values() if not places.get(row.artefact)}
    assert not without


def test_every_table_figure_and_equation_has_a_place(source, places):
    wanted = {f"{kind} {number}" for kind, numbers in PRINTED[source][1].items() for number in numbers}
    assert {name for name in wanted if not places.get(name)} == set()


def test_a_number_without_a_place_is_noticed(places):
    assert not places.get("Table 99")
