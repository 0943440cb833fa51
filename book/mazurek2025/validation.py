"""Mazurek & Schreiber 2025 against public measurements: what its agreement with them is worth."""

import tomllib
from functools import cache, lru_cache
from importlib.resources import files

from inferlib.papers.mazurek2025.equations import experts, network, throughput
from inferlib.papers.mazurek2025.records import DEFAULT, Assumptions, chip_of, deployment, model_of, setup
from inferlib.units import parse

# The seven points of SGLang that Figures 13 and 14 compare with: both systems as its second post draws them.
COMPARED = {"9x8 H100": ("ep-31", "ep-32", "ep-33"), "12x4 B200": ("ep-23", "ep-24", "ep-25", "ep-26")}
# SGLang on 72 H100s with balanced experts and no drafts: 14 points, the first of them printed in its text.
H100 = ("ds-02", *(f"ep-{i:02d}" for i in range(3, 16)))
# What else can be compared, each measured once.
OTHERS = {
    "without balancing": ("ep-16",),
    "GB200": ("ep-23", "ep-24", "ep-25", "ep-26"),
    "DeepSeek profile": ("ds-01",),
    "DeepSeek production": ("ds-04",),
    "vLLM H200": ("ep-38", "ep-39", "ep-40"),
    "Kimi K2": ("ep-45",),
}
_model, _gpu = cache(model_of), cache(chip_of)
# Copies of experts that a source states; elsewhere as few as make every GPU hold equally many.
EXTRA = {**dict.fromkeys(H100, 32), "ep-16": 0, "ep-45": 96}
STEP = 1e-6  # s: the grid on which an overhead is fitted


@lru_cache(maxsize=1)
def measured():
    """The measurements of DeepSeek V3 and Kimi K2 in :mod:`inferlib.measured`, each once.

    Returns
    -------
    pandas.DataFrame
        Its columns, and ``per_gpu`` (tokens per second and GPU), ``own`` (sequences a GPU), ``mean_context``
        (prompt plus half of the output, where both are given) and ``why_not`` (why the row cannot be compared
        with this model; empty if it can).
    """
    from inferlib import measured as measurements

    table = measurements.load()
    table = table[table.model.isin(["DeepSeek V3", "Kimi K2"])].copy()
    table["per_gpu"] = table.tokens_per_second / table.n_gpus
    table["own"] = table.sequences / table.n_gpus
    both = table.prompt_tokens.notna() & table.output_tokens.notna()
    mean = table.prompt_tokens + table.output_tokens / 2
    table["mean_context"] = mean.where(both, table.context)
    table["why_not"] = [_why_not(row) for _, row in table.iterrows()]
    return table


def _why_not(row):
    if row.duplicate_of:
        return f"the same measurement as {row.duplicate_of}"
    if row.speculation == "yes":
        return "drafts tokens: a time per token, not per step"
    if row.ep == 1:
        return "tensor parallel: every GPU has a part of every expert"
    if not row.own > 0:
        return "no batch is stated"
    if row.weight_format in ("fp4", "mixed"):
        return "experts in FP4, which the source does not describe"
    return ""


@cache
def _placed(row_id):
    return placed(measured().loc[row_id])


