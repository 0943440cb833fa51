"""How much each resource alone would have to change to reach a target."""

import math
from collections.abc import Mapping
from functools import cache, partial
from typing import NamedTuple, Unpack

from inferlib import validation
from inferlib.equation import frozen, unchecked
from inferlib.formats import FORMATS
from inferlib.principles import cost_per_million
from inferlib.system import System
from tokenprice import calibration
from tokenprice.deployment import fewest_experts, heads
from tokenprice.formatting import Screen, format_layout, format_time, values
from tokenprice.prefill import PrefillProfile
from tokenprice.question import question_and_slo
from tokenprice.request import closed_loop, most_running, request_of, step_of_requests
from tokenprice.signatures import ChangeOptions
from tokenprice.uncertainty import step_interval

BEST = 1e9  # a factor so large that the resource takes no time
PRICE = "price of a chip"
CHIPS = "chips"
MOST_CHIPS = 512


LINKS = ("reduce", "library")
KERNELS = ("gemm", "experts", "attention", "blocks")
FIXED = ("start", "depth", "row", "select", "position", "token")  # fixed times of a kernel


class Later(Mapping):
    """A mapping of the values of another one, each converted on first use: a step needs few of many kernels."""

    def __init__(self, of, convert):
        self._of = of
        self._converted = cache(lambda name: convert(of[name]))

    def __getitem__(self, name):
        return self._converted(name)

    def __iter__(self):
        return iter(self._of)

    def __len__(self):
        return len(self._of)


class Resource(NamedTuple):
    """A resource of a step: which is better, more or less of it, and the fields of each record that state it."""

    name: str
    better: str
    chip: tuple = ()
    links: tuple = ()
    kernels: tuple = ()
    engine: tuple = ()

    def improve(self, chip, operators, engine, by):
        """Return chip, operators and engine with ``by`` times as much of it, or as little."""
        factor = by if self.better == "more" else 1 / by
        changed = dict.fromkeys(LINKS, self.links) | dict.fromkeys(KERNELS, self.kernels)
        timed = {
            kind: Later(getattr(operators, kind), partial(_times, factor=factor, names=names))
            for kind, names in changed.items()
            if names
        }
        chip, engine = _times(chip, factor, self.chip), _times(engine, factor, self.engine)
        return chip, operators.replace(**timed), engine


RESOURCES = (
    Resource("memory bandwidth", "more", chip=("memory_bandwidth",)),
    Resource("arithmetic peak", "more", chip=("flops", "peaks")),
    Resource("network latency", "less", links=("latency",), engine=("box",)),
    Resource("network bandwidth", "more", ("scale_up_bandwidth", "scale_out_bandwidth"), ("bandwidth",)),
    Resource("kernel launch", "less", kernels=FIXED),
    Resource("engine time", "less", engine=("layer", "rank", "sequence", "together", "shared")),
)


def improved(deployment, resource, by):
    """Return a deployment with one resource improved by a factor."""
    at = deployment.machine
    chip, operators, engine = resource.improve(at.chip, deployment.operators, deployment.software, by)
    return deployment.replace(machine=System(chip, at.count, at.domain), operators=operators, engine=engine)


def _times(record, factor, names):
    """Return a record with the named fields, which may be mappings of numbers, multiplied by a factor."""
    changes = {}
    for name in names:
        value = getattr(record, name, None)
        if hasattr(value, "items"):
            changes[name] = {key: one * factor for key, one in value.items()}
        elif value is not None:
            changes[name] = value * factor
    return record.replace(**changes) if changes else record


@frozen
class Change:
    """Change of one resource alone.

    ``factor``: multiplier that the resource needs (above 1 for bandwidths and peaks, below 1 for times and prices);
    None if no factor is enough or the resource does not matter. ``limit``: the time or price that is left if this
    resource is ideal.
    """

    resource: str
    factor: float | None
    limit: float
    words: str


