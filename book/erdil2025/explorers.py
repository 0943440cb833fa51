"""Erdil 2025: what a reader can move in the page."""

from dataclasses import replace
from functools import partial

import numpy as np

from book import explorer
from book.erdil2025 import figures_model
from book.explorer import Axis, Bars, Choice, Curves, Explorer, Kind, Sentence, Slider, first, memory
from inferlib import load_chip
from inferlib.ops import log
from inferlib.papers.erdil2025 import decode, search
from inferlib.papers.erdil2025.equations import toy
from inferlib.papers.erdil2025.equations.model import capacity_needed
from inferlib.papers.erdil2025.records import PROTOCOLS, Assumptions, Cut, chip_of, chips, models
from inferlib.system import Breakdown, format_bytes
from inferlib.units import factor

PAPERS = "H100, the paper's"
_CHIPS = {PAPERS: chips["H100"]} | {n: load_chip(n) for n in ("A100 80GB", "H100 SXM", "H200", "B200")}
_MODELS = {name: models[name] for name in ("Llama 3 70B", "Llama 3 8B", "GPT-3", "PaLM-540B", "GPT-4")}
N_GPU = Slider("n_gpu", "GPUs in the instance", 1, 512, 26, log=True)
HOP = Slider("hop", "Time of one hop", 0.1, 10, 1, "µs", log=True)
MODEL, CHIP = Choice("model", "Model", _MODELS), Choice("chip", "Chip", _CHIPS)
BITS = Choice("bits", "Weights", {"16 bits": 2, "8 bits": 1, "4 bits": 0.5})


def waiting_against_reading(model=models["Llama 3 70B"], chip=chips["H100"], hop=1e-6):
    """The toy model of any instance: its terms over the size, and one token; it begins with what is given."""

    def given(hop, base, bits, model, chip, n_gpu, batch, **at):
        wait = base * factor("us") + toy.grid_all_reduce_time(n_gpu, hop * factor("us"))
        return model.replace(weight_bytes=bits), chip, n_gpu, batch, wait

    def network(**at):
        model, *_, wait = given(**at)
        return toy.network_time(model, wait)

    def reading(**at):
        return toy.weight_time(*given(**at)[:3])

    def latency(ahead, **at):
        return (toy.prefetched_latency if ahead else toy.toy_latency)(*given(**at))

    def step(ahead, **at):
        waits, overlapping = toy.stages(*given(**at))
        if not ahead:
            return Breakdown((waits, overlapping))
        # Reading goes on while the GPUs wait; multiplying comes after.
        after = waits | {"arithmetic": overlapping["arithmetic"]}
        return Breakdown(({"memory": {"weights": overlapping["weights"]}, "the rest": after},))

    size = round(toy.optimal_n_gpu(model, chip, hop))
    outputs = {"weights": reading, "network": network, "token": latency}
    return Explorer(
        "Waiting against reading",
        [
            replace(N_GPU, value=size),
            Slider("batch", "Batch", 1, 4096, 1, log=True),
            replace(HOP, value=hop / factor("us")),
            Slider("base", "Base latency of an all-reduce", 0, 20, 0, "µs"),
            BITS,
            Kind("ahead", "Reading while waiting", {"no, as in the paper": False, "yes": True}),
            Choice("model", "Model", first(model, _MODELS)),
            Choice("chip", "Chip", {f"{chip.name}, as above": chip} | _CHIPS),
        ],
        [
            Curves(outputs, "n_gpu", "milliseconds per token", "ms", True, least="token"),
            Bars({"": step}, "ms"),
        ],
        limits=memory(lambda bits, model, **at: bits * model.n_params, "n_gpu"),
    )


_DENSE = {n: models[n].shape for n in ("Llama 3 70B", "Llama 3 8B", "Llama 3.1 405B", "Mistral Large 2")}
_GPUS = {name: chip_of(load_chip(name)) for name in ("H100 SXM", "H200", "B200", "A100 80GB", "MI300X")}
CONTEXT = Slider("context", "Context", 1, 131_072, 4096, "tokens", log=True)
TIGHT = Slider("gpus", "GPUs in the instance", 2, 256, 8, log=True)
SERVED = Slider("batch", "Batch", 1, 1024, 32, log=True)
WHOLE_CACHE = Assumptions(cache_of_micro_batch=False)
LL_ONLY = Assumptions(protocols=tuple(p for p in PROTOCOLS if p.name == "LL"))


