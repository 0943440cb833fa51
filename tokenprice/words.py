"""The words of a question, read here and nowhere else: each function takes the name of a field and what was given."""

import re
from collections.abc import Mapping
from os import PathLike

from inferlib import checks
from inferlib.catalog import load_chip, load_model, resolve
from inferlib.formats import FORMATS, SPELLED
from inferlib.system import Accelerator, Layout, System
from inferlib.transformer import Transformer
from tokenprice import constants, mix
from tokenprice.scheduler import ORDERS, ROUTERS

_LARGE = {"": 1, "k": 1024, "m": 1024**2}
_SECONDS = {"ms": 1e-3, "us": 1e-6, "s": 1.0, "min": 60.0}
_EVERY = {"s": 1, "min": 60}  # seconds
_NUMBER = r"([\d.,_]*\d[\d.,_]*|[\d.]+e-?\d+)"
_LAYOUT = re.compile(r"(tp|pp|ep|dp)\s*=?\s*(\d+)", re.IGNORECASE)


class Bytes(float):
    """Bytes of a value whose format has no name: what bits have been read to."""


_SAME = 0.01  # bytes of a part this near to those of a format are that format


def _number(name, value, **limits):
    """One number that fits, as :func:`inferlib.checks.number` says."""
    if isinstance(value, (list, tuple, dict)) or getattr(value, "ndim", 0):
        raise TypeError(f"{name} is {checks.short(repr, value)}, but must be one number")
    return checks.number(name, value, **limits)


def _digits(name, text, allowed):
    try:
        return float(re.sub("[,_]", "", text))
    except ValueError:
        raise ValueError(f"{name} is {checks.short(repr, text)}, but must be {allowed}") from None


def model(name, value) -> Transformer:
    """A model by its name, the path of a config.json, or a mapping of its keys."""
    return value if isinstance(value, Transformer) else load_model(value)


def tokens(name, value) -> float:
    """A number of tokens or sequences: ``8192``, ``"8,192"``, ``"8k"`` (8,192), ``"1M"``.

    Examples
    --------
    >>> tokens("context", "8k"), tokens("context", "1,000"), tokens("prompt", "2K tokens")
    (8192, 1000, 2048)
    >>> float(tokens("prompt", "2k ± 50%")), float(tokens("output", "200-1k"))
    (2048.0, 612.0)
    """
    if name in ("prompt", "output") and (found := _mixed(name, value)):
        return found
    if isinstance(value, str):
        found = re.fullmatch(rf"\s*{_NUMBER}\s*([kKmM]?)\s*(?:tokens?)?\s*", value)
        allowed = "a number such as 8192 or 8k"
        if not found:
            raise ValueError(f"{name} is {checks.short(repr, value)}, but must be {allowed}")
        value = _digits(name, found[1], allowed) * _LARGE[found[2].lower()]
    value = _number(name, value, zero=name in ("cached", "context"), maximum=1e12)
    return int(value) if value == int(value) else value


def _mixed(name, value):
    """Lengths that differ: ``"2k ± 50%"``, evenly, or quantiles at equal distances, ``"200-1k-8k"``; else None."""
    if isinstance(value, mix.Lengths):
        return value
    if isinstance(value, str):
        said, (middle, sign, part) = value, re.sub(r"\+/?-", "±", value).partition("±")
        if sign:
            middle, part = tokens(name, middle), share(name, part)
            value = middle * (1 - part), middle * (1 + part)
        else:
            value = re.split(r"(?<=\w)(?<!\de)\s*-", value)
    elif isinstance(value, (list, tuple)):
        said = "-".join(str(one) for one in value)
    if not isinstance(value, (list, tuple)) or len(value) < 2:
        return None
    quantiles = [tokens(name, one) for one in value]
    if quantiles != sorted(quantiles):
        raise ValueError(f"{name} is {checks.short(repr, said)}, but quantiles must rise, like 200-1k-8k")
    return mix.spread(quantiles, said)


def trace(name, value) -> mix.Trace:
    """A file of requests, as :func:`tokenprice.mix.trace` reads it."""
    return (
        value
        if isinstance(value, mix.Trace)
        else mix.trace(name, checks.instance(name, value, (str, PathLike)))
    )


def count(name, value) -> float:
    """A number of sequences or users, of at least one."""
    return _number(name, tokens(name, value), minimum=1)


def whole(name, value) -> int:
    """A whole number of at least one."""
    taken = count(name, value)
    if taken != int(taken):
        raise ValueError(f"{name} is {value!r}, but must be a whole number")
    return int(taken)


