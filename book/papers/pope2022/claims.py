"""Pope et al. 2022: its abstract, conclusions and captions, and sentences that need a charitable reading."""

import math

from book.audit.grading import format_items, reproduces
from book.papers.pope2022 import benchmarks, curves, evidence, figures
from book.papers.pope2022.benchmarks import TABLES, printed_time
from book.papers.pope2022.evidence import SLICE, TPU
from book.papers.pope2022.text import LL
from inferlib.papers import pope2022 as pope

PHASES = ("prefill", "decode")
BATCH, CONTEXT = 512, 2048  # the case to which sections 2 and 3 return


@reproduces("Abstract")
def abstract(holds):
    beaten = {}
    for table in TABLES:
        rows = benchmarks.totals(table)
        theirs = rows[rows.column.str.startswith("FT")]
        ours = rows[~rows.column.str.startswith("FT")]
        under = [((ours.time <= r.time) & (ours.printed >= r.printed)).any() for r in theirs.itertuples()]
        beaten[table] = sum(under), len(under)
    holds(
        "a new Pareto frontier that outperforms FasterTransformer",
        beaten["Table D.3"][0] == beaten["Table D.3"][1],
        "results of FasterTransformer at or behind one of this paper: "
        + ", ".join(f"{some} of {every} in {table}" for table, (some, every) in beaten.items()),
        fair="in the benchmark that Figure 9 shows, Table D.3",
    )


@reproduces("Text 2")
def costs(holds):
    model = evidence.palm()
    held = {
        "multihead": pope.cache_over_heads(pope.multihead(model), SLICE, BATCH, CONTEXT),
        "multiquery over the batch": pope.cache_over_batch(model, SLICE, BATCH, CONTEXT),
    }
    weights = pope.weights_on_chip(model, SLICE)
    times = ", ".join(f"{name} {1e3 * pope.memory_time(TPU, size):.1f} ms" for name, size in held.items())
    holds(
        "loading the cache takes longest at 2048 tokens and a batch of 512",
        lambda read: pope.memory_time(TPU, held["multihead"]) > pope.memory_time(TPU, weights),
        f"weights {1e3 * pope.memory_time(TPU, weights):.1f} ms, {times}",
        fair="for multihead attention, which section 2.1 discusses next",
    )


@reproduces("Text 3.2.2")
def two_dimensions(holds):
    four = pope.load_model("PaLM 540B")
    narrow = four.replace(d_ff=2 * four.d_model)
    holds(
        "2D beats 1D when the root of the chips exceeds F/E",
        lambda read: math.isclose(pope.printed_break_even(four), pope.break_even(four)),
        f"at F = 2E it says {pope.printed_break_even(narrow):g} chips, the paper's own costs "
        f"{pope.break_even(narrow):g}",
        fair="at F = 4E, which the next sentence and all formulas of the section take",
    )


@reproduces("Text 3.3")
def attention(holds):
    model = evidence.palm()
    prefills = [e for e in pope.STATED["configurations"] if "prefill" in e["row"]]
    other = [f"{e['table']}, {e['row']}" for e in prefills if e["attention"] != "Head"]
    holds(
        "prefill uses the layout over heads",
        all(e["attention"] == "Head" for e in prefills if e["layout"].startswith("WS")),
        f"over the batch in {' and '.join(other)}",
        fair="where the weights stay, of which this section speaks",
    )
    shared, own = (
        2 * CONTEXT * m.kv_heads / (m.heads + 2 * m.kv_heads) for m in (model, pope.multihead(model))
    )
    holds(
        "the cache is orders of magnitude larger than Q, K and V",
        round(math.log10(shared)) >= 2,
        f"at {CONTEXT} tokens {shared:.0f} times with one shared head, {own:.0f} with multihead attention",
        fair="rounded to whole orders, two",
    )


@reproduces("Figure 8")
def longest_contexts(read, holds):
    model, share = evidence.palm(), read("memory kept for the cache", artefact="Table 1")
    longest = {
        name: pope.context_over_heads(m, TPU, SLICE, read("batch"), share)
        for name, m in (("multihead", pope.multihead(model)), ("baseline", model))
    }
    told = format_items(longest, "{} up to {:.0f}")
    following = min(n for n in figures.CONTEXTS if n > read("longest context that fits"))
    holds(
        "beyond 512 tokens neither multihead nor the baseline fits",
        max(longest.values()) < following,
        f"{told} tokens; the authors' code plots 512, then {following}",
        fair="of the lengths plotted",
    )


@reproduces("Text 4.4")
def end_to_end(holds):
    rises = {}
    for table in TABLES:
        times = [printed_time(table, "PaLM generate", b) for b in (4, 8, 16, 32, 64)]
        rises[table] = times[-1] / min(times) - 1
    holds(
        "a batch of 64 hardly costs latency in generation",
        max(rises.values()) < 0.1 * (64 / 8 - 1),
        f"over the fastest batch: {format_items(rises, '{1:+.0%} in {0}')}",
        fair="beside the eightfold tokens: latency rises by under a tenth of what throughput does",
    )


@reproduces("Text 7")
def conclusions(read, holds):
    total = sum(read(f"{LL} {p}", "latency", "Table 2") for p in PHASES)
    holds(
        "latency targets of 500B models are of the order of seconds (1 to 10)",
        lambda read: 1 <= sum(read(f"{LL} {p}", "latency", "Table 2") for p in PHASES) <= 10,
        f"{total:.2f} s in the low-latency configurations of Table 2",
    )
    steps = curves.runs("decode").query("model == 'PaLM 540B' and format == 'int8' and batch == 1")
    times = 1e3 * steps.set_index("chips").time
    holds(
        "the best latencies are reached on 64 or more chips",
        times.idxmin() >= 64,
        f"by the two-constant model, which has no time per hop: {format_items(times, '{1:.1f} ms on {0}')}",
    )
