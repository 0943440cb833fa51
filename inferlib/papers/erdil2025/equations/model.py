"""Erdil 2025, section 3: the complete model of one layout, and what its author's notebook adds to print.

One layout is a way to cut a model across ``n_gpu`` GPUs: pipeline stages, one- or two-dimensional tensor
parallelism within a stage, and the factor by which attention is spread less widely than the feed-forward
block. :func:`layout_latency` is the time of one pass through the model in that layout; the search for the
best layout is :mod:`inferlib.papers.erdil2025.search`.
"""

from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add

import numpy as np

from inferlib.equation import equation
from inferlib.ops import ceil, floor, log2, maximum, minimum, sqrt, where
from inferlib.papers.erdil2025.records import GPU, Assumptions, Cut, Protocol
from inferlib.papers.erdil2025.shape import (
    Shape,
    attention_params,
    cache_values,
    embedding_params,
    feed_forward_params,
    qkv_width,
)

equation = partial(equation, "erdil2025", chapter="erdil2025_model")
ALL_REDUCE, ONE_WAY = 2, 1  # passes: there and back, or there
_ONE = 1 + 1e-9  # a group of one GPU, also where a power or a quotient rounded up


@dataclass(frozen=True)
class Collective:
    """Time of one collective, affine in the tokens of a micro-batch, by protocol; the fastest counts."""

    fixed: tuple
    moved: object  # seconds for each token at the whole bandwidth
    shares: tuple

    @property
    def per_token(self):
        """Seconds for each token, by protocol."""
        return tuple(self.moved / share for share in self.shares)

    def time(self, tokens):
        """Seconds for so many tokens."""
        moved = self.moved * tokens
        return reduce(minimum, (f + moved / share for f, share in zip(self.fixed, self.shares, strict=True)))


@equation("23", unit="s", n_ranks="1", n_nodes="1 > 0", passes="1")
def collective_latency(protocol: Protocol, n_ranks, n_nodes, passes):
    """Latency of one collective: a base, and every hop once per pass; equation 23 is LL with two passes."""
    return _waiting(protocol, n_ranks / n_nodes - 1, log2(n_nodes), passes)


def _waiting(protocol, neighbours, doublings, passes):
    """Latency over so many further GPUs of a node and so many doublings of the nodes."""
    return protocol.base + passes * (protocol.per_rank * neighbours + protocol.per_node * doublings)


@equation(unit="s/B", n_ranks="1 > 0", n_nodes="1 > 0")
def time_inside(chip: GPU, n_ranks, n_nodes):
    """Seconds for every byte that a collective moves once inside nodes (equations 28 and 42, one pass).

    All GPUs that take part receive at once.
    """
    return n_nodes * maximum(n_ranks / n_nodes - 1, 0) / (n_ranks * chip.scale_up_bandwidth)


@equation(unit="s/B", n_ranks="1 > 0", n_nodes="1")
def time_between(chip: GPU, n_ranks, n_nodes):
    """Seconds for every byte that a collective moves once between nodes (equations 28 and 41, one pass)."""
    return (n_nodes - 1) / (n_ranks * chip.scale_out_bandwidth)


@dataclass(frozen=True)
class Span:
    """What a block of a layer is spread over: GPUs, nodes, and doublings of the nodes."""

    gpus: object
    nodes: object
    doublings: object

    def cut(self, kind):
        """Ranks, nodes and doublings of one collective of the block (section 3.3)."""
        if kind == "1D":
            return self.gpus, self.nodes, self.doublings
        return sqrt(self.gpus), sqrt(self.nodes), self.doublings / 2


def span(chip, gpus):
    """So many GPUs in nodes of the chip's size, every node begun counting as one.

    Parameters
    ----------
    chip : GPU
    gpus : float or array

    Returns
    -------
    Span
    """
    nodes = ceil(gpus / chip.scale_up_size)
    return Span(gpus, nodes, log2(nodes))


def collectives(chip, cut, sizes, passes, assumptions):
    """Collectives of given ranks and nodes, as affine times of the tokens for every protocol.

    Parameters
    ----------
    chip : GPU
    cut : tuple
        Ranks, nodes, and doublings of the nodes.
    sizes : list of float or array
        Bytes of each tensor for one token.
    passes : int
        2 for an all-reduce, 1 for an all-to-all or a transfer.
    assumptions : Assumptions

    Returns
    -------
    list of Collective
        Free for a single rank.
    """
    n_ranks, n_nodes, doublings = cut
    inside, between = time_inside(chip, n_ranks, n_nodes), time_between(chip, n_ranks, n_nodes)
    per_byte = passes * (maximum(inside, between) if assumptions.networks_overlap else inside + between)
    neighbours = n_ranks / n_nodes - 1
    fixed = [_waiting(p, neighbours, doublings, passes) for p in assumptions.protocols]
    alone = n_ranks <= _ONE
    if _somebody(alone):
        per_byte, *fixed = (where(alone, 0 * time, time) for time in (per_byte, *fixed))
    shares = tuple(p.share for p in assumptions.protocols)
    return [Collective(tuple(fixed), per_byte * size, shares) for size in sizes]


