"""Fit the constants of engines; compute the kernel model's errors, left out by publisher and by model.

``python -m book.serving.fit`` writes ``engines.toml`` and ``calibration.toml`` of the library. Operators are not fitted
here: they come from tables (:mod:`book.serving.operators`). Every group of rows (one publisher, one model, one class of
engine) has the same weight, however many rows it has.
"""

from functools import cache
from importlib.resources import files
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd

from book import measured, stored
from book.frames import frame
from book.serving import sparse_attention_rows
from book.serving.sparse_attention_rows import factor
from book.synthesis import comparison
from inferlib import validation, variant
from inferlib.equation import unchecked
from inferlib.system import Layout, System, Workload
from inferlib.transformer import LatentAttention
from tokenprice import Question, ask, calibration, catalog, posterior, uncertainty
from tokenprice.calibration import checkpoint_formats
from tokenprice.deployment import Deployment, chip_peak, decode_step
from tokenprice.kernels import Engine
from tokenprice.prefill import (
    STEADY,
    ArrivalProcess,
    ClosedLoop,
    PrefillProfile,
    added_time,
    balance_steps,
    decode_batch,
    launch_floor,
    prefill_interference,
)
from tokenprice.request import request_of
from tokenprice.scheduler import Scheduler

CONFIDENCE = 0.8
FROZEN = "2026-11-28"  # rows of later days are a trial of all constants
# Judgements that no row decides, and what was changed after scores of rows were seen that fit nothing.
JUDGED = stored.toml("serving/judged.toml")
LEAST = 1.1  # least factor by which distance from the measurements widens an interval
DRAWN = 0.9  # mean length over the longest, where lengths are drawn between 80 and 100 % of it
SCATTERED = (
    "DeepSeek V3",
)  # TTFT errors depend on engine, size and load: no constant helps, so the interval is wide
MOST_USERS = 128  # TTFT is fitted up to this number of users; beyond, the queue dominates
# Fitted constants: constant of Engine, class, its unit step in the fit.
FITTED = (
    ("rank", "compiled", 1e-4), ("layer", "serving", 1e-5), ("together", "both", 1e-5),
    ("shared", "compiled", 1e-5), ("rank", "python-2024", 1e-3), ("sequence", "python-2024", 1e-4),
    ("box", "all", 1e-5),
)  # fmt: skip
ENGINE = {"known": None, "unknown": "serving"}  # the class that is taken where a question names none


def use(row):
    """Return ``"clean"``, or why a serving row is not scored."""
    if not row.known:
        return "model or chip not in the catalogue"
    return row.doubt or "clean"


def serving_rows():
    """All serving rows with ``use``."""
    table = measured.serving()
    table["use"] = [use(row) for row in table.itertuples()]
    point = ["model", "hardware", "engine", "concurrency", "prompt_tokens", "output_tokens"]
    repeated = table.duplicated([*point, "tpot", "ttft"])
    table.loc[(table.use == "clean") & repeated, "use"] = "the same measurement listed again"
    return table


def question(row):
    """Return the question of a serving row: model, system, workload, layout, formats of parts, class of engine."""
    weights = "fp8" if row.weights == "fp8 block" else row.weights
    blocks = dict.fromkeys(("feed-forward", "experts", "shared experts"), row.weights)
    if row.weights == "int4":  # rows of Kimi K2.5, whose file is stored as Kimi-K2-Thinking's
        stored, kept, _ = checkpoint_formats(catalog.load_model("Kimi K2 Thinking"))
        blocks = kept | {"experts": stored}
    system = System(catalog.load_chip(row.hardware), row.n_gpus)
    workload, layout = (
        Workload(row.concurrency, row.context, weights, row.cache),
        Layout(row.tp, 1, row.ep, row.dp),
    )
    keep, engine = blocks | {"attention": row.attention}, calibration.engine_class(row.engine)
    return catalog.load_model(row.model), system, workload, layout, keep, engine


@cache
def data():
    """Return a line per scored row: what is known without fitting, and the multiplier of each constant."""
    return pd.DataFrame([*_static(), *_closed(), *_small()])


