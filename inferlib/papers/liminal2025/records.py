"""The records of LIMINAL 2025: a chip, a model as sums over its operators, and what the paper assumes."""

from dataclasses import dataclass
from functools import cache, partial

from inferlib import catalog, validation
from inferlib.equation import Record, equation as equation_of, load_source, quantity
from inferlib.papers.source import load, needs, stated_quantity
from inferlib.system import NotDescribed
from inferlib.transformer import Experts, LatentAttention, Transformer, only
from inferlib.units import parse

STATED = load_source("liminal2025")
IDEAL = parse(STATED["collective"]["ideal"], "s")  # section 3's lower bound, for the studies of bandwidth
_collective = partial(stated_quantity, "liminal2025", "collective")
_power = partial(stated_quantity, "liminal2025", "power")


# --- Section 3: chips ------------------------------------------------------------------------------------


class XPU(Record):
    """One chip in the paper's terms."""

    flops: float = quantity("peak of the tensor engine of one chip", "FLOP/s")
    bandwidth: float = quantity("memory bandwidth of one chip", "B/s")
    capacity: float = quantity("memory of one chip", "B")
    scalar_flops: float = quantity("peak of the scalar engine of one chip", "FLOP/s", default=0.2e15)
    name: str = ""

    def __str__(self):
        return self.name


class Application(Record):
    """A model as sums over its layers. Made by :func:`load_model`.

    Weights and cache are counted in values, not bytes; a sum is zero if the model has no such part.

    Examples
    --------
    >>> parts = "expert cache pair_flops scores head_layers latent_layers dense_layers moe_layers"
    >>> none = load_model("Llama3-70B").replace(**dict.fromkeys(parts.split(), 0))
    >>> none.cache + none.scores
    0
    """

    layers: float = quantity("layers")
    resident: float = quantity("weights stored, without routed experts")
    loaded: float = quantity("weights every step loads")
    used: float = quantity("weights a token is multiplied with, without routed experts")
    expert: float = quantity("weights of one routed expert, of all layers together", zero=True)
    n_experts: float = quantity("routed experts of a layer")
    routed_share: float = quantity("chance that a token reaches a given expert: k of E", maximum=1)
    cache: float = quantity("values cached for a position that every layer keeps", zero=True)
    pair_flops: float = quantity("tensor FLOP of attention for a position", "FLOP", zero=True)
    scores: float = quantity("attention scores for a position", zero=True)
    head_layers: float = quantity("layers whose attention has key/value heads", zero=True)
    kv_heads: float = quantity("key/value heads of such a layer")
    latent_layers: float = quantity("layers with latent attention", zero=True)
    dense_layers: float = quantity("layers with a dense block", zero=True)
    moe_layers: float = quantity("layers with a mixture of experts", zero=True)
    window: float = quantity("positions that local layers see", default=1.0)
    local_cache: float = quantity("values cached for a position in the window", default=0.0)
    local_pair_flops: float = quantity("the same FLOP, of local layers", "FLOP", default=0.0)
    local_scores: float = quantity("the same scores, of local layers", default=0.0)
    name: str = ""

    def __str__(self):
        return self.name


_RECORDS = {"application": Application, "chip": XPU, "attention": LatentAttention}
equation = partial(equation_of, "liminal2025", records=_RECORDS)


def chips():
    """The names of the paper's chips, in the order of its Table 3."""
    return list(STATED["chips"])


def load_chip(chip, weights="fp8"):
    """A chip: one of :func:`chips`, or the catalogue's (by name, or an Accelerator).

    ``weights``: their format, in whose arithmetic an Accelerator computes.

    Examples
    --------
    >>> load_chip("HBM3").bandwidth / 2**40, load_chip("H100 SXM").name
    (4.0, 'H100 SXM')
    """

    return load("chip", chip, XPU, STATED["chips"], lambda one: _computing_at(one, weights))


def _computing_at(chip, weights):
    # a chip made of symbols, or given bytes instead of a format, computes in its own format
    own = chip.format == weights or not isinstance(weights, str)
    computing = chip if own else chip.at(weights)
    needs(chip, "memory_capacity")
    return XPU(computing.flops, chip.memory_bandwidth, chip.memory_capacity, name=chip.name)


# --- Sections 2.2 and 4.1: a model, operator by operator -------------------------------------------------


@dataclass(frozen=True)
class Operator:
    """One operator of ``layers`` equal layers; ``copies`` of it are stored, and a token uses ``active`` of them.

    ``cache`` values, ``pair_flops`` and ``scores`` are per position of the context, of which it sees at most
    ``window``. ``collective`` names the result on which the chips have to agree after it.
    """

    name: str
    layers: float
    weights: float = 0
    copies: float = 1
    active: float = 1
    read: bool = True
    cache: float = 0
    pair_flops: float = 0
    scores: float = 0
    window: float | None = None
    collective: str = ""


