"""Steinhardt 2022: everything the post prints, recomputed, and what of it is wrong."""

import math
from functools import lru_cache, partial

from inferlib import ledger
from inferlib.catalog import load_chip
from inferlib.ledger import Noted, Reader, compute, published, reproduces
from inferlib.papers.steinhardt2022 import equations as model
from inferlib.papers.steinhardt2022.equations import (
    PRINTED,
    WITHOUT_LIMIT,
    Assumptions,
    load_machine,
    machine_alone,
    machine_of,
    stated,
)
from inferlib.units import factor

reproduces = partial(reproduces, "steinhardt2022")
CHIPS = ("A100 80GB", "H100 SXM", "H200", "B200")  # sold in machines of eight
POD, LINKS = "TPU v4", "TPU v4, each chip with its links as network"
US, MS = factor("us"), factor("ms")


# --- Tables of the chapter -------------------------------------------------------------------------------


def warm_up(batch=1, grid=1):
    """The warm-up exactly: amounts and times of its layers by resource.

    Parameters
    ----------
    batch : int
        Vectors multiplied together.
    grid : int
        Tiles along each side of a layer's matrix, one chip each; one layer is counted where it is above 1.

    Returns
    -------
    pandas.DataFrame
        Indexed by resource: ``amount`` (B or FLOP) and ``microseconds``. Vectors are counted into and out of
        each layer in memory; over the network once for the whole stack on one chip, in and out.
    """
    import pandas as pd

    machine, given = load_machine("A100, warm-up"), stated()["warm_up"]
    edge, layers = given["width"] / grid, given["layers"] if grid == 1 else 1
    network = (model.network_traffic(machine, edge, batch), model.network_time(machine, edge, batch))
    memory = (model.memory_traffic(machine, edge, batch), model.memory_time(machine, edge, batch))
    arithmetic = (model.arithmetic_work(machine, edge, batch), model.arithmetic_time(machine, edge, batch))
    rows = {"network": network, "memory": _times(layers, memory), "arithmetic": _times(layers, arithmetic)}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["amount", "microseconds"])
    return table.assign(microseconds=table.microseconds / US)


def modern_machines():
    """The machines of today's chips: traffic inside a scale-up domain is free.

    Returns
    -------
    dict
        Name to Machine. A TPU v4 pod, which the post calls a node, holds any matrix of the post by itself;
        the last machine is the other reading of it, every chip a machine with its links as the network.
    """
    tpu = load_chip(POD)
    eight = {name: machine_of(load_chip(name)) for name in CHIPS}
    return eight | {POD: machine_alone(tpu), LINKS: machine_of(tpu, links=True)}


def modern():
    """The complete formula for machines of today's chips.

    Returns
    -------
    pandas.DataFrame
        Indexed by machine: ``C`` (TFLOP/s), ``M`` and ``B`` (TB/s; infinite where nothing leaves the
        machine), ``N``; the ``ratio`` of the network to the bandwidth at which it would stop binding; best
        ``block`` and ``batch``; the edge of the block of a whole ``machine``; and the ``time`` of one
        multiply at full utilisation (us).
    """
    import pandas as pd

    rows = {"post's A100": load_machine("A100"), "at 400 GB/s": _slow_network()} | modern_machines()
    return pd.DataFrame({name: _at_best(machine) for name, machine in rows.items()}).T


def _at_best(machine):
    alone = machine.network_bandwidth >= WITHOUT_LIMIT
    return {
        "C": machine.flops / factor("TFLOP/s"),
        "M": machine.memory_bandwidth / factor("TB/s"),
        "B": math.inf if alone else machine.network_bandwidth / factor("TB/s"),
        "N": machine.chips,
        "ratio": math.inf if alone else _switch_ratio(machine),
        "block": model.best_block(machine),
        "batch": model.best_batch(machine),
        "machine": model.machine_block(machine),
        "time": model.elapsed_time(machine) / US,
    }


def one_change_at_a_time():
    """What the headline becomes when one assumption changes and the rest stays as printed.

    Returns
    -------
    pandas.DataFrame
        Indexed by the change: microseconds of one multiply at full utilisation, milliseconds of a forward
        pass, and how many times as long as the printed reading that is.
    """
    import pandas as pd

    a100, given = load_machine("A100"), stated()["machines"]["A100, warm-up"]
    slow_memory = a100.replace(memory_bandwidth=load_machine("A100, warm-up").memory_bandwidth)
    uneven = a100.replace(network_bandwidth=a100.network_bandwidth * _uneven_loss(a100))
    cases = {
        "as printed": (a100, PRINTED),
        "no latency": (a100, PRINTED.replace(latency=0.0)),
        "utilisation 50 %": (a100, PRINTED.replace(utilisation=0.5)),
        "utilisation 30 %": (a100, PRINTED.replace(utilisation=0.3)),
        f"memory {given['memory_bandwidth']}, as in the warm-up": (slow_memory, PRINTED),
        "8 chips as a 2 x 4 grid": (uneven, PRINTED),
        "one chip in a machine": (a100.replace(chips=1), PRINTED),
        "a network without limit": (a100.replace(network_bandwidth=WITHOUT_LIMIT), PRINTED),
        f"network {given['network_bandwidth']}, as in the warm-up": (_slow_network(), PRINTED),
        "the catalogue's A100 machine": (machine_of(load_chip("A100 80GB")), PRINTED),
    }
    rows = {name: _headline(*case) for name, case in cases.items()}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["multiply (us)", "forward pass (ms)"])
    return table.assign(**{"times as long": table["forward pass (ms)"] / table["forward pass (ms)"].iloc[0]})


