"""LIMINAL 2025: how many experts a batch reaches, by the formula and by drawing (section 2.4)."""

import math
import re

import numpy as np

from inferlib import validation
from inferlib.papers import liminal2025 as model
from inferlib.system import count


def simulate(n_experts, n_active, batch, draws=1000, seed=0):
    """Experts reached, by drawing: each token picks ``n_active`` distinct experts, all equally likely.

    Examples
    --------
    >>> simulate(256, 8, 1, draws=3).tolist()
    [8, 8, 8]
    """
    for name, value in (("n_experts", n_experts), ("batch", batch), ("draws", draws)):
        count(name, value)
    validation.number("n_active", n_active, minimum=1, maximum=n_experts)
    random = np.random.default_rng(seed)
    reached = np.zeros((draws, int(n_experts)), dtype=bool)
    for _ in range(int(batch)):
        # the first k of a random order are k distinct experts
        order = random.random((draws, int(n_experts))).argpartition(int(n_active) - 1, axis=1)
        np.put_along_axis(reached, order[:, : int(n_active)], True, axis=1)
    return reached.sum(axis=1)


def spread(app, batch):
    """Standard deviation of the experts that one draw of a batch reaches.

    Notes
    -----
    An expert is missed with chance q = (1 - k/E)^B, two given ones with q2 = (C(E-2, k) / C(E, k))^B; the number
    missed is a sum of E such events.

    Examples
    --------
    >>> from inferlib.papers.liminal2025 import load_model
    >>> round(spread(load_model("DeepSeekV3"), 32), 2)
    4.96
    """
    n, k = app.n_experts, app.n_experts * app.routed_share
    if n < 2:
        return 0.0
    missed = (1 - app.routed_share) ** batch
    both = max((n - k) * (n - k - 1) / (n * (n - 1)), 0.0) ** batch
    return math.sqrt(max(n * missed * (1 - missed) + n * (n - 1) * (both - missed**2), 0.0))


def intensity_spread(app, batch, context):
    """Relative standard deviation of the arithmetic intensity over single draws of the experts."""
    loaded = model.PRINTED.weight_bytes * app.expert * spread(app, batch)
    return loaded / model.bytes_loaded(app, batch, context)


def batch_of(column):
    """The batch that a column of Table 4 names.

    Examples
    --------
    >>> batch_of("AMI T=4K B=32")
    32
    """
    return int(re.search(r"B=(\d+)", column)[1])
