"""Erdil 2025, sections 4 and 5: the settings of its tables and figures, and what they give."""

from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from book.build_cache import cached
from book.frames import frame
from book.papers.erdil2025 import frontiers
from book.papers.erdil2025.readings import TABLE_5
from inferlib.frontier import preferred
from inferlib.papers.erdil2025.equations.model import layout_latency
from inferlib.papers.erdil2025.records import (
    PRINTED,
    Cut,
    computing_at,
    load_chip,
    load_model,
    stated_chip,
)
from inferlib.papers.erdil2025.search import speculative_time, token_latency
from inferlib.principles import cost_per_million

DRAFT, ACCEPTANCE = "Llama 3 8B", 0.8
SERVED = ("Mixtral 8x22B", "Llama 3 70B 8-bit", "Llama 3.1 405B 8-bit", "GPT-4", "DeepSeek-V3")
GENERATIONS = ("H100", "A100", "V100")
COLUMNS = {  # printed quantities of a point, to the columns of a frontier
    "tokens per second": "tokens_per_second",
    "GPUs": "n_gpu",
    "batch": "batch",
    "price of a million tokens": "usd_per_million",
}
PRECISIONS = {
    "4-bit weights": "Llama 3 70B 4-bit",
    "8-bit weights": "Llama 3 70B 8-bit",
    "16-bit weights": "Llama 3 70B",
}
SPECULATED = ("Llama 3 70B", "Llama 3.1 405B")
LONG = 100_000  # tokens: the long context of Figures 9 and 10
SOUND = PRINTED.replace(cache_of_micro_batch=False)  # the cache of the whole batch must fit
# Inputs of a frontier besides its model and GPU.
SEARCH = (
    "inferlib/*.py", "inferlib/papers/*.py", "inferlib/papers/erdil2025/**/*.py", "inferlib/papers/erdil2025/*.toml",
    "book/papers/erdil2025/frontiers.py", "book/papers/erdil2025/readings.py", "book/papers/erdil2025/speculation.py",
)  # fmt: skip
_FOUND: dict = {}  # inputs of this process's frontiers, as text, to the frontiers


def frontier(model, chip, *, context=0, assumptions=PRINTED, **options):
    """Return the result of :func:`book.papers.erdil2025.frontiers.frontier`, cached in the build."""
    options |= {"context": context, "assumptions": assumptions}
    asked = repr((model, chip, sorted(options.items())))
    if asked not in _FOUND:
        make = partial(frontiers.frontier, model, chip, **options)
        _FOUND[asked] = cached(f"frontier of {asked}", make, *SEARCH)
    return _FOUND[asked]


def curve(model, chip="H100", draft=None, acceptance=ACCEPTANCE, context=0, assumptions=PRINTED, own=()):
    """Return a frontier of the paper's own models and GPUs by name, with pipeline parallelism.

    Another GPU may be given, and ``own`` models that replace the paper's models of the same names.
    """
    known = {one.name: one for one in own}
    drafting = {"draft": load_model(known.get(draft, draft)), "acceptance": acceptance} if draft else {}
    return frontier(
        load_model(known.get(model, model)),
        load_chip(chip),
        context=context,
        assumptions=assumptions,
        **drafting,
    )


def fastest(curve):
    """The first point of a frontier."""
    return curve.iloc[0]


def settings(assumptions=PRINTED, older=None):
    """Return the settings of all rows of Tables 2 to 6: (table, row) to arguments of :func:`curve` and the point shown.

    Other ``assumptions`` replace the paper's own for all tables, ``older`` those of Table 5 only.
    """
    usual, older = assumptions, older or (TABLE_5 if assumptions == PRINTED else assumptions)
    rows = {}
    for name in SERVED:
        served = {"model": name, "draft": DRAFT, "assumptions": usual}
        rows["Table 2", name], rows["Table 3", name] = ((served, fastest), (served, preferred))
    for chip in GENERATIONS:
        rows["Table 4", chip] = ({"model": "Llama 3 70B 8-bit", "chip": chip, "assumptions": usual}, fastest)
    for name in SPECULATED:
        rows["Table 5", name] = ({"model": name, "assumptions": older}, preferred)
        rows["Table 5", f"{name} (S)"] = ({"model": name, "draft": DRAFT, "assumptions": older}, preferred)
    for row, name in PRECISIONS.items():
        rows["Table 6", row] = ({"model": name, "assumptions": usual}, preferred)
    return rows


def three_customers(curves, of="curve"):
    """Return the fastest, preferred and cheapest point of some named frontiers; ``of``: meaning of the names."""
    ends = {"fastest": fastest, "preferred": preferred, "cheapest": lambda at: at.iloc[-1]}
    rows = []
    for (name, points), (which, end) in product(curves.items(), ends.items()):
        at = end(points)
        cells = at.tokens_per_second, at.usd_per_million, at.n_gpu, at.batch, f"{at.mfu:.2%}"
        rows.append((name, which, *cells))
    heads = [of, "point", "tokens/s", "dollars per million", "GPUs", "users", "MFU"]
    return pd.DataFrame(rows, columns=heads).astype({"users": float})


