"""One workload, all models' answers: on a grid, term by term, and the gain of doubling something."""

import math
from functools import cache
from itertools import product

import numpy as np
import pandas as pd

from book import stored
from book.synthesis.constants import ask, decode_step_of, default_assumptions, with_same, with_values
from inferlib import validation
from inferlib.papers.source import sources
from inferlib.principles import cost_per_million
from inferlib.system import System, Workload
from tokenprice import predictors
from tokenprice.catalog import load_chip, load_model
from tokenprice.change import RESOURCES, improved
from tokenprice.deployment import Deployment
from tokenprice.predictors import KERNELS, common_terms, vocabulary

# Sources that the synthesis compares; its text counts no others.
FIVE = ("steinhardt2022", "pope2022", "erdil2025", "liminal2025", "mazurek2025")


@cache
def questions():
    """``questions.toml``: models and formats, chips, batches and contexts, and the running question."""
    return stored.toml("synthesis/questions.toml")


def running():
    """The question that every chapter ends with: model, system, workload."""
    return question_of(questions()["running"])


def question_of(q):
    """An entry of ``questions.toml`` as model, system, workload."""
    system = System(load_chip(q["chip"]), q["count"])
    return load_model(q["model"]), system, Workload(q["batch"], q["context"])


def system_for(model, chip, weights):
    """The smallest number of boxes whose memory the weights fill to no more than a stated share.

    Examples
    --------
    >>> system_for(load_model("Llama 3.1 405B"), load_chip("H100 SXM"), "bf16").count
    16
    """
    count, filled = (questions()[name] for name in ("smallest", "filled"))
    while count * chip.memory_capacity * filled < sum(model.weight_bytes(weights).values()):
        count *= 2
    return System(chip, count)


def grid(*, constants="own", **given):
    """All models' answers on a grid of models, chips, batches and contexts.

    ``given``: values of ``who``, ``model``, ``chip``, ``batch`` or ``context`` (default: all models, and the values of
    ``questions.toml``). ``constants``: as for :func:`book.synthesis.constants.ask`. Over these five axes:
    ``latency`` (s), ``tokens_per_second`` of one user, ``usd_per_million``, ``status`` and ``reason``. Numbers are NaN
    where there is no answer. Over model and chip: ``count``, the chips used. Raises LookupError if a name is unknown.
    """
    asked = questions()
    axes = {"who": predictors.keys(), "model": asked["formats"], "chip": asked["chips"]}
    axes |= {"batch": asked["batches"], "context": asked["contexts"]} | given
    axes = {name: list(values) for name, values in axes.items()}
    rows, count = [], []
    for name, chip_name in product(axes["model"], axes["chip"]):
        model, formats = load_model(name), asked["formats"].get(name, ["bf16", "bf16"])
        system = system_for(model, load_chip(chip_name), formats[0])
        count.append({"model": name, "chip": chip_name, "count": system.count})
        for batch, context, key in product(axes["batch"], axes["context"], axes["who"]):
            workload, price = Workload(batch, context, *formats), system.chip.price
            step = ask(key, model, system, workload, constants)
            seconds = float(step.total) if step.feasible else math.nan
            usd = math.nan if price is None else seconds * cost_per_million(1, batch, system.count, price)
            rows.append({
                "who": key, "model": name, "chip": chip_name, "batch": batch, "context": context,
                "latency": seconds, "tokens_per_second": 1 / seconds, "usd_per_million": usd,
                "status": step.status, "reason": step.reason,
            })  # fmt: skip
    answers = pd.DataFrame(rows).set_index(list(axes)).to_xarray()
    used = pd.DataFrame(count).set_index(["model", "chip"]).to_xarray()
    return answers.merge(used).reindex(axes)


@cache
def whole_grid(constants="own"):
    """Return :func:`grid` for everything in ``questions.toml``."""
    return grid(constants=constants)


