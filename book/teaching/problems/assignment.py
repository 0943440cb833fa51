"""Graded homework: sheets, a key file that the teacher keeps outside the clone, and marks from both.

A sheet is marked only with the key file it was made from, so later versions and prices change nothing. Numbers of
graded sheets are drawn from wide ranges, for invented models and chips, with a salt.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import os
import re
import secrets
import sys
from pathlib import Path

import nbformat

from book.teaching import lab
from book.teaching.problems import reading
from book.teaching.problems.bank import LEVELS, made_up, problems
from book.teaching.problems.chains import SESSIONS, chain, followed, follows
from book.teaching.problems.export import export, put
from book.teaching.problems.marking import mark, near, told
from inferlib.units import factor
from tokenprice.parsing import parse_int

ROOT = Path(__file__).parents[3]
MOST_VARIANTS = 1000
PREDICTIONS = 6  # the session whose sheet asks for measured times
FORM = """Write each answer with its unit between the quotation marks, such as `"12.3 ms"`, with a decimal point and
three digits. The last cell says how your answers are read; run it before you hand the sheet in."""
GRADED = """Nothing here says whether an answer is right; the book's page of problems does, with other numbers. In a
chain, an answer that follows correctly from a wrong earlier one gets its points."""
PREDICT = """Predict each time before you see it. The last cell prints a seal of your predictions: send it to your
teacher before the times are shown, and change nothing afterwards. A prediction within 10 % of the measurement gets
three points, within 25 % two, within 60 % one."""
FIGURES = """GB is $10^9$ bytes, GiB $2^{30}$; a weight in fp4 has four bits, without its scales. An answer may be off
by five per cent (one line, one point), three (short, two points) or two (study, three points); a whole number under a
limit is exact. Memory holds all weights; a step reads all but the input embedding, unless a problem says otherwise."""
WHO = ("student", "number", "login", "section")


def homework(student, session, draw=None):
    """Return a student's problems of a session: those that its chain does not ask, then the chain."""
    topics, levels, links = (SESSIONS[session][what] for what in ("topics", "levels", "chain"))
    single = [a for topic in topics for a in problems(student, topic, draw) if a.level in levels]
    return [a for a in single if a.entry not in links] + chain(student, session, draw)


def questions(student, session, salt, rows=None):
    """Return the questions of a graded sheet with all data for marking; numbers are plain, so that JSON keeps them.

    ``rows``: a file of measurements to be predicted.
    """
    if session == PREDICTIONS:
        return lab.questions(f"{student}/{salt}", rows)
    asked = homework(f"{student}/{salt}", session, made_up)
    links = [a for a in asked if a.within]
    return [
        told(a) | {"name": a.name, "level": a.level, "text": a.text, "facts": a.facts, "worked": a.worked,
                   "points": LEVELS.index(a.level), "si": factor(a.unit), "follows": follows(a, links)}
        for a in asked
    ]  # fmt: skip


def key_file(path, session, students, rows=None):
    """Return the key of a session with these students added; students already in it keep their sheets."""
    key = json.loads(path.read_text("utf-8")) if path.is_file() else {"session": session, "sheets": {}}
    key.setdefault("salt", secrets.token_hex(16))
    known = {sheet["student"]: sheet for sheet in key["sheets"].values()}
    for student in students:
        name = student["student"]
        if name in known:
            if any(known[name][part] != student[part] for part in WHO):
                raise SystemExit(f"{name} has a sheet already, with other details: {known[name]['number']!r}")
            continue
        asked = questions(name, session, key["salt"], rows)
        whole = json.dumps([*student.values(), session, asked, key["salt"]], sort_keys=True)
        key["sheets"][hashlib.sha256(whole.encode()).hexdigest()[:16]] = student | {"questions": asked}
    put(path, json.dumps(key, indent=1, ensure_ascii=False))
    return key


def graded(token, sheet, session):
    """Return a student's sheet as text; it contains neither library nor key nor salt."""
    record = {part: sheet[part] for part in WHO[:2]} | {"session": session, "sheet": token}
    forms = {a["name"]: {"unit": a["unit"], "units": a["units"]} for a in sheet["questions"]}
    source = Path(reading.__file__).read_text("utf-8")
    check = f"{source}\n\nprint(checked(globals().get('In', []), {forms!r}))"
    head = PREDICT if session == PREDICTIONS else f"{GRADED} {FIGURES}"
    text, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    cells = [text(f"# Session {session}: {sheet['student']}\n\n{FORM} {head}", id="top")]
    cells.append(code(f"answers = {record!r}", id="start"))
    for a in sheet["questions"]:
        lines = [f"**{a['name']}** ({a['level']}) {a['text']}", *(f"*{fact}*" for fact in a["facts"])]
        cells.append(text("\n\n".join(lines).replace("$", r"\$"), id=a["name"].replace(".", "-")))
        cells.append(code(f'answers["{a["name"]}"] = ""', id=f"{cells[-1].id}-answer"))
    cells.append(code(check, id="check", metadata={"jupyter": {"source_hidden": True}}))
    made = nbformat.v4.new_notebook(cells=cells)
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.validate(made)
    return nbformat.writes(made, indent=1) + "\n"


