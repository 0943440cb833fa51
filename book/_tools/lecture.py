"""Write copies of the chapters for a lecture: exercises without solutions, and nothing executed yet.

A teacher runs them live, cell by cell. Where the repository's address is set in `_config.yml`, the first cell
installs the library, so that a copy also runs in a fresh notebook of any service.
"""

from __future__ import annotations

import argparse
import copy
import re
from pathlib import Path

import nbformat
import yaml

ROOT = Path(__file__).resolve().parents[2]
START = re.compile(r"```+\{solution-start\}.*?\n```+\s*", re.S)
END = re.compile(r"```+\{solution-end\}\s*\n```+\s*", re.S)
WHOLE = re.compile(r"(?s)(```+)\{solution\}.*?\n\1\s*(?=\n|$)")
EXERCISE = re.compile(r"(?s)(```+)\{exercise\}\s*\n(?::[^\n]*\n)*\s*(.*?)\n\1")
NOTE = "*A copy for a lecture: outputs and solutions are left out; both are in the book.*"


def without_solutions(cells):
    """The cells outside of solutions; of one that a solution starts or ends in, the rest of its text."""
    kept, inside = [], False
    for cell in cells:
        if cell.cell_type == "code":
            if not inside:
                kept.append(cell)
            continue
        text = WHOLE.sub("", cell.source)
        pieces, at = [], 0
        while at < len(text):
            found = (END if inside else START).search(text, at)
            if not inside:
                pieces.append(text[at : found.start() if found else len(text)])
            if not found:
                break
            at, inside = found.end(), not inside
        rest = EXERCISE.sub(r"> **Exercise.** \2", "".join(pieces)).strip()
        if rest:
            cell.source = rest
            kept.append(cell)
    if inside:
        raise ValueError("a solution starts and does not end")
    return kept


def lecture_copy(notebook, address=""):
    """A notebook to be run live."""
    nb = copy.deepcopy(notebook)
    nb.cells = without_solutions(nb.cells)
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        cell.metadata = nbformat.from_dict({})
    first = [nbformat.v4.new_markdown_cell(NOTE, id="lecture-note")]
    if address:
        install = f'%pip install -q "inferlib[book] @ git+{address}"'
        first.append(nbformat.v4.new_code_cell(install, id="lecture-install"))
    nb.cells = [*first, *nb.cells]
    nbformat.validate(nb)
    return nb


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path)
    target = parser.parse_args().target
    target.mkdir(parents=True, exist_ok=True)
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    address = config["repository"]["url"]
    chapters = sorted((ROOT / "book").glob("*.ipynb"))
    for path in chapters:
        nb = nbformat.read(path, as_version=4)
        text = nbformat.writes(lecture_copy(nb, address), indent=1)
        (target / path.name).write_text(text + "\n", encoding="utf-8")
    print(f"Wrote {len(chapters)} lecture copies to {target}")


if __name__ == "__main__":
    main()
