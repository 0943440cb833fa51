"""Simulate a fleet or a closed loop request by request, for percentiles that no formula gives."""

from collections import Counter
from dataclasses import replace
from functools import lru_cache
from math import ceil, inf, sqrt
from typing import Unpack

from inferlib import validation
from inferlib.equation import frozen
from inferlib.optional_imports import np
from tokenprice import invariants, workload
from tokenprice.ask import Answer, ask_kernel_model
from tokenprice.formatting import Screen, format_layout, format_number
from tokenprice.parsing import parse_int
from tokenprice.prefill import prefill_profile, prefill_until_first_token, prefix_cache, transfer_time
from tokenprice.question import SLO, question_and_slo
from tokenprice.queueing import server_of
from tokenprice.replica import LENGTH_SPREAD, Played, counted, loop, play, uniforms
from tokenprice.signatures import ChangeOptions

KINDS = {"first": "first token", "token": "tokens of one user, mean", "gaps": "between two tokens"}
PERCENTILES = (50, 90, 99)
MOST_REQUESTS = 10**7
WARM_UP = 3  # answers per user before requests are counted


@frozen
class Simulation(Screen, Played):
    """Times of each counted request, as in :class:`~tokenprice.replica.Played`, with the question and the SLO."""

    answer: Answer
    slo: SLO
    seed: int

    def percentile(self, what, share) -> float:
        """Percentile of ``"first"``, ``"token"`` or ``"gaps"`` (``share`` in per cent); LookupError for others."""
        validation.one_of("quantity", what, KINDS)
        if what != "gaps":
            return float(np.percentile(getattr(self, what), share))
        return float(np.percentile(self.gaps, share, weights=self.many, method="inverted_cdf"))

    def mean(self, what) -> float:
        """Mean of the same; of gaps over tokens, of the others over requests."""
        return float(np.average(getattr(self, what), weights=self.many if what == "gaps" else None))

    def error(self, what) -> float:
        """Standard error of the 99th percentile in seconds, from those of ten parts of the simulation."""
        parts = np.array_split(getattr(self, what), min(10, len(self.first)))
        return float(np.std([np.percentile(part, 99) for part in parts])) / sqrt(max(len(parts) - 1, 1))

    @property
    def kinds(self) -> dict:
        """The quantities that were counted; one-token outputs have no time between tokens."""
        return {what: name for what, name in KINDS.items() if what == "first" or len(self.gaps)}

    @property
    def slo_attainment(self) -> float:
        """Share of requests that met the SLO; a time equal to its limit does.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> times = {"first": np.array([1.0, 1.5, 0.5, 0.5]), "token": np.array([0.1, 0.1, 0.2, 0.1])}
        >>> Simulation.slo_attainment.fget(SimpleNamespace(**times, slo=SLO(ttft="1 s", tpot="100 ms")))
        0.5
        """
        late = self.first > self.slo.limit("ttft")
        return 1 - float(np.mean(late | (self.token > self.slo.limit("tpot"))))

    @property
    def meets_slo(self) -> bool:
        """Whether the 99th percentiles meet their limits."""
        return all(self.percentile(what, 99) <= most for what, most in self.slo.percentiles.items())

    @property
    def usd_per_million_within_slo(self) -> float | None:
        """Dollars per million output tokens of requests that met the SLO; the cost of the others is included."""
        paid = self.answer.request
        return (
            paid.per_million["output"] / self.slo_attainment
            if paid and paid.priced and self.slo_attainment
            else None
        )

    def to_dict(self) -> dict:
        """Everything as plain numbers, in SI units."""
        return {
            "requests": len(self.first), "seed": self.seed, "preempted": self.preempted,
            "answer": self.answer.to_dict(), "kept": self.slo_attainment,
            "usd_per_million_kept": self.usd_per_million_within_slo,
            "mean": {what: self.mean(what) for what in self.kinds},
            **{f"p{share}": {what: self.percentile(what, share) for what in self.kinds} for share in PERCENTILES},
        }  # fmt: skip

    def screen(self):
        """Return the answer, times in milliseconds by quantity, and how many requests met the SLO."""
        known = {"first": self.answer.request.ttft, "gaps": self.answer.seconds}
        rows = [("", "ask", "mean", *(f"p{share}" for share in PERCENTILES))]
        for what, name in self.kinds.items():
            values = [
                known.get(what),
                self.mean(what),
                *(self.percentile(what, share) for share in PERCENTILES),
            ]
            rows.append((name, *("" if one is None else f"{1e3 * one:,.0f}" for one in values)))
        below = []
        if self.preempted:
            below.append(f"{self.preempted:,} times a sequence was computed again, for want of memory")
        if self.slo.percentiles:
            below.append(f"p99 within the SLO: {'yes' if self.meets_slo else 'no'}")
        if self.slo.tpot or self.slo.ttft or self.slo.percentiles:
            price = self.usd_per_million_within_slo
            paid = f"; ${format_number(price)} per million tokens that met it" if price else ""
            below.append(f"SLO met by {self.slo_attainment:.1%} of requests{paid}")
        title = f"{self.answer.fleet or self.answer.request}"
        return (
            f"{title}\n{len(self.first):,} requests simulated, seed {self.seed}; milliseconds:",
            rows,
            below,
        )


