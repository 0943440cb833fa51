"""Printed rows of all sources that do not come out, in one table."""

import pytest
from facts import lines

from book import audit
from book.audit import grading, published_rows
from book.import_tracking import ROOT

# Places of rows that are neither exact nor consistent, and statements that do not simply hold, by source and grade;
# those of Table 4 of LIMINAL's AMI depend on the draws of the authors.
MISSES = lines("misses")
# Numbers that the notes of rows must state.
NOTES = lines("notes")
# Numerals of a source, in its order, all of which are in published.csv.
NUMERALS = {
    "steinhardt2022": (
        "10 1000 1 5 40 2 100-200 54 8 3 312 7e-07 1.2e-06 30-50 1.5 4-5 160 0.7 250 1024 8192-16384 64-256 "
        "512-2048 4096 1-2 2048 6-12 16 29 0.5 8192 400 0.02 330 1.6 200 256 12 0.56 0.06 128 350 25 4 6 100 "
        "33"
    ),
    "mazurek2025": (
        "671000000000.0 37000000000.0 8 61 3 58 256 257 1 70 163 516 2-7 7168 2048 3.5 28672 8192 18432 512 "
        "163840 128 1536 64 129280 661000000000.0 98.5 72 9 32 10 2 11.0 25.2 12.6 3.7 8.4 0.5 117.4 187.2 "
        "11.4 0.9 1.4 14.7 45 132 396 1.2 31 1.9 0.0118 450 50 400 25 900 2.7 16 40 1.25 66 1.5 1550 1980 1.3 "
        "2.0 48 4 12 1024 20 32768 279 4989 56.3"
    ),
    # https://arxiv.org/abs/2507.14397: the error of the abstract and of section 5, and the microseconds of a layer
    "liminal2025": "7.6 95-138 114",
}
# Numbers that errata and notes fill in.
TOLD = {
    "steinhardt2022": (
        "1248 1024 2496 2048 1.83 373 403 441 1.7 0.07 0.60 137 27.5 7.0 6.9 6.7 14% 3.94 2.5 25% 1.4 3.0 1.20 16,384 "
        "5.7% 1.31 1.55"
    ),
    # by the author's own program: DeepSeek-V3's cheapest token $0.0305 with pipelines, $0.0714 without; 1 August 2024
    "erdil2025": "57% 0.8% 80.02 133.32 +66.6% 2.00 +38.7% 14",
    "liminal2025": "46K 28K 35.6B 30.3B 559 930 871 26.3 14.4 17.5% 8.0%",
    "mazurek2025": (
        "7% 15.4 656.6B 97.8 187.1 1.31 44.0 98.0% 262 327.68 2.67 -23.5% 18% 24.7% 9.7% 11.41 826 28.9% 1.94"
    ),
}


@pytest.mark.parametrize("source", sorted({source for source, *_ in MISSES}))
def test_exactly_these_rows_do_not_come_out(source):
    card = audit.scorecard(source)
    graded = card[card.kind.isin(["model", "derived", "identity", "claim"])]
    fine = ["exact", "consistent", "holds", "-"]
    missed = graded[~graded.grade.isin(fine)].itertuples()
    found = [
        (r.grade, r.row) if r.kind == "claim" else (r.grade, *filter(None, (r.artefact, r.row, r.column)))
        for r in missed
    ]
    expected = {tuple(miss) for key, *miss in MISSES if key == source}
    assert (set(found) - expected, expected - set(found)) == (set(), set())


@pytest.mark.parametrize(("source", "row", "words"), NOTES)
def test_a_note_has_the_number_behind_a_row(source, row, words):
    card = audit.scorecard(source)
    assert card[card.row == row].note.str.contains(words, regex=False).any()


@pytest.mark.parametrize("source", NUMERALS)
def test_every_number_of_the_text_has_a_row(source):
    printed = {str(value).replace(",", "") for value in audit.scorecard(source).printed}
    assert set(NUMERALS[source].split()) <= printed


@pytest.mark.parametrize("source", TOLD)
def test_numbers_of_errata_and_notes(source):
    tables = audit.errata(source), audit.notes(source)
    text = " ".join(str(cell) for table in tables for cell in table.to_numpy().ravel())
    assert [number for number in TOLD[source].split() if number not in text] == []


@pytest.mark.parametrize("source", grading.sources())
def test_a_result_that_is_far_off_is_objected_to(source):
    card = audit.scorecard(source)
    assert set(card[(card.grade == "off") & (card.right != "no")].kind) <= {"identity", "measured"}


# Printed in words or as a fraction, where published.csv holds a decimal or a count of tokens.
IN_WORDS = {
    "0.06": "a range of one digit, .06", "0.667": "2/3", "0.333": "1/3", "0.25": "1/4", "0": "a single chip",
    "4,096": "4K", "131,072": "128K",
}  # fmt: skip


@pytest.mark.parametrize("source", grading.sources())
def test_every_printed_number_stands_in_the_text_of_its_source(source):
    """``numerals.txt`` has the distinct numbers of the text; 1,515 of 1,527 values stand there as they are."""
    numerals = set(map(float, (ROOT / f"book/papers/{source}/numerals.txt").read_text().split()))
    rows = [row for row in grading.published(source).values() if row.text not in ("true", "false", "-")]
    missing = {row.place: row.text for row in rows if not published_rows.stands_in(row.text, numerals)}
    assert not {place: text for place, text in missing.items() if text not in IN_WORDS}
    assert len(missing) <= 7
