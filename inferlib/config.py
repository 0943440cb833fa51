"""Read the ``config.json`` of a published model: families by ``model_type``, nothing guessed.

A key is either part of the shape (then its family's reader below asks for it), or listed in
``catalog/other_keys.toml`` as one that changes no shape. Any other key that is switched on is refused by
name. Where a key may be absent, the value taken is the one that the family's own code documents.
"""

import json
import os
import reprlib
from collections import Counter
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

from inferlib import checks
from inferlib.transformer import Attention, Experts, FeedForward, LatentAttention, Layers, Transformer

MAX_BYTES = 10**6  # a config.json holds a few thousand
MAX_LAYERS = 10**4
MAX_NUMBER = 10**9
_REQUIRED = object()


def read_config(config, name="", sources=None):
    """The Transformer that a parsed ``config.json`` describes.

    Parameters
    ----------
    config : mapping
        As ``json.load`` returns it.
    name : str
        How errors, and the result, call the model.
    sources : dict, optional
        Where the configuration is stated.

    Returns
    -------
    Transformer
        Its ``notes`` name what the configuration mentions and the count leaves out.

    Raises
    ------
    LookupError
        If the ``model_type`` is not a family known here.
    ValueError
        If a key is missing, unknown, of the wrong type or out of range.

    Examples
    --------
    >>> shape = {"hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 2, "vocab_size": 1000}
    >>> read_config(shape | {"model_type": "llama", "num_attention_heads": 4}).n_params
    259392
    >>> read_config(shape | {"model_type": "llama", "num_attention_heads": 4, "num_experts": 8})
    Traceback (most recent call last):
    ...
    ValueError: config.json: num_experts is 8, but a 'llama' model has no such key
    """
    where = f"config.json of {name}" if name else "config.json"
    if not isinstance(config, Mapping):
        raise ValueError(f"{where} is {_shown(config)}, but must be an object of keys and values")
    config = _Keys(config, where)
    family = config.text("model_type")
    checks.one_of(f"model_type (in {where})", family, FAMILIES)
    shape = FAMILIES[family](config)
    config.finish(family)
    return Transformer(**shape, name=name, sources=sources or {}, notes=config.notes)


def read_file(path):
    """Parse a ``config.json``, or the one in a folder.

    Parameters
    ----------
    path : str or os.PathLike

    Returns
    -------
    dict

    Raises
    ------
    LookupError
        If there is no such file.
    ValueError
        If it is larger than a megabyte or not JSON; a key given twice and NaN are not JSON here.
    """
    path = Path(path)
    if path.is_dir():
        path = path / "config.json"
    if not path.is_file():
        raise LookupError(f"no file {str(path)!r}")
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"{path} has more than {MAX_BYTES} bytes, but a config.json must have at most that")
    return parse(content, str(path))


def parse(content, where="config.json"):
    """Parse the text of a ``config.json``; see :func:`read_file`.

    Examples
    --------
    >>> parse('{"hidden_size": NaN}')
    Traceback (most recent call last):
    ...
    ValueError: config.json is not JSON: NaN is no number of it
    """

    def refused(constant):
        raise ValueError(f"{constant} is no number of it")

    def once(items):
        found = dict(items)
        if len(found) < len(items):
            (twice, _), *_ = Counter(key for key, _ in items).most_common(1)
            raise ValueError(f"{_shown(twice)} is given twice")
        return found

    try:
        return json.loads(content, parse_constant=refused, object_pairs_hook=once)
    except RecursionError:
        raise ValueError(f"{where} is not a config.json: nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{where} is not JSON: {error}") from None


def looks_like_path(model):
    """Whether ``model`` names a file or folder rather than a model of the catalogue."""
    if isinstance(model, os.PathLike):
        return True
    if not isinstance(model, str) or "\0" in model or len(model) > 4096:
        return False
    return model.endswith(".json") or os.path.exists(model)


