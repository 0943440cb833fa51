"""The calculator page, which asks the kernel model in the browser, without a kernel or a network."""

import json
import re
from collections import Counter
from functools import cache

from book import stored, style
from book.calculator import fields, javascript, tables
from book.explorer import static_start
from inferlib.catalog import ENDINGS, SOLD, VENDORS
from inferlib.formats import FORMATS
from inferlib.transformer import Attention
from tokenprice import ask, calibration, deployment, invariants, operators, permalink
from tokenprice.ask import LATER, NO_NETWORK, OVERLOAD_MESSAGE, REMARKS
from tokenprice.prefill import ArrivalProcess
from tokenprice.question import CLOSED_LOOP_ONLY, PAIRED
from tokenprice.queueing import (
    LEAST_WARM,
    LONGER,
    MAX_ITERATIONS,
    MEMORY_FULL,
    NEGLIGIBLE_STEP,
    RARELY_FULL,
    REQUESTS,
    TRIES,
    WARM,
    WORTH_SAYING,
)
from tokenprice.recommendation import IN_STAGES, LIMITED, MAX_USERS, MUCH_LESS, OFFERS_SHOWN, SETTLED
from tokenprice.request import CAUTIONS as REQUEST_CAUTIONS, TTFT_CAUTIONS
from tokenprice.speculation import measured_curves
from tokenprice.uncertainty import CAUTIONS

TERMS = [term for stage in operators.STAGES for term in stage]
# Lines of JavaScript with strings but no templates or regular expressions, and blanks outside of the strings.
CODE = re.compile(r"""^(?!.*\$\{)[^'`/\\\n]*"[^'`/\\\n]*$""", re.MULTILINE)
BLANKS = re.compile(r"""("[^"]*")| ?([,{}?:*<>=;()]) ?""")


def script(name):
    """Return a script or style sheet of the page, minified: a script also between the strings of a line."""
    text = static_start.script("calculator", name)
    if not name.endswith(".js"):
        return text
    return CODE.sub(lambda line: BLANKS.sub(lambda found: found[1] or found[2], line[0]), text)


@cache
def functions():
    """All generated JavaScript, as the text of one object."""
    told = []
    for name, declared in (("step", CAUTIONS), ("request", REQUEST_CAUTIONS), ("first", TTFT_CAUTIONS)):
        texts, code = tables.cautions(declared)
        widens = json.dumps([caution.factor for caution in declared])
        told.append(f"{name}:{{texts:{json.dumps(texts)},widens:{widens},f:{code}}}")
    glue = ",".join(f"{name}:{javascript.code(asked)}" for name, asked in javascript.glue().items())
    whole = ",".join(f"{what}:{_several(what, asked)}" for what, asked in javascript.whole().items())
    kinds = ",".join(map(_kind, tables.kinds()))
    return f"{{kinds:[{kinds}],whole:{{{whole}}},glue:{{{glue}}},cautions:{{{','.join(told)}}}}}"


def _several(what, asked):
    """Return JavaScript of a list of functions: of seconds by term, or of expressions."""
    made = []
    for one in asked:
        if what in ("step", "prompt", "sums"):
            terms = ",".join(str(TERMS.index(name)) for name in one)
            made.append(f"{{terms:[{terms}],f:{javascript.code(one.values())}}}")
        else:
            made.append(javascript.code(one))
    return f"[{','.join(made)}]"


def _kind(part):
    """Return JavaScript of a kind of attention or block: name, dimensions, timed kernels it uses, and functions."""
    asked = javascript.layer(part)
    seconds = (t for terms in asked["step"] + asked["prompt"] for t in terms.values())
    names = {str(symbol) for t in seconds for symbol in t.free_symbols}
    timed = [
        name for name, known in javascript.timed().items()
        if names & set(map(str, javascript.numbers(javascript.part_of("timed", name), known).values()))
    ]  # fmt: skip
    about = {
        "name": permalink.kind(part, javascript.names_of(part)), "names": javascript.names_of(part),
        "pairs": int("pairs_start" in names), "plain": isinstance(part, Attention), "timed": timed,
        "sums": asked["sums"],
    }  # fmt: skip
    made = ",".join(f"{what}:{_several(what, asked[what])}" for what in ("step", "prompt"))
    made += f",kept:{javascript.code(asked['kept'])}" if "kept" in asked else ""
    told = ",".join(f"{name}:{json.dumps(value, separators=(',', ':'))}" for name, value in about.items())
    return f"{{{told},{made}}}"


