"""Text from the kernel model beside the bounds of a story."""

from bisect import bisect

import inferlib
import tokenprice
from book.style import Text
from tokenprice.formatting import format_dtype


def question_in_words(case):
    """Describe the case's request, and the decode step that sources describe."""
    step, share = case.step(), f"{100 * (case.cached or 0) / case.prompt_tokens:.0f} %"
    weights, cache, _ = case.formats
    rent = case.price_per_chip_hour
    paid = "" if rent is None else f", at {rent:.2f} dollars per chip-hour"
    return Text(
        f"**The request.** *{case.model.name} on {case.machine}, weights in {format_dtype(weights)} and cache in "
        f"{format_dtype(cache)}{paid}. {step.batch:g} users each send a prompt of {case.prompt_tokens:,.0f} tokens, "
        f"{share} of it cached, and get {case.output_tokens:,.0f} tokens. How long does a user wait between two of "
        f"them?*\n\n**The step** is the part of it that the sources describe: one pass for {step.batch:g} sequences "
        f"with {step.workload.context:,.0f} tokens of context each, while no prompt is read."
    )


def kernel_model_sentence(case):
    """Give the kernel model's answer to the case's step, to twice the chips as one instance, and to its request."""
    step = case.step()
    found = tokenprice.ask(step)
    who = "*[The kernel model](kernel_model.ipynb), which is fitted to measurements,"
    if not found.feasible:
        return Text(f"{who} has no time for this step ({found.summary()}).*")
    twice = inferlib.System(case.machine.chip, 2 * case.machine.count)
    beside = tokenprice.ask(step.replace(machine=twice, layout=None)).summary()
    middle, low, high = (f"{1e3 * seconds:.1f}" for seconds in (found.seconds, found.low, found.high))
    whole = f" For the request it says {tokenprice.ask(case).summary()}." if case.is_request else ""
    return Text(
        f"{who} says {middle} ms for the same step ({low} to {high} in {100 * found.confidence:.0f} % of cases); "
        f"on {twice} as one instance, {beside}.{whole}*"
    )


def kernel_model_price(answer):
    """Format the price per million tokens of an answer; ``""`` if there is no price."""
    if not answer.feasible or answer.usd_per_million is None:
        return ""
    return f", ${answer.usd_per_million:.2f} per million"


def kernel_model_users(case, seconds, by="kernels"):
    """Return the most sequences per chip whose TPOT is within ``seconds``, as model ``by`` answers; 0 if none.

    All chips of the case have data-parallel attention and expert parallelism.
    """
    chips = case.machine.count
    spread = case.replace(layout=f"DP{chips} EP{chips}")

    def slower(own):
        answer = tokenprice.ask(spread.replace(batch=own * chips), by=by)
        return not answer.feasible or answer.seconds > seconds

    return bisect(range(1, 1025), False, key=slower)
