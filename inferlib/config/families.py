"""From keys to a shape, by the declarations of ``catalog/families.toml``, which explains its words."""

import tomllib
from collections import Counter
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from inferlib.config.keys import MAX_LAYERS, MAX_NUMBER, REQUIRED
from inferlib.transformer import (
    Attention,
    CompressedAttention,
    DeltaAttention,
    Experts,
    FeedForward,
    Indexer,
    LatentAttention,
    Layers,
    StateSpace,
)

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
UNUSED = {"attention.n_heads_in_group", "ffn.ffn_mult"}  # what a part left out (no_op) may still say


@cache
def declarations():
    """The file of declarations: ``harmless`` keys of all families, and a table for each ``family``."""
    return tomllib.loads((files("inferlib.catalog") / "families.toml").read_text("utf-8"))


def families():
    """What is declared for each ``model_type``."""
    return declarations()["family"]


@cache
def declared(name):
    """What is declared for a ``model_type``, with what it takes over from the one it is ``like``."""
    family = families()[name]
    return _merged(declared(family["like"]), family) if "like" in family else family


def _merged(base, changes):
    both = {
        key: _merged(base[key], value)
        if isinstance(base.get(key), dict) and isinstance(value, dict)
        else value
        for key, value in changes.items()
    }
    return base | both


def shape_of(c, name):
    """What a configuration says of a model of a family.

    Parameters
    ----------
    c : Keys
        Every key the family knows is asked for.
    name : str
        The ``model_type``.

    Returns
    -------
    dict
        Fields of a Transformer, and ``"sequence"``: for each layer its attention and feed-forward block.

    Raises
    ------
    ValueError
        If a key is missing, of the wrong type, out of range, or contradicts another.
    """
    family = declared(name)
    for key, (only, why) in family.get("only", {}).items():
        c.must_be(key, only, why)
    for key, meaning in family.get("stated", {}).items():
        c.stated(key, meaning)
    for key, remark in family.get("notes", {}).items():
        c.note(key, remark)
    for key, text in family.get("equal", {}).items():
        if c.whole(key, None, zero=True) not in (None, value(c, text)):
            c.refuse(key, text)
    for key, allowed in family.get("lists", {}).items():
        if c.given(key):
            c.listed(key, allowed)
    for key, other in family.get("said_by", {}).items():
        if c.whole(key, None) not in (None, 1) and not c.given(other):
            c.refuse(key, f"1 where {other} does not say which layers it means")
    for key, other in family.get("alike", {}).items():
        if c.given(key) and c.listed(key, (0, 1)) != c.listed(other, (0, 1)):
            c.refuse(key, f"the same as {other}")
    for key in family.get("numbers", ()):
        c.whole(key, None, zero=True)
    n_layers = value(c, family.get("layers", "num_hidden_layers"), most=MAX_LAYERS)
    parts = {part: _part(c, table) for part, table in family["parts"].items() if _used(c, table)}
    pattern = family["pattern"]
    if "blocks" in pattern:
        sequence = _block_configs(c, pattern["blocks"], n_layers)
    elif "layer" in pattern:
        kinds = [parts[kind] for kind in _kinds(c, pattern["layer"], n_layers)]
        sequence = [(None, kind) if isinstance(kind, BLOCKS) else (kind, None) for kind in kinds]
    else:
        mixers, blocks = (_kinds(c, pattern[what], n_layers) for what in ("attention", "feed_forward"))
        sequence = [(parts[m], parts[b]) for m, b in zip(mixers, blocks, strict=True)]
    mixing, last = (value(c, text, zero=True) for text in family.get("connections", (0, 0)))
    norms = value(c, family.get("norms", 2))
    counts = Counter((id(mixer), id(block)) for mixer, block in sequence)
    known = {(id(mixer), id(block)): (mixer, block) for mixer, block in sequence}
    layers = tuple(_layers(n, *known[pair], norms, mixing) for pair, n in counts.items())
    shape = {
        "d_model": value(c, family.get("width", "hidden_size")),
        "vocab_size": c.whole("vocab_size"),
        "tied": c.flag("tie_word_embeddings", family.get("tied", False)),
        "final_norm": family.get("final_norm", 1),
        "head_bias": family.get("head_bias", False),
        "layers": layers,
        "sequence": sequence,
        "connections": last,
    }
    if "positions" in family:
        shape["positions"] = value(c, family["positions"])
    if "drafts" in family:
        shape |= _drafts(c, family["drafts"], parts, norms, mixing)
    return shape


def _layers(count, attention, block, norms, mixing=0):
    """Equal layers; one that is attention alone, or a feed-forward block alone, has one norm."""
    return Layers(count, attention, block, 1 if attention is None or block is None else norms, mixing)