@cache
def data():
    """Return everything that the page looks up, as plain data."""
    bits = {name: round(row.stored) for name, row in FORMATS.items()}
    return {
        "form": fields.data(),
        "models": tables.models()[0],
        "stored": permalink.STORED,
        "parts": calibration.PARTS,
        "stages": operators.STAGES,
        "terms": TERMS,
        "chip": [f"chip_{field}" for field in tables.CHIP],
        "kernel": tables.KERNEL,
        "degrees": javascript.DEGREES,
        "drawing": javascript.TERMS,
        "short": [deployment.OUT_OF_MEMORY, deployment.OVER_ENGINE_BUDGET],
        "seen": deployment.SEEN,
        "crowded": OVERLOAD_MESSAGE,
        "later": LATER,
        "unlinked": NO_NETWORK,
        "paired": PAIRED,
        "remarks": REMARKS,
        "timed": javascript.timed(),
        "sparse": tables.sparse(),
        "facts": tables.constant_facts(),
        "chips": tables.chips(),
        "kernels": tables.kernels(),
        "formats": tables.formats(),
        "engines": tables.engines(),
        "changes": javascript.changes(),
        "levers": javascript.levers(),
        "most": MAX_USERS,
        "soon": NEGLIGIBLE_STEP,
        "beside": CLOSED_LOOP_ONLY,
        "check": tables.checks(),
        "group": [ArrivalProcess(10, alike).group for alike in (False, True)],
        "rounds": MAX_ITERATIONS,
        "schedulers": tables.schedulers(),
        "simulated": {
            "warm": WARM,
            "least": LEAST_WARM,
            "requests": REQUESTS,
            "longer": LONGER,
            "tries": TRIES,
        },
        "limit": {"roomy": RARELY_FULL, "worth": WORTH_SAYING, "full": MEMORY_FULL, "chosen": LIMITED},
        "shown": OFFERS_SHOWN,
        "settled": SETTLED,
        "pipelines": {"text": IN_STAGES, "least": MUCH_LESS},
        "measured": tables.measurements(),
        "same": {name: 8 if n == 8 else 16 if n > 8 else 4 for name, n in bits.items()},
        "bounds": [
            (kind, n, invariants.VIOLATION_MESSAGE.format(one.text))
            for kind in ("request", "loop")
            for n, one in enumerate(invariants.KINDS[kind])
        ],
        "palette": _palette(),
        "names": {what: tables.other_spellings(what) for what in ("model", "chip")},
        "ignored": {"endings": ENDINGS, "vendors": sorted(VENDORS), "sold": SOLD},
        "accepted": {name: curve["length"] for name, curve in measured_curves().items()},
    }


def _palette():
    """Return the index of each term's colour among those of the page."""
    colours = [style.BLUE, style.ORANGE, style.GREEN, style.RED, style.PURPLE, style.YELLOW]
    colours += [style.SKY, style.FAINT, style.ROSE]
    known = {name: colours.index(colour) for name, colour in style.TERMS.items() if colour in colours}
    return known | {"engine": len(colours)}  # a paler grey, beside that of kernel launches


def core():
    """Return JavaScript that answers without a page: ``inferlibAsk`` and the data ``D``."""
    own = map(script, ("replica.js", "ask.js", "check.js"))
    scripts = "\n".join([static_start.script("explorer", "shared.js"), *own])
    return f"{scripts}\nconst {literal(data())},D={{...$,...{functions()}}};"


