"""Erdil 2025: the complete model's answer to one question, split into named terms."""

from functools import partial

from inferlib.papers.erdil2025.equations import model as m
from inferlib.papers.erdil2025.equations.model import layout_latency
from inferlib.papers.erdil2025.records import Assumptions, Cut, chip_of, computing_at, model_of
from inferlib.papers.erdil2025.search import cuts, infeasible
from inferlib.system import Breakdown, System, Workload


def best_layout(model, chip, n_gpu, batch, *, context=0, new_tokens=1, pipeline=True, assumptions=None):
    """The fastest layout of one instance, term by term.

    Parameters
    ----------
    model : Model or inferlib.Transformer
    chip : GPU or inferlib.Accelerator
    n_gpu, batch, context : float
    new_tokens : int
    pipeline : bool
    assumptions : Assumptions, optional

    Returns
    -------
    cut : Cut or None
        None where nothing fits.
    step : inferlib.Breakdown
        Infeasible, with its reason, where nothing fits.

    Examples
    --------
    >>> from inferlib.papers.erdil2025 import chips, models
    >>> cut, step = best_layout(models["Llama 3 70B"], chips["H100"], 8, 32, context=4096)
    >>> cut.kind, step.binding
    ('1D', 'weights')
    """
    assumptions = assumptions or Assumptions()
    shape = model_of(model).shape
    chip = computing_at(chip_of(chip), shape)
    return _fastest(
        shape, chip, n_gpu, batch, context, new_tokens, assumptions,
        cuts(shape, n_gpu, batch, pipeline, assumptions), answer=partial(Breakdown, source="erdil2025"),
    )  # fmt: skip


def _fastest(shape, chip, n_gpu, batch, context, new_tokens, assumptions, candidates, answer):
    """The fastest of some layouts that can be run, and its terms."""
    reasons, possible = [], []
    for cut in candidates:
        reason = infeasible(shape, chip, n_gpu, cut.stages, batch, context, assumptions)
        (reasons if reason else possible).append(reason or cut)
    if not possible:
        return None, answer(status="infeasible", reason=reasons[0])
    at = (n_gpu, batch, context, new_tokens, assumptions)
    best = min(possible, key=lambda cut: layout_latency(shape, chip, cut, *at))
    origin = (
        layout_latency,
        shape,
        chip,
        best,
        *at,
    )  # the chosen layout, not the search, explains the answer
    return best, answer(terms(shape, chip, best, *at), origin=origin)


def terms(shape, chip, cut, n_gpu, batch, context, new_tokens, assumptions, together=False):
    """The terms of :func:`layout_latency` as the stages of a breakdown.

    Launches, latency and bandwidth of the collectives and hops between pipeline stages follow one another;
    then reading (weights, cache and activations share the memory) overlaps with multiplying. With ``together``
    latency and bandwidth of the collectives are one term, which is what works on symbols too.
    """
    at = m.one_pass(shape, chip, cut.stages, n_gpu, batch, context, new_tokens, assumptions)
    ranks = at.group / cut.scale_down
    attention = at.attention_network(cut.kind, m.span(chip, ranks))
    network = [(1, one) for one in attention + at.network(cut.kind)]
    if at.dispatch is not None:
        network.append((assumptions.dispatches, at.dispatch))
    stages = [{"kernel launch": at.launches}]
    if together:
        times = [shape.n_layers * repeats * one.time(at.tokens) for repeats, one in network]
        stages += [{"collectives": m.added(times)}]
    else:
        waiting, moving = _waiting_and_moving(shape, network, at.tokens)
        stages += [{"collective latency": waiting}, {"collective bandwidth": moving}]
    if cut.stages > 1:
        stages.append({"pipeline": at.hops})
    memory, multiplying = at.reading(cut.scale_down, ranks), at.multiplying(cut.scale_down)
    if not context:
        del memory["cache"], multiplying["attention arithmetic"]
    stages.append({"memory": memory, "multiplying": multiplying})
    return tuple(stages)


def _waiting_and_moving(shape, network, tokens):
    """Latency and bandwidth of all collectives, each in its fastest protocol."""
    waiting = moving = 0.0
    for repeats, one in network:
        fixed, per_token = min(
            zip(one.fixed, one.per_token, strict=True), key=lambda affine: affine[0] + affine[1] * tokens
        )
        waiting += shape.n_layers * repeats * fixed
        moving += shape.n_layers * repeats * per_token * tokens
    return waiting, moving


def decode_step(model, system, workload, layout=None, assumptions=None):
    """The complete model's answer to one question: time per token on a given system.

    Parameters
    ----------
    model : inferlib.Transformer or Model
        An erdil2025 Model brings its own formats.
    system : inferlib.System
        GPUs (``records.chip_of``); the whole system is one instance unless a layout says otherwise.
    workload : inferlib.Workload
    layout : inferlib.Layout, optional
        Without one the best is searched, as the paper does: real-valued pipeline degrees and attention
        scale-downs included. With one, ``dp`` instances share the batch, ``pp`` stages are taken as they
        are, and kind of tensor parallelism and scale-down are searched. Expert parallelism follows the
        paper's rule; a layout that says otherwise is answered with n/a.
    assumptions : Assumptions, optional

    Returns
    -------
    inferlib.Breakdown
        Terms ``kernel launch``, ``collective latency``, ``collective bandwidth``, ``pipeline``; then
        ``weights``, ``activations`` and ``cache`` over ``arithmetic`` and ``attention arithmetic``.

    Raises
    ------
    TypeError
        If an argument is not of the class named above.
    ValueError
        If a layout does not use the whole system.
    """
    for name, value, kind in (("system", system, System), ("workload", workload, Workload)):
        if not isinstance(value, kind):
            raise TypeError(f"{name} is a {type(value).__name__}, but must be a {kind.__name__}")
    answer = partial(Breakdown, source="erdil2025")
    try:
        shape = model_of(model, workload.weights, workload.cache).shape
        chip = computing_at(chip_of(system.chip.replace(scale_up_size=system.domain)), shape)
    except (ValueError, LookupError) as refused:
        return answer(status="n/a", reason=str(refused))
    assumptions = assumptions or Assumptions()
    n_gpu, batch = system.count, workload.batch
    if layout is None:
        candidates = cuts(shape, n_gpu, batch, True, assumptions)
    else:
        if layout.tp * layout.pp * layout.ep * layout.dp != n_gpu:
            raise ValueError(f"layout is {layout}, but tp x pp x ep x dp must be the system's {n_gpu} GPUs")
        n_gpu, batch = n_gpu / layout.dp, batch / layout.dp
        groups = m.expert_groups(shape, n_gpu / layout.pp, batch / layout.pp, assumptions)
        if layout.ep != groups:
            reason = f"the paper's rule spreads the experts over {groups:g} groups here, not {layout.ep}"
            return answer(status="n/a", reason=reason)
        candidates = [
            Cut(float(layout.pp), cut.scale_down, cut.kind)
            for cut in cuts(shape, n_gpu / layout.pp, batch, False, assumptions)
        ]
    return _fastest(shape, chip, n_gpu, batch, workload.context, 1, assumptions, candidates, answer)[1]
