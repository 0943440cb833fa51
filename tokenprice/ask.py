"""One question, one answer: a step or a request on one machine, by the sixth model, a source, or all of them."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Unpack

from inferlib import checks
from inferlib.equation import frozen
from inferlib.formats import FORMATS
from inferlib.principles import cost_per_million
from inferlib.system import Breakdown, System
from tokenprice import answerers, bounds, constants, energy, launch, posterior
from tokenprice.answerers import SIXTH
from tokenprice.change import doubled, narrower
from tokenprice.decode import Instance, decode_step
from tokenprice.estimate import interval, stated
from tokenprice.fleet import Fleet, fleet, reading_of, step_of
from tokenprice.layouts import layouts, refusal
from tokenprice.options import Asked
from tokenprice.prompt import Protocol, room, room_of
from tokenprice.question import REQUEST, Question, given, listed, read
from tokenprice.request import Request, answered, with_cautions
from tokenprice.words import between, figures, format_in_words, in_words, page, spanned

ALL = "all"
OTHERS = "prompts of others"
CROWDED = (
    "{machines} {some} would be asked for {load} of what they can do; above {most} the slow end of the interval has "
    "no steady state; {enough} are enough"
)
LATER = "kernels of {name} were timed to start later"
WIDER = f"In bf16 a step would take {{wide}} ms: {LATER}."
_TELLING = 1.02  # a gain below this is not worth a line of its own


@frozen
class Answer:
    """What somebody answers to a :class:`Question`.

    ``status`` is ``"ok"``, ``"infeasible"`` or ``"n/a"``, with a ``reason``. ``seconds`` is the time between two
    tokens of a user, with other users' prompts in between where requests were asked about; ``low`` and ``high`` hold
    it in ``confidence`` of cases (None where the answerer states no interval). ``step`` is the decode step by named
    terms, ``request`` what a request takes and costs. With arrivals ``fleet`` says how many machines, and ``apart``
    how many if prompts are read on machines of their own.
    """

    question: Question
    by: str
    step: Breakdown
    status: str = "ok"
    reason: str = ""
    request: Request | None = None
    fleet: Fleet | None = None
    apart: Fleet | None = None
    factor: float | None = None
    confidence: float | None = None
    cautions: tuple = ()
    remarks: tuple = ()
    launched: str = ""  # the engine whose command was asked about; shown with the commands of its layout

    @property
    def feasible(self) -> bool:
        """Whether there is a time."""
        return self.status == "ok"

    @property
    def machine(self) -> System:
        """The machine asked about."""
        return self.question.needs_machine()

    @property
    def batch(self) -> float:
        """Sequences decoded together: the batch, or the users who are answered at once."""
        return self.question.workload.batch if self.request is None else self.request.answered

    @property
    def seconds(self) -> float:
        """Seconds between two tokens of a user; ValueError where there is no answer."""
        if not self.feasible:
            raise ValueError(f"no time: {self.status}: {self.reason}")
        return self.step.total if self.request is None else self.request.token

    @property
    def span(self) -> tuple:
        """Both ends of the interval; None where the answerer states none."""
        if self.request is not None:
            return self.request.token_span
        return (
            (None, None) if self.factor is None else (self.seconds / self.factor, self.seconds * self.factor)
        )

    @property
    def low(self) -> float | None:
        """The fast end of the interval."""
        return self.span[0]

    @property
    def high(self) -> float | None:
        """The slow end of the interval."""
        return self.span[1]

    @property
    def speed(self) -> float:
        """Tokens per second of one user."""
        return 1 / self.seconds

    @property
    def throughput(self) -> float:
        """Tokens per second of all users."""
        if self.request is None:
            return self.batch / self.seconds
        if self.fleet is not None:
            return self.fleet.arrivals * self.request.output_tokens
        return self.request.throughput(self.question.workload.batch)

    @property
    def dollars_per_million(self) -> float | None:
        """Dollars for a million output tokens, prompts not included; None where no price is known."""
        if self.question.rate is None:
            return None
        if self.request is not None:
            return self.request.per_million["output"] if self.request.priced else None
        return float(cost_per_million(self.seconds, self.batch, self.machine.count, self.question.rate))

    @property
    def price_span(self) -> tuple:
        """What a price is multiplied by at both ends of its interval: of the time, and of the sellers."""
        if self.request is not None:
            return self.request.price_span
        factor = self.factor or 1.0
        return 1 / factor, factor * self.question.spread(self.machine.chip)

    @property
    def joules(self) -> float | None:
        """Joules of the chips for one output token, idle ones of a fleet included; None where power is not known.

        What prompts take is not included.
        """
        idle = 0.0 if self.fleet is None else self.fleet.idle_joules
        if self.machine.chip.power is None or idle is None:
            return None
        return float(energy.of_token(self.machine, self.step, self.batch)) + idle

    @cached_property
    def doubled(self) -> Mapping[str, float]:
        """How many times as fast a token comes by each resource twice as good; empty for other answerers."""
        return self._bought(doubled)

    @cached_property
    def narrower(self) -> Mapping[str, float]:
        """How many times as fast a token comes with weights in fp8 and int4, where these are fewer bits."""
        return self._bought(narrower)

    def _bought(self, change):
        if self.by != SIXTH or not self.feasible:
            return {}
        shared = self.fleet is None and self.question.reader is None
        return change(self.question.replace(**_step_of(self)), self.request if shared else None)

    @cached_property
    def notes(self) -> tuple:
        """Remarks on the question, and whether 16 bits would be faster than what it asks for."""
        asked = self.by == SIXTH and self.feasible and self.request is None
        return self.remarks + (_wider(self.question, self.step) if asked else ())

    @property
    def room(self) -> int | None:
        """Users, or sequences of a step, that have room beside the weights; None where no memory is stated."""
        if self.by != SIXTH or not self.feasible or self.machine.chip.memory_capacity is None:
            return None
        q = self.question
        if q.is_request:
            return int(room_of(q.replace(max_num_seqs=None), self.machine, q.layout))
        places = room(q.model, self.machine, q.workload, **q.how)
        return max(int(places), 0) if math.isfinite(places) else None

    @property
    def link(self) -> str:
        """The address, from the folder of the book on, of the calculator's page that asks the same question."""
        from tokenprice.link import link

        q = self.question
        if q.trace is None or self.fleet is None:
            return link(q)
        # what is still in the cache follows from the machines
        machines = self.fleet.machines if q.trace.blocks else q.machines
        return link(q.replace(machines=machines), cached=self.fleet.request.cached_tokens)

    @property
    def cache_tokens(self) -> tuple | None:
        """Tokens that memory holds, as an engine's log says when it starts: least, here, and most."""
        if not self.room:
            return None
        q = self.question.replace(max_num_seqs=None)
        longest = q.longest if q.is_request else q.workload.context
        places = room_of(q, self.machine, q.layout) if q.is_request else self.room
        low, high = launch.logged(q, self.launched)
        return tuple(float(by * places * longest) for by in (low, 1, high))

    @property
    def commands(self) -> dict[str, str]:
        """The command that starts what is asked about, of each engine."""
        found = {engine: launch.command(self.question, engine) for engine in launch.ENGINES}
        return {engine: command for engine, command in found.items() if command}

    @property
    def binding(self) -> str:
        """What takes most of the time between two tokens: a term of the step, or the prompts of others."""
        waits = self.seconds - self.step.total
        return OTHERS if waits > max(self.step.counted.values()) else self.step.binding

    def in_words(self) -> str:
        """The time of a token with its interval and what binds it, or why there is none."""
        if not self.feasible:
            return f"{self.status}: {self.reason}"
        span = "" if self.factor is None else f" ({_ms(self.low)} to {_ms(self.high)})"
        return f"{_ms(self.seconds)} ms{span}, bound by {self.binding}"

    def to_dict(self) -> dict:
        """Everything as plain numbers and texts, in SI units: what ``--json`` prints."""
        q = self.question
        weights, cache, kept = q.formats
        found: dict[str, Any] = {
            "question": q.words(), "by": self.by, "status": self.status, "reason": self.reason,
            "layout": in_words(q.lies), "weights": format_in_words(weights),
            "cache": format_in_words(cache), "keep": {part: format_in_words(f) for part, f in (kept or {}).items()},
        }  # fmt: skip
        if self.feasible:
            hourly = None if q.rate is None else q.rate * self.machine.count
            hourly = self.fleet.dollars_per_hour if self.fleet else hourly
            found |= {
                "seconds": self.seconds, "low": self.low, "high": self.high, "confidence": self.confidence,
                "speed": self.speed, "tokens_per_second": self.throughput, "batch": self.batch,
                "step": self.step.total, "binding": self.binding, "terms": self.step.terms,
                "usd_per_hour": hourly, "usd_per_million": self.dollars_per_million,
                "joules_per_token": self.joules, "doubled": dict(self.doubled), "narrower": dict(self.narrower),
                "room": self.room, "usd_spread": q.spread(self.machine.chip), "usd_span": list(self.price_span),
            }  # fmt: skip
        if self.request is not None:
            found["request"] = self.request.to_dict()
        if self.fleet is not None:
            found |= {"fleet": self.fleet.to_dict(), "apart": self.apart and self.apart.to_dict()}
        return _plain(found | {"cautions": list(self.cautions), "notes": list(self.notes)})

    def __str__(self):
        q = self.question
        who = "" if self.by == SIXTH else f"{answerers.label(self.by)}: "
        lines = [f"{who}{q.model.name} on {self.machine}, {_how(self)}"]
        if not self.feasible:
            return "\n".join([*lines, f"{self.status}: {self.reason}", *self.notes])
        span = ""
        if self.factor is not None:
            span = f" ({_ms(self.low)} to {_ms(self.high)} ms in {100 * self.confidence:.0f} % of cases)"
        lines.append(f"{_ms(self.seconds)} ms per token{span}, bound by {self.binding}")
        rates = f"{_count(self.speed)} tokens/s per user, {_count(self.throughput)} in all"
        if self.joules is not None:
            rates += f", about {_count(float(f'{self.joules:.2g}'))} J per token"
            idle = ", idle chips are" if self.fleet is not None else ""
            rates += "" if self.request is None else f" (prompts not counted{idle})"
        if self.request is None and self.dollars_per_million is not None:
            hourly = between(q.rate, q.rate * q.spread(self.machine.chip))
            paid = spanned(self.dollars_per_million, self.price_span)
            rates += f", ${paid} per million at ${hourly} per used chip hour"
        lines.append(rates + ("; no price is known" if q.rate is None else ""))
        if q.drafted and self.request is None:
            plain = sixth(q.replace(drafted=None, length=None)).seconds
            times = f"{plain / self.seconds:.2f} times"
            lines.append(f"without drafts {_ms(plain)} ms: drafts make it {times} as fast")
        if self.request is not None:
            lines += self.request.lines()
        if (places := self.room) is not None:
            lines.append(
                f"memory holds {places:,.0f} {'users' if q.is_request else 'sequences'} of such length"
            )
        if self.fleet is not None:
            for name, many in ((_came(q), self.fleet), ("prompts read apart", self.apart)):
                lines += [f"{name}: {'; '.join(many.lines())}"] if many else []
            lines.append("means of a formula; percentiles: tokenprice simulate, with the same words")
        elif self.request is not None:
            lines.append(f"a step alone, with no prompt in the way: {_ms(self.step.total)} ms")
        if self.doubled:
            gains = sorted(self.doubled.items(), key=lambda gain: -gain[1])
            worth = [f"{name} × {gain:.3g}" for name, gain in gains if gain >= _TELLING]
            rest = f"anything else × {_TELLING} at most"
            token = "a token without drafts" if q.drafted else "a token"
            lines.append(f"One thing twice as good makes {token} faster by: " + ", ".join([*worth, rest]))
            later = {
                name: f" ({LATER.format(name=name)})" for name, gain in self.narrower.items() if gain < 1
            }
            fewer = [f"in {name} × {gain:.3g}{later.get(name, '')}" for name, gain in self.narrower.items()]
            lines += [f"Weights of fewer bits, each asked: {', '.join(fewer)}"] if fewer else []
        lines += [*self.notes, *(f"Caution: {caution}." for caution in self.cautions)]
        if self.launched and (tokens := self.cache_tokens):
            longest = q.longest if q.is_request else q.workload.context
            low, here, high = (f"{figures(float(f'{n:.3g}'))}" for n in tokens)
            most = figures(tokens[1] / longest)
            lines.append(
                f"the engine's log should say: KV cache of {here} tokens ({low} to {high}), {most} times {longest:,.0f}"
            )
        return "\n".join([*lines, *(self.commands.values() if self.launched else ())])

    __repr__ = __str__

    def _repr_html_(self):
        from html import escape

        first, *others = str(self).splitlines()
        items = "".join(f"<li>{escape(line)}</li>" for line in others)
        return page(f"<p><b>{escape(first)}</b></p><ul>{items}</ul>")


