"""Steinhardt 2022: what the introduction and the two short answers say."""

import math
from functools import partial

import book.audit.ledger
from book.steinhardt2022.symbols import (
    TIMES,
    constant_in,
    constant_of_r,
    derived,
    expression,
    free_symbols,
    grows,
    moves,
    number,
    proportional,
    smallest_block,
)
from book.steinhardt2022.tables import LINKS, POD, US, counts, modern_machines, power_of_two, switch_ratio
from inferlib.catalog import load_chip
from inferlib.papers.steinhardt2022 import equations as model
from inferlib.papers.steinhardt2022.equations import PRINTED, WITHOUT_LIMIT, load_chip as post_chip

claims = partial(book.audit.ledger.claims, "steinhardt2022")
K = 10.0  # the share of utilisation that the post gives up as an example
ONE_MACHINE = "a pod counted as one machine, as the post counts its GPUs per node"


@claims("Introduction")
def _introduction(read, holds):
    machines, widths = modern_machines(), read("width of many models", artefact="Justification")
    pod, links, a100 = machines[POD], machines[LINKS], machines["A100 80GB"]
    needed = max(model.blocks_needed(d, model.memory_block(pod)) for d in widths)
    holds(
        "memory is usually the limit of TPU pods",
        lambda read: not any(_network_binds(pod, d) for d in widths),
        f"the widest matrix takes {needed:.0f} of the {pod.chips:.0f} chips of a pod, so nothing leaves it; "
        f"{_share_of_switch(links, 'counted chip by chip with its links')}",
        fair=ONE_MACHINE,
    )
    holds(
        "the network is usually the limit of a cluster of A100s",
        lambda read: all(_network_binds(a100, d) for d in widths),
        _share_of_switch(a100),
    )
    m, b = model.best_block(post_chip()), model.best_batch(post_chip())
    faster = model.block_time(post_chip(), m / 2, b / 2) / model.block_time(post_chip(), m, b)
    note = f"half the utilisation takes {faster:.2f} of the time"
    holds("less utilisation means less time", faster < 1, note)


@claims("Very short answer")
def _very_short_answer(read, holds):
    a100, s = post_chip().replace(network_bandwidth=WITHOUT_LIMIT), derived()
    constants = [constant_of_r(k) for k in (1, 2)]
    ratio = model.multiply_adds_per_number(s.ONE_CHIP)
    least, best = smallest_block() / ratio, model.memory_block(s.ONE_CHIP) / ratio
    work = expression(s.ONE_CHIP, "arithmetic_work").subs(
        {s.m: model.memory_block(s.ONE_CHIP), s.b: model.memory_batch(s.ONE_CHIP)}
    )
    edge = (number(best) or 1) * model.multiply_adds_per_number(a100)
    used = [k * model.block_utilisation(a100, edge / k, edge / k) for k in (1, 2, 10)]
    note = f"the constant is {constants[0]} if memory binds"
    holds("the time is L R^3 / C times a constant", constants[0] is not None, note)
    holds(
        "a block takes R^3 operations, times the same constant",
        constant_in(work / ratio**3) and math.isclose(number(work / ratio**3), constants[0] or 0),
    )
    holds("at utilisation 1/k it is L R^3 / (C k^2) times the same constant", constants[0] == constants[1])
    holds(
        "R is the smallest block at full utilisation, up to a constant",
        constant_in(least),
        f"{least} R with a batch of any size; {best} R where the time is least",
    )
    same = all(math.isclose(share, 1) for share in used)
    holds("at utilisation 1/k the block is R / k, times the same constant", same)
    waits = PRINTED.multiplies_per_layer * PRINTED.latency / US
    holds(
        "latency is a few microseconds a layer",
        2 <= waits <= 5,
        f"{waits:.1f} us, two multiplies of the 1.5 us stated later (asked: 2 to 5 us)",
    )


