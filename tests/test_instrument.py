"""The instrument: what its page answers is what the library answers, refusals and cautions included."""

import json
import random
from functools import cache
from pathlib import Path

import pytest
from py_mini_racer import MiniRacer

import inferlib
from book.calculator import instrument, questions, tables
from inferlib import catalog, config
from inferlib.serving import decide, estimate_request, with_drafts
from inferlib.serving.change import doubled, must_change
from inferlib.serving.decide import in_words
from inferlib.system import Layout, System, Workload

START = {
    "model": "Llama 3 70B", "chip": "H100 SXM", "n_chips": 8, "layout": "tp", "split": 1, "weights": "bf16",
    "cache": "bf16", "wide": False, "engine": "", "batch": 32, "context": 4096, "users": 32, "prompt": 4096,
    "output": 512, "cached": 0,
}  # fmt: skip


@cache
def engine():
    made = MiniRacer()
    made.eval(instrument.core() + ";const A=inferlibAsk(D),readConfig=inferlibConfig(D.families);")
    return made


def run(body):
    """What a piece of JavaScript returns, beside the functions of the page."""
    return json.loads(engine().eval(f"JSON.stringify((()=>{{{body}}})())"))


def page(call, **state):
    """An answer of the page: ``A.step`` or ``A.request`` of a state."""
    given = json.dumps({**START, **state})
    more = ",S.batch,S.context" if call == "step" else ""
    return run(f"const S={given},r=A.{call}(S{more});delete r.at;return r")


