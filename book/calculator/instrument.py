"""The instrument: a page that asks the sixth model anything, with the sources beneath; it needs no kernel and no network."""

import html
import json
from functools import cache
from importlib.resources import files

from book.calculator import questions, tables
from inferlib.ops import as_written
from inferlib.serving import constants, decode
from inferlib.serving.decide import COUNTS, MOST
from inferlib.serving.estimate import CAUTIONS
from inferlib.serving.request import CAUTIONS as REQUEST_CAUTIONS

SCRIPTS = ("config.js", "ask.js")


def _function(names, expressions, plan=None):
    made = f"f:{questions.code(names, expressions)}"
    return f"{{{made},plan:{json.dumps(plan)}}}" if plan is not None else f"{{{made}}}"


@cache
def functions():
    """All generated JavaScript, as the text of one object."""
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
        "formats": tables.formats(), "engines": tables.engines(), "changes": questions.CHANGES,
        "levers": questions.LEVERS, "counts": COUNTS, "most": MOST, "measured": tables.measurements(),
        "same": {name: 8 if n == 8 else 16 if n > 8 else 4 for name, n in bits.items()},
        "families": tables.declared(),
    }  # fmt: skip


def script(name):
    """A file of the page, without comments and indentation."""
    lines = (files("book.calculator") / name).read_text("utf-8").splitlines()
    stripped = (line.strip() for line in lines)
    return "\n".join(line for line in stripped if line and not line.startswith("//"))


def core():
    """JavaScript that answers without a page: ``inferlibConfig``, ``inferlibAsk`` and the data ``D``."""
    told = json.dumps(data(), sort_keys=True, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    parts = [script(name) for name in SCRIPTS]
    return "\n".join([*parts, f"const D=Object.assign({told},{functions()});"])
