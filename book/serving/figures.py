"""Pictures of the sixth model and of the price of a request: data first, picture second."""

import html

import numpy as np

from book.serving import energy as measured_energy, fit, tables
from inferlib import style

COLOURS = (
    style.BLUE,
    style.ORANGE,
    style.GREEN,
    style.RED,
    style.PURPLE,
    style.SKY,
    style.YELLOW,
    style.INK,
    style.FAINT,
)


def _axes(ax, **size):
    import matplotlib.pyplot as plt

    return ax if ax is not None else plt.subplots(**size)[1]


def waterfall(ax=None):
    """From the bound to a measured step: what each kind of time adds, on the row of :func:`tables.case`."""
    ax = _axes(ax, figsize=(6.8, 3.6))
    table = tables.steps_to_measured()
    left = 0.0
    for y, (name, ms) in enumerate(zip(table["what"], table["ms"], strict=True)):
        whole = name in ("the bound", "predicted", "measured")
        start = 0.0 if whole else left
        colour = style.FAINT if name == "the bound" else style.INK if name == "measured" else style.BLUE
        ax.barh(y, ms, left=start, height=0.6, color=colour if whole else style.ORANGE)
        ax.text(start + max(ms, 0), y, f" {ms:.2f} ms", va="center", fontsize=9)
        left = ms if whole else left + ms
    ax.set_yticks(range(len(table)), table["what"])
    ax.invert_yaxis()
    ax.set(xlabel="milliseconds per token", xlim=(0, 1.15 * table["ms"].max()))
    ax.grid(axis="y", visible=False)
    return ax


def ladder(ax=None):
    """Mean error on the dense rows as the terms are added one after the other."""
    ax = _axes(ax, figsize=(6.8, 2.8))
    table = tables.ladder()
    y = range(len(table))
    ax.barh(y, table["error, %"], height=0.6, color=style.BLUE)
    for place, value in zip(y, table["error, %"], strict=True):
        ax.text(value, place, f" {value:.0f} %", va="center", fontsize=9)
    ax.set_yticks(y, table["with"])
    ax.invert_yaxis()
    ax.set(xlabel="mean |error| on the dense rows, %", xlim=(0, 1.12 * table["error, %"].max()))
    ax.grid(axis="y", visible=False)
    return ax


def copies(ax=None):
    """Attention copied, experts spread over 48 chips: measured and predicted over the batch."""
    ax = _axes(ax, figsize=(6.0, 3.2))
    table = tables.spread_experts()
    for i, (name, own) in enumerate(table.groupby("system", sort=False)):
        colour = COLOURS[i]
        ax.plot(own["sequences a chip"], own["measured, ms"], "o", color=colour, label=f"{name}, measured")
        ax.plot(own["sequences a chip"], own["predicted, ms"], "-", color=colour, label="predicted")
    ax.set_xscale("log", base=2)
    ticks = sorted(set(table["sequences a chip"]))
    ax.set_xticks(ticks, [str(t) for t in ticks])
    ax.set(xlabel="sequences a chip", ylabel="milliseconds a step", ylim=(0, None))
    ax.legend(fontsize=9)
    return ax


class Scatter:
    """Predicted against measured as a picture whose points say, and link to, where they come from."""

    SIZE, ROOM = 460, 46

    def __init__(self, points, label, colours):
        self.points, self.label, self.colours = points, label, colours
        self.low, self.high = 1e3 * points.measured.min() / 1.3, 1e3 * points.measured.max() * 1.3

    def _at(self, ms):
        part = np.log(np.clip(ms, self.low, self.high) / self.low) / np.log(self.high / self.low)
        return part * (self.SIZE - self.ROOM)

    def _text(self, x, y, text, anchor="middle", turn=""):
        return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{turn}>{html.escape(text)}</text>'

    def _axes(self):
        size, room, edge = self.SIZE, self.ROOM, self.SIZE - self.ROOM
        yield f'<path d="M{room} {edge}L{size} 0" stroke="currentColor" fill="none"/>'
        for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500):
            if self.low < tick < self.high:
                yield self._text(room + self._at(tick), edge + 15, f"{tick}")
                yield self._text(room - 5, edge - self._at(tick) + 4, f"{tick}", "end")
        yield self._text((size + room) / 2, size - 8, "measured, ms")
        yield self._text(12, edge / 2, "predicted, ms", turn=f' transform="rotate(-90 12 {edge / 2})"')

    def _point(self, row):
        x = self.ROOM + self._at(1e3 * row.measured)
        y = self.SIZE - self.ROOM - self._at(1e3 * row.predicted)
        told = (
            f"{row.publisher}: {row.model}, {row.n_gpus} x {row.hardware}, {row.batch:.0f} sequences: "
            f"{1e3 * row.measured:.3g} ms, predicted {1e3 * row.predicted:.3g}"
        )
        colour = self.colours[row.publisher]
        return (
            f'<a href="{html.escape(row.url)}" tabindex="-1"><circle cx="{x:.0f}" cy="{y:.0f}" r="2.6" '
            f'fill="{colour}" fill-opacity=".65"><title>{html.escape(told)}</title></circle></a>'
        )

    def _repr_html_(self):
        inside = "".join([*self._axes(), *(self._point(row) for row in self.points.itertuples())])
        key = " ".join(
            f'<span style="white-space:nowrap"><span style="color:{colour}">●</span> {html.escape(who)}</span>'
            for who, colour in self.colours.items()
        )
        return (
            f'<svg class="scatter" role="group" viewBox="0 0 {self.SIZE} {self.SIZE}" '
            f'style="max-width:34rem;width:100%" aria-label="{html.escape(self.label)}" '
            f'font-size="11" fill="currentColor">{inside}</svg><p>{key}</p>'
        )

    def __repr__(self):
        return f"{len(self.points)} rows of {self.points.publisher.nunique()} publishers"


