"""Figures of the introduction: how one token is made, and the effect of more chips and more users."""

from bisect import bisect
from dataclasses import fields
from functools import partial
from itertools import takewhile

import pandas as pd
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from book import measured, style
from book.audit.published_rows import published
from book.explorer import Bars, Choice, Explorer, Sentence, Slider, first, memory, sizes
from book.frames import frame
from book.style import Text
from book.synthesis import figures, grid
from inferlib import load_chip, load_model, principles
from inferlib.equation import quantity
from inferlib.ops import where
from inferlib.papers.source import run
from inferlib.system import Breakdown, Layout, System, Workload
from inferlib.units import factor
from tokenprice import SLO, Question, ask, change, kernels, predictors
from tokenprice.calibration import engine

MODELS = ("Llama 3 70B", "Llama 3 8B", "Qwen3 32B", "GPT-OSS 120B", "DeepSeek V3", "Llama 3.1 405B")
CHIPS = ("H100 SXM", "A100 80GB", "H200", "B200")
EXCHANGES = 2  # per layer: after attention and after the feed-forward block
EXCHANGE = 5e-6  # seconds of one exchange inside a box, without its bytes
CHAT = 50  # tokens per second promised to a chat here
USERS = 4097  # users of one machine at which the search ends
ENDLESS = {"memory_capacity": None}  # for times only; whether it fits is checked elsewhere
KERNEL_MODEL = predictors.label(predictors.KERNELS)
# The running question of all chapters, to which their text refers; the rent is the catalogue's. Sources are asked for
# its decode step, at the context in the middle of an answer.
REQUEST = Question(
    "Llama 3 70B", "8x H100", weights="bf16", kv_cache_dtype="bf16", prompt_tokens=3840, cached=0, output_tokens=512,
    concurrency=32,
)  # fmt: skip
RUNNING = REQUEST.step()


COMPARED = (
    "model", "machine", "batch", "context", "prompt_tokens", "cached", "output_tokens", "concurrency", "layout",
    "weights", "cache", "price",
)  # fmt: skip


def note_changed_case(case, printed=None, **others):
    """Say that a chapter's case differs from the one in its text; ``""`` if it does not.

    ``printed``: the case of the text (default: the running question). ``others``: further inputs of the chapter by
    name, each with the value in the text.
    """
    printed = printed or (REQUEST if case.is_request else RUNNING)
    changed = [name for name in COMPARED if _value(case, name) != _value(printed, name)]
    if changed:
        mine, theirs = (_named(question, changed) for question in (case, printed))
        mine += " with other numbers" if mine == theirs else ""
        print(f"yours: {mine}; the text speaks of {theirs}")
    for name, (mine, theirs) in others.items():
        if mine != theirs:
            print(f"yours: another {name} than the text speaks of")


def _value(question, name):
    """Return a field's value, or its default."""
    known = {"batch", "context", "weights", "cache"}
    value = getattr(question.workload if name in known else question, name)
    return value or None


def case_for(case, by, printed=None, step=None):
    """Return the case; or the printed case, with the reason, if a source (or ``step``) does not describe it."""
    printed = printed or (REQUEST if case.is_request else RUNNING)
    answer = ask(case.step(), by=by)
    if step is not None and answer.status != "n/a":
        answer = run(by, step, case.model, case.machine, case.workload, case.layout)
    if answer.status != "n/a":
        return case
    others = _named(printed, ())
    print(f"{predictors.label(by)}, {answer.summary()}. The chapter goes on with {others}.")
    return printed


def _named(question, changed):
    """Name the model and the machine of a question, and its other changes."""
    told = question.words() | dict(zip(("weights", "cache"), question.formats, strict=False))
    others = (f"{name} {told[name]}" for name in changed if name in told and name not in ("model", "machine"))
    return ", ".join([f"{told['model']} on {told['machine']}", *others])


class Layered(principles.Profile):
    """A profile with the number and the size of the exchanges between chips."""

    n_layers: float = quantity("layers", default=1)
    d_model: float = quantity("width of the model", default=1)


def layered(model, weights="bf16", cache="bf16"):
    """The profile of a transformer, with its layers."""
    profile = principles.profile_of(model, weights, cache)
    told = {f.name: getattr(profile, f.name) for f in fields(profile)}
    return Layered(**told, n_layers=model.n_layers, d_model=model.d_model)


