"""Mazurek & Schreiber 2025, section 3.2: equations 1 to 45, the arithmetic of attention and experts.

Prefill reads a prompt of ``context`` tokens; decode makes one token for each of ``batch`` sequences with
``context`` tokens behind it. "Vanilla" attention computes keys and values back from the latent; "absorbed"
attention works on the latent itself. All results are in FLOP.
"""

from functools import partial

from inferlib.equation import equation
from inferlib.papers.mazurek2025.records import DEFAULT, Assumptions, Deployment, Model

equation = partial(equation, "mazurek2025", unit="FLOP")


# --- Projections of a prompt, vanilla (1 to 7) and absorbed (20 to 23) -----------------------------------


@equation("1", also={"20": {}}, batch="1", context="1")
def query_down_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """Queries into their latent: 2 B S d d'_c."""
    return assumptions.flop_per_weight * batch * context * model.d_model * model.q_rank


@equation("2", also={"29": {}}, batch="1", context="1")
def query_up_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """Queries of all heads from their latent; arguments and result as in :func:`query_down_flops`."""
    return assumptions.flop_per_weight * batch * context * model.q_rank * model.n_heads * model.nope_dim


@equation("3", also={"21": {}}, batch="1", context="1")
def query_rope_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """Rotary part of the queries; arguments and result as in :func:`query_down_flops`."""
    return assumptions.flop_per_weight * batch * context * model.q_rank * model.n_heads * model.rope_dim


@equation("4", also={"22": {}}, batch="1", context="1")
def latent_down_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """The latent of keys and values; arguments and result as in :func:`query_down_flops`."""
    return assumptions.flop_per_weight * batch * context * model.d_model * model.kv_rank


@equation("5", also={"12": {}, "30": {}}, batch="1", context="1")
def key_up_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """Keys of all heads from the latent; arguments and result as in :func:`query_down_flops`.

    Vanilla decode must do this for the whole context (12). Absorbed, the same matrix is applied to the queries
    of a prompt instead (30).
    """
    return assumptions.flop_per_weight * batch * context * model.n_heads * model.kv_rank * model.nope_dim


@equation("6", also={"23": {}}, batch="1", context="1")
def key_rope_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """The rotary key that all heads share; arguments and result as in :func:`query_down_flops`."""
    return assumptions.flop_per_weight * batch * context * model.d_model * model.rope_dim


@equation("7", also={"14": {}}, batch="1", context="1")
def value_up_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """Values of all heads from the latent; arguments and result as in :func:`query_down_flops`."""
    return assumptions.flop_per_weight * batch * context * model.n_heads * model.kv_rank * model.value_dim


# --- Projections of one new token (8 to 13 without 12, and 25 to 28) -------------------------------------


@equation("8", also={"25": {}}, batch="1")
def decode_query_down_flops(model: Model, batch, assumptions: Assumptions = DEFAULT):
    """Equation 1 for one token of each sequence."""
    return query_down_flops(model, batch, 1, assumptions)


@equation("9", also={"33": {}}, batch="1")
def decode_query_up_flops(model: Model, batch, assumptions: Assumptions = DEFAULT):
    """Equation 2 for one token of each sequence."""
    return query_up_flops(model, batch, 1, assumptions)


@equation("10", also={"26": {}}, batch="1")
def decode_query_rope_flops(model: Model, batch, assumptions: Assumptions = DEFAULT):
    """Equation 3 for one token of each sequence."""
    return query_rope_flops(model, batch, 1, assumptions)


@equation("11", also={"27": {}}, batch="1")
def decode_latent_down_flops(model: Model, batch, assumptions: Assumptions = DEFAULT):
    """Equation 4 for one token of each sequence."""
    return latent_down_flops(model, batch, 1, assumptions)


@equation("13", also={"28": {}}, batch="1")
def decode_key_rope_flops(model: Model, batch, assumptions: Assumptions = DEFAULT):
    """Equation 6 for one token of each sequence: rotary keys are cached."""
    return key_rope_flops(model, batch, 1, assumptions)


