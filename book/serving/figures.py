"""Pictures of the kernel model and of the price of a request: data first, picture second."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from book import style
from book.serving import energy as measured_energy, fit
from tokenprice import ask, simulate
from tokenprice.deployment import Deployment

# Kind of time of each part of a step, for its colour.
_PARTS = {
    "the bound": style.BLUE, "shares that kernels reach": style.BLUE, "starts of kernels": style.FAINT,
    "the engine": style.FAINT, "all-reduces": style.RED, "prompts of the other users": style.ORANGE,
}  # fmt: skip


def waterfall(table):
    """Draw the way from the bound to a measured step: the time that each kind adds."""
    ax = style.panels(6.8, 3.6, layout=None)
    for y, (name, ms) in enumerate(zip(table["what"], table["ms"], strict=True)):
        if name in ("the bound", "predicted", "measured"):
            left = 0.0
        fill = style.INK if name == "measured" else _PARTS.get(name, "none")
        ax.barh(y, ms, left=left, height=0.6, color=fill, edgecolor=style.INK, linewidth=0.6)
        style.words(ax, left + max(ms, 0), y, f" {ms:.2f} ms")
        left += ms
    style.name_rows(ax, table["what"])
    ax.set(xlabel="milliseconds per token", xlim=(0, 1.15 * table["ms"].max()))
    return ax


def one_layer(table, system):
    """Draw one layer as a profiler does: a row per chip, kernels one after another; arithmetic is a strip."""
    rows = range(min(system.count, 8))
    ax = style.panels(7.2, 1.6 + 0.24 * len(rows), layout=None)
    if "no answer" in table:
        return style.nothing(table["no answer"][0], ax)
    for line in table.itertuples():
        kind, engine = style.KIND_OF.get(line.term, "software"), line.term == "engine"
        label = kind if kind not in ax.get_legend_handles_labels()[1] else None
        low, height = (0.28, 0.24) if kind == "multiplying" else (0, 0.8)
        ax.barh(
            [y + low for y in rows], line.takes, left=line.start, height=height, label=label, linewidth=0.8,
            color="none" if engine else style.TERMS.get(line.term, style.FAINT),
            edgecolor=style.FAINT if engine else "none",
        )  # fmt: skip
    levels, letter = [], 0.0115 * (table.start + table.takes).max()
    for kernel, own in table.groupby("kernel", sort=False):
        start, end = own.start.min(), (own.start + own.takes).max()
        name, at = f"{kernel.split(' ', 1)[1]}\n{end - start:.0f} μs", (start + end) / 2
        wide = letter * (max(map(len, name.split("\n"))) + 1)
        level = next((k for k, right in enumerate(levels) if right < at - wide / 2), len(levels))
        levels[level : level + 1] = [at + wide / 2]
        line = {"arrowstyle": "-", "color": style.FAINT, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0}
        place = at, -0.7 - 1.5 * level
        ax.annotate(name, (at, -0.4), place, ha="center", va="bottom", fontsize=8, arrowprops=line)
    style.name_rows(ax, [f"GPU {y}" for y in rows], fontsize=8)
    ax.set(ylim=(len(rows) - 0.4, -0.6), xlabel="microseconds")
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.35 / (0.3 + 0.2 * len(rows))), ncol=3, fontsize=8)
    return ax


def ladder(table):
    """Draw mean errors of ever more complete models: bars for models left out, dots for fitted rows; last the noise."""
    ax = style.panels(6.8, 3.4, layout=None)
    y = np.arange(len(table))
    for kind, colour, by in (("dense", style.PURPLE, -0.18), ("experts", style.YELLOW, 0.18)):
        out = table[f"{kind}, left out"]
        ax.barh(y + by, out, height=0.32, color=colour, alpha=0.6, label=kind)
        ax.plot(table[f"{kind}, shown"], y + by, "o", color=style.INK, markersize=4)
        for place, value in zip((y + by)[out.notna()], out.dropna(), strict=True):
            style.words(ax, value + 1, place, f" {value:.0f} %", fontsize=8)
    style.name_rows(ax, table["with"])
    ax.set(xlabel="mean |error|, %", xlim=(0, 1.15 * table.filter(like="left out").max(axis=None)))
    ax.legend(loc="lower right")
    return ax


def copies(table):
    """Attention copied, experts spread over 48 chips: measured and predicted over the batch."""
    ax = style.panels(6.0, 3.2, layout=None)
    systems = table.groupby("system", sort=False)
    for (name, own), colour, mark, line in zip(systems, style.LINES, "os", ("-", "--"), strict=False):
        ax.plot(own["sequences a chip"], own["measured, ms"], mark, color=colour, label=f"{name}, measured")
        ax.plot(own["sequences a chip"], own["predicted, ms"], line, color=colour, label=f"{name}, predicted")
    ax.set_xscale("log", base=2)
    ticks = sorted(set(table["sequences a chip"]))
    ax.set_xticks(ticks, [str(t) for t in ticks])
    ax.set(xlabel="sequences per chip", ylabel="milliseconds per step", ylim=(0, None))
    ax.legend()
    return ax


def over_context(models, system, workload):
    """Time of a token, and how many users fit, over the context; pairs of models share a colour."""
    lengths = 1000 * 2.0 ** np.arange(0, 9)
    figure, axes = plt.subplots(1, 2, figsize=(8.0, 3.4))
    for i, (name, model) in enumerate(models.items()):
        served = Deployment.of(model, system, workload)
        # drawn for any batch, whether or not its users would fit
        steps = [served.unlimited().step(workload.batch, n).total for n in lengths]
        line = {"color": style.LINES[i // 2], "linestyle": ("--", "-")[i % 2]}
        axes[0].plot(lengths, 1e3 * np.array(steps), label=name, **line)
        axes[1].plot(lengths, [served.max_sequences(n) for n in lengths], **line)
    axes[0].set(ylabel=f"milliseconds per token, {workload.batch:g} users", ylim=(0, None))
    axes[1].set(ylabel="users that fit", yscale="log")
    for ax in axes:
        ax.set_xscale("log", base=2)
        ax.set_xticks(lengths[::2], [f"{n / 1000:.0f}K" for n in lengths[::2]])
        ax.set_xlabel("tokens of context")
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    return axes


# --- The price ------------------------------------------------------------------------------------------------


def schedule(answer, pieces=8, seconds=2.0):
    """Draw two seconds of a machine: prefill that stops decoding, that runs along, and on other machines.

    Under each lane are the tokens of one user.
    """
    if not answer.feasible:
        return style.nothing(answer.summary())
    request = answer.request
    read, step, every = request.prompt.total, request.step.total, request.machine_seconds
    ways = {"whole": (1, 0), "in pieces": (pieces, step), "on another machine": (0, 0)}
    axes = style.panels(6.8, 3.6, rows=3, layout=None, sharex=True)
    for ax, (name, (parts, along)) in zip(axes, ways.items(), strict=True):
        now, due, left, tokens, blocks = 0.0, every / 3, 0, [], []
        while now < seconds:
            if parts and not left and due <= now:
                due, left = due + every, parts
            long = read / parts + along if left else step
            blocks.append((now, long, style.ORANGE if left else style.BLUE))
            if along or not left:
                tokens.append(now + long)
            now, left = now + long, max(left - 1, 0)
        for colour in (style.BLUE, style.ORANGE):
            _blocks(ax, [(start, long) for start, long, own in blocks if own == colour], 0, colour)
        if not parts:
            away = [(every * (k + 1 / 3), read) for k in range(int(seconds / every) + 1)]
            _blocks(ax, away, 1, style.ORANGE)
        strokes = np.tile([-0.4, -0.2, np.nan], len(tokens))  # one path, because hundreds of marks are heavy
        ax.plot(np.repeat(tokens, 3), strokes, color=style.INK, linewidth=1)
        lanes = {0.4: "box", -0.3: "a user's tokens"} | ({} if parts else {1.4: "another box"})
        ax.set_yticks(list(lanes), list(lanes.values()))
        ax.set_title(name, loc="left", fontsize=9)
        ax.set(xlim=(0, seconds), ylim=(-0.6, 0.9 if parts else 1.9))
        ax.grid(visible=False)
    axes[-1].set_xlabel("seconds")
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in (style.BLUE, style.ORANGE)]
    place = {"ncol": 2, "fontsize": 8, "loc": "lower right", "bbox_to_anchor": (1, 1)}
    axes[0].legend(handles, ["a step of all users", "a prompt"], **place)
    axes[0].figure.tight_layout()
    return axes


def _blocks(ax, blocks, low, colour):
    """Blocks of time as one path: hundreds of patches would make the page heavy."""
    sides = [[(t, low), (t + d, low), (t + d, low + 0.8), (t, low + 0.8), (t, low)] for t, d in blocks]
    if sides:
        path = Path.make_compound_path(*(Path(corners, closed=True) for corners in sides))
        ax.add_patch(PathPatch(path, facecolor=colour, edgecolor="white", linewidth=0.4))


def fleet(questions, loads=(0.2, 0.4, 0.6, 0.75), requests=2000):
    """Time to the first token on one machine over its load, a panel for each of the named questions."""
    size = 2.8 * len(questions), 3.4
    figure, axes = plt.subplots(1, len(questions), figsize=size, sharey=True, layout="constrained")
    for ax, (name, question) in zip(axes, questions.items(), strict=True):
        _over_load(ax, question, loads, requests)
        ax.set(title=name, xlabel="load", yscale="log", xlim=(0, 1))
    axes[0].set_ylabel("seconds to the first token")
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="outside upper center", ncols=3)
    return figure


def _over_load(ax, question, loads, requests):
    """Draw the fixed point, its slow end, and a simulation; no curve where there is no steady state."""
    rare = ask(question.replace(request_rate=1e-6, replicas=1))
    if not rare.feasible:
        return style.nothing(rare.summary(), ax)
    one = rare.fleet
    at, most = one.server, 1 / one.factor  # the load at which the slow machine is full
    grid = np.arange(0.01, min(most, 0.975), 0.01)
    for by, name, line in ((1, "formula", "-"), (one.factor, "formula, slow end of the interval", "--")):
        states = [at.slower(by).steady(load * at.capacity) for load in grid]
        first = [state.ttft if state else np.nan for state in states]
        ax.plot(grid, first, line, color=style.PURPLE, label=name)
    found = {}
    for load in loads:
        arriving = question.replace(request_rate=load * at.capacity, replicas=1)
        if load < most and ask(arriving).feasible:
            found[load] = simulate(arriving, requests=requests, seed=1)
    means = [run.mean("first") for run in found.values()]
    ax.plot([*found], means, "o", color=style.INK, label="simulated, mean")
    for share, mark in ((90, "^"), (99, "v")):
        late = [run.percentile("first", share) for run in found.values()]
        ax.plot([*found], late, mark, color=style.YELLOW, label=f"simulated, p{share}")
    ax.axvline(most, color=style.RED, linewidth=1)


NONE = "it fits on none of these, or has no price"  # in place of a curve


def reading(answers):
    """Dollars per million prompt tokens over the prefill time of a prompt, a point for each number of chips."""
    read = {n: one.request for n, one in answers.items() if one.feasible and one.question.price_per_chip_hour}
    at = [(1e3 * r.prompt.total, r.per_million["input"]) for r in read.values()]
    if not at:
        return style.nothing(NONE)
    ax = style.panels(5.0, 3.0, layout=None)
    ax.plot(*zip(*at, strict=True), "o-", color=style.ORANGE)
    for n, point in zip(read, at, strict=True):
        ax.annotate(f"{n} chip{'s' * (n > 1)}", point, xytext=(4, 4), textcoords="offset points")
    ax.margins(0.15)
    ax.set(
        xlabel="ms to read a prompt", ylabel="dollars for a million tokens", xlim=(0, None), ylim=(0, None)
    )
    return ax


def over_users(table):
    """Dollars for a million tokens over the users that share a machine."""
    if table.empty:
        return style.nothing(NONE)
    ax = style.panels(6.4, 3.4, layout=None)
    for name, colour in (("output", style.BLUE), ("input", style.ORANGE), ("cached", style.GREEN)):
        if name in table:  # a prompt without cached tokens has no price of a cache hit
            ax.plot(table.users, table[name], "o-", color=colour, label=name)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(table.users, [str(n) for n in table.users])
    ax.set(xlabel="users at a time", ylabel="dollars for a million tokens")
    ax.legend()
    return ax


def first_token(answer):
    """Draw measured against predicted TTFT, with each model left out of the fit; a line is one answer."""
    ax = style.panels(5.6, 4.2, layout=None)
    table, logs = fit.first_rows(), fit.first_left_out("model")
    table = table.assign(x=1e3 * table.ttft, y=1e3 * table.ttft * np.exp(logs))
    if answer.feasible:
        low, high = answer.request.ttft_interval
        ax.axhspan(1e3 * low, 1e3 * high, color=style.FAINT, alpha=0.2)
        ax.axhline(1e3 * answer.request.ttft, color=style.INK, linestyle="--", label="the request above")
    return _against(ax, table, "measured, ms", "predicted, ms")


def _against(ax, table, xlabel, ylabel):
    """Computed over measured, coloured by model, on equal logarithmic axes with a line where both are the same."""
    groups = sorted(table.groupby("model"), key=lambda group: -len(group[1]))  # the largest is drawn below
    for (colour, mark), (name, own) in zip(style.DEGREES.values(), groups, strict=False):
        label = name.rpartition("/")[2]  # the name without the publisher
        ax.plot(own.x, own.y, mark, color=colour, label=label, markersize=3)
    ends = 0.8 * table[["x", "y"]].min().min(), 1.25 * table[["x", "y"]].max().max()
    ax.plot(ends, ends, color=style.INK, linewidth=1)
    ax.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel, xlim=ends, ylim=ends, aspect="equal")
    ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.02, 1))
    return ax


def drafts(table):
    """Speed with drafted tokens over speed without: published, and computed from published acceptance."""
    ax = style.panels(5.8, 3.0, layout=None)
    ax.plot(table.drafted, table.measured, "o", color=style.INK, label="measured")
    ax.plot(table.drafted, table.predicted, "-", color=style.PURPLE, label="computed")
    ax.plot(table.drafted, table.length, ":", color=style.FAINT, label="tokens per step")
    ax.set(xlabel="tokens drafted", ylabel="times as fast", xticks=list(table.drafted), ylim=(1, None))
    ax.legend()
    return ax


def joules():
    """Joules per token, computed with the model left out, against measured."""
    ax = style.panels(5.6, 4.0, layout=None)
    table, measured = measured_energy.rows(), measured_energy.rows().joules_per_token
    table = table.assign(x=measured, y=measured * (1 + measured_energy.left_out()))
    return _against(ax, table, "measured joules per token", "computed joules per token")
