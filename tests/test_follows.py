"""A chapter follows its reader: change one of its inputs, and each figure and number made from it changes, no other.

A story's cells run here without a kernel, statement by statement; drawing calls are noted, nothing is rendered. Then
one input is changed where it is assigned, and whatever reads it, or what was made from it, runs again.
"""

import ast
import contextlib
import dataclasses
import io
import re
from pathlib import Path

import nbformat
import numpy as np
import pytest
from matplotlib.axes import Axes

import inferlib

BOOK = Path(__file__).parents[1] / "book"
DRAWING = (
    "plot", "scatter", "bar", "barh", "fill_between", "fill_betweenx", "contour", "contourf", "imshow", "pcolormesh",
    "errorbar", "hist", "stackplot", "axhline", "axvline", "axhspan", "axvspan", "hlines", "vlines", "add_patch",
    "text", "annotate", "set_title",
)  # fmt: skip

RICH = ("_repr_html_", "_repr_markdown_", "_repr_latex_")


def scaled(**factors):
    """A change of a record: some of its numbers so many times as large."""
    return lambda record: record.replace(
        **{name: times * getattr(record, name) for name, times in factors.items()}
    )


def workload(work):
    return dataclasses.replace(work, batch=2 * work.batch, context=2 * work.context)


def twice(number):
    return 2 * number


def other(load, name):
    """Another record in its place."""
    return lambda record: load(name)


def another(name):
    return other(inferlib.load_model, name)


def lim_model(name):
    from inferlib.papers import liminal2025

    return liminal2025.load_model(name)


def lim_shape(name):
    from inferlib.papers import liminal2025

    return liminal2025.transformer(name)


def pope_model(name):
    from inferlib.papers import pope2022

    return pope2022.model_of(inferlib.load_model(name))


def another_erdil(model):
    from inferlib.papers import erdil2025

    return erdil2025.Model.of(model.shape.replace(n_layers=100, d_model=9000, group_size=4))


def boxes(system):
    return system.replace(chip=scaled(memory_bandwidth=2, flops=3)(system.chip))


def tables(factor):
    """A table with its numbers so many times as large."""
    return lambda table: table.map(lambda x: factor * x if isinstance(x, int | float) else x)


