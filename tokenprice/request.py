"""Times and price of a request: prompt, cached prefix and answer, from the time of one machine."""

from dataclasses import replace
from functools import partial
from numbers import Real
from operator import itemgetter

from inferlib.equation import equation, frozen
from inferlib.ops import ceil, maximum, minimum, where
from inferlib.system import Breakdown, System
from inferlib.units import factor
from tokenprice import energy
from tokenprice.formatting import Screen, format_interval, format_number, format_time, values
from tokenprice.prefill import (  # fmt: skip
    STEADY,
    ArrivalProcess,
    ClosedLoop,
    added_time,
    decode_batch,
    full_steps,
    machine_time,
    prefill_profile,
    prefill_until_first_token,
    queue_time,
    token_time,
    transfer_time,
)
from tokenprice.uncertainty import (  # fmt: skip
    CAUTIONS as STEP_CAUTIONS,
    Caution,
    cautions_that_hold,
    doublings,
    error_bar,
    facts,
    load_calibration,
    sentences,
    widen_interval,
)

equation = partial(equation, "serving", chapter="price")

BISECTIONS = 40  # of the users who decode, until they are known to a part in a trillion

# Cautions on a request besides those on its steps; the last are about its first token only.
_MOST = "no time to the first token was measured here "
CAUTIONS = (
    Caution("users", "{running:,.0f} of {users:,.0f} users are answered at a time: the others wait",
            lambda facts: facts["users"] - facts["running"]),
    Caution("untold", "how many drafts are accepted depends on the text: those of a measured task are assumed",
            itemgetter("untold")),
    Caution("in_step", "copies that share experts: times may be too long where one of them prefills at a time",
            lambda facts: (facts["prefilled"] - 1) * facts["expert_chips"]),
    Caution("packed", "{packed:,.0f} prompts in a step, each timed alone: experts are read once for all of them, so "
            "prompts may cost less", lambda facts: doublings(facts["packed"], 2) / 4),
    Caution("unbalanced", "no measured run has more than four attention copies without balanced prompts: "
            "ask with prefill_machine",
            lambda facts: doublings(facts["unbalanced"], 4) * facts["expert_chips"]),
)  # fmt: skip
TTFT_CAUTIONS = (
    Caution("most_users", _MOST + "beyond {most_users:,.0f} users",
            lambda facts: doublings(facts["users"], facts["most_users"])),
    Caution("copies", _MOST + "with copies of the attention", lambda facts: facts["prefilled"] - 1),
    Caution("pack", _MOST + "with outputs of one length after a start at once, and more than two prompts "
            "in a step: first tokens come later in the simulation",
            lambda facts: doublings(facts["pack"], 2)),
    Caution("gathered", "outputs of one length: users who are prefilled together stay so, and may wait much longer",
            lambda facts: 2 * facts["gathered"]),
    Caution("prompt", "prompt {prompt:,.0f}, but " + _MOST + "beyond {most_prompt:,.0f}",
            lambda facts: doublings(facts["prompt"], facts["most_prompt"])),
)  # fmt: skip


@equation(unit="usd", seconds="s", rate="usd/s", utilisation="1 > 0")
def machine_cost(seconds, n_chips, rate, utilisation):
    """Cost of machine time, when the machine is paid around the clock and used a part of it."""
    return seconds * n_chips * rate / utilisation


@equation(prompt_time="s", output_tokens="1 > 0", step="s > 0")
def instance_ratio(prompt_time, output_tokens, step, users):
    """Prefill machines per decode machine, so that neither waits for the other."""
    return prompt_time * users / (output_tokens * step)


def prefill_wait(users, cycle, each, uneven):
    """Mean wait for separate prefill machines in a closed loop, in seconds.

    Without a wait a user asks once in ``cycle`` seconds; busy machines prefill one prompt in ``each``. A user who asks
    sees the queue of the others (mean value analysis). ``uneven``: see :class:`.PrefillProfile`.

    Examples
    --------
    >>> prefill_wait(users=100, cycle=10, each=1, uneven=1)  # 100 prompts take 100 s
    90
    """
    queue = busy = wait = 0
    for n in range(1, round(users) + 1):
        wait = max(each * (queue - busy * (1 - uneven / 2)), n * each - cycle)
        busy = each * n / (cycle + wait)
        queue = busy * (wait / each + 1)
    return wait


