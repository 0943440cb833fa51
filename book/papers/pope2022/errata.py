"""Pope et al. 2022: the numbers that ``errata.toml`` names in braces."""

import math

from book.audit.grading import published
from book.papers.pope2022 import benchmarks, evidence
from book.papers.pope2022.benchmarks import TABLES, batches, printed_time, utilisation
from book.papers.pope2022.evidence import SLICE
from inferlib.papers import pope2022 as pope

LAST = "Table D.4"


def columns():
    """The two columns of totals of Table D.4."""
    check, read = benchmarks.column_check().set_index("table"), benchmarks.open_reader(LAST)
    used = [
        utilisation(read, LAST, "PaLM total", b, printed_time(LAST, "MT-NLG total", b))
        for b in batches(LAST, "PaLM total")
    ]

    def faster(table, one, other):
        return sum(printed_time(table, one, b) < printed_time(table, other, b) for b in batches(table, one))

    return {
        "sum_rows": check.loc[LAST, "rows"],
        "sum_other": check.loc[LAST, "sum = MT-NLG total"],
        "sum_own": check.loc[LAST, "sum = PaLM total"],
        "sum_before": check["sum = PaLM total"].sum(),
        "palm_mfu": ", ".join(f"{100 * share:.0f}" for share in used),
        "palm_128": used[batches(LAST, "PaLM total").index(128)],
        "faster_d4": faster(LAST, "PaLM total", "MT-NLG total"),
        "faster_before": sum(faster(t, "MT-NLG total", "PaLM total") for t in TABLES[:2]),
    }


def criteria():
    """When 2D beats 1D, and what the formulas of communication leave out."""
    four, model, mesh = pope.load_model("PaLM 540B"), evidence.palm(), pope.load_mesh(SLICE)
    wide = four.replace(d_ff=2 * four.d_model)
    whole = pope.PRINTED.replace(whole_layer=True)
    return {
        "even": pope.break_even(four),
        "wide_printed": pope.printed_break_even(wide),
        "wide_even": pope.break_even(wide),
        "whole_2d": pope.ws2d_volume(model, mesh, 1, whole) / pope.ws2d_volume(model, mesh, 1) - 1,
        "whole_x": pope.best_x(model, mesh.chips, whole),
        "printed_x": pope.best_x(model, mesh.chips),
        "whole_even": pope.break_even(model, whole),
        "printed_xy": pope.switches(model, mesh)["WG X to WG XY"],
        "whole_xy": pope.switches(model, mesh, pope.CORRECTED)["WG X to WG XY"],
    }


def caches():
    """The share of attention in section 4.2."""
    model = evidence.palm()
    cache, weights = pope.cache_over_batch(model, SLICE, 128, 32768), pope.weights_on_chip(model, SLICE)
    steps = [printed_time(LAST, "PaLM generate", b) for b in (512, 128)]
    return {
        "steps_apart": evidence.apart(),
        "steps_known": steps[0] / steps[1],
        "traffic": cache / (cache + weights),
    }


def growth():
    """The law of section 4.4, by what Erdil 2025 reads off the figure."""
    read = published("erdil2025")

    def power(*names):
        small, large = (
            [math.log(read["Text 2.2.3", name, what].value) for what in ("latency", "parameters")]
            for name in names
        )
        return (large[0] - small[0]) / (large[1] - small[1])

    return {"read_two": power("PaLM 62B", "PaLM 540B"), "read_all": power("PaLM 8B", "PaLM 540B")}
