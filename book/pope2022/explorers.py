"""Pope et al. 2022: what a reader can move in the page."""

from book.pope2022 import evidence
from book.pope2022.schedules import AXES, Move, schedule
from inferlib import load_chip, load_model, style
from inferlib.explorer import Chips, Choice, Curves, Explorer, Kind, Limit, Slider, breakdown, memory
from inferlib.ops import minimum
from inferlib.papers.pope2022.decode import decode_step
from inferlib.papers.pope2022.equations import layouts
from inferlib.papers.pope2022.records import EXACT, Mesh, load_model as paper_model, model_of
from inferlib.system import System, Workload

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
    weight_stationary = {"WS 1D": layouts.ws1d_volume, "WS 2D": layouts.ws2d_volume}
    if layout in weight_stationary:
        volume = weight_stationary[layout](model, mesh, tokens, EXACT)
    else:
        fetched = _group(_exchanges(layout)[1], mesh.x, mesh.y, mesh.z)
        volume = layouts.gathered_activation_volume(model, mesh, tokens, fetched, EXACT)
    return volume * model.activation_bytes


def _weights(layout, model, mesh):
    """Bytes of weights through a chip, one layer."""
    fetched = _group(_exchanges(layout)[1], mesh.x, mesh.y, mesh.z)
    return layouts.gathered_weight_volume(model, mesh, fetched, EXACT) * model.weight_bytes


def _mesh_drawn():
    """All chips, what each holds of one matrix, with whom the one in the middle exchanges, and what moves."""

    def bytes_of(counted, layers=False):
        def moved(tokens, x, y, z, weight, model, layout):
            shape, mesh = model.replace(weight_bytes=weight), Mesh(x, y, z)
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
        {activations: style.ORANGE, weighed: style.SKY, held: style.BLUE},
        "One layer: a matrix, its pieces on all chips, what a chip moves",
    )


def switch():
    """What each layout moves over the tokens of the batch: where would the reader switch?

    Above the curves is drawn how one of the layouts cuts a matrix over the mesh, and who exchanges what with whom.
    """
    models = {
        "PaLM 540B, 64 heads": evidence.palm(),
        "PaLM 62B": paper_model("PaLM 62B"),
        # one pair of collectives, the feed-forward layer's, as the paper's formulas have it
        "MT-NLG 530B": paper_model("MT-NLG 530B").replace(parallel=True),
        "Llama 3 70B": model_of(load_model("Llama 3 70B"), parallel=True),
    }

    def moved(layout):
        # bytes through a chip: the time of one layer at a bandwidth of one
        def megabytes(tokens, x, y, z, weight, model, **at):
            shape = model.replace(weight_bytes=weight)
            mesh = Mesh(x, y, z)
            # with the factor (K - 1)/K, so that a chip alone moves nothing; the switch points are the same
            seconds = layouts.TIMES[layout](shape, evidence.TPU, mesh, tokens, EXACT)
            return seconds * evidence.TPU.network_bandwidth

        return megabytes

    drawable = Limit(
        lambda x, y, z, **at: x * y * z,
        lambda **at: _LARGEST,
        "1",
        says="More chips than the paper's largest mesh has",
    )
    return Explorer(
        "Which layout moves least?",
        [
            Kind("layout", "Layout drawn", {name: name for name in layouts.TIMES}),
            Slider("x", "Chips along X", 1, 16, 4, whole=True),
            Slider("y", "Chips along Y", 1, 16, 4, whole=True),
            Slider("z", "Chips along Z", 1, 16, 4, whole=True),
            Slider("tokens", "Tokens in the batch", 256, 4194304, 18432, log=True),
            Slider("weight", "Bytes of a weight", 0.5, 2, 2),
            Choice("model", "Model", models),
        ],
        [
            _mesh_drawn(),
            Curves(
                {name: moved(name) for name in layouts.TIMES},
                "tokens",
                "megabytes through a chip, one layer",
                "MB",
                log_y=True,
            ),
        ],
        limits={"Chips": drawable},
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