def _somebody(alone):
    """Whether anybody may be alone; in a large search mostly nobody is."""
    return alone.any() if isinstance(alone, np.ndarray) else True


def sparsity(shape, assumptions):
    """Experts for every active one: s of equation 21."""
    exact = maximum(shape.n_experts / shape.n_active, 1)
    return floor(exact) if assumptions.whole_sparsity else exact


def expert_groups(shape, group, micro, assumptions):
    """Degree of expert parallelism: as high as possible, or none where the micro-batch is small.

    ``group`` is the GPUs of one stage, ``micro`` the sequences of one micro-batch.
    """
    if _is_one(shape.n_experts):
        return 1
    enough = assumptions.expert_threshold * sparsity(shape, assumptions) * (2 - _ONE)
    return where(micro < enough, 1, minimum(group, shape.n_experts))


def attention_network(shape, chip, spread, kind, assumptions):
    """The all-reduces of one layer's attention, over the GPUs of a :class:`Span`."""
    a, cut = shape.activation_bytes, spread.cut(kind)
    if kind == "1D":
        sizes = [a * shape.d_model]
    else:
        sizes = [a * width / cut[0] for width in (shape.d_model, qkv_width(shape))]
    return collectives(chip, cut, sizes, ALL_REDUCE, assumptions)


def feed_forward_span(chip, group, experts):
    """What one expert (or the only feed-forward block) is spread over, of a stage's ``group`` of GPUs."""
    return span(chip, maximum(1, group / maximum(1, experts)))


def feed_forward_network(shape, chip, group, spread, kind, assumptions):
    """The all-reduces of one layer's feed-forward block, each expert over the GPUs of a :class:`Span`."""
    a, cut = shape.activation_bytes, spread.cut(kind)
    reduced = [shape.ff_down * shape.d_model]
    if kind == "2D":
        reduced.append(shape.ff_up * shape.d_ff)
    share = shape.n_active * cut[0] / group
    return collectives(chip, cut, [a * share * width for width in reduced], ALL_REDUCE, assumptions)


def dispatch_network(shape, chip, group, experts, assumptions):
    """One of the all-to-alls of a sparse layer: to the experts or back."""
    ranks = minimum(shape.n_active, experts)
    copies = shape.n_active if assumptions.dispatch_to_active else ranks
    size = shape.activation_bytes * shape.d_model * copies / group
    return collectives(chip, span(chip, ranks).cut("1D"), [size], ONE_WAY, assumptions)[0]


def stage_network(shape, chip, group, assumptions):
    """The transfer from one pipeline stage to the next: two ranks in two nodes."""
    ranks = 2
    # Cut in two, a tensor of which each rank needs the other's half moves half its bytes; a transfer does not.
    tensors = 1 if assumptions.hop_halved else ranks
    size = tensors * shape.activation_bytes * shape.d_model / group
    return collectives(chip, (ranks, ranks, log2(ranks)), [size], ONE_WAY, assumptions)[0]


def replication(rows, columns, ranks, assumptions):
    """How often a multiplication over ``ranks`` GPUs reads its inputs and writes its outputs.

    Parameters
    ----------
    rows, columns : float
        Width of the output and of the input of the weight matrix.
    ranks : float or array
        GPUs that share the matrix.
    assumptions : Assumptions

    Returns
    -------
    inputs, outputs : same kind as ``ranks``
        Cut into tiles of the best shape, the product of both is ``ranks``.
    """
    if assumptions.traffic == "once":
        return 1, 1
    if assumptions.traffic == "over-read":
        return maximum(1, sqrt(rows / columns) * ranks), maximum(1, sqrt(columns / rows) * ranks)
    inputs = minimum(maximum(sqrt(rows * ranks / columns), 1), ranks)
    return inputs, ranks / inputs


def traffic(shape, rows, columns, ranks, assumptions):
    """Bytes of inputs and outputs that one multiplication moves for one token, summed over the GPUs."""
    inputs, outputs = replication(rows, columns, ranks, assumptions)
    return shape.activation_bytes * (inputs * columns + outputs * rows)


