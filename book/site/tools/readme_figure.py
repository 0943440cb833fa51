"""Draw the README's figure, on a white background because a README has no theme."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib

PICTURE = Path(__file__).resolve().parents[1] / "static" / "one-token.svg"


def drawn():
    """Return the figure as SVG text, the same in every run."""
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    import xarray as xr

    from book import style
    from inferlib import axis
    from inferlib.papers import erdil2025

    style.use()
    _, ax = plt.subplots(figsize=(6.4, 3.4), facecolor="white")
    model, chip, hop = erdil2025.load_model("Llama 3 70B"), erdil2025.load_chip("H100"), 1e-6
    gpus = axis("GPUs in the instance", 1, 512)
    times = {
        "reading": erdil2025.weight_time(model, chip, gpus),
        "network": erdil2025.network_time(model, erdil2025.grid_all_reduce_time(gpus, hop)),
        "token latency": erdil2025.critical_latency(model, chip, gpus, hop),
    }
    best = erdil2025.optimal_n_gpu(model, chip, hop), erdil2025.minimum_latency(model, chip, hop)
    colours = {"reading": style.BLUE, "network": style.RED, "token latency": style.INK}
    style.curve(xr.Dataset(times), mark=best, unit="ms", ax=ax, colours=colours)
    text = io.StringIO()
    options = {"bbox_inches": "tight", "facecolor": "white", "metadata": style.SVG_METADATA}
    ax.figure.savefig(text, format="svg", **options)
    return style.canonical_svg(text.getvalue())


if __name__ == "__main__":
    PICTURE.write_text(drawn(), "utf-8")
