"""The paper's own records: models, GPUs, protocols, layouts, and its assumptions besides the equations."""

from collections.abc import Mapping
from numbers import Real

from inferlib import validation
from inferlib.catalog import record
from inferlib.equation import Record, load_source, quantities, quantity, stated_sources
from inferlib.formats import FORMATS
from inferlib.papers.erdil2025.shape import Shape, cache_values, parameter_count
from inferlib.papers.source import load, metadata, needs
from inferlib.system import Accelerator, bytes_of_formats
from inferlib.transformer import Experts, LatentAttention
from inferlib.units import parse


class Model(Record):
    """A model in section 2 of the paper: number of layers, number of parameters, bytes per parameter."""

    n_layers: float = quantity("layers")
    n_params: float = quantity("parameters")
    weight_bytes: float = quantity("bytes of one parameter", "B", default=2.0)
    reductions: float = quantity("serial all-reduces in one layer", default=4)
    flop_per_weight: float = quantity("a multiplication and an addition for every weight", "FLOP", default=2)
    cache_bytes: float = quantity("KV cache of one token of context", "B", default=0.0)
    name: str = ""
    parallel_attention: bool = False
    shape: Shape | None = None
    sources: Mapping = stated_sources()

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
            sources=load_source("erdil2025")["stated"],
        )

    def replace(self, **changes):
        """Return a copy with other values; the shape takes on a new format, and is dropped if counts change."""
        if self.shape is not None and "shape" not in changes:
            same = {name: changes[name] for name in ("weight_bytes", "name") if name in changes}
            changes["shape"] = self.shape.replace(**same) if len(same) == len(changes) else None
        return super().replace(**changes)


class Protocol(Record):
    """One protocol of NCCL: its latencies, and the share of the bandwidth that it reaches.

    Examples
    --------
    >>> Protocol(0, 1e-6, 1e-6, 1).base
    0
    """

    base: float = quantity("latency of a collective before any hop", "s", zero=True)
    per_rank: float = quantity("latency of one further GPU in a node, one pass", "s")
    per_node: float = quantity("latency of one doubling of the nodes, one pass", "s")
    share: float = quantity("share of the bandwidth reached", maximum=1)
    name: str = ""


class GPU(Accelerator):
    """A GPU of the paper: an accelerator with the fractions of its peaks that can be reached."""

    flops_fraction: float = quantity("attainable fraction of the arithmetic peak", default=1.0, maximum=1)
    bandwidth_fraction: float = quantity(
        "attainable fraction of the memory bandwidth", default=1.0, maximum=1
    )

    def capped(self):
        """The same GPU with its attainable rates in place of the peaks."""
        return self.replace(
            flops=self.flops * self.flops_fraction,
            memory_bandwidth=self.memory_bandwidth * self.bandwidth_fraction,
            flops_fraction=1.0,
            bandwidth_fraction=1.0,
        )


def models():
    """The names of the paper's models."""
    return list(_MODELS)


def chips():
    """The names of the paper's GPUs."""
    return list(_CHIPS)


def load_model(model, weights=None, cache=None):
    """A model as the paper counts it: one of :func:`models`, or the catalogue's (by name, or a Transformer).

    ``weights``, ``cache``: number formats; those that the paper states, or 16 bits, if not given.

    Of the catalogue: the paper knows one kind of layer. Where layers differ in their feed-forward block (a mixture of
    experts that begins with dense layers), the kind that most layers have stands for all; shared experts count as
    routed ones that every token goes to, as the paper does with DeepSeek-V3. ValueError: it describes no windows,
    and no layers of unequal attention.

    Examples
    --------
    >>> load_model("Llama 3 70B").n_params == load_model("Llama 3 70B", "fp8").n_params
    True
    """
    if isinstance(model, Model):
        return model
    made = load("model", model, Model, _MODELS, _counted)
    changes = bytes_of_formats(weight_bytes=weights, activation_bytes=cache)
    return Model.of(made.shape.replace(**changes)) if changes else made


