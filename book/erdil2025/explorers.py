"""Erdil 2025: what a reader can move in the page."""

from inferlib import load_chip
from inferlib.explorer import Bars, Choice, Explorer, Limit, Slider, curves
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
    )


def fastest_token():
    """The fastest speed and the instance it takes, over the time of one hop."""
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
    )


def one_token():
    """Where the time of one token goes, for any instance and batch."""

    def step(n_gpu, batch, hop, base, model, chip):
        return Breakdown(toy.stages(model, chip, n_gpu, batch, _t_reduce(n_gpu, hop, base)))

    def weights(model, **others):
        return model.weight_bytes * model.n_params

    return Explorer(
        "One token", [N_GPU, BATCH, HOP, BASE, MODEL, CHIP], [Bars({"": step}, "ms")], limits=_memory(weights)
    )


def _memory(needed):
    """The memory of an instance, in which weights and cache have to fit."""

    def available(chip, **others):
        return others.get("n_gpu", others.get("gpus")) * chip.memory_capacity

    return {"memory": Limit(needed, available, "GB")}


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
    return Explorer("One layout", inputs, [Bars({"": step}, "ms")], limits=_memory(held))


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
