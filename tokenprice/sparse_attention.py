"""Operators of sparse, pooled and linear attention (2025 and 2026), and the chips on which they were timed.

Sparse and pooled attention were timed as whole blocks, including projections and the choice of positions: a block
replaces the products and the attention kernel. Layers with a recurrent state read and write it in every step,
whatever the context.
"""

from functools import cache
from typing import NamedTuple

from inferlib import validation
from inferlib.ops import minimum
from inferlib.system import Accelerator, format_bytes
from inferlib.transformer import LatentAttention, visible_context
from tokenprice import calibration, kernels
from tokenprice.attention import CompressedAttention, DeltaAttention, StateSpace
from tokenprice.catalog import load_model
from tokenprice.kernels import Block
from tokenprice.operators import FLOP_PER_WEIGHT, RESULT, FixedTime, KernelCall, gemm

# Matrices of a block that every chip holds whole, and matrices kept at 16 bits.
WHOLE = ("query down", "latent down", "pool", "index query", "index key", "index weights")
WIDE = ("latent up", "pool")
INDEX, INDEX_WIDE = 132, 256  # bytes of an indexer key: 8 bits with a scale, or 16 bits
TILE = 128  # positions per block of keys and values that is chosen at once
SCORE = 8  # bytes to write and read one score
CHUNK = 64  # tokens of a prompt that a layer with a recurrent state processes at once


class SparseAttentionBlock(NamedTuple):
    """A block of attention in a step: its weights, the cache it reads, and the selection of positions."""

    block: Block
    chip: Accelerator
    weights: float
    cached: float
    rows: float
    context: float
    enough: float  # positions beyond which it selects

    def terms(self, count):
        weights, cached = (kernels.read_time(self.block, self.chip, n) for n in (self.weights, self.cached))
        return {
            "kernel launch": kernels.start_time(self.block, count, 0),
            "weights": count * weights,
            "cache": count * cached,
            "selection": kernels.topk_time(self.block, count, self.rows, self.context, self.enough),
        }


def kind_of(attention):
    """Return the kind of timed block for sparse or pooled attention, or ``""``."""
    if isinstance(attention, CompressedAttention):
        # Layers with only a window were not timed; layers that pool at long distances come nearest.
        return "pooled" if attention.top is None else "pooled, chosen"
    if getattr(attention, "top", None) is None:
        return ""
    if isinstance(attention, LatentAttention):
        return "borrowed" if attention.indexer is None else "sparse"
    return "" if attention.indexer is None else "blocks"


def entry_bytes(at, attention, block):
    """Bytes of a cached entry, and of an indexer's key, on one chip: what memory holds and a step reads."""
    size = attention.cache_values() / at.kv_shards(attention) * format_bytes(at.kv_cache_dtype)
    key = INDEX_WIDE if kind_of(attention) == "blocks" else INDEX
    return block.entry or size, 0 if attention.indexer is None else key


def block_of(at, attention, engine):
    """The timed block of a layer of sparse or pooled attention."""
    formats = calibration.format_name(at.formats["attention"]), calibration.format_name(at.kv_cache_dtype)
    return at.operators.block(kind_of(attention), engine, at.model.d_model, *formats)


def cached_bytes(at, attention, length):
    """Bytes of a sequence's cache in one layer, on one chip."""
    if not kind_of(attention):
        return attention.kept(length) / at.kv_shards(attention) * format_bytes(at.kv_cache_dtype)
    entries, keys = attention.entries(length)
    entry, key = entry_bytes(at, attention, block_of(at, attention, "serving"))
    return entry * entries + key * keys


def sparse(at, attention):
    """Sparse attention as one block: its matrices, the indexer's keys, and the chosen (or all pooled) positions."""
    kind = kind_of(attention)
    _, size, chip = at.kernel_for("gemm", "attention")
    block = block_of(at, attention, at.engine_class)
    held = list(_matrices(at, attention, size))
    if at.cached is not None:
        pairs, scored = _prompt_work(at, attention, kind)
        products = FLOP_PER_WEIGHT * at.rows * sum(n for n, _ in held)
        wide = at.chip.flops
        seconds = kernels.prompt_block_time(block, chip, products, pairs, wide, scored, at.rows)
        yield FixedTime("attention arithmetic", seconds)
        return
    context = at.context
    ratio = getattr(attention, "ratio", None) or 1
    entry, key = entry_bytes(at, attention, block)
    # each drafted token selects its own positions
    cached = at.rows * (key * context / ratio + entry * _visible(attention, context))
    enough = context if attention.top is None else attention.top * ratio
    yield SparseAttentionBlock(
        block, chip, sum(n * each for n, each in held), cached, at.rows, context, enough
    )


def _matrices(at, attention, size):
    """Yield, for each matrix of a block, its weights on one chip and the bytes of one."""
    pooled = isinstance(attention, CompressedAttention)
    for name, n in attention.matrices(at.model.d_model).items():
        cut = at.kv_shards(attention) if name in ("key", "value") else 1 if name in WHOLE else at.tp
        yield n / cut, RESULT if name in WIDE or pooled and name == "index key" else size


def _visible(attention, context):
    """Positions that a token attends to: all visible ones, those the indexer picks, or the newest and the pooled."""
    if not isinstance(attention, CompressedAttention):
        return visible_context(attention, context)
    newest = minimum(context, attention.window)
    if attention.ratio is None:
        return newest
    pooled = context / attention.ratio
    return newest + (pooled if attention.top is None else minimum(pooled, attention.top))


