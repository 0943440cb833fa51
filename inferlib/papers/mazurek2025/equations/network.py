"""Mazurek & Schreiber 2025, section 3.3: what goes over the network, and how long it takes."""

from functools import partial

from inferlib.equation import equation
from inferlib.ops import maximum, minimum
from inferlib.papers.mazurek2025.records import DEFAULT, GPU, Assumptions, Deployment, Model

equation = partial(equation, "mazurek2025")


@equation(unit="1")
def messages(model: Model, assumptions: Assumptions = DEFAULT):
    """Copies of a token's vector that a layer sends: one for every expert it goes to.

    Nine for DeepSeek V3 as printed.
    """
    return model.used if assumptions.shared_sent else model.n_active


@equation(unit="B", tokens="1")
def tokens_traffic(model: Model, tokens, assumptions: Assumptions = DEFAULT):
    """Bytes of so many tokens in one pass: dispatched and combined in every layer that sends.

    What the forms of section 3.3 have in common.
    """
    both = assumptions.dispatch_bytes + assumptions.combine_bytes
    layers = model.n_layers if assumptions.dense_layers_send else model.n_expert_layers
    return both * tokens * messages(model, assumptions) * model.d_model * layers


@equation(unit="B", batch="1")
def link_traffic(model: Model, deployment: Deployment, batch, assumptions: Assumptions = DEFAULT):
    """Bytes over the link of one GPU in one pass, experts balanced.

    Section 3.3.1: two micro-batches of half the size, so the batch's halves cancel.

    Examples
    --------
    >>> from inferlib.papers.mazurek2025 import model_of, setup
    >>> link_traffic(model_of("DeepSeek V3"), setup("4x8 H100").deployment, 32) / 1e9
    0.011805696
    """
    micro_batches = 2
    half = batch / (micro_batches * deployment.n_gpus)
    return micro_batches * tokens_traffic(model, half, assumptions)


@equation(unit="B", batch="1")
def fullest_link_traffic(model: Model, deployment: Deployment, batch, assumptions: Assumptions = DEFAULT):
    """Bytes over the link of the fullest GPU in one pass (section 3.3.3).

    Parameters and result are those of :func:`link_traffic`; ``balancedness`` is used too.
    """
    return link_traffic(model, deployment, batch, assumptions) / deployment.balancedness


@equation(unit="B", batch="1")
def two_experts_traffic(model: Model, batch, assumptions: Assumptions = DEFAULT):
    """Bytes over the link of the GPU that hosts two of nine experts, each used by every token (section 3.3.3)."""
    return 2 * tokens_traffic(model, batch, assumptions) / messages(model, assumptions)


@equation(unit="B/s", own="B/s", bottleneck="B/s", sharing="1 > 0")
def effective_bandwidth(own, bottleneck, sharing):
    """Bandwidth of one GPU: its own link, or its share of a narrower one (section 3.3.1)."""
    return minimum(own, bottleneck / sharing)


@equation(unit="s", traffic="B", bandwidth="B/s > 0")
def uniform_network_time(traffic, bandwidth):
    """Time on a network whose links are all equal (section 3.3.1)."""
    return traffic / bandwidth


@equation(unit="s/B")
def slowest_link(gpu: GPU, deployment: Deployment):
    """Seconds for a byte of one GPU's traffic, inside and between nodes at the same time (section 3.3.2).

    s/B.
    """
    between = (deployment.n_nodes - 1) / deployment.n_nodes / gpu.inter_bandwidth
    return maximum(between, 1 / deployment.n_nodes / gpu.intra_bandwidth)


@equation(unit="s", batch="1")
def network_time(model: Model, gpu: GPU, deployment: Deployment, batch, assumptions: Assumptions = DEFAULT):
    """Time of all traffic of one pass: dispatch and combine in every layer that sends.

    Sections 3.3.3 and 3.5.
    """
    traffic = fullest_link_traffic(model, deployment, batch, assumptions)
    return assumptions.network_inefficiency * traffic * slowest_link(gpu, deployment)


@equation(unit="1/s")
def network_ceiling(model: Model, gpu: GPU, deployment: Deployment, assumptions: Assumptions = DEFAULT):
    """Most tokens per second and GPU that the network lets through, whatever the batch.

    Tokens per second of one GPU. Not in the source; it follows from equation 49.
    """
    return 1 / network_time(model, gpu, deployment, deployment.n_gpus, assumptions)


# --- Section 2.3 as an extension: the source has no number for it ----------------------------------------


@equation(unit="1", limit="1")
def nodes_reached(model: Model, deployment: Deployment, limit):
    """Expected number of nodes on which a token's routed experts sit.

    Nodes: the limit, or what free routing would reach if that is less (every expert on any node alike).
    """
    missed = (1 - 1 / deployment.n_nodes) ** model.n_active
    return minimum(limit, deployment.n_nodes * (1 - missed))


@equation(unit="1", limit="1")
def node_messages(model: Model, deployment: Deployment, limit):
    """Copies of a token's vector that leave its node if every other node gets one and hands it on inside.

    Parameters and result are those of :func:`nodes_reached`. DeepSeek's own library sends so when it is meant
    for throughput; the source sends one copy for every expert.
    """
    return nodes_reached(model, deployment, limit) * (deployment.n_nodes - 1) / deployment.n_nodes


@equation(unit="1", limit="1 > 0")
def local_messages(model: Model, limit, assumptions: Assumptions = DEFAULT):
    """Copies that leave the node if a token's own node is always among the ``limit`` it is routed to.

    Parameters are those of :func:`nodes_reached`. One copy goes to every expert, as in the source, and each
    of the token's nodes has an equal share of them.
    """
    return messages(model, assumptions) * (limit - 1) / limit


@equation(unit="1")
def expert_messages(model: Model, deployment: Deployment, assumptions: Assumptions = DEFAULT):
    """Copies that leave the node as the source counts them: one for every expert on another node."""
    return messages(model, assumptions) * (deployment.n_nodes - 1) / deployment.n_nodes
