"""Explorers of Pope et al. 2022."""

from book.explorer import Choice, Curves, Explorer, Sentence, Slider, sizes
from book.papers.pope2022 import evidence
from inferlib import load_model
from inferlib.papers import pope2022 as pope


def switch(model, mesh, tokens):
    """Explorer of what each layout moves over the tokens of the batch, in which the reader finds the switch points.

    It opens with a model, a mesh and a number of tokens.
    """
    models = {
        f"{model.name}, {model.heads:.0f} heads": model,
        "PaLM 62B": pope.load_model("PaLM 62B"),
        # one pair of collectives of the feed-forward layer, as in the paper's formulas
        "MT-NLG 530B": pope.load_model("MT-NLG 530B").replace(parallel=True),
        "Llama 3 70B": pope.load_model(load_model("Llama 3 70B"), parallel=True),
    }

    def moved(layout):
        # bytes through a chip: the time of one layer at a bandwidth of one
        def megabytes(tokens, x, y, z, weight, model, **at):
            shape = model.replace(weight_bytes=weight)
            mesh = pope.Mesh(x, y, z)
            # with the factor (K - 1)/K, so that a chip alone moves nothing; the switch points are the same
            seconds = pope.layer_time(shape, evidence.TPU, mesh, tokens, layout, pope.EXACT)
            return seconds * evidence.TPU.scale_up_bandwidth

        return megabytes

    def hands_over(tokens, x, y, z, weight, model, **at):
        return pope.switch_to_x(model.replace(weight_bytes=weight), pope.Mesh(x, y, z)) / tokens

    return Explorer(
        "Which layout moves least?",
        [
            Slider("x", "Chips along X", 1, 16, mesh.x, whole=True),
            Slider("y", "Chips along Y", 1, 16, mesh.y, whole=True),
            Slider("z", "Chips along Z", 1, 16, mesh.z, whole=True),
            Slider("tokens", "Tokens in the batch", 1, 4194304, tokens, log=True, whole=True),
            Choice("weight", "Weights", sizes(model.weight_bytes)),
            Choice("model", "Model", models),
        ],
        [
            Sentence(
                {"tokens of the switch over those of the batch": (hands_over, "1")},
                (
                    (1, "More tokens than the switch from 2D to gathered weights: let the weights travel."),
                    (
                        None,
                        "{0} times as many tokens would bring the switch to gathered weights: leave them still.",
                    ),
                ),
            ),
            Curves(
                {name: moved(name) for name in pope.LAYOUTS},
                "tokens",
                "MB through a chip, one layer",
                "MB",
                log_y=True,
            ),
        ],
    )
