"""Kinds of attention: their weights, the values they cache per sequence, and the FLOP of a token.

Every kind has the same methods: ``matrices``, ``vectors`` and ``norms`` (weights), ``kept`` and ``read``
(values per sequence and layer that grow with its context), ``state`` (values that do not), and
``context_flops`` and ``prompt_flops``. A multiply-add counts as two FLOP.
"""

from numbers import Real

from inferlib import validation
from inferlib.equation import Record, frozen, quantity
from inferlib.ops import ceil, floor, maximum, minimum

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


@frozen
class Indexer(Record):
    """Lightning indexer: a few narrow heads that score positions (or blocks of them) for sparse attention.

    It caches one key for all its heads. ``weighted``: a projection computes the weight of each head.
    """

    n_heads: float = quantity("heads of the indexer")
    head_dim: float = quantity("width of a head of the indexer")
    query_input: float = quantity("width of the input of its queries, if not d_model", default=None)
    norms: float = quantity("parameters of its norms", default=0)
    weighted: bool = True

    def matrices(self, d_model):
        """Weights of its projections, by name."""
        source = d_model if self.query_input is None else self.query_input
        found = {"index query": source * self.n_heads * self.head_dim, "index key": d_model * self.head_dim}
        return found | ({"index weights": d_model * self.n_heads} if self.weighted else {})

    def flops(self):
        """FLOP to score one cached key."""
        return FLOP_PER_WEIGHT * self.n_heads * self.head_dim


class _Pairs:
    """Base of kinds of attention over single positions of a context.

    The fields ``window``, ``chunked``, ``top`` and ``indexer`` decide which positions a token sees.
    """

    def kept(self, context):
        """Values cached for ``context`` tokens, limited by a window; an indexer adds its keys."""
        context = validation.number("context", context, zero=True)
        seen = context if self.window is None else minimum(context, self.window)
        index = 0 if self.indexer is None else self.indexer.head_dim * context
        return self.cache_values() * seen + index

    def read(self, context):
        """Cached values that a new token reads."""
        index = 0 if self.indexer is None else self.indexer.head_dim * context
        return self.cache_values() * visible_context(self, context) + index

    def state(self):
        """Values per sequence that do not grow with its context: none."""
        return {}

    def context_flops(self, context, absorbed=True):
        """FLOP of one layer for a new token that could see ``context`` positions, by part."""
        return self._flops(visible_context(self, context), context, absorbed)

    def prompt_flops(self, tokens, absorbed=False):
        """FLOP of one layer for all causal pairs of positions in a prompt, by part."""
        return self._flops(causal_pairs(self, tokens), _triangle(tokens), absorbed)

    def _flops(self, seen, scored, absorbed):
        """FLOP by part, for ``seen`` pairs of positions that attend and ``scored`` pairs that an indexer scores."""
        parts = {part: f * seen for part, f in self.pair_flops(absorbed).items()}
        return parts | ({} if self.indexer is None else {"indexer": self.indexer.flops() * scored})

    def _further(self, d_model):
        return nonzero_parts({"gate": d_model * self.gate}) | (
            self.indexer.matrices(d_model) if self.indexer else {}
        )


@frozen
class Attention(_Pairs, Record):
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
    indexer: Indexer | None = None
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


@frozen
class LatentAttention(_Pairs, Record):
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
    indexer: Indexer | None = None

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
            "latent up": self._expansion(),
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

    def context_flops(self, context, absorbed=True):
        """FLOP of one layer for a new token, by part; if not absorbed, including expansion of all earlier positions."""
        parts = super().context_flops(context, absorbed)
        if not absorbed:
            # its own projections have already expanded the new position
            parts["expansion"] = self.expansion_flops() * maximum(visible_context(self, context) - 1, 0)
        return parts

    def expansion_flops(self):
        """FLOP of one layer to recompute keys and values of one position from its latent."""
        return FLOP_PER_WEIGHT * self._expansion()

    def _expansion(self):
        return self.kv_rank * self.n_heads * (self.nope_dim + self.value_dim)


