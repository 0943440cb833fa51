"""Questions and SLOs: every field with its parser, help, unit and example, declared once.

The terminal's options, the page's form, link keys, ``to_dict`` and the documentation are generated from the fields of
these two records.
"""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from math import inf
from typing import Any

from inferlib import validation
from inferlib.equation import FrozenDict, Record
from inferlib.system import Layout, System, Workload
from inferlib.transformer import Transformer
from tokenprice import aliases, calibration, formatting, launch, parsing, workload
from tokenprice.deployment import Deployment, copies_in_step
from tokenprice.parsing import (  # fmt: skip
    choice,
    parse_acceptance_length,
    parse_bool,
    parse_cached,
    parse_count,
    parse_dollars,
    parse_dtype,
    parse_engine,
    parse_fraction,
    parse_int,
    parse_layer_formats,
    parse_layout,
    parse_machine,
    parse_model,
    parse_rate,
    parse_seconds,
    parse_times,
    parse_tokens,
    parse_trace,
)
from tokenprice.scheduler import ORDERS, ROUTERS, Scheduler

STEP = ("batch", "context")
REQUEST = (
    "prompt_tokens",
    "output_tokens",
    "trace",
    "cached",
    "shared_prefix",
    "concurrency",
    "requests_per_user",
    "fixed_lengths",
    "batching_wait_iters",
    "request_rate",
    "replicas",
)
# Fields that decide chooses itself.
CHOSEN_BY_DECIDE = (
    "machine",
    "batch",
    "context",
    "concurrency",
    "layout",
    "replicas",
    "prefill_machine",
    "prefill_replicas",
    "price",
    "draft_tokens",
    "acceptance_length",
)

# Fields that affect requests but not a single step.
SERVING = (
    "prefill_machine",
    "prefill_replicas",
    "max_num_batched_tokens",
    "max_num_seqs",
    "order",
    "router",
    "dp_balance",
)
# Fields that mean nothing without another one, with what to do.
NEEDS_ANOTHER = {
    "pue": ("electricity", "give dollars for a kilowatt-hour"),
    "prefill_replicas": ("prefill_machine", "give both"),
    "replicas": ("request_rate", "say how many requests arrive per second"),
}
# Fields that contradict request_rate (open loop), with the reason.
CLOSED_LOOP_ONLY = {
    "concurrency": "belongs to users who ask again, not to request_rate: leave one of them out; the sequences that an "
    "engine runs at most are max_num_seqs",
    "requests_per_user": "belongs to users who ask again: leave it or request_rate out",
    "paid_hours_used": "follows from request_rate: leave one of them out",
}

PAIRED = "drafts need both: draft_tokens, and acceptance_length, the tokens that a step yields"

# Options by topic; a field in no group is available in Python only.
GROUPS = {
    "machine": ("machine", "layout", "engine", "memory_utilization", *SERVING),
    "load": (
        *STEP,
        *(name for name in REQUEST if name != "batching_wait_iters"),
        "draft_tokens",
        "acceptance_length",
    ),
    "formats": ("weights", "kv_cache_dtype", "layer_formats"),
    "price": ("price", "electricity", "pue", "paid_hours_used"),
    "SLO": ("tpot", "ttft", "usd_per_million", "request_latency", "tpot_p99", "ttft_p99"),
}


def group_of(name):
    """Return the topic of an option; None if it is available in Python only."""
    return next((group for group, names in GROUPS.items() if name in names), None)


def parsed_field(read, help, unit="", example=""):
    """Declare an optional field that is parsed by ``read(name, value)``."""
    about = {"read": read, "help": help, "unit": unit, "example": example}
    return dataclasses.field(default=None, metadata=about)


def help_of(about):
    """Return the help of a field with its example."""
    return about["help"] + (f", e.g. {about['example']}" if about["example"] else "")


