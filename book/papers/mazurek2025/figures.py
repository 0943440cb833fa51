"""Mazurek & Schreiber 2025: its figures, data first and picture second.

Our copy of the source is text: the axes and dots of its Figures 13 to 17 are not available to us, so the curves are
drawn with stated choices (see :mod:`book.papers.mazurek2025.systems`). Figures 2, 3 and 6 are pictures of others.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr

from book import style
from book.audit.ledger import Reader
from book.papers.mazurek2025 import systems, validation
from book.papers.mazurek2025.systems import CONTEXT, MODEL
from inferlib import sweep
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.records import DEFAULT, balancedness, model_of, setup, setups, stated

COLOURS = dict(zip(("4x8 H100", "9x8 H100", "12x4 B200"), style.LINES, strict=False))
SHORT, LONG = 1024, 32768  # tokens: the contexts of Figure 16


def figure_12():
    """Figure 12's bars, read off the plot, and the lines between them that the model uses."""
    _, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    read, gpus = stated()["balancedness"], np.arange(8, 97)
    for bars, text, height, colour in (
        ("gpus", "with_balancing", 0.84, style.VIOLET),
        ("gpus_without", "without_balancing", 0.50, style.PURPLE),
    ):
        ax.plot(gpus, balancedness(gpus, bars == "gpus"), color=colour, linewidth=1.2)
        ax.plot(read[bars], read[text], "o", color=colour)
        ax.text(74, height, text.replace("_", " "), color=colour)
    ax.set(xlabel="GPUs that share the experts", ylabel="mean over largest load", ylim=(0, 1), xlim=(0, 97))
    return ax


def curves(model=MODEL, context=CONTEXT, assumptions=DEFAULT):
    """The three setups over sequences per GPU: speed of a request, of a GPU, of all, and whether they fit."""
    own, parts = sweep("own", 1, 1024, 101), []
    for name in setups():
        at = setup(name)
        n = at.deployment.n_gpus
        step = eq.step_time(model, at.gpu, at.deployment, own * n, context, assumptions)
        held = eq.held_experts(model, at.deployment)
        data = {
            "request": eq.request_speed(step),
            "total": eq.global_throughput(step, own * n),
            "gpu": eq.global_throughput(step, own * n) / n,
            "fits": own <= eq.largest_own_batch(model, at.gpu, context, held, assumptions),
        }
        parts.append(xr.Dataset(data).assign_coords(setup=name))
    return xr.concat(parts, "setup").assign_attrs(context=context, model=model.name)


def measured_points(model=MODEL.name):
    """The seven points of SGLang that the source compares with, named as in :func:`curves`; none of another model."""
    table = validation.measured()[["own", "per_gpu", "n_gpus"]].rename(columns={"per_gpu": "gpu"})
    table = table.assign(request=table.gpu / table.own, total=table.gpu * table.n_gpus)
    points = pd.concat(table.loc[list(ids)].assign(setup=name) for name, ids in validation.COMPARED.items())
    return points if model == MODEL.name else points[:0]


def _finish(ax, ticks=(), legend="best", **axes):
    """Axes with plain numbers at these places of the horizontal one, and a legend."""
    ax.set(**axes)
    if ticks:
        ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        ax.minorticks_off()
    ax.legend(loc=legend, fontsize=9)
    return ax


def _readings(capped, literal, x, y):
    """Curves of both readings, full and dashed, faint where memory would not suffice, with SGLang's points."""
    _, ax = plt.subplots(layout="constrained")
    points = measured_points(capped.model)
    for name, colour in COLOURS.items():
        curve, other = capped.sel(setup=name), literal.sel(setup=name)
        ax.plot(other[x], other[y], "--", color=colour, linewidth=1.2)
        ax.plot(curve[x], curve[y], color=colour, alpha=0.35)
        ax.plot(curve[x], curve[y].where(curve.fits), color=colour, label=name)
        seen = points[points.setup == name]
        ax.plot(seen[x], seen[y], "o", color=colour)
    ax.plot([], [], color=style.INK, label=f"capped, {capped.context:g} tokens")
    ax.plot([], [], "--", color=style.INK, linewidth=1.2, label=f"literal, {literal.context:g} tokens")
    return ax


def figure_13(capped, literal):
    """Figure 13: total throughput against the speed of one request; lines as in :func:`figure_14`."""
    return _finish(
        _readings(capped, literal, "request", "total"), legend="upper right", yscale="log",
        xlim=(0, 65), ylim=(None, 4e6),
        xlabel="tokens per second of one request", ylabel="tokens per second of all requests",
    )  # fmt: skip


def figure_14(capped, literal):
    """Figure 14: tokens per second and GPU over sequences a GPU; faint where memory would not suffice.

    ``capped`` and ``literal``: curves of both readings, full and dashed. Dots are SGLang's.
    """
    return _finish(
        _readings(capped, literal, "own", "gpu"), [1, 4, 16, 64, 256, 1024], "upper left", xscale="log",
        yscale="log", xlabel="sequences on a GPU", ylabel="tokens per second per GPU",
    )  # fmt: skip


