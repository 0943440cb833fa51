"""Configurations of models that are served today: read and counted as others count them, or refused with a reason."""

import json
from importlib.resources import files
from pathlib import Path

import pytest

import inferlib
from book import catalogue as tables
from inferlib import catalog, load_model
from inferlib.config import parse, read_config
from inferlib.papers.rooms import ask, everybody
from inferlib.transformer import DeltaAttention, StateSpace

SERVED = json.loads((files("inferlib.catalog") / "served.json").read_text("utf-8"))
REFUSED = {"stepfun-ai/Step-3.7-Flash": "attention_other_setting is missing"}
READ = [name for name in SERVED if name not in REFUSED]
COUNTS = tables.served_counts()


def config(name):
    """The configuration of the language model."""
    whole = SERVED[name]["config"]
    return whole.get("text_config", whole)


def test_at_least_95_of_100_files_are_read():
    assert len(SERVED) == 54 and len(READ) / len(SERVED) > 0.95


@pytest.mark.parametrize("name", SERVED)
def test_every_file_is_read_or_refused_with_its_reason(name):
    if name in REFUSED:
        with pytest.raises(ValueError, match=REFUSED[name]):
            load_model(name)
        return
    model = load_model(name)
    assert 0 < model.n_active <= model.n_params and model.cache_values(1000) > 0
    assert model.sources["shape"].startswith("https://huggingface.co/")
    assert model.formats or model.notes["formats"]


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


def test_whose_code_was_asked():
    """Those that no release of transformers has are four; every other one is counted there."""
    exact = set(COUNTS.model[COUNTS.agreement == "exact"])
    assert set(READ) - exact == {
        "XiaomiMiMo/MiMo-7B-Base",
        "moonshotai/Kimi-K3",
        "nvidia/Llama-3_3-Nemotron-Super-49B-v1",
    }


# Random small models of 15 families as transformers 5.23.0 builds them: all parameters (with the corrections of
# routers), and of some the values that its cache holds after a prompt of so many tokens.
SMALL = json.loads((Path(__file__).parent / "small_models.json").read_text("utf-8"))


@pytest.mark.parametrize(
    "entry", SMALL, ids=[f"{e['config']['model_type']}-{i}" for i, e in enumerate(SMALL)]
)
def test_small_models_against_transformers(entry):
    model = read_config(entry["config"])
    assert model.n_params == entry["parameters"]
    if "cache" not in entry:
        return
    tokens, theirs, state = entry["tokens"], entry["cache"], model.state_values()
    attentions = [(g.count, g.attention) for g in model.layers if g.attention is not None]
    # of a window it keeps what the next token will see: one position less (not for MiMo, whose window is that much)
    full = [(n, a) for n, a in attentions if a.window is not None and tokens >= a.window]
    more = sum(
        n * (a.kept(a.window) - a.kept(a.window - 1)) for n, a in full if not getattr(a, "ratio", None)
    )
    more += sum(n * a.head_dim for n, a in full if getattr(a, "ratio", None))
    more = 0 if entry["config"]["model_type"] == "mimo_v2_flash" else more
    assert model.cache_values(tokens) == theirs["kept"] + more
    assert state.get("state", 0) == theirs.get("state", 0) and state.get("waiting", 0) >= theirs.get(
        "waiting", 0
    )
    # it keeps the newest input of a convolution too
    kernels = {a.kernel for _, a in attentions if hasattr(a, "kernel")} or {2}
    (kernel,) = kernels
    assert state.get("convolution", 0) * kernel == theirs.get("convolution", 0) * (kernel - 1)


def test_what_waits_to_be_pooled():
    """A value and its weight: 4 positions in two streams and the 4 before in one, of 512 and 128; 128 of 512."""
    light, heavy = (g.attention for g in load_model("deepseek-ai/DeepSeek-V4-Pro").layers if g.count > 25)
    light, heavy = (light, heavy) if light.overlap else (heavy, light)
    assert light.state() == {"waiting": 2 * (512 + 128) * (4 * 2 + 4)}
    assert heavy.state() == {"waiting": 2 * 512 * 128}


