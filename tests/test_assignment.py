"""Homework that carries a mark: sheets as students fill them, beside marks given by hand."""

import csv
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from facts import from_table

from book.teaching.problems import assignment, export
from book.teaching.problems.assignment import give_marks, graded, homework, key_file, people
from book.teaching.problems.bank import made_up
from book.teaching.problems.chains import SESSIONS

# Sheets of session 5, which has fifteen points: two, one, one, two; then a chain of one and four times two. Whatever is
# not among the questions of a line is right. {answer} is the right one, {0.5} half of it.
TABLE = csv.reader(
    (Path(__file__).parent / "sheets.tsv").read_text("utf-8").splitlines()[1:], "excel-tab", quoting=3
)
SHEETS = {student: rest for student, *rest in TABLE}


def times(right, share):
    """A multiple of the right answer, in its unit."""
    number = re.search(r"[\d.,]+", right)[0]
    return right.replace(number, f"{float(share) * float(number.replace(',', '')):.5g}")


def filled(form, name, right):
    """The content of an answer's cell."""
    form = re.sub(r"\{many (.)\}", lambda m: 20000 * m[1], form.replace("\\n", "\n"))
    return re.sub(
        r"\{([\d.]+)\}", lambda m: times(right, m[1]), form.replace("{name}", name).replace("{answer}", right)
    )


# Sheets that cannot be marked, and the message for each.
BROKEN = {
    "an empty file": (lambda sheet: "", "Expecting value"),
    "an object": (lambda sheet: "{}", "without cells"),
    "an empty list": (lambda sheet: "[]", "AttributeError"),
    "a page": (lambda sheet: "<html>Log in</html>", "Expecting value"),
    "brackets alone": (lambda sheet: "[" * 200000, "RecursionError"),
    "another name": (lambda sheet: sheet.replace("another name", "all right"), "the name or number"),
    "another number": (lambda sheet: sheet.replace("'number': ''", "'number': '1'"), "the name or number"),
    "no first cell": (lambda sheet: sheet.replace("answers = {", "nothing = {"), "no key file knows"),
    "a token made up": (lambda sheet: re.sub(r"'sheet': '\w+'", "'sheet': 'abc'", sheet), "no key file knows"),
}  # fmt: skip


def key_of(folder, session, names):
    """A key file whose salt is always the same."""
    path = folder / f"session-{session}.json"
    if not path.is_file():
        path.write_text(json.dumps({"session": session, "sheets": {}, "salt": "a salt"}), "utf-8")
    return key_file(path, session, people(names))


def hand_in(key, folder, name, sheet="nothing", edit=str):
    """A student's returned sheet, in a folder of its own as learning platforms pack them."""
    ((token, own),) = [(token, one) for token, one in key["sheets"].items() if one["student"] == name]
    made, (names, form, *_) = json.loads(graded(token, own, key["session"])), SHEETS[sheet]
    cells = {cell["id"]: cell for cell in made["cells"]}
    for a in own["questions"]:
        written = form if names == "every" or a["name"] in names.split() else SHEETS["all right"][1]
        cell = cells[a["name"].replace(".", "-") + "-answer"]
        cell["source"] = filled(written, a["name"], a.get("answer", "20 ms"))
    path = folder / f"{name}_{len(list(folder.glob('*')))}_file" / "sheet.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text("\ufeff" + edit(json.dumps(made)), "utf-8")


def rows(path):
    return list(csv.DictReader(path.read_text("utf-8").splitlines()))


@pytest.fixture(scope="module")
def marked(tmp_path_factory):
    """All sheets marked at once, without the bank that made them."""
    folder = tmp_path_factory.mktemp("class")
    key = key_of(folder, 5, ",".join([*SHEETS, *BROKEN, "late"]))
    for name in SHEETS:
        hand_in(key, folder / "back", name, name)
    for name, (edit, _) in BROKEN.items():
        hand_in(key, folder / "back", name, edit=edit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assignment, "questions", None)
        patch.setattr("book.teaching.problems.bank.BANK", {})
        _, faults = give_marks(folder / "back", [json.loads((folder / "session-5.json").read_text("utf-8"))])
    return folder / "back", {path.rpartition("_")[0].rpartition("_")[0]: said for path, said in faults}


