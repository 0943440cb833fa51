"""Homework that carries a mark: sheets whose numbers no clone holds, and a table of marks from what comes back.

Each student gets two notebooks. The graded one only records, and its numbers are drawn with a salt that
the teacher keeps; its practice twin asks the same with other numbers and gives hints. Marking reads the graded ones.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import re
import secrets
import sys
from pathlib import Path

import nbformat
import pandas as pd

from book.site.tools.lecture import address, first_cells
from book.teaching.problems.bank import LEVELS, problems
from book.teaching.problems.chains import chain, followed
from book.teaching.problems.marking import mark, read

# Topics and levels of each session's homework, as the course names them; the chain of the session comes after them.
HOMEWORK = {
    1: (("memory", "arithmetic"), ("one line",)),
    2: (("cache", "experts"), ("one line", "short")),
    3: (("network", "collectives"), ("one line", "short")),
    4: (("network", "pipeline"), ("one line", "short")),
    5: (("prompts", "cost"), ("one line", "short")),
    6: (("method",), ("one line", "short")),
}
POINTS = dict(zip(LEVELS, range(len(LEVELS)), strict=True))
HEADS = {
    "graded": """Write each answer with its unit between the quotation marks, such as `"12.3 ms"`, with a decimal point
and three digits. Nothing here says whether it is right; the practice twin does, with other numbers. In a chain, whoever
goes on rightly from a wrong answer gets the later points.""",
    "practice": """The questions of the graded sheet with other numbers. Write each answer with its unit, such as
