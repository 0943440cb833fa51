"""Pope et al. 2022, sections 4 to 7 and appendix C: what it says of its measurements."""

from functools import partial

from book.audit.ledger import claims, listed
from book.pope2022 import benchmarks, curves, evidence, figures
from book.pope2022.benchmarks import TABLES, batches, printed_time
from book.pope2022.evidence import SLICE, TPU, configuration, fitted, pass_time
from book.pope2022.tables import chosen, printed_utilisation
from book.pope2022.text import HT, LL, MESH, chip_seconds, growth
from inferlib.papers import pope2022 as pope

claims = partial(claims, "pope2022")
PHASES = ("prefill", "decode")


@claims("Abstract")
def abstract(read, holds):
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


@claims("Text 4.1")
def feedforward(read, holds):
    model, constants, batch = evidence.palm(), fitted(), read("decode", "batch")
    steps, shares = {}, {}
    for n in (64, 128, 256):
        mesh, held = pope.load_mesh(n), pope.cache_over_batch(model, n, batch, 2048)
        at = model, TPU, mesh, constants, batch, 2048, held
        steps[n] = [pope.step_time(*at, layout=name) for name in ("WS 1D", "WS 2D")]
        moved = [pope.exchange_time(model, TPU, mesh, batch, layout=name) for name in ("WS 1D", "WS 2D")]
        shares[n] = [model.layers * m / step for m, step in zip(moved, steps[n], strict=True)]
    told = (f"{n} chips {1e3 * one:.0f} and {1e3 * two:.0f} ms" for n, (one, two) in steps.items())
    holds(
        "2D is faster than 1D at batch 512 on 64 to 256 chips",
        all(two < one for one, two in steps.values()),
        f"1D and 2D by the two-constant model: {', '.join(told)}",
    )
    told = (f"{n} chips {one:.0%} and {two:.0%}" for n, (one, two) in shares.items())
    holds(
        "communication takes a larger share of a step on 256 chips than on 64",
        all(last > first for first, last in zip(shares[64], shares[256], strict=True)),
        f"1D and 2D by the two-constant model: {', '.join(told)}",
    )
    used = curves.figure_7_data(model.at("bf16"), TPU, MESH, constants)
    best = [str(used.sel(sequences=n).idxmax("layout").values) for n in (1, 512)]
    holds(
        "the fastest layout of prefill goes from 2D to weight-gathered",
        (best[0], best[1][:2]) == ("WS 2D", "WG"),
        f"by the two-constant model from {best[0]} to {best[1]}",
    )
    few, still = (float(used.sel(sequences=1, layout=name)) for name in ("WG XYZ", "WS 2D"))
    holds(
        "weight-gathered layouts are inefficient at low batch sizes",
        few < still / 2,
        f"one sequence: MFU of {few:.0%} with all weights gathered, {still:.0%} in 2D, by the two-constant model; "
        "less than half is our reading",
    )
    prefill = evidence.measured_pass("Table 2", f"{HT} prefill", 1)
    share = pope.gather_time(model, TPU, MESH) / prefill
    holds(
        "communication is almost negligible at a million tokens (under 10 % of the time)",
        share < 0.1,
        f"all weights gathered take {share:.1%} of the measured time, even if nothing hid them",
    )
    switch = pope.switch_to_x(model, MESH)
    holds(
        "in generation the batch is too small for gathered weights",
        lambda read: pope.switch_to_x(model, MESH) > read("decode", "batch"),
        f"they move less from {switch:,.0f} tokens on",
    )
    held = pope.cache_over_heads(pope.multihead(model), SLICE, 512, 2048)
    holds(
        "without multiquery attention such batches do not fit",
        held + pope.weights_on_chip(model, SLICE) > TPU.memory_capacity,
        f"{held / 2**30:.0f} GiB of cache on each chip of {TPU.memory_capacity / 2**30:.0f} GiB",
    )


@claims("Text 4.2")
def attention(read, holds):
    model = evidence.palm()
    changes = []
    for one in (model, pope.load_model("PaLM 540B")):
        own = [2 * (m.heads + m.kv_heads) * m.head_dim for m in (pope.multihead(one), one)]
        changes.append(own[0] / own[1] - 1)
    holds(
        "half the head width keeps the parameters of attention (within 3 %)",
        all(abs(change) < 0.03 for change in changes),
        f"{changes[0]:+.1%} of attention's own with 64 heads, {changes[1]:+.1%} with 48",
    )
    times = [
        pope.step_time(m, TPU, MESH, fitted(), 2048, 2048, pope.cache_over_heads(m, SLICE, 1, 2048))
        for m in (pope.multihead(model), model)
    ]
    holds(
        "prefill takes as long with multihead as with multiquery attention (within 5 %)",
        abs(times[0] / times[1] - 1) < 0.05,
        f"{times[0] / times[1] - 1:+.1%} by the two-constant model",
    )
    step = figures.figure_8_data()
    total = step.cache + step.rest
    gain = total.sel(variant="multihead") / total.sel(variant="multiquery, over batch")
    gains = {n: float(gain.sel(context=n)) for n in (128, 512, 8192, 32768)}
    holds(
        "the gain of the optimised layout is small at short contexts and grows",
        gains[128] < 1.25 and list(gains.values()) == sorted(gains.values()),
        "least times, multihead over optimised: "
        + ", ".join(f"{value:.3g} at {n}" for n, value in gains.items())
        + "; under 1.25 is our reading of small",
    )


