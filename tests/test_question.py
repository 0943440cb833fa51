"""One question has one answer, in Python and in the terminal; what people type is read."""

import io
import json
import os
import pickle
import random
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
from facts import by_hand, exactly, from_table, lines
from questions import BOX as USUAL, FLEET, OPTIONS, SERVED, answered, numbers

import inferlib
import tokenprice
from book.site.tools import signatures
from inferlib import Workload, load_chip
from tokenprice import SLO, Question, ask, load_model, parsing
from tokenprice.ask import REMARKS
from tokenprice.calibration import checkpoint_formats  # noqa: F401, by_hand.tsv
from tokenprice.deployment import decode_step, layouts
from tokenprice.formatting import format_layout
from tokenprice.parsing import parse_layout, parse_machine
from tokenprice.question import group_of, parse_options
from tokenprice.terminal import as_option, main

MODELS = (
    "Llama 3.3 70B", "Llama 3 8B", "DeepSeek V3", "GPT-OSS 120B", "Qwen3 235B-A22B", "Mixtral 8x7B", "Gemma 9",
    "Qwen/Qwen3.5-397B-A17B", "deepseek-ai/DeepSeek-R1", "Qwen3 32B", "PaLM 540B", "Llama 4 Scout",
)  # fmt: skip
L8, L70, L33, BOX = "Llama 3 8B", "Llama 3 70B", "Llama 3.3 70B", "4x H100"


def same(out, found):
    """Assert that the terminal prints Python's answer as JSON."""
    return json.loads(out) == json.loads(json.dumps(found.to_dict()))


def question(draw):
    """A step, a loop or a fleet with some more options, as words of the terminal and of Python; some make no sense."""
    chip, count = draw.choice(inferlib.catalog.chips()), draw.choice((1, 1, 2, 4, 8, 8, 16, 64, 72))
    asked = draw.choice(({"batch": "8"}, SERVED, FLEET))
    asked = asked | {"model": draw.choice(MODELS), "machine": f"{count}x {chip}"}
    more = [option for option in OPTIONS if option[0] in Question.names() and group_of(option[0])]
    for name, beside, pair, _ in draw.sample(
        [one for one in more if one[0] not in asked], draw.randint(1, 2)
    ):
        beside = {key: word for key, word in beside.items() if key not in USUAL and "batch" in asked}
        asked |= beside | {name: draw.choice(pair)}
    return {name: word for name, word in asked.items() if word is not None}


def test_python_and_terminal_agree_on_random_questions(capsys):
    """``QUESTIONS`` random questions (default 20), at most 300."""
    n, draw, codes = min(int(os.environ.get("QUESTIONS", 20)), 300), random.Random(23), []
    for _ in range(n):
        asked = question(draw)
        line = [
            f"--{name.replace('_', '-')}={value}"
            for name, value in asked.items()
            if name not in ("model", "machine")
        ]
        code = main(["ask", asked["model"], asked["machine"], "--json", *line])
        printed = capsys.readouterr()
        codes.append(code)
        try:
            found = ask(asked.pop("model"), asked.pop("machine"), **asked)
        except (ValueError, LookupError, TypeError) as mistake:
            assert code == 2 and not printed.out and printed.err.count("\n") == 1, asked
            assert as_option(" ".join(str(mistake).split())) in printed.err
            continue
        assert code == (0 if found.feasible else 1) and not printed.err
        assert same(printed.out, found), asked
        again = pickle.loads(pickle.dumps(ask(Question(**found.question.words()))))
        assert again.to_dict() == found.to_dict(), asked
    assert min(codes.count(code) for code in (0, 1, 2)) > n / 12


def test_a_step_is_the_step_of_the_equations():
    """Checked with ``decode_step``, which parses no text."""
    model, box = load_model("Llama 3.3 70B"), parse_machine("", "4x H100")
    found = ask(model, "H100x4", batch=32, context="8k", weights="FP8", price="$2", paid_hours_used="40%")
    step = decode_step(model, box, Workload(32, 8192, "fp8"))
    assert found.seconds == step.total and found.low < step.total < found.high
    assert found.usd_per_million == pytest.approx(4 * 2 / 0.4 / 3600 * step.total / 32 * 1e6)
    drafted = ask(found.question.replace(draft_tokens=3, acceptance_length=2.6))
    factor = drafted.seconds / found.seconds
    assert 1 / 2.6 < factor < 1
    assert drafted.usd_per_million / found.usd_per_million == pytest.approx(factor)
    assert drafted.joules < found.joules