def placed(row, balanced=None):
    """The deployment of a measured row.

    Parameters
    ----------
    row : pandas.Series
        Of :func:`measured`.
    balanced : bool, optional
        Whether experts are balanced; as the row's notes say when not given.

    Returns
    -------
    Deployment
        In the nodes of the chip's scale-up domain, balanced as in Figure 12 for so many GPUs, or evenly where
        the row says so. Where a row does not say whether two batches overlap, they do.
    """
    from inferlib import load_chip

    n = int(row.n_gpus)
    nodes = -(-n // int(min(load_chip(row.hardware).scale_up_size, n)))
    if balanced is None:
        balanced = "without expert load balancing" not in row.notes
    extra = EXTRA.get(row.name, (-model_of(row.model).n_routed) % n)
    at = deployment(n, nodes, extra_experts=extra, balanced=balanced, two_batch=row.overlap != "none")
    return at.replace(balancedness=1.0) if "balanced routing" in _notes(row) else at


def _notes(row):
    """A row's notes with those of its duplicates: some state what the first leaves out."""
    table = measured()
    return " ".join([row.notes, *table[table.duplicate_of == row.name].notes])


def predicted(row, assumptions=DEFAULT, context=None):
    """Tokens per second and GPU of a measured row.

    Parameters
    ----------
    row : pandas.Series
        Of :func:`measured`.
    assumptions : Assumptions
    context : float, optional
        Tokens behind each sequence; the row's own when not given.

    Returns
    -------
    float, or an array where a field of the assumptions is one
    """
    context = row.mean_context if context is None else context
    model, gpu, where = _model(row.model), _gpu(row.hardware), _placed(row.name)
    return throughput.gpu_throughput(model, gpu, where, row.sequences, context, assumptions)


def on_network(row, assumptions=DEFAULT):
    """Whether the network sets the time of a measured row with overlap."""
    model, gpu, where = _model(row.model), _gpu(row.hardware), _placed(row.name)
    if not where.two_batch:
        return False
    half = row.sequences / 2
    computing = throughput.attention_time(
        model, gpu, where, half, row.mean_context, assumptions
    ) + throughput.expert_time(model, gpu, where, half, assumptions)
    return bool(network.network_time(model, gpu, where, half, assumptions) > computing)


def rms(errors):
    """Root of the mean square."""
    errors = list(errors)
    return (sum(error**2 for error in errors) / len(errors)) ** 0.5


# --- The points of Figures 13 and 14 ---------------------------------------------------------------------


def compared(context, assumptions=DEFAULT):
    """The seven points of SGLang that the source's figures show, against its model as it runs it.

    Parameters
    ----------
    context : float or array
        Tokens behind each sequence, which the source does not state for these figures.
    assumptions : Assumptions

    Returns
    -------
    dict
        (setup, sequences a GPU) to the relative error of the prediction. All with two-batch overlap and on the
        source's own systems, although SGLang ran the rack without overlap.
    """
    table, model, errors = measured(), model_of("DeepSeek V3"), {}
    for name, rows in COMPARED.items():
        at = setup(name)
        for row in (table.loc[i] for i in rows):
            speed = throughput.gpu_throughput(
                model, at.gpu, at.deployment, row.own * at.deployment.n_gpus, context, assumptions
            )
            errors[name, int(row.own)] = speed / row.per_gpu - 1
    return errors


def scan(assumptions=DEFAULT, low=500, high=12000, step=50):
    """Error over the seven points for every context.

    Returns
    -------
    pandas.DataFrame
        Indexed by context: ``rms``, and one column a point.
    """
    import numpy as np
    import pandas as pd

    contexts = np.arange(low, high + step, step)
    errors = compared(contexts.astype(float), assumptions)
    table = pd.DataFrame({f"{name}, {own}": values for (name, own), values in errors.items()}, index=contexts)
    table.insert(0, "rms", (table**2).mean(axis=1) ** 0.5)
    return table.rename_axis("context")


def readings():
    """The readings under which the context is looked for: what each changes, and the assumptions it gives."""
    factors = {"memory_inefficiency": 1.5}, {"memory_inefficiency": 1.0}
    return {
        "as printed": DEFAULT,
        "no cap on the experts of a GPU": Assumptions.uncapped(),
        "cache in FP8": DEFAULT.replace(cache_value_bytes=1.0),
        "memory factor 1.5": DEFAULT.replace(**factors[0]),
        "memory factor 1": DEFAULT.replace(**factors[1]),
        "no 10 % penalty": DEFAULT.replace(arithmetic_penalty=1.0),
        "corrected": Assumptions.corrected(),
    }


def best_contexts():
    """For each reading the context that fits the seven points best, and how well.

    Returns
    -------
    pandas.DataFrame
        Indexed by reading: ``best context``, its ``rms``, and the rms at 4989 and 2050 tokens.
    """
    import pandas as pd

    rows = {}
    for name, assumptions in readings().items():
        errors = scan(assumptions, high=25000).rms
        at = [rms(compared(context, assumptions).values()) for context in (4989, 2050)]
        rows[name] = (int(errors.idxmin()), errors.min(), *at)
    columns = ["best context", "rms there", "rms at 4989", "rms at 2050"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def cache_share(name="9x8 H100", own=256, context=4989):
    """Share of one step that the cache takes in a setup, and what the assumed extra context costs (s).

    Returns
    -------
    dict
        ``share`` of the step; ``excess``: seconds a step grows from 2050 tokens to ``context``; ``layer``: the
        same for one layer and micro-batch.
    """
    at, model = setup(name), model_of("DeepSeek V3")
    batch = own * at.deployment.n_gpus
    long, short = (
        2 * throughput.attention_time(model, at.gpu, at.deployment, batch / 2, s) for s in (context, 2050)
    )
    total = throughput.step_time(model, at.gpu, at.deployment, batch, context)
    none = 2 * throughput.attention_time(model, at.gpu, at.deployment, batch / 2, 0)
    excess = long - short
    return {"share": (long - none) / total, "excess": excess, "layer": excess / (2 * model.n_layers)}


# --- The overhead that repairs it ------------------------------------------------------------------------


def errors(rows, assumptions=DEFAULT):
    """Relative errors of the predictions of measured rows: id to error."""
    table = measured()
    return {i: predicted(table.loc[i], assumptions) / table.loc[i].per_gpu - 1 for i in rows}


@cache
def fitted(rows=H100, hidden=False, corrected=False):
    """The overhead of a layer and micro-batch that fits measured rows best, on a grid of a microsecond.

    Parameters
    ----------
    rows : tuple of str
    hidden : bool
        Whether it adds to computation, which may hide the network, or comes on top of both.
    corrected : bool
        Whether the model is corrected first.

    Returns
    -------
    Assumptions
        With that ``overhead``.
    """
    import numpy as np

    base = (Assumptions.corrected() if corrected else DEFAULT).replace(overhead_hidden=hidden)
    steps = STEP * np.arange(301)
    found = rms(errors(rows, base.replace(overhead=steps)).values())
    return base.replace(overhead=float(steps[found.argmin()]))


def halves():
    """Ways to fit on some of the 14 points and test on the others: name to (rows fitted, rows tested)."""
    table = measured().loc[list(H100)]
    overlap, large = table.overlap == "two-batch", table.own >= 64
    ways = {"overlapped": overlap, "not overlapped": ~overlap, "at 64 and more": large, "below 64": ~large}
    return {name: (tuple(table.index[on]), tuple(table.index[~on])) for name, on in ways.items()}


def cross_validation():
    """The overhead fitted on one part of the 14 points and tested on the rest.

    Returns
    -------
    pandas.DataFrame
        One row a way to split: overhead in microseconds, rms error on the fitted and on the other points, and
        rms of the other points without any overhead.
    """
    import pandas as pd

    rows = []
    for name, (fit, test) in ({"all": (H100, ())} | halves()).items():
        found = fitted(fit)
        tested = [rms(errors(test, a).values()) if test else float("nan") for a in (found, DEFAULT)]
        inside = rms(errors(fit, found).values())
        rows.append((name, len(fit), found.overhead / 1e-6, inside, *tested))
    columns = [
        "fitted on points",
        "so many",
        "overhead (us)",
        "rms there",
        "rms on the others",
        "without overhead",
    ]
    return pd.DataFrame(rows, columns=columns).astype(object).fillna("")


def places():
    """Where the overhead has to enter: hidden behind the network or not, printed or corrected model.

    Returns
    -------
    pandas.DataFrame
        One row a place: best overhead in microseconds and rms error over the 14 points.
    """
    import pandas as pd

    rows = [("none", "printed", 0.0, rms(errors(H100).values()))]
    rows.append(("none", "corrected", 0.0, rms(errors(H100, Assumptions.corrected()).values())))
    for corrected in (False, True):
        for hidden in (False, True):
            found = fitted(H100, hidden, corrected)
            where = "may hide the network" if hidden else "on top of both"
            model = "corrected" if corrected else "printed"
            rows.append((where, model, found.overhead / 1e-6, rms(errors(H100, found).values())))
    return pd.DataFrame(rows, columns=["overhead", "model", "us", "rms"])


def components(context=2050, own=256):
    """Time of one layer by part on 9x8 H100, modelled at a context and as SGLang shows its kernels.

    Returns
    -------
    pandas.DataFrame
        Indexed by part: milliseconds, ``model`` and ``measured``, with two-batch overlap and without. The
        model's part for experts holds dense layers and embeddings too.
    """
    import pandas as pd

    text = (files("book.mazurek2025") / "breakdown.toml").read_text("utf-8")
    shown, model, at = (tomllib.loads(text), model_of("DeepSeek V3"), setup("9x8 H100"))
    columns = {}
    for name, turns in (("two_batch", 2), ("one_batch", 1)):
        part = own * at.deployment.n_gpus / turns
        where = model, at.gpu, at.deployment, part
        attention = throughput.attention_time(*where, context)
        expert, sent = (throughput.expert_time(*where), network.network_time(*where))
        waiting = max(sent - attention - expert, 0) if turns == 2 else sent
        times = [turns * t / model.n_layers * 1e3 for t in (attention, expert, waiting, 0.0)]
        title = "two batches" if turns == 2 else "one batch"
        columns[title, "model"] = times
        columns[title, "measured"] = [
            parse(shown[name][part], "s") * 1e3
            for part in ("attention", "experts", "network_not_hidden", "other")
        ]
    parts = ["attention", "experts", "network not hidden", "other kernels, launches"]
    return pd.DataFrame(columns, index=parts)


# --- All that can be compared ----------------------------------------------------------------------------


def predictions():
    """Every comparable measurement against three readings of the model.

    Returns
    -------
    pandas.DataFrame
        Indexed by id: system, GPUs, sequences a GPU, context, overlap, measured tokens per second and GPU, and
        the relative error as printed, corrected, and as printed with the overhead fitted on the 14 points;
        ``network`` where the printed model says that the network sets the time.
    """
    import pandas as pd

    table, with_overhead = measured(), fitted()
    rows = {}
    for group, ids in ({"SGLang H100": H100} | OTHERS).items():
        for i in ids:
            row = table.loc[i]
            told = [
                predicted(row, a) / row.per_gpu - 1 for a in (DEFAULT, Assumptions.corrected(), with_overhead)
            ]
            bound = "network" if on_network(row) else ""
            overlap = {"two-batch": "yes", "none": "no"}.get(row.overlap, "not stated")
            rows[i] = (
                group, int(row.n_gpus), row.own, row.mean_context, overlap, row.per_gpu, *told, bound,
            )  # fmt: skip
    columns = [
        "system", "GPUs", "batch per GPU", "context", "overlap", "measured",
        "printed", "corrected", "with overhead", "bound",
    ]  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def not_comparable():
    """The measurements that this model cannot be held against, by reason.

    Returns
    -------
    pandas.DataFrame
        One row a reason: how many measurements, and which.
    """
    import pandas as pd

    table = measured()
    left = table[(table.why_not != "") & (table.duplicate_of == "")]
    groups = left.groupby("why_not", sort=False)
    rows = [(why, len(rows), ", ".join(rows.index)) for why, rows in groups]
    return pd.DataFrame(rows, columns=["reason", "rows", "ids"])


def overlap_gain():
    """How much faster two-batch overlap makes a step on 9x8 H100, measured and modelled.

    Returns
    -------
    pandas.DataFrame
        Indexed by sequences a GPU: the ratio of speeds with and without, ``measured``, ``printed`` and ``with
        overhead``.
    """
    import pandas as pd

    table = measured().loc[list(H100)]
    table = table[(table.prompt_tokens == 2000) & (table.output_tokens == 100)]
    readings = {"printed": DEFAULT, "with overhead": fitted()}
    values = {"measured": table.per_gpu}
    values |= {
        name: table.apply(lambda row, a=assumptions: predicted(row, a), axis=1)
        for name, assumptions in readings.items()
    }
    found = {}
    for name, speed in values.items():
        by_own = [
            pd.Series(speed[on].to_numpy(), index=table.own[on])
            for on in (table.overlap == "two-batch", table.overlap == "none")
        ]
        found[name] = by_own[0] / by_own[1]
    return pd.DataFrame(found).rename_axis("batch per GPU")


def trends():
    """Ratios of measured speeds that the model should give, whatever its scale.

    Returns
    -------
    pandas.DataFrame
        Indexed by trend: the ratio measured, and as printed, corrected and with overhead.
    """
    import pandas as pd

    table = measured()
    pairs = {
        "vLLM, 72 over 32 GPUs": ("ep-39", "ep-38"),
        "vLLM, 96 over 32 GPUs": ("ep-40", "ep-38"),
        "experts balanced over not": ("ds-02", "ep-16"),
        "H100, 500 in and 1500 out over 2000 and 100": ("ep-15", "ds-02"),
        "GB200, batch 512 over 64": ("ep-26", "ep-23"),
    }
    readings = {"printed": DEFAULT, "corrected": Assumptions.corrected(), "with overhead": fitted()}
    rows = {}
    for name, (a, b) in pairs.items():
        ratios = [table.loc[a].per_gpu / table.loc[b].per_gpu]
        ratios += [predicted(table.loc[a], r) / predicted(table.loc[b], r) for r in readings.values()]
        rows[name] = ratios
    return pd.DataFrame.from_dict(rows, orient="index", columns=["measured", *readings])


def simulated_fullest(n_active_tokens, n_gpus, draws=2000, seed=0, model=None):
    """The fullest GPU's active experts by simulation: tokens choose experts at random, experts are dealt evenly.

    Parameters
    ----------
    n_active_tokens : int
        Tokens routed at the same time.
    n_gpus : int
        GPUs, a divisor of the routed experts.
    draws, seed : int
        How many batches are drawn, and the seed of the random numbers.
    model : Model, optional
        DeepSeek V3 when not given.

    Returns
    -------
    float
        Mean over the draws, without the shared expert.
    """
    import numpy as np

    model = model or model_of("DeepSeek V3")
    random = np.random.default_rng(seed)
    most = []
    for _ in range(draws):
        scores = random.random((n_active_tokens, model.n_routed))
        chosen = np.unique(np.argpartition(scores, model.n_active)[:, : model.n_active])
        most.append(np.bincount(chosen // (model.n_routed // n_gpus), minlength=n_gpus).max())
    return float(np.mean(most))


def fullest_by_formula(batches=(1, 2, 4, 8, 16, 32, 64), n_gpus=32, draws=400):
    """The fullest GPU's active experts: both formulas and a simulation.

    Returns
    -------
    pandas.DataFrame
        Indexed by tokens: ``printed`` (balls into bins), ``without replacement``, ``simulated`` and ``held``.
    """
    import pandas as pd

    model, at = model_of("DeepSeek V3"), deployment(n_gpus)
    rows = {}
    for n in batches:
        active = experts.active_experts(model, n)
        rows[n] = (
            experts.fullest_gpu_experts(at, active),
            experts.fullest_gpu_experts_placed(model, at, active),
            simulated_fullest(n, n_gpus, draws),
            model.n_routed / n_gpus,
        )
    columns = ["printed", "without replacement", "simulated", "held"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("tokens")
