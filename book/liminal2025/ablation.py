"""LIMINAL 2025: which assumption matters. Change one, and count which of the 320 printed cells survive."""

from dataclasses import dataclass
from functools import lru_cache

from book.liminal2025 import cells
from inferlib.papers.liminal2025 import equations as model
from inferlib.papers.liminal2025.records import PRINTED, Assumptions
from inferlib.units import factor


@dataclass(frozen=True)
class Variant:
    """One changed assumption: what it is about, what is changed, and the fields of Assumptions that say so."""

    about: str
    change: str
    fields: tuple

    def assumptions(self):
        """The record with the change."""
        return PRINTED.replace(**dict(self.fields))


def _variant(about, change, **fields):
    return Variant(about, change, tuple(fields.items()))


def with_latencies(at_8, at_128):
    """The fields that make a collective take these seconds on 8 and on 128 chips.

    Two numbers settle the straight line in n that :func:`inferlib.papers.liminal2025.collective_latency` is.

    Parameters
    ----------
    at_8, at_128 : float

    Returns
    -------
    dict
    """
    slope = (at_128 - at_8) / (128 - 8)
    crossings = slope * PRINTED.radix * PRINTED.link / PRINTED.payload
    return {"on_chip": at_8 - 8 * slope - PRINTED.switch, "crossings": crossings}


def _exactly(**seconds):
    known = {"at_8": model.collective_latency(8), "at_128": model.collective_latency(128)}
    return with_latencies(**(known | seconds))


@lru_cache(maxsize=1)
def variants():
    """The readings tried, each one change away from the paper's set.

    Returns
    -------
    tuple of Variant
    """
    ns, gb, tb = factor("ns"), factor("GB"), factor("TB/s")
    return (
        _variant("numbers", "16-bit weights", weight_bytes=2.0),
        _variant("numbers", "16-bit cache", cache_bytes=2.0),
        _variant("numbers", "16-bit weights and cache", weight_bytes=2.0, cache_bytes=2.0),
        _variant("numbers", "4-bit weights", weight_bytes=0.5),
        _variant("units", "decimal GB", gb=gb),
        _variant("units", "decimal TB/s", tb_per_s=tb),
        _variant("units", "decimal K in contexts", kilotoken=1000.0),
        _variant("units", "binary PFLOPS", pflops=2.0**50),
        _variant("units", "everything decimal", gb=gb, tb_per_s=tb, kilotoken=1000.0),
        _variant("weights", "input embedding stored", embeddings=True),
        _variant("weights", "output head read", head=True),
        _variant("weights", "head and embedding", head=True, embeddings=True),
        _variant("weights", "norms and biases", vectors=True),
        _variant("experts", "routers counted", router=True),
        _variant("experts", "shared experts read", read_shared=True),
        _variant("experts", "one evaluation an expert in equation 6", distinct_flops=True),
        _variant("experts", "experts drawn with replacement", replacement=True),
        _variant("latent attention", "low-rank matrices", fused_latent=False),
        _variant("latent attention", "values over the latent alone", wide_values=False),
        _variant("latent attention", "2 collectives", latent_collectives=2.0),
        _variant("local attention", "windows and chunks", local_attention=True),
        _variant("arithmetic", "1 scalar operation a score", scalar_ops=1.0),
        _variant("arithmetic", "5 scalar operations a score", scalar_ops=5.0),
        _variant("latency", "1 us means 1000 ns at TP128", **_exactly(at_128=factor("us"))),
        _variant("latency", "438 ns means 438.0 at TP8", **_exactly(at_8=438 * ns)),
        _variant("latency", "decimal links", link=50 * factor("GB/s")),
        _variant("latency", "payload crosses one link", crossings=1.0),
        _variant("latency", "nothing on the chip", on_chip=0.0),
        _variant("collectives", "1 in attention on any number of chips", beyond_heads=1.0),
        _variant("collectives", "2 in attention beyond the heads", beyond_heads=2.0),
        _variant("collectives", "2 in a dense block", dense_collectives=2.0),
        _variant("collectives", "1 in a mixture of experts", moe_collectives=1.0),
        _variant("pipeline", "no latency between stages", t_stage=0.0),
        _variant("pipeline", "200 ns between stages", t_stage=200 * ns),
        _variant("pipeline", "a hop for every stage (equation 4)", free_stages=0.0),
        _variant("pipeline", "SRAM in one stage", stage_per_layer=False),
        _variant("batch", "batches of 128 at most", batch_limit=128.0),
        Variant("all at once", "released architectures (corrected)", _changed(Assumptions.corrected())),
        Variant("all at once", "and head, norms, embedding (complete)", _changed(Assumptions.complete())),
    )


