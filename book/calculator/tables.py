"""What the instrument knows by heart: models, chips, kernels, formats, cautions and measurements as plain data."""

from dataclasses import fields as record_fields
from functools import cache

from book import measured
from book.calculator import questions
from book.calculator.questions import DEGREES, ENGINE, NO_WINDOW, STORED
from book.serving import fit
from inferlib import catalog
from inferlib.config.families import declarations, declared as declared_family, families
from inferlib.config.keys import MAX_LAYERS, MAX_NUMBER
from inferlib.formats import FORMATS
from inferlib.ops import symbolic
from inferlib.system import System, Workload, format_bytes
from inferlib.transformer import Attention, Experts, FeedForward, LatentAttention
from tokenprice import blocks, constants, energy
from tokenprice.decide import sizes
from tokenprice.decode import BUFFERS, SHARE, WORKSPACE, Instance
from tokenprice.estimate import chip_facts, format_facts, limits, new_experts, stated as calibrated

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
    """Every kind of attention and of block that the catalogue has, in symbols."""
    names = (*catalog.models(), *catalog.same_shapes(), *catalog.served())
    every = (group for model in map(_loaded, names) if model for group in model.layers)
    parts = (part for group in every for part in (group.attention, group.feed_forward) if part is not None)
    return tuple(dict.fromkeys(map(questions.kind, parts)))


def sparse():
    """The kinds of timed blocks that stand for a whole attention, and are chosen by width and formats."""
    attentions = (part for part in kinds() if hasattr(part, "n_heads"))
    return sorted({blocks.kind_of(part) for part in attentions} - {""})


@cache
def _loaded(name):
    try:
        return catalog.load_model(name)
    except ValueError:
        return None


def numbers_of(model):
    """A model as the page takes it: its width, its vocabulary, and its groups of layers.

    Of a group how many, and of attention and block (or None) the place among :func:`kinds` and the numbers.
    ValueError where there is no answer.
    """
    refusal = Instance(model, System(catalog.load_chip("H100 SXM"), 1), Workload(1, 1)).refusal()
    if refusal:
        raise ValueError(refusal)
    layers = [[g.count, _placed(g.attention), _placed(g.feed_forward)] for g in model.layers]
    return {"d_model": model.d_model, "vocab_size": model.vocab_size, "layers": layers}


def older():
    """The structures of links of an older form: the kinds of attention and block of each of their groups."""
    parts = {
        "plain": Attention(8, 8, 8), "latent": LatentAttention(8, 8, 8, 8, 8, 8), "dense": FeedForward(8),
        "chunked": Attention(8, 8, 8, window=8, chunked=True), "experts": Experts(8, 8, 8, 8),
    }  # fmt: skip
    structures = {
        "dense": "plain dense, plain dense", "experts": "plain dense, plain experts, plain experts",
        "chunked": "chunked dense, chunked experts, plain experts", "latent": "latent dense, latent experts",
    }  # fmt: skip
    known = {name: kinds().index(questions.kind(part)) for name, part in parts.items()}
    return {
        name: [[known[part] for part in pair.split()] for pair in pairs.split(", ")]
        for name, pairs in structures.items()
    }


def _placed(part):
    if part is None:
        return None
    known = questions.kind(part)
    if known not in kinds():
        raise ValueError("its attention or its experts are of a kind that this page does not know")
    return [kinds().index(known), *questions.dimensions(questions.plain(part)).values()]


def stored(model):
    """Parameters by part as the page stores them; what is kept with the head is counted there."""
    parts = dict(model.parameters())
    found = {part: parts.pop(part, 0) for part in STORED}
    found["head"] += sum(parts.values())
    return list(found.values())


@cache
def models():
    """Every model that the page can take, by name; the others with the reason, in a second dict."""
    found, refused = {}, {}
    for name in (*catalog.models(), *catalog.same_shapes(), *catalog.served()):
        try:
            model = catalog.load_model(name)
            more = {"new": new_experts(model), "tied": model.tied, **_checkpoint(model), **_recent(model)}
            found[name] = numbers_of(model) | {"stored": stored(model)} | {k: v for k, v in more.items() if v}
        except ValueError as error:
            refused[name] = str(error)
    return found, refused


