"""Pope et al. 2022, sections 3.1 to 3.3 and appendix A: what each way of cutting a layer moves between chips.

A volume is what one chip sends and receives for one layer, in numbers (elements): of activations and of
weights, which may have different formats. A time is those bytes over the bandwidth of the chip.
"""

from numbers import Real

from inferlib import checks
from inferlib.equation import minimise
from inferlib.ops import sqrt
from inferlib.papers.pope2022.equations.costs import CACHES, equation, layer_parameters, weights_on_chip
from inferlib.papers.pope2022.records import PRINTED, Assumptions, Chip, Mesh, Model

# --- Collectives (appendix A.1) --------------------------------------------------------------------------


@equation(unit="s", size="B", k="1")
def all_gather_time(chip: Chip, size, k, assumptions: Assumptions = PRINTED):
    """Seconds to bring the parts of a tensor from ``k`` chips to each of them.

    Appendix A.1.

    Examples
    --------
    >>> from inferlib.papers.pope2022 import EXACT, load_chip
    >>> round(1e3 * all_gather_time(load_chip(), 270e6, 4, EXACT), 12)
    0.75
    """
    return size * _part_moved(k, assumptions) / chip.network_bandwidth


@equation(unit="s", size="B", k="1")
def all_reduce_time(chip: Chip, size, k, assumptions: Assumptions = PRINTED):
    """Seconds to sum a tensor over ``k`` chips: a reduce-scatter, then an all-gather of the same size."""
    return 2 * all_gather_time(chip, size, k, assumptions)


@equation(unit="s", size="B", k="1")
def all_to_all_time(chip: Chip, size, k, assumptions: Assumptions = PRINTED):
    """Seconds to cut a tensor along another dimension: each chip keeps one part in ``k`` of its ``size``."""
    return size * _part_moved(k, assumptions) / chip.network_bandwidth


def _part_moved(k, assumptions):
    """What of a collective's larger buffer passes through a chip's links."""
    return (k - 1) / k if assumptions.exact_collectives else 1


# --- What crosses the links in each layout ---------------------------------------------------------------


@equation(unit="1")
def outer_width(model: Model):
    """Numbers a token has in the tensors as wide as the model that a layer gathers and scatters.

    A parallel block gathers its input and scatters its output, 2E; a serial one does it twice (section 3.4).
    """
    return (2 if model.parallel else 4) * model.d_model


@equation(unit="1")
def inner_width(model: Model, assumptions: Assumptions = PRINTED):
    """Numbers a token has in the tensors between the matrices of a layer, going in and coming out."""
    if not assumptions.whole_layer:
        return 2 * model.d_ff
    attention = 2 * (model.heads + model.kv_heads) * model.head_dim
    return model.matrices * model.d_ff + attention


@equation(unit="1")
def gathered_weights(model: Model, assumptions: Assumptions = PRINTED):
    """Weights of one layer that a weight-gathered layout brings together: 2EF in the paper's formula."""
    return layer_parameters(model) if assumptions.whole_layer else 2 * model.d_model * model.d_ff


@equation(unit="1", tokens="1")
def ws1d_volume(model: Model, mesh: Mesh, tokens, assumptions: Assumptions = PRINTED):
    """Activations through one chip, 1D weight-stationary: each matrix is cut along its wide side only.

    One layer. Section 3.2.1.

    Examples
    --------
    >>> from inferlib.papers.pope2022 import load_mesh, load_model
    >>> ws1d_volume(load_model(), load_mesh(64), 1)
    36864.0
    """
    return tokens * outer_width(model) * _part_moved(mesh.chips, assumptions)


@equation(unit="1", tokens="1")
def ws2d_volume(model: Model, mesh: Mesh, tokens, assumptions: Assumptions = PRINTED):
    """Activations through one chip, 2D weight-stationary: X cuts the model's width, Y and Z the other.

    One layer. Section 3.2.2, appendix A.2.1.

    Examples
    --------
    >>> from inferlib.papers.pope2022 import load_mesh, load_model
    >>> ws2d_volume(load_model(), load_mesh(64), 1)
    18432.0
    """
    yz = mesh.y * mesh.z
    outer = outer_width(model) / mesh.x * _part_moved(yz, assumptions)
    return tokens * (outer + inner_width(model, assumptions) / yz * _part_moved(mesh.x, assumptions))


