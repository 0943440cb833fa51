"""Mazurek & Schreiber 2025, sections 3.1 to 3.5: bytes, FLOP, traffic and time of one pass, equations 1 to 51.

``batch`` is the source's global B where a function takes a deployment, elsewhere whatever number of sequences is
meant (a GPU's own share is B over the GPUs). Prefill reads a prompt of ``context`` tokens; decode makes one token
for each sequence, with ``context`` tokens behind it.
"""

from functools import partial

from inferlib.equation import equation
from inferlib.ops import ceil, log, maximum, minimum, sqrt
from inferlib.papers.mazurek2025.records import GPU, PRINTED, Deployment, Model

_RECORDS = {"model": Model, "gpu": GPU, "deployment": Deployment}
equation = partial(equation, "mazurek2025", records=_RECORDS)


# --- The matrices of attention: bytes (3.1.1) and FLOP (3.2, equations 1 to 38) ---------------------------

MATRICES = {  # name: symbol, size, and the spaces that it maps from and to
    "query_down": ("W^DQ", lambda m: m.d_model * m.q_rank, "the residual stream to the latent of queries"),
    "query_up": ("W^UQ", lambda m: m.q_rank * m.n_heads * m.nope_dim, "that latent to the queries of all heads"),
    "query_rope": ("W^QR", lambda m: m.q_rank * m.n_heads * m.rope_dim, "that latent to their rotary part"),
    "latent_down": ("W^DKV", lambda m: m.d_model * m.kv_rank, "the residual stream to the latent of keys and values"),
    "key_up": ("W^UK", lambda m: m.kv_rank * m.n_heads * m.nope_dim, "that latent to the keys of all heads"),
    "value_up": ("W^UV", lambda m: m.kv_rank * m.n_heads * m.value_dim, "that latent to the values of all heads"),
    "key_rope": ("W^KR", lambda m: m.d_model * m.rope_dim, "the residual stream to the rotary key of all heads"),
    "output": ("W^O", lambda m: m.n_heads * m.value_dim * m.d_model, "all heads back to the residual stream"),
}  # fmt: skip
# multiplications of one token (or of a pair of tokens): those of each matrix, and of what is no matrix
_WIDTH = {name: size for name, (_, size, _) in MATRICES.items()} | {
    "score": lambda m: m.n_heads * (m.nope_dim + m.rope_dim),
    "value": lambda m: m.n_heads * m.value_dim,
    # absorbed: a head's query and its result are as wide as the latent
    "absorbed_score": lambda m: m.n_heads * (m.kv_rank + m.rope_dim),
    "absorbed_value": lambda m: m.n_heads * m.kv_rank,
    "absorbed_output": lambda m: m.n_heads * (m.value_dim * m.d_model + m.value_dim * m.kv_rank),
    "expert_matrix": lambda m: m.d_model * m.d_expert,
    "router": lambda m: m.d_model * m.n_routed,
}
# tokens or pairs of tokens that are multiplied, and the power of S in their number
_TOKENS = {"B S^2": 2, "B S": 1, "B": 0}

