"""A served model: machine, layout, formats, engine and scheduler, with its step, its prefill and its memory."""

from functools import cached_property
from math import log10
from numbers import Real
from types import SimpleNamespace

from inferlib import validation
from inferlib.equation import Record
from inferlib.formats import FORMATS
from inferlib.ops import ceil, maximum, minimum, where
from inferlib.system import (  # fmt: skip
    DoesNotFit,
    Layout,
    NotDescribed,
    System,
    Workload,
    decode_model,
)
from inferlib.transformer import Attention, Experts, LatentAttention, Transformer
from tokenprice import calibration
from tokenprice.attention import DeltaAttention, StateSpace
from tokenprice.decode import ShardedModel, unsupported_reason, whole_layers
from tokenprice.formatting import format_layout
from tokenprice.kernels import Engine
from tokenprice.scheduler import Scheduler
from tokenprice.sparse_attention import cached_bytes, kind_of, timed_kinds
from tokenprice.speculation import acceptance, drafted_token_time, drafting, with_draft, with_head

OUT_OF_MEMORY = "needs {need} GB, but {seen} {have} GB"
OVER_ENGINE_BUDGET = (
    "needs {need} GB, but of the {have} GB that {seen}, engines leave {left} to weights and caches"
)
SEEN = "{system} has", "the driver of {system} shows"  # the second if the driver's size is known
# Bytes on every chip besides weights and KV cache: driver context and activations of the 8,192 tokens that engines
# process at a time (1.7 GB for a model as wide as Llama 3 70B), and buffers for communication. CUDA graphs use the
# tenth of memory that engines leave free.
WORKSPACE = 2e9
BUFFERS = 2e9
# vLLM then samples once for as many sequences as it may run, and keeps the larger peak free. Bytes of each logit that
# are alive at once (vllm/v1/sample): as it comes 2, in 32 bits 4, with top-k and top-p applied 4, its probability or
# noise 4. Up to version 0.16 PyTorch sorted, unless FlashInfer sampled: 2 + 4, sorted values and places 4 + 8, and
# inside the sort places 8 and second buffers 12. Peaks of 38 bytes: llm-d-benchmark, empirical-vllm-memory-results.md.
SAMPLED = 14
SORTED = 38
# What an engine prints counts more than running sequences hold. vLLM: windows with a step's tokens
# (``max_memory_usage_bytes``, vllm/v1/kv_cache_interface.py), and those that DeepSeek V4 is to pool, whose values of 4
# bytes fill 78 % of pages of one size for all groups of layers (vllm/models/deepseek_v4/compressor.py). SGLang:
# ``swa_full_tokens_ratio`` and ``mamba_full_memory_ratio``.
PAGED = 4 / 0.78
WINDOWED = 0.8
STATES = 0.9
MXFP4_BLOCK = 256
FP8_BLOCK = 128
# Default of TensorRT-LLM and of vLLM, whose 0.92 from version 0.21 on (vllm#38284) holds CUDA graphs too, which take
# about the difference: 1.6 GiB for 86 sizes of a batch (vllm#39559), 2 % of 80 GB.
DEFAULT_MEMORY_UTILIZATION = 0.9


def engine_workspace(tp, logits=0, each=SAMPLED):
    """Bytes of the engine's own on every chip, besides weights and KV cache; ``logits`` are those that it samples."""
    return maximum(WORKSPACE, each * logits) + where(tp > 1, BUFFERS, 0)


def padded(width):
    """Bytes in memory over bytes stored, of experts in mxfp4, whose rows vLLM fills up to whole blocks (mxfp4.py)."""
    return ceil(width / MXFP4_BLOCK) * MXFP4_BLOCK / width


def copies_in_step(model, layout):
    """Number of attention copies that run in lockstep, because they share experts."""
    return 1 if model.sparse is False else where(layout.ep > 1, layout.dp, 1)


