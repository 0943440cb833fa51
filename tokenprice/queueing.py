"""Fleets in an open loop: how many machines, at what load, with what waiting times and speed.

The requests per second that a machine can serve are a closed formula, :func:`capacity`; load, headroom and refusal
follow from it. Waiting times are simulated (:mod:`tokenprice.replica`). When many machines are compared, a fixed point
(:meth:`Server.steady`) stands in for the simulation, and only the best are simulated.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from math import ceil, exp, floor, inf, isfinite

from inferlib.equation import equation, frozen, unchecked
from inferlib.ops import maximum, minimum
from inferlib.optional_imports import np
from inferlib.system import System
from tokenprice import energy, workload
from tokenprice.formatting import Screen, format_number, format_time, values
from tokenprice.prefill import longest_pack, prefill_profile, prefill_until_first_token, transfer_time
from tokenprice.question import Question
from tokenprice.replica import Costs, Played, counted, play, uniforms
from tokenprice.request import Request, request_for, with_cautions
from tokenprice.scheduler import MAX_SEQUENCES, Scheduler

equation = partial(equation, "serving", chapter="price")

MONTH = 730  # hours
MAX_ITERATIONS = 60  # of the fixed point in Server.steady
LEAST_TOKENS = 1e-9  # fewest tokens of a step per sequence; not 0, because it is a divisor
NEGLIGIBLE_STEP = 1e-6  # time of a step without decoding sequences, as a share of a prompt's time
REQUESTS = 2000  # requests simulated for a mean, times the unevenness of prompts
LONGER = 8  # times as many are simulated where memory runs full
WARM = 1  # uncounted requests before the first and at most after the last, in multiples of a copy's sequences
LEAST_WARM = 300
RARELY_FULL = 0.8  # share of the mean number of sequences in memory at which it is rarely full
WORTH_SAYING = 1.05  # smallest gain in requests per second that an answer mentions
MEMORY_FULL = (
    "prompts are read again when the load rises; with max_num_seqs {most} a machine serves {gain} × as many "
    "requests"
)
TRIES = 10  # numbers of machines that are simulated, upwards from the answer of the fixed point
TOGETHER = 20  # machines that are simulated together where the router looks at their load


@equation(cache_tokens="1 > 0", held="1 > 0", output_tokens="1 > 0")
def most_sequences(cache_tokens, held, max_num_seqs, budget, prompt_tokens, output_tokens, rides):
    """Sequences of a copy that is never idle: limited by memory, by the engine, or by the tokens of a step.

    Each sequence takes one of the ``budget`` tokens of a step, if it ``rides`` along with prefill, and a new prompt
    every ``output_tokens`` steps. ``held``: mean cache tokens of a sequence.
    """
    each = maximum(rides + prompt_tokens / output_tokens, LEAST_TOKENS)
    return minimum(minimum(cache_tokens / held, max_num_seqs), budget / each)


@equation(sequences="1 > 0", output_tokens="1 > 0", fresh_tokens="1 > 0")
def prompts_read_again(sequences, output_tokens, fresh_tokens):
    """How often a prompt is prefilled again when memory is always full and nothing is reserved.

    The memory of a finished answer is filled with prompts at once. The running sequences, each longer by a token per
    step, then take back as many tokens as an answer has, and the newest sequences are preempted. There are
    ``output_tokens`` / ``sequences`` steps between the ends of two answers; growth in the first of them is not taken
    back.

    Examples
    --------
    >>> prompts_read_again(sequences=100, output_tokens=900, fresh_tokens=300)
    2.7
    """
    return output_tokens / fresh_tokens * output_tokens / (output_tokens + sequences)


@equation(unit="1/s", output_tokens="1 > 0", step="s > 0", prompt_time="s", copies="1 > 0")
def capacity(sequences, output_tokens, step, prompt_time, copies, again):
    """Requests per second of a copy that is never idle: each step ends and begins equally many answers.

    A step takes its own time and the prefills of the prompts that begin, including those prefilled ``again`` and those
    of other copies in lockstep.

    Examples
    --------
    >>> capacity(sequences=100, output_tokens=200, step=0.01, prompt_time=0.02, copies=1, again=0)
    25.0
    """
    begun = sequences / output_tokens
    return begun / (step + prompt_time * longest_pack(begun * (1 + again), copies, 1 + again))


@equation(unit="s", step="s > 0", prompt_time="s")
def residual(step, prompts, prompt_time, uneven):
    """Mean remaining time of the step in progress when a request arrives (mean residual life of a renewal process).

    A step has ``prompts`` prefills on average, with Poisson variance, so long steps are met more often than short ones
    (the Pollaczek-Khinchine term). ``uneven``: mean square of the prompts' seconds over the square of their mean.
    """
    whole = step + prompts * prompt_time
    return (whole + prompts * uneven * prompt_time**2 / whole) / 2


@frozen
class SteadyState:
    """Steady state of one machine: load, and means over its requests in seconds; ``wait`` ends when prefill begins.

    ``requests``: how many were simulated; 0 if the means come from a formula.
    """

    load: float
    running: float
    wait: float
    tpot: float
    ttft: float
    requests: int = 0


@dataclass(frozen=True)
class Server:
    """One machine as ``copies`` of a model, each with its ``costs`` and scheduler.

    ``output``: mean output tokens of a request. ``held``: mean cache tokens of a sequence.
    """

    costs: Costs
    scheduler: Scheduler
    output: float
    held: float
    copies: int = 1

    @cached_property
    def prompt(self):
        """Mean seconds of a prompt, and their mean square over the square of the mean."""
        passes = self.costs.passes
        mean = sum(passes) / len(passes)
        return mean, 1 + workload.squared_cv(passes) if mean else 1.0

    def step(self, n):
        """Seconds of a step with ``n`` decoding sequences in each copy."""
        base, each = self.costs.step(max(floor(n), 1))
        return base + each * self.context

    @cached_property
    def context(self):
        """Mean context length, in tokens."""
        costs = self.costs
        prompt = sum(costs.prompts) / len(costs.prompts)
        return prompt + (1 + workload.squared_cv(costs.answers)) * self.output / 2

    @property
    def together(self) -> int:
        """Copies that prefill at different times and wait for one another."""
        return 1 if self.scheduler.dp_balance else self.costs.in_step

    @cached_property
    def sequences(self) -> float:
        """Sequences of a copy that is never idle."""
        policy = self.scheduler
        most = max(min(self.costs.tokens / self.held, policy.max_num_seqs, MAX_SEQUENCES), 1)
        budget = policy.max_num_batched_tokens
        return most_sequences(most, 1, most, budget, self.fresh, self.output, int(policy.rides))

    @cached_property
    def fresh(self) -> float:
        """Mean uncached tokens of a prompt."""
        return sum(self.costs.fresh) / len(self.costs.fresh)

    @cached_property
    def again(self) -> float:
        """Mean number of times that a copy which is never idle prefills a prompt again."""
        full = self.sequences >= max(self.costs.tokens / self.held, 1) and not self.scheduler.reserve
        return prompts_read_again(self.sequences, self.output, self.fresh) if full and self.fresh else 0.0

    @cached_property
    def better_limit(self) -> tuple | None:
        """``max_num_seqs`` at which memory is rarely full, and the gain in requests per second.

        None if memory is not the limit, or the engine reserves memory for whole answers.
        """
        if not self.again or (most := floor(RARELY_FULL * self.sequences)) < 1:
            return None
        gain = replace(self, scheduler=self.scheduler.replace(max_num_seqs=most)).capacity / self.capacity
        return (most, gain) if gain > WORTH_SAYING else None

    @cached_property
    def capacity(self) -> float:
        """Requests per second of all copies."""
        n = self.sequences
        return self.copies * capacity(n, self.output, self.step(n), self.prompt[0], self.together, self.again)

    def load(self, arrivals) -> float:
        """Share of the machine's capacity that this request rate uses."""
        return arrivals / self.capacity

    def slower(self, by):
        """Return the same machine with every time multiplied by a factor."""
        return self if by == 1 else replace(self, costs=self.costs.slower(by))

    def steady(self, arrivals) -> SteadyState:
        """Find means by a fixed point: running = rate x answer x step(running, prefills).

        Above capacity all sequences run, and the queue grows without end.
        """
        load = self.load(arrivals)
        each = arrivals / self.copies
        if load >= 1:
            running = self.copies * self.sequences
            return SteadyState(load, running, inf, running / (self.capacity * self.output), inf)
        read, uneven = self.prompt
        after = max(self.output - 1, 0)
        tpot, came, plain, n = self.fixed_point(each)
        idle = exp(-each * after * tpot) * plain  # the number of sequences that decode is Poisson distributed
        pieces = max(1 / self.most_prompts(n), 1)
        if pieces > 1:  # one prompt after another, each with the steps that its chunks share
            pack = read
            alone = read + pieces * plain
            wait = (each * alone**2 * uneven / (1 - each * alone) if each * alone < 1 else inf) / 2
        else:
            wait = residual(plain, came, read, uneven) - idle / 2
            # prompts that arrived during the step in progress are prefilled together
            pack = read * (1 + 2 * each * wait)
        steps = (plain - idle) / 2 + pieces * plain - idle
        ttft = self.costs.ingress_delay + self.costs.late + wait + pack + steps
        return SteadyState(load, float(each * self.copies * (ttft + after * tpot)), wait, tpot, ttft)

    def most_prompts(self, n):
        """Prompts for which a step with ``n`` sequences has tokens; a fraction if one prompt takes several steps."""
        policy = self.scheduler
        room = max(policy.max_num_batched_tokens - n * policy.rides, 1)
        return room / self.fresh if self.fresh else inf

    @unchecked
    def fixed_point(self, each):
        """Find the fixed point at ``each`` requests per second per copy.

        Returns the time between two tokens, the prompts that arrive in it, the time of a step without prefill, and the
        decoding sequences.
        """
        gap = self.step(1)
        n = 1.0
        for _ in range(MAX_ITERATIONS):
            came = each * gap
            most = self.most_prompts(n)
            plain = self.step(min(n, self.sequences))
            new = plain + self.prompt[0] * longest_pack(came, self.together, min(most, 1), most)
            gap = (gap + new) / 2
            n = max(each * max(self.output - 1, 0) * gap, 1)
        return gap, came, plain, n

    @property
    def requests(self) -> int:
        """Requests simulated for a mean: more if few prompts take most of the time."""
        return floor(REQUESTS * self.prompt[1] + 0.5)

    def played(self, arrivals, requests=None, seed=0, machines=1, until_first=False) -> Played:
        """Simulate ``requests`` (default :attr:`requests`) on one of ``machines`` that share ``arrivals``.

        ``until_first``: only up to the first tokens, if single answers do not matter. Machines that get requests at
        random or in turn are independent, so one copy stands for all; with a router that looks at loads, up to
        :data:`TOGETHER` machines are simulated.
        """
        at = self.costs
        each = arrivals * self.costs.in_step / self.copies / machines
        looks = self.scheduler.router == "least loaded"
        groups = machines * self.copies // at.in_step
        held = min(self.load(arrivals / machines), 1.0) * self.sequences * at.in_step
        together = min(groups, TOGETHER) if looks else 1
        warm = max(ceil(WARM * held * together), LEAST_WARM)
        requests = requests or self.requests
        n = requests + 2 * warm
        turns = groups if self.scheduler.router == "round robin" else 1
        gaps = -np.log(uniforms(seed, 0, n * turns)).reshape(n, turns).sum(axis=1)
        came = np.cumsum(gaps / (each * together * turns)).tolist()
        last = warm + requests
        start = min(self.fixed_point(arrivals / machines / self.copies)[-1], self.sequences)
        found, fleet = play(
            at, self.scheduler, came, together, seed=seed, start=start, until=last if until_first else None
        )
        return counted(at, found, fleet, warm, last, (came[warm], came[last - 1]))

    def state(self, arrivals, played) -> SteadyState:
        """Return the means of a simulation, with the load."""
        running = played.running * self.copies / self.costs.in_step
        first, waits = (float(np.mean(times)) for times in (played.first, played.waits))
        return SteadyState(
            self.load(arrivals), running, waits, played.gap or self.step(1), first, len(played.first)
        )


