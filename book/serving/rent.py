"""What to rent for a service: machines, how many, dollars a month, and what it costs to be sure."""

import pandas as pd

from tokenprice import Question, decide
from tokenprice.words import durations

# Three services: requests (tokens of prompt and answer, requests per second), and what is promised.
SERVICES = {
    "chat": (
        {"prompt": "1k ± 50%", "output": 300, "arrivals": 5},
        {"token": "50 tokens/s", "first_token": "1 s"},
    ),
    "agent": (
        {"prompt": "8k", "cached": "90%", "output": 500, "arrivals": 2},
        {"token": "80 tokens/s", "first_token": "2 s"},
    ),
    "batch job": (
        {"prompt": "4k", "output": 500, "arrivals": 10},
        {"token": "10 tokens/s", "first_token": "60 s"},
    ),
}


def rented(offer):
    """The machines of an offer, what they cost, and what 99 of 100 requests wait where that was simulated."""
    if offer is None:
        return "no machine keeps the promise"
    slowest = offer.p99.get("first")
    wait = f", 99 of 100 first tokens within {durations(slowest[0])}" if slowest else ""
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
        (f"{name}: {_in_words(**SERVICES[name][0], **SERVICES[name][1])}", *map(rented, found))
        for name, found in offers(model, chips).items()
    ]
    return pd.DataFrame(rows, columns=["service", "cheapest by the estimate", "cheapest that is sure"])


def _in_words(prompt, output, arrivals, token, first_token, cached=None):
    """What is asked and promised."""
    asked = f"{prompt} tokens{f' ({cached} cached)' if cached else ''} in and {output} out"
    return f"{arrivals} requests a second, {asked}; {token}, first token in {first_token}"
