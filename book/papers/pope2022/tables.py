"""Pope et al. 2022: Tables 1 to 3 and D.1 to D.4, recomputed."""

from functools import partial

import pandas as pd

from book.audit.grading import Reader, WithNote, reproduces, scorecard
from book.frames import labelled
from book.papers.pope2022 import evidence
from book.papers.pope2022.benchmarks import COLUMNS, TABLES, batches, reckoned_parameters, utilisation
from book.papers.pope2022.evidence import TPU, configurations, fitted, others
from inferlib.papers import pope2022 as pope

SLICE = evidence.SLICE


# --- Table 1 ---------------------------------------------------------------------------------------------


def variants(model):
    """The three attention variants of Table 1: name to model and the function that gives its context."""
    return {
        "Multihead": (pope.multihead(model), pope.context_over_heads),
        "Baseline multiquery": (model, pope.context_over_heads),
        "Optimized multiquery": (model, pope.context_over_batch),
    }


def table_1(model=None, chip=TPU, chips=SLICE):
    """Table 1: the longest contexts of PaLM 540B on 64 chips, or of another model elsewhere; not rounded."""
    rows = contexts(model, chip, chips)
    return pd.DataFrame.from_dict(rows, orient="index", columns=["batch 128", "batch 512"])


def contexts(model=None, chip=TPU, chips=SLICE):
    """The rows of :func:`table_1`: variant to a context for each batch."""
    read = Reader("pope2022", "Table 1")
    kept, sizes = read("memory kept for the cache"), [read("batch", size) for size in ("128", "512")]
    return {
        name: [function(variant, chip, chips, batch, kept) for batch in sizes]
        for name, (variant, function) in variants(model or evidence.palm()).items()
    }


def gain(over="Multihead"):
    """Ratio of the optimised variant's longest context to another variant's."""
    found = contexts()
    return found["Optimized multiquery"][0] / found[over][0]


@reproduces("Table 1")
def _table_1():
    found = contexts()
    # the other cells follow from 330 by doubling, if it is first rounded to two digits
    raw = found["Multihead"][1]
    first = 10 * round(raw / 10)
    note = f"1% below the rule: {raw:.1f} rounded to {first:g} first, then doubled or halved, gives all four cells"
    cells = {
        (name, batch): value if name.startswith("Opt") else WithNote(value, note)
        for name, row in found.items()
        for batch, value in zip(("batch 128", "batch 512"), row, strict=True)
    }
    return cells | {"context of the optimised layout over the others": gain()}


# --- Tables 2 and 3 --------------------------------------------------------------------------------------


def printed_utilisation(read, table, row):
    """Utilisation of a configuration of Tables 2 and 3, from the latency printed beside it."""
    entry = next(e for e in pope.STATED["configurations"] if (e["table"], e["row"]) == (table, row))
    each = "tokens of decode" if row.endswith("decode") else "tokens of prefill"
    tokens = read(row, "batch", table) * read(each, artefact=table)
    n_params = reckoned_parameters(entry["model"])
    return pope.mfu(TPU, read(row, "chips", table), n_params, tokens, read(row, "latency", table))


@labelled("printed", "least", "excess")
def chosen():
    """The layout that moves least for each configuration of Tables 2 and 3, and how much more the paper's moves."""
    for place, at in configurations().items():
        best, name = pope.choose(at["model"], TPU, at["mesh"], at["tokens"])
        own = pope.layer_time(at["model"], TPU, at["mesh"], at["tokens"], at["layout"])
        yield place, (at["layout"], str(name.values), float(own / best) - 1)


@reproduces("Table 2", "Table 3")
def _configurations(read):
    found = {}
    for (table, row), at in configurations().items():
        if table == read.artefact:
            found[row, "MFU"] = partial(printed_utilisation, table=table, row=row)
            seconds = at["passes"] * evidence.pass_time(at, fitted())
            found[row, "latency"] = WithNote(seconds, "two-constant model, fitted on Tables D.2 to D.4")
    return found


