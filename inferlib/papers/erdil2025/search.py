"""Erdil 2025: the best layout of an instance, and the time of speculative decoding.

A search goes through pipeline stages, attention's scale-downs and kinds of tensor parallelism, many points at a time.
It takes equation 29 in the parts that :func:`model.layout_terms` adds up, and drops a point as soon as what all larger
scale-downs need exceeds the best layout found there, or a limit that the caller knows.
"""

from functools import partial
from itertools import accumulate
from operator import mul

import numpy as np

from inferlib import validation
from inferlib.equation import equation, forbid_override, unchecked
from inferlib.ops import minimum
from inferlib.papers.erdil2025.equations import model as m
from inferlib.papers.erdil2025.records import PRINTED, Assumptions, Cut, computing_at, load_chip, load_model

equation = partial(equation, "erdil2025", chapter="erdil2025_model")
LESS, MORE = 1 - 1e-9, 1 + 1e-9  # room for rounding in comparisons
_BLOCK = 131072  # points at a time


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


def pipeline_degrees(n_layers, batch, pipeline, assumptions=PRINTED):
    """The pipeline degrees searched: one, and a geometric grid up to the layers (or the batch)."""
    if not (pipeline and assumptions.pipelines):
        return [1.0]
    most = float(n_layers)
    if assumptions.pipelines_to_batch and np.min(batch, initial=n_layers) < n_layers:
        most = np.minimum(batch, n_layers)
    steps = assumptions.pipelines
    return [1.0] + [most ** (i / steps) for i in range(1, steps + 1)]


def scale_downs(group, assumptions=PRINTED):
    """Attention scale-downs: a geometric grid from one up to a stage's GPUs."""
    steps = assumptions.scale_downs
    if not steps:
        return [group / group]
    step = group ** (1 / steps)
    # the last is a stage's GPUs to the last digit: one GPU more by rounding would not be a layout
    return [*accumulate([step] * (steps - 1), mul, initial=group / group), group]


def infeasible(shape, chip, n_gpu, stages, batch, context, assumptions=PRINTED):
    """Why a number of pipeline stages cannot be run, or an empty text where it can."""
    if stages * LESS > min(n_gpu, batch):
        return (
            f"{stages:.3g} pipeline stages need as many GPUs and sequences, not {n_gpu:.3g} and {batch:.3g}"
        )
    needed = m.capacity_needed(shape, context, batch / stages, batch, assumptions)
    have = n_gpu * chip.memory_capacity
    if needed > have:
        return f"weights and cache need {needed / 1e9:.4g} GB, but {n_gpu:.4g} GPUs have {have / 1e9:.4g} GB"
    return ""


def fits(shape, chip, n_gpu, stages, batch, context, assumptions=PRINTED, *, beside=()):
    """The same as :func:`infeasible` for arrays, also with models ``beside`` it that serve the same sequences."""
    at = context, batch / stages, batch, assumptions
    needed = sum(m.capacity_needed(one, *at) for one in (shape, *beside))
    return (stages * LESS <= np.minimum(n_gpu, batch)) & (needed <= n_gpu * chip.memory_capacity)


@unchecked
def pass_times(
    shape,
    chip,
    n_gpu,
    batch,
    context,
    new_tokens,
    pipeline,
    assumptions=PRINTED,
    *,
    beside=(),
    limit=np.inf,
):
    """Seconds in the fastest layout at every point; infinite where none fits or stays below a limit of seconds.

    A larger scale-down reads and multiplies at least as much, and its collectives take at least no time: a point where
    that alone is too long is skipped from there on.
    """
    forbid_override("the search over layouts, which cuts equation 29 into pieces,", m.layout_latency)
    limit = np.broadcast_to(limit, n_gpu.shape) * MORE
    best = limit.copy()
    for stages in reversed(pipeline_degrees(shape.n_layers, batch, pipeline, assumptions)):
        place = np.flatnonzero(fits(shape, chip, n_gpu, stages, batch, context, assumptions, beside=beside))
        at = (one[place] if np.ndim(one) else one for one in (stages, n_gpu, batch, context))
        open = m.one_stage(shape, chip, *at, new_tokens, assumptions)
        networks = (m.other_networks(shape, chip, open, kind, assumptions) for kind in assumptions.kinds)
        before = m.launches(shape, assumptions) + open.pipeline
        open.starts = before + np.stack([m.network_time(shape, open, network) for network in networks])
        open.least = open.starts.min(axis=0)
        open.place = place
        open.downs = np.stack(scale_downs(open.group, assumptions))
        for index in range(len(open.downs)):
            reading, multiplying = m.work(shape, open, open.downs[index], assumptions)
            busy = np.maximum(sum(reading.values()), sum(multiplying.values()))
            hopeful = np.flatnonzero(open.least + busy <= best[open.place])
            if not hopeful.size:
                break
            open, busy = open.at(hopeful), busy[hopeful]
            for kind, start in zip(assumptions.kinds, open.starts, strict=True):
                network = m.attention_network(shape, chip, open.group / open.downs[index], kind, assumptions)
                seconds = start + m.network_time(shape, open, network) + busy
                best[open.place] = np.minimum(best[open.place], seconds)
    return np.where(best < limit, best, np.inf)


