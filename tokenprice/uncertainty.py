"""Uncertainty of an answer: errors on rows left out of the fit, wider where a question was not measured."""

import math
from collections.abc import Callable
from functools import cache
from operator import itemgetter

from inferlib import validation
from inferlib.equation import frozen
from inferlib.ops import log2, maximum, minimum
from tokenprice import calibration, sparse_attention


@cache  # read many times for an answer
def load_calibration():
    """``calibration.toml``: errors of rows left out of the fit, and the range of the measurements."""
    return validation.read_package_toml(__file__, "calibration.toml")


def error_bar(model, layout=None, engine=None):
    """Return factors that hold 80 % of left-out rows of questions like this one: of a step, and of TTFT (``first``)."""
    chips = 1 if layout is None else layout.tp * (layout.dp if layout.ep > 1 else 1)  # that share one step
    factor, part = stated_factor(engine)
    own = sparse_attention.row_of(model)
    token = max(own.get("token", 1), own.get("copies", 1) if layout is not None and layout.dp > 1 else 1)
    return {
        "factor": max(factor ** (1 + part * math.log2(chips)), token),
        "first": max(own.get("first", 1), load_calibration()["first_token"]["factor"]),
    }


def stated_factor(engine=None):
    """Return the factor on one chip, for an engine or any, and the part by which each doubling of chips widens it."""
    factors = load_calibration()["factor"]
    if getattr(engine, "name", engine) == "python-2024":
        return factors["python-2024"]
    return factors["unknown" if engine in (None, "eager") else "known"]


@frozen
class Caution:
    """A respect in which a question goes beyond the measurements, which widens the interval.

    ``name`` is its factor in ``calibration.toml``. ``text`` has facts in braces. ``beyond`` is a function of the
    facts: above zero the caution holds, and at one it widens by the whole factor. The page has it in JavaScript too.
    """

    name: str
    text: str
    beyond: Callable

    @property
    def factor(self):
        """Factor by which it widens an interval, each way."""
        return load_calibration()["widen"][self.name]


def doublings(value, most):
    """Number of doublings from the largest measured value to this one."""
    return log2(maximum(value, 1) / most)


def _most(what, name):
    text = f"{what} {{{name}:,.0f}}, but nothing measured here goes beyond {{most_{name}:,.0f}}"
    return Caution(name, text, lambda facts: doublings(facts[name], facts[f"most_{name}"]))


# Cautions on a step. Facts such as ``new_chip`` are 1 where the measurements do not cover a name, else 0.
CAUTIONS = (
    _most("context", "context"),
    _most("batch", "batch"),
    _most("tensor-parallel degree", "tp"),
    _most("experts on", "expert_chips"),
    Caution("boxes", "one instance on {tp:,.0f} chips, beyond one fast network or the number of heads",
            lambda facts: facts["tp"] - minimum(facts["domain"], facts["heads"])),
    Caution("PCIe", "PCIe boxes differ, and no serving run on several PCIe cards was measured{bus}",
            itemgetter("shared")),
    Caution("chip", "the model was fitted to no run on {chip}", itemgetter("new_chip")),
    Caution("lent", "no kernel timings for {chip}; using those of {lender}", itemgetter("lent")),
    Caution("lent", "no kernel timings on {lender} of {untimed}", itemgetter("not_timed")),
    Caution("memory", "no chip with memory like that of {chip} was timed: kernels read no faster than a public probe",
            itemgetter("other_memory")),
    Caution("spread", "experts in batches from memory like that of {chip}: one public run took less time than this",
            lambda facts: facts["other_memory"] * facts["sparse"] * log2(maximum(facts["batch"], 1)) / 4),
    Caution("experts", "no serving run of {unscored}", itemgetter("new_kind")),
    Caution("blocks", "no timings of such attention on {chip}; using those of {timed_on}",
            itemgetter("borrowed")),
    Caution("stages", "of pipeline parallelism only NVIDIA's two stages of Llama 3.3 70B were compared: what they gain "
            "comes out within 3 %", lambda facts: facts["stages"] - 1),
    Caution("drafts", "few steps with speculative decoding were measured", itemgetter("drafted")),
    Caution("maker", "{chip} runs other software than the chips that were timed{slower}",
            itemgetter("other_maker")),
    Caution("format", "no measurement here has weights in {format}", itemgetter("new_format")),
    Caution("format", "{chip} does not multiply in {format}", itemgetter("widened")),
    Caution("size", "{params:,.0f} million parameters, but nothing measured here has fewer than {least_params:,.0f}",
            lambda facts: log2(facts["least_params"] / facts["params"])),
    Caution("model", "no step of this model was measured here, nor of another one of its shape",
            itemgetter("new_model")),
)  # fmt: skip


def cautions_that_hold(declared, facts):
    """Return the cautions that hold, each with its value of :attr:`Caution.beyond`."""
    return {caution: by for caution in declared if (by := caution.beyond(facts)) > 0}


