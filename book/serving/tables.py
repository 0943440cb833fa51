"""Tables of the chapters on the kernel model and on price."""

import re
from functools import cache
from itertools import combinations, product

import numpy as np
import pandas as pd

import inferlib
import tokenprice
from book import stored
from book.frames import frame
from book.serving import doubts, energy, fit
from book.synthesis import comparison
from inferlib.principles import cost_per_million
from inferlib.system import Layout, System, Workload
from inferlib.transformer import Attention
from tokenprice import (
    Question,
    calibration,
    load_model,
    operators,
    predictors,
    request,
    speculation,
    uncertainty,
)
from tokenprice.decode import ShardedModel, layer
from tokenprice.deployment import Deployment, decode_step
from tokenprice.kernels import reduce_time
from tokenprice.prefill import prefill_until_first_token

# Kernels of a dense layer by part of the model, in the order in which they run.
NAMES = {"attention": ("QKV", "output"), "cache": ("attention",), "feed-forward": ("gate, up", "down")}


def measured(name):
    """A public measurement by its name."""
    return next(row for row in comparison.rows().itertuples() if row.Index == name)


def _groups(terms):
    """Sum the seconds of a step by the waterfall's kinds of time."""
    kinds = {
        "reading": ("weights", "cache", "expert weights"),
        "starts of kernels": ("kernel launch", "expert kernels"),
        "all-reduces": ("collective latency", "collective bandwidth", "expert exchange"),
        "the engine": ("engine",),
    }
    return {kind: sum(terms.get(name, 0.0) for name in names) for kind, names in kinds.items()}


@frame("what", "ms")
def steps_to_measured(name):
    """What each kind of time adds between the bound and the measured time of one row, in milliseconds."""
    row = measured(name)
    (model, system, workload, layout), engine = comparison.question(row), calibration.engine_class(row.engine)
    bound = comparison.answer("principles", row).total
    line = fit.data().set_index("id").loc[name]
    step = decode_step(model, system, workload, layout, engine=engine)
    parts = _groups(step.critical)
    found = {
        "the bound": bound, "shares that kernels reach": parts.pop("reading") - bound, **parts,
        "prompts of the other users": line.others, "predicted": step.total + line.others, "measured": row.tpot,
    }  # fmt: skip
    return [(name, 1e3 * seconds) for name, seconds in found.items()]


def percents(errors):
    """Mean errors by name."""
    return ", ".join(f"{predictors.label(name)} {error:.0%}" for name, error in errors.items())


def part_read(question):
    """Return the time of a step, and the share of it that reads weights and caches."""
    answer = tokenprice.ask(question)
    if not answer.feasible:
        return answer.summary()
    read = _groups(answer.step.critical)["reading"]
    return f"{1e3 * answer.seconds:.1f} ms, {read / answer.seconds:.0%} of it reading"


def one_layer(case, engine=None):
    """Return the most frequent layer of a step on one chip, kernel by kernel: start and end in microseconds.

    A kernel multiplies while it reads. The software's time of a layer is known only as a sum, and is put at the end.
    """
    model, system, workload = case.model, case.machine, case.workload
    served = Deployment.of(model, system, workload, engine=engine)
    at = ShardedModel(served, workload.batch, workload.context)
    group = max(model.layers, key=lambda one: one.count)
    step = served.step(workload.batch, workload.context)
    if not step.feasible:
        return pd.DataFrame({"no answer": [step.summary()]})
    software = step.critical["engine"] / model.n_layers
    along = {second: first for first, *others in operators.STAGES for second in others}
    plain = type(group.attention) is Attention
    names, rows, begin, end = {part: iter(each) for part, each in NAMES.items() if plain}, [], {}, 0.0
    for op in (*layer(at, group.attention, group.feed_forward), operators.FixedTime("engine", software)):
        part = getattr(op, "part", getattr(op, "term", "all-reduce"))
        kernel = f"{len(rows)} {next(names.get(part, iter(())), part)}"
        for term, seconds in op.terms(1).items():
            begin[term] = begin[along[term]] if term in along else end
            rows.append((kernel, term, 1e6 * begin[term], 1e6 * float(seconds)))
            end = max(end, begin[term] + float(seconds))
    return pd.DataFrame(rows, columns=["kernel", "term", "start", "takes"])