class ParsedRecord(Record):
    """Base of records that parse string fields on construction; typed values are kept."""

    def __post_init__(self):
        for name, value in self.parse(vars(self)).items():
            object.__setattr__(self, name, FrozenDict(value) if type(value) is dict else value)

    @classmethod
    def parse(cls, options) -> dict[str, Any]:
        """Return the values of those options that are fields of this record and not None."""
        return {
            name: field.metadata["read"](name, options[name])
            for name, field in cls.__dataclass_fields__.items()
            if options.get(name) is not None
        }

    @classmethod
    def names(cls) -> list[str]:
        """The names of all fields."""
        return list(cls.__dataclass_fields__)

    def words(self) -> dict[str, Any]:
        """Return the given fields as text that parses to the same record."""
        said = {
            name: _spelled(name, value) for name in self.names() if (value := getattr(self, name)) is not None
        }
        return {
            name: word for name, word in said.items() if word != ""
        }  # empty for lengths that a trace gives

    def __repr__(self):
        given = ", ".join(f"{name}={value!r}" for name, value in self.words().items())
        return f"{type(self).__name__}({given})"


def _spelled(name, value):
    if isinstance(value, Transformer):
        return value.name
    if isinstance(value, System):
        return f"{value.count}x {value.chip.name}"
    if isinstance(value, Layout):
        return formatting.format_layout(value)
    if isinstance(value, workload.LengthDistribution):
        return value.text
    if isinstance(value, workload.Trace):
        return value.path
    if isinstance(value, parsing.Seconds):
        return f"{value!r} s"
    if isinstance(value, Mapping):
        return {part: _spelled("weights", format) for part, format in value.items()}
    return (
        8 * value if name in ("weights", "kv_cache_dtype") and not isinstance(value, str) else value
    )  # bits


