"""Claims of a lecture of 2026, each computed from the library, beside what was measured."""

from functools import cache

import matplotlib.pyplot as plt
import pandas as pd

import tokenprice
from book import measured, style
from inferlib import catalog, load_chip, load_model, principles
from inferlib.system import format_bytes

CHIPS = ("A100 80GB", "H100 SXM", "H200", "MI300X", "B200", "GB300")
FORMATS = ("bf16", "fp8", "fp4")
RATIO = 300  # multiplications for each number read, as the lecture has it
ACTIVE, BEND = 1e11, 200_000  # its guess of active weights, and where a price list has its step
MACHINES = {"Llama 3 70B": "8x H100", "Qwen3 235B-A22B": "8x H100", "Kimi K2": "8x B200"}


def _frame(rows, columns):
    return pd.DataFrame(rows, columns=columns)


def balance(chip, name):
    """Multiplications that a chip does for each number of a format that it reads: two FLOP are one."""
    if name not in chip.peaks:
        return None
    return principles.ridge_point(chip.at(name)) * format_bytes(name) / 2


def balances():
    """That ratio for some chips, by format."""
    rows = [(name, *(balance(load_chip(name), f) for f in FORMATS)) for name in CHIPS]
    table = _frame(rows, ["chip", "16 bits", "8 bits", "4 bits"])
    return table.map(lambda v: v if isinstance(v, str) else "" if v is None or v != v else f"{v:.0f}")


def sparsities(names=("DeepSeek V3", "Kimi K2", "Qwen3 235B-A22B", "GPT-OSS 120B", "Mixtral 8x7B")):
    """What a token leaves asleep, by experts and by weights, and the batch at which reading no longer rules."""
    rows = []
    for name in names:
        model = load_model(name)
        layer = next(g.feed_forward for g in model.layers if hasattr(g.feed_forward, "n_experts"))
        profile = principles.profile_of(model)
        read = profile.always_read + profile.expert_weights
        by_weights = read / (profile.token_flops / 2)
        rows.append(
            (name, f"{layer.n_active} of {layer.n_experts}", layer.n_experts / layer.n_active, by_weights,
             RATIO * by_weights)
        )  # fmt: skip
    table = _frame(rows, ["model", "experts", "by experts", "by weights", "batch"])
    return table.assign(**{"by experts": table["by experts"].round(1), "by weights": table["by weights"].round(1),
                           "batch": table.batch.round(-2).map("{:,.0f}".format)})  # fmt: skip


def drains():
    """The time in which a chip could read all of its memory once."""
    rows = []
    for name in CHIPS:
        held, read = load_chip(name).memory_capacity, load_chip(name).memory_bandwidth
        rows.append((name, held / 1e9, read / 1e12, 1e3 * held / read))
    return _frame(rows, ["chip", "GB", "TB/s", "drained in ms"]).round(1)


@cache
def served():
    """Every serving benchmark, with the speed of a user and what a GPU writes per second."""
    table = measured.serving()
    written = table.concurrency * table.output_tokens / (table.ttft + table.output_tokens * table.tpot)
    return table.assign(speed=1 / table.tpot, rate=written / table.n_gpus)


def benchmarks():
    """The served rows of one model, chip, format and pair of lengths, where there are some."""
    keys = ["model", "hardware", "weights", "prompt_tokens", "output_tokens"]
    return {key: rows for key, rows in served().groupby(keys) if len(rows) >= 6}


def steps(limits=(15, 20, 40)):
    """Which part of the served rows has a time between tokens up to so many milliseconds."""
    times = 1e3 * served().tpot
    rows = [(f"up to {limit} ms", f"{100 * (times <= limit).mean():.0f} %") for limit in limits]
    return _frame([*rows, ("median", f"{times.median():.1f} ms")], ["time between tokens", "served rows"])


def frontier(rows):
    """Speed and price, both against the cheapest row: for each speed the least price."""
    cheapest, points = rows.loc[rows.rate.idxmax()], []
    for row in rows.sort_values("speed", ascending=False).itertuples():
        price = cheapest.rate / row.rate
        if row.speed >= cheapest.speed and (not points or price < points[-1][1]):
            points.append((row.speed / cheapest.speed, price))
    return points[::-1]


def times_the_price(points, speed=2.5):
    """The least price at so many times the speed of the cheapest, or None where nothing is that fast."""
    return min((price for x, price in points if x >= speed), default=None)


