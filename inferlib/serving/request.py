"""A request has a price: prompt, cached prefix and answer from the time of one machine."""

from dataclasses import dataclass, replace
from functools import partial

from inferlib import checks
from inferlib.equation import equation
from inferlib.ops import ceil, maximum, symbolic
from inferlib.serving import energy
from inferlib.serving.decode import decode_step
from inferlib.serving.estimate import Caution, cautions, error_bar, stated, told
from inferlib.serving.prompt import (
    chunked_time,
    first_token_time,
    others_time,
    prompt_pass,
    queue_time,
    room,
    token_time,
)
from inferlib.system import Breakdown, System, Workload
from inferlib.units import factor

equation = partial(equation, "serving", chapter="price")


# Conditions on a request, beside those on its steps.
CAUTIONS = (
    Caution(
        "memory holds {running:,.0f} of {users:,.0f} users: the others wait",
        lambda facts: facts["users"] - facts["running"],
    ),
    Caution(
        "no time to the first token was measured here beyond {most_users:,.0f} users",
        lambda facts: facts["users"] - facts["most_users"],
    ),
    Caution(
        "no time to the first token was measured here with copies of the attention",
        lambda facts: facts["copies"] - 1,
    ),
)


@equation(unit="s", prompt_time="s", output_tokens="1", step="s", users="1 > 0")
def machine_time(prompt_time, output_tokens, step, users):
    """Time of the machine that one request takes: its prompt alone, its answer shared with the batch."""
    return prompt_time + output_tokens * step / users


@equation(unit="usd", seconds="s", n_chips="1", rate="usd/s", utilisation="1 > 0")
def rent(seconds, n_chips, rate, utilisation):
    """What so much time of a machine costs, when it is paid for around the clock and used a part of it."""
    return seconds * n_chips * rate / utilisation


@equation(unit="1", prompt_time="s", output_tokens="1 > 0", step="s > 0", users="1")
def instance_ratio(prompt_time, output_tokens, step, users):
    """Machines that read prompts for each machine that decodes, so that neither waits for the other."""
    return prompt_time * users / (output_tokens * step)


@equation(unit="1", users="1 > 0", seconds="s", arrivals="1/s")
def load(users, seconds, arrivals):
    """Part of its throughput that a machine is asked for: requests that arrive over those it can answer."""
    return arrivals * seconds / users


@dataclass(frozen=True, eq=False)
class Request:
    """What one request takes of a machine and of a user's patience, and what it costs."""

    step: Breakdown
    prompt: Breakdown
    system: System
    reader: System | None
    prompt_tokens: float
    cached_tokens: float
    output_tokens: float
    users: float
    first_token: float
    token: float
    fresh_seconds: float
    cached_seconds: float
    step_factor: float
    first_factor: float
    rate: float | None
    utilisation: float
    cautions: tuple = ()

    @property
    def seconds(self):
        """Seconds from question to the end of the answer."""
        return self.first_token + self.output_tokens * self.token

    @property
    def output_seconds(self):
        """Seconds of the decoding machine that the answer takes."""
        return self.output_tokens * self.step.total / self.users

    @property
    def machine_seconds(self):
        """Seconds of machine for the whole request: fresh and cached prompt, and the answer."""
        return self.fresh_seconds + self.cached_seconds + self.output_seconds

    @property
    def ratio(self):
        """Reading machines for each decoding one, or None where one machine does both."""
        if self.reader is None:
            return None
        reading = self.fresh_seconds + self.cached_seconds
        return instance_ratio(reading, self.output_tokens, self.step.total, self.users)

    @property
    def dollars(self):
        """Dollars for one request; ValueError where no price of the chip is known."""
        return sum(self._paid().values())

    @property
    def per_million(self):
        """Dollars for a million fresh, cached and output tokens."""
        counts = {
            "input": self.prompt_tokens - self.cached_tokens,
            "cached": self.cached_tokens,
            "output": self.output_tokens,
        }
        return {name: 1e6 * paid / counts[name] for name, paid in self._paid().items() if counts[name]}

    def _paid(self):
        if self.rate is None:
            raise ValueError(f"no price of {self.system.chip.name} is known: give price=, in dollars an hour")
        reader = self.reader or self.system
        each = (("input", self.fresh_seconds, reader), ("cached", self.cached_seconds, reader))
        each += (("output", self.output_seconds, self.system),)
        rate = factor("usd/h", "usd/s") * self.rate
        return {name: rent(seconds, at.count, rate, self.utilisation) for name, seconds, at in each}

    @property
    def joules(self):
        """Joules of the chips for one token of the answer, prompts left out."""
        return self._joules(self.step, self.step.total, self.users, self.system)

    @property
    def prompt_joules(self):
        """Joules of the chips for one fresh or cached token of the prompt."""
        reader = self.reader or self.system
        together = self.prompt.total / (self.fresh_seconds + self.cached_seconds)
        return self._joules(self.prompt, self.prompt.total, together * self.prompt_tokens, reader)

    def _joules(self, step, seconds, tokens, system):
        if system.chip.power is None:
            raise ValueError(f"the power of {system.chip.name} is not known")
        drawn = energy.chip_draw(energy.draw(), system.chip.power, *energy.busy(step, seconds))
        return energy.token_energy(system.count, drawn, seconds, tokens)

    def load(self, arrivals):
        """Part of its throughput that the machine is asked for by so many requests a second."""
        return load(self.users, self.seconds, arrivals)

    def __str__(self):
        parts = (self.fresh_seconds, self.cached_seconds, self.output_seconds)
        fresh, cached, answer = (_ms(seconds) for seconds in parts)
        lines = [
            f"first token after {_span(self.first_token, self.first_factor)}, "
            f"then one every {_span(self.token, self.step_factor)}",
            f"machine time {_ms(self.machine_seconds)} ms: fresh prompt {fresh}, cached {cached}, answer {answer}",
        ]
        if self.rate is not None:
            told = ", ".join(f"{name} ${dollars:.3g}" for name, dollars in self.per_million.items())
            lines.append(f"a million tokens: {told}; the request {100 * self.dollars:.3g} cents")
        if self.ratio is not None:
            lines.append(f"{self.ratio:.2g} reading machines for each that decodes")
        return "\n".join(lines + [f"Caution: {caution}." for caution in self.cautions])

    __repr__ = __str__