@claims("Figure 8")
def longest_contexts(read, holds):
    model, share = evidence.palm(), read("memory kept for the cache", artefact="Table 1")
    longest = {
        name: pope.context_over_heads(m, TPU, SLICE, read("batch"), share)
        for name, m in (("multihead", pope.multihead(model)), ("baseline", model))
    }
    told = ", ".join(f"{name} up to {n:.0f}" for name, n in longest.items())
    following = min(n for n in figures.CONTEXTS if n > read("longest context that fits"))
    holds(
        "beyond 512 tokens neither multihead nor the baseline fits",
        max(longest.values()) < following,
        f"{told} tokens; the authors' code plots 512, then {following}",
        fair="of the lengths plotted",
    )


@claims("Text 4.3")
def serial_blocks(read, holds):
    model = evidence.palm()
    at = MESH, 2**20, MESH.chips, pope.EXACT
    moved = [pope.gathered_activation_volume(m, *at) for m in (pope.serial(model), model)]
    holds("in prefill the difference shrinks", moved[0] == moved[1], "to nothing with all weights gathered")


@claims("Text 4.4")
def end_to_end(read, holds):
    ratio = pope.parameters(pope.load_model("PaLM 540B")) / pope.parameters(pope.load_model("PaLM 62B"))

    def dearer(read, kind, table, other_kind, other):
        """Chip-seconds of a token in one configuration over those in another, by phase."""
        return {
            p: chip_seconds(read, table, f"{kind} {p}") / chip_seconds(read, other, f"{other_kind} {p}")
            for p in PHASES
        }

    models = HT, "Table 2", HT, "Table 3"
    holds(
        "at that batch the cost is proportional to the parameters (within 15 %)",
        lambda read: all(abs(times / ratio - 1) < 0.15 for times in dearer(read, *models).values()),
        f"{listed(dearer(read, *models), '.2f')} times; parameters {ratio:.2f}",
    )
    large = [
        pass_time(configuration("PaLM 540B", SLICE, 512, "WS 2D", "Batch", f, 2048, 64), fitted())
        for f in ("int8", "bf16")
    ]
    holds(
        "at large batches int8 and bfloat16 cost about the same (within 5 %)",
        abs(large[0] / large[1] - 1) < 0.05,
        f"{1e3 * large[0]:.1f} and {1e3 * large[1]:.1f} ms by the two-constant model: arithmetic binds in both",
    )
    prefill, decode = dearer(read, LL, "Table 2", HT, "Table 2").values()
    holds(
        "batch 1 already runs prefill at a fairly low cost",
        prefill < decode,
        f"low latency over high throughput: prefill {prefill:.2f} times, decode {decode:.2f} times",
    )
    rises = {}
    for table in TABLES:
        times = [printed_time(table, "PaLM generate", b) for b in (4, 8, 16, 32, 64)]
        rises[table] = times[-1] / min(times) - 1
    holds(
        "a batch of 64 hardly costs latency in generation",
        max(rises.values()) < 0.1 * (64 / 8 - 1),
        "over the fastest batch: " + ", ".join(f"{rise:+.0%} in {table}" for table, rise in rises.items()),
        fair="beside the eightfold tokens: latency rises by under a tenth of what throughput does",
    )
    used = {
        p: [printed_utilisation(read, table, f"{HT} {p}") for table in ("Table 2", "Table 3")] for p in PHASES
    }
    holds(
        "high-throughput utilisations of the two models are similar (within five points)",
        all(abs(one - two) <= 0.05 for one, two in used.values()),
        ", ".join(f"{p} {one:.0%} and {two:.0%}" for p, (one, two) in used.items()),
    )
    rows = {}
    for entry in pope.stated()["configurations"]:
        chips = read(entry["row"], "chips", entry["table"])
        rows.setdefault(entry["row"], []).append((chips, entry["layout"], entry["attention"]))
    holds(
        "the 540B model uses more chips and the same layouts",
        all(one[0] > two[0] and one[1:] == two[1:] for one, two in rows.values()),
        ", ".join(f"{row} {one[0]:.0f} and {two[0]:.0f} chips" for row, (one, two) in rows.items()),
    )
    holds(
        "latency grows less than in proportion to the model",
        lambda read: growth(read, "decode") < 1,
        f"with the power {growth(read, 'decode'):.2f} of its size",
    )


