"""How the book asks each source: one question, in the records of the library, on numbers or on symbols.

Most sources answer with their ``decode_step`` as it is. Where a source chooses a layout by a search that is too
large for a page, a few whole-number layouts are offered here, and the page takes the best of them.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from importlib import import_module

from book.calculator import questions, tables
from book.calculator.questions import number, numbers
from book.explorer import outputs
from book.kept import kept
from inferlib.equation import Record, quantity
from inferlib.ops import as_written, maximum, minimum, where
from inferlib.papers.erdil2025 import Cut
from inferlib.papers.erdil2025.decode import terms
from inferlib.papers.erdil2025.records import NO_GPUS
from inferlib.papers.liminal2025.equations import Assumptions
from inferlib.papers.mazurek2025.decode import memory_left
from inferlib.papers.mazurek2025.records import not_described
from inferlib.papers.pope2022 import cache_on_chip, weights_on_chip
from inferlib.papers.pope2022.decode import stages_in
from inferlib.papers.pope2022.records import Mesh, chip_of, model_of, not_described as pope_silent
from inferlib.system import Accelerator, Breakdown, System, Workload
from inferlib.transformer import Attention, Experts, FeedForward, LatentAttention, Layers, Transformer

DOMAINS = {"": True, "several domains": False}


@dataclass(frozen=True, eq=False)
class Precision(Record):
    """Bytes of a weight and of a value in the cache, and whether arithmetic is done at 8 bits."""

    weights: float = quantity("B", "bytes of one weight")
    cache: float = quantity("B", "bytes of one value in the cache")
    eight_bit: float = quantity("1", "1 where arithmetic runs at 8 bits, else 0", zero=True)


@dataclass(frozen=True)
class Answer:
    """Where a source answers, and what the page chooses among.

    ``room``: the module that answers. ``name``: its function; also what :func:`book.calculator.about` quotes.
    ``options``: label to a layout (or whether all chips share a domain), of which the page takes the fastest.
    ``step``, ``spare``: of model, system, workload and an option: the answer, and what is left of the
    scarcest resource (below zero the option is none; None where the source does not describe the model). The
    function of that name, and nothing, when not given. ``besides``: what the page says beside the function's
    own words, such as which layouts it does not try.
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

    def plan(self, name, given, values):
        """The numbers of every layout, appended one after another, and which of them is what."""
        found = []
        for label, option in (DOMAINS if self.options is None else self.options).items():
            if self.options is None:
                step, spare = self._chosen(option, memory=False, **given), _domain_left(option, **given)
            else:
                step, spare = self._chosen(option, **given), self._left(option, **given)
            found.append({"label": label} | outputs.placed(step, values))
            if spare is not None and "na" not in found[-1]:
                found[-1]["spare"] = len(values)
                values.append(spare)
        return {"name": name, "options": found}

    def _chosen(self, option, **at):
        with as_written():
            asked = _asked(inside=_inside(option), **at)
            try:
                return self.step(*asked, option, self.function) if self.step else self.function(*asked)
            except ValueError as refused:
                return Breakdown(status="n/a", reason=re.sub("^(model )?this model:? ", "", str(refused)))

    def _left(self, option, **at):
        # the memory of all chips is the calculator's own limit, told once and not by every source
        if self.spare is None:
            return None
        with as_written():
            return self.spare(*_asked(inside=_inside(option), **at), option)


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
    return reduce(minimum, values)


# --- Pope et al. 2022: weight-stationary in one or two dimensions, the cache over heads or over the batch ----


def pope2022():
    """The layouts of the first source that cuts a model; those of its own search whose X is a small power of 2."""
    options = {}
    for attention, over in (("Head", "heads"), ("Batch", "batch")):
        options[f"1D, cache over {over}"] = ("WS 1D", 1, attention)
        options |= {f"2D with X = {x}, cache over {over}": ("WS 2D", x, attention) for x in (2, 4, 8)}
    return Answer(
        "inferlib.papers.pope2022.decode", "decode_step", options, _pope_step, _pope_left,
        "Here X is 2, 4 or 8, and the fastest cut is taken; the chapter tries every X and takes the one that "
        "moves least.",
    )  # fmt: skip


def _pope_records(model, system, workload, option):
    layout, x, attention = option
    mesh = Mesh(system.count) if layout == "WS 1D" else Mesh(x, 1, maximum(system.count / x, 1))
    shape = model_of(model, workload.weights, workload.cache)
    return (shape, chip_of(system.chip), mesh, layout, attention, workload.batch, workload.context)


def _pope_step(model, system, workload, option, function):
    return Breakdown(stages_in(*_pope_records(model, system, workload, option)), source="pope2022")


def _pope_left(model, system, workload, option):
    n, (_, x, attention) = system.count, option
    if pope_silent(model):
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

    shape = model_of(model, workload.weights, workload.cache).shape
    gpu = chip_of(system.chip).replace(flops=system.chip.flops)
    at = (shape, gpu, cut, system.count, workload.batch, workload.context, 1, Assumptions())
    return Breakdown(terms(*at, split=False), source="erdil2025")


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
    return Answer("inferlib.papers.liminal2025.equations", options={"": None}, spare=_liminal_left)


