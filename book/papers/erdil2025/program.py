"""The author's public program: its 17 states, and what each gives for the rows of Tables 2 to 6, run as it stands.

The numbers were made by the author's own files at each commit, which are not copied here:
``program_states.csv`` names the commits, ``program_points.csv`` has the points of their frontiers.
"""

from functools import cache
from importlib.resources import files

import pandas as pd

FIRST, LAST = "70808dc", "c2c4fa9"  # of 1 August 2024 and of 27 May 2025


@cache
def _read(name):
    with (files(__package__) / name).open(encoding="utf-8") as lines:
        return pd.read_csv(lines, dtype={"commit": str})


def states():
    """The states of the program in their order: commit, date, its exponent alpha, whose repository, title."""
    return _read("program_states.csv").copy()


@cache
def points():
    """Points of the frontiers of all states, indexed by commit, model, chip, draft, pipeline and point."""
    table = _read("program_points.csv")
    return table.set_index(list(table)[:6]).sort_index()


def point(commit, model, draft=False, at="alpha 3", chip="H100", pipeline="as written"):
    """A point of a frontier as one state of the program gives it.

    ``at``: ``"fastest"``, ``"alpha 3"`` or ``"alpha 4"``. ``pipeline``: ``"as written"`` for the states that have no
    such choice, else ``"yes"`` or ``"no"``. Raises LookupError where that state has no such model.
    """
    asked = (commit, model, chip, "yes" if draft else "no", pipeline, at)
    if asked not in points().index:
        raise LookupError(f"the program has no point {', '.join(asked)}")
    return points().loc[asked]