@pytest.mark.parametrize("name", SHEETS)
def test_a_sheet_gets_the_marks_that_a_hand_gives(name, marked):
    *_, points, says = SHEETS[name]
    (row,) = [row for row in rows(marked[0] / "marks.csv") if row["Student"] == name]
    assert row["Session 5 (of 15)"] == points
    assert any(says in row["Said"] for row in rows(marked[0] / "details.csv") if row["Student"] == name)


@pytest.mark.parametrize("name", BROKEN)
def test_a_fault_is_named_and_costs_nobody_else_a_mark(name, marked):
    folder, faults = marked
    assert BROKEN[name][1] in faults[name]
    assert any(name in row["Sheet"] and "not marked" in row["Said"] for row in rows(folder / "details.csv"))
    assert not set(faults) - set(BROKEN)


def test_who_handed_in_nothing_has_an_empty_mark(marked):
    (late,) = [row for row in rows(marked[0] / "marks.csv") if row["Student"] == "late"]
    assert list(late) == ["Student", "ID", "SIS Login ID", "Section", "Session 5 (of 15)"]
    assert late["Session 5 (of 15)"] == ""


def test_no_cell_of_a_table_is_a_formula(marked):
    cells = [cell for row in rows(marked[0] / "details.csv") for cell in row.values()]
    assert "'=1+1" in cells


def test_a_failed_mark_destroys_nothing(marked, tmp_path):
    before = (marked[0] / "marks.csv").read_text("utf-8")
    with pytest.raises(SystemExit, match="nothing was written"):
        give_marks(marked[0], [{"session": 5, "sheets": {}}])
    assert (marked[0] / "marks.csv").read_text("utf-8") == before


def test_of_two_sheets_the_better_one_counts(tmp_path):
    key = key_of(tmp_path, 5, "Ada")
    for sheet in ("nothing", "all right", "nothing"):
        hand_in(key, tmp_path / "back", "Ada", sheet)
    text, faults = give_marks(tmp_path / "back", [key])
    assert "Ada,,,,15" in text
    assert ["a second sheet of Ada" in said for _, said in faults] == [True, True]


def test_a_late_student_changes_no_other_sheet(tmp_path, monkeypatch):
    """The bank has other numbers by then."""
    first = key_of(tmp_path, 5, "Ada")
    monkeypatch.setitem(SESSIONS[5], "topics", ["memory"])
    both = key_of(tmp_path, 5, "Ada, Late")
    assert both["salt"] == first["salt"]
    assert both["sheets"].items() >= first["sheets"].items() and len(both["sheets"]) == 2


@pytest.mark.parametrize("session", SESSIONS)
def test_a_right_sheet_gets_all_points(session, tmp_path):
    key = key_of(tmp_path, session, "Ada")
    hand_in(key, tmp_path, "Ada", "all right")
    (sheet,) = key["sheets"].values()
    assert f"Ada,,,,{sum(a['points'] for a in sheet['questions'])}\n" in give_marks(tmp_path, [key])[0]


@from_table
def test_who_goes_on_rightly_from_half_of_an_answer_gets_the_later_points(
    session, wrong, later, power, tmp_path
):
    """Half the cache of a token, say, is half the reading, and twice the context of equal weight."""
    (sheet,) = key_of(tmp_path, session, "Ada")["sheets"].values()
    known = {a["name"]: a for a in sheet["questions"]}
    given = {f"chain-{session}.{at}": 0.5**by for at, by in ((wrong, 1), (later, power))}
    given = {
        name: f"{share * known[name]['value']:.6g} {known[name]['unit']}" for name, share in given.items()
    }
    said = [said for a, _, _, said in assignment.marked(sheet, given) if a["name"] in given]
    assert [words.startswith("Follow") for words in said] == [False, True]


@pytest.mark.parametrize("session", SESSIONS)
def test_no_clone_draws_a_graded_question(session):
    """Neither the student's name nor trying all values of the bank's lists finds one: models and chips are invented."""
    sheet = homework("Ada/a salt", session, made_up)
    assert not {a.text for a in sheet} & {a.text for a in homework("Ada", session)}
    for asked in sheet:
        own = {name: str(getattr(value, "name", value)) for name, value in asked.given.items()}
        assert any(value not in map(str, asked.choices[name]) for name, value in own.items()), asked.text


def test_no_question_of_the_chain_is_asked_twice():
    for session in SESSIONS:
        entries = [a.entry for a in homework("Ada", session)]
        assert len(entries) == len(set(entries))


