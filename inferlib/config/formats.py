"""How a checkpoint stores each part, from its quantization section: bytes of a value, scales included.

A section names tensors, by pattern; this module makes the names that the matrices of every layer may have, asks
which format each has, and averages over each part of the model. A section that it does not understand leaves no
formats and a reason in the notes: a count of parameters does not depend on it, but nobody may take it for 16 bits.
"""

import re
from collections.abc import Mapping
from fnmatch import translate
from functools import cache

from inferlib.config.families import declared
from inferlib.config.keys import shown
from inferlib.equation import frozen
from inferlib.formats import FORMATS, SPELLED, Whole
from inferlib.transformer import CompressedAttention, DeltaAttention, StateSpace

MAX_PATTERNS = 100  # that stand for any layer
MAX_LAYERS = 1000
MAX_GROUP = 10**5
DTYPES = ("bfloat16", "float16", "float32")

# bits of a value with its share of the scales, where no format has just so many
SCALED = {"fp8_pb_wo": 8 + 32 / 128**2, "mxfp8": 8 + 8 / 32}

# the tool's default, where a section does not name what it leaves alone
ALL_LAYERS = "the checkpoint names no exclude_modules: all matrices of its layers are taken as quantized"

# where the matrices of inferlib.transformer live in published checkpoints
FUSED = ("qkv_proj", "wqkv", "c_attn", "query_key_value", "Wqkv", "in_proj_qkv", "in_proj_qkvz")
ATTENTION = {
    "query": ("q_proj", *FUSED),
    "key": ("k_proj", "wkv", "kv_proj", *FUSED),
    "value": ("v_proj", *FUSED),
    "output": ("o_proj", "out_proj", "wo", "c_proj", "dense"),
    "gate": ("g_proj", "in_proj_z", "in_proj_qkvz", "q_proj"),
    "gate down": ("g_a_proj",),
    "gate up": ("g_b_proj",),
    "query down": ("q_a_proj", "wq_a"),
    "query up": ("q_b_proj", "wq_b"),
    "latent down": ("kv_a_proj_with_mqa",),
    "latent up": ("kv_b_proj",),
    "output down": ("wo_a", "o_a_proj"),
    "output up": ("wo_b", "o_b_proj"),
    "index query": ("indexer.wq_b", "index_q_proj", "indexer.q_proj", "indexer.q_b_proj"),
    "index key": ("indexer.wk", "index_k_proj", "indexer.k_proj"),
    "index weights": ("indexer.weights_proj",),
    "decay": ("in_proj_a", "in_proj_ba"),
    "decay down": ("f_a_proj", "forget_gate.f_a_proj"),
    "decay up": ("f_b_proj", "forget_gate.f_b_proj"),
    "strength": ("in_proj_b", "in_proj_ba", "b_proj"),
    "input": ("in_proj",),
    "pool": ("compressor.wkv", "compressor.kv_proj"),
}
# kept at 16 bits unless named, as are ways into and out of a narrower stream
WIDE = ("pool", "index weights")
HOMES = ("self_attn", "attn", "attention", "mixer")
LINEAR_HOMES = ("linear_attn", "self_attn", "mixer")
BLOCK = ("mlp", "ffn", "block_sparse_moe", "feed_forward", "mixer")
INNER = {
    "feed-forward": ("",),
    "experts": ("experts.",),
    "shared experts": ("shared_experts.", "shared_expert.", "shared_mlp."),
    "latent": ("",),
}
WORDS = (
    ("up_proj", "w3", "gate_up_proj", "input_linear", "c_fc", "fc_in", "dense_h_to_4h", "gate_and_up_proj"),
    ("down_proj", "w2", "output_linear", "c_proj", "fc_out", "dense_4h_to_h"),
    ("gate_proj", "w1", "gate_up_proj", "input_linear", "gate_and_up_proj"),
)
LATENT_WORDS = (("fc1_latent_proj", "routed_expert_down_proj"), ("fc2_latent_proj", "routed_expert_up_proj"))


class Unknown(Exception):
    """A quantization section that is not understood; its text says why."""


def _must(good, what, found, must):
    if not good:
        raise Unknown(f"{what} is {shown(found)}, but must be {must}")


def formats_of(c, sequence, d_model, sections, family):
    """Bytes of a value of each part and of the cache, by the first section that is understood.

    Empty where the configuration states no formats, or none that is understood: the note ``formats`` then says why.
    """
    if sections:
        c.notes["quantization_config"] = "how the checkpoint stores its weights: see formats"
    for stated in sections or [None]:
        try:
            found = _stored(c, sequence, d_model, stated, declared(family).get("homes", {}))
            c.notes.pop("formats", None)
            return found
        except Unknown as reason:
            c.notes.setdefault("formats", str(reason))
    return {}


