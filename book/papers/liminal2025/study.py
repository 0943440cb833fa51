"""LIMINAL 2025: its study for any chip and model, and the inverse."""

import numpy as np
import xarray as xr

from book.papers.liminal2025 import derivations
from inferlib.papers import liminal2025 as model

SPEEDS = (1_000, 10_000, 100_000)


def speed_or_reason(app, chip, batch, context, n, t_tp):
    """Format the tokens per second of one user, or why the model does not fit."""
    room, needed = n * chip.capacity, model.capacity_needed(app, batch, context)
    if needed > room:
        return f"infeasible: needs {needed / 1e9:,.0f} GB, {n} chips have {room / 1e9:,.0f}"
    return f"{model.user_speed(app, chip, batch, context, n, 1, t_tp):.0f}"


def design(app, n, context, speeds=SPEEDS):
    """Return the bandwidth and latency that a chip needs for given speeds of a user, over the share of time waiting."""
    parts = np.linspace(0.005, 0.995, 199)
    waiting = xr.DataArray(parts, coords={"waiting": parts})
    speed = xr.DataArray(list(speeds), coords={"speed": list(speeds)})
    bandwidth = derivations.bandwidth_for(app, 1, context, n, speed, waiting)
    return xr.Dataset({"bandwidth": bandwidth, "latency": derivations.latency_for(app, n, speed, waiting)})
