"""Discrete-event simulation of a replica, which defines what the formulas approximate.

A replica is one copy of a model, or several copies in lockstep because they share experts. A step gives a token to
every running sequence and prefills prompts within a token budget; prefills of one step take the sum of their times.
Nothing is fitted here: times come from :class:`Costs`. The page runs the same loop (``inferlibReplica`` in
``book/calculator/replica.js``), with the same random numbers.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from heapq import heappop, heappush
from itertools import chain, count
from math import inf, sqrt
from operator import attrgetter

from inferlib.equation import frozen
from inferlib.optional_imports import np
from tokenprice.progress import progress

NEVER = 1e18  # a time that never comes
LENGTH_SPREAD = 0.1  # a closed loop draws lengths within this share of their mean, as InferenceX does
_full = attrgetter("full")  # faster than a generator, once per event


def uniforms(seed, stream, n):
    """Return random numbers between 0 and 1, equal on any machine and in JavaScript (mulberry32).

    Examples
    --------
    >>> float(uniforms(0, 0, 1)[0].round(9))  # the first number of the seed 0 in its published form
    0.266429209
    """
    with np.errstate(over="ignore"):
        step = np.arange(1, n + 1, dtype=np.uint32) * np.uint32(0x6D2B79F5)
        t = step + np.uint32((seed * 0x9E3779B1 + stream * 0x85EBCA77) % 2**32)
        t = (t ^ (t >> np.uint32(15))) * (t | np.uint32(1))
        t ^= t + (t ^ (t >> np.uint32(7))) * (t | np.uint32(61))
        return ((t ^ (t >> np.uint32(14))).astype(float) + 0.5) / 2**32


@dataclass(frozen=True)
class Costs:
    """Times and memory of a copy.

    ``step(n)``: seconds of a step with n sequences, and seconds more per token of mean context. ``tokens``: memory for
    caches beside a prefix that all prompts share. ``prompts``, ``fresh`` and ``passes``: equally likely prompts: tokens
    beyond that prefix, uncached tokens, and prefill seconds.
    ``answers``: equally likely output lengths. ``late``: seconds from the end of prefill to the first token.
    """

    step: Callable
    tokens: float
    prompts: tuple
    fresh: tuple
    passes: tuple
    answers: tuple
    ingress_delay: float = 0.0
    late: float = 0.0
    in_step: int = 1

    def request(self, number, came, place, output, user=None):
        """Return a request with one of the prompts."""
        fresh, prompt = self.fresh[place], self.prompts[place]
        return Request(number, came, fresh, self.passes[place], prompt, output, user, fresh, prompt)

    def slower(self, by):
        """Return the same costs with every time multiplied by a factor."""
        passes = tuple(by * one for one in self.passes)
        return replace(self, step=partial(_slower_step, self.step, by), passes=passes, late=by * self.late)


def _slower_step(step, by, n):
    base, each = step(n)
    return by * base, by * each


@dataclass(slots=True, eq=False)
class Request:
    """One request: its arrival, the tokens of its prompt left to prefill, and the tokens of its answer so far."""

    number: int
    came: float
    fresh: float
    seconds: float
    prompt: float
    output: int
    user: int | None = None
    left: float = 0
    context: float = 0
    done: int = 0
    since: int = 0
    extra: float = 0.0
    begun: float | None = None
    first: float | None = None
    end: float | None = None
    entry: int | None = None
    copy: "Copy | None" = None


class Copy:
    """The queue of one copy, the prompts in prefill, and its running sequences by request number.

    ``kept``: memory in tokens reserved for prompts in prefill, or with ``reserve`` for whole requests. ``contexts``:
    tokens of the running sequences, less one per sequence for each step already made. ``base`` and ``slope``: seconds
    of a step, and increase per further step; ``full``: steps until memory is full.
    """

    def __init__(self):
        self.line = deque()
        self.reading = []
        self.running = {}
        self.waited = 0
        self.kept = self.contexts = self.base = self.slope = 0.0
        self.full = inf

    @property
    def sequences(self):
        """Number of sequences in prefill or decode."""
        return len(self.reading) + len(self.running)

    @property
    def load(self):
        """Requests that wait, prefill or decode in this copy."""
        return len(self.line) + self.sequences


class Replica:
    """Copies in lockstep (mostly one): a step lasts as long as that of the slowest copy.

    Sequences are not updated while nothing changes: their tokens follow from ``steps``, the number of steps made.
    """

    def __init__(self, costs, scheduler):
        self.costs, self.scheduler, self.clock, self.ids = costs, scheduler, 0.0, count()
        self.copies = [Copy() for _ in range(costs.in_step)]
        self.step = cache(costs.step)  # few numbers of sequences, asked for at every change
        self.heap, self.prompted = [], {}  # sequences by the step in which they end; copies with prompts
        self.begun = 0.0
        self.each = 0.0
        self.preempted = 0
        self.gaps = []
        self.load = self.n = self.steps = 0  # requests in the replica; sequences that decode
        self.pause = 0.0  # seconds without decoding
        self.later = {}  # seconds of pause so far -> number of sequences that joined then
        self.rides = scheduler.rides
        self.holds = scheduler.dp_balance or scheduler.batching_wait_iters

    def add(self, request, copy=None):
        """Add a request. It waits for a whole step, as engines schedule the next step during the present one."""
        if self.load == 0:
            self.clock = max(self.clock, request.came)
        elif self.begun <= request.came < self.clock:
            request.extra = (request.came - self.begun) % self.each
        if copy is None:
            copy = min(self.copies, key=lambda one: one.load)
        copy.line.append(request)
        self.prompted[copy] = True
        self.load += 1

    def fill(self, copy, sequences):
        """Let the copy decode these sequences from the start, as many as fit into its memory."""
        for r in sequences:
            held = r.prompt + (r.output if self.scheduler.reserve else r.done)
            if self.used(copy) + held <= self.costs.tokens:
                copy.kept += held if self.scheduler.reserve else 0
                self.join(copy, r)
                self.load += 1
        self.update(copy)

    def used(self, copy):
        """Tokens of memory that a copy has allocated."""
        grown = 0 if self.scheduler.reserve else copy.contexts + len(copy.running) * self.steps
        return copy.kept + grown

    def join(self, copy, request):
        """Start to decode a sequence; ``entry`` tells its heap entry from older ones of the same request."""
        request.since, request.entry, request.copy = self.steps, next(self.ids), copy
        copy.running[request.number] = request
        copy.contexts += request.prompt + request.done - self.steps
        heappush(self.heap, (self.steps + request.output - request.done, request.entry, request))
        self.n += 1
        if self.pause:
            self.later[self.pause] = self.later.get(self.pause, 0) + 1

    def leave(self, request):
        """Remove a sequence that ends or is preempted."""
        copy = request.copy
        request.entry = None
        request.done += self.steps - request.since
        del copy.running[request.number]
        copy.contexts -= request.prompt + request.done - self.steps
        while self.heap and self.heap[0][2].entry != self.heap[0][1]:
            heappop(self.heap)
        self.n -= 1
        self.update(copy)

    def update(self, copy):
        """Update the step times of a copy, and the number of steps until its memory is full."""
        n = len(copy.running)
        copy.base = 0.0
        copy.slope = 0.0
        copy.full = inf
        if n:
            base, copy.slope = self.step(n)
            copy.base = base + copy.slope * copy.contexts / n
            if not self.scheduler.reserve and n > 1:  # a single sequence is never preempted
                copy.full = (self.costs.tokens - copy.kept - copy.contexts) / n

    def pack(self, copy):
        """Return the prefill of this step, pairs of a request and tokens; admit waiting requests while memory lasts."""
        found = []
        policy = self.scheduler
        budget = policy.room(len(copy.running))
        for r in copy.reading:
            take = min(r.left, budget)
            if take > 0:
                found.append((r, take))
                budget -= take
        n = copy.sequences if copy.line else 0
        while budget >= 1 and copy.line and n < policy.max_num_seqs:
            r = copy.line[0]
            if policy.whole and found and budget < r.left <= policy.max_num_batched_tokens:
                break
            need = r.context + (r.output - r.done if policy.reserve else 0)
            if self.used(copy) + need > self.costs.tokens and n:
                break
            n += 1
            copy.line.popleft()
            copy.kept += need
            copy.reading.append(r)
            if r.begun is None:
                r.begun = self.clock
            take = min(r.left, budget)
            found.append((r, take))
            budget -= take
        return found

    def preempt(self, copy):
        """Preempt the newest sequences until the others fit; their caches are freed and computed again later."""
        while self.used(copy) > self.costs.tokens and len(copy.running) > 1:
            last = copy.running[max(copy.running)]
            self.leave(last)
            now = last.prompt + last.done
            last.seconds *= now / last.fresh if last.fresh else 1.0
            last.context = last.left = last.fresh = now
            self.preempted += 1
            copy.line.appendleft(last)
            self.prompted[copy] = True

    def event(self, until):
        """Play one step with prefill, or decode steps between which nothing changes; return finished requests."""
        done = []
        hold = self.holds and self.held()
        read = 0.0
        reads = False
        packs = [(copy, () if hold else self.pack(copy)) for copy in self.prompted] if self.prompted else ()
        for _, pack in packs:
            own = 0.0
            for r, n in pack:
                reads = True
                if r.fresh:
                    own += n / r.fresh * r.seconds
            if own > read:
                read = own
        each, grows = self.decode_time(packs)
        pause = bool(read) and not self.rides
        alone = 0.0 if self.n or pause else each
        steps = 1
        if reads:
            seconds = read + (0.0 if pause else each)
        else:
            steps = 1 if self.pause else self.alike(until, hold, each, grows)
            seconds = steps * (each + grows * (steps - 1) / 2)
        self.clock += seconds
        self.each = each
        self.begun = self.clock - (seconds if steps == 1 else each)
        if pause:
            self.pause += seconds
        elif self.n:
            self.decoded(steps, seconds, done)
        for copy, pack in packs:
            copy.waited = 0 if pack else copy.waited + steps
            self.prefilled(copy, pack, done, alone)
        return done

    def held(self):
        """Steps for which prompts are still held back."""
        policy = self.scheduler
        want = self.prompted
        if not want or any(c.reading for c in want):
            return 0
        waited = max(copy.waited for copy in want)
        # TensorRT-LLM (``_balance_adp_requests``) waits for other copies' prompts while all copies decode
        waits = len(want) < len(self.copies) and all(copy.running for copy in self.copies)
        hold = (policy.dp_balance if waits else 0) or policy.batching_wait_iters
        return max(hold - waited, 0)

    def decode_time(self, packs):
        """Seconds of a step without prefill, of the slowest copy, and the increase per further step."""
        each = grows = 0.0
        for copy in self.copies:
            if (seconds := copy.base + copy.slope * self.steps) > each:
                each = seconds
                grows = copy.slope
        if not each:
            shortest = next((r.prompt for _, pack in packs for r, _ in pack), 0.0)
            base, slope = self.step(1)
            each = base + slope * shortest
        return each, grows

    def alike(self, until, hold, each, grows):
        """Number of steps until a change: an answer ends, a hold ends, a request arrives, or memory is full."""
        steps = self.heap[0][0] - self.steps if self.heap else 1
        if hold:
            steps = min(steps, hold)
        left = until - self.clock
        plain = each - grows / 2
        if left < steps * (plain + grows * steps / 2):  # steps get longer as contexts grow
            steps = min(
                steps, max(int(2 * left / (plain + sqrt(plain * plain + 2 * grows * left)) - 1e-9) + 1, 1)
            )
        room = min(map(_full, self.copies)) - self.steps
        return max(int(room), 1) if room < steps else steps

    def decoded(self, steps, seconds, done):
        """Advance every sequence by some steps; remove those whose answer ends."""
        self.steps += steps
        # tokens, each so many seconds after the one before
        if ready := self.n - sum(self.later.values()):
            self.gaps.append((self.clock, (seconds + self.pause) / steps, ready * steps))
        for missed, n in self.later.items():
            self.gaps.append((self.clock, (seconds + self.pause - missed) / steps, n * steps))
        if self.pause:
            self.pause = 0.0
            self.later = {}
        while self.heap and self.heap[0][0] <= self.steps:
            r = self.heap[0][-1]
            self.leave(r)
            self.finish(r.copy, r, done)
        for copy in self.copies:
            if self.steps >= copy.full:
                self.preempt(copy)

    def prefilled(self, copy, pack, done, alone):
        """Record prefilled tokens; a prompt that is complete yields its first token.

        ``alone``: seconds of the step where nothing decodes; it reads the weights, as does a prompt's own time.
        """
        changed = False
        for r, tokens in pack:
            changed = changed or r.left == r.fresh  # it was admitted in this step
            r.left -= tokens
            if r.left > 0:
                continue
            changed = True
            copy.reading.remove(r)
            copy.kept -= 0 if self.scheduler.reserve else r.context
            if r.first is None:
                r.first = self.clock
                r.extra -= alone
                r.done = 1
            if r.done >= r.output:
                self.finish(copy, r, done)
            else:
                self.join(copy, r)
        if changed:
            self.update(copy)
        if not copy.line and not copy.reading:
            del self.prompted[copy]

    def finish(self, copy, request, done):
        """End a request with its last token: free its memory and note the time."""
        copy.kept -= request.prompt + request.output if self.scheduler.reserve else 0
        self.load -= 1
        request.end = self.clock
        done.append(request)

    def run(self, until=NEVER):
        """Run events up to a time; return finished requests."""
        done = []
        while self.clock < until and self.load:
            done += self.event(until)
        return done


@frozen
class Played:
    """Times of the counted requests in order of arrival, in seconds.

    ``first``: TTFT; ``waits``: the part of it before prefill begins; ``token``: mean time per token after the first, 0
    if there is none; ``gaps``: times between two tokens, and ``many``: tokens after each. ``running``: mean requests in
    a replica. ``preempted``: number of recomputed sequences.
    """

    first: "np.ndarray"
    waits: "np.ndarray"
    token: "np.ndarray"
    gaps: "np.ndarray"
    many: "np.ndarray"
    running: float
    preempted: int

    @property
    def gap(self) -> float:
        """Mean time between two tokens, averaged over tokens; 0 if every answer has one token."""
        return float(np.average(self.gaps, weights=self.many)) if len(self.gaps) else 0.0


def lengths(costs, seed, n, spread=0.0):
    """Draw lengths of n requests: the index of each prompt, and the tokens of each answer."""
    places = (uniforms(seed, 1, n) * len(costs.prompts)).astype(int).tolist()
    answers = np.array(costs.answers)
    drawn = uniforms(seed, 2, n)
    if len(answers) == 1:
        found = answers[0] * (1 + spread * (2 * drawn - 1))
    else:
        found = answers[(drawn * len(answers)).astype(int)]
    return places, np.maximum(np.floor(found + 0.5), 1).astype(int).tolist()


def running(costs, seed, n):
    """Draw n requests in progress at a random time; long answers are more likely (length-biased sampling)."""
    answers = np.array(costs.answers)
    shares = np.cumsum(answers) / np.sum(answers)
    places = (uniforms(seed, 6, n) * len(costs.prompts)).astype(int)
    outputs = np.floor(answers[np.searchsorted(shares, uniforms(seed, 7, n))] + 0.5)
    done = np.floor(uniforms(seed, 8, n) * (outputs - 1)) + 1
    found = []
    for k, (place, output, has) in enumerate(
        zip(places.tolist(), outputs.astype(int).tolist(), done.astype(int).tolist(), strict=True)
    ):
        if has < output:
            r = costs.request(k - n, 0.0, place, output)
            r.begun = r.first = 0.0
            r.done = has
            found.append(r)
    return found


def play(costs, scheduler, came, replicas=1, route=None, seed=0, requests=None, start=0.0, until=None):
    """Simulate requests with these arrival times; return all of them and the replicas.

    ``route``: replica of each request, unless the router looks at loads. ``requests``: prompt indices and output
    lengths, if they are not drawn. ``start``: sequences that each copy decodes at the start. ``until``: number of the
    first request that only keeps up the load; the simulation ends when all before it have their first token.
    """
    places, outputs = requests or lengths(costs, seed, len(came))
    fleet = [Replica(costs, scheduler) for _ in range(replicas)]
    copies = (uniforms(seed, 4, len(came)) * costs.in_step).astype(int).tolist()
    every = [(one, copy) for one in fleet for copy in one.copies]
    begun = running(costs, seed, int(start * len(every))) if start else []
    for k, (one, copy) in enumerate(every):
        one.fill(copy, begun[k :: len(every)])
    looks = scheduler.router == "least loaded"
    found = []
    behind = 0
    for k, when in enumerate(progress(came, "requests")):
        for one in fleet if looks else ():
            one.run(when)
        at = min(fleet, key=lambda one: one.load) if looks else fleet[route[k] if route else 0]
        at.run(when)
        while until is not None and behind < min(k, until) and found[behind].first is not None:
            behind += 1
        if behind == until:
            return found, fleet
        one = costs.request(k, when, places[k], outputs[k])
        found.append(one)
        at.add(one, None if looks else at.copies[copies[k]])
    for one in fleet:
        one.run()
    return found, fleet


def loop(
    costs,
    scheduler,
    users,
    requests,
    rounds=None,
    spread=LENGTH_SPREAD,
    seed=0,
    readers=0,
    passes=(),
    moves=(),
):
    """Simulate a closed loop: users ask again when answered, until ``requests`` are done, or ``rounds`` per user.

    Without ``rounds``, the first answers end after a random share of their tokens, as if they were in progress. Users
    spread over the time of an answer would be gathered in its long steps, and so for many answers.
    ``readers``: separate prefill machines (times their lanes), which take ``passes`` seconds for each kind of prompt;
    then its cache moves for ``moves`` seconds.
    """
    total = int(rounds * users) if rounds else requests
    places, outputs = lengths(costs, seed, total + users, spread)
    delays = -costs.ingress_delay * np.log(uniforms(seed, 3, total + users))
    if not rounds:
        left = np.ceil(outputs[:users] * uniforms(seed, 5, users))
        outputs[:users] = left.astype(int).tolist()
    at = Replica(costs, scheduler)
    found = []
    asked = 0
    numbers = progress(range(total + users), "requests")
    asks = [(0.0, user, None, 0.0) for user in range(users)]
    free = [0.0] * readers  # when each prefill machine is free
    while len(found) < total:
        soon = asks[0][0] if asks else NEVER
        if at.load and at.clock < soon:
            for r in at.event(soon):
                found.append(r)
                heappush(asks, (r.end + float(delays[r.number]), r.user, None, 0.0))
        else:
            when, user, one, before = heappop(asks)
            if one is None:
                if asked == total and rounds:
                    continue
                k = next(numbers)
                asked = k + 1
                one = costs.request(k, when, places[k], outputs[k], user)
                if free:
                    one.came = max(when, heappop(free)) + passes[places[k]]
                    heappush(free, one.came)
                    one.came += moves[places[k]]
                    heappush(asks, (one.came, user, one, one.came - when))
                    continue
            at.add(one, at.copies[user % costs.in_step])
            one.extra += before
            if asked >= total + users:
                break
    found.sort(key=lambda r: r.number)
    return found, [at]


def counted(costs, found, fleet, low, high, span=(0.0, inf)) -> Played:
    """Return the times of the requests numbered ``low`` to below ``high``."""
    kept = found[low:high]
    more = costs.ingress_delay + costs.late
    first = np.array([r.first - r.came + r.extra + more for r in kept])
    waits = np.array([r.begun - r.came for r in kept])
    token = np.array([(r.end - r.first) / max(r.output - 1, 1) for r in kept if r.end is not None])
    numbers = chain.from_iterable(chain.from_iterable(one.gaps for one in fleet))
    when, seconds, many = np.fromiter(numbers, float).reshape(-1, 3).T
    inside = (span[0] <= when) & (when <= span[1])
    preempted = sum(one.preempted for one in fleet)
    made = Played(first, waits, token, seconds[inside], many[inside].astype(int), 1.0, preempted)
    gap = made.gap
    lives = sum(r.first - r.came + (r.output - 1) * gap for r in kept)
    time = kept[-1].came - kept[0].came
    return replace(made, running=lives / max(time, 1e-12) / len(fleet)) if len(kept) > 1 else made