def fast():
    """What two and a half times the speed costs in the benchmarks, in times of the cheapest token."""
    found = [times_the_price(frontier(rows)) for rows in benchmarks().values()]
    prices = sorted(price for price in found if price is not None)
    told = [
        ("benchmarks that reach it", f"{len(prices)} of {len(found)}"),
        ("least", f"{prices[0]:.1f} times the price"),
        ("median", f"{prices[len(prices) // 2]:.1f} times"),
        ("most", f"{prices[-1]:.1f} times"),
        ("six times, or more", f"{sum(price >= 6 for price in prices)}"),
    ]
    return _frame(told, ["2.5 times the speed", "in measurements"])


def draw_fast():
    """Price over speed of every benchmark, from its cheapest token on, and what the lecture asks about."""
    _, ax = plt.subplots(figsize=(6.6, 3.8))
    for (model, *_), rows in benchmarks().items():
        colour = style.PURPLE if hasattr(_first(load_model(model)), "n_experts") else style.YELLOW
        ax.plot(*zip(*frontier(rows), strict=True), color=colour, alpha=0.45, linewidth=1.2)
    ax.plot(2.5, 6, "D", color=style.INK, markersize=8)
    ax.annotate("the question:\n2.5 times as fast\nfor 6 times the price", (2.5, 6), xytext=(-14, 14),
                textcoords="offset points", ha="right", fontsize=9)  # fmt: skip
    ax.plot([], [], color=style.PURPLE, label="mixtures of experts")
    ax.plot([], [], color=style.YELLOW, label="dense models")
    ax.set(xscale="log", yscale="log", xlim=(1, 20), ylim=(1, 60),
           xlabel="speed of one user, times that of the cheapest token", ylabel="price, times the least")  # fmt: skip
    ax.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    ax.set_yticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
    ax.minorticks_off()
    ax.legend(loc="upper left")
    return ax


def _first(model):
    return model.layers[-1].feed_forward


def alone(context=1000):
    """How many times as much a token costs alone as on a full machine: by the sixth model, and measured from four."""
    rows = []
    for name, machine in MACHINES.items():
        weights = "fp4" if "B200" in machine else "fp8"
        asked = tokenprice.Question(name, machine, context=context, weights=weights)
        prices = []
        for answer in (tokenprice.ask(asked.replace(batch=2**k)) for k in range(13)):
            if not answer.feasible:
                break
            prices.append(answer.dollars_per_million)
        rows.append((name, machine, f"{prices[0] / min(prices):.0f}"))
    return _frame(rows, ["model", "machine", "times"])


def spread():
    """The most expensive served row over the cheapest of the same benchmark: the largest, and the median."""
    found = sorted((rows.rate.max() / rows.rate.min(), key[:2], rows) for key, rows in benchmarks().items())
    times, (model, chip), rows = found[-1]
    return (
        f"measured: {found[len(found) // 2][0]:.0f} times in the median benchmark,\n{times:.0f} at most "
        f"({model} on {chip}, {rows.concurrency.min()} to {rows.concurrency.max()} users)"
    )


def implied_bytes():
    """Bytes of cache per token at which reading the cache takes as long as multiplying, at the bend of the list."""
    return ACTIVE / RATIO / BEND


def crossings(chip="H100 SXM", name="fp8"):
    """For every model whose layers all see the whole context: its bytes per token, and where it crosses over."""
    record, rows = load_chip(chip).at(name), []
    for model in catalog.models():
        try:
            profile = principles.profile_of(load_model(model), name, name)
        except ValueError:
            continue
        if profile.window_values or not profile.cache_values:
            continue
        seconds = profile.token_flops / record.flops
        kept = profile.cache_values * profile.cache_bytes
        meets = profile.token_flops / profile.pair_flops
        rows.append((model, kept, seconds * record.memory_bandwidth / kept, meets))
    return _frame(rows, ["model", "bytes", "crosses", "attention"]).sort_values("crosses")


def told_crossings(
    names=("Llama 3 70B", "Llama 3.1 405B", "Qwen3 235B-A22B", "DeepSeek V3", "Kimi K2", "PaLM 540B"),
):
    """Some of them, in words for a table."""
    table = crossings().set_index("model").loc[list(names)].reset_index()
    table[["bytes", "crosses", "attention"]] = table[["bytes", "crosses", "attention"]].map("{:,.0f}".format)
    heads = [
        "cache, bytes per token",
        "reads it as long as it multiplies at",
        "attention multiplies as much at",
    ]
    return table.set_axis(["model", *heads], axis=1)


def extremes():
    """The longest of both contexts in the catalogue."""
    table = crossings()
    words = {"crosses": "cache read as long as multiplied", "attention": "attention as much as weights"}
    return "\n".join(
        f"{said}: {table[column].min():,.0f} to {table[column].max():,.0f} tokens of context"
        for column, said in words.items()
    )
