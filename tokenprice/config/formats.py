"""How a checkpoint stores each part, from its quantization section: bytes per value, scales included.

A section names tensors by patterns. This module lists the names that the matrices of every layer may have, finds the
format of each, and averages over each part of the model. If a section is not understood, the formats are empty and the
notes have the reason: parameter counts do not depend on it, but the formats must not default to 16 bits.
"""

import re
from collections import Counter
from collections.abc import Mapping
from fnmatch import translate
from functools import cache
from itertools import combinations

from inferlib import validation
from inferlib.equation import frozen
from inferlib.formats import FORMATS
from inferlib.validation import shown
from tokenprice.attention import CompressedAttention, DeltaAttention, StateSpace

MAX_PATTERNS = 100  # patterns that may apply to any layer
MAX_LAYERS = 1000
MAX_GROUP = 10**5
DTYPES = ("bfloat16", "float16", "float32")

# bits per value with scales, of algorithms that no format matches
SCALED = {"fp8_pb_wo": 8 + 32 / 128**2, "mxfp8": 8 + 8 / 32}

# the tool's default if a section does not list its exceptions
ALL_LAYERS = "the checkpoint names no exclude_modules: all matrices of its layers are taken as quantized"

# Every spelling of every format, to its name.
SPELLED = {word: row.name for row in FORMATS.values() for word in (row.name, *row.spelled)}


class Whole(float):
    """Bits or bytes of an integer format with a scale: int8 and int4, not fp8 and fp4."""


class WeightOnly(Whole):
    """Bits or bytes of fp4 weights whose activations keep 16 bits; they are multiplied like int4."""


def nearest(size):
    """Return the format whose stored weights have about this many bytes; integer formats only for a ``Whole``."""
    if isinstance(size, WeightOnly):
        return "fp4 w4a16"
    rows = (row for row in FORMATS.values() if row.name.startswith("int") or not isinstance(size, Whole))
    return min(rows, key=lambda row: abs(row.stored / 8 - size)).name


class Unknown(Exception):
    """A quantization section is not understood; the message says why."""


def _must(good, what, found, must):
    if not good:
        raise Unknown(f"{what} is {shown(found)}, but must be {must}")


def formats_of(config, sequence, d_model, sections, notes, homes=None):
    """Return bytes per value of each part and of the cache, from the first section that is understood.

    ``config``: the keys beside the sections; ``sequence``: attention and feed-forward block of each layer. The result
    is empty if the configuration states no formats, or none that is understood (then ``notes`` have the reason).
    """
    if sections:
        notes["quantization_config"] = "how the checkpoint stores its weights: see formats"
    for stated in sections or [None]:
        try:
            found = _stored(config, sequence, d_model, stated, notes, homes or {})
            notes.pop("formats", None)
            return found
        except Unknown as reason:
            notes.setdefault("formats", str(reason))
    return {}


def _stored(config, sequence, d_model, stated, notes, homes):
    name = config.get("torch_dtype", config.get("dtype"))
    if name is None and stated is None:
        return {}
    name = "bfloat16" if name is None else name  # next to a quantization section that does not state it
    _must(isinstance(name, str) and name in DTYPES, "dtype", name, f"one of {', '.join(DTYPES)}")
    _must(len(sequence) <= MAX_LAYERS, "the number of layers", len(sequence), f"at most {MAX_LAYERS}")
    scheme = _scheme(stated, config.get("expert_dtype"))
    plain = FORMATS[SPELLED[name]].bits
    if scheme.assumed:
        notes["assumed"] = scheme.assumed
    values = Counter()
    bits = Counter()
    kinds = {}
    text = str(stated)
    # a pattern tells equal layers apart by a number that it holds, or as an expression
    numbers = {""} if re.search(r"re:|dynamic|\?", text) else {*re.findall(r"\d+", text)}
    known = {}
    for i, pair in enumerate(sequence):
        layer = *map(id, pair), i if any(n in str(i) for n in numbers) else None
        if layer not in known:
            matrices = _matrices(f"layers.{i}", *pair, d_model, homes)
            known[layer] = [(part, n, scheme.bits(names, part, wide)) for part, wide, names, n in matrices]
        for part, n, each in known[layer]:
            values[part] += n
            bits[part] += n * (each or plain)
            kinds[part] = type(each) if isinstance(each, Whole) else kinds.get(part, float)
    narrow = any(bits[part] < n * plain for part, n in values.items())
    _must(
        stated is None or narrow, "quantization_config", stated, "one that narrows some matrix of the layers"
    )
    found = {part: kinds[part](bits[part] / n) for part, n in values.items() if n}
    found |= dict.fromkeys(("embeddings", "norms", "router", "positions"), plain)
    found["head"] = scheme.bits(("lm_head", "head"), "head", not scheme.head) or plain
    found["cache"] = scheme.cache or plain
    found["connections"] = 32  # mixing weights, which their families store in 32 bits
    return {part: type(size)(size / 8) for part, size in found.items()}