FLOPS = {  # name: printed numbers, tokens, width, and the result
    "query_down": ("1 20", "B S", "query_down", "The latent of queries"),
    "query_up": ("2 29", "B S", "query_up", "Queries of all heads"),
    "query_rope": ("3 21", "B S", "query_rope", "Rotary part of the queries"),
    "latent_down": ("4 22", "B S", "latent_down", "The latent of keys and values"),
    # vanilla decode makes the keys of the whole context (12); absorbed, W^UK meets the queries of a prompt (30)
    "key_up": ("5 12 30", "B S", "key_up", "Keys of all heads, from the latent"),
    "key_rope": ("6 23", "B S", "key_rope", "The rotary key that all heads share"),
    "value_up": ("7 14", "B S", "value_up", "Values of all heads, from the latent"),
    "decode_query_down": ("8 25", "B", "query_down", "Equation 1 for one token of each sequence"),
    "decode_query_up": ("9 33", "B", "query_up", "Equation 2 for one token of each sequence"),
    "decode_query_rope": ("10 26", "B", "query_rope", "Equation 3 for one token of each sequence"),
    "decode_latent_down": ("11 27", "B", "latent_down", "Equation 4 for one token of each sequence"),
    "decode_key_rope": ("13 28", "B", "key_rope", "Equation 6 for one token of each sequence"),
    # every query with every key: the source halves nothing for the causal mask
    "score": ("15", "B S^2", "score", "Scores of a prompt"),
    "value": ("16", "B S^2", "value", "Values of a prompt, weighted by the scores"),
    "output": ("18", "B S", "output", "Output projection of a prompt"),
    "decode_output": ("19", "B", "output", "Output projection of one new token"),
    "absorbed_score": ("31", "B S^2", "absorbed_score", "Scores of a prompt, absorbed"),
    "absorbed_value": ("32", "B S^2", "absorbed_value", "Latents of a prompt, weighted by the scores"),
    "decode_absorbed_key": ("34", "B", "key_up", "W^UK applied to the query of one new token"),
    "decode_absorbed_score": ("35", "B S", "absorbed_score", "Scores of one new token"),
    "decode_absorbed_value": ("36", "B S", "absorbed_value", "Latents weighted by those scores"),
    "absorbed_output": (
        "37", "B S", "absorbed_output",
        "Output projection of a prompt with W^UV in it: latent to values to the residual stream",
    ),
    # our copy of the source lost a d and a plus sign here
    "decode_absorbed_output": ("38", "B", "absorbed_output", "The same for one new token"),
    "expert_matrix": ("39 40 41", "B", "expert_matrix", "One of the three matrices of an expert"),
    "router": ("44", "B", "router", "The router of one layer"),
}  # fmt: skip
# Printed with one FLOP for a product where all others have two; `Assumptions.corrected()` puts the factor in.
_ONE_FLOP = {"value", "absorbed_value", "decode_absorbed_value"}


def _weights(name, symbol, size, meaning):
    """Register the bytes of one line of ``MATRICES``."""

    def weights(model, assumptions=PRINTED):
        return assumptions.weight_bytes * size(model)

    weights.__name__ = f"{name}_weights"
    weights.__doc__ = f"Bytes of {symbol}, from {meaning}."
    return equation(unit="B")(weights)


def _flops(name, numbers, tokens, width, meaning):
    """Register the FLOP of one line of ``FLOPS`` under all of its printed numbers."""
    flop = "value_flop" if name in _ONE_FLOP else "flop_per_weight"
    power = _TOKENS[tokens]
    products = _WIDTH[width]

    def own(model, batch, assumptions=PRINTED):
        return getattr(assumptions, flop) * batch * products(model)

    def over(model, batch, context, assumptions=PRINTED):
        return getattr(assumptions, flop) * batch * context**power * products(model)

    function = over if power else own
    function.__name__, (number, *others) = f"{name}_flops", numbers.split()
    function.__doc__ = f"{meaning}: {'2 ' if flop == 'flop_per_weight' else ''}{tokens} times its width."
    units = {"batch": "1"} | ({"context": "1"} if power else {})
    return equation(number, unit="FLOP", also={other: {} for other in others}, **units)(function)


WEIGHTS = {name: _weights(name, *line) for name, line in MATRICES.items()}
COUNTED = {name: _flops(name, *line) for name, line in FLOPS.items()}
# each becomes a name in this module: query_down_weights, ..., query_down_flops, ...
globals().update({made.equation.name: made for table in (WEIGHTS, COUNTED) for made in table.values()})
ATTENTION = {MATRICES[name][0]: function for name, function in WEIGHTS.items()}


@equation(unit="B")
def layer_attention_weights(model, assumptions=PRINTED):
    """Attention weights of one layer: the sum of the eight matrices."""
    return sum(matrix(model, assumptions) for matrix in WEIGHTS.values())


@equation(unit="B")
def attention_weights(model, assumptions=PRINTED):
    """All attention weights, which every GPU holds and reads: L layers (3.1.1)."""
    return model.n_layers * layer_attention_weights(model, assumptions)


@equation(unit="B")
def cache_per_token(model, assumptions=PRINTED):
    """Bytes that one token of context keeps in the cache: 2 (d_c + d_h^R) L, a latent and a rotary key a layer.

    Examples
    --------
    >>> from inferlib.papers.mazurek2025 import load_model
    >>> cache_per_token(load_model("DeepSeek V3"))
    70272.0
    """
    return assumptions.cache_value_bytes * (model.kv_rank + model.rope_dim) * model.n_layers


@equation(unit="B")
def cache_traffic(model, batch, context, assumptions=PRINTED):
    """Cache read and written to decode one token of each sequence: B (S + 1) tokens of it (3.1.1)."""
    return batch * (context + 1) * cache_per_token(model, assumptions)


