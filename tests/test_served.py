"""Configurations of models that are served today: read and counted as others count them, or refused with a reason."""

import json
import re
from pathlib import Path

import pytest
from facts import exactly, from_table, lines, refused

import inferlib
from book.audit import catalogue as tables
from book.synthesis.grid import FIVE
from inferlib import papers
from tokenprice import ask, catalog, load_model, predictors
from tokenprice.attention import DeltaAttention, StateSpace
from tokenprice.config import parse, read_config
from tokenprice.config.formats import nearest

SERVED = catalog._served()
COUNTS = tables.counts("served")
# Random small models of many families as transformers 5.23.0 builds them: all parameters (with the corrections of
# routers), and of some the values that its cache holds after a prompt of this many tokens.
SMALL = json.loads((Path(__file__).parent / "small_models.json").read_text("utf-8"))
NAMED = [entry for entry in SMALL if "tensors" in entry]
QWEN8, QWEN36, QWEN235 = "Qwen/Qwen3-8B", "nvidia/Qwen3.6-27B-NVFP4", "nvidia/Qwen3-235B-A22B-NVFP4"
R1, V32, V4 = "deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-V3.2", "deepseek-ai/DeepSeek-V4-Pro"
NANO, HYBRID = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nvidia/Nemotron-H-56B-Base-8K"
SUPER = "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4"
SEARCHED = "nvidia/Llama-3_3-Nemotron-Super-49B-v1"
LLAMA, GEMMA, KIMI = "meta-llama/Meta-Llama-3.1-405B", "google/gemma-4-26B-A4B", "moonshotai/Kimi-K3"


def config(name, **changes):
    """The configuration of the language model."""
    whole = SERVED[name]["config"]
    return whole.get("text_config", whole) | changes


def stored_as(section, name=QWEN8, **changes):
    """The formats of a model whose file has this quantization section."""
    return read_config(SERVED[name]["config"] | {"quantization_config": section} | changes).formats


@pytest.mark.parametrize("i", range(len(COUNTS)), ids=COUNTS.model + ": " + COUNTS.quantity)
def test_counts_of_others(i):
    row = COUNTS.iloc[i]
    half = row.resolution / 2 * (1 + 1e-9)
    if row.agreement == "exact":
        assert row.difference == "none"
    elif row.agreement == "rounded":
        assert abs(row.counted - row.published) <= half
    elif row.agreement == "about":  # the maker prints a tilde
        assert row.least == pytest.approx(row.published, rel=0.03)
    elif row.agreement == "1%":
        assert row.counted == pytest.approx(row.published, rel=0.01)
    else:  # cards count the tables of embeddings, one of them, or neither
        assert row.agreement == "between" and row.least - half <= row.published <= row.counted + half


@pytest.mark.parametrize("entry", SMALL, ids=lambda entry: entry["config"]["model_type"])
def test_small_models_against_transformers(entry):
    model = read_config(entry["config"])
    assert model.n_params == entry["parameters"]
    if "cache" not in entry:
        return
    tokens, theirs, state = entry["tokens"], entry["cache"], model.state_values()
    attentions = [(g.count, g.attention) for g in model.layers if g.attention is not None]
    # of a window it keeps what the next token will see: one position less (not for MiMo, whose window is that much)
    full = [(n, a) for n, a in attentions if a.window is not None and tokens >= a.window]
    pooled = [n * a.head_dim for n, a in full if getattr(a, "ratio", None)]
    plain = [n * (a.kept(a.window) - a.kept(a.window - 1)) for n, a in full if not getattr(a, "ratio", None)]
    more = 0 if entry["config"]["model_type"] == "mimo_v2_flash" else sum(plain + pooled)
    assert model.cache_values(tokens) == theirs["kept"] + more
    assert state.get("state", 0) == theirs.get("state", 0)
    assert state.get("waiting", 0) >= theirs.get("waiting", 0)
    # it keeps the newest input of a convolution too
    (kernel,) = {a.kernel for _, a in attentions if hasattr(a, "kernel")} or {2}
    assert state.get("convolution", 0) * kernel == theirs.get("convolution", 0) * (kernel - 1)


