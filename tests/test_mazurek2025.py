"""Mazurek & Schreiber 2025: printed equations typed once more, printed statements, simulations, measurements."""

import math

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, strategies as some

import inferlib
from book import audit
from book.mazurek2025 import derivations, drawings, extensions, figures, readings, repair, systems, validation
from book.mazurek2025.counts import outweighing
from book.mazurek2025.simulation import fullest_by_formula
from book.mazurek2025.tables import TABLE_1
from inferlib.equation import EQUATIONS
from inferlib.papers import mazurek2025 as mz
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.decode import fits, stages

SHARED = inferlib.load_model("DeepSeek V3")
V3, K2 = mz.model_of("DeepSeek V3"), mz.model_of("Kimi K2")
FIXED = mz.Assumptions.corrected()
FOUR, NINE, RACK = map(mz.setup, mz.setups())

# --- The printed equations, typed here once as the source prints them, with Table 1's numbers ------------
B, S = 3, 5000
D, H, DH, DC, DQ, DR, DM, NR = 7168, 128, 128, 512, 1536, 64, 2048, 256
PRINTED = {
    # vanilla attention: projections of a prompt, then of a step
    "1": 2 * B * S * D * DQ, "2": 2 * B * S * DQ * H * DH, "3": 2 * B * S * DQ * H * DR, "4": 2 * B * S * D * DC,
    "5": 2 * B * S * H * DC * DH, "6": 2 * B * S * D * DR, "7": 2 * B * S * H * DC * DH,
    "8": 2 * B * D * DQ, "9": 2 * B * DQ * H * DH, "10": 2 * B * DQ * H * DR, "11": 2 * B * D * DC,
    "12": 2 * B * S * H * DC * DH, "13": 2 * B * D * DR, "14": 2 * B * S * H * DC * DH,
    # its scores and values, and the output
    "15": 2 * B * S**2 * H * (DH + DR), "16": B * S**2 * H * DH, "17": B * H * S * (2 * (DH + DR) + DH),
    "18": 2 * B * S * H * DH * D, "19": 2 * B * H * DH * D,
    # absorbed attention: a prompt, a step, matrices absorbed, scores and values, the output
    "20": 2 * B * S * D * DQ, "21": 2 * B * S * DQ * H * DR, "22": 2 * B * S * D * DC, "23": 2 * B * S * D * DR,
    "25": 2 * B * D * DQ, "26": 2 * B * DQ * H * DR, "27": 2 * B * D * DC, "28": 2 * B * D * DR,
    "29": 2 * B * S * H * DH * DQ, "30": 2 * B * S * H * DH * DC,
    "31": 2 * B * S**2 * H * (DC + DR), "32": B * S**2 * H * DC,
    "33": 2 * B * H * DH * DQ, "34": 2 * B * H * DH * DC,
    "35": 2 * B * S * H * (DC + DR), "36": B * S * H * DC,
    "37": 2 * B * S * (H * DH * D + H * DH * DC), "38": 2 * B * (H * DH * D + H * DH * DC),
    # experts
    "39": B * 2 * D * DM, "40": B * 2 * D * DM, "41": B * 2 * D * DM, "43": 3 * 2 * B * D * DM,
    "44": 2 * B * D * NR, "45": 3 * 2 * B * D * DM * 9 + 2 * B * D * NR,
}  # fmt: skip


BY_NUMBER = {
    number: entry
    for (source, _), entry in EQUATIONS.items()
    for number in (entry.number, *entry.also)
    if source == "mazurek2025"
}


@pytest.mark.parametrize("number", PRINTED)
def test_equations_1_to_45_are_as_printed(number):
    entry, known = BY_NUMBER[number], {"batch": B, "context": S}
    assert entry.function(V3, *(known[name] for name in entry.arguments)) == PRINTED[number]


def test_equations_46_to_51_are_as_printed_and_all_51_numbers_are_listed_once():
    call = {number: entry.function for number, entry in BY_NUMBER.items()}
    assert call["46"](2.0, 3.0) == call["47"](3.0, 2.0) == 3.0
    assert call["48"](1.0, 2.0, 4.0) == 7.0
    assert call["49"](1.0, 2.0, 4.0) == 8.0 and call["49"](1.0, 2.0, 2.0) == 6.0
    assert mz.section_3_time(1.0, 2.0, 4.0) == 4.0
    assert call["50"](0.05) == 20.0 and call["51"](0.05, 640) == 12800.0
    # on symbols equation 49 has its kink where computation and network take equally long
    a, e, n = sp.symbols("a e n", positive=True)
    expression = mz.overlapped_time(a, e, n)
    assert expression.subs(n, a + e) == 2 * (a + e)
    assert eq.active_experts(V3, sp.Symbol("N")).subs("N", 2) == 15.75
    table = audit.equations("mazurek2025")
    numbers = [int(n) for n in table.number if n.isdigit()]
    assert sorted(numbers) == list(range(1, 52))
    assert {n for n in table.number if n and not n.isdigit()} == {"3.2.1, score", "3.2.1, output"}
    assert set(table[table.form == "empty"].number) == {"24", "42"}


def test_the_factor_2_is_all_that_corrected_flops_change_and_decode_is_prefill_of_one_token():
    """Every projection meets a token once, in both variants: two FLOP for each byte of the eight matrices."""
    twice = ("value_flops", "absorbed_value_flops", "decode_absorbed_value_flops")
    once = ("score_flops", "absorbed_score_flops", "decode_absorbed_score_flops", "key_up_flops")
    for name in twice + once:
        function = getattr(eq, name)
        assert function(V3, B, S, FIXED) == (2 if name in twice else 1) * function(V3, B, S), name
    # 2 (128 + 64) + 2 x 128 for each head in place of 2 (128 + 64) + 128
    assert eq.decode_attention_flops(V3, 1, 1, FIXED) == 128 * 640
    linear = 2 * eq.layer_attention_weights(V3)
    for form, cores in (
        (eq.vanilla_decode_flops, (eq.decode_attention_flops,)),
        (eq.vanilla_prefill_flops, (eq.score_flops, eq.value_flops)),
        (eq.absorbed_decode_flops, (eq.decode_absorbed_score_flops, eq.decode_absorbed_value_flops)),
        (eq.absorbed_prefill_flops, (eq.absorbed_score_flops, eq.absorbed_value_flops)),
    ):
        assert form(V3, 1, 1) - sum(core(V3, 1, 1) for core in cores) == linear


