"""Parse the fields of a question: each function takes the name of a field and its value."""

import re
from collections.abc import Mapping
from os import PathLike

from inferlib import validation
from inferlib.formats import FORMATS
from inferlib.system import Layout, System
from inferlib.transformer import Transformer
from tokenprice import calibration, workload
from tokenprice.catalog import load_model, load_system, resolve
from tokenprice.config.formats import SPELLED

# Units of each kind of number, in lower case and without blanks, with their factors.
_LARGE = {"": 1, "k": 1024, "m": 1024**2}
_TOKENS = {large + word: by for large, by in _LARGE.items() for word in ("", "token", "tokens")}
_SECONDS = {"": 1.0, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
_SPEED = ("/s", "tok/s", "token/s", "tokens/s")
_EACH = {"s": 1, "min": 60, "h": 3600, "day": 86400}
_RATE = {"rps": 1, "qps": 1} | {
    f"{word}/{each}": by for word in ("", "req", "request", "requests") for each, by in _EACH.items()
}
_SHARE = {"": 1, "%": 100}
_USD = ("", "$", "usd")
# Unit that a dollar amount is paid for, by field; all other fields are dollars per chip-hour.
_PAID = {
    "electricity": ("/kwh",),
    "usd_per_million": ("/m", "/mtok", "/million"),
}
_HOUR = ("/h", "/hr", "/hour", "/gpu", "/chip", "/gpu/h", "/chip/h")
UNITS = tuple(dict.fromkeys((
    *_TOKENS, *_SHARE, *_SECONDS, *_SPEED, *_RATE,
    *(usd + paid for usd in _USD for paid in ("", *_HOUR, *(one for known in _PAID.values() for one in known))),
)))  # fmt: skip
LENGTHS = (
    "context",
    "prompt_tokens",
    "output_tokens",
    "cached",
    "shared_prefix",
    "max_num_batched_tokens",
)  # the only fields in tokens
_NUMBER = r"[0-9]{1,3}(?:_[0-9]{3})+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?"
_COMMAS = r"[0-9]{1,3}(?:,[0-9]{3})+"
_DEGREE = r"(tp|pp|ep|dp)\s*=?\s*([0-9]+)"
_LAYOUT = rf"(?:attention\s*)?{_DEGREE}(?:[\s,x×+]*(?:with\s*)?{_DEGREE})*"


class Bytes(float):
    """Bytes per value of a format without a name, parsed from bits."""


class Seconds(float):
    """A time typed with its unit, longer than a bare number may be."""


def _number(name, value, **limits):
    """Validate one number with :func:`inferlib.validation.number`."""
    if isinstance(value, (list, tuple, dict)) or getattr(value, "ndim", 0):
        raise TypeError(
            f"{name} is {validation.short(repr, value)}, but must be one number; several of an option are asked by "
            f"tokenprice.sweep(..., over={{{name!r}: [...]}})"
        )
    return validation.number(name, value, **limits)


def _measured(name, text, units, allowed):
    """Split a text into a number and its unit; ValueError if the text holds anything else.

    Examples
    --------
    >>> _measured("price", "2.5 USD / h", ("usd/h",), "dollars")
    (2.5, 'usd/h')
    """
    thousands = {"k", "/day"} & {*units}
    number = f"{_COMMAS}|{_NUMBER}" if thousands else _NUMBER
    found = re.fullmatch(rf"(-?(?:{number}))(.*)", text.strip().lower(), re.DOTALL)
    unit = found and "".join(found[2].split())
    if not found or unit not in units:
        allowed += ", without a comma" if "," in text and not thousands else ""
        raise ValueError(f"{name} is {validation.short(repr, text)}, but must be {allowed}")
    return float(re.sub("[,_]", "", found[1])), unit


def parse_model(name, value) -> Transformer:
    """Return a model from its name, the path of a config.json, or a mapping of its keys."""
    return value if isinstance(value, Transformer) else load_model(value)


def parse_tokens(name, value) -> float:
    """Parse a number of tokens or sequences: ``8192``, ``"8,192"``, ``"8k"`` (8,192), ``"1M"``.

    Examples
    --------
    >>> parse_tokens("context", "8k"), parse_tokens("context", "1,000"), parse_tokens("prompt_tokens", "2K tokens")
    (8192, 1000, 2048)
    >>> float(parse_tokens("prompt_tokens", "2k ± 50%")), float(parse_tokens("output_tokens", "200-1k"))
    (2048.0, 612.0)
    """
    if name in ("prompt_tokens", "output_tokens") and (found := _mixed(name, value)):
        return found
    if isinstance(value, str):
        allowed = "a number such as 8192 or 8k" if name in LENGTHS else "a number such as 32 or 1k"
        value, unit = _measured(name, value, _TOKENS if name in LENGTHS else _LARGE, allowed)
        value *= _TOKENS[unit]
    zero = name in ("cached", "shared_prefix", "context", "seed")
    value = _number(name, value, zero=zero, minimum=None if zero else 1, maximum=1e12)
    return int(value) if value == int(value) else value


def _mixed(name, value):
    """Parse a length distribution: ``"2k ± 50%"`` (uniform) or evenly spaced quantiles ``"200-1k-8k"``; else None."""
    if isinstance(value, workload.LengthDistribution):
        return value
    if isinstance(value, str):
        said = value
        (middle, sign, part) = re.sub(r"\+/?-", "±", value).partition("±")
        if sign:
            middle = parse_tokens(name, middle)
            part = parse_fraction(f"the part of {name} after ±", part)
            value = middle * (1 - part), middle * (1 + part)
        else:
            value = re.split(r"(?<=\w)(?<!\de)\s*-", value)
    elif isinstance(value, (list, tuple)):
        said = "-".join(str(one) for one in value)
    if not isinstance(value, (list, tuple)) or len(value) < 2:
        return None
    quantiles = [parse_tokens(name, one) for one in value]
    if quantiles != sorted(quantiles):
        raise ValueError(f"{name} is {validation.short(repr, said)}, but quantiles must rise, like 200-1k-8k")
    return workload.interpolate_quantiles(quantiles, said)


def parse_trace(name, value) -> workload.Trace:
    """Read a trace file with :func:`tokenprice.workload.read_trace`."""
    return (
        value
        if isinstance(value, workload.Trace)
        else workload.read_trace(name, validation.instance(name, value, (str, PathLike)))
    )


def parse_count(name, value) -> float:
    """Parse a whole number of sequences or users."""
    return parse_int(name, value)


def parse_int(name, value, least=1, most=1e12) -> int:
    """Parse a whole number from ``least`` to ``most``."""
    taken = _number(name, parse_tokens(name, value), zero=not least, minimum=least, maximum=most)
    if taken != int(taken):
        raise ValueError(f"{name} is {value!r}, but must be a whole number")
    return int(taken)


def parse_positive(name, value) -> float:
    """Parse a number above zero."""
    return _number(name, _measured(name, value, ("",), "a number")[0] if isinstance(value, str) else value)


def parse_times(name, value) -> float:
    """Parse a number of at least 1, whole or not."""
    return _number(name, parse_positive(name, value), minimum=1)


def parse_rate(name, value) -> float:
    """Parse a rate per second: ``2.5``, ``"2.5/s"``, ``"150/min"``, ``"20,000/day"``.

    Examples
    --------
    >>> parse_rate("request_rate", "150/min"), parse_rate("request_rate", "21,600 requests/day")
    (2.5, 0.25)
    """
    if isinstance(value, str):
        number, each = _measured(name, value, {"", *_RATE}, "like 2.5/s or 150/min or 9000/day")
        value = number / _RATE.get(each, 1)
    return _number(name, value, minimum=1e-9, maximum=1e9)


def parse_bool(name, value) -> bool:
    """Parse yes or no."""
    known = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
    return known[validation.one_of(name, str(value).strip().lower(), known)]


def choice(allowed):
    """Return a parser of one of these words."""
    return lambda name, value: validation.one_of(name, str(value).strip().lower(), allowed)


def parse_fraction(name, value) -> float:
    """Parse a fraction above 0 and at most 1: ``0.4`` or ``"40%"``."""
    if isinstance(value, str):
        value, unit = _measured(name, value, _SHARE, "like 0.4 or 40%")
        value /= _SHARE[unit]
    return _number(name, value, minimum=1e-9, maximum=1)


def parse_cached(name, value) -> float | str:
    """Parse the cached tokens of a prompt; a share of the prompt is kept as text.

    A bare number up to 1 is a share of the prompt, never one token; 1.5 is neither.

    Examples
    --------
    >>> [parse_cached("cached", said) for said in ("8k", "95%", 0.833, "0%")]
    [8192, '95%', '83.3%', 0.0]
    """
    if isinstance(value, workload.LengthDistribution):
        return value
    bare = value.strip().rstrip("%") == value.strip() if isinstance(value, str) else True
    taken = parse_tokens(name, value) if bare else 0.0
    alone = not isinstance(value, str) or re.fullmatch(_NUMBER, value.strip().lower())
    if bare and not (alone and 0 < taken < 2):
        return taken
    if isinstance(value, str) and _measured(name, value, _SHARE, "like 0.4 or 40%")[0] == 0:
        return 0.0
    part = 1 if taken >= 1 else parse_fraction(name, value)
    if part == 1:
        raise ValueError(
            f"{name} is {value!r}, but must be below the whole prompt: a share such as 95%, or tokens"
        )
    return f"{100 * part:.12g}%"


def parse_seconds(name, value) -> float:
    """Parse a time in seconds: ``0.5``, ``"500 ms"``, ``"1.2 s"``; or a speed, ``"50 tokens/s"``, which is ``"20 ms"``.

    Examples
    --------
    >>> parse_seconds("tpot", "20 ms"), parse_seconds("tpot", "50 tokens/s")
    (0.02, 0.02)
    """
    if isinstance(value, Seconds):
        return value
    # a bare number this large is not meant in seconds: TPOT is below 1 s, TTFT below a minute
    most = 1 if name.startswith("tpot") else 60
    if isinstance(value, str):
        allowed = "like '500 ms', '1.2 s' or '50 tokens/s'"
        number, unit = _measured(name, value, (*_SECONDS, *_SPEED), allowed)
        _number(name, number)
        value = 1 / number if unit in _SPEED else number * _SECONDS[unit]
        if unit:
            value = _number(name, value, minimum=1e-9)
            return Seconds(value) if value > most else value
    value = _number(name, value, minimum=1e-9)
    if value > most:
        raise ValueError(f"{name} is {value:g} s: did you mean '{value:g} ms', or '{value:g} tokens/s'?")
    return value


def parse_dollars(name, value) -> float:
    """Parse dollars: ``2.5``, ``"$2.50"``, ``"2.5 usd"``, ``"$2/h"``."""
    if isinstance(value, str):
        said = re.sub(r"^\s*\$", "", value)
        paid = ("", *_PAID.get(name, _HOUR))
        units = ("", *paid) if said != value else {usd + one for usd in _USD for one in paid}
        try:
            value, _ = _measured(name, said, units, "")
        except ValueError:
            allowed = f"dollars, like 2.5 or $2 or $2{paid[1]}"
            raise ValueError(f"{name} is {validation.short(repr, value)}, but must be {allowed}") from None
    return _number(name, value, minimum=1e-9, maximum=1e12)


def split_prices(text) -> dict:
    """Map chips to the texts of their prices.

    Examples
    --------
    >>> split_prices("H100=2-4; B200: $5")
    {'H100': '2-4', 'B200': '$5'}
    """
    found = {}
    for pair in text.split(";"):
        name, *price = map(str.strip, re.split("[=:]", pair))
        if not (name and len(price) == 1 and price[0]):
            said = validation.short(repr, text)
            raise ValueError(f"prices is {said}, but must be like H100=2.5 or H100=2-4; H200=3")
        found[name] = price[0]
    return found


def parse_prices(prices, own=()) -> dict:
    """Map chips to (lowest price, its seller, highest price or None), from prices, ranges, or mappings of sellers."""
    prices = split_prices(prices) if isinstance(prices, str) else prices
    found = {}
    for name, price in validation.instance("prices", prices, Mapping).items():
        sellers = dict(price) if isinstance(price, Mapping) else None
        price = price.split("-") if isinstance(price, str) else price
        listed = price if isinstance(price, (tuple, list)) else [price]
        several = list(sellers.values()) if sellers else listed
        if not several:
            raise ValueError(f"prices[{name!r}] is empty, but must hold dollars for one chip and hour")
        numbers = [parse_dollars(f"prices[{name!r}]", one) for one in several]
        seller = list(sellers)[numbers.index(min(numbers))] if sellers else ""
        most = max(numbers) if len(numbers) > 1 else None
        chip = name if name in own else resolve("chip", name)
        if chip in found:
            raise ValueError(f"prices holds {chip} twice, the second time as {name!r}")
        found[chip] = min(numbers), str(seller), most
    return found


def parse_machine(name, value, chips=None) -> System:
    """Parse a machine: ``"4x H100"``, ``"4 H100"``, ``"H100x4"``, ``"H100:4"``, ``"H200"``, a chip or a System.

    Examples
    --------
    >>> print(parse_machine("machine", "4x H100"), parse_machine("machine", "H100:4"), sep=", ")
    4 × H100 SXM, 4 × H100 SXM
    """
    return load_system(value, chips, name)


def parse_layout(name, value) -> Layout:
    """Parse a parallel layout: ``"TP8"``, ``"PP2 x TP8"``, ``"attention DP8 with EP64"``, ``"one chip"``.

    Examples
    --------
    >>> at = parse_layout("layout", "attention DP8 with EP8")
    >>> at.dp, at.ep, at.tp
    (8, 8, 1)
    """
    if isinstance(value, Layout):
        return value
    if not isinstance(value, str):
        raise TypeError(f"{name} is {type(value).__name__}, but must be a text such as 'TP8' or 'DP8 EP8'")
    found = re.findall(_DEGREE, value, re.IGNORECASE)
    names = [degree.lower() for degree, _ in found]
    text = value.strip().lower()
    if len(set(names)) < len(names) or not (text == "one chip" or re.fullmatch(_LAYOUT, text)):
        said = validation.short(repr, value)
        raise ValueError(f"{name} is {said}, but must be like 'TP8', 'PP2 x TP8' or 'DP8 EP8'")
    return Layout(**{degree.lower(): int(n) for degree, n in found})


def parse_dtype(name, value) -> str | Bytes:
    """Parse a number format: a name, or bits per value (``"FP8"``, ``"nvfp4"``, ``"awq"``, ``4``, ``"4.85"``).

    Returns the library's name of the format, or :class:`Bytes` per value if it has no name.
    """
    if isinstance(value, Bytes):
        return value
    if isinstance(value, str):
        plain = re.sub(r"(?<=\w)-", "", value.strip().lower()).replace(" bits", "bit").replace(" bit", "bit")
        plain = SPELLED.get(plain, plain).removesuffix("bit")
        if not re.fullmatch(r"\d[\d.]*", plain):
            if re.match(r"i?q\d(_|$)", plain):
                raise ValueError(
                    f"{name} is {value!r}, which mixes formats: give bits of a weight, such as 4.85"
                )
            validation.one_of(f"format of {name}", plain if plain in FORMATS else value, FORMATS)
            return calibration.whole_format(plain) if name == "weights" else plain
        value, _ = _measured(name, plain, ("",), "a format such as fp8, or bits")
    bits = _number(name, value)
    if not 1 <= bits <= 32:
        raise ValueError(f"{name} is {bits:g}, but must be a format such as fp8, or 1 to 32 bits of a value")
    return "bf16" if bits == 16 else "fp32" if bits == 32 else Bytes(bits / 8)


def parse_layer_formats(name, value) -> dict:
    """Parse the formats of single parts: a mapping, or ``"attention=bf16, head=fp16"``."""
    if isinstance(value, (list, tuple)):
        value = ",".join(map(str, value))
    if isinstance(value, str):
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        if not all(part.strip() and sign and text.strip() for part, sign, text in pairs):
            raise ValueError(f"{name} is {validation.short(repr, value)}, but must be like attention=bf16")
        if len({part.strip().lower() for part, *_ in pairs}) < len(pairs):
            raise ValueError(f"{name} is {validation.short(repr, value)}, but must name each part once")
        value = {part.strip().lower(): text for part, _, text in pairs}
    validation.instance(name, value, dict)
    for part in value:
        validation.one_of(f"part of {name}", part, calibration.PARTS)
    return {part: parse_dtype(name, text) for part, text in value.items()}


def parse_engine(name, value) -> str:
    """Return the class of an engine: ``"vllm"`` is ``"serving"``, ``"trtllm"`` is ``"compiled"``.

    ``"sglang"`` keeps its name, because its scheduler prefills first.
    """
    validation.instance(name, value, str)
    classes = calibration.engines()["class"]
    said = value.strip().lower()
    if said in classes:
        return said
    named = re.fullmatch(r"[a-z-]+(?:\s*v?[0-9][\w.+-]*)?", said)  # one name, optionally with a version
    if named and any(re.search(pattern, said) for pattern, _ in calibration.engines()["software"]):
        return "sglang" if said.startswith("sglang") else calibration.engine_class(said)
    return validation.one_of(name, value, [*classes, "vllm", "sglang", "trtllm"])


def parse_acceptance_length(name, value) -> float | str:
    """Parse the acceptance length of speculative decoding: a number, or the name of a measured curve."""
    if isinstance(value, str) and value.strip().endswith("%"):
        raise ValueError(
            f"{name} is {validation.short(repr, value)}, but must be tokens of a step: 1 + draft_tokens × the share "
            "of drafts that is accepted"
        )
    try:
        number = _measured(name, value, ("",), "")[0] if isinstance(value, str) else float(value)
    except (TypeError, ValueError):
        from tokenprice.speculation import measured_curves

        return validation.one_of(f"curve of {name}", value, measured_curves())
    return _number(name, number, minimum=1)