def _headline(machine, assumptions):
    return model.elapsed_time(machine) / US, model.forward_pass_time(machine, 1, assumptions) / MS


def _slow_network():
    return load_machine("A100").replace(network_bandwidth=load_machine("A100, warm-up").network_bandwidth)


def _uneven_loss(machine):
    """What a grid of two rows leaves of the network that a square grid would have."""
    return model.grid_bandwidth(machine, 2) / model.effective_bandwidth(machine)


def _times(count, pair):
    return tuple(count * value for value in pair)


def _short(value):
    if isinstance(value, tuple):
        return " to ".join(_short(v) for v in value)
    if isinstance(value, (bool, str)):
        return str(value).lower()
    return f"{value:.4g}"


# --- The scorecard ---------------------------------------------------------------------------------------


@reproduces("Introduction")
def _introduction(read):
    machines, widths = (modern_machines(), read("width of many models", artefact="Justification"))
    pod, links, a100 = machines[POD], machines[LINKS], machines["A100 80GB"]
    needed = max(model.blocks_needed(d, model.memory_block(pod)) for d in widths)
    m, b = model.best_block(load_machine()), model.best_batch(load_machine())
    faster = model.block_time(load_machine(), m / 2, b / 2) / model.block_time(load_machine(), m, b)
    return {
        # passes run side by side: the time of all is the time of one
        ("the answer", ""): lambda read: read("time of one pass"),
        ("what is not the answer", ""): lambda read: read("time of one pass") / read("passes in parallel"),
        ("memory is usually the limit of TPU pods", ""): Noted(
            not any(_network_binds(pod, d) for d in widths),
            f"the widest matrix takes {needed:.0f} of the {pod.chips:.0f} chips of a pod, so nothing leaves it; "
            f"{_share_of_switch(links, 'counted chip by chip with its links')}",
        ),
        ("the network is usually the limit of a cluster of A100s", ""): Noted(
            all(_network_binds(a100, d) for d in widths), _share_of_switch(a100)
        ),
        ("less utilisation means less time", ""): Noted(
            faster < 1, f"half the utilisation takes {faster:.2f} of the time"
        ),
    }


@reproduces("Very short answer")
def _very_short_answer(read):
    a100, s = load_machine().replace(network_bandwidth=WITHOUT_LIMIT), _s()
    constants = [_constant_of_r(k) for k in (1, 2)]
    ratio = model.multiply_adds_per_number(s.ONE_CHIP)
    least, best = (_smallest_block() / ratio, model.memory_block(s.ONE_CHIP) / ratio)
    work = _expression(s.ONE_CHIP, "arithmetic_work").subs(
        {s.m: model.memory_block(s.ONE_CHIP), s.b: model.memory_batch(s.ONE_CHIP)}
    )
    edge = (_number(best) or 1) * model.multiply_adds_per_number(a100)
    used = [k * model.block_utilisation(a100, edge / k, edge / k) for k in (1, 2, 10)]
    return {
        ("the time is L R^3 / C times a constant", ""): Noted(
            constants[0] is not None, f"the constant is {constants[0]} if memory binds"
        ),
        ("a block takes R^3 operations, times the same constant", ""): bool(
            _constant_in(work / ratio**3) and math.isclose(_number(work / ratio**3), constants[0] or 0)
        ),
        ("at utilisation 1/k it is L R^3 / (C k^2) times the same constant", ""): constants[0]
        == constants[1],
        ("R is the smallest block at full utilisation, up to a constant", ""): Noted(
            _constant_in(least), f"{least} R with a batch of any size; {best} R where the time is least"
        ),
        ("at utilisation 1/k the block is R / k, times the same constant", ""): all(
            math.isclose(share, 1) for share in used
        ),
    }


