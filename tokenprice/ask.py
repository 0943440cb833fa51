"""Answer one question about a step or a request on one machine, with the kernel model, a source, or all of them."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Unpack

from inferlib import validation
from inferlib.equation import frozen
from inferlib.formats import FORMATS
from inferlib.principles import cost_per_million
from inferlib.system import Breakdown, System
from tokenprice import calibration, energy, invariants, launch, posterior, predictors, queueing
from tokenprice.change import narrower, speedup_if_doubled
from tokenprice.formatting import (
    Screen,
    format_dtype,
    format_dtypes,
    format_interval,
    format_layout,
    format_number,
    format_time,
    values,
)
from tokenprice.predictors import KERNELS
from tokenprice.question import Question, list_fields, merge_options, parse_options, trace_notes
from tokenprice.request import Request, closed_loop, most_running, step_of_requests
from tokenprice.signatures import AskOptions
from tokenprice.uncertainty import load_calibration, step_interval

ALL = "all"
PREFILL_INTERFERENCE = "prompts of others"
OVERLOAD_MESSAGE = (
    "{machines} {some} would be loaded to {load} of capacity; above {most} the queue grows without end at the slow end "
    "of the interval; {enough} are enough"
)
LATER = "{name} kernels have longer fixed times"
NO_NETWORK = "{name} states no scale_out_bandwidth, over which a cache moves to another machine"
# Remarks on a question; the page shows them too.
REMARKS = {
    "long": "A sequence of {longest:,.0f} tokens is longer than the model's own maximum, {most:,.0f}.",
    "wide": f"In bf16 a step would take {{wide}} ms: {LATER}.",
    "fits": "{layout} fits.",
    "one": "These requests have one output token and so no TPOT: a longer answer among them would have the one shown.",
    "whole": "All matrices of the layers are taken in {name}; the checkpoint keeps some in another format.",
    "uneven": "Experts of {width:,.0f} in FP8 blocks of 128 do not divide over {chips:,.0f} chips: many versions of "
    "vLLM and SGLang refuse that, but not whole experts (EP).",
    "prefix": "Memory holds a cached prefix once for each request here, as a chat's history; if all share "
    "one, engines hold it once: give shared_prefix.",
}
# Colours of the book's figures by the last word of a term: memory blue and green, arithmetic ochre, waiting red.
COLOURS = {
    "weights": "#0072B2", "cache": "#009E73", "arithmetic": "#B86E00", "bandwidth": "#EDA48C",
    **dict.fromkeys(("latency", "exchange", "pipeline"), "#D14A1F"),
}  # fmt: skip
_MIN_SPEEDUP_SHOWN = 1.02  # smallest speedup that gets a line of its own


@frozen
class Answer(Screen):
    """One model's answer to a :class:`Question`: a decode step or a request, with its interval.

    ``status`` is ``"ok"``, ``"infeasible"`` or ``"n/a"``, with a ``reason``. ``seconds`` is the time between two tokens
    of a user (TPOT), including other users' prefills if requests were asked about; ``low`` and ``high`` hold it in
    ``confidence`` of cases (None if the model states no interval). ``step`` is the decode step by named terms,
    ``request`` the times and costs of a request. With a request rate, ``fleet`` has the number of machines, and
    ``disaggregated`` the number with separate prefill machines.
    """

    question: Question
    by: str
    step: Breakdown
    status: str = "ok"
    reason: str = ""
    request: Request | None = None
    fleet: queueing.Fleet | None = None
    disaggregated: queueing.Fleet | None = None
    factor: float | None = None
    at_peaks: float = 0.0  # least seconds of the step, at the peaks of the data sheet
    confidence: float | None = None
    warnings: tuple = ()
    question_notes: tuple = ()
    launched: tuple = ()  # engine of the launch command in the question, and the longest sequence that it allows

    @property
    def feasible(self) -> bool:
        """Whether the question has an answer."""
        return self.status == "ok"

    @property
    def machine(self) -> System:
        """The machine of the question."""
        return self.question.needs_machine()

    @property
    def batch(self) -> float:
        """Sequences decoded together: the batch, or the users being answered at once."""
        return self.question.workload.batch if self.request is None else self.request.decode_batch

    @property
    def seconds(self) -> float:
        """TPOT in seconds; ValueError if there is no answer."""
        if not self.feasible:
            raise ValueError(f"no time: {self.status}: {self.reason}")
        return self.step.total if self.request is None else self.request.tpot

    @property
    def interval(self) -> tuple:
        """Both ends of the interval; None if the model states no interval."""
        if self.request is not None:
            return self.request.tpot_interval
        if self.factor is None:
            return None, None
        return max(self.at_peaks, self.seconds / self.factor), self.seconds * self.factor

    @property
    def low(self) -> float | None:
        """Fast (short) end of the interval, in seconds."""
        return self.interval[0]

    @property
    def high(self) -> float | None:
        """Slow (long) end of the interval, in seconds."""
        return self.interval[1]

    @property
    def speed(self) -> float:
        """Output tokens per second of one user."""
        return 1 / self.seconds

    @property
    def throughput(self) -> float:
        """Output tokens per second of all users."""
        if self.request is None:
            return self.batch / self.seconds
        if self.fleet:
            return self.fleet.request_rate * self.request.output_tokens
        return self.request.throughput(self.question.workload.batch)

    @property
    def usd_per_million(self) -> float | None:
        """Dollars per million output tokens, prompts not included; None if no price is known."""
        if self.question.price_per_chip_hour is None:
            return None
        if self.request is not None:
            return self.request.per_million["output"] if self.request.priced else None
        return float(
            cost_per_million(self.seconds, self.batch, self.machine.count, self.question.price_per_chip_hour)
        )

    @property
    def price_interval(self) -> tuple:
        """Factors from a price to both ends of its interval, from the time's interval and the sellers' prices."""
        if self.request is not None:
            return self.request.price_interval
        low, high = (1.0 if end is None else end / self.seconds for end in self.interval)
        return low, high * self.question.price_ratio(self.machine.chip)

    @property
    def joules(self) -> float | None:
        """Energy of the chips per output token in joules, idle chips of a fleet included; None if power is unknown.

        The energy of prefill is not included.
        """
        idle = 0.0 if self.fleet is None else self.fleet.idle_joules
        if self.machine.chip.power is None or idle is None:
            return None
        return float(energy.of_token(self.machine, self.step, self.batch)) + idle

    @cached_property
    def speedup_if_doubled(self) -> Mapping[str, float]:
        """Speedup of a token for each resource doubled; empty for models other than the kernel model."""
        return self._bought(speedup_if_doubled)

    @cached_property
    def narrower(self) -> Mapping[str, float]:
        """Speedup of a token with weights in fp8 and in 4 bits, if these are narrower than the question's."""
        return self._bought(narrower)

    def _bought(self, change):
        if self.by != KERNELS or not self.feasible:
            return {}
        shared = self.fleet is None and self.question.prefill_machine is None
        return change(self.question, self.batch, self.request if shared else None)

    @cached_property
    def notes(self) -> tuple:
        """Remarks on the question, on its launch command and on measured rows."""
        if self.by != KERNELS or not self.feasible:
            return self.question_notes
        narrow = () if self.request else _note_if_16_bit_is_faster(self.question, self.step)
        return _remarks(self.question, self.request, self.fleet) + self.question_notes + narrow

    @property
    def max_sequences(self) -> int | None:
        """Users (or sequences of a step) that fit in memory with the weights; None if memory is unlimited."""
        if self.by != KERNELS or not self.feasible or self.machine.chip.memory_capacity is None:
            return None
        places = self.question.max_sequences()
        return max(int(places), 0) if math.isfinite(places) else None

    @property
    def link(self) -> str:
        """Link to the calculator page with this question, relative to the book's folder."""
        from tokenprice.permalink import page_link

        q = self.question
        if q.trace is None or self.fleet is None:
            return page_link(q)
        # the number of machines decides how much remains in the prefix cache
        machines = self.fleet.replicas if q.trace.blocks else q.replicas
        return page_link(q.replace(replicas=machines), cached=self.fleet.request.cached_tokens)

    @property
    def cache_tokens(self) -> tuple | None:
        """KV cache size of a copy in tokens as an engine's log prints it at start: least, predicted, and most."""
        if not self.max_sequences:
            return None
        deployment = self.question.deployment
        low, high = launch.table()["log"]
        held = deployment.logged(self.max_model_len)
        return low * deployment.room_if_sorted * held, held, high * held

    @property
    def max_model_len(self) -> float:
        """Length in tokens of the longest sequence that the engine allows, else of the question's."""
        _, most = self.launched or ("", None)
        return most or self.question.model.max_context or self.question.longest

    @property
    def commands(self) -> dict[str, str]:
        """Launch command of the question's deployment for each engine that has one; empty if it cannot serve."""
        return launch.commands(self.question) if self.feasible else {}

    @property
    def no_command(self) -> list[str]:
        """Why other engines have no such command, one sentence per reason."""
        return launch.no_command(self.question) if self.feasible else []

    @property
    def bottleneck(self) -> str:
        """Largest part of the time between two tokens: a term of the step, or the prefills of others."""
        waits = self.seconds - self.step.total
        return PREFILL_INTERFERENCE if waits > max(self.step.critical.values()) else self.step.bottleneck

    def summary(self) -> str:
        """Return TPOT with its interval and bottleneck, or why there is no answer."""
        if not self.feasible:
            return f"{self.status}: {self.reason}"
        return f"{format_time(self.seconds, *self.interval)}, bound by {self.bottleneck}"

    def to_dict(self) -> dict:
        """Return everything as plain numbers and texts in SI units, as ``--json`` prints it."""
        q = self.question
        weights, cache, kept = q.formats
        found = values(self, "by", "status", "reason", "warnings", "notes") | {
            "question": q.words(),
            "layout": format_layout(q.resolved_layout),
            "weights": format_dtype(weights),
            "kv_cache_dtype": format_dtype(cache),
            "layer_formats": {part: format_dtype(f) for part, f in (kept or {}).items()},
        }
        if self.feasible:
            rent = q.chip_hour_cost(self.machine.chip)
            hourly = self.fleet.dollars_per_hour if self.fleet else rent and rent * self.machine.count
            if (r := self.request) and r.prefill_machine and r.prefill_replicas:
                reads = r.prefill_replicas * r.prefill_machine.count
                hourly = hourly + reads * r.prefill_price if hourly and r.prefill_price else None
            found |= values(self, "seconds", "low", "high", "confidence", "speed", "batch", "bottleneck")
            found |= values(self, "usd_per_million", "speedup_if_doubled", "narrower", "max_sequences")
            low, high = self.price_interval
            found |= {
                "tokens_per_second": self.throughput,
                "step": self.step.total,
                "terms": self.step.terms,
                "usd_per_hour": hourly,
                "joules_per_token": self.joules,
                "usd_spread": q.price_ratio(self.machine.chip),
                "usd_interval": (usd := found["usd_per_million"]) and [low * usd, high * usd],
            }
        if self.request is not None:
            found["request"] = self.request.to_dict()
        if self.fleet:
            found |= {
                "fleet": self.fleet.to_dict(),
                "disaggregated": self.disaggregated and self.disaggregated.to_dict(),
            }
        return plain(found)

    def screen(self):
        """Return the question; TPOT, TTFT, price, memory and speedups; notes, cautions and commands."""
        q = self.question
        who = "" if self.by == KERNELS else f"{predictors.label(self.by)}: "
        title = f"{who}{q.model.name} on {self.machine}, {_format_setup(self)}"
        if not self.feasible:
            return title, [], [f"{self.status}: {self.reason}", *self.notes]
        sure = "" if self.confidence is None else f", {100 * self.confidence:.0f} %"
        rates = f"{format_number(self.speed)} tokens/s per user, {format_number(self.throughput)} in all"
        if self.request is not None and self.fleet is None:
            rates += f", {format_time(self.step.total)} between prefills"
        rows = [
            ("TPOT", format_time(self.seconds, *self.interval, sure), f"{rates}; bound by {self.bottleneck}")
        ]
        rows += self._price_rows()
        if self.fleet:
            rows += self._fleet_rows()
        if self.joules is not None:
            idle = ", idle chips are" if self.fleet else ""
            beside = "" if self.request is None else f" (prompts not counted{idle})"
            beside += "; electricity is charged at rated power" if q.electricity else ""
            rows.append(("Energy", f"about {format_number(float(f'{self.joules:.2g}'))} J per token{beside}"))
        if q.draft_tokens and self.request is None:
            plain = ask_kernel_model(q.replace(draft_tokens=None, acceptance_length=None)).seconds
            rows.append(("Drafts", f"{plain / self.seconds:.2f} times as fast; {format_time(plain)} without"))
        if (places := self.max_sequences) is not None:
            whose = "requests" if q.request_rate else "users" if q.is_request else "sequences"
            rows.append(
                ("Memory", f"fits {places:,.0f} {whose if places > 1 else whose[:-1]} of this length")
            )
        rows += self._speedup_rows()
        if self.launched and self.cache_tokens:
            rows.append(("Engine's log", self._log()))
        commands = [*self.commands.values(), *self.no_command] if self.launched else []
        return title, rows, [*self.notes, *(f"Caution: {caution}." for caution in self.warnings), *commands]

    def _price_rows(self):
        """Return the times and prices of a request, or the price of a step."""
        q = self.question
        rows = [] if self.request is None else self.request.rows()
        if q.price_per_chip_hour is None:
            return [*rows, ("Price", "no price is known")]
        if self.request is None:
            hourly = format_interval(q.price_per_chip_hour, (1, q.price_ratio(self.machine.chip)))
            paid = format_interval(self.usd_per_million, self.price_interval)
            rows.append(("Price", f"${paid} per million output tokens at ${hourly} per used chip-hour"))
        return rows

    def _fleet_rows(self):
        """Return the machines of a fleet, those with disaggregated prefill, and how their engine schedules."""
        rows = self.fleet.rows()
        if apart := self.disaggregated:
            at = apart.estimate
            times = f"TPOT {format_time(at.tpot)}, TTFT {format_time(at.ttft)}, by formula"
            rows += [("Disaggregated", times), *(("", text) for _, text in apart.rows())]
        server = self.fleet.server
        policy = server.scheduler.summary(server.costs.in_step)
        simulated = self.fleet.estimate.requests
        means = f"means of {simulated:,} simulated requests, TPOT over all tokens"
        return [*rows, ("Engine", f"{policy}; {means}")]

    def _speedup_rows(self):
        """Return what each resource doubled would gain, and what narrower weights would."""
        rows = []
        if self.speedup_if_doubled:
            gains = sorted(self.speedup_if_doubled.items(), key=lambda gain: -gain[1])
            worth = [f"{name} × {gain:.3g}" for name, gain in gains if gain >= _MIN_SPEEDUP_SHOWN]
            alone = ", without drafts" if self.question.draft_tokens else ""
            worth.append(f"anything else × {_MIN_SPEEDUP_SHOWN} at most{alone}")
            rows.append(("If 2x better", ", ".join(worth)))
        if self.narrower:
            fewer = (
                f"{name} × {gain:.3g}" + (f" ({LATER.format(name=name)})" if gain < 1 else "")
                for name, gain in self.narrower.items()
            )
            rows.append(("Fewer bits", ", ".join(fewer)))
        return rows

    def _log(self):
        """Describe the KV cache size that the engine's log should print at its start."""
        low, here, high = (format_number(float(f"{n:.3g}")) for n in self.cache_tokens)
        times = f"{format_number(self.cache_tokens[1] / self.max_model_len)} times {self.max_model_len:,.0f}"
        each = " in each copy" if self.question.deployment.layout.dp > 1 else ""
        return f"should say: KV cache of {here} tokens ({low} to {high}), {times}{each}"

    def _repr_html_(self):
        """The table, and below it a bar of the terms of the step."""
        bar = legend = ""
        for name, seconds in self.step.critical.items() if self.feasible else ():
            colour = f"background:{colour_of(name)}"
            bar += f'<i style="flex:{1e3 * seconds:.4g};margin-right:1px;{colour}"></i>'
            square = f'<i style="display:inline-block;width:.7em;height:.7em;{colour}"></i>'
            legend += f'<span style="white-space:nowrap">{square} {name} {format_time(seconds)}</span> '
        return (
            f'{super()._repr_html_()}<div style="display:flex;height:1em;max-width:40em">{bar}</div>{legend}'
        )

    def plot(self, ax=None):
        """Draw the terms of the step as a bar, in milliseconds, and return the axes; needs Matplotlib.

        Raises
        ------
        ValueError
            If there is no answer.
        """
        import matplotlib.pyplot as plt

        if not self.feasible:
            raise ValueError(f"no time to draw: {self.status}: {self.reason}")
        ax = ax or plt.subplots(figsize=(8, 1.5))[1]
        end = 0.0
        for name, seconds in self.step.critical.items():
            ax.barh([""], 1e3 * seconds, left=end, label=name, color=colour_of(name), edgecolor="white")
            end += 1e3 * seconds
        ax.set_xlabel("milliseconds a step")
        ax.legend(ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.5), frameon=False)
        return ax


