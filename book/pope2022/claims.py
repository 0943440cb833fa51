"""Pope et al. 2022: the numbers and checkable sentences of its text, recomputed."""

import math
from functools import partial

from book.pope2022 import benchmarks, evidence
from book.pope2022.benchmarks import TABLES, batches
from book.pope2022.evidence import SLICE, TPU, configuration, fitted, pass_time
from book.pope2022.tables import reckoned_parameters, table_1
from inferlib.ledger import Noted, reproduces
from inferlib.papers.pope2022 import derivations
from inferlib.papers.pope2022.equations import layouts
from inferlib.papers.pope2022.equations.costs import (
    attention_flops,
    cache_of_token,
    cache_over_batch,
    cache_over_heads,
    context_over_heads,
    cost,
    matmul_flops,
    memory_time,
    mfu,
    parameters,
    weights_on_chip,
)
from inferlib.papers.pope2022.equations.layouts import (
    batch_attention_volume,
    best_x,
    best_yz,
    break_even,
    outer_width,
    printed_break_even,
    ws1d_volume,
)
from inferlib.papers.pope2022.equations.prediction import attention_time, ws1d_step, ws2d_step
from inferlib.papers.pope2022.records import EXACT, load_mesh, load_model, meshes, multihead, serial

reproduces = partial(reproduces, "pope2022")
MESH = load_mesh(SLICE)
HT, LL = "high-throughput", "low-latency"


def _from(artefact, row, column=""):
    """A row that repeats another printed number."""
    return lambda read: read(row, column, artefact)


def _offline(read, prompt, answer):
    """Utilisation of one input and one output of the high-throughput configurations of Table 2."""
    at = f"{HT} prefill", f"{HT} decode"
    batch = read(at[0], "batch", "Table 2")
    share = prompt / read("tokens of prefill", artefact="Table 2")
    time = read(at[0], "latency", "Table 2") * share
    if answer:
        time += read(at[1], "latency", "Table 2") * answer / read("tokens of decode", artefact="Table 2")
    n_params = reckoned_parameters("PaLM 540B")
    return mfu(TPU, read(at[0], "chips", "Table 2"), n_params, batch * (prompt + answer), time)


def _prefill_mfu(read):
    return _offline(read, read("tokens of prefill", artefact="Table 2"), 0)


@reproduces("Abstract")
def _abstract(read):
    found = table_1()
    return {
        ("context that multiquery attention allows, over the other layouts", ""): (
            found.loc["Optimized multiquery"] / found.loc["Multihead"]
        ).iloc[0],
        ("latency of one token at a small batch", ""): _from("Text 4.4", "int8, batch 64"),
        ("utilisation when processing input", ""): _prefill_mfu,
    }


@reproduces("Text 1")
def _text_1(read):
    turn, offline = "a turn of a chatbot", "offline, many examples"
    user, cached, answer = (read(turn, f"tokens {of}") for of in ("of the user", "cached", "of the answer"))
    prefill = configuration("PaLM 540B", SLICE, 1, "WS 2D", "Head", "int8", user)
    reading = pass_time(prefill | {"seen": user + cached}, fitted())
    step = read("int8, batch 64", artefact="Text 4.4")
    return {
        ("latency of one token at a small batch", ""): _from("Text 4.4", "int8, batch 64"),
        ("utilisation when processing input", ""): _prefill_mfu,
        (turn, "time"): Noted(
            answer * step + reading,
            f"{answer:.0f} steps as measured and {1e3 * reading:.0f} ms of prefill as modelled, for one user",
        ),
        (offline, "utilisation"): lambda read: _offline(
            read, read(offline, "tokens of input"), read(offline, "tokens of output")
        ),
    }


