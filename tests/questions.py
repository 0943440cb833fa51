"""Questions of tests, from records: a step of a workload, and a request; and questions at random."""

import re
from math import log2

from tokenprice import Question, ask
from tokenprice.words import Bytes


def step(model, system, work, layout=None, **more):
    """The answer to a step of a workload."""
    weights, cache = (f if isinstance(f, str) else Bytes(f) for f in (work.weights, work.cache))
    more = {"weights": weights, "cache": cache, **more}
    return ask(Question(model, system, batch=work.batch, context=work.context, layout=layout, **more))


def request(model, system, prompt, output, users, **more):
    """What a request takes and costs, in 16 bits unless said otherwise."""
    return ask(
        model, system, prompt=prompt, output=output, users=users, **{"weights": "bf16", **more}
    ).request


def numbers(text):
    """The numbers in a text, those of names such as H100 left out."""
    return [float(n.replace(",", "")) for n in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e-\d+)?", text)]


MACHINES = ("H100 SXM", "H200", "B200", "A100 80GB", "L40S", "MI300X", "RTX 4090", "GB200 NVL72")
MODELS = (
    "Llama 3.3 70B", "Llama 3 8B", "DeepSeek V3", "GPT-OSS 120B", "Qwen3 30B-A3B", "Mixtral 8x7B", "Kimi K2",
    "Qwen/Qwen3.5-397B-A17B",
)  # fmt: skip


def drawn(choose, kind):
    """The answer to a question at random about a step, a loop or a fleet; nothing where it cannot be asked."""

    def between(low, high):
        return int(2 ** choose.uniform(log2(low), log2(high)))

    chips = choose.choice((1, 2, 4, 8))
    asked = {
        "step": {"batch": between(1, 200), "context": between(500, 30_000)},
        "loop": {"users": between(1, 500)},
        "fleet": {"arrivals": 2 ** choose.uniform(-4, 6)},
    }[kind]
    asked |= {"layout": f"DP{chips} EP{chips}"} if chips > 1 and choose.random() < 0.3 else {}
    if kind != "step":
        asked |= {"prompt": between(50, 60_000), "output": between(1, 4000)}
        asked |= {"chunk": choose.choice((None, None, 512, 2048))}
        asked |= {"reader": "2x H100"} if choose.random() < 0.1 else {}
        asked |= {"drafted": 2, "length": 1.8} if choose.random() < 0.1 else {}
    for name, word in (("weights", "fp8"), ("cache", "fp8"), ("engine", "trtllm")):
        asked |= {name: word} if choose.random() < 0.3 else {}
    if kind == "loop":
        asked |= {"equal": choose.random() < 0.3, "rounds": choose.choice((None, None, 1, 5))}
        asked |= {"hold": choose.choice((None, None, 20))}
    try:
        return ask(choose.choice(MODELS), f"{chips}x {choose.choice(MACHINES)}", **asked)
    except ValueError:  # such a model has no such layout, or such a chip no network
        return None
