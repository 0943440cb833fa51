"""Draw the picture of the README, on a ground of its own since a README knows no theme."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib

PICTURE = Path(__file__).resolve().parents[1] / "_static" / "one-token.svg"


def drawn():
    """The picture as SVG text, the same in every run."""
    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    from book.erdil2025 import figures
    from inferlib import style

    style.use()
    _, ax = plt.subplots(figsize=(6.4, 3.4), facecolor="white")
    figures.latency_over_size(ax=ax)
    text = io.StringIO()
    options = {"bbox_inches": "tight", "facecolor": "white", "metadata": style.SVG_METADATA}
    ax.figure.savefig(text, format="svg", **options)
    return style.canonical_svg(text.getvalue())


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
