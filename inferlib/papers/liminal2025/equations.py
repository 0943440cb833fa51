"""LIMINAL 2025: the limit of decode, from bytes, FLOP and collectives (equations 1 to 8).

A step reads what it needs from memory while it computes, then waits for the chips to agree, once or several times in
each layer. The equations see a chip as an :class:`XPU` and a model as an :class:`Application`, sums over its layers.
All chips of a tensor-parallel domain share every operator evenly.
"""

from dataclasses import dataclass
from functools import cache, partial
from numbers import Real

from inferlib import catalog, validation
from inferlib.equation import Record, equation, load_source, quantity
from inferlib.ops import floor, maximum, minimum, where
from inferlib.papers.source import load, needs, stated_quantity
from inferlib.system import NotDescribed, bytes_of_formats, decode_model
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
equation = partial(equation, "liminal2025", records=_RECORDS)


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

    Examples
    --------
    Chips, switches and stages without latency exchange nothing in no time:

    >>> ideal = Assumptions(on_chip=0, switch=0, payload=0, t_stage=0, free_stages=0)
    >>> collective_latency(128, ideal), exposed_time(load_model("Llama3-70B"), 128, 80, 0, ideal)
    (0.0, 0.0)
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


# --- Sections 2.3 and 2.4: what a step needs -------------------------------------------------------------


@equation(unit="B")
def cache_size(application, context, assumptions=PRINTED):
    """Bytes of the cache of one sequence. Local layers keep no more than their window; as printed there are none."""
    local = application.local_cache * minimum(context, application.window)
    return assumptions.cache_bytes * (application.cache * context + local)


@equation(unit="B")
def stored_weights(application, assumptions=PRINTED):
    """Bytes of all weights, every routed expert included."""
    experts = application.n_experts * application.expert
    return assumptions.weight_bytes * (application.resident + experts)


@equation(unit="B")
def capacity_needed(application, batch, context, assumptions=PRINTED):
    """Bytes that weights and caches of a batch occupy: the capacity of Table 4."""
    return stored_weights(application, assumptions) + batch * cache_size(application, context, assumptions)


@equation()
def active_experts(application, batch):
    """Routed experts of a layer that a batch is expected to reach if all are equally likely: E (1 - (1 - k/E)^B).

    Section 2.4 estimates it by a Monte-Carlo simulation; this is what that converges to.
    """
    return application.n_experts * (1 - (1 - application.routed_share) ** batch)


@equation()
def expert_evaluations(application, batch):
    """Evaluations of one routed expert in a layer: k for each token, as the tables need."""
    return batch * application.n_experts * application.routed_share


@equation(unit="FLOP")
def attention_work(application, context):
    """Tensor FLOP of one token's attention over its context."""
    local = application.local_pair_flops * minimum(context, application.window)
    return application.pair_flops * context + local


@equation(unit="FLOP")
def tensor_work(application, batch, context, assumptions=PRINTED):
    """Tensor FLOP of one step: two for each weight that a token is multiplied with, and attention."""
    matrices = assumptions.flop_per_weight * application.used
    experts = assumptions.flop_per_weight * application.expert
    tokens = batch * (matrices + attention_work(application, context))
    return tokens + experts * expert_evaluations(application, batch)


@equation(unit="FLOP")
def scalar_work(application, batch, context, assumptions=PRINTED):
    """Scalar FLOP of one step: ``scalar_ops`` for each attention score. The tables need none."""
    local = application.local_scores * minimum(context, application.window)
    return assumptions.scalar_ops * batch * (application.scores * context + local)


@equation(unit="B")
def bytes_loaded(application, batch, context, assumptions=PRINTED):
    """Bytes that one step loads: weights, once for the batch, and every cache."""
    experts = application.expert * active_experts(application, batch)
    weights = assumptions.weight_bytes * (application.loaded + experts)
    return weights + batch * cache_size(application, context, assumptions)


@equation(unit="FLOP/B")
def arithmetic_intensity(application, batch, context, assumptions=PRINTED):
    """FLOP for each byte loaded: AMI of Table 4."""
    at = application, batch, context, assumptions
    return (tensor_work(*at) + scalar_work(*at)) / bytes_loaded(*at)


# --- Equations 1 to 8: how long it takes -----------------------------------------------------------------


@equation("2", unit="s", n="1 > 0")
def compute_time(application, chip, batch, context, n, assumptions=PRINTED):
    """Seconds of arithmetic in one step: F / (N FLOPS), tensor and scalar engine one after the other."""
    tensor = tensor_work(application, batch, context, assumptions) / (n * chip.flops)
    return tensor + scalar_work(application, batch, context, assumptions) / (n * chip.scalar_flops)


@equation("3", unit="s", n="1 > 0")
def memory_time(application, chip, batch, context, n, assumptions=PRINTED):
    """Seconds in which n chips load what one step needs: M / (N BW)."""
    return bytes_loaded(application, batch, context, assumptions) / (n * chip.bandwidth)


