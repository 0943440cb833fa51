"""What would have to change to reach a target: each resource alone, as far as it can help."""

import html
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from inferlib import checks
from inferlib.principles import cost_per_million
from inferlib.serving import constants
from inferlib.serving.decide import in_words
from inferlib.serving.decode import decode_step
from inferlib.serving.estimate import cautions
from inferlib.system import Layout, System
from inferlib.transformer import Experts

BEST = 1e9  # times as good: the resource takes no time any more
PRICE, CHIPS = "price of a chip", "chips"
MOST_CHIPS = 512


def _links(operators, **by):
    """Operators whose links are changed: each named field multiplied."""
    return {
        kind: {
            n: link.replace(**{name: getattr(link, name) * factor for name, factor in by.items()})
            for n, link in getattr(operators, kind).items()
        }
        for kind in ("reduce", "library")
    }


def _kernels(operators, factor):
    return {
        kind: {
            name: kernel.replace(start=kernel.start * factor, depth=kernel.depth * factor)
            for name, kernel in getattr(operators, kind).items()
        }
        for kind in ("gemm", "experts", "attention")
    }


def _times(record, factor, *names):
    values = {name: getattr(record, name) for name in names}
    return record.replace(**{name: value * factor for name, value in values.items() if value is not None})


def _peaks(chip, times):
    peaks = {name: peak * times for name, peak in chip.peaks.items()}
    return chip.replace(flops=chip.flops * times, peaks=peaks)


@dataclass(frozen=True)
class Resource:
    """One thing that a step needs, and a machine on which it is a number of times as good."""

    name: str
    better: str
    made: Callable


