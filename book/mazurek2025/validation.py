"""Mazurek & Schreiber 2025 against public measurements, in both readings of its section 3.1.2.

What the agreement is worth, and what may stand for what in it, is the matter of :mod:`book.mazurek2025.repair`.
"""

from functools import cache, lru_cache

import numpy as np
import pandas as pd

from book import measured as measurements
from book.mazurek2025.systems import CONTEXT, READINGS, TRUE, speed
from inferlib import load_chip
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.records import DEFAULT, Assumptions, chip_of, deployment, model_of

# The seven points of SGLang that Figures 13 and 14 compare with: both systems as its second post draws them.
COMPARED = {"9x8 H100": ("ep-31", "ep-32", "ep-33"), "12x4 B200": ("ep-23", "ep-24", "ep-25", "ep-26")}
# SGLang on 72 H100s with balanced experts and no drafts: 14 points, the first of them printed in its text.
H100 = ("ds-02", *(f"ep-{i:02d}" for i in range(3, 16)))
# What else can be compared, each measured once.
OTHERS = {
    "without balancing": ("ep-16",),
    "GB200": ("ep-23", "ep-24", "ep-25", "ep-26"),
    "DeepSeek profile": ("ds-01",),
    "DeepSeek production": ("ds-04",),
    "vLLM H200": ("ep-38", "ep-39", "ep-40"),
    "Kimi K2": ("ep-45",),
}
# Copies of experts that a source states; elsewhere as few as make every GPU hold equally many.
EXTRA = {**dict.fromkeys(H100, 32), "ep-16": 0, "ep-45": 96}


@lru_cache(maxsize=1)
def measured():
    """The measurements of DeepSeek V3 and Kimi K2 in :mod:`book.measured`, each once."""
    table = measurements.load()
    table = table[table.model.isin(["DeepSeek V3", "Kimi K2"])].copy()
    table["per_gpu"] = table.tokens_per_second / table.n_gpus
    table["own"] = table.sequences / table.n_gpus
    both = table.prompt_tokens.notna() & table.output_tokens.notna()
    mean = table.prompt_tokens + table.output_tokens / 2
    table["mean_context"] = mean.where(both, table.context)
    table["why_not"] = [_why_not(row) for _, row in table.iterrows()]
    return table


def _why_not(row):
    if row.duplicate_of:
        return f"the same measurement as {row.duplicate_of}"
    if row.speculation == "yes":
        return "drafts tokens: a time per token, not per step"
    if row.ep == 1:
        return "tensor parallel: every GPU has a part of every expert"
    if not row.own > 0:
        return "no batch is stated"
    if row.weight_format in ("fp4", "mixed"):
        return "experts in FP4, which the source does not describe"
    return ""


def placed(row):
    """The deployment of a measured row."""
    n, table = int(row.n_gpus), measured()
    nodes = -(-n // int(min(load_chip(row.hardware).scale_up_size, n)))
    balanced = "without expert load balancing" not in row.notes
    extra = EXTRA.get(row.name, (-model_of(row.model).n_routed) % n)
    at = deployment(n, nodes, extra_experts=extra, balanced=balanced, two_batch=row.overlap != "none")
    # notes of duplicates state what the first of them leaves out
    notes = " ".join([row.notes, *table[table.duplicate_of == row.name].notes])
    return at.replace(balancedness=1.0) if "balanced routing" in notes else at


@cache
def _case(row_id):
    """Model, GPU and deployment of a measured row."""
    row = measured().loc[row_id]
    return model_of(row.model), chip_of(row.hardware), placed(row)


def predicted(row, assumptions=DEFAULT, context=None):
    """Tokens per second and GPU of a measured row."""
    context = row.mean_context if context is None else context
    return eq.gpu_throughput(*_case(row.name), row.sequences, context, assumptions)


def on_network(row):
    """Whether the network sets the time of a measured row with overlap."""
    half = *_case(row.name), row.sequences / 2
    computing = eq.attention_time(*half, row.mean_context) + eq.expert_time(*half)
    return _case(row.name)[2].two_batch and bool(eq.network_time(*half) > computing)


def rms(errors):
    """Root of the mean square."""
    errors = list(errors)
    return (sum(error**2 for error in errors) / len(errors)) ** 0.5


# --- The points of Figures 13 and 14 ---------------------------------------------------------------------


def compared(context, assumptions=DEFAULT):
    """The seven points of SGLang that the source's figures show, against its model as it runs it."""
    table, errors = measured(), {}
    for name, rows in COMPARED.items():
        for row in (table.loc[i] for i in rows):
            errors[name, int(row.own)] = speed(name, row.own, context, assumptions) / row.per_gpu - 1
    return errors


def scan(assumptions=DEFAULT, high=12000):
    """Error over the seven points for every context."""
    contexts = np.arange(500, high + 50, 50)
    errors = compared(contexts.astype(float), assumptions)
    table = pd.DataFrame({f"{name}, {own}": values for (name, own), values in errors.items()}, index=contexts)
    table.insert(0, "rms", (table**2).mean(axis=1) ** 0.5)
    return table.rename_axis("context")


def readings():
    """The readings under which the context is looked for: what each changes, and the assumptions it gives."""
    return {
        **READINGS,
        "cache in FP8": DEFAULT.replace(cache_value_bytes=1.0),
        "memory factor 1.5": DEFAULT.replace(memory_inefficiency=1.5),
        "memory factor 1": DEFAULT.replace(memory_inefficiency=1.0),
        "no 10 % penalty": DEFAULT.replace(arithmetic_penalty=1.0),
        "corrected": Assumptions.corrected(),
    }


def best_contexts():
    """For each reading the context that fits the seven points best, and how well."""
    rows = {}
    for name, assumptions in readings().items():
        errors = scan(assumptions, high=25000).rms
        at = [rms(compared(context, assumptions).values()) for context in (CONTEXT, TRUE)]
        rows[name] = (int(errors.idxmin()), errors.min(), *at)
    columns = ["best context", "rms there", "rms at 4989", "rms at 2050"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def errors(rows, assumptions=DEFAULT):
    """Relative errors of the predictions of measured rows: id to error."""
    table = measured()
    return {i: predicted(table.loc[i], assumptions) / table.loc[i].per_gpu - 1 for i in rows}
