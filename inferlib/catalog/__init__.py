"""Real chips and real models: only what a vendor or a published configuration states, each number sourced.

Data live in ``chips.toml``, ``prices.toml`` and ``models.toml``; whole configurations of models that are served
today in ``served.json``, by their name on Hugging Face; further names in ``names.toml``. What only one of the five
sources assumes lives with that source.
"""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path

from inferlib import checks, config
from inferlib.equation import quantities
from inferlib.system import BITS, Accelerator
from inferlib.transformer import Transformer
from inferlib.units import parse


def chips():
    """The names of all chips in the catalogue."""
    return list(_table("chips.toml"))


def models():
    """The names of all models in the catalogue."""
    return list(_table("models.toml"))


def served():
    """The names of the configurations in the catalogue, of models that are served today."""
    return list(_served())


def load_chip(name):
    """A chip of the catalogue, at its dense 16-bit peak (bf16, or fp16, or else the first one that is stated).

    Parameters
    ----------
    name : str
        Such as ``"H100 SXM"`` or ``"H100"``; see :func:`chips`, and :func:`load_chips` for chips of your own.

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
    name = resolve("chip", name)
    return _chip(name, _table("chips.toml")[name], _table("prices.toml").get(name))


def load_chips(path):
    """Chips of your own, from a TOML file.

    Parameters
    ----------
    path : str or os.PathLike
        A table for each chip, as in the catalogue's ``chips.toml``: ``peaks`` (format to ``"990 TFLOP/s"``),
        ``memory_bandwidth`` and any other field of :class:`inferlib.system.Accelerator`, such as ``price``;
        ``sources`` may say where each number is stated.

    Returns
    -------
    dict
        Name to Accelerator.

    Raises
    ------
    LookupError
        If there is no such file, or a field that chips do not have.
    ValueError
        If it is not TOML, a number has the wrong unit, or a chip has no peaks.
    """
    content = config.content_of(Path(path))
    try:
        tables = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    for name, entry in tables.items():
        if (
            not isinstance(entry, Mapping)
            or not isinstance(entry.get("peaks"), Mapping)
            or not entry["peaks"]
        ):
            raise ValueError(f"{path}: chip {name!r} has no peaks, such as bf16 = '990 TFLOP/s'")
    return {name: _chip(name, entry) for name, entry in tables.items()}


def _chip(name, entry, offer=None):
    """An Accelerator from its table."""
    entry = dict(entry)
    pages, peaks = entry.pop("pages", {}), entry.pop("peaks")
    sources = {field: text.format(**pages) for field, text in entry.pop("sources", {}).items()}
    format = next(f for f in ("bf16", "fp16", *peaks) if f in peaks)
    if format in sources:
        sources["flops"] = sources[format]
    if offer:
        entry["price"] = f"{parse(offer['price'], 'usd/h') / offer.get('chips', 1)!r} usd/h"
        sources["price"] = f"{offer['seller']}, on demand, {offer['date']}, {offer['url']}"
    return record(
        Accelerator,
        {key: value for key, value in entry.items() if key != "topology"} | {"flops": peaks[format]},
        name=name,
        format=checks.one_of("format", format, BITS),
        topology=entry.get("topology", ""),
        peaks={checks.one_of("format", f, BITS): parse(peak, "FLOP/s") for f, peak in peaks.items()},
        sources=sources,
    )


def load_model(model):
    """A model of the catalogue, or the one that a Hugging Face ``config.json`` describes.

    Parameters
    ----------
    model : str, os.PathLike or mapping
        A name such as ``"Llama 3 70B"`` (see :func:`models`), a name on Hugging Face such as
        ``"Qwen/Qwen3.5-397B-A17B"`` (see :func:`served`), the path of a ``config.json`` or of a folder that
        holds one (and perhaps an ``hf_quant_config.json``), or its parsed content. Capitals, blanks and hyphens
        do not matter, nor do the maker's name and endings such as ``-Instruct``, which change no shape.

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
    >>> load_model("Llama 3 70B").n_layers, load_model("meta-llama/Llama-3.3-70B-Instruct").name
    (80, 'Llama 3.3 70B')
    """
    if isinstance(model, Mapping):
        return config.read_config(model)
    if not (isinstance(model, str) and model in models()) and config.looks_like_path(model):
        content, sources = config.read_file(model), {"shape": os.fspath(model)}
        beside = Path(model) / "hf_quant_config.json" if Path(model).is_dir() else None
        quantization = config.read_file(beside) if beside is not None and beside.is_file() else None
        return config.read_config(content, os.fspath(model), sources, quantization)
    return _catalogued(resolve("model", model))


@cache
def _catalogued(name):
    """A model of the catalogue; records are frozen, so one is enough."""
    if name in same_shapes():
        entry = same_shapes()[name]
        source = (
            f"https://huggingface.co/{entry['id']}/blob/main/config.json, of the shape of {entry['like']}"
        )
        return load_model(entry["like"]).replace(name=name, sources={"shape": source})
    if name in _served() and name not in models():
        entry = _served()[name]
        sources = {"shape": f"https://huggingface.co/{name}/blob/main/config.json"}
        return config.read_config(entry["config"], name, sources, entry.get("hf_quant_config"))
    entry = _table("models.toml")[name]
    sources = {"shape": entry["source"]}
    if "shape" in entry:
        return Transformer.dense(**entry["shape"], name=name, sources=sources)
    return config.read_config(config.parse(entry["config"]), name, sources)


def same_shapes():
    """Models whose shape is that of another one in the catalogue: name to its ``like`` and its ``id``."""
    return _table("names.toml")["model"]


def resolve(what, name):
    """The catalogue's name for what somebody types.

    Parameters
    ----------
    what : {"model", "chip"}
    name : str

    Returns
    -------
    str

    Raises
    ------
    LookupError
        If nothing is called so, with a few near names.

    Examples
    --------
    >>> resolve("chip", "h100"), resolve("model", "gpt-oss-120b")
    ('H100 SXM', 'GPT-OSS 120B')
    """
    tables = (chips(),) if what == "chip" else (models(), served(), same_shapes())
    if isinstance(name, str):
        for table in tables:
            if name in table:
                return name
        plain = _plain(name) if len(name) < 200 else ""
        if plain in _known(what):
            return _known(what)[plain]
    near = get_close_matches(_plain(str(name)[:200]), _known(what), n=5, cutoff=0.6)
    inside = [
        known
        for known in _known(what)
        if len(_plain(str(name)[:200])) > 2 and _plain(str(name)[:200]) in known
    ]
    names = dict.fromkeys(_known(what)[known] for known in [*inside[:3], *near])
    hint = f"; did you mean {' or '.join(map(repr, list(names)[:4]))}?" if names else ";"
    raise LookupError(
        f"no {what} {config.shown(name)}{hint} inferlib.catalog.{what}s() lists those of the catalogue"
    )


_ENDINGS = ("instruct", "chat", "it", "hf", "base", "thinking", "v0.1", "0528", "bf16")


@cache
def _known(what):
    """Every name that may be typed, without what does not matter, to the catalogue's name."""
    if what == "chip":
        known = {_plain(name): name for name in chips()}
        return {_plain(also): name for also, name in _table("names.toml")["chip"].items()} | known
    known = {_plain(name): name for name in served()}
    for name, entry in same_shapes().items():
        known |= {_plain(name): name, _plain(entry["id"]): name}
    for name, entry in _table("models.toml").items():
        address = re.match(r"https://huggingface\.co/([^/]+/[^/]+)", entry["source"])
        known |= {_plain(name): name} | ({_plain(address[1]): name} if address else {})
    return known


def _plain(name):
    """A name without its maker, capitals, blanks and hyphens, and without endings that change no shape."""
    words = [w for w in re.split(r"[\s_-]+", name.rpartition("/")[2].lower()) if w]
    while len(words) > 1 and words[-1] in _ENDINGS:
        words.pop()
    return "".join(words).removeprefix("meta") if name.lower().startswith("meta") else "".join(words)


@cache
def _served():
    return json.loads((files("inferlib.catalog") / "served.json").read_text("utf-8"))


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