`"12.3 ms"`, and run the cell: it says whether it is right, which usual mistake leads to it, or how far off it is.""",
}
FIGURES = """GB is $10^9$ bytes, GiB $2^{30}$; a weight in fp4 has four bits, without its scales. An answer may be off
by five per cent (one line, one point), three (short, two points) or two (study, three points); a whole number under a
limit is exact. Memory holds all weights; a step reads all but the input embedding, unless a problem says otherwise."""
LINE = re.compile(r'(?m)^answers(?:\["([^"]+)"\])? = (.*)$')
COLUMNS = ["Student", "ID", "Session", "Question", "Answer", "Points", "Of", "Said"]


def homework(student, session, levels=()):
    """The problems of a session as they are asked of a student: topics, then the chain.

    ``levels``: in place of those that the course names.
    """
    topics, usual = HOMEWORK[session]
    single = [a for topic in topics for a in problems(student, topic) if a.level in (levels or usual)]
    return single + chain(student, session)


def seal(student, session, levels, salt):
    """What a sheet must bear to be marked: it says that name, session and levels are those it was made with."""
    text = "/".join([student, str(session), *levels, salt])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def notebook(kind, student, number, session, levels, salt):
    """One sheet of a student: graded, with neither library nor key nor salt in it, or its practice twin."""
    record = {"student": student, "number": number, "session": session, "levels": list(levels)}
    record["seal"] = seal(student, session, levels, salt)
    names, start, reply, install = {
        "graded": (f"{student}/{salt}", f"answers = {record!r}", 'answers["{}"] = ""', ""),
        "practice": (student, f"from book.teaching.problems import checker\n\ncheck = checker({student!r})",
                     'check("{}", "")', address()),
    }[kind]  # fmt: skip
    head = f"# Session {session}, {kind}: {student}\n\n{HEADS[kind]} {FIGURES}"
    cells = [*first_cells(head, install), nbformat.v4.new_code_cell(start, id="start")]
    for a in homework(names, session, levels):
        lines = "\n\n".join([f"**{a.name}** ({a.level}) {a.text}", *(f"*{x}*" for x in a.facts)])
        cells.append(nbformat.v4.new_markdown_cell(lines.replace("$", r"\$"), id=a.name.replace(".", "-")))
        cells.append(nbformat.v4.new_code_cell(reply.format(a.name), id=f"{cells[-1].id}-answer"))
    made = nbformat.v4.new_notebook(cells=cells)
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.validate(made)
    return made


def people(asked):
    """Students as name and number: words, or the lines of a file, where a number may follow after a semicolon."""
    file = Path(" ".join(asked))
    lines = file.read_text("utf-8").splitlines() if file.is_file() else asked
    found = dict((part.strip() for part in f"{line};".split(";")[:2]) for line in lines if line.strip())
    if not found:
        raise SystemExit("no students: give names, or a file with one name a line")
    if len({file_name(name) for name in found}) < len(found):
        raise SystemExit("two students would get the same file: add a letter to one of the names")
    return found


def file_name(student):
    """A name for a file."""
    return re.sub(r"\W+", "-", student).strip("-").lower() or "student"


def recorded(sheet):
    """What a graded sheet holds, by name; what is no plain text or number as it is written."""
    found = {}
    for cell in sheet.cells:
        for name, written in LINE.findall(cell.source if cell.cell_type == "code" else ""):
            try:
                value = ast.literal_eval(written)
            except (ValueError, SyntaxError):
                value = written
            found |= {name: value} if name else value
    return found


def marks(answers, salt):
    """Each question of a returned sheet: name, answer, points, points at most, and what is said to it."""
    name, session, levels = (answers.get(key) for key in ("student", "session", "levels"))
    if answers.get("seal") != seal(str(name), session, levels or [], salt):
        raise ValueError("not as it was handed out, or made with another salt")
    asked, own = homework(f"{name}/{salt}", session, levels), {}
    for a in asked:
        given = answers.get(a.name, "")
        found, worth = mark(a, str(given)), POINTS[a.level]
        right, said = found.right, found.said if given else "No answer."
        try:
            own[a.name] = read(str(given), a.unit)
            after = followed(a, asked, own)
            if not right and after and abs(own[a.name] / after - 1) <= a.near:
                right, said = True, "Follow-through: right from your own earlier answer."
        except ValueError:
            pass  # not read, which was said
        yield a.name, given, worth * right, worth, said


def write(target, session, students, salt, levels=()):
    """All sheets of a session, and beside them the salt, which stays with the teacher."""
    for kind in HEADS:
        (target / kind).mkdir(parents=True, exist_ok=True)
        for student, number in students.items():
            text = nbformat.writes(notebook(kind, student, number, session, levels, salt), indent=1)
            (target / kind / f"{file_name(student)}.ipynb").write_text(text + "\n", "utf-8")
    (target / "salt.txt").write_text(salt, "utf-8")


def marked(sheets, salt):
    """Returned sheets as a table with a row for each question, and what is wrong with those that cannot be marked.

    ``salt``: a function of the session.
    """
    rows, faults = {}, []
    for path in sheets:
        try:
            answers = recorded(nbformat.read(path, as_version=4))
            who = tuple(answers.get(key, "") for key in ("student", "number", "session"))
            if who in rows:
                raise ValueError(f"a second sheet of {who[0]}")
            rows[who] = list(marks(answers, salt(who[2])))
        except (ValueError, TypeError, OSError) as error:
            faults.append(f"{path.name}: {error}")
    return pd.DataFrame([(*who, *row) for who, own in rows.items() for row in own], columns=COLUMNS), faults


def plain(cell):
    """A cell as a spreadsheet shows it: what begins as a formula does gets an apostrophe."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def grade_book(table):
    """A row for each student and a column for each session, with its points: what a learning platform imports."""
    most = table.groupby(["Student", "Session"]).Of.sum().groupby("Session").max()
    table = table.assign(Session=[f"Session {k} (of {most[k]})" for k in table.Session])
    return table.pivot_table(index=["Student", "ID"], columns="Session", values="Points", aggfunc="sum")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", type=Path, default=Path("_build/assignment"))
    parser.add_argument("--salt", default="", help="what no student can guess; drawn when not given")
    parser.add_argument("--session", type=int, default=1, choices=HOMEWORK, help="of the course")
    parser.add_argument("--students", nargs="*", default=(), help="names, or a file with one name a line")
    parser.add_argument(
        "--levels", nargs="*", default=(), choices=LEVELS[1:], help="in place of the usual ones"
    )
    parser.add_argument("--mark", type=Path, help="a folder of returned sheets: mark those, make none")
    args = parser.parse_args()

    def salt(session):
        return args.salt or (args.target / f"session-{session}" / "salt.txt").read_text("utf-8")

    if args.mark:
        sheets = sorted(args.mark.glob("*.ipynb")) or sys.exit(f"no notebooks in {args.mark}")
        table, faults = marked(sheets, salt)
        table = table.map(plain)
        table.to_csv(args.mark / "details.csv", index=False)
        grade_book(table).to_csv(args.mark / "marks.csv")
        print(grade_book(table).to_string(), f"\nWrote marks.csv and details.csv to {args.mark}")
        sys.exit("\n".join(faults) or None)
    students, at = people(args.students), args.target / f"session-{args.session}"
    write(at, args.session, students, args.salt or secrets.token_hex(8), args.levels)
    print(f"Wrote sheets of {len(students)} to {at}: hand out graded and practice, keep salt.txt")


if __name__ == "__main__":
    main()