def _ms(seconds):
    return f"{1e3 * seconds:,.0f}" if seconds >= 0.1 else f"{1e3 * seconds:.3g}"


def _span(seconds, spread):
    """A time with the interval that holds 80 % of cases."""
    return f"{_ms(seconds)} ms ({_ms(seconds / spread)} to {_ms(seconds * spread)})"


def estimate_request(
    model, system, prompt_tokens, output_tokens, users, *, cached_tokens=0, weights="bf16", cache="bf16",
    layout=None, engine=None, keep=None, price=None, utilisation=1.0, reader=None,
    chunk=None,
):  # fmt: skip
    """What one request takes and costs on a machine that a number of users share.

    Parameters
    ----------
    model : Transformer
    system : System
        The machine; with ``reader``, the one that decodes.
    prompt_tokens, output_tokens : float
        Lengths of question and answer.
    users : float
        Users at a time, each of whom asks again when answered.
    cached_tokens : float
        Tokens at the start of the prompt whose cache is kept from before.
    weights, cache : str
        Number formats.
    layout, engine, keep : optional
        As in :func:`inferlib.estimate`.
    price : float, optional
        Dollars for one chip and hour; the catalogue's when not given.
    utilisation : float
        Part of the paid hours in which the machine is this busy.
    reader : System, optional
        A machine of its own for prompts (disaggregated serving).
    chunk : float, optional
        Tokens in which a prompt is read at a time, each piece with a step of the others; all at once when not
        given.

    Returns
    -------
    Request

    Raises
    ------
    ValueError
        If a number is out of range, or users and their caches do not fit.

    Examples
    --------
    >>> import inferlib
    >>> box = inferlib.System(inferlib.load_chip("H100 SXM"), 8)
    >>> r = estimate_request(inferlib.load_model("Llama 3 70B"), box, 4096, 512, users=32)
    >>> r.per_million["output"] > r.per_million["input"]
    True
    """
    for name, value in (("prompt_tokens", prompt_tokens), ("output_tokens", output_tokens)):
        checks.number(name, value)
    checks.number("users", users, minimum=1)
    checks.number("utilisation", utilisation, maximum=1)
    work = Workload(users, prompt_tokens + output_tokens / 2, weights, cache)
    places = room(model, system, work.replace(context=prompt_tokens + output_tokens), layout, keep)
    if places < 1:
        raise ValueError(f"users is {users}, but {system} has no room for one of them beside the weights")
    running = min(users, int(places))
    step = decode_step(model, system, work.replace(batch=running), layout, engine=engine, keep=keep)
    if not step.feasible:
        raise ValueError(f"no answer: {step.reason}")
    own = layout if reader is None else None
    read, fresh = passes(model, reader or system, work, prompt_tokens, cached_tokens, own, keep)
    answer = served(
        model, system, step, read, fresh, prompt_tokens, output_tokens, running, cached_tokens=cached_tokens,
        layout=layout, engine=engine, price=price, utilisation=utilisation, reader=reader, chunk=chunk, asking=users,
    )  # fmt: skip
    return replace(answer, cautions=hopes(model, system, work, layout, users, running))


