"""Attention that chooses, pools or keeps a state: timings of the tables, measured serving rows, limits."""

import math
from collections import Counter, defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from facts import from_table, lines
from questions import request as asked_request, step as estimate

from book.serving import sparse_attention_rows
from inferlib import Layout, System, Workload, load_chip
from tokenprice import Question, ask, calibration, catalog, change, energy, load_model, sparse_attention
from tokenprice.decode import ShardedModel, step
from tokenprice.deployment import Deployment, decode_step
from tokenprice.listing import models as listed
from tokenprice.uncertainty import error_bar, facts, load_calibration

V32, GLM, GLM52 = map(load_model, ("deepseek-ai/DeepSeek-V3.2", "zai-org/GLM-5", "zai-org/GLM-5.2"))
V3 = load_model("DeepSeek V3")
PRO = load_model("sgl-project/DeepSeek-V4-Pro-FP8")
QWEN, M3 = map(load_model, ("Qwen/Qwen3.5-397B-A17B", "nvidia/MiniMax-M3-NVFP4"))
NANO = load_model("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16")
SERVED = catalog.all_models()


def endless(chip, count):
    return System(load_chip(chip).replace(memory_capacity=None), count)


def seconds(ops):
    return sum(sum(op.terms(1).values()) for op in ops)


def laid(model, machine, work, engine=None, **prompt):
    return ShardedModel(
        Deployment.of(model, machine, work, engine=engine), work.batch, work.context, **prompt
    )


def mixer(model, chip, tp, engine, workload, wanted, **prompt):
    """Seconds of one layer's attention alone, as the tables time it: without all-reduces, norms and the block."""
    attention = next(g.attention for g in model.layers if wanted(g.attention))
    at = laid(model, endless(chip, tp), workload, engine, **prompt)
    return seconds(sparse_attention.sparse(at, attention))


BLOCKS = {"sparse": lambda a: a.indexer is not None, "pools of 128": lambda a: a.ratio == 128}
NEAR = {"step": 0.15, "prompt": 0.2}


@pytest.mark.parametrize("cell", lines("block_timings"), ids=" ".join)
def test_blocks_take_what_the_tables_say(cell):
    """Cells of aiconfigurator 0.12.0, systems/data/<chip>/{sparse_attention,msa}/<engine>/<version>, read by eye.

    Milliseconds of one block: of a step by sequences and positions in the cache, of prompts by sequences and tokens.
    """
    phase, model, chip, tp, engine, format, block, *numbers = cell
    batch, tokens, ms = map(float, numbers)
    work = Workload(batch, tokens + (phase == "step"), format, format)
    prompt = {"cached": 0, "tokens": tokens} if phase == "prompt" else {}
    found = mixer(load_model(model), chip, int(tp), engine, work, BLOCKS[block], **prompt)
    assert 1e3 * found == pytest.approx(ms, rel=NEAR[phase])


def test_hyper_connections_take_what_the_tables_say():
    """Cells of mhc_module_perf, B200, SGLang 0.5.14, width 7,168: both parts of a layer, before and after, in us."""
    for rows, us in {1: 20.6 + 8.5, 64: 22.7 + 10.4, 1024: 57.7 + 52.1}.items():
        at = laid(PRO, endless("B200", 8), Workload(rows, 1, "fp8"))
        assert 1e6 * seconds(sparse_attention.hyper_connections(at)) == pytest.approx(us, rel=0.25)


UNREAD = ("embeddings", "positions", "norms", "connections")


@pytest.mark.parametrize("name", [name for name in SERVED if "/" in name and "Step-3.7" not in name])
def test_every_weight_is_read_once(name):
    """One chip, 16 bits, and enough tokens to need every expert: the bytes read are all weights of the model."""
    model = load_model(name)
    at = laid(model, endless("B200", 1), Workload(1e5, 1))
    read = Counter()
    for count, op in step(at):
        if isinstance(op, sparse_attention.SparseAttentionBlock):
            read["attention"] += count * op.weights
        elif getattr(op, "kind", "") in ("gemm", "experts"):
            read[op.part] += count * op.bytes * op.many
    parts = {"router": 0} | model.parameters()
    parts["head"] = parts.get("head", parts["embeddings"])
    parts["router"] += parts.pop("latent", 0)  # at 16 bits like the router
    read.pop("streams", 0)
    wanted = {part: 2 * n for part, n in parts.items() if n and part not in UNREAD}
    assert read == pytest.approx(wanted, rel=0.015)


@from_table
def test_a_state_takes_what_the_tables_say(batch, us):
    """Cells of gdn_perf, B200, SGLang 0.5.14: 16 value heads of Qwen3.5-397B, that is four chips; one layer."""
    block = calibration.operators("B200").block("delta state", "serving")
    moved = 2 * batch * 16 * 128 * 128 * 4
    assert 1e6 * (block.start + moved / (block.share * 8e12)) == pytest.approx(us, rel=0.2)
    at = laid(QWEN, endless("B200", 4), Workload(batch, 1))
    ops = sparse_attention.delta_rule(at, QWEN.layers[0].attention)
    assert [op.bytes for op in ops if getattr(op, "kernel", None) == block] == [moved]


