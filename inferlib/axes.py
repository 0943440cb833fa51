"""Axes of sweeps: labelled arrays along which every equation broadcasts."""

from inferlib import validation


def axis(name, low, high=None, points=200):
    """Return the values of one axis, evenly spaced in the logarithm, as an xarray.DataArray.

    Equations broadcast by name, so two axes make a grid: ``erdil2025.toy_latency(..., axis("GPUs", 1, 1024),
    axis("batch", 1, 512), ...)``.

    ``name``: of the dimension and its coordinate. ``low``, ``high``: both ends; or ``low`` alone, a sequence of all
    values. ``points``: number of values, both ends included.

    Examples
    --------
    >>> axis("GPUs", 1, 1000, points=4).values.round(6).tolist()
    [1.0, 10.0, 100.0, 1000.0]
    >>> axis("batch", [1, 8, 64]).dims
    ('batch',)
    """
    import numpy as np

    from inferlib.optional_imports import xarray as xr

    if high is None:
        values = np.asarray(low, dtype=float)
    else:
        validation.number("low", low)
        validation.number("high", high, minimum=low)
        validation.number("points", points, minimum=2)
        values = np.geomspace(low, high, points)
    return xr.DataArray(values, coords={name: values}, dims=name, name=name)