def colour_of(term) -> str:
    """Return the colour of a term of a step; software is grey."""
    return COLOURS.get(term.split()[-1], "#8a8a8a")


class Answers(Screen, dict):
    """Answers of several models to one question, by name; prints one line each."""

    def to_dict(self) -> dict:
        """Return :meth:`Answer.to_dict` of each."""
        return {key: answer.to_dict() for key, answer in self.items()}

    def screen(self):
        """Return one line per model."""
        return "", [(predictors.label(key), answer.summary()) for key, answer in self.items()], []


def ask(
    question, machine=None, /, *, by: str = KERNELS, chips: Mapping | None = None, measured=None,
    **options: Unpack[AskOptions],
) -> Answer | Answers:  # fmt: skip
    """Predict how fast a model runs on a machine, how certain that is, what it costs, and what would help.

    Parameters
    ----------
    question : Question, or a model
        A model of the catalogue by name, the path of a config.json, a Transformer, or a launch command, with the
        fields of :class:`Question` as options.
    machine : str, Accelerator or System
        Such as ``"4x H100"``.
    by : str
        Which model answers: the kernel model (default); a source such as ``"liminal2025"``, or a version of one;
        ``"principles"`` (the bound); ``"all"`` for a mapping of name to answer.
    chips : Mapping, optional
        Chips of your own by name, as from ``tokenprice.catalog.load_chips``.
    measured : str or list of str, optional
        Measurements of the same machine, such as ``"users 32: 21.3 ms"``, the printout of a benchmark, or the path
        of a CSV: the answer is conditioned on them (:mod:`tokenprice.posterior`).
    **options
        The other fields of :class:`Question`, as text or typed, and ``prices``, by chip.

    Raises
    ------
    LookupError, ValueError, TypeError
        Naming the field, its value and what is allowed.

    Notes
    -----
    The options by topic::

        {fields}

    Examples
    --------
    >>> found = ask("Llama 3.3 70B", "4x H100", weights="FP8", batch=32, context="8k")
    >>> found.low < found.seconds < found.high, found.step.bottleneck
    (True, 'cache')
    """
    notes, launched = (), ()
    if isinstance(question, Question):
        if machine is not None or options:
            raise ValueError("give a Question or words, not both: options beside a Question have no effect")
    else:
        fields, notes, launched = parse_options(
            merge_options({"model": question, "machine": machine}, options), chips
        )
        question = Question(**fields)
    question.needs_machine()
    if measured is not None and by != KERNELS:
        raise ValueError(f"measured corrects the kernel model only, but by is {by!r}: leave one of them out")
    question.price_per_chip_hour  # noqa: B018  raises if electricity is given and the chip's power is unknown
    if by == ALL:
        return Answers({key: ask(question, by=key) for key in predictors.keys()})
    if by == KERNELS:
        answer = ask_kernel_model(question)
        if measured is not None:
            answer = posterior.condition(answer, measured, ask_kernel_model)
        return replace(answer, question_notes=answer.question_notes + notes, launched=launched)
    validation.one_of(
        "answerer", by, [*predictors.keys(), ALL]
    )  # reads the files of all sources for their names
    step = predictors.step_of(question, by)
    return Answer(question, by, step, step.status, step.reason)


