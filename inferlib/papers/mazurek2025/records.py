"""The records of the model: a mixture of experts with latent attention, a GPU, a deployment, assumptions."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

from inferlib import validation
from inferlib.equation import Record, load_source, quantity, stated_sources
from inferlib.ops import interpolated, symbolic, where
from inferlib.papers.source import load, needs, stated_quantity
from inferlib.system import NotDescribed, count
from inferlib.transformer import Experts, FeedForward, LatentAttention

STATED = load_source("mazurek2025")


class Model(Record):
    """A mixture of experts with multi-head latent attention, as Table 1 names its dimensions.

    The source writes one width of a head, d_h, for queries and keys and for values alike. In equations 5, 7,
    12 and 14 it tells them apart, and so does this record everywhere.

    Examples
    --------
    A model may have no dense layers and no shared experts:

    >>> routed = dict.fromkeys(("n_dense_layers", "d_dense", "n_shared", "n_shared_active"), 0)
    >>> load_model("DeepSeek V3").replace(**routed).used
    8
    """

    d_model: float = quantity("width of the residual stream")
    n_heads: float = quantity("attention heads")
    nope_dim: float = quantity("width of a head's query and key without position")
    value_dim: float = quantity("width of a head's value")
    rope_dim: float = quantity("width of the rotary part of queries, and of the shared rotary key")
    kv_rank: float = quantity("width of the latent of keys and values")
    q_rank: float = quantity("width of the latent of queries")
    n_routed: float = quantity("routed experts")
    n_active: float = quantity("routed experts a token goes to")
    d_expert: float = quantity("width of one expert")
    n_expert_layers: float = quantity("layers with experts")
    n_dense_layers: float = quantity("dense layers", zero=True)
    d_dense: float = quantity("width of the dense feed-forward block", zero=True)
    vocab_size: float = quantity("entries of the vocabulary")
    n_shared: float = quantity("shared experts", default=1, zero=True)
    n_shared_active: float = quantity("shared experts a token goes to", default=1, zero=True)
    name: str = ""
    sources: Mapping = stated_sources()

    @property
    def n_layers(self):
        """All layers; the source writes L."""
        return self.n_dense_layers + self.n_expert_layers

    @property
    def used(self):
        """Experts a token goes to, shared ones included."""
        return self.n_shared_active + self.n_active


_LATENT = ("n_heads", "kv_rank", "q_rank", "nope_dim", "rope_dim", "value_dim")


def models():
    """The names of the source's models, as the catalogue has them."""
    return list(STATED["models"])


def load_model(model):
    """A model as the source counts it, of the catalogue (by name, or a Transformer); its own record passes through.

    Raises ``ValueError`` for a model without gated experts, or without latent attention for keys and queries.
    """
    return load("model", model, Model, {}, _counted)


def _counted(model):
    reason = not_described(model)
    if reason:
        raise ValueError(f"model {model.name!r}: {reason}")
    attention = model.layers[0].attention
    sparse = [group for group in model.layers if isinstance(group.feed_forward, Experts)]
    dense = [group for group in model.layers if isinstance(group.feed_forward, FeedForward)]
    experts = sparse[0].feed_forward
    shape = model.sources.get("shape", "the model's shape")
    shared = experts.d_shared / experts.d_expert
    if not symbolic(shared) and shared == int(shared):
        shared = int(shared)
    return Model(
        **{name: getattr(attention, name) for name in _LATENT},
        d_model=model.d_model,
        n_routed=experts.n_experts,
        n_active=experts.n_active,
        d_expert=experts.d_expert,
        n_expert_layers=sum(group.count for group in sparse),
        n_dense_layers=sum(group.count for group in dense),
        d_dense=dense[0].feed_forward.d_ff if dense else 0,
        vocab_size=model.vocab_size,
        n_shared=shared,
        n_shared_active=shared,
        name=model.name,
        sources={f: shape for f in ("d_model", "n_heads", "n_routed", "n_active", "d_expert", "vocab_size")},
    )


