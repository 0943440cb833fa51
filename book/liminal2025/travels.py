"""LIMINAL 2025: its limit and its equation 8 held against measurements of others, which nobody fitted."""

from functools import cache

LIMIT, EQUATION_8 = "liminal2025", "liminal2025.eq8"


@cache
def answers():
    """Both answers to every clean public row.

    Returns
    -------
    pandas.DataFrame
        As :func:`book.synthesis.against.answers` returns it, rows without an answer left out.
    """
    from book.synthesis import against

    table = against.answers([LIMIT, EQUATION_8])
    return table[(table.use == "clean") & table.predicted.notna()]


def errors():
    """Errors of both by the number of chips in parallel, and in all.

    Returns
    -------
    pandas.DataFrame
        ``rows`` answered, mean absolute error of the ``limit`` and of ``eq. 8``, and the latter's mean ``signed`` one,
        in per cent.
    """
    import pandas as pd

    wide = answers().pivot(index="id", columns="who", values="error")
    chips = answers().drop_duplicates("id").set_index("id").tp.loc[wide.index]
    groups = {str(n): wide[chips == n] for n in sorted(set(chips))} | {"all": wide}
    found = {
        n: {
            "rows": len(own),
            "limit": 100 * own[LIMIT].abs().mean(),
            "eq. 8": 100 * own[EQUATION_8].abs().mean(),
            "eq. 8, signed": 100 * own[EQUATION_8].mean(),
        }
        for n, own in groups.items()
    }
    return pd.DataFrame(found).T.round(1).astype({"rows": int}).rename_axis("chips in parallel")


def numbers():
    """What the errata say of it: ``rows``, and mean absolute errors in all and on single chips."""
    table = answers().assign(size=lambda t: t.error.abs())
    eight, limit = (table[table.who == who] for who in (EQUATION_8, LIMIT))
    return {
        "eq8_rows": f"{len(eight)}",
        "eq8_all": f"{eight['size'].mean():.0%}",
        "eq8_one": f"{eight[eight.tp == 1]['size'].mean():.0%}",
        "limit_all": f"{limit['size'].mean():.0%}",
    }