def linked(chip):
    """Return a chip with a box and links; without them it gets a box of eight, and links as fast as its other kind."""
    inside = chip.scale_up_bandwidth or chip.scale_out_bandwidth or chip.memory_bandwidth
    outside = chip.scale_out_bandwidth or inside
    size = chip.scale_up_size or RUNNING.machine.count
    return chip.replace(scale_up_bandwidth=inside, scale_out_bandwidth=outside, scale_up_size=size)


def step(model, chip, n_chips, batch, context, exchange=EXCHANGE):
    """One token of a model: the bound of the peaks, and an all-reduce per block (``exchange``, then its bytes).

    An all-reduce that leaves the box takes the kernel model's extra time per doubling of the chips, and its bytes cross
    the network.
    """
    system = System(chip.replace(**ENDLESS), n_chips, domain=n_chips)
    bound = principles.decode_step(model, system, Workload(batch, context))
    # an all-reduce sends nearly two vectors of 16 bits
    sent = 2 * (1 - 1 / n_chips) * 2 * batch * model.d_model
    bandwidth = where(n_chips > chip.scale_up_size, chip.scale_out_bandwidth, chip.scale_up_bandwidth)
    beyond = kernels.node_time(engine(), 1, n_chips, chip.scale_up_size)
    each = principles.exchange_time(exchange, sent, bandwidth) + beyond
    waits = model.n_layers * EXCHANGES * each
    return Breakdown((*bound.stages, {"waiting": where(n_chips > 1, waits, 0.0)}))


def stored(model, weights, cache):
    """The model, with its weights and its cache in so many bytes a value."""
    return model.replace(weight_bytes=weights, cache_bytes=cache)


def one_token(case=RUNNING):
    """Explorer of one token: its parts, its speed and its price."""
    asked, chip = case.workload, case.machine.chip
    models = first(case.model, {name: load_model(name) for name in MODELS})
    chips = first(chip, {name: load_chip(name) for name in CHIPS})

    def seconds(chip, n_chips, batch, context, exchange, model, weights, cache, price=None):
        return step(stored(model, weights, cache), chip, n_chips, batch, context, exchange * factor("us"))

    def speed(**at):
        return 1 / seconds(**at).total

    def dollars(price, batch, n_chips, **at):
        total = seconds(batch=batch, n_chips=n_chips, **at).total
        return principles.cost_per_million(total, batch, n_chips, price)

    def held(batch, context, model, weights, cache, **others):
        return principles.memory_held(stored(model, weights, cache), batch, context)

    told = Sentence(
        {"tokens/s for each user": (speed, "1/s"), "$ per million tokens": (dollars, "1")},
        ((None, "{0} tokens/s for each user, ${1} a million tokens."),),
    )
    inputs = [
        Slider("n_chips", "Chips", 1, 1000, case.machine.count, log=True, whole=True),
        Slider("batch", "Users at once", 1, 4096, asked.batch, log=True, whole=True),
        Slider("context", "Context", 1, 131072, asked.context, "tokens", log=True, whole=True),
        Slider("exchange", "Start of an exchange", 0.1, 50, EXCHANGE / factor("us"), "µs", log=True),
        Choice("model", "Model", {name: layered(m) for name, m in models.items()}),
        Choice("chip", "Chip", {name: linked(one) for name, one in chips.items()}),
        Slider("price", "Price of a chip", 0.5, 10, case.price_per_chip_hour or 2, "$/h", log=True),
        Choice("weights", "Weights", sizes(asked.weights)),
        Choice("cache", "Cache", sizes(asked.cache, least=1)),
    ]
    limits = memory(held, "n_chips", "Memory")
    views = [Bars({"": seconds}), told]
    return Explorer("One token", inputs, views, limits=limits, asks={}, more=("price", "weights", "cache"))


def printed_minima():
    """Table 1 of Erdil 2025 as printed: for each model the number of GPUs with the fastest token, and its seconds."""
    cells = {
        key[1:]: row.value for key, row in published("erdil2025").items() if key[0] == "Table 1" and key[2]
    }
    return {
        name: (n, 1 / cells[name, "tokens per second"]) for (name, what), n in cells.items() if what == "GPUs"
    }