REFUSES = "with erdil2025.grid_all_reduce_time.replaced"  # prints a refusal
# Chapter -> input -> (change, beginnings of statements that read it and rightly stay: shares, exponents, refusals, what
# rounds to the same).
INPUTS = {
    "introduction": {
        "llama_70b": (another("Llama 3 8B"), set()),
        "h100": (scaled(memory_bandwidth=2, flops=3, scale_up_bandwidth=1.5), set()),
    },
    "principles": {
        "llama": (
            another("Llama 3 8B"),
            {"principles.critical_batch", "(principles.critical_batch"},  # a matter of bytes, not of how many
        ),
        "h100": (scaled(memory_bandwidth=2, flops=3, memory_capacity=1.5, scale_up_bandwidth=1.5), set()),
        "deepseek": (another("Kimi K2"), set()),
    },
    "steinhardt2022": {
        "warm": (scaled(memory_bandwidth=2, network_bandwidth=3), {"axes = figures.tiles", "parts.assign"}),
        "a100": (
            scaled(flops=3, memory_bandwidth=2, network_bandwidth=1.3),
            {
                "axes = figures.neighbours",
                "print(f'a tenth",
                "for before",
                "parts.assign",
                "with st.memory_traffic",
            },
        ),
        "assumed": (scaled(latency=2), set()),
        "h100": (scaled(memory_bandwidth=2), set()),
        "work": (workload, set()),
    },
    "pope2022": {
        "users": (twice, set()),
        "llama": (other(pope_model, "Llama 3 8B"), set()),
        "chip": (scaled(memory_bandwidth=2, flops=3), set()),
        "mesh": (lambda mesh: mesh.replace(x=2 * mesh.x), {"pope.switch_to_x"}),
        "model": (another("Llama 3 8B"), set()),
        "tpu": (
            scaled(flops=3, memory_bandwidth=2, network_bandwidth=1.5),
            {"style.table(longest"},  # bytes, not seconds
        ),
    },
    "erdil2025_toy": {
        "hop": (twice, {REFUSES}),
        "h100": (scaled(memory_bandwidth=2, flops=3), {REFUSES}),
        "llama_70b": (
            scaled(n_layers=1.5),
            {"for model in (llama_8b", "erdil2025.critical_batch", REFUSES},
        ),
        "side": (twice, set()),
        "work": (workload, set()),
    },
    "erdil2025_model": {
        "h100": (scaled(memory_bandwidth=2, flops=3, scale_up_bandwidth=2), {"print(cut)"}),
        "llama": (another_erdil, {"print(cut)"}),
        "llama_8bit": (scaled(weight_bytes=2), set()),
        "small": (scaled(weight_bytes=0.5), {"explorers.slope_and_wall"}),  # which starts without drafts
        "users": (twice, {"print(cut)"}),
    },
    "liminal2025": {
        "llama": (other(lim_model, "Llama3-405B"), {"print(f'the limit, collectives"}),
        "hbm3": (scaled(bandwidth=2, flops=3), set()),
        "shape": (other(lim_shape, "Llama3-405B"), set()),
        "stacked": (scaled(bandwidth=2, flops=3), {"with lim.batch_time"}),  # which waits
        "deepseek": (other(lim_model, "Kimi-K2"), set()),
        "ideal": (twice, set()),
        "latency": (lambda latency: lambda n: 2 * latency(n), set()),
        "model": (another("Llama 3 8B"), set()),
        "fitted": (scaled(t_real=2), set()),
    },
    "mazurek2025": {
        "model": (
            scaled(kv_rank=2, d_expert=2, d_model=1.5, n_routed=2),
            {"derivations.compute_bound"},
        ),  # never, for both,
        "box": (boxes, {"mz.decode_step(deepseek"}),
        "gpu": (scaled(memory_bandwidth=2, inter_bandwidth=3, fp8_flops=1.5), {"for each in (32"}),
        "own": (twice, set()),
        "context": (twice, {"for each in (32"}),
    },
    "synthesis": {
        "box": (boxes, {"round(work.context", "for key in answerers.keys()"}),
        "work": (workload, set()),
    },
    "sixth_model": {
        "pieces": (tables(2), set()),
        "ladder": (tables(2), set()),
        "spread": (tables(2), set()),
        "long": (workload, set()),
        "box": (boxes, set()),
    },
    "measurements": {
        "answers": (lambda table: table.assign(predicted=2 * table.predicted), {"ax = figures.stacked"}),
        "clean": (lambda table: table.assign(ratio=2 * table.ratio), set()),
    },
    "price": {"llama": (another("Llama 3 8B"), set()), "box": (boxes, set())},
    "case_files": {"alpha": (twice, set()), "agreed_at": (twice, set())},
}
# Drawings of a mechanism without a number, and what sources print, others measured, or a whole catalogue says.
FIXED = {
    "introduction": {"fig-intro-mechanism"},
    "liminal2025": {"fig-lim-travels"},
    "mazurek2025": {"fig-mz-parts", "fig-mz-readings"},
    "pope2022": {"fig-po-cuts"},
    "synthesis": {"fig-agree-gains", "fig-syn-voices"},
    "case_files": {"fig-case-readings"},
    "sixth_model": {"explorer.Guess"},
    "price": {"fig-price-first", "fig-price-drafts", "fig-price-joules"},
}


@dataclasses.dataclass(frozen=True)
class Statement:
    """One statement of a cell: its code, the names it reads and makes, whether it ends the cell, what it shows."""

    text: str
    tree: ast.stmt
    reads: frozenset
    makes: frozenset
    last: bool
    shows: str = ""


