"""Steinhardt 2022: the chapter's tables."""

import math

from book.audit.grading import Reader
from book.frames import labelled
from inferlib import catalog
from inferlib.papers import steinhardt2022 as model
from inferlib.papers.steinhardt2022 import (
    STATED,
    WITHOUT_LIMIT,
    load_chip,
)
from inferlib.units import factor

CHIPS = ("A100 80GB", "H100 SXM", "H200", "B200")  # sold in machines of eight
POD, LINKS = "TPU v4", "TPU v4, each chip with its links as network"
US, MS = factor("us"), factor("ms")


@labelled("amount", "microseconds")
def warm_up(batch=1, grid=1):
    """The warm-up exactly: amounts (B or FLOP) and times of its layers by resource.

    ``batch``: vectors multiplied together. ``grid``: tiles along each side of a layer's matrix, one chip
    each; one layer is counted where it is above 1. Vectors are counted into and out of each layer in memory;
    over the network once for the whole stack on one chip, in and out.
    """
    machine, given = load_chip("A100, warm-up"), STATED["warm_up"]
    edge, layers = given["width"] / grid, given["layers"] if grid == 1 else 1
    for name, count, amount, time in (
        ("network", 1, model.network_traffic, model.network_time),
        ("memory", layers, model.memory_traffic, model.memory_time),
        ("arithmetic", layers, model.arithmetic_work, model.arithmetic_time),
    ):
        yield name, (count * amount(machine, edge, batch), count * time(machine, edge, batch) / US)


def modern_machines(chip=None):
    """The machines of today's chips, and of a reader's ``chip``: traffic inside a scale-up domain is free.

    A TPU v4 pod, which the post calls a node, holds any matrix of the post by itself; the last machine is the
    other reading of it, every chip a machine with its links as the network.
    """
    tpu = catalog.load_chip(POD)
    eight = {name: load_chip(catalog.load_chip(name)) for name in CHIPS}
    if chip and chip.scale_out_bandwidth and chip.scale_up_size:
        eight[chip.name] = load_chip(chip)
    return eight | {POD: load_chip(tpu, network="none"), LINKS: load_chip(tpu, network="links")}


@labelled()
def modern(machines):
    """The complete formula for machines, by name: ``C`` (TFLOP/s), ``M`` and ``B`` (TB/s), ``N``, and what follows.

    ``ratio`` is of the network to the bandwidth at which it would stop binding; ``machine`` the edge of the block of
    a whole one; ``time`` that of one multiply at full utilisation (us).
    """
    for name, machine in machines.items():
        alone = machine.network_bandwidth >= WITHOUT_LIMIT
        row = {
            "C": machine.flops / factor("TFLOP/s"),
            "M": machine.memory_bandwidth / factor("TB/s"),
            "B": math.inf if alone else machine.network_bandwidth / factor("TB/s"),
            "N": machine.chips,
            "ratio": math.inf if alone else switch_ratio(machine),
            "block": model.best_block(machine),
            "batch": model.best_batch(machine),
            "machine": model.machine_block(machine),
            "time": model.elapsed_time(machine) / US,
        }
        yield name, row


def slow_network():
    """The post's A100 machine with 400 GB/s in all: what its warm-up gives one chip and an H100 server has."""
    return load_chip("A100").replace(network_bandwidth=load_chip("A100, warm-up").network_bandwidth)


def uneven_share(machine):
    """Share of a square grid's network that a grid of two rows has."""
    return model.grid_bandwidth(machine, 2) / model.effective_bandwidth(machine)


def switch_ratio(machine):
    """A machine's network over the network that would suffice."""
    return machine.network_bandwidth / model.sufficient_bandwidth(machine)


def power_of_two(value):
    """The nearest power of two, in its exponent."""
    return 2.0 ** round(math.log2(value))


def counts(edge):
    """Numbers of machines and of chips for the post's widths, if each machine has a block of this edge."""
    a100, widths = load_chip("A100"), Reader("steinhardt2022", "Justification")("width of many models")
    machines = tuple(model.blocks_needed(d, edge) for d in widths)
    return machines, tuple(a100.chips * n for n in machines)
