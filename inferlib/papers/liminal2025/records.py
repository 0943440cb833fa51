"""LIMINAL 2025: the paper's chips, its assumptions, and a model as its equations see it."""

import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib.resources import files
from numbers import Real

import inferlib.equation
from inferlib import checks
from inferlib.catalog import load_model
from inferlib.equation import Record, quantity
from inferlib.transformer import Experts, LatentAttention, Transformer
from inferlib.units import factor, parse

equation = partial(inferlib.equation.equation, "liminal2025")


@lru_cache(maxsize=1)
def stated():
    """The paper's ``assumptions.toml`` as it is written: units as text."""
    return tomllib.loads((files("inferlib.papers.liminal2025") / "assumptions.toml").read_text("utf-8"))


def _collective(name, unit):
    return parse(stated()["collective"][name], unit)


def _power(name, unit):
    return parse(stated()["power"][name], unit)


@dataclass(frozen=True, eq=False)
class Assumptions(Record):
    """Everything the paper assumes; the default reproduces Tables 4 to 7.

    Most of it is not in the paper: the printed digits exclude the alternatives (see ``ablation``). The
    switches decide how a model is counted.

    - ``fused_latent``: matrices of latent attention are multiplied out and stored as products.
    - ``wide_values``: the value product of latent attention runs over the rotary part of the cache too.
    - ``read_shared``: weights of shared experts are part of the bytes loaded.
    - ``local_attention``: windows and chunks of the released models limit what a layer sees.
    - ``router``, ``vectors``, ``head``, ``embeddings``: routers, norms and biases, the output head, and the
      input embedding (which is stored but not read) are counted.
    - ``distinct_flops``: equation 6 as printed, one evaluation for each expert reached.
    - ``replacement``: a token may draw the same expert twice.
    - ``stage_per_layer``: the SRAM system gives each layer a stage of its own.

    Examples
    --------
    >>> Assumptions().read_shared, Assumptions.corrected().read_shared
    (False, True)
    """

    weight_bytes: float = quantity("B", "bytes of one weight", default=1.0)
    cache_bytes: float = quantity("B", "bytes of one value in the cache", default=1.0)
    flop_per_weight: float = quantity("FLOP", "a multiply and an add", default=2.0)
    gb: float = quantity("B", "what the paper's GB counts", default=factor("GiB"))
    tb_per_s: float = quantity("B/s", "what the paper's TB/s counts", default=factor("TiB/s"))
    kilotoken: float = quantity("1", "what the paper's K counts in contexts", default=1024.0)
    pflops: float = quantity("FLOP/s", "what the paper's PFLOPS counts", default=factor("PFLOP/s"))
    scalar_ops: float = quantity("FLOP", "scalar operations for each attention score", default=0.0, zero=True)
    on_chip: float = quantity("s", "propagation on the chip", default=_collective("on_chip", "s"), zero=True)
    switch: float = quantity("s", "latency of the switch", default=_collective("switch", "s"), zero=True)
    payload: float = quantity("B", "bytes of one collective", default=_collective("payload", "B"), zero=True)
    link: float = quantity("B/s", "bandwidth of one link", default=_collective("link", "B/s"))
    radix: float = quantity("1", "ports of the switch", default=_collective("radix", "1"))
    crossings: float = quantity("1", "times the payload crosses a link: up and down", default=2.0)
    within_heads: float = quantity(
        "1", "collectives of attention while there is a head for each chip", default=1.0
    )
    beyond_heads: float = quantity("1", "collectives of attention on more chips", default=3.0)
    latent_collectives: float = quantity("1", "collectives of latent attention", default=3.0)
    dense_collectives: float = quantity("1", "collectives of a dense block", default=1.0)
    moe_collectives: float = quantity("1", "collectives of a mixture of experts", default=2.0)
    t_stage: float = quantity(
        "s", "latency from one pipeline stage to the next", default=factor("ns") * 100, zero=True
    )
    free_stages: float = quantity("1", "pipeline stages that cost no hop", default=1.0, zero=True)
    t_real: float = quantity("s", "exposed time of one layer, measured (equation 8)", default=None)
    power_per_mm2: float = quantity(
        "W", "power of one square millimetre", default=_power("power_per_mm2", "W")
    )
    die_area: float = quantity("1", "square millimetres of a chip", default=_power("die_area", "1"))
    server_power: float = quantity(
        "W", "power of one server but for its chips", default=_power("server_power", "W")
    )
    server_chips: float = quantity("1", "chips of one server", default=_power("server_chips", "1"))
    batch_limit: float = quantity("1", "largest batch looked at, if there is one", default=None)
    fused_latent: bool = True
    wide_values: bool = True
    read_shared: bool = False
    local_attention: bool = False
    router: bool = False
    vectors: bool = False
    head: bool = False
    embeddings: bool = False
    distinct_flops: bool = False
    replacement: bool = False
    stage_per_layer: bool = True

    @classmethod
    def corrected(cls):
        """The released architectures counted as they are; the system as in the paper.

        Low-rank latent attention, values over the latent alone, shared experts read, local attention local,
        routers counted.
        """
        return cls(fused_latent=False, wide_values=False, read_shared=True, local_attention=True, router=True)

    @classmethod
    def complete(cls):
        """:meth:`corrected`, with every weight that a token needs: head, norms, biases; embeddings stored."""
        return cls.corrected().replace(head=True, vectors=True, embeddings=True)

    @classmethod
    def fitted(cls):
        """The paper's equation 8: the exposed time of a layer as fitted to measurements on 8 x H100."""
        return cls(t_real=parse(stated()["validation"]["exposed"], "s"))


