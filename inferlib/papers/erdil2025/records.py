"""The paper's own records: its models with its way of counting parameters, and its GPUs."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from numbers import Real

from inferlib.catalog import record
from inferlib.checks import Names
from inferlib.equation import Record, equation, quantities, quantity
from inferlib.system import Accelerator, format_bytes
from inferlib.transformer import Experts, LatentAttention, Transformer
from inferlib.units import parse

equation = partial(equation, "erdil2025", chapter="erdil2025_toy")


@dataclass(frozen=True, eq=False)
class Shape(Record):
    """The dimensions and the precision of a model, as the paper's model of inference needs them.

    ``latent`` says whether attention is multi-head latent attention (then ``kv_rank`` and ``q_rank`` are the
    widths of its latents and ``group_size`` is 1); ``parallel_attention`` whether attention and feed-forward
    block stand beside each other.
    """

    n_layers: float = quantity("1", "layers")
    d_model: float = quantity("1", "width of the residual stream")
    d_ff: float = quantity("1", "width of the feed-forward block, or of one expert")
    ff_up: float = quantity("1", "matrices from the residual stream to the feed-forward width")
    ff_down: float = quantity("1", "matrices from the feed-forward width back")
    n_heads: float = quantity("1", "query heads")
    group_size: float = quantity("1", "query heads that share one key and value head")
    head_dim: float = quantity("1", "width of one head")
    vocab_size: float = quantity("1", "entries of the vocabulary")
    n_experts: float = quantity("1", "experts of each feed-forward block", default=1)
    n_active: float = quantity("1", "experts that a token goes to", default=1)
    kv_rank: float = quantity("1", "width of the latent of keys and values", default=None)
    q_rank: float = quantity("1", "width of the latent of queries", default=None)
    weight_bytes: float = quantity("B", "bytes of one parameter", default=2.0)
    activation_bytes: float = quantity("B", "bytes of one activation, cache included", default=2.0)
    flop_per_weight: float = quantity("FLOP", "a multiplication and an addition for every weight", default=2)
    latent: bool = False
    parallel_attention: bool = False
    name: str = ""

    @property
    def bits(self):
        """Bits of a weight: the format that the tensor cores multiply in."""
        return round(8 * self.weight_bytes)


@equation(unit="1")
def cache_values(shape: Shape):
    """Values that one token leaves in the cache of one layer (equation 34's first factors).

    Keys and values of every key/value head; for latent attention the latent alone, since the paper leaves the
    rotary part out.
    """
    if shape.latent:
        return shape.kv_rank
    return 2 * shape.n_heads / shape.group_size * shape.head_dim


@equation(unit="1")
def qkv_width(shape: Shape):
    """Width of queries, keys and values together: (1 + 2/g) n_head d_head of equation 25."""
    return (shape.n_heads + 2 * shape.n_heads / shape.group_size) * shape.head_dim


@equation(unit="1")
def attention_params(shape: Shape):
    """Attention parameters of all layers (in equation 20), as the paper's notebook counts them.

    For latent attention the down-projection of keys and values is counted twice, as the notebook does.
    """
    width = shape.n_heads * shape.head_dim
    if not shape.latent:
        return shape.n_layers * shape.d_model * (qkv_width(shape) + width)
    down = (2 * shape.kv_rank + shape.q_rank) * shape.d_model
    up = (
        2 * shape.n_heads / shape.group_size * shape.kv_rank + shape.n_heads * shape.q_rank
    ) * shape.head_dim
    return shape.n_layers * (down + up + width * shape.d_model)


@equation(unit="1")
def feed_forward_params(shape: Shape):
    """Feed-forward parameters of all layers and experts (in equation 20)."""
    matrices = shape.ff_up + shape.ff_down
    return shape.n_layers * shape.n_experts * matrices * shape.d_model * shape.d_ff


@equation(unit="1")
def embedding_params(shape: Shape):
    """Parameters of one of the two embedding tables: the unembedding of equation 20."""
    return shape.vocab_size * shape.d_model


@equation("20", unit="1", chapter="erdil2025_model")
def printed_parameters(shape: Shape):
    """Parameters of a model: attention, feed-forward and unembedding.

    Number of parameters; the input embedding is left out, since it is looked up, not multiplied.
    """
    return attention_params(shape) + feed_forward_params(shape) + embedding_params(shape)


@equation(unit="1")
def parameter_count(shape: Shape):
    """Parameters as the paper counts them: every expert, and the input and output embedding both.

    Notes
    -----
    Not in the paper, which prints nominal sizes and equation 20; this is the count of its notebook, which
    Table 1 needs.

    Examples
    --------
    >>> int(parameter_count(models["Llama 3 70B"].shape))
    70552387584
    """
    return printed_parameters(shape) + embedding_params(shape)


_STATED = {
    "n_layers": "the model's shape",
    "n_params": "counted from the model's shape by parameter_count",
    "weight_bytes": "the number format asked for",
    "reductions": "section 2.2.1",
    "flop_per_weight": "section 2.1",
}


@dataclass(frozen=True, eq=False)
class Model(Record):
    """A model as section 2 of the paper sees it: so many layers, so many parameters, so many bytes each."""

    n_layers: float = quantity("1", "layers")
    n_params: float = quantity("1", "parameters")
    weight_bytes: float = quantity("B", "bytes of one parameter", default=2.0)
    reductions: float = quantity("1", "serial all-reduces in one layer", default=4)
    flop_per_weight: float = quantity("FLOP", "a multiplication and an addition for every weight", default=2)
    cache_bytes: float = quantity("B", "KV cache of one token of context", default=0.0, zero=True)
    name: str = ""
    parallel_attention: bool = False
    shape: Shape | None = None
    sources: Mapping = field(default_factory=dict)

    @classmethod
    def of(cls, shape):
        """The model of a shape, its parameters and cache counted the paper's way."""
        return cls(
            n_layers=shape.n_layers,
            n_params=parameter_count(shape),
            weight_bytes=shape.weight_bytes,
            cache_bytes=cache_values(shape) * shape.n_layers * shape.activation_bytes,
            shape=shape,
            name=shape.name,
            parallel_attention=shape.parallel_attention,
            sources=_STATED,
        )


@dataclass(frozen=True, eq=False)
class Protocol(Record):
    """One protocol of NCCL: its latencies, and the share of the bandwidth that it reaches."""

    base: float = quantity("s", "latency of a collective before any hop", zero=True)
    per_rank: float = quantity("s", "latency of one further GPU in a node, one pass")
    per_node: float = quantity("s", "latency of one doubling of the nodes, one pass")
    share: float = quantity("1", "share of the bandwidth reached", maximum=1)
    name: str = ""


@dataclass(frozen=True, eq=False)
class GPU(Accelerator):
    """A GPU of the paper: an accelerator with the fractions of its peaks that can be reached."""

    flops_fraction: float = quantity(
        "1", "attainable fraction of the arithmetic peak", default=1.0, maximum=1
    )
    bandwidth_fraction: float = quantity(
        "1", "attainable fraction of the memory bandwidth", default=1.0, maximum=1
    )

    def capped(self):
        """The same GPU with its attainable rates in place of the peaks."""
        return self.replace(
            flops=self.flops * self.flops_fraction,
            memory_bandwidth=self.memory_bandwidth * self.bandwidth_fraction,
            flops_fraction=1.0,
            bandwidth_fraction=1.0,
        )


def as_model(model, weights="bf16", cache="bf16"):
    """A model of this paper made from an :class:`inferlib.Transformer`; the paper's own pass through.

    The paper knows one kind of layer. Where layers differ in their feed-forward block (a mixture of experts
    that begins with dense layers), the kind that most layers have stands for all; shared experts count as
    routed ones that every token goes to, as the paper does with DeepSeek-V3.

    Raises
    ------
    TypeError
        If it is neither.
    ValueError
        If its layers differ in attention, or see a window only: the paper describes neither.
    """
    if isinstance(model, Model):
        return model
    if not isinstance(model, Transformer):
        raise TypeError(f"model is a {type(model).__name__}, but must be a Transformer or an erdil2025 Model")
    if model.unusual:
        raise ValueError(
            f"model {model.name or 'given'} has {model.unusual}, which the paper does not describe"
        )
    # symbols cannot be compared; there the last kind stands for all, as it does in every published model
    known = all(isinstance(layers.count, Real) for layers in model.layers)
    most = max(model.layers, key=lambda layers: layers.count) if known else model.layers[-1]
    attention, block = most.attention, most.feed_forward
    shapes = {repr(layers.attention) for layers in model.layers}
    if len(shapes) > 1 or attention.window is not None:
        raise ValueError(f"model {model.name or 'given'} has windows or layers of unequal attention")
    sizes = {"n_layers": model.n_layers, "d_model": model.d_model, "vocab_size": model.vocab_size}
    if isinstance(block, Experts):
        shared = block.d_shared / block.d_expert
        experts = {"n_experts": block.n_experts + shared, "n_active": block.n_active + shared}
        sizes |= experts | {"d_ff": block.d_expert}
    else:
        sizes |= {"d_ff": block.d_ff}
    if isinstance(attention, LatentAttention):
        # The paper's one head width: that of keys without position and of values (128 in every model so far).
        sizes |= {"head_dim": attention.value_dim, "group_size": 1, "latent": True}
        sizes |= {"kv_rank": attention.kv_rank, "q_rank": attention.q_rank or model.d_model}
    else:
        sizes |= {"head_dim": attention.head_dim, "group_size": attention.n_heads / attention.n_kv_heads}
    shape = Shape(
        **sizes,
        n_heads=attention.n_heads,
        ff_up=block.matrices - 1,
        ff_down=1,
        weight_bytes=format_bytes(weights),
        activation_bytes=format_bytes(cache),
        name=model.name,
    )
    return Model.of(shape)


def as_gpu(chip):
    """A GPU of this paper made from an :class:`inferlib.Accelerator`; the paper's own pass through.

    The two bandwidths, the size of a node, memory, peaks and price are the chip's; the attainable fractions
    are those of the paper's H100. Where a chip does not multiply a narrow format, its next wider peak stands
    (the weights are unpacked first).

    Raises
    ------
    TypeError
        If it is neither.
    ValueError
        If the chip is not a GPU, or lacks a bandwidth or its memory: the paper's network is nodes of GPUs
        on NVLink or its like, joined by network cards, with the latencies of NCCL.
    """
    if isinstance(chip, GPU):
        return chip
    if not isinstance(chip, Accelerator):
        raise TypeError(f"chip is a {type(chip).__name__}, but must be an Accelerator")
    if chip.name.startswith(NO_GPUS):
        raise ValueError(
            f"chip {chip.name} has a network that erdil2025 does not describe; it describes GPUs"
        )
    for name in ("memory_capacity", "scale_up_bandwidth", "scale_out_bandwidth", "scale_up_size"):
        if getattr(chip, name) is None:
            raise ValueError(f"chip {chip.name or 'given'} has no {name}, which erdil2025 needs")
    peaks, widest = {}, chip.flops
    for format, others in _FORMATS.items():
        widest = next((chip.peaks[name] for name in (format, *others) if name in chip.peaks), widest)
        peaks[format] = widest
    values = {f.name: getattr(chip, f.name) for f in quantities(Accelerator)}
    caps = {name: getattr(chips["H100"], name) for name in ("flops_fraction", "bandwidth_fraction")}
    return GPU(**values | caps | {"flops": peaks["bf16"]}, name=chip.name, peaks=peaks, sources=chip.sources)


NO_GPUS = ("TPU", "Groq", "Gaudi", "Trainium")
_FORMATS = {"bf16": ("fp16",), "fp8": ("int8",), "fp4": ("int4",)}
_BITS = {16: "bf16", 8: "fp8", 4: "fp4"}


def computing_at(chip, shape):
    """The GPU at the peak of a model's weight format.

    Raises
    ------
    LookupError
        If the paper gives the GPU no peak for that format.
    """
    if shape.bits not in _BITS:
        raise LookupError(f"a weight of {shape.bits} bits has no format; known: {sorted(_BITS)}")
    return chip.at(_BITS[shape.bits])


def _load():
    tables = tomllib.loads((files("inferlib.papers.erdil2025") / "assumptions.toml").read_text("utf-8"))
    chips = {}
    for name, entry in tables["chips"].items():
        peaks = {format: parse(peak, "FLOP/s") for format, peak in entry["peaks"].items()}
        chips[name] = record(GPU, entry | {"flops": entry["peaks"]["bf16"]}, name=name, peaks=peaks)
    models = {}
    for name, entry in tables["models"].items():
        entry = tables["models"].get(entry.get("like"), {}) | entry
        entry.pop("like", None)
        flags = {flag: entry.pop(flag) for flag in ("latent", "parallel_attention") if flag in entry}
        models[name] = Model.of(record(Shape, entry, name=name, **flags))
    protocols = tuple(record(Protocol, entry, name=name) for name, entry in tables["protocols"].items())
    return Names("chip of erdil2025", chips), Names("model of erdil2025", models), protocols


chips, models, PROTOCOLS = _load()
