"""Steinhardt 2022: every number that the post prints, recomputed."""

from functools import partial

import sympy as sp

from book.audit.grading import WithNote, reproduces
from book.papers.steinhardt2022.symbols import coefficient, expression, formula, number
from book.papers.steinhardt2022.tables import counts, power_of_two, warm_up
from inferlib.catalog import load_chip
from inferlib.papers import steinhardt2022 as model
from inferlib.papers.steinhardt2022 import (
    PRINTED,
    STATED,
    WITHOUT_LIMIT,
    derivations as s,
    load_chip as post_chip,
)


@reproduces("Technical answer")
def _technical_answer(assumptions=PRINTED):
    a100 = post_chip("A100")
    return formula() | {
        ("A100", "first branch"): model.memory_limited_time(a100),
        ("A100", "second branch"): model.network_limited_time(a100),
        "a multiply in practice": model.practical_time(a100, 1),
        "multiplies of Chinchilla": model.multiplies(assumptions),
        "a forward pass": model.forward_pass_time(a100, 1, assumptions),
    }


@reproduces("Justification")
def _justification():
    block = partial(model.rough_machine_block, post_chip("A100"))
    machines, chips = counts(power_of_two(block()))
    return {
        ("8 x A100", "block"): lambda read: power_of_two(block()),
        ("8 x A100", "machines"): machines,
        ("8 x A100", "chips"): chips,
        "chips of a TPU v4 pod": load_chip("TPU v4").scale_up_size,
    }


@reproduces("Matrix multiplies")
def _matrix_multiplies(read):
    d, length = (model.attention_ratio.equation.symbols()[name] for name in ("d", "context"))
    return {
        "three multiplies: coefficient of d^2": lambda read: coefficient(
            model.attention_ratio(d, length) * 2 * length * d, d**2
        ),
        # both sums of attention together
        "multiplies over the next most expensive term": lambda read: tuple(
            model.attention_ratio(d, read("context")) for d in read("width")
        ),
    }


@reproduces("Batching")
def _batching(read):
    exact = warm_up(STATED["warm_up"]["batch"]).microseconds["memory"]

    def memory(read):
        return WithNote(read("memory", "amount") / read("A100", "M", "Warm-up"), f"exact: {exact:.0f} us")

    return {("memory", "time"): memory}


@reproduces("Detailed count")
def _detailed_count():
    one, best = s.ONE_CHIP, partial(expression, s.ONE_CHIP)

    def before(name, monomial):
        return lambda read: coefficient(best(name), monomial)

    def needed(monomial):
        return lambda read: coefficient(s._memory_per_work(), monomial)

    def switch(read):
        return number(s.M / sp.solve(sp.Eq(model.network_block(one), model.memory_block(one)), s.B)[0])

    return {
        "network bytes: coefficient of m b": before("network_traffic", s.m * s.b),
        "memory bytes: coefficient of m b": before("memory_traffic", s.m * s.b),
        "memory bytes: coefficient of m^2": before("memory_traffic", s.m**2),
        "operations: coefficient of m^2 b": before("arithmetic_work", s.m**2 * s.b),
        "smallest block: coefficient of C / B": before("network_block", s.C / s.B),
        "memory condition: coefficient of 1 / m": needed(1 / s.m),
        "memory condition: coefficient of 1 / b": needed(1 / s.b),
        "elapsed time: coefficient of C^2 / (B^2 (M - B))": lambda read: number(
            model.network_limited_time(one) / (s.C**2 / (s.B**2 * (s.M - s.B)))
        ),
        "best block: coefficient of C / M": before("memory_block", s.C / s.M),
        "best batch: coefficient of C / M": before("memory_batch", s.C / s.M),
        "elapsed time: coefficient of C^2 / M^3": before("memory_limited_time", s.C**2 / s.M**3),
        "the other branch applies up to M / B of": switch,
    }


@reproduces("One machine")
def _one_machine():
    return formula()


@reproduces("More memory")
def _more_memory():
    a100 = post_chip().replace(network_bandwidth=WITHOUT_LIMIT)
    best = model.best_block(a100), model.best_batch(a100)
    return {
        "utilisation at a large batch": model.block_utilisation(a100, *best),
        "theoretical batch: coefficient of C / M": lambda read: coefficient(
            expression(s.ONE_CHIP, "memory_batch"), s.C / s.M
        ),
    }
