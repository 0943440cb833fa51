"""Erdil 2025: what a reader can move in the page."""

from functools import cache

import numpy as np

from book.erdil2025 import figures_model
from inferlib import load_chip
from inferlib.explorer import (
    Axis,
    Bars,
    Choice,
    Explorer,
    Kind,
    Limit,
    Sentence,
    Slider,
    Trade,
    curves,
    memory,
)
from inferlib.kept import kept
from inferlib.ops import log
from inferlib.papers.erdil2025 import decode, search
from inferlib.papers.erdil2025.equations import toy
from inferlib.papers.erdil2025.equations.model import capacity_needed
from inferlib.papers.erdil2025.records import PROTOCOLS, Assumptions, Cut, chip_of, chips, models
from inferlib.system import Breakdown

_CHIPS = {"H100, the paper's": chips["H100"]} | {
    n: load_chip(n) for n in ("A100 80GB", "H100 SXM", "H200", "B200")
}
_MODELS = {name: models[name] for name in ("Llama 3 70B", "Llama 3 8B", "GPT-3", "PaLM-540B", "GPT-4")}
N_GPU = Slider("n_gpu", "GPUs in the instance", 1, 512, 26, log=True)
BATCH = Slider("batch", "Batch", 1, 4096, 32, log=True)
HOP = Slider("hop", "Time of one hop", 0.1, 10, 1, "µs", log=True)
BASE = Slider("base", "Base latency of an all-reduce", 0, 20, 0, "µs")
MODEL, CHIP = Choice("model", "Model", _MODELS), Choice("chip", "Chip", _CHIPS)


def _t_reduce(n_gpu, hop, base):
    return 1e-6 * base + toy.grid_all_reduce_time(n_gpu, 1e-6 * hop)


def waiting_against_reading():
    """Network time and reading time over the size of the instance, at the critical batch."""

    def network(n_gpu, hop, base, model, chip):
        return toy.network_time(model, _t_reduce(n_gpu, hop, base))

    def reading(n_gpu, hop, base, model, chip):
        return toy.weight_time(model, chip, n_gpu)

    def both(n_gpu, hop, base, model, chip):
        batch = toy.critical_batch(model, chip)
        return toy.toy_latency(model, chip, n_gpu, batch, _t_reduce(n_gpu, hop, base))

    return curves(
        "Waiting against reading",
        [N_GPU, HOP, BASE, MODEL, CHIP],
        {"reading weights": reading, "waiting for the network": network, "token latency": both},
        x="n_gpu",
        y_label="milliseconds per token",
        unit="ms",
        log_y=True,
        limits=memory(_weights, "n_gpu"),
    )


def _weights(model, **at):
    return model.weight_bytes * model.n_params


def fastest_token():
    """The fastest speed and the instance it takes, over the time of one hop."""

    def room(hop, model, chip):
        return toy.optimal_n_gpu(model, chip, 1e-6 * hop) * chip.memory_capacity

    return curves(
        "The fastest token of any instance",
        [HOP, MODEL, CHIP],
        {
            "tokens per second": lambda hop, model, chip: 1 / toy.minimum_latency(model, chip, 1e-6 * hop),
            "GPUs it takes": lambda hop, model, chip: toy.optimal_n_gpu(model, chip, 1e-6 * hop),
        },
        x="hop",
        y_label="tokens per second, GPUs",
        unit="1",
        log_y=True,
        limits={"memory": Limit(_weights, room, "GB")},
    )


def one_token():
    """Where the time of one token goes, for any instance and batch."""

    def step(n_gpu, batch, hop, base, model, chip):
        return Breakdown(toy.stages(model, chip, n_gpu, batch, _t_reduce(n_gpu, hop, base)))

    inputs = [N_GPU, BATCH, HOP, BASE, MODEL, CHIP]
    return Explorer("One token", inputs, [Bars({"": step}, "ms")], limits=memory(_weights, "n_gpu"))


_DENSE = {
    name: models[name].shape for name in ("Llama 3 70B", "Llama 3 8B", "Llama 3.1 405B", "Mistral Large 2")
}
_GPUS = {"H100, the paper's": chips["H100"], "A100, the paper's": chips["A100"]} | {
    name: chip_of(load_chip(name)) for name in ("H100 SXM", "H200", "B200")
}
CONTEXT = Slider("context", "Context", 0, 128_000, 4096, "tokens")
TIGHT = Slider("gpus", "GPUs in the instance", 2, 256, 8, log=True)
SERVED = Slider("batch", "Batch", 1, 1024, 32, log=True)
DENSE, GPUS = Choice("model", "Model", _DENSE), Choice("chip", "GPU", _GPUS)
WHOLE_CACHE = Assumptions(cache_of_micro_batch=False)
LL_ONLY = Assumptions(protocols=tuple(p for p in PROTOCOLS if p.name == "LL"))


