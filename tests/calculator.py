"""The functions of the calculator page beside the calls of the library that it copies, and states at random."""

import html
import json
import random
import re
from functools import cache

import pytest
from py_mini_racer import MiniRacer

import inferlib
import tokenprice
from book.calculator import fields, page as calculator_page, tables
from tokenprice import catalog

START = {
    "model": "Llama 3 70B",
    "chip": "H100 SXM",
    "n_chips": 8,
    "layout": "",
    "weights": "bf16",
    "kv_cache_dtype": "bf16",
    "layer_formats": {},
    "engine": "",
    "batch": 32,
    "context": 4096,
    "concurrency": 32,
    "prompt_tokens": 4096,
    "output_tokens": 512,
    "cached": 0,
}


@cache
def engine():
    made = MiniRacer()
    made.eval(calculator_page.core())
    made.eval("const A=inferlibAsk(D);")
    return made


def run(body):
    """Run JavaScript with the functions of the page, and return its result."""
    return json.loads(engine().eval(f"JSON.stringify((()=>{{{body}}})())"))


def page(call, **state):
    """An answer of the page: ``A.step`` or ``A.request`` of a state."""
    given = json.dumps({**START, **state})
    more = ",S.batch,S.context" if call == "step" else ""
    return run(f"const S={given},r=A.{call}(S{more});delete r.at;return r")


KNOWN = {"tokenprice": tokenprice, "inferlib": inferlib}


def library(state, mode="request"):
    """The answer of the Python call that the page copies, or the text of its refusal."""
    call = run(f"return A.python({json.dumps(START | {'prices': {}} | state | {'mode': mode})})")
    try:
        return eval(call, KNOWN), ""
    except (ValueError, LookupError) as error:
        return None, str(error.args[0])


BILLS = (
    {},
    {},
    {},
    {"electricity": 0.1},
    {"electricity": 0.3, "pue": 1.4, "paid_hours_used": 0.5},
    {"price": 1.5},
)


def drawn(seed, n):
    """Random questions over all models, chips, layouts and formats."""
    choose = random.Random(seed)
    models, chips = list(tables.models()[0]), catalog.chips()
    for _ in range(n):
        count = choose.choice((1, 2, 4, 8, 8, 16, 32, 64, 72, 12))
        tp = choose.choice([d for d in range(1, count + 1) if count % d == 0])
        model, rest = choose.choice(models), count // tp
        spread = f"PP{rest} x TP{tp}", f"DP{rest} TP{tp}", "TP2"
        if catalog.load_model(model).sparse:
            spread = f"DP{rest} x TP{tp} with EP{count}", f"TP{count} EP{count}", *spread
        prompt = choose.choice((100, 1000, 4096, 20_000, 100_000, "2k ± 50%", "100-2k-16k"))
        yield START | {
            "model": model,
            "chip": choose.choice(chips),
            "n_chips": count,
            "layout": choose.choice(("", "", *spread)),
            "weights": choose.choice(("", "", *tables.WEIGHTS)),
            "kv_cache_dtype": choose.choice(("", *tables.CACHES)),
            "layer_formats": choose.choice(
                ({}, {}, {"attention": "bf16"}, {"experts": "fp8", "head": "int8"})
            ),
            "draft_tokens": choose.choice((0, 0, 0, 3)),
            "acceptance_length": 2.5,
            **choose.choice(BILLS),
            "engine": choose.choice(list(tables.engines())),
            "batch": choose.choice((1, 3, 32, 256, 2000, 20_000)),
            "context": max(choose.randrange(-4_000, 40_000), 0),
            "concurrency": choose.choice((1, 7, 64, 300)),
            "prompt_tokens": prompt,
            "output_tokens": choose.choice((1, 300, 2000, "20-50-4k")),
            "cached": choose.choice((0, "50%", 500)),
            "shared_prefix": choose.choice((None, None, "30%", 60)),
            "memory_utilization": choose.choice((None, None, 0.8, 1)),
            "changed": choose.choice(
                (
                    {},
                    {"scale_up_bandwidth": 2e11},
                    {"memory_bandwidth": 5e12},
                    {"peak_16": 1e12, "peak_fp8": 3e15},
                )
            ),
        }


