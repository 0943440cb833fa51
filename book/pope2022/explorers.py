"""Pope et al. 2022: what a reader can move in the page."""

from book import style
from book.explorer import Chips, Choice, Curves, Explorer, Kind, Limit, Sentence, Slider
from book.pope2022 import evidence
from book.pope2022.schedules import AXES, Move, schedule
from inferlib import load_model
from inferlib.ops import minimum
from inferlib.papers import pope2022 as pope

WEIGHTS = {"16 bits": 2.0, "8 bits": 1.0, "4 bits": 0.5}  # bytes of a value
_LARGEST = 256  # chips of the paper's largest mesh (section 4)


def _exchanges(layout):
    """Axes over which the paper's layer gathers, scatters and fetches: of each pair of activations, of weights."""
    plan = schedule(layout)
    moves, fetches = ([s.axes for s in plan[of] if isinstance(s, Move)] for of in ("activations", "weights"))
    return moves, "".join(fetches)


def _along(axes, x, y, z):
    """Chips along each axis that is named, 1 along the others."""
    return tuple(n if axis in axes else 1 for axis, n in zip(AXES, (x, y, z), strict=True))


def _group(axes, x, y, z):
    """Chips that exchange over these axes."""
    a, b, c = _along(axes, x, y, z)
    return a * b * c


def _activations(layout, model, mesh, tokens):
    """Bytes of activations through a chip, one layer."""
    weight_stationary = {"WS 1D": pope.ws1d_volume, "WS 2D": pope.ws2d_volume}
    if layout in weight_stationary:
        volume = weight_stationary[layout](model, mesh, tokens, pope.EXACT)
    else:
        fetched = _group(_exchanges(layout)[1], mesh.x, mesh.y, mesh.z)
        volume = pope.gathered_activation_volume(model, mesh, tokens, fetched, pope.EXACT)
    return volume * model.activation_bytes


def _weights(layout, model, mesh):
    """Bytes of weights through a chip, one layer."""
    fetched = _group(_exchanges(layout)[1], mesh.x, mesh.y, mesh.z)
    return pope.gathered_weight_volume(model, mesh, fetched, pope.EXACT) * model.weight_bytes


def _mesh_drawn():
    """All chips, what each holds of one matrix, with whom the one in the middle exchanges, and what moves."""

    def bytes_of(counted, layers=False):
        def moved(tokens, x, y, z, weight, model, layout):
            shape, mesh = model.replace(weight_bytes=weight), pope.Mesh(x, y, z)
            return counted(layout, shape, mesh, tokens) * (shape.layers if layers else 1)

        return moved

    def weights(layout, model, mesh, tokens):
        return _weights(layout, model, mesh)

    def both(layout, model, mesh, tokens):
        return _activations(layout, model, mesh, tokens) + _weights(layout, model, mesh)

    # an exchange among one chip is none
    def exchanges(x, y, z, layout, **at):
        return sum(minimum(_group(axes, x, y, z) - 1, 1) for axes in _exchanges(layout)[0])

    def fetches(x, y, z, layout, **at):
        matrices = {step.name for step in schedule(layout)["weights"] if not isinstance(step, Move)}
        return len(matrices) * minimum(_group(_exchanges(layout)[1], x, y, z) - 1, 1)

    def cut(side):
        def parts(x, y, z, layout, **at):
            return _along(getattr(schedule(layout)["weights"][0], side), x, y, z)

        return parts

    def exchange(k):
        def reach(x, y, z, layout, **at):
            return _along("".join(_exchanges(layout)[0][k : k + 1]), x, y, z)

        return reach

    activations, weighed, held = "activations moved", "weights moved", "of the matrix on a chip"
    return Chips(
        {
            activations: (bytes_of(_activations), "MB"),
            "times that they are exchanged": (exchanges, "1"),
            weighed: (bytes_of(weights), "MB"),
            "matrices fetched": (fetches, "1"),
            "both, all layers": (bytes_of(both, layers=True), "GB"),
            held: (lambda x, y, z, **at: 1 / (x * y * z), "%"),
        },
        lambda x, y, z, **at: (x, y, z),
        cut("row_axes"),
        cut("column_axes"),
        lambda x, y, z, layout, **at: _along(_exchanges(layout)[1], x, y, z),
        # 2D exchanges over YZ, then over X; the second half of its four goes the same ways back
        (exchange(0), exchange(1)),
        {activations: style.RED, weighed: style.SKY, held: style.BLUE},
        "One layer: a matrix, its pieces on all chips, what a chip moves",
    )


def switch(model=None, mesh=None, tokens=64):
    """What each layout moves over the tokens of the batch: where would the reader switch?

    The box opens with a model, a mesh and a number of tokens: PaLM 540B on 64 chips where none is given.

    Above the curves is drawn how one of the layouts cuts a matrix over the mesh, and who exchanges what with whom.
    """
    model, mesh = model or evidence.palm(), mesh or pope.load_mesh(evidence.SLICE)
    models = {
        f"{model.name}, {model.heads:.0f} heads": model,
        "PaLM 62B": pope.load_model("PaLM 62B"),
        # one pair of collectives, the feed-forward layer's, as the paper's formulas have it
        "MT-NLG 530B": pope.load_model("MT-NLG 530B").replace(parallel=True),
        "Llama 3 70B": pope.model_of(load_model("Llama 3 70B"), parallel=True),
    }

    def moved(layout):
        # bytes through a chip: the time of one layer at a bandwidth of one
        def megabytes(tokens, x, y, z, weight, model, **at):
            shape = model.replace(weight_bytes=weight)
            mesh = pope.Mesh(x, y, z)
            # with the factor (K - 1)/K, so that a chip alone moves nothing; the switch points are the same
            seconds = pope.layer_time(shape, evidence.TPU, mesh, tokens, layout, pope.EXACT)
            return seconds * evidence.TPU.network_bandwidth

        return megabytes

    drawable = Limit(
        lambda x, y, z, **at: x * y * z,
        lambda **at: _LARGEST,
        "1",
        says="More chips than the paper's largest mesh has",
    )

    def hands_over(tokens, x, y, z, weight, model, **at):
        return pope.switch_to_x(model.replace(weight_bytes=weight), pope.Mesh(x, y, z)) / tokens

    order = sorted(
        pope.LAYOUTS, key=lambda name: name != "WS 2D"
    )  # the box opens with the cut that decode takes
    return Explorer(
        "Which layout moves least?",
        [
            Kind("layout", "Layout drawn", {name: name for name in order}),
            Slider("x", "Chips along X", 1, 16, 1, whole=True).at(mesh.x),
            Slider("y", "Chips along Y", 1, 16, 1, whole=True).at(mesh.y),
            Slider("z", "Chips along Z", 1, 16, 1, whole=True).at(mesh.z),
            Slider("tokens", "Tokens in the batch", 1, 4194304, 1, log=True, whole=True).at(tokens),
            Choice("weight", "Weights", WEIGHTS),
            Choice("model", "Model", models),
        ],
        [
            _mesh_drawn(),
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
        limits={"Chips, of the largest mesh": drawable},
    )
