"""The instrument: a page that asks the sixth model anything, the sources beneath, without a kernel or a network."""

import html
import json
from functools import cache
from importlib.resources import files

from book.calculator import questions, tables
from inferlib import style
from inferlib.kept import kept
from inferlib.ops import as_written
from inferlib.papers.erdil2025.records import NO_GPUS
from inferlib.serving import constants, decode
from inferlib.serving.decide import COUNTS, MOST
from inferlib.serving.estimate import CAUTIONS
from inferlib.serving.request import CAUTIONS as REQUEST_CAUTIONS
from inferlib.serving.speculation import measured

SCRIPTS = ("config.js", "ask.js")
# What a reader may change of a chip: field, label, unit and how many SI units it has.
FIELDS = (
    ("memory_capacity", "Memory", "GB", 1e9), ("memory_bandwidth", "Its bandwidth", "TB/s", 1e12),
    ("peak_16", "16-bit peak", "TFLOP/s", 1e12), ("peak_fp8", "FP8 peak", "TFLOP/s", 1e12),
    ("peak_fp4", "FP4 peak", "TFLOP/s", 1e12), ("scale_up_bandwidth", "Links in a domain", "GB/s", 1e9),
    ("scale_up_size", "Chips in a domain", "", 1), ("scale_out_bandwidth", "Links outside", "GB/s", 1e9),
    ("power", "Power", "W", 1),
)  # fmt: skip


def _function(names, expressions, plan=None):
    made = f"f:{questions.code(names, expressions)}"
    return f"{{{made},plan:{json.dumps(plan)}}}" if plan is not None else f"{{{made}}}"


@cache
def functions():
    """All generated JavaScript, as the text of one object, kept on disk."""
    return kept("functions of the instrument", _functions)


def _functions():
    every = {}
    for structure in questions.STRUCTURES:
        sparse = any(block == "experts" for _, block in questions.STRUCTURES[structure])
        variants = []
        for spread in (False, True) if sparse else (False,):
            asked = questions.functions(structure, spread)
            inner = (
                f"{name}:{_function([], values, plan if name in ('step', 'prompt') else None)}"
                for name, (plan, values) in asked.items()
            )
            variants.append(f"{{{','.join(inner)}}}")
        every[structure] = f"[{','.join(variants if sparse else [*variants, 'null'])}]"
    with as_written():
        shapes = (
            f"{structure}:[{','.join(questions.code([], _shape(structure, tied)) for tied in (False, True))}]"
            for structure in questions.STRUCTURES
        )
        shape = ",".join(shapes)
    glue = ",".join(f"{name}:{questions.code(*asked)}" for name, asked in questions.glue().items())
    told = []
    for name, declared in (("step", CAUTIONS), ("request", REQUEST_CAUTIONS)):
        texts, code = tables.cautions(declared)
        told.append(f"{name}:{{texts:{json.dumps(texts)},f:{code}}}")
    made = ",".join(f"{name}:{code}" for name, code in every.items())
    return f"{{functions:{{{made}}},shape:{{{shape}}},glue:{{{glue}}},cautions:{{{','.join(told)}}}}}"


def _shape(structure, tied):
    return list(questions.shape(structure, tied).values())


@cache
def data():
    """Everything the page looks up, as plain data."""
    known, refused = tables.models()
    order = {}
    for entry in known.values():
        order.setdefault(entry["structure"], list(entry["values"]))
    models = {
        name: entry | {"values": [entry["values"][key] for key in order[entry["structure"]]]}
        for name, entry in known.items()
    }
    bits = {name: round(8 * constants.STORED[name]) for name in constants.STORED}
    return {
        "models": models, "refused": refused, "structures": order, "places": questions.STRUCTURES,
        "stored": [questions._part("stored", part) for part in questions.STORED], "parts": constants.PARTS,
        "kernel": tables.KERNEL, "degrees": questions.DEGREES, "drawing": questions.TERMS, "short": decode.SHORT,
        "facts": tables.constant_facts(), "chips": tables.chips(), "kernels": tables.kernels(),
        "formats": tables.formats(), "engines": tables.engines(), "changes": questions.changes(),
        "levers": questions.levers(), "counts": COUNTS, "most": MOST, "measured": tables.measurements(),
        "same": {name: 8 if n == 8 else 16 if n > 8 else 4 for name, n in bits.items()},
        "families": tables.declared(), "palette": _palette(), "gpus": _gpus(),
        "accepted": {name: curve["length"] for name, curve in measured().items()},
        "as_weights": {name: tables.as_weights(name) for name in tables.WEIGHTS},
    }  # fmt: skip