@frozen
class Changes(Screen):
    """Result of :func:`change`: ``now`` and ``target`` in ``unit``, and a Change for each resource."""

    now: float
    target: float
    unit: str
    changes: tuple
    warnings: tuple = ()

    @property
    def reached(self):
        """Whether the target is already met."""
        return self.now <= self.target

    def __getitem__(self, resource):
        """Return the change of one resource."""
        known = {change.resource: change for change in self.changes}
        return known[validation.one_of("resource", resource, known)]

    def to_dict(self):
        """Return everything as plain numbers and texts in SI units, as ``--json`` prints it."""
        found = values(self, "now", "target", "unit", "reached")
        return found | {"changes": [vars(c) for c in self.changes], "warnings": list(self.warnings)}

    def screen(self):
        """Return the current and the target value, a line per resource, and cautions."""
        said = "reached: each may be worse by" if self.reached else "each alone would have to change"
        first = f"{_shown(self.now, self.unit)} now, {_shown(self.target, self.unit)} asked; {said}"
        lines = [("", change.resource, change.words) for change in self.changes]
        return first, lines, [f"Caution: {caution}." for caution in self.warnings]


def change(question, machine=None, /, slo=None, *, chips=None, **options: Unpack[ChangeOptions]) -> Changes:
    """Find the factor by which each resource alone would have to change for a step or a request to meet a target.

    The kernel model is asked again with one resource of chip, operators or engine improved, until the target is met;
    with a resource that takes no time at all, the limit shows what the other resources leave.

    Parameters
    ----------
    question : Question, or a model
        A decode step, or users who ask again, with prompts of the mean length. Options as for :func:`tokenprice.ask`,
        including the target.
    machine : str, Accelerator or System
    slo : SLO
        TPOT, or dollars for a million output tokens of a full machine: one of them.
    chips : Mapping, optional
        Chips of your own by name.

    Returns
    -------
    Changes
        For each resource a factor, or None with the limit that remains. If the target is already met, the factors
        say by how much each resource may be worse. Chips are tried by powers of two up to 512, in layouts of the
        same kind.

    Raises
    ------
    ValueError
        If the target is not exactly one quantity, the step has no time, or a price is needed and not known.

    Examples
    --------
    >>> found = change("Llama 3.3 70B", "4x H100", weights="fp8", batch=32, context="8k", tpot="12 ms")
    >>> found["memory bandwidth"].factor > 1, found["arithmetic peak"].factor is None
    (True, True)
    """
    q, slo = question_and_slo(question, machine, slo, options, chips)
    if q.request_rate or q.prefill_machine or q.draft_tokens is not None:
        raise ValueError(
            "change is about a step, or users who ask again, on one machine: "
            "leave out request_rate, prefill_machine and draft_tokens"
        )
    if slo.ttft or slo.percentiles or (slo.tpot is None) == (slo.usd_per_million is None):
        raise ValueError("give exactly one target: tpot, or usd_per_million")
    dollars = slo.tpot is None
    target = slo.usd_per_million if dollars else slo.tpot
    if dollars and q.price_per_chip_hour is None:
        raise ValueError(f"no price of {q.machine.chip.name} is known: give price, in dollars per chip-hour")
    running = most_running(q) if q.is_request else q.workload.batch
    now = (
        step_of_requests(q, max(running, 1))
        if q.is_request
        else q.deployment.step(running, q.workload.context)
    )
    if running < 1 or not now.feasible:
        raise ValueError(f"no time: {now.status}: {now.reason or 'no room for one user'}")
    request = q.is_request and closed_loop(q, now, running)
    deployment = q.deployment.unlimited()  # it fits in memory

    def value(other):
        if request:
            made = _request(other, q, request.decode_batch, request)
            return made.per_million["output"] if dollars else made.tpot
        seconds = other.step(running, q.workload.context).total
        return (
            cost_per_million(seconds, running, other.machine.count, q.price_per_chip_hour)
            if dollars
            else seconds
        )

    start = value(deployment)
    unit = "$" if dollars else "s"
    found = [
        _change(one, start, target, lambda by, r=one: value(improved(deployment, r, by)), unit)
        for one in RESOURCES
    ]
    if dollars:
        found.append(_price(q, target, start))
    found.append(_chips(q, target, start, value, unit))
    warnings = request.warnings if request else step_interval(q.deployment, running, q.workload.context)[1]
    return Changes(start, target, unit, tuple(found), warnings)


