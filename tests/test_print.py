"""Printed rows of all sources that do not come out, in one table."""

from importlib import import_module
from types import SimpleNamespace

import pytest
from facts import from_table, lines

from book import audit
from book.audit import grading, published_rows
from book.import_tracking import ROOT

# Places of rows that are neither exact nor consistent, and statements that do not simply hold, by source and grade;
# those of Table 4 of LIMINAL's AMI depend on the draws of the authors.
MISSES = lines("misses")
# Numbers that the notes of rows must state.
NOTES = lines("notes")


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


@from_table
def test_a_statement_stands_up_to_its_threshold(function, statement, replaced, by, holds, monkeypatch):
    """What it compares is replaced by a number just within what its note asks for, or just beyond."""
    place, _, name = function.rpartition(".")
    module, (owner, _, last) = import_module(f"book.papers.{place}"), replaced.rpartition(".")
    value, checks, found = eval(by, globals() | vars(module)), getattr(module, name), []
    read = grading.Reader(*next(key for key, made in grading.REPRODUCERS.items() if checks in made))
    if replaced == "read":
        read = value
    elif owner:  # only for this module: caches of others keep what they found
        monkeypatch.setattr(module, owner, SimpleNamespace(**vars(getattr(module, owner)) | {last: value}))
    else:
        monkeypatch.setattr(module, last, value)
    grading.called(
        checks,
        read=read,
        holds=lambda label, truth, *note, **fair: label.startswith(statement) and found.append(truth),
    )
    (truth,) = found
    assert bool(truth(read) if callable(truth) else truth) is holds


@pytest.mark.parametrize(("source", "numerals"), lines("numerals"))
def test_every_number_of_the_text_has_a_row(source, numerals):
    printed = {str(value).replace(",", "") for value in audit.scorecard(source).printed}
    assert set(numerals.split()) <= printed


@pytest.mark.parametrize(("source", "numbers"), lines("told"))
def test_numbers_of_errata_and_notes(source, numbers):
    tables = audit.errata(source), audit.notes(source)
    text = " ".join(str(cell) for table in tables for cell in table.to_numpy().ravel())
    assert [number for number in numbers.split() if number not in text] == []


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