@frozen
class Request(Screen):
    """Machine time, latency and cost of one request."""

    step: Breakdown
    prompt: Breakdown
    system: System
    prefill_machine: System | None
    prompt_tokens: float
    cached_tokens: float
    output_tokens: float
    concurrency: float
    decode_batch: float  # of all users
    ttft: float
    tpot: float
    fresh_seconds: float
    cached_seconds: float
    price_per_chip_hour: float | None
    paid_hours_used: float
    step_factor: float | None = None  # of an interval of TPOT, see :func:`with_cautions`
    first_factor: float | None = None  # of an interval of TTFT
    prefill_factor: float | None = None  # of the time of a prefill alone: that of the machine which prefills
    warnings: tuple = ()
    reading: float | None = None  # utilisation of the prefill machines, if different
    prefill_price: float | None = None  # dollars per chip-hour of the prefill machines
    price_ratio: float = 1.0  # the most expensive seller's price over the usual one
    arrival_process: ArrivalProcess = STEADY
    slow_end: tuple = (0.0, 0.0)  # TPOT and TTFT at the slow end of a queue
    at_peaks: tuple = (0.0, 0.0)  # least times of a step and of the prefill, at the peaks of the data sheet
    ratio: float | None = None  # prefill machines per decode machine; None if one machine does both
    prefill_replicas: int = 0  # separate prefill machines of a closed loop
    steps: float = 0.0  # steps of others that delay the first token in a closed loop
    pack: float = 1.0  # prompts that a step prefills in a closed loop
    own_steps: float = 1.0  # steps that prefill the prompt alone
    prefill_share: float = 0.0  # share of machine time in which prompts are prefilled

    @property
    def seconds(self):
        """Request latency in seconds, from the question to the last token."""
        return self.ttft + (self.output_tokens - 1) * self.tpot

    def throughput(self, users):
        """Tokens per second of all users, by Little's law, limited by the machine's maximum."""
        return minimum(users * self.output_tokens / self.seconds, self.max_throughput)

    @property
    def max_throughput(self):
        """Output tokens per second of a machine that is never idle."""
        busy = self.machine_seconds if self.prefill_machine is None else self.output_seconds
        return self.output_tokens / busy

    @property
    def output_seconds(self):
        """Seconds of the decode machine for the answer."""
        return self.output_tokens * self.step.total / self.decode_batch

    @property
    def machine_seconds(self):
        """Machine seconds of the whole request: uncached and cached prompt, and answer."""
        return self.fresh_seconds + self.cached_seconds + self.output_seconds

    @property
    def tpot_interval(self):
        """Interval of TPOT, in ``confidence`` of cases."""
        low = max(self.at_peaks[0], self.tpot / self.step_factor)
        return low, max(self.slow_end[0], self.tpot * self.step_factor)

    @property
    def ttft_interval(self):
        """Interval of TTFT."""
        low = max(self.at_peaks[1], self.ttft / self.first_factor)
        return low, max(self.slow_end[1], self.ttft * self.first_factor)

    @property
    def priced(self):
        """Whether the prices of all its chips are known."""
        return self.price_per_chip_hour is not None and (
            self.prefill_machine is None or self.prefill_price is not None
        )

    @property
    def dollars(self):
        """Dollars per request; ValueError if the chip's price is unknown."""
        return sum(self._paid().values())

    @property
    def price_interval(self):
        """Factors from a price to both ends of its interval, from machine time and the most expensive seller.

        The number of machines in a fleet is fixed, so its price varies only with the price of its chips.
        """
        factor = 1.0 if any(self.slow_end) else self.step_factor
        least = min(self.at_peaks[0] / self.step.total, self.at_peaks[1] / self.prompt.total)
        return max(least, 1 / factor), factor * self.price_ratio

    @property
    def per_million(self):
        """Dollars per million uncached, cached and output tokens."""
        fresh = self.prompt_tokens - self.cached_tokens
        counts = {"input": fresh, "cached": self.cached_tokens, "output": self.output_tokens}
        return {name: 1e6 * paid / counts[name] for name, paid in self._paid().items() if counts[name]}

    def _paid(self):
        machine = self.prefill_machine or self.system
        prefill_price = self.prefill_price if self.prefill_machine else self.price_per_chip_hour
        for chip, rate in (
            (self.system.chip, self.price_per_chip_hour),
            (machine.chip, prefill_price),
        ):
            if rate is None:
                raise ValueError(f"no price of {chip.name} is known: give price=, in dollars an hour")
        an_hour = factor("usd/h", "usd/s")
        reads = machine.count, an_hour * prefill_price, self.reading or self.paid_hours_used
        decodes = self.system.count, an_hour * self.price_per_chip_hour, self.paid_hours_used
        return {
            "input": machine_cost(self.fresh_seconds, *reads),
            "cached": machine_cost(self.cached_seconds, *reads),
            "output": machine_cost(self.output_seconds, *decodes),
        }

    @property
    def joules(self):
        """Energy of the chips per output token in joules, without prefill."""
        return self._joules(self.system, self.step, self.decode_batch)

    @property
    def prompt_joules(self):
        """Energy of the chips per prompt token in joules."""
        together = self.prompt.total / (self.fresh_seconds + self.cached_seconds)
        return self._joules(self.prefill_machine or self.system, self.prompt, together * self.prompt_tokens)

    def _joules(self, system, step, tokens):
        if system.chip.power is None:
            raise ValueError(f"the power of {system.chip.name} is not known")
        return energy.of_token(system, step, tokens)

    def to_dict(self):
        """Return everything as plain numbers in SI units."""
        priced = self.priced
        counted = values(self, "prompt_tokens", "cached_tokens", "concurrency", "output_tokens")
        return counted | values(self, "ttft", "seconds", "machine_seconds") | {
            "ttft_low": self.ttft_interval[0], "ttft_high": self.ttft_interval[1],
            "usd": self.dollars if priced else None, "usd_spread": self.price_ratio,
            "usd_low": self.dollars * self.price_interval[0] if priced else None,
            "usd_high": self.dollars * self.price_interval[1] if priced else None,
            "usd_per_million": self.per_million if priced else {},
        }  # fmt: skip

    def rows(self):
        """Return TTFT, machine time and prices."""
        bound = f"prefill bound by {self.prompt.bottleneck}"
        bound += (
            "" if self.ratio is None else f"; {format_number(self.ratio)} prefill machines per decode machine"
        )
        bound += f", {self.prefill_replicas:,} paid" if self.prefill_replicas else ""
        found = [("TTFT", format_time(self.ttft, *self.ttft_interval), bound)]
        if self.priced:
            span = self.price_interval
            prices = ", ".join(
                f"{name} ${format_interval(usd, span)}" for name, usd in self.per_million.items()
            )
            paid = format_interval(100 * self.dollars, span)
            whole = self.paid_hours_used != 1 or self.prefill_replicas  # idle hours are paid too
            used = "" if whole else " of used hours"
            found.append(("Price", f"per million tokens{used}: {prices}; {paid} cents per request"))
        elif self.price_per_chip_hour is not None:
            chip = self.prefill_machine.chip.name
            found.append(("Price", f"no price of {chip} is known, which prefills: give prices"))
        parts = self.machine_seconds, self.fresh_seconds, self.cached_seconds, self.output_seconds
        said = "{} ms per request: prefill {}, cached prefix {}, decode {}"
        found.append(("Machine time", said.format(*(format_number(1e3 * seconds) for seconds in parts))))
        return found

    def screen(self):
        """Return times, prices and cautions."""
        speed = f"{format_number(1 / self.tpot)} tokens/s per user"
        token = "TPOT", format_time(self.tpot, *self.tpot_interval), speed
        return "", [token, *self.rows()], [f"Caution: {caution}." for caution in self.warnings]


