"""What the kernel model says where a story gives a bound."""

from bisect import bisect

import inferlib
import tokenprice


class Text:
    """Markdown as the output of a cell: rendered in a notebook, plain text elsewhere."""

    def __init__(self, markdown):
        self.markdown = markdown

    def __repr__(self):
        return self.markdown

    def _repr_markdown_(self):
        return self.markdown


def kernel_model_sentence(case):
    """One sentence: its time of the same step, and of twice the chips as one instance, or why there is none."""
    found = tokenprice.ask(case)
    who = "*[The kernel model](kernel_model.ipynb), which is fitted to measurements,"
    if not found.feasible:
        return Text(f"{who} has no time for this step ({found.summary()}).*")
    twice = inferlib.System(case.machine.chip, 2 * case.machine.count)
    beside = tokenprice.ask(case.replace(machine=twice, layout=None)).summary()
    middle, low, high = (f"{1e3 * seconds:.1f}" for seconds in (found.seconds, found.low, found.high))
    return Text(
        f"{who} says {middle} ms for the same step ({low} to {high} in {100 * found.confidence:.0f} % of cases); "
        f"on {twice} as one instance, {beside}.*"
    )


def kernel_model_price(answer):
    """The price per million tokens of an answer, as text; empty where there is no price."""
    if not answer.feasible or answer.usd_per_million is None:
        return ""
    return f", ${answer.usd_per_million:.2f} per million"


def kernel_model_users(case, seconds, by="kernels"):
    """Most sequences on each chip of a case whose tokens take no longer, as one who answers sees it; 0 if none.

    On all its chips attention is data-parallel and experts are spread.
    """
    chips = case.machine.count
    spread = case.replace(layout=f"DP{chips} EP{chips}")

    def slower(own):
        answer = tokenprice.ask(spread.replace(batch=own * chips), by=by)
        return not answer.feasible or answer.seconds > seconds

    return bisect(range(1, 1025), False, key=slower)
