"""Mazurek & Schreiber 2025, section 3.1: what is read from memory in one pass.

Batches are sequences decoded together. ``batch`` is the source's global B where a function takes a
deployment; elsewhere it is whatever number of sequences is meant (a GPU's own share is B over the GPUs).
"""

from functools import partial

from inferlib.equation import equation
from inferlib.papers.mazurek2025.equations.experts import loaded_experts
from inferlib.papers.mazurek2025.records import DEFAULT, GPU, Assumptions, Deployment, Model

equation = partial(equation, "mazurek2025")


# --- Attention, section 3.1.1 ----------------------------------------------------------------------------


@equation(unit="B")
def query_down_weights(model: Model, assumptions: Assumptions = DEFAULT):
    """Bytes of W^DQ, from the residual stream to the latent of queries."""
    return assumptions.weight_bytes * model.q_rank * model.d_model


@equation(unit="B")
def query_up_weights(model: Model, assumptions: Assumptions = DEFAULT):
    """Bytes of W^UQ, from the latent of queries to all heads."""
    return assumptions.weight_bytes * model.nope_dim * model.n_heads * model.q_rank


@equation(unit="B")
def query_rope_weights(model: Model, assumptions: Assumptions = DEFAULT):
    """Bytes of W^QR, from the latent of queries to the rotary part of all heads."""
    return assumptions.weight_bytes * model.rope_dim * model.n_heads * model.q_rank


@equation(unit="B")
def latent_down_weights(model: Model, assumptions: Assumptions = DEFAULT):
    """Bytes of W^DKV, from the residual stream to the latent of keys and values."""
    return assumptions.weight_bytes * model.kv_rank * model.d_model


@equation(unit="B")
def key_up_weights(model: Model, assumptions: Assumptions = DEFAULT):
    """Bytes of W^UK, from the latent to the keys of all heads."""
    return assumptions.weight_bytes * model.nope_dim * model.n_heads * model.kv_rank


@equation(unit="B")
def value_up_weights(model: Model, assumptions: Assumptions = DEFAULT):
    """Bytes of W^UV, from the latent to the values of all heads."""
    return assumptions.weight_bytes * model.value_dim * model.n_heads * model.kv_rank


@equation(unit="B")
def key_rope_weights(model: Model, assumptions: Assumptions = DEFAULT):
    """Bytes of W^KR, from the residual stream to the rotary key that all heads share."""
    return assumptions.weight_bytes * model.rope_dim * model.d_model


@equation(unit="B")
def output_weights(model: Model, assumptions: Assumptions = DEFAULT):
    """Bytes of W^O, from all heads back to the residual stream."""
    return assumptions.weight_bytes * model.d_model * model.value_dim * model.n_heads


ATTENTION = {
    "W^DQ": query_down_weights,
    "W^UQ": query_up_weights,
    "W^QR": query_rope_weights,
    "W^DKV": latent_down_weights,
    "W^UK": key_up_weights,
    "W^UV": value_up_weights,
    "W^KR": key_rope_weights,
    "W^O": output_weights,
}


@equation(unit="B")
def layer_attention_weights(model: Model, assumptions: Assumptions = DEFAULT):
    """Bytes of the attention weights of one layer: the sum of the eight matrices.

    Examples
    --------
    >>> from inferlib.papers.mazurek2025 import model_of
    >>> layer_attention_weights(model_of("DeepSeek V3"))
    187105280.0
    """
    return sum(matrix(model, assumptions) for matrix in ATTENTION.values())


@equation(unit="B")
def attention_weights(model: Model, assumptions: Assumptions = DEFAULT):
    """Bytes of all attention weights: every GPU holds and reads them all.

    Section 3.1.1.
    """
    return model.n_layers * layer_attention_weights(model, assumptions)


@equation(unit="B")
def cache_per_token(model: Model, assumptions: Assumptions = DEFAULT):
    """Bytes that one token of context keeps in the cache: a latent and a rotary key in each layer.

    Examples
    --------
    >>> from inferlib.papers.mazurek2025 import model_of
    >>> cache_per_token(model_of("DeepSeek V3"))
    70272.0
    """
    return assumptions.cache_value_bytes * (model.kv_rank + model.rope_dim) * model.n_layers


@equation(unit="B", batch="1", context="1")
def cache_traffic(model: Model, batch, context, assumptions: Assumptions = DEFAULT):
    """Bytes of cache read and written to decode one token for each sequence.

    Section 3.1.1.
    """
    return batch * (context + 1) * cache_per_token(model, assumptions)


@equation(unit="B", batch="1")
def attention_activations(model: Model, batch, assumptions: Assumptions = DEFAULT):
    """Bytes of activations into and out of attention: one vector of the residual stream a layer, both ways.

    Section 3.1.1.
    """
    return assumptions.attention_activation_bytes * batch * model.d_model * model.n_layers