def _line(row, publisher, model, system, workload, layout, engine, keep=None, prompt=0, output=1, **more):
    """``prompt`` and ``output``: tokens of a request, if the row is about requests."""
    named, balance = "sglang" if "sglang" in row.engine.lower() else engine, more.pop("dp_balance", 0)
    budget = Scheduler.of(named, system.chip).max_num_batched_tokens
    policy = Scheduler(max_num_batched_tokens=budget, dp_balance=balance)
    told = {"layer_formats": keep, "scheduler": policy}
    served, running = Deployment.of(model, system, workload, layout, engine=Engine(), **told), workload.batch
    if prompt:
        workload = workload.replace(batch=decode_batch(served, running, output, prompt))
    step = served.step(workload.batch, workload.context)
    ranks = layout.tp * (layout.dp if layout.ep > 1 else 1)
    doublings = np.log2(ranks)
    beyond = np.log2(
        max(layout.tp / min(layout.tp, calibration.chips_per_node(system.chip) or system.domain), 1)
    )
    sequences = workload.batch / layout.dp
    peak = chip_peak(system.chip, workload).flops * system.count / layout.dp
    in_step, pieces, own_steps, reading, others, added = served.in_step, 1, 1, 0.0, 0.0, 0.0
    if prompt:
        at = Deployment.of(model, system, workload, layout, engine=engine, **told)
        prompts = PrefillProfile.of(at, prompt)
        pieces, reading = prompts.chunks, prompts.full.total
        here = at.step(workload.batch, workload.context)
        own_steps = prompts.steps(policy.room(max(sequences, 1) - 1))
        made = request_of(at, here, prompts, output, running, arrival_process=more.pop("protocol", STEADY))
        others, added = made.tpot - here.total, added_time(prompts.full, here, sequences - 1)
    if balance and in_step > 1:
        begun = sequences / output
        balance, in_step = balance_steps(begun, in_step, balance) * (here.total + begun * added), 1
    return {"ttft": np.nan, "users": workload.batch, "fits": True} | more | {
        "others": others, "in_step": in_step, "pieces": pieces, "own_steps": own_steps,
        "balance": float(balance), "added": added,
        "most": budget / (1 + prompt / output),
        "ideal": prefill_interference(max(sequences, 1), output, 2 * model.n_active * prompt / peak),
        "prompt_time": reading, "prompt_tokens": prompt, "output_tokens": output,
        "id": row.Index, "publisher": publisher, "model": model.name, "engine": engine, "hardware": system.chip.name,
        "lent": calibration.fallback_chip(system.chip.name) != system.chip.name, "experts": bool(model.sparse),
        "copies": layout.dp, "n_gpus": system.count, "batch": workload.batch,
        "context": workload.context, "weights": getattr(row, "weight_format", None) or row.weights,
        "bare": step.total, "asked": (model, system, workload, layout, keep),
        "bound": comparison.bound(model, system, workload, layout, workload.weights).total,
        "measured": row.tpot, "terms": step.critical,
        "url": row.url,
        "layer": float(model.n_layers), "together": sequences * doublings, "rank": doublings,
        "shared": shared_spread(model, layout), "sequence": sequences, "box": 2 * model.n_layers * beyond,
    }  # fmt: skip


def shared_spread(model, layout):
    """Count blocks with a shared expert whose routed experts are spread whole over chips."""
    blocks = (group.count for group in model.layers if getattr(group.feed_forward, "d_shared", 0))
    return float(sum(blocks)) if layout.ep > 1 else 0.0


def _static():
    table = comparison.rows()
    for row in table[table.use == "clean"].itertuples():
        if row.overlap == "two-batch":
            continue  # alternating half batches are another schedule
        model, system, workload, layout = comparison.question(row)
        workload = comparison.as_stored(row, workload)
        if not decode_step(model, system, workload, layout).feasible:
            continue
        engine = calibration.engine_class(row.engine)
        publisher = {"aiconfigurator": "InferenceX", "vLLM": row.source}.get(row.publisher, row.publisher)
        lengths = {"prompt": DRAWN * row.prompt_tokens, "output": DRAWN * row.output_tokens}
        closed = row.batch_meaning.startswith("closed")
        yield _line(row, publisher, model, system, workload, layout, engine, **lengths if closed else {})


def _closed():
    table = serving_rows()
    for row in table[table.use == "clean"].itertuples():
        model, system, workload, layout, keep, engine = question(row)
        longest = row.prompt_tokens + row.output_tokens
        served = Deployment.of(model, system, workload, layout, engine=engine, layer_formats=keep)
        places = served.max_sequences(workload.context, longest)
        running = min(row.concurrency, max(places, layout.dp))
        protocol = ArrivalProcess(row.requests_per_user, row.fixed_lengths)
        yield _line(
            row,
            row.publisher,
            model,
            system,
            workload.replace(batch=running),
            layout,
            engine,
            keep,
            row.prompt_tokens,
            row.output_tokens,
            ttft=row.ttft,
            users=row.concurrency,
            fits=row.concurrency <= places,
            rounds=row.requests_per_user,
            equal=row.fixed_lengths,
            dp_balance=row.hold,
            protocol=protocol,
            group=protocol.group,
            hosted=launch_floor(served.replace(engine=Engine(host=1.0))) * (engine == "serving"),
        )