def test_the_bar_of_an_answer_is_as_long_as_its_step():
    found = ask(L33, BOX, batch=32, context="8k")
    drawn = sum(float(length) for length in re.findall(r"flex:([\d.]+)", found._repr_html_()))
    plotted = sum(bar.get_width() for bar in found.plot().patches)
    assert (drawn, plotted) == pytest.approx((1e3 * found.seconds,) * 2, rel=1e-3)


def test_the_headline_of_a_request_is_the_requests():
    """200 users wait for one another's prompts; what all of them get cannot exceed what the machine makes."""
    found = ask(L33, BOX, weights="fp8", prompt_tokens="2k", output_tokens=500, concurrency=200)
    assert found.seconds == found.request.tpot > found.step.total
    assert found.throughput <= found.batch / found.step.total
    assert line(found, "TPOT").strip().startswith(f"{1e3 * found.seconds:.3g} ms (")
    assert found.request.per_million.keys() == {"input", "output"}  # nothing was cached


def test_everybody_answers_one_question():
    found = ask(L70, "8x H100", batch=32, context=4096, by="all")
    assert list(found) == tokenprice.predictors.keys() and found["kernels"].low and "eq. 8" in str(found)
    refused = ask(L70, "8x H100", prompt_tokens=1000, output_tokens=100, by="liminal2025")
    assert refused.status == "n/a" and "does not describe requests" in refused.reason


def test_a_layout_that_fits_is_named():
    found = ask("deepseek-ai/DeepSeek-R1", "8x H200", batch=256)
    assert found.status == "infeasible" and " fits." in str(found) and found.speedup_if_doubled == {}
    assert ask(found.question.replace(layout="DP8 EP8")).feasible
    assert "TP8 fits." in ask(L33, "8x H100", layout="TP4").notes
    assert "maximum" in str(ask(L33, "8x H200", context="200k", weights="fp8"))


@from_table
def test_what_a_caution_says_to_ask_shortens_tpot(users):
    """With few users the machine has copies that decode nothing at times."""
    wide = ask(
        "DeepSeek V3", "8x H200", layout="DP8 EP8", prompt_tokens="4k", output_tokens="1k", concurrency=users
    )
    assert "ask with prefill_machine" in str(wide)
    other = ask(wide.question.replace(prefill_machine="8x H200"))
    assert other.seconds < wide.seconds and "ask with prefill_machine" not in str(other)


# What a practitioner typed, and what it means; numbers of Python are bits of a weight, tokens and a length.
TYPED = [(name, word, eval(meant)) for name, word, meant in lines("typed")]
TYPED += [("weights", 4, 0.5), ("weights", 32, "fp32"), ("weights", 1, 1 / 8), ("context", 0, 0)]
REQUESTS = dict.fromkeys(("cached", "fixed_lengths"), {"prompt_tokens": "60k", "output_tokens": 300})


@pytest.mark.parametrize(("name", "typed", "meant"), TYPED)
def test_what_people_type_is_read(name, typed, meant):
    assert getattr(Question(L70, **{name: typed}, **REQUESTS.get(name, {})), name) == meant


@pytest.mark.parametrize(("line", "words"), lines("mistakes"))
def test_mistakes_are_one_line(capsys, line, words):
    assert main(shlex.split(line)) == 2
    printed = capsys.readouterr()
    assert not printed.out and printed.err.startswith("tokenprice: ") and printed.err.count("\n") == 1
    assert words in printed.err and len(printed.err) < 500


def run(capsys, *line):
    code = main(list(line))
    return code, capsys.readouterr().out


