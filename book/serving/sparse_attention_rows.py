"""Serving runs of models with sparse, pooled or recurrent attention: scored, and not fitted.

``sparse_attention_rows.csv`` has public rows. ``python -m book.serving.fit`` writes
``sparse_attention.toml``: for each kind of attention the factor that holds 80 % of them. If several models were
measured, it is the widest factor over all but one of them.
"""

from functools import cache

import numpy as np
import pandas as pd

from book import stored
from inferlib.system import Layout, System, Workload
from tokenprice import calibration, catalog, sparse_attention
from tokenprice.deployment import Deployment
from tokenprice.prefill import ArrivalProcess, PrefillProfile
from tokenprice.request import request_of
from tokenprice.scheduler import Scheduler
from tokenprice.uncertainty import error_bar, load_calibration

# Parts that checkpoints of a row's format keep in another, and the cache formats of their recipes.
KEEP = {
    "fp4": {"attention": "bf16", "shared experts": "bf16"}, "mxfp4 experts": {"experts": "mxfp4"}, "fp8": {},
    "bf16": {},
}  # fmt: skip
EAGLE = 3  # drafts per step in the rows of SGLang's cookbook, which verifies four tokens
PROTOCOL = ArrivalProcess(requests_per_user=10)  # the protocol of InferenceX, which most rows come from
CACHE = {"zai-org/GLM-5": "fp8", "sgl-project/DeepSeek-V4-Flash-FP8": "fp8"}


def use(row):
    """``"clean"``, or why a row is not scored."""
    if row.model not in catalog.served():
        return "model not in the catalogue"
    odd = ("drafting", "outlier", "queued", "server cap", "tp 64")
    return next((row.caution for word in odd if word in row.caution), "clean")


def rows():
    """All rows, with ``use``."""
    blanks = {"keep_default_na": False, "na_values": {"implied_running": ""}}
    table = stored.rows("serving/sparse_attention_rows.csv", **blanks)
    return table.assign(use=[use(row) for row in table.itertuples()])


def question(row):
    """Return the question of a row: model, system, workload, layout, formats of parts; lengths are means."""
    dp = row.dp_attention
    layout = Layout(row.count_ // dp, 1, row.ep, dp)
    model = catalog.load_model(row.model)
    weights = "fp8" if row.weights.startswith("mxfp4") else row.weights
    users = row.concurrency if np.isnan(row.implied_running) else row.implied_running
    context = row.scale * (row.isl + row.osl / 2)
    work = Workload(users, context, weights, CACHE.get(row.model, "bf16"))
    return model, System(catalog.load_chip(row.chip), row.count_), work, layout, KEEP[row.weights]


@cache
def predicted():
    """Of every clean row: ``token``, with drafts ``drafted``, and ``first``, predicted over measured, or NaN."""
    table = rows().rename(columns={"count": "count_"})
    table = table[table.use == "clean"]
    found = [_errors(row) for row in table.itertuples()]
    return table.assign(**pd.DataFrame(found, index=table.index))


def _errors(row):
    model, system, work, layout, keep = question(row)
    prompt, output = row.scale * row.isl, row.scale * row.osl
    engine = calibration.engine_class(row.engine)
    policy = Scheduler.of("sglang" if row.engine == "sglang" else engine, system.chip)
    how = {"engine": engine, "layer_formats": keep, "scheduler": policy}
    served = Deployment.of(model, system, work, layout, **how)
    places = served.max_sequences(work.context, prompt + output)
    running = min(work.batch, max(places, layout.dp))
    step = served.step(running, work.context)
    prompts = PrefillProfile.of(served, prompt)
    found = request_of(served, step, prompts, output, running, arrival_process=PROTOCOL)
    first = found.ttft / (1e-3 * row.ttft_ms)
    first = first if row.concurrency <= min(load_calibration()["first_token"]["users"], places) else np.nan
    length, token = pd.to_numeric(row.tokens_per_step, errors="coerce"), found.tpot
    if length > 1:
        drafts = served.replace(draft_tokens=EAGLE, acceptance_length=length)
        token += drafts.step(running, work.context).total - step.total
    ways = {
        "token": length == 1,
        "drafted": length > 1,
    }  # for other rows the time of a step was not published
    tokens = {way: token / (1e-3 * row.tpot_ms) if known else np.nan for way, known in ways.items()}
    return tokens | {"kind": sparse_attention.measured_as(model), "first": first}


def factor(logs, whose):
    """The factor that holds ``confidence`` of rows, each way, every group of the same weight.

    This share of a further group's rows is expected inside (the pooled distribution of groups: Dunn, Wasserman and
    Ramdas, "Distribution-free prediction sets for two-layer hierarchical models", 2023).
    """
    away, whose = np.abs(logs).sort_values(), pd.Series(whose, index=logs.index)
    weight = 1 / whose[away.index].map(whose.value_counts())
    shares = (weight.cumsum() - weight / 2) / weight.sum()
    return float(np.exp(np.interp(load_calibration()["confidence"], shares, away)))


def widest(ratios, models):
    """The widest factor that the rows of all models but one give; of a single model, its own."""
    logs, whose = np.log(ratios), models[ratios.index]
    folds = [whose != own for own in whose.unique()] if whose.nunique() > 1 else [whose == whose]
    return max(factor(logs[fold], whose[fold]) for fold in folds)


def table():
    """Errors of times between tokens by model, without and with copies of the attention, and rows in the interval."""
    scored = predicted()
    scored = scored[scored.token.notna()]
    found = []
    for (name, copies), own in scored.groupby(["model", scored.dp_attention > 1]):
        layout = Layout(1, 1, 1, 2 if copies else 1)
        bar = error_bar(catalog.load_model(name), layout, "serving")["factor"]
        miss = 100 * (own.token - 1)
        found.append({
            "model": name + (", copies" if copies else ""), "rows": len(own), "error, %": miss.abs().mean(),
            "bias, %": miss.mean(), "interval": f"÷ and × {bar:.2f}",
            "inside, %": 100 * own.token.between(1 / bar, bar).mean(),
        })  # fmt: skip
    return pd.DataFrame(found).round(0)


def as_toml(latent):
    """The text of ``sparse_attention.toml``; ``latent``: rows of latent attention (:func:`book.serving.fit.latent`)."""
    kinds = {}
    for kind, own in [*predicted().groupby("kind"), ("latent", latent)]:
        one = own.dp_attention == 1
        parts = {"token": own[one].token, "copies": own[~one].token, "first": own["first"]}
        known = {what: part.dropna() for what, part in parts.items() if part.notna().any()}
        factors = {what: f"{widest(part, own.model):.4g}" for what, part in known.items()}
        kinds[kind] = sorted(own.model.unique()), factors
    return stored.filled("serving/sparse_attention.toml.jinja", kinds=kinds)
