"""One decode step from kernels: the sixth model."""

from functools import partial
from numbers import Real

from inferlib.attention import unusual
from inferlib.ops import maximum, minimum, where
from inferlib.serving import constants, kernels
from inferlib.system import Breakdown, Layout, System, Workload, chip_peak, format_bytes
from inferlib.transformer import Attention, Experts, LatentAttention, Transformer, attended

FLOP_PER_WEIGHT = 2
RESULT = 2  # bytes of a value that chips exchange
SHORT = "needs {need:.0f} GB, but {system} has {have:.0f} GB"
SENT = 1  # bytes of a value on its way to an expert


def decode_step(model, system, workload, layout=None, *, engine=None, keep=None, tokens=1, operators=None):
    """One decode step as kernels, attention, experts, exchanges and the engine.

    Parameters
    ----------
    model : Transformer
    system : System
    workload : Workload
    layout : Layout, optional
        One tensor-parallel instance on all chips when not given. Stages (``pp``) follow one another. With ``dp``
        attention and cache are copied and the batch is divided; with ``ep`` too the experts are spread over all
        chips, and tokens travel to them and back.
    engine : str or Engine, optional
        The class of engine, see :func:`inferlib.serving.constants.engine`.
    keep : Mapping, optional
        Parts of the model in another format than ``workload.weights``.
    tokens : float
        Tokens of each sequence that a step takes: one, or with drafted tokens to verify more.
    operators : Operators, optional
        The chip's own of ``operators.toml`` when not given.

    Returns
    -------
    Breakdown

    Raises
    ------
    TypeError
        If an argument is not of the class named above.
    LookupError
        If an engine or a format is unknown.
    """
    for name, value, kind in (
        ("model", model, (Transformer,)), ("system", system, (System,)), ("workload", workload, (Workload,)),
        ("layout", layout, (Layout, type(None))),
    ):  # fmt: skip
        if not isinstance(value, kind):
            raise TypeError(f"{name} is a {type(value).__name__}, but must be a {kind[0].__name__}")
    engine = constants.engine(engine)
    again = partial(decode_step, engine=engine, keep=keep, tokens=tokens, operators=operators)
    origin = (again, model, system, workload, layout)
    answer = partial(Breakdown, source="sixth", origin=origin)
    place = Place(model, system, workload, layout, keep, tokens, operators)
    reason = place.refusal()
    if reason:
        return answer(status="n/a", reason=reason)
    needed, have = place.memory()
    if have is not None and isinstance(needed, Real) and needed > have:
        need, room = needed * system.count / 1e9, have * system.count / 1e9
        return answer(status="infeasible", reason=SHORT.format(need=need, system=system, have=room))
    return answer(tuple(place.stages(engine)))


