"""LIMINAL 2025: speeds, limits and needs of the paper's systems, with which its text is checked."""

from book.audit.explanations import inputs
from book.papers.liminal2025 import cells
from book.papers.liminal2025.cells import MANY
from inferlib.papers import liminal2025 as model
from inferlib.papers.liminal2025 import IDEAL, chips, load_chip, load_model, models

GB, K = cells.AS_PRINTED.gb, cells.AS_PRINTED.kilotoken
SHORT, LONG = 4 * K, 128 * K
LARGE = cells.large()
DRAM = ("HBM3", "HBM4", "3D-DRAM")


def speed(name, memory="HBM3", batch=1, context=SHORT, n=MANY, t_tp=None):
    """UTPS of one of the paper's systems; the achievable latency when none is given."""
    return cells.AS_PRINTED.speed(name, memory, batch, context, n, t_tp)


def waiting_share(name, memory, context, t_tp, n):
    """Share of a token's time that is exposed, at batch 1."""
    app = load_model(name)
    exposed = model.exposed_time(app, n, cells.AS_PRINTED.stages(app, memory), t_tp)
    return exposed * speed(name, memory, 1, context, n, t_tp)


def ceiling(name, n):
    """UTPS on some chips at 200 ns a collective if memory and arithmetic took no time at all."""
    return 1 / model.exposed_time(load_model(name), n, 1, IDEAL)


def use_of_arithmetic(name, memory, context, batch=1):
    """Part of the tensor engines' peak that a step on 128 chips uses."""
    busy = model.compute_time(load_model(name), load_chip(memory), batch, context, MANY)
    return busy * speed(name, memory, batch, context)


def gain(name, context):
    """UTPS on 3D-DRAM over that on HBM3, for one user and collectives of 200 ns (Table 6)."""
    return speed(name, "3D-DRAM", 1, context, t_tp=IDEAL) / speed(name, "HBM3", 1, context, t_tp=IDEAL)


def without_hops(name):
    """UTPS on SRAM at 128K if its pipeline cost no hops, at 1 us a collective."""
    at = load_model(name), load_chip("SRAM"), 1, LONG, MANY, 1
    return model.user_speed(*at, model.collective_latency(MANY))


def at_capacity(name, context):
    """Tokens per second of the system, and of each user, at the largest batch that fits 128 HBM3 chips."""
    batch = model.largest_batch(load_model(name), load_chip("HBM3"), context, MANY)
    user = speed(name, "HBM3", batch, context)
    return batch * user, user


def needs(name, batch, context):
    """Bytes that a batch of a model occupies."""
    return model.capacity_needed(load_model(name), batch, context)


def huge():
    """The models of Table 4 with more than 100 billion parameters, "over 100B"."""
    return [name for name in models() if model.stored_weights(load_model(name)) > 100e9]


def active_experts(name):
    """Routed experts of a layer that a token goes to."""
    app = inputs(load_model(name))
    return app.n_experts * app.routed_share


def active_weights(name):
    """Weights that a token is multiplied with."""
    app = inputs(load_model(name))
    return app.used + app.expert * active_experts(name)


def arithmetic_binds():
    """Models whose arithmetic takes longer than memory at batch 1 and 128K, to the chips on which it does."""
    bound = {}
    for name in LARGE:
        for memory in chips():
            at = load_model(name), load_chip(memory), 1, LONG, MANY
            if model.compute_time(*at) > model.memory_time(*at):
                bound.setdefault(name, []).append(memory)
    return bound


def arithmetic_extra(name):
    """Part of a token's time that arithmetic adds beyond memory, on SRAM at batch 1, 128K and 1 us a collective."""
    at = load_model(name), load_chip("SRAM"), 1, LONG, MANY
    return (model.compute_time(*at) - model.memory_time(*at)) * speed(name, "SRAM", 1, LONG)


def sram_wins(name):
    """Whether SRAM is faster than 3D-DRAM for one user at 128K and 1 us a collective."""
    return speed(name, "SRAM", 1, LONG) > speed(name, "3D-DRAM", 1, LONG)


# --- How counts and numbers are written in notes --------------------------------------------------------------


def counted(good, names=LARGE):
    """Such as ``"5 of 8"``."""
    return f"{sum(map(bool, good))} of {len(names)}"


def most(good):
    """Whether a statement about most of these holds: it does for more than half.

    Examples
    --------
    >>> most([True, True, False]), most([True, False]), most([True, False, False])
    (True, False, False)
    """
    good = list(good)
    return sum(good) > len(good) / 2


def written(value):
    """A speed as the paper writes it."""
    return cells.written(value, cells.SPEED)
