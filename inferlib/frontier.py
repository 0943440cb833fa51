"""Pareto frontiers of speed against cost, and the preferred point."""

import numpy as np

from inferlib import validation


def pareto(points, *, speed="tokens_per_second", cost="usd_per_million"):
    """Return the points that no other point beats in both speed and cost, fastest first.

    ``points``: an xarray Dataset or pandas DataFrame with any number of axes or rows. Points whose speed or cost is NaN
    are infeasible and left out; ValueError if none is feasible. ``speed``, ``cost``: names of the two columns; more
    speed and less cost are better. The default speed is that of one user; the throughput of all users would leave
    almost nothing to trade against cost.

    Returns a DataFrame with all columns (and axis labels) of ``points``; speed and cost fall strictly from row to row.

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
    # on a grid, build rows only for the points that remain
    rows = points.isel(point=kept).reset_index("point").to_dataframe() if grid else points.iloc[kept]
    return rows[columns].reset_index(drop=True)


def _front(speed, cost):
    """Indices of the non-dominated points, fastest first: sort once, then keep every new lowest cost."""
    order = np.lexsort((cost, -speed))
    falling = cost[order]
    lowest_before = np.concatenate(([np.inf], np.minimum.accumulate(falling)[:-1]))
    return order[falling < lowest_before]


def preferred(frontier, alpha=3):
    """Return the frontier point with the largest speed^alpha / cost (tokens per second of one user, $ per million).

    ``frontier``: a result of :func:`pareto`. ``alpha``: per cent of cost that one per cent of speed is worth.

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
