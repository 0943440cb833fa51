"""A fleet, request by request: the percentiles that no formula gives (with SimPy, the extra ``simulate``)."""

from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil

import numpy as np

from tokenprice.fleet import Fleet, fleet
from tokenprice.question import Promise, both
from tokenprice.words import whole

KINDS = {"first": "first token", "token": "tokens of one user, mean", "gaps": "between two tokens"}
SHARES = (50, 90, 99)
WARM = 5  # mean stays in a machine that pass before anybody is counted


@dataclass(frozen=True, eq=False)
class Simulation:
    """What happened to each of the counted requests, in seconds.

    ``first`` is the time to the first token and ``token`` the mean time of the tokens after it, of each request;
    ``gaps`` holds the times between two tokens, and ``many`` how often each came.
    """

    fleet: Fleet
    promise: Promise
    seed: int
    first: np.ndarray
    token: np.ndarray
    gaps: np.ndarray
    many: np.ndarray

    def percentile(self, what, share) -> float:
        """What so many per cent do not exceed, of ``"first"``, ``"token"`` or ``"gaps"``."""
        if what != "gaps":
            return float(np.percentile(getattr(self, what), share))
        order = np.argsort(self.gaps)
        passed = np.cumsum(self.many[order])
        return float(self.gaps[order][np.searchsorted(passed, share / 100 * passed[-1])])

    def mean(self, what) -> float:
        """The mean of the same; of gaps over tokens, not requests."""
        return float(np.average(getattr(self, what), weights=self.many if what == "gaps" else None))

    @property
    def kept(self) -> float:
        """The part of all requests for which the promise was kept."""
        late = self.first > (self.promise.first_token or np.inf)
        return 1 - float(np.mean(late | (self.token > (self.promise.token or np.inf))))

    @property
    def dollars_per_million_kept(self) -> float | None:
        """Dollars for a million output tokens of requests that kept the promise: the others are paid for too."""
        paid = self.fleet.request
        return paid.per_million["output"] / self.kept if self.kept and paid.rate is not None else None

    def to_dict(self) -> dict:
        """Everything as plain numbers, in SI units."""
        return {
            "requests": len(self.first), "seed": self.seed, "fleet": self.fleet.to_dict(), "kept": self.kept,
            "usd_per_million_kept": self.dollars_per_million_kept, "mean": {what: self.mean(what) for what in KINDS},
            **{f"p{share}": {what: self.percentile(what, share) for what in KINDS} for share in SHARES},
        }  # fmt: skip

    def __str__(self):
        lines = [str(self.fleet), f"{len(self.first):,} requests simulated, seed {self.seed}; milliseconds:"]
        lines.append(f"{'':26}formula    mean" + "".join(f"{f'p{share}':>8}" for share in SHARES))
        known = {"first": self.fleet.state.first_token, "gaps": self.fleet.state.token}
        for what, name in KINDS.items():
            values = [self.mean(what), *(self.percentile(what, share) for share in SHARES)]
            formula = f"{1e3 * known[what]:7,.0f}" if what in known else " " * 7
            lines.append(f"{name:26}{formula}" + "".join(f"{1e3 * value:8,.0f}" for value in values))
        if self.promise.token or self.promise.first_token:
            price = self.dollars_per_million_kept
            paid = f"; ${price:.3g} per million tokens that kept it" if price else ""
            lines.append(f"promise kept for {self.kept:.1%} of requests{paid}")
        return "\n".join(lines)

    __repr__ = __str__


def simulate(
    question, machine=None, promise=None, /, *, requests=5000, seed=0, chips=None, **options
) -> Simulation:
    """What requests with arrivals wait, one by one: percentiles, and the price of a token that kept its promise.

    Requests come at random, to a machine drawn at random. A machine reads prompts as they come, one by one, each in a
    step of the others (in several, with ``chunk``), and every step gives every running request a token. Lengths of
    answers are geometric, or equal with ``equal``. How long a prompt and a step take is what the sixth model says.

    Parameters
    ----------
    question, machine, promise, chips, **options
        As for :func:`tokenprice.change`; ``arrivals`` must be given.
    requests : int
        How many are counted.
    seed : int
        Of the random numbers.

    Raises
    ------
    ImportError, LookupError, ValueError, TypeError
        Naming what is missing, or the field, its value and what is allowed.
    """
    q, promise = both(question, machine, promise, options, chips)
    if not q.arrivals:
        raise ValueError("arrivals is missing: say how many requests arrive per second")
    found = fleet(q, q.needs_machine(), q.layout, reader=q.reader, machines=q.machines)
    if found is None:
        raise ValueError("no steady state to simulate: tokenprice ask says how many machines are enough")
    return Simulation(found, promise, seed, *_Run(found, q, seed).of(whole("requests", requests)))


