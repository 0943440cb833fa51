"""Explorers: the JavaScript in the page computes what Python computes, and refuses what it cannot print."""

import json
import math
import re
from pathlib import Path

import nbformat
import numpy as np
import pytest
import sympy as sp
from py_mini_racer import MiniRacer

import inferlib
from inferlib import explorer
from inferlib.explorer import Choice, Guess, Slider
from inferlib.papers import erdil2025 as e

CHIPS = {name: inferlib.load_chip(name) for name in ("H100 SXM", "H200", "H20")}  # no list offers an H20
MODELS = {name: e.models[name] for name in ("Llama 3 70B", "Llama 3 8B")}
INPUTS = [
    Slider("n_gpu", "GPUs", 1, 512, 8, log=True),
    Slider("hop", "Time of one hop", 0, 10, 1, "us"),
    Choice("chip", "Chip", CHIPS),
    Choice("model", "Model", MODELS),
]


def latency(n_gpu, hop, chip, model):
    return e.critical_latency(model, chip, n_gpu, 1e-6 * hop)


def step(n_gpu, hop, chip, model):
    t_reduce = e.grid_all_reduce_time(n_gpu, 1e-6 * hop)
    return inferlib.Breakdown(
        (
            {"network": e.network_time(model, t_reduce)},
            {
                "weights": e.weight_time(model, chip, n_gpu),
                "arithmetic": e.arithmetic_time(model, chip, n_gpu, 64),
            },
        )
    )


CURVES = explorer.curves(
    "Latency", INPUTS, {"latency": latency}, x="n_gpu", y_label="ms per token", unit="ms"
)
BARS = explorer.breakdown("One step", INPUTS, step)


def run(shown, values):
    """The generated JavaScript on given inputs, in a JavaScript engine."""
    numbers = []
    for name in shown.arguments():
        owner = next(
            i for i in shown.inputs if name == i.name or isinstance(i, Choice) and name in i.columns()
        )
        if isinstance(owner, Choice):
            numbers.append(owner.columns()[name][list(owner.options).index(values[owner.name])])
        else:
            numbers.append(values[name])
    return json.loads(MiniRacer().eval(f"JSON.stringify(({shown.javascript()})(...{json.dumps(numbers)}))"))


def random_inputs(shown, random):
    values = {}
    for i in shown.inputs:
        if isinstance(i, Choice):
            values[i.name] = str(random.choice(list(i.options)))
        else:
            low, high = i.position(i.low), i.position(i.high)
            raw = float(random.uniform(low, high))
            values[i.name] = i.taken(min(max(10**raw if i.log else raw, i.low), i.high))
    return values


@pytest.mark.parametrize("shown", [CURVES, BARS], ids=["curves", "bars"])
def test_javascript_equals_python(shown):
    random = np.random.default_rng(1)
    for _ in range(20):
        values = random_inputs(shown, random)
        assert run(shown, values) == pytest.approx(list(shown.evaluate(**values).values()), rel=1e-9)


def test_every_operation_prints():
    """Each function of ``ops`` on symbols, as JavaScript, against itself on floats."""
    from inferlib import ops

    outputs = {
        "maximum": lambda a, b: ops.maximum(a, b),
        "minimum": lambda a, b: ops.minimum(a, b),
        "sqrt": lambda a, b: ops.sqrt(a + b),
        "cbrt": lambda a, b: ops.cbrt(a) ** 2,
        "log": lambda a, b: ops.log(a + 1),
        "log2": lambda a, b: ops.log2(a + 1),
        "ceil": lambda a, b: ops.ceil(a / b),
        "where": lambda a, b: ops.where(a > b, a, 2 * b),
    }
    inputs = [Slider("a", "a", 1, 10, 2), Slider("b", "b", 1, 10, 2)]
    shown = explorer.curves("All", inputs, outputs, x="a", y_label="", unit="1")
    random = np.random.default_rng(2)
    for _ in range(20):
        values = random_inputs(shown, random)
        assert run(shown, values) == pytest.approx(list(shown.evaluate(**values).values()), rel=1e-9)


