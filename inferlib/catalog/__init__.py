"""Catalogue of chips and models: only what a vendor or a published configuration states, each number with its source.

``chips.toml`` and ``models.toml`` have the data, ``names.toml`` further names. Assumptions of a single source are in
its own package; ``config.json`` files and served checkpoints are read by ``tokenprice.load_model``.
"""

import re
from dataclasses import MISSING
from functools import cache

from inferlib import validation
from inferlib.attention import Attention, LatentAttention
from inferlib.equation import quantities
from inferlib.formats import FORMATS
from inferlib.system import Accelerator, System
from inferlib.transformer import Experts, FeedForward, Layers, Transformer
from inferlib.units import parse

BESIDE = ("memory_type", "driver_memory", "kernel_fallback", "not_stated", "offer", "pcie_share")


def chips():
    """Return the names of all chips in the catalogue."""
    return list(_table("chips.toml"))


def models():
    """Return the names of all models in the catalogue."""
    return list(_table("models.toml"))


def load_chip(name):
    """Return a chip of the catalogue, at its dense 16-bit peak (bf16, else fp16, else the first one stated).

    Parameters
    ----------
    name : str
        For example ``"H100 SXM"`` or ``"H100"``; see :func:`chips`.

    Returns
    -------
    Accelerator
        ``.at("fp8")`` switches to another number format. ``price`` is a list price at the date in
        ``.sources["price"]``, or None if no public list offers the chip.

    Raises
    ------
    LookupError
        If there is no such chip; similar names are suggested.

    Examples
    --------
    >>> load_chip("H100 SXM").memory_bandwidth
    3350000000000.0
    >>> load_chip("V100 SXM2").format
    'fp16'
    """
    return _stated(resolve("chip", name))


def load_system(value, chips=None, name="system"):
    """Return a System from a number and a name of chips; a System is returned unchanged, an Accelerator is one chip.

    ``chips``: further chips by name. ``name``: the argument's name in errors.

    Examples
    --------
    >>> print(load_system("8x H100"), load_system("H200:4"), sep=", ")
    8 × H100 SXM, 4 × H200
    """
    if isinstance(value, (System, Accelerator)):
        return value if isinstance(value, System) else System(value, 1)
    if not isinstance(value, str):
        raise TypeError(f"{name} is {type(value).__name__}, but must be a text such as '4x H100'")
    known = chips or {}
    said = value.strip()

    if said in known:
        return System(known[said], 1)
    before = re.fullmatch(r"([0-9]+)(?:\s*[x×*]\s*|\s+(?=\D))(.+)", said, re.IGNORECASE)
    number, chip = before.groups() if before else ("1", said)
    after = re.fullmatch(r"(.*?\S)\s*[x×*:]\s*([0-9]+)", said, re.IGNORECASE)
    if after and not before and _found("chip", said) is None:
        chip, number = after.groups()
    try:
        found = known[chip] if chip in known else load_chip(chip)
    except LookupError as error:
        if not (before and chip[-1] in "sS"):
            raise LookupError(str(error).replace(repr(chip), repr(said), 1)) from None
        found = load_system(chip[:-1], chips, name).chip  # 8 H100s
    return System(found, validation.number(f"{name} {said!r}: chips", int(number), minimum=1, maximum=1e12))


@cache
def _stated(name):
    """Return a chip of the catalogue by its full name; cached, since records cannot change."""
    entry = {key: value for key, value in _table("chips.toml")[name].items() if key not in BESIDE}
    try:
        return read_chip(name, entry, chip_fact(name, "offer"))
    except (LookupError, TypeError, ValueError) as error:
        raise type(error)(f"chips.toml, {name!r}: {error}") from None


def chip_fact(name, fact):
    """Return a fact that the catalogue states about a chip but Accelerator does not hold (one of ``BESIDE``), or None.

    Examples
    --------
    >>> chip_fact("L40S", "memory_type"), chip_fact("L4", "kernel_fallback")
    ('GDDR', 'L40S')
    """
    return _table("chips.toml").get(name, {}).get(fact)


