"""Pope et al. 2022 on other machines: any dense Transformer, cut over any chips of one fast network.

The paper's rules need shapes, a bandwidth and a number of tokens, nothing of TPU v4. Here they meet the
catalogue's models and chips, for the one question of every chapter.
"""

from numbers import Real

from inferlib.ops import minimum, where
from inferlib.papers.pope2022.equations import (
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
from inferlib.system import DoesNotFit, Layout, NotDescribed, decode_model
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