def test_arithmetic_of_states_by_hand():
    """The delta rule reads, writes and asks a head's matrix once; a state-space layer writes and asks it."""
    delta = DeltaAttention(n_heads=2, n_key_heads=1, key_dim=3, value_dim=5, kernel=4)
    assert delta.state_flops() == 2 * (3 * 2 * 3 * 5 + (3 + 3 + 2 * 5) * 4)
    space = StateSpace(n_heads=2, head_dim=3, state_dim=5, groups=1, kernel=4)
    assert space.state_flops() == 2 * (2 * 2 * 3 * 5 + (2 * 3 + 2 * 5) * 4)
    assert (
        space.context_flops(10) == {"state": space.state_flops()}
        and space.prompt_flops(7)["state"] == 7 * 248
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("deepseek-ai/DeepSeek-V4-Pro", ("pooled positions", "mixed residual streams")),
        ("nvidia/Qwen3.6-27B-NVFP4", ("linear attention", "a gate")),
        (
            "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4",
            ("state space", "without attention", "narrower stream"),
        ),
        ("zai-org/GLM-5.2", ("sparse attention",)),
    ],
)
def test_what_is_unusual_is_named(name, words):
    assert all(word in load_model(name).unusual for word in words)
    assert load_model("Llama 3 8B").unusual == load_model("DeepSeek V3").unusual == ""


# --- Formats ------------------------------------------------------------------------------------------------


def test_gpt_oss_reads_five_gigabytes_a_token():
    """Attention and head are not in four bits, whatever the name of the checkpoint says."""
    model = load_model("openai/gpt-oss-120b")
    read = model.bytes_read(1, 1, weights="published")
    assert sum(read.values()) / 1e9 == pytest.approx(5.0, abs=0.05)
    assert model.formats["experts"] == 4.25 / 8 and model.formats["attention"] == model.formats["head"] == 2
    # the checkpoint's size in arXiv 2508.10925: 60.8 GiB
    assert sum(model.weight_bytes("published").values()) / 2**30 == pytest.approx(60.8, rel=0.002)
    assert load_model("gpt-oss-120b").bytes_read(1, 1, "published") == read


# GB of all shards, as the repositories on Hugging Face list them, with what is not the language model.
CHECKPOINTS = [
    ("moonshotai/Kimi-K3", 1560, 0.005),  # 1.56 TB, with a vision encoder
    ("deepseek-ai/DeepSeek-R1", 688.6 - 15, 0.01),  # with a layer that predicts ahead
    ("Qwen/Qwen3-30B-A3B-FP8", 31.2, 0.01),
]


@pytest.mark.parametrize(("name", "size", "tolerance"), CHECKPOINTS)
def test_sizes_of_checkpoints(name, size, tolerance):
    assert sum(load_model(name).weight_bytes("published").values()) / 1e9 == pytest.approx(
        size, rel=tolerance
    )


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("nvidia/GLM-5.1-NVFP4", {"experts": 4.5, "attention": 16, "head": 16, "cache": 8}),
        ("nvidia/Qwen3-235B-A22B-NVFP4", {"experts": 4.5, "attention": 4.5, "router": 16, "head": 16}),
        ("nvidia/Qwen3.6-27B-NVFP4", {"feed-forward": 4.5, "head": 4.5, "embeddings": 16, "cache": 8}),
        ("nvidia/MiniMax-M3-NVFP4", {"experts": 4.5, "attention": 8.25, "shared experts": 8.25, "head": 16}),
        ("deepseek-ai/DeepSeek-V4-Pro", {"experts": 4.25, "shared experts": 8 + 8 / 128**2}),
        ("moonshotai/Kimi-K3", {"experts": 4.25, "attention": 16, "latent": 16, "feed-forward": 16}),
        ("nvidia/Llama-3.1-70B-Instruct-FP8", {"attention": 8, "head": 16, "cache": 8}),
        ("Qwen/Qwen3-8B", {"attention": 16, "cache": 16}),
    ],
)
def test_every_part_has_its_own_format(name, bits):
    formats = load_model(name).formats
    assert {part: 8 * formats[part] for part in bits} == pytest.approx(bits)


