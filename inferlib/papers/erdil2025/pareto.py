"""Erdil 2025: the frontier of speed against cost, over the paper's grid of instances and batches.

A search with pipelines runs as machine code that :mod:`inferlib.compiled` makes of the same functions as
every single layout.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from inferlib import checks
from inferlib.compiled import over_grid
from inferlib.papers.erdil2025 import search
from inferlib.papers.erdil2025.equations import model as m
from inferlib.papers.erdil2025.records import as_gpu, parameter_count
from inferlib.units import factor

GRID, THRESHOLDS, LARGEST = 400, 1000, 18  # points, points, and the logarithm of the largest instance
_PARTS = 6  # of the grid, searched side by side


def grid(shape, chip, assumptions):
    """The paper's grid of instances and batches: evenly spaced logarithms.

    Returns
    -------
    n_gpu, batch : numpy.ndarray
        From where the weights fill the memory, and from one sequence.
    """
    least = np.log2(shape.weight_bytes * parameter_count(shape) / chip.memory_capacity)
    if least > LARGEST:
        raise ValueError(
            f"the weights need {2**least:.3g} GPUs, but the largest instance tried has {2**LARGEST}"
        )
    steps = np.arange(GRID) / (GRID - 1)
    most = LARGEST + np.log2(float(m.sparsity(shape, assumptions)))
    return 2 ** (least + (LARGEST - least) * steps), 2 ** (most * steps)


def frontier(
    model, chip, *, draft=None, acceptance=0.8, gamma_max=5, context=0, pipeline=True, throughput_cap=np.inf,
    price=None, assumptions=None,
):  # fmt: skip
    """The Pareto frontier of speed for one user against cost, over the paper's grid of 400 x 400 points.

    Parameters
    ----------
    model : Model or inferlib.Transformer
    chip : GPU or inferlib.Accelerator
        With a ``price`` unless one is given.
    draft : Model or inferlib.Transformer, optional
        The model that drafts tokens; without one there is no speculative decoding.
    acceptance : float
        Probability that a drafted token is accepted.
    gamma_max : int
        Most tokens of one round.
    context : float
        Tokens of context of each sequence.
    pipeline : bool
        Whether pipeline parallelism is searched too.
    throughput_cap : float
        Tokens per second that all users together ask for; an instance cannot make more.
    price : float, optional
        Dollars per GPU and hour.
    assumptions : Assumptions, optional

    Returns
    -------
    pandas.DataFrame
        From fastest to slowest: ``tokens_per_second`` of one user, ``usd_per_million``, ``n_gpu``, ``batch``,
        ``mfu`` (of the arithmetic peak), and the layout: ``kind``, ``stages``, ``scale_down``. With a draft
        also ``gamma`` (drafts of a round; the paper's 1 stands for none) and the draft's own layout, such as
        ``draft_kind``. The points are the cheapest below a thousand latencies that reach to a hundred times
        the smallest.

    Raises
    ------
    ValueError
        If an argument is not allowed, the chip has no price, or nothing fits.

    Examples
    --------
    >>> from inferlib.papers.erdil2025 import chips, models
    >>> fastest = frontier(models["Llama 3 70B 8-bit"], chips["H100"]).iloc[0]
    >>> round(fastest.tokens_per_second), round(fastest.n_gpu)
    (152, 24)
    """
    import pandas as pd

    shape, gpu, assumptions = search.opened(model, chip, assumptions)
    price = checks.number("price", as_gpu(chip).price if price is None else price)
    checks.number("context", context, zero=True)
    if np.ndim(context):
        raise ValueError(f"context is {context}, but must be one number; a frontier has one context")
    if throughput_cap != np.inf:
        checks.number("throughput_cap", throughput_cap)
    n_gpu, batch = grid(shape, gpu, assumptions)
    if draft is None:
        passes = _pass_times(shape, gpu, n_gpu, batch, context, (1,), pipeline, assumptions)
        latency, gamma = passes[1], None
    else:
        search.check_rounds(acceptance, gamma_max)
        small, small_gpu, _ = search.opened(draft, chip, assumptions)
        latency, gamma = search.speculated(
            _pass_times, shape, gpu, small, small_gpu, (n_gpu, batch, context), acceptance, gamma_max,
            pipeline, assumptions,
        )  # fmt: skip
    points = cheapest_below(latency, n_gpu[:, None] / batch * latency, batch / latency <= throughput_cap)
    rows, columns = np.unravel_index(points, latency.shape)
    n, b, seconds = n_gpu[rows], batch[columns], latency[rows, columns]
    flop = sum(m.flop_per_token(shape, context, assumptions))
    table = pd.DataFrame(
        {
            "tokens_per_second": 1 / seconds,
            "usd_per_million": n * seconds / b * (price * factor("usd/h") * 1e6),
            "n_gpu": n,
            "batch": b,
            "mfu": flop * b / (n * gpu.flops * seconds),
        }
    )
    verified = np.ones(n.shape, dtype=int)
    if gamma is not None:
        table["gamma"] = gamma[rows, columns]
        verified = table.gamma.to_numpy() + (1 if assumptions.free_token else 0)
        drafts = search.layouts_at(small, small_gpu, n, b, context, 1, pipeline, assumptions)
        table = table.assign(**{f"draft_{name}": values for name, values in drafts.items()})
    return table.assign(**search.layouts_at(shape, gpu, n, b, context, verified, pipeline, assumptions))


def frontiers(questions, *, progress=None):
    """Many frontiers, as many at a time as there are cores.

    Parameters
    ----------
    questions : list of dict
        The arguments of each :func:`frontier`, by name.
    progress : bool, optional
        Whether to show a bar; by default only on a terminal. An interrupt stops the sweep.

    Returns
    -------
    list of pandas.DataFrame
        In the order of the questions.

    Examples
    --------
    >>> from inferlib.papers.erdil2025 import chips, models
    >>> served = {"model": models["Llama 3 8B"], "pipeline": False}
    >>> curves = frontiers([served | {"chip": chips[name]} for name in ("H100", "A100")])
    >>> [round(curve.tokens_per_second.max()) for curve in curves]
    [451, 391]
    """
    from tqdm import tqdm

    def answer(asked):
        return frontier(**asked)

    hidden = None if progress is None else not progress
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(tqdm(pool.map(answer, questions), total=len(questions), unit="frontier", disable=hidden))


def cheapest_below(latency, cost, allowed):
    """The cheapest allowed point below each of a thousand latencies, the paper's way of reading a frontier.

    Parameters
    ----------
    latency, cost : numpy.ndarray
        Of the same shape; infinite where infeasible.
    allowed : numpy.ndarray of bool

    Returns
    -------
    numpy.ndarray
        Flat indices, fastest first, each once.

    Raises
    ------
    ValueError
        If no point is allowed and feasible.
    """
    latency, cost = latency.ravel(), cost.ravel()
    smallest = latency.min()
    if not np.isfinite(smallest):
        raise ValueError("no feasible point: the model fits on no instance of the grid")
    thresholds = smallest * 10 ** (2 * np.arange(THRESHOLDS) / (THRESHOLDS - 1))
    candidates = np.flatnonzero((latency <= thresholds[-1]) & allowed.ravel())
    if not candidates.size:
        raise ValueError("no feasible point: no instance stays below the throughput that is asked for")
    order = candidates[np.argsort(latency[candidates], kind="stable")]
    falling = np.minimum.accumulate(cost[order])
    first = np.searchsorted(-falling, -falling, side="left")  # where the running minimum was first reached
    last = np.searchsorted(latency[order], thresholds, side="right") - 1
    kept = first[last[last >= 0]]
    return order[kept[np.diff(kept, prepend=-1) != 0]]


def _pass_times(shape, chip, n_gpu, batch, context, tokens, pipeline, assumptions, beside=None):
    """As :func:`search.pass_times` over a whole grid, on every core; both axes rise, each one-dimensional."""
    best = {new: np.full((n_gpu.size, batch.size), np.inf) for new in tokens}
    settings = (context, tokens, pipeline, assumptions, beside)
    if len(search.pipeline_degrees(shape.n_layers, batch, pipeline, assumptions)) > 1:
        lower = _compiled_search(shape, chip, batch, *settings)
    else:  # one number of stages: NumPy is done before LLVM has begun

        def lower(best, n_gpu):
            found = search.pass_times(shape, chip, n_gpu[:, None], batch, *settings)
            for new, times in best.items():
                times[:] = found[new]

    def some(rows):
        lower({new: times[rows] for new, times in best.items()}, n_gpu[rows])

    ends = np.linspace(0, n_gpu.size, max(_PARTS, os.cpu_count()) + 1).astype(int)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(some, map(slice, ends, ends[1:])):
            pass
    return best


def _compiled_search(shape, chip, batch, context, tokens, pipeline, assumptions, beside):
    """The search over stages as machine code: lowers the best times of some instances."""

    def time(n_gpu, batch, stages, context, new):
        return search.time_of_stages(shape, chip, n_gpu, batch, stages, context, assumptions)(new)

    # Below as many sequences as layers the degrees depend on the batch, above they do not.
    middle = int(np.searchsorted(batch, shape.n_layers))
    parts = []
    for columns, axis in ((slice(0, middle), "column"), (slice(middle, batch.size), "number")):
        some = batch[columns]
        if some.size:
            compiled = over_grid(
                time, n_gpu="row", batch="column", stages=axis, context="number", new="layer"
            )
            degrees = search.pipeline_degrees(shape.n_layers, some, pipeline, assumptions)
            degrees = [np.broadcast_to(one, some.shape if axis == "column" else ()) for one in degrees]
            parts.append((columns, some, degrees, compiled))

    def lower(best, n_gpu):
        for columns, some, degrees, compiled in parts:
            for stages in degrees:
                possible = search.fits(
                    shape, chip, n_gpu[:, None], stages, some, context, assumptions, beside
                )
                first = int(np.argmax(possible.any(axis=1)))  # instances rise: those too small come first
                possible = possible[first:]
                if not possible.any():
                    continue
                found = compiled(
                    n_gpu=n_gpu[first:], batch=some, stages=stages, context=context, new=list(best)
                )
                for fastest, times in zip(best.values(), found, strict=True):
                    fastest = fastest[first:, columns]
                    np.minimum(fastest, times, out=fastest, where=possible)

    return lower
