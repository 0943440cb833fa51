"""What is asked and what is promised: the fields, their words and their help, declared once.

The options of the terminal, the fields of the page, the keys of a link, ``to_dict`` and the documentation are made
from the fields of these two records.
"""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from math import inf
from typing import Any

from inferlib import checks
from inferlib.equation import Fixed, Record, frozen
from inferlib.system import Layout, System, Workload
from inferlib.transformer import Transformer
from tokenprice import launch, mix, words

STEP = ("batch", "context")
REQUEST = (
    "prompt", "output", "trace", "cached", "users", "max_num_seqs", "rounds", "equal", "hold", "arrivals", "machines",
)  # fmt: skip
# What decide finds by itself.
CHOSEN = (
    "machine", "batch", "context", "users", "max_num_seqs", "layout", "reader", "readers", "chunk", "price", "drafted",
    "length",
)  # fmt: skip

# Options of a question by what they are about; what stands nowhere is asked in Python only.
GROUPS = {
    "machine": ("machine", "layout", "engine", "memory", "reader", "readers", "chunk"),
    "load": (
        "batch", "context", "prompt", "output", "trace", "cached", "users", "max_num_seqs", "rounds", "equal",
        "arrivals", "machines", "drafted", "length",
    ),
    "formats": ("weights", "cache", "keep"),
    "price": ("price", "electricity", "pue", "utilisation"),
    "promise": ("token", "first_token", "dollars", "request", "token_p99", "first_token_p99"),
}  # fmt: skip


def group_of(name):
    """What an option is about; None where it is asked in Python only."""
    return next((group for group, names in GROUPS.items() if name in names), None)


def word(read, help, unit="", example=""):
    """A field that is read by ``read(name, value)``; None where it is not given."""
    about = {"read": read, "help": help, "unit": unit, "example": example}
    return dataclasses.field(default=None, metadata=about)


@frozen
class Words(Record):
    """Base of the records whose fields are read when they are made; typed values pass as they are."""

    def __post_init__(self):
        for f in fields(self):
            value = getattr(self, f.name)
            if value is not None:
                value = f.metadata["read"](f.name, value)
                object.__setattr__(self, f.name, Fixed(value) if type(value) is dict else value)

    @classmethod
    def names(cls) -> list[str]:
        """The names of all fields."""
        return list(cls.__dataclass_fields__)

    def words(self) -> dict[str, Any]:
        """The fields that were given, as the words that read back to the same record."""
        given = {name: getattr(self, name) for name in self.names()}
        said = {name: _word(name, value) for name, value in given.items() if value is not None}
        return {name: word for name, word in said.items() if word != ""}  # found in a file that is named

    def __repr__(self):
        given = ", ".join(f"{name}={value!r}" for name, value in self.words().items())
        return f"{type(self).__name__}({given})"


def _word(name, value):
    if isinstance(value, Transformer):
        return value.name
    if isinstance(value, System):
        return f"{value.count}x {value.chip.name}"
    if isinstance(value, Layout):
        return words.in_words(value)
    if isinstance(value, mix.Lengths):
        return value.said
    if isinstance(value, mix.Trace):
        return value.path
    if isinstance(value, Mapping):
        return {part: _word("weights", format) for part, format in value.items()}
    return 8 * value if name in ("weights", "cache") and not isinstance(value, str) else value  # bits


