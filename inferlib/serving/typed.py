"""What somebody types, as records: tokens, machines, layouts, formats; what a checkpoint states is the default."""

import re

from inferlib import checks
from inferlib.catalog import load_chip, load_model
from inferlib.serving import constants
from inferlib.system import BITS, Accelerator, Layout, System
from inferlib.transformer import Transformer

_LARGE = {"": 1, "k": 1024, "m": 1024**2}
_LAYOUT = re.compile(r"(tp|pp|ep|dp)\s*=?\s*(\d+)", re.IGNORECASE)
# formats of a part that a workload knows by another name
_WEIGHTS = {"fp8 block": "fp8", "mxfp4": constants.STORED["mxfp4"]}
_TOLD = 0.01  # bytes of a part this near to those of a format are that format


def formats_of(model, weights, cache, keep):
    """The model, and the formats of its weights, cache and other parts, as asked or as its checkpoint states."""
    model = model if isinstance(model, Transformer) else load_model(model)
    own, kept, own_cache = published(model)
    if weights is None:
        weights, keep = own, {**kept, **(keep or {})} or None
    keep = keep and {part: format_of("keep", name) for part, name in keep.items()}
    return model, format_of("weights", weights), format_of("cache", cache or own_cache), keep


def tokens(name, value, zero=False):
    """A number of tokens or sequences that somebody typed: ``8192``, ``"8,192"``, ``"8k"``, ``"1M"``.

    Examples
    --------
    >>> tokens("context", "8k"), tokens("context", "1,000")
    (8192, 1000)
    """
    if isinstance(value, str):
        number = re.fullmatch(r"\s*([\d.,_]+)\s*([kKmM]?)\s*", value)
        try:
            taken = float(re.sub("[,_]", "", number[1])) * _LARGE[number[2].lower()]
        except (TypeError, ValueError):
            raise ValueError(f"{name} is {value!r}, but must be a number such as 8192 or 8k") from None
        value = int(taken) if taken == int(taken) else taken
    return checks.number(name, value, zero=zero)


def positive(name, value, default=None):
    """:func:`tokens`, with a default for what was not given."""
    return tokens(name, default if value is None else value)


def system_of(chip, chips=None):
    """The machine that somebody typed: ``"4x H100"``, ``"H200"``, a chip, or a System as it is.

    Examples
    --------
    >>> print(system_of("4x H100"))
    4 × H100 SXM
    """
    if isinstance(chip, (System, Accelerator)):
        return chip if isinstance(chip, System) else System(chip, 1)
    if not isinstance(chip, str):
        raise TypeError(f"chip is a {type(chip).__name__}, but must be a text such as '4x H100'")
    known = chips or {}
    count, name = 1, chip.strip()
    if name not in known:
        typed = re.fullmatch(r"(\d+)\s*[xX×*]\s*(.+)", name)
        count, name = (int(typed[1]), typed[2].strip()) if typed else (1, name)
    return System(known[name] if name in known else load_chip(name), count)


def layout_of(layout):
    """The layout that somebody typed: ``"TP8"``, ``"PP2 x TP8"``, ``"attention DP8 with EP64"``.

    Examples
    --------
    >>> at = layout_of("attention DP8 with EP8")
    >>> at.dp, at.ep, at.tp
    (8, 8, 1)
    """
    if layout is None or isinstance(layout, Layout):
        return layout
    found = _LAYOUT.findall(layout) if isinstance(layout, str) else []
    names = [name.lower() for name, _ in found]
    rest = _LAYOUT.sub("", layout if isinstance(layout, str) else "?")
    rest = re.sub(r"attention|with|one chip|[\sx×,+]", "", rest, flags=re.IGNORECASE)
    if rest or len(set(names)) < len(names) or not (found or layout == "one chip"):
        raise ValueError(f"layout is {layout!r}, but must be like 'TP8', 'PP2 x TP8' or 'DP8 EP8'")
    return Layout(**{name.lower(): int(n) for name, n in found})


def format_of(name, format):
    """The format that somebody typed: a name, or bytes of a value; weights in ``mxfp4`` are their bytes."""
    if not isinstance(format, str):
        return checks.number(name, format)
    if re.fullmatch(r"[\d.]+", format):
        return checks.number(name, float(format))
    checks.one_of(f"format of {name}", format, BITS if name == "cache" else constants.STORED)
    return _WEIGHTS.get(format, format) if name == "weights" else format


def published(model):
    """The format of a model's matrices, of the parts in another one, and of its cache, as its checkpoint states.

    Examples
    --------
    >>> published(load_model("gpt-oss-120b"))[:2]
    (0.53125, {'attention': 'bf16'})
    """
    stored = {part: n for part, n in model.formats.items() if part in constants.PARTS}
    if not stored:
        return "bf16", {}, "bf16"
    most = next(part for part in ("experts", "feed-forward", "attention") if part in stored)
    keep = {part: _named(n, model.sparse) for part, n in stored.items()}
    weights = _WEIGHTS.get(keep[most], keep[most])
    told = constants.formats(model, weights)
    keep = {part: name for part, name in keep.items() if name != _named(told[part], model.sparse)}
    return weights, keep, _named(model.formats.get("cache", 2), False)


def _named(bytes, sparse):
    """The format of so many bytes, if it is one."""
    name = constants.format_name(bytes)
    size = constants.stored_bytes(bytes)
    if abs(constants.STORED[name] / size - 1) > _TOLD:
        return bytes
    return "fp8 block" if name == "fp8" and sparse else name