class _Keys:
    """The keys of one object of a configuration; remembers which were asked for."""

    def __init__(self, data, where):
        self.data, self.where, self.asked, self.notes = data, where, set(), {}

    def _take(self, key, default):
        self.asked.add(key)
        value = self.data.get(key)
        if value is None:  # null means the same as absent
            if default is _REQUIRED:
                state = "null" if key in self.data else "missing"
                raise ValueError(f"{self.where}: {key} is {state}, but this model needs it")
            return default
        return value

    def refuse(self, key, must):
        """Raise the error for a key whose value is not what it must be."""
        raise ValueError(f"{self.where}: {key} is {_shown(self.data.get(key))}, but must be {must}")

    def stated(self, key, what_absent_means):
        """Refuse a configuration that leaves a key out, where that is not the same as null."""
        if key not in self.data:
            raise ValueError(
                f"{self.where}: {key} is missing, but {what_absent_means}; null says there is none"
            )

    def whole(self, key, default=_REQUIRED, zero=False, maximum=MAX_NUMBER):
        """A whole number, at least 1 (or 0)."""
        value = self._take(key, default)
        if value is default:
            return value
        if isinstance(value, bool) or not isinstance(value, int) or not (not zero) <= value <= maximum:
            self.refuse(key, f"a whole number from {int(not zero)} to {maximum}")
        return value

    def flag(self, key, default):
        """True or false."""
        value = self._take(key, default)
        if not isinstance(value, bool):
            self.refuse(key, "true or false")
        return value

    def text(self, key, default=_REQUIRED):
        """A string."""
        value = self._take(key, default)
        if not isinstance(value, str):
            self.refuse(key, "a string")
        return value

    def must_be(self, key, only, why):
        """Refuse any value but one."""
        value = self._take(key, only)
        if type(value) is not type(only) or value != only:
            self.refuse(key, f"{json.dumps(only)}: {why}")

    def listed(self, key, allowed, length=None):
        """A list of allowed entries, or None."""
        value = self._take(key, None)
        if value is None:
            return None
        good = isinstance(value, list) and len(value) <= MAX_LAYERS and length in (None, len(value))
        if not good or any(type(v) is not type(allowed[0]) or v not in allowed for v in value):
            size = "" if length is None else f"{length} "
            self.refuse(key, f"a list of {size}entries among {_shown(allowed)}")
        return value

    def inner(self, key):
        """The keys of an object inside."""
        value = self._take(key, _REQUIRED)
        if not isinstance(value, Mapping):
            self.refuse(key, "an object of keys and values")
        return _Keys(value, f"{self.where}: {key}")

    def note(self, key, remark):
        """Remember that a key describes something that is not counted."""
        if self._take(key, None):
            self.notes[key] = remark

    def finish(self, family):
        """Refuse keys that nobody asked for and that may change the shape."""
        self.note("quantization_config", "how the checkpoint stores its weights; choose formats yourself")
        known = _other_keys()
        harmless = {*known["all"], *known.get(family, ())}
        for key, value in self.data.items():
            off = value is None or value is False or value in (0, "", [], {})
            if key not in self.asked and key not in harmless and not off:
                named = key if isinstance(key, str) and len(key) < 80 else _shown(key)
                raise ValueError(
                    f"{self.where}: {named} is {_shown(value)}, but a {family!r} model has no such key"
                )


def _shown(value):
    try:
        return reprlib.repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a number too long to print"


@cache
def _other_keys():
    import tomllib

    return tomllib.loads((files("inferlib.catalog") / "other_keys.toml").read_text("utf-8"))


# --- What families share -----------------------------------------------------------------------------------


def _outside(c, width="hidden_size", tied=False, final_norm=1):
    """The parts outside the layers."""
    return {
        "d_model": c.whole(width),
        "vocab_size": c.whole("vocab_size"),
        "tied": c.flag("tie_word_embeddings", tied),
        "final_norm": final_norm,
    }


def _n_layers(c, key="num_hidden_layers"):
    return c.whole(key, maximum=MAX_LAYERS)


def _layers(kinds, attention, feed_forward, norms=2):
    """Groups of layers: ``kinds`` holds one (window, sparse) pair for each layer."""
    return tuple(
        Layers(count, attention(window), feed_forward(sparse), norms)
        for (window, sparse), count in Counter(kinds).items()
    )


