"""LIMINAL 2025: the printed cells, counts by hand, limits, a second way, and what the digits exclude."""

import math

import pytest
import xarray as xr
from facts import by_hand, from_table, refused

import inferlib
from book import audit
from book.papers.liminal2025 import (
    ablation,
    cells,
    efficiency,
    experts,
    figures,
    grid,
    speeds,
    study,
)
from inferlib.papers import liminal2025 as lim
from inferlib.papers.liminal2025 import derivations

HBM3 = lim.load_chip("HBM3")
MODELS = {name: lim.transformer(name) for name in lim.models()}
APPS = {name: lim.load_model(model) for name, model in MODELS.items()}
FIXED = lim.Assumptions.corrected()
BOX = inferlib.System(inferlib.load_chip("H100 SXM"), 8)
LLAMA, WORK = inferlib.load_model("Llama 3 70B"), inferlib.Workload(batch=32, context=4096)


# --- The printed cells -----------------------------------------------------------------------------------
def test_the_14_cells_that_were_drawn_at_random_lie_within_half_the_spread_of_one_draw():
    card = audit.scorecard("liminal2025", "Table 4").query("grade != 'exact'")
    for row in card.itertuples():
        context = cells.CONTEXTS[row.column.split()[1]] * 1024
        one = experts.intensity_spread(APPS[row.row], experts.batch_of(row.column), context)
        assert abs(row.relative_error) < one / 2, (row.row, row.column)


# --- Counted by hand -------------------------------------------------------------------------------------
@from_table
def test_draws_of_experts_have_the_mean_and_the_spread_of_the_closed_form(n, k, batch):
    app = APPS["DeepSeekV3"].replace(n_experts=float(n), routed_share=k / n)
    reached = experts.simulate(n, k, batch, draws=4000, seed=7)
    expected, one = lim.active_experts(app, batch), experts.spread(app, batch)
    assert abs(reached.mean() - expected) < 4 * one / math.sqrt(len(reached))
    assert reached.std() == pytest.approx(one, rel=0.05)


def test_equation_4_charges_a_hundredth_of_what_was_fitted():
    same = derivations.with_overhead()[-1].equation.rhs
    each = lim.exposed_time(APPS["Llama3-70B"], 8, 1, lim.collective_latency(8)) / 80
    at = {derivations.symbol("collectives"): 160, derivations.APP.layers: 80, derivations.P: 1}
    at |= {derivations.T_TP: lim.collective_latency(8), derivations.ASSUMED.t_stage: 0}
    assert float(same.subs(at)) == pytest.approx(each) and 114e-6 / each == pytest.approx(130, abs=0.5)


EVERY_STAGE = lim.Assumptions(free_stages=0.0)
DENSE, BUSY = APPS["Llama3-70B"], lim.Assumptions(scalar_ops=5.0)


test_times_and_power_by_hand = by_hand("test_times_and_power_by_hand", globals())


KIMI = APPS["Kimi-K2"], lim.load_chip("3D-DRAM"), 7, 5000, 64


@from_table
def test_equations_6_and_7_are_the_experts_part_of_2_and_3(whole, of_experts):
    rest = KIMI[0].replace(expert=0.0), *KIMI[1:]
    assert whole(*KIMI) - whole(*rest) == pytest.approx(of_experts(*KIMI[:2], 7, 64))


# --- Limits and symmetries -------------------------------------------------------------------------------


def test_no_bandwidth_lifts_a_user_above_the_ceiling():
    endless = HBM3.replace(bandwidth=1e25, flops=1e30)
    for name in speeds.LARGE:
        speed = lim.user_speed(APPS[name], endless, 1, 4096, 128, 1, 2e-7)
        assert speed == pytest.approx(speeds.ceiling(name, 128), rel=1e-6)


def test_the_largest_batch_is_the_largest_that_fits():
    for name, n in [("Llama3-70B", 8), ("DeepSeekV3", 128), ("Llama4-Maverick", 8)]:
        batch = lim.largest_batch(APPS[name], HBM3, 131072, n)
        assert lim.capacity_needed(APPS[name], batch, 131072) <= n * HBM3.capacity
        assert lim.capacity_needed(APPS[name], batch + 1, 131072) > n * HBM3.capacity
    assert lim.largest_batch(APPS["Kimi-K2"], HBM3, 4096, 8) is None