def ladder():
    """Return mean errors in per cent of increasingly complete models, on fitted rows and with each model left out."""
    table, kinds = fit.data(), fit.slices()
    bare = np.log((table.bare + table.others) / table.measured)
    bound = np.log(table.bound / table.measured)
    whole = np.log(fit.predict(table, fit.fit_all()) / table.measured)
    rungs = {
        "the bound": (bound, bound),
        "six constants": (fit.napkins(), fit.napkins("model")),
        "timed kernels and prompts": (bare, bare),
        "the kernel model": (whole, fit.left_out("model")),
    }
    found = []
    for name, both in rungs.items():
        misses = [
            100 * np.abs(np.expm1(logs[kinds[kind]])).mean() for kind in ("dense", "experts") for logs in both
        ]
        found.append((name, *misses))
    asked = stored.rows("serving/planner.csv")  # made by benchmarks/planner.py; dense rows only
    planner = 1e-3 * asked.set_index("id").tpot_ms.reindex(table.id[kinds["dense"]]).dropna()
    measured = table.set_index("id").measured[planner.index]
    found.append(("a vendor's planner", *[100 * (planner / measured - 1).abs().mean()] * 2, np.nan, np.nan))
    again = noise().set_index("measured again by")["mean, %"]
    found += [(kind, *[again[kind]] * 4) for kind in ("another version", "another engine")]
    columns = [f"{kind}, {how}" for kind in ("dense", "experts") for how in ("shown", "left out")]
    return pd.DataFrame(found, columns=["with", *columns])


def errors():
    """Errors of rows left out by class and way of leaving out, in per cent, and the factor that follows from them."""
    table = fit.errors().query("engine == 'known'")
    shown = table[["slice", "left out", "rows", "groups"]].rename(columns={"slice": "rows of"})
    return shown.assign(**{
        "error, %": 100 * table.error, "of groups, %": 100 * table["of groups"],
        "mean error, %": 100 * np.expm1(table.bias), "factor": table.factor.map("{:.2f}".format),
    })  # fmt: skip


@frame("rows of", "left out", "rows", "inside, %", "least inside, %", "score", "of a constant")
def intervals(many=20):
    """Return by class and way of leaving out: rows inside the intervals that other groups give (%), and interval
    scores.

    Rows inside are stated for all rows, and for the group with the fewest inside among those of at least ``many`` rows.
    A lower score is better.
    """
    for by in ("publisher", "model"):
        for kind, own in fit.trial(by).groupby("class", sort=False):
            inside, least = np.average(own.within, weights=own.rows), own.within[own.rows >= many].min()
            scores = own.score.mean(), own["of a constant"].mean()
            yield kind, by, own.rows.sum(), 100 * inside, 100 * least, *scores


@frame("publisher", "left out", "rows", "error, %", "median error, %", "factor of 80 %")
def first_tokens():
    """Return TTFT errors with rows left out, by publisher and way of leaving out, in per cent."""
    table = fit.first_rows()
    for by in ("publisher", "model"):
        logs = fit.first_left_out(by)
        for name, own in logs.groupby(table.publisher):
            error, middle = 100 * np.abs(np.expm1(own)).mean(), 100 * np.expm1(own.median())
            yield name, by, len(own), error, middle, fit.factor(own, table.model[own.index])


