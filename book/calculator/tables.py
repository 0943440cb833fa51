"""Tables of the calculator: models, chips, kernels, formats, cautions and measurements as plain data."""

from functools import cache
from itertools import groupby

import pandas as pd

from book import measured
from book.calculator import javascript
from book.calculator.javascript import DEGREES, ENGINE
from book.serving import fit
from inferlib.catalog import chip_fact, words as words_of
from inferlib.formats import FORMATS
from inferlib.ops import symbolic
from inferlib.system import format_bytes
from tokenprice import (
    benchmark,
    calibration,
    catalog,
    diagnosis,
    energy,
    launch,
    permalink,
    sparse_attention,
    workload,
)
from tokenprice.config.formats import SPELLED
from tokenprice.deployment import DEFAULT_MEMORY_UTILIZATION
from tokenprice.queueing import MONTH
from tokenprice.recommendation import machine_sizes
from tokenprice.scheduler import GIB, LARGE, SMALL, Scheduler
from tokenprice.uncertainty import (
    chip_facts,
    format_facts,
    limits,
    load_calibration as calibrated,
    stated_factor,
)

WEIGHTS = tuple(name for name in FORMATS if name not in ("fp32", "tf32", "fp8 block"))
CACHES = ("bf16", "fp8")
CHIP = (
    "memory_capacity", "memory_bandwidth", "flops", "scale_up_bandwidth", "scale_out_bandwidth", "scale_up_size",
    "power", "price",
)  # fmt: skip
KERNEL = {
    "gemm": ("start", "depth", "share", "prefill"),
    "experts": ("start", "depth", "share", "prefill", "half"),
    "attention": ("start", "share", "prefill"),
}


# --- Models ----------------------------------------------------------------------------------------------------


@cache
def kinds():
    """Return every kind of attention and block in the catalogue, in symbols."""
    every = (group for model in map(_loaded, catalog.all_models()) if model for group in model.layers)
    parts = (part for group in every for part in (group.attention, group.feed_forward) if part is not None)
    return tuple(dict.fromkeys(map(javascript.kind, parts)))


def sparse():
    """Return the kinds of timed blocks that stand for a whole attention and depend on width and formats."""
    attentions = (part for part in kinds() if hasattr(part, "n_heads"))
    return sorted({sparse_attention.kind_of(part) for part in attentions} - {""})


@cache
def _loaded(name):
    try:
        return catalog.load_model(name)
    except ValueError:
        return None


def _by_place(placed):
    """Replace an attention's or block's kind by its index in :func:`kinds`."""
    if placed is None:
        return None
    (name, *dimensions), known = placed, [permalink.kind(part, javascript.names_of(part)) for part in kinds()]
    return [known.index(name), *dimensions]


@cache
def models():
    """Return the models that the page supports, by name, and the others with the reason."""
    found, refused = {}, {}
    for name in catalog.all_models():
        try:
            about = permalink.model_dimensions(catalog.load_model(name))
        except ValueError as error:
            refused[name] = str(error)
        else:
            about["layers"] = [[count, *map(_by_place, parts)] for count, *parts in about["layers"]]
            found[name] = about
    return found, refused


def other_spellings(what):
    """Return the accepted spellings of models or chips that are not the words of their names."""
    own = {"".join(words_of(name)): name for name in (models()[0] if what == "model" else chips())}
    return {typed: name for typed, name in catalog.spellings(what).items() if own.get(typed) != name}


# --- Chips and kernels -----------------------------------------------------------------------------------------


def as_served(chip):
    """Return a chip with the driver's memory figure, and with the cards of a box as one domain."""
    return chip.replace(
        scale_up_size=calibration.chips_per_node(chip), memory_capacity=calibration.memory(chip)
    )


def chips():
    """Return every chip of the catalogue: its numbers, peaks, and the chip whose kernels it uses."""
    found = {}
    for name in catalog.chips():
        chip, known = catalog.load_chip(name), calibration.operators(name)
        facts = chip_facts(known)
        slowdowns = [calibration.slowdown(name, kind) for kind in calibration.MEASURED]
        made = [
            [told["other_maker"], told["slower"], slowdown.median if slowdown else 1]
            for slowdown in (slowdowns if any(slowdowns) else [None])
            for told in [chip_facts(known, slowdown)]
        ]
        some = {
            "memory": calibration.memory_share(name),
            "bus": facts["bus"],
            "made": made if made[0][0] else None,
            "pcie": chip.topology == "PCIe",
            "slot": chip_fact(name, "pcie_share"),
            "program": name.startswith(calibration.COMPILED_STEP_PREFIX),
        }
        found[name] = {
            "values": [getattr(as_served(chip), field) for field in CHIP],
            "peaks": dict(chip.peaks), "lender": facts["lender"], "new": facts["new_chip"], "lent": facts["lent"],
            "linked": chip.topology in diagnosis.LINKED, "shown": calibration.is_shown(chip),
            "sold": chip.memory_capacity, "source": chip.sources.get("price", ""), "counts": machine_sizes(chip),
        } | {key: value for key, value in some.items() if value}  # fmt: skip
    return found