def records(state):
    """The same question in the records of the library."""
    model, chip = catalog.load_model(state["model"]), catalog.load_chip(state["chip"])
    n, split = state["n_chips"], state["split"]
    layout = None
    if state["layout"] == "stages":
        layout = Layout(tp=n // split, pp=split)
    elif state["layout"] == "copies":
        layout = Layout(tp=split, dp=n // split, ep=n if model.sparse and n > split else 1)
    more = {"layout": layout, "engine": state["engine"] or None}
    if state["wide"]:
        more["keep"] = {"attention": "bf16"}
    return model, System(chip, n), more


def step_in_python(state):
    model, system, more = records(state)
    work = Workload(state["batch"], state["context"], tables.as_weights(state["weights"]), state["cache"])
    return inferlib.estimate(model, system, work, **more)


def request_in_python(state):
    model, system, more = records(state)
    formats = {"weights": tables.as_weights(state["weights"]), "cache": state["cache"]}
    lengths = (state["prompt"], state["output"], state["users"])
    return estimate_request(model, system, *lengths, cached_tokens=state["cached"], **formats, **more)


def drawn(seed, n):
    """Questions at random that somebody could ask: all models, chips, layouts and formats."""
    choose = random.Random(seed)
    models, chips = list(tables.models()[0]), catalog.chips()
    for _ in range(n):
        count = choose.choice((1, 2, 4, 8, 8, 16, 32, 64, 72, 12))
        divisors = [d for d in range(1, count + 1) if count % d == 0]
        prompt = choose.choice((100, 1000, 4096, 20_000, 100_000))
        yield START | {
            "model": choose.choice(models), "chip": choose.choice(chips), "n_chips": count,
            "layout": choose.choice(("tp", "copies", "stages")), "split": choose.choice(divisors),
            "weights": choose.choice(tables.WEIGHTS), "cache": choose.choice(tables.CACHES),
            "wide": choose.random() < 0.3, "engine": choose.choice(list(tables.engines())),
            "batch": choose.choice((1, 3, 32, 256, 2000, 20_000)), "context": choose.randrange(1, 40_000),
            "users": choose.choice((1, 7, 64, 300)), "prompt": prompt, "output": choose.choice((1, 300, 2000)),
            "cached": choose.choice((0, prompt // 2)),
        }  # fmt: skip


def asked(function, state):
    """An answer of Python, or the text of its refusal."""
    try:
        return function(state), ""
    except (ValueError, LookupError) as error:
        return None, str(error.args[0])


def same_step(found, told):
    assert found["status"] == told.step.status
    if not told.step.feasible:
        assert found["reason"] == told.step.reason
        return
    assert (found["seconds"], found["low"], found["high"]) == pytest.approx(
        (told.seconds, told.low, told.high), rel=1e-9
    )
    terms = {term["name"]: term["seconds"] for term in found["terms"] if term["seconds"]}
    assert terms == pytest.approx({name: s for name, s in told.step.terms.items() if s}, rel=1e-9)
    assert tuple(found["cautions"]) == told.cautions
    largest = sorted(told.step.counted.values())[-2:]
    if largest[-1] > 1.000001 * largest[0]:
        assert found["binding"] == told.binding


def same_request(found, told, price):
    expected = (told.first_token, told.token, told.users)
    assert (found["first"], found["token"], found["running"]) == pytest.approx(expected, rel=1e-9)
    assert found["firstHigh"] == pytest.approx(told.first_token * told.first_factor, rel=1e-9)
    assert tuple(found["cautions"]) == told.cautions
    assert found.get("million") is None if price is None else True
    if price is not None:
        paid = {name: v for name, v in found["million"].items() if v is not None}
        assert paid == pytest.approx(told.per_million, rel=1e-9)
        assert found["request"] == pytest.approx(told.dollars, rel=1e-9)
    if told.system.chip.power is not None:
        both = (found["joules"], found["promptJoules"])
        assert both == pytest.approx((told.joules, told.prompt_joules), rel=1e-9)


def test_five_hundred_questions_at_random():
    states = list(drawn(seed=2026, n=500))
    body = (
        f"return {json.dumps(states)}.map((S)=>[A.step(S,S.batch,S.context),A.request(S)]"
        ".map((r)=>{delete r.at;return r}))"
    )
    answered, refused, requests = 0, 0, 0
    for state, (step, request) in zip(states, run(body), strict=True):
        told, refusal = asked(step_in_python, state)
        if refusal:
            assert step["status"] == "n/a" and step["reason"] == refusal, state
        else:
            same_step(step, told)
        answered += step["status"] == "ok"
        refused += step["status"] != "ok"
        told, refusal = asked(request_in_python, state)
        if refusal:
            assert request["status"] != "ok" and refusal.endswith(request["reason"]), state
        else:
            same_request(request, told, catalog.load_chip(state["chip"]).price)
            requests += 1
    assert answered > 200 and refused > 50 and requests > 200


def test_a_step_by_hand():
    """Llama 3 70B on eight H100s reads 139 GB in at least 5.2 ms; an interval and no caution."""
    found = page("step")
    assert 0.0052 < found["low"] < found["seconds"] < found["high"] < 0.02
    assert found["dollars"] == pytest.approx(8 * 3.99 / 3600 * found["seconds"] / 32 * 1e6)
    assert found["cautions"] == []


def test_a_chip_without_a_list_price_has_no_cost():
    """It does not keep the price of the chip before."""
    assert page("step", chip="H800")["dollars"] is None
    assert "million" not in page("request", chip="H800")
    assert page("step", chip="H800", price=2.0)["dollars"] > 0
    assert page("step", chip="H800", prices={"H800": 2.0})["dollars"] > 0
    assert page("step", chip="H100 SXM", price=None)["dollars"] is None


def test_a_changed_chip_is_the_record_replaced():
    chip = catalog.load_chip("H200").replace(memory_bandwidth=6e12)
    told = inferlib.estimate(catalog.load_model("Llama 3 70B"), System(chip, 8), Workload(32, 4096))
    assert page("step", chip="H200", changed={"memory_bandwidth": 6e12})["seconds"] == pytest.approx(
        told.seconds
    )


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("Llama 3.3 70B", {"weights": "fp8"}),
        ("GPT-OSS 120B", {"weights": "mxfp4", "wide": True}),
        ("DeepSeek V3", {"weights": "fp8", "sure": True}),
    ],
)
def test_the_page_decides_as_the_library_does(name, more):
    promise = {"speed": 30, "wait": 1.5, "prompt": 2000, "output": 500, "cached": 400}
    state = json.dumps(START | more | promise | {"model": name})
    found = run(
        f"const r=A.decide({state}),"
        "cut=(o)=>({chip:o.chip,n:o.n,layout:o.layout,users:o.users,dollars:o.dollars,"
        "speed:o.speed,first:o.first,million:o.million,cautions:o.cautions,"
        "tokenLow:o.tokenLow,tokenHigh:o.tokenHigh,firstLow:o.firstLow,firstHigh:o.firstHigh});"
        "return {offers:r.offers.map(cut),runners:r.runnersUp.map(cut),misses:r.misses,points:r.points.length,"
        "frontier:r.frontier.map(cut)}"
    )
    told = decide(
        catalog.load_model(name), speed=30, first_token=1.5, prompt_tokens=2000, output_tokens=500, cached_tokens=400,
        weights=tables.as_weights(more["weights"]), keep={"attention": "bf16"} if "wide" in more else None,
        sure="sure" in more,
    )  # fmt: skip
    assert len(told.offers) > 10
    plain = [(o.system.chip.name, o.system.count, in_words(o.layout), o.users) for o in told.offers]
    assert [(o["chip"], o["n"], o["layout"], o["users"]) for o in found["offers"]] == plain
    for here, there in zip(found["offers"], told.offers, strict=True):
        numbers = (here["dollars"], here["speed"], here["first"], here["million"])
        expected = (
            there.dollars,
            there.speed,
            there.request.first_token,
            there.request.per_million["output"],
        )
        assert numbers == pytest.approx(expected, rel=1e-9)
    best, row = found["offers"][0], told.best.row()
    assert tuple(best["cautions"]) == told.best.cautions
    ends = [1 / best["tokenHigh"], 1 / best["tokenLow"], best["firstLow"], best["firstHigh"]]
    names = ("speed_low", "speed_high", "first_token_low", "first_token_high")
    assert ends == pytest.approx([row[name] for name in names], rel=1e-9)
    assert [o["chip"] for o in found["runners"]] == [o.system.chip.name for o in told.runners_up]
    assert found["points"] == len(told.points)
    misses = sorted((m["chip"], m["n"], m["layout"], m["reason"], m["detail"]) for m in found["misses"])
    assert misses == sorted((m.chip, m.count, m.layout, m.reason, m.detail) for m in told.misses)
    line = [(p["chip"], p["n"], p["users"]) for p in found["frontier"]]
    frontier = told.frontier()
    assert line == list(zip(frontier.chip, frontier["count"], frontier.users, strict=True))


@pytest.mark.parametrize(("name", "n"), [("DeepSeek V3", 16), ("Llama 3 70B", 8)])
def test_drafts_are_those_of_the_library(name, n):
    model, system = catalog.load_model(name), System(catalog.load_chip("H200"), n)
    told = with_drafts(model, system, Workload(32, 4096, "fp8"), drafted=3, length=2.82)
    found = page("step", model=name, chip="H200", n_chips=n, weights="fp8", drafted=3, length=2.82)
    assert found["drafts"]["token"] == pytest.approx(told, rel=1e-9)


def question(name="Llama 3 70B", n=8, batch=32, context=4096):
    return catalog.load_model(name), System(catalog.load_chip("H100 SXM"), n), Workload(batch, context)


def test_what_a_change_buys_is_asked_of_the_library():
    gains = {g["name"]: g["gain"] for g in run(f"return A.changes({json.dumps(START)},32,4096)")}
    before = inferlib.estimate(*question()).seconds
    after = {"2 × chips": question(n=16), "½ users": question(batch=16)}
    expected = {name: before / inferlib.estimate(*asked).seconds for name, asked in after.items()}
    told = {questions._IN_WORDS[name]: gain for name, gain in doubled(*question()).items()}
    assert {name: gains[name] for name in expected | told} == pytest.approx(expected | told, rel=1e-9)
    assert list(gains.values()) == sorted(gains.values(), reverse=True)


@pytest.mark.parametrize("target", [{"seconds": 0.010}, {"dollars_per_million": 3.0}])
def test_what_must_change_is_what_the_library_says(target):
    told = must_change(*question(), **target)
    goal = f"s<={target['seconds']}" if "seconds" in target else f"c<={target['dollars_per_million']}"
    found = run(f"return A.needed({json.dumps(START)},32,4096,(s,c)=>{goal})")
    by = {f["name"]: f["factor"] and (1 / f["factor"] if f["less"] else f["factor"]) for f in found}
    for change in told.changes:
        if change.resource != "chips":
            expected = change.factor and pytest.approx(change.factor, rel=1e-6)
            assert by[change.resource] == expected, change.resource


def test_neighbours_are_rows_of_the_measurements():
    near = run(f"return A.neighbours({json.dumps(START)},32,4096,5)")
    assert near[0]["model"] == "Llama 3 70B" and near[0]["chip"] == "H100 SXM"
    assert all(row["url"].startswith("https://") for row in near)
    known = inferlib.measured.load()
    row = known[(known.model == "Llama 3 70B") & (known.hardware == "H100 SXM")]
    assert near[0]["seconds"] in [pytest.approx(v, rel=1e-3) for v in row.tpot]


# --- A config.json that is pasted --------------------------------------------------------------------------------


def configs():
    return {name: catalog._served()[name]["config"] for name in catalog.served()}


def read_here(text):
    body = f"try{{return readConfig({json.dumps(text)})}}catch(e){{return {{error:e.message}}}}"
    return run(body)


def read_there(text):
    """Structure and numbers as the library reads them, or the text of a refusal."""
    try:
        made = tables.numbers_of(config.read_config(config.parse(text)))
    except (ValueError, LookupError) as error:
        return str(error)
    if isinstance(made, str):
        return made
    structure, values = made
    return structure, {name: v for name, v in values.items() if not name.startswith("stored_")}


def test_published_configurations_have_the_same_dimensions_or_are_refused():
    same = []
    for name, about in configs().items():
        text = json.dumps(about)
        here, there = read_here(text), read_there(text)
        if "error" not in here:
            assert (here["structure"], here["values"]) == there, name
            same.append(name)
    # all that the sixth model describes, but for one that makes its values of its keys
    described = [name for name in configs() if name in tables.models()[0]]
    assert set(described) - set(same) == {"google/gemma-4-26B-A4B"}


def test_configurations_changed_at_random_are_never_read_otherwise():
    choose = random.Random(7)
    values = (
        None,
        0,
        1,
        2,
        3,
        7,
        64,
        128,
        4096,
        1.5,
        -1,
        True,
        False,
        "",
        "full_attention",
        [],
        [1],
        {},
        10**10,
    )
    read, every = 0, list(configs().items())
    for _ in range(400):
        name, about = choose.choice(every)
        changed = json.loads(json.dumps(about))
        inside = changed["text_config"] if isinstance(changed.get("text_config"), dict) else changed
        for _ in range(choose.choice((1, 1, 2))):
            key = choose.choice(list(inside))
            if choose.random() < 0.3:
                del inside[key]
            elif choose.random() < 0.2:
                inside[key + "_new"] = choose.choice(values)
            else:
                inside[key] = choose.choice(values)
            if not inside:
                break
        text = json.dumps(changed)
        here = read_here(text)
        if "error" not in here:
            assert (here["structure"], here["values"]) == read_there(text), (name, text)
            read += 1
    assert read > 60


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"model_type": "unheard-of"}', '{"model_type": 3}', "{}", "null"]
)
def test_what_is_no_configuration_is_refused(text):
    assert read_here(text)["error"]