@frozen
class Question(Words):
    """A model, a machine and the work: a decode step of a batch, or requests of a number of users.

    Every field takes words, such as ``Question("Llama 3.3 70B", "4x H100", weights="FP8", batch=32, context="8k")``.
    Formats that are not given are those of the model's checkpoint.

    Raises
    ------
    ValueError, LookupError, TypeError
        Naming the field, its value and what is allowed.
    """

    # fmt: off
    model: Transformer = word(words.model, "a name, or the path of a config.json", example="Llama 3.3 70B")
    machine: System | None = word(words.machine, "how many of which chip", example="4x H100")
    batch: float | None = word(words.count, "sequences decoded together; 1", "sequences", "32")
    context: float | None = word(words.tokens, "tokens behind each sequence; 4,096", "tokens", "8k")
    prompt: float | None = word(
        words.tokens, "tokens of a question, instead of a context; 2k ± 50% or quantiles, 200-1k-8k, where they differ",
        "tokens", "2k")
    output: float | None = word(words.tokens, "tokens of an answer, in the same words", "tokens", "500")
    trace: mix.Trace | None = word(
        words.trace, "file of requests, instead of prompt and output: JSON lines or CSV of arrival, prompt, output and "
        "what prompts share, or with the names of Mooncake's and Azure's traces", example="requests.jsonl")
    cached: float | None = word(words.cached, "tokens of the prompt in the cache, or a share; none", "tokens", "95%")
    users: float | None = word(
        words.count, "users at a time, each of whom asks again when answered; 1. With arrivals: places in a machine",
        "users", "32")
    max_num_seqs: int | None = word(
        words.whole, "sequences that run at once in a copy, at most; as many as memory holds", "sequences", "256")
    rounds: float | None = word(words.count, "times each user asks, if all begin at once", "rounds", "10")
    equal: bool | None = word(words.truth, "whether all answers are equally long", example="yes")
    hold: float | None = word(
        words.count, "steps for which a scheduler holds prompts back, to read several; none", "steps", "20")
    arrivals: float | None = word(
        words.rate, "requests a second, or 150/min, that come by themselves, to a fleet", "1/s", "2.5")
    machines: int | None = word(words.whole, "machines that share the arrivals; as few as can", "1", "4")
    layout: Layout | None = word(words.layout, "how it lies on the chips; one instance on all", example="DP8 EP8")
    weights: str | float | None = word(words.format, "number format of the weights; the checkpoint's", example="fp8")
    cache: str | float | None = word(words.format, "number format of the cache; the checkpoint's", example="fp8")
    keep: Mapping | None = word(words.keep, "parts in another format", example="attention=bf16")
    engine: str | None = word(words.engine, "class of engine, or software; serving", example="vllm")
    memory: float | None = word(words.share, "part of the memory that the engine takes; 90%", "1", "95%")
    drafted: int | None = word(words.whole, "tokens drafted in each step", "tokens", "3")
    length: float | str | None = word(
        words.length, "tokens that a step with drafts yields, or the curve of a task, such as 'DeepSeek R1, MTP'",
        "tokens", "2.6")
    reader: System | None = word(words.machine, "a machine of its own that reads prompts", example="2x H100")
    readers: int | None = word(words.whole, "how many such machines; as many as it takes", "1", "4")
    chunk: float | None = word(words.count, "tokens in which a prompt is read at a time; all at once", "tokens", "2k")
    price: float | None = word(words.dollars, "dollars for one chip and hour; the catalogue's", "usd/h", "$2.50")
    highest: float | None = word(words.dollars, "the same at the most expensive seller", "usd/h", "$4")
    electricity: float | None = word(words.dollars, "dollars for a kilowatt-hour, on top; none", "usd", "$0.10")
    pue: float | None = word(words.positive, "power of the site over that of its chips; 1", "1", "1.3")
    utilisation: float | None = word(words.share, "part of the paid hours that is used; 1", "1", "40%")
    # fmt: on

    def __post_init__(self):
        if self.model is None:
            raise ValueError("model is missing: a name such as 'Llama 3.3 70B', or the path of a config.json")
        if isinstance(self.price, str) and re.fullmatch(r"[^-]+-[^-]+", self.price):
            for name, one in zip(("price", "highest"), self.price.split("-"), strict=True):
                object.__setattr__(self, name, one)
        super().__post_init__()
        if self.trace is not None:
            self._record()
        if self.pue is not None and self.electricity is None:
            raise ValueError("pue belongs to electricity: give dollars for a kilowatt-hour")
        step, request = (
            [name for name in names if getattr(self, name) is not None] for names in (STEP, REQUEST)
        )
        if step and request:
            raise ValueError(
                f"{step[0]} belongs to a step and {request[0]} to a request: give {' and '.join(STEP)}, "
                f"or {', '.join(REQUEST)}"
            )
        if request and (self.prompt is None or self.output is None):
            raise ValueError("a request needs both prompt and output, in tokens")
        if not request and (self.reader is not None or self.chunk is not None):
            raise ValueError("reader and chunk belong to a request: give prompt and output")
        if self.readers is not None and (self.reader is None or self.arrivals is not None):
            raise ValueError("readers belongs to a reader, and to users who ask again: give reader and users")
        if self.arrivals is None and self.machines is not None:
            raise ValueError("machines belongs to arrivals: say how many requests arrive per second")
        loop = next((name for name in ("rounds", "hold") if getattr(self, name)), None)
        if self.arrivals is not None and (loop or self.utilisation):
            why = f"{loop} belongs to users who ask again" if loop else "utilisation follows from arrivals"
            raise ValueError(f"{why}: leave one of them out")
        if isinstance(self.cached, str):
            part, prompts = words.share("cached", self.cached), mix.points(self.prompt)
            mixed = len(prompts) > 1 and mix.Lengths([part * one for one in prompts], self.cached)
            object.__setattr__(self, "cached", mixed or self.prompt * part)
        if self.cached is not None and min(mix.points(self.cached)) >= min(mix.points(self.prompt)):
            least = f"{'the shortest ' * isinstance(self.prompt, mix.Lengths)}prompt, {min(mix.points(self.prompt)):g}"
            raise ValueError(f"cached is {self.cached:g}, but must be below {least}")
        if (self.drafted is None) != (self.length is None):
            raise ValueError("drafts need both: drafted, and length, the tokens that a step yields")
        if self.weights is None and "formats" in self.model.notes:
            raise ValueError(
                f"weights are not given, and how the checkpoint of {self.model.name or 'this model'} stores them is "
                f"not understood: {self.model.notes['formats']}"
            )

    def _record(self):
        """Prompts and answers of the trace, and their arrivals where nobody says how fast it is played."""
        for name, found in (("prompt", self.trace.prompt), ("output", self.trace.output)):
            if getattr(self, name) not in (None, found):
                raise ValueError(f"{name} stands in the trace: leave one of them out")
            object.__setattr__(self, name, found)
        if self.trace.blocks and getattr(self.cached, "said", self.cached):
            raise ValueError("cached follows from what prompts of the trace share: leave it out")
        object.__setattr__(self, "arrivals", self.arrivals or self.trace.rate)

    @property
    def is_request(self) -> bool:
        """Whether prompts and answers are asked about, not a single step."""
        return self.prompt is not None

    @cached_property
    def formats(self) -> tuple:
        """Formats of weights and cache, and of the parts that differ: as given, else as the checkpoint states."""
        own, kept, own_cache = words.published(self.model)
        kept = dict(self.keep or {}) if self.weights is not None else kept | dict(self.keep or {})
        return self.weights or own, self.cache or own_cache, kept or None

    @cached_property
    def workload(self) -> Workload:
        """Batch, mean context and formats of its steps."""
        weights, cache, _ = self.formats
        if self.prompt is not None and self.output is not None:
            users = 1 if self.arrivals else self.users or 1
            return Workload(users, mix.seen(self), weights, cache)
        return Workload(self.batch or 1, 4096 if self.context is None else self.context, weights, cache)

    @property
    def pieces(self) -> float:
        """Steps in which a prompt is read, in the mean."""
        return mix.pieces(self.prompt, self.cached or 0, self.chunk) if self.chunk else 1

    @property
    def longest(self) -> float:
        """Tokens of the longest sequence."""
        if self.trace is not None:
            return max(map(sum, zip(self.trace.prompt.points, self.trace.output.points, strict=True)))
        return max(mix.points(self.prompt)) + max(mix.points(self.output))

    def hourly(self, chip, price=None) -> float | None:
        """Dollars for one chip and hour, with the electricity of its rated power; None where no price is known.

        ``price`` of a question is that of its machine's chip; a reader of another kind has its own.
        """
        mine = self.machine is None or chip.name == self.machine.chip.name
        price = price or (self.price if mine and self.price is not None else chip.price)
        if price is None or self.electricity is None:
            return price
        if chip.power is None:
            raise ValueError(f"electricity has a price, but the power of {chip.name} is not known")
        return price + chip.power / 1000 * (self.pue or 1) * self.electricity

    @property
    def rate(self) -> float | None:
        """Dollars for one chip and hour that is used: the price over the utilisation; None where none is known."""
        price = self.price if self.machine is None else self.hourly(self.machine.chip)
        return None if price is None else price / (self.utilisation or 1)

    def spread(self, chip) -> float:
        """How many times as much the most expensive seller asks."""
        highest, price = (self.hourly(chip, dollars) for dollars in (self.highest, None))
        return highest / price if self.highest and highest and price else 1.0

    @property
    def how(self) -> dict:
        """Layout, engine, its share of the memory, and parts in another format, as equations take them."""
        own = {"layout": self.layout, "engine": self.engine, "share": self.memory}
        return own | {"keep": self.formats[2]}

    @property
    def lies(self) -> Layout:
        """How the model lies on the chips: one instance on all where nothing else is said."""
        return self.layout or Layout(tp=self.needs_machine().count)

    def needs_machine(self) -> System:
        """The machine; ValueError where none was given."""
        if self.machine is None:
            raise ValueError("machine is missing: say how many of which chip, such as '4x H100'")
        return self.machine