def one_layout(model=models["Llama 3 70B"], chip=chips["H100"], draft=models["Llama 3 8B"]):
    """Where the time of one token goes in a one-dimensional layout with the low-latency protocol, and what drafts,
    fewer bits and another GPU make of it; a draft pass begins with its share of a pass in that layout.
    """

    def shape(model, bits, cache):
        return model.replace(weight_bytes=format_bytes(bits), activation_bytes=cache)

    def timed(dense, chip, *at, new_tokens=1):
        return Breakdown(decode.terms(dense, chip, Cut(kind="1D"), *at, new_tokens, LL_ONLY, split=False))

    def passed(gpus, batch, context, bits, cache, model, chip, new_tokens=1, **at):
        dense = shape(model, bits, cache).replace(n_experts=1, n_active=1)
        return timed(dense, chip.at(bits), gpus, batch, context, new_tokens=new_tokens)

    gpus = {PAPERS if chip == chips["H100"] else f"{chip.name}, as above": chip} | _GPUS
    start = chip.at("bf16"), TIGHT.value, SERVED.value, CONTEXT.value
    share = 100 * timed(draft.shape, *start).total / timed(model.shape, *start).total

    def drafted(accepted, drafts, ratio, free, **at):
        times = passed(**at, new_tokens=drafts + free).total, 0.01 * ratio * passed(**at).total
        return 1 / search.speculative_time(0.01 * accepted, drafts, drafts + free, *times)

    def held(batch, context, bits, cache, model, **at):
        return capacity_needed(shape(model, bits, cache), context, batch, batch, WHOLE_CACHE)

    return Explorer(
        "One layout",
        [
            TIGHT,
            SERVED,
            CONTEXT,
            Kind("bits", "Weights", {"16 bits": "bf16", "8 bits": "fp8", "4 bits": "fp4"}),
            Choice("cache", "Cache and activations", {"16 bits": 2, "8 bits": 1}),
            Choice("model", "Model", first(model.shape, _DENSE)),
            Choice("chip", "GPU", gpus),
            Slider("accepted", "Drafts accepted", 5, 95, 80, "%"),
            Slider("drafts", "Tokens drafted", 1, 8, 4, whole=True),
            Slider("ratio", "Draft pass over target pass", 1, 50, round(share), "%"),
        ],
        [
            Curves(
                {
                    "no drafts": lambda **at: 1 / passed(**at).total,
                    "equation 46": partial(drafted, free=0),
                    "free token": partial(drafted, free=1),
                },
                "accepted",
                "tokens per second of each user",
                "1/s",
                log_y=True,
                title="What drafting is worth",
            ),
            Bars({"": passed}, title="A token without drafts"),
        ],
        limits=memory(held, "gpus"),
        asks={"weights": "bits", "n_chips": "gpus", "names": {PAPERS: "H100 SXM"}},
    )


def slope_and_wall(model=models["Llama 3 70B 8-bit"], chip=chips["H100"], draft=models["Llama 3 8B"]):
    """The frontier of a model with what makes its slope and its wall switched off, one by one.

    Each curve is a search over all layouts, done before the page opens; the page finds what a customer prefers.
    """

    found = partial(_frontier, model, chip, draft)

    def told(network, waits, drafts, alpha):
        return _told(found(network, waits, drafts))

    def mark(at):
        return lambda network, waits, drafts, alpha: at(found(network, waits, drafts))

    def nearly(network, waits, drafts, alpha):
        return _nearly(found(network, waits, drafts))[1]

    def cheapest(network, waits, drafts, alpha):
        return found(network, waits, drafts)[-1][1]

    def dearer(**at):
        return nearly(**at) / cheapest(**at)

    def top(network, waits, drafts, alpha):
        return found(network, waits, drafts)[0][0]

    share = f"{100 * NEARLY:.0f} %"
    says = (
        f"{share} of the top speed costs {{0}} times what the cheapest token does. The wall: {{1}} tokens/s"
    )
    return Explorer(
        "What makes the slope, and what the wall",
        [
            Kind("network", "Bandwidth of the network", {"as in the paper": False, "without limit": True}),
            Kind("waits", "Launches and latencies", {name: name for name in figures_model.WAITS}),
            Kind("drafts", "Drafts", {"none": False, f"by {draft.name}": True}),
            ALPHA,
        ],
        [
            explorer.Trade(
                told,
                lambda x, y, alpha: alpha * log(x) - log(y),
                Axis("speed", "tokens/s", 10, 400),
                Axis("price", "$ per million", 0.04, 150),
                {f"{share} of the top": mark(_nearly)},
                title=f"{model.name} on {chip.name}s; dashed, as in the paper",
            ),
            Sentence(
                {"times the cheapest": (dearer, "1"), "the wall": (top, "1")},
                ((10, f"Hardly a slope. {says}."), (None, f"A long slope. {says}.")),
            ),
        ],
    )


ALPHA = Slider("alpha", "A customer's α", 0.5, 8, 3)
NEARLY = 0.9  # of the top speed: next to the wall


def _frontier(model, chip, draft, network, waits, drafts):
    """The points of a frontier, fastest first."""
    curve = figures_model.switched(
        model, chip, network, figures_model.WAITS[waits], draft if drafts else None
    )
    return list(zip(curve.tokens_per_second.tolist(), curve.usd_per_million.tolist(), strict=True))


def _nearly(points):
    """The cheapest point of nearly the top speed."""
    return min((p for p in points if p[0] >= NEARLY * points[0][0]), key=lambda p: p[1])


def _told(points):
    """The points that a picture shows, in six digits: some evenly spread, and all that any customer prefers."""
    points = [p for p in points if p[0] >= 10]
    logs = np.log(points)
    way = np.cumsum(np.hypot(*np.diff(logs, axis=0, prepend=logs[:1]).T))
    places = set(np.searchsorted(way, np.linspace(0, way[-1] * (1 - 1e-9), 40)).tolist())
    alphas = np.linspace(ALPHA.low, ALPHA.high, 76)
    places |= {int((alpha * logs[:, 0] - logs[:, 1]).argmax()) for alpha in alphas}
    return [tuple(float(f"{value:.6g}") for value in points[k]) for k in sorted(places)]