def _step_of(case, n_chips, batch):
    """The introduction's own step on a number of the case's chips; None if it does not fit."""
    work, chip = case.workload, linked(case.machine.chip)
    shape = layered(case.model, work.weights, work.cache)
    if principles.memory_held(shape, batch, work.context) > n_chips * chip.memory_capacity:
        return None
    return step(shape, chip, n_chips, batch, work.context)


def chips_and_users(case):
    """Return milliseconds of a token by number of chips for one user, and by number of users on the case's machine.

    Points that do not fit are left out.
    """
    count, tables = case.machine.count, {}
    for name, cases in (
        ("chips", [(2**k, 1) for k in range(1, 8)]),
        ("users", [(count, 4**k) for k in range(5)]),
    ):
        rows = []
        for n, batch in cases:
            found = _step_of(case, n, batch)
            if found is not None:
                terms = {term: 1e3 * time for term, time in found.critical.items()}
                rows.append({"n": n if name == "chips" else batch, **terms})
        tables[name] = pd.DataFrame(rows, columns=list(rows[0]) if rows else ["n"])
    return tables


def users_at(request, speed=CHAT):
    """Describe the most users on a request's machine that each get a speed, with the model that says so.

    By this figure, by the kernel model's step, and for requests with prefill, as `decide` counts users.
    """
    case, machine = request.step(), request.machine

    def pictured(users):
        found = _step_of(case, machine.count, users)
        return found is not None and found.total * speed <= 1

    def answered(field, question, users):
        answer = ask(question.replace(**{field: users}))
        return answer.feasible and answer.speed >= speed

    enough = pictured, partial(answered, "batch", case), partial(answered, "concurrency", request)
    picture, alone, asking = (bisect(range(1, USERS), False, key=lambda n, of=of: not of(n)) for of in enough)
    return Text(
        f"At {speed} tokens/s for each, {machine} serve {_users(picture)} in this picture. The kernel model allows "
        f"{_users(alone)}, and {asking} if each also sends a prompt of {request.prompt_tokens:,} tokens and gets "
        f"{request.output_tokens}."
    )


def draw_chips_and_users(tables):
    """Draw the effect of more chips (faster until tokens wait for other boxes) and of more users (slower)."""
    doing = {
        "weights": "reading weights",
        "cache": "reading the context",
        "arithmetic": "multiplying",
        "waiting": "waiting",
    }
    axes = style.panels(7.2, 3.0, columns=2)
    titles = {"chips": "one user, more chips", "users": "one box, more users"}
    for ax, (name, table) in zip(axes, tables.items(), strict=True):
        x, bottom = range(len(table)), 0.0
        for term in (term for term in doing if term in table):
            times = table[term].fillna(0)
            ax.bar(x, times, bottom=bottom, color=style.TERMS[term], width=0.62, label=doing[term])
            bottom = bottom + times
        for at in x:
            ax.text(at, bottom[at], f"{bottom[at]:.2g}", ha="center", va="bottom", fontsize=8)
        if table.empty:
            ax.text(0.5, 0.5, "does not fit", ha="center", transform=ax.transAxes)
        elif name == "chips":
            ax.legend(fontsize=8, loc="upper left")
        ax.set_title(titles[name])
        ax.margins(y=0.12)
        ax.set_xticks(x, [f"{n}" for n in table.n])
        ax.set_xlabel(name)
        ax.grid(axis="x", visible=False)
    axes[0].set_ylabel("ms for a token")
    return axes


def draw_mechanism():
    """Draw how one token is made: every chip reads its part from memory, multiplies, and waits for the others."""
    ax = style.panels(7.2, 3.3, layout=None)

    def box(x, y, width, text, colour):
        line = {"fill": False, "edgecolor": colour, "linewidth": 1.6}
        ax.add_patch(FancyBboxPatch((x, y), width, 1, boxstyle="round,pad=0.04", **line))
        style.words(ax, x + width / 2, y + 0.5, text, ha="center", color=colour)

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
    style.canvas(ax, (-1.0, 9.1), (0, 5.4), aspect="auto")
    return ax


