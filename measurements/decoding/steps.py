"""The stages ``dense``, ``sparse`` and ``breakdown``: single decode steps over a grid of points."""

import time
from dataclasses import replace

import torch

from decoding import device as devices, plan, record
from decoding.model import (
    Cache,
    Decoder,
    Settings,
    buffer,
    cache_values,
    random_tokens,
)

KINDS = (  # of kernels, by what their names hold; the first that fits
    ("attention", ("_attend", "_merge", "flash", "fmha", "attention", "softmax")),
    ("experts", ("_grouped", "grouped", "_combine")),
    ("router", ("_choose", "_sort", "topk", "radix")),
    ("matrix", ("gemm", "gemv", "nvjet", "cutlass", "splitk", "xmma", "cublas", "matmul")),
    ("norm", ("_norm",)),
    ("rotary", ("_rotate",)),
    ("activation", ("_glu",)),
    ("memory", ("memcpy", "memset")),
)


def kind_of(kernel):
    """The kind of a kernel by its name."""
    name = kernel.lower()
    return next((kind for kind, parts in KINDS if any(part in name for part in parts)), "other")


class Bench:
    """A device, one model on it at a time, and the kernels found fastest so far."""

    def __init__(self, device, ops, tiny=False):
        self.device, self.ops, self.tiny = device, ops, tiny
        self.decoder = self.buffer = self.held = None
        self.choices = {}

    def shape(self, name):
        shape = plan.load(name)
        return plan.tiny(shape) if self.tiny else shape

    def hold(self, point, positions, values):
        """Build the model of a point, unless it is there; its buffer takes the largest cache of its group."""
        wanted = (point.model, point.precision, point.layers, positions, values)
        if self.held == wanted:
            return
        self.drop()
        torch.manual_seed(0)
        shape = self.shape(point.model).cut(point.layers)
        self.decoder = Decoder(shape, point.precision, self.ops, self.device.name, positions)
        self.buffer = buffer(values, point.precision, self.device.name)
        self.held = wanted

    def drop(self):
        """Free the model."""
        self.decoder = self.buffer = self.held = None
        self.device.clean()

    def prepare(self, point):
        """A call that makes one step, and what it needs: cache, tokens, the kernels chosen."""
        shape = self.decoder.shape
        cache = Cache(shape, point.batch, point.context, self.buffer)
        tokens = random_tokens(point.batch, shape, self.device.name)
        settings = self.choose(point, cache, tokens)

        def step():
            return self.decoder.step(tokens, cache, point.context - 1, settings)

        return step, cache, tokens, settings

    def choose(self, point, cache, tokens):
        """The fastest kernels for a point: attention for each kind of layer, then the experts' matrices."""
        settings, shape, ops = Settings(), self.decoder.shape, self.ops
        layers = list(zip(self.decoder.layers, cache.layers, strict=True))
        for kind in shape.kinds:
            seen = kind.seen(point.context)
            heads = (kind.n_heads, kind.n_kv_heads, kind.head_dim, kind.sinks)
            key = ("attention", *heads, point.batch, seen, self.decoder.fp8)
            if key not in self.choices:
                q = torch.randn(point.batch, kind.n_heads, kind.head_dim, device=self.device.name)
                q = q.to(self.buffer.dtype)
                mine = [(layer, pair) for layer, pair in layers if layer.kind is kind]

                def attend(setting, q=q, mine=mine, seen=seen):
                    for layer, (k, v) in mine:
                        ops.attend(q, k, v, seen, layer.sinks, setting, self.decoder.fp8)

                candidates = ops.attention_settings(point.batch, kind.n_kv_heads, seen, kind.sinks)
                self.choices[key] = devices.fastest(self.device, candidates, attend)[0]
            settings.attention[kind.window] = self.choices[key]
        if shape.sparse:
            kind = shape.kinds[0]
            key = ("experts", shape.name, point.batch)
            if key not in self.choices:
                self.choices[key] = self._choose_experts(kind, point.batch)
            settings.up, settings.down = self.choices[key]
        return settings

    def _choose_experts(self, kind, batch):
        """The fastest kernels for the two matrices of the experts, on random routes of every layer."""
        ops, layers, width = self.ops, self.decoder.layers, self.decoder.shape.d_model
        dtype, where = self.buffer.dtype, self.device.name
        h = torch.randn(batch, width, device=where).to(dtype)
        z = torch.randn(batch * kind.n_active, kind.d_expert, device=where).to(dtype)
        routes = [ops.route(layer.router(h), kind.n_active) for layer in layers]

        def up(setting):
            for layer, (ids, _, order, _, starts) in zip(layers, routes, strict=True):
                ops.grouped(h, layer.up, layer.up_bias, order, starts, ids, kind.n_active, setting)

        def down(setting):
            for layer, (ids, _, order, _, starts) in zip(layers, routes, strict=True):
                ops.grouped(z, layer.down, layer.down_bias, order, starts, ids, 0, setting)

        cuda = self.device.graphs and not self.tiny
        candidates = ops.expert_settings(batch * kind.n_active, kind.n_experts, cuda)
        return tuple(devices.fastest(self.device, candidates, work)[0] for work in (up, down))

    def measure(self, point):
        """Columns of a finished point."""
        step, cache, tokens, settings = self.prepare(point)
        shape = self.decoder.shape
        logits, _ = step()
        if not torch.isfinite(logits).all() or not 0.2 < logits.float().std().item() < 5:
            raise RuntimeError("logits are not of about unit size")
        touched = None
        if shape.sparse:
            touched = self.decoder.experts_touched(tokens, cache, point.context - 1, settings)
        call = self.device.capture(step) if point.mode == "graph" else step
        times = self.device.times(call)
        return {
            **columns(shape, point, touched),
            **times.columns(),
            "host_seconds": times.host_seconds,
            "operations": self.decoder.operations(settings) if self.ops.name == "fused" else None,
            "attention": " ".join(label(s) for s in settings.attention.values()),
            "experts": f"{label(settings.up)} {label(settings.down)}" if shape.sparse else None,
        }

    def profile(self, point, repeats):
        """Seconds of a step and its kernels. What it holds is freed on return, before the next model."""
        shape = self.shape(point.model).cut(point.layers)
        self.hold(point, point.context, cache_values(shape, point.batch, point.context))
        step, *_ = self.prepare(point)
        call = self.device.capture(step) if point.mode == "graph" else step
        seconds = self.device.times(call).seconds
        rows = [
            dict(kind=kind_of(name), kernel=name[:120], calls=calls, seconds=each)
            for name, (calls, each) in self.device.kernels(call, repeats).items()
        ]
        return seconds, rows


