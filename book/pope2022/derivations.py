"""Pope et al. 2022: what else follows from its volumes: the printed criterion, the factor (K - 1)/K, the cache."""

from functools import partial

import sympy as sp

from inferlib.equation import derivation, in_steps, symbolic
from inferlib.papers.pope2022 import EXACT, PRINTED, Assumptions, equations
from inferlib.papers.pope2022.derivations import (  # noqa: F401, chapters find all of them here
    ACT,
    CHIP,
    FLAT,
    MESH,
    MODEL,
    E,
    F,
    G,
    N,
    T,
    W,
    X,
    break_even_by_costs,
    collectives,
    four_times,
    optimal_gather,
    optimal_x,
    same_bytes,
    switch_between_gathers,
    switch_from_2d,
    symbol,
    whole,
)  # fmt: skip

derivation = partial(derivation, "pope2022")

SHARED = MODEL.replace(kv_heads=sp.Integer(1))
LINE = MESH.replace(x=sp.Integer(1), y=N, z=sp.Integer(1))


@derivation()
def printed_criterion():
    """Where the printed criterion agrees with the costs."""
    printed = equations.printed_break_even(MODEL)
    ours = equations.break_even(MODEL)
    same = sp.solve(sp.Eq(printed, ours), F)[0]
    square = equations.ws2d_time(MODEL, CHIP, FLAT, T).subs(X, sp.sqrt(N)) / equations.ws1d_time(
        MODEL, CHIP, MESH, T
    )
    square = sp.simplify(square)
    return in_steps(
        "The paper says that 2D wins when the root of the chips exceeds F/E, that is above this.",
        sp.Eq(symbol("printed_break_even"), printed),
        "Its own costs say this.",
        sp.Eq(symbol("break_even"), ours),
        "On a square mesh 2D moves this, over 1D.",
        sp.Eq(sp.Symbol(r"T_{\text{2D}} / T_{\text{1D}}"), square),
        "Without the collectives over E, which are the 1 in it, 2D wins above the printed number of chips.",
        sp.Eq(symbol("printed_break_even"), sp.solve(sp.Eq(sp.limit(square * E, E, 0) / E, 1), N)[0]),
        "With them and the best mesh, the two criteria agree at one shape of model only.",
        sp.Eq(F, same),
    )


@derivation(proves=equations.break_even_of_x)
def break_even_exactly():
    """When 2D beats 1D if the factor (K - 1)/K is kept."""
    one = equations.ws1d_volume(MODEL, LINE, T, EXACT)
    two = equations.ws2d_volume(MODEL, FLAT, T, EXACT)
    chips = sp.solve(sp.Eq(sp.cancel((one - two) / (X - 1) * X * N), 0), N)[0]
    return in_steps(
        "1D moves a little less than the whole width.",
        sp.Eq(symbol("ws1d_volume"), sp.factor(one)),
        "2D with X chips along the first axis moves this.",
        sp.Eq(symbol("ws2d_volume"), sp.factor(two)),
        "At X = 1 it is 1D.",
        sp.Eq(symbol("ws2d_volume"), sp.factor(two.subs(X, 1))),
        "So the difference has a factor X - 1.",
        sp.Eq(symbol("ws1d_volume") - symbol("ws2d_volume"), sp.factor(one - two)),
        "The other factor changes sign here: the smallest whole X, 2, gains from 2F/E chips on.",
        sp.Eq(symbol("break_even_of_x"), chips),
    )


