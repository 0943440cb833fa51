"""What the instrument knows by heart: models, chips, kernels, formats, cautions and measurements as plain data."""

from functools import cache

from book.calculator import questions
from book.calculator.questions import ATTENTION, BLOCKS, DEGREES, ENGINE, NO_WINDOW, STORED, STRUCTURES
from inferlib import catalog, measured
from inferlib.config.families import declarations, declared as declared_family, families
from inferlib.config.keys import MAX_LAYERS, MAX_NUMBER
from inferlib.ops import symbolic
from inferlib.serving import constants, energy
from inferlib.serving.estimate import (
    chip_facts,
    format_facts,
    limits,
    new_experts,
    stated as calibrated,
)
from inferlib.system import System, Workload, format_bytes
from inferlib.transformer import Attention, Experts, FeedForward, LatentAttention

WEIGHTS = ("bf16", "fp16", "fp8", "int8", "fp4", "mxfp4", "int4")
CACHES = ("bf16", "fp8")
CHIP = (
    "memory_capacity", "memory_bandwidth", "flops", "scale_up_bandwidth", "scale_out_bandwidth", "scale_up_size",
    "power", "price",
)  # fmt: skip
KERNEL = {
    "gemm": ("start", "depth", "share", "prefill"),
    "experts": ("start", "share"),
    "attention": ("start", "share", "prefill"),
}


def as_weights(name):
    """A format as :class:`inferlib.Workload` takes it: by name, or in bytes where scales are part of its name."""
    return constants.STORED[name] if name not in ("bf16", "fp16", "fp8", "int8", "fp4", "int4") else name


# --- Models ----------------------------------------------------------------------------------------------------


def _slot(group):
    attention = group.attention
    kind = (
        "latent"
        if isinstance(attention, LatentAttention)
        else "chunked"
        if attention.chunked and attention.window is not None
        else "plain"
    )
    return kind, "experts" if isinstance(group.feed_forward, Experts) else "dense"


def _placed(model):
    """The structure that has room for every group of layers, and the group in each of its places (or None)."""
    for name, places in STRUCTURES.items():
        left, found = list(model.layers), []
        for place in places:
            group = next((group for group in left if _slot(group) == place), None)
            found.append(group)
            if group is not None:
                left.remove(group)
        if not left:
            return name, found
    return None, ()


def numbers_of(model):
    """The numbers of a question that a model answers, and its structure; a text where the page cannot take it.

    Returns
    -------
    tuple or str
        Structure, and a dict of numbers by name.
    """
    refusal = described(model)
    if refusal:
        return refusal
    structure, groups = _placed(model)
    if structure is None:
        return "its layers are of more kinds than this page has room for"
    found = {"d_model": model.d_model, "vocab_size": model.vocab_size}
    for k, ((attention, block), group) in enumerate(zip(STRUCTURES[structure], groups, strict=True)):
        found[f"l{k}_count"] = 0 if group is None else group.count
        for name in ATTENTION[attention]:
            found[f"l{k}_{name}"] = 1 if group is None else _field(group.attention, name)
        for name in BLOCKS[block]:
            found[f"l{k}_{name}"] = 1 if group is None else getattr(group.feed_forward, name)
    return structure, found | stored(model)


def described(model):
    """Why the sixth model has no answer for a model, or nothing."""
    place = questions.Place(
        model, System(catalog.load_chip("H100 SXM"), 1), Workload(1, 1), None, None, 1, None
    )
    reason = place.refusal()
    latent = [g.attention for g in model.layers if isinstance(g.attention, LatentAttention)]
    if not reason and any(attention.q_rank is None or attention.window is not None for attention in latent):
        return "its latent attention has a window, or queries without a latent"
    return reason


def _field(attention, name):
    value = getattr(attention, name)
    if name == "window":
        return NO_WINDOW if value is None else value
    return (
        attention.head_dim
        if name == "value_dim" and isinstance(attention, Attention) and value is None
        else value
    )


def stored(model):
    """Parameters by part as the page stores them; what is kept with the head is counted there."""
    parts = dict(model.parameters())
    found = {part: parts.pop(part, 0) for part in STORED}
    found["head"] += sum(parts.values())
    return {questions._part("stored", part): number for part, number in found.items()}


