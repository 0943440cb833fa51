"""LIMINAL 2025: what a larger batch buys and costs (section 4.6 and Figure 3).

Along one curve of the figure the power of a chip is constant, so gains in STPS/W are gains in STPS, and need no
watt. Between chips they need the watts of the memories, which the paper does not print.
"""

import numpy as np

from inferlib import checks
from inferlib.papers.liminal2025 import equations as model
from inferlib.papers.liminal2025.records import (
    PRINTED,
    XPU,
    Assumptions,
    equation,
    load_chip,
    load_model,
)

LOSS = 0.1  # of UTPS, where the markers of Figure 3 stand
# What moving one bit may take, in any of the paper's memories: from nothing to about three times what is
# reported for HBM2. Our own bracket, since the paper prints no watts.
PICOJOULE_PER_BIT = (0.0, 10.0)


@equation(unit="W", energy="W*s/B")
def memory_power(chip: XPU, energy, assumptions: Assumptions = PRINTED):
    """Watts of one chip's memory while it delivers its full bandwidth.

    Parameters
    ----------
    chip : XPU
    energy : float or array
        Joule for each byte moved.
    assumptions : Assumptions

    Returns
    -------
    same kind as ``energy``
        Not in the paper, which estimates memory power and does not print it.
    """
    return chip.bandwidth * energy


def energies():
    """The bracket of :data:`PICOJOULE_PER_BIT` in joule per byte."""
    return tuple(8e-12 * e for e in PICOJOULE_PER_BIT)


def sweep(name, memory, context, n=128, t_tp=None, assumptions=PRINTED, batches=None):
    """Speed of users and system over the batch, as far as memory reaches.

    Parameters
    ----------
    name, memory : str
        Model and chip of the paper.
    context : float
        Tokens.
    n : int
        Chips.
    t_tp : float, optional
        Seconds of a collective; the achievable one for n chips when not given.
    assumptions : Assumptions
    batches : sequence of int, optional
        Those that fit are swept.

    Returns
    -------
    xarray.Dataset
        ``utps`` and ``stps`` over ``batch``: when not given 1, 2, 4, ... and the largest that fits.
        The SRAM system has a stage for each layer, and each stage a batch.

    Raises
    ------
    ValueError
        If not even one sequence fits.
    """
    import xarray as xr

    app, chip = (load_model(name, assumptions), load_chip(memory, assumptions))
    stages = model.stages_of(app, chip, assumptions)
    largest = _largest(app, chip, context, n, stages, assumptions)
    if largest is None:
        raise ValueError(f"{name} with {context:g} tokens does not fit into {n} {memory} chips")
    if batches is None:
        batches = sorted({*(2**k for k in range(int(np.log2(largest)) + 1)), largest})
    axis = xr.DataArray([b for b in batches if b <= largest], dims="batch")
    t_tp = model.collective_latency(n, assumptions) if t_tp is None else t_tp
    at = (app, chip, axis.assign_coords(batch=axis), context, n, stages, t_tp, assumptions)
    return xr.Dataset({"utps": model.user_speed(*at), "stps": model.system_speed(*at)}).assign_attrs(
        stages=stages
    )


