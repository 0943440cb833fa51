"""Models by name: those of ``inferlib``'s catalogue, those served today, and any described by its ``config.json``.

``served.json`` has whole configurations of models served today by their name on Hugging Face, ``models.toml`` further
models, ``names.toml`` further names, and the formats that the end of a name may state.
"""

import json
import os
from collections.abc import Mapping
from functools import cache

from inferlib import catalog, validation
from inferlib.catalog import by_address, chips, like, load_chip, load_system, split, words
from inferlib.formats import FORMATS
from tokenprice import config
from tokenprice.config.formats import SPELLED
from tokenprice.files import load_chips

__all__ = [
    "chips", "load_chip", "load_chips", "load_model", "load_system", "models", "resolve", "same_shapes", "served",
    "spellings", "typed_formats",
]  # fmt: skip

INFERRED = "{format} is read from the name: all matrices of the layers have it, head and cache 16 bits"


def models():
    """Return the names of all models in the catalogue."""
    return [*catalog.models(), *_table("models.toml")]


def served():
    """Return the Hugging Face names of the stored configurations of models served today."""
    return list(_served())


@cache
def same_shapes():
    """Models whose shape equals that of another model in the catalogue: name to its ``like`` and its ``id``."""
    return catalog.same_shapes() | _table("names.toml")["model"]


@cache
def all_models():
    """The names of all models: of the catalogue, of others with the shape of one of them, and served ones."""
    return (*models(), *same_shapes(), *served())


def typed_formats():
    """Formats that the last words of a model's name may state: words to a checkpoint's own statement."""
    return _table("names.toml")["format"]


def load_model(model):
    """Return a model by its name, or the model that a Hugging Face ``config.json`` describes.

    Parameters
    ----------
    model : str, os.PathLike or mapping
        A name such as ``"Llama 3 70B"`` (see :func:`models`), a name on Hugging Face such as
        ``"Qwen/Qwen3.5-397B-A17B"`` (see :func:`served`), the path of a ``config.json`` or of its folder (which may
        also hold an ``hf_quant_config.json``), or its parsed content. Capitals, blanks, hyphens, the maker's name, and
        endings such as ``-Instruct`` that change no shape are ignored.

    Returns
    -------
    Transformer

    Raises
    ------
    LookupError
        If there is no such model (similar names are suggested), file, or model family.
    ValueError
        If the configuration lacks a key, or has one that its family's reader does not understand.

    Examples
    --------
    >>> load_model("Llama 3 70B").n_layers, load_model("Qwen/Qwen3.5-397B-A17B").n_layers
    (80, 60)
    """
    if isinstance(model, Mapping):
        return config.read_config(model)
    if isinstance(model, str) and model in models():
        return _named(model)
    if config.looks_like_path(model):
        content = config.read_file(model)
        sources = {"shape": os.fspath(model)}
        return config.read_config(content, os.fspath(model), sources, config.read_beside(model))
    name, format = _resolved(model)
    found = _named(name, format)
    if "/" in model and (format or not _anothers(model, name)):
        found = found.replace(sources=found.sources | {"checkpoint": model.replace(" ", "-")})
    assumed = ""
    if format:
        assumed = INFERRED.format(format=format) if typed_formats()[format] else ""
    elif _anothers(model, name):
        assumed = (
            f"the file of {name} is taken for {model}: formats of weights and cache are those that it states"
        )
    return found.replace(notes=found.notes | {"assumed": assumed}) if assumed else found


def _anothers(typed, name):
    """Whether a served checkpoint in 8 or 4 bits has another publisher than the typed name says."""
    maker, _, title = name.partition("/")
    reduced = name in served() and _REDUCED & set(words(title))
    return bool(reduced) and "/" in typed and typed.partition("/")[0].lower() != maker.lower()


@cache
def _named(name, format=None):
    """Return a model by its full name, optionally in another format; cached, since records cannot change."""
    title = name if format is None else f"{name} {format}"
    if name in same_shapes():
        entry = same_shapes()[name]
        return like(title, _named(_found(entry["like"]), format or entry.get("format")), entry)
    if name in catalog.models():
        model = catalog.load_model(name)
        return (
            model if format is None else config.stored_as(model, typed_formats()[format]).replace(name=title)
        )
    if name in served():
        held, source = _served()[name], f"{catalog.HUB}{name}/blob/main/config.json"
    else:
        own = _table("models.toml")[name]
        held, source = {"config": config.parse(own["config"])}, own["source"]
    content, beside = held["config"], held.get("hf_quant_config")
    if format is not None:
        content = content | {"quantization_config": typed_formats()[format] or None}
        beside = None
    return config.read_config(content, title, {"shape": source}, beside)


