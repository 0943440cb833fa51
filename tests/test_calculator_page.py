"""The calculator page gives the answers of the library, with its refusals and cautions."""

import html
import json
import os
import random
import re
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs, quote, urlencode

import pytest
from facts import from_table, lines
from py_mini_racer import MiniRacer
from questions import OPTIONS, SERVED, TRACES, WORK, answered

import inferlib
import tokenprice
from book import measured
from book.calculator import fields, javascript, page as calculator_page, tables
from inferlib.system import System
from tokenprice import SLO, Question, ask, catalog, change, decide, permalink
from tokenprice.formatting import format_layout
from tokenprice.question import REQUEST, SERVING, STEP

ROOT = Path(__file__).parents[1]
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
        spread = f"PP{rest} x TP{tp}", f"DP{rest} TP{tp}"
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


def test_random_states_of_the_page_are_answered_as_in_python():
    """``STATES`` random states (default 60), with prices and mixed formats."""
    states = list(drawn(seed=2026, n=int(os.environ.get("STATES", 60))))
    both = "[A.step(S,S.batch,S.context),A.request(S)].map((r)=>{delete r.at;return r})"
    answered, requests, blank = 0, 0, dict.fromkeys((*fields.declared(), "own", "mix")) | {"prices": ""}
    found = run(f"return {json.dumps(states)}.map((S)=>{both})")
    for state, (step, request) in zip(states, found, strict=True):
        told, refusal = library(state, "step")
        if refusal:
            assert step["status"] == "n/a" and step["reason"] == refusal, state
        else:
            same_step(step, told)
        if step["status"] == "ok":
            answered += 1
            given = json.dumps(blank | state | {"mode": "step"})
            again = opened().eval(f"open(page.link({given})).seconds")
            assert again == pytest.approx(told.seconds, rel=1e-9), state
        told = same_answer(request, state)
        requests += told is not None and told.feasible
    part = len(states) / 6  # enough steps and requests are answered, and enough are not
    assert part < answered < 4 * part and requests > part


def test_fleets_at_random():
    """Machines, waits and prices, with shared or separate prefill; also with drafts, copies, or too few machines."""
    choose, states = random.Random(36), []
    for state in drawn(seed=3535, n=100):
        states.append(
            state
            | {
                "changed": {}
                if "peak_16" in state["changed"]
                else state["changed"],  # slow: beyond all machines
                "request_rate": choose.choice((1e-3, 0.5, 3, 30, 200)),
                "replicas": choose.choice((None, None, 1, 40)),
                "concurrency": choose.choice((None,) * 9 + (64,)),
                "draft_tokens": choose.choice((0, 0, 3)),
                "acceptance_length": 2.5,
                "prefill_machine": choose.choice(
                    (None, None, None, "8x MI300X", f"{state['n_chips']}x {state['chip']}")
                ),
            }
        )
    body = f"return {json.dumps(states)}.map((S)=>{{const r=A.request(S);delete r.at;return r}})"
    answered, crowded = 0, 0
    for state, found in zip(states, run(body), strict=True):
        told = same_answer(found, state)
        crowded += told is not None and not told.feasible and "are enough" in told.reason
        if told is None or not told.feasible:
            continue
        answered += 1
        ends, expected = [found[name] for name in ("tokenLow", "tokenHigh", "firstLow")], told.request
        assert ends == pytest.approx([*expected.tpot_interval, expected.ttft_interval[0]], rel=1e-9), state
        assert bool(found["apart"]) == bool(told.disaggregated)
        for here, there in ((found["many"], told.fleet), (found["apart"], told.disaggregated)):
            if there:
                said = there.to_dict()
                numbers = [here[name] for name in ("n", "readers", "chips")]
                numbers += [here["readerLoad"] or 0, here["slow"]["waits"]]
                numbers += [here["state"][name] for name in ("busy", "held", "waits", "first", "token")]
                names = ("replicas", "prefill_replicas", "chips", "prefill_load", "wait_high")
                names += ("load", "running", "wait", "ttft", "tpot")
                assert numbers == pytest.approx([said[name] for name in names], rel=1e-9), state
                hour, dollars = said["usd_per_hour"], said["usd_per_million"].get("output")
                assert here["hour"] == (hour and pytest.approx(hour, rel=1e-9))
                assert here.get("million") == (dollars and pytest.approx(dollars, rel=1e-9))
                better = there.server.better_limit
                assert here["better"] == (better and pytest.approx(better, rel=1e-9))
    assert answered > 12 and crowded > 1