class Question(ParsedRecord):
    """A model, a machine and the work: one decode step of a batch, or requests of users.

    Every field accepts text, such as ``Question("Llama 3.3 70B", "4x H100", weights="FP8", batch=32, context="8k")``.
    Formats default to those of the model's checkpoint.

    Raises
    ------
    ValueError, LookupError, TypeError
        Naming the field, its value and what is allowed.
    """

    model: Transformer = parsed_field(
        parse_model, "model name, or the path of a config.json", example="Llama 3.3 70B"
    )
    machine: System | None = parsed_field(parse_machine, "number and kind of chips", example="4x H100")
    batch: float | None = parsed_field(
        parse_count, "sequences decoded together (default 1)", "sequences", "32"
    )
    context: float | None = parsed_field(
        parse_tokens, "context length in tokens (default 4,096)", "tokens", "8k"
    )
    prompt_tokens: float | None = parsed_field(
        parse_tokens,
        "prompt length in tokens, instead of a context; where lengths differ 2k ± 50% or quantiles, 200-1k-8k",
        "tokens",
        "2k",
    )
    output_tokens: float | None = parsed_field(
        parse_tokens, "output length in tokens, in the same words", "tokens", "500"
    )
    trace: workload.Trace | None = parsed_field(
        parse_trace,
        "file of requests, instead of prompt and output: JSON lines or CSV of arrival, prompt, output and "
        "what prompts share, or with the names of Mooncake's and Azure's traces",
        example="requests.jsonl",
    )
    cached: float | None = parsed_field(
        parse_cached,
        "prompt tokens in the prefix cache, or a share (default none); in memory once a request, as a chat's own",
        "tokens",
        "95%",
    )
    shared_prefix: float | None = parsed_field(
        parse_cached,
        "tokens with which all prompts begin, such as a system prompt, or a share: the part of cached that memory "
        "holds once for all requests, though a step reads it for each (default none)",
        "tokens",
        "2k",
    )
    concurrency: float | None = parsed_field(
        parse_count,
        "users at a time, each of whom asks again when answered (default 1)",
        "users",
        "32",
    )
    requests_per_user: float | None = parsed_field(
        parse_times,
        "times each user asks, if all begin at once (default: no end)",
        "rounds",
        "10",
    )
    fixed_lengths: bool | None = parsed_field(
        parse_bool, "whether all answers are equally long (default no)", example="yes"
    )
    batching_wait_iters: float | None = parsed_field(
        parse_count,
        "steps for which a scheduler holds prompts back, to prefill several together (default none)",
        "steps",
        "20",
    )
    request_rate: float | None = parsed_field(
        parse_rate,
        "requests per second, or 150/min, that arrive at random (default none)",
        "1/s",
        "2.5",
    )
    replicas: int | None = parsed_field(
        parse_int, "replicas that share the requests (default: as few as can)", "1", "4"
    )
    layout: Layout | None = parsed_field(
        parse_layout, "parallel layout (default: one tensor-parallel instance)", example="DP8 EP8"
    )
    weights: str | float | None = parsed_field(
        parse_dtype, "number format of all matrices of the layers (default: the checkpoint's)", example="fp8"
    )
    kv_cache_dtype: str | float | None = parsed_field(
        parse_dtype, "number format of the KV cache (default: the checkpoint's)", example="fp8"
    )
    layer_formats: Mapping | None = parsed_field(
        parse_layer_formats,
        "parts in another format (default: the checkpoint's)",
        example="attention=bf16",
    )
    engine: str | None = parsed_field(
        parse_engine, "class of engine, or software (default serving)", example="vllm"
    )
    memory_utilization: float | None = parsed_field(
        parse_fraction, "part of the memory that the engine takes (default 90%)", "1", "95%"
    )
    draft_tokens: int | None = parsed_field(
        parse_int, "speculative tokens a step (default none)", "tokens", "3"
    )
    acceptance_length: float | str | None = parsed_field(
        parse_acceptance_length,
        "acceptance length: tokens that a speculative step yields, or the curve of a task, 'DeepSeek R1, MTP'",
        "tokens",
        "2.6",
    )
    prefill_machine: System | None = parsed_field(
        parse_machine, "machine that prefills, if another one (default: the same)", example="2x H100"
    )
    prefill_replicas: int | None = parsed_field(
        parse_int, "how many such machines (default: as many as it takes)", "1", "4"
    )
    max_num_batched_tokens: float | None = parsed_field(
        parse_count,
        "tokens of a step, prefill and decode (default: the engine's own)",
        "tokens",
        "2k",
    )
    max_num_seqs: float | None = parsed_field(
        parse_count,
        "sequences that each copy of the model runs at most (default: the engine's own)",
        "sequences",
        "256",
    )
    order: str | None = parsed_field(
        choice(ORDERS),
        "what an engine does first, decode or prefill (default: the engine's own)",
        example="prefill first",
    )
    router: str | None = parsed_field(
        choice(ROUTERS),
        "how requests are dealt to replicas: random, round robin or least loaded (default random)",
        example="least loaded",
    )
    dp_balance: float | None = parsed_field(
        parse_count,
        "steps for which copies that share experts hold a prompt until each has one (default none)",
        "steps",
        "50",
    )
    price: float | None = parsed_field(
        parse_dollars, "dollars per chip-hour (default: the catalogue's)", "usd/h", "$2.50"
    )
    price_max: float | None = parsed_field(
        parse_dollars, "dollars per chip-hour at the most expensive seller (default: price)", "usd/h", "$4"
    )
    electricity: float | None = parsed_field(
        parse_dollars,
        "dollars per kilowatt-hour, on top, at rated power, which a site provides (default none)",
        "usd/kWh",
        "$0.10",
    )
    pue: float | None = parsed_field(
        parse_times, "power of the site over that of its chips (default 1)", "1", "1.3"
    )
    paid_hours_used: float | None = parsed_field(
        parse_fraction, "part of the paid hours that is used (default 1)", "1", "40%"
    )

    def __post_init__(self):
        if self.model is None:
            raise ValueError("model is missing: a name such as 'Llama 3.3 70B', or the path of a config.json")
        super().__post_init__()
        if self.trace is not None:
            self._read_trace()
        for name, (other, told) in NEEDS_ANOTHER.items():
            if getattr(self, name) is not None and getattr(self, other) is None:
                raise ValueError(f"{name} belongs to {other}: {told}")
        price = self.price or (self.machine and self.machine.chip.price)
        if price and self.price_max and self.price_max < price:
            whose = "price" if self.price else f"the catalogue's price of {self.machine.chip.name}"
            raise ValueError(f"price_max is {self.price_max:g}, but must be at least {whose}, {price:g}")
        self._check_work()
        if (self.cached or self.shared_prefix) and not (self.trace and self.trace.blocks):
            self._check_cached(workload.support(self.prompt_tokens))
        if (self.draft_tokens is None) != (self.acceptance_length is None):
            raise ValueError(PAIRED)
        if self.weights is None and "formats" in self.model.notes:
            raise ValueError(
                f"weights are not given, and how the checkpoint of {self.model.name or 'this model'} stores them is "
                f"not understood: {self.model.notes['formats']}"
            )

    def _check_work(self):
        """Raise ValueError if fields of a step, of requests, of a closed loop and of a fleet do not belong together."""
        step, request, served = (
            [name for name in names if getattr(self, name) is not None] for names in (STEP, REQUEST, SERVING)
        )
        if step and request:
            raise ValueError(
                f"{step[0]} belongs to a step and {request[0]} to a request: give {' and '.join(STEP)}, "
                f"or {', '.join(REQUEST)}"
            )
        if request and (self.prompt_tokens is None or self.output_tokens is None):
            raise ValueError("a request needs both prompt_tokens and output_tokens")
        if not request and served:
            raise ValueError(f"{served[0]} belongs to a request: give prompt_tokens and output_tokens")
        if self.request_rate is not None:
            for name, why in CLOSED_LOOP_ONLY.items():
                if getattr(self, name):
                    raise ValueError(f"{name} {why}")
        elif self.prefill_machine and (self.requests_per_user or self.fixed_lengths):
            raise ValueError(
                "requests_per_user and fixed_lengths belong to machines that prefill and decode: leave them or "
                "prefill_machine out"
            )
        if self.fixed_lengths and isinstance(self.output_tokens, workload.LengthDistribution):
            raise ValueError(
                f"fixed_lengths is yes, but output_tokens is {self.output_tokens.text!r}: leave one out"
            )

    @classmethod
    def parse(cls, options):
        """As for any record; a price may also be a range, from the lowest to the highest."""
        price = options.get("price")
        if isinstance(price, str) and re.fullmatch(r"[^-]+-[^-]*\d[^-]*", price):
            low, _, high = price.partition("-")
            options = merge_options(options | {"price": low}, {"price_max": high})
        return super().parse(options)

    def _check_cached(self, prompts):
        """Set cached and shared tokens from shares of the prompts; ValueError unless they are parts of all prompts."""
        if isinstance(self.shared_prefix, str):
            part = parsing.parse_fraction("shared_prefix", self.shared_prefix)
            object.__setattr__(self, "shared_prefix", part * min(prompts))
        if isinstance(self.cached, str):
            part = parsing.parse_fraction("cached", self.cached)
            held = [part * prompt for prompt in prompts]
            mixed = workload.LengthDistribution(held, self.cached)
            alone = held[0] if held[0] >= 2 else 0  # a cache holds whole tokens only
            object.__setattr__(self, "cached", mixed if len(prompts) > 1 else alone)
        shared = self.shared_prefix or 0
        name = "cached" if self.cached else "shared_prefix"
        if shared and not self.cached:
            object.__setattr__(self, "cached", shared)
        held = workload.support(self.cached)
        if min(held) >= min(prompts):
            which = "the shortest prompt" if len(prompts) > 1 else "prompt"
            raise ValueError(f"{name} is {self.cached:g}, but must be below {which}, {min(prompts):g}")
        if not isinstance(shared, workload.LengthDistribution) and shared > min(held):
            raise ValueError(f"shared_prefix is {shared:g}, but must be a part of cached, {min(held):g}")

    def _read_trace(self):
        """Set prompt and output lengths from the trace, and its request rate unless one is given."""
        for name, found in (("prompt_tokens", self.trace.prompt), ("output_tokens", self.trace.output)):
            if getattr(self, name) not in (None, found):
                raise ValueError(f"{name} is given by the trace: leave one of them out")
            object.__setattr__(self, name, found)
        if self.trace.blocks:
            for name in ("cached", "shared_prefix"):
                if getattr(getattr(self, name), "text", getattr(self, name)):
                    raise ValueError(f"{name} follows from what prompts of the trace share: leave it out")
            object.__setattr__(self, "shared_prefix", self.trace.shared_prefix)
        object.__setattr__(self, "request_rate", self.request_rate or self.trace.rate)

    @property
    def is_request(self) -> bool:
        """Whether the question is about requests rather than a single decode step."""
        return self.prompt_tokens is not None

    @cached_property
    def formats(self) -> tuple:
        """Formats of weights, KV cache and of layers that differ: as given, else the checkpoint's."""
        own, kept, own_cache = calibration.checkpoint_formats(self.model)
        if self.weights in (None, own if isinstance(own, str) else calibration.format_name(own)):
            return own, self.kv_cache_dtype or own_cache, (kept | dict(self.layer_formats or {})) or None
        return self.weights, self.kv_cache_dtype or own_cache, dict(self.layer_formats or {}) or None

    @cached_property
    def workload(self) -> Workload:
        """Batch, mean context and formats of the decode steps."""
        weights, cache, _ = self.formats
        if self.prompt_tokens is not None and self.output_tokens is not None:
            users = 1 if self.request_rate else self.concurrency or 1
            return Workload(users, workload.mean_context(self), weights, cache)
        return Workload(self.batch or 1, 4096 if self.context is None else self.context, weights, cache)

    def step(self) -> "Question":
        """The decode step of this question: one sequence for each user, at the mean context.

        Examples
        --------
        >>> Question("Llama 3 70B", "8x H100", prompt_tokens="2k", output_tokens=200, concurrency=32).step().words()
        {'model': 'Llama 3 70B', 'machine': '8x H100 SXM', 'batch': 32, 'context': 2148}
        """
        lost = dict.fromkeys((*REQUEST, *SERVING))
        work = self.workload
        return self.replace(**lost, batch=work.batch, context=work.context) if self.is_request else self

    @cached_property
    def deployment(self) -> Deployment:
        """The model on its machine, in its layout."""
        return self.on(self.needs_machine(), self.layout)

    @cached_property
    def prefill_deployment(self) -> Deployment | None:
        """The deployment on separate prefill machines; None if the decode machine prefills.

        Prefill machines of a fleet that equal its decode machines have the same layout.
        """
        if self.prefill_machine is None:
            return None
        same = self.request_rate and self.prefill_machine == self.machine
        return self.deployment if same else self.on(self.prefill_machine)

    @property
    def prefills(self) -> Deployment:
        """The deployment that prefills: on separate prefill machines, or the one that decodes too."""
        return self.prefill_deployment or self.deployment

    def on(self, machine, layout=None) -> Deployment:
        """Deploy the model on a machine: layout (default: chosen), formats, engine and scheduler as in the question."""
        weights, cache, kept = self.formats
        said = vars(self)
        served = {"weights": weights, "kv_cache_dtype": cache, "layer_formats": kept}
        own = {name: said[name] for name in Scheduler.__dataclass_fields__ if said.get(name) is not None}
        served |= {"machine": machine, "layout": layout}
        copies = copies_in_step(self.model, layout) if layout else 1
        served["scheduler"] = Scheduler.of(self.engine, machine.chip, copies).replace(**own)
        return Deployment(
            **{name: said[name] for name in Deployment.__dataclass_fields__ if name in said} | served
        )

    def max_sequences(self, deployment=None) -> float:
        """Sequences that fit in memory beside the weights (of another deployment); below 1 if none fits."""
        deployment = deployment or self.deployment
        mean = self.workload.context
        shared = self.shared_prefix or 0
        # context grows evenly, so its end is as far above the mean as its start is below
        end = 2 * mean - (self.prompt_tokens or mean)
        most = max(workload.support(shared))
        return deployment.max_sequences(mean - shared, self.longest - shared, end - shared, most)

    @property
    def prefill_chunks(self) -> float:
        """Mean number of steps that prefill one prompt; below 1 if a step prefills several."""
        budget = self.prefills.scheduler.max_num_batched_tokens
        return workload.prefill_chunks(self.prompt_tokens, self.cached or 0, budget)

    @cached_property
    def output_lengths(self) -> tuple:
        """Equally likely output lengths: as given, else geometric in an open loop and fixed in a closed loop."""
        if self.trace is not None:
            return workload.reduced_lengths(self.trace.output.support)
        alike = self.request_rate is None if self.fixed_lengths is None else self.fixed_lengths
        if isinstance(self.output_tokens, workload.LengthDistribution) or alike:
            return workload.support(self.output_tokens)
        return workload.geometric_lengths(self.output_tokens)

    @property
    def longest(self) -> float:
        """Length of the longest sequence in tokens."""
        if not self.is_request:
            return self.workload.context
        if self.trace is not None:
            return self.trace.longest
        return max(workload.support(self.prompt_tokens)) + max(self.output_lengths)

    def chip_hour_cost(self, chip, price=None) -> float | None:
        """Dollars per chip-hour, with electricity at rated power; None if no price is known.

        The question's ``price`` is for its machine's chip; a prefill machine of another chip has its own price.
        """
        mine = self.machine is None or chip.name == self.machine.chip.name
        price = price or (self.price if mine and self.price is not None else chip.price)
        if price is None or self.electricity is None:
            return price
        if chip.power is None:
            raise ValueError(f"electricity has a price, but the power of {chip.name} is not known")
        return price + chip.power / 1000 * (self.pue or 1) * self.electricity

    @property
    def price_per_chip_hour(self) -> float | None:
        """Dollars per used chip-hour: price over utilisation; None if no price is known."""
        price = self.price if self.machine is None else self.chip_hour_cost(self.machine.chip)
        return None if price is None else price / (self.paid_hours_used or 1)

    def price_ratio(self, chip) -> float:
        """Ratio of the most expensive seller's price to the usual one."""
        highest, price = (self.chip_hour_cost(chip, dollars) for dollars in (self.price_max, None))
        return highest / price if self.price_max and highest and price else 1.0

    @property
    def resolved_layout(self) -> Layout:
        """Parallel layout of the deployment (default: one tensor-parallel instance)."""
        return self.deployment.layout

    def needs_machine(self) -> System:
        """Return the machine; ValueError if none was given."""
        if self.machine is None:
            raise ValueError("machine is missing: say how many of which chip, such as '4x H100'")
        return self.machine


