"""Operators of a layer on one chip: kernels with their bytes and FLOP, all-reduces, and fixed times.

Each kind of attention or feed-forward block is a generator of operators in order of execution; ``at`` is the
:class:`~tokenprice.decode.ShardedModel` that runs them. Attention of 2025 and 2026 is in ``sparse_attention.py``.
"""

from typing import NamedTuple

from inferlib.ops import maximum, minimum, symbolic, where
from inferlib.system import Accelerator, NotDescribed
from tokenprice import calibration, kernels
from tokenprice.kernels import Kernel, Link

FLOP_PER_WEIGHT = 2
SENT, RESULT = 1, 2  # bytes per value sent to an expert, and per value of an all-reduced result
# Kernels of norms and gates only stream activations, at the share of the bandwidth that NVIDIA's aiconfigurator gives
# them (github.com/ai-dynamo/aiconfigurator at 095f58a: ElementWise in sdk/models; mem_bw_empirical_scaling_factor).
STREAM = Kernel(start=0.0, share=0.8)

# Terms of one group overlap, so the longest counts; groups run one after another.
STAGES = (
    ("weights", "arithmetic"), ("cache", "attention arithmetic"), ("selection",),
    ("expert weights", "expert arithmetic"), ("expert kernels",), ("kernel launch",), ("collective latency",),
    ("collective bandwidth",), ("expert exchange",), ("pipeline",), ("activations",), ("engine",),
)  # fmt: skip
# Terms that hold a kernel's start, reading and arithmetic.
TERMS = {
    "gemm": ("kernel launch", "weights", "arithmetic"),
    "attention": ("kernel launch", "cache", "attention arithmetic"),
    "experts": ("expert kernels", "expert weights", "expert arithmetic"),
}


class KernelCall(NamedTuple):
    """One kernel on one chip: the part of the model it belongs to, the bytes it reads, and its FLOP."""

    part: str
    kind: str
    kernel: Kernel
    chip: Accelerator  # with its peak in the kernel's format
    bytes: float
    flop: float
    inner: float = 0
    many: float = 1

    def terms(self, count):
        """Time of ``count`` layers in seconds, by term."""
        start, read, work = TERMS[self.kind]
        n = count * self.many
        return {
            start: kernels.start_time(self.kernel, n, self.inner),
            read: n * kernels.read_time(self.kernel, self.chip, self.bytes),
            work: n * kernels.work_time(self.kernel, self.chip, self.flop),
        }


class AllReduce(NamedTuple):
    """All-reduce over the chips of a tensor-parallel instance."""

    latency: float  # seconds of an all-reduce without bytes
    sending: float  # further seconds for its bytes
    tp: float

    def terms(self, count):
        return {
            "collective latency": where(self.tp > 1, count * self.latency, 0),
            "collective bandwidth": where(self.tp > 1, count * self.sending, 0),
        }


class FixedTime(NamedTuple):
    """A fixed time in seconds, as a term of its own."""

    term: str
    seconds: float

    def terms(self, count):
        return {self.term: count * self.seconds}


def gemm(at, part, inner, outer, many=1, rows=None):
    """Matrix product of some rows (default: all): each weight is read once and multiplied once per row."""
    kernel, size, chip = at.kernel_for("gemm", part)
    weights = inner * outer
    flop = FLOP_PER_WEIGHT * weights * (at.rows if rows is None else rows)
    return KernelCall(part, "gemm", kernel, chip, weights * size, flop, inner, many)


def activations(at, values):
    """A norm or a gate of a prompt, by the values per token that it reads and writes.

    In a step the engine's time per layer, which is fitted, contains them.
    """
    if at.cached is not None:
        yield FixedTime("activations", kernels.read_time(STREAM, at.chip, at.rows * values * RESULT))


def attention_call(at, attention):
    """Attention over the KV cache."""
    kernel = at.operators.kernel("attention", calibration.format_name(at.kv_cache_dtype))
    return KernelCall("cache", "attention", kernel, at.chip, *at.visible_tokens(attention))


