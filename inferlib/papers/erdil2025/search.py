"""Erdil 2025: the best layout of an instance, and the time of speculative decoding.

A search goes through pipeline stages, attention's scale-downs and kinds of tensor parallelism. It cuts equation 29
(:func:`model.layout_terms`) into what all scale-downs share and what each adds, a block of points at a time, and drops
a point as soon as what it has added up exceeds the best layout found there, or a limit that the caller knows.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from itertools import accumulate
from operator import mul
from types import SimpleNamespace

import numpy as np

from inferlib import validation
from inferlib.equation import equation, forbid_override, unchecked
from inferlib.ops import minimum
from inferlib.papers.erdil2025.equations import model as m
from inferlib.papers.erdil2025.records import DEFAULT, Assumptions, Cut, computing_at, load_chip, load_model

equation = partial(equation, "erdil2025", chapter="erdil2025_model")
LESS, MORE = 1 - 1e-9, 1 + 1e-9  # room for rounding in comparisons
_FEW = 0.8  # share of the points below which it is faster to continue with those alone
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
    if assumptions.pipelines_to_batch and np.min(batch) < n_layers:
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


class Points(SimpleNamespace):
    """Quantities at the points of a search, as arrays; plain numbers are equal at all points."""

    def at(self, chosen):
        """Return the same at some of the points."""
        return Points(**{name: v[chosen] if np.ndim(v) else v for name, v in vars(self).items()})


@unchecked
def pass_times(
    shape,
    chip,
    n_gpu,
    batch,
    context,
    new_tokens,
    pipeline,
    assumptions=DEFAULT,
    *,
    beside=None,
    limit=np.inf,
):
    """Seconds in the fastest layout at every point; infinite where none fits or stays below a limit of seconds."""
    forbid_override("the search over layouts, which cuts equation 29 into pieces,", m.layout_latency)
    if not n_gpu.size:
        return np.full(n_gpu.shape, np.inf)
    limit = np.broadcast_to(limit, n_gpu.shape) * MORE
    best = limit.copy()
    for stages in reversed(pipeline_degrees(shape.n_layers, batch, pipeline, assumptions)):
        possible = np.flatnonzero(
            fits(shape, chip, n_gpu, stages, batch, context, assumptions, beside=beside)
        )
        at = Points(stages=stages, n_gpu=n_gpu, batch=batch, context=context, best=best).at(possible)
        best[possible] = _fastest(shape, chip, at, new_tokens, assumptions)
    return np.where(best < limit, best, np.inf)


def _shared(shape, chip, at, new_tokens, assumptions):
    """Return the part of equation 29 that all scale-downs share at some points; ``starts`` has a row for each kind."""
    group = at.n_gpu / at.stages
    micro = at.batch / at.stages
    tokens = micro * new_tokens
    experts = m.expert_groups(shape, group, micro, assumptions)
    used = m.experts_used(shape, tokens, assumptions)
    rate = m.memory_rate(chip, group)
    block, moved = m.feed_forward_bytes(shape, group, experts, assumptions)
    unembedding = shape.weight_bytes * m.embedding_params(shape)
    spread, pairs, repeated = m.flop_per_token(shape, at.context, assumptions)
    each = at.batch * new_tokens / m.arithmetic_rate(chip, at.n_gpu)
    cache = m.cache_bytes(shape, at.context, micro, at.batch, assumptions)

    before = m.launches(shape, assumptions)
    before = before + (at.stages - 1) * m.stage_network(shape, chip, group, assumptions).time(tokens)
    for one in m.dispatches(shape, chip, group, experts, assumptions):
        before = before + shape.n_layers * one.time(tokens)
    starts = []
    for kind in assumptions.kinds:
        network = m.feed_forward_network(shape, chip, group, experts, kind, assumptions)
        starts.append(before + shape.n_layers * m.added(one.time(tokens) for one in network))
    return Points(
        group=group,
        tokens=tokens,
        reading=(shape.n_layers * used * (block + moved * tokens) + unembedding + cache) / rate,
        per_byte=shape.n_layers / rate,  # of attention's matrices, read again with every scale-down
        multiplying=each * (spread + pairs),
        repeated=each * repeated,
        starts=np.stack(starts, axis=-1),
        least=reduce(np.minimum, starts),
        best=at.best,
        place=np.arange(at.best.size),
    )


def least_waiting(shape, spread, assumptions=DEFAULT):
    """Lower bound of the seconds that a block's all-reduces wait for the other nodes of a :class:`model.Span`."""
    per_node = min(protocol.per_node for protocol in assumptions.protocols)
    return shape.n_layers * m.ALL_REDUCE * per_node * spread.doublings