ask.__doc__ = (ask.__doc__ or "").replace("{fields}", list_fields(" " * 8))


def ask_kernel_model(question, simulated=True):
    """Answer of the kernel model to a question. ``simulated``: whether to simulate fleets."""
    for machine in (question.machine, question.prefill_machine) if question.prefill_machine else ():
        if machine.chip.scale_out_bandwidth is None:
            return _no_answer(question, "n/a", NO_NETWORK.format(name=machine.chip.name), apart=True)
    copies = question.resolved_layout.lanes if question.request_rate else 1
    if unfit := _unfit(question, question.deployment, copies):
        return _no_answer(question, *unfit)
    prefill = question.prefill_deployment
    if prefill and (unfit := _unfit(question.replace(output_tokens=1, trace=None), prefill)):
        status, reason = unfit
        return _no_answer(question, status, f"prefill_machine: {reason}", apart=True)
    answer = _request_answer(question, simulated) if question.is_request else _step_answer(question)
    broken = answer.feasible and invariants.of_answer(answer)
    return _no_answer(question, "n/a", broken) if broken else answer


def _step_answer(question):
    """Answer a question about one decode step."""
    deployment = question.deployment
    batch, context = question.workload.batch, question.workload.context
    step = deployment.step(batch, context)
    if not step.feasible:
        return _no_answer(question, step.status, step.reason)
    factor, warnings = step_interval(deployment, batch, context)
    return Answer(
        question, KERNELS, step, factor=factor, at_peaks=deployment.least_step(batch, context),
        confidence=load_calibration()["confidence"], warnings=warnings,
    )  # fmt: skip


