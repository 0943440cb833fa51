"""Steinhardt 2022: what the detailed explanation, the summary and the footnotes say."""

import math
from functools import partial

import sympy as sp

import book.audit.ledger
from book.steinhardt2022.symbols import derived, expression, scales, slopes
from book.steinhardt2022.tables import US, warm_up
from inferlib.papers.steinhardt2022 import equations as model
from inferlib.papers.steinhardt2022.equations import WITHOUT_LIMIT, load_chip as post_chip, stated
from inferlib.units import factor

claims = partial(book.audit.ledger.claims, "steinhardt2022")


@claims("Matrix multiplies")
def _matrix_multiplies(read, holds):
    s = derived()
    weight = expression(s.ONE_CHIP, "arithmetic_work") / s.m**2
    note = f"for each parameter and vector {weight / s.b}"
    holds("the operations are proportional to the parameters", s.m not in weight.free_symbols, note)


@claims("Warm-up")
def _warm_up(read, holds):
    held = read("bytes of a matrix entry") * read("layers") * read("width") ** 2
    holds(
        "the matrices fit",
        held < read("memory of most GPUs"),
        f"{held / factor('GB'):.3f} GB of {read('memory of most GPUs') / factor('GB'):.0f}",
    )
    us = warm_up().microseconds
    holds(
        "memory is the bottleneck",
        us.idxmax() == "memory",
        f"{us['memory'] / us['arithmetic']:.0f} times as long as arithmetic",
    )


@claims("Batching")
def _batching(read, holds):
    batch = stated()["warm_up"]["batch"]
    us, single = warm_up(batch).microseconds, warm_up().microseconds
    exact = f"exact: arithmetic {us['arithmetic']:.0f} us, memory {us['memory']:.0f} us"
    holds("full utilisation is possible", us.idxmax() == "arithmetic", exact)
    apart = us["memory"] / us["arithmetic"]
    holds(
        "memory and computation take about the same time",
        abs(apart - 1) < 0.2,
        f"{exact}, a ratio of {apart:.2f} (asked: within a fifth)",
    )
    growth = us.max() / single.max()
    holds(
        "the serial time barely increased",
        growth < batch / 100,
        f"{growth:.2f} times by exact times (asked: below a hundredth of the batch); 400 us over 330 as printed",
        fair=f"beside {batch} times the work",
    )


@claims("Detailed count")
def _detailed_count(read, holds):
    s = derived()
    one, best = s.ONE_CHIP, partial(expression, s.ONE_CHIP)
    width = model.blocks_needed.equation.symbols()["d"]
    missing = sp.simplify(model.blocks_needed(width, s.m) * s.m**2 - width**2)
    holds("the blocks of (d / m)^2 chips make up the matrix", missing == 0)
    share = best("combining_work") / best("arithmetic_work")
    holds(
        "splitting and combining are of lower order",
        sp.limit(share, s.m, sp.oo) == 0,
        f"additions over operations: {share}",
    )
    off = sp.simplify(s._tight_batch().subs(s.m, model.network_block(one)) - s.C / (s.M - s.B))
    holds("smallest batch is C / (M - B)", off == 0)
    alone = model.elapsed_time(post_chip().replace(chips=1))
    holds(
        "it becomes infinite at M = B",
        sp.limit(model.network_limited_time(one), s.B, s.M, "-") == sp.oo,
        f"the complete formula there: {alone / US:.2f} us at M = 2 TB/s",
    )
    # at the switch m = b, and below it a larger network block goes with a smaller batch
    wide = sp.simplify(model.network_block(one) - model.network_batch(one)).subs(s.B, 2 * s.M / 3)
    below = sp.simplify((model.network_block(one) / model.network_batch(one)).subs(s.B, s.M / 3))
    holds(
        "the best block is never smaller than the batch",
        bool(wide == 0 and below > 1),
        f"equal while memory binds; at B = M / 3, N = 1 it is {below} times as large",
    )


@claims("One machine")
def _one_machine(read, holds):
    s = derived()
    apart, together = (step.equation.rhs for step in s.grid_of_chips()[1::2])
    holds("N blocks apart leave each chip B / N", sp.simplify(apart - s.B / s.N) == 0)
    # what passes through the machine's network, over the bytes in and out of one number of each vector
    length = model.network_time(s.MACHINE, s.m, s.b) * s.B / model.network_traffic(s.MACHINE, 1, s.b)
    wide = sp.simplify(length - s.m * sp.sqrt(s.N)) == 0
    holds("a machine's vectors have length m sqrt(N)", wide, "instead of m N")
    seen = model.effective_bandwidth(s.MACHINE)
    holds(
        "a square grid leaves each chip B / sqrt(N)",
        bool(sp.simplify(together - seen) == 0 and sp.simplify(seen - s.B / sp.sqrt(s.N)) == 0),
    )


@claims("More memory")
def _more_memory(read, holds):
    a100, k = post_chip().replace(network_bandwidth=WITHOUT_LIMIT), 10.0
    m, b = model.best_block(a100), model.best_batch(a100)
    d, context = (read(name, artefact="Matrix multiplies") for name in ("width", "context"))
    share = partial(_attention_share, a100, d[0])
    few, many, short = share(context, 1), share(context, b), share(context / 1000, b)
    holds(
        "attention is a lower-order term at a small batch",
        lambda read: share(context, 1) < 1,
        f"{few:.2f} of the time of the multiplies for one vector "
        f"(width {d[0]:.0f}, {context:.0f} tokens; asked: below 1)",
    )
    holds(
        "attention is the bottleneck at a large batch and context",
        many > 1 > short,
        f"{many:.0f} times the multiplies at the best batch, {b:.0f}; {short:.2f} times with a thousandth "
        "of the context",
    )
    batch_alone, both = (model.elapsed_time(a100) / model.block_time(a100, d, b / k) for d in (m, m / k))
    holds(
        "doing without the batch of 3C / M is effectively the same",
        math.isclose(both, k**2),
        f"then {both:.0f} times faster; "
        f"a batch 10 times smaller with the same blocks is {batch_alone:.1f} times faster",
        fair="with blocks 10 times narrower as well, as k is defined",
    )


@claims("Summary")
def _summary(read, holds):
    branches = "memory_limited_time", "network_limited_time"
    holds("the time grows quadratically with the FLOPS", all(scales(name, {"C": 2}, 4) for name in branches))
    memory, network = slopes(post_chip())
    holds(
        "the time falls cubically with the network and memory bandwidth",
        all(scales(name, {"M": 2, "B": 2}, 2**-3) for name in branches),
        f"on the post's A100 with the power {memory:.2f} of memory alone, {network:.2f} of the network alone",
        fair="with both together",
    )


@claims("Footnote 4")
def _footnote_4(read, holds):
    s, context = derived(), 2.0
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


def _attention_share(machine, d, context, b):
    """Time to read the keys and values of one layer over the time of its three multiplies, on one memory."""
    attention = model.attention_traffic(machine, d, context, b) / machine.memory_bandwidth
    multiplies = max(model.memory_time(machine, d, b), model.arithmetic_time(machine, d, b))
    return attention / (3 * multiplies)