def positive(name, value) -> float:
    """A number above zero."""
    return _number(name, _digits(name, value.strip(), "a number") if isinstance(value, str) else value)


def rate(name, value) -> float:
    """So many a second: ``2.5``, ``"2.5/s"``, ``"150/min"``.

    Examples
    --------
    >>> rate("arrivals", "150/min")
    2.5
    """
    if not isinstance(value, str):
        return _number(name, value)
    number, _, each = value.partition("/")
    seconds = _EVERY[checks.one_of(f"{name}, a number per", each.strip().lower() or "s", _EVERY)]
    return _number(name, _digits(name, number.strip(), "like 2.5/s or 150/min")) / seconds


def truth(name, value) -> bool:
    """Yes or no."""
    known = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
    return known[checks.one_of(name, str(value).strip().lower(), known)]


def order(name, value) -> str:
    """What an engine does first: ``"decode first"`` or ``"prefill first"``."""
    return checks.one_of(name, str(value).strip().lower(), ORDERS)


def router(name, value) -> str:
    """How requests are dealt to machines: ``"random"``, ``"round robin"`` or ``"least loaded"``."""
    return checks.one_of(name, str(value).strip().lower(), ROUTERS)


def share(name, value) -> float:
    """A part of a whole, above 0 and at most 1: ``0.4`` or ``"40%"``."""
    if isinstance(value, str):
        text, sign, _ = value.strip().partition("%")
        value = _digits(name, text.strip(), "like 0.4 or 40%") / (100 if sign else 1)
    return _number(name, value, maximum=1)


def cached(name, value) -> float | str:
    """Tokens of a prompt that are in the cache, or their share of it as ``"95%"``, which stays a text."""
    if isinstance(value, mix.Lengths):
        return value
    if isinstance(value, str) and value.strip().endswith("%"):
        return f"{100 * share(name, value):g}%"
    return tokens(name, value)


def seconds(name, value) -> float:
    """A time: ``0.5``, ``"500 ms"``, ``"1.2 s"``; or as a speed, ``"50 tokens/s"``, which is ``"20 ms"``.

    Examples
    --------
    >>> seconds("token", "20 ms"), seconds("token", "50 tokens/s")
    (0.02, 0.02)
    """
    if isinstance(value, str):
        allowed = "like '500 ms', '1.2 s' or '50 tokens/s'"
        found = re.fullmatch(rf"\s*{_NUMBER}\s*([a-zA-Z]*)\s*(/\s*s)?\s*", value)
        if not found or (found[2].lower() not in _SECONDS and not found[3] and found[2]):
            raise ValueError(f"{name} is {checks.short(repr, value)}, but must be {allowed}")
        number = _number(name, _digits(name, found[1], allowed))
        if found[3]:
            return 1 / number
        if found[2]:
            return number * _SECONDS[found[2].lower()]
        value = number
    value = _number(name, value)
    # a bare number, if it can be seconds: nobody waits for a token for more than one, or a minute for the first
    if value > (1 if name.startswith("token") else 60):
        raise ValueError(f"{name} is {value:g} s: did you mean '{value:g} ms', or '{value:g} tokens/s'?")
    return value


def dollars(name, value) -> float:
    """Dollars: ``2.5``, ``"$2.50"``, ``"2.5 usd"``, ``"$2/h"``."""
    if isinstance(value, str):
        text = re.sub(r"(?i)\$|usd|/\s*(h|hour|gpu|chip|m|mtok|million)\b", "", value).strip()
        value = _digits(name, text, "dollars, like 2.5 or $2")
    return _number(name, value)


def price_list(prices, own=()) -> dict:
    """Chip to (lowest price, whose it is, highest price or None), of numbers, pairs, or mappings of sellers."""
    found = {}
    for name, price in checks.instance("prices", prices, Mapping).items():
        sellers = dict(price) if isinstance(price, Mapping) else None
        listed = price if isinstance(price, (tuple, list)) else [price]
        several = list(sellers.values()) if sellers else listed
        if not several:
            raise ValueError(f"prices[{name!r}] is empty, but must hold dollars for one chip and hour")
        numbers = [dollars(f"prices[{name!r}]", one) for one in several]
        seller = list(sellers)[numbers.index(min(numbers))] if sellers else ""
        most = max(numbers) if len(numbers) > 1 else None
        chip = name if name in own else resolve("chip", name)
        if chip in found:
            raise ValueError(f"prices holds {chip} twice, the second time as {name!r}")
        found[chip] = min(numbers), str(seller), most
    return found