def _fastest(shape, chip, at, new_tokens, assumptions):
    """Return the least time over scale-downs and kinds at every point, or ``best`` where none is below that.

    A larger scale-down reads and multiplies at least as much, and its collectives take at least no time: a point where
    that alone is too long is skipped from there on. If waiting for other nodes makes it too long for every kind, only
    this scale-down is skipped.
    """
    fastest = at.best.copy()
    open = _shared(shape, chip, at, new_tokens, assumptions)
    for index in range(len(scale_downs(1.0, assumptions))):
        open.z, open.ranks = scale_downs(open.group, assumptions)[index]
        weights, moved = m.attention_bytes(shape, open.ranks, assumptions)
        reading = open.reading + open.z * open.per_byte * (weights + moved * open.tokens)
        open.overlapped = np.maximum(reading, open.multiplying + open.z * open.repeated)
        hopeful = np.flatnonzero(open.least + open.overlapped <= open.best)
        if hopeful.size <= _FEW * open.place.size:
            fastest[open.place] = open.best
            open = open.at(hopeful)
            if not hopeful.size:
                break
        spread = m.span(chip, open.ranks)
        waiting = least_waiting(shape, spread, assumptions)
        some = np.flatnonzero(open.least + open.overlapped + waiting <= open.best)
        here = Points(
            gpus=spread.gpus, nodes=spread.nodes, doublings=spread.doublings, tokens=open.tokens,
            starts=open.starts, overlapped=open.overlapped, best=open.best,
        ).at(some)  # fmt: skip
        spread = m.Span(here.gpus, here.nodes, here.doublings)
        for i, kind in enumerate(assumptions.kinds):
            network = m.attention_network(shape, chip, spread, kind, assumptions)
            network = m.added(one.time(here.tokens) for one in network)
            seconds = here.starts[:, i] + shape.n_layers * network + here.overlapped
            here.best = np.minimum(here.best, seconds)
        open.best[some] = here.best
    fastest[open.place] = open.best
    return fastest


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
        return pass_times(shape, chip, n_gpu, batch, context, new_tokens, pipeline, assumptions)

    return over_points(search, n_gpu, batch, context)


def layouts_at(shape, chip, n_gpu, batch, context, new_tokens, degrees, assumptions=DEFAULT):
    """Kind, stages and scale-down of the fastest layout at some points, as fields of a :class:`Cut`.

    ``n_gpu``, ``batch``: arrays. ``degrees``: the numbers of pipeline stages to search. Ties go to the first searched;
    so does a point where nothing fits.
    """
    stages = np.stack([np.broadcast_to(one, n_gpu.shape) for one in degrees])
    possible = fits(shape, chip, n_gpu, stages, batch, context, assumptions)
    downs = [np.broadcast_to(z, stages.shape) for z, _ in scale_downs(n_gpu / stages, assumptions)]
    stages, downs = np.broadcast_arrays(stages[:, None], np.stack(downs, axis=1))
    at = (n_gpu, batch, context, new_tokens, assumptions)
    seconds = [m.layout_latency(shape, chip, Cut(stages, downs, kind), *at) for kind in assumptions.kinds]
    seconds = np.where(possible[:, None, None], np.stack(seconds, axis=2), np.inf)
    layouts = seconds.reshape(-1, n_gpu.size)
    first = np.argmax(layouts * LESS <= layouts.min(axis=0), axis=0)
    stage, down, kind = np.unravel_index(first, seconds.shape[:3])
    point = np.arange(n_gpu.size)
    return {
        "kind": np.array(assumptions.kinds)[kind],
        "stages": stages[stage, down, point],
        "scale_down": downs[stage, down, point],
    }