def label(setting):
    return "-".join(str(part) for part in setting)


def columns(shape, point, touched=None):
    """What a point must move and compute, by this script's count."""
    expected = plan.expected_experts(shape.kinds[0], point.batch) if shape.sparse else None
    return {
        "weight_bytes": plan.weight_bytes(shape, point.precision, point.batch, touched),
        "cache_bytes": plan.cache_bytes(shape, point.batch, point.context),
        "flop": plan.flop(shape, point.batch, point.context),
        "experts_touched": touched,
        "experts_expected": expected,
    }


def describe(point, total):
    """Columns that name a point."""
    return {
        "model": point.model,
        "layers": point.layers,
        "layers_total": total,
        "precision": point.precision,
        "mode": point.mode,
        "batch": point.batch,
        "context": point.context,
    }


def supported(device, precision):
    """Why a precision cannot be measured here, or nothing."""
    if precision != "fp8":
        return ""
    from decoding.model import Linear
    from decoding.plain import quantise

    try:
        x = quantise(torch.randn(16, 64, device=device.name))
        Linear(32, 64, torch.bfloat16, device.name, fp8=True)(x)
        device.synchronize()
    except Exception as error:
        return devices.reason(error)
    return ""


def run(stage, points, bench, table, budget, common, measure=None):
    """Measure the points that no earlier run finished, each into its row; stop in time.

    Returns how many points got each status.
    """
    measure = measure or bench.measure
    totals = {name: bench.shape(name).layers for name in {point.model for point in points}}
    missing = {p: supported(bench.device, p) for p in {point.precision for point in points}}
    counts = {}

    def write(point, status, **more):
        row = dict(common, stage=stage, **describe(point, totals[point.model]), status=status, **more)
        table.append(**row)
        counts[status] = counts.get(status, 0) + 1
        seconds = f" {row['seconds'] * 1e3:.3f} ms" if row.get("seconds") else ""
        note = f" ({row['note']})" if row.get("note") else ""
        record.say(
            f"{budget.left():5.0f} s left  {point.model} {point.precision} {point.mode} "
            f"batch {point.batch} context {point.context} layers {point.layers}: {status}{seconds}{note}"
        )

    todo = []
    for point in points:
        if table.done(dict(common, **describe(point, totals[point.model]))):
            counts["done before"] = counts.get("done before", 0) + 1
        elif point.refused:
            write(point, "does not fit", note=point.refused)
        elif missing[point.precision]:
            write(point, "unsupported", note=missing[point.precision])
        else:
            todo.append(point)
    for point in todo:
        if not budget.allows():
            write(point, "left out", note="no time left in this run; run again to measure it")
            continue
        start = time.monotonic()
        # One model and one buffer serve all points of a group.
        group = [p for p in todo if _group(p) == _group(point)]
        shape = bench.shape(point.model).cut(point.layers)
        values = max(cache_values(shape, p.batch, p.context) for p in group)
        try:
            bench.hold(point, max(p.context for p in group), values)
            write(point, "ok", **measure(point))
        except Exception as error:  # Triton's errors have no common base with PyTorch's
            why = devices.reason(error)
            del error  # it holds the frames, and they hold memory
            write(point, "failed", note=why)
            devices.lost(bench.device)
            bench.drop()
        budget.spent_on_point(time.monotonic() - start)
    bench.drop()
    return counts


def _group(point):
    return (point.order, point.model, point.precision, point.layers)


def breakdown(points, bench, table, budget, common, repeats=5):
    """Kernels of a step as the profiler sees them: one row for each, with calls and seconds per step."""
    counts = {}
    for point in points:
        where = {**describe(point, 0), **common}
        where.pop("layers_total")
        if table.done(where) or point.refused:
            continue
        if not budget.allows():
            table.append(**where, status="left out", note="no time left in this run")
            counts["left out"] = counts.get("left out", 0) + 1
            continue
        start = time.monotonic()
        try:
            seconds, rows = bench.profile(point, repeats)
        except Exception as error:  # Triton's errors have no common base with PyTorch's
            rows, seconds = [], None
            table.append(**where, status="failed", note=devices.reason(error))
            counts["failed"] = counts.get("failed", 0) + 1
            del error
            devices.lost(bench.device)
            bench.drop()
        for row in sorted(rows, key=lambda row: -row["seconds"]):
            table.append(**where, status="ok", step_seconds=seconds, **row)
        counts["kernels"] = counts.get("kernels", 0) + len(rows)
        budget.spent_on_point(time.monotonic() - start)
    bench.drop()
    return counts


def breakdown_points(shapes, available, profiled=plan.PROFILED):
    """A few points of every model, as graphs, and the first of them eager too."""
    points = []
    for shape in shapes:
        mine = [plan.point(shape, "bf16", batch, context, available) for batch, context in profiled]
        points += [*mine, replace(mine[0], mode="eager")]
    return points