def value(c, text, zero=False, most=MAX_NUMBER):
    """The whole number that an expression stands for: a sum of products of keys and numbers; see the file."""
    if isinstance(text, Mapping):
        return _choice(c, text, zero)
    if isinstance(text, bool | int):
        return text
    total = 0
    for product in text.split(" + "):
        factors = [_factor(c, word, zero, most) for word in product.split(" * ")]
        if None in factors:
            return None
        found = 1
        for factor in factors:
            found *= factor
        total += found
    return total


def _choice(c, table, zero):
    """One of two expressions, by a flag, a text, or whether a key is given."""
    if "flag" in table:
        key, _, default = table["flag"].partition("=")
        on = c.flag(key, default == "true")
    elif "text" in table:
        key, _, default = table["text"].partition("=")
        on = c.text(key, default) == table["is"]
    else:
        on = c.given(table["given"])
    chosen = table["yes"] if on else table["no"]
    return None if chosen == "none" else value(c, chosen, zero)


def _factor(c, word, zero, most):
    if word.isdigit():
        return int(word)
    if word.startswith("#"):  # the length of a list
        found = c._take(word[1:], REQUIRED)
        return len(found) if isinstance(found, list | str) else c.refuse(word[1:], "a list")
    if "/" in word and "=" not in word:
        return _quotient(c, word)
    names, _, default = word.partition("=")
    optional = names.endswith("?")
    key = _same(c, names.removesuffix("?").split("|"))
    if default in ("true", "false"):
        return int(c.flag(key, default == "true"))
    if optional:  # null and 0 say that there is none
        return c.whole(key, None, zero=True, maximum=most) or None
    if not default:
        return c.whole(key, zero=zero, maximum=most)
    if c.given(key):
        return c.whole(key, zero=zero or default == "0", maximum=most)
    c.whole(key, None)  # asked for
    return _factor(c, default, zero, most)


def _quotient(c, word):
    above, below = word.split("/")
    n, d = c.whole(above), c.whole(below)
    if n % d:
        c.refuse(below, f"a divisor of {above}, {n}, where head_dim is not given")
    return n // d


def _same(c, names):
    """The first name that is given; further names of the same number must say the same."""
    given = [name for name in names if c.given(name)] or names[:1]
    for other in given[1:]:
        if c.whole(other, zero=True) != c.whole(given[0], zero=True):
            c.refuse(other, f"the same as {given[0]}")
    return given[0]


def _used(c, table):
    """A part that names a key ``needs`` exists only where that key is given and on."""
    key = table.get("needs")
    return key is None or bool(c.given(key) and c.data.get(key))


def _part(c, table):
    """A record of attention or feed-forward, its fields evaluated."""
    made, kind = {}, PARTS[table["kind"]]
    for field, text in table.items():
        if field in ("kind", "needs"):
            continue
        if isinstance(text, Mapping) and "kind" in text:
            made[field] = _part(c, text) if _used(c, text) else None
            continue
        about = kind.__dataclass_fields__[field]
        most = made.get("n_experts", MAX_NUMBER) if field == "n_active" else MAX_NUMBER
        if about.type is bool and isinstance(text, str) and "=" not in text:
            made[field] = c.flag(text)
            continue
        found = value(c, text, zero=about.metadata.get("zero", False), most=most)
        made[field] = bool(found) if about.type is bool else found
    if kind is Attention and made["n_heads"] % made["n_kv_heads"]:
        word = table["n_kv_heads"]
        key = (word["yes"] if isinstance(word, Mapping) else word).split("=")[0].split("|")[0]
        heads = table["n_heads"].split("=")[0].split("|")[0]
        c.refuse(key, f"a divisor of {heads}, {made['n_heads']}")
    return kind(**made)


# --- Which layer is what ------------------------------------------------------------------------------------


def _kinds(c, rules, n):
    """The kind of each layer, by the first rule whose key is given, else by the last one."""
    if isinstance(rules, str):
        return [rules] * n
    chosen = next((rule for rule in rules if _applies(c, rule)), rules[-1])
    for rule in rules:
        if rule is not chosen:  # known, though another rule counts
            for word in ("list", "ones", "commas", "step", "from", "every", "never"):
                c._take(rule.get(word, "model_type").partition("=")[0], None)
    return _rule(c, chosen, n)


def _applies(c, rule):
    key = rule.get("list") or rule.get("ones") or rule.get("commas")
    return key is not None and c.given(key) and not (rule.get("empty") and c.data.get(key) == [])


