"""How a checkpoint stores each part, from its quantization section: bytes of a value, scales included.

The section names tensors, by pattern; this module makes the names that the matrices of every layer may have,
asks which format each has, and averages over each part of the model. What it does not understand leaves no
formats and a reason in the notes: a count of parameters does not depend on it.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from inferlib.config.families import declared
from inferlib.config.keys import shown
from inferlib.system import BITS
from inferlib.transformer import CompressedAttention, DeltaAttention, Experts, StateSpace

MAX_PATTERNS = 10**5
DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}

# bits of a value with its share of the scales: a byte for 16 or 32 values in the block formats of 4 and 8 bits
ALGORITHMS = {
    "FP8": 8,
    "FP8_PB_WO": 8 + 32 / 128**2,
    "MXFP8": 8 + 8 / 32,
    "MXFP4": 4 + 8 / 32,
    "NVFP4": 4 + 8 / 16,
    "W4A16_NVFP4": 4 + 8 / 16,
}

# where the matrices of inferlib.transformer live in published checkpoints; after the words, further names
ATTENTION = {
    "query": ("q_proj",),
    "key": ("k_proj", "wkv", "kv_proj"),
    "value": ("v_proj",),
    "output": ("o_proj", "out_proj"),
    "gate": ("g_proj", "in_proj_z", "q_proj"),
    "query down": ("q_a_proj", "wq_a"),
    "query up": ("q_b_proj", "wq_b"),
    "latent down": ("kv_a_proj_with_mqa",),
    "latent up": ("kv_b_proj",),
    "output down": ("wo_a", "o_a_proj"),
    "output up": ("wo_b", "o_b_proj"),
    "index query": ("indexer.wq_b", "index_q_proj", "indexer.q_proj"),
    "index key": ("indexer.wk", "index_k_proj", "indexer.k_proj"),
    "index weights": ("indexer.weights_proj",),
    "query, key, value": ("in_proj_qkv", "in_proj_qkvz", "q_proj"),
    "decay": ("in_proj_a", "in_proj_ba", "f_b_proj"),
    "strength": ("in_proj_b", "in_proj_ba", "b_proj"),
    "input": ("in_proj",),
    "pool": ("compressor.wkv", "compressor.kv_proj"),
}
WIDE = (
    "pool",
    "index weights",
)  # kept at 16 bits unless named, as are ways into and out of a narrower stream
BLOCK = ("mlp", "ffn", "block_sparse_moe", "feed_forward", "mixer")


class Unknown(Exception):
    """A quantization section that is not understood; its text says why."""


def formats_of(c, sequence, shape, stated, family):
    """Bytes of a value of each part and of the cache, as the checkpoint stores them.

    Parameters
    ----------
    c : Keys
        The configuration of the language model; notes are added to it.
    sequence : list
        Attention and feed-forward block of each layer.
    shape : dict
        Fields of the Transformer.
    stated : mapping or None
        ``quantization_config``, or what ``hf_quant_config.json`` holds.
    family : str
        The ``model_type``.

    Returns
    -------
    dict
        Empty where the configuration states no formats, or none that is understood (the note ``formats``
        then says why).
    """
    c.asked.add("quantization_config")
    if stated is not None:
        c.notes["quantization_config"] = "how the checkpoint stores its weights: see formats"
    try:
        plain = _plain(c, stated, declared(family).get("dtype"))
        if plain is None:
            return {}
        scheme = None if stated is None else _Scheme(stated, c, family)
        found = {"embeddings": plain, "norms": plain, "router": plain, "positions": plain}
        found["connections"] = 4.0  # the families that have them keep them in 32 bits
        found["cache"] = plain if scheme is None or scheme.cache is None else scheme.cache
        totals = {}
        for i, pair in enumerate(sequence):
            for part, names, values in _matrices(i, *pair, shape["d_model"]):
                bits = None if scheme is None else scheme.bits(names, part)
                total = totals.setdefault(part.split(":")[0], [0, 0])
                total[0] += values
                total[1] += values * (plain if bits is None else bits / 8)
        found |= {part: size / values for part, (values, size) in totals.items() if values}
        bits = None if scheme is None else scheme.bits(("lm_head", "head"), "head")
        found["head"] = plain if bits is None else bits / 8
    except Unknown as reason:
        c.notes["formats"] = str(reason)
        return {}
    return found


def _plain(c, stated, usual):
    """Bytes of a value that is not quantized."""
    name = c.data.get("torch_dtype", c.data.get("dtype"))
    name = usual if name is None and stated is not None else name
    if name is None and stated is None:
        return None
    if not isinstance(name, str) or name not in DTYPES:
        raise Unknown(f"dtype is {shown(name)}, but must be one of {', '.join(DTYPES)}")
    return BITS[DTYPES[name]] / 8


def _matrices(i, attention, block, d_model):
    """The matrices of a layer: part, the names one may have, and its weights."""
    layer = f"layers.{i}"
    if attention is not None:
        homes = ("self_attn", "attn", "attention", "mixer")
        if isinstance(attention, DeltaAttention | StateSpace):
            homes = ("linear_attn", "self_attn", "mixer")
        for name, values in attention.matrices(d_model).items():
            if name == "index key" and isinstance(attention, CompressedAttention):
                name = "pool"  # the indexer's keys are pooled by maps of the same kind
            names = [f"{layer}.{home}.{word}" for home in homes for word in ATTENTION[name]]
            yield "attention" if name not in WIDE else f"attention: {name}", names, values
    if block is None:
        return
    for part, values in block.weights(d_model).items():
        if part == "router" or not values:
            continue
        homes = {
            "feed-forward": [""],
            "experts": ["experts.0."],
            "shared experts": ["shared_experts.", "shared_expert."],
            "latent": [""],
        }[part]
        if isinstance(block, Experts) and part == "latent":
            words = [
                ["fc1_latent_proj", "routed_expert_down_proj"],
                ["fc2_latent_proj", "routed_expert_up_proj"],
            ]
        else:
            words = [
                ["up_proj", "w3", "gate_up_proj"],
                ["down_proj", "w2"],
                ["gate_proj", "w1", "gate_up_proj"],
            ]
            words = words[: block.matrices]
        for word in words:
            names = [f"{layer}.{home}.{inner}{w}" for home in BLOCK for inner in homes for w in word]
            yield part, names, values / len(words)


class _Scheme:
    """What a quantization section says of any tensor."""

    def __init__(self, stated, c, family):
        if not isinstance(stated, Mapping):
            raise Unknown(f"quantization_config is {shown(stated)}, but must be an object")
        stated = (
            {**stated, **stated["quantization"]}
            if isinstance(stated.get("quantization"), Mapping)
            else stated
        )
        self.method = stated.get("quant_method") or ("modelopt" if "quant_algo" in stated else None)
        readers = {
            "fp8": self._fp8, "mxfp4": self._mxfp4, "modelopt": self._modelopt,
            "compressed-tensors": self._groups,
        }  # fmt: skip
        if not isinstance(self.method, str) or self.method not in readers:
            raise Unknown(f"quant_method is {shown(self.method)}, but must be one of {', '.join(readers)}")
        self.stated, self.c, self.family = stated, c, family
        self.default, self.excluded, self.given = None, _Patterns(()), []
        self.linear_only = self.method in ("fp8", "mxfp4")  # leave the head as it is without saying so
        self.cache = self._cache()
        readers[self.method]()

    def bits(self, names, part):
        """Bits of a value of the tensor that has one of these names; None: not quantized."""
        for patterns, bits in self.given:
            if patterns.match(names):
                return bits
        wide = part == "latent" or part.startswith("attention: ") or (part == "head" and self.linear_only)
        if wide or self.excluded.match(names):
            return None
        if part == "experts" and self.c.data.get("expert_dtype") == "fp4" and self.method == "fp8":
            return ALGORITHMS["MXFP4"]
        return self.default if part == "experts" or self.method != "mxfp4" else None

    def _cache(self):
        algorithm, scheme = self.stated.get("kv_cache_quant_algo"), self.stated.get("kv_cache_scheme")
        if algorithm is not None:
            return _algorithm(algorithm) / 8
        if scheme is None:
            return None
        bits = scheme.get("num_bits") if isinstance(scheme, Mapping) else None
        if bits != 8:
            raise Unknown(f"kv_cache_scheme is {shown(scheme)}, but must have 8 bits")
        return 1.0

    def _fp8(self):
        block = self.stated.get("weight_block_size")
        self.default = 8
        if block is not None:
            good = isinstance(block, list) and len(block) == 2
            if not good or not all(type(n) is int and 0 < n <= 10**5 for n in block):
                raise Unknown(f"weight_block_size is {shown(block)}, but must be two whole numbers")
            scale = 8 if self.stated.get("scale_fmt") == "ue8m0" else 32
            self.default = 8 + scale / (block[0] * block[1])
        self.excluded = _Patterns(self._list("modules_to_not_convert", "ignored_layers"))
        self._layers()

    def _mxfp4(self):
        self.default = ALGORITHMS["MXFP4"]
        self.excluded = _Patterns(self._list("modules_to_not_convert"))

    def _modelopt(self):
        algorithm = self.stated.get("quant_algo")
        if algorithm == "MIXED_PRECISION":
            if "quantized_layers" not in self.stated:
                raise Unknown("quantized_layers is missing, but MIXED_PRECISION needs it")
        else:
            self.default = _algorithm(algorithm)
            if not {"exclude_modules", "ignore"} & set(self.stated):
                raise Unknown("exclude_modules is missing, so it is open which tensors are quantized")
        self.excluded = _Patterns(self._list("exclude_modules", "ignore"))
        self._layers()

    def _layers(self):
        """Tensors with a format of their own."""
        listed = self.stated.get("quantized_layers", {})
        if not isinstance(listed, Mapping) or len(listed) > MAX_PATTERNS:
            raise Unknown(
                f"quantized_layers is {shown(listed)}, but must be an object of at most {MAX_PATTERNS}"
            )
        by_format = {}
        for name, entry in listed.items():
            algorithm = entry.get("quant_algo") if isinstance(entry, Mapping) else None
            by_format.setdefault(_algorithm(algorithm), []).append(name)
        self.given = [(_Patterns(names), bits) for bits, names in by_format.items()]

    def _groups(self):
        groups = self.stated.get("config_groups")
        if not isinstance(groups, Mapping) or not groups:
            raise Unknown("config_groups is missing, but compressed-tensors needs it")
        self.excluded = _Patterns(self._list("ignore"))
        for group in groups.values():
            weights = group.get("weights") if isinstance(group, Mapping) else None
            if not isinstance(weights, Mapping):
                raise Unknown(
                    f"a group of config_groups is {shown(group)}, but must say how weights are stored"
                )
            targets = group.get("targets")
            if targets == ["Linear"]:
                self.default = _group_bits(weights)
            else:
                self.given.append((_Patterns(_texts("targets", targets)), _group_bits(weights)))

    def _list(self, *keys):
        key = next((key for key in keys if self.stated.get(key) is not None), None)
        return () if key is None else _texts(key, self.stated[key])


def _texts(key, found):
    good = isinstance(found, list) and len(found) <= MAX_PATTERNS
    if not good or not all(isinstance(text, str) and len(text) <= 300 for text in found):
        raise Unknown(f"{key} is {shown(found)}, but must be a list of names of tensors")
    return found


def _algorithm(name):
    if not isinstance(name, str) or name not in ALGORITHMS:
        raise Unknown(f"quant_algo is {shown(name)}, but must be one of {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


def _group_bits(weights):
    """Bits of a value of compressed-tensors: scales of a group take 16 bits, or 8 in the block formats."""
    bits, size, kind = (weights.get(key) for key in ("num_bits", "group_size", "type"))
    if bits not in (4, 8) or kind not in ("int", "float") or type(bits) is not int:
        raise Unknown(f"weights are {shown(dict(weights))}, but must be int or float of 4 or 8 bits")
    if size is None or size == -1:  # one scale a channel or a tensor
        return bits
    if type(size) is not int or not 0 < size <= 10**5:
        raise Unknown(f"group_size is {shown(size)}, but must be a whole number")
    return bits + (8 if kind == "float" and bits == 4 else 16) / size


class _Patterns:
    """Names of tensors, with ``*`` or as a plain regular expression (``re:``), without the model's prefix."""

    def __init__(self, texts):
        self.exact, self.globs, self.expressions, by_layer = set(), [], [], {}
        for text in texts:
            if not isinstance(text, str) or len(text) > 300:
                raise Unknown(f"the name of a tensor is {shown(text)}")
            if text.startswith("re:"):
                self.expressions.append(_expression(text[3:]))
                continue
            text = re.sub(r"^(model\.|language_model\.|backbone\.)+", "", text)
            text = re.sub(r"\.experts\.\d+\.", ".experts.0.", text)
            if "*" not in text:
                self.exact.add(text)
                continue
            layer = re.match(r"layers\.(\d+)\.", text)
            (by_layer.setdefault(layer[1], []) if layer else self.globs).append(text.replace("[", "[[]"))
        if len(self.globs) + len(self.expressions) > 1000:
            raise Unknown("more than 1000 patterns stand for any layer")
        self.by_layer = by_layer

    def match(self, names):
        """Whether a pattern stands for one of the names, or for a module that holds it."""
        return any(self._one(name) for name in names)

    def _one(self, name):
        words = name.split(".")
        holders = [".".join(words[:n]) for n in range(1, len(words) + 1)]
        globs = self.globs + self.by_layer.get(words[1] if len(words) > 1 else "", [])
        return (
            any(holder in self.exact for holder in holders)
            or any(fnmatchcase(holder, glob) for glob in globs for holder in holders)
            or any(expression.match(name) for expression in self.expressions)
        )


def _expression(text):
    """A regular expression of a few plain parts, which cannot take long on a short name."""
    if not re.fullmatch(r"[\w.*|()\\$^-]{1,200}", text) or text.count("*") > 4 or ")*" in text:
        raise Unknown(f"the pattern {shown(text)} is not a plain one")
    try:
        return re.compile(text)
    except re.error:
        raise Unknown(f"the pattern {shown(text)} is no regular expression") from None
