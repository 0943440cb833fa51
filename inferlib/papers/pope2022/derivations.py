"""Pope et al. 2022, appendix A, derived from the volumes alone, with and without the factor (K - 1)/K."""

from functools import partial

import sympy as sp

from inferlib.equation import Step, derivation, symbolic, symbols_of
from inferlib.papers.pope2022.equations import costs, layouts
from inferlib.papers.pope2022.records import EXACT, PRINTED, Assumptions, Chip, Mesh, Model

derivation = partial(derivation, "pope2022")

_NAMES = symbols_of("pope2022")


def _symbol(name):
    return sp.Symbol(_NAMES[name], positive=True)


def _whole(name):
    return sp.Symbol(_NAMES[name], positive=True, integer=True)


MODEL, CHIP, MESH = (symbolic(kind, "pope2022") for kind in (Model, Chip, Mesh))
E, F, W = MODEL.d_model, MODEL.d_ff, CHIP.network_bandwidth
ACT, WEIGHT = MODEL.activation_bytes, MODEL.weight_bytes
X, Y, Z = MESH.x, MESH.y, MESH.z
T, N, G, N1, N2 = (_symbol(name) for name in ("tokens", "chips", "gathered", "few", "many"))
YZ = sp.Symbol("YZ", positive=True)

# Two axes are enough for 2D: all that is not X is one.
FLAT = MESH.replace(y=N / X, z=sp.Integer(1))
SHARED = MODEL.replace(kv_heads=sp.Integer(1))
LINE = MESH.replace(x=sp.Integer(1), y=N, z=sp.Integer(1))


def same_bytes(expression):
    """An expression with weights and activations of equally many bytes, as the paper's formulas have them."""
    return sp.simplify(expression.subs(WEIGHT, ACT))


@derivation(proves=layouts.all_gather_time)
def collectives():
    """What an exchange among K chips costs, and where the factor (K - 1)/K comes from."""
    size, k = _symbol("size"), _whole("k")
    step = size / k / W
    ring = sp.simplify(sp.summation(step, (sp.Symbol("i"), 1, k - 1)))
    name = _symbol("all_gather_time")
    return [
        Step("In a ring every chip passes one part in K to its neighbour.", sp.Eq(sp.Symbol("T_1"), step)),
        Step("After K - 1 such steps all parts have been everywhere.", sp.Eq(name, ring)),
        Step(
            "No network is quicker: this is the time to receive what a chip does not have yet.",
            sp.Eq(name, sp.simplify((size - size / k) / W)),
        ),
        Step(
            "A reduce-scatter runs the same ring backwards, so that an all-reduce takes twice as long.",
            sp.Eq(_symbol("all_reduce_time"), sp.simplify(2 * ring)),
        ),
        Step("Among many chips the factor is nearly one, and the paper's formulas leave it out.",
             sp.Eq(name, sp.limit(ring, k, sp.oo))),
    ]  # fmt: skip


@derivation(proves=layouts.best_ws2d_time)
def optimal_x():
    """The best X, and the time that 2D weight-stationary then needs."""
    time = layouts.ws2d_time(MODEL, CHIP, FLAT, T)
    slope = sp.diff(time, X)
    best = sp.solve(slope, X)[0]
    least = sp.simplify(time.subs(X, best))
    return [
        Step(
            "Tensors as wide as the model are gathered over Y and Z, those between the matrices over X.",
            sp.Eq(_symbol("ws2d_time"), layouts.ws2d_time(MODEL, CHIP, MESH, T)),
        ),
        Step(
            "All chips together are n, so one number is free.", sp.Eq(_symbol("ws2d_time"), sp.expand(time))
        ),
        Step(
            "More chips along X shrink the first part and grow the second.",
            sp.Eq(sp.Derivative(_symbol("ws2d_time"), X), sp.factor(slope)),
        ),
        Step("The two balance at one X.", sp.Eq(_symbol("best_x"), best)),
        Step("The rest of the chips cut the other side.", sp.Eq(_symbol("best_yz"), sp.simplify(N / best))),
        Step("With both, the least time.", sp.Eq(_symbol("best_ws2d_time"), least)),
    ]