# --- Scores, values and output, vanilla (15 to 19) -------------------------------------------------------


@equation("15", batch="1", context="1")
def score_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """Scores of a prompt: every query with every key (no causal half), in every head."""
    width = model.nope_dim + model.rope_dim
    return assumptions.flop_per_weight * batch * context**2 * model.n_heads * width


@equation("16", batch="1", context="1")
def value_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """Values of a prompt, weighted by the scores.

    Printed without the factor 2 that equation 15 has: ``Assumptions.corrected()`` puts it in, here and in
    equations 17, 32 and 36.
    """
    return assumptions.value_flop * batch * context**2 * model.n_heads * model.value_dim


@equation("17", batch="1", context="1")
def decode_attention_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """Scores and values of one new token of each sequence, on keys and values of all heads."""
    scores = assumptions.flop_per_weight * (model.nope_dim + model.rope_dim)
    return batch * model.n_heads * context * (scores + assumptions.value_flop * model.value_dim)


@equation("18", batch="1", context="1")
def output_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """Output projection of a prompt."""
    return assumptions.flop_per_weight * batch * context * model.n_heads * model.value_dim * model.d_model


@equation("19", batch="1")
def decode_output_flops(model: Model, batch, assumptions: Assumptions = DEFAULT):
    """Output projection of one new token of each sequence."""
    return output_flops(model, batch, 1, assumptions)


# --- Absorbed (31 to 38) ---------------------------------------------------------------------------------


@equation("31", batch="1", context="1")
def absorbed_score_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """Scores of a prompt on the latent: each head's query is as wide as the latent now."""
    width = model.kv_rank + model.rope_dim
    return assumptions.flop_per_weight * batch * context**2 * model.n_heads * width


@equation("32", batch="1", context="1")
def absorbed_value_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """Latents of a prompt, weighted by the scores; printed without the factor 2, as equation 16."""
    return assumptions.value_flop * batch * context**2 * model.n_heads * model.kv_rank


@equation("34", batch="1")
def decode_absorbed_key_flops(model: Model, batch, assumptions: Assumptions = DEFAULT):
    """W^UK applied to the query of one new token, in place of the whole context's keys."""
    return key_up_flops(model, batch, 1, assumptions)


@equation("35", batch="1", context="1")
def decode_absorbed_score_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """Scores of one new token on the latent."""
    width = model.kv_rank + model.rope_dim
    return assumptions.flop_per_weight * batch * context * model.n_heads * width


@equation("36", batch="1", context="1")
def decode_absorbed_value_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """Latents weighted by the scores of one new token; printed without the factor 2, as equation 16."""
    return assumptions.value_flop * batch * context * model.n_heads * model.kv_rank


@equation("37", batch="1", context="1")
def absorbed_output_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """Output projection of a prompt with W^UV in it: latent to values, values to the residual stream."""
    value, output = model.value_dim * model.kv_rank, model.value_dim * model.d_model
    return assumptions.flop_per_weight * batch * context * model.n_heads * (output + value)


@equation("38", batch="1")
def decode_absorbed_output_flops(model: Model, batch, assumptions: Assumptions = DEFAULT):
    """Output projection of one new token; the dump of the source has lost a d and a sign here."""
    return absorbed_output_flops(model, batch, 1, assumptions)


# --- One layer of attention in all -----------------------------------------------------------------------

# The matrices that both variants apply: to one new token of each sequence, and to every token of a prompt.
_NEW_TOKEN = (
    decode_query_down_flops, decode_query_up_flops, decode_query_rope_flops, decode_latent_down_flops,
    decode_key_rope_flops,
)  # fmt: skip
_PROMPT = (
    query_down_flops, query_up_flops, query_rope_flops, latent_down_flops, key_up_flops, key_rope_flops,
)  # fmt: skip


