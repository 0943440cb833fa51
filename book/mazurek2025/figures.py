"""Mazurek & Schreiber 2025: its figures, data first and picture second.

Our copy of the source is text: the axes and dots of its Figures 13 to 17 are not available to us, so the curves are
drawn with stated choices (see :mod:`book.mazurek2025.systems`). Figures 2, 3 and 6 are pictures of others.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr

from book import style
from book.audit.ledger import Reader
from book.mazurek2025 import systems, validation
from book.mazurek2025.systems import CONTEXT, MODEL
from inferlib import sweep
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.records import DEFAULT, balancedness, model_of, setup, setups, stated

COLOURS = dict(zip(("4x8 H100", "9x8 H100", "12x4 B200"), style.LINES, strict=False))
SHORT, LONG = 1024, 32768  # tokens: the contexts of Figure 16


# --- Experts ---------------------------------------------------------------------------------------------


def figure_12_data():
    """Figure 12, read off the plot: balancedness over GPUs, with and without balancing."""
    read = stated()["balancedness"]
    with_it = pd.Series(read["with_balancing"], index=read["gpus"])
    without = pd.Series(read["without_balancing"], index=read["gpus_without"])
    return pd.DataFrame({"with balancing": with_it, "without": without}).rename_axis("GPUs")


def figure_12():
    """Figure 12's bars and the lines between them that the model uses."""
    _, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    data, gpus = figure_12_data(), np.arange(8, 97)
    for name, colour, balanced in (("with balancing", style.VIOLET, True), ("without", style.PURPLE, False)):
        ax.plot(gpus, [balancedness(n, balanced) for n in gpus], color=colour, linewidth=1.2)
        ax.plot(data.index, data[name], "o", color=colour)
    ax.text(74, 0.84, "with balancing", color=style.VIOLET)
    ax.text(74, 0.50, "without", color=style.PURPLE)
    ax.set(xlabel="GPUs that share the experts", ylabel="mean over largest load", ylim=(0, 1), xlim=(0, 97))
    return ax


# --- Figures 13, 14 and 17 -------------------------------------------------------------------------------


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
    """The seven points of SGLang that the source compares with; none of another model."""
    table = validation.measured()[["own", "per_gpu", "n_gpus"]].rename(columns={"per_gpu": "gpu"})
    points = pd.concat(table.loc[list(ids)].assign(setup=name) for name, ids in validation.COMPARED.items())
    return points if model == MODEL.name else points[:0]


def _both(ax, capped, literal):
    """The two readings in a legend."""
    ax.plot([], [], color=style.INK, label=f"capped, {capped.context:g} tokens")
    ax.plot([], [], "--", color=style.INK, linewidth=1.2, label=f"literal, {literal.context:g} tokens")


def figure_13(capped, literal):
    """Figure 13: total throughput against the speed of one request, with SGLang's points.

    ``capped`` and ``literal``: curves of both readings, full and dashed.
    """
    _, ax = plt.subplots(layout="constrained")
    points = measured_points(capped.model)
    for name, colour in COLOURS.items():
        curve, other = capped.sel(setup=name), literal.sel(setup=name)
        ax.plot(curve.request, curve.total, color=colour)
        ax.plot(other.request, other.total, "--", color=colour, linewidth=1.2)
        seen = points[points.setup == name]
        ax.plot(seen.gpu / seen.own, seen.gpu * seen.n_gpus, "o", color=colour)
        ax.plot([], [], color=colour, label=name)
    ax.set(yscale="log", xlim=(0, 65), xlabel="tokens per second of one request")
    ax.set(ylabel="tokens per second of all requests")
    _both(ax, capped, literal)
    ax.legend(loc="lower left", fontsize=9)
    return ax


