"""Prefill: how long it takes, how it delays other users' tokens, and when the first token comes."""

from functools import partial
from numbers import Real

from inferlib.equation import Record, equation, frozen
from inferlib.ops import log, maximum, minimum, sqrt, where
from inferlib.transformer import Attention
from tokenprice.scheduler import UNSHARED
from tokenprice.uncertainty import load_calibration

equation = partial(equation, "serving", chapter="price")

STEPS = 2  # the step in progress, and the step that prefills the prompt


@equation(copies="1 > 0")
def interleaved_prefills(own, each, copies):
    """Prefills between two tokens with copies in lockstep: ``own`` from the copy, ``each`` from every other copy.

    Copies that share experts wait for one another's prefills; prefills that fall into one step run together.

    Examples
    --------
    >>> [round(interleaved_prefills(own=n, each=n, copies=2), 4) for n in (0.1, 0.5, 1)]
    [0.19, 0.75, 1]
    """
    if isinstance(copies, Real) and copies == 1:
        return own
    return maximum(own, 1 - (1 - minimum(own, 1)) * (1 - minimum(each, 1)) ** (copies - 1))


@equation(unit="s", output_tokens="1 > 0", prompt_time="s")
def prefill_interference(users, output_tokens, prompt_time):
    """Mean delay of one token by other users' prefills, in a closed loop.

    While a user receives ``output_tokens``, each of the others finishes once and sends one prompt, so ``users`` - 1
    prompts are prefilled among ``output_tokens`` tokens.

    Examples
    --------
    >>> prefill_interference(users=33, output_tokens=1000, prompt_time=0.1)
    0.0032
    """
    return (users - 1) / output_tokens * prompt_time


def inter_token_wait(users, later, output_tokens, prompt_time, copies, pieces=1, most=None):
    """:func:`prefill_interference` with ``copies`` in lockstep of ``users`` each, of whom ``later`` are prefilled
    after the first token.

    ``most``: answers decoded at once; if more users ask, each step prefills all prompts that fit.
    """
    own = prefill_interference(later, output_tokens, pieces)
    wait = interleaved_prefills(own, pieces * users / output_tokens, copies) * prompt_time / pieces
    if most is None:
        return wait
    return where(users > maximum(most, 1), prompt_time * most / output_tokens, wait)


@equation(unit="s", step="s", others="s")
def token_time(step, others):
    """Time between two tokens of a user (TPOT): the step, and the prefills of others in between."""
    return step + others


@equation(unit="s", prompt_time="s", step="s")
def chunked_time(chunks, prompt_time, step):
    """Time to prefill a prompt in chunks, each of which shares a step with the tokens of others."""
    return prompt_time + chunks * step


@frozen
class ArrivalProcess(Record):
    """How the requests of a closed loop arrive: each user asks again when answered.

    ``requests_per_user``: rounds, if all users start at once; None if they start apart, or if the service has run for
    long. ``fixed_lengths``: with outputs of equal length, users ask right after one another.
    """

    requests_per_user: float | None = None
    fixed_lengths: bool = False

    @property
    def burst(self):
        """Share of all requests that are in the burst at the start."""
        return 1 / self.requests_per_user if self.requests_per_user else 0

    @property
    def group(self):
        """Prompts prefilled up to and including the request's own, without the burst and random arrivals.

        With fixed lengths, users ask one after another, so each step that a prompt waits for prefills another prompt.
        """
        return 1 + STEPS if self.fixed_lengths else 1


STEADY = ArrivalProcess()


@equation()
def prompts_ahead(burst, group, users):
    """Prompts prefilled up to and including the request's own: the group, and on average half of the burst.

    ``burst``: the share of requests that belong to the burst.

    Examples
    --------
    >>> prompts_ahead(burst=0.1, group=1, users=31)
    2.5
    """
    return group + burst * (users - group) / 2


@equation(prompts="1 > 0", copies="1 > 0")
def balance_steps(prompts, copies, timeout):
    """Steps for which a prompt is held back until each copy has one, at ``prompts`` per step and copy.

    The longest of n exponential waits is about ln n + 0.4 times the mean wait.

    Examples
    --------
    >>> round(balance_steps(prompts=0.1, copies=8, timeout=60), 1), balance_steps(prompts=0.01, copies=8, timeout=60)
    (24.8, 60)
    """
    return minimum((log(copies) + 0.4) / prompts, timeout)


@equation(pieces="1 > 0")
def queued_prefills(others, between, pieces):
    """Mean number of prompts queued when a user of a closed loop asks, after an answer as long as ``between`` prefills.

    Time is counted in steps with prefill, because answers proceed only in those. It is a queue of equal services with
    mean length ``r / 2(1 - r)`` at load ``r``; an arriving user sees the queue of the other users (mean value analysis
    in Schweitzer's form, a quadratic equation). An answer ends at the end of a step, when the next of the ``pieces`` of
    a prompt begins: at random times half a piece would remain, so half a piece is added. If a step holds several
    prompts (``pieces`` below 1), others that arrive in the same step and fit are prefilled with it.

    Examples
    --------
    >>> round(queued_prefills(others=63, between=100, pieces=1), 2)
    1.44
    >>> queued_prefills(others=63, between=0, pieces=1)  # all others are queued
    63
    """
    more = 2 * (others - between) - 1
    line = (more + sqrt(more**2 + 8 * others)) / 4
    beside = maximum(1 - pieces, 0) * others / maximum(between * pieces, 1)
    return minimum(line + 2 * line / (1 + 2 * line) / pieces + beside, others)