class Deployment(Record):
    """A model on a machine, in a layout and formats, served by an engine with its scheduler.

    ``layout``: default is one tensor-parallel instance on all chips. With pipeline stages (``pp``) a token passes all
    stages in turn, while each stage works on its own part of the batch. With data parallelism (``dp``) attention and KV
    cache are copied and the batch is divided. With expert parallelism (``ep``) whole experts are spread: within an
    instance (``tp``) chips all-reduce as before; between copies, tokens are sent to their experts and back.
    ``layer_formats``: parts of the model in another format than ``weights``. ``engine``: a class of engine, see
    :func:`tokenprice.calibration.engine`, or its constants. ``memory_utilization``: share of memory given to the engine
    (default 90 %). ``operators``: default is the chip's entry in ``operators.toml``.
    Fields that :class:`~tokenprice.question.Question` has too mean the same. Raises LookupError for an unknown engine
    or format.
    """

    model: Transformer
    machine: System
    layout: Layout = None  # type: ignore[assignment]  # one instance on all chips
    weights: str | float = "bf16"
    kv_cache_dtype: str | float = "bf16"
    layer_formats: dict | None = None
    engine: str | Engine | None = None
    scheduler: Scheduler = Scheduler()
    memory_utilization: float | None = None
    draft_tokens: int | None = None
    acceptance_length: float | str | None = None
    operators: calibration.Operators | None = None

    def __post_init__(self):
        count = self.machine.count
        if self.layout is None:  # the count may be an array or a symbol
            one = SimpleNamespace(tp=count, pp=1, ep=1, dp=1, lanes=1)
            object.__setattr__(self, "layout", Layout(tp=int(count)) if isinstance(count, Real) else one)
        chip = self.machine.chip
        box = self.machine.domain
        if chip.topology == "PCIe":
            box = minimum(count, calibration.chips_per_node(chip))
        vars(self).update(
            operators=self.operators or calibration.operators(chip.name, chip.scale_up_bandwidth),
            software=calibration.engine(self.engine),  # its constants
            formats=calibration.formats(self.model, self.weights, self.layer_formats),  # of each part
            box=box,  # chips joined by one fast network, or in one box
            layers=whole_layers(self.model),
            kernels={},  # cache of :meth:`kernel_for`
        )

    @classmethod
    def of(cls, model, machine, workload, layout=None, **more):
        """Build a deployment with the formats of a workload."""
        return cls(model, machine, layout, workload.weights, workload.cache, **more)

    # --- Layout

    @cached_property
    def expert_lanes(self) -> tuple:
        """Whether tokens are sent to experts across copies; the chips that share the experts; the chips per expert."""
        at = self.layout
        spread = self.model.sparse and (at.ep == 1) is not True
        travel = spread and at.dp != 1
        chips = at.tp * (at.dp if travel else 1)
        return travel, chips, chips / at.ep if spread else at.tp

    @cached_property
    def slowdown(self) -> calibration.Slowdown | None:
        """Measured slowdown of the chip with this model: see :func:`tokenprice.calibration.slowdown`."""
        kind = calibration.kind_of(self.model, self.formats)  # type: ignore[attr-defined]
        return calibration.slowdown(self.machine.chip.name, kind)

    @property
    def in_step(self):
        """Number of attention copies that run in lockstep, because they share experts."""
        return copies_in_step(self.model, self.layout)

    @cached_property
    def not_described(self) -> str:
        """Return why the kernel model has no answer, or ``""``."""
        at = self.layout
        if reason := unsupported_reason(self.model):
            return reason
        if (chips := at.tp * at.pp * at.dp) != self.machine.count:
            return f"{format_layout(at)} takes {chips} chips, but the machine has {self.machine.count}"
        if at.ep > 1 and at.dp * at.tp % at.ep:
            return f"{format_layout(at)} cannot split {at.dp * at.tp} chips evenly into {at.ep} groups of experts"
        if at.pp > 1 and at.pp > self.model.n_layers:
            return f"{at.pp} stages, but the model has {self.model.n_layers} layers"
        return "the kernel model describes stages or copies, not both" if at.pp > 1 and at.dp > 1 else ""

    @cached_property
    def layout_error(self) -> str:
        """Return why this layout is invalid for the model, or ``""``."""
        at = self.layout
        uneven = next((n for n in heads(self.model) if n % at.tp), None)
        if uneven:
            return f"{format_layout(at)} cannot split {uneven} heads evenly into {at.tp} parts"
        if at.ep > 1 and not self.model.sparse:
            return f"{format_layout(at)} spreads experts, but the model has none"
        return self.not_described

    @property
    def uneven_expert(self) -> float | None:
        """Width of an expert in FP8 that a cut over chips divides amid a block of 128; None if there is none.

        Sources: vllm#17569, vllm#39046, QwenLM/Qwen3#1485; checkpoints in FP8 have one scale for each block.
        """
        widths = (getattr(group.feed_forward, "d_expert", 0) for group in self.model.layers)
        whole = FP8_BLOCK * self.expert_lanes[2]
        uneven = next((width for width in widths if width % whole and not width % FP8_BLOCK), None)
        return uneven if self.formats["experts"] == "fp8 block" else None  # type: ignore[attr-defined]

    @property
    def alternatives(self) -> list:
        """The same on the same chips in other layouts."""
        tried = layouts(self.model, self.machine.chip, self.machine.count)
        return [self.replace(layout=layout) for layout in tried if layout != self.layout]

    # --- Times

    @cached_property
    def tokens_per_step(self) -> float:
        """Tokens of a sequence that a step yields: with drafts, the acceptance length."""
        return acceptance(self.acceptance_length, self.draft_tokens) if self.draft_tokens else 1

    @decode_model("kernels")
    def step(self, batch, context):
        """One decode step of ``batch`` sequences: kernels, attention, experts, communication and engine.

        With drafts by a one-layer head (MTP, EAGLE), one step verifies all drafts and yields ``acceptance_length``
        tokens. Terms are per token, drafting is a term of its own, and their sum is
        :func:`tokenprice.speculation.drafted_token_time`. Engines of 2026 run the head within the CUDA graph of the
        step, so a draft takes the time of its kernels and no host time; nothing is fitted.
        """
        drafted = self.draft_tokens or 0
        length = self.tokens_per_step
        if drafted:
            validation.number("acceptance_length", length, minimum=1, maximum=drafted + 1)
        if self.not_described:
            raise NotDescribed(self.not_described)
        at = ShardedModel(self, batch, context, tokens=drafted + 1)
        if self.machine.chip.memory_capacity is not None:
            self._fits(at.held * self.sequence(context))
        stages = at.stages()
        if not drafted:
            return stages
        draft = self._draft_time(batch, context)
        stages = tuple({name: t / length for name, t in stage.items()} for stage in stages)
        return (*stages, {"drafting": drafted_token_time(0, drafted, draft, length)})

    @cached_property
    def at_peaks(self):
        """This deployment with every kernel at the peaks of the data sheet."""
        found = self.replace(operators=self.operators.at_peaks)
        vars(found)["slowdown"] = None
        return found

    def least_step(self, batch, context):
        """Lower bound of :meth:`step` in seconds: bytes over bandwidth, or FLOP over peak; drafts take no time."""
        rows = ShardedModel(self.at_peaks, batch, context, tokens=(self.draft_tokens or 0) + 1)
        return rows.least_time(ShardedModel(self.at_peaks, 0, context)) / self.tokens_per_step

    def least_prefill(self, tokens, cached):
        """Lower bound of :meth:`prefill` in seconds."""
        rows = ShardedModel(self.at_peaks, self.layout.lanes, tokens, tokens - cached, cached)
        return rows.least_time(ShardedModel(self.at_peaks, 0, tokens, cached=cached))

    def _draft_time(self, batch, context):
        """Seconds of one draft, on the last pipeline stage.

        What the engine takes once for a step, such as ``rank``, belongs to the verifying step and is left out here.
        """
        last = self
        if self.layout.pp > 1:
            batch = ShardedModel(self, batch, context).sequences
            machine = System(self.machine.chip, self.machine.count // self.layout.pp)
            last = self.replace(machine=machine, layout=self.layout.replace(pp=1)).unlimited()
        head = last.replace(
            model=self.model.replace(layers=(self.model.layers[-1].replace(count=1),)),
            engine=self.software.replace(rank=0),
            layer_formats=self.formats,  # the model's, also if its last layer has no experts
            draft_tokens=None,
        )
        return head.step(batch, context).total + with_draft(ShardedModel(last, batch, context))

    @decode_model("kernels")
    def prefill(self, tokens, cached=0):
        """Time to prefill a prompt of ``tokens``, of which ``cached`` are in the prefix cache, by named terms.

        Examples
        --------
        >>> import inferlib
        >>> box = inferlib.System(inferlib.load_chip("H100 SXM"), 8)
        >>> served = Deployment(inferlib.load_model("Llama 3 70B"), box)
        >>> whole, half = (served.prefill(8192, n).total for n in (0, 4096))
        >>> 0.5 < half / whole < 0.6
        True
        """
        if self.not_described:
            raise NotDescribed(self.not_described)
        return ShardedModel(self, self.layout.lanes, tokens, tokens - cached, cached).stages()

    # --- Memory

    def _fits(self, caches):
        """Raise DoesNotFit if weights and caches exceed the memory that the engine leaves for them."""
        weights = self.weights_of_a_chip
        have = calibration.memory(self.machine.chip)
        left = self.left if self.software.name else have
        if isinstance(weights + caches, Real) and weights + caches > left:
            sizes = {"need": weights + caches, "have": have, "left": max(left, 0)}
            sizes = {name: size * self.machine.count / 1e9 for name, size in sizes.items()}
            text = OUT_OF_MEMORY if weights + caches > have else OVER_ENGINE_BUDGET
            short = min(sizes["need"] - size for size in sizes.values() if size < sizes["need"])
            digits = max(int(ceil(-log10(short))), 0)  # as many as tell both numbers apart
            sizes = {
                name: f"{size:.{digits}f}" if size >= 10 or digits else f"{size:.2g}"
                for name, size in sizes.items()
            }
            seen = SEEN[calibration.is_shown(self.machine.chip)].format(system=self.machine)
            raise DoesNotFit(text.format(seen=seen, **sizes))

    def unlimited(self):
        """Return the same deployment with unlimited memory."""
        chip = self.machine.chip.replace(memory_capacity=None)
        return self.replace(machine=System(chip, self.machine.count, self.machine.domain))

    def max_sequences(self, mean, longest=None, reserved=None, shared=0):
        """Number of sequences of a mean length (tokens) whose caches fit beside the weights.

        vLLM and SGLang fill memory as sequences grow; TensorRT-LLM admits a request only if its whole answer fits.
        ``longest``: length at which a sequence ends (default: the mean). ``reserved``: mean length for which
        TensorRT-LLM reserves memory (default: the longest). ``shared``: tokens of a prefix that all sequences share;
        each copy holds it once, and the lengths are those beyond it. The result is not rounded; it is below 1 if not
        even one sequence fits.
        """
        longest = longest or mean
        mean = (reserved or longest) if self.software.name == "compiled" else mean
        return self.room(self.sequence(mean), self.sequence(longest), self.sequence(shared) if shared else 0)

    def room(self, mean, longest, shared=0):
        """Number of sequences that fit: one of the ``longest``, the others of mean size; in bytes.

        ``shared``: bytes that a copy holds once for all of its sequences.
        """
        unlimited = calibration.memory(self.machine.chip) is None
        if unlimited or isinstance(mean, Real) and mean == 0:  # a sequence without tokens takes no memory
            return float("inf")
        return self.layout.dp * (self.left - self.weights_of_a_chip - shared - (longest - mean)) / mean

    def logged(self, length):
        """Tokens of cache that an engine prints at its start, for each copy, in sequences of ``length`` tokens.

        vLLM adds the tokens of a step to every window and to those that wait to be pooled; SGLang keeps windows for a
        share of all tokens, and sets memory apart for recurrent states. Before version 0.21 vLLM divided the tokens by
        its groups of layers, but not the *maximum concurrency* below them (vllm#40691, vllm#43308).
        """
        rides = self.scheduler.rides
        budget = self.scheduler.max_num_batched_tokens or length
        step = minimum(budget, length) if rides else WINDOWED * length
        groups = self.model.layers
        wide = tuple(
            g.replace(attention=g.attention.replace(window=g.attention.window + step))
            if getattr(g.attention, "window", None)
            else g
            for g in groups
        )
        size = self.replace(model=self.model.replace(layers=wide)).sequence(length)
        room = self.left - self.weights_of_a_chip
        if rides:
            waiting = sum(g.count * getattr(g.attention, "unpooled", 0) for g in groups)
            size = size + PAGED * step * waiting / self.layout.pp
        elif any(isinstance(g.attention, (DeltaAttention, StateSpace)) for g in groups):
            room = room / (1 + STATES)
        return room / size * length

    @property
    def left(self):
        """Bytes of a chip that the engine leaves for weights and caches.

        vLLM and SGLang take a share of all memory, weights and workspace included; TensorRT-LLM takes its share of what
        remains after the weights.
        """
        share, counted, workspace = self.engine_memory
        have = calibration.memory(self.machine.chip)
        return share * have - workspace + (1 - counted) * self.weights_of_a_chip

    @cached_property
    def weights_of_a_chip(self):
        """Bytes of weights on one chip."""
        held = with_head(self.model) if self.draft_tokens else self.model.parameters()
        size = {part: n * self.weight_bytes(part) for part, n in held.items()}
        spread = size.pop("experts", 0) / (self.expert_lanes[1] * self.layout.pp)
        if self.formats["experts"] == "mxfp4":  # type: ignore[attr-defined]
            spread = spread * padded(self.model.d_model)
        return sum(size.values()) / (self.layout.tp * self.layout.pp) + spread

    @property
    def engine_memory(self) -> tuple:
        """Share of memory that the engine takes, the part of the weights counted in it, and the engine's own bytes."""
        share = self.memory_utilization or DEFAULT_MEMORY_UTILIZATION
        counted = share if self.software.name == "compiled" else 1  # type: ignore[attr-defined]
        return share, counted, engine_workspace(self.layout.tp, self.logits)

    @property
    def logits(self):
        """Logits of vLLM's memory profile, which samples for as many sequences as may run; 0 for other engines."""
        policy = self.scheduler
        if self.software.name == "compiled" or not policy.rides:
            return 0
        budget = policy.max_num_batched_tokens or policy.max_num_seqs
        return min(policy.max_num_seqs, budget) * self.model.vocab_size

    @property
    def room_if_sorted(self) -> float:
        """Share of the cache memory that remains in versions of vLLM that sort the logits (see :data:`SORTED`)."""
        more = engine_workspace(1, self.logits, SORTED) - engine_workspace(1, self.logits)
        return max(1 - more / (self.left - self.weights_of_a_chip), 0)

    def weight_bytes(self, part):
        """Bytes of a weight; matrices outside the layers are stored like the head."""
        format = "bf16" if part == "norms" else self.formats.get(part, self.formats["head"])
        return calibration.stored_bytes(format)

    def sequence(self, length):
        """Bytes of one sequence's cache on one chip of its instance, that of a draft head included."""
        layers = drafting(self.model) if self.draft_tokens else self.model.layers
        groups = [g for g in layers if g.attention]
        cache = sum(g.count * cached_bytes(self, g.attention, length) for g in groups)
        states = [
            g.replace(count=g.count / self.kv_shards(g.attention)) for g in groups if g.attention.state()
        ]
        if states:  # recurrent states, per sequence
            cache = cache + self.model.replace(layers=tuple(states)).state_bytes()
        return cache / self.layout.pp

    def kv_shards(self, attention):
        """Number of parts into which an instance's chips split a layer's cache; a key-value head is not split."""
        if isinstance(attention, Attention):
            return minimum(self.layout.tp, attention.n_kv_heads)
        return self.layout.tp if isinstance(attention, (DeltaAttention, StateSpace)) else 1

    # --- Kernels

    def kernel_for(self, kind, part):
        """Return the kernel for a part's matrices, the bytes of a weight, and the chip at the peak of its format."""
        format = self.formats[part]
        if (kind, format) in self.kernels:
            return self.kernels[kind, format]
        one = not isinstance(format, str) and calibration.ANY_DTYPE in self.operators.gemm
        name = calibration.ANY_DTYPE if one else self.kernel_format(kind, format)
        kernel = self.operators.kernel(kind, name)
        chip = self.machine.chip
        known = FORMATS[name].multiplied if name in FORMATS else ()
        peak = next((format for format in known if format in chip.peaks), None)
        if peak is not None:
            chip = chip.at(peak)
        elif name == calibration.ANY_DTYPE:
            chip = chip_peak(chip, self)
        found = self.kernels[kind, format] = kernel, calibration.stored_bytes(format), chip
        return found

    def kernel_format(self, kind, format):
        """Return the format whose kernels serve matrices; a chip without fp4 reads 4 bits and multiplies in 16."""
        name = calibration.format_name(format)
        wide = "fp4" not in self.machine.chip.peaks and (name, kind) != ("mxfp4", "experts")
        return "fp4 w4a16" if wide and name in ("fp4", "mxfp4") else name

    @property
    def weight_format(self) -> str:
        """Format whose kernels serve the weights."""
        return calibration.format_name(self.weights)

    @cached_property
    def block_lenders(self) -> list:
        """Other chips whose timings stand in for the model's attention blocks."""
        kinds = {kind for _, attention in self.model.attentions for kind in timed_kinds(attention)}
        of_kinds = self.operators.block_chips  # type: ignore[union-attr]
        chips = dict.fromkeys(of_kinds[kind] for kind in sorted(kinds))
        return [chip for chip in chips if chip != self.machine.chip.name]

    @cached_property
    def untimed(self) -> list:
        """What stands in for kernels that were not timed on the chip in the deployment's formats, one text each."""
        stored = self.model.parameters() | {"head": 1}
        attentions = [attention for _, attention in self.model.attentions]
        if all(map(kind_of, attentions)):
            stored.pop("attention", None)  # its products are part of the timed block
        used = [
            ("experts" if part == "experts" else "gemm", format)
            for part, format in self.formats.items()  # type: ignore[attr-defined]
            if stored.get(part)
        ]
        if any(isinstance(one, (Attention, LatentAttention)) and not kind_of(one) for one in attentions):
            used.append(("attention", self.kv_cache_dtype))
        stands_in = self.operators.stands_in  # type: ignore[union-attr]
        texts = (stands_in(kind, self.kernel_format(kind, format)) for kind, format in used)
        return list(filter(None, dict.fromkeys(texts)))


def chip_peak(chip, workload):
    """Return the chip at the format of the weights if it computes in it, else at its own."""
    return chip.at(workload.weights) if workload.weights in chip.peaks else chip


@decode_model("kernels")
def decode_step(model: Transformer, system: System, workload: Workload, layout: Layout | None = None, **more):
    """:meth:`Deployment.step` with the signature of the sources; ``more`` are other fields of the deployment."""
    return Deployment.of(model, system, workload, layout, **more).step(workload.batch, workload.context)


def heads(model):
    """Attention heads of each group of layers that has attention."""
    return [attention.n_heads for _, attention in model.attentions if hasattr(attention, "n_heads")]


def fewest_experts(model):
    """Experts of the layer that has the fewest; 0 if the model has none."""
    blocks = [group.feed_forward for group in model.layers]
    return min((block.n_experts for block in blocks if isinstance(block, Experts)), default=0)


def layouts(model, chip, count):
    """Return the layouts worth trying for a model on ``count`` chips.

    A tensor-parallel degree is a power of two that divides the chips and the heads of every layer.

    1. One instance on all chips, if their number is such a degree: ``TP8``.
    2. Pipeline stages, each with the largest degree within a domain: ``PP2 x TP8``.
    3. For a mixture of experts: whole experts spread over the chips of one instance, ``TP8 x EP8``; or attention
       copies, each of any degree up to 8 within a domain, with experts spread over all chips:
       ``attention DP8 with EP8``, ``attention DP4 x TP2 with EP8``, ...

    Copies of a dense model are separate replicas with the same cost per token; they are not tried.

    Examples
    --------
    >>> import inferlib
    >>> from tokenprice.formatting import format_layout
    >>> llama, h100 = inferlib.load_model("Llama 3 70B"), inferlib.load_chip("H100")
    >>> [format_layout(layout) for layout in layouts(llama, h100, 16)]
    ['TP16', 'PP2 x TP8']
    """
    powers = [2**k for k in range(int(count).bit_length())]
    degrees = [tp for tp in powers if count % tp == 0 and all(n % tp == 0 for n in heads(model))]
    domain = min(count, calibration.chips_per_node(chip) or count)
    inside = [tp for tp in degrees if tp <= domain]
    found = [Layout(tp=count)] if count in degrees else []
    pp = count // inside[-1]
    if 1 < pp <= model.n_layers:
        found.append(Layout(tp=inside[-1], pp=pp))
    if not 1 < count <= fewest_experts(model):
        return found
    if count in inside:
        found.append(Layout(tp=count, ep=count))
    bandwidth = chip.scale_up_bandwidth if count <= domain else chip.scale_out_bandwidth
    if bandwidth is not None:
        found += [Layout(tp=tp, ep=count, dp=count // tp) for tp in inside if tp <= 8 and tp < count]
    return found