# --- Readings --------------------------------------------------------------------------------------------
def test_low_rank_attention_and_windows_are_those_of_the_released_models():
    model, released = (
        MODELS["DeepSeekV3"],
        lim.PRINTED.replace(multiplied_out=False, **ablation.counted("router")),
    )
    low, counted = lim.load_model(model, released), model.parameters()
    outside = counted["norms"] + counted["embeddings"] + counted["head"] + 58 * 256  # biases of routers
    assert lim.stored_weights(low) == model.n_params - outside
    # windows cap cache and arithmetic
    local = lim.PRINTED.replace(whole_contexts=False)
    oss = lim.load_model(MODELS["GPT-OSS-120B"], local)
    assert lim.cache_size(oss, 128, local) == lim.cache_size(APPS["GPT-OSS-120B"], 128)
    grown = lim.cache_size(oss, 1128, local) - lim.cache_size(oss, 128, local)
    assert grown == 18 * 2 * 8 * 64 * 1000  # only half of the layers keep more


@pytest.mark.parametrize("name", lim.models())
def test_the_complete_reading_loads_what_the_library_counts(name):
    """A second count: bytes of a step by Transformer, which knows nothing of this paper."""
    complete, model = lim.Assumptions.complete(), MODELS[name]
    app = lim.load_model(model, complete)
    read = model.bytes_read(batch=32, context=50_000, weights="fp8", cache="fp8")
    assert lim.bytes_loaded(app, 32, 50_000, complete) == pytest.approx(sum(read.values()), rel=2e-5)
    assert lim.stored_weights(app, complete) == pytest.approx(model.n_params, rel=2e-5)
    flops = sum(model.flops(50_000).values())
    assert lim.tensor_work(app, 1, 50_000, complete) == pytest.approx(flops, rel=1e-3)


@from_table
def test_fitted_reading_is_equation_8(end, printed):
    fitted = lim.Assumptions.fitted(end).replace(weight_bytes=2.0, cache_bytes=2.0)

    step = lim.decode_step(LLAMA, BOX, WORK, assumptions=fitted)
    at = lim.load_model(LLAMA, fitted), lim.load_chip(BOX.chip, "bf16"), 32, 4096, 8
    assert step.total == pytest.approx(lim.real_time(*at, printed, fitted))


# --- The ablation ----------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def changed():
    """Each reading of the grid to how many of the 320 cells survive."""
    data = grid.CellGrid().data()
    return {name: len(data["cells"]) - len(wrong) for name, wrong in data["readings"]}


def test_every_change_costs_cells(changed):
    printed, *rest = changed.values()
    assert printed == ablation.survivors() > max(rest)


# --- Text, figures and tables ----------------------------------------------------------------------------
def test_a_marker_is_the_last_batch_within_the_loss_and_the_next_is_past_it():
    swept = efficiency.sweep("Llama3-70B", "3D-DRAM", 32768)
    batch, gain = efficiency.marker("Llama3-70B", "3D-DRAM", 32768)
    one = float(swept.utps[0])
    assert float(swept.utps.sel(batch=batch)) >= 0.9 * one > float(swept.utps.sel(batch=2 * batch))
    assert gain == pytest.approx(batch * float(swept.utps.sel(batch=batch)) / one)
    assert efficiency.marker("Llama3-70B", "3D-DRAM", 32768, beyond=True)[0] == 2 * batch


def test_at_the_energy_of_break_even_both_chips_are_as_efficient():
    energy = efficiency.break_even_energy("Kimi-K2", "HBM4", "HBM3")
    best = []
    for memory in ("HBM4", "HBM3"):
        speed = efficiency.sweep("Kimi-K2", memory, 128 * 1024).stps.max()
        best.append(float(speed / lim.chip_power(lim.load_chip(memory).bandwidth * energy)))
    assert best[0] == pytest.approx(best[1])


def test_pipelines_on_sram_share_the_memory_of_all_stages():
    swept = efficiency.sweep("Llama3-70B", "SRAM", 131072)
    stages, batch = swept.attrs["stages"], int(swept.batch[-1])
    memory = 80 * 128 * 512 * 2**20
    assert stages == 80 and batch == 3
    assert lim.capacity_needed(APPS["Llama3-70B"], batch * 80, 131072) <= memory
    assert lim.capacity_needed(APPS["Llama3-70B"], (batch + 1) * 80, 131072) > memory


