"""Invalid input raises one clear error that names the argument, its value and what is allowed."""

import dataclasses
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import xarray as xr  # noqa: F401, refused_calls.tsv
from facts import from_table, refused
from hypothesis import given, strategies as st

import book  # noqa: F401, refused_calls.tsv
import inferlib
from book import audit
from book.papers.pope2022 import two_constants
from inferlib import Accelerator, Breakdown, Layout, System, Workload, catalog, units, validation  # noqa: F401, rows.tsv
from inferlib.equation import quantities
from inferlib.papers import erdil2025, liminal2025, mazurek2025, steinhardt2022
from inferlib.papers.erdil2025.records import GPU, Model
from inferlib.papers.erdil2025.shape import Shape
from inferlib.papers.steinhardt2022 import Machine
from inferlib.transformer import Attention, Experts, FeedForward, LatentAttention
from tokenprice.attention import DeltaAttention, Indexer, StateSpace

SHAPES = [Attention, LatentAttention, DeltaAttention, StateSpace, Indexer, FeedForward, Experts]
RECORDS = [Accelerator, Workload, *SHAPES, Model, Shape, GPU, Machine, erdil2025.ToyAssumptions]
RECORDS += [
    liminal2025.Assumptions,
    mazurek2025.Deployment,
    two_constants.Constants,
    steinhardt2022.Assumptions,
]
NOT_A_NUMBER = st.sampled_from([math.nan, math.inf, [1, "a"]])
NOT_A_NUMBER |= st.floats(max_value=-1e-300) | st.text() | st.booleans()


def good(kind):
    """A valid record, every quantity at its default or at one."""
    return kind(**{f.name: 1.0 for f in quantities(kind) if f.default is dataclasses.MISSING})


@pytest.mark.parametrize("kind", RECORDS)
@given(value=NOT_A_NUMBER, data=st.data())
def test_no_record_takes_a_bad_number(kind, value, data):
    field = data.draw(st.sampled_from(quantities(kind)))
    with pytest.raises((ValueError, TypeError), match=rf"{kind.__name__}\.{field.name} "):
        good(kind).replace(**{field.name: value})


@pytest.mark.parametrize("kind", RECORDS)
def test_zero_only_where_it_makes_sense_and_records_are_frozen_values_that_refuse_unknown_fields(kind):
    for field in quantities(kind):
        if field.metadata["zero"]:
            good(kind).replace(**{field.name: 0})
        else:
            with pytest.raises(ValueError, match=f"{field.name} is 0, but must be positive"):
                good(kind).replace(**{field.name: 0})
        if most := field.metadata["maximum"]:
            with pytest.raises(ValueError, match=f"{field.name} is {2 * most}"):
                good(kind).replace(**{field.name: 2 * most})
    record, again = good(kind), good(kind)
    unbounded = next(field.name for field in quantities(kind) if not field.metadata["maximum"])
    assert record == again != record.replace(**{unbounded: 2.0})
    assert hash(record) == hash(again)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, quantities(kind)[0].name, 2.0)
    with pytest.raises(LookupError, match=f"no field of {kind.__name__} 'colour'"):
        record.replace(colour="red")


@from_table
@given(value=st.one_of(st.integers(max_value=0), st.floats(), st.booleans(), st.text()))
def test_layouts_are_whole_numbers(name, value):
    with pytest.raises(ValueError, match=f"Layout.{name}"):
        Layout(**{name: value})


test_an_error_names_what_is_wrong_and_near_names = refused(globals())


# --- Equations -------------------------------------------------------------------------------------------


def test_two_threads_do_not_mix_their_explanations():
    model, box = inferlib.load_model("Llama 3 70B"), System(inferlib.load_chip("H100 SXM"), 8)
    rooms = map(inferlib.papers.source.source_package, ("erdil2025", "steinhardt2022"))
    steps = [room.decode_step(model, box, Workload(32, 4096)) for room in rooms]
    alone = [str(audit.explain(step)) for step in steps]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: str(audit.explain(steps[i % 2])) == alone[i % 2], range(100)))
    assert all(found)


def test_bounds_belong():
    for n in (2, 3, np.array([2.0, 3.0])):
        assert np.all(validation.number("n", n, minimum=2, maximum=3) == n)
