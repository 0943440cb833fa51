"""Typed text is read whole or refused, in agreement with a second parser without patterns and with the page."""

import json
import random
import re
from itertools import product

import pytest
from facts import from_table, lines
from py_mini_racer import MiniRacer

from book.calculator import page as calculator_page
from tokenprice import Question, ask, catalog, parsing

N = 3000  # words of each field
NUMBERS = [text for (text,) in lines("numbers_typed")]
TAILS = ("", "", "", "", " Ti", ", 3", " or so", "!", "x", " 2", "/", "%%")
LARGE = {"": 1, "k": 1024, "m": 1024**2}
TOKENS = {a + b: n for (a, n), b in product(LARGE.items(), ("", "token", "tokens"))}
SPEEDS = {unit: -1 for unit in ("/s", "tok/s", "token/s", "tokens/s")}
TIMES = {"": 1, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60} | SPEEDS
EACH = {"/s": 1, "/min": 1 / 60, "/h": 1 / 60**2, "/day": 1 / 24 / 60**2}
RATES = {a + b: n for a, (b, n) in product(("", "req", "request", "requests"), EACH.items())}
RATES |= {"": 1, "rps": 1, "qps": 1}
HOURS = ("", "/h", "/hour", "/gpu", "/chip", "/gpu/h", "/chip/h")
# How each field is read, its units, and its least value, its most and whether it is whole.
FIELDS = {
    name: (getattr(parsing, f"parse_{reader}"), eval(units), (float(least), float(most), whole == "whole"))
    for name, reader, units, least, most, whole in lines("fields")
}
MONEY = ("price", "usd_per_million", "electricity")
FOREIGN = ("k", "%", "ms", "/s", "tokens", "usd", "h", "gb")


@pytest.fixture(scope="module")
def page():
    """The parsers of the page: from a list of texts to their values, None for a refused one."""
    engine = MiniRacer()
    engine.eval(calculator_page.core() + "const A=inferlibAsk(D);")

    def read(function, typed):
        call = f"JSON.stringify({json.dumps(typed)}.map((text)=>{{const v={function};return v??null}}))"
        return json.loads(engine.eval(call))

    return read


def typed(name, units, draw):
    """A random number with a unit, in people's spellings, with a slip now and then."""
    unit = draw.choice([*units, *units, draw.choice(FOREIGN)])
    if name in MONEY:
        unit = draw.choice(("", "", "$", "usd")) + unit
    gap = draw.choice(("", "", " ", "  "))
    unit = draw.choice((unit, unit.upper(), unit.replace("/", " / "), f"{unit} "))
    number = draw.choice((*NUMBERS, str(draw.randrange(1, 10**6)), f"{draw.random() * 100:.3g}"))
    text = (
        draw.choice(("", "", "$") if name in MONEY else ("", "", "", " "))
        + number
        + gap
        + unit
        + draw.choice(TAILS)
    )
    if draw.random() < 0.2:
        at = draw.randrange(len(text) + 1)
        text = text[:at] + draw.choice(" ,._ekms%$/x0123456789") + text[at + draw.randrange(2) :]
    return text


def number(text, commas):
    """A number as it is written, or None: digits in groups, or what Python itself calls a number."""
    for sign in ",_" if commas else "_":
        first, *rest = text.split(sign)
        if rest:
            groups = all(len(one) == 3 for one in rest) and 1 <= len(first) <= 3
            digits = all(one.isascii() and one.isdigit() for one in (first, *rest))
            return float("".join((first, *rest))) if groups and digits else None
    if not text or text[0] not in ".0123456789" or set(text) - set("0123456789.e+-"):
        return None
    try:
        return float(text)
    except ValueError:
        return None


PREFIXES = "cached", "shared_prefix"


