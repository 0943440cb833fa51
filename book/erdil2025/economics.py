"""Erdil 2025, sections 4 and 5: the settings of its tables and figures, and what they give."""

from inferlib.frontier import preferred
from inferlib.kept import kept_frame
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
    """What :func:`inferlib.papers.erdil2025.frontier` returns, computed once and kept on disk.

    Parameters
    ----------
    model : Model
    chip : GPU
    context : float
    assumptions : Assumptions
    **options
        Of that function, by name.
    """
    options |= {"context": context, "assumptions": assumptions}
    asked = repr((model, chip, sorted(options.items())))
    if asked not in _FOUND:
        _FOUND[asked] = kept_frame(f"frontier of {asked}", lambda: pareto.frontier(model, chip, **options))
    return _FOUND[asked]


def curve(model, chip="H100", draft=None, acceptance=ACCEPTANCE, context=0, assumptions=DEFAULT):
    """A frontier of the paper's own models and GPUs by name, computed once.

    Parameters
    ----------
    model, chip, draft : str
    acceptance, context : float
    assumptions : Assumptions

    Returns
    -------
    pandas.DataFrame
        As :func:`frontier` returns it, with pipeline parallelism.
    """
    drafting = {"draft": models[draft], "acceptance": acceptance} if draft else {}
    return frontier(models[model], chips[chip], context=context, assumptions=assumptions, **drafting)


def curves(settings):
    """Many frontiers of the paper's own models, each computed once.

    Parameters
    ----------
    settings : list of dict
        Arguments of :func:`curve`, by name.

    Returns
    -------
    list of pandas.DataFrame
    """
    return [curve(**setting) for setting in settings]


def fastest(curve):
    """The first point of a frontier."""
    return curve.iloc[0]


def settings(assumptions=None):
    """Every row of Tables 2 to 6: (table, row) to the frontier it is read from and the point that it shows.

    Parameters
    ----------
    assumptions : Assumptions, optional
        In place of the paper's own, for all tables.

    Returns
    -------
    dict
        (table, row) to (arguments of :func:`curve`, ``fastest`` or ``preferred``).
    """
    usual, older = assumptions or DEFAULT, assumptions or TABLE_5
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


def table(number, assumptions=None):
    """One of Tables 2 to 6, not rounded.

    Parameters
    ----------
    number : int
    assumptions : Assumptions, optional
        In place of the paper's own.

    Returns
    -------
    pandas.DataFrame
        Indexed by the paper's rows, columns as :func:`frontier` has them.

    Examples
    --------
    >>> table(4).tokens_per_second.round().astype(int).tolist()
    [152, 132, 105]
    """
    import pandas as pd

    chosen = settings(assumptions)
    rows = {row: asked for (name, row), asked in chosen.items() if name == f"Table {number}"}
    found = curves([setting for setting, _ in rows.values()])
    points = {row: point(one) for (row, (_, point)), one in zip(rows.items(), found, strict=True)}
    return pd.DataFrame(points).T.infer_objects()


def seconds_at(setting, point):
    """Seconds per token at a point of a frontier, computed again by the equations alone.

    Parameters
    ----------
    setting : dict
        Arguments of :func:`curve`.
    point : pandas.Series
        One of its rows.
    """
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
    verifying = pass_time(setting["model"], target, point.gamma)
    return speculative_time(
        setting.get("acceptance", ACCEPTANCE), point.gamma, point.gamma, verifying,
        pass_time(setting["draft"], draft, 1),
    )  # fmt: skip
