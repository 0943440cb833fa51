"""Pope et al. 2022, appendix A: the best cuts and the switch points, derived from the volumes alone."""

from inferlib.equation import in_notation, let, solved, symbolic
from inferlib.optional_imports import sympy as sp
from inferlib.papers.pope2022 import equations
from inferlib.papers.pope2022.records import Mesh, Model
from inferlib.system import Accelerator

derivation, symbol, equals = in_notation("pope2022")


MODEL, CHIP, MESH = (symbolic(kind, "pope2022") for kind in (Model, Accelerator, Mesh))
E = MODEL.d_model
F = MODEL.d_ff
W = CHIP.scale_up_bandwidth
ACT = MODEL.activation_bytes
X = MESH.x
Y = MESH.y
Z = MESH.z
T, N, G = symbol("tokens chips gathered")

# Two axes are enough for 2D: everything but X is one axis.
FLAT = MESH.replace(y=N / X, z=sp.Integer(1))


@derivation(proves=equations.all_gather_time)
def collectives():
    """What an exchange among K chips costs, and where the factor (K - 1)/K comes from."""
    size, k = symbol("size k")
    step = size / k / W
    ring = sp.simplify(sp.summation(step, (sp.Symbol("i"), 1, k - 1)))
    return (
        "In a ring every chip passes one part in K to its neighbour.",
        let("T_1", step),
        "After K - 1 such steps all parts have been everywhere.",
        equals("all_gather_time", ring),
        "No network is quicker: this is the time to receive what a chip does not have yet.",
        equals("all_gather_time", sp.simplify((size - size / k) / W)),
        "A reduce-scatter runs the same ring backwards, so that an all-reduce takes twice as long.",
        equals("all_reduce_time", sp.simplify(2 * ring)),
        "Among many chips the factor is nearly one, and the paper's formulas leave it out.",
        equals("all_gather_time", sp.limit(ring, k, sp.oo)),
    )


@derivation(proves=equations.best_ws2d_time)
def optimal_x():
    """The best X, and the time that 2D weight-stationary then needs."""
    time = equations.ws2d_time(MODEL, CHIP, FLAT, T)
    slope = sp.diff(time, X)
    best = sp.solve(slope, X)[0]
    least = sp.simplify(time.subs(X, best))
    return (
        "Tensors as wide as the model are gathered over Y and Z, those between the matrices over X.",
        equals("ws2d_time", equations.ws2d_time(MODEL, CHIP, MESH, T)),
        "All chips together are n, so one number is free.",
        equals("ws2d_time", sp.expand(time)),
        "More chips along X shrink the first part and grow the second.",
        sp.Eq(sp.Derivative(symbol("ws2d_time"), X), sp.factor(slope)),
        "The two balance at one X.",
        equals("best_x", best),
        "The rest of the chips cut the other side.",
        equals("best_yz", sp.simplify(N / best)),
        "With both, the least time.",
        equals("best_ws2d_time", least),
    )


@derivation()
def four_times():
    """The same for F = 4E, as the paper prints it."""
    x, yz, least = (sp.simplify(step.equation.rhs.subs(F, 4 * E)) for step in optimal_x()[3:])
    return (
        "The block is four times as wide as the model.",
        sp.Eq(F, 4 * E),
        "X is half the root of the chips.",
        equals("best_x", x),
        "Y and Z together are twice that root.",
        equals("best_yz", yz),
        "The time falls with the root of the chips.",
        equals("best_ws2d_time", least),
    )


@derivation(proves=equations.best_gather_time)
def optimal_gather():
    """Over how many chips to gather the weights."""
    time = equations.gathered_time(MODEL, CHIP, MESH, T, G).subs(X * Y * Z, N)
    best = sp.solve(sp.diff(time, G), G)[0]
    return (
        "Gathering over N chips brings weights in and leaves fewer activations to move.",
        equals("gathered_time", sp.expand(time)),
        "Weights cost more and activations less with every chip.",
        sp.Eq(sp.Derivative(symbol("gathered_time"), G), sp.expand(sp.diff(time, G))),
        "The slope vanishes where both cost the same.",
        equals("best_gather", best),
        "With both, the least time: it grows with the root of the tokens.",
        equals("best_gather_time", sp.simplify(time.subs(G, best))),
    )


@derivation(proves=equations.switch_to_x)
def switch_from_2d():
    """Where gathering weights over X begins to pay."""
    still = equations.ws2d_time(MODEL, CHIP, MESH, T)
    gathered = equations.gathered_time(MODEL, CHIP, MESH, T, X)
    both = equations.gathered_activation_volume(MODEL, MESH, T, X) * ACT / W
    saved, spent = (sp.simplify(time - both) for time in (still, gathered))
    point = solved(still, gathered, T)
    return (
        "Gathered over X, the tensors between the matrices stay where they are: this much is saved.",
        let(r"T_{\text{saved}}", saved),
        "The weights of the X axis come in: this much is spent.",
        let(r"T_{\text{spent}}", spent),
        "Only the saving grows with the tokens.",
        sp.Eq(saved, spent),
        "Everything but the widths cancels: with equal formats the switch is at E tokens, for every mesh.",
        equals("switch_to_x", point),
    )


@derivation(proves=equations.break_even)
def break_even_by_costs():
    """When 2D beats 1D, by the costs that the paper prints."""
    one = equations.ws1d_time(MODEL, CHIP, MESH, T)
    two = optimal_x().result
    chips = solved(one, two, N)
    return (
        "1D moves the whole width, whatever the chips.",
        equals("ws1d_time", one),
        "2D at its best X moves this.",
        equals("best_ws2d_time", two),
        "They are equal at this number of chips.",
        equals("break_even", chips),
    )
