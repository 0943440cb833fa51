"""Other tools by name, and one question that another book answers too."""

import tomllib
from functools import cache
from importlib.resources import files

import pandas as pd

from inferlib.catalog import load_chip, load_model
from inferlib.system import System, Workload
from tokenprice import answerers
from tokenprice.answerers import BOUND, SIXTH


@cache
def _stated():
    return tomllib.loads((files("book.synthesis") / "peers.toml").read_text("utf-8"))


def peers():
    """Others by name: what each does better, when to use it, and where it is."""
    rows = {name: entry for name, entry in _stated().items() if name != "common"}
    table = pd.DataFrame(rows).T.rename(columns={"use": "use it when", "url": "where"})
    return table.rename_axis("name").reset_index()


def common():
    """A question that *How to Scale Your Model* answers, answered here.

    Returns one row a case: format, chips and batch; milliseconds a step in that book, by the bound, and by
    the sixth model (NaN, with the reason, where a case does not fit by our count of bytes).
    """
    asked = _stated()["common"]
    model, chip = load_model(asked["model"]), load_chip(asked["chip"])
    rows = []
    for case in asked["cases"]:
        # That book's int4 and int8 runs keep arithmetic at 16 bits, as the bound here does.
        work = Workload(case["batch"], asked["context"], case["format"], case["format"])
        endless = System(chip.replace(memory_capacity=None), case["chips"])
        steps = {key: answerers.ask(key, model, endless, work) for key in (BOUND, SIXTH)}
        fits = answerers.ask(BOUND, model, System(chip, case["chips"]), work)
        row = case | {"there": float(asked["answer_ms"])}
        row |= {"bound here": 1e3 * steps[BOUND].total, "sixth model": 1e3 * steps[SIXTH].total}
        rows.append(row | {"fits by our count": "yes" if fits.feasible else fits.reason})
    return pd.DataFrame(rows)
