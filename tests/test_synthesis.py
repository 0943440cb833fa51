"""All models asked the same question: common terms add up, gains keep their limits, and no answer is guessed."""

import json
import re
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest
import sympy as sp
from facts import from_table, lines, refused

from book import audit
from book.audit import filter_table, grading
from book.synthesis import constants, figures, grid
from inferlib import System, Workload, frontier, load_chip, load_model, papers
from inferlib.system import Breakdown
from tokenprice import predictors

BOOK = Path(__file__).parents[1] / "book"
ASKED = MODEL, BOX, WORK = grid.running()
ANSWER = [key for key in predictors.keys() if predictors.ask(key, *ASKED).feasible]
EVERYBODY = pytest.mark.parametrize("key", predictors.keys())


@pytest.fixture(scope="module")
def card():
    return audit.scorecard()


# --- Who answers -----------------------------------------------------------------------------------------


TEXTS = ["red apple, T_{Exposed}", "green pear", "red </script> plum 18 us"]
FRUIT = pd.DataFrame({"a": TEXTS, "n": [1, 2, 3], "at": ["x", "y", "z"]})


test_argument_checks = refused(globals())


# --- Common terms ----------------------------------------------------------------------------------------
@EVERYBODY
def test_every_term_of_every_room_has_a_common_name(key):
    """Checked on all questions of the grid; a new source with unknown terms fails here."""
    asked = grid.questions()
    for name, formats in asked["formats"].items():
        model, chip = load_model(name), load_chip("H200")
        for batch in (1, 512):
            system = grid.system_for(model, chip, formats[0])
            step = predictors.ask(key, model, system, Workload(batch, 4096, *formats))
            names = {predictors.common_name(key, term) for term in step.terms}
            assert names <= set(predictors.vocabulary()["common"]) - {"other"}, (key, step.terms)


def test_what_fits_nowhere_has_reasons_and_no_bars():
    table = grid.decomposition(load_model("GPT-3 175B"), System(load_chip("H100 SXM"), 2), WORK)
    assert list(table.columns) == [] and "needs 968 GB" in table.attrs["infeasible"]["kernel model"]


def test_hidden_terms_are_not_counted():
    step = Breakdown(({"network": 2.0, "arithmetic": 1.0}, {"kernel": 0.5}), source="steinhardt2022")
    terms = predictors.common_terms(step)
    assert (terms["collective bandwidth"], terms["arithmetic"], terms["kernel launch"]) == (2.0, 0.0, 0.5)


# --- Versions --------------------------------------------------------------------------------------------
def test_a_version_answers_beside_its_source_and_has_no_vote():
    (key,) = papers.versions("liminal2025")
    everybody = predictors.keys()
    assert everybody.index(key) == everybody.index("liminal2025") + 1 and key not in papers.sources()
    assert papers.source_of(key) == "liminal2025" and predictors.label(key) == "LIMINAL 2025, eq. 8"
    with_it = grid.what_doubling_buys(*ASKED)
    without = grid.what_doubling_buys(*ASKED, keys=grid.FIVE)
    for column in ("lowest", "highest", "sources"):
        assert with_it[column].equals(without[column]), column
    # it would have been the lowest: a third of the time is spent reading
    assert with_it.loc["twice the memory bandwidth", predictors.label(key)] < with_it.lowest.iloc[0]


def test_equation_8_of_the_running_question_by_hand():
    """141 GB less embeddings and head, the cache, and 80 layers of 114 microseconds."""
    reading = (2 * 68.451e9 + 32 * 4096 * 327680) / (8 * 3.35e12)
    step = predictors.ask("liminal2025.eq8", *ASKED)
    assert step.total == pytest.approx(reading + 80 * 114e-6, rel=1e-4) and step.source == "liminal2025"
    ends = figures.printed_ends("liminal2025.eq8")
    low, high = (papers.ask("liminal2025.eq8", *ASKED, assumptions=end) for end in ends)
    assert (low.total, high.total) == pytest.approx((reading + 80 * 95e-6, reading + 80 * 138e-6), rel=1e-4)
    same = constants.ask("liminal2025.eq8", *ASKED, "same")
    assert same.total == pytest.approx(step.total)  # its constant is the equation


# --- The grid --------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def small():
    models, chips = ["Llama 3 70B", "DeepSeek V3"], ["H100 SXM", "H200"]
    return grid.grid(model=models, chip=chips, batch=[1, 64], context=[1024, 65536])


def test_the_grid_is_what_everybody_answers(small):
    at = dict(who="principles", model="Llama 3 70B", chip="H100 SXM", batch=64, context=1024)
    step = predictors.ask("principles", MODEL, BOX, Workload(64, 1024))
    point = small.sel(at)
    assert (float(point.latency), float(point.tokens_per_second)) == (step.total, 1 / step.total)
    # a chip costs 3.99 dollars an hour in the catalogue
    assert float(point.usd_per_million) == pytest.approx(step.total / 64 * 8 * 3.99 / 3600 * 1e6, rel=1e-9)


