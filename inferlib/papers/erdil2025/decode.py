"""Erdil 2025: the complete model's answer to one question, split into named terms."""

import numpy as np

from inferlib.equation import forbid_override
from inferlib.papers.erdil2025.equations import model as m
from inferlib.papers.erdil2025.records import (
    PRINTED,
    Cut,
    Model,
    computing_at,
    load_chip,
    load_model,
)
from inferlib.papers.erdil2025.search import infeasible, layouts_at, opened, pipeline_degrees
from inferlib.system import Breakdown, DoesNotFit, NotDescribed, decode_model
from inferlib.transformer import Transformer


def best_layout(model, chip, n_gpu, batch, *, context=0, new_tokens=1, pipeline=True, assumptions=PRINTED):
    """Return the fastest layout of one instance, and its Breakdown, infeasible with the reason if nothing fits.

    Parameters are :func:`token_latency`'s, as plain numbers; the :class:`Cut` is None if nothing fits.

    Examples
    --------
    >>> from inferlib.papers.erdil2025 import load_chip, load_model
    >>> cut, step = best_layout(load_model("Llama 3 70B"), load_chip("H100"), 8, 32, context=4096)
    >>> cut.kind, step.bottleneck
    ('1D', 'weights')
    """
    shape, chip, assumptions = opened(model, chip, assumptions)
    degrees = pipeline_degrees(shape.n_layers, batch, pipeline, assumptions)
    try:
        return _fastest(shape, chip, degrees, n_gpu, batch, context, new_tokens, assumptions)
    except DoesNotFit as reason:
        return None, Breakdown(status="infeasible", reason=str(reason), source="erdil2025")


def _fastest(shape, chip, degrees, n_gpu, batch, context, new_tokens, assumptions):
    """Return the fastest of the feasible layouts, and its terms; ``explain`` shows these, not the search."""
    forbid_override("the best layout, whose time is split into terms,", m.layout_latency)
    reasons = [infeasible(shape, chip, n_gpu, stages, batch, context, assumptions) for stages in degrees]
    if all(reasons):
        raise DoesNotFit(reasons[0])
    point = np.array([n_gpu]), np.array([batch])
    found = layouts_at(shape, chip, *point, context, new_tokens, degrees, assumptions)
    cut = Cut(**{name: values.item() for name, values in found.items()})
    at = (n_gpu, batch, context, new_tokens, assumptions)
    origin = (m.layout_latency, shape, chip, cut, *at)
    return cut, Breakdown(terms(shape, chip, cut, *at), source="erdil2025", origin=origin)


def terms(shape, chip, cut, n_gpu, batch, context, new_tokens, assumptions=PRINTED, *, split=True):
    """Return :func:`model.layout_terms` as the stages of a breakdown: each wait, then reading over multiplying.

    Symbols need ``split=False``, because the fastest protocol is not known for them.
    """
    at = (n_gpu, batch, context, new_tokens, assumptions)
    waiting, reading, multiplying = m.layout_terms(shape, chip, cut, *at, split=split)
    if cut.stages == 1:
        del waiting["pipeline"]
    if not context:
        del reading["cache"], multiplying["attention arithmetic"]
    waits = tuple({name: seconds} for name, seconds in waiting.items())
    return (*waits, {"memory": reading, "multiplying": multiplying})


@decode_model("erdil2025")
def decode_step(
    model: Transformer | Model,
    system,
    workload,
    layout=None,
    assumptions=PRINTED,
):
    """The complete model's answer to one question: time per token on a given system.

    ``model``: a Transformer, or an erdil2025 Model, which brings its own formats. ``system``: GPUs
    (``records.load_chip``); the whole system is one instance unless a layout says otherwise. ``layout``: without
    one the best is searched, as the paper does: real-valued pipeline degrees and attention scale-downs
    included. With one, ``dp`` instances share the batch, ``pp`` stages are taken as they are, and kind of
    tensor parallelism and scale-down are searched. Expert parallelism follows the paper's rule; a layout that
    says otherwise is answered with n/a, and one that does not use the whole system is a ValueError.

    Returns terms ``kernel launch``, ``collective latency``, ``collective bandwidth``, ``pipeline``; then
    ``weights``, ``activations`` and ``cache`` over ``arithmetic`` and ``attention arithmetic``.

    Examples
    --------
    The search includes pipelines, which pay on 64 GPUs:

    >>> from inferlib import System, Workload, catalog
    >>> llama, h100 = load_model("Llama 3 70B"), catalog.load_chip("H100 SXM")
    >>> found = decode_step(llama, System(h100, 64), Workload(64, 0))
    >>> found.total < best_layout(llama, load_chip(h100), 64, 64, pipeline=False)[1].total
    True
    """
    try:
        shape = load_model(model, workload.weights, workload.cache).shape
        chip = computing_at(load_chip(system.chip.replace(scale_up_size=system.domain)), shape)
    except (ValueError, LookupError) as refused:
        raise NotDescribed(str(refused)) from refused
    n_gpu = system.count
    batch = workload.batch
    if layout is None:
        degrees = pipeline_degrees(shape.n_layers, batch, True, assumptions)
    else:
        if layout.tp * layout.pp * layout.ep * layout.dp != n_gpu:
            raise ValueError(f"layout is {layout}, but tp x pp x ep x dp must be the system's {n_gpu} GPUs")
        n_gpu, batch = n_gpu / layout.dp, batch / layout.dp  # type: ignore[assignment]
        groups = m.expert_groups(shape, n_gpu / layout.pp, batch / layout.pp, assumptions)
        if layout.ep != groups:
            raise NotDescribed(
                f"the paper's rule spreads the experts over {groups:g} groups here, not {layout.ep}"
            )
        degrees = [float(layout.pp)]
    return _fastest(shape, chip, degrees, n_gpu, batch, workload.context, 1, assumptions)[1]
