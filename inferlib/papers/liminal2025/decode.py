"""LIMINAL's answer to a decode step: the same question that every source is asked."""

from numbers import Real

from inferlib.papers.liminal2025.equations import (
    cache_size,
    capacity_needed,
    compute_time,
    exposed_time,
    measured_overhead,
    memory_time,
)
from inferlib.papers.liminal2025.records import PRINTED, load_chip, load_model
from inferlib.system import NotDescribed, bytes_of_formats, decode_model
from inferlib.transformer import Transformer


@decode_model("liminal2025")
def decode_step(
    model: Transformer,
    system,
    workload,
    layout=None,
    assumptions=PRINTED,
):
    """One token for every sequence of a batch, as far as the paper describes it.

    ``system``: all chips are one tensor-parallel domain, or as many pipeline stages as ``layout`` says, with
    ``tp * pp = system.count``; the batch is that of one stage. A collective takes :func:`collective_latency`:
    that of the paper's switch, not of the chip's own links. ``workload``: its formats replace the paper's
    single byte; arithmetic runs at the peak of the weights' format. ``assumptions``: ``Assumptions.fitted()``
    answers with equation 8; the default is the limit.

    Returns memory (weights and cache, which add) beside arithmetic, then what is exposed: collectives and hops,
    or the measured overhead of every layer.

    Examples
    --------
    >>> import inferlib
    >>> from inferlib.papers.liminal2025 import Assumptions
    >>> box = inferlib.System(inferlib.load_chip("H100 SXM"), 8)
    >>> step = decode_step(inferlib.load_model("Llama 3 70B"), box, inferlib.Workload(batch=32, context=4096))
    >>> f"{step.total * 1e3:.2f} ms, bound by {step.bottleneck}"
    '6.78 ms, bound by weights'
    >>> real = decode_step(*step.origin[1:4], assumptions=Assumptions.fitted())
    >>> f"{real.total * 1e3:.2f} ms, bound by {real.bottleneck}"
    '15.83 ms, bound by overhead'
    """
    tp, pp = (layout.tp, layout.pp) if layout is not None else (system.count, 1)
    _described(system, workload, layout, tp, pp, assumptions)
    bytes_of = bytes_of_formats(weight_bytes=workload.weights, cache_bytes=workload.cache)
    counted = assumptions.replace(**bytes_of)
    app = load_model(model, counted)
    chip = load_chip(system.chip, workload.weights)
    batch = workload.batch
    context = workload.context
    system.hold(capacity_needed(app, pp * batch, context, counted))
    cache = batch * cache_size(app, context, counted) / (tp * chip.bandwidth)
    at = app, chip, batch, context, tp, counted
    memory = {"weights": memory_time(*at) - cache, "cache": cache}
    if isinstance(context, Real) and context == 0:
        del memory["cache"]
    overlapped = {"memory": memory, "arithmetic": compute_time(*at)}
    if counted.t_real is not None:
        # equation 8: the measured time replaces all exposed times
        return overlapped, {"overhead": measured_overhead(app, counted.t_real)}
    network = exposed_time(app, tp, counted.free_stages, assumptions=counted)
    hops = exposed_time(app, tp, pp, assumptions=counted) - network
    waits = {"network": (tp, network), "pipeline": (pp, hops)}
    # a degree of one has no wait; a symbolic degree keeps its term
    named = [{name: t} for name, (degree, t) in waits.items() if not isinstance(degree, Real) or degree != 1]
    return overlapped, *named


def _described(system, workload, layout, tp, pp, assumptions):
    """Raise NotDescribed for questions that the paper does not cover."""
    if layout is not None and (layout.ep, layout.dp) != (1, 1):
        raise NotDescribed("the paper's TP stands for expert and data parallelism too: give tp and pp only")
    if isinstance(system.count, Real) and tp * pp != system.count:
        raise NotDescribed(f"tp * pp is {tp * pp}, but the system has {system.count} chips")
    if isinstance(tp, Real) and tp > assumptions.radix:
        limit = f"{assumptions.radix:.0f} chips that share every operator"
        raise NotDescribed(f"the paper stops at {limit}: give a layout with pp")
    if isinstance(workload.weights, str) and workload.weights not in system.chip.peaks:
        raise NotDescribed(f"{system.chip.name} states no arithmetic peak in {workload.weights}")
