"""Mazurek & Schreiber 2025 against measurements, in pictures: data first, here or in the studies."""

from book.mazurek2025 import repair, validation
from book.mazurek2025.systems import CONTEXT, READINGS, TRUE
from inferlib import style


def _axes(size=(6.4, 3.8)):
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def scan(ax=None):
    """Error over the seven points for every context, in three readings; thin lines for the three on H100s alone."""
    ax = ax or _axes()
    shown = {"capped": style.PURPLE, "literal": style.GREEN, "corrected": style.BLUE}
    readings = validation.readings()
    for name, colour in shown.items():
        found = validation.scan(readings[name], high=11000) * 100
        data, h100 = found.rms, found.filter(like="9x8")
        if name in READINGS:
            ax.plot(found.index, (h100**2).mean(axis=1) ** 0.5, color=colour, linewidth=0.9)
        ax.plot(data.index, data, color=colour)
        ax.plot(data.idxmin(), data.min(), "o", color=colour, label=name)
    ax.legend(loc="upper right", fontsize=9)
    for context, text in ((TRUE, "measured\nlength"), (CONTEXT, "quoted\naverage")):
        ax.axvline(context, color=style.INK, linewidth=1, linestyle=":")
        ax.text(context + 90, 104, text, ha="left", va="top", fontsize=9)
    ax.set(xlabel="tokens of context that the model is given", ylabel="rms error of the seven points, %")
    ax.set(ylim=(0, 108), xlim=(500, 11000))
    return ax


def overhead_data():
    """SGLang on 72 H100s at about 2050 tokens: speeds measured and modelled over the batch.

    Returns
    -------
    pandas.DataFrame
        Indexed by (overlap, sequences a GPU): ``measured``, ``capped``, ``literal``, ``with overhead``.
    """
    import pandas as pd

    table = validation.measured().loc[list(validation.H100)]
    table = table[table.output_tokens == 100]
    models = READINGS | {"with overhead": repair.fitted()}
    rows = {
        (row.overlap == "two-batch", row.own): (
            row.per_gpu, *(validation.predicted(row, assumed) for assumed in models.values())
        )
        for _, row in table.iterrows()
    }  # fmt: skip
    data = pd.DataFrame.from_dict(rows, orient="index", columns=["measured", *models])
    data.index = pd.MultiIndex.from_tuples(data.index, names=["overlap", "own"])
    return data.sort_index()


def overhead(axes=None):
    """Measured points against the capped model with the overhead and without, and the literal one."""
    import matplotlib.pyplot as plt

    if axes is None:
        axes = plt.subplots(1, 2, figsize=(7.2, 3.5), sharey=True, layout="constrained")[1]
    data = overhead_data()
    for ax, (overlap, title) in zip(
        axes, ((False, "without overlap"), (True, "two-batch overlap")), strict=True
    ):
        rows = data.loc[overlap]
        ax.plot(rows.index, rows.capped, "--", color=style.PURPLE, label="capped")
        ax.plot(rows.index, rows["with overhead"], color=style.PURPLE, label="capped, with overhead")
        ax.plot(rows.index, rows.literal, color=style.GREEN, label="literal")
        ax.plot(rows.index, rows.measured, "o", color=style.INK)
        ax.set(xscale="log", yscale="log", title=title, xlabel="sequences on a GPU")
        ax.set_xticks([2, 8, 32, 128], ["2", "8", "32", "128"])
        ax.minorticks_off()
    axes[0].set_ylabel("tokens per second and GPU")
    axes[0].legend(loc="upper left", fontsize=8.5)
    return axes


def components(axes=None):
    """Where the time of a layer goes, at the true length: both readings beside SGLang's profile."""
    import matplotlib.pyplot as plt

    if axes is None:
        axes = plt.subplots(figsize=(7.0, 3.8), layout="constrained")[1]
    data = repair.components()
    colours = (style.GREEN, style.BLUE, style.RED, style.FAINT)
    columns = list(data.columns)
    for y, column in enumerate(columns):
        left = 0.0
        for part, colour in zip(data.index, colours, strict=True):
            value = data.loc[part, column]
            axes.barh(y, value, left=left, color=colour, height=0.6, label=part if y == 0 else None)
            if value > 0.08:
                axes.text(
                    left + value / 2, y, f"{value:.2f}", ha="center", va="center", color="white", fontsize=9
                )
            left += value
    axes.set_yticks(range(len(columns)), [f"{overlap}: {who}" for overlap, who in columns])
    axes.set(ylim=(len(columns) - 0.5, -0.5), xlabel="milliseconds for a layer, both micro-batches")
    axes.grid(axis="y", visible=False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.2), ncol=4, fontsize=8.5)
    return axes


def predictions(ax=None):
    """Error of every comparable point: capped, literal, corrected, and with the overhead fitted on SGLang's H100s."""
    ax = ax or _axes((6.6, 6.4))
    data = repair.predictions().iloc[::-1]
    for reading, marker, colour in (
        ("capped", "o", style.PURPLE),
        ("literal", "^", style.GREEN),
        ("corrected", "s", style.BLUE),
        ("with overhead", "D", style.ORANGE),
    ):
        ax.plot(100 * data[reading], range(len(data)), marker, color=colour, markersize=5, label=reading)
    ax.axvline(0, color=style.INK, linewidth=1)
    labels = [
        f"{row.system}, {row.GPUs} GPUs, {row['batch per GPU']:.0f} at {row.context:.0f}"
        + ("" if row.overlap != "no" else ", no overlap")
        for _, row in data.iterrows()
    ]
    ax.set_yticks(range(len(data)), labels, fontsize=8)
    ax.set(xlabel="predicted over measured, %", ylim=(-0.7, len(data) - 0.3))
    ax.legend(loc="upper right", fontsize=9)
    return ax
