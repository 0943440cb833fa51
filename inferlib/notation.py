"""Each source's symbols against the library's names: generated, so that it cannot go stale."""

from typing import get_type_hints

from inferlib import ledger
from inferlib.equation import EQUATIONS, notation_of, quantities


class Symbols:
    """A frame whose column ``symbol`` holds LaTeX; shows itself as a Markdown table."""

    def __init__(self, frame):
        self.frame = frame

    def _repr_markdown_(self):
        rows = [[*self.frame], ["---"] * len(self.frame.columns), *self.frame.astype(str).to_numpy().tolist()]
        return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows)

    def __repr__(self):
        return self.frame.to_string(index=False)


def notation(source):
    """The symbols of one source: symbol, name in the library, unit and meaning.

    Parameters
    ----------
    source : str

    Returns
    -------
    Symbols
        Its ``frame`` is a pandas DataFrame.

    Examples
    --------
    >>> notation("erdil2025").frame.query("name == '`batch`'").symbol.item()
    '$b$'
    """
    import pandas as pd

    units = _units(source)
    rows = [
        (f"${entry['symbol']}$", f"`{name}`", _shown(units[name]), entry["meaning"])
        for name, entry in notation_of(source).items()
    ]
    return Symbols(pd.DataFrame(rows, columns=["symbol", "name", "unit", "meaning"]))


def clashes():
    """Symbols that mean different things in different sources.

    Returns
    -------
    Symbols
        One row a symbol: what it stands for in each source that uses it.
    """
    import pandas as pd

    meanings = {}
    for source in ledger._chosen(None):
        for entry in notation_of(source).values():
            meanings.setdefault(entry["symbol"], {}).setdefault(source, entry["meaning"])
    rows = [
        (f"${symbol}$", *(by_source.get(source, "") for source in ledger.sources()))
        for symbol, by_source in sorted(meanings.items())
        if len(set(by_source.values())) > 1
    ]
    return Symbols(pd.DataFrame(rows, columns=["symbol", *ledger.sources()]))


def _units(source):
    """The unit of every field, argument and function of a source's equations, by name."""
    ledger._open(source)
    units = {}
    for (key, name), entry in EQUATIONS.items():
        if key != source:
            continue
        hints = {arg: kind for arg, kind in get_type_hints(entry.function).items() if arg != "return"}
        for kind in hints.values():
            units |= {f.name: f.metadata["unit"] for f in quantities(kind)}
        units |= entry.arguments | {name: entry.unit}
    return units


def _shown(unit):
    return "" if unit == "1" else unit