class _Run:
    """One run: lines of requests before machines, each copy of the attention a machine of its own."""

    def __init__(self, found, q, seed):
        from inferlib.extras import simpy

        self.env, self.draw, self.q = simpy.Environment(), np.random.default_rng(seed), q
        self.at, self.done = (at := found.station), self.env.event()
        self.warm = ceil(WARM * max(found.state.running, 1) * found.machines)
        self.places, self.prompt = max(at.places // at.copies, 1), at.prompt * at.copies
        self.gaps, self.ended, self.last = {}, {}, 0
        self.any = lambda lines: lines[self.draw.integers(len(lines))]
        self.lines = [simpy.Store(self.env) for _ in range(found.machines * at.copies)]
        side = at.copies if found.reader == found.system else 1
        self.readers = [simpy.Store(self.env) for _ in range(found.readers * side)]
        for line in self.lines:
            self.env.process(self.decode(line))
        for line in self.readers:
            self.env.process(self.read(line, found.request.prompt.total))
        self.env.process(self.come())

    def of(self, count):
        """First tokens, means of tokens, gaps and how often each came, of so many requests after the start."""
        self.count = count
        self.env.run(self.done)
        gaps = (np.array(list(some)) for some in (self.gaps, self.gaps.values()))
        return *np.array(list(self.ended.values())).T, *gaps

    def come(self):
        name = 0
        while True:
            yield self.env.timeout(self.draw.exponential(1 / self.q.arrivals))
            length = round(self.q.output) if self.q.equal else self.draw.geometric(1 / self.q.output)
            self.any(self.readers or self.lines).put((name, self.env.now, max(length, 1)))
            name += 1

    def read(self, line, seconds):
        while True:
            job = yield line.get()
            yield self.env.timeout(seconds)
            self.any(self.lines).put(job)

    def decode(self, line):
        """One machine; what runs is kept by the step in which it ends."""
        env, running, steps = self.env, [], 0

        def made(n, each, more=0.0):
            """So many steps are over, the first of them longer; each gave all a token."""
            nonlocal steps
            steps += n
            for seconds, tokens in ((each + more, min(n, 1)), (each, max(n - 1, 0))):
                if tokens and running and self.last >= self.warm:
                    self.gaps[seconds] = self.gaps.get(seconds, 0) + tokens * len(running)
            while running and running[0][0] <= steps:
                self.end(*heappop(running)[1:])

        while True:
            came, start = line.get() if len(running) < self.places else env.event(), env.now
            if running:
                each, n = self.step(len(running)), running[0][0] - steps
                yield env.timeout(n * each) | came
                n = min(n, ceil((env.now - start) / each - 1e-9))
                yield env.timeout(max(start + n * each - env.now, 0))
                made(n, each)
            else:
                yield came
            if not came.triggered:
                getattr(came, "cancel", bool)()  # an event of a full machine cannot be, and need not be
                continue
            name, asked, length = came.value
            self.last = max(self.last, name)
            pieces = max(self.at.pieces, 1) if self.prompt else 1
            for _ in range(pieces):
                each = self.step(max(len(running), 1))
                yield env.timeout(self.prompt / pieces + each)
                made(1, each, self.prompt / pieces)
            heappush(running, (steps + length - 1, name, asked, length, env.now))
            made(0, 0)

    def step(self, n):
        return float(self.at.steps[min(n * self.at.copies, self.at.places) - 1])

    def end(self, name, asked, length, first):
        if self.warm <= name < self.warm + self.count:
            mean = (self.env.now - first) / max(length - 1, 1)
            self.ended[name] = first - asked + self.at.door, mean
            if len(self.ended) == self.count:
                self.done.succeed()