def _small():
    """Steps of a few users, by AccelMark.

    Output length is tokens over requests of its sustained runs; prompt length follows from its throughputs with and
    without prompts.
    """
    table = stored.rows("serving/accelmark.csv")
    table = table.assign(tpot=1e-3 * table.ms, id=[f"accelmark-{n}" for n in table.index]).set_index("id")
    for row in table.itertuples():
        q = Question(row.model, row.machine, weights=row.weights)
        work = Workload(row.users, row.prompt + row.output / 2, row.weights)
        asked = q.model, q.machine, work, Layout(q.machine.count)
        engine = calibration.engine_class(row.engine)
        yield _line(row, row.publisher, *asked, engine, prompt=row.prompt, output=row.output)


def features(table, engine=None):
    """Return the multiplier of each fitted constant, one column per constant, in steps of ``FITTED``."""
    engines = table.engine if engine is None else pd.Series(engine, index=table.index)
    columns = []
    for name, whose, unit in FITTED:
        chosen = {"both": engines.isin(["compiled", "serving"]), "all": engines != ""}.get(whose)
        chosen = engines == whose if chosen is None else chosen
        columns.append(unit * table[name] * chosen)
    return np.array(columns, float).T


def weights(table):
    """The weight of each row: groups of publisher, model and class count alike."""
    groups = table.groupby(["publisher", "model", "engine"]).measured
    return 1 / np.sqrt(groups.transform("size").to_numpy())


def fit(table):
    """Fit the constants, in steps of ``FITTED``.

    Rows with copies of the attention, and of chips that use another chip's kernels, are scored but not fitted.
    """
    seen = table[(table.copies == 1) & ~table.lent]
    return _fitted(seen, features(seen), seen.bare + seen.others)


def _fitted(seen, x, known):
    """Fit the multipliers ``x``, other times known: least squares of the logarithm, large misses counted linearly."""
    from scipy.optimize import least_squares

    w, known, measured = weights(seen), np.asarray(known), seen.measured.to_numpy()

    def misses(c):
        far = w * _softened(np.log((known + x @ c) / measured))
        return np.append(far, _LEANING * (c - 1))

    found = least_squares(misses, np.full(x.shape[1], 0.3), **_TO_THE_END)
    return np.where(x.any(axis=0), _digits(found.x), 0.0)


def napkin(table):
    """Return the multipliers of a napkin model's six constants, which needs no timed operators.

    A multiple of the bound; a time per layer, more of it in serving engines, and more per doubling of chips; and the
    prefills of others at two shares of the peak, of dense models and of experts.
    """
    layer, prompts = 1e-5 * table.layer, table.ideal
    columns = [
        table.bound, layer, layer * (table.engine == "serving"), layer * table["rank"], prompts * ~table.experts,
        prompts * table.experts,
    ]  # fmt: skip
    return np.array(columns, float).T


def napkins(by=None):
    """Log(predicted / measured) of the napkin model on today's rows: fitted to all, or with each group left out."""
    table = data()[today()]
    seen = table[table.copies == 1]
    if by is None:
        return np.log(napkin(table) @ _fitted(seen, napkin(seen), 0.0) / table.measured)
    left = {name: seen[seen[by] != name] for name in table[by].unique()}
    folds = {name: _fitted(rest, napkin(rest), 0.0) for name, rest in left.items()}
    return _logs(table, by, folds, lambda own, found: napkin(own) @ found / own.measured)


# Constants are not negative; the search continues until all CPUs agree on six digits.
_TO_THE_END = {"bounds": (0, np.inf), "method": "dogbox", "jac": "3-point"} | dict.fromkeys(
    ("ftol", "xtol", "gtol"), 1e-13
)


# If rows cannot separate two constants (a class of engine without its only other model), both stay near their start.
_LEANING = 1e-3


def _digits(found, digits=6):
    """Round to digits that are equal on any CPU."""
    return np.array([float(f"{value:.{digits}g}") for value in found])


def _softened(logs, far=0.1):
    """Residuals whose squares grow only linearly beyond ``far``, so that a few outliers do not decide the fit.

    Examples
    --------
    >>> [round(float(_softened(miss)), 6) for miss in (1e-3, -1e-3)]
    [0.001, -0.001]
    >>> round(float(_softened(100) ** 2), 2)  # 2 * far * 100, less 2 * far**2
    19.98
    """
    return np.sign(logs) * far * np.sqrt(2 * (np.sqrt(1 + (logs / far) ** 2) - 1))


def predict(table, found, engine=None):
    """Predict TPOT in seconds with fitted constants; ``engine`` overrides the row's own class."""
    return table.bare + table.others + features(table, engine) @ found


@cache
def left_out(by, engine=None):
    """Return log(predicted / measured), every publisher or model predicted by a fit to the others.

    ``by``: "publisher", "model". ``engine``: class to assume for all rows (default: each row's own).
    """
    return _logs(data(), by, _folds(by), lambda own, found: predict(own, found, engine) / own.measured)