def _rule(c, rule, n):
    if "all" in rule:
        return [rule["all"]] * n
    if "list" in rule:
        return _from_list(c, rule, n)
    if "switch" in rule:
        key, _, default = rule["switch"].partition("=")
        return [rule["yes"] if c.flag(key, default == "true") else rule["no"]] * n
    if "commas" in rule:  # layers by number, in one text
        text = c.text(rule["commas"])
        words = text.split(",") if len(text) <= 8 * MAX_LAYERS else ["x"]
        if not all(word.strip().isdecimal() and len(word) < 9 for word in words):
            c.refuse(rule["commas"], "numbers of layers with commas between")
        chosen = {int(word) for word in words}
        return [rule["is"] if i in chosen else rule["else"] for i in range(n)]
    if "ones" in rule:
        first = rule.get("first", 0)
        chosen = set(c.listed(rule["ones"], range(first, n + first)))
        if "others_listed" in rule:
            others = set(c.listed(rule["others_listed"], range(first, n + first)))
            if chosen | others != set(range(first, n + first)) or chosen & others:
                c.refuse(rule["ones"], f"with {rule['others_listed']} every layer once")
        return [rule["is"] if i + first in chosen else rule["else"] for i in range(n)]
    if "step" in rule:
        step = value(c, rule["step"])
        never = set(c.listed(rule["never"], range(n))) if rule.get("never") and c.given(rule["never"]) else ()
        if rule.get("never"):
            c._take(rule["never"], None)
        return [rule["is"] if (i + 1) % step == 0 and i not in never else rule["else"] for i in range(n)]
    if "from" in rule:
        first = c.whole(*_defaulted(rule["from"]), zero=True, maximum=n)
        every = value(c, rule.get("every", "1"))
        return [rule["is"] if i >= first and i % every == 0 else rule["else"] for i in range(n)]
    key, _, default = rule["flag"].partition("=")  # a switch that only a list of layers can turn on
    if c.flag(key, default == "true"):
        c.refuse(key, rule["must"])
    return [rule["no"]] * n


def _defaulted(text):
    key, _, default = text.partition("=")
    return (key, int(default)) if default else (key,)


def _from_list(c, rule, n):
    names = {_entry(entry, rule): kind for entry, kind in rule["names"].items()}
    more = value(c, rule["more"], zero=True) if "more" in rule else 0
    found = c.listed(rule["list"], names, n, n + more)
    if "flag" in rule:  # the switch decides whether the list counts
        key, _, default = rule["flag"].partition("=")
        if not c.flag(key, default == "true"):
            return [rule["no"]] * n
    kinds = [names[entry] for entry in found[:n]]
    if "window" in rule and rule["window"][1] in kinds:
        key = rule["window"][0]
        if c.whole(key, None, zero=True) in (None, 0):
            c.refuse(key, f"a number, since {rule['list']} has {rule['window'][2]}")
    return kinds


def _entry(entry, rule):
    return int(entry) if rule.get("numbers") else entry


def _drafts(c, table, parts, norms, mixing):
    """The layers that predict further tokens: their number, one module's layers, and what else it holds."""
    count = value(c, table["count"], zero=True)
    for key in table.get("list", ()):
        c._take(key, None)  # known, though there may be none
    if not count:
        return {}
    c.notes[table["count"].partition("=")[0]] = "layers that predict further tokens (MTP), counted apart"
    if "list" in table:
        key = next((k for k in table["list"] if c.given(k)), table["list"][0])
        kinds = [parts[table["names"][kind]] for kind in c.listed(key, table["names"])]
        layers = [_layers(count, *((None, k) if isinstance(k, BLOCKS) else (k, None)), norms) for k in kinds]
    else:
        layers = [_layers(count, parts[table["attention"]], parts[table["feed_forward"]], norms, mixing)]
    return {"drafts": tuple(layers), "draft_weights": count * value(c, table["weights"])}


def _block_configs(c, key, n):
    """Layers of a searched architecture (Puzzle): each says how much of attention and feed-forward it keeps."""
    heads, width = c.whole("num_attention_heads"), c.whole("hidden_size")
    plain, blocks, sequence = {}, {}, []  # equal parts are one object, so that equal layers make one group
    head_dim = value(c, "head_dim=hidden_size/num_attention_heads")
    for layer in c.objects(key, n):
        pair = []
        for name in ("attention", "ffn"):
            part = layer._at(f"{name}.no_op")[0]
            part.must_be("replace_with_linear", False, "a linear map in place of a part is not read here")
            if part.flag("no_op", False):
                pair.append(None)
            elif name == "attention":
                group = part.whole("n_heads_in_group", maximum=heads)
                if heads % group:
                    part.refuse("n_heads_in_group", f"a divisor of num_attention_heads, {heads}")
                window = part.whole("window_length", None)
                record = plain.setdefault(
                    (group, window), Attention(heads, heads // group, head_dim, window=window)
                )
                pair.append(record)
            else:
                d_ff = _searched_width(part, width)
                pair.append(blocks.setdefault(d_ff, FeedForward(d_ff)))
        if pair == [None, None]:
            layer.refuse("ffn", "an object with no_op false where attention has it true")
        layer.finish("nemotron-nas", UNUSED)
        sequence.append(tuple(pair))
    return sequence


def _searched_width(part, width):
    """Width of a feed-forward block: two thirds of a multiple of d_model, rounded up to 256."""
    mult = part._take("ffn_mult", REQUIRED)
    if isinstance(mult, bool) or not isinstance(mult, int | float) or not 0 < mult <= 100:
        part.refuse("ffn_mult", "a number above 0, at most 100")
    return -(-int(2 * mult * width / 3) // 256) * 256