@frozen
class Promise(Words):
    """What is promised to every user; what is None may be anything."""

    token: float | None = word(words.seconds, "time between two tokens, at most", "s", "50 tokens/s")
    first_token: float | None = word(words.seconds, "time to the first token, at most", "s", "500 ms")
    dollars: float | None = word(words.dollars, "dollars for a million output tokens, at most", "usd", "$2")
    request: float | None = word(words.seconds, "time of a whole answer, at most", "s", "30 s")
    token_p99: float | None = word(
        words.seconds, "the same as token for 99 of 100 requests, by simulation", "s", "20 tokens/s"
    )
    first_token_p99: float | None = word(
        words.seconds, "the same as first_token for 99 of 100 requests, by simulation", "s", "2 s"
    )

    @property
    def percentiles(self) -> dict:
        """What is promised for 99 of 100 requests: ``"first"`` or ``"token"`` to seconds."""
        found = {"first": self.first_token_p99, "token": self.token_p99}
        return {what: seconds for what, seconds in found.items() if seconds is not None}

    def limit(self, name) -> float:
        """The most that a time may be in the mean: no more than what it may be for 99 of 100 requests."""
        given = (getattr(self, name), getattr(self, f"{name}_p99"))
        return min((seconds for seconds in given if seconds is not None), default=inf)