def not_described(model):
    """Why the source does not describe a Transformer; an empty text if it does."""
    if model.unusual:
        return f"the source does not describe {model.unusual}"
    kinds = {type(group.attention) for group in model.layers}
    if kinds != {LatentAttention}:
        return "the source describes multi-head latent attention only"
    first = model.layers[0].attention
    if first.q_rank is None:
        return "the source describes queries with a latent of their own only"
    for part in _LATENT:
        if any(getattr(group.attention, part) != getattr(first, part) for group in model.layers):
            return f"its layers have no common {part}"
    blocks = [group.feed_forward for group in model.layers]
    sparse = [block for block in blocks if isinstance(block, Experts)]
    if not sparse:
        return "the source describes mixtures of experts only"
    if any(block.matrices != 3 for block in blocks):
        return "the source describes gated feed-forward blocks of three matrices only"
    if len(sparse) > 1 or len(blocks) - len(sparse) > 1:
        return "the source describes one kind of expert layers and one of dense layers"
    return ""


class GPU(Record):
    """What the source needs to know of a GPU and its links.

    Examples
    --------
    >>> load_chip("H200").replace(price=0).price  # one's own
    0
    """

    bf16_flops: float = quantity("arithmetic peak for attention, BF16", "FLOP/s")
    fp8_flops: float = quantity("arithmetic peak for experts, FP8", "FLOP/s")
    memory_bandwidth: float = quantity("memory bandwidth of one GPU", "B/s")
    intra_bandwidth: float = quantity("one-way bandwidth of one GPU inside a node", "B/s")
    inter_bandwidth: float = quantity("one-way bandwidth of one GPU to other nodes", "B/s")
    memory_capacity: float = quantity("memory of one GPU", "B", default=None)
    price: float = quantity("price of one GPU for an hour", "usd/h", default=None, zero=True)
    name: str = ""
    sources: Mapping = stated_sources()


def chips():
    """The names of the chips that the source computes with, as the catalogue has them."""
    return list(dict.fromkeys(entry["chip"] for entry in STATED["setups"].values()))


def load_chip(chip):
    """A GPU as the source sees it, of the catalogue (by name, or an Accelerator); its own record passes through.

    Raises ``ValueError`` without peaks in BF16 and FP8 or a scale-up bandwidth. A chip without a network of its own can
    only be used inside one node.
    """
    return load("chip", chip, GPU, {}, _linked)


def _linked(chip):
    for format in ("bf16", "fp8"):
        if format not in chip.peaks:
            raise NotDescribed(f"chip {chip.name!r} states no {format} peak, which the source needs")
    needs(chip, "scale_up_bandwidth")
    alike = {name: name for name in ("memory_bandwidth", "memory_capacity", "price")}
    links = {"intra_bandwidth": "scale_up_bandwidth", "inter_bandwidth": "scale_out_bandwidth"}
    sources = {"bf16_flops": "bf16", "fp8_flops": "fp8"} | alike | links
    return GPU(
        **{name: getattr(chip, name) for name in alike},
        bf16_flops=chip.peaks["bf16"],
        fp8_flops=chip.peaks["fp8"],
        intra_bandwidth=chip.scale_up_bandwidth,
        # a GPU without a network is used inside one node, where nothing goes to another
        inter_bandwidth=chip.scale_out_bandwidth or chip.scale_up_bandwidth,
        name=chip.name,
        sources={name: chip.sources.get(there, "") for name, there in sources.items()},
    )


class Deployment(Record):
    """The deployment: every GPU has all of the attention, and its share of the experts.

    ``balancedness``: mean over largest load of the GPUs (section 3.4); ``extra_experts``: copies of experts for
    balance. With ``two_batch``, two halves of the batch alternate between computation and network.
    """

    n_gpus: float = quantity("GPUs of the deployment")
    n_nodes: float = quantity("nodes: sets of GPUs on one fast network", default=1)
    balancedness: float = quantity("mean over largest expert load of a GPU", default=1, maximum=1)
    extra_experts: float = quantity("copies of routed experts", default=0)
    two_batch: bool = True
    name: str = ""

    def __post_init__(self):
        super().__post_init__()
        validation.instance("Deployment.two_batch", self.two_batch, bool)


