"""Explorers: the JavaScript in the page computes what Python computes, and refuses what it cannot print."""

import json
import math
import os
import re
from functools import cache, partial
from importlib import import_module
from inspect import isfunction
from pathlib import Path
from urllib.parse import parse_qs

import numpy as np
import pytest
import sympy as sp
from facts import from_table, lines, refused as refused_calls
from javascript import assert_equal_at_random, random_inputs
from matplotlib.figure import Figure
from py_mini_racer import MiniRacer

import inferlib
from book.calculator import fields, page
from book.explorer import (
    Bars,
    Choice,
    Curves,
    Explorer,
    Gauge,
    Guess,
    Limit,
    Slider,
    StructureChoice,
    kernel_model_line,
    static_start,
)
from book.explorer.page import digits
from book.principles import introduction
from inferlib import load_model
from inferlib.papers import erdil2025 as e
from tokenprice import ask


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    """Widgets make their figures; that Matplotlib can draw them is seen in the chapters."""
    monkeypatch.setattr(Figure, "savefig", lambda figure, file, **_: None)


CHIPS = {name: inferlib.load_chip(name) for name in ("H100 SXM", "H200", "H20")}  # no list offers an H20
MODELS = {name: e.load_model(name) for name in ("Llama 3 70B", "Llama 3 8B")}
INPUTS = [
    Slider("n_gpu", "GPUs", 1, 512, 8, log=True),
    Slider("hop", "Time of one hop", 0, 10, 1, "us"),
    Choice("chip", "Chip", CHIPS),
    Choice("model", "Model", MODELS),
]


def latency(n_gpu, hop, chip, model):
    return e.critical_latency(model, chip, n_gpu, 1e-6 * hop)


CURVES = Explorer("Latency", INPUTS, [Curves({"latency": latency}, "n_gpu", "time", "ms")])
A = Slider("a", "a", 1, 2, 1)


def curve(of, *inputs, x="a"):
    """A small explorer of one function."""
    return Explorer("T", list(inputs), [Curves({"y": of}, x, "y")])


MOVE = "const move = (p, change) => { Object.assign(made[p], change); root.listeners.input({ target: made[p] }); };"


def page_of(shown, hash=""):
    """The explorer's own script in V8, over a small stand-in for the page."""
    controls = {}
    for i in shown.inputs:
        labels = getattr(i, "options", ())
        controls[i.name] = {"options": [{"text": label} for label in labels]} if labels else {}
    *shared, call = re.findall(r"<script>(.*?)</script>", shown._repr_html_(), re.S)
    shared = "\n".join(shared)
    page = MiniRacer()
    stand_in = static_start.static_page(controls, hash=hash) + MOVE
    page.eval(f"{stand_in}{shared}\nconst inferlibExplorer = window.inferlibExplorer, api = {call}")
    return page


def asked(page, code):
    return json.loads(page.eval(f"JSON.stringify({code})"))


def said(page, part):
    return asked(page, f"made['{part}'].textContent")


def refused(page):
    """Whether the page says that a limit does not hold."""
    return asked(page, "made.limits.className.includes('missing')")


def drawn(page, part, kind):
    """Attributes of what is drawn in one class."""
    of_kind = f"filter((a) => (a.class || '').startsWith('{kind}'))"
    return asked(page, f"made['{part}'].children.map((c) => c.attributes).{of_kind}")


def silent(shown, values):
    """Whether Python answers only a gauge, which is shown even where a limit does not hold."""
    kept = {name for view in shown.views if isinstance(view, Gauge) for name in view.outputs}
    return all(v is None for name, v in shown.evaluate(**values).items() if name not in kept)


def number(text):
    return float(text.replace(",", ""))


def halved(n, batch, kind, size, price):
    """A made-up step: work divided over chips, with a network time; the kind "sparse" has twice the work."""
    work = {"dense": 1e-3, "sparse": 2e-3}[kind] * batch * size
    cut_up = {"work": work / (2 * n), "arithmetic": 3e-5 * batch}
    return inferlib.Breakdown((cut_up, {"network": 2e-4}))


def plain(n, batch, kind, size, price):
    if kind == "sparse":
        return inferlib.Breakdown(status="n/a", reason="dense only")
    return inferlib.Breakdown(({"work": 1e-3 * batch * size / n}, {"start": 1e-4}))


