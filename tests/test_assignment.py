"""Homework that carries a mark: no key in a clone, sheets that are read as people write them, marks that add up."""

import csv

import nbformat
import pytest

from book.teaching.problems import assignment
from book.teaching.problems.assignment import homework, marked, notebook, people, recorded
from inferlib.units import factor

SALT = "what nobody guesses"


def sheet(student="Ada", session=5, answers=(), salt=SALT):
    """A graded sheet as a student returns it; answers by name, as they stand behind the equals sign."""
    made = notebook("graded", student, "7", session, (), salt)
    for name, written in dict(answers).items():
        (cell,) = [c for c in made.cells if c.source.startswith(f'answers["{name}"]')]
        cell.source = f'answers["{name}"] = {written}'
    return made


def asked(student="Ada", session=5, salt=SALT):
    return {a.name: a for a in homework(f"{student}/{salt}", session)}


def keys(student="Ada", session=5):
    """All right answers, as they are written on a sheet."""
    return {name: repr(a.answer) for name, a in asked(student, session).items()}


def back(tmp_path, *sheets, salt=SALT):
    """The table of some returned sheets, and what is wrong with others."""
    for k, one in enumerate(sheets):
        nbformat.write(one, tmp_path / f"{k}.ipynb")
    return marked(sorted(tmp_path.glob("*.ipynb")), lambda session: salt)


def said(tmp_path, answers):
    """What is said to the answers of one sheet: name to points and words."""
    table, _ = back(tmp_path, sheet(answers=answers))
    return {row.Question: (row.Points, row.Said) for row in table.itertuples()}


@pytest.mark.parametrize("session", assignment.HOMEWORK)
def test_all_that_is_right_gets_all_points(session, tmp_path):
    table, faults = back(tmp_path, sheet("Ada", session, keys("Ada", session)))
    assert not faults
    assert (table.Points == table.Of).all()
    assert len(table) == len(homework("Ada", session))


def test_an_empty_sheet_gets_none(tmp_path):
    table, _ = back(tmp_path, sheet())
    assert table.Points.sum() == 0
    assert set(table.Said) == {"No answer."}


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("'12.3'", "without its unit"),
        ("12.3", "without its unit"),
        ("'0,224 TFLOP'", "decimal point"),
        ("f'{t:.1f} TFLOP'", "no number"),
        ("'12 TFLOP", "no number"),
        ("'12 GB'", "no unit of this answer"),
        ("'1 TFLOP'", "too small"),
    ],
)
def test_an_answer_that_gets_no_points_hears_why(tmp_path, written, says):
    points, words = said(tmp_path, {"prompts-1": written})["prompts-1"]
    assert points == 0
    assert says in words


def test_a_usual_mistake_is_named_in_the_table(tmp_path):
    a = asked()["cost-1"]
    hint, wrong = next(iter(a.mistakes.items()))
    points, words = said(tmp_path, {"cost-1": repr(f"${wrong / factor('usd'):.6g}")})["cost-1"]
    assert points == 0
    assert words == f"Not yet: {hint}."


def test_an_own_wrong_answer_of_a_chain_is_followed(tmp_path):
    """A prompt read in half the time: the later answers halve with it where they are proportional."""
    links = asked()
    half = links["chain-5.2"].key.value / 2
    later = links["chain-5.3"].key.value / 2
    told = said(tmp_path, {"chain-5.2": f"'{half:.6g} s'", "chain-5.3": f"'{later:.6g} s'"})
    assert told["chain-5.2"][0] == 0
    assert told["chain-5.3"] == (2, "Follow-through: right from your own earlier answer.")


def test_the_same_wrong_answer_without_the_earlier_one_is_wrong(tmp_path):
    later = asked()["chain-5.3"].key.value / 2
    assert said(tmp_path, {"chain-5.3": f"'{later:.6g} s'"})["chain-5.3"][0] == 0


@pytest.mark.parametrize("session", assignment.HOMEWORK)
def test_the_name_alone_gives_no_graded_key(session):
    """What the clone answers for the student by name, and for the name on the sheet, is not what is asked."""
    plain = {a.name: a.text for a in homework("Ada", session)}
    salted = {a.name: a.text for a in homework(f"Ada/{SALT}", session)}
    assert sum(plain[name] == salted[name] for name in plain) <= len(plain) / 3


