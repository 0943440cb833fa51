"""``python -m book.serving.residuals``: all models' predictions for a measurement.

Checks a file of measurements against the schema and prints, for each row, every model's time and error. ``--since``
names an older copy of the file: then only new and changed rows are shown.
"""

import argparse
import sys

from book import measured as measurements
from book.serving import fit
from book.synthesis import comparison
from inferlib import validation
from tokenprice import predictors


def main(arguments=None):
    """The command; returns the exit status."""
    about = __doc__.splitlines()[0]
    check = argparse.ArgumentParser(prog="python -m book.serving.residuals", description=about)
    check.add_argument(
        "ids", nargs="*", help="rows to show; all that are new with --since, else the last one"
    )
    check.add_argument("--file", help="a CSV file like measurements.csv; the package's own when not given")
    check.add_argument("--since", help="an older copy of the file: show rows that are new or changed")
    given = check.parse_args(arguments)
    try:
        ids = given.ids or _chosen(given)
        print(residuals(ids, given.file))
    except (ValueError, LookupError, OSError) as refusal:
        print(refusal, file=sys.stderr)
        return 1
    return 0


def _chosen(given):
    table = measurements.load(given.file)
    if not given.since:
        return [table.index[-1]]
    old, new = measurements.load(given.since).astype(str), table.astype(str)
    return [i for i in table.index if i not in old.index or not new.loc[i].equals(old.loc[i])]


def residuals(ids, path=None):
    """Markdown: every model's prediction and error for the rows named.

    ``path``: a CSV file; the package's own when not given. Raises LookupError if there is no such row.
    """
    table = comparison.rows(path)
    closed = measurements.serving() if path is None else table.iloc[:0]
    lines = [f"{len(table)} rows, all valid by the schema."]
    for i in ids:
        if i in closed.index:
            lines += _serving(i)
            continue
        validation.one_of("row", i, list(table.index))
        row = table.loc[i]
        lines += ["", f"**{i}**: {row.model}, {row.n_gpus} x {row.hardware}, {row.sequences:.0f} sequences, "
                  f"{row.context:,.0f} tokens, measured {1e3 * row.tpot:.2f} ms ({row.use})", ""]  # fmt: skip
        answers = comparison.answers(table=table.loc[[i]])
        if answers.empty:
            lines.append("No model can answer: no time, no formats, or a model without a published shape.")
            continue
        lines += ["| model | predicted | error |", "|---|---|---|"]
        for answer in answers.itertuples():
            told = f"{1e3 * answer.predicted:.2f} ms | {100 * answer.error:+.0f} %"
            refused = f"{answer.status} | {answer.reason}"
            lines.append(f"| {predictors.label(answer.who)} | {told if answer.status == 'ok' else refused} |")
    return "\n".join(lines)


def _serving(name):
    """Describe the kernel model's TPOT and TTFT for a serving benchmark."""
    row = fit.serving_rows().loc[name]
    head = (
        f"**{name}**: {row.model}, {row.n_gpus} x {row.hardware}, {row.concurrency} users, "
        f"{row.prompt_tokens:.0f} tokens in and {row.output_tokens:.0f} out ({row.use})"
    )
    own = fit.data()[fit.data().id == name]
    if own.empty:
        return ["", head, "", "Not asked."]
    told = float(fit.predict(own, fit.fit_all()).iloc[0])
    lines = ["", head, "", "| time | measured | predicted | error |", "|---|---|---|---|"]
    lines.append(
        f"| between tokens | {1e3 * row.tpot:.2f} ms | {1e3 * told:.2f} ms | {100 * (told / row.tpot - 1):+.0f} % |"
    )
    near = fit.first_rows()
    if name in set(near.id):
        first = float(fit.first_token(near[near.id == name])(fit.fit_first_all())[0])
        error = 100 * (first / row.ttft - 1)
        lines.append(f"| first token | {1e3 * row.ttft:.0f} ms | {1e3 * first:.0f} ms | {error:+.0f} % |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