def opened(model, chip, assumptions=PRINTED):
    """The shape of a model, its GPU at the peak of its format, and the assumptions, each checked."""
    if not isinstance(assumptions, Assumptions):
        raise TypeError(f"assumptions is a {type(assumptions).__name__}, but must be erdil2025 Assumptions")
    shape = load_model(model).shape
    if shape is None:
        raise ValueError(f"model {model.name!r} has no shape, or its sums were changed; use Model.of(shape)")
    return shape, computing_at(load_chip(chip), shape), assumptions


def over_points(function, *values):
    """Call a function of one-dimensional arrays on numbers, arrays or labelled arrays that broadcast, in blocks."""
    if any(hasattr(value, "dims") for value in values):
        from inferlib.optional_imports import xarray as xr

        if any(getattr(value, "chunks", None) for value in values):
            forbid_override("a search that dask runs later")
        over = partial(over_points, function)
        return xr.apply_ufunc(over, *values, dask="parallelized", output_dtypes=[float])
    for name, value in zip(("n_gpu", "batch", "context"), values, strict=True):
        validation.number(name, value, zero=name == "context")
    values = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in values))
    result = np.empty(values[0].shape)
    for start in range(0, result.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        result.flat[block] = function(*(value.flat[block] for value in values))
    return result if result.ndim else float(result)


def token_latency(model, chip, n_gpu, batch, *, context=0, new_tokens=1, pipeline=True, assumptions=PRINTED):
    """Time of one pass through a model in the best layout, in seconds; infinite where nothing fits.

    ``model``, ``chip``: the paper's own, or the catalogue's by ``records.load_model`` (at 16 bits) and
    ``records.load_chip``. ``n_gpu``, ``batch``, ``context``: GPUs of the instance, sequences decoded together,
    tokens behind each; floats, arrays or labelled ones, which broadcast (labelled ones of dask stay lazy).
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
        return pass_times(shape, chip, n_gpu, batch, context, new_tokens, pipeline, assumptions)

    return over_points(search, n_gpu, batch, context)


def layouts_at(shape, chip, n_gpu, batch, context, new_tokens, degrees, assumptions=PRINTED):
    """Kind, stages and scale-down of the fastest layout at some points, as fields of a :class:`Cut`.

    ``n_gpu``, ``batch``: arrays. ``degrees``: the numbers of pipeline stages to search. Ties go to the first searched;
    so does a point where nothing fits.
    """
    stages = np.stack([np.broadcast_to(one, n_gpu.shape) for one in degrees])
    downs = np.stack(scale_downs(n_gpu / stages, assumptions))
    at = (n_gpu, batch, context, new_tokens, assumptions)
    seconds = np.stack(
        [m.layout_latency(shape, chip, Cut(stages, downs, kind), *at) for kind in assumptions.kinds]
    )
    seconds[..., ~fits(shape, chip, n_gpu, stages, batch, context, assumptions)] = np.inf
    layouts = seconds.transpose(2, 1, 0, 3).reshape(-1, n_gpu.size)
    first = np.argmax(layouts * LESS <= layouts.min(axis=0), axis=0)
    stage, down, kind = np.unravel_index(first, seconds.shape[2::-1])
    point = np.arange(n_gpu.size)
    return {
        "kind": np.array(assumptions.kinds)[kind],
        "stages": stages[stage, point],
        "scale_down": downs[down, stage, point],
    }
