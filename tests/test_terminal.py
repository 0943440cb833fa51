"""Python, terminal and widget agree on random questions, refusals included; mistakes are one line and exit code 2."""

import json
import random
import subprocess
import sys

import pytest

import inferlib
from inferlib import System, Workload, estimate_request, load_chip, load_model
from inferlib.serving import decide, estimate, must_change
from inferlib.serving.answer import answer
from inferlib.serving.decide import in_words, layouts
from inferlib.serving.typed import layout_of, published, tokens
from inferlib.terminal import main

MODELS = (
    "Llama 3.3 70B", "Llama 3 8B", "DeepSeek V3", "GPT-OSS 120B", "Qwen3 235B-A22B", "Mixtral 8x7B", "Gemma 9",
    "Qwen/Qwen3.5-397B-A17B", "deepseek-ai/DeepSeek-R1", "Qwen3 32B", "PaLM 540B", "Llama 4 Scout",
)  # fmt: skip
QUESTIONS = 500


def question(draw):
    """One question as the terminal takes it; some of them make no sense."""
    chip, count = draw.choice(inferlib.catalog.chips()), draw.choice((1, 1, 2, 4, 8, 8, 16, 64, 72))
    asked = {
        "model": draw.choice(MODELS), "chip": chip, "count": count,
        "weights": draw.choice(("bf16", "fp8", "fp4", "int4")), "cache": draw.choice(("bf16", "fp8")),
        "engine": draw.choice((None, None, "compiled", "serving", "python-2024")),
        "price": draw.choice((None, None, 2.5, -1.0)) if draw.random() < 0.5 else None, "layout": None,
    }  # fmt: skip
    if asked["model"] != "Gemma 9" and draw.random() < 0.6:
        found = layouts(load_model(asked["model"]), load_chip(chip), count)
        asked["layout"] = in_words(draw.choice(found)) if found else None
        asked["layout"] = None if asked["layout"] in (f"TP{count}", "one chip") else asked["layout"]
    if draw.random() < 0.5:
        return asked | {
            "batch": draw.choice(("1", "8", "64", "512", "-3")),
            "context": draw.choice(("1k", "8192")),
        }
    prompt, cached = draw.choice((200, 2000, 16000)), draw.choice((0, 0, 100, 2500))
    return asked | {
        "prompt": str(prompt), "cached": str(cached), "output": draw.choice(("0", "100", "800")),
        "users": draw.choice(("1", "16", "300")),
    }  # fmt: skip


def library(asked):
    """Code, and what matters of the answer, by the records and functions of the library alone."""
    try:
        model, system = load_model(asked["model"]), System(load_chip(asked["chip"]), asked["count"])
        layout = asked["layout"] and layout_of(asked["layout"])
        more = {"layout": layout, "engine": asked["engine"]}
        price = system.chip.price if asked["price"] is None else asked["price"]
        formats = asked["weights"], asked["cache"]
        if price is not None and price <= 0:
            return 2, None
        if "batch" in asked:
            work = Workload(tokens("", asked["batch"]), tokens("", asked["context"]), *formats)
            e = estimate(model, system, work, **more)
            if not e.step.feasible:
                return 1, e.step.reason
            return 0, (e.seconds, e.low, e.high, e.binding, e.cautions)
        lengths = [float(asked[name]) for name in ("prompt", "output", "users", "cached")]
        if lengths[3] >= lengths[0] or not lengths[1]:
            return 2, None
        r = estimate_request(
            model, system, *lengths[:3], cached_tokens=lengths[3], weights=formats[0], cache=formats[1], price=price,
            **more,
        )  # fmt: skip
    except LookupError:
        return 2, None
    except ValueError as refused:
        return (1 if "no room" in str(refused) or "no answer" in str(refused) else 2), None
    money = r.per_million if price is not None else {}
    return 0, (r.first_token, r.token, r.users, money, r.cautions)


def of_json(said):
    """The same of what ``--json`` prints and ``to_dict`` returns."""
    if said["status"] != "ok":
        return said["reason"]
    if "request" in said:
        r = said["request"]
        return r["first_token"], r["token"], r["users"], r["usd_per_million"], tuple(said["cautions"])
    return tuple(said[name] for name in ("seconds", "low", "high", "binding")) + (tuple(said["cautions"]),)