class Answers(dict):
    """The answers of several to one question, by name; shows one line each."""

    def to_dict(self) -> dict:
        """That of each."""
        return {key: answer.to_dict() for key, answer in self.items()}

    def __str__(self):
        wide = max(len(answerers.label(key)) for key in self)
        return "\n".join(
            f"{answerers.label(key):{wide}}  {answer.in_words()}" for key, answer in self.items()
        )

    __repr__ = __str__

    def _repr_html_(self):
        from html import escape

        cells = ((escape(answerers.label(key)), escape(one.in_words())) for key, one in self.items())
        rows = "".join(f"<tr><td>{who}</td><td>{says}</td></tr>" for who, says in cells)
        return page(f"<table>{rows}</table>")


def ask(
    question, machine=None, /, *, by: str = SIXTH, chips: Mapping | None = None, measured=None,
    **options: Unpack[Asked],
) -> Answer | Answers:  # fmt: skip
    """How fast is this model on this machine, how sure is that, what does it cost, what would help?

    Parameters
    ----------
    question : Question, or a model
        A model of the catalogue by name, the path of a config.json, or a Transformer, with the fields of
        :class:`Question` as options.
    machine : str, Accelerator or System
        Such as ``"4x H100"``.
    by : str
        Who answers: the sixth model; a source such as ``"liminal2025"``, a version of one, or ``"principles"`` (the
        bound); ``"all"`` for a mapping of name to answer.
    chips : Mapping, optional
        Chips of your own by name, as from :func:`inferlib.catalog.load_chips`.
    measured : str or list of str, optional
        What was measured on the same machine, such as ``"users 32: 21.3 ms"``, the printout of a benchmark, or the path
        of a CSV: the answer is conditioned on it (:mod:`tokenprice.posterior`).
    **options
        The other fields of :class:`Question`, in words or typed, and ``prices``, by chip.

    Raises
    ------
    LookupError, ValueError, TypeError
        Naming the field, its value and what is allowed.

    Notes
    -----
    The options by what they are about::

        {fields}

    Examples
    --------
    >>> found = ask("Llama 3.3 70B", "4x H100", weights="FP8", batch=32, context="8k")
    >>> found.low < found.seconds < found.high, found.step.binding
    (True, 'cache')
    """
    notes, name = (), question
    if isinstance(question, Question):
        if machine is not None or options:
            raise ValueError("give a Question or words, not both: options beside a Question have no effect")
    else:
        options, notes = given({"model": question, "machine": machine, **options})
        question = read(Question, options, chips)
    question.needs_machine()
    question.rate  # noqa: B018  which refuses electricity of a chip whose power is not known
    if by == ALL:
        return Answers({key: _by(key, question) for key in answerers.keys()})
    if by != SIXTH:  # whose names are read from the files of all sources
        checks.one_of("answerer", by, [*answerers.keys(), ALL])
    found = _by(by, question)
    if measured is not None and by == SIXTH:
        step, request, factor, told = posterior.condition(found, measured, sixth)
        known = {"step": step, "request": request, "factor": factor}
        found = replace(found, **known, remarks=(told, *found.remarks))
    if by == SIXTH and (notes or launch.is_launch(name)):
        return replace(found, remarks=found.remarks + notes, launched=launch.engine_of(name))
    return found