def figures(value) -> str:
    """Three digits, and from a thousand on all before the point.

    Examples
    --------
    >>> figures(0.12345), figures(1790.2)
    ('0.123', '1,790')
    """
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def page(html) -> str:
    """HTML of an answer for a notebook, which takes what stands between two dollars for mathematics elsewhere."""
    return f'<div class="mathjax_ignore">{html}</div>'


def between(low, high) -> str:
    """Two numbers in words, or one where they are the same."""
    return figures(low) if high <= low else f"{figures(low)} to {figures(high)}"


def spanned(value, span) -> str:
    """A number in words with the ends of its interval, so many times as large, where these look otherwise.

    Examples
    --------
    >>> spanned(2, (1 / 2, 1.5)), spanned(2, (1, 1))
    ('2 (1 to 3)', '2')
    """
    low, high = (figures(value * by) for by in span)
    return figures(value) if low == high else f"{figures(value)} ({low} to {high})"


def durations(*seconds) -> str:
    """Times in words: milliseconds, or seconds where the last is ten or more.

    Examples
    --------
    >>> durations(0.21, 1.5), durations(40.2)
    ('210 to 1,500 ms', '40 s')
    """
    unit, scale = ("s", 1) if seconds[-1] >= 10 else ("ms", 1e3)
    return f"{' to '.join(f'{scale * one:,.0f}' for one in seconds)} {unit}"


def machine(name, value, chips=None) -> System:
    """A machine: ``"4x H100"``, ``"4 H100"``, ``"H100x4"``, ``"H100:4"``, ``"H200"``, a chip, or a System as it is.

    Examples
    --------
    >>> print(machine("machine", "4x H100"), machine("machine", "H100:4"), machine("machine", "H200"), sep=", ")
    4 × H100 SXM, 4 × H100 SXM, 1 × H200
    """
    if isinstance(value, (System, Accelerator)):
        return value if isinstance(value, System) else System(value, 1)
    if not isinstance(value, str):
        raise TypeError(f"{name} is {type(value).__name__}, but must be a text such as '4x H100'")
    known, said = chips or {}, value.strip()

    def chip(of):
        return known[of] if of in known else load_chip(of)

    if said in known:
        return System(known[said], 1)
    before = re.fullmatch(r"(\d+)\s*(?:[xX×*]\s*|\s)(\D.*)", said)
    if before:
        return System(chip(before[2].strip()), whole(f"{name} {said!r}: chips", before[1]))
    try:
        return System(chip(said), 1)
    except LookupError:
        after = re.fullmatch(r"(.*?\S)\s*[xX×*:]\s*(\d+)", said)
        if not after:
            raise
    return System(chip(after[1]), whole(f"{name} {said!r}: chips", after[2]))


def layout(name, value) -> Layout:
    """How a model lies on its chips: ``"TP8"``, ``"PP2 x TP8"``, ``"attention DP8 with EP64"``, ``"one chip"``.

    Examples
    --------
    >>> at = layout("layout", "attention DP8 with EP8")
    >>> at.dp, at.ep, at.tp
    (8, 8, 1)
    """
    if isinstance(value, Layout):
        return value
    if not isinstance(value, str):
        raise TypeError(f"{name} is {type(value).__name__}, but must be a text such as 'TP8' or 'DP8 EP8'")
    found = _LAYOUT.findall(value)
    names = [degree.lower() for degree, _ in found]
    rest = re.sub(r"attention|with|one chip|[\sx×,+]", "", _LAYOUT.sub("", value), flags=re.IGNORECASE)
    if rest or len(set(names)) < len(names) or not (found or value.strip() == "one chip"):
        said = checks.short(repr, value)
        raise ValueError(f"{name} is {said}, but must be like 'TP8', 'PP2 x TP8' or 'DP8 EP8'")
    return Layout(**{degree.lower(): int(n) for degree, n in found})


def in_words(layout) -> str:
    """A layout as people write it, and as :func:`layout` reads it.

    Examples
    --------
    >>> in_words(Layout(tp=8)), in_words(Layout(tp=8, pp=2)), in_words(Layout(ep=64, dp=64))
    ('TP8', 'PP2 x TP8', 'attention DP64 with EP64')
    """
    parts = [f"{kind}{n}" for kind, n in (("PP", layout.pp), ("TP", layout.tp)) if n > 1]
    if layout.dp > 1 and layout.ep > 1:
        return f"attention {' x '.join([f'DP{layout.dp}', *parts])} with EP{layout.ep}"
    parts = [f"DP{layout.dp}", *parts] if layout.dp > 1 else parts
    parts += [f"EP{layout.ep}"] if layout.ep > 1 else []
    return " x ".join(parts) or "one chip"