def server_of(question, profile) -> Server:
    """Return the machine that decodes a question's requests; ``profile``: of their prefill, there or elsewhere."""
    deployment = question.deployment
    lanes = deployment.layout.lanes
    scheduler = deployment.scheduler
    prompts, fresh, passes = profile.own, profile.fresh_tokens, profile.passes
    if question.prefill_deployment:
        fresh, passes = (0,) * len(prompts), (0.0,) * len(prompts)
    room = question.max_sequences()
    context = question.workload.context
    held = 2 * context - question.prompt_tokens if scheduler.reserve else context
    held -= question.shared_prefix or 0
    tokens = room * held / lanes if isfinite(room) else inf
    step = step_table(question, tokens, min(prompts))
    costs = Costs(
        step, tokens, prompts, fresh, passes, question.output_lengths, deployment.software.ingress_delay,
        in_step=int(deployment.in_step)
    )  # fmt: skip
    busy = Server(costs, scheduler, float(question.output_tokens), held, lanes)
    if question.prefill_deployment:
        return busy
    full = lanes * busy.sequences
    if not question.request_rate:
        full = min(question.workload.batch, full)
    if full > lanes:  # extra step time per prompt on a machine that is never idle
        passes = profile.added(deployment.unlimited().step(full, context))
    own = prefill_until_first_token(deployment, profile.full.total, max(profile.chunks, 1))
    late = own - sum(passes) / len(passes)
    return replace(busy, costs=replace(costs, passes=passes, late=late))