def simulate(
    question,
    machine=None,
    slo=None,
    /,
    *,
    requests=5000,
    seed=0,
    chips=None,
    **options: Unpack[ChangeOptions],
) -> Simulation:
    """Simulate single requests: percentiles of their times, and the price of a token that met its SLO.

    With ``request_rate``, requests arrive at random; with a trace, as recorded. With ``concurrency``, each user asks
    again when answered, and output lengths lie within a tenth of their mean (``fixed_lengths``: all are equal). The
    scheduler is :class:`tokenprice.scheduler.Scheduler`; times of prefills and steps are those of the kernel model.

    Parameters
    ----------
    question, machine, slo, chips, **options
        As for :func:`tokenprice.change`; a request, with ``request_rate``, a trace or ``concurrency``.
    requests : int
        Number of requests counted, at most ten million.
    seed : int
        Seed of the random numbers, at least 0.

    Raises
    ------
    LookupError, ValueError, TypeError
        Naming what is missing, or the field, its value and what is allowed.
    """
    q, slo = question_and_slo(question, machine, slo, options, chips)
    count = parse_int("requests", requests, most=MOST_REQUESTS)
    seed = parse_int("seed", seed, least=0)
    if not q.is_request:
        raise ValueError("prompt_tokens and output_tokens are missing: requests are simulated, not a step")
    q.needs_machine()
    found = ask_kernel_model(q)
    if not found.feasible:
        raise ValueError(f"nothing to simulate: {found.reason}")
    return simulate_requests(found, slo, count, seed)


def simulate_requests(answer, slo, count, seed=0, end=0) -> Simulation:
    """Simulate ``count`` requests of an answer, at an ``end`` of its intervals: -1 the fast, 1 the slow one, or 0."""
    q = answer.question
    slower = answer.request.step_factor**end, answer.request.prefill_factor**end
    fleet = answer.fleet
    if fleet is None:
        server, made = _simulate_loop(q, answer.request, count, seed, slower)
    elif q.trace is not None:
        server, made = _simulate_trace(q, fleet, count, seed, slower)
    else:
        server, made = _simulate_arrivals(q, fleet, count, seed, slower)
    facts = {"first_token": made.first.min(), "reading": min(server.costs.passes)}
    base, each = server.costs.step(1)
    facts |= {"token": min(made.gaps, default=inf), "alone": base + each * min(server.costs.prompts)}
    if broken := invariants.violated(facts, ["served"]):
        raise ValueError(broken)
    return Simulation(**vars(made), answer=answer, slo=slo, seed=seed)


def _simulate_arrivals(q, fleet, count, seed, slower):
    """Simulate random arrivals; machines are independent, so one of each kind is enough."""
    server = fleet.server.slower(slower[0])
    made = _played(server, fleet.request_rate, count, seed, fleet.replicas)
    if fleet.prefill_machine:
        prefill_server = fleet.prefill_server.slower(slower[1])
        reads = _played(prefill_server, fleet.request_rate, count, seed + 1, fleet.prefill_replicas)
        made = replace(made, first=made.first + reads.first + transfer_time(q, float(q.prompt_tokens)))
    return server, made


@lru_cache(64)  # fleets that are compared often have one kind of machine in common
def _played(server, *load):
    return server.played(*load)


