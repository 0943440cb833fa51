"""One decode step from kernels: the kernel model."""

from numbers import Real

from inferlib.attention import unsupported_features
from inferlib.equation import unchecked
from inferlib.formats import FORMATS
from inferlib.ops import maximum, minimum
from inferlib.system import (  # fmt: skip
    DoesNotFit,
    Layout,
    NotDescribed,
    System,
    Workload,
    chip_peak,
    decode_model,
    format_bytes,
)
from inferlib.transformer import (
    Attention,
    CompressedAttention,
    DeltaAttention,
    Experts,
    FeedForward,
    LatentAttention,
    StateSpace,
    Transformer,
    causal_pairs,
    visible_context,
)
from tokenprice import calibration, kernels, operators, sparse_attention

OUT_OF_MEMORY = "needs {need:.0f} GB, but {seen} {have:.0f} GB"
OVER_ENGINE_BUDGET = (
    "needs {need:.0f} GB, but of the {have:.0f} GB that {seen}, engines leave {left:.0f} to weights and "
    "caches"
)
SEEN = "{system} has", "the driver of {system} shows"  # the second where that is known
# On every chip beside weights and caches, in bytes: context of the driver, and activations of the 8,192 tokens that
# engines read at a time (of a model as wide as Llama 3 70B 1.7 GB); and buffers for exchanges. Recorded graphs lie in
# the tenth that engines do not take.
WORKSPACE, BUFFERS = 2e9, 2e9
DEFAULT_MEMORY_UTILIZATION = (
    0.9  # of the memory: the default of vLLM and TensorRT-LLM, by their documentation
)


@decode_model("kernels")
def decode_step(
    model: Transformer, system: System, workload: Workload, layout: Layout | None = None, *,
    engine=None, keep=None, tokens=1, operators=None, share=None,
):  # fmt: skip
    """One decode step as kernels, attention, experts, exchanges and the engine.

    ``layout``: one tensor-parallel instance on all chips when not given. Stages (``pp``) follow one another, each
    with its part of the batch: a token passes all of them, and as many parts are under way at once.
    With ``dp`` attention and cache are copied and the batch is divided. With ``ep`` whole experts are spread: inside
    an instance (``tp``) chips add their parts as before, between copies tokens travel to them and back.
    ``engine``: the class of engine, see :func:`tokenprice.calibration.engine`. ``keep``: parts of the model in another
    format than ``workload.weights``. ``tokens``: of each sequence that a step takes: one, or with drafted tokens to
    verify more. ``operators``: the chip's own of ``operators.toml`` when not given. ``share``: the share of the memory
    that the engine is told to take; 90 %, their default. Raises TypeError if an argument is
    of another class, LookupError if an engine or a format is unknown.
    """
    engine = calibration.engine(engine)
    at = ShardedModel(model, system, workload, layout, keep, operators, engine=engine, tokens=tokens)
    if reason := at.refusal():
        raise NotDescribed(reason)
    if system.chip.memory_capacity is not None:
        weights, caches, have = at.memory()
        left = left_by_engine(weights, have, *at.engine_memory(share)) if engine.name else have
        if isinstance(weights + caches, Real) and weights + caches > left:
            sizes = {"need": weights + caches, "have": have, "left": max(left, 0)}
            sizes = {name: size * system.count / 1e9 for name, size in sizes.items()}
            text = OUT_OF_MEMORY if weights + caches > have else OVER_ENGINE_BUDGET
            seen = SEEN[calibration.is_shown(system.chip)].format(system=system)
            raise DoesNotFit(text.format(seen=seen, **sizes))
    return at.stages()


