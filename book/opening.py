"""The pictures of the introduction: what happens while one token is made, and what chips and company do to it."""

from dataclasses import dataclass, fields

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from book import style
from book.explorer import Axis, Bars, Choice, Explorer, Frontier, Slider, first, memory
from book.sixth import Text
from inferlib import load_chip, load_model, principles
from inferlib.equation import quantity
from inferlib.ops import where
from inferlib.papers import erdil2025
from inferlib.system import Breakdown, System, Workload
from inferlib.units import factor
from tokenprice import Promise, Question, answerers, ask, change

MODELS = ("Llama 3 70B", "Llama 3 8B", "Qwen3 32B", "GPT-OSS 120B", "DeepSeek V3", "Llama 3.1 405B")
CHIPS = ("H100 SXM", "A100 80GB", "H200", "B200")
EXCHANGES = 2  # of a layer: after attention and after the feed-forward block
ENDLESS = {"memory_capacity": None}  # asked for times only; what fits is asked elsewhere
# What a reader may ask for, by tokens per second; whoever runs a batch takes the cheapest.
LOADS = {"agent": 300, "chat": 100, "batch": None}


# The running question of all chapters: what their text speaks of.
RUNNING = Question("Llama 3 70B", "8x H100", weights="bf16", cache="bf16", batch=32, context=4096)
# And as requests, half of whose answer is made at that context.
SERVED = Question("Llama 3 70B", "8x H100", prompt=3840, output=512, users=32)


def yours(case, printed=RUNNING):
    """Say that a chapter's case is not the one that its text speaks of; nothing where it is."""
    changed = [name for name in Question.names() if getattr(case, name) != getattr(printed, name)]
    if changed:
        mine, theirs = (_named(question, changed) for question in (case, printed))
        mine += " with other numbers" if mine == theirs else ""
        print(f"yours: {mine}; the text speaks of {theirs}")


def _named(question, changed):
    """The model and the machine of a question, and what else of it differs."""
    told = question.words()
    others = (
        f"{name} {told.get(name, 'as published')}" for name in changed if name not in ("model", "machine")
    )
    return ", ".join([f"{told['model']} on {told['machine']}", *others])


@dataclass(frozen=True, eq=False)
class Layered(principles.Profile):
    """A profile that also says how often the chips exchange, and how much."""

    n_layers: float = quantity("1", "layers", default=1)
    d_model: float = quantity("1", "width of the model", default=1)


def layered(model):
    """The profile of a transformer, with its layers."""
    profile = principles.profile_of(model)
    told = {f.name: getattr(profile, f.name) for f in fields(profile)}
    return Layered(**told, n_layers=model.n_layers, d_model=model.d_model)


def step(model, chip, n_chips, batch, context, exchange):
    """One token of a model: the bound of the peaks, and an all-reduce (``exchange``, then its bytes) a block."""
    system = System(chip.replace(**ENDLESS), n_chips, domain=n_chips)
    bound = principles.decode_step(model, system, Workload(batch, context))
    # an all-reduce sends nearly two vectors of 16 bits
    sent = 2 * (1 - 1 / n_chips) * 2 * batch * model.d_model
    waits = model.n_layers * EXCHANGES * principles.exchange_time(exchange, sent, chip.scale_up_bandwidth)
    return Breakdown((*bound.stages, {"waiting": where(n_chips > 1, waits, 0.0)}))


