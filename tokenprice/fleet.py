"""A fleet: how many machines serve requests that come by themselves, at what load, with what waits and speed.

Each machine is a queue of the textbooks. With ``n`` requests in it one is done every :func:`machine_time`: a prompt has
the machine alone, an answer shares every step. Requests come at random, to any machine; beyond the places that memory
has they stand in line. That is a birth and death process, whose states are known in closed form (Harchol-Balter 2013);
where every answer takes the same time, it is Erlang's formula.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

import numpy as np

from inferlib.system import Layout, System
from tokenprice.decode import decode_step, whole_layers
from tokenprice.estimate import stated
from tokenprice.prompt import STEADY, first_token_time, room_of, turn_time
from tokenprice.request import Request, load, machine_time, passes, served, with_cautions
from tokenprice.speculation import acceptance, drafted_step
from tokenprice.words import durations

MOST = 8192  # places of a machine beyond which nobody looks


@dataclass(frozen=True)
class State:
    """One machine in its steady state: means over its requests, in seconds; ``waits`` is for a place."""

    load: float
    running: float
    blocked: float
    waits: float
    token: float
    first_token: float


@dataclass(frozen=True, eq=False)
class Station:
    """One machine as a queue.

    ``prompt`` is how long a prompt has the machine for itself (0 where other machines read), ``copies`` how many read
    side by side, ``steps`` the seconds of a step with 1, 2, ... sequences: as many as have a place. ``door`` and
    ``pieces`` (steps that a prompt read in pieces waits for) belong to the first token alone.
    """

    prompt: float
    output: float
    steps: np.ndarray
    copies: int = 1
    door: float = 0.0
    pieces: int = 0
    equal: bool = False

    @property
    def places(self) -> int:
        """Sequences that have a place."""
        return len(self.steps)

    @cached_property
    def times(self) -> np.ndarray:
        """Seconds from one finished request to the next, with 1, 2, ... of them in the machine."""
        return machine_time(self.prompt, self.output, self.steps, np.arange(1, self.places + 1))

    def load(self, arrivals) -> float:
        """Part of its throughput that the machine is asked for."""
        return float(load(self.places, self.places * self.times[-1], arrivals))

    def slower(self, by):
        """The same machine, when everything that it does takes so many times as long."""
        return replace(self, prompt=self.prompt * by, steps=self.steps * by)

    def at(self, arrivals, before=0.0) -> State | None:
        """The steady state with so many requests a second; None where there is none, because they pile up.

        ``before`` is what a request waits at the machine that reads its prompt, where it is another one.

        Examples
        --------
        >>> found = Station(prompt=0, output=10, steps=np.array([0.1])).at(0.5)  # M/M/1: a second each, half busy
        >>> round(found.waits, 12), round(found.token, 12), round(found.blocked, 12)
        (1.0, 0.1, 0.5)
        """
        busy = self.load(arrivals)
        if busy >= 1:
            return None
        odds = np.concatenate(([0.0], np.cumsum(np.log(arrivals * self.times))))
        odds = np.exp(odds - odds.max())
        odds[-1] /= 1 - busy  # with those in line, who change nothing but the line
        odds /= odds.sum()
        running, blocked = float(odds @ np.arange(self.places + 1)), float(odds[-1])
        step = float(odds[1:] @ self.steps / odds[1:].sum())
        if arrivals / self.copies * self.reading(step) >= 1:
            return None
        means = self.means(arrivals, busy, running, blocked, step, before)
        return State(busy, running, blocked, *map(float, means))

    def reading(self, step):
        """How long a copy reads a prompt, with the steps in which its pieces ride."""
        alone = self.prompt * self.copies
        return alone + max(self.pieces, 1) * step if alone else 0.0

    def means(self, arrivals, busy, running, blocked, step, before=0.0):
        """Wait for a place, time of a token and time to the first, from means of the queue: numbers or symbols."""
        # Lee and Longton: the line is half as long where all answers are equally long
        waits = blocked * busy / (1 - busy) / arrivals * (0.5 if self.equal else 1)
        turn = turn_time(arrivals / self.copies, self.reading(step))
        own = self.prompt * self.copies + self.pieces * step
        inside = running / arrivals - own - turn  # Little's law
        first = first_token_time(self.door + before, 1, own, waits + turn, step)
        return waits, inside / self.output, first


def step_of(q, system, layout, batch):
    """The step of a question's model with so many sequences, drafts included."""
    how = {"engine": q.engine, "keep": q.formats[2]}
    work = q.workload.replace(batch=batch)
    if q.drafted is None:
        return decode_step(q.model, system, work, layout, **how)
    length = acceptance(q.length, q.drafted) if isinstance(q.length, str) else q.length
    return drafted_step(q.model, system, work, layout, drafted=q.drafted, length=length, **how)


def station(q, system, layout, prompt) -> Station:
    """The queue that a machine is for a question's requests, each of whose prompts has it for so long."""
    copies = layout.dp if layout is not None else 1
    places = room_of(q, system, layout)
    numbers = np.arange(1, max(int(min(places, q.users or MOST, MOST)), 1) + 1)
    steps = np.broadcast_to(step_of(q, system, layout, np.maximum(numbers, copies)).total, numbers.shape)
    pieces = ceil((q.prompt - (q.cached or 0)) / q.chunk) if q.chunk else 0
    known = stated()["first_token"]
    door = known["door"] + known["layer"] * whole_layers(q.model)
    return Station(prompt, q.output, steps, copies, door, pieces, bool(q.equal))


