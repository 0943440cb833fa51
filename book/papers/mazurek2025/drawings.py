"""Mazurek & Schreiber 2025: our own drawings of what its Figures 1, 5, 7, 8, 9 and 11 show, computed from the model."""

from math import ceil

import numpy as np
from matplotlib.patches import FancyBboxPatch

from book import style
from book.frames import frame
from book.papers.mazurek2025.systems import CONTEXT
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.records import PRINTED
from inferlib.units import factor


def _box(ax, x, y, width, text, colour):
    look = {"boxstyle": "round,pad=0.06", "facecolor": "none", "edgecolor": colour, "linewidth": 1.6}
    ax.add_patch(FancyBboxPatch((x, y), width, 0.9, **look))
    style.words(ax, x + width / 2, y + 0.45, text, fontsize=8, ha="center")


def expert_parallel(model, setup, own):
    """Attention on every GPU for its own sequences, experts spread over all: dispatch there, combine back."""
    ax = style.panels(7.0, 4.0)
    place, one = setup.deployment, own * model.d_model * eq.messages(model) / 1e6
    shown, x = ("GPU 1", "GPU 2", "GPU 3", f"GPU {place.n_gpus}"), (0, 2.3, 4.6, 8.0)

    for label, at in zip(shown, x, strict=True):
        ax.text(at + 0.9, 6.25, label, ha="center")
        _box(ax, at, 5.0, 1.8, f"all attention,\n{own:g} sequences", style.GREEN)
        _box(ax, at, 2.5, 1.8, f"{eq.held_experts(model, place)} experts\nof the layer", style.BLUE)
        _box(ax, at, 0.0, 1.8, "the same\nsequences", style.GREEN)
    for i, here in enumerate(x):
        for j, there in enumerate(x):
            width = 1.6 if 0 in (i, j) else 0.5
            shade = dict(linewidth=width, alpha=0.9 if width > 1 else 0.5, zorder=0)
            if i == 0 or width < 1:
                ax.plot([here + 0.9, there + 0.9], [4.92, 3.48], color=style.RED, **shade)
                ax.plot([there + 0.9, here + 0.9], [2.42, 0.98], color=style.RED, linestyle="--", **shade)
    for y in (5.45, 2.95, 0.45):
        ax.text(7.2, y, "…", ha="center", va="center", fontsize=14)
    for y, says, size in (
        (4.2, "dispatch, FP8", PRINTED.dispatch_bytes),
        (1.7, "combine, BF16", PRINTED.combine_bytes),
    ):
        text = f"{says}:\n{one * size:.1f} MB per GPU"
        style.words(ax, 10.2, y, text, color=style.RED)
    style.canvas(ax, (-0.2, 13.0), (-0.2, 6.7), aspect="auto")
    return ax


@frame("plan", "lane", "batch", "part", "start", "end")
def timeline_data(model, at, own, context, assumptions):
    """Two micro-batches taking turns through two layers, and the same batch in one piece."""
    batch = own * at.deployment.n_gpus

    def layer(part):
        where = model, at.gpu, at.deployment, part
        times = (
            eq.attention_time(*where, context, assumptions),
            eq.expert_time(*where, assumptions),
            eq.network_time(*where, assumptions),
        )
        return [1e6 * t / model.n_layers for t in times]

    attention, expert, sent = layer(batch / 2)
    turn = eq.overlapped_time(attention, expert, sent) / 2
    for i in range(4):
        start, half, other = i * turn, *("AB", "BA")[i % 2]
        # a half's exchange lies between its attention and its experts, so a turn begins with the experts
        computed = start + expert
        yield "overlap", "GPU", half, "experts", start, computed
        yield "overlap", "GPU", half, "attention", computed, computed + attention
        yield "overlap", "network", other, "network", start, start + sent
    attention, expert, sent = layer(batch)
    start = 0.0
    for part, seconds in 2 * (("attention", attention), ("network", sent), ("experts", expert)):
        lane = part if part == "network" else "GPU"
        yield "one batch", lane, "A+B", part, start, start + seconds
        start += seconds