def widen_interval(factor, held):
    """Widen an interval's factor by the cautions that hold; independent errors add in squares (of logarithms)."""
    wider = [min(by, 1) * math.log(caution.factor) for caution, by in held.items()]
    return math.exp(math.hypot(math.log(factor), *wider))


def ratio_factor(first, second):
    """Factor that holds the ratio of two answers about one model and chip, from the factor of each.

    Errors that both predictions share cancel, as in measured pairs; what widens only one interval does not.

    Examples
    --------
    >>> ratio_factor(1.3, 1.3) < 1.3 < ratio_factor(1.3, 1.6)
    True
    """
    alone = abs(math.log(first) ** 2 - math.log(second) ** 2)
    return math.exp(math.sqrt(math.log(load_calibration()["pair"]) ** 2 + alone))


def limits():
    """Return the facts that do not depend on the question: the range of the measurements."""
    seen = load_calibration()
    most = {f"most_{name}": seen[name] for name in ("context", "batch", "tp", "expert_chips")}
    return most | {"least_params": seen["params"]}


def bus_text(operators):
    """Say how all-reduces of a chip's timed box of cards compare with those of public boxes, if these are faster."""
    if operators.bus <= 1:
        return ""
    times = f"up to {operators.bus:.2g} times as long"
    return f"; all-reduces are those of a public box, but the timed box of {operators.lender} needs {times}"


def chip_facts(operators, slowdown=None):
    """Return the facts about a chip, from its operators and its measured slowdown (:func:`.calibration.slowdown`)."""
    chip = operators.chip
    known = ""
    other = float(chip.startswith(("MI", "TPU", "Gaudi", "Trainium", "Groq")))
    if slowdown:
        known = (
            f"; its times are {slowdown.median:.3g} times those of their kernels, the median of public rows of "
            f"{slowdown.rows}"
        )
        widen = load_calibration()["widen"]
        lent = math.log(widen[slowdown.lent]) if slowdown.lent else 0.0
        other = math.hypot(math.log(slowdown.widen), lent) / math.log(widen["maker"])
    return {
        "chip": chip, "new_chip": float(chip not in load_calibration()["chips"]), "lender": operators.lender,
        "bus": bus_text(operators), "other_memory": float(operators.memory_share is not None), "slower": known,
        "lent": float(operators.lender != chip), "other_maker": other,
    }  # fmt: skip


def format_facts(format):
    """Return the facts about the number format whose kernels serve the weights."""
    known = [calibration.format_name(name) for name in load_calibration()["formats"]]
    return {"format": format, "new_format": float(format not in known)}


def new_model(model):
    """1 if neither the model nor another of its shape was measured, else 0."""
    names = load_calibration()["models"] + [
        name for kind in sparse_attention.load_rows().values() for name in kind["models"]
    ]
    return float(not sparse_attention.in_catalogue_group(model, names))


def sentences(held, facts):
    """Return the texts of the cautions that hold, and of those about the model's kind of attention."""
    return tuple(caution.text.format(**facts) for caution in held) + facts["told"]


def facts(deployment, batch, context):
    """Return the facts that cautions use: how far a question goes beyond the measurements."""
    model = deployment.model
    chip = deployment.machine.chip
    layout = deployment.layout
    unscored, told = sparse_attention.unscored_reason(model), sparse_attention.cautions(model)
    format, stored = deployment.weight_format, deployment.weights
    found = {
        "stages": layout.pp, "drafted": float(bool(deployment.draft_tokens)),
        "widened": float(format in {"fp4", "fp8", "bf16"}.difference(chip.peaks) and stored not in ("fp16", "fp32")),
        "borrowed": len(deployment.block_lenders),
        "not_timed": len(deployment.untimed), "untimed": ", ".join(deployment.untimed),
        "timed_on": ", ".join(deployment.block_lenders), "unscored": unscored, "new_kind": float(bool(unscored)),
        "told": told,
        "context": context, "batch": batch, "tp": layout.tp,
        "domain": calibration.chips_per_node(chip) or deployment.machine.domain,
        "shared": float(chip.topology == "PCIe" and layout.tp > 1),
        "expert_chips": deployment.machine.count if layout.ep > 1 else 0, "new_model": new_model(model),
        "sparse": float(model.sparse),
        "heads": min(attention.n_heads for _, attention in model.attentions),
        "params": model.n_params / 1e6,
    }  # fmt: skip
    return found | limits() | chip_facts(deployment.operators, deployment.slowdown) | format_facts(format)


def step_interval(deployment, batch, context):
    """Factor that holds a step's time in 80 % of cases, and the cautions that widened it."""
    found = facts(deployment, batch, context)
    held = cautions_that_hold(CAUTIONS, found)
    bar = error_bar(deployment.model, deployment.layout, deployment.engine)
    return widen_interval(bar["factor"], held), sentences(held, found)
