"""A check that anybody can repeat: Erdil's formula with the constants he prints, against the measurements.

Equations 29, 30, 39, 40 and 44 of the paper without its terms for bytes on the network, which count little on
these rows: reading and multiplying at the printed fractions of the peaks, and four times a layer a kernel and an
all-reduce. The paper's complete model, which searches for the best layout, is another matter.
"""

import numpy as np

from book.synthesis import against
from inferlib.papers.rooms import BOUND

NODE = 8  # chips of one box
CHIP = "H100"  # the paper's text prints the attainable fractions of this one


def times(rows):
    """Seconds per token by the printed formula, for rows as :func:`book.synthesis.fit.data` gives them."""
    from inferlib.papers.erdil2025 import PRINTED_EQUATIONS, chips
    from inferlib.papers.erdil2025.equations import printed

    assumptions, chip = PRINTED_EQUATIONS, chips[CHIP]
    (protocol,) = assumptions.protocols
    reduce = printed.all_reduce_latency(protocol, rows.n_chips, np.ceil(rows.n_chips / NODE))
    each = assumptions.t_kernel + np.where(rows.n_chips > 1, reduce, 0.0)
    step = np.maximum(rows.memory / chip.bandwidth_fraction, rows.arithmetic / chip.flops_fraction)
    return rows.n_layers * assumptions.kernels * each + step


def check():
    """Errors of the printed formula and of the bare bound on the clean dense rows, by tensor-parallel degree.

    Returns
    -------
    pandas.DataFrame
        One row a degree and one for all: ``rows``; mean absolute errors of the ``formula`` and of the ``bound``; mean
        signed error of the formula.
    """
    import pandas as pd

    from book.synthesis import fit

    rows = fit.data()
    table = against.all_answers()
    bound = table[table.who == BOUND].set_index("id").predicted.loc[list(rows.ids)].to_numpy()
    models = against.rows().model.loc[list(rows.ids)]
    dense = np.array([not against._model(name).sparse for name in models])
    made = pd.DataFrame(
        {"tp": rows.n_chips, "formula": times(rows) / rows.measured - 1, "bound": bound / rows.measured - 1}
    )[dense]
    found = {str(tp): _errors(own) for tp, own in made.groupby("tp")}
    return (
        pd.DataFrame(found | {"all": _errors(made)}).T.rename_axis("chips in parallel").astype({"rows": int})
    )


def _errors(own):
    return {
        "rows": len(own),
        "formula": own.formula.abs().mean(),
        "formula, signed": own.formula.mean(),
        "bound": own.bound.abs().mean(),
    }
