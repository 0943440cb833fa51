"""Kinds of attention that no paper has: over pooled positions, and with a recurrent state in place of a cache.

They have the methods of the kinds in :mod:`inferlib.attention`, which may have an :class:`Indexer` too.
"""

from inferlib.attention import FLOP_PER_WEIGHT, AttentionKind, capped, triangle
from inferlib.equation import Record, quantity
from inferlib.ops import floor, minimum


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


class CompressedAttention(AttentionKind):
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

    unsupported = "attention to pooled positions"

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

    def cache_values(self):
        """Values of an entry."""
        return self.head_dim

    def entries(self, context):
        """Entries cached for ``context`` tokens, those of the window and the pooled ones, and keys of an indexer."""
        pooled = self._pooled(context)
        return minimum(context, self.window) + pooled, pooled

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

    @property
    def unpooled(self):
        """Values (and their weights) of one position that is not pooled yet."""
        return 0 if self.ratio is None else 2 * self._pooled_width() * self._streams()

    def context_flops(self, context):
        """FLOP of one layer for a new token that could see ``context`` positions, by part."""
        dot = FLOP_PER_WEIGHT * self.n_heads * self.head_dim * self._attended(context)
        scored = {}
        if self.indexer is not None:
            scored = {"indexer": self.indexer.flops() * self._pooled(context)}
        return {"scores": dot, "values": dot} | scored

    def prompt_flops(self, tokens, absorbed):
        """FLOP of one layer for a prompt, by part; a token sees half of the pooled vectors on average."""
        newest = capped(tokens, self.window)
        dot = FLOP_PER_WEIGHT * self.n_heads * self.head_dim
        scored = {}
        if self.ratio is not None:
            entries = triangle(tokens) / self.ratio
            cap = None if self.top is None else self.top * self.ratio
            newest = newest + (entries if cap is None else capped(tokens, cap) / self.ratio)
            if self.indexer is not None:
                scored = {"indexer": self.indexer.flops() * entries}
        return {"scores": dot * newest, "values": dot * newest} | scored


class _Recurrent(AttentionKind):
    """Base of layers that have a recurrent state of fixed size instead of a cache: one matrix per head.

    Every token passes over the matrices ``passes`` times, and over the window of a short convolution.
    """

    @property
    def unsupported(self):
        """The kind of linear attention, in words."""
        return f"linear attention ({self.kind}: a state in place of a cache)"

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

    def context_flops(self, context):
        """FLOP of one layer for a new token, by part; they do not depend on the context."""
        return {"state": self.state_flops() + 0 * context}

    def prompt_flops(self, tokens, absorbed):
        """FLOP of one layer for a prompt, by part, token by token (chunked kernels do somewhat more)."""
        return {"state": self.state_flops() * tokens}


class DeltaAttention(_Recurrent):
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


class StateSpace(_Recurrent):
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
