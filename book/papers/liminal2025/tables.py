"""LIMINAL 2025: Tables 1 to 7, recomputed."""

import re
from functools import partial

import pandas as pd

from book import stored
from book.audit import grading
from book.audit.explanations import named
from book.audit.grading import WithNote
from book.audit.notation import Symbols
from book.frames import frame
from book.papers.liminal2025 import cells, experts, speeds
from inferlib.equation import notation_of
from inferlib.papers import liminal2025 as model
from inferlib.papers.liminal2025 import PRINTED, chips, load_chip, load_model, models, transformer
from inferlib.transformer import Experts
from inferlib.units import factor

# Headings of columns in Tables 4 to 7: quantity, context, and batch, size or latency.
_HEAD = re.compile(r"(.*?) ?(T=\d+K)? ?(B=\d+|TP\d+|UTPS|Speedup|[\d.]+us|\d+ns)?")
# The families of Table 1: the rows of Table 4 that belong to each, and its architecture as printed.
FAMILIES = stored.toml("papers/liminal2025/families.toml")


def architecture(name):
    """The parts of a model in the paper's words: ``GQA+MLP``, or with a star where layers differ."""
    shape = transformer(name)
    attention = shape.layers[0].attention.kind
    kinds = {isinstance(group.feed_forward, Experts) for group in shape.layers}
    return f"{attention}+{'MoE*' if len(kinds) > 1 else 'MoE' if kinds == {True} else 'MLP'}"


@frame()
def table_1():
    """Compare the models' configurations with Table 1."""
    for name in models():
        shape, app = transformer(name), load_model(name)
        yield {
            "model": name,
            "architecture": architecture(name),
            "released (B)": shape.n_params / 1e9,
            "counted (B)": model.stored_weights(app) / 1e9,
            "active (B)": (app.resident + app.expert * app.n_experts * app.routed_share) / 1e9,
            "layers": int(app.layers),
            "cache of a token (KiB)": model.cache_size(app, 1) / 1024,
            "S at TP8": int(model.collectives(app, 8)),
            "S at TP128": int(model.collectives(app, 128)),
        }


def table_2():
    """The variables of Table 2: the paper's symbol, the name in this library, and what it is."""
    names = ("n", "stages", "flops", "bandwidth", "t_tp", "t_stage", "layers")
    names += ("tensor_work", "bytes_loaded", "collectives")
    entries = notation_of("liminal2025")
    rows = [(f"${entries[n]['symbol']}$", f"`{n}`", entries[n]["meaning"]) for n in names]
    return Symbols(pd.DataFrame(rows, columns=["symbol", "name", "meaning"]))


@frame()
def table_3():
    """The chips as printed, then in SI units, with the intensity at which arithmetic and memory are balanced."""
    printed = grading.published("liminal2025")
    for name in chips():
        chip = load_chip(name)
        stated = [printed["Table 3", f"xPU-{name}", column] for column in ("Mem BW", "Compute", "Capacity")]
        yield {
            "chip": f"xPU-{name}",
            "printed": ", ".join(f"{row.text} {row.unit.replace('i', '')}" for row in stated),
            "memory (10^12 B/s)": chip.bandwidth / 1e12,
            "arithmetic (PFLOP/s)": chip.flops / 1e15,
            "capacity (10^9 B)": chip.capacity / 1e9,
            "balance (FLOP/B)": chip.flops / chip.bandwidth,
            "one read of all memory (ms)": 1e3 * chip.capacity / chip.bandwidth,
        }


def as_printed(artefact):
    """One of Tables 4 to 7 in the paper's writing."""
    printed, ours = cells.printed_cells(), cells.computed_cells()
    table = {}
    for (table_of, row, column), text in printed.items():
        if table_of == artefact:
            found = ours[artefact, row, column]
            table.setdefault(row, {})[column] = found if found == text else f"{found} [{text}]"
    frame = pd.DataFrame(table).T
    heads = [_HEAD.fullmatch(column).groups(default="") for column in frame]
    levels = [level for level in zip(*heads, strict=True) if any(level)]
    frame.columns = pd.MultiIndex.from_arrays(levels)
    return frame


# --- The scorecard ---------------------------------------------------------------------------------------


@grading.reproduces("Table 5", "Table 6", "Table 7")
def _cells(read, assumptions=PRINTED):
    found = cells.cells(cells.Reading(assumptions))
    return {
        place[1:]: partial(_too_large, *place[1:], assumptions) if value is None else value
        for place, (value, _) in found.items()
        if place[0] == read.artefact
    }


def _too_large(name, column, assumptions, read):
    """Return a value for a cell whose model does not fit: None, with the reason."""
    n, gb = int(column.rpartition("TP")[2]), factor("GiB")
    weights = model.stored_weights(load_model(name, assumptions), assumptions)
    held = named(f"memory of {n} HBM3 chips", n * load_chip("HBM3").capacity, "B")
    return WithNote(None, f"weights of {weights / gb:,.0f} GB of the paper's, and room for {held / gb:,.0f}")


def sizes(family=None):
    """The sizes that Table 1 lists, of one family or of all."""
    rows = (row for row in grading.published("liminal2025").values() if row.artefact == "Table 1")
    return [row.column for row in rows if row.kind == "quoted" and family in (None, row.row)]


def families():
    """The families of Table 1."""
    rows = grading.published("liminal2025").values()
    return list(dict.fromkeys(row.row for row in rows if row.artefact == "Table 1"))


@grading.reproduces("Table 1")
def _table_1():
    found = {}
    for family, its in FAMILIES.items():
        for column, name in zip(sizes(family), its["models"], strict=True):
            released, counted = transformer(name).n_params, model.stored_weights(load_model(name))
            note = f"{released / 1e9:.2f}B released; Table 4 counts {counted / 1e9:.2f}B"
            found[family, column] = WithNote(released, note)
    return found


@grading.reproduces("Table 1")
def _architectures(holds):
    for family, its in FAMILIES.items():
        stated, kinds = its["architecture"], {name: architecture(name) for name in its["models"]}
        # the star marks models of dense and sparse layers
        starred, mixed = stated.endswith("*"), any(kind.endswith("*") for kind in kinds.values())
        fair = "except for the star, which marks models with dense and sparse layers" * (starred != mixed)
        right = [kind.strip("*") == stated.strip("*") for kind in kinds.values()]
        primary = f"{family}: the primary architecture is {stated}"
        holds(primary, speeds.most(right), grading.format_items(kinds, ""), fair)


@grading.reproduces("Table 4")
def _table_4(read, assumptions=PRINTED):
    found = _cells(read, assumptions)
    contexts = {label: k * cells.AS_PRINTED.kilotoken for label, k in cells.CONTEXTS.items()}
    for (name, column), value in found.items():
        app = load_model(name)
        if column.startswith("AMI") and column.endswith("B=32") and app.expert:
            context = contexts[column.split()[1]]
            one = experts.intensity_spread(app, experts.batch_of(column), context)
            found[name, column] = WithNote(
                value, f"Monte-Carlo in print, closed form here: one draw of experts spreads it by {one:.1%}"
            )
    return found
