"""Public measurements of decode speed in one schema, each row with its source's address.

``measurements.csv`` has single steps, ``schema.toml`` the meaning of every column, ``names.toml`` the catalogue's names
of the sources' chips and models. ``serving.csv`` and ``serving_r1.csv`` have serving benchmarks (TTFT and TPOT at a
number of users), ``serving.toml`` their notes. Nothing here is a prediction: a time is printed, read off a plot, or
computed from a printed number (column ``derivation``). ``traces`` are requests as services recorded them.
"""

import re
from functools import cache
from importlib.resources import files
from pathlib import Path

import pandas as pd

from book import stored
from inferlib import units, validation
from tokenprice import catalog


def trace(name):
    """Return the path of a recorded trace; ``traces.toml`` states source and licence."""
    return Path(__file__).parent / "traces" / f"{name}.csv"


def load(path=None):
    """All measurements, checked, in SI units.

    ``path``: a CSV file with the columns of :func:`schema`; the measurements of this package when not given.
    Indexed by ``id``. Columns as in :func:`schema`, with
    ``tpot`` in seconds, ``tokens_per_second`` of all sequences together, ``context`` in tokens; blanks are
    NaN in columns of numbers and ``""`` in text. Added: ``sequences`` decoded together by the whole system
    (batch x dp); ``model_in_catalogue``; ``model_printed`` and ``hardware_printed``, the source's own names.
    Raises ValueError if a cell is not what its column allows, naming row, column, value and what is allowed;
    if columns are missing or unknown, ids repeat, or the numbers of a row contradict each other. Raises
    LookupError if a chip, model or duplicate is unknown; near names are suggested.

    Examples
    --------
    >>> m = load()
    >>> decode = m[(m.tier == "A") & (m.duplicate_of == "")]
    >>> float(decode.loc["gf-11"].tpot), decode.loc["gf-11"].hardware
    (0.016, 'A100 80GB')
    """
    file = path if path is not None else files("book.measured") / "measurements.csv"
    with open(file, encoding="utf-8") as text:
        raw = pd.read_csv(text, dtype=str, keep_default_na=False)
    if list(raw.columns) != list(schema()):
        odd = sorted(set(raw.columns) ^ set(schema())) or "their order"
        raise ValueError(f"the columns are not those of the schema: {odd}")
    if raw.empty:
        raise ValueError("the file has no rows")
    rows = [_row(dict(zip(raw.columns, cells, strict=True))) for cells in raw.itertuples(index=False)]
    table = pd.DataFrame(rows).set_index("id")
    if not table.index.is_unique:
        raise ValueError(f"id {table.index[table.index.duplicated()][0]!r} stands twice")
    for row, first in table.duplicate_of[table.duplicate_of != ""].items():
        validation.one_of(f"row {row}: duplicate_of", first, table.index[table.duplicate_of == ""])
    return table


def serving():
    """All serving benchmarks, checked, in SI units.

    Examples
    --------
    >>> table = serving()
    >>> len(table), sorted(set(table.publisher))
    (1846, ['InferenceX', 'NVIDIA'])
    """
    about, paths = _read("serving.toml"), [f"measured/{name}.csv" for name in SERVING]
    tables = [stored.rows(path, keep_default_na=False).set_index("id") for path in paths]
    table = pd.concat(tables).fillna({"url": ""})
    if [table.index.name, *table.columns] != list(about["columns"]):
        raise ValueError("the columns of serving rows are not those of serving.toml")
    for column, known in (("publisher", about["publisher"]), ("model", about["model"])):
        for value in table[column].unique():
            validation.one_of(column, value, known)
    numbers = table.select_dtypes("number")
    bad = table.index[(numbers <= 0).any(axis=1) | (table.tp * table.dp != table.n_gpus)]
    if len(bad) or not table.index.is_unique:
        where = bad[0] if len(bad) else "of serving.csv"
        raise ValueError(f"row {where}: a number is not positive, or tp x dp is not n_gpus")
    held = (table.engine + ", " + table.model).map(about["hold"])
    table["model"] = table.model.map(about["model"])
    shapes = [*catalog.models(), *catalog.served()]
    table["known"] = table.model.isin(shapes) & table.hardware.isin(catalog.chips())
    table["context"] = table.prompt_tokens + table.output_tokens / 2
    table["tpot"], table["ttft"] = 1e-3 * table.pop("tpot_ms"), 1e-3 * table.pop("ttft_ms")
    known = table.publisher.map(about["publisher"])
    table["url"] = table.url.where(table.url != "", [who["url"] for who in known])
    for name in ("requests_per_user", "fixed_lengths"):
        table[name] = [who[name] for who in known]
    table["hold"] = held.where(table.dp > 1, 0).fillna(0)
    table["doubt"] = [about["in_doubt"].get(row, "") for row in table.index]
    table["licence"] = about["collection"]["licence"]
    return table


