"""LIMINAL 2025: which assumption matters. Change one, and count which of the 320 printed cells survive."""

from functools import lru_cache

from book import stored
from book.papers.liminal2025 import cells
from book.papers.liminal2025.cells import AS_PRINTED, Reading
from inferlib.papers.liminal2025 import equations as model
from inferlib.papers.liminal2025.equations import PRINTED, Assumptions


def counting(*dropped, keep=()):
    """Variants of the paper's counting: without some of its readings, or with operators that it leaves out."""
    kept = [reading for reading in PRINTED.counting if reading not in dropped]
    if keep:
        kept = [_keeping(keep) if reading is model.matrices_only else reading for reading in kept]
    return tuple(kept)


@lru_cache
def _keeping(names):
    return lambda op: op if op.name in names else model.matrices_only(op)


def one_for_each_expert(application, batch, assumptions):
    """Evaluations of an expert if equation 6 means the arithmetic of a single token."""
    return model.active_experts(application, batch, assumptions)


def with_latencies(at_8=None, at_128=None):
    """Return the fields that make a collective take these seconds on 8 and on 128 chips, or the one that is given.

    Two numbers determine the straight line in n of :func:`inferlib.papers.liminal2025.collective_latency`.
    """
    at_8, at_128 = at_8 or model.collective_latency(8), at_128 or model.collective_latency(128)
    slope = (at_128 - at_8) / (128 - 8)
    crossings = slope * PRINTED.radix * PRINTED.link / PRINTED.payload
    return {"on_chip": at_8 - 8 * slope - PRINTED.switch, "crossings": crossings}


@lru_cache(maxsize=1)
def readings():
    """The paper's set, then every reading tried, each one change away from it: (subject, change) to Reading."""
    tried = stored.toml("papers/liminal2025/readings.toml")
    changed = {(about, name): _changed(**how) for about, more in tried.items() for name, how in more.items()}
    return {("", "as printed"): AS_PRINTED} | changed


def _changed(drop=(), keep=(), assumed=None, latencies=None, single=False, **changes):
    """A reading as ``readings.toml`` states it."""
    if drop or keep:
        changes["counting"] = counting(*(getattr(model, name) for name in drop), keep=tuple(keep))
    if assumed:
        changes["counting"] = getattr(Assumptions, assumed)().counting
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
