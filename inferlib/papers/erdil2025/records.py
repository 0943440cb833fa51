"""The paper's own records: its models with its way of counting parameters, and its GPUs."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files

from inferlib.catalog import record
from inferlib.checks import Names
from inferlib.equation import Record, equation, quantity
from inferlib.system import Accelerator, format_bytes
from inferlib.transformer import Transformer

equation = partial(equation, "erdil2025", chapter="erdil2025_toy")


@dataclass(frozen=True, eq=False)
class Shape(Record):
    """The dimensions of a model that the paper's parameter count is made of."""

    n_layers: float = quantity("1", "layers")
    d_model: float = quantity("1", "width of the residual stream")
    d_ff: float = quantity("1", "width of the feed-forward block")
    ff_up: float = quantity("1", "matrices from the residual stream to the feed-forward width")
    ff_down: float = quantity("1", "matrices from the feed-forward width back")
    n_heads: float = quantity("1", "query heads")
    group_size: float = quantity("1", "query heads that share one key and value head")
    head_dim: float = quantity("1", "width of one head")
    vocab_size: float = quantity("1", "entries of the vocabulary")
    n_experts: float = quantity("1", "experts of each feed-forward block", default=1)
    name: str = ""


@equation(unit="1")
def parameter_count(shape: Shape):
    """Parameters as the paper counts them: every expert, and the input and output embedding both.

    Parameters
    ----------
    shape : Shape

    Returns
    -------
    float
        Number of parameters.

    Notes
    -----
    Not in the paper, which prints nominal sizes; this is the count of its notebook, which Table 1 needs.

    Examples
    --------
    >>> int(parameter_count(models["Llama 3 70B"].shape))
    70552387584
    """
    kv_heads = 2 * shape.n_heads / shape.group_size
    attention = shape.d_model * shape.head_dim * (2 * shape.n_heads + kv_heads)
    feed_forward = shape.n_experts * (shape.ff_up + shape.ff_down) * shape.d_model * shape.d_ff
    return shape.n_layers * (attention + feed_forward) + 2 * shape.vocab_size * shape.d_model


_STATED = {
    "n_layers": "the model's shape",
    "n_params": "counted from the model's shape by parameter_count",
    "weight_bytes": "the number format asked for",
    "reductions": "section 2.2.1",
    "flop_per_weight": "section 2.1",
}


@dataclass(frozen=True, eq=False)
class Model(Record):
    """A model as section 2 of the paper sees it: so many layers, so many parameters, so many bytes each."""

    n_layers: float = quantity("1", "layers")
    n_params: float = quantity("1", "parameters")
    weight_bytes: float = quantity("B", "bytes of one parameter", default=2.0)
    reductions: float = quantity("1", "serial all-reduces in one layer", default=4)
    flop_per_weight: float = quantity("FLOP", "a multiplication and an addition for every weight", default=2)
    cache_bytes: float = quantity("B", "KV cache of one token of context", default=0.0, zero=True)
    name: str = ""
    parallel_attention: bool = False
    shape: Shape | None = None
    sources: Mapping = field(default_factory=dict)

    @classmethod
    def of(cls, shape, *, weight_bytes=2.0, cache_value_bytes=2.0, **other):
        """The model of a shape, its parameters and cache counted the paper's way."""
        kv_heads = 2 * shape.n_heads / shape.group_size
        cache = kv_heads * shape.head_dim * shape.n_layers * cache_value_bytes
        return cls(
            n_layers=shape.n_layers,
            n_params=parameter_count(shape),
            weight_bytes=weight_bytes,
            cache_bytes=cache,
            shape=shape,
            sources=_STATED,
            **other,
        )


@dataclass(frozen=True, eq=False)
class GPU(Accelerator):
    """A GPU of the paper: an accelerator with the fractions of its peaks that can be reached."""

    flops_fraction: float = quantity(
        "1", "attainable fraction of the arithmetic peak", default=1.0, maximum=1
    )
    bandwidth_fraction: float = quantity(
        "1", "attainable fraction of the memory bandwidth", default=1.0, maximum=1
    )

    def capped(self):
        """The same GPU with its attainable rates in place of the peaks."""
        return self.replace(
            flops=self.flops * self.flops_fraction,
            memory_bandwidth=self.memory_bandwidth * self.bandwidth_fraction,
            flops_fraction=1.0,
            bandwidth_fraction=1.0,
        )


def as_model(model, weights="bf16", cache="bf16"):
    """A model of this paper made from an :class:`inferlib.Transformer`; the paper's own pass through.

    Raises
    ------
    TypeError
        If it is neither.
    ValueError
        If its layers are not equal, dense, and of key/value heads.
    """
    if isinstance(model, Model):
        return model
    if not isinstance(model, Transformer):
        raise TypeError(f"model is a {type(model).__name__}, but must be a Transformer or an erdil2025 Model")
    shape = Shape(
        n_layers=model.n_layers,
        d_model=model.d_model,
        d_ff=model.d_ff,
        ff_up=model.ff_matrices - 1,
        ff_down=1,
        n_heads=model.n_heads,
        group_size=model.n_heads / model.n_kv_heads,
        head_dim=model.head_dim,
        vocab_size=model.vocab_size,
        name=model.name,
    )
    return Model.of(
        shape, weight_bytes=format_bytes(weights), cache_value_bytes=format_bytes(cache), name=model.name
    )


def _load():
    tables = tomllib.loads((files("inferlib.papers.erdil2025") / "assumptions.toml").read_text("utf-8"))
    chips = {name: record(GPU, entry, name=name) for name, entry in tables["chips"].items()}
    models = {}
    for name, entry in tables["models"].items():
        parallel = entry.pop("parallel_attention", False)
        models[name] = Model.of(record(Shape, entry, name=name), name=name, parallel_attention=parallel)
    return Names("chip of erdil2025", chips), Names("model of erdil2025", models)


chips, models = _load()
