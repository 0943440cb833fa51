"""Erdil 2025, section 3 and its footnotes: everything their text prints, recomputed.

A cell is a function of a reader, so that ``explain`` follows one at a time; a statement is checked by a function that
returns its truth and the numbers behind it.
"""

from functools import cache, partial

import numpy as np

from book.audit.explanations import named
from book.audit.grading import reproduces
from book.papers.erdil2025 import speculation
from book.papers.erdil2025.readings import PRINTED_EQUATIONS
from inferlib.equation import untraced
from inferlib.papers.erdil2025 import decode, search
from inferlib.papers.erdil2025.equations import model as m, printed, toy
from inferlib.papers.erdil2025.records import PRINTED, PROTOCOLS, ToyAssumptions, load_chip, load_model
from inferlib.papers.erdil2025.shape import cache_values

# Searches try thousands of layouts, which do not explain a cell.
token_latency, speculative_latency = untraced(search.token_latency), untraced(speculation.speculative_latency)
best_layout, terms = untraced(decode.best_layout), untraced(decode.terms)
H100 = load_chip("H100")
LL = next(protocol for protocol in PROTOCOLS if protocol.name == "LL")
UNLIMITED = H100.replace(memory_capacity=1e18)  # an H100 with unlimited memory
DEEPSEEK = load_model("DeepSeek-V3").shape


def feed_forward(shape, group, experts, kind, assumptions=PRINTED):
    """The all-reduces of a feed-forward block on ``group`` H100s."""
    return m.feed_forward_network(shape, H100, group, experts, kind, assumptions)


# Section 3.1: attention.


def bytes_and_flop_of_latents(format="fp8"):
    """FLOP that latent attention needs for a byte of cache, and that an H100 has for one, attainable rates."""
    flop = PRINTED.flop_per_pair * DEEPSEEK.n_heads * DEEPSEEK.kv_rank
    chip = H100.at(format).capped()
    moved = cache_values(DEEPSEEK) * DEEPSEEK.activation_bytes
    return flop / moved, chip.flops / chip.memory_bandwidth


def arithmetic_until():
    """Context up to which DeepSeek-V3's arithmetic outlasts its cache in large batches, attention at 16 bits.

    Weights at 8 bits multiply at the 8-bit rate; reading them is shared by the batch and left out.
    """
    weights = sum(m.flop_per_token(DEEPSEEK, 0, PRINTED))
    each = sum(m.flop_per_token(DEEPSEEK, 1, PRINTED)) - weights
    eight, sixteen = (H100.at(format).capped() for format in ("fp8", "bf16"))
    cache = cache_values(DEEPSEEK) * DEEPSEEK.activation_bytes * DEEPSEEK.n_layers / sixteen.memory_bandwidth
    return weights / eight.flops / (cache - each / sixteen.flops)


def _latency_step(ranks, nodes):
    """What one more GPU in a node, or one doubling of nodes, adds to an all-reduce (equation 23)."""
    start = m.collective_latency(LL, 1, 1, 2)
    return m.collective_latency(LL, ranks, nodes, 2) - start


@reproduces("Text 3.3")
def _text_3_3():
    row = "all-reduce over a tree (eq. 23)"
    return {
        (row, "base"): lambda read: m.collective_latency(LL, 1, 1, 2),
        (row, "one more rank in a node"): lambda read: _latency_step(2, 1),
        (row, "one doubling of the nodes"): lambda read: _latency_step(2, 2),
        ("ranks of an all-reduce", "exponent of the instance size"): lambda read: _exponent(0, 64),
        ("nodes of an all-reduce", "exponent of the instance's nodes"): lambda read: _exponent(
            1, m.span(H100, 64, "1D")[1]
        ),
    }


def _exponent(place, whole):
    """Return the exponent with which the ranks (0) or nodes (1) of an evenly cut all-reduce grow, at 64 H100s."""
    what = ("ranks", "nodes")[place]
    met = named(f"{what} of an all-reduce on 64 H100s, cut both ways", m.span(H100, 64, "2D")[place])
    return float(np.log2(met) / np.log2(named(f"{('GPUs', 'nodes')[place]} of the instance", whole)))


EXAMPLE = "extra time of an all-reduce (eq. 24)"


def _extra(read):
    size = read(EXAMPLE, "bytes of a value") * read(EXAMPLE, "width of the model") * read(EXAMPLE, "batch")
    ranks = read(EXAMPLE, "ranks")
    return size * (ranks - 1) / (ranks * _reduced_each_way(read))


def _reduced_each_way(read):
    """Bandwidth of an all-reduce with LL: half of what is read, there and back."""
    return read("H100", "reported NVLink bandwidth") / 2 * LL.share / 2