RICH = Explorer(
    "Everything at once",
    [
        Slider("n", "Chips", 1, 64, 8, log=True, whole=True),
        Slider("batch", "Batch", 1, 512, 32, log=True),
        Choice("price", "Price", {"low": 1.0, "high": 4.0}, sets={"high": {"batch": 100}}),
        StructureChoice("kind", "Kind", {"dense": "dense", "sparse": "sparse"}),
        Slider("size", "Size", 1, 100, 1),
    ],
    [
        Bars({"halved": halved, "plain": plain}),
        Curves({"time": lambda **at: halved(**at).total}, x="n", y_label="ms", unit="ms", log_y=True),
        Curves({"work": lambda n, batch, kind, size, price: batch * size / n}, x="batch", y_label="work"),
    ],
    limits={"memory": Limit(lambda **at: 1e9 * at["size"], lambda **at: 2e9 * at["n"], "GB")},
)  # fmt: skip


def named(api, shown):
    """The page's numbers, under the names of Python's."""
    found = {}
    for view, entries in zip(shown.views, api, strict=True):
        for entry, name in zip(entries, getattr(view, "steps", getattr(view, "outputs", ())), strict=False):
            if isinstance(view, Bars):
                found |= {f"{name}: {t['name']}": 1e3 * t["seconds"] for t in entry.get("terms", ())}
                found[f"{name}: total"] = None if "na" in entry else 1e3 * entry["value"]
            else:
                found[name] = entry["value"] / (1e-3 if view.unit == "ms" else 1)
    return found


def test_a_link_reproduces_the_state_and_its_answers():
    random = np.random.default_rng(5)
    for _ in range(30):
        values = random_inputs(RICH, random)
        page, answers = page_of(RICH, RICH.link(**values)), RICH.evaluate(**values)
        assert asked(page, "api.link()") == RICH.link(**values)
        if RICH.shortages(**values):
            assert said(page, "limits").startswith("Does not fit. Memory: ")
            assert asked(page, "api.answers()[0][0].na") == "does not fit"
            continue
        for name, value in named(asked(page, "api.answers()"), RICH).items():
            assert answers[name] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value)
        assert number(said(page, "v0-s0-t")) == pytest.approx(answers["halved: total"], rel=5e-3)


def test_where_there_is_no_answer_the_page_says_why():
    page = page_of(RICH, f"#{RICH.slug}?price=high&kind=sparse&size=50")
    assert asked(page, "made['v0-s1-r'].children[0].textContent") == "does not fit"
    page.eval("move('n', {value: '1.8'})")
    assert asked(page, "made['v0-s1-r'].children[0].textContent") == "dense only"


@from_table
def test_a_link_that_names_a_choice_sets_what_the_choice_sets_but_for_what_it_names_itself(link, batch):
    assert asked(page_of(RICH, f"#{RICH.slug}?{link}"), "+made['batch-n'].value") == batch


@from_table
def test_a_link_that_cannot_be_honoured_is_said_and_nothing_is_shown(asked_for, why):
    hash = f"#{RICH.slug}?{asked_for}"
    page = page_of(RICH, hash)
    assert why in said(page, "limits")
    assert all(entry["na"] == "not answered" for view in asked(page, "api.answers()") for entry in view)
    assert asked(page, "location.hash") == hash, "the link is kept"
    page.eval("move('n-n', {value: '12'})")
    assert any("value" in entry for view in asked(page, "api.answers()") for entry in view)


def test_text_cannot_leave_its_place():
    """Neither a script's end nor markup in a label may reach the page as such."""
    nasty = '</script><b onclick="x">'
    slider = Slider("a", nasty, 1, 2, 1)
    shown = Explorer(nasty, [slider], [Curves({nasty: lambda a: a}, "a", nasty)])
    html = shown._repr_html_() + Guess(nasty, 5, "ms", 1, 10)._repr_html_()
    assert html.count("</script>") == 6 and "<b onclick" not in re.sub(r"(?s)<script>.*?</script>", "", html)
    page_of(shown)


def test_a_choice_of_a_widget_sets_others():
    _, batch, price, *_ = RICH.widget().children
    price.value = "high"
    assert batch.value == RICH.state(price="high")["batch"] == 100


K = sp.Symbol("k")
# No source states the price of an H800, so the column of prices is left out for all.
WITHOUT_PRICE = Choice("chip", "Chip", CHIPS | {"H800": inferlib.load_chip("H800")})


test_argument_checks = refused_calls(globals())


