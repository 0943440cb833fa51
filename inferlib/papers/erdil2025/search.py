"""Erdil 2025: the best layout of an instance, and the time of speculative decoding.

A search goes through pipeline stages, attention's scale-downs and kinds of tensor parallelism, a block of points at a
time. Before it computes how long a layout waits (:func:`model.waiting_time`), it leaves out the points at which reading
and multiplying alone take longer than the best layout found there, or than a limit that the caller knows.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from itertools import accumulate
from operator import mul

import numpy as np

from inferlib import validation
from inferlib.equation import equation, forbid_override, unchecked
from inferlib.ops import minimum
from inferlib.papers.erdil2025.equations import model as m
from inferlib.papers.erdil2025.records import DEFAULT, Assumptions, Cut, computing_at, load_chip, load_model

equation = partial(equation, "erdil2025", chapter="erdil2025_model")
LESS, MORE = 1 - 1e-9, 1 + 1e-9  # room for rounding in comparisons
# Points per thread at a time, and number of threads; with fewer points or more threads they wait for one another.
_BLOCK = 131072
_THREADS = 4


@equation()
def expected_tokens(acceptance, tokens):
    """Tokens per verification when each of ``tokens`` is accepted with the same probability: section 4.1's V.

    With one more than the drafts, as Leviathan et al. (2023) count it. The acceptance is below 1.

    Examples
    --------
    >>> round(expected_tokens(0.8, 5), 4)
    3.3616
    """
    return (1 - acceptance**tokens) / (1 - acceptance)


@equation()
def accepted_share(target_share, draft_share):
    """How often one token is drafted and accepted: q min(1, p / q), whose sum over all tokens is the acceptance."""
    return minimum(target_share, draft_share)


@equation("46", unit="s", verified="1 > 0", target_time="s", draft_time="s")
def speculative_time(acceptance, drafts, verified, target_time, draft_time):
    """Mean time per token of speculative decoding: a target pass and the drafts, over the tokens they yield.

    Equation 46 has one number for the drafts of a round and the tokens that its verification may yield.
    """
    return (target_time + drafts * draft_time) / expected_tokens(acceptance, verified)


def pipeline_degrees(n_layers, batch, pipeline, assumptions=DEFAULT):
    """The pipeline degrees searched: one, and a geometric grid up to the layers (or the batch)."""
    if not (pipeline and assumptions.pipelines):
        return [1.0]
    most = float(n_layers)
    if assumptions.pipelines_to_batch and np.min(batch, initial=n_layers) < n_layers:
        most = np.minimum(batch, n_layers)
    steps = assumptions.pipelines
    return [1.0] + [most ** (i / steps) for i in range(1, steps + 1)]


def scale_downs(group, assumptions=DEFAULT):
    """Attention scale-downs, with the GPUs left to share attention: a geometric grid up to a stage's GPUs."""
    steps = assumptions.scale_downs
    if not steps:
        return [(1.0, group)]
    step = group ** (1 / steps)
    between = list(accumulate([step] * (steps - 1), mul))
    return [(1.0, group), *((z, group / z) for z in between), (group, 1.0)]


def infeasible(shape, chip, n_gpu, stages, batch, context, assumptions=DEFAULT):
    """Why a number of pipeline stages cannot be run, or an empty text where it can."""
    if stages * LESS > min(n_gpu, batch):
        return (
            f"{stages:.3g} pipeline stages need as many GPUs and sequences, not {n_gpu:.3g} and {batch:.3g}"
        )
    needed = _needed(shape, stages, batch, context, assumptions)
    have = n_gpu * chip.memory_capacity
    if needed > have:
        return f"weights and cache need {needed / 1e9:.4g} GB, but {n_gpu:.4g} GPUs have {have / 1e9:.4g} GB"
    return ""


def _needed(shape, stages, batch, context, assumptions, beside=None):
    """Bytes of memory for a model, and for another ``beside`` it that serves the same sequences."""
    models = [shape] if beside is None else [shape, beside]
    return sum(m.capacity_needed(one, context, batch / stages, batch, assumptions) for one in models)


def fits(shape, chip, n_gpu, stages, batch, context, assumptions=DEFAULT, *, beside=None):
    """The same as :func:`infeasible` for arrays: where a number of stages can be run."""
    needed = _needed(shape, stages, batch, context, assumptions, beside)
    return (stages * LESS <= np.minimum(n_gpu, batch)) & (needed <= n_gpu * chip.memory_capacity)


