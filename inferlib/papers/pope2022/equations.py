"""Pope et al. 2022: what a model costs, what each way of cutting it moves, and when to change the cut.

A volume is what one chip sends and receives for one layer, in numbers (elements): of activations and of
weights, which may have different formats. A time is those bytes over the bandwidth of the chip; the paper
counts numbers where this counts bytes.
"""

from functools import partial
from numbers import Real

import inferlib.equation
from inferlib import validation
from inferlib.ops import minimum, sqrt
from inferlib.papers.pope2022.records import CORRECTED, PRINTED, Mesh, Model
from inferlib.system import Accelerator

_RECORDS = {"model": Model, "chip": Accelerator, "mesh": Mesh}
equation = partial(inferlib.equation.equation, "pope2022", records=_RECORDS)


# --- What a model costs (section 2) ---


@equation()
def layer_parameters(model):
    """Weights of one layer: four attention projections and the matrices of the feed-forward block.

    Section 2.2 names the shapes; the count itself is not printed. Layer norms are left out.
    """
    attention = 2 * (model.heads + model.kv_heads) * model.head_dim
    return model.d_model * (attention + model.matrices * model.d_ff)


@equation()
def parameters(model):
    """Parameters of a model: its layers and its embedding table. Table D.1 prints 540B and 530B."""
    return model.layers * layer_parameters(model) + model.tables * model.vocabulary * model.d_model


@equation(unit="FLOP")
def matmul_flops(model, tokens, assumptions=PRINTED):
    """Operations of all multiplies with weights, 2N a token (section 2, compute costs)."""
    return assumptions.flop_per_weight * parameters(model) * tokens


@equation(unit="FLOP")
def attention_flops(model, tokens, seen, assumptions=PRINTED):
    """Scores and weighted sums of every head; section 2 leaves them out as "a much smaller number"."""
    scores = assumptions.flop_per_weight * tokens * seen * model.heads * model.head_dim
    return 2 * model.layers * scores


@equation(unit="B", chips="1 > 0")
def weights_on_chip(model, chips):
    """Bytes of weights that one chip holds, and reads once a step (section 2, memory costs)."""
    return parameters(model) * model.weight_bytes / chips


@equation(unit="B")
def cache_of_token(model):
    """Bytes of keys and values that one token of one sequence leaves behind, in all layers."""
    return 2 * model.layers * model.kv_heads * model.head_dim * model.cache_bytes


@equation(unit="B", chips="1 > 0")
def cache_over_heads(model, chips, batch, context):
    """Bytes of cache on one chip when attention is cut over heads (section 3.3, Figure 4 a and b).

    Chips beyond the number of key/value heads hold copies: with one such head every chip holds everything.
    """
    return batch * context * cache_of_token(model) / minimum(chips, model.kv_heads)


@equation(unit="B", chips="1 > 0", batch="1 > 0")
def cache_over_batch(model, chips, batch, context):
    """Bytes of cache on one chip when attention is cut over the sequences (section 3.3, Figure 4 c)."""
    return batch * context * cache_of_token(model) / minimum(chips, batch)


CACHES = {"Head": cache_over_heads, "Batch": cache_over_batch}


@equation(chips="1 > 0", batch="1 > 0")
def context_over_heads(model, chip, chips, batch, cache_share):
    """Longest context whose cache, cut over heads, fits into its share of the memory (Table 1)."""
    return cache_share * chip.memory_capacity / cache_over_heads(model, chips, batch, 1)


@equation(chips="1 > 0", batch="1 > 0")
def context_over_batch(model, chip, chips, batch, cache_share):
    """The same with the cache cut over the batch (Table 1)."""
    return cache_share * chip.memory_capacity / cache_over_batch(model, chips, batch, 1)


@equation(unit="s", chips="1 > 0", flop="FLOP")
def compute_time(chip, chips, flop):
    """Seconds for a number of operations when every chip runs at its peak (section 2, compute costs)."""
    return flop / (chips * chip.flops)


@equation(unit="s", held="B")
def memory_time(chip, held):
    """Seconds to bring ``held`` bytes from a chip's memory to its cores (section 2, memory costs)."""
    return held / chip.memory_bandwidth


@equation(chips="1 > 0", time="s > 0")
def mfu(chip, chips, n_params, tokens, time, assumptions=PRINTED):
    """Model FLOPS utilisation: throughput as a fraction of what the peak would allow (section 2)."""
    return assumptions.flop_per_weight * n_params * tokens / (time * chips * chip.flops)


@equation(unit="s", tokens="1 > 0", time="s")
def cost(chips, tokens, time):
    """Chip-seconds for a token (section 4.4); times the utilisation and the peak it is 2N."""
    return chips * time / tokens


