"""The pictures of the introduction: what happens while one token is made, and what chips and company do to it."""

from inferlib import load_chip, load_model, principles, style
from inferlib.explorer import Bars, Choice, Explorer, Limit, Search, Slider
from inferlib.ops import where
from inferlib.system import Breakdown, System, Workload

MODEL = "Llama 3 70B"
EXCHANGES = 2  # of a layer: after attention and after the feed-forward block
ENDLESS = {"memory_capacity": None}  # asked for times only; what fits is asked elsewhere


def step(chip, n_chips, batch, context, exchange):
    """One token of Llama 3 70B: the bound of the peaks, and a wait of ``exchange`` seconds after every block.

    Parameters
    ----------
    chip : Accelerator
    n_chips, batch, context : float
    exchange : float
        Seconds; the same for any number of chips beyond one, as a beginning.

    Returns
    -------
    Breakdown
    """
    model = load_model(MODEL)
    system = System(chip.replace(**ENDLESS), n_chips, domain=n_chips)
    bound = principles.decode_step(principles.profile_of(model), system, Workload(batch, context))
    waits = model.n_layers * EXCHANGES * principles.exchange_time(exchange, 0, chip.scale_up_bandwidth)
    return Breakdown((*bound.stages, {"waiting": where(n_chips > 1, waits, 0.0)}))


def one_token():
    """One token to play with: chips, company, context, and how long an exchange takes."""
    chips = {name: load_chip(name) for name in ("H100 SXM", "A100 80GB", "H200", "B200")}
    profile = principles.profile_of(load_model(MODEL))

    def seconds(all_chips, chip, n_chips, batch, context, exchange):
        return step(chip, n_chips, batch, context, 1e-6 * exchange)

    def needed(batch, context, **others):
        return principles.memory_held(profile, batch, context)

    def held(chip, n_chips, **others):
        return n_chips * chip.memory_capacity

    def dollars(seconds, batch, n_chips, price):
        return principles.cost_per_million(seconds, batch, n_chips, price)

    bars = Bars(
        {MODEL: Search(lambda price, **at: seconds(**at), "all_chips", {"all chips": None}, _spare(needed, held))},
        also={
            "tokens/s for each user": (lambda seconds: 1 / seconds, "1"),
            "$ per million tokens": (dollars, "1"),
        },
    )  # fmt: skip
    inputs = [
        Slider("n_chips", "Chips", 1, 1000, 8, log=True, whole=True),
        Slider("batch", "Users at once", 1, 1000, 1, log=True, whole=True),
        Slider("context", "Context", 1, 131072, 4096, "tokens", log=True, whole=True),
        Slider("exchange", "One exchange", 0.1, 50, 5, "µs", log=True),
        Slider("price", "Price of a chip", 0.5, 10, 2, "$/h", log=True),
        Choice("chip", "Chip", chips),
    ]
    return Explorer("One token", inputs, [bars], limits={"Memory": Limit(needed, held, "GB")})


def _spare(needed, held):
    return lambda all_chips, **at: held(**at) - needed(**at)


def chips_and_company(chip="H100 SXM", exchange=5e-6, price=2.0, context=4096):
    """Time and price of a token by number of chips, for one user; and by number of users, on eight chips.

    Returns
    -------
    dict of pandas.DataFrame
        ``chips`` and ``users``: ``n``, the terms in milliseconds, ``usd`` for a million tokens.
    """
    import pandas as pd

    record, tables = load_chip(chip), {}
    for name, cases in {
        "chips": [(n, 1) for n in (1, 2, 8, 32, 128, 512)],
        "users": [(8, b) for b in (1, 4, 16, 64, 256)],
    }.items():
        rows = []
        for n, batch in cases:
            found = step(record, n, batch, context, exchange)
            usd = principles.cost_per_million(found.total, batch, n, price)
            terms = {term: 1e3 * time for term, time in found.counted.items()}
            rows.append({"n": n if name == "chips" else batch, **terms, "usd": usd})
        tables[name] = pd.DataFrame(rows)
    return tables