def same_step(found, told):
    assert found["status"] == told.step.status
    assert tuple(found["remarks"]) == told.notes
    if not told.step.feasible:
        assert found["reason"] == told.step.reason
        return
    expected = (told.seconds, told.low, told.high)
    assert (found["seconds"], found["low"], found["high"]) == pytest.approx(expected, rel=1e-9)
    terms = {term["name"]: term["seconds"] for term in found["terms"] if term["seconds"]}
    assert terms == pytest.approx({name: s for name, s in told.step.terms.items() if s}, rel=1e-9)
    for name, said in (("dollars", told.usd_per_million), ("joules", told.joules)):
        assert found[name] == (said and pytest.approx(said, rel=1e-9)), name
    assert tuple(found["cautions"]) == told.warnings
    largest = sorted(told.step.critical.values())[-2:]
    if largest[-1] > 1.000001 * largest[0]:
        assert found["binding"] == told.step.bottleneck


def same_request(found, told, price):
    expected = (told.ttft, told.tpot, told.concurrency, told.ttft_interval[1])
    numbers = (found["first"], found["token"], found["running"], found["firstHigh"])
    assert numbers == pytest.approx(expected, rel=1e-9)
    assert tuple(found["cautions"]) == told.warnings
    if price is None:
        assert found.get("million") is None
    else:
        paid = {name: v for name, v in found["million"].items() if v is not None}
        assert paid == pytest.approx(told.per_million, rel=1e-9)
        assert found["request"] == pytest.approx(told.dollars, rel=1e-9)
    if told.system.chip.power is not None and told.prefill_machine is None:
        assert found["promptJoules"] == pytest.approx(told.prompt_joules, rel=1e-9)


def same_answer(found, state):
    """Compare the page's answer to a request with the library's: refusal, reason why it does not fit, or numbers."""
    told, refusal = library(state)
    if refusal:
        assert found["status"] != "ok" and refusal.endswith(found["reason"]), state
    elif not told.feasible:
        assert (found["status"], found["reason"]) == (told.status, told.reason), state
        assert tuple(found["remarks"]) == told.notes, state
    else:
        same_request(found, told.request, told.question.price_per_chip_hour)
        assert found.get("joules") == (told.joules and pytest.approx(told.joules, rel=1e-9))
        assert found["sum"] == pytest.approx(told.throughput, rel=1e-9)
        assert tuple(found["remarks"]) == told.notes, state
    return told


STUB = """
const heard = {}, made = {};
Object.assign(globalThis, { location: { hash: "" }, history: { replaceState() {} }, navigator: {}, window: globalThis,
  performance: { now: () => 0 }, setTimeout: (f) => f(), clearTimeout() {}, requestAnimationFrame: (f) => f(),
  addEventListener: (kind, f) => { heard[kind] = f; } });
const node = (about = {}) => ({ dataset: {}, classList: { toggle() {} }, setAttribute() {}, options: [{}],
  value: "", textContent: "", innerHTML: "", addEventListener: (kind, f) => { heard[kind] = f; },
  scrollIntoView() {}, ...about });
const ofKey = (key) => key in CONTROLS ? (made[key] ||= node({ dataset: { key }, ...CONTROLS[key] })) : null;
const root = node({ querySelectorAll: (query) => (query === ".changed [data-key]" ? CHIP.map(ofKey) : []),
  querySelector: (query) => {
    const [, what, name] = /data-(\\w+)="([\\w-]+)"/.exec(query);
    return what === "key" ? ofKey(name) : (made[what + name] ||= node());
  } });
"""


@cache
def opened():
    """A JavaScript engine with the page, in which ``open(hash)`` follows a link."""
    html_text, made, controls = calculator_page.page(), MiniRacer(), {}
    for tag, about, inside in re.findall(
        r"<(select|input|textarea)\b([^>]*)>((?:<opt.*?)?)(?=</select>|<(?!opt|/opt))", html_text
    ):
        if key := re.search(r'data-key="(\w+)"', about):
            kind = re.search(r'type="(\w+)"', about)
            values = [
                {"value": html.unescape(value)} for value in re.findall(r'<option value="([^"]*)"', inside)
            ]
            controls[key[1]] = {"tagName": tag.upper(), "type": kind[1] if kind else "", "options": values}
    told = f"const CONTROLS={json.dumps(controls)},CHIP={json.dumps([row[0] for row in fields.CHIP])};"
    made.eval(calculator_page.core() + told + STUB + calculator_page.script("page.js"))
    made.eval("""const page = inferlibPage(root, D), open = (hash) => {
      location.hash = hash;
      heard.hashchange();
      const found = page.answer(), one = (found && found.best) || found, head = made.parthead.innerHTML;
      if (!one) return { head };
      heard.click({ target: { closest: () => ({ dataset: { act: "python" } }) } });
      const paid = page.state().mode === "step" ? one.dollars : one.million;
      return { head, call: made.partpython.textContent, chip: one.at && one.at.c.name, n: one.at && one.at.n,
        seconds: one.token == null ? one.seconds : one.token, cost: (paid || {}).output || paid };
    };""")
    return made