def _simulate_trace(q, fleet, count, seed, slower):
    """Simulate a trace, repeated if it is short; requests are routed at random or by cached prefix."""
    server = fleet.server.slower(slower[0])
    cached = prefix_cache(q, fleet.prefill_replicas or fleet.replicas)
    read = q.prefills.prefill(workload.array_of(q.prompt_tokens), workload.array_of(cached))
    passes = (slower[1] * np.ravel(read.total)).tolist()
    fresh = tuple(workload.uncached_tokens(q.prompt_tokens, cached))
    private = tuple(workload.uncached_tokens(q.prompt_tokens, q.shared_prefix or 0))
    own = {"prompts": private, "fresh": fresh, "passes": passes}
    begins, number = np.divmod(np.arange(count), len(passes))
    places = number.tolist()
    requests = places, [max(round(q.output_tokens.support[place]), 1) for place in places]
    recorded = np.array(q.trace.arrivals)[number] + begins * len(passes) / q.trace.rate
    came = recorded * q.trace.rate / q.request_rate
    more = np.zeros(count)

    def dealt(stream, machines, at):
        groups = max(machines * at.copies // at.costs.in_step, 1)
        return groups, (uniforms(seed, stream, count) * groups).astype(int).tolist()

    if fleet.prefill_machine:
        prefill_server = fleet.prefill_server.slower(slower[1])
        groups, route = dealt(7, fleet.prefill_replicas, prefill_server)
        first_tokens = places, [1] * count
        costs = replace(prefill_server.costs, **own)
        done, _ = play(costs, prefill_server.scheduler, came.tolist(), groups, route, seed, first_tokens)
        moves = np.array([transfer_time(q, one) for one in workload.support(q.prompt_tokens)])
        more = np.array([r.first for r in done]) + moves[places] - came
        own |= {"fresh": (0,) * len(passes), "passes": (0.0,) * len(passes)}
    groups, route = dealt(6, fleet.replicas, server)
    if q.trace.blocks:
        route = q.trace.routes(cached, route)
    order = np.argsort(came + more, kind="stable")
    ready = (came + more)[order].tolist()
    requests = tuple([of[k] for k in order] for of in requests)
    route = [route[k] for k in order]
    costs = replace(server.costs, **own)
    done, replicas = play(costs, server.scheduler, ready, groups, route, seed, requests)
    made = counted(costs, done, replicas, 0, count)
    return server, replace(made, first=made.first + more[order])


def _simulate_loop(q, request, count, seed, slower):
    """Simulate a closed loop, starting at once if rounds are counted; equal groups of copies are simulated once."""
    profile = prefill_profile(q)
    server = server_of(q, profile).slower(slower[0])
    costs = server.costs
    apart = {}
    if q.prefill_deployment:
        if server.copies > costs.in_step:
            raise ValueError(
                f"layout is {format_layout(q.resolved_layout)}, but with prefill_machine only users of one copy, or of "
                "copies in lockstep, are simulated: give a layout without pp, and with ep for dp, or request_rate"
            )
        apart["readers"] = request.prefill_replicas * q.prefill_deployment.layout.lanes
        apart["moves"] = [transfer_time(q, one) for one in profile.prompts]
        apart["passes"] = [slower[1] * one for one in profile.passes]
        pieces = max(profile.chunks, 1)
        late = prefill_until_first_token(q.deployment, request.prompt.total, pieces) - request.prompt.total
        costs = replace(costs, late=slower[1] * (late + (request.own_steps - 1) * request.step.total))
    whole, rest = divmod(max(round(q.workload.batch), 1), server.copies)
    each = [whole + 1] * rest + [whole] * (server.copies - rest)
    groups = Counter(sum(each[k : k + costs.in_step]) for k in range(0, server.copies, costs.in_step))
    found = []
    for users, many in groups.items():
        if users:
            rounds = q.requests_per_user
            spread = 0.0 if q.fixed_lengths else LENGTH_SPREAD
            warm = 0 if rounds else WARM_UP * users
            n = ceil(count * users * many / sum(each))
            done, replicas = loop(
                costs, server.scheduler, users, n + warm + users, rounds, spread, seed, **apart
            )
            last = len(done) if rounds else warm + n
            span = (0.0, inf) if rounds else (done[warm].came, done[min(last, len(done) - 1)].came)
            found.append(counted(costs, done, replicas, warm, last, span))
    together = (
        np.concatenate([getattr(one, name) for one in found])
        for name in ("first", "waits", "token", "gaps", "many")
    )
    return server, Played(*together, found[0].running, sum(one.preempted for one in found))
