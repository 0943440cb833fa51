"""LIMINAL 2025: which assumption matters. Change one, and count which of the 320 printed cells survive."""

from functools import cache

from book import stored
from book.papers.liminal2025 import cells
from book.papers.liminal2025.cells import AS_PRINTED, FEW, MANY, Reading
from inferlib.papers import liminal2025 as model
from inferlib.papers.liminal2025 import PRINTED, Assumptions


def counted(*names):
    """Return the change that counts operators which the paper leaves out."""
    return {"left_out": tuple(name for name in PRINTED.left_out if name not in names)}


def one_for_each_expert(application, batch):
    """Evaluations of an expert if equation 6 means the arithmetic of a single token."""
    return model.active_experts(application, batch)


def with_latencies(at_8=None, at_128=None):
    """Return the fields that make a collective take these seconds on 8 and on 128 chips, or the one that is given.

    Two numbers determine the straight line in n of :func:`inferlib.papers.liminal2025.collective_latency`.
    """
    at_8, at_128 = at_8 or model.collective_latency(FEW), at_128 or model.collective_latency(MANY)
    slope = (at_128 - at_8) / (MANY - FEW)
    crossings = slope * PRINTED.radix * PRINTED.link / PRINTED.payload
    return {"on_chip": at_8 - 8 * slope - PRINTED.switch, "crossings": crossings}


@cache
def readings():
    """The paper's set, then every reading tried, each one change away from it: (subject, change) to Reading."""
    tried = stored.toml("papers/liminal2025/readings.toml")
    changed = {(about, name): _changed(**how) for about, more in tried.items() for name, how in more.items()}
    return {("", "as printed"): AS_PRINTED} | changed


def _changed(keep=(), assumed=None, latencies=None, single=False, **changes):
    """A reading as ``readings.toml`` states it."""
    if assumed:
        return Reading(getattr(Assumptions, assumed)())
    if keep:
        changes |= counted(*keep)
    if single:
        changes["equations"] = ((model.expert_evaluations, one_for_each_expert),)
    return Reading.changed(**changes, **with_latencies(**latencies) if latencies else {})


def survivors(**changes):
    """Return the cells that come out as printed under changes of the paper's set.

    Examples
    --------
    >>> survivors()
    306
    """
    return kept_by(Reading.changed(**changes))


def kept_by(reading):
    """Return the cells that come out as printed under a reading."""
    ours = cells.computed_cells(reading)
    return sum(ours[place] == text for place, text in cells.printed_cells().items())
