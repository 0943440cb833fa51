"""The kernel model's answer to the question that an explorer shows, in a line below it.

``asks`` maps fields of the question to the explorer's inputs, if their names differ; several inputs are multiplied:
``{"model": "app", "n_chips": "nodes size"}``. ``layout`` is a layout for n chips in the question's spelling; ``names``
are the catalogue's names of options with other names. For an option that the catalogue does not know, the line is
empty.
"""

from functools import cache
from math import prod

from book.explorer.inputs import FORMATS
from inferlib import formats
from tokenprice import ask, catalog

FIELDS = ("model", "chip", "n_chips", "batch", "context", "weights", "cache")


def ask_row(shown):
    """Return the data with which the page asks an explorer's question."""
    known = {i.name: i for i in shown.inputs}
    told = {name: name for name in FIELDS if name not in ("weights", "cache") or name in known} | shown.asks
    labels = (*known[told["model"]].options, *known[told["chip"]].options)
    names = {label: label for label in labels if label in (*catalog.models(), *catalog.chips())}
    others = {
        label: label for name in ("weights", "cache") if name in told for label in known[told[name]].options
        if label in formats.FORMATS
    }  # fmt: skip
    told |= {"formats": FORMATS | others, "names": names | shown.asks.get("names", {})}
    return {"layout": ""} | told


def format_answer(shown, digits, **values):
    """Return the line below an explorer at values of its inputs; ``""`` if it cannot be asked."""
    told, state, known = ask_row(shown), shown.state(**values), {i.name: i for i in shown.inputs}
    model, chip = (told["names"].get(state[told[name]]) for name in ("model", "chip"))
    if model is None or chip is None:
        return ""

    def number(part):
        return (
            getattr(known[part], "options", {}).get(state[part], state[part]) if part in known else int(part)
        )

    n, *work = (round(prod(map(number, told[name].split()))) for name in ("n_chips", "batch", "context"))
    stored = (told["formats"][state[told[name]]] if name in told else None for name in ("weights", "cache"))
    layout = told["layout"].replace("n", str(n)) or None
    try:
        answer = _answered(model, f"{n}x {chip}", layout, *work, *stored)
    except ValueError as refusal:
        return f"The kernel model does not answer: {refusal}"
    if not answer.step.feasible:
        return f"The kernel model does not answer: {answer.step.reason}"
    middle, low, high = (digits(1e3 * seconds) for seconds in (answer.seconds, answer.low, answer.high))
    return (
        f"The kernel model says {middle} ms ({low} to {high} ms in {100 * answer.confidence:.0f} % of cases)."
    )


@cache
def _answered(model, machine, layout, batch, context, weights, cache):
    return ask(
        model, machine, layout=layout, batch=batch, context=context, weights=weights, kv_cache_dtype=cache
    )
