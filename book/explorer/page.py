"""HTML of an explorer: its initial state, data and generated functions, and the shared runtime.

Style and runtime are the same for every explorer; the book keeps the first copy on a page.
"""

import hashlib
import html
import json
import re
from functools import partial
from numbers import Integral

from book import style
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
    controls = "".join(_control(identity, i) for i in shown.inputs if i.name not in shown.more)
    folded = "".join(_control(identity, i) for i in shown.inputs if i.name in shown.more)
    controls += f'<details class="more"><summary>more to set</summary>{folded}</details>' if folded else ""
    views = "".join(_drawn(identity, shown, v, view) for v, view in enumerate(shown.views))
    brief = "" if shown.limits else " brief"
    if any(limit.caution for limit in shown.limits.values()):
        brief = " cautious"
    limits = f'<div id="{identity}-limits" class="limits{brief}">{_limits(shown)}</div>'
    moved = ", ".join(_start(i) for i in shown.inputs)
    still = f'<p class="still">Shown for {html.escape(moved)}. To be moved on the page, with scripts.</p>'
    acts = "".join(
        f'<button type="button" data-act="{act}">{label}</button>'
        for act, label in (("link", "Link to this state"), ("reset", "Start again"))
    )
    said = f'<p id="{identity}-said" class="said" role="status" aria-live="polite"></p>'
    asked = ""
    if shown.asks is not None:
        told = html.escape(kernel_model_line.format_answer(shown, digits))
        asked = f'<p id="{identity}-asked" class="asked">{told}</p>'
    body = f'{controls}{limits}{views}{asked}<div class="acts">{acts}</div>{still}{said}'
    data = _json(config | {"id": identity})
    code = f"{{functions:[{','.join(functions)}]}}"
    call = f"inferlibExplorer(Object.assign({data},{code}));"
    return draw_static(_box(identity, shown.title, body, ("shared.js", "explorer.js"), call, shown.slug))


def guess_page(guess, start):
    """Return the HTML of a guess."""
    slider = Slider("guess", "Your guess", guess.low, guess.high, start, guess.unit, log=True)
    whole = isinstance(guess.answer, Integral)
    answer = float(guess.answer if whole else f"{guess.answer:.6g}")
    config = {"answer": answer, "unit": guess.unit, "whole": whole, "by": guess.by, "why": guess.why}
    identity = _identity(guess.question, config, "guess")
    ends = f"{digits(guess.low)} to {digits(guess.high)} {html.escape(guess.unit)}".replace(" ", "&nbsp;")
    body = (
        f'<div class="control"><label for="{identity}-guess">Your guess, {ends}</label>{_range(identity, slider)}'
        f'<output for="{identity}-guess"></output></div>'
        f'<button type="button">Show what {html.escape(guess.by)} says</button> '
        '<p class="readout" role="status" aria-live="polite"></p>'
    )
    call = f"inferlibGuess({_json(config | {'id': identity})});"
    return _box(identity, guess.question, body, ("shared.js", "guess.js"), call)


def _start(i):
    """Describe an input and its initial value for a sentence, in lower case unless it begins with an abbreviation."""
    label = i.label if i.label[1:2].isupper() else i.label[0].lower() + i.label[1:]
    return f"{label} {digits(i.value)} {i.unit}".rstrip() if isinstance(i, Slider) else f"{label} {i.start()}"


def _box(identity, title, body, runtime, call, slug=""):
    slug = f' data-slug="{slug}"' if slug else ""
    heading = f'<div class="title">{html.escape(title)}</div>'
    shared = "".join(f"<script>{_shared(name)}</script>" for name in runtime)
    return (
        f'<style>{_shared("explorer.css")}</style><div id="{identity}"{slug} class="inferlib-explorer" role="group" '
        f'aria-label="{html.escape(title)}">{heading}{body}</div>{shared}<script>{call}</script>'
    )


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
            "terms": [_terms(shown, view, k) for k in range(len(view.steps))],
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


def _colours(shown, view):
    """Return the colour of each term, bar by bar."""
    bars = [_terms(shown, view, k) for k in range(len(view.steps))]
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
    return html.escape("; ".join(told)) or "&nbsp;"


def _control(identity, i):
    name = f"{identity}-{i.name}"
    label = f'<div class="control"><label for="{name}">{html.escape(i.label)}</label>'
    if isinstance(i, Slider):
        number = (
            f'<input type="number" autocomplete="off" id="{name}-n" data-key="{i.name}" step="any" min="{i.low:g}" '
            f'max="{i.high:g}" value="{i.value:.6g}" aria-label="{html.escape(with_unit(i))}, typed">'
        )
        return f'{label}{_range(identity, i)}{number} <span class="unit">{html.escape(i.unit)}</span></div>'
    options = "".join(f"<option>{html.escape(option)}</option>" for option in i.options)
    return f'{label}<select id="{name}" data-key="{i.name}" autocomplete="off">{options}</select></div>'