def people(asked):
    """Return the students of a class, from a file with a line each (name; ID; login; section) or names with commas."""
    is_file = os.path.isfile(asked)  # also for very many names, where Path raises
    if not is_file and re.search(r"[/\\]|\.\w+$", asked):
        raise SystemExit(f"there is no file {asked}")
    lines = Path(asked).read_text("utf-8-sig").splitlines() if is_file else asked.split(",")
    found = []
    for line in filter(str.strip, lines):
        parts = [part.strip() for part in re.split("[;\t]", line)]
        if "," in line or len(parts) > len(WHO):
            raise SystemExit(
                f"{line!r} is no student: write name; ID; login; section, of which the name is enough"
            )
        found.append(dict.fromkeys(WHO, "") | dict(zip(WHO, parts, strict=False)))
    names = [file_name(one["student"]) for one in found]
    double = next((name for name in names if names.count(name) > 1), None)
    if double:
        raise SystemExit(f"two students would get the file {double}")
    return found or sys.exit("no students: give names, or a file")


def file_name(student):
    """A name for a file."""
    return re.sub(r"\W+", "-", student).strip("-").lower() or "student"


def marked(sheet, given):
    """Return each question of a sheet with its answer, points, and feedback."""
    own = {a["name"]: a["value"] * a["si"] for a in sheet["questions"]}
    for a in sheet["questions"]:
        answer, points = given.get(a["name"], ""), 0
        if isinstance(answer, ValueError):
            answer, said = "", f"Not read: {answer}."
        elif answer in ("", None):
            answer, said = "", "No answer."
        elif "bands" in a:
            points, said = lab.points(a, str(answer))
        else:
            verdict = mark(a, str(answer))
            points, said = a["points"] * verdict.right, verdict.said
            try:
                value = reading.quantity(str(answer), a) * a["si"]
                after = followed(a["follows"], own) if a["follows"] and not points else 0
                if after > 0 and near(value, after, a["tolerance"]):
                    points, said = a["points"], "Follow-through: right from your own earlier answer."
                own[a["name"]] = value if value > 0 else own[a["name"]]
            except (ValueError, OverflowError):
                pass  # not readable, which was reported already
        yield a, str(answer), points, said


def code_of(path):
    """The sources of the code cells of a notebook."""
    cells = json.loads(path.read_bytes().decode("utf-8-sig")).get("cells")
    if not cells:
        raise ValueError("a notebook without cells")
    return ["".join(cell["source"]) for cell in cells if cell.get("cell_type") == "code"]


def collected(folder, keys, seals):
    """Return returned sheets by token (the better one per student), and faults of the others by file."""
    found, faults = {}, []
    for path in sorted(folder.rglob("*.ipynb")):
        if ".ipynb_checkpoints" in path.parts:
            continue
        try:
            given = reading.written(code_of(path))
            token = given.get("sheet")
            if token not in keys:
                raise ValueError("no key file knows this sheet; its first code cell is gone or changed")
            sheet = keys[token]
            if any(given.get(part) != sheet[part] for part in WHO[:2]):
                raise ValueError(
                    f"the name or number in it is not that of {sheet['student']}, whose sheet it is"
                )
            if seals is not None and seals.get(sheet["student"]) != reading.seal(
                given, [a["name"] for a in sheet["questions"]]
            ):
                raise ValueError("these are not the predictions that were sealed")
            rows = list(marked(sheet, given))
            points = sum(row[2] for row in rows)
            if token in found:
                best, other = sorted([(points, path, rows), found[token]], key=lambda one: -one[0])
                found[token] = best
                raise ValueError(
                    f"a second sheet of {sheet['student']}: {best[1].name} counts, {other[1].name} does not"
                )
            found[token] = (points, path, rows)
        except Exception as error:  # whatever this sheet contains, mark the others
            said = str(error) if isinstance(error, ValueError) and str(error) else type(error).__name__
            faults.append((path.relative_to(folder).as_posix(), said))
    return found, faults


def plain(cell):
    """Escape a cell for spreadsheets: an apostrophe before anything that starts like a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def table(head, rows):
    """A table as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *([plain(cell) for cell in row] for row in rows)])
    return text.getvalue()


