"""Problems whose parameters differ by student, with answers computed on demand."""

import string
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from random import Random

from book import stored
from book.teaching.problems import quantities
from inferlib import load_chip, load_model, validation
from inferlib.units import factor

# How far an answer may be off: in the head, with pencil and paper, in a few cells, in a small project.
TOLERANCE = {"in the head": 0.15, "one line": 0.05, "short": 0.03, "study": 0.02}
LEVELS = tuple(TOLERANCE)
BANK: dict = {}  # name -> Problem

# Topics of each session, and the values from which their numbers are drawn.
COURSE = stored.toml("teaching/problems/course.toml")

# kilo and kibi are too near to be told apart
_BYTES = {"GB": "10^9", "GiB": "2^30"}
_LOADED = {"model": load_model, "chip": load_chip}


@dataclass(frozen=True)
class Key:
    """The answer of a problem in SI units, its derivation, and the results of usual mistakes.

    ``worked`` may omit the answer at its end. ``mistakes``: hint to the value (in SI) that the mistake gives.
    """

    value: float
    worked: str
    mistakes: Mapping = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """The right option with its reason, and the wrong ones with the reasons against each."""

    right: str
    worked: str
    wrong: Mapping = field(default_factory=dict)


class Found(float):
    """A parameter that the student has computed before; texts name its place and never print it."""

    def __new__(cls, value, place):
        """Make a parameter from its value in SI and its place, such as ``"chain-5.2"``."""
        found = super().__new__(cls, value)
        found.place = place
        return found


@dataclass(frozen=True)
class Problem:
    """One problem of the bank, and the same with a student's parameters.

    ``level``: one of :data:`LEVELS`; it sets the tolerance. ``asks``: the question, with formulas in braces;
    ``{seconds:ms}`` is in milliseconds. ``solution``: how to find the answer. ``unit``: unit of the answer, None for a
    choice of four options. ``choices``: parameter to its possible values. ``where``: condition for parameters that make
    sense together. ``numbers``: name to formula; ``value`` is the answer. ``hints``: hint to the formula of what the
    mistake gives. ``right``, ``wrong``: the right option, and each wrong one with the reason against it. ``stated``:
    whether to state the catalogue's facts on model and chip. ``exact``: whether the answer must be met exactly, such as
    a largest number that fits. ``place``: page and anchor that teach it. ``session``: the session of the course that it
    reviews. ``entry``: topic and number, such as ``"memory-3"``. ``given``: the student's parameters. ``within``: its
    place in a chain. ``also``: text that the chain adds to the question.
    """

    topic: str
    level: str
    asks: str
    solution: str
    unit: str | None = None
    choices: Mapping = field(default_factory=dict)
    where: str = "True"
    numbers: Mapping = field(default_factory=dict)
    hints: Mapping = field(default_factory=dict)
    right: str = ""
    wrong: Mapping = field(default_factory=dict)
    stated: bool = True
    exact: bool = False
    place: str = ""
    session: int | None = None
    entry: str = ""
    given: Mapping = field(default_factory=dict)
    within: str = ""
    also: str = ""

    @property
    def name(self):
        """Name of the problem for the student."""
        return self.within or self.entry

    @property
    def near(self):
        """Tolerance of the answer as a fraction; if the answer is exact, it only decides on hints."""
        return TOLERANCE[self.level]

    def asked(self, student, draw=None):
        """Return the problem with one student's parameters, which are equal for the same name on any machine.

        Only parameters are used with which every usual mistake gives another answer. ``draw``: how a parameter is
        drawn: from the choices, or by :func:`made_up`.
        """
        random = Random(f"{student}/{self.name}")
        for _ in range(1000):
            found = replace(self, given=drawn(self.choices, random, draw))
            if found.sensible:
                return found
        raise LookupError(f"no parameters of {self.name} make sense for {student!r}")

    @property
    def sensible(self):
        """Whether the parameters make sense together, and no usual mistake gives the answer."""
        if self.options:
            return True
        return evaluated(self.where, self.given) and all(
            abs(wrong / self.key.value - 1) > self.near for wrong in self.mistakes.values()
        )

    @cached_property
    def known(self):
        """The parameters and the numbers that follow from them, by name."""
        return computed(self.numbers, self.given)

    @cached_property
    def key(self):
        """The answer, computed."""
        told, worked = partial(with_numbers, **self.known), with_sums(self.solution, **self.known)
        if not self.unit:
            return Choice(told(self.right), worked, {told(one): told(why) for one, why in self.wrong.items()})
        mistakes = {told(hint): evaluated(formula, self.known) for hint, formula in self.hints.items()}
        return Key(self.known["value"], worked, mistakes)

    @cached_property
    def options(self):
        """The options of a choice in an order that is equal for all students; empty for a number."""
        if self.unit:
            return ()
        options = [self.key.right, *self.key.wrong]
        return tuple(Random(self.text).sample(options, len(options)))

    @cached_property
    def mistakes(self):
        """Hint to the value, in SI, that the mistake gives."""
        unit = self.unit
        found = {hint: value for hint, value in self.key.mistakes.items() if value > 0}
        other = {"GB": "GiB", "GiB": "GB"}.get(unit)
        if other and not any(other in hint for hint in found):
            slip = f"you seem to have counted in {other}: a {unit} is {_BYTES[unit]} bytes"
            found[slip] = self.key.value * factor(unit) / factor(other)
        return found

    @property
    def text(self):
        """The question in words."""
        return with_numbers(self.asks, **self.known) + self.also

    @property
    def facts(self):
        """What the catalogue states of the model and the chip, one line each."""
        if not self.stated:
            return []
        told = {"model": _of_model, "chip": _of_chip}
        return [told[name](value) for name, value in self.given.items() if name in told]

    @property
    def worked(self):
        """The solution as text; a calculation without a full stop ends in the answer."""
        worked = self.key.worked
        if not worked.endswith("."):
            worked = f"{worked} = {in_sums(self.key.value, self.unit)}."
        return f"{self.answer}. {worked}" if self.level == "in the head" else worked

    @property
    def answer(self):
        """The answer with its unit, as text."""
        if self.options:
            return self.key.right
        return say(self.key.value, self.unit)


