"""HTML of an explorer: its initial state, data and generated functions, and the shared runtime.

Style and runtime are the same for every explorer; the book keeps the first copy on a page.
"""

import hashlib
import html
import json
import re
from functools import partial
from numbers import Integral

from book import stored, style
from book.explorer import kernel_model_line
from book.explorer.inputs import Choice, Slider, StructureChoice, with_unit
from book.explorer.outputs import Bars, Curves, Sentence, numbers, step_of
from book.explorer.static_start import draw_static, script
from inferlib.system import Breakdown
from inferlib.units import factor

_KINDS = {Slider: "slider", Choice: "choice", StructureChoice: "kind"}
_shared = partial(script, "explorer")


def page(shown):
    """Return the HTML of an explorer, which needs no kernel."""
    functions = shown.code()
    config = {
        "slug": shown.slug, "args": shown.arguments(), "inputs": [_input(shown, i) for i in shown.inputs],
        "plans": shown.plans(), "views": [_view(shown, view) for view in shown.views],
        "limits": [
            _with_factor(name, limit.unit) | {"quiet": limit.quiet, "says": limit.says, "caution": limit.caution}
            for name, limit in shown.limits.items()
        ],
    }  # fmt: skip
    if shown.asks is not None:
        config["asks"] = kernel_model_line.ask_row(shown)
    identity = _identity(shown.title, config, functions)
    cautious = any(limit.caution for limit in shown.limits.values())
    code = f"{{functions:[{','.join(functions)}]}}"
    call = f"inferlibExplorer(Object.assign({_json(config | {'id': identity})},{code}));"
    made = boxed(
        "page", identity, shown.title, ("shared.js", "explorer.js"), call, slug=shown.slug,
        shown=shown, start=shown.evaluate(), views=[_drawn(shown, view) for view in shown.views],
        brief=" cautious" if cautious else "" if shown.limits else " brief", limits=_limits(shown),
        asked=None if shown.asks is None else kernel_model_line.format_answer(shown, digits),
        moved=", ".join(map(_start, shown.inputs)), digits=digits, shown_unit=_shown_unit, with_unit=with_unit,
    )  # fmt: skip
    return draw_static(made)


def guess_page(guess, start):
    """Return the HTML of a guess."""
    slider = Slider("guess", "Your guess", guess.low, guess.high, start, guess.unit, log=True)
    whole = isinstance(guess.answer, Integral)
    answer = float(guess.answer if whole else f"{guess.answer:.6g}")
    config = {"answer": answer, "unit": guess.unit, "whole": whole, "by": guess.by, "why": guess.why}
    identity = _identity(guess.question, config, "guess")
    ends = f"{digits(guess.low)} to {digits(guess.high)} {html.escape(guess.unit)}".replace(" ", "&nbsp;")
    call = f"inferlibGuess({_json(config | {'id': identity})});"
    runtime = "shared.js", "guess.js"
    return boxed("guess", identity, guess.question, runtime, call, slider=slider, ends=ends, by=guess.by)


def _start(i):
    """Describe an input and its initial value for a sentence, in lower case unless it begins with an abbreviation."""
    label = i.label if i.label[1:2].isupper() else i.label[0].lower() + i.label[1:]
    return f"{label} {digits(i.value)} {i.unit}".rstrip() if isinstance(i, Slider) else f"{label} {i.start()}"


def boxed(template, identity, title, runtime, call, **values):
    """Return a box of the page: a template filled with values, and the scripts that run in it."""
    scripts = map(_shared, runtime)
    about = {
        "id": identity,
        "title": title,
        "style": _shared("explorer.css"),
        "runtime": scripts,
        "call": call,
    }
    return stored.filled(f"explorer/{template}.jinja", **about, **values)


# --- Data for the runtime


def _input(shown, i):
    told = {"kind": _KINDS[type(i)], "key": i.name, "label": i.label}
    if isinstance(i, Slider):
        return told | {
            "unit": i.unit, "low": i.low, "high": i.high, "log": i.log, "whole": i.whole, "start": i.value
        }  # fmt: skip
    if i.sets:
        told["sets"] = [_settings(shown, i.sets.get(label, {})) for label in i.options]
    if isinstance(i, StructureChoice):
        return told | {"size": len(i.options)}
    used = shown.arguments()
    return told | {"columns": {name: values for name, values in i.columns().items() if name in used}}


def _settings(shown, values):
    known = {i.name: i for i in shown.inputs}
    return {
        name: value if isinstance(known[name], Slider) else list(known[name].options).index(value)
        for name, value in values.items()
    }


def _with_factor(name, unit):
    return {"name": name, "unit": _shown_unit(unit), "factor": factor(unit)}


def _shown_unit(unit):
    """Return a unit as the text writes it."""
    return {"1": "", "1/s": "per second", "us": "µs", "FLOP/B": "FLOP/byte"}.get(unit, unit)