def test_a_frontier_of_the_grid_trades_cost_for_the_speed_of_a_user(small):
    """By default: a small batch is fast and dear, a large one slow and cheap, and both are there."""
    table = frontier.pareto(small.sel(who="kernels", model="Llama 3 70B", context=1024))
    assert set(table.batch) == {1, 64} and table.tokens_per_second.iloc[0] > table.tokens_per_second.iloc[-1]
    assert table.usd_per_million.iloc[0] > 10 * table.usd_per_million.iloc[-1]


def test_nobody_who_counts_the_cache_is_faster_than_the_bound(small):
    for key in set(ANSWER) - {"steinhardt2022", "principles"}:
        both = small.latency.sel(who=["principles", key], context=1024).dropna("batch", how="any")
        assert both.isnull().all() or bool((both.sel(who=key) >= 0.97 * both.sel(who="principles")).all())


def test_models_get_whole_boxes(small):
    assert int(small["count"].sel(model="DeepSeek V3", chip="H100 SXM")) == 16
    assert int(small["count"].sel(model="DeepSeek V3", chip="H200")) == 8
    for model in ("PaLM 540B", "Llama 3.1 405B"):
        for chip in grid.questions()["chips"]:
            system = grid.system_for(load_model(model), load_chip(chip), "bf16")
            needed = sum(load_model(model).weight_bytes("bf16").values())
            assert system.memory * 0.75 >= needed and (system.count == 8 or system.memory * 0.375 < needed)


def test_coverage_counts_every_question(small):
    table = grid.coverage(small)
    assert (table[["answers", "infeasible", "n/a"]].sum(axis=1) == 16).all()
    assert table.loc["Steinhardt 2022", "n/a"] == 8  # a mixture of experts


def test_same_constants_leave_structure_only():
    at = {"model": ["Llama 3 70B"], "chip": ["H100 SXM"], "context": [1024]}
    same = grid.grid(who=["erdil2025", "steinhardt2022"], constants="same", **at)
    told = grid.constants_or_structure(same, same)
    assert told["structure"] == pytest.approx(1) and told["own"] == told["same"] > 1
    # two answers: the factor between them, by hand
    logs = np.log(same.latency)
    spread = float(((logs.sel(who="erdil2025") - logs.sel(who="steinhardt2022")) ** 2).mean())
    assert told["same"] == pytest.approx(np.exp(np.sqrt(spread)), rel=1e-9)


def test_own_constants_are_the_source_s():
    """Erdil's H100 reads 3.3 TB/s, three quarters of it attained; the catalogue's 3.35."""
    steps = predictors.ask("erdil2025", *ASKED), constants.ask("erdil2025", *ASKED, "same")
    own, same = (predictors.common_terms(step)["weights"] for step in steps)
    assert own / same == pytest.approx(3.35 / 3.3 / 0.75, rel=1e-9)


def test_same_constants_are_peaks():
    """With the same constants all read the same cache in the same time, whatever their own assumptions about memory."""
    dense = ("principles", "pope2022", "erdil2025", "liminal2025")
    cache = [constants.ask(key, *ASKED, "same").terms["cache"] for key in dense]
    assert np.ptp(cache) < 1e-9
    # Mazurek's two halves of the batch read one cache between them, at the peak
    rack, asked = System(load_chip("H200"), 32), Workload(1024, 4096, "fp8", "bf16")
    step = constants.ask("mazurek2025", load_model("DeepSeek V3"), rack, asked, "same")
    values = 61 * 1024 / 32 * 4096 * (512 + 64) * 2
    assert step.terms["cache"] == pytest.approx(values / 4.8e12, rel=1e-3)


# --- What doubling buys ----------------------------------------------------------------------------------
def test_gains_of_the_bound():
    buys = grid.what_doubling_buys(MODEL, BOX, Workload(1, 128), keys=["principles"])["bound of the peaks"]
    assert buys["twice the memory bandwidth"] == pytest.approx(2)
    assert buys["twice the arithmetic"] == pytest.approx(1) == buys["twice the links"]
    assert buys["half the bytes of weights and cache"] == pytest.approx(2)
    assert buys["twice the chips"] == pytest.approx(2) and np.isnan(buys[grid.LATENCY])


@pytest.mark.parametrize("key", ANSWER)
@pytest.mark.parametrize("change", ["twice the memory bandwidth", "twice the arithmetic", "twice the links"])
def test_nothing_buys_more_than_its_factor_or_costs_speed(key, change):
    gain = grid.speedup(key, change, *ASKED)
    assert 1 - 1e-9 <= gain <= 2 + 1e-9


