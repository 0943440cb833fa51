"""Findings that sources share: gains and shares, with the range over those that describe a question."""

from functools import cache

import pandas as pd

from book.synthesis import grid
from book.synthesis.grid import FIVE
from inferlib import validation
from inferlib.papers.source import versions
from inferlib.system import System
from tokenprice import predictors
from tokenprice.predictors import KERNELS


def cases():
    """The questions of the chapter by name: model, system, workload (from ``questions.toml``)."""
    return {name: grid.question_of(q) for name, q in grid.questions()["agreement"].items()}


def around(model, system, workload):
    """Return a question's model on half of its chips (twice as many share one network), at short and long contexts."""
    half = System(system.chip, max(1, system.count // 2))
    return {
        "short": (model, half, workload.replace(batch=8, context=1024)),
        "long": (model, half, workload.replace(batch=2, context=131072)),
    }


def buys(model, system, workload):
    """Return the gain of every change, by the sources and by models fitted to real servers."""
    return grid.what_doubling_buys(model, system, workload, keys=(*FIVE, *versions(), KERNELS))


@cache
def gains(case):
    """Return the gain of every change in one case, by each published source that describes it.

    ``case``: one of :func:`cases`. As :func:`book.synthesis.grid.what_doubling_buys` returns it.
    """
    return grid.what_doubling_buys(*cases()[validation.one_of("case", case, cases())], keys=FIVE)


def answers(case, **changes):
    """Every source's answer to a case, by label; those that do not describe it are left out.

    ``case``: one of :func:`cases`, or model, system and workload. ``**changes``: fields of the workload in place of
    the case's.
    """
    if isinstance(case, str):
        case = cases()[validation.one_of("case", case, cases())]
    model, system, workload = case
    workload = workload.replace(**changes)
    steps = {key: predictors.ask(key, model, system, workload) for key in FIVE}
    return {predictors.label(key): step for key, step in steps.items() if step.feasible}


def ratios(case, before, after):
    """Return the ratio of a step's time after a change of the workload to the time before, by source.

    ``before``, ``after``: fields of the workload. By labels of the sources that answer both.

    Examples
    --------
    >>> bool(ratios("dense, short", {"batch": 1}, {"batch": 16}).max() < 16)
    True
    """
    first, then = answers(case, **before), answers(case, **after)
    return pd.Series({who: then[who].total / first[who].total for who in first if who in then}, dtype=float)