def _attention(c, kv_heads=_REQUIRED, head_dim=None, **flags):
    """A maker of attentions, window to record. Head width is d_model / heads unless the family says more."""
    n_heads = c.whole("num_attention_heads")
    n_kv = c.whole("num_key_value_heads", n_heads if kv_heads == "n_heads" else kv_heads)
    if n_kv > n_heads or n_heads % n_kv:
        c.refuse("num_key_value_heads", f"a divisor of num_attention_heads, {n_heads}")
    width = c.whole("head_dim", head_dim)
    if width is None:
        d_model = c.whole("hidden_size")
        if d_model % n_heads:
            c.refuse(
                "num_attention_heads", f"a divisor of hidden_size, {d_model}, where head_dim is not given"
            )
        width = d_model // n_heads

    def make(window, chunked=False):
        return Attention(n_heads, n_kv, width, window=window, chunked=chunked, **flags)

    return make


def _windows(c, n_layers, window, otherwise):
    """The window of each layer, from ``layer_types`` where it is given."""
    types = c.listed("layer_types", ["full_attention", "sliding_attention"], n_layers)
    if types is None:
        return otherwise
    if window is None and "sliding_attention" in types:
        c.refuse("sliding_window", "a number, since layer_types has sliding_attention")
    return [window if kind == "sliding_attention" else None for kind in types]


def _gated(c, biases=False):
    block = FeedForward(c.whole("intermediate_size"), 3, biases)
    return lambda sparse: block


def _routed(c, key="num_experts", active="num_experts_per_tok", width="moe_intermediate_size", **other):
    n_experts = c.whole(key)
    return Experts(n_experts, c.whole(active, maximum=n_experts), c.whole(width), **other)


# --- Families ----------------------------------------------------------------------------------------------


def _llama(c):
    n, bias = _n_layers(c), c.flag("attention_bias", False)
    attention = _attention(c, "n_heads", input_bias=bias, output_bias=bias)
    feed_forward = _gated(c, c.flag("mlp_bias", False))
    return _outside(c) | {"layers": _layers([(None, False)] * n, attention, feed_forward)}


def _llama4(c):
    c.note("vision_config", "a vision encoder, not counted")
    text = c.inner("text_config")
    text.must_be("model_type", "llama4_text", "the language model of a llama4")
    shape = _llama4_text(text)
    text.finish("llama4_text")
    if "tie_word_embeddings" in c.data and c.flag("tie_word_embeddings", False) != shape["tied"]:
        c.refuse("tie_word_embeddings", "the same as in text_config")
    c.notes |= text.notes
    return shape


def _llama4_text(c):
    n, bias = _n_layers(c), c.flag("attention_bias", False)
    attention = _attention(c, input_bias=bias, output_bias=bias)
    c.flag("use_qk_norm", False)  # norms without weights
    chunk = c.whole("attention_chunk_size")
    every = c.whole("no_rope_layer_interval", 4)
    rotary = c.listed("no_rope_layers", [0, 1])  # 1: rotary positions
    if rotary and len(rotary) != n:
        c.refuse("no_rope_layers", f"a list of {n} entries, or empty")
    rotary = rotary or [int((i + 1) % every != 0) for i in range(n)]
    types = c.listed("layer_types", ["full_attention", "chunked_attention"], n)
    if types is not None:
        rotary = [int(kind == "chunked_attention") for kind in types]
    step = c.whole("interleave_moe_layer_step", maximum=n)
    sparse = c.listed("moe_layers", range(n))
    sparse = set(range(step - 1, n, step) if sparse is None else sparse)
    width = c.whole("intermediate_size")
    experts = _routed(c, "num_local_experts", width="intermediate_size", d_shared=width)
    dense = FeedForward(c.whole("intermediate_size_mlp"))
    kinds = [(chunk if rotary[i] else None, i in sparse) for i in range(n)]
    layers = _layers(
        kinds,
        lambda window: attention(window, window is not None),
        lambda sparse: experts if sparse else dense,
    )
    return _outside(c) | {"layers": layers}


def _mistral(c):
    c.stated("sliding_window", "the family's code then takes 4096")
    n, window = _n_layers(c), c.whole("sliding_window", None)
    windows = _windows(c, n, window, [window] * n)
    layers = _layers([(w, False) for w in windows], _attention(c), _gated(c))
    return _outside(c) | {"layers": layers}


def _mixtral(c):
    n, window = _n_layers(c), c.whole("sliding_window", None)
    experts = _routed(c, "num_local_experts", width="intermediate_size")
    layers = _layers([(window, True)] * n, _attention(c), lambda sparse: experts)
    return _outside(c) | {"layers": layers}


