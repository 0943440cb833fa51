"""The decode step against a plain float32 model: whole sequences, full causal attention, no cache, no kernel."""

import torch

from decoding import device as devices, plan
from decoding.model import EPS, THETA, Cache, Decoder, buffer, cache_values, settings_for
from decoding.plain import FP8_SCALE, Plain, quantise

LIMITS = {"fp32": 1e-4, "bf16": 3e-2, "fp8": 8e-2}  # ||step - reference|| / ||reference||
TOKENS = 20  # longer than the window of the tiny shapes, so that a ring is written twice


def reference(decoder, tokens, chosen=None):
    """Logits (batch, tokens, vocabulary) in float32, and the experts of every layer.

    ``chosen`` prescribes the experts of each layer (batch, tokens, n_active), since in bf16 a tie may be
    decided the other way; their weights are computed here all the same.
    """
    batch, length = tokens.shape
    x = decoder.embedding.float()[tokens]
    at = torch.arange(length, device=tokens.device)
    experts = []
    for i, layer in enumerate(decoder.layers):
        kind = layer.kind
        h = _linear(layer.qkv, _rms(x, layer.norm1))
        q, k, v = h.view(batch, length, -1, kind.head_dim).split(
            [kind.n_heads, kind.n_kv_heads, kind.n_kv_heads], dim=2
        )
        if layer.qk_norms is not None:
            q, k = _rms(q, layer.qk_norms[0]), _rms(k, layer.qk_norms[1])
        q, k = _turn(q, at), _turn(k, at)
        group = kind.n_heads // kind.n_kv_heads
        k, v = (y.repeat_interleave(group, dim=2) for y in (k, v))
        scores = torch.einsum("bihd,bjhd->bhij", q, k) / kind.head_dim**0.5
        visible = at[None, :] <= at[:, None]
        if kind.window:
            visible &= at[None, :] > at[:, None] - kind.window
        scores = scores.masked_fill(~visible, float("-inf"))
        below = scores.exp().sum(-1, keepdim=True)
        if layer.sinks is not None:
            below = below + layer.sinks.float().exp()[None, :, None, None]
        mixed = torch.einsum("bhij,bjhd->bihd", scores.exp() / below, v).reshape(batch, length, -1)
        x = x + _linear(layer.out, mixed)
        h = _rms(x, layer.norm2)
        if kind.n_experts:
            y, ids = _mixture(layer, h, None if chosen is None else chosen[i])
            experts.append(ids)
        else:
            gate, up = _linear(layer.gate_up, h).chunk(2, dim=-1)
            y = _linear(layer.down, gate * torch.sigmoid(gate) * up)
        x = x + y
    return _rms(x, decoder.norm) @ decoder.head.float().t(), experts


def _rms(x, weight):
    return x / (x.pow(2).mean(-1, keepdim=True) + EPS).sqrt() * weight.float()


def _linear(matrix, x):
    if matrix.fp8:
        flat = quantise(x.reshape(-1, x.shape[-1])).float() / FP8_SCALE
        x = flat.view(x.shape)
    y = x @ matrix.real().t()
    return y if matrix.bias is None else y + matrix.bias.float()


def _turn(x, at):
    """Rotate pairs (i, i + d/2) by position times THETA ** (-2 i / d), as complex numbers."""
    half = x.shape[-1] // 2
    rate = THETA ** (-torch.arange(half, device=x.device, dtype=torch.float64) / half)
    turn = torch.polar(torch.ones_like(rate), at[:, None].double() * rate).to(torch.complex64)
    z = torch.complex(*x.float().contiguous().split(half, dim=-1)) * turn[None, :, None, :]
    return torch.cat([z.real, z.imag], dim=-1)


def _mixture(layer, h, chosen):
    logits = _linear(layer.router, h)
    ids = logits.topk(layer.kind.n_active, dim=-1).indices if chosen is None else chosen.long()
    shares = torch.softmax(logits.gather(-1, ids), dim=-1)
    y = torch.zeros_like(h)
    for expert in range(layer.kind.n_experts):
        share = (shares * (ids == expert)).sum(-1, keepdim=True)
        z = h @ layer.up[expert].float().t()
        if layer.up_bias is not None:
            z = z + layer.up_bias[expert].float()
        gate, up = z.chunk(2, dim=-1)
        z = (gate * torch.sigmoid(gate) * up) @ layer.down[expert].float().t()
        if layer.down_bias is not None:
            z = z + layer.down_bias[expert].float()
        y = y + share * z
    return y, ids


