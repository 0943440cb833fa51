"""How long a decode step will take, with an error bar from rows that the fit has not seen."""

import html
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from inferlib.catalog import load_model
from inferlib.ops import minimum
from inferlib.serving import constants
from inferlib.serving.decode import decode_step
from inferlib.system import Breakdown


@cache
def stated():
    """``calibration.toml``, read: errors of rows left out, and what was measured at all."""
    return tomllib.loads((files("inferlib.serving") / "calibration.toml").read_text("utf-8"))


@dataclass(frozen=True, eq=False)
class Estimate:
    """An answer of the sixth model: a breakdown, and how far it may be off.

    ``low`` and ``high`` enclose the time that would be measured in ``confidence`` of the cases, for a source of
    measurements that the fit has not seen. ``cautions`` say in which respect nothing like it was measured; with
    any of them the interval is a hope.
    """

    step: Breakdown
    low: float | None = None
    high: float | None = None
    confidence: float = 0.0
    cautions: tuple = ()
    batch: float = 1

    @property
    def seconds(self):
        """Seconds from one token to the next; an infeasible estimate has none and raises ValueError."""
        return self.step.total

    @property
    def tokens_per_second(self):
        """Tokens per second of all sequences together."""
        return self.batch / self.seconds

    @property
    def binding(self):
        """The largest term that counts."""
        return self.step.binding

    def __str__(self):
        if not self.step.feasible:
            return f"{self.step.status}: {self.step.reason}"
        span = f"{1e3 * self.low:.3g} to {1e3 * self.high:.3g} ms in {100 * self.confidence:.0f} % of cases"
        text = f"{1e3 * self.seconds:.3g} ms a token ({span}), bound by {self.binding}"
        return "\n".join([text, *(f"Caution: {caution}." for caution in self.cautions)])

    __repr__ = __str__

    def _repr_html_(self):
        first, *others = str(self).splitlines()
        items = "".join(f"<li>{html.escape(line)}</li>" for line in others)
        return f"<p>{html.escape(first)}</p>" + (f"<ul>{items}</ul>" if items else "")


def error_bar(model, layout=None, engine=None):
    """The error of rows left out for questions like this one, and the factor that holds 80 % of them.

    Returns
    -------
    dict
        ``error`` and ``factor``.
    """
    copies = layout is not None and layout.dp > 1
    kind = "copies" if copies else "experts" if model.sparse else "dense"
    return stated()["step"][kind]["unknown" if engine is None else "known"]


def estimate(model, system, workload, layout=None, engine=None, keep=None):
    """How long one decode step will take, with an error bar from measurements.

    Parameters
    ----------
    model : Transformer
    system : System
    workload : Workload
        Batch, context (mean tokens in the cache of a sequence) and formats.
    layout : Layout, optional
        One tensor-parallel instance on all chips when not given; stages, copies of the attention and experts on
        chips of their own are described too.
    engine : str, optional
        The class of engine: ``"compiled"``, ``"serving"`` or ``"python-2024"``. When not given, a serving engine
        of today is taken and the interval is wider.
    keep : Mapping, optional
        Parts of the model in another format, such as ``{"attention": "bf16"}``.

    Returns
    -------
    Estimate
        ``seconds``, ``low`` and ``high``, ``tokens_per_second``, ``binding``, the ``step`` by named terms, and
        ``cautions`` where nothing like it was measured.

    Raises
    ------
    TypeError
        If an argument is not of the class named above.
    LookupError
        If the engine or a format is unknown.
    ValueError
        On ``.seconds``, if the point does not fit into memory or is not described; ``.step`` says why.

    Examples
    --------
    >>> import inferlib
    >>> box = inferlib.System(inferlib.load_chip("H100 SXM"), 8)
    >>> model, work = inferlib.load_model("Llama 3 70B"), inferlib.Workload(batch=32, context=4096)
    >>> answer = estimate(model, box, work)
    >>> answer.low < answer.seconds < answer.high, answer.cautions
    (True, ())
    >>> estimate(model, box, work, engine="compiled").seconds < answer.seconds
    True
    """
    step = decode_step(model, system, workload, layout, engine=engine, keep=keep)
    if not step.feasible:
        return Estimate(step, batch=workload.batch)
    factor = error_bar(model, layout, engine)["factor"]
    return Estimate(
        step,
        low=step.total / factor,
        high=step.total * factor,
        confidence=stated()["confidence"],
        cautions=cautions(model, system, workload, layout),
        batch=workload.batch,
    )


