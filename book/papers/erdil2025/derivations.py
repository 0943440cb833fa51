"""Erdil 2025: what its complete model implies beyond what the paper prints, derived step by step."""

import sympy as sp

from book.papers.erdil2025 import limits
from inferlib.equation import in_notation, symbolic
from inferlib.papers.erdil2025.equations import printed
from inferlib.papers.erdil2025.records import GPU, Protocol
from inferlib.papers.erdil2025.shape import Shape, cache_values

derivation, symbol, equals = in_notation("erdil2025", "erdil2025_model")
SHAPE, CHIP = symbolic(Shape, "erdil2025"), symbolic(GPU, "erdil2025")
PROTOCOL = symbolic(Protocol, "erdil2025")


N_GPU, BATCH, CONTEXT = symbol("n_gpu batch context")


@derivation(proves=limits.long_context_intensity)
def long_context_intensity():
    """Arithmetic per byte of cache when attention is all that counts."""
    flop_per_pair = symbol("flop_per_pair")
    flop = flop_per_pair * SHAPE.n_layers * SHAPE.n_heads * SHAPE.head_dim * CONTEXT
    read = SHAPE.n_layers * cache_values(SHAPE) * SHAPE.activation_bytes * CONTEXT
    return (
        "Arithmetic of one token: each query against each key, and its weight times each value.",
        sp.Eq(sp.Symbol("F"), flop),
        "The cache that is read for it: keys and values of every head that queries share.",
        sp.Eq(sp.Symbol("R"), read),
        "Layers, heads, their width and the context fall out; the group remains.",
        equals("long_context_intensity", sp.simplify(flop / read)),
    )


@derivation(proves=limits.network_batch)
def network_batch():
    """The batch at which moving activations takes as long as waiting for the collectives."""
    latency = limits.node_all_reduce_latency(PROTOCOL, N_GPU)
    moving = printed.extra_all_reduce_time(SHAPE, CHIP, PROTOCOL, N_GPU, BATCH)
    solution = sp.solve(sp.Eq(latency, moving), BATCH)[0]
    return (
        "An all-reduce inside a node waits, whatever it carries,",
        equals("node_all_reduce_latency", latency),
        "and then moves the batch's activations.",
        equals("extra_all_reduce_time", moving),
        "Up to this batch, waiting takes longer than moving. It does not depend on the model's depth.",
        equals("network_batch", solution),
    )
