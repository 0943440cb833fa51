"""The constants of engines, fitted; the errors of the sixth model, left out by publisher and by model.

``python -m book.serving.fit`` writes ``engines.toml`` and ``calibration.toml`` of the library. Operators are not
fitted here: they come from tables (:mod:`book.serving.operators`). Every group of rows (one publisher, one model,
one class of engine) has the same weight, however many rows it has.
"""

from functools import cache
from importlib.resources import files

import numpy as np
import pandas as pd

from inferlib import catalog, checks, measured
from inferlib.principles import roofline
from inferlib.principles.profile import profile_of
from inferlib.serving import constants, decode_step
from inferlib.serving.kernels import Engine
from inferlib.serving.prompt import first_token_time, others_time, prompt_pass, room
from inferlib.system import Layout, System, Workload, chip_peak

CONFIDENCE = 0.8
MOST_USERS = 128  # times to the first token are fitted up to so many users; beyond them the queue decides
# What is fitted: constant of Engine, class, its unit step in the fit.
FITTED = (
    ("layer", "compiled", 1e-5), ("layer", "serving", 1e-5), ("together", "both", 1e-5),
    ("base", "python-2024", 1e-3), ("rank", "python-2024", 1e-3), ("sequence", "python-2024", 1e-4),
    ("box", "all", 1e-5),
)  # fmt: skip
SOFTWARE = (
    ("(2024", "python-2024"), ("nightly", "python-2024"), ("vllm", "serving"), ("sglang", "serving"),
    ("tensorrt", "compiled"), ("trtllm", "compiled"), ("gpt-fast", "compiled"), ("lmdeploy", "compiled"),
    ("fastertransformer", "compiled"),
)  # fmt: skip


def use(row):
    """``"clean"``, or why a serving row is kept and not scored."""
    if not row.known:
        return "model or chip not in the catalogue"
    if row.tp > 8:
        return "tensor parallel over several boxes, network not stated"
    return "clean"


def serving_rows():
    """All serving rows with ``use``."""
    table = measured.serving()
    table["use"] = [use(row) for row in table.itertuples()]
    repeated = table.duplicated(
        ["model", "hardware", "engine", "concurrency", "prompt_tokens", "output_tokens", "tpot", "ttft"]
    )
    table.loc[(table.use == "clean") & repeated, "use"] = "the same measurement listed again"
    return table


def question(row):
    """What a serving row asks: model, system, workload, layout, formats of parts, class of engine."""
    weights = {"fp8 block": "fp8", "mxfp4": constants.STORED["mxfp4"]}.get(row.weights, row.weights)
    keep = dict.fromkeys(("feed-forward", "experts", "shared experts"), row.weights) | {
        "attention": row.attention
    }
    system = System(_chip(row.hardware), row.n_gpus)
    workload = Workload(row.concurrency, row.context, weights, row.cache)
    return (
        _model(row.model),
        system,
        workload,
        Layout(row.tp, 1, row.ep, row.dp),
        keep,
        constants.engine_class(row.engine),
    )


@cache
def _model(name):
    return catalog.load_model(name)


@cache
def _chip(name):
    return catalog.load_chip(name)


@cache
def data():
    """One line for every row that is scored: what is known without fitting, and what multiplies each constant.

    Returns
    -------
    pandas.DataFrame
        ``id``, ``publisher``, ``model``, ``engine`` (class), ``experts``, ``copies`` (of the attention), ``bare``
        (the step without its engine) and ``others`` in seconds, ``measured``, ``ttft``, ``prompt_time``, ``users``,
        ``step_features`` and so on.
    """
    return pd.DataFrame([*_static(), *_closed()])