def test_decide_and_change_are_those_of_python(capsys):
    words = {"prompt_tokens": "2k", "output_tokens": "500", "cached": "1k", "weights": "FP8"}
    words |= {"tpot": "40 tokens/s", "ttft": "1s"}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in words.items()]
    line = ["decide", "Llama-3.3-70B", *options]
    code, out = run(
        capsys, *line, "--json", "--chips=H100, H200", "--counts=4,8", "--prices=H100: 2-4; B300=9"
    )
    offers = {"chips": "H100;H200", "counts": "4, 8", "prices": "H100=2-4; B300: $9"}
    found = tokenprice.decide(L33, **words, **offers)
    assert code == 0 and same(out, found) and len(found.offers) > 1
    _, told = run(capsys, *line, "--chips=H100, H200")
    assert "\n5  " in told and "\n6  " not in told and "more machines meet the SLO" in told
    code, out = run(capsys, *(word.replace("40 tokens/s", "1us") for word in line), "--json")
    assert code == 1 and json.loads(out)["offers"] == []
    for name, value in (("tpot", "12 ms"), ("usd_per_million", "$2")):
        asked = (
            "change",
            "Llama-3.3-70B",
            "4xH100",
            "--weights=fp8",
            f"--{name.replace('_', '-')}={value}",
            "--json",
        )
        code, out = run(capsys, *asked)
        assert code == 0 and same(out, tokenprice.change(L33, BOX, weights="fp8", **{name: value}))


def test_options_of_other_tools_mean_the_same(capsys):
    """Those of vLLM, SGLang's benchmark and aiconfigurator."""
    line = "--isl 2k --osl 500 --dtype fp8 --kv-cache-dtype fp8 --request-rate 2 --max-num-seqs 64"
    code, out = run(capsys, "ask", "Llama-3.3-70B", "4xH100", *line.split(), "--json")
    more = {
        "prompt_tokens": 2048,
        "output_tokens": 500,
        "weights": "fp8",
        "kv_cache_dtype": "fp8",
        "request_rate": 2,
        "max_num_seqs": 64,
    }
    told = ask(L33, BOX, **more)
    assert code == 0 and same(out, told)
    assert "2 requests/s" in str(told) and "1 request/s" in str(ask(told.question.replace(request_rate=1)))


def test_drafts_are_as_much_faster_as_published_and_say_so():
    # the published acceptance of three drafts: 2.82 tokens a step, 2.28 times the speed (within a tenth)
    asked = Question("DeepSeek-R1", "8x B200", weights="fp4", context="1k", engine="trtllm")
    drafted = ask(asked.replace(draft_tokens=3, acceptance_length="DeepSeek R1, MTP"))
    assert drafted.seconds == ask(asked.replace(draft_tokens=3, acceptance_length=2.82)).seconds
    said = float(re.search(r"Drafts +(.*) times as fast", str(drafted))[1])
    assert (ask(asked).seconds / drafted.seconds, said) == pytest.approx((2.28, 2.28), rel=0.1)


PAID = {"weights": "fp8", "price": "2-3", "paid_hours_used": "50%"}
DRAFTING = ask(L33, BOX, batch=32, context="8k", draft_tokens=3, acceptance_length=2.6, **PAID)
SHARING = ask(L33, BOX, concurrency=16, prompt_tokens="2k", output_tokens=500, cached=1000, **PAID)


def line(found, label):
    """What an answer prints behind a label."""
    (said,) = re.findall(f"^{label}(.*)", str(found), re.M)
    return said


D, S = DRAFTING.to_dict(), SHARING.to_dict()
PLAIN = ask(DRAFTING.question.replace(draft_tokens=None, acceptance_length=None))
PARTS = [SHARING.request.fresh_seconds, SHARING.request.cached_seconds, SHARING.request.output_seconds]


def ends(dollars, d):
    """Dollars at both ends: half as long costs half, and the slow end is also the most expensive seller's."""
    return [dollars, dollars * d["low"] / d["seconds"], 1.5 * dollars * d["high"] / d["seconds"]]


def speeds(d):
    return [*(1e3 * d[name] for name in ("seconds", "low", "high")), 80, d["speed"], d["tokens_per_second"]]