class SLO(ParsedRecord):
    """Service-level objectives of every user; None means no limit."""

    tpot: float | None = parsed_field(
        parse_seconds, "TPOT at most: time between two tokens (default any)", "s", "50 tokens/s"
    )
    ttft: float | None = parsed_field(
        parse_seconds, "TTFT at most: time to the first token (default any)", "s", "500 ms"
    )
    usd_per_million: float | None = parsed_field(
        parse_dollars, "dollars per million output tokens, at most (default any)", "usd/M", "$2"
    )
    request_latency: float | None = parsed_field(
        parse_seconds, "time of a whole answer, at most (default any)", "s", "30 s"
    )
    tpot_p99: float | None = parsed_field(
        parse_seconds,
        "TPOT at most for 99 of 100 requests, by simulation (default any)",
        "s",
        "20 tokens/s",
    )
    ttft_p99: float | None = parsed_field(
        parse_seconds, "TTFT at most for 99 of 100 requests, by simulation (default any)", "s", "2 s"
    )

    @property
    def percentiles(self) -> dict:
        """The p99 limits: ``"first"`` (TTFT) or ``"token"`` (TPOT) to seconds."""
        found = {"first": self.ttft_p99, "token": self.tpot_p99}
        return {what: seconds for what, seconds in found.items() if seconds is not None}

    def limit(self, name) -> float:
        """Limit of a mean time in seconds: the smaller of the limits of its mean and its p99."""
        given = (getattr(self, name), getattr(self, f"{name}_p99"))
        return min((seconds for seconds in given if seconds is not None), default=inf)


