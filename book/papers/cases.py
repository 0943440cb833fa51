"""The four case files, three proven and one a hypothesis, each with its evidence as a small table.

Every number is computed or printed by a source.
"""

import dataclasses

import pandas as pd

from book.audit import grading
from book.papers.erdil2025 import economics
from book.papers.liminal2025 import efficiency
from book.papers.mazurek2025 import validation
from book.papers.pope2022 import benchmarks
from inferlib.papers.erdil2025.equations.printed import value

# A question that two tables of Erdil answer: Llama 3 70B at 16 bits on H100s, no drafts, the preferred point.
TWICE = {"Table 5": "Llama 3 70B", "Table 6": "16-bit weights"}


def printed_twice():
    """Return what two tables of Erdil print for the same question.

    Indexed by table; in the units printed.
    """
    rows = grading.published("erdil2025")
    return pd.DataFrame(
        {
            table: {name: rows[table, row, name].printed for name in economics.COLUMNS}
            for table, row in TWICE.items()
        }
    ).T


def worth(twice, alpha):
    """Return the value of two printed points by equation 45, speed to the power alpha over price, by table."""
    speed, price = (twice[name].to_numpy() for name in ("tokens per second", "price of a million tokens"))
    return pd.Series(value(speed, price, alpha), index=twice.index)


def computed_twice(**changes):
    """Compute the same question with the assumptions of both tables.

    ``**changes``: changes to fields of Table 6's assumptions; with any, only the answer to those is returned. Indexed
    by the table whose assumptions are used; columns as in :func:`printed_twice`.
    """
    (older, point), (newer, _) = (economics.settings()[table, row] for table, row in TWICE.items())
    asked = {"assumptions of Table 5": older["assumptions"], "assumptions of Table 6": newer["assumptions"]}
    if changes:
        asked = {"changed": newer["assumptions"].replace(**changes)}
    found = {name: point(economics.curve(**newer | {"assumptions": a})) for name, a in asked.items()}
    return pd.DataFrame(
        {
            name: {shown: row[column] for shown, column in economics.COLUMNS.items()}
            for name, row in found.items()
        }
    ).T


def notebooks():
    """Return the assumptions in which the two tables differ.

    Indexed by field; one column per table.
    """
    records = {table: economics.settings()[table, row][0]["assumptions"] for table, row in TWICE.items()}
    names = [field.name for field in dataclasses.fields(records["Table 5"])]
    fields = {table: [getattr(record, name) for name in names] for table, record in records.items()}
    frame = pd.DataFrame(fields, index=names, dtype=object)
    return frame[frame["Table 5"].astype(str) != frame["Table 6"].astype(str)].rename_axis("assumption")


def sums(table):
    """Prefill, generate, their sum, and both columns of totals of one of Pope's tables.

    Indexed by batch; milliseconds.
    """
    columns = ("PaLM prefill", "PaLM generate", "PaLM total", "MT-NLG total")
    rows = {
        batch: {name: 1e3 * benchmarks.printed_time(table, name, batch) for name in columns}
        for batch in benchmarks.batches(table, "PaLM prefill")
    }
    frame = pd.DataFrame(rows).T.rename_axis("batch")
    frame.insert(2, "sum", frame["PaLM prefill"] + frame["PaLM generate"])
    return frame.round().astype(int)


def quoted_gains(contexts=(32, 128)):
    """The gains that section 4.6 of LIMINAL quotes, and the same rule at several contexts.

    ``contexts``: in the paper's K. Indexed by model: ``quoted``, then batch and gain at each context.
    """
    said = efficiency.quoted()
    ours = efficiency.markers(contexts).set_index("model").loc[list(said)]
    ours.insert(0, "quoted", pd.Series(said))
    beyond = {name: efficiency.marker(name, "3D-DRAM", 1024 * contexts[-1], beyond=True)[1] for name in said}
    ours[f"past the loss at {contexts[-1]}K"] = pd.Series(beyond)
    return ours


def misses():
    """Return the worst miss of the three quoted gains at each context.

    Indexed by thousands of tokens.
    """
    found = efficiency.best_context(efficiency.quoted().get)
    return pd.Series(found, name="worst miss").rename_axis("context, K")


def lengths():
    """The lengths that the measurements of Mazurek and Schreiber's seven points state.

    Indexed by system: tokens of prompt and of output, and the mean context of a sequence.
    """
    table = validation.measured()
    table = table[["prompt_tokens", "output_tokens", "mean_context"]]
    rows = {name: table.loc[list(ids)].drop_duplicates() for name, ids in validation.COMPARED.items()}
    return pd.concat(rows, names=["system"]).droplevel(1).astype(int)


def agreement_at(context):
    """Error of Mazurek and Schreiber's seven points at a context, with the experts of a GPU capped.

    Indexed by system and sequences a GPU; the last row is the root of the mean square.
    """
    errors = pd.Series(validation.compared(context))
    errors.index = [f"{name}, {own} a GPU" for name, own in errors.index]
    errors["rms"] = validation.rms(errors)
    return errors.rename_axis("point")