def _stored(c, sequence, d_model, stated, homes):
    name = c.data.get("torch_dtype", c.data.get("dtype"))
    if name is None and stated is None:
        return {}
    name = "bfloat16" if name is None else name  # what stands beside a quantization that leaves it open
    _must(isinstance(name, str) and name in DTYPES, "dtype", name, f"one of {', '.join(DTYPES)}")
    _must(len(sequence) <= MAX_LAYERS, "the number of layers", len(sequence), f"at most {MAX_LAYERS}")
    scheme, plain = _scheme(stated, c.data.get("expert_dtype")), FORMATS[SPELLED[name]].bits
    if scheme.assumed:
        c.notes["assumed"] = scheme.assumed
    values, bits, kinds = {}, {}, {}
    for i, pair in enumerate(sequence):
        for part, wide, names, n in _matrices(f"layers.{i}", *pair, d_model, homes):
            values[part] = values.get(part, 0) + n
            each = scheme.bits(names, part, wide)
            bits[part] = bits.get(part, 0) + n * (each or plain)
            kinds[part] = Whole if isinstance(each, Whole) else kinds.get(part, float)
    narrow = any(bits[part] < n * plain for part, n in values.items())
    _must(
        stated is None or narrow, "quantization_config", stated, "one that narrows some matrix of the layers"
    )
    found = {part: kinds[part](bits[part] / n) for part, n in values.items() if n}
    found |= dict.fromkeys(("embeddings", "norms", "router", "positions"), plain)
    found["head"] = scheme.bits(("lm_head", "head"), "head", not scheme.head) or plain
    found["cache"] = scheme.cache or plain
    found["connections"] = 32  # the families that have them keep them so
    return {part: type(size)(size / 8) for part, size in found.items()}


def _matrices(layer, attention, block, d_model, homes):
    """The matrices of a layer: part, whether only its name narrows it, the names one may have, and its weights."""
    if attention is not None:
        places = LINEAR_HOMES if isinstance(attention, DeltaAttention | StateSpace) else HOMES
        delta = isinstance(attention, DeltaAttention)
        for name, n in (_of_delta(attention, d_model) if delta else attention.matrices(d_model)).items():
            if name == "index key" and isinstance(attention, CompressedAttention):
                name = "pool"  # the indexer's keys are pooled by maps of the same kind
            names = [f"{layer}.{place}.{word}" for place in places for word in ATTENTION[name]]
            yield "attention", name in WIDE, names, n
    for part, n in block.weights(d_model).items() if block is not None else ():
        if part == "router" or not n:
            continue
        places = homes.get(part) or [f"{home}.{inner}" for home in BLOCK for inner in INNER[part]]
        words = LATENT_WORDS if part == "latent" else WORDS[: block.matrices]
        for word in words:
            names = [f"{layer}.{place}{w}" for place in places for w in word]
            yield part, part == "latent", names, n / len(words)


def _of_delta(attention, d_model):
    """Matrices of linear attention one by one; a projection through a narrow matrix is two."""
    found, keys = attention.matrices(d_model), d_model * attention.n_key_heads * attention.key_dim
    values = found.pop("query, key, value") - 2 * keys
    for name, rank in (("decay", attention.decay_rank), ("gate", attention.gate_rank)):
        if rank is not None:
            down = d_model * rank
            found |= {f"{name} down": down, f"{name} up": found.pop(name) - down}
    return found | {"query": keys, "key": keys, "value": values}


# --- What a section says of any tensor ------------------------------------------------------------------------


@frozen
class _Scheme:
    """Bits of a value of the matrices, and of the experts; who keeps 16, who has others; head, cache; a guess."""

    default: float | None = None
    experts: float | None = None
    kept: "_Patterns | None" = None
    given: tuple = ()
    head: bool = False
    cache: float | None = None
    assumed: str = ""

    def bits(self, names, part, wide):
        """Bits of a value of the tensor that has one of these names; None: not quantized."""
        for patterns, bits in self.given:
            if patterns.match(names):
                return bits
        if wide or (self.kept is not None and self.kept.match(names)):
            return None
        return (self.experts if part == "experts" else None) or self.default


def _scheme(stated, expert_dtype):
    try:
        return _Scheme() if stated is None else _read(stated, expert_dtype)
    except (AttributeError, KeyError, TypeError):  # a list, say, where each tool writes an object
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
    """Names of tensors by the format that is their own."""
    by_format = {}
    for name, entry in _object(stated, "quantized_layers").items():
        by_format.setdefault(_algorithm(entry.get("quant_algo")), []).append(name)
    return by_format


def _cache(stated):
    """Bits of a value of the cache, where the section says so."""
    scheme = stated.get("kv_cache_quant_algo") or stated.get("kv_cache_scheme")
    if scheme is None or isinstance(scheme, str):
        return None if scheme is None or scheme.upper() == "NONE" else _algorithm(scheme)
    _must(scheme.get("num_bits") == 8, "kv_cache_scheme", scheme, "of 8 bits")
    return 8