def enter(problem):
    """Put a problem into the bank, as the next one of its topic."""
    validation.one_of("level", problem.level, TOLERANCE)
    name = f"{problem.topic}-{1 + sum(p.topic == problem.topic for p in BANK.values())}"
    BANK[name] = replace(problem, entry=name)


def say(value, unit, digits=3):
    """Format a number in a unit with three digits, a count with all digits.

    Examples
    --------
    >>> say(0.0123456, "ms"), say(1234.5, "1"), say(2e12, "TB/s"), say(12.5, "usd")
    ('12.3 ms', '1,234', '2 TB/s', '$12.5')
    >>> say(999, "s"), say(1000, "s")
    ('999 s', '1,000 s')
    """
    number = value / factor(unit)
    large = abs(number) >= 1000
    written = f"{number:,.0f}" if large else f"{number:.{digits}g}"
    if unit == "usd":
        return f"${written}"
    return written if unit == "1" else f"{written} {shown(unit)}"


# A printed sum must add up with the digits shown: one digit more than an answer has.
in_sums = partial(say, digits=4)


def shown(unit):
    """Return a unit as it is written in texts."""
    return {"us": "µs", "1/s": "tokens/s", "usd": "dollars", "1": ""}.get(unit, unit)


TOPICS = (
    "memory", "cache", "arithmetic", "experts", "network", "collectives", "pipeline", "prompts", "cost",
)  # fmt: skip


def problems(student, topic=None, draw=None):
    """Return the bank, or one topic of it, with a student's parameters, in the book's order, easy problems first.

    ``topic``: one of :data:`TOPICS`. ``draw``: as for :meth:`Problem.asked`.
    """
    if topic is not None:
        validation.one_of("topic", topic, TOPICS)
    names = sorted(BANK, key=lambda name: (TOPICS.index(BANK[name].topic), LEVELS.index(BANK[name].level)))
    return [BANK[name].asked(student, draw) for name in names if topic in (None, BANK[name].topic)]


def evaluated(formula, known):
    """Return the value of a formula of known parameters and numbers, and of the functions of ``quantities.py``."""
    return eval(formula, vars(quantities), known)


def computed(formulas, given=()):
    """Return given numbers, and those of formulas, each of which may use those before it, by name."""
    known = dict(given)
    for name, formula in formulas.items():
        known[name] = evaluated(formula, known)
    return known


class _Formatter(string.Formatter):
    """Fills formulas in braces: names of records, numbers with commas of thousands, and numbers in a unit.

    ``say``: how to write a number in a unit. ``hidden``: whether to name the place of a number that the student found.
    """

    def __init__(self, say, hidden):
        self.say, self.hidden = say, hidden

    def get_field(self, field_name, args, kwargs):
        return evaluated(field_name, kwargs), field_name

    def format_field(self, value, spec):
        if isinstance(value, Found) and self.hidden:
            return f"the time found in {value.place}"
        if spec:
            return format(value, spec) if spec[0] in ",.g" else self.say(value, spec)
        if isinstance(value, (int, float)):
            return f"{value:,.10g}"
        return getattr(value, "name", None) or str(value)


