"""The sixth model: the simplest formula that survives the measurements, with an error bar.

Bytes over bandwidth or FLOP over peak, whichever is longer, at one share of the peaks; a fixed time for
every layer; a time for every further chip in an all-reduce. The structure is Erdil's and LIMINAL's, the
amounts are counted from the model's shape, the rates are the data sheet's, and three constants are fitted to
public measurements (``sixth.toml``, written by :mod:`book.synthesis.fit`).
"""

import html
import tomllib
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from numbers import Real

from inferlib.equation import Record, equation, quantity
from inferlib.ops import maximum
from inferlib.principles import roofline
from inferlib.principles.profile import Profile, profile_of
from inferlib.system import Breakdown, Layout, System, Workload, chip_peak
from inferlib.transformer import Transformer

equation = partial(equation, "serving", chapter="sixth_model")


@dataclass(frozen=True, eq=False)
class Constants(Record):
    """What is fitted (share, layer, hop), and the two all-reduces that a tensor-parallel layer needs."""

    share: float = quantity("1", "share of the peaks that a decode step reaches")
    layer: float = quantity("s", "time of one layer that no bytes and no arithmetic explain", zero=True)
    hop: float = quantity("s", "time that every further chip adds to one all-reduce", zero=True)
    reductions: float = quantity("1", "all-reduces in one layer", default=2)


@equation(unit="s", peak_time="s")
def attained_time(constants: Constants, peak_time):
    """Time at the share of the peaks that is reached, from the time at the peaks; seconds."""
    return peak_time / constants.share


@equation(unit="s", n_layers="1")
def launch_time(constants: Constants, n_layers):
    """Time of all layers that neither bytes nor arithmetic explain: launching kernels, small kernels; seconds."""
    return n_layers * constants.layer


@equation(unit="s", n_layers="1", n_chips="1")
def waiting_time(constants: Constants, n_layers, n_chips):
    """Time of the all-reduces of all layers, on a ring of ``n_chips``; seconds, none on one chip."""
    return constants.reductions * n_layers * constants.hop * (n_chips - 1)


@equation(unit="s", memory="s", arithmetic="s", n_layers="1", n_chips="1")
def step_time(constants: Constants, memory, arithmetic, n_layers, n_chips):
    """Time from one token to the next on one tensor-parallel instance.

    Examples
    --------
    >>> three = Constants(share=0.7, layer=40e-6, hop=3e-6)
    >>> f"{1e3 * step_time(three, memory=7e-3, arithmetic=1e-3, n_layers=80, n_chips=8):.2f} ms"
    '16.56 ms'
    """
    longer = maximum(attained_time(constants, memory), attained_time(constants, arithmetic))
    return longer + launch_time(constants, n_layers) + waiting_time(constants, n_layers, n_chips)


@cache
def stated():
    """``sixth.toml``: the constants, how they were fitted, how far they can be trusted."""
    return tomllib.loads((files("inferlib.serving") / "sixth.toml").read_text("utf-8"))


def fitted():
    """The constants fitted to all usable measurements.

    Examples
    --------
    >>> 0.5 < fitted().share < 0.8
    True
    """
    return Constants(**stated()["constants"])


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


def decode_step(model, system, workload, layout=None, constants=None):
    """One decode step in the sixth model, by named terms.

    Parameters
    ----------
    model : Transformer or Profile
        A profile brings its own formats (and no layers: give a Transformer unless you must).
    system : System
    workload : Workload
    layout : Layout, optional
        One tensor-parallel instance on all chips when not given. With ``pp`` the stages follow one another, so
        a token sees ``tp`` chips at a time. Several instances, or experts on chips of their own, are n/a.
    constants : Constants, optional
        The fitted ones when not given.

    Returns
    -------
    Breakdown

    Raises
    ------
    TypeError
        If an argument is not of the class named above.
    """
    kinds = (
        (model, (Transformer,)), (system, (System,)), (workload, (Workload,)),
        (layout, (Layout, type(None))), (constants, (Constants, type(None))),
    )  # fmt: skip
    for name, (value, kind) in zip(
        ("model", "system", "workload", "layout", "constants"), kinds, strict=True
    ):
        if not isinstance(value, kind):
            raise TypeError(f"{name} is a {type(value).__name__}, but must be a {kind[0].__name__}")
    return _step(
        profile_of(model, workload.weights, workload.cache),
        model.n_layers,
        system,
        workload,
        layout,
        constants,
    )


