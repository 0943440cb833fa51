"""The operators of a layer: what one chip starts, reads, multiplies and sends.

Every kind of attention and of block is a generator of operators, in the order in which a token meets them; ``at`` is
the :class:`~tokenprice.decode.ShardedModel` that runs them. Kinds of 2025 and 2026: ``sparse_attention.py``.
"""

from typing import NamedTuple

from inferlib.ops import maximum, minimum, symbolic, where
from inferlib.system import Accelerator
from tokenprice import calibration, kernels
from tokenprice.kernels import Kernel, Link

FLOP_PER_WEIGHT = 2
SENT, RESULT = 1, 2  # bytes of a value on its way to an expert, and of a result that chips exchange

# Terms of one pair overlap, so the longer counts; pairs follow one another.
STAGES = (
    ("weights", "arithmetic"), ("cache", "attention arithmetic"), ("selection",),
    ("expert weights", "expert arithmetic"), ("expert kernels",), ("kernel launch",), ("collective latency",),
    ("collective bandwidth",), ("expert exchange",), ("pipeline",), ("engine",),
)  # fmt: skip
# Where the start, the bytes and the FLOP of a kernel are counted.
TERMS = {
    "gemm": ("kernel launch", "weights", "arithmetic"),
    "attention": ("kernel launch", "cache", "attention arithmetic"),
    "experts": ("expert kernels", "expert weights", "expert arithmetic"),
}


class KernelCall(NamedTuple):
    """A kernel on one chip: the part of the model that it serves, the bytes it reads, the FLOP it does."""

    part: str
    kind: str
    kernel: Kernel
    chip: Accelerator  # at the format in which it multiplies
    bytes: float
    flop: float
    inner: float = 0
    many: float = 1

    def terms(self, count):
        """Seconds of so many layers, by term."""
        start, read, work = TERMS[self.kind]
        n = count * self.many
        return {
            start: kernels.start_time(self.kernel, n, self.inner),
            read: n * kernels.read_time(self.kernel, self.chip, self.bytes),
            work: n * kernels.work_time(self.kernel, self.chip, self.flop),
        }


class AllReduce(NamedTuple):
    """The chips of an instance add their parts of a layer's result together."""

    link: Link
    message: float
    tp: float
    boxes: float  # seconds that it takes longer over several boxes

    def terms(self, count):
        empty = kernels.reduce_time(self.link, 0)
        fixed = count * empty + count * self.boxes
        sent = count * (kernels.reduce_time(self.link, self.message) - empty)
        return {
            "collective latency": where(self.tp > 1, fixed, 0),
            "collective bandwidth": where(self.tp > 1, sent, 0),
        }


class FixedTime(NamedTuple):
    """Seconds that are a term of their own."""

    term: str
    seconds: float

    def terms(self, count):
        return {self.term: count * self.seconds}


def gemm(at, part, inner, outer, many=1):
    """A matrix product of all rows: the weights are read once, and each is multiplied once a row."""
    kernel, size, chip = at.served("gemm", part)
    weights = inner * outer
    return KernelCall(
        part, "gemm", kernel, chip, weights * size, FLOP_PER_WEIGHT * at.rows * weights, inner, many
    )


def attention_call(at, attention):
    """Attention over the cache."""
    kernel = at.operators.kernel("attention", calibration.format_name(at.kv_cache_dtype))
    return KernelCall("cache", "attention", kernel, at.chip, *at.visible_tokens(attention))


def gqa(at, attention):
    """Queries, keys and values by one product; attention; the output."""
    d, heads = at.model.d_model, attention.n_heads / at.tp
    value = attention.value_dim or attention.head_dim
    # Engines load keys that are the values too into the places of both (vLLM's gemma4.py), and read both.
    kept = maximum(attention.n_kv_heads / at.tp, 1) * (
        attention.head_dim + value
    )  # a head of keys stays whole
    yield gemm(at, "attention", d, heads * attention.head_dim + kept + attention.gate / at.tp)
    yield attention_call(at, attention)
    yield gemm(at, "attention", heads * value, d)


