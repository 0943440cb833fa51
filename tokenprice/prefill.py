"""Prefill: how long it takes, how it delays other users' tokens, and when the first token comes."""

from functools import cached_property, partial
from math import pi

from inferlib.equation import Record, equation, frozen
from inferlib.ops import ceil, log, maximum, minimum, sqrt, where
from inferlib.optional_imports import np
from inferlib.system import Breakdown
from inferlib.transformer import Attention
from tokenprice import workload
from tokenprice.replica import LENGTH_SPREAD
from tokenprice.scheduler import UNSHARED
from tokenprice.uncertainty import load_calibration

equation = partial(equation, "serving", chapter="price")

UNLIMITED = 1e15  # prompts per step without a token budget
STEPS = 2  # the step in progress, and the step that prefills the prompt, in which others decode


@equation(copies="1 > 0")
def longest_pack(prompts, copies, group, most=UNLIMITED):
    """Prompts in a step of the slowest of ``copies`` in lockstep, each with ``prompts`` per step on average.

    The expected maximum of n Poisson numbers exceeds their mean by about 0.6, 1.1, 1.4 and 1.8 standard deviations for
    n = 2, 4, 8 and 16. If prompts come in groups, the variance is the mean times the size of a ``group``; a chunk of a
    prompt is a fraction of one. ``most``: prompts for which a step has tokens.

    Examples
    --------
    >>> [round(longest_pack(prompts=n, copies=4, group=1), 2) for n in (0.1, 2, 8)]
    [0.4, 3.51, 11.01]
    """
    above = maximum(sqrt(2 * log(copies)) - 0.6, 0)
    return minimum(minimum(copies * prompts, prompts + above * sqrt(prompts * group)), most)


@equation(copies="1 > 0", most="1 > 0")
def interleaved_prefills(own, each, copies, most):
    """Prefills between two tokens with copies in lockstep: ``own`` from the copy, ``each`` from every other copy.

    Copies that share experts wait for one another's prefills; prefills that fall into one step run together. Of a step
    with room for ``most`` prompts, the copy with the most of them counts: their number is binomial. Each beyond the
    first makes a pair, of which copies have ``each``² (1 - 1 / ``most``) / 2 on average.

    Examples
    --------
    >>> [round(interleaved_prefills(own=n, each=n, copies=2, most=1), 4) for n in (0.1, 0.5, 1)]
    [0.19, 0.75, 1]
    >>> round(interleaved_prefills(own=1, each=1, copies=8, most=4), 2)
    2.25
    """
    overlapping = 1 - (1 - minimum(own, 1)) * (1 - minimum(each, 1)) ** (copies - 1)
    fewer = 1 - 1 / most
    pairs = copies * each**2 / 2 * fewer
    longest = minimum(own - each + longest_pack(each, copies, fewer, most), overlapping + pairs)
    return maximum(own, maximum(overlapping, longest))


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


@equation(unit="s", step="s", others="s")
def token_time(step, others):
    """Time between two tokens of a user (TPOT): the step, and the prefills of others in between."""
    return step + others


@equation(unit="s", prompt_time="s", step="s")
def chunked_time(chunks, prompt_time, step):
    """Time to prefill a prompt in chunks, each of which shares a step with the tokens of others."""
    return prompt_time + chunks * step


class ArrivalProcess(Record):
    """How the requests of a closed loop arrive: each user asks again when answered.

    ``requests_per_user``: rounds, if all users start at once; None if they start apart, or if the service has run for
    long. ``fixed_lengths``: whether all outputs have the same length.
    """

    requests_per_user: float | None = None
    fixed_lengths: bool = False

    @property
    def burst(self):
        """Share of all requests that are in the burst at the start."""
        return 1 / self.requests_per_user if self.requests_per_user else 0

    @property
    def in_rows(self):
        """Whether users ask right after one another: they started at once, and their outputs have the same length.

        Prompts of a step then stay together, in the simulation for ever; :attr:`group` is for one or two in a step.
        NVIDIA's runs took 0.94 (364 of TensorRT-LLM) and 0.87 times (87 of vLLM) its TTFT in the median. The steps that
        its configurator writes have tokens for a prompt, the users and 1,500 more (ai-dynamo/aiconfigurator,
        ``rule_plugin/benchmark``); in a simulation with these, not 8,192, it is 0.98 and 0.81.
        """
        return bool(self.fixed_lengths and self.requests_per_user)

    @property
    def group(self):
        """Prompts prefilled up to and including the request's own, without the burst and random arrivals.

        In rows, each step that a prompt waits for prefills another prompt.
        """
        return 1 + STEPS if self.in_rows else 1