@dataclass(frozen=True)
class Caution:
    """A respect in which a question goes beyond what was measured.

    ``text`` names facts in braces; ``beyond`` is a function of the facts, above zero where it holds. The page
    prints the same function as JavaScript.
    """

    text: str
    beyond: Callable


def _most(what, name):
    text = f"{what} {{{name}:,.0f}}, but nothing measured here goes beyond {{most_{name}:,.0f}}"
    return Caution(text, lambda facts: facts[name] - facts[f"most_{name}"])


# Conditions on a step. Facts that end in a name are 1 where the name is unknown to the measurements, else 0.
CAUTIONS = (
    _most("context", "context"),
    _most("batch", "batch"),
    _most("tensor-parallel degree", "tp"),
    _most("experts on", "expert_chips"),
    Caution(
        "one instance on {tp:,.0f} chips: more than share a fast network, or more than there are heads",
        lambda facts: facts["tp"] - minimum(facts["domain"], facts["heads"]),
    ),
    Caution("the interval rests on no measurement on {chip}", lambda facts: facts["new_chip"]),
    Caution(
        "nobody timed operators of {chip}: those of {lender} stand in for them", lambda facts: facts["lent"]
    ),
    Caution("no measurement here has weights in {format}", lambda facts: facts["new_format"]),
    Caution("mixtures of experts were measured on {sparse_models} only", lambda facts: facts["new_experts"]),
)


def limits():
    """The facts that no question changes: how far the measurements go."""
    seen = stated()
    most = {f"most_{name}": seen[name] for name in ("context", "batch", "tp", "expert_chips")}
    return most | {"sparse_models": ", ".join(seen["sparse_models"])}


def chip_facts(name):
    """What the measurements say of a chip."""
    lender = constants.lender(name)
    measured = name in stated()["chips"]
    return {"chip": name, "new_chip": float(not measured), "lender": lender, "lent": float(lender != name)}


def format_facts(weights):
    """What the measurements say of a number format."""
    name = constants.format_name(weights)
    known = [constants.format_name(format) for format in stated()["formats"]]
    return {"format": name, "new_format": float(name not in known)}


def new_experts(model):
    """1 for a mixture of experts that no measurement is of, nor of another one of its shape, else 0.

    Examples
    --------
    >>> new_experts(load_model("DeepSeek V3")), new_experts(load_model("deepseek-ai/DeepSeek-R1"))
    (0.0, 0.0)
    """
    names = stated()["sparse_models"]
    return float(model.sparse and model.name not in names and _shape(model) not in map(_shape_of, names))


def _shape(model):
    return (model.n_layers, model.d_model, model.n_params, model.n_active, model.cache_values())


@cache
def _shape_of(name):
    return _shape(load_model(name))


def told(declared, facts):
    """The texts of those cautions that hold."""
    return tuple(caution.text.format(**facts) for caution in declared if caution.beyond(facts) > 0)


def cautions(model, system, workload, layout=None):
    """In which respects nothing like this question was measured, one sentence each."""
    tp, dp = (layout.tp, layout.dp) if layout is not None else (system.count, 1)
    facts = {
        "context": workload.context, "batch": workload.batch, "tp": tp, "domain": system.domain,
        "expert_chips": system.count if dp > 1 else 0, "new_experts": new_experts(model),
        "heads": min(group.attention.n_heads for group in model.layers),
    }  # fmt: skip
    facts |= limits() | chip_facts(system.chip.name) | format_facts(workload.weights)
    return told(CAUTIONS, facts)