def tensors():
    """``tensors.toml``: names of matrices in published checkpoints."""
    return validation.read_package_toml(__file__, "tensors.toml")


def _matrices(layer, attention, block, d_model, homes):
    """Yield each matrix of a layer: part, whether only its name quantizes it, possible names, number of weights."""
    known = tensors()
    if attention is not None:
        delta = isinstance(attention, DeltaAttention)
        places = known["state_homes" if delta or isinstance(attention, StateSpace) else "attention_homes"]
        for name, n in (_of_delta(attention, d_model) if delta else attention.matrices(d_model)).items():
            if name == "index key" and isinstance(attention, CompressedAttention):
                name = "pool"  # the indexer's keys are pooled by maps of the same kind
            names = [f"{layer}.{place}.{word}" for place in places for word in known["attention"][name]]
            yield "attention", name in known["wide"], names, n
    for part, n in block.weights(d_model).items() if block is not None else ():
        if part == "router" or not n:
            continue
        inside = known["inside"].get(part, [""])
        places = homes.get(part) or [f"{home}.{inner}" for home in known["block_homes"] for inner in inside]
        words = known["block"]["latent" if part == "latent" else "matrices"][: block.matrices]
        for word in words:
            names = [f"{layer}.{place}{w}" for place in places for w in word]
            yield part, part == "latent", names, n / len(words)


def _of_delta(attention, d_model):
    """Return the matrices of linear attention one by one; a low-rank projection is two."""
    found = attention.matrices(d_model)
    keys = d_model * attention.n_key_heads * attention.key_dim
    values = found.pop("query, key, value") - 2 * keys
    for name, rank in (("decay", attention.decay_rank), ("gate", attention.gate_rank)):
        if rank is not None:
            down = d_model * rank
            found |= {f"{name} down": down, f"{name} up": found.pop(name) - down}
    return found | {"query": keys, "key": keys, "value": values}


# --- Formats of tensors in a section --------------------------------------------------------------------------


@frozen
class _Scheme:
    """Bits per value by default and of experts; patterns kept at 16 bits or with other bits; head; cache; a remark."""

    default: float | None = None
    experts: float | None = None
    kept: "_Patterns | None" = None
    given: tuple = ()
    head: bool = False
    cache: float | None = None
    assumed: str = ""

    def bits(self, names, part, wide):
        """Return the bits per value of the tensor with one of these names; None if it is not quantized."""
        for patterns, bits in self.given:
            if patterns.match(names):
                return bits
        if wide or (self.kept is not None and self.kept.match(names)):
            return None
        return (self.experts if part == "experts" else None) or self.default


def _scheme(stated, expert_dtype):
    try:
        return _Scheme() if stated is None else _read(stated, expert_dtype)
    except (AttributeError, KeyError, TypeError):  # for example a list where every tool writes an object
        raise Unknown(f"quantization_config is {shown(stated)}, and no tool writes it so") from None


def _read(stated, expert_dtype):
    if isinstance(stated.get("quantization"), Mapping):
        stated = {**stated, **stated["quantization"]}
    method = stated.get("quant_method") or ("modelopt" if "quant_algo" in stated else None)
    name = str(method).lower().replace("_", "-")
    _must(name in METHODS, "quant_method", method, f"one of {', '.join(METHODS)}")
    read, lists, head = METHODS[name]
    said = {"kept": _texts(stated, *lists), "given": _layers(stated), "cache": _cache(stated), "head": head}
    said |= read(stated)
    if name == "fp8" and "fp4" in (expert_dtype, stated.get("expert_dtype")):
        said["experts"] = FORMATS["mxfp4"].stored
    given = tuple((_Patterns(names), bits) for bits, names in said.pop("given").items())
    return _Scheme(**said | {"kept": _Patterns(said["kept"]), "given": given})


