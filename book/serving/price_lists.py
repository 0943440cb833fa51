"""Infer the machine behind a price list, and compare with public benchmarks and published configurations."""

import pandas as pd

from book import measured
from book.frames import labelled
from inferlib import principles
from tokenprice import catalog

POINT = ["model", "hardware", "weights", "prompt_tokens", "output_tokens"]
FEWEST = 6  # smallest number of rows with which a benchmark has a frontier


def benchmarks():
    """Return the rows of each served benchmark: speed of a user, and tokens per chip-second."""
    table = measured.serving()
    written = table.concurrency * table.output_tokens / (table.ttft + table.output_tokens * table.tpot)
    table = table.assign(speed=1 / table.tpot, rate=written / table.n_gpus)
    return [rows for _, rows in table.groupby(POINT) if len(rows) >= FEWEST]


def dearer(rows, speed):
    """Return the price at ``speed`` times the speed of a benchmark's cheapest token, over its price; else NaN."""
    cheapest = rows.loc[rows.rate.idxmax()]
    fast = rows[rows.speed >= speed * cheapest.speed]
    return cheapest.rate / fast.rate.max()


def prices_of_speed(speed):
    """Return :func:`dearer` of all benchmarks that reach such a speed."""
    return pd.Series([dearer(rows, speed) for rows in benchmarks()]).dropna()


@labelled("bytes a token", "context")
def where_cache_meets_work(chip, name="fp8"):
    """Return by model the cache bytes per token, and the context at which reading it takes as long as the arithmetic.

    For all models of the catalogue whose layers all see the whole context.
    """
    # a chip without such a peak multiplies in 16 bits
    at = chip.at(next(one for one in (name, "bf16", "fp16") if one in chip.peaks))
    for model in map(catalog.load_model, catalog.models()):
        if model.state_values():
            continue
        profile = principles.profile_of(model, name, name)
        if profile.window_values or not profile.cache_values:
            continue
        kept = principles.cache_data(profile, 1, 1)
        work = principles.decode_work(profile, 1, 0)
        context = principles.arithmetic_time(at, work, 1) / principles.memory_time(at, kept, 1)
        yield model.name, (kept, context)


def implied_bytes(active, multiplied, context):
    """Return the cache bytes per token at which reading a context takes as long as multiplying the active weights.

    ``multiplied``: multiplications of a chip per number that it reads; a number has one byte.
    """
    return active / multiplied / context