def _recent(model):
    """What the measurements say of the kinds of attention of 2025 and 2026, for a model that has one."""
    known = blocks.recent().get(blocks.measured_as(model))
    if known is None:
        return {}
    factors = [known["token"], known.get("copies", 1), known["first"]]
    return {"told": blocks.cautions(model), "factors": factors, "unscored": blocks.unscored(model)}


def _checkpoint(model):
    """The format that a checkpoint has most of its weights in, and whether it keeps attention at 16 bits."""
    formats = model.formats
    size = formats.get("experts", formats.get("feed-forward"))
    if size is None or size >= 2:
        return {}
    return {"weights": constants.format_name(size), "wide": formats["attention"] >= 1.5}


# --- Chips and kernels -----------------------------------------------------------------------------------------


def as_served(chip):
    """A chip with the memory that the driver shows, and with cards that share a box as one domain."""
    return chip.replace(scale_up_size=constants.box(chip), memory_capacity=constants.memory(chip))


def chips():
    """Every chip of the catalogue: its numbers, peaks, and whose kernels serve it."""
    found = {}
    for name in catalog.chips():
        chip, facts = catalog.load_chip(name), chip_facts(name)
        found[name] = {
            "values": [getattr(as_served(chip), field) for field in CHIP],
            "peaks": dict(chip.peaks), "lender": facts["lender"], "new": facts["new_chip"], "lent": facts["lent"],
            "maker": facts["other_maker"], "pcie": chip.topology == "PCIe", "slow": facts["slower"],
            "slower": constants.slower(name),
            "program": name.startswith(constants.ONE_PROGRAM),
            "source": chip.sources.get("price", ""), "counts": sizes(chip),
        }  # fmt: skip
    return found


def kernels():
    """For every chip that was timed: the constants of its kernels for each format, of its links and its blocks."""
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
            last = (links[min(n, max(links))] for n in DEGREES)
            entry[kind] = [[link.latency, link.bandwidth] for link in last]
        entry["lends"] = {kind: constants.block_lender(name, kind) for kind in questions.timed()}
        own = {kind: [] for kind, lender in entry["lends"].items() if lender == name}
        for (kind, engine, width, weights, cached), block in known.blocks.items():
            if kind in own:
                size = constants.stored_bytes(weights) if weights else None
                numbers = [getattr(block, field) for field in questions.timed()[kind]]
                own[kind].append([int(engine == "compiled"), width, size, cached, *numbers])
        found[name] = entry | {"timed": own}
    return found


def formats():
    """For every format of weights: bytes, peaks to multiply in, parts of dense models and mixtures, what is known."""
    dense, sparse = catalog.load_model("Llama 3 8B"), catalog.load_model("Mixtral 8x7B")
    found = {}
    for name in WEIGHTS:
        each = (constants.formats(model, name).items() for model in (dense, sparse))
        parts = [{part: constants.format_name(format) for part, format in own} for own in each]
        facts = format_facts(name)
        found[name] = {"parts": parts, "told": facts["format"], "new": facts["new_format"]}
    each = {name: [FORMATS[name].stored / 8, FORMATS[name].multiplied] for name in (*WEIGHTS, "fp8 block")}
    return {"weights": found, "each": each, "cache": {name: format_bytes(name) for name in CACHES}}


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
        "new_experts", "users", "running", "copies", "other_maker", "prompt", "equal",
        "stages", "drafted", "borrowed", "new_kind", "params", "least_params", "widened", "shared",
        *(name for name in constant_facts() if name.startswith("most_")),
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
        "most_users": first["users"], "most_prompt": first["prompt"], "first_factor": first["factor"],
        "confidence": calibrated()["confidence"],
        "exchange_share": constants.stated()["exchange"]["share"][0], "share": SHARE,
        "workspace": [WORKSPACE, WORKSPACE + BUFFERS],
        "energy_error": energy.stated()["error"],
        "draw": [drawn.awake, drawn.reading, drawn.calculating],
    }  # fmt: skip