def request_of(
    deployment, step, profile, output_tokens, running, *, prefill_deployment=None, price=None, utilisation=1.0,
    prefill_price=None, users=None, arrival_process=STEADY,
):  # fmt: skip
    """Combine a step of ``running`` users (a number or an array) and a prefill ``profile`` to a request.

    Copies of the attention, and pipeline stages, prefill one prompt each at the same time: a prompt takes its share of
    the machine, and waits only for prompts of its own lane. ``prefill_deployment``: that of separate prefill machines.
    ``users``: all who ask, if memory does not hold them all.
    """
    read = profile.full
    scheduler = deployment.scheduler
    prefills = (prefill_deployment or deployment).scheduler
    budget = prefills.shared_budget
    fresh_tokens = profile.tokens - profile.cached
    ingress_delay = deployment.software.ingress_delay + scheduler.batching_wait_iters * step.total
    lanes = deployment.layout.lanes
    batch = decode_batch(deployment, running, output_tokens, fresh_tokens, prefill_deployment)
    beside = maximum(batch / lanes, 1) - 1 if prefill_deployment is None else 0
    prompt_time = added_time(read, step, beside)
    own_steps = profile.steps(prefills.room(beside))
    own = prefill_until_first_token(deployment, read.total, maximum(profile.chunks, 1))
    other = prefill_until_first_token(deployment, prompt_time, profile.chunks)
    loop = ClosedLoop(
        arrival_process, output_tokens, step=step.total, prompt_time=prompt_time, own=own, other=other,
        ingress_delay=ingress_delay, chunks=profile.chunks, own_steps=own_steps, uneven=profile.uneven,
        running=batch, lanes=lanes, in_step=deployment.in_step,
        most=None if budget is None else budget / (1 + fresh_tokens / output_tokens),
        dp_balance=scheduler.dp_balance, apart=prefill_deployment is not None,
    )  # fmt: skip
    more = running > batch * (1 + 1e-9)  # prompts of others are always waiting then
    alone = where(more, loop.shared_time, loop.machine_time)
    prefill_seconds = read.total / prefill_deployment.layout.lanes if prefill_deployment else alone
    fresh_share = profile.fresh / read.total
    done = machine_time(0.0 if prefill_deployment else prefill_seconds, output_tokens, step.total, batch)
    full = zip(full_steps(loop, running, done), (loop.ttft, loop.token_wait), strict=True)
    ttft, token_wait = (where(more, *both) for both in full)
    return Request(
        step=step,
        prompt=read,
        system=deployment.machine,
        prefill_machine=prefill_deployment and prefill_deployment.machine,
        prompt_tokens=profile.tokens,
        cached_tokens=profile.cached,
        output_tokens=output_tokens,
        concurrency=running,
        ttft=ttft + queue_time(running if users is None else users, running, done, arrival_process.burst),
        decode_batch=batch,
        tpot=token_time(step.total, token_wait),
        steps=loop.steps,
        pack=loop.pack,
        own_steps=own_steps,
        prefill_share=prefill_seconds / done,
        ratio=prefill_deployment and instance_ratio(prefill_seconds, output_tokens, step.total, batch),
        fresh_seconds=fresh_share * prefill_seconds,
        cached_seconds=(1 - fresh_share) * prefill_seconds,
        price_per_chip_hour=deployment.machine.chip.price if price is None else price,
        paid_hours_used=utilisation,
        prefill_price=prefill_price,
        arrival_process=arrival_process,
    )


