"""Erdil 2025, section 3: the complete model of one layout, and what its author's notebook adds to print.

A layout cuts a model over ``n_gpu`` GPUs: into pipeline stages, with one- or two-dimensional tensor parallelism
within a stage, and attention on ``scale_down`` times fewer GPUs than the feed-forward block. Equation 29 is
:func:`layout_latency`, the sum of :func:`layout_terms`; :mod:`inferlib.papers.erdil2025.search` finds the best layout.
"""

from dataclasses import dataclass
from functools import partial, reduce
from types import SimpleNamespace

import numpy as np

from inferlib.equation import equation, forbid_override
from inferlib.ops import ceil, floor, log2, maximum, minimum, sqrt, where
from inferlib.papers.erdil2025.records import GPU, PRINTED, Cut, Protocol
from inferlib.papers.erdil2025.shape import (
    Shape,
    attention_params,
    cache_values,
    embedding_params,
    feed_forward_params,
    qkv_width,
)

_RECORDS = {"shape": Shape, "chip": GPU, "cut": Cut, "protocol": Protocol}
equation = partial(equation, "erdil2025", chapter="erdil2025_model", records=_RECORDS)
ALL_REDUCE, ONE_WAY = 2, 1  # passes over the links: there and back, or one way
_ONE = 1 + 1e-9  # a group of one GPU, even if a power or a quotient was rounded up


@equation("29", unit="s", n_gpu="1 > 0")
def layout_latency(
    shape,
    chip,
    cut,
    n_gpu,
    batch,
    context,
    new_tokens,
    assumptions=PRINTED,
):
    """Time of one pass: launches and network, then the longer of reading and multiplying, which overlap.

    The chip's peak is that of the model's weight format (``records.computing_at``). Whether the model fits in memory is
    a separate question (:func:`search.infeasible`).

    Examples
    --------
    >>> from inferlib.papers.erdil2025 import load_chip, load_model
    >>> llama, h100 = load_model("Llama 3 70B").shape, load_chip("H100")
    >>> pass_time = layout_latency(llama, h100, Cut(kind="1D"), 8, 32, 4096, 1)
    >>> round(1e3 * pass_time, 1)
    13.6
    """
    terms = layout_terms(shape, chip, cut, n_gpu, batch, context, new_tokens, assumptions)
    waiting, reading, multiplying = (sum(group.values()) for group in terms)
    return waiting + maximum(reading, multiplying)


def layout_terms(shape, chip, cut, n_gpu, batch, context, new_tokens, assumptions=PRINTED, *, split=False):
    """Seconds of each part of equation 29: waiting, reading, multiplying.

    With ``split``, for plain numbers only, latency and bandwidth of the collectives are separate terms.
    """
    stage = one_stage(shape, chip, cut.stages, n_gpu, batch, context, new_tokens, assumptions)
    network = attention_network(shape, chip, stage.group / cut.scale_down, cut.kind, assumptions)
    network += other_networks(shape, chip, stage, cut.kind, assumptions)
    if split:
        latency, bandwidth = zip(*(one.parts(stage.tokens) for one in network), strict=True)
        collectives = {"collective latency": shape.n_layers * sum(latency)}
        collectives["collective bandwidth"] = shape.n_layers * sum(bandwidth)
    else:
        collectives = {"collectives": network_time(shape, stage, network)}
    waiting = {"kernel launch": launches(shape, assumptions)} | collectives | {"pipeline": stage.pipeline}
    return waiting, *work(shape, stage, cut.scale_down, assumptions)


class Stage(SimpleNamespace):
    """What all scale-downs of a stage share; in a search at many points, as arrays or numbers equal at all points."""

    def at(self, chosen):
        """Return the same at some of the points."""
        return Stage(**{name: v[..., chosen] if np.ndim(v) else v for name, v in vars(self).items()})


