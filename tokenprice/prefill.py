"""A prompt is a step with many rows: how long it takes, what it costs the others, when the first token comes."""

from functools import partial
from numbers import Real

from inferlib.equation import Record, equation, frozen
from inferlib.ops import log, maximum, minimum, sqrt, where
from inferlib.transformer import Attention
from tokenprice import calibration
from tokenprice.decode import whole_layers
from tokenprice.uncertainty import load_calibration

equation = partial(equation, "serving", chapter="price")

STEPS = 2  # the step in progress, and the one that the prompt is read with


@equation(copies="1 > 0")
def interleaved_prefills(own, each, copies):
    """Passes of prompts between two tokens where copies keep step: with so many ``own`` prompts, and ``each`` other's.

    Copies that share experts wait for one another's prompts, and read together those that fall into one step.

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
    """What one token waits for the prompts of other users, when each asks again as soon as it is answered.

    While a user gets ``output_tokens``, each of the others finishes once and sends a prompt: so many prompts are
    read among so many of the user's tokens.

    Examples
    --------
    >>> prefill_interference(users=33, output_tokens=1000, prompt_time=0.1)
    0.0032
    """
    return (users - 1) / output_tokens * prompt_time


def inter_token_wait(users, output_tokens, prompt_time, copies, seen=0, pieces=1):
    """:func:`prefill_interference` where so many ``copies`` of so many users keep step; ``seen``: prompts waited for
    before."""
    own = prefill_interference(maximum(users - seen, 1), output_tokens, pieces)
    return interleaved_prefills(own, pieces * users / output_tokens, copies) * prompt_time / pieces


@equation(unit="s", step="s", others="s")
def token_time(step, others):
    """Time between two tokens of a user: the step, and the prompts of others in between."""
    return step + others


@equation(unit="s", prompt_time="s", step="s")
def chunked_time(chunks, prompt_time, step):
    """Time to read a prompt in pieces, each of which shares a step with the tokens of others."""
    return prompt_time + chunks * step


@frozen
class ArrivalProcess(Record):
    """How requests come.

    A closed loop of users, each of whom asks again when answered: ``rounds`` is how often, if all ask for the first
    time at once; None where they start apart, or the service has run for long. Answers of equal length
    (``equal``) keep users in a row.
    """

    requests_per_user: float | None = None
    fixed_lengths: bool = False

    @property
    def group(self):
        """Prompts read until one's own is, own included, but for the burst and those that come at random.

        Users in a row ask right after one another, so each of the steps that a prompt waits for reads another.
        """
        return 1 + STEPS if self.fixed_lengths else 1


STEADY = ArrivalProcess()


@equation()
def prompts_ahead(burst, group, users):
    """Prompts read until one's own is, own included: those in step, and half of all in the burst at the start.

    ``burst`` is the part of all requests that belong to it.

    Examples
    --------
    >>> prompts_ahead(burst=0.1, group=1, users=31)
    2.5
    """
    return group + burst * (users - group) / 2


@equation(prompts="1 > 0", copies="1 > 0")
def balance_steps(prompts, copies, timeout):
    """Steps for which a prompt is held until each copy has one, of so many ``prompts`` a step and copy.

    The longest of so many waits at random is the logarithm of their number, and 0.4, times as long as one in the mean.

    Examples
    --------
    >>> round(balance_steps(prompts=0.1, copies=8, timeout=60), 1), balance_steps(prompts=0.01, copies=8, timeout=60)
    (24.8, 60)
    """
    return minimum((log(copies) + 0.4) / prompts, timeout)


@equation(pieces="1 > 0")
def queued_prefills(others, between, pieces):
    """Prompts that stand in line when a user of a loop asks again, after an answer as long as ``between`` of them.

    Time is counted in steps, for answers go on in those alone. So it is a queue of equal services whose line is
    ``r / 2(1 - r)`` at a load ``r`` of the others who are answered, and who comes finds the others as they are without
    them (mean value analysis in Schweitzer's form; a quadratic equation). An answer ends with a step, as the next of
    the ``pieces`` of a prompt begins: at random times a half of it were left, so another half is met. Where pieces
    are parts of a step (below 1), others are read in one's own, as many as come in a step and fit.

    Examples
    --------
    >>> round(queued_prefills(others=63, between=100, pieces=1), 2)
    1.44
    >>> queued_prefills(others=63, between=0, pieces=1)  # who is not answered stands in line
    63
    """
    more = 2 * (others - between) - 1
    line = (more + sqrt(more**2 + 8 * others)) / 4
    beside = maximum(1 - pieces, 0) * others / maximum(between * pieces, 1)
    return minimum(line + 2 * line / (1 + 2 * line) / pieces + beside, others)


@equation(output_tokens="1 > 0", budget="1 > 0")
def concurrent_answers(users, output_tokens, prompt_tokens, budget):
    """Users of a loop whose answers go on together: a step has a token for each, and reads the prompts that begin."""
    return minimum(users, maximum(budget / (1 + prompt_tokens / output_tokens), 1))


@equation(unit="s", door="s", prompt_time="s", turn="s", step="s")
def first_token_time(door, ahead, prompt_time, turn, step):
    """Time to the first token: the way in and out, prompts up to one's own, and the steps in between."""
    return door + ahead * prompt_time + turn + STEPS * step


@equation(unit="s", room="1 > 0", machine_time="s")
def queue_time(users, room, machine_time):
    """Wait for a place in memory, when more users ask than there is room for caches.

    Those beyond the room wait until as many places have come free, one with each request that is done.
    """
    return maximum(users - room, 0) * machine_time


READ_AND_WORK = ("weights", "arithmetic"), ("expert weights", "expert arithmetic")


def added_time(read, step, beside=1):
    """Seconds that the pass of a prompt adds to a step with sequences ``beside`` it: weights are read once for both.

    Nothing is fitted. Prompts of 128 tokens of Qwen3 235B, read among as many users, took a fourth of their own pass.
    """
    seconds, together = read.total, minimum(beside, 1)
    for weights, work in READ_AND_WORK:
        if weights in read.terms:
            alone, least = read.terms[weights], read.terms[work]
            rest = maximum(alone - step.terms.get(weights, 0), least)
            seconds = seconds - together * (maximum(alone, least) - rest)
    return seconds


def launch_floor(model, engine=None):
    """Least seconds of a prompt's pass: many small kernels, which an engine that serves starts one by one.

    Plain attention is one kernel, and never waits for the host.
    """
    if all(isinstance(group.attention, (Attention, type(None))) for group in model.layers):
        return 0.0
    return calibration.engine(engine).host * whole_layers(model)


def prefill_until_first_token(deployment, prompt_time, pieces=1):
    """Seconds of a prompt's passes as its own first token sees them; the tokens of others go along with them.

    A prompt of a mixture of experts takes longer than its kernels, and none is faster than the host starts it.
    """
    late = where(deployment.model.sparse, load_calibration()["first_token"]["late"], 1)
    return maximum(late * prompt_time, pieces * launch_floor(deployment.model, deployment.engine))