def typed(asked):
    """The command line of a question."""
    line = ["ask", asked["model"], "--chip", f"{asked['count']}x {asked['chip']}", "--json"]
    for name in ("weights", "cache", "engine", "price", "layout", "batch", "context", "prompt", "output", "cached",
                 "users"):  # fmt: skip
        if asked.get(name) is not None:
            line.append(f"--{name}={asked[name]}")
    return line


def clicked(box, asked):
    """The same question in the widget."""
    values = {name: asked[name] for name in ("model", "chip", "count", "weights", "cache")}
    values |= {"layout": asked["layout"] or "", "engine": asked["engine"] or "not known"}
    values |= {"price": "" if asked["price"] is None else str(asked["price"])}
    tab = "A step" if "batch" in asked else "A request"
    names = ("batch", "context") if "batch" in asked else ("prompt", "output", "cached", "users")
    return box.ask(tab, **values, **{name: asked[name] for name in names})


def test_python_terminal_and_widget_agree_on_random_questions(capsys):
    pytest.importorskip("ipywidgets")
    draw, box, codes = random.Random(23), inferlib.widget(), []
    for _ in range(QUESTIONS):
        asked = question(draw)
        code, expected = library(asked)
        codes.append(code)
        assert main(typed(asked)) == code, asked
        printed = capsys.readouterr()
        found = clicked(box, asked)
        if code == 2:
            assert not printed.out and printed.err.count("\n") == 1 and found is None, asked
            continue
        assert not printed.err
        seen, shown = of_json(json.loads(printed.out)), of_json(found.to_dict())
        assert seen == shown, asked
        if expected is not None:
            assert seen == pytest.approx(expected) if code == 1 else _same(seen, expected), asked
    assert min(codes.count(code) for code in (0, 1, 2)) > 40


def _same(seen, expected):
    """Numbers to rounding, words exactly."""
    for one, other in zip(seen, expected, strict=True):
        if isinstance(other, (dict, float, int)):
            assert one == pytest.approx(other, rel=1e-12)
        else:
            assert one == other
    return True


def said(capsys, *line):
    code = main(list(line))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("ask Llama-3.3-7B --chip H100", "did you mean 'Llama 3.3 70B'"),
        ("ask Llama-3.3-70B --chip 4xH10O", "did you mean"),
        ("ask Llama-3.3-70B", "arguments are required: --chip"),
        ("ask Llama-3.3-70B --chip H100 --wieghts fp8", "did you mean --weights"),
        ("ask Llama-3.3-70B --chip H100 --weights fp9", "no format of weights 'fp9'; did you mean 'fp8'"),
        ("ask Llama-3.3-70B --chip H100 --layout TQ8", "layout is 'TQ8', but must be like"),
        ("ask Llama-3.3-70B --chip H100 --context 8q", "context is '8q', but must be a number"),
        ("ask Llama-3.3-70B --chip H100 --batch 0", "batch is 0, but must be positive"),
        ("ask Llama-3.3-70B --chip H100 --prompt 8", "needs both prompt and output"),
        ("ask Llama-3.3-70B --chip H100 --prompt 8 --output 8 --batch 2", "belong to a step"),
        ("ask Llama-3.3-70B --chip H100 --cached 8", "cached is 8, but needs a prompt"),
        ("ask Llama-3-8B --chip H100 --drafted 3", "drafts need both"),
        ("ask Llama-3-8B --chip H100 --drafted 3 --length 9", "length is 9"),
        (
            "ask Llama-3-8B --chip H100 --drafted 3 --length R1",
            "no curve 'R1'; did you mean 'DeepSeek R1, MTP'",
        ),
        ("ask Llama-3.3-70B --chip H100 --price x", "invalid float value"),
        ("ask Llama-3.3-70B --chip H100 --keep attention", "--keep is 'attention', but must be like"),
        ("ask Llama-3.3-70B --chip H100 --chip-file absent.toml", "absent.toml"),
        ("ask absent/config.json --chip H100", "absent/config.json"),
        ("akk Llama-3.3-70B", "no command 'akk'; did you mean 'ask'"),
        ("decide Llama-3.3-70B --prompt 8 --output 8 --counts 1,x", "--counts is 'x'"),
        ("decide Llama-3.3-70B --prompt 8 --output 8 --price H100=cheap", "must be like H100=2.5"),
        ("decide Llama-3.3-70B --prompt 8 --output 8 --chips H101", "did you mean"),
        ("change Llama-3.3-70B --chip 8xH100", "one of the arguments --ms --usd is required"),
        ("", "arguments are required: COMMAND"),
    ],
)
def test_mistakes_are_one_line(capsys, line, told):
    code, out, err = said(capsys, *line.split())
    assert (code, out) == (2, "") and err.startswith("inferlib: ") and err.count("\n") == 1 and told in err


