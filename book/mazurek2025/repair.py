"""What SGLang's own lengths and its profile say of the agreement: the time that is missing, and what stands for it."""

import tomllib
from functools import cache
from importlib.resources import files

import numpy as np
import pandas as pd

from book.mazurek2025.systems import CONTEXT, MODEL, READINGS, TRUE
from book.mazurek2025.validation import H100, OTHERS, compared, errors, measured, on_network, predicted, rms
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.records import DEFAULT, Assumptions, setup
from inferlib.units import parse

STEP = 1e-6  # s: the grid on which an overhead is fitted


def cache_share():
    """Share that the cache takes of a step with 256 sequences a GPU of 9x8 H100, and what extra context costs (s)."""
    at = setup("9x8 H100")
    place, batch = (MODEL, at.gpu, at.deployment), 256 * at.deployment.n_gpus
    long, short, none = (2 * eq.attention_time(*place, batch / 2, s) for s in (CONTEXT, TRUE, 0))
    share = (long - none) / eq.step_time(*place, batch, CONTEXT)
    return {"share": share, "layer": (long - short) / (2 * MODEL.n_layers)}


@cache
def fitted(rows=H100, hidden=False, assumptions=DEFAULT):
    """The overhead of a layer and micro-batch that fits measured rows best, on a grid of a microsecond."""
    base, steps = assumptions.replace(overhead_hidden=hidden), STEP * np.arange(301)
    found = rms(errors(rows, base.replace(overhead=steps)).values())
    return base.replace(overhead=float(steps[found.argmin()]))


@cache
def strongest():
    """Both readings of section 3.1.2 against everything measured: which of them fits where."""
    rows = {}
    for name, assumed in READINGS.items():
        own, short = errors(H100, assumed), compared(TRUE, assumed)
        by_system = pd.Series(short).groupby(level=0, sort=False).agg(rms)
        every = H100 + tuple(i for ids in OTHERS.values() for i in ids)
        rows[name] = {
            "14 rows": rms(own.values()),
            "mean": sum(own.values()) / len(own),
            **{f"{which} at {TRUE}": error for which, error in by_system.items()},
            f"seven at {TRUE}": rms(short.values()),
            f"seven at {CONTEXT}": rms(compared(CONTEXT, assumed).values()),
            "GB200 as measured": rms(errors(OTHERS["GB200"], assumed).values()),
            "all rows": rms(errors(every, assumed).values()),
            "best overhead": fitted(assumptions=assumed).overhead / STEP,
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def halves():
    """Ways to fit on some of the 14 points and test on the others: name to (rows fitted, rows tested)."""
    table = measured().loc[list(H100)]
    overlap, large = table.overlap == "two-batch", table.own >= 64
    ways = {"overlapped": overlap, "not overlapped": ~overlap, "at 64 and more": large, "below 64": ~large}
    return {name: (tuple(table.index[on]), tuple(table.index[~on])) for name, on in ways.items()}


def cross_validation():
    """The overhead fitted on one part of the 14 points and tested on the rest, experts of a GPU capped."""
    rows = []
    for name, (fit, test) in ({"all": (H100, ())} | halves()).items():
        found = fitted(fit)
        tested = [rms(errors(test, a).values()) if test else float("nan") for a in (found, DEFAULT)]
        inside = rms(errors(fit, found).values())
        rows.append((name, len(fit), found.overhead / STEP, inside, *tested))
    there = ["fitted on points", "so many", "overhead (us)", "rms there"]
    table = pd.DataFrame(rows, columns=[*there, "rms on the others", "without overhead"])
    return table.astype(object).fillna("")


def places():
    """Where an overhead has to enter: hidden behind the network or not, in three readings of the model."""
    rows = []
    for name, assumed in (READINGS | {"corrected": Assumptions.corrected()}).items():
        rows.append(("none", name, 0.0, rms(errors(H100, assumed).values())))
        for hidden, where in ((False, "on top of both"), (True, "may hide the network")):
            found = fitted(H100, hidden, assumed)
            rows.append((where, name, found.overhead / STEP, rms(errors(H100, found).values())))
    return pd.DataFrame(rows, columns=["overhead", "model", "us", "rms"])


def components(context=TRUE):
    """Time of one layer by part on 9x8 H100, in both readings at a context and as SGLang shows its kernels."""
    text = (files("book.mazurek2025") / "breakdown.toml").read_text("utf-8")
    shown, at = tomllib.loads(text), setup("9x8 H100")
    columns = {}
    for name, title, turns in (("two_batch", "two batches", 2), ("one_batch", "one batch", 1)):
        where = MODEL, at.gpu, at.deployment, 256 * at.deployment.n_gpus / turns
        for reading, assumed in READINGS.items():
            attention = eq.attention_time(*where, context, assumed)
            expert, sent = eq.expert_time(*where, assumed), eq.network_time(*where, assumed)
            waiting = max(sent - attention - expert, 0) if turns == 2 else sent
            parts = (attention, expert, waiting, 0.0)
            columns[title, reading] = [turns * t / MODEL.n_layers * 1e3 for t in parts]
        parts = ("attention", "experts", "network_not_hidden", "other")
        columns[title, "measured"] = [parse(shown[name][part], "s") * 1e3 for part in parts]
    names = ["attention", "experts", "network not hidden", "other kernels, launches"]
    return pd.DataFrame(columns, index=names)


def overlap_gain():
    """How much faster two-batch overlap makes a step on 9x8 H100, measured and modelled."""
    table = measured().loc[list(H100)]
    table = table[(table.prompt_tokens == 2000) & (table.output_tokens == 100)]
    speeds = pd.DataFrame({"measured": table.per_gpu})
    for name, assumed in (READINGS | {"with overhead": fitted()}).items():
        speeds[name] = table.apply(predicted, axis=1, assumptions=assumed)
    two, one = (
        speeds[table.overlap == how].set_index(table.own[table.overlap == how])
        for how in ("two-batch", "none")
    )
    return (two / one).rename_axis("batch per GPU")


def _models():
    """The four models that are held against every measurement."""
    return READINGS | {"corrected": Assumptions.corrected(), "with overhead": fitted()}


def predictions():
    """Every comparable measurement against four readings of the model."""
    table, models, rows = measured(), _models(), {}
    for group, ids in ({"SGLang H100": H100} | OTHERS).items():
        for i in ids:
            row = table.loc[i]
            told = [predicted(row, assumed) / row.per_gpu - 1 for assumed in models.values()]
            bound = "network" if on_network(row) else ""
            overlap = {"two-batch": "yes", "none": "no"}.get(row.overlap, "not stated")
            at = group, int(row.n_gpus), row.own, row.mean_context
            rows[i] = (*at, overlap, row.per_gpu, *told, bound)
    columns = ["system", "GPUs", "batch per GPU", "context", "overlap", "measured", *models, "bound"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)
