"""Mazurek & Schreiber 2025: what its formulas count in a model, before anything takes time."""

from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.records import Deployment, load_model
from inferlib.units import factor

MB, GB = factor("MB"), factor("GB")


def parameters(model=None):
    """Parameters by part as the source's formulas count them, one byte each."""
    model = model or load_model("DeepSeek V3")
    parts = {
        "attention": eq.attention_weights(model),
        "experts": eq.experts_on_gpu(model, model.n_shared + model.n_routed),
        "dense": eq.dense_weights(model),
        "embeddings": eq.embedding_weights(model),
    }
    return parts | {"all": sum(parts.values())}


def active_parameters(model=None):
    """Parameters one token is multiplied with: the head, and not the embedding table."""
    model = model or load_model("DeepSeek V3")
    parts = parameters(model) | {"experts": eq.experts_on_gpu(model, model.used)}
    return parts["attention"] + parts["experts"] + parts["dense"] + parts["embeddings"] / 2


def outweighing(model=None):
    """The most GPUs for which the experts on one, dealt out evenly, still weigh as much as attention."""
    model = model or load_model("DeepSeek V3")
    attention = eq.attention_weights(model)
    on = {n: eq.experts_on_gpu(model, eq.held_experts(model, Deployment(n))) for n in range(2, 200)}
    return max(n for n, weight in on.items() if weight >= attention)
