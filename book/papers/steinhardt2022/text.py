"""Steinhardt 2022: every number that the post prints, recomputed."""

import math
from functools import partial

import sympy as sp

import book.audit.grading
from book.audit.grading import WithNote
from book.papers.steinhardt2022.symbols import coefficient, expression, formula, number
from book.papers.steinhardt2022.tables import counts, power_of_two, warm_up
from inferlib.catalog import load_chip
from inferlib.papers.steinhardt2022 import derivations as s, equations as model
from inferlib.papers.steinhardt2022.equations import PRINTED, WITHOUT_LIMIT, load_chip as post_chip, stated

reproduces = partial(book.audit.grading.reproduces, "steinhardt2022")


@reproduces("Introduction")
def _introduction(read):
    return {
        # passes run side by side, so the time of all is the time of one
        ("the answer", ""): lambda read: read("time of one pass"),
        ("what is not the answer", ""): lambda read: read("time of one pass") / read("passes in parallel"),
    }


@reproduces("Technical answer")
def _technical_answer(read, assumptions=PRINTED):
    a100 = post_chip("A100")
    return formula() | {
        ("A100", "first branch"): model.memory_limited_time(a100),
        ("A100", "second branch"): model.network_limited_time(a100),
        ("a multiply in practice", ""): model.practical_time(a100, 1),
        ("multiplies of Chinchilla", ""): model.multiplies(assumptions),
        ("a forward pass", ""): model.forward_pass_time(a100, 1, assumptions),
    }


@reproduces("Justification")
def _justification(read):
    block = partial(model.rough_machine_block, post_chip("A100"))
    machines, chips = counts(power_of_two(block()))
    return {
        ("8 x A100", "block"): lambda read: power_of_two(block()),
        ("8 x A100", "machines"): machines,
        ("8 x A100", "chips"): chips,
        ("chips of a TPU v4 pod", ""): load_chip("TPU v4").scale_up_size,
    }


@reproduces("Matrix multiplies")
def _matrix_multiplies(read):
    d, length = (model.attention_ratio.equation.symbols()[name] for name in ("d", "context"))
    return {
        ("three multiplies: coefficient of d^2", ""): lambda read: coefficient(
            model.attention_ratio(d, length) * 2 * length * d, d**2
        ),
        # both sums of attention together
        ("multiplies over the next most expensive term", ""): lambda read: tuple(
            model.attention_ratio(d, read("context")) for d in read("width")
        ),
        ("operations per parameter", ""): lambda read: (
            read("multiplications per parameter") + read("additions per parameter")
        ),
    }


@reproduces("Warm-up")
def _warm_up(read):
    return (
        {
            ("rows of a matrix", "power of 2"): lambda read: math.log2(read("width")),
            ("columns of a matrix", "power of 2"): lambda read: math.log2(read("width")),
            ("layers", "power of 2"): lambda read: math.log2(read("layers")),
            ("bytes of a matrix entry", "power of 2"): lambda read: math.log2(
                read("bytes of a matrix entry")
            ),
            ("bytes of all matrices", "power of 2"): lambda read: math.log2(_matrices(read)),
            ("bytes of all matrices", ""): lambda read: _size(_matrices(read), 3),
            ("communication", "bytes"): lambda read: read("bytes of a matrix entry") * read("width"),
            ("communication", "amount"): lambda read: _size(read("communication", "bytes"), 1),
            ("computation", "amount"): lambda read: _size(_operations(read), 3),
            ("memory", "amount"): lambda read: _size(_matrices(read), 3),
            ("utilisation", ""): lambda read: read("computation", "time") / read("memory", "time"),
            ("overpaid by a factor", ""): lambda read: 1 / read("utilisation"),
        }
        | _times()
        | {("memory", "time"): _time("M", "bytes of all matrices")}
    )


@reproduces("Batching")
def _batching(read):
    exact, before = warm_up(stated()["warm_up"]["batch"]), partial(_from, "Warm-up")

    def memory(read):
        note = f"exact: {exact.microseconds['memory']:.0f} us"
        return WithNote(_time("M", "memory", "amount")(read), note)

    return _times() | {
        ("communication", "amount"): lambda read: read("vectors") * before(read, "communication", "amount"),
        ("vectors into and out of memory", "amount"): lambda read: _size(
            2 * before(read, "layers") * read("vectors") * before(read, "communication", "bytes"), 3
        ),
        ("memory", "amount"): lambda read: (
            before(read, "bytes of all matrices") + read("vectors into and out of memory", "amount")
        ),
        ("computation", "amount"): lambda read: read("vectors") * before(read, "computation", "amount"),
        ("memory", "time"): memory,
        ("serial time", "per layer"): lambda read: _slowest(read) / before(read, "layers"),
        ("utilisation", ""): lambda read: read("computation", "time") / _slowest(read),
        # Values that the post repeats are computed from their inputs, not from their first occurrence.
        ("communication", "amount before"): lambda read: _size(
            before(read, "bytes of a matrix entry") * before(read, "width"), 1
        ),
        ("memory", "amount before"): lambda read: _size(_matrices(partial(before, read)), 3),
        ("computation", "amount before"): lambda read: _size(_operations(partial(before, read)), 3),
        ("serial time", "all layers"): lambda read: (
            _size(read("vectors") * _operations(partial(before, read)), 3) / before(read, "A100", "C")
        ),
        ("serial time", "before"): lambda read: (
            _size(_matrices(partial(before, read)), 3) / before(read, "A100", "M")
        ),
    }