PRINTED = Assumptions()
IDEAL = _collective("ideal", "s")


@dataclass(frozen=True, eq=False)
class XPU(Record):
    """One chip as the paper sees it."""

    flops: float = quantity("FLOP/s", "peak of the tensor engine of one chip")
    bandwidth: float = quantity("B/s", "memory bandwidth of one chip")
    capacity: float = quantity("B", "memory of one chip")
    scalar_flops: float = quantity("FLOP/s", "peak of the scalar engine of one chip", default=0.2e15)
    name: str = ""

    def __str__(self):
        return self.name


def xpus():
    """The names of the paper's chips, in the order of its Table 3.

    Examples
    --------
    >>> xpus()
    ['HBM3', 'HBM4', '3D-DRAM', 'SRAM']
    """
    return list(stated()["chips"])


def xpu(name, assumptions=PRINTED):
    """A chip of Table 3.

    Parameters
    ----------
    name : str
        One of :func:`xpus`.
    assumptions : Assumptions
        What GB, TB/s and PFLOPS count.

    Returns
    -------
    XPU

    Raises
    ------
    LookupError
        If there is no such chip; near names are suggested.

    Examples
    --------
    >>> xpu("HBM3").bandwidth / 2**40
    4.0
    """
    entry = stated()["chips"][checks.one_of("chip of the paper", name, xpus())]
    return XPU(
        flops=entry["compute"] * assumptions.pflops,
        bandwidth=entry["bandwidth"] * assumptions.tb_per_s,
        capacity=entry["capacity"] * assumptions.gb,
        scalar_flops=entry["scalar"] * assumptions.pflops,
        name=name,
    )


@dataclass(frozen=True, eq=False)
class Application(Record):
    """A model as the equations see it: sums over its layers. Made by :func:`application`.

    Weights and cache are counted in values, not bytes; what is zero the model does not have.
    """

    layers: float = quantity("1", "layers")
    resident: float = quantity("1", "weights stored, but for routed experts")
    loaded: float = quantity("1", "weights every step loads")
    used: float = quantity("1", "weights a token is multiplied with, but for routed experts")
    expert: float = quantity("1", "weights of one routed expert, of all layers together", zero=True)
    n_experts: float = quantity("1", "routed experts of a layer")
    routed_share: float = quantity("1", "chance that a token reaches a given expert: k of E", maximum=1)
    cache: float = quantity("1", "values cached for a position that every layer keeps", zero=True)
    pair_flops: float = quantity("FLOP", "tensor FLOP of attention for a position", zero=True)
    scores: float = quantity("1", "attention scores for a position", zero=True)
    head_layers: float = quantity("1", "layers whose attention has key/value heads", zero=True)
    kv_heads: float = quantity("1", "key/value heads of such a layer")
    latent_layers: float = quantity("1", "layers with latent attention", zero=True)
    dense_layers: float = quantity("1", "layers with a dense block", zero=True)
    moe_layers: float = quantity("1", "layers with a mixture of experts", zero=True)
    window: float = quantity("1", "positions that local layers see", default=1.0)
    local_cache: float = quantity(
        "1", "values cached for a position inside the window", default=0.0, zero=True
    )
    local_pair_flops: float = quantity("FLOP", "the same FLOP, of local layers", default=0.0, zero=True)
    local_scores: float = quantity("1", "the same scores, of local layers", default=0.0, zero=True)
    name: str = ""

    def __str__(self):
        return self.name