def coverage(data=None):
    """Count how many questions of a grid each model answers, finds infeasible, or does not describe.

    Indexed by model: ``answers``, ``infeasible``, ``n/a``, and the most frequent ``reason`` for n/a.
    """
    data = whole_grid() if data is None else data
    every = data[["status", "reason"]].to_dataframe()
    many = every.groupby(["who", "status"]).size().unstack(fill_value=0)
    many = many.reindex(data.who.values)[["ok", "infeasible", "n/a"]].rename(columns={"ok": "answers"})
    reasons = every[every.status == "n/a"].groupby("who").reason.agg(lambda said: said.mode().iloc[0])
    many["commonest reason"] = reasons.reindex(many.index).fillna("")
    return many.rename(index=predictors.label)


def decomposition(model, system, workload, *, constants="own"):
    """Return all models' counted terms under common names.

    Milliseconds, terms by label of the model; the last row is ``total``. Each column adds up to its total, so a
    difference between two columns is the sum of the differences of their terms. Only models with an answer are
    included; ``attrs["infeasible"]`` has the reasons of infeasible ones.
    """
    return tabled({key: ask(key, model, system, workload, constants) for key in predictors.keys()})


def tabled(steps):
    """Build the table of :func:`decomposition` from the models' steps."""
    columns = {predictors.label(key): common_terms(step) for key, step in steps.items() if step.feasible}
    table = 1e3 * pd.DataFrame(columns, dtype=float).reindex(vocabulary()["common"])
    table = table[(table != 0).any(axis=1)]
    table = pd.concat([table, table.sum().to_frame("total").T]).rename_axis("ms")
    full = {predictors.label(key): step.reason for key, step in steps.items() if step.status == "infeasible"}
    table.attrs["infeasible"] = full
    return table


def over_batch(model, system, workload):
    """All models' milliseconds per token by batch (columns, of ``questions.toml``); NaN where there is no answer."""
    batches = questions()["batches"]
    steps = {batch: decomposition(model, system, workload.replace(batch=batch)) for batch in batches}
    found = pd.DataFrame({batch: table.loc["total"] for batch, table in steps.items()})
    return found.reindex(map(predictors.label, predictors.keys())).dropna(how="all")


def disagreement(table):
    """Return the range of answers per term: lowest, highest and their difference, in milliseconds.

    ``table``: as :func:`decomposition` returns it.
    """
    low, high = table.min(axis=1), table.max(axis=1)
    who = [f"{table.columns[i]}" for i in table.to_numpy().argmax(axis=1)] if len(table.columns) else ""
    return pd.DataFrame({"lowest": low, "highest": high, "range": high - low, "highest is": who})


def voices():
    """Count how many published sources answer the questions of the grid; versions do not count.

    Returns questions, by model (rows) and by the number of sources that answer (columns, from none to the most).
    """
    data = whole_grid()
    ours = [key for key in data.who.values if key in FIVE]
    many = data.latency.sel(who=ours).notnull().sum("who").to_series().rename("sources")
    table = many.groupby("model", sort=False).value_counts().unstack(fill_value=0)
    return table.sort_index(axis=1).loc[list(data.model.values)]


def constants_or_structure(own=None, same=None, *, without=()):
    """Return how much of the disagreement disappears when all sources use the same constants.

    ``own``, ``same``: two grids (default: of all questions). Only sources count (not the bound, not the kernel model),
    and only questions that at least two of them answer in both grids. ``without``: sources left out, to see their
    influence. Returns ``questions`` compared; ``own`` and ``same``: the typical factor between two sources (root mean
    square of the logarithm of their ratio, as a factor); ``structure``: the part of the mean square that remains with
    the same constants.
    """
    without = [validation.one_of("source", key, FIVE) for key in without]
    own = whole_grid() if own is None else own
    same = whole_grid("same") if same is None else same
    ours = [key for key in own.who.values if key in FIVE and key not in without]
    logs = [np.log(data.latency.sel(who=ours)) for data in (own, same)]
    both = logs[0].notnull() & logs[1].notnull()
    enough = both.sum("who") >= 2
    # Two independent draws differ by twice the variance.
    spread = [float(2 * values.where(both).var("who", ddof=1).where(enough).mean()) for values in logs]
    return {
        "questions": int(enough.sum()),
        "own": float(np.exp(np.sqrt(spread[0]))),
        "same": float(np.exp(np.sqrt(spread[1]))),
        "structure": spread[1] / spread[0] if spread[0] else float("nan"),
    }