@frame("caution", "rows", "factor there", "widens by")
def distances():
    """Return the cost of each caution: rows that it holds for, the factor that holds 80 % there, the widening."""
    declared = (*uncertainty.CAUTIONS, *request.CAUTIONS, *request.TTFT_CAUTIONS)
    says = {caution.name: re.sub(r"\{.*?\}", "…", caution.text) for caution in declared}
    known = fit.distances().items()
    told = {name: (len(logs), round(fit.factor(logs, at), 2)) for name, (logs, at, _) in known}
    # as stored, since a new fit may differ between CPUs in the fourth digit
    widen = uncertainty.load_calibration()["widen"]
    return [(says[name], *told.get(name, ("none", "")), round(by, 2)) for name, by in widen.items()]


@frame("chip", "operator", "times as long", "lent by")
def kin(most=8):
    """Return the timed operators farthest from the same operator on other chips, and the timings that replace them."""
    found = []
    for (chip, of), times in doubts.against_kin().items():
        lent = calibration.operators(chip).block_chips[of[0]] if (chip, of) in doubts.doubted() else ""
        found.append((chip, " ".join(map(str, filter(None, of))), times, lent))
    far = sorted(found, key=lambda row: -abs(np.log(max(row[2], 1e-9))))[:most]
    return [(*at, times if times > 1e-9 else "no time", lent) for *at, times, lent in far]


# Fits by Epoch AI (docs/results.md of epoch-research/ttft-latency-scaling at cf1e462): seconds for a million tokens of
# a prompt, and for their square, where it differs significantly from zero.
EPOCH = {"GPT-5.6 Terra": (5.5426, 8.0265), "GPT-5.6 Sol": (11.566, 10.416)}


@frame("model", "million tokens")
def crossings(*names):
    """Million tokens of prompt at which the quadratic part of its time exceeds the linear one: measured, computed."""
    for name, (line, square) in EPOCH.items():
        yield f"{name}, measured", line / square
    box = System(inferlib.load_chip("B200").replace(memory_capacity=None), 8)
    lengths = np.linspace(50e3, 850e3, 9)
    for name in names:
        model = load_model(name)
        times = [Deployment(model, box, weights="fp8").prefill(n).total for n in lengths]
        square, line, _ = np.polyfit(lengths / 1e6, times, 2)
        yield name, line / square


def unfitted():
    """Ask public rows to which no constant is fitted (``asked_rows.csv``), by kind and publisher.

    In per cent: median of predicted over measured, less one, and rows inside the interval, for TPOT and TTFT.
    """
    found, shown = fit.asked(), {}
    for name, by, wide, measured in (
        ("tokens", "answered", "factor", "measured"),
        ("first tokens", "first", "first_factor", "ttft"),
    ):
        logs = np.log(found[by] / found[measured])
        inside = (np.abs(logs) <= np.log(found[wide].astype(float))).where(logs.notna())
        shown |= {f"{name}, median": 100 * np.expm1(logs), f"{name}, inside": 100 * inside.astype(float)}
    kinds = found.assign(**shown).groupby(["kind", "publisher", "seen"], sort=False)
    means = kinds.agg({"ms": "size"} | {name: "median" if "median" in name else "mean" for name in shown})
    return means.rename(columns={"ms": "rows", "seen": "shown since"}).round().reset_index()


def arrivals():
    """Predict AccelMark's runs with random arrivals (``arrivals.csv``), for vLLM 0.7.3 and later engines.

    Nothing is fitted to them. ``more than it can do``: runs without a steady state in the model. For the others,
    predicted over measured medians of TPOT and TTFT.
    """
    table = stored.rows("serving/arrivals.csv")
    names = ["model", "machine", "weights", "prompt_tokens", "output_tokens", "request_rate", "engine"]
    asked = [Question(**ways, replicas=1) for ways in table[names].to_dict("records")]
    answers = [tokenprice.ask(question) for question in asked]
    table["over"] = [not answer.feasible for answer in answers]
    known = [(a.request.tpot, a.request.ttft) if a.feasible else (np.nan, np.nan) for a in answers]
    table[["tokens", "first tokens"]] = 1e3 * np.array(known) / table[["ms", "first_ms"]].to_numpy()
    table["version"] = table.engine.map({"vLLM 0.7.3": "0.7.3"}).fillna("later")
    columns = {"ms": "size", "over": "sum", "tokens": "median", "first tokens": "median"}
    shown = table.groupby("version").agg(columns)
    return shown.rename(columns={"ms": "runs", "over": "more than it can do"}).reset_index()