# Fill a text, a solution: ``{seconds:ms}`` is a number in a unit, ``{times:.2f}`` one with so many digits.
with_numbers, with_sums = _Formatter(say, hidden=True).format, _Formatter(in_sums, hidden=False).format


def listed(name, values, random):
    """Draw one of the values; load it if it is a model or a chip."""
    value = random.choice(values)
    return _LOADED[name](value) if name in _LOADED else value


# Parameters for which a wide range makes no sense, such as half a chip or a grid that is not square.
_FEW = ("count", "stages", "bits", "weights")


def made_up(name, values, random):
    """Draw a value between the smallest and the largest of a list; a model or a chip gets invented numbers."""
    value = listed(name, values, random)
    if name in _FEW:
        return value
    if name == "model":
        return _made_up_model(value, random)
    if name == "chip":
        return _made_up_chip(value, random)
    found = float(f"{random.uniform(min(values), max(values)):.3g}")
    return int(found) if isinstance(value, int) else found


def _made_up_model(model, random):
    scale, heads = random.uniform(0.7, 1.4), {}
    if hasattr(model.layers[-1].attention, "n_kv_heads"):
        heads = {"n_kv_heads": random.choice((4, 8)), "head_dim": random.choice((96, 112, 128, 144, 160))}

    def group(own):
        block, count = own.feed_forward, own.count
        sizes = {"d_ff": 256, "d_expert": 128, "n_experts": 8}
        near = {size: step * round(getattr(block, size) * scale / step)
                for size, step in sizes.items() if hasattr(block, size)}  # fmt: skip
        count = count if count < 5 else round(count * random.uniform(0.75, 1.25))
        return own.replace(
            count=count, attention=own.attention.replace(**heads), feed_forward=block.replace(**near)
        )

    layers = tuple(map(group, model.layers))
    return model.replace(layers=layers, name=f"Model {_label(random)}", sources={}, formats={})


def _made_up_chip(chip, random):
    def near(value):
        return float(f"{value * random.uniform(0.75, 1.3):.3g}")

    names = ("memory_bandwidth", "memory_capacity", "scale_up_bandwidth", "scale_out_bandwidth", "price")
    flops = near(chip.flops)
    peaks = {name: float(f"{peak * flops / chip.flops:.4g}") for name, peak in chip.peaks.items()}
    own = {name: near(getattr(chip, name)) for name in names}
    return chip.replace(flops=flops, peaks=peaks, name=f"Chip {_label(random)}", sources={}, **own)


def _label(random):
    return f"{random.choice(string.ascii_uppercase)}{random.randrange(10, 100)}"


def drawn(choices, random, draw=None):
    """One value of each choice."""
    return {name: (draw or listed)(name, values, random) for name, values in choices.items()}


def _of_model(model):
    group = model.layers[-1]
    attention, block = group.attention, group.feed_forward
    told = [f"{model.n_params / 1e9:.5g} billion parameters"]  # five digits, because they decide what fits
    if model.sparse:
        told[0] += f", {model.n_active / 1e9:.1f} billion of them active"
    table = model.vocab_size * model.d_model / 1e9
    told.append(
        f"{table:.2f} billion in the input embedding, "
        + ("which is also the head and so read" if model.tied else "of which a step reads a few rows")
    )
    told.append(f"{model.n_layers} layers of width {model.d_model:,}")
    if hasattr(attention, "n_kv_heads"):
        heads = f"{attention.n_heads} query heads and {attention.n_kv_heads} key/value heads"
        told.append(f"{heads} of width {attention.head_dim}")
    else:
        told.append(
            f"{attention.n_heads} query heads, a latent of {attention.kv_rank} and a rotary key of {attention.rope_dim}"
        )
    if model.sparse:
        told.append(f"{block.n_active} of {block.n_experts} routed experts for each token")
    return f"{model.name}: {'; '.join(told)}."


def _of_chip(chip):
    peaks = ", ".join(
        f"{in_sums(peak, 'TFLOP/s')} in {name}" for name, peak in chip.peaks.items() if name in _TOLD
    )
    told = [
        in_sums(chip.memory_capacity, "GB"),
        in_sums(chip.memory_bandwidth, "TB/s"),
        f"dense peaks {peaks}",
        f"{in_sums(chip.scale_up_bandwidth, 'GB/s')} one way to the chips of its box",
        f"${chip.price:g} an hour",
    ]
    return f"{chip.name}: {'; '.join(told)}."


_TOLD = ("bf16", "fp8", "fp4")
