"""LIMINAL 2025: one decode step of any model on any system, by its equations."""

from numbers import Real

from inferlib import checks
from inferlib.papers.liminal2025.equations import (
    cache_size,
    capacity_needed,
    collective_latency,
    compute_time,
    exposed_time,
    measured_overhead,
    memory_time,
)
from inferlib.papers.liminal2025.records import PRINTED, Assumptions, chip_of, model_of
from inferlib.system import Breakdown, Layout, System, Workload, format_bytes
from inferlib.transformer import Transformer


def decode_step(model, system, workload, layout=None, assumptions=PRINTED):
    """One token for every sequence of a batch, as far as the paper describes it.

    Every chip of the system is in one tensor-parallel domain (up to the switch's 128 ports), or in as many
    pipeline stages as a ``layout`` says. A collective takes :func:`collective_latency`: the paper's switch, not
    the chip's own links. Stages add a hop each; the batch is that of one stage.

    Parameters
    ----------
    model : Transformer
    system : System
    workload : Workload
        Formats of weights and cache replace the paper's single byte; arithmetic runs at the peak of the
        weights' format.
    layout : Layout, optional
        ``tp`` and ``pp`` with ``tp * pp = system.count``; the paper's TP stands for every way of sharing a batch,
        so ``ep`` and ``dp`` must be 1.
    assumptions : Assumptions
        ``Assumptions.fitted()`` answers with equation 8, the authors' own model of a server that exists; the
        default is their limit.

    Returns
    -------
    Breakdown
        A stage of memory (weights and cache, which add) beside arithmetic, then what is exposed:
        collectives and hops, or the measured overhead of every layer.

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
    '6.78 ms, bound by weights'
    >>> real = decode_step(*step.origin[1:4], assumptions=Assumptions.fitted())
    >>> f"{real.total * 1e3:.2f} ms, bound by {real.binding}"
    '15.83 ms, bound by overhead'
    """
    expected = (model, Transformer), (system, System), (workload, Workload), (assumptions, Assumptions)
    for name, (value, kind) in zip(("model", "system", "workload", "assumptions"), expected, strict=True):
        checks.instance(name, value, kind)
    if layout is not None:
        checks.instance("layout", layout, Layout)
    tp, pp = (layout.tp, layout.pp) if layout is not None else (system.count, 1)
    reason = _outside(system, workload, layout, tp, pp, assumptions)
    if reason:
        return Breakdown(status="n/a", reason=reason, source="liminal2025")

    counted = assumptions.replace(
        weight_bytes=format_bytes(workload.weights), cache_bytes=format_bytes(workload.cache)
    )
    app, chip = model_of(model, counted), chip_of(system.chip, workload.weights)
    batch, context = workload.batch, workload.context
    needed = capacity_needed(app, pp * batch, context, counted)
    if isinstance(needed, Real) and needed > system.memory:
        reason = (
            f"{needed / 1e9:.0f} GB of weights and cache exceed the {system.memory / 1e9:.0f} GB of {system}"
        )
        return Breakdown(status="infeasible", reason=reason, source="liminal2025")

    cache = batch * cache_size(app, context, counted) / (tp * chip.bandwidth)
    at = app, chip, batch, context, tp, counted
    memory = {"weights": memory_time(*at) - cache}
    if not _nothing(context):
        memory["cache"] = cache
    exposed = _exposed(app, tp, pp, counted)
    origin = (decode_step, model, system, workload, layout, assumptions)
    stages = ({"memory": memory, "arithmetic": compute_time(*at)}, *exposed)
    return Breakdown(stages, source="liminal2025", origin=origin)


def _exposed(app, tp, pp, assumptions):
    """The stages in which chips wait: each term by itself, since they follow one another."""
    if assumptions.t_real is not None:
        # equation 8: what was measured stands for everything that is exposed
        return ({"overhead": measured_overhead(app, assumptions.t_real)},)
    t_tp = collective_latency(tp, assumptions)
    collective = exposed_time(app, tp, assumptions.free_stages, t_tp, assumptions)
    hops = exposed_time(app, tp, pp, t_tp, assumptions) - collective
    stages = [] if _plainly_one(tp) else [("network", collective)]
    stages += [] if _plainly_one(pp) else [("pipeline", hops)]
    return tuple({name: seconds} for name, seconds in stages)


def _outside(system, workload, layout, tp, pp, assumptions):
    """Why the paper does not describe this, or nothing."""
    if layout is not None and (layout.ep, layout.dp) != (1, 1):
        return "the paper's TP stands for expert and data parallelism too: give tp and pp only"
    if isinstance(system.count, Real) and tp * pp != system.count:
        return f"tp * pp is {tp * pp}, but the system has {system.count} chips"
    if isinstance(tp, Real) and tp > assumptions.radix:
        return f"the paper stops at {assumptions.radix:.0f} chips that share every operator: give a layout with pp"
    if isinstance(workload.weights, str) and workload.weights not in system.chip.peaks:
        return f"{system.chip.name} states no arithmetic peak in {workload.weights}"
    if system.chip.memory_capacity is None:
        return f"{system.chip.name} states no memory capacity"
    return ""


def _plainly_one(degree):
    return isinstance(degree, Real) and degree == 1


def _nothing(context):
    return isinstance(context, Real) and context == 0