def _logs(table, by, folds, ratio):
    """Logarithms of a ratio of rows, by the constants of their fold."""
    logs = pd.Series(np.nan, index=table.index)
    for name, found in folds.items():
        own = table[table[by] == name]
        logs[own.index] = np.log(ratio(own, found))
    return logs


@cache
def _folds(by, first=False):
    """Fit the constants without each publisher or model: of steps, or of ``first`` tokens.

    A constant that only one group determines keeps its value of all rows.
    """
    table, how, every = (first_rows(), fit_first, fit_first_all()) if first else (data(), fit, fit_all())
    folds = {name: how(table[table[by] != name]) for name in sorted(table[by].unique())}
    return {name: np.where(found, found, every) for name, found in folds.items()}


def groups(table):
    """Return the groups of rows (publisher and model): rows of a group are alike, and count as one."""
    return table.publisher + ", " + table.model


def slices():
    """Return the rows of each class for which an interval is stated, without those that have a caution.

    A question without an engine is assumed to be about one of today: rows of 2024's Python engine are a class of their
    own.
    """
    table = data()
    near = table.fits.astype(bool) & (table.box == 0) & ~table.lent
    today, one = table.engine != "python-2024", table.copies == 1
    kinds = {
        "dense": today & one & ~table.experts, "experts": today & one & table.experts, "copies": today & ~one,
        "python-2024": ~today,
    }  # fmt: skip
    return {kind: near & rows for kind, rows in kinds.items()}


@frame("slice", "engine", "left out", "rows", "groups", "error", "of groups", "bias", "factor")
def errors():
    """Mean absolute error and the factor that holds 80 %, by slice, engine known or not, and way of leaving out.

    ``error`` is the mean of |predicted/measured - 1| over rows, ``of groups`` over groups, ``bias`` the mean with its
    sign.
    """
    for known, by, (name, chosen) in product(("known", "unknown"), ("publisher", "model"), slices().items()):
        own, whose = left_out(by, ENGINE[known])[chosen], groups(data())[chosen]
        miss = np.abs(np.expm1(own))
        of_groups = float(miss.groupby(whose).mean().mean())
        row = (name, known, by, len(own), whose.nunique(), float(miss.mean()), of_groups)
        yield *row, float(own.mean()), factor(own, whose)


def scored(changed, function):
    """Return errors by slice of the model as it is and with a ``function`` in place of an equation, engines refitted.

    The worse way of leaving out, as a mean of |predicted/measured - 1|, for known engines; takes half a minute.

    Examples
    --------
    >>> from tokenprice import kernels
    >>> scored(kernels.reduce_time, lambda link, message: 2 * link.latency + message / link.bandwidth)  # doctest: +SKIP
    """
    now = _known_errors()
    _forget()
    try:
        with variant(changed, function):
            return pd.DataFrame({"now": now, changed.__name__: _known_errors()})
    finally:
        _forget()


def _known_errors():
    table = errors()
    return table[table.engine == "known"].groupby("slice", sort=False).error.max()


def _forget():
    """Clear results computed with changed equations or with old files."""
    fitted = left_out, _folds, fit_all, first_rows, fit_first_all, first_left_out
    for known in (data, asked, deployments, sparse_attention_rows.predicted, *fitted):
        known.cache_clear()


def spread(logs, rows):
    """Width of an interval on one chip, a logarithm, and the part by which each doubling of chips makes it wider.

    The part is the maximum-likelihood estimate for misses of groups with a Laplace distribution.
    """
    from scipy.optimize import minimize_scalar

    away, chips, whose = np.abs(logs), rows["rank"], groups(rows)
    weight = 1 / whose.map(whose.value_counts())

    def unlikely(part):
        wider = 1 + part * chips
        return np.average(np.log(wider), weights=weight) + np.log(np.average(away / wider, weights=weight))

    part = minimize_scalar(unlikely, bounds=(0, 1), method="bounded", options={"xatol": 1e-7}).x
    return np.log(factor(away / (1 + part * chips), whose)), float(part)


def today():
    """Rows without a caution of engines that are not of 2024."""
    return np.any([rows for name, rows in slices().items() if name != "python-2024"], axis=0)


def stated_factors():
    """Return for known and unknown engines the factor on one chip, and the part by which each doubling widens it."""
    rows, old, found = data()[today()], slices()["python-2024"], {}
    for known, engine in ENGINE.items():
        logs = pd.concat(
            [left_out(by, engine)[rows.index] for by in ("publisher", "model")], ignore_index=True
        )
        width, part = spread(logs, pd.concat([rows, rows], ignore_index=True))
        found[known] = np.exp(width), part
    each = np.abs(left_out("publisher")[old]).groupby(groups(data())).quantile(CONFIDENCE)
    return found | {"python-2024": (np.exp(each.max()), 0.0)}  # with so few groups, the widest factor


