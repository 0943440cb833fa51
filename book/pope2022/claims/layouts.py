"""Pope et al. 2022, sections 2 and 3: what it says of costs, layouts and attention."""

import math
from functools import partial

import sympy as sp

from book.audit.ledger import claims
from book.pope2022 import evidence
from book.pope2022.evidence import SLICE, TPU, configuration
from book.pope2022.tables import table_1
from inferlib.papers import pope2022 as pope
from inferlib.papers.pope2022 import derivations

claims = partial(claims, "pope2022")
MESH = pope.load_mesh(SLICE)
BATCH, CONTEXT = 512, 2048  # the case that sections 2 and 3 come back to


@claims("Text 2")
def costs(read, holds):
    model = evidence.palm()
    held = {
        "multihead": pope.cache_over_heads(pope.multihead(model), SLICE, BATCH, CONTEXT),
        "multiquery over the batch": pope.cache_over_batch(model, SLICE, BATCH, CONTEXT),
    }
    weights = pope.weights_on_chip(model, SLICE)
    times = ", ".join(f"{name} {1e3 * pope.memory_time(TPU, size):.1f} ms" for name, size in held.items())
    holds(
        "loading the cache takes longest at 2048 tokens and a batch of 512",
        lambda read: pope.memory_time(TPU, held["multihead"]) > pope.memory_time(TPU, weights),
        f"weights {1e3 * pope.memory_time(TPU, weights):.1f} ms, {times}",
        fair="of multihead attention, which section 2.1 goes on to",
    )
    small = evidence.pass_bound(configuration("PaLM 540B", SLICE, 1, "WS 2D", "Head", "bf16", CONTEXT, 1))
    holds("loading the weights takes longest at small batches", small["weights"] == max(small.values()))
    share = pope.attention_flops(model, 1, CONTEXT) / pope.matmul_flops(model, 1)
    holds("attention adds few operations (under 5 %) at 2048 tokens", share < 0.05, f"{share:.1%}")


@claims("Text 2.1")
def tradeoffs(read, holds):
    model = pope.load_model("PaLM 540B")
    twice = model.replace(layers=2 * model.layers, vocabulary=2 * model.vocabulary)
    measures = partial(pope.matmul_flops, tokens=1), partial(pope.weights_on_chip, chips=64)
    grown = [measure(twice) / measure(model) for measure in measures]
    spread = pope.weights_on_chip(model, 128) / pope.weights_on_chip(model, 64)
    holds(
        "weight loading and arithmetic grow with the model and fall with the chips",
        (*grown, spread) == (2, 2, 0.5),
        "by definition: twice the model, twice the time; twice the chips, half",
    )
    fallen = {
        "1D": pope.ws1d_time(model, TPU, pope.load_mesh(256), 1) / pope.ws1d_time(model, TPU, MESH, 1),
        "2D": pope.best_ws2d_time(model, TPU, 256, 1) / pope.best_ws2d_time(model, TPU, 64, 1),
    }
    holds(
        "communication falls less quickly with the chips than these",
        all(left > 64 / 256 for left in fallen.values()),
        "from 64 to 256 chips " + ", ".join(f"{name} to {left:.0%}" for name, left in fallen.items()),
    )


@claims("Text 3.2.1")
def one_dimension(read, holds):
    model = pope.load_model("PaLM 540B")
    moved = {pope.ws1d_volume(model, pope.load_mesh(n), 1) for n in pope.meshes()}
    exact = [pope.ws1d_volume(model, pope.load_mesh(n), 1, pope.EXACT) for n in (8, 256)]
    holds(
        "1D: communication does not fall with the number of chips",
        len(moved) == 1,
        f"with (K-1)/K it grows by {exact[1] / exact[0] - 1:.0%} from 8 to 256 chips",
    )


@claims("Text 3.2.2")
def two_dimensions(read, holds):
    best = derivations.optimal_x().result
    power = sp.simplify(sp.diff(sp.log(best), derivations.N) * derivations.N)
    holds("communication falls with the root of the chips", power == -sp.Rational(1, 2))
    four = pope.load_model("PaLM 540B")
    narrow = four.replace(d_ff=2 * four.d_model)
    holds(
        "2D beats 1D when the root of the chips exceeds F/E",
        lambda read: math.isclose(pope.printed_break_even(four), pope.break_even(four)),
        f"at F = 2E it says {pope.printed_break_even(narrow):g} chips, the paper's own costs "
        f"{pope.break_even(narrow):g}",
        fair="at F = 4E, which the next sentence and all formulas of the section take",
    )


