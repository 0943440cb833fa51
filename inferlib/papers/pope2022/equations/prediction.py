"""Pope et al. 2022 as a prediction: the bare roofline bound, and a model with two fitted constants.

The paper prints costs and measurements but no formula for the time of a step. The bound takes every peak
as reached and lets the slowest resource count. The two-constant model is ours: multiplies reach a share of
the peak, every layer costs a fixed time, and communication waits for nothing and hides behind nothing, one
axis of the torus at a time. That form was chosen after seeing which one fits; only its constants are fitted.
"""

from dataclasses import dataclass

from inferlib.equation import Record, quantity
from inferlib.ops import maximum, minimum
from inferlib.papers.pope2022.equations.costs import (
    attention_flops,
    compute_time,
    equation,
    matmul_flops,
    memory_time,
    weights_on_chip,
)
from inferlib.papers.pope2022.equations.layouts import TIMES, gathered_weights, inner_width, outer_width
from inferlib.papers.pope2022.records import CORRECTED, PRINTED, Assumptions, Chip, Mesh, Model


@dataclass(frozen=True)
class Constants(Record):
    """What data sheets do not say; fitted by :func:`book.pope2022.evidence.fitted`."""

    efficiency: float = quantity("1", "share of the peak that matrix multiplies reach", default=1, maximum=1)
    overhead: float = quantity("s", "fixed time of a layer", default=0, zero=True)


IDEAL = Constants()


# --- The terms -------------------------------------------------------------------------------------------


@equation(unit="s", tokens="1")
def multiply_time(
    model: Model, chip: Chip, mesh: Mesh, constants: Constants, tokens, assumptions: Assumptions = PRINTED
):
    """Seconds of all multiplies with weights: arithmetic, or reading the weights where that takes longer."""
    arithmetic = (
        compute_time(chip, mesh.chips, matmul_flops(model, tokens, assumptions)) / constants.efficiency
    )
    return maximum(arithmetic, memory_time(chip, weights_on_chip(model, mesh.chips)))


@equation(unit="s", tokens="1", seen="1", held="B")
def attention_time(
    model: Model,
    chip: Chip,
    mesh: Mesh,
    constants: Constants,
    tokens,
    seen,
    held,
    assumptions: Assumptions = PRINTED,
):
    """Seconds of attention proper: arithmetic, or reading the cache where that takes longer."""
    arithmetic = (
        compute_time(chip, mesh.chips, attention_flops(model, tokens, seen, assumptions))
        / constants.efficiency
    )
    return maximum(arithmetic, memory_time(chip, held))


@equation(unit="s", size="B", k="1 > 0", share="1 > 0")
def axis_time(chip: Chip, size, k, share):
    """Seconds of an all-gather along one axis of the torus, which has a share of the chip's links."""
    return size * (k - 1) / k / (share * chip.network_bandwidth)


@equation(unit="s", tokens="1")
def ws2d_axis_time(model: Model, chip: Chip, mesh: Mesh, tokens):
    """Seconds of communication of one layer, 2D weight-stationary, one axis of the torus after the other.

    All that a layer moves, the factor (K - 1)/K kept. Tensors as wide as the model travel along Z, then Y;
    those between the matrices along X.
    """
    outer = tokens * outer_width(model) / mesh.x * model.activation_bytes
    inner = tokens * inner_width(model, CORRECTED) / (mesh.y * mesh.z) * model.activation_bytes
    return (
        axis_time(chip, outer, mesh.z, mesh.z_share)
        + axis_time(chip, outer / mesh.z, mesh.y, mesh.y_share)
        + axis_time(chip, inner, mesh.x, mesh.x_share)
    )


@equation(unit="s", tokens="1")
def ws1d_axis_time(model: Model, chip: Chip, mesh: Mesh, tokens):
    """Seconds of communication of one layer, 1D weight-stationary, along Z, then Y, then X."""
    outer = tokens * outer_width(model) * model.activation_bytes
    return (
        axis_time(chip, outer, mesh.z, mesh.z_share)
        + axis_time(chip, outer / mesh.z, mesh.y, mesh.y_share)
        + axis_time(chip, outer / (mesh.z * mesh.y), mesh.x, mesh.x_share)
    )


# --- The two-constant model ------------------------------------------------------------------------------


@equation(unit="s", tokens="1", seen="1", held="B")
def ws2d_step(
    model: Model,
    chip: Chip,
    mesh: Mesh,
    constants: Constants,
    tokens,
    seen,
    held,
    assumptions: Assumptions = PRINTED,
):
    """Seconds of one forward pass, 2D weight-stationary, by the two-constant model.

    Not in the paper.
    """
    each_layer = ws2d_axis_time(model, chip, mesh, tokens) + constants.overhead
    multiply = multiply_time(model, chip, mesh, constants, tokens, assumptions)
    attention = attention_time(model, chip, mesh, constants, tokens, seen, held, assumptions)
    return multiply + attention + model.layers * each_layer


