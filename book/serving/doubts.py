"""Compare each timed operator with the same operator on other chips, and so find timings that cannot be right."""

from functools import cache
from statistics import median

import numpy as np

from inferlib import load_chip
from tokenprice import calibration, kernels
from tokenprice.kernels import Block, Link

FAR = 6  # ratio to the same operator on other chips beyond which a timing is doubted


def timings():
    """Yield every timed operator: chip, key and constants; links only for chips with links of their own."""
    for chip in calibration.load_operators()["chips"]:
        kinds = (*calibration.KINDS, *(() if calibration.is_card(chip) else calibration.LINKS))
        for kind in kinds:
            for name, one in calibration.timed_kernels(chip, kind).items():
                yield chip, (kind, name), one
    for chip, rows in calibration.listed_blocks().items():
        for of, row in rows.items():
            yield chip, of, calibration.block_of(row)


def usual_times(chip, of, one):
    """Typical times of an operator in seconds with its constants on an H100: steps of 1 and 64 rows, and a prefill.

    Matrices have 5 MB, each row reads 0.2 MB more, an all-reduce sends 1 MB; a prompt of 4,096 tokens needs 0.3 GFLOP
    per token in products, as much in attention, and 30 kB of scores.
    """
    on, tokens, depth = load_chip("H100 SXM"), 4096, 32 if of[0] == "experts" else 4096
    if isinstance(one, Link):
        wider = load_chip(chip).scale_up_bandwidth / on.scale_up_bandwidth
        return (kernels.reduce_time(one, 1e6 * wider),)
    steps = [kernels.start_time(one, 1, depth) + kernels.read_time(one, on, 5e6 + n * 2e5) for n in (1, 64)]
    work = 3e8 * tokens
    if not isinstance(one, Block):
        return *steps, kernels.work_time(one, on, work)
    steps = [time + kernels.topk_time(one, 1, n, 8192, 0) for time, n in zip(steps, (1, 64), strict=True)]
    return *steps, kernels.prompt_block_time(one, on, work, work, on.flops, 3e4 * tokens, tokens)


@cache
def against_kin():
    """Compare each timed operator with the same operator on other chips, as a ratio of times.

    Returns a dict from (chip, operator) to the ratio farthest from 1, for operators timed on at least two other chips.
    All ratios are for the same work on the same chip, so bandwidth and peak cancel.
    """
    times, found = {(chip, of): usual_times(chip, of, one) for chip, of, one in timings()}, {}
    for (chip, of), own in times.items():
        others = [other for (name, what), other in times.items() if what == of and name != chip]
        if len(others) > 1:
            ratios = [one / median(each) for one, each in zip(own, zip(*others, strict=True), strict=True)]
            found[chip, of] = max(ratios, key=lambda ratio: abs(np.log(ratio)))
    return found


def doubted():
    """Return the timed operators, as (chip, operator), that are beyond :data:`FAR` of their kin."""
    return {at for at, ratio in against_kin().items() if not 1 / FAR < ratio < FAR}
