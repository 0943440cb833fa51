"""Pope et al. 2022, section 2: what a model costs in parameters, arithmetic and memory."""

from functools import partial

import inferlib.equation
from inferlib.ops import minimum
from inferlib.papers.pope2022.records import PRINTED, Assumptions, Chip, Model

equation = partial(inferlib.equation.equation, "pope2022")


@equation(unit="1")
def layer_parameters(model: Model):
    """Weights of one layer: four attention projections and the matrices of the feed-forward block.

    Section 2.2 names the shapes; the count itself is not printed. Layer norms are left out.
    """
    attention = 2 * (model.heads + model.kv_heads) * model.head_dim
    return model.d_model * (attention + model.matrices * model.d_ff)


@equation(unit="1")
def parameters(model: Model):
    """Parameters of a model: its layers and its embedding table.

    Table D.1 prints 540B and 530B.

    Examples
    --------
    >>> from inferlib.papers.pope2022 import load_model
    >>> f"{parameters(load_model('PaLM 540B')) / 1e9:.2f}B"
    '540.36B'
    """
    return model.layers * layer_parameters(model) + model.tables * model.vocabulary * model.d_model


@equation(unit="FLOP", tokens="1")
def matmul_flops(model: Model, tokens, assumptions: Assumptions = PRINTED):
    """Operations of all matrix multiplies for a number of tokens: 2N for each.

    Section 2, compute costs.
    """
    return assumptions.flop_per_weight * parameters(model) * tokens


@equation(unit="FLOP", tokens="1", seen="1")
def attention_flops(model: Model, tokens, seen, assumptions: Assumptions = PRINTED):
    """Operations of attention proper: scores and weighted sums of every head.

    Section 2 leaves it out as "a much smaller number".
    """
    scores = assumptions.flop_per_weight * tokens * seen * model.heads * model.head_dim
    return 2 * model.layers * scores


@equation(unit="B", chips="1 > 0")
def weights_on_chip(model: Model, chips):
    """Bytes of weights that one chip holds, and reads once a step.

    Section 2, memory costs.
    """
    return parameters(model) * model.weight_bytes / chips


@equation(unit="B")
def cache_of_token(model: Model):
    """Bytes of keys and values that one token of one sequence leaves behind, in all layers.

    Examples
    --------
    >>> from inferlib.papers.pope2022 import load_model
    >>> cache_of_token(load_model("PaLM 540B")) / 1024
    118.0
    """
    return 2 * model.layers * model.kv_heads * model.head_dim * model.cache_bytes


@equation(unit="B", chips="1 > 0", batch="1", context="1")
def cache_over_heads(model: Model, chips, batch, context):
    """Bytes of cache on one chip when attention is cut over heads.

    Chips beyond the number of key/value heads hold copies: with one such head every chip holds everything.

    Section 3.3, Figure 4(a) and (b).
    """
    return batch * context * cache_of_token(model) / minimum(chips, model.kv_heads)


@equation(unit="B", chips="1 > 0", batch="1 > 0", context="1")
def cache_over_batch(model: Model, chips, batch, context):
    """Bytes of cache on one chip when attention is cut over the sequences of the batch.

    Section 3.3, Figure 4(c).
    """
    return batch * context * cache_of_token(model) / minimum(chips, batch)


CACHES = {"Head": cache_over_heads, "Batch": cache_over_batch}


@equation(unit="1", chips="1 > 0", batch="1 > 0", cache_share="1")
def context_over_heads(model: Model, chip: Chip, chips, batch, cache_share):
    """Longest context for which the cache fits into its share of the memory, cut over heads.

    Tokens of context of each sequence. Table 1.
    """
    return cache_share * chip.memory_capacity / cache_over_heads(model, chips, batch, 1)


@equation(unit="1", chips="1 > 0", batch="1 > 0", cache_share="1")
def context_over_batch(model: Model, chip: Chip, chips, batch, cache_share):
    """The same when the cache is cut over the batch (Table 1)."""
    return cache_share * chip.memory_capacity / cache_over_batch(model, chips, batch, 1)


@equation(unit="s", chips="1 > 0", flop="FLOP")
def compute_time(chip: Chip, chips, flop):
    """Seconds for a number of operations when every chip runs at its peak (section 2, compute costs)."""
    return flop / (chips * chip.flops)


@equation(unit="s", held="B")
def memory_time(chip: Chip, held):
    """Seconds to bring so many bytes from a chip's memory to its cores (section 2, memory costs)."""
    return held / chip.memory_bandwidth


# --- How an answer is reported ---------------------------------------------------------------------------


@equation(unit="1", chips="1 > 0", n_params="1", tokens="1", time="s > 0")
def mfu(chip: Chip, chips, n_params, tokens, time, assumptions: Assumptions = PRINTED):
    """Model FLOPS utilisation: tokens a second over what the peak would allow.

    A fraction of 1. Section 2.

    Examples
    --------
    >>> from inferlib.papers.pope2022 import load_chip
    >>> round(mfu(load_chip("TPU v4"), 64, 540e9, 2048, 0.29), 2)
    0.43
    """
    return assumptions.flop_per_weight * n_params * tokens / (time * chips * chip.flops)


@equation(unit="s", chips="1 > 0", n_params="1", tokens="1", utilisation="1 > 0")
def latency(chip: Chip, chips, n_params, tokens, utilisation, assumptions: Assumptions = PRINTED):
    """Seconds for a number of tokens at a given utilisation."""
    return assumptions.flop_per_weight * n_params * tokens / (utilisation * chips * chip.flops)


@equation(unit="s", chips="1", tokens="1 > 0", time="s")
def cost(chips, tokens, time):
    """Chip-seconds for a token.

    Section 4.4; times the utilisation and the peak it is 2N.
    """
    return chips * time / tokens