def gqa(at, attention):
    """Grouped-query attention: one product for queries, keys and values; attention; the output projection."""
    d = at.model.d_model
    heads = attention.n_heads / at.tp
    value = attention.value_dim or attention.head_dim
    # Where keys serve as values too, engines load them into both places (vLLM's gemma4.py), and read both.
    kept = maximum(attention.n_kv_heads / at.tp, 1) * (
        attention.head_dim + value
    )  # a key-value head is not split
    yield gemm(at, "attention", d, heads * attention.head_dim + kept + attention.gate / at.tp)
    yield attention_call(at, attention)
    yield gemm(at, "attention", heads * value, d)


def mla(at, attention):
    """Latent attention (MLA): down-projections on every chip, queries into the latent, attention, values, output."""
    d = at.model.d_model
    heads = attention.n_heads / at.tp
    rank = attention.kv_rank
    yield gemm(at, "attention", d, (attention.q_rank or 0) + rank + attention.rope_dim)
    yield gemm(at, "attention", attention.q_rank or d, heads * (attention.nope_dim + attention.rope_dim))
    yield gemm(at, "attention", attention.nope_dim, heads * rank)
    yield attention_call(at, attention)
    yield gemm(at, "attention", rank, heads * attention.value_dim)
    if (attention.gate == 0) is not True:
        yield gemm(at, "attention", d, attention.gate / at.tp)
    yield gemm(at, "attention", heads * attention.value_dim, d)


def dense(at, block):
    """Dense feed-forward block: gate and up projections in one product, then down."""
    yield from feed_forward(at, "feed-forward", block, block.d_ff / at.tp)


def feed_forward(at, part, block, width, many=1):
    d = at.model.d_model
    yield gemm(at, part, d, (block.matrices - 1) * width, many)
    yield from activations(at, block.matrices * width)
    yield gemm(at, part, width, d, many)


def experts(at, block):
    """Mixture of experts: the router, the routed experts that rows reach (sharded), and the shared expert."""
    yield gemm(at, "router", at.model.d_model, block.n_experts)
    kernel, size, chip = at.kernel_for("experts", "experts")
    stream = block.d_latent or at.model.d_model
    if block.d_latent is not None:  # one projection for all experts, on every chip at 16 bits like the router
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
        # With expert parallelism over all copies, every chip holds the shared expert whole.
        width = shared / (1 if at.travel else at.tp)
        yield from feed_forward(at, "shared experts", block, width, where(shared > 0, 1, 0))


def all_reduce(at):
    """All-reduce of all rows; none on a single chip."""
    if (at.tp == 1) is True:
        return
    n = maximum(at.tp, 2)
    beyond = at.tp > at.box
    link, far = (at.operators.link(n, kind) for kind in (at.links, "library"))
    if symbolic(beyond):
        pairs = ((getattr(far, name), getattr(link, name)) for name in ("latency", "bandwidth"))
        link = Link(*(where(beyond, *pair) for pair in pairs))
    elif beyond:  # custom all-reduces in CUDA graphs work within one box
        link = far
    boxes = kernels.node_time(at.engine, 1, at.tp, minimum(at.tp, at.box))
    empty = kernels.reduce_time(link, 0)
    sent = kernels.reduce_time(link, at.rows * at.model.d_model * RESULT) - empty
    yield AllReduce(empty + boxes, sent, at.tp)


def exchange(at, block):
    """Seconds to dispatch (8 bits) and combine (16 bits) one layer's tokens, on the slower link involved."""
    chip = at.chip
    inside = at.expert_chips <= at.box
    bandwidth = where(inside, chip.scale_up_bandwidth, chip.scale_out_bandwidth)
    if bandwidth is None:
        raise NotDescribed(f"{chip.name or 'the chip'} states no bandwidth to send tokens to experts over")
    stream = block.d_latent or at.model.d_model
    sends = minimum(block.n_active, at.expert_chips - 1)
    if at.cached is not None:  # a prefill sends a token once to each other node, which forwards it inside
        sends = where(inside, sends, minimum(sends, at.expert_chips / at.box - 1))
    data = at.rows / at.tp * sends * stream
    latency = at.operators.link(at.expert_chips, "library").latency
    share = at.operators.exchange
    return sum(kernels.exchange_time(latency, data * size, bandwidth, share) for size in (SENT, RESULT))
