"""Kinds of attention: their weights, the values they cache per sequence, and the FLOP of a token.

Every kind has the same methods: ``matrices``, ``vectors`` and ``norms`` (weights), ``kept`` and ``read``
(values per sequence and layer that grow with its context), ``state`` (values that do not), and
``context_flops`` and ``prompt_flops``. A multiply-add counts as two FLOP.
"""

from numbers import Real

from inferlib.equation import Record, quantity
from inferlib.ops import ceil, minimum

FLOP_PER_WEIGHT = 2  # a multiplication and an addition


def at_most(record, name, limit):
    """Raise ValueError if a field is larger than another field."""
    value = getattr(record, name)
    bound = getattr(record, limit)
    if isinstance(value, Real) and isinstance(bound, Real) and value > bound:
        kind = type(record).__name__
        raise ValueError(f"{kind}.{name} is {value}, but must be at most {limit}, {bound}")


def nonzero_parts(counted):
    """Drop the parts that are the number 0; symbols and arrays are kept."""
    return {part: value for part, value in counted.items() if type(value) is not int or value}


class AttentionKind(Record):
    """Base of everything that a group of layers may have as its attention; further kinds are in tokenprice."""

    unsupported = ""  # what a source for plain and latent attention cannot describe

    def kept(self, context):
        """Values cached for ``context`` tokens; an indexer adds its keys."""
        entries, keys = self.entries(context)
        index = 0 if self.indexer is None else self.indexer.head_dim * keys
        return self.cache_values() * entries + index


class _Pairs(AttentionKind):
    """Base of kinds of attention over single positions of a context.

    The fields ``window``, ``chunked``, ``top`` and ``indexer`` decide which positions a token sees.
    """

    def entries(self, context):
        """Entries cached for ``context`` tokens, limited by a window, and keys of an indexer."""
        return context if self.window is None else minimum(context, self.window), context

    def read(self, context):
        """Cached values that a new token reads."""
        index = 0 if self.indexer is None else self.indexer.head_dim * context
        return self.cache_values() * visible_context(self, context) + index

    def state(self):
        """Values per sequence that do not grow with its context: none."""
        return {}

    def context_flops(self, context):
        """FLOP of one layer for a new token that could see ``context`` positions, by part."""
        return self._flops(visible_context(self, context), context, absorbed=True)

    def prompt_flops(self, tokens, absorbed=False):
        """FLOP of one layer for all causal pairs of positions in a prompt, by part."""
        return self._flops(causal_pairs(self, tokens), triangle(tokens), absorbed)

    def _flops(self, seen, scored, absorbed):
        """FLOP by part, for ``seen`` pairs of positions that attend and ``scored`` pairs that an indexer scores."""
        parts = {part: f * seen for part, f in self.pair_flops(absorbed).items()}
        return parts | ({} if self.indexer is None else {"indexer": self.indexer.flops() * scored})

    def _further(self, d_model):
        return nonzero_parts({"gate": d_model * self.gate}) | (
            self.indexer.matrices(d_model) if self.indexer else {}
        )


class Attention(_Pairs):
    """Attention that caches one key and one value per key/value head: MHA, GQA, MQA.

    Head width is a field of its own, because in some models it is not d_model divided by the heads. With a ``window`` a
    token sees only that many of the newest positions, itself included; ``chunked``: it sees those of its own chunk
    instead. ``top``: number of positions that an indexer picks. ``same_value``: the key projection gives the values
    too.
    """

    n_heads: float = quantity("query heads")
    n_kv_heads: float = quantity("key (and value) heads")
    head_dim: float = quantity("width of one head")
    window: float = quantity("positions a token sees, if not all", default=None)
    chunked: bool = False
    input_bias: bool = False
    output_bias: bool = False
    qk_norm: bool = False
    sinks: bool = False
    value_dim: float = quantity("width of a head's value, if not head_dim", default=None)
    gate: float = quantity("outputs of the projection that gates the result", default=0)
    top: float = quantity("positions an indexer picks for a token", default=None)
    indexer: Record | None = None
    same_value: bool = False
    norm_all_heads: bool = False

    def __post_init__(self):
        super().__post_init__()
        at_most(self, "n_kv_heads", "n_heads")

    @property
    def kind(self):
        """``"MHA"``, ``"GQA"`` or ``"MQA"``."""
        if self.n_kv_heads == self.n_heads:
            return "MHA"
        return "MQA" if self.n_kv_heads == 1 else "GQA"

    def _value(self):
        return self.head_dim if self.value_dim is None else self.value_dim

    def matrices(self, d_model):
        """Weights of each projection of one layer, by name."""
        found = {
            "query": d_model * self.n_heads * self.head_dim,
            "key": d_model * self.n_kv_heads * self.head_dim,
            "value": 0 if self.same_value else d_model * self.n_kv_heads * self._value(),
            "output": d_model * self.n_heads * self._value(),
        }
        return found | self._further(d_model)

    def vectors(self, d_model):
        """Biases (of the gate too) and attention sinks of one layer."""
        value = 0 if self.same_value else self._value()
        into = self.n_heads * self.head_dim + self.n_kv_heads * (self.head_dim + value) + self.gate
        into = into if self.input_bias else 0
        return into + (d_model if self.output_bias else 0) + (self.n_heads if self.sinks else 0)

    def norms(self):
        """Parameters of the norms inside: of queries and of keys, for one head or for all heads."""
        heads = self.n_heads + self.n_kv_heads if self.norm_all_heads else 2
        index = 0 if self.indexer is None else self.indexer.norms
        return (heads * self.head_dim if self.qk_norm else 0) + index

    def cache_values(self):
        """Values cached per position and layer: a key and a value for each key/value head."""
        return self.n_kv_heads * (self.head_dim + self._value())

    def pair_flops(self, absorbed):
        """FLOP of one layer for each pair of a query position and a key position, by part."""
        heads = FLOP_PER_WEIGHT * self.n_heads
        return {"scores": heads * self.head_dim, "values": heads * self._value()}