@from_table
def test_the_call_simulates_the_fleet_of_the_page(more):
    state = json.dumps(
        START | {"mode": "request", "request_rate": 0.3, "concurrency": None, "prices": {}} | more
    )
    found = run(f"const S={state},{{many}}=A.request(S);return {{many,line:A.simulate(S)}}")
    many, call = found["many"], found["line"].removesuffix(")") + ", requests=5)"
    told = eval(call, KNOWN).answer.fleet.to_dict()
    numbers = (told["replicas"], told["tpot"], told["usd_per_hour"], told["usd_per_million"]["output"])
    shown = (many["n"], many["state"]["token"], many["hour"], many["million"])
    assert numbers == pytest.approx(shown, rel=1e-9)


# --- What to rent ----------------------------------------------------------------------------------------------------
LOOP = {
    "prompt_tokens": 2000,
    "output_tokens": 500,
    "cached": 400,
    "tpot": 1 / 30,
    "ttft": 0.5,
    "kv_cache_dtype": "",
}
LOOPS = (
    {"model": "Llama 3.3 70B", "weights": "fp8", "usd_per_million": 2},
    {"model": "GPT-OSS 120B", "weights": "mxfp4", "layer_formats": {"attention": "bf16"}},
    {"model": "DeepSeek V3", "weights": "fp8", "sure": True},
    {"model": "zai-org/GLM-5.2", "weights": "bf16"},
)

# Memory runs full with the engine's own sequences, so decide offers fewer.
FULL = {
    "model": "Qwen3 32B", "weights": "", "kv_cache_dtype": "", "prompt_tokens": 1000, "output_tokens": 4000,
    "request_rate": 5, "tpot": 0.1, "ttft": 5, "chip": "H200", "only": "H200",
}  # fmt: skip


def to_rent(choose):
    """A question for ``decide`` with a request rate."""
    asked = {
        "model": choose.choice(("Llama 3 8B", "Llama 3.3 70B", "GPT-OSS 120B", "DeepSeek V3")),
        "weights": choose.choice(("", "fp8")), "kv_cache_dtype": "", "engine": choose.choice(("", "compiled")),
        "request_rate": choose.choice((0.02, 1, 20, 400)), "prompt_tokens": choose.choice((300, 20_000, "2k ± 50%")),
        "output_tokens": choose.choice((100, 800, "20-100-1k")), "cached": choose.choice((0, 200)),
        "shared_prefix": choose.choice((None, 150)),
        "tpot": choose.choice((None, 0.015, 0.05)), "ttft": choose.choice((None, 0.3, 2)),
        "usd_per_million": choose.choice((None, None, None, 3)),
    }  # fmt: skip
    chip = choose.choice(("H100 SXM", "H200", "B200", "A100 80GB"))
    return asked | {"only": chip, "chip": chip, "sure": choose.random() < 0.3}


def told_of_fleet(fleet):
    """A fleet of Python as the numbers that the page computes."""
    if fleet is None:
        return None
    names = "replicas prefill_replicas chips load headroom prefill_load ttft tpot usd_per_hour".split()
    said = fleet.to_dict()
    reader = fleet.prefill_machine.count if fleet.prefill_machine else 0
    return [reader, *(said[name] for name in names), fleet.max_num_seqs or 0]


def split(detail):
    """A sentence without its first number, and that number."""
    number = re.search(r"[\d,]+\.?\d*", detail)
    if number is None:
        return detail, 0
    return detail.replace(number[0], "", 1), float(number[0].replace(",", ""))


FOUND = """
const of=(f)=>!f?null:[f.readers?f.reader.at.n:0,f.n,f.readers,f.chips,f.state.busy,f.headroom,f.readerLoad,
f.state.first,f.state.token,f.hour,f.limit||0];
const cut=(o)=>({machine:[o.chip,o.n,o.layout],fleet:of(o.many),cautions:o.cautions,
numbers:[o.users,o.dollars,o.million,o.tokenLow,o.tokenHigh,o.firstLow,o.firstHigh]});
const best=r.offers[0];
return {offers:r.offers.map(cut),runners:r.runnersUp.map((o)=>o.chip),narrower:r.narrower,
misses:r.misses.map((m)=>[m.chip,m.n,m.layout,m.reason]),details:r.misses.map((m)=>m.detail),
sure:best&&best.many?best.sure===undefined?0:best.sure&&of(best.sure.many):0,
frontier:r.frontier.map((p)=>[p.chip,p.n,p.users]),points:r.points.length};
"""


