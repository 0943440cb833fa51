"""Transformer: the shape of a decoder, dense or mixture of experts, and its parameters, FLOP and bytes.

A model is a few groups of equal layers between two embedding tables. Every matrix, bias, norm and router of the
language model is counted. A multiply-add counts as two FLOP; norms, rotary positions, softmax, biases, decays
and look-ups are not counted as arithmetic.
"""

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property

from inferlib import validation
from inferlib.attention import (  # noqa: F401  re-exported
    FLOP_PER_WEIGHT,
    Attention,
    AttentionKind,
    LatentAttention,
    at_most,
    causal_pairs,
    nonzero_parts,
    unsupported_features,
    visible_context,
)
from inferlib.equation import Record, quantity, stated_sources
from inferlib.system import NotDescribed, format_bytes


class FeedForward(Record):
    """A dense feed-forward block, gated (three matrices) or plain (two)."""

    d_ff: float = quantity("width of the feed-forward block")
    matrices: float = quantity("matrices of the feed-forward block: 3 gated, 2 plain", default=3)
    biases: bool = False

    def weights(self, d_model, **reached):
        """Weights of the matrices of one layer, by part; ``reached`` matters for experts only."""
        return {"feed-forward": self.matrices * d_model * self.d_ff}

    def vectors(self, d_model, **reached):
        """Biases of one layer, by part."""
        return {"feed-forward": _biases(self.matrices, self.d_ff, d_model)} if self.biases else {}


class Experts(Record):
    """A mixture of experts: each token goes to ``n_active`` of ``n_experts``, and to the shared expert.

    With ``d_latent`` the routed experts work in a narrower latent space, with one down- and one up-projection for
    all of them.
    """

    n_experts: float = quantity("routed experts")
    n_active: float = quantity("routed experts a token goes to")
    d_expert: float = quantity("width of one routed expert")
    d_shared: float = quantity("width of all shared experts together", default=0)
    matrices: float = quantity("matrices of an expert: 3 gated, 2 plain", default=3)
    biases: bool = False
    router_bias: bool = False
    shared_gate: bool = False
    d_latent: float = quantity("width of the stream of routed experts, if narrower", default=None)
    router_vectors: float = quantity("further parameters of the router", default=0)

    def __post_init__(self):
        super().__post_init__()
        at_most(self, "n_active", "n_experts")

    def touched(self, batch):
        """Expected number of distinct routed experts that a batch reaches, if all are equally likely.

        Examples
        --------
        >>> Experts(256, 8, 2048).touched(2), Experts(256, 8, 2048).touched(0)
        (15.75, 0.0)
        """
        batch = validation.number("batch", batch, zero=True)
        return self.n_experts * (1 - (1 - self.n_active / self.n_experts) ** batch)

    def reached(self, active=False, batch=None):
        """Number of routed experts: all, those of one ``active`` token, or those that a batch is expected to reach."""
        if active:
            return self.n_active
        return self.n_experts if batch is None else self.touched(batch)

    def weights(self, d_model, **reached):
        """Weights of the matrices of one layer, by part: of all experts, or of those :meth:`reached`."""
        gate = d_model if self.shared_gate else 0
        stream = d_model if self.d_latent is None else self.d_latent
        narrowing = {} if self.d_latent is None else {"latent": 2 * d_model * self.d_latent}
        return {
            "experts": self.reached(**reached) * self.matrices * stream * self.d_expert,
            "shared experts": self.matrices * d_model * self.d_shared,
            "router": self.n_experts * d_model + gate,
        } | narrowing

    def vectors(self, d_model, **reached):
        """Biases of one layer, by part."""
        each = _biases(self.matrices, self.d_expert, d_model) if self.biases else 0
        bias = self.n_experts if self.router_bias else 0
        return {"experts": self.reached(**reached) * each, "router": bias + self.router_vectors}


def _biases(matrices, d_ff, d_model):
    return (matrices - 1) * d_ff + d_model


