"""Pope et al. 2022, appendix D: the three tables of measurements, as data, and their Pareto frontiers."""

from functools import cache

from book.audit.grading import Reader, published
from book.frames import frame
from inferlib import validation
from inferlib.papers.pope2022 import STATED, load_chip, load_model, mfu, parameters

TABLES = ("Table D.2", "Table D.3", "Table D.4")
# Chips of each column; the first three are FasterTransformer's, on A100s.
COLUMNS = {
    "FT TP16": 16, "FT TP32": 32, "FT PP3/TP8": 24,
    "PaLM prefill": 64, "PaLM generate": 64, "PaLM total": 64, "MT-NLG total": 64,
}  # fmt: skip
TOTALS = ("FT TP16", "FT TP32", "FT PP3/TP8", "PaLM total", "MT-NLG total")


@cache
def batches(table, column):
    """The batches for which a column prints a time.

    Examples
    --------
    >>> batches("Table D.2", "PaLM prefill")
    (4, 8, 16, 32, 64, 128, 256, 512, 1024)
    """
    validation.one_of("table", table, TABLES)
    validation.one_of("column", column, COLUMNS)
    rows = published("pope2022").values()
    return tuple(
        int(row.row.split()[1])
        for row in rows
        if row.artefact == table and row.column == f"{column}, time" and row.text != "-"
    )


def lengths(read, table):
    """Tokens of input and of output of a table."""
    return read("tokens", "input", table), read("tokens", "output", table)


def chip_of(column):
    """The chip a column was measured on."""
    return load_chip("A100" if column.startswith("FT") else "TPU v4")


def reckoned_parameters(name):
    """Parameter count by which the paper computes utilisation: as in a model's name, for PaLM 540B the full one."""
    return STATED["named"].get(name) or parameters(load_model(name))


def tokens_of(read, table, column, batch):
    """Tokens that a column's time covers."""
    given, made = lengths(read, table)
    part = {"PaLM prefill": given, "PaLM generate": made}.get(column, given + made)
    return batch * part


def utilisation(read, table, column, batch, time):
    """The utilisation that corresponds to a time of a table, by the rule of the paper's own cells."""
    tokens = tokens_of(read, table, column, batch)
    n_params = reckoned_parameters("PaLM 540B" if column.startswith("PaLM") else "MT-NLG 530B")
    return mfu(chip_of(column), COLUMNS[column], n_params, tokens, time)


def printed_time(table, column, batch):
    """A printed time in seconds."""
    return published("pope2022")[table, f"batch {batch}", f"{column}, time"].value


def printed_mfu(table, column, batch):
    """A printed utilisation, a fraction of 1."""
    return published("pope2022")[table, f"batch {batch}", f"{column}, MFU"].value


def open_reader(table):
    """A reader of everything but models and claims, for the chapter's own tables."""
    return _Open("pope2022", table)


class _Open(Reader):
    """A reader that computes no row, and may therefore read derived ones."""

    def __call__(self, row, column="", artefact=None):
        return published(self.source)[artefact or self.artefact, row, column].value


@frame("column", "batch", "time", "printed", "exact")
def totals(table):
    """The end-to-end results of a table: times, the utilisation printed and the one that follows from the time."""
    read = open_reader(table)
    for column in TOTALS:
        for batch in batches(table, column):
            time = printed_time(table, column, batch)
            used = utilisation(read, table, column, batch, time)
            yield column, batch, time, printed_mfu(table, column, batch), used


def on_the_frontier(rows):
    """Mark the :func:`totals` that no other beats in both latency and utilisation, as in appendix D; ties stay."""
    return [not ((rows.time < row.time) & (rows.printed > row.printed)).any() for row in rows.itertuples()]


@frame("table", "rows", "sum = PaLM total", "sum = MT-NLG total")
def column_check():
    """In how many rows of the three tables prefill + generate is the printed total of PaLM, or of MT-NLG.

    To within the rounding of three printed milliseconds.
    """
    for table in TABLES:
        sums = {b: _sum(table, b) for b in batches(table, "PaLM prefill")}
        same = [
            sum(abs(sums[b] - printed_time(table, column, b)) < 1.5e-3 for b in sums)
            for column in ("PaLM total", "MT-NLG total")
        ]
        yield table, len(sums), *same


def _sum(table, batch):
    return printed_time(table, "PaLM prefill", batch) + printed_time(table, "PaLM generate", batch)