def compare(name, precision, ops, device, attention, experts, batch=3, length=TOKENS):
    """Error of steps from an empty cache, and the share of tokens that go to the reference's experts.

    The cache starts with random values, so that a step which sees too much of it is wrong.
    """
    torch.manual_seed(0)
    shape = plan.tiny(plan.load(name))
    decoder = Decoder(shape, precision, ops, device, length)
    tokens = torch.randint(shape.vocab_size, (batch, length), device=device)
    cache = Cache(shape, batch, length, buffer(cache_values(shape, batch, length), precision, device))
    settings = settings_for(shape, attention, experts)
    found, routes = [], []
    for i in range(length):
        decoder.routes = []
        logits, likeliest = decoder.step(tokens[:, i], cache, i, settings)
        if not torch.equal(likeliest, logits.argmax(-1)):
            raise AssertionError("the token returned is not the likeliest one")
        found.append(logits.float())
        routes.append(decoder.routes)
    found = torch.stack(found, dim=1)
    chosen = [torch.stack(steps, dim=1) for steps in zip(*routes, strict=True)] if shape.sparse else None
    wanted, _ = reference(decoder, tokens, chosen)
    _, free = reference(decoder, tokens)
    same = None
    if shape.sparse:
        # The free reference of the first layer has the same input, so there the sets must agree.
        ours, theirs = chosen[0].long().sort(-1).values, free[0].sort(-1).values
        same = (ours == theirs).all(-1).float().mean().item()
    error = ((found - wanted).norm() / wanted.norm()).item()
    return error, same


def variants(device, fused):
    """Names, operations and kernels to check on a device: (label, ops, attention, experts)."""
    cuda = device == "cuda"
    found = [
        ("plain bmm", Plain(pad=16), ("bmm",), ("gather",)),
        ("plain sdpa", Plain(pad=16), ("sdpa",), ("gather",)),
    ]
    if cuda:
        found.append(("plain grouped_mm", Plain(pad=16), ("bmm",), ("grouped_mm",)))
    if fused is not None:
        ops = fused(pad=16)
        # One part, and many parts of one tile each.
        found.append(("fused one part", ops, ("split", 16, 4, 2, 1), ("tiles", 16, 32, 32, 4, 2)))
        found.append(("fused many parts", ops, ("split", 16, 4, 2, 64), ("tiles", 16, 64, 64, 4, 3)))
        if cuda:
            found.append(("fused 64", ops, ("split", 64, 4, 3, 2), ("tiles", 32, 64, 128, 4, 3)))
            found.append(("fused grouped_mm", ops, ("split", 128, 8, 3, 2), ("grouped_mm",)))
    return found


def run(device, fused, table, common):
    """Check every structure of model, precision and kernel; rows in check.csv. True if all agree."""
    good = True
    for name in (*plan.DENSE[:2], *plan.SPARSE):
        sparse = name in plan.SPARSE
        for precision in ("fp32", "bf16") if sparse else ("fp32", "bf16", "fp8"):
            for label, ops, attention, experts in variants(device.name, fused):
                if (attention[0] == "sdpa" and name == "GPT-OSS 20B") or (
                    experts[0] == "grouped_mm" and not (sparse and precision == "bf16")
                ):
                    continue  # sdpa has no sinks; the grouped product is bf16 only
                row = dict(common, model=name, precision=precision, kernels=label, limit=LIMITS[precision])
                try:
                    error, same = compare(name, precision, ops, device.name, attention, experts)
                    agree = error <= LIMITS[precision] and (same is None or same > 0.9)
                    row |= dict(error=error, same_experts=same, status="ok" if agree else "wrong")
                except Exception as failure:  # Triton's errors have no common base with PyTorch's
                    devices.lost(device)
                    row |= dict(status="failed", note=devices.reason(failure))
                good &= row["status"] == "ok" or (precision == "fp8" and row["status"] == "failed")
                table.append(**row)
    return good