@reproduces("Tiling")
def _tiling(read):
    before, batched = partial(_from, "Warm-up"), partial(_from, "Batching")

    def vectors(read):
        return before(read, "bytes of a matrix entry") * read("edge of a tile") * batched(read, "vectors")

    def weights(read):
        return before(read, "bytes of a matrix entry") * read("edge of a tile") ** 2

    def work(read):
        once = before(read, "operations per matrix entry") * read("edge of a tile") ** 2
        return once * batched(read, "vectors")

    return _times() | {
        ("edge of a tile", ""): lambda read: before(read, "width") / read("grid"),
        ("communication", "amount"): lambda read: _size(2 * vectors(read), 2),
        ("memory", "amount"): lambda read: _size(2 * vectors(read) + weights(read), 2),
        ("computation", "amount"): lambda read: _size(work(read), 3),
        ("vectors of one tile", "width"): lambda read: before(read, "width") / read("grid"),
        ("serial time before", "per layer"): lambda read: batched(read, "serial time", "per layer"),
        ("speed-up", ""): lambda read: batched(read, "serial time", "per layer") / _slowest(read),
    }


@reproduces("Detailed count")
def _detailed_count(read):
    one, best = s.ONE_CHIP, partial(expression, s.ONE_CHIP)

    def before(name, monomial):
        return lambda read: coefficient(best(name), monomial)

    def needed(monomial):
        return lambda read: coefficient(s._memory_per_work(), monomial)

    def switch(read):
        return number(s.M / sp.solve(sp.Eq(model.network_block(one), model.memory_block(one)), s.B)[0])

    return {
        ("bytes of a number", ""): lambda read: read("bits of a number") / 8,
        ("network bytes: coefficient of m b", ""): before("network_traffic", s.m * s.b),
        ("memory bytes: coefficient of m b", ""): before("memory_traffic", s.m * s.b),
        ("memory bytes: coefficient of m^2", ""): before("memory_traffic", s.m**2),
        ("operations: coefficient of m^2 b", ""): before("arithmetic_work", s.m**2 * s.b),
        ("smallest block: coefficient of C / B", ""): before("network_block", s.C / s.B),
        ("memory condition: coefficient of 1 / m", ""): needed(1 / s.m),
        ("memory condition: coefficient of 1 / b", ""): needed(1 / s.b),
        ("elapsed time: coefficient of C^2 / (B^2 (M - B))", ""): lambda read: number(
            model.network_limited_time(one) / (s.C**2 / (s.B**2 * (s.M - s.B)))
        ),
        ("best block: coefficient of C / M", ""): before("memory_block", s.C / s.M),
        ("best batch: coefficient of C / M", ""): before("memory_batch", s.C / s.M),
        ("elapsed time: coefficient of C^2 / M^3", ""): before("memory_limited_time", s.C**2 / s.M**3),
        ("the other branch applies up to M / B of", ""): switch,
    }


@reproduces("One machine")
def _one_machine(read):
    return formula()


@reproduces("More memory")
def _more_memory(read):
    a100 = post_chip().replace(network_bandwidth=WITHOUT_LIMIT)
    best = model.best_block(a100), model.best_batch(a100)
    return {
        ("utilisation at a large batch", ""): model.block_utilisation(a100, *best),
        ("theoretical batch: coefficient of C / M", ""): lambda read: coefficient(
            expression(s.ONE_CHIP, "memory_batch"), s.C / s.M
        ),
        ("k", ""): lambda read: 1 / read("utilisation"),
        ("times faster", ""): lambda read: read("k") ** 2,
    }


@reproduces("Footnote 6")
def _footnote_6(read):
    return {("bits of bfloat16", ""): lambda read: 8 * _from("Warm-up", read, "bytes of a matrix entry")}


@reproduces("Footnote 7")
def _footnote_7(read):
    return {("nearest power of 2", ""): lambda read: power_of_two(read("underutilised by"))}


def _from(artefact, read, row, column=""):
    return read(row, column, artefact=artefact)


def _time(rate, *amount):
    """A printed amount over a rate of the A100, which the warm-up prints."""
    return lambda read: read(*amount) / read("A100", rate, "Warm-up")


RESOURCES = {"communication": "B", "memory": "M", "computation": "C"}


def _times():
    """Return every resource's printed amount over its rate."""
    return {(name, "time"): _time(rate, name, "amount") for name, rate in RESOURCES.items()}


def _slowest(read):
    return max(read(name, "time") for name in RESOURCES)


def _size(amount, power):
    """An amount as the post writes it: its K, M and G stand for powers of 1024."""
    return amount * (1000 / stated()["assumptions"]["size_prefix"]) ** power


def _matrices(read):
    return read("bytes of a matrix entry") * read("layers") * read("width") ** 2


def _operations(read):
    return read("operations per matrix entry") * read("layers") * read("width") ** 2