def figure_15_data():
    """Figure 15: Kimi K2 over DeepSeek V3."""
    own = sweep("own", 1, 1024, 61)
    models = {"its configuration": model_of("Kimi K2"), "more experts only": systems.more_experts()}
    readings = []
    for reading, kimi in models.items():
        parts = [systems.kimi_over_deepseek(own, name, kimi).assign_coords(setup=name) for name in setups()]
        readings.append(xr.concat(parts, "setup").assign_coords(reading=reading))
    return xr.concat(readings, "reading")


def figure_15():
    """Kimi K2 beside DeepSeek V3: the speed of a GPU, and its change in per cent."""
    _, axes = plt.subplots(1, 2, figsize=(7.4, 3.8), layout="constrained")
    data, looks = figure_15_data(), {"its configuration": ":", "more experts only": "--"}
    for name, colour in COLOURS.items():
        speed = systems.speed(name, data.own)
        axes[0].plot(data.own, speed, color=colour, label=name)
        axes[0].plot(data.own, speed * data.sel(setup=name, reading="its configuration"), ":", color=colour)
        for reading, look in looks.items():
            ratio = data.sel(setup=name, reading=reading)
            axes[1].plot(data.own, 100 * (ratio - 1), look, color=colour)
    for reading, look in looks.items():
        axes[1].plot([], [], look, color=style.INK, label=f"Kimi K2, {reading}")
    over = {"xscale": "log", "xlabel": "sequences on a GPU"}
    _finish(axes[0], [1, 8, 64, 512], yscale="log", ylabel="tokens per second per GPU", **over)
    _finish(axes[1], [1, 8, 64, 512], "lower right", ylabel="Kimi K2 over DeepSeek V3, %", **over)
    return axes


def figure_16_data():
    """Figure 16: how much longer a decode step, and the attention of a prompt, take with more context, on 4x8 H100."""
    at, context = setup("4x8 H100"), sweep("context", SHORT, LONG, 61)
    n = at.deployment.n_gpus
    held = eq.held_experts(MODEL, at.deployment)
    fitting = float(eq.largest_own_batch(MODEL, at.gpu, LONG, held))

    def step(own, context):
        return eq.step_time(MODEL, at.gpu, at.deployment, own * n, context)

    rows = [(step(b, context) / step(b, SHORT)).assign_coords(own=b) for b in (1, 8, 32, 128)]
    rows.append((step(fitting, context) / step(fitting, SHORT)).assign_coords(own=0))
    prompt = eq.prefill_time(MODEL, at.gpu, context) / eq.prefill_time(MODEL, at.gpu, SHORT)
    return xr.Dataset({"prefill": prompt, "decode": xr.concat(rows, "own")})


def figure_16():
    """Figure 16: prefill against decode over the context; the dashed line is the batch that fits at the end."""
    _, ax = plt.subplots(layout="constrained")
    data = figure_16_data()
    ax.plot(data.context, data.prefill, color=style.ORANGE, label="prefill")
    for own, va in ((1, "top"), (8, "center"), (32, "center"), (128, "center")):
        line = data.decode.sel(own=own)
        ax.plot(line.context, line, color=style.BLUE)
        ax.text(1.04 * LONG, float(line[-1]), f"decode, {own} a GPU", color=style.BLUE, va=va, fontsize=9)
    ax.plot(data.context, data.decode.sel(own=0), "--", color=style.INK, label="decode, the batch that fits")
    return _finish(
        ax, [1024, 4096, 16384, 32768], "upper left", xscale="log", yscale="log",
        xlim=(SHORT, 2.6 * LONG), xlabel="tokens of context", ylabel="times as long as at 1024",
    )  # fmt: skip


def figure_17_data():
    """Figure 17: the largest batch of a GPU at 20 tokens per second of a request, and what memory holds."""
    speed = Reader("mazurek2025", "Figure 17")("tokens per second of a request")
    rows = {}
    for context in (2000, CONTEXT, LONG):
        for name in setups():
            at = setup(name)
            held = eq.held_experts(MODEL, at.deployment)
            room = int(eq.largest_own_batch(MODEL, at.gpu, context, held))
            rows[context, name] = (systems.largest_batch(name, speed, context), room)
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["by speed", "by memory"])
    table.index = pd.MultiIndex.from_tuples(table.index, names=["context", "setup"])
    return table


def figure_17():
    """Figure 17 at three contexts; the dash above a bar is the batch for which there is memory."""
    _, ax = plt.subplots(layout="constrained")
    data = figure_17_data()
    contexts = list(data.index.get_level_values("context").unique())
    for i, (name, colour) in enumerate(COLOURS.items()):
        rows = data.xs(name, level="setup")
        x = np.arange(len(contexts)) + 0.27 * (i - 1)
        ax.bar(x, rows["by speed"], 0.24, color=colour, label=name)
        ax.hlines(rows["by memory"], x - 0.12, x + 0.12, color=style.INK, linewidth=2)
        for at, value in zip(x, rows["by speed"], strict=True):
            ax.text(at, 1.15, f"{value}", ha="center", fontsize=8.5, color="white")
    ax.hlines([], 0, 0, color=style.INK, linewidth=2, label="fits in memory")
    ax.set_xticks(range(len(contexts)), [f"{c:,} tokens" for c in contexts])
    ax.grid(axis="x", visible=False)
    return _finish(ax, legend="upper right", yscale="log", ylim=(1, 9000), ylabel="largest batch of a GPU")