@equation()
def latent_weights(attention, d_model):
    """Weights of one layer of latent attention if its up-projections are multiplied out: what Table 4 needs.

    Queries go straight into the space of the latent and results straight out of it, so each head has a matrix from the
    query's latent to the cache's, and one from there to the output.
    """
    down = d_model * (attention.q_rank + attention.kv_rank + attention.rope_dim)
    each = attention.q_rank * (attention.rope_dim + attention.kv_rank) + attention.kv_rank * d_model
    return down + attention.n_heads * each


# Operators that the paper does not count: a simplification, and no error.
UNCOUNTED = ("norms", "biases", "expert biases", "head", "embedding")


class Assumptions(Record):
    """All assumptions of the paper; the default reproduces Tables 4 to 7.

    Most are not stated in the paper: the printed digits exclude the alternatives
    (``book.papers.liminal2025.ablation``).
    """

    weight_bytes: float = quantity("bytes of one weight", "B", default=1.0)
    cache_bytes: float = quantity("bytes of one value in the cache", "B", default=1.0)
    flop_per_weight: float = quantity("a multiply and an add", "FLOP", default=2.0)
    scalar_ops: float = quantity("scalar operations for each attention score", "FLOP", default=0.0)
    on_chip: float = _collective("on_chip", "s", "propagation on the chip", zero=True)
    switch: float = _collective("switch", "s", "latency of the switch", zero=True)
    payload: float = _collective("payload", "B", "bytes of one collective", zero=True)
    link: float = _collective("link", "B/s", "bandwidth of one link")
    radix: float = _collective("radix", "1", "ports of the switch")
    crossings: float = quantity("times the payload crosses a link: up and down", default=2.0)
    within_heads: float = quantity("collectives of attention up to a chip for each head", default=1.0)
    beyond_heads: float = quantity("collectives of attention on more chips", default=3.0)
    latent_collectives: float = quantity("collectives of latent attention", default=3.0)
    dense_collectives: float = quantity("collectives of a dense block", default=1.0)
    moe_collectives: float = quantity("collectives of a mixture of experts", default=2.0)
    # Not printed. Only the product of hops and stages is determined, by the SRAM columns of Table 7.
    t_stage: float = quantity("latency from one pipeline stage to the next", "s", default=1e-7, zero=True)
    free_stages: float = quantity("pipeline stages that cost no hop", default=1.0, zero=True)
    t_real: float = quantity("exposed time of one layer, measured (equation 8)", "s", default=None)
    power_per_mm2: float = _power("power_per_mm2", "W", "power of one square millimetre")
    die_area: float = _power("die_area", "1", "square millimetres of a chip")
    server_power: float = _power("server_power", "W", "power of one server without its chips")
    server_chips: float = _power("server_chips", "1", "chips of one server")
    # How the paper counts the operators of a model, found from its tables, which need all of this together.
    # The up-projections of latent attention are stored as products with their neighbours.
    multiplied_out: bool = True
    # The value product of latent attention runs over the rotary part of the cache too, which holds keys only.
    values_over_keys: bool = True
    # Shared experts are stored and multiplied with, but not part of the bytes loaded.
    shared_unread: bool = True
    # Every layer attends to the whole context: no windows, no chunks.
    whole_contexts: bool = True
    # Operators that are not counted; the routers of a mixture should be.
    left_out: tuple = ("router", *UNCOUNTED)

    @classmethod
    def corrected(cls):
        """The released architectures counted as they are; the system as in the paper."""
        errors = ("multiplied_out", "values_over_keys", "shared_unread", "whole_contexts")
        return cls(left_out=UNCOUNTED, **dict.fromkeys(errors, False))

    @classmethod
    def complete(cls):
        """:meth:`corrected`, with every weight that a token needs: head, norms, biases; embeddings stored."""
        return cls.corrected().replace(left_out=())

    @classmethod
    def fitted(cls, end="mean"):
        """The paper's equation 8: the exposed time of a layer as fitted to measurements on 8 x H100.

        ``end`` is ``"mean"``, or ``"low"`` or ``"high"`` of the printed range over five models.

        Examples
        --------
        >>> [round(Assumptions.fitted(end).t_real * 1e6) for end in ("low", "mean", "high")]
        [95, 114, 138]
        """
        exposed = STATED["exposed"]
        return cls(t_real=parse(exposed[validation.one_of("end", end, exposed)], "s"))


PRINTED = Assumptions()