def _range(identity, i):
    low, high, value = (f"{i.position(v):.6g}" for v in (i.low, i.high, i.value))
    step = 1 if i.whole and not i.log else f"{(i.position(i.high) - i.position(i.low)) / 400:.6g}"
    return (
        f'<input type="range" autocomplete="off" id="{identity}-{i.name}" data-key="{i.name}" min="{low}" '
        f'max="{high}" step="{step}" value="{value}">'
    )


def _drawn(identity, shown, v, view):
    subtitle = f'<div class="subtitle">{html.escape(view.title)}</div>' if view.title else ""
    part = f"{identity}-v{v}"
    if isinstance(view, Bars):
        inside = _bars(part, shown, view)
    elif isinstance(view, Curves):
        inside = _picture(part, view.title or shown.title, view.x) + _readout(part, shown, view)
    elif isinstance(view, Sentence):
        longest = max(len(text) for _, text in view.cases)
        said = html.escape(view.say(shown.evaluate(), digits))
        inside = f'<p class="sentence" id="{part}" style="--n:{longest}">{said}</p>'
    else:
        inside = _picture(part, view.title, height=52)
        inside += _readout(part, shown, view)
    return f'<div class="view">{subtitle}{inside}</div>'


def _picture(part, title, x=None, height=300):
    moves = f' data-x="{x}"' if x else ""
    box = f'viewBox="0 0 600 {height}" role="img" aria-label="{html.escape(title)}"'
    return f'<svg id="{part}" {box}{moves}></svg>'


def _readout(part, shown, view):
    start = shown.evaluate()
    entries = "".join(
        f'<span>{colour}{html.escape(name)} <b id="{part}-{k}">{digits(start[name])}</b> '
        f"{html.escape(_shown_unit(unit))}</span> "
        for k, ((name, _, unit), colour) in enumerate(
            zip(numbers(view), _readout_colours(view), strict=False)
        )
    )
    return f'<div class="readout">{entries}</div>'


def _readout_colours(view):
    """Return the colour key of each number below a picture; the limit of a gauge has none."""
    if isinstance(view, Curves):
        return [f'<i class="c{k}"></i>' for k in _curve_colours(view)]
    return [f'<i class="c{k}"></i>' for k in _part_colours(view)] + [""]


def _bars(part, shown, view):
    arguments = shown._arguments(shown.state())
    steps = "".join(
        _bar(f"{part}-s{k}", shown, view, name, output, arguments)
        for k, (name, output) in enumerate(view.steps.items())
    )
    axis = f'<svg id="{part}-axis" viewBox="0 0 600 22" aria-hidden="true"></svg>'
    if not any(view.steps):  # one bar without a name
        return f'{steps}{axis}<div>total <b id="{part}-s0-t"></b> {html.escape(_shown_unit(view.unit))}</div>'
    heads = "source", f"time ({view.unit})", "bound by"
    head = "".join(f'<th scope="col">{html.escape(h)}</th>' for h in heads)
    rows = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th><td class="number" id="{part}-s{k}-t"></td>'
        f'<td class="name" id="{part}-s{k}-b"></td></tr>'
        for k, name in enumerate(view.steps)
    )
    # fixed widths, so that longer numbers do not move columns
    widths = "".join(f'<col style="width:{em}em">' for em in (9.5, 4, 11))
    wide = 'style="table-layout:fixed;width:24.5em"'
    table = f"<table {wide}><colgroup>{widths}</colgroup><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'{steps}{axis}<div class="scroll" tabindex="0" role="region" aria-label="Table">{table}</div>'


def _bar(part, shown, view, name, output, arguments):
    missing = [limit.says.lower() for n, limit in shown.limits.items() if n in shown._short(arguments)]
    step = Breakdown(status="infeasible", reason=missing[0]) if missing else step_of(output, arguments)
    terms = step.terms if isinstance(step, Breakdown) and step.feasible else {}
    hides = ' class="absent"'
    told = "" if terms else f'<span class="reason">{html.escape(step.reason)}</span>'
    told += "".join(
        f"<span{'' if t in terms else hides}><i></i>{html.escape(t)} "
        f"<b>{size}</b> {html.escape(unit)}"
        f"<em{'> (hidden)' if t in step.overlapped else hides + '>'}</em></span> "
        for t in _terms(shown, view, list(view.steps).index(name))
        for size, unit in [_told(terms.get(t, 0) / factor(view.unit), _shown_unit(view.unit))]
    )
    heading = f'<div class="heading"><b>{html.escape(name)}</b></div>' if name else ""
    label = html.escape(f"{shown.title}: {name}" if name else shown.title)
    bar = f'<svg id="{part}" viewBox="0 0 600 26" role="img" aria-label="{label}"></svg>'
    return f'<div class="step">{heading}{bar}<div class="readout" id="{part}-r">{told}</div></div>'


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
