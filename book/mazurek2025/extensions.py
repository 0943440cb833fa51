"""Beyond Mazurek & Schreiber 2025: routing that knows nodes, memory that runs out, and other chips."""

from book.mazurek2025.systems import MODEL
from inferlib.papers.mazurek2025.equations import experts, memory, network, throughput
from inferlib.papers.mazurek2025.records import DEFAULT, chip_of, deployment, setup
from inferlib.units import factor

SIDE_BY_SIDE = {  # chip: GPUs and nodes of one deployment
    "H100 SXM": (64, 8),
    "H200": (64, 8),
    "H20": (64, 8),
    "B200": (64, 8),
    "GB200 NVL72": (64, 1),
}


def routing(name="9x8 H100", limits=(2, 3, 4, 6, 9), assumptions=DEFAULT):
    """Section 2.3: copies of a token's vector that leave its node, if it may go to a few nodes only.

    Parameters
    ----------
    name : str
        One of the three setups.
    limits : sequence of int
        Most nodes of a token; DeepSeek trained with 4.
    assumptions : Assumptions

    Returns
    -------
    pandas.DataFrame
        Indexed by limit: copies that leave the node as the source counts them, with one copy for each node, and
        with one for each expert but the own node always among those chosen; and the ceiling of the network in
        tokens per second and GPU for each, from the copies between nodes alone.
    """
    import pandas as pd

    at = setup(name)
    source = float(network.expert_messages(MODEL, at.deployment, assumptions))
    today = network.network_ceiling(MODEL, at.gpu, at.deployment, assumptions)
    rows = {}
    for limit in limits:
        once = float(network.node_messages(MODEL, at.deployment, limit))
        local = float(network.local_messages(MODEL, limit, assumptions))
        rows[limit] = (source, once, local, today, today * source / once, today * source / local)
    columns = [
        "copies, source", "one for each node", "own node preferred",
        "ceiling, source", "ceiling, one for each node", "ceiling, own node preferred",
    ]  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("nodes of a token")


def room(contexts=(2000, 4989, 8000, 32768)):
    """The largest batch that fits beside the weights, by chip and context.

    Returns
    -------
    pandas.DataFrame
        Indexed by chip: GB of weights of one of 64 GPUs, GB left, and sequences a GPU at each context; nothing is
        kept back for software or activations.
    """
    import pandas as pd

    rows = {}
    for name, (gpus, nodes) in SIDE_BY_SIDE.items():
        gpu, where = chip_of(name), deployment(gpus, nodes)
        held = experts.held_experts(MODEL, where)
        weights = memory.weights_on_gpu(MODEL, held)
        fitting = [int(memory.largest_own_batch(MODEL, gpu, s, held)) for s in contexts]
        rows[name] = (weights / 1e9, (gpu.memory_capacity - weights) / 1e9, *fitting)
    columns = ["weights, GB", "left, GB", *(f"at {s:,} tokens" for s in contexts)]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def side_by_side(context=4989, speed=20.0, assumptions=DEFAULT):
    """Five chips, 64 of each, at the largest batch that fits and still serves every request fast enough.

    Parameters
    ----------
    context : float
        Tokens behind each sequence.
    speed : float
        Least tokens per second of a request.
    assumptions : Assumptions

    Returns
    -------
    pandas.DataFrame
        Indexed by chip: sequences a GPU, what ends the batch (``memory``, ``speed``), tokens per second of a
        request and of a GPU, dollars for a million tokens at the catalogue's list price (empty where there is
        none), and what sets the time.
    """
    import numpy as np
    import pandas as pd

    rows, own = {}, np.arange(1, 4097)
    for name, (gpus, nodes) in SIDE_BY_SIDE.items():
        gpu, where = chip_of(name), deployment(gpus, nodes)
        step = throughput.step_time(MODEL, gpu, where, own * float(gpus), context, assumptions)
        held = experts.held_experts(MODEL, where)
        fits = own <= memory.largest_own_batch(MODEL, gpu, context, held, assumptions)
        fast = throughput.request_speed(step) >= speed
        both = np.flatnonzero(fits & fast)
        if not both.size:
            rows[name] = (0, "memory" if not fits[0] else "speed", *[float("nan")] * 3)
            continue
        i = both[-1]
        request = float(throughput.request_speed(step)[i])
        per_gpu = own[i] * request
        price = gpu.price * factor("usd/h", "usd/s") / per_gpu * 1e6 if gpu.price else float("nan")
        rows[name] = (int(own[i]), "memory" if fast[i + 1] else "speed", request, per_gpu, price)
    columns = [
        "batch of a GPU",
        "ended by",
        "tokens/s of a request",
        "tokens/s of a GPU",
        "$ per million tokens",
    ]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return table.astype(object).fillna("")


def limited_curves(context=4989):
    """What memory leaves of Figures 14 and 17: the best speed of a GPU with and without its limit.

    Returns
    -------
    pandas.DataFrame
        Indexed by setup: sequences a GPU that fit, the speed of a GPU there, and that at 1024 sequences, where
        the source's figures end.
    """
    import pandas as pd

    from inferlib.papers.mazurek2025.records import setups

    rows = {}
    for name in setups():
        at = setup(name)
        held = experts.held_experts(MODEL, at.deployment)
        fitting = float(memory.largest_own_batch(MODEL, at.gpu, context, held))
        speeds = [
            throughput.gpu_throughput(MODEL, at.gpu, at.deployment, b * at.deployment.n_gpus, context)
            for b in (fitting, 1024)
        ]
        rows[name] = (fitting, *speeds, speeds[0] / speeds[1])
    columns = ["batch that fits", "tokens/s there", "tokens/s at 1024", "ratio"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)
