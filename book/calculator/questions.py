"""The questions of the instrument as JavaScript: the sixth model called on symbols, and printed.

A question is a flat set of numbers by name: the shape of a model, a chip, the kernels that serve each of its parts, a
layout, a workload. ``functions`` calls the library on symbols of those names; :mod:`book.calculator.tables` says what
the numbers are for each model and chip of the catalogue.
"""

import re
from collections.abc import Mapping
from functools import cache

import sympy

from inferlib.equation import Record
from inferlib.explorer.core import _js
from inferlib.ops import as_written, floor, minimum
from inferlib.principles import cost_per_million
from inferlib.serving import constants, prompt, request
from inferlib.serving.change import BEST, PRICE, RESOURCES
from inferlib.serving.decode import Place
from inferlib.serving.kernels import Engine, Kernel, Link
from inferlib.serving.prompt import _Prompt
from inferlib.serving.speculation import drafted_token_time
from inferlib.system import Accelerator, System, Workload
from inferlib.transformer import Attention, Experts, FeedForward, LatentAttention, Layers, Transformer

DEGREES = (2, 4, 8)  # of the all-reduces that somebody timed; a chip with fewer repeats its last
STORED = (*constants.PARTS, "norms")  # parts of a model that are stored apart
ENGINE = ("base", "layer", "rank", "sequence", "together", "box")
NO_WINDOW = 1e15  # positions: a window that no context reaches

# The structures of a model that the page knows: for each group of layers its attention and its block.
STRUCTURES = {
    "dense": (("plain", "dense"), ("plain", "dense")),
    "experts": (("plain", "dense"), ("plain", "experts"), ("plain", "experts")),
    "chunked": (("chunked", "dense"), ("chunked", "experts"), ("plain", "experts")),
    "latent": (("latent", "dense"), ("latent", "experts")),
}
ATTENTION = {
    "plain": ("n_heads", "n_kv_heads", "head_dim", "value_dim", "window"),
    "latent": ("n_heads", "kv_rank", "nope_dim", "rope_dim", "value_dim", "q_rank"),
}
ATTENTION["chunked"] = ATTENTION["plain"]
BLOCKS = {
    "dense": ("d_ff", "matrices"),
    "experts": ("n_experts", "n_active", "d_expert", "d_shared", "matrices"),
}


def number(name):
    """The symbol of a number of a question; layers of a kind and shared experts may be none."""
    if name.endswith(("_count", "_d_shared")) or name == "cached":
        return sympy.Symbol(name, nonnegative=True)
    return sympy.Symbol(name, positive=True)


def numbers(prefix, names):
    """Symbols by name."""
    return {name: number(f"{prefix}_{name}") for name in names}


class _Counted(Transformer):
    """A model whose parameters are numbers of the question: what is stored at 16 bits beside the head, together."""

    def parameters(self, active=False):
        return {part: number(_part("stored", part)) for part in STORED}


def _attention(kind, at):
    if kind == "latent":
        return LatentAttention(**numbers(at, ATTENTION[kind]))
    return Attention(**numbers(at, ATTENTION[kind]), chunked=kind == "chunked")


def _block(kind, at):
    return (FeedForward if kind == "dense" else Experts)(**numbers(at, BLOCKS[kind]))


def model(structure, kind=_Counted):
    """A model of a structure, in symbols."""
    layers = tuple(
        Layers(number(f"l{k}_count"), _attention(attention, f"l{k}"), _block(block, f"l{k}"))
        for k, (attention, block) in enumerate(STRUCTURES[structure])
    )
    return kind(number("d_model"), number("vocab_size"), layers)


def chip():
    """A chip in symbols."""
    names = (
        "flops", "memory_bandwidth", "memory_capacity", "scale_up_bandwidth", "scale_out_bandwidth",
        "scale_up_size", "power",
    )  # fmt: skip
    return Accelerator(**numbers("chip", names))


def system():
    """The machine: its chips, of which so many share a domain."""
    count = number("n_chips")
    return System(chip(), count, minimum(count, number("chip_scale_up_size")))


def _part(what, part):
    return f"{what}_{part}".replace(" ", "_").replace("-", "_")


def operators():
    """Kernels of each part of a model, of experts, of attention, and links, in symbols."""
    kernel = ("start", "depth", "share", "prefill")
    return constants.Operators(
        exchange=number("exchange_share"),
        gemm={part: Kernel(**numbers(_part("gemm", part), kernel)) for part in constants.PARTS},
        experts={"experts": Kernel(**numbers("block", ("start", "share")))},
        attention={constants.ANY: Kernel(**numbers("pairs", ("start", "share", "prefill")))},
        **{
            kind: {n: Link(**numbers(f"{kind}_{n}", ("latency", "bandwidth"))) for n in DEGREES}
            for kind in ("reduce", "library")
        },
    )