def _fp8(stated):
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
    groups, found, given = _object(stated, "config_groups"), {}, {}
    if not groups:
        raise Unknown("config_groups is missing, but compressed-tensors needs it")
    for group in groups.values():
        if group.get("targets") == ["Linear"]:
            found["default"] = _group_bits(group["weights"])
        else:
            given.setdefault(_group_bits(group["weights"]), []).extend(_texts(group, "targets"))
    return found | {"given": given}


def _integers(stated):
    """AWQ, GPTQ, AutoRound: whole numbers in groups, each with a scale of 16 bits and a zero point."""
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
    """NF4 or FP4 in blocks of 64, whose scales of 32 bits may be quantized again in blocks of 256; or int8."""
    if stated.get("load_in_8bit") is True:
        return {"default": Whole(8)}
    if stated.get("load_in_4bit") is not True:
        raise Unknown("neither load_in_8bit nor load_in_4bit is true")
    return {"default": 4 + (8 + 32 / 256 if stated.get("bnb_4bit_use_double_quant") else 32) / 64}


def _quark(stated):
    """AMD's: a format of all layers, of some by pattern, and of the cache in what keys and values put out."""
    _must(not stated.get("layer_type_quant_config"), "layer_type_quant_config", "given", "empty")
    overall, found, given = _object(stated, "global_quant_config").get("weight"), {}, {}
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


# how each tool's section is read, which keys list what it leaves at 16 bits, and whether the head is quantized too
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
    return (
        Whole(known[name.lower()]) if SPELLED.get(name.lower(), "").startswith("int") else known[name.lower()]
    )


def _group_bits(weights):
    """Bits of a value in groups: their scales take 16 bits, or 8 in the block formats of 4."""
    bits, size, kind = (weights.get(key) for key in ("num_bits", "group_size", "type"))
    size = -1 if size is None else size
    if kind == "int":
        return _packed(bits, size, weights.get("symmetric") is False)
    good = kind == "float" and type(bits) is int and bits in (4, 8)
    _must(good, "weights", dict(weights), "int, or float of 4 or 8 bits")
    return bits + _share(8 if bits == 4 else 16, size)


def _packed(bits, size, zeros):
    """Bits of a whole number in a group with a scale of 16 bits and perhaps a zero point."""
    _must(type(bits) is int and 2 <= bits <= 8, "bits", bits, "a whole number from 2 to 8")
    return Whole(bits + _share(16 + (bits if zeros else 0), size))


def _share(bits, size):
    """What a group has beside its values, for each of them; size -1: one group a row, which is too long to count."""
    _must(_is_size(size) or size == -1, "group_size", size, "a whole number")
    return 0 if size == -1 else bits / size


def _is_size(n):
    return type(n) is int and 0 < n <= MAX_GROUP


# --- Names of tensors -----------------------------------------------------------------------------------------


def _object(stated, key):
    return stated.get(key) or {}


def _texts(stated, *keys):
    """The list under the first of these keys that is given."""
    key = next((key for key in keys if stated.get(key) is not None), None)
    found = [] if key is None else stated[key]
    _must(isinstance(found, list), key, found, "a list of names of tensors")
    return found


class _Patterns:
    """Names of tensors or of modules, with ``*`` or as a plain regular expression (``re:``)."""

    def __init__(self, texts):
        self.exact, anywhere, self.expressions, by_layer = set(), [], [], {}
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
        """Whether a pattern stands for one of the names, all of one layer, or for a module that holds it."""
        globs = [self.anywhere, *(self.by_layer.get(number) for number in names[0].split(".", 2)[1:2])]
        return (
            # a plain name may leave out what stands before it, as "self_attn" or "mlp.down_proj" do
            any(not self.exact.isdisjoint(_modules(name)) for name in (names if self.exact else ()))
            or any(glob.match(name) for glob in globs if glob is not None for name in names)
            or any(e.match(root + n) for e in self.expressions for n in names for root in ("", "model."))
        )


@cache
def _modules(name):
    """The modules that hold a tensor, from the model down, and all runs of words of its name inside a layer."""
    words = name.split(".")
    starts = (0, *range(2, len(words)))
    return {".".join(words[i:k]) for i in starts for k in range(i + 1, len(words) + 1)}


def _either(globs):
    """One expression for several patterns with ``*``, each for a tensor or for a module that holds it, or None."""
    plain = (translate(glob)[:-2] for glob in globs)  # without its end of the text
    return re.compile(rf"(?:{'|'.join(plain)})(?=\.|\Z)") if globs else None


def _expression(text):
    """A regular expression of a few plain parts, which cannot take long on a short name."""
    plain = re.fullmatch(r"[\w.*+|()\[\]\\$^-]{1,200}", text) and not re.search(r"\)[*+]", text)
    _must(plain and text.count("*") + text.count("+") <= 4, "a pattern", text, "a plain one")
    try:
        return re.compile(text)
    except re.error:
        raise Unknown(f"the pattern {shown(text)} is no regular expression") from None
