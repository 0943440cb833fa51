"""Bounds that every answer must satisfy, whatever the model; an answer that breaks one is an error.

Each bound is a function of named numbers that is zero or more where it holds; the page has the same functions.
"""

from collections.abc import Callable
from typing import NamedTuple

from inferlib.ops import maximum, minimum
from tokenprice import workload
from tokenprice.prefill import (
    STEPS,
    chunked_time,
    prefill_until_first_token,
    token_time,
    transfer_time,
)

TOLERANCE = 1e-9  # relative tolerance for rounding


class Bound(NamedTuple):
    """The text of a bound, and its slack as a function of the facts."""

    text: str
    slack: Callable


def _at_most(text, name, other):
    return Bound(text, lambda of: of[other] * (1 + TOLERANCE) - of[name])


def _equal(text, name, other):
    return Bound(text, lambda of: TOLERANCE**2 - (of[name] / of[other] - 1) ** 2)


# Bounds of every answer, in seconds.
STEP = (
    _at_most("no interval begins below bytes over bandwidth or FLOP over peak", "at_peaks", "token_low"),
    _at_most("the fast end of an interval is below its middle", "token_low", "token"),
    _at_most("the slow end of an interval is above its middle", "token", "token_high"),
)
# Bounds of a request, simulated ones too.
SERVED = (
    _at_most("TPOT is at least one step alone", "alone", "token"),
    _at_most("TTFT is at least the prefill of its prompt", "reading", "first_token"),
)
# Bounds of a request with its throughput.
REQUEST = (
    *STEP,
    *SERVED,
    _at_most("users get no more tokens than a busy machine makes", "paced", "made"),
    _at_most("no TTFT begins below the FLOP of its prompt over peak", "prompt_at_peaks", "first_low"),
    _at_most("the early end of an interval is below its middle", "first_low", "first_token"),
    _at_most("the late end of an interval is above its middle", "first_token", "first_high"),
)
# Bounds of a closed loop.
LOOP = (
    _at_most("TTFT is at most all prompts and the answers ahead", "first_token", "everybody"),
    _at_most("throughput is at most users × output over latency (Little's law)", "tokens", "received"),
)
PAID = (_equal("a request costs chips × hours × price", "dollars", "rented"),)
KINDS = {"step": STEP, "served": SERVED, "request": REQUEST, "loop": LOOP, "paid": PAID}


def time_to_drain(ingress_delay, copies, users, held, reading, output_tokens, step, in_step):
    """Upper bound of TTFT in seconds: time to prefill all prompts of a copy and to finish the answers ahead.

    Requests beyond the ``held`` sequences wait for rounds of answers: ``users`` / ``held`` - 1. Copies that run in
    lockstep (``in_step``) wait for each other's prompts, and a new request waits for those of the current step too.

    Examples
    --------
    >>> from functools import partial
    >>> half_a_second_each = partial(time_to_drain, ingress_delay=0, reading=0.5, output_tokens=100, step=0.02)
    >>> round(half_a_second_each(copies=1, users=1, held=8, in_step=1), 2)  # two steps, and the own prompt
    0.54
    >>> round(half_a_second_each(copies=1, users=16, held=8, in_step=1), 2)  # eight prompts, behind as many and answers
    10.04
    >>> round(half_a_second_each(copies=2, users=8, held=8, in_step=2), 2)  # four of the own copy and four of the other
    4.04
    """
    rounds = maximum(users / held, 1) - 1
    whole = held * in_step / copies * reading + output_tokens * step
    each = maximum(minimum(users, held) / copies, 1)
    ahead = each * (1 + minimum(in_step - 1, 1))
    return ingress_delay + STEPS * step + ahead * reading + rounds * whole


VIOLATION_MESSAGE = "the answer breaks a bound that needs no model ({}): please report the question"


def violated(facts, kinds):
    """Return the message of a violated bound; None if all hold."""
    for kind in kinds:
        for bound in KINDS[kind]:
            if not bound.slack(facts) >= 0:  # NaN counts as a violation
                return VIOLATION_MESSAGE.format(bound.text)
    return None