# --- Measurements ------------------------------------------------------------------------------------------------


@cache
def measurements():
    """Measured steps and requests by what was measured: places in lists of names, and numbers."""
    lists = {key: {} for key in ("model", "chip", "publisher", "weights", "engine")}

    def places(row, publisher, weights):
        """Where a row's names stand in the lists, which grow as names come."""
        names = (row.model, row.hardware, (publisher, row.url), weights, row.engine)
        at = [known.setdefault(name, len(known)) for known, name in zip(lists.values(), names, strict=True)]
        return [*at, row.n_gpus, row.tp, row.dp]

    known, rows = set(models()[0]), []
    table = measured.load()
    single = table[(table.duplicate_of == "") & table.tpot.notna() & table.model.isin(known)]
    for row in single[single.hardware.isin(catalog.chips()) & (single.speculation == "none")].itertuples():
        at = places(row, row.source, row.weight_format)
        rows.append([*at, row.sequences, row.context, _ms(row.tpot), None, None])
    table = fit.serving_rows()
    for row in table[(table.use == "clean") & table.model.isin(known)].itertuples():
        at = places(row, row.publisher, row.weights)
        rows.append([*at, row.concurrency, row.context, _ms(row.tpot), _ms(row.ttft), row.output_tokens])
    machines = {}
    for row in rows:
        tidy = [None if v is None or v != v else int(v) if v == int(v) else v for v in row]
        users, context, token, first, output = tidy[8:]
        alike, times = (*tidy[:8], context), [users, token]
        if first is not None:
            alike, times = (*alike, output), [*times, first]
        machines.setdefault(alike, []).extend(times)
    return {
        "names": {key: list(known) for key, known in lists.items()},
        "rows": [[list(alike), found] for alike, found in machines.items()],
    }


def _ms(seconds):
    return float(f"{1e3 * seconds:.4g}")


# --- A configuration that a reader pastes ---------------------------------------------------------------------

KNOWN = {"attention": Attention, "latent": LatentAttention, "dense": FeedForward, "experts": Experts}


@cache
def declared():
    """The declarations of families as ``config.js`` takes them, those that it cannot follow with the reason."""
    taken, refused = {}, {}
    for name in families():
        about = declared_family(name)
        if reason := "" if "inside" in about else _too_much(about):
            refused[name] = reason
        else:
            taken[name] = about
    for name, about in list(taken.items()):
        missing = [held for held in about.get("holds", ()) if held not in taken]
        if missing:
            refused[name] = refused[missing[0]]
            del taken[name]

    def kind_of(field):
        if field.type is bool:
            return "flag"
        return "zero" if field.metadata.get("zero") else "optional" if field.default is None else "number"

    fields = {kind: {f.name: kind_of(f) for f in record_fields(record)} for kind, record in KNOWN.items()}
    return {
        "families": taken, "refused": refused, "harmless": declarations()["harmless"], "fields": fields,
        "most": MAX_NUMBER, "layers": MAX_LAYERS, "no_window": NO_WINDOW, "defaults": {"matrices": 3, "d_shared": 0},
    }  # fmt: skip


_UNTIMED = {
    "delta": "its linear attention", "space": "its state-space layers", "pooled": "attention to pooled positions",
    "indexer": "attention to positions that an indexer picks",
}  # fmt: skip


def _too_much(about):
    """Why the page cannot follow a declaration, or nothing."""
    kinds = [table.get("kind") for table in about["parts"].values() if "kind" in table]
    kinds += ["indexer" for table in about["parts"].values() if "indexer" in table]
    for kind in kinds:
        if kind not in KNOWN:
            return f"this page has no kernels for {_UNTIMED[kind]}; Python and the terminal do"
    if not {"attention", "feed_forward"} <= set(about["pattern"]) or "connections" in about:
        return "layers that are no pair of attention and a block, or mix residual streams"
    if {"each", "vocabulary"} & set(about) or any("to" in rule for rule in about["pattern"]["feed_forward"]):
        return "its keys are read in Python only"
    return ""
