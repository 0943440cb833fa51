"""Real chips and real models: only what a vendor or a published configuration states, each number sourced.

Data live in ``chips.toml`` and ``models.toml``; what only one of the five sources assumes lives with that
source.
"""

import tomllib
from functools import cache
from importlib.resources import files

from inferlib import checks
from inferlib.equation import quantities
from inferlib.system import Accelerator
from inferlib.transformer import Transformer
from inferlib.units import parse


def chips():
    """The names of all chips in the catalogue."""
    return list(_table("chips.toml"))


def models():
    """The names of all models in the catalogue."""
    return list(_table("models.toml"))


def load_chip(name):
    """A chip of the catalogue, at its 16-bit peak.

    Parameters
    ----------
    name : str
        Such as ``"H100 SXM"``; see :func:`chips`.

    Returns
    -------
    Accelerator
        Use ``.at("fp8")`` for another number format.

    Raises
    ------
    LookupError
        If there is no such chip; near names are suggested.

    Examples
    --------
    >>> load_chip("H100 SXM").memory_bandwidth
    3350000000000.0
    """
    entry = _table("chips.toml")[checks.one_of("chip", name, chips())]
    peaks = {format: parse(peak, "FLOP/s") for format, peak in entry["peaks"].items()}
    return record(Accelerator, entry | {"flops": entry["peaks"]["bf16"]}, name=name, peaks=peaks)


def load_model(name):
    """A model of the catalogue.

    Parameters
    ----------
    name : str
        Such as ``"Llama 3 70B"``; see :func:`models`.

    Returns
    -------
    Transformer

    Raises
    ------
    LookupError
        If there is no such model; near names are suggested.

    Examples
    --------
    >>> load_model("Llama 3 70B").n_layers
    80.0
    """
    return record(Transformer, _table("models.toml")[checks.one_of("model", name, models())], name=name)


def record(kind, entry, **other):
    """Build a record from a table of a TOML file, every number checked against its field's unit.

    Parameters
    ----------
    kind : type
        A record class.
    entry : dict
        Field name to ``"number unit"`` (or a bare number where the unit is ``"1"``); ``sources`` may map
        field names to where they are stated.
    **other
        Fields that are not numbers.

    Raises
    ------
    ValueError
        If a number has the wrong dimension or no unit.
    LookupError
        If the table names a field the record does not have.
    """
    units = {f.name: f.metadata["unit"] for f in quantities(kind)}
    values = {}
    for name, value in entry.items():
        if name in ("sources", "peaks"):
            continue
        checks.one_of(f"field of {kind.__name__}", name, units)
        values[name] = parse(value, units[name])
    if "sources" in entry:
        other["sources"] = entry["sources"]
    return kind(**values, **other)


@cache
def _table(file):
    return tomllib.loads((files("inferlib.catalog") / file).read_text("utf-8"))
