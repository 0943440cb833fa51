"""Pope et al. 2022 on other machines: which layout to take for a prefill."""

import pandas as pd

from book import style
from book.pope2022.figures import axes
from inferlib import load_chip, load_model as load
from inferlib.papers.pope2022.decode import options
from inferlib.papers.pope2022.records import chip_of, model_of

MACHINES = {"H100 SXM": 8, "H200": 8, "B200": 8, "TPU v5p": 64}  # boxes, and a slice


def advice_data(transformer="Llama 3 70B", machines=MACHINES, context=2048):
    """The layout with the least bound over the prompt tokens in a batch, on machines of the catalogue."""
    model, rows = model_of(load(transformer)), []
    for name, count in machines.items():
        chip = chip_of(load_chip(name))
        for batch in (1, 2, 4, 8, 16, 32, 64, 128):
            found = options(model, chip, count, batch, context)
            found = found[found["why not"] == ""]
            if found.empty:
                continue
            best = found.sort_values("network", kind="stable").iloc[0]
            plain, times = found[found.layout == "WS 1D"].network.min(), (best.network, best.arithmetic)
            rows.append((f"{count} × {name}", batch * context, best.layout, *times, plain))
    return pd.DataFrame(rows, columns=["machine", "tokens", "layout", "network", "arithmetic", "1D"])


def draw_advice(data):
    """Draw :func:`advice_data`: communication over arithmetic, with the best layout and in 1D. Returns Axes."""
    _, ax = axes()
    for colour, (name, rows) in zip(style.LINES[:4], data.groupby("machine", sort=False), strict=True):
        ax.plot(rows.tokens, rows.network / rows.arithmetic, "o-", color=colour, markersize=4, label=name)
        ax.plot(rows.tokens, rows["1D"] / rows.arithmetic, "--", color=colour, linewidth=1.2)
    ax.axhline(1, color=style.INK, linewidth=1)
    ax.plot([], [], "--", color=style.FAINT, label="1D, for comparison")
    ax.set(xscale="log", yscale="log", xlabel="tokens in the batch", ylabel="network over arithmetic time")
    ax.legend(fontsize=9, ncol=2)
    return ax