@reproduces("Text 2")
def _text_2(read):
    model, batch, context = evidence.palm(), 512, 2048
    cut = {
        "multihead": cache_over_heads(multihead(model), SLICE, batch, context),
        "multiquery over the batch": cache_over_batch(model, SLICE, batch, context),
    }
    read_ms = {name: 1e3 * memory_time(TPU, held) for name, held in cut.items()}
    weights = 1e3 * memory_time(TPU, weights_on_chip(model, SLICE))
    small = evidence.pass_bound(configuration("PaLM 540B", SLICE, 1, "WS 2D", "Head", "bf16", context, 1))
    share = attention_flops(model, 1, context) / matmul_flops(model, 1)
    reads = ", ".join(f"{name} {t:.1f} ms" for name, t in read_ms.items())
    return {
        ("loading the cache takes longest at 2048 tokens and a batch of 512", ""): Noted(
            read_ms["multihead"] > weights,
            f"with multihead attention only: weights {weights:.1f} ms, {reads}",
        ),
        ("loading the weights takes longest at small batches", ""): small["weights"] == max(small.values()),
        ("attention adds few operations", ""): Noted(share < 0.1, f"{share:.1%} at {context} tokens"),
    }


@reproduces("Text 2.1")
def _text_2_1(read):
    place = "a 500B model with multihead attention"
    tokens = read(place, "batch") * read(place, "context")
    model = multihead(load_model("PaLM 540B"))
    size = tokens * cache_of_token(model)
    others = [
        tokens * cache_of_token(m) / 1e12 for m in (multihead(evidence.palm()), load_model("MT-NLG 530B"))
    ]
    note = (
        f"PaLM with 48 heads of 128 only; with its 64 heads as run {others[0]:.2f} TB, "
        f"and the multihead model that the paper runs, Megatron, {others[1]:.2f} TB"
    )
    return {
        (place, "cache"): Noted(size, note),
        (place, "cache over parameters"): size / (parameters(load_model("PaLM 540B")) * 2),
    }


@reproduces("Text 3.2.1")
def _text_3_2_1(read):
    model = load_model("PaLM 540B")
    moved = [ws1d_volume(model, load_mesh(n), 1) for n in meshes()]
    exact = [ws1d_volume(model, load_mesh(n), 1, EXACT) for n in (8, 256)]
    return {
        ("1D: numbers moved over BLE", ""): moved[0] / model.d_model,
        ("1D: communication does not fall with the number of chips", ""): Noted(
            len(set(moved)) == 1,
            f"with (K-1)/K it grows by {exact[1] / exact[0] - 1:.0%} from 8 to 256 chips",
        ),
    }


@reproduces("Text 3.2.2")
def _text_3_2_2(read):
    width, inner, chips = (read("example", name) for name in ("d_model", "d_ff", "chips"))
    example = load_model("PaLM 540B").replace(d_model=width, d_ff=inner)
    four = load_model("PaLM 540B")
    narrow = four.replace(d_ff=2 * four.d_model)
    s = derivations
    best = s.optimal_x().result
    scaled = s.sp.simplify(best.subs(s.F, 4 * s.E) * s.W * s.sp.sqrt(s.N) / (s.T * s.E * s.ACT))
    powers = s.sp.simplify(s.sp.diff(s.sp.log(best), s.N) * s.N)
    return {
        ("example", "parts of d_model"): best_x(example, chips),
        ("example", "parts of d_ff"): best_yz(example, chips),
        ("example", "edge of a chip's piece"): width / best_x(example, chips),
        ("communication falls with the root of the chips", ""): powers == -s.sp.Rational(1, 2),
        ("2D beats 1D when the root of the chips exceeds F/E", ""): Noted(
            all(math.isclose(printed_break_even(m), break_even(m)) for m in (four, narrow)),
            f"only where F = 4E; at F = 2E: {printed_break_even(narrow):g} chips, from the paper's own costs "
            f"{break_even(narrow):g}",
        ),
        ("F = 4E: 2D beats 1D above so many chips", ""): break_even(four),
        ("F = 4E: best X over the root of the chips", ""): best_x(four, 1),
        ("F = 4E: best YZ over the root of the chips", ""): best_yz(four, 1),
        ("F = 4E: time at the best X, over BLE / root of the chips", ""): float(scaled),
    }


