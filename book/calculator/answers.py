"""How the calculator asks each source: one question, in the records of the library, on numbers or on symbols.

Most sources answer with their ``decode_step`` as it is. Where a source chooses a layout by a search that is too
large for a page, a few whole-number layouts are offered here, and the page takes the best of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, make_dataclass
from importlib import import_module

from inferlib.equation import quantity
from inferlib.explorer import Search
from inferlib.ops import as_written, maximum, minimum, where
from inferlib.serving import constants
from inferlib.serving.kernels import Kernel, Link
from inferlib.system import Accelerator, Breakdown, System, Workload

DOMAINS = {"": True, "several domains": False}


# The constants of the sixth model that a chip brings with it: kind, number format, constant.
_SIZES = ("bf16", "fp8", "fp8 block", "fp4")
_KERNELS = [
    *((kind, size, name) for kind in ("gemm", "experts") for size in _SIZES for name in ("start", "share")),
    *(("gemm", size, name) for size in _SIZES for name in ("depth", "prefill")),
    *(("attention", size, name) for size in ("bf16", "fp8") for name in ("start", "share", "prefill")),
]
_LINKS = [("reduce", n, name) for n in (2, 4, 8) for name in ("latency", "bandwidth")]
_UNITS = {"start": "s", "latency": "s", "depth": "s", "bandwidth": "B/s"}


def _field(kind, size, name):
    return f"{kind}_{size}_{name}".replace(" ", "_")


def _constant(kind, size, name):
    told = quantity(_UNITS.get(name, "1"), f"{name} of {kind} ({size})", default=None, zero=True)
    return _field(kind, size, name), float, told


Offered = make_dataclass(
    "Offered",
    [
        ("gpu", float, quantity("1", "1 for a GPU, 0 for another accelerator", default=1, zero=True)),
        *(_constant(*place) for place in (*_KERNELS, *_LINKS)),
    ],
    bases=(Accelerator,),
    frozen=True,
    eq=False,
    namespace={"__doc__": "A chip that the page offers, with what the sixth model knows of its operators."},
)


def offered(chip, gpu):
    """A chip of the catalogue as the page offers it; ``gpu`` is 1 for those that Erdil's network describes."""
    known = constants.operators(chip.name)
    found = {_field(*at): getattr(known.kernel(at[0], at[1]), at[2]) for at in _KERNELS}
    # beyond the degrees that were timed, the last one
    links = {n: known.reduce[min(n, max(known.reduce))] for n in (2, 4, 8)}
    found |= {_field(*at): getattr(links[at[1]], at[2]) for at in _LINKS}
    # a chip without bfloat16 multiplies 16-bit weights at its other 16-bit peak
    peaks = {**chip.peaks, "bf16": chip.peaks.get("bf16", chip.flops)}
    return Offered(**vars(chip) | {"peaks": peaks}, gpu=gpu, **found)


def sixth():
    """The sixth model on one tensor-parallel instance, with the operators of the chip that the page offers."""
    return Answer(
        "inferlib.serving", "decode_step", step=_sixth_step,
        besides="Here an engine that serves, weights of one size, head and router at 16 bits.",
    )  # fmt: skip


def _sixth_step(model, system, workload, option, function):
    chip = system.chip

    def kernel(kind, bytes, **names):
        eight = "fp8 block" if model.sparse and kind != "attention" else "fp8"

        def pick(name):
            sixteen, small = (getattr(chip, _field(kind, size, name)) for size in ("bf16", eight))
            if kind != "attention":
                small = where(bytes > 0.75, small, getattr(chip, _field(kind, "fp4", name)))
            return where(bytes > 1.5, sixteen, small)

        return Kernel(**{name: pick(name) for name in names["constants"]})

    weights, cache = workload.weights, workload.cache
    made = kernel("gemm", weights, constants=("start", "share", "depth"))
    long = where(
        chip.flops > chip.peaks.get("bf16", chip.flops),
        chip.gemm_fp8_prefill,
        chip.gemm_bf16_prefill,
    )
    asked = constants.one_kernel(
        gemm=made.replace(prefill=long),
        attention=kernel("attention", cache, constants=("start", "share", "prefill")),
        experts=kernel("experts", weights, constants=("start", "share")),
        reduce={
            n: Link(getattr(chip, f"reduce_{n}_latency"), getattr(chip, f"reduce_{n}_bandwidth"))
            for n in (2, 4, 8)
        },
    )
    return function(model, system, workload, operators=asked)