def read_chip(name, entry, offer=None):
    """Return the Accelerator that a table of ``chips.toml`` describes, at the price of an ``offer``."""
    entry = dict(entry)
    pages, peaks, sources = (entry.pop(key, {}) for key in ("pages", "peaks", "sources"))
    if pages:
        sources = {field: text.format(**pages) for field, text in sources.items()}
    format = next(f for f in ("bf16", "fp16", *peaks) if f in peaks)
    if format in sources:
        sources["flops"] = sources[format]
    if offer:
        entry["price"] = f"{parse(offer['price'], 'usd/h') / offer.get('chips', 1)!r} usd/h"
        sources["price"] = f"{offer['seller']}, on demand, {offer['date']}, {offer['url']}"
    return record(
        Accelerator,
        entry | {"flops": peaks[format]},
        name=name,
        format=validation.one_of("format", format, FORMATS),
        peaks={validation.one_of("format", f, FORMATS): parse(peak, "FLOP/s") for f, peak in peaks.items()},
        sources=sources,
    )


def load_model(name):
    """Return a model of the catalogue.

    Parameters
    ----------
    name : str
        For example ``"Llama 3 70B"`` (see :func:`models`), or its name on Hugging Face. Capitals, blanks, hyphens, the
        maker's name, and endings such as ``-Instruct`` that change no shape are ignored. ``tokenprice.load_model``
        also reads served checkpoints and the ``config.json`` of any model.

    Returns
    -------
    Transformer

    Raises
    ------
    LookupError
        If there is no such model; similar names are suggested.

    Examples
    --------
    >>> load_model("Llama 3 70B").n_layers, load_model("meta-llama/Llama-3.3-70B-Instruct").name
    (80, 'Llama 3.3 70B')
    """
    return _model(resolve("model", name))


@cache
def _model(name):
    """Return a model of the catalogue by its full name; cached, since records cannot change."""
    if name in same_shapes():
        return like(name, _model(same_shapes()[name]["like"]), same_shapes()[name])
    entry = dict(_table("models.toml")[name])
    try:
        entry["sources"] = {"shape": entry.pop("source")}
        entry["layers"] = tuple(_layers(**group) for group in entry["layers"])
        return Transformer(**entry, name=name)
    except (LookupError, TypeError, ValueError) as error:
        raise type(error)(f"models.toml, {name!r}: {error}") from None


def _layers(count, attention, feed_forward, **other):
    kind = LatentAttention if "kv_rank" in attention else Attention
    block = Experts if "n_experts" in feed_forward else FeedForward
    return Layers(count, kind(**attention), block(**feed_forward), **other)


def like(name, model, entry):
    """Return a model under another name whose shape it has: an ``entry`` of :func:`same_shapes`."""
    source = f"{HUB}{entry['id']}/blob/main/config.json, of the shape of {entry['like']}"
    context = entry.get("context", model.max_context)
    return model.replace(name=name, sources={"shape": source}, max_context=context)


def address(source):
    """Return the Hugging Face name in the address of a configuration, or None."""
    return "/".join(source.removeprefix(HUB).split("/")[:2]) if source.startswith(HUB) else None


def same_shapes():
    """Models whose shape equals that of another model in the catalogue: name to its ``like`` and its ``id``."""
    return _table("names.toml")["model"]


def resolve(what, name):
    """Return the catalogue's name of a ``"model"`` or ``"chip"`` in any spelling; LookupError suggests similar names.

    Examples
    --------
    >>> resolve("chip", "h100"), resolve("model", "gpt-oss-120b")
    ('H100 SXM', 'GPT-OSS 120B')
    """
    found = _found(what, name)
    if found is None:
        more = "" if what == "chip" else "; tokenprice.load_model knows more, and reads config.json files"
        where = f"inferlib.catalog.{what}s() lists those of the catalogue{more}"
        raise unknown(what, name, spellings(what), where)
    return found