def frontiers(case):
    """Return the least price for every speed, by the introduction's own step and by the kernel model with its interval.

    Machines have up to twice as many chips as the case's, and all users that fit.
    """
    dollars, rows = case.price_per_chip_hour or 2, []
    for n in (2**k for k in range(case.machine.count.bit_length() + 1)):
        for batch in sorted({round(2 ** (k / 2)) for k in range(25)}):
            own = _step_of(case, n, batch)
            if own is None:
                break
            rows.append(("the simple picture", n, batch, own.total, 1.0))
            found = ask(case.replace(machine=System(case.machine.chip, n), batch=batch))
            if found.feasible:
                rows.append((KERNEL_MODEL, n, batch, found.seconds, found.high / found.seconds))
    table = pd.DataFrame(rows, columns=["who", "chips", "users", "seconds", "factor"])
    table = table.astype(dict.fromkeys(("chips", "users", "seconds", "factor"), float))
    usd = principles.cost_per_million(table.seconds, table.users, table.chips, dollars)
    table = table.assign(speed=1 / table.seconds, usd=usd).sort_values("speed", ascending=False)
    cheapest = table.groupby("who").usd.cummin()
    return table[table.usd <= cheapest]


def offers(edge):
    """Return three offers on a frontier: least price (batch), a promised speed (chat), and near the fastest (agent)."""
    edge = edge[edge.who == KERNEL_MODEL]
    fast = edge[edge.speed >= CHAT]
    found = {"batch": edge, "chat": fast, "agent": edge[edge.speed >= 0.9 * edge.speed.max()]}
    return {name: rows.loc[rows.usd.idxmin()] for name, rows in found.items() if len(rows)}


def draw_frontiers(edge):
    """Both frontiers, the kernel model's with its interval and the three offers on it."""
    if edge.empty:
        return style.nothing("it fits on none of these machines")
    ax = style.panels(6.4, 3.6)
    for (who, own), colour in zip(edge.groupby("who"), (style.INK, style.PURPLE), strict=False):
        ax.plot(own.speed, own.usd, color=colour, label=who)
        slow, fast = (
            (own.speed / own.factor, own.usd * own.factor),
            (own.speed * own.factor, own.usd / own.factor),
        )
        around = [[*one, *other[::-1]] for one, other in zip(slow, fast, strict=True)]
        ax.fill(*around, color=colour, alpha=0.15, linewidth=0)
    for name, at in offers(edge).items():
        ax.plot(at.speed, at.usd, "o", color=style.INK)
        says = f"{name}: {_usd(at.usd)}"
        ax.annotate(says, (at.speed, at.usd), (8, -10), textcoords="offset points")
    ax.set(xlim=(0, None), yscale="log", xlabel="tokens/s for each user", ylabel="$ per million tokens")
    ax.yaxis.set_major_formatter("{x:,g}")
    ax.legend(loc="upper left")
    return ax


def _users(number):
    """Return a number of users in words.

    Examples
    --------
    >>> _users(1), _users(2)
    ('1 user', '2 users')
    """
    return f"{number:g} user{'s' if number != 1 else ''}"


def _usd(dollars):
    """Format dollars, with cents below a hundred.

    Examples
    --------
    >>> _usd(99.99), _usd(100)
    ('$99.99', '$100')
    """
    return f"${dollars:.2f}" if dollars < 100 else f"${dollars:,.0f}"


# Models that are asked whether to double the chips, and what each includes or leaves out.
WHOSE = {
    "steinhardt2022": "reads weights and activations; leaves out the cache, exchanges inside a machine, and software",
    "pope2022": "adds the cache and the bytes of exchanges, in one network; leaves out their start, and software",
    "erdil2025": "adds kernels, exchanges, and memory at three quarters of its data sheet; leaves out the engine; "
    "its memory must hold the cache of one pipeline stage's sequences only",
    "liminal2025": "a limit: an ideal network without boxes; leaves out software",
    "liminal2025.eq8": "adds a time per layer, fitted to servers; knows no boxes",
    "mazurek2025": "describes mixtures of experts with latent attention only",
    "kernels": "kernels, exchanges and software, timed or fitted, with an interval",
}


