"""Erdil 2025: its tables, recomputed."""

import math

import pandas as pd

from book.audit.explanations import inputs, named
from book.audit.grading import Reader, WithNote, reproduces
from book.papers.erdil2025 import economics, frontiers
from book.papers.erdil2025.figures import READINGS
from book.papers.erdil2025.readings import FIGURE_1
from inferlib.papers.erdil2025.equations import toy
from inferlib.papers.erdil2025.records import ToyAssumptions, load_chip, load_model
from inferlib.units import factor

H100, TOY = load_chip("H100"), ToyAssumptions()
MODELS = ("Llama 3 8B", "Llama 3 70B", "GPT-3", "PaLM-540B", "GPT-4")
SERVED = ("Llama 3 8B", "Llama 3 70B")


@reproduces("Table 1")
def _table_1(assumptions=TOY):
    found = {}
    for name in MODELS:
        at = *assumptions.applied_to(load_model(name), H100), assumptions.t_hop
        found[name, "tokens per second"] = 1 / toy.minimum_latency(*at)
        found[name, "GPUs"] = toy.optimal_n_gpu(*at)
    return found


def table_1(assumptions=TOY):
    """Table 1: the most tokens per second of five models, and the GPUs of the instance that makes them."""
    table = pd.Series(_table_1(assumptions)).unstack()
    return table.loc[list(MODELS), ["tokens per second", "GPUs"]].set_axis(
        ["tokens_per_second", "n_gpu"], axis=1
    )


def table_1_with_parallel():
    """Table 1 under the paper's headings, and with two all-reduces a layer where attention is parallel."""
    heads = ["maximum tokens per second", "optimal instance size (GPUs)"]
    plain, parallel = (table_1(a).set_axis(heads, axis=1) for a in (TOY, ToyAssumptions.parallel()))
    return plain.join(parallel, rsuffix=", parallel attention").reset_index(names="model name")


def served(name, assumptions=FIGURE_1, demand="small"):
    """A quoted offer against a frontier of Figure 1, for its ``small`` or ``large`` demand, at the printed rent.

    NaN over the cost where the frontier does not reach the served speed.
    """
    read, place = Reader("erdil2025", "Text 2.2.2"), f"{name} at Fireworks"
    speed, price = read(place, "tokens per second"), read(place, "price of a million tokens")
    demand = read("total demand", demand, artefact="Figure 1")
    rent = read("rent of one GPU") / factor("usd/h")
    frontier = frontiers.toy_frontier(
        load_model(name), H100, demand=demand, price=rent, assumptions=assumptions
    )
    fastest = frontier.tokens_per_second.max()
    cost = frontier.usd_per_million[frontier.tokens_per_second >= speed].min()
    over_cost = price / factor("usd/Mtok") / cost
    return {"fastest": fastest, "fastest over served": fastest / speed, "price over cost": over_cost}


def served_in_both_readings():
    """The offers against the frontiers of both readings of Figure 1, at both of its demands."""
    rows = [
        {"reading": reading, "demand": demand, "model": name} | served(name, assumptions, demand)
        for reading, assumptions in READINGS.items()
        for demand in ("small", "large")
        for name in SERVED
    ]
    return pd.DataFrame(rows).drop(columns="fastest").astype(object).fillna("")


@reproduces("Table 2", "Table 3", "Table 4", "Table 5", "Table 6")
def _points(read, assumptions=economics.PRINTED):
    """The cells of one of Tables 2 to 6: each point found on its frontier, its time computed by the equations."""
    cells = {}
    for (table, row), (setting, point) in economics.settings(assumptions).items():
        if table != read.artefact:
            continue
        at = point(economics.curve(**setting))
        seconds = economics.seconds_at(setting, at)
        price = inputs(load_chip(setting.get("chip", "H100"))).price * factor("usd/h")
        which = "fastest" if point is economics.fastest else "preferred"
        gpus = named(f"GPUs at the {which} point of the search", float(at.n_gpu))
        cells[row, "tokens per second"] = 1 / seconds
        cells[row, "GPUs"] = gpus
        if point is not economics.fastest:
            batch = named("batch at the preferred point of the search", float(at.batch))
            first = round(batch, 2)
            note = f"rounded twice: {batch:.3f} is {first:.2f} with two digits, and that rounds up"
            cells[row, "batch"] = batch if round(batch) == math.floor(first + 0.5) else WithNote(batch, note)
            cells[row, "price of a million tokens"] = gpus * seconds / batch * price
    return cells