@reproduces("Technical answer")
def _technical_answer(read):
    a100, slow = load_machine("A100"), _slow_network()
    ideal = model.elapsed_time(a100)
    practical = [model.practical_time(a100, 1, PRINTED.replace(utilisation=u)) / US for u in (0.5, 0.3)]
    passes = [model.forward_pass_time(a100, 1, PRINTED.replace(utilisation=u)) / MS for u in (0.5, 0.3)]
    machines, widths = (modern_machines(), read("width of many models", artefact="Justification"))
    links = machines.pop(LINKS)
    bound = {name: all(_network_binds(machine, d) for d in widths) for name, machine in machines.items()}
    whole = model.machine_block(a100)
    between = a100.replace(chips=1, network_bandwidth=0.9 * a100.memory_bandwidth)
    excess = model.network_limited_time(between) / model.elapsed_time(between)
    return _formula() | {
        ("the width does not matter", ""): Noted(
            "d" not in _symbols(model.elapsed_time) and all(whole < d for d in widths),
            f"for matrices wider than a machine's block, {whole:.0f} here",
        ),
        ("without a network bottleneck the time grows as C^2 / M^3", ""): _grows(
            "memory_limited_time", "C**2/M**3"
        ),
        ("with one, as C^2 N / (B^2 M)", ""): _grows("network_limited_time", "C**2*N/(B**2*M)"),
        ("utilisation 1/k makes it k^2 times faster", ""): _faster_by_k_squared(),
        ("A100", "first branch"): model.memory_limited_time(a100),
        ("A100", "second branch"): Noted(
            model.network_limited_time(a100),
            f"with the warm-up's 400 GB/s: {model.elapsed_time(slow) / US:.2f} us",
        ),
        ("either branch can apply to current machines", ""): Noted(
            set(bound.values()) == {True, False},
            f"the second on {_listed(bound, True)}; the first on {_listed(bound, False)}, "
            f"{_share_of_switch(links, 'which counted chip by chip with its links is the second too')}",
        ),
        ("the formula is the larger of its two terms", ""): Noted(
            excess <= 1, f"at B = 0.9 M, N = 1 the second term is {excess:.2f} times the formula"
        ),
        ("on the A100 the second branch applies", ""): Noted(
            math.isclose(ideal, model.network_limited_time(a100)) and _switch_ratio(a100) < 1,
            f"{ideal / US:.3f} us; {_share_of_switch(a100)}",
        ),
        ("a multiply in practice", ""): Noted(
            model.practical_time(a100, 1), f"{practical[0]:.1f} us at 50 %, {practical[1]:.1f} us at 30 %"
        ),
        ("multiplies of Chinchilla", ""): model.multiplies(),
        ("a forward pass", ""): Noted(
            model.forward_pass_time(a100, 1), f"{passes[0]:.2f} ms at 50 %, {passes[1]:.2f} ms at 30 %"
        ),
    }


@reproduces("Justification")
def _justification(read):
    a100, widths = load_machine("A100"), read("width of many models")
    exact = model.best_block(a100)
    block = _power_of_two(exact)
    fixed = Assumptions.corrected()
    counted = [tuple(model.machines_needed(a100, d, block, a) for d in widths) for a in (PRINTED, fixed)]
    chips = [tuple(a100.chips * n for n in machines) for machines in counted]
    pod = load_chip("TPU v4").scale_up_size
    one, many = "one chip per machine: ", "N chips: "
    s = _s()
    least = _smallest_block() * s.M / s.C
    whole = f"that is one chip's share; a machine has N = {a100.chips:.0f} times as much"
    return {
        (one + "blocks have edge C / B", ""): _constant(_expression(s.ONE_CHIP, "network_block"), "C/B"),
        (one + "batches have size C / M", ""): Noted(
            _constant(_expression(s.ONE_CHIP, "network_batch"), "C/M"),
            f"exact: {model.network_batch(s.ONE_CHIP)}",
        ),
        (one + "network traffic is C^2 / (B M)", ""): _moves("network_traffic", "C**2/(B*M)"),
        (one + "memory reads are C^2 / B^2", ""): _moves("memory_traffic", "C**2/B**2"),
        (one + "operations are C^3 / (B^2 M)", ""): _moves("arithmetic_work", "C**3/(B**2*M)"),
        (one + "each takes C^2 / (B^2 M)", ""): all(_moves(name, "C**2/(B**2*M)") for name in _TIMES),
        (many + "a machine's block has edge C N / B", ""): _grows("network_block", "C*N/B", times="sqrt(N)"),
        (many + "batches have size C / M", ""): Noted(
            _grows("network_batch", "C/M"), f"exact: {model.network_batch(s.MACHINE)}"
        ),
        (many + "a chip's block has edge C sqrt(N) / B", ""): _grows("network_block", "C*sqrt(N)/B"),
        (many + "network traffic per machine is C^2 N / (B M)", ""): _moves(
            "network_traffic", "C**2*N/(B*M)", chips=True, times="sqrt(N)"
        ),
        (many + "memory reads per machine are C^2 N / B^2", ""): Noted(
            _moves("memory_traffic", "C**2*N/B**2", chips=True, times="N"), whole
        ),
        (many + "operations per machine are C^3 N / (B^2 M)", ""): Noted(
            _moves("arithmetic_work", "C**3*N/(B**2*M)", chips=True, times="N"), whole
        ),
        (many + "each takes C^2 N / (B^2 M)", ""): all(
            _moves(name, "C**2*N/(B**2*M)", chips=True) for name in _TIMES
        ),
        ("a chip's block is at least C / M", ""): Noted(
            bool(_constant_in(least) and least >= 1), f"at least {least} C / M, with a batch of any size"
        ),
        ("8 x A100", "block"): Noted(block, f"before rounding: {exact:.0f}"),
        ("8 x A100", "machines"): Noted(counted[0], f"one block for each chip: {_short(counted[1])}"),
        ("8 x A100", "chips"): Noted(chips[0], f"one block for each chip: {_short(chips[1])}"),
        ("chips of a TPU v4 pod", ""): pod,
        ("so many chips exist in one place", ""): Noted(chips[0][1] <= pod, f"{pod:.0f} in one pod"),
    }


