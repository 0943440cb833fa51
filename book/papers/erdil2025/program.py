"""The author's public program: its 17 versions, and their results for the rows of Tables 2 to 6.

The numbers were made by the author's own files at each commit, run unchanged (one of them without its assertions, which
fail on grids); the files are not copied here. ``program_states.csv`` names the commits, ``program_points.csv`` has
points of their frontiers. A version that computes the same as an earlier one names it. Versions 60cac00 to ce1e5a5 take
hours for a whole grid, so only its points of few GPUs and small batches were computed; no stored point lies at that
border. The last is this library's own model, which agrees with its file in all stored digits.
"""

from functools import cache, partial

from book import stored
from book.audit.grading import published
from book.audit.strata import counted as counts, strata
from book.papers.erdil2025 import economics
from book.papers.erdil2025.readings import TABLE_5
from inferlib.papers.erdil2025.records import PRINTED

FIRST, FIXED = (
    "70808dc",
    "982bd86",
)  # of 1 August 2024, and of the 5th, which mends the reads of drafted tokens
MAY, LAST = "48915d1", "c2c4fa9"  # of 22 and 27 May 2025
NOT_PUBLIC = "not public"  # the version that made Table 5, by the assumptions that print it


@cache
def _read(name):
    return stored.rows(f"papers/erdil2025/{name}", dtype={"commit": str, "runs_as": str})


def states():
    """Return the versions of the program in order.

    Columns: commit, date, its exponent alpha, repository, the commit whose frontiers it has, title.
    """
    return _read("program_states.csv").copy()


@cache
def _points():
    table = _read("program_points.csv")
    return table.set_index(list(table)[:5]).sort_index()


def point(commit, model, draft=False, at="alpha 3", chip="H100"):
    """Return a point of a frontier computed by one version of the program.

    ``at``: ``"fastest"``, ``"alpha 3"`` or ``"alpha 4"``. Raises LookupError if that version has no such model.
    """
    runs_as = states().set_index("commit").runs_as[commit]
    asked = (runs_as, model, chip, "yes" if draft else "no", at)
    if asked not in _points().index:
        raise LookupError(f"the program has no point {', '.join((commit, *asked[1:]))}")
    return _points().loc[asked]


def drafting_gain(commit):
    """Per cent that drafts gain for Llama 3 70B between preferred points, by one state of the program."""
    plain, drafted = (point(commit, "Llama 3 70B", draft).tokens_per_second for draft in (False, True))
    return 100 * (drafted / plain - 1)


def _cells(at):
    """Return the values of one version for Tables 2 to 6 and the gains of section 4.1, in the printed unit.

    ``at``: a function of a row's setting and of the point that it shows.
    """
    given = {}
    for (table, row), (setting, which) in economics.settings().items():
        try:
            found = at(setting, "fastest" if which is economics.fastest else "alpha 3")
        except LookupError:
            continue
        given |= {(table, row, name): float(found[column]) for name, column in economics.COLUMNS.items()}
    for place, name in _GAINS.items():
        speeds = [given.get(("Table 5", name + suffix, "tokens per second")) for suffix in (" (S)", "")]
        if None not in speeds:
            times = round(speeds[0]) / round(speeds[1])  # of the digits that a table prints
            given[place] = 100 * (times - 1) if place[1].startswith("gain") else times
    return given


def layers():
    """Return which version prints each number of Tables 2 to 6, section 4.1 and the alphas (see ``strata``)."""
    printed = {
        place: row
        for place, row in published("erdil2025").items()
        if (place[0] in _TABLES and row.kind == "model") or place in _GAINS or place[1] == "alpha"
    }
    given = {}
    for state in states().itertuples():
        made = partial(_ours, PRINTED) if state.commit == LAST else partial(_of, state.commit)
        given[state.commit] = _cells(made) | {place: state.alpha for place in printed if place[1] == "alpha"}
    given[NOT_PUBLIC] = _cells(partial(_ours, TABLE_5))
    return strata(printed, given)


def dated():
    """Return the versions' labels in a figure: date and commit, and the one that is not public."""
    return [*(f"{one.date}, {one.commit}" for one in states().itertuples()), NOT_PUBLIC]


def counted(layers):
    """Each state with its date, alpha and title, and how many of the numbers of each artefact it prints."""
    found = counts(layers)
    shown = found.drop(columns="numbers").T
    shown.columns = [f"{name} (of {n})" for name, n in found.numbers.items()]
    about = states().set_index("commit")[["date", "alpha", "title"]].astype(object)
    about.loc[NOT_PUBLIC] = ["", 3, "what prints Table 5"]
    return about.join(shown, how="right").reset_index(names="state")


_TABLES = tuple(f"Table {n}" for n in range(2, 7))
_GAINS = {
    ("Text 4.1", "gain of drafts at one cost", "Llama 3 70B"): "Llama 3 70B",
    ("Text 4.1", "factor of drafts at one cost", "Llama 3.1 405B"): "Llama 3.1 405B",
}


def _of(commit, setting, which):
    return point(commit, setting["model"], bool(setting.get("draft")), which, setting.get("chip", "H100"))


def _ours(assumptions, setting, which):
    curve = economics.curve(**setting | {"assumptions": assumptions})
    return economics.fastest(curve) if which == "fastest" else economics.preferred(curve)