def left_by_engine(weights, have, share, counted, workspace):
    """Bytes of a chip that an engine leaves to weights and caches, of what the chip has.

    vLLM and SGLang take a share of all memory, weights and workspace included; TensorRT-LLM takes it of what the
    weights leave: ``counted`` is the part of the weights that comes out of the share.
    """
    return share * have - workspace + (1 - counted) * weights


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
    """A model laid out on chips, with the rows of a step: what one chip holds, and by which kernels it is served.

    ``tokens`` of each sequence are new: one in a step, more with drafts to verify, and many in a prompt. ``cached``
    is None in a step; of a prompt it is how many tokens before them are in the cache already.
    """

    def __init__(
        self, model, system, workload, layout=None, keep=None, operators=None, *, engine=None, tokens=1, cached=None,
    ):  # fmt: skip
        self.model, self.system, self.workload, self.engine = model, system, workload, engine
        self.tokens, self.cached = tokens, cached
        self.box = system.domain
        if system.chip.topology == "PCIe":
            self.box = minimum(system.count, calibration.chips_per_node(system.chip))
        self.operators = operators or calibration.operators(system.chip.name)
        self.formats = calibration.formats(model, workload.weights, keep)
        self.tp, self.pp, self.ep, self.dp = (
            (layout.tp, layout.pp, layout.ep, layout.dp) if layout else (system.count, 1, 1, 1)
        )
        self.held = self.sequences = workload.batch / self.dp  # of one copy of the attention
        if (self.pp == 1) is not True:  # with fewer than there are stages, some wait
            self.sequences = maximum(self.held / self.pp, minimum(self.held, 1))
        self.rows = self.sequences * tokens
        self.spread = model.sparse and (self.ep == 1) is not True
        self.travel = self.spread and self.dp != 1  # of tokens, to experts over the chips of all copies
        copies = self.dp if self.travel else 1
        self.expert_chips, self.expert_rows = self.tp * copies, self.rows * copies
        self.cut = self.expert_chips / self.ep if self.spread else self.tp  # chips that share an expert
        # prompts are too long for the all-reduces that run in a recorded graph
        self.links = "reduce" if cached is None else "library"
        self.engine_class = "compiled" if engine is not None and engine.name == "compiled" else "serving"
        self.layers = whole_layers(model)
        self._served = {}

    def refusal(self):
        """Why there is no answer, or nothing."""
        if reason := unsupported_reason(self.model):
            return reason
        if self.tp * self.pp * self.dp != self.system.count:
            return "the degrees of the layout must multiply to the chips of the system"
        if self.ep > 1 and self.dp * self.tp % self.ep:
            return "experts must divide the chips of an instance evenly"
        if self.pp > 1 and self.pp > self.model.n_layers:
            return f"{self.pp} stages, but the model has {self.model.n_layers} layers"
        if self.pp > 1 and self.dp > 1:
            return "the kernel model describes stages or copies, not both"
        return ""

    @unchecked
    def stages(self):
        """Seconds by term, as a Breakdown takes them: each stage follows the one before, its terms overlap."""
        total, slower = {}, calibration.correction_factor(self.system.chip.name)
        for count, op in step(self):
            for term, seconds in op.terms(slower * count).items():
                total[term] = total[term] + seconds if term in total else seconds
        shown = [[term for term in stage if term in total] for stage in operators.STAGES]
        return tuple([{term: total[term] for term in stage} for stage in shown if stage])

    # What a chip holds.

    def memory(self):
        """Bytes of weights and of caches on one chip, and what it has; states are counted with the sequences."""
        size = {part: n * self.weight_bytes(part) for part, n in self.model.parameters().items()}
        spread = size.pop("experts", 0) / (self.expert_chips * self.pp)
        own = sum(size.values()) / (self.tp * self.pp)
        caches = self.held * self.sequence(self.workload.context)
        return own + spread, caches, calibration.memory(self.system.chip)

    def engine_memory(self, share=None):
        """The share of the memory that the engine takes, the part of the weights in it, and bytes of its own."""
        share = share or DEFAULT_MEMORY_UTILIZATION
        counted = share if self.engine.name == "compiled" else 1
        return share, counted, WORKSPACE + (BUFFERS if self.tp > 1 else 0)

    def weight_bytes(self, part):
        """Bytes of a weight; what is not a matrix of a layer is kept like the head."""
        format = "bf16" if part == "norms" else self.formats.get(part, self.formats["head"])
        return calibration.stored_bytes(format)

    def sequence(self, length):
        """Bytes of one sequence's cache on one chip of its instance, where each chip keeps what it reads."""
        groups = [group for group in self.model.layers if group.attention is not None]
        kept = sum(g.count * g.attention.kept(length) / self.kv_shards(g.attention) for g in groups)
        cache = kept * format_bytes(self.workload.cache)
        states = [
            g.replace(count=g.count / self.kv_shards(g.attention)) for g in groups if g.attention.state()
        ]
        if states:
            cache = cache + self.model.replace(layers=tuple(states)).state_bytes()
        return cache / self.pp

    def kv_shards(self, attention):
        """Into how many parts the chips of an instance cut the cache of a layer: a head of keys stays whole."""
        if isinstance(attention, Attention):
            return minimum(self.tp, attention.n_kv_heads)
        return self.tp if isinstance(attention, (DeltaAttention, StateSpace)) else 1

    # What serves it.

    def served(self, kind, part):
        """The kernel of a part's matrices, the bytes of a weight, and the chip at the format it multiplies in."""
        asked = kind, self.formats[part]
        if asked not in self._served:
            self._served[asked] = self._serving(*asked)
        return self._served[asked]

    def _serving(self, kind, format):
        one = not isinstance(format, str) and calibration.ANY_DTYPE in self.operators.gemm
        name = calibration.ANY_DTYPE if one else calibration.format_name(format)
        kernel = self.operators.kernel(kind, name)
        chip = self.system.chip
        known = FORMATS[name].multiplied if name in FORMATS else ()
        peak = next((format for format in known if format in chip.peaks), None)
        if peak is not None:
            chip = chip.at(peak)
        elif name == calibration.ANY_DTYPE:
            chip = chip_peak(chip, self.workload)
        return kernel, calibration.stored_bytes(format), chip

    def visible_tokens(self, attention):
        """Bytes of cache that one chip reads in a layer, and its FLOP for scores and values."""
        if self.cached is None:
            seen = visible_context(attention, self.workload.context)
            read = self.sequences * attention.cache_values() * seen * format_bytes(self.workload.cache)
            flop = self.rows * seen * sum(attention.pair_flops(absorbed=True).values())
            return read / self.kv_shards(attention), flop / self.tp
        seen = causal_pairs(attention, self.cached + self.tokens) - causal_pairs(attention, self.cached)
        return 0.0, self.sequences * seen * sum(attention.pair_flops(absorbed=False).values()) / self.tp
