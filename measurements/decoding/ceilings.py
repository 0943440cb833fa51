"""The stage ``ceilings``: what memory, matrix units and launches give when nothing else is in the way.

Work is queued as CUDA graphs over distinct stretches of a buffer larger than every cache, so that neither
launches nor cached data flatter a result.
"""

import time

import torch

from decoding import device as devices, plan, record
from decoding.model import Linear
from decoding.plain import quantise
from decoding.steps import label, supported

MIB = 2**20
SIZES = tuple(MIB << i for i in range(13))  # 1 MiB to 4 GiB
SQUARES = (1024, 2048, 4096, 8192, 16384)
SKINNY = (1, 4, 16, 32, 64, 128, 256)
LAYERS = ((8192, 8192), (57344, 8192), (8192, 28672), (28672, 4096), (4096, 14336))  # n, k of dense layers
LAUNCHES = (1, 10, 100, 1000)
ATTENTION = ((1, 1024), (1, 32768), (16, 4096), (64, 4096), (256, 1024))


class Ceilings:
    """Measures one ceiling after the other into rows."""

    def __init__(self, device, ops, table, budget, common, tiny=False):
        self.device, self.ops, self.table, self.budget = device, ops, table, budget
        self.common, self.tiny = common, tiny
        self.where = device.name
        self.counts = {}

    def run(self):
        """All ceilings, the cheapest first."""
        self.launches()
        self.bandwidth()
        self.squares("bf16")
        self.attention()
        self.skinny("bf16")
        self.squares("fp8")
        self.skinny("fp8")
        return self.counts

    def row(self, prepare, per=1, amount=0, unit="", **names):
        """One row: ``prepare()`` returns the call to time, in which the work is done ``per`` times."""
        where = {**self.common, **names}
        if self.table.done(where):
            return self._count("done before")
        if not self.budget.allows():
            self.table.append(**where, status="left out", note="no time left in this run")
            return self._count("left out")
        start, status = time.monotonic(), "ok"
        try:
            times = self.device.times(prepare(), target=0.2).columns(per)
            rate = amount / times["seconds"] if amount else None
            self.table.append(**where, status=status, rate=rate, unit=unit, **times)
            record.say(f"{names}: {times['seconds'] * 1e6:.2f} us" + (f", {rate:.4g} {unit}" if rate else ""))
        except Exception as error:  # one ceiling that cannot be measured must not cost the others
            status = "failed"
            why = devices.reason(error)
            del error
            self.table.append(**where, status=status, note=why)
            record.say(f"{names}: failed ({why})")
            devices.lost(self.device)
        self.device.clean()
        self.budget.spent_on_point(time.monotonic() - start)
        return self._count(status)

    def _count(self, status):
        self.counts[status] = self.counts.get(status, 0) + 1

    # Launches.

    def launches(self):
        """Seconds of so many kernels that do next to nothing, one after the other: eager and as a graph."""
        x = torch.zeros(32, device=self.where)
        methods = {"add": lambda: x.add_(1.0)}
        if self.ops.name == "fused":
            from decoding import fused

            methods["empty kernel"] = lambda: fused.empty(x)
        for method, one in methods.items():
            for count in LAUNCHES[:2] if self.tiny else LAUNCHES:

                def many(one=one, count=count):
                    for _ in range(count):
                        one()

                same = dict(method=method, launches=count, precision="fp32")
                self.row(lambda many=many: many, quantity="eager launch", **same)
                self.row(lambda many=many: self.device.capture(many), quantity="graph replay", **same)
        self.row(lambda: self._waited(methods["add"]), quantity="launch and wait", method="add", launches=1)

    def _waited(self, one):
        """A launch, and the host's wait for its end."""

        def call():
            one()
            self.device.synchronize()

        return call

    # Memory.

    def bandwidth(self):
        """Bytes per second of a copy (read and written bytes both counted) and of a read."""
        total = 16 * MIB if self.tiny else 8 * 1024 * MIB
        x = torch.randint(-(2**30), 2**30, (total // 4,), dtype=torch.int32, device=self.where)
        sums = torch.empty(total // 4 // 1024, dtype=torch.int32, device=self.where)
        for size in SIZES[:3] if self.tiny else SIZES:
            stretch = size // 4
            pieces = list(x.split(stretch))
            calls = min(len(pieces) // 2, 256)
            same = dict(precision="int32", bytes=size, launches=calls, unit="B/s")

            def copy(pieces=pieces, calls=calls):
                for a, b in zip(pieces[:calls], pieces[calls : 2 * calls], strict=True):
                    b.copy_(a)

            def total_of(pieces=pieces, calls=calls):
                for piece in pieces[:calls]:
                    torch.sum(piece.view(torch.float32))

            def read(pieces=pieces, calls=calls):
                from decoding import fused

                for piece in pieces[:calls]:
                    fused.read(piece, sums)

            def capture(work):
                return lambda: self.device.capture(work)

            self.row(capture(copy), calls, 2 * size, quantity="copy", method="copy_", **same)
            self.row(capture(total_of), calls, size, quantity="read", method="sum", **same)
            if self.ops.name == "fused":
                self.row(capture(read), calls, size, quantity="read", method="triton", **same)

    # Matrices.

    def squares(self, precision):
        """FLOP per second of square matrix products, where arithmetic is the limit."""
        for n in (128, 256) if self.tiny else SQUARES:
            self._product(n, n, n, precision, "square product", copies=1)

    def skinny(self, precision):
        """Bytes of weights per second of products with few rows, as a decode step makes them."""
        for n, k in ((128, 64),) if self.tiny else LAYERS:
            copies = 2 if self.tiny else max(2, -(-1024 * MIB // (n * k)))
            for m in SKINNY[:3] if self.tiny else SKINNY:
                self._product(m, n, k, precision, "skinny product", copies)

    def _product(self, m, n, k, precision, quantity, copies):
        missing = supported(self.device, precision)
        size = n * k * plan.VALUE[precision] + m * k * plan.VALUE[precision] + 2 * m * n
        flop = 2 * m * n * k
        names = dict(quantity=quantity, method="library", precision=precision, m=m, n=n, k=k, bytes=size)
        names |= dict(flop=flop, launches=copies)
        if missing:
            if not self.table.done({**self.common, **names}):
                self.table.append(**self.common, **names, status="unsupported", note=missing)
                self._count("unsupported")
            return

        def prepare():
            matrices = [
                Linear(n, k, torch.bfloat16, self.where, fp8=precision == "fp8") for _ in range(copies)
            ]
            x = torch.randn(m, k, device=self.where)
            x = quantise(x) if precision == "fp8" else x.to(torch.bfloat16)

            def work():
                for matrix in matrices:
                    matrix(x)

            return self.device.capture(work)

        square = quantity == "square product"
        amount, unit = (flop, "FLOP/s") if square else (size, "B/s")
        self.row(prepare, copies, amount, unit, **names)

    # Attention.

    def attention(self):
        """Bytes of cache per second that each attention kernel reads, at the shapes of the models."""
        heads = {}
        for name in (*plan.DENSE, *plan.SPARSE):
            for kind in plan.load(name).kinds:
                heads.setdefault((kind.n_heads, kind.n_kv_heads, kind.head_dim), name)
        for (n_heads, n_kv, d), name in heads.items():
            for batch, context in ATTENTION[:1] if self.tiny else ATTENTION:
                for setting in [*self.ops.attention_settings(batch, n_kv, context, False), ("sdpa",)]:
                    self._attention(name, batch, context, n_heads, n_kv, d, setting)

    def _attention(self, name, batch, context, n_heads, n_kv, d, setting):
        size = 2 * 2 * batch * n_kv * context * d
        copies = 2 if self.tiny else max(2, -(-512 * MIB // size))

        def prepare():
            q = torch.randn(batch, n_heads, d, device=self.where).to(torch.bfloat16)
            cache = torch.empty(copies, 2, batch, n_kv, context, d, dtype=torch.bfloat16, device=self.where)
            cache.normal_()

            def work():
                for k, v in cache:
                    self.ops.attend(q, k, v, context, None, setting)

            return self.device.capture(work)

        names = dict(quantity=f"attention {n_heads}/{n_kv}x{d}", method=label(setting), precision="bf16")
        names |= dict(m=batch, n=n_kv, k=context, bytes=size, flop=4 * batch * n_heads * context * d)
        self.row(prepare, copies, size, "B/s", launches=copies, note=f"as in {name}", **names)
