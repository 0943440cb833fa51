"""What is measured: shapes, the bytes and FLOP of one step, and which points of the grid fit into memory.

Plain Python. The counts are this script's own; a test holds them against ``inferlib.Transformer``.
"""

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CONTEXTS = (1024, 4096, 16384, 32768)
COARSE = (1, 4, 16, 64, 256)  # batches of the first pass; the others refine it
EAGER = {(batch, context) for batch in (1, 16, 256) for context in (1024, 16384)}
HALVED = {(batch, 4096) for batch in (1, 64)}  # also with half of the layers: is time linear in layers?
PROFILED = ((1, 1024), (1, 16384), (16, 4096), (64, 4096), (256, 1024))

DENSE = ("Llama 3 8B", "Qwen3 4B", "Qwen3 32B", "Llama 3 70B")
SPARSE = ("Qwen3 30B-A3B", "GPT-OSS 20B")
PRECISIONS = {"dense": ("bf16", "fp8"), "sparse": ("bf16",)}

FILE = Path(__file__).with_name("shapes.json")
VALUE = {"fp32": 4, "bf16": 2, "fp8": 1}  # bytes of one value
RESERVE = 3 * 2**30  # context, libraries' workspaces, partial results, fragments
FEWEST = 8  # a model is cut to an eighth of its layers at most ...
FEWEST_LAYERS = 4  # ... and to four


@dataclass(frozen=True)
class Kind:
    """A group of equal layers: widths, and which small vectors it has."""

    count: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    window: int | None = None
    input_bias: bool = False
    output_bias: bool = False
    qk_norm: bool = False
    sinks: bool = False
    d_ff: int = 0
    n_experts: int = 0
    n_active: int = 0
    d_expert: int = 0
    biases: bool = False
    router_bias: bool = False

    @property
    def qkv(self):
        """Width of queries, keys and values together."""
        return (self.n_heads + 2 * self.n_kv_heads) * self.head_dim

    @property
    def width(self):
        """Width of the feed-forward block, or of one expert."""
        return self.d_expert or self.d_ff

    def seen(self, context):
        """Positions that the new token attends to, itself included."""
        return min(context, self.window or context)