def offered(one):
    """An offer of Python as the parts that the page computes."""
    r, machine = one.request, [one.system.chip.name, one.system.count, format_layout(one.layout)]
    numbers = [one.concurrency, one.dollars, r.per_million["output"], *r.tpot_interval, *r.ttft_interval]
    parts = {"machine": machine, "numbers": pytest.approx(numbers, rel=1e-8), "cautions": [*one.warnings]}
    return parts | {"fleet": one.fleet and pytest.approx(told_of_fleet(one.fleet), rel=1e-8)}


@cache
def rented():
    """Offers of the page and of the library, for closed loops and for random arrivals (``STATES`` / 8, default 5)."""
    choose, found = random.Random(77), []
    loops = [START | LOOP | more for more in LOOPS]
    fleets = [START | to_rent(choose) for _ in range(int(os.environ.get("STATES", 40)) // 8)] + [START | FULL]
    for state in loops + fleets:
        state |= {"mode": "decide", "concurrency": None, "prices": {}}
        page = run(f"const r=A.decide({json.dumps(state)});{FOUND}")
        found.append((state, page, library(state, "decide")[0]))
    return found


def test_what_to_rent_is_what_the_library_rents():
    """Machines, prefill machines, load, headroom, dollars, intervals, and offers with narrower weights."""
    for state, page, told in rented():
        assert page["offers"] == list(map(offered, told.offers)), state
        assert page["runners"] == [o.system.chip.name for o in told.runners_up]
        assert page["narrower"] == told.narrower, state
    loops, fleets = rented()[: len(LOOPS)], rented()[len(LOOPS) :]
    assert all(len(told.offers) > 10 for *_, told in loops) and any(told.narrower for *_, told in fleets)
    assert sum(len(told.offers) for *_, told in fleets) > 25


def test_the_best_offer_for_arrivals_is_sure_as_in_the_library():
    """The page looks for it only for the offer that it shows."""
    best = [(page["sure"], told.best.sure) for _, page, told in rented() if page["sure"] != 0]
    for here, there in best:
        assert here == (there and pytest.approx(told_of_fleet(there), rel=1e-8))
    assert len(best) > 4


def test_what_is_not_offered_fails_as_in_the_library():
    reasons = set()
    for state, page, told in rented():
        failed = sorted(
            (*miss, *split(detail)) for miss, detail in zip(page["misses"], page["details"], strict=True)
        )
        expected = sorted((m.chip, m.count, m.layout, m.reason, *split(m.detail)) for m in told.rejected)
        assert [each[:-1] for each in failed] == [each[:-1] for each in expected], state
        numbers = pytest.approx([each[-1] for each in expected], rel=6e-3)
        assert [each[-1] for each in failed] == numbers, state
        reasons.update(told.why_not)
    assert len(reasons) > 3


def test_the_page_has_the_frontier_of_the_library():
    for _, page, told in rented()[: len(LOOPS)]:
        frontier = told.frontier()
        line = [list(one) for one in zip(frontier.chip, frontier["count"], frontier.concurrency, strict=True)]
        assert (page["points"], page["frontier"]) == (len(told.points), line)


LONG = {"mode": "request", "prompt_tokens": 16_000, "output_tokens": 300}
STEPS = [
    START | {"mode": "step", "chip": chip, "weights": w}
    for chip in ("H100 SXM", "B200")
    for w in ("bf16", "fp8")
]


@pytest.mark.parametrize(
    "state", [*STEPS, START | {"mode": "request"}, START | LONG | {"prompt_tokens": 7000}], ids=str
)
def test_what_a_change_buys_is_asked_of_the_library(state):
    """A doubled resource, half the batch or users, and weights of fewer bits, with kernels of their own."""
    batch, seen = (
        ("batch", 4096)
        if state["mode"] == "step"
        else ("concurrency", state["prompt_tokens"] + state["output_tokens"] // 2)
    )
    changes, wider = run(f"const S={json.dumps(state)};return [A.changes(S,32,{seen}),A.wider(S,32,{seen})]")
    gains = {one["name"]: one["gain"] for one in changes}
    assert list(gains.values()) == sorted(gains.values(), reverse=True)
    asked = {name: {"weights": name[11:]} for name in gains if "weights in" in name}
    asked |= {"½ users": {batch: 16}, "2 × chips": {"n_chips": 16}}
    told, *others = (library(state | change, state["mode"])[0] for change in ({}, *asked.values()))
    assert told.narrower.keys() == {name[11:] for name in gains if "weights in" in name}
    after = {name: told.seconds / one.seconds for name, one in zip(asked, others, strict=True)}
    after |= {javascript._IN_WORDS[name]: gain for name, gain in told.speedup_if_doubled.items()}
    assert {name: gains[name] for name in after} == pytest.approx(after, rel=1e-9)
    assert (wider,) == told.notes or not (wider or told.notes)


LOADS = {
    ("step", 4096): {"batch": 32, "context": 4096},
    ("request", 4096 + 512 / 2): {"prompt_tokens": 4096, "output_tokens": 512, "concurrency": 32},
}


@pytest.mark.parametrize(("mode", "context"), LOADS)
@pytest.mark.parametrize("target", [{"tpot": 0.010}, {"usd_per_million": 3.0, "electricity": 0.5}])
def test_what_must_change_is_what_the_library_says(target, mode, context):
    load = LOADS[mode, context]
    told = change("Llama 3 70B", "8x H100", **load, **target)
    goal = f"s<={target['tpot']}" if "tpot" in target else f"c<={target['usd_per_million']}"
    state = json.dumps(START | load | target | {"mode": mode})
    found = run(f"return A.needed({state},32,{context},(s,c)=>{goal})")
    by = {f["name"]: f["factor"] and (1 / f["factor"] if f["less"] else f["factor"]) for f in found}
    for each in told.changes:
        if each.resource != "chips":
            assert by[each.resource] == (each.factor and pytest.approx(each.factor, rel=1e-6)), each.resource


def test_every_model_is_answered_and_neighbours_are_rows_of_the_measurements():
    assert not tables.models()[1], "models that the page leaves out"
    near = run(f"return A.neighbours({json.dumps(START)},32,4096,5)")
    assert near[0]["model"] == "Llama 3 70B" and near[0]["chip"] == "H100 SXM"
    assert all(row["url"].startswith("https://") for row in near)
    known = measured.load()
    row = known[(known.model == "Llama 3 70B") & (known.hardware == "H100 SXM")]
    assert near[0]["seconds"] in [pytest.approx(v, rel=1e-3) for v in row.tpot]


# --- A model that a link brings ------------------------------------------------------------------------------------
# The page without a browser: controls that hold values, and parts that hold text.
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


def same_as_linked(told, rel=1e-6):
    """Return whether a link holds a question; if so, assert that page and copied call answer it alike."""
    try:
        address = told.link
    except ValueError as refusal:
        assert str(refusal).startswith("no link holds ")
        return False
    found = json.loads(opened().eval(f"JSON.stringify(open({json.dumps(address.partition('#')[2])}))"))
    assert "call" in found, (address, found)
    answers = [told]
    if "config.json" not in found["call"] and "trace" not in found["call"]:
        answers.append(eval(found["call"], KNOWN))
    for one in answers:
        best = one.best if hasattr(one, "offers") else None
        if best:
            assert (best.system.chip.name, best.system.count) == (found["chip"], found["n"])
            numbers = best.request.tpot, best.row()["usd_per_million_output"]
        elif one.feasible:
            numbers = one.seconds, one.usd_per_million
        else:
            assert one.reason in html.unescape(found["head"])
            continue
        assert (found["seconds"], found["cost"]) == pytest.approx(numbers, rel=rel), found
    return True


@pytest.mark.parametrize(("name", "beside", "pair", "linked"), OPTIONS)
def test_a_link_and_a_copied_call_ask_what_was_asked_or_are_refused(name, beside, pair, linked):
    """A link holds a hundred prompts for the two thousand of a file, so the answer is nearly the same."""
    value = pair[0] if name in SLO.names() else pair[1]
    assert same_as_linked(answered(beside, **{name: value}), 0.02 if name == "trace" else 1e-6) == linked


# Arguments of a call that are not fields of a question.
@pytest.mark.parametrize(("work", "more", "linked"), lines("linked"))
def test_what_a_link_holds_of_prices_chips_and_layouts(work, more, linked):
    assert same_as_linked(answered(WORK[work], **json.loads(more))) == (linked == "yes")


def test_a_link_of_a_run_and_its_copied_call_check_the_same():
    said = {
        "mode": "check",
        "machine": "8x H100",
        "command": "vllm serve meta-llama/Llama-3.3-70B-Instruct -tp 8",
    }
    said["measured"] = "TPOT 45 ms, TTFT 170 ms,\n32 users, prompt 1000, output 300"
    found = json.loads(
        opened().eval(f"JSON.stringify(open({json.dumps('#ask?' + urlencode(said, quote_via=quote))}))")
    )
    told = eval(found["call"], KNOWN)
    assert told.outside == ("tpot", "ttft") and "Outside" in found["head"]


def test_what_to_rent_for_a_file_of_requests_travels_in_a_link():
    asked = {"weights": "fp8", "trace": TRACES / "azure_conv.csv", "tpot": "18 ms", "chips": "H100"}
    assert same_as_linked(decide("Llama 3.3 70B", **asked), 0.02)


@pytest.mark.parametrize("name", [*catalog.served(), "Llama 3 70B", "GPT-OSS 120B"])
def test_a_model_in_a_link_is_answered_as_the_library_reads_it(name):
    """With the mixed formats of its checkpoint, and the measured errors of its kind of attention."""
    model = catalog.load_model(name).replace(name="of a reader")
    assert same_as_linked(ask(Question(model, "16x H200", batch=32, context=4096)))


def test_a_changed_chip_travels_by_its_numbers():
    chip = catalog.load_chip("H200").replace(memory_bandwidth=6e12)
    assert same_as_linked(ask("Qwen3 32B", System(chip, 8), **SERVED, layer_formats="attention=bf16"))


@from_table
def test_a_field_that_cannot_be_read_says_what_is_allowed(said, told):
    found = opened().eval(f"open('#ask?mode=step&machine=8x%20H100&{said}').head")
    assert told.lower() in html.unescape(found).lower()


@from_table
def test_an_empty_field_is_what_python_takes_where_nothing_is_given(name):
    told = ask("Llama 3 70B", "8x H100")
    asked = f"#ask?mode=step&machine=8x%20H100&{name}="
    assert opened().eval(f"open('{asked}').seconds") == pytest.approx(told.seconds, rel=1e-9)


@from_table
def test_a_number_is_shown_in_few_digits(name, value, told):
    assert run(f"return A.told('{name}',{json.dumps(value)})") == told


def test_300_a_minute_are_5_a_second():
    assert run("return A.read('request_rate','300/min')") == 5


def test_a_small_memory_is_not_called_0_gb():
    reason = "needs 142 GB, but 1 × Groq LPU has 0.23 GB"
    assert ask("Llama 3 70B", "1x Groq LPU").step.reason == reason
    assert page("step", chip="Groq LPU", n_chips=1, batch=1)["reason"] == reason


@from_table
def test_a_damaged_model_in_a_link_is_refused(damage):
    """Whichever part is not a number or a list of numbers, the page never throws."""
    (own,) = parse_qs(ask("Llama 3 8B", "H100", weights=4.85).link.partition("#ask?")[2])["own"]
    own = json.loads(own)
    for name in own:
        for spoiled in ({**own, name: damage}, {**own, name: [damage]}):
            for mode in ("step", "request"):
                said = f"#ask?mode={mode}&machine=8x%20H100&own={json.dumps(spoiled)}"
                found = json.loads(opened().eval(f"JSON.stringify(open({json.dumps(said)}))"))
                assert "[object" not in found["head"]


def test_kinds_of_layers_have_names_of_their_own():
    names = [permalink.kind(part, javascript.names_of(part)) for part in tables.kinds()]
    assert len(set(names)) == len(names)


# --- The form --------------------------------------------------------------------------------------------------------
def test_every_field_of_a_question_and_a_promise_is_on_the_page_or_left_out_by_name():
    every = [*Question.names(), *SLO.names()]
    assert [name for name in every if name not in fields.LEFT_OUT] == list(fields.declared())
    assert set(fields.LEFT_OUT) < set(every)
    for name, modes in fields.modes().items():
        assert name not in STEP or not {"request", "decide"} & set(modes)
        assert name not in (*REQUEST, *SERVING) or "step" not in modes


# --- The page --------------------------------------------------------------------------------------------------------
def test_no_line_of_a_script_is_longer_than_a_screen():
    lines = [line for path in (ROOT / "book").rglob("*.js") for line in path.read_text("utf-8").splitlines()]
    assert max(map(len, lines)) <= 110
