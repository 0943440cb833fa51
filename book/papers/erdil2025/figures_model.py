"""Erdil 2025, sections 4 and 5: Figures 3 to 10 and the chapter's own, data first and pictures second."""

from book import style
from book.audit.grading import Reader
from book.frames import frame
from book.papers.erdil2025 import economics
from book.papers.erdil2025.beyond import one_box_by_batch
from book.papers.erdil2025.economics import DRAFT, HALVED, LONG, PRINTED, SOUND, switched
from book.papers.erdil2025.figures import served_points
from book.papers.erdil2025.readings import PRINTED_EQUATIONS, TABLE_5


def figure_settings(number):
    """Return the settings of the curves in Figures 3, 4 and 6 to 10: label to arguments of :func:`economics.curve`.

    Figure 7 is drawn with the program of its table and with the program of the others.
    """
    if number in (3, 4):
        draft = DRAFT if number == 4 else None
        return {name: {"model": name, "draft": draft} for name in economics.SERVED}
    if number == 6:
        return {chip: {"model": "Llama 3 70B 8-bit", "chip": chip} for chip in economics.GENERATIONS}
    if number == 7:
        return {
            f"{name}{', drafted' if draft else ''}{notebook}": {
                "model": name, "draft": draft, "assumptions": assumptions
            }
            for notebook, assumptions in (("", TABLE_5), (", newer", PRINTED))
            for name in economics.SPECULATED
            for draft in (None, DRAFT)
        }  # fmt: skip
    if number == 8:
        return {row: {"model": name} for row, name in economics.PRECISIONS.items()}
    name = {9: "Mistral Large 2", 10: "DeepSeek-V3"}[number]
    settings = {
        f"{length}{', drafted' if draft else ''}": {"model": name, "draft": draft, "context": context}
        for length, context in (("short", 0), ("long", LONG))
        for draft in (None, f"{DRAFT} MQA")
    }
    whole = {"model": name, "draft": None, "context": LONG, "assumptions": SOUND}
    return settings | {"long, whole cache fits": whole}


def figure_curves(number, **changed):
    """The frontiers of a figure by name; ``changed`` is set in every :func:`economics.curve`."""
    return {name: economics.curve(**one | changed) for name, one in figure_settings(number).items()}


def draw(number, colours, lines, **changed):
    """Draw the frontiers of one figure, their ends (dots) and preferred points (diamonds).

    A line given as "broad" is drawn broad and faded below the others.
    """
    ax = style.panels(6.6, 5.2, layout=None)
    curves = figure_curves(number, **changed)
    where = economics.three_customers(curves).groupby("curve", sort=False)
    for name, points in curves.items():
        at = where.get_group(name)
        line, colour = lines.get(name, "-"), colours[name]
        broad = {"linewidth": 7, "alpha": 0.3, "zorder": 0}
        look = broad if line == "broad" else {"linestyle": line}
        ax.plot(points.tokens_per_second, points.usd_per_million, color=colour, label=name, **look)
        for mark, which in (("o", at.point != "preferred"), ("D", at.point == "preferred")):
            chosen = at[which]
            ax.plot(chosen["tokens/s"], chosen["dollars per million"], mark, color=colour, markersize=5)
    if number in (3, 4):
        name, *sold = served_points()[1]
        ax.plot(*sold, "*", color=style.INK, markersize=9, label=f"{name}, sold")
    names = {"xlabel": "tokens per second for one user", "ylabel": "dollars per million tokens"}
    ax.set(xscale="log", yscale="log", **names)
    ax.legend(loc="upper left")
    return ax


def _look(number):
    """Return colour and line style of every curve of a figure."""
    names = list(figure_settings(number))
    if number == 7:  # the program of Table 5; dashed: that of the other tables
        colours = {name: style.LINES[i % 4] for i, name in enumerate(names)}
        return colours, {name: "--" for name in names if name.endswith("newer")}
    if number in (9, 10):  # broad and faded: the whole batch's cache in memory
        colours = {name: style.VIOLET if name.startswith("long") else style.BROWN for name in names}
        return colours, {name: "--" for name in names if "drafted" in name} | {names[-1]: "broad"}
    return (dict(zip(names, looks, strict=False)) for looks in (style.LINES, ("-", "--", "-.", ":")))


