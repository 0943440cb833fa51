"""What to rent for a service: machines, how many, dollars a month, and what it costs to be sure."""

import pandas as pd

from tokenprice import Question, decide
from tokenprice.formatting import format_time

# Three services: requests (tokens of prompt and answer, requests per second), and what is promised.
SERVICES = {
    "chat": (
        {"prompt_tokens": "1k ± 50%", "output_tokens": 300, "request_rate": 5},
        {"tpot": "50 tokens/s", "ttft": "1 s"},
    ),
    "agent": (
        {"prompt_tokens": "8k", "cached": "90%", "output_tokens": 500, "request_rate": 2},
        {"tpot": "80 tokens/s", "ttft": "2 s"},
    ),
    "batch job": (
        {"prompt_tokens": "4k", "output_tokens": 500, "request_rate": 10},
        {"tpot": "10 tokens/s", "ttft": "60 s"},
    ),
}


def machine_price(offer):
    """The machines of an offer, what they cost, and what 99 of 100 requests wait where that was simulated."""
    if offer is None:
        return "no machine keeps the promise"
    slowest = offer.p99.get("first")
    wait = f", 99 of 100 first tokens within {format_time(slowest[0])}" if slowest else ""
    return f"{offer.fleet.machinery}, ${offer.fleet.dollars_per_month:,.0f} a month{wait}"


def offers(model, chips):
    """For each of the three services the cheapest fleet, and the one that keeps its promise at the slow end as well."""
    return {
        name: [
            decide(Question(model, **work), **promise, chips=chips, sure=sure).best for sure in (False, True)
        ]
        for name, (work, promise) in SERVICES.items()
    }


def services(model, chips):
    """:func:`offers` in words, beside what is asked and promised."""
    rows = [
        (f"{name}: {_in_words(**SERVICES[name][0], **SERVICES[name][1])}", *map(machine_price, found))
        for name, found in offers(model, chips).items()
    ]
    return pd.DataFrame(rows, columns=["service", "cheapest by the estimate", "cheapest that is sure"])


def _in_words(prompt_tokens, output_tokens, request_rate, tpot, ttft, cached=None):
    """What is asked and promised."""
    asked = f"{prompt_tokens} tokens{f' ({cached} cached)' if cached else ''} in and {output_tokens} out"
    return f"{request_rate} requests a second, {asked}; {tpot}, first token in {ttft}"
