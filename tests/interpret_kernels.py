"""Triton kernels of the measuring script in Triton's interpreter, on a CPU; run by test_measurements_script.

Its matrix product takes bf16 for integers, so kernels are tried in fp32 and fp16.
"""

import sys
from pathlib import Path


def operations():
    """Each kernel against the same operation in plain PyTorch."""
    import torch
    from decoding.fused import Fused, read
    from decoding.plain import Plain

    torch.manual_seed(0)
    plain, fused = Plain(pad=5), Fused(pad=5)

    def same(ours, theirs, limit):
        for a, b in zip(ours, theirs, strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype
            assert (a.double() - b.double()).norm() <= limit * b.double().norm()

    for dtype, limit in ((torch.float32, 1e-6), (torch.float16, 2e-3)):

        def random(*shape, dtype=dtype):
            return torch.randn(*shape).to(dtype)

        x, delta, weight = random(3, 72), random(3, 72), random(72)
        same(fused.norm(x, delta, weight, 1e-5), plain.norm(x, delta, weight, 1e-5), limit)
        same(fused.norm(x, None, weight, 1e-5), plain.norm(x, None, weight, 1e-5), limit)
        gate_up = random(3, 2 * 1100)
        same([fused.glu(gate_up)], [plain.glu(gate_up)], limit)

        cos, sin = torch.rand(30, 8), torch.rand(30, 8)
        for norms in (None, (random(16), random(16))):
            caches = [
                (torch.zeros(3, 2, 21, 16, dtype=dtype), torch.zeros(3, 2, 21, 16, dtype=dtype)) for _ in "ab"
            ]
            qkv = random(3, 12 * 16)
            ours, theirs = (
                ops.rotate(qkv, *cache, cos, sin, 25, 4, 8, norms, 1e-5)
                for ops, cache in zip((fused, plain), caches, strict=True)
            )
            same([ours, *caches[0]], [theirs, *caches[1]], limit)

        q, k, v, sinks = random(3, 8, 16), random(3, 2, 40, 16), random(3, 2, 40, 16), random(8)
        for seen in (1, 16, 37, 40):
            for wanted in (1, 2, 64):
                for sink in (None, sinks):
                    setting = ("split", 16, 4, 2, wanted)
                    ours = fused.attend(q, k, v, seen, sink, setting)
                    same([ours], [plain.attend(q, k, v, seen, sink, ("bmm",))], limit)
        same([plain.attend(q, k, v, 37, None, ("sdpa",))], [plain.attend(q, k, v, 37, None, ("bmm",))], limit)

        logits = random(5, 12)
        route = plain.route(logits, 3)
        same(fused.route(logits, 3), route, limit)
        ids, weights, order, inverse, starts = route
        h, up, bias = random(5, 40), random(12, 72, 40), random(12, 72)
        for setting in (("tiles", 16, 32, 32, 4, 2), ("tiles", 16, 64, 64, 4, 2)):
            for each in (None, bias):
                y = plain.grouped(h, up, each, order, starts, ids, 3, ("gather",))
                same([fused.grouped(h, up, each, order, starts, ids, 3, setting)], [y], limit)
        one = torch.zeros(40, 1, dtype=torch.int32)  # forty tokens of one expert: more rows than a tile
        order = torch.arange(40, dtype=torch.int32)
        starts = torch.tensor([0, *[40] * 12], dtype=torch.int32)
        many = random(40, 40)
        y = plain.grouped(many, up, None, order, starts, one, 0, ("gather",))
        same([fused.grouped(many, up, None, order, starts, one, 0, setting)], [y], limit)
        y = random(15, 72)
        same([fused.combine(y, weights, inverse)], [plain.combine(y, weights, inverse)], limit)

    x = torch.randint(-1000, 1000, (20_001,), dtype=torch.int32)
    sums = torch.zeros(3, dtype=torch.int32)
    read(x, sums)
    assert sums.sum() == x.sum()

    x, weight = torch.randn(3, 72), torch.randn(72)
    for y in (fused.norm(x, None, weight, 1e-5, fp8=True)[1], fused.glu(x, fp8=True)):
        assert y.dtype == torch.float8_e4m3fn and y.shape[0] == 5  # padded
    ours, theirs = (ops.norm(x, None, weight, 1e-5, fp8=True)[1][:3] for ops in (fused, plain))
    # The interpreter loses the carry when a value rounds up to a power of two.
    assert (ours.float() == theirs.float()).float().mean() > 0.9


def step():
    """Whole steps against full causal attention: windows, sinks, biases, experts, and norms of queries."""
    import torch
    from decoding import check
    from decoding.fused import Fused

    with torch.no_grad():
        for name, kernels in (("GPT-OSS 20B", ("split", 16, 4, 2, 64)), ("Qwen3 4B", ("split", 16, 4, 2, 1))):
            tiles = ("tiles", 16, 32, 32, 4, 2)
            error, _ = check.compare(name, "fp32", Fused(), "cpu", kernels, tiles, batch=2, length=10)
            assert error < 1e-5, (name, error)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "measurements"))
    {"operations": operations, "step": step}[sys.argv[1]]()