class Place:
    """A question taken apart: what one chip of the instance holds, reads, multiplies and sends."""

    links = "reduce"

    def __init__(self, model, system, workload, layout, keep, tokens, operators):
        self.model, self.system, self.workload = model, system, workload
        self.chip = chip_peak(system.chip, workload)
        self.operators = operators or constants.operators(system.chip.name)
        self.given = layout
        self.tp, self.pp, self.ep, self.dp = (
            (layout.tp, layout.pp, layout.ep, layout.dp) if layout else (system.count, 1, 1, 1)
        )
        self.formats = constants.formats(model, workload.weights, keep)
        self.sequences = workload.batch / self.dp  # of one attention group
        self.rows = self.sequences * tokens
        self.spread = self.ep > 1 and self.dp > 1  # experts over all chips, attention copied
        self.expert_chips = self.tp * self.dp if self.spread else self.tp
        self.expert_rows = self.rows * (self.dp if self.spread else 1)
        self._peaks = {}

    def refusal(self):
        """Why there is no answer, or nothing."""
        for group in self.model.layers:
            attention = group.attention
            if attention is None or group.feed_forward is None:
                return "the sixth model describes layers of attention and a block, not of one of them"
            plain = isinstance(attention, (Attention, LatentAttention))
            if not plain or getattr(attention, "top", None) is not None:
                return f"nobody timed a kernel of {unusual(attention)} for the sixth model"
        if self.given is None:
            return ""
        if self.tp * self.pp * self.dp != self.system.count:
            return "the degrees of the layout must multiply to the chips of the system"
        if self.ep > 1 and self.dp * self.tp % self.ep:
            return "experts must divide the chips of an instance evenly"
        if self.pp > self.model.n_layers:
            return f"{self.pp} stages, but the model has {self.model.n_layers} layers"
        if self.pp > 1 and self.dp > 1:
            return "the sixth model describes stages or copies, not both"
        return ""

    def memory(self):
        """Bytes that one chip needs, and has."""
        parts = self.model.parameters()
        size = {part: n * self._bytes(part) for part, n in parts.items()}
        spread = size.pop("experts", 0) / (self.expert_chips * self.pp)
        own = sum(size.values()) / (self.tp * self.pp)
        cache = self.sequences * self.sequence(self.workload.context)
        return own + spread + cache, self.system.chip.memory_capacity

    def _bytes(self, part):
        return constants.stored_bytes(
            self.formats.get(part, "bf16" if part in ("norms",) else self.formats["head"])
        )

    def _name(self, format):
        """The format whose kernels serve a part; any, where one kernel serves all and the bytes are a mere number."""
        one = not isinstance(format, str) and constants.ANY in self.operators.gemm
        return constants.ANY if one else constants.format_name(format)

    def _peak(self, name):
        """The chip at the format in which it multiplies such weights."""
        if name not in self._peaks:
            self._peaks[name] = self._at(name)
        return self._peaks[name]

    def _at(self, name):
        for format in constants.multiplied_in(name):
            if format in self.system.chip.peaks:
                return self.system.chip.at(format)
        return self.chip if name == constants.ANY else self.system.chip

    def products(self, group):
        """The matrix products of one layer on one chip: part, inner and outer dimension (and how many, if not 1)."""
        d, n, attention = self.model.d_model, self.tp, group.attention
        if isinstance(attention, LatentAttention):
            heads, rank = attention.n_heads / n, attention.kv_rank
            latent = attention.q_rank or 0
            found = [
                ("attention", d, latent + rank + attention.rope_dim),
                ("attention", attention.q_rank or d, heads * (attention.nope_dim + attention.rope_dim)),
                ("attention", attention.nope_dim, heads * rank),
                ("attention", rank, heads * attention.value_dim),
                ("attention", heads * attention.value_dim, d),
            ]
        else:
            query = attention.n_heads * attention.head_dim / n
            key = attention.head_dim * maximum(attention.n_kv_heads / n, 1)
            found = [("attention", d, query + 2 * key), ("attention", query, d)]
        block = group.feed_forward
        if isinstance(block, Experts):
            found.append(("router", d, block.n_experts))
            shared, into = block.d_shared / (1 if self.spread else n), block.matrices - 1
            if not (isinstance(shared, Real) and shared == 0):
                there = where(shared > 0, 1, 0)
                found += [("shared experts", d, into * shared, there), ("shared experts", shared, d, there)]
        else:
            found += [
                ("feed-forward", d, (block.matrices - 1) * block.d_ff / n),
                ("feed-forward", block.d_ff / n, d),
            ]
        return found

    def sequence(self, length):
        """Bytes of one sequence's cache on one chip of its instance, where each chip keeps what it reads."""
        groups = [group for group in self.model.layers if group.attention is not None]
        kept = sum(g.count * g.attention.kept(length) / self.cuts(g.attention) for g in groups)
        return kept * format_bytes(self.workload.cache) / self.pp

    def cuts(self, attention):
        """Into how many parts the chips of an instance cut the cache of a layer: a head of keys stays whole."""
        return minimum(self.tp, attention.n_kv_heads) if isinstance(attention, Attention) else 1

    def attention(self, attention):
        """Bytes of cache that one chip reads in a layer, and its FLOP for scores and values."""
        seen = attended(attention, self.workload.context)
        read = self.sequences * attention.cache_values() * seen * format_bytes(self.workload.cache)
        read = read / self.cuts(attention)
        return read, self.rows * seen * sum(attention.pair_flops(absorbed=True).values()) / self.tp

    def stages(self, engine):
        """The stages of a step: each follows the one before; inside one, reading and arithmetic overlap."""
        start, data, work = 0.0, 0.0, 0.0
        cache, pairs, blocks, expert_data, expert_work, expert_start = (0.0,) * 6
        multiplied = [
            (group.count * (many[0] if many else 1), part, inner, outer)
            for group in self.model.layers
            for part, inner, outer, *many in self.products(group)
        ]
        multiplied.append((1, "head", self.model.d_model, self.model.vocab_size / self.tp))
        for count, part, inner, outer in multiplied:
            name = self._name(self.formats[part])
            kernel, weights = self.operators.kernel("gemm", name), inner * outer
            start = start + kernels.start_time(kernel, count, inner)
            data = data + count * kernels.read_time(kernel, self.chip, weights * self._bytes(part))
            work = work + count * kernels.work_time(
                kernel, self._peak(name), FLOP_PER_WEIGHT * self.rows * weights
            )
        for group in self.model.layers:
            block = group.feed_forward
            kernel = self.operators.kernel("attention", constants.format_name(self.workload.cache))
            read, flop = self.attention(group.attention)
            start = start + kernels.start_time(kernel, group.count, 0)
            cache = cache + group.count * kernels.read_time(kernel, self.chip, read)
            pairs = pairs + group.count * kernels.work_time(kernel, self.system.chip, flop)
            if isinstance(block, Experts):
                name = self._name(self.formats["experts"])
                kernel = self.operators.kernel("experts", name)
                one = block.matrices * self.model.d_model * block.d_expert
                touched = block.touched(self.expert_rows) * one * self._bytes("experts") / self.expert_chips
                flop = FLOP_PER_WEIGHT * self.expert_rows * block.n_active * one / self.expert_chips
                blocks = blocks + group.count
                expert_start = expert_start + kernels.start_time(kernel, group.count, 0)
                expert_data = expert_data + group.count * kernels.read_time(kernel, self.chip, touched)
                product = self.operators.kernel("gemm", name)
                expert_work = expert_work + group.count * kernels.work_time(product, self._peak(name), flop)
        stages = [{"weights": data, "arithmetic": work}, {"cache": cache, "attention arithmetic": pairs}]
        if self.model.sparse:
            stages.append({"expert weights": expert_data, "expert arithmetic": expert_work})
            stages.append({"expert kernels": expert_start})
        stages.append({"kernel launch": start})
        stages += self.exchanges(engine, blocks)
        if not isinstance(self.pp, Real) or self.pp > 1:
            link = self.operators.link(2, "library")
            message = self.rows * self.model.d_model * RESULT
            stages.append({"pipeline": (self.pp - 1) * kernels.reduce_time(link, message)})
        # Copies that share experts keep step with one another, like chips that share a layer.
        host = kernels.engine_time(engine, self.model.n_layers, self.sequences, self.expert_chips)
        stages.append({"engine": host})
        return stages

    def exchanges(self, engine, blocks):
        """What chips send each other: two all-reduces a layer, or tokens to their experts and back."""
        d, layers, stages = self.model.d_model, self.model.n_layers, []
        if not isinstance(self.tp, Real) or self.tp > 1:
            count = 2 * layers - (blocks if self.spread else 0)
            link = self.operators.link(maximum(self.tp, 2), self.links)
            domain = self.system.domain if self.given is None else minimum(self.tp, self.system.domain)
            fixed = count * link.latency + kernels.box_time(engine, count, self.tp, domain)
            sent = count * (kernels.reduce_time(link, self.rows * d * RESULT) - link.latency)
            if not isinstance(self.tp, Real):
                fixed, sent = where(self.tp > 1, fixed, 0), where(self.tp > 1, sent, 0)
            stages += [{"collective latency": fixed}, {"collective bandwidth": sent}]
        if self.spread:
            stages.append({"expert exchange": blocks * self._exchange()})
        return stages

    def _exchange(self):
        """Dispatch in 8 bits and combine in 16 of one layer's tokens, on the slower of the links they use."""
        chip, block = (
            self.system.chip,
            next(g.feed_forward for g in self.model.layers if isinstance(g.feed_forward, Experts)),
        )
        inside = self.expert_chips <= self.system.domain
        bandwidth = _reached(inside, chip)
        copies = minimum(block.n_active, self.expert_chips - 1)
        data = self.rows / self.tp * copies * self.model.d_model
        latency = self.operators.link(minimum(self.expert_chips, 8), "library").latency
        share = self.operators.exchange
        return sum(kernels.exchange_time(latency, data * size, bandwidth, share) for size in (SENT, RESULT))


def _reached(inside, chip):
    """The bandwidth of the links to other chips: those of the domain where they are ``inside``, or the network's."""
    bandwidth = where(inside, chip.scale_up_bandwidth, chip.scale_out_bandwidth)
    if bandwidth is None:
        raise ValueError(f"{chip.name or 'the chip'} states no bandwidth to send tokens to experts over")
    return bandwidth