def kernels():
    """Return, for every timed chip, the constants of its kernels by format, of its links and of its blocks."""
    found = {}
    for name in calibration.load_operators()["chips"]:
        known = calibration.operators(name)
        entry = {kind: {} for kind in (*KERNEL, "stands_in")}
        for kind, fields in KERNEL.items():
            for format in CACHES if kind == "attention" else sorted({*WEIGHTS, "fp8 block"} - {"fp16"}):
                try:
                    kernel = known.kernel(kind, format)
                except LookupError as error:
                    entry[kind][format] = str(error)
                else:
                    entry[kind][format] = [getattr(kernel, field) for field in fields]
                    if words := known.stands_in(kind, format):  # the page adds the rest of the sentence
                        entry["stands_in"][f"{kind} {format}"] = words.rpartition("those ")[2].rstrip(")")
        for kind in ("reduce", "library"):
            links = calibration.timed_kernels(name, kind)  # the page adds what public boxes say
            last = (links[min(n, max(links))] for n in DEGREES)
            entry[kind] = [[link.latency, link.bandwidth] for link in last]
        entry["lends"] = {kind: known.block_chips[kind] for kind in javascript.timed()}
        own = {kind: [] for kind, lender in entry["lends"].items() if lender == name}
        for (kind, engine, width, weights, cached), block in known.blocks.items():
            if kind in own:
                size = calibration.stored_bytes(weights) if weights else None
                numbers = [getattr(block, field) for field in javascript.timed()[kind]]
                own[kind].append([int(engine == "compiled"), width, size, cached, *numbers])
        found[name] = entry | {"timed": own}
    return found


def formats():
    """Return for every format: bytes, peaks to multiply in, kernel format, whether it is new, and formats of parts.

    The last has the format of each part of a dense model and of a mixture with weights in this format.
    """
    models, found = [catalog.load_model(name) for name in ("Llama 3 8B", "Mixtral 8x7B")], {}
    for name in (*WEIGHTS, "fp32", "fp8 block"):
        known = FORMATS[name]
        parts = [list(calibration.formats(model, name).values()) for model in models]
        facts = format_facts(calibration.format_name(name))
        found[name] = [known.stored / 8, known.multiplied, facts["format"], facts["new_format"], parts]
    return {"each": found, "kinds": calibration.KINDS, "cache": {name: format_bytes(name) for name in CACHES}}


def engines():
    """Return the classes of engine: constants and errors; the first is the default."""
    found = {name: calibration.engine(name) for name in ("", *calibration.engines()["class"], "sglang")}
    return {
        name: {
            "values": {f"engine_{field}": getattr(engine, field) for field in ENGINE},
            "factor": stated_factor(name or None),
        }
        for name, engine in found.items()
    }


def schedulers():
    """Return the schedulers of an engine (``""``: any other) by chip.

    Each row: least memory, chips left out, tokens per step, sequences, whether memory is reserved for whole answers,
    and whether steps with prefill also decode.
    """
    gpu = catalog.load_chip("H100 SXM")
    steps = {
        "": ((70 * GIB, "A100"), (0, "")),
        "sglang": ((LARGE, ""), (SMALL, ""), (0, "")),
        "compiled": ((0, ""),),
    }

    def row(engine, least, left_out):
        one = Scheduler.of(engine, gpu.replace(memory_capacity=max(least, 1)))
        return [least, left_out, one.max_num_batched_tokens, one.max_num_seqs, one.reserve, one.rides]

    return {engine: [row(engine, *each) for each in chips] for engine, chips in steps.items()}


# --- Launch commands and benchmarks ---------------------------------------------------------------------------------


def checks():
    """Return the tables with which launch commands, benchmarks and possible causes are read, and their limits."""
    endings, mixed = typed_formats()
    names = ("rows", "idle", "idle_switches", "starts", "tools", "drafts", "quantization")
    limits = ("named", "better", "near", "far", "places")
    return {
        "launch": {name: launch.table()[name] for name in names}, "benchmark": benchmark.table(),
        "causes": diagnosis.table(), "limits": {name: getattr(diagnosis, name.upper()) for name in limits},
        "engines": launch.ENGINES, "commands": launch.COMMANDS, "version": launch.VERSION, "such": benchmark.SUCH,
        "software": calibration.engines()["software"], "spelled": SPELLED,
        "endings": endings, "mixed": mixed,
        "left_out": {name: permalink.LEFT_OUT[name] for name in ("dp_balance", "batching_wait_iters")},
        "times": [name for name, read in benchmark.table()["words"].values() if read == "parse_seconds"],
    }  # fmt: skip