def _attention_matrices(shape, assumptions):
    """(rows, columns) of the matrices that attention reads in one layer."""
    width = shape.n_heads * shape.head_dim
    if not shape.latent:
        return [(qkv_width(shape), shape.d_model), (shape.d_model, width)]
    latent = shape.kv_rank + shape.q_rank
    if assumptions.latent_as_coded:
        return [(latent, shape.d_model), (qkv_width(shape), latent), (shape.d_model, width)]
    return [
        (latent, shape.d_model), (width, shape.q_rank), (2 * width, shape.kv_rank), (shape.d_model, width)
    ]  # fmt: skip


def attention_bytes(shape, ranks, assumptions):
    """What attention moves in one layer beside the cache: bytes of weights, and bytes for every token."""
    matrices = _attention_matrices(shape, assumptions)
    weights = sum(shape.weight_bytes * rows * columns for rows, columns in matrices)
    return weights, sum(traffic(shape, *matrix, ranks, assumptions) for matrix in matrices)


def feed_forward_bytes(shape, group, experts, assumptions):
    """What all experts of one layer move when all are used: bytes of weights, and bytes for every token."""
    weights = shape.weight_bytes * feed_forward_params(shape) / shape.n_layers
    ranks = maximum(1, group / maximum(1, experts))
    each = traffic(shape, shape.d_model, shape.d_ff, ranks, assumptions)
    matrices = shape.n_experts * (shape.ff_up + shape.ff_down)
    return weights, matrices * each / sparsity(shape, assumptions)


def experts_used(shape, tokens, assumptions):
    """Share of the experts that a micro-batch of so many tokens, a number or an array, uses (in equation 22)."""
    if _is_one(shape.n_experts):
        return 1
    return 1 - (1 - 1 / sparsity(shape, assumptions)) ** tokens


def cache_bytes(shape, context, micro, batch, assumptions):
    """Bytes of cache that one stage's micro-batch reads, times the stages that share it."""
    sequences = batch if assumptions.cache_read_per_stage else micro
    return shape.n_layers * cache_values(shape) * shape.activation_bytes * context * sequences


def _memory_rate(chip, group):
    return group * (chip.memory_bandwidth * chip.bandwidth_fraction)


def flop_per_token(shape, context, assumptions):
    """FLOP for one token: spread over all GPUs of a stage, and repeated by attention's scale-down."""
    spread, pairs, repeated = _flop(shape, context, assumptions)
    return spread + pairs, repeated


def _flop(shape, context, assumptions):
    """The same with what attention multiplies for the context by itself, in the middle."""
    spread = shape.flop_per_weight * feed_forward_params(shape) / sparsity(shape, assumptions)
    width = shape.kv_rank if shape.latent else shape.head_dim
    pairs = assumptions.flop_per_pair * shape.n_layers * shape.n_heads * width * context
    tables = 2 if assumptions.embedding_multiplied else 1
    repeated = shape.flop_per_weight * (attention_params(shape) + tables * embedding_params(shape))
    return spread, pairs, repeated


@dataclass(frozen=True)
class Pass:
    """One pass through the model, cut into pipeline stages; how attention is cut within them is still open.

    Its terms are those of equation 29, in seconds. Collectives are those of one layer.
    """

    shape: Shape
    chip: GPU
    assumptions: Assumptions
    group: object  # GPUs of one stage
    tokens: object  # of a micro-batch
    block: Span
    dispatch: Collective | None
    launches: object
    hops: object
    weights: object
    activations: object
    cache: object
    arithmetic: object
    attention_arithmetic: object
    repeated_arithmetic: object

    def of(self, points):
        """The same at some points of it, where numbers are one-dimensional arrays."""
        arrays = {name: value for name, value in vars(self).items() if getattr(value, "ndim", 0)}
        return replace(self, **{name: value[points] for name, value in arrays.items()})

    def network(self, kind):
        """The collectives of the feed-forward block, in one kind of layout."""
        return feed_forward_network(self.shape, self.chip, self.group, self.block, kind, self.assumptions)

    def attention_network(self, kind, spread):
        """The collectives of attention over the GPUs of a :class:`Span`."""
        return attention_network(self.shape, self.chip, spread, kind, self.assumptions)

    def waiting(self, spread):
        """Seconds that the all-reduces of a block wait for the other nodes of a :class:`Span`, at the least."""
        per_node = min(protocol.per_node for protocol in self.assumptions.protocols)
        return self.shape.n_layers * ALL_REDUCE * per_node * spread.doublings

    def layer(self, network):
        """Seconds of one layer's collectives, dispatch to the experts left out."""
        return added(one.time(self.tokens) for one in network)

    def reading(self, scale_down, ranks):
        """The terms of reading, with attention's matrices read as often as it is scaled down."""
        matrices, activations = attention_bytes(self.shape, ranks, self.assumptions)
        repeated = self.shape.n_layers * scale_down / _memory_rate(self.chip, self.group)
        return {
            "weights": self.weights + repeated * matrices,
            "activations": self.activations + repeated * activations * self.tokens,
            "cache": self.cache,
        }

    def multiplying(self, scale_down):
        """The terms of multiplying, with attention's projections multiplied as often as it is scaled down."""
        return {
            "arithmetic": self.arithmetic + scale_down * self.repeated_arithmetic,
            "attention arithmetic": self.attention_arithmetic,
        }

    def before(self):
        """Seconds of what does not depend on how attention is cut: launches, dispatches and hops."""
        if self.dispatch is None:
            return self.launches + self.hops
        dispatches = self.shape.n_layers * self.assumptions.dispatches
        return self.launches + dispatches * self.dispatch.time(self.tokens) + self.hops

    def overlapped(self, scale_down, ranks):
        """The longer of reading and multiplying."""
        reading, multiplying = self.reading(scale_down, ranks), self.multiplying(scale_down)
        return maximum(added(reading.values()), added(multiplying.values()))


