"""Pope et al. 2022: what else follows from its volumes: the printed criterion, the factor (K - 1)/K, the cache."""

from functools import partial

import sympy as sp

from inferlib.equation import derivation, in_steps, symbolic
from inferlib.papers.pope2022 import EXACT, Assumptions, equations
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
