"""Erdil 2025, sections 3 and 4: the equations of the complete model one by one, as the paper prints them.

They describe two-dimensional tensor parallelism without pipeline or expert parallelism and a feed-forward
block of two matrices (section 3.6). What the tables were made with is
:func:`inferlib.papers.erdil2025.equations.model.layout_latency`.
"""

from collections.abc import Callable

from inferlib.ops import maximum, sqrt
from inferlib.papers.erdil2025.equations import model as m
from inferlib.papers.erdil2025.shape import (
    attention_params,
    cache_values,
    embedding_params,
    feed_forward_params,
    qkv_width,
)

equation: Callable = m.equation  # of the same chapter, with the same records
_THERE_AND_BACK = 2  # an all-reduce is a reduce-scatter and an all-gather


@equation("21", sparsity="1 > 0")
def active_parameters(shape, sparsity):
    """Parameters that one token is multiplied with: only the feed-forward blocks are sparse."""
    return attention_params(shape) + feed_forward_params(shape) / sparsity + embedding_params(shape)


@equation("22", sparsity="1 > 0", also={"32": {}})
def parameters_read(shape, sparsity, batch):
    """Mean parameters that a batch reads from memory; equation 32 prints the same again."""
    used = 1 - (1 - 1 / sparsity) ** batch
    return attention_params(shape) + used * feed_forward_params(shape) + embedding_params(shape)


@equation("24", unit="s", n_ranks="1 > 0")
def extra_all_reduce_time(shape, chip, protocol, n_ranks, batch):
    """Time that bandwidth adds to an all-reduce of one residual stream within a node."""
    # The paper divides by the bandwidth of a whole all-reduce, a quarter of NVLink's with LL: two passes, half each.
    size = shape.activation_bytes * shape.d_model * batch
    return _THERE_AND_BACK * size * m.time_inside(chip, n_ranks, 1) / protocol.share


@equation("43", unit="B", precision="B", also={"25": {}})
def bytes_reduced(shape, batch, precision):
    """Bytes that all layers together have to all-reduce."""
    return (qkv_width(shape) + 2 * shape.d_model + shape.d_ff) * batch * shape.n_layers * precision


@equation("41", unit="B", bytes_reduced="B", also={"26": {}})
def inter_node_reads(all_nodes, bytes_reduced):
    """Bytes that nodes read from one another; equation 26 prints the same."""
    return _THERE_AND_BACK * (sqrt(all_nodes) - 1) * bytes_reduced


@equation("42", unit="B", all_nodes="1 > 0", bytes_reduced="B")
def intra_node_reads(n_gpu, all_nodes, bytes_reduced):
    """Bytes that GPUs read from others of their node."""
    return _THERE_AND_BACK * (sqrt(n_gpu / all_nodes) - 1) * sqrt(all_nodes) * bytes_reduced


@equation("27", unit="B", all_nodes="1 > 0", bytes_reduced="B")
def intra_node_reads_of_all_nodes(n_gpu, all_nodes, bytes_reduced):
    """Bytes read within nodes as section 3.4 prints them, with all nodes (not their square root) in each all-reduce."""
    return sqrt(all_nodes) * intra_node_reads(n_gpu, all_nodes, bytes_reduced)


@equation("28", unit="s", n_gpu="1 > 0", inter_node_reads="B", intra_node_reads="B")
def transfer_time(chip, n_gpu, inter_node_reads, intra_node_reads):
    """Time that all bytes take, first between and then inside nodes."""
    between = inter_node_reads / (n_gpu * chip.scale_out_bandwidth)
    return between + intra_node_reads / (n_gpu * chip.scale_up_bandwidth)


@equation(unit="s", n_gpu="1 > 0", network_and_kernel_time="s", bytes_read="B", total_flop="FLOP")
def overlapped_latency(chip, n_gpu, network_and_kernel_time, bytes_read, total_flop):
    """Equation 29 as it stands in print: waiting, and then the longer of reading and multiplying."""
    reading = bytes_read / (n_gpu * chip.memory_bandwidth)
    return network_and_kernel_time + maximum(reading, total_flop / (n_gpu * chip.flops))


@equation("30", unit="s", t_kernel="s", network_communication_time="s")
def network_and_kernel_time(shape, reductions, t_kernel, network_communication_time):
    """Time that neither reading nor multiplying can hide."""
    return shape.n_layers * reductions * t_kernel + network_communication_time


@equation("31", unit="B")
def bytes_read(shape, parameters_read, activations_read):
    """Bytes that memory delivers for one token of every sequence."""
    return shape.weight_bytes * parameters_read + shape.activation_bytes * activations_read


@equation("33")
def activations_read(cache_elements_read, inputs_and_outputs_read):
    """Activations that memory delivers: the cache, and inputs and outputs of the multiplications."""
    return cache_elements_read + inputs_and_outputs_read


@equation("34")
def cache_elements_read(shape, context, batch):
    """Values of the KV cache that one token of every sequence reads."""
    return cache_values(shape) * shape.n_layers * context * batch


@equation("35")
def inputs_and_outputs_read(shape, batch):
    """Inputs and outputs of all matrix multiplications of a batch."""
    width = shape.n_heads * shape.head_dim
    attention = 2 * shape.d_model + qkv_width(shape) + width
    return shape.n_layers * batch * (attention + 2 * shape.d_model + 2 * shape.d_ff)


@equation("36", unit="FLOP", pointwise_flop="FLOP", attention_flop="FLOP")
def total_flop(batch, pointwise_flop, attention_flop):
    """FLOP of one token of every sequence."""
    return batch * (pointwise_flop + attention_flop)


@equation("37", unit="FLOP", flop_per_pair="FLOP")
def attention_flop(shape, context, flop_per_pair):
    """FLOP of one token's attention over its context."""
    return flop_per_pair * shape.n_layers * shape.n_heads * shape.head_dim * context


@equation("38", unit="FLOP")
def pointwise_flop(shape, active_parameters):
    """FLOP of one token in all matrix multiplications with weights."""
    return shape.flop_per_weight * active_parameters


@equation("39", unit="s", all_reduce_latency="s", transfer_time="s")
def network_communication_time(shape, reductions, all_reduce_latency, transfer_time):
    """Time of all communication: latency of the all-reduces, and their bytes."""
    return shape.n_layers * reductions * all_reduce_latency + transfer_time


@equation("40", unit="s", all_nodes="1 > 0")
def all_reduce_latency(protocol, n_gpu, all_nodes):
    """Latency of one all-reduce in an evenly cut instance: equation 23 for the square roots of both."""
    return m.collective_latency(protocol, sqrt(n_gpu), sqrt(all_nodes), _THERE_AND_BACK)


@equation("45", price="1 > 0")
def value(speed, price, alpha):
    """The quantity that a customer maximises: the worth of a token over its price."""
    return speed**alpha / price