class Layers(Record):
    """A group of equal layers: attention, then a feed-forward block; either may be None.

    Examples
    --------
    A layer without norms has only what it multiplies:

    >>> block = Layers(1, None, FeedForward(16), norms=0)
    >>> Transformer(8, 10, (block,), tied=True, final_norm=0).n_params == 8 * (10 + 3 * 16)
    True
    """

    count: float = quantity("layers of this kind")
    attention: AttentionKind | None  # type: ignore[misc]
    feed_forward: FeedForward | Experts | None  # type: ignore[misc]
    norms: float = quantity(
        "vectors of width d_model in the norms of a layer: 2, or 4 with biases", default=2, zero=True
    )
    connections: float = quantity("weights that mix copies or past values of the residual stream", default=0)

    def __post_init__(self):
        super().__post_init__()
        validation.instance("Layers.attention", self.attention, AttentionKind | None)
        validation.instance("Layers.feed_forward", self.feed_forward, FeedForward | Experts | None)
        if self.attention is None and self.feed_forward is None:
            raise TypeError("Layers need an attention or a feed_forward")


class Transformer(Record):
    """A decoder-only transformer: groups of layers between an input embedding and an output head.

    :func:`inferlib.load_model` has published models. ``notes``: parts of a configuration that are not counted here,
    such as a vision encoder. ``formats``: bytes per value in which a checkpoint stores each part, scales included (the
    cache too, if stated).

    Examples
    --------
    >>> Transformer(4096, 128256, (Layers(32, Attention(32, 8, 128), FeedForward(14336)),)).n_params
    8030261248

    Zero rows of the head: it has none, and the embedding remains.

    >>> small = Transformer(8, 10, (Layers(1, None, FeedForward(16)),))
    >>> small.n_params - small.replace(outputs=0).n_params
    80
    """

    d_model: float = quantity("width of the residual stream")
    vocab_size: float = quantity("entries of the vocabulary")
    layers: tuple = ()
    tied: bool = False
    positions: float = quantity("learned positions", default=0)
    final_norm: float = quantity("vectors of width d_model in the last norm", default=1, zero=True)
    head_bias: bool = False
    outputs: float = quantity(
        "rows of the head, if not one for each entry of the vocabulary; 0: no head", default=None, zero=True
    )
    connections: float = quantity(
        "weights that mix copies or past values of the residual stream at the end", default=0
    )
    max_context: float = quantity("positions its configuration allows", default=None)
    name: str = ""
    sources: Mapping = stated_sources()
    notes: Mapping = field(default_factory=dict, compare=False)
    formats: Mapping = field(default_factory=dict)

    def __post_init__(self):
        super().__post_init__()
        good = isinstance(self.layers, tuple) and all(isinstance(group, Layers) for group in self.layers)
        if not good or not self.layers:
            raise TypeError(
                f"Transformer.layers is {self.layers!r}, but must be a tuple of Layers, at least one"
            )

    @property
    def n_layers(self):
        """Layers of all groups."""
        return sum(group.count for group in self.layers)

    @cached_property
    def sparse(self):
        """Whether some layers are mixtures of experts."""
        return any(isinstance(group.feed_forward, Experts) for group in self.layers)

    @property
    def unusual(self):
        """Name what a source for plain and latent attention cannot describe; ``""`` if nothing.

        Examples
        --------
        >>> from inferlib import load_model
        >>> load_model("Llama 3 70B").unusual
        ''
        """
        found = [unsupported_features(group.attention) for group in self.layers]
        if any(group.feed_forward is None for group in self.layers):
            found.append("layers without a feed-forward block")
        if any(getattr(group.feed_forward, "d_latent", None) is not None for group in self.layers):
            found.append("experts on a narrower stream")
        if any(_connections(group) for group in self.layers):
            found.append("mixed residual streams")
        if self.outputs is not None:
            found.append("no head over the vocabulary")
        return ", ".join(dict.fromkeys(filter(None, found)))

    # --- Parameters

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
            Among ``"attention"``, ``"feed-forward"``, ``"experts"``, ``"shared experts"``, ``"latent"`` (into
            and out of a narrower stream of experts), ``"router"``, ``"connections"`` (between residual
            streams), ``"norms"``, ``"embeddings"``, ``"positions"`` and ``"head"``, those the model has.
            Biases are counted with their matrices; a tied head is counted in the embeddings.

        Examples
        --------
        >>> from inferlib import load_model
        >>> load_model("Llama 3 70B").parameters()["attention"]
        12079595520
        """
        return dict(self._parts[active])

    @cached_property
    def _parts(self):
        """Parameters by part: all, and the active ones."""
        own = not self.tied or self.outputs is not None
        head = self._head() if own else self.vocab_size if self.head_bias else 0
        tables = {"embeddings": self.vocab_size * self.d_model, "positions": self.positions * self.d_model}
        return [self._counted(tables | {"head": head}, active=active) for active in (False, True)]

    def _counted(self, beside, **which):
        """Parameters by part: those of the layers, and those outside of them (``beside``)."""
        counted = _by_part(self._layer_parameters(group, **which) for group in self.layers) | beside
        counted["norms"] = counted["norms"] + self.final_norm * self.d_model
        counted["connections"] = counted.get("connections", 0) + self.connections
        return nonzero_parts({part: counted[part] for part in PARTS if part in counted})

    @property
    def n_params(self):
        """All parameters."""
        return sum(self.parameters().values())

    @property
    def n_active(self):
        """Parameters with only the routed experts that one token goes to."""
        return sum(self.parameters(active=True).values())

    def _head(self):
        """Parameters of the head."""
        return self._rows() * self.d_model + (self._rows() if self.head_bias else 0)

    def _rows(self):
        """Rows of the head."""
        return self.vocab_size if self.outputs is None else self.outputs

    def _layer_parameters(self, group, **reached):
        """Parameters of a group by part, with all experts or with those :meth:`Experts.reached`."""
        d = self.d_model
        block = group.feed_forward
        attention = group.attention
        parts = []
        if block is not None:
            parts = [block.weights(d, **reached), block.vectors(d, **reached)]
        norms = group.norms * d
        if attention is not None:
            parts.append({"attention": sum(attention.matrices(d).values()) + attention.vectors(d)})
            norms = norms + attention.norms()
        parts += [{"norms": norms}, _connections(group)]
        return {part: group.count * value for part, value in _by_part(parts).items()}

    # --- Arithmetic

    def flops(self, context):
        """FLOP to generate one token, by part; latent attention works on the latent itself.

        Parameters
        ----------
        context : float, array, xarray.DataArray or sympy.Expr
            Positions the token could see, itself included; a window caps them.

        Returns
        -------
        dict
            ``"projections"``, ``"scores"`` and ``"values"`` of attention, ``"indexer"`` (choosing positions),
            ``"state"`` (of linear attention); ``"feed-forward"``, or ``"experts"``, ``"shared experts"`` and
            ``"router"``; ``"head"``.

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
        >>> load_model("Llama 3 70B").flops(context=0).get("scores", 0)
        0
        """
        context = validation.number("context", context, zero=True)
        return self._flops(1, 1, lambda attention: attention.context_flops(context))

    def prefill_flops(self, tokens, logits=1, absorbed=False):
        """FLOP to prefill a prompt, by part; only the causal half of the pairs of positions is counted.

        Examples
        --------
        >>> from inferlib import load_model
        >>> f"{sum(load_model('Llama 3 70B').prefill_flops(4096).values()) / 1e12:.1f} TFLOP"
        '582.7 TFLOP'

        No tokens and no logits take no FLOP:

        >>> sum(load_model("Llama 3 70B").prefill_flops(0, logits=0).values())
        0.0
        """
        tokens = validation.number("tokens", tokens, zero=True)
        logits = validation.number("logits", logits, zero=True)
        return self._flops(tokens, logits, lambda attention: attention.prompt_flops(tokens, absorbed))

    def _flops(self, tokens, logits, attending):
        """FLOP by part: every matrix for each token, the head for each of the logits, and attention."""
        counted = [self._token_flops(group, tokens) for group in self.layers]
        for n, attention in self.attentions:
            counted.append({part: n * flops for part, flops in attending(attention).items()})
        total = _by_part(counted)
        total["connections"] = total.get("connections", 0) + FLOP_PER_WEIGHT * self.connections * tokens
        return nonzero_parts(total | {"head": FLOP_PER_WEIGHT * self._rows() * self.d_model * logits})

    @cached_property
    def attentions(self):
        """Pairs of a number of layers and their attention, for groups that have one."""
        return [(group.count, group.attention) for group in self.layers if group.attention is not None]

    def _token_flops(self, group, tokens):
        """FLOP of a group that do not depend on the context: two for each weight that a token uses."""
        weights = _connections(group)
        if group.attention is not None:
            weights["projections"] = sum(group.attention.matrices(self.d_model).values())
        if group.feed_forward is not None:
            weights |= group.feed_forward.weights(self.d_model, active=True)
        return {part: FLOP_PER_WEIGHT * group.count * n * tokens for part, n in weights.items()}

    # --- Bytes

    def cache_values(self, context=1):
        """Values in the cache of one sequence of ``context`` tokens; windows cap what a layer keeps.

        Recurrent states are not included: see :meth:`state_values`.

        Examples
        --------
        >>> from inferlib import load_model
        >>> load_model("Llama 3 70B").cache_values(), load_model("DeepSeek V3").cache_values()
        (163840, 35136)
        >>> load_model("Llama 3 70B").cache_values(0)
        0
        """
        context = validation.number("context", context, zero=True)
        return sum(n * attention.kept(context) for n, attention in self.attentions)

    def state_values(self):
        """Values per sequence that do not grow with its context: recurrent states, and tokens not yet pooled."""
        return _by_part({what: n * v for what, v in a.state().items()} for n, a in self.attentions)

    def state_bytes(self):
        """Bytes per sequence that do not grow with its context; states and tokens not yet pooled have 32 bits."""
        formats = {"state": "fp32", "waiting": "fp32", "convolution": "bf16"}
        return sum(n * format_bytes(formats[what]) for what, n in self.state_values().items())

    def cache_bytes(self, context=1, format="bf16"):
        """Bytes of the cache of one sequence of ``context`` tokens; ``format`` is a name or bytes per value.

        Recurrent states are not included: see :meth:`state_bytes`.

        Examples
        --------
        >>> from inferlib import load_model
        >>> load_model("Llama 3 70B").cache_bytes() / 1024
        320.0
        """
        return self.cache_values(context) * self._format("cache", format)

    def weight_bytes(self, format="bf16"):
        """Bytes of all parameters, by part.

        Examples
        --------
        >>> from inferlib import load_model
        >>> sum(load_model("Llama 3 70B").weight_bytes("fp8").values()) / 1e9
        70.553706496
        """
        return self._in_bytes(self.parameters(), format)

    def bytes_read(self, batch, context, weights="bf16", cache="bf16"):
        """Bytes read to generate one token for each sequence of a batch, by part.

        Every weight that is used is read once: the routed experts that the batch is expected to reach under uniform
        routing, but neither input embedding nor learned positions, of which a step reads a few rows. Of the cache, only
        visible positions are read (in the window, or picked by the indexer) and the indexer's keys. Activations,
        and writing of cache entries and states, are left out.

        Parameters
        ----------
        batch, context : float, array, xarray.DataArray or sympy.Expr
            Sequences decoded together, and positions each new token could see, itself included.
        weights, cache : str or float
            Number formats, or bytes per value, or ``"published"`` as in :meth:`weight_bytes`.

        Returns
        -------
        dict
            The parts of :meth:`parameters` that are read, ``"cache"``, and ``"state"`` where there is one.

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
        >>> load_model("DeepSeek V3").bytes_read(batch=1, context=0)["cache"]
        0.0
        """
        batch = validation.number("batch", batch)
        context = validation.number("context", context, zero=True)
        read = self._in_bytes(self._counted({"head": self._head()}, batch=batch), weights)
        seen = sum(n * attention.read(context) for n, attention in self.attentions)
        read["cache"] = batch * seen * self._format("cache", cache)
        return read | ({"state": batch * self.state_bytes()} if self.state_values() else {})

    def _in_bytes(self, counted, format):
        tied_head = {"head": "embeddings"} if self.tied and self.outputs is None else {}
        return {part: n * self._format(tied_head.get(part, part), format) for part, n in counted.items()}

    def _format(self, part, format):
        """Bytes per value of a part, in a format or as published."""
        if not (isinstance(format, str) and format == "published"):
            return format_bytes(format)
        if part not in self.formats:
            why = self.notes.get("formats", "its configuration states none")
            raise ValueError(f"no published format of {part} of {self.name or 'this model'}: {why}")
        return self.formats[part]


def only(model, what, values, default):
    """Return the one of a set of ``values`` (default: of none); NotDescribed if a model has several."""
    if len(values) > 1:
        name = model.name or "this model"
        raise NotDescribed(f"{name} has layers with different {what}: {sorted(values)}")
    return next(iter(values), default)


PARTS = (
    "attention", "feed-forward", "experts", "shared experts", "latent", "router",
    "connections", "norms", "embeddings", "positions", "head",
)  # fmt: skip


def _by_part(tables):
    """Add several tables, part by part."""
    total = {}
    for table in tables:
        for part, value in table.items():
            total[part] = total[part] + value if part in total else value
    return total


def _connections(group):
    """Parameters that mix the residual streams of a layer, as a part of it."""
    return nonzero_parts({"connections": group.connections})