def operators(model, assumptions=PRINTED):
    """The operators of a model (the paper's Figure 1), counted by the readings of ``assumptions``.

    One list for all groups of equal layers.
    """
    validation.instance("model", model, Transformer)
    if model.unusual:
        raise NotDescribed(f"the paper does not describe {model.unusual}, which {model.name} has")
    found = [op for group in model.layers for op in _operators_of(group, model.d_model, assumptions)]
    found.append(Operator("head", 1, model.vocab_size * model.d_model))
    if not model.tied:
        found.append(Operator("embedding", 1, model.vocab_size * model.d_model, active=0, read=False))
    return [op for op in found if op.name not in assumptions.left_out]


def _operators_of(group, d, assumptions):
    """The operators of a group of equal layers."""
    n = group.count
    attention = group.attention
    block = group.feed_forward
    matrices = attention.matrices(d)
    pairs = attention.pair_flops(absorbed=True)
    per_position = sum(pairs.values())
    latent = isinstance(attention, LatentAttention)
    if latent:
        if assumptions.values_over_keys:
            per_position = 2 * pairs["scores"]
        fused = assumptions.multiplied_out
        if fused and attention.q_rank is None:
            raise NotDescribed("there is no latent of queries to multiply out; use Assumptions.corrected()")
        yield Operator("projections", n, latent_weights(attention, d) if fused else sum(matrices.values()))
    else:
        yield Operator("query, key, value", n, sum(matrices[name] for name in ("query", "key", "value")))
    cache = attention.cache_values()
    heads = attention.n_heads
    waits = "latent" if latent else "head"
    yield Operator("attention", n, cache=cache, pair_flops=per_position, scores=heads,
                   window=None if assumptions.whole_contexts else attention.window, collective=waits)  # fmt: skip
    if not latent:
        yield Operator("output", n, matrices["output"])
    if isinstance(block, Experts):
        each = block.matrices * d
        yield Operator("experts", n, each * block.d_expert, block.n_experts, block.n_active, collective="moe")
        if block.biases:
            biases = block.vectors(d)["experts"] / block.n_experts
            yield Operator("expert biases", n, biases, block.n_experts, block.n_active)
        if block.d_shared:
            yield Operator("shared expert", n, each * block.d_shared, read=not assumptions.shared_unread)
        yield Operator("router", n, block.n_experts * d)
    else:
        yield Operator("feed-forward", n, sum(block.weights(d).values()), collective="dense")
        yield Operator("biases", n, sum(block.vectors(d).values()))
    yield Operator("norms", n, group.norms * d + attention.norms() + attention.vectors(d))


def load_model(model, assumptions=PRINTED):
    """A model as the equations see it: one of :func:`models`, or the catalogue's (by name, or a Transformer).

    All its mixtures of experts must be alike, and all its local layers must see the same window; else a
    ValueError.

    Examples
    --------
    >>> round(load_model("DeepSeekV3").loaded / 1e9, 1), load_model("Llama 3 70B").cache / 1024
    (37.7, 160.0)
    """
    if model in models():
        model = transformer(model)
    return load("model", model, Application, models(), lambda one: _summed(one, assumptions))


def _summed(model, assumptions):
    """The sums of the operators of a Transformer."""
    found = operators(model, assumptions)
    routed = [op for op in found if op.name in ("experts", "expert biases")]
    fixed = [op for op in found if op not in routed]
    local = [op for op in found if op.window is not None]
    shapes = {(op.copies, op.active) for op in routed}
    experts, active = only(model, "mixtures of experts", shapes, (1, 1))
    heads = {group.attention.n_kv_heads for group in model.layers if group.attention.kind != "MLA"}
    everywhere = [op for op in found if op.window is None]

    def total(ops, field):
        return sum(op.layers * getattr(op, field) for op in ops)

    def per_position(ops, prefix=""):
        return {prefix + field: total(ops, field) for field in ("cache", "pair_flops", "scores")}

    return Application(
        layers=model.n_layers,
        resident=total(fixed, "weights"),
        loaded=total([op for op in fixed if op.read], "weights"),
        used=total([op for op in fixed if op.active], "weights"),
        expert=total(routed, "weights"),
        n_experts=experts,
        routed_share=active / experts,
        window=only(model, "windows", {op.window for op in local}, 1),
        kv_heads=only(model, "key/value heads", heads, 1),
        name=model.name,
        **per_position(everywhere),
        **per_position(local, "local_"),
        **{
            f"{kind}_layers": sum(op.layers for op in found if op.collective == kind)
            for kind in ("head", "latent", "dense", "moe")
        },
    )


def models():
    """The names of the paper's models, in the order of its Table 4."""
    return list(STATED["models"])


@cache
def transformer(name):
    """The catalogue's model behind a name of the paper."""
    return catalog.load_model(STATED["models"][validation.one_of("model of the paper", name, models())])
