"""Questions of tests, from records: a step of a workload, and a request."""

import re

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