def literal(value):
    """Return data as JavaScript constants, the last of which is ``$``; what occurs twice is stored once.

    Numbers have twelve digits.
    """
    often, places, made = Counter(_parts(value)), {}, []

    def text(value, told):
        if isinstance(value, (dict, list, tuple, str)):
            if often[told] > 1 and len(told) > 8:
                if told not in places:
                    made.append(inside(value))
                    places[told] = f"$${len(made)}"
                return places[told]
            return inside(value)
        return shortest(float(f"{value:.12g}")) if isinstance(value, float) else told

    def inside(value):
        if isinstance(value, dict):
            return f"{{{','.join(f'{_key(name)}:{text(v, json.dumps(v))}' for name, v in value.items())}}}"
        if isinstance(value, str):
            return json.dumps(value).replace("</", "<\\/")
        return f"[{','.join(text(v, json.dumps(v)) for v in value)}]"

    whole = inside(value)
    return ",".join([*(f"$${k}={one}" for k, one in enumerate(made, 1)), f"$={whole}"])


def _key(name):
    return name if name.isascii() and name.isidentifier() and name != "__proto__" else json.dumps(name)


def _parts(value):
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    for one in inside:
        if isinstance(one, (dict, list, tuple, str)):
            yield json.dumps(one)
            yield from _parts(one)


def shortest(value):
    """Return a finite number in the fewest letters that parse back to it."""
    plain = re.sub(r"^(-?)0(?=\.)|\.0$", r"\1", repr(value)) if value else "0"
    digits, _, power = f"{value:.16e}".partition("e")
    first, _, after = digits.rstrip("0").partition(".")
    power = f"{first}{after}e{int(power) - len(after)}"
    return min(plain, power, key=len) if float(power) == value else plain


def _options(groups, chosen):
    """Return the options of a list: a name is its own label, or a pair of value and label."""
    return stored.filled("calculator/options.jinja", groups=groups, chosen=chosen)


def _chip(identity):
    return "".join(
        f'<div class="line"><label for="{identity}-{field}">{label}</label><input type="text" '
        f'id="{identity}-{field}" data-key="{field}"><span class="unit">{unit}</span></div>'
        for field, label, unit, _ in fields.CHIP
    )


class Instrument:
    """The calculator page: shown by a notebook, and in the book without a kernel."""

    def _repr_html_(self):
        return page()

    def __repr__(self):
        return "The instrument: a page that asks the kernel model"


@cache
def page():
    """Return the HTML of the calculator."""
    identity = "ask"
    known = list(tables.models()[0])
    named = {"Models": [n for n in known if "/" not in n], "On Hugging Face": [n for n in known if "/" in n]}
    chips = data()["chips"]
    timed = [name for name, chip in chips.items() if chip["lender"] == name]
    others = [name for name in chips if name not in timed]
    template, blocks = fields.blocks()
    rows = fields.rows(
        identity, blocks,
        models=_options(named, "Llama 3 70B"),
        chips=_options({"Operators timed": timed, "Operators of a neighbour": others}, "H100 SXM"),
        timed=_options({"": timed}, ""),
        weights=_options({"": [(name, _FORMATS.get(name, name)) for name in tables.WEIGHTS]}, ""),
        caches=_options({"": tables.CACHES}, ""),
        engines=_options({"": [(name, _ENGINES.get(name, name)) for name in tables.engines() if name]}, ""),
    )  # fmt: skip
    body = template.format(
        id=identity,
        rows=rows,
        curves=_options({"": list(measured_curves())}, ""),
        chip=_chip(identity),
        start=ask("Llama 3 70B", "8x H100", batch=32, context=4096)._repr_html_(),
        beyond=fields.beyond(),
    )
    known = f"window.inferlibKnown=(()=>{{{core()}return D;}})();"
    call = (
        f"(()=>{{{script('page.js')}"
        'window.inferlibAsked=inferlibPage(document.querySelector(".ask"),inferlibKnown);})();'
    )
    return f"<style>{script('page.css')}</style>{body}<script>{known}</script><script>{call}</script>"


_FORMATS = {"fp4": "fp4 (NVFP4)"}
_ENGINES = {
    "serving": "vLLM of today", "sglang": "SGLang: prompts first", "compiled": "TensorRT-LLM and its like",
    "python-2024": "vLLM of 2024",
}  # fmt: skip
