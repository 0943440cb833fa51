"""Evaluate a family's declarations in ``families.toml`` (which explains its words) to a model's shape.

:data:`RULES` decide the kind of each layer; :class:`Keys` evaluates expressions and checks single keys.
"""

from collections import Counter
from collections.abc import Mapping
from functools import cache

from inferlib import validation
from inferlib.transformer import Attention, Experts, FeedForward, LatentAttention, Layers
from tokenprice.attention import CompressedAttention, DeltaAttention, Indexer, StateSpace
from tokenprice.config.keys import MAX_LAYERS, MAX_NUMBER, REQUIRED

PARTS = {
    "attention": Attention,
    "latent": LatentAttention,
    "pooled": CompressedAttention,
    "delta": DeltaAttention,
    "space": StateSpace,
    "indexer": Indexer,
    "dense": FeedForward,
    "experts": Experts,
}
BLOCKS = (FeedForward, Experts)
UNUSED = {"attention.n_heads_in_group", "ffn.ffn_mult"}  # keys that an omitted part (no_op) may still have


def declarations():
    """The parsed file of declarations: ``harmless`` keys of all families, and a table per ``family``."""
    return validation.read_package_toml(__file__, "families.toml")


def families():
    """Return the declarations of each ``model_type``."""
    return declarations()["family"]


@cache
def declared(name):
    """Return the declaration of a ``model_type``, with what it and its parts inherit by ``like``."""
    family = _told(name)
    return family | {"parts": {part: _whole(part, family["parts"]) for part in family.get("parts", ())}}


def _told(name):
    family = families()[name]
    return _merged(_told(family["like"]), family) if "like" in family else family


def _whole(part, parts):
    if "like" not in parts[part]:
        return parts[part]
    found = _merged(_whole(parts[part]["like"], parts), parts[part])
    return {field: text for field, text in found.items() if field != "like" and text != "none"}


def _merged(base, changes):
    """Merge two tables; nested tables are merged key by key."""
    inner = {key: v for key, v in changes.items() if isinstance(v, dict) and isinstance(base.get(key), dict)}
    return base | changes | {key: _merged(base[key], v) for key, v in inner.items()}


def shape_of(c, name):
    """Return the fields of a Transformer, and ``"sequence"``: attention and feed-forward block of each layer.

    Every key that the family knows is read, so that ``c.finish`` can refuse the others.
    """
    family = declared(name)
    c.check(family)
    n_layers = c.value(family.get("layers", "num_hidden_layers"), most=MAX_LAYERS)
    parts = {part: _part(c, table) for part, table in family["parts"].items() if _used(c, table)}

    def part(kind):
        if kind not in parts:
            c.refuse(family["parts"][kind]["needs"], f"given, since a layer is of the kind {kind!r}")
        return parts[kind]

    sequence = _sequence(c, family["pattern"], part, n_layers)
    # two maps per layer that mix copies of the residual stream, and those after the last layer
    mixing, last = (c.value(text) for text in family.get("connections", (0, 0)))
    norms = c.value(family.get("norms", 2))
    # equal parts are one object, so their identities tell equal layers
    pairs = {(id(mixer), id(block)): (mixer, block) for mixer, block in sequence}
    counts = Counter((id(mixer), id(block)) for mixer, block in sequence)
    shape = {
        "d_model": c.value(family.get("width", "hidden_size")),
        "vocab_size": c.value(family.get("vocabulary", "vocab_size")),
        "tied": c.flag("tie_word_embeddings", family.get("tied", False)),
        "final_norm": family.get("final_norm", 1),
        "head_bias": family.get("head_bias", False),
        "layers": tuple(_layers(n, *pairs[pair], norms, mixing) for pair, n in counts.items()),
        "sequence": sequence,
        "connections": last,
    }
    if "positions" in family:
        shape["positions"] = c.value(family["positions"])
    return shape


def _sequence(c, pattern, part, n):
    """Return attention and feed-forward block of each layer; a layer may have only one of them."""
    if "blocks" in pattern:
        return _block_configs(c, pattern["blocks"], n)
    if "layer" in pattern:
        return [_alone(part(kind)) for kind in _kinds(c, pattern["layer"], n)]
    mixers, blocks = (_kinds(c, pattern[what], n) for what in ("attention", "feed_forward"))
    return [(part(m), part(b)) for m, b in zip(mixers, blocks, strict=True)]


