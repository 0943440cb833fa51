"""LIMINAL 2025: what a larger batch buys and costs (section 4.6 and Figure 3).

Along one curve of the figure the power of a chip is constant, so gains in STPS/W are gains in STPS, and need no
watt. Between chips they need the watts of the memories, which the paper does not print.
"""

import numpy as np
import xarray as xr

from book.audit.grading import published
from book.frames import frame
from book.papers.liminal2025.cells import AS_PRINTED, MANY, large
from inferlib import validation
from inferlib.papers import liminal2025 as model
from inferlib.papers.liminal2025 import XPU, load_chip, load_model
from inferlib.papers.liminal2025.records import equation

PICOJOULE = 8e-12  # joule a byte, of one picojoule a bit
# What moving one bit may take, in any of the paper's memories: from nothing to about three times what is
# reported for HBM2. Our own bracket, since the paper prints no watts. In joule a byte.
ENERGIES = (0.0, 10 * PICOJOULE)


@equation(unit="W", energy="W*s/B")
def memory_power(chip: XPU, energy):
    """Watts of one chip's memory while it delivers its full bandwidth."""
    return chip.bandwidth * energy


def sweep(name, memory, context, n=MANY):
    """Speed of users and system over the batch, as far as memory reaches."""
    app, chip = load_model(name), load_chip(memory)
    stages = AS_PRINTED.stages(app, memory)
    # A pipeline of P stages holds P batches, and each stage its share of weights and caches.
    whole = model.largest_batch(app, chip.replace(capacity=chip.capacity * stages), context, n)
    largest = int((whole or 0) // stages)
    if not largest:
        raise ValueError(f"{name} with {context:g} tokens does not fit into {n} {memory} chips")
    batches = sorted({*(2**k for k in range(int(np.log2(largest)) + 1)), largest})
    axis = xr.DataArray(batches, dims="batch")
    at = (app, chip, axis.assign_coords(batch=axis), context, n, stages, model.collective_latency(n))
    found = xr.Dataset({"utps": model.user_speed(*at), "stps": model.system_speed(*at)})
    return found.assign_attrs(stages=stages)


def marker(name, memory, context, loss=0.1, beyond=False):
    """The marker of Figure 3: the largest power of two of a batch that costs no more than ``loss`` of UTPS.

    Examples
    --------
    >>> batch, gain = marker("DeepSeekV3", "3D-DRAM", 32 * 1024)
    >>> batch, round(gain, 2)
    (8, 7.27)
    """
    validation.number("loss", loss, maximum=1)
    swept = sweep(name, memory, context)
    swept = swept.sel(batch=[b for b in swept.batch.values if b & (b - 1) == 0])
    kept = swept.utps >= (1 - loss) * swept.utps[0]
    chosen = swept.where(~kept if beyond else kept, drop=True)
    if not chosen.batch.size:
        raise ValueError(f"no batch of {name} that fits loses more than {loss:.0%}")
    at = chosen.isel(batch=0 if beyond else -1)
    return int(at.batch), float(at.stps / swept.stps[0])


def quoted():
    """Model to the gain that section 4.6 quotes for 3D-DRAM."""
    at = ("Text 4.6", "gain in STPS/W on 3D-DRAM")
    return {r.column: r.value for r in published("liminal2025").values() if (r.artefact, r.row) == at}


@frame()
def markers(contexts):
    """The gains that section 4.6 quotes for 3D-DRAM, at several contexts."""
    for name in large():
        row = {"model": name}
        for k in contexts:
            row[f"batch at {k}K"], row[f"gain at {k}K"] = marker(name, "3D-DRAM", k * AS_PRINTED.kilotoken)
        yield row


def best_context(read):
    """How far the three quoted gains are missed at each context: the largest relative miss of the three."""
    missed = {}
    for k in (4, 8, 16, 24, 32, 48, 64, 128):
        gains = {name: marker(name, "3D-DRAM", k * AS_PRINTED.kilotoken)[1] for name in quoted()}
        missed[k] = max(abs(gain / read(name) - 1) for name, gain in gains.items())
    return missed


def break_even_power(name, better, worse, context=128 * 1024):
    """How many times the watts of a ``worse`` chip a ``better`` one may draw and still win in STPS/W."""
    speeds = [float(sweep(name, memory, context).stps.max()) for memory in (better, worse)]
    return speeds[0] / speeds[1]


def break_even_energy(name, better, worse, context=128 * 1024):
    """Joule per byte at which two chips are equally efficient, if both memories take the same; or None.

    Above it the chip with the slower memory wins.
    """
    ratio = break_even_power(name, better, worse, context)
    # P0 + a e = ratio (P0 + b e)
    slope = load_chip(better).bandwidth - ratio * load_chip(worse).bandwidth
    energy = (ratio - 1) * model.chip_power(0) / slope
    return energy if energy > 0 else None