def _prompt_work(at, attention, kind):
    """FLOP of attention on one chip and bytes of the indexer's scores, for the new tokens of a prompt."""
    whole = attention.prompt_flops(at.cached + at.tokens, absorbed=True)
    before = attention.prompt_flops(at.cached, absorbed=True)
    flop = {part: at.sequences * (n - before[part]) for part, n in whole.items()}
    scores = flop.pop("indexer", 0)
    if attention.indexer is not None:
        scores = SCORE * scores / attention.indexer.flops()
        scores = scores * attention.indexer.n_heads / TILE if kind == "blocks" else scores
    return sum(flop.values()) / at.tp, scores


def hyper_connections(at):
    """Hyper-connections: mix four residual streams before and after both parts of a layer."""
    values = 2 * at.rows * at.model.d_model * RESULT
    mixers = 2 * 96 * at.model.d_model * format_bytes("fp32")
    for kind, data in (("streams in", 5 * values + mixers), ("streams out", 9 * values)):
        block = at.operators.block(kind, at.engine_class)
        yield KernelCall("streams", "gemm", block, at.chip, data, 0)


def delta_rule(at, attention):
    """Gated delta rule: queries, keys, values and gate; strength and decay; convolution and state; output."""
    d = at.model.d_model
    n = attention.n_heads
    rank = attention.decay_rank
    values = n * attention.value_dim
    channels = attention.channels()
    gate = values if attention.gate_rank is None else 0
    yield gemm(at, "attention", d, (channels + gate) / at.tp)
    yield gemm(at, "attention", d, n / at.tp + (n / at.tp if rank is None else rank))
    if rank is not None:
        yield gemm(at, "attention", rank, n * attention.key_dim / at.tp)
    if attention.gate_rank is not None:
        yield gemm(at, "attention", d, attention.gate_rank)
        yield gemm(at, "attention", attention.gate_rank, values / at.tp)
    key = attention.key_dim
    value = attention.value_dim
    kind = "delta" if rank is None else "channel"
    flop = n * 4 * (key * value + CHUNK * (key + value))
    yield from state(at, attention, kind, flop)
    yield gemm(at, "attention", values / at.tp, d)


def state_space(at, attention):
    """State-space layer (Mamba 2): input projection, short convolution and state, output projection."""
    d = at.model.d_model
    inner = attention.n_heads * attention.head_dim
    yield gemm(at, "attention", d, (inner + attention.channels() + attention.n_heads) / at.tp)
    yield from state(at, attention, "mamba", attention.state_flops())
    yield gemm(at, "attention", inner / at.tp, d)


def state(at, attention, kind, flop):
    """Short convolution and 32-bit recurrent state; a decode step reads and writes both."""
    kept = attention.state()["state"] * format_bytes("fp32")
    inputs = attention.channels() * RESULT
    if at.cached is None:
        inputs = 2 * attention.kernel * inputs * at.tokens
        kept = (1 + at.tokens) * kept
    else:
        inputs = 2 * inputs * at.tokens
        kept = 2 * kept
    # The state of Mamba 2 was not timed; timings of the gated delta rule are used.
    timed = "delta state" if kind == "mamba" else f"{kind} state"
    for name, data, work in ((f"{kind} convolution", inputs, 0), (timed, kept, flop)):
        block = at.operators.block(name, at.engine_class)
        read = at.sequences * data / at.tp
        yield KernelCall("state", "attention", block, at.chip, read, at.rows * work / at.tp)


# --- Models that were measured


def load_rows():
    """``sparse_attention.toml``: for each kind of attention the measured models, and the factors that hold 80 %
    of cases."""
    return validation.read_package_toml(__file__, "sparse_attention.toml")


def measured_as(model):
    """Return a model's kind in ``sparse_attention.toml``: the kind of its least certain layers; ``""`` if none."""
    attentions = [attention for _, attention in model.attentions]
    if any(isinstance(attention, StateSpace) for attention in attentions):
        return "borrowed"  # the state of Mamba 2 was not timed
    if any(isinstance(attention, CompressedAttention) for attention in attentions):
        return "pooled"
    if any(isinstance(attention, DeltaAttention) or kind_of(attention) for attention in attentions):
        return "timed"
    return "latent" if any(isinstance(attention, LatentAttention) for attention in attentions) else ""


def row_of(model):
    """Return the row of a model's kind in ``sparse_attention.toml``; empty if it has none."""
    return load_rows().get(measured_as(model), {})


def in_catalogue_group(model, names):
    """Whether a model, or another model of the same shape, is among the named models of the catalogue."""
    return model.name in names or _shape(model) in map(_shape_of, names)


def _shape(model):
    return model.d_model, model.vocab_size, model.layers


@cache
def _shape_of(name):
    return _shape(load_model(name))


def timed_kinds(attention):
    """Return the kinds of timed blocks for a layer's attention, its residual streams or its state."""
    if isinstance(attention, DeltaAttention):
        kind = "delta" if attention.decay_rank is None else "channel"
        return f"{kind} convolution", f"{kind} state"
    if isinstance(attention, StateSpace):
        return "mamba convolution", "delta state"
    streams = ("streams in", "streams out") if isinstance(attention, CompressedAttention) else ()
    return tuple(filter(None, (kind_of(attention), *streams)))


def unscored_reason(model):
    """Say which models of a kind were scored, for a model that was not (end of a caution); else ``""``."""
    known = row_of(model).get("models")
    if not known or in_catalogue_group(model, known):
        return ""
    return f"{model.name or 'this model'} was scored; of its kind: {', '.join(known)}"


def cautions(model):
    """Return cautions for a model whose attention was measured elsewhere (factors: ``sparse_attention.toml``)."""
    found = (model.notes["assumed"],) if "assumed" in model.notes else ()
    if measured_as(model) == "borrowed":
        found = ("no kernel timings for the state of Mamba 2; using those of the gated delta rule", *found)
    return found