def _request_answer(question, simulated):
    """Answer a question about requests: those that arrive at a fleet, or those of users who ask again."""
    running = most_running(question)
    step = step_of_requests(question, running)
    if not step.feasible:
        return _no_answer(question, step.status, step.reason)
    fleet = disaggregated = None
    if question.request_rate:
        fleet, disaggregated = _fleets(question, simulated)
        if fleet is None:
            return _no_answer(question, "n/a", _overload_reason(question))
    request = fleet.request if fleet else closed_loop(question, step, running)
    crowded = (_overload_reason(question),) if fleet and fleet.headroom <= 1 else ()
    return Answer(
        question, KERNELS, request.step, request=request, fleet=fleet, disaggregated=disaggregated,
        factor=request.step_factor, at_peaks=request.at_peaks[0], confidence=load_calibration()["confidence"],
        warnings=request.warnings + crowded,
    )  # fmt: skip


def _unfit(question, deployment, copies=1):
    """Return why a deployment cannot serve a question, as status and reason; None if it can."""
    if deployment.layout_error:
        return "n/a", deployment.layout_error
    if not question.is_request or question.max_sequences(deployment) >= copies:
        return None
    full = deployment.step(copies, question.longest)
    room = f"{deployment.machine} has no room for one user beside the weights"
    if copies > 1:
        room += " in each copy and stage"
    return "infeasible", f"{room}: {full.reason or 'another one does not fit'}"


