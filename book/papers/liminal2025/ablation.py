"""LIMINAL 2025: which assumption matters. Change one, and count which of the 320 printed cells survive."""

from functools import lru_cache

from book.papers.liminal2025 import cells
from book.papers.liminal2025.cells import AS_PRINTED, Reading
from inferlib.papers.liminal2025 import equations as model
from inferlib.papers.liminal2025.equations import PRINTED, Assumptions
from inferlib.units import factor


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
    """Return the paper's set, and every reading tried, each with one change: (topic, change) to Reading."""
    ns, gb, tb = factor("ns"), factor("GB"), factor("TB/s")
    tried = {
        "numbers": {
            "16-bit weights": {"weight_bytes": 2.0},
            "16-bit cache": {"cache_bytes": 2.0},
            "16-bit weights and cache": {"weight_bytes": 2.0, "cache_bytes": 2.0},
            "4-bit weights": {"weight_bytes": 0.5},
        },
        "units": {
            "decimal GB": {"gb": gb},
            "decimal TB/s": {"tb_per_s": tb},
            "decimal K in contexts": {"kilotoken": 1000.0},
            "binary PFLOPS": {"pflops": 2.0**50},
            "everything decimal": {"gb": gb, "tb_per_s": tb, "kilotoken": 1000.0},
        },
        "weights": {
            "output head read": {"counting": counting(keep=("head",))},
            "head and embedding": {"counting": counting(keep=("head", "embedding"))},
            "norms and biases": {"counting": counting(keep=("norms", "biases", "expert biases"))},
        },
        "experts": {
            "routers counted": {"counting": counting(model.without_routers)},
            "shared experts read": {"counting": counting(model.shared_unread)},
            "one evaluation an expert in equation 6": {
                "equations": ((model.expert_evaluations, one_for_each_expert),)
            },
        },
        "latent attention": {
            "low-rank matrices": {"counting": counting(model.multiplied_out)},
            "values over the latent alone": {"counting": counting(model.values_over_keys)},
            "2 collectives": {"latent_collectives": 2.0},
        },
        "local attention": {"windows and chunks": {"counting": counting(model.whole_contexts)}},
        "arithmetic": {
            "1 scalar operation a score": {"scalar_ops": 1.0},
            "5 scalar operations a score": {"scalar_ops": 5.0},
        },
        "latency": {
            "1 us means 1000 ns at TP128": with_latencies(at_128=factor("us")),
            "438 ns means 438.0 at TP8": with_latencies(at_8=438 * ns),
            "decimal links": {"link": 50 * factor("GB/s")},
            "payload crosses one link": {"crossings": 1.0},
            "nothing on the chip": {"on_chip": 0.0},
        },
        "collectives": {
            "1 in attention on any number of chips": {"beyond_heads": 1.0},
            "2 in attention beyond the heads": {"beyond_heads": 2.0},
            "2 in a dense block": {"dense_collectives": 2.0},
            "1 in a mixture of experts": {"moe_collectives": 1.0},
        },
        "pipeline": {
            "no latency between stages": {"t_stage": 0.0},
            "200 ns between stages": {"t_stage": 200 * ns},
            "a hop for every stage (equation 4)": {"free_stages": 0.0},
            "SRAM in one stage": {"stage_per_layer": False},
        },
        "batch": {"batches of 128 at most": {"batch_limit": 128.0}},
        "all at once": {
            "released architectures (corrected)": {"counting": Assumptions.corrected().counting},
            "and head, norms, embedding (complete)": {"counting": Assumptions.complete().counting},
        },
    }
    changed = {(about, n): Reading.changed(**c) for about, more in tried.items() for n, c in more.items()}
    return {("", "as printed"): AS_PRINTED} | changed


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