@reproduces("Text 3.2.3")
def _text_3_2_3(read):
    s, sp = derivations, derivations.sp
    model, tokens = load_model("PaLM 540B"), 2**15
    best = s.optimal_gather()
    where = sp.simplify(s.same_bytes(best[-2].equation.rhs) - sp.sqrt(s.T * s.N / s.F))
    coefficient = sp.simplify(
        s.same_bytes(best.result) * s.W * sp.sqrt(s.N) / (s.E * sp.sqrt(s.T * s.F) * s.ACT)
    )
    power = [sp.simplify(sp.diff(sp.log(e), s.T) * s.T) for e in (s.optimal_x().result, best.result)]
    weights = layouts.gathered_weight_volume(model, MESH, MESH.x * MESH.y)
    activations = layouts.gathered_activation_volume(model, MESH, tokens, MESH.x * MESH.y)
    left = layouts.gathered_activation_volume(model, MESH, tokens, MESH.chips)
    still = layouts.gathered_activation_volume(model, MESH, tokens, MESH.chips, EXACT)
    return {
        ("best N is the root of BL n / F", ""): where == 0,
        ("time at the best N, over E times the root of BLF / n", ""): float(coefficient),
        ("gathering over XY moves EF/Z of each matrix", ""): math.isclose(
            weights / 2, model.d_model * model.d_ff / MESH.z
        ),
        ("gathering over XY leaves BLE/(XY) of the activations", ""): math.isclose(
            activations / 2, tokens * model.d_model / (MESH.x * MESH.y)
        ),
        ("one pair of collectives on activations is skipped", ""): math.isclose(
            layouts.ws2d_volume(model, MESH, tokens)
            - layouts.gathered_activation_volume(model, MESH, tokens, MESH.x),
            2 * tokens * model.d_ff / (MESH.y * MESH.z),
        ),
        ("time grows with BL, weight-stationary, and with its root, weight-gathered", ""): power
        == [1, sp.Rational(1, 2)],
        ("very large batches keep activations fully stationary", ""): Noted(
            still == 0,
            f"exactly so with (K-1)/K; the printed formula leaves {left / tokens:.0f} numbers a token",
        ),
    }


@reproduces("Text 3.3")
def _text_3_3(read):
    model, batch, context = evidence.palm(), 512, 2048
    same_width = model.replace(kv_heads=model.heads)
    by_heads = [cache_over_heads(m, SLICE, batch, context) for m in (model, same_width)]
    ratio = by_heads[0] / cache_over_batch(model, SLICE, batch, context)
    moved = batch_attention_volume(model, MESH, batch) * model.activation_bytes * model.layers
    spent = moved / TPU.network_bandwidth
    saved = memory_time(TPU, by_heads[0]) * (1 - 1 / ratio)
    prefills = [e for e in evidence.stated()["configurations"] if "prefill" in e["row"]]
    other = [f"{e['table']}, {e['row']}" for e in prefills if e["attention"] != "Head"]
    return {
        ("multiquery attention divides the cache by the number of heads", ""): (
            cache_of_token(same_width) / cache_of_token(model) == model.heads
        ),
        ("cut over heads, the saving of multiquery attention is lost", ""): by_heads[0] == by_heads[1],
        ("cut over the batch, the cache on a chip shrinks by the number of chips", ""): ratio == SLICE,
        ("prefill uses the layout over heads", ""): Noted(
            not other, f"over the batch in {' and '.join(other)}"
        ),
        ("in generation the all-to-all costs less than it saves", ""): Noted(
            spent < saved, f"{1e3 * spent:.2f} ms for {1e3 * saved:.0f} ms at batch {batch}, {context} tokens"
        ),
    }


@reproduces("Text 3.4")
def _text_3_4(read):
    model = evidence.palm()
    place = ("a parallel block moves, over a serial one, along the axes of F", "")
    return {place: outer_width(model) / outer_width(serial(model))}


@reproduces("Text 4")
def _text_4(read):
    before, after = (parameters(load_model("PaLM 540B")), parameters(evidence.palm()))
    return {
        ("padding", "parameters added"): after - before,
        ("padding", "share of the utilisation"): 1 - before / after,
    }


