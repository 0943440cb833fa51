"""The experts of the fullest GPU: the printed formula, the corrected one, and random draws."""

from functools import cache

import numpy as np
import pandas as pd

from book.mazurek2025.systems import CONTEXT, MODEL
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.records import DEFAULT, deployment, setup


def simulated_fullest(n_active_tokens, n_gpus, draws):
    """The fullest GPU's active experts by simulation: tokens choose experts at random, experts are dealt evenly."""
    random = np.random.default_rng(0)
    most = []
    for _ in range(draws):
        scores = random.random((n_active_tokens, MODEL.n_routed))
        chosen = np.unique(np.argpartition(scores, MODEL.n_active)[:, : MODEL.n_active])
        most.append(np.bincount(chosen // (MODEL.n_routed // n_gpus), minlength=n_gpus).max())
    return float(np.mean(most))


def fullest_by_formula(batches=(1, 2, 4, 8, 16, 32, 64), draws=400):
    """The active experts of the fullest of 32 GPUs: both formulas and a simulation."""
    at, rows = deployment(32), {}
    for n in batches:
        active = eq.active_experts(MODEL, n)
        formulas = eq.fullest_gpu_experts(at, active), eq.fullest_gpu_experts_placed(MODEL, at, active)
        rows[n] = (*formulas, simulated_fullest(n, 32, draws), MODEL.n_routed / 32)
    columns = ["printed", "without replacement", "simulated", "held"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("tokens")


@cache
def fewer_experts_gain():
    """What fewer active experts could be worth at a global batch of 32 on 4x8 H100, and what overlap costs there."""
    at, batch = setup("4x8 H100"), 32
    base = eq.step_time(MODEL, at.gpu, at.deployment, batch, CONTEXT)
    printed = eq.loaded_experts(MODEL, at.deployment, batch / 2)
    mean = eq.active_experts(MODEL, batch / 2) / at.deployment.n_gpus
    simulated = simulated_fullest(batch // 2, at.deployment.n_gpus, draws=500)
    second = 2 * DEFAULT.memory_inefficiency / at.gpu.memory_bandwidth
    expert = second * MODEL.n_expert_layers * eq.expert_weights(MODEL)
    serial = eq.step_time(MODEL, at.gpu, at.deployment.replace(two_batch=False), batch, CONTEXT)
    gains = {
        name: base / (base - expert * (printed - routed - MODEL.n_shared)) - 1
        for name, routed in (("simulated", simulated), ("mean", mean))
    }
    return gains | {"overlap": base / serial - 1}