@derivation()
def four_times():
    """The same for F = 4E, as the paper prints it."""
    steps = {name: optimal_x()[i].equation.rhs for name, i in (("best_x", 3), ("best_yz", 4))}
    four = {name: sp.simplify(value.subs(F, 4 * E)) for name, value in steps.items()}
    least = sp.simplify(optimal_x().result.subs(F, 4 * E))
    return [
        Step("The block is four times as wide as the model.", sp.Eq(F, 4 * E)),
        Step("X is half the root of the chips.", sp.Eq(_symbol("best_x"), four["best_x"])),
        Step("Y and Z together are twice that root.", sp.Eq(_symbol("best_yz"), four["best_yz"])),
        Step("The time falls with the root of the chips.", sp.Eq(_symbol("best_ws2d_time"), least)),
    ]


@derivation(proves=layouts.best_gather_time)
def optimal_gather():
    """Over how many chips to gather the weights."""
    time = layouts.gathered_time(MODEL, CHIP, MESH, T, G).subs(X * Y * Z, N)
    best = sp.solve(sp.diff(time, G), G)[0]
    return [
        Step(
            "Gathering over N chips brings weights in and leaves fewer activations to move.",
            sp.Eq(_symbol("gathered_time"), sp.expand(time)),
        ),
        Step(
            "Weights cost more and activations less with every chip.",
            sp.Eq(sp.Derivative(_symbol("gathered_time"), G), sp.expand(sp.diff(time, G))),
        ),
        Step("The slope vanishes where both cost the same.", sp.Eq(_symbol("best_gather"), best)),
        Step(
            "With both, the least time: it grows with the root of the tokens.",
            sp.Eq(_symbol("best_gather_time"), sp.simplify(time.subs(G, best))),
        ),
    ]


@derivation(proves=layouts.switch_to_x)
def switch_from_2d():
    """Where gathering weights over X begins to pay."""
    still = layouts.ws2d_time(MODEL, CHIP, MESH, T)
    gathered = layouts.gathered_time(MODEL, CHIP, MESH, T, X)
    saved = sp.simplify(still - layouts.gathered_activation_volume(MODEL, MESH, T, X) * ACT / W)
    spent = sp.simplify(gathered - layouts.gathered_activation_volume(MODEL, MESH, T, X) * ACT / W)
    point = sp.solve(sp.Eq(still, gathered), T)[0]
    return [
        Step(
            "Gathered over X, the tensors between the matrices stay where they are: this much is saved.",
            sp.Eq(sp.Symbol(r"T_{\text{saved}}"), saved),
        ),
        Step(
            "The weights of the X axis come in: this much is spent.",
            sp.Eq(sp.Symbol(r"T_{\text{spent}}"), spent),
        ),
        Step("Only what is saved grows with the tokens.", sp.Eq(saved, spent)),
        Step(
            "Everything but the widths cancels: with equal formats the switch is at E tokens, for every mesh.",
            sp.Eq(_symbol("switch_to_x"), point),
        ),
    ]


@derivation(proves=layouts.switch_of_gathers)
def switch_between_gathers():
    """Where gathering over more chips begins to pay."""
    few, many = (layouts.gathered_time(MODEL, CHIP, MESH, T, g) for g in (N1, N2))
    point = sp.simplify(sp.solve(sp.Eq(few, many), T)[0])
    return [
        Step("Gathering over fewer chips costs this.", sp.Eq(_symbol("gathered_time"), sp.expand(few))),
        Step("Gathering over more costs this.", sp.Eq(_symbol("gathered_time"), sp.expand(many))),
        Step("They are equal at this number of tokens.", sp.Eq(_symbol("switch_of_gathers"), point)),
    ]


@derivation(proves=layouts.break_even)
def break_even_by_costs():
    """When 2D beats 1D, by the costs that the paper prints."""
    one, two = layouts.ws1d_time(MODEL, CHIP, MESH, T), optimal_x().result
    chips = sp.solve(sp.Eq(one, two), N)[0]
    return [
        Step("1D moves the whole width, whatever the chips.", sp.Eq(_symbol("ws1d_time"), one)),
        Step("2D at its best X moves this.", sp.Eq(_symbol("best_ws2d_time"), two)),
        Step("They are equal at this number of chips.", sp.Eq(_symbol("break_even"), chips)),
    ]