def _counted(model):
    name = f"model {model.name or 'given'}"
    if model.unusual:
        raise ValueError(f"{name} has {model.unusual}, which the paper does not describe")
    # symbols cannot be compared; the last kind then stands for all, as in every published model
    known = all(isinstance(layers.count, Real) for layers in model.layers)
    most = max(model.layers, key=lambda layers: layers.count) if known else model.layers[-1]
    attention = most.attention
    block = most.feed_forward
    shapes = {repr(layers.attention) for layers in model.layers}
    if len(shapes) > 1 or attention.window is not None:
        raise ValueError(f"{name} has windows or layers of unequal attention")
    sizes = {"n_layers": model.n_layers, "d_model": model.d_model, "vocab_size": model.vocab_size}
    if isinstance(block, Experts):
        shared = block.d_shared / block.d_expert
        experts = {"n_experts": block.n_experts + shared, "n_active": block.n_active + shared}
        sizes |= experts | {"d_ff": block.d_expert}
    else:
        sizes["d_ff"] = block.d_ff
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
        name=model.name,
    )
    return Model.of(shape)


def load_chip(chip):
    """A GPU of the paper: one of :func:`chips` in its rounded numbers, or the catalogue's (by name, or an Accelerator).

    Of the catalogue: the two bandwidths, the size of a node, memory, peaks and price are the chip's; the attainable
    fractions are those of the paper's H100. Where a chip does not multiply a narrow format, its next wider peak stands
    (the weights are unpacked first). ValueError: the paper's network is nodes of GPUs on NVLink or its like,
    joined by network cards, with the latencies of NCCL; another chip, or one without a bandwidth, is not described.
    """
    return load("chip", chip, GPU, _CHIPS, _capped)


def _capped(chip):
    if chip.name.startswith(NO_GPUS):
        raise ValueError(
            f"chip {chip.name} has a network that erdil2025 does not describe; it describes GPUs"
        )
    needs(chip, "memory_capacity", "scale_up_bandwidth", "scale_out_bandwidth", "scale_up_size")
    peaks = _peaks(chip)
    values = {f.name: getattr(chip, f.name) for f in quantities(Accelerator)}
    caps = {name: getattr(_CHIPS["H100"], name) for name in ("flops_fraction", "bandwidth_fraction")}
    return GPU(**values | caps | {"flops": peaks["bf16"]}, name=chip.name, peaks=peaks, sources=chip.sources)


def _peaks(chip):
    """Peaks in the paper's formats; for a format that the chip does not multiply, the next wider format's peak."""
    peaks = {}
    widest = chip.flops
    for bits, format in _BITS.items():
        known = (name for name in (format, *FORMATS) if name in chip.peaks and FORMATS[name].bits == bits)
        widest = next((chip.peaks[name] for name in known), widest)
        peaks[format] = widest
    return peaks


def stated_chip(chip):
    """A GPU of the catalogue in the paper's own rounded numbers, where it states them; else as :func:`load_chip`.

    Examples
    --------
    >>> from inferlib import load_chip
    >>> [stated_chip(load_chip(name)).name for name in ("H100 SXM", "B200")]
    ['H100', 'B200']
    """
    own = _CHIPS.get(metadata("erdil2025")["chips"].get(chip.name))
    return load_chip(chip) if own is None else own.replace(peaks=_peaks(own))


NO_GPUS = ("TPU", "Groq", "Gaudi", "Trainium")
_BITS = {16: "bf16", 8: "fp8", 4: "fp4"}


def computing_at(chip, shape):
    """The GPU at the peak of a model's weight format; LookupError where the paper gives it none."""
    if shape.bits not in _BITS:
        raise LookupError(f"a weight of {shape.bits} bits has no format; known: {sorted(_BITS)}")
    return chip.at(_BITS[shape.bits])


def _load():
    tables = load_source("erdil2025")
    chips = {}
    for name, entry in tables["chips"].items():
        peaks = {format: parse(peak, "FLOP/s") for format, peak in entry["peaks"].items()}
        chips[name] = record(GPU, entry | {"flops": entry["peaks"]["bf16"], "peaks": peaks}, name=name)
    models = {}
    for name, entry in tables["models"].items():
        entry = tables["models"].get(entry.get("like"), {}) | entry
        entry.pop("like", None)
        models[name] = Model.of(record(Shape, entry, name=name))
    protocols = tuple(record(Protocol, entry, name=name) for name, entry in tables["protocols"].items())
    return chips, models, protocols


_CHIPS, _MODELS, PROTOCOLS = _load()

KINDS = ("2D", "1D")
TRAFFIC = ("tiled", "over-read", "once")


