"""A fleet or a loop of users, request by request: the percentiles that no formula gives."""

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import cycle, islice
from math import ceil, inf
from typing import Unpack

from inferlib.equation import frozen
from inferlib.extras import np
from tokenprice import bounds, mix
from tokenprice.ask import Answer, sixth
from tokenprice.fleet import Station, held, pass_of, reader_of, reading_of, station
from tokenprice.options import Promised
from tokenprice.question import Promise, both
from tokenprice.words import figures, whole

KINDS = {"first": "first token", "token": "tokens of one user, mean", "gaps": "between two tokens"}
SHARES = (50, 90, 99)
WARM = 5  # times as many requests as a machine holds pass before one is counted, and after


@frozen
class Simulation:
    """What happened to each of the counted requests, in seconds.

    ``first`` is the time to the first token and ``token`` the mean time of the tokens after it, of each request;
    ``gaps`` holds the times between two tokens, and ``many`` how often each came.
    """

    answer: Answer
    promise: Promise
    seed: int
    first: "np.ndarray"
    token: "np.ndarray"
    gaps: "np.ndarray"
    many: "np.ndarray"

    def percentile(self, what, share) -> float:
        """What so many per cent do not exceed, of ``"first"``, ``"token"`` or ``"gaps"``."""
        if what != "gaps":
            return float(np.percentile(getattr(self, what), share))
        return float(np.percentile(self.gaps, share, weights=self.many, method="inverted_cdf"))

    def mean(self, what) -> float:
        """The mean of the same; of gaps over tokens, not requests."""
        return float(np.average(getattr(self, what), weights=self.many if what == "gaps" else None))

    @property
    def kinds(self) -> dict:
        """Names of what was counted: answers of one token have no time between two."""
        return {what: name for what, name in KINDS.items() if what == "first" or len(self.gaps)}

    @property
    def kept(self) -> float:
        """The part of all requests for which the promise was kept."""
        late = self.first > self.promise.limit("first_token")
        return 1 - float(np.mean(late | (self.token > self.promise.limit("token"))))

    @property
    def good(self) -> bool:
        """Whether 99 of 100 requests are served as promised for them."""
        return all(self.percentile(what, 99) <= most for what, most in self.promise.percentiles.items())

    @property
    def dollars_per_million_kept(self) -> float | None:
        """Dollars for a million output tokens of requests that kept the promise: the others are paid for too."""
        paid = self.answer.request
        return paid.per_million["output"] / self.kept if paid and paid.priced and self.kept else None

    def to_dict(self) -> dict:
        """Everything as plain numbers, in SI units."""
        return {
            "requests": len(self.first), "seed": self.seed, "answer": self.answer.to_dict(), "kept": self.kept,
            "usd_per_million_kept": self.dollars_per_million_kept,
            "mean": {what: self.mean(what) for what in self.kinds},
            **{f"p{share}": {what: self.percentile(what, share) for what in self.kinds} for share in SHARES},
        }  # fmt: skip

    def __str__(self):
        told = self.answer.fleet or self.answer.request
        lines = [str(told), f"{len(self.first):,} requests simulated, seed {self.seed}; milliseconds:"]
        lines.append(f"{'':26}formula    mean" + "".join(f"{f'p{share}':>8}" for share in SHARES))
        known = {"first": self.answer.request.first_token, "gaps": self.answer.seconds}
        for what, name in self.kinds.items():
            values = [self.mean(what), *(self.percentile(what, share) for share in SHARES)]
            formula = f"{1e3 * known[what]:7,.0f}" if what in known else " " * 7
            lines.append(f"{name:26}{formula}" + "".join(f"{1e3 * value:8,.0f}" for value in values))
        if self.promise.percentiles:
            lines.append(f"p99 as promised: {'yes' if self.good else 'no'}")
        if self.promise.token or self.promise.first_token or self.promise.percentiles:
            price = self.dollars_per_million_kept
            paid = f"; ${figures(price)} per million tokens that kept it" if price else ""
            lines.append(f"promise kept for {self.kept:.1%} of requests{paid}")
        return "\n".join(lines)

    __repr__ = __str__


def simulate(
    question, machine=None, promise=None, /, *, requests=5000, seed=0, chips=None, **options: Unpack[Promised]
) -> Simulation:
    """What requests wait, one by one: percentiles, and the price of a token that kept its promise.

    Requests come at random, to a copy of a machine drawn at random; or from users each of whom asks again when
    answered. A copy reads prompts as they come, one by one, each in a step of the others (in several, with ``chunk``),
    and every step gives every running request a token. Lengths of answers are geometric, or equal with ``equal``. How
    long a prompt and a step take is what the sixth model says.

    Parameters
    ----------
    question, machine, promise, chips, **options
        As for :func:`tokenprice.change`; a request, with ``arrivals`` or ``users``.
    requests : int
        How many are counted.
    seed : int
        Of the random numbers.

    Raises
    ------
    LookupError, ValueError, TypeError
        Naming what is missing, or the field, its value and what is allowed.
    """
    q, promise = both(question, machine, promise, options, chips)
    if not q.is_request:
        raise ValueError("prompt and output are missing: requests are simulated, not a step")
    if q.hold:
        raise ValueError("hold is not simulated: ask says what it costs in the mean")
    q.needs_machine()
    found = sixth(q)
    if not found.feasible:
        raise ValueError(f"nothing to simulate: {found.reason}")
    return played(found, promise, whole("requests", requests), seed)