@pytest.mark.parametrize("name", ["DeepSeek V3", "Kimi K2", "DeepSeek V2"])
def test_sizes_agree_with_the_shared_library(name):
    """An independent count: shapes and FLOP of the Transformer, which knows nothing of this source."""
    model, shared = mz.model_of(name), inferlib.load_model(name)
    counts = shared.parameters()
    assert eq.attention_weights(model) == pytest.approx(counts["attention"])
    assert eq.cache_per_token(model) == shared.cache_bytes(1, "bf16")
    parts, whole = shared.flops(4989), 61 if name != "DeepSeek V2" else 60
    core = sum(parts[part] for part in ("projections", "scores", "values"))
    assert whole * eq.absorbed_decode_flops(model, 1, 4989, FIXED) == pytest.approx(core)
    of_experts = ("experts", "shared experts", "router")
    assert model.n_expert_layers * eq.moe_flops(model, 1) == pytest.approx(sum(parts[p] for p in of_experts))
    assert eq.dense_flops(model, 1) == pytest.approx(parts["feed-forward"] + parts["head"])
    held = eq.experts_on_gpu(model, model.n_routed + model.n_shared)
    assert held == pytest.approx(sum(counts[p] for p in of_experts))
    assert eq.dense_weights(model) == pytest.approx(counts["feed-forward"])
    assert eq.embedding_weights(model) == pytest.approx(counts["embeddings"] + counts["head"])


def test_counts_of_others_memory_by_hand_and_the_room_in_it():
    # what the public simulator InferSim prints for DeepSeek V3 at 4989 tokens, to its digits
    cores = eq.decode_absorbed_score_flops, eq.decode_absorbed_value_flops
    assert sum(core(V3, 1, 4989, FIXED) for core in cores) / 1e9 == pytest.approx(1.39, abs=0.005)
    assert 2 * eq.layer_attention_weights(V3) / 1e9 == pytest.approx(0.37, abs=0.005)
    assert eq.cache_per_token(V3) / 1024 == pytest.approx(68.62, abs=0.01)
    assert eq.expert_weights(V3) / 2**20 == 42.0
    assert 9 * eq.expert_flops(V3, 1) / 1e9 == pytest.approx(0.79, abs=0.005)
    # by hand
    assert eq.layer_attention_weights(V3) == 187_105_280
    assert eq.cache_traffic(V3, 2, 99) == 2 * 100 * 2 * 576 * 61
    assert eq.attention_activations(V3, 2) == 2 * 2 * 7168 * 61
    assert eq.all_expert_activations(V3, 2) == 3 * 2 * 7168 * 61
    half, moved = mz.Deployment(4, balancedness=0.5), 3 * 8 * 7168 * 9 / 4 / 0.5
    assert eq.expert_activations(V3, half, 8) == pytest.approx(61 * moved)
    assert eq.expert_activations(V3, half, 8, FIXED) == pytest.approx(58 * moved)
    assert eq.router_weights(V3) == 7168 * 256
    assert eq.experts_on_gpu(V3, 5) == 58 * (5 * 44_040_192 + 7168 * 256)
    assert eq.dense_weights(V3) == 3 * 3 * 18432 * 7168 and eq.embedding_weights(V3) == 2 * 129280 * 7168
    total = eq.attention_weights(V3) + 8 * 70272 * 101 / 4 + 2 * 2 * 7168 * 61
    assert eq.attention_traffic(V3, mz.Deployment(4), 8, 100) == pytest.approx(total)
    own, weights = eq.largest_own_batch(V3, FOUR.gpu, 4989, 9), eq.weights_on_gpu(V3, 9)
    assert weights + own * 4989 * 70272 == pytest.approx(80e9)
    assert fits(V3, FOUR.gpu, FOUR.deployment, 32 * math.floor(own), 4989) == ""
    assert "cache of" in fits(V3, FOUR.gpu, FOUR.deployment, 32 * math.ceil(own), 4989)
    assert fits(V3, mz.chip_of("H100 SXM"), mz.Deployment(8), 8, 1).startswith("weights of 99 GB exceed")


def test_absorption_is_an_identity_in_numbers_and_saves_what_the_derivation_says():
    random = np.random.default_rng(0)
    heads, d_h, d_c, tokens = 4, 8, 16, 10
    up_k, up_v = random.normal(size=(2, heads, d_h, d_c))
    out, query = random.normal(size=(heads, 12, d_h)), random.normal(size=(heads, d_h))
    latent = random.normal(size=(tokens, d_c))
    scores = np.einsum("hd,hdc,tc->ht", query, up_k, latent)
    weight = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    vanilla = np.einsum("hod,hdc,tc,ht->o", out, up_v, latent, weight)
    absorbed_scores = np.einsum("hc,tc->ht", np.einsum("hd,hdc->hc", query, up_k), latent)
    mixed = np.einsum("ht,tc->hc", weight, latent)
    absorbed = np.einsum("hod,hd->o", out, np.einsum("hdc,hc->hd", up_v, mixed))
    np.testing.assert_allclose(absorbed_scores, scores, rtol=1e-12)
    np.testing.assert_allclose(absorbed, vanilla, rtol=1e-12)
    steps = [step.equation.rhs for step in derivations.absorption()]
    for one, other, difference in ((0, 2, 3), (4, 5, 6)):  # scores, then the output
        assert steps[difference] == 0 and steps[one] != steps[other]
        assert sp.expand(steps[one] - steps[other]) == 0
    ratio, at = float(derivations.absorption_saving().result), (V3, 1, 1e12, FIXED)
    assert eq.vanilla_decode_flops(*at) / eq.absorbed_decode_flops(*at) == pytest.approx(ratio, rel=1e-3)
    # (2 x 512 x 128 x 2 + 2 (192 + 128)) / (2 (576 + 512)), by hand
    assert ratio == pytest.approx((4 * 512 * 128 + 640) / 2176)