def give_marks(folder, keys, seals=None):
    """Write marks.csv, details.csv and a feedback file per student; return the marks and the faults.

    Students who handed in nothing have an empty mark; a session without any returned sheet has no column.
    """
    known = {token: (key, sheet) for key in keys for token, sheet in key["sheets"].items()}
    found, faults = collected(folder, {token: sheet for token, (_, sheet) in known.items()}, seals)
    if not found:
        lines = [f"no sheet in {folder} can be marked; nothing was written", *map(": ".join, faults)]
        raise SystemExit("\n".join(lines))
    came = {known[token][0]["session"] for token in found}
    details, book, most = [], {}, {}
    for token, (key, sheet) in known.items():
        session, whole = key["session"], sum(a["points"] for a in sheet["questions"])
        if session not in came:
            continue
        most[session] = max(most.get(session, 0), whole)
        marks = book.setdefault(tuple(sheet[part] for part in WHO), {})
        if token in found:
            marks[session], path, rows = found[token]
            lines = [f"# Session {session}: {sheet['student']}, {marks[session]} of {whole} points"]
            for a, answer, own, said in rows:
                who = [sheet["student"], sheet["number"], session, path.name]
                details.append([*who, a["name"], answer, own, a["points"], said])
                lines.append(f"**{a['name']}** {own} of {a['points']}. {a['text']}")
                lines.append(f"Your answer: `{answer}`. {said} {a['worked']}")
            name = f"{file_name(sheet['student'])}-{session}.md"
            put(folder / "feedback" / name, "\n\n".join(lines) + "\n")
    details += [["", "", "", path, "", "", "", "", f"not marked: {said}"] for path, said in faults]
    head = ["Student", "ID", "SIS Login ID", "Section", *(f"Session {k} (of {most[k]})" for k in most)]
    text = table(head, [[*who, *(marks.get(k, "") for k in most)] for who, marks in book.items()])
    heads = "Student ID Session Sheet Question Answer Points Of Said".split()
    put(folder / "details.csv", table(heads, details))
    put(folder / "marks.csv", text)
    return text, faults


OPTIONS = {
    "session": "of the course",
    "students": "a file, or names with commas between them",
    "target": "a folder for the sheets",
    "keys": "a folder outside the clone; beside it when not given",
    "rows": "a file of measurements to be predicted in session 6",
    "variants": "how many of each problem, for a learning platform; no sheets are made",
    "mark": "a folder of returned sheets; no sheets are made",
    "seals": "a file with a line (name; seal) for each student",
}


def outside(keys):
    """Return the folder of keys, which must be outside the clone (default: beside it)."""
    folder = Path(keys or ROOT.parent / f"{ROOT.name}-keys").resolve()
    if folder.is_relative_to(ROOT):
        raise SystemExit(f"the keys must not lie in the clone: give KEYS= a folder outside {ROOT}")
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for option, meaning in OPTIONS.items():
        parser.add_argument(f"--{option}", default="", help=meaning)
    args = parser.parse_args()
    session = int(args.session) if args.session.isdigit() else 0
    if session not in [*SESSIONS, PREDICTIONS] and not args.mark:
        sys.exit(f"SESSION is {args.session!r}, but must be a number from 1 to {PREDICTIONS}")
    keys = outside(args.keys)
    if args.variants:
        return export(keys, session, parse_int("VARIANTS", args.variants, most=MOST_VARIANTS))
    if args.mark:
        files = sorted(keys.glob("session-*.json")) or sys.exit(
            f"no key file in {keys}: give KEYS= their folder"
        )
        lines = Path(args.seals).read_text("utf-8-sig").splitlines() if args.seals else []
        seals = {name.strip(): seal.strip() for name, _, seal in (line.partition(";") for line in lines)}
        made = [json.loads(file.read_text("utf-8")) for file in files]
        text, faults = give_marks(Path(args.mark), made, seals or None)
        print(text, *map(": ".join, faults), sep="\n")
        return print(f"Wrote marks.csv, details.csv and feedback to {args.mark}")
    students, at = people(args.students), Path(args.target or "_build/assignment") / f"session-{session}"
    key = key_file(keys / f"session-{session}.json", session, students, args.rows or None)
    for token, sheet in key["sheets"].items():
        if sheet["student"] in [one["student"] for one in students]:
            put(at / f"{file_name(sheet['student'])}.ipynb", graded(token, sheet, session))
    return print(f"Wrote sheets of {len(students)} to {at}; keep {keys}, the key is there")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # a missing or malformed file
        sys.exit(str(error))
