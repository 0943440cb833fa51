"""A fleet or a loop of users, request by request: the percentiles that no formula gives."""

from collections import Counter
from dataclasses import replace
from math import ceil, inf
from typing import Unpack

from inferlib.equation import frozen
from inferlib.extras import np
from tokenprice import bounds, mix
from tokenprice.ask import Answer, sixth
from tokenprice.fleet import held, pass_of, reading_of, server_of
from tokenprice.options import Promised
from tokenprice.question import Promise, both
from tokenprice.replica import AROUND, Played, counted, loop, play, uniforms
from tokenprice.words import figures, whole

KINDS = {"first": "first token", "token": "tokens of one user, mean", "gaps": "between two tokens"}
SHARES = (50, 90, 99)
WARM = 3  # times each user of a loop has been answered before a request is counted


@frozen
class Simulation:
    """What happened to each of the counted requests, in seconds.

    ``first`` is the time to the first token and ``token`` the mean time of the tokens after it, of each request;
    ``gaps`` holds the times between two tokens, and ``many`` how often each came. ``preempted``: how often a sequence
    was computed again, for want of memory.
    """

    answer: Answer
    promise: Promise
    seed: int
    first: "np.ndarray"
    token: "np.ndarray"
    gaps: "np.ndarray"
    many: "np.ndarray"
    preempted: int = 0

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
            "requests": len(self.first), "seed": self.seed, "preempted": self.preempted,
            "answer": self.answer.to_dict(), "kept": self.kept,
            "usd_per_million_kept": self.dollars_per_million_kept,
            "mean": {what: self.mean(what) for what in self.kinds},
            **{f"p{share}": {what: self.percentile(what, share) for what in self.kinds} for share in SHARES},
        }  # fmt: skip

    def __str__(self):
        told = self.answer.fleet or self.answer.request
        lines = [str(told), f"{len(self.first):,} requests simulated, seed {self.seed}; milliseconds:"]
        lines.append(f"{'':26}    ask    mean" + "".join(f"{f'p{share}':>8}" for share in SHARES))
        known = {"first": self.answer.request.first_token, "gaps": self.answer.seconds}
        for what, name in self.kinds.items():
            values = [self.mean(what), *(self.percentile(what, share) for share in SHARES)]
            formula = f"{1e3 * known[what]:7,.0f}" if what in known else " " * 7
            lines.append(f"{name:26}{formula}" + "".join(f"{1e3 * value:8,.0f}" for value in values))
        if self.preempted:
            lines.append(f"{self.preempted:,} times a sequence was computed again, for want of memory")
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

    Requests come at random, or as a trace says; or from users each of whom asks again when answered, after answers
    that lie within a tenth of their mean (``equal``: exactly there). Machines do what
    :class:`tokenprice.scheduler.Scheduler` says. How long a prompt and a step take is what the sixth model says.

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
    q.needs_machine()
    found = sixth(q)
    if not found.feasible:
        raise ValueError(f"nothing to simulate: {found.reason}")
    return played(found, promise, whole("requests", requests), seed)


def played(found, promise, count, seed=0, slower=1.0) -> Simulation:
    """So many requests of an answer, on machines that do everything so many times slower."""
    q, many = found.question, found.fleet
    if many is None:
        server, made = _loop(q, found.request, count, seed, slower)
    elif q.trace is not None:
        server, made = _trace(q, many, count, seed, slower)
    else:
        server, made = _arrivals(many, count, seed, slower)
    facts = {"first_token": made.first.min(), "reading": min(server.costs.passes)}
    base, each = server.costs.step(1)
    facts |= {"token": min(made.gaps, default=inf), "alone": base + each * min(server.costs.prompts)}
    if broken := bounds.broken(facts, ["served"]):
        raise ValueError(broken)
    return Simulation(found, promise, seed, made.first, made.token, made.gaps, made.many, made.preempted)


