"""Steinhardt 2022, derived beyond the post: uneven grids, the larger of two branches, where latency ends."""

from functools import partial

import sympy as sp

from inferlib.equation import derivation, in_steps, symbolic
from inferlib.papers.steinhardt2022 import equations as model
from inferlib.papers.steinhardt2022.derivations import _NAMES, MACHINE, B, M, N, X, _left, b, k, m, r
from inferlib.papers.steinhardt2022.equations import Assumptions

derivation = partial(derivation, "steinhardt2022")


@derivation(proves=model.grid_bandwidth)
def uneven_grid():
    """What a grid that is not square costs."""
    side = sp.Symbol("s", positive=True)
    columns = sp.solve(sp.Eq(r * side, N), side)[0]
    both = model.network_traffic(MACHINE, m, b)
    one_way = both / 2  # as many numbers leave a block as come in
    traffic = sp.factor(one_way.subs(m, columns * m) + one_way.subs(m, r * m))
    seen = sp.solve(sp.Eq(both / X, traffic / B), X)[0]
    best = sp.solve(sp.diff(traffic, r), r)[0]
    return in_steps(
        "N blocks in r rows stand in so many columns.",
        sp.Eq(side, columns),
        "The grid takes in one block of vectors for each column and sends out one for each row, as wide as a "
        "chip's block.",
        sp.Eq(_left("network_traffic"), traffic),
        "That is least in the square grid.",
        sp.Eq(r, best),
        "There each chip sees what the grid of the last derivation gave it.",
        sp.Eq(_left("effective_bandwidth"), sp.simplify(seen.subs(r, best))),
        "In any other this is the bandwidth with which one chip alone would need as long.",
        sp.Eq(_left("grid_bandwidth"), seen),
    )


@derivation()
def no_maximum():
    """Why the complete formula is two cases and not the larger of two terms."""
    first, second = model.memory_limited_time(MACHINE), model.network_limited_time(MACHINE)
    ratio = sp.factor(sp.simplify((second / first).subs(B, X * M * sp.sqrt(N))))
    over = sp.Symbol(rf"{_NAMES['network_limited_time']} / {_NAMES['memory_limited_time']}")
    beyond = sp.Rational(3, 2)
    return in_steps(
        "Measure the network as one chip sees it, as a share x of the memory bandwidth.",
        sp.Eq(X, sp.solve(sp.Eq(B, X * M * sp.sqrt(N)), X)[0]),
        "The second branch over the first then depends on x alone.",
        sp.Eq(over, ratio),
        "It is 1 where they meet and above 1 on both sides, so short of x = 1 the second is never the smaller.",
        sp.Eq(sp.Symbol("x_{min}"), sp.solve(sp.diff(ratio, X), X)[0]),
        "Towards x = 1 it has no limit.",
        sp.Eq(over, sp.limit(ratio, X, 1, "-")),
        "Beyond it the second branch is negative, here at one and a half times the memory bandwidth. The larger of "
        "the two terms is therefore wrong between two thirds and one, and right before and after.",
        sp.Eq(over, ratio.subs(X, beyond)),
    )


@derivation(proves=model.machine_block)
def machine_input():
    """How wide the block of a whole machine is, and what is left of it when constants are dropped."""
    useful = MACHINE.replace(network_bandwidth=X)
    grid = model.network_block(useful) * sp.sqrt(N)
    return in_steps(
        "A machine's square grid is as wide as its chips side by side, each holding the best block for a network "
        "of which x is of use.",
        sp.Eq(_left("machine_block"), grid),
        "Over the block that the post's sentence without constants gives, at the same network.",
        sp.Eq(
            _left("machine_block") / _left("rough_machine_block"),
            sp.simplify(grid / model.rough_machine_block(useful)),
        ),
        "With x the useful part of the network this holds on both branches.",
        sp.Eq(_left("machine_block"), grid.subs(X, model.useful_bandwidth(MACHINE))),
    )


@derivation(proves=model.latency_waste)
def latency_end():
    """How much utilisation can be given up before latency is half of the time."""
    whole = _left("elapsed_time")
    assumed = symbolic(Assumptions, "steinhardt2022")
    without = model.practical_time(MACHINE, k, assumed.replace(latency=sp.Integer(0)))
    part = whole * sp.simplify(without / model.elapsed_time(MACHINE))
    most = sp.solve(sp.Eq(part, assumed.latency), k)[0]
    return in_steps(
        "A multiply at one part in k of the utilisation that real code reaches, without its latency.",
        sp.Eq(_left("practical_time"), part),
        "That is as long as the latency at this k.",
        sp.Eq(k, most),
        "With the least time of a multiply put in, on whichever branch it is.",
        sp.Eq(_left("latency_waste"), most.subs(whole, model.elapsed_time(MACHINE))),
    )