@dataclass(frozen=True)
class Shape:
    """A decoder: groups of layers between an embedding and a head."""

    name: str
    d_model: int
    vocab_size: int
    tied: bool
    kinds: tuple = field(default=())

    @property
    def layers(self):
        return sum(kind.count for kind in self.kinds)

    @property
    def sparse(self):
        return any(kind.n_experts for kind in self.kinds)

    def order(self):
        """The kind of every layer. Two kinds alternate, as they do in GPT-OSS."""
        rounds = max(kind.count for kind in self.kinds)
        return [kind for i in range(rounds) for kind in self.kinds if i < kind.count]

    def cut(self, layers):
        """The same model with fewer layers, in the same proportion of kinds."""
        counts = [kind.count * layers / self.layers for kind in self.kinds]
        if layers < 1 or any(count != int(count) for count in counts):
            raise ValueError(f"layers is {layers}, but must divide the {self.layers} of {self.name} evenly")
        kinds = [replace(kind, count=int(count)) for kind, count in zip(self.kinds, counts, strict=True)]
        return replace(self, kinds=tuple(kinds))

    def cuts(self):
        """Numbers of layers to try, most first: all, a half, a quarter, an eighth, as far as they divide."""
        sizes = []
        for part in (1, 2, 4, FEWEST):
            even = all(kind.count % part == 0 for kind in self.kinds)
            if even and (part == 1 or self.layers // part >= FEWEST_LAYERS):
                sizes.append(self.layers // part)
        return sizes


def load(name, file=FILE):
    """The shape of a model of shapes.json."""
    table = json.loads(file.read_text(encoding="utf-8"))
    if name not in table:
        raise LookupError(f"model is {name!r}, but must be one of {', '.join(table)}")
    entry = table[name]
    return Shape(
        name,
        entry["d_model"],
        entry["vocab_size"],
        entry["tied"],
        tuple(_kind(group, name) for group in entry["groups"]),
    )


def _kind(group, name):
    attention, block = dict(group["attention"]), group["feed_forward"]
    matrices, norms = block["matrices"], group["norms"]
    unknown = attention.pop("chunked") or block.get("d_shared") or block.get("shared_gate")
    if unknown or matrices != 3 or norms != 2 or ("d_ff" in block and block["biases"]):
        raise ValueError(f"{name} has a layer that this script does not build")
    keep = ("d_ff", "n_experts", "n_active", "d_expert", "biases", "router_bias")
    return Kind(group["count"], **attention, **{key: block[key] for key in keep if key in block})


def tiny(shape):
    """The same structure with small widths, two layers of each kind: for checks and smoke tests."""
    kinds = []
    for kind in shape.kinds:
        small = replace(kind, count=2, n_heads=8, n_kv_heads=2, head_dim=16)
        if kind.window:
            small = replace(small, window=8)
        if kind.n_experts:
            small = replace(small, n_experts=8, n_active=2, d_expert=48)
        else:
            small = replace(small, d_ff=96)
        kinds.append(small)
    return replace(shape, d_model=64, vocab_size=160, kinds=tuple(kinds))


# What one step costs.


def _matrices(shape, kind):
    """Weights of the matrices of one layer that every token meets, and of one expert."""
    attention = shape.d_model * (kind.qkv + kind.n_heads * kind.head_dim)
    router = shape.d_model * kind.n_experts
    block = 3 * shape.d_model * kind.width
    return (attention + router, block) if kind.n_experts else (attention + block, 0)


def _vectors(shape, kind):
    """Norms, biases and sinks of one layer, and biases of one expert."""
    common = 2 * shape.d_model + (2 * kind.head_dim if kind.qk_norm else 0)
    common += (kind.qkv if kind.input_bias else 0) + (shape.d_model if kind.output_bias else 0)
    common += (kind.n_heads if kind.sinks else 0) + (kind.n_experts if kind.router_bias else 0)
    expert = 2 * kind.d_expert + shape.d_model if kind.biases else 0
    return common, expert


def expected_experts(kind, batch):
    """Distinct experts that a batch reaches in a layer if all are equally likely."""
    return kind.n_experts * (1 - (1 - kind.n_active / kind.n_experts) ** batch)


def weight_bytes(shape, precision, batch=None, touched=None):
    """Bytes of the weights that a step reads; of all weights in memory if no batch is given.

    In fp8 the matrices of attention and feed-forward have one byte a value; head, embedding, router, norms
    and biases stay in bf16. ``touched`` is the measured mean number of distinct experts of a layer.
    """
    matrix, other = VALUE[precision], max(2, VALUE[precision])
    total = other * (shape.d_model + shape.vocab_size * shape.d_model)  # last norm, head
    if batch is None and not shape.tied:
        total += other * shape.vocab_size * shape.d_model  # of the embedding a step needs a few rows
    for kind in shape.kinds:
        (common, expert), (vectors, biases) = _matrices(shape, kind), _vectors(shape, kind)
        router = shape.d_model * kind.n_experts
        layer = matrix * (common - router) + other * (router + vectors)
        if kind.n_experts:
            n = kind.n_experts if batch is None else touched
            n = expected_experts(kind, batch) if n is None else n
            layer += n * (matrix * expert + other * biases)
        total += kind.count * layer
    return total


def cache_bytes(shape, batch, context, value=2):
    """Bytes of the keys and values of a batch: what a step reads, and what lies in memory."""
    return sum(
        kind.count * batch * 2 * kind.n_kv_heads * kind.head_dim * kind.seen(context) * value
        for kind in shape.kinds
    )


def flop(shape, batch, context):
    """FLOP of one step: two for each weight a token meets, and for each value of the cache and query head."""
    total = 2 * shape.vocab_size * shape.d_model
    for kind in shape.kinds:
        common, expert = _matrices(shape, kind)
        pairs = 2 * 2 * kind.n_heads * kind.head_dim * kind.seen(context)
        total += kind.count * (2 * (common + kind.n_active * expert) + pairs)
    return batch * total


def memory(shape, precision, batch, context):
    """Bytes that a point needs on the device."""
    kind = max(shape.kinds, key=lambda kind: kind.qkv + kind.width)
    rows = batch * max(1, kind.n_active)
    activations = 4 * batch * shape.vocab_size + 16 * rows * (kind.qkv + 3 * kind.width + shape.d_model)
    positions = 4 * context * kind.head_dim
    cache = cache_bytes(shape, batch, context, 4 if precision == "fp32" else 2)
    return weight_bytes(shape, precision) + cache + activations + positions + RESERVE


# Which points are measured, in which order.


@dataclass(frozen=True)
class Point:
    """One step to measure, or the reason why not."""

    model: str
    precision: str
    batch: int
    context: int
    layers: int
    mode: str = "graph"
    order: int = 0
    refused: str = ""


def point(shape, precision, batch, context, available, **other):
    """The point with as many layers as fit into ``available`` bytes, or one that says why none fits."""
    for layers in shape.cuts():
        if memory(shape.cut(layers), precision, batch, context) <= available:
            return Point(shape.name, precision, batch, context, layers, **other)
    needed = memory(shape.cut(layers), precision, batch, context)
    reason = (
        f"{layers} of {shape.layers} layers need {needed / 1e9:.1f} GB, but there are {available / 1e9:.1f}"
    )
    return Point(shape.name, precision, batch, context, layers, refused=reason, **other)


def grid(shapes, precisions, available, batches=BATCHES, contexts=CONTEXTS):
    """Every point of a stage in the order of measuring: a coarse grid of every model first.

    Within a pass, points that share weights are neighbours.
    """
    points = []
    for shape in shapes:
        for i, precision in enumerate(precisions):
            for batch in batches:
                for context in contexts:
                    order = 2 * i + (batch not in COARSE)
                    full = point(shape, precision, batch, context, available, order=order)
                    points.append(full)
                    if full.refused or i:
                        continue
                    if (batch, context) in EAGER:
                        points.append(replace(full, mode="eager"))
                    if (batch, context) in HALVED and full.layers // 2 in shape.cuts():
                        points.append(replace(full, layers=full.layers // 2))
    names = [shape.name for shape in shapes]
    return sorted(
        points, key=lambda p: (p.order, names.index(p.model), p.precision, -p.layers, p.mode == "eager")
    )


def repeats(seconds, target=0.4, fewest=10, most=200):
    """How often to repeat what takes so long: about ``target`` seconds in all."""
    return max(fewest, min(most, math.ceil(target / max(seconds, 1e-9))))
