"""Erdil's search on arrays: lazy on dask, the same as on numbers, and in little memory.

Equations broadcast, and stay lazy, as the operations do (tests/test_core.py).
"""

import tracemalloc

import numpy as np
import xarray as xr

from inferlib.papers import erdil2025

AT = erdil2025.load_model("Llama 3 70B"), erdil2025.load_chip("H100")


def test_labelled_axes_stay_lazy():
    swept = {"n_gpu": [8.0, 24.0, 300.0], "batch": [64.0, 4096.0], "context": [100.0, 3000.0]}
    axes = [xr.DataArray(values, dims=name) for name, values in swept.items()]
    lazy, now = (
        erdil2025.token_latency(*AT, *each[:2], context=each[2])
        for each in ([a.chunk(1) for a in axes], axes)
    )
    assert type(lazy.data).__module__.startswith("dask"), "computed too early"
    xr.testing.assert_allclose(lazy.compute(), now, rtol=1e-14)


def test_many_points_need_little_memory():
    """Intermediate results take one block: a fraction of the memory for all points."""
    random = np.random.default_rng(0)
    n_gpu, batch = 2 ** random.uniform(3, 10, 10**6), 2 ** random.uniform(0, 10, 10**6)
    tracemalloc.start()
    erdil2025.token_latency(*AT, n_gpu, batch, pipeline=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300e6, f"{peak / 1e6:.0f} MB"
