"""A fleet: how many machines serve requests that come by themselves, at what load, with what waits and speed.

Each copy of a model is a queue of its own. Prompts have it for themselves, one after another, and whoever is being
answered waits meanwhile; what time they leave makes answers, a step for all of them at once. So answers are a birth and
death process whose states are known in closed form (Harchol-Balter 2013; where every answer takes the same time, it is
Erlang's formula), and prompts are a queue of equal services in front of it.
"""

from dataclasses import replace
from functools import cache, partial
from math import exp

from inferlib.equation import equation, frozen
from inferlib.extras import np
from inferlib.system import Breakdown, Layout, System
from tokenprice import constants, mix
from tokenprice.decode import decode_step
from tokenprice.prompt import first_token_time, prompt_pass, room_of, turn_time, until_first
from tokenprice.request import (
    Request,
    keep_step,
    lane_time,
    load,
    machine_time,
    served,
    with_cautions,
)
from tokenprice.speculation import acceptance, drafted_step
from tokenprice.words import durations, figures

equation = partial(equation, "serving", chapter="price")

MONTH = 730  # hours
ROUNDS, NEAR = 200, 1e-9  # of a fixed point
SOON, ROOM = 1e-6, 64  # of a prompt, a step in which nobody is answered; places where nobody stays
MOST = 8192  # places of a machine beyond which nobody looks


@frozen
class State:
    """One machine in its steady state: means over its requests, in seconds; ``waits`` is for a place."""

    load: float
    running: float
    blocked: float
    waits: float
    token: float
    first_token: float


@equation(
    unit="s",
    arrivals="1/s > 0",
    prompt_time="s",
    pieces="1 > 0",
    output_tokens="1 > 0",
    step="s > 0",
    cleared="1 > 0",
)
def answer_gap(arrivals, prompt_time, pieces, output_tokens, step, cleared):
    """Time between two tokens of one user: a step, and a piece of a prompt with a certain probability.

    Prompts go first, so behind one's own those that came meanwhile are read, a token of one's answer with each piece;
    short answers see little else. ``cleared`` is the root of :func:`clearing`. Exact where steps are equally long and
    an answer ends with equal probability after each of its tokens.
    """
    ends, busy = 1 / output_tokens, arrivals * (prompt_time + pieces * step)
    idle = arrivals * step * cleared  # who come in a step, so that 1 - exp(-idle) needs few terms
    came = idle * (1 - idle / 2 * (1 - idle / 3 * (1 - idle / 4)))
    during = 1 - (1 - ends) ** pieces  # an answer ends while a prompt is read
    alone = (1 - busy) * ends * came / (during * arrivals * step * (ends + (1 - ends) * came))
    return step + prompt_time / pieces * (1 - alone)


def clearing(busy, pieces, output):
    """The root y of ``1 - y = (1 - 1/output)^pieces exp(-busy y)``: an answer ends before one prompt less waits."""
    stays, y = (1 - 1 / output) ** pieces, 1.0
    for _ in range(50):
        left = stays * exp(-busy * y)
        y -= (left + y - 1) / (1 - busy * left)
    return y


