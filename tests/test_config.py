"""The reader of config.json: real configurations, defaults as documented, and refusal of everything else by name."""

import json
import os
import tomllib
import tracemalloc
from importlib.resources import files
from pathlib import Path

import pytest
from facts import exactly, from_table, refused
from hypothesis import given, strategies as st

from tokenprice import load_model
from tokenprice.config.families import declarations, declared

STORED = tomllib.loads((Path(__file__).parent / "configs.toml").read_text("utf-8"))
CATALOGUE = tomllib.loads((files("inferlib.catalog") / "models.toml").read_text("utf-8"))
OWN = tomllib.loads((files("tokenprice.catalog") / "models.toml").read_text("utf-8"))
SERVED = json.loads((files("tokenprice.catalog") / "served.json").read_text("utf-8"))


def served(name):
    """The whole configuration of a catalogue model that is served today."""
    return SERVED.get("/".join(CATALOGUE[name]["source"].split("/")[3:5]), {}).get("config")


def shape_keys(whole):
    """The keys of a configuration that may change its shape."""
    harmless = {*declarations()["harmless"], *declared(whole["model_type"]).get("harmless", ())}
    harmless.add("experts_per_token")  # a second name
    return {key: value for key, value in whole.items() if key not in harmless or key == "model_type"}


BOTH = {name: served(name) for name in CATALOGUE if served(name)}
CONFIGS = {name: json.loads(text) for name, text in STORED.items()}
CONFIGS |= {name: shape_keys(whole) for name, whole in BOTH.items()}
CONFIGS |= {name: json.loads(entry["config"]) for name, entry in OWN.items()}
LLAMA, QWEN, V3, OSS = (CONFIGS[n] for n in ("Llama 3 8B", "Qwen3 30B-A3B", "DeepSeek V3", "GPT-OSS 20B"))
MISTRAL, QWEN25, DBRX, GPT2 = (CONFIGS[n] for n in ("Mistral 7B", "Qwen2.5 7B", "DBRX", "GPT-2"))
WHOLE_SCOUT = CONFIGS["Llama 4 Scout"]
SCOUT = WHOLE_SCOUT["text_config"]

# Keys of a published file that do not affect the shape.
CHATTER = json.loads((Path(__file__).parent / "harmless.json").read_text("utf-8"))["published"]


def changed(base, **changes):
    return {key: value for key, value in (base | changes).items() if value is not ...}


def params(base, **changes):
    return load_model(changed(base, **changes)).n_params


def windows(base, **changes):
    return [(g.count, g.attention.window) for g in load_model(changed(base, **changes)).layers]


# --- Right ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", STORED | BOTH)
def test_the_catalogue_states_what_the_maker_s_file_says(name):
    typed, read = load_model(name), load_model(BOTH.get(name) or CONFIGS[name])
    assert read == typed.replace(name="") and read.notes == typed.notes


def test_a_catalogue_model_without_a_configuration_has_a_paper_as_its_source():
    assert all(
        "huggingface" not in CATALOGUE[name]["source"] for name in CATALOGUE.keys() - STORED - BOTH.keys()
    )


