"""The ledger's own rules: who may read what, how a grade comes about, and that no row is lost."""

import pytest

import book
import inferlib
from inferlib import ledger, printed
from inferlib.ledger import REPRODUCERS

SOURCES = pytest.mark.parametrize("source", ledger.sources())


def row_of_kind(source, kind):
    rows = (row for artefact in ledger._artefacts(source) for row in ledger._rows(source, artefact))
    return next(row for row in rows if row.kind == kind)


@SOURCES
def test_every_printed_row_is_in_the_scorecard_with_a_grade(source):
    card = inferlib.scorecard(source)
    assert list(card.columns) == list(ledger.COLUMNS)
    assert not card.duplicated(["artefact", "row", "column"]).any()
    places = set(zip(card.artefact, card.row, card.column, strict=True))
    assert places >= set(ledger.published(source))
    assert set(card.grade) <= set(ledger.GRADES)
    computed = card[card.kind.isin(["model", "derived", "identity", "claim"])]
    assert not (computed.grade == "missing").any(), computed[computed.grade == "missing"]


@SOURCES
def test_every_miss_has_a_reason(source):
    card = inferlib.scorecard(source)
    missed = card[card.grade.isin(["1%", "5%", "20%", "off", "loosely worded", "does not hold"])]
    assert (missed.note != "").all(), missed[missed.note == ""]


@SOURCES
def test_reproducers_have_rows(source):
    ledger._open(source)
    artefacts = {row.artefact for row in ledger.published(source).values()}
    assert {artefact for key, artefact in REPRODUCERS if key == source} <= artefacts


@SOURCES
def test_a_reproducer_cannot_read_a_result(source):
    for kind in ("model", "claim"):
        row = row_of_kind(source, kind)
        reader = ledger.Reader(source, row.artefact, own=row_of_kind(source, "derived"))
        with pytest.raises(LookupError, match="may not be read|prints nothing"):
            reader(row.row, row.column)


@SOURCES
def test_derived_rows_are_read_only_for_another_row(source):
    row = row_of_kind(source, "derived")
    with pytest.raises(LookupError, match="may not be read"):
        ledger.Reader(source, row.artefact)(row.row, row.column)
    with pytest.raises(LookupError, match="itself"):
        ledger.Reader(source, row.artefact, own=row)(row.row, row.column)


@SOURCES
def test_results_do_not_change_when_printed_results_do(source, monkeypatch):
    """Scramble every printed model and claim row: what is computed must stay the same."""
    rows = {
        place: row if row.kind not in ("model", "claim") else ledger.Row(**{**vars(row), "text": "123456"})
        for place, row in ledger.published(source).items()
    }
    caches = (ledger._claimed, ledger._computed, ledger._graded)

    def all_values():
        every = (row for artefact in ledger._artefacts(source) for row in ledger._rows(source, artefact))
        return [ledger.compute(row)[0] for row in every]

    with monkeypatch.context() as patch:
        for module in (ledger, printed):
            patch.setattr(module, "published", lambda key: rows)
        for cache in caches:
            cache.cache_clear()
        after = all_values()
    for cache in caches:
        cache.cache_clear()
    assert after == all_values()


@pytest.mark.parametrize(
    ("text", "resolution", "value", "grade"),
    [
        ("234", 1, 234.49, "exact"),
        ("234", 1, 234.51, "1%"),
        ("0.7", 0.1, 0.657, "exact"),
        ("100", 1, 104.0, "5%"),
        ("100", 1, 119.0, "20%"),
        ("100", 1, 121.0, "off"),
        ("-", 0, None, "exact"),
        ("-", 0, 3.0, "off"),
        ("5", 1, None, "off"),
        ("true", 0, True, "exact"),
        ("true", 0, False, "off"),
        ("6-12", 1, (6.0, 12.0), "exact"),
        ("6-12", 1, (6.0, 15.0), "off"),
        ("6-12", 1, 8.0, "exact"),
        ("6-12", 1, 5.6, "exact"),
        ("6-12", 1, 5.2, "20%"),
        ("<= 20", 1, 19.0, "exact"),
        ("<= 20", 1, 20.4, "exact"),
        ("<= 20", 1, 20.6, "5%"),
        ("< 20", 1, 20.0, "1%"),
        ("< 20", 1, 19.0, "exact"),
        ("> 20", 1, 21.0, "exact"),
        ("0", 1, 0.0, "exact"),
        (">= 3", 1, 3.0, "exact"),
    ],
)
def test_grades(text, resolution, value, grade):
    assert ledger.grade_of(text, resolution, value)[1] == grade