def test_a_graded_sheet_holds_neither_key_nor_salt(tmp_path):
    key = key_of(tmp_path, 5, "Ada")
    ((token, sheet),) = key["sheets"].items()
    text = graded(token, sheet, 5)
    assert key["salt"] not in text
    assert not [a for a in sheet["questions"] if a["answer"] in text or a["worked"] in text]


@from_table
def test_the_last_cell_says_how_an_answer_is_read(cell, says, tmp_path, capsys):
    ((token, sheet),) = key_of(tmp_path, 5, "Ada")["sheets"].items()
    last = json.loads(graded(token, sheet, 5))["cells"][-1]
    exec("".join(last["source"]), {"In": ["", cell]})
    assert says in capsys.readouterr().out


@pytest.fixture
def command(monkeypatch):
    """The command that a teacher types, with its options."""

    def run(**options):
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        monkeypatch.setattr("sys.argv", ["assignment", *words])
        assignment.main()

    return run


@from_table
def test_a_wrong_option_is_refused(options, words, command):
    with pytest.raises((SystemExit, ValueError), match=words):
        command(session=5, **options)


def test_sheets_are_written_and_marked_by_command(command, tmp_path):
    keys, target = tmp_path / "keys", tmp_path / "sheets"
    command(session=1, students="Ada,Bob", keys=keys, target=target)
    assert sorted(path.name for path in target.glob("session-1/*")) == ["ada.ipynb", "bob.ipynb"]
    command(mark=target, keys=keys)
    assert [row["Student"] for row in rows(target / "marks.csv")] == ["Ada", "Bob"]
    (tmp_path / "seals.txt").write_text("Ada; 1234")
    with pytest.raises(SystemExit, match="ada.ipynb: these are not the predictions that were sealed"):
        command(mark=target, keys=keys, seals=tmp_path / "seals.txt")


@from_table
def test_a_prediction_is_held_against_what_was_measured(share, points, tmp_path):
    key = key_of(tmp_path, assignment.PREDICTIONS, "Ada")
    (sheet,) = key["sheets"].values()
    given = {a["name"]: f"{share * a['value']:.5g} ms" for a in sheet["questions"]}
    assert sum(row[2] for row in assignment.marked(sheet, given)) == points


def test_a_prediction_that_was_changed_after_its_seal_is_not_marked(tmp_path):
    key = key_of(tmp_path, assignment.PREDICTIONS, "Ada, Bob")
    names = [a["name"] for a in next(iter(key["sheets"].values()))["questions"]]
    seal = assignment.reading.seal(dict.fromkeys(names, "20 ms"), names)
    hand_in(key, tmp_path, "Ada", "all right")
    hand_in(key, tmp_path, "Bob", "nothing")
    _, ((path, said),) = give_marks(tmp_path, [key], {"Ada": seal, "Bob": seal})
    assert path.startswith("Bob") and "were sealed" in said


@pytest.fixture(scope="module")
def variants():
    return export.variants(5, "a salt", 3)


def test_moodle_gets_a_category_a_problem_with_a_hint_for_each_mistake(variants):
    """As Moodle's own importer reads it; there the first answer within its tolerance counts."""
    quiz = ElementTree.fromstring(export.moodle(5, variants))
    questions = quiz.findall("question[@type='numerical']")
    assert len(quiz) - len(questions) == len(variants)
    for question, (_, known) in zip(questions, sum(variants.values(), []), strict=True):
        right, *wrong = question.findall("answer")
        assert [float(one.findtext("text")) for one in (right, *wrong)] == pytest.approx(
            [known["value"], *(value for value, _ in known["mistakes"])]
        )
        assert right.get("fraction") == "100" and {one.get("fraction") for one in wrong} == {"0"}
        units = {
            one.findtext("unit_name"): float(one.findtext("multiplier")) for one in question.iter("unit")
        }
        assert units.get(known["unit"], 1) == 1 and bool(units) == (known["unit"] not in ("", "dollars"))
        assert known["unit"] != "ms" or units["s"] == 1e-3  # a right answer in ms is larger by this factor


def test_qti_draws_one_variant_of_each_problem(variants):
    text = export.text2qti(5, variants)
    assert text.count("GROUP\npick: 1") == text.count("END_GROUP") == len(variants)
    assert len(re.findall(r"(?m)^= [\d.e+-]+(?: \+- \d%)?$", text)) == 3 * len(variants)