def kept_out():
    """Count the serving rows that are not scored, by reason."""
    counts = fit.serving_rows().groupby("use").size().sort_values(ascending=False)
    return counts.rename_axis("rows").reset_index(name="number")


def spread_experts():
    """Rows with copies of the attention and experts spread, without overlap: measured and predicted."""
    table, model, found = comparison.rows(), inferlib.load_model("DeepSeek V3"), []
    plain = (table.overlap == "none") & (table.speculation == "none") & (table.duplicate_of == "")
    for row in table[(table.ep > 1) & plain & table.tpot.notna()].itertuples():
        system = System(inferlib.load_chip(row.hardware), row.n_gpus)
        # GB200 rows state no format: that of the checkpoint
        work = Workload(row.sequences, row.context, "fp8", "bf16")
        step = decode_step(model, system, work, Layout(row.tp, row.pp, row.ep, row.dp))
        name = f"{row.n_gpus} × {row.hardware}"
        found.append((name, int(row.batch), 1e3 * row.tpot, 1e3 * step.total))
    columns = ["system", "sequences a chip", "measured, ms", "predicted, ms"]
    return pd.DataFrame(found, columns=columns).sort_values(columns[:2]).reset_index(drop=True)


def nearest(case):
    """Return measured rows near a case: same model and chip, similar number of sequences, short answers."""
    table, model, chip, batch = energy.rows(), case.model.name, case.machine.chip.name, case.workload.batch
    near = table[(table.model == model) & (table.chip == chip) & (abs(table.batch / batch - 1) <= 1 / 16)]
    if near.empty:
        return pd.DataFrame({"no measurement": [f"of {model} on {chip}, about {batch:g} sequences"]})
    shown = near.assign(**{"measured, ms": near.tpot_ms, "predicted step, ms": 1e3 * near.step})
    return shown[["checkpoint", "n_gpus", "batch", "output_tokens", "measured, ms", "predicted step, ms"]]


# --- The price ------------------------------------------------------------------------------------------------


def asked(users=32, **more):
    """The running question as a request: a prompt of 3,840 tokens and an answer of 512, so a mean context of 4,096."""
    box = System(inferlib.load_chip("H100 SXM"), 8)
    return tokenprice.ask(
        "Llama 3 70B", box, prompt_tokens=3840, output_tokens=512, concurrency=users, **more
    ).request


def told(answer, say):
    """Return the result of a function of an answer's request, or why there is none."""
    try:
        return say(answer.request) if answer.feasible else answer.summary()
    except ValueError as unknown:  # no price, or no power
        return str(unknown)


def first_in_words(question):
    """Describe TTFT as predicted, and simulated: its mean and its p99."""
    answer = tokenprice.ask(question)
    if not answer.feasible:
        return answer.summary()
    played = tokenprice.simulate(question, requests=3000)
    known = answer.request.ttft, played.mean("first"), played.percentile("first", 99)
    return "ask {:.2g} s, simulated {:.2g} s, 99 of 100 within {:.2g} s".format(*known)


def _parts(answer, parts):
    """Return named seconds of a request in milliseconds, or one row that says why there are none."""
    if not answer.feasible:
        return pd.DataFrame({"no answer": [answer.summary()]})
    rows = [(name, round(1e3 * seconds, 1)) for name, seconds in parts(answer.request).items()]
    return pd.DataFrame(rows, columns=["part", "ms"])


def of_a_prompt(answer):
    """Return the kernels of a prefill."""
    return _parts(
        answer, lambda r: {name: seconds for name, seconds in r.prompt.terms.items() if seconds > 0}
    )