def test_part_of_a_part():
    """DeepSeek V3.1 in NVFP4 keeps four of five projections at 16 bits; layers may be left out one by one."""
    model = load_model("nvidia/DeepSeek-V3.1-NVFP4")
    matrices = model.layers[0].attention.matrices(model.d_model)
    bits = sum(n * (4.5 if name == "output" else 16) for name, n in matrices.items()) / sum(matrices.values())
    whole, stored = matrices.keys() - {"output"}, SERVED["nvidia/DeepSeek-V3.1-NVFP4"]["hf_quant_config"]
    assert len(whole) == 4 and "kv_b_proj" in str(stored)
    assert model.formats["attention"] == pytest.approx(bits / 8, rel=1e-3)


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ({"quant_method": "bitsandbytes"}, "quant_method is 'bitsandbytes'"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "exclude_modules is missing"),
        ({"quant_method": "modelopt", "quant_algo": "W1"}, "quant_algo is 'W1'"),
        (
            {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "ignore": []},
            "quantized_layers is missing",
        ),
        ({"quant_method": "fp8", "weight_block_size": [0, 128]}, "weight_block_size is "),
        ({"quant_method": "fp8", "modules_to_not_convert": "lm_head"}, "modules_to_not_convert is 'lm_head'"),
        ({"quant_method": "fp8", "modules_to_not_convert": ["re:(a+)+$"]}, "is not a plain one"),
        ({"quant_method": "fp8", "modules_to_not_convert": ["x" * 10**6]}, "must be a list of names"),
        ({"quant_method": "compressed-tensors"}, "config_groups is missing"),
        ({"quant_method": [1]}, "quant_method is "),
        (7, "quantization_config is 7"),
    ],
)
def test_formats_that_are_not_understood_leave_the_counts(section, reason):
    model = read_config(SERVED["Qwen/Qwen3-8B"]["config"] | {"quantization_config": section})
    assert model.n_params == load_model("Qwen/Qwen3-8B").n_params and not model.formats
    assert reason in model.notes["formats"]
    with pytest.raises(ValueError, match="no published format of attention"):
        model.weight_bytes("published")


# --- New kinds of layers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nvidia/Qwen3.6-27B-NVFP4", "deepseek-ai/DeepSeek-V3.2", "moonshotai/Kimi-K3",
                                  "deepseek-ai/DeepSeek-V4-Pro", "nvidia/Nemotron-H-56B-Base-8K"])  # fmt: skip
@pytest.mark.parametrize("who", everybody())
def test_who_does_not_describe_a_kind_answers_na_with_the_reason(name, who):
    box = inferlib.System(inferlib.load_chip("B200"), 8)
    answer = ask(who, load_model(name), box, inferlib.Workload(4, 4096, "fp8"))
    assert answer.status == "n/a" and answer.reason


def test_a_state_does_not_grow():
    """Qwen3.6-27B: 48 of 64 layers keep 48 matrices of 128 x 128, and 16 layers a cache (its model card)."""
    model = load_model("nvidia/Qwen3.6-27B-NVFP4")
    assert model.state_values()["state"] == 48 * 48 * 128 * 128
    assert model.cache_values(1000) == 1000 * 16 * 2 * 4 * 256
    assert model.flops(10**6)["state"] == model.flops(1)["state"]
    assert model.bytes_read(3, 10)["state"] == 3 * model.state_bytes()
    assert load_model("Llama 3 8B").state_values() == {} and load_model("Llama 3 8B").state_bytes() == 0


def test_sparse_attention_keeps_all_and_reads_some():
    model = load_model("deepseek-ai/DeepSeek-V3.2")
    kept, read = (getattr(model.layers[0].attention, what)(100_000) for what in ("kept", "read"))
    assert kept == 100_000 * (576 + 128) and read == 2048 * 576 + 100_000 * 128
    dense = load_model("DeepSeek V3")
    assert model.flops(2048)["scores"] == dense.flops(2048)["scores"] == model.flops(10**6)["scores"]