def _alone(part):
    return (None, part) if isinstance(part, BLOCKS) else (part, None)


def _layers(count, attention, block, norms, mixing=0):
    """Make a group of equal layers; a layer with only attention or only feed-forward has one norm."""
    return Layers(count, attention, block, 1 if attention is None or block is None else norms, mixing)


# --- Parts ---------------------------------------------------------------------------------------------------


def _used(c, table):
    """Whether a part exists: if it ``needs`` a key, that key must be given and on."""
    return "needs" not in table or bool(c.data.get(table["needs"]))


def _part(c, table):
    """Build a record of attention or feed-forward from its evaluated fields."""
    made = {}
    kind = PARTS[table["kind"]]
    for field, text in table.items():
        if field in ("kind", "needs"):
            continue
        if isinstance(text, Mapping) and "kind" in text:
            made[field] = _part(c, text) if _used(c, text) else None
            continue
        about = kind.__dataclass_fields__[field]
        most = made.get("n_experts", MAX_NUMBER) if field == "n_active" else MAX_NUMBER
        found = c.value(text, zero=about.metadata.get("zero", False), most=most)
        made[field] = bool(found) if about.type is bool else found
    if kind is Attention and made["n_heads"] % made["n_kv_heads"]:
        word = table["n_kv_heads"]
        key = (word["yes"] if isinstance(word, Mapping) else word).split("=")[0].split("|")[0]
        heads = table["n_heads"].split("=")[0].split("|")[0]
        c.refuse(key, f"a divisor of {heads}, {made['n_heads']}")
    return kind(**made)


# --- Kinds of layers ------------------------------------------------------------------------------------------


def _kinds(c, rules, n):
    """Return the kind of each layer, by the first rule whose key is given, else by the last rule."""
    if isinstance(rules, str):
        return [rules] * n
    chosen = next((rule for rule in rules if _applies(c, rule)), rules[-1])
    for rule in rules:
        for word in (*RULES, "every", "never") if rule is not chosen else ():
            for key in rule.get(word, "model_type").partition("=")[0].split("|"):
                c.take(key, None)  # a known key, although another rule applies
    return next(RULES[word](c, chosen, n) for word in RULES if word in chosen)


def _applies(c, rule):
    key = rule.get("list") or rule.get("ones") or rule.get("commas") or rule.get("cycle")
    if "cycle" in rule and not isinstance(c.data.get(key), str):
        return False  # a number, which another rule reads
    return key is not None and c.given(key) and not (rule.get("empty") and c.data.get(key) == [])


def _chosen(rule, n, is_one):
    return [rule["is"] if is_one(i) else rule["else"] for i in range(n)]


def _from_list(c, rule, n):
    """Read a list with an entry per layer; optionally only with a switch on, optionally followed by drafts' layers."""
    names = {int(entry) if rule.get("numbers") else entry: kind for entry, kind in rule["names"].items()}
    more = c.value(rule["more"], zero=True) if "more" in rule else 0
    found = c.listed(rule["list"], names, n, n + more)
    if "flag" in rule and not c.switch(rule["flag"]):
        return [rule["no"]] * n
    kinds = [names[entry] for entry in found[:n]]
    if "window" in rule and rule["window"][1] in kinds:
        key = rule["window"][0]
        if c.whole(key, None, zero=True) in (None, 0):
            c.refuse(key, f"a number, since {rule['list']} has {rule['window'][2]}")
    return kinds


def _by_commas(c, rule, n):
    """Read numbers of layers from one text with commas."""
    text = c.text(rule["commas"])
    words = text.split(",") if len(text) <= 8 * MAX_LAYERS else ["x"]
    if not all(word.strip().isdecimal() and len(word) < 9 for word in words):
        c.refuse(rule["commas"], "numbers of layers with commas between")
    return _chosen(rule, n, {int(word) for word in words}.__contains__)