# --- Experts ----------------------------------------------------------------------------------------------
def test_experts_reached():
    """By hand, by drawing them, and at both ends."""
    by_hand = {1: 8, 2: 15.75, 4: 30.531006, 8: 57.420831, 16: 101.962162, 32: 163.313846, 128: 251.601146}
    for batch, reached in by_hand.items():
        assert mz.active_experts(V3, batch) == pytest.approx(reached, rel=1e-6)
    random = np.random.default_rng(1)
    for batch in (2, 16, 64):
        drawn = ([random.choice(256, 8, replace=False) for _ in range(batch)] for _ in range(100))
        found = [len(np.unique(chosen)) for chosen in drawn]
        assert np.mean(found) == pytest.approx(mz.active_experts(V3, batch), rel=0.03)
    assert mz.active_experts(V3.replace(n_active=256), 1) == 256
    assert mz.active_experts(V3, 1e6) == pytest.approx(256)
    assert mz.selection_probability(V3) == 1 / 32 and mz.never_selected(V3, 2) == (31 / 32) ** 2


def test_the_fullest_gpu_and_balls_into_bins_by_its_steps():
    table = fullest_by_formula(draws=300)
    assert (table.printed >= table["without replacement"]).all()
    assert (table["without replacement"] >= table.simulated - 0.15).all()
    assert table.simulated.max() <= 8 < table.printed.max()
    # a/n + sqrt(2 a ln n / n) by hand, at full activation on 32 GPUs
    assert mz.fullest_gpu_experts(mz.Deployment(32), 256) == pytest.approx(8 + math.sqrt(16 * math.log(32)))
    few, all_awake = (mz.fullest_gpu_experts_placed(V3, mz.Deployment(32), n) for n in (64, 256))
    assert all_awake == 8  # nothing is left to draw: every GPU has its eight
    assert few == pytest.approx(2 + math.sqrt(2 * 2 * 0.75 * math.log(32)))
    assert few < mz.fullest_gpu_experts(mz.Deployment(32), 64)
    # the variance of the derivation, against drawing experts at random
    variance = derivations.drawn_without_replacement()[2].equation.rhs
    at = {derivations.MODEL.n_routed: 256, derivations.N: 32, derivations.left("active"): 64}
    random = np.random.default_rng(3)
    drawn = [np.bincount(random.choice(256, 64, replace=False) // 8, minlength=32) for _ in range(2000)]
    assert float(variance.subs(at)) == pytest.approx(np.var(drawn), rel=0.02)
    assert derivations.balls_into_bins()[4].equation.rhs.subs(derivations.N, sp.E**2) == 2


def test_experts_held_loaded_and_balanced():
    assert [mz.held_experts(V3, s.deployment) for s in (FOUR, NINE, RACK)] == [9, 5, 7]
    assert mz.held_experts(V3, mz.Deployment(32, extra_experts=31)) == 9
    for at in (FOUR, NINE, RACK):
        full = mz.loaded_experts(V3, at.deployment, 1e6)
        assert full == mz.held_experts(V3, at.deployment) > mz.loaded_experts(V3, at.deployment, 2)
        assert mz.loaded_experts(V3, at.deployment, 1e6, mz.Assumptions.uncapped()) > full
    one = 1 + 8 / 32 + math.sqrt(2 * 8 / 32 * math.log(32))
    assert mz.loaded_experts(V3, FOUR.deployment, 1) == pytest.approx(one)
    assert mz.expert_balancedness(1.0, 4.0) == 0.25
    assert mz.imbalanced_load(mz.Deployment(8, balancedness=0.5), 3.0) == 6.0
    assert mz.shared_expert_load(V3, 16) == pytest.approx((1 + 9 / 16) / (9 / 16))
    assert mz.shared_expert_load_corrected(V3, 16) == pytest.approx(1.5 / 0.5625)
    assert 0.8 < mz.balancedness(48) < 0.809 == mz.balancedness(72) == mz.balancedness(200)
    assert mz.balancedness(64, balanced=False) == 0.476


# --- Network ----------------------------------------------------------------------------------------------
# 40 GB/s over the share that leaves a node of 11.8 MB a token, times the balancedness
CEILINGS = 40e9 / (0.75 * 11.805696e6) * 0.8, 40e9 / (8 / 9 * 11.805696e6) * 0.809


def test_the_network_by_hand():
    token = 3 * 9 * 7168 * 61
    assert eq.tokens_traffic(V3, 1) == token
    assert eq.tokens_traffic(V3, 1, FIXED) == 3 * 8 * 7168 * 58
    assert mz.link_traffic(V3, mz.Deployment(16), 32) == 2 * token
    assert mz.fullest_link_traffic(V3, mz.Deployment(16, balancedness=0.5), 32) == 4 * token
    assert eq.two_experts_traffic(V3, 8) == pytest.approx(2 * 8 * token / 9)
    assert mz.effective_bandwidth(50.0, 100.0, 4) == 25.0 and mz.effective_bandwidth(10.0, 100.0, 4) == 10.0
    assert mz.uniform_network_time(10.0, 5.0) == 2.0
    # links within and between nodes
    slow = FOUR.gpu.replace(intra_bandwidth=10e9)  # so much slower inside that it binds
    for gpu, nodes, longest in ((FOUR.gpu, 4, 0.75 / 50e9), (FOUR.gpu, 1, 1 / 450e9), (slow, 4, 0.25 / 10e9)):
        assert mz.slowest_link(gpu, mz.Deployment(8 * nodes, nodes)) == pytest.approx(longest)
    found = [mz.network_ceiling(V3, at.gpu, at.deployment) for at in (FOUR, NINE)]
    assert found == pytest.approx(CEILINGS)
    printed, right = systems.corrected_ceiling("9x8 H100")
    assert right / printed == pytest.approx(61 * 9 / (58 * 8))


@given(some.floats(1, 1e5))
def test_no_batch_lifts_the_ceiling(own):
    for at in (FOUR, NINE, RACK):
        speed = mz.gpu_throughput(V3, at.gpu, at.deployment, own * at.deployment.n_gpus, 500)
        assert speed <= mz.network_ceiling(V3, at.gpu, at.deployment) * (1 + 1e-12)


def test_routing_that_knows_the_nodes():
    where, random = mz.Deployment(64, 8), np.random.default_rng(2)
    assert extensions.expert_messages(V3, where) == 9 * 7 / 8
    assert extensions.nodes_reached(V3, where, 4) == 4
    seen = np.mean([len(set(random.integers(0, 8, 8))) for _ in range(4000)])
    assert extensions.nodes_reached(V3, where, 8) == pytest.approx(seen, rel=0.02)
    assert extensions.node_messages(V3, where, 4) == 4 * 7 / 8
    assert extensions.local_messages(V3, 1) == 0 and extensions.local_messages(V3, 3) == 6
    table = extensions.routing()
    assert (table["ceiling, one for each node"] > table["ceiling, source"]).all()
    assert table["copies, source"].iloc[0] == 8 and list(table.index) == [2, 3, 4, 6, 9]
    assert table["ceiling, own node preferred"].is_monotonic_decreasing
    last = table.iloc[-1]  # nine nodes allowed: as the source has it
    assert last["own node preferred"] == last["copies, source"]


# --- The whole --------------------------------------------------------------------------------------------
def by_hand(own, n, nodes, beta, extra, bw, bf16, fp8, context, two_batch=True):
    """The whole model once more with plain numbers, printed reading: tokens/s of a GPU."""
    b = own / (2 if two_batch else 1)
    batch = b * n
    active = 256 * (1 - (31 / 32) ** batch)
    fullest = active / n + math.sqrt(2 * active * math.log(n) / n) + 1
    loaded = min(math.ceil((257 + extra) / n), fullest)
    attention_bytes = 61 * 187_105_280 + b * (context + 1) * 70272 + 2 * b * 7168 * 61
    attention_flop = b * 61 * (374_210_560 + 212_992 * context)
    expert_bytes = 58 * (44_040_192 * loaded + 1_835_008) + 3 * batch * 7168 * 61 * 9 / (beta * n)
    expert_bytes += 9 * 18432 * 7168 + 2 * 129280 * 7168
    expert_flop = 58 * (6 * batch * 7168 * 2048 * 9 / (beta * n) + 2 * batch * 7168 * 256 / n)
    t = max(2 * attention_bytes / bw, 1.65 * attention_flop / bf16)
    t += max(2 * expert_bytes / bw, 1.43 * expert_flop / fp8)
    link = 1 / 450e9 if nodes == 1 else max((nodes - 1) / nodes / 50e9, 1 / nodes / 450e9)
    sent = 1.25 * 3 * batch * 7168 * 61 * 9 / (beta * n) * link
    return own / (2 * max(t, sent) if two_batch else t + sent)


@pytest.mark.parametrize("two_batch", [True, False])
@pytest.mark.parametrize("context", [500, 4989, 32768])
@pytest.mark.parametrize("own", [1, 16, 128, 1024])
def test_the_whole_model_by_hand(own, context, two_batch):
    h100 = 3.35e12, 989.5e12, 1979e12
    for at, n, nodes, beta, extra in ((FOUR, 32, 4, 0.8, 0), (NINE, 72, 9, 0.809, 32)):
        where = at.deployment.replace(two_batch=two_batch)
        expected = by_hand(own, n, nodes, beta, extra, *h100, context, two_batch)
        assert mz.gpu_throughput(V3, at.gpu, where, own * n, context) == pytest.approx(expected, rel=1e-9)


def test_numbers_of_an_independent_implementation():
    """Tokens per second and GPU of a first re-implementation of the source, rounded to whole numbers."""
    table = {
        (1, 4989): (22, 30, 61), (32, 4989): (617, 807, 1671), (128, 4989): (1758, 2112, 4581),
        (256, 4989): (2539, 2890, 6455), (64, 2000): (1260, 1658, 3419), (256, 2000): (3614, 3087, 9765),
    }  # fmt: skip
    for (own, context), row in table.items():
        for at, expected in zip((FOUR, NINE, RACK), row, strict=True):
            speed = mz.gpu_throughput(V3, at.gpu, at.deployment, own * at.deployment.n_gpus, context)
            assert speed == pytest.approx(expected, rel=2e-3, abs=0.5)


def test_memory_bound_is_a_property_of_chip_and_factor():
    factor = mz.Assumptions(value_flop=2.0)
    for chip, printed, right in (("H100 SXM", 1850, 2757), ("B200", 2053, 3231), ("H200", 4957, 40338)):
        gpu = mz.chip_of(chip)
        assert derivations.compute_bound_context(V3, gpu) == pytest.approx(printed, rel=3e-3)
        assert derivations.compute_bound_context(V3, gpu, factor) == pytest.approx(right, rel=2e-2)
    assert derivations.compute_bound_context(V3, mz.chip_of("H20")) == math.inf
    # the derivation's own expression, at the H100's numbers
    sizes = ("d_model", "n_heads", "nope_dim", "value_dim", "rope_dim", "kv_rank", "q_rank")
    values = {getattr(derivations.MODEL, f): getattr(V3, f) for f in sizes}
    values |= {derivations.CHIP.bf16_flops: 989.5e12, derivations.CHIP.memory_bandwidth: 3.35e12}
    step = derivations.attention_compute_bound()[3].equation.rhs
    found = float(step.subs(values | {derivations.PROJECTIONS: 2 * 187_105_280}))
    assert found == pytest.approx(derivations.compute_bound_context(V3, FOUR.gpu, factor), rel=1e-6)
    for context, more in ((0.9 * found, True), (1.1 * found, False)):
        args = V3, FOUR.gpu, mz.Deployment(1), 1e9, context, factor
        arithmetic, memory_time = (f(*args) for f in (eq.attention_arithmetic_time, eq.attention_memory_time))
        assert (arithmetic > memory_time) == more


def test_attention_outweighs_the_experts_and_overlap_reads_weights_twice():
    assert outweighing() == derivations.attention_outweighs().result == 64 < outweighing(K2)
    held = mz.held_experts(K2, mz.Deployment(outweighing(K2) + 1))
    assert eq.experts_on_gpu(K2, held) < eq.attention_weights(K2)
    for at in (FOUR, NINE):
        one = at.deployment.replace(two_batch=False)
        tiny = at.deployment.n_gpus * 1e-3
        ratio = mz.step_time(V3, at.gpu, at.deployment, tiny, 10) / mz.step_time(V3, at.gpu, one, tiny, 10)
        assert 1.95 < ratio < 2  # but for experts, of which half a batch wakes fewer
    assert 1.8 < systems.best_overlap_gain()[0] < 2


def test_overhead_enters_where_it_is_told_to_and_corrections_change_what_they_say():
    base = mz.Assumptions()
    # at 2000 tokens, bound by the network: twice a layer with overlap, unless hidden; else once
    for two_batch, hidden, times in ((True, False, 2), (True, True, 0), (False, False, 1), (False, True, 1)):
        args = V3, NINE.gpu, NINE.deployment.replace(two_batch=two_batch), 72 * 256, 2000
        more = base.replace(overhead=1e-4, overhead_hidden=hidden)
        plain, late = (mz.step_time(*args, a) for a in (base, more))
        assert late == pytest.approx(plain + times * 61 * 1e-4, rel=1e-9)
    work, less = (eq.expert_arithmetic_time(V3, NINE.gpu, NINE.deployment, 9216, a) for a in (FIXED, base))
    dense = 2 * (9216 / 72) * 7168 * (9 * 18432 + 129280)
    assert work - less == pytest.approx(1.43 * dense / 1979e12)
    assert systems.section_3_ratio() > 1.9
    assert 0 < systems.value_flop_effect() < 0.01
    assert systems.head_batch() == pytest.approx(2 * 2 * 1979e12 / (2 * 1.43 * 3.35e12), rel=1e-6)


# --- decode_step ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("two_batch", [True, False])
@pytest.mark.parametrize("batch", [72, 72 * 256, 72 * 1024])
def test_stages_add_up_to_the_step(batch, two_batch):
    where, late = NINE.deployment.replace(two_batch=two_batch), mz.Assumptions(overhead=1e-4)
    for assumptions in (mz.Assumptions(), FIXED, late, late.replace(overhead_hidden=True)):
        args = V3, NINE.gpu, where, batch, 2000, assumptions
        assert inferlib.Breakdown(stages(*args)).total == pytest.approx(mz.step_time(*args), rel=1e-12)


def box(chip="H200", count=8):
    return inferlib.System(inferlib.load_chip(chip), count)


def work(batch=32, context=4096, **formats):
    return inferlib.Workload(batch, context, **({"weights": "fp8"} | formats))


def test_decode_step_answers_or_says_when_the_source_is_silent():
    step = mz.decode_step(SHARED, box(), work())
    assert step.feasible and step.binding == "expert weights" and audit.explain(step).parts
    assert mz.decode_step(SHARED, box(), work(), two_batch=False).total < step.total
    assert mz.decode_step(SHARED, box("H100 SXM"), work()).status == "infeasible"
    assert mz.decode_step(SHARED, box(count=16), work()).total < step.total
    short = mz.decode_step(SHARED, box(), work(cache="fp8"))
    assert short.terms["cache"] == pytest.approx(step.terms["cache"] / 2)
    # nine boxes: as few copies as make every GPU hold equally many, which is what SGLang did
    wide = mz.decode_step(SHARED, box("H100 SXM", 72), work(72 * 128, 4989))
    assert wide.total == pytest.approx(mz.step_time(V3, NINE.gpu, NINE.deployment, 72 * 128, 4989))
    assert mz.decode_step(SHARED, box(), work(), inferlib.Layout(ep=8, dp=8)).total == step.total
    for model, system, layout, reason in (
        ("Mixtral 8x7B", box("H100 SXM"), None, "latent attention only"),
        ("DeepSeek V3", box(), inferlib.Layout(tp=8), "spreads experts over all 8"),
        ("DeepSeek V3", box("A100 80GB"), None, "no fp8 peak"),
        ("DeepSeek V3", box("H200", 12), None, "not a multiple of 8"),
    ):
        step = mz.decode_step(inferlib.load_model(model), system, work(), layout)
        assert step.status == "n/a" and reason in step.reason, reason


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: mz.decode_step(SHARED, box(), work(), two_batch=1), TypeError, "two_batch"),
    (lambda: mz.model_of("Llama 3 70B"), ValueError, "latent attention"),
    (lambda: mz.model_of(3), TypeError, "model is a int"),
    (lambda: mz.chip_of("A100 80GB"), ValueError, "no fp8 peak"),
    (lambda: mz.chip_of(1.0), TypeError, "chip is a float"),
    (lambda: mz.setup("9x8 H200"), LookupError, "did you mean '9x8 H100'"),
    (lambda: mz.deployment(2.5), ValueError, "n_gpus is 2.5"),
    (lambda: mz.deployment(8, 9), ValueError, "n_nodes is 9"),
    (lambda: mz.Deployment(8, balancedness=1.2), ValueError, "balancedness is 1.2"),
    (lambda: mz.Deployment(8, two_batch="yes"), TypeError, "two_batch"),
])  # fmt: skip
def test_doors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_any_relative_from_a_config():
    config = {
        "model_type": "deepseek_v3", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 4,
        "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 1000, "tie_word_embeddings": False,
        "q_lora_rank": 256, "kv_lora_rank": 128, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 48,
        "first_k_dense_replace": 1, "moe_layer_freq": 1, "n_routed_experts": 16, "n_shared_experts": 2,
        "num_experts_per_tok": 4, "moe_intermediate_size": 512, "attention_bias": False, "topk_method": "noaux_tc",
        "num_nextn_predict_layers": 0,
    }  # fmt: skip
    model = mz.model_of(inferlib.load_model(config))
    assert (model.nope_dim, model.value_dim, model.used, model.n_dense_layers) == (64, 48, 6, 1)
    assert eq.output_weights(model) == 1024 * 8 * 48
    assert eq.key_up_weights(model) == 8 * 64 * 128 and eq.value_up_weights(model) == 8 * 48 * 128
    assert eq.value_up_flops(model, 1, 1) == 2 * 8 * 128 * 48
    assert eq.decode_attention_flops(model, 1, 1) == 8 * (2 * 96 + 48)
    assert mz.decode_step(inferlib.load_model(config), box(), work()).feasible


