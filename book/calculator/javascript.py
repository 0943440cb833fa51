"""The calculator's questions as JavaScript: the kernel model called on symbols, and printed.

A question is a flat set of named numbers: a chip, the kernels of each part of a model, a layout, a workload, and the
dimensions of each group of layers. Attention and feed-forward blocks come in the kinds that the catalogue has: the
library is called on symbols once per kind, and the page adds up groups. :mod:`book.calculator.tables` has the numbers
of each model and chip of the catalogue.
"""

import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cache, partial
from types import SimpleNamespace

import sympy

from book.explorer.core import _js
from inferlib.equation import Record
from inferlib.ops import as_written, floor, maximum, minimum
from inferlib.principles import cost_per_million
from inferlib.system import Accelerator, System
from inferlib.transformer import Experts, FeedForward, Layers, Transformer
from tokenprice import calibration, decode, energy, invariants, prefill, queueing, request
from tokenprice.attention import Indexer
from tokenprice.change import BEST, PRICE, RESOURCES
from tokenprice.deployment import Deployment, engine_workspace, padded
from tokenprice.kernels import Block, Engine, Kernel, Link
from tokenprice.operators import AllReduce, all_reduce
from tokenprice.permalink import STORED, dimensions, without_vectors
from tokenprice.question import Question
from tokenprice.scheduler import Scheduler
from tokenprice.speculation import drafted_token_time, with_draft

DEGREES = (2, 4, 8)  # degrees of the timed all-reduces; a chip with fewer repeats its last
ENGINE = ("layer", "rank", "sequence", "together", "shared", "box", "host", "ingress_delay")
# Expert parallelism: none (each expert split), over all copies' chips, or within an instance.
CUT, COPIED, WITHIN = range(3)


def number(name):
    """Return the symbol of a number of a question; shared experts, cached and shared tokens may be zero."""
    least = "nonnegative" if name in ("l_d_shared", "cached", "prefix") else "positive"
    return sympy.Symbol(name, **{least: True})


def numbers(prefix, names):
    """Return symbols by name, with a common prefix."""
    return {name: number(f"{prefix}_{name}") for name in names}


# --- Kinds of attention and of feed-forward blocks --------------------------------------------------------------


def names_of(part):
    """Return the names of a kind's dimensions, in the order of :func:`dimensions`."""
    found = []
    for f in fields(part):
        value = getattr(part, f.name)
        if isinstance(value, Indexer):
            found += [f"{f.name}_{name}" for name in names_of(value)]
        elif isinstance(value, sympy.Symbol):
            found.append(f.name)
    return found


def kind(part):
    """Return a part in symbols; parts that differ only in numbers are of one kind."""
    return _in_symbols(without_vectors(part), "l_")


def _in_symbols(part, at):
    names = dimensions(part)
    found = {name: number(at + name) for name in names if name in type(part).__dataclass_fields__}
    if getattr(part, "indexer", None):
        found["indexer"] = _in_symbols(part.indexer, f"{at}indexer_")
    return part.replace(**found)


def chip():
    """Return a chip in symbols."""
    networks = ("scale_up_bandwidth", "scale_out_bandwidth", "scale_up_size")
    names = ("flops", "memory_bandwidth", "memory_capacity", *networks, "power")
    return Accelerator(**numbers("chip", names))


def system():
    """Return the machine in symbols."""
    count = number("n_chips")
    return System(chip(), count, minimum(count, number("chip_scale_up_size")))


def operators():
    """Return kernels of each part of a model, of experts, attention and timed blocks, and links, in symbols."""
    kernel = ("start", "depth", "share", "prefill")
    return _Operators(
        exchange=number("exchange_share"),
        gemm={part: Kernel(**numbers(part_of("gemm", part), kernel)) for part in calibration.PARTS},
        experts={"experts": Kernel(**numbers("block", (*kernel, "half")))},
        attention={calibration.ANY_DTYPE: Kernel(**numbers("pairs", ("start", "share", "prefill")))},
        blocks={name: Block(**numbers(part_of("timed", name), names)) for name, names in timed().items()},
        **{
            kind: {n: Link(**numbers(f"{kind}_{n}", ("latency", "bandwidth"))) for n in DEGREES}
            for kind in ("reduce", "library")
        },
    )


class _Operators(calibration.Operators):
    """Operators whose timed blocks are symbols; the page looks up the nearest timed block itself."""

    def block(self, kind, *_):
        return self.blocks[kind]


@cache
def timed():
    """Return the kinds of timed blocks: name to the fields that any timing states."""
    found = {}
    for chip in calibration.timed_blocks():
        for (name, *_), block in calibration.operators(chip).blocks.items():
            stated = {f.name for f in fields(block) if getattr(block, f.name) != f.default}
            found.setdefault(name, {"start", "share"}).update(stated)
    return {name: [f.name for f in fields(Block) if f.name in found[name]] for name in sorted(found)}