ask.__doc__ = (ask.__doc__ or "").replace("{fields}", listed(" " * 8))


def _by(key, question):
    return sixth(question) if key == SIXTH else _source(key, question)


def _source(key, question):
    """What a source or the bound answers: a step, and nothing of requests or drafts."""
    more = "requests" if question.is_request else "drafts" if question.drafted else ""
    if more:
        reason = f"{answerers.label(key)} does not describe {more}: give batch and context, without drafts"
        step = Breakdown(status="n/a", reason=reason, source=key)
    else:
        step = answerers.ask(key, question.model, question.machine, question.workload, question.layout)
    return Answer(question, key, step, step.status, step.reason)


def sixth(question):
    """The sixth model's answer; its decode step is computed once."""
    q, running = question, question.workload
    if refused := _unfit(q, q.machine, q.layout, q.lies.lanes if q.arrivals else 1):
        return _no_answer(q, *refused)
    if q.reader is not None:
        same = q.arrivals and q.reader == q.machine  # whose layout it then shares
        prompts = q.replace(output=1, trace=None)
        if refused := _unfit(prompts, q.reader, q.layout if same else None, 1):
            return _no_answer(q, *refused, q.reader)
    if q.is_request:
        running = running.replace(batch=min(running.batch, int(room_of(q, q.machine, q.layout))))
    step = step_of(q, q.machine, q.layout, _together(q, running.batch))
    if not step.feasible:
        return _no_answer(q, step.status, step.reason)
    many = apart = None
    if q.arrivals:
        many, apart = _fleets(q)
        if many is None:
            return _no_answer(q, "n/a", _crowded(q))
        request, step = many.request, many.request.step
    else:
        request = _request(q, step, running.batch) if q.is_request else None
    if request is None:
        factor, cautions = interval(q.model, q.machine, running, q.layout, q.engine, step, q.formats[2])
        broken = bounds.of_step(step.total, factor)
    else:
        factor, cautions = request.step_factor, request.cautions
        broken = bounds.of_request(q, request, q.layout, many)
        broken = broken or (apart and bounds.of_request(q, apart.request, q.layout, apart))
    if broken:
        return _no_answer(q, "n/a", broken)
    most, remarks = q.model.max_context, ()
    longest = q.longest if q.is_request else running.context
    if most and longest > most:
        remarks = (
            f"A sequence of {longest:,.0f} tokens is longer than the model's own maximum, {most:,.0f}.",
        )
    remarks += _recorded(q, request)
    return Answer(
        q, SIXTH, step, request=request, fleet=many, apart=apart, factor=factor,
        confidence=stated()["confidence"], cautions=cautions, remarks=remarks,
    )  # fmt: skip