@equation(unit="s", tokens="1", seen="1", held="B")
def ws1d_step(
    model: Model,
    chip: Chip,
    mesh: Mesh,
    constants: Constants,
    tokens,
    seen,
    held,
    assumptions: Assumptions = PRINTED,
):
    """The same for 1D weight-stationary."""
    each_layer = ws1d_axis_time(model, chip, mesh, tokens) + constants.overhead
    multiply = multiply_time(model, chip, mesh, constants, tokens, assumptions)
    attention = attention_time(model, chip, mesh, constants, tokens, seen, held, assumptions)
    return multiply + attention + model.layers * each_layer


@equation(unit="s", gathered="1 > 0", share="1 > 0")
def gather_time(model: Model, chip: Chip, mesh: Mesh, gathered, share):
    """Seconds to bring the weights of all layers, cut over all chips, to each of those that gather them."""
    layer = gathered_weights(model, CORRECTED) * model.weight_bytes
    return model.layers * axis_time(chip, layer * gathered / mesh.chips, gathered, share)


@equation(unit="s", tokens="1", seen="1")
def wgx_step(
    model: Model,
    chip: Chip,
    mesh: Mesh,
    constants: Constants,
    tokens,
    seen,
    assumptions: Assumptions = PRINTED,
):
    """Seconds of one forward pass with weights gathered over X, by the two-constant model.

    Weights are known long before they are needed, so their gathering hides behind arithmetic or arithmetic behind
    it. The activations that still travel are exposed, as in 2D. Not in the paper.
    """
    return _gathered_step(model, chip, mesh, constants, tokens, seen, assumptions, "x")


@equation(unit="s", tokens="1", seen="1")
def wgxy_step(
    model: Model,
    chip: Chip,
    mesh: Mesh,
    constants: Constants,
    tokens,
    seen,
    assumptions: Assumptions = PRINTED,
):
    """The same with weights gathered over X and Y."""
    return _gathered_step(model, chip, mesh, constants, tokens, seen, assumptions, "xy")


@equation(unit="s", tokens="1", seen="1")
def wgxyz_step(
    model: Model,
    chip: Chip,
    mesh: Mesh,
    constants: Constants,
    tokens,
    seen,
    assumptions: Assumptions = PRINTED,
):
    """The same with all weights gathered on every chip: no activation travels."""
    return _gathered_step(model, chip, mesh, constants, tokens, seen, assumptions, "xyz")


def _gathered_step(model, chip, mesh, constants, tokens, seen, assumptions, over):
    """A forward pass with weights gathered over some axes, all their links at once; the other axes in turn."""
    gathered, share, moved = 1, 0, 0
    for axis in over:
        gathered, share = gathered * getattr(mesh, axis), share + getattr(mesh, f"{axis}_share")
    left = tokens * outer_width(model) / gathered * model.activation_bytes
    for axis in "zyx".translate({ord(axis): None for axis in over}):
        moved = moved + axis_time(chip, left, getattr(mesh, axis), getattr(mesh, f"{axis}_share"))
        left = left / getattr(mesh, axis)
    flop = matmul_flops(model, tokens, assumptions) + attention_flops(model, tokens, seen, assumptions)
    arithmetic = compute_time(chip, mesh.chips, flop) / constants.efficiency
    gather = gather_time(model, chip, mesh, gathered, minimum(share, 1))
    return maximum(arithmetic, gather) + model.layers * (moved + constants.overhead)


# --- The bound -------------------------------------------------------------------------------------------


def bound(model, chip, mesh, layout, tokens, seen, held, assumptions=CORRECTED):
    """What each resource needs at its peak for one forward pass.

    Parameters
    ----------
    model : Model
    chip : Chip
    mesh : Mesh
    layout : str
        One of :data:`inferlib.papers.pope2022.equations.layouts.TIMES`.
    tokens, seen : float
        Tokens of the whole batch in this pass, and the keys that each of them sees.
    held : float
        Bytes of cache that one chip reads.
    assumptions : Assumptions
        What is counted as moved.

    Returns
    -------
    dict
        Seconds by resource: ``"arithmetic"``, ``"weights"``, ``"cache"`` (the last two share the memory) and
        ``"network"``.
    """
    flop = matmul_flops(model, tokens, PRINTED) + attention_flops(model, tokens, seen, PRINTED)
    return {
        "arithmetic": compute_time(chip, mesh.chips, flop),
        "weights": memory_time(chip, weights_on_chip(model, mesh.chips)),
        "cache": memory_time(chip, held),
        "network": model.layers * TIMES[layout](model, chip, mesh, tokens, assumptions),
    }