@frozen
class Station:
    """One machine as a queue, or as many as it has copies and stages.

    ``prompt`` is how long a prompt has a copy for itself (0 where other machines read), in so many ``pieces``, each
    read in a step of the others; ``steps`` the seconds of a step with 1, 2, ... sequences in each copy: as many as have
    a place. ``door`` is the way in and out, and ``late`` how much later the first token of a prompt comes than those of
    others beside it; both belong to the first token alone. ``scatter`` is the variance of the prompts' seconds,
    ``varies`` that of answers over the square of their mean: 1 where they end at random, 0 where all are equally long.
    ``answers`` are the lengths of those to which equal parts of all tokens belong.
    So many copies go ``in_step``: each step takes as long as its longest, and ``met`` of them have a piece of another
    copy's prompt, besides its own.
    """

    prompt: float
    output: float
    steps: "np.ndarray"
    copies: int = 1
    door: float = 0.0
    pieces: int = 1
    scatter: float = 0.0
    varies: float = 1.0
    answers: tuple = ()
    in_step: int = 1
    late: float = 0.0

    @property
    def places(self) -> int:
        """Sequences that have a place in a copy."""
        return len(self.steps)

    def load(self, arrivals) -> float:
        """Part of its throughput that the machine is asked for."""
        return float(load(self.copies, self.full(self.steps[-1], self.places), arrivals))

    def full(self, step, places):
        """Seconds of a copy that a request takes where none is idle: numbers or symbols."""
        read = lane_time(self.prompt, self.pieces * places, self.output, 1, self.in_step)
        return machine_time(read, self.output, step, places)

    def others(self, arrivals, step):
        """Of a copy's steps without a prompt of its own, ``step`` long: in how many another copy reads, and the cling.

        That is how much more often, behind a step with a prompt. Numbers or symbols.
        """
        if self.in_step == 1 or self.prompt == 0:
            return 0.0, 0.0
        run, begins = self.runs(arrivals, step, self.in_step)
        read = run * begins / (1 + run * begins)
        own = arrivals * (self.pieces * step + self.prompt * read)
        last, first = self.runs(arrivals, step, self.in_step - 1)
        return 1 - (1 - read) / (1 - own), 1 - 1 / last - first

    def runs(self, arrivals, step, copies):
        """How many steps with prompts of so many copies follow one another, and how often that begins.

        Who comes in a long step is read in the next, together with others, so a run ends as if all steps were long.
        """
        came = arrivals * (step + self.prompt / self.pieces)
        idle = (1 - arrivals * (step * self.pieces + self.prompt)) ** copies
        run = (1 - idle) / (idle * (1 - (1 - came) ** copies))
        return run, 1 - (1 - arrivals * step) ** copies

    def slower(self, by):
        """The same machine, when everything that it does takes so many times as long."""
        late, scatter = self.late * by, self.scatter * by**2
        return replace(self, prompt=self.prompt * by, steps=self.steps * by, late=late, scatter=scatter)

    def at(self, arrivals, before=0.0) -> State | None:
        """The steady state with so many requests a second; None where there is none, because they pile up.

        ``before`` is what a request waits at the machine that reads its prompt, where it is another one.

        Examples
        --------
        >>> found = Station(prompt=0, output=10, steps=np.array([0.1])).at(0.5)  # M/M/1: a second each, half busy
        >>> round(found.waits, 12), round(found.token, 12), round(found.blocked, 12)
        (1.0, 0.1, 0.5)
        """
        each, busy, near = arrivals / self.copies, self.load(arrivals), (0.0, 0.0)
        if busy >= 1:
            return None
        for _ in range(ROUNDS):
            found = self.beside(each, busy, near, before)
            if found is None:
                return None
            state, step = found
            last, near = near, self.others(each, step - near[0] * self.prompt / self.pieces)
            if abs(near[0] - last[0]) < NEAR:
                break
        return state

    def beside(self, each, busy, near, before):
        """The state of a copy beside others as in :meth:`others`, and its mean step."""
        met = near[0]
        numbers, read = np.arange(1, self.places + 1), self.prompt * (1 - met)
        steps = self.steps + met * self.prompt / self.pieces
        # the time that prompts leave, so many answers at once
        line = each * self.output * steps / numbers / (1 - each * read)
        if line[-1] >= 1:
            return None
        odds = np.concatenate(([0.0], np.cumsum(np.log(line))))
        with np.errstate(under="ignore"):  # states that never are
            odds = np.exp(odds - odds.max())
        odds[-1] /= 1 - line[-1]  # with those in line, who change nothing but the line
        odds /= odds.sum()
        seen = odds[1:] * numbers
        step = float(seen.sum() / (seen / steps).sum())  # as tokens see it
        reads = each * self.reading(step, met) if self.prompt else 0.0
        if reads >= 1 or before < 0:
            return None
        blocked, queue = float(odds[-1]), (each, float(line[-1]), float(odds[-1]), step)
        # of an answer one half is before its mean token, as of one that ends at random the whole
        lengths = [max(one / 2, 1) for one in self.answers or (2 * self.output,)]
        means = [self.means(*queue, clearing(reads, self.pieces, n), before, n, *near) for n in lengths]
        waits, token, first = np.mean(means, axis=0)
        running = each * self.copies * (self.reading(step, met) + (self.output - 1) * token)
        return State(busy, float(running), blocked, float(waits), float(token), float(first)), step

    def reading(self, step, met=0.0):
        """How long a copy reads a prompt, with the steps in which its pieces ride."""
        return self.prompt * (1 - met) + self.pieces * step

    def means(self, arrivals, line, blocked, step, cleared, before=0.0, answer=None, met=0.0, clings=0.0):
        """Wait for a place, time of a token and time to the first, of the requests of a copy: numbers or symbols.

        ``line`` is how many come while a full copy finishes one, ``blocked`` the probability that it is full,
        ``answer`` the mean of answers that end at random; ``met`` and ``clings`` as in :meth:`others`.
        """
        # Lee and Longton: the line is half as long where all answers are equally long
        waits = blocked * line / (1 - line) / arrivals * (1 + self.varies) / 2
        reading, piece = self.reading(step, met), self.prompt / self.pieces
        # Pollaczek and Khinchine: who comes meets a long prompt more often than a short one
        turn = turn_time(arrivals, reading) * (1 + self.scatter / reading**2) if self.prompt else 0.0
        # who comes while another copy reads waits for the rest of its step
        plain = step - met * piece
        turn += met * (plain + piece) ** 2 / (2 * step)
        answer = answer or self.output
        # an answer begins behind a prompt: the nearer, the more others read
        after = met + (1 - met) * clings / (answer - (answer - 1) * clings)
        token = answer_gap(
            arrivals, self.prompt * (1 - after), self.pieces, answer, plain + after * piece, cleared
        )
        first = first_token_time(self.door + self.late + before, 1, reading - plain, waits + turn, plain)
        return waits, token, first