@frozen
class CompressedAttention(Record):
    """Attention of DeepSeek-V4: one vector is both key and value of all heads, and old positions are pooled.

    A token sees the newest ``window`` positions one by one and, of all earlier ones, one pooled vector for every
    ``ratio`` positions: all of them, or the ``top`` that an indexer picks (its keys are pooled too). With ``overlap`` a
    pooled vector covers two neighbouring blocks of positions. The output projection has ``o_groups`` groups of heads,
    each with a narrow matrix of its own.
    """

    n_heads: float = quantity("query heads")
    head_dim: float = quantity("width of one head, and of the vector kept for a position")
    q_rank: float = quantity("width of the latent of queries")
    o_groups: float = quantity("groups of heads that share an output matrix")
    o_rank: float = quantity("width of a group's output")
    window: float = quantity("newest positions that are seen one by one")
    ratio: float = quantity("positions that one pooled vector stands for; none: a window only", default=None)
    overlap: bool = False
    top: float = quantity("pooled vectors an indexer picks for a token", default=None)
    indexer: Indexer | None = None

    @property
    def kind(self):
        """``"window"``, or ``"pooled 4"`` for a ratio of 4."""
        return "window" if self.ratio is None else f"pooled {self.ratio}"

    def _streams(self):
        return 2 if self.overlap else 1

    def _pooled(self, context):
        """Number of pooled vectors for ``context`` positions."""
        return 0 if self.ratio is None else floor(context / self.ratio)

    def matrices(self, d_model):
        """Weights of each projection of one layer, by name."""
        found = {
            "query down": d_model * self.q_rank,
            "query up": self.q_rank * self.n_heads * self.head_dim,
            "key": d_model * self.head_dim,
            "output down": self.n_heads * self.head_dim * self.o_rank,
            "output up": self.o_groups * self.o_rank * d_model,
        }
        if self.ratio is not None:
            # the pooled values, and their pooling weights
            found["pool"] = 2 * d_model * self._streams() * self.head_dim
        if self.indexer is not None:
            found |= self.indexer.matrices(d_model)
            found["index key"] = 2 * d_model * self._streams() * self.indexer.head_dim
        return found

    def vectors(self, d_model):
        """Attention sinks, and a bias for every place inside a pooled block."""
        pooled = 0 if self.ratio is None else self._pooled_width() * self._streams() * self.ratio
        return self.n_heads + pooled

    def _pooled_width(self):
        return self.head_dim + (0 if self.indexer is None else self.indexer.head_dim)

    def norms(self):
        """Parameters of the norms inside this kind of attention."""
        pooled = 0 if self.ratio is None else self._pooled_width()
        return self.q_rank + self.head_dim + pooled

    def kept(self, context):
        """Values cached for ``context`` tokens: those of the window, and the pooled ones."""
        return self.head_dim * minimum(context, self.window) + self._pooled_width() * self._pooled(context)

    def read(self, context):
        """Cached values that a new token reads."""
        index = 0 if self.indexer is None else self.indexer.head_dim * self._pooled(context)
        return self.head_dim * self._attended(context) + index

    def _attended(self, context):
        pooled = self._pooled(context)
        return minimum(context, self.window) + (pooled if self.top is None else minimum(pooled, self.top))

    def state(self):
        """Values (and their weights) not pooled yet: at most one block (and the one before)."""
        if self.ratio is None:
            return {}
        before = self.ratio if self.overlap else 0
        return {"waiting": 2 * self._pooled_width() * (self.ratio * self._streams() + before)}

    def context_flops(self, context, absorbed=True):
        """FLOP of one layer for a new token that could see ``context`` positions, by part."""
        dot = FLOP_PER_WEIGHT * self.n_heads * self.head_dim * self._attended(context)
        scored = {}
        if self.indexer is not None:
            scored = {"indexer": self.indexer.flops() * self._pooled(context)}
        return {"scores": dot, "values": dot} | scored

    def prompt_flops(self, tokens, absorbed=False):
        """FLOP of one layer for a prompt, by part; a token sees half of the pooled vectors on average."""
        newest = _capped(tokens, self.window)
        dot = FLOP_PER_WEIGHT * self.n_heads * self.head_dim
        scored = {}
        if self.ratio is not None:
            entries = _triangle(tokens) / self.ratio
            cap = None if self.top is None else self.top * self.ratio
            newest = newest + (entries if cap is None else _capped(tokens, cap) / self.ratio)
            if self.indexer is not None:
                scored = {"indexer": self.indexer.flops() * entries}
        return {"scores": dot * newest, "values": dot * newest} | scored


class _Recurrent:
    """Base of layers that have a recurrent state of fixed size instead of a cache: one matrix per head.

    Every token passes over the matrices ``passes`` times, and over the window of a short convolution.
    """

    def state(self):
        """Values per sequence: the heads' matrices, and the last inputs of the convolution."""
        return {"state": self.held(), "convolution": self.channels() * (self.kernel - 1)}

    def state_flops(self):
        """FLOP of one token."""
        return FLOP_PER_WEIGHT * (self.passes * self.held() + self.channels() * self.kernel)

    def kept(self, context):
        """Values cached that grow with the context: none."""
        return 0 * context

    read = kept

    def context_flops(self, context, absorbed=True):
        """FLOP of one layer for a new token, by part; they do not depend on the context."""
        return {"state": self.state_flops() + 0 * context}

    def prompt_flops(self, tokens, absorbed=False):
        """FLOP of one layer for a prompt, by part, token by token (chunked kernels do somewhat more)."""
        return {"state": self.state_flops() * tokens}


