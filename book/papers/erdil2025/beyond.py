"""Beyond Erdil 2025: real machines, other GPUs, and how much the preferred point depends on each assumption."""

import numpy as np
import pandas as pd
import xarray as xr

from inferlib.papers.erdil2025.equations import model as m
from inferlib.papers.erdil2025.records import Assumptions, computing_at, load_chip, load_model
from inferlib.papers.erdil2025.search import token_latency
from inferlib.units import factor


def cheapest_by_context(steps, contexts, chunk=20):
    """Return the smallest cost of a token within a time limit, over the context: a sweep on dask.

    The model is Llama 3 70B at 8 bits on H100s, the limit 20 ms.

    ``steps``, ``contexts``: instance sizes and batches tried, and contexts: ``steps**2 * contexts`` configurations,
    each with its best layout. ``chunk``: sizes and batches per dask task. Returns dollars per million tokens, not
    computed yet: ``.compute()`` does it with threads of this machine, or on the cluster of a
    ``dask.distributed.Client``.
    """
    model, chip = load_model("Llama 3 70B 8-bit"), load_chip("H100")

    def axis(name, values, chunk):
        return xr.DataArray(values, dims=name, coords={name: values}).chunk(chunk)

    n_gpu = axis("n_gpu", np.geomspace(8, 4096, steps), chunk)
    batch = axis("batch", np.geomspace(1, 4096, steps), chunk)
    context = axis("context", np.linspace(0, 32_768, contexts), -1)
    latency = token_latency(model, chip, n_gpu, batch, context=context)
    cost = n_gpu * latency / batch * (chip.price * factor("usd/h") * 1e6)
    return cost.where(latency <= 20 * factor("ms")).min(["n_gpu", "batch"])


def one_box_by_batch(model, chip, gpus):
    """Speed, utilisation and cost of one box of GPUs by batch: the paper's opening question."""
    model, chip = load_model(model), load_chip(chip)
    batch = 2 ** np.arange(0, 11, 0.05)
    seconds = token_latency(model, chip, gpus, batch)
    flop = sum(m.flop_per_token(model.shape, 0, Assumptions()))
    table = {
        "tokens_per_second": 1 / seconds,
        "mfu": flop * batch / (gpus * computing_at(chip, model.shape).flops * seconds),
        "usd_per_million": gpus * seconds / batch * chip.price * factor("usd/h") * 1e6,
    }
    return pd.DataFrame(table, index=pd.Index(batch, name="batch"))
