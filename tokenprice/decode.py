"""The kernel model: a decode step or a prefill as a sum of kernels."""

from inferlib.attention import unsupported_features
from inferlib.equation import unchecked
from inferlib.ops import maximum, minimum
from inferlib.system import format_bytes
from inferlib.transformer import (
    Attention,
    Experts,
    FeedForward,
    LatentAttention,
    causal_pairs,
    visible_context,
)
from tokenprice import kernels, operators, sparse_attention
from tokenprice.attention import CompressedAttention, DeltaAttention, StateSpace
from tokenprice.kernels import Engine

# Operators of each kind of layer; sparse and pooled attention are in sparse_attention.
LAYERS = {
    Attention: operators.gqa, LatentAttention: operators.mla, DeltaAttention: sparse_attention.delta_rule,
    StateSpace: sparse_attention.state_space, FeedForward: operators.dense, Experts: operators.experts,
}  # fmt: skip


def step(at):
    """Yield the operators of a step with their counts."""
    for group in at.model.layers:
        for op in layer(at, group.attention, group.feed_forward):
            yield group.count, op
    yield 1, head(at)
    if (at.pp == 1) is not True:
        message = at.rows * at.model.d_model * operators.RESULT
        sent = kernels.reduce_time(at.operators.link(2, "library"), message)
        yield at.pp - 1, operators.FixedTime("pipeline", sent)
    # Copies that share experts synchronise like chips that share a layer.
    software = kernels.engine_time(at.engine, at.layers, at.sequences, at.expert_chips)
    yield 1, operators.FixedTime("engine", software)


def seconds_by_term(counted, slower=1):
    """Return seconds by term of pairs of a count and an operator, with every time multiplied by ``slower``."""
    total = {}
    for count, op in counted:
        for term, seconds in op.terms(slower * count).items():
            total[term] = total[term] + seconds if term in total else seconds
    return total


def head(at):
    """The output projection: of every row in a step, but only of the last token of each prompt in a prefill.

    So do vLLM (``logits_indices``), SGLang (``LogitsProcessor``) and TensorRT-LLM (``return_context_logits``).
    """
    rows = at.rows if at.cached is None else at.sequences
    return operators.gemm(at, "head", at.model.d_model, at.model.vocab_size / at.tp, rows=rows)


def layer(at, attention, block):
    """Yield the operators of a layer: attention, then the feed-forward block (one may be missing), with all-reduces.

    A norm before each reads and writes a token's values and its residual stream.
    """
    added = tuple(operators.all_reduce(at))
    for _ in filter(None, (attention, block)):
        yield from operators.activations(at, 4 * at.model.d_model)
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
    """Return the operators of an attention or feed-forward type; None if it has no kernel timings."""
    if sparse_attention.kind_of(part):
        return sparse_attention.sparse
    return None if getattr(part, "top", None) else LAYERS.get(type(part))


def unsupported_reason(model):
    """Return why a model is unsupported on any machine, or ``""``."""
    untimed = next((attention for _, attention in model.attentions if operators_of(attention) is None), None)
    return "" if untimed is None else f"no kernel timings of {unsupported_features(untimed)}"


def whole_layers(model):
    """Number of layers; a layer with only attention or only feed-forward counts 1/2, as in the engine's time."""
    return sum(g.count * (1 if g.attention and g.feed_forward else 1 / 2) for g in model.layers)


class ShardedModel:
    """A deployment with the rows of one decode step or one prefill.

    ``tokens``: new tokens per sequence: 1 in a step, more with drafts to verify, many in a prefill. ``cached``: None in
    a step; in a prefill, the tokens of the prompt that are in the cache.
    """

    def __init__(self, deployment, batch, context, tokens=1, cached=None):
        self.deployment = deployment
        self.context = context
        self.tokens = tokens
        self.cached = cached
        self.model = deployment.model
        self.operators = deployment.operators
        self.box = deployment.box
        self.layers = deployment.layers
        self.formats = deployment.formats
        self.kv_cache_dtype = deployment.kv_cache_dtype
        self.kernel_for = deployment.kernel_for
        self.kv_shards = deployment.kv_shards
        self.tp = deployment.layout.tp
        self.pp = deployment.layout.pp
        dp = deployment.layout.dp
        self.chip = deployment.machine.chip
        (self.travel, self.expert_chips, self.cut) = deployment.expert_lanes
        self.held = self.sequences = batch / dp  # per copy of the attention
        if (self.pp == 1) is not True:  # with fewer sequences than stages, some stages wait
            self.sequences = maximum(self.held / self.pp, minimum(self.held, 1))
        self.rows = self.sequences * tokens
        self.expert_rows = self.rows * (dp if self.travel else 1)
        # prefills are too long for the all-reduces in a CUDA graph, and hide the software's time
        self.links, self.engine = ("reduce", deployment.software) if cached is None else ("library", Engine())
        self.engine_class = "compiled" if self.engine.name == "compiled" else "serving"

    @unchecked
    def stages(self):
        """Return seconds by term for a Breakdown: stages follow one another, terms of a stage overlap."""
        total = seconds_by_term(step(self), (self.deployment.slowdown or (1.0,))[0])
        shown = [[term for term in stage if term in total] for stage in operators.STAGES]
        return tuple([{term: total[term] for term in stage} for stage in shown if stage])

    def least_time(self, one_row):
        """Return the seconds of reading and arithmetic alone: in each stage, the longer of the two.

        How many experts the rows reach depends on the text; ``one_row`` reads as few as are possible.
        """

        def terms(rows):
            return {term: seconds for stage in rows.stages() for term, seconds in stage.items()}

        found = terms(self)
        if self.deployment.model.sparse:
            found["expert weights"] = terms(one_row)["expert weights"]
        return sum(
            maximum(found.get(read, 0), found.get(work, 0)) for _, read, work in operators.TERMS.values()
        )

    def visible_tokens(self, attention):
        """Bytes of cache that one chip reads in a layer, and its FLOP for scores and values."""
        if self.cached is None:
            seen = visible_context(attention, self.context)
            read = self.sequences * attention.cache_values() * seen * format_bytes(self.kv_cache_dtype)
            flop = self.rows * seen * sum(attention.pair_flops(absorbed=True).values())
            return read / self.kv_shards(attention), flop / self.tp
        seen = causal_pairs(attention, self.cached + self.tokens) - causal_pairs(attention, self.cached)
        return 0.0, self.sequences * seen * sum(attention.pair_flops(absorbed=False).values()) / self.tp