# --- What was printed -------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def card():
    return audit.scorecard("mazurek2025")


MISSED = {  # numbers that do not come out, and what the note says of where they come from
    ("Text 1", "cache of one token", "Qwen3 32B"): "163.84 KB would be 40 layers",
    ("Text 1", "cache of other models over DeepSeek's", ""): "",
    ("Figure 5", "shared experts", ""): "",
    ("Text 2.1", "parameters of expert layers", ""): "671 - 10, all but attention, is 661",
    ("Text 2.1", "share of expert layers", ""): "661 / 671 is 98.5%",
    ("Text 3", "share of expert weights", ""): "",
    ("Text 3.1.1", "attention weights of one layer", ""): "add up to 187.2",
    ("Text 3.1.2", "activations of one sequence", ""): "is 1.35",
    ("Text 3.1.2", "one expert", ""): "rounds to is 45",
}
NOTES = MISSED | {
    ("Text 3.4", "2x8 H100, shared expert on one GPU", "traffic over the others'"): "gives 2.78",
    ("Figure 14", "there 4x8 H100 is faster per GPU than 9x8 H100", ""): "5400 tokens, literal up to 4350",
    ("Figure 14", "there 9x8 H100 is bound by the network", ""): "up to 5950 tokens, literal up to 5250",
    ("Text 3.6", "agreement with measurements is reasonable", ""): "literally 9.7%",
}
LOOSE = {
    "active parameters grow nearly linearly with the batch", "more nodes make each node faster",
    "a token's traffic in a layer is d times all experts", "extra experts must be a multiple of the GPUs",
    "beyond that batch the model is loaded in full", "the head is always memory-bound",
    "the vocabulary is much larger than 100,000", "agreement with measurements is reasonable",
    "Kimi K2 is DeepSeek V3 with more experts", "Kimi K2 is slower", "the context matters little for decode",
}  # fmt: skip