def played(found, promise, count, seed=0, slower=1.0) -> Simulation:
    """So many requests of an answer, on machines that do everything so many times slower."""
    at, draw = _station(found).slower(slower), np.random.default_rng(seed)
    play = _arriving if found.question.arrivals else _asking
    shortest, *counted = play(found, at, slower, draw, count)
    made = Simulation(found, promise, seed, *counted)
    facts = {"first_token": made.first.min(), "reading": shortest}
    facts |= {"token": min(made.gaps, default=inf), "alone": at.steps[0]}
    if broken := bounds.broken(facts, ["served"]):
        raise ValueError(broken)
    return made


@dataclass
class _Copies:
    """Copies that keep step, or one alone; each has a line, a request that it reads, and those that run.

    A step takes as long as its longest prompt, and as its sequences in the mean of all copies.
    """

    at: Station
    draw: "np.random.Generator"
    work: Callable  # of a user or number: seconds of a prompt, its pieces, tokens of the answer
    lines: list  # of each copy: (when it came, user or number)
    gaps: dict = field(default_factory=dict)  # seconds between two tokens: how often
    span: tuple = (0.0, inf)  # of the clock, in which gaps are counted

    def follow(self, left=None):
        """Yield (number, came, first, mean gap) of each request; ``left``: how often each user still asks."""
        at, lines, clock, steps, begun, each = self.at, self.lines, 0.0, 0, 0.0, 0.0
        running, reads = [[] for _ in lines], [None] * len(lines)
        for line in lines:
            heapify(line)
        while any(lines) or any(running) or any(reads):
            many = sum(map(len, running))
            if not many and not any(reads):
                clock = max(clock, min(line[0][0] for line in lines if line))
            new = 0
            for copy, line in enumerate(lines):
                while self.free(running, reads, copy) and line and line[0][0] <= clock:
                    came, name = heappop(line)
                    prompt, pieces, output = self.work(name)
                    # the way in: the step in progress counts whole, as in the formula
                    in_step = begun <= came < clock if many else False
                    part = at.door + at.late + ((came - begun) % each if in_step else self.step(many))
                    if at.prompt:
                        reads[copy] = [prompt / pieces, pieces, (name, came, part, output)]
                        continue
                    since, last = clock + self.step(many + new + 1), steps + output
                    heappush(running[copy], (last, name, came, since + part + prompt, since, steps + 1))
                    new += 1
            each = self.step(many + new)
            if any(reads):
                longest = each + max(one[0] for one in reads if one)
                clock, steps = clock + longest, steps + 1
                self.gap(longest, many, clock)
                begun = clock
            else:
                n = min(one[0][0] for one in running if one) - steps
                soon = [line[0][0] for k, line in enumerate(lines) if line and self.free(running, reads, k)]
                if soon:
                    n = min(n, max(ceil((min(soon) - clock) / each - 1e-9), 1))
                begun, clock, steps = clock, clock + n * each, steps + n
                self.gap(each, n * (many + new) - new, clock)
            for copy, one in enumerate(reads):
                if one is None:
                    continue
                one[1] -= 1
                if not one[1]:
                    name, came, part, output = one[2]
                    heappush(running[copy], (steps + output - 1, name, came, clock + part, clock, steps))
                    reads[copy] = None
            for copy, mine in enumerate(running):
                while mine and mine[0][0] <= steps:
                    _, name, came, first, since, began = heappop(mine)
                    yield name, came, first - came, (clock - since) / max(steps - began, 1)
                    if left is not None:
                        left[name] -= 1
                        if left[name] > 0:  # the way in and out passes before the machine hears of the next
                            heappush(lines[copy], (clock + self.draw.exponential(at.door), name))

    def free(self, running, reads, copy):
        """Whether a copy reads nothing and has a place."""
        return reads[copy] is None and len(running[copy]) < self.at.places

    def step(self, many):
        """Seconds of a step with so many sequences in all copies."""
        return float(self.at.steps[max(ceil(many / len(self.lines)), 1) - 1])

    def gap(self, seconds, tokens, clock):
        """Count a time between two tokens, for so many of them."""
        if tokens and self.span[0] <= clock <= self.span[1]:
            self.gaps[seconds] = self.gaps.get(seconds, 0) + tokens