def step_table(question, tokens, shortest):
    """Seconds of a step with 1, 2, ... sequences per copy: without context of their own, and per token of it.

    A sequence has ``shortest`` tokens of its own at least. The prefix that all share is read for each of them: engines
    run no attention that reads it once (cascade attention), unless asked to.
    """
    deployment = question.deployment
    most = min(deployment.scheduler.max_num_seqs, MAX_SEQUENCES, tokens / shortest + 1)
    numbers = deployment.layout.lanes * np.arange(1, max(int(most), 1) + 1)
    roomy = deployment.unlimited()
    prompt = question.prompt_tokens
    ends = prompt, max(2 * question.workload.context - prompt, prompt + 1)
    low, high = (np.broadcast_to(roomy.step(numbers, one).total, numbers.shape) for one in ends)
    each = (high - low) / (ends[1] - ends[0])
    base = (low - each * (ends[0] - (question.shared_prefix or 0))).tolist()
    return StepTable(tuple(base), tuple(each.tolist()))


@dataclass(frozen=True)
class StepTable:
    """Seconds of a step with 1, 2, ... sequences, and the increase per token of context of each."""

    base: tuple
    each: tuple

    def __call__(self, n):
        return self.base[n - 1], self.each[n - 1]


@dataclass(frozen=True)
class ConstantStep:
    """A step of the same ``seconds`` for any number of sequences."""

    seconds: float

    def __call__(self, _):
        return self.seconds, 0.0