def _remarks(question, request, fleet):
    """Remark on lengths beyond the model's, experts cut unevenly, typed formats, cached prefixes and traces."""
    remarks = ()
    most = question.model.max_context
    if most and question.longest > most:
        remarks = (REMARKS["long"].format(longest=question.longest, most=most),)
    if width := question.deployment.uneven_expert:
        remarks += (REMARKS["uneven"].format(width=width, chips=question.deployment.expert_lanes[2]),)
    own, kept, _ = calibration.checkpoint_formats(question.model)
    if kept.keys() - {"head", "router"} and question.formats[0] != own and not question.layer_formats:
        remarks += (REMARKS["whole"].format(name=format_dtype(question.formats[0])),)
    if question.cached and question.shared_prefix is None:
        full = fleet.server.again if fleet else request.concurrency < question.workload.batch
        remarks += (REMARKS["prefix"],) * bool(full)
    if question.output_tokens == 1:
        remarks += (REMARKS["one"],)
    if question.trace is not None:
        remarks += trace_notes(question, request.cached_tokens)
    return remarks


def _note_if_16_bit_is_faster(question, step):
    """Note that bf16 would be faster than the requested format, whose timed kernels have longer fixed times."""
    name = calibration.format_name(question.formats[0])
    if question.draft_tokens or name not in FORMATS or FORMATS[name].bits >= 16:
        return ()
    work = question.workload
    wide = question.deployment.replace(weights="bf16", layer_formats=None).step(work.batch, work.context)
    if not (wide.feasible and wide.total < step.total):
        return ()
    return (REMARKS["wide"].format(wide=format_number(1e3 * wide.total), name=name),)