def layouts_of(table):
    @claims(table)
    def check(read, holds):
        for (artefact, row), picked in chosen().iterrows():
            if artefact != table:
                continue
            more = f"; {picked.printed} moves {picked.excess:.0%} more" if picked.excess else ""
            holds(
                f"{row}: weight-stationary or weight-gathered, as the tokens select",
                picked.least[:2] == picked.printed[:2],
                f"{picked.least} moves least by the formulas{more}",
            )


for _table in ("Table 2", "Table 3"):
    layouts_of(_table)


@claims("Text 5")
def fastertransformer(read, holds):
    def fastest(table):
        """The least times of PaLM (prefill + generate), and of everything else."""
        palm = [
            sum(read(f"batch {b}", f"PaLM {part}, time", table) for part in ("prefill", "generate"))
            for b in batches(table, "PaLM prefill")
        ]
        others = ("FT TP16", "FT TP32", "FT PP3/TP8", "MT-NLG total")
        rest = [read(f"batch {b}", f"{c}, time", table) for c in others for b in batches(table, c)]
        return min(palm), min(rest)

    least = {table: fastest(table) for table in TABLES[:2]}
    holds(
        "PaLM has the best absolute latency",
        least["Table D.3"][0] < least["Table D.3"][1],
        ", ".join(f"{t}: {1e3 * palm:.0f} against {1e3 * rest:.0f} ms" for t, (palm, rest) in least.items()),
    )
    kept = benchmarks.frontier("Table D.3", without_palm=True)
    guests = kept[kept.column.str.startswith("FT")]
    names = ", ".join(f"{row.column} at batch {row.batch}" for row in guests.itertuples())
    holds(
        "Megatron here has the best MFU of Megatron at all but one latency",
        len(guests) == 1,
        f"of others on the frontier of Table D.3: {names}",
    )
    megatron = pope.load_model("MT-NLG 530B")
    shares = {}
    for batch in (256, 1024):
        cache = pope.memory_time(TPU, pope.cache_over_heads(megatron, SLICE, batch, 70))
        step = printed_time("Table D.3", "PaLM generate", batch) / benchmarks.lengths(read, "Table D.3")[1]
        shares[batch] = cache / step
    holds(
        "multiquery attention is not noticeable at these contexts (under 10 % of a step)",
        max(shares.values()) < 0.1,
        "reading Megatron's cache over a step of PaLM: "
        + ", ".join(f"{share:.1%} at batch {batch}" for batch, share in shares.items()),
    )


@claims("Text 7")
def conclusions(read, holds):
    total = sum(read(f"{LL} {p}", "latency", "Table 2") for p in PHASES)
    holds(
        "latency targets of 500B models are of the order of seconds (1 to 10)",
        lambda read: 1 <= sum(read(f"{LL} {p}", "latency", "Table 2") for p in PHASES) <= 10,
        f"{total:.2f} s in the low-latency configurations of Table 2",
    )
    times = curves.times_over_chips("PaLM 540B")
    holds(
        "the best latencies are reached on 64 or more chips",
        times.idxmin() >= 64,
        "by the two-constant model, which knows no time of a hop: "
        + ", ".join(f"{ms:.1f} ms on {n}" for n, ms in times.items()),
    )


@claims("Appendix C")
def utilisation(read, holds):
    tables, rows = ("Table 2", "Table 3"), [f"{kind} {phase}" for kind in (LL, HT) for phase in PHASES]
    used = {(table, row): printed_utilisation(read, table, row) for table in tables for row in rows}
    holds(
        "decode has a lower MFU than prefill",
        all(used[t, f"{kind} decode"] < used[t, f"{kind} prefill"] for t in tables for kind in (LL, HT)),
        "in four of four pairs of Tables 2 and 3",
    )
    wins = sum(used["Table 2", row] > used["Table 3", row] for row in rows)
    holds(
        "larger models mostly have a higher MFU",
        wins > len(rows) / 2,
        f"in {wins} of {len(rows)} configurations",
    )
    long = [used[table, f"{HT} decode"] for table in tables]
    holds(
        "in long decodes 62B has a higher MFU than 540B",
        long[1] > long[0],
        f"{long[1]:.0%} against {long[0]:.0%}",
    )
    front = curves.frontier_of(curves.runs("prefill"))["PaLM 540B", "bf16"]
    before = front[front.layout == "WS 2D"].mfu.iloc[-1]
    after = front[front.layout != "WS 2D"].mfu.iloc[0]
    others = front.groupby(front.layout == "WS 2D").mfu.diff().max()
    holds(
        "MFU of prefill jumps where the layout changes to gathered weights",
        after - before > others,
        f"from {before:.0%} to {after:.0%} by the two-constant model, its largest step",
    )