def every_row(most=60):
    """All rows left out by publisher, predicted against measured; at most so many of one publisher and model."""
    table = fit.data()
    points = table.assign(predicted=np.exp(fit.left_out("publisher")) * table.measured)
    points = points.sort_values(["publisher", "model", "hardware", "measured"])
    rank = points.groupby(["publisher", "model"]).cumcount()
    total = points.groupby(["publisher", "model"]).measured.transform("size")
    points = points[(rank % np.ceil(total / most).clip(lower=1)) == 0]
    who = sorted(points.publisher.unique())
    label = "Predicted against measured milliseconds of decode steps; most points lie near the diagonal."
    return Scatter(points, label, dict(zip(who, COLOURS, strict=False)))


# --- The price ------------------------------------------------------------------------------------------------


def timeline(request, ax=None):
    """One request in time: waiting for a turn, its prompt, and the first of its tokens."""
    ax = _axes(ax, figsize=(6.8, 1.9))
    read, token = 1e3 * request.prompt.total, 1e3 * request.token
    wait = 1e3 * request.first_token - read
    ax.barh(0, wait, color=style.FAINT, height=0.5, label="in the queue, starting")
    ax.barh(0, read, left=wait, color=style.BLUE, height=0.5, label="reading the prompt")
    for i in range(20):
        ax.barh(
            0,
            0.8 * token,
            left=wait + read + i * token,
            color=style.ORANGE,
            height=0.5,
            label="tokens" if i == 0 else None,
        )
    ax.set_yticks([])
    ax.set_xlabel("milliseconds since the question")
    ax.legend(ncol=3, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, 1.35))
    return ax


def over_users(ax=None):
    """Dollars for a million tokens, and what a user waits, over the users that share a machine."""
    ax = _axes(ax, figsize=(6.4, 3.4))
    table = tables.over_users()
    for name, colour in (("output", style.ORANGE), ("input", style.BLUE), ("cached", style.GREEN)):
        ax.plot(table.users, table[name], "o-", color=colour, label=name)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(table.users, [str(n) for n in table.users])
    ax.set(xlabel="users at a time", ylabel="dollars for a million tokens")
    ax.legend(fontsize=9)
    return ax


def others(ax=None):
    """Time between tokens of dense serving rows, with and without the prompts of others."""
    ax = _axes(ax, figsize=(5.6, 4.2))
    table = fit.data()
    own = table[(table.set == "serving") & ~table.experts & (table.copies == 1)]
    whole = fit.predict(own, fit.fit_all())
    ax.plot(1e3 * own.measured, 1e3 * (whole - own.others), ".", color=style.FAINT, label="the step alone")
    ax.plot(1e3 * own.measured, 1e3 * whole, ".", color=style.BLUE, label="with the prompts of others")
    ends = [3, 170]
    ax.plot(ends, ends, color=style.INK, linewidth=1)
    ax.set(xscale="log", yscale="log", xlabel="measured, ms a token", ylabel="predicted, ms a token")
    ax.legend(fontsize=9)
    return ax


def first_token(ax=None):
    """Times to the first token, predicted with their model left out, against measured."""
    ax = _axes(ax, figsize=(5.6, 4.2))
    table, logs = fit.first_rows(), fit.first_left_out("model")
    for colour, (name, own) in zip(COLOURS, table.groupby("model"), strict=False):
        ax.plot(1e3 * own.ttft, 1e3 * own.ttft * np.exp(logs[own.index]), ".", color=colour, label=name)
    ends = np.array([20, 5000])
    ax.plot(ends, ends, color=style.INK, linewidth=1)
    ax.set(xscale="log", yscale="log", xlabel="measured, ms", ylabel="predicted, ms")
    ax.legend(fontsize=8)
    return ax


def drafts(ax=None):
    """Speed with drafted tokens over speed without: published, and computed from published acceptance."""
    ax = _axes(ax, figsize=(5.8, 3.0))
    table = tables.drafts()
    ax.plot(table.drafted, table.measured, "o", color=style.INK, label="measured")
    ax.plot(table.drafted, table.predicted, "-", color=style.BLUE, label="computed")
    ax.plot(table.drafted, table.length, ":", color=style.FAINT, label="tokens a step")
    ax.set(xlabel="tokens drafted", ylabel="times as fast", xticks=list(table.drafted), ylim=(1, None))
    ax.legend(fontsize=9)
    return ax


def joules(ax=None):
    """Joules a token, computed with the model left out, against measured."""
    ax = _axes(ax, figsize=(5.6, 4.0))
    table = measured_energy.rows()
    made = table.joules_per_token * (1 + measured_energy.left_out())
    for colour, (name, own) in zip(COLOURS, table.groupby("model"), strict=False):
        ax.plot(own.joules_per_token, made[own.index], ".", color=colour, label=name)
    ends = [table.joules_per_token.min(), table.joules_per_token.max()]
    ax.plot(ends, ends, color=style.INK, linewidth=1)
    ax.set(xscale="log", yscale="log", xlabel="measured joules a token", ylabel="computed")
    ax.legend(fontsize=8)
    return ax