def test_grades_of_numbers_and_claims_and_origins_of_the_slips(card):
    missed = card[card.kind.isin(["model", "derived"]) & (card.grade != "exact")]
    assert {(r.artefact, r.row, r.column) for r in missed.itertuples()} == set(MISSED)
    graded = card[card.kind == "claim"].set_index("row").grade
    (wrong,) = graded.index[graded == "does not hold"]
    assert wrong == "balls into bins works fairly well where many experts are active"
    assert set(graded.index[graded == "loosely worded"]) == LOOSE
    notes = card.set_index(["artefact", "row", "column"]).note
    for place, words in NOTES.items():
        assert words in notes[place], place


def test_every_number_of_the_text_and_of_table_1_has_a_row(card):
    """The numerals of the source, in its order, all stand in the ledger; Table 1 is the catalogue's model."""
    printed = {str(value).replace(",", "") for value in card.printed}
    numbers = (
        "671000000000.0 37000000000.0 8 61 3 58 256 257 1 70 163 516 2-7 7168 2048 3.5 28672 8192 18432 512 163840 "
        "128 1536 64 129280 661000000000.0 98.5 72 9 32 10 2 11.0 25.2 12.6 3.7 8.4 0.5 117.4 187.2 11.4 0.9 1.4 "
        "14.7 45 132 396 1.2 31 1.9 0.0118 450 50 400 25 900 2.7 16 40 1.25 66 1.5 1550 1980 1.3 2.0 48 4 12 1024 20 "
        "32768 279 4989 56.3"
    )
    assert set(numbers.split()) <= printed
    table = card[card.artefact == "Table 1"].set_index("row").printed
    assert set(table.index) == set(TABLE_1)
    for row, (*_, field) in TABLE_1.items():
        assert table[row] == getattr(V3, field), row


