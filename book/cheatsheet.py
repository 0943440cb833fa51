"""The formulas worth remembering on one page: typeset from the register in one alphabet, each with a worked number.

The numbers are those of the running question: Llama 3 70B in 16 bits on one box of eight H100s, 32 users, 4,096 tokens
of context.
"""

import tomllib
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import get_type_hints

import sympy

import inferlib
from book.problems.bank import say
from book.serving import tables
from inferlib import principles
from inferlib.equation import EQUATIONS, latex, symbolic
from inferlib.papers import erdil2025, mazurek2025, pope2022, steinhardt2022
from tokenprice import answerers, prompt, request
from tokenprice.speculation import drafted_token_time

BATCH, CONTEXT, CHIPS = 32, 4096, 8
HOP, LATENCY = 1e-6, 5e-6
_OURS = {"principles": "inferlib.principles", "serving": "tokenprice"}


@cache
def stated():
    """``cheatsheet.toml``: the alphabet, and the formulas."""
    return tomllib.loads((files("book") / "cheatsheet.toml").read_text("utf-8"))


def formulas():
    """The formulas of the sheet, in its order: source, name, left, says, holds, perhaps names and zero."""
    return stated()["formula"]


def alphabet():
    """Symbol to its one meaning."""
    return {symbol: entry["means"] for symbol, entry in stated()["alphabet"].items()}


def expression(entry):
    """The right-hand side of a formula, called on the symbols of the one alphabet."""
    import_module(_OURS.get(entry["source"], f"inferlib.papers.{entry['source']}"))
    equation = EQUATIONS[entry["source"], entry["name"]]
    names = {name: symbol for symbol, known in stated()["alphabet"].items() for name in known["names"]}
    names |= entry.get("names", {})
    hints = {name: kind for name, kind in get_type_hints(equation.function).items() if name != "return"}
    records = {}
    for name, kind in hints.items():
        record = symbolic(kind, names)
        records[name] = record.replace(
            **{zero: sympy.Integer(0) for zero in entry.get("zero", ()) if hasattr(record, zero)}
        )
    plain = {name: sympy.Symbol(names.get(name, name), positive=True) for name in equation.arguments}
    return equation.function(**records, **plain)


def typeset(entry):
    """A formula as LaTeX."""
    return f"{entry['left']} = {latex(expression(entry))}"


LLAMA, H100 = inferlib.load_model("Llama 3 70B"), inferlib.load_chip("H100 SXM")
PROFILE, TOY, POPE = principles.profile_of(LLAMA), erdil2025.model_of(LLAMA), pope2022.model_of(LLAMA)
VECTORS = BATCH * LLAMA.d_model * 2


@cache
def _request():
    return tables.asked(BATCH)


def _weights():
    profiles = (PROFILE, principles.profile_of(inferlib.load_model("DeepSeek V3")))
    dense, sparse = (principles.weights_read(profile, BATCH) / 1e9 for profile in profiles)
    return f"{dense:.1f} billion; DeepSeek V3 {sparse:.0f} billion"


def _roofline():
    step = principles.decode_step(LLAMA, inferlib.System(H100, CHIPS), inferlib.Workload(BATCH, CONTEXT))
    weights, caches, total = (say(t, "ms") for t in (step.terms["weights"], step.terms["cache"], step.total))
    return f"{weights} weights, {caches} caches: {total}"


def _exchange():
    time = principles.exchange_time(LATENCY, VECTORS, H100.scale_up_bandwidth)
    return f"{say(VECTORS, 'MB')}, {say(LATENCY, 'us')}: {say(time, 'us')}"


def _token():
    wait = erdil2025.grid_all_reduce_time(CHIPS, HOP)
    return say(erdil2025.toy_latency(TOY, H100, CHIPS, BATCH, wait), "ms")


def _others():
    r = _request()
    return say(prompt.others_time(r.users, r.output_tokens, r.prompt.total), "ms")


def _machine():
    r = _request()
    return say(request.machine_time(r.prompt.total, r.output_tokens, r.step.total, r.users), "ms")