def _arrivals(many, count, seed, slower):
    """Requests that come at random: one machine stands for all, and one reader."""
    server = many.server.slower(slower)
    made = server.played(many.arrivals, count, seed, many.machines)
    if many.reader:
        reads = many.server_that_reads.slower(slower).played(many.arrivals, count, seed + 1, many.readers)
        made = replace(made, first=made.first + reads.first)
    return server, made


def _trace(q, many, count, seed, slower):
    """Requests as in a file, which begins again at its end, to machines drawn by chance or by what they hold."""
    lies, reads = (q.layout if many.reader in (None, many.system) else None), many.reader or many.system
    asked, server = held(q, reads, lies, many.readers or many.machines), many.server.slower(slower)
    passes = (slower * np.ravel(pass_of(asked, reads, lies).total)).tolist()
    n = count
    prompts, fresh = mix.points(q.prompt), tuple(mix.fresh(q.prompt, asked.cached or 0))
    own = {"prompts": prompts, "fresh": fresh, "passes": passes}
    places, outputs = [k % len(passes) for k in range(n)], [max(round(one), 1) for one in q.output.points]
    requests = places, [outputs[place] for place in places]
    begins, number = np.divmod(np.arange(n), len(passes))
    came = (
        (np.array(q.trace.arrivals)[number] + begins * len(passes) / q.trace.rate) * q.trace.rate / q.arrivals
    )
    more = np.zeros(n)

    def dealt(stream, machines, at):
        groups = max(machines * at.copies // at.costs.in_step, 1)
        return groups, (uniforms(seed, stream, n) * groups).astype(int).tolist()

    if many.reader:
        reader = many.server_that_reads.slower(slower)
        groups, route = dealt(7, many.readers, reader)
        done, _ = play(
            replace(reader.costs, **own),
            reader.scheduler,
            came.tolist(),
            groups,
            route,
            seed,
            (places, [1] * n),
        )
        more = np.array([r.first for r in done]) - came
        own |= {"fresh": (0,) * len(passes), "passes": (0.0,) * len(passes)}
    groups, route = dealt(6, many.machines, server)
    if asked is not q:
        route = q.trace.routes(asked.cached, route)
    order = np.argsort(came + more, kind="stable")
    ready, requests = (came + more)[order].tolist(), tuple([of[k] for k in order] for of in requests)
    route, costs = [route[k] for k in order], replace(server.costs, **own)
    done, fleet = play(costs, server.scheduler, ready, groups, route, seed, requests)
    made = counted(costs, done, fleet, 0, n)
    return server, replace(made, first=made.first + more[order])


def _loop(q, request, count, seed, slower):
    """Users of a loop, who begin together where they ask a number of rounds, else apart; equal copies once."""
    read = None if q.reader else reading_of(q, q.machine, q.layout)
    server = server_of(q, q.machine, q.layout, read).slower(slower)
    costs = (
        server.costs
        if read
        else replace(server.costs, door=server.costs.door + slower * request.prompt.total)
    )
    whole, rest = divmod(max(round(q.workload.batch), 1), server.copies)
    each = [whole + 1] * rest + [whole] * (server.copies - rest)
    groups = Counter(sum(each[k : k + costs.in_step]) for k in range(0, server.copies, costs.in_step))
    found = []
    for users, many in groups.items():
        if users:
            warm, n = 0 if q.rounds else WARM * users, ceil(count * users * many / sum(each))
            done, fleet = loop(
                costs, server.scheduler, users, n + warm + users, q.rounds, 0.0 if q.equal else AROUND, seed
            )
            last = len(done) if q.rounds else warm + n
            span = (0.0, inf) if q.rounds else (done[warm].came, done[min(last, len(done) - 1)].came)
            found.append(counted(costs, done, fleet, warm, last, span))
    together = (
        np.concatenate([getattr(one, name) for one in found])
        for name in ("first", "waits", "token", "gaps", "many")
    )
    return server, Played(*together, found[0].running, sum(one.preempted for one in found))