def guessed_page(guess, at=None):
    """The guess's own script over a small stand-in: its slider moved, or not, and its button pressed."""
    script = "\n".join(re.findall(r"<script>(.*?)</script>", guess._repr_html_(), re.S))
    dom = """const window = globalThis;
    const said = {}; let click, move;
    const slider = {value: "1", addEventListener: (_, f) => { move = f; }, setAttribute() {}};
    const part = (s) => s === "input" ? slider
      : s === "button" ? {addEventListener: (_, f) => { click = f; }} : (said[s] = said[s] || {});
    const document = { getElementById: () => ({ querySelector: part }) };
    """
    page = MiniRacer()
    page.eval(dom + script)
    if at:
        page.eval(f"slider.value = '{math.log10(at)}'; move();")
    page.eval("click();")
    return page.eval("said.output.textContent"), page.eval("said['.readout'].textContent")


@pytest.mark.parametrize(("answer", "at", "shown", "verdict"), lines("guesses"))
def test_guess_says_how_far_off(answer, at, shown, verdict):
    """If the answer is a whole number, the slider has whole numbers only."""
    slider, told = guessed_page(Guess("How long?", json.loads(answer), "ms", 1, 100), float(at))
    assert slider == shown and told.endswith(verdict)


def test_a_guess_reaches_as_far_as_its_answer():
    slider, _ = guessed_page(Guess("How long?", 5000.0, "ms", 1, 100), 4000)
    assert slider == "4,000 ms"


def test_a_guess_ends_where_it_says_if_the_answer_lies_between():
    assert "1&nbsp;to&nbsp;10&nbsp;ms" in Guess("How long?", 1.09, "ms", 1, 10)._repr_html_()


def every_explorer():
    """Each public function of each source's ``explorers`` module makes one, of what ``openings.tsv`` has for it."""
    from book.audit import grading

    given = dict(lines("openings"))
    rooms = {source: f"papers.{source}" for source in grading.sources()} | {"principles": "principles"}
    for source, room in rooms.items():
        module = import_module(f"book.{room}.explorers")
        for name, make in vars(module).items():
            own = getattr(make, "__module__", "") == module.__name__
            if isfunction(make) and own and not name.startswith("_"):
                key = f"{source}.{name}"
                values = eval(given.get(key, "()"), vars(module))
                yield pytest.param(cache(partial(make, *values)), id=key)
    yield pytest.param(cache(introduction.one_token), id="introduction.one_token")


EVERY = list(every_explorer())
MADE = {entry.id: entry.values[0] for entry in EVERY}


