"""Shapes and what they cost: published counts, conservation, limits, scaling, and agreement of every kind of input."""

import csv
from importlib.resources import files

import numpy as np
import pytest
import sympy as sp
import xarray as xr
from facts import exactly, from_table, lines, refused
from hypothesis import given, strategies as st

from inferlib import Transformer
from inferlib.transformer import Attention, Experts, FeedForward, LatentAttention, Layers, causal_pairs
from tokenprice import catalog, load_model

COUNTS = files("tokenprice.catalog") / "published_counts.csv"
TABLE = list(csv.DictReader(COUNTS.read_text("utf-8").splitlines()))
SMALL = st.integers(1, 64)


def dense(n_layers, d_model, d_ff, n_heads, n_kv_heads, head_dim, vocab_size):
    """A model of equal, dense layers."""
    attention = Attention(n_heads, n_kv_heads, head_dim)
    return Transformer(d_model, vocab_size, (Layers(n_layers, attention, FeedForward(d_ff)),))


def total(parts):
    return sum(parts.values())


def stateless(parts):
    """All but the states of linear attention, which are no weights and keep their 32 bits."""
    return {part: value for part, value in parts.items() if part != "state"}


# --- Against published numbers -----------------------------------------------------------------------------
def per_layer(model, *parts, kind=object):
    """GFLOP of one layer of the kind asked for, at 4,989 tokens."""
    layers = sum(group.count for group in model.layers if isinstance(group.feed_forward, kind))
    return sum(model.flops(4989)[part] for part in parts) / layers / 1e9


QUANTITIES = dict(lines("quantities"))


@pytest.mark.parametrize("row", TABLE, ids=[f"{row['model']}: {row['quantity']}" for row in TABLE])
def test_published(row):
    model, published = load_model(row["model"]), float(row["published"])
    half = float(row["resolution"]) / 2
    if row["quantity"] == "active parameters":
        # cards differ in whether they count the input embedding: where they do not say, the number lies between
        high = model.n_active + int(row["left_out"] or 0)
        low = high if row["left_out"] else high - model.parameters()["embeddings"]
        assert low - half <= published <= high + half
        return
    ours = eval(QUANTITIES[row["quantity"]], globals(), {"m": model}) + int(row["left_out"] or 0)
    if row["agreement"] == "exact":
        assert ours == published and half <= 0.5
    elif row["agreement"] == "rounded":
        assert abs(ours - published) <= half * (1 + 1e-9)
    else:
        assert row["agreement"] == "1%" and row["note"]
        assert ours == pytest.approx(published, rel=0.01)
    if row["quantity"] == "parameters":
        assert ours == pytest.approx(published, rel=0.01)


def test_every_model_has_a_published_count_and_every_row_a_source():
    sparse = {name for name in catalog.models() if load_model(name).sparse}
    for quantity, names in (("parameters", set(catalog.models())), ("active parameters", sparse)):
        assert {row["model"] for row in TABLE if row["quantity"] == quantity} == names
    assert all(row["source"].startswith("https://") for row in TABLE)
    assert all("https://" in load_model(name).sources["shape"] for name in catalog.models())


OSS, PALM = (load_model(name) for name in ("GPT-OSS 120B", "PaLM 540B"))
test_caches_as_others_print_them = exactly("test_caches_as_others_print_them", globals())


# --- By hand -----------------------------------------------------------------------------------------------
# Two layers, width 4, feed-forward 8, two heads of 3, one key/value head, ten words.
TINY = dense(2, 4, 8, 2, 1, 3, 10)


LATENT = LatentAttention(n_heads=2, kv_rank=5, nope_dim=3, rope_dim=2, value_dim=4, q_rank=6)


test_parts_by_hand = exactly("test_parts_by_hand", globals())


@given(st.integers(1, 60), st.integers(1, 20), st.booleans())
def test_pairs_are_those_that_a_loop_counts(tokens, window, chunked):
    attention = Attention(1, 1, 1, window=window, chunked=chunked)
    seen = [(i % window) + 1 if chunked else min(i + 1, window) for i in range(tokens)]
    assert causal_pairs(attention, tokens) == sum(seen)
    assert causal_pairs(Attention(1, 1, 1), tokens) == sum(range(1, tokens + 1))


# --- Properties --------------------------------------------------------------------------------------------
@st.composite
def attentions(draw):
    window = draw(st.none() | st.integers(1, 50))
    if draw(st.booleans()):
        dims = {name: draw(SMALL) for name in ("n_heads", "kv_rank", "nope_dim", "rope_dim", "value_dim")}
        return LatentAttention(**dims, q_rank=draw(st.none() | SMALL), window=window)
    group, n_kv = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    flags = "input_bias", "output_bias", "qk_norm", "sinks", "chunked"
    flags = {name: draw(st.booleans()) for name in flags}
    return Attention(group * n_kv, n_kv, draw(SMALL), window=window, **flags)


