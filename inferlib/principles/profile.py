"""A model's profile: the few numbers of its shape that determine the cost of a decode step."""

from collections.abc import Mapping
from dataclasses import field

from inferlib import validation
from inferlib.attention import unsupported_features
from inferlib.equation import Record, quantity
from inferlib.system import format_bytes
from inferlib.transformer import Experts, Transformer, only


class Profile(Record):
    """A model as the equations of first principles use it: plain numbers.

    Layers that see the whole context and layers with a window are separate; so are weights that every step reads and
    weights of routed experts, of which a step reads those that its batch reaches.

    Examples
    --------
    >>> Profile(1e9, 0, 2e9, 0, 0).cache_values
    0
    """

    always_read: float = quantity("weights every step reads")
    never_read: float = quantity("weights a step only looks up: input embedding, positions", zero=True)
    token_flops: float = quantity("arithmetic of one token, attention over its context left out", "FLOP")
    cache_values: float = quantity("values kept for a token by layers that see the whole context", zero=True)
    pair_flops: float = quantity("arithmetic of a query with one position of its context", "FLOP", zero=True)
    expert_weights: float = quantity("weights of all routed experts", default=0)
    expert_share: float = quantity("part of the routed experts one token goes to", default=1, maximum=1)
    window_values: float = quantity("values kept for a token by layers with a window", default=0)
    window_pair_flops: float = quantity("arithmetic of a query in layers with a window", "FLOP", default=0)
    window: float = quantity("positions a layer with a window sees", default=1)
    weight_bytes: float = quantity("bytes of one weight", "B", default=2)
    cache_bytes: float = quantity("bytes of one value in the cache", "B", default=2)
    flop_per_weight: float = quantity("a multiplication and an addition", "FLOP", default=2)
    name: str = ""
    sources: Mapping = field(default_factory=dict)


def profile_of(model, weights="bf16", cache="bf16"):
    """Return the profile of a transformer in given number formats.

    All windowed layers must have one window, and all mixtures one share of active experts, as published models do;
    chunked windows count as full. Raises ValueError if windows or shares differ between layers, or if layers have a
    recurrent state or an indexer, which a profile cannot describe.

    Examples
    --------
    >>> from inferlib import load_model
    >>> int(profile_of(load_model("Llama 3 70B")).cache_values)
    163840
    """
    validation.instance("model", model, Transformer)
    layers = [group for group in model.layers if group.attention is not None]
    beyond = {
        unsupported_features(g.attention) for g in layers if getattr(g.attention, "top", "unlike") is not None
    }
    if beyond:
        what = ", ".join(sorted(beyond))
        whose = model.name or "this model"
        raise ValueError(f"a profile does not describe {what}, which {whose} has")
    parts = model.parameters()
    routed = parts.get("experts", 0)
    # a tied table is read as the head
    head = model.vocab_size * model.d_model if model.tied and model.outputs is None else 0
    read = sum(n for part, n in parts.items() if part not in ("experts", "embeddings", "positions")) + head
    whole = [group for group in layers if group.attention.window is None]
    windowed = [group for group in layers if group.attention.window is not None]
    blocks = (group.feed_forward for group in model.layers)
    shares = {block.n_active / block.n_experts for block in blocks if isinstance(block, Experts)}
    return Profile(
        always_read=read,
        never_read=sum(parts.values()) - read - routed,
        token_flops=sum(model.flops(0).values()),
        cache_values=_values(whole),
        pair_flops=_pair_flops(whole),
        expert_weights=routed,
        expert_share=only(model, "shares of routed experts", shares, 1),
        window_values=_values(windowed),
        window_pair_flops=_pair_flops(windowed),
        window=only(model, "windows", {group.attention.window for group in windowed}, 1),
        weight_bytes=format_bytes(weights),
        cache_bytes=format_bytes(cache),
        name=model.name,
        sources={"weight_bytes": f"weights in {weights}", "cache_bytes": f"cache in {cache}"},
    )


def _values(groups):
    return sum(group.count * group.attention.cache_values() for group in groups)


def _pair_flops(groups):
    return sum(group.count * sum(group.attention.pair_flops(absorbed=True).values()) for group in groups)
