"""All models' answers compared with the public measurements, row by row."""

import re
from functools import cache
from itertools import pairwise

import pandas as pd

from book import measured as measurements
from book.frames import frame
from book.style import table
from book.synthesis import grid
from inferlib import validation
from inferlib.papers.source import BOUND
from inferlib.principles import roofline
from inferlib.principles.profile import profile_of
from inferlib.system import Layout, System, Workload
from tokenprice import Question, calibration, catalog, predictors
from tokenprice.config.formats import Whole
from tokenprice.deployment import chip_peak, decode_step
from tokenprice.predictors import KERNELS

MOST_PREFILL = 0.05  # rows with a larger share of the prompt say little about decode
BANDS = {"batches": ("sequences", (1, 8, 32, 128)), "contexts": ("context", (128, 1024, 4096))}


def rows(path=None):
    """All measurements with what is needed to ask about them, and to group the answers.

    Returns the columns of :func:`book.measured.load` and ``publisher`` (one observation of an independent
    kind), ``use`` (``"clean"``, or why a row tells little about one decode step), ``instance`` (whether it is
    one tensor-parallel instance), ``batches`` and ``contexts`` (in bands).
    """
    table = measurements.load(path)
    table["publisher"] = table.index.str.split("-").str[0]
    table = table.replace({"publisher": measurements.names()["publisher"]})
    table["use"] = [use(row) for row in table.itertuples()]
    table["instance"] = (table.dp == 1) & (table.ep == 1)
    for name, (column, edges) in BANDS.items():
        band = pd.cut(table[column], (0, *edges, float("inf")), labels=_bands(edges))
        table[name] = band.astype(object).fillna("")
    return table


def use(row):
    """``"clean"``, or the first reason why a row does not time one plain decode step of a known model."""
    reasons = {
        "no time": row.tpot != row.tpot,
        "counted already": row.duplicate_of != "",
        "tier C": row.tier == "C",
        "tokens are drafted": row.speculation != "none",
        "format not stated": row.weight_format in ("", "mixed") or row.kv_format == "",
        "shape not published": not row.model_in_catalogue,
        "prompt inside": row.prefill_share > MOST_PREFILL,
        # Kernels of late 2023 appear to read a grouped cache once for every query head; see the chapter.
        "old grouped-cache kernels": "kernels of this age" in row.notes,
    }
    reason = next((reason for reason, holds in reasons.items() if holds), "clean")
    # As such a row is read, every chip keeps more than its memory: layout or batch must be meant otherwise.
    full = reason == "clean" and decode_step(*question(row)).status == "infeasible"
    return "more than the memory holds" if full else reason


def _bands(edges):
    """Names of the bands between edges: "1", "2 to 8", ... "over 128"."""
    named = [
        f"{low + 1:,} to {high:,}" if low + 1 < high else f"{high:,}" for low, high in pairwise((0, *edges))
    ]
    return [*named, f"over {edges[-1]:,}"]


def question(row):
    """Model, system, workload and layout of a row of :func:`rows`.

    Raises ValueError if the row states no format.
    """
    if row.weight_format in ("", "mixed") or row.kv_format == "":
        raise ValueError(f"row {row.Index} does not state one format of weights and cache")
    system = System(catalog.load_chip(row.hardware), row.n_gpus)
    workload = Workload(row.sequences, row.context, row.weight_format, row.kv_format)
    return (catalog.load_model(row.model), system, workload, Layout(row.tp, row.pp, row.ep, row.dp))


def as_stored(row, workload):
    """Return the workload with the row's bytes per weight, if its format has other groups than usual."""
    bits = re.search(r"(\d+) bits a weight", row.format_detail)
    return workload.replace(weights=Whole(int(bits[1]) / 8)) if bits else workload


