"""Experts of the fullest GPU: the printed formula, the corrected one, and random draws."""

import numpy as np

from book.papers.mazurek2025.systems import MODEL
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.records import deployment


def fullest(tokens, n_gpus=32):
    """The active experts of the fullest GPU: by both formulas, and the mean of draws of experts dealt out evenly."""
    at, active = deployment(n_gpus), eq.active_experts(MODEL, tokens)
    random, most = np.random.default_rng(0), []
    for _ in range(300):
        scores = random.random((tokens, MODEL.n_routed))
        chosen = np.unique(np.argpartition(scores, MODEL.n_active)[:, : MODEL.n_active])
        most.append(np.bincount(chosen // (MODEL.n_routed // n_gpus), minlength=n_gpus).max())
    return {
        "printed": eq.fullest_gpu_experts(at, active),
        "without replacement": eq.fullest_gpu_experts_placed(MODEL, at, active),
        "simulated": float(np.mean(most)),
    }
