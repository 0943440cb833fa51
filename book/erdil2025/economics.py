"""Erdil 2025, sections 4 and 5: the settings of its tables and figures, and what they give."""

from functools import partial

import pandas as pd

from book.kept import kept_frame
from inferlib.frontier import preferred
from inferlib.papers.erdil2025 import pareto
from inferlib.papers.erdil2025.equations.model import layout_latency
from inferlib.papers.erdil2025.records import TABLE_5, Assumptions, Cut, chips, computing_at, models
from inferlib.papers.erdil2025.search import speculative_time

DRAFT, ACCEPTANCE = "Llama 3 8B", 0.8
SERVED = ("Mixtral 8x22B", "Llama 3 70B 8-bit", "Llama 3.1 405B 8-bit", "GPT-4", "DeepSeek-V3")
GENERATIONS = ("H100", "A100", "V100")
PRECISIONS = {
    "4-bit weights": "Llama 3 70B 4-bit",
    "8-bit weights": "Llama 3 70B 8-bit",
    "16-bit weights": "Llama 3 70B",
}
SPECULATED = ("Llama 3 70B", "Llama 3.1 405B")
DEFAULT = Assumptions()
_FOUND: dict = {}  # what frontiers of this process were made from, in words, to the frontiers


def frontier(model, chip, *, context=0, assumptions=DEFAULT, **options):
    """What :func:`inferlib.papers.erdil2025.frontier` returns, computed once by each build."""
    options |= {"context": context, "assumptions": assumptions}
    asked = repr((model, chip, sorted(options.items())))
    if asked not in _FOUND:
        make = partial(pareto.frontier, model, chip, **options)
        _FOUND[asked] = kept_frame(f"frontier of {asked}", make)
    return _FOUND[asked]


def curve(model, chip="H100", draft=None, acceptance=ACCEPTANCE, context=0, assumptions=DEFAULT, own=()):
    """A frontier of the paper's own models and GPUs by name, with pipeline parallelism.

    Another GPU may be given, and models of one's ``own``, which stand in place of the paper's of their names.
    """
    known = models | {one.name: one for one in own}
    drafting = {"draft": known[draft], "acceptance": acceptance} if draft else {}
    chip = chips[chip] if isinstance(chip, str) else chip
    return frontier(known[model], chip, context=context, assumptions=assumptions, **drafting)


def fastest(curve):
    """The first point of a frontier."""
    return curve.iloc[0]


def settings(assumptions=DEFAULT, older=None):
    """Every row of Tables 2 to 6: (table, row) to the arguments of its :func:`curve` and the point that it shows.

    Other ``assumptions`` stand in place of the paper's own for all tables, ``older`` in place of Table 5's alone.
    """
    usual, older = assumptions, older or (TABLE_5 if assumptions == DEFAULT else assumptions)
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


def table(number, assumptions=DEFAULT, older=None):
    """One of Tables 2 to 6, not rounded, with the columns of :func:`frontier`; assumptions as in :func:`settings`."""
    chosen = settings(assumptions, older)
    rows = {row: asked for (name, row), asked in chosen.items() if name == f"Table {number}"}
    points = {row: point(curve(**setting)) for row, (setting, point) in rows.items()}
    return pd.DataFrame(points).T.infer_objects()


def seconds_at(setting, point):
    """Seconds per token at a point of the frontier of a setting, computed again by the equations alone."""
    assumptions = setting.get("assumptions", DEFAULT)
    context = setting.get("context", 0)

    def pass_time(name, cut, new_tokens):
        shape = models[name].shape
        chip = computing_at(chips[setting.get("chip", "H100")], shape)
        return layout_latency(shape, chip, cut, point.n_gpu, point.batch, context, new_tokens, assumptions)

    target = Cut(point.stages, point.scale_down, point.kind)
    if point.get("gamma", 1) <= 1:
        return pass_time(setting["model"], target, 1)
    draft = Cut(point.draft_stages, point.draft_scale_down, point.draft_kind)
    times = pass_time(setting["model"], target, point.gamma), pass_time(setting["draft"], draft, 1)
    return speculative_time(setting.get("acceptance", ACCEPTANCE), point.gamma, point.gamma, *times)


HEADS = {
    "tokens_per_second": "tokens per second",
    "usd_per_million": "dollars per million tokens",
    "n_gpu": "instance size (GPUs)",
    "batch": "batch size",
    "mfu": "utilisation of the peak",
    "gamma": "drafts",
    "kind": "cut",
}


def as_printed(number, older=None):
    """One of Tables 2 to 6 under the paper's headings, with what it does not print of a point beside it."""
    cells = table(number, older=older)
    prices, drafts = ("usd_per_million", "mfu"), ("gamma", "kind")
    shown = [name for name in HEADS if name not in (drafts if number not in (2, 3) else ())]
    shown = [name for name in shown if number not in (2, 4) or name not in prices]
    first = {4: "GPU", 6: "weight format"}.get(number, "model")
    return cells[[n for n in shown if n in cells]].rename(columns=HEADS).reset_index(names=first)