def statements(chapter):
    """Every statement of a story's code cells, in order; the last of a cell names its figure, explorer or guess."""
    for cell in nbformat.read(BOOK / f"{chapter}.ipynb", as_version=4).cells:
        if cell.cell_type == "code":
            figure = cell.metadata.get("mystnb", {}).get("figure", {}).get("name", "")
            box = re.search(r"\bexplorers?\.\w+(?=\()", cell.source)
            body = [part for tree in ast.parse(cell.source).body for part in apart(tree)]
            for tree in body:
                reads, makes = named(tree)
                last = tree is body[-1]
                shows = (figure or (box[0] if box else "")) if last else ""
                yield Statement(ast.unparse(tree), tree, frozenset(reads), frozenset(makes), last, shows)


def apart(tree):
    """``a, b = x, y`` as two statements, so that ``b`` is not taken to depend on ``x``."""
    sides = [*tree.targets, tree.value] if isinstance(tree, ast.Assign) else []
    if len(sides) != 2 or not all(isinstance(side, ast.Tuple) for side in sides):
        return [tree]
    pairs = zip(sides[0].elts, sides[1].elts, strict=True)
    return [ast.fix_missing_locations(ast.copy_location(ast.Assign([a], b), tree)) for a, b in pairs]


def named(tree):
    """The names that a statement reads from before it, and those that it makes."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    own = {
        node.id
        for made in ast.walk(tree)
        if isinstance(made, ast.comprehension)
        for node in ast.walk(made.target)
        if isinstance(node, ast.Name)
    }
    makes = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    reads = {node.id for node in names if not isinstance(node.ctx, ast.Store)}
    if isinstance(tree, ast.AugAssign):
        reads |= makes
    elif not isinstance(tree, ast.Assign):
        own |= makes  # a loop reads what it made itself
    parts = [node for node in ast.walk(tree) if isinstance(node, ast.Subscript | ast.Attribute)]
    changed = [node.value for node in parts if isinstance(node.ctx, ast.Store)]
    return reads - own, makes | {node.id for node in changed if isinstance(node, ast.Name)}


def followers(found, given):
    """The statements that read an input or what is made from it."""
    live, first = set(), True
    for statement in found:
        if first and given in statement.makes and not statement.reads & live:
            live, first = live | {given}, False
        elif statement.reads & live:
            live |= statement.makes
            yield statement
        else:
            live -= statement.makes


def needed(found, wanted):
    """Those wanted and all that make what they read, in order; imports always."""
    kept, names = [], set()
    for statement in reversed(found):
        if (
            statement in wanted
            or statement.makes & names
            or isinstance(statement.tree, ast.Import | ast.ImportFrom)
        ):
            kept.append(statement)
            names |= statement.reads
    return kept[::-1]


@contextlib.contextmanager
def noting():
    """What drawing calls are given, in order, instead of a rendered picture."""
    notes, own = [], {name: getattr(Axes, name) for name in DRAWING}

    def noted(name, method):
        def draw(ax, *args, **kwargs):
            notes.append((name, seen(args), seen(kwargs)))
            return method(ax, *args, **kwargs)

        return draw

    for name, method in own.items():
        setattr(Axes, name, noted(name, method))
    try:
        yield notes
    finally:
        for name, method in own.items():
            setattr(Axes, name, method)


def seen(value):
    """What of a value a reader sees, as text that compares."""
    if isinstance(value, dict):
        return {name: seen(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [seen(one) for one in value]
    if hasattr(value, "get_path") and hasattr(value, "get_transform"):
        return np.round(value.get_path().transformed(value.get_patch_transform()).vertices, 9).tolist()
    if hasattr(value, "evaluate"):
        starts = {name: one.start() for name, one in ((i.name, i) for i in value.inputs)}
        return [seen(starts), seen(value.evaluate())]
    if hasattr(value, "frame"):
        return value.frame.to_csv()
    if hasattr(value, "to_csv"):
        return value.to_csv()
    if dataclasses.is_dataclass(value) and hasattr(value, "question"):
        return dataclasses.astuple(value)
    if hasattr(value, "values") and hasattr(value, "dims"):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        return repr(value.tolist())  # nothing equals NaN, but its text does
    shown = repr(value)
    if " at 0x" in shown or type(value).__module__.startswith(("book.", "IPython.")):
        shown = next((getattr(value, kind)() for kind in RICH if hasattr(value, kind)), shown)
    return re.sub(r" at 0x[0-9a-f]+", "", str(shown))


def run(statement, names):
    """Run a statement; what it prints, draws and, at the end of a cell, shows."""
    import matplotlib.pyplot as plt

    printed, shown = io.StringIO(), None
    with noting() as notes, contextlib.redirect_stdout(printed):
        if isinstance(statement.tree, ast.Expr):
            shown = eval(compile(statement.text, "cell", "eval"), names)
        else:
            exec(compile(statement.text, "cell", "exec"), names)
        shows = statement.last and shown is not None
        output = [printed.getvalue(), list(notes), seen(shown) if shows else None]
    plt.close("all")
    return output if any(output) else None


@pytest.fixture
def coarse(monkeypatch):
    """Erdil's frontiers on every eighth point of their grid, in this process alone."""
    from book.erdil2025 import economics
    from inferlib.papers.erdil2025 import pareto

    fine = pareto.grid
    monkeypatch.setattr(pareto, "grid", lambda *given: tuple(axis[::8] for axis in fine(*given)))
    monkeypatch.setattr(economics, "kept_frame", lambda name, make, floors: make())
    monkeypatch.setattr(economics, "_FOUND", {})


