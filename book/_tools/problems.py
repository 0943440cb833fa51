"""Write a sheet of problems for each student, as a notebook that marks itself, and a key for the teacher.

A sheet holds no key: its cells compute the answer from the student's name when they are asked. So it needs the library
where it is run, and no server.
"""

from __future__ import annotations

import argparse
import re
import runpy
from pathlib import Path

import nbformat

from book.problems import BANK, TOPICS, problems
from book.problems.chains import CHAINS, chain

LECTURE = runpy.run_path(str(Path(__file__).with_name("lecture.py")))
NOTE = """# Problems for {student}

Write each answer with its unit between the quotation marks, such as `"12.3 ms"`, and run the cell: it says whether the
answer is right, which usual mistake leads to it, or how far off it is. GB is $10^9$ bytes, GiB $2^{{30}}$; a weight in
fp4 has four bits, without its scales. An answer may be off by five per cent (one line), three (short) or two (study);
a whole number under a limit is exact. Memory holds all weights; a step reads all but the input embedding, unless a
problem says otherwise. The sixth model is asked by `tokenprice.ask`, in a terminal by `tokenprice ask ... --json`."""


def names(asked):
    """Students: words, or the lines of a file."""
    text = " ".join(asked)
    lines = Path(text).read_text("utf-8").splitlines() if Path(text).is_file() else asked
    found = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not found:
        raise ValueError("no students: give names, or a file with one name a line")
    return found


def chosen(student, wanted):
    """The problems of a student: of some topics, names and chains, or all of the bank."""
    chains = {f"chain-{session}": session for session in CHAINS}
    unknown = set(wanted) - set(TOPICS) - set(BANK) - set(chains)
    if unknown:
        raise LookupError(f"no topic or problem {', '.join(sorted(unknown))}; topics are {', '.join(TOPICS)}")
    single = [a for a in problems(student) if not wanted or {a.problem.name, a.problem.topic} & set(wanted)]
    return single + [a for name in chains if name in wanted for a in chain(student, chains[name])]


def sheet(student, asked, address=""):
    """The notebook of a student."""
    cells = LECTURE["first_cells"](NOTE.format(student=student), address)
    start = f"from book.problems import checker\n\ncheck = checker({student!r})"
    cells.append(nbformat.v4.new_code_cell(start, id="check"))
    for a in asked:
        lines = "\n\n".join([f"**{a.name}** ({a.problem.level}) {a.text}", *(f"*{x}*" for x in a.facts)])
        cells.append(nbformat.v4.new_markdown_cell(lines.replace("$", r"\$"), id=a.name.replace(".", "-")))
        cells.append(nbformat.v4.new_code_cell(f'check("{a.name}", "")', id=f"{cells[-1].id}-check"))
    nb = nbformat.v4.new_notebook(cells=cells)
    nb.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.validate(nb)
    return nb


def key(sheets):
    """The teacher's key as Markdown: student, then every problem with its answer and how one gets there."""
    lines = ["# Key"]
    for student, asked in sheets.items():
        lines += ["", f"## {student}", ""]
        lines += [f"- **{a.name}**: {a.answer}. {a.worked}" for a in asked]
    return "\n".join(lines) + "\n"


def file_name(student):
    """A name for a file: letters, digits and hyphens."""
    return re.sub(r"[^\w]+", "-", student).strip("-").lower() or "student"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path)
    parser.add_argument("--students", nargs="+", required=True, help="names, or a file with one name a line")
    parser.add_argument("--problems", nargs="*", default=[], help="topics and problems, all when not given")
    args = parser.parse_args()
    students = names(args.students)
    if len({file_name(student) for student in students}) < len(students):
        raise SystemExit("two students would get the same file: add a letter to one of the names")
    args.target.mkdir(parents=True, exist_ok=True)
    sheets = {student: chosen(student, args.problems) for student in students}
    for student, asked in sheets.items():
        text = nbformat.writes(sheet(student, asked, LECTURE["address"]()), indent=1)
        (args.target / f"{file_name(student)}.ipynb").write_text(text + "\n", encoding="utf-8")
    (args.target / "key.md").write_text(key(sheets), encoding="utf-8")
    count = len(next(iter(sheets.values())))
    print(f"Wrote {len(sheets)} sheets of {count} problems and key.md to {args.target}")


if __name__ == "__main__":
    main()