@frozen
class DeltaAttention(_Recurrent, Record):
    """Linear attention by the gated delta rule: Gated DeltaNet, Kimi Delta Attention.

    Each value head has a state of key width times value width, after a short convolution. The decay is one number per
    head, or (with ``decay_rank``) per channel through a low-rank matrix; the output gate is a full projection unless
    it has a ``gate_rank``.
    """

    n_heads: float = quantity("value heads")
    n_key_heads: float = quantity("query and key heads")
    key_dim: float = quantity("width of a query or key")
    value_dim: float = quantity("width of a value")
    kernel: float = quantity("positions of the short convolution")
    decay_rank: float = quantity("width of the projection of a decay for each channel", default=None)
    gate_rank: float = quantity("width of the projection of the gate, if narrow", default=None)

    kind = "delta rule"
    window = None
    passes = 3  # look up a key, change the state by an outer product, look up a query

    def channels(self):
        """Channels of the short convolution."""
        return 2 * self.n_key_heads * self.key_dim + self.n_heads * self.value_dim

    def matrices(self, d_model):
        """Weights of each projection of one layer, by name."""
        values = self.n_heads * self.value_dim
        decay = d_model * self.n_heads
        if self.decay_rank is not None:
            decay = self.decay_rank * (d_model + self.n_heads * self.key_dim)
        gate = d_model * values if self.gate_rank is None else self.gate_rank * (d_model + values)
        into = {"query, key, value": d_model * self.channels(), "gate": gate, "decay": decay}
        return into | {"strength": d_model * self.n_heads, "output": values * d_model}

    def vectors(self, d_model):
        """Parameters of the convolution and of the decay."""
        each = 1 if self.decay_rank is None else self.key_dim
        return self.channels() * self.kernel + self.n_heads * (1 + each)

    def norms(self):
        """Parameters of the norm of a head's output."""
        return self.value_dim

    def held(self):
        """Values of the heads' states."""
        return self.n_heads * self.key_dim * self.value_dim


@frozen
class StateSpace(_Recurrent, Record):
    """A state-space layer (Mamba 2): each head has a state of its width times the state's width."""

    n_heads: float = quantity("heads")
    head_dim: float = quantity("width of one head")
    state_dim: float = quantity("width of the state")
    groups: float = quantity("groups of heads that share input and output maps of the state")
    kernel: float = quantity("positions of the short convolution")
    convolution_bias: bool = True

    kind = "state space"
    window = None
    passes = 2  # change the state by an outer product, look it up

    def channels(self):
        """Channels of the short convolution."""
        return self.n_heads * self.head_dim + 2 * self.groups * self.state_dim

    def matrices(self, d_model):
        """Weights of each projection of one layer, by name."""
        inner = self.n_heads * self.head_dim
        return {"input": d_model * (inner + self.channels() + self.n_heads), "output": inner * d_model}

    def vectors(self, d_model):
        """Parameters of the convolution, and three constants of each head: decay, step, and skip connection."""
        return self.channels() * (self.kernel + (1 if self.convolution_bias else 0)) + 3 * self.n_heads

    def norms(self):
        """Parameters of the output norm."""
        return self.n_heads * self.head_dim

    def held(self):
        """Values of the heads' states."""
        return self.n_heads * self.head_dim * self.state_dim


KINDS = (Attention, LatentAttention, CompressedAttention, DeltaAttention, StateSpace)


def visible_context(attention, context):
    """Positions out of ``context`` that a new token attends to, itself included.

    A chunk counts as full: its last token sees all of it, the average token half of it.

    Examples
    --------
    >>> visible_context(Attention(64, 8, 64, window=128), 1000)
    128
    """
    context = validation.number("context", context, zero=True)
    for most in (attention.window, attention.top):
        context = context if most is None else minimum(context, most)
    return context


def causal_pairs(attention, tokens):
    """Causal pairs of query and key positions in a prompt: each token sees itself and earlier ones.

    Examples
    --------
    >>> causal_pairs(Attention(64, 8, 64), 4), causal_pairs(Attention(64, 8, 64, window=2), 4)
    (10.0, 7.0)
    """
    tokens = validation.number("tokens", tokens, zero=True)
    if attention.chunked and attention.window is not None:
        full = ceil(tokens / attention.window) - 1
        return full * _triangle(attention.window) + _triangle(tokens - full * attention.window)
    limits = [most for most in (attention.window, attention.top) if most is not None]
    return _capped(tokens, min(limits)) if limits else _triangle(tokens)


def _capped(tokens, most):
    first = minimum(tokens, most)
    return _triangle(first) + (tokens - first) * most


def _triangle(n):
    return n * (n + 1) / 2


def unsupported_features(attention):
    """Name what an attention has beyond plain and latent attention over positions; ``""`` if nothing."""
    if attention is None:
        return "layers without attention"
    if isinstance(attention, _Recurrent):
        return f"linear attention ({attention.kind}: a state in place of a cache)"
    if isinstance(attention, CompressedAttention):
        return "attention to pooled positions"
    if attention.top is not None:
        return "sparse attention (an indexer picks positions)"
    if (
        getattr(attention, "same_value", False)
        or attention.gate
        or (isinstance(attention, Attention) and attention.value_dim not in (None, attention.head_dim))
    ):
        return "attention with a gate, or with values of another width than keys"
    return ""