def _fleets(question, simulated):
    """Return the fleet of a question, and the fleet with disaggregated prefill for comparison (or None)."""
    fleet = queueing.fleet(question, simulated=simulated)
    bandwidth = question.machine.chip.scale_out_bandwidth
    if question.prefill_deployment or question.replicas or not simulated or bandwidth is None:
        return fleet, None
    return fleet, queueing.fleet(question.replace(prefill_machine=question.machine), simulated=False)


def _overload_reason(question):
    """Explain why this number of machines is overloaded."""
    fleet = queueing.fleet(question.replace(replicas=None, prefill_replicas=None), simulated=False)
    if fleet is None:
        return "no number of machines has a steady state"
    kinds = (
        (question.replicas, fleet.replicas, fleet.factor, fleet.server, "machine"),
        (
            question.prefill_replicas, fleet.prefill_replicas, fleet.prefill_factor, fleet.prefill_server,
            "prefill machine",
        ),
    )  # fmt: skip
    slow_load, factor, machines, least, name = max(
        (factor * server.load(question.request_rate / machines), factor, machines, least, name)
        for machines, least, factor, server, name in kinds
        if machines
    )
    return OVERLOAD_MESSAGE.format(
        machines=machines, some=f"{name}s" if machines > 1 else name, enough=least,
        load=f"{slow_load / factor:.0%}", most=f"{1 / factor:.0%}",
    )  # fmt: skip


