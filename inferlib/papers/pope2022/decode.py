"""Pope et al. 2022 on other machines: any dense Transformer, cut over any chips of one fast network.

The paper's rules need shapes, a bandwidth and a number of tokens, nothing of TPU v4. Here they meet the
catalogue's models and chips: how to shard at a given batch, and the one question of every chapter.
"""

from dataclasses import dataclass
from numbers import Real

from inferlib import validation
from inferlib.ops import minimum, where
from inferlib.papers.pope2022.equations import (
    LAYOUTS,
    batch_attention_volume,
    bound,
    cache_on_chip,
    gathered_over,
    layer_time,
    why_not,
)
from inferlib.papers.pope2022.records import (
    CORRECTED,
    PRINTED,
    Mesh,
    load_chip,
    load_model,
    not_described,
)
from inferlib.system import DoesNotFit, Layout, NotDescribed, count as whole, decode_model
from inferlib.transformer import Transformer


def boxes(count):
    """Return all boxes X × Y × Z of a number of chips, every axis with all the bandwidth.

    Examples
    --------
    >>> [str(mesh) for mesh in boxes(4)]
    ['1 x 1 x 4', '1 x 2 x 2', '1 x 4 x 1', '2 x 1 x 2', '2 x 2 x 1', '4 x 1 x 1']
    """
    factors = [k for k in range(1, count + 1) if count % k == 0]
    return [Mesh(x, y, count // (x * y)) for x in factors for y in factors if count % (x * y) == 0]


@dataclass(frozen=True)
class ShardingPlan:
    """One way to cut a model: layout, dimension along which attention is cut, box, and seconds of each resource."""

    layout: str
    attention: str
    mesh: Mesh
    network: float
    memory: float
    arithmetic: float
    why_not: str

    @property
    def bound(self):
        """The longest of the three times."""
        return max(self.network, self.memory, self.arithmetic)


def sharding_plans(model, chip, count, batch, tokens=1, context=0):
    """Every :class:`ShardingPlan` to cut a model over some chips of one network; ``why_not`` is empty where it runs.

    ``model``, ``chip``: such as :func:`load_model` and :func:`load_chip` make. ``count``: chips, a whole number, else a
    ValueError. ``tokens``: new tokens of each of ``batch`` sequences in this pass: 1 in generation, the prompt in
    prefill; ``context``: those that are cached before.
    """
    count = whole("count", count)
    validation.number("batch", batch, minimum=1)
    validation.number("tokens", tokens, minimum=1)
    validation.number("context", context, zero=True)
    for mesh, layout in ((m, name) for m in boxes(count) for name in LAYOUTS if _distinct(name, m)):
        # if every chip has its own sequences, nothing is left to cut over heads
        for attention in ("Batch",) if layout == "WG XYZ" else ("Head", "Batch"):
            at = model, chip, mesh, layout, attention, batch
            needs = pass_needs(*at, tokens, context)
            memory = needs["weights"] + needs["cache"]
            reason = why_not(*at, context + tokens)
            yield ShardingPlan(layout, attention, mesh, needs["network"], memory, needs["arithmetic"], reason)


def _distinct(layout, mesh):
    """Whether a box is the representative of its layout; others are equivalent, or belong to another layout."""
    if layout == "WS 1D":
        return mesh.x == mesh.chips  # the arrangement of the chips makes no difference
    if layout == "WS 2D":
        return mesh.x != 1 and mesh.y == 1
    if layout == "WG X":
        return mesh.x not in (1, mesh.chips) and mesh.y == 1
    # WG XY: only the number of chips that gather counts, and WG X includes all numbers
    return layout == "WG XYZ" and mesh.x == mesh.chips != 1


def pass_needs(model, chip, mesh, layout, attention, batch, tokens, context, assumptions=CORRECTED):
    """Seconds that each resource needs at its peak, as :func:`bound`, plus the cost of attention over the batch.

    Each new token sees the cached ones and all new ones of its sequence.
    """
    seen = context + (tokens if tokens > 1 else 0)
    held = cache_on_chip(model, mesh, layout, attention, batch, seen)
    needs = bound(model, chip, mesh, layout, batch * tokens, seen, held, assumptions)
    parts = gathered_over(mesh, layout)
    moved = needs["network"]
    if attention == "Batch" and parts != mesh.chips:
        # the all-to-all is among the chips that share one part of the batch
        volume = batch_attention_volume(model, Mesh(mesh.chips / parts), batch * tokens / parts, assumptions)
        moved = moved + model.layers * volume * model.activation_bytes / chip.scale_up_bandwidth
    # without the factor (K - 1)/K one chip would exchange with itself
    return needs | {"network": where(mesh.chips > 1, moved, 0.0 * moved)}


def best_plan(model, chip, count, batch, tokens=1, context=0):
    """The best of the :func:`sharding_plans` to cut a model at this batch; among equals, the one that moves least.

    Raises ValueError if nothing fits, with the reason of the plan that comes nearest.

    Examples
    --------
    >>> from inferlib.papers.pope2022 import load_chip, load_model
    >>> model, chip = load_model("Llama 3 70B"), load_chip("H100 SXM")
    >>> best_plan(model, chip, 8, batch=32, context=4096).layout
    'WS 2D'
    """
    every = sharding_plans(model, chip, count, batch, tokens, context)
    best = min(every, key=lambda way: (way.why_not != "", way.bound, way.network))
    if best.why_not:
        raise ValueError(f"no layout of {count} chips runs this: {best.why_not}")
    return best


@decode_model("pope2022")
def decode_step(
    model: Transformer,
    system,
    workload,
    layout=None,
    assumptions=PRINTED,
):
    """One token for every sequence of a batch, as far as the paper describes it.

    The model is cut over all chips, weight-stationary, in one or two dimensions: the box that moves least is
    taken. The cache is cut over heads, or over the batch if that leaves less of it on a chip. Weights and cache
    share the memory; memory, arithmetic and network can all overlap (section 3.5: communication is partially or
    fully hidden), so the longest counts.

    ``model``: dense, equal layers; blocks are taken as serial. ``system``: all its chips must share one
    scale-up domain: the paper knows one network. ``layout``: the paper cuts every matrix over all chips,
    ``Layout(tp=system.count)``; any other is n/a. ``assumptions``: with ``exposed`` communication is hidden
    behind nothing and adds.

    Returns terms ``weights`` and ``cache``, which add, ``arithmetic`` and ``network``.

    Examples
    --------
    >>> import inferlib
    >>> box = inferlib.System(inferlib.load_chip("H100 SXM"), 8)
    >>> step = decode_step(inferlib.load_model("Llama 3 70B"), box, inferlib.Workload(batch=32, context=4096))
    >>> f"{step.total * 1e3:.2f} ms, bound by {step.bottleneck}"
    '6.87 ms, bound by weights'

    On 8 chips the cache is cut over the 8 heads, and a sequence costs the same in any batch. On 16 chips it is cut so
    up to 8 sequences, and read by two chips each; more are cut over the batch, which moves queries and results:

    >>> def each(chips, batch, term):
    ...     chip, work = inferlib.load_chip("H100 SXM"), inferlib.Workload(batch, 100)
    ...     step = decode_step(inferlib.load_model("Llama 3 70B"), inferlib.System(chip, chips, chips), work)
    ...     return 1e9 * step.terms[term] / batch
    >>> [round(each(8, batch, "network")) for batch in (4, 32)]
    [10923, 10923]
    >>> [round(each(16, batch, "network")) for batch in (4, 8, 16, 32)]
    [8010, 8010, 8374, 8374]
    >>> [round(each(16, batch, "cache") / each(16, 32, "cache"), 3) for batch in (4, 8, 16)]
    [2.0, 2.0, 1.0]
    """
    count = system.count
    batch = workload.batch
    context = workload.context
    if reason := not_described(model):
        raise NotDescribed(reason)
    if layout is not None and layout != Layout(tp=count):
        raise NotDescribed(f"the paper cuts every matrix over all {count} chips")
    if count != system.domain:
        raise NotDescribed(
            f"the paper's chips share one network; these are {count} in domains of {system.domain}"
        )

    shape = load_model(model, workload.weights, workload.cache)
    chip = load_chip(system.chip)
    # on symbols, the batch is assumed to fill the chips
    few = isinstance(batch, Real) and batch <= minimum(count, shape.kv_heads)
    attention = "Head" if few or shape.kv_heads >= count else "Batch"
    ways = [("WS 1D", boxes(count)[-1])]
    ways += [("WS 2D", mesh) for mesh in boxes(count) if mesh.x > 1 and mesh.y == 1]
    cut, mesh = min(ways, key=lambda way: layer_time(shape, chip, way[1], 1, way[0], assumptions))
    if isinstance(batch, Real) and isinstance(context, Real):
        if reason := why_not(shape, chip, mesh, cut, attention, batch, context):
            raise DoesNotFit(reason)
    needs = pass_needs(shape, chip, mesh, cut, attention, batch, 1, context, assumptions)
    memory = {name: needs.pop(name) for name in ("weights", "cache")}
    network = {"network": needs.pop("network")}
    busy = {"memory": memory, **needs}
    return (busy, network) if assumptions.exposed else (busy | network,)