@equation(unit="B")
def attention_activations(model, batch, assumptions=PRINTED):
    """Activations into and out of attention: 2 B d L (3.1.1)."""
    return assumptions.attention_activation_bytes * batch * model.d_model * model.n_layers


@equation(unit="B")
def attention_traffic(model, deployment, batch, context, assumptions=PRINTED):
    """Bytes that one GPU moves for attention: all weights, and its own sequences' cache and activations (3.1.1)."""
    own = batch / deployment.n_gpus
    activations = attention_activations(model, own, assumptions)
    weights = attention_weights(model, assumptions)
    cache = cache_traffic(model, own, context, assumptions)
    return weights + cache + activations


@equation("17", unit="FLOP")
def decode_attention_flops(model, batch, context, assumptions=PRINTED):
    """Scores and values of one new token, vanilla: B n_h S (2 (d_h + d_h^R) + d_h)."""
    scores = assumptions.flop_per_weight * (model.nope_dim + model.rope_dim)
    return batch * model.n_heads * context * (scores + assumptions.value_flop * model.value_dim)


def _added(names, model, batch, context, assumptions):
    """The FLOP of several lines of ``FLOPS``."""
    return sum(
        COUNTED[name](model, batch, *([context] if _TOKENS[FLOPS[name][1]] else []), assumptions)
        for name in names.split()
    )


# what both variants compute for each new token and for every token of a prompt
_NEW_TOKEN = (
    "decode_query_down decode_query_up decode_query_rope decode_latent_down decode_key_rope "  # 8 to 13
)
_PROMPT = "query_down query_up query_rope latent_down key_up key_rope "  # 1 to 6


@equation(unit="FLOP")
def vanilla_decode_flops(model, batch, context, assumptions=PRINTED):
    """One layer of vanilla attention for one new token of each sequence: equations 8 to 14, 17 and 19."""
    linear = _added(_NEW_TOKEN + "key_up value_up decode_output", model, batch, context, assumptions)
    return linear + decode_attention_flops(model, batch, context, assumptions)


@equation(unit="FLOP")
def absorbed_decode_flops(model, batch, context, assumptions=PRINTED):
    """One layer of absorbed attention for one new token: equations 25 to 28, 33 to 36 and 38."""
    absorbed = "decode_absorbed_key decode_absorbed_score decode_absorbed_value decode_absorbed_output"
    return _added(_NEW_TOKEN + absorbed, model, batch, context, assumptions)


@equation(unit="FLOP")
def vanilla_prefill_flops(model, batch, context, assumptions=PRINTED):
    """One layer of vanilla attention for a prompt: equations 1 to 7, 15, 16 and 18."""
    return _added(_PROMPT + "value_up score value output", model, batch, context, assumptions)


@equation(unit="FLOP")
def absorbed_prefill_flops(model, batch, context, assumptions=PRINTED):
    """One layer of absorbed attention for a prompt: equations 20 to 23, 29 to 32 and 37."""
    absorbed = "absorbed_score absorbed_value absorbed_output"
    return _added(_PROMPT + absorbed, model, batch, context, assumptions)


# --- Experts: which a batch wakes, and how many sit on a GPU (3.1.2, 3.4) ---------------------------------


@equation()
def selection_probability(model):
    """Probability that a token goes to a given routed expert, all being equally likely: k / M."""
    return minimum(model.n_active / model.n_routed, 1)  # no model can exceed this


@equation()
def never_selected(model, batch):
    """Probability that no token of a batch goes to a given routed expert: (1 - k / M)^N."""
    return (1 - selection_probability(model)) ** batch


@equation()
def active_experts(model, batch):
    """Expected number of distinct routed experts that a batch reaches in a layer: E[U] = M (1 - (1 - k / M)^N).

    Examples
    --------
    >>> from inferlib.papers.mazurek2025 import load_model
    >>> active_experts(load_model("DeepSeek V3"), 2)
    15.75
    """
    return model.n_routed * (1 - never_selected(model, batch))


@equation()
def fullest_gpu_experts(deployment, active):
    """Active routed experts on the GPU that has most, as balls into bins: a / n + sqrt(2 a log(n) / n).

    The asymptotic form of section 3.1.2. It has no limit: with all experts active it exceeds what a GPU holds.
    """
    mean = active / deployment.n_gpus
    return mean + sqrt(2 * mean * log(deployment.n_gpus))


