"""The instrument: what its page answers is what the library answers, refusals and cautions included."""

import html
import json
import os
import random
import re
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs, quote, urlencode

import pytest
from py_mini_racer import MiniRacer

import inferlib
import tokenprice
from book import measured
from book.calculator import fields, javascript, page as calculator_page, tables
from inferlib import catalog
from inferlib.system import System
from tokenprice import SLO, Question, ask, change, decide, permalink, terminal
from tokenprice.change import speedup_if_doubled
from tokenprice.formatting import format_layout
from tokenprice.parsing import Mean
from tokenprice.question import REQUEST, STEP

ROOT = Path(__file__).parents[1]
TRACES = ROOT / "book" / "measured" / "traces"
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
    """What a piece of JavaScript returns, beside the functions of the page."""
    return json.loads(engine().eval(f"JSON.stringify((()=>{{{body}}})())"))


def page(call, **state):
    """An answer of the page: ``A.step`` or ``A.request`` of a state."""
    given = json.dumps({**START, **state})
    more = ",S.batch,S.context" if call == "step" else ""
    return run(f"const S={given},r=A.{call}(S{more});delete r.at;return r")


KNOWN = {"tokenprice": tokenprice, "inferlib": inferlib}


def library(state, mode="request"):
    """What the Python answers that the page copies, or the text of its refusal."""
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
    """Questions at random that somebody could ask: all models, chips, layouts and formats."""
    choose = random.Random(seed)
    models, chips = list(tables.models()[0]), catalog.chips()
    for _ in range(n):
        count = choose.choice((1, 2, 4, 8, 8, 16, 32, 64, 72, 12))
        tp = choose.choice([d for d in range(1, count + 1) if count % d == 0])
        model, rest = choose.choice(models), count // tp
        spread = f"PP{rest} x TP{tp}", f"DP{rest} TP{tp}"
        if catalog.load_model(model).sparse:
            spread = f"DP{rest} x TP{tp} with EP{count}", f"TP{count} EP{count}", *spread
        prompt = choose.choice((100, 1000, 4096, 20_000, 100_000))
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
            "context": choose.randrange(1, 40_000),
            "concurrency": choose.choice((1, 7, 64, 300)),
            "prompt_tokens": prompt,
            "output_tokens": choose.choice((1, 300, 2000)),
            "cached": choose.choice((0, prompt // 2)),
            "memory_utilization": choose.choice((None, None, 0.8, 1)),
            "changed": choose.choice(
                ({}, {}, {"memory_bandwidth": 5e12}, {"peak_16": 1e12, "peak_fp8": 3e15})
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
    """The page's answer to a request beside the library's: its refusal, why it does not fit, or its numbers."""
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
    """A hundred and fifty, or as many as ``STATES`` says: what an hour costs and mixed formats included."""
    states = list(drawn(seed=2026, n=int(os.environ.get("STATES", 150))))
    both = "[A.step(S,S.batch,S.context),A.request(S)].map((r)=>{delete r.at;return r})"
    answered, requests = 0, 0
    found = run(f"return {json.dumps(states)}.map((S)=>{both})")
    for state, (step, request) in zip(states, found, strict=True):
        told, refusal = library(state, "step")
        if refusal:
            assert step["status"] == "n/a" and step["reason"] == refusal, state
        else:
            same_step(step, told)
        answered += step["status"] == "ok"
        told = same_answer(request, state)
        requests += told is not None and told.feasible
    quarter = len(states) / 4  # of both kinds are answered, and as many are not
    assert quarter < answered < 3 * quarter and requests > quarter


def test_fleets_at_random():
    """Machines, waits and prices, shared and apart; with drafts, copies, a number of machines that is too small."""
    choose, states = random.Random(35), []
    for state in drawn(seed=3535, n=90):
        states.append(
            state
            | {
                "changed": {}
                if "peak_16" in state["changed"]
                else state["changed"],  # slow: beyond all machines
                "request_rate": choose.choice((1e-3, 0.5, 3, 30, 200)),
                "replicas": choose.choice((None, None, 1, 40)),
                "concurrency": choose.choice((None, None, 64)),
                "draft_tokens": choose.choice((0, 0, 3)),
                "acceptance_length": 2.5,
                "prefill_machine": choose.choice(
                    (None, None, "8x H200", f"{state['n_chips']}x {state['chip']}")
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
    assert answered > 20 and crowded > 1


MIXES = (
    ("2k ± 50%", "500 ± 50%", "30%"),
    ("100-2k-16k", 500, 0),
    (2000, "20-50-4k", 100),
    ("1k-3k", "9-90", 50),
)
LOADS = (
    {"concurrency": 300},
    {"request_rate": 3},
    {"request_rate": 30, "prefill_machine": "16x H100"},
    {"request_rate": 9, "draft_tokens": 3},
)


@pytest.mark.parametrize("lengths", MIXES)
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("more", [{}, {"model": "DeepSeek V3", "chip": "H200", "layout": "DP8 EP8"}])
def test_lengths_that_differ_are_answered_as_in_python(lengths, load, more):
    state = START | {"concurrency": None, "weights": "fp8", "acceptance_length": 2.5} | more | load
    state |= dict(zip(("prompt_tokens", "output_tokens", "cached"), lengths, strict=True))
    assert same_answer(page("request", **state), state).feasible


def test_a_cache_above_the_shortest_prompt_is_refused_in_the_same_words():
    state = START | {"concurrency": 8, "prompt_tokens": "100-2k-16k", "output_tokens": 500, "cached": 500}
    refusal = library(state)[1]
    assert "below the shortest prompt" in refusal and refusal.endswith(page("request", **state)["reason"])


@pytest.mark.parametrize("name", ["azure_code", "azure_conv", "mooncake_conversation"])
def test_a_file_of_requests_in_a_link_is_answered_as_in_python(name):
    """A hundred prompts stand for two thousand: so it is nearly the same."""
    told = ask("Llama 3.3 70B", "8x B200", weights="fp8", trace=TRACES / f"{name}.csv")
    given = of_link(told)[1]
    state = {
        "chip": "B200",
        "weights": "fp8",
        "kv_cache_dtype": "",
        "concurrency": None,
        "replicas": told.fleet.replicas,
    }
    state |= {"mix": json.loads(given["mix"]), "request_rate": float(given["request_rate"])}
    found = page("request", **state | {"model": given["model"]})
    numbers = [found["many"][which][what] for which in ("state", "slow") for what in ("token", "first")]
    numbers += [found["many"]["hour"], found["request"]]
    assert tuple(found["remarks"]) == told.notes
    many = told.fleet
    expected = [getattr(end, what) for end in (many.estimate, many.slow_end) for what in ("tpot", "ttft")]
    expected += [many.dollars_per_hour, told.request.dollars]
    assert numbers == pytest.approx(expected, rel=0.02)


def test_what_to_rent_for_a_file_of_requests_travels_in_a_link(capsys):
    words = {"weights": "fp8", "trace": str(TRACES / "azure_conv.csv"), "tpot": "30 ms", "chips": "H100"}
    told = decide("Llama 3.3 70B", **words).best
    line = [part for name, word in words.items() for part in (f"--{name}", word)]
    assert terminal.main(["decide", "Llama 3.3 70B", *line, "--link"]) == 0
    given = parse_qs(capsys.readouterr().out.strip().partition("#ask?")[2])
    assert given["mode"] == ["decide"] and given["tpot"] == ["0.03"]
    state = {
        "model": given["model"][0],
        "weights": "fp8",
        "kv_cache_dtype": "",
        "prices": {},
        "concurrency": None,
        "tpot": 0.03,
    }
    state |= {
        "only": given["chips"][0],
        "mix": json.loads(given["mix"][0]),
        "request_rate": float(given["request_rate"][0]),
    }
    found = run(f"const {{many}}=A.decide({json.dumps(START | {'mode': 'decide'} | state)}).best;return many")
    assert (found["n"], found["readers"]) == (told.fleet.replicas, told.fleet.prefill_replicas)
    assert found["hour"] == pytest.approx(told.fleet.dollars_per_hour)


@pytest.mark.parametrize(
    "more",
    [
        {"cached": 1000, "replicas": 3},
        {"model": "DeepSeek V3", "chip": "H200", "layout": "DP8 EP8", "weights": "fp8"},
        {"draft_tokens": 3, "acceptance_length": 2.5, "price": 2.25, "engine": "compiled"},
    ],
)
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


def test_the_call_of_what_to_rent_promises_percentiles():
    state = START | {
        "mode": "decide",
        "request_rate": 20,
        "tpot": 0.02,
        "ttft": 1.5,
        "only": "H200",
        "sure": True,
        "prices": {"H200": 3.25},
        "weights": "",
        "kv_cache_dtype": "",
    }
    assert run(f"return A.percentiles({json.dumps(state)})") == (
        'tokenprice.decide("Llama 3 70B", prompt_tokens=4096, output_tokens=512, request_rate=20, chips="H200", '
        'sure=True, tpot_p99="50 tokens/s", ttft_p99=1.5, prices={"H200":3.25})'
    )


def test_a_chip_without_a_list_price_has_no_cost_but_for_a_price_of_ones_own():
    assert page("step", chip="H800")["dollars"] is None
    assert "million" not in page("request", chip="H800")
    assert page("step", chip="H800", price=2.0)["dollars"] > 0
    assert page("step", chip="H800", prices={"H800": 2.0})["dollars"] > 0
    assert page("step", chip="H100 SXM", price=None)["dollars"] == page("step")["dollars"]


# --- What to rent ----------------------------------------------------------------------------------------------------
LOOP = {
    "prompt_tokens": 2000,
    "output_tokens": 500,
    "cached": 400,
    "tpot": 1 / 30,
    "ttft": 1.5,
    "kv_cache_dtype": "",
}
LOOPS = (
    {"model": "Llama 3.3 70B", "weights": "fp8"},
    {"model": "GPT-OSS 120B", "weights": "mxfp4", "layer_formats": {"attention": "bf16"}},
    {"model": "DeepSeek V3", "weights": "fp8", "sure": True},
    {"model": "zai-org/GLM-5.2", "weights": "bf16"},
)


def to_rent(choose):
    """A question of what to rent for arrivals."""
    asked = {
        "model": choose.choice(("Llama 3 8B", "Llama 3.3 70B", "GPT-OSS 120B", "DeepSeek V3")),
        "weights": choose.choice(("", "fp8")), "kv_cache_dtype": "", "engine": choose.choice(("", "compiled")),
        "request_rate": choose.choice((0.02, 1, 20, 400)), "prompt_tokens": choose.choice((300, 20_000, "2k ± 50%")),
        "output_tokens": choose.choice((100, 800, "20-100-1k")), "cached": choose.choice((0, 200)),
        "tpot": choose.choice((None, 0.015, 0.05)), "ttft": choose.choice((None, 0.3, 2)),
        "usd_per_million": choose.choice((None, None, None, 3)),
    }  # fmt: skip
    chip = choose.choice(("H100 SXM", "H200", "B200", "A100 80GB"))
    return asked | {"only": chip, "chip": chip, "sure": choose.random() < 0.3}


def told_of_fleet(fleet):
    """A fleet of Python in the numbers that the page has of one."""
    if fleet is None:
        return None
    names = "replicas prefill_replicas chips load headroom prefill_load ttft tpot usd_per_hour".split()
    said = fleet.to_dict()
    return [fleet.prefill_machine.count if fleet.prefill_machine else 0, *(said[name] for name in names)]


def split(detail):
    """A sentence without its first number, and that number."""
    number = re.search(r"[\d,]+\.?\d*", detail)
    if number is None:
        return detail, 0
    return detail.replace(number[0], "", 1), float(number[0].replace(",", ""))


FOUND = """
const of=(f)=>!f?null:[f.readers?f.reader.at.n:0,f.n,f.readers,f.chips,f.state.busy,f.headroom,f.readerLoad,
f.state.first,f.state.token,f.hour];
const cut=(o)=>({chip:o.chip,n:o.n,layout:o.layout,fleet:of(o.many),sure:o.sure===undefined?0:o.sure&&of(o.sure.many),
numbers:[o.users,o.dollars,o.million,o.tokenLow,o.tokenHigh,o.firstLow,o.firstHigh],cautions:o.cautions,
own:[o.speed,o.first,o.dollars/o.factor,o.dollars*o.factor]});
return {offers:r.offers.map(cut),misses:r.misses,runners:r.runnersUp.map((o)=>o.chip),points:r.points.length,
frontier:r.frontier.map((p)=>[p.chip,p.n,p.users]),more:r.narrower};
"""


@cache
def rented():
    """What the page offers, and the library: to loops of users, and for arrivals at random, as many as STATES says."""
    choose, found = random.Random(77), []
    loops = [START | LOOP | more for more in LOOPS]
    fleets = [START | to_rent(choose) for _ in range(int(os.environ.get("STATES", 150)) // 8)]
    for state in loops + fleets:
        state |= {"mode": "decide", "concurrency": None, "prices": {}}
        page = run(f"const r=A.decide({json.dumps(state)});{FOUND}")
        found.append((state, page, library(state, "decide")[0]))
    return found


def offered():
    """Each offer of the page beside that of the library; the question of both."""
    for state, page, told in rented():
        yield from ((state, here, there) for here, there in zip(page["offers"], told.offers, strict=True))


def loops():
    """What is offered to users who ask again, by the page and by the library."""
    return [(page, told) for _, page, told in rented()[: len(LOOPS)]]


def test_what_to_rent_is_what_the_library_rents():
    offers = []
    for state, page, told in rented():
        plain = [(o.system.chip.name, o.system.count, format_layout(o.layout)) for o in told.offers]
        assert [(o["chip"], o["n"], o["layout"]) for o in page["offers"]] == plain, state
        assert page["runners"] == [o.system.chip.name for o in told.runners_up]
        offers.append(len(plain))
    assert min(offers[: len(LOOPS)]) > 10 and sum(offers[len(LOOPS) :]) > 30


def test_offers_have_the_numbers_of_the_library():
    """Machines, who reads the prompts, load, room, dollars and intervals."""
    for state, here, there in offered():
        r = there.request
        expected = (
            there.concurrency,
            there.dollars,
            r.per_million["output"],
            *r.tpot_interval,
            *r.ttft_interval,
        )
        assert here["numbers"] == pytest.approx(expected, rel=1e-8), state
        fleet = told_of_fleet(there.fleet)
        assert here["fleet"] == (fleet and pytest.approx(fleet, rel=1e-8)), state
        assert tuple(here["cautions"]) == there.warnings


def test_offers_to_a_loop_have_the_interval_of_the_library():
    for page, told in loops():
        for here, there in zip(page["offers"], told.offers, strict=True):
            r = there.request
            expected = there.speed, r.ttft, *(r.dollars * end for end in r.price_interval)
            assert here["own"] == pytest.approx(expected, rel=1e-9)


def test_the_best_offer_for_arrivals_is_sure_as_in_the_library():
    """The page asks it of what it shows."""
    best = [(page["offers"][0]["sure"], told.best.sure) for _, page, told in rented() if told.offers]
    asked = [(here, there) for here, there in best if here != 0]
    for here, there in asked:
        assert here == (there and pytest.approx(told_of_fleet(there), rel=1e-8))
    assert len(asked) > 5


def test_the_page_says_what_fewer_bits_rent_for():
    said = [(state, page["more"], told) for state, page, told in rented()]
    for state, more, told in said:
        assert more == told.narrower, state
    assert any(more for state, more, _ in said if state.get("request_rate"))


def test_what_is_not_offered_fails_as_in_the_library():
    reasons = set()
    for state, page, told in rented():
        failed = sorted(
            (m["chip"], m["n"], m["layout"], m["reason"], *split(m["detail"])) for m in page["misses"]
        )
        expected = sorted((m.chip, m.count, m.layout, m.reason, *split(m.detail)) for m in told.rejected)
        assert [each[:-1] for each in failed] == [each[:-1] for each in expected], state
        assert [each[-1] for each in failed] == pytest.approx([each[-1] for each in expected], rel=6e-3), (
            state
        )
        reasons.update(told.why_not)
    assert len(reasons) > 3


def test_the_page_has_the_frontier_of_the_library():
    for page, told in loops():
        frontier = told.frontier()
        line = [list(one) for one in zip(frontier.chip, frontier["count"], frontier.concurrency, strict=True)]
        assert (page["points"], page["frontier"]) == (len(told.points), line)


def question(name="Llama 3 70B", n=8, batch=32, context=4096):
    return Question(name, f"{n}x H100", batch=batch, context=context)


def test_what_a_change_buys_is_asked_of_the_library():
    gains = {g["name"]: g["gain"] for g in run(f"return A.changes({json.dumps(START)},32,4096)")}
    before = ask(question()).seconds
    after = {"2 × chips": question(n=16), "½ users": question(batch=16)}
    expected = {name: before / ask(asked).seconds for name, asked in after.items()}
    told = {javascript._IN_WORDS[name]: gain for name, gain in speedup_if_doubled(question()).items()}
    assert {name: gains[name] for name in expected | told} == pytest.approx(expected | told, rel=1e-9)
    assert list(gains.values()) == sorted(gains.values(), reverse=True)


@pytest.mark.parametrize("mode", ["step", "request"])
@pytest.mark.parametrize("weights", ["bf16", "fp8", "int4"])
@pytest.mark.parametrize("chip", ["H100 SXM", "H200", "B200"])
def test_weights_of_fewer_bits_are_asked_as_the_questions_that_they_are(chip, weights, mode):
    """What half the bytes promise no format keeps: its own kernels start later, at times later than 16 bits end."""
    state = START | {"chip": chip, "weights": weights, "mode": mode, "layer_formats": {}}
    seen = 4096 + (mode == "request") * 256
    changes, wider = run(f"const S={json.dumps(state)};return [A.changes(S,32,{seen}),A.wider(S,32,{seen})]")
    gains = {
        one["name"].removeprefix("weights in "): one["gain"] for one in changes if "weights" in one["name"]
    }
    told, _ = library(state, mode)
    asked = {"bf16": ("fp8", "int4"), "fp8": ("int4",), "int4": ()}[weights]
    assert gains == pytest.approx(
        {w: told.seconds / library(state | {"weights": w}, mode)[0].seconds for w in asked}
    )
    assert told.narrower == pytest.approx(gains) and (not gains or "Fewer bits" in str(told))
    assert (wider,) == told.notes or not (wider or told.notes)
    same = next(one["gain"] for one in changes if one["name"] == "half the bytes, same kernels")
    assert mode == "request" or all(same > gain for gain in gains.values())  # fp8 reads prompts faster, too


def test_a_request_waits_for_prompts_of_others_and_a_change_says_what_that_buys():
    """A long prompt for a short answer: others' prompts are most of a token, and the arithmetic is what they need."""
    state = START | {"mode": "request", "prompt_tokens": 16_000, "output_tokens": 300, "concurrency": 32}
    found, changes = run(f"const S={json.dumps(state)};return [A.request(S),A.changes(S,32,16150)]")
    told, _ = library(state)
    assert found["binding"] == told.bottleneck == "prompts of others"
    # 31 others, less those for whom one waits before the first token
    assert 28 / 300 < found["others"] / found["reading"] < 31 / 300
    gains = {change["name"]: change["gain"] for change in changes}
    assert gains["2 × arithmetic"] > 1.2 > gains["2 × memory speed"]
    fewer = found["token"] / library(state | {"concurrency": 16})[0].seconds
    expected = {javascript._IN_WORDS[name]: gain for name, gain in told.speedup_if_doubled.items()} | {
        "½ users": fewer
    }
    assert {name: gains[name] for name in expected} == pytest.approx(expected, rel=1e-9)
    half = found["token"] / 2  # asked of the request, not of its step
    needed = run(f"return A.needed({json.dumps(state)},32,16150,(s)=>s<={half})")
    users = next(one["factor"] for one in needed if "fewer users" in one["name"])
    assert ask(told.question.replace(concurrency=Mean(32 / users))).seconds == pytest.approx(half, rel=1e-6)


@pytest.mark.parametrize("target", [{"tpot": 0.010}, {"usd_per_million": 3.0}])
def test_what_must_change_is_what_the_library_says(target):
    told = change(question(), **target)
    goal = f"s<={target['tpot']}" if "tpot" in target else f"c<={target['usd_per_million']}"
    found = run(f"return A.needed({json.dumps(START)},32,4096,(s,c)=>{goal})")
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
def of_link(answer):
    """The address of an answer's question, taken apart: the path of the page, and the words of each field."""
    path, _, pairs = answer.link.partition("#ask?")
    return path, {name: words[0] for name, words in parse_qs(pairs).items()}


@pytest.mark.parametrize("name", [*catalog.served(), "Llama 3 70B", "GPT-OSS 120B"])
def test_a_model_in_a_link_is_answered_as_the_library_reads_it(name):
    """Mixed formats of its checkpoint included, and what measurements say of its kind."""
    model = catalog.load_model(name).replace(name="of a reader")
    question = Question(model, "16x H200", batch=32, context=4096)
    path, told = of_link(ask(question))
    assert path == "calculator.html" and told["machine"] == "16x H200" and "model" not in told
    state = {
        "own": json.loads(told["own"]),
        "chip": "H200",
        "n_chips": 16,
        "weights": "",
        "kv_cache_dtype": "",
    }
    same_step(page("step", **state), ask(question))


def test_a_model_of_the_catalogue_stands_in_a_link_by_its_name_and_a_changed_chip_by_its_numbers():
    chip = catalog.load_chip("H200").replace(memory_bandwidth=6e12)
    question = Question(
        "Qwen3 32B",
        System(chip, 8),
        prompt_tokens=2000,
        output_tokens=300,
        concurrency=8,
        layer_formats="attention=bf16",
    )
    expected = {"mode": "request", "model": "Qwen3 32B", "machine": "8x H200", "memory_bandwidth": "6.0"}
    expected |= {
        "prompt_tokens": "2000",
        "output_tokens": "300",
        "concurrency": "8",
        "layer_formats": "attention=bf16",
    }
    assert of_link(ask(question))[1] == expected


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
    """A JavaScript engine in which the page stands, and ``open(hash)`` follows a link."""
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


LOOP, FLEET = (
    {"prompt_tokens": 1000, "output_tokens": 100},
    {"prompt_tokens": 1000, "output_tokens": 100, "request_rate": 5},
)
BOX = ("Llama 3 8B", "1x B200")
# Every option of a verb, beside what it needs.
ASKED = (
    {},
    {"batch": 8},
    {"context": "8k"},
    {"layout": "TP1"},
    {"weights": "fp8"},
    {"kv_cache_dtype": "fp8"},
    {"weights": 4.85},
    {"layer_formats": "attention=fp8"},
    {"engine": "vllm"},
    {"memory_utilization": "80%"},
    {"draft_tokens": 2, "acceptance_length": 2.2},
    {"price": 3},
    {"price": "2-4"},
    {"price": 2, "price_max": 4},
    {"electricity": 0.1, "pue": 1.3},
    {"paid_hours_used": "40%"},
    {"prices": {"B200": 3}},
    {"prices": {"B200": [2, 4]}},
    LOOP,
    LOOP | {"concurrency": 8},
    LOOP | {"engine": "sglang"},
    FLEET | {"engine": "sglang"},
    LOOP | {"cached": "50%"},
    LOOP | {"requests_per_user": 3},
    LOOP | {"fixed_lengths": True},
    LOOP | {"batching_wait_iters": 4},
    LOOP | {"max_num_batched_tokens": "2k"},
    LOOP | {"max_num_seqs": 64},
    LOOP | {"prefill_machine": "1x H200", "prefill_replicas": 2},
    FLEET | {"order": "prefill first"},
    FLEET | {"router": "round robin"},
    FLEET | {"dp_balance": 50},
    FLEET,
    LOOP | {"prefill_machine": "1x H200"},
    FLEET | {"prefill_machine": "1x H200"},
    FLEET | {"replicas": 3},
    FLEET | {"max_num_seqs": 9},
    FLEET | {"prefill_machine": "1x H200", "prices": {"H200": 3}},
    FLEET | {"prefill_machine": "1x B200", "prices": {"B200": 3}},
    {"prompt_tokens": "2k ± 50%", "output_tokens": "50-100-400"},
)
SOUGHT = (
    {"tpot": "50/s"}, {"tpot": "50/s", "ttft": "1s"}, {"ttft": "80 ms"}, {"usd_per_million": "$2"},
    {"tpot": "9 ms", "sure": True}, {"prices": {"H200": 0.5}}, {"prices": {"H200": [0.5, 9]}}, {"chips": "H100"},
    {"chips": ["H100"]}, {"chips": ["H100", "B200"]}, {"counts": [4]}, {"layouts": "TP1"}, {"request_rate": 5},
    {"request_rate": 5, "tpot_p99": "20 ms"}, {"request_rate": 5, "ttft_p99": "2 s"}, {"weights": "fp8"},
    {"concurrency": 5}, {"request_latency": "5 s"},
)  # fmt: skip


def same_as_linked(told):
    """Whether a link holds a question; then the page, and the call that it copies, answer it alike."""
    try:
        address = told.link
    except ValueError as refusal:
        assert str(refusal).startswith("no link holds ")
        return False
    found = json.loads(opened().eval(f"JSON.stringify(open({json.dumps(address.partition('#')[2])}))"))
    assert "call" in found, (address, found)
    answers = [told]
    if "config.json" not in found["call"]:
        answers.append(eval(found["call"], KNOWN))
    for one in answers:
        best = one.best if hasattr(one, "offers") else one
        chip, n = (
            (best.system.chip.name, best.system.count) if best is not one else (found["chip"], found["n"])
        )
        seconds = best.request.tpot if best is not one else best.seconds
        cost = best.row()["usd_per_million_output"] if best is not one else best.usd_per_million
        assert (chip, n) == (found["chip"], found["n"]), found
        assert (found["seconds"], found["cost"]) == pytest.approx((seconds, cost), rel=1e-6), found
    return True


@pytest.mark.parametrize("options", ASKED, ids=str)
def test_a_link_and_a_copied_call_ask_what_was_asked_or_are_refused(options):
    left = {
        "requests_per_user",
        "fixed_lengths",
        "batching_wait_iters",
        "max_num_batched_tokens",
        "max_num_seqs",
        "order",
        "router",
        "dp_balance",
        "price_max",
    } & set(options)
    ranges = options.get("price") == "2-4" or isinstance(options.get("prices", {}).get("B200"), list)
    unread = "prefill_machine" in options and "request_rate" not in options
    assert same_as_linked(ask(*BOX, **options)) == (not left and not ranges and not unread)


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
    assert told.outside == ("tpot", "ttft") and "Outside" in found["head"] and "2.54 ×" in found["head"]


@pytest.mark.parametrize("options", SOUGHT, ids=str)
def test_a_link_of_what_to_rent_looks_for_the_same_or_is_refused(options):
    travels = same_as_linked(decide("Llama 3 8B", **LOOP | options))
    left_out = {"counts", "layouts", "tpot_p99", "ttft_p99", "request_latency", "concurrency"} & set(options)
    ranged = options.get("chips") == ["H100", "B200"] or options.get("prices") == {"H200": [0.5, 9]}
    assert travels == (not left_out and not ranged)


def test_every_option_is_linked():
    tried = {name for options in (*ASKED, *SOUGHT) for name in options} | {"model", "machine", "trace"}
    assert tried >= {*Question.names(), *SLO.names(), "prices", "chips", "counts", "layouts", "sure"}


@pytest.mark.parametrize("damage", [True, None, {}, [], "x", -1])
def test_a_damaged_model_in_a_link_is_refused(damage):
    """Whatever part of it is no number or list of numbers: the page never throws."""
    own = json.loads(of_link(ask("Llama 3 8B", "H100", weights=4.85))[1]["own"])
    for name in own:
        for spoiled in ({**own, name: damage}, {**own, name: [damage]}):
            for mode in ("step", "request"):
                said = f"#ask?mode={mode}&machine=8x%20H100&own={json.dumps(spoiled)}"
                found = json.loads(opened().eval(f"JSON.stringify(open({json.dumps(said)}))"))
                assert "[object" not in found["head"]


def test_the_terminal_prints_the_link(capsys, tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(catalog._served()["Qwen/Qwen3-32B"]["config"]))
    assert terminal.main(["ask", str(file), "8x H100", "--link"]) == 0
    assert capsys.readouterr().out.startswith(
        "calculator.html#ask?mode=step&batch=1&machine=8x%20H100%20SXM&own=%7B"
    )


def test_kinds_of_layers_have_names_of_their_own():
    names = [permalink.kind(part, javascript.names_of(part)) for part in tables.kinds()]
    assert len(set(names)) == len(names)


# --- The form --------------------------------------------------------------------------------------------------------
def test_every_field_of_a_question_and_a_promise_is_on_the_page_or_left_out_by_name():
    every = [*Question.names(), *SLO.names()]
    assert [name for name in every if name not in fields.LEFT_OUT] == list(fields.declared())
    assert set(fields.LEFT_OUT) < set(every)
    text, (_, blocks) = calculator_page.Instrument()._repr_html_(), fields.blocks()
    for name in set(fields.declared()) - set(blocks):
        assert f'for="ask-{name}"' in text and html.escape(fields.declared()[name]["help"]) in text
    for name, modes in fields.modes().items():
        assert name not in STEP or not {"request", "decide"} & set(modes)
        assert name not in REQUEST or "step" not in modes


# --- The page --------------------------------------------------------------------------------------------------------
def test_the_page_has_labels_for_all_that_can_be_set_and_is_light_enough():
    text = calculator_page.Instrument()._repr_html_()
    assert len(text) < 500_000
    for control in "model chip n_chips layout weights kv_cache_dtype engine batch context price".split():
        assert f'data-key="{control}"' in text and f'for="ask-{control}"' in text
    assert "80 %)" in text, "without JavaScript the first answer stands there"


def test_the_scripts_hold_no_formula_and_no_line_longer_than_a_screen():
    # constants of the model stand in its files: none of their numbers, and no rate of dollars, in a script
    folder = Path(calculator_page.__file__).parent
    for name in ("ask.js", "page.js"):
        text = (folder / name).read_text("utf-8")
        assert "3600" not in text and "0.9252" not in text and "1.486" not in text
    long = [
        f"{path.name}:{k}" for path in (ROOT / "book").rglob("*.js")
        for k, line in enumerate(path.read_text("utf-8").splitlines(), 1) if len(line) > 110
    ]  # fmt: skip
    assert not long
