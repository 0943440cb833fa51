"""Mazurek & Schreiber 2025: what its formulas count in a model, before anything takes time."""

from book.papers.mazurek2025.systems import MODEL
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.records import Deployment
from inferlib.units import factor

MB, GB = factor("MB"), factor("GB")


def parameters(model=MODEL):
    """Parameters by part as the source's formulas count them, one byte each."""
    parts = {
        "attention": eq.attention_weights(model),
        "experts": eq.experts_on_gpu(model, model.n_shared + model.n_routed),
        "dense": eq.dense_weights(model),
        "embeddings": eq.embedding_weights(model),
    }
    return parts | {"all": sum(parts.values())}


def active_parameters(model=MODEL):
    """Parameters one token is multiplied with: the head, and not the embedding table."""
    parts = parameters(model) | {"experts": eq.experts_on_gpu(model, model.used)}
    return parts["attention"] + parts["experts"] + parts["dense"] + parts["embeddings"] / 2


def outweighing(model=MODEL):
    """The most GPUs for which the experts on one, dealt out evenly, still weigh as much as attention."""
    attention = eq.attention_weights(model)
    on = {n: eq.experts_on_gpu(model, eq.held_experts(model, Deployment(n))) for n in range(2, 200)}
    return max(n for n, weight in on.items() if weight >= attention)
