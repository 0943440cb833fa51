"""How figures look: one colour per source and per chip, no background, the same file from run to run.

Figures are SVG with dark lines on nothing. In the book's dark theme the style sheet turns them over, so one
file serves both.
"""

from cycler import cycler

# Okabe and Ito's palette, told apart by readers with any colour vision
BLUE, ORANGE, GREEN, RED, SKY, PURPLE, YELLOW = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#B8A800",
)  # fmt: skip
INK, FAINT = "#222222", "#8a8a8a"

SOURCES = {
    "steinhardt2022": BLUE,
    "pope2022": GREEN,
    "erdil2025": ORANGE,
    "liminal2025": RED,
    "mazurek2025": PURPLE,
}
CHIPS = {"A100 80GB": SKY, "H100 SXM": GREEN, "H200": BLUE, "B200": ORANGE, "TPU v4": RED}
TERMS = {"weights": BLUE, "arithmetic": ORANGE, "network": RED, "activations": SKY, "cache": GREEN}


def use():
    """Draw all figures of a notebook in the book's style, as deterministic SVG."""
    import matplotlib as mpl
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("svg", metadata={"Date": None, "Creator": None}, transparent=True)
    mpl.rcParams.update(
        {
            "svg.hashsalt": "inferlib",
            "svg.fonttype": "path",
            "figure.figsize": (6.4, 3.8),
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "savefig.facecolor": "none",
            "legend.framealpha": 0,
            "text.color": INK,
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": FAINT,
            "grid.alpha": 0.3,
            "grid.linewidth": 0.6,
            "lines.linewidth": 2,
            "font.size": 10,
            "axes.prop_cycle": cycler(color=[BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW]),
        }
    )


def breakdown_bars(steps, *, ax=None):
    """Horizontal bars, one per answer: counted terms stacked, hidden terms as outlines below.

    Parameters
    ----------
    steps : dict
        Label to :class:`inferlib.Breakdown`. An infeasible or n/a answer is written, not drawn.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 0.9 + 0.8 * len(steps)))
    seen = {}
    for y, step in enumerate(steps.values()):
        if not step.feasible:
            ax.text(0, y, f" {step.status}: {step.reason}", va="center")
            continue
        left = 0.0
        for name, seconds in step.counted.items():
            bar = ax.barh(y - 0.12, 1e3 * seconds, left=1e3 * left, height=0.42, color=TERMS.get(name, FAINT))
            seen.setdefault(name, bar)
            left += seconds
        ax.text(1e3 * step.total, y - 0.12, f" {1e3 * step.total:.2f} ms", va="center")
        for name, seconds in step.hidden.items():
            colour = TERMS.get(name, FAINT)
            ax.barh(y + 0.25, 1e3 * seconds, height=0.16, color="none", edgecolor=colour, linewidth=1.2)
            ax.text(1e3 * seconds, y + 0.25, f" {name}, hidden", va="center", fontsize=8, color=INK)
    ax.set_yticks(range(len(steps)), steps)
    ax.set_ylim(len(steps) - 0.4, -0.6)
    ax.set_xlabel("milliseconds per token")
    ax.margins(x=0.15)
    ax.grid(axis="y", visible=False)
    ax.legend(
        seen.values(), seen, loc="upper center", bbox_to_anchor=(0.5, -0.35 / len(steps) - 0.12), ncol=4
    )
    return ax