def _change(resource, start, target, at, unit):
    """Find the factor of one resource by bisection.

    Examples
    --------
    A time of 10 s, all of it one resource's or 4 s of it, or none:

    >>> more, less = RESOURCES[0], next(one for one in RESOURCES if one.better == "less")
    >>> found = [_change(more, 10.0, target, lambda by: 10 / by, "s") for target in (5, 10, 20)]
    >>> found.append(_change(less, 10.0, 8, lambda by: 6 + 4 / by, "s"))
    >>> [round(one.factor, 6) for one in found]
    [2.0, 1.0, 0.5, 0.5]
    >>> [_change(more, 10.0, 5, at, "s").words for at in (lambda by: 6 + 4 / by, lambda by: 10.0)]
    ['not by this alone: 6,000 ms would be left', 'does not matter here']
    """
    limit = at(BEST)
    reached = start <= target
    worst = at(1 / BEST) if reached else start
    if math.isclose(limit, start, rel_tol=1e-12) and math.isclose(worst, start, rel_tol=1e-12):
        return Change(resource.name, None, limit, "does not matter here")
    if limit > target:
        return _not_enough(resource.name, limit, unit)
    low, high = (1 / BEST, 1.0) if reached else (1.0, BEST)
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if at(middle) <= target else (middle, high)
    factor = high if resource.better == "more" else 1 / high
    return Change(resource.name, factor, limit, f"× {factor:.3g}")


def _price(q, target, start):
    """Find the factor of the chip's price; what electricity costs stays."""
    rent = q.replace(electricity=None, pue=None).price_per_chip_hour
    limit = start - start * rent / q.price_per_chip_hour
    if limit >= target:
        return _not_enough(PRICE, limit, "$")
    times = (target - limit) / (start - limit)
    return Change(PRICE, times, limit, f"× {times:.3g}, to ${times * rent:.3g} per used hour")


def _not_enough(name, limit, unit, more=""):
    return Change(name, None, limit, f"not by this alone: {_shown(limit, unit)} would be left{more}")


def _chips(q, target, start, value, unit):
    """Find the number of chips nearest to the current one that meets the target, in a layout of the same kind."""
    answers = {}
    system = q.machine
    deployment = q.deployment
    for count, other in _sizes(deployment):
        made = deployment.replace(machine=System(system.chip, count), layout=other)
        if not made.layout_error and q.max_sequences(made) >= q.workload.batch:
            answers[count] = (value(made.unlimited()), other)
    answers[system.count] = (start, deployment.layout)
    limit = min(answer for answer, _ in answers.values())
    enough = [n for n, (answer, _) in answers.items() if answer <= target]
    if not enough:
        best = min(answers, key=lambda n: answers[n][0])
        return _not_enough(CHIPS, limit, unit, f", with {best}")
    count = min(enough, key=lambda n: n if start <= target else abs(math.log(n / system.count)))
    made = format_layout(answers[count][1])
    return Change(CHIPS, count / system.count, limit, f"× {count / system.count:.3g}, to {count} ({made})")


