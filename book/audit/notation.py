"""Tables of each source's symbols and the library's names for them, generated from the code."""

import re
from importlib import import_module

import pandas as pd

from book.audit import grading
from inferlib.equation import EQUATIONS, notation_of, quantities, record_arguments


class Symbols:
    """A frame whose column ``symbol`` has LaTeX; shows as a Markdown table."""

    def __init__(self, frame):
        self.frame = frame

    def _repr_markdown_(self):
        rows = [[*self.frame], ["---"] * len(self.frame.columns), *self.frame.astype(str).to_numpy().tolist()]
        return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows)

    def __repr__(self):
        return self.frame.to_string(index=False)


def notation(source):
    """Return the symbols of one source: symbol, how to type it, name in the library, unit and meaning.

    ``source``: key of a source, or ``"principles"``. The result's ``frame`` is a pandas DataFrame.

    Examples
    --------
    >>> notation("erdil2025").frame.query("name == '`batch`'").symbol.item()
    '$b$'
    """
    units = _units(source)
    rows = [
        (f"${e['symbol']}$", f"`{typed(e['symbol'])}`", f"`{name}`", _shown(units[name]), e["meaning"])
        for name, e in notation_of(source).items()
    ]
    return Symbols(pd.DataFrame(rows, columns=["symbol", "typed", "name", "unit", "meaning"]))


def typed(symbol):
    r"""Return a symbol as a reader would type it in a search.

    Examples
    --------
    >>> typed(r"\beta_{eb}"), typed(r"T_{\text{TP},N}"), typed(r"d_c^{\prime}")
    ('beta_eb', 'T_TP,N', "d_c'")
    """
    plain = re.sub(
        r"\\(?:text|mathrm|operatorname)\b|\^\{\\prime\}", lambda m: "'" if "prime" in m[0] else "", symbol
    )
    return " ".join(re.sub(r"[\\{}$]|\\,", "", plain).split())


def clashes():
    """Return the symbols that mean different things in different sources.

    One row per symbol, with its meaning in each source that uses it.
    """
    uses = {}  # symbol -> source -> names in the library
    for source in grading.sources():
        for name, entry in notation_of(source).items():
            uses.setdefault(entry["symbol"], {}).setdefault(source, []).append(name)
    rows = []
    for symbol, by_source in sorted(uses.items()):
        if len({name for names in by_source.values() for name in names}) > 1 and len(by_source) > 1:
            meant = (
                "; ".join(notation_of(s)[n]["meaning"] for n in by_source.get(s, ()))
                for s in grading.sources()
            )
            rows.append((f"${symbol}$", *meant))
    return Symbols(pd.DataFrame(rows, columns=["symbol", *grading.sources()]))


def _units(source):
    """Return the unit of every field, argument and function of a source's equations, by name."""
    if source in grading.sources():
        grading._open(source)
    else:
        import_module(f"inferlib.{source}")
    units = {}
    for (key, name), entry in EQUATIONS.items():
        if key != source:
            continue
        for kind in record_arguments(entry.function).values():
            units |= {f.name: f.metadata["unit"] for f in quantities(kind)}
        units |= entry.arguments | {name: entry.unit}
    return units


def _shown(unit):
    return "" if unit == "1" else unit