def test_the_convolution_of_a_prompt_reads_and_writes_each_input_once():
    """Qwen3.5-397B: queries and keys of 16 heads and values of 64, 128 numbers of two bytes each; state in 32 bits."""
    tokens, channels = 1000, (2 * 16 + 64) * 128
    at = laid(QWEN, endless("B200", 1), Workload(1, 1), cached=0, tokens=tokens)
    moved = [
        op.bytes for op in sparse_attention.delta_rule(at, QWEN.layers[0].attention) if op.part == "state"
    ]
    assert moved == [2 * 2 * channels * tokens, 2 * 64 * 128 * 128 * 4]


def test_the_layers_with_fewest_heads_say_how_finely_a_model_can_be_cut():
    """Qwen3.5-397B's config.json: 32 heads of attention, 64 of values in the layers that keep a state."""
    assert facts(Deployment(QWEN, endless("B200", 8)), 1, 1)["heads"] == 32


def test_a_cache_that_stops_growing_takes_the_same_time_at_any_context():
    """Layers with a state take the same time at 1,000 and a million positions; the others of Qwen3.5 do not."""
    box, work = endless("B200", 8), Workload(64, 1000, "fp8")
    states = QWEN.replace(layers=tuple(g for g in QWEN.layers if g.attention.kind == "delta rule"))
    for model, least, most in ((states, 1, 1), (QWEN, 2, 1e9)):
        short, long = (decode_step(model, box, work.replace(context=n)).total for n in (1e3, 1e6))
        assert least <= long / short <= most


def test_sparse_attention_grows_with_the_keys_of_its_indexer_only():
    """Beyond 2,048 positions another 132 bytes of a sequence, layer and position are read, not another 1,152.

    GLM-5 on eight H200: 81.5 us at 512 positions, 84.5 at 1,024, then 97.9 at 2,048, where 2,048 are chosen. 57 of
    GLM-5.2's 78 layers borrow an index: its cache takes what 21 indexers read, and all latents.
    """
    box, work = endless("H200", 8), Workload(8, 8192, "fp8")
    block = calibration.operators("H200").block("sparse", "serving", 7168, "fp8", "bf16")
    read = [decode_step(V32, box, work.replace(context=n)).terms["cache"] for n in (8192, 65536)]
    more = 8 * 61 * 132 * (65536 - 8192) / (block.share * 4.8e12)
    assert read[1] - read[0] == pytest.approx(more, rel=1e-9)
    work = Workload(16, 2048, "bf16")
    before, after = (
        mixer(GLM, "H200", 8, "serving", work.replace(context=n), BLOCKS["sparse"]) for n in (2048, 2049)
    )
    assert 2e-6 < after - before < 14e-6
    box, work = endless("B200", 8), Workload(8, 65536, "bf16")
    full, borrowed = (decode_step(model, box, work).terms for model in (GLM, GLM52))
    assert borrowed["cache"] < 0.6 * full["cache"]
    assert 0.2 < borrowed["selection"] / full["selection"] < 0.6
    # its prefill grows more slowly than with all pairs
    served, pairs = (Deployment(m, box, None, "fp8", "fp8") for m in (V32, V3)), "attention arithmetic"
    runs = [[one.prefill(n).terms[pairs] for n in (16384, 131072)] for one in served]
    chosen, every = (long / short for short, long in runs)
    assert chosen < 0.7 * every and every > 50


def test_a_state_is_kept_for_every_sequence_and_half_a_layer_is_half_a_layer():
    """Qwen3.5: 45 layers x 64 heads x 128 x 128 values of 4 bytes, 189 MB, beside a cache of 15 layers.

    Nemotron's letters have one part each: one all-reduce, and half of the engine's time for a layer.
    """
    box = System(load_chip("H200"), 8)
    served = Deployment(QWEN, box, weights="fp8")
    assert served.sequence(0) * 8 == pytest.approx(45 * 64 * 128 * 128 * 4, rel=0.02)
    assert served.max_sequences(1000) < 1.2 * served.max_sequences(1)
    box, work = System(load_chip("B200"), 2), Workload(8, 1000, "fp8")
    at = laid(NANO, box, work)
    assert at.layers == 26 and NANO.n_layers == 52
    latency = calibration.operators("B200").link(2).latency
    assert decode_step(NANO, box, work).terms["collective latency"] == pytest.approx(52 * latency)


@pytest.mark.parametrize("name", SERVED)
def test_every_model_of_the_list_answers(name):
    """On chips with memory enough; what a configuration lacks is the only excuse."""
    try:
        model = load_model(name)
    except ValueError as error:
        assert "is missing" in str(error)
        return
    answer = estimate(model, endless("B200", 1), Workload(8, 4096, "fp8"))
    assert 0 < answer.low < answer.seconds < answer.high
    if sparse_attention.measured_as(model):
        alike = "DeepSeek V3" if model.sparse else "Llama 3 70B"
        assert answer.high / answer.seconds >= error_bar(load_model(alike))["factor"]
        assert energy.busy(answer.step, answer.seconds)[0] > 0