def test_a_reproducer_that_returns_nan_is_an_error():
    with pytest.raises(ValueError, match="returned nan"):
        ledger.grade_of("1", 1, float("nan"))


def test_consistent_means_within_the_rounding_of_what_was_read():
    card = inferlib.scorecard("erdil2025").set_index("row")
    palm = card.loc["PaLM 62B"].query("column == 'latency'").iloc[0]
    assert palm.grade == "consistent"  # 4 ms and 8B leave that much room
    low, high = ledger._reach(*_computed("erdil2025", palm))
    assert low <= 13.5e-3 and high >= 12.5e-3 and high < 20e-3


def _computed(source, row):
    printed = ledger.published(source)[row["artefact"], row.name, row["column"]]
    return printed, ledger.compute(printed)[2]


def test_summary_counts_model_and_derived_rows():
    card = inferlib.scorecard("erdil2025")
    assert inferlib.summary("erdil2025")["rows"].sum() == card.kind.isin(["model", "derived"]).sum()


def test_cards_show_graded_rows_only():
    for source in ledger.sources():
        assert "-" not in set(book.card(source, unfold=False).frame.grade)
        assert not set(book.misses(source, unfold=False).frame.grade) & {"exact", "holds", "-"}


def test_misses_of_some_artefacts():
    every, some = (
        book.misses("erdil2025", unfold=False).frame,
        book.misses("erdil2025", "Text 2.2.3", "Table 1").frame,
    )
    assert 0 < len(some) < len(every) and some.place.str.startswith("Text 2.2.3").all()
    with pytest.raises(LookupError, match="did you mean"):
        book.misses("erdil2025", "Table 11")


def test_equations_lists_every_number_once():
    table = inferlib.equations("erdil2025")
    numbers = [int(n) for n in table.number if n]
    assert numbers == sorted(numbers) and set(numbers) >= set(range(1, 20))
    assert len(numbers) == len(set(numbers))
    assert set(table.form) <= {"function", "step", "approximation", "structure", "empty"}
    by_number = table.set_index("number").function
    assert by_number["1"] == "single_gpu_latency"
    assert {by_number[n] for n in ("3", "5", "8")} == {"toy_latency"}
    assert table.latex.str.contains("=").all()


@SOURCES
def test_errata_are_filled_in(source):
    table = inferlib.errata(source)
    assert len(table) and list(table.columns)[1:] == [
        "place", "printed", "corrected", "evidence", "effect", "materiality",
    ]  # fmt: skip
    for text in table.drop(columns="materiality").to_numpy().ravel():
        assert text and "{" not in text


@SOURCES
def test_errata_say_what_they_change(source):
    assert set(inferlib.errata(source).materiality) <= set(ledger.MATERIALITY)
    assert set(ledger._errata(source)) <= {"erratum", "note"}


@SOURCES
def test_no_grade_contradicts_an_erratum(source):
    card = inferlib.scorecard(source).set_index(["artefact", "row", "column"])
    for place in ledger._objected(source):
        row = card.loc[place]
        assert row.right == "no" and row.kind != "claim", place
    assert (card[card.grade == "does not hold"].right == "no").all()
    assert len(inferlib.errata(source)) or not (card.grade == "does not hold").any()


def test_unknown_source_suggests_a_near_name():
    with pytest.raises(LookupError, match="did you mean 'erdil2025'"):
        inferlib.scorecard("erdil2024")