@pytest.mark.parametrize("entry", NAMED, ids=lambda entry: entry["config"]["model_type"])
def test_every_matrix_has_the_name_that_transformers_gives_it(entry):
    """Each one that a checkpoint in 8 bits keeps at 16 makes it longer by its own number of bytes, no more or less."""

    def stored(kept):
        section = {"quant_algo": "FP8", "exclude_modules": kept}
        model = read_config(entry["config"] | {"quantization_config": section})
        size = 0
        for group in model.layers:
            weights = group.attention.matrices(model.d_model).values() if group.attention else ()
            parts = group.feed_forward.weights(model.d_model) if group.feed_forward else {}
            parts = {"attention": sum(weights)} | parts | {"router": 0}
            size += sum(group.count * n * model.formats[part] for part, n in parts.items() if n)
        return size

    short, names = stored([]), list(entry["tensors"])
    for name in names[:: 1 + len(names) // 30]:
        wide = re.search(r"weights_proj|compressor|latent", name)  # at 16 bits anyway
        longer = 0 if wide else entry["tensors"][name]
        assert stored([name]) - short == pytest.approx(longer, abs=1e-3), name


# Attention of DeepSeek V4: over pools with overlap, and over larger ones without.
POOLS = [group.attention for group in load_model(V4).layers if group.count > 25]
LIGHT, HEAVY = sorted(POOLS, key=lambda attention: not attention.overlap)
LATENT = load_model("DeepSeek V3").layers[0].attention
DELTA = DeltaAttention(n_heads=2, n_key_heads=1, key_dim=3, value_dim=5, kernel=4)
SPACE = StateSpace(n_heads=2, head_dim=3, state_dim=5, groups=1, kernel=4)


test_attention_of_new_kinds = exactly("test_attention_of_new_kinds", globals())


# --- Formats ------------------------------------------------------------------------------------------------


# DeepSeek's and Moonshot's own checkpoints have eight bits and a scale for each block, whatever name is typed; the last
# words of a name may say the format.
@pytest.mark.parametrize(("name", "parts"), lines("formats_of_parts"))
def test_every_part_has_its_own_format(name, parts):
    bits, formats = eval(parts), load_model(name).formats
    assert {part: 8 * formats[part] for part in bits} == pytest.approx(bits)


@pytest.mark.parametrize(("section", "stored", "tool"), lines("quantizations"))
@pytest.mark.parametrize("dtype", ["float16", None])
def test_what_tools_write_is_read(section, stored, tool, dtype):
    formats = stored_as(json.loads(section), torch_dtype=dtype)
    assert 8 * formats["attention"] == 8 * formats["feed-forward"] == pytest.approx(eval(stored), rel=1e-12)
    assert formats["embeddings"] == formats["cache"] == 2
    assert (nearest(formats["attention"]) == "fp4 w4a16") == ("W4A16_NVFP4" in section or tool == "NVFP4A16")


LONG = [
    ({"quant_method": "fp8", "modules_to_not_convert": ["*l*y*mlp*"] * 100}, 16, 16),
    ({"quant_method": "auto-round", "bits": 4, "group_size": -1,
      "extra_config": {f"model.layers.{i}.mlp.up_proj": {"bits": 16} for i in range(36)}}, 16, 8),
]  # fmt: skip
KEPT_WIDE = [(json.loads(section), int(head), int(mlp)) for section, head, mlp in lines("kept_wide")]


@pytest.mark.parametrize(("section", "head", "feed_forward"), KEPT_WIDE + LONG)
def test_what_tools_leave_out(section, head, feed_forward):
    formats = stored_as(section)
    assert (8 * formats["head"], 8 * formats["feed-forward"]) == (head, pytest.approx(feed_forward))
    assert formats["cache"] == (1 if "kv_cache" in str(section) else 2)


def test_experts_beside_a_dense_block_and_part_of_a_part():
    # Gemma 4's experts stand beside its `mlp`: what keeps that at 16 bits does not keep them
    kept = ["model.language_model.layers.*.mlp*", "lm_head"]
    formats = stored_as({"quant_algo": "NVFP4", "exclude_modules": kept}, GEMMA)
    assert (8 * formats["experts"], 8 * formats["shared experts"]) == (4.5, 16)
    # DeepSeek V3.1 in NVFP4 keeps four of five projections at 16 bits; layers may be left out one by one
    model = load_model("nvidia/DeepSeek-V3.1-NVFP4")
    matrices = model.layers[0].attention.matrices(model.d_model)
    bits = sum(n * (4.5 if name == "output" else 16) for name, n in matrices.items()) / sum(matrices.values())
    whole, stored = matrices.keys() - {"output"}, SERVED["nvidia/DeepSeek-V3.1-NVFP4"]["hf_quant_config"]
    assert len(whole) == 4 and "kv_b_proj" in str(stored)
    assert model.formats["attention"] == pytest.approx(bits / 8, rel=1e-3)


NOT_UNDERSTOOD = [(json.loads(section), reason) for section, reason in lines("not_understood")]
NOT_UNDERSTOOD += [
    ({"quant_method": "fp8", "modules_to_not_convert": names}, reason)
    for names, reason in (
        (["x" * 10**6], "the name of a tensor is"),
        (["*a*b"] * 101, "more than 100 patterns"),
    )
]


@pytest.mark.parametrize(("section", "reason"), NOT_UNDERSTOOD)
def test_formats_that_are_not_understood_leave_the_counts(section, reason):
    model = read_config(config(QWEN8, quantization_config=section))
    assert model.n_params == load_model(QWEN8).n_params and not model.formats
    assert reason in model.notes["formats"]
    with pytest.raises(ValueError, match="no published format of attention"):
        model.weight_bytes("published")


def test_a_checkpoint_that_names_no_exclusions_is_answered_with_a_caution():
    told = [" ".join(ask(name, "8x B200").warnings) for name in (NANO, SUPER)]
    assert ["exclude_modules" in text for text in told] == [False, True]


# --- New kinds of layers ------------------------------------------------------------------------------------
@from_table
@pytest.mark.parametrize(
    "who", [who for who in predictors.keys() if who not in {*papers.sources()} - {*FIVE}]
)
def test_who_does_not_describe_a_kind_answers_na_with_the_reason(name, who):
    box = inferlib.System(inferlib.load_chip("B200"), 8)
    answer = predictors.ask(who, load_model(name), box, inferlib.Workload(4, 4096, "fp8"))
    if who == "kernels":  # the only one that knows such layers
        assert answer.feasible or answer.status == "infeasible"
    else:
        assert answer.status == "n/a" and answer.reason


def test_a_state_does_not_grow_and_sparse_attention_keeps_all_and_reads_some():
    model = load_model(QWEN36)
    assert model.flops(10**6)["state"] == model.flops(1)["state"]
    heads, inputs = 48 * 128**2, (2 * 16 + 48) * 128 * 3  # of one layer; states in 32 bits, inputs in 16
    assert model.bytes_read(3, 10)["state"] == 3 * 48 * (4 * heads + 2 * inputs)
    model = load_model(V32)
    kept, read = (getattr(model.layers[0].attention, what)(100_000) for what in ("kept", "read"))
    assert kept == 100_000 * (576 + 128) and read == 2048 * 576 + 100_000 * 128
    dense = load_model("DeepSeek V3")
    assert model.flops(2048)["scores"] == dense.flops(2048)["scores"] == model.flops(10**6)["scores"]


@from_table
def test_reading_a_prompt_costs_what_generating_it_would(name, n, rel):
    model = load_model(name)
    whole = model.prefill_flops(n, logits=n, absorbed=True)
    steps = [model.flops(context) for context in range(1, n + 1)]
    for part, value in whole.items():
        assert value == pytest.approx(sum(step.get(part, 0) for step in steps), rel=rel)


# --- Refused, and not refused -------------------------------------------------------------------------------
def first(part, **changes):
    """Block configurations of a searched architecture with the first one changed."""
    block, *others = config(SEARCHED)["block_configs"]
    return {"block_configs": [block | {part: block[part] | changes}, *others]}


def test_widths_are_rounded_up_to_256_and_keys_that_change_no_count_are_not_refused():
    """Two thirds of 1.95 times 8,192 are 10,649: 42 times 256, in the place of 14,336, in three matrices."""
    plain, odd = (read_config(config(SEARCHED) | more).n_params for more in ({}, first("ffn", ffn_mult=1.95)))
    assert plain - odd == 3 * 8192 * (14336 - 42 * 256)
    assert read_config(config(SEARCHED) | first("ffn", ffn_mult=100)).n_params > plain
    for extra in ({"is_llama_config": True, "rope_interleaved": False}, {"activation": "silu"}):
        assert read_config(config(LLAMA, **extra)).n_params == 405853388800
    long = {"dual_chunk_attention_config": {"chunk_size": 262144, "local_size": 8192}}
    for extra in ({"use_qk_norm": True}, long):
        assert read_config(config(QWEN235, **extra)).n_params == 235093634560


TWICE = config(KIMI)["linear_attn_config"] | {"kda_layers": [1, 2, 3, 4]}
test_a_new_kind_of_layer_and_an_unknown_name_are_refused = refused(globals())


# What transformers 5.23.0 writes for every model, whether it is the default or not.
BASE = json.loads((Path(__file__).parent / "harmless.json").read_text("utf-8"))["transformers 5.23.0"]


def test_what_transformers_5_writes_for_every_model_changes_nothing():
    for entry in SMALL:
        assert read_config(BASE | entry["config"]).n_params == entry["parameters"]
    dbrx = {"model_type": "dbrx", "d_model": 64, "n_heads": 4, "n_layers": 2, "vocab_size": 100} | BASE
    dbrx |= {"attn_config": BASE | {"kv_n_heads": 2}, "tie_word_embeddings": False}
    dbrx |= {"ffn_config": BASE | {"ffn_hidden_size": 96, "moe_num_experts": 4, "moe_top_k": 2}}
    assert read_config(dbrx).n_params == 2 * (64 * 64 * 3 + 4 * 3 * 64 * 96 + 4 * 64 + 2 * 64) + 2 * 6400 + 64


def test_configurations_as_transformers_5_saves_them():
    # Qwen3-VL written by transformers 5.23.0, whose own model then has a head of its own
    text = config("Qwen/Qwen3-VL-2B-Instruct", tie_word_embeddings=True)
    whole = {"model_type": "qwen3_vl", "text_config": text, "tie_word_embeddings": False}
    assert read_config(whole | {"transformers_version": "5.23.0"}).tied is False
    with pytest.raises(ValueError, match="tie_word_.* is False, but must be the same as in text_config"):
        read_config(whole | {"transformers_version": "4.57.0"})
    moe = {key: value for key, value in config(QWEN235).items() if key != "num_experts"}
    assert read_config(moe | {"num_local_experts": 128}).n_params == 235093634560
    with pytest.raises(ValueError, match="num_local_experts is 64, but must be the same as num_experts"):
        read_config(moe | {"num_experts": 128, "num_local_experts": 64})
    plain = load_model("DeepSeek R1").n_params
    assert read_config(config(R1, head_dim=64, qk_head_dim=192)).n_params == plain


def test_a_limit_that_only_python_writes_is_read():
    """Steps of Nemotron-H have no longest time."""
    text = json.dumps(config(HYBRID, time_step_limit=[0.0, float("inf")]))
    assert "Infinity" in text and read_config(parse(text)).n_params == 56324350464


test_published_files_meet_their_cards = exactly("test_published_files_meet_their_cards", globals())


# --- Heads --------------------------------------------------------------------------------------------------
@from_table
def test_the_class_says_whether_there_is_a_head(name, more, head):
    model = read_config(config(LLAMA, architectures=[name], **more))
    assert 405853388800 - model.n_params == 128256 * 16384 - head
    assert model.parameters().get("head", 0) == head == model.flops(1).get("head", 0) / 2
    assert ("architectures" in model.notes) == name.endswith("RewardModel")


# --- Names --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("where", ["", "config.json"])
def test_a_folder_with_what_was_quantized_beside_it(where, tmp_path):
    entry = SERVED[QWEN235]
    (tmp_path / "config.json").write_text(json.dumps(entry["config"]))
    assert load_model(tmp_path / where).formats["experts"] == 2
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(entry["hf_quant_config"]))
    assert load_model(tmp_path / where).formats["experts"] == 4.5 / 8
    # both: the file's own section counts, as in engines, where it is understood
    for own, found in (({"quant_method": "fp8"}, 1), ({"quant_method": "hqq"}, 4.5 / 8)):
        (tmp_path / "config.json").write_text(json.dumps(entry["config"] | {"quantization_config": own}))
        assert load_model(tmp_path / where).formats["experts"] == found


@pytest.mark.parametrize("name", [*catalog.models(), *catalog.same_shapes()])
def test_two_names_of_a_model_give_one_format_and_one_context(name):
    """A friendly name and the one on Hugging Face, wherever both are known."""
    mine = load_model(name)
    if maker := re.match("https://huggingface.co/(.+?)(/blob/|$)", mine.sources["shape"]):
        theirs = load_model(maker[1])
        assert (mine.formats, mine.max_context) == (theirs.formats, theirs.max_context)
        assert mine.max_context >= 1024
