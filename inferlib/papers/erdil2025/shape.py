"""The dimensions of a model, and how the paper counts parameters from them."""

from functools import partial

from inferlib.equation import Record, equation, frozen, quantity

equation = partial(equation, "erdil2025", chapter="erdil2025_toy")


@frozen
class Shape(Record):
    """The dimensions and the precision of a model, as the paper's model of inference needs them.

    ``latent`` says whether attention is multi-head latent attention (then ``kv_rank`` and ``q_rank`` are the
    widths of its latents and ``group_size`` is 1); ``parallel_attention`` whether attention and feed-forward
    block run in parallel.
    """

    n_layers: float = quantity("layers")
    d_model: float = quantity("width of the residual stream")
    d_ff: float = quantity("width of the feed-forward block, or of one expert")
    ff_up: float = quantity("matrices from the residual stream to the feed-forward width")
    ff_down: float = quantity("matrices from the feed-forward width back")
    n_heads: float = quantity("query heads")
    group_size: float = quantity("query heads that share one key and value head")
    head_dim: float = quantity("width of one head")
    vocab_size: float = quantity("entries of the vocabulary")
    n_experts: float = quantity("experts of each feed-forward block", default=1)
    n_active: float = quantity("experts that a token goes to", default=1)
    kv_rank: float = quantity("width of the latent of keys and values", default=None)
    q_rank: float = quantity("width of the latent of queries", default=None)
    weight_bytes: float = quantity("bytes of one parameter", "B", default=2.0)
    activation_bytes: float = quantity("bytes of one activation, cache included", "B", default=2.0)
    flop_per_weight: float = quantity("a multiplication and an addition for every weight", "FLOP", default=2)
    latent: bool = False
    parallel_attention: bool = False
    name: str = ""

    @property
    def bits(self):
        """Bits of a weight: the format that the tensor cores multiply in."""
        return round(8 * self.weight_bytes)


@equation()
def cache_values(shape: Shape):
    """Values that one token leaves in the cache of one layer (equation 34's first factors)."""
    if shape.latent:
        return shape.kv_rank  # DeepSeek-V3 keeps a rotary key beside it, which the paper leaves out
    return 2 * shape.n_heads / shape.group_size * shape.head_dim


@equation()
def qkv_width(shape: Shape):
    """Width of queries, keys and values together: (1 + 2/g) n_head d_head of equation 25."""
    return (shape.n_heads + 2 * shape.n_heads / shape.group_size) * shape.head_dim


@equation()
def attention_params(shape: Shape):
    """Attention parameters of all layers (in equation 20), as the paper's notebook counts them.

    For latent attention the down-projection of keys and values is counted twice, as the notebook does.
    """
    width = shape.n_heads * shape.head_dim
    if not shape.latent:
        return shape.n_layers * shape.d_model * (qkv_width(shape) + width)
    down = (2 * shape.kv_rank + shape.q_rank) * shape.d_model
    ups = 2 * shape.n_heads / shape.group_size * shape.kv_rank + shape.n_heads * shape.q_rank
    return shape.n_layers * (down + ups * shape.head_dim + width * shape.d_model)


@equation()
def feed_forward_params(shape: Shape):
    """Feed-forward parameters of all layers and experts (in equation 20)."""
    matrices = shape.ff_up + shape.ff_down
    return shape.n_layers * shape.n_experts * matrices * shape.d_model * shape.d_ff


@equation()
def embedding_params(shape: Shape):
    """Parameters of one of the two embedding tables: the unembedding of equation 20."""
    return shape.vocab_size * shape.d_model


@equation("20", chapter="erdil2025_model")
def printed_parameters(shape: Shape):
    """Parameters of attention, feed-forward and unembedding; the input embedding is looked up, not multiplied."""
    return attention_params(shape) + feed_forward_params(shape) + embedding_params(shape)


@equation()
def parameter_count(shape: Shape):
    """Parameters as the paper's notebook counts them for Table 1: every expert, and both embedding tables."""
    return printed_parameters(shape) + embedding_params(shape)