# --- Collectives (appendix A.1) ---


@equation(unit="s", size="B")
def all_gather_time(chip, size, k, assumptions=PRINTED):
    """Seconds to bring the parts of a tensor from K chips to each of them: D/W, exactly times (K - 1)/K."""
    return size * _part_moved(k, assumptions) / chip.scale_up_bandwidth


@equation(unit="s", size="B")
def all_reduce_time(chip, size, k, assumptions=PRINTED):
    """Seconds to sum a tensor over K chips: a reduce-scatter, then an all-gather of the same size."""
    return 2 * all_gather_time(chip, size, k, assumptions)


@equation(unit="s", size="B")
def all_to_all_time(chip, size, k, assumptions=PRINTED):
    """Seconds to cut a tensor along another dimension: each chip keeps one part in K of its own."""
    return size * _part_moved(k, assumptions) / chip.scale_up_bandwidth


def _part_moved(k, assumptions):
    """Fraction of a collective's larger buffer that passes through a chip's links."""
    return (k - 1) / k if assumptions.exact_collectives else 1


# --- What crosses the links in each layout (sections 3.2 and 3.3, appendix A.2) ---


@equation()
def outer_width(model):
    """Numbers of a token in the tensors as wide as the model that a layer gathers and scatters.

    A parallel block gathers its input and scatters its output, 2E; a serial one does it twice (section 3.4).
    """
    return (2 if model.parallel else 4) * model.d_model


@equation()
def inner_width(model, assumptions=PRINTED):
    """Numbers of a token in the tensors between the matrices of a layer: 2F in the paper's formula."""
    if not assumptions.whole_layer:
        return 2 * model.d_ff
    attention = 2 * (model.heads + model.kv_heads) * model.head_dim
    return model.matrices * model.d_ff + attention


@equation()
def gathered_weights(model, assumptions=PRINTED):
    """Weights of one layer that a weight-gathered layout brings together: 2EF in the paper's formula."""
    return layer_parameters(model) if assumptions.whole_layer else 2 * model.d_model * model.d_ff


@equation()
def ws1d_volume(model, mesh, tokens, assumptions=PRINTED):
    """Activations through one chip, 1D weight-stationary, each matrix cut along its wide side: 2BLE (3.2.1)."""
    return tokens * outer_width(model) * _part_moved(mesh.chips, assumptions)


@equation()
def ws2d_volume(model, mesh, tokens, assumptions=PRINTED):
    """Activations through one chip, 2D weight-stationary: 2BL (E/X + F/YZ) (section 3.2.2, A.2.1).

    X cuts the width of the model, Y and Z that of the feed-forward block.
    """
    yz = mesh.y * mesh.z
    outer = outer_width(model) / mesh.x * _part_moved(yz, assumptions)
    return tokens * (outer + inner_width(model, assumptions) / yz * _part_moved(mesh.x, assumptions))


@equation(gathered="1 > 0")
def gathered_activation_volume(model, mesh, tokens, gathered, assumptions=PRINTED):
    """Activations through one chip when N chips gather the weights and cut the batch: 2BLE/N (A.2.2).

    With the exact factor nothing is left where all chips gather.
    """
    rest = mesh.chips / gathered
    return tokens * outer_width(model) / gathered * _part_moved(rest, assumptions)


@equation()
def gathered_weight_volume(model, mesh, gathered, assumptions=PRINTED):
    """Weights through one chip when they are gathered over N chips: 2EFN over all chips (A.2.2)."""
    weights = gathered_weights(model, assumptions)
    return weights * gathered / mesh.chips * _part_moved(gathered, assumptions)


@equation()
def batch_attention_volume(model, mesh, tokens, assumptions=PRINTED):
    """What attention cut over the batch adds: queries go out, results come back (section 3.3, Figure 5 b)."""
    queries = tokens * model.heads * model.head_dim / mesh.chips
    return 2 * queries * _part_moved(mesh.chips, assumptions)


@equation(unit="s")
def ws1d_time(model, chip, mesh, tokens, assumptions=PRINTED):
    """Seconds of communication of one layer, 1D weight-stationary (section 3.2.1)."""
    moved = ws1d_volume(model, mesh, tokens, assumptions)
    return moved * model.activation_bytes / chip.scale_up_bandwidth


@equation(unit="s")
def ws2d_time(model, chip, mesh, tokens, assumptions=PRINTED):
    """Seconds of communication of one layer, 2D weight-stationary (section 3.2.2)."""
    moved = ws2d_volume(model, mesh, tokens, assumptions)
    return moved * model.activation_bytes / chip.scale_up_bandwidth