def of_a_first_token(answer):
    """Return the parts of TTFT."""

    def parts(r):
        q = answer.question
        own = {
            "way in and out": calibration.engine(q.engine).ingress_delay, "steps of others": r.steps * r.step.total,
            "its own prompt": prefill_until_first_token(q.deployment, r.prompt.total, max(q.prefill_chunks, 1)),
        }  # fmt: skip
        return own | {"prompts of others": r.ttft - sum(own.values()), "first token": r.ttft}

    return _parts(answer, parts)


def read_for_one_written(answer):
    """Return prompt tokens prefilled in the machine time of one output token; NaN if there is none."""
    r = answer.request
    if r is None:
        return float("nan")
    return r.output_seconds / r.output_tokens * r.prompt_tokens / r.prompt.total


def where_prices_meet(chip):
    """Users at which a step that only reads weights costs as much per token as prefill, in 8 bits."""
    timed = calibration.operators(chip.name).gemm
    weights = "fp8" if "fp8" in timed and "fp8" in chip.peaks else "bf16"
    kernel = timed[weights]
    peak = weights if weights in chip.peaks else "fp16"  # as on a T4
    return chip.at(peak).flops * kernel.prefill / (2 * chip.memory_bandwidth * kernel.share)


@frame()
def over_users(case):
    """Return the prices of tokens, half of each prompt cached, over the users that share a machine."""
    for users in (1, 2, 4, 8, 16, 32, 64, 128):
        answer = tokenprice.ask(case.replace(concurrency=users, cached="50%"))
        if answer.feasible and answer.question.price_per_chip_hour:
            yield {"users": users, **answer.request.per_million}


@frame()
def ratios(questions, work, users):
    """Prices of output and of a cache hit over that of input, of questions and users."""
    for question, n in product(questions, users):
        answer = tokenprice.ask(question.replace(concurrency=n, **work))
        paid = answer.request.per_million if answer.feasible else {}
        over = {kind: paid.get(kind, np.nan) / paid.get("input", np.nan) for kind in ("output", "cached")}
        yield {"model": question.model.name, "users": n, **over}


@frame("drafted", "length", "measured", "predicted")
def drafts(curve="DeepSeek R1, MTP"):
    """Speed with drafts over speed without, published and computed, on eight B200s."""
    known = speculation.measured_curves()[curve]
    model, box = inferlib.load_model("DeepSeek V3"), System(inferlib.load_chip("B200"), 8)
    asked = {"weights": "fp4", "engine": "compiled", "layer_formats": {"attention": "bf16"}}
    served = Deployment(model, box, **asked)
    plain = served.step(1, 2000).total
    for n, (length, speedup) in enumerate(zip(known["length"], known["speedup"], strict=True), 1):
        drafts = served.replace(draft_tokens=n, acceptance_length=length)
        yield n, length, speedup, plain / drafts.step(1, 2000).total


@cache
def service():
    """``list_prices.toml``, parsed."""
    return stored.toml("serving/list_prices.toml")["service"]


@frame("a million tokens", "list, $", "cost at published speed, $", "computed, $")
def price_list():
    """DeepSeek's list price, what its own throughput costs, and what the kernel model computes.

    Returns dollars a million tokens: ``list``, ``cost`` at the published tokens per second of a box,
    ``computed``.
    """
    told, prompt = service(), 4096
    chip, model, price = (
        inferlib.load_chip(told["chip"]),
        inferlib.load_model("DeepSeek V3"),
        told["chip_price"],
    )
    n, m, sequences = told["decoder"], told["reader"], round(told["decoding"] / 8 / told["speed"])
    work, cached = Workload(n * sequences, told["context"], "fp8"), told["hit"] * prompt
    step = decode_step(model, System(chip, n), work, Layout(1, 1, n, n)).total
    # one prompt on each chip that prefills at the same time
    reader = Deployment(model, System(chip, m), Layout(1, 1, m, m), "fp8")
    whole, fresh = reader.prefill(prompt, cached).total, reader.prefill(prompt - cached).total
    computed = {
        "input": cost_per_million(fresh, (1 - told["hit"]) * prompt, 1, price),
        "cached": cost_per_million(whole - fresh, cached, 1, price),
        "output": cost_per_million(step, sequences, 1, price),
    }
    paid = 8 * price / 3600 * 1e6
    costs = {"input": paid / (told["reading"] * (1 - told["hit"])), "output": paid / told["decoding"]}
    return [(name, told["prices"][name], costs.get(name, 0.0), value) for name, value in computed.items()]