def _layers(stated):
    """Map formats to the names of tensors that have them."""
    by_format = {}
    for name, entry in _object(stated, "quantized_layers").items():
        by_format.setdefault(_algorithm(entry.get("quant_algo")), []).append(name)
    return by_format


def _cache(stated):
    """Return the bits per value of the cache, if the section states them."""
    scheme = stated.get("kv_cache_quant_algo") or stated.get("kv_cache_scheme")
    if scheme is None or isinstance(scheme, str):
        return None if scheme is None or scheme.upper() == "NONE" else _algorithm(scheme)
    _must(scheme.get("num_bits") == 8, "kv_cache_scheme", scheme, "of 8 bits")
    return 8


def _fp8(stated):
    """FP8 of whole matrices, or in blocks with a scale of 32 bits, or of 8 (UE8M0).

    Examples
    --------
    >>> block = {"weight_block_size": [128, 128]}
    >>> [2**14 * (_fp8(stated)["default"] - 8) for stated in ({}, block, block | {"scale_fmt": "ue8m0"})]
    [0, 32.0, 8.0]
    """
    block = stated.get("weight_block_size")
    if block is None:
        return {"default": 8}
    good = isinstance(block, list) and len(block) == 2 and all(_is_size(n) for n in block)
    _must(good, "weight_block_size", block, "two whole numbers")
    return {"default": 8 + (8 if stated.get("scale_fmt") == "ue8m0" else 32) / (block[0] * block[1])}


def _modelopt(stated):
    algorithm = stated.get("quant_algo")
    if algorithm == "MIXED_PRECISION":
        if "quantized_layers" not in stated:
            raise Unknown("quantized_layers is missing, but MIXED_PRECISION needs it")
        return {}
    awq = algorithm in ("W4A16_AWQ", "W4A8_AWQ")
    default = _packed(4, stated.get("group_size", 128), False) if awq else _algorithm(algorithm)
    if {"exclude_modules", "ignore"} & set(stated):
        return {"default": default}
    return {"default": default, "head": False, "assumed": ALL_LAYERS}


def _compressed(stated):
    groups = _object(stated, "config_groups")
    found = {}
    given = {}
    if not groups:
        raise Unknown("config_groups is missing, but compressed-tensors needs it")
    for group in groups.values():
        if group.get("targets") == ["Linear"]:
            found["default"] = _group_bits(group["weights"], group)
        else:
            given.setdefault(_group_bits(group["weights"], group), []).extend(_texts(group, "targets"))
    return found | {"given": given}


def _integers(stated):
    """AWQ, GPTQ, AutoRound: integers in groups, each with a 16-bit scale and a zero point."""
    _must(stated.get("data_type", "int") == "int", "data_type", stated.get("data_type"), "int")
    rules = {f"re:{str(rule)[2:]}": str(rule)[:2] == "-:" for rule in _object(stated, "dynamic")}
    extra = _object(stated, "extra_config").items()
    rules |= {name: isinstance(entry, Mapping) and entry.get("bits") == 16 for name, entry in extra}
    rules |= {key: False for key in ("modules_in_block_to_quantize",) if stated.get(key)}
    for name, left_out in rules.items():
        _must(left_out, "a format of its own", name, "16 bits")
    bits = stated.get("bits", stated.get("w_bit"))
    size = stated.get("group_size", stated.get("q_group_size"))
    kept = [*rules, *_texts(stated, "modules_to_not_convert")]
    return {"default": _packed(bits, size, True), "kept": kept, "head": stated.get("lm_head") is True}


