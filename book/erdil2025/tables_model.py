"""Erdil 2025, sections 3 to 5: everything the complete model prints, recomputed."""

import math
from functools import partial

from book.erdil2025 import economics
from book.erdil2025.claims.economics import captions
from inferlib.ledger import Noted, reproduces
from inferlib.papers.erdil2025.records import chips
from inferlib.units import factor

reproduces = partial(reproduces, "erdil2025")


def _cells(table):
    """The cells of one of Tables 2 to 6: each point found on its frontier, its time computed by the equations."""
    cells = {}
    rows = {row: asked for (name, row), asked in economics.settings().items() if name == table}
    found = economics.curves([setting for setting, _ in rows.values()])
    for (row, (setting, point)), curve in zip(rows.items(), found, strict=True):
        at = point(curve)
        seconds = economics.seconds_at(setting, at)
        price = chips[setting.get("chip", "H100")].price * factor("usd/h")
        cells[row, "tokens per second"] = 1 / seconds
        cells[row, "GPUs"] = at.n_gpu
        if point is not economics.fastest:
            cells[row, "batch"] = _rounded_twice(at.batch)
            cells[row, "price of a million tokens"] = at.n_gpu * seconds / at.batch * price
    return cells


def _rounded_twice(value):
    """A batch, with a remark where rounding to two digits first changes the integer."""
    first = round(value, 2)
    if round(value) == math.floor(first + 0.5):
        return value
    return Noted(value, f"rounded twice: {value:.3f} is {first:.2f} with two digits, and that rounds up")


@reproduces("Table 2")
def _table_2(read):
    return _cells("Table 2") | captions("Table 2")


@reproduces("Table 3")
def _table_3(read):
    return _cells("Table 3") | captions("Table 3")


@reproduces("Table 4")
def _table_4(read):
    return _cells("Table 4") | captions("Table 4")


@reproduces("Table 5")
def _table_5(read):
    return _cells("Table 5") | captions("Table 5")


@reproduces("Table 6")
def _table_6(read):
    return _cells("Table 6") | captions("Table 6")