@equation(unit="s", gathered="1 > 0")
def gathered_time(model, chip, mesh, tokens, gathered, assumptions=PRINTED):
    """Seconds of communication of one layer with weights gathered over N chips (appendix A.2.2)."""
    activations = gathered_activation_volume(model, mesh, tokens, gathered, assumptions)
    weights = gathered_weight_volume(model, mesh, gathered, assumptions)
    moved = activations * model.activation_bytes + weights * model.weight_bytes
    return moved / chip.scale_up_bandwidth


# Each layout by the axes over which it gathers the weights and cuts the batch; the first two gather nothing.
LAYOUTS = {"WS 1D": "", "WS 2D": "", "WG X": "x", "WG XY": "xy", "WG XYZ": "xyz"}
SHARED = ("WS 2D", "WG X", "WG XY", "WG XYZ")  # layouts that keep the weights where WS 2D has them


def layer_time(model, chip, mesh, tokens, layout, assumptions=PRINTED):
    """Seconds of communication of one layer in any of :data:`LAYOUTS`."""
    axes = LAYOUTS[validation.one_of("layout", layout, LAYOUTS)]
    if axes:
        return gathered_time(model, chip, mesh, tokens, mesh.along(axes), assumptions)
    stationary = ws1d_time if layout == "WS 1D" else ws2d_time
    return stationary(model, chip, mesh, tokens, assumptions)


# --- The best of a family (appendix A.2) ---


@equation()
def best_x(model, chips, assumptions=PRINTED):
    """Chips along X that make 2D move least, not rounded: for F = 4E, half the root of the chips (A.2.1)."""
    return sqrt(outer_width(model) * chips / inner_width(model, assumptions))


@equation()
def best_yz(model, chips, assumptions=PRINTED):
    """Chips along Y and Z together that go with :func:`best_x`: for F = 4E, twice the root of the chips."""
    return sqrt(inner_width(model, assumptions) * chips / outer_width(model))


@equation(unit="s", chips="1 > 0")
def best_ws2d_time(model, chip, chips, tokens, assumptions=PRINTED):
    """Seconds of communication of one layer at the best X: for F = 4E, 8BLE over the root of the chips (A.2.1)."""
    inner = inner_width(model, assumptions)
    moved = 2 * tokens * sqrt(outer_width(model) * inner / chips)
    if assumptions.exact_collectives:
        moved = moved - tokens * (outer_width(model) + inner) / chips
    return moved * model.activation_bytes / chip.scale_up_bandwidth


@equation()
def best_gather(model, chips, tokens, assumptions=PRINTED):
    """Chips over which to gather the weights for the least communication (A.2.2)."""
    activations = outer_width(model) * model.activation_bytes
    return sqrt(tokens * chips * activations / (gathered_weights(model, assumptions) * model.weight_bytes))


@equation(unit="s", chips="1 > 0")
def best_gather_time(model, chip, chips, tokens, assumptions=PRINTED):
    """Seconds of communication of one layer at the best gathering: 4E times the root of BLF over the chips."""
    activations = outer_width(model) * model.activation_bytes
    weights = gathered_weights(model, assumptions) * model.weight_bytes
    moved = 2 * sqrt(tokens * activations * weights / chips)
    if assumptions.exact_collectives:
        moved = moved - (tokens * activations + weights) / chips
    return moved / chip.scale_up_bandwidth


# --- Where one layout takes over from another (Figure 3); tokens are those of the whole batch ---


@equation()
def switch_to_x(model, mesh, assumptions=PRINTED):
    """Tokens from which gathering over X moves less than 2D: E in the paper's count, whatever the mesh."""
    weights = gathered_weights(model, assumptions) * model.weight_bytes
    return weights / (inner_width(model, assumptions) * model.activation_bytes)


@equation()
def switch_of_gathers(model, mesh, few, many, assumptions=PRINTED):
    """Tokens from which gathering over more chips moves less than over fewer: F times both over all chips."""
    weights = gathered_weights(model, assumptions) * model.weight_bytes
    return few * many / mesh.chips * weights / (outer_width(model) * model.activation_bytes)


def switches(model, mesh, assumptions=PRINTED):
    """The three switch points of Figure 3, in tokens.

    Examples
    --------
    >>> from inferlib.papers.pope2022 import load_mesh, load_model
    >>> switches(load_model(), load_mesh(64))
    {'WS 2D to WG X': 18432.0, 'WG X to WG XY': 73728.0, 'WG XY to WG XYZ': 1179648.0}
    """
    x = mesh.x
    xy = mesh.x * mesh.y
    return {
        "WS 2D to WG X": switch_to_x(model, mesh, assumptions),
        "WG X to WG XY": switch_of_gathers(model, mesh, x, xy, assumptions),
        "WG XY to WG XYZ": switch_of_gathers(model, mesh, xy, mesh.chips, assumptions),
    }