@st.composite
def blocks(draw):
    if draw(st.booleans()):
        return FeedForward(draw(SMALL), draw(st.integers(2, 3)), draw(st.booleans()))
    n = draw(st.integers(1, 32))
    flags = {name: draw(st.booleans()) for name in ("biases", "router_bias", "shared_gate")}
    shape = st.integers(1, n), SMALL, st.integers(0, 64), st.integers(2, 3)
    return Experts(n, *map(draw, shape), **flags)


LAYERS = st.builds(Layers, SMALL, attentions(), blocks(), st.integers(0, 4))
GROUPS = st.lists(LAYERS, min_size=1, max_size=3).map(tuple)
FLAGS = {"tied": st.booleans(), "positions": st.integers(0, 100), "head_bias": st.booleans()}
MODELS = st.builds(Transformer, SMALL, st.integers(1, 1000), GROUPS, **FLAGS)


@given(MODELS, st.integers(1, 200), st.integers(1, 50))
def test_a_model_is_the_sum_of_its_groups(model, context, batch):
    """Every count is linear in the groups: a model of two is the two models, the outside counted once."""
    singles = [model.replace(layers=(group,)) for group in model.layers]
    bare = model.replace(layers=(model.layers[0].replace(count=2 * model.layers[0].count),))

    def counts(m):
        parts = m.flops(context), m.prefill_flops(context), m.bytes_read(batch, context)
        return np.array([m.n_params, m.n_active, *map(total, parts)])

    once = 2 * counts(singles[0]) - counts(bare)  # outside the layers
    assert counts(model) == pytest.approx(sum(counts(m) - once for m in singles) + once, rel=1e-9)
    assert model.cache_values(context) == sum(m.cache_values(context) for m in singles)


@given(MODELS, st.integers(1, 200))
def test_one_sequence_reads_its_active_parameters_and_its_cache(model, context):
    """No input embedding, no learned positions; a tied table is read as the head."""
    active = model.parameters(active=True)
    outside = active["embeddings"] + active.get("positions", 0)
    read = model.n_active - outside + (active["embeddings"] if model.tied else 0)
    wanted = 2 * read + model.cache_bytes(context)
    assert total(model.bytes_read(1, context)) == pytest.approx(wanted, rel=1e-12)


@given(st.integers(1, 300), st.data())
def test_experts_touched(n, data):
    k = data.draw(st.integers(1, n))
    batches = np.array([1.0, 2.0, 3.0, 10.0, 1e9])
    touched = Experts(n, k, 1).touched(batches)
    assert (touched[0], touched[-1]) == pytest.approx((k, n))
    assert (np.diff(touched) >= -1e-9).all() and (touched <= np.minimum(n, k * batches) * (1 + 1e-12)).all()


@pytest.mark.parametrize("name", catalog.models())
def test_arithmetic_is_two_for_each_active_weight_and_formats_scale_the_bytes(name):
    """The rule of thumb: two FLOP for each active parameter, embedding aside, without context or state."""
    model = load_model(name)
    active = model.parameters(active=True)
    matrices = model.n_active - active["embeddings"] - active.get("positions", 0)
    head = model.vocab_size * model.d_model if model.tied else 0
    assert total(stateless(model.flops(0))) == pytest.approx(2 * (matrices + head), rel=2e-3)
    assert total(model.weight_bytes("fp8")) == model.n_params == total(model.weight_bytes("bf16")) / 2
    assert model.cache_bytes(10, "fp8") * 2 == model.cache_bytes(10)
    half, whole = model.bytes_read(8, 100, "fp8", "fp8"), model.bytes_read(8, 100)
    assert 2 * total(stateless(half)) == pytest.approx(total(stateless(whole)))


# --- Every kind of input -----------------------------------------------------------------------------------
@from_table
def test_sweeps_stay_lazy_and_symbols_agree_with_floats(name):
    model = load_model(name)
    batch, context = (xr.DataArray([1.0, 64.0], dims=dim).chunk(1) for dim in ("batch", "context"))
    cache = model.bytes_read(batch, context)["cache"]
    assert cache.dims == ("batch", "context") and type(cache.data).__module__.startswith("dask")
    b, t = sp.symbols("b t", positive=True)
    symbolic = total(model.bytes_read(b, t)), total(model.prefill_flops(t))
    for at in ((1.0, 10.0), (64.0, 9000.0)):
        numbers = [float(one.subs({b: at[0], t: at[1]})) for one in symbolic]
        expected = total(model.bytes_read(*at)), total(model.prefill_flops(at[1]))
        assert numbers == pytest.approx(expected, rel=1e-9)


def test_a_symbolic_model():
    symbols = n, d, f, heads, kv, h, v = sp.symbols("L d f H K h V", positive=True)
    model = dense(*symbols)
    by_hand = n * (2 * d * h * (heads + kv) + 3 * d * f + 2 * d) + d + 2 * v * d
    assert sp.expand(model.n_params - by_hand) == 0 and model.cache_values() == 2 * n * kv * h
    numbers = dict(zip(symbols, (32, 4096, 14336, 32, 8, 128, 128256), strict=True))
    assert model.n_params.subs(numbers) == 8030261248


# --- Doors -------------------------------------------------------------------------------------------------
LLAMA = load_model("Llama 3 8B")


test_argument_checks = refused(globals())