@pytest.mark.parametrize("make", [*EVERY, pytest.param(lambda: RICH, id="every combination of kinds")])
def test_every_explorer_computes_in_javascript_what_python_computes(make):
    """At ``STATES`` / 10 random states (default 3)."""
    assert_equal_at_random(make(), draws=int(os.environ.get("STATES", 30)) // 10, seed=3)


@pytest.mark.parametrize("make", EVERY)
def test_a_widget_answers_at_both_ends_of_every_slider_and_shows_its_start(make):
    """A logarithmic slider returns ten to its position, which may lie beyond its end by rounding."""
    shown = make()
    start = {i.name: i.start() for i in shown.inputs}
    sliders = [i for i in shown.inputs if isinstance(i, Slider)]
    for end in ("low", "high"):
        ends = {i.name: getattr(i, end) for i in sliders}
        corner = {i.name: 10 ** i.position(ends[i.name]) if i.log else ends[i.name] for i in sliders}
        for name, at in corner.items():
            shown.evaluate(**shown.within(**start | {name: at}))
        assert "must be" not in shown.answered(**start | corner)
    for i, control in zip(shown.inputs, shown.widget().children, strict=False):
        if isinstance(i, Slider):  # a notebook shows the nearest step, but answers for the start
            steps = (i.position(i.value) - control.min) / control.step
            assert control.value == pytest.approx(i.value) and steps == pytest.approx(round(steps), abs=1e-6)


LOAD = {"own", "batch", "context"}


@pytest.mark.parametrize("make", EVERY)
def test_the_page_refuses_what_python_refuses(make):
    """Whether there is an answer at all: at random, at the ends, and for the largest load on the smallest machine."""
    shown, random = make(), np.random.default_rng(8)
    names = {i.name for i in shown.inputs}
    fills = {"model", "app"} & names and {"own", "batch"} & names and "context" in names
    sliders = [i for i in shown.inputs if isinstance(i, Slider)]
    least = {i.name: i.high if i.name in LOAD else i.low for i in sliders if i.name != "bandwidth"}
    for draw in range(10):
        values = random_inputs(shown, random)
        values |= ({}, {i.name: random.choice([i.low, i.high]) for i in sliders}, least)[draw % 3]
        page, short = page_of(shown, shown.link(**values)), shown.shortages(**values)
        assert short or not (fills and draw % 3 == 2)
        assert refused(page) == bool(short) and (not short or silent(shown, values))
        for view, entries in zip(shown.views, asked(page, "api.answers()"), strict=True):
            if isinstance(view, Gauge):
                assert not any("na" in entry for entry in entries)
            elif short:
                assert all("na" in entry for entry in entries)


def test_the_limit_of_memory_is_that_of_the_model():
    """The page counts a profile; 405B at 16 bits is 812 GB, and its cache half a megabyte a token."""
    at = {"model": "Llama 3.1 405B", "chip": "H100 SXM", "batch": 8, "context": 8192, "n_chips": 8}
    ((needed, has),) = MADE["principles.one_step"]().shortages(**at).values()
    assert needed == pytest.approx(811.7 + 8 * 8192 * 126 * 8 * 128 * 2 * 2 / 1e9, rel=1e-3) and has == 640


def test_a_caution_is_said_and_takes_no_answer_away():
    bars = Bars({"x": lambda a: inferlib.Breakdown(({"work": 1e-3 * a},))})
    far = Limit(lambda a: a, lambda a: 50, "1", caution=True, says="Caution: nothing was measured there")
    shown = Explorer("Off", [Slider("a", "a", 1, 100, 10)], [bars], limits={"far": far})
    assert "Caution" not in said(page_of(shown, shown.link(a=40)), "limits")
    page = page_of(shown, shown.link(a=60))
    assert said(page, "limits") == "Caution: nothing was measured there" and not refused(page)
    assert shown.evaluate(a=60)["x: total"] == 60


def test_without_scripts_a_page_shows_the_start():
    shown = MADE["principles.one_step"]()
    without = re.sub(r"(?s)<(script|style)>.*?</\1>", "", shown._repr_html_())
    cells = re.findall(r'<td class="number"[^>]*>([^<]*)</td>', without)
    assert number(cells[0]) == pytest.approx(shown.evaluate()["all overlaps: total"], rel=5e-3)
    assert "full at 640 GB" in without


BESIDE = """
const window = globalThis, document = { currentScript: null, createElement: () => ({}) };
const node = { append(link) { this.href = link.href; } };
class URLSearchParams {
  constructor(text) { this.all = new Map(text.split("&").map((p) => p.split("=").map(decodeURIComponent))); }
  get(name) { return this.all.get(name); }
  has(name) { return this.all.has(name); }
}
"""


def of_calculator(address):
    """The kernel model's answer to a link of the calculator, in the words of Python."""
    path, _, pairs = address.partition("#ask?")
    given = {name: words[0] for name, words in parse_qs(pairs).items()}
    assert path == "calculator.html" and given.pop("mode") == "step"
    assert set(given) <= set(fields.declared())
    try:
        found = ask(given.pop("model"), given.pop("machine"), **given)
    except ValueError as refusal:
        return f"The kernel model does not answer: {refusal}"
    if not found.feasible:
        return f"The kernel model does not answer: {found.reason}"
    at, low, high = (digits(1e3 * seconds) for seconds in (found.seconds, found.low, found.high))
    return f"The kernel model says {at} ms ({low} to {high} ms in 80 % of cases)."


def test_below_a_box_stands_what_the_kernel_model_says_to_its_question():
    """Page and Python agree for every box that asks, refusals included; a reader's own model gets no line."""
    script = (Path(static_start.__file__).parents[1] / "site" / "static" / "beside.js").read_text("utf-8")
    engine = MiniRacer()
    engine.eval(f"{BESIDE}window.inferlibKnown = (() => {{{page.core()}return D;}})();{script}")
    random, answers, own = np.random.default_rng(5), [], " Your own model: "
    for shown in filter(lambda shown: shown.asks is not None, (make() for make in MADE.values())):
        told = json.dumps(kernel_model_line.ask_row(shown))
        for values in ({}, *(random_inputs(shown, random) for _ in range(8))):
            link = json.dumps(shown.link(**values))
            answers.append(kernel_model_line.format_answer(shown, digits, **values))
            engine.eval(f"node.textContent = ''; inferlibBeside(node, {told}, {link})")
            assert engine.eval("node.textContent") == answers[-1] + own, link
            assert of_calculator(engine.eval("node.href")) == answers[-1], link
    assert {"not answer" in answer for answer in answers} == {True, False}
    llama = load_model("Llama 3 70B")
    unknown, make = llama.replace(vocab_size=2 * llama.vocab_size), MADE["principles.one_step"]
    running = digits(1e3 * ask(introduction.RUNNING).seconds)
    assert kernel_model_line.format_answer(make(introduction.RUNNING), digits).startswith(
        f"The kernel model says {running} ms"
    )
    assert kernel_model_line.format_answer(make(introduction.RUNNING.replace(model=unknown)), digits) == ""