@derivation()
def printed_criterion():
    """Where the printed criterion agrees with the costs."""
    printed = layouts.printed_break_even(MODEL)
    ours = layouts.break_even(MODEL)
    same = sp.solve(sp.Eq(printed, ours), F)[0]
    square = layouts.ws2d_time(MODEL, CHIP, FLAT, T).subs(X, sp.sqrt(N)) / layouts.ws1d_time(
        MODEL, CHIP, MESH, T
    )
    square = sp.simplify(square)
    return [
        Step(
            "The paper says that 2D wins when the root of the chips exceeds F/E, that is above this.",
            sp.Eq(_symbol("printed_break_even"), printed),
        ),
        Step("Its own costs say this.", sp.Eq(_symbol("break_even"), ours)),
        Step(
            "On a square mesh 2D moves this, over 1D.",
            sp.Eq(sp.Symbol(r"T_{\text{2D}} / T_{\text{1D}}"), square),
        ),
        Step(
            "Without the collectives over E, which are the 1 in it, 2D wins above the printed number of chips.",
            sp.Eq(_symbol("printed_break_even"), sp.solve(sp.Eq(sp.limit(square * E, E, 0) / E, 1), N)[0]),
        ),
        Step(
            "With them and the best mesh, the two criteria agree at one shape of model only.", sp.Eq(F, same)
        ),
    ]


@derivation(proves=layouts.break_even_of_x)
def break_even_exactly():
    """When 2D beats 1D if the factor (K - 1)/K is kept."""
    one = layouts.ws1d_volume(MODEL, LINE, T, EXACT)
    two = layouts.ws2d_volume(MODEL, FLAT, T, EXACT)
    chips = sp.solve(sp.Eq(sp.cancel((one - two) / (X - 1) * X * N), 0), N)[0]
    return [
        Step("1D moves a little less than the whole width.", sp.Eq(_symbol("ws1d_volume"), sp.factor(one))),
        Step(
            "2D with X chips along the first axis moves this.", sp.Eq(_symbol("ws2d_volume"), sp.factor(two))
        ),
        Step(
            "At X = 1 it is 1D.",
            sp.Eq(_symbol("ws2d_volume"), sp.factor(two.subs(X, 1))),
        ),
        Step(
            "So the difference has a factor X - 1.",
            sp.Eq(_symbol("ws1d_volume") - _symbol("ws2d_volume"), sp.factor(one - two)),
        ),
        Step(
            "The other factor changes sign here: the smallest whole X, 2, gains from 2F/E chips on.",
            sp.Eq(_symbol("break_even_of_x"), chips),
        ),
    ]


@derivation()
def what_the_factor_changes():
    """What (K - 1)/K takes off each layout: a constant, which moves neither optimum nor switch."""
    flat = layouts.ws2d_volume(MODEL, FLAT, T) - layouts.ws2d_volume(MODEL, FLAT, T, EXACT)
    whole = MESH.replace(x=N, y=sp.Integer(1), z=sp.Integer(1))
    gathered = sum(_gathered(whole, a, +1 if a is PRINTED else -1) for a in (PRINTED, EXACT))
    line = layouts.ws1d_volume(MODEL, LINE, T) - layouts.ws1d_volume(MODEL, LINE, T, EXACT)
    left = sp.simplify(layouts.gathered_activation_volume(MODEL, whole, T, N, EXACT))
    taken = sp.Symbol(r"v - v_{\text{exact}}")
    return [
        Step(
            "From 2D it takes this. There is no X in it, so the best X stays.",
            sp.Eq(taken, sp.factor(sp.simplify(flat))),
        ),
        Step(
            "From gathering over N chips it takes this. There is no N in it, so the best N stays, and so do "
            "the switches from one gathering to another.",
            sp.Eq(taken, sp.factor(sp.simplify(gathered))),
        ),
        Step(
            "The two constants are equal at BL = E, which is where 2D hands over to X: that switch stays as well.",
            sp.Eq(sp.factor(flat.subs(T, E)), sp.factor(gathered.subs(T, E)), evaluate=False),
        ),
        Step(
            "From 1D it takes this, which differs from what it takes from 2D: their break-even moves.",
            sp.Eq(taken, sp.factor(sp.simplify(line))),
        ),
        Step(
            "With the factor, gathering over all chips leaves no activations to move, as the text says.",
            sp.Eq(_symbol("gathered_activation_volume"), left, evaluate=False),
        ),
    ]