def _unfit(q, machine, layout, copies):
    """Why a machine does not serve a question, as status and reason; None where it does."""
    reason = refusal(q.model, machine, layout)
    reason = reason or Instance(q.model, machine, q.workload, layout, q.formats[2]).refusal()
    if reason:
        return "n/a", reason
    if not q.is_request or room_of(q, machine, layout) >= copies:
        return None
    each = " in each copy and stage" if copies > 1 else ""
    full = step_of(q, machine, layout, copies, context=q.longest)
    room = f"{machine} has no room for one user beside the weights{each}"
    return "infeasible", f"{room}: {full.reason or 'another one does not fit'}"


def _wider(q, step):
    """A note where 16 bits would be faster than what was asked for: kernels of fewer bits were timed to start later."""
    name = constants.format_name(q.formats[0])
    if q.drafted or name not in FORMATS or FORMATS[name].bits >= 16:
        return ()
    machine = replace(q.machine, chip=q.machine.chip.replace(memory_capacity=None))
    work = q.workload.replace(weights="bf16")
    wide = decode_step(q.model, machine, work, q.layout, engine=q.engine).total
    return (WIDER.format(wide=_ms(wide), name=name),) if wide < step.total else ()


def _recorded(q, request):
    """What of a trace a formula takes, and what it leaves to a simulation."""
    if q.trace is None:
        return ()
    trace, come = q.trace, ""
    if trace.bursts is not None and abs(trace.bursts - 1) > 0.05:
        uneven = f"in bursts, {figures(trace.bursts)} times as uneven"
        come = f" They come {uneven if trace.bursts > 1 else 'more evenly than at random'}."
    skipped = f" {trace.skipped:,} more have no answer and are left out." if trace.skipped else ""
    found = (
        f"{len(trace.arrivals):,} requests of {trace}: the formula takes their lengths, and that they come at random."
        f"{come} tokenprice simulate plays them.{skipped}",
    )
    if not q.trace.blocks:
        return found
    shared, held = (float(one) / q.prompt for one in (q.trace.shared, request.cached_tokens))
    return (
        *found,
        f"Prompts share {shared:.0%} of their tokens; memory still holds {held:.0%} when they come.",
    )


