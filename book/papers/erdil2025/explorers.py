"""Explorers of Erdil 2025."""

from book.explorer import (
    Bars,
    Choice,
    Curves,
    Explorer,
    Limit,
    Slider,
    StructureChoice,
    first,
    formats,
    memory,
    sizes,
)
from book.papers.erdil2025.drawings import best
from inferlib import catalog
from inferlib.papers.erdil2025 import decode
from inferlib.papers.erdil2025.equations import toy
from inferlib.papers.erdil2025.equations.model import capacity_needed
from inferlib.papers.erdil2025.records import Cut, computing_at, load_chip, load_model, models
from inferlib.system import Breakdown, format_bytes
from inferlib.units import factor

PAPERS = "H100, the paper's"
H100 = load_chip("H100")
_CHIPS = {PAPERS: H100} | {n: catalog.load_chip(n) for n in ("A100 80GB", "H100 SXM", "H200", "B200")}
_MODELS = {name: load_model(name) for name in ("Llama 3 70B", "Llama 3 8B", "GPT-3", "PaLM-540B", "GPT-4")}


def waiting_against_reading(model, chip, hop):
    """Explorer of the toy model: its terms over the instance size, and one token; opens with the given values."""

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
        # GPUs continue to read while they wait; multiplying comes afterwards.
        after = waits | {"arithmetic": overlapping["arithmetic"]}
        return Breakdown(({"memory": {"weights": overlapping["weights"]}, "the rest": after},))

    most, least = 512, 0.1
    size = min(round(best(model, chip, hop)[0]), most)
    outputs = {"weights": reading, "network": network, "token": latency}
    return Explorer(
        "Waiting against reading",
        [
            Slider("n_gpu", "GPUs in the instance", 1, most, size, log=True),
            Slider("batch", "Batch", 1, 4096, 1, log=True),
            Slider("hop", "Time of one hop", least, 10, max(hop / factor("us"), least), "µs", log=True),
            Slider("base", "Base latency of an all-reduce", 0, 20, 0, "µs"),
            Choice("bits", "Weights", sizes(model.weight_bytes)),
            StructureChoice("ahead", "Reading while waiting", {"no, as in the paper": False, "yes": True}),
            Choice("model", "Model", first(model, _MODELS)),
            Choice("chip", "Chip", {f"{chip.name}, as above": chip} | _CHIPS),
        ],
        [
            Curves(outputs, "n_gpu", "milliseconds per token", "ms", True, least="token"),
            Bars({"": step}, "ms"),
        ],
        limits=memory(lambda bits, model, **at: bits * model.n_params, "n_gpu"),
    )


_SHAPES = {name: load_model(name).shape for name in models() if "bit" not in name and "MQA" not in name}
_GPUS = {
    name: load_chip(catalog.load_chip(name)) for name in ("H100 SXM", "H200", "B200", "A100 80GB", "MI300X")
}
ONE_WAY = Cut(kind="1D")


def one_layout(model, chip, gpus, batch, context, cut, assumptions):
    """Explorer of one token's time in one layout, at first ``cut``; the menu offers one way over all GPUs too."""
    mine, cut = model.shape, cut or ONE_WAY
    sparse = mine.n_experts > 1

    def shape(model, bits, cache):
        experts = {} if sparse else {"n_experts": 1, "n_active": 1}
        return model.replace(weight_bytes=format_bytes(bits), activation_bytes=cache, **experts)

    def passed(gpus, batch, context, bits, cache, model, chip, layout):
        one = shape(model, bits, cache)
        at = one, computing_at(chip, one), layout, gpus, batch, context, 1
        return Breakdown(decode.terms(*at, assumptions, split=False))

    def held(batch, context, bits, cache, model, layout, **at):
        return capacity_needed(shape(model, bits, cache), context, batch / layout.stages, batch, assumptions)

    def room(name, parts):
        return Limit(
            lambda layout, **at: parts(layout), lambda **at: at[name], "1", True, "Out of the layout's reach"
        )

    named = PAPERS if chip == H100 else f"{chip.name}, as above"
    # structure that the page cannot change: experts or none, and the kind of attention
    alike = {n: s for n, s in _SHAPES.items() if (s.n_experts > 1, s.latent) == (sparse, mine.latent)}
    layouts = {"as above": cut} if cut != ONE_WAY else {}
    return Explorer(
        "One layout",
        [
            Slider("gpus", "GPUs in the instance", 2, 256, gpus, log=True),
            Slider("batch", "Batch", 1, 1024, batch, log=True),
            Slider("context", "Context", 1, 131_072, context, "tokens", log=True),
            StructureChoice("bits", "Weights", formats(mine.weight_bytes)),
            Choice("cache", "Cache and activations", sizes(mine.activation_bytes, least=1)),
            Choice("model", "Model", first(mine, alike)),
            Choice("chip", "GPU", {named: chip} | _GPUS),
            StructureChoice("layout", "Layout", layouts | {"one way, on all GPUs": ONE_WAY}),
        ],
        [Bars({"": passed})],
        limits=memory(held, "gpus") | {
            "GPUs that the layout needs": room("gpus", lambda cut: cut.stages * cut.scale_down),
            "Sequences that its stages need": room("batch", lambda cut: cut.stages),
        },
        asks={"weights": "bits", "n_chips": "gpus", "names": {PAPERS: "H100 SXM"}},
    )  # fmt: skip
