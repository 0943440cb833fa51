"""Pope et al. 2022: a time of a step with two constants, which the paper's measurements determine.

The paper has no formula for the time of a step. This one is ours: its form was chosen after seeing which one fits, and
:mod:`book.papers.pope2022.evidence` fits its constants to appendix D.
"""

from functools import partial

import inferlib.equation
from inferlib.equation import Record, quantity
from inferlib.ops import maximum, minimum
from inferlib.papers.pope2022.equations import (
    LAYOUTS,
    attention_flops,
    compute_time,
    gathered_weights,
    inner_width,
    matmul_flops,
    memory_time,
    outer_width,
    weights_on_chip,
)
from inferlib.papers.pope2022.records import CORRECTED, PRINTED, Mesh, Model
from inferlib.system import Accelerator

equation = partial(inferlib.equation.equation, "pope2022")


class Constants(Record):
    """Fitted efficiencies and overheads of the two-constant model, which data sheets do not state."""

    efficiency: float = quantity("share of the peak that matrix multiplies reach", default=1, maximum=1)
    overhead: float = quantity("fixed time of a layer", "s", default=0)


def _arithmetic(chip, mesh, constants, flop):
    """Seconds of FLOP on all chips, at the share of the peak that they reach."""
    return compute_time(chip, mesh.chips, flop) / constants.efficiency


@equation(unit="s")
def multiply_time(
    model: Model, chip: Accelerator, mesh: Mesh, constants: Constants, tokens, assumptions=PRINTED
):
    """Seconds of all multiplies with weights: arithmetic, or reading the weights where that takes longer."""
    flop = matmul_flops(model, tokens, assumptions)
    return maximum(
        _arithmetic(chip, mesh, constants, flop), memory_time(chip, weights_on_chip(model, mesh.chips))
    )


@equation(unit="s", held="B")
def attention_time(
    model: Model, chip: Accelerator, mesh: Mesh, constants: Constants, tokens, seen, held,
    assumptions=PRINTED,
):  # fmt: skip
    """Seconds of attention proper: arithmetic, or reading the cache where that takes longer."""
    flop = attention_flops(model, tokens, seen, assumptions)
    return maximum(_arithmetic(chip, mesh, constants, flop), memory_time(chip, held))


@equation(unit="s", size="B", k="1 > 0", share="1 > 0")
def axis_time(chip: Accelerator, size, k, share):
    """Seconds of an all-gather along one axis of the torus, which has a share of the chip's links."""
    return size * (k - 1) / k / (share * chip.scale_up_bandwidth)


@equation(unit="s")
def exchange_time(model: Model, chip: Accelerator, mesh: Mesh, tokens, *, layout="WS 2D"):
    """Seconds in which the activations of one layer cross the links, one axis of the torus after the other.

    All that a layer moves, the factor (K - 1)/K kept. Tensors as wide as the model travel along Z, then Y,
    then X, as far as the axis does not cut the batch (gathered weights) or the width (2D, where those
    between the matrices travel along X).
    """
    cut = LAYOUTS[layout] or ("x" if layout == "WS 2D" else "")
    left = tokens * outer_width(model) / mesh.along(cut) * model.activation_bytes
    seconds = 0
    for axis in (axis for axis in "zyx" if axis not in cut):
        seconds = seconds + axis_time(chip, left, mesh.along(axis), mesh.share)
        left = left / mesh.along(axis)
    if layout == "WS 2D":
        inner = tokens * inner_width(model, CORRECTED) / (mesh.y * mesh.z) * model.activation_bytes
        seconds = seconds + axis_time(chip, inner, mesh.x, mesh.share)
    return seconds


@equation(unit="s")
def gather_time(model: Model, chip: Accelerator, mesh: Mesh, *, axes="xyz"):
    """Seconds to gather the weights of all layers over some axes, all their links at once."""
    layer = gathered_weights(model, CORRECTED) * model.weight_bytes
    gathered = mesh.along(axes)
    share = minimum(len(axes) * mesh.share, 1)
    return model.layers * axis_time(chip, layer * gathered / mesh.chips, gathered, share)


@equation(unit="s", held="B")
def step_time(
    model: Model, chip: Accelerator, mesh: Mesh, constants: Constants, tokens, seen, held,
    assumptions=PRINTED, *, layout="WS 2D",
):  # fmt: skip
    """Seconds of one forward pass by the two-constant model, in one of :data:`LAYOUTS`.

    Activations hide behind nothing. Gathered weights are known long before they are needed, so their transfer hides
    behind arithmetic, or arithmetic behind the transfer.
    """
    at = model, chip, mesh, constants, tokens
    exposed = model.layers * (exchange_time(model, chip, mesh, tokens, layout=layout) + constants.overhead)
    if not LAYOUTS[layout]:
        return multiply_time(*at, assumptions) + attention_time(*at, seen, held, assumptions) + exposed
    flop = matmul_flops(model, tokens, assumptions) + attention_flops(model, tokens, seen, assumptions)
    return (
        maximum(
            _arithmetic(chip, mesh, constants, flop), gather_time(model, chip, mesh, axes=LAYOUTS[layout])
        )
        + exposed
    )