@reproduces("Text 4.1")
def _text_4_1(read):
    model, constants = evidence.palm(), fitted()
    decode = {}
    for n in (64, 128, 256):
        held = cache_over_batch(model, n, 512, 2048)
        steps = [f(model, TPU, load_mesh(n), constants, 512, 2048, held) for f in (ws1d_step, ws2d_step)]
        decode[n] = tuple(1e3 * t for t in steps)
    # the smallest and the largest prefill of Figure 7, in whichever layout is faster
    fastest = []
    for sequences in (1, 512):
        runs = {
            layout: pass_time(
                configuration("PaLM 540B", SLICE, sequences, layout, "Batch", "bf16", 2048), constants
            )
            for layout in ("WS 2D", "WG XYZ")
        }
        fastest.append(min(runs, key=runs.get))
    held = cache_over_heads(multihead(model), SLICE, 512, 2048)
    return {
        ("largest prefill", "million tokens"): lambda read: (
            read("largest prefill", "sequences") * read("largest prefill", "tokens of each") / 1e6
        ),
        ("2D is faster than 1D at batch 512 on 64 to 256 chips", ""): Noted(
            all(two < one for one, two in decode.values()),
            "1D and 2D by the two-constant model: "
            + ", ".join(f"{n} chips {one:.0f} and {two:.0f} ms" for n, (one, two) in decode.items()),
        ),
        ("the fastest layout of prefill goes from 2D to weight-gathered", ""): fastest == ["WS 2D", "WG XYZ"],
        ("the utilisation of gathered weights at a million tokens", ""): _prefill_mfu,
        ("without multiquery attention such batches do not fit", ""): Noted(
            held + weights_on_chip(model, SLICE) > TPU.memory_capacity,
            f"{held / 2**30:.0f} GiB of cache on each chip of {TPU.memory_capacity / 2**30:.0f} GiB",
        ),
    }


def attention_share(batch, context):
    """Share of a generation step that attention takes, by the two-constant model, cut over the batch."""
    model = evidence.palm()
    held = cache_over_batch(model, SLICE, batch, context)
    at = model, TPU, MESH, fitted(), batch, context, held
    return attention_time(*at) / ws2d_step(*at)


@reproduces("Text 4.2")
def _text_4_2(read):
    model, found = evidence.palm(), table_1()
    change = parameters(multihead(model)) / parameters(model) - 1
    best = found.loc["Optimized multiquery"]
    ratios = tuple((best / found.loc[name]).iloc[0] for name in ("Multihead", "Baseline multiquery"))
    prefills = [
        ws2d_step(m, TPU, MESH, fitted(), 2048, 2048, cache_over_heads(m, SLICE, 1, 2048))
        for m in (multihead(model), model)
    ]
    note = (
        "both rows read the same bytes of cache, so the printed shares need steps "
        f"{evidence.apart():.1f} times apart"
    )
    return {
        ("half the head width keeps the parameters of attention", ""): Noted(
            abs(change) < 0.005, f"{change:+.2%} of all parameters"
        ),
        ("context of the optimised layout over the others", ""): ratios,
        ("prefill takes as long with multihead as with multiquery attention", ""): Noted(
            abs(prefills[0] / prefills[1] - 1) < 0.05,
            f"{prefills[0] / prefills[1] - 1:+.1%} by the two-constant model",
        ),
        ("batch 512, context 8192", "share of attention"): Noted(
            attention_share(512, 8192), "by the two-constant model"
        ),
        ("batch 128, context 32768", "share of attention"): Noted(attention_share(128, 32768), note),
    }


@reproduces("Figure 8")
def _figure_8(read):
    model, batch = evidence.palm(), 256
    longest = {
        name: context_over_heads(m, TPU, SLICE, batch, read("memory kept for the cache", artefact="Table 1"))
        for name, m in (("multihead", multihead(model)), ("baseline", model))
    }
    place = ("beyond 512 tokens neither multihead nor the baseline fits", "")
    note = ", ".join(f"{name} up to {n:.0f}" for name, n in longest.items())
    # the lengths of the figure are powers of two, so the next one is 1024
    return {place: Noted(max(longest.values()) < 1024, f"{note} tokens")}


