"""One question in plain words, one answer: what the terminal and the widget ask too."""

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass

from inferlib import checks
from inferlib.principles import cost_per_million
from inferlib.serving import constants, energy
from inferlib.serving.change import doubled, must_change
from inferlib.serving.decide import COUNTS, decide, in_words, offered
from inferlib.serving.estimate import Estimate, estimate
from inferlib.serving.prompt import room
from inferlib.serving.request import Request, estimate_request
from inferlib.serving.speculation import acceptance, with_drafts
from inferlib.serving.typed import formats_of, layout_of, positive, system_of, tokens
from inferlib.system import Layout, System, Workload
from inferlib.transformer import Transformer

_TELLING = 1.02  # gains below this are not told one by one


@dataclass(frozen=True, eq=False)
class Answer:
    """A step, its interval and what binds it; with prompt and output a request too.

    ``status`` is ``"ok"``, ``"infeasible"`` or ``"n/a"``, with a ``reason``; ``doubled`` says how many times as
    fast a step gets by twice as good a resource, ``drafted`` how many seconds a token takes with drafts.
    """

    model: Transformer
    system: System
    workload: Workload
    layout: Layout | None
    keep: Mapping | None
    price: float | None
    estimate: Estimate
    request: Request | None = None
    refused: str = ""
    doubled: Mapping | None = None
    drafted: float | None = None

    @property
    def status(self):
        """Whether there is an answer."""
        return "infeasible" if self.refused else self.estimate.step.status

    @property
    def reason(self):
        """Why there is none."""
        return self.refused or self.estimate.step.reason

    @property
    def feasible(self):
        """Whether there is a time."""
        return self.status == "ok"

    @property
    def dollars_per_million(self):
        """Dollars for a million output tokens of the step alone; None where no price is known."""
        if self.price is None:
            return None
        e = self.estimate
        return float(cost_per_million(e.seconds, e.batch, self.system.count, self.price))

    @property
    def cautions(self):
        """In which respects nothing like it was measured."""
        return self.request.cautions if self.request is not None else self.estimate.cautions

    def to_dict(self):
        """Everything as plain numbers and texts, SI units: what ``--json`` prints."""
        work = self.workload
        said = {
            "model": self.model.name, "chip": self.system.chip.name, "count": self.system.count,
            "layout": in_words(self.layout or Layout(tp=self.system.count)),
            "weights": work.weights, "cache": work.cache, "keep": dict(self.keep or {}),
            "batch": work.batch, "context": work.context, "status": self.status, "reason": self.reason,
        }  # fmt: skip
        if not self.feasible:
            return said
        e = self.estimate
        said |= {
            "seconds": e.seconds, "low": e.low, "high": e.high, "confidence": e.confidence, "binding": e.binding,
            "terms": e.step.terms, "speed": 1 / e.seconds, "tokens_per_second": e.tokens_per_second,
            "usd_per_hour": None if self.price is None else self.price * self.system.count,
            "usd_per_million": self.dollars_per_million, "joules_per_token": _joules(self),
            "doubled": dict(self.doubled or {}), "drafted": self.drafted, "cautions": list(self.cautions),
        }  # fmt: skip
        r = self.request
        if r is not None:
            priced = r.rate is not None
            said["request"] = {
                "prompt_tokens": r.prompt_tokens, "cached_tokens": r.cached_tokens,
                "output_tokens": r.output_tokens, "users": r.users,
                "first_token": r.first_token, "first_token_low": r.first_token / r.first_factor,
                "first_token_high": r.first_token * r.first_factor,
                "token": r.token, "token_low": r.token / r.step_factor, "token_high": r.token * r.step_factor,
                "speed": 1 / r.token, "seconds": r.seconds, "machine_seconds": r.machine_seconds,
                "usd": r.dollars if priced else None, "usd_per_million": r.per_million if priced else {},
            }  # fmt: skip
        return _plain(said)

    def __str__(self):
        head = f"{self.model.name} on {self.system}, {_how(self)}"
        if not self.feasible:
            return f"{head}\n{self.status}: {self.reason}"
        lines, e = [head], self.estimate
        span = f"{_ms(e.low)} to {_ms(e.high)} ms in {100 * e.confidence:.0f} % of cases"
        lines.append(f"{_ms(e.seconds)} ms a token ({span}), bound by {e.binding}")
        lines.append(f"{_count(1 / e.seconds)} tokens/s a user, {_count(e.tokens_per_second)} of all")
        joules = _joules(self)
        if joules is not None:
            lines[-1] += f", about {joules:.2g} J a token"
        if self.price is None:
            lines[-1] += "; no price is known"
        elif self.request is None:
            lines[-1] += f", ${self.dollars_per_million:.3g} a million at ${self.price:.3g} a chip and hour"
        if self.request is not None:
            lines += str(self.request).splitlines()[: -len(self.cautions) or None]
        if self.drafted is not None:
            lines.append(
                f"with drafts {_ms(self.drafted)} ms a token (no interval: few such rows are public)"
            )
        gains = sorted(self.doubled.items(), key=lambda gain: -gain[1])
        told = [f"{name} × {gain:.3g}" for name, gain in gains if gain >= _TELLING]
        lines.append("Twice as good: " + ", ".join([*told, f"anything else × {_TELLING} at most"]))
        return "\n".join(lines + [f"Caution: {caution}." for caution in self.cautions])

    __repr__ = __str__

    def _repr_html_(self):
        first, *others = str(self).splitlines()
        items = "".join(f"<li>{html.escape(line)}</li>" for line in others)
        return f"<p><b>{html.escape(first)}</b></p><ul>{items}</ul>"