def step_of(q, system, layout, batch, **other):
    """The step of a question's model with so many sequences, drafts included; of an ``other`` context if said."""
    how = {"engine": q.engine, "keep": q.formats[2], "share": q.memory}
    work = q.workload.replace(batch=batch, **other)
    if q.drafted is None:
        return decode_step(q.model, system, work, layout, **how)
    length = acceptance(q.length, q.drafted) if isinstance(q.length, str) else q.length
    return drafted_step(q.model, system, work, layout, drafted=q.drafted, length=length, **how)


def station(q, system, layout, prompt) -> Station:
    """The queue that a machine is for a question's requests, each of whose prompts has it for so long."""
    copies = layout.lanes if layout is not None else 1
    places = min(room_of(q, system, layout), q.users or MOST, MOST)
    numbers = copies * np.arange(1, max(int(places / copies), 1) + 1)
    steps = np.broadcast_to(step_of(q, system, layout, numbers).total, numbers.shape)
    pieces = q.pieces if prompt else 1
    late = late_of(q, pieces, prompt)
    varies, answers = mix.varies(q.answers), mix.tenths(q.answers)
    keeps = int(keep_step(q.model, layout))
    door = constants.engine(q.engine).door
    return Station(
        prompt,
        q.output,
        steps,
        copies,
        door,
        pieces,
        varies=varies,
        answers=answers,
        in_step=keeps,
        late=late,
    )


def reader_of(q, read, layout) -> Station:
    """The queue of a machine that only reads: answers of one token, whose steps take no time to speak of."""
    copies, keeps = layout.lanes if layout is not None else 1, int(keep_step(q.model, layout))
    prompt = read.whole.total
    steps = np.full(ROOM, SOON * prompt)
    return Station(prompt, 1, steps, copies, scatter=read.scatter, in_step=keeps)