def case_of(name):
    """Return the question that a measured row answers."""
    table = rows()
    row = next(row for row in table.itertuples() if row.Index == validation.one_of("row", name, table.index))
    model, machine, work, layout = question(row)
    return Question(
        model,
        machine,
        layout=layout,
        weights=work.weights,
        kv_cache_dtype=work.cache,
        batch=work.batch,
        context=work.context,
    )


def row_of(case, table=None):
    """Return the first row that measured a case, or None."""
    table = rows() if table is None else table
    asked = case.model, case.machine, case.workload
    alike = table[
        (table.model == case.model.name) & (table.n_gpus == case.machine.count)
        & (table.sequences == case.workload.batch) & table.tpot.notna() & ~table.weight_format.isin(["", "mixed"])
        & (table.kv_format != "")
    ]  # fmt: skip
    found = (row for row in alike.itertuples() if question(row)[:3] == asked)
    return next((row for row in found if case.layout in (None, question(row)[3])), None)


def card(row):
    """Describe what the publisher of a row states, or that there is no such row."""
    if row is None:
        return "no public measurement of this case"
    told = {name: getattr(row, name) for name in grid.questions()["rows"]["card"]}
    return "\n".join(
        [f"row {row.Index}", *(f"{name:18}{value}" for name, value in told.items() if value == value)]
    )


def all_predictors(case, row=None):
    """Return all models' terms of a case in milliseconds, as :func:`book.synthesis.grid.decomposition` returns them.

    With a measured ``row``, each is asked as for all rows.
    """
    if row is None:
        return grid.decomposition(case.model, case.machine, case.workload)
    return grid.tabled({key: answer(key, row) for key in predictors.keys()})


def answer(key, row):
    """Return one model's answer to a row, as a Breakdown.

    The bound and the kernel model count 4-bit weights with their scales; a source counts 4 bits. The bound's arithmetic
    is at the peak of the weights' format, if the chip computes in it. The kernel model is given the engine's class.
    """
    model, system, workload, layout = question(row)
    if key == KERNELS:
        workload = as_stored(row, workload)
        return decode_step(model, system, workload, layout, engine=calibration.engine_class(row.engine))
    if key != BOUND:
        return predictors.ask(key, model, system, workload, layout)
    return bound(model, system, workload, layout, as_stored(row, workload).weights)


