"""The operations of a step as Triton kernels, one launch each (attention: two).

Attention splits the positions of each sequence and key head over many programs and merges the parts, so that
small batches fill the device too; the query heads of a group are rows of one tile, so the cache is read once.
"""

import torch
import triton
import triton.language as tl

from decoding.plain import FP8, FP8_MAX, FP8_SCALE, Plain

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def _norm(
    x, delta, weight, total, out, width, eps, scale, ADD: tl.constexpr, FP8: tl.constexpr, B: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * width
    c = tl.arange(0, B)
    ok = c < width
    y = tl.load(x + row + c, mask=ok, other=0.0).to(tl.float32)
    if ADD:
        y += tl.load(delta + row + c, mask=ok, other=0.0).to(tl.float32)
        tl.store(total + row + c, y.to(total.dtype.element_ty), mask=ok)
    y *= 1.0 / tl.sqrt(tl.sum(y * y, 0) / width + eps)
    y *= tl.load(weight + c, mask=ok, other=0.0).to(tl.float32)
    if FP8:
        y = tl.minimum(tl.maximum(y * scale, -448.0), 448.0)
    tl.store(out + row + c, y.to(out.dtype.element_ty), mask=ok)


@triton.jit(do_not_specialize=["position", "slot"])
def _rotate(
    qkv, q, k, v, cos, sin, q_norm, k_norm, position, slot, eps, k_batch, k_head, v_batch, v_head,
    H: tl.constexpr, KV: tl.constexpr, HALF: tl.constexpr, NORM: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1)
    c = tl.arange(0, HALF)
    base = qkv + (b * (H + 2 * KV) + h) * 2 * HALF
    low = tl.load(base + c).to(tl.float32)
    high = tl.load(base + HALF + c).to(tl.float32)
    if h < H + KV:
        if NORM:
            r = 1.0 / tl.sqrt((tl.sum(low * low, 0) + tl.sum(high * high, 0)) / (2 * HALF) + eps)
            is_query = h < H
            qw, kw = tl.load(q_norm + c).to(tl.float32), tl.load(k_norm + c).to(tl.float32)
            low = low * r * tl.where(is_query, qw, kw)
            qw, kw = tl.load(q_norm + HALF + c).to(tl.float32), tl.load(k_norm + HALF + c).to(tl.float32)
            high = high * r * tl.where(is_query, qw, kw)
        cs = tl.load(cos + position * HALF + c)
        sn = tl.load(sin + position * HALF + c)
        turned = low * cs - high * sn
        high = high * cs + low * sn
        low = turned
    kind = q.dtype.element_ty
    if h < H:
        to = q + (b * H + h) * 2 * HALF
        tl.store(to + c, low.to(kind))
        tl.store(to + HALF + c, high.to(kind))
    elif h < H + KV:
        to = k + b * k_batch + (h - H).to(tl.int64) * k_head + slot.to(tl.int64) * 2 * HALF
        tl.store(to + c, low.to(kind))
        tl.store(to + HALF + c, high.to(kind))
    else:
        to = v + b * v_batch + (h - H - KV).to(tl.int64) * v_head + slot.to(tl.int64) * 2 * HALF
        tl.store(to + c, low.to(kind))
        tl.store(to + HALF + c, high.to(kind))


@triton.jit(do_not_specialize=["seen", "per_split", "splits"])
def _attend(
    q, k, v, part, stat, seen, per_split, splits, scale, k_batch, k_head, v_batch, v_head,
    H: tl.constexpr, G: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    s = tl.program_id(0)
    h = tl.program_id(1)
    b = tl.program_id(2).to(tl.int64)
    g = tl.arange(0, ROWS)
    d = tl.arange(0, D)
    n = tl.arange(0, N)
    head = b * H + h * G + g
    query = tl.load(q + head[:, None] * D + d[None, :], mask=(g < G)[:, None], other=0.0)
    keys = k + b * k_batch + h.to(tl.int64) * k_head
    values = v + b * v_batch + h.to(tl.int64) * v_head
    start = s * per_split
    end = tl.minimum(start + per_split, seen)
    top = tl.full([ROWS], float("-inf"), tl.float32)
    below = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, D], tl.float32)
    for first in range(start, end, N):
        at = first + n
        ok = at < end
        where = at[:, None] * D + d[None, :]
        key = tl.load(keys + where, mask=ok[:, None], other=0.0)
        scores = tl.dot(query, tl.trans(key), input_precision="ieee") * scale
        scores = tl.where(ok[None, :], scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(top - higher)
        below = below * shrink + tl.sum(p, 1)
        value = tl.load(values + where, mask=ok[:, None], other=0.0)
        acc = acc * shrink[:, None] + tl.dot(p.to(value.dtype), value, input_precision="ieee")
        top = higher
    to = head * splits + s
    tl.store(part + to[:, None] * D + d[None, :], acc, mask=(g < G)[:, None])
    tl.store(stat + to * 2, top, mask=g < G)
    tl.store(stat + to * 2 + 1, below, mask=g < G)


@triton.jit(do_not_specialize=["splits"])
def _merge(
    part, stat, sinks, out, splits, scale,
    H: tl.constexpr, D: tl.constexpr, S: tl.constexpr, SINK: tl.constexpr, FP8: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)
    s = tl.arange(0, S)
    d = tl.arange(0, D)
    ok = s < splits
    at = head * splits + s
    tops = tl.load(stat + at * 2, mask=ok, other=float("-inf"))
    below = tl.load(stat + at * 2 + 1, mask=ok, other=0.0)
    top = tl.max(tops, 0)
    if SINK:
        sink = tl.load(sinks + head % H).to(tl.float32) * LOG2E
        top = tl.maximum(top, sink)
    share = tl.exp2(tops - top)
    total = tl.sum(share * below, 0)
    if SINK:
        total += tl.exp2(sink - top)
    parts = tl.load(part + at[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
    y = tl.sum(parts * share[:, None], 0) / total
    if FP8:
        y = tl.minimum(tl.maximum(y * scale, -448.0), 448.0)
    tl.store(out + head * D + d, y.to(out.dtype.element_ty))


@triton.jit
def _glu(gate_up, out, width, scale, FP8: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * B + tl.arange(0, B)
    ok = c < width
    gate = tl.load(gate_up + row * 2 * width + c, mask=ok, other=0.0).to(tl.float32)
    up = tl.load(gate_up + row * 2 * width + width + c, mask=ok, other=0.0).to(tl.float32)
    y = gate / (1.0 + tl.exp(-gate)) * up
    if FP8:
        y = tl.minimum(tl.maximum(y * scale, -448.0), 448.0)
    tl.store(out + row * width + c, y.to(out.dtype.element_ty), mask=ok)


@triton.jit
def _choose(logits, ids, weights, E: tl.constexpr, EP: tl.constexpr, A: tl.constexpr, AP: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    e = tl.arange(0, EP)
    a = tl.arange(0, AP)
    left = tl.load(logits + row * E + e, mask=e < E, other=float("-inf")).to(tl.float32)
    best = tl.full([AP], float("-inf"), tl.float32)
    which = tl.zeros([AP], tl.int32)
    for i in tl.static_range(A):
        most = tl.max(left, 0)
        index = tl.argmax(left, 0).to(tl.int32)
        best = tl.where(a == i, most, best)
        which = tl.where(a == i, index, which)
        left = tl.where(e == index, float("-inf"), left)
    p = tl.exp(best - tl.max(best, 0))
    tl.store(weights + row * A + a, p / tl.sum(p, 0), mask=a < A)
    tl.store(ids + row * A + a, which, mask=a < A)


@triton.jit(do_not_specialize=["pairs"])
def _sort(ids, order, inverse, starts, pairs, E: tl.constexpr, P: tl.constexpr):
    """A counting sort: one program per expert finds its pairs and writes them where they belong."""
    expert = tl.program_id(0)
    t = tl.arange(0, P)
    chosen = tl.load(ids + t, mask=t < pairs, other=E)
    mine = chosen == expert
    first = tl.sum((chosen < expert).to(tl.int32), 0)
    rank = first + tl.cumsum(mine.to(tl.int32), 0) - 1
    tl.store(order + rank, t, mask=mine)
    tl.store(inverse + t, rank, mask=mine)
    tl.store(starts + expert, first)
    if expert == E - 1:
        tl.store(starts + E, pairs)


@triton.jit
def _grouped(
    x, weight, bias, order, starts, out, n, k,
    GATHER: tl.constexpr, BIAS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    expert = tl.program_id(1).to(tl.int64)
    begin = tl.load(starts + expert)
    end = tl.load(starts + expert + 1)
    col = tl.program_id(0) * BN + tl.arange(0, BN)
    mine = weight + expert * n * k + col[None, :].to(tl.int64) * k
    for first in range(begin, end, BM):
        row = first + tl.arange(0, BM)
        ok = row < end
        source = row
        if GATHER > 0:
            source = tl.load(order + row, mask=ok, other=0) // GATHER
        acc = tl.zeros([BM, BN], tl.float32)
        for at in range(0, k, BK):
            c = at + tl.arange(0, BK)
            a = tl.load(
                x + source[:, None].to(tl.int64) * k + c[None, :],
                mask=ok[:, None] & (c < k)[None, :],
                other=0.0,
            )
            b = tl.load(mine + c[:, None], mask=(c < k)[:, None] & (col < n)[None, :], other=0.0)
            acc += tl.dot(a, b, input_precision="ieee")
        if BIAS:
            acc += tl.load(bias + expert * n + col, mask=col < n, other=0.0).to(tl.float32)[None, :]
        to = out + row[:, None].to(tl.int64) * n + col[None, :]
        tl.store(to, acc.to(out.dtype.element_ty), mask=ok[:, None] & (col < n)[None, :])


@triton.jit(do_not_specialize=["choices"])
def _combine(y, weights, inverse, out, width, choices, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * B + tl.arange(0, B)
    ok = c < width
    acc = tl.zeros([B], tl.float32)
    for i in range(0, choices):
        at = tl.load(inverse + row * choices + i).to(tl.int64)
        share = tl.load(weights + row * choices + i)
        acc += share * tl.load(y + at * width + c, mask=ok, other=0.0).to(tl.float32)
    tl.store(out + row * width + c, acc.to(out.dtype.element_ty), mask=ok)


@triton.jit
def _read(x, out, length, EACH: tl.constexpr, B: tl.constexpr):
    """Sum of a stretch of a buffer per program: what reading costs, and next to nothing written."""
    start = tl.program_id(0).to(tl.int64) * EACH * B
    acc = tl.zeros([B], tl.int32)
    for i in tl.static_range(EACH):
        at = start + i * B + tl.arange(0, B)
        acc += tl.load(x + at, mask=at < length, other=0)
    tl.store(out + tl.program_id(0), tl.sum(acc, 0))


@triton.jit
def _empty(x):
    pass


class Fused(Plain):
    """Operations as Triton kernels."""

    name = "fused"

    def __init__(self, pad=0, processors=132):
        super().__init__(pad)
        self.processors = processors

    def _new(self, rows, width, like, fp8):
        rows = max(rows, self.pad) if fp8 else rows
        return torch.empty(rows, width, dtype=FP8 if fp8 else like.dtype, device=like.device)

    def norm(self, x, delta, weight, eps, fp8=False):
        rows, width = x.shape
        out = self._new(rows, width, x, fp8)
        total = x if delta is None else torch.empty_like(x)
        block = triton.next_power_of_2(width)
        _norm[(rows,)](
            x, x if delta is None else delta, weight, total, out, width, eps, FP8_SCALE,
            ADD=delta is not None, FP8=fp8, B=block, num_warps=8 if block >= 2048 else 4,
        )  # fmt: skip
        return total, out

    def rotate(self, qkv, k, v, cos, sin, position, slot, n_heads, norms, eps):
        batch, n_kv, _, d = k.shape
        q = torch.empty(batch, n_heads, d, dtype=qkv.dtype, device=qkv.device)
        q_norm, k_norm = norms or (cos, cos)
        _rotate[(batch, n_heads + 2 * n_kv)](
            qkv, q, k, v, cos, sin, q_norm, k_norm, position, slot, eps,
            k.stride(0), k.stride(1), v.stride(0), v.stride(1),
            H=n_heads, KV=n_kv, HALF=d // 2, NORM=norms is not None, num_warps=1,
        )  # fmt: skip
        return q

    def attend(self, q, k, v, seen, sinks, setting, fp8=False):
        if setting[0] != "split":
            return super().attend(q, k, v, seen, sinks, setting, fp8)
        _, block, warps, stages, wanted = setting
        batch, n_heads, d = q.shape
        n_kv = k.shape[1]
        splits, per_split = split(seen, block, wanted)
        part = torch.empty(batch, n_heads, splits, d, dtype=torch.float32, device=q.device)
        stat = torch.empty(batch, n_heads, splits, 2, dtype=torch.float32, device=q.device)
        group = n_heads // n_kv
        _attend[(splits, n_kv, batch)](
            q, k, v, part, stat, seen, per_split, splits, d**-0.5 * LOG2E.value,
            k.stride(0), k.stride(1), v.stride(0), v.stride(1),
            H=n_heads, G=group, ROWS=max(16, triton.next_power_of_2(group)), D=d, N=block,
            num_warps=warps, num_stages=stages,
        )  # fmt: skip
        out = self._new(batch, n_heads * d, q, fp8)
        _merge[(batch * n_heads,)](
            part, stat, stat if sinks is None else sinks, out, splits, FP8_SCALE,
            H=n_heads, D=d, S=triton.next_power_of_2(splits), SINK=sinks is not None, FP8=fp8,
            num_warps=4,
        )  # fmt: skip
        return out

    def glu(self, gate_up, fp8=False):
        rows, width = gate_up.shape[0], gate_up.shape[1] // 2
        out = self._new(rows, width, gate_up, fp8)
        _glu[(rows, triton.cdiv(width, 1024))](gate_up, out, width, FP8_SCALE, FP8=fp8, B=1024)
        return out

    def route(self, logits, n_active):
        rows, n = logits.shape
        integers = dict(dtype=torch.int32, device=logits.device)
        ids = torch.empty(rows, n_active, **integers)
        weights = torch.empty(rows, n_active, dtype=torch.float32, device=logits.device)
        up = triton.next_power_of_2
        _choose[(rows,)](logits, ids, weights, E=n, EP=up(n), A=n_active, AP=up(n_active), num_warps=1)
        pairs = rows * n_active
        order, inverse = torch.empty(pairs, **integers), torch.empty(pairs, **integers)
        starts = torch.empty(n + 1, **integers)
        _sort[(n,)](ids, order, inverse, starts, pairs, E=n, P=max(16, up(pairs)))
        return ids, weights, order, inverse, starts

    def grouped(self, x, weight, bias, order, starts, ids, gather, setting):
        if setting[0] != "tiles":
            return super().grouped(x, weight, bias, order, starts, ids, gather, setting)
        _, bm, bn, bk, warps, stages = setting
        n_experts, n, k = weight.shape
        out = torch.empty(len(order), n, dtype=x.dtype, device=x.device)
        _grouped[(triton.cdiv(n, bn), n_experts)](
            x, weight, weight if bias is None else bias, order, starts, out, n, k,
            GATHER=gather, BIAS=bias is not None, BM=bm, BN=bn, BK=bk, num_warps=warps, num_stages=stages,
        )  # fmt: skip
        return out

    def combine(self, y, weights, inverse):
        rows, choices = weights.shape
        width = y.shape[1]
        out = torch.empty(rows, width, dtype=y.dtype, device=y.device)
        _combine[(rows, triton.cdiv(width, 1024))](y, weights, inverse, out, width, choices, B=1024)
        return out

    def attention_settings(self, batch, n_kv, seen, sinks):
        """Settings worth trying: positions per tile, warps, stages, splits. The fastest is used."""
        settings = []
        for block, warps, stages, programs in ((64, 4, 3, 2), (128, 4, 3, 2), (64, 4, 2, 4), (128, 8, 3, 1)):
            wanted = max(1, self.processors * programs // (batch * n_kv))
            settings.append(("split", block, warps, stages, min(wanted, 128)))
        return [*settings, ("bmm",)]

    def expert_settings(self, rows, n_experts, cuda):
        """Settings worth trying: tile of rows, columns and depth, warps, stages; or PyTorch's own."""
        m = 16 if rows <= 16 * n_experts else 32
        tiles = [("tiles", m, 64, 128, 4, 3), ("tiles", m, 128, 64, 4, 4), ("tiles", m, 32, 128, 4, 4)]
        return [*tiles, ("grouped_mm",)] if cuda else tiles[:1]


def split(seen, block, wanted):
    """Parts, none of them empty, and positions of a part: whole tiles, about as many parts as wanted."""
    tiles = -(-seen // block)
    per_split = -(-tiles // min(wanted, tiles)) * block
    return -(-seen // per_split), per_split


def read(x, out, each=8, block=1024):
    """Read a buffer of int32 once."""
    _read[(triton.cdiv(x.numel(), each * block),)](x, out, x.numel(), EACH=each, B=block, num_warps=4)


def empty(x):
    """A kernel that does nothing."""
    _empty[(1,)](x, num_warps=1)


assert FP8_MAX == 448.0  # the kernels clamp to this literal
