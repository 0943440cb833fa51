"""The form of the calculator, generated from the declared fields of Question and SLO.

Each field appears in its record's order, with its name, help, unit and parser, in the modes it belongs to. Fields with
a widget of their own (chips, layouts, formats) are in ``page.html`` under the field's name.
"""

import re
from dataclasses import fields

from book import stored
from tokenprice import benchmark, launch, parsing
from tokenprice.permalink import LEFT_OUT
from tokenprice.question import CHOSEN_BY_DECIDE, REQUEST, SERVING, SLO, STEP, Question
from tokenprice.recommendation import MAX_USERS

POWER = ("electricity", "pue")  # fields that need a chip of known power
FORM = stored.toml("calculator/form.toml")
START = FORM["start"]  # the initial question
CHIP = [(name, *about) for name, about in FORM["chip"].items()]  # name, label, unit, and the unit in SI
# Inputs of the page that are part of a field: their parser, and the field.
PARTS = {
    "n_chips": (parsing.parse_int, "machine"),
    "goal": (parsing.parse_seconds, "tpot"),
    "budget": (parsing.parse_dollars, "usd_per_million"),
}
# Parsers of flags and of words of a benchmark.
SAID = {f"--{kind}": read for kind, read in launch.READ.items() if kind not in ("truth", "format")} | {
    name: getattr(parsing, read) for name, read in benchmark.table()["words"].values()
}
TEXTS = ("layout", "layer_formats", "prefill_machine")  # fields that are read as text
LISTED = ("layout", "acceptance_length")  # text fields that also offer a list
MOST_TOKENS = 1024**2  # largest value of a slider


def declared():
    """Return the fields that the page has, in order: name to the declaration."""
    every = (f for kind in (Question, SLO) for f in fields(kind))
    return {f.name: f.metadata for f in every if f.name not in LEFT_OUT}


def modes():
    """Return the modes in which each field is part of the question, by the records' own rules."""
    promised = [f.name for f in fields(SLO)]
    found = {}
    for name in declared():
        step, request = name not in (*REQUEST, *SERVING, *promised), name not in (*STEP, *promised)
        decide = name not in (*STEP, *CHOSEN_BY_DECIDE, *POWER)
        held = (("step", step), ("request", request), ("decide", decide), ("check", name == "machine"))
        found[name] = [mode for mode, holds in held if holds]
    return found


def reads(read, name):
    """Describe how a parser reads a number: its units, its smallest and largest value, whether it must be whole.

    It is found by calling the parser. A unit has its factor; 1, or -1 if larger numbers mean less; and the maximum.
    """

    def asked(text):
        try:
            return read(name, text)
        except (ValueError, LookupError, TypeError):
            return None

    units = {}
    for unit in parsing.UNITS:
        for one, two in (("4", "8"), ("0.4", "0.8")):
            each = [asked(f"{n} {unit}".strip()) for n in (one, two)]
            if unit in units or None in each:
                continue
            if isinstance(each[0], str):
                units[unit] = "share"  # a fraction of another field, computed by the question
            else:
                by = each[0] / float(one) if each[1] > each[0] else each[0] * float(one)
                limits = (n for n in (1e12, 1e9, 60, 1) if asked(f"{int(n / by)} {unit}".strip()) is not None)
                units[unit] = [by, 1, next(limits)] if each[1] > each[0] else [by, -1, 1e12]
    least = next(n for n in (0, 1e-9, 1) if asked(n) is not None)
    found = {"units": units, "least": least, "whole": asked(2.5) is None and asked(3) is not None}
    if "share" in units.values():
        found["shares"] = True  # a bare number up to 1 is a fraction
    return found | ({"commas": True} if asked("8,192") is not None else {})


def numbers():
    """Return every number of the page: how it is parsed, and in which unit it is shown."""
    found = {}
    for name, about in declared().items():
        if about["unit"]:
            shown = re.sub(r"[\d.$]+\s*", "", about["example"])
            found[name] = reads(about["read"], name) | {"show": "" if shown == "k" else shown}
    found |= {name: reads(read, field) | {"show": ""} for name, (read, field) in PARTS.items()}
    found |= {name: reads(read, name) | {"show": ""} for name, read in SAID.items() if name not in found}
    found["goal"]["show"] = "ms"
    found["draft_tokens"]["least"] = 0  # 0 means none
    for name, _, _, scale in CHIP:
        found[name] = {"units": {"": [scale, 1, 1e20]}, "least": 1e-6, "whole": False, "show": ""}
    return found


def rows(identity, blocks, **filled):
    """Return the rows of the form, field by field."""
    known, when, made = numbers(), modes(), []
    for name, about in declared().items():
        mode = " ".join(when[name])
        if name in blocks:
            made.append(blocks[name].replace("{modes}", mode))
        elif name in known or name in TEXTS:
            made.append(_row(identity, name, about, mode))
        else:
            raise LookupError(f"{name} has no row in page.html, and is not a number")
    return "".join(made).format(id=identity, **filled)


def _row(identity, name, about, mode):
    slider = about["read"] in (parsing.parse_tokens, parsing.parse_count, parsing.parse_cached)
    short = "; 1k is 1,024" if about["read"] is parsing.parse_tokens else ""
    return stored.filled(
        "calculator/row.jinja", id=identity, name=name, mode=mode, slider=slider, example=about["example"],
        label=_label(name), told=about["help"] + short,
        empty=name not in START or name in (*TEXTS, "tpot", "ttft"), listed=name in LISTED,
        unit="" if slider or about["unit"] in ("", "1", "s") else about["unit"].replace("usd", "$"),
    )  # fmt: skip


def _label(name):
    """Return a field's name in words: acronyms in capitals."""
    if name in ("pue", "tpot", "ttft"):
        return name.upper()
    return name.replace("usd", "$").replace("_", " ").capitalize()


def blocks():
    """Return the page's template, and the rows that ``page.html`` writes by hand, by field."""
    text = stored.text("calculator/page.html")
    page, *parts = re.split(r"^\[\[(\w+)\]\]\n", text, flags=re.MULTILINE)
    return page, dict(zip(parts[::2], parts[1::2], strict=True))


def beyond():
    """Return the fields that the page lacks, each with its reason, as list items."""
    told = (f"<li><code>{name.replace('_', '-')}</code>: {why}</li>" for name, why in LEFT_OUT.items())
    return "".join(told)


def data():
    """Return the form's data for the page."""
    return {
        "numbers": numbers(), "modes": modes(), "fields": list(declared()), "start": START,
        "slides": {"tokens": MOST_TOKENS, "users": MAX_USERS},
    }  # fmt: skip
