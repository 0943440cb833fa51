"""Problems whose parameters change by student, and whose answers are computed when they are asked for."""

import string
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from inspect import signature
from pathlib import Path
from random import Random

from inferlib import load_chip, load_model, validation
from inferlib.units import factor

# How far an answer may be off: in the head, with pencil and paper, in a few cells, in a small project.
TOLERANCE = {"in the head": 0.15, "one line": 0.05, "short": 0.03, "study": 0.02}
LEVELS = tuple(TOLERANCE)
BANK: dict = {}  # name -> Problem

# What is asked in which session, and what its numbers are drawn from.
COURSE = tomllib.loads((Path(__file__).parent / "course.toml").read_text("utf-8"))

# Kilo and kibi are too near to be told apart.
_BYTES = {"GB": "10^9", "GiB": "2^30"}
_LOADED = {"model": load_model, "chip": load_chip}


@dataclass(frozen=True)
class Key:
    """What a problem asks for: the answer in SI, how one gets there, and what usual mistakes lead to.

    ``worked`` may leave out the answer at its end. ``mistakes``: hint to the value (in SI) of who makes that mistake.
    """

    value: float
    worked: str
    mistakes: Mapping = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """The right option, why it is right, and the wrong ones with what speaks against each."""

    right: str
    worked: str
    wrong: Mapping = field(default_factory=dict)


class Found(float):
    """A parameter that the student has found before, which a text names by its place and never prints."""

    def __new__(cls, value, place):
        """The value, in SI, and the place, such as ``"chain-5.2"``."""
        found = super().__new__(cls, value)
        found.place = place
        return found


@dataclass(frozen=True)
class Problem:
    """One problem of the bank, and as it is asked of one student.

    ``entry``: topic and number, such as ``"memory-3"``. ``level``: one of :data:`LEVELS`; it sets the tolerance.
    ``unit``: unit of the answer, None where one of four options is asked for. ``wording``: with the names of
    parameters in braces; ``{seconds:ms}`` is in milliseconds. ``choices``: name of a parameter to the values it
    may have. ``solve``: the parameters to a :class:`Key` or a :class:`Choice`. ``where``: parameters that make sense
    together. ``told``: what else the text says of the parameters, by name. ``stated``: whether to state what the
    catalogue knows of the model and the chip. ``exact``: whether a whole number is asked for that must be met,
    such as the most that fits. ``place``: page and anchor that teach it. ``session``: the session of the course
    that it looks back at. ``given``: the parameters of the student. ``within``: its place in a chain. ``also``: what
    the chain adds to the question.
    """

    entry: str
    topic: str
    level: str
    unit: str | None
    wording: str
    choices: Mapping
    solve: Callable
    where: Callable | None = None
    told: Callable | None = None
    stated: bool = True
    exact: bool = False
    place: str = ""
    session: int | None = None
    given: Mapping = field(default_factory=dict)
    within: str = ""
    also: str = ""

    @property
    def name(self):
        """What the student calls it."""
        return self.within or self.entry

    @property
    def near(self):
        """What counts as the same answer, as a fraction; where the answer is exact it decides on hints only."""
        return TOLERANCE[self.level]

    def asked(self, student, draw=None):
        """The problem with the parameters of one student: the same ones for the same name, on any machine.

        Of the choices only those are taken in which every usual mistake leads to another answer.
        ``draw``: how a parameter is drawn; of the choices, or :func:`made_up`.
        """
        random = Random(f"{student}/{self.name}")
        for _ in range(1000):
            found = replace(self, given=drawn(self.choices, random, draw))
            if found.sensible:
                return found
        raise LookupError(f"no parameters of {self.name} make sense for {student!r}")

    @property
    def sensible(self):
        """Whether the parameters make sense together, and no usual mistake leads to the answer."""
        if self.options:
            return True
        together = self.where is None or _call(self.where, self.given)
        return together and all(
            abs(wrong / self.key.value - 1) > self.near for wrong in self.mistakes.values()
        )

    @cached_property
    def key(self):
        """The answer, computed."""
        return self.solve(**self.given)

    @cached_property
    def options(self):
        """The options of a choice in an order of their own, the same for everybody; of a number none."""
        if self.unit:
            return ()
        options = [self.key.right, *self.key.wrong]
        return tuple(Random(self.text).sample(options, len(options)))

    @cached_property
    def mistakes(self):
        """Hint to the value, in SI, of who makes that mistake."""
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
        also = {} if self.told is None else _call(self.told, self.given)
        return _Formatter().format(self.wording, **self.given, **also) + self.also

    @property
    def facts(self):
        """What the catalogue states of the model and the chip, one line each."""
        if not self.stated:
            return []
        told = {"model": _of_model, "chip": _of_chip}
        return [told[name](value) for name, value in self.given.items() if name in told]

    @property
    def worked(self):
        """The solution in words; a sum without a full stop ends in the answer."""
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


