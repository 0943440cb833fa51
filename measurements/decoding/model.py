"""One decode step with a real cache: random weights, distinct for every layer, static shapes."""

import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

from decoding import plan
from decoding.plain import FP8, FP8_SCALE

EPS = 1e-5
THETA = 500_000.0
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp8": torch.bfloat16}


class Linear:
    """A matrix (n, k) with values of standard deviation k**-0.5, so that activations keep their size."""

    def __init__(self, n, k, dtype, device, bias=False, fp8=False):
        self.fp8 = fp8
        weight = torch.empty(n, k, dtype=dtype, device=device).normal_()
        self.bias = _small(n, dtype, device) if bias else None
        if fp8:
            self.weight = (weight * FP8_SCALE).to(FP8)
            self.weight_scale = torch.tensor(k**-0.5 / FP8_SCALE, dtype=torch.float32, device=device)
            self.input_scale = torch.tensor(1 / FP8_SCALE, dtype=torch.float32, device=device)
        else:
            self.weight = weight.mul_(k**-0.5)

    def __call__(self, x):
        if not self.fp8:
            return F.linear(x, self.weight, self.bias)
        y = torch._scaled_mm(
            x,
            self.weight.t(),
            self.input_scale,
            self.weight_scale,
            out_dtype=torch.bfloat16,
            use_fast_accum=True,
        )
        return y if self.bias is None else y + self.bias

    def real(self):
        """The matrix that this one stands for, in float32."""
        return self.weight.float() * self.weight_scale if self.fp8 else self.weight.float()


def _small(n, dtype, device):
    return torch.empty(n, dtype=dtype, device=device).normal_(0, 0.1)


def _near_one(n, dtype, device):
    return torch.empty(n, dtype=dtype, device=device).normal_(1, 0.1)


class Layer:
    """Weights of one layer."""

    def __init__(self, shape, kind, precision, device):
        dtype, fp8 = DTYPES[precision], precision == "fp8"
        d, self.kind = shape.d_model, kind
        made = dict(dtype=dtype, device=device)
        self.norm1, self.norm2 = _near_one(d, **made), _near_one(d, **made)
        heads = kind.n_heads * kind.head_dim
        self.qkv = Linear(kind.qkv, d, bias=kind.input_bias, fp8=fp8, **made)
        self.out = Linear(d, heads, bias=kind.output_bias, fp8=fp8, **made)
        self.qk_norms = None
        if kind.qk_norm:
            self.qk_norms = (_near_one(kind.head_dim, **made), _near_one(kind.head_dim, **made))
        self.sinks = _small(kind.n_heads, **made) if kind.sinks else None
        if not kind.n_experts:
            self.gate_up = Linear(2 * kind.d_ff, d, fp8=fp8, **made)
            self.down = Linear(d, kind.d_ff, fp8=fp8, **made)
            return
        n, width = kind.n_experts, kind.d_expert
        self.router = Linear(n, d, bias=kind.router_bias, **made)
        # Rows of one length, else experts with longer rows would be chosen more often.
        rows = self.router.weight.float()
        self.router.weight = (rows / rows.norm(dim=1, keepdim=True)).to(dtype)
        self.up = torch.empty(n, 2 * width, d, **made).normal_(0, d**-0.5)
        self.down = torch.empty(n, d, width, **made).normal_(0, width**-0.5)
        self.up_bias = _small(n * 2 * width, **made).view(n, -1) if kind.biases else None
        self.down_bias = _small(n * d, **made).view(n, -1) if kind.biases else None


class Cache:
    """Keys and values of every layer, (batch, key heads, positions, width), cut from one random buffer.

    A layer with a window keeps only so many positions, as a ring.
    """

    def __init__(self, shape, batch, context, buffer):
        self.layers, at = [], 0
        for kind in shape.order():
            dims = (batch, kind.n_kv_heads, kind.seen(context), kind.head_dim)
            size = math.prod(dims)
            pair = []
            for _ in range(2):
                pair.append(buffer[at : at + size].view(dims))
                at += size
            self.layers.append(tuple(pair))


def buffer(values, precision, device):
    """Random values for caches: standard normal, as keys and queries after their norms are."""
    return torch.empty(values, dtype=DTYPES[precision], device=device).normal_()


@dataclass
class Settings:
    """Kernels chosen: for each kind of layer by its window, and for the experts' two matrices."""

    attention: dict = field(default_factory=dict)
    up: tuple = ("gather",)
    down: tuple = ("gather",)