def late_of(q, pieces, prompt):
    """How much later the first token of a prompt comes than those of others beside it, in seconds."""
    return until_first(q.model, prompt, pieces, q.engine) - prompt if prompt else 0.0


def held(q, system, layout, machines=1):
    """The question with what so many machines still hold of its prompts, where a trace says what they share."""
    if q.trace is None or not q.trace.blocks:
        return q
    room = room_of(q, system, layout) * q.workload.context * machines
    return q.replace(cached=q.trace.cached(room))


@frozen
class Reading:
    """How prompts are read: what of them is in the cache, the mean by terms, its fresh part, and the variance."""

    cached: float
    whole: Breakdown
    fresh: float
    scatter: float = 0.0

    @property
    def uneven(self):
        """Mean square of the prompts' seconds over the square of their mean."""
        return 1 + self.scatter / self.whole.total**2

    def request(self, q, system, layout, step, users, reader=None, **other):
        """The request of a question with its prompts read so, and so many users or an array of them in a step."""
        return served(
            q.model, system, step, self.whole, self.fresh, q.prompt, q.output, users, cached_tokens=self.cached,
            layout=layout, engine=q.engine, price=q.hourly(system.chip), utilisation=q.utilisation or 1,
            reader=reader, read_price=reader and q.hourly(reader.chip), uneven=self.uneven, **other,
        )  # fmt: skip


def reading_of(q, system, layout, machines=1) -> Reading:
    """How so many machines read the prompts of a question."""
    asked = held(q, system, layout, machines)
    cached, each = asked.cached or 0, pass_of(asked, system, layout)
    mean = mix.average if isinstance(q.prompt, mix.Lengths) else lambda one: one
    whole = mean(each)
    fresh = mean(pass_of(asked, system, layout, fresh=True)).total if cached else whole.total
    return Reading(cached, whole, fresh, 0.0 if whole is each else float(np.var(each.total)))


def pass_of(q, system, layout, fresh=False) -> Breakdown:
    """How the prompt, or each of the equally likely ones, is read; ``fresh``: what is not in the cache alone."""
    whole, cached = mix.array(q.prompt), mix.array(q.cached or 0)
    tokens, known = (whole - cached, 0) if fresh else (whole, cached)
    return prompt_pass(q.model, system, q.workload, tokens, known, layout, keep=q.formats[2])


