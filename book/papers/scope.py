"""What each source describes, in one table and one picture."""

import pandas as pd
from matplotlib.patches import Circle, Wedge

from book import style
from inferlib import papers


def scope():
    """What each source describes (``source.toml``).

    Indexed by the sources' keys: ``label``, ``question``, and one column an ingredient, each ``"yes"``,
    ``"partly"`` or ``"no"``.
    """
    rooms = {key: papers.about(key) for key in papers.sources()}
    rows = {key: {"label": a["label"], "question": a["question"], **a["scope"]} for key, a in rooms.items()}
    return pd.DataFrame(rows).T


def draw_scope(ax=None):
    """The five sources in one picture: full circles for what a source models, half for partly, empty for no."""
    table = scope()
    ingredients = [name for name in table if name not in ("label", "question")]
    ax = style.axes(ax, figsize=(7, 4.4))
    for column, (key, row) in enumerate(table.iterrows()):
        x, colour = 2.4 * column, papers.about(key)["colour"]
        for y, ingredient in enumerate(ingredients):
            ax.add_patch(Circle((x, y), 0.3, fill=row[ingredient] == "yes", color=colour, linewidth=1.3))
            if row[ingredient] == "partly":
                ax.add_patch(Wedge((x, y), 0.3, 90, 270, color=colour))
        name, year = row.label.replace("& ", "&\n").rsplit(" ", 1)
        ax.text(x, -0.7, f"{name}\n{year}", ha="center", va="bottom", fontsize=9)
    names = [name.replace("_", " ").replace("kv", "KV") for name in ingredients]
    ax.set(
        xticks=[], xlim=(-0.9, 2.4 * len(table) - 1.4), ylim=(len(ingredients) - 0.5, -0.6), aspect="equal"
    )
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    return ax
