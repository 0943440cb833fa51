"""A chapter follows its reader: change one of its inputs, and each figure and number made from it changes, no other.

A story's cells run here without a kernel, statement by statement; drawing calls are noted, nothing is rendered. Then
one input is changed where it is assigned, and whatever reads it, or what was made from it, runs again.
"""

import ast
import contextlib
import dataclasses
import io
import os
import re
import sys
from functools import cache

import numpy as np
import pytest
from facts import lines
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from prose import notebook

from book import verdicts
from book.papers.erdil2025 import economics, frontiers
from book.serving import services
from inferlib import load_model, ops, variant
from inferlib.papers import erdil2025, liminal2025
from tokenprice import queueing, simulation

DRAWING = """plot scatter bar barh fill_between fill_betweenx contour contourf imshow pcolormesh errorbar hist stackplot
axhline axvline axhspan axvspan hlines vlines add_patch text annotate set_title""".split()
RICH = ("_repr_html_", "_repr_markdown_", "_repr_latex_")


def scaled(**factors):
    """A change of a record: some of its numbers times a factor."""
    return lambda one: one.replace(**{name: times * getattr(one, name) for name, times in factors.items()})


def twice(number):
    return 2 * number


def another(name):
    """Another model in its place."""
    return lambda model: load_model(name)


def tables(table):
    return table.map(lambda x: 2 * x if isinstance(x, int | float) else x)


# Chapter -> input beside its case, of which :mod:`test_cases` makes others -> change.
INPUTS = {
    "principles": {"deepseek": another("Kimi K2")},
    "steinhardt2022": {
        "warm": scaled(memory_bandwidth=2, network_bandwidth=3),
        "a100": scaled(flops=3, memory_bandwidth=2, network_bandwidth=1.3),
        "assumed": scaled(latency=2),
    },
    "pope2022": {
        "served": lambda case: case.replace(
            model="Qwen3 32B",
            machine="8x B200",
            weights="fp8",
            kv_cache_dtype="fp8",
            concurrency=2 * case.concurrency,
            prompt_tokens=2048,
        )
    },
    "erdil2025_toy": {"assumed": scaled(t_hop=2), "side": twice},
    "erdil2025_model": {
        "draft": another("Qwen3 4B"),
        "assumed": lambda assumed: assumed.replace(t_kernel=1e-6),
    },
    "liminal2025": {
        "hbm3": scaled(bandwidth=2, flops=3),
        "stacked": scaled(bandwidth=2, flops=3),
        "ideal": twice,
        "latency": lambda latency: lambda n: 2 * latency(n),
    },
    "kernel_model": {"pieces": tables, "ladder": tables, "spread": tables},
    "measurements": {
        "answers": lambda table: table.assign(predicted=2 * table.predicted, error=2 * table.error),
        "clean": lambda table: table.assign(ratio=2 * table.ratio),
    },
    "case_files": {"alpha": twice, "agreed_at": twice},
}


def excepted(kind, chapter):
    """The exceptions of a chapter of one kind, each with its reason or its other columns."""
    return {what: why for *of, what, why in lines("exceptions") if of == [kind, chapter]}


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
    for cell in notebook(chapter).cells:
        if cell.cell_type == "code":
            figure = cell.metadata.get("mystnb", {}).get("figure", {}).get("name", "")
            box = re.search(r"\bexplorers?\.\w+(?=\()|$", cell.source)[0]
            body = [part for tree in ast.parse(cell.source).body for part in apart(tree)]
            for tree in body:
                reads, makes = map(frozenset, named(tree))
                last = tree is body[-1]
                yield Statement(ast.unparse(tree), tree, reads, makes, last, (figure or box) if last else "")


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
    loops = [node.target for node in ast.walk(tree) if isinstance(node, ast.comprehension)]
    own = {node.id for target in loops for node in ast.walk(target) if isinstance(node, ast.Name)}
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
    for one in reversed(found):
        if one in wanted or one.makes & names or isinstance(one.tree, ast.Import | ast.ImportFrom):
            kept.append(one)
            names |= one.reads
    return kept[::-1]


@contextlib.contextmanager
def noting():
    """Record the arguments of drawing calls in order, without those that only lay out a picture."""
    notes = []

    def noted(name, method):
        def draw(ax, *args, **kwargs):
            notes.append((name, seen(args), seen(kwargs)))
            return method(ax, *args, **kwargs)

        return draw

    with pytest.MonkeyPatch.context() as patch:
        for name in DRAWING:
            patch.setattr(Axes, name, noted(name, getattr(Axes, name)))
        for name in ("draw_without_rendering", "tight_layout"):
            patch.setattr(Figure, name, lambda figure, **_: None)
        yield notes