def _by_number(c, rule, n):
    """Read a list of layers; optionally a second list must have all others."""
    every = range(rule.get("first", 0), n + rule.get("first", 0))
    chosen = set(c.listed(rule["ones"], every))
    if "others_listed" in rule:
        others = set(c.listed(rule["others_listed"], every))
        if chosen | others != set(every) or chosen & others:
            c.refuse(rule["ones"], f"with {rule['others_listed']} every layer once")
    return _chosen(rule, n, lambda i: every[i] in chosen)


def _by_cycle(c, rule, n):
    """Repeat a text with a letter for each layer."""
    letters, names = c.text(rule["cycle"]), rule["names"]
    if not letters or not set(letters) <= set(names):
        c.refuse(rule["cycle"], f"letters among {', '.join(names)}")
    return [names[letters[i % len(letters)]] for i in range(n)]


def _by_step(c, rule, n):
    step = c.value(rule["step"])
    never = rule.get("never")
    left_out = set(c.listed(never, range(n))) if never and c.given(never) else ()
    if never:
        c.take(never, None)
    return _chosen(rule, n, lambda i: (i + 1) % step == 0 and i not in left_out)


def _from_layer(c, rule, n):
    """Choose every n-th layer from a first one on, optionally up to a last one (-1: to the end)."""
    key, _, default = rule["from"].partition("=")
    first = c.whole(key, *([int(default)] if default else []), zero=True, maximum=n)
    every = c.value(rule.get("every", "1"))
    last = n
    if "to" in rule and c.take(rule["to"], -1) != -1:
        last = c.whole(rule["to"], zero=True, maximum=n)
    return _chosen(rule, n, lambda i: first <= i <= last and i % every == 0)


def _by_switch(c, rule, n):
    """Choose one kind for all layers by a switch; if it has ``must``, only a list of layers may turn it on."""
    on = c.switch(rule.get("switch") or rule["flag"])
    if on and "must" in rule:
        c.refuse(rule["flag"].partition("=")[0], rule["must"])
    return [rule["yes"] if on else rule["no"]] * n


RULES = {
    "all": lambda c, rule, n: [rule["all"]] * n,
    "list": _from_list,
    "switch": _by_switch,
    "commas": _by_commas,
    "ones": _by_number,
    "cycle": _by_cycle,
    "step": _by_step,
    "from": _from_layer,
    "to": None,
    "flag": _by_switch,
}


# --- Searched architectures ---------------------------------------------------------------------------------


def _block_configs(c, key, n):
    """Read layers of a searched architecture (Puzzle): each states how much attention and feed-forward it keeps."""
    heads = c.whole("num_attention_heads")
    width = c.whole("hidden_size")
    head_dim = c.value("head_dim=hidden_size/num_attention_heads")
    made, sequence = {None: None}, []  # equal parts are one object, so that equal layers form one group
    for layer in c.objects(key, n):
        attention = _kept_part(layer, "attention")
        block = _kept_part(layer, "ffn")
        mixer = d_ff = None
        if attention is not None:
            group = attention.whole("n_heads_in_group", maximum=heads)
            if heads % group:
                attention.refuse("n_heads_in_group", f"a divisor of num_attention_heads, {heads}")
            mixer = (group, attention.whole("window_length", None))
            made.setdefault(mixer, Attention(heads, heads // group, head_dim, window=mixer[1]))
        if block is not None:
            d_ff = _searched_width(block, width)
            made.setdefault(d_ff, FeedForward(d_ff))
        if mixer is d_ff:  # a layer without both
            layer.refuse("ffn", "an object with no_op false where attention has it true")
        layer.finish("nemotron-nas", UNUSED)
        sequence.append((made[mixer], made[d_ff]))
    return sequence


def _kept_part(layer, name):
    """Return the keys of a layer's attention or feed-forward; None if the search removed it."""
    part = layer._at(f"{name}.no_op")[0]
    part.must_be("replace_with_linear", False, "a linear map in place of a part is not read here")
    return None if part.flag("no_op", False) else part


def _searched_width(part, width):
    """Width of a feed-forward block: two thirds of a multiple of d_model, rounded up to a multiple of 256."""
    mult = part.take("ffn_mult", REQUIRED)
    if isinstance(mult, bool) or not isinstance(mult, int | float) or not 0 < mult <= 100:
        part.refuse("ffn_mult", "a number above 0, at most 100")
    return -(-int(2 * mult * width / 3) // 256) * 256