class LatentAttention(_Pairs):
    """Multi-head latent attention (MLA): the cache holds one latent and one rotary key for all heads.

    Expanded, keys and values are recomputed from the latent. Absorbed, the up-projection is applied to the query and to
    the result instead, so attention works on the latent itself. ``window``, ``chunked``, ``top``, ``indexer`` and
    ``gate`` are as in :class:`Attention`.
    """

    n_heads: float = quantity("heads")
    kv_rank: float = quantity("width of the latent of keys and values")
    nope_dim: float = quantity("width of a head's query and key without position")
    rope_dim: float = quantity("width of the rotary part of queries, and of the shared rotary key")
    value_dim: float = quantity("width of a head's value")
    q_rank: float = quantity("width of the latent of queries, if they have one", default=None)
    window: float = quantity("positions a token sees, if not all", default=None)
    chunked: bool = False
    gate: float = quantity("outputs of the projection that gates the result", default=0)
    top: float = quantity("positions an indexer picks for a token", default=None)
    indexer: Record | None = None

    kind = "MLA"

    def matrices(self, d_model):
        """Weights of each projection of one layer, by name."""
        queries = self.n_heads * (self.nope_dim + self.rope_dim)
        if self.q_rank is None:
            query = {"query": d_model * queries}
        else:
            query = {"query down": d_model * self.q_rank, "query up": self.q_rank * queries}
        found = query | {
            "latent down": d_model * (self.kv_rank + self.rope_dim),
            "latent up": self.kv_rank * self.n_heads * (self.nope_dim + self.value_dim),
            "output": self.n_heads * self.value_dim * d_model,
        }
        return found | self._further(d_model)

    def vectors(self, d_model):
        """Biases of one layer: none."""
        return 0

    def norms(self):
        """Parameters of the norms inside: one weight vector for each latent, and the indexer's."""
        index = 0 if self.indexer is None else self.indexer.norms
        return self.kv_rank + (0 if self.q_rank is None else self.q_rank) + index

    def cache_values(self):
        """Values cached per position and layer: the latent and the rotary key, once for all heads."""
        return self.kv_rank + self.rope_dim

    def pair_flops(self, absorbed):
        """FLOP of one layer for each pair of a query position and a key position, by part."""
        if absorbed:
            key = self.kv_rank + self.rope_dim
            value = self.kv_rank
        else:
            key = self.nope_dim + self.rope_dim
            value = self.value_dim
        heads = FLOP_PER_WEIGHT * self.n_heads
        return {"scores": heads * key, "values": heads * value}


def visible_context(attention, context):
    """Positions out of ``context`` that a new token attends to, itself included.

    A chunk counts as full: its last token sees all of it, the average token half of it.

    Examples
    --------
    >>> visible_context(Attention(64, 8, 64, window=128), 1000), visible_context(Attention(64, 8, 64), 0)
    (128, 0)
    """
    for most in (attention.window, attention.top):
        context = context if most is None else minimum(context, most)
    return context


def causal_pairs(attention, tokens):
    """Causal pairs of query and key positions in a prompt: each token sees itself and earlier ones.

    Examples
    --------
    >>> causal_pairs(Attention(64, 8, 64), 4), causal_pairs(Attention(64, 8, 64, window=2), 4)
    (10.0, 7.0)
    >>> causal_pairs(Attention(64, 8, 64), 0)
    0.0
    """
    if attention.chunked and attention.window is not None:
        full = ceil(tokens / attention.window) - 1
        return full * triangle(attention.window) + triangle(tokens - full * attention.window)
    limits = [most for most in (attention.window, attention.top) if most is not None]
    return capped(tokens, min(limits)) if limits else triangle(tokens)


def capped(tokens, most):
    """Causal pairs in a prompt where a token sees at most that many positions."""
    first = minimum(tokens, most)
    return triangle(first) + (tokens - first) * most


def triangle(n):
    """Causal pairs in a prompt where a token sees all earlier positions and itself."""
    return n * (n + 1) / 2


def unsupported_features(attention):
    """Name what an attention has beyond plain and latent attention over positions; ``""`` if nothing."""
    if attention is None:
        return "layers without attention"
    if attention.unsupported:
        return attention.unsupported
    if attention.top is not None:
        return "sparse attention (an indexer picks positions)"
    if (
        getattr(attention, "same_value", False)
        or attention.gate
        or (isinstance(attention, Attention) and attention.value_dim not in (None, attention.head_dim))
    ):
        return "attention with a gate, or with values of another width than keys"
    return ""