@equation(unit="1", d_model="1")
def latent_weights(attention: LatentAttention, d_model):
    """Weights of one layer of latent attention as the paper stores it: products of the up-projections.

    Queries are taken straight into the space of the latent, and results straight out of it, so that each
    head has a matrix of its own from the query's latent to the cache's, and one to the output.

    Weights. Not in the paper; the size that its Table 4 needs.

    Examples
    --------
    >>> model = load_model("DeepSeek V3")
    >>> attention = model.layers[0].attention
    >>> round(latent_weights(attention, model.d_model) / sum(attention.matrices(model.d_model).values()), 2)
    3.2
    """
    down = d_model * (attention.q_rank + attention.kv_rank + attention.rope_dim)
    each = attention.q_rank * (attention.rope_dim + attention.kv_rank) + attention.kv_rank * d_model
    return down + attention.n_heads * each


@dataclass(frozen=True, eq=False)
class Operator:
    """One operator of one layer: its weights, what a token's use of it costs, and what waits for it.

    ``copies`` of it are stored and ``active`` of them are used by a token; ``cache`` values and ``pair_flops``
    belong to each position of the context, of which it sees at most ``window``.
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


def operators(model, assumptions=PRINTED):
    """The operators of a model, one list for all its groups of equal layers (the paper's Figure 1).

    Parameters
    ----------
    model : Transformer
    assumptions : Assumptions
        How the model is counted.

    Returns
    -------
    list of Operator
        ``collective`` names what the chips have to agree on after it: ``"heads"``, ``"latent"``, ``"dense"`` or
        ``"moe"``.

    Raises
    ------
    TypeError
        If ``model`` is not a Transformer.
    ValueError
        If it has latent attention without a latent of queries, which cannot be fused.
    """
    if not isinstance(model, Transformer):
        raise TypeError(f"model is a {type(model).__name__}, but must be a Transformer")
    if model.unusual:
        raise ValueError(
            f"{model.name or 'this model'} has {model.unusual}, which the paper does not describe"
        )
    found = []
    for group in model.layers:
        found += _attention(model, group, assumptions) + _block(model, group, assumptions)
        if assumptions.vectors:
            norms = group.norms * model.d_model + group.attention.norms()
            found.append(Operator("norms", group.count, norms + group.attention.vectors(model.d_model)))
    if assumptions.head:
        found.append(Operator("head", 1, model.vocab_size * model.d_model))
    if assumptions.embeddings and not (model.tied and assumptions.head):
        found.append(Operator("embedding", 1, model.vocab_size * model.d_model, active=0, read=False))
    return found


def _attention(model, group, assumptions):
    attention, d = group.attention, model.d_model
    latent = isinstance(attention, LatentAttention)
    if latent and assumptions.fused_latent and attention.q_rank is None:
        raise ValueError(
            f"{model.name or 'this model'} has no latent of queries, which fused_latent=True needs; "
            "use Assumptions.corrected()"
        )
    if latent and assumptions.fused_latent:
        projections = {"projections": latent_weights(attention, d)}
    elif latent:
        projections = {"projections": sum(attention.matrices(d).values())}
    else:
        matrices = attention.matrices(d)
        projections = {"query, key, value": sum(matrices[n] for n in ("query", "key", "value"))}
        projections |= {"output": matrices["output"]}
    flops = attention.pair_flops(absorbed=True)
    if latent and assumptions.wide_values:
        flops["values"] = flops["scores"]
    *first, last = [Operator(name, group.count, weights) for name, weights in projections.items()]
    context = Operator(
        "attention",
        group.count,
        cache=attention.cache_values(),
        pair_flops=sum(flops.values()) * assumptions.flop_per_weight / 2,
        scores=attention.n_heads,
        window=attention.window if assumptions.local_attention else None,
        collective="latent" if latent else "heads",
    )
    return [*first, context, last] if first else [last, context]


def _block(model, group, assumptions):
    block, n = group.feed_forward, group.count
    if not isinstance(block, Experts):
        weights = sum(block.weights(model.d_model).values())
        bias = sum(block.vectors(model.d_model).values()) if assumptions.vectors else 0
        return [Operator("feed-forward", n, weights + bias, collective="dense")]
    each = block.matrices * model.d_model * block.d_expert
    if assumptions.vectors:
        each += block.vectors(model.d_model, 1)["experts"] if block.biases else 0
    found = [Operator("experts", n, each, block.n_experts, block.n_active, collective="moe")]
    shared = block.matrices * model.d_model * block.d_shared
    if shared:
        found.append(Operator("shared expert", n, shared, read=assumptions.read_shared))
    if assumptions.router:
        found.append(Operator("router", n, block.n_experts * model.d_model))
    return found


def application(model, assumptions=PRINTED):
    """A model as the equations see it: the sums of its operators.

    Parameters
    ----------
    model : Transformer
        Of the catalogue, or from any ``config.json`` that :func:`inferlib.load_model` reads. All its mixtures
        of experts must be alike, and all its local layers must see the same window.
    assumptions : Assumptions

    Returns
    -------
    Application

    Raises
    ------
    TypeError, ValueError
        As for :func:`operators`, and if mixtures or windows differ from layer to layer.

    Examples
    --------
    >>> llama = application(load_model("Llama 3 70B"))
    >>> round(llama.loaded / 1e9, 2), llama.cache / 1024
    (68.45, 160.0)
    """
    found = operators(model, assumptions)
    routed = [op for op in found if op.name == "experts"]
    fixed = [op for op in found if op.name != "experts"]
    local = [op for op in found if op.window is not None]
    shapes = {(op.copies, op.active) for op in routed} or {(1, 1)}
    windows = {op.window for op in local} or {1}
    heads = {group.attention.n_kv_heads for group in model.layers if group.attention.kind != "MLA"} or {1}
    for what, values in (("mixtures of experts", shapes), ("windows", windows), ("key/value heads", heads)):
        if len(values) > 1:
            raise ValueError(
                f"{model.name or 'this model'} has layers with different {what}: {sorted(values)}"
            )
    (experts, active), everywhere = shapes.pop(), [op for op in found if op.window is None]

    def total(ops, field):
        return _plain(sum(op.layers * getattr(op, field) for op in ops))

    def waiting(kind):
        return _plain(sum(op.layers for op in found if op.collective == kind))

    return Application(
        layers=_plain(model.n_layers),
        resident=total(fixed, "weights"),
        loaded=total([op for op in fixed if op.read], "weights"),
        used=total([op for op in fixed if op.active], "weights"),
        expert=total(routed, "weights"),
        n_experts=_plain(experts),
        routed_share=active / experts,
        cache=total(everywhere, "cache"),
        pair_flops=total(everywhere, "pair_flops"),
        scores=total(everywhere, "scores"),
        window=_plain(windows.pop()),
        local_cache=total(local, "cache"),
        local_pair_flops=total(local, "pair_flops"),
        local_scores=total(local, "scores"),
        head_layers=waiting("heads"),
        kv_heads=_plain(heads.pop()),
        latent_layers=waiting("latent"),
        dense_layers=waiting("dense"),
        moe_layers=waiting("moe"),
        name=model.name,
    )


def _plain(count):
    """A float, or the symbol that stands for one."""
    return float(count) if isinstance(count, Real) else count


def models():
    """The names of the paper's models, in the order of its Table 4.

    Examples
    --------
    >>> len(models())
    12
    """
    return list(stated()["models"])


@cache
def transformer(name):
    """The catalogue's model behind a name of the paper.

    Parameters
    ----------
    name : str
        One of :func:`models`.

    Raises
    ------
    LookupError
        If the paper has no such model; near names are suggested.
    """
    return load_model(stated()["models"][checks.one_of("model of the paper", name, models())])