def _changed(other):
    return tuple((name, value) for name, value in vars(other).items() if value != getattr(PRINTED, name))


@lru_cache(maxsize=1)
def survey():
    """Which cell prints as printed under which reading.

    Returns
    -------
    xarray.DataArray
        True where the text of the cell is the printed one, over ``change`` (the first is ``"as printed"``) and
        ``cell``, with coordinates ``artefact``, ``row`` and ``column`` of the cell, ``about`` of the change.
    """
    import xarray as xr

    printed = cells.printed_cells()
    readings = [("", "as printed", PRINTED)]
    readings += [(v.about, v.change, v.assumptions()) for v in variants()]
    same = []
    for _, _, assumptions in readings:
        ours = cells.computed_cells(assumptions)
        same.append([ours[place] == text for place, text in printed.items()])
    places = list(zip(*printed, strict=True))
    names = ("artefact", "row", "column")
    coordinates = {name: ("cell", list(values)) for name, values in zip(names, places, strict=True)}
    return xr.DataArray(
        same,
        dims=("change", "cell"),
        coords={
            "change": [change for _, change, _ in readings],
            "about": ("change", [about for about, _, _ in readings]),
            **coordinates,
        },
        name="as printed",
    )


def survivors(assumptions):
    """Cells that print as printed under any assumptions.

    Parameters
    ----------
    assumptions : Assumptions

    Returns
    -------
    int

    Examples
    --------
    >>> survivors(PRINTED)
    306
    """
    ours = cells.computed_cells(assumptions)
    return sum(ours[place] == text for place, text in cells.printed_cells().items())


def table():
    """How many cells survive each change, in all and by table.

    Returns
    -------
    pandas.DataFrame
        Columns ``about``, ``change``, ``survive`` and one for each table.
    """
    import pandas as pd

    found = survey()
    by_table = {
        artefact: found.sel(cell=found.artefact == artefact).sum("cell").values for artefact in cells.TABLES
    }
    frame = {"about": found.about.values, "change": found.change.values, "survive": found.sum("cell").values}
    return pd.DataFrame(frame | by_table)


def feasible(change, low, high, start=None, steps=30):
    """The interval of one number within which no cell is lost that prints as printed.

    Parameters
    ----------
    change : str or callable
        A number of Assumptions, or a function of the number that returns fields to change.
    low, high : float
        Where to stop looking; both ends must lose a cell.
    start : float, optional
        The paper's number; the field's default when not given.
    steps : int
        Halvings of the interval.

    Returns
    -------
    tuple of float

    Raises
    ------
    ValueError
        If an end loses nothing.
    """
    fields = change if callable(change) else (lambda value: {change: value})
    at, most, ends = (getattr(PRINTED, change) if start is None else start, survivors(PRINTED), [])

    def kept(value):
        return survivors(PRINTED.replace(**fields(value))) >= most

    for outside in (low, high):
        if kept(outside):
            raise ValueError(f"{outside:g} loses no cell: look further out")
        good, bad = at, outside
        for _ in range(steps):
            middle = (good + bad) / 2
            good, bad = (middle, bad) if kept(middle) else (good, middle)
        ends.append(good)
    return tuple(ends)


def intervals():
    """How sharply the printed digits settle the numbers of the paper's set, one at a time.

    Returns
    -------
    pandas.DataFrame
        ``low`` and ``high`` of each number, in the unit named, beside the ``used`` one; six digits, as text.
    """
    import pandas as pd

    ns = factor("ns")
    at_8, at_128 = model.collective_latency(8), model.collective_latency(128)
    asked = {
        "a TB/s (GB/s)": ("tb_per_s", 1.0e12, 1.2e12, None, 1e9),
        "a GB (MB)": ("gb", 1.0e9, 1.15e9, None, 1e6),
        "a PFLOPS (TFLOP/s)": ("pflops", 0.9e15, 1.1e15, None, 1e12),
        "a collective at TP128 (ns)": (
            lambda t: _exactly(at_128=t),
            0.95 * at_128,
            1.05 * at_128,
            at_128,
            ns,
        ),
        "a collective at TP8 (ns)": (lambda t: _exactly(at_8=t), 0.95 * at_8, 1.05 * at_8, at_8, ns),
        "from layer to layer on SRAM (ns)": ("t_stage", 90 * ns, 110 * ns, None, ns),
    }
    rows = []
    for name, (change, low, high, start, unit) in asked.items():
        used = getattr(PRINTED, change) if start is None else start
        ends = feasible(change, low, high, start, steps=14)
        rows.append((name, *(f"{value / unit:.6g}" for value in (ends[0], used, ends[1]))))
    return pd.DataFrame(rows, columns=["number", "low", "used", "high"])