def mla(at, attention):
    """Down to the latents, on every chip; queries up and into the latent of keys; attention; values; the output."""
    d, heads, rank = at.model.d_model, attention.n_heads / at.tp, attention.kv_rank
    yield gemm(at, "attention", d, (attention.q_rank or 0) + rank + attention.rope_dim)
    yield gemm(at, "attention", attention.q_rank or d, heads * (attention.nope_dim + attention.rope_dim))
    yield gemm(at, "attention", attention.nope_dim, heads * rank)
    yield attention_call(at, attention)
    yield gemm(at, "attention", rank, heads * attention.value_dim)
    if (attention.gate == 0) is not True:
        yield gemm(at, "attention", d, attention.gate / at.tp)
    yield gemm(at, "attention", heads * attention.value_dim, d)


def dense(at, block):
    """Gate and up by one product, then down."""
    yield from feed_forward(at, "feed-forward", block, block.d_ff / at.tp)


def feed_forward(at, part, block, width, many=1):
    d = at.model.d_model
    yield gemm(at, part, d, (block.matrices - 1) * width, many)
    yield gemm(at, part, width, d, many)


def experts(at, block):
    """The router; those experts that the rows reach, each chip its part; the shared expert."""
    yield gemm(at, "router", at.model.d_model, block.n_experts)
    kernel, size, chip = at.served("experts", "experts")
    stream = at.model.d_model
    if block.d_latent is not None:
        stream = block.d_latent  # one for all routed experts, made on every chip, at 16 bits like the router
        yield gemm(at, "router", at.model.d_model, stream)
        yield gemm(at, "router", stream, at.model.d_model)
    one = block.matrices * stream * block.d_expert / at.expert_chips
    touched = kernels.distinct_experts(block.n_experts, block.n_active, maximum(at.expert_rows, 1))
    flop = FLOP_PER_WEIGHT * at.expert_rows * block.n_active * one
    kernel = kernel.replace(
        prefill=kernels.block_share(kernel, block.d_expert / (at.cut if at.travel else at.tp))
    )
    yield KernelCall(
        "experts", "experts", kernel, chip, touched * one * size, flop, touched * at.cut / at.expert_chips
    )
    shared = block.d_shared
    if (at.deployment.layout.ep == 1) is not True:
        yield FixedTime("engine", where(shared > 0, at.engine.shared, 0))
    if (shared == 0) is not True:
        # Experts over the chips of all copies leave the shared one whole on each.
        width = shared / (1 if at.travel else at.tp)
        yield from feed_forward(at, "shared experts", block, width, where(shared > 0, 1, 0))


def all_reduce(at):
    """An all-reduce of the rows, unless there is one chip only."""
    if (at.tp == 1) is True:
        return
    n, beyond = maximum(at.tp, 2), at.tp > at.box
    link, far = (at.operators.link(n, kind) for kind in (at.links, "library"))
    if symbolic(beyond):
        pairs = ((getattr(far, name), getattr(link, name)) for name in ("latency", "bandwidth"))
        link = Link(*(where(beyond, *pair) for pair in pairs))
    elif beyond:  # all-reduces that run in a recorded graph stay in one box
        link = far
    boxes = kernels.node_time(at.engine, 1, at.tp, minimum(at.tp, at.box))
    yield AllReduce(link, at.rows * at.model.d_model * RESULT, at.tp, boxes)


def exchange(at, block):
    """Dispatch in 8 bits and combine in 16 of one layer's tokens, on the slower of the links they use; seconds."""
    chip, inside = at.chip, at.expert_chips <= at.box
    bandwidth = where(inside, chip.scale_up_bandwidth, chip.scale_out_bandwidth)
    if bandwidth is None:
        raise ValueError(f"{chip.name or 'the chip'} states no bandwidth to send tokens to experts over")
    stream = block.d_latent or at.model.d_model
    data = at.rows / at.tp * minimum(block.n_active, at.expert_chips - 1) * stream
    latency = at.operators.link(at.expert_chips, "library").latency
    share = at.operators.exchange
    return sum(kernels.exchange_time(latency, data * size, bandwidth, share) for size in (SENT, RESULT))