def _together(q, running):
    """How many sequences a step has, of a batch or of users who ask again."""
    if not q.is_request or q.arrivals:
        return running
    return answered(running, q.layout, q.output, q.pieces, q.reader)


def _fleets(q):
    """The fleet that a question asks about, and beside one whose machines do both the one whose do not."""
    if q.reader is not None:
        return fleet(q, q.machine, q.layout, reader=q.reader, machines=q.machines), None
    both = fleet(q, q.machine, q.layout, machines=q.machines)
    return both, None if q.machines else fleet(q, q.machine, q.layout, reader=q.machine)


def _crowded(q):
    """Why so many machines are no answer."""
    enough = fleet(q.replace(machines=None), q.machine, q.layout, reader=q.reader)
    if enough is None:
        return "no number of machines has a steady state"
    load, some = enough.station.load(q.arrivals / q.machines), "machines" if q.machines > 1 else "machine"
    said = {"machines": q.machines, "some": some, "enough": enough.machines}
    return CROWDED.format(load=f"{load:.0%}", most=f"{1 / enough.factor:.0%}", **said)


def _request(q, step, running):
    """What a request takes of a machine that decodes by this step for so many users."""
    own = q.layout if q.reader is None else None
    protocol = Protocol(q.rounds, bool(q.equal), q.hold or 0.0)
    read = reading_of(q, q.reader or q.machine, own)
    asks = {"chunk": q.chunk, "asking": q.workload.batch, "protocol": protocol}
    made = read.request(q, q.machine, q.layout, step, running, q.reader, **asks)
    if q.readers:  # who ask again wait until so many machines have read the prompts of all
        wait = q.workload.batch * made.prompt.total / q.readers - (made.output_tokens - 1) * made.token
        made = replace(made, first_token=max(made.first_token, wait))
    return with_cautions(made, q, q.layout, q.workload.batch)


