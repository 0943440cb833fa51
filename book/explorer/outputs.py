"""What an explorer shows: curves, breakdown bars, sentences and gauges, each of ordinary calls of equations.

An output is a function of all inputs by name that returns a number, a :class:`inferlib.Breakdown`, or None
where it has no answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import field

from inferlib import validation
from inferlib.equation import frozen
from inferlib.system import Breakdown


@frozen
class Curves:
    """Outputs as curves over one of the sliders, in ``unit``; a click or tap on the picture moves it.

    ``least`` names the curve whose lowest point is marked.
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
    """Breakdowns as bars, one under the other on one scale, in ``unit``."""

    steps: Mapping
    unit: str = "ms"
    title: str = ""


@frozen
class Limit:
    """A condition: ``needed`` must not exceed ``available``, both functions of all inputs, shown in ``unit``.

    Where it does not, the page says ``says`` and what is missing, and shows no answer. A ``quiet`` one is only
    mentioned then. A ``caution`` takes no answer away: the page says it beside the answer.
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

    ``parts``: name to a function of all inputs and the unit to say it in. ``cases``: up to which value of the
    first part which text is said; the last has no end, None. ``{0}`` in it stands for the first part, ``{1}``
    for the second.
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
        """The sentence for the parts' values, by name; nothing where one has no answer."""
        told = [values[name] for name in self.parts]
        if None in told:
            return ""
        text = next(text for upper, text in self.cases if upper is None or told[0] <= upper)
        return text.format(*map(digits, told))


@frozen
class Gauge:
    """A bar of parts beside a fixed limit, such as weights and cache against memory.

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


def memory(held, chips=1, name="memory"):
    """The limit of every explorer of a model on chips: bytes held against the memory of the chips."""

    def available(chip, **at):
        return (at[chips] if isinstance(chips, str) else chips) * chip.memory_capacity

    return {name: Limit(held, available, "GB")}


def raw(name, output, arguments, values, planned=None):
    """Call one output and append its numbers to ``values``; return what each of them means."""
    return {"name": name} | placed(output(**arguments), values, (planned or {}).get("names"))


def placed(found, values, expected=None):
    """Append the numbers of an answer to ``values``; their place, and the names of a breakdown's terms.

    ``expected``: the terms on symbols; one that these numbers do not have, such as waiting alone, is zero.
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


def check(title, views, sliders):
    """Refuse views that refer to a missing input."""
    for view in views:
        if isinstance(view, Curves):
            validation.one_of("x among the sliders", view.x, sliders)


def step_of(output, arguments):
    """The breakdown that one bar shows, or the refusal in its place."""
    return output(**arguments) or Breakdown(status="infeasible", reason="nothing fits")


def numbers(view):
    """The outputs of a view that are numbers: name, function, unit."""
    outputs = getattr(view, "outputs", {})
    units = getattr(view, "units", None) or [view.unit] * len(outputs) if outputs else []
    return [(name, f, unit) for (name, f), unit in zip(outputs.items(), units, strict=True)]
