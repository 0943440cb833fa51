"""One decode step, or a prompt, from kernels: the kernel model."""

from inferlib.attention import unsupported_features
from inferlib.equation import unchecked
from inferlib.ops import maximum, minimum
from inferlib.system import format_bytes
from inferlib.transformer import (
    Attention,
    CompressedAttention,
    DeltaAttention,
    Experts,
    FeedForward,
    LatentAttention,
    StateSpace,
    causal_pairs,
    visible_context,
)
from tokenprice import calibration, kernels, operators, sparse_attention
from tokenprice.kernels import Engine

# What runs each kind of layer; sparse and pooled attention by blocks of their own.
LAYERS = {
    Attention: operators.gqa, LatentAttention: operators.mla, DeltaAttention: sparse_attention.delta_rule,
    StateSpace: sparse_attention.state_space, FeedForward: operators.dense, Experts: operators.experts,
}  # fmt: skip


def step(at):
    """The operators of a step: pairs of how often, and what."""
    for group in at.model.layers:
        for op in layer(at, group.attention, group.feed_forward):
            yield group.count, op
    yield 1, operators.gemm(at, "head", at.model.d_model, at.model.vocab_size / at.tp)
    if (at.pp == 1) is not True:
        message = at.rows * at.model.d_model * operators.RESULT
        sent = kernels.reduce_time(at.operators.link(2, "library"), message)
        yield at.pp - 1, operators.FixedTime("pipeline", sent)
    # Copies that share experts keep step with one another, like chips that share a layer.
    software = kernels.engine_time(at.engine, at.layers, at.sequences, at.expert_chips)
    yield 1, operators.FixedTime("engine", software)


def layer(at, attention, block):
    """Attention, then the block, or one of them; after each the chips add their parts."""
    added = tuple(operators.all_reduce(at))
    if attention is not None:
        yield from operators_of(attention)(at, attention)
        yield from added
        if isinstance(attention, CompressedAttention):
            yield from sparse_attention.hyper_connections(at)
    if isinstance(block, Experts) and at.travel:
        yield from operators.experts(at, block)
        yield operators.FixedTime("expert exchange", operators.exchange(at, block))
    elif block is not None:
        yield from LAYERS[type(block)](at, block)
        yield from added


def operators_of(part):
    """What runs a kind of attention or block; None where nobody has timed it."""
    if sparse_attention.kind_of(part):
        return sparse_attention.sparse
    return None if getattr(part, "top", None) else LAYERS.get(type(part))


def unsupported_reason(model):
    """Why there is no answer for a model, whatever it runs on, or nothing."""
    kinds = [group.attention for group in model.layers if group.attention is not None]
    untimed = next((attention for attention in kinds if operators_of(attention) is None), None)
    return "" if untimed is None else f"no kernel timings of {unsupported_features(untimed)}"


def whole_layers(model):
    """Layers with attention and a block; one part alone counts a half, as the software's time for a layer does."""
    return sum(g.count * (1 if g.attention and g.feed_forward else 1 / 2) for g in model.layers)


class ShardedModel:
    """A deployment with the rows of a step, or of a prompt.

    ``tokens`` of each sequence are new: one in a step, more with drafts to verify, and many in a prompt. ``cached``
    is None in a step; of a prompt it is how many tokens before them are in the cache already.
    """

    def __init__(self, deployment, batch, context, tokens=1, cached=None):
        self.deployment, self.context, self.tokens, self.cached = deployment, context, tokens, cached
        self.model, self.operators, self.box = deployment.model, deployment.operators, deployment.box
        self.layers, self.formats, self.kv_cache_dtype = (
            deployment.layers,
            deployment.formats,
            deployment.kv_cache_dtype,
        )
        self.served, self.kv_shards = deployment.served, deployment.kv_shards
        self.tp, self.pp, dp = deployment.layout.tp, deployment.layout.pp, deployment.layout.dp
        self.chip, (self.travel, self.expert_chips, self.cut) = (
            deployment.machine.chip,
            deployment.expert_lanes,
        )
        self.held = self.sequences = batch / dp  # of one copy of the attention
        if (self.pp == 1) is not True:  # with fewer than there are stages, some wait
            self.sequences = maximum(self.held / self.pp, minimum(self.held, 1))
        self.rows = self.sequences * tokens
        self.expert_rows = self.rows * (dp if self.travel else 1)
        # prompts are too long for the all-reduces that run in a recorded graph, and take no time of the software
        self.links, self.engine = ("reduce", deployment.software) if cached is None else ("library", Engine())
        self.engine_class = "compiled" if self.engine.name == "compiled" else "serving"

    @unchecked
    def stages(self):
        """Seconds by term, as a Breakdown takes them: each stage follows the one before, its terms overlap."""
        tuned = calibration.is_tuned(self.model, self.formats)
        total, slower = {}, calibration.correction_factor(self.chip.name, tuned)
        for count, op in step(self):
            for term, seconds in op.terms(slower * count).items():
                total[term] = total[term] + seconds if term in total else seconds
        shown = [[term for term in stage if term in total] for stage in operators.STAGES]
        return tuple([{term: total[term] for term in stage} for stage in shown if stage])

    def visible_tokens(self, attention):
        """Bytes of cache that one chip reads in a layer, and its FLOP for scores and values."""
        if self.cached is None:
            seen = visible_context(attention, self.context)
            read = self.sequences * attention.cache_values() * seen * format_bytes(self.kv_cache_dtype)
            flop = self.rows * seen * sum(attention.pair_flops(absorbed=True).values())
            return read / self.kv_shards(attention), flop / self.tp
        seen = causal_pairs(attention, self.cached + self.tokens) - causal_pairs(attention, self.cached)
        return 0.0, self.sequences * seen * sum(attention.pair_flops(absorbed=False).values()) / self.tp
