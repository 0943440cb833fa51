"""Every public function of a source that takes arrays: lazy on dask, and the same as on numbers."""

import importlib
import inspect
import tracemalloc

import numpy as np
import pytest
import xarray as xr

from book.audit import grading
from inferlib.equation import EQUATIONS
from inferlib.papers import erdil2025, mazurek2025, pope2022

PAPERS = {source: importlib.import_module(f"inferlib.papers.{source}") for source in grading.sources()}
SWEPT = {
    "n_gpu": [8.0, 24.0, 300.0], "batch": [64.0, 4096.0], "context": [100.0, 3000.0], "tokens": [16.0, 5000.0]
}  # fmt: skip
AT = mazurek2025.setup("9x8 H100")
HELD = {
    "erdil2025": {
        "model": erdil2025.load_model("DeepSeek-V3"), "target": erdil2025.load_model("Llama 3 70B"),
        "draft": erdil2025.load_model("Llama 3 8B"), "chip": erdil2025.load_chip("H100"), "acceptance": 0.8,
        "shape": erdil2025.load_model("GPT-4").shape, "assumptions": erdil2025.Assumptions(),
    },
    "mazurek2025": {
        "model": mazurek2025.load_model("DeepSeek V3"), "gpu": AT.gpu, "deployment": AT.deployment
    },
    "pope2022": {
        "model": pope2022.load_model(), "chip": pope2022.load_chip(), "mesh": pope2022.load_mesh(64)
    },
}  # fmt: skip


def takes_arrays(function):
    """Whether a public function says that it takes arrays; equations have a test of their own."""
    equations = {entry.function.__name__ for entry in EQUATIONS.values()}
    about = function.__doc__ or ""
    return function.__name__ not in equations and ("array" in about or "Arguments as in" in about)


def known(source, function):
    """Whether this test has a value for all that a function must be given."""
    needed = {name for name, p in inspect.signature(function).parameters.items() if p.default is p.empty}
    return needed & set(SWEPT) and needed <= {*SWEPT, *HELD.get(source, ())}


def public():
    for source, paper in PAPERS.items():
        for name, function in vars(paper).items():
            own = inspect.isfunction(function) and function.__module__.startswith(paper.__name__)
            if own and not name.startswith("_") and takes_arrays(function) and known(source, function):
                yield pytest.param(source, function, id=f"{source}.{name}")


def values_of(result):
    """The numbers of a result, which may be several arrays or terms by name."""
    if isinstance(result, dict | tuple | list):
        parts = result.values() if isinstance(result, dict) else result
        return [value for part in parts for value in values_of(part)]
    return [result]


@pytest.mark.parametrize(("source", "function"), list(public()))
def test_dask_stays_lazy(source, function):
    names = inspect.signature(function).parameters
    held = {name: value for name, value in HELD[source].items() if name in names}
    swept = {name: xr.DataArray(SWEPT[name], dims=f"{name}s") for name in names if name in SWEPT}
    lazy = values_of(function(**held, **{name: axis.chunk(1) for name, axis in swept.items()}))
    eager = values_of(function(**held, **swept))
    pairs = [(late, now) for late, now in zip(lazy, eager, strict=True) if np.ndim(now)]
    assert pairs
    for late, now in pairs:
        assert type(late.data).__module__.startswith("dask"), "computed too early"
        xr.testing.assert_allclose(late.compute(), now, rtol=1e-14)
    first = values_of(function(**held, **{name: float(axis[0]) for name, axis in swept.items()}))[0]
    if np.ndim(eager[0]):
        at = eager[0].isel({dim: 0 for dim in eager[0].dims if dim != "layout"})
        np.testing.assert_allclose(at, first, rtol=1e-14)


def test_the_search_takes_arrays_of_dask_itself():
    import dask.array as da

    model, chip = erdil2025.load_model("Llama 3 70B"), erdil2025.load_chip("H100")
    n_gpu, batch = np.geomspace(8, 900, 7), np.geomspace(1, 300, 5)
    lazy = erdil2025.token_latency(model, chip, da.from_array(n_gpu, chunks=3)[:, None], batch)
    assert isinstance(lazy, da.Array) and lazy.shape == (7, 5)
    np.testing.assert_array_equal(lazy.compute(), erdil2025.token_latency(model, chip, n_gpu[:, None], batch))
    with pytest.raises(ValueError, match="batch is -1"):
        erdil2025.token_latency(model, chip, 8, da.from_array(np.array([1.0, -1.0]))).compute()


def test_many_points_need_little_memory():
    """What is computed on the way is four blocks at most, whatever the cores: half of what all would take."""
    random = np.random.default_rng(0)
    n_gpu, batch = 2 ** random.uniform(3, 10, 10**6), 2 ** random.uniform(0, 10, 10**6)
    tracemalloc.start()
    erdil2025.token_latency(
        erdil2025.load_model("Llama 3 70B"), erdil2025.load_chip("H100"), n_gpu, batch, pipeline=False
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300e6, f"{peak / 1e6:.0f} MB"