@equation("6", unit="s", n="1 > 0")
def expert_compute_time(application, chip, batch, n, assumptions=PRINTED):
    """The part of :func:`compute_time` that belongs to routed experts: F_expert A / (N FLOPS).

    F_expert must be the arithmetic of all tokens that come to an expert: the tables need k B evaluations, not one for
    each expert reached.
    """
    work = assumptions.flop_per_weight * application.expert
    return work * expert_evaluations(application, batch) / (n * chip.flops)


@equation("7", unit="s", n="1 > 0")
def expert_memory_time(application, chip, batch, n, assumptions=PRINTED):
    """The part of :func:`memory_time` that belongs to routed experts: M_expert A / (N BW)."""
    each = assumptions.weight_bytes * application.expert
    return each * active_experts(application, batch) / (n * chip.bandwidth)


@equation(unit="s")
def collective_latency(n, assumptions=PRINTED):
    """Latency of one collective among n chips, at most ``radix``: on the chip, through the switch, and the transfer.

    A switch of ``radix`` ports gives each of n chips ``radix / n`` links. Section 3 prints the ingredients and two
    results, not the sum; that the payload goes up one link and comes down another is inferred from them.

    Examples
    --------
    >>> [round(collective_latency(n) * 1e9, 2) for n in (8, 128)]
    [438.15, 1010.35]
    """
    transfer = assumptions.crossings * assumptions.payload * n / (assumptions.radix * assumptions.link)
    return assumptions.on_chip + assumptions.switch + transfer


@equation()
def collectives(application, n, assumptions=PRINTED):
    """Collectives of one step on n chips: S_N of every layer, summed (section 2.4); none on one chip."""
    split = where(n <= application.kv_heads, assumptions.within_heads, assumptions.beyond_heads)
    attention = application.head_layers * split + application.latent_layers * assumptions.latent_collectives
    dense = application.dense_layers * assumptions.dense_collectives
    everything = attention + dense + application.moe_layers * assumptions.moe_collectives
    return where(n > 1, everything, 0.0 * everything)


@equation("4", unit="s", t_tp="s")
def exposed_time(application, n, stages=1, t_tp=None, assumptions=PRINTED):
    """Seconds in which neither memory nor arithmetic works: T_TP S_N L + T_PP P.

    A pipeline of one stage has no hop: with one, cells of every table would print otherwise. Without ``t_tp`` it is the
    :func:`collective_latency` of the chips, here and in equations 1 and 5.
    """
    t_tp = collective_latency(n, assumptions) if t_tp is None else t_tp
    hops = maximum(stages - assumptions.free_stages, 0)
    return t_tp * collectives(application, n, assumptions) + assumptions.t_stage * hops


@equation("1", unit="s", n="1 > 0", t_tp="s")
def batch_time(
    application,
    chip,
    batch,
    context,
    n,
    stages=1,
    t_tp=None,
    assumptions=PRINTED,
):
    """Seconds of one step: max(T_Compute, T_Mem) + T_Exposed."""
    at = application, chip, batch, context, n, assumptions
    overlapped = maximum(compute_time(*at), memory_time(*at))
    return overlapped + exposed_time(application, n, stages, t_tp, assumptions)


@equation("5", unit="1/s", n="1 > 0", t_tp="s")
def user_speed(
    application,
    chip,
    batch,
    context,
    n,
    stages=1,
    t_tp=None,
    assumptions=PRINTED,
):
    """UTPS, tokens per second that one user sees: 1 / T_Batch.

    Examples
    --------
    >>> llama = load_model("Llama3-70B")
    >>> round(user_speed(llama, load_chip("HBM3"), 1, 4096, 8))
    491
    """
    return 1 / batch_time(application, chip, batch, context, n, stages, t_tp, assumptions)


@equation("5", unit="1/s", n="1 > 0", t_tp="s")
def system_speed(
    application,
    chip,
    batch,
    context,
    n,
    stages=1,
    t_tp=None,
    assumptions=PRINTED,
):
    """STPS, tokens per second of the whole system, with a batch in every stage: B P / T_Batch."""
    return stages * batch / batch_time(application, chip, batch, context, n, stages, t_tp, assumptions)


@equation(unit="s", t_layer="s")
def measured_overhead(application, t_layer):
    """Seconds exposed in all layers, each with its measured ``t_layer``."""
    return t_layer * application.layers


@equation("8", unit="s", n="1 > 0", t_layer="s")
def real_time(application, chip, batch, context, n, t_layer, assumptions=PRINTED):
    """Seconds of one step on a server that exists: max(T_Compute, T_Mem) + T_Exposed,Real L."""
    at = application, chip, batch, context, n, assumptions
    return maximum(compute_time(*at), memory_time(*at)) + measured_overhead(application, t_layer)


# --- What fits -------------------------------------------------------------------------------------------


@equation(context="1 > 0")
def batch_room(application, chip, context, n, assumptions=PRINTED):
    """Sequences for whose caches n chips have room beside all weights; negative where weights do not fit."""
    left = n * chip.capacity - stored_weights(application, assumptions)
    return left / cache_size(application, context, assumptions)


