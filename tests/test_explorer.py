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

CHIPS = {name: inferlib.load_chip(name) for name in ("H100 SXM", "H200", "B200")}
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
            values[i.name] = 10**raw if i.log else raw
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


def test_whole_runtime_runs(tmp_path):
    """The drawing code against a small stand-in for the page: it must fill picture and readout."""
    dom = """
    const made = [];
    const element = (name) => ({
      name, children: [], style: {}, set innerHTML(v) { this.html = v; }, get innerHTML() { return this.html; },
      setAttribute() {}, appendChild(c) { this.children.push(c); made.push(c.name); },
      removeChild(c) { this.children.pop(); },
      get lastChild() { return this.children[this.children.length - 1]; }, addEventListener() {}, nodeName: name});
    const inputs = INPUTS, cache = {};
    const root = element("root");
    root.querySelector = (s) => {
      if (cache[s]) return cache[s];
      const e = element(s);
      for (const k in inputs) if (s.startsWith("#") && s.endsWith("-" + k)) Object.assign(e, inputs[k]);
      return (cache[s] = e);
    };
    const document = { getElementById: () => root, createElementNS: (_, n) => element(n) };
    const requestAnimationFrame = (f) => f();
    """
    controls = {
        i.name: {"value": str(i.position(i.value))} if isinstance(i, Slider) else {"selectedIndex": 0}
        for i in INPUTS
    }
    for shown in (CURVES, BARS):
        script = re.search(r"<script>(.*)</script>", shown._repr_html_(), re.S).group(1)
        page = dom.replace("INPUTS", json.dumps(controls)) + script
        result = MiniRacer().eval(page + ";JSON.stringify([made.length, cache['.readout'].html])")
        drawn, readout = json.loads(result)
        assert drawn > 8
        for value in shown.evaluate().values():
            assert f"<b>{float(f'{value:.3g}'):g}</b>" in readout


def test_html_is_deterministic_and_small():
    first, second = CURVES._repr_html_(), CURVES._repr_html_()
    assert first == second and len(first) < 20_000
    assert "http://" not in first.replace("http://www.w3.org/2000/svg", "") and "https://" not in first
    assert first.count('<label for="') == len(INPUTS)


def test_two_explorers_have_two_ids():
    ids = {re.search(r'id="(ex-[0-9a-f]+)"', shown._repr_html_()).group(1) for shown in (CURVES, BARS)}
    assert len(ids) == 2


def test_fields_that_an_option_lacks_are_not_offered():
    assert "chip_price" not in CURVES.arguments()
    with pytest.raises(ValueError, match="no input for chip_price"):
        explorer.curves(
            "p", [Slider("x", "x", 1, 2, 1), Choice("chip", "Chip", CHIPS)],
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

    for source in ledger.sources():
        module = ledger._open(source).get("explorers")
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
