"""The operations of a step in plain PyTorch: they run everywhere, and the Triton kernels are held against them.

Every method is what one kernel of ``fused.Fused`` does. Activations for an fp8 matrix come out as fp8, scaled
by ``FP8_SCALE``; rows beyond the batch (``pad``) exist only because matrix units like full tiles.
"""

import torch
import torch.nn.functional as F

FP8 = torch.float8_e4m3fn
FP8_SCALE = 16.0  # normalised activations are near 1; times 16 they sit in the middle of e4m3's range
FP8_MAX = 448.0


def quantise(x):
    """fp8 values of ``x * FP8_SCALE``, clamped to the range of the format."""
    return (x.float() * FP8_SCALE).clamp(-FP8_MAX, FP8_MAX).to(FP8)


class Plain:
    """Operations in plain PyTorch."""

    name = "plain"
    attentions = ("bmm", "sdpa")
    experts = ("gather", "grouped_mm")

    def __init__(self, pad=0):
        self.pad = pad

    def _out(self, y, fp8):
        if not fp8:
            return y
        y = quantise(y)
        missing = self.pad - y.shape[0]
        return torch.cat([y, y.new_zeros(missing, y.shape[1])]) if missing > 0 else y

    def norm(self, x, delta, weight, eps, fp8=False):
        """The residual stream with ``delta`` added, and its RMS norm."""
        total = x.float() if delta is None else x.float() + delta.float()
        y = total * torch.rsqrt(total.square().mean(-1, keepdim=True) + eps) * weight.float()
        return total.to(x.dtype), self._out(y.to(x.dtype), fp8)

    def rotate(self, qkv, k, v, cos, sin, position, slot, n_heads, norms, eps):
        """Queries with their position in them; keys and values go into the cache at ``slot``."""
        batch, n_kv, d = k.shape[0], k.shape[1], k.shape[3]
        q, key, value = qkv.view(batch, -1, d).float().split([n_heads, n_kv, n_kv], dim=1)
        if norms is not None:
            q, key = (
                x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * w.float()
                for x, w in zip((q, key), norms, strict=True)
            )
        c, s = cos[position], sin[position]

        def turn(x):
            low, high = x.chunk(2, dim=-1)
            return torch.cat([low * c - high * s, high * c + low * s], dim=-1).to(qkv.dtype)

        k[:, :, slot] = turn(key)
        v[:, :, slot] = value.to(qkv.dtype)
        return turn(q)

    def attend(self, q, k, v, seen, sinks, setting, fp8=False):
        """Attention of one query per sequence over the first ``seen`` entries of the cache.

        The query heads that share a key head are rows of one matrix, so the cache is read once.
        """
        batch, n_heads, d = q.shape
        n_kv = k.shape[1]
        k, v = k[:, :, :seen], v[:, :, :seen]
        if setting[0] == "sdpa":
            out = F.scaled_dot_product_attention(q[:, :, None], k, v, enable_gqa=n_heads != n_kv)
            return self._out(out.reshape(batch, n_heads * d), fp8)
        grouped = q.view(batch, n_kv, n_heads // n_kv, d)
        scores = (grouped @ k.transpose(2, 3)).float() * d**-0.5
        if sinks is not None:
            sink = sinks.float().view(1, n_kv, -1, 1).expand(batch, -1, -1, -1)
            p = torch.softmax(torch.cat([scores, sink], dim=-1), dim=-1)[..., :-1]
        else:
            p = torch.softmax(scores, dim=-1)
        return self._out((p.to(v.dtype) @ v).reshape(batch, n_heads * d), fp8)

    def glu(self, gate_up, fp8=False):
        """SwiGLU: SiLU of the first half times the second."""
        gate, up = gate_up.float().chunk(2, dim=-1)
        return self._out((F.silu(gate) * up).to(gate_up.dtype), fp8)

    def route(self, logits, n_active):
        """Experts of every token, their weights, and the tokens in the order of experts.

        Returns ids and weights (batch, n_active); ``order``, the pairs of token and choice sorted by
        expert; ``inverse``, where a pair stands in that order; ``starts``, where each expert's pairs begin.
        """
        values, ids = logits.float().topk(n_active, dim=-1)
        weights = torch.softmax(values, dim=-1)
        flat = ids.flatten()
        order = torch.argsort(flat, stable=True)
        inverse = torch.empty_like(order)
        inverse[order] = torch.arange(len(order), device=order.device)
        every = torch.arange(logits.shape[1], device=ids.device)
        ends = (flat[:, None] == every).sum(0).cumsum(0)
        starts = torch.cat([ends.new_zeros(1), ends]).int()
        return ids.int(), weights, order.int(), inverse.int(), starts

    def grouped(self, x, weight, bias, order, starts, ids, gather, setting):
        """Rows of ``x`` times the matrix (n, k) of their expert, in the order of experts.

        ``gather`` is the number of choices per token if x has one row per token, else 0.
        """
        if gather:
            x = x[order // gather]
        experts = ids.flatten()[order.long()].long()
        if setting[0] == "grouped_mm":
            y = torch._grouped_mm(x, weight.transpose(1, 2), offs=starts[1:].contiguous())
        else:
            y = (weight[experts] @ x[:, :, None])[:, :, 0]
        return y if bias is None else y + bias[experts]

    def combine(self, y, weights, inverse):
        """Sum of the results of each token's experts by their weights."""
        chosen = y[inverse].view(*weights.shape, -1).float()
        return (chosen * weights[..., None]).sum(1).to(y.dtype)

    # One choice per kind of work; Fused offers more.

    def attention_settings(self, batch, n_kv, seen, sinks):
        return [("bmm",)]

    def expert_settings(self, rows, n_experts, cuda):
        return [("grouped_mm",)] if cuda else [("gather",)]