def largest_batch(application, chip, context, n, assumptions=PRINTED):
    """The largest whole batch that fits, or None where not even one sequence does.

    Examples
    --------
    >>> largest_batch(load_model("DeepSeekV3"), load_chip("HBM3"), 4096, 128)
    86855
    """
    fitting = int(floor(float(batch_room(application, chip, context, n, assumptions))))
    return fitting if fitting >= 1 else None


# --- Appendix A: power -----------------------------------------------------------------------------------


@equation(unit="W", memory_power="W")
def chip_power(memory_power, assumptions=PRINTED):
    """Watts of one chip with its memory and its share of a server. What memories draw is not printed."""
    die = assumptions.power_per_mm2 * assumptions.die_area
    return die + memory_power + assumptions.server_power / assumptions.server_chips


@equation(unit="1/s/W", speed="1/s", n="1 > 0", stages="1 > 0", memory_power="W")
def power_efficiency(speed, n, stages, memory_power, assumptions=PRINTED):
    """STPS/W: tokens per second and watt of a whole system."""
    return speed / (n * stages * chip_power(memory_power, assumptions))


# --- The answer ------------------------------------------------------------------------------------------


@decode_model("liminal2025")
def decode_step(
    model: Transformer,
    system,
    workload,
    layout=None,
    assumptions=PRINTED,
):
    """One token for every sequence of a batch, as far as the paper describes it.

    ``system``: all chips are one tensor-parallel domain, or as many pipeline stages as ``layout`` says, with
    ``tp * pp = system.count``; the batch is that of one stage. A collective takes :func:`collective_latency`:
    that of the paper's switch, not of the chip's own links. ``workload``: its formats replace the paper's
    single byte; arithmetic runs at the peak of the weights' format. ``assumptions``: ``Assumptions.fitted()``
    answers with equation 8; the default is the limit.

    Returns memory (weights and cache, which add) beside arithmetic, then what is exposed: collectives and hops,
    or the measured overhead of every layer.

    Examples
    --------
    >>> import inferlib
    >>> box = inferlib.System(inferlib.load_chip("H100 SXM"), 8)
    >>> step = decode_step(inferlib.load_model("Llama 3 70B"), box, inferlib.Workload(batch=32, context=4096))
    >>> f"{step.total * 1e3:.2f} ms, bound by {step.bottleneck}"
    '6.78 ms, bound by weights'
    >>> real = decode_step(*step.origin[1:4], assumptions=Assumptions.fitted())
    >>> f"{real.total * 1e3:.2f} ms, bound by {real.bottleneck}"
    '15.83 ms, bound by overhead'
    """
    tp, pp = (layout.tp, layout.pp) if layout is not None else (system.count, 1)
    _described(system, workload, layout, tp, pp, assumptions)
    bytes_of = bytes_of_formats(weight_bytes=workload.weights, cache_bytes=workload.cache)
    counted = assumptions.replace(**bytes_of)
    app = load_model(model, counted)
    chip = load_chip(system.chip, workload.weights)
    batch = workload.batch
    context = workload.context
    system.hold(capacity_needed(app, pp * batch, context, counted))
    cache = batch * cache_size(app, context, counted) / (tp * chip.bandwidth)
    at = app, chip, batch, context, tp, counted
    memory = {"weights": memory_time(*at) - cache, "cache": cache}
    if isinstance(context, Real) and context == 0:
        del memory["cache"]
    overlapped = {"memory": memory, "arithmetic": compute_time(*at)}
    if counted.t_real is not None:
        # equation 8: the measured time replaces all exposed times
        return overlapped, {"overhead": measured_overhead(app, counted.t_real)}
    network = exposed_time(app, tp, counted.free_stages, assumptions=counted)
    hops = exposed_time(app, tp, pp, assumptions=counted) - network
    waits = {"network": (tp, network), "pipeline": (pp, hops)}
    # a degree of one has no wait; a symbolic degree keeps its term
    named = [{name: t} for name, (degree, t) in waits.items() if not isinstance(degree, Real) or degree != 1]
    return overlapped, *named


def _described(system, workload, layout, tp, pp, assumptions):
    """Raise NotDescribed for questions that the paper does not cover."""
    if layout is not None and (layout.ep, layout.dp) != (1, 1):
        raise NotDescribed("the paper's TP stands for expert and data parallelism too: give tp and pp only")
    if isinstance(system.count, Real) and tp * pp != system.count:
        raise NotDescribed(f"tp * pp is {tp * pp}, but the system has {system.count} chips")
    if isinstance(tp, Real) and tp > assumptions.radix:
        limit = f"{assumptions.radix:.0f} chips that share every operator"
        raise NotDescribed(f"the paper stops at {limit}: give a layout with pp")
    if isinstance(workload.weights, str) and workload.weights not in system.chip.peaks:
        raise NotDescribed(f"{system.chip.name} states no arithmetic peak in {workload.weights}")