PAGE = r"""
class Node {
  constructor(name) {
    this.nodeName = name; this.children = []; this.attributes = {}; this.own = ""; this.listeners = {};
  }
  setAttribute(key, value) { this.attributes[key] = String(value); }
  appendChild(child) { this.children.push(child); return child; }
  removeChild() { this.children.pop(); }
  get lastChild() { return this.children[this.children.length - 1]; }
  addEventListener(kind, call) { this.listeners[kind] = call; }
  set textContent(text) { this.own = String(text); this.children = []; }
  get textContent() { return this.own + this.children.map((c) => c.textContent).join(""); }
}
const made = {}, root = new Node("root"), svg = new Node("svg"), readout = new Node("readout");
root.querySelector = (s) => {
  if (s === "svg") return svg;
  if (s === ".readout") return readout;
  const key = Object.keys(CONTROLS).find((k) => s.endsWith("-" + k) && s.startsWith("#"));
  if (key) return (made[key] = made[key] || Object.assign(new Node("input"), CONTROLS[key]));
  return (made[s] = made[s] || new Node("output"));
};
const document = {
  getElementById: () => root, createElement: (n) => new Node(n), createElementNS: (_, n) => new Node(n),
  createTextNode: (t) => Object.assign(new Node("#text"), { own: t }),
};
const requestAnimationFrame = (f) => f();
const move = (key, change) => { Object.assign(made[key], change); root.listeners.input(); };
"""


def page_of(shown):
    """The explorer's own script in V8, over a small stand-in for the page."""
    controls = {}
    for i in shown.inputs:
        start = f"{i.position(i.value):.6g}" if isinstance(i, Slider) else ""
        controls[i.name] = (
            {"value": start, "defaultValue": start, "step": "0.01"} if start else {"selectedIndex": 0}
        )
    script = re.search(r"<script>(.*)</script>", shown._repr_html_(), re.S).group(1)
    page = MiniRacer()
    page.eval(PAGE.replace("CONTROLS", json.dumps(controls)) + script)
    return page


def told(page):
    """The readout as name to (number as shown, whether it is hidden)."""
    entries = json.loads(page.eval("JSON.stringify(readout.children.map((c) => c.textContent))"))
    parts = [re.match(r"(.*?) ([-\d.,e]+) ?(?:ms)?( \(hidden\))?$", entry).groups() for entry in entries]
    return {name: (float(number.replace(",", "")), bool(hidden)) for name, number, hidden in parts}


def test_the_page_tells_what_python_computes_and_follows_the_controls():
    page = page_of(CURVES)
    start = CURVES.evaluate()["latency"]
    assert told(page)["latency"][0] == pytest.approx(start, rel=5e-3)
    page.eval("move('n_gpu', {value: '2'})")
    assert told(page)["latency"][0] == pytest.approx(CURVES.evaluate(n_gpu=100)["latency"], rel=5e-3)
    page.eval("move('model', {selectedIndex: 1})")
    moved = CURVES.evaluate(n_gpu=100, model="Llama 3 8B")["latency"]
    assert told(page)["latency"][0] == pytest.approx(moved, rel=5e-3)


def test_the_page_adds_up_a_breakdown_as_the_library_does():
    page = page_of(BARS)
    for n_gpu in (8, 100, 500):
        page.eval(f"move('n_gpu', {{value: '{math.log10(n_gpu)}'}})")
        answer = step(n_gpu=n_gpu, hop=1, chip=CHIPS["H100 SXM"], model=MODELS["Llama 3 70B"])
        shown = told(page)
        assert shown.pop("total")[0] == pytest.approx(1e3 * answer.total, rel=5e-3)
        assert {name for name, (_, hidden) in shown.items() if hidden} == set(answer.hidden)
    grouped = explorer.breakdown(
        "Groups", [Slider("a", "a", 0.1, 10, 1)],
        lambda a: inferlib.Breakdown(({"memory": {"x": 1e-3 * a, "y": 2e-3}, "z": 2.5e-3}, {"w": 1e-3})),
    )  # fmt: skip
    assert told(page_of(grouped)) == {
        "x": (1.0, False), "y": (2.0, False), "z": (2.5, True), "w": (1.0, False), "total": (4.0, False)
    }  # fmt: skip


