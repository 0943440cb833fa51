"""Mazurek & Schreiber 2025 against SGLang's measurements, in both readings of its section 3.1.2.

:mod:`book.papers.mazurek2025.repair` examines the agreement. :mod:`book.synthesis.comparison` compares all sources with
every public measurement.
"""

from functools import cache

from book import measured as measurements
from book.papers.mazurek2025.systems import MODEL, speed
from inferlib import catalog
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.records import PRINTED, deployment, load_chip

# The seven points of SGLang that Figures 13 and 14 compare with: both systems as its second post draws them.
COMPARED = {"9x8 H100": ("ep-31", "ep-32", "ep-33"), "12x4 B200": ("ep-23", "ep-24", "ep-25", "ep-26")}
# SGLang on 72 H100s with balanced experts and no drafts: 14 points, the first of them printed in its text.
H100 = ("ds-02", *(f"ep-{i:02d}" for i in range(3, 16)))
RACK = COMPARED["12x4 B200"]


@cache
def measured():
    """These measurements, with the speed and the sequences of a GPU and the mean context of a sequence."""
    table = measurements.load().loc[[*H100, *COMPARED["9x8 H100"], *RACK]]
    return table.assign(
        per_gpu=table.tokens_per_second / table.n_gpus,
        per_request=table.tokens_per_second / table.sequences,
        own=table.sequences / table.n_gpus,
        mean_context=table.prompt_tokens + table.output_tokens / 2,
    )


@cache
def placed(row_id):
    """The deployment of a measured row, with as few copies of experts as make every GPU hold equally many."""
    row = measured().loc[row_id]
    n = int(row.n_gpus)
    nodes = -(-n // int(min(catalog.load_chip(row.hardware).scale_up_size, n)))
    extra = (-MODEL.n_routed) % n
    return deployment(n, nodes, extra_experts=extra, two_batch=row.overlap == "two-batch")


def predicted(row, assumptions=PRINTED):
    """Tokens per second and GPU of a measured row, at its own lengths."""
    gpu = load_chip(row.hardware)
    return eq.gpu_throughput(MODEL, gpu, placed(row.name), row.sequences, row.mean_context, assumptions)


def errors(rows, assumptions=PRINTED):
    """Relative errors of the predictions of measured rows: id to error."""
    table = measured()
    return {i: predicted(table.loc[i], assumptions) / table.loc[i].per_gpu - 1 for i in rows}


def rms(errors):
    """Root of the mean square."""
    errors = list(errors)
    return (sum(error**2 for error in errors) / len(errors)) ** 0.5


# --- The points of Figures 13 and 14 ---------------------------------------------------------------------


def compared(context, assumptions=PRINTED):
    """The seven points of SGLang that the source's figures show, against its model as it runs it."""
    table, errors = measured(), {}
    for name, rows in COMPARED.items():
        for row in (table.loc[i] for i in rows):
            errors[name, int(row.own)] = speed(name, row.own, context, assumptions) / row.per_gpu - 1
    return errors
