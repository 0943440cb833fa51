"""Erdil 2025: the frontiers of speed against cost, over the paper's own grids of instances and batches.

A frontier of the complete model has a few hundred points; bounds exclude most cells of its grid before the search.
"""

import numpy as np
import pandas as pd
import xarray as xr

from book.papers.erdil2025 import speculation
from book.papers.erdil2025.readings import FIGURE_1
from inferlib import validation
from inferlib.frontier import pareto
from inferlib.ops import maximum
from inferlib.papers.erdil2025 import search
from inferlib.papers.erdil2025.equations import model as m, toy
from inferlib.papers.erdil2025.records import PRINTED, load_chip, load_model
from inferlib.papers.erdil2025.shape import parameter_count
from inferlib.units import factor

GRID, THRESHOLDS, LARGEST = (
    400,
    1000,
    18,
)  # points per axis, points, and the logarithm of the largest instance
DECADES = 2  # decades from the fastest to the slowest latency of a frontier
_STEPS, _BLOCK = (8, 3, 1), 32768  # strides of rows and columns, one after the other; cells at a time


def toy_frontier(model, chip, *, demand=float("inf"), price=None, context=1, assumptions=FIGURE_1):
    """The Pareto frontier of speed for one user against cost, in the toy model (section 2.2.2, Figure 1).

    ``chip``: with ``memory_capacity``, and a price unless ``price`` gives one (dollars per GPU and hour).
    ``demand``: tokens per second that all users together ask for; an instance cannot make more. ``context``:
    for the capacity test only. Returns a frame, fastest first: ``tokens_per_second`` of one user,
    ``usd_per_million``, ``n_gpu``, ``batch``. Raises ValueError if an argument is not positive, the chip has no
    price, or nothing fits.
    """
    model = load_model(model)
    if demand != float("inf"):
        validation.number("demand", demand)
    validation.number("context", context, zero=True)
    price = validation.number("price", chip.price if price is None else price)
    capacity = validation.number("chip.memory_capacity", chip.memory_capacity)
    model, chip = assumptions.applied_to(model, chip)
    # The paper's own grid: even logarithms from where the weights fit, which for a small model is less than one GPU.
    smallest = max(model.weight_bytes * model.n_params / capacity, assumptions.least_gpus)
    if smallest > 2**18:
        raise ValueError(f"the weights need {smallest:.3g} GPUs, but the largest instance tried has {2**18}")
    n_gpu = xr.DataArray(np.geomspace(smallest, 2**18, 400), dims="n_gpu")
    batch = xr.DataArray(np.geomspace(1, 2**18, 400), dims="batch")
    n_gpu = n_gpu.assign_coords(n_gpu=n_gpu)
    batch = batch.assign_coords(batch=batch)
    # Fewer than one GPU would make the hops negative.
    t_reduce = assumptions.t_base + toy.grid_all_reduce_time(maximum(n_gpu, 1), assumptions.t_hop)
    latency = toy.toy_latency(model, chip, n_gpu, batch, t_reduce)
    gpu_seconds = toy.toy_gpu_seconds(model, chip, n_gpu, batch, t_reduce)
    possible = toy.toy_fits(model, chip, n_gpu, batch, context) & (toy.throughput(batch, latency) <= demand)
    usd_per_second = price * factor("usd/h", "usd/s")
    speed = (1 / latency).where(possible)
    cost = gpu_seconds * usd_per_second * 1e6
    return pareto(xr.Dataset({"tokens_per_second": speed, "usd_per_million": cost}))


def grid(shape, chip, assumptions=PRINTED):
    """The paper's grid: instances from where the weights fill the memory, batches from one, by even logarithms."""
    least = np.log2(shape.weight_bytes * parameter_count(shape) / chip.memory_capacity)
    if least > LARGEST:
        raise ValueError(f"weights need {2**least:.3g} GPUs, but the largest instance tried has {2**LARGEST}")
    most = LARGEST + np.log2(float(m.sparsity(shape, assumptions)))
    return np.logspace(least, LARGEST, GRID, base=2), np.logspace(0, most, GRID, base=2)