@reproduces("Text 4.3")
def _text_4_3(read):
    model, constants = evidence.palm(), fitted()
    held = cache_over_batch(model, SLICE, 512, 2048)
    steps = [ws2d_step(m, TPU, MESH, constants, 512, 2048, held) for m in (serial(model), model)]
    gathered = [
        layouts.gathered_activation_volume(m, MESH, 2**20, MESH.chips, EXACT) for m in (serial(model), model)
    ]
    return {
        ("a serial block takes longer by", ""): Noted(
            steps[0] / steps[1] - 1, "two-constant model: one more gather and scatter of BLE/X a layer"
        ),
        ("in prefill the difference shrinks", ""): gathered[0] - gathered[1] == 0,
    }


@reproduces("Text 4.4")
def _text_4_4(read):
    constants = fitted()
    slow = pass_time(evidence.bf16_decode(), constants)
    batch = _batch_as_fast(slow, constants)
    large = [
        pass_time(configuration("PaLM 540B", SLICE, 512, "WS 2D", "Batch", f, 2048, 64), constants)
        for f in ("int8", "bf16")
    ]
    small, mid = (read(f"batch {b}", "PaLM generate, time", "Table D.2") for b in (8, 64))
    ratio = parameters(load_model("PaLM 540B")) / parameters(load_model("PaLM 62B"))
    return {
        ("batch 512 takes, over the least latency", ""): lambda read: (
            _each_step(read, "Table 2", f"{HT} decode") / read("int8, batch 64")
        ),
        ("at that batch the cost is proportional to the parameters", ""): lambda read: _proportional(
            read, ratio
        ),
        ("int8, batch 64", ""): Noted(
            pass_time(evidence.configurations()["Table 2", f"{LL} decode"], constants), "two-constant model"
        ),
        ("bfloat16, batch 64", ""): Noted(slow, "two-constant model"),
        ("int8 costs less at low latency, by a factor of", ""): Noted(
            batch / 64, f"two-constant model: at batch {batch:.0f} int8 is as fast as bfloat16 at 64"
        ),
        ("at large batches int8 and bfloat16 cost about the same", ""): abs(large[0] / large[1] - 1) < 0.05,
        ("batch 1 already runs prefill at a fairly low cost", ""): _small_batches,
        ("prefill costs less than generation at batch 512, by a factor of", ""): lambda read: (
            _cost(read, "Table 2", f"{HT} decode") / _cost(read, "Table 2", f"{HT} prefill")
        ),
        ("a batch of 64 hardly costs latency in generation", ""): Noted(
            mid / small < 1.25, f"{mid / small - 1:.0%} more than at batch 8 in Table D.2"
        ),
        ("latency grows with this power of model size", ""): lambda read: Noted(
            math.log(
                _each_step(read, "Table 2", f"{LL} decode") / _each_step(read, "Table 3", f"{LL} decode")
            )
            / math.log(ratio),
            f"between 62B and 540B, parameters {ratio:.2f} times",
        ),
    }


def _batch_as_fast(time, constants):
    """The batch at which int8 weights take as long as a given time, by bisection."""
    low, high = 1.0, 4096.0
    for _ in range(60):
        middle = (low + high) / 2
        at = configuration("PaLM 540B", SLICE, middle, "WS 2D", "Batch", "int8", 2048, 64)
        low, high = (middle, high) if pass_time(at, constants) < time else (low, middle)
    return low


def _tokens(read, table, row):
    each = "tokens of decode" if row.endswith("decode") else "tokens of prefill"
    return read(row, "batch", table) * read(each, artefact=table)


def _each_step(read, table, row):
    return read(row, "latency", table) / read("tokens of decode", artefact=table)


def _cost(read, table, row):
    return cost(read(row, "chips", table), _tokens(read, table, row), read(row, "latency", table))


def _proportional(read, ratio):
    found = {phase: _cost(read, "Table 2", f"{HT} {phase}") / _cost(read, "Table 3", f"{HT} {phase}")
             for phase in ("prefill", "decode")}  # fmt: skip
    note = ", ".join(f"{phase} {value:.2f}" for phase, value in found.items())
    return Noted(
        all(abs(value / ratio - 1) < 0.1 for value in found.values()), f"{note} times; parameters {ratio:.2f}"
    )