def test_a_graded_sheet_holds_neither_key_nor_salt():
    text = nbformat.writes(sheet())
    assert SALT not in text
    assert "check" not in text
    assert not [a.name for a in asked().values() if a.worked in text]


def test_a_practice_sheet_marks_itself():
    made = notebook("practice", "Ada", "", 5, (), SALT)
    code = [cell.source for cell in made.cells if cell.cell_type == "code" and cell.id != "install"]
    scope = {}
    exec(code[0], scope)
    assert {str(eval(line, scope)) for line in code[1:]} == {"No answer yet."}


def test_levels_can_be_chosen():
    assert {a.level for a in homework("Ada", 2, ("study",)) if "chain" not in a.name} == {"study"}


@pytest.mark.parametrize(
    ("made", "changed"), [("'student': 'Ada'", "'student': 'Bob'"), ("'session': 5", "'session': 4")]
)
def test_a_sheet_that_was_changed_is_refused(tmp_path, made, changed):
    one = sheet()
    one.cells[1].source = one.cells[1].source.replace(made, changed)
    table, faults = back(tmp_path, one)
    assert table.empty
    assert "not as it was handed out" in faults[0]


def test_a_file_that_is_no_notebook_is_named(tmp_path):
    (tmp_path / "broken.ipynb").write_text("no notebook", "utf-8")
    _, faults = back(tmp_path, sheet())
    assert faults[0].startswith("broken.ipynb: ")


def test_another_salt_is_refused(tmp_path):
    _, faults = back(tmp_path, sheet(), salt="another")
    assert "another salt" in faults[0]


def test_two_sheets_of_one_student_are_told(tmp_path):
    table, faults = back(tmp_path, sheet(answers=keys()), sheet())
    assert "second sheet of Ada" in faults[0]
    assert len(table) == len(asked())


def test_a_grade_book_has_a_row_a_student_and_a_column_a_session(tmp_path):
    table, _ = back(tmp_path, sheet(answers=keys()), sheet("Bob"), sheet("Ada", 1, keys("Ada", 1)))
    book = assignment.grade_book(table).reset_index()
    assert list(book.columns) == ["Student", "ID", "Session 1 (of 13)", "Session 5 (of 24)"]
    assert list(book.Student) == ["Ada", "Bob"]
    assert list(book["Session 5 (of 24)"]) == [24, 0]


def test_no_cell_of_a_table_is_a_formula(tmp_path, monkeypatch):
    text = nbformat.writes(sheet("=cmd|calc!A0", answers={"prompts-1": "'=1+1'"}))
    (tmp_path / "sheet.ipynb").write_text(text, "utf-8")
    monkeypatch.setattr("sys.argv", ["assignment", "--mark", str(tmp_path), "--salt", SALT])
    with pytest.raises(SystemExit):
        assignment.main()
    for name in ("details.csv", "marks.csv"):
        cells = [cell for row in csv.reader((tmp_path / name).read_text().splitlines()) for cell in row]
        assert "'=cmd|calc!A0" in cells and not any(cell.startswith("=") for cell in cells)


def test_students_come_from_words_or_a_file(tmp_path):
    file = tmp_path / "class.txt"
    file.write_text("Ada Lovelace; 4711\n\nBob\nBob\n", "utf-8")
    assert people([str(file)]) == {"Ada Lovelace": "4711", "Bob": ""}
    assert people(["Ada", "Bob"]) == {"Ada": "", "Bob": ""}


@pytest.mark.parametrize(("names", "says"), [([], "no students"), (["Ada B", "ada-b"], "same file")])
def test_names_that_make_no_sheets_are_said(names, says):
    with pytest.raises(SystemExit, match=says):
        people(names)


def test_what_else_stands_in_a_cell_is_left_alone():
    one = sheet(answers={"prompts-1": "'1 TFLOP'"})
    one.cells[3].source = "t = 3\n" + one.cells[3].source + "\nprint(t)"
    assert recorded(one)["prompts-1"] == "1 TFLOP"
