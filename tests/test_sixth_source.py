"""A sixth source takes two folders: a made-up one, written into a copy of the tree, passes all general tests."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from facts import refused

from book.site.tools import new_paper

ROOT = Path(__file__).parents[1]
GENERAL = [
    f"tests/test_{name}.py" for name in ("equations", "grading", "explorer", "floors", "papers", "sweeps")
]
USE = """
from book import audit
import inferlib, json
for chapter in ("tiny2026", "tiny2026_record"):
    shown = {}
    for cell in json.load(open(f"book/{chapter}.ipynb"))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), shown)
card = audit.scorecard("tiny2026").set_index("row")
print(card.grade["time"], card.grade["speed"], card.grade["a token takes less than a hundredth of a second"])
print(card.right["speed"], audit.equations("tiny2026").number[0], audit.errata("tiny2026").corrected[0])
print(inferlib.papers.sources()[-1], inferlib.papers.label("tiny2026"))
"""


def test_two_folders_are_enough(tmp_path):
    for one in ("inferlib", "tokenprice", "book", "tests"):
        shutil.copytree(ROOT / one, tmp_path / one, ignore=shutil.ignore_patterns("__pycache__", "*.ipynb"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    new_paper.write("tiny2026", tmp_path)

    def python(*arguments):
        # a build of its own: it would clear away what this tree has kept
        there = {**os.environ, "PYTHONPATH": str(tmp_path), "TOKENPRICE_BUILD": str(tmp_path / "_build")}
        run = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, env=there, capture_output=True, text=True
        )
        assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
        return run.stdout

    asked = "tiny2026 or test_floors and import"
    python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "-k", asked, *GENERAL)
    _, *found = python("-c", USE).splitlines()
    assert found == ["Tiny 2026: 4.79 ms", "exact consistent holds", "no 1 125", "tiny2026 Tiny 2026"]


test_a_source_is_written_under_a_new_key = refused(globals())
