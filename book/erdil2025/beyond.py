"""Beyond Erdil 2025: real machines, other GPUs, and how far the preferred point hangs on each assumption."""

import numpy as np
import pandas as pd
import xarray as xr

from book.erdil2025.economics import frontier
from inferlib.catalog import load_chip
from inferlib.frontier import pareto, preferred
from inferlib.papers.erdil2025.equations import model as m
from inferlib.papers.erdil2025.equations.model import layout_latency
from inferlib.papers.erdil2025.records import Assumptions, Cut, chip_of, chips, computing_at, model_of, models
from inferlib.papers.erdil2025.search import infeasible, token_latency
from inferlib.units import factor

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def machine_cuts(shape, n_gpu, assumptions):
    """The layouts that a machine can run: stages that divide the layers, groups that divide the heads.

    Square groups only where tensor parallelism is two-dimensional; attention on 1/2, 1/4, ... of a group.
    """
    for stages in range(1, n_gpu + 1):
        group = n_gpu // stages
        if shape.n_layers % stages or n_gpu % stages or shape.d_ff % group:
            continue
        for kind in assumptions.kinds:
            if kind == "2D" and round(group**0.5) ** 2 != group:
                continue
            for scale_down in (2**i for i in range(group.bit_length())):
                if group % scale_down == 0 and shape.n_heads % (group // scale_down) == 0:
                    yield Cut(float(stages), float(scale_down), kind)


def machine_frontier(model, chip):
    """The frontier of machines that exist: 1 to 256 GPUs in powers of two, whole batches, layouts that divide."""
    assumptions, shape, price = Assumptions(), model_of(model).shape, chip_of(chip).price * factor("usd/h")
    chip, flop = computing_at(chip_of(chip), shape), sum(m.flop_per_token(shape, 0, assumptions))
    batches = np.unique(np.round(2 ** np.arange(0, 14, 0.25)))
    rows = []
    for n_gpu in SIZES:
        for cut in machine_cuts(shape, n_gpu, assumptions):
            batch = batches[batches % cut.stages == 0]
            batch = batch[[not infeasible(shape, chip, n_gpu, cut.stages, b, 0, assumptions) for b in batch]]
            if batch.size:
                seconds = layout_latency(shape, chip, cut, n_gpu, batch, 0, 1, assumptions)
                points = {
                    "tokens_per_second": 1 / seconds,
                    "usd_per_million": n_gpu * seconds / batch * price * 1e6,
                    "n_gpu": n_gpu,
                    "batch": batch,
                    "mfu": flop * batch / (n_gpu * chip.flops * seconds),
                }
                rows.append(pd.DataFrame(points))
    return pareto(pd.concat(rows, ignore_index=True))


def cost_of_rounding(name="Llama 3 70B 8-bit", chip="H100"):
    """The preferred point of real-valued instances and of machines that exist."""
    case = models[name], chips[chip]
    rows = {
        "real numbers": preferred(frontier(*case)),
        "machines that exist": preferred(machine_frontier(*case)),
    }
    fields = ["tokens_per_second", "usd_per_million", "n_gpu", "batch", "mfu"]
    return pd.DataFrame(rows).T[fields].astype(float)


def cheapest_by_context(name="Llama 3 70B 8-bit", chip="H100", seconds=0.02, steps=40, contexts=3, chunk=20):
    """The smallest cost of a token that takes no longer than so many seconds, over the context: a sweep on dask.

    ``steps``, ``contexts``: sizes of the instance and batches tried, and contexts: ``steps**2 * contexts``
    configurations, each at its best layout. ``chunk``: sizes and batches that one task of dask computes. Returns
    dollars for a million tokens, not computed yet: ``.compute()`` does it with threads of this machine, or on the
    cluster of a ``dask.distributed.Client``.
    """
    model, chip = models[name], chips[chip]

    def axis(name, values, chunk):
        return xr.DataArray(values, dims=name, coords={name: values}).chunk(chunk)

    n_gpu = axis("n_gpu", np.geomspace(8, 4096, steps), chunk)
    batch = axis("batch", np.geomspace(1, 4096, steps), chunk)
    context = axis("context", np.linspace(0, 32_768, contexts), -1)
    latency = token_latency(model, chip, n_gpu, batch, context=context)
    cost = n_gpu * latency / batch * (chip.price * factor("usd/h") * 1e6)
    return cost.where(latency <= seconds).min(["n_gpu", "batch"])


def catalogue_chips():
    """The fastest and the preferred point of Llama 3 70B at 8 bits on GPUs of the catalogue, at their list prices."""
    rows = {}
    for name in ("A100 80GB", "H100 SXM", "H200", "B200", "MI300X"):
        chip = load_chip(name)
        curve = frontier(models["Llama 3 70B 8-bit"], chip, pipeline=False)
        best = preferred(curve)
        rows[name] = {
            "USD per hour": chip.price, "fastest tokens/s": curve.tokens_per_second[0],
            "preferred tokens/s": best.tokens_per_second, "USD per million": best.usd_per_million,
            "GPUs": best.n_gpu, "batch": best.batch, "MFU": best.mfu,
        }  # fmt: skip
    return pd.DataFrame(rows).T


def _changes(chip, assumptions, factor_):
    """One assumption at a time, larger or smaller: label to (chip, assumptions)."""
    fields = {
        "memory bandwidth": "memory_bandwidth", "arithmetic peak": "flops_fraction",
        "bandwidth inside a node": "scale_up_bandwidth", "bandwidth between nodes": "scale_out_bandwidth",
        "memory": "memory_capacity", "price": "price",
    }  # fmt: skip
    for label, name in fields.items():
        yield (label, chip.replace(**{name: getattr(chip, name) * factor_}), assumptions)
    yield ("kernel launch", chip, assumptions.replace(t_kernel=assumptions.t_kernel * factor_))
    for label, name in (("base", "base"), ("next GPU", "per_rank"), ("next node", "per_node")):
        protocols = tuple(p.replace(**{name: getattr(p, name) * factor_}) for p in assumptions.protocols)
        yield (f"collective latency: {label}", chip, assumptions.replace(protocols=protocols))


def sensitivity(name="Llama 3 70B 8-bit", chip="H100", shift=0.2):
    """Change of the preferred point's speed and value, speed^3 / price, by assumption; the largest swing first.

    Each assumption is divided and multiplied by 1 + ``shift``, and everything optimised again.
    """

    def point(chip, assumptions):
        best = preferred(frontier(models[name], chip, pipeline=False, assumptions=assumptions))
        return (best.tokens_per_second, best.tokens_per_second**3 / best.usd_per_million)

    speed, value = point(chips[chip], Assumptions())
    rows = {}
    for column, by in (("lower", 1 / (1 + shift)), ("higher", 1 + shift)):
        for label, changed, assumptions in _changes(chips[chip], Assumptions(), by):
            ours = point(changed, assumptions)
            row = rows.setdefault(label, {})
            row[f"speed, {column}"], row[f"value, {column}"] = (ours[0] / speed - 1, ours[1] / value - 1)
    table = pd.DataFrame(rows).T
    swing = (table["value, higher"] - table["value, lower"]).abs()
    return table.loc[swing.sort_values(ascending=False, kind="stable").index]


def eight_gpus(model=models["Llama 3 70B"], chip=chips["H100"]):
    """Speed, utilisation and cost of one box of eight GPUs by batch: the paper's opening question."""
    batch = 2 ** np.arange(0, 11, 0.05)
    seconds = token_latency(model, chip, 8.0, batch)
    flop = sum(m.flop_per_token(model.shape, 0, Assumptions()))
    table = {
        "tokens_per_second": 1 / seconds,
        "mfu": flop * batch / (8 * computing_at(chip, model.shape).flops * seconds),
        "usd_per_million": 8 * seconds / batch * chip.price * factor("usd/h") * 1e6,
    }
    return pd.DataFrame(table, index=pd.Index(batch, name="batch"))


def answer(speed, utilisation):
    """The best utilisation of eight H100s with Llama 3 70B at a speed, and the best speed at a utilisation."""
    table = eight_gpus()
    return {
        "utilisation at that speed": table.mfu[table.tokens_per_second >= speed].max(),
        "speed at that utilisation": table.tokens_per_second[table.mfu >= utilisation].max(),
    }
