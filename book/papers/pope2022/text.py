"""Pope et al. 2022: the numbers of its text, recomputed."""

import math
from functools import partial

from book.audit.grading import WithNote, reproduces
from book.papers.pope2022 import evidence, two_constants
from book.papers.pope2022.benchmarks import TABLES, batches, reckoned_parameters, utilisation
from book.papers.pope2022.evidence import SLICE, TPU, configuration, fitted, pass_time
from book.papers.pope2022.tables import gain, printed_utilisation
from inferlib.equation import untraced
from inferlib.papers import pope2022 as pope
from inferlib.papers.pope2022 import derivations

MESH = pope.load_mesh(SLICE)
HT, LL = "high-throughput", "low-latency"


_prefill_mfu = partial(printed_utilisation, table="Table 2", row=f"{HT} prefill")


@reproduces("Abstract")
def _abstract():
    return {
        "context that multiquery attention allows, over the other layouts": gain(),
        "utilisation when processing input": _prefill_mfu,
    }


@reproduces("Text 1")
def _text_1(read):
    turn, offline = "a turn of a chatbot", "offline, many examples"
    user, cached, answer = (read(turn, f"tokens {of}") for of in ("of the user", "cached", "of the answer"))
    prefill = configuration("PaLM 540B", int(read(turn, "chips")), 1, "WS 2D", "Head", "int8", user)
    reading = pass_time(prefill | {"seen": user + cached}, fitted())
    step = read("int8, batch 64", artefact="Text 4.4")

    def both_phases(read):
        prompt, made = (read(offline, f"tokens of {part}") for part in ("input", "output"))
        parts = {"prefill": prompt, "decode": made}
        each = {phase: read(f"tokens of {phase}", artefact="Table 2") for phase in parts}
        time = sum(read(f"{HT} {p}", "latency", "Table 2") * n / each[p] for p, n in parts.items())
        at = read(f"{HT} prefill", "chips", "Table 2"), reckoned_parameters("PaLM 540B")
        return pope.mfu(TPU, *at, read(f"{HT} prefill", "batch", "Table 2") * (prompt + made), time)

    return {
        "utilisation when processing input": _prefill_mfu,
        (turn, "time"): WithNote(
            answer * step + reading,
            f"{answer:.0f} steps as measured and {1e3 * reading:.0f} ms of prefill as modelled",
        ),
        (offline, "utilisation"): both_phases,
    }


@reproduces("Text 2.1")
def _text_2_1(read):
    place = "a 500B model with multihead attention"
    tokens = read(place, "batch") * read(place, "context")
    size = tokens * pope.cache_of_token(pope.multihead(pope.load_model("PaLM 540B")))
    return {
        (place, "cache"): size,
        (place, "cache over parameters"): size / (pope.parameters(pope.load_model("PaLM 540B")) * 2),
    }


@reproduces("Text 3.2.1")
def _text_3_2_1():
    model = pope.load_model("PaLM 540B")
    return {"1D: numbers moved over BLE": pope.ws1d_volume(model, MESH, 1) / model.d_model}


@reproduces("Text 3.2.2")
def _text_3_2_2(read):
    width, inner, chips = (read("example", name) for name in ("d_model", "d_ff", "chips"))
    example = pope.load_model("PaLM 540B").replace(d_model=width, d_ff=inner)
    four, d = pope.load_model("PaLM 540B"), derivations
    unit = d.T * d.E * d.ACT / (d.W * d.sp.sqrt(d.N))
    return {
        ("example", "parts of d_model"): pope.best_x(example, chips),
        ("example", "parts of d_ff"): pope.best_yz(example, chips),
        ("example", "edge of a chip's piece"): width / pope.best_x(example, chips),
        "F = 4E: 2D beats 1D above so many chips": pope.break_even(four),
        "F = 4E: best X over the root of the chips": pope.best_x(four, 1),
        "F = 4E: best YZ over the root of the chips": pope.best_yz(four, 1),
        "F = 4E: time at the best X, over BLE / root of the chips": lambda read: float(
            d.sp.simplify(d.four_times().result / unit)
        ),
    }


@reproduces("Text 3.2.3")
def _text_3_2_3():
    d = derivations
    unit = d.E * d.sp.sqrt(d.T * d.F / d.N) * d.ACT / d.W
    place = ("time at the best N, over E times the root of BLF / n", "")
    return {
        place: lambda read: float(
            d.sp.simplify(d.optimal_gather().result.subs(d.MODEL.weight_bytes, d.ACT) / unit)
        )
    }


@reproduces("Text 3.4")
def _text_3_4():
    model = evidence.palm()
    place = ("a parallel block moves, over a serial one, along the axes of F", "")
    return {place: pope.outer_width(model) / pope.outer_width(pope.serial(model))}


@reproduces("Text 4")
def _text_4():
    before, after = pope.parameters(pope.load_model("PaLM 540B")), pope.parameters(evidence.palm())
    return {
        ("padding", "parameters added"): after - before,
        ("padding", "share of the utilisation"): 1 - before / after,
    }


@reproduces("Text 4.1")
def _text_4_1():
    return {"the utilisation of gathered weights at a million tokens": _prefill_mfu}


def attention_share(batch, context):
    """Share of a generation step that attention takes, by the two-constant model, cut over the batch."""
    model = evidence.palm()
    held = pope.cache_over_batch(model, SLICE, batch, context)
    at = model, TPU, MESH, fitted(), batch, context, held
    return two_constants.attention_time(*at) / two_constants.step_time(*at)