@equation(unit="B", batch="1", context="1")
def attention_traffic(
    model: Model, deployment: Deployment, batch, context, assumptions: Assumptions = DEFAULT
):
    """Bytes that one GPU moves for attention: all weights, and cache and activations of its sequences.

    Section 3.1.1 prints the parts, not the sum.
    """
    own = batch / deployment.n_gpus
    activations = attention_activations(model, own, assumptions)
    return (
        attention_weights(model, assumptions) + cache_traffic(model, own, context, assumptions) + activations
    )


# --- Experts, section 3.1.2 ------------------------------------------------------------------------------


@equation(unit="B")
def expert_matrix(model: Model, assumptions: Assumptions = DEFAULT):
    """Bytes of one of the three matrices of an expert: W_1, W_2 and the gate are of equal size."""
    return assumptions.weight_bytes * model.d_expert * model.d_model


@equation(unit="B")
def expert_weights(model: Model, assumptions: Assumptions = DEFAULT):
    """Bytes of one expert: three matrices."""
    return 3 * expert_matrix(model, assumptions)


@equation(unit="B")
def router_weights(model: Model, assumptions: Assumptions = DEFAULT):
    """Bytes of the router of one layer."""
    return assumptions.weight_bytes * model.d_model * model.n_routed


@equation(unit="B", experts="1")
def experts_on_gpu(model: Model, experts, assumptions: Assumptions = DEFAULT):
    """Bytes of so many experts in every expert layer, each layer with its whole router.

    Section 3.1.2.
    """
    layer = expert_weights(model, assumptions) * experts + router_weights(model, assumptions)
    return model.n_expert_layers * layer


@equation(unit="B")
def dense_matrix(model: Model, assumptions: Assumptions = DEFAULT):
    """Bytes of one of the three matrices of a dense feed-forward block."""
    return assumptions.weight_bytes * model.d_dense * model.d_model


@equation(unit="B")
def dense_layer_weights(model: Model, assumptions: Assumptions = DEFAULT):
    """Bytes of the feed-forward block of one dense layer."""
    return 3 * dense_matrix(model, assumptions)


@equation(unit="B")
def dense_weights(model: Model, assumptions: Assumptions = DEFAULT):
    """Bytes of the feed-forward blocks of all dense layers, which every GPU holds."""
    return model.n_dense_layers * dense_layer_weights(model, assumptions)


@equation(unit="B")
def embedding_weights(model: Model, assumptions: Assumptions = DEFAULT):
    """Bytes of both matrices over the vocabulary, which every GPU holds (section 3.1.3)."""
    return assumptions.weight_bytes * 2 * model.vocab_size * model.d_model


@equation(unit="B", batch="1")
def all_expert_activations(model: Model, batch, assumptions: Assumptions = DEFAULT):
    """Bytes of one vector a layer for each sequence, dispatched in FP8 and combined in BF16."""
    both = assumptions.dispatch_bytes + assumptions.combine_bytes
    return both * batch * model.d_model * model.n_layers


@equation(unit="B", batch="1")
def expert_activations(model: Model, deployment: Deployment, batch, assumptions: Assumptions = DEFAULT):
    """Bytes of activations that the fullest GPU's experts read and write.

    Section 3.1.2.
    """
    both = assumptions.dispatch_bytes + assumptions.combine_bytes
    layers = model.n_layers if assumptions.dense_layers_send else model.n_expert_layers
    load = model.used / (deployment.balancedness * deployment.n_gpus)
    return both * batch * model.d_model * layers * load


@equation(unit="B", batch="1")
def expert_traffic(model: Model, deployment: Deployment, batch, assumptions: Assumptions = DEFAULT):
    """Bytes that the fullest GPU moves for everything that is not attention.

    Section 3.1.2 and 3.1.3 print the parts; that dense layers and embeddings belong here is our reading (it
    moves nothing but the name of the term).
    """
    experts = experts_on_gpu(model, loaded_experts(model, deployment, batch, assumptions), assumptions)
    activations = expert_activations(model, deployment, batch, assumptions)
    return experts + dense_weights(model, assumptions) + embedding_weights(model, assumptions) + activations


@equation(unit="B", experts="1")
def weights_on_gpu(model: Model, experts, assumptions: Assumptions = DEFAULT):
    """Bytes of all weights that one GPU holds, with so many experts in every expert layer."""
    rest = dense_weights(model, assumptions) + embedding_weights(model, assumptions)
    return attention_weights(model, assumptions) + experts_on_gpu(model, experts, assumptions) + rest


@equation(unit="1", context="1 > 0", experts="1")
def largest_own_batch(model: Model, gpu: GPU, context, experts, assumptions: Assumptions = DEFAULT):
    """Sequences whose cache fits beside the weights on one GPU (not in the source, which leaves it open).

    Not rounded; below zero where the weights alone do not fit.
    """
    free = gpu.memory_capacity - weights_on_gpu(model, experts, assumptions)
    return free / (context * cache_per_token(model, assumptions))