def problem(topic, level, unit, **given):
    """Enter a function from parameters to a key into the bank; its docstring asks.

    ``given``: what a :class:`Problem` may say of itself, by name; all else are choices, where they are not the
    usual ones.
    """
    validation.one_of("level", level, TOLERANCE)
    own = {f.name: given.pop(f.name) for f in fields(Problem) if f.name in given}

    def made(function):
        choices = {
            name: given[name] if name in given else COURSE["draws"][name]
            for name in signature(function).parameters
        }
        if not set(given) <= set(choices):
            raise TypeError(f"{function.__name__} of {topic} does not take what is drawn: {sorted(given)}")
        text = " ".join(function.__doc__.split())
        enter(Problem("", topic, level, unit, text, choices, function, **own))
        return function

    return made


def enter(problem):
    """Put a problem into the bank, as the next one of its topic."""
    name = f"{problem.topic}-{1 + sum(p.topic == problem.topic for p in BANK.values())}"
    BANK[name] = replace(problem, entry=name)


def say(value, unit, digits=3):
    """A number in a unit, with three digits; of a count all of them.

    Examples
    --------
    >>> say(0.0123456, "ms"), say(1234.5, "1"), say(2e12, "TB/s"), say(12.5, "usd")
    ('12.3 ms', '1,234', '2 TB/s', '$12.5')
    """
    number = value / factor(unit)
    large = abs(number) >= 1000
    written = f"{number:,.0f}" if large else f"{number:.{digits}g}"
    if unit == "usd":
        return f"${written}"
    return written if unit == "1" else f"{written} {shown(unit)}"


# A sum in print must add up with the digits that it shows: one digit more than an answer has.
in_sums = partial(say, digits=4)


def shown(unit):
    """A unit as one writes it in a text."""
    return {"us": "µs", "1/s": "tokens/s", "usd": "dollars", "1": ""}.get(unit, unit)


TOPICS = (
    "memory", "cache", "arithmetic", "experts", "network", "collectives", "pipeline", "prompts", "cost",
)  # fmt: skip


def problems(student, topic=None, draw=None):
    """The bank, or one topic of it, as it is asked of a student: topics in the order of the book, easy ones first.

    ``topic``: one of :data:`TOPICS`. ``draw``: as :meth:`Problem.asked` takes it.
    """
    if topic is not None:
        validation.one_of("topic", topic, TOPICS)
    names = sorted(BANK, key=lambda name: (TOPICS.index(BANK[name].topic), LEVELS.index(BANK[name].level)))
    return [BANK[name].asked(student, draw) for name in names if topic in (None, BANK[name].topic)]


class _Formatter(string.Formatter):
    """Names of records, numbers with the commas of thousands, and numbers in a unit."""

    def format_field(self, value, spec):
        if isinstance(value, Found):
            return f"the time found in {value.place}"
        if spec:
            return say(value, spec)
        if isinstance(value, (int, float)):
            return f"{value:,.10g}"
        return getattr(value, "name", None) or str(value)


def listed(name, values, random):
    """One of the values; a model or a chip is loaded."""
    value = random.choice(values)
    return _LOADED[name](value) if name in _LOADED else value


# What a wide range would make no sense of, such as half a chip or a grid that is no square.
_FEW = ("count", "stages", "bits", "weights")


def made_up(name, values, random):
    """A value that no list holds: between the least and the largest; a model or a chip with numbers of its own."""
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


def _call(function, given):
    """A function of some of the parameters."""
    return function(**{name: given[name] for name in signature(function).parameters if name in given})


def _of_model(model):
    group = model.layers[-1]
    attention, block = group.attention, group.feed_forward
    told = [f"{model.n_params / 1e9:.5g} billion parameters"]  # so many decide what fits
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