def answer(
    model, chip, *, batch=None, context=None, prompt=None, output=None, cached=0, users=None, weights=None,
    cache=None, keep=None, layout=None, engine=None, price=None, utilisation=1.0, drafted=None, length=None,
    chips=None,
):  # fmt: skip
    """A question in plain words: how fast is this model on these chips, what does it cost, what would help.

    Parameters
    ----------
    model : str, path, mapping or Transformer
        As for :func:`inferlib.load_model`.
    chip : str, Accelerator or System
        Such as ``"4x H100"``.
    batch, context : int or str
        Sequences decoded together (1 when not given) and tokens behind each (4,096); ``"8k"`` is 8,192.
    prompt, output, cached, users : int or str, optional
        A request instead of a context: tokens of the question and of the answer, how many of the question are
        in the cache from before, and users at a time.
    weights, cache : str, optional
        Number formats. When not given, those that the model's checkpoint states, else bf16.
    keep, engine : optional
        As in :func:`inferlib.estimate`.
    layout : Layout or str, optional
        Such as ``"TP8"``, ``"PP2 x TP8"`` or ``"attention DP8 with EP8"``; one instance when not given.
    price : float, optional
        Dollars for one chip and hour; the catalogue's when not given.
    utilisation : float
        Part of the paid hours in which the machine is this busy.
    drafted, length : optional
        Tokens proposed in each step by a head of one layer, and tokens that a step then yields: a number, or whose
        measured acceptance (a name in ``acceptance.toml``, such as ``"DeepSeek R1, MTP"``).
    chips : Mapping, optional
        Chips of your own by name, as from :func:`inferlib.catalog.load_chips`.

    Returns
    -------
    Answer
        A point that does not fit, or that the sixth model does not describe, has a ``status`` and a ``reason``.

    Raises
    ------
    LookupError
        If a name is unknown; near names are suggested.
    ValueError
        If a number is out of range, or context and prompt are both given.

    Examples
    --------
    >>> said = answer("Llama 3.3 70B", "4x H100", weights="fp8", batch=32, context="8k")
    >>> said.estimate.low < said.estimate.seconds < said.estimate.high, said.estimate.binding
    (True, 'cache')
    """
    system, layout = system_of(chip, chips), layout_of(layout)
    model, weights, cache, keep = formats_of(model, weights, cache, keep)
    if price is not None:
        checks.number("price", price)
    rate = system.chip.price if price is None else price
    asked = {"layout": layout, "engine": engine, "keep": keep}
    request, refused = None, ""
    if prompt is None and output is None and users is None:
        work = Workload(positive("batch", batch, 1), positive("context", context, 4096), weights, cache)
        if tokens("cached", cached, zero=True):
            raise ValueError(f"cached is {cached}, but needs a prompt and an output")
    else:
        if context is not None or batch is not None:
            raise ValueError("batch and context belong to a step: give prompt, output and users, or these")
        formats = {"weights": weights, "cache": cache}
        paid = {"price": rate, "utilisation": utilisation}
        work, request, refused = _asked(model, system, prompt, output, cached, users, formats, paid, asked)
    found = estimate(model, system, work, **asked)
    gains, sooner = None, None
    if (drafted is None) != (length is None):
        raise ValueError("drafts need both drafted, and length: tokens that a step yields")
    if found.step.feasible and not refused:
        gains = doubled(model, system, work, **asked)
        if drafted is not None:
            yields = _yields(length, drafted)
            sooner = with_drafts(model, system, work, drafted=drafted, length=yields, **asked)
    return Answer(model, system, work, layout, keep, rate, found, request, refused, gains, sooner)


def _yields(length, drafted):
    """Tokens that a step yields: as given, or by a measured curve."""
    try:
        return float(length)
    except ValueError:
        return acceptance(length, drafted)