@reproduces("Speed and cost")
def _speed_and_cost(read):
    a100, k = load_machine(), 10.0
    m, b = model.best_block(a100), model.best_batch(a100)
    utilisation = model.block_utilisation(a100, m / k, b / k)
    work = model.arithmetic_work(a100, m, b) / model.arithmetic_work(a100, m / k, b / k)
    return {
        ("utilisation when block and batch shrink by k is 1/k", ""): Noted(
            math.isclose(utilisation, 1 / k), f"k = {k:.0f}: {utilisation:.3f}"
        ),
        ("the work falls by k^3", ""): Noted(math.isclose(work, k**3), f"k = {k:.0f}: by {work:.0f}"),
        ("the multiply is k^2 times faster", ""): _faster_by_k_squared(),
    }


@reproduces("Matrix multiplies")
def _matrix_multiplies(read):
    def ratio(read):
        both = tuple(model.attention_ratio(d, read("context")) for d in read("width"))
        single = tuple(2 * value for value in both)
        return Noted(both, f"over both sums of the attention; over one of them {_short(single)}")

    s = _s()
    d, length = (model.attention_ratio.equation.symbols()[name] for name in ("d", "context"))
    three = model.attention_ratio(d, length) * 2 * length * d
    weight = _expression(s.ONE_CHIP, "arithmetic_work") / s.m**2
    return {
        ("three multiplies: coefficient of d^2", ""): _coefficient(three, d**2),
        ("the operations are proportional to the parameters", ""): Noted(
            s.m not in weight.free_symbols, f"for each parameter and vector {weight / s.b}"
        ),
        ("multiplies over the next most expensive term", ""): ratio,
        ("operations per parameter", ""): lambda read: (
            read("multiplications per parameter") + read("additions per parameter")
        ),
    }


@reproduces("Warm-up")
def _warm_up(read):
    exact = warm_up()
    return {
        ("rows of a matrix", "power of 2"): lambda read: math.log2(read("width")),
        ("columns of a matrix", "power of 2"): lambda read: math.log2(read("width")),
        ("layers", "power of 2"): lambda read: math.log2(read("layers")),
        ("bytes of a matrix entry", "power of 2"): lambda read: math.log2(read("bytes of a matrix entry")),
        ("bytes of all matrices", "power of 2"): lambda read: math.log2(_matrices(read)),
        ("bytes of all matrices", ""): lambda read: _size(_matrices(read), 3),
        ("the matrices fit", ""): Noted(
            _matrices(read) < read("memory of most GPUs"), f"{_matrices(read) / factor('GB'):.3f} GB"
        ),
        ("communication", "bytes"): lambda read: read("bytes of a matrix entry") * read("width"),
        ("communication", "amount"): lambda read: _size(read("communication", "bytes"), 1),
        ("computation", "amount"): lambda read: _size(
            read("operations per matrix entry") * read("layers") * read("width") ** 2, 3
        ),
        ("memory", "amount"): lambda read: Noted(read("bytes of all matrices"), f"exact: {_gb(exact)}"),
        ("communication", "time"): lambda read: Noted(
            read("communication", "amount") / read("A100", "B"),
            f"exact, into and out of the chip: {exact.microseconds['network']:.3f} us",
        ),
        ("memory", "time"): lambda read: Noted(
            read("memory", "amount") / read("A100", "M"), f"exact: {exact.microseconds['memory']:.0f} us"
        ),
        ("computation", "time"): lambda read: Noted(
            read("computation", "amount") / read("A100", "C"),
            f"exact: {exact.microseconds['arithmetic']:.2f} us",
        ),
        ("utilisation", ""): lambda read: read("computation", "time") / read("memory", "time"),
        ("overpaid by a factor", ""): lambda read: 1 / read("utilisation"),
        ("memory is the bottleneck", ""): Noted(
            exact.microseconds.idxmax() == "memory",
            f"{exact.microseconds['memory'] / exact.microseconds['arithmetic']:.0f} times as long as arithmetic",
        ),
    }


@reproduces("Batching")
def _batching(read):
    exact, single = warm_up(stated()["warm_up"]["batch"]), warm_up()
    layers = stated()["warm_up"]["layers"]
    us = exact.microseconds
    growth = us.max() / single.microseconds.max()
    before = partial(_from, "Warm-up")
    return {
        ("communication", "amount"): lambda read: read("vectors") * before(read, "communication", "amount"),
        ("vectors into and out of memory", "amount"): lambda read: _size(
            2 * before(read, "layers") * read("vectors") * before(read, "communication", "bytes"), 3
        ),
        ("memory", "amount"): lambda read: Noted(
            before(read, "memory", "amount") + read("vectors into and out of memory", "amount"),
            f"exact: {_gb(exact)}",
        ),
        ("computation", "amount"): lambda read: Noted(
            read("vectors") * before(read, "computation", "amount"),
            f"exact: {exact.amount['arithmetic'] / factor('GFLOP'):.1f} GFLOP",
        ),
        ("communication", "time"): lambda read: Noted(
            read("communication", "amount") / before(read, "A100", "B"),
            f"exact, into and out of the chip: {us['network']:.1f} us",
        ),
        ("memory", "time"): lambda read: Noted(
            read("memory", "amount") / before(read, "A100", "M"), f"exact: {us['memory']:.0f} us"
        ),
        ("computation", "time"): lambda read: Noted(
            read("computation", "amount") / before(read, "A100", "C"), f"exact: {us['arithmetic']:.0f} us"
        ),
        ("serial time", "all layers"): lambda read: max(read("memory", "time"), read("computation", "time")),
        ("serial time", "per layer"): lambda read: Noted(
            read("serial time", "all layers") / before(read, "layers"), f"exact: {us.max() / layers:.1f} us"
        ),
        ("full utilisation is possible", ""): Noted(
            us.idxmax() == "arithmetic",
            f"exact: arithmetic {us['arithmetic']:.0f} us, memory {us['memory']:.0f} us",
        ),
        ("communication", "amount before"): lambda read: before(read, "communication", "amount"),
        ("memory", "amount before"): lambda read: before(read, "memory", "amount"),
        ("computation", "amount before"): lambda read: before(read, "computation", "amount"),
        ("utilisation", ""): lambda read: (
            read("computation", "time") / max(read("memory", "time"), read("computation", "time"))
        ),
        ("serial time", "before"): lambda read: Noted(
            before(read, "memory", "time"),
            f"exact: {single.microseconds.max():.0f} us; a batch takes {growth:.2f} times as long",
        ),
    }


