"""The script that measures one GPU, as far as it needs neither a GPU nor PyTorch; the last test needs PyTorch."""

import csv
import importlib.util
import math
import re
import shlex
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

from inferlib import load_model
from measurements import plan

MODELS = (*plan.DENSE, *plan.SPARSE)
ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("part", [1, 4])
def test_the_tensors_of_a_step_cost_what_the_library_counts(name, part):
    whole = load_model(name)
    model = plan.cut(whole, whole.n_layers // part)
    ends, layer = plan.tensors(model)
    layers = whole.n_layers // part
    size = {tensor: math.prod(shape) for tensor, shape in (ends | layer).items()}
    assert sum(size[t] for t in ends) + layers * sum(size[t] for t in layer) == model.n_params
    block = model.layers[0].feed_forward
    share = block.n_active / block.n_experts if model.sparse else 1
    met = size["qkv"] + size["out"] + size.get("router", 0) + share * (size["up"] + size["down"])
    for context in (1024, 32768):
        attended = 2 * layer["out"][1] * context  # keys and values, of every query head
        flop = 2 * (size["embedding"] + layers * (met + attended))
        assert flop == pytest.approx(sum(model.flops(context).values()), rel=1e-12)
    assert model.layers[0].attention.window is None  # the step has none


def test_counts_of_a_point():
    model = load_model("Llama 3 8B")
    step = plan.counts(model, plan.Point("dense", model.name, 32, 16, 1, 1024))
    # 128 KiB of keys and values a token; all weights but the input embedding, two bytes each
    assert step["cache_bytes"] == 16 * 1024 * 128 * 1024
    assert step["bytes"] - step["cache_bytes"] == 2 * (8_030_261_248 - 128_256 * 4096)
    prompt = plan.counts(model, plan.Point("prefill", model.name, 32, 4, 512, 512))
    assert prompt["flop"] == pytest.approx(4 * 512 * 2 * (8.03e9 - 2 * 128_256 * 4096), rel=0.02)
    mixture = load_model("Mixtral 8x7B")
    one = plan.counts(mixture, plan.Point("sparse", mixture.name, 32, 1, 1, 1024))
    assert one["bytes"] - one["cache_bytes"] == pytest.approx(2 * (12.88e9 - 32_000 * 4096), rel=1e-3)


@pytest.mark.parametrize("available", [30e9, 80e9, 141e9])
def test_points_fit_with_as_many_layers_as_can_be(available):
    for point in plan.points("dense", plan.DENSE, available) + plan.points("sparse", plan.SPARSE, available):
        model = load_model(point.model)
        if point.layers:
            held = plan.cut(model, point.layers).bytes_held(point.batch, point.context)
            assert held + plan.RESERVE < available
        if (point.batch, point.context) not in plan.HALVED:
            more = [n for n in (model.n_layers // part for part in (8, 4, 2, 1)) if n > point.layers]
            assert all(plan.memory(plan.cut(model, n), point) > available for n in more)


def test_a_model_beyond_memory_is_cut_and_one_beyond_that_left_out():
    layers = {(p.model, p.batch, p.context): p.layers for p in plan.points("dense", plan.DENSE, 80e9)[::-1]}
    assert layers["Llama 3 8B", 2, 1024] == 32
    assert layers["Llama 3 70B", 2, 1024] == 40  # 141 GB whole
    assert layers["Llama 3 8B", 256, 32768] == 0  # a terabyte of cache, an eighth of which is 137 GB


def test_the_grid():
    found = plan.points("dense", plan.DENSE, math.inf)
    assert len(found) == len(set(found))
    whole = [p for p in found if p.mode == "graph" and p.layers == load_model(p.model).n_layers]
    grid = {(p.model, p.batch, p.context) for p in whole}
    assert len(whole) == len(grid) == len(plan.DENSE) * 9 * 4
    # the coarse grid of every model, then the rest; a model is built once in a pass for each number of layers
    passes = [fine for fine, _ in groupby(p.batch in plan.FINE for p in found)]
    assert passes == [False, True]
    built = [key for key, _ in groupby((p.batch in plan.FINE, p.model, p.layers) for p in found)]
    assert len(built) == len(set(built))
    assert {p.mode for p in found} == {"graph", "eager", "compiled"}
    assert all(p.tokens == p.context for p in plan.points("prefill", MODELS, 80e9))


def test_rows_are_found_again_and_foreign_files_refused(tmp_path):
    machine = dict.fromkeys(plan.MACHINE, "") | {"gpu": "H100"}
    file = tmp_path / "results" / "rows.csv"
    plan.Rows(file, machine).add(stage="dense", model="a", batch=1, seconds=0.123456789, note='x, "y"\nz')
    again = plan.Rows(file, machine)
    assert again.has(stage="dense", model="a", batch=1)
    assert not again.has(stage="dense", model="a", batch=2)
    assert not plan.Rows(file, machine | {"gpu": "B200"}).has(stage="dense", model="a", batch=1)
    with file.open(newline="") as text:
        (row,) = csv.DictReader(text)
    assert (row["gpu"], row["seconds"], row["note"]) == ("H100", "0.1234568", 'x, "y"\nz')
    with pytest.raises(ValueError, match="speed"):
        again.add(stage="dense", speed=1)
    file.write_text("model,status\n")
    with pytest.raises(ValueError, match="other columns"):
        plan.Rows(file, machine)


def test_the_readme_names_commands_and_columns():
    text = (ROOT / "measurements" / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    python -m measurements\.measure (.*)$", text, re.M)
    assert {plan.arguments(shlex.split(command)).stage for command in commands} == set(plan.STAGES)
    assert [column for column in plan.COLUMNS if f"`{column}`" not in text] == []
    with pytest.raises(SystemExit):
        plan.arguments(["dense"])


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
def test_every_stage_runs_and_repeats_nothing(tmp_path):
    file = tmp_path / "rows.csv"
    for stage in 2 * plan.STAGES:
        command = [sys.executable, "-m", "measurements.measure", stage, "--try", "--out", str(file)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    with file.open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert {(row["stage"], row["status"]) for row in rows} == {(stage, "ok") for stage in plan.STAGES}
    points = [tuple(row[name] for name in plan.POINT) for row in rows]
    assert len(points) == len(set(points))
    assert not any(str(tmp_path) in row["command"] for row in rows)