def of_answer(answer):
    """Check the bounds of a step, a closed loop, or a fleet and its disaggregated alternative, as :func:`violated`."""
    if answer.request is None:
        low, high = answer.interval
        step = {"token": answer.seconds, "token_low": low, "token_high": high, "at_peaks": answer.at_peaks}
        return violated(step, ["step"])
    served = [(answer.request, answer.fleet)]
    if answer.disaggregated:
        served.append((answer.disaggregated.request, answer.disaggregated))
    return next(filter(None, (of_request(answer.question, *one) for one in served)), None)


def of_request(question, request, fleet=None):
    """Check the bounds of a request of a closed loop or of a fleet, as :func:`violated`."""
    deployment = question.deployment
    lanes = deployment.layout.lanes
    chunks = max(question.prefill_chunks, 1)
    in_step = 1 if request.prefill_machine else deployment.in_step
    kinds = ["request"]
    if fleet is None:
        kinds.append("loop")
        facts = _loop_facts(question, request, chunks, in_step)
        least = min(lanes, request.decode_batch), question.workload.context
    else:
        tokens = fleet.request_rate * request.output_tokens
        facts = {"paced": tokens, "made": tokens / fleet.estimate.load}
        least = lanes, min(workload.support(question.prompt_tokens))  # the event loop has contexts of its own
    facts |= {
        "alone": deployment.step(*least).total, "token": request.tpot,
        "reading": request.prompt.total, "first_token": request.ttft,
        "token_low": request.tpot_interval[0], "token_high": request.tpot_interval[1],
        "at_peaks": request.at_peaks[0], "prompt_at_peaks": request.at_peaks[1],
        "first_low": request.ttft_interval[0], "first_high": request.ttft_interval[1],
    }  # fmt: skip
    if request.priced:
        kinds.append("paid")
        facts |= {"dollars": request.dollars, "rented": _rent(request, fleet) / 3600}
    return violated(facts, kinds)


def _loop_facts(question, request, chunks, in_step):
    """Return the facts of a closed loop: what all of its users wait for and receive."""
    deployment = question.deployment
    users = max(question.concurrency or 1, request.concurrency)
    step = request.step.total
    ingress_delay = deployment.software.ingress_delay + deployment.scheduler.batching_wait_iters * step
    ingress_delay += transfer_time(question, request.prompt_tokens)
    lanes = deployment.layout.lanes
    if request.prefill_machine is not None:  # prefill machines do not decode
        lanes = min(request.prefill_replicas * question.prefill_deployment.layout.lanes, request.concurrency)
    read = prefill_until_first_token(deployment, request.prompt.total, chunks)
    reading = chunked_time(request.own_steps, read, step)
    begun = maximum(users / lanes, 1) / request.output_tokens
    ingress_delay += deployment.scheduler.dp_balance * token_time(step, begun * reading)
    # TTFT is known to within one token, after which a user may ask again; in the last round fewer users ask
    paced = users * request.output_tokens / (request.seconds + request.tpot)
    return {
        "everybody": time_to_drain(
            ingress_delay, lanes, users, request.concurrency, reading, request.output_tokens, step, in_step
        ),
        "tokens": request.throughput(users),
        "made": request.max_throughput,
        "received": users * request.output_tokens / request.seconds,
        "paced": min(paced, request.max_throughput) if question.requests_per_user else paced,
    }


def _rent(request, fleet):
    """Return the rent of the chips for one request, in dollars per hour times seconds."""
    if fleet is not None:
        return (
            sum(number * system.count * usd for system, number, _, usd in fleet.machines) / fleet.request_rate
        )
    system = request.prefill_machine or request.system
    price = request.prefill_price if request.prefill_machine else request.price_per_chip_hour
    seconds = request.fresh_seconds + request.cached_seconds
    prefill = seconds * system.count * price / (request.reading or request.paid_hours_used)
    decode = request.output_seconds * request.system.count * request.price_per_chip_hour
    return prefill + decode / request.paid_hours_used