@reproduces("Tiling")
def _tiling(read):
    given = stated()["warm_up"]
    exact, whole = (warm_up(given["batch"], given["grid"]), warm_up(given["batch"]))
    us, layer = exact.microseconds, whole.microseconds.max() / given["layers"]
    before = partial(_from, "Warm-up")

    def vectors(read):
        return (
            before(read, "bytes of a matrix entry")
            * read("edge of a tile")
            * _from("Batching", read, "vectors")
        )

    def weights(read):
        return before(read, "bytes of a matrix entry") * read("edge of a tile") ** 2

    def work(read):
        once = before(read, "operations per matrix entry") * read("edge of a tile") ** 2
        return once * _from("Batching", read, "vectors")

    def slowest(read):
        return max(read(name, "time") for name in ("communication", "memory", "computation"))

    return {
        ("edge of a tile", ""): lambda read: before(read, "width") / read("grid"),
        ("communication", "amount"): lambda read: _size(2 * vectors(read), 2),
        ("memory", "amount"): lambda read: Noted(
            _size(2 * vectors(read) + weights(read), 2),
            f"exact: {exact.amount['memory'] / factor('MB'):.2f} MB",
        ),
        ("computation", "amount"): lambda read: _size(work(read), 3),
        ("communication", "time"): lambda read: Noted(
            read("communication", "amount") / before(read, "A100", "B"), f"exact: {us['network']:.2f} us"
        ),
        ("memory", "time"): lambda read: Noted(
            read("memory", "amount") / before(read, "A100", "M"), f"exact: {us['memory']:.2f} us"
        ),
        ("computation", "time"): lambda read: Noted(
            read("computation", "amount") / before(read, "A100", "C"), f"exact: {us['arithmetic']:.2f} us"
        ),
        ("vectors of one tile", "width"): lambda read: read("edge of a tile"),
        ("serial time before", "per layer"): lambda read: _from("Batching", read, "serial time", "per layer"),
        ("speed-up", ""): lambda read: Noted(
            _from("Batching", read, "serial time", "per layer") / slowest(read),
            f"exact: {layer / us.max():.2f}",
        ),
    }


@reproduces("Detailed count")
def _detailed_count(read):
    import sympy as sp

    s = _s()
    one = s.ONE_CHIP
    need = s._memory_per_work()
    time = model.network_limited_time(one)
    switch = sp.solve(sp.Eq(model.network_block(one), model.memory_block(one)), s.B)[0]
    best = partial(_expression, one)
    fits = sp.simplify(s._tight_batch().subs(s.m, model.network_block(one)) - s.C / (s.M - s.B)) == 0
    # at the switch m = b, and below it a larger network block goes with a smaller batch
    wide = sp.simplify(model.network_block(one) - model.network_batch(one)).subs(s.B, 2 * s.M / 3)
    below = sp.simplify((model.network_block(one) / model.network_batch(one)).subs(s.B, s.M / 3))
    elapsed = model.elapsed_time(load_machine().replace(chips=1))
    return {
        ("bytes of a number", ""): lambda read: read("bits of a number") / 8,
        ("the blocks of (d / m)^2 chips make up the matrix", ""): (
            sp.simplify(model.blocks_needed(_d(), s.m) * s.m**2 - _d() ** 2) == 0
        ),
        ("splitting and combining are of lower order", ""): Noted(
            sp.limit(best("combining_work") / best("arithmetic_work"), s.m, sp.oo) == 0,
            f"additions over operations: {best('combining_work') / best('arithmetic_work')}",
        ),
        ("network bytes: coefficient of m b", ""): _coefficient(best("network_traffic"), s.m * s.b),
        ("memory bytes: coefficient of m b", ""): _coefficient(best("memory_traffic"), s.m * s.b),
        ("memory bytes: coefficient of m^2", ""): _coefficient(best("memory_traffic"), s.m**2),
        ("operations: coefficient of m^2 b", ""): _coefficient(best("arithmetic_work"), s.m**2 * s.b),
        ("smallest block: coefficient of C / B", ""): _coefficient(best("network_block"), s.C / s.B),
        ("memory condition: coefficient of 1 / m", ""): _coefficient(need, 1 / s.m),
        ("memory condition: coefficient of 1 / b", ""): _coefficient(need, 1 / s.b),
        ("smallest batch is C / (M - B)", ""): fits,
        ("elapsed time: coefficient of C^2 / (B^2 (M - B))", ""): _number(
            time / (s.C**2 / (s.B**2 * (s.M - s.B)))
        ),
        ("it becomes infinite at M = B", ""): Noted(
            sp.limit(time, s.B, s.M, "-") == sp.oo,
            f"the complete formula there: {elapsed / US:.2f} us at M = 2 TB/s",
        ),
        ("the best block is never smaller than the batch", ""): Noted(
            bool(wide == 0 and below > 1),
            f"equal while memory binds; at B = M / 3, N = 1 it is {below} times as large",
        ),
        ("best block: coefficient of C / M", ""): _coefficient(best("memory_block"), s.C / s.M),
        ("best batch: coefficient of C / M", ""): _coefficient(best("memory_batch"), s.C / s.M),
        ("elapsed time: coefficient of C^2 / M^3", ""): _coefficient(
            best("memory_limited_time"), s.C**2 / s.M**3
        ),
        ("the other branch applies up to M / B of", ""): _number(s.M / switch),
    }


