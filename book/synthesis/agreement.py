"""What the sources agree on: gains and shares, with the range over those that describe a question."""

import math
from functools import cache

import pandas as pd

from book.synthesis import grid
from inferlib import checks
from inferlib.papers.source import common_terms, sources, versions
from inferlib.system import System
from tokenprice import answerers
from tokenprice.answerers import SIXTH

READING = ("weights", "cache", "activations")
SHORT, LONG = (("dense, short", "experts, short"), ("dense, long", "experts, long"))


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
    return grid.what_doubling_buys(model, system, workload, keys=(*sources(), *versions(), SIXTH))


@cache
def gains(case):
    """What every change buys in one case, by each published source that describes it.

    ``case``: one of :func:`cases`. As :func:`book.synthesis.grid.what_doubling_buys` returns it.
    """
    checks.one_of("case", case, cases())
    return grid.what_doubling_buys(*cases()[case], keys=sources())


def answers(case, **changes):
    """Every source's answer to a case, by label; those that do not describe it are left out.

    ``case``: one of :func:`cases`, or model, system and workload. ``**changes``: fields of the workload in place of
    the case's.
    """
    if isinstance(case, str):
        checks.one_of("case", case, cases())
    model, system, workload = cases()[case] if isinstance(case, str) else case
    workload = workload.replace(**changes)
    steps = {key: answerers.ask(key, model, system, workload) for key in sources()}
    return {answerers.label(key): step for key, step in steps.items() if step.feasible}


def reading_shares():
    """Share of its step that each source spends reading, by its own constants.

    Labels by case; NaN where a source does not describe it.
    """

    def share(step):
        terms = common_terms(step)
        return sum(terms[name] for name in READING) / sum(terms.values())

    table = {case: {who: share(step) for who, step in answers(case).items()} for case in cases()}
    return pd.DataFrame(table).rename_axis("who")


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


def claims():
    """Each statement of the chapter with the numbers it rests on.

    Indexed by a short name: ``statement``, ``lowest`` and ``highest`` over all cases and sources, ``points``
    (how many numbers), and whether it ``holds`` for every one of them.
    """
    both = pd.concat({case: gains(case) for case in cases()})
    by = {change: both.xs(change, level="change") for change in grid.CHANGES}
    names = [answerers.label(key) for key in sources()]

    def values(change, *, of=None):
        table = by[change].reindex(columns=names)
        return (table if of is None else table / by[of].reindex(columns=names)).stack().dropna()

    together = {case: ratios(case, {"batch": 1}, {"batch": 16}) / 16 for case in SHORT}
    wide = "twice the memory bandwidth"
    # What is said, the numbers that it rests on, and between what they must lie.
    said = {
        "reading": ("Reading is the larger part of a step", reading_shares().stack().dropna(), 0.5, math.inf),
        "bandwidth": ("Twice the memory bandwidth buys more than a third, and never more than twice, the speed",
                      values(wide), 4 / 3, 2 + 1e-9),
        "arithmetic": ("Twice the arithmetic buys next to nothing", values("twice the arithmetic"), -math.inf, 1.02),
        "bytes": ("Half the bytes buy at least as much as twice the bandwidth, within two per cent",
                  values("half the bytes of weights and cache", of=wide), 0.98, math.inf),
        "chips": ("Twice the chips never buy more than twice the bandwidth of each, within two per cent",
                  values("twice the chips", of=wide), -math.inf, 1.02),
        "links": ("Twice the bytes a second on the links buy less than a tenth",
                  values("twice the links"), -math.inf, 1.1),
        "latency": ("Half the latency of collectives buys less than a tenth", values(grid.LATENCY), -math.inf, 1.1),
        "batching": ("Sixteen short sequences together take less than half the time of sixteen one by one",
                     pd.concat(together, names=["case", "who"]), -math.inf, 0.5),
    }  # fmt: skip
    rows = {
        name: (text, numbers.min(), numbers.max(), len(numbers), bool(numbers.between(low, high).all()))
        for name, (text, numbers, low, high) in said.items()
    }
    columns = ["statement", "lowest", "highest", "points", "holds"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("claim")