def _qwen_windows(c, n):
    """Windows count only where ``use_sliding_window`` is on; then ``layer_types`` must say in which layers."""
    window, on = c.whole("sliding_window", None), c.flag("use_sliding_window", False)
    c.whole("max_window_layers", None, zero=True)
    windows = _windows(c, n, window if on else None, None if on else [None] * n)
    if windows is None:
        c.refuse("use_sliding_window", "false where layer_types does not say which layers have the window")
    return windows


def _qwen2(c):
    n = _n_layers(c)
    attention = _attention(c, input_bias=True)
    layers = _layers([(w, False) for w in _qwen_windows(c, n)], attention, _gated(c))
    return _outside(c) | {"layers": layers}


def _qwen3(c):
    n, bias = _n_layers(c), c.flag("attention_bias", False)
    attention = _attention(c, head_dim=_REQUIRED, input_bias=bias, output_bias=bias, qk_norm=True)
    layers = _layers([(w, False) for w in _qwen_windows(c, n)], attention, _gated(c))
    return _outside(c) | {"layers": layers}


def _qwen_sparse(c, n, attention, **other):
    experts, dense = _routed(c, **other), FeedForward(c.whole("intermediate_size"))
    step = c.whole("decoder_sparse_step", 1)
    never = set(c.listed("mlp_only_layers", range(n)) or ())
    sparse = [i not in never and (i + 1) % step == 0 for i in range(n)]
    kinds = list(zip(_qwen_windows(c, n), sparse, strict=True))
    return _outside(c) | {"layers": _layers(kinds, attention, lambda sparse: experts if sparse else dense)}


def _qwen2_moe(c):
    n, bias = _n_layers(c), c.flag("qkv_bias", True)
    shared = c.whole("shared_expert_intermediate_size")
    return _qwen_sparse(c, n, _attention(c, input_bias=bias), d_shared=shared, shared_gate=True)


def _qwen3_moe(c):
    n, bias = _n_layers(c), c.flag("attention_bias", False)
    attention = _attention(c, head_dim=_REQUIRED, input_bias=bias, output_bias=bias, qk_norm=True)
    return _qwen_sparse(c, n, attention)


def _deepseek(c, router_bias):
    n = _n_layers(c)
    c.must_be("attention_bias", False, "its biases are not counted here")
    c.must_be("mlp_bias", False, "its biases are not counted here")
    c.must_be("use_mla", True, "attention without a latent is not read here")
    c.note("num_nextn_predict_layers", "layers that predict more tokens (MTP), not counted")
    latent = {
        "n_heads": c.whole("num_attention_heads"),
        "kv_rank": c.whole("kv_lora_rank"),
        "nope_dim": c.whole("qk_nope_head_dim"),
        "rope_dim": c.whole("qk_rope_head_dim"),
        "value_dim": c.whole("v_head_dim"),
        "q_rank": c.whole("q_lora_rank", None),
    }
    c.stated("q_lora_rank", "the family's code then takes 1536")
    c.stated("n_shared_experts", "versions of the family's code then take different numbers")
    if c.whole("num_key_value_heads", latent["n_heads"]) != latent["n_heads"]:
        c.refuse("num_key_value_heads", "num_attention_heads, since all heads share the latent")
    width = c.whole("moe_intermediate_size")
    if c.text("topk_method", "noaux_tc" if router_bias else "greedy") == "noaux_tc":
        router_bias = True
    shared = c.whole("n_shared_experts", 0, zero=True) * width
    experts = _routed(c, "n_routed_experts", d_shared=shared, router_bias=router_bias)
    dense = FeedForward(c.whole("intermediate_size"))
    first, every = c.whole("first_k_dense_replace", zero=True, maximum=n), c.whole("moe_layer_freq", 1)
    kinds = [(None, i >= first and i % every == 0) for i in range(n)]
    attention = LatentAttention(**latent)
    layers = _layers(kinds, lambda window: attention, lambda sparse: experts if sparse else dense)
    return _outside(c) | {"layers": layers}


def _deepseek_v2(c):
    return _deepseek(c, router_bias=False)


def _deepseek_v3(c):
    return _deepseek(c, router_bias=True)


