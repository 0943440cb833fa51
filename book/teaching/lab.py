"""A lab on real data: measured rows with hidden times, to be predicted and then compared."""

from random import Random

from book.synthesis import comparison
from book.teaching.problems.marking import units_of
from book.teaching.problems.reading import quantity

BESIDE = {"principles": "the bound", "kernels": "the kernel model"}
# How far a prediction may be off, as a fraction of the measurement, and its points.
BANDS = ((0.1, 3), (0.25, 2), (0.6, 1))


def questions(student, path=None, count=6):
    """Return measured decode steps as questions, each with the configuration and the data that mark a prediction.

    ``student``: the name decides which rows are drawn, one publisher after the other. ``path``: a file with the columns
    of the book's own measurements, whose times are public.
    """
    table = comparison.rows(path)
    table = table[(table.use == "clean") & table.instance]
    if count > len(table):
        raise ValueError(
            f"{count} rows are asked for, but {len(table)} time a plain decode step of a known model"
        )
    random = Random(f"{student}/lab")
    names = {who: random.sample(list(own.index), len(own)) for who, own in table.groupby("publisher")}
    turns = [name for k in range(len(table)) for own in names.values() for name in own[k : k + 1]]
    return [_question(f"row-{at}", row) for at, row in enumerate(table.loc[turns[:count]].itertuples(), 1)]


def _question(name, row):
    beside = {who: 1e3 * float(comparison.answer(who, row).total) for who in BESIDE}
    said = ", ".join(f"{BESIDE[who]} says {time:.3g} ms" for who, time in beside.items())
    text = (
        f"{row.engine or 'An engine that is not stated'} runs {row.model} with {row.weight_format} weights on "
        f"{row.n_gpus} × {row.hardware}, batch {row.sequences:g}, {row.context:,.0f} tokens of context. "
        "How many milliseconds pass from token to token?"
    )
    return {
        "name": name, "level": "prediction", "text": text, "facts": [], "points": BANDS[0][1], "bands": BANDS,
        "unit": "ms", "units": units_of("ms"), "value": 1e3 * row.tpot, "si": 1e-3, "beside": beside,
        "worked": f"Measured: {1e3 * row.tpot:.3g} ms ({row.Index}); {said}.",
    }  # fmt: skip


def points(asked, answer):
    """Return the points of a prediction, such as ``"12.3 ms"``, and the feedback."""
    try:
        off = abs(quantity(answer, asked) / asked["value"] - 1)
    except ValueError as error:
        return 0, f"Not read: {error}."
    return next((worth for most, worth in asked["bands"] if off <= most), 0), f"Off by {100 * off:.0f} %."
