"""Steinhardt 2022: how its formulas are checked, on the symbols of the derivations."""

from functools import cache

import sympy as sp

from inferlib.papers.steinhardt2022 import derivations, equations as model

TIMES = ("network_time", "memory_time", "arithmetic_time")


@cache
def derived():
    """The derivations, with their symbols (loaded late: SymPy is slow to import)."""
    return derivations


def expression(machine, name):
    """An equation of the post on symbols, with another machine than its own."""
    function = getattr(model, name)
    return function(**(function.equation.symbols() | {"machine": machine}))


def coefficient(whole, monomial):
    """The number before a monomial."""
    return number(sp.expand(whole).coeff(monomial))


def number(value):
    """A number, or None where an expression still depends on the machine."""
    value = sp.simplify(value)
    return float(value) if value.is_number else None


def constant_in(ratio):
    """Whether a ratio is one positive number, whatever the machine."""
    ratio = sp.simplify(ratio)
    return bool(ratio.is_number and ratio.is_positive and ratio.is_finite)


def formula():
    """Coefficients and switch of the complete formula, which the post prints twice."""
    s = derived()
    shape = s.C**2 * s.N / (s.B**2 * (s.M - s.B / sp.sqrt(s.N)))

    def switch(side):
        return lambda read: number(sp.fraction(sp.simplify(s.meeting().result / (s.M * sp.sqrt(s.N))))[side])

    return {
        ("first branch: coefficient of C^2 / M^3", ""): lambda read: number(
            s.memory_limited().result / (s.C**2 / s.M**3)
        ),
        ("second branch: coefficient of C^2 N / (B^2 (M - B / sqrt(N)))", ""): lambda read: number(
            s.network_limited().result / shape
        ),
        ("switch at (2/3) M sqrt(N): numerator", ""): switch(0),
        ("switch at (2/3) M sqrt(N): denominator", ""): switch(1),
    }


def grows(name, shape, times="1"):
    """Whether an equation is a formula times a constant, in the limit of a slow network."""
    return proportional(expression(derived().MACHINE, name) * read_formula(times), shape)


def moves(name, shape, chips=False, times="1"):
    """The same for what moves through blocks of C sqrt(N) / B at batch C / M."""
    s = derived()
    machine = s.MACHINE if chips else s.ONE_CHIP
    block = s.C * sp.sqrt(machine.chips) / s.B
    moved = expression(machine, name).subs({s.m: block, s.b: s.C / s.M}, simultaneous=True)
    return proportional(moved * read_formula(times), shape)


def proportional(whole, shape):
    """Whether two expressions differ by a constant factor when the network is slow beside the memory."""
    return constant_in(sp.limit(sp.simplify(whole / read_formula(shape)), derived().B, 0))


def read_formula(text):
    """A formula of the post on the symbols of the derivations."""
    s = derived()
    return sp.sympify(text, locals={"C": s.C, "M": s.M, "B": s.B, "N": s.N, "sqrt": sp.sqrt})


def constant_of_r(k):
    """Time over L R^3 / (C k^2) where memory binds: a number, or None if it depends on the machine."""
    s = derived()
    fast = s.ONE_CHIP.replace(network_bandwidth=model.sufficient_bandwidth(s.ONE_CHIP))
    ratio = sp.simplify(model.multiplies() * model.wasteful_time(fast, k) / model.very_short_time(fast, k))
    return round(float(ratio), 9) if ratio.is_number else None


def scales(name, factors, expected):
    """Whether a branch changes by a factor when symbols are multiplied."""
    s, whole = derived(), expression(derived().MACHINE, name)
    bigger = {getattr(s, symbol): times * getattr(s, symbol) for symbol, times in factors.items()}
    ratio = sp.simplify(whole.subs(bigger, simultaneous=True) / whole)
    return bool(ratio == sp.nsimplify(expected))


def slopes(machine):
    """Powers of memory and of network bandwidth in the time, at one machine where the network binds."""
    s = derived()
    time = expression(s.MACHINE, "network_limited_time")
    at = {
        s.C: machine.flops, s.M: machine.memory_bandwidth, s.B: machine.network_bandwidth, s.N: machine.chips,
    }  # fmt: skip
    return tuple(float((x * time.diff(x) / time).subs(at)) for x in (s.M, s.B))