def typed_formats():
    """Return formats that the last words of a model's name may state, and models that then keep parts in another."""
    endings, formats = {}, {}
    for words in catalog.typed_formats():
        both = [
            calibration.checkpoint_formats(_loaded(f"{name} {words}"))
            for name in ("Llama 3.1 8B", "Mixtral 8x7B")
        ]
        weights = both[0][0]
        if isinstance(weights, str) and all(one[:2] == (weights, {}) for one in both):
            endings[words.lower()] = weights
            formats.setdefault(weights, words)

    def plain(name, weights, words):
        try:
            stored = permalink.model_dimensions(catalog.load_model(f"{name} {words}"))
        except (ValueError, LookupError):
            return False
        own = models()[0][name]
        made = permalink.formats_of(catalog.load_model(name), weights, {}, stored["formats"][2])
        return stored["formats"] == made and stored["stored"] == own["stored"]

    mixed = [name for name in models()[0] if not all(plain(name, *each) for each in formats.items())]
    return endings, mixed


# --- Cautions ---------------------------------------------------------------------------------------------------


def cautions(declared):
    """Return the texts of cautions, and one JavaScript function of the facts that is above zero where each holds."""
    facts = javascript.Facts()
    beyond = [caution.beyond(facts) for caution in declared]
    assert all(symbolic(expression) for expression in beyond)
    return [caution.text for caution in declared], javascript.code(beyond)


def constant_facts():
    """Return the facts that no question changes."""
    first = calibrated()["first_token"]
    drawn = energy.draw()
    return limits() | {
        "most_users": first["users"], "most_prompt": first["prompt"], "first_factor": first["factor"],
        "confidence": calibrated()["confidence"],
        "exchange_share": calibration.load_operators()["exchange"]["share"][0], "bus": calibration.bus(),
        "share": DEFAULT_MEMORY_UTILIZATION,
        "month": MONTH, "points": workload.PARTS,
        "energy_error": energy.load_energy()["error"],
        "draw": [drawn.awake, drawn.reading, drawn.calculating],
    }  # fmt: skip


# --- Measurements ------------------------------------------------------------------------------------------------


@cache
def measurements():
    """Return measured steps and requests: tables of names, columns, and rows grouped by machine and context."""
    steps, served = measured.load(), fit.serving_rows()
    steps = steps[(steps.duplicate_of == "") & steps.tpot.notna() & (steps.speculation == "none")]
    steps = steps.assign(output=0).rename(columns=_OF_STEPS)
    served = served[served.use == "clean"].rename(columns=_SERVED)
    rows = pd.concat([steps, served])[list(_COLUMNS)]
    rows = rows[rows.model.isin(models()[0]) & rows.chip.isin(catalog.chips())]
    rows["seconds"] = [float(f"{seconds:.4g}") for seconds in rows.seconds]
    rows[["context", "output"]] = rows[["context", "output"]].round()
    names = {}
    for key in ("model", "chip", "publisher", "url", "weights"):
        rows[key], known = pd.factorize(rows[key])
        names[key] = list(known)
    plain = [[int(v) if v == int(v) else float(v) for v in row] for row in rows.itertuples(index=False)]
    # rows of one machine and context share its numbers; a few loads between the ends are enough
    alike = groupby(sorted(plain), key=lambda row: row[:9])
    return {
        "names": names,
        "columns": _COLUMNS,
        "groups": [[own, *_thinned([row[9:] for row in rows])] for own, rows in alike],
    }


def _thinned(rows):
    """Return at most :data:`LOADS` of some rows, including the first and the last."""
    n = min(len(rows), LOADS)
    return [rows[round(k * (len(rows) - 1) / max(n - 1, 1))] for k in range(n)]


LOADS = 3  # loads per machine and context; with all of them the page would exceed a megabyte
_COLUMNS = (
    "model",
    "chip",
    "publisher",
    "weights",
    "n",
    "tp",
    "dp",
    "output",
    "context",
    "users",
    "seconds",
    "url",
)
_ALIKE = {"hardware": "chip", "n_gpus": "n", "tpot": "seconds"}
_OF_STEPS = _ALIKE | {"source": "publisher", "weight_format": "weights", "sequences": "users"}
_SERVED = _ALIKE | {"concurrency": "users", "output_tokens": "output"}
