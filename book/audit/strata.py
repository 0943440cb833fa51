"""Strata of a paper: which version of its authors' program printed each of its numbers.

If a paper's program is public in several versions, the paper may have numbers of several of them. Every printed
number is graded against every version, as the scorecard grades it against this library.
"""

import numpy as np
import pandas as pd

from book import style
from book.audit.published_rows import grade_of

NAMES = ["artefact", "row", "column"]


def strata(printed, states):
    """Grade each printed number against each version of a program.

    ``printed``: place (artefact, row, column) to a printed row (:class:`book.audit.published_rows.Row`). ``states``:
    version to its values: place to a value in the printed unit; places without a value are left out. Returns a frame
    indexed by place with a column per version: ``"exact"`` if it prints the number to its last digit, another
    grade if it prints another, empty if it has none.
    """
    table = {
        name: [
            grade_of(row.text, row.resolution, given[place])[1] if place in given else ""
            for place, row in printed.items()
        ]
        for name, given in states.items()
    }
    return pd.DataFrame(table, index=pd.MultiIndex.from_tuples(printed, names=NAMES))


def counted(table):
    """Count how many numbers of each artefact each version prints, and how many there are."""
    exact = (table == "exact").groupby(level="artefact", sort=False)
    return exact.sum().assign(numbers=exact.size())


def draw(table, names=None):
    """Draw a line per number and a column per version: full if it prints the number, faded if it prints another.

    ``names``: labels of the versions.
    """
    ax = style.panels(0.36 * len(table.columns) + 1, 0.09 * len(table) + 1.5, layout=None)
    looks = {"exact": {"color": style.GREEN}, "other": {"color": style.FAINT, "alpha": 0.3}}
    for x, name in enumerate(table):
        found = table[name].where(table[name].isin(["exact", ""]), "other").reset_index(drop=True)
        for _, run in found.groupby(
            (found != found.shift()).cumsum()
        ):  # equal neighbours are drawn as one bar
            if run.iloc[0]:
                ax.bar(x + 0.5, len(run), 0.9, bottom=run.index[0], linewidth=0, **looks[run.iloc[0]])
    ax.set(xlim=(0, len(table.columns)), ylim=(len(table), 0))
    groups = table.groupby(level="artefact", sort=False).size()
    ends = groups.cumsum()
    for end in ends[:-1]:
        ax.axhline(end, color=style.INK, lw=0.6)
    ax.set_yticks(ends - groups / 2, [f"{name} ({n})" for name, n in groups.items()])
    ax.set_xticks(np.arange(len(table.columns)) + 0.5, names or list(table), rotation=90)
    ax.tick_params(length=0)
    ax.grid(False)
    return ax