def second(name, text):
    """Parse by splitting after the last digit and looking both parts up; None if refused."""
    _, units, (least, most, whole) = FIELDS[name]
    text, usd = text.strip().lower(), name in MONEY
    if usd and text.startswith("$"):
        text, usd = text[1:].strip(), False
    end = max((k for k, letter in enumerate(text) if letter in ".0123456789"), default=-1) + 1
    value, unit = number(text[:end], "k" in units or "/day" in units), "".join(text[end:].split())
    for coin in ("usd", "$") if usd and unit not in units else ():
        unit = unit.removeprefix(coin)
    if value is None or unit not in units:
        return None
    if name in PREFIXES and (unit == "%" or unit == "" and 0 < value <= 1):
        share = value if unit else 100 * value
        return f"{share:.6g}%" if 0 < share < 100 else None if share else 0.0
    if name in PREFIXES and unit == "" and 1 < value < 2:
        return None
    if units[unit] == -1:
        return 1 / value if value else None
    value, bare = value * units[unit], name in ("tpot", "ttft") and unit
    if not least <= value or value > (1e300 if bare else most) or whole and value % 1:
        return None
    return value


def alike(found):
    return f"{float(found[:-1]):.6g}%" if isinstance(found, str) else found


@pytest.mark.parametrize("name", FIELDS)
def test_a_number_is_read_to_what_it_says_or_refused(name, page):
    """The same in Python, by a second reader, and on the page."""
    draw = random.Random(name)
    read, units, _ = FIELDS[name]
    every = [typed(name, list(units), draw) for _ in range(N)]
    answered = 0
    for text, there in zip(every, page(f"A.read({json.dumps(name)},text)", every), strict=True):
        try:
            found = read(name, text)
        except (ValueError, LookupError) as refused:
            assert re.search(rf"{name} is .*(must be|did you mean)|no curve", str(refused)), text
            found = None
        expected = second(name, text)
        for one in (found, there):
            if one is there and isinstance(expected, float) and not 1e-9 <= expected <= 1e12:
                continue  # the page ends there
            assert (one is None) == (expected is None), (text, one, expected)
            same = (
                expected
                if isinstance(expected, str)
                else expected is not None and pytest.approx(expected, rel=1e-9)
            )
            assert one is None or alike(one) == same, (text, one, expected)
        answered += found is not None
    assert N / 30 < answered < N / 2


CHIPS = {typed: name or None for typed, name in lines("chips_typed")}
COUNTED = (
    "{n}x {chip}",
    "{n} x {chip}",
    "{n}× {chip}",
    "{chip} x{n}",
    "{chip}:{n}",
    "{n}*{chip}",
    "{n}x {chip}s",
    "{n} {chip}",
    "{chip}x{n}",
)


def test_a_machine_is_read_to_what_it_says_or_refused(page):
    draw, meant = random.Random(8), {chip: name and (name, 1) for chip, name in CHIPS.items()}
    for chip, form in product(CHIPS, COUNTED):
        n = draw.choice((1, 2, 8, 72))
        meant[form.format(n=n, chip=chip)] = CHIPS[chip] and (CHIPS[chip], n)
        for noise in ("1,0{}", "{} Ti", "{}, 2", "{} or more", "2.5{}", "0{}"):
            text = noise.format(form.format(n=8, chip=chip))
            meant[text] = (
                (CHIPS[chip], 8)
                if text.startswith("0") and form[0] == "{" and form[1] == "n" and CHIPS[chip]
                else None
            )
    for text, there in zip(meant, page("A.machineOf(text)", list(meant)), strict=True):
        try:
            found = parsing.parse_machine("machine", text)
        except (ValueError, LookupError):
            found = None
        assert (found and (found.chip.name, found.count)) == meant[text], text
        assert (there and (there["chip"], there["n_chips"])) == meant[text], text


DEGREES = ("TP8", "tp=8", "PP 2", "DP8", "EP64", "ep8")


def test_a_layout_is_read_to_what_it_says_or_refused(page):
    draw, every = random.Random(4), {}
    for _ in range(N):
        parts = draw.sample(DEGREES, draw.randint(1, 3))
        text = draw.choice((" x ", " ", "", " with ", ", ", "+", " and ")).join(parts)
        text = (
            draw.choice(("", "", "attention "))
            + text
            + draw.choice(("", "", "", " banana", " x", "8", " one chip"))
        )
        kinds = [part[:2].lower() for part in parts]
        good = len(set(kinds)) == len(kinds) and " and " not in text and "banana" not in text
        good = good and not text.endswith((" x", "one chip"))
        degrees = {kind: int(part.lower().strip("tpde= ")) for kind, part in zip(kinds, parts, strict=True)}
        if text.endswith("88") or text.endswith(("28", "648")) and good:
            degrees[kinds[-1]] = int(str(degrees[kinds[-1]]) + "8")
        every[text] = {"tp": 1, "pp": 1, "dp": 1, "ep": 1} | degrees if good else None
    for text, there in zip(every, page("A.layout({layout:text})", list(every)), strict=True):
        try:
            found = parsing.parse_layout("layout", text)
            found = {kind: getattr(found, kind) for kind in ("tp", "pp", "dp", "ep")}
        except ValueError:
            found = None
        assert found == there == every[text], text