@pytest.mark.parametrize("name", ["Qwen/Qwen3.5-397B-A17B", "deepseek-ai/DeepSeek-V3.2", "google/gemma-4-26B-A4B",
                                  "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4"])  # fmt: skip
def test_reading_a_prompt_costs_what_generating_it_would(name):
    model, n = load_model(name), 40
    whole = model.prefill_flops(n, logits=n, absorbed=True)
    steps = [model.flops(context) for context in range(1, n + 1)]
    for part, value in whole.items():
        assert value == pytest.approx(sum(step.get(part, 0) for step in steps), rel=1e-12)


def test_layers_that_predict_ahead_are_counted_apart():
    """DeepSeek V3's README_WEIGHTS.md: 11.5 billion of the module are its own."""
    assert load_model("deepseek-ai/DeepSeek-R1").draft_parameters() == pytest.approx(11.5e9, rel=0.01)
    assert "counted apart" in load_model("deepseek-ai/DeepSeek-R1").notes["num_nextn_predict_layers"]


# --- Refused, and not refused -------------------------------------------------------------------------------

TWICE = config("moonshotai/Kimi-K3")["linear_attn_config"] | {"kda_layers": [1, 2, 3, 4]}
NEW_KINDS = [
    (
        "nvidia/Qwen3.6-27B-NVFP4",
        {"layer_types": ["linear_attention"] * 63 + ["ring_attention"]},
        "layer_types is",
    ),
    ("deepseek-ai/DeepSeek-V4-Pro", {"compress_ratios": [16] * 61}, "compress_ratios is"),
    (
        "nvidia/Nemotron-H-56B-Base-8K",
        {"hybrid_override_pattern": "M" * 117 + "X"},
        "hybrid_override_pattern is",
    ),
    (
        "nvidia/Nemotron-H-56B-Base-8K",
        {"mlp_hidden_act": "silu"},
        "mlp_hidden_act is 'silu', but must be \"relu2\"",
    ),
    ("google/gemma-4-26B-A4B", {"num_kv_shared_layers": 4}, "num_kv_shared_layers is 4, but must be 0"),
    ("nvidia/MiniMax-M2.5-NVFP4", {"attn_type_list": [0] * 62}, "attn_type_list is"),
    ("zai-org/GLM-5", {"index_topk_freq": 4}, "index_topk_freq is 4, but must be 1 where indexer_types"),
    (
        "moonshotai/Kimi-K3",
        {"linear_attn_config": TWICE},
        "full_attn_layers is .*every layer once",
    ),
    (
        "Qwen/Qwen3-8B",
        {"gated_memory_heads": 8},
        "gated_memory_heads is 8, but a 'qwen3' model has no such key",
    ),
]


@pytest.mark.parametrize(("name", "changes", "message"), NEW_KINDS)
def test_a_new_kind_of_layer_is_refused(name, changes, message):
    with pytest.raises(ValueError, match=message):
        read_config(config(name) | changes)


def test_keys_that_change_no_count_are_not_refused():
    llama, qwen = (
        SERVED["meta-llama/Meta-Llama-3.1-405B"]["config"],
        SERVED["nvidia/Qwen3-235B-A22B-NVFP4"]["config"],
    )
    for extra in ({"is_llama_config": True, "rope_interleaved": False}, {"activation": "silu"}):
        assert read_config(llama | extra).n_params == 405853388800
    assert read_config(qwen | {"use_qk_norm": True}).n_params == read_config(qwen).n_params
    long = {"dual_chunk_attention_config": {"chunk_size": 262144, "local_size": 8192}}
    assert read_config(qwen | long).n_params == read_config(qwen).n_params


