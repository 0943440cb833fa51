"""Pareto frontiers of speed against cost, and the point preferred on one."""

import numpy as np

from inferlib import checks


def pareto(points, *, speed="tokens_per_second", cost="usd_per_million"):
    """The points that no other point beats in both speed and cost, fastest first.

    ``points``: an xarray Dataset or pandas DataFrame, of any number of axes or rows. A point whose speed or cost
    is NaN is infeasible and left out; ValueError if none is feasible. ``speed``, ``cost``: the two columns to
    trade; more speed and less cost are better. By default the speed of one user: traded against the throughput
    of all, cost would have almost nothing to trade.

    Returns the frontier as a DataFrame with all columns (and axis labels) of ``points``; both speed and cost
    fall strictly from row to row.

    Examples
    --------
    >>> import pandas as pd
    >>> points = pd.DataFrame({"tokens_per_second": [100, 80, 90], "usd_per_million": [3.0, 2.0, 4.0]})
    >>> pareto(points)["usd_per_million"].tolist()
    [3.0, 2.0]
    """
    columns = points.data_vars if hasattr(points, "data_vars") else getattr(points, "columns", None)
    if columns is None:
        raise TypeError(f"points is a {type(points).__name__}, but must be a DataFrame or a Dataset")
    for name in (speed, cost):
        checks.one_of("column", name, columns)
    if hasattr(points, "to_dataframe"):
        return _of_grid(points, speed, cost)
    table = points.dropna(subset=[speed, cost])
    if table.empty:
        raise ValueError("no feasible point: every speed or cost is NaN")
    return table.iloc[_front(table[speed].to_numpy(), table[cost].to_numpy())].reset_index(drop=True)


def _of_grid(points, speed, cost):
    """The same for a grid, building rows only for the points that survive."""
    from inferlib.extras import xarray as xr

    axes = list(points.sizes)
    values = xr.broadcast(points)[0].transpose(*axes)
    flat = {name: values[name].to_numpy().ravel() for name in values.data_vars}
    feasible = np.flatnonzero(~np.isnan(flat[speed]) & ~np.isnan(flat[cost]))
    if not feasible.size:
        raise ValueError("no feasible point: every speed or cost is NaN")
    kept = feasible[_front(flat[speed][feasible], flat[cost][feasible])]
    places = np.unravel_index(kept, [values.sizes[axis] for axis in axes])
    labels = {axis: values[axis].to_numpy()[at] for axis, at in zip(axes, places, strict=True)}

    from inferlib.extras import pandas as pd

    return pd.DataFrame({name: column[kept] for name, column in flat.items()} | labels)


def _front(speed, cost):
    """Indices of the non-dominated points, fastest first: sort once, then keep every new lowest cost."""
    order = np.lexsort((cost, -speed))
    falling = cost[order]
    lowest_before = np.concatenate(([np.inf], np.minimum.accumulate(falling)[:-1]))
    return order[falling < lowest_before]


def preferred(frontier, alpha=3, *, speed="tokens_per_second", cost="usd_per_million"):
    """The frontier point with the largest speed^alpha / cost.

    ``frontier``: as :func:`pareto` returns it; the result is a row of it. ``alpha``: how many per cent of cost
    one per cent of speed is worth.

    Examples
    --------
    >>> import pandas as pd
    >>> points = pd.DataFrame({"tokens_per_second": [100.0, 50.0], "usd_per_million": [3.0, 1.0]})
    >>> float(preferred(points, alpha=1)["tokens_per_second"])
    50.0
    """
    alpha = checks.number("alpha", alpha)
    if frontier.empty:
        raise ValueError("the frontier has no point")
    for name in (speed, cost):
        checks.number(name, frontier[checks.one_of("column", name, frontier.columns)])
    return frontier.loc[(alpha * np.log(frontier[speed]) - np.log(frontier[cost])).idxmax()]
