"""Erdil 2025: the best layout of an instance, and speculative decoding.

A search goes through pipeline stages, attention's scale-downs and kinds of tensor parallelism. It sums the same
terms as equation 29 (:class:`model.Pass`), a block of points at a time, and does not go on with what is
slower already than the best layout of a point, or than a limit that somebody knows. The frontier of speed
against cost is :mod:`inferlib.papers.erdil2025.pareto`.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from itertools import accumulate
from operator import mul

import numpy as np

from inferlib import checks
from inferlib.equation import equation, inside
from inferlib.ops import minimum
from inferlib.papers.erdil2025.equations import model as m
from inferlib.papers.erdil2025.equations.model import layout_latency
from inferlib.papers.erdil2025.records import Assumptions, Cut, chip_of, computing_at, model_of

equation = partial(equation, "erdil2025", chapter="erdil2025_model")
_LESS, _MORE = 1 - 1e-9, 1 + 1e-9
_FEW = 0.8  # of the points: only then is it faster to go on with those alone
# Points at a time for each thread, and threads: with fewer points or more threads these wait for one another.
_BLOCK, _THREADS = 131072, 4


@equation(unit="1", acceptance="1", tokens="1")
def expected_tokens(acceptance, tokens):
    """Tokens that one verification yields when each of ``tokens`` is accepted with the same probability.

    Section 4.1's V; with one more than the drafts, as Leviathan et al. (2023) count it. The acceptance is below 1.

    Examples
    --------
    >>> round(expected_tokens(0.8, 5), 4)
    3.3616
    """
    return (1 - acceptance**tokens) / (1 - acceptance)


@equation(unit="1", target_share="1", draft_share="1")
def accepted_share(target_share, draft_share):
    """How often one token is drafted and accepted (section 4.1): q min(1, p / q).

    The sum over all tokens is the acceptance.
    """
    return minimum(target_share, draft_share)


@equation("46", unit="s", acceptance="1", drafts="1", verified="1 > 0", target_time="s", draft_time="s")
def speculative_time(acceptance, drafts, verified, target_time, draft_time):
    """Mean time per token of speculative decoding.

    Equation 46 has one number for the drafts of a round and the tokens that its verification may yield.
    """
    return (target_time + drafts * draft_time) / expected_tokens(acceptance, verified)


def rounds(gamma_max, assumptions):
    """The rounds that speculative decoding may choose from: (draft passes, tokens verified) for each gamma."""
    free = 1 if assumptions.free_token else 0
    return [(gamma, gamma + free) for gamma in range(2 - free, gamma_max + 1)]


def pipeline_degrees(n_layers, batch, pipeline, assumptions):
    """The pipeline degrees searched: one, and a geometric grid up to the layers (or the batch)."""
    if not (pipeline and assumptions.pipelines):
        return [1.0]
    most = float(n_layers)
    if assumptions.pipelines_to_batch and np.min(batch) < n_layers:
        most = np.minimum(batch, n_layers)
    steps = assumptions.pipelines
    return [1.0] + [most ** (i / steps) for i in range(1, steps + 1)]


def scale_downs(group, assumptions):
    """The attention scale-downs searched: a geometric grid from one to the GPUs of a stage.

    Returns
    -------
    list of pairs
        The factor, and the GPUs that then share attention.
    """
    steps = assumptions.scale_downs
    if not steps:
        return [(1.0, group)]
    step = group ** (1 / steps)
    between = list(accumulate([step] * (steps - 1), mul))
    return [(1.0, group), *((z, group / z) for z in between), (group, 1.0)]


def cuts(shape, n_gpu, batch, pipeline, assumptions):
    """Every layout that is searched for an instance, in the order of the search."""
    return [
        Cut(stages=float(stages), scale_down=float(z), kind=kind)
        for kind in assumptions.kinds
        for stages in pipeline_degrees(shape.n_layers, batch, pipeline, assumptions)
        for z, _ in scale_downs(n_gpu / stages, assumptions)
    ]


def infeasible(shape, chip, n_gpu, stages, batch, context, assumptions, beside=None):
    """Why a number of pipeline stages cannot be run, or an empty text where it can.

    Parameters
    ----------
    shape : Shape
    chip : GPU
    n_gpu, stages, batch, context : float
    assumptions : Assumptions
    beside : Shape, optional
        Another model that serves the same sequences from the same memory.
    """
    if stages * _LESS > min(n_gpu, batch):
        return (
            f"{stages:.3g} pipeline stages need as many GPUs and sequences, not {n_gpu:.3g} and {batch:.3g}"
        )
    needed, have = _needed(shape, stages, batch, context, assumptions, beside), n_gpu * chip.memory_capacity
    if needed > have:
        return f"weights and cache need {needed / 1e9:.4g} GB, but {n_gpu:.4g} GPUs have {have / 1e9:.4g} GB"
    return ""


def _needed(shape, stages, batch, context, assumptions, beside):
    """Bytes of memory that have to fit."""
    models = [shape] if beside is None else [shape, beside]
    return sum(m.capacity_needed(one, context, batch / stages, batch, assumptions) for one in models)


def fits(shape, chip, n_gpu, stages, batch, context, assumptions, beside):
    """The same as :func:`infeasible` for arrays: where a number of stages can be run."""
    needed = _needed(shape, stages, batch, context, assumptions, beside)
    return (stages * _LESS <= np.minimum(n_gpu, batch)) & (needed <= n_gpu * chip.memory_capacity)


@inside
def pass_times(
    shape, chip, n_gpu, batch, context, new_tokens, pipeline, assumptions, beside=None, limit=np.inf
):
    """The fastest layout's time at every point, where it is not above a limit.

    Parameters
    ----------
    shape : Shape
    chip : GPU
    n_gpu, batch, context : numpy.ndarray
        Points, one-dimensional.
    new_tokens : float
    pipeline : bool
    assumptions : Assumptions
    beside : Shape, optional
        Another model in the same memory.
    limit : float or numpy.ndarray
        Seconds. A layout that cannot stay below is left out as soon as that is seen.

    Returns
    -------
    numpy.ndarray
        Seconds; infinite where no layout fits, or none stays below the limit.
    """
    if not n_gpu.size:
        return np.full(n_gpu.shape, np.inf)
    limit = np.broadcast_to(limit, n_gpu.shape) * _MORE
    best = limit.copy()
    for stages in reversed(pipeline_degrees(shape.n_layers, batch, pipeline, assumptions)):
        points = np.flatnonzero(fits(shape, chip, n_gpu, stages, batch, context, assumptions, beside))
        at = _taken((stages, n_gpu, batch, context), points)
        best[points] = _fastest(m.one_pass(shape, chip, *at, new_tokens, assumptions), best[points])
    return np.where(best < limit, best, np.inf)


def _fastest(at, limit):
    """The least time of a pass over its scale-downs and kinds at every point, or the limit where none is below.

    What is scaled down further reads and multiplies no less, and its collectives take no less than nothing:
    a point where that alone is too long is left out from there on. Where waiting for other nodes makes it too
    long, whatever the kind, only this scale-down is left out.
    """
    fastest, best, points = limit.copy(), limit, np.arange(limit.size)
    before = at.before()
    blocks = [before + at.shape.n_layers * at.layer(at.network(kind)) for kind in at.assumptions.kinds]
    least = reduce(np.minimum, blocks)
    for z, ranks in scale_downs(at.group, at.assumptions):
        z, ranks = _taken((z, ranks), points)
        overlapped = at.overlapped(z, ranks)
        hopeful = np.flatnonzero(least + overlapped <= best)
        if hopeful.size <= _FEW * points.size:
            fastest[points] = best
            at, (z, ranks, points, overlapped, best, least, *blocks) = (
                at.of(hopeful), _taken((z, ranks, points, overlapped, best, least, *blocks), hopeful)
            )  # fmt: skip
            if not points.size:
                break
        spread = m.span(at.chip, ranks)
        some = np.flatnonzero(least + overlapped + at.waiting(spread) <= best)
        spread = m.Span(*_taken((spread.gpus, spread.nodes, spread.doublings), some))
        tokens, reached, overlapped, *starts = _taken((at.tokens, best, overlapped, *blocks), some)
        for kind, start in zip(at.assumptions.kinds, starts, strict=True):
            network = m.added(one.time(tokens) for one in at.attention_network(kind, spread))
            reached = np.minimum(reached, start + at.shape.n_layers * network + overlapped)
        best[some] = reached
    fastest[points] = best
    return fastest


def _taken(values, points):
    """Some points of arrays; plain numbers stay."""
    return [value[points] if np.ndim(value) else value for value in values]


def opened(model, chip, assumptions):
    """The shape of a model, its GPU at the peak of its format, and the assumptions, each checked."""
    assumptions = Assumptions() if assumptions is None else assumptions
    if not isinstance(assumptions, Assumptions):
        raise TypeError(f"assumptions is a {type(assumptions).__name__}, but must be erdil2025 Assumptions")
    shape = model_of(model).shape
    if shape is None:
        raise ValueError("model has no shape; make it with Model.of(shape)")
    return shape, computing_at(chip_of(chip), shape), assumptions


def _checked(n_gpu, batch, context):
    """Numbers or arrays as arrays that broadcast."""
    for name, value in (("n_gpu", n_gpu), ("batch", batch)):
        checks.number(name, value)
    checks.number("context", context, zero=True)
    return tuple(np.asarray(value, dtype=float) for value in (n_gpu, batch, context))


def _over_points(function, *values):
    """Call a function of one-dimensional arrays on numbers or arrays of any kind that broadcast."""
    lazy = any(type(getattr(value, "data", value)).__module__.startswith("dask") for value in values)
    # Dask has threads of its own.
    over = partial(_in_blocks, function, 1 if lazy else min(_THREADS, os.cpu_count()))
    if any(hasattr(value, "dims") for value in values):
        import xarray as xr

        return xr.apply_ufunc(over, *values, dask="parallelized", output_dtypes=[float])
    if lazy:
        import dask.array as da

        return da.map_blocks(over, *da.broadcast_arrays(*map(da.asarray, values)), dtype=float)
    result = over(*values)
    return float(result) if np.ndim(result) == 0 else result


def _in_blocks(function, threads, n_gpu, batch, context):
    """The same over NumPy arrays, block by block."""
    values = np.broadcast_arrays(*_checked(n_gpu, batch, context))
    result = np.empty(values[0].shape)

    def compute(start):
        block = slice(start, start + _BLOCK)
        result.flat[block] = function(*(value.flat[block] for value in values))

    starts = range(0, result.size, _BLOCK)
    if threads == 1 or len(starts) <= 1:
        for start in starts:
            compute(start)
        return result
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(compute, starts):
            pass
    return result


def token_latency(
    model, chip, n_gpu, batch, *, context=0, new_tokens=1, pipeline=True, assumptions=None
):  # fmt: skip
    """Time of one pass through a model in the best layout.

    Parameters
    ----------
    model : Model or inferlib.Transformer
        A Transformer is mapped by ``records.model_of`` at 16 bits.
    chip : GPU or inferlib.Accelerator
        An Accelerator is mapped by ``records.chip_of``.
    n_gpu, batch, context : float, array or xarray.DataArray
        GPUs of the instance, sequences decoded together, tokens behind each; they broadcast. Arrays of dask
        stay lazy.
    new_tokens : int
        Tokens of each sequence that the pass computes (more than one when drafts are verified).
    pipeline : bool
        Whether pipeline parallelism is searched too.
    assumptions : Assumptions, optional

    Returns
    -------
    same kind as the numbers
        Seconds; infinite where the model does not fit (:func:`best_layout` says why).

    Raises
    ------
    ValueError, LookupError or TypeError
        Naming the argument that is not allowed.

    Examples
    --------
    >>> from inferlib.papers.erdil2025 import chips, models
    >>> round(1 / token_latency(models["Llama 3 70B 8-bit"], chips["H100"], 23.9, 1))
    152
    """
    shape, chip, assumptions = opened(model, chip, assumptions)
    checks.number("new_tokens", new_tokens)

    def search(n_gpu, batch, context):
        return pass_times(shape, chip, n_gpu, batch, context, new_tokens, pipeline, assumptions)

    return _over_points(search, n_gpu, batch, context)


def speculative_latency(
    target, draft, chip, n_gpu, batch, *, acceptance, gamma_max=5, context=0, pipeline=True, assumptions=None
):
    """Mean time per token with speculative decoding, at the best number of drafts and the best layouts.

    Parameters
    ----------
    target, draft : Model or inferlib.Transformer
    chip : GPU or inferlib.Accelerator
    n_gpu, batch, context : float, array or xarray.DataArray
    acceptance : float
        Probability that a drafted token is accepted, at least 0 and below 1.
    gamma_max : int
        Most tokens of one round (the paper's gamma).
    pipeline : bool
    assumptions : Assumptions, optional

    Returns
    -------
    same kind as the numbers
        Seconds per token; infinite where a model does not fit. Not above :func:`token_latency`: a round
        without drafts is one of the choices.

    Examples
    --------
    >>> from inferlib.papers.erdil2025 import chips, models
    >>> llama, small, h100 = models["Llama 3 70B 8-bit"], models["Llama 3 8B"], chips["H100"]
    >>> round(1 / speculative_latency(llama, small, h100, 23.9, 1, acceptance=0.8))
    186
    """
    shape, gpu, assumptions = opened(target, chip, assumptions)
    small, small_gpu, _ = opened(draft, chip, assumptions)
    check_rounds(acceptance, gamma_max)

    def search(n_gpu, batch, context):
        return speculated(
            shape, gpu, small, small_gpu, n_gpu, batch, context, acceptance, gamma_max, pipeline, assumptions
        )[0]

    return _over_points(search, n_gpu, batch, context)


def check_rounds(acceptance, gamma_max):
    """Refuse what is no probability below one, or no whole number of tokens in a round."""
    checks.number("acceptance", acceptance, zero=True)
    if not acceptance < 1:
        raise ValueError(f"acceptance is {acceptance}, but must be at least 0 and below 1")
    checks.number("gamma_max", gamma_max, minimum=1)
    if gamma_max != int(gamma_max):
        raise ValueError(f"gamma_max is {gamma_max}, but must be a whole number")


def speculated(
    shape, gpu, small, small_gpu, n_gpu, batch, context, acceptance, gamma_max, pipeline, assumptions,
    limit=np.inf,
):  # fmt: skip
    """Best mean time and the gamma it takes at every point, where the time is not above a limit.

    Scoring more tokens never takes less time than scoring fewer: that and the time of the drafts leave few
    points for most numbers of drafts.
    """
    beside = (small, shape) if assumptions.joint_capacity else (None, None)
    choices = rounds(int(gamma_max), assumptions)
    yields = [expected_tokens(acceptance, verified) for _, verified in choices]
    at, limit = (n_gpu, batch, context), np.broadcast_to(limit, n_gpu.shape) * _MORE
    plain = pass_times(shape, gpu, *at, 1, pipeline, assumptions, beside[0], limit * max([1, *yields]))
    points = np.flatnonzero(np.isfinite(plain))
    at, plain, limit = [one[points] for one in at], plain[points], np.minimum(limit, plain * _MORE)[points]
    # What a round leaves when it is scored as fast as a single token.
    left = [(limit * y - plain) / drafts for (drafts, _), y in zip(choices, yields, strict=True)]
    most = reduce(np.maximum, left, np.zeros(points.shape))
    drafting = pass_times(small, small_gpu, *at, 1, pipeline, assumptions, beside[1], most)
    means = np.full((1 + len(choices), points.size), np.inf)
    means[0] = plain
    for i, (drafts, verified) in reversed(list(enumerate(choices))):
        allowed = limit * yields[i] - drafts * drafting
        some = np.flatnonzero(plain <= allowed)
        verifying = pass_times(
            shape, gpu, *(one[some] for one in at), verified, pipeline, assumptions, beside[0], allowed[some]
        )
        means[1 + i, some] = speculative_time(acceptance, drafts, verified, verifying, drafting[some])
        limit = np.minimum(limit, means[1 + i] * _MORE)
    gammas = np.array([0 if assumptions.free_token else 1, *(drafts for drafts, _ in choices)])
    seconds, gamma = np.full(n_gpu.shape, np.inf), np.full(n_gpu.shape, gammas[0])
    best = means.min(axis=0)
    seconds[points] = np.where(best <= limit, best, np.inf)
    gamma[points] = gammas[means.argmin(axis=0)]
    return seconds, gamma


def layouts_at(shape, chip, n_gpu, batch, context, new_tokens, pipeline, assumptions):
    """The best layout at given points: its kind, pipeline stages and attention scale-down.

    Parameters
    ----------
    shape : Shape
    chip : GPU
    n_gpu, batch, context, new_tokens : numpy.ndarray
        Points, one-dimensional.
    pipeline : bool
    assumptions : Assumptions

    Returns
    -------
    dict
        ``kind``, ``stages`` and ``scale_down``, each an array; ties go to the first in the search.
    """
    degrees = pipeline_degrees(shape.n_layers, batch, pipeline, assumptions)
    stages = np.stack([np.broadcast_to(one, n_gpu.shape) for one in degrees])
    possible = fits(shape, chip, n_gpu, stages, batch, context, assumptions, None)
    downs = [np.broadcast_to(z, stages.shape) for z, _ in scale_downs(n_gpu / stages, assumptions)]
    stages, downs = np.broadcast_arrays(stages[:, None], np.stack(downs, axis=1))
    seconds = np.stack(
        [
            layout_latency(
                shape, chip, Cut(stages, downs, kind), n_gpu, batch, context, new_tokens, assumptions
            )
            for kind in assumptions.kinds
        ],
        axis=2,
    )
    seconds = np.where(possible[:, None, None], seconds, np.inf)
    layouts = seconds.reshape(-1, n_gpu.size)
    first = np.argmax(layouts * _LESS <= layouts.min(axis=0), axis=0)
    stage, down, kind = np.unravel_index(first, seconds.shape[:3])
    point = np.arange(n_gpu.size)
    return {
        "kind": np.array(assumptions.kinds)[kind],
        "stages": stages[stage, down, point],
        "scale_down": downs[stage, down, point],
    }
