"""Link to the calculator page with the same question.

A model that the page does not know by name is sent as its dimensions, parameter counts and formats; a trace as the
summary that the closed form uses.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from math import fsum
from numbers import Real
from operator import itemgetter
from pathlib import Path
from urllib.parse import quote

from inferlib import validation
from inferlib.attention import Attention
from tokenprice import calibration, catalog, parsing, sparse_attention, workload
from tokenprice.attention import Indexer
from tokenprice.decode import unsupported_reason
from tokenprice.question import SLO, Question, trace_notes
from tokenprice.speculation import with_head
from tokenprice.uncertainty import new_model

PAGE = "calculator.html"
STORED = (*calibration.PARTS, "norms")  # parts of a model whose parameters are stored separately
NO_WINDOW = 1e15  # a window in positions longer than any context
_TABLE = validation.read_package_toml(__file__, "permalink.toml")
LEFT_OUT = _TABLE["left_out"]
BESIDE = _TABLE["beside"]
CHIP = _TABLE["chip"]
VECTORS = _TABLE["model"]["vectors"]


def without_vectors(part):
    """Return an attention or block without its small vectors; dense attention without a window gets a huge one."""
    names = {f.name: f.default for f in fields(part)}
    less = {name: names[name] for name in VECTORS if name in names}
    if isinstance(part, Attention):
        less["value_dim"] = part.value_dim or part.head_dim
        less["chunked"] = part.chunked and part.window is not None
        less["window"] = part.window or (None if part.top else NO_WINDOW)
    if getattr(part, "indexer", None):
        less["indexer"] = without_vectors(part.indexer)
    return part.replace(**less)


def dimensions(part, at=""):
    """Return the nonzero numbers of a part by name; flags, and fields that are None, belong to its kind instead."""
    found = {}
    for f in fields(part):
        value = getattr(part, f.name)
        if isinstance(value, Indexer):
            found |= dimensions(value, f"{at}{f.name}_")
        elif isinstance(value, Real) and not isinstance(value, bool) and (value or f.name == "d_shared"):
            if f.name not in VECTORS:
                found[at + f.name] = value
    return found


def kind(part, names):
    """Return the kind of a part as text: class, names of its numbers, and flags that are set."""
    flags = (name for name, value in vars(part).items() if value is True)
    return " ".join([type(part).__name__, *names, *flags])


def _placed(part):
    if part is None:
        return None
    found = dimensions(without_vectors(part))
    return [kind(without_vectors(part), found), *found.values()]


def stored(parameters):
    """Parameters by part, as the page stores them: those of no part with the head."""
    found = {part: parameters.get(part, 0) for part in STORED}
    return [*(found | {"head": found["head"] + sum(parameters.values()) - sum(found.values())}).values()]


def model_dimensions(model, formats=None) -> dict:
    """Describe a model to the page, in its checkpoint's formats or others; ValueError if it is unsupported."""
    if refusal := unsupported_reason(model):
        raise ValueError(refusal)
    layers = [[group.count, _placed(group.attention), _placed(group.feed_forward)] for group in model.layers]
    found = {
        "d_model": model.d_model, "vocab_size": model.vocab_size, "layers": layers,
        "stored": stored(model.parameters()), "drafting": stored(with_head(model)),
        "new": new_model(model), "most": model.max_context,
        "formats": formats_of(model, *(formats or calibration.checkpoint_formats(model))),
    }  # fmt: skip
    if known := sparse_attention.row_of(model):
        found["factors"] = [known["token"], known.get("copies", 1), known["first"]]
        found |= {
            "told": sparse_attention.cautions(model),
            "unscored": sparse_attention.unscored_reason(model),
        }
    return found


def formats_of(model, weights, kept, cache):
    """Formats of weights, of each part and of the cache: a name, or bytes per weight and the kernel format used."""

    def named(format):
        return format if isinstance(format, str) else [float(format), calibration.format_name(format)]

    return [named(weights), list(map(named, calibration.formats(model, weights, kept).values())), cache]


PROMPT_GROUPS = 100  # groups that represent the prompts of a trace


def trace_summary(question, cached) -> dict:
    """Summarise a trace for the closed form: mean lengths, output lengths, and groups of prompts of similar size.

    Each group has the same total of uncached tokens, so the few longest prompts, which decide the wait, are kept apart.
    """
    once = question.shared_prefix or 0
    beyond = (workload.uncached_tokens(question.prompt_tokens, prefix) for prefix in (cached, once))
    rows = sorted(zip(*beyond, question.prompt_tokens.support, strict=True), key=itemgetter(0, 2))
    groups: dict = {}
    passed = 0.0
    all_fresh = fsum(fresh for fresh, *_ in rows)
    for fresh, own, whole in rows:
        place = int((passed + fresh / 2) / all_fresh * PROMPT_GROUPS)
        groups.setdefault(place, []).append((whole, whole - fresh, whole - own))
        passed += fresh
    reads = (
        [len(group), *(fsum(part) / len(group) for part in zip(*group, strict=True))]
        for group in groups.values()
    )
    return {
        "trace": Path(question.trace.path).name, "told": trace_notes(question, cached),
        "prompt": float(question.prompt_tokens), "output": float(question.output_tokens),
        "cached": float(cached), "context": workload.mean_context(question), "longest": question.longest,
        "varies": workload.squared_cv(question.output_lengths), "answers": question.output_lengths,
        "prefix": None if question.shared_prefix is None else max(workload.support(once)),
        "reads": [[float(f"{n:.6g}") for n in read] for read in reads],
    }  # fmt: skip