def _small_batches(read):
    more = {phase: _cost(read, "Table 2", f"{LL} {phase}") / _cost(read, "Table 2", f"{HT} {phase}")
            for phase in ("prefill", "decode")}  # fmt: skip
    note = "low latency over high throughput: " + ", ".join(f"{p} {v:.2f}" for p, v in more.items())
    return Noted(more["prefill"] < more["decode"], note)


@reproduces("Text 5")
def _text_5(read):
    def best(read, column):
        return max(read(f"batch {b}", f"{column}, MFU", t) for t in TABLES for b in batches(t, column))

    def scaled(read):
        value = best(read, "PaLM total")
        by_table = [
            max(read(f"batch {b}", "PaLM total, MFU", t) for b in batches(t, "PaLM total")) for t in TABLES
        ]
        shown = ", ".join(f"{100 * v:.0f} in {t}" for t, v in zip(TABLES, by_table, strict=True))
        return Noted(value, f"printed maxima of PaLM's totals: {shown}, the last from a wrong column")

    def ahead(read):
        gaps = [
            read(f"batch {b}", "PaLM total, MFU", t) - read(f"batch {b}", "MT-NLG total, MFU", t)
            for t in ("Table D.3",)
            for b in batches(t, "PaLM total")
        ]
        return Noted(max(gaps), "points of utilisation in Table D.3, the data of Figure 9")

    palm = {
        t: min(
            read(f"batch {b}", "PaLM prefill, time", t) + read(f"batch {b}", "PaLM generate, time", t)
            for b in batches(t, "PaLM prefill")
        )
        for t in TABLES
    }
    rest = {
        t: min(read(f"batch {b}", f"{c}, time", t) for c in ("FT TP16", "FT TP32", "FT PP3/TP8")
               for b in batches(t, c))
        for t in TABLES
    }  # fmt: skip
    megatron = {t: read("batch 4", "MT-NLG total, time", t) for t in TABLES}
    kept = benchmarks.frontier("Table D.3", without_palm=True)
    guests = kept[kept.column.str.startswith("FT")]
    names = ", ".join(f"{row.column} at batch {row.batch}" for row in guests.itertuples())
    return {
        ("best MFU of 32-way tensor parallelism", ""): partial(best, column="FT TP32"),
        ("best MFU of 16-way tensor parallelism", ""): lambda read: Noted(
            best(read, "FT TP16"), f"PP3/TP8 reaches {best(read, 'FT PP3/TP8'):.0%}"
        ),
        ("best MFU of 64-way tensor parallelism", ""): scaled,
        ("PaLM over Megatron, in MFU: up to", ""): ahead,
        ("PaLM has the best absolute latency", ""): Noted(
            all(palm[t] < min(rest[t], megatron[t]) for t in TABLES[:2]),
            "in Tables D.2 and D.3; in Table D.4 only once its columns of totals are exchanged",
        ),
        ("Megatron here has the best MFU of Megatron at all but one latency", ""): Noted(
            len(guests) == 1, f"on the frontier of Table D.3: {names}"
        ),
    }


@reproduces("Appendix C")
def _appendix_c(read):
    def value(read, table, row):
        return read(row, "MFU", table)

    def lower(read):
        pairs = [(t, f"{kind} ") for t in ("Table 2", "Table 3") for kind in (LL, HT)]
        return all(value(read, t, k + "decode") < value(read, t, k + "prefill") for t, k in pairs)

    def larger(read):
        rows = [f"{kind} {phase}" for kind in (LL, HT) for phase in ("prefill", "decode")]
        wins = sum(value(read, "Table 2", row) > value(read, "Table 3", row) for row in rows)
        return Noted(wins > len(rows) / 2, f"in {wins} of {len(rows)} configurations")

    return {
        ("decode has a lower MFU than prefill", ""): lower,
        ("larger models mostly have a higher MFU", ""): larger,
        ("in long decodes 62B has a higher MFU than 540B", ""): lambda read: (
            value(read, "Table 3", f"{HT} decode") > value(read, "Table 2", f"{HT} decode")
        ),
    }