class Assumptions(Record):
    """Assumptions of the complete model beyond its equations.

    The default is the author's notebook of 27 May 2025, which made Tables 2, 3, 4 and 6.
    """

    t_kernel: float = quantity("time to launch a kernel", "s", default=4e-6)
    kernels: float = quantity("kernels launched in one layer, one after another", default=4)
    dispatches: float = quantity("all-to-alls in one sparse layer: to the experts and back", default=2)
    expert_threshold: float = quantity(
        "sequences of a micro-batch per unit of sparsity, from which experts are spread", default=2, zero=True
    )
    flop_per_pair: float = quantity(
        "multiplying one query with one key, and its weight with a value", "FLOP", default=4
    )
    # Both dimensions of a matrix cut, or one.
    kinds: tuple = KINDS
    # Of NCCL; each collective takes the fastest.
    protocols: tuple = PROTOCOLS
    # Traffic inside nodes and between them takes the longer of two times, not their sum.
    networks_overlap: bool = True
    # Steps of the geometric grids that are searched; 0 for none.
    scale_downs: int = 5
    pipelines: int = 9
    # The grid of pipeline degrees ends at the smaller of batch and layers, not at the layers.
    pipelines_to_batch: bool = True
    # A multiplication moves what each GPU's tile needs, or inputs and outputs that grow with the GPUs, or each once.
    traffic: str = "tiled"
    # The sparsity E/k is rounded down.
    whole_sparsity: bool = True
    # The input embedding, which is looked up, counts as a multiplication.
    embedding_multiplied: bool = True
    # The capacity test sees the cache of one micro-batch only.
    cache_of_micro_batch: bool = True
    # Every stage reads the cache of the whole batch.
    cache_read_per_stage: bool = False
    # All-to-alls move a token to all its experts even where fewer groups hold them.
    dispatch_to_active: bool = False
    # A transfer between stages takes half the time that its bytes need.
    hop_halved: bool = True
    # Latent attention reads more than twice its parameters.
    latent_as_coded: bool = True
    # A verification yields one token more than the accepted drafts (Leviathan et al. 2023); equation 46 leaves it out.
    free_token: bool = False
    # Target and draft must fit into memory together.
    joint_capacity: bool = False

    def __post_init__(self):
        super().__post_init__()
        validation.one_of("Assumptions.traffic", self.traffic, TRAFFIC)
        for kind in self.kinds:
            validation.one_of("kind of layout", kind, KINDS)

    @classmethod
    def corrected(cls):
        """Assumptions with the errors fixed that errata and notes name; simplifications stay."""
        return cls(
            whole_sparsity=False,
            embedding_multiplied=False,
            cache_of_micro_batch=False,
            hop_halved=False,
            latent_as_coded=False,
            joint_capacity=True,
        )

    @classmethod
    def leviathan(cls):
        """A verification yields one token more than the accepted drafts, as Leviathan et al. (2023) have it."""
        return cls(free_token=True)


class Cut(Record):
    """One layout: pipeline stages, attention scale-down, and the kind of tensor parallelism."""

    stages: float = quantity("pipeline stages", default=1.0)
    scale_down: float = quantity(
        "how many times fewer GPUs share attention than share the feed-forward block", default=1.0
    )
    kind: str = "2D"

    def __post_init__(self):
        super().__post_init__()
        validation.one_of("kind of layout", self.kind, KINDS)


class ToyAssumptions(Record):
    """Assumptions of section 2 beyond its equations. The default is the set that made Table 1.

    Examples
    --------
    >>> ToyAssumptions(t_hop=0).t_hop
    0
    """

    t_hop: float = quantity("time from one GPU to the next, once", "s", default=1e-6, zero=True)
    t_base: float = quantity("fixed time of an all-reduce, besides its hops", "s", default=0.0)
    least_gpus: float = quantity("fewest GPUs of an instance in the frontier's grid", default=1e-6)
    capped: bool = False  # attainable fractions of the peaks in place of the peaks
    # four all-reduces a layer even where attention and feed-forward are parallel
    serial_attention: bool = True

    @classmethod
    def corrected(cls):
        """No instance below one GPU."""
        return cls(least_gpus=1.0)

    @classmethod
    def parallel(cls):
        """Two all-reduces a layer where attention is parallel (equation 7); Table 1 states four for all."""
        return cls(serial_attention=False)

    def applied_to(self, model, chip):
        """The model and the chip as these assumptions see them."""
        if model.parallel_attention and not self.serial_attention:
            model = model.replace(reductions=2)
        return model, chip.capped() if self.capped else chip


PRINTED = Assumptions()