def list_fields(indent):
    """List the fields of a question by topic, for documentation."""
    groups = {}
    for f in fields(Question)[1:]:
        group = group_of(f.name) or "in Python only"
        groups.setdefault(group, [f"{group}:"]).append(f"  {f.name}: {help_of(f.metadata)}")
    return f"\n{indent}".join(line for lines in groups.values() for line in lines)


def merge_options(*places):
    """Merge options that were given in several places; ValueError if one is given twice."""
    found = {}
    for options in places:
        for name, value in options.items():
            if value is None:
                continue
            if name in found:
                first, second = validation.short(repr, found[name]), validation.short(repr, value)
                raise ValueError(f"{name} is given twice: {first} and {second}")
            found[name] = value
    return found


def parse_options(options, chips=None, kinds=(Question,), leave_out=()):
    """Parse the options of a verb to fields of its records: aliases, engine flags, a launch command, text and prices.

    ``chips``: own chips by name. ``kinds``: the records whose fields may be given. ``leave_out``: fields that a verb
    chooses itself, ignored where only a launch command gives them. Also returns notes on a launch command or flags,
    and their engine with the longest sequence that it allows (``()`` without either).
    """
    chips = validation.instance("chips", {} if chips is None else chips, Mapping)
    options = aliases.resolve(options)
    command, options = launch.split(options, {*Question.names(), *SLO.names(), "prices"})
    for name in ("machine", "prefill_machine"):
        if isinstance(options.get(name), str):
            options[name] = parsing.parse_machine(name, options[name], chips)
    prices = parsing.parse_prices(options.pop("prices", {}), chips)
    known = [name for kind in kinds for name in kind.names()]
    for name in options:
        validation.one_of("option", name, known)
    found = {name: value for kind in kinds for name, value in kind.parse(options).items()}
    notes, launched = (), ()
    if command is not None:
        settings, notes = command.question(found)
        if notes or "model" in command.said:
            launched = command.engine, command.said.get("longest")
        settings = {name: value for name, value in settings.items() if name not in leave_out}
        found = Question.parse(settings) | found
        if "machine" in settings:
            found["machine"] = settings["machine"]
    machine, prefill_machine = found.get("machine"), found.get("prefill_machine")
    if machine and machine.chip.name in prices:
        for name in ("price", "price_max"):
            if name in found:
                raise ValueError(
                    f"{name} is {found[name]:g}, but prices holds {machine.chip.name} too: give one"
                )
        found["price"], _, found["price_max"] = prices[machine.chip.name]
    if prefill_machine and prefill_machine.chip.name in prices:
        chip = prefill_machine.chip.replace(price=prices[prefill_machine.chip.name][0])
        found["prefill_machine"] = prefill_machine.replace(chip=chip)
    return found, notes, launched


