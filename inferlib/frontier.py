"""Pareto frontiers of speed against cost, and the point preferred on one."""

import numpy as np

from inferlib import validation


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
    grid = hasattr(points, "data_vars")
    if not grid and not hasattr(points, "columns"):
        raise TypeError(f"points is a {type(points).__name__}, but must be a DataFrame or a Dataset")
    for name in (speed, cost):
        validation.one_of("column", name, points.data_vars if grid else points.columns)
    columns = [*points.data_vars, *points.sizes] if grid else points.columns
    points = points.stack(point=[*points.sizes]) if grid else points
    fast, cheap = (points[name].to_numpy() for name in (speed, cost))
    feasible = np.flatnonzero(~np.isnan(fast) & ~np.isnan(cheap))
    if not feasible.size:
        raise ValueError("no feasible point: every speed or cost is NaN")
    kept = feasible[_front(fast[feasible], cheap[feasible])]
    # of a grid, rows are built only for the points that survive
    rows = points.isel(point=kept).reset_index("point").to_dataframe() if grid else points.iloc[kept]
    return rows[columns].reset_index(drop=True)


def _front(speed, cost):
    """Indices of the non-dominated points, fastest first: sort once, then keep every new lowest cost."""
    order = np.lexsort((cost, -speed))
    falling = cost[order]
    lowest_before = np.concatenate(([np.inf], np.minimum.accumulate(falling)[:-1]))
    return order[falling < lowest_before]


def preferred(frontier, alpha=3):
    """The frontier point with the largest speed^alpha / cost, of one user's tokens per second and dollars per million.

    ``frontier``: as :func:`pareto` returns it; the result is a row of it. ``alpha``: how many per cent of cost
    one per cent of speed is worth.

    Examples
    --------
    >>> import pandas as pd
    >>> points = pd.DataFrame({"tokens_per_second": [100.0, 50.0], "usd_per_million": [3.0, 1.0]})
    >>> float(preferred(points, alpha=1)["tokens_per_second"])
    50.0
    """
    alpha = validation.number("alpha", alpha)
    if frontier.empty:
        raise ValueError("the frontier has no point")
    speed, cost = (
        validation.number(name, frontier[validation.one_of("column", name, frontier.columns)])
        for name in ("tokens_per_second", "usd_per_million")
    )
    return frontier.iloc[(alpha * np.log(speed) - np.log(cost)).argmax()]