def _view(shown, view):
    if isinstance(view, Bars):
        return {
            "type": "bars", "names": list(view.steps), "unit": _shown_unit(view.unit),
            "factor": factor(view.unit), "colours": _colours(shown, view),
            "terms": _bars(shown, view),
        }  # fmt: skip
    if isinstance(view, Sentence):
        return {
            "type": "sentence", "names": list(view.parts), "units": [_shown_unit(unit) for unit in view.units],
            "factors": [factor(unit) for unit in view.units], "cases": view.cases,
        }  # fmt: skip
    if isinstance(view, Curves):
        return {
            "type": "curves", "names": list(view.outputs), "x": view.x, "yLabel": view.y_label,
            "unit": _shown_unit(view.unit), "factor": factor(view.unit), "logY": view.log_y,
        } | _marked(view)  # fmt: skip
    return {
        "type": "gauge", "title": view.title, "names": list(view.outputs), "unit": _shown_unit(view.unit),
        "factor": factor(view.unit), "colours": _part_colours(view),
    }  # fmt: skip


def _marked(view):
    """Return optional data of curves: their colours, and a mark at the minimum."""
    told, colours = {}, _curve_colours(view)
    if colours != list(range(len(colours))):
        told["colours"] = colours
    if view.least:
        told["least"] = list(view.outputs).index(view.least)
    return told


def _curve_colours(view):
    """Return the colour of each curve: the colour of its term in bars, else a colour of no term."""
    found = _coloured(view.outputs)
    return [found[name] for name in view.outputs]


def _part_colours(view):
    found = _coloured(view.parts) | {name: PALETTE.index(colour) for name, colour in view.colours.items()}
    return [found[name] for name in view.parts]


PALETTE = [
    style.BLUE, style.ORANGE, style.GREEN, style.RED, style.PURPLE, style.YELLOW, style.SKY, style.BROWN, style.FAINT,
    style.ROSE, style.VIOLET, style.INK,
]  # fmt: skip


def _bars(shown, view):
    """Return the terms of each bar."""
    return [_terms(shown, view, k) for k in range(len(view.steps))]


def _colours(shown, view):
    """Return the colour of each term, bar by bar."""
    bars = _bars(shown, view)
    colours = _coloured(dict.fromkeys(term for bar in bars for term in bar))
    return [{term: colours[term] for term in bar} for bar in bars]


def _coloured(terms):
    """Return the index in the palette of each term's colour."""
    return {name: PALETTE.index(colour) for name, colour in style.coloured(terms).items()}


def _terms(shown, view, k):
    """Return all terms that a bar has in any state."""
    at = next(i for i, v in enumerate(shown.views) if v is view)
    entries = (plan["views"][at][k] for plan in shown.plans())
    return list(dict.fromkeys(name for entry in entries for name in entry.get("names", ())))


# --- Initial state, before the runtime draws


def _limits(shown):
    """Return needed and available amounts of each limit at the start."""
    arguments = shown._arguments(shown.state())
    told = [
        f"{name[0].upper()}{name[1:]}: {digits(limit.needed(**arguments) / factor(limit.unit))} of "
        f"{digits(limit.available(**arguments) / factor(limit.unit))} {_shown_unit(limit.unit)}".rstrip()
        for name, limit in shown.limits.items()
        if not (limit.quiet or limit.caution)
    ]
    return "; ".join(told)


def _drawn(shown, view):
    """Return what a view shows at the start."""
    known = {"kind": type(view).__name__, "view": view, "numbers": numbers(view)}
    if isinstance(view, Bars):
        return known | {"bars": [_bar(shown, view, *bar) for bar in enumerate(view.steps.items())]}
    if isinstance(view, Sentence):
        longest = max(len(text) for _, text in view.cases)
        return known | {"longest": longest, "said": view.say(shown.evaluate(), digits)}
    return known | {"colours": _curve_colours(view) if isinstance(view, Curves) else _part_colours(view)}


def _bar(shown, view, k, named):
    """Return name and step of a bar at the start, and each of its terms with size and unit."""
    (name, output), arguments = named, shown._arguments(shown.state())
    missing = [limit.says.lower() for n, limit in shown.limits.items() if n in shown._short(arguments)]
    step = Breakdown(status="infeasible", reason=missing[0]) if missing else step_of(output, arguments)
    found, unit = step.terms if step.feasible else {}, _shown_unit(view.unit)
    terms = [(t, *_told(found.get(t, 0) / factor(view.unit), unit)) for t in _terms(shown, view, k)]
    return name, step, terms


FINER = {"s": "ms", "ms": "µs", "µs": "ns"}


def _told(value, unit, least=1e-3):
    """Return a term's number and unit, with a smaller unit if it is too short for that of its bar."""
    if 0 < value < least and unit in FINER:
        return _told(1e3 * value, FINER[unit], 1)
    return digits(value), unit


def digits(value):
    """Format a number in three digits, as the runtime does.

    Examples
    --------
    >>> digits(6.4321), digits(12345.6), digits(1.5e-5), digits(None)
    ('6.43', '12,346', '1.50e-5', 'n/a')
    >>> digits(1000), digits(1e7), digits(1e-3), digits(0)
    ('1,000', '1.00e7', '0.001', '0')
    """
    if value is None or value != value:
        return "n/a"
    if value == 0:
        return "0"
    if abs(value) >= 1e7 or abs(value) < 1e-3:
        return re.sub(r"e\+?(-?)0*", r"e\1", f"{value:.2e}")
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{float(f'{value:.3g}'):g}"


def _json(data):
    """Return data as JSON inside a script; no text in it can end the script."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")


def _identity(*content):
    """Return an id derived from the content, so that the same explorer is the same HTML in every run."""
    return "ex-" + hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:10]
