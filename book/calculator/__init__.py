"""The calculator: one model on one system, answered side by side by every source that exists.

Everything it shows is an ordinary call of a source's ``decode_step`` on a :class:`inferlib.Transformer` and a
chip of the catalogue, for dimensions that a reader can type. The page is :mod:`book.calculator.instrument`.
"""

import re
from dataclasses import dataclass
from functools import cache

from book.calculator import answers
from inferlib.catalog import chips, load_chip, load_model, models
from inferlib.equation import Record, quantity
from inferlib.explorer import Bars, Choice, Explorer, Kind, Slider, memory
from inferlib.papers.erdil2025.records import NO_GPUS
from inferlib.principles import cost_per_million
from inferlib.system import format_bytes
from inferlib.transformer import Attention, Experts, FeedForward, LatentAttention, Layers, Transformer

# One line for each answer: what the page calls it, and how it is asked.
SOURCES = {
    "first principles": answers.Answer("inferlib.principles"),
    "Steinhardt 2022": answers.Answer("inferlib.papers.steinhardt2022"),
    "Pope et al. 2022": answers.pope2022(),
    "Erdil 2025, toy": answers.Answer("inferlib.papers.erdil2025", "toy_decode_step"),
    "Erdil 2025": answers.erdil2025(),
    "LIMINAL 2025": answers.liminal2025(),
    "Mazurek & Schreiber 2025": answers.mazurek2025(),
    "sixth model": answers.sixth(),
}


@dataclass(frozen=True, eq=False)
class Precision(Record):
    """Bytes of a weight and of a value in the cache, and whether arithmetic is done at 8 bits."""

    weights: float = quantity("B", "bytes of one weight")
    cache: float = quantity("B", "bytes of one value in the cache")
    eight_bit: float = quantity("1", "1 where arithmetic runs at 8 bits, else 0", zero=True)


PRECISIONS = {
    label: Precision(format_bytes(weights), format_bytes(cache), float(eight_bit))
    for label, weights, cache, eight_bit in (
        ("16 bits", "bf16", "bf16", False),
        ("8 bits, arithmetic too", "fp8", "fp8", True),
        ("8-bit weights, 16-bit cache and arithmetic", "fp8", "bf16", False),
        ("4-bit weights, 16-bit cache and arithmetic", "fp4", "bf16", False),
        ("4-bit weights, 8-bit cache and arithmetic", "fp4", "fp8", True),
    )
}


# The shapes of model that the page knows. Structure is bound before an equation is called, so each is a kind.


def _dense(shape, tied=False):
    return Transformer.dense(
        shape["n_layers"], shape["d_model"], shape["d_ff"], shape["n_heads"], shape["n_kv_heads"],
        shape["head_dim"], shape["vocab_size"], ff_matrices=shape["matrices"], tied=tied, name="this model",
    )  # fmt: skip


def _tied(shape):
    return _dense(shape, tied=True)


def _experts(shape):
    return Experts(
        shape["n_experts"], shape["n_active"], shape["d_expert"], shape["d_shared"], shape["matrices"]
    )


def _sparse(shape):
    attention = Attention(shape["n_heads"], shape["n_kv_heads"], shape["head_dim"])
    layers = (Layers(shape["n_layers"], attention, _experts(shape)),)
    return Transformer(shape["d_model"], shape["vocab_size"], layers, name="this model")


def _latent(shape):
    attention = LatentAttention(
        shape["n_heads"], shape["kv_rank"], shape["nope_dim"], shape["rope_dim"], shape["value_dim"],
        shape["q_rank"],
    )  # fmt: skip
    shape = shape | {"matrices": 3}  # all published ones are gated
    block = FeedForward(shape["d_ff"], shape["matrices"])
    layers = (
        Layers(shape["n_dense"], attention, block),
        Layers(shape["n_layers"] - shape["n_dense"], attention, _experts(shape)),
    )
    return Transformer(shape["d_model"], shape["vocab_size"], layers, name="this model")


_DENSE, _TIED, _SPARSE, _LATENT = (
    "dense", "dense, one table for both embeddings", "experts", "experts and latent attention",
)  # fmt: skip
KINDS = {_DENSE: _dense, _TIED: _tied, _SPARSE: _sparse, _LATENT: _latent}


def _whole(name, label, low, high, value, *kinds):
    when = {"kind": list(kinds)} if kinds else {}
    return Slider(name, label, low, high, value, log=low > 0, whole=True, when=when)


def _dimensions():
    """The dimensions a reader can type; those of Llama 3 70B, and of DeepSeek V3 where that has none."""
    heads, experts = (_DENSE, _TIED, _SPARSE), (_SPARSE, _LATENT)
    return (
        _whole("n_layers", "Layers", 1, 256, 80),
        _whole("d_model", "Width of the residual stream", 64, 65536, 8192),
        _whole("n_heads", "Query heads", 1, 512, 64),
        _whole("n_kv_heads", "Key and value heads", 1, 512, 8, *heads),
        _whole("head_dim", "Width of a head", 16, 512, 128, *heads),
        _whole("d_ff", "Width of the feed-forward block", 64, 262144, 28672, _DENSE, _TIED, _LATENT),
        _whole("matrices", "Matrices of a block (3: gated)", 2, 3, 3, *heads),
        _whole("vocab_size", "Entries of the vocabulary", 256, 1048576, 128256),
        _whole("n_experts", "Routed experts", 2, 1024, 256, *experts),
        _whole("n_active", "Experts of one token", 1, 64, 8, *experts),
        _whole("d_expert", "Width of an expert", 64, 65536, 2048, *experts),
        _whole("d_shared", "Width of all shared experts", 0, 65536, 2048, *experts),
        _whole("n_dense", "Dense layers before the experts", 1, 64, 3, _LATENT),
        _whole("kv_rank", "Width of the latent", 16, 4096, 512, _LATENT),
        _whole("q_rank", "Width of the query's latent", 16, 8192, 1536, _LATENT),
        _whole("nope_dim", "Head width without position", 16, 512, 128, _LATENT),
        _whole("rope_dim", "Head width with position", 8, 512, 64, _LATENT),
        _whole("value_dim", "Head width of values", 16, 512, 128, _LATENT),
    )