def test_decide_agrees_with_the_library(capsys):
    line = "decide Llama-3.3-70B --speed 40 --first-token 1 --prompt 2k --output 500 --cached 1k --weights fp8 --json"
    code, out, _ = said(
        capsys, *line.split(), "--chips", "H100, H200", "--counts", "4,8", "--price", "H100=2-4"
    )
    found = decide(
        load_model("Llama 3.3 70B"), speed=40, first_token=1, prompt_tokens=2048, output_tokens=500,
        cached_tokens=1024, weights="fp8", chips=["H100", "H200"], counts=(4, 8), prices={"H100": (2, 4)},
    )  # fmt: skip
    told = json.loads(out)
    assert code == 0 and len(told["offers"]) == len(found.offers) > 1
    for row, offer in zip(told["offers"], found.offers, strict=True):
        kept = (
            "chip",
            "count",
            "layout",
            "users",
            "usd_per_request",
            "first_token",
            "usd_per_request_highest",
        )
        assert [row[name] for name in kept] == [offer.row()[name] for name in kept]
    assert told["why_not"] == found.why_not and len(told["frontier"]) == len(found.frontier())
    code, out, _ = said(capsys, *line.split(), "--speed", "100000")
    assert code == 1 and json.loads(out)["offers"] == []
    box = inferlib.widget()
    seen = box.ask("Decide", **{
        "model": "Llama 3.3 70B", "weights": "fp8", "speed": "40", "first token, s": "1", "prompt": "2k",
        "output": "500", "cached": "1k",
    })  # fmt: skip
    whole = decide(
        load_model("Llama 3.3 70B"), speed=40, first_token=1, prompt_tokens=2048, output_tokens=500,
        cached_tokens=1024, weights="fp8",
    )  # fmt: skip
    assert str(seen) == str(whole)


def test_change_agrees_with_the_library(capsys):
    line = "change Llama-3.3-70B --chip 4xH100 --weights fp8 --batch 32 --context 8k --json"
    machine, work = System(load_chip("H100"), 4), Workload(32, 8192, "fp8")
    for option, target in (("--ms=12", {"seconds": 0.012}), ("--usd=2", {"dollars_per_million": 2})):
        code, out, _ = said(capsys, *line.split(), option)
        found = must_change(load_model("Llama 3.3 70B"), machine, work, **target)
        assert code == 0 and json.loads(out)["changes"] == [vars(change) for change in found.changes]


def test_drafts(capsys):
    """The published acceptance of three drafts: 2.82 tokens a step, 2.28 times the speed (within a tenth)."""
    line = [
        "ask",
        "DeepSeek-R1",
        "--chip",
        "8x B200",
        "--weights",
        "fp4",
        "--context",
        "1k",
        "--json",
        "--drafted=3",
    ]
    code, out, _ = said(capsys, *line, "--length", "DeepSeek R1, MTP")
    told = json.loads(out)
    assert code == 0 and told["seconds"] / told["drafted"] == pytest.approx(2.28, rel=0.1)
    assert told == json.loads(said(capsys, *line, "--length", "2.82")[1])