def one_token(model=None, chip=None):
    """One token to play with, and for every speed its least price over all numbers of chips and users."""
    model, chip = model or load_model(MODELS[0]), chip or load_chip(CHIPS[0])
    models = first(model, {name: load_model(name) for name in MODELS})
    chips = first(chip, {name: load_chip(name) for name in CHIPS})

    def chosen(model, weights, cache):
        return model.replace(weight_bytes=weights, cache_bytes=cache)

    def seconds(chip, n_chips, batch, context, exchange, model, weights, cache, price=None):
        shape = chosen(model, weights, cache)
        return step(shape, chip, n_chips, batch, context, exchange * factor("us"))

    def speed(**at):
        return 1 / seconds(**at).total

    def dollars(price, batch, n_chips, **at):
        total = seconds(batch=batch, n_chips=n_chips, **at).total
        return principles.cost_per_million(total, batch, n_chips, price)

    def held(batch, context, model, weights, cache, **others):
        return principles.memory_held(chosen(model, weights, cache), batch, context)

    powers = [*(2**k for k in range(10)), 1000]
    frontier = Frontier(
        (speed, dollars),
        Axis("tokens/s for each user", "1", 5, 5000),
        Axis("$ per million tokens", "1", 0.02, 500),
        over={"n_chips": powers, "batch": sorted({round(2 ** (k / 4)) for k in range(49)})},
        marks=LOADS,
        title="Every number of chips and users: for each speed the least price",
    )
    inputs = [
        Slider("n_chips", "Chips", 1, 1000, 8, log=True, whole=True),
        Slider("batch", "Users at once", 1, 4096, 1, log=True, whole=True),
        Slider("context", "Context", 1, 131072, 4096, "tokens", log=True, whole=True),
        Slider("exchange", "Start of an exchange", 0.1, 50, 5, "µs", log=True),
        Slider("price", "Price of a chip", 0.5, 10, 2, "$/h", log=True),
        Choice("model", "Model", {name: layered(m) for name, m in models.items()}),
        Choice("chip", "Chip", chips),
        Choice("weights", "Weights", {"16 bits": 2, "8 bits": 1, "4 bits": 0.5}),
        Choice("cache", "Cache", {"16 bits": 2, "8 bits": 1}),
    ]
    limits = memory(held, "n_chips", "Memory")
    return Explorer("One token", inputs, [Bars({"": seconds}), frontier], limits=limits, asks={})


def chips_and_company(model, chip, exchange=5e-6, price=2.0, context=4096):
    """Time and price of a token by number of chips, for one user; and by number of users, on eight chips."""
    shape, tables = layered(model), {}
    one_user = [(n, 1) for n in (1, 2, 8, 32, 128, 512)]
    for name, cases in (("chips", one_user), ("users", [(8, b) for b in (1, 4, 16, 64, 256)])):
        rows = []
        for n, batch in cases:
            found = step(shape, chip, n, batch, context, exchange)
            usd = principles.cost_per_million(found.total, batch, n, price)
            terms = {term: 1e3 * time for term, time in found.counted.items()}
            rows.append({"n": n if name == "chips" else batch, **terms, "usd": usd})
        tables[name] = pd.DataFrame(rows)
    return tables