@equation(unit="1", tokens="1", gathered="1 > 0")
def gathered_activation_volume(
    model: Model, mesh: Mesh, tokens, gathered, assumptions: Assumptions = PRINTED
):
    """Activations through one chip when weights are gathered over some chips and the batch cut over them.

    One layer. Appendix A.2.2; with the exact factor nothing is left where all chips gather.
    """
    rest = mesh.chips / gathered
    return tokens * outer_width(model) / gathered * _part_moved(rest, assumptions)


@equation(unit="1", gathered="1")
def gathered_weight_volume(model: Model, mesh: Mesh, gathered, assumptions: Assumptions = PRINTED):
    """Weights through one chip when they are gathered over some chips.

    One layer. Appendix A.2.2.

    Examples
    --------
    >>> from inferlib.papers.pope2022 import load_mesh, load_model
    >>> model, mesh = load_model(), load_mesh(64)
    >>> gathered_weight_volume(model, mesh, mesh.chips) == 2 * model.d_model * model.d_ff
    True
    """
    weights = gathered_weights(model, assumptions)
    return weights * gathered / mesh.chips * _part_moved(gathered, assumptions)


@equation(unit="1", tokens="1")
def batch_attention_volume(model: Model, mesh: Mesh, tokens, assumptions: Assumptions = PRINTED):
    """What attention cut over the batch adds: queries go out and results come back by all-to-all.

    One layer. Section 3.3, Figure 5(b).
    """
    queries = tokens * model.heads * model.head_dim / mesh.chips
    return 2 * queries * _part_moved(mesh.chips, assumptions)


# --- The same as times -----------------------------------------------------------------------------------


@equation(unit="s", tokens="1")
def ws1d_time(model: Model, chip: Chip, mesh: Mesh, tokens, assumptions: Assumptions = PRINTED):
    """Seconds of communication of one layer, 1D weight-stationary.

    Section 3.2.1. The paper counts numbers where this counts bytes.
    """
    moved = ws1d_volume(model, mesh, tokens, assumptions)
    return moved * model.activation_bytes / chip.network_bandwidth


@equation(unit="s", tokens="1")
def ws2d_time(model: Model, chip: Chip, mesh: Mesh, tokens, assumptions: Assumptions = PRINTED):
    """Seconds of communication of one layer, 2D weight-stationary (section 3.2.2)."""
    moved = ws2d_volume(model, mesh, tokens, assumptions)
    return moved * model.activation_bytes / chip.network_bandwidth


@equation(unit="s", tokens="1", gathered="1 > 0")
def gathered_time(model: Model, chip: Chip, mesh: Mesh, tokens, gathered, assumptions: Assumptions = PRINTED):
    """Seconds of communication of one layer with gathered weights (appendix A.2.2)."""
    activations = gathered_activation_volume(model, mesh, tokens, gathered, assumptions)
    weights = gathered_weight_volume(model, mesh, gathered, assumptions)
    moved = activations * model.activation_bytes + weights * model.weight_bytes
    return moved / chip.network_bandwidth


def wgx_time(model, chip, mesh, tokens, assumptions=PRINTED):
    """:func:`gathered_time` over the X axis."""
    return gathered_time(model, chip, mesh, tokens, mesh.x, assumptions)


def wgxy_time(model, chip, mesh, tokens, assumptions=PRINTED):
    """:func:`gathered_time` over the X and Y axes."""
    return gathered_time(model, chip, mesh, tokens, mesh.x * mesh.y, assumptions)


def wgxyz_time(model, chip, mesh, tokens, assumptions=PRINTED):
    """:func:`gathered_time` over all chips."""
    return gathered_time(model, chip, mesh, tokens, mesh.chips, assumptions)


TIMES = {
    "WS 1D": ws1d_time, "WS 2D": ws2d_time, "WG X": wgx_time, "WG XY": wgxy_time, "WG XYZ": wgxyz_time,
}  # fmt: skip
SHARED = ("WS 2D", "WG X", "WG XY", "WG XYZ")  # layouts that keep the weights where WS 2D has them


# --- The best of a family (appendix A.2) -----------------------------------------------------------------


@equation(unit="1", chips="1")
def best_x(model: Model, chips, assumptions: Assumptions = PRINTED):
    """Chips along X that make 2D weight-stationary move least.

    Not rounded. Appendix A.2.1 prints it for F = 4E, as half the square root of the chips.

    Examples
    --------
    >>> from inferlib.papers.pope2022 import load_model
    >>> best_x(load_model(), 64)
    4.0
    """
    return sqrt(outer_width(model) * chips / inner_width(model, assumptions))


@equation(unit="1", chips="1")
def best_yz(model: Model, chips, assumptions: Assumptions = PRINTED):
    """Chips along Y and Z together that go with :func:`best_x`."""
    return sqrt(inner_width(model, assumptions) * chips / outer_width(model))


