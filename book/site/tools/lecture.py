"""Write copies of the stories for a lecture: exercises without solutions, and no outputs.

A teacher runs them live, cell by cell; pages without exercises need no copy. If the repository's address is set in
`_config.yml`, the first cells fetch the library, so that a copy also runs in a fresh notebook of any service.
"""

from __future__ import annotations

import argparse
import copy
import re
from functools import cache
from pathlib import Path

import nbformat

from book.site.tools.metadata import installing, load_config
from book.site.tools.standalone_notebooks import plain

ROOT = Path(__file__).resolve().parents[3]
# A solution within one cell, or the part of one that starts or ends in a cell.
SOLUTION = re.compile(
    r"(```+)\{solution\}.*?\n\1\s*(?=\n|$)"
    r"|```+\{solution-start\}(?:(?!\{solution-end\}).)*?(?:\{solution-end\}\s*\n```+\s*|\Z)"
    r"|\A(?:(?!\{solution-start\}).)*?\{solution-end\}\s*\n```+\s*",
    re.S,
)
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!\w+:|#)([^)#?]+)[^)]*\)")
NOTE = "*A copy for a lecture: outputs and solutions are left out; both are in the book.*"


@cache
def stories():
    """Return the notebooks with exercises."""
    return [
        path for path in sorted((ROOT / "book").glob("*.ipynb")) if "{exercise}" in path.read_text("utf-8")
    ]


def near_links(text):
    """Replace links to pages that are not copied by their text."""
    copied = {path.name for path in stories()}
    return LINK.sub(lambda link: link[0] if link[2] in copied else link[1], text)


def without_solutions(cells):
    """Return the cells without solutions; if a solution starts or ends within a cell, keep the rest of its text."""
    kept, inside = [], False
    for cell in cells:
        if cell.cell_type == "code":
            kept += [] if inside else [cell]
            continue
        starts, ends = (cell.source.count(f"{{solution-{what}}}") for what in ("start", "end"))
        rest = "" if inside and not ends else SOLUTION.sub("", cell.source)
        inside = inside + starts - ends > 0
        cell.source = near_links(plain(rest))
        kept += [cell] if cell.source else []
    if inside:
        raise ValueError("a solution starts and does not end")
    return kept


def lecture_copy(notebook, address=""):
    """Return a copy of a notebook for a lecture."""
    nb = copy.deepcopy(notebook)
    nb.cells = [cell for cell in without_solutions(nb.cells) if cell.id != "install"]
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        cell.metadata = nbformat.from_dict({})
    first = [nbformat.v4.new_markdown_cell(NOTE, id="lecture-note")]
    if address:
        first.append(nbformat.v4.new_code_cell(installing(address), id="install"))
    nb.cells = [*first, *nb.cells]
    nbformat.validate(nb)
    return nb


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path)
    target = parser.parse_args().target
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob("*.ipynb"):
        old.unlink()
    _, address = load_config()
    for path in stories():
        nb = nbformat.read(path, as_version=4)
        text = nbformat.writes(lecture_copy(nb, address), indent=1)
        (target / path.name).write_text(text + "\n", "utf-8")
    print(f"Wrote {len(stories())} lecture copies to {target}")


if __name__ == "__main__":
    main()
