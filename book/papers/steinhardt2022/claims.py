"""Steinhardt 2022: its short answer and summary, and sentences that need a charitable reading."""

import math

from book.audit.grading import reproduces
from book.papers.steinhardt2022.symbols import (
    constant_of_r,
    expression,
    moves,
    scales,
    slopes,
)
from book.papers.steinhardt2022.tables import LINKS, POD, US, modern_machines, switch_ratio, warm_up
from inferlib.papers import steinhardt2022 as model
from inferlib.papers.steinhardt2022 import STATED, WITHOUT_LIMIT, derivations as s, load_chip as post_chip


@reproduces("Very short answer")
def _very_short_answer(holds):
    at_full, at_half = map(constant_of_r, (1, 2))
    note = f"the constant is {at_full} if memory binds"
    holds("the time is L R^3 / C times a constant", at_full is not None, note)
    holds("at utilisation 1/k it is L R^3 / (C k^2) times the same constant", at_full == at_half)


@reproduces("Technical answer")
def _technical_answer(read, holds):
    machines, widths = modern_machines(), read("width of many models", artefact="Justification")
    links, pod, a100 = machines.pop(LINKS), machines[POD], post_chip("A100")
    bound = {name: all(_network_binds(machine, d) for d in widths) for name, machine in machines.items()}
    needed = max(model.blocks_needed(d, model.memory_block(pod)) for d in widths)
    holds(
        "either branch can apply to current machines, the first to TPU pods",
        set(bound.values()) == {True, False} and not bound[POD],
        f"the second on {_listed(bound, True)}; the first on {_listed(bound, False)}, where the widest matrix takes "
        f"{needed:.0f} of {pod.chips:.0f} chips, so nothing leaves it; counted chip by chip with its links, its "
        f"network has {switch_ratio(links):.0%} of the bandwidth that would suffice",
        fair="a pod counted as one machine, as the post counts its GPUs per node",
    )
    one = a100.replace(chips=1)
    between, beyond, short = (
        one.replace(network_bandwidth=share * one.memory_bandwidth) for share in (0.9, 1.5, 0.6)
    )
    excess = model.network_limited_time(between) / model.elapsed_time(between)

    def larger(machine):
        return max(model.memory_limited_time(machine), model.network_limited_time(machine))

    holds(
        "the formula is the larger of its two terms",
        all(math.isclose(larger(machine), model.elapsed_time(machine)) for machine in (a100, short)),
        f"at B = 0.9 M, N = 1 the second term is {excess:.2f} times the formula; beyond B = M sqrt(N) it is negative, "
        f"{model.network_limited_time(beyond) / US:.3f} us at 1.5 M",
        fair="either branch can apply, as the cases printed say; a maximum is right for B below (2/3) M sqrt(N)",
    )


@reproduces("Justification")
def _justification(holds):
    holds(
        "N chips: memory reads of C^2 N / B^2 and operations of C^3 N / (B^2 M) per machine",
        moves("memory_traffic", s.C**2 * s.N / s.B**2)
        and moves("arithmetic_work", s.C**3 * s.N / (s.B**2 * s.M)),
        f"a whole machine has N = {post_chip('A100').chips:.0f} times as much",
        fair="per GPU of the machine, as the rates M and C beside them",
    )


@reproduces("Batching")
def _batching(holds):
    batch = STATED["warm_up"]["batch"]
    growth = warm_up(batch).microseconds.max() / warm_up().microseconds.max()
    holds(
        "the serial time barely increased",
        growth < batch / 100,
        f"{growth:.2f} times by exact times (asked: below a hundredth of the batch); 400 us over 330 as printed",
        fair=f"beside {batch} times the work",
    )


@reproduces("More memory")
def _more_memory(holds):
    a100, k = post_chip().replace(network_bandwidth=WITHOUT_LIMIT), 10.0
    m, b = model.best_block(a100), model.best_batch(a100)
    batch_alone, both = (model.elapsed_time(a100) / model.block_time(a100, d, b / k) for d in (m, m / k))
    holds(
        "doing without the batch of 3C / M is effectively the same",
        math.isclose(both, k**2),
        f"then {both:.0f} times faster; "
        f"a batch 10 times smaller with the same blocks is {batch_alone:.1f} times faster",
        fair="with blocks 10 times narrower as well, as k is defined",
    )


@reproduces("Summary")
def _summary(holds):
    branches = "memory_limited_time", "network_limited_time"
    holds("the time grows quadratically with the FLOPS", all(scales(name, {"C": 2}, 4) for name in branches))
    memory, network = slopes(post_chip())
    holds(
        "the time falls cubically with the network and memory bandwidth",
        all(scales(name, {"M": 2, "B": 2}, 2**-3) for name in branches),
        f"on the post's A100 with the power {memory:.2f} of memory alone, {network:.2f} of the network alone",
        fair="with both together",
    )


@reproduces("Footnote 4")
def _footnote_4(read, holds):
    context = 2.0
    network, arithmetic = (
        expression(s.ONE_CHIP, name).subs(s.b, context * s.b) / expression(s.ONE_CHIP, name)
        for name in ("network_traffic", "arithmetic_work")
    )
    tokens, m = read("context", artefact="Matrix multiplies"), model.best_block(post_chip())
    reads = model.memory_traffic(post_chip(), m, tokens) / model.memory_traffic(post_chip(), m, 1)
    holds(
        "without a cache, C tokens of context cost C times as much",
        bool(network == arithmetic == context),
        f"memory reads {reads:.1f} times as much for {tokens:.0f} tokens together",
        fair="of arithmetic and network; weights are read once for all",
    )


def _network_binds(machine, d):
    """Whether the network binds for a d x d matrix in the blocks that suit memory.

    A single machine has no network.
    """
    crosses = model.memory_block(machine) * math.sqrt(machine.chips) < d
    alone = machine.network_bandwidth >= WITHOUT_LIMIT
    return crosses and (alone or switch_ratio(machine) < 1)


def _listed(answers, wanted):
    return ", ".join(name for name, answer in answers.items() if answer == wanted)