def test_half_the_latency_by_hand():
    """LIMINAL at one microsecond a collective: two in each of 80 layers, plus a transfer that is not halved."""
    before = constants.ask("liminal2025", *ASKED, "same").total
    gain = grid.speedup("liminal2025", grid.LATENCY, *ASKED)
    assert gain == pytest.approx(before / (before - 80 * 2 * 0.5e-6))
    assert grid.speedup("erdil2025", grid.LATENCY, *ASKED) > gain
    for key in ("steinhardt2022", "pope2022", "mazurek2025"):
        assert np.isnan(grid.speedup(key, grid.LATENCY, *ASKED))


# A batch of half a sequence cannot be asked, and no format is half as wide as four bits.
@from_table
def test_a_change_that_cannot_be_is_blank(change, work):
    assert np.isnan(grid.speedup("principles", change, MODEL, BOX, work))


# --- The back of the book --------------------------------------------------------------------------------


# As much of a page as the finder's script touches.
PAGE = """
function element() { return { children: [], on: {}, value: "", dataset: {}, hidden: false,
  set textContent(t) { this.text = t; if (t === "") this.children = []; }, get textContent() { return this.text; },
  append(...c) { this.children.push(...c); }, appendChild(c) { this.children.push(c); return c; },
  addEventListener(n, f) { this.on[n] = f; } }; }
const parts = { tbody: element(), ".readout": element(), input: element(), button: element() }, on = {};
const menu = element(), words = parts.input; menu.dataset = { column: "1", key: "n" }; words.dataset.key = "q";
const entries = [], location = { hash: "", search: "" };
const document = { createElement: element, querySelectorAll: (q) => q.startsWith("article") ? entries : sections,
  getElementById: () => ({ querySelector: (q) => parts[q], querySelectorAll: () => [menu] }) };
const sections = [];
const history = { replaceState: (a, b, to) => { location.hash = to; } };
const addEventListener = (name, f) => { if (name === "DOMContentLoaded") f(); else on[name] = f; };
class URLSearchParams { constructor(text) { this.pairs = text.replace("?", "").split("&").map((p) => p.split("=")); }
  get(key) { const found = this.pairs.find((p) => p[0] === key); return found ? decodeURIComponent(found[1]) : null; } }
const type = (e, text) => { e.value = text; e.on.input(); };
const shown = () => parts.tbody.children.map((tr) => tr.children.map((td) => td.text)[0]);
"""


def opened(page, *before):
    """Run a page's own script; return functions that run a line and that return a value."""
    from py_mini_racer import MiniRacer

    assert page.count("</script>") == 1
    js = MiniRacer()
    for code in (PAGE, *before, re.search(r"<script>(.*)</script>", page, re.S)[1]):
        js.eval(code)
    return js.eval, lambda value: json.loads(js.eval(f"JSON.stringify({value})"))


@pytest.fixture
def fruit():
    """The page's own script on a small table: functions that run a line and that return a value."""
    linked = {"at": ["2.html", "", "2.html"]}
    return opened(filter_table.Finder(FRUIT, "Fruit", ("n",), linked, page=2)._repr_html_())


# subscripts and units as one types them; a number is a whole one; names of JavaScript are no words of the page
@from_table
def test_the_finder_finds(typed, found, fruit):
    do, look = fruit
    do(f"type(words, {json.dumps(typed)})")
    assert look("shown()") == found


@from_table
def test_a_search_finds_by_stems_symbols_and_places(typed, first):
    """The word status contains tau, Table 5 a 3; a section's own title comes first; question words are ignored."""
    rows = [[[title, "x.html"], text] for title, text in lines("sections")]
    config = json.dumps({"id": "x", "ranked": True, "page": 9, "noun": "rows", "rows": rows})
    script = (BOOK / "audit" / "filter_table.js").read_text("utf-8").strip()
    _, look = opened(f"<script>location.hash = '#find?q={quote(typed)}';{script}({config});</script>")
    assert look("parts.tbody.children[0].children[0].children[0].text") == first


def test_a_broken_equation_says_the_same():
    """Substituting the named parts back, the last first, gives the equation again."""
    from book.audit.number_format import WIDTH, _short, _width, wrap_lines
    from inferlib.equation import EQUATIONS, latex

    grading._open("mazurek2025")
    for name in ("attention_time", "expert_time"):
        entry = EQUATIONS["mazurek2025", name]
        whole, named = entry.expression(), {}
        short = _short(whole, named)
        assert named and _width(latex(short)) < _width(latex(whole))
        for symbol, part in reversed(named.values()):
            short = short.subs(symbol, part)
        assert sp.simplify(short - whole) == 0
        assert len(wrap_lines(entry.latex(), lambda left="t", right=whole: (left, right))) > len(named)
    assert wrap_lines("t = a", None) == ["t = a"] and _width("t = " + "a" * WIDTH) > WIDTH