def _palette():
    """Terms of the sources: the place of their colour among those of the page."""
    colours = [style.BLUE, style.ORANGE, style.GREEN, style.RED, style.PURPLE, style.YELLOW, style.SKY]
    return {name: colours.index(colour) for name, colour in style.TERMS.items() if colour in colours}


def _gpus():
    return {name: float(not name.startswith(NO_GPUS)) for name in tables.chips()}


def script(name):
    """A file of the page, without comments and indentation."""
    lines = (files("book.calculator") / name).read_text("utf-8").splitlines()
    stripped = (line.strip() for line in lines)
    return "\n".join(line for line in stripped if line and not line.startswith("//"))


def core():
    """JavaScript that answers without a page: ``inferlibConfig``, ``inferlibAsk`` and the data ``D``."""
    told = json.dumps(data(), separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    parts = [script(name) for name in SCRIPTS]
    return "\n".join([*parts, f"const D=Object.assign({told},{functions()});"])


def five():
    """The functions of the five sources, which the page asks of the same step, kept on disk."""
    return kept("sources of the instrument", _five)


def _five():
    from book.calculator import SOURCES, explorer
    from inferlib.explorer import Bars, Explorer

    shown = explorer()
    steps = {name: answer.search() for name, answer in SOURCES.items() if name != "sixth model"}
    asked = Explorer(shown.title, shown.inputs, [Bars(steps)])
    functions, _ = asked.code()
    return (
        f"{{functions:[{','.join(map(questions.packed, functions))}],args:{json.dumps(asked.arguments())},"
        f"plans:{json.dumps(asked.plans(), separators=(',', ':'))}}}"
    )


def _options(groups, chosen):
    """The options of a list: a name is its own label, a pair (value, label) is not."""
    text = ""
    for label, names in groups.items():
        inside = ""
        for name in names:
            value, told = name if isinstance(name, tuple) else (name, name)
            mark = " selected" if value == chosen else ""
            inside += f'<option value="{html.escape(value)}"{mark}>{html.escape(told)}</option>'
        text += f'<optgroup label="{html.escape(label)}">{inside}</optgroup>' if label else inside
    return text


def _fields(identity):
    return "".join(
        f'<div class="line"><label for="{identity}-{field}">{label}</label><input type="number" '
        f'id="{identity}-{field}" data-key="{field}" data-scale="{scale:g}" min="0.000001" max="100000000" step="any" '
        f'data-empty><span class="unit">{unit}</span></div>'
        for field, label, unit, scale in FIELDS
    )


class Instrument:
    """The page: shown by a notebook, and in the book without a kernel."""

    def _repr_html_(self):
        return page()

    def __repr__(self):
        return "The instrument: a page that asks the sixth model"


@cache
def page():
    """The HTML of the instrument."""
    identity = "ask"
    known = list(tables.models()[0])
    named = {"Models": [n for n in known if "/" not in n], "On Hugging Face": [n for n in known if "/" in n]}
    chips = data()["chips"]
    timed = [name for name, chip in chips.items() if chip["lender"] == name]
    others = [name for name in chips if name not in timed]
    start = str(_at_the_start())
    template = (files("book.calculator") / "instrument.html").read_text("utf-8")
    body = template.format(
        id=identity,
        models=_options(named, "Llama 3 70B"),
        chips=_options({"Operators timed": timed, "Operators of a neighbour": others}, "H100 SXM"),
        timed=_options({"": timed}, ""),
        weights=_options({"": [(name, _FORMATS.get(name, name)) for name in tables.WEIGHTS]}, "bf16"),
        curves=_options({"": list(measured())}, ""),
        drafts=max(len(curve["length"]) for curve in measured().values()),
        fields=_fields(identity),
        start=f"<p>{html.escape(start)}</p>",
    )
    call = (
        "(()=>{"
        f"{core()}Object.assign(D,{{five:{five()}}});{script('page.js')}"
        'window.inferlibAsked=inferlibPage(document.querySelector(".ask"),D);})();'
    )
    return f"<style>{script('instrument.css')}</style>{body}<script>{call}</script>"


_FORMATS = {"fp4": "fp4 (NVFP4)"}


def _at_the_start():
    from inferlib import System, Workload, estimate, load_chip, load_model

    return estimate(load_model("Llama 3 70B"), System(load_chip("H100 SXM"), 8), Workload(32, 4096))