def equal_batch():
    """The batches at which bytes take as long as latency, and b*: eight GPUs and a width of 10,000."""
    shape = load_model("Llama 3 70B").shape.replace(d_model=10_000)
    extra = printed.extra_all_reduce_time(shape, H100, LL, 8, 1)
    latency = m.collective_latency(LL, 8, 1, 2)
    moving = printed.transfer_time(H100, 8, 0.0, printed.intra_node_reads(8, 1, 2 * 10_000))
    both_ways = printed.all_reduce_latency(LL, 8, 1) / moving
    return latency / extra, both_ways, toy.critical_batch(load_model("Llama 3 70B"), H100)


def traffic_kept():
    """Fraction of the network's bytes that remain with 8-bit weights."""
    shape = load_model("Llama 3 70B").shape
    both, narrow = (feed_forward(s, 8, 1, "1D")[0] for s in (shape, shape.replace(weight_bytes=1.0)))
    return narrow.per_token / both.per_token


def _reads_of_a_ring(read):
    """Every rank reads 1/R of the tensor from its neighbour in each of 2 (R - 1) steps."""
    ranks, hop = 10, ToyAssumptions().t_hop
    steps = toy.ring_all_reduce_time(ranks, hop) / hop
    return steps / (ranks - 1)


@reproduces("Text 3.4")
def _text_3_4():
    return {
        (EXAMPLE, ""): _extra,
        (EXAMPLE, "bandwidth"): _reduced_each_way,
        ("bytes read in an all-reduce", "factor before X (R - 1)"): _reads_of_a_ring,
        ("nodes in intra-node network reads", "exponent (eq. 27)"): lambda read: _node_exponent(
            printed.intra_node_reads_of_all_nodes
        ),
    }


@reproduces("Text 3.4")
def _bandwidth(holds):
    one_way, both_ways, critical = equal_batch()
    holds(
        "bandwidth takes longer than latency only beyond the critical batch",
        both_ways > critical,
        f"eight GPUs: equal at a batch of {both_ways:.0f}, {both_ways / 2:.0f} with LL's half of the bandwidth; by "
        f"equations 23 and 24 at {one_way:.0f}; the critical batch is {critical:.0f} at 16 bits",
        fair="by the final model's equations 40 and 42, at the whole bandwidth",
    )
    shape = load_model("Llama 3 70B").shape
    one, two = (printed.bytes_reduced(shape, 1, s) for s in (shape.weight_bytes, shape.activation_bytes))
    holds(
        "bytes reduced have the precision of the parameters (eq. 25)",
        one == two,
        "both are 2 bytes up to equation 31; equation 43 has the activations'",
        fair="while weights and activations have one precision",
    )


def _node_exponent(reads):
    """Power of the nodes in the bytes read inside nodes, at as many GPUs per node."""
    few, many = (reads(64 * nodes, nodes, 1.0) for nodes in (1, 16))
    return np.log2(many / few) / np.log2(16)


# Section 3.6: the final equations.


@cache
def literal_and_coded():
    """Fastest Llama 3 70B at 8 bits: equations as printed; the notebook without 1D layouts and pipelines."""
    model = load_model("Llama 3 70B 8-bit")
    at = model, H100, np.geomspace(1, 1024, 400)[:, None], np.geomspace(1, 64, 20)
    coded = PRINTED.replace(kinds=("2D",), pipelines=0)
    return tuple(float(1 / token_latency(*at, assumptions=a).min()) for a in (PRINTED_EQUATIONS, coded))


@reproduces("Text 3.6")
def _text_3_6():
    row, latency = "latency of an all-reduce (eq. 40)", partial(printed.all_reduce_latency, LL)
    return {
        (row, "base"): lambda read: latency(1, 1),
        # Four GPUs of a node make two ranks; four nodes make two, with a GPU of each.
        (row, "one more rank in a node"): lambda read: latency(4, 1) - latency(1, 1),
        (row, "one doubling of the nodes"): lambda read: latency(4, 4) - latency(1, 1),
        ("nodes in intra-node reads", "exponent (eq. 42)"): lambda read: _node_exponent(
            printed.intra_node_reads
        ),
        ("weights", "FLOP of a parameter (eq. 38)"): lambda read: printed.pointwise_flop(
            load_model("GPT-3").shape, 1.0
        ),
        "all-reduces of a layer (eq. 44)": lambda read: len(
            m.attention_network(load_model("GPT-3").shape, H100, 64, "2D", PRINTED)
            + feed_forward(load_model("GPT-3").shape, 64, 1, "2D")
        ),
    }


@reproduces("Text 3.6")
def _equations(holds):
    literal, coded = literal_and_coded()
    holds(
        "the equations are the notebook's 2D case without pipeline and experts",
        abs(literal / coded - 1) < 0.01,
        f"fastest Llama 3 70B at 8 bits: {literal:.0f} tokens/s by equations 29 to 44, {coded:.0f} by the notebook "
        "with 2D layouts and no pipeline: it also picks among three protocols, halves LL's bandwidth, spreads "
        "attention less widely and tiles activations",
    )