@dataclass(frozen=True)
class Answer:
    """Where a source answers, and what the page chooses among.

    Parameters
    ----------
    room : str
        The module that answers.
    name : str
        Its function; also what :func:`book.calculator.about` quotes.
    options : Mapping
        Label to a layout (or whether all chips share a domain), of which the page takes the fastest.
    step, spare : callable, optional
        Of model, system, workload and an option: the answer, and what is left of the scarcest resource (below
        zero the option is none; None where the source does not describe the model). The function of that
        name, and nothing, when not given.
    besides : str
        What the page says beside the function's own words, such as which layouts it does not try.
    """

    room: str
    name: str = "decode_step"
    options: Mapping | None = None
    step: Callable | None = None
    spare: Callable | None = None
    besides: str = ""

    @property
    def function(self):
        """The function that answers, from its room."""
        return getattr(import_module(self.room), self.name)

    def search(self):
        """What the page draws as this source's bar."""
        if self.options is None:
            return Search(self._in_domains, "option", DOMAINS, spare=_domain_left)
        return Search(self._chosen, "option", self.options, spare=self._left)

    def _in_domains(self, option, **at):
        with as_written():
            asked = _asked(inside=option, memory=False, **at)
            return self.step(*asked, option, self.function) if self.step else self.function(*asked)

    def _chosen(self, option, **at):
        with as_written():
            step = self.step or _as_it_is
            return step(*_asked(inside=_inside(option), **at), option, self.function)

    def _left(self, option, **at):
        # the memory of all chips is the calculator's own limit, told once and not by every source
        if self.spare is None:
            return None
        with as_written():
            return self.spare(*_asked(inside=_inside(option), **at), option)


def _as_it_is(model, system, workload, option, function):
    return function(model, system, workload)


def _inside(option):
    """Whether the domain is that of all chips; layouts that do not say so are given the chip's."""
    return option if isinstance(option, bool) else None


def _asked(kind, chip, precision, n_chips, batch, context, inside, price=None, memory=True, **shape):
    """What is asked of a source: model, system and workload, on numbers or on symbols."""
    flops = where(precision.eight_bit > 0.5, chip.peaks.get("fp8"), chip.flops)
    # Whether it fits is asked once, of the model's own numbers, and not of every source.
    chip = chip.replace(flops=flops, **({} if memory else {"memory_capacity": None}))
    domain = n_chips if inside else minimum(n_chips, chip.scale_up_size)
    system = System(chip, n_chips, domain=domain)
    return (kind(shape), system, Workload(batch, context, precision.weights, precision.cache))


def _domain_left(option, n_chips, chip, **at):
    return chip.scale_up_size - n_chips if option else n_chips - chip.scale_up_size - 1


def _least(*values):
    least, *others = values
    for value in others:
        least = minimum(least, value)
    return least


# --- Pope et al. 2022: weight-stationary in one or two dimensions, the cache over heads or over the batch ----


def pope2022():
    """The layouts of the first source that cuts a model; those of its own search whose X is a small power of 2."""
    options = {}
    for attention, cache in (("Head", "heads"), ("Batch", "batch")):
        options[f"1D, cache over {cache}"] = ("WS 1D", 1, attention)
        options |= {f"2D with X = {x}, cache over {cache}": ("WS 2D", x, attention) for x in (2, 4, 8)}
    return Answer(
        "inferlib.papers.pope2022.decode", "decode_step", options, _pope_step, _pope_left,
        "Here X is 2, 4 or 8, and the fastest cut is taken; the chapter tries every X and takes the one that "
        "moves least.",
    )  # fmt: skip


def _pope_records(model, system, workload, option):
    from inferlib.papers.pope2022.records import Mesh, chip_of, model_of

    layout, x, attention = option
    mesh = Mesh(system.count) if layout == "WS 1D" else Mesh(x, 1, maximum(system.count / x, 1))
    shape = model_of(model, workload.weights, workload.cache)
    return (shape, chip_of(system.chip), mesh, layout, attention, workload.batch, workload.context)


def _pope_step(model, system, workload, option, function):
    from inferlib.papers.pope2022.decode import stages_in

    try:
        at = _pope_records(model, system, workload, option)
    except ValueError as refused:
        reason = str(refused).removeprefix("this model: ")
        return Breakdown(status="n/a", reason=reason, source="pope2022")
    return Breakdown(stages_in(*at), source="pope2022")


