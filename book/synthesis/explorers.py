"""One workload for every model that answers: what a reader can move in the page."""

import re
from dataclasses import make_dataclass, replace

from book import opening
from book.calculator import sources
from book.explorer import Bars, Choice, Explorer, Kind, Limit, Slider, first, memory
from book.synthesis.grid import running
from inferlib import load_chip, load_model
from inferlib.equation import quantity
from inferlib.ops import where
from inferlib.papers.erdil2025.records import NO_GPUS
from inferlib.papers.source import common_name
from inferlib.system import format_bytes
from tokenprice import constants
from tokenprice.estimate import error_bar, stated
from tokenprice.kernels import Kernel, Link

_SERVED = ("Llama 3 70B", "Qwen3 235B-A22B", "DeepSeek V3")
_CHIPS = ("H100 SXM", "A100 80GB", "H200", "B200")  # all of them measured
MEMORY = "Memory for weights and cache"


# The constants of the sixth model that a chip brings with it: kind, number format, constant.
_SIZES = ("bf16", "fp8", "fp8 block", "fp4")
_KERNELS = [
    *((kind, size, name) for kind in ("gemm", "experts") for size in _SIZES for name in ("start", "share")),
    *((kind, size, "depth") for kind in ("gemm", "experts") for size in _SIZES),
    *(("gemm", size, "prefill") for size in _SIZES),
    *(("attention", size, name) for size in ("bf16", "fp8") for name in ("start", "share", "prefill")),
]
_LINKS = [("reduce", n, name) for n in (2, 4, 8) for name in ("latency", "bandwidth")]
_UNITS = {"start": "s", "latency": "s", "depth": "s", "bandwidth": "B/s"}


def _field(kind, size, name):
    return f"{kind}_{size}_{name}".replace(" ", "_")


def _constant(kind, size, name):
    told = quantity(_UNITS.get(name, "1"), f"{name} of {kind} ({size})", default=None, zero=True)
    return _field(kind, size, name), float, told


Timed = make_dataclass(
    "Timed", [_constant(*place) for place in (*_KERNELS, *_LINKS)], bases=(sources.Offered,), frozen=True, eq=False,
    namespace={"__doc__": "A chip that the page offers, with what the sixth model knows of its operators."},
)  # fmt: skip


def _timed(chip):
    """A chip as the page asks it."""
    known = constants.operators(chip.name)
    found = {_field(*at): getattr(known.kernel(at[0], at[1]), at[2]) for at in _KERNELS}
    # beyond the degrees that were timed, the last one
    links = {n: known.reduce[min(n, max(known.reduce))] for n in (2, 4, 8)}
    found |= {_field(*at): getattr(links[at[1]], at[2]) for at in _LINKS}
    # a chip without bfloat16 multiplies 16-bit weights at its other 16-bit peak
    peaks = {**chip.peaks, "bf16": chip.peaks.get("bf16", chip.flops)}
    stated = chip.scale_up_bandwidth, chip.scale_out_bandwidth, chip.scale_up_size
    gpu = float(None not in stated and not chip.name.startswith(NO_GPUS))
    return Timed(**vars(opening.linked(chip)) | {"peaks": peaks}, gpu=gpu, **found)