def _no_answer(question, status, reason, apart=False):
    """Build an answer without a time; if memory or heads are the reason, suggest a layout that fits the same chips.

    ``apart``: whether the reason is about separate prefill machines.
    """
    remarks = ()
    deployment = question.deployment
    if not apart and (status == "infeasible" or deployment.layout_error):
        fits = next((other.layout for other in deployment.alternatives if _fits(question, other)), None)
        remarks = (REMARKS["fits"].format(layout=format_layout(fits)),) if fits else ()
    step = Breakdown(status=status, reason=reason, source=KERNELS)
    return Answer(question, KERNELS, step, status, reason, question_notes=remarks)


def _fits(question, deployment):
    if question.is_request:
        return not deployment.layout_error and question.max_sequences(deployment) >= max(
            1, deployment.layout.dp
        )
    return deployment.step(question.workload.batch, question.workload.context).feasible


def _format_setup(answer):
    """Format the formats, the layout and the load of an answer.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> def setup(**load):
    ...     asked = Question("Llama 3 70B", "8x H100", **load)
    ...     return _format_setup(SimpleNamespace(question=asked)).partition("TP8, ")[2]
    >>> setup(batch=1500, context="8k"), setup(draft_tokens=1, acceptance_length=1.5)
    ('batch 1,500, context 8,192', 'batch 1, context 4,096, 1 draft per step')
    >>> setup(prompt_tokens=1000, output_tokens="100-300", concurrency=1, cached="9%")
    '1 user, prompt 1,000, output 100-300 (mean 200), 90 cached'
    >>> drafts = {"draft_tokens": 3, "acceptance_length": 2.5}
    >>> setup(prompt_tokens=1000, output_tokens=200, concurrency=2, **drafts)
    '2 users, prompt 1,000, output 200, 3 drafts per step'
    >>> [setup(prompt_tokens=1000, output_tokens=200, request_rate=rate).partition(",")[0] for rate in (1, 0.5)]
    ['1 request/s', '0.5 requests/s']
    """
    q = answer.question
    parts = [format_dtypes(q.formats), format_layout(q.resolved_layout)]
    if q.is_request:
        who = f"{q.workload.batch:,g} user{'s' if q.workload.batch > 1 else ''}"
        if q.request_rate:
            who = f"{format_number(q.request_rate)} request{'' if q.request_rate == 1 else 's'}/s"
        parts.append(
            f"{who}, prompt {_format_length(q.prompt_tokens)}, output {_format_length(q.output_tokens)}"
        )
        if q.cached:
            parts.append(f"{_format_length(q.cached)} cached")
    else:
        parts.append(f"batch {q.workload.batch:,g}, context {q.workload.context:,.0f}")
    if q.draft_tokens:
        parts.append(f"{q.draft_tokens} draft{'s' if q.draft_tokens > 1 else ''} per step")
    if q.engine:
        parts.append(f"{q.engine} engine")
    return ", ".join(parts)


def _format_length(tokens):
    """Format a length in tokens; a distribution as it was given, with its mean."""
    said = getattr(tokens, "text", "")
    return f"{said} (mean {tokens:,.0f})" if said else f"{tokens:,.0f}"


def plain(value):
    """Convert to plain Python values for JSON.

    Examples
    --------
    >>> from fractions import Fraction
    >>> plain({"numbers": (Fraction(1, 2), 3, math.inf), "words": [None, True, "text"]})
    {'numbers': [0.5, 3, None], 'words': [None, True, 'text']}
    """
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if value is None or isinstance(value, (str, bool, int)):
        return value
    return float(value) if math.isfinite(value) else None