@equation()
def fullest_gpu_experts_placed(model, deployment, active):
    """The same for experts dealt out evenly (not in the source): the share of idle ones comes under the root.

    Drawn without replacement, none is hit twice, so the variance is that of balls into bins times that share.
    """
    mean = active / deployment.n_gpus
    idle = maximum(1 - active / model.n_routed, 0)
    return mean + sqrt(2 * mean * idle * log(deployment.n_gpus))


@equation()
def held_experts(model, deployment):
    """Experts of one layer that a GPU holds: shared, routed and extra ones over the GPUs, rounded up (3.1.2).

    Examples
    --------
    >>> from inferlib.papers.mazurek2025 import load_model, setup
    >>> held_experts(load_model("DeepSeek V3"), setup("9x8 H100").deployment)
    5
    """
    experts = model.n_shared + model.n_routed + deployment.extra_experts
    return ceil(experts / deployment.n_gpus)


@equation()
def loaded_experts(model, deployment, batch, assumptions=PRINTED):
    """Experts of one layer that the fullest GPU reads, the shared one on top of the routed.

    The source prints how many experts a GPU holds and how many a batch uses there, but not how to combine the two.
    Taking the smaller is our reading; without it (``Assumptions.uncapped()``) the model fits SGLang's H100s at their
    true length.
    """
    active = active_experts(model, batch)
    if assumptions.without_replacement:
        routed = fullest_gpu_experts_placed(model, deployment, active)
    else:
        routed = fullest_gpu_experts(deployment, active)
    fullest = routed + model.n_shared
    return minimum(held_experts(model, deployment), fullest) if assumptions.capped else fullest


@equation(largest="1 > 0")
def expert_balancedness(average, largest):
    """Balancedness of one layer: requests to the average GPU over those to the fullest (3.4)."""
    return average / largest


@equation()
def imbalanced_load(deployment, load):
    """Load of the fullest GPU where the average GPU has ``load``: over the balancedness (3.4)."""
    return load / deployment.balancedness


@equation(n_hosts="1 > 0")
def shared_expert_load(model, n_hosts):
    """Activations of the GPU with the shared expert over the mean, as the fraction of 3.4 has it.

    Its numerator gives that GPU a share of all nine activations on top of the shared expert's own.
    """
    share = model.used / n_hosts
    return (1 + share) / share


@equation(n_hosts="1 > 0")
def shared_expert_load_corrected(model, n_hosts):
    """The same with the routed activations only on top of the shared expert's."""
    return (1 + model.n_active / n_hosts) / (model.used / n_hosts)


# --- Experts, dense layers, embeddings: bytes (3.1.2, 3.1.3) and FLOP (3.2.4) -----------------------------


@equation(unit="B")
def expert_matrix(model, assumptions=PRINTED):
    """One of the three matrices of an expert: d_moe d; W_1, W_2 and the gate are of equal size."""
    return assumptions.weight_bytes * model.d_expert * model.d_model


@equation(unit="B")
def expert_weights(model, assumptions=PRINTED):
    """One expert: three matrices."""
    return 3 * expert_matrix(model, assumptions)


@equation(unit="B")
def router_weights(model, assumptions=PRINTED):
    """The router of one layer: d n_r."""
    return assumptions.weight_bytes * model.d_model * model.n_routed


@equation(unit="B")
def experts_on_gpu(model, experts, assumptions=PRINTED):
    """Weights of ``experts`` experts in every expert layer, each layer with its whole router (3.1.2)."""
    layer = expert_weights(model, assumptions) * experts + router_weights(model, assumptions)
    return model.n_expert_layers * layer


@equation(unit="B")
def dense_matrix(model, assumptions=PRINTED):
    """One of the three matrices of a dense feed-forward block: d_dense d."""
    return assumptions.weight_bytes * model.d_dense * model.d_model


@equation(unit="B")
def dense_layer_weights(model, assumptions=PRINTED):
    """The feed-forward block of one dense layer: three matrices."""
    return 3 * dense_matrix(model, assumptions)


@equation(unit="B")
def dense_weights(model, assumptions=PRINTED):
    """The feed-forward blocks of all dense layers, which every GPU holds."""
    return model.n_dense_layers * dense_layer_weights(model, assumptions)