def _station(found) -> Station:
    """The queue that a machine of an answer is, of a fleet or of a loop."""
    q = found.question
    if found.fleet is not None:
        return found.fleet.station
    reads = 0.0 if q.reader else found.request.prompt.total
    return station(q.replace(users=None, rounds=None), q.machine, q.layout, reads)


def _drawn(q, asked, read, at, slower, draw):
    """What each request is, by its number or user: of a trace in its order, else drawn; and the seconds of prompts."""
    seconds, output = (
        slower * np.ravel(pass_of(asked, *read).total),
        (q if q.equal else q.replace(equal=False)).answers,
    )
    pieces = [
        ceil(one / q.chunk) if q.chunk and at.prompt else 1 for one in mix.fresh(q.prompt, asked.cached or 0)
    ]

    def work(name):
        k = name % len(seconds) if q.trace else draw.integers(len(seconds)) if len(seconds) > 1 else 0
        tokens = output[name % len(output)] if q.trace else output[draw.integers(len(output))]
        return float(seconds[k]), pieces[k], max(round(tokens), 1)

    return work, seconds


def _came(q, draw, count):
    """When requests come: at random, or as in the trace, which begins again at its end."""
    if q.trace is None:
        return np.cumsum(draw.exponential(1 / q.arrivals, count))
    slower, own = q.trace.rate / q.arrivals, np.array(q.trace.arrivals)
    begins, number = np.divmod(np.arange(count), len(own))
    return slower * (own[number] + begins * len(own) / q.trace.rate)


def _arriving(found, at, slower, draw, count):
    """Requests that come by themselves, first to a reader where there are some, then to a copy."""
    many, q = found.fleet, found.question
    lies = q.layout if many.reader in (None, many.system) else None
    reads = many.reader or many.system
    asked = held(q, reads, lies, many.readers or many.machines)
    work, seconds = _drawn(q, asked, (reads, lies), at, slower, draw)
    warm = ceil(WARM * max(many.state.running, 1) * many.machines)
    came = _came(q, draw, count + 2 * warm)
    requests = [work(n) for n in range(len(came))]
    ready, first, token, gaps = came.copy(), came.copy(), np.zeros(len(came)), {}

    def follow(at, lines, work, gaps):
        copies = lines.max() + 1
        for copy in range(0, copies, at.in_step):
            own = [np.flatnonzero(lines == k) for k in range(copy, copy + at.in_step)]
            line = [[(float(ready[n]), int(n)) for n in mine] for mine in own]
            one = _Copies(at, draw, work, line, gaps, (came[warm], came[warm + count - 1]))
            for n, asked, soon, mean in one.follow():
                first[n], token[n] = asked + soon, mean

    if many.reader:
        reader = reader_of(q, reading_of(q, reads, lies, many.readers), lies)
        whose = draw.integers(many.readers * reader.copies, size=len(came))
        follow(reader, whose, lambda n: (*requests[n][:2], 1), {})
        ready, requests = first.copy(), [(0.0, *one[1:]) for one in requests]
    lines = draw.integers(many.machines * at.copies, size=len(came))
    if asked is not q:
        lines = np.array(q.trace.routes(asked.cached, lines))
    follow(at, lines, requests.__getitem__, gaps)
    counted = range(warm, warm + count)
    return seconds.min(), (first - came)[counted], token[counted], *_both(gaps)


def _asking(found, at, slower, draw, count):
    """Users of a loop, who begin together where they ask a number of rounds, else apart."""
    q, copies = found.question, found.question.layout.lanes if found.question.layout else 1
    lies = None if q.reader else q.layout
    work, seconds = _drawn(q, q, (q.reader or q.machine, lies), at, slower, draw)
    whole, rest = divmod(max(round(q.workload.batch), 1), copies)
    first, token, gaps = [], [], {}
    each = [whole + 1] * rest + [whole] * (copies - rest)
    groups = [each[copy : copy + at.in_step] for copy in range(0, copies, at.in_step)]
    for group in cycle(filter(any, groups)):
        if len(first) >= count:
            break
        users = sum(group)
        begin = np.zeros(users) if q.rounds else draw.uniform(0, found.request.seconds, users)
        asks = iter(enumerate(begin))
        lines = [[(float(when), user) for user, when in islice(asks, many)] for many in group]
        one = _Copies(at, draw, work, lines, gaps)
        one.span = (0.0 if q.rounds else inf, inf)
        left, warm = [q.rounds or inf] * users, 0 if q.rounds else WARM * users
        enough = len(first) + ceil(count * users / q.workload.batch)
        for n, (_, _, soon, mean) in enumerate(one.follow(left)):
            if n == warm:
                one.span = (0.0, inf)
            if n >= warm:
                first.append(soon)
                token.append(mean)
            if not q.rounds and len(first) >= enough:
                break
    return seconds.min(), np.array(first), np.array(token), *_both(gaps)


def _both(gaps):
    return np.array(list(gaps)), np.array(list(gaps.values()))
