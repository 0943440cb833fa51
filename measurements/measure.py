"""Measure one GPU: ``python -m measurements.measure STAGE --out FILE``. See README.md."""

import platform
import shlex
import statistics
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict, replace

import torch
import torch.nn.functional as F
from torch.autograd import DeviceType
from torch.utils.flop_counter import FlopCounterMode

from inferlib import load_model
from measurements import plan

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
MIB = 2**20
LIMIT = 1e-4  # ||step - reference|| / ||reference|| in float32


# A step.


def random(shape, dtype=torch.bfloat16):
    """Normal values; those of a matrix are scaled so that activations keep their size."""
    return torch.empty(shape, dtype=dtype, device=DEVICE).normal_().mul_(shape[-1] ** -0.5)


def rotate(x, turn):
    """Rotary positions: pairs (i, i + d/2) turned by the angles of ``turn`` (cosines, sines)."""
    low, high = x.chunk(2, dim=-1)
    return torch.cat([low * turn[0] - high * turn[1], high * turn[0] + low * turn[1]], dim=-1)


def experts(w, x, n_active, touched=None):
    """A mixture of experts: pairs of token and expert are sorted by expert, then multiplied group by group."""
    n = len(w["router"])
    scores, ids = F.linear(x, w["router"]).topk(n_active, dim=-1)
    order = ids.flatten().argsort(stable=True)
    ends = (ids.flatten()[:, None] == torch.arange(n, device=x.device)).sum(0).cumsum(0).int()
    if touched is not None:
        touched.append(len(ids.unique()))
    gate, up = F.grouped_mm(x[order // n_active], w["up"].transpose(1, 2), offs=ends).chunk(2, dim=-1)
    y = F.grouped_mm(F.silu(gate) * up, w["down"].transpose(1, 2), offs=ends)
    back = torch.empty_like(y)
    back[order] = y
    shares = scores.softmax(dim=-1, dtype=torch.float32).to(x.dtype)
    return (back.view(*ids.shape, -1) * shares[..., None]).sum(1)


def layer(w, x, k, v, turn, sizes, context, touched=None):
    """One layer for the last positions of ``context``, x (batch, new, width); their keys and values are cached."""
    n_heads, n_kv_heads, head_dim, n_active = sizes
    batch, new, d = x.shape
    h = F.rms_norm(x, (d,), w["norm"])
    qkv = F.linear(h, w["qkv"]).view(batch, new, -1, head_dim).transpose(1, 2)
    q, key, value = qkv.split([n_heads, n_kv_heads, n_kv_heads], dim=1)
    if "q_norm" in w:
        q, key = F.rms_norm(q, (head_dim,), w["q_norm"]), F.rms_norm(key, (head_dim,), w["k_norm"])
    k[:, :, context - new : context] = rotate(key, turn)
    v[:, :, context - new : context] = value
    seen = k[:, :, :context], v[:, :, :context]
    mixed = F.scaled_dot_product_attention(rotate(q, turn), *seen, is_causal=new > 1, enable_gqa=True)
    x = x + F.linear(mixed.transpose(1, 2).reshape(batch, new, -1), w["out"])
    h = F.rms_norm(x, (d,), w["block_norm"])
    if n_active:
        return x + experts(w, h.view(-1, d), n_active, touched).view(x.shape)
    gate, up = F.linear(h, w["up"]).chunk(2, dim=-1)
    return x + F.linear(F.silu(gate) * up, w["down"])


class Decoder:
    """A model of the catalogue with random weights, distinct in every layer; it makes single steps."""

    def __init__(self, model, dtype=torch.bfloat16):
        torch.manual_seed(0)
        (group,) = model.layers
        ends, each = plan.tensors(model)

        def filled(shapes):  # vectors are norms
            return {
                name: random(shape, dtype) if shape[1:] else torch.ones(shape, dtype=dtype, device=DEVICE)
                for name, shape in shapes.items()
            }

        self.model, self.dtype, self.ends = model, dtype, filled(ends)
        self.layers = [filled(each) for _ in range(group.count)]
        attention = group.attention
        n_active = group.feed_forward.n_active if model.sparse else 0
        self.sizes = attention.n_heads, attention.n_kv_heads, attention.head_dim, n_active

    def cache(self, batch, context):
        """Random keys and values of every layer."""
        _, n_kv_heads, head_dim, _ = self.sizes
        shape = (2, batch, n_kv_heads, context, head_dim)
        return [torch.empty(shape, dtype=self.dtype, device=DEVICE).normal_() for _ in self.layers]

    def turn(self, new, context):
        """Cosines and sines of the last ``new`` positions of a context."""
        half = self.sizes[2] // 2
        rates = 500_000.0 ** (-torch.arange(half, device=DEVICE) / half)
        angles = torch.arange(context - new, context, device=DEVICE)[:, None] * rates
        return angles.cos().to(self.dtype), angles.sin().to(self.dtype)

    def __call__(self, tokens, cache, context, turn, each=layer, touched=None):
        """Logits after the last of ``tokens`` (batch, new), and the likeliest next token."""
        x = F.embedding(tokens, self.ends["embedding"])
        for w, (k, v) in zip(self.layers, cache, strict=True):
            x = each(w, x, k, v, turn, self.sizes, context, touched)
        x = F.rms_norm(x[:, -1], x.shape[-1:], self.ends["last_norm"])
        logits = F.linear(x, self.ends.get("head", self.ends["embedding"]))
        return logits, logits.argmax(-1)

    def step(self, point):
        """A call that makes the step of a point, again and again; the same for every mode."""
        torch.manual_seed(point.batch)
        cache = self.cache(point.batch, point.context)
        turn = self.turn(point.tokens, point.context)
        tokens = torch.randint(self.model.vocab_size, (point.batch, point.tokens), device=DEVICE)
        each = torch.compile(layer, dynamic=False) if point.mode == "compiled" else layer

        def step(touched=None):
            return self(tokens, cache, point.context, turn, each if touched is None else layer, touched)

        return step


# The device.


def graph(step):
    """A call that replays ``step`` as one CUDA graph; on a CPU, ``step`` itself."""
    if not CUDA:
        return step
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # compile and allocate first: capture allows neither
        step()
        step()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        result = step()

    def replay(inputs=step):  # holds on to the tensors that the graph reads at fixed addresses
        captured.replay()
        return result

    return replay


def wait():
    if CUDA:
        torch.cuda.synchronize()


def smi(query):
    """What nvidia-smi answers, one text for each name of the query; empty texts without it."""
    try:
        call = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"]
        line = subprocess.run(
            call, capture_output=True, text=True, timeout=10, check=True
        ).stdout.splitlines()[0]
        return [text.strip() for text in line.split(",")]
    except (OSError, subprocess.SubprocessError):
        return [""] * len(query.split(","))


def times(step, per=1, target=0.4):
    """Median and quartiles of ``step`` in seconds, each divided by ``per``.

    Repetitions are queued back to back with an event between each two, so the device waits for the host only
    where launching takes longer than running. Clock and power are read while the queue still runs.
    """
    for _ in range(3):
        step()
    wait()
    start = time.perf_counter()
    step()
    wait()
    repeats = max(10, min(200, round(target / (time.perf_counter() - start)))) if CUDA else 3
    marks = []
    for i in range(repeats + 1):
        if i:
            step()
        marks.append(torch.cuda.Event(enable_timing=True) if CUDA else time.perf_counter())
        if CUDA:
            marks[-1].record()
    clock, watts = smi("clocks.sm,power.draw") if CUDA else ("", "")
    wait()
    pairs = zip(marks, marks[1:], strict=False)
    values = [(a.elapsed_time(b) / 1e3 if CUDA else b - a) / per for a, b in pairs]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    found = dict(seconds=middle, lower=low, upper=high, repeats=repeats)
    return found | dict(sm_mhz=clock, watts=watts)


def machine(words, out):
    """The columns ``plan.MACHINE``: no host name, no path."""
    driver, limit = smi("driver_version,power.limit")
    gpu = torch.cuda.get_device_name() if CUDA else "cpu"
    versions = torch.__version__, torch.version.cuda or "", platform.python_version()
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    command = shlex.join(["measure", *(word.replace(str(out), out.name) for word in words)])
    return dict(zip(plan.MACHINE, (gpu, driver, limit, *versions, date, command), strict=True))


class Run:
    """A stage under way: where its rows go, how long it may take, the one model on the device."""

    def __init__(self, options, words):
        self.rows = plan.Rows(options.out, machine(words, options.out))
        self.stage, self.tiny = options.stage, options.tiny
        self.end = time.monotonic() + options.seconds
        self.held = self.decoder = None
        self.left, self.statuses = 0, Counter()

    def load(self, name):
        model = load_model(name)
        return plan.tiny(model) if self.tiny else model

    def hold(self, name, layers):
        """The decoder with so many layers, built unless it is there."""
        if self.held != (name, layers):
            self.held = self.decoder = None
            self.decoder = Decoder(plan.cut(self.load(name), layers))
            self.held = name, layers
        return self.decoder

    def row(self, prepare, **names):
        """Measure a point, unless it has its row or time is up: ``prepare()`` returns the other columns."""
        names = {"stage": self.stage, **names}
        if self.rows.has(**{name: names[name] for name in plan.POINT if name in names}):
            return
        if time.monotonic() > self.end:
            self.left += 1
            return
        try:
            row = names | {"status": "ok"} | prepare()
        except Exception as error:  # one that fails must not cost the others
            self.held = self.decoder = None
            row = names | {
                "status": "failed",
                "note": f"{type(error).__name__}: {error}".splitlines()[0][:200],
            }
        self.rows.add(**row)
        self.statuses[row["status"]] += 1
        print(
            *(row.get(n, "") for n in (*plan.POINT, "status", "seconds", "note")), file=sys.stderr, flush=True
        )
        wait()  # raises where an error has lost the device: the same command again goes on behind this row
        if CUDA:
            torch.cuda.empty_cache()


# The stages.


def check(run):
    """Right before fast, on narrow models in float32: rows say ``wrong`` where the step does not agree."""

    def close(found, wanted):
        error = ((found - wanted).norm() / wanted.norm()).item()
        return verdict(error < LIMIT, f"error {error:.1e}, at most {LIMIT}")

    def verdict(good, note):
        return {"status": "ok" if good else "wrong", "note": note}

    def prompt(decoder):
        """One position after the other through the cache against the prompt at once, attention causal."""
        tokens = torch.randint(decoder.model.vocab_size, (3, 20), device=DEVICE)
        at_once, _ = decoder(tokens, decoder.cache(3, 20), 20, decoder.turn(20, 20))
        cache = decoder.cache(3, 24)
        for i in range(20):
            last, _ = decoder(tokens[:, i : i + 1], cache, i + 1, decoder.turn(1, i + 1))
        return close(last, at_once)

    def modes(decoder, mode):
        step = decoder.step(replace(point, mode=mode))
        wanted, _ = decoder.step(point)()
        return close(graph(step)()[0], wanted)

    def arithmetic(decoder):
        """PyTorch's own count of FLOP against inferlib's; it does not know the products of experts."""
        parts = decoder.model.flops(point.context)
        wanted = point.batch * sum(n for part, n in parts.items() if part != "experts")
        with FlopCounterMode(display=False) as counter:
            decoder.step(point)()
        known = counter.get_flop_counts()["Global"].items()
        found = sum(n for name, n in known if "grouped" not in str(name))
        return verdict(found == wanted, f"{found} against {wanted:.0f} FLOP")

    def weights(decoder):
        every = [decoder.ends, *decoder.layers]
        found = sum(tensor.nbytes for group in every for tensor in group.values())
        wanted = sum(decoder.model.weight_bytes("fp32").values())
        return verdict(found == wanted, f"{found} against {wanted:.0f} bytes")

    point = plan.Point("check", "", 2, 3, 1, 24)
    for name in (*plan.DENSE[:2], *plan.SPARSE[:1]):
        decoder = Decoder(plan.tiny(load_model(name)), torch.float32)
        run.row(lambda d=decoder: prompt(d), what="cache against prompt", model=name)
        for mode in ("graph", "compiled"):
            run.row(lambda d=decoder, m=mode: modes(d, m), what="mode against eager", model=name, mode=mode)
        run.row(lambda d=decoder: arithmetic(d), what="FLOP of PyTorch's counter", model=name)
        run.row(lambda d=decoder: weights(d), what="bytes of the weights", model=name)


def ceilings(run):
    """Launches, memory, matrices and attention alone, over buffers larger than every cache of the chip."""

    def row(what, work, calls=1, mode="graph", total=None, **names):
        """``work(calls)`` makes the call to time, in which the operation is done ``calls`` times."""

        def prepare():
            call = work(calls)
            return times(graph(call) if mode == "graph" else call, calls) | {"bytes": total, "calls": calls}

        run.row(prepare, what=what, mode=mode, **names)

    def additions(n):
        x = torch.zeros(32, device=DEVICE)
        return lambda: [x.add_(1.0) for _ in range(n)]

    def waited(n):
        one = additions(n)
        return lambda: (one(), wait())

    for n in (1, 10, 100, 1000):
        for mode in ("eager", "graph"):
            row("launch", additions, n, mode, n=n)
    row("launch and wait", waited, mode="eager")

    def pieces(size, count):
        return torch.empty(count, size // 2, dtype=torch.bfloat16, device=DEVICE).normal_()

    for size in [MIB << i for i in range(2 if run.tiny else 13)]:
        calls = 2 if run.tiny else max(1, min(256, 4096 * MIB // size))

        def copies(n, size=size):
            source, target = pieces(size, n), pieces(size, n)
            return lambda: [b.copy_(a) for a, b in zip(source, target, strict=True)]

        def sums(n, size=size):
            source = pieces(size, n)
            return lambda: [piece.sum() for piece in source]

        row("copy", copies, calls, n=size, total=2 * size)
        row("read", sums, calls, n=size, total=size)

    squares = [(n, n, n) for n in ((128, 256) if run.tiny else (1024, 2048, 4096, 8192, 16384))]
    every = {n: run.load(n) for n in (*plan.DENSE, *plan.SPARSE)}
    shapes = {plan.tensors(every[n])[1][m] for n in plan.DENSE for m in ("qkv", "out", "up", "down")}
    skinny = [(m, *shape) for shape in sorted(shapes) for m in (1, 4, 16, 32, 64, 128, 256)]
    for m, n, k in squares + skinny:
        size = 2 * (m * k + n * k + m * n)
        calls = 2 if run.tiny else max(2, 1024 * MIB // size)

        def products(calls, m=m, n=n, k=k):
            x, matrices = random((m, k)), [random((n, k)) for _ in range(calls)]
            return lambda: [F.linear(x, matrix) for matrix in matrices]

        row("matmul", products, calls, m=m, n=n, k=k, total=size, flop=2 * m * n * k)

    for name, model in every.items():
        attention = model.layers[0].attention
        for batch, context in plan.PROFILED[: 1 if run.tiny else None]:
            size = round(batch * model.cache_bytes(context) / model.n_layers)
            shape = (2, batch, attention.n_kv_heads, context, attention.head_dim)
            calls = 2 if run.tiny else max(2, 512 * MIB // size)

            def attend(n, shape=shape, heads=attention.n_heads):
                caches = [torch.empty(shape, dtype=torch.bfloat16, device=DEVICE).normal_() for _ in range(n)]
                q = random((shape[1], heads, 1, shape[-1]))
                return lambda: [F.scaled_dot_product_attention(q, k, v, enable_gqa=True) for k, v in caches]

            row("attention", attend, calls, model=name, batch=batch, context=context, total=size)


def steps(run, finish=lambda point, call: times(call)):
    """Single steps of the stage's models over its grid; ``finish`` times the call that makes one."""
    every = (*plan.DENSE, *plan.SPARSE)
    names = {"dense": plan.DENSE, "sparse": plan.SPARSE, "prefill": every}.get(
        run.stage, (every[0], every[-1])
    )
    available = torch.cuda.mem_get_info()[0] if CUDA else 8e9
    grid = plan.points(run.stage, names, available, run.load)
    for point in [p for p in grid if p.batch * p.context <= 4096] if run.tiny else grid:
        run.row(lambda p=point: measured(run, p, finish), what="step", **asdict(point))


def measured(run, point, finish):
    """The other columns of the row of a point."""
    if not point.layers:
        return {"status": "does not fit", "note": "not even an eighth of the layers"}
    torch.compiler.reset()
    decoder = run.hold(point.model, point.layers)
    step = decoder.step(point)
    touched = [] if decoder.model.sparse else None
    logits, _ = step(touched)
    if not torch.isfinite(logits).all():
        raise FloatingPointError("logits are not finite")
    counted = plan.counts(decoder.model, point) | {"experts": statistics.mean(touched) if touched else ""}
    return counted | finish(point, step if point.mode == "eager" else graph(step))


def breakdown(run, repeats=5):
    """Kernels of a step as the profiler names them, with calls and seconds of one step; then the step itself."""
    kind = DeviceType.CUDA if CUDA else DeviceType.CPU

    def kernels(point, call):
        found = times(call)
        with torch.profiler.profile() as seen:
            for _ in range(repeats):
                call()
            wait()
        for event in seen.key_averages():
            each = event.self_device_time_total if CUDA else event.self_cpu_time_total
            if event.device_type == kind and each:
                row = asdict(point) | {
                    "what": event.key[:120],
                    "status": "ok",
                    "calls": event.count / repeats,
                }
                run.rows.add(**row, seconds=each / 1e6 / repeats)
        return found

    steps(run, kernels)


def main(words=None):
    """Run the stage of the command line; 1 if a check failed."""
    words = sys.argv[1:] if words is None else words
    options = plan.arguments(words)
    if not CUDA and not options.tiny:
        raise SystemExit(
            "PyTorch sees no CUDA device; --try runs narrow models on a CPU, whose times mean nothing"
        )
    run = Run(options, words)
    with torch.no_grad():
        {"check": check, "ceilings": ceilings, "breakdown": breakdown}.get(options.stage, steps)(run)
    print(f"{options.stage}: {dict(run.statuses)}, {run.left} points left for another run", file=sys.stderr)
    return int(options.stage == "check" and not set(run.statuses) <= {"ok"})


if __name__ == "__main__":
    sys.exit(main())