def deployment(n_gpus, n_nodes=1, *, extra_experts=0, two_batch=True, name=""):
    """Return a deployment with Figure 12's balancedness for this number of GPUs."""
    count("n_gpus", n_gpus)
    count("n_nodes", n_nodes)
    validation.number("n_nodes", n_nodes, minimum=1, maximum=n_gpus)
    return Deployment(n_gpus, n_nodes, balancedness(n_gpus), extra_experts, two_batch, name)


def balancedness(n_gpus, balanced=True):
    """Figure 12 between its bars: linear in the number of GPUs, constant beyond the first and last bar."""
    read = STATED["balancedness"]
    bars = ("gpus", "with_balancing") if balanced else ("gpus_without", "without_balancing")
    between = interpolated(n_gpus, *(read[name] for name in bars))
    return where(n_gpus <= 1, 1.0, between)


_assumed = partial(stated_quantity, "mazurek2025", "assumptions")


class Assumptions(Record):
    """Assumptions of the source beyond shapes and links; the default is what it prints, with one reading of ours.

    Five fields stand for errors of print: ``value_flop`` (a missing factor 2), ``dense_layers_send`` and
    ``shared_sent`` (61 layers and 9 messages where 58 and 8 would be right), ``without_replacement`` (experts are
    placed evenly, not thrown like balls into bins), ``all_flops`` (dense layers and head are multiplied too).
    ``capped`` takes the smaller of section 3.1.2's two formulas for the experts of a GPU: this is our reading, because
    the source prints no minimum. ``overhead`` is not in the source: time per layer and micro-batch that nothing hides.
    """

    # fmt: off
    weight_bytes: float = _assumed("weight_bytes", "B", "bytes of one weight")
    cache_value_bytes: float = _assumed("cache_value_bytes", "B", "bytes of one value in the cache")
    attention_activation_bytes: float = _assumed(
        "attention_activation_bytes", "B", "bytes read and written for one value between blocks")
    dispatch_bytes: float = _assumed("dispatch_bytes", "B", "bytes of one value on its way to an expert")
    combine_bytes: float = _assumed("combine_bytes", "B", "bytes of one value on its way back")
    flop_per_weight: float = _assumed("flop_per_weight", "FLOP", "a multiplication and an addition")
    value_flop: float = _assumed("value_flop", "FLOP", "FLOP counted for one product with a value")
    memory_inefficiency: float = _assumed("memory_inefficiency", "1", "time on memory over the time at the peak")
    attention_inefficiency: float = _assumed(
        "attention_inefficiency", "1", "time on attention's arithmetic over the time at the peak")
    expert_inefficiency: float = _assumed(
        "expert_inefficiency", "1", "time on experts' arithmetic over the time at the peak")
    arithmetic_penalty: float = _assumed("arithmetic_penalty", "1", "factor on both arithmetic times")
    network_inefficiency: float = _assumed("network_inefficiency", "1", "time on the network over the time at the peak")
    overhead: float = quantity(
        "time of one layer and micro-batch that is no work (not in the source)", "s", default=0.0
    )
    # fmt: on
    dense_layers_send: bool = True
    shared_sent: bool = True
    capped: bool = True
    without_replacement: bool = False
    all_flops: bool = False

    @classmethod
    def corrected(cls):
        """The reading without the source's errors of print."""
        wrong = dict(dense_layers_send=False, shared_sent=False, without_replacement=True, all_flops=True)
        return cls(value_flop=2.0, **wrong)

    @classmethod
    def uncapped(cls):
        """Section 3.1.2 read literally: balls into bins at every batch, more experts than a GPU holds."""
        return cls(capped=False)


PRINTED = Assumptions()


@dataclass(frozen=True)
class Setup:
    """A deployment and its GPUs."""

    name: str
    gpu: GPU
    deployment: Deployment


def setups():
    """The names of the three systems of section 3.6."""
    return list(STATED["setups"])


@lru_cache
def setup(name):
    """One of the three systems of section 3.6 with its GPU, balanced as in Figure 12.

    Examples
    --------
    >>> setup("9x8 H100").deployment.extra_experts
    32
    """
    entry = STATED["setups"][validation.one_of("setup", name, setups())]
    where = deployment(entry["n_gpus"], entry["n_nodes"], extra_experts=entry["extra_experts"], name=name)
    return Setup(name, load_chip(entry["chip"]), where)