def one_stage(shape, chip, stages, n_gpu, batch, context, new_tokens, assumptions=PRINTED):
    """One of ``stages`` pipeline stages: its GPUs, tokens and traffic, whatever the scale-down of attention."""
    group = n_gpu / stages
    micro = batch / stages
    tokens = micro * new_tokens
    experts = expert_groups(shape, group, micro, assumptions)
    used = experts_used(shape, tokens, assumptions)
    weights, moved = feed_forward_bytes(shape, group, experts, assumptions)
    spread, pairs, repeated = flop_per_token(shape, context, assumptions)
    return Stage(
        group=group,
        tokens=tokens,
        experts=experts,
        rate=group * (chip.memory_bandwidth * chip.bandwidth_fraction),
        weights=used * weights,
        moved=used * moved,
        cache=cache_bytes(shape, context, micro, batch, assumptions),
        each=batch * new_tokens / (n_gpu * (chip.flops * chip.flops_fraction)),
        spread=spread,
        pairs=pairs,
        repeated=repeated,
        pipeline=(stages - 1) * stage_network(shape, chip, group, assumptions).time(tokens),
    )


def work(shape, stage, scale_down, assumptions=PRINTED):
    """Seconds of reading and of multiplying in a stage, by part; they overlap."""
    layers = shape.n_layers
    attention, moved = attention_bytes(shape, stage.group / scale_down, assumptions)
    unembedding = shape.weight_bytes * embedding_params(shape)
    reading = {
        "weights": (layers * (stage.weights + scale_down * attention) + unembedding) / stage.rate,
        "activations": layers * stage.tokens * (stage.moved + scale_down * moved) / stage.rate,
        "cache": stage.cache / stage.rate,
    }
    multiplying = {
        "arithmetic": stage.each * (stage.spread + scale_down * stage.repeated),
        "attention arithmetic": stage.each * stage.pairs,
    }
    return reading, multiplying


def network_time(shape, stage, network):
    """Seconds of some collectives in all layers."""
    return shape.n_layers * sum(one.time(stage.tokens) for one in network)


# What GPUs do for one layer: launches, arithmetic, reading


def launches(shape, assumptions=PRINTED):
    """Seconds spent launching kernels in all layers (equation 30's first term)."""
    return shape.n_layers * assumptions.kernels * assumptions.t_kernel


def flop_per_token(shape, context, assumptions=PRINTED):
    """FLOP for one token: of the feed-forward blocks, of attention over the context, and of what scale-down repeats."""
    spread = shape.flop_per_weight * feed_forward_params(shape) / sparsity(shape, assumptions)
    width = shape.kv_rank if shape.latent else shape.head_dim
    pairs = assumptions.flop_per_pair * shape.n_layers * shape.n_heads * width * context
    tables = 2 if assumptions.embedding_multiplied else 1
    return spread, pairs, shape.flop_per_weight * (attention_params(shape) + tables * embedding_params(shape))


def sparsity(shape, assumptions=PRINTED):
    """Experts for every active one: s of equation 21."""
    exact = maximum(shape.n_experts / shape.n_active, 1)
    return floor(exact) if assumptions.whole_sparsity else exact


def expert_groups(shape, group, micro, assumptions=PRINTED):
    """Degree of expert parallelism on a stage's ``group`` of GPUs: the highest, or one for a small micro-batch."""
    if _dense(shape):
        return 1
    enough = assumptions.expert_threshold * sparsity(shape, assumptions) * (2 - _ONE)
    return where(micro < enough, 1, minimum(group, shape.n_experts))


def experts_used(shape, tokens, assumptions=PRINTED):
    """Share of the experts that some tokens of a micro-batch use: 1 - (1 - 1/s)^tokens (in equation 22)."""
    return 1 if _dense(shape) else 1 - (1 - 1 / sparsity(shape, assumptions)) ** tokens


def _dense(shape):
    # True for exactly one expert; a symbol or an array can be any number of them
    return isinstance(shape.n_experts, (int, float)) and shape.n_experts == 1


def traffic(shape, rows, columns, ranks, assumptions=PRINTED):
    """Bytes of inputs and outputs that a multiplication on ``ranks`` GPUs moves per token, over all of them.

    Cut into tiles of the best shape, the copies of inputs and of outputs multiply to ``ranks``.
    """
    if assumptions.traffic == "once":
        inputs = outputs = 1
    elif assumptions.traffic == "over-read":
        inputs, outputs = (maximum(1, sqrt(ratio) * ranks) for ratio in (rows / columns, columns / rows))
    else:
        inputs = minimum(maximum(sqrt(rows * ranks / columns), 1), ranks)
        outputs = ranks / inputs
    return shape.activation_bytes * (inputs * columns + outputs * rows)