def shape_of(model):
    """The dimensions of a transformer as the calculator takes them, or None where it has no such kind.

    Small vectors (biases, norms of heads) are left out; windows, and what else no kind here has, are refused.
    """
    last = model.layers[-1]
    attention, block = last.attention, last.feed_forward
    sparse, latent = (isinstance(block, Experts), isinstance(attention, LatentAttention))
    shape = {"n_layers": model.n_layers, "d_model": model.d_model, "vocab_size": model.vocab_size}
    shape |= {"n_heads": attention.n_heads}
    if latent:
        names = ("kv_rank", "q_rank", "nope_dim", "rope_dim", "value_dim")
        first = model.layers[0]
        shape |= {"n_dense": first.count, "d_ff": getattr(first.feed_forward, "d_ff", None)}
    else:
        names = ("n_kv_heads", "head_dim")
        shape["matrices"] = block.matrices
    shape |= {name: getattr(attention, name) for name in names}
    names = ("n_experts", "n_active", "d_expert", "d_shared") if sparse else ("d_ff",)
    shape |= {name: getattr(block, name) for name in names}
    kind = _LATENT if latent else _SPARSE if sparse else _TIED if model.tied else _DENSE
    if None in shape.values() or (latent and not sparse):
        return None
    made = KINDS[kind](shape)
    same = (made.n_params / model.n_params, made.cache_values(10**6) / model.cache_values(10**6))
    return {"kind": kind} | shape if all(abs(ratio - 1) < 1e-3 for ratio in same) else None


@cache
def catalogue():
    """The models of the catalogue that the calculator can take: name to dimensions."""
    shapes = {name: shape_of(load_model(name)) for name in models()}
    return {name: shape for name, shape in shapes.items() if shape}


@cache
def offered_chips():
    """The chips of the catalogue whose memory and links are all stated, and whether each is a GPU."""
    wanted = ("memory_capacity", "scale_up_bandwidth", "scale_out_bandwidth", "scale_up_size")
    found = {name: load_chip(name) for name in chips()}
    return {
        name: answers.offered(chip, float(not name.startswith(NO_GPUS)))
        for name, chip in found.items()
        if all(getattr(chip, field) is not None for field in wanted)
    }


def _memory(kind, precision, batch, context, **at):
    model = kind({name: at[name] for name in at if name in {d.name for d in _dimensions()}})
    return model.bytes_held(batch, context, precision.weights, precision.cache)


def _cost(seconds, batch, n_chips, price):
    return cost_per_million(seconds, batch, n_chips, price)


def about():
    """What each answer is, as its ``decode_step`` says of itself, as a Markdown list."""
    texts = {name: f"{_prose(answer.function.__doc__)} {answer.besides}" for name, answer in SOURCES.items()}
    return "\n".join(f"- **{name}.** {' '.join(text.split())}" for name, text in texts.items())


def _prose(text):
    """The paragraphs of a docstring before its parameters."""
    return re.sub(r":\w+:`", "`", text.split("Parameters\n")[0]).replace("``", "`")


def explorer():
    """Latency, speed, price and breakdown of one token by every source, of typed dimensions.

    Returns
    -------
    inferlib.explorer.Explorer
        For Python, and for the instrument, whose page takes the JavaScript of the sources.
    """
    box = offered_chips()
    box = {"H100 SXM": box["H100 SXM"]} | box
    eight = [name for name, chip in box.items() if "fp8" in chip.peaks]
    inputs = [
        Kind("kind", "Kind", KINDS),
        *_dimensions(),
        Choice(
            "chip", "Chip", box,
            sets={name: {"price": chip.price} for name, chip in box.items() if chip.price is not None},
        ),
        Slider("n_chips", "Chips", 1, 512, 8, log=True, whole=True),
        Choice(
            "precision", "Precision", PRECISIONS,
            offered={name: {"chip": eight} for name, p in PRECISIONS.items() if p.eight_bit},
        ),
        Slider("context", "Context", 1, 1_048_576, 4096, "tokens", log=True, whole=True),
        Slider("batch", "Batch", 1, 8192, 32, "sequences", log=True, whole=True),
        Slider("price", "Price of a chip", 0.1, 50, box["H100 SXM"].price, "$/h", log=True),
    ]  # fmt: skip
    columns = {
        "tokens/s for a user": (lambda seconds: 1 / seconds, "1"),
        "tokens/s per chip": (lambda seconds, batch, n_chips: batch / (seconds * n_chips), "1"),
        "$ per million tokens": (_cost, "1"),
    }
    bars = Bars({name: answer.search() for name, answer in SOURCES.items()}, also=columns)
    return Explorer("All sources", inputs, [bars], limits=memory(_memory, "n_chips"))