def question_and_slo(question, machine, slo, options, chips=None, leave_out=None):
    """Return a question and an SLO, from records or text; the SLO may be passed in place of a machine.

    ``leave_out``: as for :func:`parse_options`; None for verbs other than ``decide``.
    """
    if isinstance(machine, SLO):
        machine, slo = None, machine
    if not isinstance(slo, SLO | None):
        said = validation.shown(slo)
        raise TypeError(
            f"slo is {said}, but must be an SLO; targets in words are options, such as tpot='50 ms'"
        )
    if isinstance(question, Question):
        if machine is not None:
            raise ValueError("machine is given twice: in the Question and as an argument")
        found, *_ = parse_options(options, kinds=(SLO,))
    else:
        options = merge_options({"model": question, "machine": machine}, options)
        found, *_ = parse_options(options, chips, (Question, SLO), leave_out or ())
        question = Question(**{name: found.pop(name) for name in Question.names() if name in found})
    if slo is None:
        slo = SLO(**found)
    elif found:
        raise ValueError(f"{next(iter(found))} has no effect together with an SLO")
    if slo.request_latency is not None and leave_out is None:
        raise ValueError("request_latency is for decide only: give tpot or ttft here")
    return question, slo


def trace_notes(question, cached):
    """Return notes: what the closed form uses of a trace, and what only a simulation replays."""
    trace = question.trace
    come = ""
    if trace.bursts is not None and abs(trace.bursts - 1) > 0.05:
        uneven = f"in bursts, {formatting.format_number(trace.bursts)} times as uneven"
        come = f" They arrive {uneven if trace.bursts > 1 else 'more evenly than at random'}."
    skipped = f" {trace.skipped:,} more have no answer and are left out." if trace.skipped else ""
    found = (
        f"{len(trace.arrivals):,} requests of {trace}: the closed form uses their lengths and assumes random arrivals."
        f"{come} tokenprice simulate replays them.{skipped}",
    )
    if not trace.blocks:
        return found
    shared, held, once = (
        float(one) / question.prompt_tokens
        for one in (trace.shared, cached, min(cached, trace.shared_prefix))
    )
    return (
        *found,
        f"Prompts share {shared:.0%} of their tokens. When a prompt arrives, memory still holds {held:.0%}: the "
        f"{once:.0%} with which most prompts begin are held once, the rest once for each request, even if some "
        "prompts share it.",
    )