@equation(unit="s", chips="1 > 0", tokens="1")
def best_ws2d_time(model: Model, chip: Chip, chips, tokens, assumptions: Assumptions = PRINTED):
    """Seconds of communication of one layer at the best X of 2D weight-stationary.

    Appendix A.2.1, which prints it for F = 4E: 8BLE over the root of the chips and the bandwidth.
    """
    inner = inner_width(model, assumptions)
    moved = 2 * tokens * sqrt(outer_width(model) * inner / chips)
    if assumptions.exact_collectives:
        moved = moved - tokens * (outer_width(model) + inner) / chips
    return moved * model.activation_bytes / chip.network_bandwidth


@equation(unit="1", chips="1", tokens="1")
def best_gather(model: Model, chips, tokens, assumptions: Assumptions = PRINTED):
    """Chips over which to gather the weights for the least communication.

    Appendix A.2.2, where weights and activations have equally many bytes.
    """
    activations = outer_width(model) * model.activation_bytes
    return sqrt(tokens * chips * activations / (gathered_weights(model, assumptions) * model.weight_bytes))


@equation(unit="s", chips="1 > 0", tokens="1")
def best_gather_time(model: Model, chip: Chip, chips, tokens, assumptions: Assumptions = PRINTED):
    """Seconds of communication of one layer at the best gathering.

    Appendix A.2.2: 4E times the root of BLF over the root of the chips and the bandwidth.
    """
    activations = outer_width(model) * model.activation_bytes
    weights = gathered_weights(model, assumptions) * model.weight_bytes
    moved = 2 * sqrt(tokens * activations * weights / chips)
    if assumptions.exact_collectives:
        moved = moved - (tokens * activations + weights) / chips
    return moved / chip.network_bandwidth


# --- Where one layout takes over from another ------------------------------------------------------------


@equation(unit="1")
def switch_to_x(model: Model, mesh: Mesh, assumptions: Assumptions = PRINTED):
    """Tokens from which gathering over X moves less than 2D weight-stationary (Figure 3).

    Tokens of the whole batch: E in the paper's count, with weights and activations of equally many bytes.

    Examples
    --------
    >>> from inferlib.papers.pope2022 import load_mesh, load_model
    >>> switch_to_x(load_model(), load_mesh(64))
    18432.0
    """
    weights = gathered_weights(model, assumptions) * model.weight_bytes
    return weights / (inner_width(model, assumptions) * model.activation_bytes)


@equation(unit="1", few="1", many="1")
def switch_of_gathers(model: Model, mesh: Mesh, few, many, assumptions: Assumptions = PRINTED):
    """Tokens from which gathering over more chips moves less than over fewer.

    Tokens of the whole batch: F times few times many over all chips, in the paper's count.
    """
    weights = gathered_weights(model, assumptions) * model.weight_bytes
    return few * many / mesh.chips * weights / (outer_width(model) * model.activation_bytes)


def switches(model, mesh, assumptions=PRINTED):
    """The three switch points of Figure 3, in tokens.

    Returns
    -------
    dict

    Examples
    --------
    >>> from inferlib.papers.pope2022 import load_mesh, load_model
    >>> switches(load_model(), load_mesh(64))
    {'WS 2D to WG X': 18432.0, 'WG X to WG XY': 73728.0, 'WG XY to WG XYZ': 1179648.0}
    """
    x, xy = mesh.x, mesh.x * mesh.y
    return {
        "WS 2D to WG X": switch_to_x(model, mesh, assumptions),
        "WG X to WG XY": switch_of_gathers(model, mesh, x, xy, assumptions),
        "WG XY to WG XYZ": switch_of_gathers(model, mesh, xy, mesh.chips, assumptions),
    }


@equation(unit="1")
def printed_break_even(model: Model):
    """Chips above which 2D is said to beat 1D: the root of the chips above F/E (section 3.2.2)."""
    return (model.d_ff / model.d_model) ** 2


@equation(unit="1")
def break_even(model: Model, assumptions: Assumptions = PRINTED):
    """Chips above which 2D with the best X moves less than 1D, by the paper's own costs: 4F/E.

    Examples
    --------
    >>> from inferlib.papers.pope2022 import load_model
    >>> break_even(load_model()), break_even(load_model().replace(d_ff=2 * 18432.0))
    (16.0, 8.0)
    """
    return 4 * inner_width(model, assumptions) / outer_width(model)


