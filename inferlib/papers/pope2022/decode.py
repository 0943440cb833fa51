"""Pope et al. 2022 on other machines: any dense Transformer, cut over any chips of one fast network.

The paper's rules need shapes, a bandwidth and a number of tokens, nothing of TPU v4. Here they meet the
catalogue's models and chips: how to shard at a given batch, and the one question of every chapter.
"""

from numbers import Real

from inferlib import checks
from inferlib.ops import minimum, where
from inferlib.papers.pope2022.equations.costs import (
    attention_flops,
    compute_time,
    matmul_flops,
    memory_time,
    weights_on_chip,
)
from inferlib.papers.pope2022.equations.layouts import (
    TIMES,
    batch_attention_volume,
    cache_on_chip,
    gathered_over,
    why_not,
)
from inferlib.papers.pope2022.records import (
    CORRECTED,
    PRINTED,
    Mesh,
    chip_of,
    model_of,
    not_described,
)
from inferlib.system import Breakdown, Layout, System, Workload
from inferlib.transformer import Transformer


def boxes(count):
    """All ways to set up so many chips as X × Y × Z, every axis with all the bandwidth.

    Examples
    --------
    >>> [str(mesh) for mesh in boxes(4)]
    ['1 x 1 x 4', '1 x 2 x 2', '1 x 4 x 1', '2 x 1 x 2', '2 x 2 x 1', '4 x 1 x 1']
    """
    factors = [k for k in range(1, count + 1) if count % k == 0]
    return [Mesh(x, y, count // (x * y)) for x in factors for y in factors if count % (x * y) == 0]


def options(model, chip, count, batch, tokens=1, context=0, assumptions=CORRECTED):
    """Every way to cut a model over some chips, and what a forward pass needs in each.

    Parameters
    ----------
    model : Model
        Such as :func:`model_of` makes.
    chip : Chip
        Such as :func:`chip_of` makes.
    count : int
        Chips of one network.
    batch : float
        Sequences.
    tokens : float
        New tokens of each sequence in this pass: 1 in generation, the prompt in prefill.
    context : float
        Tokens of each sequence that are cached before.
    assumptions : Assumptions
        What is counted as moved.

    Returns
    -------
    pandas.DataFrame
        One row for each layout and box: ``layout``, ``attention`` (what the cache is cut over), ``x``,
        ``y``, ``z``; seconds of ``network`` (all layers), ``memory``, ``arithmetic`` and the longest of
        them, ``bound``; and ``why not``, empty where it runs. Those that run come first, the least
        communication first among equals.

    Raises
    ------
    ValueError, TypeError
        If a number is not positive, or ``count`` no whole number.
    """
    import pandas as pd

    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"count is {count!r}, but must be a whole number of at least 1")
    checks.number("batch", batch, minimum=1)
    checks.number("tokens", tokens, minimum=1)
    checks.number("context", context, zero=True)
    rows = []
    for mesh in boxes(count):
        for layout in TIMES:
            if _twice(layout, mesh):
                continue
            # where every chip has sequences of its own, there is nothing left to cut over heads
            for attention in ("Batch",) if layout == "WG XYZ" else ("Head", "Batch"):
                at = model, chip, mesh, layout, attention, batch, tokens, context, assumptions
                needs = pass_needs(*at)
                rows.append(
                    {
                        "layout": layout, "attention": attention, "x": mesh.x, "y": mesh.y, "z": mesh.z,
                        "network": needs["network"], "memory": needs["weights"] + needs["cache"],
                        "arithmetic": needs["arithmetic"],
                        "why not": why_not(model, chip, mesh, layout, attention, batch, context + tokens),
                    }
                )  # fmt: skip
    frame = pd.DataFrame(rows)
    frame.insert(8, "bound", frame[["network", "memory", "arithmetic"]].max(axis=1))
    runs = frame["why not"] != ""
    order = frame.assign(runs=runs).sort_values(["runs", "bound", "network"], kind="stable").index
    return frame.loc[order].reset_index(drop=True)


def _twice(layout, mesh):
    """Whether a layout is another one on this box, or the same as on another box."""
    if layout == "WS 1D":
        return mesh.x != mesh.chips  # how the chips stand makes no difference
    if layout == "WS 2D":
        return mesh.x == 1 or mesh.y != 1
    if layout == "WG X":
        return mesh.x in (1, mesh.chips) or mesh.y != 1
    if layout == "WG XY":
        return True  # the number of chips gathered over is what counts, and WG X has them all
    return mesh.x != mesh.chips or mesh.chips == 1


def pass_needs(model, chip, mesh, layout, attention, batch, tokens, context, assumptions):
    """Seconds that each resource needs for one forward pass, at its peak.

    Parameters
    ----------
    model : Model
    chip : Chip
    mesh : Mesh
    layout, attention : str
        One of :data:`TIMES`, and ``"Head"`` or ``"Batch"``.
    batch, tokens, context : float
        Sequences; new tokens and cached tokens of each.
    assumptions : Assumptions

    Returns
    -------
    dict
        ``"weights"``, ``"cache"``, ``"arithmetic"`` and ``"network"``. Each new token sees the cached ones
        and all new ones of its sequence.
    """
    seen = context + (tokens if tokens > 1 else 0)
    moved = model.layers * TIMES[layout](model, chip, mesh, batch * tokens, assumptions)
    parts = gathered_over(mesh, layout)
    if attention == "Batch" and parts != mesh.chips:
        # the all-to-all runs among the chips that share one part of the batch
        sharing = Mesh(mesh.chips / parts)
        volume = batch_attention_volume(model, sharing, batch * tokens / parts, assumptions)
        moved = moved + model.layers * volume * model.activation_bytes / chip.network_bandwidth
    flop = matmul_flops(model, batch * tokens) + attention_flops(model, batch * tokens, seen)
    return {
        "weights": memory_time(chip, weights_on_chip(model, mesh.chips)),
        "cache": memory_time(chip, cache_on_chip(model, mesh, layout, attention, batch, seen)),
        "arithmetic": compute_time(chip, mesh.chips, flop),
        "network": where(mesh.chips > 1, moved, 0.0 * moved),
    }


def advice(model, chip, count, batch, tokens=1, context=0, assumptions=CORRECTED):
    """The best way to cut a model at this batch: the first row of :func:`options`.

    Returns
    -------
    pandas.Series

    Raises
    ------
    ValueError
        If nothing fits; the reason is that of the option that comes nearest.

    Examples
    --------
    >>> from inferlib import load_chip, load_model
    >>> model, chip = model_of(load_model("Llama 3 70B")), chip_of(load_chip("H100 SXM"))
    >>> advice(model, chip, 8, batch=32, context=4096).layout
    'WS 2D'
    """
    best = options(model, chip, count, batch, tokens, context, assumptions).iloc[0]
    if best["why not"]:
        raise ValueError(f"no layout of {count} chips runs this: {best['why not']}")
    return best


def decode_step(model, system, workload, layout=None, assumptions=PRINTED) -> Breakdown:
    """One token for every sequence of a batch, as far as the paper describes it.

    The model is cut over all chips, weight-stationary, in one or two dimensions: the box that moves least is
    taken. The cache is cut over heads, or over the batch if that leaves less of it on a chip. Weights and
    cache share the memory; memory, arithmetic and network can all overlap (section 3.5: communication is
    partially or fully hidden), so the longest counts.

    Parameters
    ----------
    model : Transformer
        Dense, equal layers; blocks are taken as serial.
    system : System
        All its chips must share one scale-up domain: the paper knows one network.
    workload : Workload
    layout : Layout, optional
        The paper cuts every matrix over all chips, ``Layout(tp=system.count)``; any other is n/a.
    assumptions : Assumptions
        With ``exposed`` communication is hidden behind nothing and adds.

    Returns
    -------
    Breakdown
        Terms ``weights`` and ``cache``, which add, ``arithmetic`` and ``network``.

    Raises
    ------
    TypeError
        If an argument is not of the class named above.

    Examples
    --------
    >>> import inferlib
    >>> box = inferlib.System(inferlib.load_chip("H100 SXM"), 8)
    >>> step = decode_step(inferlib.load_model("Llama 3 70B"), box, inferlib.Workload(batch=32, context=4096))
    >>> f"{step.total * 1e3:.2f} ms, bound by {step.binding}"
    '6.87 ms, bound by weights'
    """
    checks.instance("model", model, Transformer)
    checks.instance("system", system, System)
    checks.instance("workload", workload, Workload)
    reason = not_described(model)
    if not reason and layout is not None:
        checks.instance("layout", layout, Layout)
        if (layout.pp, layout.ep, layout.dp) != (1, 1, 1) or layout.tp != system.count:
            reason = f"the paper cuts every matrix over all {system.count} chips"
    if not reason and system.count != system.domain:
        reason = (
            f"the paper's chips share one network; these are {system.count} in domains of {system.domain}"
        )
    missing = [n for n in ("memory_capacity", "scale_up_bandwidth") if getattr(system.chip, n) is None]
    if not reason and missing:
        reason = f"{system.chip.name} states no {' and no '.join(missing)}"
    if reason:
        return Breakdown(status="n/a", reason=reason, source="pope2022")

    shape, chip = model_of(model, workload.weights, workload.cache), chip_of(system.chip)
    batch, context = workload.batch, workload.context
    # on symbols the batch is taken to fill the chips
    few = isinstance(batch, Real) and batch <= minimum(system.count, shape.kv_heads)
    attention = "Head" if few or shape.kv_heads >= system.count else "Batch"
    ways = [("WS 1D", boxes(system.count)[-1])]
    ways += [("WS 2D", mesh) for mesh in boxes(system.count) if mesh.x > 1 and mesh.y == 1]
    kind, mesh = min(ways, key=lambda way: TIMES[way[0]](shape, chip, way[1], 1, assumptions))
    if isinstance(batch, Real) and isinstance(context, Real):
        reason = why_not(shape, chip, mesh, kind, attention, batch, context)
        if reason:
            return Breakdown(status="infeasible", reason=reason, source="pope2022")
    origin = (decode_step, model, system, workload, layout, assumptions)
    stages = stages_in(shape, chip, mesh, kind, attention, batch, context, assumptions)
    return Breakdown(stages, source="pope2022", origin=origin)


def stages_in(model, chip, mesh, layout, attention, batch, context, assumptions=PRINTED):
    """One decode step in a given layout, as the stages of a breakdown; parameters as :func:`pass_needs`.

    Works on numbers and on symbols; whether it fits is :func:`layouts.why_not`.
    """
    needs = pass_needs(model, chip, mesh, layout, attention, batch, 1, context, assumptions)
    network = needs.pop("network")
    memory = {name: needs[name] for name in ("weights", "cache")}
    busy = {"memory": memory, "arithmetic": needs["arithmetic"]}
    return (busy, {"network": network}) if assumptions.exposed else (busy | {"network": network},)
