"""Drawn mechanisms: memory that fills, a dot under a roof, a frontier.

What moves in them are outputs like any others. A picture of sizes stays where a limit does not hold: that is
what it is there to show.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from itertools import product

import matplotlib.pyplot as plt

from book import style
from book.explorer.inputs import with_unit
from inferlib.equation import frozen


@frozen
class Axis:
    """A logarithmic axis whose ends no input moves, in ``unit``."""

    label: str
    unit: str
    low: float
    high: float


class _Plotted:
    """What pictures on two logarithmic axes share."""

    def told(self):
        """Names of what stands below the picture."""
        return [self.x.label, self.y.label]

    @property
    def units(self):
        """The unit of every output: they take turns."""
        return [self.x.unit, self.y.unit] * (len(self.outputs) // 2)

    def framed(self):
        """Axes whose ends no input moves."""
        _, ax = plt.subplots()
        ax.set(xscale="log", yscale="log", xlabel=with_unit(self.x), ylabel=with_unit(self.y))
        ax.set(xlim=(self.x.low, self.x.high), ylim=(self.y.low, self.y.high))
        return ax


@frozen
class Gauge:
    """Parts side by side against the room there is, which keeps its place while the parts grow.

    ``parts``: name to a function of all inputs. ``room``: of all inputs: what there is room for. ``colours``:
    part to a colour of :mod:`book.style`, where the part's own name has none.
    """

    parts: Mapping
    room: Callable
    unit: str = "GB"
    title: str = "Memory"
    colours: Mapping = field(default_factory=dict)

    @property
    def outputs(self):
        """The parts, and the room."""
        return {**self.parts, "room": self.room}

    @property
    def sizes(self):
        """All of them."""
        return tuple(self.outputs)

    def told(self):
        """Names of what stands below the picture."""
        return list(self.outputs)

    def draw(self, values, **arguments):
        """The still picture, by Matplotlib."""
        _, ax = plt.subplots(figsize=(6.4, 1.3))
        left, colours = 0.0, style.coloured(self.parts) | dict(self.colours)
        for name in self.parts:
            ax.barh(0, values[name], left=left, label=name, color=colours[name])
            left += values[name]
        ax.axvline(values["room"], color="0.3", linestyle="--")
        ax.set(yticks=[], xlabel=f"{self.title} ({self.unit})")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.5), ncol=4, fontsize=10)


@frozen
class Plane(_Plotted):
    """Lines on two fixed logarithmic axes, and the dot where the inputs put the answer.

    ``lines``: name to corners ``(x, y)``, each a function of all inputs. ``dot``: the same; it is not shown
    where a limit does not hold.
    """

    lines: Mapping
    dot: tuple
    x: Axis
    y: Axis
    title: str = ""

    @property
    def outputs(self):
        """Both numbers of the dot, then those of the corners."""
        corners = {
            f"{name} {k} {side}": f
            for name, points in self.lines.items()
            for k, point in enumerate(points)
            for side, f in zip("xy", point, strict=True)
        }
        return dict(zip((self.x.label, self.y.label), self.dot, strict=True)) | corners

    @property
    def sizes(self):
        """The corners: they are no answer."""
        return tuple(self.outputs)[2:]

    def draw(self, values, **arguments):
        """The still picture, by Matplotlib."""
        ax = self.framed()
        for name, points in self.lines.items():
            found = [[values[f"{name} {k} {side}"] for side in "xy"] for k in range(len(points))]
            ax.plot(*zip(*found, strict=True), label=name)
        if values[self.x.label] is not None:
            ax.plot(values[self.x.label], values[self.y.label], "o")


@frozen
class Frontier(_Plotted):
    """For every speed the least price, in dollars, over all places of some sliders; and the dot of the inputs.

    The page sweeps those sliders itself, so the frontier follows all others. The dot leaves a trail.

    ``dot``: speed and price, each a function of all inputs. ``over``: slider to the values that it is moved
    to. ``marks``: name to a speed, marked where the least price for it lies; None marks the least of all.
    """

    dot: tuple
    x: Axis
    y: Axis
    over: Mapping
    marks: Mapping = field(default_factory=dict)
    title: str = ""

    @property
    def outputs(self):
        """Both numbers of the dot."""
        return dict(zip(self.told(), self.dot, strict=True))

    def edge(self, shown, **values):
        """The frontier of an explorer that has this view: pairs, the highest ``x`` first."""
        places = product(*self.over.values())
        found = (shown.evaluate(**values | dict(zip(self.over, place, strict=True))) for place in places)
        points = ([answer[name] for name in self.told()] for answer in found)
        edge = []
        for x, y in sorted((p for p in points if None not in p), reverse=True):
            if not edge or y < edge[-1][1]:
                edge.append((x, y))
        return edge

    def draw_of(self, shown, values):
        """The still picture, by Matplotlib."""
        ax = self.framed()
        ax.plot(*zip(*self.edge(shown, **values), strict=True))
        x, y = (shown.evaluate(**values)[name] for name in self.told())
        if x is not None:
            ax.plot(x, y, "o")