def pair_factor():
    """Return the factor that holds the ratio of two steps that differ in layout or format, and at most twice in users.

    Both were measured by one publisher, for one model, chip and engine: shared errors cancel.
    """
    table, alike = data(), ["publisher", "model", "hardware", "engine", "prompt_tokens", "output_tokens"]
    table = table.assign(how=[repr(asked[2].weights) + repr(asked[3]) for asked in table.asked])[today()]
    found = []
    for by in ("publisher", "model"):
        own = table[[*alike, "how", "users"]].assign(log=left_out(by))
        pairs = own.merge(own, on=alike, suffixes=("", "_other"))
        pairs = pairs[(pairs.how < pairs.how_other) & (np.abs(np.log2(pairs.users / pairs.users_other)) <= 1)]
        found.append(factor(pairs.log - pairs.log_other, groups(pairs)))
    return max(found)


@frame("class", "group", "rows", "within", "score", "of a constant")
def trial(by):
    """Every group against the interval that the other groups give, and against one constant.

    ``within``: the share of its rows inside; ``score``: the interval score of the logarithms, twice the width and ten
    times what lies beyond (Gneiting and Raftery, "Strictly proper scoring rules, prediction, and estimation", 2007);
    ``of a constant``: the score of the one factor that is best on all other groups.
    """
    table = data()[today()]
    logs, whose = left_out(by)[table.index], groups(table)
    kinds, tries = pd.concat(slices(), axis=1).idxmax(axis=1), np.log(np.linspace(1.02, 2, 99))
    scores = pd.DataFrame({one: _score(logs, one) for one in tries}).groupby(whose).mean()
    for (name, kind), own in table.groupby([whose, kinds[table.index]]):
        others, own = whose != name, logs[own.index]
        width, part = spread(logs[others], table[others])
        wide, best = width * (1 + part * table["rank"][own.index]), scores.drop(name).mean().idxmin()
        row = kind, name, len(own), np.mean(np.abs(own) <= wide)
        yield *row, _score(own, wide).mean(), _score(own, best).mean()


def _score(logs, width):
    return 2 * width + 2 / (1 - CONFIDENCE) * np.maximum(np.abs(logs) - width, 0)


# --- Distance from the measurements ---------------------------------------------------------------------------


def distances():
    """Return the errors at each distance from the measurements that rows cover: logarithms, groups, the usual error."""
    table, logs = data(), left_out("publisher")
    near, full, whose = np.any([*slices().values()], axis=0), ~table.fits.astype(bool), groups(table)
    usual = factor(logs[near], whose[near])
    told, untold = drafted(), asked().query("kind == 'drafts, length not told'")
    untold = np.log(untold.answered / untold.measured), untold.publisher
    found = {"users": (logs[full], whose[full], usual), "lent": (*lent(), usual), "drafts": (*told, usual)}
    found["untold"] = *untold, factor(*told)
    own = asked().query("kind == 'LPDDR'")
    beside = np.log(own.factor.mean()) ** 2 - np.log(uncertainty.load_calibration()["widen"]["memory"]) ** 2
    found["memory"] = np.log(own.answered / own.measured), own.publisher, np.exp(np.sqrt(beside))
    first, logs = first_rows(near=False), first_left_out("publisher", near=False)
    first = first[~first.model.isin(SCATTERED)]
    copied = first.copies > 1
    for name, own in {"most_users": (first.users > MOST_USERS) & ~copied, "copies": copied}.items():
        found[name] = logs[first.index][own], groups(first)[own], first_factor()
    return found


def widening():
    """Return the factor of every caution: the interval needed there, less the usual one, in squares."""

    def wider(logs, groups, usual):
        left = np.log(factor(logs, groups)) ** 2 - np.log(usual) ** 2
        return max(LEAST, float(np.exp(np.sqrt(max(left, 0)))))

    return JUDGED["widen"] | {name: wider(*found) for name, found in distances().items()}