def _bitsandbytes(stated):
    """bitsandbytes: NF4 or FP4 in blocks of 64 with 32-bit scales, quantized again if so stated; or int8.

    Examples
    --------
    >>> four = {"load_in_4bit": True}
    >>> [_bitsandbytes(stated)["default"] for stated in ({"load_in_8bit": True}, four)]
    [8.0, 4.5]
    >>> 64 * 256 * (_bitsandbytes(four | {"bnb_4bit_use_double_quant": True})["default"] - 4) == 256 * 8 + 32
    True
    """
    if stated.get("load_in_8bit") is True:
        return {"default": Whole(8)}
    if stated.get("load_in_4bit") is not True:
        raise Unknown("neither load_in_8bit nor load_in_4bit is true")
    return {"default": 4 + (8 + 32 / 256 if stated.get("bnb_4bit_use_double_quant") else 32) / 64}


def _quark(stated):
    """AMD Quark: formats of all layers, of some by pattern, and of the cache by the outputs of keys and values."""
    _must(not stated.get("layer_type_quant_config"), "layer_type_quant_config", "given", "empty")
    overall = _object(stated, "global_quant_config").get("weight")
    found = {}
    given = {}
    for name, entry in _object(stated, "layer_quant_config").items():
        weight = entry.get("weight")
        given.setdefault(16 if weight is None else _quark_bits(weight), []).append(name)
    for entry in _object(stated, "kv_cache_quant_config").values():
        found["cache"] = _quark_bits(entry["output_tensors"])
    return found | {"default": None if overall is None else _quark_bits(overall), "given": given}


def _quark_bits(weight):
    sizes = {name: FORMATS[SPELLED[name]].bits for name in ("fp8_e4m3", "int8", "fp4", "int4", "uint4")}
    dtype = weight["dtype"]
    _must(dtype in sizes, "a format of Quark", weight, f"an object whose dtype is one of {', '.join(sizes)}")
    size = weight.get("group_size") if weight.get("qscheme") == "per_group" else -1
    kind = "float" if dtype.startswith("fp") else "int"
    return _group_bits({"num_bits": sizes[dtype], "type": kind, "group_size": size})


# reader of each tool's section, keys that list what stays at 16 bits, whether the head is quantized too
METHODS = {
    "fp8": (_fp8, ("modules_to_not_convert", "ignored_layers"), False),
    "fbgemm-fp8": (_fp8, ("modules_to_not_convert",), False),
    "mxfp4": (lambda stated: {"experts": FORMATS["mxfp4"].stored}, ("modules_to_not_convert",), False),
    "modelopt": (_modelopt, ("exclude_modules", "ignore"), True),
    "compressed-tensors": (_compressed, ("ignore",), True),
    "awq": (_integers, (), False),
    "gptq": (_integers, (), False),
    "auto-round": (_integers, (), False),
    "bitsandbytes": (_bitsandbytes, ("llm_int8_skip_modules",), False),
    "quark": (_quark, ("exclude",), True),
}


def _algorithm(name):
    known = {word: FORMATS[format].stored for word, format in SPELLED.items()} | SCALED
    good = isinstance(name, str) and name.lower() in known
    _must(good, "quant_algo", name, f"one of {', '.join(known).upper()}")
    format = SPELLED.get(name.lower(), "")
    bits = known[name.lower()]
    return WeightOnly(bits) if format == "fp4 w4a16" else Whole(bits) if format.startswith("int") else bits


def _group_bits(weights, beside=None):
    """Return bits per value in groups: scales have 16 bits, or 8 in the block formats of 4 bits.

    ``beside``: the group, whose activations it may leave out; NVFP4 (groups of 16) is then multiplied in 16 bits.

    Examples
    --------
    >>> [_group_bits({"type": "float", "num_bits": bits, "group_size": n}) for bits, n in ((4, 16), (4, 32), (8, 128))]
    [4.5, 4.25, 8.125]
    >>> _group_bits({"type": "float", "num_bits": 8})
    8.0
    >>> [_group_bits({"type": "int", "num_bits": 4, "group_size": 128, "symmetric": same}) for same in (True, False)]
    [4.125, 4.15625]
    """
    bits, size, kind = (weights.get(key) for key in ("num_bits", "group_size", "type"))
    size = -1 if size is None else size
    if kind == "int":
        return _packed(bits, size, weights.get("symmetric") is False)
    good = kind == "float" and type(bits) is int and bits in (4, 8)
    _must(good, "weights", dict(weights), "int, or float of 4 or 8 bits")
    alone = beside is not None and beside.get("input_activations") is None and (bits, size) == (4, 16)
    return (WeightOnly if alone else float)(bits + _share(8 if bits == 4 else 16, size))


