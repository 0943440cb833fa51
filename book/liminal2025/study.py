"""LIMINAL 2025: the same study for chips that exist, for any model, and turned round."""

import numpy as np
import pandas as pd
import xarray as xr

from book.liminal2025 import derivations
from book.liminal2025.cells import large
from inferlib.papers.liminal2025 import equations as model
from inferlib.papers.liminal2025.equations import PRINTED, Assumptions, load_chip, load_model

# Systems of today: a chip of the catalogue, chips that share every operator, and the format they compute in.
SPEEDS = (1_000, 10_000, 100_000)


def speed_or_reason(app, chip, batch, context, n, t_tp):
    """Tokens per second of one user, in words; or what does not fit."""
    room, needed = n * chip.capacity, model.capacity_needed(app, batch, context)
    if needed > room:
        return f"infeasible: needs {needed / 1e9:,.0f} GB, {n} chips have {room / 1e9:,.0f}"
    return f"{model.user_speed(app, chip, batch, context, n, 1, t_tp):.0f}"


def design(app, n=128, context=4096, speeds=SPEEDS):
    """What a chip needs for given speeds of one user, over the part of the time spent waiting."""
    parts = np.linspace(0.005, 0.995, 199)
    waiting = xr.DataArray(parts, coords={"waiting": parts})
    speed = xr.DataArray(list(speeds), coords={"speed": list(speeds)})
    bandwidth = derivations.bandwidth_for(app, 1, context, n, speed, waiting)
    return xr.Dataset({"bandwidth": bandwidth, "latency": derivations.latency_for(app, n, speed, waiting)})


def corrected(context=4096):
    """What changes under ``Assumptions.corrected()``: UTPS on HBM3 at batch 1."""
    rows = []
    for name in large():
        row = {"model": name}
        for n in (8, 128):
            for label, assumed in (("printed", PRINTED), ("corrected", Assumptions.corrected())):
                app, chip = load_model(name, assumed), load_chip("HBM3")
                fits = model.largest_batch(app, chip, context, n, assumed) is not None
                t_tp = model.collective_latency(n, assumed)
                speed = model.user_speed(app, chip, 1, context, n, 1, t_tp, assumed)
                row[f"TP{n} {label}"] = round(speed) if fits else "-"
        rows.append(row)
    return pd.DataFrame(rows)