def bound(model, system, workload, layout, stored):
    """Return the bound of a step, at the data sheet's peaks, of weights that are ``stored`` in a format."""
    profile = profile_of(model, workload.weights, workload.cache)
    profile = profile.replace(weight_bytes=calibration.stored_bytes(stored))
    chip = chip_peak(system.chip, workload).replace(memory_capacity=None)
    # One token at a time passes through a pipeline: only the chips of one stage work on it.
    return roofline.decode_step(profile, System(chip, system.count // layout.pp), workload)


def publishers(table=None):
    """Return what every publisher's clean rows cover.

    One row per publisher: ``rows``, how many ``models`` and ``chips``, the most chips in ``parallel``, the largest
    ``batch`` and the longest ``context``, and ``where`` most of its rows were read.
    """
    table = rows() if table is None else table
    clean = table[table.use == "clean"].groupby("publisher")
    covers = {
        "rows": ("tpot", "size"), "models": ("model", "nunique"), "chips": ("hardware", "nunique"),
        "parallel": ("tp", "max"), "batch": ("batch", "max"), "context": ("context", "max"),
        "where": ("url", lambda addresses: addresses.mode().iloc[0]),
    }  # fmt: skip
    return clean.agg(**covers).reset_index()


@frame()
def answers(keys=None, table=None):
    """Return all models' answers to every row that can be asked.

    ``keys``: models (default: all). ``table``: as :func:`rows` returns it; rows with a time, a known model and stated
    formats are asked. Returns one row per answer: ``id``, ``who``, ``status``, ``reason``, ``predicted`` and
    ``measured`` in seconds, ``error`` (predicted over measured, less one; NaN without an answer), and the columns by
    which rows are grouped.
    """
    keys = [validation.one_of("source", key, predictors.keys()) for key in keys or predictors.keys()]
    table = rows() if table is None else table
    asked = table[table.tpot.notna() & table.model_in_catalogue & (table.kv_format != "")]
    asked = asked[~asked.weight_format.isin(["", "mixed"])]
    for row in asked.itertuples():
        about = {name: getattr(row, name) for name in grid.questions()["rows"]["about"]}
        for key in keys:
            step = answer(key, row)
            predicted = float(step.total) if step.feasible else float("nan")
            yield {
                "id": row.Index, "who": key, "status": step.status, "reason": step.reason, "predicted": predicted,
                "measured": row.tpot, "error": predicted / row.tpot - 1, **about,
            }  # fmt: skip


@cache
def all_answers():
    """Return :func:`answers` of all models to all rows, computed once."""
    return answers()


def errors(by=None, table=None, *, use="clean"):
    """Return mean absolute and mean signed error of all models, in total or by a column.

    ``by``: ``"publisher"``, ``"hardware"``, ``"tp"``, ``"weight_format"``, ``"batches"`` or ``"contexts"``. ``table``:
    as :func:`answers` returns it. ``use``: only rows of this use; None for all. Indexed by model (and by group):
    ``rows`` answered, ``n/a``, ``mean |error|``, ``mean error``, ``worst``.
    """
    table = all_answers() if table is None else table
    if by is not None:
        validation.one_of("by", by, grid.questions()["rows"]["about"])
    table = table if use is None else table[table.use == use]
    groups = table.assign(size=table.error.abs()).groupby(["who", *([by] if by else [])], sort=False)
    return groups.agg(**{
        "rows": ("error", "count"), "n/a": ("error", lambda e: int(e.isna().sum())), "mean |error|": ("size", "mean"),
        "mean error": ("error", "mean"), "worst": ("size", "max"),
    })  # fmt: skip


def matrix(by, table=None):
    """Return the mean absolute error of each model (columns) by a column's values (rows); NaN without an answer."""
    wide = errors(by, table)["mean |error|"].unstack("who")
    known = [key for key in predictors.keys() if key in wide]
    if by in BANDS:
        wide = wide.reindex([band for band in _bands(BANDS[by][1]) if band in wide.index])
    return wide[known].dropna(axis=1, how="all")


def by_chips(errors, chips):
    """Mean absolute and mean signed errors of columns by the number of chips in parallel, and of all rows."""

    def of(rows):
        signed = rows.mean().rename("{}, signed".format)
        return pd.concat([pd.Series({"rows": len(rows)}), rows.abs().mean(), signed])

    found = {f"{n}": of(rows) for n, rows in errors.groupby(chips)} | {"all": of(errors)}
    return pd.DataFrame(found).T.rename_axis("chips in parallel").astype({"rows": int})


def over_bound(table=None):
    """Return measured time over the bound, one row per measurement of one instance.

    ``ratio``, and the columns by which rows are grouped.
    """
    table = all_answers() if table is None else table
    bound = table[(table.who == BOUND) & table.predicted.notna()]
    return bound.assign(ratio=bound.measured / bound.predicted).set_index("id")


def shown(frame, first):
    """Format errors for a chapter: per cent, labels of models, blanks where a model has no answer.

    ``frame``: as :func:`errors` (without ``by``) or :func:`matrix` returns it. ``first``: head of the first column.
    """
    percent = frame.copy().astype(object)
    for name in frame:
        if name not in ("rows", "n/a"):
            sign = "+" if name == "mean error" else ""
            percent[name] = ["" if value != value else f"{100 * value:{sign}.0f}" for value in frame[name]]
    percent = percent.rename(index=_label, columns=_label)
    return table(percent.rename_axis(first).rename_axis(None, axis=1).reset_index())


def _label(name):
    return predictors.label(name) if name in predictors.keys() else name
