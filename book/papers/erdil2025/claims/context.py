"""Erdil 2025, section 4.3 (long contexts) and its captions: everything their text prints, recomputed."""

from functools import cache

from book.audit.explanations import inputs, named
from book.audit.grading import format_items, reproduces
from book.papers.erdil2025 import economics, frontiers, limits
from book.papers.erdil2025.claims.model import H100, PRINTED, token_latency
from book.papers.erdil2025.economics import LONG
from inferlib import catalog
from inferlib.papers.erdil2025.equations import model as m, printed
from inferlib.papers.erdil2025.records import chips, computing_at, load_chip, load_model
from inferlib.papers.erdil2025.shape import cache_values, printed_parameters
from inferlib.units import factor

MISTRAL = load_model("Mistral Large 2")
GROUPED = ("Mixtral 8x7B", "Mixtral 8x22B", "Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B", "Mistral Large 2")


def utilisation(model, chip, n_gpu, batch, context):
    """Share of the arithmetic peak that a pass uses, in the best layout without pipeline."""
    shape = load_model(model).shape
    seconds = token_latency(load_model(model), chip, n_gpu, batch, context=context, pipeline=False)
    flop = sum(m.flop_per_token(shape, context, PRINTED)) * batch
    return flop / (n_gpu * computing_at(chip, shape).flops * seconds)


# Section 4.3: long contexts.


def full_cost(price, part=1.0):
    """Dollars for a million tokens of Llama 3 70B at 16 bits on H100s at a price per hour and a part of their peak."""
    shape = load_model("Llama 3 70B").shape
    seconds = printed.pointwise_flop(shape, printed.active_parameters(shape, 1)) / (part * H100.flops)
    return 1e6 * seconds * price * factor("usd/h")


def _full_cost(read):
    rent, part = read("rent of one GPU") / factor("usd/h"), H100.flops_fraction
    return full_cost(rent, part) / 1e6


def mfu():
    """Utilisation at Table 6's 16-bit point: of the attainable rate, and of the peak."""
    point = economics.preferred(economics.curve("Llama 3 70B"))
    of_peak = named("utilisation of the peak at Table 6's 16-bit point", float(point.mfu))
    return of_peak / inputs(H100).flops_fraction, of_peak


def cache_of_token(name):
    """Bytes that a token leaves in the cache of all layers, as the notebook counts them."""
    shape = inputs(load_model(name).shape)
    return shape.n_layers * cache_values(shape) * shape.activation_bytes


def _intensity_factor(read):
    shape = inputs(MISTRAL.shape)
    intensity = limits.long_context_intensity(shape, PRINTED.flop_per_pair)
    return intensity * shape.activation_bytes / shape.group_size


def best_utilisation(chip):
    """Best share of the 16-bit peak when the cache is read for every token: 2 / precision, one, over FLOP per byte."""
    return chip.memory_bandwidth / chip.flops


def cheap_ends(name, context):
    """Return the smallest cost of a frontier without pipeline, so that the cache must fit; dollars per million."""
    return economics.frontier(load_model(name), H100, context=context, pipeline=False).usd_per_million.min()


def released_cache():
    """Bytes that DeepSeek-V3 as released keeps for a token: 61 layers of the latent and its rotary key."""
    return catalog.load_model("DeepSeek V3").cache_bytes(1)


@cache
def cheaper_with_released_cache():
    """How many times cheaper than Mistral Large 2 a token of long context is with that cache, at the cheap ends."""
    deepseek, plain = load_model("DeepSeek-V3"), cache_values.equation.function
    layer = released_cache() / deepseek.shape.activation_bytes / deepseek.n_layers
    with cache_values.replaced(lambda shape: layer if shape.latent else plain(shape)):
        curve = frontiers.frontier(deepseek, H100, context=LONG, pipeline=False)
    return cheap_ends("Mistral Large 2", LONG) / curve.usd_per_million.min()


def _weights_read(read):
    """Return the weights that a pass reads: all but the input embedding."""
    return MISTRAL.weight_bytes * printed_parameters(MISTRAL.shape)


@reproduces("Text 4.3")
def _text_4_3(read):
    mistral, deepseek = "Mistral Large 2", "DeepSeek-V3"
    per_token = "cache read for a token"
    return {
        "cost at full utilisation": _full_cost,
        # both of the attainable rate, as an erratum says
        "utilisation at Table 6's 16-bit point": lambda read: mfu()[0],
        ("input tokens are cheaper", "factor"): lambda read: read("prefill", "utilisation") / mfu()[0],
        ("arithmetic intensity of attention", "factor before g / precision"): _intensity_factor,
        (mistral, "cache of a token"): lambda read: cache_of_token(mistral),
        (mistral, per_token): lambda read: cache_of_token(mistral) * read("long context"),
        (mistral, "cache read for a million tokens"): lambda read: (
            1e6 * cache_of_token(mistral) * read("long context")
        ),
        (mistral, "size"): _weights_read,
        (mistral, "batch beyond which the cache dominates"): lambda read: (
            _weights_read(read) / read(mistral, per_token)
        ),
        (mistral, "price of reading the cache"): lambda read: (
            read(mistral, per_token) / read("H100", "memory bandwidth") * read("rent of one GPU")
        ),
        (deepseek, "cache of a token"): lambda read: cache_of_token(deepseek),
        (deepseek, "times cheaper at long context"): lambda read: (
            cache_of_token(mistral) / cache_of_token(deepseek)
        ),
    }


@reproduces("Text 4.3")
def _long_contexts(holds):
    found = {name: best_utilisation(load_chip(name)) for name in chips()}
    holds(
        "utilisation without grouped-query attention is below 1 %",
        max(found[name] for name in economics.GENERATIONS) < 0.01,
        f"of the 16-bit peak: {format_items(found, '.2%')}",
        fair="for the paper's three GPUs; an H20 reaches more",
    )