@equation(unit="B")
def embedding_weights(model, assumptions=PRINTED):
    """Both matrices over the vocabulary, which every GPU holds: 2 V d (3.1.3)."""
    return assumptions.weight_bytes * 2 * model.vocab_size * model.d_model


def _vector_sent(model, assumptions):
    """Bytes of one token's vector in all layers that send: dispatched and combined (1 + 2) d L."""
    layers = model.n_layers if assumptions.dense_layers_send else model.n_expert_layers
    return (assumptions.dispatch_bytes + assumptions.combine_bytes) * model.d_model * layers


@equation(unit="B")
def all_expert_activations(model, batch, assumptions=PRINTED):
    """One vector a layer for each sequence, read in FP8 and written in BF16: (1 + 2) B d L (3.1.2)."""
    both = assumptions.dispatch_bytes + assumptions.combine_bytes
    return both * batch * model.d_model * model.n_layers


@equation(unit="B")
def expert_activations(model, deployment, batch, assumptions=PRINTED):
    """Activations that the fullest GPU's experts read and write: those of all, over beta n, times the experts used."""
    load = model.used / (deployment.balancedness * deployment.n_gpus)
    return batch * _vector_sent(model, assumptions) * load


@equation(unit="B")
def expert_traffic(model, deployment, batch, assumptions=PRINTED):
    """Bytes that the fullest GPU moves for everything but attention.

    Sections 3.1.2 and 3.1.3 print the parts; that dense layers and embeddings belong here is our reading.
    """
    experts = experts_on_gpu(model, loaded_experts(model, deployment, batch, assumptions), assumptions)
    activations = expert_activations(model, deployment, batch, assumptions)
    return experts + dense_weights(model, assumptions) + embedding_weights(model, assumptions) + activations


@equation(unit="B")
def weights_on_gpu(model, experts, assumptions=PRINTED):
    """All weights that one GPU holds, with ``experts`` experts in every expert layer."""
    rest = dense_weights(model, assumptions) + embedding_weights(model, assumptions)
    return attention_weights(model, assumptions) + experts_on_gpu(model, experts, assumptions) + rest


@equation(context="1 > 0")
def largest_own_batch(model, gpu, context, experts, assumptions=PRINTED):
    """Sequences whose cache fits beside the weights on one GPU, not rounded; below zero where the weights do not.

    Not in the source, which leaves it open (end of 3.5).
    """
    free = gpu.memory_capacity - weights_on_gpu(model, experts, assumptions)
    return free / (context * cache_per_token(model, assumptions))


@equation("43", unit="FLOP")
def expert_flops(model, batch, assumptions=PRINTED):
    """All three matrices of an expert: 3 x 2 B d d_moe."""
    return 3 * COUNTED["expert_matrix"](model, batch, assumptions)


@equation("45", unit="FLOP")
def moe_flops(model, batch, assumptions=PRINTED):
    """All experts and the router of one layer."""
    # all shared experts here, those used in the next equation: both are one
    experts = expert_flops(model, batch, assumptions) * (model.n_shared + model.n_active)
    return experts + COUNTED["router"](model, batch, assumptions)


@equation(unit="FLOP")
def moe_flops_on_gpu(model, deployment, batch, assumptions=PRINTED):
    """Experts and router of one layer on the fullest GPU (3.2.4)."""
    load = model.used / (deployment.balancedness * deployment.n_gpus)
    experts = expert_flops(model, batch, assumptions) * load
    return experts + COUNTED["router"](model, batch, assumptions) / deployment.n_gpus


@equation(unit="FLOP")
def dense_flops(model, batch, assumptions=PRINTED):
    """The dense layers and the head for a batch of tokens: the source has no such term."""
    dense = model.n_dense_layers * 3 * model.d_dense
    return assumptions.flop_per_weight * batch * model.d_model * (dense + model.vocab_size)


# --- The network (3.3) -----------------------------------------------------------------------------------


@equation()
def messages(model, assumptions=PRINTED):
    """Copies of a token's vector that a layer sends: one for every expert it goes to."""
    return model.used if assumptions.shared_sent else model.n_active


@equation(unit="B")
def tokens_traffic(model, tokens, assumptions=PRINTED):
    """Traffic of some tokens in one pass, dispatched and combined in every layer that sends: (1 + 2) d L copies."""
    return tokens * messages(model, assumptions) * _vector_sent(model, assumptions)