def passes(model, system, work, prompt_tokens, cached_tokens=0, layout=None, keep=None):
    """How a prompt is read: by named terms, and the seconds of its fresh part alone."""
    asked = {"layout": layout, "keep": keep}
    read = prompt_pass(model, system, work, prompt_tokens, cached_tokens, **asked)
    if not cached_tokens or not read.feasible:
        return read, read.total if read.feasible else None
    return read, prompt_pass(model, system, work, prompt_tokens - cached_tokens, **asked).total


def served(
    model, system, step, read, fresh, prompt_tokens, output_tokens, running, *, cached_tokens=0, layout=None,
    engine=None, price=None, utilisation=1.0, reader=None, chunk=None, asking=None,
):  # fmt: skip
    """A request from a step of ``running`` users (a number or an array of them) and the passes of a prompt.

    Copies of the attention read a prompt each at the same time: a prompt takes its part of the machine, and waits
    for those of its own copy only.
    """
    copies = layout.dp if layout is not None and reader is None else 1
    asking = running if asking is None else asking
    first = stated()["first_token"]
    others = others_time(maximum(running / copies, 1), output_tokens, read.total) if reader is None else 0.0
    pieces = ceil((prompt_tokens - cached_tokens) / chunk) if chunk else 0
    reading = chunked_time(pieces, read.total, step.total)
    ahead = maximum(asking / copies, 1) if reader is None else 1
    waited = first_token_time(
        first["layer_start"], model.n_layers, first["passes"], reading, step.total, ahead
    )
    waited = waited + queue_time(asking, running, read.total / copies, output_tokens, step.total)
    bar = (
        None if symbolic(copies) else error_bar(model, layout, engine)["factor"]
    )  # symbols were never measured
    return Request(
        step=step, prompt=read, system=system, reader=reader, prompt_tokens=prompt_tokens,
        cached_tokens=cached_tokens, output_tokens=output_tokens, users=running, first_token=waited,
        token=token_time(step.total, others), fresh_seconds=fresh / copies,
        cached_seconds=(read.total - fresh) / copies, step_factor=bar,
        first_factor=first["factor"], rate=system.chip.price if price is None else price, utilisation=utilisation,
    )  # fmt: skip


def hopes(model, system, work, layout, users, running):
    """In which respects nothing like this request was measured, or not all of it fits; one sentence each."""
    facts = {
        "users": users, "running": running, "most_users": stated()["first_token"]["users"],
        "copies": 1 if layout is None else layout.dp,
    }  # fmt: skip
    return cautions(model, system, work, layout) + told(CAUTIONS, facts)


def within(model, system, prompt_tokens, output_tokens, *, first_token, speed, most=1024, **more):
    """The request at the largest number of users that a service target allows.

    Parameters
    ----------
    model, system, prompt_tokens, output_tokens, **more
        As in :func:`estimate_request`.
    first_token : float
        Seconds to the first token, at most.
    speed : float
        Tokens per second of one user, at least.
    most : int
        Users beyond which nobody looks.

    Returns
    -------
    Request or None
        None if not even one user is served so well.
    """
    checks.number("first_token", first_token)
    checks.number("speed", speed)

    def kept(users):
        found = estimate_request(model, system, prompt_tokens, output_tokens, users, **more)
        return (
            found
            if found.users == users and found.first_token <= first_token and speed * found.token <= 1
            else None
        )

    low, high = 0, most + 1
    best = None
    while high - low > 1:
        middle = (low + high) // 2
        found = kept(middle)
        low, high, best = (middle, high, found) if found else (low, middle, best)
    return best
