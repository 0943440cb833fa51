"""The three constants of the napkin formula: fitted, and the error held out.

``python -m book.synthesis.fit`` writes ``napkin.toml``. A source of measurements (one publisher) counts as one
observation: every publisher has the same weight in a fit and in a mean, however many rows it has.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from inferlib.serving.napkin import Constants, napkin_time

_START = {"share": 0.7, "layer": 3e-5, "hop": 3e-6}


@dataclass(frozen=True)
class Rows:
    """What the formula sees of the measurements, as arrays over rows."""

    memory: np.ndarray
    arithmetic: np.ndarray
    n_layers: np.ndarray
    n_chips: np.ndarray
    measured: np.ndarray
    publisher: np.ndarray
    ids: tuple

    def only(self, keep):
        """The rows of a mask."""
        ids = tuple(name for name, kept in zip(self.ids, keep, strict=True) if kept)
        return Rows(*(getattr(self, name)[keep] for name in list(self.__dataclass_fields__)[:-1]), ids)

    @property
    def publishers(self):
        """Everyone who measured, in alphabetical order."""
        return sorted(set(self.publisher))


@cache
def data():
    """The rows that a fit may use: clean, one tensor-parallel instance (or a pipeline), one node's model or more."""
    from book.synthesis import against

    table = against.rows()
    found = []
    for row in table[
        (table.use == "clean") & table.instance & (table.publisher != "DeepSeek at scale")
    ].itertuples():
        terms = against.answer("principles", row).terms
        memory = terms["weights"] + terms["cache"]
        layers = against._model(row.model).n_layers
        found.append((memory, terms["arithmetic"], layers, row.tp, row.tpot, row.publisher, row.Index))
    columns = [np.array(column) for column in zip(*found, strict=True)]
    return Rows(*columns[:-1], tuple(str(name) for name in columns[-1]))


def times(constants, rows):
    """What the formula says of rows; seconds."""
    return napkin_time(Constants(**constants), rows.memory, rows.arithmetic, rows.n_layers, rows.n_chips)


def fit(rows):
    """The constants that come closest to rows: least squares of the logarithm, publishers weighing equally.

    Parameters
    ----------
    rows : Rows

    Returns
    -------
    dict
        Constant to value, in SI units.
    """
    from scipy.optimize import least_squares

    counts = {name: np.sum(rows.publisher == name) for name in rows.publishers}
    weight = np.array([1 / np.sqrt(counts[name] * len(counts)) for name in rows.publisher])

    def misses(x):
        return weight * np.log(times(dict(zip(_START, np.exp(x), strict=True)), rows) / rows.measured)

    # logarithms, so that constants stay positive; of the methods, the one that ends on a bound
    found = least_squares(
        misses,
        np.log(list(_START.values())),
        jac="3-point",
        bounds=(np.log(1e-9), 1.0),
        method="dogbox",
        ftol=1e-12,
        xtol=1e-12,
        gtol=1e-12,
    )
    return dict(zip(_START, np.exp(found.x).tolist(), strict=True))


def held_out(rows):
    """Relative errors with every publisher predicted by a fit to the others.

    Returns
    -------
    dict
        Publisher to an array of predicted over measured, less one: no row is predicted by a fit that saw it.
    """
    found = {}
    for publisher in rows.publishers:
        own = rows.publisher == publisher
        test = rows.only(own)
        found[publisher] = times(fit(rows.only(~own)), test) / test.measured - 1
    return found


def mean_error(errors):
    """Mean absolute error, every publisher counting once."""
    return float(np.mean([np.mean(np.abs(e)) for e in errors.values()]))


def as_toml():
    """The text of ``napkin.toml``."""
    rows = data()
    constants = "\n".join(f"{name} = {value:.4g}" for name, value in fit(rows).items())
    return (
        "# Written by `python -m book.synthesis.fit` from inferlib/measured; a test repeats the fit.\n\n"
        f"rows = {len(rows.ids)}\nheld_out = {mean_error(held_out(rows)):.3g} # mean error, each publisher left out\n\n"
        f"[constants]\n{constants}\n"
    )


def main():
    """Fit, and write ``napkin.toml``."""
    (files("inferlib.serving") / "napkin.toml").write_text(as_toml(), encoding="utf-8", newline="\n")
    print(as_toml())


if __name__ == "__main__":
    main()