# of chip, operators, engine and how many times as good
RESOURCES = (
    Resource(
        "memory bandwidth", "more", lambda c, o, e, by: (_times(c, by, "memory_bandwidth"), o, e)
    ),
    Resource("arithmetic peak", "more", lambda c, o, e, by: (_peaks(c, by), o, e)),
    Resource(
        "network latency", "less",
        lambda c, o, e, by: (c, o.replace(**_links(o, latency=1 / by)), _times(e, 1 / by, "box")),
    ),
    Resource(
        "network bandwidth", "more",
        lambda c, o, e, by: (
            _times(c, by, "scale_up_bandwidth", "scale_out_bandwidth"), o.replace(**_links(o, bandwidth=by)), e,
        ),
    ),
    Resource("kernel launch", "less", lambda c, o, e, by: (c, o.replace(**_kernels(o, 1 / by)), e)),
    Resource(
        "engine time", "less",
        lambda c, o, e, by: (c, o, _times(e, 1 / by, "base", "layer", "rank", "sequence", "together")),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Change:
    """One resource alone.

    ``factor`` is what it must be multiplied with (bandwidths and peaks by more, times and prices by less), or
    None where it is not enough, or does not matter; ``limit`` is what is left when it is as good as can be.
    """

    resource: str
    factor: float | None
    limit: float
    words: str


@dataclass(frozen=True, eq=False)
class Changes:
    """What :func:`must_change` found: ``now`` and ``target`` in ``unit``, and a Change for each resource."""

    now: float
    target: float
    unit: str
    changes: tuple
    cautions: tuple = ()

    @property
    def reached(self):
        """Whether the target is reached already."""
        return self.now <= self.target

    def __getitem__(self, resource):
        """The change of one resource."""
        known = {change.resource: change for change in self.changes}
        return known[checks.one_of("resource", resource, known)]

    def table(self):
        """The changes as a pandas DataFrame."""
        import pandas as pd

        rows = [(c.resource, c.factor, c.limit, c.words) for c in self.changes]
        return pd.DataFrame(rows, columns=["resource", "factor", "limit", "in words"]).set_index("resource")

    def to_dict(self):
        """Everything as plain numbers and texts, SI units: what ``--json`` prints."""
        told = {"now": self.now, "target": self.target, "unit": self.unit, "reached": self.reached}
        return told | {"changes": [vars(c) for c in self.changes], "cautions": list(self.cautions)}

    def __str__(self):
        said = "reached: each may be worse by" if self.reached else "each alone would have to change"
        first = f"{_shown(self.now, self.unit)} now, {_shown(self.target, self.unit)} asked; {said}"
        wide = max(len(change.resource) for change in self.changes)
        lines = [f"  {change.resource:{wide}}  {change.words}" for change in self.changes]
        return "\n".join([first, *lines, *(f"Caution: {caution}." for caution in self.cautions)])

    __repr__ = __str__

    def _repr_html_(self):
        return f"<pre>{html.escape(str(self))}</pre>"


def must_change(
    model, system, workload, *, seconds=None, dollars_per_million=None, layout=None, engine=None, keep=None,
    price=None,
):  # fmt: skip
    """By what factor each resource alone would have to change for a decode step to reach a target.

    The equations of the sixth model are asked again with a chip, operators or an engine in which one resource is
    a number of times as good, until the target is met; with a resource that takes no time at all the limit
    shows what the others leave.

    Parameters
    ----------
    model, system, workload, layout, engine, keep
        As in :func:`inferlib.estimate`.
    seconds : float, optional
        Time of a step to reach; this or dollars.
    dollars_per_million : float, optional
        Dollars for a million output tokens of a full machine to reach.
    price : float, optional
        Dollars for one chip and hour; the catalogue's when not given.

    Returns
    -------
    Changes
        For each resource a factor, or None with the limit that is left. Where the target is reached already the
        factors say by how much each may be worse. Chips are tried in the layouts that go on in the same way, by
        powers of two up to 512.

    Raises
    ------
    ValueError
        If not exactly one target is given, the step has no time, or a price is needed and not known.
    LookupError
        If an engine or a format is unknown.

    Examples
    --------
    >>> import inferlib
    >>> box = inferlib.System(inferlib.load_chip("H100"), 4)
    >>> model, work = inferlib.load_model("Llama 3.3 70B"), inferlib.Workload(32, 8192, "fp8")
    >>> found = must_change(model, box, work, seconds=0.012)
    >>> found["memory bandwidth"].factor > 1, found["arithmetic peak"].factor is None
    (True, True)
    """
    if (seconds is None) == (dollars_per_million is None):
        raise ValueError("give one target: seconds, or dollars_per_million")
    dollars = seconds is None
    target = checks.number(
        *(("dollars_per_million", dollars_per_million) if dollars else ("seconds", seconds))
    )
    chip, engine = system.chip, constants.engine(engine)
    operators = constants.operators(chip.name)
    rate = None
    if dollars:
        rate = chip.price if price is None else price
        if rate is None:
            raise ValueError(f"no price of {chip.name} is known: give price=, in dollars an hour")
        checks.number("price", rate)

    def value(step, count):
        return cost_per_million(step.total, workload.batch, count, rate) if dollars else step.total

    def at(resource, by):
        c, o, e = resource.made(chip, operators, engine, by)
        made = System(c, system.count, system.domain)
        step = decode_step(model, made, workload, layout, engine=e, keep=keep, operators=o)
        return value(step, system.count)

    now = decode_step(model, system, workload, layout, engine=engine, keep=keep)
    if not now.feasible:
        raise ValueError(f"no time: {now.status}: {now.reason}")
    start, unit = value(now, system.count), "$" if dollars else "s"
    found = [
        _change(resource, start, target, lambda by, r=resource: at(r, by), unit) for resource in RESOURCES
    ]
    if dollars:
        times = target / start
        found.append(Change(PRICE, times, 0.0, f"× {times:.3g}, to ${times * rate:.3g} an hour"))
    found.append(_chips(model, system, workload, layout, engine, keep, target, start, value, unit))
    return Changes(start, target, unit, tuple(found), cautions(model, system, workload, layout))


def _change(resource, start, target, at, unit):
    """One resource: bisection between as it is and as good (or bad) as can be."""
    limit = at(BEST)
    reached = start <= target
    worst = at(1 / BEST) if reached else start
    if math.isclose(limit, start, rel_tol=1e-12) and math.isclose(worst, start, rel_tol=1e-12):
        return Change(resource.name, None, limit, "does not matter here")
    if limit > target:
        return Change(resource.name, None, limit, f"not by this alone: {_shown(limit, unit)} would be left")
    low, high = (1 / BEST, 1.0) if reached else (1.0, BEST)
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if at(middle) <= target else (middle, high)
    factor = high if resource.better == "more" else 1 / high
    return Change(resource.name, factor, limit, f"× {factor:.3g}")


def _chips(model, system, workload, layout, engine, keep, target, start, value, unit):
    """The number of chips nearest to today's that reaches the target in a layout that goes on in the same way."""
    answers = {}
    for count, other in _sizes(model, system, layout):
        made = System(system.chip, count)
        step = decode_step(model, made, workload, other, engine=engine, keep=keep)
        if step.feasible:
            answers[count] = (value(step, count), other)
    answers[system.count] = (start, layout)
    limit = min(answer for answer, _ in answers.values())
    enough = [n for n, (answer, _) in answers.items() if answer <= target]
    if not enough:
        best = min(answers, key=lambda n: answers[n][0])
        words = f"not by this alone: {_shown(limit, unit)} would be left, with {best}"
        return Change(CHIPS, None, limit, words)
    if start <= target:
        count = min(enough)
    else:
        count = min(enough, key=lambda n: abs(math.log(n / system.count)))
    made = in_words(answers[count][1] or Layout(tp=count))
    return Change(CHIPS, count / system.count, limit, f"× {count / system.count:.3g}, to {count} ({made})")


def _sizes(model, system, layout):
    """Other numbers of chips in a layout of the same kind: more copies where there are copies, else wider."""
    heads = [getattr(group.attention, "n_heads", 1) for group in model.layers]
    blocks = [
        group.feed_forward.n_experts for group in model.layers if isinstance(group.feed_forward, Experts)
    ]
    for power in range(-9, 10):
        times = Fraction(2) ** power
        count = system.count * times
        if power == 0 or count.denominator > 1 or not 1 <= count <= MOST_CHIPS:
            continue
        asked = layout or Layout(tp=system.count)
        names = ("dp", "ep") if asked.dp > 1 and asked.ep > 1 else ("dp",) if asked.dp > 1 else ("tp",)
        degrees = {name: getattr(asked, name) * times for name in names}
        if any(n.denominator > 1 for n in degrees.values()):
            continue
        other = asked.replace(**{name: int(n) for name, n in degrees.items()})
        if all(h % other.tp == 0 for h in heads) and (other.ep == 1 or other.ep <= min(blocks)):
            yield int(count), None if layout is None else other


def _shown(value, unit):
    return f"${value:.3g} a million" if unit == "$" else f"{1e3 * value:.3g} ms"


def doubled(model, system, workload, *, layout=None, engine=None, keep=None):
    """How many times as fast a step gets by each resource twice as good: twice a bandwidth, half a latency.

    Parameters
    ----------
    model, system, workload, layout, engine, keep
        As in :func:`inferlib.estimate`.

    Returns
    -------
    dict
        Name of the resource to time before over time after.

    Raises
    ------
    ValueError
        If the step has no time.
    """
    engine, operators = constants.engine(engine), constants.operators(system.chip.name)
    asked = {"layout": layout, "keep": keep}
    now = decode_step(model, system, workload, engine=engine, **asked).total
    gains = {}
    for resource in RESOURCES:
        c, o, e = resource.made(system.chip, operators, engine, 2)
        made = System(c, system.count, system.domain)
        gains[resource.name] = now / decode_step(model, made, workload, engine=e, operators=o, **asked).total
    return gains