def step_of_requests(question, running) -> Breakdown:
    """Return the decode step of a machine on which ``running`` requests (a number or an array) are answered."""
    fresh_tokens = question.prompt_tokens - (question.cached or 0)
    batch = decode_batch(
        question.deployment, running, question.output_tokens, fresh_tokens, question.prefill_deployment
    )
    # the step would count the memory of a shared prefix for each user; max_sequences counts it once
    deployment = question.deployment.unlimited() if question.shared_prefix else question.deployment
    return deployment.step(batch, question.workload.context)


def most_running(question) -> float:
    """Users whose requests run at once: all, or as many as memory and the engine have room for."""
    most = question.deployment.scheduler.max_num_seqs * question.deployment.layout.lanes
    return min(question.workload.batch, int(question.max_sequences()), most)


def closed_loop(question, step, running) -> Request:
    """Return the request of users who ask again when answered, ``running`` of whom are answered at a time."""
    users = question.workload.batch
    profile = prefill_profile(question)
    if question.prefill_deployment:
        request = disaggregated(question, profile, step, running)
    else:
        request = request_for(question, profile, running, step, users=users)
    return with_cautions(request, question, users)


def disaggregated(question, profile, step, running) -> Request:
    """Return the request of users whose prompts are prefilled on other machines; all are paid for all hours.

    A user who decodes shares steps with those of the others who decode too: by Little's law their requests per second
    times the time of an answer, which lasts longer the more they are. Bisection finds the number at which both agree.
    If the number of prefill machines is not given, they are as many as keep the decode machine busy.
    """
    users = question.workload.batch
    full = request_for(question, profile, running, step)
    machines = question.prefill_replicas or int(ceil(full.ratio))
    reading = (full.fresh_seconds + full.cached_seconds) / machines

    def decoding(n):
        request = request_for(question, profile, n)
        cycle = request.seconds + transfer_time(question, profile.tokens)
        # the decode machine answers no more requests per second than with all for whom it has room
        cycle = max(cycle, users * full.output_seconds)
        cycle += prefill_wait(users, cycle, reading, profile.uneven)
        return replace(request, ttft=request.ttft + cycle - request.seconds)

    low, high = 1, running
    for _ in range(BISECTIONS):
        n = (low + high) / 2
        request = decoding(n)
        others = (users - 1) / request.seconds * request.output_tokens * request.tpot
        low, high = (n, high) if 1 + others > n else (low, n)
    request = decoding(high)
    used = request.paid_hours_used * users / request.seconds
    return replace(
        request, concurrency=running, ratio=full.ratio, prefill_replicas=machines, reading=used * reading,
        paid_hours_used=used * request.output_seconds,
    )  # fmt: skip


