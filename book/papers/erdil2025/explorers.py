"""Erdil 2025: what a reader can move in the page."""

from functools import partial

import numpy as np

from book import explorer
from book.explorer import Axis, Bars, Choice, Curves, Explorer, Kind, Sentence, Slider, first, memory
from book.papers.erdil2025 import economics
from book.papers.erdil2025.drawings import best
from inferlib import load_chip
from inferlib.ops import log
from inferlib.papers.erdil2025 import decode
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

    size = min(round(best(model, chip, hop)[0]), N_GPU.high)
    outputs = {"weights": reading, "network": network, "token": latency}
    return Explorer(
        "Waiting against reading",
        [
            N_GPU.at(size),
            Slider("batch", "Batch", 1, 4096, 1, log=True),
            HOP.at(max(hop / factor("us"), HOP.low)),
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


def one_layout(model=models["Llama 3 70B"], chip=chips["H100"], gpus=8, batch=32, context=4096):
    """Where the time of one token goes in a one-dimensional layout with the low-latency protocol."""

    def shape(model, bits, cache):
        return model.replace(weight_bytes=format_bytes(bits), activation_bytes=cache)

    def passed(gpus, batch, context, bits, cache, model, chip):
        dense, at = shape(model, bits, cache).replace(n_experts=1, n_active=1), (gpus, batch, context, 1)
        return Breakdown(decode.terms(dense, chip.at(bits), Cut(kind="1D"), *at, LL_ONLY, split=False))

    def held(batch, context, bits, cache, model, **at):
        return capacity_needed(shape(model, bits, cache), context, batch, batch, WHOLE_CACHE)

    mine = PAPERS if chip == chips["H100"] else f"{chip.name}, as above"
    return Explorer(
        "One layout",
        [
            TIGHT.at(gpus),
            SERVED.at(batch),
            CONTEXT.at(context),
            Kind("bits", "Weights", {"16 bits": "bf16", "8 bits": "fp8", "4 bits": "fp4"}),
            Choice("cache", "Cache and activations", {"16 bits": 2, "8 bits": 1}),
            Choice("model", "Model", first(model.shape, _DENSE)),
            Choice("chip", "GPU", {mine: chip} | _GPUS),
        ],
        [Bars({"": passed})],
        limits=memory(held, "gpus"),
        asks={"weights": "bits", "n_chips": "gpus", "names": {PAPERS: "H100 SXM"}},
    )


def slope_and_wall(
    model=models["Llama 3 70B 8-bit"], chip=chips["H100"], draft=models["Llama 3 8B"], context=4096
):
    """The frontier of a model with what makes its slope and its wall switched off, one by one; at short context or not.

    Each curve is a search over all layouts, done before the page opens; the page finds what a customer prefers.
    """

    found = partial(_frontier, model, chip, draft)

    def told(length, network, waits, drafts, alpha):
        return _told(found(length, network, waits, drafts))

    def mark(at):
        return lambda length, network, waits, drafts, alpha: at(found(length, network, waits, drafts))

    def nearly(length, network, waits, drafts, alpha):
        return _nearly(found(length, network, waits, drafts))[1]

    def cheapest(length, network, waits, drafts, alpha):
        return found(length, network, waits, drafts)[-1][1]

    def dearer(**at):
        return nearly(**at) / cheapest(**at)

    def top(length, network, waits, drafts, alpha):
        return found(length, network, waits, drafts)[0][0]

    share = f"{100 * NEARLY:.0f} %"
    says = (
        f"{share} of the top speed costs {{0}} times what the cheapest token does. The wall: {{1}} tokens/s"
    )
    return Explorer(
        "What makes the slope, and what the wall",
        [
            Kind(
                "length", "Context of each user", {"none, as in the paper": 0, f"{context:,} tokens": context}
            ),
            Kind("network", "Bandwidth of the network", {"as in the paper": False, "without limit": True}),
            Kind("waits", "Launches and latencies", economics.WAITS),
            Kind("drafts", "Drafts", {"none": False, f"by {draft.name}": True}),
            ALPHA,
        ],
        [
            explorer.Trade(
                told,
                lambda x, y, alpha: alpha * log(x) - log(y),
                Axis("speed", "tokens/s", 10, 400),
                Axis("price", "$ per million", 0.04, 200),
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


def _frontier(model, chip, draft, context, network, waits, drafts):
    """The points of a frontier, fastest first."""
    curve = economics.switched(model, chip, context, network, waits, draft if drafts else None)
    return list(zip(curve.tokens_per_second.tolist(), curve.usd_per_million.tolist(), strict=True))


def _nearly(points):
    """The cheapest point of nearly the top speed."""
    return min((p for p in points if p[0] >= NEARLY * points[0][0]), key=lambda p: p[1])


def _told(points):
    """The points that a picture shows, in five digits: some evenly spread, and all that any customer prefers."""
    points = [p for p in points if p[0] >= 10]
    logs = np.log(points)
    way = np.cumsum(np.hypot(*np.diff(logs, axis=0, prepend=logs[:1]).T))
    places = set(np.searchsorted(way, np.linspace(0, way[-1] * (1 - 1e-9), 18)).tolist())
    alphas = np.linspace(ALPHA.low, ALPHA.high, 76)
    places |= {int((alpha * logs[:, 0] - logs[:, 1]).argmax()) for alpha in alphas}
    return [tuple(float(f"{value:.5g}") for value in points[k]) for k in sorted(places)]
