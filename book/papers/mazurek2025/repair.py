"""SGLang's own lengths and profile against the model: the time that is missing, and candidates for it."""

from functools import cache

import numpy as np
import pandas as pd

from book import stored
from book.frames import labelled
from book.papers.mazurek2025.systems import CONTEXT, MODEL, READINGS, TRUE
from book.papers.mazurek2025.validation import H100, compared, errors, measured, predicted, rms
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.records import PRINTED, setup
from inferlib.units import parse

STEP = 1e-6  # s: the grid on which an overhead is fitted


@cache
def fitted(assumptions=PRINTED):
    """The overhead of a layer and micro-batch that fits the 14 rows best, on a grid of a microsecond."""
    steps = STEP * np.arange(301)
    found = rms(errors(H100, assumptions.replace(overhead=steps)).values())
    return assumptions.replace(overhead=float(steps[found.argmin()]))


@cache
@labelled()
def strongest():
    """Both readings of section 3.1.2 against everything measured: which of them fits where."""
    for name, assumed in READINGS.items():
        short = compared(TRUE, assumed)
        by_system = pd.Series(short).groupby(level=0, sort=False).agg(rms)
        yield (
            name,
            {
                "14 rows": rms(errors(H100, assumed).values()),
                **{f"{which} at {TRUE}": error for which, error in by_system.items()},
                f"seven at {TRUE}": rms(short.values()),
                f"seven at {CONTEXT}": rms(compared(CONTEXT, assumed).values()),
                "best overhead": fitted(assumed).overhead / STEP,
            },
        )


def components(context=TRUE):
    """Time of one layer by part on 9x8 H100, in both readings at a context and as SGLang shows its kernels."""
    shown, at = stored.toml("papers/mazurek2025/breakdown.toml"), setup("9x8 H100")
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