def doubled(case):
    """Return the case, and twice its chips as one instance, as two copies and as two stages; each is a Question."""
    count, chip = case.machine.count, case.machine.chip
    twice = case.replace(machine=System(chip, 2 * count))
    return {
        f"{count} chip{'s' * (count > 1)}": case,
        f"{2 * count} as one": twice,
        "two copies": case.replace(batch=-(-case.workload.batch // 2)),  # half of the users each
        "two stages": twice.replace(layout=Layout(tp=count, pp=2)),
    }


@frame()
def eight_or_sixteen(case):
    """Return all models' answers to one question: milliseconds and dollars before and after doubling the chips."""
    asked = doubled(case)
    for key, beside in WHOSE.items():
        found = {name: _cell(ask(question, by=key)) for name, question in asked.items()}
        yield {"model": predictors.label(key), **found, "beside": beside}


def _cell(answer):
    """Format milliseconds, with an interval if there is one, and dollars per million tokens."""
    if not answer.feasible:
        return "does not fit" if answer.status == "infeasible" else "n/a"
    span = "" if answer.factor is None else f" ({1e3 * answer.low:.1f} to {1e3 * answer.high:.1f})"
    usd = answer.usd_per_million
    return f"{1e3 * answer.seconds:.1f} ms{span}{'' if usd is None else f', {_usd(usd)}'}"


def measured_beyond():
    """Compare measured dense models, as one instance on more chips than a box has, with the kernel model."""
    rows = measured.load()
    rows = rows[rows.core & (rows.tp > RUNNING.machine.domain) & rows.model_in_catalogue]
    rows = rows[[not load_model(name).sparse for name in rows.model]]
    found = [
        ask(row.model, f"{row.n_gpus}x {row.hardware}", batch=row.batch, context=row.context,
            weights="bf16", engine=row.engine)
        for row in rows.itertuples()
    ]  # fmt: skip
    return pd.DataFrame({
        "model": rows.model, "machine": [f"{row.n_gpus} × {row.hardware}" for row in rows.itertuples()],
        "sequences": rows.batch.astype(int), "measured, ms": [f"{1e3 * one:.1f}" for one in rows.tpot],
        "kernel model, ms": [f"{1e3 * one.seconds:.0f} ({1e3 * one.low:.0f} to {1e3 * one.high:.0f})" for one in found],
    })  # fmt: skip


def draw_answers(case, sixth):
    """Every answer to a question as one bar; the kernel model's with its interval."""
    ax = figures.stacked(grid.decomposition(case.model, case.machine, case.workload))
    if not sixth.feasible:
        return ax
    return figures.between(ax, predictors.KERNELS, sixth.low, sixth.seconds, sixth.high)


def _whole(answer):
    """Format the TPOT of a request, to follow the time of its step."""
    if answer is None or not answer.feasible:
        return ""
    ends = " to ".join(f"{1e3 * seconds:.1f}" for seconds in answer.interval)
    between = f"{1e3 * answer.seconds:.1f} ms between two tokens of the request"
    return f"; **{between}** ({ends}), bound by {answer.bottleneck}"


def in_three_lines(sixth, whole=None):
    """Describe how long a step takes, what it costs, and what would halve either; or why there is no answer.

    ``whole``: the answer to the request, shown after its step.
    """
    if not sixth.feasible:
        return Text(f"The kernel model has no answer: {sixth.summary()}.")
    asked = sixth.question
    changes = change(asked, SLO(tpot=sixth.seconds / 2))
    alone = [f"{c.resource} × {c.factor:.2g}" for c in changes.changes if c.factor and c.factor > 1]
    by = f"Only {' or '.join(alone)} would do it alone" if alone else "No single part does it"
    more = (asked.replace(batch=n) for n in range(int(asked.workload.batch), 1 << 12))
    fits = takewhile(lambda answer: answer.feasible, map(ask, more))
    users = next(
        (f"{one.batch:g} users" for one in fits if one.throughput >= 2 * sixth.throughput),
        "more users than fit",
    )
    price = "No price of the chip is known."
    if asked.price_per_chip_hour is not None:
        dollars = _usd(sixth.usd_per_million)[1:]
        hourly = f"{asked.price_per_chip_hour:.2f} per chip-hour"
        price = f"{dollars} dollars per million tokens of such steps, at {hourly}."
    middle, low, high = (f"{1e3 * seconds:.1f}" for seconds in (sixth.seconds, sixth.low, sixth.high))
    return Text(
        f"- **How long?** {middle} ms for the step ({low} to {high} ms in {100 * sixth.confidence:.0f} % of cases), "
        f"{sixth.speed:.0f} tokens/s for each user{_whole(whole)}.\n"
        f"- **At what price?** {price}\n"
        f"- **Twice as fast?** {by}.\n"
        f"- **Half the price?** With {users}."
    )