def _pope_left(model, system, workload, option):
    from inferlib.papers.pope2022.equations.costs import weights_on_chip
    from inferlib.papers.pope2022.equations.layouts import cache_on_chip

    n, (_, x, attention) = system.count, option
    if model.sparse:
        return None
    heads = model.n_kv_heads
    # the source cuts the cache over heads where they suffice, or where the batch does not fill the chips
    over_heads = maximum(heads - n, minimum(n, heads) - workload.batch)
    rule = over_heads if attention == "Head" else -over_heads - 1
    shape, chip, mesh, layout, _, batch, context = _pope_records(model, system, workload, option)
    cache = cache_on_chip(shape, mesh, layout, attention, batch, context)
    room = chip.memory_capacity - weights_on_chip(shape, n) - cache
    return _least(n - x, -(n % x), system.chip.scale_up_size - n, rule, room)


# --- Erdil 2025, the complete model: one- and two-dimensional cuts, stages, attention on fewer GPUs ---------


def erdil2025():
    """Six of the layouts that the complete model searches, those with whole numbers."""
    from inferlib.papers.erdil2025 import Cut

    cuts = [Cut(s, z, kind) for s, z in ((1, 1), (1, 8), (2, 1)) for kind in ("1D", "2D")]
    options = {_named(cut): cut for cut in cuts}
    return Answer(
        "inferlib.papers.erdil2025", "decode_step", options, _erdil_step, _erdil_left,
        "It counts launching kernels, latency and bandwidth of every collective, all reading and all arithmetic. "
        "Here one or two pipeline stages, or attention on an eighth of the GPUs; the chapter searches real "
        "numbers between.",
    )  # fmt: skip


def _named(cut):
    stages = f", {cut.stages} stages" if cut.stages > 1 else ""
    return cut.kind + stages + (f", attention on 1/{cut.scale_down}" if cut.scale_down > 1 else "")


def _erdil_step(model, system, workload, cut, function):
    from inferlib.papers.erdil2025 import Assumptions, chip_of, model_of
    from inferlib.papers.erdil2025.decode import terms

    shape = model_of(model, workload.weights, workload.cache).shape
    gpu = chip_of(system.chip).replace(flops=system.chip.flops)
    at = (shape, gpu, cut, system.count, workload.batch, workload.context, 1, Assumptions())
    return Breakdown(terms(*at, together=True), source="erdil2025")


def _erdil_left(model, system, workload, cut):
    parts = cut.stages * cut.scale_down
    described = system.chip.gpu - 1
    # one kind of layer stands for all: that of most layers, which must be the last
    first, last = model.layers[0], model.layers[-1]
    most = last.count - first.count if len(model.layers) > 1 else 0
    return _least(described, most, system.count - parts, workload.batch - cut.stages, -(system.count % parts))


# --- LIMINAL 2025 and Mazurek & Schreiber 2025: their own layouts, where they describe them -------------------


def liminal2025():
    """One tensor-parallel domain, up to the ports of the source's switch."""
    return Answer("inferlib.papers.liminal2025.decode", options={"": None}, spare=_liminal_left)


def _liminal_left(model, system, workload, option):
    from inferlib.papers.liminal2025.equations import capacity_needed
    from inferlib.papers.liminal2025.records import PRINTED, model_of

    counted = PRINTED.replace(weight_bytes=workload.weights, cache_bytes=workload.cache)
    needed = capacity_needed(model_of(model, counted), workload.batch, workload.context, counted)
    return _least(counted.radix - system.count, system.memory - needed)


def mazurek2025():
    """Experts over all GPUs, on one node or on several full ones."""
    return Answer(
        "inferlib.papers.mazurek2025.decode", options=DOMAINS, spare=_mazurek_left,
        besides="It describes mixtures of experts with latent attention only, and nodes that are full; two halves "
        "of the batch overlap network and computation.",
    )  # fmt: skip


def _mazurek_left(model, system, workload, inside):
    from inferlib.papers.mazurek2025.decode import memory_left
    from inferlib.papers.mazurek2025.records import not_described

    if not_described(model):
        return None
    chip, n, size = system.chip, system.count, system.chip.scale_up_size
    # a chip that does not multiply 8 bits is not described; what fits into its memory can be asked all the same
    peak = chip.peaks.get("fp8") or 0
    system = system.replace(chip=chip.replace(peaks={"bf16": chip.flops, "fp8": chip.flops}))
    nodes = size - n if inside else _least(n - size - 1, -(n % size))
    return _least(peak - 1, nodes, memory_left(model, system, workload))