@claims("Technical answer")
def _technical_answer(read, holds):
    a100 = post_chip("A100")
    ideal, whole = model.elapsed_time(a100), model.machine_block(a100)
    machines, widths = modern_machines(), read("width of many models", artefact="Justification")
    links = machines.pop(LINKS)
    bound = {name: all(_network_binds(machine, d) for d in widths) for name, machine in machines.items()}
    holds(
        "the width does not matter",
        "d" not in free_symbols(model.elapsed_time) and all(whole < d for d in widths),
        f"for matrices wider than a machine's block, {whole:.0f} here",
    )
    memory_binds = grows("memory_limited_time", "C**2/M**3")
    holds("without a network bottleneck the time grows as C^2 / M^3", memory_binds)
    holds("with one, as C^2 N / (B^2 M)", grows("network_limited_time", "C**2*N/(B**2*M)"))
    _faster(holds, "utilisation 1/k makes it k^2 times faster")
    holds(
        "either branch can apply to current machines",
        set(bound.values()) == {True, False},
        f"the second on {_listed(bound, True)}; the first on {_listed(bound, False)}, "
        f"{_share_of_switch(links, 'which counted chip by chip with its links is the second too')}",
        fair=ONE_MACHINE,
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
    holds(
        "on the A100 the second branch applies",
        lambda read: (
            math.isclose(model.elapsed_time(a100), model.network_limited_time(a100))
            and switch_ratio(a100) < 1
        ),
        f"{ideal / US:.3f} us; {_share_of_switch(a100)}",
    )
    holds(
        "a multiply takes a couple of microseconds on A100s",
        lambda read: 1 <= model.elapsed_time(a100) / US <= 3,
        f"{ideal / US:.1f} us at full utilisation and without latency (asked: 1 to 3 us)",
    )


@claims("Justification")
def _justification(read, holds):
    s, a100 = derived(), post_chip("A100")
    one, many = "one chip per machine: ", "N chips: "
    holds(one + "blocks have edge C / B", proportional(expression(s.ONE_CHIP, "network_block"), "C/B"))
    exact = expression(s.ONE_CHIP, "network_batch")
    holds(one + "batches have size C / M", proportional(exact, "C/M"), f"exact: {exact}")
    holds(one + "network traffic is C^2 / (B M)", moves("network_traffic", "C**2/(B*M)"))
    holds(one + "memory reads are C^2 / B^2", moves("memory_traffic", "C**2/B**2"))
    holds(one + "operations are C^3 / (B^2 M)", moves("arithmetic_work", "C**3/(B**2*M)"))
    holds(one + "each takes C^2 / (B^2 M)", all(moves(name, "C**2/(B**2*M)") for name in TIMES))
    holds(many + "a machine's block has edge C N / B", grows("network_block", "C*N/B", times="sqrt(N)"))
    exact = f"exact: {model.network_batch(s.MACHINE)}"
    holds(many + "batches have size C / M", grows("network_batch", "C/M"), exact)
    holds(many + "a chip's block has edge C sqrt(N) / B", grows("network_block", "C*sqrt(N)/B"))
    holds(
        many + "network traffic per machine is C^2 N / (B M)",
        moves("network_traffic", "C**2*N/(B*M)", chips=True, times="sqrt(N)"),
    )
    for label, name, shape, rate in (
        ("memory reads per machine are C^2 N / B^2", "memory_traffic", "C**2*N/B**2", "M"),
        ("operations per machine are C^3 N / (B^2 M)", "arithmetic_work", "C**3*N/(B**2*M)", "C"),
    ):
        holds(
            many + label,
            moves(name, shape, chips=True),
            f"a whole machine has N = {a100.chips:.0f} times as much",
            fair=f"per GPU of the machine, as the rate {rate} beside it",
        )
    equal = all(moves(name, "C**2*N/(B**2*M)", chips=True) for name in TIMES)
    holds(many + "each takes C^2 N / (B^2 M)", equal)
    least = smallest_block() * s.M / s.C
    holds(
        "a chip's block is at least C / M",
        bool(constant_in(least) and least >= 1),
        f"at least {least} C / M, with a batch of any size",
    )
    pod = load_chip(POD).scale_up_size
    chips = counts(power_of_two(model.rough_machine_block(a100)))[1]
    holds("so many chips exist in one place", chips[1] <= pod, f"{pod:.0f} in one pod")


@claims("Speed and cost")
def _speed_and_cost(read, holds):
    a100 = post_chip()
    m, b = model.best_block(a100), model.best_batch(a100)
    used = model.block_utilisation(a100, m / K, b / K)
    holds(
        "utilisation when block and batch shrink by k is 1/k",
        lambda read: math.isclose(model.block_utilisation(a100, m / K, b / K), 1 / K),
        f"k = {K:.0f}: {used:.3f}",
    )
    work = model.arithmetic_work(a100, m, b) / model.arithmetic_work(a100, m / K, b / K)
    holds("the work falls by k^3", math.isclose(work, K**3), f"k = {K:.0f}: by {work:.0f}")
    _faster(holds, "the multiply is k^2 times faster")


def _faster(holds, label):
    """The starred equation itself at k times smaller blocks and batches, on both branches."""

    def gains():
        for machine in (post_chip(), post_chip().replace(network_bandwidth=WITHOUT_LIMIT)):
            m, b = model.best_block(machine), model.best_batch(machine)
            yield model.block_time(machine, m, b) / model.block_time(machine, m / K, b / K)

    holds(
        label,
        lambda read: all(math.isclose(gain, K**2) for gain in gains()),
        f"k = {K:.0f}: {next(gains()):.0f} times",
    )


def _network_binds(machine, d):
    """Whether a d x d matrix, cut as memory would like it, crosses a network that is too slow for that.

    A machine by itself has no network to cross.
    """
    crosses = model.memory_block(machine) * math.sqrt(machine.chips) < d
    alone = machine.network_bandwidth >= WITHOUT_LIMIT
    return crosses and (alone or switch_ratio(machine) < 1)


def _share_of_switch(machine, name=None):
    share = switch_ratio(machine)
    return f"{name or machine.name}: network at {share:.0%} of the bandwidth that would suffice"


def _listed(answers, wanted):
    return ", ".join(name for name, answer in answers.items() if answer == wanted)