def test_an_answer_says_what_it_lacks_and_what_must_change():
    def asked(model, chip, *formats):
        return estimate(model, endless(chip, 8), Workload(8, 4096, *formats))

    assert "the state of Mamba 2" in str(asked(NANO, "L40S", "fp8").warnings)
    own, borrowed = asked(M3, "H100 SXM"), asked(M3, "A100 80GB")
    assert "no serving run of nvidia/MiniMax-M3-NVFP4" in str(borrowed.warnings)
    # the caution is shown, and widens the interval
    assert "no timings of such attention on A100 80GB; using those of H100 SXM" in borrowed.warnings
    assert own.factor < borrowed.factor
    assert "such attention" not in str(asked(GLM, "H200").warnings)
    plain = load_model("Llama 3 8B")
    layer = plain.layers[0]
    odd = plain.replace(layers=(layer.replace(attention=layer.attention.replace(top=64)),))
    reason = decode_step(odd, endless("B200", 1), Workload(1, 100)).reason
    assert reason.startswith("no kernel timings of sparse")
    # what must change reaches blocks: launches that take no time leave no choice of positions, no start of a block
    box, work = endless("B200", 8), Workload(8, 8192, "fp8")
    now = decode_step(V32, box, work)
    found = change(Question(V32, box, batch=8, context=8192, weights="fp8"), tpot=0.5 * now.total)
    terms = now.terms
    left = now.total - terms["kernel launch"] - terms["selection"]
    assert found["kernel launch"].limit == pytest.approx(left - terms["expert kernels"], rel=1e-6)


# --- Serving rows ----------------------------------------------------------------------------------------------


def test_a_measured_row_lies_inside_its_interval():
    """Of all scored rows, and of a model that was left out of the factor, 75 % and more lie inside."""
    table = sparse_attention_rows.predicted()
    table = table[table.token.notna()]
    inside = defaultdict(list)
    for row in table.itertuples():
        layout = Layout(row.count_ // row.dp_attention, 1, 1, row.dp_attention)
        factor = error_bar(load_model(row.model), layout, "serving")["factor"]
        inside[row.model].append(1 / factor <= row.token <= factor)
    assert min(map(np.mean, inside.values())) >= 0.75, inside
    timed, left_out = table[table.kind == "timed"], []
    for model, own in timed.groupby("model"):
        others = timed[timed.model != model]
        logs = (
            math.log(sparse_attention_rows.factor(np.log(others.token), others.model)),
            math.log(load_calibration()["widen"]["experts"]),
        )
        factor = math.exp(math.hypot(*logs))
        left_out.append(own.token.between(1 / factor, factor).mean())
    assert np.mean(left_out) >= 0.75  # every model of the same weight, as in the factor


def test_a_request_of_such_a_model():
    box = System(load_chip("B200"), 8)
    found = asked_request(GLM, box, 7373, 922, 16, weights="fp8", kv_cache_dtype="fp8")
    assert 1e3 * found.tpot == pytest.approx(27.3, rel=0.25)  # InferenceX: 16 users of GLM-5, 8k in, 1k out
    assert found.first_factor == pytest.approx(error_bar(GLM)["first"])


def test_weights_of_four_bits_beside_activations_of_sixteen_are_multiplied_in_sixteen():
    """Qwen3.6 35B-A3B as NVIDIA stores it, on a B200, SGLang's cookbook: 142 ran at 27.9 ms a token; as fp4, 19 ms."""
    asked = {"prompt_tokens": 8192, "output_tokens": 1024, "concurrency": 142, "engine": "sglang"}
    found = ask("nvidia/Qwen3.6-35B-A3B-NVFP4", "B200", **asked)
    assert 1 < found.seconds / 27.9e-3 < 1.2


# --- The list --------------------------------------------------------------------------------------------------
def test_the_list_of_models():
    """As their cards say: R1 in 8 bits with 163,840 positions; Qwen3.6 27B is dense, W4A16, and keeps states."""
    rows = {row["model"]: SimpleNamespace(**row) for row in listed()}
    r1, qwen = rows["deepseek-ai/DeepSeek-R1"], rows["nvidia/Qwen3.6-27B-NVFP4"]
    assert (r1.kind, r1.format, r1.context, r1.beyond) == ("MLA; experts", "fp8", 163840, "")
    assert (qwen.kind, qwen.format, qwen.context) == ("delta rule and GQA; dense", "fp4 w4a16", 262144)
    assert r1.parameters == pytest.approx(671e9, rel=1e-3) and r1.active == pytest.approx(37.5e9, rel=0.02)
    assert rows["nvidia/Qwen3.5-397B-A17B-NVFP4"].beyond == ""  # measured, under its other name
    assert "no serving run" in rows["moonshotai/Kimi-K3"].beyond