def one_layout():
    """Where the time of one token goes in a one-dimensional layout with the low-latency protocol."""

    def step(gpus, batch, context, model, chip):
        dense = model.replace(n_experts=1, n_active=1)
        terms = decode.terms(dense, chip, Cut(kind="1D"), gpus, batch, context, 1, LL_ONLY)
        return Breakdown(terms)

    def held(gpus, batch, context, model, chip):
        return capacity_needed(model, context, batch, batch, WHOLE_CACHE)

    inputs = [TIGHT, SERVED, CONTEXT, DENSE, GPUS]
    return Explorer("One layout", inputs, [Bars({"": step}, "ms")], limits=memory(held, "gpus"))


def drafting():
    """Tokens of a round, and the gain in speed, over the acceptance of drafted tokens."""
    accepted = Slider("accepted", "Acceptance", 5, 95, 80, "%")
    drafts = Slider("drafts", "Tokens drafted", 1, 8, 4, whole=True)
    ratio = Slider("ratio", "Draft pass over target pass", 1, 50, 15, "%")

    def printed(accepted, drafts, ratio):
        return 1 / search.speculative_time(0.01 * accepted, drafts, drafts, 1, 0.01 * ratio)

    def free(accepted, drafts, ratio):
        return 1 / search.speculative_time(0.01 * accepted, drafts, drafts + 1, 1, 0.01 * ratio)

    return curves(
        "What drafting is worth",
        [accepted, drafts, ratio],
        {"equation 46": printed, "with the free token": free},
        x="accepted",
        y_label="times as many tokens per second",
        unit="1",
    )


def slope_and_wall():
    """The frontier of Llama 3 70B with what makes its slope and its wall switched off, one by one.

    Each curve is a search over all layouts, done before the page opens; the page finds what a customer prefers.
    """

    def mark(at):
        return lambda network, waits, drafts, alpha: at(_frontier(network, waits, drafts))

    def nearly(network, waits, drafts, alpha):
        return _nearly(_frontier(network, waits, drafts))[1]

    def cheapest(network, waits, drafts, alpha):
        return _frontier(network, waits, drafts)[-1][1]

    def dearer(**at):
        return nearly(**at) / cheapest(**at)

    def top(network, waits, drafts, alpha):
        return _frontier(network, waits, drafts)[0][0]

    share = f"{100 * NEARLY:.0f} %"
    says = (
        f"{share} of the top speed costs {{0}} times what the cheapest token does. The wall: {{1}} tokens/s"
    )
    return Explorer(
        "What makes the slope, and what the wall",
        [
            Kind("network", "Bandwidth of the network", {"as in the paper": False, "without limit": True}),
            Kind("waits", "Launches and latencies", {name: name for name in figures_model.WAITS}),
            Kind("drafts", "Drafts", {"none": False, "by Llama 3 8B": True}),
            Slider("alpha", "A customer's α", 0.5, 8, 3),
        ],
        [
            Trade(
                _told,
                lambda x, y, alpha: alpha * log(x) - log(y),
                Axis("speed", "tokens/s", 10, 400),
                Axis("price", "$ per million", 0.04, 150),
                {f"{share} of the top": mark(_nearly)},
                title="Llama 3 70B with 8-bit weights on H100s; dashed, as in the paper",
            ),
            Sentence(
                {"times the cheapest": (dearer, "1"), "the wall": (top, "1")},
                (
                    (10, f"Hardly a slope. {says}."),
                    (None, f"A long slope. {says}."),
                ),
            ),
        ],
    )


NEARLY = 0.9  # of the top speed: next to the wall


@cache
def _frontier(network, waits, drafts):
    """The points of a frontier, fastest first."""

    def search():
        asked = network, figures_model.WAITS[waits], drafts
        curve = figures_model.switched("Llama 3 70B 8-bit", *asked)
        return list(zip(curve.tokens_per_second.tolist(), curve.usd_per_million.tolist(), strict=True))

    return kept(f"erdil2025 slope and wall, {network}, {waits}, {drafts}", search)


def _nearly(points):
    """The cheapest point of nearly the top speed."""
    return min((p for p in points if p[0] >= NEARLY * points[0][0]), key=lambda p: p[1])


def _told(network, waits, drafts, alpha):
    """As many points of a frontier as a picture shows, in four digits."""
    points = [p for p in _frontier(network, waits, drafts) if p[0] >= 10]
    found = np.log(points)
    way = np.cumsum(np.hypot(*np.diff(found, axis=0, prepend=found[:1]).T))
    places = np.searchsorted(way, np.linspace(0, way[-1] * (1 - 1e-9), 64))
    return [tuple(float(f"{value:.4g}") for value in points[k]) for k in dict.fromkeys(places.tolist())]