def test_configurations_as_transformers_5_saves_them():
    moe = {
        key: v for key, v in SERVED["nvidia/Qwen3-235B-A22B-NVFP4"]["config"].items() if key != "num_experts"
    }
    assert read_config(moe | {"num_local_experts": 128}).n_params == 235093634560
    with pytest.raises(ValueError, match="num_local_experts is 64, but must be the same as num_experts"):
        read_config(moe | {"num_experts": 128, "num_local_experts": 64})
    r1 = SERVED["deepseek-ai/DeepSeek-R1"]["config"]
    assert (
        read_config(r1 | {"head_dim": 64, "qk_head_dim": 192}).n_params == load_model("DeepSeek R1").n_params
    )
    with pytest.raises(ValueError, match="qk_head_dim is 100"):
        read_config(r1 | {"qk_head_dim": 100})


def test_numbers_that_only_python_writes():
    text = json.dumps(config("nvidia/Nemotron-H-56B-Base-8K") | {"time_step_limit": [0.0, float("inf")]})
    assert "Infinity" in text and read_config(parse(text)).n_params == 56324350464


# --- Heads --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "more", "head"),
    [
        ("LlamaForCausalLM", {}, 128256 * 16384),
        ("LlamaModel", {}, 0),
        ("LlamaForSequenceClassification", {}, 2 * 16384),
        ("LlamaForSequenceClassification", {"id2label": {"0": "LABEL_0"}}, 16384),
        ("LlamaForSequenceClassification", {"num_labels": 5}, 5 * 16384),
        ("LlamaForRewardModel", {}, 0),
    ],
)
def test_the_class_says_whether_there_is_a_head(name, more, head):
    llama = SERVED["meta-llama/Meta-Llama-3.1-405B"]["config"]
    model = read_config(llama | {"architectures": [name]} | more)
    assert 405853388800 - model.n_params == 128256 * 16384 - head
    assert model.parameters().get("head", 0) == head == model.flops(1).get("head", 0) / 2
    assert ("architectures" in model.notes) == name.endswith("RewardModel")


@pytest.mark.parametrize("what", [["LlamaForQuestionAnswering"], "LlamaForCausalLM", [1], ["A", "B"], []])
def test_other_classes_are_refused(what):
    with pytest.raises(ValueError, match="architectures is"):
        read_config(SERVED["Qwen/Qwen3-8B"]["config"] | {"architectures": what})


# --- Names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("Llama 3.3 70B", "Llama 3.3 70B"),
        ("meta-llama/Llama-3.3-70B-Instruct", "Llama 3.3 70B"),
        ("DeepSeek R1", "deepseek-ai/DeepSeek-R1"),
        ("gpt-oss-120b", "GPT-OSS 120B"),
        ("openai/gpt-oss-120b", "openai/gpt-oss-120b"),
        ("Qwen3-235B-A22B", "Qwen3 235B-A22B"),
        ("qwen3-32b", "Qwen3 32B"),
        ("llama-3-8b-instruct", "Llama 3 8B"),
        ("Kimi K2 Instruct", "Kimi K2"),
        ("Kimi-K2.5-NVFP4", "nvidia/Kimi-K2.5-NVFP4"),
    ],
)
def test_names_that_people_type(typed, name):
    assert load_model(typed).name == name


def test_a_name_that_is_not_known_brings_a_few_near_ones():
    with pytest.raises(LookupError, match="did you mean 'nvidia/Qwen3.6-27B-NVFP4'") as error:
        load_model("Qwen3.6 27B")
    assert len(str(error.value)) < 300, "not the whole catalogue"


def test_a_folder_with_what_was_quantized_beside_it(tmp_path):
    entry = SERVED["nvidia/Qwen3-235B-A22B-NVFP4"]
    (tmp_path / "config.json").write_text(json.dumps(entry["config"]))
    assert load_model(tmp_path).formats["experts"] == 2
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(entry["hf_quant_config"]))
    assert load_model(tmp_path).formats["experts"] == 4.5 / 8


def test_served_names_are_listed():
    assert catalog.served() == list(SERVED) and not set(catalog.served()) & set(catalog.models())