def prefill_server(profile, deployment) -> Server:
    """A prefill-only machine: answers of one token, with steps of negligible time."""
    soon = NEGLIGIBLE_STEP * profile.full.total
    costs = Costs(
        ConstantStep(soon), inf, profile.prompts, profile.fresh_tokens, profile.passes, (1.0,),
        in_step=int(deployment.in_step),
    )  # fmt: skip
    return Server(costs, deployment.scheduler, 1.0, 1.0, deployment.layout.lanes)


@frozen
class Fleet(Screen):
    """A number of machines for a request rate, in steady state.

    ``estimate`` is the state of one machine; ``slow_end`` its state at the slow end of a step's interval, ``factor``
    times as slow (``prefill_factor``: a prefill machine), with infinite times where its queue grows without end. If
    ``prefill_machine`` is given, ``prefill_replicas`` such machines prefill the prompts; ``prefill_server`` is one
    of them. ``request`` is the mean request, with its price, and with intervals that hold the slow end.
    ``max_num_seqs``: the limit that :func:`tokenprice.decide` chose, at which memory is hardly ever full.
    """

    request_rate: float
    system: System
    replicas: int
    server: Server
    factor: float
    estimate: SteadyState
    slow_end: SteadyState
    request: Request
    prefill_machine: System | None = None
    prefill_replicas: int = 0
    prefill_server: Server | None = None
    prefill_factor: float = 1.0
    max_num_seqs: int | None = None

    @property
    def machines(self) -> list:
        """Each kind of machine: the system, how many of it, used share of paid hours, dollars per chip-hour."""
        paid = self.request
        found: list = [(self.system, self.replicas, paid.paid_hours_used, paid.price_per_chip_hour)]
        if self.prefill_machine:
            found.append((self.prefill_machine, self.prefill_replicas, paid.reading, paid.prefill_price))
        return found

    @property
    def prefill_load(self) -> float:
        """Share of the capacity of the prefill machines that is used; 0 if there are none."""
        reads = self.prefill_server
        return reads.load(self.request_rate / self.prefill_replicas) if reads else 0.0

    @property
    def chips(self) -> int:
        """Number of chips of all machines."""
        return sum(number * system.count for system, number, *_ in self.machines)

    @property
    def dollars_per_hour(self) -> float | None:
        """Dollars per hour of all machines, busy or not."""
        return self.request.dollars * self.request_rate * 3600 if self.request.priced else None

    @property
    def idle_joules(self) -> float | None:
        """Energy of idle chips per output token in joules; None if a chip's power is unknown."""
        joules = 0.0
        tokens = self.request_rate * self.request.output_tokens
        for system, number, used, _ in self.machines:
            if system.chip.power is None:
                return None
            idle = number * max(1 - (used or 0), 0) * system.count
            joules += float(energy.idle_energy(energy.draw(), system.chip.power, idle, tokens))
        return joules

    @property
    def headroom(self) -> float:
        """Factor by which the request rate can grow before queues grow without end at the slow end of the interval."""
        return 1 / max(self.estimate.load * self.factor, self.prefill_load * self.prefill_factor)

    def to_dict(self) -> dict:
        """Return everything as plain numbers in SI units."""
        return (
            values(self, "headroom", "request_rate", "replicas", "prefill_replicas", "chips", "prefill_load")
            | values(self.estimate, "load", "running", "wait", "ttft", "tpot")
            | {
                "wait_high": self.slow_end.wait,
                "tpot_high": self.slow_end.tpot,
                "usd_per_hour": self.dollars_per_hour,
                "usd_per_million": self.request.per_million if self.request.priced else {},
            }
        )

    @property
    def machinery(self) -> str:
        """The number of machines and their load, in words."""
        own = f"{self.replicas} × ({self.system})"
        busy = f"{self.estimate.load:.0%} load"
        if self.max_num_seqs:
            busy += f" with max_num_seqs {self.max_num_seqs}"
        read = f"{self.prefill_replicas} × ({self.prefill_machine}) prefill at {self.prefill_load:.0%}"
        return f"{read}, {own} decode at {busy}" if self.prefill_machine else f"{own} at {busy}"

    @property
    def dollars_per_month(self) -> float | None:
        """Dollars per month of 730 hours."""
        return None if self.dollars_per_hour is None else MONTH * self.dollars_per_hour

    def rows(self):
        """Return lines of the answer: machines and load, queueing times, rent."""
        late = format_time(self.slow_end.wait)
        room = f"room for {format_number(self.headroom)} × this load"
        found = [
            ("Replicas", f"{self.machinery}, {format_number(self.estimate.running)} running in each, {room}"),
            ("Queue", f"{format_time(self.estimate.wait)} before prefill ({late} at the slow end)"),
        ]
        if self.server.better_limit:
            most, gain = self.server.better_limit
            found += [("Memory full", MEMORY_FULL.format(most=most, gain=format_number(gain)))]
        if self.dollars_per_hour is not None:
            paid = f"${self.dollars_per_hour:,.2f} per hour, ${self.dollars_per_month:,.0f} per month"
            found += [("Rent", paid)]
        return found

    def screen(self):
        """Return the mean request, the machines and their rent."""
        _, rows, _ = self.request.screen()
        return "", rows + self.rows(), []


