"""Transformer: the shape of a dense decoder, its parameters and its bytes, counted as they are."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from inferlib.equation import Record, quantity


@dataclass(frozen=True, eq=False)
class Transformer(Record):
    """A dense decoder-only transformer with grouped-query attention.

    Head width is a field of its own: it is not d_model divided by the heads in every model. Key and value
    heads may be fewer than query heads; the cache is counted in key and value heads.
    """

    n_layers: float = quantity("1", "layers")
    d_model: float = quantity("1", "width of the residual stream")
    d_ff: float = quantity("1", "width of the feed-forward block")
    n_heads: float = quantity("1", "query heads")
    n_kv_heads: float = quantity("1", "key (and value) heads")
    head_dim: float = quantity("1", "width of one head")
    vocab_size: float = quantity("1", "entries of the vocabulary")
    ff_matrices: float = quantity("1", "matrices of the feed-forward block: 3 gated, 2 plain", default=3)
    embeddings: float = quantity("1", "embedding tables: 2, or 1 if input and output are tied", default=2)
    name: str = ""
    sources: Mapping = field(default_factory=dict)

    def __post_init__(self):
        super().__post_init__()
        if self.n_kv_heads > self.n_heads:
            raise ValueError(
                f"Transformer.n_kv_heads is {self.n_kv_heads}, but must be at most n_heads, {self.n_heads}"
            )

    def parameters(self):
        """Parameters by part, norms left out: attention, feed-forward, embeddings.

        Examples
        --------
        >>> from inferlib import load_model
        >>> sum(load_model("Llama 3 70B").parameters().values())
        70552387584.0
        """
        attention = self.d_model * self.head_dim * (2 * self.n_heads + 2 * self.n_kv_heads)
        feed_forward = self.ff_matrices * self.d_model * self.d_ff
        return {
            "attention": float(self.n_layers * attention),
            "feed-forward": float(self.n_layers * feed_forward),
            "embeddings": float(self.embeddings * self.vocab_size * self.d_model),
        }

    def cache_values(self):
        """Values kept per token of context: one key and one value vector per key/value head and layer.

        Examples
        --------
        >>> from inferlib import load_model
        >>> load_model("Llama 3 70B").cache_values()
        163840.0
        """
        return float(2 * self.n_layers * self.n_kv_heads * self.head_dim)