class _InSymbols:
    """A question whose degrees, formats and kernels are symbols."""

    def __init__(self, structure, spread, batch, context, tokens=1, **more):
        work = Workload(batch, context, cache=number("cache_bytes"))
        super().__init__(model(structure), system(), work, None, None, tokens, operators(), **more)
        self.tp, self.pp, self.dp = (number(name) for name in ("tp", "pp", "dp"))
        self.given = "a layout"
        self.formats = {part: part for part in constants.PARTS}
        self.sequences = batch / self.dp
        self.rows = self.sequences * tokens
        self.spread = spread
        self.expert_chips = self.tp * self.dp if spread else self.tp
        self.expert_rows = self.rows * (self.dp if spread else 1)

    def _bytes(self, part):
        return 2 if part == "norms" else number(_part("bytes", part))

    def _name(self, format):
        return format

    def _peak(self, name):
        return chip().replace(flops=number(_part("peak", name)))


class _Step(_InSymbols, Place):
    pass


class _Reading(_InSymbols, _Prompt):
    pass


def _told(stages):
    """A breakdown as the page needs it: names by stage and group, its values, and the total last."""
    from inferlib.system import Breakdown

    step = Breakdown(tuple(stages))
    plan = [[list(group) for group in stage] for stage in step.grouped]
    return plan, [*step.terms.values(), step.total]


def engine():
    """The constants of an engine, in symbols."""
    return Engine(**numbers("engine", ENGINE))


@cache
def functions(structure, spread):
    """What the page asks of a model of one structure: name to (plan or names, expressions).

    Parameters
    ----------
    structure : str
        One of ``STRUCTURES``.
    spread : bool
        Whether experts are spread over all chips of copies of the attention.

    Returns
    -------
    dict
        ``step``: terms of a decode step of ``batch`` and ``context``, each sequence with so many ``rows``, and
        their total; ``fit``: bytes that a chip needs
        and has; ``room``: sequences of ``length`` that fit; ``prompt``: terms of reading ``tokens``, of which
        ``cached`` are there.
    """
    batch, context, tokens, cached = (number(name) for name in ("batch", "context", "tokens", "cached"))
    with as_written():
        step = _Step(structure, spread, batch, context, number("rows"))
        found = {"step": _told(step.stages(engine())), "fit": (["needs", "has"], list(step.memory()))}
        room = prompt.places(
            lambda batch, context: _Step(structure, spread, batch, context), number("length")
        )
        found["room"] = (["places"], [room])
        new = tokens - cached
        reading = _Reading(structure, spread, number("dp"), tokens, new, new=new, cached=cached)
        found["prompt"] = _told(reading.stages(Engine()))
    return found


def shape(structure, tied):
    """Parameters by part of a model whose small vectors are left out, in symbols."""
    parts = model(structure, Transformer).replace(tied=tied).parameters()
    head = sum(parts.pop(name, 0) for name in ("embeddings", "positions", "connections"))
    parts["head"] = parts.get("head", 0) + head
    return {part: parts.get(part, 0) for part in STORED}


TERMS = ("weights", "cache", "expert weights", "arithmetic", "attention arithmetic", "expert arithmetic")


def glue():
    """What a request is beside its steps: name to (names, expressions) of times, tokens and users.

    ``running``: how many of the ``users`` there is room for. ``waiting``: seconds to the first token and between two.
    ``paid``: dollars for a request, and for a million fresh, cached and output tokens. ``rates``: tokens a second of
    a user and of a chip, and the ends of an interval. ``drafted``: seconds of a token with drafts, of the ``step``
    that verifies and that of a ``draft``. ``joules``: of an output token of ``running`` users; ``prompt_joules`` of
    one of the prompt. ``cost``: dollars for a million tokens of a step.
    """
    users, places, output, tokens, cached, running = (
        number(name) for name in ("users", "places", "output", "tokens", "cached", "running")
    )
    fresh, read, step, price = (number(name) for name in ("fresh", "read", "step", "price"))
    batch, chips, bar = (number(name) for name in ("batch", "n_chips", "spread"))
    with as_written():
        asked = request.served(
            _Lengths(), system(), _Total("step", step), _Total("read", read), fresh, tokens, output, running,
            cached_tokens=cached, layout=_Copies(), price=price, asking=users,
        )  # fmt: skip
        return {
            "running": (["running"], [minimum(users, floor(places))]),
            "waiting": (["first_token", "token"], [asked.first_token, asked.token]),
            "paid": (
                ["request", *asked.per_million],
                [asked.dollars, *asked.per_million.values()],
            ),
            "rates": (
                ["speed", "chip", "low", "high"],
                [
                    1 / step,
                    number("batch") / (step * number("n_chips")),
                    step / number("spread"),
                    step * number("spread"),
                ],
            ),
            "drafted": (
                ["token"],
                [drafted_token_time(step, *(number(n) for n in ("drafted", "draft", "length")))],
            ),
            "joules": (["joules"], [asked.joules]),
            "prompt_joules": (["joules"], [asked.prompt_joules]),
            "cost": (["dollars"], [cost_per_million(step, batch, chips, price)]),
        }


