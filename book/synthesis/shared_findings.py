"""What the sources agree on: gains and shares, with the range over those that describe a question."""

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
    """A question's model on half of its chips, so that twice as many share one network, at short and long contexts."""
    half = System(system.chip, max(1, system.count // 2))
    return {
        "short": (model, half, workload.replace(batch=8, context=1024)),
        "long": (model, half, workload.replace(batch=2, context=131072)),
    }


def buys(model, system, workload):
    """What every change buys, as the sources and the answers fitted to real servers see it."""
    return grid.what_doubling_buys(model, system, workload, keys=(*FIVE, *versions(), KERNELS))


@cache
def gains(case):
    """What every change buys in one case, by each published source that describes it.

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
    """How many times as long a step takes after a change of the workload, by source.

    ``before``, ``after``: fields of the workload. Over the labels of those that answer both.

    Examples
    --------
    >>> bool(ratios("dense, short", {"batch": 1}, {"batch": 16}).max() < 16)
    True
    """
    first, then = answers(case, **before), answers(case, **after)
    return pd.Series({who: then[who].total / first[who].total for who in first if who in then}, dtype=float)