@equation(unit="1", x="1")
def break_even_of_x(model: Model, x, assumptions: Assumptions = PRINTED):
    """Chips above which 2D with a given X moves less than 1D, the factor (K - 1)/K kept: X F/E."""
    return x * inner_width(model, assumptions) / outer_width(model)


# --- The choice ------------------------------------------------------------------------------------------


def communication(model, chip, mesh, tokens, assumptions=PRINTED, layouts=tuple(TIMES)):
    """Seconds of communication of one layer in every layout.

    Parameters
    ----------
    model : Model
    chip : Chip
    mesh : Mesh
    tokens : float or xarray.DataArray
        Tokens of the whole batch.
    assumptions : Assumptions
    layouts : tuple of str
        Some of :data:`TIMES`.

    Returns
    -------
    xarray.DataArray
        Over ``layout`` and the axes of ``tokens``.
    """
    import xarray as xr

    for name in layouts:
        checks.one_of("layout", name, TIMES)
    times = [xr.DataArray(TIMES[name](model, chip, mesh, tokens, assumptions)) for name in layouts]
    return xr.concat(times, "layout", coords="minimal", compat="override").assign_coords(layout=list(layouts))


def choose(model, chip, mesh, tokens, assumptions=PRINTED, layouts=SHARED):
    """The layout that moves least, for a number of tokens.

    Parameters are those of :func:`communication`.

    Returns
    -------
    seconds, layout : xarray.DataArray
        Of one layer, and the name of the layout.

    Examples
    --------
    >>> from inferlib.papers.pope2022 import load_chip, load_mesh, load_model
    >>> seconds, layout = choose(load_model(), load_chip(), load_mesh(64), 2048)
    >>> str(layout.values)
    'WS 2D'
    """
    checks.number("tokens", tokens)
    return minimise(communication(model, chip, mesh, tokens, assumptions, layouts), "layout")


def gathered_over(mesh, layout):
    """Chips over which a layout gathers its weights and cuts the batch: 1 where the weights stay.

    Examples
    --------
    >>> from inferlib.papers.pope2022 import load_mesh
    >>> gathered_over(load_mesh(64), "WG XY"), gathered_over(load_mesh(64), "WS 2D")
    (16.0, 1)
    """
    checks.one_of("layout", layout, TIMES)
    return {"WG X": mesh.x, "WG XY": mesh.x * mesh.y, "WG XYZ": mesh.chips}.get(layout, 1)


def cache_on_chip(model, mesh, layout, attention, batch, context):
    """Bytes of cache on one chip in a layout.

    A layout that gathers weights has cut the batch already; what is left to choose is how the chips that
    share a part of the batch cut attention among them.

    Parameters
    ----------
    model : Model
    mesh : Mesh
    layout : str
        One of :data:`TIMES`.
    attention : {"Head", "Batch"}
        What the cache is cut over.
    batch, context : float
        Sequences, and cached tokens of each.

    Returns
    -------
    float or array
    """
    checks.one_of("attention", attention, CACHES)
    parts = gathered_over(mesh, layout)
    if attention == "Batch":
        return CACHES["Batch"](model, mesh.chips, batch, context)
    return CACHES["Head"](model, mesh.chips / parts, batch / parts, context)


def why_not(model, chip, mesh, layout, attention, batch, context):
    """Why a model cannot run like this, or an empty text.

    Parameters
    ----------
    model : Model
    chip : Chip
    mesh : Mesh
    layout : str
        One of :data:`TIMES`.
    attention : {"Head", "Batch"}
        What the cache is cut over.
    batch, context : float
        Sequences, and tokens of each.

    Returns
    -------
    str

    Examples
    --------
    >>> from inferlib.papers.pope2022 import load_chip, load_mesh, load_model
    >>> why_not(load_model(), load_chip(), load_mesh(64), "WG XYZ", "Batch", 8, 2048)
    'WG XYZ cuts the batch over 64 chips, which 8 sequences do not fill'
    """
    checks.one_of("attention", attention, CACHES)
    checks.number("batch", batch, minimum=1)
    parts = gathered_over(mesh, layout)
    if isinstance(parts, Real) and batch < parts:
        return f"{layout} cuts the batch over {parts:g} chips, which {batch:g} sequences do not fill"
    held = weights_on_chip(model, mesh.chips)
    cache = cache_on_chip(model, mesh, layout, attention, batch, context)
    if isinstance(held + cache, Real) and held + cache > chip.memory_capacity:
        return (
            f"{held / 1e9:.1f} GB of weights and {cache / 1e9:.1f} GB of cache on each chip exceed its "
            f"{chip.memory_capacity / 1e9:.1f} GB"
        )
    return ""
