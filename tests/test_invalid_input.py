"""Malicious or hasty input, one line each, and the required result."""

import decimal
import os
import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from facts import from_table, refused

import inferlib
import tokenprice
from inferlib import Layout, System, Transformer, Workload, papers
from inferlib.papers import steinhardt2022
from inferlib.transformer import Attention, FeedForward, Layers
from tokenprice.deployment import decode_step

LLAMA, *OTHERS = map(inferlib.load_model, ("Llama 3 70B", "DeepSeek V3", "GPT-OSS 120B", "Llama 4 Maverick"))
H100 = inferlib.load_chip("H100 SXM")
BOX, WORK = System(H100, 8), Workload(32, 4096)

# --- Numbers at the door of a Transformer -----------------------------------------------------------------

CALLS = {
    "cache_values": lambda m, n: m.cache_values(n),
    "flops": lambda m, n: sum(m.flops(n).values()),
    "bytes_read": lambda m, n: sum(m.bytes_read(64, n).values()),
    "batch of bytes_read": lambda m, n: sum(m.bytes_read(n, 64).values()),
}
HOLDERS = {
    "int32": lambda ns: np.array(ns, dtype=np.int32),
    "list": list,
    "series": pd.Series,
    "labelled": lambda ns: xr.DataArray(np.array(ns, dtype=np.int32), dims="n"),
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("call", CALLS)
def test_numbers_in_any_holder_are_those_of_plain_floats(call, holder):
    for model in (LLAMA, *OTHERS):
        expected = [CALLS[call](model, float(n)) for n in (7, 131072)]
        found = CALLS[call](model, HOLDERS[holder]([7, 131072]))
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)
        assert CALLS[call](model, decimal.Decimal(7)) == pytest.approx(expected[0], rel=1e-12)
        assert CALLS[call](model, np.int32(131072)) == pytest.approx(expected[1], rel=1e-12)


BAD = [-3, pd.Series([1, -2]), decimal.Decimal(-3), 1j, pd.Timestamp("2026-01-01"), object()]
BAD += [[1, "a"], None, "7", True]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: re.sub(" at 0x.*", ">", repr(bad)))
@pytest.mark.parametrize("call", CALLS)
def test_what_is_no_count_is_refused(call, bad):
    with pytest.raises((ValueError, TypeError), match="^(context|tokens|batch) (is|holds) "):
        CALLS[call](LLAMA, bad)


def test_narrow_columns_are_counted_right():
    """70,553,706,496 parameters do not fit into 32 bits, nor do products in the equations of a source."""
    columns = (np.array([n], dtype=np.int32) for n in (80, 8192, 28672, 64, 8, 128, 128256))
    layers, d_model, d_ff, heads, kv_heads, head_dim, vocab_size = columns
    for count in (layers, [80]):
        group = Layers(count, Attention(heads, kv_heads, head_dim), FeedForward(d_ff))
        assert Transformer(d_model, vocab_size, (group,)).n_params.tolist() == [70_553_706_496.0]
    machine = steinhardt2022.load_chip("A100")
    m, b = (np.array([n], dtype=np.int32) for n in (4096, 131072))
    assert steinhardt2022.arithmetic_time(machine, m, b) == pytest.approx(2 * 4096**2 * 131072 / 312e12)


def test_systems_layouts_and_workloads_of_narrow_integers_become_plain():
    assert type(System(H100, np.int32(8)).count) is int and str(System(H100, np.int32(8))) == "8 × H100 SXM"
    assert type(Layout(tp=np.int16(8)).tp) is int
    assert System(H100, [8, 16]).domain.tolist() == [8, 8]


# --- Records of another kind ------------------------------------------------------------------------------

ASKED = {"model": LLAMA, "system": BOX, "workload": WORK, "layout": None}
ANSWER = [*(key for key in papers.sources() if key != "erdil2025"), "principles", "kernels"]


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("key", ANSWER)
def test_a_decode_step_is_asked_about_records(key, name):
    answer = decode_step if key == "kernels" else papers.source._answerer(key)
    for wrong in ("x", 0, 3.5):
        with pytest.raises(TypeError, match=f"{name} is {wrong!r}, but must be"):
            answer(**ASKED | {name: wrong})


test_one_clear_error = refused(globals())


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="a file of Linux")
def test_a_file_that_cannot_be_read_is_named():
    for load in (tokenprice.load_model, tokenprice.catalog.load_chips):
        with pytest.raises(LookupError, match="cannot read '/proc/self/mem'"):
            load("/proc/self/mem")


@from_table
def test_a_key_is_not_echoed_raw(sly):
    shape = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    shape |= {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100}
    assert tokenprice.load_model(shape).n_layers == 2
    for change in ({sly: 1}, {"model_type": sly}, {"hidden_act": sly, "rope_scaling": sly}):
        try:
            tokenprice.load_model(shape | change)
        except (ValueError, LookupError) as error:
            assert sly not in str(error)
    with pytest.raises(ValueError, match="has no such key"):
        tokenprice.load_model(shape | {sly: 1})


# --- The reader's machine ---------------------------------------------------------------------------------