def _largest(app, chip, context, n, stages, assumptions):
    # A pipeline of P stages holds P batches, and each stage its share of weights and caches.
    whole = chip.replace(capacity=chip.capacity * stages)
    fitting = model.largest_batch(app, whole, context, n, assumptions)
    return None if fitting is None or fitting < stages else int(fitting // stages)


def marker(
    name, memory, context, n=128, t_tp=None, loss=LOSS, assumptions=PRINTED, whole=False, beyond=False
):
    """The marker of Figure 3: the largest power of two of a batch that costs no more than ``loss`` of UTPS.

    Parameters
    ----------
    name, memory, context, n, t_tp, assumptions
        As for :func:`sweep`.
    loss : float
        Part of the speed at batch 1 that may be lost.
    whole : bool
        Any whole batch up to 512 instead of powers of two.
    beyond : bool
        The first batch that loses more, instead of the last that does not.

    Returns
    -------
    batch : int
    gain : float
        STPS, and so STPS/W, over that at batch 1.

    Raises
    ------
    ValueError
        If no batch that fits loses more, and ``beyond`` asks for one.

    Examples
    --------
    >>> batch, gain = marker("DeepSeekV3", "3D-DRAM", 32 * 1024)
    >>> batch, round(gain, 2)
    (8, 7.27)
    """
    checks.number("loss", loss, maximum=1)
    swept = sweep(name, memory, context, n, t_tp, assumptions, range(1, 513) if whole else None)
    if not whole:
        swept = swept.sel(batch=[b for b in swept.batch.values if b & (b - 1) == 0])
    kept = swept.utps >= (1 - loss) * swept.utps[0]
    chosen = swept.where(~kept if beyond else kept, drop=True)
    if not chosen.batch.size:
        raise ValueError(f"no batch of {name} that fits loses more than {loss:.0%}")
    at = chosen.isel(batch=0 if beyond else -1)
    return int(at.batch), float(at.stps / swept.stps[0])


def markers(contexts=(4, 32, 128), memory="3D-DRAM"):
    """The gains that section 4.6 quotes, at several contexts.

    Parameters
    ----------
    contexts : tuple of int
        In the paper's K.
    memory : str

    Returns
    -------
    pandas.DataFrame
        One row a model; for each context ``"batch at 4K"`` and ``"gain at 4K"``.
    """
    import pandas as pd

    from book.liminal2025.cells import large

    rows = []
    for name in large():
        row = {"model": name}
        for k in contexts:
            row[f"batch at {k}K"], row[f"gain at {k}K"] = marker(name, memory, k * PRINTED.kilotoken)
        rows.append(row)
    return pd.DataFrame(rows)


def best_context(
    read, names=("Qwen3-30B", "DeepSeekV3", "Kimi-K2"), contexts=(4, 8, 16, 24, 32, 48, 64, 128)
):
    """How far the three quoted gains are missed at each context: the largest relative miss of the three.

    Parameters
    ----------
    read : callable
        Model to the gain printed for it.
    names : tuple of str
    contexts : tuple of int
        In the paper's K.

    Returns
    -------
    dict
        Context (K) to the largest relative miss.
    """
    missed = {}
    for k in contexts:
        gains = {name: marker(name, "3D-DRAM", k * PRINTED.kilotoken)[1] for name in names}
        missed[k] = max(abs(gains[name] / read(name) - 1) for name in names)
    return missed


def best_efficiency(name, memory, context, energy):
    """The largest STPS/W that a system of 128 chips reaches with any batch that fits.

    Parameters
    ----------
    name, memory, context
        As for :func:`sweep`.
    energy : float
        Joule per byte that the memory moves.

    Returns
    -------
    float
        Tokens per second and watt, that is tokens per joule.
    """
    swept, chip = sweep(name, memory, context), load_chip(memory)
    watts = memory_power(chip, energy)
    return float(model.power_efficiency(swept.stps, 128, swept.attrs["stages"], watts).max())


def break_even_power(name, better, worse, context=128 * 1024):
    """How many times the watts of a ``worse`` chip a ``better`` one may draw and still win in STPS/W.

    Returns
    -------
    float
    """
    speeds = [float(sweep(name, memory, context).stps.max()) for memory in (better, worse)]
    return speeds[0] / speeds[1]


def break_even_energy(name, better, worse, context=128 * 1024):
    """Joule per byte at which two chips are equally efficient, if both memories take the same; or None.

    Above it the chip with the slower memory wins.
    """
    ratio, chips = (break_even_power(name, better, worse, context), [load_chip(better), load_chip(worse)])
    # P0 + a e = ratio (P0 + b e)
    slope = chips[0].bandwidth - ratio * chips[1].bandwidth
    energy = (ratio - 1) * model.chip_power(0) / slope
    return energy if energy > 0 else None