def _line(row, publisher, model, system, workload, layout, engine, keep=None, **more):
    step = decode_step(model, system, workload, layout, engine=Engine(), keep=keep)
    ranks = layout.tp * (layout.dp if layout.ep > 1 else 1)
    doublings = np.log2(ranks)
    beyond = np.log2(max(layout.tp / min(layout.tp, system.domain), 1))
    sequences = workload.batch / layout.dp
    return more | {
        "id": row.Index, "publisher": publisher, "model": model.name, "engine": engine, "hardware": system.chip.name,
        "experts": bool(model.sparse), "copies": layout.dp, "n_gpus": system.count, "batch": workload.batch,
        "context": workload.context, "weights": getattr(row, "weight_format", None) or row.weights,
        "bare": step.total,
        "bound": bound(model, system, workload, layout), "measured": row.tpot, "terms": step.counted,
        "url": row.url, "software": row.engine,
        "layer": float(model.n_layers), "together": sequences * doublings, "base": 1.0, "rank": doublings,
        "sequence": sequences, "box": 2 * model.n_layers * beyond,
    }  # fmt: skip


def bound(model, system, workload, layout):
    """Least seconds of a step at the data sheet's peaks, on the chips that work at a time."""
    chip = chip_peak(system.chip, workload).replace(memory_capacity=None)
    profile = profile_of(model, workload.weights, workload.cache)
    profile = profile.replace(weight_bytes=constants.stored_bytes(workload.weights))
    return roofline.decode_step(profile, System(chip, system.count // layout.pp), workload).total


def _static():
    from book.synthesis import against

    table = against.rows()
    for row in table[table.use == "clean"].itertuples():
        if row.overlap == "two-batch":
            continue  # halves of a batch that take turns are another schedule
        model, system, workload, layout = against.question(row)
        if not decode_step(model, system, workload, layout).feasible:
            continue
        engine = constants.engine_class(row.engine)
        publisher = {"aiconfigurator": "InferenceX", "vLLM": row.source}.get(row.publisher, row.publisher)
        others, closed = 0.0, row.batch_meaning.startswith("closed")
        if closed:
            prompt = 0.9 * row.prompt_tokens
            reading = prompt_pass(model, system, workload, prompt, layout=layout).total
            others = others_time(row.batch, 0.9 * row.output_tokens, reading)
        yield _line(
            row, publisher, model, system, workload, layout, engine, others=others, ttft=np.nan,
            prompt_time=np.nan, users=row.batch, fits=True, set="steps",
        )  # fmt: skip


def _closed():
    table = serving_rows()
    for row in table[table.use == "clean"].itertuples():
        model, system, workload, layout, keep, engine = question(row)
        places = room(model, system, workload, layout, keep)
        running = min(row.concurrency, max(places, layout.dp))
        reading = prompt_pass(model, system, workload, row.prompt_tokens, layout=layout, keep=keep).total
        others = others_time(running / layout.dp, row.output_tokens, reading)
        yield _line(
            row, row.publisher, model, system, workload.replace(batch=running), layout, engine, keep, others=others,
            ttft=row.ttft, prompt_time=reading, users=row.concurrency, fits=row.concurrency <= places, set="serving",
        )  # fmt: skip


def features(table, engine=None):
    """What each fitted constant is multiplied with, one column a constant, in steps of ``FITTED``."""
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
    """The constants in steps of ``FITTED``: least squares of the logarithm, far misses counted linearly."""
    from scipy.optimize import least_squares

    seen = table[(table.copies == 1)]
    x, w = features(seen), weights(seen)
    known = (seen.bare + seen.others).to_numpy()

    def misses(c):
        far = w * _softened(np.log((known + x @ c) / seen.measured.to_numpy()))
        return np.append(far, _LEANING * (c - 1))

    found = least_squares(misses, np.full(x.shape[1], 0.3), **_TO_THE_END)
    moved = np.abs(x).sum(axis=0) > 0
    return np.where(moved, _digits(found.x), 0.0)


# Constants are not negative; the search goes on until all CPUs have come to the same digits, and six of them count.
_TO_THE_END = {"bounds": (0, np.inf), "method": "dogbox", "jac": "3-point"} | dict.fromkeys(
    ("ftol", "xtol", "gtol"), 1e-13
)


# Where rows do not tell two constants apart (a class of engine without its only other model), both lean on their start.
_LEANING = 1e-3


def _digits(found):
    return np.array([float(f"{value:.6g}") for value in found])


def _softened(logs, far=0.1):
    """Residuals whose squares grow like misses beyond ``far``, so that a few odd rows do not decide."""
    return np.sign(logs) * far * np.sqrt(2 * (np.sqrt(1 + (logs / far) ** 2) - 1))


def predict(table, found, engine=None):
    """Seconds from one token to the next, for fitted constants; ``engine`` says a class in place of the row's own."""
    return table.bare + table.others + features(table, engine) @ found


def left_out(by, engine=None):
    """Logarithms of predicted over measured, every publisher or model predicted by a fit to the others.

    Parameters
    ----------
    by : {"publisher", "model"}
    engine : str, optional
        The class to assume for all rows; each row's own when not given.
    """
    table = data()
    checks.one_of("by", by, ("publisher", "model"))
    errors = pd.Series(np.nan, index=table.index)
    for name, found in _folds(by).items():
        own = table[by] == name
        errors[own] = np.log(predict(table[own], found, engine) / table.measured[own])
    return errors


@cache
def _folds(by):
    table = data()
    return {name: fit(table[table[by] != name]) for name in sorted(table[by].unique())}


def slices():
    """The rows of each class that an interval is stated for."""
    table = data()
    one = table.copies == 1
    return {
        "dense": one & ~table.experts,
        "experts": one & table.experts,
        "copies": ~one,
    }


def errors():
    """Mean absolute error and the factor that holds 80 % of rows, by slice and way of leaving out.

    Returns
    -------
    pandas.DataFrame
        One row a slice, engine known or not, and way: ``rows``, ``error`` (mean |predicted/measured - 1|),
        ``factor`` (80 % of rows lie within it), ``others`` (share of rows inside the factor of all other groups).
    """
    found = []
    for blind in (None, "serving"):
        for by in ("publisher", "model"):
            logs = left_out(by, blind)
            for name, chosen in slices().items():
                own = logs[chosen]
                groups = data()[by][chosen]
                found.append(
                    {
                        "slice": name, "engine": "unknown" if blind else "known", "left out": by, "rows": len(own),
                        "error": float(np.mean(np.abs(np.expm1(own)))), "bias": float(own.mean()),
                        "factor": factor(own), "nested": nested(own, groups),
                    }
                )  # fmt: skip
    return pd.DataFrame(found)


def factor(logs):
    """The factor that holds ``CONFIDENCE`` of rows, each way."""
    return float(np.exp(np.quantile(np.abs(logs), CONFIDENCE)))


def nested(logs, groups):
    """Share of rows inside a factor that was made from the rows of all other groups."""
    inside = [
        np.abs(logs[groups == g]) <= np.log(factor(logs[groups != g]))
        for g in groups.unique()
        if (groups != g).any()
    ]
    return float(np.mean(np.concatenate(inside))) if inside else float("nan")


# --- The first token ------------------------------------------------------------------------------------------


def first_rows():
    """Rows with a time to the first token, with room for all users and at most ``MOST_USERS`` of them."""
    table = data()
    return table[table.ttft.notna() & table.fits & (table.users <= MOST_USERS) & (table.copies == 1)]


def fit_first(table):
    """Constants of :func:`inferlib.serving.prompt.first_token_time`: the start of a layer, and passes."""
    from scipy.optimize import least_squares

    w, seconds, first = weights(table), table.ttft.to_numpy(), _first(table)

    def misses(c):
        return w * _softened(np.log(first(c) / seconds))

    return _digits(least_squares(misses, [1e-3, 1.0], x_scale=[1e-3, 1], **_TO_THE_END).x)


def _first(table):
    """Seconds to the first token of rows, as a function of the two constants."""
    step = (table.bare + features(table) @ fit_all()).to_numpy()
    layer, prompt, users = (table[name].to_numpy() for name in ("layer", "prompt_time", "users"))
    return lambda found: first_token_time(found[0], layer, found[1], prompt, step, users)


@cache
def fit_all():
    """The constants fitted to all rows."""
    return fit(data())


def first_left_out(by):
    """Logarithms of predicted over measured times to the first token, left out by publisher or model."""
    table = first_rows()
    logs = pd.Series(np.nan, index=table.index)
    for name in table[by].unique():
        own = table[by] == name
        logs[own] = np.log(_first(table[own])(fit_first(table[~own])) / table.ttft[own])
    return logs


# --- The files ------------------------------------------------------------------------------------------------


def engine_tables():
    """The constants of every class: value, and least and greatest over the fits with one group left out."""
    folds = np.array([*_folds("publisher").values(), *_folds("model").values()])
    found = {name: {} for name in ("compiled", "serving", "python-2024")}
    for i, (name, whose, unit) in enumerate(FITTED):
        span = folds[:, i][folds[:, i] > 0]
        values = [unit * value for value in (fit_all()[i], span.min(), span.max())]
        targets = {"both": ("compiled", "serving"), "all": tuple(found)}.get(whose, (whose,))
        for target in targets:
            found[target][name] = values
    return found


def engines_toml():
    """The text of ``engines.toml``."""
    pairs = ",\n".join(f'  ["{word}", "{name}"]' for word, name in SOFTWARE)
    lines = [
        "# Written by `python -m book.serving.fit`; a test repeats the fit. Constants of classes of engine, fitted to",
        "# whole steps: [value, least, greatest over fits with one publisher or one model left out], in seconds.",
        "# `software` finds the class of an engine by a word in its name, the first that fits.",
        "",
        f"software = [\n{pairs},\n]",
    ]
    for name, table in engine_tables().items():
        lines += ["", f'[class."{name}"]', *(f"{key} = {_numbers(v)}" for key, v in table.items())]
    return "\n".join(lines) + "\n"


def calibration_toml():
    """The text of ``calibration.toml``."""
    table = errors()
    worst = table.groupby(["slice", "engine"], sort=False).error.max()
    first = {by: first_left_out(by) for by in ("publisher", "model")}
    start, passes = fit_first(first_rows())
    rows = data()
    lines = [
        "# Written by `python -m book.serving.fit`; a test repeats it. Errors of rows left out by publisher and by",
        "# model: mean |predicted/measured - 1|, the worse of the two, and the factor that holds 80 % of both.",
        "",
        f"confidence = {CONFIDENCE}",
        f"rows = {len(rows)}",
        f"publishers = {_list(rows.publisher)}",
        f"models = {_list(rows.model)}",
        f"sparse_models = {_list(rows.model[rows.experts])}",
        f"chips = {_list(rows.hardware)}",
        f"formats = {_list(rows.weights)}",
        f"batch = {rows.batch.max():.0f}",
        f"context = {rows.context.max():.0f}",
        f"tp = {int(2 ** rows['rank'][rows.copies == 1].max())}",
        f"expert_chips = {int(rows.n_gpus[rows.copies > 1].max())}",
    ]
    for (name, known), error in worst.items():
        blind = None if known == "known" else "serving"
        both = np.concatenate([left_out(by, blind)[slices()[name]] for by in ("publisher", "model")])
        lines += ["", f'[step."{name}"."{known}"]', f"error = {error:.4g}", f"factor = {factor(both):.4g}"]
    lines += [
        "", "[first_token]", f"layer_start = {start:.4g}", f"passes = {passes:.4g}",
        f"rows = {len(first_rows())}", f"users = {MOST_USERS}",
        f"error = {max(float(np.mean(np.abs(np.expm1(logs)))) for logs in first.values()):.4g}",
        f"factor = {max(factor(logs) for logs in first.values()):.4g}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _list(values):
    return "[" + ", ".join(f'"{value}"' for value in sorted(set(values))) + "]"


def _numbers(values):
    return "[" + ", ".join(f"{value:.4g}" for value in values) + "]"


def main():
    """Fit, and write both files."""
    for name, text in (("engines", engines_toml()), ("calibration", calibration_toml())):
        path = files("inferlib.serving") / f"{name}.toml"
        path.write_text(text, encoding="utf-8", newline="\n")
        print(text)
    print(errors().round(3).to_string())


if __name__ == "__main__":
    main()
