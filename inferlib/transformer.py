"""Transformer: the shape of a decoder, dense or mixture-of-experts, and what its shape costs.

A model is a few groups of equal layers between two embedding tables. Everything is counted as it is: every
matrix, bias, norm and router of the language model. A multiplication and an addition are two FLOP;
norms, rotary positions, softmax, biases and look-ups are not counted as arithmetic.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real

from inferlib import checks
from inferlib.equation import Record, quantity
from inferlib.ops import ceil, maximum, minimum
from inferlib.system import format_bytes

FLOP_PER_WEIGHT = 2  # a multiplication and an addition


def _at_most(record, name, limit):
    value, bound = getattr(record, name), getattr(record, limit)
    if isinstance(value, Real) and isinstance(bound, Real) and value > bound:
        kind = type(record).__name__
        raise ValueError(f"{kind}.{name} is {value}, but must be at most {limit}, {bound}")


@dataclass(frozen=True, eq=False)
class Attention(Record):
    """Attention whose cache holds one key and one value vector per key/value head: MHA, GQA, MQA.

    Head width is a field of its own: it is not d_model divided by the heads in every model. With a
    ``window`` a token sees only so many of the newest positions, itself included; ``chunked`` says that it
    sees those of its own chunk instead.
    """

    n_heads: float = quantity("1", "query heads")
    n_kv_heads: float = quantity("1", "key (and value) heads")
    head_dim: float = quantity("1", "width of one head")
    window: float = quantity("1", "positions a token sees, if not all", default=None)
    chunked: bool = False
    input_bias: bool = False
    output_bias: bool = False
    qk_norm: bool = False
    sinks: bool = False

    def __post_init__(self):
        super().__post_init__()
        _at_most(self, "n_kv_heads", "n_heads")

    @property
    def kind(self):
        """``"MHA"``, ``"GQA"`` or ``"MQA"``."""
        if self.n_kv_heads == self.n_heads:
            return "MHA"
        return "MQA" if self.n_kv_heads == 1 else "GQA"

    def matrices(self, d_model):
        """Weights of each projection of one layer, by name."""
        query, key = d_model * self.n_heads * self.head_dim, d_model * self.n_kv_heads * self.head_dim
        return {"query": query, "key": key, "value": key, "output": query}

    def vectors(self, d_model):
        """Biases and attention sinks of one layer."""
        into = (self.n_heads + 2 * self.n_kv_heads) * self.head_dim if self.input_bias else 0
        return into + (d_model if self.output_bias else 0) + (self.n_heads if self.sinks else 0)

    def norms(self):
        """Parameters of the norms inside: one weight vector for queries, one for keys."""
        return 2 * self.head_dim if self.qk_norm else 0

    def cache_values(self):
        """Values kept per position and layer: a key and a value for each key/value head."""
        return 2 * self.n_kv_heads * self.head_dim

    def pair_flops(self, absorbed):
        """FLOP of one layer for each pair of a query position and a key position, by part."""
        dot = FLOP_PER_WEIGHT * self.n_heads * self.head_dim
        return {"scores": dot, "values": dot}


@dataclass(frozen=True, eq=False)
class LatentAttention(Record):
    """Multi-head latent attention (MLA): the cache holds one latent and one rotary key for all heads.

    Expanded, keys and values are computed back from the latent. Absorbed, the up-projection is applied to
    the query and to the result instead, so that attention works on the latent itself.
    """

    n_heads: float = quantity("1", "heads")
    kv_rank: float = quantity("1", "width of the latent of keys and values")
    nope_dim: float = quantity("1", "width of a head's query and key without position")
    rope_dim: float = quantity("1", "width of the rotary part of queries, and of the shared rotary key")
    value_dim: float = quantity("1", "width of a head's value")
    q_rank: float = quantity("1", "width of the latent of queries, if they have one", default=None)
    window: float = quantity("1", "positions a token sees, if not all", default=None)
    chunked: bool = False

    kind = "MLA"

    def matrices(self, d_model):
        """Weights of each projection of one layer, by name."""
        queries = self.n_heads * (self.nope_dim + self.rope_dim)
        if self.q_rank is None:
            query = {"query": d_model * queries}
        else:
            query = {"query down": d_model * self.q_rank, "query up": self.q_rank * queries}
        return query | {
            "latent down": d_model * (self.kv_rank + self.rope_dim),
            "latent up": self._expansion(),
            "output": self.n_heads * self.value_dim * d_model,
        }

    def vectors(self, d_model):
        """Biases: none."""
        return 0

    def norms(self):
        """Parameters of the norms inside: one weight vector for each latent."""
        return self.kv_rank + (0 if self.q_rank is None else self.q_rank)

    def cache_values(self):
        """Values kept per position and layer: the latent and the rotary key, once for all heads."""
        return self.kv_rank + self.rope_dim

    def pair_flops(self, absorbed):
        """FLOP of one layer for each pair of a query position and a key position, by part."""
        if absorbed:
            key, value = self.kv_rank + self.rope_dim, self.kv_rank
        else:
            key, value = self.nope_dim + self.rope_dim, self.value_dim
        heads = FLOP_PER_WEIGHT * self.n_heads
        return {"scores": heads * key, "values": heads * value}

    def expansion_flops(self):
        """FLOP of one layer to compute keys and values of one position back from its latent."""
        return FLOP_PER_WEIGHT * self._expansion()

    def _expansion(self):
        return self.kv_rank * self.n_heads * (self.nope_dim + self.value_dim)


def attended(attention, context):
    """Positions that a new token sees of ``context``, itself included.

    A chunk is counted full: its last token sees all of it, the average one half.

    Examples
    --------
    >>> attended(Attention(64, 8, 64, window=128), 1000)
    128
    """
    return context if attention.window is None else minimum(context, attention.window)


def pairs(attention, tokens):
    """Pairs of a query and a key position in a prompt: each token sees itself and what came before it.

    Examples
    --------
    >>> pairs(Attention(64, 8, 64), 4), pairs(Attention(64, 8, 64, window=2), 4)
    (10.0, 7.0)
    """
    if attention.window is None:
        return _triangle(tokens)
    if attention.chunked:
        full = ceil(tokens / attention.window) - 1
        return full * _triangle(attention.window) + _triangle(tokens - full * attention.window)
    first = minimum(tokens, attention.window)
    return _triangle(first) + (tokens - first) * attention.window


def _triangle(n):
    return n * (n + 1) / 2


@dataclass(frozen=True, eq=False)
class FeedForward(Record):
    """A dense feed-forward block, gated (three matrices) or plain (two)."""

    d_ff: float = quantity("1", "width of the feed-forward block")
    matrices: float = quantity("1", "matrices of the feed-forward block: 3 gated, 2 plain", default=3)
    biases: bool = False

    def weights(self, d_model):
        """Weights of the matrices of one layer, by part."""
        return {"feed-forward": self.matrices * d_model * self.d_ff}

    def active_weights(self, d_model):
        """Weights of the matrices that one token is multiplied with, by part."""
        return self.weights(d_model)

    def touched_weights(self, d_model, batch):
        """Weights of the matrices that a batch is multiplied with, by part."""
        return self.weights(d_model)

    def vectors(self, d_model):
        """Biases of one layer, by part."""
        return {"feed-forward": _biases(self.matrices, self.d_ff, d_model)} if self.biases else {}


@dataclass(frozen=True, eq=False)
class Experts(Record):
    """A mixture of experts: each token goes to ``n_active`` of ``n_experts``, and to the shared expert."""

    n_experts: float = quantity("1", "routed experts")
    n_active: float = quantity("1", "routed experts a token goes to")
    d_expert: float = quantity("1", "width of one routed expert")
    d_shared: float = quantity("1", "width of all shared experts together", default=0, zero=True)
    matrices: float = quantity("1", "matrices of an expert: 3 gated, 2 plain", default=3)
    biases: bool = False
    router_bias: bool = False
    shared_gate: bool = False

    def __post_init__(self):
        super().__post_init__()
        _at_most(self, "n_active", "n_experts")

    def touched(self, batch):
        """Distinct routed experts that a batch is expected to reach, if all are equally likely.

        Parameters
        ----------
        batch : float, array, xarray.DataArray or sympy.Expr
            Tokens, each routed by itself.

        Examples
        --------
        >>> Experts(256, 8, 2048).touched(2)
        15.75
        """
        return self.n_experts * (1 - (1 - self.n_active / self.n_experts) ** batch)

    def weights(self, d_model):
        """Weights of the matrices of one layer, by part."""
        return self._weights(d_model, self.n_experts)

    def active_weights(self, d_model):
        """Weights of the matrices that one token is multiplied with, by part."""
        return self._weights(d_model, self.n_active)

    def touched_weights(self, d_model, batch):
        """Weights of the matrices that a batch is multiplied with, by part."""
        return self._weights(d_model, self.touched(batch))

    def _weights(self, d_model, n_experts):
        gate = d_model if self.shared_gate else 0
        return {
            "experts": n_experts * self.matrices * d_model * self.d_expert,
            "shared experts": self.matrices * d_model * self.d_shared,
            "router": self.n_experts * d_model + gate,
        }

    def vectors(self, d_model, n_experts=None):
        """Biases of one layer, by part; of all experts, or of so many."""
        n_experts = self.n_experts if n_experts is None else n_experts
        each = _biases(self.matrices, self.d_expert, d_model) if self.biases else 0
        return {"experts": n_experts * each, "router": self.n_experts if self.router_bias else 0}


def _biases(matrices, d_ff, d_model):
    return (matrices - 1) * d_ff + d_model


@dataclass(frozen=True, eq=False)
class Layers(Record):
    """A group of equal layers."""

    count: float = quantity("1", "layers of this kind")
    attention: Attention | LatentAttention = None
    feed_forward: FeedForward | Experts = None
    norms: float = quantity(
        "1", "vectors of width d_model in the norms of a layer: 2, or 4 with biases", default=2, zero=True
    )

    def __post_init__(self):
        super().__post_init__()
        for name, kinds in (("attention", (Attention, LatentAttention)), ("feed_forward", _BLOCKS)):
            if not isinstance(getattr(self, name), kinds):
                allowed = " or ".join(kind.__name__ for kind in kinds)
                raise TypeError(f"Layers.{name} is {getattr(self, name)!r}, but must be {allowed}")


_BLOCKS = (FeedForward, Experts)


@dataclass(frozen=True, eq=False)
class Transformer(Record):
    """A decoder-only transformer: groups of layers between an input embedding and an output head.

    Use :meth:`dense` for equal, dense layers and :func:`inferlib.load_model` for published models. ``notes``
    says what a configuration holds that is not counted here, such as a vision encoder.
    """

    d_model: float = quantity("1", "width of the residual stream")
    vocab_size: float = quantity("1", "entries of the vocabulary")
    layers: tuple = ()
    tied: bool = False
    positions: float = quantity("1", "learned positions", default=0, zero=True)
    final_norm: float = quantity("1", "vectors of width d_model in the last norm", default=1, zero=True)
    head_bias: bool = False
    name: str = ""
    sources: Mapping = field(default_factory=dict)
    notes: Mapping = field(default_factory=dict)

    def __post_init__(self):
        super().__post_init__()
        good = isinstance(self.layers, tuple) and all(isinstance(group, Layers) for group in self.layers)
        if not (good and self.layers):
            raise TypeError(
                f"Transformer.layers is {self.layers!r}, but must be a tuple of Layers, at least one"
            )

    @classmethod
    def dense(
        cls,
        n_layers,
        d_model,
        d_ff,
        n_heads,
        n_kv_heads,
        head_dim,
        vocab_size,
        *,
        ff_matrices=3,
        window=None,
        biases=False,
        norms=2,
        **other,
    ):
        """A transformer of equal, dense layers.

        Parameters
        ----------
        n_layers, d_model, d_ff, n_heads, n_kv_heads, head_dim, vocab_size : float or sympy.Expr
            Layers; widths of the residual stream and of the feed-forward block; query heads, key/value
            heads and their width; entries of the vocabulary.
        ff_matrices : float
            3 for a gated feed-forward block, 2 for a plain one.
        window : float, optional
            Positions a token sees, if not all.
        biases : bool
            Whether attention and feed-forward have biases.
        norms : float
            Vectors of width ``d_model`` in the norms of a layer.
        **other
            Further fields of :class:`Transformer`, such as ``tied``.

        Returns
        -------
        Transformer

        Examples
        --------
        >>> Transformer.dense(32, 4096, 14336, 32, 8, 128, 128256).n_params
        8030261248
        """
        attention = Attention(
            n_heads, n_kv_heads, head_dim, window=window, input_bias=biases, output_bias=biases
        )
        block = FeedForward(d_ff, ff_matrices, biases)
        return cls(d_model, vocab_size, (Layers(n_layers, attention, block, norms),), **other)

    # What equal layers share, so that a simple model reads like a flat record.

    @property
    def n_layers(self):
        """Layers of all groups."""
        return sum(group.count for group in self.layers)

    @property
    def d_ff(self):
        """Width of the dense feed-forward block, where all layers have the same."""
        return self._shared("feed_forward", "d_ff")

    @property
    def ff_matrices(self):
        """Matrices of the feed-forward block or expert: 3 gated, 2 plain."""
        return self._shared("feed_forward", "matrices")

    @property
    def n_heads(self):
        """Query heads, where all layers have the same number."""
        return self._shared("attention", "n_heads")

    @property
    def n_kv_heads(self):
        """Key/value heads, where all layers have the same number."""
        return self._shared("attention", "n_kv_heads")

    @property
    def head_dim(self):
        """Width of one head, where all layers have the same."""
        return self._shared("attention", "head_dim")

    @property
    def sparse(self):
        """Whether some layers are mixtures of experts."""
        return any(isinstance(group.feed_forward, Experts) for group in self.layers)

    def _shared(self, part, name):
        values = [getattr(getattr(group, part), name, None) for group in self.layers]
        if values[0] is None or any(value != values[0] for value in values):
            which = f" of {self.name}" if self.name else ""
            raise ValueError(f"the layers{which} have no common {name}: {values}; look at .layers")
        return values[0]

    # Parameters.

    def parameters(self, active=False):
        """Parameters by part.

        Parameters
        ----------
        active : bool
            Count only the routed experts that one token goes to. The embedding table stays whole, although
            a token reads one row of it; published active counts differ in whether they include it.

        Returns
        -------
        dict
            Among ``"attention"``, ``"feed-forward"``, ``"experts"``, ``"shared experts"``, ``"router"``,
            ``"norms"``, ``"embeddings"``, ``"positions"`` and ``"head"``, those the model has. Biases are
            counted with their matrices; a tied head is counted in the embeddings.

        Examples
        --------
        >>> from inferlib import load_model
        >>> load_model("Llama 3 70B").parameters()["attention"]
        12079595520
        """
        counted = _by_part(self._layer_parameters(group, active) for group in self.layers)
        counted["norms"] = counted.pop("norms") + self.final_norm * self.d_model
        counted["embeddings"] = self._table()
        counted["positions"] = self.positions * self.d_model
        counted["head"] = (0 if self.tied else self._table()) + (self.vocab_size if self.head_bias else 0)
        return _present(counted)

    @property
    def n_params(self):
        """All parameters."""
        return sum(self.parameters().values())

    @property
    def n_active(self):
        """Parameters with only the routed experts that one token goes to."""
        return sum(self.parameters(active=True).values())

    def _table(self):
        return self.vocab_size * self.d_model

    def _layer_parameters(self, group, active=False, batch=None):
        """Parameters of a group by part: of all experts, of one token's, or of those a batch touches."""
        d, block, attention = self.d_model, group.feed_forward, group.attention
        if isinstance(block, Experts):
            n = block.n_active if active else block.n_experts if batch is None else block.touched(batch)
            parts = [block._weights(d, n), block.vectors(d, n)]
        else:
            parts = [block.weights(d), block.vectors(d)]
        parts.append({"attention": sum(attention.matrices(d).values()) + attention.vectors(d)})
        parts.append({"norms": group.norms * d + attention.norms()})
        return {part: group.count * value for part, value in _by_part(parts).items()}

    # Arithmetic.

    def flops(self, context, absorbed=True):
        """FLOP to generate one token, by part.

        Parameters
        ----------
        context : float, array, xarray.DataArray or sympy.Expr
            Positions the token could see, itself included; a window caps them.
        absorbed : bool
            MLA only: attention on the latent itself, or on keys and values that are computed back from it
            for the whole context (then ``"expansion"`` is one more part).

        Returns
        -------
        dict
            ``"projections"``, ``"scores"`` and ``"values"`` of attention; ``"feed-forward"``, or
            ``"experts"``, ``"shared experts"`` and ``"router"``; ``"head"``.

        Raises
        ------
        ValueError
            If ``context`` is negative or not finite.

        Examples
        --------
        >>> from inferlib import load_model
        >>> parts = load_model("Llama 3 70B").flops(context=4096)
        >>> f"{sum(parts.values()) / 1e9:.1f} GFLOP, {parts['scores'] / 1e9:.1f} of them for scores"
        '149.7 GFLOP, 5.4 of them for scores'
        """
        checks.number("context", context, zero=True)
        counted = _by_part(self._token_flops(group, 1) for group in self.layers)
        for group in self.layers:
            seen = attended(group.attention, context)
            parts = {part: group.count * f * seen for part, f in group.attention.pair_flops(absorbed).items()}
            if not absorbed and isinstance(group.attention, LatentAttention):
                # the new position is expanded by its projections already
                parts["expansion"] = group.count * group.attention.expansion_flops() * maximum(seen - 1, 0)
            counted = _by_part([counted, parts])
        counted["head"] = FLOP_PER_WEIGHT * self._table()
        return _present(counted)

    def prefill_flops(self, tokens, logits=1, absorbed=False):
        """FLOP to read a prompt, by part; of the pairs of positions only the causal half is counted.

        Parameters
        ----------
        tokens : float, array, xarray.DataArray or sympy.Expr
            Length of the prompt; nothing of it is in the cache yet.
        logits : float
            Positions for which the head is computed: generation needs the last one only.
        absorbed : bool
            MLA only, as in :meth:`flops`. Prompts are usually read with keys and values expanded.

        Returns
        -------
        dict
            The parts of :meth:`flops`.

        Raises
        ------
        ValueError
            If ``tokens`` or ``logits`` is negative or not finite.

        Examples
        --------
        >>> from inferlib import load_model
        >>> f"{sum(load_model('Llama 3 70B').prefill_flops(4096).values()) / 1e12:.1f} TFLOP"
        '582.7 TFLOP'
        """
        checks.number("tokens", tokens, zero=True)
        checks.number("logits", logits, zero=True)
        counted = _by_part(self._token_flops(group, tokens) for group in self.layers)
        for group in self.layers:
            seen = pairs(group.attention, tokens)
            parts = {part: group.count * f * seen for part, f in group.attention.pair_flops(absorbed).items()}
            counted = _by_part([counted, parts])
        counted["head"] = FLOP_PER_WEIGHT * self._table() * logits
        return _present(counted)

    def _token_flops(self, group, tokens):
        """FLOP of a group that do not depend on the context: two for each weight a token meets."""
        weights = {"projections": sum(group.attention.matrices(self.d_model).values())}
        weights |= group.feed_forward.active_weights(self.d_model)
        return {part: FLOP_PER_WEIGHT * group.count * n * tokens for part, n in weights.items()}

    # Bytes.

    def cache_values(self, context=1):
        """Values in the cache of one sequence of ``context`` tokens; windows cap what a layer keeps.

        Examples
        --------
        >>> from inferlib import load_model
        >>> load_model("Llama 3 70B").cache_values(), load_model("DeepSeek V3").cache_values()
        (163840, 35136)
        """
        checks.number("context", context, zero=True)
        return sum(
            group.count * group.attention.cache_values() * attended(group.attention, context)
            for group in self.layers
        )

    def cache_bytes(self, context=1, format="bf16"):
        """Bytes of the cache of one sequence of ``context`` tokens; ``format`` is a name or bytes per value.

        Examples
        --------
        >>> from inferlib import load_model
        >>> load_model("Llama 3 70B").cache_bytes() / 1024
        320.0
        """
        return self.cache_values(context) * format_bytes(format)

    def weight_bytes(self, format="bf16", keep=None):
        """Bytes of all parameters, by part.

        Parameters
        ----------
        format : str or float
            Number format, or bytes per value where scales add to it (MXFP4: ``4.25 / 8``).
        keep : dict, optional
            Parts that have another format, such as ``{"embeddings": "bf16", "head": "bf16"}``.

        Returns
        -------
        dict

        Raises
        ------
        LookupError
            If a format or part is unknown.

        Examples
        --------
        >>> from inferlib import load_model
        >>> sum(load_model("Llama 3 70B").weight_bytes("fp8").values()) / 1e9
        70.553706496
        """
        return _in_bytes(self.parameters(), format, keep)

    def bytes_read(self, batch, context, weights="bf16", cache="bf16", keep=None):
        """Bytes read to generate one token for each sequence of a batch, by part.

        Every weight that is used is read once: of the routed experts those that the batch is expected to
        touch under uniform routing, and neither input embedding nor learned positions, of which a step needs
        a few rows. Activations and the writing of new cache entries are left out.

        Parameters
        ----------
        batch, context : float, array, xarray.DataArray or sympy.Expr
            Sequences decoded together, and positions each new token could see, itself included.
        weights, cache : str or float
            Number formats, or bytes per value.
        keep : dict, optional
            Parts of the weights in another format, as in :meth:`weight_bytes`.

        Returns
        -------
        dict
            The parts of :meth:`parameters` that are read, and ``"cache"``.

        Raises
        ------
        ValueError
            If ``batch`` is not positive, or ``context`` negative.

        Examples
        --------
        >>> from inferlib import load_model
        >>> read = load_model("DeepSeek V3").bytes_read(batch=32, context=4096, weights="fp8")
        >>> f"{sum(read.values()) / 1e9:.0f} GB, {read['cache'] / 1e9:.1f} of them cache"
        '443 GB, 9.2 of them cache'
        """
        checks.number("batch", batch)
        counted = _by_part(self._layer_parameters(group, batch=batch) for group in self.layers)
        counted["norms"] = counted.pop("norms") + self.final_norm * self.d_model
        counted["head"] = self._table() + (self.vocab_size if self.head_bias else 0)
        read = _in_bytes(_present(counted), weights, keep)
        return read | {"cache": batch * self.cache_bytes(context, cache)}


PARTS = (
    "attention",
    "feed-forward",
    "experts",
    "shared experts",
    "router",
    "norms",
    "embeddings",
    "positions",
    "head",
)


def _by_part(tables):
    """Sum of several tables, part by part."""
    total = {}
    for table in tables:
        for part, value in table.items():
            total[part] = total[part] + value if part in total else value
    return total


def _present(counted):
    """The parts a model has: those that are not simply the number 0."""
    return {part: value for part, value in counted.items() if not (isinstance(value, int) and value == 0)}


def _in_bytes(counted, format, keep):
    formats = {checks.one_of("part", part, PARTS): kept for part, kept in (keep or {}).items()}
    return {part: n * format_bytes(formats.get(part, format)) for part, n in counted.items()}