def unknown(what, name, spelled, where):
    """Return the LookupError for a name: similar ones of ``spelled``, and ``where`` all are listed."""
    from difflib import get_close_matches

    typed = "".join(words(str(name)))
    near = get_close_matches(typed, spelled, n=5, cutoff=0.6)
    inside = sorted((known for known in spelled if len(typed) > 2 and typed in known), key=len)
    names = dict.fromkeys(spelled[known] for known in [*inside[:3], *near])
    hint = f"; did you mean {' or '.join(map(repr, list(names)[:4]))}?" if names else ";"
    return LookupError(f"no {what} {validation.shown(name)}{hint} {where}")


def _found(what, name):
    """Return the catalogue's name, or None."""
    if not isinstance(name, str) or len(name) >= 200:
        return None
    if name in _table(f"{what}s.toml"):
        return name
    typed = words(name)
    found = spellings(what).get("".join(typed))
    return _sold_as(typed) if found is None and what == "chip" else found


def _sold_as(typed):
    """Return a chip by a name with its vendor or memory size, if the size is right; or None."""
    plain = [word for word in typed if word not in VENDORS]
    bare = [word for word in plain if not re.fullmatch(r"\d+gb?|hbm3e?", word)]
    whole, found = (spellings("chip").get("".join(words)) for words in (plain, bare))
    if whole or found is None:
        return whole
    sizes = [int(word.rstrip("gb")) * 1e9 for word in typed if re.fullmatch(r"\d+gb?", word)]
    has = parse(_table("chips.toml")[found]["memory_capacity"], "B")
    return found if all(abs(size / has - 1) < SOLD for size in sizes) else None


HUB = "https://huggingface.co/"
VENDORS = {"nvidia", "amd", "intel", "google", "aws", "geforce", "tesla", "instinct", "radeon"}
SOLD = 0.1  # largest relative difference between the memory in a chip's name and in its data sheet
ENDINGS = ("instruct", "chat", "it", "hf", "base", "thinking", "v0.1", "0528")


@cache
def spellings(what):
    """Map every accepted name, in normalised spelling, to the catalogue's name."""
    return {"".join(split): name for split, name in spelled(what).items()}


@cache
def spelled(what):
    """Map every accepted name, split into words, to the catalogue's name; later entries win."""
    names = _table("names.toml")
    if what == "chip":
        typed = names["chip"] | {name: name for name in chips()}
    else:
        typed = names["alias"] | by_address({**same_shapes(), **_table("models.toml")})
    return {tuple(words(text)): name for text, name in typed.items()}


def by_address(entries):
    """Map the names of models and their names on Hugging Face to the former."""
    typed = {}
    for name, entry in entries.items():
        hub = entry.get("id") or address(entry["source"])
        typed |= {name: name} | ({hub: name} if hub else {})
    return typed


def words(name):
    """Return the words of a name in lower case, without its maker and words that change no shape."""
    found = split(name)
    found = found[:1] + [word for word in found[1:] if word not in ENDINGS]
    return found[1:] if found[:1] == ["meta"] and len(found) > 1 else found


def split(name):
    """Return the words of a name in lower case, without the account that publishes it."""
    return [word for word in re.split(r"[\s_-]+", name.rpartition("/")[2].lower()) if word]


def record(kind, entry, **other):
    """Build a record from a TOML table by field: ``"number unit"``, whose unit is checked, or any other value."""
    units = {f.name: f.metadata["unit"] for f in quantities(kind)}
    known = [name for name in kind.__dataclass_fields__ if name not in other]
    values = {}
    for name, value in entry.items():
        validation.one_of(f"field of {kind.__name__}", name, known)
        try:
            values[name] = parse(value, units[name]) if name in units else value
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    lacks = [f.name for f in quantities(kind) if f.default is MISSING and f.name not in {*values, *other}]
    if lacks:
        raise ValueError(f"{lacks[0]} is missing, but every {kind.__name__} needs it")
    return kind(**values, **other)


def _table(file):
    return validation.read_package_toml(__file__, file)