def listed(indent):
    """The fields of a question by what they are about, as documentation lists them."""
    groups = {}
    for f in fields(Question)[1:]:
        about = f.metadata["help"] + (f" ({f.metadata['example']})" if f.metadata["example"] else "")
        groups.setdefault(group_of(f.name) or "in Python only", []).append(f"{f.name}: {about}")
    lines = [
        line for group, named in groups.items() for line in (f"{group}:", *(f"  {one}" for one in named))
    ]
    return f"\n{indent}".join(lines)


def given(options):
    """Options with those of a launch command, of flags and of other tools' names as fields; and sentences on them."""
    return launch.given(options, {*Question.names(), *Promise.names(), "prices"})


def read(kind, options, chips=None):
    """A record of words, with chips and a price list of one's own, and an error that suggests near names of fields."""
    options, _ = given(options)
    prices = options.get("prices")
    options = {name: value for name, value in options.items() if name != "prices"}
    for name in options:
        if name not in kind.names():
            checks.one_of("option", name, [*Question.names(), *Promise.names()])
    for name in ("machine", "reader"):
        if chips and isinstance(options.get(name), str):
            options = {**options, name: words.machine(name, options[name], chips)}
    made = kind(**options)
    if not prices:
        return made
    listed = words.price_list(prices, chips or ())
    if made.reader and made.reader.chip.name in listed:
        chip = made.reader.chip.replace(price=listed[made.reader.chip.name][0])
        made = made.replace(reader=System(chip, made.reader.count, made.reader.domain))
    found = made.machine and listed.get(made.machine.chip.name)
    return made.replace(price=found[0], highest=found[2]) if found else made


def both(question, machine, promise, options, chips=None, leave_out=None):
    """A question and a promise, from records or from words; the promise may stand where a machine would.

    ``leave_out``: of ``decide``, fields that a launch command gives and it finds by itself.
    """
    if isinstance(machine, Promise):
        machine, promise = None, machine
    if isinstance(question, Question):
        if machine is not None:
            raise ValueError("machine is given twice: in the Question and beside it")
    else:
        said = {"model": question, "machine": machine, **options}
        found = {
            name: one for name, one in given(said)[0].items() if name in said or name not in (leave_out or ())
        }
        mine = {name: value for name, value in found.items() if name not in Promise.names()}
        options = {name: value for name, value in found.items() if name in Promise.names()}
        question = read(Question, mine, chips)
    if promise is None:
        promise = read(Promise, options)
    elif options:
        raise ValueError(f"{next(iter(options))} has no effect beside a Promise")
    if promise.request is not None and leave_out is None:
        raise ValueError(
            "request, the time of a whole answer, is what decide keeps: promise token or first_token here"
        )
    return question, promise
