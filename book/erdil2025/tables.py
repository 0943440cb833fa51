"""Erdil 2025: its tables, recomputed."""

import math
from functools import partial

import pandas as pd

from book.audit.explanation import inputs, named
from book.audit.ledger import Noted, Reader, grade_of, published, reproduces
from book.erdil2025 import economics
from inferlib.papers.erdil2025.equations import toy
from inferlib.papers.erdil2025.records import FIGURE_1, FIGURE_1_CAPPED, ToyAssumptions, chips, models
from inferlib.units import factor

reproduces = partial(reproduces, "erdil2025")
H100, PRINTED = chips["H100"], ToyAssumptions()
MODELS = ("Llama 3 8B", "Llama 3 70B", "GPT-3", "PaLM-540B", "GPT-4")
SERVED = ("Llama 3 8B", "Llama 3 70B")


def table_1(assumptions=PRINTED, chip=H100):
    """Table 1: the most tokens per second of five models, and the GPUs of the instance that makes them."""
    rows = {}
    for name in MODELS:
        model, chip = assumptions.applied_to(models[name], chip)
        speed = 1 / toy.minimum_latency(model, chip, assumptions.t_hop)
        rows[name] = (speed, toy.optimal_n_gpu(model, chip, assumptions.t_hop))
    return pd.DataFrame.from_dict(rows, orient="index", columns=["tokens_per_second", "n_gpu"])


@reproduces("Table 1")
def _table_1(read, assumptions=PRINTED):
    cells = {}
    for name, row in table_1(assumptions).iterrows():
        cells[name, "tokens per second"] = row.tokens_per_second
        cells[name, "GPUs"] = row.n_gpu
    return cells


def table_1_with_parallel():
    """Table 1 under the paper's headings, and with two all-reduces a layer where attention is parallel."""
    heads = ["maximum tokens per second", "optimal instance size (GPUs)"]
    both = table_1().set_axis(heads, axis=1), table_1(ToyAssumptions.parallel()).set_axis(heads, axis=1)
    return both[0].join(both[1], rsuffix=", parallel attention").reset_index(names="model name")


def nominal_table_1():
    """Table 1 with the models' nominal sizes in place of the paper's parameter counts, and the sizes."""
    billions = dict(zip(MODELS, (8, 70, 175, 540, 1800), strict=True))
    t_hop = ToyAssumptions().t_hop
    named = {name: models[name].replace(n_params=1e9 * size) for name, size in billions.items()}
    return {
        name: (1 / toy.minimum_latency(model, H100, t_hop), toy.optimal_n_gpu(model, H100, t_hop))
        for name, model in named.items()
    }


def ablation():
    """Table 1 under one changed assumption at a time: what survives, and what Llama 3 70B would be.

    Returns one row a variant: cells of Table 1 that still print as printed, and two cells of Llama 3 70B.
    """
    printed = [
        row for row in published("erdil2025").values() if row.artefact == "Table 1" and row.kind == "model"
    ]
    nominal = pd.DataFrame.from_dict(
        nominal_table_1(), orient="index", columns=["tokens_per_second", "n_gpu"]
    )
    variants = {
        "as printed": table_1(),
        "nominal parameter counts": nominal,
        "two all-reduces for parallel attention": table_1(ToyAssumptions.parallel()),
        "attainable in place of peak rates": table_1(PRINTED.replace(capped=True)),
        "a hop of 2 us": table_1(PRINTED.replace(t_hop=2e-6)),
        "a hop of 0.5 us": table_1(PRINTED.replace(t_hop=0.5e-6)),
    }
    rows = []
    for name, cells in variants.items():
        values = {"tokens per second": cells.tokens_per_second, "GPUs": cells.n_gpu}
        same = [
            grade_of(row.text, row.resolution, values[row.column][row.row])[1] == "exact" for row in printed
        ]
        llama = cells.loc["Llama 3 70B"]
        rows.append((name, sum(same), llama.tokens_per_second, llama.n_gpu))
    columns = ["assumption changed", "cells as printed, of 10", "70B tokens/s", "70B GPUs"]
    return pd.DataFrame(rows, columns=columns)


def served(name, assumptions=FIGURE_1, demand="small"):
    """A quoted offer against a frontier of Figure 1 at the printed rent.

    ``demand``: ``"small"`` or ``"large"``: the total demand of the figure's two curves. Returns fastest speed
    over the served one, and price over the cost at the served speed; NaN where the frontier does not reach
    that speed.
    """
    read = Reader("erdil2025", "Text 2.2.2")
    speed = read(f"{name} at Fireworks", "tokens per second")
    price = read(f"{name} at Fireworks", "price of a million tokens") / factor("usd/Mtok")
    demand = read("total demand", demand, artefact="Figure 1")
    rent = read("rent of one GPU") / factor("usd/h")
    frontier = toy.toy_frontier(models[name], H100, demand=demand, price=rent, assumptions=assumptions)
    reached = frontier[frontier.tokens_per_second >= speed]
    return {
        "fastest": frontier.tokens_per_second.max(),
        "fastest over served": frontier.tokens_per_second.max() / speed,
        "cost": reached.usd_per_million.min(),
        "price over cost": price / reached.usd_per_million.min(),
    }


def served_in_both_readings():
    """The offers against the frontiers of both readings of Figure 1, at both of its demands.

    Returns one row a reading, demand and model; an empty cell where the frontier ends below the served speed.
    """
    readings = {"peak rates": FIGURE_1, "attainable rates": FIGURE_1_CAPPED}
    rows = [
        {"reading": reading, "demand": demand, "model": name} | served(name, assumptions, demand)
        for reading, assumptions in readings.items()
        for demand in ("small", "large")
        for name in SERVED
    ]
    return pd.DataFrame(rows).drop(columns=["fastest", "cost"]).astype(object).fillna("")


def _cells(table, assumptions):
    """The cells of one of Tables 2 to 6: each point found on its frontier, its time computed by the equations."""
    cells = {}
    rows = {row: asked for (name, row), asked in economics.settings(assumptions).items() if name == table}
    found = economics.curves([setting for setting, _ in rows.values()])
    for (row, (setting, point)), curve in zip(rows.items(), found, strict=True):
        at = point(curve)
        seconds = economics.seconds_at(setting, at)
        price = inputs(chips[setting.get("chip", "H100")]).price * factor("usd/h")
        which = "fastest" if point is economics.fastest else "preferred"
        gpus = named(f"GPUs at the {which} point of the search", float(at.n_gpu))
        cells[row, "tokens per second"] = 1 / seconds
        cells[row, "GPUs"] = gpus
        if point is not economics.fastest:
            batch = named("batch at the preferred point of the search", float(at.batch))
            cells[row, "batch"] = _rounded_twice(batch)
            cells[row, "price of a million tokens"] = gpus * seconds / batch * price
    return cells


def _rounded_twice(value):
    """A batch, with a remark where rounding to two digits first changes the integer."""
    first = round(value, 2)
    if round(value) == math.floor(first + 0.5):
        return value
    return Noted(value, f"rounded twice: {value:.3f} is {first:.2f} with two digits, and that rounds up")


for _name in ("Table 2", "Table 3", "Table 4", "Table 5", "Table 6"):
    reproduces(_name)(lambda read, assumptions=economics.DEFAULT, name=_name: _cells(name, assumptions))