@pytest.mark.parametrize(("text", "mean"), lines("lengths"))
def test_lengths_that_differ_are_read_whole_or_refused(text, mean, page):
    (there,) = page(
        "((at)=>at.every(Number.isFinite)?at.reduce((a,b)=>a+b)/at.length:null)(A.lengths('prompt_tokens',text))",
        [text],
    )
    try:
        found = float(parsing.parse_tokens("prompt_tokens", text))
    except ValueError:
        found = None
    assert (found, there) == (pytest.approx(float(mean), rel=1e-6) if mean else None,) * 2


@from_table
def test_parts_are_read_whole_or_refused(text, page):
    assert page("A.keepOf(text)", [text]) == [None]
    with pytest.raises((ValueError, LookupError)):
        parsing.parse_layer_formats("layer_formats", text)


@from_table
def test_an_engine_is_one_name_and_perhaps_its_version(text, meant):
    try:
        assert parsing.parse_engine("engine", text) == meant
    except LookupError as refused:
        assert meant is None and "no engine" in str(refused)


def test_a_share_of_a_prompt_may_be_a_number_and_holds_no_part_of_a_token():
    asked = {"model": "Llama 3 8B", "prompt_tokens": 7200, "output_tokens": 1000}
    assert (
        Question(**asked, cached=0.833).cached
        == Question(**asked, cached="83.3%").cached
        == pytest.approx(5997.6)
    )
    assert Question(**asked | {"prompt_tokens": 8}, cached="10%").cached == 0


def test_every_chip_and_model_of_the_catalogue_has_one_name_on_the_page_and_in_python(page):
    for what, names in (("chip", catalog.chips()), ("model", catalog.models())):
        spelled = [*names, *(name.upper() for name in names), *(f"{name} banana" for name in names)]
        found = page(f"A.known('{what}',text)", spelled)
        assert found[: 2 * len(names)] == names * 2
        assert found[2 * len(names) :] == spelled[2 * len(names) :]


@pytest.mark.parametrize(("name", "gigabytes"), lines("stored_sizes"))
def test_a_name_means_the_checkpoint_of_its_maker(name, gigabytes):
    model = catalog.load_model(name)
    size = sum(n * model.formats.get(part, 2) for part, n in model.parameters().items())
    assert size / 1e9 == pytest.approx(float(gigabytes), rel=0.01)


@from_table
def test_a_format_that_only_the_name_states_is_a_caution(name, caution):
    assert ("is read from the name" in str(ask(name, "16x B200").warnings)) == caution


@from_table
def test_another_publishers_file_is_named(typed, file):
    answer = ask(typed, "16x B200", batch=8)
    assert f"the file of {file}" in str(answer.warnings) if file else "the file of" not in str(answer)


@pytest.mark.parametrize(("named", "model", "weights"), lines("checkpoints"))
def test_a_checkpoint_weighs_the_same_by_its_name_and_by_its_format(named, model, weights, page):
    one, other = ask(named, "8x H200"), ask(model, "8x H200", weights=weights)
    assert one.step.terms == other.step.terms and one.max_sequences == other.max_sequences
    if one.question.model.name in catalog.served():
        state = {
            "model": one.question.model.name,
            "chip": "H200",
            "n_chips": 8,
            "layout": "",
            "engine": "",
            "layer_formats": {},
        }
        states = [json.dumps(state | {"weights": name, "kv_cache_dtype": ""}) for name in ("", weights)]
        assert len(set(page("A.step(JSON.parse(text),1,4096).seconds", states))) == 1