class _InSymbols(Deployment):
    """A deployment whose degrees, formats and kernels are symbols."""

    engine_memory = tuple(number(name) for name in ("share", "counted", "workspace"))

    def __init__(self, layers=(), spread=CUT):
        sparse = spread or any(isinstance(group.feed_forward, Experts) for group in layers)
        shape = {"d_model": number("d_model"), "vocab_size": number("vocab_size")}
        model = _Shape(layers=layers, sparse=sparse, **shape)
        tp, dp = number("tp"), 1 if spread == WITHIN else number("dp")
        lanes = number("lanes")
        layout = SimpleNamespace(tp=tp, pp=number("pp"), dp=dp, ep=tp * dp if spread else 1, lanes=lanes)
        formats = {"kv_cache_dtype": number("cache_bytes")}
        super().__init__(model, system(), layout, engine=engine(), operators=operators(), **formats)
        vars(self)["layers"] = number("n_layers")

    def weight_bytes(self, part):
        return 2 if part == "norms" else number(part_of("bytes", part))

    def sequence(self, length):
        return number("kept") if length else number("state")

    def kernel_for(self, kind, part):
        peak = chip().replace(flops=number(part_of("peak", part)))
        return self.operators.kernel(kind, part), self.weight_bytes(part), peak


class _Shape(SimpleNamespace):
    """The part of a model outside its layers: what is stored at 16 bits with the head counts together."""

    def parameters(self, active=False):
        return {part: number(part_of("stored", part)) for part in STORED}


def part_of(what, part):
    """Return the name of a number of a part of a model."""
    return re.sub("[ ,-]+", "_", f"{what}_{part}")


def engine():
    """Return the constants of an engine, in symbols."""
    return Engine(**numbers("engine", ENGINE))


def _step(layers=(), spread=CUT):
    at = _InSymbols(layers, spread)
    return decode.ShardedModel(at, number("batch"), number("context"), tokens=number("rows"))


def _reading(layers=(), spread=CUT):
    tokens, cached, at = number("tokens"), number("cached"), _InSymbols(layers, spread)
    return decode.ShardedModel(at, at.layout.lanes, tokens, tokens - cached, cached)


@cache
def layer(part):
    """Return the expressions of a kind of attention or block: name to seconds by term, or to expressions.

    Experts have three variants: ``CUT``, ``COPIED``, ``WITHIN``. ``"sums"``: number of all-reduces.
    """
    block = isinstance(part, (FeedForward, Experts))
    both = (None, part) if block else (part, None)
    group, found = (Layers(1, *both, norms=1),), {"step": [], "prompt": [], "sums": []}
    with as_written():
        for spread in (CUT, COPIED, WITHIN) if isinstance(part, Experts) else (CUT,):
            for name, made in (("step", _step), ("prompt", _reading)):
                ops = list(decode.layer(made(group, spread), *both))
                own = [op for op in ops if not isinstance(op, AllReduce)]
                found[name].append(decode.seconds_by_term((1, op) for op in own))
            found["sums"].append(len(ops) - len(own))
        alone = Transformer(number("d_model"), number("vocab_size"), group, final_norm=0)
        if not block:
            at = _InSymbols(group)
            vars(at)["model"] = alone
            found["kept"] = [Deployment.sequence(at, n) for n in (number("length"), 0)]
    return found


@cache
def whole():
    """Return the expressions of a model that do not depend on its layers: ``CUT``, ``COPIED``, ``WITHIN``."""
    every = (CUT, COPIED, WITHIN)
    held = number("kept"), number("longest"), number("prefix")
    with as_written():
        return {
            "step": [decode.seconds_by_term(decode.step(_step((), spread))) for spread in every],
            "prompt": [decode.seconds_by_term(decode.step(_reading((), spread))) for spread in every],
            "sums": [
                decode.seconds_by_term((1, op) for op in all_reduce(made())) for made in (_step, _reading)
            ],
            "join": [[with_draft(_step((), spread))] for spread in every],
            "fit": [_fit(_step((), spread)) for spread in every],
            "room": [[_InSymbols((), spread).room(*held)] for spread in every],
        }


def _fit(at):
    """Return the bytes that a chip needs, has, and has left by its engine."""
    whole = at.deployment
    held = whole.weights_of_a_chip + number("prefix") + at.held * whole.sequence(at.context)
    return [held, calibration.memory(at.chip), whole.left]


IDLE = ("idle", "a_second")
TERMS = ("weights", "cache", "expert weights", "arithmetic", "attention arithmetic", "expert arithmetic")


