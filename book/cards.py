"""The scorecard as chapters show it: tables whose numbers unfold when clicked."""

from inferlib import ledger
from inferlib.explanation import explain
from inferlib.style import table


def card(source, *artefacts, kinds=("model", "derived", "identity", "claim", "measured"), unfold=True):
    """The scorecard of some artefacts, as a chapter shows it; a click on a number unfolds how it is made.

    Parameters
    ----------
    source : str
    *artefacts : str
        Such as ``"Table 1"``; all of the source when none is given.
    kinds : tuple of str
        Which kinds of rows to show; rows that nothing computes are left out.
    unfold : bool
        Whether numbers carry what :func:`inferlib.explain` says of them; leave it off where a table of
        hundreds of rows would make the page heavy.

    Returns
    -------
    inferlib.style.Table
        Its ``frame`` is the pandas DataFrame shown.
    """
    rows = ledger.scorecard(source, *artefacts)
    rows = rows[rows.kind.isin(kinds) & (rows.grade != "-")]
    shown = _shown(rows)[["row", "column", "printed", "here", "unit", "grade", "right", "note"]]
    shown = shown.rename(columns={"row": "", "column": " "})
    kept = shown[[name for name in shown if (shown[name] != "").any()]]
    return table(kept, unfolded=_unfolded(rows) if unfold else None)


def _shown(rows):
    """The rows as a table shows them: nothing where nothing is to be said."""
    shown = rows.rename(columns={"reproduced": "here"}).replace(
        {"unit": {"1": ""}, "right": {"yes": "", "loosely worded": ""}}
    )
    stated = shown.kind == "claim"  # a true beside a true says nothing that the grade does not
    shown["printed"] = shown.printed.mask(stated, "")
    shown["here"] = shown.here.mask(stated, shown.here.map({True: "yes", False: "no"}))
    return shown


def _unfolded(rows):
    """What explain says of the number that each row has here, by place in the table."""
    trees = [explain(row).folded() for _, row in rows.iterrows()]
    return {(i, "here"): tree for i, tree in enumerate(trees) if tree}


def misses(source, *artefacts, unfold=True):
    """The rows of a source that do not come out as printed, with the reason, as a chapter shows them.

    Parameters
    ----------
    source : str
    *artefacts : str
        Such as ``"Table 1"``; all of the source when none is given.
    unfold : bool
        As for :func:`card`.

    Returns
    -------
    inferlib.style.Table
    """
    rows = ledger.scorecard(source, *artefacts)
    rows = rows[~rows.grade.isin(["exact", "holds", "-"])]
    places = zip(rows.artefact, rows.row, rows.column, strict=True)
    shown = _shown(rows)[["printed", "here", "unit", "grade", "note"]]
    shown.insert(0, "place", [", ".join(part for part in place if part) for place in places])
    return table(shown, unfolded=_unfolded(rows) if unfold else None)