@equation(unit="B")
def link_traffic(model, deployment, batch, assumptions=PRINTED):
    """Bytes over the link of one GPU in one pass, experts balanced: comm amount (3.3.1)."""
    micro_batches = 2  # micro-batches of half the size, so the halves cancel
    half = batch / (micro_batches * deployment.n_gpus)
    return micro_batches * tokens_traffic(model, half, assumptions)


@equation(unit="B")
def fullest_link_traffic(model, deployment, batch, assumptions=PRINTED):
    """Bytes over the link of the fullest GPU in one pass: over the balancedness (3.3.3)."""
    return link_traffic(model, deployment, batch, assumptions) / deployment.balancedness


@equation(unit="B")
def two_experts_traffic(model, batch, assumptions=PRINTED):
    """Bytes over the link of the GPU that hosts two of nine experts, each used by every token (3.3.3)."""
    return 2 * tokens_traffic(model, batch, assumptions) / messages(model, assumptions)


@equation(unit="B/s", own="B/s", bottleneck="B/s", sharing="1 > 0")
def effective_bandwidth(own, bottleneck, sharing):
    """Bandwidth of one GPU: its own link, or its share of a narrower one (3.3.1)."""
    return minimum(own, bottleneck / sharing)


@equation(unit="s", traffic="B", bandwidth="B/s > 0")
def uniform_network_time(traffic, bandwidth):
    """Time on a network whose links are all equal (3.3.1)."""
    return traffic / bandwidth


@equation(unit="s/B")
def slowest_link(gpu, deployment):
    """Seconds for a byte of one GPU's traffic, inside and between nodes at the same time (3.3.2)."""
    between = (deployment.n_nodes - 1) / deployment.n_nodes / gpu.inter_bandwidth
    return maximum(between, 1 / deployment.n_nodes / gpu.intra_bandwidth)


@equation(unit="s")
def network_time(model, gpu, deployment, batch, assumptions=PRINTED):
    """Time of all traffic of one pass on the slowest link, with its inefficiency (3.3.3, 3.5)."""
    traffic = fullest_link_traffic(model, deployment, batch, assumptions)
    return assumptions.network_inefficiency * traffic * slowest_link(gpu, deployment)


@equation(unit="1/s")
def network_ceiling(model, gpu, deployment, assumptions=PRINTED):
    """Most tokens per second and GPU that the network lets through, whatever the batch (from equation 49)."""
    return 1 / network_time(model, gpu, deployment, deployment.n_gpus, assumptions)


# --- From the parts to the whole (3.5): equations 46 to 51, and the inefficiencies ------------------------


@equation("46", unit="s", t_memory="s", t_arithmetic="s")
def attention_bottleneck(t_memory, t_arithmetic):
    """Time of attention: memory and arithmetic overlap."""
    return maximum(t_memory, t_arithmetic)


@equation("47", unit="s", t_memory="s", t_arithmetic="s")
def expert_bottleneck(t_memory, t_arithmetic):
    """Time of the experts: memory and arithmetic overlap. (The number 46 stands beside this line too.)"""
    return maximum(t_memory, t_arithmetic)


@equation("48", unit="s", t_attention="s", t_experts="s", t_network="s")
def serial_time(t_attention, t_experts, t_network):
    """One pass without two-batch overlap: attention, experts and network one after the other."""
    return t_attention + t_experts + t_network


@equation("49", unit="s", t_attention="s", t_experts="s", t_network="s")
def overlapped_time(t_attention, t_experts, t_network):
    """One pass with two-batch overlap: each half computes while the other communicates."""
    return 2 * maximum(t_attention + t_experts, t_network)


@equation(unit="s", t_attention="s", t_experts="s", t_network="s")
def section_3_time(t_attention, t_experts, t_network):
    """What section 3 prints for a pass with overlap: without the factor 2 and the halved batch of equation 49."""
    return maximum(t_attention + t_experts, t_network)


@equation("50", unit="1/s", t_total="s > 0")
def request_speed(t_total):
    """Tokens per second of one request, from the seconds of one pass."""
    return 1 / t_total


@equation("51", unit="1/s", t_total="s > 0")
def global_throughput(t_total, batch):
    """Tokens per second of all requests, from the seconds of one pass and the global batch."""
    return batch / t_total


@equation(unit="s")
def attention_memory_time(model, gpu, deployment, batch, context, assumptions=PRINTED):
    """Time that attention's memory traffic takes on one GPU."""
    traffic = attention_traffic(model, deployment, batch, context, assumptions)
    return assumptions.memory_inefficiency * traffic / gpu.memory_bandwidth