@claims("Text 3.2.3")
def gathering(read, holds):
    model, tokens = pope.load_model("PaLM 540B"), 2**15
    d, best = derivations, derivations.optimal_gather()
    off = sp.simplify(d.same_bytes(best[-2].equation.rhs) - sp.sqrt(d.T * d.N / d.F))
    holds("best N is the root of BL n / F", off == 0)
    gathered = partial(pope.gathered_activation_volume, model, MESH, tokens)
    weights, left = pope.gathered_weight_volume(model, MESH, MESH.x * MESH.y), gathered(MESH.x * MESH.y)
    of_each, of_activations = model.d_model * model.d_ff / MESH.z, tokens * model.d_model / (MESH.x * MESH.y)
    holds("gathering over XY moves EF/Z of each matrix", math.isclose(weights / 2, of_each))
    holds("gathering over XY leaves BLE/(XY) of the activations", math.isclose(left / 2, of_activations))
    skipped = pope.ws2d_volume(model, MESH, tokens) - gathered(MESH.x)
    pair = 2 * tokens * model.d_ff / (MESH.y * MESH.z)
    holds("one pair of collectives on activations is skipped", math.isclose(skipped, pair))
    powers = [sp.simplify(sp.diff(sp.log(e), d.T) * d.T) for e in (d.optimal_x().result, best.result)]
    holds(
        "time grows with BL, weight-stationary, and with its root, weight-gathered",
        powers == [1, sp.Rational(1, 2)],
    )
    printed, still = gathered(MESH.chips), gathered(MESH.chips, pope.EXACT)
    holds(
        "very large batches keep activations fully stationary",
        still == 0,
        f"exactly so with (K-1)/K; the printed formula leaves {printed / tokens:.0f} numbers a token",
    )


@claims("Text 3.3")
def attention(read, holds):
    model = evidence.palm()
    own_heads = model.replace(kv_heads=model.heads)
    by_heads = pope.cache_over_heads(model, SLICE, BATCH, CONTEXT)
    ratio = by_heads / pope.cache_over_batch(model, SLICE, BATCH, CONTEXT)
    holds(
        "multiquery attention divides the cache by the number of heads",
        pope.cache_of_token(own_heads) / pope.cache_of_token(model) == model.heads,
    )
    holds(
        "cut over heads, the saving of multiquery attention is lost",
        lambda read: (
            pope.cache_over_heads(own_heads, SLICE, BATCH, CONTEXT)
            == pope.cache_over_heads(model, SLICE, BATCH, CONTEXT)
        ),
        f"{by_heads / 1e9:.0f} GB on every chip with one shared head and with {model.heads:.0f}",
    )
    holds("cut over the batch, the cache on a chip shrinks by the number of chips", ratio == SLICE)
    prefills = [e for e in pope.stated()["configurations"] if "prefill" in e["row"]]
    other = [f"{e['table']}, {e['row']}" for e in prefills if e["attention"] != "Head"]
    holds(
        "prefill uses the layout over heads",
        all(e["attention"] == "Head" for e in prefills if e["layout"].startswith("WS")),
        f"over the batch in {' and '.join(other)}",
        fair="where the weights stay, of which this section speaks",
    )
    saving = table_1().loc["Optimized multiquery"] / table_1().loc["Multihead"]
    holds(
        "the savings are an order of magnitude (at least ten)",
        min(saving) >= 10,
        f"{min(saving):.0f} times the context of multihead attention",
    )
    shared, own = (
        2 * CONTEXT * m.kv_heads / (m.heads + 2 * m.kv_heads) for m in (model, pope.multihead(model))
    )
    holds(
        "the cache is orders of magnitude larger than Q, K and V",
        round(math.log10(shared)) >= 2,
        f"at {CONTEXT} tokens {shared:.0f} times with one shared head, {own:.0f} with multihead attention",
        fair="rounded to whole orders, two",
    )
    at = f"batch {BATCH}, {CONTEXT} tokens"
    spent, saved = _exchange(model, BATCH)
    note = f"{1e3 * spent:.2f} ms for {1e3 * saved:.0f} ms at {at}"
    holds("in generation the all-to-all costs less than it saves", spent < saved, note)
    spent, saved = _exchange(model, BATCH * CONTEXT)
    note = f"{1e3 * spent:.0f} ms for {1e3 * saved:.0f} ms at {at}; the ratio is that of any batch"
    holds("in prefill the all-to-all costs more than it saves", spent > saved, note)


def _exchange(model, tokens):
    """Seconds that cutting attention over the batch spends on the links, and saves on reading the cache."""
    moved = pope.batch_attention_volume(model, MESH, tokens) * model.activation_bytes * model.layers
    whole = pope.memory_time(TPU, pope.cache_over_heads(model, SLICE, BATCH, CONTEXT))
    return moved / TPU.network_bandwidth, whole * (1 - 1 / SLICE)


@claims("Text 3.6")
def quantization(read, holds):
    model, tokens = evidence.palm(), 2**20
    times = [pope.layer_time(m, TPU, MESH, tokens, "WG XYZ", pope.EXACT) for m in (model.at("int8"), model)]
    holds(
        "int8 weights reduce communication in weight-gathered layouts",
        times[0] < times[1],
        f"to {times[0] / times[1]:.0%} with all weights gathered; the points of switching are halved",
    )
