"""Pope et al. 2022: the numbers that ``errata.toml`` names in braces."""

import math

from book.audit.ledger import errata_numbers, published
from book.papers.pope2022 import benchmarks, evidence
from book.papers.pope2022.benchmarks import TABLES, batches, printed_mfu, printed_time, utilisation
from book.papers.pope2022.evidence import SLICE
from book.papers.pope2022.text import LL, attention_share, growth
from inferlib.papers import pope2022 as pope

LAST = "Table D.4"


@errata_numbers("pope2022")
def columns():
    """The two columns of totals of Table D.4."""
    check = benchmarks.column_check().set_index("table")
    doubtful = benchmarks.totals(LAST).query("column == 'MT-NLG total'").set_index("batch")
    read, rows = benchmarks.open_reader(LAST), batches(LAST, "PaLM total")
    times = {c: {b: printed_time(LAST, c, b) for b in rows} for c in ("PaLM total", "MT-NLG total")}

    palm = {b: utilisation(read, LAST, "PaLM total", b, times["MT-NLG total"][b]) for b in rows}

    def agreeing(column):
        """Cells of a column of utilisation that follow from the times printed as PaLM's."""
        found = {b: utilisation(read, LAST, column, b, times["PaLM total"][b]) for b in rows}
        return sum(abs(found[b] - printed_mfu(LAST, column, b)) <= 0.005 for b in rows)

    def faster(table, one, other):
        return sum(printed_time(table, one, b) < printed_time(table, other, b) for b in batches(table, one))

    return {
        "sum_rows": check.loc[LAST, "rows"],
        "sum_other": check.loc[LAST, "sum = MT-NLG total"],
        "sum_own": check.loc[LAST, "sum = PaLM total"],
        "sum_before": check["sum = PaLM total"].sum(),
        "palm_low": 1e3 * times["MT-NLG total"][rows[0]],
        "palm_high": 1e3 * times["MT-NLG total"][rows[-1]],
        "palm_mfu": ", ".join(f"{100 * v:.0f}" for v in palm.values()),
        "palm_128": palm[128],
        "palm_from_first": agreeing("PaLM total"),
        "megatron_from_first": agreeing("MT-NLG total"),
        "megatron_16": utilisation(read, LAST, "MT-NLG total", 16, times["PaLM total"][16]),
        "own_matches": int((abs(doubtful.exact - doubtful.printed) <= 0.005).sum()),
        "faster_d4": faster(LAST, "PaLM total", "MT-NLG total"),
        "faster_before": sum(faster(t, "MT-NLG total", "PaLM total") for t in TABLES[:2]),
    }


@errata_numbers("pope2022")
def criteria():
    """When 2D beats 1D, and what the formulas of communication leave out."""
    four, model, mesh = pope.load_model("PaLM 540B"), evidence.palm(), pope.load_mesh(SLICE)
    wide = four.replace(d_ff=2 * four.d_model)
    whole = pope.PRINTED.replace(whole_layer=True)
    real = list(pope.switches(model, mesh, pope.CORRECTED).values())
    return {
        "even": pope.break_even(four),
        "wide_printed": pope.printed_break_even(wide),
        "wide_even": pope.break_even(wide),
        "even_x2": pope.break_even_of_x(four, 2),
        "even_x4": pope.break_even_of_x(four, 4),
        "whole_2d": pope.ws2d_volume(model, mesh, 1, whole) / pope.ws2d_volume(model, mesh, 1) - 1,
        "whole_x": pope.best_x(model, mesh.chips, whole),
        "printed_x": pope.best_x(model, mesh.chips),
        "whole_even": pope.break_even(model, whole),
        "printed_xy": pope.switches(model, mesh)["WG X to WG XY"],
        "whole_xy": real[1],
        "printed_xyz": pope.switches(model, mesh)["WG XY to WG XYZ"] / 1e6,
        "whole_xyz": real[2] / 1e6,
    }


@errata_numbers("pope2022")
def caches():
    """The share of attention in section 4.2."""
    model = evidence.palm()
    cache, weights = pope.cache_over_batch(model, SLICE, 128, 32768), pope.weights_on_chip(model, SLICE)
    steps = [printed_time(LAST, "PaLM generate", b) for b in (512, 128)]
    return {
        "share_512": attention_share(512, 8192),
        "share_128": attention_share(128, 32768),
        "steps_apart": evidence.apart(),
        "steps_known": steps[0] / steps[1],
        "traffic": cache / (cache + weights),
    }


@errata_numbers("pope2022")
def growth_of_latency():
    """The one law of section 4.4, by the printed runs and by what Erdil 2025 reads off the figure."""
    read = benchmarks.open_reader("Table 2")
    of_erdil = published("erdil2025")
    names = ("8B", "62B", "540B")
    sizes, times = (
        {name: of_erdil["Text 2.2.3", f"PaLM {name}", what].value for name in names}
        for what in ("parameters", "latency")
    )

    def power(small, large):
        return math.log(times[large] / times[small]) / math.log(sizes[large] / sizes[small])

    return {
        "growth": growth(read, "decode"),
        "palm_62b": 1e3 * evidence.measured_pass("Table 3", f"{LL} decode", read("tokens of decode")),
        "palm_540b": 1e3 * read("int8, batch 64", artefact="Text 4.4"),
        "read_two": power("62B", "540B"),
        "read_all": power("8B", "540B"),
    } | {f"erdil_{name.lower()}": 1e3 * seconds for name, seconds in times.items()}