def _sixth():
    """The sixth model on one tensor-parallel instance, with the operators of the chip that the page offers."""
    return sources.Answer(
        "tokenprice.decode", "decode_step", step=_sixth_step,
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
    eight = chip.flops > chip.peaks.get("bf16", chip.flops)
    experts = kernel("experts", weights, constants=("start", "share", "depth"))
    links = {n: [getattr(chip, f"reduce_{n}_{name}") for name in ("latency", "bandwidth")] for n in (2, 4, 8)}
    asked = constants.one_kernel(
        gemm=made.replace(prefill=where(eight, chip.gemm_fp8_prefill, chip.gemm_bf16_prefill)),
        attention=kernel("attention", cache, constants=("start", "share", "prefill")),
        experts=experts.replace(**constants.reached()),
        reduce={n: Link(*link) for n, link in links.items()},
    )
    return function(model, system, workload, operators=asked)


ANSWERS = sources.SOURCES | {"sixth model": _sixth()}


def one_workload(model=None, system=None, workload=None):
    """Everybody's answer to one question of the reader's own, one stacked bar each, as the calculator asks them.

    It starts with the given one, or with the running question.

    What does not fit or is not described is grey, with the reason. The last answer says how far it may be off.
    """

    if model is None:
        model, system, workload = running()
    named = first(model, {name: load_model(name) for name in _SERVED})

    def shown(one):
        nameless = replace(one, name="this model")
        return lambda shape: nameless

    def held(kind, precision, batch, context, **at):
        return kind({}).bytes_held(batch, context, precision.weights, precision.cache)

    known = first(system.chip, {name: load_chip(name) for name in _CHIPS})
    chips = {name: _timed(chip) for name, chip in known.items()}
    eight = [name for name, chip in chips.items() if "fp8" in chip.peaks]
    precisions = {
        "16 bits": sources.Precision(2.0, 2.0, 0.0), "8 bits, arithmetic too": sources.Precision(1.0, 1.0, 1.0)
    }  # fmt: skip
    if format_bytes(workload.weights) <= 1 and "fp8" in system.chip.peaks:
        precisions = dict(reversed(precisions.items()))
    cases = f"{100 * stated()['confidence']:.0f} % of cases"
    within = {"sixth model": (lambda kind, **at: error_bar(kind({}))["factor"], cases)}
    return Explorer(
        "One workload, every answer",
        [
            Kind("kind", "Model", {name: shown(one) for name, one in named.items()}),
            Choice("chip", "Chip", chips),
            Choice(
                "precision", "Precision", precisions,
                offered={name: {"chip": eight} for name, p in precisions.items() if p.eight_bit},
            ),
            Slider("n_chips", "Chips", 1, 72, 1, log=True, whole=True).at(system.count),
            Slider("batch", "Batch", 1, 1024, 1, "sequences", log=True, whole=True).at(workload.batch),
            Slider("context", "Context", 1, 131072, 1, "tokens", log=True, whole=True).at(workload.context),
        ],
        [
            Bars(
                {name: _briefly(answer) for name, answer in ANSWERS.items()},
                within=within, words=_common_word,
            )
        ],
        limits=memory(held, "n_chips", MEMORY) | _cautions(),
        keep=(__name__, repr((model, system, workload))),
    )  # fmt: skip


# The toy model's network is waiting; the complete one is asked for latency and bandwidth together.
_OWN = {
    ("Erdil 2025, toy", "network"): "collective latency",
    ("Erdil 2025", "collectives"): "collectives as a whole",
}


def _common_word(bar, term):
    """What the bars of the chapter call a source's term."""
    if (bar, term) in _OWN:
        return _OWN[bar, term]
    room = ANSWERS[bar].room.removeprefix("inferlib.").removeprefix("papers.")
    return common_name(room.split(".")[0], term)


def _briefly(answer):
    """An answer of the calculator, its refusal in the few words that a bar has room for."""
    search = answer.search()

    def function(**at):
        step = search.function(**at)
        said = r"^(this model: )?the (source|post|paper|toy model) describes (multi-head )?"
        reason = re.sub(said, "", step.reason)
        return step if step.feasible else replace(step, reason=reason)

    return replace(search, function=function)


def _cautions():
    """In which respects nothing like a question was measured, as :func:`tokenprice.estimate.interval` says."""
    known = stated()

    def caution(asked, most, words):
        says = f"Caution, sixth model: {words}"
        return Limit(lambda **at: at[asked], most, "1", caution=True, says=says)

    nothing = "nothing was measured beyond"
    tokens = f"{nothing} {known['context']:,} tokens"
    return {
        "context": caution("context", lambda **at: known["context"], tokens),
        "tensor-parallel degree": caution(
            "n_chips", lambda chip, **at: chip.scale_up_size, f"{nothing} one fast network"
        ),
    }