def test_malformed_published_files_are_refused(tmp_path, monkeypatch):
    head = "artefact,row,column,printed,resolution,unit,kind\n"
    bad = {
        "kind is 'guess'": "A,b,,1,,1,guess\n",
        "twice": "A,b,,1,,1,input\nA,b,,2,,1,input\n",
        "number of cells": "A,b,,1,,1\n",
    }
    monkeypatch.setattr(printed, "files", lambda package: tmp_path)
    for message, line in bad.items():
        (tmp_path / "published.csv").write_text(head + line)
        ledger.published.cache_clear()
        with pytest.raises(ValueError, match=message):
            ledger.published("erdil2025")
    ledger.published.cache_clear()


def test_explain_shows_equations_inputs_sources_and_branches():
    card = inferlib.scorecard("erdil2025", "Table 1")
    text = str(inferlib.explain(card.iloc[0]))
    assert "minimum_latency" in text and "eq. 14" in text and "memory_bandwidth of H100" in text
    assert "notebook" in text  # where the bandwidth is stated
    derived = inferlib.scorecard("erdil2025", "Footnote 1").query("kind == 'derived'").iloc[1]
    assert "as printed" in str(inferlib.explain(derived))
    assert inferlib.explain(card.iloc[0])._repr_html_().count("<details") >= 2
    with pytest.raises(TypeError, match="cannot explain a int"):
        inferlib.explain(3)


def test_explain_names_the_branch_that_won():
    from inferlib.papers import erdil2025

    table = inferlib.scorecard("erdil2025", "Table 1")
    assert "choice of" in str(inferlib.explain(table.iloc[0]))  # several GPUs or one
    assert "maximum of" in str(inferlib.explain(table.iloc[1])) and "won by" in str(
        inferlib.explain(table.iloc[1])
    )
    system = inferlib.System(inferlib.load_chip("H100 SXM"), 8)
    step = erdil2025.toy_decode_step(inferlib.load_model("Llama 3 70B"), system, inferlib.Workload(batch=32))
    assert "weight_time = " in str(inferlib.explain(step))


@SOURCES
def test_every_row_can_be_explained(source):
    """Each row's tree starts with what is printed; a computed row's tree holds a value that leads to it."""
    for _, row in inferlib.scorecard(source).iterrows():
        tree = inferlib.explain(row)
        at = ledger.row_at(source, row.artefact, row.row, row.column)
        assert f"printed {at.text}" in tree.title
        assert len(str(tree).splitlines()) < 300  # a whole layout of Erdil 2025 takes 230
        assert bool(tree.folded()) == bool(tree.parts or tree.note)
        assert not (row.grade == "-" and tree.parts)


@SOURCES
def test_no_row_shows_the_tree_of_another(source):
    """A truth, a count or a round number that no function of its own computes shows no tree: any would be chance."""
    for artefact in ledger._artefacts(source):
        computed = ledger._computed(source, artefact)
        rows = inferlib.scorecard(source, artefact)
        for _, row in rows[rows.grade != "-"].iterrows():
            alone = callable(computed.get((row["row"], row.column)))
            value = row.reproduced
            telling = isinstance(value, float) and float(f"{value:.7g}") != value
            parts = inferlib.explain(row).parts
            assert alone or telling or all("as printed" in part.note for part in parts), (
                artefact,
                row["row"],
            )


def test_a_coefficient_is_no_number_of_chips():
    rows = inferlib.scorecard("steinhardt2022", "Technical answer").set_index("row", drop=False)
    assert "chips" not in str(
        inferlib.explain(rows.loc["second branch: coefficient of C^2 N / (B^2 (M - B / sqrt(N)))"])
    )


def test_a_changed_number_does_not_keep_its_source():
    chip = inferlib.load_chip("H100 SXM")
    assert chip.replace(memory_bandwidth=9e12).sources["memory_bandwidth"].startswith("changed from: http")
    assert chip.sources["memory_bandwidth"].startswith("http")


def test_explain_leaves_equations_as_they_were():
    from inferlib import equation, ops

    inferlib.explain(inferlib.scorecard("erdil2025").query("kind == 'model'").iloc[0])
    assert equation.tracer.get() is None and ops.on_branch.get() is None