def timeline(model, at, own, context, assumptions):
    """Two layers with two-batch overlap and without, to scale."""
    axes = style.panels(7.2, 3.6, rows=2, sharex=True)
    data = timeline_data(model, at, own, context, assumptions)
    colours = {"attention": style.GREEN, "experts": style.BLUE, "network": style.RED}
    inside = {"ha": "center", "va": "center", "color": "white", "fontsize": 9}
    for ax, plan in zip(axes, ("one batch", "overlap"), strict=True):
        rows = data[data.plan == plan]
        for _, row in rows.iterrows():
            y, width = 0 if row.lane == "GPU" else 1, row.end - row.start
            look = {"color": colours[row.part], "alpha": 0.6 if row.batch == "B" else 1.0}
            ax.barh(y, width, left=row.start, height=0.7, edgecolor="white", **look)
            if width > 0.03 * data.end.max():
                ax.text(row.start + width / 2, y, row.batch, **inside)
        last = rows.end.max()
        style.words(ax, last * 1.01, 0.5, f"{last:,.0f} µs")
        style.name_rows(ax, ["GPU", "network"])
        ax.set_ylim(1.6, -0.6)
        ax.set_title(plan, fontsize=12)
    axes[0].set_xlim(0, 1.12 * data.end.max())
    axes[1].set_xlabel("microseconds, two layers")
    for part, colour in colours.items():
        axes[0].bar(0, 0, color=colour, label=part)
    axes[0].legend(loc="upper center", bbox_to_anchor=(0.5, 1.55), ncol=3)
    return axes


def two_tokens(model):
    """Draw Figure 1: two tokens use different experts of a layer."""
    ax = style.panels(4.6, 4.4)
    random, side = np.random.default_rng(2), ceil(model.n_routed**0.5)
    first, second = (set(random.choice(model.n_routed, model.n_active, replace=False)) for _ in range(2))
    woken = {
        "first token": (first - second, style.BLUE),
        "second token": (second - first, style.PURPLE),
        "both": (first & second, style.INK),
        None: ({*range(model.n_routed)} - first - second, "none"),
    }
    for label, (experts, colour) in woken.items():
        for expert in sorted(experts):
            spot = {"facecolor": colour, "edgecolor": style.FAINT, "linewidth": 0.8}
            style.box(ax, expert % side, expert // side, 0.82, 0.82, **spot)
        if label and experts:
            ax.bar(0, 0, color=colour, label=label)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, -0.12), ncol=3)
    ax.set(xlim=(-0.3, side + 0.1), ylim=(side + 0.1, -0.3), aspect="equal")
    one, two = (eq.expert_weights(model) / factor("MB") * eq.active_experts(model, n) for n in (1, 2))
    ax.set_title(f"{one:.0f} MB per layer for one token, about {two:.0f} for two")
    ax.axis("off")
    return ax


def layer(model):
    """Figure 5: one layer of experts, a router and a shared expert."""
    ax = style.panels(6.4, 2.9)
    boxes = {
        "token": (0.0, 1.2, 1.3, f"token\n{model.d_model} wide", style.INK),
        "router": (2.2, 2.0, 1.7, f"router\n{model.d_model} × {model.n_routed}", style.PURPLE),
        "routed": (5.0, 2.0, 2.4, f"best {model.n_active} of {model.n_routed}\nrouted experts", style.BLUE),
        "shared": (5.0, 0.3, 2.4, f"{model.n_shared} shared expert,\nalways", style.BLUE),
        "sum": (8.5, 1.2, 1.5, f"sum of {model.used}", style.INK),
    }
    for one in boxes.values():
        _box(ax, *one)
    for start, end in (
        ("token", "router"), ("router", "routed"), ("token", "shared"), ("routed", "sum"), ("shared", "sum"),
    ):  # fmt: skip
        (x, y, width, *_), (to, at, *_) = boxes[start], boxes[end]
        arrow = {"arrowstyle": "->", "color": style.INK}
        ax.annotate("", (to, at + 0.45), (x + width, y + 0.45), arrowprops=arrow)
    style.canvas(ax, (-0.2, 10.2), (0, 3.2), aspect="auto")
    return ax


def prefill_decode(model, at):
    """Figure 9: a request prefilled on one machine and decoded on another; lengths to scale, the times are ours."""
    ax = style.panels(7.2, 2.4)
    cache, batch = CONTEXT * eq.cache_per_token(model), 128 * at.deployment.n_gpus
    prompt = 1e3 * eq.prefill_time(model, at.gpu, CONTEXT)
    sent = 1e3 * cache / at.gpu.inter_bandwidth
    step = 1e3 * eq.step_time(model, at.gpu, at.deployment, batch, CONTEXT)
    there = prompt + sent
    look = {"height": 0.6, "edgecolor": "white"}
    ax.barh(0, prompt, color=style.ORANGE, **look)
    ax.barh(0, sent, left=prompt, color=style.RED, **look)
    for token in range(4):
        ax.barh(1, step, left=there + token * step, color=style.BLUE, **look)
    ax.barh(1, there, height=0.6, facecolor="none", edgecolor=style.FAINT, linestyle=":")
    style.words(ax, there / 2, 1, "kept for the cache", ha="center")
    note = f"cache, {cache / 1e6:.0f} MB in {sent:.0f} ms"
    style.words(ax, there + 4, 0, note, color=style.RED)
    style.name_rows(ax, ["prefill", "decode"])
    ax.set(ylim=(1.5, -0.5), xlabel="milliseconds")
    return ax