@reproduces("One machine")
def _one_machine(read):
    import sympy as sp

    s = _s()
    apart, together = (step.equation.rhs for step in s.grid_of_chips()[1::2])
    seen = model.effective_bandwidth(s.MACHINE)
    # what passes through the machine's network, over the bytes in and out of one number of each vector
    length = model.network_time(s.MACHINE, s.m, s.b) * s.B / model.network_traffic(s.MACHINE, 1, s.b)
    return _formula() | {
        ("N blocks apart leave each chip B / N", ""): sp.simplify(apart - s.B / s.N) == 0,
        ("a machine's vectors have length m sqrt(N)", ""): Noted(
            sp.simplify(length - s.m * sp.sqrt(s.N)) == 0, "instead of m N"
        ),
        ("a square grid leaves each chip B / sqrt(N)", ""): bool(
            sp.simplify(together - seen) == 0 and sp.simplify(seen - s.B / sp.sqrt(s.N)) == 0
        ),
    }


@reproduces("More memory")
def _more_memory(read):
    a100, k = load_machine().replace(network_bandwidth=WITHOUT_LIMIT), 10.0
    m, b = model.best_block(a100), model.best_batch(a100)
    gain = model.elapsed_time(a100) / model.block_time(a100, m, b / k)
    d, context = (
        read("width", artefact="Matrix multiplies")[0],
        read("context", artefact="Matrix multiplies"),
    )
    few, many, short = (
        _attention_share(a100, d, *at) for at in ((context, 1), (context, b), (context / 1000, b))
    )
    return {
        ("utilisation at a large batch", ""): model.block_utilisation(a100, m, b),
        ("attention is a lower-order term at a small batch", ""): Noted(
            few < 1,
            f"{few:.2f} of the time of the multiplies for one vector (d = {d:.0f}, {context:.0f} tokens)",
        ),
        ("attention is the bottleneck at a large batch and context", ""): Noted(
            many > 1 > short,
            f"{many:.0f} times the multiplies at the best batch, {b:.0f}; {short:.2f} times with a thousandth "
            "of the context",
        ),
        ("theoretical batch: coefficient of C / M", ""): _coefficient(
            _expression(_s().ONE_CHIP, "memory_batch"), _s().C / _s().M
        ),
        ("k", ""): lambda read: 1 / read("utilisation"),
        ("times faster", ""): lambda read: read("k") ** 2,
        ("doing without the batch of 3C / M is effectively the same", ""): Noted(
            math.isclose(gain, k**2),
            f"a batch 10 times smaller with the same blocks is {gain:.1f} times faster",
        ),
    }


@reproduces("Summary")
def _summary(read):
    memory, network = _slopes(load_machine())
    return {
        ("the time grows quadratically with the FLOPS", ""): all(
            _scales(name, {"C": 2}, 2**2) for name in ("memory_limited_time", "network_limited_time")
        ),
        ("the time falls cubically with the network and memory bandwidth", ""): Noted(
            all(
                _scales(name, {"M": 2, "B": 2}, 2**-3)
                for name in ("memory_limited_time", "network_limited_time")
            ),
            f"both together; on the post's A100 with the power {memory:.2f} of memory, {network:.2f} of network",
        ),
    }


@reproduces("Footnote 4")
def _footnote_4(read):
    s, context = _s(), 2.0
    network, arithmetic = (
        _expression(s.ONE_CHIP, name).subs(s.b, context * s.b) / _expression(s.ONE_CHIP, name)
        for name in ("network_traffic", "arithmetic_work")
    )
    tokens = read("context", artefact="Matrix multiplies")
    a100 = load_machine()
    m = model.best_block(a100)
    reads = model.memory_traffic(a100, m, tokens) / model.memory_traffic(a100, m, 1)
    return {
        ("without a cache, C tokens of context cost C times as much", ""): Noted(
            bool(network == arithmetic == context),
            f"network and arithmetic; memory reads {reads:.1f} times as much for {tokens:.0f} tokens together",
        )
    }


@reproduces("Footnote 6")
def _footnote_6(read):
    return {("bits of bfloat16", ""): lambda read: 8 * _from("Warm-up", read, "bytes of a matrix entry")}


@reproduces("Footnote 7")
def _footnote_7(read):
    return {("nearest power of 2", ""): lambda read: _power_of_two(read("underutilised by"))}


