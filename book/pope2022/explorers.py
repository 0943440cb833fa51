"""Pope et al. 2022: what a reader can move in the page."""

from book.pope2022 import evidence
from inferlib import load_chip, load_model
from inferlib.explorer import Choice, Slider, breakdown, curves, memory
from inferlib.papers.pope2022.decode import decode_step
from inferlib.papers.pope2022.equations import layouts
from inferlib.papers.pope2022.records import EXACT, Mesh, load_model as paper_model, model_of
from inferlib.system import System, Workload


def switch():
    """What each layout moves over the tokens of the batch: where would the reader switch?"""
    models = {
        "PaLM 540B, 64 heads": evidence.palm(),
        "PaLM 62B": paper_model("PaLM 62B"),
        # one pair of collectives, the feed-forward layer's, as the paper's formulas have it
        "MT-NLG 530B": paper_model("MT-NLG 530B").replace(parallel=True),
        "Llama 3 70B": model_of(load_model("Llama 3 70B"), parallel=True),
    }

    def moved(layout):
        # bytes through a chip: the time of one layer at a bandwidth of one
        def megabytes(tokens, x, y, z, weight, model):
            shape = model.replace(weight_bytes=weight)
            mesh = Mesh(x, y, z)
            # with the factor (K - 1)/K, so that a chip alone moves nothing; the switch points are the same
            seconds = layouts.TIMES[layout](shape, evidence.TPU, mesh, tokens, EXACT)
            return seconds * evidence.TPU.network_bandwidth

        return megabytes

    return curves(
        "Which layout moves least?",
        [
            Slider("tokens", "Tokens in the batch", 256, 8388608, 18432, log=True),
            Slider("x", "Chips along X", 1, 16, 4, whole=True),
            Slider("y", "Chips along Y", 1, 16, 4, whole=True),
            Slider("z", "Chips along Z", 1, 16, 4, whole=True),
            Slider("weight", "Bytes of a weight", 0.5, 2, 2),
            Choice("model", "Model", models),
        ],
        {name: moved(name) for name in layouts.TIMES},
        x="tokens",
        y_label="megabytes through a chip, one layer",
        unit="MB",
        log_y=True,
    )


def decode():
    """The running question at any batch and context, on eight chips of a kind."""
    llama = load_model("Llama 3 70B")

    def step(batch, context, chip):
        return decode_step(llama, System(chip, 8, domain=8), Workload(batch=batch, context=context))

    chips = {name: load_chip(name) for name in ("H100 SXM", "H200", "B200")}

    return breakdown(
        "Llama 3 70B on eight chips",
        [
            Slider("batch", "Batch", 8, 256, 32, log=True, whole=True),
            Slider("context", "Context", 128, 32768, 4096, log=True, whole=True),
            Choice("chip", "Chip", chips),
        ],
        step,
        limits=memory(
            lambda batch, context, **at: llama.bytes_held(batch, context), 8, "Memory for weights and cache"
        ),
    )
