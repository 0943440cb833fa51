"""The script that measures on a GPU, as far as no GPU is needed; the rest needs PyTorch and is skipped without."""

import csv
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from inferlib import load_model

FOLDER = Path(__file__).parents[1] / "measurements"
sys.path.insert(0, str(FOLDER))

import decode  # noqa: E402
from decoding import export, plan, record  # noqa: E402

MODELS = [*plan.DENSE, *plan.SPARSE]


def cut(name, layers):
    """The catalogue's model with so many of its layers."""
    model = load_model(name)
    groups = tuple(group.replace(count=group.count * layers // model.n_layers) for group in model.layers)
    return model.replace(layers=groups)


# Shapes and counts against the library.


def test_shapes_are_the_catalogues():
    assert plan.json.loads(export.FILE.read_text(encoding="utf-8")) == export.shapes()
    assert set(MODELS) == set(export.MODELS)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("part", [1, 4])
def test_counts_are_the_librarys(name, part):
    shape = plan.load(name)
    layers = shape.layers // part
    shape, model = shape.cut(layers), cut(name, layers)
    assert shape.layers == model.n_layers == layers
    for batch, context in ((1, 1024), (16, 100), (256, 32768)):
        wanted = sum(model.flops(context).values()) * batch
        assert plan.flop(shape, batch, context) == pytest.approx(wanted, rel=1e-12)
        for precision in ("bf16", "fp8"):
            if precision == "fp8" and shape.sparse:
                continue
            keep = {"norms": "bf16", "head": "bf16", "embeddings": "bf16"}
            read = model.bytes_read(batch, context, weights=precision, keep=keep)
            assert plan.cache_bytes(shape, batch, context) == read.pop("cache")
            assert plan.weight_bytes(shape, precision, batch) == pytest.approx(sum(read.values()), rel=1e-12)
            whole = sum(model.weight_bytes(precision, keep).values())
            assert plan.weight_bytes(shape, precision) == pytest.approx(whole, rel=1e-12)


def test_measured_experts_replace_expected_ones():
    shape = plan.load("Qwen3 30B-A3B")
    one, three = (plan.weight_bytes(shape, "bf16", 16, touched=n) for n in (1, 3))
    experts = load_model("Qwen3 30B-A3B").parameters()["experts"] / 128
    assert three - one == pytest.approx(2 * 2 * experts)


def test_two_kinds_of_layers_alternate():
    windows = [kind.window for kind in plan.load("GPT-OSS 20B").cut(6).order()]
    assert windows == [128, None] * 3


def test_a_cut_keeps_the_proportion_of_kinds():
    with pytest.raises(ValueError, match="divide the 24"):
        plan.load("GPT-OSS 20B").cut(3)
    with pytest.raises(LookupError, match="must be one of"):
        plan.load("Llama 3")


def test_a_shape_that_is_not_built_is_refused(tmp_path):
    table = plan.json.loads(plan.FILE.read_text(encoding="utf-8"))
    table["Llama 3 8B"]["groups"][0]["feed_forward"]["matrices"] = 2
    file = tmp_path / "shapes.json"
    file.write_text(plan.json.dumps(table), encoding="utf-8")
    with pytest.raises(ValueError, match="does not build"):
        plan.load("Llama 3 8B", file)


# The planner.


@pytest.mark.parametrize("available", [30e9, 79e9, 140e9])
def test_every_planned_point_fits_with_as_many_layers_as_can_be(available):
    for stage in ("dense", "sparse"):
        found = decode.points(stage, available)
        for p in found:
            shape = plan.load(p.model)
            needed = plan.memory(shape.cut(p.layers), p.precision, p.batch, p.context)
            assert bool(p.refused) == (needed > available)
            more = [n for n in shape.cuts() if n > p.layers]
            halved = (p.batch, p.context) in plan.HALVED and p.precision == "bf16"
            if more and not halved:
                bigger = shape.cut(min(more))
                assert plan.memory(bigger, p.precision, p.batch, p.context) > available


def test_memory_holds_weights_and_cache():
    shape = plan.load("Llama 3 70B")
    model = load_model("Llama 3 70B")
    least = sum(model.weight_bytes().values()) + 32 * model.cache_bytes(4096)
    assert least + plan.RESERVE < plan.memory(shape, "bf16", 32, 4096) < least + plan.RESERVE + 1e9


def test_the_grid_is_the_one_asked_for():
    found = decode.points("dense", 1e15)
    graph = {(p.model, p.precision, p.batch, p.context) for p in found if p.mode == "graph"}
    assert len(graph) == len(plan.DENSE) * 2 * 9 * 4
    assert not any(p.refused for p in found)
    full = {plan.load(name).layers for name in plan.DENSE}
    assert {p.layers for p in found if (p.batch, p.context) not in plan.HALVED} == full
    assert len(set(found)) == len(found)


def test_coarse_points_of_every_model_come_first():
    found = decode.points("dense", 79e9)
    assert all(a.order <= b.order for a, b in pairwise(found))
    first = [p for p in found if p.order == 0]
    assert {p.model for p in first} == set(plan.DENSE)
    assert {p.precision for p in first} == {"bf16"}
    # Points that share weights are neighbours, so no model is built twice in a pass.
    built = [(p.order, p.model, p.precision, p.layers) for p in found]
    changes = [b for a, b in pairwise([None, *built]) if a != b]
    assert len(changes) == len(set(changes))


# Rows and time.


def table(folder, **options):
    return record.Table(
        folder / "steps.csv", ("model", "batch", "status", "seconds"), ("model", "batch"), **options
    )


def test_rows_are_found_again(tmp_path):
    rows = table(tmp_path)
    rows.append(model="a", batch=1, status="ok", seconds=0.123456789)
    rows.append(model="a", batch=2, status="left out")
    rows.append(model="a", batch=4, status="failed")
    again = table(tmp_path)
    assert again.rows()[0] == {"model": "a", "batch": "1", "status": "ok", "seconds": "0.1234568"}
    assert [again.done(dict(model="a", batch=n)) for n in (1, 2, 4, 8)] == [True, False, True, False]
    assert not table(tmp_path, retry=True).done(dict(model="a", batch=4))


def test_half_a_row_of_a_killed_run_is_dropped(tmp_path):
    table(tmp_path).append(model="a", batch=1, status="ok", seconds=1.0)
    file = tmp_path / "steps.csv"
    file.write_text(file.read_text() + "a,2,o")
    rows = table(tmp_path)
    rows.append(model="a", batch=2, status="ok", seconds=2.0)
    assert [(row["batch"], row["status"]) for row in rows.rows()] == [("1", "ok"), ("2", "ok")]


def test_another_header_or_column_is_refused(tmp_path):
    with pytest.raises(LookupError, match="no column speed"):
        table(tmp_path).append(model="a", batch=1, status="ok", speed=1)
    (tmp_path / "steps.csv").write_text("model,status\n")
    with pytest.raises(ValueError, match="another version"):
        table(tmp_path)


def test_text_stays_in_its_cell(tmp_path):
    rows = table(tmp_path)
    rows.append(model='a "b", c\nd', batch=None, status="ok")
    with rows.file.open(newline="") as file:
        assert list(csv.reader(file))[1] == ['a "b", c d', "", "ok", ""]


def test_a_point_starts_only_if_the_longest_would_end_in_time():
    now = [0.0]
    budget = record.Budget(100, reserve=5, clock=lambda: now[0])
    budget.spent_on_point(20)
    budget.spent_on_point(3)
    now[0] = 75
    assert budget.allows() and budget.left() == 25
    now[0] = 75.1
    assert not budget.allows()


def test_repeats_fill_the_time():
    assert [plan.repeats(s) for s in (1e-6, 0.004, 0.0041, 1.0, 0.0)] == [200, 100, 98, 10, 200]


def test_columns_are_named_once():
    for columns in (record.STEPS, record.CEILINGS, record.BREAKDOWN, record.CHECKS):
        assert len(set(columns)) == len(columns)
    assert set(record.KEY) <= set(record.STEPS) & set(record.BREAKDOWN)
    assert set(record.CEILING_KEY) <= set(record.CEILINGS)


# The command line, and what the README says of it.


def test_commands_of_the_readme_are_read():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    python measurements/decode\.py (.*?)(?: +#.*)?$", text, re.M)
    stages = [decode.arguments(shlex.split(command)).stage for command in commands]
    assert {*decode.STAGES, "plan", "all"} <= set(stages)
    for column in {*record.STEPS, *record.CEILINGS, *record.BREAKDOWN, *record.CHECKS}:
        assert f"`{column}`" in text, column
    assert sum(decode.SECONDS.values()) <= 25 * 60


@pytest.mark.parametrize(
    "words", ["dense", "plan", "dense --out x --budget 0", "dense --out x --budget nan", "everything --out x"]
)
def test_a_wrong_command_is_refused(words, capsys):
    with pytest.raises(SystemExit):
        decode.arguments(words.split())
    assert "error" in capsys.readouterr().err


def test_the_plan_needs_no_pytorch():
    code = "import sys; sys.modules['torch'] = None; import decode; decode.main(['plan', '--memory', '79e9'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=FOLDER, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    row = next(
        line for line in done.stdout.split("Llama 3 8B, bf16")[1].splitlines() if line.startswith("    1 ")
    )
    assert row.split() == ["1", "32", "32", "32", "32"]


def test_no_path_of_the_machine_is_recorded():
    words = ["dense", "--out", "/home/someone/results", "--budget", "9"]
    assert decode.anonymous(words, Path("/home/someone/results")) == [
        "dense",
        "--out",
        "results",
        "--budget",
        "9",
    ]


# What needs PyTorch.

HAS_TRITON = importlib.util.find_spec("triton") is not None


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    with torch.no_grad():
        yield torch


@pytest.mark.parametrize("name", ["Llama 3 8B", "Qwen3 4B", *plan.SPARSE])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp8"])
def test_steps_agree_with_full_causal_attention(torch, name, precision):
    from decoding import check
    from decoding.plain import Plain

    if precision == "fp8" and name in plan.SPARSE:
        pytest.skip("fp8 is for dense models")
    error, same = check.compare(name, precision, Plain(pad=16), "cpu", ("bmm",), ("gather",))
    assert error < {"fp32": 1e-5, "bf16": 2e-2, "fp8": 8e-2}[precision]
    assert same is None or same > 0.9


@pytest.mark.parametrize("fp8", [False, True])
def test_a_product_keeps_the_size_of_activations(torch, fp8):
    from decoding.model import Linear

    torch.manual_seed(0)
    matrix = Linear(256, 4096, torch.bfloat16, "cpu", fp8=fp8)
    assert (torch.randn(64, 4096) @ matrix.real().t()).std() == pytest.approx(1, rel=0.05)


def test_weights_in_memory_are_what_the_planner_counts(torch):
    from decoding.model import Decoder
    from decoding.plain import Plain

    def size(thing, seen):
        if isinstance(thing, torch.Tensor):
            new = thing.data_ptr() not in seen and thing.numel() > 1  # scales of one value are left out
            seen.add(thing.data_ptr())
            return thing.numel() * thing.element_size() if new else 0
        if isinstance(thing, (list, tuple)):
            return sum(size(part, seen) for part in thing)
        return sum(size(part, seen) for part in vars(thing).values()) if hasattr(thing, "weight") else 0

    for name in MODELS:
        for precision in plan.PRECISIONS["sparse" if name in plan.SPARSE else "dense"]:
            shape = plan.tiny(plan.load(name))
            decoder = Decoder(shape, precision, Plain(), "cpu", 8)
            seen = set()
            total = size([decoder.embedding, decoder.head, decoder.norm], seen)
            for layer in decoder.layers:
                total += sum(size(part, seen) for part in vars(layer).values() if part is not layer.kind)
            assert total == plan.weight_bytes(shape, precision), (name, precision)


@pytest.mark.parametrize("stage, rows", [("dense", 56), ("sparse", 16)])
def test_a_stage_runs_resumes_and_survives_a_failure(torch, tmp_path, monkeypatch, stage, rows):
    from decoding import steps

    whole = steps.Bench.measure
    calls = []

    def measure(self, point):
        calls.append(point)
        if len(calls) == 2:
            raise RuntimeError("out of luck")
        return whole(self, point)

    monkeypatch.setattr(steps.Bench, "measure", measure)
    command = [stage, "--device", "cpu", "--tiny", "--out", str(tmp_path / "results")]
    assert decode.main(command) == 0
    found = record.Table(tmp_path / "results" / "steps.csv", record.STEPS, record.KEY).rows()
    assert len(found) == rows
    assert [row["status"] for row in found].count("failed") == 1
    assert "out of luck" in found[1]["note"]
    for row in found:
        if row["status"] == "ok":
            assert 0 < float(row["lower"]) <= float(row["seconds"]) <= float(row["upper"])
            if stage == "sparse":
                assert 2 <= float(row["experts_touched"]) <= 8
    decode.main(command)
    assert len(calls) == rows
    decode.main([*command, "--retry"])
    assert len(calls) == rows + 1
    assert "results" in (tmp_path / "results" / "machine.json").read_text()
    assert str(tmp_path) not in (tmp_path / "results" / "machine.json").read_text()


def test_a_budget_leaves_points_out_and_says_so(torch, tmp_path):
    command = ["dense", "--device", "cpu", "--tiny", "--out", str(tmp_path), "--models", "Qwen3 4B"]
    assert decode.main([*command, "--budget", "1"]) == 0
    found = record.Table(tmp_path / "steps.csv", record.STEPS, record.KEY).rows()
    assert {row["status"] for row in found} == {"left out"}
    assert all(row["note"] for row in found)
    decode.main(command)
    again = record.Table(tmp_path / "steps.csv", record.STEPS, record.KEY).rows()
    assert {row["status"] for row in again[len(found) :]} == {"ok"}
    assert len(again) == 2 * len(found)


def test_ceilings_and_breakdown_end_with_rows(torch, tmp_path):
    for stage in ("ceilings", "breakdown"):
        assert decode.main([stage, "--device", "cpu", "--tiny", "--out", str(tmp_path)]) == 0
    ceilings = record.Table(tmp_path / "ceilings.csv", record.CEILINGS, record.CEILING_KEY).rows()
    assert {"copy", "read", "square product", "skinny product", "eager launch", "graph replay"} <= {
        row["quantity"] for row in ceilings
    }
    assert {row["status"] for row in ceilings} <= {"ok", "unsupported"}
    breakdown = record.Table(tmp_path / "breakdown.csv", record.BREAKDOWN, record.KEY).rows()
    assert {row["status"] for row in breakdown} == {"failed"}  # a CPU has no kernels, and says so
    assert "no kernels" in breakdown[0]["note"]


@pytest.mark.skipif(not HAS_TRITON, reason="needs Triton")
@pytest.mark.parametrize("part", ["operations", "step"])
def test_triton_kernels_agree_with_plain_operations(part):
    """In a process of its own: whether Triton interprets is decided when it is imported."""
    pytest.importorskip("torch")
    file = Path(__file__).with_name("interpret_kernels.py")
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, file, part], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not HAS_TRITON, reason="needs Triton")
@pytest.mark.parametrize("seen", [1, 63, 64, 65, 1000, 1024, 32768])
def test_parts_of_attention_are_whole_and_never_empty(torch, seen):
    from decoding.fused import split

    for block in (16, 64, 128):
        for wanted in (1, 2, 7, 33, 128):
            parts, size = split(seen, block, wanted)
            assert parts <= wanted and size % block == 0
            assert (parts - 1) * size < seen <= parts * size


def test_kernels_are_sorted_into_kinds(torch):
    from decoding.steps import kind_of

    names = {
        "_attend": "attention",
        "_merge": "attention",
        "flash_fwd_splitkv_kernel": "attention",
        "nvjet_hsh_64x8_64x16_4x1_v_bz_TNT": "matrix",
        "sm90_xmma_gemm_bf16bf16_bf16f32": "matrix",
        "cublasLt::splitKreduce_kernel": "matrix",
        "_grouped": "experts",
        "_combine": "experts",
        "_choose": "router",
        "_sort": "router",
        "_norm": "norm",
        "_rotate": "rotary",
        "_glu": "activation",
        "void at::native::reduce_kernel": "other",
        "Memset (Device)": "memory",
    }
    assert {name: kind_of(name) for name in names} == names