def frontier(
    model, chip, *, draft=None, acceptance=0.8, gamma_max=5, context=0, pipeline=True, price=None,
    assumptions=PRINTED,
):  # fmt: skip
    """The Pareto frontier of speed for one user against cost, over the paper's grid of 400 x 400 points.

    ``model``, ``chip``: the paper's own or the catalogue's, with a price unless ``price`` gives one (dollars
    per GPU and hour). ``draft``: the model that drafts tokens, each accepted with probability ``acceptance``,
    ``gamma_max`` tokens a round at most; without one there is no speculative decoding. ``context``: tokens of
    each sequence. ``pipeline``: whether pipeline parallelism is searched too. Raises ValueError if an argument
    is not allowed, the chip has no price, or nothing fits.

    Returns a frame from fastest to slowest: ``tokens_per_second`` of one user, ``usd_per_million``, ``n_gpu``,
    ``batch``, ``mfu`` (of the arithmetic peak), and the layout: ``kind``, ``stages``, ``scale_down``. With a
    draft also ``gamma`` (drafts of a round; the paper's 1 stands for none) and the draft's own layout, such as
    ``draft_kind``. The points are the cheapest below a thousand latencies that reach to a hundred times the
    smallest.

    Examples
    --------
    >>> fastest = frontier(load_model("Llama 3 70B 8-bit"), load_chip("H100")).iloc[0]
    >>> round(fastest.tokens_per_second), round(fastest.n_gpu)
    (152, 24)
    """
    shape, gpu, assumptions = search.opened(model, chip, assumptions)
    price = validation.number("price", load_chip(chip).price if price is None else price)
    validation.number("context", context, zero=True)
    if np.ndim(context):
        raise ValueError(f"context is {context}, but must be one number; a frontier has one context")
    n_gpu, batch = (cells.ravel() for cells in np.meshgrid(*grid(shape, gpu, assumptions), indexing="ij"))
    if draft is None:

        def fastest(n_gpu, batch, limit):
            at = (shape, gpu, n_gpu, batch, np.full(n_gpu.shape, context), 1)
            return search.pass_times(*at, pipeline, assumptions, limit=limit), 1

    else:
        speculation.check_rounds(acceptance, gamma_max)
        small, small_gpu, _ = search.opened(draft, chip, assumptions)

        def fastest(n_gpu, batch, limit):
            at = (shape, gpu, small, small_gpu, n_gpu, batch, np.full(n_gpu.shape, context))
            return speculation.speculated(*at, acceptance, gamma_max, pipeline, assumptions, limit=limit)

    latency, gamma = _latencies(fastest, n_gpu, batch)
    points = cheapest_below(latency, n_gpu / batch * latency)
    n = n_gpu[points]
    b = batch[points]
    seconds = latency[points]
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
    if draft is not None:
        table["gamma"] = gamma[points]
        verified = table.gamma.to_numpy() + (1 if assumptions.free_token else 0)
        degrees = search.pipeline_degrees(small.n_layers, b, pipeline, assumptions)
        drafts = search.layouts_at(small, small_gpu, n, b, context, 1, degrees, assumptions)
        table = table.assign(**{f"draft_{name}": values for name, values in drafts.items()})
    degrees = search.pipeline_degrees(shape.n_layers, b, pipeline, assumptions)
    return table.assign(**search.layouts_at(shape, gpu, n, b, context, verified, degrees, assumptions))


def cheapest_below(latency, cost):
    """Flat indices, fastest first, of the cheapest point below each of a thousand latencies.

    This is how the paper reads a frontier; a latency is infinite where nothing is feasible.
    """
    latency = latency.ravel()
    cost = cost.ravel()
    smallest = latency.min()
    if not np.isfinite(smallest):
        raise ValueError("no feasible point: the model fits on no instance of the grid")
    thresholds = smallest * np.logspace(0, DECADES, THRESHOLDS)
    candidates = np.flatnonzero(latency <= thresholds[-1])
    order = candidates[np.argsort(latency[candidates], kind="stable")]
    falling = np.minimum.accumulate(cost[order])
    first = np.searchsorted(-falling, -falling, side="left")  # where the running minimum was first reached
    last = np.searchsorted(latency[order], thresholds, side="right") - 1
    kept = first[last[last >= 0]]
    return order[kept[np.diff(kept, prepend=-1) != 0]]


def _latencies(search, n_gpu, batch):
    """Latencies of the cells of a grid that may be on its frontier, infinite elsewhere, and their drafts.

    Evenly spread cells are searched first. Their costs bound how fast every other cell must be to lie on the frontier;
    the same is then repeated with more cells. ``search`` gives the latencies of cells that are not above a limit, and
    the drafts of each.
    """
    latency = np.full(n_gpu.shape, np.inf)
    gamma = np.ones(n_gpu.shape, dtype=int)

    def lower(cells, limit):
        for start in range(0, cells.size, _BLOCK):
            some = cells[start : start + _BLOCK]
            latency[some], gamma[some] = search(n_gpu[some], batch[some], limit[start : start + _BLOCK])

    row, column = np.divmod(np.arange(n_gpu.size), GRID)
    searched = np.zeros(n_gpu.shape, dtype=bool)
    limit = np.full(n_gpu.shape, np.inf)
    for step in _STEPS:
        cells = np.flatnonzero((row % step == 0) & (column % step == 0) & ~searched)
        lower(cells, limit[cells])
        searched[cells] = True
        known = np.flatnonzero(np.isfinite(latency))
        limit = slowest(n_gpu / batch, latency[known], (n_gpu / batch)[known] * latency[known])
        limit = np.clip(limit, latency.min(), 10**DECADES * latency.min())
    return latency, gamma


def slowest(per_second, latency, cost):
    """Return the slowest latency at which a point is not beaten in both latency and cost by known points.

    ``per_second``: cost of each point per second of its latency.
    """
    order = np.argsort(latency)
    latency = latency[order]
    cost = np.minimum.accumulate(cost[order])
    # the first known point that is as cheap, if it were as slow as the other; before that, the previous one counts
    first = np.searchsorted(-cost / latency, -per_second)
    return np.minimum(np.append(latency, np.inf)[first], np.append(np.inf, cost)[first] / per_second)