@cache
def models():
    """Every model that the page can take, by name; the others with the reason, in a second dict."""
    found, refused = {}, {}
    for name in (*catalog.models(), *catalog.same_shapes(), *catalog.served()):
        try:
            model = catalog.load_model(name)
        except ValueError as error:
            refused[name] = str(error)
            continue
        made = numbers_of(model)
        if isinstance(made, str):
            refused[name] = made
            continue
        structure, values = made
        found[name] = {
            "structure": structure, "values": values, "new": new_experts(model), "tied": model.tied,
            **_checkpoint(model),
        }  # fmt: skip
    return found, refused


def _checkpoint(model):
    """The format that a checkpoint has most of its weights in, and whether it keeps attention at 16 bits."""
    formats = model.formats
    size = formats.get("experts", formats.get("feed-forward"))
    if size is None or size >= 2:
        return {}
    weights = min(WEIGHTS, key=lambda name: abs(constants.STORED[name] - size))
    return {"weights": weights, "wide": formats["attention"] >= 1.5}


# --- Chips and kernels -----------------------------------------------------------------------------------------


def chips():
    """Every chip of the catalogue: its numbers, peaks, and whose kernels serve it."""
    found = {}
    for name in catalog.chips():
        chip = catalog.load_chip(name)
        facts = chip_facts(name)
        found[name] = {
            "values": {f"chip_{field}": getattr(chip, field) for field in CHIP},
            "peaks": dict(chip.peaks), "lender": facts["lender"], "new": facts["new_chip"], "lent": facts["lent"],
            "source": chip.sources.get("price", ""),
        }  # fmt: skip
    return found


def kernels():
    """For every chip that was timed: the constants of its kernels for each format, and of its links."""
    found = {}
    for name in constants.stated()["chips"]:
        known = constants.operators(name)
        entry = {kind: {} for kind in KERNEL}
        for kind, fields in KERNEL.items():
            for format in CACHES if kind == "attention" else (*WEIGHTS, "fp8 block"):
                try:
                    kernel = known.kernel(kind, constants.format_name(format))
                except LookupError as error:
                    entry[kind][format] = str(error)
                else:
                    entry[kind][format] = [getattr(kernel, field) for field in fields]
        for kind in ("reduce", "library"):
            links = getattr(known, kind)
            last = [links[min(n, max(links))] for n in DEGREES]
            entry[kind] = [[link.latency, link.bandwidth] for link in last]
        found[name] = entry
    return found


def formats():
    """For every format of weights: bytes, peaks to multiply in, parts of dense models and mixtures, what is known."""
    dense, sparse = catalog.load_model("Llama 3 8B"), catalog.load_model("Mixtral 8x7B")
    found = {}
    for name in WEIGHTS:
        parts = [
            {part: _named(format) for part, format in constants.formats(model, as_weights(name)).items()}
            for model in (dense, sparse)
        ]
        facts = format_facts(as_weights(name))
        found[name] = {"parts": parts, "told": facts["format"], "new": facts["new_format"]}
    each = {name: [constants.STORED[name], constants.multiplied_in(name)] for name in (*WEIGHTS, "fp8 block")}
    return {"weights": found, "each": each, "cache": {name: format_bytes(name) for name in CACHES}}


def _named(format):
    return constants.format_name(format)


def engines():
    """Classes of engine: constants and errors; the first is the one taken when none is said."""
    found = {"": constants.engine()} | {name: constants.engine(name) for name in constants.engines()["class"]}
    step = calibrated()["step"]
    return {
        name: {
            "values": {f"engine_{field}": getattr(engine, field) for field in ENGINE},
            "factor": {kind: step[kind]["known" if name else "unknown"]["factor"] for kind in step},
        }
        for name, engine in found.items()
    }


# --- Cautions ---------------------------------------------------------------------------------------------------


def cautions(declared):
    """Texts, and one JavaScript function of the facts whose values are above zero where they hold."""
    names = {
        "context", "batch", "tp", "expert_chips", "domain", "heads", "new_chip", "lent", "new_format",
        "new_experts", "users", "running", "copies", *(name for name in constant_facts() if name.startswith("most_")),
    }  # fmt: skip
    facts = {name: questions.number(name) for name in names}
    beyond = [caution.beyond(facts) for caution in declared]
    assert all(symbolic(expression) for expression in beyond)
    return [caution.text for caution in declared], questions.code([], beyond)


def constant_facts():
    """What no question changes."""
    first = calibrated()["first_token"]
    drawn = energy.draw()
    return limits() | {
        "most_users": first["users"], "first_factor": first["factor"], "confidence": calibrated()["confidence"],
        "exchange_share": constants.stated()["exchange"]["share"][0],
        "energy_error": energy.stated()["error"],
        "draw": [drawn.awake, drawn.reading, drawn.calculating],
    }  # fmt: skip


