"""The calculator page gives the answers of the library, with its refusals and cautions."""

import html
import json
from pathlib import Path
from urllib.parse import parse_qs, quote, urlencode

import pytest
from calculator import KNOWN, START, library, opened, page, run
from facts import from_table, lines
from questions import OPTIONS, SERVED, TRACES, WORK, answered

from book import measured
from book.calculator import fields, javascript, tables
from inferlib.system import System
from tokenprice import SLO, Question, ask, catalog, change, decide, permalink
from tokenprice.question import REQUEST, SERVING, STEP

ROOT = Path(__file__).parents[1]


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
    changes = run(f"return A.changes({json.dumps(state)},32,{seen})")
    gains = {one["name"]: one["gain"] for one in changes}
    assert list(gains.values()) == sorted(gains.values(), reverse=True)
    asked = {name: {"weights": name[11:]} for name in gains if "weights in" in name}
    asked |= {"½ users": {batch: 16}, "2 × chips": {"n_chips": 16}}
    told, *others = (library(state | change, state["mode"])[0] for change in ({}, *asked.values()))
    assert told.narrower.keys() == {name[11:] for name in gains if "weights in" in name}
    after = {name: told.seconds / one.seconds for name, one in zip(asked, others, strict=True)}
    after |= {javascript._IN_WORDS[name]: gain for name, gain in told.speedup_if_doubled.items()}
    assert {name: gains[name] for name in after} == pytest.approx(after, rel=1e-9)


LOADS = {
    ("step", 4096): {"batch": 32, "context": 4096},
    ("request", 4096 + 512 / 2): {"prompt_tokens": 4096, "output_tokens": 512, "concurrency": 32},
}


@pytest.mark.parametrize(("mode", "context"), LOADS)
@from_table
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


def test_half_of_one_user_is_a_change_with_a_number():
    """A page with one user showed NaN."""
    state = START | {"mode": "request", "concurrency": 1}
    gain = {one["name"]: one["gain"] for one in run(f"return A.changes({json.dumps(state)},1,4352)")}
    assert 1 <= gain["½ users"] < 2


# --- A model that a link brings ------------------------------------------------------------------------------------
# The page without a browser: controls that hold values, and parts that hold text.
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
    scripts = (path.read_text("utf-8") for path in (ROOT / "book").rglob("*.js"))
    assert not [line for text in scripts for line in text.splitlines() if len(line) > 110]