def test_a_pasted_model_answers_as_the_library_reads_it():
    """But for vectors: biases and norms, which typed dimensions leave out."""
    about = configs()["Qwen/Qwen3-32B"]
    own = read_here(json.dumps(about))
    told = inferlib.estimate(
        config.read_config(about), System(catalog.load_chip("H100 SXM"), 8), Workload(32, 4096)
    )
    found = page("step", own=own)
    assert found["seconds"] == pytest.approx(told.seconds, rel=1e-9)
    held = config.read_config(about).n_params * 2 + 32 * config.read_config(about).cache_bytes(4096, "bf16")
    assert found["fit"]["needs"] == pytest.approx(held, rel=1e-3)


# --- The page --------------------------------------------------------------------------------------------------------


def test_the_page_has_labels_for_all_that_can_be_set_and_is_light_enough():
    text = instrument.Instrument()._repr_html_()
    assert len(text) < 500_000
    for control in (
        "model",
        "chip",
        "n_chips",
        "layout",
        "weights",
        "cache",
        "engine",
        "batch",
        "context",
        "price",
    ):
        assert f'data-key="{control}"' in text and f'for="ask-{control}"' in text
    assert "80 % of cases" in text, "without JavaScript the first answer stands there"


def test_no_formula_is_written_in_the_scripts():
    """Constants of the model stand in its files: none of their numbers, and no rate of dollars, in a script."""
    folder = Path(instrument.__file__).parent
    for name in ("ask.js", "page.js", "config.js"):
        text = (folder / name).read_text("utf-8")
        assert "3600" not in text and "0.9252" not in text and "1.486" not in text


def test_every_structure_of_a_known_model_has_functions():
    structures = {entry["structure"] for entry in tables.models()[0].values()}
    assert structures == set(questions.STRUCTURES)