STEADY = ArrivalProcess()


@equation()
def prompts_ahead(burst, group, users, pack):
    """Prompts prefilled up to and including the request's own: the group, or in the burst on average half of all.

    ``burst``: the share of requests that belong to the burst, which is prefilled in packs, one in a step.

    Examples
    --------
    >>> prompts_ahead(burst=0.1, group=1, users=31, pack=1), prompts_ahead(burst=1, group=1, users=32, pack=8)
    (2.5, 20.0)
    """
    return (1 - burst) * group + burst * (users + pack) / 2


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


@equation(pieces="1 > 0", spread="1 > 0")
def queued_prefills(others, between, pieces, own_steps, spread):
    """Mean number of prompts queued when a user of a closed loop asks, after an answer as long as ``between`` prefills.

    Time is counted in steps with prefill, because answers proceed only in those. It is a queue of equal services, whose
    arriving user sees the queue of the other users (mean value analysis). At low load ``r`` users ask at random, and
    its mean length is ``r / 2(1 - r)``. At full load it is the square root of ``others / pi`` if users ask at random:
    the mean of a reflected normal variable, in the diffusion limit of a closed loop. Users whose outputs lie within a
    ``spread`` of their mean keep their order, and only ``spread * others`` may overtake one another: their queue is
    about the square root of that number, as in a simulation. The inverse squares of both are added, and a quadratic
    equation joins them to low loads. Users beyond those for whom a round has time are always queued.

    An answer ends at the end of a step, when the next of the ``pieces`` of a prompt begins: at random times half a
    piece would remain, so half a piece is added. The last of the ``own_steps`` of a prompt is shared with the next
    prompts, if any are queued.

    Examples
    --------
    >>> round(queued_prefills(others=63, between=100, pieces=1, own_steps=1, spread=0.1), 2)
    1.34
    >>> queued_prefills(others=63, between=0, pieces=1, own_steps=1, spread=0.1)  # all others are queued
    63
    """
    square = pi + 1 / spread
    more = others - between - 1 / 2
    line = maximum((more + sqrt(more**2 + square * others)) / square, others - between)
    busy = 2 * line / (1 + 2 * line)
    return minimum(line + busy * (1 + maximum(own_steps - pieces, 0)) / pieces, others)


@equation(output_tokens="1 > 0", budget="1 > 0")
def concurrent_answers(users, output_tokens, prompt_tokens, budget):
    """Users of a closed loop decoding at once, when a step's budget covers one token of each and the new prompts."""
    return minimum(users, maximum(budget / (1 + prompt_tokens / output_tokens), 1))


@equation(unit="s", ingress_delay="s", prompt_time="s", turn="s", step="s")
def first_token_time(ingress_delay, ahead, prompt_time, turn, steps, step):
    """Time to first token: service overhead, prefills up to the request's own, and the steps in between."""
    return ingress_delay + ahead * prompt_time + turn + steps * step


@equation(unit="s", prompt_time="s", step="s", users="1 > 0")
def machine_time(prompt_time, output_tokens, step, users):
    """Machine time of one request: its prefill alone, and its share of the decode batch."""
    return prompt_time + output_tokens * step / users


@equation(unit="s", room="1 > 0", machine_time="s")
def queue_time(users, room, machine_time, burst):
    """Mean wait for a place when more users ask than sequences fit.

    A request waits until those of the users beyond ``room`` are answered; each answer frees a place. After a start at
    once the first requests take places in waves, the first of which does not wait: on average they wait half as long.
    ``burst``: share of all requests that come at the start.

    Examples
    --------
    >>> queue_time(users=256, room=4, machine_time=1, burst=0), queue_time(users=256, room=4, machine_time=1, burst=1)
    (252.0, 126.0)
    """
    return maximum(users - room, 0) * machine_time * (1 - burst / 2)


def full_steps(loop, users, machine_time):
    """TTFT, and wait of a token, in seconds, of ``users`` if a step has tokens for those of the ``loop`` only.

    The machine is never idle. A prompt is prefilled in one of the full steps after those of the users beyond the loop
    are answered. What it waits longer in the loop, its tokens wait less, as all users share the machine (Little's law).
    """
    full = loop.running * machine_time / loop.output_tokens
    least = full + queue_time(users, loop.running, machine_time, loop.arrival_process.burst)
    after = loop.output_tokens - 1
    longer = minimum(maximum(loop.ttft - least, 0), after * (full - loop.step))
    return least + longer, full - loop.step - longer / maximum(after, 1)