def test_errata(card):
    table = audit.errata("mazurek2025")
    text = " ".join(table.to_numpy().ravel())
    numbers = "15.4|656.6B|97.8%|187.1 MB|1.31 MB|44.0 MB|98.0%|262 KB|327.68|2.67|-23.5%|18%|24.7%|9.7%"
    assert [number for number in numbers.split("|") if number not in text] == []
    assert set(table.materiality) == {"changes a number", "wording"}
    remarks = " ".join(audit.notes("mazurek2025").to_numpy().ravel())
    for number in ("11.41 GB", "826", "28.9%", "1.94"):
        assert number in remarks, number
    wrong = card[(card.right == "no") & (card.kind != "claim")]
    assert set(wrong.artefact) == {"Text 3.3", *(artefact for artefact, *_ in MISSED)}


# --- Against measurements ---------------------------------------------------------------------------------
def test_the_compensating_error_and_the_overhead():
    at_quoted, at_true = (validation.rms(validation.compared(s).values()) for s in (4989, 2050))
    assert at_quoted == pytest.approx(0.074, abs=0.001) and at_true == pytest.approx(0.46, abs=0.01)
    scan = validation.scan().rms
    assert 5000 < scan.idxmin() < 6000 and scan.min() == pytest.approx(0.053, abs=0.001)
    # by hand: 1373 tokens/s against SGLang's 1285
    assert validation.compared(4989)["9x8 H100", 64] == pytest.approx(1373 / 1285 - 1, abs=0.002)
    found = repair.fitted()
    assert 80e-6 < found.overhead < 105e-6
    before, after = (validation.errors(validation.H100, a).values() for a in (mz.Assumptions(), found))
    assert validation.rms(before) == pytest.approx(0.247, abs=0.002)
    assert validation.rms(after) < 0.06 and max(map(abs, after)) < 0.12
    table = repair.places().set_index(["overhead", "model"]).rms
    assert table["on top of both", "capped"] < table["may hide the network", "capped"]
    assert table["on top of both", "corrected"] < table["may hide the network", "corrected"]
    split = repair.cross_validation().iloc[1:]
    assert (split["rms on the others"] < 0.1).all() and (split["without overhead"] > 0.15).all()
    profile = repair.components().loc["other kernels, launches"]
    assert profile["two batches", "measured"] / 2 == pytest.approx(found.overhead * 1e3, rel=0.1)