def page_link(question: Question, slo: SLO | None = None, cached=0.0, **more) -> str:
    """Return the calculator's address (relative to the book's folder) for a question, or for ``decide`` with an SLO.

    ``cached``: tokens of a trace's prompts found in the prefix cache. ``more``: arguments besides the records, such as
    ``prices``. Raises ValueError, with the reason, if the page cannot ask the same.

    Examples
    --------
    >>> page_link(Question("Llama 3 8B", "H100", batch=8))
    'calculator.html#ask?mode=step&batch=8&model=Llama%203%208B&machine=1x%20H100%20SXM'
    """
    # the page has default numbers of its own for fields that are left out
    alone = {} if question.request_rate or slo else {"concurrency": 1}
    mode = "decide" if slo else "request"
    given = {"mode": mode, **alone} if question.is_request else {"mode": "step", "batch": 1}
    given |= question.words() | (slo.words() if slo else {}) | _beside(question, more)
    for name in given:
        if name in LEFT_OUT and name != "trace":
            raise ValueError(f"no link holds {name}: {LEFT_OUT[name]}")
    if question.prefill_machine is not None and not question.request_rate:
        raise ValueError(
            "no link holds prefill_machine without request_rate: the page has prefill machines in fleets only"
        )
    if slo is not None and question.concurrency is not None:
        raise ValueError("no link holds concurrency for decide: the page finds the users per machine itself")
    if given.pop("trace", ""):
        given["mix"] = _packed(trace_summary(question, cached))
    model = question.model
    (weights, cache, kept) = question.formats
    bits = any(
        not isinstance(format, str)
        for format in (question.weights or "", *(question.layer_formats or {}).values())
    )
    if bits or model.name not in catalog.all_models() or catalog.load_model(model.name) != model:
        own = {
            "name": _shown(model.name),
            **model_dimensions(model, (weights, kept, cache) if bits else None),
        }
        given |= {"model": "", "own": _packed(own)}
        if bits:
            given |= dict.fromkeys(("weights", "kv_cache_dtype", "layer_formats"), "")
    if question.machine:
        given |= _changed(question.machine.chip, question.price)
    pairs = (f"{name}={quote(_text(value), safe=',')}" for name, value in given.items() if value != "")
    return f"{PAGE}#ask?{'&'.join(pairs)}"


def _beside(question, more):
    """Return arguments that are not fields as text: prices by chip (prefill chip included), and a single chip."""
    more = {name: value for name, value in more.items() if value is not None}
    prices = {}
    chips = more.get("chips")
    if isinstance(chips, (list, tuple)) and len(chips) == 1:
        (chips,) = chips
    if isinstance(chips, str):
        more["chips"] = catalog.load_chip(chips).name
    for name, why in BESIDE.items():
        if name in more and not (name == "chips" and isinstance(more[name], str)):
            raise ValueError(f"no link holds {name}: {why}")
    for name, (lowest, _, highest) in parsing.parse_prices(more.pop("prices", {}), {}).items():
        if highest is not None and highest != lowest:
            raise ValueError(
                f"no link holds prices of {name} from lowest to highest: {LEFT_OUT['price_max']}"
            )
        prices[name] = lowest
    if question.prefill_machine is not None:
        chip = question.prefill_machine.chip
        if set(_changed(chip, None)) - {"price"}:
            raise ValueError(
                "no link holds changes to the prefill machine's chip: the page changes the decode machine's only"
            )
        if chip.price is not None and chip.price != catalog.load_chip(chip.name).price:
            prices[chip.name] = chip.price
    if prices:
        more["prices"] = "; ".join(f"{name}: {usd!r}" for name, usd in prices.items())
    return more


def _shown(name):
    """Return a model's name; of a file only its last part, to keep the reader's folders private."""
    path = Path(name)
    return path.name if path.is_absolute() or path.suffix == ".json" or name.startswith(".") else name


def _packed(value):
    return json.dumps(value, separators=(",", ":"))


def _changed(chip, price):
    """Return the numbers of a chip that differ from the catalogue's, in the page's units."""
    if chip.name not in catalog.chips():
        raise ValueError(f"no link holds chip {chip.name!r}: the page knows chips of the catalogue only")
    stated = catalog.load_chip(chip.name)
    found = {
        name: getattr(chip, name) / scale
        for name, scale in CHIP.items()
        if getattr(chip, name) != getattr(stated, name)
    }
    peaks = {name: peak / 1e12 for name, peak in chip.peaks.items() if peak != stated.peaks.get(name)}
    if price is None and chip.price is not None and chip.price != stated.price:
        found["price"] = chip.price
    wide = {"peak_16": chip.flops / 1e12} if chip.flops != stated.flops else {}
    return found | wide | {f"peak_{name}": peak for name, peak in peaks.items() if name in ("fp8", "fp4")}


def _text(value):
    if isinstance(value, Mapping):
        return ", ".join(f"{part}={_text(name)}" for part, name in value.items())
    return "yes" if value is True else "no" if value is False else str(value)