@equation(output_tokens="1 > 0", budget="1 > 0")
def concurrent_answers(users, output_tokens, prompt_tokens, budget):
    """Users of a closed loop decoding at once, when a step's budget covers one token of each and the new prompts."""
    return minimum(users, maximum(budget / (1 + prompt_tokens / output_tokens), 1))


@equation(unit="s", door="s", prompt_time="s", turn="s", step="s")
def first_token_time(door, ahead, prompt_time, turn, step):
    """Time to first token: service overhead, prefills up to the request's own, and the steps in between."""
    return door + ahead * prompt_time + turn + STEPS * step


@equation(unit="s", room="1 > 0", machine_time="s")
def queue_time(users, room, machine_time):
    """Wait for memory when more users ask than sequences fit.

    Users beyond ``room`` wait until a place is free; each finished request frees one.
    """
    return maximum(users - room, 0) * machine_time


READ_AND_WORK = ("weights", "arithmetic"), ("expert weights", "expert arithmetic")


def added_time(read, step, beside=1):
    """Seconds that a prefill adds to a step with ``beside`` sequences: weights are read once for both.

    Nothing is fitted. Prompts of 128 tokens of Qwen3 235B, prefilled among as many users, took a fourth of their time
    alone.
    """
    seconds = read.total
    together = minimum(beside, 1)
    for weights, work in READ_AND_WORK:
        if weights in read.terms:
            alone = maximum(read.terms[weights], read.terms[work])
            rest = maximum(read.terms[weights] - step.terms.get(weights, 0), read.terms[work])
            seconds = seconds - together * (alone - rest)
    return seconds


def launch_floor(deployment):
    """Lower bound of a prefill in seconds, from kernels that the host launches one by one.

    Plain attention is one kernel and never waits for the host.
    """
    if all(isinstance(attention, Attention) for _, attention in deployment.model.attentions):
        return 0.0
    return deployment.software.host * deployment.layers


def prefill_until_first_token(deployment, prompt_time, pieces=1):
    """Seconds of a prompt's prefill up to its first token; the tokens of others run along.

    A mixture of experts takes longer than its kernels, and no prefill is faster than the host can launch it.
    """
    floor = pieces * launch_floor(deployment)
    late = where(deployment.model.sparse, load_calibration()["first_token"]["late"], 1)
    return maximum(late * prompt_time, floor)


def lane_time(prompt_time, users, output_tokens, lanes, in_step):
    """Machine time of a prompt in one of the lanes, each with ``users`` (times the chunks).

    Lanes prefill in parallel; lanes in lockstep run the prefills of one step together, and wait for the rest.
    """
    own = users / output_tokens
    return prompt_time / lanes * interleaved_prefills(own, own, in_step) / own


def decode_batch(deployment, running, output_tokens, fresh_tokens, reader=None):
    """Decode batch: :func:`.concurrent_answers` of each copy; all users if prefill is on other machines."""
    copies = deployment.layout.lanes
    budget = deployment.scheduler.shared_budget
    if reader is not None or budget is None:
        return running
    return copies * concurrent_answers(running / copies, output_tokens, fresh_tokens, budget)


def time_to_first_token(
    protocol, users, prompt_time, own, pieces, output_tokens, step, door, uneven=1.0, copies=1, most=None
):
    """Users whose prompts are prefilled after the first token, and TTFT in seconds without memory limits.

    It is a closed loop. Prompts that delay the first token do not also delay the tokens after it. ``protocol``: an
    :class:`ArrivalProcess`. ``own``: prefill seconds up to the first token, see :func:`prefill_until_first_token`.
    ``users``: of each of the ``copies`` in lockstep. ``most``: answers decoded at once.
    """
    group = minimum(users, protocol.group)
    # a step also has tokens of decoding sequences
    taken = pieces if most is None else maximum(pieces, output_tokens / most)
    whole = maximum(pieces, 1)
    ahead = prompts_ahead(protocol.burst, group, users)
    reading = chunked_time(taken, prompt_time, step)
    # there are no random arrivals in the burst
    at_random = (1 - protocol.burst) * (users - group)
    between = output_tokens / taken + door / reading
    met = queued_prefills(at_random, between, taken)
    if uneven != 1:  # long prompts are met more often than short ones (length-biased sampling)
        met = minimum(met * uneven, at_random)
    if most is not None:  # prefill first: no prompt waits for longer than those of one token's time
        met = where(most < UNSHARED / 1e9, met, minimum(met, users / output_tokens))
    seen = met + ahead - group
    later = maximum(users - seen, 1)
    # an arriving request waits for another copy's prefill too, if its own copy has none
    busy = minimum(users / (between + seen + 1), 1)
    beside = (interleaved_prefills(busy, busy, copies) - busy) * prompt_time / pieces
    passes = chunked_time(whole - 1, own, step)
    return later, first_token_time(door, ahead, passes, met * reading + beside, step)