_HALF = {"fp32": "bf16", "bf16": "fp8", "fp16": "fp8", "fp8": "fp4", "int8": "int4"}


def _twice(system, *names):
    rates = {name: 2 * getattr(system.chip, name) for name in names if getattr(system.chip, name)}
    return system.replace(chip=system.chip.replace(**rates))


LATENCY = "half the latency of collectives"
CHANGES = {
    "twice the memory bandwidth": lambda s, w: (_twice(s, "memory_bandwidth"), w),
    "twice the arithmetic": lambda s, w: (_twice(s, "flops"), w),
    "twice the links": lambda s, w: (_twice(s, "scale_up_bandwidth", "scale_out_bandwidth"), w),
    "half the bytes of weights and cache": lambda s, w: (
        s,
        w.replace(weights=_HALF[w.weights], cache=_HALF[w.cache]),
    ),
    "twice the chips": lambda s, w: (System(s.chip, 2 * s.count), w),
    "half the batch": lambda s, w: (s, w.replace(batch=w.batch / 2 if w.batch >= 2 else 0)),
    LATENCY: None,  # a matter of each source's assumptions
}


def speedup(key, change, model, system, workload):
    """Return the speedup of a token by one change, according to one model.

    ``key``: the model. ``change``: one of ``CHANGES``. ``model``, ``system``, ``workload``: the question before the
    change; the catalogue's chip is used. Returns time before over time after; NaN if either is n/a or infeasible, or
    the source has no such quantity.

    Examples
    --------
    >>> speedup("principles", "twice the memory bandwidth", *running())
    2.0
    """
    validation.one_of("change", change, CHANGES)
    before = ask(key, model, system, workload, "same")
    try:
        if change == LATENCY:
            after = _latency_halved(key, model, system, workload)
        else:
            after = ask(key, model, *CHANGES[change](system, workload), "same")
    except (ValueError, LookupError):
        return math.nan
    return float(before.total / after.total) if before.feasible and after.feasible else math.nan


def _latency_halved(key, model, system, workload):
    """Return the answer with every collective latency halved; LookupError if the source has none."""
    halves = dict.fromkeys(vocabulary()["latency"]["fields"], lambda seconds: seconds / 2)
    if key == KERNELS:
        (latency,) = (resource for resource in RESOURCES if resource.name == "network latency")
        served = improved(Deployment.of(model, system, workload), latency, 2)
        return served.step(workload.batch, workload.context)
    answer = decode_step_of(key) if key in sources() else None
    printed = default_assumptions(answer) if answer else None
    if printed is None or with_values(printed, halves) is printed:
        raise LookupError(f"{key} has no latency of collectives")
    system, more = with_same(key, answer, system)
    return answer(model, system, workload, assumptions=with_values(more["assumptions"], halves))


def what_doubling_buys(model, system, workload, keys=None):
    """Return every change's gain according to every model, with the range over the sources.

    Indexed by change; one column per model with an answer, then ``lowest`` and ``highest`` over the published sources
    (NaN where none has such a quantity) and ``sources``, their number.
    """
    asked = model, system, workload
    keys = [key for key in keys or predictors.keys() if ask(key, *asked, "same").feasible]
    gains = {key: {change: speedup(key, change, *asked) for change in CHANGES} for key in keys}
    table = pd.DataFrame(gains, index=pd.Index(CHANGES, name="change"))
    published = table[[key for key in keys if key in FIVE]]
    ends = {"lowest": published.min(axis=1), "highest": published.max(axis=1)}
    return table.rename(columns=predictors.label).assign(**ends, sources=published.count(axis=1))