def test_the_literal_reading():
    """Section 3.1.2 without a minimum: no context is fitted, none is needed on H100s, and no overhead helps."""
    found = repair.strongest()
    assert repair.fitted(assumptions=systems.READINGS["literal"]).overhead == 0
    errors = validation.compared(2050, systems.READINGS["literal"])
    # by hand: 3084 tokens/s at the network's ceiling against SGLang's 2782
    assert errors["9x8 H100", 256] == pytest.approx(3084 / 2782 - 1, abs=0.002)
    assert [errors["9x8 H100", own] for own in (64, 128)] == pytest.approx([-0.08, -0.01], abs=0.006)
    assert found.loc["literal", "12x4 B200 at 2050"] > 0.25  # and on the rack it stays off
    parts = repair.components().loc["experts", "two batches"]
    assert parts.literal > 1.9 * parts.measured and parts.capped < 1.2 * parts.measured
    best = validation.scan(systems.READINGS["literal"]).filter(like="9x8").pow(2).mean(axis=1).idxmin()
    assert 1000 < best < 2050


def test_what_would_decide_between_the_readings():
    """On the authors' machine, by hand: 32 sequences wake 8.89 experts literally, 512 more than a GPU holds."""
    own = readings.own_machine()
    literal = {}  # experts that the fullest of 32 GPUs reads literally, the shared one included
    for batch in (16, 256):
        awake = 256 * (1 - (31 / 32) ** batch)
        literal[batch] = awake / 32 + math.sqrt(2 * awake / 32 * math.log(32)) + 1
    assert literal[16] == pytest.approx(8.89, abs=0.005)
    assert own.iloc[0].max() / own.iloc[0].min() < 1.01
    # 7.4 more experts of 44 MB in 58 layers, twice read at half the peak: 23 ms on top of 46
    more = 58 * 2 * 2 * (literal[256] - 9) * 44_040_192 / 3.35e12
    for context in ("2050", "4989"):
        capped, other = own.loc[own.index[1], [f"{r}, {context} tokens" for r in ("capped", "literal")]]
        assert 1 / other - 1 / capped == pytest.approx(more, rel=0.01)
    assert own.iloc[-1]["capped, 4989 tokens"] == 23 and own.iloc[-1]["literal, 4989 tokens"] == 1
    bound = own.loc[own.index[3]]  # at 512, by the network
    assert bound["capped, 2050 tokens"] == pytest.approx(bound["literal, 2050 tokens"])
    # each clue names a side, and its numbers are those of the formulas: 9 held, 16.4 with all awake
    table = readings.clues()
    sides = table["speaks for"]
    assert (sides == "capped").sum() > (sides == "literal").sum() > 0
    text = " ".join(table.because)
    for number in ("16.4", "8.9 experts", "8,929", "279", "5,400", "4,350"):
        assert number in text, number


def test_measured_rows_are_taken_once_and_with_reason_and_every_point_is_over_its_measurement():
    data, errors = readings.over_measured(), readings.summary()
    assert len(data) == len(validation.H100) + len(validation.OTHERS["GB200"])
    # 3,084 tokens/s against SGLang's 2,782, in both readings, for the network binds
    both = data.loc[("72 H100s", "two-batch overlap", 256.0)].iloc[0][["capped", "literal"]].to_list()
    assert both == pytest.approx([3084 / 2782] * 2, abs=0.03)
    h100, rack = errors.loc["72 H100s"], errors.loc["GB200 rack"]
    assert h100.idxmin() == "capped + overhead" and h100["literal"] < 0.1 < h100["literal + overhead"]
    assert rack.min() > 0.25  # on the rack nothing helps
    # rows are taken once, and left out with a reason
    table = validation.measured()
    used = [*validation.H100, *(i for ids in validation.OTHERS.values() for i in ids)]
    assert len(set(used)) == len(used) == 25
    # whatever can be compared is compared
    assert set(used) == set(table.index[table.why_not == ""]) and len(validation.not_comparable()) == 4
    for row, name, value in (
        ("ep-16", "balancedness", 0.476), ("ds-01", "balancedness", 1.0), ("ep-45", "extra_experts", 96),
        ("ep-23", "n_nodes", 1), ("ds-02", "n_nodes", 9), ("ep-08", "two_batch", False),
    ):  # fmt: skip
        assert getattr(validation.placed(table.loc[row]), name) == value, row
    contexts = table.mean_context.loc[["ds-02", "ep-14", "ep-15", "ep-38", "ds-04"]]
    assert list(contexts) == [2050, 1500, 1250, 3000, 4989]