def attention_bytes(shape, ranks, assumptions=PRINTED):
    """Bytes that attention's matrices move in a layer: the weights', and the inputs' and outputs' per token."""
    width = shape.n_heads * shape.head_dim
    latent = shape.kv_rank + shape.q_rank if shape.latent else 0
    if not shape.latent:
        matrices = [(qkv_width(shape), shape.d_model)]
    elif assumptions.latent_as_coded:
        # The notebook multiplies both latents with queries, keys and values at once.
        matrices = [(latent, shape.d_model), (qkv_width(shape), latent)]
    else:
        matrices = [(latent, shape.d_model), (width, shape.q_rank), (2 * width, shape.kv_rank)]
    matrices.append((shape.d_model, width))
    weights = sum(shape.weight_bytes * rows * columns for rows, columns in matrices)
    return weights, sum(traffic(shape, *matrix, ranks, assumptions) for matrix in matrices)


def feed_forward_bytes(shape, group, experts, assumptions=PRINTED):
    """Bytes that all experts of a layer move when all are used: the weights', and inputs' and outputs' per token."""
    weights = shape.weight_bytes * feed_forward_params(shape) / shape.n_layers
    each = traffic(shape, shape.d_model, shape.d_ff, _ranks_of_expert(group, experts), assumptions)
    matrices = shape.n_experts * (shape.ff_up + shape.ff_down)
    return weights, matrices * each / sparsity(shape, assumptions)


def cache_bytes(shape, context, micro, batch, assumptions=PRINTED):
    """Bytes of cache that one stage's micro-batch reads, times the stages that share it."""
    sequences = batch if assumptions.cache_read_per_stage else micro
    return _cache_of(shape, context, sequences)


def _cache_of(shape, context, sequences):
    return shape.n_layers * cache_values(shape) * shape.activation_bytes * context * sequences


def capacity_needed(shape, context, micro, batch, assumptions=PRINTED):
    """Bytes that weights and cache take, as the notebook's capacity test counts them."""
    tables = 2 if assumptions.embedding_multiplied else 1
    weights = attention_params(shape) + feed_forward_params(shape) + tables * embedding_params(shape)
    sequences = micro if assumptions.cache_of_micro_batch else batch
    return shape.weight_bytes * weights + _cache_of(shape, context, sequences)


# The network


@equation("23", unit="s", n_nodes="1 > 0")
def collective_latency(protocol, n_ranks, n_nodes, passes):
    """Latency of one collective: a base, and every hop once per pass; equation 23 is LL with two passes."""
    return _waiting(protocol, n_ranks / n_nodes - 1, log2(n_nodes), passes)


def _waiting(protocol, neighbours, doublings, passes):
    return protocol.base + passes * (protocol.per_rank * neighbours + protocol.per_node * doublings)


@equation(unit="s/B", n_ranks="1 > 0", n_nodes="1 > 0")
def time_inside(chip, n_ranks, n_nodes):
    """Seconds per byte that a collective moves once inside nodes (equations 28 and 42, one pass).

    All participating GPUs receive at once.
    """
    return n_nodes * maximum(n_ranks / n_nodes - 1, 0) / (n_ranks * chip.scale_up_bandwidth)


@equation(unit="s/B", n_ranks="1 > 0")
def time_between(chip, n_ranks, n_nodes):
    """Seconds per byte that a collective moves once between nodes (equations 28 and 41, one pass)."""
    return (n_nodes - 1) / (n_ranks * chip.scale_out_bandwidth)


@dataclass(frozen=True)
class Collective:
    """Time of one collective, affine in the tokens of a micro-batch, by protocol; the fastest counts."""

    fixed: tuple
    per_token: object  # seconds at the whole bandwidth
    shares: tuple

    def time(self, tokens):
        """Seconds for some tokens."""
        moved = self.per_token * tokens
        return reduce(minimum, (f + moved / share for f, share in zip(self.fixed, self.shares, strict=True)))

    def parts(self, tokens):
        """Seconds of latency and of bandwidth, in the fastest protocol."""
        moved = (self.per_token * tokens / share for share in self.shares)
        return min(zip(self.fixed, moved, strict=True), key=sum)