def format(name, value) -> str | Bytes:
    """A number format by one of its names, or bits of a value: ``"FP8"``, ``"nvfp4"``, ``"awq"``, ``4``, ``"4.85"``.

    Returns the library's name of it, or bytes of a value, which pass as they are.
    """
    if isinstance(value, Bytes):
        return value
    if isinstance(value, str):
        plain = value.strip().lower().replace("-", "").replace(" bits", "bit").replace(" bit", "bit")
        plain = SPELLED.get(plain, plain).removesuffix("bit")
        if not re.fullmatch(r"\d[\d.]*", plain):
            if re.match(r"i?q\d(_|$)", plain):
                raise ValueError(
                    f"{name} is {value!r}, which mixes formats: give bits of a weight, such as 4.85"
                )
            checks.one_of(f"format of {name}", plain if plain in FORMATS else value, FORMATS)
            return _whole(plain) if name == "weights" else plain
        value = _digits(name, plain, "a format such as fp8, or bits")
    bits = _number(name, value)
    if not 1 <= bits <= 32:
        raise ValueError(f"{name} is {bits:g}, but must be a format such as fp8, or 1 to 32 bits of a value")
    return "bf16" if bits == 16 else "fp32" if bits == 32 else Bytes(bits / 8)


def format_in_words(value) -> str:
    """A format as people write it: its name, or bits of a value."""
    if isinstance(value, str):
        return value
    name = constants.format_name(value)
    return name if constants.stored_bytes(name) == value else f"{8 * value:.3g} bits"


def keep(name, value) -> dict:
    """Parts of a model in another format: a mapping, or ``"attention=bf16, head=fp16"``."""
    if isinstance(value, (list, tuple)):
        value = ",".join(value)
    if isinstance(value, str):
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        if not all(part.strip() and sign and text.strip() for part, sign, text in pairs):
            raise ValueError(f"{name} is {checks.short(repr, value)}, but must be like attention=bf16")
        value = {part.strip(): text for part, _, text in pairs}
    checks.instance(name, value, dict)
    for part in value:
        checks.one_of("part", part, constants.PARTS)
    return {part: format(name, text) for part, text in value.items()}


def engine(name, value) -> str:
    """A class of engine, or software that belongs to one: ``"vllm"`` is ``"serving"``, ``"trtllm"`` ``"compiled"``."""
    checks.instance(name, value, str)
    classes, said = constants.engines()["class"], value.strip().lower()
    if said in classes:
        return said
    if any(re.search(pattern, said) for pattern, _ in constants.engines()["software"]):
        return constants.engine_class(said)
    return checks.one_of(name, value, [*classes, "vllm", "sglang", "trtllm"])


def length(name, value) -> float | str:
    """Tokens that a step with drafts yields: a number, or a curve that somebody measured."""
    try:
        number = _digits(name, value.strip(), "a number") if isinstance(value, str) else float(value)
    except (TypeError, ValueError):
        from tokenprice.speculation import measured

        return checks.one_of("curve", value, measured())
    return _number(name, number, minimum=1)


def published(model):
    """The format of a model's matrices, of the parts in another one, and of its cache, as its checkpoint states.

    Examples
    --------
    >>> published(load_model("gpt-oss-120b"))[:2]
    ('mxfp4', {'attention': 'bf16'})
    """
    stored = {part: n for part, n in model.formats.items() if part in constants.PARTS}
    if not stored:
        return "bf16", {}, "bf16"
    most = next(part for part in ("experts", "feed-forward", "attention") if part in stored)
    kept = {part: _named(n, model.sparse) for part, n in stored.items()}
    weights = _whole(kept[most])
    implied = constants.formats(model, weights)
    kept = {part: name for part, name in kept.items() if name != _named(implied[part], model.sparse)}
    return weights, kept, _named(model.formats.get("cache", 2), False)


def _whole(format):
    """A format of all matrices: which of them scale blocks follows from the model."""
    return "fp8" if format == "fp8 block" else format


def _named(bytes, sparse):
    """The format of so many bytes, if it is one."""
    name = constants.format_name(bytes)
    size = constants.stored_bytes(bytes)
    if abs(constants.stored_bytes(name) / size - 1) > _SAME:
        return bytes
    return "fp8 block" if name == "fp8" and sparse else name