def lent(most=60):
    """Return the errors of steps on chips with known kernels if another chip's kernels stand in, and the chips."""
    table, found = data(), []
    for chip, other in JUDGED["lent"].items():
        own = table[table.hardware == chip]
        own = own.iloc[:: max(len(own) // most, 1)]
        stands_in = calibration.operators(other, catalog.load_chip(chip).scale_up_bandwidth)
        bare = [
            decode_step(*asked, engine=Engine(), layer_formats=keep, operators=stands_in).total
            for *asked, keep in own.asked
        ]
        found.append(np.log((bare + own.others + features(own) @ fit_all()) / own.measured))
    logs = pd.concat(found)
    return logs, table.hardware[logs.index]


def drafted():
    """Return log(predicted / measured) of steps with drafts, and the models; nothing is fitted to them."""
    own = sparse_attention_rows.predicted().dropna(subset="drafted")
    return np.log(own.drafted), own.model


# --- Rows that no constant is fitted to -----------------------------------------------------------------------

ABOUT = ("id", "kind", "publisher", "seen", "ms", "first_ms", "date", "url", "licence", "caution")


@cache
def asked():
    """Ask the rows of ``asked_rows.csv`` as a user would; times in seconds.

    Columns that are not :data:`ABOUT` a row are options of a question. ``seen``: date from which a row no longer counts
    as a blind test; until then it was scored without influence on any constant.
    """
    rows = stored.rows("serving/asked_rows.csv", dtype=str, keep_default_na=False)
    rows, found = rows[rows.kind != "bursts"], []
    for row in rows.drop(columns=list(ABOUT)).to_dict("records"):
        answer = ask(
            row.pop("model"), row.pop("machine"), **{name: said for name, said in row.items() if said}
        )
        r, fits = (
            answer.request,
            answer.feasible and (answer.question.concurrency or 1) <= answer.max_sequences,
        )
        first = (r.ttft, r.first_factor) if r and fits else (np.nan, np.nan)
        found.append(
            (answer.seconds if answer.feasible else np.nan, answer.factor, *first, answer.machine.chip.name)
        )
    names = ["answered", "factor", "first", "first_factor", "chip"]
    rows = rows.assign(**dict(zip(names, zip(*found, strict=True), strict=True)))
    times = {name: 1e-3 * pd.to_numeric(rows[of]) for name, of in (("measured", "ms"), ("ttft", "first_ms"))}
    return rows.assign(**times).dropna(subset="answered")


def slower():
    """Return measured slowdowns of chips relative to the kernels used for them, by kind of model.

    Median, least and greatest over publishers, and the factor by which the rows widen an interval; for other chips
    there are too few rows.
    """
    found = {}
    for (chip, name), own in asked().groupby(["chip", "kind"]):
        kind = name.rpartition(", ")[2]
        if kind in calibration.MEASURED:
            now = calibration.slowdown(chip, kind)
            times = own.measured / own.answered * now.median
            each = times.groupby(own.publisher).median()
            spans = each.median(), each.min(), each.max()
            wide = JUDGED["widen"]["maker"]
            if kind != "experts":  # what the rows need, less what they have anyway
                beside = np.log(own.factor.mean()) ** 2 - np.log(now.widen) ** 2
                logs = np.log(times / spans[0])
                # one publisher says nothing of others: all its rows are held
                needed = np.log(factor(logs, own.publisher)) ** 2 if len(each) > 1 else (logs**2).max()
                wide = float(np.exp(np.sqrt(max(needed - beside, np.log(LEAST) ** 2))))
            found.setdefault(chip, {})[kind] = (*spans, wide)
    return found


# --- The first token ------------------------------------------------------------------------------------------

# Initial values of the search; service overhead by class of engine. From a host of 5e-4 the search without Qwen3 235B
# ends in a worse minimum, where no prompt waits for the host.
FIRST = {"late": 1.0, "host": 8e-4, "serving": 0.03, "compiled": 0.03}


@cache
def first_rows(near=True):
    """Return rows with a TTFT and memory for all users.

    ``near``: those that are fitted: at most ``MOST_USERS`` users, no copies, and not of ``SCATTERED`` models.
    """
    table = data()
    table = table.assign(step=table.bare + features(table) @ fit_all())
    table = table[table.ttft.notna() & table.fits]
    fitted = (table.users <= MOST_USERS) & (table.copies == 1) & ~table.model.isin(SCATTERED)
    return table[fitted] if near else table


@unchecked
def fit_first(table):
    """Fit the delay of first tokens with experts, the host's floor, and service overheads.

    The search is over logarithms; a constant that no row determines keeps its initial value, except that the host's
    floor is then zero.
    """
    from scipy.optimize import least_squares

    w, start = weights(table), np.log([*FIRST.values()])
    predicted, seconds = first_token(table), table.ttft.to_numpy()

    def misses(c):
        return np.append(w * _softened(np.log(predicted(np.exp(c)) / seconds)), 0.02 * (c - start))

    found = np.exp(least_squares(misses, start, **_TO_THE_END | {"bounds": (-np.inf, np.inf)}).x)
    found[list(FIRST).index("host")] *= table.hosted.any()
    return _digits(found, 4)  # the floor makes the sum of squares bend, so the search converges less sharply


def first_token(table):
    """Seconds to the first token of rows, as a function of the constants of ``FIRST``."""
    t = SimpleNamespace(**{name: table[name].to_numpy() for name in table})
    passes = np.maximum(t.pieces, 1)
    protocol = SimpleNamespace(burst=1 / t.rounds, group=t.group)

    def predicted(found):
        late, host, serving, compiled = found
        ingress_delay = np.where(t.engine == "serving", serving, compiled)
        slower = np.where(t.experts, late, 1.0)
        own = np.maximum(slower * t.prompt_time, passes * host * t.hosted)
        other = np.maximum(slower * t.added, t.pieces * host * t.hosted)
        times = t.step, t.added, own, other, t.pieces, ingress_delay, t.own_steps
        copies = {"running": t.users, "lanes": t.copies, "in_step": t.in_step}
        return ClosedLoop(protocol, t.output_tokens, *times, most=t.most, **copies).ttft + t.balance

    return predicted


@cache
def fit_all():
    """The constants fitted to all rows."""
    return fit(data())


@cache
def fit_first_all():
    """The constants of first tokens fitted to all rows."""
    return fit_first(first_rows())


@cache
def first_left_out(by, near=True):
    """Logarithms of predicted over measured times to the first token, left out by publisher or model."""
    rows, folds = first_rows(near), dict(_folds(by, first=True))
    folds |= dict.fromkeys(set(rows[by]) - set(folds), fit_first_all())  # without own fit: all rows
    return _logs(rows, by, folds, lambda own, found: first_token(own)(found) / own.ttft)


def latent():
    """Rows of latent attention: ``token`` and ``first``, predicted over measured with the model left out, or NaN."""
    table, first = data(), first_left_out("model", near=False)
    table = table.assign(token=np.exp(left_out("model")), first=np.exp(first.reindex(table.index)))
    table.loc[table.users > MOST_USERS, "first"] = np.nan
    own = table.asked.map(
        lambda asked: any(isinstance(one.attention, LatentAttention) for one in asked[0].layers)
    )
    return table[own & table.fits.astype(bool)].rename(columns={"copies": "dp_attention"})


def first_factor():
    """The factor that holds the times to the first token, left out either way."""
    return max(factor(first_left_out(by), groups(first_rows())) for by in ("publisher", "model"))


# --- The files ------------------------------------------------------------------------------------------------


def engine_tables():
    """The constants of every class: value, and least and greatest over the fits with one group left out."""
    first = dict(zip(FIRST, _spans(fit_first_all(), first=True), strict=True))
    found = {name: {"ingress_delay": first[name]} for name in ("compiled", "serving")}
    found["serving"]["host"] = first["host"]
    found["python-2024"] = {"ingress_delay": first["serving"]}  # its TTFT was not measured
    for (name, whose, unit), span in zip(FITTED, _spans(fit_all()), strict=True):
        for target in {"both": ("compiled", "serving"), "all": tuple(found)}.get(whose, (whose,)):
            found[target][name] = unit * span
    return found | {"eager": found["serving"] | {"layer": found["serving"]["layer"] + JUDGED["eager"]}}


def _spans(fitted, first=False):
    """Return constants with the least and greatest value over the fits with one group left out that determine them."""
    folds = np.array([one for by in ("publisher", "model") for one in _folds(by, first).values()])
    known = np.where(folds, folds, np.nan)
    return np.array([fitted, np.nanmin(known, axis=0), np.nanmax(known, axis=0)]).T


def engines_toml():
    """The text of ``engines.toml``."""
    place = "serving/engines.toml.jinja"
    return stored.filled(place, software=JUDGED["software"], classes=engine_tables(), slower=slower())


# --- Deployments of one's own ---------------------------------------------------------------------------------

ENOUGH, HEAVY = 5, 12  # rows of a deployment; more rows than ``HEAVY`` add no weight


@cache
def deployments(first=False):
    """Public deployments of at least five rows: model, features and log(measured / predicted) of each.

    Steps are predicted without their own publisher; those of 2026 (``recent.csv``) fitted nothing. ``first``: of
    times to the first token.
    """
    rows, logs = (first_rows(), first_left_out("publisher")) if first else (data(), left_out("publisher"))
    how = [repr((a[2].cache, a[3], a[4])) for a in rows.asked]
    rows = rows.assign(y=-logs, how=how, tokens=rows.prompt_tokens)
    rows = rows[(rows.tokens > 0) & (rows.engine != "python-2024")]
    found = list(rows.groupby(["publisher", "model", "hardware", "n_gpus", "engine", "weights", "how"]))
    if not first:
        late = sparse_attention_rows.predicted()
        late = late.assign(y=-np.log(late.token), users=late.concurrency, tokens=late.scale * late.isl)
        found += list(late.groupby(["model", "chip", "count_", "dp_attention", "ep", "engine", "weights"]))
    found = [own for own in (own.dropna(subset="y") for _, own in found) if len(own) >= ENOUGH]
    at = (np.array([*map(posterior.features, own.users, own.tokens)]) for own in found)
    return [(own.model.iloc[0], x, own.y.to_numpy()) for own, x in zip(found, at, strict=True)]


def own_widths(deployments):
    """Standard deviations of level, both slopes and noise, by the marginal likelihood of deployments."""
    every = [np.c_[x, y] for _, x, y in deployments]
    n, squares = np.array([*map(len, every)]), np.array([one.T @ one for one in every])

    def unlikely(logs):
        noise = np.exp(2 * logs[3])
        # Woodbury's identity: a matrix of four rows in place of one with a row per measurement
        penalised = squares + np.diag([*(noise / np.exp(2 * logs[:3])), 0])
        left = 1 / np.linalg.inv(penalised)[:, 3, 3]  # sum of squares that level and slopes do not explain
        size = np.linalg.slogdet(penalised[:, :3, :3])[1] + 2 * logs[:3].sum() + 2 * (n - 3) * logs[3]
        return np.minimum(n, HEAVY) / n @ (left / noise + size)

    from scipy.optimize import minimize

    how = {"method": "Nelder-Mead", "options": {"xatol": 1e-3, "fatol": 2e-3, "maxiter": 800}}
    return np.exp(minimize(unlikely, np.log([0.15, 0.1, 0.1, 0.1]), **how).x)


def ladder(rows=(0, 1, 2, 3), draws=8):
    """Measure the worth of own rows: errors of a deployment's other rows, with prior widths from other models only."""
    every, draw, each = deployments(), np.random.default_rng(0), []
    for name in dict.fromkeys(one[0] for one in every):
        widths = own_widths([one for one in every if one[0] != name])
        for _, x, y in (one for one in every for _ in range(draws) if one[0] == name):
            order = draw.permutation(len(y))
            for given in rows:
                mine, rest = order[:given], order[given:]
                after = posterior.conditioned(widths, x[mine], y[mine])
                miss, width = y[rest] - x[rest] @ after.mean, np.log([after.width(one) for one in x[rest]])
                error, inside = np.abs(np.expm1(-miss)), np.abs(miss) <= width
                means = (100 * error, 100 * inside, width, _score(miss, width))
                each.append((given, *(np.mean(one) for one in means)))
    names = ["rows of one's own", "error, %", "inside, %", "within, times", "interval score"]
    found = pd.DataFrame(each, columns=names).groupby(names[0], as_index=False).mean()
    return found.assign(**{names[3]: np.exp(found[names[3]])}).round(2)


def calibration_toml():
    """The text of ``calibration.toml``."""
    rows, first = data(), first_rows()
    longest = first.prompt_tokens / np.where(first.equal.astype(bool), 1, DRAWN)
    return stored.filled(
        "serving/calibration.toml.jinja", frozen=FROZEN, confidence=CONFIDENCE, rows=rows, up=_up,
        seen={"publishers": rows.publisher, "models": rows.model, "chips": rows.hardware, "formats": rows.weights},
        params=min(catalog.load_model(name).n_params for name in set(rows.model)) / 1e6,
        tp=2 ** rows["rank"][rows.copies == 1].max(), expert_chips=rows.n_gpus[rows.copies > 1].max(),
        pair=pair_factor(), errors=errors().groupby(["slice", "engine"], sort=False).error.max(),
        factors=stated_factors(), late=fit_first_all()[list(FIRST).index("late")], first=first,
        most_users=MOST_USERS, prompt=longest.max(), first_factor=first_factor(), widen=widening(),
        first_error=max(np.abs(np.expm1(first_left_out(by))).mean() for by in ("publisher", "model")),
        own={"token": deployments(), "first": deployments(first=True)}, widths=own_widths, changed=JUDGED["changed"],
    )  # fmt: skip


def _up(factor):
    """Round up, so that the row at the edge of an interval is inside."""
    return f"{np.ceil(1e3 * factor) / 1e3:.4g}"


def attention_toml():
    """The text of ``sparse_attention.toml``."""
    return sparse_attention_rows.as_toml(latent())


FILES = {"engines": engines_toml, "calibration": calibration_toml, "sparse_attention": attention_toml}


def main():
    """Fit and write the files until nothing changes, because engines are fitted with the files' own prefill."""
    made = {}
    while made != (made := {name: text() for name, text in FILES.items()}):
        for name, text in made.items():
            (files("tokenprice") / f"{name}.toml").write_text(text, "utf-8", newline="\n")
        _forget()
        read = validation.read_package_toml, uncertainty.load_calibration, calibration.engines
        for known in (*read, calibration._engine, calibration.operators):
            known.cache_clear()
    print(*made.values(), errors().round(3).to_string(), sep="\n")


if __name__ == "__main__":
    main()
