"""Steinhardt 2022: checks of its formulas, on the symbols of the derivations."""

import sympy as sp

from inferlib.papers import steinhardt2022 as model
from inferlib.papers.steinhardt2022 import derivations as s


def expression(machine, name):
    """Return an equation of the post on symbols, for another machine than its own."""
    function = getattr(model, name)
    return function(**(function.equation.symbols() | {"machine": machine}))


def coefficient(whole, monomial):
    """The number before a monomial."""
    return number(sp.expand(whole).coeff(monomial))


def number(value):
    """A number, or None where an expression still depends on the machine."""
    value = sp.simplify(value)
    return float(value) if value.is_number else None


def formula():
    """Coefficients and switch of the complete formula, which the post prints twice."""
    shape = s.C**2 * s.N / (s.B**2 * (s.M - s.B / sp.sqrt(s.N)))

    def switch(side):
        return lambda read: number(sp.fraction(sp.simplify(s.meeting().result / (s.M * sp.sqrt(s.N))))[side])

    return {
        "first branch: coefficient of C^2 / M^3": lambda read: number(
            s.memory_limited().result / (s.C**2 / s.M**3)
        ),
        "second branch: coefficient of C^2 N / (B^2 (M - B / sqrt(N)))": lambda read: number(
            s.network_limited().result / shape
        ),
        "switch at (2/3) M sqrt(N): numerator": switch(0),
        "switch at (2/3) M sqrt(N): denominator": switch(1),
    }


def moves(name, shape):
    """Whether the traffic of blocks of C sqrt(N) / B at batch C / M is a formula times a constant.

    In the limit of a network that is slow relative to memory.
    """
    block = s.C * sp.sqrt(s.N) / s.B
    moved = expression(s.MACHINE, name).subs({s.m: block, s.b: s.C / s.M}, simultaneous=True)
    ratio = sp.simplify(sp.limit(sp.simplify(moved / shape), s.B, 0))
    return bool(ratio.is_number and ratio.is_positive and ratio.is_finite)


def constant_of_r(k):
    """Time over L R^3 / (C k^2) where memory binds: a number, or None if it depends on the machine."""
    fast = s.ONE_CHIP.replace(network_bandwidth=model.sufficient_bandwidth(s.ONE_CHIP))
    ratio = sp.simplify(model.multiplies() * model.wasteful_time(fast, k) / model.very_short_time(fast, k))
    return round(float(ratio), 9) if ratio.is_number else None


def scales(name, factors, expected):
    """Whether a branch changes by a factor when symbols are multiplied."""
    whole = expression(s.MACHINE, name)
    bigger = {getattr(s, symbol): times * getattr(s, symbol) for symbol, times in factors.items()}
    ratio = sp.simplify(whole.subs(bigger, simultaneous=True) / whole)
    return bool(ratio == sp.nsimplify(expected))


def slopes(machine):
    """Powers of memory and of network bandwidth in the time, at one machine where the network binds."""
    time = expression(s.MACHINE, "network_limited_time")
    at = {
        s.C: machine.flops, s.M: machine.memory_bandwidth, s.B: machine.network_bandwidth, s.N: machine.chips,
    }  # fmt: skip
    return tuple(float((x * time.diff(x) / time).subs(at)) for x in (s.M, s.B))