def request_for(question, profile, running, step=None, **other):
    """Return the request of a question with its prices, for ``running`` users (or an array of them) in a ``step``."""
    step = step or step_of_requests(question, running)
    other["price"] = question.chip_hour_cost(question.machine.chip)
    other["utilisation"] = question.paid_hours_used or 1
    if question.prefill_machine:
        other["prefill_price"] = question.chip_hour_cost(question.prefill_machine.chip)
    other["arrival_process"] = ArrivalProcess(question.requests_per_user, bool(question.fixed_lengths))
    return request_of(
        question.deployment, step, profile, question.output_tokens, running,
        prefill_deployment=question.prefill_deployment, **other
    )  # fmt: skip


def with_cautions(request, question, users):
    """Return the request of a question with its cautions, and with intervals widened by them and by sellers' prices.

    Those of a separate prefill machine are the ones that it has alone; they widen the interval of TTFT only.
    """
    deployment, prefills = question.deployment, question.prefills
    context = question.workload.context
    at_peaks = request.at_peaks
    if isinstance(request.tpot, Real):  # the ends of several are not shown
        at_peaks = (
            deployment.least_step(request.decode_batch, context),
            prefills.least_prefill(float(request.prompt_tokens), float(request.cached_tokens)),
        )
    known = load_calibration()["first_token"]
    # those who started at once are in rows from the start, and random arrivals do not gather
    apart = question.fixed_lengths and not (question.requests_per_user or question.request_rate)
    copies = prefills.layout.dp
    found = facts(deployment, users, context) | {
        "users": users, "running": request.concurrency, "most_users": known["users"], "most_prompt": known["prompt"],
        "prompt": request.prompt_tokens,
        "untold": float(isinstance(question.acceptance_length, str)),
        "pack": request.pack if request.arrival_process.in_rows else 1,
        "packed": min(request.pack, request.decode_batch / request.output_tokens / deployment.layout.lanes)
        if deployment.model.sparse and not question.prefill_machine else 1,
        "gathered": request.prefill_share if apart and users > 1 else 0,
        "prefilled": copies,
        "unbalanced": 1 if deployment.scheduler.dp_balance or question.prefill_machine else copies,
    }  # fmt: skip
    steps = cautions_that_hold((*STEP_CAUTIONS, *CAUTIONS), found)
    first = steps | cautions_that_hold(TTFT_CAUTIONS, found)
    told = sentences(first, found)
    bar = error_bar(question.model, deployment.layout, deployment.engine)
    step_factor = prefill_factor = widen_interval(bar["factor"], steps)
    if prefill_deployment := question.prefill_deployment:
        found = facts(prefill_deployment, users, context)
        reads = cautions_that_hold(STEP_CAUTIONS, found)
        alone = error_bar(question.model, prefill_deployment.layout, prefill_deployment.engine)["factor"]
        prefill_factor = widen_interval(alone, reads)
        told += sentences(reads, found)
        first |= {caution: max(by, first.get(caution, 0)) for caution, by in reads.items()}
    return replace(
        request,
        at_peaks=at_peaks,
        step_factor=step_factor,
        prefill_factor=prefill_factor,
        first_factor=widen_interval(bar["first"], first),
        warnings=tuple(dict.fromkeys(told)),
        price_ratio=question.price_ratio(request.system.chip),
    )