class Decoder:
    """A decoder with random weights.

    Parameters
    ----------
    shape : plan.Shape
    precision : str
        ``"bf16"``; ``"fp8"``: matrices of attention and feed-forward, and what they are multiplied with;
        ``"fp32"`` for checks.
    ops : plain.Plain
    device : str
    positions : int
        Longest context.
    """

    def __init__(self, shape, precision, ops, device, positions):
        dtype, self.fp8 = DTYPES[precision], precision == "fp8"
        self.shape, self.precision, self.ops, self.device = shape, precision, ops, device
        self.embedding = torch.empty(shape.vocab_size, shape.d_model, dtype=dtype, device=device).normal_()
        self.layers = [Layer(shape, kind, precision, device) for kind in shape.order()]
        self.norm = _near_one(shape.d_model, dtype, device)
        if shape.tied:
            self.head = self.embedding
        else:
            self.head = torch.empty_like(self.embedding).normal_()
        # Logits of standard deviation 1 from a head of standard deviation 1, which a tied one shares.
        self.norm *= shape.d_model**-0.5
        half = shape.kinds[0].head_dim // 2
        frequency = THETA ** (-torch.arange(half, dtype=torch.float64) / half)
        angle = torch.arange(positions, dtype=torch.float64)[:, None] * frequency
        self.cos, self.sin = (f(angle).float().to(device) for f in (torch.cos, torch.sin))
        self.routes = None  # a list collects the experts of every layer

    def step(self, tokens, cache, position, settings):
        """Logits and the likeliest next token after ``tokens`` (batch,) at ``position``."""
        ops, fp8 = self.ops, self.fp8
        batch = len(tokens)
        x, delta = F.embedding(tokens, self.embedding), None
        for layer, (k, v) in zip(self.layers, cache.layers, strict=True):
            kind = layer.kind
            x, h = ops.norm(x, delta, layer.norm1, EPS, fp8)
            qkv = layer.qkv(h)[:batch]
            size = k.shape[2]
            q = ops.rotate(
                qkv, k, v, self.cos, self.sin, position, position % size, kind.n_heads, layer.qk_norms, EPS
            )
            seen = min(position + 1, size)
            h = ops.attend(q, k, v, seen, layer.sinks, settings.attention[kind.window], fp8)
            delta = layer.out(h)[:batch]
            x, h = ops.norm(x, delta, layer.norm2, EPS, fp8 and not kind.n_experts)
            delta = self._experts(layer, h, settings) if kind.n_experts else self._block(layer, h, batch)
        x, h = ops.norm(x, delta, self.norm, EPS)
        logits = F.linear(h, self.head)
        return logits, logits.argmax(-1)

    def _block(self, layer, h, batch):
        gate_up = layer.gate_up(h)[:batch]
        return layer.down(self.ops.glu(gate_up, self.fp8))[:batch]

    def _experts(self, layer, h, settings):
        ops, n_active = self.ops, layer.kind.n_active
        ids, weights, order, inverse, starts = ops.route(layer.router(h), n_active)
        if self.routes is not None:
            self.routes.append(ids)
        y = ops.grouped(h, layer.up, layer.up_bias, order, starts, ids, n_active, settings.up)
        y = ops.grouped(ops.glu(y), layer.down, layer.down_bias, order, starts, ids, 0, settings.down)
        return ops.combine(y, weights, inverse)

    def operations(self, settings):
        """Operations of one step: what the fused kernels launch, a matrix product counted as one."""
        count = 4  # embedding, last norm, head, token
        for layer in self.layers:
            count += 5 + (2 if settings.attention[layer.kind.window][0] == "split" else 1)
            count += 7 if layer.kind.n_experts else 3
        return count

    def experts_touched(self, tokens, cache, position, settings):
        """Distinct experts of a layer that one step reaches: the mean of all layers."""
        self.routes = []
        self.step(tokens, cache, position, settings)
        found = [len(torch.unique(ids)) for ids in self.routes]
        self.routes = None
        return sum(found) / len(found)


def settings_for(shape, attention, experts=("gather",)):
    """The same kernel for every layer: for checks."""
    return Settings({kind.window: attention for kind in shape.kinds}, experts, experts)


def random_tokens(batch, shape, device):
    """Tokens drawn by a fixed seed on the host, so that every run decodes the same."""
    generator = torch.Generator().manual_seed(batch)
    return torch.randint(shape.vocab_size, (batch,), generator=generator).to(device)


def cache_values(shape, batch, context):
    """Values that the cache of a point holds."""
    return plan.cache_bytes(shape, batch, context, value=1)
