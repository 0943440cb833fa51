"""Outputs of explorers: curves, breakdown bars, sentences and gauges, all from ordinary calls of equations.

An output is a function of all inputs by name that returns a number, a :class:`inferlib.Breakdown`, or None if it
has no answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import field

from book import style
from inferlib import validation
from inferlib.equation import frozen
from inferlib.system import Breakdown


@frozen
class Curves:
    """Outputs as curves over one of the sliders, in ``unit``; a click or tap on the picture moves the slider.

    ``least``: the curve whose minimum is marked.
    """

    outputs: Mapping
    x: str
    y_label: str
    unit: str = "1"
    log_y: bool = False
    title: str = ""
    least: str = ""


@frozen
class Bars:
    """Breakdowns as bars below one another, on one scale, in ``unit``."""

    steps: Mapping
    unit: str = "ms"
    title: str = ""


@frozen
class Limit:
    """A condition that ``needed`` is at most ``available``, both functions of all inputs, shown in ``unit``.

    Otherwise the page shows ``says`` and what is missing, but no answer. A ``quiet`` limit is mentioned only then. A
    ``caution`` keeps the answer and is shown beside it.
    """

    needed: Callable
    available: Callable
    unit: str
    quiet: bool = False
    says: str = "Does not fit"
    caution: bool = False


@frozen
class Sentence:
    """A sentence whose words and numbers follow the inputs.

    ``parts``: name to a function of all inputs and the unit to show. ``cases``: pairs of an upper limit of the first
    part (None for the last) and the text used up to it; ``{0}`` in it is the first part, ``{1}`` the second.
    """

    parts: Mapping
    cases: tuple
    title: str = ""

    @property
    def outputs(self):
        """The parts, without their units."""
        return {name: function for name, (function, _) in self.parts.items()}

    @property
    def units(self):
        """The units of the parts."""
        return [unit for _, unit in self.parts.values()]

    def say(self, values, digits):
        """Return the sentence for values of the parts, by name; ``""`` if one has no answer."""
        told = [values[name] for name in self.parts]
        if None in told:
            return ""
        text = next(text for upper, text in self.cases if upper is None or told[0] <= upper)
        return text.format(*map(digits, told))


@frozen
class Gauge:
    """A bar of parts beside a limit, such as weights and cache against memory.

    ``parts``: name to a function of all inputs. ``room``: the limit, a function of all inputs. ``colours``: part to a
    colour of :mod:`book.style`, if the part's name has none.
    """

    parts: Mapping
    room: Callable
    unit: str = "GB"
    title: str = "Memory"
    colours: Mapping = field(default_factory=dict)

    @property
    def outputs(self):
        """The parts, and the limit."""
        return {**self.parts, "room": self.room}

    def draw(self, values):
        """Draw the gauge with Matplotlib."""
        ax = style.panels(6.4, 1.3, layout=None)
        left, colours = 0.0, style.coloured(self.parts) | dict(self.colours)
        for name in self.parts:
            ax.barh(0, values[name], left=left, label=name, color=colours[name])
            left += values[name]
        ax.axvline(values["room"], color="0.3", linestyle="--")
        ax.set(yticks=[], xlabel=f"{self.title} ({self.unit})")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.5), ncol=4, fontsize=10)


def memory(held, chips=1, name="memory"):
    """Return the memory limit of an explorer: bytes held against the memory of its chips."""

    def available(chip, **at):
        return (at[chips] if isinstance(chips, str) else chips) * chip.memory_capacity

    return {name: Limit(held, available, "GB")}


def raw(name, output, arguments, values, planned=None):
    """Call one output and append its numbers to ``values``; return the meaning of each."""
    return {"name": name} | placed(output(**arguments), values, (planned or {}).get("names"))


def placed(found, values, expected=None):
    """Append the numbers of an answer to ``values``; return their place, and the names of a breakdown's terms.

    ``expected``: the terms on symbols; a term that these numbers lack, such as waiting on one chip, is zero.
    """
    if found is None:
        return {"na": "no answer"}
    at = len(values)
    if not isinstance(found, Breakdown):
        values.append(found)
        return {"at": at}
    if not found.feasible:
        values += [None] * len(expected or ())
        return {"na": found.reason}
    fewer = expected and set(found.terms) < set(expected)
    values += [found.terms.get(term, 0.0) for term in expected] if fewer else found.terms.values()
    stages = [[len(group) for group in stage] for stage in found.grouped]
    return {"at": at, "names": list(found.terms), "stages": stages}


def check(views, sliders):
    """Raise if a view refers to a missing input."""
    for view in views:
        if isinstance(view, Curves):
            validation.one_of("x among the sliders", view.x, sliders)


def step_of(output, arguments):
    """Return the breakdown of one bar, or an infeasible one if there is none."""
    return output(**arguments) or Breakdown(status="infeasible", reason="nothing fits")


def numbers(view):
    """Return the numeric outputs of a view: name, function, unit."""
    outputs = getattr(view, "outputs", {})
    units = getattr(view, "units", None) or [view.unit] * len(outputs) if outputs else []
    return [(name, f, unit) for (name, f), unit in zip(outputs.items(), units, strict=True)]