def one_pass(shape, chip, stages, n_gpu, batch, context, new_tokens, assumptions):
    """A pass through the model in so many pipeline stages.

    Parameters
    ----------
    shape : Shape
    chip : GPU
    stages, n_gpu, batch, context, new_tokens : float or array
    assumptions : Assumptions

    Returns
    -------
    Pass
    """
    group, micro = n_gpu / stages, batch / stages
    tokens, computed = micro * new_tokens, batch * new_tokens
    experts = expert_groups(shape, group, micro, assumptions)
    dense = _is_one(shape.n_experts)
    dispatch = None if dense else dispatch_network(shape, chip, group, experts, assumptions)
    hop = stage_network(shape, chip, group, assumptions)
    rate, used = _memory_rate(chip, group), experts_used(shape, tokens, assumptions)
    matrices, activations = feed_forward_bytes(shape, group, experts, assumptions)
    unembedding = shape.weight_bytes * embedding_params(shape)
    spread, pairs, repeated = _flop(shape, context, assumptions)
    each = computed / (n_gpu * (chip.flops * chip.flops_fraction))
    return Pass(
        shape, chip, assumptions, group, tokens,
        block=feed_forward_span(chip, group, experts),
        dispatch=dispatch,
        launches=launches(shape, assumptions),
        hops=(stages - 1) * hop.time(tokens),
        weights=(shape.n_layers * used * matrices + unembedding) / rate,
        activations=shape.n_layers * used * activations * tokens / rate,
        cache=cache_bytes(shape, context, micro, batch, assumptions) / rate,
        arithmetic=each * spread,
        attention_arithmetic=each * pairs,
        repeated_arithmetic=each * repeated,
    )  # fmt: skip


@equation("29", unit="s", n_gpu="1 > 0", batch="1", context="1", new_tokens="1")
def layout_latency(
    shape: Shape, chip: GPU, cut: Cut, n_gpu, batch, context, new_tokens, assumptions: Assumptions
):
    """Time of one pass through the model in one layout.

    Launches, the network, and then the longer of reading and multiplying, which overlap. The chip stands at the peak of
    the model's weight format (``records.computing_at``). Whether the model fits is not asked here
    (:func:`search.infeasible`).

    Examples
    --------
    >>> from inferlib.papers.erdil2025 import chips, models
    >>> llama, h100 = models["Llama 3 70B"].shape, chips["H100"]
    >>> pass_time = layout_latency(llama, h100, Cut(kind="1D"), 8, 32, 4096, 1, Assumptions())
    >>> round(1e3 * pass_time, 1)
    13.6
    """
    at = one_pass(shape, chip, cut.stages, n_gpu, batch, context, new_tokens, assumptions)
    ranks = at.group / cut.scale_down
    network = at.layer(at.attention_network(cut.kind, span(chip, ranks)) + at.network(cut.kind))
    return at.before() + shape.n_layers * network + at.overlapped(cut.scale_down, ranks)


def added(times):
    """The sum of some times, of which there is at least one."""
    return reduce(add, times)


def launches(shape, assumptions):
    """Seconds spent launching kernels in all layers (equation 30's first term)."""
    return shape.n_layers * assumptions.kernels * assumptions.t_kernel


def capacity_needed(shape, context, micro, batch, assumptions):
    """Bytes that weights and cache take, as the source's test of capacity sees them."""
    tables = 2 if assumptions.embedding_multiplied else 1
    weights = attention_params(shape) + feed_forward_params(shape) + tables * embedding_params(shape)
    sequences = micro if assumptions.cache_of_micro_batch else batch
    cache = shape.n_layers * cache_values(shape) * shape.activation_bytes * context * sequences
    return shape.weight_bytes * weights + cache


def _is_one(value):
    """Whether a model is dense: a number of experts that is plainly one, not a symbol or an array."""
    return isinstance(value, (int, float)) and value == 1
