"""Beyond Mazurek & Schreiber 2025: routing that knows nodes, memory that runs out, and other chips."""

from functools import partial

import numpy as np
import pandas as pd

from book.mazurek2025.systems import CONTEXT, MODEL, speed
from inferlib.equation import equation
from inferlib.ops import minimum
from inferlib.papers.mazurek2025 import equations as eq, records
from inferlib.papers.mazurek2025.records import DEFAULT, Assumptions, Deployment, Model, chip_of, deployment
from inferlib.units import factor

equation = partial(equation, "mazurek2025")

SIDE_BY_SIDE = {  # chip: GPUs and nodes of one deployment
    "H100 SXM": (64, 8),
    "H200": (64, 8),
    "H20": (64, 8),
    "B200": (64, 8),
    "GB200 NVL72": (64, 1),
}


# --- Section 2.3: routing that knows nodes, for which the source has no number ---------------------------


@equation(unit="1", limit="1")
def nodes_reached(model: Model, deployment: Deployment, limit):
    """Expected nodes on which a token's routed experts sit: the limit, or what free routing reaches if less."""
    missed = (1 - 1 / deployment.n_nodes) ** model.n_active
    return minimum(limit, deployment.n_nodes * (1 - missed))


@equation(unit="1", limit="1")
def node_messages(model: Model, deployment: Deployment, limit):
    """Copies that leave a token's node if every other node gets one and hands it on inside (DeepSeek's library)."""
    return nodes_reached(model, deployment, limit) * (deployment.n_nodes - 1) / deployment.n_nodes


@equation(unit="1", limit="1 > 0")
def local_messages(model: Model, limit, assumptions: Assumptions = DEFAULT):
    """Copies that leave the node, one for every expert, if the own node is always among the ``limit`` routed to."""
    return eq.messages(model, assumptions) * (limit - 1) / limit


@equation(unit="1")
def expert_messages(model: Model, deployment: Deployment, assumptions: Assumptions = DEFAULT):
    """Copies that leave the node as the source counts them: one for every expert on another node."""
    return eq.messages(model, assumptions) * (deployment.n_nodes - 1) / deployment.n_nodes


def routing(name="9x8 H100", limits=(2, 3, 4, 6, 9)):
    """Section 2.3: copies of a token's vector that leave its node, if it may go to a few nodes only."""
    at, rows = records.setup(name), {}
    source = float(expert_messages(MODEL, at.deployment))
    today = eq.network_ceiling(MODEL, at.gpu, at.deployment)
    for limit in limits:
        once, local = float(node_messages(MODEL, at.deployment, limit)), float(local_messages(MODEL, limit))
        rows[limit] = (source, once, local, today, today * source / once, today * source / local)
    columns = [
        "copies, source", "one for each node", "own node preferred",
        "ceiling, source", "ceiling, one for each node", "ceiling, own node preferred",
    ]  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("nodes of a token")


def room(contexts=(2000, CONTEXT, 8000, 32768)):
    """The largest batch that fits beside the weights, by chip and context."""
    rows = {}
    for name, (gpus, nodes) in SIDE_BY_SIDE.items():
        gpu, where = chip_of(name), deployment(gpus, nodes)
        held = eq.held_experts(MODEL, where)
        weights = eq.weights_on_gpu(MODEL, held)
        fitting = [int(eq.largest_own_batch(MODEL, gpu, s, held)) for s in contexts]
        rows[name] = (weights / 1e9, (gpu.memory_capacity - weights) / 1e9, *fitting)
    columns = ["weights, GB", "left, GB", *(f"at {s:,} tokens" for s in contexts)]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def side_by_side(context=CONTEXT, least=20):
    """Five chips, 64 of each, at the largest batch that fits and gives every request so many tokens per second."""
    rows, own = {}, np.arange(1, 4097)
    for name, (gpus, nodes) in SIDE_BY_SIDE.items():
        gpu, where = chip_of(name), deployment(gpus, nodes)
        step = eq.step_time(MODEL, gpu, where, own * float(gpus), context)
        fits = own <= eq.largest_own_batch(MODEL, gpu, context, eq.held_experts(MODEL, where))
        fast = eq.request_speed(step) >= least
        both = np.flatnonzero(fits & fast)
        if not both.size:
            rows[name] = (0, "memory" if not fits[0] else "speed", *[float("nan")] * 3)
            continue
        i = both[-1]
        request = float(eq.request_speed(step)[i])
        per_gpu = own[i] * request
        price = gpu.price * factor("usd/h", "usd/s") / per_gpu * 1e6 if gpu.price else float("nan")
        rows[name] = (int(own[i]), "memory" if fast[i + 1] else "speed", request, per_gpu, price)
    speeds = ["tokens/s of a request", "tokens/s of a GPU", "$ per million tokens"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["batch of a GPU", "ended by", *speeds])
    return table.astype(object).fillna("")


def limited_curves(context=CONTEXT):
    """What memory leaves of Figures 14 and 17: the best speed of a GPU with and without its limit."""
    rows = {}
    for name in records.setups():
        at = records.setup(name)
        fitting = float(eq.largest_own_batch(MODEL, at.gpu, context, eq.held_experts(MODEL, at.deployment)))
        speeds = [speed(name, own, context) for own in (fitting, 1024)]
        rows[name] = (fitting, *speeds, speeds[0] / speeds[1])
    columns = ["batch that fits", "tokens/s there", "tokens/s at 1024", "ratio"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)
