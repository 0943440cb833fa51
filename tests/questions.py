"""Questions of tests, from records: a step of a workload, and a request; and questions at random."""

import json
import re
from functools import cache
from math import log2
from pathlib import Path

from facts import lines, options_of

from tokenprice import Question, ask, decide
from tokenprice.parsing import Bytes


def step(model, system, work, layout=None, **more):
    """The answer to a step of a workload."""
    weights, cache = (f if isinstance(f, str) else Bytes(f) for f in (work.weights, work.cache))
    more = {"weights": weights, "kv_cache_dtype": cache, **more}
    return ask(Question(model, system, batch=work.batch, context=work.context, layout=layout, **more))


def request(model, system, prompt, output, concurrency, **more):
    """The request of a question, in 16 bits unless given otherwise."""
    return ask(
        model,
        system,
        prompt_tokens=prompt,
        output_tokens=output,
        concurrency=concurrency,
        **{"weights": "bf16", **more},
    ).request


TRACES = Path(__file__).parents[1] / "book" / "measured" / "traces"
MACHINE = {"azure_code": "4x H100", "azure_conv": "4x H100", "mooncake_conversation": "8x B200"}
BOX = {"model": "Llama 3 8B", "machine": "4x H100"}
SERVED = {"prompt_tokens": "2000", "output_tokens": "200", "concurrency": "8"}
FLEET = {"prompt_tokens": "2000", "output_tokens": "200", "request_rate": "5"}
RENTED = {"model": "Llama 3 8B", "prompt_tokens": "2000", "output_tokens": "200", "chips": "L40S"}
WORK = {"": BOX, "step": BOX | {"batch": "8"}, "served": BOX | SERVED, "fleet": BOX | FLEET, "rented": RENTED}


def recorded(name, **more):
    """A question with the requests of a trace."""
    return Question("Llama 3.3 70B", MACHINE[name], weights="fp8", trace=TRACES / f"{name}.csv", **more)


def options():
    """Every option of Question and SLO: other options that it needs, two values, whether a link holds it."""
    for name, beside, *pair, linked in lines("options"):
        work, _, more = beside.partition(", ")
        pair = [f"{TRACES}/{value}" if name == "trace" else value or None for value in pair]
        yield name, WORK[work] | options_of(more), pair, linked == "yes"


OPTIONS = list(options())


def answered(about, **more):
    """The answer of ``ask`` to some options, or of ``decide`` if no machine is named."""
    return _answered(json.dumps(about | more))


@cache
def _answered(options):
    asked = json.loads(options)
    given = [asked.pop(name) for name in ("model", "machine") if name in asked]
    return (ask if len(given) == 2 else decide)(*given, **asked)


def numbers(text):
    """The numbers in a text, without those of names such as H100."""
    return [float(n.replace(",", "")) for n in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e-\d+)?", text)]


MACHINES = ("H100 SXM", "H200", "B200", "A100 80GB", "L40S", "MI300X", "RTX 4090", "GB200 NVL72")
MODELS = (
    "Llama 3.3 70B", "Llama 3 8B", "DeepSeek V3", "GPT-OSS 120B", "Qwen3 30B-A3B", "Mixtral 8x7B", "Kimi K2",
    "Qwen/Qwen3.5-397B-A17B",
)  # fmt: skip


def drawn(choose, kind):
    """The answer to a random question about a step, a loop or a fleet; None if the question is refused."""

    def between(low, high):
        return int(2 ** choose.uniform(log2(low), log2(high)))

    chips = choose.choice((1, 2, 4, 8))
    asked = {
        "step": {"batch": between(1, 200), "context": between(500, 30_000)},
        "loop": {"concurrency": between(1, 500)},
        "fleet": {"request_rate": 2 ** choose.uniform(-4, 6)},
    }[kind]
    asked |= {"layout": f"DP{chips} EP{chips}"} if chips > 1 and choose.random() < 0.3 else {}
    if kind != "step":
        asked |= {"prompt_tokens": between(50, 60_000), "output_tokens": between(1, 4000)}
        asked |= {"max_num_batched_tokens": choose.choice((None, None, 512, 2048))}
        asked |= {"prefill_machine": "2x H100"} if choose.random() < 0.1 else {}
        asked |= {"draft_tokens": 2, "acceptance_length": 1.8} if choose.random() < 0.1 else {}
    for name, word in (("weights", "fp8"), ("kv_cache_dtype", "fp8"), ("engine", "trtllm")):
        asked |= {name: word} if choose.random() < 0.3 else {}
    if kind == "loop":
        asked |= {
            "fixed_lengths": choose.random() < 0.3,
            "requests_per_user": choose.choice((None, None, 1, 5)),
        }
        asked |= {"batching_wait_iters": choose.choice((None, None, 20))}
    try:
        return ask(choose.choice(MODELS), f"{chips}x {choose.choice(MACHINES)}", **asked)
    except ValueError:  # such a model has no such layout, or such a chip no network
        return None