@frame("chip", "format", "start", "over engines", "for 1,000 deeper", "share")
def some_kernels():
    """A few kernels of the tables: start, depth and share of matrix products in 16 and 8 bits."""
    for chip in ("A100 80GB", "H100 SXM", "B200"):
        entry = calibration.load_operators()["chips"][chip]["gemm"]
        for name in ("bf16", "fp8"):
            if name in entry:
                start, share = entry[name]["start"], entry[name]["share"]
                span = f"{1e6 * start[1]:.1f} to {1e6 * start[2]:.1f}"
                depth = 1e9 * entry[name]["depth"][0]
                yield chip, name, f"{1e6 * start[0]:.1f}", span, f"{depth:.2f}", f"{share[0]:.2f}"


@frame("chip", "chips", "1 sequence", "64", "256")
def reduces():
    """Microseconds of one all-reduce of 8,192 values a sequence in 16 bits, by chips and sequences."""
    for chip in ("A100 80GB", "H100 SXM", "B200"):
        for n in (2, 8):
            link = calibration.operators(chip).link(n)
            times = [f"{1e6 * reduce_time(link, batch * 8192 * 2):.1f}" for batch in (1, 64, 256)]
            yield chip, n, *times


@frame("engine", "microseconds", "fitted", "leaving groups out")
def engines():
    """The fitted constants of engines in microseconds, with the span of fits that leave a group out."""
    for name, entry in calibration.engines()["class"].items():
        for constant, (value, least, greatest) in entry.items():
            spans = f"{_short(1e6 * least)} to {_short(1e6 * greatest)}"
            yield name, _MEANS[constant], _short(1e6 * value), spans


def _short(value):
    """Format with one decimal below ten, and as an integer from there on.

    Examples
    --------
    >>> _short(9.94), _short(10), _short(1234)
    ('9.9', '10', '1,234')
    """
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


_MEANS = {
    "layer": "a layer", "together": "a sequence, for each doubling of chips",
    "shared": "a block with a shared expert, others whole on chips",
    "box": "an all-reduce, for each doubling beyond a box", "rank": "a step, for each doubling of chips",
    "sequence": "a sequence", "host": "a layer of a prompt, at least, where attention is not plain",
    "ingress_delay": "a first token, on the way in and out",
}  # fmt: skip


POINT = ["model", "hardware", "weights", "tp", "dp", "prompt_tokens", "output_tokens", "concurrency"]


@frame("measured again by", "pairs", "median, %", "mean, %")
def noise():
    """Return how far rows of the same point differ: mean difference of pairs, in per cent of their mean.

    A point is a model, chip, format, layout, lengths and number of users.
    """
    table = fit.serving_rows()
    table = table[table.use == "clean"]
    found = {"the same version": [], "another version": [], "another engine": []}
    for _, own in table.groupby(POINT):
        for a, b in combinations(own.itertuples(), 2):
            kind = "another engine" if a.engine != b.engine else "another version"
            kind = "the same version" if (a.engine, a.version) == (b.engine, b.version) else kind
            found[kind].append(abs(a.tpot - b.tpot) / (a.tpot + b.tpot) * 2)
    return [(kind, len(d), 100 * np.median(d), 100 * np.mean(d)) for kind, d in found.items() if d]
