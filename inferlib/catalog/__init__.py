"""Real chips and real models: only what a vendor or a published configuration states, each number sourced.

Data live in ``chips.toml``, ``prices.toml`` and ``models.toml``; what only one of the five sources assumes
lives with that source.
"""

import os
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from inferlib import checks, config
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
    """A chip of the catalogue, at its dense 16-bit peak (bf16, or fp16 where there is no bf16).

    Parameters
    ----------
    name : str
        Such as ``"H100 SXM"``; see :func:`chips`.

    Returns
    -------
    Accelerator
        Use ``.at("fp8")`` for another number format. Its ``price`` is a snapshot of a list price, dated in
        ``.sources["price"]``, or None where no public list offers the chip.

    Raises
    ------
    LookupError
        If there is no such chip; near names are suggested.

    Examples
    --------
    >>> load_chip("H100 SXM").memory_bandwidth
    3350000000000.0
    >>> load_chip("V100 SXM2").format
    'fp16'
    """
    entry = dict(_table("chips.toml")[checks.one_of("chip", name, chips())])
    pages, peaks = entry.pop("pages"), entry.pop("peaks")
    sources = {field: text.format(**pages) for field, text in entry.pop("sources").items()}
    format = "bf16" if "bf16" in peaks else "fp16"
    sources["flops"] = sources[format]
    offer = _table("prices.toml").get(name)
    if offer:
        entry["price"] = f"{parse(offer['price'], 'usd/h') / offer.get('chips', 1)!r} usd/h"
        sources["price"] = f"{offer['seller']}, on demand, {offer['date']}, {offer['url']}"
    return record(
        Accelerator,
        entry | {"flops": peaks[format]},
        name=name,
        format=format,
        peaks={format: parse(peak, "FLOP/s") for format, peak in peaks.items()},
        sources=sources,
    )


def load_model(model):
    """A model of the catalogue, or the one that a Hugging Face ``config.json`` describes.

    Parameters
    ----------
    model : str, os.PathLike or mapping
        A name such as ``"Llama 3 70B"`` (see :func:`models`), the path of a ``config.json`` or of a folder
        that holds one, or its parsed content.

    Returns
    -------
    Transformer

    Raises
    ------
    LookupError
        If there is no such model (near names are suggested), file, or family of models.
    ValueError
        If the configuration holds a key that its family's reader does not understand, or lacks one.

    Examples
    --------
    >>> load_model("Llama 3 70B").n_layers
    80
    """
    if isinstance(model, Mapping):
        return config.read_config(model)
    if not (isinstance(model, str) and model in models()) and config.looks_like_path(model):
        sources = {"shape": os.fspath(model)}
        return config.read_config(config.read_file(model), name=os.fspath(model), sources=sources)
    entry = _table("models.toml")[checks.one_of("model", model, models())]
    sources = {"shape": entry["source"]}
    if "shape" in entry:
        return Transformer.dense(**entry["shape"], name=model, sources=sources)
    return config.read_config(config.parse(entry["config"]), model, sources)


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