# --- How claims are checked: on the symbols of the derivations -------------------------------------------

_TIMES = ("network_time", "memory_time", "arithmetic_time")


@lru_cache(maxsize=1)
def _s():
    """The derivations, whose symbols the claims are checked on (loaded late: SymPy is slow to import)."""
    from inferlib.papers.steinhardt2022 import derivations

    return derivations


def _read_formula(text):
    """A formula of the post on the symbols of the derivations."""
    import sympy as sp

    s = _s()
    return sp.sympify(text, locals={"C": s.C, "M": s.M, "B": s.B, "N": s.N, "sqrt": sp.sqrt})


def _expression(machine, name):
    """An equation of the model on symbols, with another machine than its own."""
    function = getattr(model, name)
    values = function.equation.symbols() | {"machine": machine}
    return function(**values)


def _coefficient(expression, monomial):
    import sympy as sp

    return _number(sp.expand(expression).coeff(monomial))


def _number(expression):
    """A number, or None where an expression still depends on the machine."""
    import sympy as sp

    expression = sp.simplify(expression)
    return float(expression) if expression.is_number else None


def _d():
    return model.blocks_needed.equation.symbols()["d"]


def _smallest_block():
    """The smallest block at which memory can keep up with arithmetic, with as large a batch as it takes."""
    import sympy as sp

    s = _s()
    return sp.solve(sp.Eq(sp.limit(s._memory_per_work(), s.b, sp.oo), s.M / s.C), s.m)[0]


def _constant_in(ratio):
    """Whether a ratio is one positive number, whatever the machine."""
    import sympy as sp

    ratio = sp.simplify(ratio)
    return bool(ratio.is_number and ratio.is_positive and ratio.is_finite)


def _symbols(function):
    return {str(symbol) for symbol in function.equation.expression().free_symbols}


def _formula():
    """Coefficients and switch of the complete formula, from the derivations."""
    import sympy as sp

    s = _s()
    first, second = s.memory_limited().result, s.network_limited().result
    shape = s.C**2 * s.N / (s.B**2 * (s.M - s.B / sp.sqrt(s.N)))
    switch = sp.simplify(s.meeting().result / (s.M * sp.sqrt(s.N)))
    return {
        ("first branch: coefficient of C^2 / M^3", ""): _number(first / (s.C**2 / s.M**3)),
        ("second branch: coefficient of C^2 N / (B^2 (M - B / sqrt(N)))", ""): _number(second / shape),
        ("switch at (2/3) M sqrt(N): numerator", ""): _number(sp.fraction(switch)[0]),
        ("switch at (2/3) M sqrt(N): denominator", ""): _number(sp.fraction(switch)[1]),
    }


def _grows(name, shape, times="1"):
    """Whether an equation is a formula times a constant, in the limit of a slow network."""
    return _constant(_expression(_s().MACHINE, name) * _read_formula(times), shape)


def _moves(name, shape, chips=False, times="1"):
    """The same for what moves through blocks of C sqrt(N) / B at batch C / M."""
    import sympy as sp

    s = _s()
    machine = s.MACHINE if chips else s.ONE_CHIP
    block = s.C * sp.sqrt(machine.chips) / s.B
    moved = _expression(machine, name).subs({s.m: block, s.b: s.C / s.M}, simultaneous=True)
    return _constant(moved * _read_formula(times), shape)


def _constant(expression, shape):
    """Whether two expressions differ by a constant factor when the network is slow beside the memory."""
    import sympy as sp

    return _constant_in(sp.limit(sp.simplify(expression / _read_formula(shape)), _s().B, 0))


def _constant_of_r(k):
    """Time over L R^3 / (C k^2) where memory binds: a number, or None if it depends on the machine."""
    import sympy as sp

    s = _s()
    fast = s.ONE_CHIP.replace(network_bandwidth=model.sufficient_bandwidth(s.ONE_CHIP))
    ratio = sp.simplify(model.multiplies() * model.wasteful_time(fast, k) / model.very_short_time(fast, k))
    return round(float(ratio), 9) if ratio.is_number else None


def _faster_by_k_squared():
    """The starred equation itself at k times smaller blocks and batches, on both branches."""
    k, found = 10.0, []
    for machine in (load_machine(), load_machine().replace(network_bandwidth=WITHOUT_LIMIT)):
        m, b = model.best_block(machine), model.best_batch(machine)
        found.append(model.block_time(machine, m, b) / model.block_time(machine, m / k, b / k))
    return Noted(all(math.isclose(gain, k**2) for gain in found), f"k = {k:.0f}: {found[0]:.0f} times")


def _scales(name, factors, expected):
    """Whether a branch changes by a factor when symbols are multiplied."""
    import sympy as sp

    s, expression = _s(), _expression(_s().MACHINE, name)
    bigger = {getattr(s, symbol): times * getattr(s, symbol) for symbol, times in factors.items()}
    ratio = sp.simplify(expression.subs(bigger, simultaneous=True) / expression)
    return bool(ratio == sp.nsimplify(expected))


def _slopes(machine):
    """Powers of memory and of network bandwidth in the time, at one machine where the network binds."""
    s = _s()
    time = _expression(s.MACHINE, "network_limited_time")
    at = {
        s.C: machine.flops,
        s.M: machine.memory_bandwidth,
        s.B: machine.network_bandwidth,
        s.N: machine.chips,
    }
    return tuple(float((x * time.diff(x) / time).subs(at)) for x in (s.M, s.B))