def figure_14(capped, literal):
    """Figure 14: tokens per second and GPU over sequences a GPU; faint where memory would not suffice.

    Full and dashed lines as in :func:`figure_13`.
    """
    _, ax = plt.subplots(layout="constrained")
    points = measured_points(capped.model)
    for name, colour in COLOURS.items():
        curve, other = capped.sel(setup=name), literal.sel(setup=name)
        ax.plot(other.own, other.gpu, "--", color=colour, linewidth=1.2)
        ax.plot(curve.own, curve.gpu, color=colour, alpha=0.35)
        ax.plot(curve.own, curve.gpu.where(curve.fits), color=colour)
        seen = points[points.setup == name]
        ax.plot(seen.own, seen.gpu, "o", color=colour)
        ax.plot([], [], color=colour, label=name)
    ax.set(xscale="log", yscale="log", xlabel="sequences on a GPU", ylabel="tokens per second per GPU")
    ax.set_xticks([1, 4, 16, 64, 256, 1024], ["1", "4", "16", "64", "256", "1024"])
    ax.minorticks_off()
    _both(ax, capped, literal)
    ax.legend(loc="upper left", fontsize=9)
    return ax


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
    data = figure_15_data()
    for name, colour in COLOURS.items():
        own, speed = data.own, systems.speed(name, data.own)
        ratio = data.sel(setup=name, reading="its configuration")
        axes[0].plot(own, speed, color=colour)
        axes[0].plot(own, speed * ratio, ":", color=colour)
        axes[1].plot(own, 100 * (ratio - 1), ":", color=colour)
        other = data.sel(setup=name, reading="more experts only")
        axes[1].plot(own, 100 * (other - 1), "--", color=colour, linewidth=1.2)
        axes[1].plot([], [], color=colour, label=name)
    axes[0].plot([], [], color=style.INK, label="DeepSeek V3")
    axes[0].plot([], [], ":", color=style.INK, label="Kimi K2")
    axes[1].plot([], [], ":", color=style.INK, label="its configuration")
    axes[1].plot([], [], "--", color=style.INK, linewidth=1.2, label="more experts only")
    axes[0].set(yscale="log", ylabel="tokens per second per GPU")
    axes[1].set(ylabel="Kimi K2 over DeepSeek V3, %")
    for ax, place in zip(axes, ("upper left", "lower right"), strict=True):
        ax.set(xscale="log", xlabel="sequences on a GPU")
        ax.set_xticks([1, 8, 64, 512], ["1", "8", "64", "512"])
        ax.minorticks_off()
        ax.legend(loc=place, fontsize=8.5)
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
    return xr.Dataset({"prefill": prompt, "decode": xr.concat(rows, "own")}).assign_attrs(fitting=fitting)


def figure_16():
    """Figure 16: prefill against decode over the context; the dashed line is the batch that fits at the end."""

    def write(curve, x, text, colour, shift, ha="left"):
        y = float(curve.sel(context=x, method="nearest"))
        ax.annotate(text, (x, y), shift, textcoords="offset points", color=colour, ha=ha, va="center")

    _, ax = plt.subplots(layout="constrained")
    data = figure_16_data()
    ax.plot(data.context, data.prefill, color=style.ORANGE)
    write(data.prefill, 9000, "prefill", style.ORANGE, (-8, 4), "right")
    for own in (1, 8, 32, 128):
        line = data.decode.sel(own=own)
        ax.plot(line.context, line, color=style.BLUE, linewidth=1.6)
        up = -1 if own == 1 else 1
        write(line, LONG, f"{own} per GPU", style.BLUE, (5, up * (own < 128)))
    fitting = data.decode.sel(own=0)
    ax.plot(fitting.context, fitting, "--", color=style.INK, linewidth=1.6)
    ax.set(xscale="log", yscale="log", xlabel="tokens of context", ylabel="times as long as at 1024")
    ax.set_xlim(SHORT, 1.9 * LONG)
    ax.set_xticks([1024, 4096, 16384, 32768], ["1024", "4096", "16,384", "32,768"])
    ax.minorticks_off()
    return ax


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
    ax.hlines([], 0, 0, color=style.INK, linewidth=2, label="room in memory")
    ax.set(yscale="log", ylim=(1, 9000), ylabel="largest batch of a GPU")
    ax.set_xticks(range(len(contexts)), [f"{c:,} tokens" for c in contexts])
    ax.legend(loc="upper right", fontsize=9, ncol=2)
    ax.grid(axis="x", visible=False)
    return ax
