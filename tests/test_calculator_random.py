"""The calculator page gives the answers of the library at random states, and rents the same machines."""

import json
import os
import random
import re
from functools import cache

import pytest
from calculator import START, drawn, library, opened, run, same_answer, same_step

from book.calculator import fields
from tokenprice.ask import plain
from tokenprice.formatting import format_layout


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
                said = plain(there.to_dict())
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