def _gathered(mesh, assumptions, sign):
    activations = layouts.gathered_activation_volume(MODEL, mesh, T, G, assumptions)
    return sign * (activations + layouts.gathered_weight_volume(MODEL, mesh, G, assumptions))


@derivation()
def cache_over_chips():
    """What cutting the cache of one shared head over the batch saves (section 3.3)."""
    chips, each, context = _whole("chips"), sp.Symbol("b", positive=True, integer=True), _symbol("context")
    held = [f(SHARED, chips, chips * each, context) for f in (costs.cache_over_heads, costs.cache_over_batch)]
    return [
        Step(
            "One head cannot be cut: every chip keeps the cache of all b n sequences.",
            sp.Eq(_symbol("cache_over_heads"), held[0]),
        ),
        Step(
            "Cut over the batch, a chip keeps that of its own.", sp.Eq(_symbol("cache_over_batch"), held[1])
        ),
        Step(
            "The saving is the number of chips.",
            sp.Eq(_symbol("cache_over_heads") / _symbol("cache_over_batch"), sp.simplify(held[0] / held[1])),
        ),
    ]


@derivation()
def all_to_all_pays():
    """When the exchanges for attention cut over the batch cost less than they save (section 3.3)."""
    batch, seen = _symbol("batch"), _symbol("seen")
    layer = batch * seen * costs.cache_of_token(SHARED) / SHARED.layers
    saved = (layer - layer / N) / CHIP.memory_bandwidth
    spent = layouts.batch_attention_volume(SHARED, LINE, batch, EXACT) * ACT / W
    prefill = layouts.batch_attention_volume(SHARED, LINE, batch * seen, EXACT) * ACT / W
    ratio = sp.simplify(spent / saved)
    over = sp.Symbol(r"T_{\text{spent}} / T_{\text{saved}}")
    return [
        Step(
            "Generating, a sequence has one query: this is spent on two exchanges in a layer.",
            sp.Eq(sp.Symbol(r"T_{\text{spent}}"), sp.factor(spent)),
        ),
        Step(
            "And this is saved, since a chip reads one part in n of the cache.",
            sp.Eq(sp.Symbol(r"T_{\text{saved}}"), sp.factor(saved)),
        ),
        Step("The batch cancels.", sp.Eq(over, ratio)),
        Step(
            "Processing a prompt, every token of it has a query, and what is spent over what is saved does not fall "
            "with its length.",
            sp.Eq(over, sp.simplify(prefill / saved)),
        ),
        Step(
            "So generation gains from a few tokens of context on, and a prompt gains only if this is below one.",
            sp.Eq(seen, sp.solve(sp.Eq(ratio, 1), seen)[0]),
        ),
    ]


@derivation()
def cost_identity():
    """Why cost and utilisation are one number."""
    chips, n_params, tokens, time = (_symbol(n) for n in ("chips", "n_params", "tokens", "time"))
    paid = costs.cost(chips, tokens, time)
    used = costs.mfu(CHIP, chips, n_params, tokens, time, symbolic(Assumptions, "pope2022"))
    return [
        Step("A token costs its share of chips and time.", sp.Eq(_symbol("cost"), paid)),
        Step("Utilisation is what that time was used for.", sp.Eq(_symbol("mfu"), used)),
        Step(
            "Their product with the peak is the arithmetic of one token: neither chips nor time is left.",
            sp.Eq(_symbol("cost") * _symbol("mfu") * CHIP.flops, sp.simplify(paid * used * CHIP.flops)),
        ),
    ]
