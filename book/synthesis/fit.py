"""How the sixth model was made: forms tried, the choice among them, the fit, and the error held out.

``python -m book.synthesis.fit`` repeats all of it and writes ``sixth.toml``. A source of measurements
(one publisher) counts as one observation: every publisher has the same weight in a fit and in a mean,
however many rows it has.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import combinations

import numpy as np

from inferlib.serving.sixth import Constants, attained_time, launch_time, step_time, waiting_time

# The publishers whose rows are all on the older chips: the form is chosen on these, and held against newer ones.
CHOSEN_ON = ("FasterTransformer", "LMDeploy", "gpt-fast")
CONFIDENCE = 0.8
_START = {"share": 0.7, "layer": 3e-5, "hop": 3e-6, "reduce": 1e-5, "second": 0.5}


@dataclass(frozen=True)
class Rows:
    """What a form sees of the measurements, as arrays over rows."""

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


def _sixth(c, rows):
    constants = Constants(c["share"], c.get("layer", 0.0), c.get("hop", 0.0))
    return step_time(constants, rows.memory, rows.arithmetic, rows.n_layers, rows.n_chips)


def _other(c, rows, steps):
    """A variant of the sixth model with another count of steps for an all-reduce, or another overlap."""
    constants = Constants(c["share"], c.get("layer", 0.0), c.get("hop", 0.0))
    memory, arithmetic = (attained_time(constants, rows.memory), attained_time(constants, rows.arithmetic))
    waiting = waiting_time(constants, rows.n_layers, 1 + steps(rows.n_chips))
    return np.maximum(memory, arithmetic) + launch_time(constants, rows.n_layers) + waiting


def _added(c, rows):
    constants = Constants(c["share"], c["layer"], c["hop"])
    return step_time(constants, rows.memory + rows.arithmetic, 0 * rows.memory, rows.n_layers, rows.n_chips)


def _two_shares(c, rows):
    constants = Constants(c["share"], c["layer"], c["hop"])
    slower = rows.arithmetic * c["share"] / c["second"]
    return step_time(constants, rows.memory, slower, rows.n_layers, rows.n_chips)


def _with_base(c, rows):
    base = waiting_time(Constants(c["share"], 0.0, c["reduce"]), rows.n_layers, 1 + (rows.n_chips > 1))
    return _sixth(c, rows) + base


# name: the names of its constants, and the time it gives; the simplest first.
FORMS = {
    "bound of the peaks": ((), lambda c, rows: np.maximum(rows.memory, rows.arithmetic)),
    "share of the peaks": (("share",), _sixth),
    "share, layers": (("share", "layer"), _sixth),
    "share, layers, one time an all-reduce": (
        ("share", "layer", "hop"),
        lambda c, rows: _other(c, rows, lambda n: 1.0 * (n > 1)),
    ),
    "share, layers, doublings of chips": (
        ("share", "layer", "hop"),
        lambda c, rows: _other(c, rows, np.log2),
    ),
    "share, layers, further chips": (("share", "layer", "hop"), _sixth),
    "the same, reading and arithmetic add": (("share", "layer", "hop"), _added),
    "the same, two shares": (("share", "layer", "hop", "second"), _two_shares),
    "the same, and a time an all-reduce": (("share", "layer", "hop", "reduce"), _with_base),
}
CHOSEN = "share, layers, further chips"


def fit(form, rows):
    """The constants of a form that come closest to rows: least squares of the logarithm, publishers weighing equally.

    Parameters
    ----------
    form : str
        One of ``FORMS``.
    rows : Rows

    Returns
    -------
    dict
        Constant to value, in SI units.
    """
    from scipy.optimize import least_squares

    names, time = FORMS[form]
    if not names:
        return {}
    counts = {name: np.sum(rows.publisher == name) for name in rows.publishers}
    weight = np.array([1 / np.sqrt(counts[name] * len(counts)) for name in rows.publisher])

    def misses(x):
        return weight * np.log(time(dict(zip(names, np.exp(x), strict=True)), rows) / rows.measured)

    # logarithms, so that constants stay positive; of the methods, the one that ends on a bound
    found = least_squares(
        misses,
        np.log([_START[name] for name in names]),
        jac="3-point",
        bounds=(np.log(1e-9), 1.0),
        method="dogbox",
        ftol=1e-12,
        xtol=1e-12,
        gtol=1e-12,
    )
    return dict(zip(names, np.exp(found.x).tolist(), strict=True))


def held_out(form, rows):
    """Relative errors with every publisher predicted by a fit to the others.

    Returns
    -------
    dict
        Publisher to an array of predicted over measured, less one: no row is predicted by a fit that saw it.
    """
    names, time = FORMS[form]
    found = {}
    for publisher in rows.publishers:
        own = rows.publisher == publisher
        constants = fit(form, rows.only(~own))
        test = rows.only(own)
        found[publisher] = time(constants, test) / test.measured - 1
    return found


def mean_error(errors):
    """Mean absolute error, every publisher counting once."""
    return float(np.mean([np.mean(np.abs(e)) for e in errors.values()]))


def trial(publishers=None):
    """Every form, fitted on some publishers and held against the others.

    Parameters
    ----------
    publishers : sequence of str, optional
        Who the form is chosen on; ``CHOSEN_ON`` when not given.

    Returns
    -------
    pandas.DataFrame
        Indexed by form: its ``constants``, the error ``inside`` (each publisher of the half predicted by the
        rest of the half) and ``outside`` (the other half, predicted by a fit to the half).
    """
    import pandas as pd

    rows = data()
    half = np.isin(rows.publisher, publishers or CHOSEN_ON)
    found = {}
    for form, (names, time) in FORMS.items():
        constants = fit(form, rows.only(half))
        rest = rows.only(~half)
        miss = time(constants, rest) / rest.measured - 1
        outside = {name: miss[rest.publisher == name] for name in rest.publishers}
        inside = mean_error(held_out(form, rows.only(half)))
        found[form] = {"constants": len(names), "inside": inside, "outside": mean_error(outside)}
    return pd.DataFrame(found).T.astype({"constants": int})


def every_half():
    """What the choice would have been on every half of the publishers, and what it would have led to.

    Returns
    -------
    pandas.DataFrame
        One row a half: its publishers, the form chosen on it, that form's error outside, and that of ``CHOSEN``.
    """
    import pandas as pd

    names = data().publishers
    found = []
    for half in combinations(names, len(names) // 2):
        table = trial(half)
        best = table.inside.round(3).idxmin()  # of equals the first: the simplest
        row = (", ".join(half), best, table.outside[best], table.outside[CHOSEN])
        found.append(row)
    return pd.DataFrame(found, columns=["half", "chosen", "outside", "sixth model outside"])


def _student(confidence, freedom):
    """How many standard errors either way hold a share of Student's distribution."""
    from scipy.stats import t

    return float(t.interval(confidence, freedom)[1])