@derivation()
def what_the_factor_changes():
    """What (K - 1)/K takes off each layout: a constant, which moves neither optimum nor switch."""
    flat = equations.ws2d_volume(MODEL, FLAT, T) - equations.ws2d_volume(MODEL, FLAT, T, EXACT)
    whole = MESH.replace(x=N, y=sp.Integer(1), z=sp.Integer(1))
    gathered = sum(_gathered(whole, a, +1 if a is PRINTED else -1) for a in (PRINTED, EXACT))
    line = equations.ws1d_volume(MODEL, LINE, T) - equations.ws1d_volume(MODEL, LINE, T, EXACT)
    left = sp.simplify(equations.gathered_activation_volume(MODEL, whole, T, N, EXACT))
    taken = sp.Symbol(r"v - v_{\text{exact}}")
    return in_steps(
        "From 2D it takes this. There is no X in it, so the best X stays.",
        sp.Eq(taken, sp.factor(sp.simplify(flat))),
        "From gathering over N chips it takes this. There is no N in it, so the best N stays, and so do "
        "the switches from one gathering to another.",
        sp.Eq(taken, sp.factor(sp.simplify(gathered))),
        "The two constants are equal at BL = E, which is where 2D hands over to X: that switch stays as well.",
        sp.Eq(sp.factor(flat.subs(T, E)), sp.factor(gathered.subs(T, E)), evaluate=False),
        "From 1D it takes this, which differs from what it takes from 2D: their break-even moves.",
        sp.Eq(taken, sp.factor(sp.simplify(line))),
        "With the factor, gathering over all chips leaves no activations to move, as the text says.",
        sp.Eq(symbol("gathered_activation_volume"), left, evaluate=False),
    )


def _gathered(mesh, assumptions, sign):
    activations = equations.gathered_activation_volume(MODEL, mesh, T, G, assumptions)
    return sign * (activations + equations.gathered_weight_volume(MODEL, mesh, G, assumptions))


@derivation()
def cache_over_chips():
    """What cutting the cache of one shared head over the batch saves (section 3.3)."""
    chips, each, context = whole("chips"), sp.Symbol("b", positive=True, integer=True), symbol("context")
    held = [
        f(SHARED, chips, chips * each, context)
        for f in (equations.cache_over_heads, equations.cache_over_batch)
    ]
    return in_steps(
        "One head cannot be cut: every chip keeps the cache of all b n sequences.",
        sp.Eq(symbol("cache_over_heads"), held[0]),
        "Cut over the batch, a chip keeps that of its own.",
        sp.Eq(symbol("cache_over_batch"), held[1]),
        "The saving is the number of chips.",
        sp.Eq(symbol("cache_over_heads") / symbol("cache_over_batch"), sp.simplify(held[0] / held[1])),
    )


@derivation()
def all_to_all_pays():
    """When the exchanges for attention cut over the batch cost less than they save (section 3.3)."""
    batch, seen = symbol("batch"), symbol("seen")
    layer = batch * seen * equations.cache_of_token(SHARED) / SHARED.layers
    saved = (layer - layer / N) / CHIP.memory_bandwidth
    spent = equations.batch_attention_volume(SHARED, LINE, batch, EXACT) * ACT / W
    prefill = equations.batch_attention_volume(SHARED, LINE, batch * seen, EXACT) * ACT / W
    ratio = sp.simplify(spent / saved)
    over = sp.Symbol(r"T_{\text{spent}} / T_{\text{saved}}")
    return in_steps(
        "Generating, a sequence has one query: this is spent on two exchanges in a layer.",
        sp.Eq(sp.Symbol(r"T_{\text{spent}}"), sp.factor(spent)),
        "And this is saved, since a chip reads one part in n of the cache.",
        sp.Eq(sp.Symbol(r"T_{\text{saved}}"), sp.factor(saved)),
        "The batch cancels.",
        sp.Eq(over, ratio),
        "Processing a prompt, every token of it has a query, and what is spent over what is saved does not fall "
        "with its length.",
        sp.Eq(over, sp.simplify(prefill / saved)),
        "So generation gains from a few tokens of context on, and a prompt gains only if this is below one.",
        sp.Eq(seen, sp.solve(sp.Eq(ratio, 1), seen)[0]),
    )


@derivation()
def cost_identity():
    """Why cost and utilisation are one number."""
    chips, n_params, tokens, time = (symbol(n) for n in ("chips", "n_params", "tokens", "time"))
    paid = equations.cost(chips, tokens, time)
    used = equations.mfu(CHIP, chips, n_params, tokens, time, symbolic(Assumptions, "pope2022"))
    return in_steps(
        "A token costs its share of chips and time.",
        sp.Eq(symbol("cost"), paid),
        "Utilisation is what that time was used for.",
        sp.Eq(symbol("mfu"), used),
        "Their product with the peak is the arithmetic of one token: neither chips nor time is left.",
        sp.Eq(symbol("cost") * symbol("mfu") * CHIP.flops, sp.simplify(paid * used * CHIP.flops)),
    )