@from_table
def test_an_answer_says_its_numbers(found, label, numbers_of_it):
    assert numbers(line(found, label)) == pytest.approx(numbers_of_it, rel=0.03)


def test_a_request_costs_the_rent_of_its_parts():
    cents, first = 100 * S["request"]["usd"], S["request"]
    assert cents == pytest.approx(100 * np.dot((1048, 1000, 500), [*first["usd_per_million"].values()]) / 1e6)
    assert cents == pytest.approx(100 * 4 * 2 / 0.5 / 3600 * sum(PARTS))
    assert first["ttft_low"] * first["ttft_high"] == pytest.approx(first["ttft"] ** 2)
    assert S["tokens_per_second"] == pytest.approx(500 * 16 / SHARING.request.seconds)


def test_without_a_price_there_are_no_dollars():
    assert line(ask(L33, "8x H800", weights="fp8"), "Price").endswith("no price is known")


def test_a_chip_and_a_model_of_ones_own(capsys, tmp_path):
    """A chip with the numbers of one in the catalogue gives its answers, except for kernels that were not timed."""
    path, config = tmp_path / "chips.toml", tmp_path / "config.json"
    path.write_text('[mine]\npeaks = { bf16 = "989.5 TFLOP/s", fp8 = "1979 TFLOP/s" }\nprice = "1 usd/h"\n'
                    'memory_bandwidth = "3.35 TB/s"\nmemory_capacity = "80 GB"\nscale_up_size = 8\n'
                    'scale_up_bandwidth = "450 GB/s"\nscale_out_bandwidth = "50 GB/s"\npower = "700 W"\n')  # fmt: skip
    config.write_text(json.dumps({
        "model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
        "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256, "hidden_act": "silu",
        "architectures": ["LlamaForCausalLM"], "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    }))  # fmt: skip
    more = ["--weights", "fp8", "--json", "--chip-file", str(path)]
    _, out = run(capsys, "ask", str(config), "4x mine", "--batch", "32", "--context", "8k", *more)
    own, usual = json.loads(out), ask(L33, BOX, weights="fp8", batch=32, context="8k")
    assert own["seconds"] == pytest.approx(usual.seconds, rel=1e-3)
    assert own["usd_per_million"] == pytest.approx(usual.usd_per_million / 3.99, rel=1e-3)
    assert any("mine" in caution for caution in own["warnings"])
    _, out = run(
        capsys, "decide", str(config), "--tpot=20/s", "--prompt-tokens=1k", "--output-tokens=500", *more
    )
    assert json.loads(out)["offers"][0]["chip"] == "mine"


def test_fewer_bits_that_take_longer_are_said_to():
    """R1 on eight B200 is faster in 16 bits than in 4, which the answer once did not say."""
    four, sixteen = (
        ask("deepseek-ai/DeepSeek-R1", "8x B200", weights=name, context="2k") for name in ("fp4", "bf16")
    )
    slow = f"In bf16 a step would take {1e3 * sixteen.seconds:.3g} ms: fp4 kernels have longer fixed times"
    assert sixteen.seconds < four.seconds and slow in str(four) and "would take" not in str(sixteen)
    for model, box, weights in (("Llama 3 70B", "8x H100", "fp8"), ("Kimi K2", "8x B200", None)):
        assert "would take" not in str(
            ask(model, box, weights=weights)
        )  # two terabytes in 16 bits do not fit


test_formats_by_hand = exactly("test_formats_by_hand", globals())


def test_formats_that_are_not_understood_are_asked_for():
    shape = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32}
    shape |= {"num_attention_heads": 32, "vocab_size": 128256, "quantization_config": {"quant_method": "hqq"}}
    unread = load_model(shape)
    with pytest.raises(ValueError, match="not given, and how .* not understood: quant_method is 'hqq'"):
        ask(unread, "H100")
    assert ask(unread, "H100", weights="bf16").feasible


def test_words_and_layouts_go_both_ways():
    for name, count in (("DeepSeek V3", 64), ("Llama 3 70B", 16), ("Llama 3 70B", 1)):
        for one in layouts(load_model(name), load_chip("H100"), count):
            assert parse_layout("layout", format_layout(one)) == one


@from_table
def test_what_is_written(found, words):
    assert found == words


def test_of_prices_the_lowest_its_seller_and_the_highest_count():
    listed = {"H100": "$2", "H200": (2, 4), "B200": {"dear": 6, "cheap": 5}, "mine": [1]}
    told = {"H100 SXM": (2, "", None), "H200": (2, "", 4), "B200": (5, "cheap", 6), "mine": (1, "", None)}
    assert parsing.parse_prices(listed, ["mine"]) == told


def test_a_chip_of_ones_own_has_a_price_too():
    mine = load_chip("H100").replace(name="mine")
    asked = {"model": L8, "machine": "8x mine", "prices": {"mine": 2}}
    assert parse_options(asked, {"mine": mine})[0]["price"] == 2


PAID = Question(L8, "H100", price="2-4", electricity=0.10, pue=1.3, paid_hours_used="50%")
test_work_and_dollars_by_hand = by_hand("test_work_and_dollars_by_hand", globals())


@from_table
def test_a_terminal_prints_what_it_can(encoding, printed, monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    assert main(["ask", L70, "8x H100"]) == 0 and printed in raw.getvalue()
    monkeypatch.setattr(sys, "stdout", plain := io.StringIO())  # which has no encoding
    assert main(["ask", L70, "8x H100"]) == 0 and "8 × H100" in plain.getvalue()
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["ask", L70, "8x H100"]) == 0


def test_who_reads_the_first_lines_only_is_told_of_no_mistake_and_ctrl_c_ends_with_the_code_of_shells(
    monkeypatch,
):
    """128 and the number of the signal, as POSIX shells tell of a command that SIGINT ended."""
    command = [sys.executable, "-m", "tokenprice", "models"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        running.stdout.close()
        assert (running.wait(), running.stderr.read()) == (0, b"")
    monkeypatch.setattr("tokenprice.terminal._answer", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    assert main(["chips"]) == 128 + 2


# Billions (the card of DeepSeek V3: 671 and 37, 163,840); GB, TB/s and TFLOP/s.
@from_table
def test_a_list_is_in_the_units_that_people_use(what, name, printed, capsys):
    code, out = run(capsys, what, *name.split())
    assert code == 0 and re.search(printed, out)


def test_a_list_of_nothing_is_an_error(capsys):
    assert run(capsys, "models", "nothing of this name")[0] == 1


def test_editors_see_the_fields_as_they_are_declared():
    """``python -m book.site.tools.signatures`` writes the file."""
    assert signatures.PATH.read_text("utf-8") == signatures.text()


def test_every_option_has_a_pair_of_values():
    assert {name for name, *_ in OPTIONS} == {*Question.names(), *SLO.names()}


@pytest.mark.parametrize(("name", "beside", "pair", "linked"), OPTIONS)
def test_every_option_has_an_effect(name, beside, pair, linked):
    one, other = (answered(beside, **{name: value}) for value in pair)
    if name in SLO.names():
        assert one.offers != other.offers
        return
    one, other = one.to_dict(), other.to_dict()
    counted = set(one) - {"question", "model", "machine", "layout"}
    assert any(one[what] != other[what] for what in counted)


LONG = {"prompt_tokens": 30720, "output_tokens": 300, "weights": "fp8"}


@from_table
def test_whether_requests_share_is_asked_where_users_wait_for_memory(more, noted):
    """Memory has room for 21 of these requests."""
    assert (REMARKS["prefix"] in ask(L33, BOX, **LONG, cached="97%", **more).notes) == noted


def test_a_prompt_that_all_share_takes_the_memory_of_one():
    """Each user has the last token of the prompt and half of the answer."""
    tokens = Question(L33, BOX, **LONG).max_sequences() * (30720 + 150)
    shared = Question(L33, BOX, **LONG, shared_prefix=30719).max_sequences()
    assert shared == pytest.approx((tokens - 30719) / (1 + 150))