def _power():
    r = _request()
    return f"{say(r.joules * r.users / r.step.total / CHIPS, 'W')} a chip: {say(r.joules, 'W*s')}"


def _cut():
    return f"{say(pope2022.best_ws2d_time(POPE, pope2022.chip_of(H100), CHIPS, BATCH), 'us')} a layer"


def _drafted():
    step, made = _request().step.total, erdil2025.expected_tokens(0.8, 4)
    return f"D = 3 of 0.5 ms: {say(drafted_token_time(step, 3, 0.5e-3, made), 'ms')}"


def _latent():
    return f"DeepSeek V3: {say(mazurek2025.cache_per_token(mazurek2025.model_of('DeepSeek V3')), 'KiB')}"


WORKED = {
    "weights_read": _weights,
    "cache_data": lambda: say(principles.cache_data(PROFILE, BATCH, CONTEXT), "GB"),
    "cache_per_token": _latent,
    "decode_work": lambda: say(principles.decode_work(PROFILE, BATCH, CONTEXT), "TFLOP"),
    "roofline_time": _roofline,
    "ridge_point": lambda: say(principles.ridge_point(H100), "FLOP/B"),
    "critical_batch": lambda: say(principles.critical_batch(H100, PROFILE), "1"),
    "exchange_time": _exchange,
    "ring_all_reduce_time": lambda: f"1 µs a hop: {say(erdil2025.ring_all_reduce_time(CHIPS, HOP), 'us')}",
    "grid_all_reduce_time": lambda: f"1 µs a hop: {say(erdil2025.grid_all_reduce_time(CHIPS, HOP), 'us')}",
    "toy_latency": _token,
    "optimal_n_gpu": lambda: f"{erdil2025.optimal_n_gpu(TOY, H100, HOP):.0f} chips",
    "minimum_latency_large": lambda: say(erdil2025.minimum_latency_large(TOY, H100, HOP), "ms"),
    "memory_limited_time": lambda: say(
        steinhardt2022.memory_limited_time(steinhardt2022.chip_of(H100)), "us"
    ),
    "best_ws2d_time": _cut,
    "switch_to_x": lambda: f"{pope2022.switch_to_x(POPE, pope2022.load_mesh(64)):,.0f} tokens",
    "cache_over_heads": lambda: say(pope2022.cache_over_heads(POPE, CHIPS, BATCH, CONTEXT), "GB"),
    "imbalanced_load": lambda: f"72 chips: {1 / mazurek2025.records.balancedness(72):.2f} times the mean",
    "others_time": _others,
    "first_token_time": lambda: say(_request().first_token, "ms"),
    "machine_time": _machine,
    "rent": lambda: f"{say(_request().dollars, 'cent')}s a request",
    "token_energy": _power,
    "expected_tokens": lambda: f"α = 0.8, three drafts: {erdil2025.expected_tokens(0.8, 4):.2f}",
    "drafted_token_time": _drafted,
}


def sheet():
    """The sheet as Markdown: a table of formulas, and a table of its symbols."""
    rows = "\n".join(
        f'| <span class="formula">{entry["says"]}</span> <span class="holds">{_source(entry)}; {entry["holds"]}</span> '
        f"| $\\displaystyle {typeset(entry)}$ | {WORKED[entry['name']]()} |"
        for entry in formulas()
    )
    cells = [f"${symbol}$ | {means}" for symbol, means in alphabet().items()]
    cells += [" | "] * (-len(cells) % 3)
    third = len(cells) // 3
    letters = "\n".join(f"| {' | '.join(cells[k::third])} |" for k in range(third))
    head = "| It says, and holds for | Formula | Running question |\n|---|---|---|"
    return (
        f"{head}\n{rows}\n\n| Symbol | means | symbol | means | symbol | means |\n|{'---|' * 6}\n{letters}\n"
    )


def _source(entry):
    number = EQUATIONS[entry["source"], entry["name"]].number
    label = {"principles": "first principles", "serving": "sixth model"}.get(entry["source"])
    label = label or answerers.label(entry["source"])
    return f"{label}, eq. {number}" if number and number.isdigit() else label