def span(chip, gpus, kind):
    """Ranks, nodes and doublings of the nodes of one collective of a block on some GPUs (section 3.3).

    A partly used node counts as one.
    """
    nodes = ceil(gpus / chip.scale_up_size)
    doublings = log2(nodes)
    return (gpus, nodes, doublings) if kind == "1D" else (sqrt(gpus), sqrt(nodes), doublings / 2)


def collectives(chip, cut, sizes, passes, assumptions=PRINTED):
    """One collective for each tensor of ``sizes`` bytes per token; free where a single GPU takes part.

    ``cut`` is ranks, nodes and doublings of the nodes; ``passes`` is ``ALL_REDUCE`` or ``ONE_WAY``.
    """
    forbid_override("a layout, which counts hops once for all protocols,", collective_latency)
    n_ranks, n_nodes, doublings = cut
    inside = time_inside(chip, n_ranks, n_nodes)
    between = time_between(chip, n_ranks, n_nodes)
    per_byte = passes * (maximum(inside, between) if assumptions.networks_overlap else inside + between)
    fixed = [_waiting(p, n_ranks / n_nodes - 1, doublings, passes) for p in assumptions.protocols]
    alone = n_ranks <= _ONE
    if not isinstance(alone, np.ndarray) or alone.any():  # in a large search groups of one GPU are rare
        per_byte, *fixed = (where(alone, 0 * time, time) for time in (per_byte, *fixed))
    shares = tuple(p.share for p in assumptions.protocols)
    return [Collective(tuple(fixed), per_byte * size, shares) for size in sizes]


def attention_network(shape, chip, gpus, kind, assumptions=PRINTED):
    """The all-reduces of one layer's attention."""
    a = shape.activation_bytes
    cut = span(chip, gpus, kind)
    if kind == "1D":
        sizes = [a * shape.d_model]
    else:
        sizes = [a * width / cut[0] for width in (shape.d_model, qkv_width(shape))]
    return collectives(chip, cut, sizes, ALL_REDUCE, assumptions)


def _ranks_of_expert(group, experts):
    return maximum(1, group / maximum(1, experts))


def feed_forward_network(shape, chip, group, experts, kind, assumptions=PRINTED):
    """The all-reduces of one layer's feed-forward block, or of its experts in a number of groups."""
    a = shape.activation_bytes
    cut = span(chip, _ranks_of_expert(group, experts), kind)
    reduced = [shape.ff_down * shape.d_model]
    if kind == "2D":
        reduced.append(shape.ff_up * shape.d_ff)
    share = shape.n_active * cut[0] / group
    return collectives(chip, cut, [a * share * width for width in reduced], ALL_REDUCE, assumptions)


def other_networks(shape, chip, stage, kind, assumptions=PRINTED):
    """The collectives of one layer besides attention's: feed-forward block, and both all-to-alls of a sparse layer."""
    network = feed_forward_network(shape, chip, stage.group, stage.experts, kind, assumptions)
    return network + dispatches(shape, chip, stage.group, stage.experts, assumptions)


def dispatches(shape, chip, group, experts, assumptions=PRINTED):
    """All all-to-alls of a layer, to the experts and back, taken together; none in a dense one."""
    if _dense(shape):
        return []
    ranks = minimum(shape.n_active, experts)
    copies = shape.n_active if assumptions.dispatch_to_active else ranks
    size = shape.activation_bytes * shape.d_model * copies / group
    (one,) = collectives(chip, span(chip, ranks, "1D"), [size], ONE_WAY, assumptions)
    times = assumptions.dispatches
    return [Collective(tuple(times * fixed for fixed in one.fixed), times * one.per_token, one.shares)]


def stage_network(shape, chip, group, assumptions=PRINTED):
    """The transfer from one pipeline stage to the next: two ranks in two nodes."""
    ranks = 2
    # A tensor cut in two, of which each rank needs the other's half, moves half its bytes; a transfer moves all.
    tensors = 1 if assumptions.hop_halved else ranks
    size = tensors * shape.activation_bytes * shape.d_model / group
    return collectives(chip, (ranks, ranks, log2(ranks)), [size], ONE_WAY, assumptions)[0]
