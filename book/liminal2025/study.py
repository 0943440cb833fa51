"""LIMINAL 2025: the same study for chips that exist, for any model, and turned round."""

import math

import numpy as np
import pandas as pd
import xarray as xr

from book.liminal2025 import derivations
from book.liminal2025.cells import large
from inferlib import catalog
from inferlib.papers.liminal2025 import equations as model
from inferlib.papers.liminal2025.equations import PRINTED, Assumptions, load_chip, load_model

# Systems of today: a chip of the catalogue, chips that share every operator, and the format they compute in.
SYSTEMS = {
    "H100 SXM": (8, "fp8"),
    "H200": (8, "fp8"),
    "B200": (8, "fp8"),
    "GB200 NVL72": (72, "fp8"),
    "MI300X": (8, "fp8"),
    "TPU v5p": (128, "fp8"),
    "Groq LPU": (128, "int8"),
}
SPEEDS = (1_000, 10_000, 100_000)


def today(shape, context=4096):
    """One model on systems of today: speed of one user and of the system, by the paper's equations.

    Notes
    -----
    A collective takes what the paper's switch takes for as many chips: the links of these systems are others.
    """
    shape = shape if hasattr(shape, "layers") else catalog.load_model(shape)
    assumptions = Assumptions.corrected()
    app, rows = model.model_of(shape, assumptions), []
    for name, (n, format) in SYSTEMS.items():
        chip = model.chip_of(catalog.load_chip(name), format)
        stages = max(1, math.ceil(model.stages_room(app, chip, 1, context, n, assumptions)))
        t_tp = model.collective_latency(n, assumptions)
        # stages hold the model together: the room for caches is that of all of them
        whole = chip.replace(capacity=chip.capacity * stages)
        batch = (model.largest_batch(app, whole, context, n, assumptions) or 0) // stages
        one = model.user_speed(app, chip, 1, context, n, stages, t_tp, assumptions)
        waiting = model.exposed_time(app, n, stages, t_tp, assumptions) * one
        full = model.system_speed(app, chip, max(batch, 1), context, n, stages, t_tp, assumptions)
        row = {"system": name, "chips": n, "stages": stages, "UTPS": one, "waiting": waiting}
        rows.append(row | {"batch": max(batch, 1), "STPS": full if batch else one})
    return pd.DataFrame(rows)


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


def needs(app, speeds=SPEEDS, n=128, context=4096):
    """The design chart in figures: bandwidth and latency if half of the time is spent waiting, and the limits."""
    rows = []
    for u in speeds:
        least, half = (derivations.bandwidth_for(app, 1, context, n, u, x) / 1e12 for x in (0.0, 0.5))
        most = 1e9 * derivations.latency_for(app, n, u, 1.0)
        rows.append((u, half, most / 2, least, most))
    return pd.DataFrame(rows, columns=["tokens/s", "TB/s", "ns", "TB/s at least", "ns at most"])