def draw_chips_and_company():
    """More chips: a token gets faster until only waiting is left, and dearer. More users: cheaper, and slower."""
    import matplotlib.pyplot as plt

    colours = {"weights": style.BLUE, "cache": style.GREEN, "waiting": style.RED}
    _, axes = plt.subplots(2, 2, figsize=(7.2, 4.6), sharex="col", height_ratios=[3, 2], layout="constrained")
    titles = {"chips": "one user, more chips", "users": "eight chips, more users"}
    for (above, below), (name, table) in zip(axes.T, chips_and_company().items(), strict=True):
        x, bottom = range(len(table)), 0 * table.n
        for term, colour in colours.items():
            above.bar(x, table[term], bottom=bottom, color=colour, width=0.62, label=f"{_DOING[term]}")
            bottom = bottom + table[term]
        for at, total in zip(x, bottom, strict=True):
            above.text(at, total, f"{total:.2g}", ha="center", va="bottom", fontsize=8)
        below.plot(x, table.usd, "o-", color=style.INK)
        for at, usd in zip(x, table.usd, strict=True):
            below.annotate(
                f"${usd:.3g}", (at, usd), xytext=(0, 6), textcoords="offset points", ha="center", fontsize=8
            )
        above.set_title(titles[name], fontsize=10)
        above.margins(y=0.12)
        below.set(yscale="log", xlabel=name, ylim=(table.usd.min() / 2, table.usd.max() * 4))
        below.set_xticks(x, [f"{n}" for n in table.n])
        above.grid(axis="x", visible=False)
    axes[0, 0].set_ylabel("ms for a token")
    axes[1, 0].set_ylabel("$ for a million")
    axes[0, 0].legend(fontsize=9, loc="upper right")
    return axes


_DOING = {"weights": "reading weights", "cache": "reading the context", "waiting": "waiting"}


def draw_mechanism():
    """What one token is made of: every chip reads its part from memory, multiplies, and waits for the others."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

    _, ax = plt.subplots(figsize=(7.2, 3.3))

    def box(x, y, width, height, text, colour, **kwargs):
        shape = FancyBboxPatch(
            (x, y), width, height, boxstyle="round,pad=0.04", fill=False, edgecolor=colour, **kwargs
        )
        ax.add_patch(shape)
        ax.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=9, color=colour)

    def arrow(start, end, colour, style_="-|>", bend=0.0):
        ax.add_patch(
            FancyArrowPatch(
                start, end, arrowstyle=style_, mutation_scale=13, color=colour, linewidth=1.8,
                connectionstyle=f"arc3,rad={bend}",
            )
        )  # fmt: skip

    for chip, y in enumerate((2.3, 0.3)):
        ax.text(-0.15, y + 0.5, f"chip {chip + 1}", ha="right", va="center", fontsize=10)
        box(
            0,
            y,
            2.3,
            1,
            "memory (HBM):\nhalf of the weights,\nhalf of the context",
            style.BLUE,
            linewidth=1.6,
        )
        box(4.1, y, 1.5, 1, "arithmetic", style.ORANGE, linewidth=1.6)
        arrow((2.4, y + 0.5), (4.0, y + 0.5), style.BLUE)
        ax.text(3.2, y + 0.62, "1  read", ha="center", va="bottom", fontsize=10, color=style.BLUE)
        ax.text(4.85, y + 1.12, "2  multiply", ha="center", va="bottom", fontsize=10, color=style.ORANGE)
    arrow((5.75, 2.8), (5.75, 0.8), style.RED, "<|-|>", bend=-0.5)
    ax.text(
        6.4, 1.8, "3  exchange\n    results, and wait", ha="left", va="center", fontsize=10, color=style.RED
    )
    arrow((7.6, 2.4), (1.15, 3.5), style.INK, bend=0.42)
    ax.text(
        4.85, 4.75, "next layer; after the last one, the next token", ha="center", va="center", fontsize=10
    )
    ax.set(xlim=(-1.0, 9.1), ylim=(0, 5.4))
    ax.axis("off")
    return ax