@unchecked
def fastest_layouts(
    shape, chip, n_gpu, batch, context, new_tokens, pipeline, assumptions=DEFAULT, *,
    degrees=None, beside=None, limit=np.inf,
):  # fmt: skip
    """Seconds in the fastest layout at every point, and that layout as fields of a :class:`Cut`.

    ``n_gpu``, ``batch``: arrays of one dimension. ``degrees``: numbers of pipeline stages to search, in place of
    :func:`pipeline_degrees`. Seconds are infinite where nothing fits, or nothing stays below a ``limit`` of seconds.
    Ties go to the fewest stages and the first kind.
    """
    forbid_override("the search over layouts, which cuts equation 29 into pieces,", m.layout_latency)
    limit = np.broadcast_to(limit, n_gpu.shape) * MORE
    seconds = limit.copy()
    kinds = np.full(n_gpu.shape, assumptions.kinds[0])
    layouts = np.ones((2, n_gpu.size))
    if degrees is None:
        degrees = pipeline_degrees(shape.n_layers, batch, pipeline, assumptions)
    for stages in reversed(degrees):
        left = np.flatnonzero(fits(shape, chip, n_gpu, stages, batch, context, assumptions, beside=beside))
        at = n_gpu, batch, context, new_tokens, stages, n_gpu / stages
        points = np.stack(np.broadcast_arrays(*at))[:, left]
        # the largest scale-down leaves attention on one GPU, which waits for no other
        waits = (_part(m.waiting_time, shape, chip, kind, points, assumptions) for kind in assumptions.kinds)
        least = reduce(np.minimum, waits)
        for place in range(len(scale_downs(1.0, assumptions))):
            points[5], _ = scale_downs(points[0] / points[4], assumptions)[place]
            working = _part(m.working_time, shape, chip, "2D", points, assumptions)
            # a larger scale-down reads and multiplies no less: what is too slow stays so
            hopeful = (working + least) * LESS <= seconds[left]
            left, least, working, points = left[hopeful], least[hopeful], working[hopeful], points[:, hopeful]
            if not left.size:
                break
            for kind in reversed(assumptions.kinds):
                total = working + _part(m.waiting_time, shape, chip, kind, points, assumptions)
                better = total <= seconds[left] * MORE
                kinds[left[better]] = kind
                layouts[:, left[better]] = points[4:, better]
                seconds[left] = np.minimum(seconds[left], total)
    seconds = np.where(seconds < limit, seconds, np.inf)
    return seconds, {"kind": kinds, "stages": layouts[0], "scale_down": layouts[1]}


def _part(time, shape, chip, kind, points, assumptions):
    """Seconds of one part of equation 29 at points: GPUs, batch, context, new tokens, stages, scale-down."""
    *at, stages, down = points
    return time(shape, chip, Cut(stages, down, kind), *at, assumptions)


def opened(model, chip, assumptions=DEFAULT):
    """The shape of a model, its GPU at the peak of its format, and the assumptions, each checked."""
    if not isinstance(assumptions, Assumptions):
        raise TypeError(f"assumptions is a {type(assumptions).__name__}, but must be erdil2025 Assumptions")
    shape = load_model(model).shape
    if shape is None:
        raise ValueError(f"model {model.name!r} has no shape, or its sums were changed; use Model.of(shape)")
    return shape, computing_at(load_chip(chip), shape), assumptions


def over_points(function, *values):
    """Call a function of one-dimensional arrays on numbers or arrays of any kind that broadcast."""
    lazy = any(type(getattr(value, "data", value)).__module__.startswith("dask") for value in values)
    if lazy:
        forbid_override("a search that dask runs later")
    # Dask has threads of its own
    over = partial(_in_blocks, function, 1 if lazy else min(_THREADS, os.cpu_count()))
    if any(hasattr(value, "dims") for value in values):
        from inferlib.optional_imports import xarray as xr

        return xr.apply_ufunc(over, *values, dask="parallelized", output_dtypes=[float])
    if lazy:
        import dask.array as da

        return da.map_blocks(over, *da.broadcast_arrays(*map(da.asarray, values)), dtype=float)
    result = over(*values)
    return float(result) if np.ndim(result) == 0 else result


def _in_blocks(function, threads, n_gpu, batch, context):
    """The same over NumPy arrays, block by block."""
    for name, value in (("n_gpu", n_gpu), ("batch", batch)):
        validation.number(name, value)
    validation.number("context", context, zero=True)
    values = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in (n_gpu, batch, context)))
    result = np.empty(values[0].shape)

    def compute(start):
        block = slice(start, start + _BLOCK)
        result.flat[block] = function(*(value.flat[block] for value in values))

    starts = range(0, result.size, _BLOCK)
    if threads == 1 or len(starts) <= 1:
        for start in starts:
            compute(start)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(compute, starts))
    return result


def token_latency(model, chip, n_gpu, batch, *, context=0, new_tokens=1, pipeline=True, assumptions=DEFAULT):
    """Time of one pass through a model in the best layout, in seconds; infinite where nothing fits.

    ``model``, ``chip``: the paper's own, or the catalogue's by ``records.load_model`` (at 16 bits) and
    ``records.load_chip``. ``n_gpu``, ``batch``, ``context``: GPUs of the instance, sequences decoded together,
    tokens behind each; floats, arrays or labelled ones, which broadcast (those of dask stay lazy).
    ``new_tokens``: of each sequence that the pass computes (more than one when drafts are verified).
    ``pipeline``: whether pipeline parallelism is searched too. Raises ValueError, LookupError or TypeError,
    naming the argument that is not allowed; :func:`best_layout` says why nothing fits.

    Examples
    --------
    >>> from inferlib.papers.erdil2025 import load_chip, load_model
    >>> round(1 / token_latency(load_model("Llama 3 70B 8-bit"), load_chip("H100"), 23.9, 1))
    152
    """
    shape, chip, assumptions = opened(model, chip, assumptions)
    validation.number("new_tokens", new_tokens)

    def search(n_gpu, batch, context):
        return fastest_layouts(shape, chip, n_gpu, batch, context, new_tokens, pipeline, assumptions)[0]

    return over_points(search, n_gpu, batch, context)
