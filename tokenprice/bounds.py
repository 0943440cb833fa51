"""What holds whatever the model: an answer that breaks one of these is not given.

Each bound is a function of plain numbers by name, zero or more where it holds; the page prints the same functions.
"""

from collections.abc import Callable
from typing import NamedTuple

from inferlib.ops import maximum, minimum
from tokenprice import constants
from tokenprice.fleet import step_of
from tokenprice.prompt import STEPS, chunked_time, until_first
from tokenprice.request import keep_step, lane_time

SAME = 1e-9  # what rounding may do


class Bound(NamedTuple):
    """What it says, and by how much numbers keep it."""

    text: str
    slack: Callable


def _at_most(text, name, other):
    return Bound(text, lambda of: of[other] * (1 + SAME) - of[name])


def _equal(text, name, other):
    return Bound(text, lambda of: SAME**2 - (of[name] / of[other] - 1) ** 2)


# Of any answer: seconds.
STEP = (
    _at_most("the fast end of an interval is below its middle", "token_low", "token"),
    _at_most("the slow end of an interval is above its middle", "token", "token_high"),
)
# Of a request, one of a simulation too.
SERVED = (
    _at_most("a token takes at least its step alone", "alone", "token"),
    _at_most("a first token takes at least its own prompt", "reading", "first_token"),
)
# And its tokens a second.
REQUEST = (
    *STEP,
    *SERVED,
    _at_most("a machine makes no more tokens than it has time for", "paced", "made"),
    _equal("the parts of a request add up", "machine", "parts"),
    _at_most("the early end of an interval is below its middle", "first_low", "first_token"),
    _at_most("the late end of an interval is above its middle", "first_token", "first_high"),
)
# Of users who ask again when answered.
LOOP = (
    _at_most("a first token waits for all prompts and for answers ahead at most", "first_token", "everybody"),
    _at_most("users get no more tokens than one of them in his time (Little's law)", "tokens", "received"),
)
PAID = (_equal("a request costs chips × hours × price", "dollars", "rented"),)
KINDS = {"step": STEP, "served": SERVED, "request": REQUEST, "loop": LOOP, "paid": PAID}


def everybody(door, copies, users, held, reading, output_tokens, step, in_step=1):
    """Seconds until all prompts of a copy are read, and the answers made that are ahead of a place.

    Those beyond the ``held`` wait for rounds of answers: users over held, less one. Copies ``in_step`` wait for one
    another's prompts, and who comes for one that is being read.
    """
    rounds = maximum(users / held, 1) - 1
    whole = held * in_step / copies * reading + output_tokens * step
    ahead = maximum(minimum(users, held) / copies, 1) + minimum(in_step - 1, 1)
    return door + STEPS * step + ahead * reading + rounds * whole


BROKEN = "the answer breaks a bound that needs no model ({}): please report the question"


def broken(facts, kinds):
    """What a broken bound says; None where all hold."""
    for kind in kinds:
        for bound in KINDS[kind]:
            if not bound.slack(facts) >= 0:  # nor is NaN an answer
                return BROKEN.format(bound.text)
    return None


def of_step(seconds, factor):
    """What :func:`broken` says of a step and its interval."""
    factor = factor or 1.0
    return broken({"token": seconds, "token_low": seconds / factor, "token_high": seconds * factor}, ["step"])


def of_request(q, request, layout=None, fleet=None):
    """What :func:`broken` says of a request, of a loop or of a fleet; None where all bounds hold."""
    r, copies = request, layout.lanes if layout else 1
    pieces = 1 if fleet else q.pieces
    lanes = pieces * maximum(r.users / copies, 1), r.output_tokens, copies, keep_step(q.model, layout)
    if r.reader:
        apart = layout.lanes if fleet and layout and r.reader == r.system else 1
        lanes = r.users, r.output_tokens, apart, 1
    alone = fleet.station.steps[0] if fleet else step_of(q, r.system, layout, min(copies, r.users)).total
    found = {
        "alone": alone, "token": r.token, "first_token": r.first_token, "reading": r.prompt.total,
        "token_low": r.token_span[0], "token_high": r.token_span[1],
        "first_low": r.first_span[0], "first_high": r.first_span[1], "machine": r.machine_seconds,
        "parts": lane_time(r.prompt.total, *lanes) + r.output_tokens * r.step.total / r.answered,
    }  # fmt: skip
    kinds = ["request"]
    if fleet is None:
        asking = maximum(q.users or 1, r.users)
        read = until_first(q.model, r.prompt.total, q.pieces, q.engine)
        door = constants.engine(q.engine).door + (q.hold or 0) * r.step.total
        reading = chunked_time(q.pieces, read, r.step.total)
        among = copies, asking, r.users
        if r.reader is not None:  # nobody reads beside it
            among = minimum(q.readers or r.users, r.users), asking, r.users
        found |= {
            "everybody": everybody(door, *among, reading, r.output_tokens, r.step.total, lanes[-1]),
            "tokens": r.throughput(asking), "made": r.made, "received": asking * r.output_tokens / r.seconds,
        }  # fmt: skip
        # a user may ask again a token later: so near are first tokens known; in the last of rounds fewer ask
        paced = asking * r.output_tokens / (r.seconds + r.token)
        found["paced"] = minimum(paced, r.made) if q.rounds else paced
        kinds.append("loop")
    else:
        full = fleet.station.load(fleet.arrivals / fleet.machines)
        tokens = fleet.arrivals * r.output_tokens
        found |= {"paced": tokens, "made": tokens / full}
    if r.priced:
        kinds.append("paid")
        hour = 1 / 3600
        reads = r.reader or r.system
        seconds = r.fresh_seconds + r.cached_seconds
        rented = seconds * reads.count * (r.read_rate if r.reader else r.rate) / (r.reading or r.utilisation)
        rented += r.output_seconds * r.system.count * r.rate / r.utilisation
        found |= {"dollars": r.dollars, "rented": rented * hour}
        if fleet is not None:
            each = [fleet.machines * fleet.system.count * r.rate]
            each += [fleet.readers * fleet.reader.count * r.read_rate] if fleet.reader else []
            found["rented"] = sum(each) * hour / fleet.arrivals
    return broken(found, kinds)
