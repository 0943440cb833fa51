"""Mazurek & Schreiber 2025: its figures, data first and picture second.

Our copy of the source is text: the axes and dots of its Figures 13 to 17 are not available to us, so the curves are
drawn with stated choices (see :mod:`book.papers.mazurek2025.systems`). Figures 2, 3 and 6 are pictures of others.
"""

import math
from functools import partial

import numpy as np
import xarray as xr

from book import style
from book.audit.grading import Reader
from book.papers.mazurek2025 import systems, validation
from book.papers.mazurek2025.systems import CONTEXT, MODEL
from book.principles.figures import fewest_in_boxes
from inferlib import axis
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.records import PRINTED, STATED, balancedness, setup, setups

COLOURS = dict(zip(("4x8 H100", "9x8 H100", "12x4 B200"), style.LINES, strict=False))
SHORT, LONG = 1024, 32768  # tokens: the contexts of Figure 16


def boxes_that_hold(case):
    """Boxes of eight chips on which some layout holds the model; NaN if eight such boxes do not."""
    return (fewest_in_boxes(case.model, case.machine.chip, case.weights) or math.nan) / 8


def figure_12():
    """Figure 12's bars, read off the plot, and the lines between them that the model uses."""
    ax = style.panels(6.4, 3.2)
    read, gpus = STATED["balancedness"], np.arange(8, 97)
    for bars, text, height, colour in (
        ("gpus", "with_balancing", 0.84, style.VIOLET),
        ("gpus_without", "without_balancing", 0.50, style.PURPLE),
    ):
        ax.plot(gpus, balancedness(gpus, bars == "gpus"), color=colour, linewidth=1.2)
        ax.plot(read[bars], read[text], "o", color=colour)
        ax.text(74, height, text.replace("_", " "), color=colour)
    ax.set(xlabel="GPUs that share the experts", ylabel="mean over largest load", ylim=(0, 1), xlim=(0, 97))
    return ax


def curves(model=MODEL, context=CONTEXT, assumptions=PRINTED):
    """The three setups over sequences per GPU: speed of a request, of a GPU, of all, and whether they fit."""
    own, parts = axis("own", 1, 1024, 101), []
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


def _finish(ax, ticks=(), legend="best", **axes):
    """Axes with plain numbers at these places of the horizontal one, and a legend."""
    ax.set(**axes)
    if ticks:
        style.ticks(ax.xaxis, ticks)
    ax.legend(loc=legend)
    return ax


def _readings(capped, literal, x, y):
    """Curves of both readings, full and dashed, faint where memory would not suffice, with SGLang's points."""
    ax = style.panels(6.4, 3.8)
    named = {"own": "own", "gpu": "per_gpu", "request": "per_request", "total": "tokens_per_second"}
    points = validation.COMPARED if capped.model == MODEL.name else {}
    for (name, colour), marker in zip(COLOURS.items(), style.MARKERS, strict=False):
        curve, other = capped.sel(setup=name), literal.sel(setup=name)
        rings = {"color": colour, "marker": marker, "fillstyle": "none", "markersize": 5, "markevery": 20}
        ax.plot(other[x], other[y], "--", linewidth=1.2, **rings)
        ax.plot(curve[x], curve[y], color=colour, alpha=0.35)
        ax.plot(curve[x], curve[y].where(curve.fits), label=name, **rings)
        seen = validation.measured().loc[[*points.get(name, ())]]
        ax.plot(seen[named[x]], seen[named[y]], marker, color=colour, markersize=7)
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
    """Draw Figure 14: tokens per second and GPU over sequences per GPU; faint where memory would not suffice.

    ``capped`` and ``literal``: curves of both readings, solid and dashed. Filled marks are SGLang's.
    """
    return _finish(
        _readings(capped, literal, "own", "gpu"), [1, 4, 16, 64, 256, 1024], "upper left", xscale="log",
        yscale="log", xlabel="sequences on a GPU", ylabel="tokens per second per GPU",
    )  # fmt: skip


def figure_15():
    """Figure 15: the speed of Kimi K2, alone and relative to DeepSeek V3."""
    axes = style.panels(7.6, 3.6, columns=2)
    own, over = axis("own", 1, 1024, 61), {"over": "sequences on a GPU", "colours": COLOURS}
    ratios = xr.Dataset({name: systems.kimi_over_deepseek(own, name) for name in COLOURS})
    speeds = xr.Dataset({name: systems.speed(name, own) * ratios[name] for name in COLOURS})
    style.curve(speeds, says="Kimi K2, tokens per second per GPU", ax=axes[0], **over)
    style.curve(ratios - 1, unit="%", says="over DeepSeek V3", log="x", ax=axes[1], **over)
    return axes


def figure_16():
    """Draw Figure 16: growth of prefill and decode times with context, on 4x8 H100.

    The last line is the batch that fits in memory at the longest context.
    """
    at, context = setup("4x8 H100"), axis("context", SHORT, LONG, 61)
    n, held = at.deployment.n_gpus, eq.held_experts(MODEL, at.deployment)
    batches = {f"decode, {own} a GPU": own for own in (1, 8, 32, 128)}
    batches["decode, the batch that fits"] = float(eq.largest_own_batch(MODEL, at.gpu, LONG, held))

    def longer(time):
        return time(context) / time(SHORT)

    lines = {"prefill": longer(partial(eq.prefill_time, MODEL, at.gpu))} | {
        name: longer(partial(eq.step_time, MODEL, at.gpu, at.deployment, own * n))
        for name, own in batches.items()
    }
    colours = dict.fromkeys(lines, style.BLUE) | {"prefill": style.ORANGE, [*lines][-1]: style.INK}
    says = "times as long as at 1024"
    return style.curve(xr.Dataset(lines), says=says, over="tokens of context", colours=colours)


def figure_17():
    """Draw Figure 17, the largest batch of a GPU at which a request gets 20 tokens per second, at three contexts.

    The dash above a bar is the batch that fits in memory.
    """
    ax = style.panels(6.4, 3.8)
    speed = Reader("mazurek2025", "Figure 17")("tokens per second of a request")
    contexts = (2000, CONTEXT, LONG)
    for i, (name, colour) in enumerate(COLOURS.items()):
        at = setup(name)
        held = eq.held_experts(MODEL, at.deployment)
        most = [systems.largest_batch(name, speed, context) for context in contexts]
        room = [eq.largest_own_batch(MODEL, at.gpu, context, held) for context in contexts]
        x = np.arange(3) + 0.27 * (i - 1)
        ax.bar(x, most, 0.24, color=colour, label=name)
        ax.hlines(room, x - 0.12, x + 0.12, color=style.INK, linewidth=2)
        for place, value in zip(x, most, strict=True):
            ax.text(place, 1.15, f"{value}", ha="center", fontsize=8.5, color="white")
    ax.hlines([], 0, 0, color=style.INK, linewidth=2, label="fits in memory")
    ax.set_xticks(range(3), [f"{context:,} tokens" for context in contexts])
    ax.grid(axis="x", visible=False)
    return _finish(ax, legend="upper right", yscale="log", ylim=(1, 9000), ylabel="largest batch of a GPU")