def by_number(of):
    """Keep the results of a method of a number of machines, which matters only to prefixes that a trace shares."""

    def kept(fleets):
        found = cache(partial(of, fleets))
        trace = fleets.question.trace
        return found if trace and trace.blocks else lambda n: found(1)

    return cached_property(kept)


@frozen
class Fleets:
    """Fleets of a question by their numbers of machines and of separate prefill machines (0: none).

    A state is that of one machine that decodes, with the wait and TTFT of a request; at the slow end of the interval
    its load is the higher one of both kinds.
    ``kept``, ``sure`` and ``simulated``: see :func:`fleet`. No state is simulated twice.
    """

    question: Question
    kept: Callable
    sure: bool
    simulated: bool

    @by_number
    def profile(self, n):
        """Prefill of the prompts on one of ``n`` machines."""
        return prefill_profile(self.question, n)

    @by_number
    def server(self, n):
        """One of ``n`` machines that decode."""
        return server_of(self.question, self.profile(n))

    @by_number
    def prefill_server(self, n):
        """One of ``n`` separate machines that prefill."""
        return prefill_server(self.profile(n), self.question.prefills)

    def request(self, n, users):
        """Return the mean request on one of ``n`` machines with this many users."""
        question = self.question
        users = max(min(users, question.max_sequences()), 1)
        deployment = question.deployment
        step = deployment.unlimited().step(max(users, deployment.layout.lanes), question.workload.context)
        return with_cautions(request_for(question, self.profile(n), users, step), question, users)

    @cached_property
    def alone(self):
        """The request on a machine with one user in each copy."""
        return self.request(1, self.question.deployment.layout.lanes)

    @cached_property
    def factors(self):
        """How many times as slow the machines of both kinds are at the slow end of their intervals."""
        return {self.server: self.alone.step_factor, self.prefill_server: self.alone.prefill_factor}

    def able(self, n, prefill_replicas=0):
        """Whether machines have a steady state, a load below 1: at the slow end too, unless the reader has so many."""
        question = self.question
        kinds = (
            (self.server, n, question.replicas),
            (self.prefill_server, prefill_replicas, question.prefill_replicas),
        )
        return all(
            self.factors[kind] ** (not given) * kind(many).load(question.request_rate / many) < 1
            for kind, many, given in kinds
            if many
        )

    @cached_property
    def end(self):
        """Keep what :meth:`found` finds."""
        return cache(self.found)

    def found(self, kind, n, slow):
        """Find the state of one of ``n`` machines of a kind, at the slow end or not."""
        rate = self.question.request_rate
        each = rate / n
        one = kind(n).slower(self.factors[kind] ** slow)
        if not self.simulated or one.load(each) >= 1:
            return one.steady(each)
        played = partial(one.played, rate, machines=n, until_first=True)
        found = played()
        if found.preempted and not slow and self.kept(one.state(each, found)):
            # full memory is rare and lasts long, so a short simulation may miss how late it makes first tokens
            found = played(LONGER * one.requests)
        return one.state(each, found)

    def state(self, n, prefill_replicas, slow=False):
        """Return the state of ``n`` machines; None if they are not able."""
        if not self.able(n, prefill_replicas):
            return None
        question = self.question
        found = self.end(self.server, n, slow)
        before = transfer_time(question, float(question.prompt_tokens))
        if prefill_replicas:
            reads = self.end(self.prefill_server, prefill_replicas, slow)
            before += reads.ttft
            found = replace(found, wait=reads.wait, load=max(found.load, slow * reads.load))
        elif question.prefill_machine:
            before += self.profile(1).full.total * self.alone.prefill_factor**slow
        return replace(found, ttft=before + found.ttft)

    def slow_end(self, n, prefill_replicas):
        """Return the state at the slow end of both TPOT and TTFT."""
        slow = self.state(n, prefill_replicas, True)
        first = self.state(n, prefill_replicas).ttft * self.alone.first_factor
        return replace(slow, ttft=max(slow.ttft, first))

    def good(self, n, prefill_replicas=0):
        """Whether the state of a fleet is kept, at the slow end if ``sure``."""
        found = self.state(n, prefill_replicas, self.sure)
        # if the slow end alone is too late, the estimate is not simulated
        return found and self.kept(found) and (not self.sure or self.kept(self.slow_end(n, prefill_replicas)))

    def fewest(self, *n):
        """Return the fewest machines that are good, or separate prefill machines of ``n``; None if no number is."""
        least = smallest_number(partial(self.able, *n))
        return least and smallest_number(partial(self.good, *n), least)

    def near(self, n, prefill_replicas):
        """Return numbers near to these that are good, if :data:`TRIES` tries find some."""
        if not prefill_replicas and n > 1 and self.good(n - 1):
            n -= 1
        for turn in range(TRIES):
            if self.good(n, prefill_replicas):
                break
            if prefill_replicas and turn % 2 == 0:
                prefill_replicas += 1
            else:
                n += max(n // 20, 1)
        return n, prefill_replicas

    def fleet(self, n, prefill_replicas):
        """Return the fleet of these numbers of machines, with its mean request."""
        question = self.question
        rate = question.request_rate
        now, slow = self.state(n, prefill_replicas), self.slow_end(n, prefill_replicas)
        request = self.request(prefill_replicas or n, max(now.running, 1))
        used = rate * request.output_seconds / n
        reading = rate * (request.fresh_seconds + request.cached_seconds) / (prefill_replicas or n)
        if not prefill_replicas:
            used = reading = used + reading
        lanes = question.deployment.layout.lanes  # at times a copy has one user
        least = question.deployment.least_step(lanes, min(workload.support(question.prompt_tokens)))
        request = replace(
            request, tpot=now.tpot, ttft=now.ttft, paid_hours_used=used, reading=reading,
            slow_end=(slow.tpot, slow.ttft), at_peaks=(least, request.at_peaks[1]),
        )  # fmt: skip
        return Fleet(
            rate, question.machine, n, self.server(n), self.alone.step_factor, now, slow, request,
            question.prefill_machine, prefill_replicas,
            self.prefill_server(prefill_replicas) if prefill_replicas else None,
            self.alone.prefill_factor,
        )  # fmt: skip


def fleet(question, *, kept=bool, sure=False, simulated=True, near=None) -> Fleet | None:
    """Find the smallest fleet for a question's request rate whose state meets ``kept``; None if no number does.

    A load at which the slow end of the interval has no steady state is refused, unless the question gives the number of
    machines: one slightly slower than computed would let queues grow without end.

    ``kept``: whether a state meets the SLO, at the slow end if ``sure``. ``simulated``: whether states are simulated;
    otherwise they come from :meth:`Server.steady`, which finds the numbers ``near``.
    """
    fleets = Fleets(question, kept, sure, simulated)
    if near:
        n, prefill_replicas = fleets.near(*near)
    else:
        n = question.replicas or fleets.fewest()
        apart = n and question.prefill_machine
        prefill_replicas = question.prefill_replicas or apart and fleets.fewest(n) or 0
    enough = prefill_replicas or not question.prefill_machine
    return fleets.fleet(n, prefill_replicas) if n and enough and fleets.good(n, prefill_replicas) else None


def smallest_number(kept, least=1):
    """Return the smallest n >= ``least`` for which a monotone predicate holds; None if there is none.

    Examples
    --------
    >>> [smallest_number(lambda n: n >= enough, 3) for enough in range(1, 13)]
    [3, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    >>> [smallest_number(lambda n: n >= enough, 1) for enough in (2**40, 2**40 + 1)]
    [1099511627776, None]
    """
    high = least
    while not kept(high):
        if high >= 2**40:
            return None
        high *= 2
    low = max(high // 2, least - 1)
    while high - low > 1:
        between = (low + high) // 2
        low, high = (low, between) if kept(between) else (between, high)
    return high
