"""LIMINAL 2025: how many experts a batch reaches, by the formula and by drawing (section 2.4)."""

import math
import re

import numpy as np
import pandas as pd

from book.audit.ledger import published
from book.liminal2025 import cells
from inferlib import checks
from inferlib.papers.liminal2025 import equations as model
from inferlib.papers.liminal2025.equations import PRINTED, load_model, models
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
    checks.number("n_active", n_active, minimum=1, maximum=n_experts)
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
    loaded = PRINTED.weight_bytes * app.expert * spread(app, batch)
    return loaded / model.bytes_loaded(app, batch, context)


def implied(app, batch, context, intensity):
    """Experts reached that a printed intensity implies, everything else as computed."""
    work = model.tensor_work(app, batch, context)
    expected = model.active_experts(app, batch)
    surplus = work / intensity - model.bytes_loaded(app, batch, context)
    return expected + surplus / (PRINTED.weight_bytes * app.expert)


def noise():
    """The paper's Monte-Carlo against the closed form, model by model."""
    printed, rows = published("liminal2025"), []
    for name in models():
        app = load_model(name)
        if not app.expert:
            continue
        ends = []
        for label, k in (("T=4K", 4), ("T=128K", 128)):
            row = printed["Table 4", name, f"AMI {label} B=32"]
            at = app, 32, k * cells.AS_PRINTED.kilotoken
            ends.append([implied(*at, row.printed + s * row.resolution / 2) for s in (1, -1)])
        low, high = max(e[0] for e in ends), min(e[1] for e in ends)
        expected, one = model.active_experts(app, 32), spread(app, 32)
        rows.append((name, low, high, expected, one, ((low + high) / 2 - expected) / one))
    columns = ["model", "low", "high", "closed form", "of one draw", "deviation"]
    return pd.DataFrame(rows, columns=columns)


def batch_of(column):
    """The batch that a column of Table 4 names.

    Examples
    --------
    >>> batch_of("AMI T=4K B=32")
    32
    """
    return int(re.search(r"B=(\d+)", column)[1])