def figure(number, **changed):
    """Figure 3, 4, 6, 7, 8, 9 or 10 of the paper; ``changed`` is set in every :func:`economics.curve`."""
    return draw(number, *_look(number), **changed)


def slope_and_wall(model, chip, draft, contexts):
    """Frontiers as they are, with a network without limit, with half the waiting, with drafts; a panel a context."""
    axes = style.panels(7.4, 4, columns=len(contexts), sharey=True)
    curves = (
        (f"the {chip.name} as it is", style.INK, "-", {}),
        ("bandwidth of the network unlimited", style.ROSE, "--", {"network": True}),
        ("launches and latencies halved", style.RED, "-.", {"waits": HALVED}),
        ("with drafts", style.PURPLE, ":", {"draft": draft}),
    )
    for ax, context in zip(axes, contexts, strict=True):
        for label, colour, line, switches in curves:
            curve = switched(model, chip, context, **switches)
            ax.plot(curve.tokens_per_second, curve.usd_per_million, line, color=colour, label=label)
        ax.set(xscale="log", yscale="log", xlabel="tokens per second for one user")
        style.ticks(ax.xaxis, [5, 10, 20, 50, 100, 200, 500, 1000])
        ax.set_xlim(20, 2 * curve.tokens_per_second.max())
        ax.set_title(f"{context:,} tokens of context" if context else "no context")
    axes[0].set_ylabel("dollars per million tokens")
    axes[0].figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncol=2)
    return axes


# From the printed equations to the notebook, one change after another; each builds on the previous one.
STEPS = {
    "equations 29 to 44 as printed": {},
    "LL halves the bandwidth": {"protocols": tuple(p for p in PRINTED.protocols if p.name == "LL")},
    "inside and between nodes at once": {"networks_overlap": True},
    "tiles move inputs and outputs again": {"traffic": "tiled"},
    "the input embedding is multiplied too": {"embedding_multiplied": True, "whole_sparsity": True},
    "the fastest of three protocols": {"protocols": PRINTED.protocols},
    "one-dimensional layouts too": {"kinds": PRINTED.kinds},
    "attention on fewer GPUs": {"scale_downs": PRINTED.scale_downs},
    "pipelines": {"pipelines": PRINTED.pipelines, "cache_of_micro_batch": True, "expert_threshold": 2},
}


@frame()
def from_print_to_notebook():
    """Table 4 on the way from the printed equations to the notebook's model, one term at a time."""
    assumptions = PRINTED_EQUATIONS
    for name, changes in STEPS.items():
        assumptions = assumptions.replace(**changes)
        row = {"step": name}
        for chip, at in economics.table(4, assumptions).iterrows():
            row |= {f"{chip} tokens/s": at.tokens_per_second, f"{chip} GPUs": at.n_gpu}
        yield row


def one_box(model, chip, gpus):
    """Utilisation over speed of one box, and the paper's example beside it."""
    read = Reader("erdil2025", "Text 1")
    speed, used = (read("DGX H100 question", c) for c in ("tokens per second", "utilisation"))
    ax = style.panels(6.4, 3.4, layout=None)
    data = one_box_by_batch(model, chip, gpus)
    ax.plot(data.tokens_per_second, 100 * data.mfu, color=style.ORANGE)
    if not data.mfu.any():
        ax.text(0, 0, f" the weights do not fit on {gpus} × {chip.name}", va="bottom")
    ax.plot(speed, 100 * used, "o", color=style.INK)
    ax.annotate("the example", (speed, 100 * used), (-6, -12), textcoords="offset points", ha="right")
    ax.set(xlabel="tokens per second for one user", ylabel="utilisation, % of the peak", ylim=(0, None))
    return ax