def _switch_ratio(machine):
    return machine.network_bandwidth / model.sufficient_bandwidth(machine)


def _network_binds(machine, d):
    """Whether a d x d matrix, cut as memory would like it, crosses a network that is too slow for that.

    A machine by itself has no network to cross.
    """
    crosses = model.memory_block(machine) * math.sqrt(machine.chips) < d
    alone = machine.network_bandwidth >= WITHOUT_LIMIT
    return crosses and (alone or _switch_ratio(machine) < 1)


def _share_of_switch(machine, name=None):
    return (
        f"{name or machine.name}: network at {_switch_ratio(machine):.0%} of the bandwidth that would suffice"
    )


def _listed(answers, wanted):
    return ", ".join(name for name, answer in answers.items() if answer == wanted)


def _attention_share(machine, d, context, b):
    """Time to read the keys and values of one layer over the time of its three multiplies, on one memory."""
    attention = model.attention_traffic(machine, d, context, b) / machine.memory_bandwidth
    multiplies = max(model.memory_time(machine, d, b), model.arithmetic_time(machine, d, b))
    return attention / (3 * multiplies)


def _power_of_two(value):
    return 2.0 ** round(math.log2(value))


def _size(amount, power):
    """An amount as the post writes it: K, M or G may stand for powers of 1024."""
    return amount * (1000 / PRINTED.size_prefix) ** power


def _from(artefact, read, row, column=""):
    return read(row, column, artefact=artefact)


def _matrices(read):
    return read("bytes of a matrix entry") * read("layers") * read("width") ** 2


def _gb(table):
    return f"{table.amount['memory'] / factor('GB'):.3f} GB"


# --- What is wrong in print ------------------------------------------------------------------------------


def _recomputed(*place):
    """What the scorecard computes for one printed row, in SI units."""
    return compute(published("steinhardt2022")[place])[0]


@ledger.errata_numbers("steinhardt2022")
def errata_numbers():
    """The numbers that ``errata.toml`` names in braces.

    Returns
    -------
    dict
        Name to number or text.
    """
    a100, slow = load_machine("A100"), _slow_network()
    given = stated()["warm_up"]
    one, batched, tile = (warm_up(), warm_up(given["batch"]), warm_up(given["batch"], given["grid"]))
    block = _power_of_two(model.best_block(a100))
    read = Reader("steinhardt2022", "Matrix multiplies")
    widths, context = read("width"), read("context")
    readings = PRINTED, Assumptions.corrected()
    counts = [[model.machines_needed(a100, d, block, reading) for d in widths] for reading in readings]
    between = a100.replace(chips=1, network_bandwidth=0.9 * a100.memory_bandwidth)
    fast, m, b = (
        a100.replace(network_bandwidth=WITHOUT_LIMIT),
        model.memory_block(a100),
        model.memory_batch(a100),
    )
    uneven = a100.replace(network_bandwidth=a100.network_bandwidth * _uneven_loss(a100))
    memory, network = _slopes(a100)
    return {
        "block": model.best_block(a100),
        "rounded": block,
        "blocks_low": counts[0][0],
        "blocks_high": counts[0][1],
        "machines_low": counts[1][0],
        "machines_high": counts[1][1],
        "chips_low": counts[1][0] * a100.chips,
        "chips_high": counts[1][1] * a100.chips,
        "chips": a100.chips,
        "slow_us": model.elapsed_time(slow) / US,
        "fast_us": model.elapsed_time(a100) / US,
        "times_slower": model.elapsed_time(slow) / model.elapsed_time(a100),
        "slow_ms": model.forward_pass_time(slow, 1) / MS,
        "stated_us": _recomputed("Batching", "memory", "time") / US,
        "memory_us": batched.microseconds["memory"],
        "arithmetic_us": batched.microseconds["arithmetic"],
        "layer_us": batched.microseconds.max() / given["layers"],
        "single_us": one.microseconds["memory"],
        "batched_gb": batched.amount["memory"] / factor("GB"),
        "batched_gib": batched.amount["memory"] / 1024**3,
        "work_g": batched.amount["arithmetic"] / factor("GFLOP"),
        "work_gi": batched.amount["arithmetic"] / 1024**3,
        "tile_stated_us": _recomputed("Tiling", "memory", "time") / US,
        "tile_us": tile.microseconds["memory"],
        "tile_speed_up": batched.microseconds.max() / given["layers"] / tile.microseconds.max(),
        "both_ways": one.amount["network"],
        "excess": model.network_limited_time(between) / model.elapsed_time(between),
        "single_low": 2 * model.attention_ratio(widths[0], context),
        "single_high": 2 * model.attention_ratio(widths[1], context),
        "loss": 1 - _uneven_loss(a100),
        "uneven_us": model.elapsed_time(uneven) / US,
        "gain": model.elapsed_time(fast) / model.block_time(fast, m, b / 10),
        "use": model.block_utilisation(fast, m, b / 10),
        "memory_power": memory,
        "network_power": network,
        "latency_k": model.latency_waste(a100),
        "floor_gain": model.practical_time(a100, 1) / PRINTED.latency,
    }