class _Lengths:
    """What a request needs of a model beside its steps."""

    n_layers, sparse = number("n_layers"), False


class _Copies:
    dp = number("dp")


class _Total:
    """A breakdown by the terms that draw power, and its total."""

    def __init__(self, name, total):
        self.total = total
        self.terms = {term: number(_part(name, term)) for term in TERMS}


def code(names, expressions):
    """One JavaScript function of an object of numbers, what its expressions share computed once."""
    expressions = [sympy.sympify(e) for e in expressions]
    taken = sorted({str(s) for e in expressions for s in e.free_symbols})
    shared, results = sympy.cse(expressions, symbols=sympy.numbered_symbols("$"), order="canonical")
    lines = "".join(f"const {name}={_js(expression)};" for name, expression in shared)
    short = {name: f"_{place}" for place, name in enumerate(taken)}
    body = re.sub(
        r"\b[a-z]\w*",
        lambda word: short.get(word[0], word[0]),
        f"{lines}return [{','.join(map(_js, results))}];",
    )
    return f"({{{','.join(f'{name}:{short[name]}' for name in taken)}}})=>{{{packed(body)}}}"


def packed(code):
    """Generated JavaScript with one ``const`` for all that follow one another, without spaces that say nothing."""
    code = code.replace(";const ", ",")
    return re.sub(r" ([-+*/?:<>=&|]+) (?!-)", r"\1", code).replace(", ", ",")


# Changes that belong to the question, not to a resource: what is multiplied, and with what.
_OWN = (
    ("½ bytes of weights", {f"bytes_{part}": -1 for part in constants.PARTS}),
    ("½ bytes of cache", {"cache_bytes": -1}),
    ("½ users", {"batch": -1}),
)
_IN_WORDS = {
    "memory bandwidth": "2 × memory speed", "arithmetic peak": "2 × arithmetic",
    "network latency": "½ network latency", "network bandwidth": "2 × network speed",
    "kernel launch": "½ kernel launch", "engine time": "½ engine time",
}  # fmt: skip


def moved(resource):
    """Which numbers of a question a resource stands for, and with which power of how many times as good it is."""
    by = number("by")
    made = resource.made(chip(), operators(), engine(), by)
    powers = {}
    for value in _leaves(made):
        value = sympy.sympify(value)
        for symbol in value.free_symbols - {by}:
            power = sympy.degree(value, by) if value.is_polynomial(by) else -1
            if power:
                powers[str(symbol)] = int(power)
    if "chip_flops" in powers:
        powers |= {_part("peak", part): powers["chip_flops"] for part in constants.PARTS}
    return powers


def _leaves(value):
    if isinstance(value, tuple):
        return [leaf for one in value for leaf in _leaves(one)]
    if isinstance(value, Mapping):
        return [leaf for one in value.values() for leaf in _leaves(one)]
    if isinstance(value, Record):
        return [leaf for one in vars(value).values() for leaf in _leaves(one)]
    return [value] if isinstance(value, sympy.Expr) else []


def changes():
    """What the page tries twice as good: name and the numbers that change, chips in the layouts that go on alike."""
    found = [{"name": _IN_WORDS[r.name], "scale": moved(r)} for r in RESOURCES]
    found += [{"name": name, "scale": _by_name(scale)} for name, scale in _OWN]
    wider = {"name": "2 × chips", "scale": {"n_chips": 1, "tp": 1}, "copies": {"n_chips": 1, "dp": 1}}
    return [*found, wider]


def _by_name(scale):
    return {name.replace(" ", "_").replace("-", "_"): power for name, power in scale.items()}


def levers():
    """What could be otherwise so that a step is fast or cheap enough, and as far as the page looks."""
    found = [
        {"name": r.name, "scale": moved(r), "limit": BEST, "less": r.better == "less"} for r in RESOURCES
    ]
    return [
        *found,
        {"name": PRICE, "scale": {"price": -1}, "limit": BEST, "less": True},
        {"name": "bytes of weights", "scale": _by_name(_OWN[0][1]), "limit": 16, "less": True},
        {"name": "context", "scale": {"context": -1}, "limit": 1024, "less": True},
        {"name": "fewer users", "scale": {"batch": -1}, "limit": 8192, "less": True},
        {"name": "more users", "scale": {"batch": 1}, "limit": 8192, "less": False},
    ]