def interval(errors, confidence=CONFIDENCE):
    """The factor by which a measurement of a new publisher may differ, each known publisher one observation.

    The mean square of the held-out logarithms is taken publisher by publisher; Student's distribution has one
    degree of freedom less than there are publishers.
    """
    squares = [np.mean(np.log1p(e) ** 2) for e in errors.values()]
    n = len(squares)
    spread = np.sqrt(np.mean(squares) * (1 + 1 / n))
    return float(np.exp(_student(confidence, n - 1) * spread))


def report():
    """All that ``sixth.toml`` holds, computed."""
    from book.synthesis import against

    rows = data()
    errors = held_out(CHOSEN, rows)
    table = against.rows().loc[list(rows.ids)]
    sparse = table[[against._model(name).sparse for name in table.model]]
    low, high = mean_interval(errors)
    halves = every_half().groupby("chosen")
    return {
        "constants": fit(CHOSEN, rows),
        "fit": {
            "form": CHOSEN,
            "rows": len(rows.ids),
            "publishers": rows.publishers,
            "chosen_on": list(CHOSEN_ON),
        },
        "error": {
            "held_out": mean_error(errors),
            "held_out_low": low,
            "held_out_high": high,
            "confidence": CONFIDENCE,
            "factor": interval(errors),
        },
        # form: halves that choose it, its error outside them, and the chosen form's
        "halves": {
            form: [len(own), float(own.outside.mean()), float(own["sixth model outside"].mean())]
            for form, own in halves
        },
        "held_out": {name: float(np.mean(np.abs(e))) for name, e in errors.items()},
        "measured": {
            "context": float(table.context.max()),
            "batch": float(table.batch.max()),
            "tp": int(table.tp.max()),
            "chips": sorted(set(table.hardware)),
            "formats": sorted(set(table.weight_format)),
            "sparse_batch": float(sparse.batch.max()),
            "sparse_models": sorted(set(sparse.model)),
        },
    }


def mean_interval(errors, confidence=0.95):
    """The interval of the mean absolute error, each publisher one observation (Student)."""
    means = np.array([np.mean(np.abs(e)) for e in errors.values()])
    half = _student(confidence, len(means) - 1) * np.std(means, ddof=1) / np.sqrt(len(means))
    return float(max(0.0, np.mean(means) - half)), float(np.mean(means) + half)


def as_toml(values):
    """The report as the text of ``sixth.toml``."""
    lines = ["# Written by `python -m book.synthesis.fit` from inferlib/measured; a test repeats the fit."]
    for name, table in values.items():
        lines += ["", f"[{name}]"]
        lines += [f"{_key(key)} = {_text(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def _key(name):
    return name if name.replace("_", "").isalnum() else f'"{name}"'


def _text(value):
    if isinstance(value, list):
        return "[" + ", ".join(_text(v) for v in value) + "]"
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value:.5g}" if isinstance(value, float) and not value.is_integer() else f"{value:g}"


def main():
    """Fit, and write ``sixth.toml``."""
    text = as_toml(report())
    (files("inferlib.serving") / "sixth.toml").write_text(text, encoding="utf-8", newline="\n")
    print(text)


if __name__ == "__main__":
    main()