def test_curves_are_drawn_to_scale():
    """A straight line on linear axes: the marker stands in the middle, the curve spans the width."""
    line = explorer.curves(
        "L", [Slider("x", "x", 0, 10, 5)], {"y": lambda x: 3 * x}, x="x", y_label="y", unit="1"
    )
    page = page_of(line)
    where = json.loads(
        page.eval(
            "JSON.stringify([svg.children.find(c => c.attributes.class === 'now').attributes.x1,"
            " svg.children.find(c => c.nodeName === 'path').attributes.d])"
        )
    )
    assert float(where[0]) == pytest.approx((66 + 588) / 2)
    points = [tuple(map(float, p.split())) for p in re.findall(r"[ML]([-\d.]+ [-\d.]+)", where[1])]
    assert points[0] == (66, 254) and points[-1][0] == 588
    assert points[-1][1] == pytest.approx(254 + (10 - 254) / 1.05, abs=0.1)


def test_whole_sliders_round_alike():
    whole = explorer.curves(
        "W", [Slider("n", "n", 1, 9, 3, whole=True)], {"y": lambda n: 10 * n}, x="n", y_label="y", unit="1"
    )
    page = page_of(whole)
    page.eval("move('n', {value: '4.6'})")
    assert told(page)["y"][0] == whole.evaluate(n=4.6)["y"] == 50


def test_text_cannot_leave_its_place():
    """Neither a script's end nor markup in a label may reach the page as such."""
    nasty = '</script><b onclick="x">'
    shown = explorer.curves(
        nasty, [Slider("a", nasty, 1, 2, 1)], {nasty: lambda a: a}, x="a", y_label=nasty, unit="1"
    )
    html = shown._repr_html_() + Guess(nasty, 5, "ms", 1, 10)._repr_html_()
    assert html.count("</script>") == 2 and "<b onclick" not in html.split("<script>")[0]
    assert nasty in json.loads(page_of(shown).eval("JSON.stringify(readout.children[0].textContent)"))


def test_inputs_are_checked_when_evaluating():
    for wrong in ({"n_gpus": 3}, {"chip": "H1000"}):
        with pytest.raises(LookupError):
            CURVES.evaluate(**wrong)
    for wrong in (-3, math.nan, 1e9):
        with pytest.raises(ValueError, match="n_gpu is"):
            CURVES.evaluate(n_gpu=wrong)


def test_html_is_deterministic_and_small():
    first, second = CURVES._repr_html_(), CURVES._repr_html_()
    assert first == second and len(first) < 20_000
    assert "http://" not in first.replace("http://www.w3.org/2000/svg", "") and "https://" not in first
    assert first.count('<label for="') == len(INPUTS)


def test_two_explorers_have_two_ids():
    ids = {re.search(r'id="(ex-[0-9a-f]+)"', shown._repr_html_()).group(1) for shown in (CURVES, BARS)}
    assert len(ids) == 2


def test_fields_that_an_option_lacks_are_not_offered():
    chips = CHIPS | {"H800": inferlib.load_chip("H800")}  # nobody states its price
    assert "chip_price" not in Choice("chip", "Chip", chips).columns()
    with pytest.raises(ValueError, match="no input for chip_price"):
        explorer.curves(
            "p", [Slider("x", "x", 1, 2, 1), Choice("chip", "Chip", chips)],
            {"p": lambda x, chip: x * chip.price}, x="x", y_label="", unit="1",
        ).javascript()  # fmt: skip