@equation(batch="1", context="1")
def vanilla_decode_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """One layer of vanilla attention for one new token of each sequence: equations 8 to 14, 17 and 19."""
    return (
        sum(matrix(model, batch, assumptions) for matrix in _NEW_TOKEN)
        + key_up_flops(model, batch, context, assumptions)
        + value_up_flops(model, batch, context, assumptions)
        + decode_attention_flops(model, batch, context, assumptions)
        + decode_output_flops(model, batch, assumptions)
    )


@equation(batch="1", context="1")
def absorbed_decode_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """One layer of absorbed attention for one new token: equations 25 to 28, 33 to 36 and 38.

    FLOP of one layer.

    Examples
    --------
    >>> from inferlib.papers.mazurek2025 import model_of
    >>> model = model_of("DeepSeek V3")
    >>> [absorbed_decode_flops(model, 1, s) - absorbed_decode_flops(model, 1, 0) for s in (1, 2)]
    [212992.0, 425984.0]
    """
    return (
        sum(matrix(model, batch, assumptions) for matrix in _NEW_TOKEN)
        + decode_absorbed_key_flops(model, batch, assumptions)
        + decode_absorbed_score_flops(model, batch, context, assumptions)
        + decode_absorbed_value_flops(model, batch, context, assumptions)
        + decode_absorbed_output_flops(model, batch, assumptions)
    )


@equation(batch="1", context="1")
def vanilla_prefill_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """One layer of vanilla attention for a prompt: equations 1 to 7, 15, 16 and 18."""
    prompt = model, batch, context, assumptions
    cores = value_up_flops, score_flops, value_flops, output_flops
    return sum(part(*prompt) for part in (*_PROMPT, *cores))


@equation(batch="1", context="1")
def absorbed_prefill_flops(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """One layer of absorbed attention for a prompt: equations 20 to 23, 29 to 32 and 37."""
    prompt = model, batch, context, assumptions
    cores = absorbed_score_flops, absorbed_value_flops, absorbed_output_flops
    return sum(part(*prompt) for part in (*_PROMPT, *cores))


# --- Experts (39 to 45) ----------------------------------------------------------------------------------


@equation("39", also={"40": {}, "41": {}}, batch="1")
def expert_matrix_flops(model: Model, batch, assumptions: Assumptions = DEFAULT):
    """One of the three matrices of an expert, for a batch of tokens."""
    return batch * assumptions.flop_per_weight * model.d_model * model.d_expert


@equation("43", batch="1")
def expert_flops(model: Model, batch, assumptions: Assumptions = DEFAULT):
    """All three matrices of an expert, for a batch of tokens."""
    return 3 * expert_matrix_flops(model, batch, assumptions)


@equation("44", batch="1")
def router_flops(model: Model, batch, assumptions: Assumptions = DEFAULT):
    """The router of one layer, for a batch of tokens."""
    return assumptions.flop_per_weight * batch * model.d_model * model.n_routed


@equation("45", batch="1")
def moe_flops(model: Model, batch, assumptions: Assumptions = DEFAULT):
    """All experts and the router of one layer.

    The source multiplies by all shared experts here and by those used in the next form; both are one.
    """
    experts = expert_flops(model, batch, assumptions) * (model.n_shared + model.n_active)
    return experts + router_flops(model, batch, assumptions)


@equation(batch="1")
def moe_flops_on_gpu(model: Model, deployment: Deployment, batch, assumptions: Assumptions = DEFAULT):
    """Experts and router of one layer on the fullest GPU (section 3.2.4, without a number)."""
    load = model.used / (deployment.balancedness * deployment.n_gpus)
    experts = expert_flops(model, batch, assumptions) * load
    return experts + router_flops(model, batch, assumptions) / deployment.n_gpus


@equation(batch="1")
def dense_flops(model: Model, batch, assumptions: Assumptions = DEFAULT):
    """The dense layers and the head for a batch of tokens: the source has no such term."""
    dense = model.n_dense_layers * 3 * model.d_dense
    return assumptions.flop_per_weight * batch * model.d_model * (dense + model.vocab_size)