@frozen
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
        return self.request.dollars * self.arrivals * 3600 if self.request.priced else None

    @property
    def headroom(self) -> float:
        """How many times as many requests may come before they pile up at the slow end of the interval."""
        full = max(self.station.load(self.arrivals / self.machines), self.reader_load)
        return 1 / (full * self.factor)

    def to_dict(self) -> dict:
        """Everything as plain numbers, in SI units."""
        return {
            "headroom": self.headroom,
            "arrivals": self.arrivals, "machines": self.machines, "readers": self.readers, "chips": self.chips,
            "load": self.state.load, "reader_load": self.reader_load, "running": self.state.running,
            "wait": self.state.waits, "wait_high": self.slow.waits, "first_token": self.state.first_token,
            "token": self.state.token, "token_high": self.slow.token, "usd_per_hour": self.dollars_per_hour,
            "usd_per_million": self.request.per_million if self.request.priced else {},
        }  # fmt: skip

    @property
    def machinery(self) -> str:
        """How many machines at what load, in words."""
        own, busy = f"{self.machines} × ({self.system})", f"{self.state.load:.0%}"
        read = f"{self.readers} × ({self.reader}) that read at {self.reader_load:.0%} load"
        return f"{read}, {own} that decode at {busy}" if self.reader else f"{own} at {busy} load"

    @property
    def dollars_per_month(self) -> float | None:
        """The same for a month of 730 hours."""
        return None if self.dollars_per_hour is None else MONTH * self.dollars_per_hour

    def lines(self) -> list[str]:
        """How many at what load, what users wait, and what it costs."""
        at = self.state
        room = f", room for {self.headroom:.2g} × these arrivals"
        first, waits, late = durations(at.first_token), at.waits, self.slow.waits
        line = f"{durations(waits)} of it" if waits >= 5e-4 else "nobody"
        slow = f" ({durations(late)} at the slow end of the interval)" if late >= 5e-4 else ""
        found = [f"{self.machinery}, {at.running:,.3g} answers at a time in each{room}"]
        found += [f"{1 / at.token:.3g} tokens/s per user, first token {first}, {line} in line{slow}"]
        if self.dollars_per_hour is None:
            return found
        dollars = self.request.per_million["output"]
        paid = f"${self.dollars_per_hour:,.2f} an hour, ${self.dollars_per_month:,.0f} a month"
        return [*found, f"{paid}, ${figures(dollars)} per million output tokens"]

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
    lanes = lies.lanes if lies is not None else 1
    empty = station(q, system, layout, 0.0 if reader else 1.0)

    @cache
    def read(n):
        return reading_of(q, reader or system, lies, n)

    def reads(n):  # memory of more machines matters to prompts that share
        return read(n if q.trace is not None and q.trace.blocks else 1)

    def station_of(n):
        one, asked = reads(n), q.replace(cached=reads(n).cached or None)
        if reader:
            return empty
        prompt, pieces = one.whole.total, asked.pieces
        late = late_of(q, pieces, prompt)
        return replace(empty, prompt=prompt, pieces=pieces, scatter=one.scatter, late=late)

    def mean(users, n):  # the request of so many in a machine
        step = step_of(q, system, layout, max(users, empty.copies))
        made = reads(n).request(q, system, layout, step, users, reader, apart=lanes)
        return with_cautions(made, q, layout, users)

    one = mean(empty.copies, 1)
    factor = one.step_factor
    times = [by * read(1).whole.total for by in (1.0, factor)]

    def states(n, before=times if reader else (0.0, 0.0)):
        at = station_of(n)
        found = [
            end.at(q.arrivals / n, waits) for end, waits in zip((at, at.slower(factor)), before, strict=True)
        ]
        if found[1] is None:
            return None
        late = max(found[1].first_token, found[0].first_token * one.first_factor)
        return found[0], replace(found[1], first_token=late)

    def reading(n):
        one = reader_of(q, reads(n), lies)
        found = [one.slower(by).at(q.arrivals / n) for by in (1.0, factor)]
        return None if None in found else [state.first_token for state in found]

    def good(found):
        return found and (kept is None or kept(*found))

    n, readers = machines or fewest(lambda n: good(states(n))), 0
    if reader and n:
        readers = fewest(lambda m: (before := reading(m)) and good(states(n, before)))
    if not n or (reader and not readers) or not states(n):
        return None
    state, slow = states(n, reading(readers)) if readers else states(n)
    request = mean(max(state.running, 1), readers or n)
    paid = request.fresh_seconds + request.cached_seconds
    busy = [q.arrivals * request.output_seconds / n, q.arrivals * paid / (readers or n)]
    busy = busy if reader else [sum(busy)] * 2
    request = replace(
        request, token=state.token, first_token=state.first_token, utilisation=busy[0], reading=busy[1],
        slow=(slow.token, slow.first_token),
    )  # fmt: skip
    full = reader_of(q, reads(readers), lies).load(q.arrivals / readers) if readers else 0.0
    return Fleet(
        q.arrivals, system, layout, n, station_of(n), factor, state, slow, request, reader, readers, full
    )


def fewest(kept, most=2**20, least=1):
    """The smallest number from ``least`` for which this holds, where it holds for all larger ones; None if for none."""
    high = least
    while not kept(high):
        if high >= most:
            return None
        high *= 2
    low = max(high // 2, least - 1)
    while high - low > 1:
        between = (low + high) // 2
        low, high = (low, between) if kept(between) else (between, high)
    return high