SERVING = "serving", "serving_r1"  # files of rows
NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?", re.I)


@cache
def schema():
    """The columns: name to kind, meaning and limits (``schema.toml``)."""
    return _read("schema.toml")


@cache
def names():
    """Return the sources' names of chips and models, with catalogue names: ``{"hardware": {...}, "model": {...}}``."""
    return _read("names.toml")


def _read(file):
    return stored.toml(f"measured/{file}")


def _row(cells):
    """Parse one row of text into numbers and names; raise for anything that the schema does not allow."""
    row = {}
    for column, limits in schema().items():
        where = f"row {cells['id'] or '?'}: {column}"
        row[limits.get("into", column)] = _cell(where, cells[column], **limits)
    for column in ("model", "hardware"):
        row[f"{column}_printed"] = row[column]
        row[column] = _name(f"row {row['id']}: {column}", column, row[column])
    row["model_in_catalogue"] = row["model"] in catalog.all_models()
    row["sequences"] = row["batch"] * row["dp"]
    return _consistent(row)


def _name(where, column, printed):
    """Return the catalogue's name for a source's name of a model or chip."""
    if printed in names()[column]:
        return names()[column][printed] or printed
    try:
        return catalog.resolve("chip" if column == "hardware" else "model", printed)
    except LookupError as error:
        raise LookupError(f"{where}: {error}") from None


def _cell(where, text, *, kind, blank=False, allowed=None, pattern=None, unit="1", **_):
    if text == "" and blank:
        return "" if kind == "text" else float("nan")
    if kind == "text":
        if not text.strip() or (pattern and not re.fullmatch(pattern, text)):
            raise ValueError(f"{where} is {text!r}, but must be {f'like {pattern}' if pattern else 'given'}")
        return validation.one_of(where, text, allowed) if allowed else text
    if kind == "flag":
        return validation.one_of(where, text, ("0", "1")) == "1"
    if not NUMBER.fullmatch(text):
        raise ValueError(f"{where} is {text!r}, but must be a number")
    number = float(text)
    validation.number(where, number, zero=kind == "share", maximum=1 if kind == "share" else None)
    if kind == "whole":
        if not number.is_integer():
            raise ValueError(f"{where} is {text}, but must be a whole number")
        return int(number)
    return number * units.factor(unit)


def _consistent(row):
    """Refuse a row whose own numbers contradict each other."""
    timed, counted = row["tpot"] == row["tpot"], row["batch"] == row["batch"]
    made = row["sequences"] / row["tpot"] / row["tokens_per_second"] if timed else 1
    contradictions = {
        f"n_gpus is {row['n_gpus']}, but must be tp x pp x dp": row["n_gpus"]
        != row["tp"] * row["pp"] * row["dp"],
        f"ep is {row['ep']}, but must be at most n_gpus, {row['n_gpus']}": row["ep"] > row["n_gpus"],
        "tpot_ms and batch must be given together": timed != counted,
        f"tier is {row['tier']!r}, but must be 'C' without a token's time": not timed and row["tier"] != "C",
        "tok_s_total is not batch x dp / tpot_ms": abs(made - 1) > 0.005,
    }
    for why, holds in contradictions.items():
        if holds:
            raise ValueError(f"row {row['id']}: {why}")
    return row