def glue():
    """Return the expressions of a request besides its steps, by name.

    ``running``: how many of the ``users`` fit in memory; ``together``: how many of these decode at once. ``waiting``:
    TTFT, TPOT, and tokens per second of all users. ``everybody``: upper bound of TTFT. ``paid``: dollars per request,
    and per million fresh, cached and output tokens. ``rates``: tokens per second of a user and of a chip, and the ends
    of an interval. ``drafted``: TPOT with drafts, from the time of a verifying ``step`` and of a ``draft``. ``joules``:
    per output token of ``together`` sequences; ``prompt_joules``: per prompt token; ``idle``: of idle chips, per token.
    ``cost``: dollars per million tokens of a step. ``machine``: machine time of a request among ``users``; ``late``:
    extra time of a prompt up to its first token; ``sequences``, ``again``, ``capacity``, ``met`` and ``residual``: of a
    copy in a fleet.
    """
    users, places, output, tokens = map(number, ("users", "places", "output", "tokens"))
    cached, running, fresh, read = map(number, ("cached", "running", "fresh", "read"))
    step, price, batch, chips = map(number, ("step", "price", "batch", "n_chips"))
    bar, came, sequences_of = number("spread"), number("came"), number("sequences")
    sequences = [number(name) for name in ("tokens", "held", "most", "budget", "fresh", "output")]
    engine = Engine(host=number("engine_host"), ingress_delay=number("engine_ingress_delay"))
    policy = Scheduler(max_num_batched_tokens=number("budget"))
    at = Deployment(_Lengths(), system(), _Copies(), engine=engine, scheduler=policy, operators=operators())
    keeps, named = at.in_step, SimpleNamespace
    prompts = named(
        tokens=tokens,
        cached=cached,
        full=_Total("read", read),
        fresh=fresh,
        uneven=number("uneven"),
        chunks=number("pieces"),
        steps=lambda _: number("own_steps"),
    )
    with as_written():
        asked = request.request_of(
            at, _Total("step", step), prompts, output, running, price=price, users=users, arrival_process=_Loop()
        )  # fmt: skip
        drafts = map(number, ("drafted", "draft", "length"))
        whole = maximum(number("pieces"), 1)
        own = prefill.prefill_until_first_token(at, read, whole)
        everybody = engine.ingress_delay, number("lanes"), users, running, own + number("own_steps") * step
        batch_of = prefill.decode_batch(at, running, output, tokens - cached)
        both = _Total("read", read), _Total("step", step)
        found = {
            "running": [minimum(users, floor(places))],
            "together": [batch_of],
            "waiting": [asked.ttft, asked.tpot, asked.throughput(users)],
            "pack": [asked.pack],
            "everybody": [invariants.time_to_drain(*everybody, output, step, keeps)],
            "paid": [asked.dollars, *asked.per_million.values()],
            "rates": [1 / step, batch / (step * chips), step / bar, step * bar],
            "drafted": [drafted_token_time(step, *drafts)],
            "joules": [energy.of_token(asked.system, asked.step, number("together"))],
            "prompt_joules": [asked.prompt_joules],
            "workspace": [engine_workspace(number("tp"), number("logits"))],
            "padded": [padded(number("d_model"))],
            "idle": [energy.idle_energy(energy.draw(), asked.system.chip.power, *map(number, IDLE))],
            "hourly": [_asks(price).chip_hour_cost(chip())],
            "cost": [cost_per_million(step, batch, chips, price)],
            "machine": [request.machine_time(number("own"), output, step, users)],
            "in_step": [keeps],
            "sequences": [queueing.most_sequences(*sequences, number("rides"))],
            "again": [queueing.prompts_read_again(sequences_of, output, fresh)],
            "capacity": [
                queueing.capacity(sequences_of, output, step, number("own"), keeps, number("again"))
            ],
            "met": [queueing.longest_pack(came, keeps, minimum(number("most"), 1), number("most"))],
            "residual": [queueing.residual(step, came, number("own"), number("uneven"))],
            "late": [own - number("own")],
            "own": [asked.fresh_seconds + asked.cached_seconds],
            "added": [prefill.added_time(*both, number("beside"))],
        }
        for name in ("request", "loop"):
            found[f"bounds_{name}"] = [one.slack(Facts()) for one in invariants.KINDS[name]]
        return found


class Facts(dict):
    """The facts of cautions and bounds, each a symbol of its name."""

    def __missing__(self, name):
        return number(name)


def _asks(price):
    """The money fields of a question, in symbols."""
    said = SimpleNamespace(machine=None, price=price, electricity=number("electricity"), pue=number("pue"))
    said.chip_hour_cost = partial(Question.chip_hour_cost, said)
    return said