@pytest.mark.parametrize("name", ["Llama3-70B", "Qwen3-235B"])
def test_the_layer_adds_up(name):
    layer, app = figures.layer(MODELS[name], 8), APPS[name]
    assert app.layers * 8 * layer.MB.sum() * 1e6 == pytest.approx(lim.bytes_loaded(app, 1, 4096))
    assert app.layers * 8 * layer.MFLOP.sum() * 1e6 == pytest.approx(lim.tensor_work(app, 1, 4096))
    assert app.layers * layer.collectives.sum() == lim.collectives(app, 8)


def four_systems():
    """Data of the story's first figure."""
    free = {"128 chips, 3D-DRAM": (128, lim.load_chip("3D-DRAM")), "128 chips, free memory": (128, None)}
    systems = {"8 chips, HBM3": (8, HBM3), "128 chips, HBM3": (128, HBM3)} | free
    return figures.timelines(APPS["Llama3-70B"], 4096, systems)


def test_free_memory_leaves_the_waiting():
    lines = four_systems()
    # 68.5 GB and the cache over 8 and 128 chips of 4 TB/s; one and five collectives of two operators
    read = (68.451e9 + 4096 * 163840) / 8 / 2**42 / 80 * 1e6
    assert lines.loc["8 chips, HBM3", "read"] == pytest.approx(read, rel=1e-4)
    assert lines.loc["128 chips, HBM3", "wait"] == pytest.approx(4 * 1.01035, rel=1e-5)
    assert lines.loc["128 chips, free memory", "UTPS"] == pytest.approx(1 / (320 * 1.01035e-6), rel=1e-4)
    assert lines.loc["8 chips, HBM3", "UTPS"] == pytest.approx(491, abs=0.5)  # Table 5


def test_the_design_turns_the_study_round():
    data = study.design(APPS["DeepSeekV3"], 128, 4096)
    for speed in study.SPEEDS:
        for i in (10, 100, 190):
            point = data.sel(speed=speed).isel(waiting=i)
            chip = HBM3.replace(bandwidth=float(point.bandwidth), flops=1e30)
            reached = lim.user_speed(APPS["DeepSeekV3"], chip, 1, 4096, 128, 1, float(point.latency))
            assert reached == pytest.approx(speed)


# --- decode_step -----------------------------------------------------------------------------------------
def test_running_question_by_hand():
    step, rate = lim.decode_step(LLAMA, BOX, WORK), 8 * 3.35e12
    assert step.terms["weights"] == pytest.approx(2 * 68.451e9 / rate, rel=1e-4)
    assert step.terms["cache"] == pytest.approx(32 * 4096 * 327680 / rate)
    assert step.terms["network"] == pytest.approx(160 * 438.147e-9, rel=1e-5)
    assert step.overlapped == {"arithmetic": step.terms["arithmetic"]}
    assert step.total == pytest.approx(step.terms["weights"] + step.terms["cache"] + step.terms["network"])


def test_decode_step_agrees_with_the_equations_and_sweeps():
    work = inferlib.Workload(batch=4, context=2048, weights="fp8", cache="fp8")
    pod = inferlib.System(BOX.chip, 16, domain=8)
    step = lim.decode_step(LLAMA, pod, work, inferlib.Layout(tp=8, pp=2))
    at = lim.load_model(LLAMA), lim.load_chip(BOX.chip), 4, 2048, 8, 2, lim.collective_latency(8)
    assert step.total == pytest.approx(lim.batch_time(*at))
    assert step.terms["pipeline"] == pytest.approx(100e-9)
    batch = xr.DataArray([1, 8, 64], dims="batch")
    swept = lim.decode_step(LLAMA, BOX, inferlib.Workload(batch, 1024)).total
    alone = [lim.decode_step(LLAMA, BOX, inferlib.Workload(b, 1024)).total for b in (1, 8, 64)]
    assert swept.values.tolist() == pytest.approx(alone)


# --- Doors -----------------------------------------------------------------------------------------------
test_argument_checks = refused(globals())


def test_latent_attention_without_a_query_latent_cannot_be_multiplied_out():
    shapes = inferlib.transformer
    attention, block = shapes.LatentAttention(16, 512, 128, 64, 128), shapes.FeedForward(1000)
    small = inferlib.Transformer(2048, 100, (shapes.Layers(2, attention, block),))
    with pytest.raises(ValueError, match="no latent of queries"):
        lim.load_model(small)
    assert lim.load_model(small, FIXED).latent_layers == 2
