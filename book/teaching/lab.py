"""A lab on real data: rows of the measurements whose times are held back, to be predicted and then scored."""

from random import Random

import pandas as pd

from book.synthesis import comparison

SHOWN = ["model", "hardware", "n_gpus", "sequences", "context", "weight_format", "engine"]
BESIDE = ("principles", "kernels")


def _rows(student, count):
    """Rows that anybody can be asked about, one publisher after the other, drawn for a student."""
    table = comparison.rows()
    table = table[(table.use == "clean") & table.instance]
    if not 1 <= count <= len(table):
        raise ValueError(f"count is {count}, but must be between 1 and {len(table)}")
    random = Random(f"{student}/lab")
    names = {who: random.sample(list(own.index), len(own)) for who, own in table.groupby("publisher")}
    turns = [name for k in range(len(table)) for own in names.values() for name in own[k : k + 1]]
    return table.loc[turns[:count]]


def held_back(student, count=6):
    """Measured decode steps without their times: what ran on what, row by row.

    ``student``: the name decides which rows are drawn.
    """
    return _rows(student, count)[SHOWN]


def score(student, predicted):
    """What was measured, beside a student's predictions, the bound and the kernel model.

    ``predicted``: seconds from token to token, in the order of :func:`held_back`. In milliseconds; the last
    row is the mean error, of its size.
    """
    if not all(time > 0 for time in predicted):
        raise ValueError(f"predicted is {predicted}, but must be positive times in seconds")
    table = _rows(student, len(predicted))
    times = pd.DataFrame({"measured": table.tpot, "yours": predicted})
    for who in BESIDE:
        times[who] = [comparison.answer(who, row).total for row in table.itertuples()]
    mean = abs(times.div(times.measured, axis=0) - 1).mean()
    shown = (1e3 * times).map("{:.1f} ms".format)
    shown.loc["mean error"] = ["", *(f"{100 * mean[who]:.0f} %" for who in ("yours", *BESIDE))]
    return shown


def bound(name):
    """The least time of one row, in seconds: first principles."""
    return float(comparison.answer("principles", next(comparison.rows().loc[[name]].itertuples())).total)