@reproduces("Text 4.2")
def _text_4_2():
    ratios = gain(), gain("Baseline multiquery")
    model, apart = "by the two-constant model", f"the steps would be {evidence.apart():.1f} times apart"
    note = f"{model}; were attention as long in both, {apart}"
    return {
        "context of the optimised layout over the others": ratios,
        ("batch 512, context 8192", "share of attention"): WithNote(attention_share(512, 8192), model),
        ("batch 128, context 32768", "share of attention"): WithNote(attention_share(128, 32768), note),
    }


@reproduces("Text 4.3")
def _text_4_3(read):
    model, batch = evidence.palm(), read("serial block", "batch")
    held = pope.cache_over_batch(model, SLICE, batch, 2048)
    steps = [
        two_constants.step_time(m, TPU, MESH, fitted(), batch, 2048, held)
        for m in (pope.serial(model), model)
    ]
    note = "two-constant model: one more gather and scatter of BLE/X a layer"
    return {"a serial block takes longer by": WithNote(steps[0] / steps[1] - 1, note)}


@reproduces("Text 4.4")
def _text_4_4(read):
    constants = fitted()
    slow = pass_time(evidence.bf16_decode(), constants)
    batch = _batch_as_fast(slow, constants)
    fast = pass_time(evidence.configurations()["Table 2", f"{LL} decode"], constants)

    return {
        (f"{LL} decode", "batch"): tuple(read(f"{LL} decode", "batch", t) for t in ("Table 3", "Table 2")),
        "int8, batch 64": WithNote(fast, "two-constant model"),
        "bfloat16, batch 64": WithNote(slow, "two-constant model"),
        "int8 costs less at low latency, by a factor of": WithNote(
            batch / 64, f"two-constant model: at batch {batch:.0f} int8 is as fast as bfloat16 at 64"
        ),
        "prefill costs less than generation at batch 512, by a factor of": lambda read: (
            chip_seconds(read, "Table 2", f"{HT} decode") / chip_seconds(read, "Table 2", f"{HT} prefill")
        ),
        "latency grows with this power of model size": lambda read: WithNote(
            growth(read, "decode"),
            f"of decoding, and {growth(read, 'prefill'):.2f} of prefill, between 62B and 540B; the paper says "
            "approximately",
        ),
    }


def growth(read, phase):
    """The power of the parameters with which the low latencies of Tables 2 and 3 grow."""
    ratio = pope.parameters(pope.load_model("PaLM 540B")) / pope.parameters(pope.load_model("PaLM 62B"))
    times = [read(f"{LL} {phase}", "latency", table) for table in ("Table 2", "Table 3")]
    return math.log(times[0] / times[1]) / math.log(ratio)


def _batch_as_fast(time, constants):
    """Find the batch at which int8 weights take as long as a given time."""
    from scipy.optimize import brentq

    def excess(batch):
        at = configuration("PaLM 540B", SLICE, batch, "WS 2D", "Batch", "int8", 2048, 64)
        return pass_time(at, constants) - time

    return brentq(excess, 1, 4096)


def chip_seconds(read, table, row):
    """What a token of one of the eight configurations costs."""
    each = "tokens of decode" if row.endswith("decode") else "tokens of prefill"
    tokens = read(row, "batch", table) * read(each, artefact=table)
    return pope.cost(read(row, "chips", table), tokens, read(row, "latency", table))


def _best(read, column, tables=TABLES):
    """The largest utilisation of a column, from the times printed beside it."""

    def used(cell):
        table, batch = cell
        return utilisation(read, table, column, batch, read(f"batch {batch}", f"{column}, time", table))

    cells = [(table, batch) for table in tables for batch in batches(table, column)]
    return used(max(cells, key=untraced(used)))


@reproduces("Text 5")
def _text_5(read):
    @untraced
    def ahead(read):
        table = "Table D.3"
        points = {
            c: [
                (time, utilisation(read, table, c, b, time))
                for b in batches(table, c)
                for time in [read(f"batch {b}", f"{c}, time", table)]
            ]
            for c in ("PaLM total", "MT-NLG total")
        }

        def within(column, limit):
            return max((u for time, u in points[column] if time <= limit), default=None)

        limits = [time for time, _ in points["PaLM total"] if within("MT-NLG total", time)]
        gap = max(within("PaLM total", t) - within("MT-NLG total", t) for t in limits)
        same = max(p[1] - m[1] for p, m in zip(*points.values(), strict=True))
        return WithNote(
            gap, f"best of each within one latency, Table D.3; at equal batch at most {100 * same:.0f} points"
        )

    return {
        "best MFU of 32-way tensor parallelism": partial(_best, column="FT TP32"),
        "best MFU of 16-way tensor parallelism": partial(_best, column="FT TP16"),
        # the column of Table D.4 is an erratum
        "64-way tensor parallelism achieves an MFU of": partial(
            _best, column="PaLM total", tables=TABLES[:2]
        ),
        "PaLM over Megatron within one latency, in MFU: up to": ahead,
    }


@reproduces("Appendix A.1")
def _appendix_a_1():
    times = [f(TPU, 1.0, SLICE, pope.EXACT) for f in (pope.all_reduce_time, pope.all_gather_time)]
    return {"all-reduce over all-gather": times[0] / times[1]}