def _gpt_oss(c):
    n, window = _n_layers(c), c.whole("sliding_window")
    bias = c.flag("attention_bias", True)
    attention = _attention(c, head_dim=_REQUIRED, input_bias=bias, output_bias=bias, sinks=True)
    experts = _routed(c, "num_local_experts", width="intermediate_size", biases=True, router_bias=True)
    if c.whole("experts_per_token", experts.n_active) != experts.n_active:
        c.refuse("experts_per_token", "the same as num_experts_per_tok")
    windows = _windows(c, n, window, [None if i % 2 else window for i in range(n)])
    layers = _layers([(w, True) for w in windows], attention, lambda sparse: experts)
    return _outside(c) | {"layers": layers}


def _plain_heads(c, heads, width):
    n_heads, d_model = c.whole(heads), c.whole(width)
    if d_model % n_heads:
        c.refuse(heads, f"a divisor of {width}, {d_model}")
    return n_heads, d_model // n_heads


def _gpt2(c):
    c.must_be("add_cross_attention", False, "attention to an encoder is not read here")
    n_heads, width = _plain_heads(c, "n_head", "n_embd")
    attention = Attention(n_heads, n_heads, width, input_bias=True, output_bias=True)
    block = FeedForward(c.whole("n_inner", 4 * c.whole("n_embd")), 2, biases=True)
    layers = (Layers(_n_layers(c, "n_layer"), attention, block, norms=4),)
    return _outside(c, "n_embd", True, 2) | {"layers": layers, "positions": c.whole("n_positions")}


def _gptj(c):
    n_heads, width = _plain_heads(c, "n_head", "n_embd")
    block = FeedForward(c.whole("n_inner", 4 * c.whole("n_embd")), 2, biases=True)
    # one norm for attention and feed-forward, which run side by side
    layers = (Layers(_n_layers(c, "n_layer"), Attention(n_heads, n_heads, width), block, norms=2),)
    return _outside(c, "n_embd", False, 2) | {"layers": layers, "head_bias": True}


def _gpt_neox(c):
    n_heads, width = _plain_heads(c, "num_attention_heads", "hidden_size")
    bias = c.flag("attention_bias", True)
    attention = Attention(n_heads, n_heads, width, input_bias=bias, output_bias=bias)
    block = FeedForward(c.whole("intermediate_size"), 2, biases=True)
    layers = (Layers(_n_layers(c), attention, block, norms=4),)
    return _outside(c, final_norm=2) | {"layers": layers}


def _internlm(c):
    n, bias = _n_layers(c), c.flag("bias", True)
    attention = _attention(c, "n_heads", input_bias=bias, output_bias=bias)
    return _outside(c) | {"layers": _layers([(None, False)] * n, attention, _gated(c))}


def _internlm2(c):
    n, bias = _n_layers(c), c.flag("bias", True)
    attention = _attention(c, input_bias=bias, output_bias=bias)
    return _outside(c) | {"layers": _layers([(None, False)] * n, attention, _gated(c))}


def _internlm3(c):
    n, bias = _n_layers(c), c.flag("bias", False)
    attention = _attention(c, input_bias=c.flag("qkv_bias", False), output_bias=bias)
    return _outside(c) | {"layers": _layers([(None, False)] * n, attention, _gated(c, bias))}


def _dbrx(c):
    inner, feed = c.inner("attn_config"), c.inner("ffn_config")
    n_heads, width = _plain_heads(c, "n_heads", "d_model")
    n_kv = inner.whole("kv_n_heads")
    if n_heads % n_kv:
        inner.refuse("kv_n_heads", f"a divisor of n_heads, {n_heads}")
    experts = _routed(feed, "moe_num_experts", "moe_top_k", "ffn_hidden_size")
    for part in (inner, feed):
        part.finish("dbrx")
    layers = (Layers(_n_layers(c, "n_layers"), Attention(n_heads, n_kv, width), experts),)
    return _outside(c, "d_model") | {"layers": layers}


FAMILIES = {
    "llama": _llama,
    "llama4": _llama4,
    "llama4_text": _llama4_text,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "qwen2_moe": _qwen2_moe,
    "qwen3_moe": _qwen3_moe,
    "deepseek_v2": _deepseek_v2,
    "deepseek_v3": _deepseek_v3,
    "kimi_k2": _deepseek_v3,
    "gpt_oss": _gpt_oss,
    "gpt2": _gpt2,
    "gptj": _gptj,
    "gpt_neox": _gpt_neox,
    "internlm": _internlm,
    "internlm2": _internlm2,
    "internlm3": _internlm3,
    "dbrx": _dbrx,
}