def seen(value):
    """A value as a reader sees it, as text for comparison."""
    if isinstance(value, dict):
        return {name: seen(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [seen(one) for one in value]
    if hasattr(value, "get_path") and hasattr(value, "get_transform"):
        return np.round(value.get_path().transformed(value.get_patch_transform()).vertices, 9).tolist()
    if hasattr(value, "evaluate"):
        return [seen({one.name: one.start() for one in value.inputs}), seen(value.evaluate())]
    if hasattr(value := getattr(value, "frame", value), "to_csv"):
        return value.to_csv()
    if dataclasses.is_dataclass(value) and hasattr(value, "question"):
        return dataclasses.astuple(value)
    if isinstance(value, np.ndarray) or hasattr(value, "dims"):
        return repr(np.asarray(value).tolist())  # nothing equals NaN, but its text does
    shown = repr(value)
    if " at 0x" in shown or type(value).__module__.startswith(("book.", "IPython.")):
        shown = next((getattr(value, kind)() for kind in RICH if hasattr(value, kind)), shown)
    return re.sub(r" at 0x[0-9a-f]+", "", str(shown))


def run(statement, names):
    """Run a statement; what it prints, draws and, at the end of a cell, shows."""
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
    """Erdil's frontiers on every sixteenth point of their grid, few loads of a verdict, few simulated requests."""
    fine = frontiers.grid
    monkeypatch.setattr(frontiers, "grid", lambda *given: tuple(axis[::16] for axis in fine(*given)))
    monkeypatch.setattr(economics, "cached", lambda name, make, *patterns: make())
    monkeypatch.setattr(economics, "_FOUND", {})
    monkeypatch.setattr(queueing, "REQUESTS", 100)
    monkeypatch.setattr(queueing, "LEAST_WARM", 50)
    each = simulation.simulate_requests
    few = lambda found, slo, count, *more, **other: each(found, slo, min(count, 100), *more, **other)  # noqa: E731
    monkeypatch.setattr(simulation, "simulate_requests", few)
    monkeypatch.setattr(verdicts, "PER_DOUBLING", 1)
    if "CASES" not in os.environ:  # CI asks all three services
        monkeypatch.setattr(services, "SERVICES", {"chat": services.SERVICES["chat"]})
    yield
    for name, module in list(sys.modules.items()):  # results kept in memory are coarse
        for value in vars(module).values() if name.startswith("book.papers") else ():
            getattr(value, "cache_clear", lambda: None)()


@cache
def played(chapter, inputs):
    """Run the statements that read some inputs, as printed; return them, the names around, and each output."""
    plt.switch_backend("agg")
    every, names, found = list(statements(chapter)), {"__name__": "cell"}, []
    wanted = [one for given in inputs for one in followers(every, given)]
    makers = [one for one in every if one.makes & set(inputs)]
    for statement in needed(every, [*wanted, *makers]):
        before = dict(names)
        shown = run(statement, names)
        found.append((statement, before, dict(names), shown))
    return found


def stay(found, given, change):
    """Run the statements that read a changed input again; return those that show the same as before."""
    changed, stayed, first = {}, [], True
    for statement, before, after, shown in found:
        if first and given in statement.makes and not statement.reads & changed.keys():
            changed[given], first = change(after[given]), False
        elif statement.reads & changed.keys():
            now = before | changed
            again = run(statement, now)
            changed |= {made: now[made] for made in statement.makes if made in now}
            if shown is not None and again == shown:
                stayed.append(statement)
        else:
            changed = {name: value for name, value in changed.items() if name not in statement.makes}
    assert not first, f"there is no {given}"
    return stayed


def named_by(starts, stayed):
    """Statements by the beginnings that name them, or in full."""
    return {
        next((one for one in starts if statement.text.startswith(one)), statement.text)
        for statement in stayed
    }


@pytest.mark.parametrize(
    ("chapter", "given"), [(chapter, given) for chapter, inputs in INPUTS.items() for given in inputs]
)
def test_what_depends_on_an_input_changes_and_nothing_else(chapter, given, coarse):
    still = set(excepted("reads an input and stays", f"{chapter} {given}"))
    stayed = stay(played(chapter, tuple(INPUTS[chapter])), given, INPUTS[chapter][given])
    assert named_by(still, stayed) == still


@pytest.mark.parametrize("chapter", sorted({*INPUTS, "introduction", "mazurek2025", "price", "synthesis"}))
def test_every_picture_and_box_follows_some_input(chapter):
    """Except those that show printed or measured numbers, or a mechanism without a number."""
    every = list(statements(chapter))
    follow = {one.shows for given in ("case", *INPUTS.get(chapter, ())) for one in followers(every, given)}
    assert {one.shows for one in every} - follow - {""} == set(excepted("follows no input", chapter))


WITHIN = {  # chapter -> its equation, and another one in its place
    "erdil2025_toy": (erdil2025.grid_all_reduce_time, lambda n_gpu, t_hop: 2 * t_hop * ops.log2(n_gpu)),
    "liminal2025": (
        liminal2025.batch_time,
        lambda application, chip, batch, context, n, stages, t_tp, assumptions: ops.maximum(
            liminal2025.memory_time(application, chip, batch, context, n, assumptions),
            liminal2025.exposed_time(application, n, stages, t_tp, assumptions),
        ),
    ),
}


@pytest.mark.filterwarnings("ignore:.*closed form of")
@pytest.mark.parametrize("chapter", WITHIN)
def test_no_cell_of_a_chapter_stops_under_a_variant_and_its_box_follows(chapter, coarse):
    plt.switch_backend("agg")
    names, boxes = {"__name__": "cell"}, []
    with variant(*WITHIN[chapter]):
        for statement in statements(chapter):
            run(statement, names)
            if statement.shows.startswith("explorers."):
                boxes.append((statement.text, eval(statement.text, names)._repr_html_()))
    (box,) = boxes
    assert eval(box[0], names)._repr_html_() != box[1]