@pytest.mark.parametrize("name", CONFIGS)
def test_a_name_a_dictionary_a_file_and_a_folder_are_the_same_model(name, tmp_path, monkeypatch):
    """A folder that happens to be called like a model does not shadow it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir(parents=True)
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS[name] | CHATTER))
    ways = [name, CONFIGS[name], tmp_path, tmp_path / "config.json", str(tmp_path / "config.json")]
    counts = {(m.n_params, m.n_active, m.cache_values(9999)) for m in map(load_model, ways)}
    assert len(counts) == 1
    assert load_model(tmp_path).sources["shape"] == str(tmp_path)


def test_qwen2_moe():
    """Qwen1.5-MoE-A2.7B (https://huggingface.co/Qwen/Qwen1.5-MoE-A2.7B): 14.3 billion, 2.7 of them active."""
    shape = changed(QWEN, model_type="qwen2_moe", head_dim=..., attention_bias=...) | {
        "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24, "num_attention_heads": 16,
        "num_key_value_heads": 16, "num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 5632,
    }  # fmt: skip
    model = load_model(shape)
    assert model.n_params == pytest.approx(14.3e9, abs=0.05e9)
    assert model.n_active == pytest.approx(2.7e9, abs=0.05e9)
    assert model.parameters()["router"] == 24 * (60 + 1) * 2048
    dense = load_model(changed(shape, mlp_only_layers=[0, 5], decoder_sparse_step=2))
    assert [g.count for g in dense.layers] == [13, 11]  # layer 5 would be sparse, layer 0 is dense anyway


INTERN = changed(LLAMA, model_type="internlm3", head_dim=128, qkv_bias=False, bias=False)
QUANTISED = LLAMA | {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}


test_switches_windows_and_defaults = exactly("test_switches_windows_and_defaults", globals())


# --- Refused by name --------------------------------------------------------------------------------------
OPTIONAL = set(
    """max_position_embeddings max_seq_len n_positions experts_per_token attention_bias bias decoder_sparse_step
    head_dim layer_types max_window_layers mlp_only_layers moe_layer_freq n_inner num_key_value_heads
    num_nextn_predict_layers quantization_config sliding_window tie_word_embeddings topk_method use_sliding_window
    vision_config""".split()
)
# Defaults of a family's own code for keys that a file leaves out.
DEFAULTS = {("gemma3_text", "num_attention_heads"), ("gemma3_text", "vocab_size")}
WORDS = "vision_config", "num_nextn_predict_layers", "model_type", "topk_method", "quantization_config"


@pytest.mark.parametrize("name", CONFIGS)
def test_no_key_of_a_shape_can_be_dropped_or_spoilt_unnoticed(name):
    """Without a key, or with a word in its place, there is an error that names it, or the documented default."""
    shape = CONFIGS[name]
    for key in shape:
        if key not in OPTIONAL and (shape["model_type"], key) not in DEFAULTS:
            with pytest.raises(ValueError, match=f"{key} is missing"):
                load_model(changed(shape, **{key: ...}))
        if key not in WORDS:
            with pytest.raises(ValueError, match=f"{key} is 'x'"):
                load_model(shape | {key: "x"})


test_refused_by_name = refused(globals())


# --- Hostile -----------------------------------------------------------------------------------------------
DEEP = "[" * 200_000


@from_table
def test_hostile_files_give_one_short_error(content, tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(content())
    with pytest.raises(ValueError) as caught:
        load_model(path)
    assert "config.json" in str(caught.value) and len(str(caught.value)) < 1000


def test_a_hundred_megabytes_are_not_read_and_what_is_no_regular_file_is_not_opened(tmp_path):
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(100 * 10**6)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than 4000000 bytes"):
            load_model(path)
        assert tracemalloc.get_traced_memory()[1] < 10 * 10**6
    finally:
        tracemalloc.stop()
    path.unlink()
    if hasattr(os, "mkfifo"):
        os.mkfifo(path)
    for other in (path, tmp_path, "/dev/zero.json", "/dev/zero"):
        with pytest.raises(LookupError, match="no (file|model)"):
            load_model(other)


def test_a_dictionary_is_as_safe_as_a_file():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    values = deep, {"a": deep}, 10**100_000, object()
    bad = [({"hidden_size": value}, "hidden_size is ") for value in values]
    bad += [({"surprise": value}, "no such key") for value in values]
    bad += [({key: 2}, "no such key") for key in (1, None, ("a", "b"))]
    for change, message in bad:
        with pytest.raises(ValueError, match=message):
            load_model(LLAMA | change)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
)


@given(st.sampled_from(sorted(CONFIGS)), st.data())
def test_one_spoilt_key_is_an_error_or_a_model(name, data):
    """There is no other kind of failure, and a model that is read has finite, positive counts."""
    shape = dict(CONFIGS[name])
    shape[data.draw(st.sampled_from(sorted(shape)) | st.text(max_size=9))] = data.draw(VALUES)
    try:
        model = load_model(shape)
    except (ValueError, LookupError) as error:
        assert len(str(error)) < 1000
        return
    assert 0 < model.n_active <= model.n_params < 1e30
    assert model.cache_values(10) > 0


@given(VALUES)
def test_anything_else_is_refused(value):
    with pytest.raises((ValueError, LookupError)):
        load_model(value)
