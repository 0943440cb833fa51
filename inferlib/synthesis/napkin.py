"""The napkin card: eight formulas, where they hold, and how far measurements are from them."""

from inferlib.principles import roofline
from inferlib.synthesis import against, rooms, sixth


def card():
    """The card as a table.

    Returns
    -------
    pandas.DataFrame
        ``what``, ``formula`` (LaTeX of the function), ``function``, ``holds`` where, and ``measured``: the error of
        the formula on the measurements that test it, or what else it was checked against.
    """
    import pandas as pd

    rows = [
        (what, function.equation.latex(), f"{function.equation.source}.{function.__name__}", holds, measured)
        for what, function, holds, measured in _entries()
    ]
    return pd.DataFrame(rows, columns=["what", "formula", "function", "holds", "measured"])


def _entries():
    alone = _share("one chip, batch 1", lambda t: (t.tp == 1) & (t.batches == "1"))
    alone_many = _share(
        "one chip, batch over 8", lambda t: (t.tp == 1) & t.batches.isin(["9 to 32", "33 to 128", "over 128"])
    )
    many = _share("8 chips", lambda t: t.tp == 8)
    whole = f"{100 * sixth.stated()['error']['held_out']:.0f} % mean error held out"
    counts = "published counts, within 1 %"
    return [
        ("weights that a step reads", roofline.weights_read, "always; routing taken as even", counts),
        ("cache that a step reads", roofline.cache_data, "always; kernels of late 2023 read more", counts),
        ("arithmetic of a step", roofline.decode_work, "always; norms and softmax left out", counts),
        ("time to read", roofline.memory_time, "one chip; nothing is faster", alone),
        ("least time of a step", roofline.roofline_time, "one chip, any batch", alone_many),
        (
            "batch where arithmetic counts",
            roofline.critical_batch,
            "short context, dense",
            "no row reaches it",
        ),
        ("waiting for one another", sixth.waiting_time, "one box; linear in the chips", many),
        ("time of a token", sixth.step_time, "one instance, no experts on chips of their own", whole),
    ]


def _share(what, choose):
    """How far measurements are above the bound, on the clean rows of one instance that are chosen."""
    table = against.over_bound()
    table = table[(table.use == "clean") & table.instance]
    ratio = table[choose(table)].ratio
    spread = f"{ratio.min():.2f} to {ratio.max():.2f}, {len(ratio)} rows"
    return f"{what}: measured {ratio.median():.2f} times the bound ({spread})"


class Card:
    """The card for the page: a Markdown list with the formulas set."""

    def __init__(self, table):
        self.table = table

    def _repr_markdown_(self):
        return "\n".join(
            f"{i}. **{row.what[0].upper()}{row.what[1:]}.** ${row.formula}$\n\n"
            f"   Holds: {row.holds}. Checked: {row.measured}. In code: `{row.function}`.\n"
            for i, row in enumerate(self.table.itertuples(index=False), 1)
        )

    def __repr__(self):
        return self.table.drop(columns="formula").to_string(index=False)


def show():
    """The card as the chapter shows it."""
    return Card(card())


def five_lines():
    """The sixth model as text to paste anywhere: its three numbers are those of ``sixth.toml``."""
    c = sixth.fitted()
    return "\n".join(
        [
            "def ms_per_token(gbytes, gflop, layers, chips, tb_per_s, tflop_per_s):",
            '    """Bytes read and FLOP of one step, data sheet of one chip; N chips in tensor parallel."""',
            f"    peak = max(gbytes / tb_per_s, gflop / tflop_per_s) / chips / {c.share:.2f}",
            f"    return peak + layers * ({1e3 * c.layer:.3f} + {1e3 * c.reductions * c.hop:.4f} * (chips - 1))",
        ]
    )


def symbols():
    """What the letters on the card mean, from the notations of its two chapters."""
    import pandas as pd

    from inferlib.equation import notation_of

    used = " ".join(card().formula)
    rows = {}
    for source in ("principles", "synthesis"):
        for entry in notation_of(source).values():
            if entry["symbol"] in used:
                rows.setdefault(entry["symbol"], (f"${entry['symbol']}$", entry["meaning"]))
    return pd.DataFrame(rows.values(), columns=["symbol", "meaning"])


def running():
    """Answers to the running question, and the nearest measurement there is."""
    from inferlib.synthesis import grid

    return {rooms.label(key): rooms.ask(key, *grid.running()) for key in rooms.everybody()}