def _packed(bits, size, zeros):
    """Return bits per integer in a group with a 16-bit scale and optionally a zero point."""
    _must(type(bits) is int and 2 <= bits <= 8, "bits", bits, "a whole number from 2 to 8")
    return Whole(bits + _share(16 + (bits if zeros else 0), size))


def _share(bits, size):
    """Return a group's overhead in bits per value; size -1 means one group per row, whose overhead is negligible."""
    _must(_is_size(size) or size == -1, "group_size", size, "a whole number")
    return 0 if size == -1 else bits / size


def _is_size(n):
    return type(n) is int and 0 < n <= MAX_GROUP


# --- Names of tensors -----------------------------------------------------------------------------------------


def _object(stated, key):
    return stated.get(key) or {}


def _texts(stated, *keys):
    """Return the list under the first of these keys that is given."""
    key = next((key for key in keys if stated.get(key) is not None), None)
    found = [] if key is None else stated[key]
    _must(isinstance(found, list), key, found, "a list of names of tensors")
    return found


class _Patterns:
    """Names of tensors or modules: plain, with ``*``, or a simple regular expression (``re:``)."""

    def __init__(self, texts):
        self.exact = set()
        anywhere = []
        self.expressions = []
        by_layer = {}
        for text in texts:
            good = isinstance(text, str) and len(text) <= 300 and text.count("*") <= 4
            _must(good, "the name of a tensor", text, "a short text")
            if text.startswith("re:"):
                self.expressions.append(_expression(text[3:]))
                continue
            text = re.sub(r"^((model|language_model|backbone|transformer|gpt_neox)\.)+", "", text)
            text = re.sub(r"^(h|blocks)\.(?=\d)", "layers.", text)
            text = re.sub(r"\.experts\.(\d+|\*)\.", ".experts.", text)
            if "*" not in text:
                self.exact.add(text)
                continue
            layer = re.match(r"layers\.(\d+)\.", text)
            (by_layer.setdefault(layer[1], []) if layer else anywhere).append(text.replace("[", "[[]"))
        if max(map(len, [anywhere, self.expressions, *by_layer.values()])) > MAX_PATTERNS:
            raise Unknown(f"more than {MAX_PATTERNS} patterns stand for one layer, or for any")
        self.anywhere = _either(anywhere)
        self.by_layer = {layer: _either(globs) for layer, globs in by_layer.items()}

    def match(self, names):
        """Whether a pattern matches one of the names (all of one layer), or a module that contains it."""
        globs = [self.anywhere, *(self.by_layer.get(number) for number in names[0].split(".", 2)[1:2])]
        return (
            # a plain name may omit its prefix, as "self_attn" or "mlp.down_proj" do
            any(not self.exact.isdisjoint(_modules(name)) for name in (names if self.exact else ()))
            or any(glob.match(name) for glob in globs if glob is not None for name in names)
            or any(e.match(root + n) for e in self.expressions for n in names for root in ("", "model."))
        )


@cache
def _modules(name):
    """Return the modules that contain a tensor, and all runs of words of its name within a layer."""
    words = name.split(".")
    return {".".join(words[i:k]) for i, k in combinations(range(len(words) + 1), 2) if i != 1}


def _either(globs):
    """Return one expression for several patterns with ``*``, which also match modules of a tensor; None if empty."""
    plain = (translate(glob)[:-2] for glob in globs)  # without the end-of-text anchor
    return re.compile(rf"(?:{'|'.join(plain)})(?=\.|\Z)") if globs else None


def _expression(text):
    """Compile a simple regular expression that cannot be slow on a short name."""
    plain = re.fullmatch(r"[\w.*+|()\[\]\\$^-]{1,200}", text) and not re.search(r"\)[*+]", text)
    _must(plain and text.count("*") + text.count("+") <= 4, "a pattern", text, "a plain one")
    try:
        return re.compile(text)
    except re.error:
        raise Unknown(f"the pattern {shown(text)} is no regular expression") from None