def test_a_chip_and_a_model_of_ones_own(capsys, tmp_path):
    """A chip typed with the numbers of one in the catalogue answers alike, but for what nobody timed."""
    path, config = tmp_path / "chips.toml", tmp_path / "config.json"
    path.write_text('[mine]\npeaks = { bf16 = "989.5 TFLOP/s", fp8 = "1979 TFLOP/s" }\nprice = "1 usd/h"\n'
                    'memory_bandwidth = "3.35 TB/s"\nmemory_capacity = "80 GB"\nscale_up_size = 8\n'
                    'scale_up_bandwidth = "450 GB/s"\nscale_out_bandwidth = "50 GB/s"\npower = "700 W"\n')  # fmt: skip
    config.write_text(json.dumps({
        "model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
        "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256, "hidden_act": "silu",
        "architectures": ["LlamaForCausalLM"], "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    }))  # fmt: skip
    more = ["--weights", "fp8", "--batch", "32", "--context", "8k", "--json"]
    _, out, _ = said(capsys, "ask", str(config), "--chip", "4x mine", "--chip-file", str(path), *more)
    own, usual = json.loads(out), answer("Llama 3.3 70B", "4x H100", weights="fp8", batch=32, context="8k")
    assert own["seconds"] == pytest.approx(usual.estimate.seconds, rel=1e-3)
    assert own["usd_per_million"] == pytest.approx(usual.dollars_per_million / 3.99, rel=1e-3)
    assert any("nobody timed operators of mine" in caution for caution in own["cautions"])
    line = ["decide", str(config), "--speed=20", "--prompt=1k", "--output=500", "--json", *more[:2]]
    _, out, _ = said(capsys, *line, "--chip-file", str(path))
    assert json.loads(out)["offers"][0]["chip"] == "mine"


def test_formats_of_a_checkpoint():
    """GPT-OSS keeps attention and head at 16 bits: its experts are 4.25 bits, and a step reads five gigabytes."""
    assert published(load_model("Llama 3 70B")) == ("bf16", {}, "bf16")
    weights, keep, cache = published(load_model("nvidia/Llama-3.1-70B-Instruct-FP8"))
    assert (weights, keep, cache) == ("fp8", {}, "fp8")
    oss = answer("gpt-oss-120b", "H100", context="1k")
    assert oss.keep["attention"] == "bf16" and oss.workload.weights == 0.53125
    read = sum(oss.estimate.step.terms[name] for name in ("weights", "expert weights"))
    assert read * 3.35e12 == pytest.approx(5.0e9, rel=0.25)
    said = answer("deepseek-ai/DeepSeek-R1", "8x H200").estimate
    plain = estimate(load_model("DeepSeek V3"), System(load_chip("H200"), 8), Workload(1, 4096, "fp8"))
    assert said.seconds == pytest.approx(plain.seconds, rel=1e-3)


def test_words_and_layouts_go_both_ways():
    for name, count in (("DeepSeek V3", 64), ("Llama 3 70B", 16), ("Llama 3 70B", 1)):
        for layout in layouts(load_model(name), load_chip("H100"), count):
            again = layout_of(in_words(layout))
            assert all(getattr(again, kind) == getattr(layout, kind) for kind in ("tp", "pp", "ep", "dp"))
    assert tokens("n", "1M") == 1024**2 and tokens("n", "0.5k") == 512


def test_lists(capsys):
    code, out, _ = said(capsys, "chips", "--json")
    assert code == 0 and [row["name"] for row in json.loads(out)] == inferlib.catalog.chips()
    assert dict((row["name"], row["price"]) for row in json.loads(out))["H100 SXM"] == load_chip("H100").price
    code, out, _ = said(capsys, "models", "deepseek")
    assert code == 0 and "DeepSeek V3 " in out and "671" in out
    assert said(capsys, "models", "nothing of this name")[0] == 1


def test_the_command_is_quick_and_imports_little():
    """An answer needs no pandas, SymPy, xarray or Matplotlib."""
    code = (
        "import sys; from inferlib.terminal import main; main(['ask', 'Llama 3 70B', '--chip', '8x H100']); "
        "print({'pandas', 'sympy', 'xarray', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()" and "ms a token" in done.stdout