def _sizes(deployment):
    """Yield numbers of chips with a layout of the same kind: more copies where there are copies, else wider.

    Examples
    --------
    Llama has 64 heads, DeepSeek V3 128 and 256 experts; 24 chips are three, doubled three times:

    >>> from tokenprice import Question
    >>> def sizes(*words, layout=None):
    ...     return [(n, format_layout(one)) for n, one in _sizes(Question(*words, layout=layout).deployment)]
    >>> sizes("Llama 3 70B", "8x H100")
    [(1, 'one chip'), (2, 'TP2'), (4, 'TP4'), (8, 'TP8'), (16, 'TP16'), (32, 'TP32'), (64, 'TP64')]
    >>> sizes("Llama 3 70B", "8x H100", layout="DP2 TP4")[:2]
    [(4, 'TP4'), (8, 'DP2 x TP4')]
    >>> [n for n, _ in sizes("DeepSeek V3", "24x H200", layout="DP24 EP24")]
    [3, 6, 12, 24, 48, 96, 192]
    """
    model = deployment.model
    asked = deployment.layout
    whole = int(deployment.machine.count)
    sizes = [whole // (whole & -whole)]  # its largest odd divisor, and doublings of that
    while 2 * sizes[-1] <= MOST_CHIPS:
        sizes.append(2 * sizes[-1])
    names = ("dp",) if asked.dp > 1 else ("tp",)
    if asked.ep > 1:
        names += ("ep",)
    for count in sizes:
        degrees = {name: divmod(getattr(asked, name) * count, whole) for name in names}
        if any(rest for _, rest in degrees.values()):
            continue
        other = asked.replace(**{name: times for name, (times, _) in degrees.items()})
        if all(h % other.tp == 0 for h in heads(model)) and (
            other.ep == 1 or other.ep <= fewest_experts(model)
        ):
            yield count, other


def _shown(value, unit):
    return f"${value:.3g} a million" if unit == "$" else format_time(value)


@unchecked
def speedup_if_doubled(q, batch, request=None):
    """Speedup of a token for each resource doubled: twice a bandwidth or peak, half a time.

    It is for a step of ``batch`` sequences; with ``request``, the prefills of other requests between steps count too.
    """
    deployment = q.deployment.unlimited()  # the answer has already checked that it fits in memory
    now = _token(deployment, q, batch, request)
    return {r.name: now / _token(improved(deployment, r, 2), q, batch, request) for r in RESOURCES}


def fewer_bits(chip, weights):
    """Formats of fewer bits in which checkpoints are published: of four bits, the one that the chip multiplies.

    Scales do not count: 4.5 bits of NVFP4 are not stored again as 4.2 of int4.
    """
    four = "fp4" if "fp4" in chip.peaks else "int4"
    bits = 8 * calibration.stored_bytes(weights) // 1
    return [name for name in ("fp8", four) if FORMATS[name].bits < bits]


@unchecked
def narrower(q, batch, request=None):
    """Speedup of a token with narrower weights, each asked as its own question.

    Kernels have the timed fixed times of these formats, so the gain may be smaller than the bytes suggest, or nothing.
    """
    less = [q.replace(weights=name) for name in fewer_bits(q.machine.chip, q.formats[0])]
    now, *then = (_token(one.deployment.unlimited(), one, batch, request) for one in (q, *less))
    return {one.weights: now / seconds for one, seconds in zip(less, then, strict=True)}


def _token(deployment, q, batch, request):
    """Return the TPOT of a deployment without drafts; with ``request``, including others' prefills between steps."""
    if request is None:
        return deployment.replace(draft_tokens=None).step(batch, q.workload.context).total
    return _request(deployment, q, batch, request).tpot


def _request(deployment, q, batch, request):
    """Return a request on another deployment, with all prompts of the mean length."""
    step = deployment.replace(draft_tokens=None).step(batch, q.workload.context)
    profile = PrefillProfile.of(deployment, float(request.prompt_tokens), float(request.cached_tokens))
    return request_of(
        deployment, step, profile, request.output_tokens, request.concurrency, price=request.price_per_chip_hour,
        utilisation=request.paid_hours_used, arrival_process=request.arrival_process,
    )  # fmt: skip