@dataclass(frozen=True, eq=False)
class Fleet:
    """So many machines for so many requests a second, in their steady state.

    ``state`` is that of one machine, ``slow`` the one at the slow end of the interval of a step, ``factor`` times as
    slow. Where ``reader`` is given, ``readers`` of those read the prompts. ``request`` is the mean request, with its
    price, and with intervals that hold the slow end.
    """

    arrivals: float
    system: System
    layout: Layout | None
    machines: int
    station: Station
    factor: float
    state: State
    slow: State
    request: Request
    reader: System | None = None
    readers: int = 0
    reader_load: float = 0.0

    @property
    def chips(self) -> int:
        """Chips of all machines."""
        return self.machines * self.system.count + (self.readers * self.reader.count if self.reader else 0)

    @property
    def dollars_per_hour(self) -> float | None:
        """What all machines cost, busy or not."""
        return None if self.request.rate is None else self.request.dollars * self.arrivals * 3600

    def to_dict(self) -> dict:
        """Everything as plain numbers, in SI units."""
        return {
            "arrivals": self.arrivals, "machines": self.machines, "readers": self.readers, "chips": self.chips,
            "load": self.state.load, "reader_load": self.reader_load, "running": self.state.running,
            "wait": self.state.waits, "wait_high": self.slow.waits, "first_token": self.state.first_token,
            "token": self.state.token, "token_high": self.slow.token, "usd_per_hour": self.dollars_per_hour,
            "usd_per_million": self.request.per_million if self.request.rate is not None else {},
        }  # fmt: skip

    def lines(self) -> list[str]:
        """How many at what load, what users wait, and what it costs."""
        at, own = self.state, f"{self.machines} × ({self.system})"
        read = f"{self.readers} × ({self.reader}) that read at {self.reader_load:.0%} load"
        busy = f"{at.load:.0%}"
        whole = f"{read}, {own} that decode at {busy}" if self.reader else f"{own} at {busy} load"
        first, waits, late = durations(at.first_token), at.waits, self.slow.waits
        line = f"{durations(waits)} of it" if waits >= 5e-4 else "nobody"
        slow = f" ({durations(late)} at the slow end of the interval)" if late >= 5e-4 else ""
        found = [f"{whole}, {at.running:,.3g} requests in each"]
        found += [f"{1 / at.token:.3g} tokens/s per user, first token {first}, {line} in line{slow}"]
        if self.dollars_per_hour is None:
            return found
        dollars = self.request.per_million["output"]
        return [*found, f"${self.dollars_per_hour:,.2f} an hour, ${dollars:.3g} per million output tokens"]

    def __str__(self):
        return "\n".join(self.lines())

    __repr__ = __str__


def fleet(q, system, layout=None, *, reader=None, machines=None, kept=None) -> Fleet | None:
    """The fewest machines for a question's arrivals, whose state is ``kept``; None where no number is enough.

    Above the load at which the slow end of the interval has no steady state there is no answer: a machine that
    takes somewhat longer than computed would let requests pile up without end.

    ``q``, ``system``, ``layout``: requests with ``arrivals``, and the machine that decodes. ``reader``: the
    system that reads prompts; those that decode do when not given. ``machines``: how many, if that is not the
    question. ``kept``: of two states, at the estimate and at the slow end: whether they are as promised.
    """
    lies = layout if reader in (None, system) else None
    read, fresh = passes(q.model, reader or system, q.workload, q.prompt, q.cached or 0, lies, q.formats[2])
    own = read.total / (lies.dp if lies is not None else 1)
    at = station(q, system, layout, 0.0 if reader else own)

    def mean(users):  # the request of so many in a machine
        work, step = q.workload.replace(batch=users), step_of(q, system, layout, max(users, at.copies))
        made = served(
            q.model, system, step, read, fresh, q.prompt, q.output, users, cached_tokens=q.cached or 0, layout=lies,
            engine=q.engine, price=q.hourly(system.chip), reader=reader, read_price=reader and q.hourly(reader.chip),
        )  # fmt: skip
        return with_cautions(made, q.model, work, layout, users, STEADY)

    one = mean(at.copies)
    factor = one.step_factor
    ends, times = (at, at.slower(factor)), (read.total, read.total * factor)

    def states(n, before=times if reader else (0.0, 0.0)):
        found = [end.at(q.arrivals / n, waits) for end, waits in zip(ends, before, strict=True)]
        if found[1] is None:
            return None
        late = max(found[1].first_token, found[0].first_token * one.first_factor)
        return found[0], replace(found[1], first_token=late)

    def reading(n):
        each = q.arrivals / n * own / read.total
        return [time + turn_time(each, time) for time in times] if each * times[1] < 1 else None

    def good(found):
        return found and (kept is None or kept(*found))

    n, readers = machines or _fewest(lambda n: good(states(n))), 0
    if reader and n:
        readers = _fewest(lambda m: (before := reading(m)) and good(states(n, before)))
    if not n or (reader and not readers) or not states(n):
        return None
    state, slow = states(n, reading(readers)) if readers else states(n)
    request = mean(max(state.running, 1))
    reads = request.fresh_seconds + request.cached_seconds
    busy = [q.arrivals * request.output_seconds / n, q.arrivals * reads / (readers or n)]
    busy = busy if reader else [sum(busy)] * 2
    request = replace(
        request, token=state.token, first_token=state.first_token, utilisation=busy[0], reading=busy[1],
        slow=(slow.token, slow.first_token), spread=q.spread(system.chip),
    )  # fmt: skip
    full = q.arrivals * own / readers if readers else 0.0
    return Fleet(q.arrivals, system, layout, n, at, factor, state, slow, request, reader, readers, full)


def _fewest(kept, most=2**20):
    """The smallest number from 1 for which this holds, where it holds for all larger ones; None if for none."""
    high = 1
    while not kept(high):
        if high >= most:
            return None
        high *= 2
    low = high // 2
    while high - low > 1:
        between = (low + high) // 2
        low, high = (low, between) if kept(between) else (between, high)
    return high