def test_what_javascript_cannot_say_is_refused():
    k = sp.Symbol("k")
    bad = explorer.curves(
        "Sum",
        [Slider("x", "x", 1, 2, 1)],
        {"s": lambda x: sp.Sum(x**k, (k, 1, 3))},
        x="x",
        y_label="",
        unit="1",
    )
    with pytest.raises(ValueError, match="cannot be printed"):
        bad.javascript()
    unknown = explorer.curves(
        "U", [Slider("x", "x", 1, 2, 1)], {"u": lambda x: x * k}, x="x", y_label="", unit="1"
    )
    with pytest.raises(ValueError, match="no input for k"):
        unknown.javascript()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Slider("a", "a", 2, 1, 1), "low is 2"),
        (lambda: Slider("a", "a", 1, 2, 3), "value is 3"),
        (lambda: Slider("a", "a", 0, 2, 1, log=True), "low is 0"),
        (lambda: Slider("a b", "a", 1, 2, 1), "input name is 'a b'"),
        (lambda: Slider("class", "a", 1, 2, 1), "input name is 'class'"),
        (lambda: Slider("a", "a", 1, math.inf, 1), "high is inf"),
        (lambda: Choice("c", "c", {"x": 1.0, "y": CHIPS["H200"]}), "mixes"),
        (
            lambda: explorer.curves(
                "t",
                [Slider("chip_flops", "a", 1, 2, 1), Choice("chip", "c", CHIPS)],
                {},
                x="chip_flops",
                y_label="",
                unit="1",
            ),
            "share one of the names",
        ),
        (lambda: Choice("c", "c", {}), "no options"),
        (lambda: Guess("q", 5, "ms", 10, 20), "answer is 5"),
        (
            lambda: explorer.curves("t", [Slider("a", "a", 1, 2, 1)] * 2, {}, x="a", y_label="", unit="1"),
            "own",
        ),
    ],
)
def test_doors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_guess_says_how_far_off():
    html = Guess("How long?", 6.4, "ms", 1, 100)._repr_html_()
    script = re.search(r"<script>(.*)</script>", html, re.S).group(1)
    dom = """
    const said = {}; let click;
    const part = (s) => s === "input" ? {value: String(Math.log10(3.2)), addEventListener() {}}
      : s === "button" ? {addEventListener: (_, f) => { click = f; }} : (said[s] = said[s] || {});
    const document = { getElementById: () => ({ querySelector: part }) };
    """
    assert (
        MiniRacer().eval(dom + script + ";click();said['.readout'].textContent").endswith("2 times too low.")
    )
    assert math.isclose(Guess("q", 6.4, "ms", 1, 100).answer, 6.4)


def test_widget_offers_the_same_inputs():
    children = CURVES.widget().children
    assert [child.description for child in children[:-1]] == [i.label for i in INPUTS]


def explorers_in_the_book():
    """Every explorer cell of the chapters, as stored."""
    for path in sorted((Path(__file__).parents[1] / "book").glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", ()):
                html = "".join(output.get("data", {}).get("text/html", ""))
                if "inferlib-explorer" in html:
                    yield pytest.param(html, id=f"{path.stem}-{cell.execution_count}")


@pytest.mark.parametrize("html", list(explorers_in_the_book()))
def test_explorers_of_the_book_are_sound_javascript(html):
    """The stored page is what nbval compares; here its script must at least parse."""
    script = re.search(r"<script>(.*)</script>", html, re.S).group(1)
    MiniRacer().eval(f"new Function({json.dumps(script)}); 1")


def every_explorer():
    """Each public function of each source's ``explorers`` module makes one."""
    from inferlib import ledger
    from inferlib.principles import explorers as principles

    modules = {source: ledger._open(source).get("explorers") for source in ledger.sources()}
    for source, module in (modules | {"principles": principles}).items():
        for name, make in vars(module).items() if module else ():
            if (
                callable(make)
                and getattr(make, "__module__", "") == module.__name__
                and not name.startswith("_")
            ):
                yield pytest.param(make, id=f"{source}.{name}")


@pytest.mark.parametrize("make", list(every_explorer()))
def test_every_explorer_computes_in_javascript_what_python_computes(make):
    shown, random = make(), np.random.default_rng(3)
    assert len(shown._repr_html_()) < 30_000
    for _ in range(10):
        values = random_inputs(shown, random)
        assert run(shown, values) == pytest.approx(list(shown.evaluate(**values).values()), rel=1e-9)