# --- Measurements ------------------------------------------------------------------------------------------------


@cache
def measurements():
    """Measured steps and requests by what was measured: places in lists of names, and numbers.

    Returns
    -------
    dict
        ``names``: models, chips, publishers with their addresses, formats, engines; ``rows``: pairs of a machine
        (model, chip, publisher, weights, engine, chips, tensor-parallel degree, copies) and what was measured on
        it (users, context, milliseconds a token, milliseconds to the first token and tokens of an answer, null
        for a step measured alone).
    """
    lists = {key: [] for key in ("model", "chip", "publisher", "weights", "engine")}

    def place(key, value):
        known = lists[key]
        if value not in known:
            known.append(value)
        return known.index(value)

    known = set(models()[0])
    table, rows = measured.load(), []
    single = table[(table.duplicate_of == "") & table.tpot.notna() & table.model.isin(known)]
    for row in single[single.hardware.isin(catalog.chips()) & (single.speculation == "none")].itertuples():
        at = (
            place("model", row.model), place("chip", row.hardware), place("publisher", (row.source, row.url)),
            place("weights", row.weight_format), place("engine", row.engine),
        )  # fmt: skip
        rows.append([*at, row.n_gpus, row.tp, row.dp, row.sequences, row.context, _ms(row.tpot), None, None])
    table = measured.serving()
    for row in table[table.known & table.model.isin(known)].itertuples():
        at = (
            place("model", row.model), place("chip", row.hardware), place("publisher", (row.publisher, row.url)),
            place("weights", row.weights), place("engine", row.engine),
        )  # fmt: skip
        numbers = (
            row.n_gpus,
            row.tp,
            row.dp,
            row.concurrency,
            row.context,
            _ms(row.tpot),
            _ms(row.ttft),
            row.output_tokens,
        )
        rows.append([*at, *numbers])
    machines = {}
    for row in rows:
        tidy = [None if v is None or v != v else int(v) if v == int(v) else v for v in row]
        machines.setdefault(tuple(tidy[:8]), []).append(tidy[8:])
    return {"names": lists, "rows": [[list(machine), found] for machine, found in machines.items()]}


def _ms(seconds):
    return float(f"{1e3 * seconds:.4g}")


# --- A configuration that a reader pastes ---------------------------------------------------------------------

_KNOWN = {
    "attention": Attention,
    "latent": LatentAttention,
    "dense": FeedForward,
    "experts": Experts,
}
_WORDS = {"all", "list", "switch", "commas", "ones", "step", "from", "flag"}


@cache
def declared():
    """The declarations of families as ``config.js`` takes them, those that it cannot follow with the reason.

    Returns
    -------
    dict
    """
    taken, refused = {}, {}
    for name in families():
        about = declared_family(name)
        reason = "" if "inside" in about else _too_much(about)
        if reason:
            refused[name] = reason
        else:
            taken[name] = about
    for name, about in list(taken.items()):
        missing = [held for held in about.get("holds", ()) if held not in taken]
        if missing:
            refused[name] = refused[missing[0]]
            del taken[name]
    fields = {
        kind: {field: _kind_of(about) for field, about in record.__dataclass_fields__.items()}
        for kind, record in _KNOWN.items()
    }
    return {
        "families": taken, "refused": refused, "harmless": declarations()["harmless"], "fields": fields,
        "most": MAX_NUMBER, "layers": MAX_LAYERS, "structures": STRUCTURES, "attention": ATTENTION, "blocks": BLOCKS,
        "no_window": NO_WINDOW, "defaults": {"matrices": 3, "d_shared": 0},
    }  # fmt: skip


def _kind_of(field):
    if field.type is bool:
        return "flag"
    return "zero" if field.metadata.get("zero") else "optional" if field.default is None else "number"


_UNTIMED = {
    "delta": "nobody timed its linear attention",
    "space": "nobody timed its state-space layers",
    "pooled": "nobody timed attention to pooled positions",
    "indexer": "nobody timed attention to positions that an indexer picks",
}


def _too_much(about):
    """Why the page cannot follow a declaration, or nothing."""
    kinds = [table.get("kind") for table in about["parts"].values() if "kind" in table]
    kinds += ["indexer" for table in about["parts"].values() if "indexer" in table]
    for kind in kinds:
        if kind not in _KNOWN:
            return _UNTIMED[kind]
    if not {"attention", "feed_forward"} <= set(about["pattern"]) or "connections" in about:
        return "layers that are no pair of attention and a block, or mix residual streams"
    return ""