def needed(
    model, chip, *, seconds=None, dollars_per_million=None, batch=None, context=None, weights=None, cache=None,
    keep=None, layout=None, engine=None, price=None, chips=None,
):  # fmt: skip
    """What must change to reach a target: :func:`inferlib.must_change` in plain words.

    Parameters
    ----------
    model, chip, batch, context, weights, cache, keep, layout, engine, price, chips
        As in :func:`answer`.
    seconds, dollars_per_million : float, optional
        One target.

    Returns
    -------
    Changes
    """
    system, layout = system_of(chip, chips), layout_of(layout)
    model, weights, cache, keep = formats_of(model, weights, cache, keep)
    work = Workload(positive("batch", batch, 1), positive("context", context, 4096), weights, cache)
    return must_change(
        model, system, work, seconds=seconds, dollars_per_million=dollars_per_million, layout=layout,
        engine=engine, keep=keep, price=price,
    )  # fmt: skip


def choose(
    model, *, prompt, output, cached=0, weights=None, cache=None, keep=None, only=None, counts=None, chips=None,
    **more,
):  # fmt: skip
    """The cheapest machine that keeps a promise: :func:`inferlib.decide` in plain words.

    Parameters
    ----------
    model, prompt, output, cached, weights, cache, keep, chips
        As in :func:`answer`; ``chips`` of your own are tried too, if they have a price.
    only : list of str, optional
        The chips to try.
    counts : list of int, optional
    **more
        Of :func:`inferlib.decide`: ``speed``, ``first_token``, ``prices``, ``utilisation``, ``engine``, ``sure``,
        ``progress``.

    Returns
    -------
    Decision
    """
    model, weights, cache, keep = formats_of(model, weights, cache, keep)
    known = chips or {}
    if only is None:
        tried = [*offered(more.get("prices")), *known.values()]
    else:
        tried = [known[name] if name in known else name for name in only]
    return decide(
        model, prompt_tokens=positive("prompt", prompt), output_tokens=positive("output", output),
        cached_tokens=tokens("cached", cached, zero=True), weights=weights, cache=cache, keep=keep, chips=tried,
        counts=counts or COUNTS, **more,
    )  # fmt: skip


def _asked(model, system, prompt, output, cached, users, formats, paid, asked):
    """The step and the request of so many users, or why they find no room."""
    if prompt is None or output is None:
        raise ValueError("a request needs both prompt and output, in tokens")
    prompt, output = positive("prompt", prompt), positive("output", output)
    users, cached = positive("users", users, 1), tokens("cached", cached, zero=True)
    if cached >= prompt:
        raise ValueError(f"cached is {cached}, but must be below prompt, {prompt}")
    checks.number("users", users, minimum=1)
    work = Workload(users, prompt + output / 2, **formats)
    empty = estimate(model, system, work.replace(batch=1, context=0), **asked)
    if not empty.step.feasible:
        return work, None, ""
    layout, keep = asked["layout"], asked["keep"]
    places = room(model, system, work.replace(context=prompt + output), layout, keep)
    if places < 1:
        return work, None, f"{system} has no room for one user beside the weights"
    request = estimate_request(
        model, system, prompt, output, users, cached_tokens=cached, **formats, **paid, **asked
    )
    return work.replace(batch=request.users), request, ""


def _how(answer):
    """Formats, layout and load in words."""
    work = answer.workload
    parts = [f"weights in {_format(work.weights)}"]
    parts += [f"{part} in {_format(name)}" for part, name in (answer.keep or {}).items()]
    parts += [f"cache in {_format(work.cache)}", in_words(answer.layout or Layout(tp=answer.system.count))]
    r = answer.request
    if r is not None:
        who = "1 user" if r.users == 1 else f"{r.users:,g} users"
        parts.append(f"{who}, prompt {r.prompt_tokens:,g}, output {r.output_tokens:,g}")
    else:
        parts.append(f"batch {work.batch:,g}, context {work.context:,g}")
    return ", ".join(parts)


def _format(value):
    if isinstance(value, str):
        return value
    name = constants.format_name(value)
    return name if constants.STORED[name] == value else f"{8 * value:.3g} bits"


def _joules(answer):
    e, chip = answer.estimate, answer.system.chip
    if chip.power is None:
        return None
    drawn = energy.chip_draw(energy.draw(), chip.power, *energy.busy(e.step, e.seconds))
    return float(energy.token_energy(answer.system.count, drawn, e.seconds, e.batch))


def _plain(value):
    """Python's own numbers, for JSON."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, (str, bool, int)):
        return value
    return float(value) if math.isfinite(value) else None


def _ms(seconds):
    return f"{1e3 * seconds:.3g}"


def _count(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
