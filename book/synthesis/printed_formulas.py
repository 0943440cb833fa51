"""A reproducible check: formulas with printed constants against the measurements.

Erdil's formula is here; versions of sources, which are also formulas with a printed constant, answer like all models.
Equations 29, 30, 39, 40 and 44 of the paper, without the terms for bytes on the network, which matter little on these
rows: reading and multiplying at the printed fractions of the peaks, and four kernels and all-reduces per layer. The
paper's complete model, which searches for the best layout, is another matter.
"""

import numpy as np
import pandas as pd

from book.frames import labelled
from book.synthesis import comparison
from inferlib import load_model
from inferlib.papers.erdil2025 import PRINTED, PROTOCOLS, load_chip
from inferlib.papers.erdil2025.equations import printed
from inferlib.papers.source import BOUND, versions
from tokenprice import predictors

NODE = 8  # chips of one box
CHIP = "H100"  # the paper's text prints the attainable fractions of this one


@labelled()
def rows(table=None):
    """Return the formula's inputs for clean rows of one instance: times at the peaks, layers, chips, measurement."""
    table = comparison.rows() if table is None else table
    table = table[(table.use == "clean") & table.instance & (table.publisher != "DeepSeek at scale")]
    for row in table.itertuples():
        terms, model = comparison.answer("principles", row).terms, load_model(row.model)
        yield row.Index, {
            "memory": terms["weights"] + terms["cache"], "arithmetic": terms["arithmetic"], "n_chips": row.tp,
            "n_layers": model.n_layers, "measured": row.tpot, "dense": not model.sparse,
        }  # fmt: skip


def times(rows):
    """Seconds per token by the printed formula, for :func:`rows`."""
    assumptions, chip = PRINTED, load_chip(CHIP)
    (protocol,) = (one for one in PROTOCOLS if one.name == "LL")  # its latencies are equation 40's
    reduce = printed.all_reduce_latency(protocol, rows.n_chips, np.ceil(rows.n_chips / NODE))
    each = assumptions.t_kernel + np.where(rows.n_chips > 1, reduce, 0.0)
    step = np.maximum(rows.memory / chip.bandwidth_fraction, rows.arithmetic / chip.flops_fraction)
    return rows.n_layers * assumptions.kernels * each + step


def check(table=None):
    """Return errors of printed formulas and of the bound on the clean dense rows, by tensor-parallel degree.

    One row per degree and one for all: ``rows``; mean absolute error of the ``bound``; and of each formula that
    describes these rows, the mean absolute and the mean signed error.
    """
    asked, table = rows(table), comparison.all_answers()

    def error_of(key):
        return table[table.who == key].set_index("id").error.loc[asked.index]

    found = {"bound": error_of(BOUND), "formula": times(asked) / asked.measured - 1}
    made = pd.DataFrame(found | {predictors.label(key): error_of(key) for key in versions()})[asked.dense]
    made = made.dropna(axis=1, how="all")

    return comparison.by_chips(made, asked.n_chips[made.index]).drop(columns="bound, signed")