def _no_answer(question, status, reason, reader=None):
    """Why there is none, and where memory or heads are the reason, a layout of the same chips that fits."""
    remarks = ()
    if reader is None and (
        status == "infeasible" or refusal(question.model, question.machine, question.layout)
    ):
        for layout in layouts(question.model, question.machine.chip, question.machine.count):
            other = question.replace(layout=layout)
            if layout != question.lies and _fits(other):
                remarks = (f"{in_words(layout)} fits.",)
                break
    step = Breakdown(status=status, reason=reason, source=SIXTH)
    return Answer(question, SIXTH, step, status, reason, remarks=remarks)


def _fits(question):
    q = question
    if q.is_request:
        return room_of(q, q.machine, q.layout) >= max(1, q.layout.dp)
    return decode_step(q.model, q.machine, q.workload, **q.how).feasible


def _step_of(answer):
    """The fields that make a request's question one about its step."""
    q = answer.question
    if not q.is_request:
        return {}
    lost = dict.fromkeys((*REQUEST, "reader", "readers", "chunk"))
    return lost | {"batch": answer.batch, "context": q.workload.context}


def _how(answer):
    """Formats, layout and load in words."""
    q = answer.question
    weights, cache, kept = q.formats
    parts = [f"weights in {format_in_words(weights)}"]
    parts += [f"{part} in {format_in_words(name)}" for part, name in (kept or {}).items()]
    parts += [f"cache in {format_in_words(cache)}", in_words(q.lies)]
    if q.is_request:
        users = q.workload.batch
        who = _came(q) if q.arrivals else f"{users:,g} user{'s' if users > 1 else ''}"
        parts.append(f"{who}, prompt {_length(q.prompt)}, output {_length(q.output)}")
    else:
        parts.append(f"batch {q.workload.batch:,g}, context {q.workload.context:,.0f}")
    parts += [f"{q.drafted} drafts per step"] if q.drafted else []
    parts += [f"{q.engine} engine"] if q.engine else []
    return ", ".join(parts)


def _length(tokens):
    """Tokens in words: as said where they differ, and their mean."""
    said = getattr(tokens, "said", "")
    return f"{said} (mean {tokens:,.0f})" if said else f"{tokens:,.0f}"


def _came(q):
    return f"{figures(q.arrivals)} request{'' if q.arrivals == 1 else 's'}/s"


def _plain(value):
    """Python's own numbers, for JSON."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, (str, bool, int)):
        return value
    return float(value) if math.isfinite(value) else None


def _ms(seconds):
    return figures(1e3 * seconds)


def _count(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