READ_AND_WORK = ("weights", "arithmetic"), ("expert weights", "expert arithmetic")


def added_time(read, step, beside=1):
    """Seconds that a prefill adds to a step with ``beside`` sequences: weights are read once for both.

    Nothing is fitted. Prompts of 128 tokens of Qwen3 235B, prefilled among as many users, took a fourth of their time
    alone.

    Examples
    --------
    Ten seconds, of which six read weights and four multiply meanwhile; a step reads the same weights anyway:

    >>> from types import SimpleNamespace as Step
    >>> prefill, step = Step(total=10, terms={"weights": 6, "arithmetic": 4}), Step(terms={"weights": 6})
    >>> [added_time(prefill, step, beside) for beside in (0, 0.5, 1, 8)]
    [10, 9.0, 8, 8]
    >>> added_time(Step(total=10, terms={"weights": 4, "arithmetic": 6}), step)
    10
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


def prefill_until_first_token(deployment, prompt_time, pieces):
    """Seconds of a prompt's prefill up to its first token; the tokens of others run along.

    A mixture of experts takes longer than its kernels, and no prefill is faster than the host can launch it.
    """
    floor = pieces * launch_floor(deployment)
    late = where(deployment.model.sparse, load_calibration()["first_token"]["late"], 1)
    return maximum(late * prompt_time, floor)


def transfer_time(question, tokens):
    """Seconds in which the cache of a prompt moves from the prefill machine of a question to the one that decodes.

    It moves after the prefill, while both machines serve others (NVIDIA Dynamo, Disaggregated Serving,
    docs.nvidia.com/dynamo). Each chip sends or receives its part over its scale-out bandwidth, and the slower machine
    counts. vLLM asks for blocks only that the machine which decodes has not (``NixlConnector``,
    ``get_num_new_matched_tokens``); SGLang moves a shared prefix too, unless asked not to (sglang#19746).
    """
    if question.shared_prefix and question.deployment.scheduler.rides:
        tokens = max(tokens - float(question.shared_prefix), 0)
    ends = (question.prefills, question.deployment) if question.prefill_machine else ()
    return max((one.sequence(tokens) / one.machine.chip.scale_out_bandwidth for one in ends), default=0.0)


def decode_batch(deployment, running, output_tokens, fresh_tokens, prefill_deployment=None):
    """Decode batch: :func:`.concurrent_answers` of each copy; all users if prefill is on other machines."""
    lanes = deployment.layout.lanes
    budget = deployment.scheduler.shared_budget
    if prefill_deployment is not None or budget is None:
        return running
    return lanes * concurrent_answers(running / lanes, output_tokens, fresh_tokens, budget)


@frozen
class ClosedLoop:
    """A machine in a closed loop, whose ``running`` users ask again when answered and wait for others' prefills.

    ``step``: seconds of a decode step. ``prompt_time``: seconds that a prefill adds to the steps. ``own``: seconds from
    the start of a request's own prefill to its first token, see :func:`prefill_until_first_token`; ``other``: seconds
    of the prefill of a prompt ahead, which shares its steps with decoding sequences. ``ingress_delay``: seconds in
    which a request enters and leaves the server.
    ``chunks`` and ``uneven``: see :class:`PrefillProfile`. ``own_steps``: steps that prefill a prompt alone, see
    :meth:`PrefillProfile.steps`. ``most``: answers that a copy decodes at once; None without a token budget. ``lanes``:
    prefills at a time; ``in_step``: copies in lockstep, balanced for ``dp_balance`` steps (0: not balanced).
    ``apart``: whether other machines prefill.
    """

    arrival_process: ArrivalProcess
    output_tokens: float
    step: float
    prompt_time: float
    own: float
    other: float
    chunks: float
    ingress_delay: float
    own_steps: float
    uneven: float = 1.0
    most: float | None = None
    running: float = 1
    lanes: float = 1
    in_step: float = 1
    dp_balance: float = 0
    apart: bool = False

    @cached_property
    def users(self):
        """Users of each lane."""
        return 1 if self.apart else self.decoding

    @cached_property
    def decoding(self):
        """Users whose answers a lane decodes."""
        return maximum(self.running / self.lanes, 1)

    @cached_property
    def alone(self):
        """Probability that no other user decodes while a prompt is prefilled.

        Each of the others waits ``first`` seconds for a first token, and then decodes for ``answer`` seconds.
        """
        others = minimum(self.decoding * self.in_step, self.running) - 1
        answer = (self.output_tokens - 1) * token_time(self.step, self.token_wait)
        first = self.ingress_delay + (1 + self.others_ahead) * self.reading
        return (first / (answer + first)) ** others

    @cached_property
    def steps(self):
        """Decode steps of others that delay a first token: none if no other user decodes, else :data:`STEPS`."""
        return STEPS * (1 - self.alone)

    @cached_property
    def prefilling(self):
        """Copies in lockstep that have users and prefill."""
        return 1 if self.apart else maximum(minimum(self.in_step, self.running), 1)

    @cached_property
    def balanced(self):
        """Probability that all copies prefill in the same steps: in the burst and in rows, or if prompts are held.

        TensorRT-LLM holds a prompt only while every copy decodes.
        """
        burst = where(self.arrival_process.group > 1, 1, self.arrival_process.burst)
        held = minimum(self.users - 1, 1) if self.dp_balance else 0
        return burst + (1 - burst) * held

    @cached_property
    def prefill_steps(self):
        """Steps that take part in the prefill of one prompt."""
        return maximum(self.chunks, 1)

    @cached_property
    def steps_per_prompt(self):
        """Steps with prefill per prompt; below 1 if a step prefills several. Steps also hold decoding sequences."""
        return self.chunks if self.most is None else maximum(self.chunks, self.output_tokens / self.most)

    @cached_property
    def reading(self):
        """Seconds of the steps that prefill one prompt."""
        return chunked_time(self.steps_per_prompt, self.prompt_time, self.step)

    @cached_property
    def own_time(self):
        """Seconds of the steps that prefill a prompt alone, up to its first token."""
        return chunked_time(self.own_steps - 1, self.own, self.step)

    @cached_property
    def between(self):
        """Prompts that could be prefilled between two of a user."""
        return self.output_tokens / self.steps_per_prompt + self.ingress_delay / self.reading

    @cached_property
    def group(self):
        """Prompts prefilled up to and including the request's own, without the burst and random arrivals."""
        return minimum(self.users, self.arrival_process.group)

    @cached_property
    def ahead(self):
        """Prompts prefilled up to and including the request's own, averaged over the burst and later requests."""
        return prompts_ahead(self.arrival_process.burst, self.group, self.users, self.pack)

    @cached_property
    def pack(self):
        """Prompts of a burst that are prefilled in one step."""
        return minimum(self.users, maximum(1 / self.chunks, 1))

    @cached_property
    def queued(self):
        """Prompts of random arrivals ahead; the burst has none. Long ones are met more often (length-biased)."""
        at_random = (1 - self.arrival_process.burst) * (self.users - self.group)
        queued = queued_prefills(
            at_random, self.between, self.steps_per_prompt, self.own_steps, LENGTH_SPREAD
        )
        queued = minimum(self.uneven * queued, at_random)
        if self.most is None:
            return queued
        # prefill first: no prompt waits for longer than those of one token's time
        return where(self.most < UNSHARED / 1e9, queued, minimum(queued, self.users / self.output_tokens))

    @cached_property
    def others_ahead(self):
        """Prompts of other users that delay the first token, and therefore not the tokens after it."""
        return self.queued + self.arrival_process.burst * ((self.users + self.pack) / 2 - 1)

    @property
    def ttft(self):
        """Time to first token in seconds, without memory limits."""
        # an arriving request waits for another copy's prefill too, if its own copy has none
        busy = minimum(self.users / (self.between + self.others_ahead + 1), 1)
        of_copies = self.interleaved(busy, busy) - busy
        turn = self.queued * self.reading + of_copies * self.prompt_time / self.chunks
        each = chunked_time(self.prefill_steps - 1, self.other, self.step)
        # weights are read for the own prompt, and shared by those ahead
        turn = turn + self.own_time - each
        return self.balance + first_token_time(
            self.ingress_delay, self.ahead, each, turn, self.steps, self.step
        )

    @property
    def balance(self):
        """Seconds for which a prompt is held back until each copy has one, so that all prefill in the same steps."""
        if self.apart or not (self.dp_balance and self.in_step > 1):
            return 0.0
        begun = self.users / self.output_tokens
        steps = balance_steps(begun, self.in_step, self.dp_balance) * minimum(self.users - 1, 1)
        return steps * (self.step + begun * self.prompt_time)

    @property
    def token_wait(self):
        """Mean delay of a token by others' prefills, in seconds."""
        others = maximum(self.users - self.others_ahead, 1)
        own = prefill_interference(others, self.output_tokens, self.prefill_steps)
        each = self.prefill_steps * self.users / self.output_tokens
        return self.interleaved(own, each) * self.prompt_time / self.prefill_steps

    def interleaved(self, own, each):
        """Prefills between two tokens of a user, those of other copies included."""
        most = maximum(1 / self.chunks, 1)
        others = interleaved_prefills(own, each, self.prefilling, most) - own
        return own + (1 - self.balanced) * others

    @property
    def shared_time(self):
        """Machine time of a prompt among those of others, in seconds; lanes prefill in parallel."""
        own = self.prefill_steps * self.users / self.output_tokens
        return self.prompt_time / self.lanes * self.interleaved(own, own) / own

    @property
    def machine_time(self):
        """Machine time of a prompt in seconds: :attr:`shared_time`, and longer if no other user decodes meanwhile."""
        return self.shared_time + self.alone * (self.own_time - self.prompt_time) / self.pack / self.lanes


@frozen
class PrefillProfile:
    """Prefill of a question's prompts: mean length, cached tokens, mean breakdown, and that of uncached tokens.

    ``prompts``, ``fresh_tokens`` and ``passes``: tokens of each, uncached tokens, and seconds on an idle machine;
    ``own``: tokens beyond the prefix that prompts share.
    ``chunks``: mean number of steps that prefill one prompt; below 1 if a step prefills several. ``each``: breakdowns
    of all.
    """

    tokens: float
    cached: float
    full: Breakdown
    fresh: float
    prompts: tuple
    fresh_tokens: tuple
    passes: tuple
    chunks: float
    each: Breakdown
    own: tuple

    @classmethod
    def of(cls, deployment, tokens, cached=0, shared=0):
        """Prefill by a deployment of prompts with these tokens (a number or a distribution), some cached or shared."""
        prompts = workload.support(tokens)
        new = workload.uncached_tokens(tokens, cached) if cached else prompts
        beyond = workload.uncached_tokens(tokens, shared) if shared else prompts
        # in the order in which a link groups the prompts of a trace
        lengths = sorted(zip(new, beyond, prompts, strict=True))
        fresh_tokens, own, prompts = zip(*lengths, strict=True)
        many = isinstance(tokens, workload.LengthDistribution)
        prompt, uncached = map(np.array, (prompts, fresh_tokens)) if many else (tokens, tokens - cached)
        each = deployment.prefill(prompt, prompt - uncached)
        full, fresh = each, deployment.prefill(uncached) if cached else each
        if many:
            full, fresh = map(workload.mean_breakdown, (full, fresh))
        passes = tuple(each.total.tolist()) if many else (each.total,)
        chunks = workload.prefill_chunks(tokens, cached, deployment.scheduler.max_num_batched_tokens)
        return cls(tokens, cached, full, fresh.total, prompts, fresh_tokens, passes, chunks, each, own)

    def steps(self, room):
        """Mean number of whole steps that prefill a prompt alone, with ``room`` tokens in each (None: all)."""
        fresh = self.fresh_tokens
        return 1 if room is None else sum([ceil(n / room) for n in fresh]) / len(fresh)

    def added(self, step) -> tuple:
        """Seconds that each prefill adds to a step."""
        return tuple(np.ravel(added_time(self.each, step)).tolist())

    @property
    def uneven(self):
        """Mean square of the prompts' seconds over the square of their mean."""
        return 1 + workload.squared_cv(self.passes)


def prefix_cache(question, machines):
    """Cached tokens of the prompts: as given, or those that the caches of this many machines hold of a trace."""
    if question.trace is None or not question.trace.blocks:
        return question.cached or 0
    own = question.workload.context - question.shared_prefix
    room = question.max_sequences(question.prefills) * own + max(question.shared_prefix.support)
    return question.trace.cached(room * machines)


def prefill_profile(question, machines=1) -> PrefillProfile:
    """Return the prefill profile of a question on a number of machines."""
    cached = prefix_cache(question, machines)
    return PrefillProfile.of(question.prefills, question.prompt_tokens, cached, question.shared_prefix or 0)