def equation_8():
    """The version of LIMINAL for servers as they are: a time for every layer, fitted by its authors."""
    return Answer(
        "inferlib.papers.liminal2025.equations", options={"": None}, spare=_liminal_left,
        step=lambda model, system, workload, _, function:
            function(model, system, workload, assumptions=Assumptions.fitted()),
        besides="The same limit, and in place of its collectives 114 µs for every layer: the mean that the authors "
        "fitted to servers of their own. A version of the source, and not another one.",
    )  # fmt: skip


def _liminal_left(model, system, workload, option):
    from inferlib.papers.liminal2025.equations import PRINTED, capacity_needed, model_of

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
    if not_described(model):
        return None
    chip, n, size = system.chip, system.count, system.chip.scale_up_size
    # a chip that does not multiply 8 bits is not described; what fits into its memory can be asked all the same
    peak = chip.peaks.get("fp8") or 0
    system = system.replace(chip=chip.replace(peaks={"bf16": chip.flops, "fp8": chip.flops}))
    nodes = size - n if inside else _least(n - size - 1, -(n % size))
    return _least(peak - 1, nodes, memory_left(model, system, workload))


# One line for each answer: what the page calls it, and how it is asked.
SOURCES = {
    "first principles": Answer("inferlib.principles"),
    "Steinhardt 2022": Answer("inferlib.papers.steinhardt2022"),
    "Pope et al. 2022": pope2022(),
    "Erdil 2025, toy": Answer("inferlib.papers.erdil2025", "toy_decode_step"),
    "Erdil 2025": erdil2025(),
    "LIMINAL 2025": liminal2025(),
    "LIMINAL 2025, eq. 8": equation_8(),
    "Mazurek & Schreiber 2025": mazurek2025(),
}


def about():
    """What each answer is, as its ``decode_step`` says of itself, as a Markdown list."""
    texts, functions = {}, set()
    for name, answer in (SOURCES | {"sixth model": Answer("tokenprice.decode")}).items():
        # a version of a source says only what it adds
        own = "" if answer.function in functions else _prose(answer.function.__doc__)
        functions.add(answer.function)
        texts[name] = f"{own} {answer.besides}"
    return "\n".join(f"- **{name}.** {' '.join(text.split())}" for name, text in texts.items())


def _prose(text):
    """The paragraphs of a docstring before the one on its arguments."""
    return re.sub(r":\w+:`", "`", re.split(r"\n\s*\n\s*``\w+``:", text)[0]).replace("``", "`")


# --- The same as JavaScript, for the shapes of model that sources describe ---------------------------------------


@dataclass(frozen=True, eq=False)
class Offered(Accelerator):
    """A chip, and whether it is a GPU, which Erdil's network is of."""

    gpu: float = quantity("1", "1 for a GPU, 0 for another accelerator", default=1, zero=True)


@cache
def gpus():
    """Which chips of the catalogue are GPUs."""
    return {name: float(not name.startswith(NO_GPUS)) for name in tables.chips()}


def _shapes():
    """Layers in symbols: dense, of experts, and of latent attention with a few dense layers before the experts."""
    plain = Attention(**numbers("l0", ("n_heads", "n_kv_heads", "head_dim")))
    names = ("n_heads", "kv_rank", "nope_dim", "rope_dim", "value_dim", "q_rank")
    latent, block = (
        LatentAttention(**numbers("l1", names)),
        FeedForward(**numbers("l0", ("d_ff", "matrices"))),
    )
    names = ("n_experts", "n_active", "d_expert", "d_shared", "matrices")
    few, many = (Experts(**numbers(at, names)) for at in ("l0", "l1"))
    first, last = number("l0_count"), number("l1_count")
    return (
        (Layers(first, plain, block),),
        (Layers(first, plain, few),),
        # all published ones are gated
        (Layers(first, latent, block.replace(matrices=3)), Layers(last, latent, many.replace(matrices=3))),
    )


def five():
    """JavaScript of the answers to one step, and what each of its numbers is, kept on disk."""
    return kept("sources of the instrument", _five)


def _five():
    peaks = {name: number(f"chip_peak_{name}") for name in ("bf16", "fp8")}
    names = [name for name in tables.CHIP if name != "price"]
    asked = {name: number(name) for name in ("n_chips", "batch", "context")}
    asked["chip"] = Offered(**numbers("chip", names), peaks=peaks, gpu=number("chip_gpu"))
    asked["precision"] = Precision(*(number(name) for name in ("weight_size", "cache_bytes", "eight_bit")))
    made = []
    dense, *others = _shapes()
    for layers, tied in ((dense, False), *((layers, False) for layers in others), (dense, True)):
        model = Transformer(number("d_model"), number("vocab_size"), layers, tied=tied, name="this model")
        values, given = [], asked | {"kind": lambda shape, model=model: model}
        plan = [answer.plan(name, given, values) for name, answer in SOURCES.items()]
        told = re.sub(r'"(\w+)":', r"\1:", json.dumps(plan, separators=(",", ":")))
        made.append(f"{{f:{questions.code([], values)},plan:{told}}}")
    return f"{{gpus:{json.dumps(gpus())},shapes:{json.dumps(places())},asked:[{','.join(made)}]}}"


def places():
    """The kinds of attention and block of each group of layers that the sources describe."""
    parts = Attention(8, 8, 8), LatentAttention(8, 8, 8, 8, 8, 8), FeedForward(8), Experts(8, 8, 8, 8)
    plain, latent, dense, experts = (tables.kinds().index(questions.kind(part)) for part in parts)
    return [[[plain, dense]], [[plain, experts]], [[latent, dense], [latent, experts]]]
