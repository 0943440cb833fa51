"""Power of chips, fitted to published watts: ``python -m book.serving.energy`` writes ``energy.toml``.

``energy.csv`` has rows of the ML.ENERGY leaderboard (repository ml-energy/leaderboard at 0cd52da): one engine (vLLM),
measured power of all GPUs, tokens per second. It does not state prompt lengths, so these rows are scored for energy and
not for time.
"""

from functools import cache
from importlib.resources import files

import numpy as np
import pandas as pd

from book import stored
from inferlib.system import System, Workload
from tokenprice import catalog, energy
from tokenprice.deployment import decode_step

PROMPT = 200.0  # tokens, assumed: the cache is a small part of these rows


@cache
def rows():
    """Return the rows with the shares of time in which chips are busy, and of rated power that they draw."""
    table = stored.rows("serving/energy.csv")
    found = []
    for row in table.itertuples():
        model, chip = catalog.load_model(row.model), catalog.load_chip(row.chip)
        keep = {"attention": "bf16"} if row.weights == "mxfp4" else None
        work = Workload(row.batch, PROMPT + row.output_tokens / 2, row.weights)
        step = decode_step(
            model, System(chip.replace(memory_capacity=None), row.n_gpus), work, layer_formats=keep
        )
        seconds = row.batch / row.tokens_per_second
        memory, arithmetic = energy.busy(step, seconds)
        found.append((memory, arithmetic, row.watts / row.n_gpus / chip.power, chip.power, step.total))
    names = ["memory", "arithmetic", "part", "power", "step"]
    return table.join(pd.DataFrame(found, columns=names))


def fit(table):
    """Fit the shares of the rated power by non-negative least squares."""
    from scipy.optimize import nnls

    x = np.stack([np.ones(len(table)), table.memory, table.arithmetic], 1) / table.part.to_numpy()[:, None]
    return nnls(x, np.ones(len(table)))[0]


def left_out():
    """Return predicted over measured joules per token, less one, each model predicted by a fit to the others."""
    table = rows()
    errors = pd.Series(np.nan, index=table.index)
    for name in table.model.unique():
        own = table.model == name
        errors[own] = predicted(table[own], fit(table[~own])) / table.joules_per_token[own] - 1
    return errors


def predicted(table, found):
    """Predict joules per token of rows from shares of the rated power."""
    drawn = energy.chip_draw(energy.Draw(*found), table.power, table.memory, table.arithmetic)
    return energy.token_energy(table.n_gpus, drawn, 1.0, table.tokens_per_second)


def as_toml():
    """The text of ``energy.toml``."""
    table = rows()
    folds = np.array([fit(table[table.model != name]) for name in table.model.unique()])
    parts = zip(("awake", "reading", "calculating"), fit(table), folds.T, strict=True)
    draw = {name: [value, column.min(), column.max()] for name, value, column in parts}
    error = f"{np.mean(np.abs(left_out())):.4g}"
    return stored.filled("serving/energy.toml.jinja", rows=len(table), error=error, draw=draw)


if __name__ == "__main__":
    (files("tokenprice") / "energy.toml").write_text(as_toml(), "utf-8", newline="\n")