def resolve(what, name):
    """Return the full name of a ``"model"`` or ``"chip"`` in any spelling; LookupError suggests similar names.

    Examples
    --------
    >>> resolve("chip", "h100"), resolve("model", "Qwen3-235B")
    ('H100 SXM', 'Qwen3 235B-A22B')
    """
    if what == "chip":
        return catalog.resolve(what, name)
    found = _found(name)
    if found is None:
        raise catalog.unknown(what, name, spellings(what), "tokenprice.models() lists those of the catalogue")
    return found


def _resolved(name):
    """Return the full name of a model, and the format that the last words of a typed name may state."""
    found = _found(name)
    for format in typed_formats() if found is None and isinstance(name, str) else ():
        head = " ".join(words(name))
        end = " ".join(words(format))
        base = _found(head.removesuffix(f" {end}")) if head.endswith(f" {end}") else None
        if base is not None and catalog.address(_named(base).sources["shape"]):  # else it has no checkpoint
            return base, format
    return (resolve("model", name) if found is None else found), None


def _found(name):
    """Return the full name of a model, or None."""
    if not isinstance(name, str) or len(name) >= 200:
        return None
    # served.json is long, so it is read last
    if any(name in table() for table in (models, same_shapes, served)):
        return name
    if (whole := "".join(split(name))) in _own_formats():
        return _own_formats()[whole]
    typed = words(name)
    if "".join(typed) in spellings("model"):
        return spellings("model")["".join(typed)]
    # the typed words begin the name of one model, and of its variants only: "Qwen3-235B"
    known = _spelled() if typed else {}
    begin = sorted((found for found in known if found[: len(typed)] == tuple(typed)), key=len)
    others = {known[found] for found in begin if found[: len(begin[0])] != begin[0]}
    # a name without a format never means a checkpoint in 8 or 4 bits
    one = begin and not _REDUCED & set(begin[0][len(typed) :]) and others <= {known[begin[0]]}
    return known[begin[0]] if one else _within(typed, known)


def _within(typed, known):
    """Return the only model whose name contains these consecutive words; or None.

    None also where another name has these words with more between or behind them, as "Llama 70B" may be any Llama, and
    for one word without a number, such as "Pro".
    """
    said = " ".join(typed)
    found = {
        known[name] for name in known if _in_order(typed, name) and not _REDUCED & set(name) - set(typed)
    }
    near = any(f" {said} " in f" {' '.join(name)} " for name in known)
    return found.pop() if near and len(found) == 1 and not said.isalpha() else None


def _in_order(typed, name):
    """Whether a name has the typed words in this order; "qwen" is also one of Qwen3."""
    rest = iter(name)
    return all(any(word in (one, one.rstrip("0123456789.")) for one in rest) for word in typed)


_REDUCED = {word for word, name in SPELLED.items() if FORMATS[name].bits <= 8}


@cache
def spellings(what):
    """Map every accepted name, in normalised spelling, to the full name."""
    if what == "chip":
        return catalog.spellings(what)
    return {"".join(split): name for split, name in _spelled().items()}


@cache
def _spelled():
    """Map every accepted name of a model, split into words, to its full name; later entries win."""
    own = {name: name for name in served()} | _table("names.toml")["alias"]
    own |= by_address(_table("names.toml")["model"] | _table("models.toml"))
    return {tuple(words(text)): name for text, name in own.items()} | catalog.spelled("model")


@cache
def _own_formats():
    """Names of models whose last words state their format, such as Kimi-K2-Thinking, with all words."""
    own = {name: entry for name, entry in same_shapes().items() if "format" in entry}
    return {"".join(split(text)): name for name, entry in own.items() for text in (name, entry["id"])}


@cache
def _served():
    return json.loads(validation.read_package_file(__file__, "served.json"))


def _table(file):
    return validation.read_package_toml(__file__, file)
