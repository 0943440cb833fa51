"""Recommendations for three services: machines, their number, dollars per month, and the price of certainty."""

from book import stored
from book.frames import frame
from tokenprice import Question, decide
from tokenprice.calibration import stored_bytes
from tokenprice.formatting import format_dtype, format_time

SERVICES = stored.toml("serving/services.toml")


def machine_price(offer):
    """Return the machines of an offer, what they cost, and simulated p99."""
    if offer is None:
        return "no machine meets the SLO"
    slowest = offer.row().get("ttft_p99")
    wait = f", 99 of 100 first tokens within {format_time(slowest)}" if slowest else ""
    return f"{offer.fleet.machinery}, ${offer.fleet.dollars_per_month:,.0f} a month{wait}"


def offers(model, chips, formats=None, sure=(False, True)):
    """Return for each of the three services the cheapest fleet, and the one that meets its SLO at the slow end too.

    ``formats``: fields of the question, such as ``weights`` (default: the checkpoint's). ``sure``: which of the two.
    """
    asked = {name: Question(model, **one["request"], **(formats or {})) for name, one in SERVICES.items()}
    return {
        name: [decide(question, **SERVICES[name]["slo"], chips=chips, sure=one).best for one in sure]
        for name, question in asked.items()
    }


@frame("service", "cheapest by the estimate", "cheapest that is sure", "cheapest with weights in fp8")
def services(model, chips, **formats):
    """:func:`offers` in words, with load and SLO, and the cheapest fleet with weights in fp8."""
    found = offers(model, chips, formats)
    own = Question(model, **formats).formats[0]
    wide = stored_bytes(own) > 1
    narrow = offers(model, chips, formats | {"weights": "fp8"}, sure=(False,)) if wide else {}

    def cheapest(name):
        return machine_price(*narrow[name]) if wide else f"they are in {format_dtype(own)}"

    return [
        (f"{name}: {_in_words(**SERVICES[name])}", *map(machine_price, found[name]), cheapest(name))
        for name in SERVICES
    ]


def _in_words(request, slo):
    """Format the load and the SLO."""
    cached = f" ({request['cached']} cached)" if "cached" in request else ""
    asked = f"{request['prompt_tokens']} tokens{cached} in and {request['output_tokens']} out"
    return (
        f"{request['request_rate']} requests a second, {asked}; {slo['tpot']}, first token in {slo['ttft']}"
    )