def layout_in_words(cut):
    """Describe the layout of a model on an instance's GPUs."""
    way = {"1D": "cut one way", "2D": "cut both ways"}[cut.kind]
    stages = "no pipeline" if cut.stages == 1 else f"{cut.stages:.3g} pipeline stages"
    where = "all GPUs" if cut.scale_down == 1 else f"one GPU in {cut.scale_down:.3g}"
    return f"{way}, {stages}, attention on {where}"


SIZES = (1, 2, 4, 8, 16)  # numbers of GPUs that can be rented together


@frame("promise", "dollars per million tokens", "GPUs", "users")
def offers(case, speeds):
    """Return the cheapest of 1 to 16 whole GPUs with memory for all users' caches, for each speed, by this model.

    ``case``: a Question about a step; its chip, formats and context count. ``speeds``: tokens per second of each user.
    """
    chip, users = stated_chip(case.machine.chip), np.unique(np.round(2 ** np.arange(0, 12.01, 0.25)))
    model = load_model(case.model, *case.formats[:2])
    at = {"context": case.workload.context, "pipeline": False}
    times = {gpus: token_latency(model, chip, gpus, users, **at) for gpus in SIZES}
    runs = pd.concat(pd.DataFrame({"n": n, "users": users, "seconds": found}) for n, found in times.items())
    runs = runs[np.isfinite(runs.seconds)]
    runs = runs.assign(usd=cost_per_million(runs.seconds, runs.users, runs.n, chip.price))
    for speed in speeds:
        kept = runs[runs.seconds <= 1 / speed].nsmallest(1, "usd").astype(object)
        best = [kept[name].item() if len(kept) else "none" for name in ("usd", "n", "users")]
        yield f"{speed} tokens/s", *best


def table(number, assumptions=PRINTED, older=None):
    """One of Tables 2 to 6, not rounded, with the columns of :func:`frontier`; assumptions as in :func:`settings`."""
    chosen = settings(assumptions, older)
    rows = {row: asked for (name, row), asked in chosen.items() if name == f"Table {number}"}
    points = {row: point(curve(**setting)) for row, (setting, point) in rows.items()}
    return pd.DataFrame(points).T.infer_objects()


def seconds_at(setting, point):
    """Compute the seconds per token at a point of a setting's frontier again, by the equations alone."""
    assumptions = setting.get("assumptions", PRINTED)
    context = setting.get("context", 0)

    def pass_time(name, cut, new_tokens):
        shape = load_model(name).shape
        chip = computing_at(load_chip(setting.get("chip", "H100")), shape)
        return layout_latency(shape, chip, cut, point.n_gpu, point.batch, context, new_tokens, assumptions)

    target = Cut(point.stages, point.scale_down, point.kind)
    if point.get("gamma", 1) <= 1:
        return pass_time(setting["model"], target, 1)
    draft = Cut(point.draft_stages, point.draft_scale_down, point.draft_kind)
    times = pass_time(setting["model"], target, point.gamma), pass_time(setting["draft"], draft, 1)
    return speculative_time(setting.get("acceptance", ACCEPTANCE), point.gamma, point.gamma, *times)


def unprinted(number):
    """Return quantities that one of Tables 2 to 6 does not print: utilisation, number of drafts, and layout."""
    cells = table(number)
    heads = {"mfu": "utilisation of the peak", "gamma": "drafts", "kind": "cut"}
    shown = {3: heads, 2: ["gamma", "kind"], 4: []}.get(number, ["mfu"])
    return cells[[name for name in shown if name in cells]].rename(columns=heads)


QUICK = [
    p.replace(base=p.base / 2, per_rank=p.per_rank / 2, per_node=p.per_node / 2) for p in PRINTED.protocols
]
HALVED = PRINTED.replace(
    protocols=tuple(QUICK), t_kernel=PRINTED.t_kernel / 2
)  # every launch and latency halved


def switched(model, chip, context=0, network=False, waits=PRINTED, draft=None):
    """Return the frontier of a model without parts of the waiting: unlimited network, HALVED waits, or drafts.

    With a context, the caches of all users have to fit, not only those of the micro-batch that the paper tests.
    """
    waits = waits.replace(cache_of_micro_batch=waits.cache_of_micro_batch and not context)
    if network:
        chip = chip.replace(scale_up_bandwidth=1e18, scale_out_bandwidth=1e18)
    drafting = {"draft": draft, "acceptance": ACCEPTANCE} if draft else {}
    return frontier(model, chip, context=context, assumptions=waits, **drafting)


def widths(model, chip):
    """Return the price of 90 % of the top speed, and of the top speed, over the price of the cheapest token.

    Also with an unlimited network.
    """
    for network in (False, True):
        curve = switched(model, chip, network=network)
        fast = curve[curve.tokens_per_second >= 0.9 * curve.tokens_per_second.max()]
        least = curve.usd_per_million.min()
        yield fast.usd_per_million.min() / least, curve.usd_per_million.iloc[0] / least