@equation()
def printed_break_even(model):
    """Chips above which 2D is said to beat 1D: the root of the chips above F/E (section 3.2.2)."""
    return (model.d_ff / model.d_model) ** 2


@equation()
def break_even(model, assumptions=PRINTED):
    """Chips above which 2D with the best X moves less than 1D, by the paper's own costs: 4F/E."""
    return 4 * inner_width(model, assumptions) / outer_width(model)


def communication(model, chip, mesh, tokens, assumptions=PRINTED, *, layouts=tuple(LAYOUTS)):
    """Seconds of communication of one layer over ``layout``, and over the axes of the tokens of the batch."""
    from inferlib.optional_imports import xarray as xr

    times = [xr.DataArray(layer_time(model, chip, mesh, tokens, name, assumptions)) for name in layouts]
    return xr.concat(times, "layout", coords="minimal", compat="override").assign_coords(layout=list(layouts))


def choose(model, chip, mesh, tokens, assumptions=PRINTED, *, layouts=SHARED):
    """The least seconds of :func:`communication`, and the name of the layout that needs them.

    Examples
    --------
    >>> from inferlib.papers.pope2022 import load_chip, load_mesh, load_model
    >>> seconds, layout = choose(load_model(), load_chip(), load_mesh(64), 2048)
    >>> str(layout.values)
    'WS 2D'
    """
    validation.number("tokens", tokens)
    seconds = communication(model, chip, mesh, tokens, assumptions, layouts=layouts)
    return seconds.min("layout"), seconds.idxmin("layout")


# --- What fits ---


def gathered_over(mesh, layout):
    """Chips over which a layout gathers its weights and cuts the batch: 1 where the weights stay."""
    return mesh.along(LAYOUTS[validation.one_of("layout", layout, LAYOUTS)])


def cache_on_chip(model, mesh, layout, attention, batch, context):
    """Bytes of cache on one chip in a layout, cut over ``"Head"`` or ``"Batch"``.

    A layout that gathers weights has cut the batch already; what is left to choose is how the chips that
    share a part of the batch cut attention among them.
    """
    validation.one_of("attention", attention, CACHES)
    parts = gathered_over(mesh, layout)
    if attention == "Batch":
        return cache_over_batch(model, mesh.chips, batch, context)
    return cache_over_heads(model, mesh.chips / parts, batch / parts, context)


def why_not(model, chip, mesh, layout, attention, batch, context):
    """Return why a batch at this context cannot run in this layout, or ``""``.

    Examples
    --------
    >>> from inferlib.papers.pope2022 import load_chip, load_mesh, load_model
    >>> why_not(load_model(), load_chip(), load_mesh(64), "WG XYZ", "Batch", 8, 2048)
    'WG XYZ cuts the batch over 64 chips, which 8 sequences do not fill'
    """
    validation.number("batch", batch, minimum=1)
    held = weights_on_chip(model, mesh.chips)
    cache = cache_on_chip(model, mesh, layout, attention, batch, context)
    parts = gathered_over(mesh, layout)
    if isinstance(parts, Real) and batch < parts:
        return f"{layout} cuts the batch over {parts:g} chips, which {batch:g} sequences do not fill"
    if isinstance(held + cache, Real) and held + cache > chip.memory_capacity:
        return (
            f"{held / 1e9:.1f} GB of weights and {cache / 1e9:.1f} GB of cache on each chip exceed its "
            f"{chip.memory_capacity / 1e9:.1f} GB"
        )
    return ""


# --- The time of a step ---
#
# The paper prints costs and measurements but no formula for the time of a step. The bound takes every peak as
# reached.


def bound(model, chip, mesh, layout, tokens, seen, held, assumptions=CORRECTED):
    """Seconds that each resource needs at its peak for one forward pass; weights and cache share the memory.

    ``tokens`` are those of the whole batch, ``seen`` the keys that each of them sees, ``held`` the bytes of
    cache that one chip reads.
    """
    flop = matmul_flops(model, tokens) + attention_flops(model, tokens, seen)
    return {
        "arithmetic": compute_time(chip, mesh.chips, flop),
        "weights": memory_time(chip, weights_on_chip(model, mesh.chips)),
        "cache": memory_time(chip, held),
        "network": model.layers * layer_time(model, chip, mesh, tokens, layout, assumptions),
    }