@labelled()
def cost_table():
    """Tables 2 and 3 as printed, configuration by configuration, with what the latency means in chip-ms per token."""
    for (table, row), at in configurations().items():
        seconds, chips = evidence.measured_pass(table, row, 1), at["mesh"].chips
        yield (
            f"{at['model'].name}, {row}",
            {
                "chips": int(chips),
                "batch": int(at["batch"]),
                "FFN": at["layout"],
                "attention": at["attention"],
                "weights": {1: "int8", 2: "bfloat16"}[at["model"].weight_bytes],
                "latency, s": seconds,
                "chip-ms per token": round(1e3 * pope.cost(chips, at["tokens"] * at["passes"], seconds), 2),
            },
        )


# --- Appendix D ------------------------------------------------------------------------------------------


@reproduces("Table D.1")
def _table_d1(read):
    def count(read, row, name):
        # printed shapes; vocabulary and matrices of the block from the assumptions
        shape = {"layers": "layers", "d_model": "d_model", "d_ff": "d_ff", "d_head": "head_dim"}
        model = pope.load_model(name)
        kv_heads = model.kv_heads if model.kv_heads == 1 else read(row, "heads")
        changes = {field: read(row, printed) for printed, field in shape.items()}
        return pope.parameters(model.replace(heads=read(row, "heads"), kv_heads=kv_heads, **changes))

    return {
        ("PaLM 540B", "parameters"): partial(count, row="PaLM 540B", name="PaLM 540B"),
        ("Megatron 530B", "parameters"): partial(count, row="Megatron 530B", name="MT-NLG 530B"),
    }


@reproduces(*TABLES)
def _benchmark(read):
    """All cells of one of Tables D.2 to D.4 that something computes."""
    table, found = read.artefact, {}
    constants = fitted(others(table))
    model = evidence.cells((table,))
    times = pd.Series(evidence.predicted(model, constants), [model.phase, model.batch])
    note = f"two-constant model, fitted on PaLM in {' and '.join(others(table))}"
    for column in COLUMNS:
        for batch in batches(table, column):
            row = f"batch {batch}"
            found[row, f"{column}, MFU"] = partial(_printed_rule, row=row, column=column, batch=batch)
            if column in ("PaLM prefill", "PaLM generate"):
                found[row, f"{column}, time"] = WithNote(float(times[column.split()[1], batch]), note)
            elif column == "PaLM total":
                found[row, f"{column}, time"] = partial(_sum, row=row)
            elif column == "MT-NLG total":
                predicted = evidence.megatron(table, batch, constants)
                found[row, f"{column}, time"] = WithNote(predicted, note + ", other model")
    return found


def _printed_rule(read, row, column, batch):
    value = utilisation(read, read.artefact, column, batch, read(row, f"{column}, time"))
    if (read.artefact, column) != ("Table D.4", "MT-NLG total"):
        return value
    other = utilisation(read, read.artefact, column, batch, read(row, "PaLM total, time"))
    return WithNote(value, f"from its own time; from the time printed as PaLM's total: {other:.1%}")


def _sum(read, row):
    value = read(row, "PaLM prefill, time") + read(row, "PaLM generate, time")
    if read.artefact != "Table D.4":
        return value
    return WithNote(value, "prefill + generate, which is what is printed as MT-NLG's total")


def recomputed(table, what):
    """The cells ``what``, time or MFU, of one of Tables D.2 to D.4: as recomputed, and in brackets as printed."""
    rows = scorecard("pope2022", table)
    rows = rows[rows.column.str.endswith(f", {what}") & (rows.reproduced != "")]
    told = [f"{float(row.reproduced):.1f}\u00a0({row.printed})" for row in rows.itertuples()]
    rows = rows.assign(
        told=told,
        batch=rows.row.str.removeprefix("batch ").astype(int),
        column=rows.column.str.removesuffix(f", {what}"),
    )
    made = rows.pivot(index="batch", columns="column", values="told")[rows.column.unique()]
    return made.fillna("").reset_index()