@equation(unit="s")
def attention_arithmetic_time(model, gpu, deployment, batch, context, assumptions=PRINTED):
    """Time that absorbed attention's arithmetic takes on one GPU."""
    own = batch / deployment.n_gpus
    work = model.n_layers * absorbed_decode_flops(model, own, context, assumptions)
    loss = assumptions.attention_inefficiency * assumptions.arithmetic_penalty
    return loss * work / gpu.bf16_flops


@equation(unit="s")
def attention_time(model, gpu, deployment, batch, context, assumptions=PRINTED):
    """Time of all attention of a pass: the longer of its memory and its arithmetic."""
    at = model, gpu, deployment, batch, context, assumptions
    return attention_bottleneck(attention_memory_time(*at), attention_arithmetic_time(*at))


@equation(unit="s")
def expert_memory_time(model, gpu, deployment, batch, assumptions=PRINTED):
    """Time that the memory traffic of experts, dense layers and embeddings takes on the fullest GPU."""
    traffic = expert_traffic(model, deployment, batch, assumptions)
    return assumptions.memory_inefficiency * traffic / gpu.memory_bandwidth


@equation(unit="s")
def expert_arithmetic_time(model, gpu, deployment, batch, assumptions=PRINTED):
    """Time that the experts' arithmetic takes on the fullest GPU."""
    work = model.n_expert_layers * moe_flops_on_gpu(model, deployment, batch, assumptions)
    if assumptions.all_flops:  # the source leaves dense layers and the head out
        work = work + dense_flops(model, batch / deployment.n_gpus, assumptions)
    loss = assumptions.expert_inefficiency * assumptions.arithmetic_penalty
    return loss * work / gpu.fp8_flops


@equation(unit="s")
def expert_time(model, gpu, deployment, batch, assumptions=PRINTED):
    """Time of everything that is not attention or network, on the fullest GPU."""
    at = model, gpu, deployment, batch, assumptions
    return expert_bottleneck(expert_memory_time(*at), expert_arithmetic_time(*at))


@equation(unit="s")
def overhead_time(model, assumptions=PRINTED):
    """Time of one micro-batch's layers besides work: launches, kernels without work (not in the source)."""
    return model.n_layers * assumptions.overhead


def step_time(model: Model, gpu: GPU, deployment: Deployment, batch, context, assumptions=PRINTED):
    """Seconds of one pass, from one token of every sequence to the next: equations 46 to 49 put together.

    ``batch``, ``context``: sequences on all GPUs together, and tokens behind each. The deployment's ``two_batch``
    chooses between equations 48 and 49.

    Examples
    --------
    >>> from inferlib.papers.mazurek2025 import load_model, setup
    >>> at = setup("9x8 H100")
    >>> t = step_time(load_model("DeepSeek V3"), at.gpu, at.deployment, 72 * 128, 4989)
    >>> f"{1e3 * t:.1f} ms, {128 / t:.0f} tokens/s for each GPU"
    '60.6 ms, 2112 tokens/s for each GPU'
    """
    part = batch / 2 if deployment.two_batch else batch
    attention = attention_time(model, gpu, deployment, part, context, assumptions)
    experts = expert_time(model, gpu, deployment, part, assumptions)
    on_network = network_time(model, gpu, deployment, part, assumptions)
    overhead = overhead_time(model, assumptions)
    if deployment.two_batch:
        return overlapped_time(attention, experts, on_network) + 2 * overhead
    return serial_time(attention, experts, on_network) + overhead


def gpu_throughput(model: Model, gpu: GPU, deployment: Deployment, batch, context, assumptions=PRINTED):
    """Tokens per second of one GPU: equation 51 over the GPUs."""
    total = step_time(model, gpu, deployment, batch, context, assumptions)
    return global_throughput(total, batch) / deployment.n_gpus


@equation(unit="s")
def prefill_time(model, gpu, context, assumptions=PRINTED):
    """Arithmetic of attention for one prompt on one GPU, all layers, vanilla: compute-bound, as section 4 says."""
    work = model.n_layers * vanilla_prefill_flops(model, 1, context, assumptions)
    loss = assumptions.attention_inefficiency * assumptions.arithmetic_penalty
    return loss * work / gpu.bf16_flops