def _step(profile: Profile, n_layers, system, workload, layout=None, constants=None):
    """The same for a profile, whose bytes may be those of no format (4 bits and their scales)."""
    origin = (_step, profile, n_layers, system, workload, layout, constants)
    answer = partial(Breakdown, source="sixth", origin=origin)
    tp, pp = (layout.tp, layout.pp) if layout else (system.count, 1)
    if layout and (tp * pp != system.count or layout.ep * layout.dp != 1):
        return answer(
            status="n/a", reason="the sixth model describes one tensor-parallel instance, or a pipeline"
        )
    at_peak = roofline.decode_step(profile, system.replace(chip=chip_peak(system.chip, workload)), workload)
    if not at_peak.feasible:
        return answer(status=at_peak.status, reason=at_peak.reason)
    constants = constants or fitted()
    # The stages of a pipeline follow one another, so a token is read and multiplied by one of them at a time.
    times = {name: attained_time(constants, pp * seconds) for name, seconds in at_peak.terms.items()}
    arithmetic = times.pop("arithmetic")
    stages = [{"memory": times, "arithmetic": arithmetic}]
    stages.append({"kernel launch": launch_time(constants, n_layers)})
    if not isinstance(tp, Real) or tp > 1:
        stages.append({"collective latency": waiting_time(constants, n_layers, tp)})
    return answer(tuple(stages))


def estimate(model, system, workload, layout=None):
    """How long one decode step will take, with an error bar from measurements.

    Parameters
    ----------
    model : Transformer
    system : System
    workload : Workload
        Batch, context (mean tokens in the cache of a sequence) and formats.
    layout : Layout, optional
        One tensor-parallel instance on all chips when not given; ``pp`` stages are described too.

    Returns
    -------
    Estimate
        ``seconds``, ``low`` and ``high``, ``tokens_per_second``, ``binding``, the ``step`` by named terms, and
        ``cautions`` where nothing like it was measured.

    Raises
    ------
    TypeError
        If an argument is not of the class named above.
    ValueError
        On ``.seconds``, if the point does not fit into memory or is not described; ``.step`` says why.

    Examples
    --------
    >>> import inferlib
    >>> box = inferlib.System(inferlib.load_chip("H100 SXM"), 8)
    >>> answer = estimate(inferlib.load_model("Llama 3 70B"), box, inferlib.Workload(batch=32, context=4096))
    >>> answer.low < answer.seconds < answer.high, answer.cautions
    (True, ())
    """
    step = decode_step(model, system, workload, layout)
    if not step.feasible:
        return Estimate(step, batch=workload.batch)
    bar = stated()["error"]
    return Estimate(
        step,
        low=step.total / bar["factor"],
        high=step.total * bar["factor"],
        confidence=bar["confidence"],
        cautions=cautions(model, system, workload, layout),
        batch=workload.batch,
    )


def cautions(model, system, workload, layout=None):
    """In which respects nothing like this question was measured, one sentence each."""
    seen, found = stated()["measured"], []
    tp = layout.tp if layout is not None else system.count
    for what, value, most in (
        ("context", workload.context, seen["context"]),
        ("batch", workload.batch, seen["batch"]),
        ("tensor-parallel degree", tp, seen["tp"]),
    ):
        if value > most:
            found.append(f"{what} {value:,.0f}, but nothing measured here goes beyond {most:,.0f}")
    if system.chip.name not in seen["chips"]:
        found.append(f"no measurement here is on {system.chip.name}")
    if workload.weights not in seen["formats"]:
        found.append(f"no measurement here has weights in {workload.weights}")
    if model.sparse and workload.batch > seen["sparse_batch"]:
        found.append(
            f"no measurement of a mixture of experts here has a batch beyond {seen['sparse_batch']:,.0f}"
        )
    if model.sparse and model.name not in seen["sparse_models"]:
        found.append("mixtures of experts were measured on " + ", ".join(seen["sparse_models"]) + " only")
    return tuple(found)
