"""Mazurek & Schreiber 2025: our own drawings of what its Figures 7, 8 and 11 show, computed from the model."""

from book.mazurek2025.systems import CONTEXT, MODEL
from inferlib import style
from inferlib.papers.mazurek2025.equations import experts, network, throughput
from inferlib.papers.mazurek2025.records import DEFAULT, setup


def layer_data(name="9x8 H100", own=128):
    """One layer of one pass, for the drawing of dispatch and combine.

    Returns
    -------
    dict
        ``own`` sequences and ``held`` experts of a GPU, ``sent`` copies of a token, and bytes that a GPU
        dispatches (``out``) and gets back (``back``) in one layer for all its sequences.
    """
    at = setup(name)
    one = own * MODEL.d_model * network.messages(MODEL)
    return {
        "gpus": at.deployment.n_gpus,
        "own": own,
        "held": experts.held_experts(MODEL, at.deployment),
        "sent": network.messages(MODEL),
        "out": one * DEFAULT.dispatch_bytes,
        "back": one * DEFAULT.combine_bytes,
    }


def expert_parallel(ax=None, name="9x8 H100", own=128):
    """Attention on every GPU for its own sequences, experts spread over all: dispatch there, combine back."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import FancyBboxPatch

    ax = ax or plt.subplots(figsize=(7.0, 4.0), layout="constrained")[1]
    data = layer_data(name, own)
    shown, x = (("GPU 1", "GPU 2", "GPU 3", f"GPU {data['gpus']}"), (0, 2.3, 4.6, 8.0))

    def box(at, y, text, colour, height=0.9):
        frame = FancyBboxPatch(
            (at, y), 1.8, height, boxstyle="round,pad=0.06", facecolor="none", edgecolor=colour, linewidth=1.6
        )
        ax.add_patch(frame)
        ax.text(at + 0.9, y + height / 2, text, ha="center", va="center", fontsize=9)

    for label, at in zip(shown, x, strict=True):
        ax.text(at + 0.9, 6.25, label, ha="center")
        box(at, 5.0, f"all attention,\n{data['own']} sequences", style.GREEN)
        box(at, 2.5, f"{data['held']} experts\nof the layer", style.BLUE)
        box(at, 0.0, "the same\nsequences", style.GREEN)
    for i, here in enumerate(x):
        for j, there in enumerate(x):
            width = 1.6 if 0 in (i, j) else 0.5
            shade = dict(linewidth=width, alpha=0.9 if width > 1 else 0.5, zorder=0)
            if i == 0 or width < 1:
                ax.plot([here + 0.9, there + 0.9], [4.92, 3.48], color=style.RED, **shade)
                ax.plot([there + 0.9, here + 0.9], [2.42, 0.98], color=style.PURPLE, **shade)
    middle = 7.2
    for y in (5.45, 2.95, 0.45):
        ax.text(middle, y, "…", ha="center", va="center", fontsize=14)
    ax.text(
        10.2,
        4.2,
        f"dispatch, FP8:\n{data['out'] / 1e6:.1f} MB a GPU",
        va="center",
        color=style.RED,
        fontsize=9,
    )
    ax.text(
        10.2,
        1.7,
        f"combine, BF16:\n{data['back'] / 1e6:.1f} MB a GPU",
        va="center",
        color=style.PURPLE,
        fontsize=9,
    )
    ax.set(xlim=(-0.2, 13.0), ylim=(-0.2, 6.7))
    ax.axis("off")
    return ax


def timeline_data(name="9x8 H100", own=128, context=CONTEXT, layers=2):
    """Two micro-batches taking turns through some layers, and the same batch in one piece.

    Returns
    -------
    pandas.DataFrame
        One row a bar: ``plan`` (``"overlap"`` or ``"one batch"``), ``lane`` (``"GPU"`` or ``"network"``),
        ``batch``, ``part`` and ``start`` and ``end`` in microseconds. In the overlapped plan, attention and
        experts of one half run while the other half is on the network, and a layer takes as long for each half
        as equation 49 says.
    """
    import pandas as pd

    at = setup(name)
    batch, rows = own * at.deployment.n_gpus, []

    def layer(part):
        where = MODEL, at.gpu, at.deployment, part
        times = (throughput.attention_time(*where, context), throughput.expert_time(*where))
        sent = network.network_time(*where)
        return [1e6 * t / MODEL.n_layers for t in (*times, sent)]

    attention, expert, sent = layer(batch / 2)
    turn = throughput.overlapped_time(attention, expert, sent) / 2
    for i in range(2 * layers):
        start, half = i * turn, "AB"[i % 2]
        rows.append(("overlap", "GPU", half, "attention", start, start + attention))
        rows.append(("overlap", "GPU", half, "experts", start + attention, start + attention + expert))
        rows.append(("overlap", "network", "BA"[i % 2], "network", start, start + sent))
    attention, expert, sent = layer(batch)
    start = 0.0
    for _ in range(layers):
        for part, lane, seconds in (
            ("attention", "GPU", attention),
            ("network", "network", sent),
            ("experts", "GPU", expert),
        ):
            rows.append(("one batch", lane, "A+B", part, start, start + seconds))
            start += seconds
    return pd.DataFrame(rows, columns=["plan", "lane", "batch", "part", "start", "end"])


def timeline(axes=None, name="9x8 H100", own=128, context=CONTEXT):
    """Two layers with two-batch overlap and without, to scale."""
    import matplotlib.pyplot as plt

    if axes is None:
        axes = plt.subplots(2, 1, figsize=(7.2, 3.6), sharex=True, layout="constrained")[1]
    data = timeline_data(name, own, context)
    colours = {"attention": style.GREEN, "experts": style.BLUE, "network": style.RED}
    for ax, plan in zip(axes, ("one batch", "overlap"), strict=True):
        rows = data[data.plan == plan]
        for _, row in rows.iterrows():
            y = 0 if row.lane == "GPU" else 1
            width = row.end - row.start
            alpha = 0.6 if row.batch == "B" else 1.0
            ax.barh(
                y, width, left=row.start, height=0.7, color=colours[row.part], alpha=alpha, edgecolor="white"
            )
            if width > 0.03 * data.end.max():
                ax.text(
                    row.start + width / 2, y, row.batch, ha="center", va="center", color="white", fontsize=9
                )
        last = rows.end.max()
        ax.text(last * 1.01, 0.5, f"{last:,.0f} µs", va="center", fontsize=9)
        ax.set_yticks([0, 1], ["GPU", "network"])
        ax.set(ylim=(1.6, -0.6), title=plan)
        ax.grid(axis="y", visible=False)
    axes[0].set_xlim(0, 1.12 * data.end.max())
    axes[1].set_xlabel("microseconds, two layers")
    for part, colour in colours.items():
        axes[0].bar(0, 0, color=colour, label=part)
    axes[0].legend(loc="upper center", bbox_to_anchor=(0.5, 1.55), ncol=3, fontsize=9)
    return axes