@pytest.mark.parametrize("chapter", INPUTS)
def test_what_depends_on_an_input_changes_and_nothing_else(chapter, coarse):
    import matplotlib

    matplotlib.use("agg")
    every, names, found = list(statements(chapter)), {"__name__": "cell"}, []
    wanted = [one for given in INPUTS[chapter] for one in followers(every, given)]
    makers = [one for one in every if one.makes & INPUTS[chapter].keys()]
    for statement in needed(every, [*wanted, *makers]):
        before = dict(names)
        found.append((statement, before, run(statement, names)))
    for given, (change, still) in INPUTS[chapter].items():
        changed, stayed, first = {}, set(), True
        for statement, before, shown in found:
            if first and given in statement.makes and not statement.reads & changed.keys():
                own = dict(before)
                run(statement, own)
                changed[given], first = change(own[given]), False
                continue
            if not statement.reads & changed.keys():
                for made in statement.makes:
                    changed.pop(made, None)
                continue
            now = before | changed
            again = run(statement, now)
            changed |= {made: now[made] for made in statement.makes if made in now}
            if shown is not None and again == shown:
                stayed.add(
                    next((start for start in still if statement.text.startswith(start)), statement.text)
                )
        assert stayed == still, f"{chapter}: with another {given} these stay as they were"
        assert not first, f"{chapter} has no {given}"


@pytest.mark.parametrize("chapter", INPUTS)
def test_every_picture_and_box_follows_some_input(chapter):
    """But those that show what was printed or measured, or a mechanism without a number."""
    every = list(statements(chapter))
    follow = {one.shows for given in INPUTS[chapter] for one in followers(every, given)}
    assert {one.shows for one in every} - follow - {""} == FIXED.get(chapter, set())


def test_an_argument_that_is_taken_and_ignored_is_caught(monkeypatch):
    from book.steinhardt2022 import figures
    from inferlib.papers import steinhardt2022 as st

    drawn = figures.regions
    fixed = {"post's A100": st.load_chip("A100")}
    monkeypatch.setattr(figures, "regions", lambda machines: drawn(fixed))
    names, a100 = {"__name__": "cell"}, st.load_chip("A100")
    statement = next(s for s in statements("steinhardt2022") if "figures.regions" in s.text)
    names |= {"figures": figures, "machines": {"post's A100": a100}}
    other = names | {"machines": {"post's A100": a100.replace(memory_bandwidth=3e12)}}
    assert run(statement, names) == run(statement, other)
    monkeypatch.undo()
    assert run(statement, names) != run(statement, other)