def draw_chips_and_company(tables):
    """More chips: a token gets faster until only waiting is left, and costs more. More users: cheaper, and slower."""
    colours = {"weights": style.BLUE, "cache": style.GREEN, "waiting": style.RED}
    _, axes = plt.subplots(2, 2, figsize=(7.2, 4.6), sharex="col", height_ratios=[3, 2], layout="constrained")
    titles = {"chips": "one user, more chips", "users": "eight chips, more users"}
    doing = {"weights": "reading weights", "cache": "reading the context", "waiting": "waiting"}
    for (above, below), (name, table) in zip(axes.T, tables.items(), strict=True):
        x, bottom = range(len(table)), 0 * table.n
        for term, colour in colours.items():
            above.bar(x, table[term], bottom=bottom, color=colour, width=0.62, label=doing[term])
            bottom = bottom + table[term]
        for at, total in zip(x, bottom, strict=True):
            above.text(at, total, f"{total:.2g}", ha="center", va="bottom", fontsize=8)
        below.plot(x, table.usd, "o-", color=style.INK)
        for at, usd in zip(x, table.usd, strict=True):
            below.annotate(
                f"${usd:.3g}", (at, usd), (0, 6), textcoords="offset points", ha="center", fontsize=8
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


def draw_mechanism():
    """What one token is made of: every chip reads its part from memory, multiplies, and waits for the others."""
    _, ax = plt.subplots(figsize=(7.2, 3.3))

    def box(x, y, width, text, colour):
        line = {"fill": False, "edgecolor": colour, "linewidth": 1.6}
        ax.add_patch(FancyBboxPatch((x, y), width, 1, boxstyle="round,pad=0.04", **line))
        ax.text(x + width / 2, y + 0.5, text, ha="center", va="center", fontsize=9, color=colour)

    def arrow(start, end, colour, heads="-|>", bend=0.0):
        line = {"color": colour, "linewidth": 1.8, "connectionstyle": f"arc3,rad={bend}"}
        ax.add_patch(FancyArrowPatch(start, end, arrowstyle=heads, mutation_scale=13, **line))

    for chip, y in enumerate((2.3, 0.3)):
        ax.text(-0.15, y + 0.5, f"chip {chip + 1}", ha="right", va="center", fontsize=10)
        box(0, y, 2.3, "memory (HBM):\nhalf of the weights,\nhalf of the context", style.BLUE)
        box(4.1, y, 1.5, "arithmetic", style.ORANGE)
        arrow((2.4, y + 0.5), (4.0, y + 0.5), style.BLUE)
        ax.text(3.2, y + 0.62, "1  read", ha="center", va="bottom", fontsize=10, color=style.BLUE)
        ax.text(4.85, y + 1.12, "2  multiply", ha="center", va="bottom", fontsize=10, color=style.ORANGE)
    arrow((5.75, 2.8), (5.75, 0.8), style.RED, "<|-|>", bend=-0.5)
    ax.text(6.4, 1.8, "3  exchange\n    results, and wait", va="center", fontsize=10, color=style.RED)
    arrow((7.6, 2.4), (1.15, 3.5), style.INK, bend=0.42)
    ax.text(
        4.85, 4.75, "next block; after the last one, the next token", ha="center", va="center", fontsize=10
    )
    ax.set(xlim=(-1.0, 9.1), ylim=(0, 5.4))
    ax.axis("off")
    return ax


# What any answer consists of, in the few words of an introduction: kinds of :data:`book.style.KINDS`.
KINDS = {
    "reading weights": ("reading weights", "reading activations"),
    "reading the context": ("reading the cache",),
    "waiting for other chips": ("waiting", "sending"),
    "software": ("software",),
}


def everybody(*words, **options):
    """The sixth model's answer, and the steps of all who answer, that of the toy model too, the sixth model's last."""
    sixth = ask(*words, **options)
    asked, keys = sixth.question, answerers.keys()
    answers = {key: answerers.ask(key, asked.model, asked.machine, asked.workload) for key in keys}
    found = {answerers.label(key): step for key, step in answers.items() if step.feasible}
    found["Erdil 2025, toy"] = erdil2025.toy_decode_step(asked.model, asked.machine, asked.workload)
    return sixth, found | {last: found.pop(last) for last in (answerers.label(answerers.SIXTH),)}


def draw_answers(answers, sixth):
    """Everybody's step as one bar, in four kinds of time; the sixth model's with its interval."""
    _, ax = plt.subplots(figsize=(7.2, 0.9 + 0.42 * len(answers)))
    for y, step in enumerate(answers.values()):
        left = 0.0
        for says, kinds in KINDS.items():
            time = 1e3 * sum(s for name, s in step.counted.items() if style.KIND_OF[name] in kinds)
            colour = style.KINDS[kinds[0]][0]
            ax.barh(y, time, left=left, height=0.6, color=colour, label=None if y else says)
            left += time
        ax.text(left, y, f" {1e3 * step.total:.1f}", va="center")
    at = list(answers).index(answerers.label(answerers.SIXTH))
    ends = [[1e3 * (sixth.seconds - sixth.low)], [1e3 * (sixth.high - sixth.seconds)]]
    ax.errorbar(1e3 * sixth.seconds, at + 0.2, xerr=ends, color=style.INK, capsize=3, linewidth=1.2)
    style.name_rows(ax, answers)
    ax.set(ylim=(len(answers) - 0.4, -0.6), xlabel="milliseconds per token")
    ax.margins(x=0.05)
    ax.legend(loc="lower center", bbox_to_anchor=(0.35, 1.0), ncol=4, fontsize=9)
    return ax


def in_three_lines(sixth):
    """How long, what it costs, and what would halve either."""
    asked, half = sixth.question, sixth.dollars_per_million / 2
    changes = change(asked, Promise(token=sixth.seconds / 2))
    alone = [f"{c.resource} × {c.factor:.2g}" for c in changes.changes if c.factor and c.factor > 1]
    more = range(int(asked.workload.batch), 1 << 12)
    users = next(n for n in more if ask(asked.replace(batch=n)).dollars_per_million <= half)
    middle, low, high = (f"{1e3 * seconds:.1f}" for seconds in (sixth.seconds, sixth.low, sixth.high))
    return Text(
        f"- **How long?** {middle} ms per token ({low} to {high} ms in {100 * sixth.confidence:.0f} % of cases), "
        f"{sixth.speed:.0f} tokens/s for each user.\n"
        f"- **At what price?** {sixth.dollars_per_million:.2f} dollars per million tokens, at {asked.rate:.2f} per "
        f"chip and hour.\n"
        f"- **Half of either?** Half the time takes {' or '.join(alone)}, and no other part does it alone; half the "
        f"price takes {users} users."
    )