def test_predictions_trends_and_what_is_harmless():
    table = repair.predictions().set_index("system")
    first = table.loc["DeepSeek production"]
    assert first.capped == pytest.approx(0.04, abs=0.01) and first["with overhead"] < -0.1
    assert first.literal == pytest.approx(-0.18, abs=0.01)
    assert table.loc["Kimi K2"].capped == pytest.approx(0, abs=0.01)
    assert table.loc["DeepSeek profile"].capped == pytest.approx(0.11, abs=0.01)
    assert (table.loc["GB200"].capped > 0.6).all() and (table.loc["vLLM H200"].capped > 0.4).all()
    assert table.loc["without balancing"].capped > 0.6
    bound = repair.predictions().query("bound == 'network'").index
    assert {"ds-02", "ep-38", "ep-45"} <= set(bound) and "ep-08" not in bound
    table = repair.trends()
    ratio = table.loc["vLLM, 96 over 32 GPUs"]
    assert ratio.capped < ratio.measured < 1
    assert table.loc["experts balanced over not"].measured > table.loc["experts balanced over not"].capped > 1
    gain = repair.overlap_gain()
    assert (gain.loc[[128, 256]].measured > 1).all() and (gain.loc[[2, 8, 32, 64]].measured < 1).all()
    assert gain.capped[64] > 1 > gain["with overhead"][64] and gain["with overhead"][128] > 1
    assert gain.literal[64] < 1 < gain.literal[128]
    table = systems.choices()
    for name in ("the factor 2 of equation 36", "FLOP of dense layers and head", "no 10 % penalty"):
        assert table.loc[name].sub(1).abs().max() < 0.01, name
    for name in ("a context of 2000 tokens", "cache in FP8", "memory factor 1", "58 layers and 8 messages"):
        assert table.loc[name].sub(1).abs().max() > 0.1, name


# --- Figures and extensions -------------------------------------------------------------------------------
def test_figures_15_to_17():
    for name, expected in zip(mz.setups(), (23, 79, 368), strict=True):
        own, at = systems.largest_batch(name, 20.0), mz.setup(name)
        assert own == expected
        users = (own * at.deployment.n_gpus, (own + 1) * at.deployment.n_gpus)
        fast, slow = (1 / mz.step_time(V3, at.gpu, at.deployment, n, 4989) for n in users)
        assert fast >= 20 > slow
    assert systems.largest_batch("4x8 H100", 1000.0) == 0
    assert (figures.figure_17_data()["by memory"] > figures.figure_17_data()["by speed"]).all()
    data = figures.curves()
    assert float(data.gpu.sel(setup="9x8 H100")[-1]) == pytest.approx(3083.7, abs=0.1)
    np.testing.assert_allclose(data.request * data.own, data.gpu, rtol=1e-12)
    ratio = figures.figure_15_data().sel(reading="its configuration", setup="4x8 H100")
    assert float(ratio.sel(own=64, method="nearest")) == pytest.approx(0.89, abs=0.01)
    growth = figures.figure_16_data()
    assert float(growth.prefill[-1]) > float(growth.decode.max()) and growth.attrs["fitting"] > 1
    assert float(growth.decode.sel(own=8)[-1]) == pytest.approx(1.24, abs=0.01)
    assert len(figures.measured_points()) == 7


def test_timeline_and_drawings_are_the_step():
    for own in (32, 128, 512):
        bars = drawings.timeline_data(V3, NINE, own, 4989)
        for plan, two_batch in (("one batch", False), ("overlap", True)):
            where = NINE.deployment.replace(two_batch=two_batch)
            longest = 2 * mz.step_time(V3, NINE.gpu, where, own * 72, 4989) / 61 * 1e6
            ends = bars[bars.plan == plan].end.max()
            assert ends <= longest * (1 + 1e-9) and (two_batch or ends == pytest.approx(longest))
    layer = drawings.layer_data(V3, NINE, 128)
    assert layer["out"] == 128 * 9 * 7168 and layer["back"] == 2 * layer["out"] and layer["held"] == 5
    # figures 1 and 9
    tokens = drawings.two_tokens_data(V3)
    assert len(tokens["first"]) == len(tokens["second"]) == 8
    # an expert is 44.04 MB
    assert tokens["one"] == pytest.approx(8 * 44.04, rel=1e-3) and tokens["expected"] == 15.75
    times = drawings.prefill_decode_data(V3, NINE)
    assert times["cache"] == 4989 * 70272
    assert times["transfer"] == pytest.approx(7.0e-3, rel=0.01)  # 351 MB at 50 GB/s
    assert times["decode"] == pytest.approx(60.6e-3, rel=1e-3)


def test_wider_deployments_and_side_by_side():
    table = systems.wider()
    # (256 + extra + 1) / n, rounded up; one box does not even hold the weights
    assert list(table["experts a layer"]) == [33, 17, 9, 5, 3]
    assert list(table["sequences that fit"])[:3] == [0, 62, 121] and table["tokens/s at those"].iloc[0] == 0
    assert table["tokens/s at 128"][72] == pytest.approx(2111.7, abs=0.1)
    assert table["tokens/s at those"].is_monotonic_increasing
    at_ceiling = systems.wider(own=1024, context=500, counts=(72,))["tokens/s at 1024"][72]
    assert at_ceiling == pytest.approx(CEILINGS[1])
    assert 2 < table["tokens/s at those"][72] / table["tokens/s at those"][16]
    table = extensions.side_by_side()
    assert list(table.index) == list(extensions.SIDE_BY_SIDE)
    for _, row in table.iterrows():
        own, request = row["batch of a GPU"], row["tokens/s of a request"]
        assert row["tokens/s of a GPU"] == pytest.approx(own * request) and request >= 20
    h100 = table.loc["H100 SXM"]
    dollars = inferlib.load_chip("H100 SXM").price / 3600 / h100["tokens/s of a GPU"] * 1e6
    assert h100["$ per million tokens"] == pytest.approx(dollars)
    assert table.loc["H20", "$ per million tokens"] == ""
    roomy = extensions.room()
    own = roomy.loc["H100 SXM", "at 4,989 tokens"]
    gpu, where = mz.chip_of("H100 SXM"), mz.deployment(64, 8)
    assert fits(V3, gpu, where, 64 * own, 4989) == "" != fits(V3, gpu, where, 64 * (own + 1), 4989)
    assert (extensions.limited_curves().ratio < 1).all()