class _Lengths:
    """The part of a model that a request needs besides its steps."""

    sparse = number("stored_experts") > 1  # symbols are positive
    layers = (SimpleNamespace(count=number("hosted"), attention=True, feed_forward=True),)
    attentions = ((1, True),)  # not plain: the host launches it kernel by kernel


class _Loop:
    """Arrivals of a closed loop: the share of requests in the burst, and the prompts prefilled in a row."""

    burst = number("burst")
    group = number("group")
    batching_wait_iters = 0


class _Copies:
    dp, ep, lanes = number("dp"), number("ep"), number("lanes")


class _Total:
    """A breakdown as its total, with only the terms that draw power."""

    def __init__(self, name, total):
        self.total = total
        self.terms = {term: number(part_of(name, term)) for term in TERMS}


def code(expressions):
    """Return a JavaScript function of an object of numbers (and one of a group's); common parts are computed once."""
    expressions = [sympy.sympify(e) for e in expressions]
    taken = sorted({str(s) for e in expressions for s in e.free_symbols})
    shared, results = sympy.cse(expressions, symbols=sympy.numbered_symbols("$"), order="none")
    lines = "".join(f"const {name}={_js(expression)};" for name, expression in shared)
    short = {name: f"_{place}" for place, name in enumerate(taken)}
    body = f"{lines}return [{','.join(map(_js, results))}];"
    body = re.sub(r"\b[a-z]\w*", lambda word: short.get(word[0], word[0]), body)
    own = [name for name in taken if name.startswith("l_")]
    both = ([name for name in taken if name not in own], *([own] if own else []))
    asked = (",".join(f"{name.removeprefix('l_')}:{short[name]}" for name in some) for some in both)
    return f"({','.join(f'{{{names}}}' for names in asked)})=>{{{packed(body)}}}"


def packed(code):
    """Shorten generated JavaScript: one ``const`` for consecutive ones, and no spare blanks."""
    code = code.replace(";const ", ",")
    return re.sub(r" ([-+*/?:<>=&|]+) (?!-)", r"\1", code).replace(", ", ",")


# Changes to the question rather than to a resource: the numbers that are multiplied, with their powers.
_OWN = (
    ("½ bytes of weights", {part_of("bytes", part): -1 for part in calibration.PARTS}),
    ("½ bytes of cache", {"cache_bytes": -1}),
    ("½ users", {"batch": -1}),
)
_IN_WORDS = {
    "memory bandwidth": "2 × memory speed", "arithmetic peak": "2 × arithmetic",
    "network latency": "½ network latency", "network bandwidth": "2 × network speed",
    "kernel launch": "½ kernel launch", "engine time": "½ engine time",
}  # fmt: skip


def moved(resource):
    """Return the numbers of a question that a resource affects, with the power of the improvement factor in each."""
    by = number("by")
    made = resource.improve(chip(), operators(), engine(), by)
    powers = {}
    for value in _leaves(made):
        value = sympy.sympify(value)
        for symbol in value.free_symbols - {by}:
            power = sympy.degree(value, by) if value.is_polynomial(by) else -1
            if power:
                powers[str(symbol)] = int(power)
    if "chip_flops" in powers:
        powers |= {part_of("peak", part): powers["chip_flops"] for part in calibration.PARTS}
    return powers


def _leaves(value):
    value = vars(value) if isinstance(value, Record) else value
    value = tuple(value.values()) if isinstance(value, Mapping) else value
    if isinstance(value, tuple):
        return [leaf for one in value for leaf in _leaves(one)]
    return [value] if isinstance(value, sympy.Expr) else []


def changes():
    """Return the doublings that the page tries: name and numbers that change; chips grow in layouts of one kind."""
    found = [{"name": _IN_WORDS[r.name], "scale": moved(r)} for r in RESOURCES]
    found += [{"name": name, "scale": scale} for name, scale in _OWN]
    wider = {"name": "2 × chips", "scale": {"n_chips": 1, "tp": 1}, "copies": {"n_chips": 1, "dp": 1}}
    return [*found, wider]


def levers():
    """Return the changes that could reach a target, with the largest factor that the page tries."""
    found = [
        *((r.name, moved(r), BEST, r.better == "less") for r in RESOURCES),
        (PRICE, {"price": -1}, BEST, True),
        ("bytes of weights, same kernels", _OWN[0][1], 16, True),
        ("context", {"context": -1}, 1024, True),
        ("fewer users", {"batch": -1}, 8192, True),
        ("more users", {"batch": 1}, 8192, False),
    ]
    return [dict(zip(("name", "scale", "limit", "less"), each, strict=True)) for each in found]
